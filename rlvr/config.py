"""Every key of a run, once: name, type, default, range and one sentence of help.

`TrainConfig` and `EvalConfig` share the keys of `RunConfig`. This one place feeds the check of TOML files, `--help`,
the snapshot written into each cycle and any form built on top. Nothing is ever ignored in silence: an unknown key, a
wrong type and a value out of range are errors that name the file, the key, the reason and the nearest known name.
"""

import argparse
import dataclasses
import difflib
import functools
import tomllib
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import tomli_w

from rlvr.errors import RlvrError
from rlvr.files import replace_file

LOSS_TYPES = ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo")

REQUIRED_KEYWORDS = ("easy", "nonn")
EXCLUDED_KEYWORDS = (  # in this order: an entry that has several is counted under the first
    *("dead", "dupe", "allocated", "recycled"),  # not a sequence, or not a living one
    *("base", "word"),  # about the writing of numbers
    *("cons", "cofr", "frac", "tabl", "tabf"),  # the index into the terms is not the n of a(n)
    *("fini", "full", "more", "hard"),  # no further terms to be judged by
    *("obsc", "unkn", "uned", "probation"),  # unclear what it is
)


def key(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    frozen: bool = False,
) -> Any:
    """Declare a key: its default, its sentence of help, its inclusive range (both ends or none) or its choices.

    `frozen` keys may not change once a model has an adapter: the adapter would no longer fit.
    """
    return dataclasses.field(
        default=default, metadata={"help": help, "low": low, "high": high, "choices": choices, "frozen": frozen}
    )


@dataclass(frozen=True)
class RunConfig:
    """What a training cycle and an evaluation have in common."""

    environment: str = key("oeis", "where tasks, prompts and rewards come from")
    base_model: str = key(
        "unsloth/gemma-4-E2B-it", "Hub id, local folder, or 'tiny' (ships with the project)", frozen=True
    )
    max_seq_length: int = key(4096, "tokens of prompt and completion together", low=64, high=1_048_576, frozen=True)
    corpus_dir: str = key("", "folder of the OEIS .seq files; empty: oeisdata/, else the bundled sample")
    require_keywords: tuple[str, ...] = key(REQUIRED_KEYWORDS, "OEIS keywords that a sequence must have")
    exclude_keywords: tuple[str, ...] = key(EXCLUDED_KEYWORDS, "OEIS keywords that drop a sequence")
    min_terms: int = key(20, "drop sequences with fewer terms", low=2, high=10_000)
    n_show: int = key(10, "terms shown in the prompt", low=1, high=1_000)
    max_eval_terms: int = key(40, "hidden terms used for scoring, at most", low=1, high=10_000)
    show_name: bool = key(True, "show the sequence's name (it often gives the formula away)")
    prompt_style: str = key(
        "auto", "wording of the prompt; auto: what the base model asks for", choices=("auto", "full", "compact")
    )
    seed: int = key(0, "seed of everything random", low=0, high=2**31 - 1)
    threads: int = key(0, "CPU threads of torch; 0: 1 for a tiny model, else torch's own choice", low=0, high=1_024)
    sandbox_workers: int = key(0, "processes that run model-written code; 0: one per core", low=0, high=1_024)
    unsafe_no_isolation: bool = key(False, "run model-written code without isolation where the system offers none")


@dataclass(frozen=True)
class TrainConfig(RunConfig):
    """One GRPO training cycle."""

    limit: int = key(5000, "tasks to draw from, at most", low=1, high=10_000_000)
    lora_rank: int = key(32, "rank of the adapter", low=1, high=1024, frozen=True)
    lora_alpha: int = key(
        64, "scale of the adapter: alpha / rank multiplies its output", low=1, high=4096, frozen=True
    )
    learning_rate: float = key(5e-5, "peak learning rate of AdamW", low=0.0, high=1.0)
    lr_scheduler: str = key(
        "cosine", "learning rate over the cycle", choices=("constant", "constant_with_warmup", "linear", "cosine")
    )
    warmup_steps: int = key(5, "steps of linear warm-up", low=0, high=100_000)
    max_steps: int = key(250, "optimizer steps of the cycle", low=1, high=10_000_000)
    prompts_per_step: int = key(4, "different tasks a step", low=1, high=65_536)
    num_generations: int = key(4, "completions a task: the group that GRPO compares", low=2, high=1_024)
    completions_per_forward: int = key(
        4, "completions in one forward and backward pass: the memory knob", low=1, high=65_536
    )
    max_completion_length: int = key(
        0, "tokens of a completion; 0: what max_seq_length leaves after the longest prompt", low=0, high=1_048_576
    )
    temperature: float = key(1.0, "sampling temperature while training", low=0.01, high=10.0)
    top_p: float = key(1.0, "nucleus sampling while training", low=0.01, high=1.0)
    kl_beta: float = key(
        0.001, "weight of the KL penalty to the policy the cycle began with; 0: not computed", low=0.0, high=10.0
    )
    loss_type: str = key("dapo", "how token losses are averaged", choices=LOSS_TYPES)
    scale_rewards: str = key(
        "group", "divide advantages by the standard deviation of", choices=("group", "batch", "none")
    )
    mask_truncated: bool = key(False, "leave completions that hit the token limit out of the loss")
    max_grad_norm: float = key(1.0, "clip the gradient to this norm", low=0.0, high=1_000.0)
    save_steps: int = key(50, "steps between checkpoints", low=1, high=1_000_000)
    keep_checkpoints: int = key(2, "newest checkpoints kept", low=1, high=1_000)
    exclude_always_solved: bool = key(True, "leave out what the parent cycle always solved")
    filter_samples: int = key(
        0, "answers a task sampled first, to train only on tasks solved sometimes; 0: no filter", low=0, high=1_024
    )
    baseline_tasks: int = key(
        8, "tasks of the train split sampled before and after the cycle; 0: none", low=0, high=10_000
    )
    preflight_tasks: int = key(
        16,
        "tasks of the train split sampled before a cold start to say whether the base model can learn at all; 0: none",
        low=0,
        high=10_000,
    )
    stop_on_dead_signal: bool = key(
        False, "end the run when nothing is being learned: all rewards equal, or everything cut off"
    )


@dataclass(frozen=True)
class EvalConfig(RunConfig):
    """One held-out comparison of checkpoints."""

    num_tasks: int = key(40, "held-out tasks", low=1, high=1_000_000)
    samples: int = key(1, "completions a task: 1 is greedy, more are sampled and give pass@k", low=1, high=10_000)
    max_new_tokens: int = key(3072, "tokens of a completion", low=1, high=1_048_576)
    temperature: float = key(1.0, "sampling temperature when samples > 1", low=0.01, high=10.0)
    batch_size: int = key(0, "completions generated at once; 0: 64 for a tiny model, else 16", low=0, high=65_536)


PRESETS: dict[str, dict[str, Any]] = {
    "gemma4-e2b": {
        "base_model": "unsloth/gemma-4-E2B-it",
        "max_seq_length": 4096,
        "lora_rank": 32,
        "lora_alpha": 64,
        "learning_rate": 5e-5,
        "prompts_per_step": 4,
        "num_generations": 4,
        "completions_per_forward": 4,
        "max_new_tokens": 3072,
    },
    "qwen3-0.6b": {
        "base_model": "Qwen/Qwen3-0.6B",
        "max_seq_length": 4096,
        # It thinks before it answers: with fewer tokens most answers would be cut off. Its vocabulary of 152 k makes
        # the logits of one forward pass the largest part of the memory, about 4 GB a completion of this length.
        "max_completion_length": 2048,
        "completions_per_forward": 2,
        "lora_rank": 32,
        "lora_alpha": 64,
        "prompts_per_step": 4,
        "num_generations": 8,
        "learning_rate": 1e-4,
        "max_new_tokens": 2048,
    },
    "smollm2-135m": {
        "base_model": "HuggingFaceTB/SmolLM2-135M-Instruct",
        "max_seq_length": 1024,
        "max_completion_length": 256,
        "lora_rank": 16,
        "lora_alpha": 32,
        "learning_rate": 2e-4,
        "num_generations": 8,
        "completions_per_forward": 8,
        "max_steps": 100,
        "limit": 1000,
        "max_new_tokens": 256,
    },
    "tiny": {
        "base_model": "tiny",
        "max_seq_length": 512,
        "max_completion_length": 64,
        "lora_rank": 16,
        "lora_alpha": 32,
        "learning_rate": 2e-3,
        "loss_type": "dr_grpo",
        "scale_rewards": "none",
        "prompts_per_step": 8,
        "num_generations": 8,
        "completions_per_forward": 64,
        "max_steps": 80,
        "filter_samples": 8,
        "max_new_tokens": 64,
    },
}
"""Named bundles of keys; each program takes those it knows."""

PRESET_SUMMARIES: dict[str, str] = {
    "gemma4-e2b": "Gemma 4 E2B on one 24 GB GPU: the built-in defaults",
    "qwen3-0.6b": "Qwen3 0.6B, which thinks before it answers, on a GPU with 16 to 24 GB",
    "smollm2-135m": "SmolLM2 135M on a small GPU, or on a CPU with patience",
    "tiny": "the tiny model that ships with the project, on any CPU, in minutes",
}
"""One line a preset, for people."""


@dataclass(frozen=True)
class Key:
    """One key as the programs need it: parsed from text, checked, shown in help."""

    name: str
    type: type
    default: Any
    help: str
    low: float | None
    high: float | None
    choices: tuple[str, ...]
    frozen: bool

    @property
    def type_name(self) -> str:
        names = {
            tuple: "a list of strings",
            str: "a string",
            int: "an integer",
            float: "a number",
            bool: "true or false",
        }
        return names[self.type]

    @property
    def range_text(self) -> str:
        if self.choices:
            return "one of " + ", ".join(self.choices)
        return "" if self.low is None else f"{self.low:.10g} to {self.high:.10g}"

    def check(self, value: Any, where: str) -> Any:
        """Return `value` in this key's type.

        Raises:
            RlvrError: naming `where` it came from, the key, and what is allowed.
        """
        if self.type is tuple and isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
            return tuple(value)
        if self.type is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        # bool is an int to Python, and never a number to a user.
        if not isinstance(value, self.type) or (isinstance(value, bool) and self.type is not bool):
            raise RlvrError(f"{where}: {self.name} = {value!r} must be {self.type_name}")
        if self.choices and value not in self.choices:
            near = difflib.get_close_matches(str(value), self.choices, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise RlvrError(f"{where}: {self.name} = {value!r} must be {self.range_text}{hint}")
        # Written so that NaN, which compares false with everything, is refused too.
        if (
            isinstance(value, (int, float))
            and self.low is not None
            and self.high is not None
            and not self.low <= value <= self.high
        ):
            raise RlvrError(f"{where}: {self.name} = {value!r} must be {self.range_text}")
        return value

    def parse(self, text: str, where: str) -> Any:
        """Turn the text of a flag into a checked value; lists are comma-separated, an empty text is an empty list."""
        try:
            if self.type is bool:
                value: Any = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[
                    text.lower()
                ]
            elif self.type is tuple:
                value = tuple(word.strip() for word in text.split(",") if word.strip())
            else:
                value = self.type(text)
        except (ValueError, KeyError):
            raise RlvrError(f"{where}: {self.name} = {text!r} must be {self.type_name}") from None
        return self.check(value, where)


@functools.cache
def keys(config_class: type[RunConfig]) -> dict[str, Key]:
    """The keys of a config class by name, in the order they are declared."""
    hints = typing.get_type_hints(config_class)
    return {
        field.name: Key(
            field.name, typing.get_origin(hints[field.name]) or hints[field.name], field.default, **field.metadata
        )
        for field in dataclasses.fields(config_class)
    }


def known_key(config_class: type[RunConfig], name: str, where: str) -> Key:
    """The key of that name.

    Raises:
        RlvrError: for an unknown one, with the nearest known name.
    """
    known = keys(config_class)
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "--help lists them"
    raise RlvrError(f"{where}: unknown key {name!r}: {hint}")


Config = TypeVar("Config", bound=RunConfig)

Layer = tuple[str, Mapping[str, Any]]
"""Where the values come from, and the values."""

RECORDED_TABLES = ("origin", "provenance")
"""Tables of a snapshot that say how it came about; they set nothing."""


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; a byte order mark, which some editors write, is not part of it.

    Raises:
        RlvrError: naming the file and what is wrong, with line and column where it is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise RlvrError(f"{path}: no such file: give an existing TOML file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RlvrError(f"{path}: cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise RlvrError(f"{path}: not valid TOML: {error}") from None


def check_values(values: Mapping[str, Any], config_class: type[RunConfig], where: str) -> dict[str, Any]:
    """The values in the types of their keys; what is unknown or not allowed is an error that names `where`."""
    return {name: known_key(config_class, name, where).check(value, where) for name, value in values.items()}


def read_layer(path: Path, config_class: type[RunConfig]) -> Layer:
    """Read and check a TOML file of keys, such as the `config.toml` of an earlier cycle."""
    values = {name: value for name, value in read_toml(path).items() if name not in RECORDED_TABLES}
    return str(path), check_values(values, config_class, str(path))


def read_layers(path: Path, config_class: type[RunConfig]) -> list[Layer]:
    """Like `read_layer`, but the values of a snapshot come under the origins that it recorded.

    So a run that was started from a resolved config says where each value really came from. A value that says
    "default" and is none was changed in the snapshot by hand: it comes under the file.
    """
    document = read_toml(path)
    file = str(path)
    recorded = document.get("origin", {})
    if not isinstance(recorded, dict):
        raise RlvrError(f"{path}: origin must be a table of key = where it came from: remove it")
    values = {name: value for name, value in document.items() if name not in RECORDED_TABLES}
    values = check_values(values, config_class, file)
    known = keys(config_class)
    layers: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        origin = str(recorded.get(name, file))
        if origin == "default" and value != known[name].default:
            origin = file
        layers.setdefault(origin, {})[name] = value
    return list(layers.items())


def preset_layer(name: str, config_class: type[RunConfig]) -> Layer:
    """The values of a preset that this config class knows."""
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(PRESETS)}"
        raise RlvrError(f"unknown preset {name!r}: {hint}")
    known = keys(config_class)
    return f"preset {name}", {key: value for key, value in PRESETS[name].items() if key in known}


def resolve(config_class: type[Config], layers: Iterable[Layer]) -> tuple[Config, dict[str, str]]:
    """Lay `layers` over the defaults, the later ones on top; return the config and where each value came from."""
    values: dict[str, Any] = {}
    origins = dict.fromkeys(keys(config_class), "default")
    for origin, layer in layers:
        values.update(layer)
        origins.update(dict.fromkeys(layer, origin))
    return config_class(**values), origins


def add_flags(parser: argparse.ArgumentParser, config_class: type[RunConfig]) -> None:
    """Add `--config FILE`, `--preset NAME` and one flag per key, with its help, range and default."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file of keys")
    parser.add_argument("--preset", metavar="NAME", help=f"named bundle of keys: {', '.join(PRESETS)}")
    add_key_flags(parser, config_class)


def add_key_flags(parser: argparse.ArgumentParser, config_class: type[RunConfig]) -> None:
    """Add one flag per key, with its help, range and default; `given_keys` reads them."""
    group = parser.add_argument_group("keys")
    for each in keys(config_class).values():
        default = (
            ",".join(each.default)
            if each.type is tuple
            else str(each.default).lower()
            if each.type is bool
            else each.default
        )
        allowed = f" ({each.range_text})" if each.range_text else ""
        group.add_argument(
            f"--{each.name.replace('_', '-')}",
            dest=f"key:{each.name}",
            metavar="VALUE",
            help=f"{each.help}{allowed}; default {default!s}".replace("%", "%%"),
        )


def given_keys(args: argparse.Namespace, config_class: type[RunConfig]) -> dict[str, str]:
    """The keys that were given as flags, as text."""
    found = {name: vars(args)[f"key:{name}"] for name in keys(config_class)}
    return {name: text for name, text in found.items() if text is not None}


def config_from_flags(args: argparse.Namespace, config_class: type[Config]) -> tuple[Config, dict[str, str]]:
    """Resolve defaults <- --preset <- --config <- flags; return the config and the origin of each value.

    A --config that is the snapshot of a run brings the recorded origins along.
    """
    layers: list[Layer] = []
    if args.preset:
        layers.append(preset_layer(args.preset, config_class))
    if args.config:
        layers += read_layers(args.config, config_class)
    given = given_keys(args, config_class)
    where = "command line"
    layers.append(
        (where, {name: known_key(config_class, name, where).parse(text, where) for name, text in given.items()})
    )
    return resolve(config_class, layers)


def write_snapshot(path: Path, config: RunConfig, origins: Mapping[str, str], provenance: Mapping[str, Any]) -> None:
    """Write what a run ran with: every key, where it came from, versions and data. `read_layer` reads it back."""
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(config).items()}
    document = {**values, "origin": dict(origins), "provenance": dict(provenance)}
    replace_file(path, tomli_w.dumps(document).encode())
