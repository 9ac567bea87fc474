"""The process that answers for one run: its turn, its program, its status.

    python -m rlvr.supervisor training/m/003       (what `control.spawn` runs in the background, in its own session)

It waits for the run's turn, starts the trainer or the evaluator, writes `status.json` while that runs and when it has
ended, passes SIGTERM on. It outlives the terminal. When it dies itself, the kernel stops its program, and readers see
the run as lost. It reads metrics and completions for progress and knows nothing of models.
"""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rlvr import records
from rlvr.control import POLL_S, ROOT, blocker, status_of
from rlvr.cycles import TRAINING_DIR, Run, latest_adapter, locked, run_at
from rlvr.errors import RlvrError
from rlvr.progress import Progress
from rlvr.records import Launch, Status
from rlvr.status import LIVING, SUPERVISED, FolderMoved, StatusFile, read_status

PROGRAMS = {"train": "gemma4_oeis_rlvr.py", "eval": "eval_oeis.py"}

EXIT_KILLED = (128 + signal.SIGTERM, 128 + signal.SIGINT)
PR_SET_PDEATHSIG = 1

COMMAND_MARK = "$ "
"""What the log begins a start of the program with."""

OWN_WORDS = "[colab "
"""What the log begins a line with that its program has not printed."""


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
    status = StatusFile(run.files.status, status_of(run))
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: signals.append(number))
    try:
        launch = records.read(run.files.launch, Launch)
        wait_turn(run, launch, status, signals)
        command = command_of(run, launch)
        print(f"{COMMAND_MARK}{' '.join(command)}", flush=True)
        program = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            env={**os.environ, SUPERVISED: str(os.getpid())},
            preexec_fn=end_with_parent(os.getpid()),
        )
    except Stopped:
        return 143  # it is still pending: whoever takes a run out of the queue writes that down
    except FolderMoved as moved:
        say(f"error: {moved}")
        return 2  # it is still pending where it lies now: the next command gives it a supervisor there
    except (RlvrError, OSError) as error:
        write_or_say(status, state="failed", finished=time.time(), exit_code=2, waiting_for="", message=str(error))
        return 2

    progress = Progress(run)
    passed_on = 0
    while program.poll() is None:
        if moved_text(status):
            program.kill()  # asked to end, it would save its checkpoint in a folder made anew
            break
        # Each one is passed on: the first may come while the program still starts, and be lost there.
        for _ in signals[passed_on:]:
            program.send_signal(signal.SIGTERM)
            passed_on += 1
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(POLL_S / 2)
        if progress.advance(status.status):
            write_or_say(status)
    code = program.wait()
    if moved := moved_text(status):
        clear_remains(run)
        say(f"error: {moved}")
        message = f"{moved}: rlvrctl.py resume goes on where it is now"
        write_or_say(status, state="failed", finished=time.time(), exit_code=2, message=message)
        return 2
    progress.advance(status.status)
    end(run, launch, status, code)
    return code


def moved_text(status: StatusFile) -> str:
    """What to say where a run's folder was moved or removed; "" where it is still there."""
    try:
        status.check_folder()
    except FolderMoved as moved:
        return str(moved)
    return ""


def clear_remains(run: Run) -> None:
    """Remove the piece of a checkpoint that was just being written at a move, in a folder made anew for it."""
    with contextlib.suppress(OSError):
        if os.listdir(run.folder) == [run.files.checkpoints.name]:
            shutil.rmtree(run.folder)
            run.folder.parent.rmdir()  # refused where there is anything else in it


def end_with_parent(supervisor: int) -> Callable[[], None]:
    """For the program, before it starts: ask the kernel for SIGTERM when the supervisor dies. Linux only."""
    library = ctypes.CDLL(None)

    def prepare() -> None:
        if sys.platform == "linux":
            library.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            if os.getppid() != supervisor:  # it died before this could be asked for
                os.kill(os.getpid(), signal.SIGTERM)

    return prepare


def write_or_say(status: StatusFile, **changes: object) -> None:
    """Write a status, so that a reader learns of it in any case.

    On a full disk it is written over the old one, which needs no room; a folder that was moved is followed.
    """
    try:
        try:
            status.write(**changes)
        except FolderMoved:
            status.follow_folder()
            status.write()
    except OSError as error:
        say(f"status.json could not be replaced: {error.strerror}")
        why = str(error.strerror)
        if status.status.state not in LIVING and why not in status.status.message:  # its log had no room for it
            status.status.message = f"{why}: {status.status.message}"
        with contextlib.suppress(OSError), status.file.open("r+b") as file:
            text = records.encode(status.status)
            file.write(text.ljust(status.file.stat().st_size))


def say(text: str) -> None:
    """Print to the run's log, if there is room for it."""
    with contextlib.suppress(OSError):
        print(text, flush=True)


def wait_turn(run: Run, launch: Launch, status: StatusFile, signals: list[int]) -> None:
    """Return when the run may begin, with its state set to running while nobody else could do the same.

    Raises:
        Stopped: at SIGTERM.
        RlvrError: when it can never begin; FolderMoved when its folder is gone.
    """
    while True:
        if signals:
            raise Stopped
        status.check_folder()
        with locked():
            other = blocker(run, launch)
            if other is None:
                status.write(state="running", started=time.time(), waiting_for="", message="")
                return
        name = other.name if other.model == run.model else str(other)
        if status.status.waiting_for != name:
            status.write(state="pending", waiting_for=name, message=f"waiting for {name}")
        # Look at this one file until something changes there, instead of at all runs.
        while not signals and (seen := read_status(other.files.status)) and seen.state == "running":
            status.check_folder()
            time.sleep(POLL_S / 4)
        time.sleep(POLL_S / 4)


def end(run: Run, launch: Launch, status: StatusFile, code: int, why: str = "") -> None:
    """Write down how the program ended; `why` is known where the log does not tell."""
    message = why
    if code == 0:
        state = "done"
        clear_ephemeral(run, launch)
    elif code in EXIT_KILLED or code == -signal.SIGTERM:
        state, code, message = "killed", 143, why or stopped_text(run, status.status)
    else:
        state, message = "failed", why or last_words(run.files.log)
        if code < 0:
            message = f"its program was ended by {signal.Signals(-code).name}; its last words: {message}"
            code = 128 - code
    write_or_say(status, state=state, finished=time.time(), exit_code=code, message=message)


def stopped_text(run: Run, status: Status) -> str:
    """How far a run came that was stopped: steps of a cycle, completions of an evaluation."""
    unit = "step" if run.kind == "train" else "completion"
    if not status.step:
        return f"stopped before its first {unit}"
    return f"stopped after {unit} {status.step}" + (f" of {status.max_steps}" if run.kind == "eval" else "")


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
        say(f"the one-shot keys could not be cleared: {error}")


def last_words(log: Path, size: int = 16_384) -> str:
    """The line of a log that says why it ended: the last one with "error" in it, else the last."""
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - size, 0))
        text = "\n" + file.read().decode("utf-8", "replace")
    # What was printed before the last start is of an earlier attempt.
    last_attempt = text.rpartition(f"\n{COMMAND_MARK}")[2].splitlines()[1:]
    lines = [line.strip() for line in last_attempt if line.strip() and not line.startswith(OWN_WORDS)]
    errors = [line for line in lines if re.match(r"(error|\w*(Error|Exception|Interrupt))\b", line)]
    return (errors or lines or ["it printed nothing"])[-1][:500]


def main(work: Callable[[Run], int]) -> int:
    """Answer for the run whose folder is the argument: `work` is `supervise`, or its like for another kind."""
    run = run_at(Path(sys.argv[1]))
    if run is None:
        print(f"error: {sys.argv[1]}: not the folder of a run", file=sys.stderr)
        return 2
    with locked():
        status = status_of(run)
    if (status.state, status.pid) != ("pending", os.getpid()):
        return 0  # killed before it began, or the command that started this was interrupted
    try:
        return work(run)
    except FolderMoved as moved:
        say(f"error: {moved}")  # and nothing is written into what lies there now
        return 2
    except Exception as error:
        # Left as it is, a pending run would be started, and fail, at every command.
        status = status_of(run)
        status.state, status.exit_code, status.finished = "failed", 1, time.time()
        status.message = f"its supervisor failed, see the log: {type(error).__name__}: {error}"
        records.write(run.files.status, status)
        raise


if __name__ == "__main__":
    sys.exit(main(supervise))
