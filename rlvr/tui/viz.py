"""The live viewer: charts above, completions below, a worker that reads what the run writes. Started by rlvrviz.py."""

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from textual import on, work
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from rlvr.cycles import Run
from rlvr.ticks import duration
from rlvr.tui.chart import ChartGrid
from rlvr.tui.completion import CompletionScreen
from rlvr.tui.completions import CompletionsPane, CompletionsTable
from rlvr.tui.ending import end_on_signals
from rlvr.tui.figure import HUES_DARK, HUES_LIGHT, KIND_LETTERS, View, letter_of, x_in_words
from rlvr.tui.frame import STATE_STYLES, curves_of, nothing_to_draw
from rlvr.tui.head import standing
from rlvr.tui.keybar import KeyBar
from rlvr.tui.keys import KEYS, TITLES, bindings
from rlvr.tui.preferences import choose_theme, own_keys, read_preferences, remember
from rlvr.tui.rows import Row, Rows
from rlvr.tui.series import ChartSpec, RunReader, open_run

if TYPE_CHECKING:
    from textual.command import Provider

POLL_S = 0.2
"""Between two looks at files that do not change; one look costs microseconds."""

STATUS_S = 1.0

SLICE_BYTES = 2 * 2**20
"""Read at once: the first charts of a long run appear after one slice."""

POST_S = 0.15
"""Between two messages while a long file is being read."""

LETTERS = ", ".join(f"{letter} {name.replace('_', ' ')}" for name, letter in KIND_LETTERS.items())

ABOUT = (
    "The dim line is each step, the bright one its moving average. Titles show the last value, or the one under the "
    "crosshair, and the smallest and largest in view. Of several runs the averages are shown, one colour a run. Where "
    f"it is narrow the words of bars are letters: {LETTERS}."
)


class NewData(Message):
    """The worker has read something: numbers are in the readers already, rows come along."""

    def __init__(self, rows: list[Row], replaced: bool, more: bool, number: int):
        super().__init__()
        self.rows = rows
        self.replaced = replaced
        self.more = more
        """Is there more in the files that was not read yet?"""
        self.number = number
        """Which choice of runs this belongs to."""


def run_commands() -> "type[Provider]":
    from rlvr.tui.commands import RunCommands

    return RunCommands


class VizScreen(Screen[None]):
    """The charts and the completions; the tab key is bound here, as Textual's own screen has another use for it."""

    BINDINGS = [  # noqa: RUF012
        Binding("tab,shift+tab", "app.pane('completions')", "Completions", id="pane"),
        Binding("tab,shift+tab", "app.pane('charts')", "Charts", id="pane"),
    ]


class VizApp(App[None]):
    """See rlvrviz.py.

    Args:
        charts: words that choose charts.
        replay: a speed: then the run is played again instead of followed.
        smoothing_chosen: the smoothing of `view` was asked for, and is not to give way to the one last used.
    """

    TITLE = "rlvrviz"
    CSS_PATH = ["windows.tcss", "rlvr.tcss"]  # noqa: RUF012
    BINDINGS = bindings("everywhere")
    COMMANDS = App.COMMANDS | {run_commands}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (30, "-high")]  # noqa: RUF012

    def __init__(
        self,
        readers: Sequence[RunReader],
        view: View | None = None,
        *,
        charts: str = "",
        theme: str | None = None,
        replay: float | None = None,
        smoothing_chosen: bool = False,
    ):
        super().__init__()
        self.readers = list(readers)
        self.first_view = view or View()
        self.first_pattern = charts
        self.preferences = read_preferences()
        remembered = self.preferences.get("viz_smoothing")
        if not smoothing_chosen and isinstance(remembered, int | float) and 0 <= remembered < 1:
            self.first_view = replace(self.first_view, smoothing=float(remembered))
        columns = self.preferences.get("viz_columns")
        self.first_columns = columns if isinstance(columns, int) and 0 <= columns <= 6 else 0
        self._kept = self.first_view.smoothing, self.first_columns
        self.wanted_theme = theme
        self.speed = replay
        self.paused = False
        self.replayed: float | None = None
        """Seconds into the run that a replay has reached; None without one."""
        self.rows = Rows(self.readers[0].completions_file)
        self.listed = self.rows, 0
        """What the table lists, and the how manieth choice that is; the worker looks it up here."""
        self._held: list[Row] = []
        """Rows that came while the picture was held still."""
        self._held_replaced = False
        """Whether they are of a file that replaced the one shown."""
        self._wake = threading.Event()
        self.trouble = ""
        """What keeps the worker from reading, in words."""

    def get_default_screen(self) -> Screen:
        return VizScreen(id="_default")

    def compose(self) -> ComposeResult:
        view = replace(self.first_view, letters=self.first_view.letters or self.no_color)
        self.head = Static("", id="head", markup=False)
        self.grid = ChartGrid(view, self.first_pattern, id="charts")
        self.pane = CompletionsPane(id="completions")
        yield from (self.head, self.grid, self.pane)
        yield Input(placeholder="charts: words of their names, * and ?", id="filter", compact=True)
        yield KeyBar()

    def on_mount(self) -> None:
        end_on_signals(self)
        if not choose_theme(self, self.wanted_theme, self.preferences):
            return
        self.set_keymap(own_keys(self.preferences, {key.id for key in KEYS}))
        self.grid.columns = self.first_columns
        self.set_interval(STATUS_S, self.say_head)
        self.open_readers(self.readers)
        self.grid.focus()

    # ---- reading

    def open_readers(self, readers: Sequence[RunReader]) -> None:
        """Follow these runs from now on; the first one's completions are listed."""
        self.workers.cancel_group(self, "reading")
        self.readers = list(readers)
        self.paused = False
        for reader in self.readers:
            reader.metrics.limit = None
        self._list_first()
        self.grid.first = ""
        self.grid.reading, self.grid.reason = True, nothing_to_draw(self.readers[0])
        self.grid.show(curves_of(self.readers))
        self.sub_title = ", ".join(reader.name for reader in self.readers)
        if self.speed:
            self.replay(self.readers, *self.listed, self.speed)
        else:
            self.follow(self.readers)
        self.say_head()

    def _list_first(self) -> None:
        """List the completions of the first run from now on."""
        self.rows = Rows(self.readers[0].completions_file)
        self.listed = self.rows, self.listed[1] + 1
        self._held, self._held_replaced = [], False
        self.pane.file = self.rows.path
        self.pane.note = ""
        self.pane.table.replace_all([], ())

    @on(ChartGrid.Pinned)
    def put_first(self, event: ChartGrid.Pinned) -> None:
        """Have the run that is first in the charts first here too; what was read of the numbers stays."""
        if self.speed is None:
            index = next(index for index, reader in enumerate(self.readers) if reader.name == event.name)
            self.readers = [*self.readers[index:], *self.readers[:index]]
            self._list_first()
            self._wake.set()
        self.say_head()

    @work(thread=True, exclusive=True, group="reading")
    def follow(self, readers: Sequence[RunReader]) -> None:
        """Read what is new, again and again, and say so in batches; nothing is drawn here."""
        worker = get_current_worker()
        rows, number = self.listed
        status_due = post_due = 0.0
        changed, replaced = True, False  # the first look is news in any case: that there is nothing
        new: list[Row] = []
        while not worker.is_cancelled:
            if self.listed[1] != number:
                rows, number = self.listed
                changed, replaced, new = True, False, []
                if worker.is_cancelled:  # other runs are followed, by another worker
                    return
            if time.monotonic() >= status_due:
                status_due = time.monotonic() + STATUS_S
                for reader in readers:
                    reader.poll_status()
            try:
                for reader in readers:
                    changed |= reader.poll(SLICE_BYTES)
                found, again = rows.poll(SLICE_BYTES)
                self.trouble = ""
            except OSError as error:  # a file system that is away for a moment is no reason to give up
                self.trouble = f"{error.filename or readers[0].name}: {error.strerror or error}"
                self._wake.wait(STATUS_S)
                continue
            replaced |= again
            new = found if again else [*new, *found]
            more = bool(rows.remaining) or any(reader.remaining for reader in readers)
            if (changed or new or replaced) and (not more or time.monotonic() >= post_due):
                self.post_message(NewData(new, replaced, more, number))
                changed, replaced, new = False, False, []
                post_due = time.monotonic() + POST_S
            if not more:
                self._wake.wait(POLL_S)
                self._wake.clear()

    @work(thread=True, exclusive=True, group="reading")
    def replay(self, readers: Sequence[RunReader], rows: Rows, number: int, speed: float) -> None:
        """Show a run as it went, `speed` times as fast."""
        worker = get_current_worker()
        for reader in readers:
            reader.metrics.limit = 0
            reader.read_all()
        rows.poll()
        while rows.remaining:
            rows.poll()
        clocks = [_clock(reader) for reader in readers]
        stamps = [row.time for row in rows.rows]
        origin = _origin(readers[0], clocks[0], stamps)
        ends = [float(clock[-1]) for clock in clocks if len(clock)] + [stamp - origin for stamp in stamps[-1:]]
        length = max(ends, default=0.0)
        played, done, before = 0.0, 0, time.monotonic()
        while not worker.is_cancelled and played < length:
            self._wake.wait(POLL_S / 2)
            now = time.monotonic()
            played, before = played + (0.0 if self.paused else (now - before) * speed), now
            for reader, clock in zip(readers, clocks, strict=True):
                reader.metrics.limit = int(np.searchsorted(clock, played, side="right"))
            upto = done
            while upto < len(stamps) and stamps[upto] - origin <= played:
                upto += 1
            self.replayed = played
            self.post_message(NewData(rows.rows[done:upto], False, False, number))
            done = upto
        self.post_message(NewData(rows.rows[done:], False, False, number))

    @on(NewData)
    def take(self, event: NewData) -> None:
        """Draw what came, unless the picture is held still."""
        if event.number != self.listed[1] or self._ending():
            return
        self.grid.reading = event.more
        if self.paused and self.speed is None:
            if not self.pane.table.all:  # of a run that was put first meanwhile
                self._list(event.rows, event.replaced)
                return
            self._held = event.rows if event.replaced else self._held + event.rows
            self._held_replaced |= event.replaced
            return
        self._list(event.rows, event.replaced)
        self._note()
        self.grid.show(curves_of(self.readers))
        self.say_head()

    def _list(self, rows: list[Row], replaced: bool) -> None:
        """Show more completions, or those of a file that replaced the one shown."""
        (self.pane.table.replace_all if replaced else self.pane.table.add)(rows, self.rows.part_names)

    def _ending(self) -> bool:
        """Are the widgets being taken away? News may still arrive then."""
        return not (self.head.is_attached and self.grid.query(".nothing") and self.pane.query(CompletionsTable))

    def _note(self) -> None:
        parts = []
        if self.rows.skipped:
            parts.append(f"the first {self.rows.skipped / 2**20:,.0f} MiB of the trace are not listed")
        if self.rows.bad:
            parts.append(f"{self.rows.bad} lines could not be read")
        self.pane.note = ", ".join(parts)

    def action_pause(self) -> None:
        self.paused = not self.paused
        if self.speed is None:
            for reader in self.readers:
                reader.metrics.limit = len(reader.metrics) if self.paused else None
            if not self.paused:
                self._list(self._held, self._held_replaced)
                self._held, self._held_replaced = [], False
                self._note()
                self.grid.show(curves_of(self.readers))
        self.say_head()

    @on(ChartGrid.ViewChanged)
    def keep_choices(self) -> None:
        """Remember smoothing and grid for the next time."""
        choices = self.grid.view.smoothing, self.grid.columns
        for name, now, before in zip(("viz_smoothing", "viz_columns"), choices, self._kept, strict=True):
            if now != before:
                remember(name, now)
        self._kept = choices

    # ---- the line on top

    @on(ChartGrid.ViewChanged)
    def say_head(self) -> None:
        if self._ending():
            return
        first = self.readers[0].run
        without_charts = first is not None and first.kind == "eval" and not self.grid.charts
        self.screen_stack[0].set_class(without_charts, "only-completions")
        if without_charts and self.grid.has_focus:
            self.pane.table.focus()
        self.screen_stack[0].set_class(self.grid.full, "full")
        lines = [self._head_of(reader, index) for index, reader in enumerate(self.readers[:3])]
        if len(self.readers) > 3:
            lines.append(Content(f"and {len(self.readers) - 3} more"))
        self.head.update(Content("\n").join(lines))

    def _head_of(self, reader: RunReader, index: int) -> Content:
        """Which run, how it stands, how far it is; the first line also says how one looks at it."""
        stand = standing(reader)
        parts: list[tuple[str, str]] = []
        if len(self.readers) > 1 and index < len(self.grid.curves):
            mark = letter_of(index) if self.grid.view.letters else "━" if index else "◆"
            parts.append((f"{mark} ", self._hue(self.grid.curves[index].hue)))
        parts.append((stand.name, "bold"))
        parts.append((f"  {stand.state}" if stand.state else "", STATE_STYLES.get(stand.state, "$foreground 60%")))
        parts.append((f" (waiting for {stand.waiting_for})" if stand.waiting_for else "", "$foreground 60%"))
        if stand.total:
            filled = min(round(10 * stand.step / stand.total), 10)
            parts += [("  " + "━" * filled, "$text-success"), ("━" * (10 - filled), "$text-disabled")]
            parts.append((f" {stand.step:,}/{stand.total:,}", ""))
        elif stand.step:
            parts.append((f"  {stand.unit} {stand.step:,}", ""))
        parts.append((f"  {stand.time_left}" if stand.time_left else "", "$foreground 60%"))
        parts.append((f"  {stand.silence}" if stand.silence else "", "$text-warning"))
        parts.append((f"  reading {reader.progress:.0%}" if reader.remaining else "", "$text-warning"))
        parts.append((f"  {stand.trouble}" if stand.trouble else "", "$text-error"))
        if index == 0:
            parts += self._looking()
            parts.append((f"  {self.trouble}" if self.trouble else "", "$text-error"))
        if stand.state not in ("running", "done") and stand.message:
            parts.append((f"  {stand.message[:200]}", "$text-error"))
        return Content.assemble(*parts)

    def _hue(self, hue: int) -> str:
        return (HUES_DARK if self.current_theme.dark else HUES_LIGHT)[hue]

    def _looking(self) -> list[tuple[str, str]]:
        view, grid = self.grid.view, self.grid
        parts = [(f"  smooth {view.smoothing:g}", "$foreground 60%")]
        if view.times:
            parts.append((" · time", "$foreground 60%"))
        if not view.outliers:
            parts.append((" · 1–99 %", "$foreground 60%"))
        if grid.pattern:
            found = f": {len(grid.charts)} of {grid.count}" if grid.count else ""
            parts.append((f" · only {grid.pattern!r}{found}", "$text-accent"))
        if view.x_range:
            left, right = (x_in_words(x, view) for x in view.x_range)
            parts.append((f" · zoom {left} to {right.removeprefix('step ')}", "$text-accent"))
        if view.cursor is not None:
            parts.append((f" · ┃ {x_in_words(view.cursor, view)}", "$text-accent"))
        if self.replayed is not None:
            parts.append((f" · replay {self.speed:g}x at {duration(self.replayed)}", "$text-accent"))
        if self.paused:
            parts.append(("  PAUSED ", "$text-warning reverse bold"))
        return parts

    # ---- panes

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The key that leads to the other pane says which one that is."""
        if action != "pane":
            return True
        if isinstance(self.focused, CompletionsTable):
            return parameters == ("charts",) and not self.screen.has_class("only-completions")
        return parameters == ("completions",) or not isinstance(self.focused, ChartGrid)

    def action_pane(self, name: str) -> None:
        """Go to a pane; where there is room for one only, it is the one shown."""
        self.screen.set_class(name == "completions", "completions")
        self.query_one("#filter", Input).remove_class("open")
        (self.pane.table if name == "completions" else self.grid).focus()

    @on(ChartGrid.FilterWanted)
    def open_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.add_class("open")
        field.value = self.grid.pattern
        field.focus()

    @on(Input.Changed, "#filter")
    def filter_charts(self, event: Input.Changed) -> None:
        if event.input.has_class("open"):
            self.grid.pattern = event.value
            self.say_head()

    @on(Input.Submitted, "#filter")
    def close_filter(self) -> None:
        self.query_one("#filter", Input).remove_class("open")
        self.grid.focus()

    def key_escape(self) -> None:
        if self.query_one("#filter", Input).has_focus:
            self.grid.pattern = ""
            self.close_filter()
            self.say_head()

    # ---- runs, steps, completions

    @work
    async def action_runs(self) -> None:
        from rlvr.tui.choose import RunsScreen

        chosen = await self.push_screen_wait(RunsScreen([reader.name for reader in self.readers]))
        if chosen:
            self.open_runs(chosen)

    def open_runs(self, runs: Sequence[Run]) -> None:
        self.open_readers([open_run(run) for run in runs])

    @on(ChartGrid.StepChosen)
    def show_step(self, event: ChartGrid.StepChosen) -> None:
        self.pane.table.find(f"step:{event.step}")
        self.action_pane("completions")

    @on(CompletionsTable.Opened)
    @work
    async def open_completion(self, event: CompletionsTable.Opened) -> None:
        table, rows = self.pane.table, self.rows
        last = await self.push_screen_wait(CompletionScreen(rows.path, event.row, rows.mates, table.shown))
        if last is not None and last in table.shown:
            table.cursor = table.shown.index(last)

    @on(ChartGrid.ExportWanted)
    def export_one(self, event: ChartGrid.ExportWanted) -> None:
        self.export(event.spec)

    @work(group="export")
    async def export(self, spec: ChartSpec, form: str = "") -> None:
        """Write a chart beside the run; without a format it is asked for."""
        from rlvr.tui.choose import export_chart

        await export_chart(self.grid, spec, self.readers[0].folder, form)

    def action_help_quit(self) -> None:
        """Ctrl-C, where nothing is selected that it would copy: nothing is lost by leaving."""
        self.exit()

    def action_help(self) -> None:
        from rlvr.tui.help import HelpScreen, key_sections

        first = "completions" if self.pane.table.has_focus else "charts"
        places = sorted(TITLES, key=lambda place: place != first)
        own = own_keys(self.preferences, {key.id for key in KEYS})
        self.push_screen(HelpScreen(key_sections(*places, own=own), ABOUT))

    def get_system_commands(self, screen: Screen) -> Iterable[SystemCommand]:
        """The command palette: what Textual has, every chart; the runs come from commands.py."""
        yield from super().get_system_commands(screen)
        yield SystemCommand("Runs", "choose runs, or lay several over each other", self.action_runs)
        yield SystemCommand("Pause", "hold the picture still, or go on", self.action_pause)
        for form in ("png", "svg", "csv"):
            if (spec := self.grid.spec) is not None:
                yield SystemCommand(
                    f"Export {form.upper()}",
                    f"the chart {spec.name}",
                    lambda spec=spec, form=form: self.export(spec, form),
                )
        for spec in self.grid.charts:
            yield SystemCommand(f"Chart {spec.name}", spec.about, lambda name=spec.name: self.grid.select(name))


def _origin(reader: RunReader, clock: np.ndarray, stamps: Sequence[float]) -> float:
    """When a run began, in seconds since 1970; of one without steps, when its first completion was written."""
    reader.metrics.limit = None
    times = reader.metrics.column("time")
    reader.metrics.limit = 0
    if len(times) and np.isfinite(times[0]):
        return float(times[0] - clock[0])
    return stamps[0] if stamps else 0.0


def _clock(reader: RunReader) -> np.ndarray:
    """Seconds from the beginning of a run to the end of each step; a step a second where no time was written."""
    metrics = reader.metrics
    metrics.limit = None
    x = metrics.x(times=True)
    known = len(metrics) and np.isfinite(metrics.column("time")).all()
    clock = x if known else np.arange(1.0, len(metrics) + 1)
    metrics.limit = 0
    return clock
