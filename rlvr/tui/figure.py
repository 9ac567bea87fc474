"""One chart as cells: a title with its numbers in text, the curves of one or several runs, axes.

The widget and the printed frame both draw with `draw`; colours are numbers here, `PALETTE` says what they mean.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rlvr import braille
from rlvr.braille import AXIS, BRAILLE, FIRST_COLOR, TEXT, Cells, Glyphs, Layer
from rlvr.records import OUTCOMES
from rlvr.ticks import duration, number, plain_x, tick_labels
from rlvr.tui.series import GROUPS, ChartSpec, Metrics

HUES_DARK = ("#58a6ff", "#56d364", "#e3b341", "#ff7b72", "#bc8cff", "#ffa657", "#39c5cf", "#f778ba")
HUES_LIGHT = ("#0969da", "#1a7f37", "#9a6700", "#cf222e", "#8250df", "#bc4c00", "#1b7c83", "#bf3989")
"""Hues for curves on a dark and on a light background: hue h is colour FIRST_COLOR + 2h, its raw values the dim one
after it."""

NUM_HUES = len(HUES_DARK)

RUN_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Of the runs that are laid over each other, where there are no colours."""

KINDS = FIRST_COLOR + 2 * NUM_HUES
"""Colour of the first outcome; the others and the groups follow."""

KIND_NAMES = (*OUTCOMES, *GROUPS)
KIND_LETTERS: dict[str, str] = dict(zip(KIND_NAMES, "SPWLDITO?rmw", strict=True))
"""For bars without colours."""

SHORT_KINDS = {"all_right": "right", "all_wrong": "wrong", "disallowed_import": "import", "truncated": "cut"}

TITLE = KINDS + len(KIND_NAMES)

HEX = {
    "solved": "#3fb950",
    "partial": "#a5d65a",
    "wrong": "#a0a8b3",
    "lookup": "#d2793a",
    "disallowed_import": "#db61a2",
    "invalid": "#8d7fb8",
    "truncated": "#e3b341",
    "timeout": "#f0604d",
    "infra": "#d0d7de",
    "all_right": "#3fb950",
    "mixed": "#e3b341",
    "all_wrong": "#8b949e",
}
"""What became of a completion has one colour everywhere, in every theme: it is data, not decoration."""


@dataclass(frozen=True)
class View:
    """How charts are looked at; all charts share it."""

    smoothing: float = 0.9
    times: bool = False
    log: frozenset[str] = frozenset()
    """Names of the charts with a logarithmic y axis."""
    x_range: tuple[float, float] | None = None
    """What is zoomed to; None shows everything and follows what comes."""
    cursor: float | None = None
    outliers: bool = True
    guides: bool = True
    glyphs: Glyphs = BRAILLE
    letters: bool = False
    """There are no colours: bars are letters, and so are curves of several runs."""


@dataclass(frozen=True)
class Curve:
    """One run in a chart; `hue` is its colour where there are several."""

    name: str
    metrics: Metrics
    hue: int


@dataclass(frozen=True)
class Drawn:
    """A chart as cells, and its plot for turning a mouse position into an x; None where nothing was drawn."""

    cells: Cells
    chart: braille.Chart | None
    title: int
    """Lines of the title."""


def hue_of(name: str) -> int:
    """The hue of a run, the same every time: from its name."""
    return sum(ord(character) * (index + 1) for index, character in enumerate(name)) % NUM_HUES


def hues_of(names: Sequence[str]) -> list[int]:
    """A hue for each run: its own, or the next free one where two would look alike, whatever their order."""
    taken: dict[str, int] = {}
    for name in sorted(names):
        hue = hue_of(name)
        while hue in taken.values() and len(taken) < NUM_HUES:
            hue = (hue + 1) % NUM_HUES
        taken[name] = hue
    return [taken[name] for name in names]


def full_range(curves: Sequence[Curve], times: bool) -> tuple[float, float]:
    """First and last x of all runs; never empty."""
    ends = [(x[0], x[-1]) for curve in curves if len(x := curve.metrics.x(times))]
    if not ends:
        return 0.0, 1.0
    low, high = min(first for first, _ in ends), max(last for _, last in ends)
    return float(low), float(max(high, low + 1))


def in_words(value: float | None, spec: ChartSpec, brief: bool = False) -> str:
    """A value as the titles show it; `brief` ones have two digits."""
    if value is None or not math.isfinite(value):
        return "–"
    if spec.share:
        return f"{100 * value:.0f}%" if brief else f"{100 * value:.3g}%"
    return number(value, 2 if brief else 4)


def percentages(ticks: Sequence[float]) -> list[str]:
    return [f"{label}%" for label in tick_labels([round(100 * tick, 9) for tick in ticks])]


def value_at(x: np.ndarray, y: np.ndarray, position: float) -> float | None:
    """The value of the point nearest to `position`."""
    known = np.flatnonzero(np.isfinite(y))
    if not len(known):
        return None
    return float(y[known[np.abs(x[known] - position).argmin()]])


def summary(values: np.ndarray) -> tuple[float | None, float | None, float | None]:
    """Last, smallest and largest of the finite values."""
    finite = values[np.isfinite(values)]
    return (float(finite[-1]), float(finite.min()), float(finite.max())) if len(finite) else (None, None, None)


def kinds_of(curves: Sequence[Curve], spec: ChartSpec) -> list[str]:
    """The columns of stacked bars that ever were anything."""
    first = curves[0].metrics
    present = [column for column in spec.columns if np.nansum(first.column(column)) > 0]
    return present or list(spec.columns[:1])


def draw(
    curves: Sequence[Curve], spec: ChartSpec, view: View, height: int, width: int, *, focused: bool = False
) -> Drawn:
    """Draw a chart under its title into `height` x `width` cells."""
    curves = [replace(curve, metrics=curve.metrics.frozen()) for curve in curves]
    cells = Cells(height, width)
    x_range = view.x_range or full_range(curves, view.times)
    title = _put_title(cells, curves, spec, view, x_range, focused)
    if height < 3 or width < 8:
        return Drawn(cells, None, title)
    log = spec.name in view.log and not spec.stacked
    chart = braille.draw_chart(
        [] if spec.stacked else _layers(curves, spec, view),
        height - title,
        width,
        x_range=x_range,
        y_range=(0.0, 1.0) if spec.share and not log else None,
        log=log,
        times=view.times,
        outliers=view.outliers,
        guides=view.guides and not spec.stacked,
        cursor=view.cursor,
        glyphs=view.glyphs,
        bars=_bars(curves, spec, view, x_range) if spec.stacked else None,
        labels=percentages if spec.share else None,
    )
    cells.paste(title, 0, chart.cells)
    return Drawn(cells, replace(chart, top=title), title)


def _bars(
    curves: Sequence[Curve], spec: ChartSpec, view: View, x_range: tuple[float, float]
) -> Callable[[int, int], Cells]:
    """Draws the stacked bars of the first run into a plot of any size."""
    metrics = curves[0].metrics
    x, kinds = metrics.x(view.times), kinds_of(curves, spec)
    shares = np.array([metrics.smoothed(kind, view.smoothing) for kind in kinds]).reshape(len(kinds), len(x))
    names = [kind.removeprefix("outcomes/") for kind in kinds]
    colors = [KINDS + KIND_NAMES.index(name) for name in names]
    letters = "".join(KIND_LETTERS[name] for name in names) if view.letters or not view.glyphs.bars else ""
    return lambda rows, columns: braille.draw_bars(x, shares, colors, x_range, rows, columns, view.glyphs, letters)


def _layers(curves: Sequence[Curve], spec: ChartSpec, view: View) -> list[Layer]:
    """Of one run its raw values, dim, under the average; of several the averages only, the first run on top.

    Without colours nothing is dim, so the raw values are left out, and several runs are told apart by letters.
    """
    column = spec.columns[0]
    layers = []
    alone = len(curves) == 1
    for index, curve in reversed(list(enumerate(curves))):
        x = curve.metrics.x(view.times)
        color = FIRST_COLOR + 2 * (spec.color if alone else curve.hue)
        raw = curve.metrics.column(column)
        if alone and view.smoothing and not view.letters:
            layers.append(Layer(x, raw, color + 1))
        letter = letter_of(index) if view.letters and not alone else ""
        layers.append(Layer(x, curve.metrics.smoothed(column, view.smoothing), color, letter))
    return layers


def letter_of(index: int) -> str:
    """The letter of a run among several."""
    return RUN_LETTERS[index % len(RUN_LETTERS)]


# ---------------------------------------------------------------------------------------------------------------------
# Titles

Part = tuple[str, int]
"""A text that is not broken, with its colour."""


def title_lines(height: int) -> int:
    """Lines that a title may have in a chart so high."""
    return 1 if height < 12 else 2 if height < 20 else 3


def _put_title(
    cells: Cells, curves: Sequence[Curve], spec: ChartSpec, view: View, x_range: tuple[float, float], focused: bool
) -> int:
    """Name, then the numbers in text: at the crosshair if there is one, else the last, and the extremes in view.

    Takes the longest version that fits and returns how many lines it needs.
    """
    plain = view.glyphs is braille.ASCII
    name = ((">" if plain else "▸") if focused else " ") + spec.name
    if spec.stacked:
        versions = [[(name, TITLE), *parts] for parts in _kinds_in_words(curves, spec, view, x_range)]
    else:
        logs = _log_in_words(curves, spec, view, x_range) if spec.name in view.log else ("", "")
        versions = [
            [(name + logs[brief > 0], TITLE), *_numbers_in_words(curves, spec, view, x_range, brief)]
            for brief in range(4)
        ]
    most = title_lines(cells.height)
    lines = next((lines for each in versions if len(lines := broken(each, cells.width)) <= most), None)
    cut = lines is None
    if lines is None:
        lines = broken(versions[-1], cells.width)[:most]
    for row, parts in enumerate(lines):
        column = 0
        for text, color in parts:
            cells.put(row, column, text.replace("–", "-").replace("−", "-") if plain else text, color)
            column += len(text)
    if cut:
        cells.put(len(lines) - 1, min(column, cells.width - 2), " ~" if plain else " …", AXIS)
    return len(lines)


def broken(parts: Sequence[Part], width: int) -> list[list[Part]]:
    """The parts in lines of at most `width` characters; a longer part has a line of its own."""
    lines: list[list[Part]] = [[]]
    free = width
    for text, color in parts:
        if len(text) > free and lines[-1]:
            lines.append([])
            text, free = f" {text.lstrip()}", width
        lines[-1].append((text, color))
        free -= len(text)
    return lines


def _log_in_words(
    curves: Sequence[Curve], spec: ChartSpec, view: View, x_range: tuple[float, float]
) -> tuple[str, str]:
    """That the y axis is logarithmic, and how many values in view have no logarithm; in full and briefly."""
    left_out = 0
    for curve in curves:
        x, values = curve.metrics.x(view.times), curve.metrics.column(spec.columns[0])
        left_out += int(((values <= 0) & (x >= x_range[0]) & (x <= x_range[1])).sum())
    return (f" log, {left_out} not positive", f" log −{left_out}") if left_out else (" log", " log")


def _in_view(curve: Curve, column: str, view: View, x_range: tuple[float, float]) -> tuple[float | None, ...]:
    """The last value in view, or the one at the crosshair, the smallest and the largest in view; never smoothed."""
    x, values = curve.metrics.x(view.times), curve.metrics.column(column)
    begin, end = np.searchsorted(x, x_range[0], side="left"), np.searchsorted(x, x_range[1], side="right")
    last, low, high = summary(values[begin:end])
    return (last if view.cursor is None else value_at(x, values, view.cursor)), low, high


def _kinds_in_words(
    curves: Sequence[Curve], spec: ChartSpec, view: View, x_range: tuple[float, float]
) -> list[list[Part]]:
    """The kinds of stacked bars with their shares, the largest first; each version is shorter than the one before.

    With their extremes; without; with short names; as letters those that there are not; as letters all.
    """
    found = []
    for kind in kinds_of(curves, spec):
        last, low, high = (round(100 * (value or 0.0)) for value in _in_view(curves[0], kind, view, x_range))
        found.append((last, f" {low}..{high}%", kind.removeprefix("outcomes/")))
    found.sort(key=lambda each: each[0], reverse=True)
    with_letters = view.letters or not view.glyphs.bars
    whose: list[Part] = [(f" ({curves[0].name.rpartition('/')[2]})", AXIS)] if len(curves) > 1 else []

    def color(name: str) -> int:
        return KINDS + KIND_NAMES.index(name)

    def in_full(last: int, name: str) -> Part:
        letter = f"{KIND_LETTERS[name]}=" if with_letters else ""
        return f" {letter}{name.replace('_', ' ')} {last}%", color(name)

    def short(last: int, name: str) -> Part:
        letter = f"{KIND_LETTERS[name]}=" if with_letters else ""
        return f" {letter}{SHORT_KINDS.get(name, name)} {last}", color(name)

    def brief(last: int, name: str) -> Part:
        return f" {KIND_LETTERS[name]}{last}", color(name)

    def each(present: Callable[[int, str], Part], absent: Callable[[int, str], Part]) -> list[Part]:
        return [*whose, *((present if last else absent)(last, name) for last, _, name in found)]

    with_extremes = [part for last, extremes, name in found for part in (in_full(last, name), (extremes, AXIS))]
    ways = ((in_full, in_full), (short, short), (in_full, brief), (short, brief), (brief, brief))
    versions = [[*whose, *with_extremes], *(each(*way) for way in ways)]
    return [*versions, [*whose, *(brief(last, name) for last, _, name in found if last)]]


def _numbers_in_words(
    curves: Sequence[Curve], spec: ChartSpec, view: View, x_range: tuple[float, float], brief: int
) -> list[Part]:
    """The last value and the extremes of each run; the higher `brief`, the shorter.

    Of several runs, from 2 on, the extremes are those of all together; from 3 on only the colour says which is which.
    """
    parts: list[Part] = []
    numbers = [_in_view(curve, spec.columns[0], view, x_range) for curve in curves]
    alone, short = len(curves) == 1, brief == 3
    for index, (curve, (last, low, high)) in enumerate(zip(curves, numbers, strict=True)):
        letter, name = letter_of(index) if view.letters else "", curve.name.rpartition("/")[2]
        who = "" if alone else letter if short else f"{letter}={name}" if letter else name
        gap = " " if alone or short else "  "
        color = TEXT if alone else FIRST_COLOR + 2 * curve.hue
        parts.append((gap + " ".join(filter(None, (who, in_words(last, spec, short)))), color))
        if brief < 2 or alone:
            parts.append((extremes_in_words(low, high, spec, brief), AXIS))
    if brief >= 2 and not alone:
        known = [value for _, low, high in numbers for value in (low, high) if value is not None]
        parts.append((extremes_in_words(min(known, default=None), max(known, default=None), spec, brief), AXIS))
    return parts


def extremes_in_words(low: float | None, high: float | None, spec: ChartSpec, brief: int) -> str:
    least, most = (in_words(value, spec, brief == 3) for value in (low, high))
    return f" {least}..{most}" if brief else f"  min {least}  max {most}"


def x_in_words(x: float, view: View) -> str:
    return duration(x) if view.times else f"step {plain_x(round(x))}"
