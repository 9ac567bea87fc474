"""The first screen: all runs of the model, live ones first, and of the selected one progress, graphs and log."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import on, work
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import DataTable, Input

from rlvr import cycles
from rlvr.errors import RlvrError
from rlvr.listing import Row, run_of
from rlvr.tui.chosen import MOST_COMPARED, ChosenRunPage
from rlvr.tui.dialogs import Ask, Confirm
from rlvr.tui.filtered import FilteredPage
from rlvr.tui.follow import RunView
from rlvr.tui.table import Cell, KeyedTable
from rlvr.tui.verbs import page_bindings
from rlvr.tui.words import progress_text, reward_text, share_text, time_text, when_text

if TYPE_CHECKING:
    from rlvr.tui.chart import ChartGrid

RUN_VERBS = ("open", "new", "kill", "resume", "mark", "compare_marked", "filter", "remove", "label", "note")

COLUMNS = ("Run", "State", "Progress", "Solved", "Time", "Reward", "When", "Label")


class RunsPage(FilteredPage, ChosenRunPage):
    """Cycles, evaluations and auto runs of the chosen model."""

    key = "runs"
    BINDINGS = page_bindings(*RUN_VERBS)
    needs_run = ("open", "kill", "resume", "remove", "label", "note", "mark")

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="split"):
            with Vertical(id="list", classes="pane"):
                yield Input(placeholder="show only rows with ...", id="filter", classes="hidden")
                yield KeyedTable(*COLUMNS, id="runs", drop=("When", "Reward", "Time", "Solved"), elastic=("Label",))
            yield RunView(id="detail", classes="pane")

    def load(self) -> None:
        self.query_one("#list").border_title = f"Runs of {self.board.model}"
        self.query_one(RunView).follow(None)
        self.selected()

    def show_rows(self, rows: Sequence[Row]) -> None:
        shown = [row for row in rows if self.lets(f"{row.run} {row.state} {row.kind} {row.label}")]
        self.table.show({row.run: self.cells(row) for row in shown})
        count = f"{len(shown)} of {len(rows)}" if self.filter_words else f"{len(rows)}"
        noun = "run" if count == "1" else "runs"
        self.query_one("#list").border_subtitle = f"{count} {noun}" if rows else "no run yet: n starts the first cycle"
        self.query_one(RunView).take_row(self.chosen)
        self.refresh_bindings()

    def cells(self, row: Row) -> tuple[Cell, ...]:
        mark = "◆ " if row.run in self.board.marked else ""
        return (
            f"{mark}{row.run}",
            self.state_text(row.state),
            progress_text(row),
            Text(share_text(row.solved), justify="right"),
            time_text(row),
            Text(reward_text(row.reward), justify="right"),
            when_text(row.created),
            row.label or (row.message if row.state in ("failed", "lost") else ""),
        )

    @on(DataTable.RowHighlighted, "#runs")
    def selected(self) -> None:
        row = self.chosen
        self.query_one(RunView).follow(run_of(row) if row else None)
        self.query_one(RunView).take_row(row)
        self.refresh_bindings()

    def on_chart_grid_step_chosen(self, event: "ChartGrid.StepChosen") -> None:  # by name: no numpy at the start
        """The completions of the step under the crosshair."""
        if row := self.chosen:
            self.board.open_run(row, event.step)

    @on(DataTable.RowSelected, "#runs")
    def pressed(self) -> None:
        self.action_open()

    # -----------------------------------------------------------------------------------------------------------------
    # What the verbs do

    @work
    async def action_new(self) -> None:
        from rlvr.tui.launch import NewCycle, adapters_of

        model = self.board.model
        run = await self.app.push_screen_wait(NewCycle(model, await asyncio.to_thread(adapters_of, model)))
        if run:
            self.notify(f"Cycle {run.name} of {run.model} was started.", markup=False)
            self.table.select_when_there(run.name)
            self.board.look_now()

    @work
    async def action_remove(self) -> None:
        from rlvr.trash import dependents

        row = self.chosen
        if row is None:
            return
        chosen = run_of(row)
        runs = [*await asyncio.to_thread(dependents, chosen), chosen]
        text = "It is moved to training/.trash/; nothing is deleted."
        if len(runs) > 1:
            names = ", ".join(run.name for run in runs[:-1])
            text = f"{names} depend{'s' if len(runs) == 2 else ''} on it and would go too.\n\n{text}"
        words = "Move to the trash" if len(runs) == 1 else f"Move all {len(runs)} to the trash"
        if await self.app.push_screen_wait(Confirm(f"Remove {row.run}", text, [("remove", words, "error")])):
            self.board.perform(lambda: remove_all(chosen, runs), self.board.say_of(row.run))

    @work
    async def action_label(self) -> None:
        from rlvr import notes

        row = self.chosen
        if row is None:
            return

        text = await self.app.push_screen_wait(
            Ask(f"Label of {row.run}", "A few words; empty removes it.", row.label, notes.check_label)
        )
        if text is not None:
            run = run_of(row)
            self.board.perform(lambda: notes.write_label(run, text))

    @work
    async def action_note(self) -> None:
        row = self.chosen
        if row is None:
            return
        text = await self.app.push_screen_wait(Ask(f"Note about {row.run}", "It is added to notes.md of the run."))
        if text:
            run = run_of(row)
            self.board.perform(lambda: write_note(run, text), self.board.say_of(row.run))

    def action_mark(self) -> None:
        row = self.chosen
        if row is None:
            return
        marked = self.board.marked
        if row.run in marked:
            marked.remove(row.run)
        elif len(marked) < MOST_COMPARED:
            marked.append(row.run)
        else:
            self.notify(f"At most {MOST_COMPARED} cycles are compared: unmark one first.", severity="warning")
            return
        self.show_rows(self.board.rows)
        self.table.action_cursor_down()

    def action_compare(self) -> None:
        self.board.action_page("compare")

    @on(Input.Changed, "#filter")
    def narrow(self) -> None:
        self.show_rows(self.board.rows)

    def action_back(self) -> None:
        self.show_all()

    def copied(self) -> str:
        row = self.chosen
        return row.folder if row else ""


def remove_all(chosen: cycles.Run, agreed: Sequence[cycles.Run]) -> str:
    """Move a run, and what depends on it before it, to the trash: what the user has agreed to, and nothing else.

    Raises:
        RlvrError: when one of them is living, or something else depends on it by now.
    """
    from rlvr import trash

    if set([*trash.dependents(chosen), chosen]) != set(agreed):
        raise RlvrError(f"what depends on {chosen} has changed: nothing was removed, look again")
    moved = trash.remove(agreed)
    return "moved to the trash" + (f" with {len(moved) - 1} that depended on it" if len(moved) > 1 else "")


def write_note(run: cycles.Run, text: str) -> str:
    from rlvr import notes

    notes.add_note(run, text)
    return f"noted in {run.files.notes}"
