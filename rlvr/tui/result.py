"""What came of an evaluation, as panes of a run: intervals, the difference task by task, the pass@k curve."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.style import Style
from rich.text import Text
from textual.containers import ScrollableContainer
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static, TabPane

from rlvr.records import OUTCOMES, Evaluation, Interval, Participant, TaskScore
from rlvr.statistics import pass_at_k
from rlvr.tui.figure import Curve, View
from rlvr.tui.graphs import PageCharts
from rlvr.tui.series import Metrics
from rlvr.tui.table import Cell, KeyedTable
from rlvr.tui.words import color_of, interval_text

PASS = "pass@k"


class PassCharts(PageCharts):
    """The pass@k curves of an evaluation; their x is k, so that there are no completions of a step."""

    def __init__(self, folder: Path):
        super().__init__(View(smoothing=0.0), id="pass")
        self.beside = folder

    @property
    def folder(self) -> Path:
        return self.beside

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in ("step_rows", "times")


def result_panes(folder: Path) -> Iterable[Widget]:
    """The panes of the evaluation in this folder, empty; `show_result` fills them."""
    with TabPane("Result", id="pane-result"), ScrollableContainer(id="result-scroll"):
        yield Static("no result yet: it is written when all completions are graded", id="result")
        yield Static("", id="intervals")
    with TabPane("Tasks", id="pane-tasks"):
        yield KeyedTable("Task", "Better", "", id="tasks")
    with TabPane(PASS, id="pane-pass"):
        yield PassCharts(folder)


def show_result(screen: Screen, result: Evaluation) -> None:
    """Fill the panes of a screen."""
    screen.query_one("#result", Static).update(result_text(screen, result))
    screen.query_one("#intervals", Static).update(result_figures(screen, result))
    table = screen.query_one("#tasks", KeyedTable)
    names = [person.name for person in result.participants]
    table.retitle("Task", "Better", *names)
    table.show(task_rows(screen, result))
    curves = [Curve(person.name, pass_curve(person), hue) for hue, person in enumerate(result.participants)]
    screen.query_one(PassCharts).show(curves)


def result_text(screen: Screen, result: Evaluation) -> Text:
    """What was compared, and what follows."""
    muted = color_of(screen.app, "text-muted")
    text = Text.assemble((result.title, "bold"), "\n")
    greedy = "greedy" if not result.temperature else f"temperature {result.temperature:g}"
    text.append(f"{result.base_model}, {greedy}, up to {result.max_new_tokens:,} tokens, seed {result.seed}\n", muted)
    for conclusion in result.conclusions:
        text.append(f"\n{conclusion}\n")
    return text


def result_figures(screen: Screen, result: Evaluation) -> Text:
    """The numbers: of every participant, and of every difference. Lines are as long as they are."""
    muted = color_of(screen.app, "text-muted")
    text = Text.assemble(("Each checkpoint, in %, with its 95 % interval\n", "bold"))
    people = result.participants
    rows = [
        ["", *(person.name for person in people)],
        ["solved", *(bare(person.solved) for person in people)],
        ["mean_holdout_match", *(bare(person.mean_holdout_match) for person in people)],
        *([f"pass@{k}", *(bare(person.pass_at[k]) for person in people)] for k in people[0].pass_at),
        ["produced_valid_fn", *(f"{person.produced_valid_fn:.1%}" for person in people)],
        *([name, *(str(person.outcomes.get(name, 0)) for person in people)] for name in OUTCOMES),
    ]
    text.append_text(aligned([row for row in rows if any(cell != "0" for cell in row[1:])], muted))
    head = ["", "difference", "won", "lost", "tied", "p", "needed"]
    rows = [
        [
            each.metric,
            interval_text(each.difference, signed=True),
            str(len(each.won)),
            str(len(each.lost)),
            str(each.tied),
            f"{each.p_value:.3f}",
            f"{100 * each.detectable:.1f}",
        ]
        for each in result.differences
    ]
    pairs = [f"{each.second} - {each.first}" for each in result.differences]
    for pair in dict.fromkeys(pairs):
        text.append(f"\n{pair} on the same tasks, in points, with its 95 % interval\n", "bold")
        text.append_text(aligned([head, *(row for row, of in zip(rows, pairs, strict=True) if of == pair)], muted))
    text.append("\nneeded: so large a true difference would show in 4 of 5 such comparisons.", muted)
    return text


def bare(interval: Interval) -> str:
    """Without the sign of per cent, so that three beside each other fit into 80 columns."""
    return interval_text(interval).replace(" %", "")


def aligned(rows: Sequence[Sequence[str]], muted: Style) -> Text:
    """Rows under each other; the first is a header."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    text = Text()
    for number, row in enumerate(rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        text.append(f"  {line}\n", muted if not number else "")
    return text


def task_rows(screen: Screen, result: Evaluation) -> dict[str, tuple[Cell, ...]]:
    """A row a task: who is better, what each participant solved of it; what differs comes first."""
    good, bad, muted = (color_of(screen.app, name) for name in ("text-success", "text-error", "text-muted"))
    first, last = result.participants[0], result.participants[-1]
    rows: dict[str, tuple[Cell, ...]] = {}

    def gain(task: str) -> float:
        return share(last.scores.get(task)) - share(first.scores.get(task))

    for task in sorted(result.tasks, key=lambda task: (-abs(gain(task)), -gain(task), task)):
        change = gain(task)
        words = (
            f"{last.name} +{change:.0%}" if change > 0 else f"{first.name} +{-change:.0%}" if change < 0 else "same"
        )
        look = good if change > 0 else bad if change < 0 else muted
        scores = [score_text(person.scores.get(task)) for person in result.participants]
        rows[task] = (task, Text.assemble((words, look)), *scores)
    return rows


def share(score: TaskScore | None) -> float:
    return score.solved / score.scored if score and score.scored else 0.0


def score_text(score: TaskScore | None) -> str:
    if score is None or not score.scored:
        return "not scored"
    match = "" if score.match is None else f", {score.match:.0%} terms"
    return f"{score.solved}/{score.scored}{match}"


def pass_curve(person: Participant) -> Metrics:
    """pass@k for every k up to the samples of a task, as a series over k."""
    scored = [score for score in person.scores.values() if score.scored]
    most = min((score.scored for score in scored), default=0)
    ks = range(1, most + 1)
    metrics = Metrics()
    values = [sum(pass_at_k(score.scored, score.solved, k) for score in scored) / len(scored) for k in ks]
    metrics.extend({"step": list(map(float, ks)), PASS: values}, most)
    return metrics
