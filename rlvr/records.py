"""What a line of `trace.jsonl` and `metrics.jsonl`, and what `outcomes.json`, `eval.json` and `status.json` hold.

One msgspec Struct per record: the same definition encodes and decodes, so a reader can never drift from the writer.
Terms and other exact answers are decimal strings: they overflow the integers and doubles of other JSON readers.
A NaN is written as null. Nothing here knows a file name.
"""

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec

from rlvr.errors import RlvrError
from rlvr.files import replace_file

Record = TypeVar("Record", bound=msgspec.Struct)

Count = Annotated[int, msgspec.Meta(ge=0)]
State = Literal["pending", "running", "done", "failed", "killed", "lost"]
"""Of a run."""

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
    """`status.json`: where a run stands; times are seconds since 1970.

    `pid` and `process_start` are of the process that answers for the run; the second one, in seconds since the machine
    started, tells it from a later process with the same pid. `device` and `inode` are of the run's folder, which tell
    it from a copy. 0 is unknown, and no such process. `step` of `max_steps` counts optimizer steps of a cycle,
    completions of an evaluation, rounds of an auto run; `reward` and `solved` are the newest. Readers show the state
    "lost" where a run should be living and its process is gone.
    """

    state: State
    kind: str
    created: float
    updated: float
    pid: Count = 0
    process_start: float = 0.0
    device: Count = 0
    inode: Count = 0
    started: float | None = None
    finished: float | None = None
    step: Count = 0
    max_steps: Count = 0
    reward: float | None = None
    solved: float | None = None
    waiting_for: str = ""
    exit_code: int | None = None
    message: str = ""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """`launch.json`: what the supervisor of a run needs to start its program, now or after a restart of the machine.

    `parent` of a cycle is "latest", "" for a cold start, or an adapter's folder. `participants` of an evaluation are
    "base" and adapter folders. `ticket` orders the queue; `after` names a run that has to be done before. `ephemeral`
    holds what the one-shot layer gave: it is cleared when the run succeeds. `auto` holds the options of an auto run;
    of what that starts, the `run` and `round` that it belongs to.
    """

    ticket: float
    queue: bool = True
    after: str = ""
    parent: str = ""
    resume: bool = False
    participants: tuple[str, ...] = ()
    ephemeral: dict[str, Any] = {}
    auto: dict[str, Any] = {}
    colab: dict[str, Any] = {}


class ColabSession(msgspec.Struct, frozen=True, kw_only=True):
    """`colab.json`: the VM that a cycle runs on while it does, so that a new supervisor finds it again.

    `base` is the run's folder there, "" until the run was started; `own` VMs are given back when the run ends.
    `endpoint` is what Colab itself calls the VM. `log_bytes` of what it printed are in the run's log; `per_hour` are
    compute units from `started` on, 0 where that is not known.
    """

    session: str
    gpu: str
    base: str
    own: bool
    endpoint: str = ""
    log_bytes: int = 0
    started: float = 0.0
    per_hour: float = 0.0


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an auto run's `rounds.jsonl`: a cycle, its evaluation, and what came of it.

    `goal` is the metric that the run goes by; `difference` with its interval is against base, in solved.
    """

    round: int
    cycle: str
    evaluation: str
    time: float
    solved: float | None
    goal: float | None
    difference: float | None
    low: float | None
    high: float | None
    improved: bool


def encode(record: msgspec.Struct) -> bytes:
    """The record as one line of JSON without its newline."""
    return msgspec.json.encode(record)


def append(path: Path, *records: msgspec.Struct) -> None:
    """Append one line a record; each line is one write, so that a reader sees whole lines or a torn last one.

    Raises:
        OSError: when the disk is full.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        for record in records:
            line = encode(record) + b"\n"
            if os.write(descriptor, line) < len(line):  # the next line would be appended to half of this one
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(descriptor)


def write(path: Path, record: msgspec.Struct) -> None:
    """Write a whole file so that a reader meets the old one or the new one, never half."""
    replace_file(path, msgspec.json.format(encode(record), indent=2) + b"\n")


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


MAX_LINE_BYTES = 64 * 2**20
"""A longer line is given up and counted: nothing we write comes near it."""


class GrowingFile:
    """The whole lines that were added to a file since the last read; the base of `Tail` and `TextTail`.

    A torn last line waits for its end. The file may not be there yet, may be replaced (as a resumed run does) or cut
    short: then reading starts over and `restarted` is True for that read. One `stat` tells that nothing is new.

    Args:
        last_bytes: begin this far before the end, at a line's beginning; None reads all.
    """

    def __init__(self, path: Path, last_bytes: int | None = None):
        self.path = path
        self.offset = 0
        """Bytes read so far, from the beginning of the file."""
        self.size = 0
        """Bytes that the file had at the last read."""
        self.restarted = False
        self.skipped = 0
        """Bytes before the first line that was read, because of `last_bytes`."""
        self._last_bytes = last_bytes
        self._inode = 0
        self._head = b""
        self._carry: list[bytes] = []
        self._carried = 0
        self._aligned = True

    @property
    def remaining(self) -> int:
        """Bytes that were there at the last read and are still to be read."""
        return self.size - self.offset

    def _start_over(self, inode: int, size: int) -> None:
        self._inode, self._head, self._carry, self._carried = inode, b"", [], 0
        self.skipped = self.offset = max(size - self._last_bytes, 0) if self._last_bytes is not None else 0
        self._aligned = self.offset == 0

    def _read_block(self, max_bytes: int) -> tuple[int, bytes]:
        """Where the new whole lines begin, and their bytes, at most `max_bytes` and what was carried."""
        self.restarted = False
        try:
            stat = os.stat(self.path)
            if stat.st_ino == self._inode and stat.st_size == self.size == self.offset:
                return self.offset, b""
            descriptor = os.open(self.path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            self.size = self.offset
            return self.offset, b""
        try:
            stat = os.fstat(descriptor)
            head = os.pread(descriptor, 256, 0)
            # An inode number is soon given to another file, and a file cut short may have grown past us again.
            if stat.st_ino != self._inode or stat.st_size < self.offset or not head.startswith(self._head):
                self.restarted = self._inode != 0
                self._start_over(stat.st_ino, stat.st_size)
            self._head, self.size = head, stat.st_size
            block = os.pread(descriptor, max_bytes, self.offset)
        finally:
            os.close(descriptor)
        begin = self.offset - self._carried
        self.offset += len(block)
        end = block.rfind(b"\n") + 1
        if not end:
            self._carry.append(block)
            self._carried += len(block)
            if self._carried > MAX_LINE_BYTES:
                self._carry, self._carried, self._aligned = [], 0, False
                self._gave_up()
            return begin, b""
        whole = b"".join((*self._carry, block[:end]))
        self._carry, self._carried = [block[end:]], len(block) - end
        if not self._aligned:
            cut = whole.find(b"\n") + 1
            begin, whole, self._aligned = begin + cut, whole[cut:], True
        return begin, whole

    def _gave_up(self) -> None:
        """A line was longer than MAX_LINE_BYTES."""


class Tail(GrowingFile, Generic[Record]):
    """The records appended to a file since the last `read`, decoded as `record_type`.

    A Struct with fewer fields than the lines have is decoded several times faster: the others are skipped, not built.
    """

    def __init__(self, path: Path, record_type: type[Record], last_bytes: int | None = None):
        super().__init__(path, last_bytes)
        self.bad = 0
        """Finished lines that did not hold such a record."""
        self.starts: list[int] = []
        """Where each record of the last read begins in the file, in bytes."""
        self._decode = msgspec.json.Decoder(record_type).decode

    def read(self, max_bytes: int = 8 * 2**20) -> list[Record]:
        """The new records of at most `max_bytes` more of the file; call again while `remaining`."""
        begin, block = self._read_block(max_bytes)
        if self.restarted:
            self.bad = 0
        found: list[Record] = []
        self.starts = []
        for line in block.split(b"\n")[:-1]:
            try:
                found.append(self._decode(line))
                self.starts.append(begin)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                self.bad += 1
            begin += len(line) + 1
        return found

    def _gave_up(self) -> None:
        self.bad += 1


CONTROL_CODES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


def plain_line(raw: bytes) -> str:
    """A line of a log as a person sees it: of a progress bar its last state, no colours, no control codes."""
    text = raw.decode(errors="replace").rstrip("\r\n").rpartition("\r")[2]
    return CONTROL_CODES.sub("", text).expandtabs()


class TextTail(GrowingFile):
    """The lines appended to a text file, such as `run.log`, since the last `read`."""

    def read(self, max_bytes: int = 8 * 2**20) -> list[str]:
        """The new lines of at most `max_bytes` more of the file, without their ends; call again while `remaining`."""
        _, block = self._read_block(max_bytes)
        return [plain_line(line) for line in block.split(b"\n")[:-1]]

    @property
    def pending(self) -> str:
        """The last line, which has no end yet, such as a progress bar at work."""
        return plain_line(b"".join(self._carry)[-65536:])
