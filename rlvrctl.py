#!/usr/bin/env python3
"""Day-to-day work with models, cycles and evaluations: one command a task, each run a detached process.

    python rlvrctl.py init --model m --preset tiny      # make training/m/
    python rlvrctl.py train                             # the next cycle, in the background
    python rlvrctl.py ps                                # what runs, how far, how well
    python rlvrctl.py COMMAND --help                    # what a command takes, with examples

It trains nothing itself: `rlvr/supervisor.py`, in the background, starts `gemma4_oeis_rlvr.py` and `eval_oeis.py`.
Exit codes: 0 done, 1 a check found something wrong, 2 something to correct in the command or its files, 3 a run ended
itself because nothing was being learned, 124 a timeout, 130 Ctrl-C, 143 SIGTERM; `wait` gives that of its run.
"""

import argparse
import difflib
import importlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlvr.cli import Command

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("start", "make the folder of a model and its TOML files"),
    "train": ("start", "start the next cycle, warm from the latest adapter"),
    "eval": ("start", "compare checkpoints on held-out tasks"),
    "auto": ("start", "train, evaluate, again, until a goal or no more improvement"),
    "resume": ("start", "go on with an interrupted run"),
    "kill": ("start", "end a run: checkpoint first, or at once with --force"),
    "queue": ("start", "what waits for its turn; starts it again after a restart of the machine"),
    "ps": ("show", "runs and where they stand, live ones first"),
    "watch": ("show", "a live line per run"),
    "wait": ("show", "block until runs have finished"),
    "tail": ("show", "the last metrics and completions of a run"),
    "log": ("show", "what a run printed"),
    "trace": ("show", "the completions of a run"),
    "compare": ("compare", "metrics of several runs side by side"),
    "diff": ("compare", "what differs between two runs: config, versions, data"),
    "config": ("settings", "show and edit the layers of a model's config"),
    "preset": ("settings", "named bundles of keys, for any model"),
    "corpus": ("data", "fetch the OEIS data, look at it"),
    "play": ("data", "answer a task yourself and see every reward"),
    "validate": ("data", "do known-good answers score full marks, and attacks none?"),
    "colab": ("colab", "rented Colab VMs: up, train, ps, pull, stop, down"),
    "label": ("keep", "give a run a short label"),
    "note": ("keep", "write a note about a run"),
    "rm": ("keep", "move a run to the trash"),
    "doctor": ("check", "is this machine ready; why does a run not learn"),
    "demo": ("shell", "the README's demo"),
    "lab": ("lab", "understand RLVR in five minutes: a tiny model learns arithmetic"),
    "completion": ("shell", "print shell completion for bash, zsh or fish"),
}
"""Command -> (module under rlvr/cli/, one line of help), in the order of `--help`."""


def find_command(name: str) -> "Command":
    return importlib.import_module(f"rlvr.cli.{COMMANDS[name][0]}").COMMANDS[name]


def overview() -> str:
    """What `--help` prints."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: rlvrctl.py COMMAND [--model MODEL] ...",
            "",
            "RLVR for integer sequences: models, cycles, evaluations.",
            "",
            *lines,
            "",
            "A RUN is 003, latest, live, an evaluation such as 003/evals/base, or a path.",
            "rlvrctl.py COMMAND --help tells what a command takes, with examples.",
        ]
    )


def make_parser(name: str, parser: argparse.ArgumentParser | None = None) -> argparse.ArgumentParser:
    """The parser of one command; `parser` is the one to fill, for shell completion."""
    from rlvr.arguments import Parser
    from rlvr.cli import examples_text, parsers_below

    command = find_command(name)
    parser = parser or Parser(
        prog=f"rlvrctl.py {name}",
        description=command.description or f"{name}: {COMMANDS[name][1]}.",
        epilog=examples_text(command.examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", metavar="MODEL", help="which model; default: the only one, or the one last used")
    command.arguments(parser)
    for action, below in parsers_below(parser).items():
        mine = [example for example in command.examples if example.split()[1:3] == [name, action]]
        if mine and below.epilog is None:
            below.epilog, below.formatter_class = examples_text(mine), argparse.RawDescriptionHelpFormatter
    parser.set_defaults(run_command=command.run)
    return parser


def complete_for_shell() -> None:
    """Answer a shell that asks for completions, through argcomplete; returns at once otherwise."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    from rlvr.cli.shell import complete

    complete({name: summary for name, (_, summary) in COMMANDS.items()}, make_parser)


def main(arguments: list[str] | None = None) -> int:
    complete_for_shell()
    try:
        code = run_command(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of a pipe, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def run_command(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(overview())
        return 0
    name = arguments[0]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "rlvrctl.py --help lists them"
        print(f"error: no command {name!r}: {hint}", file=sys.stderr)
        return 2
    args = make_parser(name).parse_args(arguments[1:])

    from rlvr.errors import RlvrError

    try:
        return args.run_command(args)
    except RlvrError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"error: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
