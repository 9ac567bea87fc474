"""Widgets that follow one run while it goes on: its log, and its progress with graphs and log together.

Files are read in threads, a batch at a time; the widgets keep no file open.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Log, Static

from rlvr import records
from rlvr.cycles import Run
from rlvr.errors import RlvrError
from rlvr.listing import Row, duration_text
from rlvr.records import Evaluation, Round, TextTail
from rlvr.tui.chart import ChartGrid
from rlvr.tui.completions import CompletionScreen, CompletionsPane, CompletionsTable
from rlvr.tui.dialogs import Ask
from rlvr.tui.figure import Curve
from rlvr.tui.page import Page
from rlvr.tui.rows import Rows
from rlvr.tui.series import Metrics, RunReader, open_run
from rlvr.tui.words import (
    KINDS,
    bar,
    color_of,
    interval_text,
    progress_text,
    reward_text,
    round_text,
    share_text,
    when_text,
)

LOOK_S = 0.3
LOG_BYTES = 512 * 1024
"""So much of the end of a log is read; `rlvrctl.py log` shows all of it."""

MAX_LINES = 20_000
MAX_LINE = 4_000
"""Characters of a line that are shown."""


class LogView(Log):
    """What a run printed; it stays at the end unless one scrolls up."""

    def __init__(self, id: str | None = None):
        super().__init__(id=id, max_lines=MAX_LINES, auto_scroll=True)
        self.file: Path | None = None

    def follow(self, file: Path | None) -> None:
        """Show this log from now on."""
        if file == self.file:
            return
        self.file = file
        self.clear()
        self.workers.cancel_group(self, "log")
        if file:
            self.tail(TextTail(file, last_bytes=LOG_BYTES))

    @work(group="log", exclusive=True)
    async def tail(self, tail: TextTail) -> None:
        while True:
            lines = await asyncio.to_thread(tail.read)
            if tail.restarted:
                self.clear()
            if lines:
                self.write_lines([line if len(line) <= MAX_LINE else line[:MAX_LINE] + " ..." for line in lines])
            await asyncio.sleep(0 if tail.remaining else LOOK_S)


class Progress(Static):
    """Where a run stands: a bar and its numbers, in two lines."""

    row: Row | None = None

    def take_row(self, row: Row | None) -> None:
        if row != self.row:
            self.row = row
            self.refresh(layout=True)

    def render(self) -> Text:
        row = self.row
        if row is None:
            return Text("no run is selected", style="italic")
        share = row.step / row.max_steps if row.max_steps else 0.0
        first = Text(f"{row.run} {row.label}".strip(), style="bold")
        first.append(f"  {KINDS.get(row.kind, row.kind)}, {row.state}  ", style="not bold")
        if row.state == "running":
            first.append(f"{duration_text(row.elapsed_s)} so far", style="not bold")
            if row.remaining_s is not None:
                first.append(f", {duration_text(row.remaining_s)} left", style="not bold")
        elif row.finished:
            first.append(f"{when_text(row.finished)} after {duration_text(row.elapsed_s)}", style="not bold")
        numbers = [progress_text(row).strip()]
        numbers += [f"reward {reward_text(row.reward)}"] if row.reward is not None else []
        numbers += [f"solved {share_text(row.solved)}"] if row.solved is not None else []
        lines = [
            first,
            bar(
                share, max(self.size.width, 10), color_of(self.app, "primary"), color_of(self.app, "surface-lighten-2")
            ),
        ]
        lines.append(Text("   ".join(filter(None, numbers))))
        if row.message:
            look = (
                color_of(self.app, "text-error")
                if row.state in ("failed", "lost")
                else color_of(self.app, "text-muted")
            )
            lines.append(Text(row.message, style=look))
        return Text("\n").join(lines)


class RunCharts(ChartGrid):
    """The graphs of one run, or of several laid over each other, drawn anew as numbers come."""

    def __init__(self, pattern: str = "", id: str | None = None):
        super().__init__(pattern=pattern, id=id)
        self.runs: tuple[Run, ...] = ()
        self.readers: list[RunReader] = []

    def follow(self, runs: Sequence[Run]) -> None:
        """Show these runs from now on."""
        if tuple(runs) != self.runs:
            self.runs = tuple(runs)
            self.readers = [open_run(run) for run in runs]
            self.workers.cancel_group(self, "metrics")
            self.show([])
            if runs:
                self.keep_reading()

    @work(group="metrics", exclusive=True)
    async def keep_reading(self) -> None:
        metrics: list[Metrics] = []
        while True:
            changed = [await asyncio.to_thread(reader.poll) for reader in self.readers]
            now = [reader.metrics for reader in self.readers]
            if [id(each) for each in now] != [id(each) for each in metrics]:  # new, or a file was begun anew
                metrics = now
                self.show(
                    [
                        Curve(reader.run.name if reader.run else reader.name, reader.metrics, hue)
                        for hue, reader in enumerate(self.readers)
                    ]
                )
            elif any(changed):
                self.data_changed()
            await asyncio.sleep(0 if any(reader.remaining for reader in self.readers) else LOOK_S)

    def action_back(self) -> None:
        """Undo one thing here, or leave the screen."""
        before = (self.full, self.view, self.pattern)
        super().action_back()
        if before == (self.full, self.view, self.pattern):
            page = self.screen
            if isinstance(page, Page):
                page.action_back()

    @on(ChartGrid.FilterWanted)
    @work
    async def ask_for_filter(self) -> None:
        words = await self.app.push_screen_wait(
            Ask(
                "Filter graphs",
                "Words in their names; * and ? stand for any characters. Empty shows all.",
                self.pattern,
            )
        )
        if words is not None:
            self.pattern = words

    @on(ChartGrid.ExportWanted)
    @work
    async def export(self, event: ChartGrid.ExportWanted) -> None:
        """Write the chart beside the run, as picture or numbers."""
        from rlvr.tui.choose import FormatScreen
        from rlvr.tui.export import export

        form = await self.app.push_screen_wait(FormatScreen(f"Export {event.spec.name}"))
        if form:
            try:
                file = await asyncio.to_thread(
                    export, self.curves, event.spec, self.view, self.readers[0].folder, form
                )
            except RlvrError as error:
                self.notify(str(error), severity="error", markup=False)
            else:
                self.notify(f"written: {file}", markup=False)


class RunCompletions(CompletionsPane):
    """The completions of a run as they come; enter opens one."""

    rows: Rows | None = None

    def follow(self, file: Path) -> None:
        """Show the completions in this file from now on."""
        self.file = file
        self.rows = Rows(file)
        self.table.replace_all([], ())
        self.keep_reading(self.rows)

    @work(group="rows", exclusive=True)
    async def keep_reading(self, rows: Rows) -> None:
        while True:
            new, replaced = await asyncio.to_thread(rows.poll)
            if replaced:
                self.table.replace_all(new, rows.part_names)
            elif new:
                self.table.add(new, rows.part_names)
            self.note = f"{rows.bad} lines could not be read" if rows.bad else ""
            await asyncio.sleep(0 if rows.remaining else LOOK_S)

    @on(CompletionsTable.Opened)
    @work
    async def open_one(self, event: CompletionsTable.Opened) -> None:
        table, rows = self.table, self.rows
        if rows is None:
            return
        screen = CompletionScreen(rows.path, event.row, rows.mates(event.row), list(table.shown))
        last = await self.app.push_screen_wait(screen)
        if last is not None and last in table.shown:
            table.cursor = table.shown.index(last)


class RunView(Vertical):
    """Progress, graphs and log of one run; of an evaluation or an auto run what came of it instead of graphs."""

    run: Run | None = None

    def compose(self) -> ComposeResult:
        yield Progress(id="progress")
        yield RunCharts("reward solved outcomes groups length kl")
        with VerticalScroll(id="summary"):
            yield Static("", markup=False)
        yield LogView(id="log")

    def follow(self, run: Run | None) -> None:
        """Show this run from now on."""
        if run == self.run:
            return
        self.run = run
        self.border_title = run.name if run else ""
        has_graphs = run is None or run.kind == "train"
        charts = self.query_one(RunCharts)
        charts.display, self.query_one("#summary").display = has_graphs, not has_graphs
        charts.follow([run] if run and has_graphs else [])
        self.query_one(LogView).follow(run.files.log if run else None)
        self.query_one("#summary Static", Static).update("")

    def take_row(self, row: Row | None) -> None:
        progress = self.query_one(Progress)
        if row != progress.row:
            progress.take_row(row)
            if self.run and self.run.kind != "train":
                self.summarize(self.run)

    @work(group="summary", exclusive=True)
    async def summarize(self, run: Run) -> None:
        self.query_one("#summary Static", Static).update(await asyncio.to_thread(summary, run))


def summary(run: Run) -> str:
    """What came of an evaluation, or of the rounds of an auto run."""
    try:
        if run.kind == "auto":
            rounds = list(records.read_lines(run.files.rounds, Round)) if run.files.rounds.exists() else []
            return "\n".join(map(round_text, rounds)) or "no round has ended yet"
        if not run.files.evaluation.exists():
            return "no result yet: it is written when all completions are graded"
        result = records.read(run.files.evaluation, Evaluation)
    except RlvrError as error:
        return str(error)
    lines = [result.title, ""]
    lines += [f"{each.name:>8}  solved {interval_text(each.solved)}" for each in result.participants]
    return "\n".join([*lines, "", *result.conclusions])
