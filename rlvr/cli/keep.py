"""Commands about what a person wants to keep of a run, or not: label, note, rm."""

import argparse
import sys
import time

from rlvr import cycles, supervisor
from rlvr.cli import RUN_HELP, Command
from rlvr.errors import RlvrError
from rlvr.status import LIVING

MAX_LABEL = 60


def label_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("text", nargs="*", help="the label; without one the present label is printed, '' removes it")


def label(args: argparse.Namespace) -> int:
    run = cycles.find_run(args.run, args.model)
    if not args.text:
        print(cycles.read_label(run))
        return 0
    text = " ".join(" ".join(args.text).split())
    if len(text) > MAX_LABEL:
        raise RlvrError(f"a label has at most {MAX_LABEL} characters, this one {len(text)}: write a note instead")
    if text:
        run.files.label.write_text(text + "\n", encoding="utf-8")
    else:
        run.files.label.unlink(missing_ok=True)
    return 0


def note_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("text", nargs="*", help="what to add; without it the notes are printed")


def note(args: argparse.Namespace) -> int:
    run = cycles.find_run(args.run, args.model)
    if not args.text:
        if run.files.notes.exists():
            print(run.files.notes.read_text(encoding="utf-8"), end="")
        return 0
    with run.files.notes.open("a", encoding="utf-8") as notes:
        notes.write(f"{time.strftime('%Y-%m-%d %H:%M')}  {' '.join(args.text)}\n")
    return 0


def rm_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--with-dependents", action="store_true", help="also what depends on it: later cycles, evals")


def rm(args: argparse.Namespace) -> int:
    """Move runs to the trash, what depends on them first."""
    named = [cycles.find_run(name, args.model) for name in args.runs]
    if len({run.training_dir for run in named}) > 1:
        raise RlvrError("these runs lie under several training/ folders: remove them one folder at a time")
    with cycles.locked(named[0].training_dir):
        chosen: list[cycles.Run] = []
        for run in named:
            needed_by = dependents(run)
            chosen += [one for one in [*needed_by, run] if one not in chosen]
            blocking = [one.name for one in needed_by if one not in named]
            if blocking and not args.with_dependents:
                names = ", ".join(blocking)
                raise RlvrError(f"{run} is needed by {names}: remove those first, or all with --with-dependents")
        for run in chosen:
            state = supervisor.status_of(run).state
            if state in LIVING:
                raise RlvrError(f"{run} is {state}: rlvrctl.py kill {run.name} first")
        for run in chosen:
            print(f"{run}: moved to {cycles.move_to_trash(run)}")
    print("Nothing is deleted: the folders lie in the trash until you empty it.", file=sys.stderr)
    return 0


def dependents(run: cycles.Run) -> list[cycles.Run]:
    """What depends on a run, what depends on that before it; each once."""
    found: list[cycles.Run] = []
    for child in cycles.children(run):
        for one in [*dependents(child), child]:
            if one not in found:
                found.append(one)
    return found


COMMANDS = {
    "label": Command(label_arguments, label, ("rlvrctl.py label 003 higher learning rate", "rlvrctl.py label 003 ''")),
    "note": Command(note_arguments, note, ("rlvrctl.py note 003 'collapsed after step 120'", "rlvrctl.py note 003")),
    "rm": Command(
        rm_arguments,
        rm,
        ("rlvrctl.py rm 003/evals/base", "rlvrctl.py rm 003 --with-dependents"),
        "Move runs to training/.trash/. A run that others depend on stays, unless those go too.",
    ),
}
