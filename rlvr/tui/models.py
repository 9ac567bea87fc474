"""The screen of the models: what there is, choose one, make one from a preset."""

import asyncio
from collections.abc import Iterable, Sequence

from textual import on, work
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Button, DataTable, Input, Label, Select, Static

from rlvr import cycles, environment, layers, presets
from rlvr.errors import RlvrError
from rlvr.presets import Preset
from rlvr.status import LIVING, read_status
from rlvr.tui.dialogs import Dialog, Problem
from rlvr.tui.page import Page
from rlvr.tui.table import KeyedTable
from rlvr.tui.verbs import page_bindings
from rlvr.tui.words import share_text, when_text


class ModelsPage(Page):
    """All models under training/."""

    key = "models"
    BINDINGS = page_bindings("choose", "new_model")
    always_load = True

    def body(self) -> Iterable[Widget]:
        with Vertical(id="list", classes="pane"):
            yield KeyedTable(
                "Model",
                "Base model",
                "Cycles",
                "Evals",
                "Live",
                "Solved",
                "Last run",
                id="models",
                drop=("Evals", "Cycles"),
                elastic=("Base model",),
            )
        yield Static("", id="hint", markup=False)

    def on_mount(self) -> None:
        self.query_one("#list").border_title = f"Models in {cycles.TRAINING_DIR.resolve()}"
        self.set_interval(2.0, self.load)

    def load(self) -> None:
        if self.is_current:
            self.read(read_models, self.show)

    def show(self, rows: dict[str, tuple[str, ...]]) -> None:
        first = not self.table.cells
        chosen = self.board.model
        self.table.show({name: (f"{'◆ ' if name == chosen else '  '}{name}", *cells) for name, cells in rows.items()})
        if first:
            self.table.select(chosen)
        self.query_one("#hint", Static).update(
            "◆ is the model you work with. Enter chooses another, n makes one."
            if rows
            else "No model yet. Press n to make one; the preset tiny runs on any CPU."
        )

    @on(DataTable.RowSelected)
    def pressed(self) -> None:
        self.action_choose()

    def action_choose(self) -> None:
        if name := self.table.selected:
            self.board.choose(name)
            self.board.action_page("runs")

    @work
    async def action_new_model(self) -> None:
        listed = await asyncio.to_thread(presets.list_presets, cycles.PRESETS_DIR)
        name = await self.app.push_screen_wait(NewModel([each for each in listed if not each.error]))
        if name:
            self.board.choose(name)
            self.board.action_page("runs")
            self.notify(f"Model {name} was made. n starts its first cycle; 3 shows its config.", markup=False)

    def copied(self) -> str:
        return str(cycles.TRAINING_DIR / self.table.selected) if self.table.selected else ""


def read_models() -> dict[str, tuple[str, ...]]:
    """Model -> base model, number of cycles and of evaluations, what lives, newest share solved, last run."""
    found = {}
    for name in cycles.model_names():
        runs = cycles.all_runs(name)
        statuses = [status for run in runs if (status := read_status(run.files.status))]
        living = [status.state for status in statuses if status.state in LIVING]
        solved = [
            status.solved for status in sorted(statuses, key=lambda each: each.created) if status.solved is not None
        ]
        try:
            settings = layers.effective(cycles.model_dir(name), ["train"])
            base = next(str(setting.value) for setting in settings if setting.key == "base_model")
        except RlvrError:
            base = "its config has an error"
        found[name] = (
            base,
            str(sum(run.kind == "train" for run in runs)),
            str(sum(run.kind == "eval" for run in runs)),
            ", ".join(f"{living.count(state)} {state}" for state in dict.fromkeys(living)),
            share_text(solved[-1]) if solved else "",
            when_text(max((status.updated for status in statuses), default=None)),
        )
    return found


class NewModel(Dialog[str]):
    """Ask for name, preset and environment of a model, and make it; returns its name."""

    AUTO_FOCUS = "#name"

    def __init__(self, known: Sequence[Preset]) -> None:
        super().__init__("New model", "Make it")
        self.known = known

    def body(self) -> Iterable[Widget]:
        choices = [(f"{each.name}: {each.summary}" if each.summary else each.name, each.name) for each in self.known]
        yield Label("Name")
        yield Input(placeholder="letters, digits, '.', '-', '_'", id="name")
        yield Label("Preset")
        yield Select(choices, value="tiny", allow_blank=False, id="preset")
        yield Label("Environment")
        yield Select([(name, name) for name in environment.MODULES], allow_blank=False, id="environment")

    @on(Input.Changed)
    def say(self) -> None:
        name = self.query_one("#name", Input).value
        self.query_one(Problem).check(lambda: check_new_name(name) if name else None)

    @on(Input.Submitted)
    @on(Button.Pressed, "#ok")
    def make(self) -> None:
        name = self.query_one("#name", Input).value.strip()
        preset, module = (str(self.query_one(field, Select).value) for field in ("#preset", "#environment"))
        if self.query_one(Problem).check(lambda: make_model(name, preset, module)):
            self.dismiss(name)


def check_new_name(name: str) -> None:
    """Raises RlvrError for what is no name of a model, or of one that is there."""
    cycles.check_model_name(name)
    if name in cycles.model_names():
        raise RlvrError(f"{name} is there already")


def make_model(name: str, preset: str, module: str) -> None:
    """Make a model as `rlvrctl.py init` does.

    Raises:
        RlvrError: when there can be none of that name.
    """
    cycles.check_model_name(name)
    values = {**presets.preset_values(preset, cycles.PRESETS_DIR), "environment": module}
    layers.create(cycles.TRAINING_DIR / name, values)
