"""The commands of `rlvrctl.py`, a module per group; only the module of the command that was given is imported."""

import argparse
import difflib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

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


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, with the nearest name for a misspelt option or choice."""

    def error(self, message: str) -> NoReturn:
        misspelt = re.search(
            r"unrecognized arguments: (?P<option>--[\w-]+)|invalid choice: '(?P<choice>[^']*)'", message
        )
        known: list[str] = []
        if misspelt and misspelt["option"]:
            known = [option for action in self._actions for option in action.option_strings if option[:2] == "--"]
            message = f"unknown option {misspelt['option']}"
        elif misspelt:
            known = re.findall(r"[\w.-]+", message.partition("choose from")[2])
            message = message.replace("argument ", "", 1)
        near = difflib.get_close_matches((misspelt and (misspelt["option"] or misspelt["choice"])) or "", known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"{self.prog} --help tells what it takes"
        print(f"error: {message}: {hint}", file=sys.stderr)
        sys.exit(2)
