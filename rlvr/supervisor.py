"""Detached runs: start, queue, liveness, kill, resume, wait.

    python -m rlvr.supervisor training/m/003       (what `start` runs in the background, with a session of its own)

A supervisor owns one run: it waits for its turn, starts the trainer or the evaluator, writes `status.json` while it
runs and when it has ended, passes SIGTERM on. It outlives the terminal. When it dies itself, the kernel stops its
program, and readers see the run as lost. It reads metrics and completions for progress and knows nothing of models.

The queue is the pending runs themselves, in the order of their tickets: each has a supervisor that waits. After a
restart of the machine `start_waiting` gives them new ones; every `rlvrctl.py` command that looks at runs calls it.
"""

import contextlib
import ctypes
import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import psutil

from rlvr import records
from rlvr.cycles import TRAINING_DIR, Run, all_runs, find_run, latest_adapter, locked, model_names, run_at
from rlvr.errors import RlvrError
from rlvr.records import Launch, Record, Status, Step, Tail
from rlvr.status import LIVING, SUPERVISED, StatusFile, is_alive, new_status, process_start, read_status

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = {"train": "gemma4_oeis_rlvr.py", "eval": "eval_oeis.py"}

POLL_S = 0.5
GRACE_S = 30.0
"""How long what is left of a lost run may take to save its checkpoint before a resume is refused."""

EXIT_KILLED = (128 + signal.SIGTERM, 128 + signal.SIGINT)
PR_SET_PDEATHSIG = 1

# ---------------------------------------------------------------------------------------------------------------------
# The side of the commands


def start(run: Run, launch: Launch) -> None:
    """Start a run in the background: it begins when its turn comes.

    Raises:
        OSError: when its folder cannot be written.
    """
    records.write(run.files.launch, launch)
    spawn(run)


def spawn(run: Run) -> None:
    """Give a pending run a supervisor: a process in a session of its own, which writes to the run's log."""
    status = status_of(run)
    status.state, status.message, status.exit_code, status.finished = "pending", "", None, None
    # Until the supervisor has written its own, the run answers to this process.
    status.pid, status.process_start = os.getpid(), process_start(os.getpid()) or 0.0
    records.write(run.files.status, status)
    folder = Path(os.path.abspath(run.folder))
    module = "rlvr.auto" if run.kind == "auto" else "rlvr.supervisor"
    with run.files.log.open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", module, str(folder)],
            cwd=folder.parents[len(Path(run.name).parts) + 1],  # the folder that holds training/
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        )


def start_waiting() -> list[Run]:
    """Give every pending run without a living supervisor a new one, in the order of the queue; returns those."""
    found = []
    for model in model_names():
        for run in all_runs(model):
            status = read_status(run.files.status)
            if status is not None and status.state == "pending" and not is_alive(status):
                found.append((run, status))
    if not found:
        return []
    started = []
    with locked(TRAINING_DIR):
        for run, _ in found:
            status = read_status(run.files.status)
            if status is None or status.state != "pending" or is_alive(status):
                continue  # another command was faster
            if run.files.launch.is_file():
                spawn(run)
                started.append(run)
            else:
                status.state, status.message = "failed", "the command that made this folder was interrupted"
                records.write(run.files.status, status)
    return started


def status_of(run: Run) -> Status:
    """The status of a run; a folder without one is a run that never began."""
    return read_status(run.files.status) or new_status(run.kind, "failed", message="it has no status.json")


def kill(run: Run, force: bool = False) -> str:
    """End a run: SIGTERM lets it save a checkpoint, `force` kills its whole process group; returns what was done.

    A pid that now belongs to another process is never signalled.

    Raises:
        RlvrError: when the run is not living.
    """
    status = status_of(run)
    if status.state not in LIVING:
        raise RlvrError(f"{run} is not running: it is {status.state}")
    if not is_alive(status):  # pending, and its supervisor is gone
        mark_killed(run, status, "taken out of the queue")
        return "taken out of the queue"
    if not force:
        os.kill(status.pid, signal.SIGTERM)
        return "asked to stop: it ends after the step in progress, with a checkpoint"
    with contextlib.suppress(ProcessLookupError):
        # The supervisor leads its group; its program and the sandbox of that are in it.
        os.killpg(status.pid, signal.SIGKILL)
    until = time.monotonic() + GRACE_S
    while group_members(status.pid) and time.monotonic() < until:
        time.sleep(0.02)
    mark_killed(run, status_of(run), "killed by force: no checkpoint of the last steps")
    return "killed with its whole process group"


def mark_killed(run: Run, status: Status, message: str) -> None:
    status.state, status.message = "killed", message
    status.exit_code, status.finished, status.updated = 128 + signal.SIGKILL, time.time(), time.time()
    records.write(run.files.status, status)


def resume(run: Run) -> str:
    """Start an interrupted run again; returns from where it goes on.

    A cycle goes on from its last checkpoint, an auto run with the round it was in, an evaluation begins anew.

    Raises:
        RlvrError: when it is living, done, or the program of a lost one has not ended.
    """
    status = status_of(run)
    if status.state in LIVING:
        raise RlvrError(f"{run} is {status.state}: there is nothing to resume")
    if status.state == "done":
        raise RlvrError(
            f"{run} is done: start the next one with rlvrctl.py {'train' if run.kind == 'train' else 'eval'}"
        )
    if not run.files.launch.is_file():
        raise RlvrError(f"{run} was not started by rlvrctl.py: go on with gemma4_oeis_rlvr.py --cycle DIR --resume")
    until = time.monotonic() + GRACE_S
    while group_members(status.pid) and time.monotonic() < until:
        time.sleep(0.1)  # the program of a lost run saves its checkpoint
    if group_members(status.pid):
        raise RlvrError(f"{run}: its processes {group_members(status.pid)} have not ended: stop them, then resume")
    launch = records.read(run.files.launch, Launch)
    from_checkpoint = run.kind == "train" and run.files.checkpoints.is_dir() and any(run.files.checkpoints.iterdir())
    launch = msgspec.structs.replace(launch, resume=from_checkpoint, ticket=time.time(), after="")
    start(run, launch)
    if run.kind == "train" and not from_checkpoint:
        return "no checkpoint was saved: it begins again from its first step"
    return {"train": "from its last checkpoint", "eval": "from its beginning", "auto": "with its last round"}[run.kind]


def group_members(group: int) -> list[int]:
    """Process numbers of what lives in a process group; none for group 0."""
    found = []
    for process in psutil.process_iter() if group else ():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


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
    for model in model_names():
        for other in all_runs(model):
            if other.kind == "auto" or other.folder.resolve() == run.folder.resolve():
                continue
            status = read_status(other.files.status)
            if status is None or status.state not in LIVING or not is_alive(status):
                continue
            if status.state == "running":
                return other
            with contextlib.suppress(RlvrError):
                ticket = records.read(other.files.launch, Launch)
                if ticket.ticket < launch.ticket and not waits_for_another(ticket):
                    waiting.append((ticket.ticket, other))
    return min(waiting, key=lambda pair: pair[0])[1] if waiting else None


def waits_for_another(launch: Launch) -> bool:
    """Is this pending run waiting for the run it comes after? Then it holds nobody else up."""
    if not launch.after:
        return False
    with contextlib.suppress(RlvrError):
        return status_of(find_run(launch.after)).state in LIVING
    return False


# ---------------------------------------------------------------------------------------------------------------------
# The supervisor's side


class Stopped(Exception):
    """SIGTERM came while the run was waiting for its turn."""


def command_of(run: Run, launch: Launch) -> list[str]:
    """The command line of a run's program, with the checkpoints that are there now.

    Raises:
        RlvrError: when an adapter is missing.
    """
    files = run.files
    command = [sys.executable, "-u", str(ROOT / PROGRAMS[run.kind]), "--config", str(files.config)]
    if run.kind == "eval":
        return [*command, "--out", str(run.folder), "--adapters", *launch.participants]
    command += ["--cycle", str(run.folder)]
    parent = launch.parent
    if parent == "latest":
        found = latest_adapter(run.model, before=run.name)
        parent = str(found.files.adapter) if found else ""
    if files.parent.exists():  # begun before: what it was warm-started from does not change
        parent = str(files.parent.resolve())
    command += ["--parent", parent] if parent else []
    return [*command, "--resume"] if launch.resume else command


def supervise(run: Run) -> int:
    """Wait for the turn of a run, run its program, and leave a status that says how it ended."""
    launch = records.read(run.files.launch, Launch)
    status = StatusFile(run.files.status, status_of(run))
    stop = [0]

    def receive(number: int, frame: object) -> None:
        stop[0] = number

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, receive)
    try:
        wait_turn(run, launch, status, stop)
        command = command_of(run, launch)
    except Stopped:
        status.write(state="killed", finished=time.time(), exit_code=143, message="taken out of the queue")
        return 143
    except RlvrError as error:
        status.write(state="failed", finished=time.time(), exit_code=2, message=str(error))
        return 2

    print(f"$ {' '.join(command)}", flush=True)
    program = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        env={**os.environ, SUPERVISED: str(os.getpid())},
        preexec_fn=end_with_parent,
    )
    progress = Progress(run)
    passed_on = False
    while program.poll() is None:
        if stop[0] and not passed_on:
            program.send_signal(signal.SIGTERM)
            passed_on = True
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(POLL_S)
        if progress.advance(status.status):
            write_or_say(status)
    progress.advance(status.status)
    end(run, launch, status, program.returncode)
    return program.returncode


def end_with_parent() -> None:
    """In the program, before it starts: ask the kernel for SIGTERM when the supervisor dies. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def write_or_say(status: StatusFile) -> None:
    """Write a status; on a full disk the run goes on, and the next write may find room."""
    try:
        status.write()
    except OSError as error:
        print(f"status.json could not be written: {error.strerror}", flush=True)


def wait_turn(run: Run, launch: Launch, status: StatusFile, stop: list[int]) -> None:
    """Return when the run may begin, with its state set to running while nobody else could do the same.

    Raises:
        Stopped: at SIGTERM.
        RlvrError: when it can never begin.
    """
    while True:
        if stop[0]:
            raise Stopped
        with locked(TRAINING_DIR):
            other = blocker(run, launch)
            if other is None:
                status.write(state="running", started=time.time(), waiting_for="", message="")
                return
        name = other.name if other.model == run.model else str(other)
        if status.status.waiting_for != name:
            status.write(state="pending", waiting_for=name, message=f"waiting for {name}")
        # Look at this one file until something changes there, instead of at all runs.
        while not stop[0] and status_of(other).state == "running":
            time.sleep(POLL_S)
        time.sleep(POLL_S / 2)


def end(run: Run, launch: Launch, status: StatusFile, code: int) -> None:
    """Write down how the program ended."""
    message = ""
    if code == 0:
        state = "done"
        clear_ephemeral(run, launch)
    elif code in EXIT_KILLED or code == -signal.SIGTERM:
        state, code, message = "killed", 143, f"stopped after step {status.status.step}"
    else:
        state, message = "failed", last_words(run.files.log)
        if code < 0:
            message = f"its program was ended by {signal.Signals(-code).name}; its last words: {message}"
            code = 128 - code
    try:
        status.write(state=state, finished=time.time(), exit_code=code, message=message)
    except OSError as error:
        print(f"status.json could not be written: {error.strerror}", flush=True)


def clear_ephemeral(run: Run, launch: Launch) -> None:
    """The one-shot layer has served: take out of it what this run used."""
    if not launch.ephemeral:
        return
    from rlvr import layers
    from rlvr.config import EvalConfig, TrainConfig

    try:
        config_class = TrainConfig if run.kind == "train" else EvalConfig
        layers.clear_ephemeral(TRAINING_DIR / run.model, config_class, launch.ephemeral)
    except (RlvrError, OSError) as error:
        print(f"the one-shot keys could not be cleared: {error}", flush=True)


def last_words(log: Path, size: int = 16_384) -> str:
    """The line of a log that says why it ended: the last one with "error" in it, else the last."""
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - size, 0))
        lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(error|\w*(Error|Exception|Interrupt))\b", line)]
    return (errors or lines or ["it printed nothing"])[-1][:500]


class Answered(msgspec.Struct):
    """What counts here of a completion."""

    outcome: str


def read_all(tail: Tail[Record]) -> list[Record]:
    """Everything that was added to a file."""
    found = tail.read()
    while tail.remaining:
        found += tail.read()
    return found


class Progress:
    """How far a run is, from what its program appends: steps of a cycle, completions of an evaluation."""

    def __init__(self, run: Run):
        self.run = run
        self.steps = Tail(run.files.metrics, Step)
        self.answered = Tail(run.files.completions, Answered)
        self.answers = self.solved = self.total = 0

    def advance(self, status: Status) -> bool:
        """Bring a status up to date; true when something changed."""
        before = (status.step, status.max_steps)
        if self.run.kind == "train":
            for step in read_all(self.steps):
                status.step, status.max_steps = step.step, step.max_steps
                status.reward = step.reward
                status.solved = step.outcomes.get("solved", 0) / max(sum(step.outcomes.values()), 1)
        else:
            status.step = self.answers = self.answers + len(new := read_all(self.answered))
            self.solved += sum(line.outcome == "solved" for line in new)
            status.solved = self.solved / self.answers if self.answers else None
            self.total = self.total or self.expected_completions()
            status.max_steps = self.total
        return (status.step, status.max_steps) != before

    def expected_completions(self) -> int:
        """Tasks x samples x participants, once the evaluator has written them down; 0 before."""
        import tomllib

        with contextlib.suppress(OSError, tomllib.TOMLDecodeError, KeyError):
            snapshot = tomllib.loads(self.run.files.config.read_text(encoding="utf-8"))
            about = snapshot["provenance"]
            return about["num_tasks"] * snapshot["samples"] * len(about["participants"])
        return 0


@contextlib.contextmanager
def sole_supervisor(run: Run) -> Iterator[bool]:
    """Yield whether this process is the only one that answers for a run, now and until it ends."""
    with (run.folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            # Killed before it began? Then it stays so.
            yield status_of(run).state == "pending"


def main(work: Callable[[Run], int]) -> int:
    """Answer for the run whose folder is the argument: `work` is `supervise`, or its like for another kind."""
    run = run_at(Path(sys.argv[1]))
    if run is None:
        print(f"error: {sys.argv[1]}: not the folder of a run", file=sys.stderr)
        return 2
    with sole_supervisor(run) as alone:
        return work(run) if alone else 0


if __name__ == "__main__":
    sys.exit(main(supervise))
