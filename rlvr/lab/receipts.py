"""The receipt of a run: what was done, on what, with what result, and what that allows to say. JSON, checked by rerun.

    write_receipt(path, make_receipt(results, control, student_file, guess))
    differences = compare_receipts(read_receipt(path), again)

It holds nothing of the machine but its kind and versions: a receipt may be published.
"""

import hashlib
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from rlvr.errors import RlvrError
from rlvr.files import replace_file
from rlvr.lab.experiment import Checkpoint, Result, hash_split, mean_over_seeds
from rlvr.lab.model import Transformer
from rlvr.lab.settings import Settings
from rlvr.lab.task import operand_pair, split_problems
from rlvr.records import Interval

RECEIPT_VERSION = 1
NEEDED = ("settings", "num_seeds", "control", "split", "versions", "machine", "runs", "random_reward_runs")
"""What a rerun is compared with."""

Receipt = dict[str, Any]


def make_receipt(
    results: Sequence[Result], control: Sequence[Result], student_file: Path, guess: float | None
) -> Receipt:
    """`results` has an entry per seed; `control` the same with the random reward, or nothing."""
    first = results[0].settings
    split = split_problems()
    receipt: Receipt = {
        "receipt": RECEIPT_VERSION,
        "settings": asdict(first),
        "num_seeds": len(results),
        "control": bool(control),
        "split": {
            "sha256": hash_split(),
            "problems": {name: len(problems) for name, problems in split._asdict().items()},
            "operand_pairs": {name: len(set(map(operand_pair, part))) for name, part in split._asdict().items()},
        },
        "model_parameters": sum(weight.numel() for weight in Transformer().parameters()),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
        "runs": [of_result(result) for result in results],
        "random_reward_runs": [of_result(result) for result in control],
    }
    if first.reward == "student":
        receipt["student_reward_sha256"] = hash_file(student_file)
    if guess is not None:
        receipt["guessed_test_exact"] = guess
    if len(results) > 1:
        receipt["over_seeds"] = over_seeds(results, control)
    receipt["what_this_allows_you_to_say"] = conclusions(results, control)
    receipt["what_it_does_not"] = LIMITS
    return receipt


def hash_file(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError as error:
        raise RlvrError(
            f"{path}: no such file: the receipt was made with a student's reward; name it with --student-file"
        ) from error


def of_interval(interval: Interval) -> list[float]:
    """[estimate, low, high], rounded to what the samples can carry."""
    return [round(number, 4) for number in (interval.estimate, interval.low, interval.high)]


def of_checkpoint(checkpoint: Checkpoint) -> Receipt:
    parts = {"train": checkpoint.train, "validation": checkpoint.validation, "test": checkpoint.test}
    parts["test_greedy"] = checkpoint.test_greedy
    return {
        "update": checkpoint.update,
        "weights_sha256": checkpoint.weight_hash,
        "kl_from_start_nats_per_symbol": round(checkpoint.kl, 5),
        "exact": {name: of_interval(part.exact_share) for name, part in parts.items()},
        "verified": {name: of_interval(part.verified_share) for name, part in parts.items()},
        "format_on_test": round(checkpoint.test.format_share, 4),
    }


def of_result(result: Result) -> Receipt:
    return {
        "seed": result.settings.seed,
        "reward": result.settings.reward,
        "before": of_checkpoint(result.before),
        "after": of_checkpoint(result.after),
        "test_gain": {
            "exact": of_interval(result.exact_gain),
            "verified": of_interval(result.verified_gain),
            "exact_greedy": of_interval(result.greedy_gain),
        },
        "validation_exact": [[update, round(exact, 4)] for update, exact in result.validation],
        "training": {
            "reward": [round(update.reward, 4) for update in result.updates],
            "exact": [round(update.exact, 4) for update in result.updates],
            "verified": [round(update.verified, 4) for update in result.updates],
        },
        "wall_s": {
            "start": round(result.start_s, 2),
            "updates": round(result.updates_s, 2),
            "measuring": round(result.measure_s, 2),
        },
        "updates_cpu_s": round(sum(update.cpu_s for update in result.updates), 2),
    }


def gains(results: Sequence[Result], which: str) -> list[float]:
    """Gain on the test set, one a seed; `which` is exact_gain, verified_gain or greedy_gain."""
    chosen = {
        "exact_gain": lambda result: result.exact_gain,
        "verified_gain": lambda result: result.verified_gain,
        "greedy_gain": lambda result: result.greedy_gain,
    }[which]
    return [chosen(result).estimate for result in results]


def over_seeds(results: Sequence[Result], control: Sequence[Result]) -> Receipt:
    names = ("exact_gain", "verified_gain", "greedy_gain")
    found = {name: of_interval(mean_over_seeds(gains(results, name))) for name in names}
    if control:
        found |= {f"random_{name}": of_interval(mean_over_seeds(gains(control, name))) for name in names}
        found["exact_gain_over_random"] = of_interval(
            mean_over_seeds(
                [a - b for a, b in zip(gains(results, "exact_gain"), gains(control, "exact_gain"), strict=True)]
            )
        )
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Words

LIMITS = [
    "Nothing about other tasks, other sizes or language models: this is one task with one tiny model.",
    "Not that reinforcement teaches what supervision cannot: more supervised steps on right traces were not tried.",
    "Not that the model reasons: a verified trace is the right text, however it was produced.",
]


def points(interval: Interval) -> str:
    """A difference of shares in percentage points, with its interval."""
    if interval.high == float("inf"):
        return f"{100 * interval.estimate:+.1f} points"
    low, high = 100 * interval.low, 100 * interval.high
    return f"{100 * interval.estimate:+.1f} points (95 % interval {low:+.1f} to {high:+.1f})"


def percent(interval: Interval) -> str:
    return f"{100 * interval.estimate:.1f} % [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def direction(interval: Interval) -> str:
    if interval.low > 0:
        return "rose"
    return "fell" if interval.high < 0 else "did not clearly change"


def conclusions(results: Sequence[Result], control: Sequence[Result]) -> list[str]:
    """What the numbers carry, in sentences; each says over what its interval was taken."""
    sentences = []
    if len(results) == 1:
        [result] = results
        for name, gain in (("exact", result.exact_gain), ("verified-trace", result.verified_gain)):
            sentences.append(
                f"With this seed, {name} accuracy on operand pairs that were never trained on {direction(gain)}: "
                f"{points(gain)}, the interval over the {len(result.before.test.exact)} pairs."
            )
        sentences.append("One seed: how another would come out is not in this interval. `lab run --seeds 5` says it.")
    else:
        for name, which in (("exact", "exact_gain"), ("verified-trace", "verified_gain")):
            gain = mean_over_seeds(gains(results, which))
            sentences.append(
                f"Over {len(results)} seeds, {name} accuracy on operand pairs that were never trained on "
                f"{direction(gain)}: {points(gain)}, the interval over seeds, on this one test set."
            )
    greedy = mean_over_seeds(gains(results, "greedy_gain")) if len(results) > 1 else results[0].greedy_gain
    sentences.append(
        f"The greedy answer {direction(greedy)}: {points(greedy)}. Where sampled answers gain more than greedy ones, "
        "the model mostly became surer of what it already preferred."
    )
    if control:
        alone = mean_over_seeds(gains(control, "exact_gain"))
        lead = [a - b for a, b in zip(gains(results, "exact_gain"), gains(control, "exact_gain"), strict=True)]
        sentences.append(
            f"With a random reward in its place the exact gain was {points(alone)}; the difference between the two is "
            f"{points(mean_over_seeds(lead))}."
        )
    else:
        sentences.append("No random-reward control was run: `--control` adds it.")
    return sentences


# ---------------------------------------------------------------------------------------------------------------------
# Files


def write_receipt(path: Path, receipt: Receipt) -> None:
    replace_file(path, (json.dumps(receipt, indent=1, ensure_ascii=False) + "\n").encode())


def read_receipt(path: Path) -> Receipt:
    """Raises RlvrError when it is no receipt of this lab."""
    try:
        receipt = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RlvrError(f"{path}: no such file: `lab run` writes a receipt") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RlvrError(f"{path}: not JSON ({error}): name a receipt that `lab run` wrote") from error
    if not isinstance(receipt, dict) or receipt.get("receipt") != RECEIPT_VERSION:
        raise RlvrError(f"{path}: not a receipt of this version of the lab: run `lab run` for a new one")
    missing = [name for name in NEEDED if name not in receipt]
    if missing:
        raise RlvrError(f"{path}: lacks {', '.join(missing)}: run `lab run` for a whole one")
    num_control = receipt["num_seeds"] if receipt["control"] else 0
    if (len(receipt["runs"]), len(receipt["random_reward_runs"])) != (receipt["num_seeds"], num_control):
        raise RlvrError(f"{path}: does not have a run for each of its seeds: run `lab run` for a whole one")
    return receipt


def settings_of(receipt: Receipt, path: Path) -> Settings:
    """Raises RlvrError when the settings are not those of this lab."""
    names = {field.name for field in fields(Settings)}
    found = receipt.get("settings")
    if not isinstance(found, dict) or set(found) != names:
        raise RlvrError(f"{path}: its settings are not those of this version of the lab: run `lab run` for a new one")
    return Settings(**found)


def compare_receipts(claimed: Receipt, again: Receipt) -> list[tuple[str, Any, Any]]:
    """Return (name, claimed, found again) for every result that a rerun must repeat; wall times are not among them."""
    rows = [("split", claimed["split"]["sha256"], again["split"]["sha256"])]
    for kind in ("runs", "random_reward_runs"):
        for first, second in zip(claimed[kind], again[kind], strict=True):
            name = f"{'random reward, ' if kind != 'runs' else ''}seed {second['seed']}"
            for when in ("before", "after"):
                for key in ("exact", "verified"):
                    rows.append(
                        (f"{name}, {when}: {key} on test", first[when][key]["test"], second[when][key]["test"])
                    )
                rows.append(
                    (f"{name}, {when}: weights", first[when]["weights_sha256"], second[when]["weights_sha256"])
                )
    return rows
