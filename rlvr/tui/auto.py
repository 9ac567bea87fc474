"""Train, evaluate, again: the form that starts an auto run, the auto runs there are, and their rounds."""

from collections.abc import Iterable, Sequence

from textual import on
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import DataTable, Input, Label

from rlvr import runs
from rlvr.cycles import Run
from rlvr.errors import RlvrError
from rlvr.listing import Row, run_of
from rlvr.tui.chosen import ChosenRunPage
from rlvr.tui.form import StartForm, begin, parse_eval_keys, parse_overrides
from rlvr.tui.monitor import ROUNDS, read_rounds
from rlvr.tui.table import KeyedTable
from rlvr.tui.verbs import page_bindings
from rlvr.tui.words import progress_text, share_text, when_text

FIELDS = {
    "rounds": ("Rounds at most", "5"),
    "until": ("Until a goal", "none, such as solved>=0.5"),
    "patience": ("Rounds without improvement", "3"),
    "num_tasks": ("Held-out tasks of each evaluation", "as in eval.toml"),
    "samples": ("Samples a task", "as in eval.toml"),
    "overrides": ("Keys of every cycle", "key=value ..."),
}
"""Name -> title, what holds when it is empty."""


class AutoPage(ChosenRunPage):
    """The auto runs of the chosen model."""

    key = "auto"
    BINDINGS = page_bindings("start", "open", "kill", "resume")

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="split"):
            with StartForm("New auto run", options):
                for name, (title, empty) in FIELDS.items():
                    yield Label(title)
                    yield Input(placeholder=empty, id=f"field-{name}", compact=True)
            with Vertical(id="list", classes="pane"):
                columns = ("Auto run", "State", "Rounds", "Solved", "Now", "When")
                yield KeyedTable(*columns, id="autos", drop=("When",), elastic=("Now",))
                yield KeyedTable(*ROUNDS, id="rounds", elastic=("Evaluation",))

    def on_mount(self) -> None:
        self.query_one("#field-rounds").focus()

    def load(self) -> None:
        self.query_one("#list").border_title = f"Auto runs of {self.board.model}"
        self.query_one("#rounds", KeyedTable).show({})

    def show_rows(self, rows: Sequence[Row]) -> None:
        shown = [row for row in rows if row.kind == "auto"]
        self.table.show(
            {
                row.run: (
                    row.run,
                    self.state_text(row.state),
                    progress_text(row),
                    share_text(row.solved),
                    row.waiting_for or row.message,
                    when_text(row.created),
                )
                for row in shown
            }
        )
        self.show_rounds()
        self.refresh_bindings()

    @on(DataTable.RowHighlighted, "#autos")
    def show_rounds(self) -> None:
        if row := self.chosen:
            run = run_of(row)
            self.read(lambda: read_rounds(run), self.query_one("#rounds", KeyedTable).show)

    @on(DataTable.RowSelected)
    def pressed(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        """Open the auto run, or the cycle of the round under the cursor."""
        rounds = self.query_one("#rounds", KeyedTable)
        if not (rounds.has_focus and rounds.selected):
            super().action_open()
        elif row := self.board.row(str(rounds.cells[rounds.selected][1])):
            self.board.open_run(row)

    @on(Input.Submitted)
    def action_start(self) -> None:
        model, texts = self.board.model, self.query_one(StartForm).texts
        self.board.perform(lambda: begin_auto(model, texts), self.started)

    def started(self, run: Run) -> None:
        self.notify(f"Auto run {run.name} was started: it goes on without the dashboard.", markup=False)
        self.table.select_when_there(run.name)
        self.table.focus()


def options(texts: dict[str, str]) -> dict:
    """What the form says, as `runs.begin_auto` takes it.

    Raises:
        RlvrError: for what is not right.
    """
    numbers = {}
    for name in ("rounds", "patience"):
        value = texts[name] or FIELDS[name][1]
        if not value.isdigit() or int(value) < 1:
            raise RlvrError(f"{name} = {value!r}: give a number of at least 1")
        numbers[name] = int(value)
    runs.parse_goal(texts["until"])
    evaluation = parse_eval_keys(texts, ("num_tasks", "samples"))
    return {
        **numbers,
        "until": texts["until"],
        "train_overrides": parse_overrides(texts["overrides"]),
        "eval_overrides": evaluation,
    }


def begin_auto(model: str, texts: dict[str, str]) -> Run:
    """Start an auto run as `rlvrctl.py auto` does."""
    wanted = options(texts)
    return begin(lambda: runs.begin_auto(model, **wanted))
