"""What earlier cycles teach about the next: outcomes of completions -> what is left out of the sampling."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rlvr import records
from rlvr.records import Completion, Grade, Outcomes, Solves


def always_solved(outcomes_file: Path) -> frozenset[str]:
    """The task ids that the cycle of this file, and the ones before it, solved every time.

    Raises:
        RlvrError: naming the file, when it does not hold outcomes.
    """
    return frozenset(records.read(outcomes_file, Outcomes).always_solved)


def count_outcomes(completions: Iterable[Completion], left_out: Iterable[str] = ()) -> Outcomes:
    """Sum up the completions of a cycle; `left_out` are the always-solved tasks that it did not sample at all.

    Infrastructure failures say nothing about a task and are not counted.
    """
    solves: dict[str, Solves] = {}
    for completion in completions:
        if completion.outcome == "infra":
            continue
        count = solves.setdefault(completion.task, Solves())
        count.samples += 1
        count.solved += completion.outcome == "solved"
        count.matched += completion.hidden_passed > 0
    return Outcomes(
        seen=sorted(solves),
        always_solved=sorted(
            {task for task, count in solves.items() if count.solved == count.samples} | set(left_out)
        ),
        never_matched=sorted(task for task, count in solves.items() if count.matched == 0),
        solves=dict(sorted(solves.items())),
    )


def solved_sometimes(grades: Mapping[str, Sequence[Grade]]) -> tuple[list[str], int, int]:
    """From the graded answers of each task: (ids that some and not all of them solve, how many all do, how many none).

    A group that is all right or all wrong has no advantages and teaches nothing. Infrastructure failures do not count.
    """
    shares = {}
    for task, answers in grades.items():
        scored = [answer.outcome == "solved" for answer in answers if answer.outcome != "infra"]
        shares[task] = sum(scored) / len(scored) if scored else 0.0
    kept = [task for task, share in shares.items() if 0 < share < 1]
    return kept, sum(share == 1 for share in shares.values()), sum(share == 0 for share in shares.values())
