"""The arithmetic of a step and a cycle before anything expensive starts: completions, tokens, memory, time.

The trainer plans its step here; `preview(config, earlier_steps)` gives the rows of `rlvrctl.py train --dry-run`.
Numbers of a model come from the loaded one or from the headers of its files. It loads no weights, imports no torch.
"""

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rlvr.base_models import cached_folder, find_base_model, parameters_in_name, refuse_large, tensor_shapes
from rlvr.config import TrainConfig
from rlvr.errors import RlvrError
from rlvr.listing import duration_text
from rlvr.machine import Gpu, find_gpus
from rlvr.records import Step

MIN_ANSWER_TOKENS = 16
"""Room for an answer below this is a mistake in the keys, not a setting."""

LORA_PROJECTIONS = re.compile(r"(?:^|\.)(?:q|k|v|o|gate|up|down)_proj(?:\.base_layer)?\.weight$")
CACHED_PROJECTIONS = re.compile(r"(?:^|\.)[kv]_proj(?:\.base_layer)?\.weight$")
EMBEDDING = re.compile(r"(?:^|\.)embed_tokens\.weight$")

REFERENCE_TOKENS_PER_S = 1000
"""The speed that an unmeasured time is stated for: a figure to scale from, no claim about this machine."""


class Division(NamedTuple):
    """How the completions of a step are divided into forward passes."""

    completions: int
    per_forward: int
    accumulation: int


@dataclass(frozen=True)
class Budget:
    """Completions and tokens of a step."""

    completions: int
    per_forward: int
    accumulation: int
    longest_prompt: int
    completion_tokens: int


def divide_step(config: TrainConfig, world_size: int = 1) -> Division:
    """Divide the completions of a step into forward passes of `world_size` processes.

    Raises:
        RlvrError: when they cannot be divided as asked, with the values that fit.
    """
    if config.limit < config.prompts_per_step:
        raise RlvrError(f"limit = {config.limit}: fewer tasks than prompts_per_step = {config.prompts_per_step}")
    completions = config.prompts_per_step * config.num_generations
    per_forward = min(config.completions_per_forward, completions)
    if completions % (per_forward * world_size):
        fitting = [n for n in range(1, completions + 1) if completions % (n * world_size) == 0]
        raise RlvrError(
            f"completions_per_forward = {per_forward}: {completions} completions a step on {world_size} process(es) "
            f"cannot be divided so: use one of {', '.join(map(str, fitting)) or 'fewer processes'}"
        )
    return Division(completions, per_forward, completions // (per_forward * world_size))


def plan_budget(config: TrainConfig, prompt_lengths: Mapping[str, int], world_size: int) -> Budget:
    """Work out a step from the keys and the longest prompt (`prompt_lengths`: task id -> tokens).

    Raises:
        RlvrError: when the batch cannot be divided as asked, or a prompt leaves no room for an answer.
    """
    division = divide_step(config, world_size)
    longest = max(prompt_lengths, key=prompt_lengths.__getitem__)
    room = config.max_seq_length - prompt_lengths[longest]
    if room < MIN_ANSWER_TOKENS:
        raise RlvrError(
            f"{longest}: its prompt has {prompt_lengths[longest]} tokens and max_seq_length = {config.max_seq_length} "
            "leaves no room for an answer: raise max_seq_length or lower n_show"
        )
    return Budget(*division, prompt_lengths[longest], min(config.max_completion_length or room, room))


# ---------------------------------------------------------------------------------------------------------------------
# Memory


class ModelSize(NamedTuple):
    """What an estimate of memory needs to know of a model.

    `trainable` counts the adapter's parameters; `cache_width` the numbers that one token leaves in the cache of keys
    and values, over all layers; `value_bytes` is the size of a weight or a cached number.
    """

    parameters: int
    trainable: int
    vocabulary: int
    cache_width: int
    value_bytes: int


class Memory(NamedTuple):
    """An estimate in bytes to compare settings by, not a promise: activations are left out."""

    weights: int
    adapter: int
    logits: int
    cache: int

    @property
    def total(self) -> int:
        """Generation and update follow each other: the larger of the two counts."""
        return self.weights + self.adapter + max(self.logits, self.cache)

    def describe(self) -> str:
        last = ("logits of a forward pass", self.logits) if self.logits >= self.cache else ("cache", self.cache)
        parts = [("weights", self.weights), ("adapter with its optimizer", self.adapter), last]
        said = ", ".join(f"{name} {bytes_text(size)}" for name, size in parts)
        return f"about {bytes_text(self.total)} without activations ({said})"


def estimate_memory(
    size: ModelSize, *, completions: int, per_forward: int, sequence_tokens: int, completion_tokens: int
) -> Memory:
    """Weights, adapter with its optimizer, logits of one forward and backward pass, and the cache of generation."""
    return Memory(
        weights=size.parameters * size.value_bytes,
        # Weight, gradient and AdamW's two averages, four bytes each.
        adapter=16 * size.trainable,
        # The logits, their gradient and a log-softmax, four bytes each.
        logits=3 * per_forward * completion_tokens * size.vocabulary * 4,
        cache=completions * sequence_tokens * size.cache_width * size.value_bytes,
    )


def size_from_shapes(
    shapes: Mapping[str, Sequence[int]], *, value_bytes: int, lora_rank: int = 0, trainable: int | None = None
) -> ModelSize:
    """Read a model's size off its weights' names and shapes, of its files or of the loaded model without its LoRA.

    Gemma 4's layers have heads of different sizes, so projections are read and no config. Where there is a language
    part, the towers beside it have neither adapter nor cache. What is trained is given as a number, or as the rank of
    the LoRA that would be put on.
    """
    parameters = 0
    language = any("language_model." in name for name in shapes)
    lora, cache_width, vocabulary = 0, 0, 0
    for name, shape in shapes.items():
        parameters += math.prod(shape)
        if EMBEDDING.search(name):
            vocabulary = max(vocabulary, shape[0])
        if language and "language_model." not in name:
            continue
        if LORA_PROJECTIONS.search(name):
            lora += lora_rank * sum(shape)
        if CACHED_PROJECTIONS.search(name):
            cache_width += shape[0]
    return ModelSize(parameters, lora if trainable is None else trainable, vocabulary, cache_width, value_bytes)


# ---------------------------------------------------------------------------------------------------------------------
# The dry run


def preview(
    config: TrainConfig, steps_of_earlier_cycles: Sequence[Step], rented: Gpu | None = None
) -> list[tuple[str, str]]:
    """Rows (name, what) of what a cycle would be and cost, from the keys and the machine alone.

    With `rented`, a GPU elsewhere, it is about that one instead of this machine.

    Raises:
        RlvrError: when a step cannot be divided as asked, or the base model is neither a folder nor a Hub id.
    """
    division = divide_step(config)
    gpus = [rented] if rented else find_gpus()
    source = find_base_model(config.base_model)
    folder = source if isinstance(source, Path) else cached_folder(source)
    shapes = tensor_shapes(folder) if folder else {}
    size = size_from_shapes(shapes, lora_rank=config.lora_rank, value_bytes=2 if gpus else 4) if shapes else None
    longest_answer = longest_completion(config)
    a_step = division.completions * longest_answer
    prompts = config.max_steps * config.prompts_per_step
    rows = [
        ("base model", f"{config.base_model} ({describe_source(source, folder, size)})"),
        ("adapter", f"LoRA rank {config.lora_rank}, alpha {config.lora_alpha}" + trainable_text(size)),
        (
            "a step",
            f"{config.prompts_per_step} prompts x {config.num_generations} samples = {division.completions} "
            f"completions, {division.per_forward} in one forward pass x {division.accumulation}",
        ),
        ("the cycle", f"{config.max_steps:,} steps = {prompts:,} prompts out of at most {config.limit:,} tasks"),
        (
            "tokens",
            f"completions up to {longest_answer:,}: at most {a_step:,} generated a step, "
            f"{config.max_steps * a_step:,} a cycle",
        ),
    ]
    if config.filter_samples:
        answers = config.limit * config.filter_samples
        rows.append(
            (
                "before it",
                f"the filter: at most {config.limit:,} tasks x {config.filter_samples} answers = {answers:,} answers",
            )
        )
    rows.append(("memory", memory_text(config, division, longest_answer, size, source, gpus)))
    rows.append(("time", time_text(config, division, longest_answer, steps_of_earlier_cycles)))
    if not gpus:
        try:
            refuse_large(config.base_model, source)
        except RlvrError as error:
            rows.append(("it will not start", str(error)))
    return rows


def describe_source(source: Path | str, folder: Path | None, size: ModelSize | None) -> str:
    """How many parameters a base model has and where it lies, or that it is not here."""
    if size is not None:
        return f"{size.parameters:,} parameters, {folder}"
    if folder is not None:
        return f"{folder}, no .safetensors file in it"
    named = parameters_in_name(str(source))
    says = f"; its name says about {named / 1e6:,.0f} million parameters" if named else ""
    return f"not on this machine: the first run downloads it{says}"


def trainable_text(size: ModelSize | None) -> str:
    return f": {size.trainable:,} parameters to train" if size else ""


def memory_text(
    config: TrainConfig,
    division: Division,
    longest_answer: int,
    size: ModelSize | None,
    source: Path | str,
    gpus: Sequence[Gpu],
) -> str:
    if size is None:
        return f"unknown: the weights of {source} are not on this machine"
    memory = estimate_memory(
        size,
        completions=division.completions,
        per_forward=division.per_forward,
        sequence_tokens=config.max_seq_length,
        completion_tokens=longest_answer,
    )
    text = f"{memory.describe()}, at the longest answers; " + (
        "16-bit weights" if gpus else "32-bit weights, as there is no GPU"
    )
    if gpus and memory.total > gpus[0].free_mib * 2**20:
        text += (
            f"; {bytes_text(gpus[0].free_mib * 2**20)} are free on {gpus[0].name}: lower completions_per_forward or "
            "max_completion_length (unsloth computes logits in parts and needs less than this)"
        )
    return text


class CycleTime(NamedTuple):
    """How long a cycle takes: `step_s` as it was measured, `scale` what differs now, for the `reasons` given."""

    steps: int
    step_s: float
    scale: float
    reasons: list[str]

    @property
    def total_s(self) -> float:
        return self.steps * self.step_s * self.scale


def longest_completion(config: TrainConfig) -> int:
    return min(config.max_completion_length or config.max_seq_length, config.max_seq_length)


def cycle_time(config: TrainConfig, earlier: Sequence[Step]) -> CycleTime:
    """The time of a cycle by the steps of earlier ones, of which there is at least one."""
    division, longest_answer = divide_step(config), longest_completion(config)
    step_s = statistics.median(step.step_s for step in earlier)
    completions = statistics.median(sum(step.outcomes.values()) for step in earlier)
    scale, reasons = 1.0, []
    if completions and completions != division.completions:
        scale *= division.completions / completions
        reasons.append(f"{division.completions} completions a step instead of {completions:.0f}")
    # What cut an answer was the limit then. Where nothing was cut, a higher limit changes nothing.
    longest_then = max(step.length_max for step in earlier)
    was_cut = any(step.truncated for step in earlier)
    if longest_then and longest_answer != longest_then and (was_cut or longest_answer < longest_then):
        scale *= longest_answer / longest_then
        reasons.append(f"answers up to {longest_answer:,} tokens instead of {longest_then:,}")
    return CycleTime(config.max_steps, step_s, scale, reasons)


def time_text(config: TrainConfig, division: Division, longest_answer: int, earlier: Sequence[Step]) -> str:
    """How long the cycle takes by the steps of earlier ones, or the arithmetic to work it out where there are none."""
    if not earlier:
        tokens = config.max_steps * division.completions * longest_answer
        longest = duration_text(tokens / REFERENCE_TOKENS_PER_S)
        return (
            f"not known: no earlier cycle of this model to go by. For scale: at {REFERENCE_TOKENS_PER_S:,} generated "
            f"tokens a second the longest possible cycle takes {longest}, less where answers end early; "
            "the first steps will say"
        )
    time = cycle_time(config, earlier)
    measured = f"the median of {len(earlier):,} earlier steps of this model"
    reasons = " and ".join(time.reasons)
    how = f" ({time.step_s:.1f} s is {measured}; here {reasons})" if reasons else f", {measured}"
    # Part of a step is the same for any size: scaled up, it comes out too long.
    about = "at most about" if time.scale > 1 else "about"
    return f"{about} {duration_text(time.total_s)}: {time.steps:,} steps x {time.step_s * time.scale:.1f} s{how}"


def bytes_text(size: int) -> str:
    """A number of bytes: "58 MiB", "12.3 GiB"."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
