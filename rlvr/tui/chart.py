"""Charts of one or several runs as widgets: `ChartGrid` holds them, all keys of the table for "charts" work in it.

A chart is drawn in `render_line`, from the data as they are and the size it has; nothing is drawn when data arrive.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from textual import events
from textual.app import ComposeResult
from textual.color import Color
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from rlvr.tui.figure import (
    Curve,
    Drawn,
    View,
    draw,
    full_range,
    in_words,
    summary,
    value_at,
    x_in_words,
)
from rlvr.tui.keys import bindings
from rlvr.tui.palette import Palette, plain_colors
from rlvr.tui.series import ChartSpec, charts_of, matching

SMOOTHINGS = (0.0, 0.6, 0.9, 0.99)
MIN_WIDTH, MIN_HEIGHT = 36, 7
"""Cells a chart wants, at least."""


class Chart(Widget):
    """One chart; its grid says what it shows and how."""

    DEFAULT_CSS = """
    Chart { height: 100%; width: 100%; background: $background; }
    """

    def __init__(self, grid: "ChartGrid", spec: ChartSpec):
        super().__init__()
        self.grid = grid
        self.spec = spec
        self.tooltip = Content(spec.about)
        self._key: tuple | None = None
        self._strips: list[Strip] = []
        self.drawn: Drawn | None = None

    def render_line(self, y: int) -> Strip:
        grid, size = self.grid, self.size
        focused = grid.selected == self.spec.name and grid.has_focus
        key = (grid.version, grid.view, size, focused, id(grid.palette))
        if key != self._key:
            self.drawn = draw(grid.curves, self.spec, grid.view, size.height, size.width, focused=focused)
            self._strips = grid.palette.strips(self.drawn.cells, self.drawn.title)
            self._key = key
        return self._strips[y] if y < len(self._strips) else Strip.blank(size.width)

    def _x_at(self, event: events.MouseEvent) -> float | None:
        """The x under the mouse, when it is over the plot."""
        if self.drawn is None or self.drawn.chart is None:
            return None
        chart = self.drawn.chart
        offset = event.get_content_offset(self)
        if offset is None or not chart.left <= offset.x < chart.left + chart.width:
            return None
        return chart.x_at(offset.x)

    def on_click(self, event: events.Click) -> None:
        self.grid.select(self.spec.name)
        if event.chain == 2:
            self.grid.action_full()
        elif (x := self._x_at(event)) is not None:
            self.grid.set_cursor(x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.grid.view.cursor is not None and event.button and (x := self._x_at(event)) is not None:
            self.grid.set_cursor(x)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 0.8)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 1.25)

    def _wheel(self, event: events.MouseEvent, factor: float) -> None:
        """Zoom at the mouse; with ctrl or shift, or beside a plot, the wheel scrolls as usual."""
        x = self._x_at(event)
        if x is not None and not event.ctrl and not event.shift:
            event.stop()
            event.prevent_default()
            self.grid.zoom(factor, x)


def row_heights(height: int, rows: int) -> list[int]:
    """Heights of the rows of a page that fill it; repeated, any so many rows in sequence fill one.

    >>> row_heights(23, 3)
    [8, 8, 7]
    """
    return [height // rows + (row < height % rows) for row in range(rows)]


class ChartGrid(VerticalScroll):
    """All charts of the given runs, side by side."""

    BINDINGS = bindings("charts")
    DEFAULT_CSS = """
    ChartGrid { layout: grid; grid-gutter: 0 2; background: $background; scrollbar-size-vertical: 1; }
    ChartGrid > .nothing { color: $text-muted; padding: 1 2; width: 100%; }
    """

    view: reactive[View] = reactive(View(), init=False)
    selected: reactive[str] = reactive("", init=False)
    full: reactive[bool] = reactive(False, init=False)
    pattern: reactive[str] = reactive("", init=False)
    columns: reactive[int] = reactive(0, init=False)
    """Charts side by side; 0 leaves it to the width."""

    first: str = ""
    """The name of the run that somebody pinned; "" leaves them as they are."""
    reading: reactive[bool] = reactive(False, init=False)
    """Is what there is of these runs not all read yet?"""
    reason: str = ""
    """Why there is no number, where it is known; "" for runs that are to write some."""

    class StepChosen(Message):
        """Somebody wants to see the completions of a step."""

        def __init__(self, step: int):
            super().__init__()
            self.step = step

    class FilterWanted(Message):
        """Somebody wants to type a filter."""

    class ExportWanted(Message):
        """Somebody wants this chart as a file."""

        def __init__(self, spec: ChartSpec):
            super().__init__()
            self.spec = spec

    class Pinned(Message):
        """This run is first now: its curve lies over the others, bars and crosshair are its."""

        def __init__(self, name: str):
            super().__init__()
            self.name = name

    class ViewChanged(Message):
        """Smoothing, zoom, axes, crosshair, grid or full screen are different now."""

    def __init__(self, view: View | None = None, pattern: str = "", id: str | None = None):
        super().__init__(id=id)
        self.set_reactive(ChartGrid.view, view or View())
        self.set_reactive(ChartGrid.pattern, pattern)
        self.curves: list[Curve] = []
        self.charts: list[ChartSpec] = []
        self.count = 0
        """Charts that there are, before the filter."""
        self.version = 0
        self._end = 0.0
        """The last x of all runs when they were last looked at."""
        self.palette = Palette(Color.parse("#121212"), Color.parse("#e0e0e0"), True)

    def compose(self) -> ComposeResult:
        yield Static("", classes="nothing", markup=False)

    def on_mount(self) -> None:
        self.new_palette()
        self.watch(self.app, "theme", self.new_palette, init=False)

    def new_palette(self) -> None:
        theme = self.app.current_theme
        background, foreground = plain_colors(self.app.theme_variables, theme.dark)
        self.palette = Palette(background, foreground, theme.dark)
        self.refresh_charts()

    # ---- data

    def show(self, curves: Sequence[Curve]) -> None:
        """Show these runs from now on; zoom and crosshair stay, when they are the same as before."""
        names = [curve.name for curve in curves]
        if sorted(names) != sorted(curve.name for curve in self.curves):
            self.view = replace(self.view, x_range=None, cursor=None)
            self._end = 0.0
        first = names.index(self.first) if self.first in names else 0
        self.curves = [*curves[first:], *curves[:first]]
        self.data_changed()

    def data_changed(self) -> None:
        """New numbers have arrived in the runs shown: draw them, and add a chart for a series that is new."""
        self.version += 1
        self._follow_end()
        every = charts_of(curve.metrics for curve in self.curves)
        wanted, self.count = matching(every, self.pattern), len(every)
        if wanted != self.charts:
            self.charts = wanted
            self._sync_charts()
        elif not wanted:
            self.query_one(".nothing", Static).update(self._nothing())
        self.refresh_charts()

    def _follow_end(self) -> None:
        """A zoom that reaches to the newest step moves on with it."""
        before, self._end = self._end, full_range(self.curves, self.view.times)[1]
        if self.view.x_range is not None and self._end > before and self.view.x_range[1] >= before:
            left, right = self.view.x_range
            by = self._end - right
            self.view = replace(self.view, x_range=(left + by, right + by))

    def _sync_charts(self) -> None:
        """Add and remove only what is different, so that the others stay where they are."""
        present = {chart.spec.name: chart for chart in self.query(Chart)}
        names = [spec.name for spec in self.charts]
        for name, chart in present.items():
            if name not in names:
                chart.remove()
        before: Widget = self.query_one(".nothing")
        for spec in self.charts:
            chart = present.get(spec.name)
            if chart is None:
                chart = Chart(self, spec)
                self.mount(chart, after=before)
            elif chart.spec != spec:
                chart.spec = spec
            before = chart
        if self.selected not in names:
            self.selected = names[0] if names else ""
        self.query_one(".nothing", Static).update(self._nothing())
        self.divide()

    def _nothing(self) -> str:
        if self.charts:
            return ""
        if self.count:
            return f"no chart matches {self.pattern!r}: esc shows all"
        if self.reading:
            return "reading ..."
        return self.reason or "no numbers yet: they appear with the first step"

    def watch_reading(self) -> None:
        self.query_one(".nothing", Static).update(self._nothing())

    def refresh_charts(self) -> None:
        for chart in self.query(Chart):
            chart.refresh()

    # ---- layout

    def divide(self, size: Size | None = None) -> None:
        """Divide the room: as many charts side by side as fit, and all on one page if that leaves them high enough."""
        size = size or self.size
        self.query_one(".nothing").display = not self.charts
        for chart in self.query(Chart):
            chart.display = not self.full or chart.spec.name == self.selected
        if not size.width or not size.height:
            return
        count = 1 if self.full or not self.charts else len(self.charts)
        columns = max(1, min(self.columns or min(size.width // MIN_WIDTH, 4), count))
        rows = -(-count // columns)
        page = max(1, size.height // MIN_HEIGHT)
        self.shape = columns, min(rows, page)
        self.styles.grid_size_columns = columns
        self.styles.grid_rows = "1fr" if rows <= page else " ".join(map(str, row_heights(size.height, page)))

    shape: tuple[int, int] = (1, 1)
    """Columns, and rows on a page."""

    def on_resize(self, event: events.Resize) -> None:
        self.divide(event.size)

    def watch_columns(self) -> None:
        self.divide()
        self.post_message(self.ViewChanged())

    def watch_full(self) -> None:
        self.divide()
        self.post_message(self.ViewChanged())
        self.reveal()

    def watch_pattern(self) -> None:
        self.data_changed()
        self.query_one(".nothing", Static).update(self._nothing())

    def watch_selected(self) -> None:
        if self.full:
            self.divide()
        self.refresh_charts()
        self.reveal()

    def watch_view(self) -> None:
        self.refresh_charts()
        self.post_message(self.ViewChanged())

    def watch_has_focus(self, focus: bool) -> None:
        super().watch_has_focus(focus)
        self.refresh_charts()

    def reveal(self) -> None:
        for chart in self.query(Chart):
            if chart.spec.name == self.selected:
                self.call_after_refresh(chart.scroll_visible, animate=False)

    # ---- what keys and mouse do

    def select(self, name: str) -> None:
        self.focus()
        self.selected = name

    @property
    def spec(self) -> ChartSpec | None:
        """The selected chart."""
        return next((spec for spec in self.charts if spec.name == self.selected), None)

    def _go(self, by: int) -> None:
        names = [spec.name for spec in self.charts]
        if names:
            index = names.index(self.selected) if self.selected in names else 0
            self.selected = names[min(max(index + by, 0), len(names) - 1)]

    def action_left(self) -> None:
        self._sideways(-1)

    def action_right(self) -> None:
        self._sideways(1)

    def _sideways(self, by: int) -> None:
        if self.view.cursor is None:
            self._go(by)
        else:
            self._move_cursor(by)

    def action_up(self) -> None:
        self._go(-1 if self.full else -self.shape[0])

    def action_down(self) -> None:
        self._go(1 if self.full else self.shape[0])

    def action_page_up(self) -> None:
        self._go(-self.shape[0] * self.shape[1])

    def action_page_down(self) -> None:
        self._go(self.shape[0] * self.shape[1])

    def action_full(self) -> None:
        self.full = not self.full

    def action_back(self) -> None:
        """Undo one thing: full screen, then crosshair, zoom, filter."""
        if self.full:
            self.full = False
        elif self.view.cursor is not None:
            self.view = replace(self.view, cursor=None)
        elif self.view.x_range is not None:
            self.view = replace(self.view, x_range=None)
        else:
            self.pattern = ""

    def action_smooth(self, by: int) -> None:
        nearest = min(range(len(SMOOTHINGS)), key=lambda index: abs(SMOOTHINGS[index] - self.view.smoothing))
        self.view = replace(self.view, smoothing=SMOOTHINGS[(nearest + by) % len(SMOOTHINGS)])

    def action_log(self) -> None:
        self.view = replace(self.view, log=self.view.log ^ {self.selected})

    def action_log_all(self) -> None:
        names = frozenset(spec.name for spec in self.charts)
        self.view = replace(self.view, log=frozenset() if names <= self.view.log else names)

    def action_times(self) -> None:
        """Steps or time; zoom and crosshair stand in the old unit and go."""
        self.view = replace(self.view, times=not self.view.times, x_range=None, cursor=None)
        self._end = full_range(self.curves, self.view.times)[1]

    def action_outliers(self) -> None:
        self.view = replace(self.view, outliers=not self.view.outliers)

    def action_guides(self) -> None:
        self.view = replace(self.view, guides=not self.view.guides)

    def action_grid(self) -> None:
        most = max(1, min(self.size.width // MIN_WIDTH, 6))
        self.columns = (self.columns + 1) % (most + 1)

    def action_pin(self) -> None:
        """Put the next run first."""
        if len(self.curves) < 2:
            self.notify("this puts the next of several runs on top: there is one")
            return
        self.first = self.curves[1].name
        self.show(self.curves)
        self.post_message(self.Pinned(self.first))

    def action_filter(self) -> None:
        self.post_message(self.FilterWanted())

    def action_export(self) -> None:
        if self.spec is not None:
            self.post_message(self.ExportWanted(self.spec))

    def action_copy(self) -> None:
        if text := self.value_text():
            self.app.copy_to_clipboard(text)
            self.notify(f"copied {text}", markup=False)

    def value_text(self) -> str:
        """The numbers that the title of the selected chart shows."""
        spec = self.spec
        if spec is None or not self.curves:
            return ""
        parts = []
        for curve in self.curves:
            metrics = curve.metrics.frozen()
            values, x = metrics.column(spec.columns[0]), metrics.x(self.view.times)
            cursor = self.view.cursor
            value = summary(values)[0] if cursor is None else value_at(x, values, cursor)
            where = "" if cursor is None else f" at {x_in_words(cursor, self.view)}"
            name = f"{curve.name} " if len(self.curves) > 1 else ""
            parts.append(f"{name}{spec.columns[0].removeprefix('outcomes/')} {in_words(value, spec)}{where}")
        return ", ".join(parts)

    # ---- crosshair and zoom

    def action_cross(self) -> None:
        if self.view.cursor is not None:
            self.view = replace(self.view, cursor=None)
        else:
            self.set_cursor(self.window[1])

    @property
    def window(self) -> tuple[float, float]:
        """The x in view."""
        return self.view.x_range or full_range(self.curves, self.view.times)

    def _points(self) -> np.ndarray:
        """Where the crosshair can stand: the steps of the first run."""
        return self.curves[0].metrics.x(self.view.times) if self.curves else np.empty(0)

    def set_cursor(self, x: float) -> None:
        """Put the crosshair on the step nearest to `x`."""
        points = self._points()
        if len(points):
            x = float(points[np.abs(points - x).argmin()])
        self.view = replace(self.view, cursor=x)

    def _move_cursor(self, by: int) -> None:
        """To the next step, or the next that has a column of its own."""
        left, right = self.window
        x = self._points()
        if not len(x) or self.view.cursor is None:
            return
        index = int(np.abs(x - self.view.cursor).argmin())
        in_view = int(((x >= left) & (x <= right)).sum())
        stride = max(1, in_view // max(self.size.width // self.shape[0], 1))
        self.set_cursor(float(x[min(max(index + by * stride, 0), len(x) - 1)]))

    def action_zoom(self, factor: float) -> None:
        left, right = self.window
        cursor = self.view.cursor
        self.zoom(factor, cursor if cursor is not None and left <= cursor <= right else right)

    def zoom(self, factor: float, around: float) -> None:
        """Show `factor` times as much; the point `around` stays where it is."""
        left, right = self.window
        first, last = full_range(self.curves, self.view.times)
        left, right = around - (around - left) * factor, around + (right - around) * factor
        if right - left < 4 and factor < 1:
            return
        left, right = max(left, first), min(right, last)
        whole = right - left >= (last - first) * 0.999
        self.view = replace(self.view, x_range=None if whole else (left, right))

    def action_zoom_reset(self) -> None:
        self.view = replace(self.view, x_range=None)

    def action_pan(self, share: float) -> None:
        if self.view.x_range is None:
            return
        left, right = self.view.x_range
        first, last = full_range(self.curves, self.view.times)
        by = min(max((right - left) * share, first - left), last - right)
        self.view = replace(self.view, x_range=(left + by, right + by))

    def action_step_rows(self) -> None:
        if self.view.cursor is None or not self.curves:
            self.notify("put the crosshair on a step first: x")
            return
        metrics = self.curves[0].metrics.frozen()
        step = value_at(metrics.x(self.view.times), metrics.column("step"), self.view.cursor)
        if step is not None:
            self.post_message(self.StepChosen(int(step)))
