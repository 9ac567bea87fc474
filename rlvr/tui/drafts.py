"""The layers of a model's config with changes that are not saved yet, and what would be effective with them.

    drafts = read_drafts("m")
    drafts.change(TRAINING, "max_steps", "40")      # checked; RlvrError says what is wrong with it
    drafts.value("max_steps", "train")              # (40, TRAINING)
    drafts.save()

No widgets here; `configure.py` is the form.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rlvr import cycles, layers, runs
from rlvr.config import RECORDED_TABLES, Key, keys, read_toml
from rlvr.errors import RlvrError
from rlvr.layer_files import MODEL_FILE, SCOPE_FILES, toml_text
from rlvr.layers import CONFIG_CLASSES, TARGETS, Change, Scope, Target


class Place(NamedTuple):
    """One layer: its short name on the screen, its scope and kind of run as `layers.py` knows them, its file."""

    title: str
    scope: Scope
    target: Target | None
    file: str

    @property
    def where(self) -> str:
        return f"{self.file} [ephemeral]" if self.scope == "ephemeral" else self.file


MODEL = Place("model", "global", None, MODEL_FILE)
TRAINING = Place("training", "permanent", "train", SCOPE_FILES["train"])
NEXT_CYCLE = Place("next cycle", "ephemeral", "train", SCOPE_FILES["train"])
EVAL = Place("eval", "permanent", "eval", SCOPE_FILES["eval"])
NEXT_EVAL = Place("next eval", "ephemeral", "eval", SCOPE_FILES["eval"])

PLACES = (MODEL, TRAINING, NEXT_CYCLE, EVAL, NEXT_EVAL)
CHAINS: dict[Target, tuple[Place, ...]] = {"train": (NEXT_CYCLE, TRAINING, MODEL), "eval": (NEXT_EVAL, EVAL, MODEL)}
"""For each kind of run its layers, the highest first."""

UNSET = None
"""The draft of a key that is to be taken out of a layer."""


def keys_of(place: Place) -> dict[str, Key]:
    """The keys that may stand in a layer, in the order of the config classes."""
    if place.target:
        return keys(CONFIG_CLASSES[place.target])
    return {name: key for target in ("eval", "train") for name, key in keys(CONFIG_CLASSES[target]).items()}


def field_text(value: Any) -> str:
    """A value as one types it, which `Key.parse` reads back."""
    if isinstance(value, (tuple, list)):
        return ", ".join(value)
    return value if isinstance(value, str) else toml_text(value)


@dataclass
class Drafts:
    """What the files of a model say, and what was typed on top; `changes` holds values by layer and key."""

    model: str
    saved: dict[Place, dict[str, Any]]
    frozen: Mapping[str, Any]
    last: Mapping[Target, tuple[str, Mapping[str, Any]]]
    """Kind of run -> name and config of its newest run."""
    changes: dict[tuple[Place, str], Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return cycles.model_dir(self.model)

    def here(self, place: Place, name: str) -> Any:
        """What a layer says of a key, changes included; None when it says nothing."""
        if (place, name) in self.changes:
            return self.changes[place, name]
        return self.saved[place].get(name)

    def value(self, name: str, target: Target) -> tuple[Any, Place | None]:
        """What a run of this kind would get, and from which layer; None for the built-in default."""
        for place in CHAINS[target]:
            if (value := self.here(place, name)) is not None:
                return value, place
        return keys(CONFIG_CLASSES[target])[name].default, None

    def targets(self, place: Place, name: str) -> list[Target]:
        """The kinds of run that get a key from this layer."""
        return [each for each in TARGETS if place in CHAINS[each] and name in keys(CONFIG_CLASSES[each])]

    def shadowed_by(self, place: Place, name: str) -> Place | None:
        """The layer whose value counts instead of this one's, if there is one."""
        if self.here(place, name) is None:
            return None
        for target in self.targets(place, name):
            _, winner = self.value(name, target)
            if winner != place:
                return winner
        return None

    def last_value(self, name: str, target: Target) -> Any:
        """What the newest run of this kind ran with; None when there is none, or it knew no such key."""
        value = self.last[target][1].get(name) if target in self.last else None
        return tuple(value) if isinstance(value, list) else value

    def is_changed(self, place: Place, name: str) -> bool:
        return (place, name) in self.changes

    def change(self, place: Place, name: str, text: str) -> None:
        """Set a key in a layer, not saved yet.

        Raises:
            RlvrError: saying what is wrong with the text; then nothing is changed.
        """
        value: Any = None
        for target in self.targets(place, name):
            value = keys(CONFIG_CLASSES[target])[name].parse(text, place.where)
        if name in self.frozen and value != self.frozen[name]:
            raise RlvrError(
                f"{name} is fixed at {toml_text(self.frozen[name])}: the adapters of this model fit no other value"
            )
        self._put(place, name, value)

    def unset(self, place: Place, name: str) -> None:
        """Take a key out of a layer, not saved yet."""
        self._put(place, name, UNSET)

    def revert(self, place: Place, name: str) -> None:
        self.changes.pop((place, name), None)

    def take_over(self, changes: Mapping[tuple[Place, str], Any]) -> None:
        """Put the changes of an earlier reading on top."""
        for (place, name), value in changes.items():
            self._put(place, name, value)

    def _put(self, place: Place, name: str, value: Any) -> None:
        if value == self.saved[place].get(name):
            self.revert(place, name)
        else:
            self.changes[place, name] = value

    def save(self) -> list[Change]:
        """Write all changes into the files, layer by layer; what was written is no change any more.

        Raises:
            RlvrError: from the first layer that cannot be written; its changes and the later ones stay.
        """
        done: list[Change] = []
        for place in PLACES:
            mine = {name: value for (where, name), value in self.changes.items() if where == place}
            if not mine:
                continue
            pairs = {name: field_text(value) for name, value in mine.items() if value is not UNSET}
            gone = [name for name, value in mine.items() if value is UNSET]
            if gone:
                done += layers.unset_keys(self.folder, place.scope, gone, place.target)
            if pairs:
                done += layers.set_keys(self.folder, place.scope, pairs, place.target, self.frozen)
            for name, value in mine.items():
                self.changes.pop((place, name))
                self.saved[place].pop(name, None)
                if value is not UNSET:
                    self.saved[place][name] = value
        return done


def read_drafts(model: str) -> Drafts:
    """Read the files of a model.

    Raises:
        RlvrError: for a file that is not right.
    """
    folder = cycles.model_dir(model)
    saved: dict[Place, dict[str, Any]] = {MODEL: {}}
    for target, chain in CHAINS.items():
        for place, layer in zip(reversed(chain), layers.layers_of(folder, CONFIG_CLASSES[target]), strict=True):
            saved.setdefault(place, {}).update(layer.values)
    last: dict[Target, tuple[str, Mapping[str, Any]]] = {}
    for target, found in (("train", cycles.cycle_runs(model)), ("eval", cycles.eval_runs(model))):
        recorded = [run for run in found if run.files.config.is_file()]
        if recorded:
            newest = max(recorded, key=lambda run: run.files.config.stat().st_mtime)
            document = read_toml(newest.files.config)
            kept = {name: value for name, value in document.items() if name not in RECORDED_TABLES}
            last[target] = newest.name, kept  # type: ignore[index]
    return Drafts(model, saved, runs.frozen_keys(model) or {}, last)
