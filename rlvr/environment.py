"""The protocol between the experiment and what it is trained on: tasks, prompts, rewards, outcomes.

The trainer and the evaluator reach an environment by its name and know nothing else of it. An environment is a module
with the names of `Environment`; adding a reward to one is one judge function and one entry in its table.
"""

import importlib
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, Protocol

from rlvr.config import RunConfig
from rlvr.errors import RlvrError
from rlvr.records import Grade

MODULES = {"oeis": "oeis_rlvr"}
"""Environment name -> module."""

RewardFunc = Callable[..., list[float | None]]
"""TRL's signature: lists aligned with the batch as keywords, one number a completion, None where it is masked."""


class Task(Protocol):
    """One problem. `id` keys scores, outcomes and traces; `columns()` is the row that reward functions get back."""

    @property
    def id(self) -> str: ...

    def prompt_text(self, style: str) -> str: ...

    def columns(self) -> dict[str, Any]: ...


class Environment(Protocol):
    """What an environment module offers."""

    REWARD_FUNCS: Sequence[RewardFunc]

    def build_tasks(
        self, config: RunConfig, *, split: Literal["train", "eval"], limit: int, exclude: Collection[str] = ()
    ) -> Sequence[Task]:
        """Tasks of a split in a seeded order, at most `limit`, without the ids in `exclude`."""
        ...

    def grade(self, tasks: Sequence[Task], completions: Sequence[str], truncated: Sequence[bool]) -> list[Grade]:
        """One grade a completion, aligned with its inputs."""
        ...

    def configure(self, config: RunConfig) -> None:
        """Set up what grading needs, such as the sandbox; called once before the first grade."""
        ...

    def provenance(self, config: RunConfig) -> dict[str, str]:
        """What a run should record of this environment's data, such as a fingerprint."""
        ...


def load(name: str) -> Environment:
    """The environment of that name.

    Raises:
        RlvrError: for an unknown one, with those that exist.
    """
    if name not in MODULES:
        raise RlvrError(f"unknown environment {name!r}: known are {', '.join(MODULES)}")
    return importlib.import_module(MODULES[name])  # type: ignore[return-value]
