#!/usr/bin/env python3
"""The dashboard: models, cycles and evaluations in the terminal, live; start, watch, stop and compare them there.

    python rlvrtui.py                    # the model last used
    python rlvrtui.py --model m
    python rlvrtui.py --theme textual-light

It trains nothing itself and keeps nothing alive: runs go on when it is closed, and are there when it is opened again.
Whatever it does, `rlvrctl.py` does too.
"""

import argparse
import sys


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rlvrtui.py",
        description="The dashboard of training/: runs live, graphs, completions, config, evaluations.",
        epilog="Keys: ? shows all, ctrl+p finds a command, a run or a screen, q leaves. Runs go on when you leave.",
    )
    parser.add_argument("--model", metavar="MODEL", help="which model; default: the only one, or the one last used")
    parser.add_argument("--theme", metavar="NAME", help="colours, such as textual-light or nord; remembered")
    return parser


def main(arguments: list[str] | None = None) -> int:
    args = make_parser().parse_args(arguments)

    from rlvr.errors import RlvrError

    try:
        if args.model:
            from rlvr.cycles import model_dir

            model_dir(args.model)
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise RlvrError("the dashboard needs a terminal: rlvrctl.py ps and rlvrctl.py watch print instead")
        from rlvr.tui.app import Dashboard

        app = Dashboard(model=args.model, theme=args.theme)
        app.run()
        return app.return_code or 0
    except RlvrError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
