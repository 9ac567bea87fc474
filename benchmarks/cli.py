"""How soon do the commands of rlvrctl.py answer? Over 200 cycles and 400 evaluations, beside `python -c pass`.

    python benchmarks/cli.py [--rounds 15]

Makes a `training/` folder in a temporary place, runs each command some times in turn, and prints the median, the best
and the slowest, and the median of the processor time, which a busy machine changes least. Every process is a fresh
interpreter, as at a prompt. Not a test.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from rlvr import records
from rlvr.cycles import ModelFiles, RunFiles
from rlvr.records import Launch, Status
from rlvr.status import process_start

ROOT = Path(__file__).resolve().parent.parent
NUM_CYCLES = 200
NUM_PENDING = 4

COMMANDS = (
    ("python -c pass", ("-c", "pass")),
    ("rlvrctl.py --help", ("rlvrctl.py", "--help")),
    ("rlvrctl.py ps --help", ("rlvrctl.py", "ps", "--help")),
    ("rlvrctl.py train --help", ("rlvrctl.py", "train", "--help")),
    ("rlvrctl.py ps", ("rlvrctl.py", "ps")),
    ("rlvrctl.py ps -a", ("rlvrctl.py", "ps", "-a")),
    ("rlvrctl.py ps -a --json", ("rlvrctl.py", "ps", "-a", "--json")),
)


def make_runs(training: Path) -> None:
    """200 cycles with two evaluations each, the last cycles running and pending as this process."""
    model = ModelFiles(training / "m")
    model.folder.mkdir(parents=True)
    model.model_toml.write_text('base_model = "tiny"\n')
    me = {"pid": os.getpid(), "process_start": process_start(os.getpid()) or 0.0}
    now = time.time()
    for number in range(1, NUM_CYCLES + 1):
        cycle = RunFiles(model.folder / f"{number:03d}")
        start = now - 3600.0 * (NUM_CYCLES - number + 1)
        pending, running = number > NUM_CYCLES - NUM_PENDING, number == NUM_CYCLES - NUM_PENDING
        write(cycle, "train", start, me, "pending" if pending else "running" if running else "done")
        if number % 10 == 0:
            cycle.label.write_text("a label\n")
        for others in ("base", f"base+{max(number - 1, 1):03d}"):
            write(RunFiles(cycle.evals / others), "eval", start + 1800, {}, "done")
            beside = RunFiles(model.folder / "base").evals
            beside.mkdir(parents=True, exist_ok=True)
            (beside / f"{others.replace('base', '')}{number:03d}").symlink_to(f"../../{number:03d}/evals/{others}")


def write(files: RunFiles, kind: str, start: float, who: dict, state: str) -> None:
    files.folder.mkdir(parents=True)
    records.write(files.launch, Launch(ticket=start))
    living = state in ("pending", "running")
    status = Status(
        state=state,
        kind=kind,
        created=start,
        updated=start + 60,
        started=None if state == "pending" else start,
        finished=None if living else start + 1500,
        step=0 if state == "pending" else 80,
        max_steps=160 if living else 80,
        reward=0.5,
        solved=0.25,
        exit_code=None if living else 0,
        **(who if living else {}),
    )
    records.write(files.status, status)


def measure(command: list[str], folder: str) -> tuple[float, float]:
    """Milliseconds from start to end, and of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    wall_s = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * wall_s, 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="runs of each command; default 15")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        make_runs(Path(folder) / "training")
        times: dict[str, list[tuple[float, float]]] = {name: [] for name, _ in COMMANDS}
        for _ in range(rounds + 1):
            for name, (first, *rest) in COMMANDS:
                command = [sys.executable, str(ROOT / first) if first.endswith(".py") else first, *rest]
                times[name].append(measure(command, folder))
    print(f"{NUM_CYCLES} cycles, {2 * NUM_CYCLES} evaluations, {os.cpu_count()} cores, {rounds} runs of each")
    print(f"{'ms':<26} median    best  slowest  processor")
    for name, taken in times.items():
        # The first ones fill the disk cache and write bytecode.
        walls, busy = zip(*taken[1:], strict=True)
        row = (statistics.median(walls), min(walls), max(walls), statistics.median(busy))
        print(f"{name:<26} {row[0]:6.0f}  {row[1]:6.0f}  {row[2]:7.0f}  {row[3]:9.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
