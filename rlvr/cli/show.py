"""Commands that say where runs stand: ps, watch, wait; what is in their files (tail, log, trace) is in `follow.py`."""

import argparse
import contextlib
import sys
import time
from collections.abc import Sequence

import msgspec

from rlvr import cycles, listing
from rlvr.cli import RUN_HELP, Command, follow, terminal
from rlvr.cycles import Run
from rlvr.errors import RlvrError
from rlvr.listing import Row, duration_text

SHOWN_ENDED = 20
"""Runs that have ended in a `ps` without -a: what happened lately, and the live ones still on the screen."""

REDRAW_S = 0.5
TIMED_OUT = 124

STATE_COLOURS = {"running": "green", "pending": "yellow", "failed": "red", "lost": "red", "killed": "magenta"}
BAR_CELLS = 10
SENTENCE_CELLS = 20
WIDE = 100
"""On a terminal with fewer columns, label and message share one."""

# ---------------------------------------------------------------------------------------------------------------------
# ps


def ps_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-a", "--all", action="store_true", help=f"all runs, not only the {SHOWN_ENDED} newest; of all models"
    )
    parser.add_argument("--json", action="store_true", help="a list of objects, one a run; never cut short")


def ps(args: argparse.Namespace) -> int:
    chosen = chosen_models(args)
    rows = current_rows()
    shown = [row for row in rows if row.model in chosen]
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())
        return 0
    elsewhere = [row for row in rows if row.live and row.model not in chosen]
    if not args.all:
        num_live = sum(row.live for row in shown)
        shown = shown[: num_live + SHOWN_ENDED]
    if shown:
        print("\n".join(table(shown, with_model=len(chosen) > 1)))
    else:
        where = "" if chosen else f" in {cycles.TRAINING_DIR.resolve()}"
        following = f"train --model {chosen[0]}" if chosen else "init --model NAME"
        print(f"Nothing yet{where}. Next: rlvrctl.py {following}")
    hidden = 0 if args.all else sum(row.model in chosen for row in rows) - len(shown)
    if hidden:
        print(f"{hidden} more: rlvrctl.py ps -a" + (f" --model {chosen[0]}" if len(chosen) == 1 else ""))
    if elsewhere:
        names = ", ".join(f"{row.model}/{row.run} is {row.state}" for row in elsewhere[:3])
        print(f"Of other models: {names}{' ...' if len(elsewhere) > 3 else ''}: rlvrctl.py ps -a")
    return 0


def chosen_models(args: argparse.Namespace) -> list[str]:
    """The models that a listing is of: the one meant, or all with -a and where it is not clear which is meant."""
    if args.model:
        return [cycles.choose_model(args.model)]
    with contextlib.suppress(RlvrError):
        if not args.all:
            return [cycles.choose_model(None)]
    return cycles.model_names()


def current_rows() -> list[Row]:
    """The rows of all runs of all models; pending ones that nobody looked after have a supervisor again."""
    rows = [listing.read_row(run) for model in cycles.model_names() for run in cycles.all_runs(model)]
    if any(map(listing.is_forgotten, rows)):
        from rlvr import control

        if control.start_waiting():
            return current_rows()
    return listing.newest_first(rows)


HEADER = ("run", "state", "progress", "elapsed", "left", "reward", "solved", "label", "message")
RIGHT = (False, False, False, True, True, True, True, False, False)


def table(rows: Sequence[Row], *, with_model: bool) -> list[str]:
    """The lines of `ps`: a header and one a run."""
    room = terminal.width() if terminal.is_terminal() else None
    bars = room is not None and has_room_for_bars(rows, with_model, room)
    lines = [line_of(row, with_model=with_model, bar=bars) for row in rows]
    if room is not None and room < WIDE:
        for line in lines:
            line[-2:] = ["", ": ".join(filter(None, line[-2:]))]
    styles = None
    if terminal.has_colours():
        styles = [
            ("bold" if row.live else "", colour, colour if row.live else "", "", "", "", "", "cyan", "dim")
            for row in rows
            for colour in (STATE_COLOURS.get(row.state, ""),)
        ]
    return terminal.columns(HEADER, lines, right=RIGHT, styles=styles, room=room)


def has_room_for_bars(rows: Sequence[Row], with_model: bool, room: int) -> bool:
    """Would a sentence of some words still fit beside them?"""
    lines = [[*line_of(row, with_model=with_model, bar=True)[:-1], ""] for row in rows]
    return max(map(terminal.cells, terminal.columns(HEADER, lines, right=RIGHT))) + SENTENCE_CELLS <= room


def line_of(row: Row, *, with_model: bool, bar: bool = False) -> list[str]:
    return [
        f"{row.model}/{row.run}" if with_model else row.run,
        row.state,
        progress_text(row, bar),
        duration_text(row.elapsed_s),
        duration_text(row.remaining_s),
        "" if row.reward is None else f"{row.reward:+.3f}",
        "" if row.solved is None else f"{row.solved:.1%}",
        terminal.cut(terminal.one_line(row.label), 24),
        terminal.one_line(row.message),
    ]


def progress_text(row: Row, bar: bool) -> str:
    """`40/80  50% ━━━━━─────`; the bar, when there is room for one, of live runs only."""
    if not row.max_steps and not row.step:
        return ""
    share = min((row.percent or 0.0) / 100, 1.0)
    counted = f"{row.step}/{row.max_steps or '?'}"
    percent = f"{int(100 * share):>4}%" if row.max_steps else ""  # 100 % only when it is done
    filled = int(share * BAR_CELLS)
    drawn = " " + "━" * filled + "─" * (BAR_CELLS - filled) if bar and row.live else ""
    return f"{counted:>9}{percent}{drawn}"


# ---------------------------------------------------------------------------------------------------------------------
# watch


def watch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"{RUN_HELP}; default: all that live")


def watch(args: argparse.Namespace) -> int:
    rows = current_rows()
    if args.runs:
        runs = list(dict.fromkeys(cycles.find_run(name, args.model) for name in args.runs))
    else:
        runs = [listing.run_of(row) for row in rows if row.live and args.model in (None, row.model)]
    if not runs:
        print("No run is living. Next: rlvrctl.py train, or rlvrctl.py ps -a")
        return 0
    if terminal.is_terminal():
        redraw(runs)
    else:
        print_changes(runs)
    return 0


def redraw(runs: Sequence[Run]) -> None:
    """Keep a line per run up to date on a terminal until all have ended."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    def look() -> tuple[Group, bool]:
        rows = [listing.read_row(run) for run in runs]
        lines = table(rows, with_model=len({run.model for run in runs}) > 1)
        return Group(*map(Text.from_ansi, lines)), any(row.live for row in rows)

    picture, living = look()
    with Live(picture, console=terminal.console(), auto_refresh=False) as live:
        while living:
            time.sleep(REDRAW_S)
            picture, living = look()
            live.update(picture, refresh=True)


def print_changes(runs: Sequence[Run]) -> None:
    """A plain line at each step or change of state of a run, until all have ended."""
    before: dict[Run, tuple[str, int, str]] = {}
    with_model = len({run.model for run in runs}) > 1
    while True:
        rows = [listing.read_row(run) for run in runs]
        for run, row in zip(runs, rows, strict=True):
            if before.get(run) != (now := (row.state, row.step, row.message)):
                before[run] = now
                parts = line_of(row, with_model=with_model)
                names = ("", "", "step", "elapsed", "left", "reward", "solved", "", "")
                words = [f"{name} {' '.join(text.split())}".strip() for name, text in zip(names, parts, strict=True)]
                shown = [word for word, text in zip(words, parts, strict=True) if text]
                print("  ".join(shown), flush=True)
        if not any(row.live for row in rows):
            return
        time.sleep(REDRAW_S)


# ---------------------------------------------------------------------------------------------------------------------
# wait


def wait_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--timeout", metavar="TIME", help="give up after this long, such as 90, 10m or 2h")


def wait(args: argparse.Namespace) -> int:
    timeout_s = None if args.timeout is None else listing.parse_duration(args.timeout)
    runs = list(dict.fromkeys(cycles.find_run(name, args.model) for name in args.runs))
    from rlvr import control

    control.start_waiting()
    code = control.wait(runs, timeout_s)
    for run in runs:
        row = listing.read_row(run)
        unit = {"train": "step", "eval": "completion", "auto": "round"}[run.kind]
        after = f" at {unit} {row.step}" + (f" of {row.max_steps}" if row.max_steps else "") if row.started else ""
        took = f", {duration_text(row.elapsed_s)}" if row.elapsed_s is not None else ""
        ended = "" if row.live else f", exit code {control.exit_code(control.status_of(run))}"
        message = f": {terminal.one_line(row.message)}" if row.message else ""
        print(f"{run}: {row.state}{after}{took}{ended}{message}", file=sys.stderr if row.live else sys.stdout)
    if code is None:
        unit = "" if str(args.timeout)[-1].isalpha() else " s"
        print(f"error: not ended within {args.timeout}{unit}", file=sys.stderr)
        return TIMED_OUT
    return code


COMMANDS = {
    "ps": Command(
        ps_arguments,
        ps,
        ("rlvrctl.py ps", "rlvrctl.py ps -a", "rlvrctl.py ps -a --model gemma", "rlvrctl.py ps -a --json"),
        f"Cycles, evaluations and auto runs: live ones first, then the {SHOWN_ENDED} newest that have ended.",
    ),
    "watch": Command(
        watch_arguments,
        watch,
        ("rlvrctl.py watch", "rlvrctl.py watch 003 003/evals/base"),
        "A line per run, kept up to date until all have ended; Ctrl-C leaves the runs alone.",
    ),
    "wait": Command(
        wait_arguments,
        wait,
        ("rlvrctl.py wait live && rlvrctl.py eval", "rlvrctl.py wait 003 004 --timeout 2h"),
        "Block until runs have ended. The exit code is the first of theirs that is not 0, or 124 after --timeout.",
    ),
    **follow.COMMANDS,
}
