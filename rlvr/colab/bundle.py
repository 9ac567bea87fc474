"""What goes up to a VM in one archive, and how the pieces that come back become the files of a run."""

import json
import os
import re
import shutil
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.version import Version

from rlvr.colab import remote
from rlvr.colab.client import scrub
from rlvr.config import TrainConfig, read_layers, resolve, write_snapshot
from rlvr.cycles import Run, RunFiles
from rlvr.errors import RlvrError
from rlvr.provenance import git_revision

ROOT = Path(__file__).resolve().parent.parent.parent
DISTRIBUTION = "oeis-rlvr"
NOT_PINNED = ("torch",)
"""Left as the VM has them: its torch fits its driver."""

CODE = "code"
"""The folder on the VM that the project's own files go to."""

MODULES = ("oeis_parser", "oeis_rlvr", "gemma4_oeis_rlvr", "eval_oeis", "rlvrctl", "rlvrviz", "rlvrtui")
"""The programs beside the package: in site-packages they have neighbours."""

CORPUS_URL = os.environ.get("RLVR_COLAB_CORPUS_URL", "")
"""Where the VM fetches the corpus from; empty: where `corpus fetch` does."""

PIECE_PREFIX = ".piece-"
"""What the folders begin with in which a piece is unpacked, beside the files that it is for."""

NOT_ON_THE_VM = ("textual", "argcomplete", "tomlkit")


class Requirements(NamedTuple):
    """What the VM installs: our dependencies at the versions that are here, their ranges, and those of a GPU."""

    pinned: list[str]
    ranges: list[str]
    gpu: list[str]


def requirements() -> Requirements:
    """Read from what is installed here.

    Raises:
        RlvrError: when this project is not installed, so that nobody knows its dependencies.
    """
    try:
        texts = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        raise RlvrError(
            "the project is not installed in this Python: run make setup, and use .venv/bin/python"
        ) from None
    found = Requirements([], [], [])
    for requirement in map(Requirement, texts):
        ranged = f"{requirement.name}{requirement.specifier}"
        if requirement.marker is not None:
            if requirement.marker.evaluate({"extra": "gpu"}) and not requirement.marker.evaluate({"extra": ""}):
                found.gpu.append(ranged)
        elif requirement.name not in NOT_ON_THE_VM:
            found.ranges.append(ranged)
            if requirement.name not in NOT_PINNED:
                # Without a local part such as +cpu, which no index has.
                found.pinned.append(f"{requirement.name}=={Version(metadata.version(requirement.name)).public}")
    return found


def code_files() -> list[Path]:
    """The project's own files, relative to its root."""
    package = [path for path in (ROOT / "rlvr").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sorted(path.relative_to(ROOT) for path in [*(ROOT / f"{name}.py" for name in MODULES), *package])


def cycle_there(run: Run) -> str:
    """Where the folder of a run lies on the VM, as its own log names it."""
    return f"{run.training_dir.name}/{run.model}/{run.name}"


def parent_there(run: Run, adapter: Path | None) -> str:
    """Where the adapter that a run starts from lies on the VM: one from elsewhere has a place of its own."""
    if adapter is None:
        return ""
    training = run.training_dir.resolve()
    if adapter.resolve().is_relative_to(training):
        return f"{run.training_dir.name}/{adapter.resolve().relative_to(training)}"
    return "parent/adapter"


def check_config(config: TrainConfig) -> None:
    """Raise RlvrError for a config that names something of this machine."""
    make_spec(config, "")


def make_spec(config: TrainConfig, cycle: str, parent: str = "", *, resume: bool = False) -> dict[str, Any]:
    """What the supervisor on the VM has to do.

    `cycle` and `parent` are folders there, with `parent` empty for a cold start.

    Raises:
        RlvrError: for a config that names something of this machine.
    """
    needed = requirements()
    arguments = ["--config", f"{cycle}/config.toml", "--cycle", cycle]
    arguments += ["--parent", parent] if parent else []
    arguments += ["--resume"] if resume else []
    corpus_here = config.corpus_dir
    if corpus_here:
        path = Path(corpus_here).expanduser().resolve()
        if not path.is_relative_to(ROOT / "rlvr"):
            raise RlvrError(
                f"corpus_dir = {corpus_here!r} is a folder of this machine: leave it empty, then the VM fetches the "
                "whole OEIS, or name the bundled sample"
            )
        arguments += ["--corpus-dir", f"{CODE}/{path.relative_to(ROOT)}"]
    if Path(config.base_model).expanduser().is_dir() and config.base_model != "tiny":
        raise RlvrError(f"base_model = {config.base_model!r} is a folder of this machine: name a model of the Hub")
    revision = git_revision(ROOT)
    fetch = ["--url", CORPUS_URL] if CORPUS_URL else []
    return {
        "requirements": needed.pinned,
        "ranges": needed.ranges,
        "gpu_requirements": needed.gpu,
        "fetch_corpus": fetch if config.environment == "oeis" and not corpus_here else None,
        "cycle": cycle,
        "parent": parent,
        "arguments": arguments,
        "about": {"git_revision": revision} if revision else {},
    }


def make_bundle(
    target: Path, files: RunFiles, *, spec: dict[str, Any], parent: Path | None, checkpoint: Path | None
) -> None:
    """Write the archive: code, spec, the run's files as far as a resume needs them, the adapter of a warm start.

    They lie as `remote.py` says; spec["cycle"] and spec["parent"] name the folders of the run and of that adapter.
    """
    with tarfile.open(target, "w:gz", compresslevel=6) as archive:
        for path in code_files():
            archive.add(ROOT / path, f"{CODE}/{path}")
        cycle = spec["cycle"]
        link = tarfile.TarInfo("run")
        link.type, link.linkname = tarfile.SYMTYPE, cycle
        archive.addfile(link)
        archive.add(files.config, f"{cycle}/{files.config.name}")
        if checkpoint is not None:
            archive.add(checkpoint, f"{cycle}/{files.checkpoints.name}/{checkpoint.name}")
            for path in (files.metrics, files.trace, files.tasks):
                if path.exists():
                    archive.add(path, f"{cycle}/{path.name}")
        if parent is not None:
            archive.add(parent, spec["parent"])
            outcomes = RunFiles(parent.parent).outcomes
            if outcomes.exists():
                archive.add(outcomes, f"{Path(spec['parent']).parent}/{outcomes.name}")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "spec.json"
            file.write_text(json.dumps(spec), encoding="utf-8")
            archive.add(file, file.name)


def cut(archive: Path, part_bytes: int) -> list[Path]:
    """The archive in parts of at most `part_bytes`, numbered, beside it: a request carries one whole file."""
    parts = []
    with archive.open("rb") as file:
        while block := file.read(part_bytes):
            parts.append(archive.with_name(f"{archive.name}.{len(parts):03d}"))
            parts[-1].write_bytes(block)
    archive.unlink()
    return parts


def clear_leftovers(files: RunFiles) -> None:
    """Take away what a mirror that was killed left."""
    for path in files.folder.glob(f"{PIECE_PREFIX}*"):
        shutil.rmtree(path, ignore_errors=True)


def what_we_have(files: RunFiles) -> tuple[dict[str, list[Any]], list[str]]:
    """Of each file of the run its size and hash, and the checkpoints, for `remote.pack`."""
    have: dict[str, list[Any]] = {}
    for entry in os.scandir(files.folder):
        mirrored = entry.is_file(follow_symlinks=False) and entry.name not in remote.LOCAL_FILES
        if mirrored and not entry.name.startswith("."):
            size = entry.stat().st_size
            have[entry.name] = [size, remote.prefix_sha256(entry.path, size)]
    return have, remote.whole_checkpoints(files.checkpoints)


def join(parts: Sequence[Path], piece: Path, sha256: str) -> None:
    """Put the parts of a piece together.

    Raises:
        RlvrError: when they do not make up what the VM has packed.
    """
    with piece.open("wb") as file:
        for part in parts:
            file.write(part.read_bytes())
            part.unlink()
    if remote.prefix_sha256(piece, piece.stat().st_size) != sha256:
        raise RlvrError("what came from the VM is not whole: it is fetched again")


def apply_piece(piece: Path, manifest: dict[str, Any], files: RunFiles, kept_checkpoints: list[str]) -> None:
    """Add what a piece holds to the run's files, so that a reader never meets a file that became shorter or half.

    Raises:
        RlvrError: for a piece that does not fit, which leaves the files as they are.
    """
    with tempfile.TemporaryDirectory(dir=files.folder, prefix=PIECE_PREFIX) as folder:
        new = Path(folder)
        try:
            with tarfile.open(piece) as archive:
                archive.extractall(new, filter="data")
        except (tarfile.TarError, EOFError, OSError) as error:
            raise RlvrError(f"what came from the VM cannot be unpacked here ({error}): it is fetched again") from None
        for name in [*manifest["files"], *manifest["checkpoints"]]:
            if not re.fullmatch(r"\w[\w.-]*", name) or name in remote.LOCAL_FILES:
                raise RlvrError(f"the VM sent a file {name!r} that a run does not have")
        # The checkpoints first: with them, what they do not know of can be made again.
        for name in manifest["checkpoints"]:
            files.checkpoints.mkdir(exist_ok=True)
            replace_folder(new / "checkpoints" / name, files.checkpoints / name)
        for name, offset in manifest["files"].items():
            add_bytes(files.folder / name, new / "files" / name, offset)
        if manifest["adapter"]:
            replace_folder(new / "adapter", files.adapter)
        log = new / "files" / remote.LOG_FILE
        if log.exists():
            with files.log.open("ab") as file:
                file.write(
                    scrub(log.read_text(encoding="utf-8", errors="surrogateescape")).encode("utf-8", "surrogateescape")
                )
    for name in remote.whole_checkpoints(files.checkpoints):
        if kept_checkpoints and name not in kept_checkpoints:
            shutil.rmtree(files.checkpoints / name)


def keep_provenance(files: RunFiles, about: dict[str, Any], parent: str) -> None:
    """Write into the run's own config what the trainer on the VM recorded: versions, data, machine."""
    here = tomllib.loads(files.config.read_text(encoding="utf-8")).get("provenance", {})
    about = {**about, "parent": parent}
    corpus = Path(about.get("corpus", ""))
    if corpus.parts[:1] == (CODE,):  # the bundled sample, which is here too
        about["corpus"] = str(ROOT.joinpath(*corpus.parts[1:]))
    if "num_tasks" in about and about != here:
        config, origins = resolve(TrainConfig, read_layers(files.config, TrainConfig))
        write_snapshot(files.config, config, origins, about)


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
