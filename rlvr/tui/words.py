"""Numbers of runs as the dashboard shows them, in words and in cells of a table."""

import time

from rich.style import Style
from rich.text import Text
from textual.app import App
from textual.color import Color

from rlvr.listing import Row, duration_text
from rlvr.records import Interval, Round

KINDS = {"train": "cycle", "eval": "evaluation", "auto": "auto run"}


def share_text(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def reward_text(value: float | None) -> str:
    return "" if value is None else f"{value:+.3f}"


def progress_text(row: Row) -> str:
    """` 66% 40/60`."""
    if not row.max_steps:
        return ""
    return f"{100 * row.step // row.max_steps:>3}% {row.step:,}/{row.max_steps:,}"


def time_text(row: Row) -> str:
    """What is left of a running one, what another waits for, how long it took."""
    if row.state == "running":
        return f"{duration_text(row.remaining_s)} left" if row.remaining_s is not None else "starting"
    if row.state == "pending":
        return f"after {row.waiting_for}" if row.waiting_for else "queued"
    return duration_text(row.elapsed_s)


def when_text(seconds: float | None) -> str:
    """A moment as people read it: the clock today, else the date."""
    if seconds is None:
        return ""
    then, now = time.localtime(seconds), time.localtime()
    if then[:3] == now[:3]:
        return time.strftime("%H:%M", then)
    return time.strftime("%d %b %H:%M" if then[0] == now[0] else "%d %b %Y", then)


def shorten(text: str, most: int = 40) -> str:
    """The text, cut to so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def color_of(app: App, name: str) -> Style:
    """A colour of the theme as Rich wants it, such as "text-success"; some are said as a share of the foreground."""
    value, _, share = app.theme_variables[name].partition(" ")
    if not share:
        return Style(color=Color.parse(value).rich_color)
    foreground, background = (Color.parse(app.theme_variables[each]) for each in ("foreground", "background"))
    if foreground.ansi is not None or background.ansi is not None:  # a theme that leaves colours to the terminal
        return Style(dim=True)
    return Style(color=background.blend(foreground, float(share.rstrip("%")) / 100).rich_color)


def bar(share: float, width: int, full: Style, empty: Style) -> Text:
    """A progress bar of that many cells."""
    filled = round(max(0.0, min(share, 1.0)) * width)
    return Text.assemble(("━" * filled, full), ("─" * (width - filled), empty), no_wrap=True)


def interval_text(interval: Interval, signed: bool = False) -> str:
    """`45.8 % [24.6, 68.7]`; `signed` for a difference, in points."""
    estimate, low, high = (100 * value for value in (interval.estimate, interval.low, interval.high))
    if signed:
        return f"{estimate:+.1f} [{low:+.1f}, {high:+.1f}]"
    return f"{estimate:.1f} % [{low:.1f}, {high:.1f}]"


def gain_text(finished: Round) -> str:
    """How much more than the base model a round solves, in points."""
    return interval_text(Interval(finished.difference or 0.0, finished.low or 0.0, finished.high or 0.0), signed=True)


def round_text(finished: Round) -> str:
    """A round of an auto run in a line."""
    return (
        f"round {finished.round}: cycle {finished.cycle} solves {share_text(finished.solved)}, "
        f"{gain_text(finished)} points against base" + ("" if finished.improved else ", no improvement")
    )
