"""Round values for axes, and numbers in few characters."""

import math
from collections.abc import Sequence


def number(value: float | None, digits: int = 4) -> str:
    """A value in `digits` digits or so: 0.3124, 12.5, 1,234, 45.2k, 1.2e-5; a missing one is a dash.

    >>> number(0.31239), number(45_210), number(0.000012), number(float("nan")), number(3.0)
    ('0.3124', '45.2k', '1.2e-5', '–', '3')
    >>> number(0.31239, 2), number(12.34, 2), number(1234.5, 2)
    ('0.31', '12', '1,234')
    """
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    if size < 1e-12:  # what is left of rounding
        return "0"
    if size < 1e-3 or size >= 1e9:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    if size >= 1e4:
        scaled, suffix = (value / 1e3, "k") if size < 999_500 else (value / 1e6, "M")
        return f"{scaled:,.0f}{suffix}" if abs(scaled) >= 100 else f"{scaled:.3g}{suffix}"
    decimals = max(digits - 1 - math.floor(math.log10(size)), 0) if size >= 1 else digits
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def duration(seconds: float) -> str:
    """Seconds in words short enough for an axis.

    >>> duration(42), duration(90), duration(3600), duration(9000), duration(200_000)
    ('42s', '1m30', '1h', '2h30', '2d7h')
    """
    total = round(seconds)
    if total < 60:
        return f"{total}s"
    if total < 86400:
        name, whole, part = ("m", *divmod(total, 60)) if total < 3600 else ("h", *divmod(total // 60, 60))
        return f"{whole}{name}{part:02d}" if part else f"{whole}{name}"
    days, rest = divmod(total, 86400)
    return f"{days}d{rest // 3600}h" if rest >= 3600 else f"{days}d"


def nice_step(span: float, most: int) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten that divides `span` into at most `most` parts."""
    if span <= 0 or most < 1:
        return 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    for factor in (1, 2, 2.5, 5, 10):
        if span / (factor * power) <= most * (1 + 1e-9):
            return factor * power
    return 10 * power


def linear_ticks(low: float, high: float, most: int) -> list[float]:
    """Round values within [low, high], about `most` of them.

    >>> linear_ticks(-0.4, 1.0, 4)
    [0.0, 0.5, 1.0]
    """
    step = nice_step(high - low, most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    # Adding 0.0 makes a zero of -0.0.
    return [round(index * step, 12 - math.floor(math.log10(step))) + 0.0 for index in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Powers of ten within [low, high], both positive; also 2 and 5 times those, or any round value, where few are.

    >>> log_ticks(0.5, 40, 3), log_ticks(1.2, 1.9, 3)
    ([1.0, 10.0], [1.25, 1.5, 1.75])
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
        ticks = [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(ticks) < 2 and len(factors) == 3:  # less than a decade is almost linear
            return linear_ticks(low, high, most)
        if len(ticks) <= most:
            return ticks
    return ticks[:: math.ceil(len(ticks) / max(most, 1))]


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Labels with equally many decimals; thousands as k, very small values with an exponent.

    >>> tick_labels([0, 0.25, 0.5]), tick_labels([0, 20000, 40000]), tick_labels([1e-5, 2e-5])
    (['0.00', '0.25', '0.50'], ['0', '20k', '40k'], ['1e-5', '2e-5'])
    """
    largest = max((abs(tick) for tick in ticks), default=0.0)
    smallest = min((abs(tick) for tick in ticks if tick), default=0.0)
    if largest >= 1e9 or (largest and largest < 1e-3) or (smallest and largest / smallest > 1e5):
        return [number(tick) if tick else "0" for tick in ticks]
    divisor, suffix = (1e6, "M") if largest >= 1e6 else (1e3, "k") if largest >= 1e4 else (1.0, "")
    scaled = [tick / divisor for tick in ticks]
    decimals = next((d for d in range(7) if all(abs(round(t, d) - t) < 1e-9 * max(1, abs(t)) for t in scaled)), 6)
    return [f"{tick:.{decimals}f}{suffix if tick else ''}" for tick in scaled]


def plain_x(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else number(value)


def time_ticks(low: float, high: float, most: int) -> list[float]:
    """Round times in seconds."""
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
    step = next((s for s in steps if (high - low) / s <= most), 86400 * nice_step((high - low) / 86400, most))
    return [index * float(step) for index in range(math.ceil(low / step), math.floor(high / step) + 1)]


def x_ticks(low: float, high: float, width: int, times: bool) -> list[tuple[int, float, str]]:
    """The ticks of an x axis of `width` cells: cell, value, and a label, "" where it would touch the one before.

    At least two of them have a label, where two fit.
    """
    found: list[tuple[int, float, str]] = []
    for most in range(max(width // 10, 2), max(width // 3, 2) + 1):
        values = time_ticks(low, high, most) if times else linear_ticks(low, high, most)
        if not times and high - low >= 2:
            values = [value for value in values if float(value).is_integer()]
        found, free_from = [], -width  # a label may reach out to the left, below the y axis
        for value in values:
            cell = round((value - low) / (high - low) * (width - 1)) if high > low else 0
            label = duration(value) if times else plain_x(value)
            begin = min(cell - len(label) // 2, width - len(label))
            found.append((cell, value, label if begin >= free_from else ""))
            free_from = begin + len(label) + 1 if begin >= free_from else free_from
        if sum(bool(label) for _, _, label in found) > 1:
            break
    return found
