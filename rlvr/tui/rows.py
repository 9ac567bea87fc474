"""The completions of a run as rows of a table: read as they come, filtered, searched, sorted. No Textual.

Only what the table shows is kept of a line; `load` reads the whole completion again from where it lies in the file.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rlvr.errors import RlvrError
from rlvr.records import OUTCOMES, Completion, Tail

LAST_BYTES = 64 * 2**20
"""Of a longer trace only the end is listed: some hundred thousand completions."""

MAX_ROWS = 200_000
"""Of a run that goes on and on, the newest are kept."""

SORTS = ("newest", "step", "task", "name", "reward", "outcome", "length", "time")


class Part(msgspec.Struct, frozen=True):
    """One reward of a line."""

    name: str
    value: float | None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What is decoded of a line of the trace: everything else in it is skipped, not built."""

    task: str
    outcome: str
    reward: float | None
    rewards: tuple[Part, ...]
    step: int
    group: int
    sample: int
    prompt: str
    tokens: int
    time: float = 0.0
    participant: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A completion in the table; `start` is where its line begins in the file, in bytes."""

    step: int
    group: int
    sample: int
    task: str
    name: str
    reward: float | None
    parts: tuple[float | None, ...]
    outcome: str
    tokens: int
    time: float
    participant: str
    start: int

    @property
    def prompt_key(self) -> tuple[int, int, str, str]:
        """Equal for the answers to one prompt of a step."""
        return self.step, self.group, self.task, self.participant


def title_of(prompt: str) -> str:
    """What a prompt is about, in one line: its `Name:` line, or the first line up to a bar.

    >>> title_of("Write a function.\\n\\nName: The squares.\\nKnown: 1"), title_of("a(n)=n^2|0:0,1,4\\n")
    ('The squares.', 'a(n)=n^2')
    """
    match = re.search(r"^Name: (.{1,200})", prompt, re.MULTILINE)
    if match:
        return match[1]
    return prompt.strip().partition("\n")[0].partition("|")[0][:200]


class Rows:
    """The rows of a trace in the order of the file; `poll` reads what is new, in whatever thread."""

    def __init__(self, path: Path, last_bytes: int | None = LAST_BYTES):
        self.path = path
        self.rows: list[Row] = []
        self.part_names: tuple[str, ...] = ()
        self._names: dict[str, str] = {}
        self._tail = Tail(path, Line, last_bytes)

    @property
    def bad(self) -> int:
        return self._tail.bad

    @property
    def skipped(self) -> int:
        """Bytes of a long trace that are not listed."""
        return self._tail.skipped

    @property
    def remaining(self) -> int:
        return self._tail.remaining

    def poll(self, max_bytes: int = 8 * 2**20) -> tuple[list[Row], bool]:
        """The new rows, and whether the file was replaced, so that all earlier ones are void."""
        lines = self._tail.read(max_bytes)
        if self._tail.restarted:
            self.rows = []
        new = [self._row(line, start) for line, start in zip(lines, self._tail.starts, strict=True)]
        self.rows.extend(new)
        forget_oldest(self.rows)
        return new, self._tail.restarted

    def _row(self, line: Line, start: int) -> Row:
        if not self.part_names:
            self.part_names = tuple(part.name for part in line.rewards)
        if len(self._names) > 100_000:
            self._names.clear()
        name = self._names.get(line.task)
        if name is None:
            name = self._names[line.task] = title_of(line.prompt)
        return Row(
            step=line.step,
            group=line.group,
            sample=line.sample,
            task=line.task,
            name=name,
            reward=line.reward,
            parts=tuple(part.value for part in line.rewards),
            outcome=line.outcome,
            tokens=line.tokens,
            time=line.time,
            participant=line.participant,
            start=start,
        )

    def mates(self, row: Row) -> list[Row]:
        """The answers to the prompt of `row`, itself among them, in the order of their samples."""
        near = [one for one in self.rows if one.prompt_key == row.prompt_key]
        return sorted(near, key=lambda one: one.sample)


def forget_oldest(rows: list[Row]) -> int:
    """Keep the newest MAX_ROWS, a tenth more for a while; returns how many went."""
    surplus = len(rows) - MAX_ROWS if len(rows) > 1.1 * MAX_ROWS else 0
    del rows[:surplus]
    return surplus


def load(path: Path, row: Row) -> Completion:
    """The whole completion of a row.

    Raises:
        RlvrError: when the file is no longer what it was.
    """
    try:
        with path.open("rb") as file:
            file.seek(row.start)
            found = msgspec.json.decode(file.readline(), type=Completion)
    except (OSError, msgspec.MsgspecError) as error:
        raise RlvrError(f"{path}: cannot read this completion again: {error}") from None
    if (found.step, found.group, found.sample, found.task) != (row.step, row.group, row.sample, row.task):
        raise RlvrError(f"{path}: it was replaced: the list will follow in a moment")
    return found


def selector(search: str, outcome: str) -> Callable[[Row], bool]:
    """What a search and an outcome let through.

    Every word must be found in task, name, outcome or participant; `step:12`, `step:10-20`, `reward>0.5` and
    `length<100` compare numbers.
    """
    tests: list[Callable[[Row], bool]] = []
    if outcome:
        tests.append(lambda row: row.outcome == outcome)
    for word in search.casefold().split():
        tests.append(_word_test(word))
    return lambda row: all(test(row) for test in tests)


def _word_test(word: str) -> Callable[[Row], bool]:
    if match := re.fullmatch(r"step:(\d+)(?:-(\d+))?", word):
        first = int(match[1])
        last = int(match[2] or first)
        return lambda row: first <= row.step <= last
    if match := re.fullmatch(r"(reward|length)([<>]=?)(-?\d+(?:\.\d+)?)", word):
        name, sign, limit = match[1], match[2], float(match[3])

        def compare(row: Row) -> bool:
            value = row.reward if name == "reward" else row.tokens
            if value is None:
                return False
            return (value < limit if sign[0] == "<" else value > limit) or (len(sign) == 2 and value == limit)

        return compare
    return lambda row: any(
        word in text for text in (row.task.casefold(), row.name.casefold(), row.outcome, row.participant.casefold())
    )


def sort_key(column: str) -> Callable[[Row], Any]:
    """How rows are ordered by a column; missing rewards come first."""
    return {
        "step": lambda row: row.step,
        "task": lambda row: row.task,
        "name": lambda row: row.name.casefold(),
        "reward": lambda row: (row.reward is not None, row.reward or 0.0),
        "outcome": lambda row: OUTCOMES.index(row.outcome) if row.outcome in OUTCOMES else len(OUTCOMES),
        "length": lambda row: row.tokens,
        "time": lambda row: row.time,
    }[column]


def arranged(rows: Sequence[Row], column: str, reverse: bool) -> list[Row]:
    """Rows, given in the order of the file, in the order of a column; "newest" is the order of the file, backwards."""
    if column == "newest":
        return list(rows) if reverse else list(reversed(rows))
    return sorted(reversed(rows), key=sort_key(column), reverse=reverse)
