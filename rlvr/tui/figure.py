"""One chart as cells: a title with its numbers in text, the curves of one or several runs, axes.

The widget and the printed frame both draw with `draw`; colours are numbers here, `PALETTE` says what they mean.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rlvr import braille
from rlvr.braille import AXIS, BRAILLE, FIRST_COLOR, TEXT, Cells, Glyphs, Layer, duration, number
from rlvr.records import OUTCOMES
from rlvr.tui.series import GROUPS, ChartSpec, Metrics

NUM_HUES = 8
"""Hues for curves; hue h is drawn in colour FIRST_COLOR + 2h, its raw values in the dim one after it."""

KINDS = FIRST_COLOR + 2 * NUM_HUES
"""Colour of the first outcome; the others and the groups follow."""

KIND_NAMES = (*OUTCOMES, *GROUPS)
KIND_LETTERS: dict[str, str] = dict(zip(KIND_NAMES, "SPWLDITO?rmw", strict=True))
"""For bars without colours."""

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
    """Bars as letters: there are no colours."""


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


def hue_of(name: str) -> int:
    """The hue of a run, the same every time: from its name."""
    return sum(ord(character) * (index + 1) for index, character in enumerate(name)) % NUM_HUES


def hues_of(names: Sequence[str]) -> list[int]:
    """A hue for each run: its own, or the next free one where two would look alike."""
    taken: list[int] = []
    for name in names:
        hue = hue_of(name)
        while hue in taken and len(taken) < NUM_HUES:
            hue = (hue + 1) % NUM_HUES
        taken.append(hue)
    return taken


def full_range(curves: Sequence[Curve], times: bool) -> tuple[float, float]:
    """First and last x of all runs; a run that goes on shows how far it will go only once it is half way."""
    ends = [(x[0], x[-1]) for curve in curves if len(x := curve.metrics.x(times))]
    if not ends:
        return 0.0, 1.0
    low, high = min(first for first, _ in ends), max(last for _, last in ends)
    return float(low), float(max(high, low + 1))


def in_words(value: float | None, spec: ChartSpec) -> str:
    """A value as the titles show it."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{100 * value:.3g}%" if spec.share else number(value)


def percentages(ticks: Sequence[float]) -> list[str]:
    return [f"{label}%" for label in braille.tick_labels([round(100 * tick, 9) for tick in ticks])]


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
    """Draw a chart with its title line into `height` x `width` cells."""
    curves = [replace(curve, metrics=curve.metrics.frozen()) for curve in curves]
    cells = Cells(height, width)
    x_range = view.x_range or full_range(curves, view.times)
    _put_title(cells, curves, spec, view, x_range, focused)
    if height < 3 or width < 8:
        return Drawn(cells, None)
    log = spec.name in view.log and not spec.stacked
    chart = braille.draw_chart(
        [] if spec.stacked else _layers(curves, spec, view),
        height - 1,
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
    cells.paste(1, 0, chart.cells)
    return Drawn(cells, replace(chart, top=1))


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
    """Of one run its raw values, dim, under the average; of several the averages only, the first run on top."""
    column = spec.columns[0]
    layers = []
    alone = len(curves) == 1
    for curve in reversed(curves):
        x = curve.metrics.x(view.times)
        color = FIRST_COLOR + 2 * (spec.color if alone else curve.hue)
        raw = curve.metrics.column(column)
        if alone and view.smoothing:
            layers.append(Layer(x, raw, color + 1))
        layers.append(Layer(x, curve.metrics.smoothed(column, view.smoothing), color))
    return layers


def _put_title(
    cells: Cells, curves: Sequence[Curve], spec: ChartSpec, view: View, x_range: tuple[float, float], focused: bool
) -> None:
    """Name, then the numbers in text: at the crosshair if there is one, else the last, and the extremes in view."""
    plain = view.glyphs is braille.ASCII
    mark = (">" if plain else "▸") if focused else " "
    log = _log_in_words(curves, spec, view, x_range) if spec.name in view.log and not spec.stacked else ""
    name = (f"{mark}{spec.name}{log}", TITLE)
    if spec.stacked:
        versions = [_kinds_in_words(curves, spec, view)]
    else:
        versions = [_numbers_in_words(curves, spec, view, x_range, brief) for brief in (0, 1, 2)]
    for parts in versions:
        if len(name[0]) + sum(len(text) for text, _ in parts) <= cells.width:
            break
    column = 0
    for text, color in (name, *parts):
        cells.put(0, column, text.replace("–", "-") if plain else text, color)
        column += len(text)
    if column > cells.width:
        cells.put(0, cells.width - 1, "~" if plain else "…", AXIS)


def _log_in_words(curves: Sequence[Curve], spec: ChartSpec, view: View, x_range: tuple[float, float]) -> str:
    """That the y axis is logarithmic, and how many values in view have no logarithm."""
    left_out = 0
    for curve in curves:
        x, values = curve.metrics.x(view.times), curve.metrics.column(spec.columns[0])
        left_out += int(((values <= 0) & (x >= x_range[0]) & (x <= x_range[1])).sum())
    return f" log, {left_out} not positive" if left_out else " log"


def _kinds_in_words(curves: Sequence[Curve], spec: ChartSpec, view: View) -> list[tuple[str, int]]:
    """The kinds of stacked bars with their shares, the largest first."""
    metrics = curves[0].metrics
    x = metrics.x(view.times)
    found = []
    for kind in kinds_of(curves, spec):
        values = metrics.smoothed(kind, view.smoothing)
        value = summary(values)[0] if view.cursor is None else value_at(x, values, view.cursor)
        found.append((value or 0.0, kind.removeprefix("outcomes/")))
    letters = view.letters or not view.glyphs.bars
    parts = [(f" ({curves[0].name.rpartition('/')[2]})", AXIS)] if len(curves) > 1 else []
    for value, name in sorted(found, reverse=True):
        letter = f"{KIND_LETTERS[name]}=" if letters else ""
        parts.append((f" {letter}{name.replace('_', ' ')} {100 * value:.0f}%", KINDS + KIND_NAMES.index(name)))
    return parts


def _numbers_in_words(
    curves: Sequence[Curve], spec: ChartSpec, view: View, x_range: tuple[float, float], brief: int
) -> list[tuple[str, int]]:
    """The last value and the extremes of each run; the higher `brief`, the shorter."""
    parts = []
    for curve in curves:
        x, raw = curve.metrics.x(view.times), curve.metrics.column(spec.columns[0])
        begin, end = np.searchsorted(x, x_range[0], side="left"), np.searchsorted(x, x_range[1], side="right")
        last, low, high = (in_words(value, spec) for value in summary(raw[begin:end]))
        if view.cursor is not None:
            last = in_words(value_at(x, raw, view.cursor), spec)
        if len(curves) > 1:
            color = FIRST_COLOR + 2 * curve.hue
            parts += [(f"  {curve.name.rpartition('/')[2]} {last}", color)]
        else:
            parts += [(f" {last}", TEXT)]
        if brief < 2 or len(curves) == 1:
            parts += [(f" {low}..{high}" if brief else f"  min {low}  max {high}", AXIS)]
    return parts


def x_in_words(x: float, view: View) -> str:
    return duration(x) if view.times else f"step {braille.plain_x(round(x))}"
