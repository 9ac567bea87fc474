"""The editor of one key in one layer: what it is, where its value comes from, a field that checks while one types."""

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Input, Select, Static

from rlvr.config import Key
from rlvr.layer_files import toml_text
from rlvr.layers import Target
from rlvr.tui.dialogs import Problem
from rlvr.tui.drafts import CHAINS, PLACES, Drafts, Place, field_text, keys_of
from rlvr.tui.words import color_of


class Editor(VerticalScroll):
    """One key in one layer: what it is, where its value comes from, a field to change it."""

    can_focus = False

    class Changed(Message):
        """The drafts are different now."""

    class Left(Message):
        """The user is done with the field."""

    def __init__(self, id: str, classes: str):
        super().__init__(id=id, classes=classes)
        self.drafts: Drafts | None = None
        self.place = PLACES[0]
        self.key: Key | None = None

    def compose(self) -> ComposeResult:
        yield Static("", id="about-key", markup=False)
        yield Input(id="field", compact=True)
        yield Select([], id="choice", compact=True, prompt="not set here")
        yield Problem()
        yield Static("", id="chain")

    def show(self, drafts: Drafts | None, place: Place, name: str | None) -> None:
        """Show this key; while the user is typing in its field, the field stays as it is."""
        self.drafts = drafts
        key = keys_of(place).get(name) if name else None
        moved = (place, key) != (self.place, self.key)
        self.place, self.key = place, key
        self.border_title = name or ""
        for child in self.children:
            child.display = key is not None
        if drafts is None or key is None:
            return
        self.query_one("#about-key", Static).update(about(key, drafts))
        field, choice = self.query_one("#field", Input), self.query_one("#choice", Select)
        options = ("true", "false") if key.type is bool else key.choices
        field.display, choice.display = not options, bool(options)
        here = drafts.here(place, key.name)
        text = "" if here is None else field_text(here)
        if moved:
            self.query_one(Problem).update("")
        with self.prevent(Input.Changed, Select.Changed):
            if options:
                if moved:
                    choice.set_options([(option, option) for option in options])
                choice.value = text if text in options else Select.NULL
            elif moved or not field.has_focus:
                field.value = text
            field.placeholder = f"not set here; {field_text(drafts.value(key.name, self.targets[0])[0])} counts"
        self.query_one("#chain", Static).update(self.chain(drafts, key))

    @property
    def targets(self) -> list[Target]:
        return self.drafts.targets(self.place, self.key.name) if self.drafts and self.key else []

    def chain(self, drafts: Drafts, key: Key) -> Text:
        """Every layer that says something of the key, the highest first; what counts has an arrow."""
        text = Text()
        for target in self.targets:
            value, winner = drafts.value(key.name, target)
            text.append(
                f"\n{'a cycle' if target == 'train' else 'an evaluation'} gets\n",
                style=color_of(self.app, "text-muted"),
            )
            for place in CHAINS[target]:
                said = drafts.here(place, key.name)
                counts = place == winner
                shown = "-" if said is None else toml_text(said)
                look = "bold" if counts else color_of(self.app, "text-disabled")
                text.append(f"{'→' if counts else ' '} {place.title:<11} {shown}\n", style=look)
            look = "bold" if winner is None else color_of(self.app, "text-disabled")
            text.append(f"{'→' if winner is None else ' '} {'default':<11} {toml_text(key.default)}\n", style=look)
            last = drafts.last_value(key.name, target)
            if last is not None and last != value:
                text.append(
                    f"  {drafts.last[target][0]} ran with {toml_text(last)}\n", style=color_of(self.app, "text-accent")
                )
        return text

    def focus_field(self) -> None:
        field = self.query_one("#field", Input)
        (field if field.display else self.query_one("#choice", Select)).focus()

    @on(Input.Changed, "#field")
    def typed(self, event: Input.Changed) -> None:
        self.take(event.value)

    @on(Select.Changed, "#choice")
    def chosen(self, event: Select.Changed) -> None:
        if event.value is Select.NULL:
            self.take(None)
        else:
            self.take(str(event.value))

    def take(self, text: str | None) -> None:
        """Make what was typed the draft; say what is wrong with it. An empty field takes the key out."""
        drafts, key = self.drafts, self.key
        if drafts is None or key is None:
            return
        if text is None or (not text.strip() and key.type not in (str, tuple)):
            drafts.unset(self.place, key.name)
            self.query_one(Problem).update("")
        elif not self.query_one(Problem).check(lambda: drafts.change(self.place, key.name, text)):
            drafts.revert(self.place, key.name)
        self.post_message(self.Changed())

    @on(Input.Submitted, "#field")
    def done(self) -> None:
        self.post_message(self.Left())


def about(key: Key, drafts: Drafts) -> str:
    """Type, range, help; and why it cannot be changed, where it cannot."""
    lines = [
        f"{key.help[0].upper()}{key.help[1:]}.",
        f"{key.type_name}" + (f", {key.range_text}" if key.range_text else ""),
    ]
    if key.type is tuple:
        lines.append("separate them with commas")
    if key.name in drafts.frozen:
        lines.append(f"fixed at {toml_text(drafts.frozen[key.name])}: the adapters of this model were made with it")
    return "\n".join(lines)
