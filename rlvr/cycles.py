"""The files of a training cycle and where checkpoints lie. Only this module knows names under `training/`."""

from dataclasses import dataclass
from pathlib import Path

from rlvr.errors import RlvrError

TRAINING_DIR = Path("training")
STANDALONE_DIR = Path("gemma_4_oeis_lora")
"""Where the trainer saves, and the evaluator looks, when both run without any orchestration."""


@dataclass(frozen=True)
class CycleFiles:
    """The paths of one training run."""

    folder: Path
    adapter: Path
    outcomes: Path

    @classmethod
    def in_cycle(cls, folder: Path) -> "CycleFiles":
        """A numbered cycle: everything in its folder."""
        return cls(folder, folder / "adapter", folder / "outcomes.json")

    @classmethod
    def alone(cls, folder: Path = STANDALONE_DIR) -> "CycleFiles":
        """A run on its own: the folder is the adapter itself, and the outcomes lie beside it."""
        return cls(folder, folder, folder.parent / "outcomes.json")

    @property
    def config(self) -> Path:
        return self.folder / "config.toml"

    @property
    def status(self) -> Path:
        return self.folder / "status.json"

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


def find_adapter(name: str, model: str = "") -> Path:
    """The adapter folder that `name` stands for: a folder, a cycle's folder, or a cycle's number under a model.

    Raises:
        RlvrError: saying where it was looked for.
    """
    folders = [Path(name)]
    if name.isdigit():
        models = [TRAINING_DIR / model] if model else sorted(TRAINING_DIR.glob("*/"))
        folders += [folder / f"{int(name):03d}" for folder in models]
    candidates = [adapter for folder in folders for adapter in (folder, folder / "adapter")]
    found = [adapter for adapter in candidates if (adapter / "adapter_config.json").is_file()]
    if len(found) > 1 and found[0].parent != Path(name) and found[0] != Path(name):
        raise RlvrError(f"adapter {name!r} may be any of {', '.join(map(str, found))}: name the model or the folder")
    if found:
        return found[0]
    looked = ", ".join(map(str, folders))
    raise RlvrError(
        f"no adapter {name!r}: looked in {looked}: train one first, or give a folder with adapter_config.json"
    )
