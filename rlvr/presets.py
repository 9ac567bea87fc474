"""Named bundles of keys for any model: the built-in ones, and one's own as files of a folder.

`preset_values("tiny", PRESETS_DIR)` gives the keys, `save_preset` writes a file of its own for `list_presets` to find.

Not here: the built-in values (`config.py`); how a bundle gets into a model's files (`layers.py`).
"""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rlvr.config import PRESET_SUMMARIES, PRESETS, read_toml
from rlvr.errors import RlvrError
from rlvr.layer_files import toml_text, write_all
from rlvr.layers import check_any

SUMMARY = "summary"
"""What a preset's file may hold beside keys: one line for people."""


class Preset(NamedTuple):
    """`file` is None for a built-in one; `error` says why a file cannot be used."""

    name: str
    summary: str
    values: dict[str, Any]
    file: Path | None = None
    error: str = ""


def preset_values(name: str, presets_dir: Path) -> dict[str, Any]:
    """The checked values of a preset; see `find_preset`."""
    return find_preset(name, presets_dir).values


def find_preset(name: str, presets_dir: Path) -> Preset:
    """The preset of that name, built in or a file of `presets_dir`.

    Raises:
        RlvrError: for an unknown one, with the nearest name, and for anything wrong in its file.
    """
    if name in PRESETS:
        return Preset(name, PRESET_SUMMARIES[name], dict(PRESETS[name]))
    own = {file.stem: file for file in presets_dir.glob("*.toml")}
    if name not in own:
        known = [*PRESETS, *sorted(own)]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        raise RlvrError(f"no preset {name!r}, neither built in nor in {presets_dir}/: {hint}")
    document = read_toml(own[name])
    summary = document.pop(SUMMARY, "")
    return Preset(name, str(summary), check_any(document, str(own[name])), own[name])


def list_presets(presets_dir: Path) -> list[Preset]:
    """All presets, the built-in ones first; one whose file is wrong is listed with its error."""
    found = [find_preset(name, presets_dir) for name in PRESETS]
    for file in sorted(presets_dir.glob("*.toml")):
        if file.stem in PRESETS:
            found.append(Preset(file.name, "", {}, file, f"{file}: {file.stem} is built in: rename this file"))
            continue
        try:
            found.append(find_preset(file.stem, presets_dir))
        except RlvrError as error:
            found.append(Preset(file.stem, "", {}, file, str(error)))
    return found


def check_free(presets_dir: Path, name: str, *, replace: bool = False) -> Path:
    """The file that a new preset of this name gets.

    Raises:
        RlvrError: for a name that is reserved, taken or cannot be a file's.
    """
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,63}", name):
        raise RlvrError(f"preset name {name!r}: use letters, digits, '.', '-' and '_'")
    if name in PRESETS:
        raise RlvrError(f"preset {name!r} is built in: choose another name")
    file = presets_dir / f"{name}.toml"
    if file.exists() and not replace:
        raise RlvrError(f"{file}: exists already: choose another name, or replace it with --force")
    return file


def save_preset(
    presets_dir: Path, name: str, values: Mapping[str, Any], summary: str = "", *, replace: bool = False
) -> Path:
    """Write a preset of one's own; returns its file.

    Raises:
        RlvrError: like `check_free`, for a bad value, and for a folder that is read-only.
    """
    file = check_free(presets_dir, name, replace=replace)
    checked = check_any(values, f"preset {name}")
    lines = [f"# Use it with: rlvrctl.py preset apply {name}, or rlvrctl.py init --preset {name}"]
    lines += [f"{key} = {toml_text(value)}" for key, value in {SUMMARY: summary, **checked}.items()]
    try:
        presets_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RlvrError(f"{presets_dir}: cannot be made: {error.strerror}") from None
    write_all({file: "".join(f"{line}\n" for line in lines).encode()})
    return file
