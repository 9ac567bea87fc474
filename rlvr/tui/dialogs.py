"""Small windows that ask something: a choice with consequences, one line of text."""

from collections.abc import Callable, Iterable, Sequence

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen, ScreenResultType
from textual.widget import Widget
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


class Problem(Label):
    """What is wrong with the fields above it; empty while nothing is."""

    def __init__(self) -> None:
        super().__init__("", classes="problem", markup=False)

    def check(self, job: Callable[[], object]) -> bool:
        """Do something and say what is wrong with it; did it succeed?"""
        try:
            job()
        except (RlvrError, OSError) as error:
            self.update(str(error))
            return False
        self.update("")
        return True


class Dialog(ModalScreen[ScreenResultType | None]):
    """A window with fields, what is wrong with them, a button that goes on, and one that returns None."""

    BINDINGS = [Binding("escape", "dismiss", "Cancel", show=False)]  # noqa: RUF012

    def __init__(self, title: str, go_on: str, classes: str = "dialog"):
        super().__init__()
        self.heading, self.go_on, self.look = title, go_on, classes

    def compose(self) -> ComposeResult:
        with Vertical(classes=self.look) as dialog:
            dialog.border_title = self.heading
            yield from self.body()
            yield Problem()
            with Horizontal(classes="buttons"):
                yield Button(self.go_on, id="ok", variant="primary")
                yield Button("Cancel", id="cancel")

    def body(self) -> Iterable[Widget]:
        """The fields."""
        return ()

    @on(Button.Pressed, "#cancel")
    def cancel(self) -> None:
        self.dismiss(None)


class Ask(Dialog[str]):
    """Ask for a line of text; `check` raises RlvrError for what is not right, shown while typing."""

    AUTO_FOCUS = "Input"

    def __init__(self, title: str, text: str, value: str = "", check: Callable[[str], object] = str):
        super().__init__(title, "OK")
        self.text, self.value, self.check = text, value, check

    def body(self) -> Iterable[Widget]:
        yield Static(self.text, markup=False, classes="dialog-text")
        yield Input(self.value)

    @on(Input.Changed)
    def say(self) -> bool:
        return self.query_one(Problem).check(lambda: self.check(self.query_one(Input).value.strip()))

    @on(Input.Submitted)
    @on(Button.Pressed, "#ok")
    def accept(self) -> None:
        if self.say():
            self.dismiss(self.query_one(Input).value.strip())
