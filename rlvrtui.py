#!/usr/bin/env python3
"""The dashboard: models, cycles and evaluations in the terminal, live; start, watch, stop and compare them there.

    python rlvrtui.py                    # the model last used
    python rlvrtui.py --model m
    python rlvrtui.py --theme textual-light
    python rlvrtui.py --web              # in a browser on this machine

It trains nothing itself and keeps nothing alive: runs go on when it is closed, and are there when it is opened again.
Whatever it does, `rlvrctl.py` does too.
"""

import argparse
import gc
import os
import sys

from rlvr.arguments import Parser


def make_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="rlvrtui.py",
        description="The dashboard of training/: runs live, graphs, completions, config, evaluations.",
        epilog="Keys: ? shows all, ctrl+p finds a command, a run or a screen, q leaves. Runs go on when you leave.",
    )
    parser.add_argument("--model", metavar="MODEL", help="which model; default: the only one, or the one last used")
    parser.add_argument("--theme", metavar="NAME", help="colours, such as textual-light or nord; remembered")
    web = parser.add_argument_group("in a browser")
    web.add_argument("--web", action="store_true", help="serve it to a browser instead; needs textual-serve")
    web.add_argument("--host", default="127.0.0.1", help="address to listen on; another than this one needs --token")
    web.add_argument("--port", type=int, default=8765, help="default 8765")
    web.add_argument(
        "--token", default="", help="what a visitor has to know; default: a new one, in the address shown"
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    args = make_parser().parse_args(arguments)

    from rlvr.errors import RlvrError

    try:
        if args.model:
            from rlvr.cycles import model_dir

            model_dir(args.model)
        if args.web:
            from rlvr.tui.web import serve

            given = [f"--{name}={value}" for name in ("model", "theme") if (value := vars(args)[name])]
            return serve(args.host, args.port, args.token, given)
        in_browser = "TEXTUAL_DRIVER" in os.environ
        if not in_browser and not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise RlvrError("the dashboard needs a terminal: rlvrctl.py ps and rlvrctl.py watch print instead")
        gc.disable()  # nothing that is imported is garbage, and looking for it takes a tenth of the start
        from rlvr.tui.app import Dashboard

        gc.freeze()
        gc.enable()
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
