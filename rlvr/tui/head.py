"""How a run stands, for the line above its charts: printed by frame.py, in colours by viz.py. No Textual."""

import time
from dataclasses import dataclass

import numpy as np

from rlvr.listing import time_left
from rlvr.ticks import duration
from rlvr.tui.series import RunReader

SILENT_S = 120.0
"""After so long without news of a running run it is said."""

PACE_STEPS = 20
"""So many of the last steps say how fast a run is."""

UNITS = {"train": "step", "eval": "completion", "auto": "round"}


@dataclass(frozen=True)
class Standing:
    """`state` is "" for a run without a status, `total` 0 where nobody knows it."""

    name: str
    state: str = ""
    waiting_for: str = ""
    unit: str = "step"
    step: int = 0
    total: int = 0
    time_left: str = ""
    silence: str = ""
    message: str = ""
    """What the status says of its state."""
    trouble: str = ""


def standing(reader: RunReader) -> Standing:
    """How the run stands by what was read of it."""
    status, metrics = reader.status, reader.metrics
    steps = metrics.column("step")
    step = int(steps[-1]) if len(steps) else status.step if status else 0
    total = metrics.max_steps or (status.max_steps if status else 0)
    trouble = f"{reader.bad} lines could not be read" if reader.bad else ""
    if status is None:
        return Standing(reader.name, step=step, total=total, trouble=trouble)
    now, goes_on = time.time(), status.state == "running"
    left = seconds_left(reader, now) if goes_on else None
    silent_s = now - status.updated if goes_on else 0.0
    return Standing(
        reader.name,
        status.state,
        status.waiting_for,
        UNITS.get(status.kind, "step"),
        step,
        total,
        "" if left is None else f"{duration(left)} left",
        f"nothing new for {duration(silent_s)}" if silent_s > SILENT_S else "",
        status.message,
        trouble,
    )


def in_words(stand: Standing) -> str:
    """The line without colours."""
    waiting = f" (waiting for {stand.waiting_for})" if stand.waiting_for else ""
    progress = f"{stand.unit} {stand.step:,}" if stand.step or stand.total else ""
    of = f" of {stand.total:,}" if stand.total else ""
    parts = (stand.name, stand.state + waiting, progress + of, stand.time_left, stand.silence, stand.message)
    return "  ".join(filter(None, (*parts, stand.trouble)))


def seconds_left(reader: RunReader, now: float) -> float | None:
    """Of a run that goes on: the time for the steps still to go; None where nothing says how long they take."""
    metrics = reader.metrics.frozen()
    times = metrics.column("time")[-PACE_STEPS:]
    if not len(times) or not metrics.max_steps or not np.isfinite(times).all():
        return None
    num_steps = max(metrics.max_steps - int(metrics.column("step")[-1]), 0)
    return time_left(times.tolist(), float(metrics.column("step_s")[-1]), num_steps, now)
