"""The settings of a run: name, default, range and help of each, in one place. It imports no torch."""

from dataclasses import dataclass, field, fields
from typing import Any

from rlvr.errors import RlvrError

METHODS = ("reinforce", "grpo", "dr_grpo")
REWARDS = ("verified", "answer", "random", "student")


def option(default: Any, help: str, low: float | None = None, high: float | None = None, choices: tuple = ()) -> Any:
    return field(default=default, metadata={"help": help, "low": low, "high": high, "choices": choices})


@dataclass(frozen=True)
class Settings:
    """All that decides how a run goes: the same settings on the same machine give the same weights, bit for bit."""

    reward: str = option("verified", "what an answer is worth", choices=REWARDS)
    method: str = option("reinforce", "how rewards become advantages and symbols are weighed", choices=METHODS)
    group_size: int = option(8, "answers to each problem of an update", 2, 64)
    prompts: int = option(16, "problems of an update", 1, 256)
    steps: int = option(30, "updates by reinforcement", 1, 2000)
    learning_rate: float = option(3e-4, "of the updates", 1e-7, 1.0)
    kl: float = option(0.1, "weight of the penalty for leaving the start; 0 turns it off", 0.0, 10.0)
    temperature: float = option(1.0, "of the sampling while training; lower is less varied", 0.1, 5.0)
    start_steps: int = option(450, "supervised steps before the first update", 1, 20_000)
    seed: int = option(0, "of the weights, the homework, the problems asked and every sampled symbol", 0, 1_000_000)

    def __post_init__(self) -> None:
        """Raises RlvrError for a value of the wrong type or out of range."""
        for one in fields(self):
            value, of = vars(self)[one.name], one.metadata
            flag = "--" + one.name.replace("_", "-")
            if of["choices"] and value not in of["choices"]:
                raise RlvrError(f"{flag} {value!r}: choose one of {', '.join(of['choices'])}")
            if not of["choices"] and not (isinstance(value, (int, float)) and of["low"] <= value <= of["high"]):
                raise RlvrError(f"{flag} {value!r}: give a number from {of['low']:g} to {of['high']:g}")


def value_type(name: str) -> type:
    """The type of the values of a setting: str, int or float."""
    return {one.name: type(one.default) for one in fields(Settings)}[name]
