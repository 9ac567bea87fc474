"""The commands of `rlvrctl.py`, a module per group; only the module of the command that was given is imported."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

RUN_HELP = "003, latest, live, 003/evals/base, auto/001, or a path"


@dataclass(frozen=True)
class Command:
    """One command: `arguments` adds what it takes to a parser, `run` does it and returns the exit code.

    `examples` are shown under `--help`, each a whole command line; `description` says more than the one-line summary.
    """

    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    examples: tuple[str, ...]
    description: str = ""


def examples_text(examples: Sequence[str]) -> str:
    """What `--help` ends with."""
    return "examples:\n" + "\n".join(f"  {example}" for example in examples)


def parsers_below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of the actions of a command, such as `config set`, by name; none where it has no actions."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= action.choices
    return found
