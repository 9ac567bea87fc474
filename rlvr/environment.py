"""The protocol between the experiment and what it is trained on: tasks, prompts, rewards, outcomes.

The trainer and the evaluator reach an environment by its name and know nothing else of it. An environment is a module
with the names of `Environment`; adding a reward to one is one judge function and one entry in its table.
"""

import difflib
import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

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

    def hidden_text(self) -> str:
        """What the prompt keeps back and grading looks at, for a person."""
        ...

    def columns(self) -> dict[str, Any]: ...


class Environment(Protocol):
    """What an environment module offers."""

    REWARD_FUNCS: Sequence[RewardFunc]

    def build_tasks(
        self,
        config: RunConfig,
        *,
        split: Literal["train", "eval"],
        limit: int,
        exclude: Collection[str] = (),
        progress: bool = True,
    ) -> Sequence[Task]:
        """Tasks of a split in a seeded order, at most `limit`, without the ids in `exclude`.

        With `progress`, it says on stderr what it does and what was dropped.
        """
        ...

    def tasks_by_id(self, config: RunConfig, ids: Sequence[str]) -> Sequence[Task]:
        """The tasks with these ids, of any split; RlvrError with what to do for one that cannot be had."""
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


@runtime_checkable
class Validated(Environment, Protocol):
    """What an environment offers besides when its rewards can be validated: what must score, and what must not."""

    FULL_REWARD: float
    """The least that a solved task totals."""

    WORST_REWARD: float
    """The least that any answer may total: losses that do not divide by the standard deviation need a known scale."""

    ATTACK_REWARD: float
    """The most that an attack may total: what an honest answer gets that works and is wrong."""

    def known_good(self) -> Sequence[tuple[Task, str]]:
        """Tasks, each with a completion that must be graded `solved` with `FULL_REWARD`."""
        ...

    def attacks(self, task: Task) -> Mapping[str, str]:
        """Completions by name that must not be `solved` and must total from `WORST_REWARD` to `ATTACK_REWARD`."""
        ...

    def left_behind(self) -> Sequence[str]:
        """What graded attacks have done outside of the sandbox, such as files made; nothing, if it held."""
        ...


def check_name(name: str) -> None:
    """Raises RlvrError for an unknown environment, with the nearest name; it loads nothing."""
    if name not in MODULES:
        near = difflib.get_close_matches(name, MODULES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(MODULES)}"
        raise RlvrError(f"unknown environment {name!r}: {hint}")


def load(name: str) -> Environment:
    """The environment of that name.

    Raises:
        RlvrError: for an unknown one.
    """
    check_name(name)
    return importlib.import_module(MODULES[name])  # type: ignore[return-value]


def validated(name: str) -> Validated:
    """The environment of that name, when its rewards can be validated.

    Raises:
        RlvrError: saying what it lacks.
    """
    module = load(name)
    if not isinstance(module, Validated):
        wanted = ("FULL_REWARD", "WORST_REWARD", "ATTACK_REWARD", "known_good", "attacks", "left_behind")
        missing = ", ".join(attribute for attribute in wanted if attribute not in vars(module))
        raise RlvrError(
            f"environment {name!r} cannot be validated: add {missing} to {MODULES[name]}.py (see docs/rewards.md)"
        )
    return module


def describe(task: Task, style: str = "full") -> str:
    """A task for a person: its id, the prompt as the model sees it, and what is kept back."""
    return f"--- {task.id}\n{task.prompt_text(style)}\n\n{task.hidden_text()}\n"
