"""Commands around the shell: completion, demo."""

import argparse
import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlvr.cli import Command, parsers_below
from rlvr.config import EvalConfig, Key, TrainConfig, keys
from rlvr.errors import RlvrError

ROOT = Path(__file__).resolve().parent.parent.parent
SHELLS = ("bash", "zsh", "fish")
KEYS: dict[str, Key] = {**keys(EvalConfig), **keys(TrainConfig)}

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
            add_completers(one)
    argcomplete.autocomplete(parser)


def add_completers(parser: argparse.ArgumentParser) -> None:
    """Tell argcomplete what to offer for the arguments that name something of ours, of the actions below too."""
    for action in parser._actions:
        key = KEYS.get(action.dest.removeprefix("key:")) if action.dest.startswith("key:") else None
        offer = OFFERS.get(action.dest)
        if key is not None and (key.name == "environment" or key.type is not str or key.choices):
            offer = functools.partial(offer_values, key)
        if offer is not None:
            action.completer = offer  # type: ignore[attr-defined]
    for below in parsers_below(parser).values():
        add_completers(below)


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

    return [preset.name for preset in presets.list_presets(cycles.PRESETS_DIR) if not preset.error]


def offer_new_names(**_: Any) -> list[str]:
    return []  # not the names of files


def offer_keys(**_: Any) -> list[str]:
    return list(KEYS)


def offer_pairs(prefix: str, **_: Any) -> list[str]:
    """`loss` -> `loss_type=`; `loss_type=` -> `loss_type=grpo`, ..."""
    name, equals, _value = prefix.partition("=")
    name = name.replace("-", "_")
    if not equals:
        return [f"{known}=" for known in KEYS]
    return [f"{name}={value}" for value in offer_values(KEYS[name])] if name in KEYS else []


def offer_values(key: Key, **_: Any) -> list[str]:
    """What a key may be, where that can be listed."""
    if key.name == "environment":
        return offer_environments()
    return ["true", "false"] if key.type is bool else list(key.choices)


def offer_environments(**_: Any) -> list[str]:
    from rlvr.environment import MODULES

    return list(MODULES)


OFFERS: dict[str, Callable[..., list[str]]] = {
    **dict.fromkeys(("run", "runs", "first", "second", "after"), offer_runs),
    **dict.fromkeys(("parent", "adapters", "adapter_a", "adapter_b"), offer_adapters),
    **dict.fromkeys(("preset", "name"), offer_presets),
    **dict.fromkeys(("pairs", "override"), offer_pairs),
    **{"model": offer_models, "keys": offer_keys, "environment": offer_environments, "new_name": offer_new_names},
}
"""Name of an argument, whatever the command -> what may stand there."""

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
