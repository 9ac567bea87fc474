"""The folders under `training/`: models, runs, their files, numbers and links. Only this module knows names there.

    training/presets/NAME.toml              bundles of keys, for any model
    training/MODEL/model.toml ...           the layers of a model's config
    training/MODEL/003/                     a cycle: run "003"
    training/MODEL/003/evals/base+001/      an evaluation, under the highest checkpoint it compares
    training/MODEL/001/evals/003 -> ...     relative links to it from every earlier participant, `base/evals/003` too
    training/MODEL/auto/001/                an auto run: train, evaluate, again
    training/.trash/                        what was removed

It starts no process and reads no config; making the folder of a run is `folders.py`, what a run is doing `status.py`,
starting one `control.py`.
"""

import contextlib
import difflib
import fcntl
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rlvr.errors import RlvrError
from rlvr.files import replace_file
from rlvr.status import COLAB_NAME, read_status

TRAINING_DIR = Path("training")
STANDALONE_DIR = Path("gemma_4_oeis_lora")
"""Where the trainer saves, and the evaluator looks, when both run without any orchestration."""

PRESETS_DIR = TRAINING_DIR / "presets"
TRASH_DIR = TRAINING_DIR / ".trash"
LAST_MODEL_FILE = TRAINING_DIR / ".last-model"
COLAB_FILE = TRAINING_DIR / ".colab.json"
"""The rented VM that is up for whatever is sent to it."""
COLAB_RATES_FILE = TRAINING_DIR / ".colab-rates.json"
"""What an hour of each GPU took last time, in compute units."""

CYCLE_NAME = re.compile(r"\d{3,}")
RUN_NAME = re.compile(r"(\d+|base|auto)/.+|\d+|latest|live")
CHECKPOINT_SUFFIXES = (".json", ".pt", ".pth", ".safetensors")
BASE = "base"
ALONE = "alone"
"""Name of an evaluation of one checkpoint, which is compared with nobody."""

Kind = Literal["train", "eval", "auto"]


@dataclass(frozen=True)
class RunFiles:
    """The paths of one run, whatever its kind; which of them exist depends on it."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "config.toml"

    @property
    def status(self) -> Path:
        return self.folder / "status.json"

    @property
    def launch(self) -> Path:
        return self.folder / "launch.json"

    @property
    def log(self) -> Path:
        return self.folder / "run.log"

    @property
    def label(self) -> Path:
        return self.folder / "label.txt"

    @property
    def notes(self) -> Path:
        return self.folder / "notes.md"

    @property
    def adapter(self) -> Path:
        return self.folder / "adapter"

    @property
    def outcomes(self) -> Path:
        return self.folder / "outcomes.json"

    @property
    def parent(self) -> Path:
        return self.folder / "parent"

    @property
    def tasks(self) -> Path:
        return self.folder / "tasks.txt"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics.jsonl"

    @property
    def trace(self) -> Path:
        return self.folder / "trace.jsonl"

    @property
    def completions(self) -> Path:
        return self.folder / "completions.jsonl"

    @property
    def evaluation(self) -> Path:
        return self.folder / "eval.json"

    @property
    def rounds(self) -> Path:
        return self.folder / "rounds.jsonl"

    @property
    def colab(self) -> Path:
        return self.folder / COLAB_NAME

    @property
    def evals(self) -> Path:
        return self.folder / "evals"


class StandaloneFiles(RunFiles):
    """The paths of a training run that belongs to no model: its folder is the adapter, the outcomes lie beside it."""

    @property
    def adapter(self) -> Path:
        return self.folder

    @property
    def outcomes(self) -> Path:
        return self.folder.parent / "outcomes.json"


@dataclass(frozen=True)
class ModelFiles:
    """The config files of a model."""

    folder: Path

    @property
    def model_toml(self) -> Path:
        return self.folder / "model.toml"

    @property
    def training_toml(self) -> Path:
        return self.folder / "training.toml"

    @property
    def eval_toml(self) -> Path:
        return self.folder / "eval.toml"


@dataclass(frozen=True)
class Run:
    """One run of a model: `name` is what a user calls it, such as "003", "003/evals/base" or "auto/001"."""

    model: str
    name: str
    kind: Kind
    folder: Path

    @property
    def files(self) -> RunFiles:
        return RunFiles(self.folder)

    @property
    def training_dir(self) -> Path:
        """The `training/` that this run lies in, as an absolute path."""
        return Path(os.path.abspath(self.folder)).parents[len(Path(self.name).parts)]

    def __str__(self) -> str:
        return f"{self.model}/{self.name}"


# ---------------------------------------------------------------------------------------------------------------------
# Models


def is_model(folder: Path) -> bool:
    """A folder with a model's config, or with a numbered cycle that the trainer was pointed at directly."""
    if ModelFiles(folder).model_toml.is_file():
        return True
    with contextlib.suppress(OSError):
        return any(CYCLE_NAME.fullmatch(name) for name in os.listdir(folder))
    return False


def model_names() -> list[str]:
    """The models under `training/`, sorted."""
    try:
        names = sorted(entry.name for entry in os.scandir(TRAINING_DIR) if entry.is_dir())
    except FileNotFoundError:
        return []
    hidden = {PRESETS_DIR.name}
    return [name for name in names if name not in hidden and name[0] != "." and is_model(TRAINING_DIR / name)]


def check_model_name(name: str) -> None:
    """Raises RlvrError for a name that cannot be a model's folder."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,63}", name) or name == PRESETS_DIR.name or CYCLE_NAME.fullmatch(name):
        raise RlvrError(
            f"model name {name!r}: use letters, digits, '.', '-' and '_', not only digits, nor {PRESETS_DIR.name!r}"
        )


def model_dir(name: str) -> Path:
    """The folder of an existing model.

    Raises:
        RlvrError: naming the nearest one, or how to make it.
    """
    known = model_names()
    if name in known:
        return TRAINING_DIR / name
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"make it with rlvrctl.py init --model {name}"
    raise RlvrError(f"{TRAINING_DIR / name}: no such model: {hint}")


def choose_model(name: str | None) -> str:
    """The model that a command means: the one it names, the only one, or the one last used.

    Raises:
        RlvrError: when there is none, or several and none was used yet.
    """
    if name:
        return model_dir(name).name
    known = model_names()
    if len(known) == 1:
        return known[0]
    if not known:
        raise RlvrError(f"no model under {TRAINING_DIR.resolve()}: make one with rlvrctl.py init --model NAME")
    with contextlib.suppress(OSError):
        last = LAST_MODEL_FILE.read_text(encoding="utf-8").strip()
        if last in known:
            return last
    raise RlvrError(f"several models ({', '.join(known)}): say which with --model NAME")


def remember_model(name: str) -> None:
    """Make it the one that a command without --model means."""
    with contextlib.suppress(OSError):
        replace_file(LAST_MODEL_FILE, f"{name}\n".encode())


@contextlib.contextmanager
def locked(training_dir: Path = TRAINING_DIR) -> Iterator[None]:
    """Hold the lock of everything under `training/`: one process at a time makes, starts, ends or removes runs.

    It cannot be taken twice by the same process.
    """
    with (training_dir / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# ---------------------------------------------------------------------------------------------------------------------
# Runs


def cycle_runs(model: str) -> list[Run]:
    """The cycles of a model by number."""
    folder = TRAINING_DIR / model
    numbers = sorted(int(name) for name in os.listdir(folder) if is_cycle_name(name))
    return [Run(model, f"{number:03d}", "train", folder / f"{number:03d}") for number in numbers]


def is_cycle_name(name: str) -> bool:
    """`003` or `1234`, not `0003`."""
    return CYCLE_NAME.fullmatch(name) is not None and name == f"{int(name):03d}"


def auto_runs(model: str) -> list[Run]:
    folder = TRAINING_DIR / model / "auto"
    names = [name for name in os.listdir(folder) if is_cycle_name(name)] if folder.is_dir() else []
    return [Run(model, f"auto/{name}", "auto", folder / name) for name in sorted(names, key=int)]


def eval_runs(model: str, checkpoint: str | None = None) -> list[Run]:
    """The evaluations of a model, each once: links from earlier participants are left out."""
    owners = [checkpoint] if checkpoint else [BASE, *(run.name for run in cycle_runs(model))]
    found = []
    for owner in owners:
        folder = RunFiles(TRAINING_DIR / model / owner).evals
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            found += [
                Run(model, f"{owner}/{folder.name}/{entry.name}", "eval", folder / entry.name)
                for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)
                if entry.is_dir(follow_symlinks=False) and entry.name[0] != "."
            ]
    return found


def all_runs(model: str) -> list[Run]:
    """Every run of a model: cycles, evaluations, auto runs."""
    return [*cycle_runs(model), *eval_runs(model), *auto_runs(model)]


def find_run(text: str, model: str | None = None) -> Run:
    """The run that `text` means: `003`, `3`, `latest`, `live`, `003/evals/base`, `auto/001`, `MODEL/003`, or a path.

    "latest" is the newest cycle, "live" the newest one that is running.

    Raises:
        RlvrError: naming the nearest run there is.
    """
    folder = Path(text)
    if (run := run_at(folder)) is not None:
        return run
    first, _, rest = text.partition("/")
    if rest and model in (None, first):
        if first in model_names():
            model, text = first, rest
        elif not RUN_NAME.match(text) and RUN_NAME.fullmatch(rest):
            model_dir(first)  # there is none
    name = choose_model(model)
    if text == "live":
        return live_run(name)
    cycles = cycle_runs(name)
    if text == "latest":
        if not cycles:
            raise RlvrError(f"model {name!r} has no cycle yet: start one with rlvrctl.py train --model {name}")
        return cycles[-1]
    wanted = re.sub(r"^\d+", lambda number: f"{int(number[0]):03d}", text.strip("/"))
    runs = all_runs(name)
    for run in runs:
        if run.name == wanted:
            return run
    # A link such as 001/evals/003 leads to the evaluation itself.
    if (run := run_at(TRAINING_DIR / name / wanted)) is not None:
        return run
    near = difflib.get_close_matches(wanted, [run.name for run in runs] + ["latest", "live"], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "rlvrctl.py ps -a lists the runs"
    raise RlvrError(f"model {name!r} has no run {text!r}: {hint}")


def live_run(model: str) -> Run:
    """The newest run of a model that is running."""
    living = [
        (status.started or 0.0, run)
        for run in all_runs(model)
        if (status := read_status(run.files.status)) is not None and status.state == "running"
    ]
    if not living:
        raise RlvrError(f"no run of model {model!r} is running: rlvrctl.py ps -a lists all")
    return max(living, key=lambda pair: pair[0])[1]


def default_run(model: str | None = None) -> Run:
    """The run that is running, else the newest cycle, of the model that is meant.

    Raises:
        RlvrError: when there is neither.
    """
    name = choose_model(model)
    with contextlib.suppress(RlvrError):
        return live_run(name)
    return find_run("latest", name)


def run_at(folder: Path) -> Run | None:
    """The run whose folder this is, by where it lies: NNN, NNN/evals/NAME or auto/NNN; None for anything else."""
    if not folder.is_dir():
        return None
    # Names are taken from the path as it is written: training/ or a model's folder may be a link to a larger disk.
    # An evaluation's folder that is a link belongs to a later participant, where the link leads.
    absolute = os.path.abspath(folder)
    if os.path.basename(os.path.dirname(absolute)) == "evals" and os.path.islink(absolute):
        folder = Path(os.path.dirname(folder), os.readlink(absolute))
        absolute = os.path.abspath(folder)
        folder = Path(os.path.normpath(folder))
    parts = Path(absolute).parts
    if len(parts) >= 4 and parts[-2] == "evals":
        return Run(parts[-4], "/".join(parts[-3:]), "eval", folder)
    if len(parts) >= 3 and parts[-2] == "auto" and CYCLE_NAME.fullmatch(parts[-1]):
        return Run(parts[-3], "/".join(parts[-2:]), "auto", folder)
    if len(parts) >= 2 and CYCLE_NAME.fullmatch(parts[-1]):
        return Run(parts[-2], parts[-1], "train", folder)
    return None


def read_label(run: Run) -> str:
    """The short label that a person gave to a run, or ""."""
    try:
        return run.files.label.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


# ---------------------------------------------------------------------------------------------------------------------
# Checkpoints


def has_adapter(run: Run) -> bool:
    return (run.files.adapter / "adapter_config.json").is_file()


def latest_adapter(model: str, before: str = "") -> Run | None:
    """The newest cycle with an adapter, of those numbered below `before` when it is given."""
    cycles = [run for run in cycle_runs(model) if has_adapter(run) and (not before or int(run.name) < int(before))]
    return cycles[-1] if cycles else None


def first_adapter(model: str) -> Run | None:
    """The cycle whose adapter froze the shape of all later ones."""
    return next((run for run in cycle_runs(model) if has_adapter(run)), None)


def find_adapter(name: str, model: str = "") -> Path:
    """The adapter folder that `name` stands for: a folder, a cycle's folder, or a cycle's number under a model.

    Raises:
        RlvrError: saying where it was looked for.
    """
    folders = [Path(name)]
    if name.isdigit():
        models = [TRAINING_DIR / model] if model else sorted(TRAINING_DIR.glob("*/"))
        folders += [folder / f"{int(name):03d}" for folder in models]
    candidates = [adapter for folder in folders for adapter in (folder, RunFiles(folder).adapter)]
    found = [adapter for adapter in candidates if (adapter / "adapter_config.json").is_file()]
    if len(found) > 1 and found[0].parent != Path(name) and found[0] != Path(name):
        raise RlvrError(f"adapter {name!r} may be any of {', '.join(map(str, found))}: name the model or the folder")
    if found:
        return found[0]
    looked = ", ".join(map(str, folders))
    raise RlvrError(
        f"no adapter {name!r}: looked in {looked}: train one first, or give a folder with adapter_config.json"
    )


def link_parent(files: RunFiles, parent: Path) -> None:
    """Record the warm start of a cycle as a relative link, so that the model's folder can be moved whole."""
    files.parent.unlink(missing_ok=True)
    files.parent.symlink_to(os.path.relpath(parent.resolve(), files.folder.resolve()))


def whole_checkpoints(files: RunFiles) -> list[Path]:
    """The checkpoints that a run can go on from, by step; one that a power cut left half written is not among them."""
    found = sorted(files.checkpoints.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    return [checkpoint for checkpoint in found if is_whole(checkpoint)]


def is_whole(checkpoint: Path) -> bool:
    """Was this checkpoint written to its end? transformers writes trainer_state.json last."""
    try:
        json.loads((checkpoint / "trainer_state.json").read_bytes())
        # After a power cut a file may have its name and not its bytes.
        return all(path.stat().st_size for path in checkpoint.rglob("*") if path.suffix in CHECKPOINT_SUFFIXES)
    except (OSError, ValueError):
        return False


def checkpoint_name(adapter: Path | None) -> str:
    """What a checkpoint is called in a comparison: "base", a cycle's number, or its folder's name."""
    if adapter is None:
        return BASE
    parts = [part for part in adapter.resolve().parts if part != RunFiles(adapter).adapter.name]
    return parts[-1] if parts else BASE
