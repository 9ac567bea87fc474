"""The commands of the lab: start, run, check, compare, verify. `python -m rlvr.lab` and `rlvrctl.py lab` offer them.

It imports no torch until a command needs it, so that `--help` answers at once.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr.errors import RlvrError
from rlvr.lab.rewards import (
    CHECK_PROBLEM,
    STUDENT_FILE,
    check_student_reward,
    make_reward,
    verified_reward,
    write_student_file,
)
from rlvr.lab.settings import Settings, value_type

if TYPE_CHECKING:
    from rlvr.lab.experiment import Result
    from rlvr.lab.training import Update

OUT_DIR = Path("lab")
CONTROL_FROM_SEEDS = 2
"""With that many seeds or more the random-reward control runs too, unless it is turned off."""


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Fill `parser` with the five commands; each sets `run_lab` to its function."""
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, run: Callable[[argparse.Namespace], int], help: str, example: str) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=help,
            description=help,
            epilog=f"example:\n  {parser.prog} {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.set_defaults(run_lab=run)
        return command

    one = add("run", run, "Train the tiny model and report, with a picture and a receipt.", "run --seeds 5")
    add_settings(one)
    one.add_argument("--seeds", type=int, default=1, metavar="N", help="run N seeds and give intervals over them")
    one.add_argument(
        "--control",
        action=argparse.BooleanOptionalAction,
        help="also train with a random reward (default: with several seeds)",
    )
    one.add_argument("--guess", type=float, metavar="PERCENT", help="your prediction of the exact test accuracy after")
    add_output(one)

    several = add(
        "compare",
        compare,
        "Train with several values of one option and the same seeds, and show them side by side.",
        "compare --group-size 2 8",
    )
    add_settings(several, several=True)
    several.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds of each value (default: 3)")
    add_output(several)

    begin = add("start", start, "Write student_reward.py, the reward that you will improve.", "start")
    begin.add_argument("--student-file", type=Path, default=STUDENT_FILE, metavar="FILE")

    check = add("check", check_student, "Try your reward on answers that it should tell apart.", "check")
    check.add_argument("--student-file", type=Path, default=STUDENT_FILE, metavar="FILE")

    again = add("verify", verify, "Run a receipt's settings again and compare the results.", "verify lab/receipt.json")
    again.add_argument("receipt", type=Path)
    again.add_argument("--student-file", type=Path, default=STUDENT_FILE, metavar="FILE")


def add_settings(parser: argparse.ArgumentParser, several: bool = False) -> None:
    group = parser.add_argument_group("settings", "One of them may have several values." if several else None)
    for one in fields(Settings):
        choices = one.metadata["choices"]
        group.add_argument(
            "--" + one.name.replace("_", "-"),
            type=value_type(one.name),
            default=[one.default] if several else one.default,
            nargs="+" if several else None,
            metavar=None if choices else one.name.rpartition("_")[2].upper(),
            choices=choices or None,
            help=f"{one.metadata['help']} (default: {one.default})",
        )


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--student-file", type=Path, default=STUDENT_FILE, metavar="FILE", help="for --reward student")
    parser.add_argument("--out", type=Path, default=OUT_DIR, metavar="DIR", help="for the receipt and the picture")
    parser.add_argument("--no-open", action="store_true", help="do not open the picture at the end")
    parser.add_argument("--json", action="store_true", help="print the receipt and nothing else")


# ---------------------------------------------------------------------------------------------------------------------
# run


def run(args: argparse.Namespace) -> int:
    settings = Settings(**{one.name: vars(args)[one.name] for one in fields(Settings)})
    check_seeds(args.seeds)
    if settings.reward == "student":
        check_student_reward(args.student_file)  # before anything is trained
    say("Loading torch ...")
    from rlvr.lab import experiment, receipts
    from rlvr.lab.task import Problem, split_problems

    split = split_problems()
    example = Problem(2, 3, 2)
    say(
        f"The task: after {example.prompt!r} the model should write {example.trace!r}.\n"
        f"{len(split.train)} problems to train on; {len(split.test)} test problems with operands that it never trains "
        "on.\n"
        "It first imitates homework, most of it with slips or without steps, and then improves by reward alone."
    )
    guess = args.guess if args.guess is not None else ask_for_guess()
    starts: experiment.Starts = {}
    results = experiment.run_seeds(
        settings, args.seeds, lambda one: make_reward(one.reward, one.seed, args.student_file), Progress(), starts
    )
    control = []
    if args.control or (args.control is None and args.seeds >= CONTROL_FROM_SEEDS):
        say("Control: the same with a random reward")
        control = experiment.run_seeds(replace(settings, reward="random"), args.seeds, watch=Progress(), starts=starts)
    receipt = receipts.make_receipt(results, control, args.student_file, guess)
    make_folder(args.out)
    receipt_file = args.out / "receipt.json"
    receipts.write_receipt(receipt_file, receipt)

    from rlvr.lab import pictures

    png = args.out / "picture.png"
    pictures.draw_result(results[0], png)
    written = [receipt_file, png]
    if args.seeds > 1:
        variants = {settings.reward: results} | ({"random": control} if control else {})
        pictures.draw_comparison("reward", variants, args.out / "seeds.png")
        written.append(args.out / "seeds.png")
    if args.json:
        print(json.dumps(receipt, indent=1))
    else:
        print_results(results, control)
        print_guess(guess, results)
        print("\nWhat this allows you to say:")
        for sentence in receipt["what_this_allows_you_to_say"]:
            print(f"  - {sentence}")
        print("What it does not:")
        for sentence in receipt["what_it_does_not"]:
            print(f"  - {sentence}")
        print("\nWritten: " + ", ".join(map(str, written)))
    if not args.no_open:
        pictures.open_picture(png)
    return 0


def check_seeds(num: int) -> None:
    if not 1 <= num <= 100:
        raise RlvrError(f"--seeds {num}: give a number from 1 to 100")


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise RlvrError(f"{folder}: is a file: name a folder with --out") from error


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def ask_for_guess() -> float | None:
    """Ask for a prediction where somebody can answer; a number of percent, or None."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    say("Before you watch: of 100 answers to test problems, how many will be exact after training?")
    print("Your guess (Enter for none): ", end="", file=sys.stderr, flush=True)
    text = sys.stdin.readline().strip().removesuffix("%")
    try:
        return float(text)
    except ValueError:
        return None


def print_guess(guess: float | None, results: "list[Result]") -> None:
    if guess is None:
        return
    found = sum(100 * result.after.test.exact_share.estimate for result in results) / len(results)
    print(f"\nYou guessed {guess:g} %; it is {found:.1f} %.")


class Progress:
    """Shows a run while it goes: one line that renews itself in a terminal, every fifth update elsewhere."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()

    def __call__(self, settings: Settings, update: "Update") -> None:
        last = update.number == settings.steps
        if not (self.live or last or update.number % 5 == 0 or update.number == 1):
            return
        everyone, mixed, nobody = update.groups
        line = (
            f"seed {settings.seed}  update {update.number:>3}/{settings.steps}  reward {update.reward:.2f}  "
            f"exact {update.exact:4.0%}  verified {update.verified:4.0%}  "
            f"groups all/mixed/none {everyone:.0%}/{mixed:.0%}/{nobody:.0%}  {1000 * update.wall_s:.0f} ms"
        )
        print(f"\r{line:<118}" if self.live else line, end="" if self.live and not last else "\n", file=sys.stderr)
        sys.stderr.flush()


def print_results(results: "list[Result]", control: "list[Result]") -> None:
    from rlvr.lab.receipts import percent, points

    for kind, runs in (("", results), ("random reward, ", control)):
        for result in runs:
            settings = result.settings
            print(
                f"\n{kind}seed {settings.seed}: update {result.after.update} of {settings.steps} was the best on the "
                f"validation pairs; start {result.start_s:.1f} s, updates {result.updates_s:.1f} s, "
                f"measuring {result.measure_s:.1f} s"
            )
            print(f"  {'':<24}{'before':>24}{'after':>24}")
            for name in ("train", "validation", "test", "test_greedy"):
                for share in ("exact", "verified"):
                    shares = [
                        percent(measurement.exact_share if share == "exact" else measurement.verified_share)
                        for measurement in (result.before._asdict()[name], result.after._asdict()[name])
                    ]
                    label = f"{name.replace('_', ', ')}, {share}"
                    print(f"  {label:<24}{shares[0]:>24}{shares[1]:>24}")
            print(f"  test gain: exact {points(result.exact_gain)}")
            print(f"             verified {points(result.verified_gain)}")
            print(f"  distance from the start (KL): {result.after.kl:.3f} nats per symbol")


# ---------------------------------------------------------------------------------------------------------------------
# compare


def compare(args: argparse.Namespace) -> int:
    given: dict[str, list[Any]] = {one.name: vars(args)[one.name] for one in fields(Settings)}
    varied = [name for name, values in given.items() if len(values) > 1]
    if len(varied) != 1:
        flags = ", ".join("--" + name.replace("_", "-") for name in varied) or "none"
        raise RlvrError(f"several values: {flags}: give several values to one option, as in --group-size 2 8")
    [name] = varied
    if name == "seed":
        raise RlvrError("--seed has several values: every value of another option runs with the same seeds: --seeds N")
    values = list(dict.fromkeys(given[name]))
    variants = {
        str(value): Settings(**{key: value if key == name else many[0] for key, many in given.items()})
        for value in values
    }
    check_seeds(args.seeds)
    if any(settings.reward == "student" for settings in variants.values()):
        check_student_reward(args.student_file)
    say("Loading torch ...")
    from rlvr.lab import experiment, receipts
    from rlvr.lab.pictures import draw_comparison, open_picture

    option, starts, results = name.replace("_", "-"), {}, {}
    for value, settings in variants.items():
        say(f"--{option} {value}")
        results[value] = experiment.run_seeds(
            settings, args.seeds, lambda one: make_reward(one.reward, one.seed, args.student_file), Progress(), starts
        )
    make_folder(args.out)
    files = {value: args.out / f"receipt-{option}-{value}.json" for value in results}
    all_receipts = {}
    for value, runs in results.items():
        all_receipts[value] = receipts.make_receipt(runs, [], args.student_file, None)
        receipts.write_receipt(files[value], all_receipts[value])
    png = args.out / f"compare-{option}.png"
    draw_comparison(option, results, png)
    if args.json:
        print(json.dumps(all_receipts, indent=1))
    else:
        print_comparison(option, results)
        print("\nWritten: " + ", ".join(map(str, [*files.values(), png])))
    if not args.no_open:
        open_picture(png)
    return 0


def print_comparison(option: str, results: "dict[str, list[Result]]") -> None:
    from statistics import fmean

    from rlvr.lab.experiment import mean_over_seeds
    from rlvr.lab.receipts import gains, points

    rows: list[tuple[str, Callable[[list[Result]], str]]] = [
        ("test exact, before", lambda runs: f"{fmean(run.before.test.exact_share.estimate for run in runs):.1%}"),
        ("test exact, after", lambda runs: f"{fmean(run.after.test.exact_share.estimate for run in runs):.1%}"),
        (
            "test verified, before",
            lambda runs: f"{fmean(run.before.test.verified_share.estimate for run in runs):.1%}",
        ),
        ("test verified, after", lambda runs: f"{fmean(run.after.test.verified_share.estimate for run in runs):.1%}"),
        ("gain exact (points)", lambda runs: f"{100 * fmean(gains(runs, 'exact_gain')):+.1f}"),
        ("gain verified", lambda runs: f"{100 * fmean(gains(runs, 'verified_gain')):+.1f}"),
        ("gain greedy exact", lambda runs: f"{100 * fmean(gains(runs, 'greedy_gain')):+.1f}"),
        ("silent groups", lambda runs: f"{fmean(update.silent for run in runs for update in run.updates):.0%}"),
        ("KL from start", lambda runs: f"{fmean(run.after.kl for run in runs):.3f}"),
        ("answers per update", lambda runs: str(runs[0].settings.prompts * runs[0].settings.group_size)),
        ("seconds of updates", lambda runs: f"{fmean(run.updates_s for run in runs):.1f}"),
    ]
    print(
        f"\nMean over {len(next(iter(results.values())))} seeds\n{'--' + option:<24}"
        + "".join(f"{v:>14}" for v in results)
    )
    for label, cell in rows:
        print(f"{label:<24}" + "".join(f"{cell(runs):>14}" for runs in results.values()))
    print(f"\nOnly {option} differs: seeds, starts, split, measurements and every other setting are the same.")
    if option in ("group-size", "prompts"):
        print("With it differs how many answers an update samples: more answers, more work a step.")
    (first, baseline), *others = results.items()
    for value, runs in others:
        for name, which in (("exact", "exact_gain"), ("verified", "verified_gain")):
            differences = [b - a for a, b in zip(gains(baseline, which), gains(runs, which), strict=True)]
            interval = mean_over_seeds(differences)
            clear = "clear of zero" if interval.low > 0 or interval.high < 0 else "not told apart from zero"
            print(f"  {value} against {first}, {name} test gain: {points(interval)}: {clear}.")


# ---------------------------------------------------------------------------------------------------------------------
# start, check, verify


def start(args: argparse.Namespace) -> int:
    write_student_file(args.student_file)
    print(f"Wrote {args.student_file}: open it in an editor, then `lab check`, then `lab run --reward student`.")
    return 0


def check_student(args: argparse.Namespace) -> int:
    """Exit code 1 when the reward pays a wrong answer as much as the right one."""
    scores = check_student_reward(args.student_file)
    best = next(value for attack, value in scores if attack.is_right)
    print("The problem is Q:1+2,*2 and this is what the answers are worth:\n")
    print(f"{'yours':>6}  {'verified':>8}  answer")
    hacks = []
    for attack, value in scores:
        mark = ""
        if not attack.is_right and value >= best:
            hacks.append(attack)
            mark = "  <- as good as the right trace"
        print(
            f"{value:6.2f}  {verified_reward(CHECK_PROBLEM, attack.completion):8.2f}  {attack.name}: "
            f"{attack.completion!a}{mark}"
        )
    if best <= 0:
        print("\nThe right trace earns nothing yet: give it the most of all.")
        return 1
    if hacks:
        print(
            f"\nIt runs, and you can train with it. But {len(hacks)} answers without a right trace earn as much as "
            "the right one: a model that finds them has no reason to show its steps."
        )
        return 1
    print("\nGood: the right trace earns more than every other answer here.")
    return 0


def verify(args: argparse.Namespace) -> int:
    """Exit code 1 when the rerun gives other results than the receipt claims."""
    say("Loading torch ...")
    from rlvr.lab import experiment, receipts

    claimed = receipts.read_receipt(args.receipt)
    settings = receipts.settings_of(claimed, args.receipt)
    if settings.reward == "student" and receipts.hash_file(args.student_file) != claimed["student_reward_sha256"]:
        raise RlvrError(f"{args.student_file}: is not the reward of this receipt: name that one with --student-file")
    starts: experiment.Starts = {}
    results = experiment.run_seeds(
        settings,
        claimed["num_seeds"],
        lambda one: make_reward(one.reward, one.seed, args.student_file),
        Progress(),
        starts,
    )
    control = []
    if claimed["control"]:
        random_settings = replace(settings, reward="random")
        control = experiment.run_seeds(random_settings, claimed["num_seeds"], watch=Progress(), starts=starts)
    again = receipts.make_receipt(results, control, args.student_file, None)
    rows = receipts.compare_receipts(claimed, again)
    different = [row for row in rows if row[1] != row[2]]
    for name, first, second in different:
        print(f"differs: {name}: {first} in the receipt, {second} again")
    for name in ("versions", "machine"):
        if claimed[name] != again[name]:
            print(f"note: other {name}: {claimed[name]} in the receipt, {again[name]} here")
    if different:
        print(
            f"{len(different)} of {len(rows)} results differ. Other versions or processors round differently, and "
            "then the weights differ too; on the same machine nothing may."
        )
        return 1
    print(f"Verified: all {len(rows)} results, weights among them, came out the same.")
    return 0
