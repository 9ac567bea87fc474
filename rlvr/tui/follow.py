"""Widgets that follow one run while it goes on: its log, and its progress with graphs and log together.

Files are read in threads, a batch at a time; the widgets keep no file open.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Log, Static

from rlvr import records
from rlvr.cycles import Run
from rlvr.errors import RlvrError
from rlvr.listing import Row, duration_text
from rlvr.records import Evaluation, Round, TextTail
from rlvr.tui.gpu import GpuLine
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

Found = TypeVar("Found")

LOOK_S = 0.3
"""Between two looks at files that do not change."""

RETRY_S = 1.0
"""Before another look, when the file system refused one."""

LOG_BYTES = 512 * 1024
"""So much of the end of a log is read; `rlvrctl.py log` shows all of it."""

MAX_LINES = 20_000
MAX_LINE = 4_000
"""Characters of a line that are shown."""


async def looks(
    file: Path, poll: Callable[[], Found], remaining: Callable[[], int], trouble: Callable[[str], object]
) -> AsyncIterator[Found]:
    """What `poll` finds in a file, called in a thread again and again: at once while something is `remaining`.

    What the file system refuses ends nothing: `trouble` is told the words of it, and "" when that is over.
    """
    said = ""
    while True:
        found: list[Found] = []
        try:
            found.append(await asyncio.to_thread(poll))
            now = ""
        except OSError as error:
            now = f"cannot read {file}: {error.strerror or error}"
        if now != said:
            said = now
            trouble(now)
        for each in found:
            yield each
        await asyncio.sleep(RETRY_S if now else 0 if remaining() else LOOK_S)


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
        async for lines in looks(tail.path, tail.read, lambda: tail.remaining, self.say_trouble):
            if tail.restarted:
                self.clear()
            if lines:
                self.write_lines([line if len(line) <= MAX_LINE else line[:MAX_LINE] + " ..." for line in lines])

    def say_trouble(self, words: str) -> None:
        if words:
            self.write_line(f"[{words}]")


class Progress(Static):
    """Where a run stands: a bar and its numbers, in two lines."""

    row: Row | None = None

    def take_row(self, row: Row | None) -> None:
        if row != self.row:
            same_height = row and self.row and bool(row.message) == bool(self.row.message)
            self.row = row
            self.refresh(layout=not same_height)

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


class RunView(Vertical):
    """Progress, graphs and log of one run; of an evaluation or an auto run what came of it instead of graphs."""

    run: Run | None = None

    def compose(self) -> ComposeResult:
        yield Progress(id="progress")
        yield GpuLine()
        with VerticalScroll(id="summary"):
            yield Static("", markup=False)
        yield LogView(id="log")

    def follow(self, run: Run | None) -> None:
        """Show this run from now on."""
        if run == self.run:
            return
        self.run = run
        self.border_title = run.name if run else ""
        self.show_graphs()
        self.query_one(LogView).follow(run.files.log if run else None)
        self.query_one("#summary Static", Static).update("")

    @work(group="graphs", exclusive=True)
    async def show_graphs(self) -> None:
        """Have the graphs follow the run; the first time they are made, after the first frame."""
        graphs = await asyncio.to_thread(importlib.import_module, "rlvr.tui.graphs")
        if not self.query("#graphs"):
            await self.mount(graphs.RunCharts("reward solved outcomes groups length kl", id="graphs"), after=1)
        run = self.run
        has_graphs = run is None or run.kind == "train"
        charts = next(iter(self.query("#graphs").results(graphs.RunCharts)), None)
        if charts is None or not charts.children:
            return  # the dashboard was left before they were made
        charts.display, self.query_one("#summary").display = has_graphs, not has_graphs
        charts.follow([run] if run and has_graphs else [])

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
    except (RlvrError, OSError) as error:
        return str(error)
    lines = [result.title, ""]
    lines += [f"{each.name:>8}  solved {interval_text(each.solved)}" for each in result.participants]
    return "\n".join([*lines, "", *result.conclusions])
