"""Commands around the shell: completion, demo."""

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rlvr.cli import Command
from rlvr.errors import RlvrError

ROOT = Path(__file__).resolve().parent.parent.parent
SHELLS = ("bash", "zsh", "fish")
RUN_ARGUMENTS = {"run", "runs", "first", "second", "after"}
"""Names of arguments that take a run."""
ADAPTER_ARGUMENTS = {"parent", "adapters", "adapter_a", "adapter_b"}

# ---------------------------------------------------------------------------------------------------------------------
# completion


def completion_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def completion(args: argparse.Namespace) -> int:
    import argcomplete

    print(argcomplete.shellcode(["rlvrctl.py", "rlvrctl"], shell=args.shell))
    return 0


def complete(commands: Mapping[str, str], make_parser: Callable[..., argparse.ArgumentParser]) -> None:
    """Print what may stand next on the line that a shell is completing, and end the process.

    `commands` are names and summaries; only the parser of a command that stands on the line is made.
    """
    import argcomplete

    parser = argparse.ArgumentParser(prog="rlvrctl.py", add_help=False)
    choices = parser.add_subparsers(dest="command")
    words = os.environ.get("COMP_LINE", "").split()[1:2]
    for name, summary in commands.items():
        one = choices.add_parser(name, help=summary)
        if words == [name]:
            make_parser(name, one)
            add_completers(one._actions)
    argcomplete.autocomplete(parser)


def add_completers(actions: Iterable[argparse.Action]) -> None:
    """Tell argcomplete what to offer for the arguments that name something of ours."""
    for action in actions:
        if action.dest in RUN_ARGUMENTS:
            action.completer = offer_runs  # type: ignore[attr-defined]
        elif action.dest in ADAPTER_ARGUMENTS:
            action.completer = offer_adapters  # type: ignore[attr-defined]
        elif action.dest == "model":
            action.completer = offer_models  # type: ignore[attr-defined]
        elif action.dest == "preset":
            action.completer = offer_presets  # type: ignore[attr-defined]
        elif action.dest in ("pairs", "names", "keys", "override"):
            action.completer = offer_keys  # type: ignore[attr-defined]


def offer_models(**_: Any) -> list[str]:
    from rlvr import cycles

    return cycles.model_names()


def offer_runs(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    from rlvr import cycles

    with contextlib.suppress(RlvrError):
        model = cycles.choose_model(vars(parsed_args).get("model"))
        return ["latest", "live", *(run.name for run in cycles.all_runs(model))]
    return []


def offer_adapters(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    from rlvr import cycles

    with contextlib.suppress(RlvrError):
        model = cycles.choose_model(vars(parsed_args).get("model"))
        return ["base", "latest", *(run.name for run in cycles.cycle_runs(model) if cycles.has_adapter(run))]
    return []


def offer_presets(**_: Any) -> list[str]:
    from rlvr import cycles, presets

    return [preset.name for preset in presets.list_presets(cycles.PRESETS_DIR)]


def offer_keys(**_: Any) -> list[str]:
    from rlvr.config import EvalConfig, TrainConfig, keys

    return [f"{name}=" for name in {**keys(TrainConfig), **keys(EvalConfig)}]


# ---------------------------------------------------------------------------------------------------------------------
# demo


def demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", metavar="N", help="seed of the training; default 0")
    parser.add_argument("--steps", metavar="N", help="training steps; default: what the preset tiny says")


def demo(args: argparse.Namespace) -> int:
    """Run the README's demo in the foreground; what it makes is the model `demo`."""
    options = [part for name in ("seed", "steps") if (value := vars(args)[name]) for part in (f"--{name}", value)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run([sys.executable, "-m", "rlvr.demo", *options], env=environment).returncode


COMMANDS = {
    "demo": Command(demo_arguments, demo, ("rlvrctl.py demo", "rlvrctl.py demo --seed 1")),
    "completion": Command(
        completion_arguments,
        completion,
        (
            'eval "$(./rlvrctl.py completion bash)"',
            "./rlvrctl.py completion fish > ~/.config/fish/completions/rlvrctl.py.fish",
        ),
        "Print code for the shell that completes commands, options, models and runs of ./rlvrctl.py.",
    ),
}
