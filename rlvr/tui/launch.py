"""The window that starts a cycle: what it starts from, keys for this cycle, and the plan before anything runs."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from rich.text import Text
from textual import on, work
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.widget import Widget
from textual.widgets import Button, Checkbox, Input, Label, Select, Static

from rlvr import cycles, records, runs
from rlvr.budget import preview
from rlvr.cycles import Run
from rlvr.errors import RlvrError
from rlvr.layer_files import toml_text
from rlvr.records import Step
from rlvr.tui.dialogs import Dialog, Problem
from rlvr.tui.form import begin, parse_overrides
from rlvr.tui.words import color_of

COLD = "(base model)"
QUIET_S = 0.3
"""Without typing, before the plan is made anew."""


class PlanText(NamedTuple):
    """What is shown of a plan: warm or cold start, values that are no default with their origin, what it costs."""

    start: str
    keys: list[tuple[str, str, str]]
    rows: list[tuple[str, str]]


def make_plan(model: str, overrides: dict[str, str], parent: str) -> PlanText:
    """The next cycle as it would run.

    Raises:
        RlvrError: for whatever would keep it from starting.
    """
    plan = runs.plan_cycle(model, overrides, parent)
    earlier: list[Step] = []
    for run in cycles.cycle_runs(model)[-3:]:
        if run.files.metrics.exists():
            earlier += records.read_lines(run.files.metrics, Step)
    chosen = [(name, toml_text(value), plan.origins[name]) for name, value in vars(plan.config).items()]
    return PlanText(
        f"warm start from {plan.warm_from}" if plan.warm_from else "cold start from the base model",
        [row for row in chosen if row[2] != "default"],
        preview(plan.config, earlier),
    )


def adapters_of(model: str) -> list[str]:
    """The cycles that the next one can start from, the oldest first."""
    return [run.name for run in cycles.cycle_runs(model) if cycles.has_adapter(run)]


class NewCycle(Dialog[Run]):
    """Ask how the next cycle of a model begins, show its plan, start it; returns the run."""

    AUTO_FOCUS = "#ok"
    BINDINGS = [Binding("ctrl+r", "start", "Start", show=False)]  # noqa: RUF012

    def __init__(self, model: str, adapters: Sequence[str]):
        super().__init__(f"Next cycle of {model}", "Start", "dialog wide")
        self.model = model
        self.adapters = adapters

    def body(self) -> Iterable[Widget]:
        adapters = self.adapters
        choices = [("the latest adapter" if adapters else "the base model: there is no adapter yet", runs.LATEST)]
        choices += [(f"cycle {name}", name) for name in reversed(adapters)]
        if adapters:
            choices.append(("the base model: cold start", COLD))
        with Horizontal(classes="field"):
            yield Label("Start from")
            yield Select(choices, value=runs.LATEST, allow_blank=False, id="parent", compact=True)
        with Horizontal(classes="field"):
            yield Label("Only this time")
            yield Input(placeholder="key=value ..., such as max_steps=40", id="overrides", compact=True)
        yield Checkbox("begin at once, even beside a running one", id="at-once", compact=True)
        with VerticalScroll(id="plan"):
            yield Static("", id="plan-text")

    def on_mount(self) -> None:
        self.show_plan()

    @property
    def parent_wanted(self) -> str:
        value = str(self.query_one("#parent", Select).value)
        return "" if value == COLD else value

    @on(Input.Changed)
    @on(Select.Changed)
    @work(exclusive=True, group="plan")
    async def show_plan(self) -> None:
        await asyncio.sleep(QUIET_S)
        try:
            overrides = parse_overrides(self.query_one("#overrides", Input).value)
            plan = await asyncio.to_thread(make_plan, self.model, overrides, self.parent_wanted)
        except (RlvrError, OSError) as error:
            self.query_one(Problem).update(str(error))
            self.query_one("#ok", Button).disabled = True
            return
        self.query_one(Problem).update("")
        self.query_one("#ok", Button).disabled = False
        self.query_one("#plan-text", Static).update(self.plan_text(plan))

    def plan_text(self, plan: PlanText) -> Text:
        text = Text.assemble((plan.start, "bold"), "\n")
        width = max(len(name) for name, _ in plan.rows)
        for name, value in plan.rows:
            text.append(f"{name:>{width}}  ", style=color_of(self.app, "text-muted"))
            text.append(value + "\n")
        text.append("\nSet, in the layer beside it; all else is a default\n", style="bold")
        for name, value, origin in plan.keys:
            text.append(f"{name} = {value}", style=color_of(self.app, "foreground"))
            text.append(f"  {origin}\n", style=color_of(self.app, "text-accent"))
        return text

    @on(Input.Submitted)
    @on(Button.Pressed, "#ok")
    @work(exclusive=True, group="begin")
    async def action_start(self) -> None:
        self.query_one("#ok", Button).disabled = True
        notes: list[str] = []
        try:
            overrides = parse_overrides(self.query_one("#overrides", Input).value)
            queue = not self.query_one("#at-once", Checkbox).value
            parent = self.parent_wanted
            start = partial(runs.begin_cycle, self.model, overrides, parent=parent, queue=queue, notice=notes.append)
            run = await asyncio.to_thread(begin, start)
        except (RlvrError, OSError) as error:
            self.query_one(Problem).update(str(error))
            self.query_one("#ok", Button).disabled = False
            return
        for text in notes:
            self.notify(text, markup=False)
        self.dismiss(run)
