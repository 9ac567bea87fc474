"""The folders under `training/`: models, runs, their files, numbers and links. Only this module knows names there.

    training/presets/NAME.toml              bundles of keys, for any model
    training/MODEL/model.toml ...           the layers of a model's config
    training/MODEL/003/                     a cycle: run "003"
    training/MODEL/003/evals/base+001/      an evaluation, under the highest checkpoint it compares
    training/MODEL/001/evals/003 -> ...     relative links to it from every earlier participant, `base/evals/003` too
    training/MODEL/auto/001/                an auto run: train, evaluate, again
    training/.trash/                        what was removed

It starts no process and reads no config; what a run is doing is `status.py`, starting one `supervisor.py`.
"""

import contextlib
import difflib
import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rlvr.errors import RlvrError
from rlvr.status import LIVING, StatusFile, new_status, read_status

TRAINING_DIR = Path("training")
STANDALONE_DIR = Path("gemma_4_oeis_lora")
"""Where the trainer saves, and the evaluator looks, when both run without any orchestration."""

PRESETS_DIR = TRAINING_DIR / "presets"
TRASH_DIR = TRAINING_DIR / ".trash"
LAST_MODEL_FILE = TRAINING_DIR / ".last-model"

CYCLE_NAME = re.compile(r"\d{3,}")
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
        LAST_MODEL_FILE.write_text(name + "\n", encoding="utf-8")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder: one process at a time counts numbers or takes its turn there."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# ---------------------------------------------------------------------------------------------------------------------
# Runs


def cycle_runs(model: str) -> list[Run]:
    """The cycles of a model by number."""
    folder = TRAINING_DIR / model
    numbers = sorted(int(name) for name in os.listdir(folder) if CYCLE_NAME.fullmatch(name))
    return [Run(model, f"{number:03d}", "train", folder / f"{number:03d}") for number in numbers]


def auto_runs(model: str) -> list[Run]:
    folder = TRAINING_DIR / model / "auto"
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    return [Run(model, f"auto/{name}", "auto", folder / name) for name in names if CYCLE_NAME.fullmatch(name)]


def eval_runs(model: str, checkpoint: str | None = None) -> list[Run]:
    """The evaluations of a model, each once: links from earlier participants are left out."""
    owners = [checkpoint] if checkpoint else ["base", *(run.name for run in cycle_runs(model))]
    found = []
    for owner in owners:
        folder = RunFiles(TRAINING_DIR / model / owner).evals
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            found += [
                Run(model, f"{owner}/{folder.name}/{entry.name}", "eval", folder / entry.name)
                for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)
                if entry.is_dir(follow_symlinks=False)
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
    if model is None and rest and first in model_names():
        model, text = first, rest
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


def run_at(folder: Path) -> Run | None:
    """The run whose folder this is, by where it lies: NNN, NNN/evals/NAME or auto/NNN; None for anything else."""
    if not folder.is_dir():
        return None
    parts = folder.resolve().parts
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
        return run.files.label.read_text(encoding="utf-8").strip()
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


def checkpoint_name(adapter: Path | None) -> str:
    """What a checkpoint is called in a comparison: "base", a cycle's number, or its folder's name."""
    if adapter is None:
        return "base"
    parts = [part for part in adapter.resolve().parts if part != RunFiles(adapter).adapter.name]
    return parts[-1] if parts else "base"


# ---------------------------------------------------------------------------------------------------------------------
# Making and removing runs


def never_began(run: Run) -> bool:
    """Did this cycle end before its first step? Then it holds nothing, and its number may be used again."""
    status = read_status(run.files.status)
    if status is None:
        return not has_adapter(run) and not run.files.metrics.exists()
    return status.state not in LIVING and status.step == 0 and not has_adapter(run)


def claim_cycle(model: str) -> Run:
    """Make the folder of the model's next cycle; two callers at the same instant get different numbers.

    The newest cycles that ended before their first step are removed first, so that no number stays empty.
    """
    folder = model_dir(model)
    with locked(folder):
        cycles = cycle_runs(model)
        while cycles and never_began(cycles[-1]) and not children(cycles[-1]):
            move_to_trash(cycles.pop())
        number = int(cycles[-1].name) + 1 if cycles else 1
        run = Run(model, f"{number:03d}", "train", folder / f"{number:03d}")
        run.folder.mkdir()
        claim(run)
    return run


def claim_auto(model: str) -> Run:
    """Make the folder of the model's next auto run."""
    folder = model_dir(model)
    with locked(folder):
        runs = auto_runs(model)
        number = int(runs[-1].name.rpartition("/")[2]) + 1 if runs else 1
        run = Run(model, f"auto/{number:03d}", "auto", folder / "auto" / f"{number:03d}")
        run.folder.mkdir(parents=True)
        claim(run)
    return run


def claim_eval(model: str, participants: Sequence[str]) -> Run:
    """Make the folder of an evaluation, with relative links from its earlier participants.

    `participants` are names: ["base", "001", "003"] gives `003/evals/base+001`, linked from `base/evals/001+003` and
    `001/evals/base+003`. The same participants again get `.2` and so on.
    """
    folder = model_dir(model)
    numbered = [name for name in participants if CYCLE_NAME.fullmatch(name) and (folder / name).is_dir()]
    owner = max(numbered, key=int) if numbered else "base"
    with locked(folder):
        name = free_name(RunFiles(folder / owner).evals, without(participants, owner))
        run = Run(model, f"{owner}/evals/{name}", "eval", RunFiles(folder / owner).evals / name)
        run.folder.mkdir(parents=True)
        claim(run)
        for other in {"base", *numbered} & set(participants) - {owner}:
            evals = RunFiles(folder / other).evals
            evals.mkdir(parents=True, exist_ok=True)
            link = evals / free_name(evals, without(participants, other))
            link.symlink_to(os.path.relpath(run.folder, evals))
    return run


def without(participants: Sequence[str], one: str) -> str:
    """The name of an evaluation among the files of `one`: the other participants, joined."""
    others = list(participants)
    if one in others:
        others.remove(one)
    return "+".join(re.sub(r"[^\w.-]", "_", other) for other in others) or ALONE


def free_name(folder: Path, name: str) -> str:
    """`name`, or the first of `name.2`, `name.3`, ... that is not taken."""
    number = 1
    while True:
        candidate = name if number == 1 else f"{name}.{number}"
        if not os.path.lexists(folder / candidate):
            return candidate
        number += 1


def claim(run: Run) -> None:
    """Mark a folder as being made by this process, so that nobody else takes it for one that failed."""
    StatusFile(run.files.status, new_status(run.kind, "pending"))


def children(run: Run) -> list[Run]:
    """What depends on a run: cycles warm-started from it and evaluations of it."""
    if run.kind != "train":
        return []
    found: list[Run] = []
    for other in cycle_runs(run.model):
        with contextlib.suppress(OSError):
            if Path(os.readlink(other.files.parent)).parts[-2:-1] == (run.name,):
                found.append(other)
    with contextlib.suppress(FileNotFoundError):
        for entry in sorted(run.files.evals.iterdir()):
            resolved = run_at(entry)
            if resolved is not None:
                found.append(resolved)
    return found


def move_to_trash(run: Run) -> Path:
    """Move a run, and the links to it, out of the way; returns where it lies now."""
    for link in links_to(run):
        link.unlink()
    TRASH_DIR.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = free_name(TRASH_DIR, f"{run.model}-{run.name.replace('/', '-')}-{stamp}")
    shutil.move(run.folder, TRASH_DIR / name)
    return TRASH_DIR / name


def links_to(run: Run) -> list[Path]:
    """The links from earlier participants to an evaluation."""
    if run.kind != "eval":
        return []
    model = TRAINING_DIR / run.model
    target = run.folder.resolve()
    return [link for link in model.glob("*/evals/*") if link.is_symlink() and link.resolve() == target]
