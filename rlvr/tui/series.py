"""From the lines of a run to named series of numbers, kept up to date while the run goes on.

A `RunReader` follows one run: `poll()` reads what is new, in whatever thread calls it, while another one draws. It
understands our `metrics.jsonl` and the dict lines that TRL alone prints into a log.
"""

import fnmatch
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlvr.braille import smooth
from rlvr.cycles import Run, RunFiles, run_at
from rlvr.errors import RlvrError
from rlvr.records import OUTCOMES, Status, Step, Tail, TextTail
from rlvr.status import read_status

GROUPS = ("all_right", "mixed", "all_wrong")


class StepLine(Step, frozen=True, kw_only=True):
    """A line of `metrics.jsonl`, with what only some curricula write."""

    rung: float | None = None


SCALARS = tuple(
    name for name in StepLine.__struct_fields__ if name not in ("step", "max_steps", "time", "rewards", "outcomes")
)
"""Fields of a line that are one number."""


class Metrics:
    """The series of a run: one number a step in each of the named columns, NaN where a step has none.

    One thread may `extend` it while others read: a reader never meets a step half written, but finds more of them from
    one call to the next, unless it reads from `frozen()`. With `limit` set, readers see only so many steps.
    """

    def __init__(self) -> None:
        self.count = 0
        self.limit: int | None = None
        self.max_steps = 0
        self._columns: dict[str, np.ndarray] = {}
        self._smoothed: dict[tuple[str, float], tuple[int, np.ndarray, tuple[float, float]]] = {}

    def __len__(self) -> int:
        return self.count if self.limit is None else min(self.count, self.limit)

    def frozen(self) -> "Metrics":
        """The same numbers as they are now: whoever looks at several columns wants them equally long."""
        still = Metrics()
        still.count, still.max_steps = len(self), self.max_steps
        still._columns, still._smoothed = self._columns, self._smoothed
        return still

    @property
    def names(self) -> list[str]:
        return list(self._columns)

    def column(self, name: str) -> np.ndarray:
        """The values of a column, (N,); all NaN for an unknown one."""
        size = len(self)
        values = self._columns.get(name)
        return np.full(size, np.nan) if values is None else values[:size]

    def has(self, name: str) -> bool:
        return name in self._columns and bool(np.isfinite(self.column(name)).any())

    def smoothed(self, name: str, weight: float) -> np.ndarray:
        """The moving average of a column; only what is new since the last call is computed."""
        values = self.column(name)
        done, averages, state = self._smoothed.get((name, weight), (0, np.empty(0), (0.0, 0.0)))
        if done > len(values):
            return averages[: len(values)]
        if done < len(values):
            more, state = smooth(values[done:], weight, state)
            averages = np.concatenate((averages, more))
            self._smoothed[(name, weight)] = (len(values), averages, state)
        return averages

    def x(self, times: bool) -> np.ndarray:
        """The x of every step, (N,): its number, or the seconds since the run's first step began."""
        steps = self.column("step")
        if not times or not len(steps):
            return steps
        clock = self.column("time")
        if not np.isfinite(clock[:1]).all():
            return steps
        first = self.column("step_s")[0]
        return clock - clock[0] + (first if math.isfinite(first) else 0.0)

    def extend(self, columns: Mapping[str, Sequence[float | None]], size: int) -> None:
        """Append `size` steps; a column that is not given, or not known so far, is NaN there."""
        known = dict(self._columns)
        for name in [name for name in columns if name not in known]:
            known[name] = np.full(max(self.count + size, 256), np.nan)
        for name, values in known.items():
            if len(values) < self.count + size:
                larger = np.full(max(2 * len(values), self.count + size), np.nan)
                larger[: self.count] = values[: self.count]
                known[name] = larger
        for name, values in columns.items():
            known[name][self.count : self.count + size] = np.array(values, dtype=float)
        self._columns = known
        self.count += size

    def extend_steps(self, lines: Sequence[StepLine]) -> None:
        """Append records of the trainer."""
        if not lines:
            return
        columns: dict[str, list[float | None]] = {
            name: [getattr(line, name) for line in lines] for name in ("step", "time", *SCALARS)
        }
        for part in dict.fromkeys(name for line in lines for name in line.rewards):
            columns[f"rewards/{part}"] = [line.rewards.get(part) for line in lines]
        totals = [sum(line.outcomes.values()) for line in lines]
        for outcome in OUTCOMES:
            columns[f"outcomes/{outcome}"] = [
                line.outcomes.get(outcome, 0) / total if total else None
                for line, total in zip(lines, totals, strict=True)
            ]
        self.max_steps = lines[-1].max_steps
        self.extend(columns, len(lines))

    def extend_trl(self, logs: Sequence[Mapping[str, float]]) -> None:
        """Append what TRL logged, by our names where we have one."""
        for log in logs:
            values = {TRL_NAMES.get(name, name): value for name, value in log.items()}
            for name in [name for name in values if name.startswith("rewards/")]:
                if name.endswith("/mean"):
                    values[name.removesuffix("/mean")] = values[name]
                del values[name]
            before_step = float(self._columns["step"][self.count - 1]) if self.count else 0.0
            is_evaluation = any(name.startswith("eval_") for name in values)
            values.setdefault("step", before_step if is_evaluation else before_step + 1)
            tokens, seconds = values.get("num_tokens"), values.get("step_s")
            if tokens is not None and seconds:
                before = self._columns.get("num_tokens")
                values["tokens_per_s"] = (tokens - (before[self.count - 1] if before is not None else 0.0)) / seconds
            if seconds is not None:
                clock = self._columns.get("time")
                before_s = float(clock[self.count - 1]) if clock is not None and self.count else 0.0
                values.setdefault("time", before_s + seconds)
            self.extend({name: [value] for name, value in values.items()}, 1)


# ---------------------------------------------------------------------------------------------------------------------
# Logs of TRL alone

TRL_NAMES = {
    "frac_reward_zero_std": "zero_variance",
    "completions/mean_length": "length_mean",
    "completions/max_length": "length_max",
    "completions/clipped_ratio": "truncated",
    "step_time": "step_s",
    "global_step": "step",
}

TRL_LINE = re.compile(r"^\{\s*'[^{}]{0,20000}\}$")
TRL_PAIR = re.compile(r"'([^']{1,200})':\s*'?([-+]?(?:\d[\d_.]*(?:e[-+]?\d+)?|nan|inf))'?\s*(?:,|\}$)", re.IGNORECASE)


def parse_trl(line: str) -> dict[str, float] | None:
    """The numbers of a dict line such as `{'loss': 0.01, 'reward': '0.5'}`; None for any other line.

    Newer versions print the numbers as strings. Nothing of the line is ever evaluated.
    """
    text = line.strip()
    begin = text.find("{'")  # a progress bar may stand before it
    if begin < 0 or not TRL_LINE.match(text[begin:]):
        return None
    found = {name: float(value) for name, value in TRL_PAIR.findall(text[begin:])}
    # The summary that ends a run is no step.
    return found if found and "train_runtime" not in found else None


# ---------------------------------------------------------------------------------------------------------------------
# Which charts there are


@dataclass(frozen=True)
class ChartSpec:
    """One chart: what it is called, what it shows, how. `columns` are several for stacked bars."""

    name: str
    columns: tuple[str, ...]
    about: str
    share: bool = False
    """A value in [0, 1], shown as a percentage."""
    color: int = 0

    @property
    def stacked(self) -> bool:
        return len(self.columns) > 1


KNOWN_CHARTS = (
    ChartSpec("reward", ("reward",), "mean reward of the step's completions", color=0),
    ChartSpec("solved", ("outcomes/solved",), "share of the completions that are solved", share=True, color=1),
    ChartSpec(
        "outcomes", tuple(f"outcomes/{name}" for name in OUTCOMES), "what became of the completions", share=True
    ),
    ChartSpec("groups", GROUPS, "groups all right, mixed, all wrong: only mixed ones teach solving", share=True),
    ChartSpec("reward_std", ("reward_std",), "spread of the rewards", color=4),
    ChartSpec("zero_variance", ("zero_variance",), "groups with equal rewards: they give no gradient", True, color=5),
    ChartSpec("length", ("length_mean",), "mean length of a completion, in tokens", color=2),
    ChartSpec("longest", ("length_max",), "longest completion, in tokens", color=2),
    ChartSpec("truncated", ("truncated",), "completions cut off at the token limit", share=True, color=5),
    ChartSpec("loss", ("loss",), "policy loss; near 0 by construction, not a measure of progress", color=3),
    ChartSpec("kl", ("kl",), "distance to the policy the cycle began with", color=4),
    ChartSpec("entropy", ("entropy",), "uncertainty over the next token, in nats", color=1),
    ChartSpec("grad_norm", ("grad_norm",), "norm of the gradient before clipping", color=3),
    ChartSpec("learning_rate", ("learning_rate",), "learning rate of AdamW", color=2),
    ChartSpec("tokens/s", ("tokens_per_s",), "tokens generated a second", color=0),
    ChartSpec("step_time", ("step_s",), "seconds a step", color=0),
    ChartSpec("rung", ("rung",), "difficulty that the curriculum has reached", color=1),
)

OWN_COLUMNS = {column for chart in KNOWN_CHARTS for column in chart.columns} | {
    *("step", "time", "tokens", "num_tokens", "epoch", "generation_s", "scoring_s", "update_s"),
}


def charts_of(runs: Iterable[Metrics]) -> list[ChartSpec]:
    """The charts for which some run has a number, the most important first; each reward component after the reward."""
    known = list(runs)
    names = dict.fromkeys(name for metrics in known for name in metrics.names)
    parts = [
        ChartSpec(
            name.removeprefix("rewards/"), (name,), f"mean of the reward {name.removeprefix('rewards/')}", color=6
        )
        for name in names
        if name.startswith("rewards/")
    ]
    others = [
        ChartSpec(name, (name,), f"{name}, as logged", color=7)
        for name in names
        if name not in OWN_COLUMNS and not name.startswith(("rewards/", "outcomes/"))
    ]
    ordered = [*KNOWN_CHARTS[:4], *parts, *KNOWN_CHARTS[4:], *others]
    return [chart for chart in ordered if any(metrics.has(name) for metrics in known for name in chart.columns)]


def matching(charts: Sequence[ChartSpec], pattern: str) -> list[ChartSpec]:
    """The charts whose name holds `pattern`, or matches it where it has * or ?; several are parted by blanks."""
    words = pattern.casefold().split()

    def fits(name: str, word: str) -> bool:
        return fnmatch.fnmatchcase(name, word) if set(word) & set("*?[") else word in name

    return [chart for chart in charts if not words or any(fits(chart.name.casefold(), word) for word in words)]


# ---------------------------------------------------------------------------------------------------------------------
# One run


class RunReader:
    """Follows one run: its metrics, and its status. `lines` names the files it reads, for messages.

    `metrics` is a new object after the file was replaced or cut short, as a resumed run does.
    """

    def __init__(self, name: str, folder: Path, metrics_file: Path, *, trl: bool = False, run: Run | None = None):
        self.name = name
        self.folder = folder
        self.run = run
        self.metrics_file = metrics_file
        self.metrics = Metrics()
        self.status: Status | None = None
        self.notes = ""
        self._tail: Tail[StepLine] | TextTail = TextTail(metrics_file) if trl else Tail(metrics_file, StepLine)

    @property
    def files(self) -> RunFiles:
        return RunFiles(self.folder)

    @property
    def completions_file(self) -> Path:
        """Where the completions of this run are: an evaluation has another name for them than a cycle."""
        return self.files.completions if self.run is not None and self.run.kind == "eval" else self.files.trace

    @property
    def is_log(self) -> bool:
        """Is it a log of TRL alone?"""
        return isinstance(self._tail, TextTail)

    @property
    def bad(self) -> int:
        """Lines that could not be read."""
        return self._tail.bad if isinstance(self._tail, Tail) else 0

    @property
    def remaining(self) -> int:
        """Bytes that are known to be there and are not read yet."""
        return self._tail.remaining

    @property
    def progress(self) -> float:
        """Share of the file that is read."""
        return self._tail.offset / self._tail.size if self._tail.size else 1.0

    def poll(self, max_bytes: int = 8 * 2**20) -> bool:
        """Read some of what is new; True when there was anything. Call again at once while `remaining`."""
        lines: Sequence[StepLine] | Sequence[str] = self._tail.read(max_bytes)
        if self._tail.restarted:
            self.metrics = Metrics()
        if isinstance(self._tail, TextTail):
            logs = [log for line in lines if (log := parse_trl(str(line))) is not None]
            self.metrics.extend_trl(logs)
            return bool(logs) or self._tail.restarted
        self.metrics.extend_steps(lines)  # type: ignore[arg-type]
        return bool(lines) or self._tail.restarted

    def poll_status(self) -> bool:
        """Look at `status.json`; True when it says something new."""
        before, self.status = self.status, read_status(self.files.status)
        return before != self.status

    def read_all(self) -> None:
        """Read to the end, for a program that draws once."""
        self.poll_status()
        self.poll()
        while self.remaining:
            self.poll()


def open_path(path: Path) -> RunReader:
    """A reader for the folder of a run, its metrics file, or a log that TRL wrote.

    Raises:
        RlvrError: when there is nothing to read.
    """
    if path.is_dir():
        files = RunFiles(path)
        run = run_at(path)
        if run is None and not files.metrics.exists() and files.log.exists():
            return RunReader(path.name, path, files.log, trl=True)
        if run is None and not any(file.exists() for file in (files.metrics, files.trace, files.status)):
            raise RlvrError(
                f"{path}: no metrics.jsonl, trace.jsonl or run.log in this folder: give the folder of a run, or a file"
            )
        return RunReader(str(run) if run else path.resolve().name, path, files.metrics, run=run)
    if not path.is_file():
        raise RlvrError(f"{path}: no such file or folder: give a run such as 003, its folder, or a metrics.jsonl")
    if path.suffix == ".jsonl":
        folder = path.parent
        if path.name == RunFiles(folder).trace.name or path.name == RunFiles(folder).completions.name:
            return open_path(folder)
        run = run_at(folder)
        return RunReader(str(run) if run else f"{folder.resolve().name}/{path.name}", folder, path, run=run)
    return RunReader(path.name, path.parent, path, trl=True)


def open_run(run: Run) -> RunReader:
    return RunReader(str(run), run.folder, run.files.metrics, run=run)
