"""Commands that make and start something: init, train, eval, auto, resume, kill, queue."""

import argparse
import contextlib
import json
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rlvr import config, control, cycles, environment, folders, layer_files, layers, presets, records, runs
from rlvr.budget import preview
from rlvr.cli import RUN_HELP, Command
from rlvr.config import EvalConfig, RunConfig, TrainConfig
from rlvr.cycles import Run
from rlvr.errors import RlvrError
from rlvr.machine import Gpu
from rlvr.records import Step
from rlvr.status import LIVING

if TYPE_CHECKING:
    from rlvr.colab.supervisor import Options

COMMAND_LINE = "command line"
DEFAULT_GPU = "A100"

# ---------------------------------------------------------------------------------------------------------------------
# init


def init_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset",
        default="gemma4-e2b",
        metavar="NAME",
        help=f"keys to begin with: {', '.join(config.PRESETS)}, or one of your own; default gemma4-e2b",
    )
    parser.add_argument(
        "--environment", default="oeis", metavar="NAME", help=f"one of {', '.join(environment.MODULES)}; default oeis"
    )


def init(args: argparse.Namespace) -> int:
    if not args.model:
        raise RlvrError("init needs a name for the model: rlvrctl.py init --model NAME")
    cycles.check_model_name(args.model)
    environment.check_name(args.environment)
    values = {**presets.preset_values(args.preset, cycles.PRESETS_DIR), "environment": args.environment}
    folder = cycles.TRAINING_DIR / args.model
    made = layers.create(folder, values)
    cycles.remember_model(args.model)
    print(f"Made {folder}/ with {', '.join(made)}: preset {args.preset}.")
    for name in layer_files.SCOPE_FILES.values():
        if name not in made:
            say(f"{folder / name} was there and stays as it is")
    say_next("rlvrctl.py config show --origin", "rlvrctl.py train --dry-run", "rlvrctl.py train")
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# train


def train_arguments(parser: argparse.ArgumentParser) -> None:
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--from-base", action="store_true", help="cold start: from the base model, no parent")
    start.add_argument(
        "--parent", metavar="NNN|PATH", help="warm start from this adapter; default: the latest one of the model"
    )
    add_overrides(parser, TrainConfig)
    parser.add_argument("--save", action="store_true", help="keep the overrides of this command in training.toml")
    add_start_options(parser)
    parser.add_argument("--dry-run", action="store_true", help="print config, batch, memory and time; start nothing")
    colab = parser.add_argument_group("on a rented Colab VM")
    colab.add_argument(
        "--on-colab", action="store_true", help="rent a VM for this cycle, mirror it here, give it back"
    )
    colab.add_argument("--gpu", metavar="GPU", help=f"T4, L4, G4, A100 or H100; default {DEFAULT_GPU}")
    colab.add_argument("--auth", choices=("oauth2", "adc"), help="how the Colab client logs in")
    colab.add_argument(
        "--max-restarts", type=int, metavar="N", help="new VMs for ones that were taken back; default 3"
    )


def train(args: argparse.Namespace, session: str = "") -> int:
    """Start the next cycle; `session` is a Colab VM that is up and stays up."""
    model = cycles.choose_model(args.model)
    overrides = read_overrides(args, TrainConfig)
    rented = colab_options(args, session)
    parent = "" if args.from_base else args.parent or runs.LATEST
    if not args.dry_run:
        control.start_waiting()
    plan = runs.plan_cycle(model, overrides, parent)
    if args.dry_run:
        for text in plan.notes:
            say(text)
        return show_plan(model, plan, rented)
    busy = [run for run in cycles.cycle_runs(model) if control.status_of(run).state in LIVING]
    if rented:
        say_cost(model, plan.config, rented)
    run = runs.begin_cycle(
        model,
        overrides,
        parent=parent,
        after=args.after or "",
        queue=not args.no_queue and (rented is None or bool(session)),  # a VM of its own is not waited for
        colab=rented._asdict() if rented else None,
        notice=say,
    )
    if args.save:
        keep(model, overrides, "train")
    cycles.remember_model(model)
    if parent == runs.LATEST and busy:
        how = "warm start from the adapter that is the latest when it begins"
    else:
        how = f"warm start from {plan.warm_from}" if plan.warm_from else "cold start"
    return announce(run, how, args.foreground)


def say(text: str) -> None:
    """What one should know of what was started."""
    print(f"note: {text}", file=sys.stderr)


def colab_options(args: argparse.Namespace, session: str) -> "Options | None":
    """What was asked for of a rented VM; None for a cycle on this machine.

    Raises:
        RlvrError: for what Colab does not have, and for an option that would do nothing here.
    """
    if not args.on_colab:
        for flag, value in (("--gpu", args.gpu), ("--auth", args.auth), ("--max-restarts", args.max_restarts)):
            if value is not None:
                raise RlvrError(f"{flag} {value} is for a rented VM: give --on-colab too, or leave it out")
        return None

    from rlvr.colab import client
    from rlvr.colab.supervisor import Options

    options = Options(client.check_gpu(args.gpu or DEFAULT_GPU), args.auth or "", session=session)
    if args.max_restarts is None:
        return options
    if args.max_restarts < 0:
        raise RlvrError(f"--max-restarts {args.max_restarts}: give 0 or more")
    return options._replace(max_restarts=args.max_restarts)


def say_cost(model: str, plan_config: TrainConfig, rented: "Options") -> None:
    """Check the account and the config for a rented VM, and print what it will cost."""
    from rlvr.colab import bundle, costs

    usage = costs.check_account(rented.gpu, rented.auth)
    bundle.check_config(plan_config)
    steps = costs.steps_on(model, rented.gpu)
    print(f"Colab: {usage.balance:g} compute units. {costs.cost_text(rented.gpu, usage)}")
    print(f"This cycle: {costs.cycle_cost(rented.gpu, plan_config, steps, usage.balance)}.", flush=True)


def show_plan(model: str, plan: runs.Plan, rented: "Options | None" = None) -> int:
    """Print what a cycle would run with, as TOML with a comment a line, and what it would cost."""
    print(f"# The next cycle of {model}: " + (f"warm start from {plan.warm_from}" if plan.warm_from else "cold start"))
    for name, value in vars(plan.config).items():
        print(f"{f'{name} = {layer_files.toml_text(value)}':<60} # {plan.origins[name]}")
    print()
    if rented:
        rows = preview_on_colab(model, plan.config, rented.gpu)
    else:
        earlier: list[Step] = []
        for run in cycles.cycle_runs(model)[-3:]:
            if run.files.metrics.exists():
                earlier += records.read_lines(run.files.metrics, Step)
        rows = preview(plan.config, earlier)
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"# {name:>{width}}  {value}")
    return 0


def preview_on_colab(model: str, plan_config: TrainConfig, gpu: str) -> list[tuple[str, str]]:
    """The rows of a dry run for a rented GPU; Colab is not asked for anything."""
    from rlvr.colab import bundle, client, costs

    bundle.check_config(plan_config)
    steps = costs.steps_on(model, gpu)
    memory_mib = client.GPUS[gpu]
    rows = preview(plan_config, steps, Gpu(f"{client.one(gpu)} of Colab", memory_mib, memory_mib, ""))
    return [
        ("on", f"{client.one(gpu)} of Colab"),
        *rows,
        ("cost", costs.cycle_cost(gpu, plan_config, steps)),
    ]


def add_overrides(parser: argparse.ArgumentParser, config_class: type[RunConfig]) -> None:
    parser.add_argument(
        "-o",
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a key for this run; may be given several times",
    )
    config.add_key_flags(parser, config_class)


def read_overrides(args: argparse.Namespace, config_class: type[RunConfig]) -> dict[str, str]:
    """The keys that this command sets, as text; a flag wins over -o, and the last one over those before."""
    return dict(split_pair(text) for text in args.override) | config.given_keys(args, config_class)


def split_pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise RlvrError(f"{COMMAND_LINE}: {text!r} is not KEY=VALUE, such as -o learning_rate=1e-4")
    return name.strip().replace("-", "_"), value.strip()


def keep(model: str, overrides: Mapping[str, str], target: layers.Target) -> None:
    folder = cycles.model_dir(model)
    for change in layers.set_keys(folder, "permanent", overrides, target, runs.frozen_keys(model)):
        print(f"{change.file}: {change.key} = {change.new}")


def add_start_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--foreground", action="store_true", help="stay, show the log, end with the run's exit code; Ctrl-C stops it"
    )
    parser.add_argument("--after", metavar="RUN", help="begin when this run is done")
    parser.add_argument("--no-queue", action="store_true", help="begin at once, even beside a running one")


def announce(run: Run, how: str, foreground: bool) -> int:
    """Say what was started and what one may do now; in the foreground stay until it has ended."""
    signals = catch_signals() if foreground else []
    waiting = None
    with contextlib.suppress(RlvrError):  # what it comes after has just ended without success: its status says so
        waiting = control.blocker(run, records.read(run.files.launch, records.Launch))
    words = {"train": "Cycle", "eval": "Evaluation", "auto": "Auto run"}
    queued = ""
    if waiting:
        queued = f", waiting for {waiting.name if waiting.model == run.model else waiting}"
    print(f"{words[run.kind]} {run.name} of {run.model}: {how}{queued}.")
    if foreground:
        sys.stdout.flush()
        return stay(run, signals)
    say_next(f"rlvrctl.py watch {run.name}", f"rlvrctl.py log {run.name} -f", f"rlvrctl.py kill {run.name}")
    return 0


def say_next(*commands: str) -> None:
    print("Next: " + "   ".join(commands))


def catch_signals() -> list[int]:
    """The Ctrl-C and SIGTERM that come from now on, which end nothing by themselves."""
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: signals.append(number))
    return signals


def stay(run: Run, signals: list[int]) -> int:
    """Show the log of a run until it has ended; Ctrl-C and SIGTERM stop it, a second one by force."""
    log = records.TextTail(run.files.log)
    passed_on = 0
    while True:
        ended = control.status_of(run).state not in LIVING
        for line in log.read():
            print(line, flush=True)
        if ended:
            code = control.exit_code(control.status_of(run))
            return 128 + signals[0] if signals and code else code
        for _ in signals[passed_on:]:
            passed_on += 1
            with contextlib.suppress(RlvrError):  # it has just ended
                print(f"{run}: {control.kill(run, force=passed_on > 1)}", file=sys.stderr)
        control.pause()


# ---------------------------------------------------------------------------------------------------------------------
# eval, auto


def eval_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--adapters",
        nargs="+",
        metavar="ADAPTER",
        help="whom to compare: base, cycle numbers, folders; default base latest",
    )
    parser.add_argument("--adapter-a", metavar="ADAPTER", help="the first of two; default base")
    parser.add_argument("--adapter-b", metavar="ADAPTER", help="the second of two; default the latest")
    add_eval_keys(parser)
    parser.add_argument("--save", action="store_true", help="keep the overrides of this command in eval.toml")
    add_start_options(parser)


def add_eval_keys(parser: argparse.ArgumentParser) -> None:
    for flag, name in (("-n", "num_tasks"), ("-k", "samples"), ("-t", "max_new_tokens")):
        parser.add_argument(flag, dest=f"key:{name}", metavar="VALUE", help=f"short for --{name.replace('_', '-')}")
    add_overrides(parser, EvalConfig)


def evaluate(args: argparse.Namespace) -> int:
    model = cycles.choose_model(args.model)
    overrides = read_overrides(args, EvalConfig)
    participants = args.adapters
    if args.adapter_a or args.adapter_b:
        if participants:
            raise RlvrError("give either --adapters or --adapter-a and --adapter-b")
        participants = [args.adapter_a or "base", args.adapter_b or runs.LATEST]
    control.start_waiting()
    run = runs.begin_eval(model, participants, overrides, after=args.after or "", queue=not args.no_queue, notice=say)
    if args.save:
        keep(model, overrides, "eval")
    cycles.remember_model(model)
    launch = records.read(run.files.launch, records.Launch)
    names = [
        name if name == cycles.BASE else folders.participant_name(Path(name), model) for name in launch.participants
    ]
    return announce(run, " against ".join(names), args.foreground)


def auto_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rounds", type=int, default=5, metavar="N", help="rounds of a cycle and an evaluation; default 5"
    )
    parser.add_argument("--until", default="", metavar="GOAL", help="stop at a goal, such as 'solved>=0.5'")
    parser.add_argument(
        "--patience", type=int, default=3, metavar="N", help="stop after N rounds without improvement; default 3"
    )
    parser.add_argument("-n", dest="num_tasks", metavar="VALUE", help="held-out tasks of each evaluation")
    parser.add_argument("-k", dest="samples", metavar="VALUE", help="completions a task of each evaluation")
    parser.add_argument(
        "-o", "--override", action="append", default=[], metavar="KEY=VALUE", help="a key of every cycle"
    )
    parser.add_argument("--foreground", action="store_true", help="stay and show the log; Ctrl-C stops it")


def auto(args: argparse.Namespace) -> int:
    model = cycles.choose_model(args.model)
    if args.rounds < 1 or args.patience < 1:
        raise RlvrError("--rounds and --patience must be at least 1")
    given = {"num_tasks": args.num_tasks, "samples": args.samples}
    control.start_waiting()
    run = runs.begin_auto(
        model,
        rounds=args.rounds,
        until=args.until,
        patience=args.patience,
        train_overrides=dict(split_pair(text) for text in args.override),
        eval_overrides={name: text for name, text in given.items() if text is not None},
    )
    cycles.remember_model(model)
    goal = f", until {args.until}" if args.until else ""
    return announce(run, f"up to {args.rounds} rounds{goal}", args.foreground)


# ---------------------------------------------------------------------------------------------------------------------
# resume, kill, queue


def run_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)


def resume_arguments(parser: argparse.ArgumentParser) -> None:
    run_argument(parser)
    parser.add_argument("--foreground", action="store_true", help="stay and show the log; Ctrl-C stops it")


def resume(args: argparse.Namespace) -> int:
    run = cycles.find_run(args.run, args.model)
    return announce(run, f"goes on {control.resume(run)}", args.foreground)


def kill_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--force", action="store_true", help="kill the whole process group at once, no checkpoint")


def kill(args: argparse.Namespace) -> int:
    """A misspelt name ends nothing; a run that cannot be ended leaves the others to be."""
    code = 0
    for run in dict.fromkeys([cycles.find_run(name, args.model) for name in args.runs]):
        try:
            print(f"{run}: {control.kill(run, args.force)}", flush=True)
        except RlvrError as error:
            print(f"error: {error}", file=sys.stderr)
            code = 2
    return code


def queue_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="a list of objects: run, state, waiting_for, queued")


def queue(args: argparse.Namespace) -> int:
    restarted = {str(run) for run in control.start_waiting()}
    rows = control.waiting_runs()
    if args.json:
        names = ("run", "state", "waiting_for", "queued")
        print(
            json.dumps(
                [
                    dict(zip(names, (str(run), status.state, status.waiting_for, launch.ticket), strict=True))
                    for run, status, launch in rows
                ]
            )
        )
        return 0
    if not rows:
        print("Nothing waits.")
    for run, status, _ in rows:
        again = "  (its supervisor was gone: started again)" if str(run) in restarted else ""
        if control.is_orphan(run):
            again = "  (nobody looks after it: its folder cannot be written)"
        print(f"{run}  waiting for {status.waiting_for or 'its turn'}{again}")
    return 0


COMMANDS = {
    "init": Command(
        init_arguments,
        init,
        ("rlvrctl.py init --model gemma", "rlvrctl.py init --model small --preset tiny"),
        "Make training/MODEL/ with model.toml, training.toml and eval.toml; each key stands there with its help.",
    ),
    "train": Command(
        train_arguments,
        train,
        (
            "rlvrctl.py train",
            "rlvrctl.py train --from-base --learning-rate 1e-4",
            "rlvrctl.py train -o max_steps=100 --save",
            "rlvrctl.py train --dry-run",
            "rlvrctl.py train --after live",
            "rlvrctl.py train --on-colab --gpu L4",
        ),
        "Start the next cycle in the background. One run at a time: others wait in a queue, in order.",
    ),
    "eval": Command(
        eval_arguments,
        evaluate,
        (
            "rlvrctl.py eval",
            "rlvrctl.py eval --adapters base 001 003 -n 200 -k 8",
            "rlvrctl.py eval --adapter-a 001 --adapter-b 002",
            "rlvrctl.py eval --after live",
        ),
        "Compare checkpoints on held-out tasks in the background; the result lies under the highest of them.",
    ),
    "auto": Command(
        auto_arguments,
        auto,
        ("rlvrctl.py auto --rounds 5 --until 'solved>=0.5'", "rlvrctl.py auto --rounds 20 --patience 4 -n 200 -k 4"),
        "Train a cycle, evaluate it against base, again: one detached run with a cycle and an evaluation a round.",
    ),
    "resume": Command(resume_arguments, resume, ("rlvrctl.py resume 003", "rlvrctl.py resume auto/001")),
    "kill": Command(kill_arguments, kill, ("rlvrctl.py kill live", "rlvrctl.py kill 004 --force")),
    "queue": Command(queue_arguments, queue, ("rlvrctl.py queue", "rlvrctl.py queue --json")),
}
