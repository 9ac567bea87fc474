"""The graphs of runs and the completions of one, kept up to date while they go on: files are read in threads.

Importing it takes as long as everything else of the dashboard together, because of numpy: do it after the first frame.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from textual import on, work

from rlvr.cycles import Run
from rlvr.tui.chart import ChartGrid
from rlvr.tui.completion import CompletionScreen
from rlvr.tui.completions import CompletionsPane, CompletionsTable
from rlvr.tui.dialogs import Ask
from rlvr.tui.figure import Curve, hues_of
from rlvr.tui.follow import looks
from rlvr.tui.page import Page
from rlvr.tui.rows import Rows
from rlvr.tui.series import RunReader, open_run


class PageCharts(ChartGrid):
    """Charts on a screen of the dashboard: `/` asks for a filter, `e` exports, escape leaves when all is undone."""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """Where a chart is exported to."""

    def on_mount(self) -> None:
        if self.app.no_color:
            self.view = replace(self.view, letters=True)

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
        from rlvr.tui.choose import export_chart

        await export_chart(self, event.spec, self.folder)


class RunCharts(PageCharts):
    """The graphs of one run, or of several laid over each other, drawn anew as numbers come."""

    def __init__(self, pattern: str = "", id: str | None = None):
        super().__init__(pattern=pattern, id=id)
        self.runs: tuple[Run, ...] = ()
        self.readers: list[RunReader] = []

    @property
    def folder(self) -> Path:
        return self.readers[0].folder

    def follow(self, runs: Sequence[Run]) -> None:
        """Show these runs from now on."""
        if tuple(runs) != self.runs:
            self.runs = tuple(runs)
            self.readers = [open_run(run) for run in runs]
            self.workers.cancel_group(self, "metrics")
            self.show([])
            self.reading = bool(runs)
            for reader in self.readers:
                self.keep_reading(reader)

    @work(group="metrics")
    async def keep_reading(self, reader: RunReader) -> None:
        async for changed in looks(reader.metrics_file, reader.poll, lambda: reader.remaining, self.say_trouble):
            now = [each.metrics for each in self.readers]
            if [id(each) for each in now] != [id(curve.metrics) for curve in self.curves]:  # new, or begun anew
                names = [each.run.name if each.run else each.name for each in self.readers]
                hues = hues_of([each.name for each in self.readers])  # as in rlvrviz
                self.show([Curve(*each) for each in zip(names, now, hues, strict=True)])
            elif changed:
                self.data_changed()
            self.reading = any(each.remaining for each in self.readers)

    def say_trouble(self, words: str) -> None:
        """Say what the file system refuses: where the charts would be, and once for all to see."""
        self.reading, self.reason = False, words
        self.data_changed()
        if words:
            self.notify(words, severity="error", markup=False)


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
        async for new, replaced in looks(rows.path, rows.poll, lambda: rows.remaining, self.say_trouble):
            if replaced:
                self.table.replace_all(new, rows.part_names)
            elif new:
                self.table.add(new, rows.part_names)
            self.note = f"{rows.bad} lines could not be read" if rows.bad else ""

    def say_trouble(self, words: str) -> None:
        self.note = words

    @on(CompletionsTable.Opened)
    @work
    async def open_one(self, event: CompletionsTable.Opened) -> None:
        table, rows = self.table, self.rows
        if rows is None:
            return
        screen = CompletionScreen(rows.path, event.row, rows.mates, table.shown)
        last = await self.app.push_screen_wait(screen)
        if last is not None and last in table.shown:
            table.cursor = table.shown.index(last)
