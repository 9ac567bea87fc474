"""Commands about data and rewards: corpus fetch, status and preview; play (in play.py); validate."""

import argparse
import contextlib
import datetime
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec

from rlvr import environment
from rlvr.cli import Command
from rlvr.cli.play import config_of, play, play_arguments, task_arguments
from rlvr.environment import Task, Validated
from rlvr.errors import RlvrError
from rlvr.records import Grade

if TYPE_CHECKING:
    from rlvr.config import RunConfig
    from rlvr.corpus import Corpus

# ---------------------------------------------------------------------------------------------------------------------
# corpus


def corpus_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="fetch|status|preview")
    fetch = actions.add_parser(
        "fetch", allow_abbrev=False, help="make, complete or update a shallow clone of the OEIS data"
    )
    fetch.add_argument("--dir", type=Path, default=Path("oeisdata"), help="where it lies; default oeisdata")
    fetch.add_argument("--url", help="where it comes from; default https://github.com/oeis/oeisdata")
    fetch.set_defaults(run_action=corpus_fetch)
    status = actions.add_parser(
        "status", allow_abbrev=False, help="what is in the corpus, what the filter drops, how old it is"
    )
    status.add_argument("--corpus", metavar="DIR", help="folder of .seq files; default oeisdata/, else the sample")
    status.set_defaults(run_action=corpus_status)
    preview = actions.add_parser(
        "preview", allow_abbrev=False, help="a few tasks as the model sees them, and what is hidden from it"
    )
    preview.add_argument("-n", type=int, default=3, metavar="N", help="how many; default 3")
    preview.add_argument("--split", choices=("train", "eval"), default="train", help="of which split; default train")
    task_arguments(preview)
    preview.set_defaults(run_action=corpus_preview)
    for each in (fetch, status, preview):
        each.add_argument("--model", default=argparse.SUPPRESS, help="take the keys of this model's config")
    for each in (fetch, status):
        each.add_argument("--json", action="store_true", help="print the status as JSON")
    preview.add_argument("--json", action="store_true", help="print id, prompt and columns of each task as JSON")


def corpus(args: argparse.Namespace) -> int:
    return args.run_action(args)


def corpus_fetch(args: argparse.Namespace) -> int:
    from rlvr.corpus import HOW_TO_GET
    from rlvr.corpus_fetch import fetch

    try:
        with terminable(), fetch_progress() as report:
            was_new = fetch(args.dir, args.url, report)
    except (KeyboardInterrupt, SystemExit):
        print(f"Stopped. What has come stays; `{HOW_TO_GET}` goes on.", file=sys.stderr)
        raise
    print("All is there." if was_new else "It is at the newest state already.", file=sys.stderr)
    args.corpus = str(args.dir)
    return corpus_status(args)


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end this process the way Ctrl-C does: children are ended too."""
    import signal

    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def fetch_progress() -> Iterator[Callable[[int, int, str], None]]:
    """A bar on a terminal; else a line now and then, on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, highlight=False)
    if console.is_terminal:
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("files"), TimeRemainingColumn())
        with Progress(*columns, TextColumn("{task.description}", markup=False), console=console) as progress:
            bar = progress.add_task("", total=None)
            yield lambda have, total, text: progress.update(bar, completed=have, total=total or None, description=text)
        return
    printed_at, last = 0.0, ""

    def report(have: int, total: int, text: str) -> None:
        nonlocal printed_at, last
        line = f"{have:,} of {total:,} files" if total else text.partition(" (")[0]
        is_due = time.monotonic() - printed_at > 2 or have == total
        if line != last and is_due:
            print(line, file=sys.stderr, flush=True)
            printed_at, last = time.monotonic(), line

    yield report


class CorpusStatus(msgspec.Struct):
    """What `corpus status --json` prints. `partial` is empty when the corpus is whole, `commit_date` when no clone."""

    path: str
    is_sample: bool
    partial: str
    num_sequences: int
    bad: dict[str, list[str]]
    dropped: dict[str, int]
    train: int
    eval: int
    fingerprint: str
    commit_date: str


def corpus_status(args: argparse.Namespace) -> int:
    from rlvr.corpus import open_corpus

    args.environment = args.seed = None
    args.hide_name = False
    config = config_of(args)
    opened = open_corpus(config.corpus_dir or None, notice=lambda text: None)
    status = status_of(opened, config)
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(status), indent=2).decode())
        return 0
    print_status(status, opened.bad_report())
    return 0


def status_of(opened: "Corpus", config: "RunConfig") -> CorpusStatus:
    from rlvr.corpus_fetch import last_commit

    def select(**options: Any) -> Any:
        return opened.select(
            require=config.require_keywords,
            exclude=config.exclude_keywords,
            min_terms=config.min_terms,
            limit=0,
            **options,
        )

    both = select()
    over = "over the limit of 0"
    return CorpusStatus(
        path=str(opened.path),
        is_sample=opened.is_sample,
        partial=opened.partial,
        num_sequences=both.num_total,
        bad=opened.bad,
        dropped={reason: count for reason, count in both.dropped.items() if reason != over},
        train=select(split="train").dropped.get(over, 0),
        eval=select(split="eval").dropped.get(over, 0),
        fingerprint=opened.fingerprint,
        commit_date="" if opened.is_sample else last_commit(opened.path),
    )


def print_status(status: CorpusStatus, bad_report: str) -> None:
    from rlvr.corpus import HOW_TO_GET

    kind = "the bundled sample" if status.is_sample else "a corpus of your own"
    if status.commit_date:
        made = datetime.datetime.fromisoformat(status.commit_date)
        days = (datetime.datetime.now(datetime.UTC) - made).days
        kind = f"a clone, at a commit of {made:%Y-%m-%d} ({days} day{'' if days == 1 else 's'} old)"
    print(f"{status.path}: {kind}")
    if status.partial:
        print(f"NOT WHOLE: {status.partial}; `{HOW_TO_GET}` goes on with it")
    elif status.is_sample:
        print(f"`{HOW_TO_GET}` gets the full corpus")
    rows = [
        (status.num_sequences, "sequences"),
        *((count, f"dropped: {reason}") for reason, count in status.dropped.items()),
        (status.train, "pass the filter, in the train split"),
        (status.eval, "pass the filter, in the eval split"),
    ]
    width = max(len(f"{count:,}") for count, _ in rows)
    for count, text in rows:
        print(f"{count:{width},} {text}")
    if bad_report:
        print("Files left out:\n" + "\n".join(f"  {line}" for line in bad_report.splitlines()))
    print(f"Fingerprint {status.fingerprint}")


def corpus_preview(args: argparse.Namespace) -> int:
    args.environment = None
    config = config_of(args)
    env = environment.load(config.environment)
    if args.ids:
        tasks = env.tasks_by_id(config, args.ids)
    elif args.n < 1:
        raise RlvrError(f"-n {args.n} shows nothing: give 1 or more")
    else:
        tasks = env.build_tasks(config, split=args.split, limit=args.n, progress=False)
    if args.json:
        rows = [{"task": task.id, "prompt": task.prompt_text(args.style), **task.columns()} for task in tasks]
        print(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return 0
    for task in tasks:
        print(environment.describe(task, args.style))
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# validate

BATCH = 256
TOLERANCE = 1e-9  # sums of floats


class Failure(msgspec.Struct):
    """A known-good answer without full marks (`attack` is empty), or an attack that was paid."""

    task: str
    attack: str
    outcome: str
    reward: float | None
    verdict: str
    error: str


class Validation(msgspec.Struct):
    """What `validate --json` prints."""

    environment: str
    full_reward: float
    attack_reward: float
    num_tasks: int
    num_known_good: int
    num_attacks: int
    num_attack_names: int
    failures: list[Failure]
    left_behind: list[str]
    seconds: float


def validate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--environment", metavar="NAME", help="whose rewards; default oeis")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N tasks; default all")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def validate(args: argparse.Namespace) -> int:
    if args.limit is not None and args.limit < 1:
        raise RlvrError(f"--limit {args.limit} leaves nothing to check: give 1 or more")
    args.corpus = args.seed = None
    args.hide_name = False
    config = config_of(args)
    env = environment.validated(config.environment)
    env.configure(config)
    began = time.monotonic()
    known = list(env.known_good())[: args.limit]
    good = [(task, "", answer) for task, answer in known]
    attacks = [(task, name, text) for task, _ in known for name, text in env.attacks(task).items()]
    failures = []
    with validation_progress(len(good) + len(attacks)) as advance:
        for cases in (good, attacks):
            for start in range(0, len(cases), BATCH):
                batch = cases[start : start + BATCH]
                for failure in failures_of(env, batch):
                    failures.append(failure)
                    if not args.json:
                        print(sentence(failure, env), flush=True)
                advance(len(batch))
    result = Validation(
        environment=config.environment,
        full_reward=env.FULL_REWARD,
        attack_reward=env.ATTACK_REWARD,
        num_tasks=len(known),
        num_known_good=len(good),
        num_attacks=len(attacks),
        num_attack_names=len({name for _, name, _ in attacks}),
        failures=failures,
        left_behind=list(env.left_behind()),
        seconds=round(time.monotonic() - began, 1),
    )
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())
    else:
        print_validation(result)
    return 1 if result.failures or result.left_behind else 0


def failures_of(env: Validated, cases: list[tuple[Task, str, str]]) -> Iterator[Failure]:
    """Grade (task, name of the attack or "", answer) and give those that did not get what they must."""
    grades = env.grade([task for task, _, _ in cases], [text for _, _, text in cases], [False] * len(cases))
    for (task, attack, _), grade in zip(cases, grades, strict=True):
        if not (is_refused(env, grade) if attack else is_full(env, grade)):
            yield Failure(task.id, attack, grade.outcome, grade.reward, grade.verdict, grade.error)


def is_full(env: Validated, grade: Grade) -> bool:
    return grade.outcome == "solved" and grade.reward is not None and grade.reward >= env.FULL_REWARD - TOLERANCE


def is_refused(env: Validated, grade: Grade) -> bool:
    """Scored (what was not scored proves nothing), not solved, not paid for more than working, and on the scale."""
    if grade.reward is None or grade.outcome == "solved":
        return False
    return env.WORST_REWARD - TOLERANCE <= grade.reward <= env.ATTACK_REWARD + TOLERANCE


def sentence(failure: Failure, env: Validated) -> str:
    reward = "not scored" if failure.reward is None else f"reward {failure.reward:g}"
    got = f"{failure.outcome}, {reward} ({failure.verdict}{': ' + failure.error if failure.error else ''})"
    if failure.attack:
        wanted = f"must get {env.WORST_REWARD:g} to {env.ATTACK_REWARD:g}"
        return f"FAILED  {failure.task}, attack {failure.attack!r}: {got}; {wanted}"
    return f"FAILED  {failure.task}, known-good answer: {got}; must be solved with {env.FULL_REWARD:g}"


def print_validation(result: Validation) -> None:
    attack_failures = sum(bool(failure.attack) for failure in result.failures)
    good_failures = len(result.failures) - attack_failures
    print(
        f"{result.num_known_good - good_failures:,} of {result.num_known_good:,} known-good answers are solved with "
        f"full marks ({result.full_reward:g})"
    )
    print(
        f"{result.num_attacks - attack_failures:,} of {result.num_attacks:,} attacks ({result.num_attack_names} kinds "
        f"on {result.num_tasks:,} tasks) get nothing: not solved, at most {result.attack_reward:g}"
    )
    for text in result.left_behind:
        print(f"FAILED  {text}")
    verdict = "FAILED" if result.failures or result.left_behind else "ok"
    print(f"{result.environment}: {verdict}, {result.seconds:g} s")


@contextlib.contextmanager
def validation_progress(num_answers: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        bar = progress.add_task("Grading", total=num_answers)
        yield lambda count: progress.advance(bar, count)


COMMANDS = {
    "corpus": Command(
        arguments=corpus_arguments,
        run=corpus,
        examples=(
            "rlvrctl.py corpus fetch",
            "rlvrctl.py corpus status --json",
            "rlvrctl.py corpus preview -n 2 --split eval --style compact",
            "rlvrctl.py corpus preview --anum A000217 A000290 --hide-name",
        ),
        description="Get the OEIS data as a shallow clone, say what is in it, show tasks made of it.\n"
        "fetch can be interrupted at any time: the next one goes on. Without --model, the default keys count.",
    ),
    "play": Command(
        arguments=play_arguments,
        run=play,
        examples=(
            "rlvrctl.py play",
            "rlvrctl.py play --anum A000217 --hide-name",
            "rlvrctl.py play --anum A000290 --answer squares.py --json",
            "echo 'def a(n): return n * n' | rlvrctl.py play --anum A000290",
        ),
        description="Answer a task yourself, in $VISUAL or $EDITOR or line by line, and see every reward with its\n"
        "reason. The answer is graded in the sandbox, as a model's is. Without --model, the default keys count.",
    ),
    "validate": Command(
        arguments=validate_arguments,
        run=validate,
        examples=("rlvrctl.py validate", "rlvrctl.py validate --environment oeis --limit 20 --json"),
        description="Grade every known-good answer of an environment, which must get full marks, and every attack,\n"
        "which must get nothing. Exit code 1 when one does not.",
    ),
}
