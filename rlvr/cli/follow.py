"""Commands that show what is in the files of a run, as it is and as it grows: tail, log, trace."""

import argparse
import re
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Generic

import msgspec

from rlvr import cycles, listing
from rlvr.cli import RUN_HELP, Command, terminal
from rlvr.cycles import Run
from rlvr.errors import RlvrError
from rlvr.records import OUTCOMES, Completion, Record, Round, Step, Tail, TextTail
from rlvr.status import LIVING, read_status

LOOK_S = 0.3
STEPS_SHOWN = 10
ANSWERS_SHOWN = 8
BLOCKS_SHOWN = 5
FAILURES_SHOWN = 4
TERM_DIGITS = 60
"""Of a term that has more, its beginning and end are shown."""

EVERY = 2**31

OUTCOME_COLOURS = {
    **{"solved": "green", "partial": "cyan", "wrong": "", "lookup": "yellow", "disallowed_import": "magenta"},
    **{"invalid": "red", "truncated": "red", "timeout": "red", "infra": "red"},
}


class Moment(msgspec.Struct):
    """When a step was."""

    step: int
    time: float


class Answer(msgspec.Struct):
    """What a line, or a choice, of completions goes by; a Struct with few fields is read several times faster."""

    step: int
    task: str
    outcome: str
    tokens: int
    reward: float | None = None
    participant: str = ""
    time: float = 0.0


class Newcomers(Generic[Record]):
    """What is added to a file of records with a `time`; nothing twice when a resumed run replaces the file."""

    def __init__(self, tail: Tail[Record]):
        self.tail = tail
        self.newest = -1.0
        self.known_until = -1.0

    def read(self) -> Iterator[tuple[int, Record]]:
        """The new records, each with the byte at which its line begins."""
        while True:
            found = self.tail.read()
            if self.tail.restarted:
                self.known_until = self.newest
            for start, record in zip(self.tail.starts, found, strict=True):
                moment: float = record.time  # type: ignore[attr-defined]
                self.newest = max(self.newest, moment)
                if moment > self.known_until:
                    yield start, record
            if not self.tail.remaining:
                return

    def records(self) -> list[Record]:
        return [record for _, record in self.read()]


def is_living(run: Run) -> bool:
    status = read_status(run.files.status)
    return status is not None and status.state in LIVING


def looks(run: Run) -> Iterator[bool]:
    """Yield as often as it makes sense to look for something new; one last time, False, after a run has ended.

    A run that was resumed at once, as an auto run does it, goes on here too.
    """
    while True:
        living = is_living(run)
        yield living
        if not living and not is_living(run):
            return
        time.sleep(LOOK_S)


def add_follow(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help=f"{RUN_HELP}; default: live, else latest")
    parser.add_argument("-f", "--follow", action="store_true", help="go on as it grows, until the run has ended")


def chosen_run(args: argparse.Namespace) -> Run:
    """The run that was named; else the one that is running, or the newest cycle, which is said."""
    if args.run:
        return cycles.find_run(args.run, args.model)
    run = cycles.default_run(args.model)
    print(f"{run}:", file=sys.stderr)
    return run


def count(text: str) -> int:
    """A number of lines; "all" is more than there can be."""
    if text != "all" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor 'all'")
    return EVERY if text == "all" else int(text)


# ---------------------------------------------------------------------------------------------------------------------
# log


def log_arguments(parser: argparse.ArgumentParser) -> None:
    add_follow(parser)
    parser.add_argument("-n", "--lines", type=count, metavar="N", help="only the last N lines")
    parser.add_argument(
        "--since",
        metavar="TIME",
        help="leave out what is older than 90, 10m, 2h or 1d; to the step, because lines carry no time",
    )


def log(args: argparse.Namespace) -> int:
    run = chosen_run(args)
    if not run.files.log.exists() and not args.follow:
        raise RlvrError(
            f"{run.files.log}: no such file: the run has printed nothing, or was not started by rlvrctl.py"
        )
    since = None if args.since is None else time.time() - listing.parse_duration(args.since)
    tail = TextTail(run.files.log)
    lines = all_text(tail)
    if since is not None:
        lines = newer(run, lines, since)
    if args.lines is not None:
        lines = lines[-args.lines :] if args.lines > 0 else []
    for line in lines:
        print(line)
    if not args.follow:
        if tail.pending:
            print(tail.pending)
        return 0
    sys.stdout.flush()
    for _ in looks(run):
        for line in all_text(tail):
            print(line, flush=True)
    if tail.pending:
        print(tail.pending)
    return 0


def all_text(tail: TextTail) -> list[str]:
    lines = tail.read()
    while tail.remaining:
        lines += tail.read()
    return lines


def newer(run: Run, lines: list[str], since: float) -> list[str]:
    """The lines of a log that may be newer than `since`: those after the last step that is older.

    Only the steps of a cycle have a time. Before the first one, and for other runs, the log is shown whole unless
    all of it is older.
    """
    if (listing.modified(run.files.log) or 0.0) < since:
        return []
    older = [step.step for step in Newcomers(Tail(run.files.metrics, Moment)).records() if step.time < since]
    if not older:
        return lines
    mark = re.compile(rf"step +{older[-1]}/")
    at = max((number for number, line in enumerate(lines) if mark.match(line)), default=-1)
    return lines[at + 1 :]


# ---------------------------------------------------------------------------------------------------------------------
# tail


def tail_arguments(parser: argparse.ArgumentParser) -> None:
    add_follow(parser)
    parser.add_argument(
        "-n",
        "--lines",
        type=count,
        default=STEPS_SHOWN,
        metavar="N",
        help=f"so many last steps; default {STEPS_SHOWN}",
    )


def tail(args: argparse.Namespace) -> int:
    """The last steps, or rounds, then the newest completions; with -f what comes, in the order in which it came."""
    run = chosen_run(args)
    steps = Newcomers(Tail(run.files.metrics, Step))
    rounds = Newcomers(Tail(run.files.rounds, Round))
    answers = Newcomers(Tail(answers_file(run), Answer, last_bytes=ANSWERS_SHOWN * 65_536))
    # Read in this order: what a step or round tells of was written before it, and so is read with it.
    sources = (steps, rounds, answers)
    last_steps, last_rounds, last_answers = (source.records() for source in sources)
    print_lines(last_steps, args.lines)
    print_lines(last_rounds, args.lines)
    print_lines(last_answers, min(args.lines, ANSWERS_SHOWN))
    if not (last_answers or last_steps or last_rounds):
        print(f"{run} has finished no step yet.", file=sys.stderr)
    sys.stdout.flush()
    for _ in looks(run) if args.follow else ():
        new_steps, new_rounds, new_answers = (source.records() for source in sources)
        for record in sorted([*new_answers, *new_steps, *new_rounds], key=lambda record: record.time):
            print(line_of(record), flush=True)
    say_unreadable(*(source.tail for source in sources))
    return 0


def print_lines(found: Sequence[Step | Round | Answer], number: int) -> None:
    """The last `number` of them."""
    for record in found[max(len(found) - number, 0) :]:
        print(line_of(record))


def answers_file(run: Run) -> Path:
    return run.files.completions if run.kind == "eval" else run.files.trace


def line_of(record: Step | Round | Answer) -> str:
    if isinstance(record, Step):
        return listing.step_text(record)
    if isinstance(record, Round):
        from rlvr.auto import sentence

        return sentence(record)
    whose = record.participant or f"step {record.step}"
    outcome = f"{record.outcome:<17}"
    if terminal.has_colours():
        outcome = terminal.coloured(outcome, OUTCOME_COLOURS.get(record.outcome, ""))
    reward = "   -  " if record.reward is None else f"{record.reward:+.3f}"
    return f"  {record.task}  {outcome}  reward {reward}  {whose}, {record.tokens} tokens"


def say_unreadable(*tails: Tail) -> None:
    for each in tails:
        if each.bad:
            lines = "1 line" if each.bad == 1 else f"{each.bad} lines"
            print(f"{each.path}: {lines} could not be read and left out", file=sys.stderr)


# ---------------------------------------------------------------------------------------------------------------------
# trace


def trace_arguments(parser: argparse.ArgumentParser) -> None:
    add_follow(parser)
    parser.add_argument(
        "-n",
        "--number",
        type=count,
        metavar="N",
        help=f"so many of the newest, or 'all'; default {BLOCKS_SHOWN}, with --json all",
    )
    parser.add_argument("--outcome", choices=OUTCOMES, help="only completions that came to this")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--anum", metavar="A000045", help="only answers to this sequence")
    which.add_argument("--task", metavar="ID", help="only answers to this task, of any environment")
    parser.add_argument("--step", type=int, metavar="N", help="only this step")
    parser.add_argument("--participant", metavar="NAME", help="of an evaluation: only this checkpoint, such as base")
    parser.add_argument("--json", action="store_true", help="the lines of the file as they are")


def trace(args: argparse.Namespace) -> int:
    run = chosen_run(args)
    task = args.task
    if args.anum:
        if not re.fullmatch(r"[Aa]?\d{1,9}", args.anum):
            raise RlvrError(f"--anum {args.anum!r}: write it like A000045")
        task = f"A{int(args.anum.lstrip('Aa')):06d}"

    if args.participant and run.kind != "eval":
        raise RlvrError(f"{run} is no evaluation: leave out --participant")
    asked = {"task": task, "outcome": args.outcome, "step": args.step, "participant": args.participant}
    asked = {name: value for name, value in asked.items() if value is not None}

    def wanted(answer: Answer) -> bool:
        return all(getattr(answer, name) == value for name, value in asked.items())

    answers = Newcomers(Tail(answers_file(run), Answer))
    path = answers.tail.path
    if not path.exists() and not args.follow:
        raise RlvrError(f"{path}: no such file: {run} has answered nothing yet")
    number = (EVERY if args.json else BLOCKS_SHOWN) if args.number is None else args.number
    kept: deque[int] = deque(maxlen=number)
    seen = 0
    for start, answer in answers.read():
        seen += 1
        if wanted(answer):
            kept.append(start)
    show = show_raw if args.json else show_block
    for start in kept:
        show(read_line(path, start))
    if not kept and number and not args.follow:
        what = " and ".join(f"{name} {value}" for name, value in asked.items())
        said = f"None of the {seen:,} completions of {run} has {what}." if what else f"{run} has answered nothing yet."
        print(said, file=sys.stderr)
    sys.stdout.flush()
    for _ in looks(run) if args.follow else ():
        for start, answer in answers.read():
            if wanted(answer):
                show(read_line(path, start))
        sys.stdout.flush()
    say_unreadable(answers.tail)
    return 0


def read_line(path: Path, start: int) -> bytes:
    """The line that begins at a byte of a file; empty when the file was replaced meanwhile."""
    with path.open("rb") as file:
        file.seek(start)
        return file.readline()


def show_raw(line: bytes) -> None:
    sys.stdout.buffer.write(line)


def show_block(line: bytes) -> None:
    """One completion: what became of it, each reward with its reason, the function, the terms that it misses."""
    try:
        answer = msgspec.json.decode(line, type=Completion)
    except msgspec.MsgspecError as error:
        print(f"a line that could not be read: {error}", file=sys.stderr)
        return
    colours = terminal.has_colours()
    reward = "not scored" if answer.reward is None else f"{answer.reward:+.3f}"
    whose = answer.participant or f"step {answer.step}"
    outcome = answer.outcome
    if colours:
        outcome = terminal.coloured(outcome, OUTCOME_COLOURS.get(outcome) or "bold")
    place = f"group {answer.group} sample {answer.sample}, {answer.tokens} tokens{', cut' * answer.truncated}"
    print(f"{paint(whose, 'bold')}  {paint(answer.task, 'bold')}  {outcome}  {reward}  {paint(place, 'dim')}")
    width = max((len(part.name) for part in answer.rewards), default=0)
    for part in answer.rewards:
        value = "   -  " if part.value is None else f"{part.value + 0.0:+.3f}"  # no -0.000
        print(f"  {part.name:<{width}}  {value}  {terminal.one_line(part.reason)}")
    if answer.verdict != "ok":
        error = f": {terminal.one_line(answer.error)}" if answer.error else ""
        print(f"  {paint(answer.verdict + error, 'red')}")
    if answer.function.strip():
        show_code(answer.function.strip("\n"))
    else:
        ending = terminal.one_line(answer.completion)[-200:]
        print(f"  no function; the answer ends: {ending}" if ending else "  no function: the answer is empty")
    # Where nothing came back at all, the verdict says it better than a list of every term.
    missed = [check for check in answer.checks if not check.passed] if any(c.got for c in answer.checks) else []
    for check in missed[:FAILURES_SHOWN]:
        hidden = "" if check.shown else " (hidden)"
        got = f"is {short(check.got)}" if check.got else "gives nothing"
        print(f"  {check.label} {got}, not {short(check.expected)}{hidden}")
    if len(missed) > FAILURES_SHOWN:
        print(f"  and {len(missed) - FAILURES_SHOWN} more of {len(answer.checks)} terms")
    print()


def paint(text: str, style: str) -> str:
    return terminal.coloured(text, style) if terminal.has_colours() else text


def show_code(code: str) -> None:
    if not terminal.has_colours():
        for line in code.splitlines():
            print(f"    {terminal.printable(line)}")
        return
    from rich.padding import Padding
    from rich.syntax import Syntax

    syntax = Syntax(code, "python", theme="ansi_dark", background_color="default", word_wrap=True)
    terminal.console().print(Padding(syntax, (0, 0, 0, 4)))


def short(term: str) -> str:
    """A term that fits a line."""
    term = terminal.one_line(term)
    if len(term) <= TERM_DIGITS:
        return term
    return f"{term[: TERM_DIGITS // 2]}…{term[-TERM_DIGITS // 3 :]} ({len(term)} digits)"


COMMANDS = {
    "tail": Command(
        tail_arguments,
        tail,
        ("rlvrctl.py tail latest", "rlvrctl.py tail live -f", "rlvrctl.py tail 003/evals/base"),
        "The last steps of a run in a line each, then its newest completions.",
    ),
    "log": Command(
        log_arguments,
        log,
        ("rlvrctl.py log latest -n 50", "rlvrctl.py log live -f", "rlvrctl.py log 003 --since 10m"),
        "What a run printed, without colours and with progress bars at their last state.",
    ),
    "trace": Command(
        trace_arguments,
        trace,
        (
            "rlvrctl.py trace latest --outcome lookup",
            "rlvrctl.py trace 003 --anum A000045 -n all",
            "rlvrctl.py trace live -f",
            "rlvrctl.py trace 003/evals/base --participant 003 --json",
        ),
        "The completions of a cycle or an evaluation: outcome, each reward with its reason, function, missed terms.",
    ),
}
