"""What goes up to a VM in one archive, and how the pieces that come back become the files of a run."""

import json
import os
import re
import shutil
import tarfile
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from rlvr.colab import remote
from rlvr.cycles import RunFiles
from rlvr.errors import RlvrError

ROOT = Path(__file__).resolve().parent.parent.parent
DISTRIBUTION = "oeis-rlvr"
NOT_PINNED = ("torch",)
"""Left as the VM has them: its torch fits its driver."""

NOT_ON_THE_VM = ("textual", "argcomplete", "tomlkit")


def pinned_requirements() -> tuple[list[str], list[str]]:
    """What the VM installs: our dependencies at the versions that are installed here, and those of the extra "gpu".

    Raises:
        RlvrError: when this project is not installed, so that nobody knows its dependencies.
    """
    try:
        texts = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        raise RlvrError(
            "the project is not installed in this Python: run make setup, and use .venv/bin/python"
        ) from None
    pinned, gpu = [], []
    for requirement in map(Requirement, texts):
        if requirement.marker is not None:
            if requirement.marker.evaluate({"extra": "gpu"}) and not requirement.marker.evaluate({"extra": ""}):
                gpu.append(f"{requirement.name}{requirement.specifier}")
        elif requirement.name not in (*NOT_PINNED, *NOT_ON_THE_VM):
            pinned.append(f"{requirement.name}=={metadata.version(requirement.name)}")
    return pinned, gpu


def code_files() -> list[Path]:
    """The project's own files, relative to its root."""
    package = [path for path in (ROOT / "rlvr").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sorted(path.relative_to(ROOT) for path in [*ROOT.glob("*.py"), ROOT / "pyproject.toml", *package])


def make_bundle(
    target: Path, files: RunFiles, *, spec: dict[str, Any], parent: Path | None, checkpoint: Path | None
) -> None:
    """Write the archive: code, spec, the run's files as far as a resume needs them, the adapter of a warm start."""
    with tarfile.open(target, "w:gz", compresslevel=6) as archive:
        for path in code_files():
            archive.add(ROOT / path, f"code/{path}")
        archive.add(files.config, f"run/{files.config.name}")
        if checkpoint is not None:
            archive.add(checkpoint, f"run/{files.checkpoints.name}/{checkpoint.name}")
            for path in (files.metrics, files.trace, files.tasks):
                archive.add(path, f"run/{path.name}")
        if parent is not None:
            archive.add(parent, "parent/adapter")
            outcomes = RunFiles(parent.parent).outcomes
            if outcomes.exists():
                archive.add(outcomes, f"parent/{outcomes.name}")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "spec.json"
            file.write_text(json.dumps(spec), encoding="utf-8")
            archive.add(file, file.name)


def what_we_have(files: RunFiles) -> tuple[dict[str, list[Any]], list[str]]:
    """Of each file of the run its size and hash, and the checkpoints, for `remote.pack`."""
    have: dict[str, list[Any]] = {}
    for entry in os.scandir(files.folder):
        mirrored = entry.is_file(follow_symlinks=False) and entry.name not in remote.LOCAL_FILES
        if mirrored and not entry.name.startswith("."):
            size = entry.stat().st_size
            have[entry.name] = [size, remote.prefix_sha256(entry.path, size)]
    return have, remote.whole_checkpoints(files.checkpoints)


def apply_piece(piece: Path, manifest: dict[str, Any], files: RunFiles, kept_checkpoints: list[str]) -> None:
    """Add what a piece holds to the run's files, so that a reader never meets a file that became shorter or half.

    Raises:
        RlvrError: for a piece that does not fit, which leaves the files as they are.
    """
    with tempfile.TemporaryDirectory(dir=files.folder, prefix=".piece-") as folder:
        new = Path(folder)
        try:
            with tarfile.open(piece) as archive:
                archive.extractall(new, filter="data")
        except (tarfile.TarError, EOFError, OSError) as error:
            raise RlvrError(f"what came from the VM is broken ({error}): it is fetched again") from None
        for name, offset in manifest["files"].items():
            if not re.fullmatch(r"[\w.-]+", name) or name in remote.LOCAL_FILES:
                raise RlvrError(f"the VM sent a file {name!r} that a run does not have")
            part = new / "files" / name
            if name == remote.LOG_FILE:
                with files.log.open("ab") as log:
                    log.write(part.read_bytes())
            add_bytes(files.folder / name, part, offset)
        for name in manifest["checkpoints"]:
            files.checkpoints.mkdir(exist_ok=True)
            replace_folder(new / "checkpoints" / name, files.checkpoints / name)
        if manifest["adapter"]:
            replace_folder(new / "adapter", files.adapter)
    for name in remote.whole_checkpoints(files.checkpoints):
        if kept_checkpoints and name not in kept_checkpoints:
            shutil.rmtree(files.checkpoints / name)


def add_bytes(path: Path, part: Path, offset: int) -> None:
    """Append a part at `offset`, which has to be the file's end; at 0 the part is the whole file."""
    if offset == 0:
        os.replace(part, path)
        return
    if path.stat().st_size != offset:
        raise RlvrError(f"{path}: changed while it was mirrored: it is fetched again")
    with path.open("ab") as file:
        file.write(part.read_bytes())


def replace_folder(new: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(new, folder)
