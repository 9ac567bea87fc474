"""One frame of charts as text, for a log, a pipe or CI: `rlvrviz.py --once`. Textual is not imported."""

from collections.abc import Sequence

from rlvr.braille import ASCII, AXIS, CURSOR, FIRST_COLOR, GUIDE, TEXT, Cells
from rlvr.ticks import number
from rlvr.tui.figure import HEX, HUES_DARK, KIND_NAMES, KINDS, TITLE, Curve, View, draw, hues_of, letter_of, summary
from rlvr.tui.head import in_words, standing
from rlvr.tui.series import ChartSpec, RunReader

CHART_WIDTH = 38
"""Cells a chart wants, at least."""

CHART_HEIGHT = 9
MIN_CHART_HEIGHT = 6

STATE_STYLES = {
    "running": "$text-success",
    "pending": "$text-warning",
    "failed": "$text-error",
    "lost": "$text-error",
    "killed": "$text-warning",
}
"""How Textual shows the state of a run; it always stands there in words too."""

FADED = 0.42
"""How much of a colour is left in a raw curve."""


def curves_of(readers: Sequence[RunReader]) -> list[Curve]:
    hues = hues_of([reader.name for reader in readers])
    return [Curve(reader.name, reader.metrics, hue) for reader, hue in zip(readers, hues, strict=True)]


def columns_for(width: int, num_charts: int) -> int:
    return max(1, min(4, width // CHART_WIDTH, num_charts))


def draw_frame(
    readers: Sequence[RunReader], charts: Sequence[ChartSpec], view: View, width: int, height: int | None
) -> Cells:
    """All charts side by side under a headline for each run.

    Without a height the frame is as high as it needs to be; with one, the charts that do not fit are left out, and the
    last line says so.
    """
    heads = [in_words(standing(reader)) for reader in readers]
    if view.letters and len(readers) > 1:
        heads = [f"{letter_of(index)} {head}" for index, head in enumerate(heads)]
    columns = columns_for(width, len(charts))
    rows = -(-len(charts) // columns) if charts else 0
    left_out = 0
    if height is None:
        chart_height = CHART_HEIGHT
        height = len(heads) + max(rows * chart_height, 1)
    else:
        room = height - len(heads)
        if rows * MIN_CHART_HEIGHT > room:
            rows = max((room - 1) // MIN_CHART_HEIGHT, 0)
            left_out = len(charts) - rows * columns
        chart_height = min((room - (left_out > 0)) // rows, 30) if rows else 0
    cells = Cells(height, width)
    curves = curves_of(readers)
    for row, (head, curve) in enumerate(zip(heads, curves, strict=True)):
        cells.put(row, 0, head, TITLE if len(curves) == 1 else FIRST_COLOR + 2 * curve.hue)
    if not charts:
        cells.put(len(heads), 0, nothing_to_draw(readers[0]), AXIS)
    chart_width = (width - 2 * (columns - 1)) // columns
    for index, spec in enumerate(charts[: rows * columns]):
        drawn = draw(curves, spec, view, chart_height, chart_width)
        row, column = divmod(index, columns)
        cells.paste(len(heads) + row * chart_height, column * (chart_width + 2), drawn.cells)
    if left_out:
        cells.put(height - 1, 0, f"{left_out} more charts do not fit: a larger --size shows them", AXIS)
    if view.glyphs is ASCII:
        cells.codes[cells.codes > 126] = ord("?")
    return cells


def nothing_to_draw(reader: RunReader) -> str:
    """Why there is no chart of a run."""
    if reader.run is not None and reader.run.kind == "eval":
        return "an evaluation has no steps to draw; the live view lists its completions"
    if reader.run is not None and reader.run.kind == "auto":
        return "an auto run has no steps of its own: its cycles have them"
    if reader.is_log:
        return "no line of numbers in this log, such as TRL's {'loss': 0.1, ...}"
    return "no numbers yet: they appear with the first step"


def to_text(cells: Cells) -> str:
    return "\n".join(line.rstrip(" ") for line in cells.lines())


def _rgb(color: str, share: float = 1.0) -> str:
    """A colour for a terminal, faded to a share of itself."""
    return ";".join(str(round(share * int(color[at : at + 2], 16))) for at in (1, 3, 5))


def _sgr(color: int, background: int) -> str:
    parts = []
    if KINDS <= color < TITLE:
        parts.append(f"38;2;{_rgb(HEX[KIND_NAMES[color - KINDS]])}")
    elif color == TITLE:
        parts.append("1")
    elif color >= FIRST_COLOR:
        hue, faded = divmod(color - FIRST_COLOR, 2)
        parts.append(f"38;2;{_rgb(HUES_DARK[hue], FADED if faded else 1.0)}")
    elif color != TEXT:
        parts.append({AXIS: "38;5;245", GUIDE: "38;5;238", CURSOR: "38;5;252"}.get(color, "0"))
    if background:
        parts.append(f"48;2;{_rgb(HEX[KIND_NAMES[background - KINDS]])}")
    return ";".join(parts)


def to_ansi(cells: Cells) -> str:
    """The frame with the colours of a terminal."""
    lines = []
    for row in range(cells.height):
        parts = []
        for text, color, background in cells.runs(row):
            style = _sgr(color, background)
            parts.append(f"\x1b[{style}m{text}\x1b[0m" if style and text.strip() else text)
        lines.append("".join(parts).rstrip(" "))
    return "\n".join(lines)


def as_json(readers: Sequence[RunReader]) -> dict[str, dict]:
    """Last, smallest and largest value of every series of every run."""
    result = {}
    for reader in readers:
        metrics, status = reader.metrics, reader.status
        series = {}
        for name in metrics.names:
            last, low, high = summary(metrics.column(name))
            if last is not None and name != "time":
                series[name] = {"last": last, "min": low, "max": high}
        result[reader.name] = {
            "state": status.state if status else None,
            "steps": len(metrics),
            "max_steps": metrics.max_steps or None,
            "bad_lines": reader.bad,
            "series": series,
        }
    return result


def in_text(readers: Sequence[RunReader], charts: Sequence[ChartSpec]) -> str:
    """Every chart as one line a run: for a screen reader, to which braille cells are noise."""
    lines = []
    for reader in readers:
        lines.append(in_words(standing(reader)))
        for spec in charts:
            for column in spec.columns:
                last, low, high = summary(reader.metrics.column(column))
                if last is not None:
                    name = spec.name if not spec.stacked else f"{spec.name}: {column.removeprefix('outcomes/')}"
                    lines.append(f"  {name}: {number(last)}, min {number(low)}, max {number(high)}  ({spec.about})")
    return "\n".join(lines)
