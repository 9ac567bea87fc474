"""What a model can do before it is trained, and whether training from there can teach anything.

The trainer samples some tasks and calls `preflight(answers)`: its `describe()` is one line, its `findings(config)`
those of `diagnosis.py`, before hours are spent. It samples nothing itself, and it is no evaluation: the tasks are
those of the train split.
"""

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rlvr.comparison import VALID_OUTCOMES
from rlvr.config import TrainConfig
from rlvr.diagnosis import (
    ALMOST_ALL,
    MOST_CLIPPED,
    Finding,
    easier_tasks,
    harder_tasks,
    longer_answers,
    most_common_error,
    working_functions,
    working_machine,
)
from rlvr.records import Grade


class Sampled(NamedTuple):
    """An answer of the base model, graded; `truncated` when it was cut at the token limit."""

    grade: Grade
    truncated: bool


class Preflight(NamedTuple):
    """What a model can do before it is trained: shares of answers and of groups, in [0, 1]."""

    num_tasks: int
    samples: int
    num_scored: int
    valid: float
    clipped: float
    pass_1: float
    pass_k: float
    all_right: float
    mixed: float
    all_wrong: float
    error: str

    def describe(self) -> str:
        return (
            f"{self.num_tasks} tasks x {self.samples} answers: {self.valid:.0%} valid functions, {self.clipped:.0%} "
            f"cut off, pass@1 {self.pass_1:.1%}, pass@{self.samples} {self.pass_k:.1%}, groups right/mixed/wrong "
            f"{self.all_right:.0%}/{self.mixed:.0%}/{self.all_wrong:.0%}"
        )

    def findings(self, config: TrainConfig) -> list[Finding]:
        """Why training from here would teach little, the first cause alone."""
        answers = self.num_tasks * self.samples
        if not self.num_scored:
            what = f"none of {answers} answers could be scored{self.error}"
            return [Finding("infrastructure failures", "warning", what, *working_machine())]
        if self.clipped >= MOST_CLIPPED:
            what = f"{self.clipped:.0%} of {answers} answers were cut off before their end"
            return [Finding("most completions clipped", "warning", what, *longer_answers(config))]
        if self.valid == 0:
            what = f"none of {answers} answers is a function that works{self.error}"
            return [Finding("no valid function", "warning", what, *working_functions(config))]
        if self.all_right >= ALMOST_ALL:
            what = f"{self.all_right:.0%} of {self.num_tasks} tasks are solved every time: there is nothing to learn"
            return [Finding("groups almost all right", "warning", what, *harder_tasks(config))]
        if self.all_wrong >= ALMOST_ALL:
            what = f"{self.all_wrong:.0%} of {self.num_tasks} tasks are not solved once in {self.samples} answers"
            return [Finding("groups almost all wrong", "warning", what, *easier_tasks(config))]
        return []


def preflight(answers: Sequence[Sequence[Sampled]]) -> Preflight:
    """Sum up the answers to each task; failures of ours are left out of all but the number of tasks."""
    scored = [[answer for answer in group if answer.grade.outcome != "infra"] for group in answers]
    scored = [group for group in scored if group]
    flat = [answer for group in scored for answer in group]
    solved = [sum(answer.grade.outcome == "solved" for answer in group) for group in scored]
    shares = [won / len(group) for won, group in zip(solved, scored, strict=True)]
    return Preflight(
        num_tasks=len(answers),
        samples=max(map(len, answers), default=0),
        num_scored=len(flat),
        valid=share(answer.grade.outcome in VALID_OUTCOMES for answer in flat),
        clipped=share(answer.truncated for answer in flat),
        pass_1=statistics.fmean(shares) if shares else 0.0,
        pass_k=share(won > 0 for won in solved),
        all_right=share(part == 1 for part in shares),
        mixed=share(0 < part < 1 for part in shares),
        all_wrong=share(part == 0 for part in shares),
        error=most_common_error(answer.grade for group in scored or answers for answer in group),
    )


def share(holds: Iterable[bool]) -> float:
    """The share of what holds; 0 of nothing."""
    values = list(holds)
    return sum(values) / len(values) if values else 0.0
