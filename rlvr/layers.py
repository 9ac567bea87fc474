"""The config files of a model folder: made with comments, resolved layer by layer, edited without losing a comment.

Built-in defaults <- `model.toml` <- `training.toml` or `eval.toml` <- the [ephemeral] table of that file (for one run)
<- flags. `resolve_for(folder, TrainConfig, flags)` gives the config and where each value came from.

Not here: what the keys are and what they may hold (`config.py`); the text of new files (`layer_files.py`); where the
folder of a model lies (`cycles.py`).
"""

import contextlib
import difflib
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rlvr.config import Config, EvalConfig, Key, RunConfig, TrainConfig, keys, read_toml, resolve
from rlvr.errors import RlvrError
from rlvr.layer_files import (
    EPHEMERAL,
    MODEL_FILE,
    SCOPE_FILES,
    WORDS,
    default_line,
    locked,
    model_text,
    scope_text,
    toml_text,
    write_all,
)

COMMAND_LINE = "command line"

Scope = Literal["global", "permanent", "ephemeral"]
Target = Literal["train", "eval"]

SCOPES: tuple[Scope, ...] = ("global", "permanent", "ephemeral")
TARGETS: tuple[Target, ...] = ("train", "eval")
CONFIG_CLASSES: dict[str, type[RunConfig]] = {"train": TrainConfig, "eval": EvalConfig}

FROZEN = tuple(name for name, key in keys(TrainConfig).items() if key.frozen)
"""Keys that may not change once a model has an adapter."""


class Change(NamedTuple):
    """One edit: the values as TOML text, None where the key is not set."""

    file: str
    key: str
    old: str | None
    new: str | None


class Setting(NamedTuple):
    """The effective value of a key, where it comes from, and what lower layers say: (origin, value), highest first.

    `target` is the kind of run it holds for: "train", "eval", or "both" when it is the same for both.
    """

    key: str
    target: str
    value: Any
    default: Any
    origin: str
    shadows: tuple[tuple[str, Any], ...]


class Layer(NamedTuple):
    """Checked values and the name of their origin as users see it; `where` is the path that errors name."""

    origin: str
    values: dict[str, Any]
    where: str


def target_of(config_class: type[RunConfig]) -> Target:
    return "eval" if issubclass(config_class, EvalConfig) else "train"


# ---------------------------------------------------------------------------------------------------------------------
# Making the files


def create(folder: Path, values: Mapping[str, Any]) -> list[str]:
    """Write `model.toml` with every key explained and those of `values` set, and empty overrides for both programs.

    Makes the folder. Overrides that a lost `model.toml` has left behind stay. All files or none; returns their names.

    Raises:
        RlvrError: for a bad value, a folder that has a `model.toml` already, or one that cannot be written.
    """
    file = folder / MODEL_FILE
    texts = {file: model_text(check_any(values, str(file)))}
    if file.is_symlink() or file.exists():
        raise RlvrError(f"{file}: exists already: change it with rlvrctl.py config set, or choose another name")
    for target, name in SCOPE_FILES.items():
        path = folder / name
        if not (path.is_symlink() or path.exists()):
            texts[path] = scope_text(target)
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RlvrError(f"{folder}: cannot be made: {error.strerror}") from None
    try:
        write_all({path: text.encode() for path, text in texts.items()})
    except RlvrError:
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise
    return [path.name for path in texts]


# ---------------------------------------------------------------------------------------------------------------------
# Reading and resolving


def layers_of(folder: Path, config_class: type[RunConfig]) -> list[Layer]:
    """The layers of the files, lowest first, each with the keys that this config class knows.

    Raises:
        RlvrError: naming file, key and reason for anything in them that is not right.
    """
    target = target_of(config_class)
    model_file, scope_file = folder / MODEL_FILE, folder / SCOPE_FILES[target]
    model = _check_model(_read_model(folder), str(model_file))
    known = keys(config_class)
    permanent, ephemeral = _check_scope(_read_optional(scope_file), target, str(scope_file))
    return [
        Layer(MODEL_FILE, {name: value for name, value in model.items() if name in known}, str(model_file)),
        Layer(scope_file.name, permanent, str(scope_file)),
        Layer(f"{scope_file.name} [{EPHEMERAL}]", ephemeral, f"{scope_file} [{EPHEMERAL}]"),
    ]


def resolve_for(
    folder: Path,
    config_class: type[Config],
    flags: Mapping[str, Any] | None = None,
    frozen: Mapping[str, Any] | None = None,
    taken: Collection[str] = (),
) -> tuple[Config, dict[str, str]]:
    """Resolve every key: defaults, the files of the model folder, then `flags`; also say where each value came from.

    `flags` hold values, or their text as it was typed. `frozen` is what the model's first adapter was made with, from
    `frozen_values`; None while the model has no adapter. `taken` are keys of [ephemeral] that another run has: this
    one goes without.

    Raises:
        RlvrError: naming file, key and reason for anything that is not right, frozen keys included.
    """
    *layers, one_shot = layers_of(folder, config_class)
    one_shot = one_shot._replace(values={name: v for name, v in one_shot.values.items() if name not in taken})
    layers += [one_shot, flags_layer(flags or {}, config_class)]
    config, origins = resolve(config_class, [(layer.origin, layer.values) for layer in layers])
    places = {layer.origin: layer.where for layer in layers}
    known = keys(config_class)
    for name, made_with in (frozen or {}).items():
        if name in known:
            origin = origins[name]
            _check_frozen(name, vars(config)[name], made_with, places.get(origin, origin))
    return config, origins


def effective(folder: Path, targets: Iterable[Target] = TARGETS) -> list[Setting]:
    """Every key of these kinds of run with its value before any flag, in the order of the config classes.

    Raises:
        RlvrError: like `resolve_for`, but not for frozen keys.
    """
    found: dict[str, list[Setting]] = {}
    for target in targets:
        config_class = CONFIG_CLASSES[target]
        layers = layers_of(folder, config_class)
        for name, key in keys(config_class).items():
            said = [(layer.origin, layer.values[name]) for layer in reversed(layers) if name in layer.values]
            origin, value = said[0] if said else ("default", key.default)
            setting = Setting(name, target, value, key.default, origin, tuple(said[1:]))
            same = found.setdefault(name, [])
            if same and same[0]._replace(target=target) == setting:
                same[0] = setting._replace(target="both")
            else:
                same.append(setting)
    return [setting for settings in found.values() for setting in settings]


def flags_layer(flags: Mapping[str, Any], config_class: type[RunConfig]) -> Layer:
    """The flags of a command as the topmost layer: checked values, from values or from their text."""
    values = {}
    for name, value in flags.items():
        key = _key_of(name, target_of(config_class), COMMAND_LINE)
        values[name] = key.parse(value, COMMAND_LINE) if isinstance(value, str) else key.check(value, COMMAND_LINE)
    return Layer(COMMAND_LINE, values, COMMAND_LINE)


def frozen_values(snapshot: Path) -> dict[str, Any]:
    """What an adapter was made with, out of the `config.toml` of its cycle: frozen key -> value."""
    document = read_toml(snapshot)
    known = keys(TrainConfig)
    return {name: known[name].check(document[name], str(snapshot)) for name in FROZEN if name in document}


def ephemeral_values(folder: Path, config_class: type[RunConfig]) -> dict[str, Any]:
    """The checked values of the [ephemeral] table for this kind of run."""
    target = target_of(config_class)
    file = folder / SCOPE_FILES[target]
    return _check_scope(_read_optional(file), target, str(file))[1]


def _read_model(folder: Path) -> dict[str, Any]:
    if not (folder / MODEL_FILE).exists():
        raise RlvrError(
            f"{folder / MODEL_FILE}: no such file: make the model with rlvrctl.py init --model {folder.name}"
        )
    return read_toml(folder / MODEL_FILE)


def _read_optional(file: Path) -> dict[str, Any]:
    """Overrides may be missing altogether; a link that leads nowhere is no such case."""
    return read_toml(file) if file.exists() or file.is_symlink() else {}


def _check_frozen(name: str, value: Any, made_with: Any, where: str) -> None:
    if value != made_with:
        if where == "default":
            hint = f"set {name} = {toml_text(made_with)} in {MODEL_FILE}"
        else:
            hint = f"keep {toml_text(made_with)}"
        raise RlvrError(
            f"{where}: {name} = {toml_text(value)}, but the adapters of this model were made with "
            f"{toml_text(made_with)} and fit no other: {hint}, or make a new model: rlvrctl.py init --model OTHER"
        )


def _key_of(name: str, target: Target, where: str) -> Key:
    """The key of that name for this kind of run; a key of the other kind is told where it belongs."""
    keys_named(name, where)
    known = keys(CONFIG_CLASSES[target])
    if name not in known:
        other = "eval" if target == "train" else "train"
        advice = "leave it out" if where == COMMAND_LINE else f"put it into {SCOPE_FILES[other]}"
        raise RlvrError(f"{where}: {name} is a key of {WORDS[other]}, not of {WORDS[target]}: {advice}")
    return known[name]


def check_any(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Check values against every program that knows their key; a key that none knows is an error."""
    checked = {}
    for name, value in values.items():
        for key in keys_named(name, where):
            checked[name] = key.check(value, where)
    return checked


def keys_named(name: str, where: str) -> list[Key]:
    """The key of that name, once for each program that knows it; RlvrError with the nearest name when none does."""
    known = [keys(each) for each in CONFIG_CLASSES.values()]
    found = [each[name] for each in known if name in each]
    if not found:
        names = list(dict.fromkeys(known_name for each in known for known_name in each))
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "rlvrctl.py train --help and eval --help list them"
        raise RlvrError(f"{where}: unknown key {name!r}: {hint}")
    return found


def _check_model(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    if EPHEMERAL in document:
        raise RlvrError(f"{where}: [{EPHEMERAL}] has no meaning here: put it into {' or '.join(SCOPE_FILES.values())}")
    return check_any(document, where)


def _check_scope(document: dict[str, Any], target: Target, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Check a `training.toml` or `eval.toml`; return (permanent values, ephemeral values)."""
    permanent = {name: value for name, value in document.items() if name != EPHEMERAL}
    ephemeral = _table_of(document, "ephemeral", where)
    return _check_for(permanent, target, where), _check_for(ephemeral, target, f"{where} [{EPHEMERAL}]")


def _check_for(values: Mapping[str, Any], target: Target, where: str) -> dict[str, Any]:
    return {name: _key_of(name, target, where).check(value, where) for name, value in values.items()}


# ---------------------------------------------------------------------------------------------------------------------
# Editing


def set_keys(
    folder: Path,
    scope: Scope,
    pairs: Mapping[str, str],
    target: Target | None = None,
    frozen: Mapping[str, Any] | None = None,
) -> list[Change]:
    """Set keys in one layer, all of them or none; comments, order and spacing of the file stay as they are.

    `pairs` hold the text of each value. Where training and evaluation have a file each, a key that both know goes to
    that of `target`, by default "train".

    Raises:
        RlvrError: before anything is written, for a key or value that is not right, or a file that is broken.
    """
    wanted: dict[str, dict[str, Any]] = {}
    for name, text in pairs.items():
        parsed = None
        for key in keys_named(name, COMMAND_LINE):
            parsed = key.parse(text, COMMAND_LINE)
        wanted.setdefault(file_of(scope, name, target), {})[name] = parsed
    return _edit(folder, scope, wanted, frozen)


def set_values(
    folder: Path,
    scope: Scope,
    values: Mapping[str, Any],
    target: Target | None = None,
    frozen: Mapping[str, Any] | None = None,
) -> list[Change]:
    """Like `set_keys` for a bundle of values: without `target`, what both kinds of run know is set for both.

    With `target`, what that kind does not know is left out.
    """
    wanted: dict[str, dict[str, Any]] = {}
    for name, value in check_any(values, COMMAND_LINE).items():
        targets: list[Target] = [
            each for each in TARGETS if target in (None, each) and name in keys(CONFIG_CLASSES[each])
        ]
        for file in dict.fromkeys(file_of(scope, name, each) for each in targets):
            wanted.setdefault(file, {})[name] = value
    return _edit(folder, scope, wanted, frozen)


def unset_keys(folder: Path, scope: Scope, names: Iterable[str], target: Target | None = None) -> list[Change]:
    """Take keys out of one layer; what is there and must not be, misspelt or of the other kind of run, goes too.

    Raises:
        RlvrError: for a key that is neither known nor there, or a file that is broken.
    """
    wanted: dict[str, dict[str, Any]] = {}
    for name in names:
        for file in _files_to_clear(folder, scope, name, target):
            wanted.setdefault(file, {})[name] = None
    return _edit(folder, scope, wanted)


def clear_ephemeral(folder: Path, config_class: type[RunConfig], used: Mapping[str, Any]) -> list[Change]:
    """After a run that succeeded: remove from [ephemeral] what it used; what was changed meanwhile stays."""
    file = SCOPE_FILES[target_of(config_class)]
    if not (folder / file).exists():
        return []
    with locked(folder):
        table = _table_of(read_toml(folder / file), "ephemeral", str(folder / file))
        gone = same_keys(table, used)
        return _edit_in_lock(folder, "ephemeral", {file: dict.fromkeys(gone)}) if gone else []


def same_keys(values: Mapping[str, Any], others: Mapping[str, Any]) -> list[str]:
    """The keys that have the same value in both; a list out of JSON is the same as a tuple."""
    return [name for name, value in values.items() if name in others and _plain(value) == _plain(others[name])]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def file_of(scope: Scope, name: str, target: Target | None = None) -> str:
    """The file that holds a key of this scope; see `set_keys`.

    Raises:
        RlvrError: for an unknown key, or one that `target` does not know.
    """
    keys_named(name, COMMAND_LINE)
    if scope == "global":
        return MODEL_FILE
    if target is None:
        target = "train" if name in keys(TrainConfig) else "eval"
    if name not in keys(CONFIG_CLASSES[target]):
        raise RlvrError(f"{name} is not a key of {WORDS[target]}: leave out --for {target}")
    return SCOPE_FILES[target]


def _files_to_clear(folder: Path, scope: Scope, name: str, target: Target | None) -> list[str]:
    """The file that a key belongs into, and those of the scope that hold it although it means nothing there."""
    known = [each for each in TARGETS if name in keys(CONFIG_CLASSES[each])]
    if scope == "global":
        homes, others = [MODEL_FILE] if known else [], [] if known else [MODEL_FILE]
    else:
        asked = [each for each in TARGETS if target in (None, each)]
        homes = [SCOPE_FILES[each] for each in asked if each in known]
        others = [SCOPE_FILES[each] for each in asked if each not in known]

    def is_in(file: str) -> bool:
        return name in _table_of(_read_optional(folder / file), scope, str(folder / file))

    found = []
    for file in others:
        try:
            found += [file] if is_in(file) else []
        except RlvrError:  # another file is broken; this change is made all the same
            if not homes:
                raise
    if homes and (not found or is_in(homes[0])):
        found.append(homes[0])
    if not found:
        file_of(scope, name, target)
    return found


def _table_of(document: dict[str, Any], scope: Scope, where: str) -> dict[str, Any]:
    """The part of a file that this scope reads and writes."""
    table = document.get(EPHEMERAL, {}) if scope == "ephemeral" else document
    if not isinstance(table, dict):
        raise RlvrError(f"{where}: {EPHEMERAL} = {table!r} must be a table: write [{EPHEMERAL}] and its keys below")
    return table


def _edit(
    folder: Path, scope: Scope, wanted: Mapping[str, Mapping[str, Any]], frozen: Mapping[str, Any] | None = None
) -> list[Change]:
    for values in wanted.values():
        for name, value in values.items():
            if frozen and name in frozen and value is not None:
                _check_frozen(name, value, frozen[name], COMMAND_LINE)
    with locked(folder):
        return _edit_in_lock(folder, scope, wanted)


def _edit_in_lock(folder: Path, scope: Scope, wanted: Mapping[str, Mapping[str, Any]]) -> list[Change]:
    """Write `wanted` (file -> key -> value, None to remove) into one layer."""
    changes: list[Change] = []
    contents: dict[Path, bytes] = {}
    for name, values in wanted.items():
        path, where = folder / name, str(folder / name)
        target: Target | None = next((each for each in TARGETS if SCOPE_FILES[each] == name), None)
        if target is None or path.exists():
            before = _table_of(_read_model(folder) if target is None else read_toml(path), scope, where)
            raw = path.read_bytes().decode()
        else:
            before, raw = {}, scope_text(target)
        text = raw.removeprefix("\ufeff")
        for key, value in values.items():
            old = toml_text(before[key]) if key in before else None
            changes.append(Change(name, key, old, None if value is None else toml_text(value)))
            text = _edit_text(text, scope, key, _plain(value), where)
        # Taking out a key must be possible while another one is still wrong; whoever sets one wants it to count.
        if any(value is not None for value in values.values()):
            document = tomllib.loads(text)
            if target is None:
                _check_model(document, where)
            else:
                _check_scope(document, target, where)
        mark = "\ufeff" if raw.startswith("\ufeff") else ""
        if mark + text != raw:
            contents[path] = (mark + text).encode()
    write_all(contents)
    return changes


def _edit_text(text: str, scope: Scope, key: str, value: Any, where: str) -> str:
    """Set (or with None remove) one key in the text of a file, and nothing else."""
    expected = _with_table(text)
    table = expected[EPHEMERAL] if scope == "ephemeral" else expected
    if value is None:
        if key not in table:
            return text
        del table[key]
    else:
        table[key] = value
    ways: list[Callable[[], str]] = [lambda: _swap_default_line(text, key, value)] if scope == "global" else []
    ways.append(lambda: _edit_with_tomlkit(text, scope, key, value))
    for way in ways:
        edited = way()
        with contextlib.suppress(tomllib.TOMLDecodeError):
            if _with_table(edited) == expected:
                return edited
    raise RlvrError(f"{where}: {key} cannot be changed without touching the rest: edit the file by hand")


def _with_table(text: str) -> dict[str, Any]:
    """What the text says; no [ephemeral] table and an empty one say the same."""
    return {EPHEMERAL: {}, **tomllib.loads(text)}


def _swap_default_line(text: str, key: str, value: Any) -> str:
    """Let `key = value` take the place of the commented default, or the other way round; else the text as it was.

    Only the very line that `create` writes is replaced, never one that a person wrote.
    """
    known = {**keys(EvalConfig), **keys(TrainConfig)}
    if key not in known:
        return text
    default = default_line(known[key])
    if value is not None:
        pattern, line = re.escape(default), f"{key} = {toml_text(value)}"
    else:
        pattern, line = rf"{re.escape(key)} = [^#\r\n]*", default
    return re.sub(rf"(?m)^{pattern}(?=\r?$)", lambda match: line, text, count=1)


def _edit_with_tomlkit(text: str, scope: Scope, key: str, value: Any) -> str:
    import tomlkit  # slower to import than everything else here, and only needed for an edit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        if scope == "ephemeral" and EPHEMERAL not in document:
            document[EPHEMERAL] = tomlkit.table()
        table: Any = document[EPHEMERAL] if scope == "ephemeral" else document
        if value is None:
            del table[key]
        else:
            table[key] = value
        edited = tomlkit.dumps(document)
    except TOMLKitError:  # what tomllib reads and tomlkit does not: the caller sees that nothing was edited
        return text
    # tomlkit ends the lines that it adds with \n alone.
    is_crlf = "\r\n" in text and not re.search(r"(?<!\r)\n", text)
    return re.sub(r"(?<!\r)\n", "\r\n", edited) if is_crlf else edited
