"""One candidate in a fresh interpreter, where no isolation can be had (macOS, Windows): see `rlvr/worker.py` run_alone.

Started by the sandbox only when the user asked for `unsafe_no_isolation`. Keeps answers apart, keeps nobody safe.
"""

import importlib
import os
import signal
import struct
import sys

from rlvr import candidate

JOB = struct.Struct("=IIIddQ")


def main(arguments: list[str]) -> None:
    """Read one job from standard input, write `R`, then the candidate's lines to what was standard output."""
    data = sys.stdin.buffer.read()
    _, source_size, inputs_size, cpu_limit_s, _, seed = JOB.unpack_from(data)
    source = data[JOB.size : JOB.size + source_size]
    inputs = data[JOB.size + source_size : JOB.size + source_size + inputs_size]
    calls = [int(text, 16) for text in inputs.split(b",")] if inputs else []
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
    candidate.reseed(seed)
    os.write(result_fd, b"R\n")
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, cpu_limit_s)
    candidate.run_and_exit(source, calls, result_fd)
