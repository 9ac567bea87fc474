"""The tiny lab on its own: `python -m rlvr.lab run`. `rlvrctl.py lab` offers the same commands."""

import argparse
import sys

from rlvr.errors import RlvrError
from rlvr.lab.commands import add_commands


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m rlvr.lab", description="Understand RLVR on a laptop in five minutes.", allow_abbrev=False
    )
    add_commands(parser)
    args = parser.parse_args()
    try:
        return args.run_lab(args)
    except RlvrError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
