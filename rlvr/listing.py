"""What a listing shows of a run: state, progress, time, reward, in one row; for `rlvrctl.py ps` and the dashboard.

    rows = newest_first(read_row(run) for run in all_runs("m"))

A row never fails: a file that cannot be read is a row that says so. It starts nothing and imports neither rich nor the
supervisor, because a listing should be there at once.
"""

import re
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from rlvr import records
from rlvr.cycles import Kind, Run, RunFiles, read_label
from rlvr.errors import RlvrError
from rlvr.records import Launch, Round, Status, Step, Tail
from rlvr.status import LIVING, is_alive, read_status

PACE_BYTES = 32_768
"""So much of the end of `metrics.jsonl`, some twenty steps, says how fast a cycle is now."""

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One run in a listing, and one object of `ps --json`. Times are seconds since 1970, unknown ones None.

    `step` of `max_steps` counts steps of a cycle, completions of an evaluation, rounds of an auto run. `elapsed_s` is
    since the run was last started; `remaining_s` goes by the pace of this very run. `reward` and `solved` are the
    newest. `pid` is of the process that answers for a living one.
    """

    model: str
    run: str
    kind: str
    state: str
    step: int
    max_steps: int
    percent: float | None
    created: float | None
    started: float | None
    finished: float | None
    elapsed_s: float | None
    remaining_s: float | None
    reward: float | None
    solved: float | None
    waiting_for: str
    exit_code: int | None
    label: str
    message: str
    pid: int | None
    folder: str

    @property
    def live(self) -> bool:
        return self.state in LIVING


def read_row(run: Run, now: float | None = None) -> Row:
    """The row of a run as its files are now."""
    now = time.time() if now is None else now
    status = read_status(run.files.status)
    if status is None:
        status = Status(state="failed", kind=run.kind, created=0.0, updated=0.0, message="it has no status.json")
    if status.state == "lost" and run.kind == "train":
        # Its program may have come further than its supervisor has seen.
        for step in newest_steps(run)[-1:]:
            status.step, status.max_steps = step.step, step.max_steps
            status.reward, status.solved = step.reward, solved_share(step)
    is_waiting = status.state == "pending" and status.waiting_for != ""
    return Row(
        model=run.model,
        run=run.name,
        kind=run.kind,
        state=status.state,
        step=status.step,
        max_steps=status.max_steps,
        percent=100 * status.step / status.max_steps if status.max_steps else None,
        created=status.created or modified(run.folder),
        started=status.started,
        finished=status.finished,
        elapsed_s=elapsed(status, now),
        remaining_s=remaining(run, status, now) if status.state == "running" else None,
        reward=status.reward,
        solved=status.solved,
        waiting_for=status.waiting_for,
        exit_code=status.exit_code,
        label=read_label(run),
        message=status.message or (f"waiting for {status.waiting_for}" if is_waiting else ""),
        pid=status.pid if status.state in LIVING else None,
        folder=str(run.folder),
    )


def modified(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def elapsed(status: Status, now: float) -> float | None:
    """Seconds since a run was last started, up to its end; None for one that has not begun."""
    if status.started is None:
        return None
    end = now if status.state == "running" else status.finished or status.updated
    return max(end - status.started, 0.0)


def remaining(run: Run, status: Status, now: float) -> float | None:
    """Seconds until a running one is done, if it goes on as it did; None before there is anything to go by."""
    if not status.step or not status.max_steps or status.started is None:
        return None
    newest = status.updated
    if run.kind == "train":
        if steps := newest_steps(run):
            return time_left([step.time for step in steps], steps[-1].step_s, status.max_steps - status.step, now)
    elif run.kind == "auto":
        rounds = Tail(run.files.rounds, Round).read()
        if rounds:
            newest = rounds[-1].time
    pace_s = max(newest - status.started, 0.0) / status.step
    return max((status.max_steps - status.step) * pace_s - (now - newest), 0.0)


def time_left(times: Sequence[float], step_s: float, num_steps: int, now: float) -> float:
    """Seconds for so many more steps of a cycle, by the pace of the last ones.

    Args:
        times: when they ended, in seconds since 1970, at least one.
        step_s: how long the last one took, which counts where it is the only one.
    """
    # The median, so that neither a checkpoint nor the break before a resume is taken for the pace.
    gaps = sorted(after - before for before, after in pairwise(times))
    return max(num_steps * (gaps[len(gaps) // 2] if gaps else step_s) - (now - times[-1]), 0.0)


def is_forgotten(row: Row) -> bool:
    """Does a pending run wait without a process? Then `control.start_waiting` has to give it a new one."""
    status = read_status(run_of(row).files.status) if row.state == "pending" else None
    return status is not None and not is_alive(status)


def newest_steps(run: Run) -> list[Step]:
    """The end of its metrics; [] when they cannot be read, which is no reason to leave the run out of a list."""
    try:
        return Tail(run.files.metrics, Step, last_bytes=PACE_BYTES).read()
    except OSError:
        return []


def solved_share(step: Step) -> float:
    return step.outcomes.get("solved", 0) / max(sum(step.outcomes.values()), 1)


def newest_first(rows: Iterable[Row]) -> list[Row]:
    """Running ones first, then those that wait, in the order of the queue, then what has ended; newest first."""

    def place(row: Row) -> tuple[int, float]:
        if row.state == "pending":
            return 1, queued(row)
        return (0 if row.state == "running" else 2), -(row.created or 0.0)

    return sorted(rows, key=place)


def queued(row: Row) -> float:
    try:
        return records.read(RunFiles(Path(row.folder)).launch, Launch).ticket
    except RlvrError:
        return row.created or 0.0


def run_of(row: Row) -> Run:
    kind: Kind = "eval" if row.kind == "eval" else "auto" if row.kind == "auto" else "train"
    return Run(row.model, row.run, kind, Path(row.folder))


# ---------------------------------------------------------------------------------------------------------------------
# Words


def duration_text(seconds: float | None) -> str:
    """`45 s`, `3 min`, `2 h 05`, `3 d 04 h`; "" for None."""
    if seconds is None:
        return ""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d}"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours:02d} h"


def parse_duration(text: str) -> float:
    """Seconds of `90`, `90s`, `10m`, `2h`, `1h30m` or `1d`.

    Raises:
        RlvrError: for anything else.
    """
    whole = re.fullmatch(r"(\d+(?:\.\d+)?)|((?:\d+(?:\.\d+)?[smhd])+)", text.strip().lower())
    if whole is None:
        raise RlvrError(f"{text!r} is no time: write it like 90, 90s, 10m, 2h, 1h30m or 1d")
    if whole[1]:
        return float(whole[1])
    return sum(float(number) * SECONDS[unit] for number, unit in re.findall(r"([\d.]+)([smhd])", whole[2]))


def step_text(step: Step) -> str:
    """One optimizer step in a line: what the trainer prints and `tail` shows."""
    reward = "   -  " if step.reward is None else f"{step.reward:+.3f}"
    infra = step.outcomes.get("infra", 0)
    return (
        f"step {step.step:>4}/{step.max_steps}  reward {reward}  solved {solved_share(step):5.1%}  "
        f"groups right/mixed/wrong {step.all_right:.0%}/{step.mixed:.0%}/{step.all_wrong:.0%}  "
        f"length {step.length_mean:.0f}  cut {step.truncated:.0%}  {step.tokens_per_s:,.0f} tok/s  {step.step_s:.1f} s"
        + (f"  WARNING: {infra} completions could not be scored (infrastructure) and were masked" if infra else "")
    )
