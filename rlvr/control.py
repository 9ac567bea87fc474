"""Detached runs, from the side of whoever steers them: start, kill, resume, wait; and the queue.

The queue is the pending runs themselves, in the order of their tickets: each has a supervisor that waits for its turn.
After a restart of the machine `start_waiting` gives them new ones; every `rlvrctl.py` command that looks at runs calls
it. What such a process does is `supervisor.py`.

Whoever gives a run a supervisor holds the lock of `training/` until `status.json` names that process, and a supervisor
begins by taking the lock and looking whether it is the one named: so a run never has two.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from rlvr import records
from rlvr.cycles import Run, all_runs, find_run, locked, model_names, whole_checkpoints
from rlvr.errors import RlvrError
from rlvr.progress import Progress
from rlvr.records import Launch, Status
from rlvr.status import (
    LIVING,
    SUPERVISED,
    is_alive,
    left_of,
    left_on_colab,
    new_status,
    process_start,
    read_status,
)

ROOT = Path(__file__).resolve().parent.parent

POLL_S = 0.5
GRACE_S = 30.0
"""How long what is left of a lost run may take to save its checkpoint before a resume is refused."""

TAKEN_OUT = "taken out of the queue"
ASKED = {
    "train": "asked to stop: it ends after the step in progress, with a checkpoint",
    "eval": "asked to stop: it ends at once; what was graded stays in its completions.jsonl",
    "auto": "asked to stop: it ends with what it has started",
}
FORCED = {
    "train": "killed by force: no checkpoint of the last steps",
    "eval": "killed by force",
    "auto": "killed by force, with what it had started",
}


def spawn(run: Run) -> None:
    """Give a pending run a supervisor: a process in a session of its own, which writes to the run's log.

    The caller holds the lock.

    Raises:
        OSError: when its folder cannot be written.
    """
    status = status_of(run)
    status.state, status.message, status.exit_code, status.finished = "pending", "", None, None
    status.waiting_for = ""
    module = "rlvr.colab.supervisor" if on_colab(run) else "rlvr.auto" if run.kind == "auto" else "rlvr.supervisor"
    # The path is relative to the folder that holds training/, so that a run outlives a move of it.
    root = run.training_dir.parent
    environment = {name: value for name, value in os.environ.items() if name != SUPERVISED}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    with run.files.log.open("ab") as log:
        supervisor = subprocess.Popen(
            # -P: a file of the user in that folder that is called like a module of ours is not imported.
            [sys.executable, "-P", "-m", module, os.path.relpath(os.path.abspath(run.folder), root)],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environment,
        )
    status.pid, status.process_start = supervisor.pid, process_start(supervisor.pid) or 0.0
    folder = run.folder.stat()
    status.device, status.inode = folder.st_dev, folder.st_ino
    status.updated = time.time()
    records.write(run.files.status, status)


def on_colab(run: Run) -> bool:
    """Does this run live on a rented VM?"""
    with contextlib.suppress(RlvrError):
        return bool(records.read(run.files.launch, Launch).colab)
    return False


def place_of(run: Run, launch: Launch) -> str:
    """What a run takes for itself: "" for this machine, a rented VM that stays up, or one of its own."""
    return (launch.colab["session"] or str(run)) if launch.colab else ""


def start_waiting() -> list[Run]:
    """Give every pending run without a living supervisor a new one, in the order of the queue; returns those.

    Where nothing can be written they stay as they are: a listing can be had all the same.
    """
    started: list[Run] = []
    if any(is_orphan(run) for model in model_names() for run in all_runs(model)):
        with contextlib.suppress(OSError), locked():
            for run, _, _ in waiting_runs():
                if is_orphan(run):
                    spawn(run)
                    started.append(run)
    return started


def is_orphan(run: Run) -> bool:
    """Is this run pending without anybody who looks after it?"""
    status = read_status(run.files.status)
    return status is not None and status.state == "pending" and not is_alive(status)


def status_of(run: Run) -> Status:
    """The status of a run; a folder without one is a run that never began."""
    status = read_status(run.files.status) or new_status(run.kind, "failed", message="it has no status.json")
    if status.state == "lost":
        # Its program may have come further than its supervisor has seen.
        Progress(run).advance(status)
    return status


def kill(run: Run, force: bool = False) -> str:
    """End a run: SIGTERM lets it save a checkpoint, `force` kills its whole process group; returns what was done.

    One that waits is taken out of the queue.

    A pid that now belongs to another process is never signalled.

    Raises:
        RlvrError: when the run is not living.
    """
    with locked(run.training_dir):
        status = status_of(run)
        if status.state not in LIVING:
            raise RlvrError(f"{run} is not running: it is {status.state}")
        if is_alive(status) and not may_signal(status.pid):
            raise RlvrError(f"{run} belongs to another user: it can be ended by them alone")
        if status.state == "pending":
            # Its supervisor has nothing to save, and SIGTERM, as at a shutdown, would leave it in the queue.
            if is_alive(status):
                kill_group(status)
            mark_killed(run, status, 143, TAKEN_OUT)
            return TAKEN_OUT
        if force:
            kill_group(status)
            goes_on = left_on_colab(run.folder)
            said = f"killed by force: {goes_on}" if goes_on else FORCED[run.kind]
            mark_killed(run, status_of(run), 137, said)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(status.pid, signal.SIGTERM)
    if force:
        if run.kind == "auto" and status.waiting_for:
            with contextlib.suppress(RlvrError):  # it has ended
                kill(find_run(status.waiting_for, run.model), force=True)
        if goes_on := left_on_colab(run.folder):
            return f"killed, but {goes_on}"
        return "killed with its whole process group"
    return ASKED[run.kind]


def may_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return False
    except ProcessLookupError:
        pass
    return True


def kill_group(status: Status) -> None:
    """SIGKILL for a supervisor and all that it started; returns when they are gone."""
    with contextlib.suppress(ProcessLookupError):
        # A supervisor leads its group, with its program in it; a program without one may be in that of a shell.
        if os.getpgid(status.pid) == status.pid:
            os.killpg(status.pid, signal.SIGKILL)
        else:
            os.kill(status.pid, signal.SIGKILL)
    until = time.monotonic() + GRACE_S
    while (is_alive(status) or left_of(status)) and time.monotonic() < until:
        time.sleep(0.02)


def mark_killed(run: Run, status: Status, code: int, message: str) -> None:
    status.state, status.message, status.waiting_for = "killed", message, ""
    status.exit_code, status.finished, status.updated = code, time.time(), time.time()
    records.write(run.files.status, status)


def resume(run: Run) -> str:
    """Start an interrupted run again; returns from where it goes on.

    A cycle goes on from its last checkpoint, an auto run with the round it was in, an evaluation begins anew.

    Raises:
        RlvrError: when it is living, done, or the program of a lost one has not ended.
    """
    status = check_resumable(run)
    until = time.monotonic() + GRACE_S
    while (left := left_of(status)) and time.monotonic() < until:
        time.sleep(0.1)  # the program of a lost run saves its checkpoint
    if left:
        raise RlvrError(f"{run}: what is left of it (processes {left}) is still at work: wait for it, or end it")
    with locked(run.training_dir):
        check_resumable(run)  # somebody else may have been faster
        launch = records.read(run.files.launch, Launch)
        saved = run.kind == "train" and bool(whole_checkpoints(run.files))
        records.write(run.files.launch, msgspec.structs.replace(launch, resume=saved, ticket=time.time(), after=""))
        spawn(run)
    if run.kind == "train" and not saved:
        return "from its first step: no checkpoint was saved"
    return {"train": "from its last checkpoint", "eval": "from its beginning", "auto": "with its last round"}[run.kind]


def check_resumable(run: Run) -> Status:
    """The status of an interrupted run.

    Raises:
        RlvrError: when there is nothing to resume.
    """
    status = status_of(run)
    if status.state in LIVING:
        raise RlvrError(f"{run} is {status.state}: there is nothing to resume")
    if status.state == "done":
        raise RlvrError(f"{run} is done: start the next one with rlvrctl.py {run.kind}")
    if not run.files.launch.is_file():
        raise RlvrError(f"{run} was not started by rlvrctl.py: go on with gemma4_oeis_rlvr.py --cycle DIR --resume")
    return status


def pause() -> None:
    """Wait as long as it makes sense before looking at a run again."""
    time.sleep(POLL_S / 2)


def waiting_runs() -> list[tuple[Run, Status, Launch]]:
    """The pending runs of all models in the order of the queue."""
    found = []
    for model in model_names():
        for run in all_runs(model):
            status = read_status(run.files.status)
            if status is not None and status.state == "pending" and run.files.launch.is_file():
                found.append((run, status, records.read(run.files.launch, Launch)))
    return sorted(found, key=lambda row: row[2].ticket)


def wait(runs: Sequence[Run], timeout_s: float | None = None) -> int | None:
    """Block until none of `runs` is living; the first exit code that is not 0, None when the time ran out first."""
    until = None if timeout_s is None else time.monotonic() + timeout_s
    while any(status_of(run).state in LIVING for run in runs):
        if until is not None and time.monotonic() > until:
            return None
        if any(map(is_orphan, runs)):
            start_waiting()
        pause()
    codes = [exit_code(status_of(run)) for run in runs]
    return next((code for code in codes if code), 0)


def exit_code(status: Status) -> int:
    """The exit code of a run that has ended; 1 where it left none."""
    return 0 if status.state == "done" else status.exit_code or 1


# ---------------------------------------------------------------------------------------------------------------------
# The queue


def blocker(run: Run, launch: Launch) -> Run | None:
    """Who has to end before this run may begin: the run it comes after, a running one, or one queued earlier.

    Raises:
        RlvrError: when the run it comes after has ended without success.
    """
    if launch.after:
        before = find_run(launch.after)
        state = status_of(before).state
        if state in LIVING:
            return before
        if state != "done":
            raise RlvrError(f"not started: it was to come after {before}, which is {state}")
    if not launch.queue:
        return None
    waiting: list[tuple[float, Run]] = []
    place = place_of(run, launch)
    for model in model_names():
        for other in all_runs(model):
            if other.kind == "auto" or (other.model, other.name) == (run.model, run.name):
                continue
            status = read_status(other.files.status)
            if status is None or not (is_alive(status) if status.state in LIVING else is_ending(status)):
                continue
            ticket = None
            with contextlib.suppress(RlvrError):
                ticket = records.read(other.files.launch, Launch)
            if place != (place_of(other, ticket) if ticket else ""):
                continue
            if status.state != "pending":
                return other
            if ticket is not None and ticket.ticket < launch.ticket and not waits_for_another(ticket):
                waiting.append((ticket.ticket, other))
    return min(waiting, key=lambda pair: pair[0])[1] if waiting else None


def is_ending(status: Status) -> bool:
    """Is a lost run's program still there, to save its checkpoint?"""
    return status.state == "lost" and bool(left_of(status))


def waits_for_another(launch: Launch) -> bool:
    """Is this pending run waiting for the run it comes after? Then it holds nobody else up."""
    if not launch.after:
        return False
    with contextlib.suppress(RlvrError):
        return status_of(find_run(launch.after)).state in LIVING
    return False
