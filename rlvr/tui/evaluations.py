"""Set up an evaluation: which checkpoints, how many tasks and samples; beside it those there are and their results."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from textual import on
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import DataTable, Input, Label, SelectionList

from rlvr import cycles, layers, records, runs
from rlvr.cycles import Run
from rlvr.errors import RlvrError
from rlvr.layer_files import toml_text
from rlvr.listing import Row, run_of
from rlvr.records import Evaluation
from rlvr.tui.chosen import ChosenRunPage
from rlvr.tui.form import StartForm, begin, parse_eval_keys, parse_overrides
from rlvr.tui.table import Cell, KeyedTable
from rlvr.tui.verbs import page_bindings
from rlvr.tui.words import interval_text, progress_text, when_text

FIELDS = {"num_tasks": "Held-out tasks (n)", "samples": "Samples a task (k)", "max_new_tokens": "Tokens at most"}

COLUMNS = ("Evaluation", "State", "Progress", "Difference, solved", "When")


class EvalsPage(ChosenRunPage):
    """The evaluations of the chosen model, and the form for the next one."""

    key = "evals"
    BINDINGS = page_bindings("start", "open")

    def __init__(self) -> None:
        super().__init__()
        self.results: dict[str, str] = {}
        """Run -> its result in a line."""
        self.offered: list[str] = []
        """The checkpoints in the order of the form."""

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="split"):
            with StartForm("New evaluation", overrides):
                yield Label("Checkpoints to compare")
                yield SelectionList[str](id="who", compact=True)
                for name, title in FIELDS.items():
                    yield Label(title)
                    yield Input(id=f"field-{name}", compact=True, type="integer")
                yield Label("Other keys, only this time")
                yield Input(placeholder="key=value ...", id="overrides", compact=True)
            with Vertical(id="list", classes="pane"):
                columns = ("Evaluation", "State", "Progress", "Difference, solved", "When")
                yield KeyedTable(
                    *columns, id="evals", drop=("When", "Progress"), elastic=("Difference, solved",), least=40
                )

    @property
    def who(self) -> SelectionList[str]:
        return self.query_one("#who", SelectionList)

    def on_mount(self) -> None:
        self.who.focus()

    def load(self) -> None:
        self.query_one("#list").border_title = f"Evaluations of {self.board.model}"
        self.results = {}
        self.offer()

    def offer(self) -> None:
        """Bring the form up to date with the checkpoints there are."""
        model = self.board.model
        self.read(lambda: read_form(model), self.show_form)

    def show_form(self, form: "Form") -> None:
        chosen = set(self.who.selected)
        self.offered = list(form.checkpoints)
        self.who.clear_options()
        for name, words in form.checkpoints.items():
            wanted = name in chosen if chosen else name in form.usual
            self.who.add_option((words, name, wanted))
        for name, value in form.values.items():
            self.query_one(f"#field-{name}", Input).placeholder = f"{value}"

    def on_screen_resume(self) -> None:
        if self.model_shown == self.board.model:
            self.offer()

    def show_rows(self, rows: Sequence[Row]) -> None:
        shown = [row for row in rows if row.kind == "eval"]
        self.table.show({row.run: self.cells(row) for row in shown})
        fresh = [run_of(row) for row in shown if row.state == "done" and row.run not in self.results]
        if fresh:
            self.results |= {run.name: "" for run in fresh}
            self.read(lambda: {run.name: outcome_text(run) for run in fresh}, self.results.update)

    def cells(self, row: Row) -> tuple[Cell, ...]:
        result = self.results.get(row.run) or row.message
        return row.run, self.state_text(row.state), progress_text(row), result, when_text(row.created)

    @on(DataTable.RowSelected, "#evals")
    def pressed(self) -> None:
        self.action_open()

    @on(Input.Submitted)
    def action_start(self) -> None:
        model, texts, chosen = self.board.model, self.query_one(StartForm).texts, self.who.selected
        people = [name for name in self.offered if name in chosen]
        if people:
            self.board.perform(lambda: begin_eval(model, people, texts, self.board.notice), self.started)
        else:
            self.notify("Choose at least one checkpoint with space.", severity="warning")

    def started(self, run: Run) -> None:
        self.notify(f"Evaluation {run.name} was started.", markup=False)
        self.table.select_when_there(run.name)
        self.table.focus()


def overrides(texts: dict[str, str]) -> dict[str, str]:
    """The keys that the form sets, as text.

    Raises:
        RlvrError: for what is not right.
    """
    return {**parse_overrides(texts["overrides"]), **parse_eval_keys(texts, FIELDS)}


def begin_eval(model: str, people: Sequence[str], texts: dict[str, str], notice: Callable[[str], None]) -> Run:
    """Start an evaluation as `rlvrctl.py eval` does; `notice` is told what the user should know of it."""
    wanted = overrides(texts)
    return begin(lambda: runs.begin_eval(model, people, wanted, notice=notice))


class Form(NamedTuple):
    """What the form offers: checkpoints with a word about each, which ones are usual, values now in force."""

    checkpoints: dict[str, str]
    usual: list[str]
    values: dict[str, str]


def read_form(model: str) -> Form:
    """Look at the checkpoints and the config of a model."""
    adapters = [run for run in cycles.cycle_runs(model) if cycles.has_adapter(run)]
    found = {"base": "base: the model without an adapter"}
    for run in adapters:
        label = cycles.read_label(run)
        found[run.name] = f"{run.name} {label}".strip()
    usual = ["base", *([adapters[-1].name] if adapters else [])]
    settings = {setting.key: setting for setting in layers.effective(cycles.model_dir(model), ["eval"])}
    return Form(found, usual, {name: toml_text(settings[name].value) for name in FIELDS})


def outcome_text(run: Run) -> str:
    """The result of an evaluation in a line."""
    try:
        result = records.read(run.files.evaluation, Evaluation)
    except RlvrError as error:
        return str(error)
    parts = ", ".join(f"{person.name} {100 * person.solved.estimate:.1f} %" for person in result.participants)
    gains = [interval_text(each.difference, signed=True) for each in result.differences if each.metric == "solved"]
    return f"{gains[-1]}   {parts}" if gains else parts
