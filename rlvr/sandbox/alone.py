"""One candidate in a fresh interpreter, where no isolation can be had (macOS, Windows).

Started by run_alone in `worker.py`, only when the user asked for `unsafe_no_isolation`. It keeps answers apart
and nobody safe.
"""

import importlib
import os
import signal
import sys

from rlvr.sandbox import candidate


def main(arguments: list[str]) -> None:
    """Read one job from standard input, write `R`, then the candidate's lines to what was standard output."""
    message = sys.stdin.buffer.read()
    _, cpu_limit_s, _, seed = candidate.unpack_limits(message)
    source, calls = candidate.unpack_program(message)
    result_fd = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(result_fd, os.O_BINARY)
    candidate.silence()
    sys.setrecursionlimit(candidate.RECURSION_LIMIT)
    if arguments == ["heavy"]:
        for name in ("numpy", "mpmath", "sympy"):  # their import shall not count as the candidate's time
            importlib.import_module(name)
    candidate.reseed(seed, source)
    os.write(result_fd, b"R\n")
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, cpu_limit_s)
    candidate.run_and_exit(source, calls, result_fd)
