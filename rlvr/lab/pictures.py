"""Pictures of runs: curves, groups, answers before and after; and several variants side by side."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from rlvr.lab.experiment import Result
from rlvr.lab.task import grade, is_exact

BLUE, GREEN, YELLOW, GRAY, RED = "#2a6fbb", "#2a9d4a", "#f2c14e", "#b0b0b0", "#c0392b"
PALETTE = (BLUE, "#d95f02", GREEN, "#6a51a3", RED, "#555555")
NUM_EXAMPLES = 8


def draw_result(result: Result, png: Path) -> None:
    figure, panels = pyplot.subplots(2, 2, figsize=(12, 8), layout="constrained")
    settings = result.settings
    figure.suptitle(
        f"The tiny lab: reward {settings.reward}, {settings.method}, groups of {settings.group_size}, "
        f"seed {settings.seed}"
    )
    draw_curves(panels[0][0], result)
    draw_groups(panels[0][1], result)
    draw_accuracies(panels[1][0], result)
    draw_examples(panels[1][1], result)
    figure.savefig(png, dpi=100)
    pyplot.close(figure)


def draw_curves(axes, result: Result) -> None:
    numbers = [update.number for update in result.updates]
    axes.plot(
        numbers, [update.reward for update in result.updates], color=BLUE, label="mean reward, training problems"
    )
    axes.plot(numbers, [update.exact for update in result.updates], color=YELLOW, label="exact, training problems")
    axes.plot(
        numbers, [update.verified for update in result.updates], color=GREEN, label="verified, training problems"
    )
    checkpoints, exact = zip(*result.validation, strict=True)
    axes.plot(checkpoints, exact, color="black", marker="o", linestyle="--", label="exact, validation pairs")
    axes.axvline(result.after.update, color="black", linewidth=0.8, alpha=0.5)
    axes.set(title=f"While it trains (update {result.after.update} was chosen)", xlabel="update", ylim=(0, 1))
    axes.legend(frameon=False, fontsize="small", loc="upper left")


def draw_groups(axes, result: Result) -> None:
    numbers = [update.number for update in result.updates]
    parts = list(zip(*(update.groups for update in result.updates), strict=True))
    axes.stackplot(numbers, parts, labels=("all verified", "mixed", "none verified"), colors=(GREEN, YELLOW, GRAY))
    axes.plot(numbers, [update.silent for update in result.updates], color="black", label="all rewards equal: silent")
    axes.set(title="What the groups are made of", xlabel="update", ylabel="share of groups", ylim=(0, 1))
    axes.margins(x=0)
    axes.legend(fontsize="small", loc="lower left")


def draw_accuracies(axes, result: Result) -> None:
    parts = ("train", "validation", "test", "test_greedy")
    for offset, (checkpoint, color, label) in enumerate(
        ((result.before, GRAY, "before"), (result.after, BLUE, "after"))
    ):
        for place, part in enumerate(parts):
            measurement = checkpoint._asdict()[part]
            for share, hatch, shift in ((measurement.exact_share, "", 0), (measurement.verified_share, "///", 0.2)):
                axes.bar(
                    place + 0.42 * offset + shift - 0.3,
                    share.estimate,
                    0.19,
                    color=color,
                    hatch=hatch,
                    edgecolor="white",
                    yerr=[[share.estimate - share.low], [share.high - share.estimate]],
                    ecolor="black",
                    capsize=2,
                    label=f"{label}, {'verified' if hatch else 'exact'}" if place == 0 else None,
                )
    axes.set_xticks(range(len(parts)), ("train", "validation", "test", "test, greedy"))
    axes.set(title="Accuracy with 95 % intervals over operand pairs", ylim=(0, 1))
    axes.legend(fontsize="small", ncols=2, loc="upper right")


def draw_examples(axes, result: Result) -> None:
    """Greedy answers to some test problems, evenly spread over those that changed, or over all if few did."""
    pairs = list(zip(result.before.test_greedy.answers, result.after.test_greedy.answers, strict=True))
    changed = [pair for pair in pairs if pair[0][1] != pair[1][1]]
    if len(changed) >= NUM_EXAMPLES:
        pairs = changed
    pairs = [pairs[i * len(pairs) // NUM_EXAMPLES] for i in range(NUM_EXAMPLES)]
    axes.set_axis_off()
    axes.set_title(
        f"The likeliest answers to test problems: {len(changed)} of {len(result.before.test_greedy.answers)} changed"
    )
    axes.text(0.0, 0.95, "problem", weight="bold")
    axes.text(0.22, 0.95, "before", weight="bold")
    axes.text(0.62, 0.95, "after", weight="bold")
    for row, ((problem, before), (_, after)) in enumerate(pairs):
        height = 0.85 - 0.105 * row
        axes.text(0.0, height, f"({problem.a}+{problem.b})*{problem.c}", family="monospace", fontsize=9)
        for x, text in ((0.22, before), (0.62, after)):
            color = GREEN if grade(problem, text).verified else "#b8860b" if is_exact(problem, text) else RED
            axes.text(x, height, text, family="monospace", fontsize=9, color=color)
    axes.text(0.0, -0.02, "green: verified   ochre: only the last number is right   red: wrong", fontsize=8)


def draw_comparison(option: str, results: Mapping[str, Sequence[Result]], png: Path) -> None:
    """Curves of the mean over seeds, and the test gains of every seed; `results` has a list of runs per value."""
    figure, (reward, validation, gain) = pyplot.subplots(1, 3, figsize=(15, 4.8), layout="constrained")
    figure.suptitle(f"The tiny lab: only {option} differs")
    for number, (value, runs) in enumerate(results.items()):
        color = PALETTE[number % len(PALETTE)]
        curves = [[update.verified for update in run.updates] for run in runs]
        mean = [sum(column) / len(column) for column in zip(*curves, strict=True)]
        reward.plot(range(1, len(mean) + 1), mean, color=color, label=f"{option} {value}")
        checkpoints = [update for update, _ in runs[0].validation]
        exact = [
            sum(column) / len(column) for column in zip(*([e for _, e in run.validation] for run in runs), strict=True)
        ]
        validation.plot(checkpoints, exact, color=color, marker="o", label=f"{option} {value}")
        for shift, gains, marker in (
            (-0.1, [run.exact_gain.estimate for run in runs], "o"),
            (0.1, [run.verified_gain.estimate for run in runs], "^"),
        ):
            gain.plot([number + shift] * len(runs), [100 * one for one in gains], marker, color=color)
    reward.set(title="Verified answers to training problems", xlabel="update", ylim=(0, 1))
    validation.set(title="Exact answers to validation pairs", xlabel="update", ylim=(0, 1))
    gain.axhline(0, color="black", linewidth=0.8)
    gain.set(
        title="Test gain in points: a dot a seed\n(circle exact, triangle verified)", xlim=(-0.5, len(results) - 0.5)
    )
    gain.set_xticks(range(len(results)), list(results))
    reward.legend(frameon=False)
    figure.savefig(png, dpi=100)
    pyplot.close(figure)


def has_display() -> bool:
    """Could a window appear? On Linux that needs a display server; the others always have a screen of some kind."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_picture(png: Path) -> None:
    """Show it in whatever shows pictures on this system; without one, nothing happens."""
    if not has_display():
        return
    try:
        if sys.platform == "win32":
            os.startfile(png)
        else:
            opener = "open" if sys.platform == "darwin" else "xdg-open"
            subprocess.Popen([opener, str(png)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        pass
