"""The completions of a run as a table that keeps its place while rows arrive, with search and filter."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.color import Color
from textual.containers import Vertical
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Label

from rlvr.errors import RlvrError
from rlvr.records import OUTCOMES
from rlvr.tui.contrast import readable
from rlvr.tui.figure import HEX
from rlvr.tui.keys import bindings
from rlvr.tui.palette import plain_colors
from rlvr.tui.rows import SORTS, Row, arranged, forget_oldest, load, selector
from rlvr.tui.texts import clipped, signed

Column = tuple[str, int, bool]
"""Title, width in cells, flush right; a width of 0 takes what is left."""


def short(name: str) -> str:
    """A reward's name in a column's title: `sequence_matches` -> `sequ_matc`."""
    return name if len(name) <= 8 else "_".join(part[:4] for part in name.split("_"))[:9]


class CompletionsTable(ScrollView, can_focus=True):
    """The table itself, drawn line by line from the rows: thousands cost no more than what is on the screen.

    The cursor stays on its row, and the rows where they are, while new ones arrive above; at the top it follows them.
    """

    BINDINGS = bindings("completions")
    DEFAULT_CSS = """
    CompletionsTable { background: $background; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """

    cursor: reactive[int] = reactive(0, init=False)

    class Opened(Message):
        """A row was chosen."""

        def __init__(self, row: Row):
            super().__init__()
            self.row = row

    class SearchWanted(Message):
        """Somebody wants to type a search."""

    class Arranged(Message):
        """Sort, filter or rows are different now."""

    def __init__(self, id: str | None = None):
        super().__init__(id=id)
        self.all: list[Row] = []
        self.chosen: list[Row] = []
        """What search and outcome let through, in the order of the file."""
        self.shown: list[Row] = []
        """The same as it is sorted."""
        self.part_names: tuple[str, ...] = ()
        self.sort = "newest"
        self.descending = False
        self.outcome = ""
        self.search = ""
        self._styles: dict[str, dict[str, Style]] = {}
        """By where a text stands, and what it is."""

    def on_mount(self) -> None:
        self.new_styles()
        self.watch(self.app, "theme", self.new_styles, init=False)

    def new_styles(self) -> None:
        """Colours for texts on the background, under the cursor, and under the cursor of a table without focus."""
        theme, variables = self.app.current_theme, self.app.theme_variables
        background, foreground = plain_colors(variables, theme.dark)
        primary = Color.parse(variables["primary"])
        if primary.ansi is not None:
            primary = Color.parse("#0178d4")
        colors = {
            "text": foreground,
            "dim": background.blend(foreground, 0.6),
            "head": foreground,
            "good": Color.parse("#3fb950"),
            "bad": Color.parse("#f0604d"),
            **{name: Color.parse(HEX[name]) for name in OUTCOMES},
        }
        behind = {
            "": background,
            "cursor": background.blend(primary, 0.45),
            "resting": background.blend(foreground, 0.1),
        }
        self._styles = {
            where: {
                name: Style(color=readable(color, back).hex, bgcolor=back.hex, bold=name == "head")
                for name, color in colors.items()
            }
            for where, back in behind.items()
        }
        self.refresh()

    # ---- rows

    def replace_all(self, rows: Sequence[Row], part_names: tuple[str, ...]) -> None:
        """Show other rows: of another run, or of one whose file was replaced."""
        self.all = list(rows)
        self.part_names = part_names
        self.rearrange()
        self.set_reactive(CompletionsTable.cursor, 0)
        self.scroll_to(y=0, animate=False)

    def add(self, rows: Sequence[Row], part_names: tuple[str, ...]) -> None:
        """Append rows that have just been written."""
        if not rows:
            return
        self.all.extend(rows)
        self.part_names = part_names
        if forget_oldest(self.all):
            self.rearrange()
            return
        let = selector(self.search, self.outcome)
        fitting = [row for row in rows if let(row)]
        if not fitting:
            self.post_message(self.Arranged())
            return
        self.chosen.extend(fitting)
        current = self.current
        following = self.cursor == 0 and self.scroll_offset.y == 0
        if self.sort == "newest" and not self.descending:
            self.shown = [*reversed(fitting), *self.shown]
        else:
            self.shown = arranged(self.chosen, self.sort, self.descending)
        self._resize()
        if self.sort == "newest" and not self.descending and not following:
            self.set_reactive(CompletionsTable.cursor, self.cursor + len(fitting))
            self.scroll_to(y=self.scroll_offset.y + len(fitting), animate=False, immediate=True)
        elif current is not None and not following and self.sort != "newest":
            self.set_reactive(CompletionsTable.cursor, self.shown.index(current))
        self.refresh()
        self.post_message(self.Arranged())

    def rearrange(self) -> None:
        """Filter and sort anew; the cursor stays on its row if that is still there."""
        current = self.current
        let = selector(self.search, self.outcome)
        self.chosen = [row for row in self.all if let(row)] if self.search or self.outcome else list(self.all)
        self.shown = arranged(self.chosen, self.sort, self.descending)
        self._resize()
        index = 0
        if current is not None and self.cursor:
            index = next((index for index, row in enumerate(self.shown) if row is current), 0)
        self.set_reactive(CompletionsTable.cursor, index)
        self._reveal()
        self.refresh()
        self.post_message(self.Arranged())

    @property
    def current(self) -> Row | None:
        return self.shown[self.cursor] if self.cursor < len(self.shown) else None

    def _resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self.shown) + 1)

    def on_resize(self) -> None:
        self._resize()

    # ---- drawing

    def columns(self, width: int) -> list[Column]:
        """Those that fit: the components of the reward, then time and length, go first when it is narrow."""
        parts: list[Column] = [(short(name), 9, True) for name in self.part_names]
        who: list[Column] = [("who", 8, False)] if any(row.participant for row in self.all[:1]) else []
        step: list[Column] = [] if who else [("step", 6, True)]
        base: list[Column] = [*step, *who, ("task", 9, False), ("name", 0, False), ("reward", 7, True)]
        end: list[Column] = [("outcome", 17, False), ("length", 6, True), ("time", 8, False)]
        for wanted in ([*base, *parts, *end], [*base, *end], [*base, *end[:2]], [*base, end[0]]):
            if sum(size + 1 for _, size, _ in wanted) + 16 <= width:
                break
        rest = width - sum(size + 1 for _, size, _ in wanted) - 1
        return [(title, size or max(rest, 4), right) for title, size, right in wanted]

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            return self._head(width)
        index = y - 1 + self.scroll_offset.y
        if index < len(self.shown):
            where = "" if index != self.cursor else "cursor" if self.has_focus else "resting"
            styles = self._styles[where]
            return Strip(self._cells(self.shown[index], width, styles)).adjust_cell_length(width, styles["text"])
        text = "" if index or self.all else " no completions yet"
        if index == 0 and self.all:
            text = " no completion matches: esc shows all"
        styles = self._styles[""]
        return Strip([Segment(text, styles["dim"])]).adjust_cell_length(width, styles["text"])

    def _head(self, width: int) -> Strip:
        segments, styles = [], self._styles["resting"]
        names = {"length": "length", "newest": "step"}
        sorted_by = names.get(self.sort, self.sort)
        for title, size, right in self.columns(width):
            text = title
            if title == sorted_by:
                down = self.descending != (self.sort == "newest")
                text = f"{title}{'↓' if down else '↑'}"
            text = clipped(text, size)
            segments.append(Segment((text.rjust(size) if right else text.ljust(size)) + " ", styles["head"]))
        return Strip(segments).adjust_cell_length(width, styles["text"])

    def _cells(self, row: Row, width: int, styles: Mapping[str, Style]) -> list[Segment]:
        values: dict[str, tuple[str, str]] = {
            "step": (f"{row.step:,}", "dim"),
            "who": (row.participant, "text"),
            "task": (row.task, "text"),
            "name": (row.name, "dim"),
            "reward": (signed(row.reward, "masked"), self._sign(row.reward)),
            "outcome": (row.outcome.replace("_", " "), row.outcome if row.outcome in styles else "text"),
            "length": (f"{row.tokens:,}", "dim"),
            "time": (time.strftime("%H:%M:%S", time.localtime(row.time)), "dim"),
        }
        for name, value in zip(self.part_names, row.parts, strict=False):
            values[short(name)] = (signed(value), self._sign(value))
        segments = []
        for title, size, right in self.columns(width):
            text, style = values.get(title, ("", "text"))
            content = clipped(text, size)
            pad = " " * (size - cell_len(content))
            segments.append(Segment((pad + content if right else content + pad) + " ", styles[style]))
        return segments

    def _sign(self, value: float | None) -> str:
        return "dim" if not value else "good" if value > 0 else "bad"

    # ---- keys and mouse

    def watch_cursor(self) -> None:
        self._reveal()
        self.refresh()

    def watch_has_focus(self, focus: bool) -> None:
        super().watch_has_focus(focus)
        self.refresh()

    def _reveal(self) -> None:
        # The head covers the first line of the window: a row is in view when it lies below it.
        self.scroll_to_region(Region(0, self.cursor, 1, 2), animate=False, force=True, immediate=True)

    def _go(self, index: int) -> None:
        self.cursor = min(max(index, 0), max(len(self.shown) - 1, 0))

    def action_move(self, by: int) -> None:
        self._go(self.cursor + by)

    def action_page(self, by: int) -> None:
        self._go(self.cursor + by * max(self.size.height - 2, 1))

    def action_edge(self, side: int) -> None:
        self._go(0 if side < 0 else len(self.shown) - 1)

    def action_open(self) -> None:
        if self.current is not None:
            self.post_message(self.Opened(self.current))

    def action_sort(self, by: int) -> None:
        self.sort = SORTS[(SORTS.index(self.sort) + by) % len(SORTS)]
        self.descending = self.sort in ("reward", "length")
        self.rearrange()

    def action_reverse(self) -> None:
        self.descending = not self.descending
        self.rearrange()

    def action_outcome(self, by: int) -> None:
        """Only the next outcome that occurs."""
        present = {row.outcome for row in self.all}
        choices = ["", *(name for name in OUTCOMES if name in present)]
        index = choices.index(self.outcome) if self.outcome in choices else 0
        self.outcome = choices[(index + by) % len(choices)]
        self.rearrange()

    def action_search(self) -> None:
        self.post_message(self.SearchWanted())

    def find(self, text: str) -> None:
        self.search = text
        self.rearrange()

    def action_clear(self) -> None:
        self.search = self.outcome = ""
        self.sort, self.descending = "newest", False
        self.set_reactive(CompletionsTable.cursor, 0)
        self.rearrange()
        self.scroll_to(y=0, animate=False)

    class CopyWanted(Message):
        """The function of this row should go to the clipboard."""

        def __init__(self, row: Row):
            super().__init__()
            self.row = row

    def action_copy(self) -> None:
        if self.current is not None:
            self.post_message(self.CopyWanted(self.current))

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            self._click_head(event.x)
            return
        index = event.y - 1 + self.scroll_offset.y
        if index < len(self.shown):
            self.cursor = index
            if event.chain == 2:
                self.action_open()

    def _click_head(self, x: int) -> None:
        begin = 0
        for title, size, _ in self.columns(self.size.width):
            if begin <= x <= begin + size and title in SORTS:
                if self.sort == title:
                    self.action_reverse()
                else:
                    self.sort, self.descending = title, title in ("reward", "length")
                    self.rearrange()
            begin += size + 1


class CompletionsPane(Vertical):
    """The table under a line that says what is in it, with a field to search."""

    DEFAULT_CSS = """
    CompletionsPane { background: $background; }
    CompletionsPane > .about { height: 1; width: 100%; color: $text-muted; padding: 0 1; }
    CompletionsPane > Input { display: none; height: 1; border: none; padding: 0 1; background: $surface; }
    CompletionsPane > Input.open { display: block; }
    CompletionsPane > CompletionsTable { height: 1fr; }
    """

    def __init__(self, id: str | None = None):
        super().__init__(id=id)
        self.file: Path | None = None
        self.note = ""

    def compose(self) -> ComposeResult:
        yield Label("", classes="about", markup=False)
        yield Input(
            placeholder="words in task, name, outcome; step:12  step:10-20  reward>0.5  length<100", compact=True
        )
        yield CompletionsTable()

    @property
    def table(self) -> CompletionsTable:
        return self.query_one(CompletionsTable)

    @on(CompletionsTable.Arranged)
    def say(self) -> None:
        table = self.table
        parts = [f"Completions: {len(table.shown):,}"]
        if len(table.shown) != len(table.all):
            parts.append(f"of {len(table.all):,}")
        if table.outcome:
            parts.append(f"· only {table.outcome.replace('_', ' ')}")
        if table.search:
            parts.append(f"· search {table.search!r}")
        parts.append(f"· {'newest first' if table.sort == 'newest' and not table.descending else 'by ' + table.sort}")
        if table.cursor or table.scroll_offset.y:
            parts.append("· holding still (g follows)")
        if self.note:
            parts.append(f"· {self.note}")
        self.query_one(".about", Label).update(" ".join(parts))

    @on(CompletionsTable.SearchWanted)
    def open_search(self) -> None:
        field = self.query_one(Input)
        field.add_class("open")
        field.value = self.table.search
        field.focus()

    @on(Input.Changed)
    def search(self, event: Input.Changed) -> None:
        event.stop()
        if self.query_one(Input).has_class("open"):
            self.table.find(event.value)

    @on(Input.Submitted)
    def close_search(self, event: Input.Submitted | None = None) -> None:
        if event is not None:
            event.stop()
        self.query_one(Input).remove_class("open")
        self.table.focus()

    def key_escape(self) -> None:
        if self.query_one(Input).has_focus:
            self.table.find("")
            self.close_search()

    @on(CompletionsTable.CopyWanted)
    def copy_row(self, event: CompletionsTable.CopyWanted) -> None:
        event.stop()
        try:
            if self.file is not None:
                self.app.copy_to_clipboard(load(self.file, event.row).function)
                self.notify("function copied")
        except RlvrError as error:
            self.notify(str(error), severity="error", markup=False)
