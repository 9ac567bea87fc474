"""Small windows that ask something: a choice with consequences, one line of text."""

from collections.abc import Callable, Sequence

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static

from rlvr.errors import RlvrError

Choice = tuple[str, str, str]
"""What is returned, the words of the button, its look: "primary", "error", "default"."""


class Confirm(ModalScreen[str | None]):
    """Ask before something that cannot be taken back; returns the choice or None. The safe one has the focus."""

    BINDINGS = [  # noqa: RUF012
        Binding("escape", "dismiss", "Cancel", show=False),
        Binding("left,h", "app.focus_previous", show=False),
        Binding("right,l", "app.focus_next", show=False),
    ]
    AUTO_FOCUS = "#cancel"  # from the first moment: who types on must not meet the first button

    def __init__(self, title: str, text: str, choices: Sequence[Choice]):
        super().__init__()
        self.heading, self.text, self.choices = title, text, choices

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = self.heading
            yield Static(self.text, markup=False, classes="dialog-text")
            with Horizontal(classes="buttons"):
                for name, words, look in self.choices:
                    yield Button(words, id=f"choice-{name}", variant=look)  # type: ignore[arg-type]
                yield Button("Cancel", id="cancel")

    @on(Button.Pressed)
    def press(self, event: Button.Pressed) -> None:
        name = event.button.id or ""
        self.dismiss(name.removeprefix("choice-") if name.startswith("choice-") else None)


class Ask(ModalScreen[str | None]):
    """Ask for a line of text; `check` raises RlvrError for what is not right, shown while typing."""

    BINDINGS = [Binding("escape", "dismiss", "Cancel", show=False)]  # noqa: RUF012

    def __init__(
        self,
        title: str,
        text: str,
        value: str = "",
        check: Callable[[str], object] | None = None,
        placeholder: str = "",
    ):
        super().__init__()
        self.heading, self.text, self.value, self.check, self.placeholder = title, text, value, check, placeholder

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = self.heading
            yield Static(self.text, markup=False, classes="dialog-text")
            yield Input(self.value, placeholder=self.placeholder)
            yield Label("", classes="problem", markup=False)
            with Horizontal(classes="buttons"):
                yield Button("OK", id="ok", variant="primary")
                yield Button("Cancel", id="cancel")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def problem(self) -> str:
        try:
            if self.check:
                self.check(self.query_one(Input).value.strip())
        except RlvrError as error:
            return str(error)
        return ""

    @on(Input.Changed)
    def say(self) -> None:
        self.query_one(".problem", Label).update(self.problem())

    @on(Input.Submitted)
    @on(Button.Pressed, "#ok")
    def accept(self) -> None:
        if problem := self.problem():
            self.query_one(".problem", Label).update(problem)
        else:
            self.dismiss(self.query_one(Input).value.strip())

    @on(Button.Pressed, "#cancel")
    def cancel(self) -> None:
        self.dismiss(None)
