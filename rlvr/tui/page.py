"""What every screen of the dashboard has: the line of the other screens, the footer, work off the UI thread."""

import asyncio
import shutil
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from rich.style import Style
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, Static, TabbedContent, Tabs

from rlvr.errors import RlvrError
from rlvr.listing import Row
from rlvr.tui.keybar import KeyBar
from rlvr.tui.table import KeyedTable
from rlvr.tui.verbs import COMMON, SCREENS
from rlvr.tui.words import color_of

if TYPE_CHECKING:
    from rlvr.tui.app import Dashboard
    from rlvr.tui.help import Section
    from rlvr.tui.keys import Where

Result = TypeVar("Result")

LOOKS = {
    "running": ("●", "text-success"),
    "pending": ("○", "text-warning"),
    "done": ("✓", "text-primary"),
    "failed": ("✗", "text-error"),
    "killed": ("■", "text-warning"),
    "lost": ("?", "text-error"),
}
"""State -> its sign and the theme's colour of it; the word stands beside them."""


def screens_here() -> dict[str, str]:
    """The screens that are of use here, with their words; that of Colab needs its client."""
    return {name: label for name, label in SCREENS.items() if name != "colab" or shutil.which("colab")}


class ScreenName(Static):
    """A screen in the title line; a click goes there."""

    def __init__(self, target: str, words: str, classes: str):
        super().__init__(words, classes=classes)
        self.target = target

    async def on_click(self) -> None:
        await self.run_action(f"app.page('{self.target}')")


class TitleLine(Horizontal):
    """The screens with their number keys, clickable; then what runs and the model, in signs where it is narrow."""

    def __init__(self, current: str):
        super().__init__()
        self.current = current
        self.said = Text()

    def compose(self) -> ComposeResult:
        for number, (name, label) in enumerate(SCREENS.items(), 1):
            if name not in screens_here() and self.current != name:
                continue
            yield ScreenName(name, f"[b]{number}[/b] {label}", classes="current" if name == self.current else "")
        yield Static("", id="about")

    def say(self, model: str, rows: Sequence[Row]) -> None:
        running = sum(row.state == "running" for row in rows)
        waiting = sum(row.state == "pending" for row in rows)
        name = model or "no model"
        if self.screen.has_class("-narrow"):
            signs = [
                f"{LOOKS[state][0]}{count}" for state, count in (("running", running), ("pending", waiting)) if count
            ]
            text = Text.assemble(*(f"{sign} " for sign in signs), (name, "bold"), no_wrap=True, overflow="ellipsis")
        else:
            text = Text.assemble((name, "bold"), no_wrap=True, overflow="ellipsis")
            text.append(f"  {running} running" if running else "  nothing runs")
            text.append(f", {waiting} waiting" if waiting else "")
        if text != self.said:
            self.said = text
            self.query_one("#about", Static).update(text)


class Page(Screen[None]):
    """A screen: `key` is its name in the title line, `body` its widgets, `load` what it shows of the chosen model."""

    key = "runs"
    AUTO_FOCUS = "KeyedTable"
    always_load = False
    """Load whenever the screen comes up: files may have been edited meanwhile."""
    model_shown: str | None = None
    """The model that `load` was called for."""

    @property
    def board(self) -> "Dashboard":
        return cast("Dashboard", self.app)

    def compose(self) -> ComposeResult:
        yield TitleLine(self.key)
        yield from self.body()
        yield KeyBar()

    def body(self) -> Iterable[Widget]:
        """The widgets between the title line and the keys."""
        return ()

    @property
    def table(self) -> KeyedTable:
        """The table that matters most here: the first one."""
        return self.query_one(KeyedTable)

    def load(self) -> None:
        """Show the chosen model; called when the screen comes up with another one than before, and for a refresh."""

    def show_rows(self, rows: Sequence[Row]) -> None:
        """The runs of the model as they are now; called about once a second while the screen is up."""

    def on_screen_resume(self) -> None:
        if self.always_load or self.model_shown != self.board.model:
            self.model_shown = self.board.model
            self.load()
        self.take_rows(self.board.rows)

    ready = False
    """Whether all widgets are there."""

    def on_mount(self) -> None:
        self.ready = True
        self.take_rows(self.board.rows)

    def take_rows(self, rows: Sequence[Row]) -> None:
        if self.ready:
            self.query_one(TitleLine).say(self.board.model, rows)
            self.show_rows(rows)

    @work(group="read")
    async def read(
        self,
        job: Callable[[], Result],
        then: Callable[[Result], object],
        otherwise: Callable[[Exception], object] | None = None,
    ) -> None:
        """Do `job` in a thread and hand its result to `then`, or what a user can put right to `otherwise`."""
        try:
            result = await asyncio.to_thread(job)
        except (RlvrError, OSError) as error:
            (otherwise or self.board.complain)(error)
            return
        then(result)

    def say(self, words: str) -> None:
        """Tell what was done, and show what is there now."""
        self.notify(words, markup=False)
        self.load()

    def color(self, name: str) -> Style:
        """A colour of the theme, for text in tables."""
        return color_of(self.app, name)

    def state_text(self, state: str) -> Text:
        sign, color = LOOKS.get(state, ("?", "text-error"))
        return Text.assemble((f"{sign} {state}", self.color(color)), no_wrap=True)

    # Actions of every screen.

    def action_back(self) -> None:
        """Out of a field, back to the screen before, or to the runs."""
        if isinstance(self.focused, Input):
            self.set_focus(None)
            self.focus_main()
        elif len(self.app.screen_stack) > 1:
            self.dismiss()
        else:
            self.board.action_page("runs")

    def focus_main(self) -> None:
        """Give the focus to what matters most here."""
        self.table.focus()

    def action_refresh(self) -> None:
        self.load()

    def action_quit(self) -> None:
        self.board.leave()

    def action_help(self) -> None:
        from rlvr.tui.help import HelpScreen

        self.app.push_screen(HelpScreen(self.help_sections()))

    def help_sections(self) -> "list[Section]":
        """The keys that work here: of what has the focus, of this screen, of the rest of it, of every screen."""
        from rlvr.tui.help import key_sections

        names = [binding.id for binding in self.BINDINGS if isinstance(binding, Binding) and binding.id]
        here = [self.board.key_row(name) for name in names if name not in COMMON]
        every = [self.board.key_row(name) for name in COMMON]
        every.append(("1 to 9", "Go to a screen: " + ", ".join(SCREENS.values()) + "."))
        first: list[Where] = []
        rest: list[Where] = []
        kinds: dict[str, Where] = {"ChartGrid": "charts", "CompletionsTable": "completions"}
        for kind, where in kinds.items():
            for widget in self.query(kind):
                (first if widget is self.focused else rest).append(where)
        own = [("This screen", here)] if here else []
        before, after = (key_sections(*places, own=self.board.own_keys) for places in (first, rest))
        return [*before, *own, *after, ("Every screen", every)]

    def action_next_tab(self) -> None:
        self.turn(Tabs.action_next_tab)

    def action_previous_tab(self) -> None:
        self.turn(Tabs.action_previous_tab)

    def turn(self, go: Callable[[Tabs], None]) -> None:
        for panes in self.query(TabbedContent):
            go(panes.query_one(Tabs))
            self.call_after_refresh(self.focus_pane, panes)

    def focus_pane(self, panes: TabbedContent) -> None:
        """Give the focus to what is in the pane that is up."""
        pane = panes.active_pane
        inside = [widget for widget in self.focus_chain if pane and pane in widget.ancestors]
        self.set_focus(inside[0] if inside else panes.query_one(Tabs))

    def copied(self) -> str:
        """What `y` copies."""
        return ""

    def action_copy(self) -> None:
        if text := self.get_selected_text() or self.copied():
            self.app.copy_to_clipboard(text)
            self.notify(f"Copied {text if len(text) < 60 else f'{len(text):,} characters'}", markup=False, timeout=2)
