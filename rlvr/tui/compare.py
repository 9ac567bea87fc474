"""Several cycles beside each other: their graphs laid over each other, their figures, what differs in their config."""

from collections.abc import Iterable, Sequence

from textual import on
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import SelectionList, TabbedContent, TabPane

from rlvr.cli.compare import CYCLE_ROWS, Value, differences, read_cycle, read_snapshot
from rlvr.cycles import Run
from rlvr.layer_files import toml_text
from rlvr.listing import Row, run_of
from rlvr.tui.chart import ChartGrid
from rlvr.tui.chosen import MOST_COMPARED
from rlvr.tui.graphs import RunCharts
from rlvr.tui.page import Page
from rlvr.tui.table import KeyedTable
from rlvr.tui.verbs import PANES, page_bindings
from rlvr.tui.words import shorten


class ComparePage(Page):
    """The marked cycles of the chosen model."""

    key = "compare"
    BINDINGS = page_bindings(*PANES)
    AUTO_FOCUS = "#which"

    def __init__(self) -> None:
        super().__init__()
        self.offered: tuple[tuple[str, str], ...] = ()

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="split"):
            with Vertical(id="form", classes="pane form") as form:
                form.border_title = "Cycles"
                form.border_subtitle = "space marks"
                yield SelectionList[str](id="which", compact=True)
            with Vertical(id="list"), TabbedContent():
                with TabPane("Graphs", id="pane-graphs"):
                    yield RunCharts(id="graphs")
                with TabPane("Figures", id="pane-figures"):
                    yield KeyedTable("", id="figures")
                with TabPane("Config", id="pane-config"):
                    yield KeyedTable("Key", id="config-diff")

    @property
    def which(self) -> SelectionList[str]:
        return self.query_one("#which", SelectionList)

    def focus_main(self) -> None:
        self.which.focus()

    def load(self) -> None:
        self.offered = ()
        self.which.clear_options()
        self.query_one(RunCharts).follow([])

    def on_screen_resume(self) -> None:
        self.offered = ()

    def show_rows(self, rows: Sequence[Row]) -> None:
        offered = tuple(
            (row.run, f"{row.run} {row.label or row.state}") for row in rows if row.kind == "train" and row.step
        )
        if offered == self.offered:
            return
        self.offered = offered
        wanted = self.board.marked or [name for name, _ in offered[:2]]
        highlighted = self.which.highlighted or 0
        with self.prevent(SelectionList.SelectedChanged):
            self.which.clear_options()
            for name, words in offered:
                self.which.add_option((words, name, name in wanted))
        if offered:
            self.which.highlighted = min(highlighted, len(offered) - 1)
        self.take()

    @property
    def chosen(self) -> list[Run]:
        """The marked cycles, the oldest first."""
        marked = set(self.which.selected)
        rows = [row for row in self.board.rows if row.run in marked]
        return sorted((run_of(row) for row in rows), key=lambda run: run.name)[:MOST_COMPARED]

    @on(SelectionList.SelectionToggled)
    def limit(self, event: SelectionList.SelectionToggled[str]) -> None:
        if len(self.which.selected) > MOST_COMPARED:
            self.which.deselect(event.selection)
            self.notify(f"At most {MOST_COMPARED} cycles are compared: unmark one first.", severity="warning")

    @on(SelectionList.SelectedChanged)
    def mark(self) -> None:
        self.board.marked = list(self.which.selected)
        self.take()

    def take(self) -> None:
        """Show what is chosen now."""
        chosen = self.chosen
        self.query_one(RunCharts).follow(chosen)
        self.read(lambda: read_figures(chosen), lambda rows: self.fill("#figures", "", rows))
        self.read(lambda: read_differences(chosen), lambda rows: self.fill("#config-diff", "Key", rows))

    @on(ChartGrid.StepChosen)
    def open_step(self, event: ChartGrid.StepChosen) -> None:
        """The completions of the step under the crosshair, which stands on the steps of the first cycle."""
        for run in self.chosen[:1]:
            if row := self.board.row(run.name):
                self.board.open_run(row, event.step)

    def fill(self, table_id: str, title: str, rows: dict[str, tuple[str, ...]]) -> None:
        """Show rows with a column a cycle, unless they are of cycles that were marked before."""
        table = self.query_one(table_id, KeyedTable)
        table.retitle(title, *(run.name for run in self.chosen))
        if all(len(cells) == len(table.titles) for cells in rows.values()):
            table.show(rows)


def read_figures(chosen: Sequence[Run]) -> dict[str, tuple[str, ...]]:
    """What `rlvrctl.py compare` shows of these cycles: a row a figure."""
    figures = [read_cycle(run, run.name) for run in chosen]
    rows = {label: tuple(cell(each) for each in figures) for label, cell in CYCLE_ROWS}
    return {label: (label, *cells) for label, cells in rows.items() if any(cell not in ("", "-") for cell in cells)}


def read_differences(chosen: Sequence[Run]) -> dict[str, tuple[str, ...]]:
    """The keys in which any of these cycles differs from the first, with the value of each."""
    snapshots = [read_snapshot(run.files.config) for run in chosen if run.files.config.is_file()]
    if len(snapshots) < len(chosen) or not snapshots:
        return {}
    found = [each for other in snapshots[1:] for each in differences(snapshots[0], other)]
    rows: dict[str, tuple[str, ...]] = {}
    for each in found:
        name = each.key if each.table == "config" else f"{each.table}.{each.key}"
        rows[name] = (name, *(value_text(snapshot[each.table].get(each.key)) for snapshot in snapshots))
    return rows


def value_text(value: Value | None) -> str:
    if value is None:
        return "-"
    text = shorten(str(value.value) if isinstance(value.value, dict) else toml_text(value.value), 30)
    return f"{text}  ({value.origin})" if value.origin not in ("", "default") else text
