"""What the sandbox tests share: jobs from a rule, and what /proc tells about processes. Linux only."""

import contextlib
import textwrap
import time
from pathlib import Path

from rlvr.sandbox.grader import Job

PRIMES = tuple(p for p in range(2, 200) if all(p % d for d in range(2, p)))[:30]
NS = tuple(range(30))


def job(code: str, function, ns=range(20)) -> Job:
    return Job(textwrap.dedent(code), tuple(ns), tuple(function(n) for n in ns))


def children() -> list[int]:
    """Process numbers of this process's children, zombies among them."""
    return [int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]


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
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def cpu_ticks(pid: int) -> int:
    """CPU time of a process in hundredths of a second, 0 when it is gone."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0


def wait_until(condition, timeout_s: float = 60.0) -> bool:
    """Wait for something that must happen; the time is only there to end a broken test."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
