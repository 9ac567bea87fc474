"""The config files of a model folder as files: their first text with a comment for every key, and safe replacement.

`model_text(values)` and `scope_text("train")` are what `layers.create` writes; `write_all` replaces several files or
none, under `locked`.

Not here: what the files mean (`layers.py`).
"""

import contextlib
import fcntl
import os
import stat
import textwrap
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from rlvr.config import EvalConfig, Key, TrainConfig, keys
from rlvr.cycles import ModelFiles
from rlvr.errors import RlvrError

_NAMES = ModelFiles(Path())
MODEL_FILE = _NAMES.model_toml.name
SCOPE_FILES = {"train": _NAMES.training_toml.name, "eval": _NAMES.eval_toml.name}
WORDS = {"train": "training", "eval": "evaluation"}
EPHEMERAL = "ephemeral"


def toml_text(value: Any) -> str:
    """The value on one line of TOML."""
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_text, value)) + "]"
    return tomli_w.dumps({"_": value}).removeprefix("_ = ").rstrip("\n")


_MODEL_HEADER = """\
# What this model is trained and evaluated with, unless training.toml, eval.toml or a flag says otherwise.
#
# A line that starts with "# key =" shows a built-in default; remove the "# " to set the key, or run
#   rlvrctl.py config set --scope global key=value
# `rlvrctl.py config show --origin` lists every key with its value and the file that it comes from.
"""

_SCOPE_HEADER = """\
# {Word} of this model: what differs from model.toml, for {word} only.
#
# Later ones win: built-in defaults, model.toml, this file, the table [ephemeral] below, flags of the command.
#   rlvrctl.py config set --scope permanent{flag} key=value     sets a key here
#   rlvrctl.py config set --scope ephemeral{flag} key=value     sets it in [ephemeral]
# The keys and what they may hold are in model.toml.
#
# Keys of every {run}:

[ephemeral]
# Keys of the next {run} only; they are removed when it has succeeded:
"""


def scope_text(target: str) -> str:
    """A `training.toml` (target "train") or `eval.toml` ("eval") that sets nothing and says what it is for."""
    word = WORDS[target]
    return _SCOPE_HEADER.format(
        word=word,
        Word=word.capitalize(),
        flag=" --for eval" if target == "eval" else "",
        run="cycle" if target == "train" else "eval",
    )


def model_text(values: Mapping[str, Any]) -> str:
    """A `model.toml` with every key of both programs explained, those of `values` set, the others commented out."""
    train, evaluation = keys(TrainConfig), keys(EvalConfig)
    shared = {name: key for name, key in train.items() if name in evaluation}
    groups = {
        "Training and evaluation": shared,
        "Training": {name: key for name, key in train.items() if name not in shared},
        "Evaluation": {name: key for name, key in evaluation.items() if name not in shared},
    }
    lines = [_MODEL_HEADER]
    for title, group in groups.items():
        lines.append(f"# ---- {title} {'-' * (110 - len(title))}\n")
        for name, key in group.items():
            comment = f"{key.help} ({key.range_text})" if key.range_text else key.help
            if name in shared and train[name].help != evaluation[name].help:
                comment += f", and {evaluation[name].help}: set here, it is both; training.toml and eval.toml tell "
                comment += "them apart"
            if key.frozen:
                comment += "; fixed once this model has an adapter"
            lines += textwrap.wrap(
                f"{comment[0].upper()}{comment[1:]}.", 117, initial_indent="# ", subsequent_indent="# "
            )
            lines.append(f"{name} = {toml_text(values[name])}" if name in values else default_line(key))
            lines.append("")
    return "\n".join(lines)


def default_line(key: Key) -> str:
    """The line of `model.toml` that stands for a key that is not set."""
    return f"# {key.name} = {toml_text(key.default)}"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the model folder, so that of two edits at the same instant none is lost."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise RlvrError(f"{folder}: no such model folder: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Replace all of these files or none; a reader meets the old or the new one. Mode and symlinks stay.

    Raises:
        RlvrError: naming the file that cannot be written; all are as they were then.
    """
    prepared: list[tuple[Path, Path, bytes | None]] = []
    replaced: list[tuple[Path, bytes | None]] = []
    path = Path()
    try:
        for path, content in contents.items():
            real = path.resolve()
            old = real.read_bytes() if real.exists() else None
            temporary = real.with_name(f".{real.name}.{uuid.uuid4().hex}.tmp")
            prepared.append((real, temporary, old))
            with temporary.open("xb") as file:
                if old is not None:
                    os.fchmod(file.fileno(), stat.S_IMODE(real.stat().st_mode))
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for real, temporary, old in prepared:
            path = real
            os.replace(temporary, real)
            replaced.append((real, old))
    except OSError as error:
        for real, old in replaced:
            with contextlib.suppress(OSError):
                if old is None:
                    real.unlink()
                else:
                    real.write_bytes(old)
        raise RlvrError(f"{path}: cannot be written: {error.strerror}: nothing was changed") from None
    finally:
        for _, temporary, _ in prepared:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
