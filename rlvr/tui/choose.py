"""Small windows of the viewer: choose runs, choose a format and export a chart."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from rlvr.cycles import Run, all_runs, model_names
from rlvr.errors import RlvrError
from rlvr.records import Status
from rlvr.status import read_status
from rlvr.tui.chart import ChartGrid
from rlvr.tui.export import FORMATS, export
from rlvr.tui.frame import STATE_STYLES
from rlvr.tui.series import ChartSpec


class RunsScreen(ModalScreen[list[Run] | None]):
    """Choose one run, or mark several to lay over each other; returns them."""

    BINDINGS = [  # noqa: RUF012
        Binding("escape", "close", "Cancel"),
        Binding("enter", "take", "Open", priority=True),
        Binding("space", "mark", "Mark"),
        Binding("p", "pin", "On top"),
        Binding("slash", "filter", "Filter"),
        Binding("j", "down", show=False),
        Binding("k", "up", show=False),
    ]

    def __init__(self, shown: Sequence[str]):
        super().__init__()
        self.marked = [name for name in shown if len(shown) > 1]
        self.shown = shown
        self.lines: list[tuple[Run, Status | None]] = []
        self.runs: list[Run] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="window") as window:
            window.border_title = "Runs"
            window.border_subtitle = "enter opens · space marks · p on top · / filters · esc"
            yield Input(placeholder="filter: words of model, run or state", compact=True)
            yield OptionList(markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self.read()

    @work
    async def read(self) -> None:
        self.lines = await asyncio.to_thread(runs_to_show)
        self.fill(self.query_one(Input).value)

    def fill(self, words: str) -> None:
        """List the runs that hold all the words; the highlighted one stays."""
        options = self.query_one(OptionList)
        highlighted = str(self.current() or self.shown[0])
        self.runs, contents = [], []
        for run, status in self.lines:
            state = status.state if status else "no status"
            text = f"{run} {state} {run.kind}".casefold()
            if not all(word in text for word in words.casefold().split()):
                continue
            step = f"{status.step:,} of {status.max_steps:,}" if status and status.max_steps else ""
            mark = self.mark_of(str(run))
            self.runs.append(run)
            contents.append(
                Content.assemble(
                    (mark, "$text-accent"),
                    (f"{run!s:<30} ", "bold" if str(run) in self.marked else ""),
                    (f"{state:<9} ", STATE_STYLES.get(state, "$foreground 60%")),
                    (step, "$foreground 60%"),
                )
            )
        options.clear_options()
        options.add_options([Option(content) for content in contents])
        if self.runs:
            names = list(map(str, self.runs))
            options.highlighted = names.index(highlighted) if highlighted in names else 0

    def mark_of(self, name: str) -> str:
        """The first one marked, another one marked, one on the screen at the moment."""
        if name in self.marked:
            return "◆ " if name == self.marked[0] else "● "
        return "▸ " if name in self.shown else "  "

    @on(Input.Changed)
    def narrow(self, event: Input.Changed) -> None:
        self.fill(event.value)

    def current(self) -> Run | None:
        index = self.query_one(OptionList).highlighted
        return self.runs[index] if index is not None and index < len(self.runs) else None

    def action_mark(self) -> None:
        if self.query_one(Input).has_focus:
            self.query_one(Input).insert_text_at_cursor(" ")
            return
        if (run := self.current()) is not None:
            name = str(run)
            self.marked = [one for one in self.marked if one != name] if name in self.marked else [*self.marked, name]
            self.fill(self.query_one(Input).value)

    def action_pin(self) -> None:
        """Mark the run as the first one: its completions are listed, its curve lies over the others."""
        if (run := self.current()) is not None:
            name = str(run)
            self.marked = [name, *(one for one in self.marked if one != name)]
            self.fill(self.query_one(Input).value)

    def action_take(self) -> None:
        by_name = {str(run): run for run, _ in self.lines}
        chosen = [by_name[name] for name in self.marked if name in by_name]
        if not chosen and (run := self.current()) is not None:
            chosen = [run]
        if chosen:
            self.dismiss(chosen)

    @on(OptionList.OptionSelected)
    def clicked(self) -> None:
        self.action_take()

    def action_filter(self) -> None:
        self.query_one(Input).focus()

    def action_close(self) -> None:
        if self.query_one(Input).has_focus and self.query_one(Input).value:
            self.query_one(Input).value = ""
            self.query_one(OptionList).focus()
        else:
            self.dismiss(None)

    def action_down(self) -> None:
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        self.query_one(OptionList).action_cursor_up()


def runs_to_show() -> list[tuple[Run, Status | None]]:
    """Every run that has numbers or completions of its own, with its status: running ones first, then the newest."""
    runs = [run for model in model_names() for run in all_runs(model) if run.kind != "auto"]
    found = [(run, read_status(run.files.status)) for run in runs]
    order = {"running": 0, "pending": 1}
    found.sort(key=lambda pair: pair[1].updated if pair[1] else 0.0, reverse=True)
    found.sort(key=lambda pair: order.get(pair[1].state if pair[1] else "", 2))
    return found


class FormatScreen(ModalScreen[str | None]):
    """Choose the format of a file; returns it."""

    BINDINGS = [  # noqa: RUF012
        Binding("escape", "dismiss", "Cancel"),
        *(Binding(name[0], f"dismiss('{name}')", name.upper()) for name in FORMATS),
    ]

    def __init__(self, title: str):
        super().__init__()
        self.heading = title

    def compose(self) -> ComposeResult:
        with Vertical(classes="window small") as window:
            window.border_title = self.heading
            window.border_subtitle = "enter · p s c · esc"
            yield OptionList("PNG, a picture", "SVG, a drawing", "CSV, the numbers")

    @on(OptionList.OptionSelected)
    def choose(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(FORMATS[event.option_index])


async def export_chart(grid: ChartGrid, spec: ChartSpec, folder: Path, form: str = "") -> None:
    """Write a chart beside its run and say where; without a format it is asked for. Call it from a worker."""
    form = form or await grid.app.push_screen_wait(FormatScreen(f"Export {spec.name}")) or ""
    if form:
        try:
            file = await asyncio.to_thread(export, grid.curves, spec, grid.view, folder, form)
        except RlvrError as error:
            grid.notify(str(error), severity="error", markup=False)
        else:
            grid.notify(f"written: {file}", markup=False)
