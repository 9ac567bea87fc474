"""One run closely: graphs, completions, log, config with the origin of every value, the doctor's verdict, notes."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.text import Text
from textual import on
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static, TabbedContent, TabPane, Tabs

from rlvr import records
from rlvr.config import EvalConfig, TrainConfig, read_layers, read_toml, resolve
from rlvr.cycles import Run
from rlvr.diagnosis import Finding, conclusion
from rlvr.errors import RlvrError
from rlvr.layer_files import toml_text
from rlvr.listing import Row
from rlvr.records import Evaluation, Round, Tail
from rlvr.tui.chart import ChartGrid
from rlvr.tui.chosen import ChosenRunPage
from rlvr.tui.follow import LogView, Progress
from rlvr.tui.gpu import GpuLine
from rlvr.tui.graphs import RunCharts, RunCompletions
from rlvr.tui.result import result_panes, show_result
from rlvr.tui.table import KeyedTable
from rlvr.tui.verbs import PANES, page_bindings
from rlvr.tui.words import gain_text, share_text, shorten

ROUNDS = ("Round", "Cycle", "Evaluation", "Solved", "Against base", "Better")
"""The columns of the rounds of an auto run."""


class MonitorPage(ChosenRunPage):
    """A run of any kind; which panes there are depends on it."""

    key = "runs"
    BINDINGS = page_bindings(*PANES, "kill", "resume")
    AUTO_FOCUS = ""  # a table of a pane that is not up would have that come up

    def __init__(self, run: Run, step: int | None = None):
        super().__init__()
        self.run = run
        self.step = step
        """The step whose completions are to be seen first."""
        self.row: Row | None = None

    def body(self) -> Iterable[Widget]:
        yield Progress(id="progress")
        yield GpuLine()
        with TabbedContent(id="panes"):
            if self.run.kind == "train":
                with TabPane("Graphs", id="pane-graphs"):
                    yield RunCharts(id="graphs")
            if self.run.kind == "eval":
                yield from result_panes(self.run.folder)
            if self.run.kind == "auto":
                with TabPane("Rounds", id="pane-rounds"):
                    yield KeyedTable(*ROUNDS, id="rounds", elastic=("Evaluation",))
            else:
                with TabPane("Completions", id="pane-completions"):
                    yield RunCompletions(id="answers")
            with TabPane("Log", id="pane-log"):
                yield LogView(id="log")
            with TabPane("Config", id="pane-config"):
                yield KeyedTable("Key", "Value", "From", "Default", id="snapshot", elastic=("Value", "Default"))
            if self.run.kind == "train":
                with TabPane("Doctor", id="pane-doctor"), VerticalScroll():
                    yield Static("", id="verdict")
            with TabPane("Notes", id="pane-notes"), VerticalScroll():
                yield Static("", id="notes", markup=False)

    def on_mount(self) -> None:
        self.query_one(LogView).follow(self.run.files.log)
        files = self.run.files
        if self.run.kind != "auto":
            self.query_one(RunCompletions).follow(files.trace if self.run.kind == "train" else files.completions)
        if self.run.kind == "train":
            self.query_one(RunCharts).follow([self.run])
            self.query_one(RunCharts).focus()
        else:
            self.query_one(Tabs).focus()
        if self.step is not None:
            self.show_step(self.step)

    def show_step(self, step: int) -> None:
        """The completions of a step."""
        self.query_one(TabbedContent).active = "pane-completions"
        self.query_one(RunCompletions).table.find(f"step:{step}")
        self.query_one(RunCompletions).table.focus()

    @on(ChartGrid.StepChosen)
    def choose_step(self, event: ChartGrid.StepChosen) -> None:
        self.show_step(event.step)

    def load(self) -> None:
        self.read(lambda: read_snapshot(self.run), self.show_snapshot)
        self.read(lambda: read_notes(self.run), self.query_one("#notes", Static).update)

    def show_rows(self, rows: Sequence[Row]) -> None:
        before, self.row = self.row, self.board.row(self.run.name)
        self.query_one(Progress).take_row(self.row)
        if self.row is None or (before and (before.step, before.state) == (self.row.step, self.row.state)):
            return
        if self.run.kind == "train":
            self.look_at_verdict()
        elif self.run.kind == "auto":
            self.read(lambda: read_rounds(self.run), self.query_one("#rounds", KeyedTable).show)
        else:
            self.read(lambda: read_result(self.run), lambda it: show_result(self, it) if it else None)
        self.refresh_bindings()

    def look_at_verdict(self) -> None:
        """Have the run examined, which takes a second of a long one: only while that is looked at."""
        if self.query_one(TabbedContent).active == "pane-doctor":
            self.read(lambda: examine(self.run), self.show_verdict)

    def show_snapshot(self, rows: dict[str, tuple[str, str, str]]) -> None:
        muted, accent = self.color("text-muted"), self.color("text-accent")
        self.query_one("#snapshot", KeyedTable).show(
            {
                name: (
                    name,
                    shorten(value),
                    Text.assemble((origin, muted if origin == "default" else accent)),
                    Text.assemble(("" if default == value else shorten(default), muted)),
                )
                for name, (value, origin, default) in rows.items()
            }
        )

    def show_verdict(self, verdict: "Verdict") -> None:
        text = Text.assemble((verdict.conclusion, "bold"), "\n")
        for finding, command in verdict.findings:
            look = self.color("text-error" if finding.severity == "dead" else "text-warning")
            text.append(f"\n{finding.severity}: {finding.title}\n", style=look)
            text.append(f"  {finding.what}\n")
            text.append(f"  → {finding.change}\n", style=self.color("text-success"))
            if command:
                text.append(f"    {command}\n", style=self.color("text-muted"))
        self.query_one("#verdict", Static).update(text)

    @property
    def chosen(self) -> Row | None:
        return self.row

    def focus_main(self) -> None:
        self.focus_next()

    def copied(self) -> str:
        return str(self.run.folder)

    @on(TabbedContent.TabActivated)
    def turned(self, event: TabbedContent.TabActivated) -> None:
        if event.pane.id == "pane-notes":
            self.read(lambda: read_notes(self.run), self.query_one("#notes", Static).update)
        elif event.pane.id == "pane-doctor":
            self.look_at_verdict()


def read_result(run: Run) -> Evaluation | None:
    """What came of an evaluation; None before it has ended."""
    return records.read(run.files.evaluation, Evaluation) if run.files.evaluation.exists() else None


def read_rounds(run: Run) -> dict[str, tuple[str, ...]]:
    """The finished rounds of an auto run as rows of a table."""
    rounds = Tail(run.files.rounds, Round).read()
    return {
        str(each.round): (
            str(each.round),
            each.cycle,
            each.evaluation,
            share_text(each.solved),
            gain_text(each),
            "yes" if each.improved else "no",
        )
        for each in rounds
    }


class Verdict(NamedTuple):
    conclusion: str
    findings: list[tuple[Finding, str]]
    """Each with the command that makes the change, or ""."""


def examine(run: Run) -> Verdict:
    """What the doctor says of a cycle as it is now."""
    from rlvr.cli import check

    try:
        seen = check.examine(run.files)
    except RlvrError as error:
        return Verdict(f"nothing can be said: {error}", [])
    findings = [(finding, check.command_for(finding, run, run.files)) for finding in seen.findings]
    return Verdict(conclusion(seen.steps, seen.findings), findings)


def read_snapshot(run: Run) -> dict[str, tuple[str, str, str]]:
    """What a run ran with: key -> value, origin, default; then how it came about, under names with a dot."""
    if not run.files.config.is_file():
        return {}
    config_class = EvalConfig if run.kind == "eval" else TrainConfig
    config, origins = resolve(config_class, read_layers(run.files.config, config_class))
    defaults = vars(config_class())
    found = {
        name: (toml_text(value), origins[name], toml_text(defaults[name])) for name, value in vars(config).items()
    }
    provenance = read_toml(run.files.config).get("provenance", {})
    found |= {f"provenance.{name}": (str(value), "", str(value)) for name, value in provenance.items()}
    return found


def read_notes(run: Run) -> str:
    try:
        return run.files.notes.read_text(encoding="utf-8")
    except OSError:
        return "No notes yet: N in the list of runs writes one."
