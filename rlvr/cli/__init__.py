"""The commands of `rlvrctl.py`, a module per group; only the module of the command that was given is imported."""

import argparse
from collections.abc import Callable
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
