"""What the forms that start a run share: fields that are checked while one types, keys for this time, the start."""

import shlex
from collections.abc import Callable, Iterable

from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Button, Input

from rlvr import control, cycles
from rlvr.config import EvalConfig, keys
from rlvr.cycles import Run
from rlvr.errors import RlvrError
from rlvr.tui.dialogs import Problem


class StartForm(VerticalScroll):
    """The pane of a form: below the fields what is wrong with them, and the button, which is `start` of the screen.

    Args:
        check: is given the texts and raises RlvrError for what is not right in them.
    """

    def __init__(self, title: str, check: Callable[[dict[str, str]], object]):
        super().__init__(id="form", classes="pane form")
        self.border_title = title
        self.check = check

    def compose(self) -> ComposeResult:
        yield Problem()
        yield Button("Start  ^r", id="ok", variant="primary", compact=True, action="screen.start")

    @property
    def texts(self) -> dict[str, str]:
        """What stands in the fields: NAME -> text of the field `field-NAME`."""
        return {(field.id or "").removeprefix("field-"): field.value.strip() for field in self.query(Input)}

    @on(Input.Changed)
    def say(self) -> None:
        self.query_one(Problem).check(lambda: self.check(self.texts))


def begin(start: Callable[[], Run]) -> Run:
    """Start a run as `rlvrctl.py` does: those that wait without a supervisor get one, the model is remembered."""
    control.start_waiting()
    run = start()
    cycles.remember_model(run.model)
    return run


def parse_overrides(text: str) -> dict[str, str]:
    """`max_steps=40 corpus_dir='my seqs'` -> key and text of its value.

    Raises:
        RlvrError: for a word that is no KEY=VALUE.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise RlvrError(f"{text!r}: {error}: close the quotation mark") from None
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise RlvrError(f"{word!r} is not KEY=VALUE, such as learning_rate=1e-4")
        found[name.replace("-", "_")] = value
    return found


def parse_eval_keys(texts: dict[str, str], names: Iterable[str]) -> dict[str, str]:
    """Key and text of those that are filled in.

    Raises:
        RlvrError: for a value that the key cannot have.
    """
    given = {name: texts[name] for name in names if texts[name]}
    for name, text in given.items():
        keys(EvalConfig)[name].parse(text, "the form")
    return given
