"""The completions of a run as widgets: a table that keeps its place while rows arrive, and one completion in full."""

import time
from collections.abc import Sequence
from pathlib import Path

from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.color import Color
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Label, Static

from rlvr.errors import RlvrError
from rlvr.records import OUTCOMES, Check, Completion
from rlvr.tui.figure import HEX
from rlvr.tui.keybar import KeyBar
from rlvr.tui.keys import bindings
from rlvr.tui.rows import SORTS, Row, arranged, load, selector

MAX_SHOWN = 4000
"""Characters of a text that are shown; what is copied is whole."""

Column = tuple[str, int, bool]
"""Title, width in cells, flush right; a width of 0 takes what is left."""


def short(name: str) -> str:
    """A reward's name in a column's title: `sequence_matches` -> `seq_matc`."""
    return name if len(name) <= 8 else "_".join(part[:4] for part in name.split("_"))[:9]


def signed(value: float | None, missing: str = "–") -> str:
    """A reward with its sign; nothing has none."""
    if value is None or value != value:
        return missing
    return f"{value:+.2f}" if round(value, 2) else "0.00"


def clipped(text: str, width: int) -> str:
    """Text for one cell of a table: one line, no control characters, not wider than `width`."""
    text = " ".join(text[: 4 * width + 8].split())
    plain = "".join(character if character.isprintable() else "·" for character in text)
    content = Content(plain)
    return plain if content.cell_length <= width else content.truncate(max(width, 1), ellipsis=True).plain


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
        self._styles: dict[str, Style] = {}

    def on_mount(self) -> None:
        self.new_styles()
        self.watch(self.app, "theme", self.new_styles, init=False)

    def new_styles(self) -> None:
        colors, dark = self.app.theme_variables, self.app.current_theme.dark

        def style(text: str, bold: bool = False) -> Style:
            return Style(color=Color.parse(text).hex, bold=bold)

        def known(name: str, default: str) -> str:
            color = Color.parse(colors[name])
            return default if color.ansi is not None else color.hex

        foreground, background = known("foreground", "#e0e0e0"), known("background", "#121212")
        self._styles = {
            "text": style(foreground),
            "dim": style(Color.parse(background).blend(Color.parse(foreground), 0.6).hex),
            "head": style(foreground, bold=True),
            "good": style("#3fb950" if dark else "#1a7f37"),
            "bad": style("#f0604d" if dark else "#cf222e"),
            **{name: style(HEX[name] if dark else Color.parse(HEX[name]).darken(0.2).hex) for name in OUTCOMES},
        }
        self._background = Style(bgcolor=background)
        self._cursor = Style(bgcolor=Color.parse(background).blend(Color.parse(known("primary", "#0178d4")), 0.45).hex)
        self._resting = Style(bgcolor=Color.parse(background).blend(Color.parse(foreground), 0.1).hex)
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
        if index >= len(self.shown):
            text = "" if index or self.all else "no completions yet"
            if index == 0 and self.all:
                text = "no completion matches: esc shows all"
            return Strip([Segment(text, self._styles["dim"])]).adjust_cell_length(width).apply_style(self._background)
        strip = Strip(self._cells(self.shown[index], width)).adjust_cell_length(width)
        if index == self.cursor:
            return strip.apply_style(self._cursor if self.has_focus else self._resting)
        return strip.apply_style(self._background)

    def _head(self, width: int) -> Strip:
        segments = []
        names = {"length": "length", "newest": "step"}
        sorted_by = names.get(self.sort, self.sort)
        for title, size, right in self.columns(width):
            text = title
            if title == sorted_by:
                down = self.descending != (self.sort == "newest")
                text = f"{title}{'↓' if down else '↑'}"
            text = clipped(text, size)
            segments.append(Segment((text.rjust(size) if right else text.ljust(size)) + " ", self._styles["head"]))
        return Strip(segments).adjust_cell_length(width).apply_style(self._resting)

    def _cells(self, row: Row, width: int) -> list[Segment]:
        values: dict[str, tuple[str, str]] = {
            "step": (f"{row.step:,}", "dim"),
            "who": (row.participant, "text"),
            "task": (row.task, "text"),
            "name": (row.name, "dim"),
            "reward": (signed(row.reward, "masked"), self._sign(row.reward)),
            "outcome": (row.outcome.replace("_", " "), row.outcome if row.outcome in self._styles else "text"),
            "length": (f"{row.tokens:,}", "dim"),
            "time": (time.strftime("%H:%M:%S", time.localtime(row.time)), "dim"),
        }
        for name, value in zip(self.part_names, row.parts, strict=False):
            values[short(name)] = (signed(value), self._sign(value))
        segments = []
        for title, size, right in self.columns(width):
            text, style = values.get(title, ("", "text"))
            content = clipped(text, size)
            pad = " " * (size - Content(content).cell_length)
            segments.append(Segment((pad + content if right else content + pad) + " ", self._styles[style]))
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
    CompletionsPane > .about { height: 1; color: $text-muted; padding: 0 1; }
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
            self.notify(str(error), severity="error")


# ---------------------------------------------------------------------------------------------------------------------
# One completion


def reasoning_of(completion: Completion) -> str:
    """What the model wrote around its function."""
    text = completion.completion
    function = completion.function.strip()
    at = text.find(function) if function else -1
    if at >= 0:
        before, after = text[:at].rstrip(), text[at + len(function) :].strip()
        before = before.removesuffix("```python").removesuffix("```py").removesuffix("```").rstrip()
        text = f"{before}\n\n{after.removeprefix('```').strip()}"
    return text.strip()


def capped(text: str, limit: int = MAX_SHOWN) -> str:
    """The text without control characters, not longer than a screen can bear."""
    shown = "".join(character if character.isprintable() or character == "\n" else "·" for character in text[:limit])
    return shown if len(text) <= limit else f"{shown}\n… {len(text) - limit:,} more characters"


def colored(code: str) -> Content:
    """Python with its syntax in colours."""
    from textual.highlight import highlight  # slow to import

    return highlight(code, language="python")


def checks_table(checks: Sequence[Check], width: int) -> Content:
    """n / expected / got / match; hidden terms are those the model never saw."""
    label = max([len(check.label) for check in checks] + [1])
    room = max((width - label - 12) // 2, 6)
    lines = [Content.styled(f"{'n':<{label}}  {'expected':>{room}}  {'got':>{room}}  ", "bold")]
    for check in checks:
        got = clipped(check.got or "–", room)
        mark, style = ("✓", "$text-success") if check.passed else ("✗", "$text-error")
        shown = " shown" if check.shown else ""
        lines.append(
            Content.assemble(
                (f"{check.label:<{label}}  {clipped(check.expected, room):>{room}}  ", ""),
                (f"{got:>{room}}", "" if check.passed else "$text-error"),
                (f"  {mark}", style),
                (shown, "$foreground 60%"),
            )
        )
    return Content("\n").join(lines)


def rewards_text(completion: Completion) -> Content:
    parts: list[tuple[str, str]] = []
    for reward in completion.rewards:
        value = signed(reward.value).rjust(5)
        style = "$foreground 60%" if not reward.value else "$text-success" if reward.value > 0 else "$text-error"
        parts += [(f"{value}  ", style), (reward.name, "bold"), (f"\n       {reward.reason}\n", "$foreground 60%")]
    total = signed(completion.reward, "masked").rjust(5)
    parts += [(f"{total}  ", "bold"), ("total", "bold")]
    if completion.advantage is not None:
        parts += [(f"  advantage {completion.advantage:+.2f}", "$foreground 60%")]
    return Content.assemble(*parts)


class CompletionScreen(ModalScreen[Row | None]):
    """One completion: prompt, reasoning, function, checks, rewards, and its group-mates. Returns the last row seen."""

    BINDINGS = bindings("completion")
    DEFAULT_CSS = """
    CompletionScreen { background: $background; align: center middle; }
    CompletionScreen > .head { height: auto; padding: 0 1; background: $surface; }
    CompletionScreen .mates { height: 1; padding: 0 1; }
    CompletionScreen .body { height: 1fr; }
    CompletionScreen .column { width: 1fr; padding: 0 1; height: 100%; scrollbar-size-vertical: 1; }
    CompletionScreen .column.checks { width: 1fr; }
    CompletionScreen .title { text-style: bold; color: $text-accent; margin-top: 1; height: 1; }
    CompletionScreen .text { height: auto; }
    CompletionScreen .together { display: none; height: 1fr; }
    CompletionScreen.side-by-side .together { display: block; }
    CompletionScreen.side-by-side .body { display: none; }
    CompletionScreen.-narrow .body { layout: vertical; overflow-y: auto; }
    CompletionScreen.-narrow .column { height: auto; width: 100%; overflow-y: hidden; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012

    def __init__(self, file: Path, row: Row, mates: Sequence[Row], neighbours: Sequence[Row]):
        super().__init__()
        self.file = file
        self.row = row
        self.mates = list(mates)
        self.neighbours = list(neighbours)
        """The rows of the table as it was, for going on to the next."""
        self.all_rows: list[Row] = list(neighbours)
        self.completion: Completion | None = None

    def compose(self) -> ComposeResult:
        yield Static("", classes="head")
        yield Static("", classes="mates")
        with Horizontal(classes="body"):
            with VerticalScroll(classes="column"):
                yield Label("Function", classes="title")
                yield Static("", classes="text function")
                yield Label("Rewards", classes="title")
                yield Static("", classes="text rewards")
            with VerticalScroll(classes="column checks"):
                yield Label("Terms", classes="title")
                yield Static("", classes="text terms")
            with VerticalScroll(classes="column"):
                yield Label("Reasoning", classes="title")
                yield Static("", classes="text reasoning", markup=False)
                yield Label("Prompt", classes="title")
                yield Static("", classes="text prompt", markup=False)
        with Horizontal(classes="together"):
            for _ in self.mates:
                yield VerticalScroll(Static("", classes="text mate"), classes="column", can_focus=False)
        yield KeyBar()

    def on_mount(self) -> None:
        self.show_row(self.row)

    def on_resize(self) -> None:
        if self.completion is not None:
            self.call_after_refresh(self._fill)

    def show_row(self, row: Row) -> None:
        """Show another completion in this screen."""
        try:
            self.completion = load(self.file, row)
        except RlvrError as error:
            self.notify(str(error), severity="error")
            return
        self.row = row
        self._fill()

    def _fill(self) -> None:
        one = self.completion
        if one is None:
            return
        where = f"{one.participant}  " if one.participant else f"step {one.step:,}  "
        outcome = (one.outcome.replace("_", " "), f"{HEX.get(one.outcome, '#888888')} bold")
        head = [(f"{one.task}  ", "bold"), (f"{self.row.name}\n", ""), (where, "$foreground 60%"), outcome]
        total = signed(one.reward, "masked")
        cut = ", cut off" if one.truncated else ""
        more = f"  reward {total}  {one.tokens:,} tokens{cut}  {one.cpu_s:.3f} s CPU  verdict {one.verdict}"
        head.append((more, "$foreground 60%"))
        if one.error:
            head.append((f"\n{capped(one.error, 300)}", "$text-error"))
        self.query_one(".head", Static).update(Content.assemble(*head))
        self.query_one(".mates", Static).update(self._mates_line())
        self.query_one(".prompt", Static).update(capped(one.prompt))
        self.query_one(".reasoning", Static).update(capped(reasoning_of(one)) or "none")
        code = capped(one.function) or "no function found in the answer"
        self.query_one(".function", Static).update(colored(code))
        self.query_one(".rewards", Static).update(rewards_text(one))
        width = self.query_one(".checks").size.width - 3
        self.query_one(".terms", Static).update(checks_table(one.checks, max(width, 30)))
        if self.has_class("side-by-side"):
            self._fill_mates()

    def _mates_line(self) -> Content:
        parts: list[tuple[str, str]] = [("group ", "$foreground 60%")]
        for mate in self.mates:
            value = signed(mate.reward, "masked")
            style = HEX.get(mate.outcome, "#888888")
            parts.append(
                (
                    f" {mate.sample}: {mate.outcome.replace('_', ' ')} {value} ",
                    style + (" reverse" if mate == self.row else ""),
                )
            )
        return Content.assemble(*parts)

    def _fill_mates(self) -> None:
        for mate, shown in zip(self.mates, self.query(".mate").results(Static), strict=False):
            try:
                one = load(self.file, mate)
            except RlvrError as error:
                shown.update(str(error))
                continue
            passed = f"{one.hidden_passed} of {one.hidden_total} hidden terms\n\n"
            value = signed(one.reward, "masked")
            head = Content.assemble(
                (f"{mate.sample}: {one.outcome.replace('_', ' ')}", f"{HEX.get(one.outcome, '#888888')} bold"),
                (f"  {value}\n", "bold"),
                (passed, "$foreground 60%"),
            )
            code = colored(capped(one.function) or "no function")
            reasons = Content.assemble(("\n\n" + capped(reasoning_of(one), 1000), "$foreground 60%"))
            shown.update(Content("").join([head, code, reasons]))

    def action_close(self) -> None:
        self.dismiss(self.row)

    def action_mate(self, by: int) -> None:
        if self.mates:
            index = next((index for index, mate in enumerate(self.mates) if mate == self.row), 0)
            self.show_row(self.mates[(index + by) % len(self.mates)])

    def action_mates(self) -> None:
        self.toggle_class("side-by-side")
        self._fill()

    def action_row(self, by: int) -> None:
        """The next row of the table that asks something else, with its own group."""
        index = next((index for index, row in enumerate(self.neighbours) if row == self.row), 0)
        index = min(max(index + by, 0), len(self.neighbours) - 1)
        row = self.neighbours[index]
        self.mates = sorted(
            (one for one in self.all_rows if one.prompt_key == row.prompt_key), key=lambda one: one.sample
        )
        together = self.query_one(".together", Horizontal)
        columns = len(self.query(".mate"))
        for _ in range(columns, len(self.mates)):
            together.mount(VerticalScroll(Static("", classes="text mate"), classes="column", can_focus=False))
        for position, column in enumerate(together.children):
            column.display = position < len(self.mates)
        self.show_row(row)

    def action_copy(self) -> None:
        if self.completion is not None:
            self.app.copy_to_clipboard(self.completion.function)
            self.notify("function copied")

    def action_copy_prompt(self) -> None:
        if self.completion is not None:
            self.app.copy_to_clipboard(self.completion.prompt)
            self.notify("prompt copied")
