"""From graded completions to what an evaluation says: a participant's numbers, differences, and a sentence for each.

The evaluator calls `summarize` for each checkpoint and `compare` for each pair; both work on records alone, so that a
saved `eval.json` can be compared again. The formulas are in `rlvr/statistics.py`; what they mean, in
`docs/evaluation.md`. It knows tasks by their id, and nothing of models.
"""

from collections import Counter
from collections.abc import Sequence

from rlvr import records, statistics
from rlvr.errors import RlvrError
from rlvr.records import Completion, Difference, Interval, Participant, TaskScore

VALID_OUTCOMES = ("solved", "partial", "wrong", "lookup")
"""What a function that runs within the rules can come to, right or wrong."""

SIGNIFICANT_P = 0.05


def score_tasks(tasks: Sequence[str], completions: Sequence[Completion]) -> dict[str, TaskScore]:
    """Count per task id, in the order of `tasks`; completions that failed on our side count nowhere."""
    scored: dict[str, list[Completion]] = {task: [] for task in tasks}
    for completion in completions:
        if completion.outcome != "infra":
            scored[completion.task].append(completion)
    return {
        task: TaskScore(
            scored=len(lines),
            solved=sum(line.outcome == "solved" for line in lines),
            match=sum(map(holdout_match, lines)) / len(lines) if lines else None,
        )
        for task, lines in scored.items()
    }


def holdout_match(completion: Completion) -> float:
    """The share of hidden checks passed; an answer that breaks the rules earns none."""
    broke_rules = completion.outcome == "disallowed_import"
    return 0.0 if broke_rules or not completion.hidden_total else completion.hidden_passed / completion.hidden_total


def task_value(metric: str, score: TaskScore) -> float | None:
    """A task's score in [0, 1] in a metric; None where it has too few scored completions for it.

    Metrics are "mean_holdout_match", "solved" (the share of its completions that are) and "pass@k".
    """
    if metric == "mean_holdout_match":
        return score.match
    k = 1 if metric == "solved" else int(metric.removeprefix("pass@"))
    return statistics.pass_at_k(score.scored, score.solved, k) if score.scored >= k else None


def pass_ks(samples: int) -> list[int]:
    """The k that are reported: powers of two up to the number of samples, and that number: 10 -> [1, 2, 4, 8, 10]."""
    powers = [2**power for power in range(samples.bit_length())]
    return powers if samples in powers else [*powers, samples]


def summarize(
    completions: Sequence[Completion],
    *,
    tasks: Sequence[str],
    samples: int,
    name: str,
    adapter: str,
    sha256: str,
    seconds: float,
) -> Participant:
    """The numbers of one participant from all its completions, `samples` for each of `tasks`.

    Raises:
        RlvrError: when so much failed on our side that a metric has no task left.
    """
    scores = score_tasks(tasks, completions)

    def interval(metric: str) -> Interval:
        values = [value for score in scores.values() if (value := task_value(metric, score)) is not None]
        if not values:
            raise RlvrError(
                f"{name}: no task has enough graded completions for {metric}: the grading itself failed; the lines "
                "with outcome infra in completions.jsonl say why"
            )
        return statistics.mean_interval(values)

    outcomes = Counter(completion.outcome for completion in completions)
    num_scored = len(completions) - outcomes["infra"]
    return Participant(
        name=name,
        adapter=adapter,
        sha256=sha256,
        mean_holdout_match=interval("mean_holdout_match"),
        solved=interval("solved"),
        pass_at={str(k): interval(f"pass@{k}") for k in pass_ks(samples)},
        produced_valid_fn=sum(outcomes[outcome] for outcome in VALID_OUTCOMES) / num_scored,
        lookups=outcomes["lookup"],
        truncated=sum(completion.truncated for completion in completions),
        timeouts=outcomes["timeout"],
        infra=outcomes["infra"],
        outcomes={outcome: outcomes[outcome] for outcome in records.OUTCOMES if outcomes[outcome]},
        tokens=sum(completion.tokens for completion in completions),
        seconds=round(seconds, 3),
        scores=scores,
    )


def compare(first: Participant, second: Participant, metric: str) -> Difference:
    """`second` minus `first` on the tasks that both have a score for.

    Raises:
        RlvrError: when there is no such task.
    """
    pairs: dict[str, tuple[float, float]] = {}
    for task, score in first.scores.items():
        before, after = task_value(metric, score), task_value(metric, second.scores[task])
        if before is not None and after is not None:
            pairs[task] = (before, after)
    if not pairs:
        raise RlvrError(f"{first.name} and {second.name}: no task has graded completions of both: evaluate them again")
    befores, afters = zip(*pairs.values(), strict=True)
    won = [task for task, (before, after) in pairs.items() if after > before]
    lost = [task for task, (before, after) in pairs.items() if after < before]
    # The same weights, asked the same way, give the same answers: nothing was left to chance.
    same = same_checkpoint(first, second) and not won and not lost
    return Difference(
        first=first.name,
        second=second.name,
        metric=metric,
        num_tasks=len(pairs),
        difference=Interval(0.0, 0.0, 0.0) if same else statistics.paired_difference(befores, afters),
        won=won,
        lost=lost,
        tied=len(pairs) - len(won) - len(lost),
        p_value=statistics.sign_test_p(len(won), len(lost)),
        detectable=statistics.minimum_detectable_effect(befores, afters),
        same_checkpoint=same,
    )


def same_checkpoint(first: Participant, second: Participant) -> bool:
    return first.sha256 == second.sha256  # of the weights; "" for the base model


def conclude(difference: Difference, noun: str) -> str:
    """One plain sentence about a difference in `solved`; `noun` is what the tasks are called."""
    first, second, interval = difference.first, difference.second, difference.difference
    if difference.same_checkpoint:
        return f"{second} and {first} are the same checkpoint."
    found = (
        f"{points(interval.estimate)} points, 95 % interval {points(interval.low)} to {points(interval.high)}, "
        f"exact p = {difference.p_value:.2g}"
    )
    clear, unlikely = interval.low > 0 or interval.high < 0, difference.p_value < SIGNIFICANT_P
    if clear and unlikely:
        more = "more" if interval.estimate > 0 else "fewer"
        return f"{second} solves {more} than {first} ({found}): the interval excludes 0."
    if clear or unlikely:
        return f"Borderline, {second} against {first} ({found}): only one of interval and exact test excludes chance."
    return (
        f"No difference between {second} and {first} that these {difference.num_tasks} {noun} could show ({found}). "
        f"A true difference of {100 * difference.detectable:.0f} points would show in 4 of 5 such comparisons."
    )


def points(share: float) -> str:
    """Percentage points with their sign; 0 has none."""
    return f"{100 * share:+.1f}" if round(100 * share, 1) else "0.0"
