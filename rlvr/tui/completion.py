"""One completion in full: its function, terms, rewards, reasoning and prompt, and the other answers to the prompt."""

import asyncio
import importlib
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Label, Static

from rlvr.errors import RlvrError
from rlvr.records import Check, Completion
from rlvr.tui.keybar import KeyBar
from rlvr.tui.keys import bindings
from rlvr.tui.palette import kind_color, plain_colors
from rlvr.tui.rows import Row, load
from rlvr.tui.texts import MAX_SHOWN, capped, clipped, signed

MAX_TERM = MAX_SHOWN
"""Characters of a term within which the first difference is looked for."""


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


def colored(code: str) -> Content:
    """Python with its syntax in colours."""
    from textual.highlight import highlight

    return highlight(code, language="python")


def cut_alike(expected: str, got: str, room: int) -> tuple[str, str]:
    """Two values in at most `room` characters each, so that their first difference is seen; equal ones keep both ends.

    >>> cut_alike("1234567890123", "1234567890129", 8), cut_alike("1234567890123", "1234567890123", 8)
    (('…7890123', '…7890129'), ('1234…123', '1234…123'))
    """
    longest = max(len(expected), len(got))
    if longest <= room:
        return expected, got
    if expected == got:
        tail = (room - 1) // 2
        short = f"{expected[: room - 1 - tail]}…{expected[-tail:] if tail else ''}"
        return short, short
    pairs = zip(expected, got, strict=False)
    differs = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(expected), len(got)))
    begin = 0 if differs < room - 2 else min(differs - room // 2, longest - room)

    def cut(text: str) -> str:
        shown = f"…{text[begin + 1 :]}" if begin > 0 else text
        return shown if len(shown) <= room else f"{shown[: room - 1]}…"

    return cut(expected), cut(got)


def divided(one: int, other: int, room: int) -> tuple[int, int]:
    """Widths for two columns that want so much: what one does not need the other has.

    >>> divided(8, 3, 40), divided(30, 3, 20), divided(3, 30, 20), divided(30, 30, 21)
    ((8, 3), (17, 3), (3, 17), (10, 10))
    """
    half = room // 2
    return min(one, max(half, room - other)), min(other, max(half, room - one))


def checks_table(checks: Sequence[Check], width: int) -> Content:
    """n / expected / got / match; hidden terms are those the model never saw."""
    label = max([len(check.label) for check in checks] + [1])
    pairs = [(clipped(check.expected, MAX_TERM), clipped(check.got or "–", MAX_TERM)) for check in checks]
    left, right = divided(
        max(len("expected"), *(len(expected) for expected, _ in pairs), 0),
        max(len("got"), *(len(got) for _, got in pairs), 0),
        max(width - label - 14, 12),
    )
    lines = [Content.styled(f"{'n':<{label}}  {'expected':>{left}}  {'got':>{right}}  match", "bold")]
    for check, (expected, got) in zip(checks, pairs, strict=True):
        # Where one column is narrower, all that stands in it fits.
        expected, got = cut_alike(expected, got, max(left, right))
        mark, style = ("✓", "$text-success") if check.passed else ("✗", "$text-error")
        shown = " shown" if check.shown else ""
        lines.append(
            Content.assemble(
                (f"{check.label:<{label}}  {expected:>{left}}  ", ""),
                (f"{got:>{right}}", "" if check.passed else "$text-error"),
                (f"  {mark}", style),
                (shown, "$foreground 60%"),
            )
        )
    return Content("\n").join(lines)


def rewards_text(completion: Completion, width: int) -> Content:
    """Each reward with its reason, wrapped below its name."""
    parts: list[tuple[str, str]] = []
    for reward in completion.rewards:
        value = signed(reward.value).rjust(5)
        style = "$foreground 60%" if not reward.value else "$text-success" if reward.value > 0 else "$text-error"
        parts += [(f"{value}  ", style), (f"{reward.name}\n", "bold")]
        reason = textwrap.wrap(capped(reward.reason, 500), max(width - 7, 20)) or [""]
        parts += [(f"       {line}\n", "$foreground 60%") for line in reason]
    total = signed(completion.reward, "masked").rjust(5)
    parts += [(f"{total}  ", "bold"), ("total", "bold")]
    if completion.advantage is not None:
        parts += [(f"  advantage {completion.advantage:+.2f}", "$foreground 60%")]
    return Content.assemble(*parts)


def load_all(file: Path, rows: Sequence[Row]) -> list[Completion | str]:
    """The completions of these rows, or in words why one cannot be read."""
    found: list[Completion | str] = []
    for row in rows:
        try:
            found.append(load(file, row))
        except RlvrError as error:
            found.append(str(error))
    return found


class CompletionScreen(ModalScreen[Row | None]):
    """One completion: prompt, reasoning, function, checks, rewards, and its group-mates. Returns the last row seen.

    Args:
        mates: the answers to the prompt of a row, itself among them.
        neighbours: the rows of the table as it is, for going on to the next.
    """

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
    CompletionScreen .together { display: none; height: 1fr; overflow-x: auto; }
    CompletionScreen.-narrow .together .column { width: 38; }
    CompletionScreen.side-by-side .together { display: block; }
    CompletionScreen.side-by-side .body { display: none; }
    CompletionScreen.-narrow .body { layout: vertical; overflow-y: auto; }
    CompletionScreen.-narrow .body .column { height: auto; width: 100%; overflow-y: hidden; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012

    def __init__(self, file: Path, row: Row, mates: Callable[[Row], list[Row]], neighbours: Sequence[Row]):
        super().__init__()
        self.file = file
        self.row = row
        self.find_mates = mates
        self.mates: list[Row] = []
        self.neighbours = list(neighbours)
        self.completion: Completion | None = None
        self.answers: list[Completion | str] = []
        """The mates in full, or what is wrong with them; read only for showing them side by side."""
        self.columns: list[Static] = []
        """Where they stand."""

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
        yield Horizontal(classes="together")
        yield KeyBar()

    def on_mount(self) -> None:
        self.show_row(self.row)

    def _color(self, outcome: str) -> str:
        return kind_color(outcome, plain_colors(self.app.theme_variables, self.app.current_theme.dark)[0])

    def on_resize(self) -> None:
        self.call_after_refresh(self._fill)  # only then the columns have their width

    def show_row(self, row: Row) -> None:
        """Show another completion in this screen, once it is read."""
        before, self.row = self.row, row
        self.read(row, before)

    @work(exclusive=True)
    async def read(self, row: Row, before: Row) -> None:
        together = self.has_class("side-by-side")
        try:
            self.completion = await asyncio.to_thread(load, self.file, row)
        except RlvrError as error:
            self.row = before
            self.notify(str(error), severity="error", markup=False)
            return
        self.mates = await asyncio.to_thread(self.find_mates, row)
        await asyncio.to_thread(importlib.import_module, "textual.highlight")  # it takes a moment
        self.answers = await asyncio.to_thread(load_all, self.file, self.mates) if together else []
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        one = self.completion
        if one is None:
            return
        where = f"{one.participant}  " if one.participant else f"step {one.step:,}  "
        outcome = (one.outcome.replace("_", " "), f"{self._color(one.outcome)} bold")
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
        width = self.query_one(".checks").size.width - 3
        self.query_one(".rewards", Static).update(rewards_text(one, width))
        self.query_one(".terms", Static).update(checks_table(one.checks, max(width, 30)))
        if self.has_class("side-by-side"):
            self._fill_mates()

    def _mates_line(self) -> Content:
        parts: list[tuple[str, str]] = [("group ", "$foreground 60%")]
        for mate in self.mates:
            value = signed(mate.reward, "masked")
            style = self._color(mate.outcome)
            parts.append(
                (
                    f" {mate.sample}: {mate.outcome.replace('_', ' ')} {value} ",
                    style + (" reverse" if mate == self.row else ""),
                )
            )
        return Content.assemble(*parts)

    def _fill_mates(self) -> None:
        while len(self.columns) < len(self.answers):
            shown = Static("", classes="text mate")
            self.columns.append(shown)
            self.query_one(".together").mount(VerticalScroll(shown, classes="column", can_focus=False))
        for position, column in enumerate(self.query_one(".together").children):
            column.display = position < len(self.answers)
        for mate, one, shown in zip(self.mates, self.answers, self.columns, strict=False):
            if isinstance(one, str):
                shown.update(one)
                continue
            passed = f"{one.hidden_passed} of {one.hidden_total} hidden terms\n\n"
            value = signed(one.reward, "masked")
            head = Content.assemble(
                (f"{mate.sample}: {one.outcome.replace('_', ' ')}", f"{self._color(one.outcome)} bold"),
                (f"  {value}\n", "bold"),
                (passed, "$foreground 60%"),
            )
            code = colored(capped(one.function) or "no function")
            reasons = Content.assemble(("\n\n" + capped(reasoning_of(one), 1000), "$foreground 60%"))
            shown.update(Content("").join([head, code, reasons]))
            if mate == self.row:
                self.call_after_refresh(shown.scroll_visible, animate=False)

    def action_close(self) -> None:
        self.dismiss(self.row)

    def action_mate(self, by: int) -> None:
        if self.mates:
            index = next((index for index, mate in enumerate(self.mates) if mate == self.row), 0)
            self.show_row(self.mates[(index + by) % len(self.mates)])

    def action_mates(self) -> None:
        self.toggle_class("side-by-side")
        self.show_row(self.row)

    def action_row(self, by: int) -> None:
        """The next row of the table, with its own group."""
        index = next((index for index, row in enumerate(self.neighbours) if row == self.row), 0)
        self.show_row(self.neighbours[min(max(index + by, 0), len(self.neighbours) - 1)])

    def action_copy(self) -> None:
        if self.completion is not None:
            self.app.copy_to_clipboard(self.completion.function)
            self.notify("function copied")

    def action_copy_prompt(self) -> None:
        if self.completion is not None:
            self.app.copy_to_clipboard(self.completion.prompt)
            self.notify("prompt copied")
