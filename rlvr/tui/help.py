"""The window of the keys: those of the place where one is first, each with a sentence."""

import textwrap
from collections.abc import Mapping, Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from rlvr.tui.keys import KEYS, NAMES, TITLES, Where

KEY_WIDTH = 14

Section = tuple[str, Sequence[tuple[str, str]]]
"""A title, then keys and what they do."""


class HelpScreen(ModalScreen[None]):
    """Sections of keys, below a text about the whole."""

    BINDINGS = [  # noqa: RUF012
        Binding("escape,q,question_mark", "dismiss", "Close"),
        Binding("j,down", "scroll(1)", show=False),
        Binding("k,up", "scroll(-1)", show=False),
    ]

    def __init__(self, sections: Sequence[Section], about: str = ""):
        super().__init__()
        self.sections = sections
        self.about = about

    def compose(self) -> ComposeResult:
        with Vertical(classes="window large") as window:
            window.border_title = "Keys"
            window.border_subtitle = "esc closes"
            with VerticalScroll():
                if self.about:
                    yield Static(f"{self.about}\n", markup=False)
                yield Static(self.lines())

    def lines(self) -> Content:
        """The keys by section, each explanation wrapped beside its key."""
        width = max(min(self.app.size.width * 9 // 10, 110) - 10 - KEY_WIDTH, 20)
        parts: list[tuple[str, str]] = []
        for title, rows in self.sections:
            parts.append((f"{title}\n", "bold $text-accent"))
            for key, about in rows:
                wrapped = f"\n{' ' * (KEY_WIDTH + 2)}".join(textwrap.wrap(about, width))
                parts += [(f"  {key:<{KEY_WIDTH - 1}} ", "bold"), (f"{wrapped}\n", "")]
            parts.append(("\n", ""))
        return Content.assemble(*parts)

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=3 * by, animate=False)


def key_sections(*places: Where, own: Mapping[str, str]) -> list[Section]:
    """The keys of charts and completions, by place; `own` are those that the user chose instead."""
    return [
        (TITLES[where], [(names(own.get(key.id, key.keys)), key.about) for key in KEYS if key.where == where])
        for where in places
    ]


def names(keys: str) -> str:
    """Keys as a person knows them."""
    return " ".join(NAMES.get(one, one) for one in keys.split(","))
