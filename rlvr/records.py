"""What a line of `trace.jsonl` and `metrics.jsonl`, and what `outcomes.json`, `eval.json` and `status.json` hold.

One msgspec Struct per record: the same definition encodes and decodes, so a reader can never drift from the writer.
Terms and other exact answers are decimal strings: they overflow the integers and doubles of other JSON readers.
A NaN is written as null. Nothing here knows a file name.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from rlvr.errors import RlvrError

Record = TypeVar("Record", bound=msgspec.Struct)

OUTCOMES = ("solved", "partial", "wrong", "lookup", "disallowed_import", "invalid", "truncated", "timeout", "infra")
"""What became of a completion; `infra` is a failure of ours, never scored."""


class Reward(msgspec.Struct, frozen=True):
    """One reward of one completion: `value` already weighted; None when it was not scored."""

    name: str
    value: float | None
    reason: str


class Check(msgspec.Struct, frozen=True):
    """One thing that was verified, such as one term: `shown` ones stood in the prompt."""

    label: str
    expected: str
    got: str
    passed: bool
    shown: bool


class Grade(msgspec.Struct, frozen=True, kw_only=True):
    """What the verifier says of one completion; `reward` is the sum of `rewards`, None when masked."""

    task: str
    outcome: str
    reward: float | None
    rewards: tuple[Reward, ...]
    function: str
    checks: tuple[Check, ...]
    verdict: str
    error: str = ""
    cpu_s: float = 0.0
    isolation: str = ""

    @property
    def hidden_passed(self) -> int:
        return sum(check.passed for check in self.checks if not check.shown)

    @property
    def hidden_total(self) -> int:
        return sum(not check.shown for check in self.checks)


class Completion(Grade, frozen=True, kw_only=True):
    """A line of `trace.jsonl` or `completions.jsonl`: a grade and what was graded.

    `group` counts the prompts of the step, `sample` the completions of a prompt, both from 0. `participant` is empty
    while training and the checkpoint's name in an evaluation.
    """

    step: int
    group: int
    sample: int
    prompt: str
    completion: str
    tokens: int
    truncated: bool
    advantage: float | None = None
    participant: str = ""
    time: float = 0.0


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `metrics.jsonl`: one optimizer step. Seconds end in `_s`; shares lie in [0, 1]; lengths are tokens."""

    step: int
    max_steps: int
    time: float
    reward: float | None
    reward_std: float | None
    rewards: dict[str, float | None]
    all_right: float
    mixed: float
    all_wrong: float
    zero_variance: float
    outcomes: dict[str, int]
    loss: float | None
    kl: float | None
    entropy: float | None
    grad_norm: float | None
    learning_rate: float | None
    length_mean: float
    length_max: int
    truncated: float
    tokens: int
    tokens_per_s: float
    generation_s: float
    scoring_s: float
    update_s: float
    step_s: float


class Solves(msgspec.Struct):
    """How often a task was sampled, solved, and matched at least one hidden check."""

    samples: int = 0
    solved: int = 0
    matched: int = 0


class Outcomes(msgspec.Struct, kw_only=True):
    """`outcomes.json`: what the next cycle's curriculum reads.

    `always_solved` includes what the cycle itself left out, so that it stays out in the cycles after the next.
    """

    seen: list[str]
    always_solved: list[str]
    never_matched: list[str]
    solves: dict[str, Solves]


class Interval(msgspec.Struct, frozen=True):
    """An estimate with its 95 % interval."""

    estimate: float
    low: float
    high: float


class TaskScore(msgspec.Struct, frozen=True, kw_only=True):
    """How one participant fared on one task: `match` is the mean share of hidden checks passed, None when unscored.

    `scored` leaves out completions that failed on our side; `solved` of them were solved.
    """

    scored: int
    solved: int
    match: float | None


class Participant(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint of an evaluation. `adapter` is a folder, empty for the base model; `sha256` is of its weights.

    Shares are over tasks and leave out `infra` completions; `pass_at` maps k to pass@k; `produced_valid_fn` is a share
    of completions. `tokens` and `seconds` are of generation.
    """

    name: str
    adapter: str
    sha256: str
    mean_holdout_match: Interval
    solved: Interval
    pass_at: dict[str, Interval]
    produced_valid_fn: float
    lookups: int
    truncated: int
    timeouts: int
    infra: int
    outcomes: dict[str, int]
    tokens: int
    seconds: float
    scores: dict[str, TaskScore]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """`second` minus `first` in one metric ("solved", "mean_holdout_match" or "pass@8") on `num_tasks` same tasks.

    `won` and `lost` name the tasks on which `second` does better and worse, `tied` counts the rest. `p_value` is an
    exact sign test of them. A true difference of `detectable` would show in 4 of 5 such comparisons.
    """

    first: str
    second: str
    metric: str
    num_tasks: int
    difference: Interval
    won: list[str]
    lost: list[str]
    tied: int
    p_value: float
    detectable: float
    same_checkpoint: bool


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """`eval.json`: one held-out comparison; `temperature` is 0 for greedy decoding."""

    title: str
    environment: str
    base_model: str
    num_tasks: int
    samples: int
    temperature: float
    max_new_tokens: int
    seed: int
    isolation: str
    participants: list[Participant]
    differences: list[Difference]
    conclusions: list[str]
    tasks: list[str]
    provenance: dict[str, str]


class Status(msgspec.Struct, kw_only=True):
    """`status.json`: where a run stands. `process_start` tells a run's process from a later one with the same pid."""

    state: str
    kind: str
    pid: int
    process_start: float
    started: float
    updated: float
    finished: float | None = None
    step: int = 0
    max_steps: int = 0
    exit_code: int | None = None
    message: str = ""


def encode(record: msgspec.Struct) -> bytes:
    """The record as one line of JSON without its newline."""
    return msgspec.json.encode(record)


def append(path: Path, *records: msgspec.Struct) -> None:
    """Append one line a record; each line is one write, so that a reader sees whole lines or a torn last one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        for record in records:
            os.write(descriptor, encode(record) + b"\n")
    finally:
        os.close(descriptor)


def write(path: Path, record: msgspec.Struct) -> None:
    """Write a whole file so that a reader meets the old one or the new one, never half."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(msgspec.json.format(encode(record), indent=2) + b"\n")
    os.replace(temporary, path)


def read(path: Path, record_type: type[Record]) -> Record:
    """Read a whole file.

    Raises:
        RlvrError: naming the file, when it is missing or does not hold such a record.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=record_type)
    except FileNotFoundError:
        raise RlvrError(f"{path}: no such file: is this the folder of a finished run?") from None
    except msgspec.MsgspecError as error:
        raise RlvrError(f"{path}: not a valid {record_type.__name__} record: {error}") from None


def read_lines(path: Path, record_type: type[Record]) -> Iterator[Record]:
    """Yield the whole lines of a file; a torn last line is left for later.

    Raises:
        RlvrError: naming file and line, when a finished line does not hold such a record.
    """
    decoder = msgspec.json.Decoder(record_type)
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield decoder.decode(line)
            except msgspec.MsgspecError as error:
                raise RlvrError(f"{path}, line {number}: not a valid {record_type.__name__} record: {error}") from None
