"""One held-out evaluation: a base model against its adapters, on tasks that none of them was trained on.

    python eval_oeis.py                                  # base against gemma_4_oeis_lora/, 40 sequences, greedy
    python eval_oeis.py --adapters base 001 003 --model m -n 200 -k 8
    python eval_oeis.py --preset tiny --adapters base training/demo/001 --json > eval.json

Every key of `EvalConfig` in `rlvr/config.py` is a flag. All participants get the same prompts, token budget and random
seeds. Writes eval.json, completions.jsonl and config.toml. It trains nothing; what the numbers mean is said in
`docs/evaluation.md`. Exit codes: 0 done, 2 something to correct in the command or its files, 130 Ctrl-C, 143 SIGTERM.
"""

import argparse
import contextlib
import hashlib
import itertools
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import asdict
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from rlvr import environment, records
from rlvr.arguments import Parser, run_program
from rlvr.base_models import check_adapter
from rlvr.comparison import compare, conclude, points, summarize
from rlvr.config import EvalConfig, add_flags, config_from_flags, write_snapshot
from rlvr.cycles import STANDALONE_DIR, RunFiles, checkpoint_name, find_adapter
from rlvr.environment import Environment, Task
from rlvr.errors import RlvrError
from rlvr.provenance import provenance
from rlvr.records import Completion, Evaluation, Grade, Interval, Participant
from rlvr.status import StatusFile, new_status

if TYPE_CHECKING:
    from rlvr.models import Policy

EVALS_DIR = Path("evals")
"""Where an evaluation goes that nobody gave a folder."""

MIN_NEW_TOKENS = 16
"""With less room than this after a prompt there is no answer to look at."""

MAX_LISTED = 10
"""Won and lost tasks that are printed; all of them are in eval.json."""

Attempt = tuple[str, str, bool]
"""Task id, text of the answer, whether it was cut: what a grade depends on."""

# ---------------------------------------------------------------------------------------------------------------------
# Arguments and participants


def parse_arguments() -> argparse.Namespace:
    parser = Parser(
        description="Compare a base model and its adapters on held-out sequences.",
        epilog=f"Without --adapters: base against {STANDALONE_DIR}/.",
    )
    parser.add_argument(
        "--adapters",
        nargs="+",
        metavar="ADAPTER",
        help="whom to compare, the first with each of the others: base, a folder, a cycle's folder or number",
    )
    parser.add_argument("--model", default="", metavar="NAME", help="whose cycles the numbers count: training/NAME")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help=f"where to write; default {EVALS_DIR}/ and the names, joined by _vs_"
    )
    parser.add_argument("--json", action="store_true", help="print eval.json to stdout, everything else to stderr")
    for flag, key in (("-n", "num_tasks"), ("-k", "samples"), ("-t", "max_new_tokens")):
        parser.add_argument(flag, dest=f"key:{key}", metavar="VALUE", help=f"short for --{key.replace('_', '-')}")
    add_flags(parser, EvalConfig)
    return parser.parse_args()


class Contender(NamedTuple):
    """One checkpoint to evaluate; `adapter` is None for the base model."""

    name: str
    adapter: Path | None


def find_contenders(adapters: Sequence[str] | None, model: str) -> list[Contender]:
    """Resolve what was asked for; names are unique, the second "base" is "base.2".

    Raises:
        RlvrError: for an adapter that is not there.
    """
    if adapters is None:
        if not (STANDALONE_DIR / "adapter_config.json").is_file():
            raise RlvrError(
                f"{STANDALONE_DIR}: no adapter there to compare with the base model: train one with "
                "gemma4_oeis_rlvr.py, or name what to compare, such as --adapters base 001"
            )
        adapters = ("base", str(STANDALONE_DIR))
    contenders: list[Contender] = []
    times: Counter[str] = Counter()
    for text in adapters:
        folder = None if text == "base" else find_adapter(text, model)
        name = checkpoint_name(folder)
        times[name] += 1
        contenders.append(Contender(name if times[name] == 1 else f"{name}.{times[name]}", folder))
    return contenders


def weights_sha256(adapter: Path | None) -> str:
    if adapter is None:
        return ""
    with (adapter / "adapter_model.safetensors").open("rb") as weights:
        return hashlib.file_digest(weights, "sha256").hexdigest()


def make_folder(out: Path | None, contenders: Sequence[Contender]) -> Path:
    """Make the given folder, without an earlier evaluation in it, or else a new one named after the participants."""
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for file in (RunFiles(out).evaluation, RunFiles(out).completions):
            file.unlink(missing_ok=True)
        return out
    EVALS_DIR.mkdir(exist_ok=True)
    name = "_vs_".join(contender.name for contender in contenders)
    for number in itertools.count(1):
        folder = EVALS_DIR / (name if number == 1 else f"{name}.{number}")
        # Making it is the claim to it: another evaluation may be starting at this moment.
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise AssertionError("itertools.count ended")


@contextlib.contextmanager
def writing(folder: Path | None) -> Iterator[None]:
    """Turn a full disk or a read-only folder into one line.

    Raises:
        RlvrError: naming the file and the reason.
    """
    try:
        yield
    except OSError as error:
        raise RlvrError(
            f"{error.filename or folder}: cannot be written ({error.strerror}): give another --out"
        ) from None


@contextlib.contextmanager
def saying_what_is_left(completions_file: Path, status: StatusFile) -> Iterator[None]:
    """When interrupted, say where the answers are that were graded by then; leave a status in any case."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        with contextlib.suppress(OSError):
            status.write(state="killed", finished=time.time(), message="interrupted")
        if completions_file.exists():
            print(f"{completions_file} holds what was graded; there is no eval.json.", file=sys.stderr)
        raise
    except BaseException as error:
        with contextlib.suppress(OSError):  # a full disk may be what ended it
            status.write(state="failed", finished=time.time(), message=f"{type(error).__name__}: {error}")
        raise


# ---------------------------------------------------------------------------------------------------------------------
# Generation and grading


class Plan(NamedTuple):
    """What every participant is asked, in the same way: `batches` holds positions in `tasks` and `prompts`."""

    tasks: Sequence[Task]
    prompts: Sequence[str]
    batches: Sequence[Sequence[int]]
    batch_size: int
    max_new_tokens: int


def make_plan(config: EvalConfig, tasks: Sequence[Task], policy: "Policy") -> Plan:
    """Word the prompts as the base model wants them, and divide them into batches of like length.

    Raises:
        RlvrError: naming the task whose prompt leaves no room for an answer.
    """
    from rlvr import generation, models

    style = policy.prompt_style if config.prompt_style == "auto" else config.prompt_style
    prompts = [task.prompt_text(style) for task in tasks]
    lengths = [len(ids) for ids in generation.encode_prompts(policy.tokenizer, prompts)]
    longest = max(range(len(tasks)), key=lengths.__getitem__)
    room = policy.context_length - lengths[longest]
    if room < MIN_NEW_TOKENS:
        raise RlvrError(
            f"{tasks[longest].id}: its prompt has {lengths[longest]} tokens, which leaves no room for an answer "
            f"within {policy.context_length}: raise max_seq_length, lower n_show, or take another base model"
        )
    if room < config.max_new_tokens:
        print(
            f"max_new_tokens lowered from {config.max_new_tokens} to {room}: the longest prompt, {tasks[longest].id}, "
            f"takes {lengths[longest]} of {policy.context_length} tokens.",
            file=sys.stderr,
        )
    batch_size = config.batch_size or (64 if policy.num_parameters < models.TINY_PARAMETERS else 16)
    return Plan(
        tasks=tasks,
        prompts=prompts,
        batches=make_batches(lengths, max(1, batch_size // config.samples)),
        batch_size=batch_size,
        max_new_tokens=min(config.max_new_tokens, room),
    )


def make_batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Positions of prompts, longest first, `size` at a time: lengths [5, 9, 7] by two are [[1, 2], [0]]."""
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    return [order[start : start + size] for start in range(0, len(order), size)]


def answer_batches(
    config: EvalConfig, env: Environment, policy: "Policy", plan: Plan, name: str, known: dict[Attempt, Grade]
) -> Iterator[tuple[list[Completion], float]]:
    """Generate and grade one participant's answers; yield each batch of them with the seconds of its generation.

    The adapter must be in place. What a batch yields depends on the plan and the seed, on nothing that ran before.
    """
    from rlvr import generation

    for number, batch in enumerate(plan.batches):
        began = time.monotonic()
        answers = generation.generate(
            policy.model,
            policy.tokenizer,
            [plan.prompts[position] for position in batch],
            max_new_tokens=plan.max_new_tokens,
            samples=config.samples,
            temperature=config.temperature if config.samples > 1 else None,
            batch_size=plan.batch_size,
            seed=random.Random(f"{config.seed} batch {number}").getrandbits(31),
        )
        seconds = time.monotonic() - began
        flat = [
            (position, sample, answer)
            for position, samples in zip(batch, answers, strict=True)
            for sample, answer in enumerate(samples)
        ]
        attempts = [(plan.tasks[position], answer.text, answer.truncated) for position, _, answer in flat]
        grades = grade_once(env, attempts, known)
        now = time.time()
        completions = [
            Completion(
                **asdict(grade),
                step=0,
                group=position,
                sample=sample,
                prompt=plan.prompts[position],
                completion=answer.text,
                tokens=answer.tokens,
                truncated=answer.truncated,
                participant=name,
                time=now,
            )
            for (position, sample, answer), grade in zip(flat, grades, strict=True)
        ]
        yield completions, seconds


def grade_once(
    env: Environment, attempts: Sequence[tuple[Task, str, bool]], known: dict[Attempt, Grade]
) -> list[Grade]:
    """One grade an attempt; the same text for the same task is run once, for all participants.

    So two participants that write the same program can never differ by a clock that was read twice. A failure on our
    side is not remembered.
    """
    keys = [(task.id, text, truncated) for task, text, truncated in attempts]
    new = {key: task for key, (task, _, _) in zip(keys, attempts, strict=True) if key not in known}
    grades = env.grade(list(new.values()), [text for _, text, _ in new], [truncated for _, _, truncated in new])
    graded = dict(zip(new, grades, strict=True))
    known.update({key: grade for key, grade in graded.items() if grade.outcome != "infra"})
    return [graded[key] if key in graded else known[key] for key in keys]


# ---------------------------------------------------------------------------------------------------------------------
# The report


def make_title(config: EvalConfig, plan: Plan, noun: str, isolation: str) -> str:
    how = "greedy" if config.samples == 1 else f"{config.samples} samples at temperature {config.temperature:g}"
    return (
        f"HELD-OUT COMPARISON ({len(plan.tasks)} unseen {noun}, {how}, up to {plan.max_new_tokens} new tokens, "
        f"base model {config.base_model}, isolation {isolation})"
    )


def print_report(evaluation: Evaluation, names: dict[str, str], console: Console) -> None:
    """The title, a column a participant, the differences, a sentence for each, and which tasks made them."""
    people = evaluation.participants
    console.print(f"\n{evaluation.title}", style="bold", highlight=False, soft_wrap=True)
    table = Table("", *[person.name for person in people], highlight=False)
    for label, cell in report_rows(evaluation):
        table.add_row(label, *map(cell, people))
    console.print(table)
    for person in people:
        if person.infra:
            masked = sum(not score.scored for score in person.scores.values())
            console.print(
                f"WARNING: {person.infra} completions of {person.name} could not be graded (a failure on our side, "
                f"not the model's) and are left out of every share; {masked} tasks have none left.",
                style="bold red",
            )
    if not evaluation.differences:
        return
    table = Table("difference", "metric", "points [95 %]", "won", "lost", "tied", "exact p", highlight=False)
    for each in evaluation.differences:
        interval = each.difference
        table.add_row(
            f"{each.second} - {each.first}",
            each.metric,
            f"{points(interval.estimate)} [{points(interval.low)}, {points(interval.high)}]".replace("[", r"\["),
            *(str(count) for count in (len(each.won), len(each.lost), each.tied)),
            f"{each.p_value:.2g}",
        )
    console.print(table)
    for difference in evaluation.differences:
        if difference.metric == "solved":
            for verb, tasks in (("wins", difference.won), ("loses", difference.lost)):
                print_tasks(f"{difference.second} {verb}", tasks, names, console)
    for sentence in evaluation.conclusions:
        console.print(sentence, style="bold", highlight=False, markup=False, soft_wrap=True)


def report_rows(evaluation: Evaluation) -> list[tuple[str, Callable[[Participant], str]]]:
    """Label and cell of every row of the first table."""
    completions = evaluation.num_tasks * evaluation.samples

    def solved_count(person: Participant) -> str:
        solved, scored = person.outcomes.get("solved", 0), completions - person.infra
        return f"{solved} of {scored}: {percent(person.solved)}"

    if evaluation.samples == 1:
        solved_rows = [("fully_solved", solved_count)]
    else:
        solved_rows = [
            (f"pass@{k}", lambda person, k=k: percent(person.pass_at[k])) for k in evaluation.participants[0].pass_at
        ]
    return [
        ("mean_holdout_match", lambda person: percent(person.mean_holdout_match)),
        *solved_rows,
        ("produced_valid_fn", lambda person: f"{100 * person.produced_valid_fn:.1f} %"),
        ("lookups", lambda person: str(person.lookups)),
        ("truncated", lambda person: str(person.truncated)),
        ("timeouts", lambda person: str(person.timeouts)),
        ("infra (masked)", lambda person: str(person.infra)),
        ("tokens", lambda person: f"{person.tokens:,} ({person.tokens / completions:.0f} each)"),
        ("seconds", lambda person: f"{person.seconds:,.1f}"),
    ]


def percent(interval: Interval) -> str:
    return rf"{100 * interval.estimate:.1f} % \[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def print_tasks(what: str, tasks: Sequence[str], names: dict[str, str], console: Console) -> None:
    """At most ten of them, with their names; the rest is counted."""
    if not tasks:
        return
    more = f", {len(tasks) - MAX_LISTED} more in eval.json" if len(tasks) > MAX_LISTED else ""
    console.print(f"{what} {len(tasks)}{more}:", highlight=False)
    for task in tasks[:MAX_LISTED]:
        console.print(f"  {task}  {names[task]}", highlight=False, markup=False, no_wrap=True, overflow="ellipsis")


@contextlib.contextmanager
def progress_bar(names: Sequence[str], total: int) -> Iterator[Callable[[str, int], None]]:
    """Yield a function that is told of `count` more completions of a participant; bars on a terminal, else lines."""
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
            bars = {name: progress.add_task(name, total=total, start=False) for name in names}

            def advance(name: str, count: int) -> None:
                progress.start_task(bars[name])
                progress.advance(bars[name], count)

            yield advance
        return
    done: Counter[str] = Counter()

    def report(name: str, count: int) -> None:
        before = done[name]
        done[name] += count
        if 10 * before // total < 10 * done[name] // total:
            print(f"{name}: {done[name]} of {total} completions", file=sys.stderr, flush=True)

    yield report


# ---------------------------------------------------------------------------------------------------------------------
# The evaluation


def evaluate(args: argparse.Namespace) -> Evaluation:
    config, origins = config_from_flags(args, EvalConfig)
    contenders = find_contenders(args.adapters, args.model)
    adapters = {contender.name: contender.adapter for contender in contenders if contender.adapter}
    for adapter in adapters.values():
        check_adapter(adapter, config.base_model, None, None)
    env = environment.load(config.environment)
    env.configure(config)
    tasks = env.build_tasks(config, split="eval", limit=config.num_tasks)
    noun = "sequences" if config.environment == "oeis" else "tasks"
    if len(tasks) < config.num_tasks:
        print(f"Only {len(tasks)} of {config.num_tasks} tasks: the held-out split has no more.", file=sys.stderr)

    # Heavy imports from here on.
    from rlvr import models

    policy = models.load_policy(config.base_model, max_seq_length=config.max_seq_length, threads=config.threads)
    plan = make_plan(config, tasks, policy)
    # peft's own names are parts of module names, where a participant's name could do harm.
    slots = {name: f"adapter{number}" for number, name in enumerate(adapters)}
    for name, adapter in adapters.items():
        policy = policy._replace(model=models.attach_adapter(policy.model, adapter, name=slots[name]))

    about = {**provenance(), **env.provenance(config)}
    total = len(tasks) * config.samples * len(contenders)
    checkpoints = {each.name: weights_sha256(each.adapter) or config.base_model for each in contenders}
    with writing(args.out):
        folder = make_folder(args.out, contenders)
        files = RunFiles(folder)
        more = {"num_tasks": len(tasks), "participants": checkpoints}
        write_snapshot(files.config, config, origins, {**about, **more})
        status = StatusFile(files.status, new_status("eval", "running", started=time.time(), max_steps=total))
    file = files.completions

    participants: list[Participant] = []
    known: dict[Attempt, Grade] = {}
    isolation: set[str] = set()
    names = [contender.name for contender in contenders]
    with saying_what_is_left(file, status), progress_bar(names, len(tasks) * config.samples) as advance:
        for contender in contenders:
            completions: list[Completion] = []
            seconds = 0.0
            with models.active_adapter(policy.model, slots.get(contender.name)):
                for batch, batch_s in answer_batches(config, env, policy, plan, contender.name, known):
                    with writing(file):
                        records.append(file, *batch)
                        status.write(step=status.status.step + len(batch))
                    completions += batch
                    seconds += batch_s
                    advance(contender.name, len(batch))
            isolation |= {line.isolation for line in completions if line.isolation}
            participants.append(
                summarize(
                    completions,
                    tasks=[task.id for task in tasks],
                    samples=config.samples,
                    name=contender.name,
                    adapter=str(contender.adapter or ""),
                    sha256=weights_sha256(contender.adapter),
                    seconds=seconds,
                )
            )

    metrics = ["solved", "mean_holdout_match"]
    if config.samples > 1:
        metrics.append(f"pass@{config.samples}")
    differences = [compare(participants[0], other, metric) for other in participants[1:] for metric in metrics]
    isolation_text = " and ".join(sorted(isolation)) or "unknown"
    evaluation = Evaluation(
        title=make_title(config, plan, noun, isolation_text),
        environment=config.environment,
        base_model=config.base_model,
        num_tasks=len(tasks),
        samples=config.samples,
        temperature=config.temperature if config.samples > 1 else 0.0,
        max_new_tokens=plan.max_new_tokens,
        seed=config.seed,
        isolation=isolation_text,
        participants=participants,
        differences=differences,
        conclusions=[conclude(each, noun) for each in differences if each.metric == "solved"],
        tasks=[task.id for task in tasks],
        provenance=about,
    )
    with writing(folder):
        records.write(files.evaluation, evaluation)
        status.write(state="done", finished=time.time(), step=total, exit_code=0)
    print_report(evaluation, {task.id: task.columns().get("name", "") for task in tasks}, report_console())
    print(f"Saved {folder}/  (eval.json, completions.jsonl, config.toml)")
    return evaluation


def report_console() -> Console:
    """As wide as the terminal; a pipe gets lines that are not folded at 80."""
    console = Console()
    return console if console.is_terminal else Console(width=160)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    args = parse_arguments()
    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext():
        evaluation = evaluate(args)
    if args.json:
        print(msgspec.json.format(records.encode(evaluation), indent=2).decode())
    return 0


if __name__ == "__main__":
    sys.exit(run_program(main))
