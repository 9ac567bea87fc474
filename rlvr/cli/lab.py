"""The tiny lab as a command; what it does is in `rlvr/lab/`."""

import argparse

from rlvr.cli import Command
from rlvr.lab.commands import add_commands


def lab(args: argparse.Namespace) -> int:
    return args.run_lab(args)


COMMANDS = {
    "lab": Command(
        arguments=add_commands,
        run=lab,
        examples=(
            "rlvrctl.py lab run",
            "rlvrctl.py lab compare --group-size 2 8",
            "rlvrctl.py lab start",
            "rlvrctl.py lab check",
            "rlvrctl.py lab verify lab/receipt.json",
        ),
        description="Understand RLVR on a laptop in five minutes: a tiny transformer learns two-step arithmetic.",
    )
}
