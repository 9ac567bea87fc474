"""How many programs a second: naive ways to run them beside the sandbox, in one run, with the ratios that matter.

    python benchmarks/sandbox.py                 everything, about two minutes on an idle machine
    python benchmarks/sandbox.py --seconds 0.5   shorter samples

Every figure is the best of several interleaved samples, each in a process of its own. Wall-clock figures suffer from
whatever else the machine does; CPU milliseconds (user + system, of all processes involved) hardly do, so each ratio is
given for both. It is not a test of safety: the naive ways have none.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

LIGHT = "def a(n):\n    return n * n\n"
HEAVY = "from sympy import prime\ndef a(n):\n    return prime(n + 1)\n"
NS = tuple(range(30))
SQUARES = tuple(n * n for n in NS)
PRIMES = tuple(p for p in range(2, 114) if all(p % d for d in range(2, p)))
METHODS = ("subprocess.run each", "multiprocessing.Process each", "sandbox", "bare fork floor")


def cpu_s() -> float:
    """CPU seconds of this process, of its children that ended, and of its live descendants."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    todo = [os.getpid()]
    while todo:
        pid = todo.pop()
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
            if pid != os.getpid():
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def repeat(work: Callable[[int], int], seconds: float) -> dict:
    """Call `work(start number)`, which returns how many programs it ran, until the time is up."""
    work(0)
    count, wall, cpu = 0, time.perf_counter(), cpu_s()
    while time.perf_counter() - wall < seconds:
        count += work(count + 1000)
    return {"per_s": count / (time.perf_counter() - wall), "cpu_ms": (cpu_s() - cpu) / count * 1e3}


def in_subprocess(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code + f"\nprint([int(a(n)) for n in {NS}])"], capture_output=True)
    assert tuple(json.loads(done.stdout)) in (SQUARES, PRIMES)


def answer(code: str, pipe) -> None:
    names: dict = {}
    exec(code, names)
    pipe.send([int(names["a"](n)) for n in NS])


def in_process(code: str) -> None:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(False)
    process = context.Process(target=answer, args=(code, theirs))
    process.start()
    theirs.close()
    assert tuple(ours.recv()) in (SQUARES, PRIMES)
    process.join()
    ours.close()


def sample(method: str, tier: str, workers: int, seconds: float) -> dict:
    """Measure one method in this process, which the caller has started for it and pinned to `workers` cores."""
    code, expected = (LIGHT, SQUARES) if tier == "light" else (HEAVY, PRIMES)
    if method == "sandbox":
        from rlvr.sandbox.grader import Job, Sandbox

        with Sandbox(workers=workers) as sandbox:

            def work(start: int) -> int:
                jobs = [Job(f"{code}# {number}", NS, expected) for number in range(start, start + 50)]
                assert {result.verdict for result in sandbox.run(jobs)} == {"ok"}
                return len(jobs)

            return repeat(work, seconds)
    if method == "bare fork floor":
        os.register_at_fork = lambda **hooks: None  # as in a zygote
        from rlvr.sandbox import preload, zygote

        stdout = sys.stdout
        preload.prepare(tier)  # silences the standard streams
        sys.stdout = stdout
        zygote.use_huge_pages()

        def fork_all(start: int) -> int:
            for _ in range(50):
                pid = os.fork()
                if pid == 0:
                    os._exit(0)
                os.waitpid(pid, 0)
            return 50

        return repeat(fork_all, seconds)
    if method == "multiprocessing.Process each":
        if tier == "heavy":
            import mpmath  # noqa: F401
            import numpy  # noqa: F401
            import sympy  # noqa: F401
        run, batch = in_process, 10
    else:
        run, batch = in_subprocess, 2
    with ThreadPoolExecutor(workers) as pool:

        def run_batch(start: int) -> int:
            list(pool.map(run, [f"{code}# {number}" for number in range(start, start + batch)]))
            return batch

        return repeat(run_batch, seconds)


def sample_mixed(seconds: float) -> dict:
    """64 different completions on all cores, six of them endless loops, a quarter with sympy or numpy."""
    from rlvr.sandbox.grader import Job, Sandbox

    def batch(salt: int) -> list[Job]:
        kinds = [
            LIGHT,
            "def a(n): return n * n + (n > 20)\n",
            "import math\ndef a(n): return math.comb(n, 2)\n",
            HEAVY,
            "def a(n): return n / 0\n",
            "def a(n) return n\n",
            "import numpy as np\ndef a(n): return np.int64(n) ** 3\n",
            "from functools import lru_cache\n@lru_cache\ndef a(n): return n if n < 2 else a(n - 1) + a(n - 2)\n",
        ]
        codes = [kinds[number % 8] for number in range(58)] + ["def a(n):\n    while True:\n        pass\n"] * 6
        return [Job(f"{code}# {salt} {number}", NS, SQUARES) for number, code in enumerate(codes)]

    with Sandbox() as sandbox:
        sandbox.run(batch(0))
        best = {"wall_s": 1e9, "cpu_s": 1e9}
        end, salt = time.perf_counter() + seconds, 0
        while time.perf_counter() < end or salt < 2:
            salt += 1
            wall, cpu = time.perf_counter(), cpu_s()
            results = sandbox.run(batch(salt))
            now = {"wall_s": time.perf_counter() - wall, "cpu_s": cpu_s() - cpu}
            best = {key: min(best[key], now[key]) for key in best}
            verdicts = [result.verdict for result in results]
            assert verdicts.count("cpu_timeout") == 6 and verdicts.count("infra") == 0
    return best


def measure(*arguments: object, cores: set[int]) -> dict:
    """Run one sample in a fresh process on the given cores."""
    command = [sys.executable, __file__, "--one", *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, env=environment, preexec_fn=lambda: os.sched_setaffinity(0, cores), check=True
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.5, help="length of one sample")
    parser.add_argument("--repeats", type=int, default=3, help="samples of each figure; the best counts")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        method, tier, workers, seconds = arguments.one
        mixed = method == "mixed"
        print(
            json.dumps(sample_mixed(float(seconds)) if mixed else sample(method, tier, int(workers), float(seconds)))
        )
        return

    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    cores = sorted(os.sched_getaffinity(0))
    counts = [1, 2] if len(cores) > 1 else [1]
    best: dict[tuple, dict] = {}
    wanted = [(method, tier, count) for tier in ("light", "heavy") for count in counts for method in METHODS]
    console = Console()
    for method, tier, count in track(wanted * arguments.repeats, "measuring", console=Console(stderr=True)):
        found = measure(method, tier, count, arguments.seconds, cores=set(cores[:count]))
        old = best.setdefault((method, tier, count), found)
        best[method, tier, count] = {
            "per_s": max(old["per_s"], found["per_s"]),
            "cpu_ms": min(old["cpu_ms"], found["cpu_ms"]),
        }
    mixed = measure("mixed", "-", 0, arguments.seconds, cores=set(cores))

    table = Table(title="programs of 30 terms, each in a process of its own")
    for heading in ("tier", "cores", "method", "per second", "CPU ms each", "x naive (wall)", "x naive (CPU)"):
        table.add_column(heading, justify="left" if heading in ("tier", "method") else "right")
    for method, tier, count in wanted:
        here, naive = best[method, tier, count], best[METHODS[0], tier, count]
        ratios = f"{here['per_s'] / naive['per_s']:.1f}", f"{naive['cpu_ms'] / here['cpu_ms']:.1f}"
        last = method == METHODS[-1]
        table.add_row(
            tier, str(count), method, f"{here['per_s']:.0f}", f"{here['cpu_ms']:.2f}", *ratios, end_section=last
        )
    console.print(table)

    goals = Table(title="goals")
    for heading in ("goal", "one core, wall", "one core, CPU"):
        goals.add_column(heading)
    light, heavy = best["sandbox", "light", 1], best["sandbox", "heavy", 1]
    for tier, ours, factor in (("light", light, 6), ("heavy", heavy, 60)):
        naive, floor = best[METHODS[0], tier, 1], best[METHODS[-1], tier, 1]
        goals.add_row(
            f"{tier}: at least {factor} x naive",
            f"{ours['per_s'] / naive['per_s']:.1f}",
            f"{naive['cpu_ms'] / ours['cpu_ms']:.1f}",
        )
        goals.add_row(
            f"{tier}: within 2.5 x of the bare fork",
            f"{floor['per_s'] / ours['per_s']:.2f}",
            f"{ours['cpu_ms'] / floor['cpu_ms']:.2f}",
        )
    goals.add_row(
        "64 mixed, 6 endless loops: under 1.5 s",
        f"{mixed['wall_s']:.2f} s on {len(cores)} cores",
        f"{mixed['cpu_s']:.2f} s of CPU in all",
    )
    console.print(goals)


if __name__ == "__main__":
    main()
