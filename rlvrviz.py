"""Live braille graphs of a training run, and its completions to read.

    python rlvrviz.py                      # the run that is running, else the latest
    python rlvrviz.py 011                  # cycle 011; 003 005 lays two runs over each other
    python rlvrviz.py --model M 011        # of another model
    python rlvrviz.py runs/x/run.log       # a folder, a metrics.jsonl, or the log of plain TRL
    python rlvrviz.py --once               # print one frame and end
    python rlvrviz.py 011 --charts reward --export png    # the chart as a file beside the run; also svg and csv

It reads the files of a run and changes nothing; press ? in it for the keys. Nothing heavy is imported, and Textual
only for the live view. Exit codes: 0, and 2 for something to correct.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from rlvr.arguments import Parser
from rlvr.braille import ASCII, BLOCKS, BRAILLE
from rlvr.cycles import Run, choose_model, cycle_runs, find_run, live_run, model_names
from rlvr.errors import RlvrError
from rlvr.status import read_status
from rlvr.tui.figure import View
from rlvr.tui.series import ChartSpec, RunReader, charts_of, matching, open_path, open_run

DEFAULT_SMOOTHING = 0.9


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = Parser(
        description="Live braille graphs of a training run, and its completions to read.",
        epilog="Without RUN: the newest run that is running, else the latest cycle.",
    )
    parser.add_argument(
        "runs", nargs="*", metavar="RUN",
        help="003, 3, latest, live, 003/evals/base, MODEL/003, a run's folder, a metrics.jsonl, or a log of plain "
        "TRL; several are laid over each other",
    )  # fmt: skip
    parser.add_argument("--model", metavar="NAME", help="whose cycles the numbers count")
    parser.add_argument(
        "--charts", default="", metavar="WORDS", help="only charts whose names hold one of these words"
    )
    parser.add_argument(
        "--smoothing", type=float, default=None, metavar="W",
        help="weight of the moving average, 0 to 0.999; default 0.9, or what was last chosen in the live view",
    )  # fmt: skip
    parser.add_argument("--log", default="", metavar="CHARTS", help="charts with a logarithmic y axis: loss,kl")
    parser.add_argument("--times", action="store_true", help="time instead of steps along the x axis")
    parser.add_argument("--blocks", action="store_true", help="block characters, for fonts without braille")
    parser.add_argument("--ascii", action="store_true", help="charts in nothing but ASCII")
    parser.add_argument("--theme", metavar="NAME", help="colours of the live view, such as textual-light or nord")
    parser.add_argument(
        "--replay", metavar="SPEED", help="play a run again, so many times as fast as it was: --replay 20x"
    )
    parser.add_argument(
        "--export", choices=("png", "svg", "csv"), help="write the charts as files beside the run and end"
    )
    once = parser.add_argument_group("one frame, for a log or CI")
    once.add_argument("--once", action="store_true", help="print one frame and end")
    once.add_argument(
        "--size", metavar="WxH", help="of the frame, such as 120x35; default: the terminal's, or COLUMNS"
    )
    once.add_argument("--text", action="store_true", help="with --once: the numbers as sentences, without charts")
    once.add_argument("--json", action="store_true", help="with --once: last, min and max of every series")
    return parser.parse_args(arguments)


def find_readers(args: argparse.Namespace) -> list[RunReader]:
    """A reader for each run asked for.

    Raises:
        RlvrError: for one that is not there.
    """
    if not args.runs:
        return [open_run(default_run(args.model))]
    readers = [find_reader(text, args.model) for text in args.runs]
    names = [reader.name for reader in readers]
    if len(set(names)) < len(names):
        readers = [reader for index, reader in enumerate(readers) if reader.name not in names[:index]]
    return readers


def find_reader(text: str, model: str | None) -> RunReader:
    path = Path(text)
    if path.exists() or path.suffix in (".jsonl", ".log", ".txt"):
        return open_path(path)
    return open_run(find_run(text, model))


def default_run(model: str | None) -> Run:
    """The newest run that is running, of this model or of any; else the cycle whose metrics were written last.

    Raises:
        RlvrError: when there is no model or it has no cycle.
    """
    names = [choose_model(model)] if model else model_names()
    living: list[tuple[float, Run]] = []
    for name in names:
        with contextlib.suppress(RlvrError):
            run = live_run(name)
            status = read_status(run.files.status)
            living.append(((status.started if status else None) or 0.0, run))
    if living:
        return max(living, key=lambda pair: pair[0])[1]
    written = [
        (run.files.metrics.stat().st_mtime, run)
        for name in names
        for run in cycle_runs(name)
        if run.files.metrics.exists()
    ]
    if written:
        return max(written, key=lambda pair: pair[0])[1]
    return find_run("latest", choose_model(model))


def parse_size(text: str | None) -> tuple[int, int | None]:
    """Width and height of a printed frame; in a pipe it is as high as it needs to be."""
    if text:
        match = re.fullmatch(r"(\d+)x(\d+)", text)
        if not match or not (20 <= int(match[1]) <= 1000 and 5 <= int(match[2]) <= 1000):
            raise RlvrError(f"--size {text}: give width x height from 20x5 to 1000x1000, such as 120x35")
        return int(match[1]), int(match[2])
    if sys.stdout.isatty():
        size = shutil.get_terminal_size()
        return size.columns, max(size.lines - 1, 5)
    columns = os.environ.get("COLUMNS", "")
    return (max(int(columns), 20) if columns.isdigit() and int(columns) else 120), None


def parse_speed(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)x?", text)
    if not match or not float(match[1]):
        raise RlvrError(f"--replay {text}: give a speed such as 20x")
    return float(match[1])


def make_view(args: argparse.Namespace, colors: bool) -> View:
    smoothing = DEFAULT_SMOOTHING if args.smoothing is None else args.smoothing
    if not 0 <= smoothing < 1:
        raise RlvrError(f"--smoothing {args.smoothing}: give a number from 0 (none) to 0.999")
    glyphs = ASCII if args.ascii else BLOCKS if args.blocks else BRAILLE
    return View(
        smoothing=smoothing,
        times=args.times,
        log=frozenset(log_names(args)),
        glyphs=glyphs,
        letters=not colors,
        guides=colors,
    )


def has_colors() -> bool:
    """Are colours wanted on stdout?"""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def log_names(args: argparse.Namespace) -> list[str]:
    return args.log.replace(",", " ").split()


def chosen_charts(args: argparse.Namespace, readers: Sequence[RunReader]) -> list[ChartSpec]:
    """The charts asked for; none where there are no numbers at all.

    Raises:
        RlvrError: when --charts or --log name what there is not.
    """
    every = charts_of(reader.metrics for reader in readers)
    names = [spec.name for spec in every]
    found = matching(every, args.charts)
    if every and not found:
        raise RlvrError(f"--charts {args.charts}: no chart matches; there are {', '.join(names)}")
    for name in log_names(args):
        if every and name not in names:
            raise RlvrError(f"--log {name}: there is no such chart; there are {', '.join(names)}")
    return found


def print_once(args: argparse.Namespace, readers: Sequence[RunReader]) -> None:
    from rlvr.tui import frame

    if args.json:
        print(json.dumps(frame.as_json(readers), indent=2))
        return
    charts = chosen_charts(args, readers)
    if args.text:
        print(frame.in_text(readers, charts))
        return
    colors = has_colors()
    width, height = parse_size(args.size)
    cells = frame.draw_frame(readers, charts, make_view(args, colors), width, height)
    print(frame.to_ansi(cells) if colors else frame.to_text(cells))


def export_charts(args: argparse.Namespace, readers: Sequence[RunReader]) -> None:
    """Write each chart asked for beside the first run, and print where."""
    from rlvr.tui import frame
    from rlvr.tui.export import export

    charts = chosen_charts(args, readers)
    if not charts:
        raise RlvrError(f"{readers[0].name}: {frame.nothing_to_draw(readers[0])}")
    view = make_view(args, colors=True)
    for spec in charts:
        print(export(frame.curves_of(readers), spec, view, readers[0].folder, args.export), flush=True)


def run(args: argparse.Namespace) -> int:
    if (args.json or args.text) and not args.once:
        raise RlvrError("--json and --text print one frame: use them with --once")
    readers = find_readers(args)
    speed = parse_speed(args.replay) if args.replay else None
    if args.once or args.export:
        if args.theme or speed:
            raise RlvrError("--theme and --replay are for the live view: leave them out, or --once and --export")
        for reader in readers:
            reader.read_all()
        (export_charts if args.export else print_once)(args, readers)
        return 0
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise RlvrError("the live view needs a terminal: use --once in a pipe")
    from rlvr.tui.viz import VizApp

    view = make_view(args, colors=True)
    chosen = args.smoothing is not None
    app = VizApp(readers, view, charts=args.charts, theme=args.theme, replay=speed, smoothing_chosen=chosen)
    app.run()
    return app.return_code or 0


def main() -> int:
    try:
        return run(parse_arguments())
    except RlvrError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader, such as head, has seen enough; what is still buffered must not be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
