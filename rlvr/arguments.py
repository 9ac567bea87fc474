"""The command line of every program: errors of one line, and how a program ends.

    def main() -> int: ...
    if __name__ == "__main__":
        sys.exit(run_program(main))

It knows no key and no command. Standard library only: every program imports it first.
"""

import argparse
import difflib
import os
import re
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from rlvr.errors import RlvrError


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, with the nearest name for a misspelt option or choice.

    An option may not be shortened: what it means would change with the next option that begins alike.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **options})

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


def positive(text: str) -> int:
    """The type of an option that counts: an integer of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} must be at least 1")
    return number


def run_program(main: Callable[[], int]) -> int:
    """The exit code of a program: what a user can cause is a line on stderr and 2, Ctrl-C is 130.

    A reader that has seen enough, such as head, is no error.
    """
    try:
        code = main()
        sys.stdout.flush()
        return code
    except RlvrError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered goes nowhere
        return 0
