"""Commands that put runs beside each other: compare their figures, diff what they ran with."""

import argparse
import csv
import statistics
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rlvr import cycles, folders, listing, records
from rlvr.cli import RUN_HELP, Command, terminal
from rlvr.cycles import Run
from rlvr.errors import RlvrError
from rlvr.listing import duration_text, solved_share
from rlvr.records import Evaluation, Interval, Round, Step, Tail

Figures = TypeVar("Figures", bound=msgspec.Struct)
Rows = Sequence[tuple[str, Callable[[Figures], str]]]

BASE = "base"
LOOK: dict[str, Any] = {"box": None, "pad_edge": False, "padding": (0, 2, 0, 0), "header_style": "bold"}
"""Of every table here."""


class CycleFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one cycle, one object of `compare --json`; what is unknown is None.

    `_first` and `_last` are means over the first and last tenth of its steps, at least one. Shares lie in [0, 1],
    lengths are tokens, seconds end in `_s`: `wall_s` is the sum of its steps, `step_s` their median. `kl_last` is None
    without a KL term. `eval_` is of its newest evaluation, `eval_difference` in solved against `eval_against`.
    """

    run: str
    label: str
    state: str
    parent: str
    steps: int
    max_steps: int
    reward_first: float | None
    reward_last: float | None
    solved_first: float | None
    solved_last: float | None
    mixed_last: float | None
    all_right_last: float | None
    all_wrong_last: float | None
    truncated_last: float | None
    kl_last: float | None
    length_last: float | None
    infra: int
    tokens_per_s: float | None
    step_s: float | None
    wall_s: float | None
    unreadable: int
    eval_run: str = ""
    eval_solved: Interval | None = None
    eval_against: str = ""
    eval_difference: Interval | None = None


class ParticipantFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one participant of an evaluation, one object of `compare --json`; as in its `eval.json`.

    `difference` is in solved, against the evaluation's first participant; None for that one itself.
    """

    run: str
    participant: str
    num_tasks: int
    samples: int
    solved: Interval
    mean_holdout_match: Interval
    pass_at: dict[str, Interval]
    produced_valid_fn: float
    lookups: int
    truncated: int
    timeouts: int
    infra: int
    tokens: int
    seconds: float
    against: str = ""
    difference: Interval | None = None


# ---------------------------------------------------------------------------------------------------------------------
# Figures


def read_cycle(run: Run, name: str) -> CycleFigures:
    """The figures of a cycle; lines of its metrics that cannot be read are counted and left out."""
    tail = Tail(run.files.metrics, Step)
    steps = tail.read()
    while tail.remaining:
        steps += tail.read()
    row = listing.read_row(run)
    tenth = max(len(steps) // 10, 1)
    first, last = steps[:tenth], steps[-tenth:]
    run_name, evaluation = newest_evaluation(run) or ("", None)
    return CycleFigures(
        run=name,
        label=row.label,
        state=row.state,
        parent=parent_of(run),
        steps=len(steps),
        max_steps=steps[-1].max_steps if steps else row.max_steps,
        reward_first=mean(step.reward for step in first),
        reward_last=mean(step.reward for step in last),
        solved_first=mean(map(solved_share, first)),
        solved_last=mean(map(solved_share, last)),
        mixed_last=mean(step.mixed for step in last),
        all_right_last=mean(step.all_right for step in last),
        all_wrong_last=mean(step.all_wrong for step in last),
        truncated_last=mean(step.truncated for step in last),
        kl_last=mean(step.kl for step in last),
        length_last=mean(step.length_mean for step in last),
        infra=sum(step.outcomes.get("infra", 0) for step in steps),
        tokens_per_s=mean(step.tokens_per_s for step in steps),
        step_s=statistics.median(step.step_s for step in steps) if steps else None,
        wall_s=sum(step.step_s for step in steps) if steps else None,
        unreadable=tail.bad,
        **(evaluation_figures(run.name, run_name, evaluation) if evaluation else {}),
    )


def evaluation_figures(name: str, run_name: str, evaluation: Evaluation) -> dict[str, Any]:
    """What an evaluation says of the participant `name`, against base or else the first other one."""
    person = next(person for person in evaluation.participants if person.name == name)
    against, difference = "", None
    for each in sorted(evaluation.differences, key=lambda each: BASE not in (each.first, each.second)):
        if each.metric == "solved" and name in (each.first, each.second):
            against, difference = each.first, each.difference
            if each.first == name:
                against, difference = each.second, Interval(-difference.estimate, -difference.high, -difference.low)
            break
    return {
        "eval_run": run_name,
        "eval_solved": person.solved,
        "eval_against": against,
        "eval_difference": difference,
    }


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def parent_of(run: Run) -> str:
    """What a cycle was warm-started from; "" for a cold start."""
    return cycles.checkpoint_name(run.files.parent) if run.files.parent.is_symlink() else ""


def newest_evaluation(run: Run) -> tuple[str, Evaluation] | None:
    """The newest evaluation that this cycle took part in, with the name of its run."""
    found = []
    for other in folders.children(run):
        if other.kind == "eval" and (written := listing.modified(other.files.evaluation)) is not None:
            found.append((written, other))
    for _, other in sorted(found, key=lambda pair: pair[0], reverse=True):
        try:
            evaluation = records.read(other.files.evaluation, Evaluation)
        except RlvrError:
            continue  # an older one may be readable
        if any(person.name == run.name for person in evaluation.participants):
            return other.name, evaluation
    return None


def read_participants(run: Run, name: str) -> list[ParticipantFigures]:
    """The figures of an evaluation's participants.

    Raises:
        RlvrError: when it has no result.
    """
    if not run.files.evaluation.exists():
        raise RlvrError(f"{run} is {listing.read_row(run).state} and has no result yet: rlvrctl.py wait {run.name}")
    evaluation = records.read(run.files.evaluation, Evaluation)
    against = {each.second: each for each in evaluation.differences if each.metric == "solved"}
    return [
        ParticipantFigures(
            run=name,
            participant=person.name,
            num_tasks=evaluation.num_tasks,
            samples=evaluation.samples,
            solved=person.solved,
            mean_holdout_match=person.mean_holdout_match,
            pass_at=person.pass_at,
            produced_valid_fn=person.produced_valid_fn,
            lookups=person.lookups,
            truncated=person.truncated,
            timeouts=person.timeouts,
            infra=person.infra,
            tokens=person.tokens,
            seconds=person.seconds,
            against=against[person.name].first if person.name in against else "",
            difference=against[person.name].difference if person.name in against else None,
        )
        for person in evaluation.participants
    ]


# ---------------------------------------------------------------------------------------------------------------------
# compare


def compare_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help=f"{RUN_HELP}; an auto run stands for its cycles")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="a line a run, for a spreadsheet")
    form.add_argument("--md", action="store_true", help="a Markdown table, for a page")
    form.add_argument("--json", action="store_true", help="a list of objects, one a run")


def compare(args: argparse.Namespace) -> int:
    runs = [run for name in args.runs for run in expand(cycles.find_run(name, args.model))]
    kinds = {run.kind for run in runs}
    if len(kinds) > 1:
        raise RlvrError("compare either cycles or evaluations: their figures are not the same ones")
    several = len({run.model for run in runs}) > 1
    names = [str(run) if several else run.name for run in runs]
    if kinds == {"eval"}:
        people = [person for run, name in zip(runs, names, strict=True) for person in read_participants(run, name)]
        say_if_unequal(runs)
        headers = [f"{person.participant}\n{person.run}" for person in people]
        show(people, headers, participant_rows(people), args)
    else:
        figures = [read_cycle(run, name) for run, name in zip(runs, names, strict=True)]
        show(figures, names, CYCLE_ROWS, args)
        if not (args.csv or args.md or args.json):
            terminal.console().print(f"\n{HOW_CYCLES_ARE_READ}", style="dim")
    return 0


def expand(run: Run) -> list[Run]:
    """The run itself; of an auto run the cycles of its finished rounds.

    Raises:
        RlvrError: for an auto run without any.
    """
    if run.kind != "auto":
        return [run]
    rounds = Tail(run.files.rounds, Round).read()
    if not rounds:
        raise RlvrError(f"{run} has finished no round yet: rlvrctl.py watch {run.name}")
    return [cycles.find_run(each.cycle, run.model) for each in rounds]


def say_if_unequal(runs: Sequence[Run]) -> None:
    """Warn when figures of several evaluations do not answer the same question."""
    asked = [records.read(run.files.evaluation, Evaluation) for run in runs]
    for what, values in (
        ("tasks", {tuple(each.tasks) for each in asked}),
        ("numbers of samples", {each.samples for each in asked}),
        ("token budgets", {each.max_new_tokens for each in asked}),
    ):
        if len(values) > 1:
            print(f"WARNING: these evaluations had different {what}: do not compare across them", file=sys.stderr)


def show(figures: Sequence[Figures], headers: Sequence[str], rows: Rows, args: argparse.Namespace) -> None:
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(figures), indent=2).decode())
        return
    if args.csv:
        print_csv(figures)
        return
    cells = [[label, *(cell(each) for each in figures)] for label, cell in rows]
    cells = [row for row in cells if any(text not in ("", "-") for text in row[1:])]
    if args.md:
        for row in [["", *headers], ["---", *["---:"] * len(headers)], *cells]:
            print(f"| {' | '.join(text.replace('|', '/').replace(chr(10), ' in ') for text in row)} |")
        return
    for number, shown in enumerate(blocks([max(map(len, header.splitlines())) for header in headers], cells)):
        print("\n" * bool(number), end="")
        print_table([headers[at] for at in shown], [[row[0], *(row[1 + at] for at in shown)] for row in cells])


def blocks(widths: Sequence[int], cells: Sequence[Sequence[str]]) -> Iterator[list[int]]:
    """Groups of columns that fit the terminal beside the labels, at least one each."""
    room = terminal.width() - max(len(row[0]) for row in cells)
    shown: list[int] = []
    used = 0
    for at, header_width in enumerate(widths):
        needed = 2 + max(header_width, *(terminal.cells(row[1 + at]) for row in cells))
        if shown and used + needed > room:
            yield shown
            shown, used = [], 0
        shown.append(at)
        used += needed
    yield shown


def print_table(headers: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("", **LOOK)
    for header in headers:
        table.add_column(Text(header), justify="right", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    terminal.console().print(table)


def print_csv(figures: Sequence[msgspec.Struct]) -> None:
    """A header and a line a run; an interval takes three columns."""
    lines = [flat(msgspec.to_builtins(each)) for each in figures]
    names = list(dict.fromkeys(name for line in lines for name in line))
    writer = csv.DictWriter(sys.stdout, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)


def flat(document: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"a": {"low": 1}}` -> `{"a_low": 1}`."""
    found: dict[str, Any] = {}
    for name, value in document.items():
        found |= flat(value, f"{prefix}{name}_") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


def number(form: str) -> Callable[[float | None], str]:
    """A way to write numbers; "-" for unknown ones."""
    return lambda value: "-" if value is None else format(value + 0.0, form)


signed, share, whole, three = number("+.3f"), number(".1%"), number(",.0f"), number(".3f")


def interval_text(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    return f"{interval.estimate:.1%} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def points_text(interval: Interval | None) -> str:
    """`+12.5 [+3.1, +20.0]`, in percentage points."""
    if interval is None:
        return "-"
    low, estimate, high = (100 * value for value in (interval.low, interval.estimate, interval.high))
    return f"{estimate:+.1f} [{low:+.1f}, {high:+.1f}]"


CYCLE_ROWS: Rows[CycleFigures] = (
    ("label", lambda run: run.label),
    ("state", lambda run: run.state),
    ("warm start from", lambda run: run.parent or "-"),
    ("steps", lambda run: f"{run.steps} of {run.max_steps}"),
    ("reward at first", lambda run: signed(run.reward_first)),
    ("reward at last", lambda run: signed(run.reward_last)),
    ("solved at first", lambda run: share(run.solved_first)),
    ("solved at last", lambda run: share(run.solved_last)),
    ("groups all right", lambda run: share(run.all_right_last)),
    ("groups mixed", lambda run: share(run.mixed_last)),
    ("groups all wrong", lambda run: share(run.all_wrong_last)),
    ("cut short", lambda run: share(run.truncated_last)),
    ("KL", lambda run: three(run.kl_last)),
    ("length", lambda run: whole(run.length_last)),
    ("not scored (infra)", lambda run: str(run.infra) if run.infra else ""),
    ("tokens/s", lambda run: whole(run.tokens_per_s)),
    ("a step", lambda run: "-" if run.step_s is None else f"{run.step_s:.1f} s"),
    ("all steps", lambda run: duration_text(run.wall_s) or "-"),
    ("unreadable lines", lambda run: str(run.unreadable) if run.unreadable else ""),
    ("newest evaluation", lambda run: run.eval_run or "-"),
    ("  solved [95 %]", lambda run: interval_text(run.eval_solved)),
    ("  difference, points", lambda run: points_text(run.eval_difference)),
    ("  to", lambda run: run.eval_against),
)


HOW_CYCLES_ARE_READ = """\
At first, at last: means over the first and the last tenth of the steps. Groups, cut, KL and length are at last."""


def participant_rows(people: Sequence[ParticipantFigures]) -> Rows[ParticipantFigures]:
    passes = sorted({k for person in people for k in person.pass_at}, key=int)
    return (
        ("tasks x samples", lambda person: f"{person.num_tasks} x {person.samples}"),
        ("solved [95 %]", lambda person: interval_text(person.solved)),
        ("difference, points", lambda person: points_text(person.difference)),
        ("  to", lambda person: person.against),
        ("mean_holdout_match", lambda person: interval_text(person.mean_holdout_match)),
        *((f"pass@{k}", lambda person, k=k: interval_text(person.pass_at.get(k))) for k in passes),
        ("produced_valid_fn", lambda person: share(person.produced_valid_fn)),
        ("lookups", lambda person: str(person.lookups)),
        ("cut short", lambda person: str(person.truncated)),
        ("timeouts", lambda person: str(person.timeouts)),
        ("not scored (infra)", lambda person: str(person.infra)),
        ("tokens", lambda person: f"{person.tokens:,}"),
        ("generation", lambda person: duration_text(person.seconds)),
    )


# ---------------------------------------------------------------------------------------------------------------------
# diff


class Value(msgspec.Struct, frozen=True):
    """A value of one side of a diff, as TOML would write it, and the layer it came from; "" for what was recorded."""

    value: Any
    origin: str = ""


class Differing(msgspec.Struct, frozen=True):
    """What two runs do not have in common, one object of `diff --json`; a side that lacks it is None."""

    table: str
    key: str
    first: Value | None
    second: Value | None


def diff_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="RUN", help=RUN_HELP)
    parser.add_argument("second", metavar="RUN", help="the run to compare it with")
    parser.add_argument("--json", action="store_true", help="a list of objects: table, key, first, second")


def diff(args: argparse.Namespace) -> int:
    first, second = (cycles.find_run(name, args.model) for name in (args.first, args.second))
    found = differences(read_snapshot(first.files.config), read_snapshot(second.files.config))
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return 0
    if not found:
        print(f"{first} and {second} ran with the same config, versions and data.")
        return 0
    names = (first.name, second.name) if first.model == second.model else (str(first), str(second))
    shown = [title for title in TITLES if any(each.table == title for each in found)]
    for table in shown:
        print("\n" * (table != shown[0]), end="")
        title, rows = TITLES[table], [each for each in found if each.table == table]
        print_both(title, names, [each for each in rows if each.first and each.second])
        for at, name in enumerate(names):
            alone = [each for each in rows if (each.second, each.first)[at] is None]
            print_alone(title, name, [(each.key, value) for each in alone for value in both(each)])
    return 0


TITLES = {"config": "Config", "provenance": "Versions and data"}


def print_both(title: str, names: Sequence[str], rows: Sequence[Differing]) -> None:
    """What both have, and not the same."""
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return
    table = Table(title, *names, **LOOK)
    for column in table.columns:
        column.overflow = "fold"
    for each in rows:
        sides = [Text.assemble((toml_value(value.value), "bold"), origin_text(value)) for value in both(each)]
        table.add_row(Text(each.key), *sides)
    terminal.console().print(table)


def both(each: Differing) -> list[Value]:
    return [value for value in (each.first, each.second) if value is not None]


def print_alone(title: str, name: str, values: Sequence[tuple[str, Value]]) -> None:
    """What only the run `name` has."""
    if not values:
        return
    print(f"{title}, only in {name}:")
    for key, value in values:
        print(f"  {key} = {toml_value(value.value)}{origin_text(value)}")


def origin_text(value: Value) -> str:
    return f"  ({value.origin})" if value.origin else ""


def toml_value(value: Any) -> str:
    from rlvr.layer_files import toml_text

    return toml_text(value) if not isinstance(value, dict) else msgspec.json.encode(value).decode()


def read_snapshot(path: Path) -> dict[str, dict[str, Value]]:
    """What a run ran with: "config" -> key -> value and origin, "provenance" -> name -> value.

    Raises:
        RlvrError: when there is no such file, or it is not TOML.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RlvrError(f"{path}: no such file: this run has no config of its own") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RlvrError(f"{path}: not valid TOML: {error}") from None
    origins, provenance = document.pop("origin", {}), document.pop("provenance", {})
    return {
        "config": {key: Value(value, str(origins.get(key, ""))) for key, value in document.items()},
        "provenance": {key: Value(value) for key, value in provenance.items()},
    }


def differences(first: dict[str, dict[str, Value]], second: dict[str, dict[str, Value]]) -> list[Differing]:
    """What differs in value or is only in one of two snapshots; the same value of another layer is no difference."""
    found = []
    for table in first:
        for key in dict.fromkeys([*first[table], *second[table]]):
            one, other = first[table].get(key), second[table].get(key)
            if one is None or other is None or one.value != other.value:
                found.append(Differing(table, key, one, other))
    return found


COMMANDS = {
    "compare": Command(
        compare_arguments,
        compare,
        (
            "rlvrctl.py compare 001 002 003",
            "rlvrctl.py compare auto/001",
            "rlvrctl.py compare 002/evals/base 003/evals/base --md",
            "rlvrctl.py compare small/001 large/001 --csv > runs.csv",
        ),
        "Figures of cycles, or of the participants of evaluations, side by side.",
    ),
    "diff": Command(
        diff_arguments,
        diff,
        ("rlvrctl.py diff 002 003", "rlvrctl.py diff small/001 large/001 --json"),
        "Only the config keys, versions and data that differ between two runs, with the layer each came from.",
    ),
}
