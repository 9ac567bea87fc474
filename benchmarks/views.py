"""Measure the terminal views: drawing eight charts, reading what a run wrote, starting up, memory.

    python benchmarks/views.py                  # the table of docs/benchmarks.md
    python benchmarks/views.py --steps 100000 --lines 1000000

Makes its own metrics and trace in a temporary folder. Each number is the median of `--repeat` rounds. Where plotext 6,
uniplot, plotille or textual-plot are installed, they draw the same series; none of them is needed. Wall
clock; computing time stands beside it where another busy process would show.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rlvr import records
from rlvr.braille import Layer, draw_chart, line_dots, smooth
from rlvr.records import Completion, Reward, Step, Tail
from rlvr.tui.figure import Curve, View, draw
from rlvr.tui.rows import Rows
from rlvr.tui.series import StepLine, charts_of, open_path

ROOT = Path(__file__).resolve().parent.parent
CHARTS, POINTS = 8, 10_000


def median_of(repeat: int, work: Callable[[], object]) -> tuple[float, float]:
    """Median seconds by the clock, and of computing time."""
    walls, cpus = [], []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls), statistics.median(cpus)


def say(what: str, seconds: tuple[float, float] | None = None, text: str = "") -> None:
    shown = f"{1e3 * seconds[0]:10,.1f} ms  (computing {1e3 * seconds[1]:,.1f} ms)" if seconds else f"{text:>13}"
    print(f"{what:<66}{shown}", flush=True)


def noisy(points: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.normal(size=points)) * 0.01 + rng.normal(size=points)


def measure_drawing(repeat: int) -> None:
    for points in (POINTS, 1_000_000):
        x = np.arange(float(points))
        series = [noisy(points, seed) for seed in range(CHARTS)]
        window = [(0.0, points - 1.0, float(y.min()), float(y.max())) for y in series]

        def dots(x=x, series=series, window=window) -> None:
            for y, area in zip(series, window, strict=True):
                line_dots(x, y, area, 60, 200)

        def charts(x=x, series=series, points=points) -> None:
            for y in series:
                draw_chart([Layer(x, y, 8)], 15, 100, x_range=(0, points - 1))

        say(f"{CHARTS} charts of {points:,} points, 100 x 15 cells: dots alone", median_of(repeat, dots))
        say(f"{CHARTS} charts of {points:,} points, with axes and labels", median_of(repeat, charts))
    say(f"smoothing {CHARTS} series of {POINTS:,} points anew", median_of(repeat, lambda: [
        smooth(noisy_series, 0.9) for noisy_series in [np.zeros(POINTS)] * CHARTS
    ]))  # fmt: skip


def measure_others(repeat: int) -> None:
    """The same eight series by libraries, where they are installed."""
    x = np.arange(float(POINTS))
    series = [noisy(POINTS, seed) for seed in range(CHARTS)]
    drawers: dict[str, Callable[[np.ndarray, np.ndarray], object]] = {}
    if importlib.util.find_spec("plotext"):
        import plotext

        def by_plotext(x: np.ndarray, y: np.ndarray) -> str:
            figure = plotext.figure
            figure.clear()
            figure.plot_size(100, 15)
            figure.draw(figure.signal(x.tolist(), y.tolist(), marker="braille").lines())
            return str(figure.build())

        drawers["plotext"] = by_plotext
    if importlib.util.find_spec("uniplot"):
        import uniplot

        drawers["uniplot"] = lambda x, y: uniplot.plot_to_string(
            xs=x, ys=y, width=90, height=12, lines=True, character_set="braille"
        )
    if importlib.util.find_spec("plotille"):
        import plotille

        drawers["plotille"] = lambda x, y: plotille.plot(x.tolist(), y.tolist(), width=90, height=12)
    if importlib.util.find_spec("textual_plot"):
        drawers["textual-plot"] = textual_plot_drawer()
    for name, drawer in drawers.items():

        def work(drawer=drawer) -> None:
            for y in series:
                drawer(x, y)

        say(f"the same by {name}, {POINTS:,} points", median_of(min(repeat, 3), work))


def textual_plot_drawer() -> Callable[[np.ndarray, np.ndarray], object]:
    """textual-plot draws in a running app only: one frame of one chart."""
    import asyncio

    from textual.app import App
    from textual_plot import HiResMode, PlotWidget

    def drawer(x: np.ndarray, y: np.ndarray) -> None:
        class OneChart(App[None]):
            def compose(self):
                yield PlotWidget()

        async def run() -> None:
            app = OneChart()
            async with app.run_test(size=(100, 15)) as pilot:
                plot = app.query_one(PlotWidget)
                plot.plot(x=x, y=y, hires_mode=HiResMode.BRAILLE)
                await pilot.pause()

        asyncio.run(run())

    return drawer


def write_metrics(path: Path, count: int) -> None:
    step = Step(
        step=0, max_steps=count, time=0.0, reward=0.5, reward_std=0.2,
        rewards={"function_works": 0.1, "no_cheating": 0.0, "sequence_matches": 0.4}, all_right=0.2, mixed=0.5,
        all_wrong=0.3, zero_variance=0.4, outcomes={"solved": 7, "wrong": 8, "invalid": 1}, loss=0.01, kl=0.002,
        entropy=0.5, grad_norm=0.3, learning_rate=1e-4, length_mean=45.3, length_max=64, truncated=0.1, tokens=700,
        tokens_per_s=512.5, generation_s=1.2, scoring_s=0.1, update_s=0.6, step_s=1.9,
    )  # fmt: skip
    head, _, rest = records.encode(step).partition(b'"max_steps"')
    before, _, after = rest.partition(b'"reward":0.5,')
    rewards = noisy(count, 0)
    with path.open("wb") as file:
        for number in range(1, count + 1):
            line = b'{"step":%d,"max_steps"%b"reward":%.5f,%b\n' % (number, before, rewards[number - 1], after)
            file.write(line)
    assert head


def write_trace(path: Path, count: int) -> None:
    line = Completion(
        task="A000045", outcome="solved", reward=1.0, rewards=(Reward("sequence_matches", 0.9, "all terms right"),),
        function="def a(n): return n", checks=(), verdict="ok", step=1, group=0, sample=0,
        prompt="Name: Fibonacci numbers.\n" + "x" * 60, completion="y" * 40, tokens=12, truncated=False,
    )  # fmt: skip
    before, _, after = records.encode(line).partition(b'"step":1,')
    with path.open("wb") as file:
        for number in range(count):
            file.write(b'%b"step":%d,%b\n' % (before, number // 16 + 1, after))


def measure_reading(folder: Path, num_steps: int, num_lines: int, repeat: int) -> None:
    metrics, trace = folder / "metrics.jsonl", folder / "trace.jsonl"
    write_metrics(metrics, num_steps)
    write_trace(trace, num_lines)
    size = trace.stat().st_size
    say(f"metrics of {num_steps:,} steps", text=f"{metrics.stat().st_size / 2**20:,.0f} MiB")
    say(f"trace of {num_lines:,} lines", text=f"{size / 2**20:,.0f} MiB")

    def tail_all() -> None:
        tail = Tail(trace, Completion)
        tail.read()
        while tail.remaining:
            tail.read()

    seconds = median_of(min(repeat, 3), tail_all)
    say(f"tail of the whole trace, {num_lines / seconds[0]:,.0f} lines/s", seconds)

    def rows() -> None:
        found = Rows(trace)
        found.poll()
        while found.remaining:
            found.poll()

    say("the rows of the table: the last 64 MiB of it", median_of(min(repeat, 3), rows))

    def series() -> None:
        open_path(metrics).read_all()

    say("all series of the metrics", median_of(min(repeat, 3), series))
    tail = Tail(metrics, StepLine)
    while not tail.offset or tail.remaining:
        tail.read()
    say("a look at a file without anything new", median_of(1000, tail.read))

    reader = open_path(metrics)
    reader.read_all()
    curves = [Curve("run", reader.metrics, 0)]
    specs = charts_of([reader.metrics])[:CHARTS]
    view = View()

    def refresh() -> None:
        for spec in specs:
            draw(curves, spec, view, 16, 100)

    say(f"first drawing of {CHARTS} charts of {num_steps:,} steps, smoothed", median_of(1, refresh))
    say(f"a refresh of those {CHARTS} charts", median_of(repeat, refresh))
    say("memory of this process at most", text=f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


def child(code: list[str], cwd: Path, repeat: int) -> tuple[float, float]:
    walls, cpus = [], []
    for _ in range(repeat):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall = time.perf_counter()
        subprocess.run([sys.executable, *code], cwd=cwd, capture_output=True, check=True)
        walls.append(time.perf_counter() - wall)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpus.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return statistics.median(walls), statistics.median(cpus)


FIRST_FRAME = """
import asyncio, sys, time
began = time.perf_counter()
sys.path.insert(0, {root!r})
from pathlib import Path
from rlvr.tui.chart import Chart
from rlvr.tui.series import open_path
from rlvr.tui.viz import VizApp

async def main():
    app = VizApp([open_path(Path({folder!r}))])
    async with app.run_test(size=(200, 60)) as pilot:
        # Not pilot.pause(), which waits until nothing is being read either.
        while not any(chart.drawn for chart in app.query(Chart)):
            await asyncio.sleep(0.005)
        print(time.perf_counter() - began, time.process_time(), flush=True)

asyncio.run(main())
"""


def measure_start(folder: Path, repeat: int) -> None:
    say("python -c pass", child(["-c", "pass"], folder, repeat))
    say("rlvrviz.py --help", child([str(ROOT / "rlvrviz.py"), "--help"], folder, repeat))
    small = folder / "small"
    small.mkdir()
    write_metrics(small / "metrics.jsonl", 200)
    say("rlvrviz.py --once, 200 steps", child([str(ROOT / "rlvrviz.py"), "--once", "small"], folder, repeat))
    for name, where in (("200 steps", small), ("the long files above", folder)):
        code = FIRST_FRAME.format(root=str(ROOT), folder=str(where))
        found = [
            subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, check=True, text=True)
            for _ in range(min(repeat, 3))
        ]
        walls, cpus = zip(*(map(float, done.stdout.split()) for done in found), strict=True)
        say(f"the live view up to its first charts, {name}", (statistics.median(walls), statistics.median(cpus)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the terminal views.")
    parser.add_argument("--steps", type=int, default=100_000, help="steps of the metrics file")
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of the trace")
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp()
    measure_drawing(args.repeat)
    measure_others(args.repeat)
    with tempfile.TemporaryDirectory() as folder:
        measure_reading(Path(folder), args.steps, args.lines, args.repeat)
        measure_start(Path(folder), args.repeat)


if __name__ == "__main__":
    main()
