"""The tiny lab on its own: `python -m rlvr.lab run`. `rlvrctl.py lab` offers the same commands."""

import sys

from rlvr.arguments import Parser, run_program
from rlvr.lab.commands import add_commands


def main() -> int:
    parser = Parser(prog="python -m rlvr.lab", description="Understand RLVR on a laptop in five minutes.")
    add_commands(parser)
    args = parser.parse_args()
    return args.run_lab(args)


if __name__ == "__main__":
    sys.exit(run_program(main))
