"""Numbers -> characters: line charts in braille, stacked bars, axes with round ticks.

    python -m rlvr.braille          # a sample of what it draws

A picture is a `Cells`: a code point and two colour numbers a cell. It knows no terminal and no colour: whoever prints
it decides what the numbers look like. Everything is numpy; the cost is linear in the points, whatever the zoom.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rlvr.ticks import linear_ticks, log_ticks, number, tick_labels, x_ticks

NOTHING, AXIS, TEXT, GUIDE, CURSOR = range(5)
"""Colour numbers of the parts of a chart; those of the data, from FIRST_COLOR on, are the caller's."""
FIRST_COLOR = 8


@dataclass(frozen=True)
class Glyphs:
    """How a cell is drawn: `rows` x `columns` dots, `table[bits]` the character; bit r * columns + c is a dot."""

    rows: int
    columns: int
    table: np.ndarray
    vertical: str
    horizontal: str
    corner: str
    tick_y: str
    tick_x: str
    guide: str
    cursor: str
    bars: str
    """From empty to full, for the height of a bar in a cell; empty where a kind is drawn as a letter."""


def _braille_table() -> np.ndarray:
    weights = (1, 8, 2, 16, 4, 32, 64, 128)  # row by row, left before right; Unicode counts otherwise
    return np.array([0x2800 + sum(weights[bit] for bit in range(8) if bits >> bit & 1) for bits in range(256)])


def _table(characters: str) -> np.ndarray:
    return np.array([ord(character) for character in characters])


BRAILLE = Glyphs(4, 2, _braille_table(), "│", "─", "└", "┤", "┬", "┈", "│", " ▁▂▃▄▅▆▇█")
BLOCKS = Glyphs(2, 2, _table(" ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"), "│", "─", "└", "┤", "┬", "┈", "│", " ▁▂▃▄▅▆▇█")
ASCII = Glyphs(2, 1, _table(" '.:"), "|", "-", "+", "+", "+", ".", "|", "")


class Cells:
    """A picture of H x W cells: `codes`, `colors` and `backgrounds` are (H, W) arrays."""

    def __init__(self, height: int, width: int):
        self.codes = np.full((height, width), ord(" "), dtype="<u4")
        self.colors = np.zeros((height, width), dtype=np.int16)
        self.backgrounds = np.zeros((height, width), dtype=np.int16)

    @property
    def height(self) -> int:
        return self.codes.shape[0]

    @property
    def width(self) -> int:
        return self.codes.shape[1]

    def put(self, row: int, column: int, text: str, color: int = TEXT) -> None:
        """Write text of characters one cell wide; what does not fit is cut off."""
        text = text[max(-column, 0) : max(self.width - column, 0)]
        column = max(column, 0)
        if text and 0 <= row < self.height:
            self.codes[row, column : column + len(text)] = [ord(character) for character in text]
            self.colors[row, column : column + len(text)] = color

    def paste(self, row: int, column: int, other: "Cells") -> None:
        """Put another picture into this one; it has to fit."""
        area = (slice(row, row + other.height), slice(column, column + other.width))
        self.codes[area], self.colors[area], self.backgrounds[area] = other.codes, other.colors, other.backgrounds

    def text(self, row: int) -> str:
        return self.codes[row].tobytes().decode("utf-32-le")

    def lines(self) -> list[str]:
        return [self.text(row) for row in range(self.height)]

    def runs(self, row: int) -> Iterator[tuple[str, int, int]]:
        """The row as (text, colour, background), each as long as its colours stay the same."""
        colors, backgrounds = self.colors[row], self.backgrounds[row]
        changes = np.flatnonzero((np.diff(colors) != 0) | (np.diff(backgrounds) != 0)) + 1
        text, begin = self.text(row), 0
        for end in (*changes.tolist(), self.width):
            if end > begin:
                yield text[begin:end], int(colors[begin]), int(backgrounds[begin])
            begin = end


# ---------------------------------------------------------------------------------------------------------------------
# Smoothing


def smooth(
    values: np.ndarray, weight: float, state: tuple[float, float] = (0.0, 0.0)
) -> tuple[np.ndarray, tuple[float, float]]:
    """Bias-corrected exponential moving average of (N,) values, and the state with which to go on.

    The first average is the first value: `s = w*s + (1-w)*v`, divided by the sum of the weights so far. A missing
    value is a gap in the result and changes nothing after it.
    """
    result = np.full(len(values), np.nan)
    finite = np.isfinite(values)
    known = values[finite]
    if weight <= 0 or not len(known):
        result[finite] = known
        return result, state
    # Rows of 64 values: one multiplication averages within all rows, and a short loop hands on from row to row.
    size = 64
    rows = -(-len(known) // size)
    padded = np.zeros(rows * size)
    padded[: len(known)] = known
    powers = weight ** np.arange(size)
    within = np.tril(powers[np.abs(np.subtract.outer(np.arange(size), np.arange(size)))]) * (1 - weight)
    averages = padded.reshape(rows, size) @ within.T
    average, total = state
    fade = weight**size
    carried = np.empty(rows)
    for row, last in enumerate(averages[:, -1].tolist()):
        carried[row] = average
        average = fade * average + last
    averages += carried[:, None] * (powers * weight)
    flat = averages.ravel()[: len(known)]
    totals = 1 - (1 - total) * weight ** np.arange(1, len(known) + 1)
    result[finite] = flat / totals
    return result, (float(flat[-1]), float(totals[-1]))


# ---------------------------------------------------------------------------------------------------------------------
# Lines


class Layer(NamedTuple):
    """One curve: `x` (N,) never falls, `y` (N,) has NaN where the line is interrupted; `color` is the caller's.

    With a `letter`, that is drawn in every cell of the line instead of dots: where colours do not tell curves apart.
    """

    x: np.ndarray
    y: np.ndarray
    color: int
    letter: str = ""


def line_dots(x: np.ndarray, y: np.ndarray, window: tuple[float, float, float, float], rows: int, columns: int):
    """The dots of one line: a boolean (rows, columns), row 0 on top.

    `window` is (x of the first column, x of the last, y of the bottom row, y of the top row). Of the points that share
    a column, lowest and highest are joined, so no peak is lost; neighbours are joined by a straight line.
    """
    left, right, bottom, top = window
    begin, end = np.searchsorted(x, (left, right), side="left")[0], np.searchsorted(x, right, side="right")
    # One point beyond each edge: the line runs on to it.
    begin, end = max(int(begin) - 1, 0), min(int(end) + 1, len(x))
    x, y = x[begin:end], y[begin:end]
    finite = np.isfinite(y)
    index = np.flatnonzero(finite)
    if not len(index):
        return np.zeros((rows, columns), dtype=bool)
    with np.errstate(over="ignore"):
        position = (x[index] - left) * ((columns - 1) / (right - left) if right > left else 0.0)
        height = (top - y[index]) * ((rows - 1) / (top - bottom) if top > bottom else 0.0)
    # The noise of an average must not carry a level line to and fro over the border of two rows.
    height = np.round(np.clip(height, -1e6, 1e6), 6)
    joined = np.diff(index) == 1
    # A far point beyond an edge is moved along its line to just outside.
    for outside, inside, edge in ((0, 1, -1.0), (-1, -2, float(columns))):
        if len(index) > 1 and (position[outside] < edge if edge < 0 else position[outside] > edge):
            if joined[min(outside, 0)]:
                share = (edge - position[inside]) / (position[outside] - position[inside])
                height[outside] = height[inside] + share * (height[outside] - height[inside])
            position[outside] = edge
    column = np.clip(np.floor(position + 0.5), -1, columns).astype(np.int64) + 1
    low, high = np.full(columns + 2, np.inf), np.full(columns + 2, -np.inf)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(column)) + 1))
    low[column[starts]] = np.minimum.reduceat(height, starts)
    high[column[starts]] = np.maximum.reduceat(height, starts)

    crossing = np.flatnonzero(joined & (np.diff(column) > 0))
    first, last = column[crossing], column[crossing + 1]
    steps = last - first
    owner = np.repeat(np.arange(len(crossing)), steps)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(steps) - steps, steps)
    # Where the line passes from one column to the next, both reach to the same height.
    begins = height[crossing][owner]
    border = begins + (height[crossing + 1][owner] - begins) * (offset + 0.5) / steps[owner]
    for touched in (first[owner] + offset, first[owner] + offset + 1):
        np.minimum.at(low, touched, border)
        np.maximum.at(high, touched, border)

    low, high = low[1:-1], high[1:-1]
    empty = low > high
    low[empty], high[empty] = 1e9, -1e9
    middle = np.floor((low + high) / 2 + 0.5)
    flat = high - low < 1  # one dot where the line is flat, or each of its stairs would be two thick
    upper = np.where(flat, middle, np.floor(low + 0.5))
    lower = np.where(flat, middle, np.ceil(high - 0.5))
    lower[empty] = -1e9
    row = np.arange(rows)[:, None]
    return (row >= upper) & (row <= lower)


def dots_to_codes(dots: np.ndarray, glyphs: Glyphs = BRAILLE) -> np.ndarray:
    """Boolean (H * glyphs.rows, W * glyphs.columns) -> (H, W) code points."""
    height, width = dots.shape[0] // glyphs.rows, dots.shape[1] // glyphs.columns
    parts = dots.reshape(height, glyphs.rows, width, glyphs.columns).transpose(0, 2, 1, 3).reshape(height, width, -1)
    return glyphs.table[parts @ (1 << np.arange(glyphs.rows * glyphs.columns))]


def draw_lines(
    layers: Sequence[Layer],
    window: tuple[float, float, float, float],
    height: int,
    width: int,
    glyphs: Glyphs = BRAILLE,
) -> Cells:
    """Draw curves into `height` x `width` cells; where two meet in a cell, it belongs to the later one."""
    cells = Cells(height, width)
    blank = glyphs.table[0]
    for layer in layers:
        dots = line_dots(layer.x, layer.y, window, height * glyphs.rows, width * glyphs.columns)
        codes = dots_to_codes(dots, glyphs)
        inked = codes != blank
        cells.codes[inked] = ord(layer.letter) if layer.letter else codes[inked]
        cells.colors[inked] = layer.color
    return cells


# ---------------------------------------------------------------------------------------------------------------------
# Stacked bars


def draw_bars(
    x: np.ndarray,
    shares: np.ndarray,
    colors: Sequence[int],
    x_range: tuple[float, float],
    height: int,
    width: int,
    glyphs: Glyphs = BRAILLE,
    letters: str = "",
) -> Cells:
    """Stacked bars from bottom to top: `shares` is (kinds, N), each column of it adding up to at most 1.

    A cell column shows the mean of its steps, or the last known one. With `letters`, or where the glyphs have no
    bars, a kind is its letter instead of its colour.
    """
    cells = Cells(height, width)
    left, right = x_range
    if not len(x) or height < 1 or width < 1:
        return cells
    position = (x - left) * ((width - 1) / (right - left) if right > left else 0.0)
    column = np.floor(position + 0.5).astype(np.int64)
    inside = np.flatnonzero((column >= 0) & (column < width) & np.isfinite(shares).all(axis=0))
    if not len(inside):
        return cells
    column, part = column[inside], shares[:, inside]
    starts = np.concatenate(([0], np.flatnonzero(np.diff(column)) + 1))
    counts = np.diff(np.concatenate((starts, [len(column)])))
    means = np.add.reduceat(part, starts, axis=1) / counts
    filled = np.searchsorted(column[starts], np.arange(width), side="right") - 1
    drawn = (np.arange(width) >= column[0]) & (np.arange(width) <= column[-1])
    levels = np.cumsum(means[:, np.maximum(filled, 0)], axis=0)  # (kinds, width): upper border of each kind

    eighths = 8 if glyphs.bars and not letters else 1
    middle = (np.arange(height * eighths) + 0.5) / (height * eighths)
    kind = (middle[:, None, None] > levels.T[None] - 1e-9).sum(axis=2)  # (height * eighths, width), from the bottom
    kind = kind.reshape(height, eighths, width)[::-1]
    palette = np.array([*colors, NOTHING])
    lowest, highest = kind[:, 0], kind[:, -1]
    cells.colors[:], cells.backgrounds[:] = palette[lowest], palette[highest]
    if eighths == 1:
        signs = _table((letters or "ABCDEFGHIJKLMNOP")[: len(colors)] + " ")
        cells.codes[:] = signs[lowest]
        cells.backgrounds[:] = NOTHING
    else:
        size = (kind == lowest[:, None]).sum(axis=1)
        cells.codes[:] = _table(glyphs.bars)[size]
        cells.backgrounds[size == 8] = NOTHING
        empty = lowest == len(colors)
        cells.codes[empty] = ord(" ")
        cells.backgrounds[empty] = NOTHING
    cells.codes[:, ~drawn] = ord(" ")
    cells.colors[:, ~drawn] = cells.backgrounds[:, ~drawn] = NOTHING
    return cells


# ---------------------------------------------------------------------------------------------------------------------
# A chart with its axes


def data_range(layers: Sequence[Layer], x_range: tuple[float, float], log: bool = False, outliers: bool = True):
    """(bottom, top) of what lies within `x_range`, with a little room; (0, 1) when there is nothing to show.

    With `log` only positive values count. Without `outliers` it spans the 1st to the 99th percentile.
    """
    parts = []
    for layer in layers:
        begin = np.searchsorted(layer.x, x_range[0], side="left")
        end = np.searchsorted(layer.x, x_range[1], side="right")
        y = layer.y[begin:end]
        parts.append(y[np.isfinite(y) & (y > 0)] if log else y[np.isfinite(y)])
    values = np.concatenate(parts) if parts else np.empty(0)
    if not len(values):
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = (values.min(), values.max()) if outliers else np.percentile(values, (1, 99))
    low, high = float(low), float(high)
    if log:
        return (
            (low / 2, high * 2) if high / low < 1.0001 else (low / (high / low) ** 0.04, high * (high / low) ** 0.04)
        )
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        room = abs(low) / 2 or 0.5
        return low - room, high + room
    room = 0.04 * (high - low)
    return (0.0 if 0 <= low < room else low - room), high + room


@dataclass(frozen=True)
class Chart:
    """A drawn chart and where its plot lies in it, so that a mouse position can be turned into an x."""

    cells: Cells
    left: int
    top: int
    height: int
    width: int
    x_range: tuple[float, float]

    def column_of(self, x: float) -> int:
        """The cell column, counted from the chart's left edge, that shows `x`."""
        left, right = self.x_range
        share = (x - left) / (right - left) if right > left else 0.0
        return self.left + round(share * (self.width - 1))

    def x_at(self, column: int) -> float:
        left, right = self.x_range
        return left + (right - left) * (column - self.left) / max(self.width - 1, 1)


def draw_chart(
    layers: Sequence[Layer],
    height: int,
    width: int,
    *,
    x_range: tuple[float, float],
    y_range: tuple[float, float] | None = None,
    log: bool = False,
    times: bool = False,
    outliers: bool = True,
    guides: bool = True,
    cursor: float | None = None,
    glyphs: Glyphs = BRAILLE,
    bars: Callable[[int, int], Cells] | None = None,
    labels: Callable[[Sequence[float]], list[str]] | None = None,
) -> Chart:
    """Draw curves with axes into `height` x `width` cells.

    Args:
        y_range: bottom and top; by default what the data in view need.
        log: a logarithmic y axis; values that are not positive are gaps.
        times: the x axis is seconds, labelled as durations.
        cursor: an x at which a vertical line stands.
        bars: draws the plot itself, (height, width) -> Cells, instead of `layers`.
        labels: words the ticks of the y axis.
    """
    cells = Cells(height, width)
    bottom, top = y_range or data_range(layers, x_range, log, outliers)
    if log and bottom <= 0:
        bottom, top = data_range(layers, x_range, log, outliers)
    with_x_axis = height >= 5
    plot_height = max(height - 2 * with_x_axis, 1)
    ticks: list[float] = []
    for most in range(max(min(plot_height // 2, 6), 1), plot_height + 1):
        ticks = log_ticks(bottom, top, most) if log else linear_ticks(bottom, top, most)
        if len(ticks) > 1:
            break
    if plot_height < 5:  # the middle one would stand nearer to one of them
        ticks = ticks[:: max(len(ticks) - 1, 1)]
    words = labels(ticks) if labels else list(map(number, ticks)) if log else tick_labels(ticks)
    gutter = max(map(len, words), default=0) + 1
    if width < gutter + 8:
        gutter, words = 0, [""] * len(ticks)
    plot_width = max(width - gutter, 1)

    to_scale = math.log10 if log else float
    low, high = to_scale(bottom), to_scale(top)

    def row_of(value: float) -> int:
        share = (to_scale(value) - low) / (high - low) if high > low else 0.5
        return plot_height - 1 - int(min(max(share * plot_height, 0), plot_height - 1e-9))

    left, right = x_range
    if guides:
        for tick in ticks:
            cells.put(row_of(tick), gutter, glyphs.guide * plot_width, GUIDE)
    chart = Chart(cells, gutter, 0, plot_height, plot_width, (left, right))
    if bars:
        drawn = bars(plot_height, plot_width)
    else:
        if log:
            layers = [layer._replace(y=_log10(layer.y)) for layer in layers]
        drawn = draw_lines(layers, (left, right, low, high), plot_height, plot_width, glyphs)
    inked = (drawn.codes != glyphs.table[0]) & (drawn.codes != ord(" "))
    area = (slice(0, plot_height), slice(gutter, gutter + plot_width))
    for target, source in (
        (cells.codes, drawn.codes),
        (cells.colors, drawn.colors),
        (cells.backgrounds, drawn.backgrounds),
    ):
        target[area][inked] = source[inked]
    if cursor is not None and left <= cursor <= right:
        column = chart.column_of(cursor)
        if bars and glyphs.bars:  # a full cell of a bar is a character, and would be a hole under the line
            full = cells.codes[:plot_height, column] == ord(glyphs.bars[-1])
            cells.backgrounds[:plot_height, column][full] = cells.colors[:plot_height, column][full]
        for row in range(plot_height):
            cells.put(row, column, glyphs.cursor, CURSOR)

    if gutter:
        for row in range(plot_height):
            cells.put(row, gutter - 1, glyphs.vertical, AXIS)
        for tick, label in zip(ticks, words, strict=True):
            cells.put(row_of(tick), 0, label.rjust(gutter - 1) + glyphs.tick_y, AXIS)
    if with_x_axis:
        _put_x_axis(chart, times, glyphs)
    return chart


def _log10(values: np.ndarray) -> np.ndarray:
    result = np.full(len(values), np.nan)
    positive = values > 0
    result[positive] = np.log10(values[positive])
    return result


def _put_x_axis(chart: Chart, times: bool, glyphs: Glyphs) -> None:
    cells, row = chart.cells, chart.height
    corner = chart.left - 1
    cells.put(row, max(corner, 0), (glyphs.corner if corner >= 0 else "") + glyphs.horizontal * chart.width, AXIS)
    for cell, _, label in x_ticks(*chart.x_range, chart.width, times):
        cells.put(row, chart.left + cell, glyphs.tick_x, AXIS)
        cells.put(row + 1, min(max(chart.left + cell - len(label) // 2, 0), cells.width - len(label)), label, AXIS)


def main() -> None:
    x = np.arange(2000.0)
    noise = np.random.default_rng(0).normal(size=2000)
    y = np.tanh(x / 600) + 0.3 * noise
    layers = [Layer(x, y, FIRST_COLOR), Layer(x, smooth(y, 0.98)[0], FIRST_COLOR + 1)]
    for glyphs in (BRAILLE, BLOCKS, ASCII):
        print("\n".join(draw_chart(layers[1:], 12, 78, x_range=(0, 2000), glyphs=glyphs).cells.lines()))


if __name__ == "__main__":
    main()
