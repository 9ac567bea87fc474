"""The presets: what each sets, put one into a layer of the model, save what the model sets as one of your own."""

from collections.abc import Iterable
from typing import Any

from rich.text import Text
from textual import on, work
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import DataTable, Static

from rlvr import cycles, layers, presets, runs
from rlvr.cli.settings import model_values
from rlvr.layer_files import toml_text
from rlvr.presets import Preset
from rlvr.tui.dialogs import Ask, Choice, Confirm
from rlvr.tui.page import Page
from rlvr.tui.table import KeyedTable
from rlvr.tui.verbs import page_bindings

WHERE: dict[str, tuple[layers.Scope, str]] = {
    "global": ("global", "model.toml"),
    "permanent": ("permanent", "training.toml and eval.toml"),
    "ephemeral": ("ephemeral", "the next runs only"),
}


class PresetsPage(Page):
    """Built-in presets and one's own."""

    key = "presets"
    BINDINGS = page_bindings("apply", "save_preset")
    always_load = True

    def __init__(self) -> None:
        super().__init__()
        self.presets: dict[str, Preset] = {}
        self.now: dict[str, Any] = {}
        """What is effective for the chosen model: key -> value."""

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="split"):
            with Vertical(id="list", classes="pane") as pane:
                pane.border_title = "Presets"
                yield KeyedTable("Preset", "Keys", "What it is for", id="presets")
            with VerticalScroll(id="detail", classes="pane"):
                yield Static("", id="keys-of-preset")

    def load(self) -> None:
        model = self.board.model
        self.read(lambda: (presets.list_presets(cycles.PRESETS_DIR), read_values(model)), self.show)

    def show(self, found: tuple[list[Preset], dict[str, Any]]) -> None:
        listed, self.now = found
        self.presets = {preset.name: preset for preset in listed}
        bad = self.color("text-error")
        self.table.show(
            {
                name: (
                    name,
                    str(len(preset.values)),
                    Text.assemble((preset.error, bad)) if preset.error else preset.summary,
                )
                for name, preset in self.presets.items()
            }
        )
        self.show_keys()

    @on(DataTable.RowHighlighted, "#presets")
    def show_keys(self) -> None:
        """The keys of the selected preset; marked where the model has another value."""
        preset = self.presets.get(self.table.selected or "")
        pane = self.query_one("#detail")
        pane.border_title = preset.name if preset else ""
        if preset is None:
            return
        muted, other = self.color("text-muted"), self.color("text-warning")
        text = Text.assemble((str(preset.file) if preset.file else "built in", muted), "\n")
        text.append(f"{preset.error or preset.summary}\n\n")
        for name, value in preset.values.items():
            text.append(f"{name} = {toml_text(value)}")
            if name in self.now and self.now[name] != value:
                text.append(f"   {self.board.model} has {toml_text(self.now[name])}", other)
            text.append("\n")
        self.query_one("#keys-of-preset", Static).update(text)

    @on(DataTable.RowSelected, "#presets")
    def pressed(self) -> None:
        self.action_apply()

    @work
    async def action_apply(self) -> None:
        preset = self.presets.get(self.table.selected or "")
        if preset is None or preset.error:
            return
        choices: list[Choice] = [(name, words, "primary") for name, (_, words) in WHERE.items()]
        text = f"Set {len(preset.values)} keys of {self.board.model}, in which layer? Comments in the file stay."
        answer = await self.app.push_screen_wait(Confirm(f"Apply {preset.name}", text, choices))
        if answer:
            model = self.board.model
            self.board.perform(lambda: apply(model, preset, answer), self.say)

    @work
    async def action_save_preset(self) -> None:
        model = self.board.model
        text = f"What {model} sets beside the defaults becomes a preset. Its name:"
        name = await self.app.push_screen_wait(Ask("Save as preset", text))
        if not name:
            return
        replace = False
        if (cycles.PRESETS_DIR / f"{name}.toml").exists():
            question = Confirm("Save as preset", f"{name} is there already.", [("replace", "Replace it", "error")])
            replace = await self.app.push_screen_wait(question) == "replace"
            if not replace:
                return
        self.board.perform(lambda: save(model, name, replace), self.say)


def read_values(model: str) -> dict[str, Any]:
    """Key -> what a run of the model would get; of training where both kinds differ."""
    found: dict[str, Any] = {}
    for setting in layers.effective(cycles.model_dir(model)):
        found.setdefault(setting.key, setting.value)
    return found


def apply(model: str, preset: Preset, place: str) -> str:
    """Put the keys of a preset into one of `WHERE`; returns what was done in words."""
    scope, where = WHERE[place]
    changes = layers.set_values(cycles.model_dir(model), scope, preset.values, None, runs.frozen_keys(model))
    return f"{preset.name}: {sum(change.old != change.new for change in changes)} keys set in {where}."


def save(model: str, name: str, replace: bool) -> str:
    """Make a preset of what a model sets; returns what was done in words."""
    values = model_values(cycles.model_dir(model))
    file = presets.save_preset(cycles.PRESETS_DIR, name, values, f"from model {model}", replace=replace)
    return f"Saved {file}."
