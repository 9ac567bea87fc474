"""What the sandbox tests share: jobs from a rule, and what /proc tells about processes. Linux only."""

import contextlib
import os
import signal
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

from rlvr.sandbox.grader import Job

PRIMES = tuple(p for p in range(2, 200) if all(p % d for d in range(2, p)))[:30]
NS = tuple(range(30))


def job(code: str, function, ns=range(20)) -> Job:
    return Job(textwrap.dedent(code), tuple(ns), tuple(function(n) for n in ns))


def children() -> list[int]:
    """Process numbers of this process's children, zombies among them."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has just ended
            found += map(int, (task / "children").read_text().split())
    return found


def descendants(pid: int) -> set[int]:
    """Every process below `pid`."""
    found, new = set(), {pid}
    while new:
        below = set()
        for parent in new:
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{parent}/task").iterdir():
                    below |= {int(child) for child in (task / "children").read_text().split()}
        new = below - found
        found |= new
    return found


def alive(pid: int) -> bool:
    """True for a process that runs; a zombie does not."""
    return state(pid) not in "ZX"


def state(pid: int) -> str:
    """The kernel's letter for what a process does: "R" runs, "S" waits for something, "T" was stopped, "X" is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def is_due(pid: int, number: int) -> bool:
    """Was this signal sent to a process that stands still, and so has not had it yet?"""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        (due,) = [int(line.split()[1], 16) for line in lines if line.startswith("ShdPnd:")]
        return bool(due >> (number - 1) & 1)
    return False


@contextlib.contextmanager
def held(pid: int) -> Iterator[int]:
    """Let a process stand still meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def cpu_ticks(pid: int) -> int:
    """CPU time of a process in hundredths of a second, 0 when it is gone."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0


def wait_until(condition, timeout_s: float = 120.0) -> bool:
    """Wait for something that must happen; the time is only there to end a broken test."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
