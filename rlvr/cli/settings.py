"""Commands about the layers of a model's config: config show, set, unset, diff; preset list, show, save, apply.

Not here: what the layers are (`rlvr/layers.py`) and where presets lie (`rlvr/presets.py`).
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr import cycles, layers, presets
from rlvr.cli import Command, terminal
from rlvr.config import RECORDED_TABLES, keys, read_toml
from rlvr.errors import RlvrError
from rlvr.layer_files import WORDS, toml_text
from rlvr.layers import COMMAND_LINE, CONFIG_CLASSES, SCOPES, TARGETS, Change, Setting, Target

FOR_WORDS = {"both": "both", **WORDS}

PIPED_CELL = 80
"""In a pipe a longer value makes only its own line longer."""

# ---------------------------------------------------------------------------------------------------------------------
# Arguments


Action = Callable[[argparse.Namespace], int]


def add_action(
    actions: Any, name: str, run: Action, summary: str, *, takes_model: bool = True
) -> argparse.ArgumentParser:
    """A command below a command; `--model` may stand before or after its name."""
    parser = actions.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
    )
    if takes_model:
        parser.add_argument(
            "--model", metavar="MODEL", default=argparse.SUPPRESS, help="default: the only one, or the one last used"
        )
    parser.set_defaults(action=run)
    return parser


def add_target(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument("--for", dest="target", choices=TARGETS, help=help)


def add_scope(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--scope",
        choices=SCOPES,
        default=default,
        help="global: model.toml; permanent: training.toml or eval.toml; ephemeral: their table for the next run; "
        f"default {default}",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON; docs/configuration.md has its schema")


def config_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    show = add_action(actions, "show", show_config, "show the effective value of every key")
    show.add_argument("keys", nargs="*", metavar="KEY", help="only these, with their help and range")
    show.add_argument("--origin", action="store_true", help="also the file it comes from, and lower ones that set it")
    add_target(show, "only for this kind of run")
    add_json(show)

    change = add_action(actions, "set", set_config, "set keys in one layer; comments in the file stay")
    change.add_argument("pairs", nargs="+", metavar="KEY=VALUE")
    add_scope(change, "permanent")
    add_target(change, "where both kinds of run know the key: whose file; default train")

    remove = add_action(actions, "unset", unset_config, "take keys out of one layer")
    remove.add_argument("keys", nargs="+", metavar="KEY")
    add_scope(remove, "permanent")
    add_target(remove, "where both kinds of run know the key: whose file; default train")

    diff = add_action(actions, "diff", diff_config, "what differs from the last run, or from the defaults")
    against = diff.add_mutually_exclusive_group()
    against.add_argument("run", nargs="?", metavar="RUN", help="compare with this run; default: the last cycle")
    against.add_argument("--defaults", action="store_true", help="compare with the built-in defaults")
    add_target(diff, "only for this kind of run")
    add_json(diff)


def preset_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    add_json(add_action(actions, "list", list_presets, "list the presets", takes_model=False))

    show = add_action(actions, "show", show_preset, "print a preset as TOML", takes_model=False)
    show.add_argument("name", metavar="NAME")
    add_json(show)

    save = add_action(actions, "save", save_preset, "save what a model sets, or the keys given, as a preset")
    save.add_argument("new_name", metavar="NAME")
    save.add_argument("pairs", nargs="*", metavar="KEY=VALUE", help="keys to save; none: those of the model")
    save.add_argument(
        "--from-model",
        action="store_true",
        help="save what differs from the defaults in the model, and the keys given",
    )
    save.add_argument("--summary", metavar="TEXT", help="one line for preset list")
    save.add_argument("--force", action="store_true", help="replace one of that name")

    apply = add_action(actions, "apply", apply_preset, "write the keys of a preset into a layer of the model")
    apply.add_argument("name", metavar="NAME")
    add_scope(apply, "global")
    add_target(apply, "only the keys of this kind of run")


def run_action(args: argparse.Namespace) -> int:
    return args.action(args)


def read_pairs(texts: Iterable[str]) -> dict[str, str]:
    """`["max-steps=40"]` -> `{"max_steps": "40"}`."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = plain_name(name)
        if not equals:
            raise RlvrError(f"{text!r}: write KEY=VALUE, such as learning_rate=1e-4")
        if name in pairs:
            raise RlvrError(f"{name} is given twice: give it once")
        pairs[name] = value.strip()
    return pairs


def plain_name(name: str) -> str:
    return name.strip().replace("-", "_")


def refuse_target(args: argparse.Namespace) -> None:
    """There is one global file: a kind of run cannot be chosen in it."""
    if args.scope == "global" and args.target:
        raise RlvrError(f"{layers.MODEL_FILE} is for both kinds of run: leave out --for, or use --scope permanent")


def frozen_keys(model: str) -> dict[str, Any]:
    """What the model's first adapter was made with; empty while it has none."""
    from rlvr import runs

    return runs.frozen_keys(model) or {}


# ---------------------------------------------------------------------------------------------------------------------
# config show


def show_config(args: argparse.Namespace) -> int:
    model = cycles.choose_model(args.model)
    folder = cycles.model_dir(model)
    targets: Sequence[Target] = [args.target] if args.target else TARGETS
    settings = layers.effective(folder, targets)
    names = list(dict.fromkeys(map(plain_name, args.keys)))
    for name in names:
        layers.file_of("permanent", name, args.target)
    if names:
        settings = [setting for name in names for setting in settings if setting.key == name]
    frozen = frozen_keys(model)
    if args.json:
        print_json([setting_record(setting, setting.key in frozen) for setting in settings])
    else:
        print_settings(settings, frozen, with_origin=args.origin, with_help=bool(names))
    warn_of_frozen(folder, targets, frozen)
    return 0


def setting_record(setting: Setting, frozen: bool) -> dict[str, Any]:
    return {
        "key": setting.key,
        "for": setting.target,
        "value": setting.value,
        "default": setting.default,
        "origin": setting.origin,
        "shadows": [{"origin": origin, "value": value} for origin, value in setting.shadows],
        "frozen": frozen,
    }


def print_settings(
    settings: Sequence[Setting], frozen: Mapping[str, Any], *, with_origin: bool, with_help: bool
) -> None:
    """One row a key; bold what is not the default."""
    from rich.text import Text

    columns = ["key", "for", "value"]
    columns += ["origin", "shadows"] if with_origin else []
    columns += ["meaning"] if with_help else []
    rows = []
    for setting in settings:
        style = "bold" if setting.value != setting.default else ""
        row = [Text(setting.key, style), FOR_WORDS[setting.target], Text(toml_text(setting.value), style)]
        if with_origin:
            fixed = " (fixed: there is an adapter)" if setting.key in frozen else ""
            shadows = ", ".join(f"{toml_text(value)} in {origin}" for origin, value in setting.shadows)
            row += [Text(setting.origin + fixed), Text(shadows)]
        if with_help:
            row.append(Text(meaning(setting)))
        rows.append(row)
    print_table(columns, rows)


def meaning(setting: Setting) -> str:
    targets = TARGETS if setting.target == "both" else [setting.target]
    known = [keys(CONFIG_CLASSES[target])[setting.key] for target in targets]
    text = " / ".join(dict.fromkeys(key.help for key in known))
    return f"{text} ({known[0].range_text})" if known[0].range_text else text


def warn_of_frozen(folder: Path, targets: Iterable[Target], frozen: Mapping[str, Any]) -> None:
    """Say on stderr what would stop the next run."""
    for target in targets:
        try:
            layers.resolve_for(folder, CONFIG_CLASSES[target], {}, frozen)
        except RlvrError as error:
            print(f"warning: {error}", file=sys.stderr)
            return


# ---------------------------------------------------------------------------------------------------------------------
# config set, config unset


def set_config(args: argparse.Namespace) -> int:
    refuse_target(args)
    model = cycles.choose_model(args.model)
    folder = cycles.model_dir(model)
    changes = layers.set_keys(folder, args.scope, read_pairs(args.pairs), args.target, frozen_keys(model))
    report(folder, args.scope, changes)
    if args.target is None and args.scope != "global":
        shared = [
            change.key for change in changes if all(change.key in keys(each) for each in CONFIG_CLASSES.values())
        ]
        if shared:
            say(f"{', '.join(shared)}: set for training only; use --for eval for evaluation, --scope global for both")
    return 0


def unset_config(args: argparse.Namespace) -> int:
    refuse_target(args)
    model = cycles.choose_model(args.model)
    folder = cycles.model_dir(model)
    names = list(dict.fromkeys(map(plain_name, args.keys)))
    if report(folder, args.scope, layers.unset_keys(folder, args.scope, names, args.target)):
        warn_of_frozen(folder, TARGETS, frozen_keys(model))
    return 0


def report(folder: Path, scope: str, changes: Iterable[Change]) -> bool:
    """Print what was changed, and on stderr what a higher layer keeps from counting; is every file right?"""
    changes = list(changes)
    for change in changes:
        print(f"{folder / change.file}{place_in(scope)}: {describe(change)}")
    try:
        settings = layers.effective(folder)
    except RlvrError as error:  # another file is wrong; this change is made all the same
        say(str(error))
        return False
    for change in changes:
        origin = f"{change.file}{place_in(scope)}"
        for setting in settings:
            if setting.key != change.key or not reads(setting.target, change.file):
                continue
            value, kind = (
                toml_text(setting.value),
                FOR_WORDS[setting.target].replace("both", "training and evaluation"),
            )
            if change.new is None:
                say(f"{change.key} is now {value} for {kind}, from {setting.origin}")
            elif setting.origin != origin:
                say(f"{change.key} stays {value} for {kind}: {setting.origin} sets it too and wins")
    return True


def place_in(scope: str) -> str:
    return f" [{layers.EPHEMERAL}]" if scope == "ephemeral" else ""


def reads(target: str, file: str) -> bool:
    """Does this kind of run read the file?"""
    return target == "both" or file in (layers.MODEL_FILE, layers.SCOPE_FILES[target])


def describe(change: Change) -> str:
    if change.new is None:
        return f"{change.key} was not set here" if change.old is None else f"{change.key} removed (was {change.old})"
    if change.old is None:
        return f"{change.key} = {change.new}"
    if change.old == change.new:
        return f"{change.key} = {change.new} (as before)"
    return f"{change.key} = {change.new} (was {change.old})"


def say(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


# ---------------------------------------------------------------------------------------------------------------------
# config diff


def diff_config(args: argparse.Namespace) -> int:
    model = cycles.choose_model(args.model)
    folder = cycles.model_dir(model)
    if args.defaults:
        settings = layers.effective(folder, [args.target] if args.target else TARGETS)
        against = "defaults"
        rows = [
            difference(setting, setting.default, "default") for setting in settings if setting.value != setting.default
        ]
    else:
        run = cycles.find_run(args.run, model) if args.run else last_run(model, args.target or "train")
        if run.kind == "auto":
            raise RlvrError(f"{run.name} is an auto run, which has no config of its own: name one of its cycles")
        target: Target = "eval" if run.kind == "eval" else "train"
        if args.target not in (None, target):
            raise RlvrError(f"{run.name} is a run of {WORDS[target]}: leave out --for {args.target}")
        against = run.name
        rows = differences(layers.effective(folder, [target]), read_toml(run.files.config))
    if args.json:
        print_json({"against": against, "keys": rows})
    elif not rows:
        print(f"No key differs from {'the built-in defaults' if args.defaults else against}.")
    else:
        texts = [
            [
                row["key"],
                FOR_WORDS[row["for"]],
                side_text(row["old"], row["old_origin"] if not args.defaults else ""),
                side_text(row["new"], row["new_origin"]),
            ]
            for row in rows
        ]
        print_table(["key", "for", against, "now"], texts)
    return 0


def last_run(model: str, target: Target) -> cycles.Run:
    """The newest run of this kind that recorded its config."""
    runs = cycles.cycle_runs(model) if target == "train" else cycles.eval_runs(model)
    recorded = [run for run in runs if run.files.config.is_file()]
    if not recorded:
        raise RlvrError(f"model {model!r} has no run of {WORDS[target]} to compare with: use --defaults")
    return max(recorded, key=lambda run: run.files.config.stat().st_mtime)


def difference(setting: Setting, old: Any, old_origin: str) -> dict[str, Any]:
    return {
        "key": setting.key,
        "for": setting.target,
        "old": old,
        "old_origin": old_origin,
        "new": setting.value,
        "new_origin": setting.origin,
    }


def differences(settings: Iterable[Setting], snapshot: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The keys whose value differs from a snapshot, whatever version wrote it; None where one side has no such key."""
    origins = snapshot.get("origin", {})
    rows = []
    recorded = {name: value for name, value in snapshot.items() if name not in RECORDED_TABLES}
    for setting in settings:
        old = recorded.pop(setting.key, None)
        if old != (list(setting.value) if isinstance(setting.value, tuple) else setting.value):
            rows.append(difference(setting, old, origins.get(setting.key, "")))
    for name, old in recorded.items():
        row = {"key": name, "for": "both", "old": old, "old_origin": origins.get(name, "")}
        rows.append({**row, "new": None, "new_origin": ""})
    return rows


def side_text(value: Any, origin: str) -> str:
    text = "(no such key)" if value is None else toml_text(value)
    return f"{text}  ({origin})" if origin else text


# ---------------------------------------------------------------------------------------------------------------------
# preset


def list_presets(args: argparse.Namespace) -> int:
    found = presets.list_presets(cycles.PRESETS_DIR)
    if args.json:
        print_json([preset_record(preset) for preset in found])
        return 0
    rows = [
        [preset.name, f"{len(preset.values)} keys", preset.error or preset.summary, str(preset.file or "built in")]
        for preset in found
    ]
    print_table(["preset", "sets", "what it is for", "where"], rows)
    return 0


def preset_record(preset: presets.Preset) -> dict[str, Any]:
    return {
        "name": preset.name,
        "summary": preset.summary,
        "built_in": preset.file is None,
        "file": str(preset.file) if preset.file else None,
        "error": preset.error or None,
        "values": preset.values,
    }


def show_preset(args: argparse.Namespace) -> int:
    preset = presets.find_preset(args.name, cycles.PRESETS_DIR)
    if args.json:
        print_json(preset_record(preset))
        return 0
    print(f"# {preset.name}: {preset.summary or preset.file}")
    for name, value in preset.values.items():
        print(f"{name} = {toml_text(value)}")
    return 0


def save_preset(args: argparse.Namespace) -> int:
    presets.check_free(cycles.PRESETS_DIR, args.new_name, replace=args.force)
    pairs = read_pairs(args.pairs)
    values: dict[str, Any] = {}
    source = ""
    if args.from_model or not pairs:
        model = cycles.choose_model(args.model)
        values, source = model_values(cycles.model_dir(model)), f"from model {model}"
    for name, text in pairs.items():
        for key in layers.keys_named(name, COMMAND_LINE):
            values[name] = key.parse(text, COMMAND_LINE)
    if not values:
        raise RlvrError(f"{source.removeprefix('from ')} sets nothing but defaults: there is nothing to save")
    summary = args.summary if args.summary is not None else source
    file = presets.save_preset(cycles.PRESETS_DIR, args.new_name, values, summary, replace=args.force)
    print(f"Saved {file}: {', '.join(values)}")
    return 0


def model_values(folder: Path) -> dict[str, Any]:
    """What the files of a model set beside defaults, without [ephemeral]; a preset has one value a key."""
    values: dict[str, Any] = {}
    for target in TARGETS:
        known = keys(CONFIG_CLASSES[target])
        resolved: dict[str, Any] = {name: key.default for name, key in known.items()}
        for layer in layers.layers_of(folder, CONFIG_CLASSES[target])[:-1]:
            resolved.update(layer.values)
        for name, value in resolved.items():
            if target == "eval" and name in keys(CONFIG_CLASSES["train"]):
                of_training = values.get(name, known[name].default)
                if value != of_training:
                    say(
                        f"{name} is {toml_text(of_training)} for training and {toml_text(value)} for evaluation: "
                        "the preset takes that of training"
                    )
            elif value != known[name].default:
                values[name] = value
    return values


def apply_preset(args: argparse.Namespace) -> int:
    values = presets.preset_values(args.name, cycles.PRESETS_DIR)
    model = cycles.choose_model(args.model)
    folder = cycles.model_dir(model)
    report(folder, args.scope, layers.set_values(folder, args.scope, values, args.target, frozen_keys(model)))
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# Printing


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Columns without a frame; in a pipe a row is one line, however long a value is."""
    if not terminal.is_terminal():
        texts = [[str(cell) for cell in row] for row in rows]
        left = [False] * len(columns)
        print("\n".join(terminal.columns(columns, texts, right=left, widest=PIPED_CELL)))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    terminal.console().print(table)


COMMANDS = {
    "config": Command(
        arguments=config_arguments,
        run=run_action,
        examples=(
            "rlvrctl.py config show --origin",
            "rlvrctl.py config show learning_rate temperature",
            "rlvrctl.py config set --scope global learning_rate=1e-4 max_steps=100",
            "rlvrctl.py config set --scope ephemeral seed=3        # the next cycle only",
            "rlvrctl.py config set --for eval temperature=0.7",
            "rlvrctl.py config unset --scope ephemeral seed",
            "rlvrctl.py config diff                                # what changed since the last cycle",
            "rlvrctl.py config diff --defaults",
        ),
        description="Show and edit the layers of a model's config: built-in defaults, model.toml (scope global),\n"
        "training.toml and eval.toml (permanent), their [ephemeral] table (one run), flags of a command.",
    ),
    "preset": Command(
        arguments=preset_arguments,
        run=run_action,
        examples=(
            "rlvrctl.py preset list",
            "rlvrctl.py preset show tiny",
            "rlvrctl.py preset save mine                           # what the model sets",
            "rlvrctl.py preset save careful learning_rate=1e-5 kl_beta=0.01",
            "rlvrctl.py preset apply careful --scope permanent",
        ),
        description="Named bundles of keys: built-in ones, and your own in training/presets/NAME.toml, for any model.",
    ),
}
