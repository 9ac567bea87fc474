"""Run a program in a fork of a process that has imported torch and TRL, which takes longer than most tests need.

    warm.run(["gemma4_oeis_rlvr.py", "--preset", "tiny"], cwd=folder)       # as subprocess.run

The program runs as the main module of a process of its own, with its own folder, environment, output and exit code;
only what it would import from other packages is there already. `python tests/warm.py` is the process that forks: it
reads one request a line and answers with exit codes. What imports cost, and in which order they come, is for the tests
that start programs cold.
"""

import functools
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

IMPORTS = ("torch", "transformers", "peft", "datasets", "trl.trainer.grpo_trainer")


@functools.cache
def forker() -> subprocess.Popen[str]:
    """The process that forks, started at the first need; it ends with this one, whose end closes its input."""
    return subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run(
    arguments: Sequence[object], *, cwd: Path, timeout: float = 900, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; one that takes more than `timeout` seconds of wall time is ended by SIGALRM."""
    process = forker()
    assert process.stdin is not None and process.stdout is not None
    command = list(map(str, arguments))
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        request = {
            "command": command,
            "cwd": str(cwd),
            "environment": {**os.environ, **environment},
            "out": str(out),
            "err": str(err),
            "timeout": int(timeout),
        }
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in (out, err)]
    return subprocess.CompletedProcess(command, code, *texts)


def serve() -> dict | None:
    """Fork a process for each request and answer with its exit code; in such a process, return the request."""
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            return request
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def become(request: dict) -> None:
    """Turn this process into the program that a request names."""
    for path, fd in ((os.devnull, 0), (request["out"], 1), (request["err"], 2)):
        opened = os.open(path, os.O_RDONLY if fd == 0 else os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(opened, fd)
        os.close(opened)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    signal.alarm(request["timeout"])
    program, *arguments = request["command"]
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(program)
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    for name in IMPORTS:
        __import__(name)
    if (found := serve()) is not None:
        become(found)
