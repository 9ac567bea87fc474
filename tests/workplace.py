"""A folder to work in with rlvrctl.py, as a user does, and what is left of processes after it. Linux only."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
from conftest import ROOT
from processes import alive, descendants, wait_until

from rlvr import control, records, supervisor
from rlvr.records import Status
from rlvr.status import is_alive, process_start, read_status

SAMPLE = ROOT / "rlvr/assets/sample"
PROGRAMS = {str(control.ROOT / name) for name in supervisor.PROGRAMS.values()}
PR_SET_CHILD_SUBREAPER = 36

SMALL = {
    "max_steps": 2,
    "prompts_per_step": 4,
    "num_generations": 4,
    "filter_samples": 0,
    "baseline_tasks": 0,
    "preflight_tasks": 0,
    "save_steps": 1,
}
"""Keys of a cycle of seconds."""

LONG_S = 900.0
"""What nothing takes, however slow the machine is: the time is only there to end a broken test."""


class Workplace:
    """A folder with `training/` in it; `ctl` runs rlvrctl.py there."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __truediv__(self, path: str) -> Path:
        """`work / "m/001"` is the folder of a run."""
        return self.folder / "training" / path

    def start(self, *arguments: object, **options) -> subprocess.Popen[str]:
        command = [sys.executable, str(ROOT / "rlvrctl.py"), *map(str, arguments)]
        return subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )

    def ctl(self, *arguments: object, code: int = 0, **options) -> str:
        """What the command printed to stdout; to stderr where it is to fail."""
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=LONG_S)
        assert process.returncode == code, (arguments, process.returncode, out, err)
        assert "Traceback" not in err, err
        return err if code else out

    def init(self, model: str = "m", **keys: object) -> None:
        self.ctl("init", "--model", model, "--preset", "tiny")
        pairs = {"sandbox_workers": 1, "corpus_dir": SAMPLE}
        self.ctl("config", "set", "--model", model, "--scope", "global", *(f"{k}={v}" for k, v in pairs.items()))
        pairs = {**SMALL, **keys}
        self.ctl("config", "set", "--model", model, "--scope", "permanent", *(f"{k}={v}" for k, v in pairs.items()))

    def status(self, run: str, model: str = "m") -> Status:
        status = read_status(self / f"{model}/{run}/status.json")
        assert status is not None, run
        return status

    def program(self, run: str, model: str = "m") -> int:
        """The process of a run's program, as soon as it is there."""
        found: list[int] = []

        def started() -> bool:
            for pid in descendants(self.status(run, model).pid):
                with contextlib.suppress(psutil.Error):
                    process = psutil.Process(pid)
                    # Until it is another program it is a copy of the supervisor.
                    if process.ppid() == self.status(run, model).pid and PROGRAMS & set(process.cmdline()):
                        found.append(pid)
            return bool(found)

        assert wait_until(started, LONG_S), self.status(run, model)
        return found[0]

    def wait_for(self, run: str, *states: str, model: str = "m") -> Status:
        """Wait until a run is in one of these states, or nobody is there any more who could bring it there."""

        def arrived() -> bool:
            status = self.status(run, model)
            # Number 0: it has just been made, and its supervisor is being started.
            return status.state in states or bool(status.pid and not is_alive(status))

        wait_until(arrived, LONG_S)
        status = self.status(run, model)
        assert status.state in states, (status, (self / f"{model}/{run}/run.log").read_text()[-2000:])
        return status

    def wait_for_step(self, run: str, step: int = 1, model: str = "m") -> None:
        """Wait until a cycle has made this step."""
        metrics = self / f"{model}/{run}/metrics.jsonl"

        def made() -> bool:
            return metrics.exists() and metrics.read_bytes().count(b"\n") >= step

        wait_until(lambda: made() or not is_alive(self.status(run, model)), LONG_S)
        assert made(), (self.status(run, model), (self / f"{model}/{run}/run.log").read_text()[-2000:])

    def tree(self) -> dict[str, object]:
        """Every path under the folder with its content or where it leads; locks are no content."""
        found: dict[str, object] = {}
        for path in sorted(self.folder.rglob("*")):
            if path.name != ".lock":
                name = str(path.relative_to(self.folder))
                found[name] = os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes()
        return found


@contextlib.contextmanager
def busy(work: Workplace, run: str = "m/001") -> Iterator[subprocess.Popen]:
    """A cycle that "runs" without a program: its status names a process that does nothing."""
    (work / run).mkdir()
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    status = Status(state="running", kind="train", created=0.0, updated=0.0, started=1.0, step=1, pid=process.pid)
    status.process_start = process_start(process.pid) or 0.0
    records.write(work / run / "status.json", status)
    try:
        yield process
    finally:
        # First the word, then the end, as a real one: whoever looks between the two must not find it lost.
        left = read_status(work / run / "status.json")
        if left is not None and (left.state, left.pid) == ("running", process.pid):
            status.state = "done"
            records.write(work / run / "status.json", status)
        process.kill()
        process.wait()


@contextlib.contextmanager
def no_process_left() -> Iterator[None]:
    """Everything that was started inside has to be gone at the end; what is not is ended, and is a failure."""
    # Orphans become children of this process instead of init's, and so can be found.
    library = ctypes.CDLL(None)
    library.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = descendants(os.getpid())
    try:
        yield
        wait_until(lambda: not living(before), 120)
        left = living(before)
    finally:
        for pid in living(before):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        library.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    assert not left, left


def living(before: set[int] = frozenset()) -> dict[int, str]:
    """Processes below this one that were not there before, with their command lines."""
    found = {}
    for pid in descendants(os.getpid()) - before:
        if alive(pid):
            with contextlib.suppress(psutil.Error):
                found[pid] = " ".join(psutil.Process(pid).cmdline())
    return found
