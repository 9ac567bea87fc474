"""One completion in full: its function, terms, rewards, reasoning and prompt, and the other answers to the prompt."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Label, Static

from rlvr.errors import RlvrError
from rlvr.records import Check, Completion
from rlvr.tui.keybar import KeyBar
from rlvr.tui.keys import bindings
from rlvr.tui.palette import kind_color
from rlvr.tui.rows import Row, load
from rlvr.tui.texts import capped, clipped, signed


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
    from textual.highlight import highlight  # slow to import

    return highlight(code, language="python")


def checks_table(checks: Sequence[Check], width: int) -> Content:
    """n / expected / got / match; hidden terms are those the model never saw."""
    label = max([len(check.label) for check in checks] + [1])
    room = max((width - label - 13) // 2, 6)
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
    CompletionScreen .together { display: none; height: 1fr; overflow-x: auto; }
    CompletionScreen.-narrow .together .column { width: 38; }
    CompletionScreen.side-by-side .together { display: block; }
    CompletionScreen.side-by-side .body { display: none; }
    CompletionScreen.-narrow .body { layout: vertical; overflow-y: auto; }
    CompletionScreen.-narrow .body .column { height: auto; width: 100%; overflow-y: hidden; }
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
        self.call_after_refresh(self._fill)  # only now the columns have their width

    def _color(self, outcome: str) -> str:
        return kind_color(outcome, self.app.current_theme.dark)

    def on_resize(self) -> None:
        if self.completion is not None:
            self.call_after_refresh(self._fill)

    def show_row(self, row: Row) -> None:
        """Show another completion in this screen."""
        try:
            self.completion = load(self.file, row)
        except RlvrError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        self.row = row
        self._fill()

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
        for mate, shown in zip(self.mates, self.query(".mate").results(Static), strict=False):
            try:
                one = load(self.file, mate)
            except RlvrError as error:
                shown.update(str(error))
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
