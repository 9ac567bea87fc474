"""What the grader makes of a candidate's output: jobs, values, verdicts. Pure functions; nothing is evaluated.

Not run by hand. The lines themselves are written, and described, in `candidate.py`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rlvr.sandbox.candidate import EXIT_BROKEN, EXIT_FLOOD, EXIT_MEMORY

VERDICTS = (
    "ok",  # every term as expected, and (unless the source cannot reach chance or a clock) a second process agreed
    "wrong",  # every call answered, some term is not the expected integer
    "exception",  # the top level or a call raised
    "cpu_timeout",  # used up its CPU time
    "memory",  # asked for more than its memory limit
    "crash",  # killed by a fault, left early, or wrote something that is no result
    "flood",  # answers longer than 64 KiB in all
    "nondeterministic",  # two calls with the same n, or two processes, gave different answers
    "no_function",  # the program runs but defines no callable a
    "syntax_error",  # the source does not compile
    "infra",  # the machine failed, not the candidate: mask the sample, never score it
)
CPU_TIME_SPENT = "stopped: it used up its CPU time"  # how much it took differs from run to run, so it is not said here
CPU_SIGNALS = frozenset({27, 24})  # SIGPROF, SIGXCPU, by number: Windows does not have the names
Kind = Literal["int", "bool", "float", "other", "error", "missing"]


@dataclass(frozen=True, slots=True)
class Job:
    """One program and the terms to ask for. `expected` (aligned with `inputs`) stays in the grader's process."""

    code: str
    inputs: tuple[int, ...]
    expected: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """What a(n) gave for one n. `value` only for kind int; `text` is short and for people."""

    kind: Kind
    value: int | None = None
    text: str = ""


MISSING = Value("missing")


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on one job. `values` and `matches` are aligned with its inputs.

    `imports` are the top-level modules imported anywhere in the source ("exec" and its like when that name is used,
    "." for a relative import); `cpu_s` counts every process that was run for the job, `passes` counts those processes;
    `isolation` says which kernel layers held them: full, no-namespaces, seccomp-only or none.
    """

    verdict: str
    values: tuple[Value, ...]
    matches: tuple[bool, ...]
    imports: tuple[str, ...] = ()
    has_function: bool = False
    error: str = ""
    cpu_s: float = 0.0
    passes: int = 0
    isolation: str = "none"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one process ended (its signal or exit code) and the bytes it wrote; `lost` when its zygote went with it."""

    signal: int = 0
    exit_code: int = 0
    hit_wall: bool = False
    cpu_s: float = 0.0
    output: bytes = b""
    lost: bool = False


@dataclass(slots=True)
class Reading:
    """The lines of one process, as far as they follow the grammar. `answers` holds (letter, text) by call number.

    `lacks` names the module for which the process ended itself, so that the program may run where it is.
    """

    compiled: bool = False
    lacks: str = ""
    syntax_error: str = ""
    imports: tuple[str, ...] = ()
    has_function: bool = False
    no_function: bool = False
    raised: tuple[str, str] | None = None
    defined: bool = False
    answers: list[tuple[str, str]] = field(default_factory=list)
    finished: bool = False
    garbled: bool = False


_HEADER = re.compile(rb"H ([!-~]{1,2048})")
_RAISED = re.compile(rb"X ([01]) ([em])([ -~]{0,120})")
_LACKS = re.compile(rb"M ([ -~]{1,120})")
_SYNTAX = re.compile(rb"S ([ -~]{0,120})")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")
_ANSWER = re.compile(rb"([0-9]{1,6}) (?:([ij])(-?[0-9a-f]+)|([bfoem])([ -~]{0,120}))")


def message(text: bytes) -> str:
    """What a program said, without the addresses in it: they are others in every process.

    >>> message(b"<object object at 0x7f1c3dfa48f0>")
    '<object object at 0x...>'
    """
    return _ADDRESS.sub("0x...", text.decode("ascii"))


def read_lines(output: bytes, num_calls: int) -> Reading:
    """Read what a process wrote, by the grammar of candidate.py, up to the first line that does not belong there.

    Only the first line tells facts about the source, and it was written before the candidate's code ran. What follows
    may be forged, which gains nothing: it says no more than returned values would.
    """
    reading = Reading()
    lines = output.split(b"\n")
    torn = lines.pop()  # without a line end: the process was stopped while writing
    for number, line in enumerate(lines):
        if match := _LACKS.fullmatch(line):
            reading.lacks = match[1].decode("ascii")
            return reading
        if number == 0:
            if match := _HEADER.fullmatch(line):
                reading.compiled = True
                names = match[1].decode("ascii")
                reading.imports = () if names == "-" else tuple(names.split(","))
            elif match := _SYNTAX.fullmatch(line):
                reading.syntax_error = match[1].decode("ascii") or "does not compile"
                return reading
            else:
                reading.garbled = True
                return reading
        elif reading.finished or reading.no_function or reading.raised or reading.syntax_error:
            reading.garbled = True
            return reading
        elif not reading.defined:
            if line == b"D":
                reading.defined = reading.has_function = True
            elif line == b"N":
                reading.no_function = True
            elif match := _RAISED.fullmatch(line):
                reading.has_function = match[1] == b"1"
                reading.raised = match[2].decode("ascii"), message(match[3])
            else:
                reading.garbled = True
                return reading
        elif line == b"." and len(reading.answers) == num_calls:
            reading.finished = True
        elif (match := _ANSWER.fullmatch(line)) and int(match[1]) == len(reading.answers) < num_calls:
            kind = (match[2] or match[4]).decode("ascii")
            reading.answers.append((kind, match[3].decode("ascii") if match[3] else message(match[5])))
        else:
            reading.garbled = True
            return reading
    if torn and reading.finished:
        reading.garbled = True
    return reading


def to_value(letter: str, text: str) -> Value:
    """Turn one answer into a Value; integers come in hexadecimal, which has no length limit in Python."""
    match letter:
        case "i" | "j":
            number = int(text, 16)
            return Value(
                "int", number, str(number) if number.bit_length() <= 256 else f"int of {number.bit_length()} bits"
            )
        case "b":
            return Value("bool", None, "True" if text == "1" else "False")
        case "f":
            return Value("float", None, text)
        case "o":
            return Value("other", None, text)
        case _:
            return Value("error", None, text)


def collect(reading: Reading, order: Sequence[int], num_inputs: int) -> tuple[list[Value], bool]:
    """Return the value of every input, and whether two calls with the same input disagreed.

    `order[k]` is the position of call k's input. Example: order (2, 0, 2), answers i5, i1, i6 for three inputs gives
    [1, missing, error "two calls ..."], True.
    """
    values = [MISSING] * num_inputs
    disagreed = False
    for position, (letter, text) in zip(order, reading.answers, strict=False):
        value = to_value(letter, text)
        if values[position] is MISSING:
            values[position] = value
        elif values[position] != value:
            values[position] = Value("error", None, "two calls with the same n gave different answers")
            disagreed = True
    return values, disagreed


def matches(values: Sequence[Value], expected: Sequence[int]) -> tuple[bool, ...]:
    """Compare by kind and value: True is not 1, 4.0 is not 4."""
    return tuple(value.kind == "int" and value.value == term for value, term in zip(values, expected, strict=True))


def judge(
    reading: Reading,
    outcome: Outcome,
    values: Sequence[Value],
    right: Sequence[bool],
    disagreed: bool,
    cpu_limit_s: float,
    can_wait: bool,
) -> tuple[str, str]:
    """Return (verdict, short error) for one process. "infra" means: try again elsewhere.

    `can_wait` is True where no filter held the candidate. With the filter there is no system call by which it could
    wait (sleep, poll, futex are refused), so a wall-clock limit hit with CPU time left is the machine's doing.
    """
    if outcome.lost:
        return "infra", "the process that runs candidates ended"
    if not reading.compiled and not reading.syntax_error and outcome.exit_code == EXIT_BROKEN:
        return "infra", "the candidate's process could not be set up"
    if reading.lacks and not reading.compiled:
        return "infra", f"the compiler lacks the module {reading.lacks}"
    if disagreed:
        return "nondeterministic", "two calls with the same n gave different answers"
    if reading.syntax_error:
        return ("memory" if reading.syntax_error.startswith("MemoryError") else "syntax_error"), reading.syntax_error
    if outcome.hit_wall and can_wait:
        return "cpu_timeout", "stopped at the wall-clock limit"
    if outcome.hit_wall:
        return "infra", "no answer within the wall-clock limit, although CPU time was left"
    if outcome.signal in CPU_SIGNALS:
        return "cpu_timeout", CPU_TIME_SPENT
    if outcome.signal == 9:
        if outcome.cpu_s >= cpu_limit_s:
            return "cpu_timeout", CPU_TIME_SPENT
        return "memory", "killed by the kernel, most likely for want of memory"
    if outcome.signal:
        return "crash", f"killed by signal {outcome.signal}"
    if outcome.exit_code == EXIT_FLOOD:
        return "flood", "answers longer than 64 KiB in all"
    if outcome.exit_code == EXIT_MEMORY:
        return "memory", "MemoryError"
    if reading.garbled or reading.lacks:
        return "crash", "wrote something that is no result"
    if reading.raised:
        return ("memory" if reading.raised[0] == "m" else "exception"), to_value(*reading.raised).text
    if reading.no_function:
        return "no_function", "no callable a is defined"
    if outcome.exit_code or not reading.finished:
        return "crash", f"left with exit code {outcome.exit_code} before every call was answered"
    if all(right):
        return "ok", ""
    for verdict, letters in (("memory", "m"), ("exception", "e")):
        for letter, text in reading.answers:
            if letter in letters:
                return verdict, to_value(letter, text).text
    wrong = right.index(False)
    return "wrong", f"term {wrong} is {values[wrong].text or values[wrong].kind}"


def level(layers: Iterable[str]) -> str:
    """Name a combination of live layers: full, no-namespaces, seccomp-only, none."""
    live = set(layers)
    if "seccomp" not in live:
        return "none"
    if "landlock" not in live:
        return "seccomp-only"
    return "full" if "namespaces" in live else "no-namespaces"
