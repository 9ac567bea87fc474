"""Learning curves of a cycle as a PNG: `python -m rlvr.curves training/demo/001/metrics.jsonl curves.png`.

A picture for a page or a README; the live view in a terminal is another program.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rlvr import records
from rlvr.arguments import run_program
from rlvr.errors import RlvrError
from rlvr.records import OUTCOMES, Step

OUTCOME_COLORS = {
    "solved": "#2a9d4a",
    "partial": "#a6d96a",
    "wrong": "#d9d9d9",
    "lookup": "#b35806",
    "disallowed_import": "#c51b7d",
    "invalid": "#7f7f7f",
    "truncated": "#fdae61",
    "timeout": "#f46d43",
    "infra": "#000000",
}


def smoothed(values: Sequence[float | None], weight: float = 0.9) -> np.ndarray:
    """Bias-corrected exponential moving average, as TensorBoard draws it; a missing value repeats the last average."""
    average, correction, result = 0.0, 0.0, []
    for value in values:
        if value is not None:
            average = weight * average + (1 - weight) * value
            correction = weight * correction + (1 - weight)
        result.append(average / correction if correction else np.nan)
    return np.array(result)


def draw(steps: Sequence[Step], png: Path, title: str) -> None:
    """Draw reward, outcomes, groups, and lengths over the steps of one cycle."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, ((reward, outcomes), (groups, lengths)) = pyplot.subplots(2, 2, figsize=(12, 7), layout="constrained")
    figure.suptitle(title)
    x = [step.step for step in steps]

    rewards = [step.reward for step in steps]
    reward.plot(x, np.array(rewards, dtype=float), color="#2a6fbb", alpha=0.25, linewidth=1, label="each step")
    reward.plot(x, smoothed(rewards), color="#2a6fbb", linewidth=2, label="smoothed (0.9)")
    reward.set(title="Mean reward (solved 1.0, worst -1.0)", xlabel="step", xlim=(x[0], max(x[-1], x[0] + 1)))
    reward.legend(frameon=False)

    seen = [name for name in OUTCOMES if any(name in step.outcomes for step in steps)]
    shares = [smoothed([step.outcomes.get(name, 0) / sum(step.outcomes.values()) for step in steps]) for name in seen]
    outcomes.stackplot(x, shares, labels=seen, colors=[OUTCOME_COLORS[name] for name in seen])
    outcomes.set(title="What became of the completions (smoothed)", xlabel="step", ylim=(0, 1), xlim=reward.get_xlim())
    outcomes.legend(loc="lower left", fontsize="small", ncols=2)

    parts = [(step.all_right, step.mixed, step.all_wrong) for step in steps]
    shares = [smoothed(part) for part in zip(*parts, strict=True)]
    groups.stackplot(x, shares, labels=("all right", "mixed", "all wrong"), colors=["#2a9d4a", "#f2c14e", "#b0b0b0"])
    groups.set(
        title="Groups: only mixed ones teach solving (smoothed)", xlabel="step", ylim=(0, 1), xlim=reward.get_xlim()
    )
    groups.legend(loc="lower left", fontsize="small")

    lengths.plot(x, [step.length_mean for step in steps], color="#6a51a3", label="mean")
    lengths.plot(x, [step.length_max for step in steps], color="#6a51a3", alpha=0.3, label="longest")
    lengths.set(title="Completion length (tokens)", xlabel="step", ylim=(0, None), xlim=reward.get_xlim())
    lengths.legend(frameon=False)

    figure.savefig(png, dpi=100)
    pyplot.close(figure)


def draw_file(metrics_file: Path, png: Path, title: str = "") -> None:
    """Draw a metrics file.

    Raises:
        RlvrError: when it holds no step yet.
    """
    if not metrics_file.is_file():
        raise RlvrError(f"{metrics_file}: no such file: train a cycle first")
    steps = list(records.read_lines(metrics_file, Step))
    if not steps:
        raise RlvrError(f"{metrics_file}: holds no step yet: wait for the first one")
    draw(steps, png, title or str(metrics_file.parent))


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: python -m rlvr.curves METRICS.jsonl PICTURE.png", file=sys.stderr)
        return 2
    draw_file(Path(sys.argv[1]), Path(sys.argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(run_program(main))
