"""Commands about what a person wants to keep of a run, or not: label, note, rm."""

import argparse
import sys

from rlvr import cycles, notes, trash
from rlvr.cli import RUN_HELP, Command, terminal


def label_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("text", nargs="*", help="the label; without one the present label is printed, '' removes it")


def label(args: argparse.Namespace) -> int:
    run = cycles.find_run(args.run, args.model)
    if not args.text:
        print(terminal.one_line(cycles.read_label(run)))
        return 0
    notes.write_label(run, " ".join(args.text))
    return 0


def note_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("text", nargs="*", help="what to add; without it the notes are printed")


def note(args: argparse.Namespace) -> int:
    run = cycles.find_run(args.run, args.model)
    if not args.text:
        if run.files.notes.exists():
            print(run.files.notes.read_text(encoding="utf-8", errors="replace"), end="")
        return 0
    notes.add_note(run, " ".join(args.text))
    return 0


def rm_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--with-dependents", action="store_true", help="also what depends on it: later cycles, evals")


def rm(args: argparse.Namespace) -> int:
    """Move runs to the trash, what depends on them first."""
    named = [cycles.find_run(name, args.model) for name in args.runs]
    for run, place in trash.remove(named, args.with_dependents):
        print(f"{run}: moved to {place}")
    print("Nothing is deleted: the folders lie in the trash until you empty it.", file=sys.stderr)
    return 0


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
