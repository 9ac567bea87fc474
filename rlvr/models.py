"""Load a policy (a chat model, with or without a LoRA adapter) and generate from it.

Used by the trainer and the evaluator: `policy = load_policy("tiny", max_seq_length=512)`, then
`generate(policy.model, policy.tokenizer, ["..."], ...)`. Unsloth does the loading when CUDA and unsloth are there,
transformers and peft otherwise. It is not the training loop, and no part of the control plane: it imports torch.

transformers, peft and unsloth are imported inside functions, because unsloth must come before the other two. A program
that imports them itself (as trl does) calls `import_backend()` first.
"""

import importlib.util
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from rlvr.base_models import LoraShape, check_adapter, find_base_model, refuse_large
from rlvr.errors import RlvrError
from rlvr.generation import Generation, complete, encode_prompts, end_tokens, generate, seeded

__all__ = [
    "Generation",
    "Policy",
    "active_adapter",
    "attach_adapter",
    "complete",
    "encode_prompts",
    "generate",
    "import_backend",
    "load_policy",
]

TINY_PARAMETERS = 20_000_000
"""Below this a model runs fastest on one thread: its matrices are too small to share."""

LORA_SUFFIXES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

Backend = Literal["unsloth", "transformers"]


class Policy(NamedTuple):
    """A loaded model. `context_length` is what prompt and completion may have together, in tokens."""

    model: Any
    tokenizer: Any
    device: str
    backend: Backend
    prompt_style: str
    num_parameters: int
    context_length: int


def import_backend() -> Backend:
    """Import unsloth before anything that it patches, when there is a GPU for it; say which backend loads a policy."""
    if torch.cuda.is_available() and importlib.util.find_spec("unsloth"):
        importlib.import_module("unsloth")
        return "unsloth"
    return "transformers"


def load_policy(
    base_model: str,
    *,
    max_seq_length: int,
    lora_rank: int | None = None,
    lora_alpha: int | None = None,
    adapter: Path | None = None,
    trainable: bool = False,
    seed: int = 0,
    threads: int = 0,
) -> Policy:
    """Load a base model and, as asked, a LoRA adapter on it named "default".

    `trainable` without `adapter` adds a fresh LoRA of `lora_rank` and `lora_alpha`, initialised from `seed`; with
    `adapter` it goes on training that one. An adapter must have been made for this base model and, where they are
    given, with this rank and alpha. `threads` sets torch's CPU threads; 0 takes one for a tiny model.

    Raises:
        RlvrError: for a model too large for a CPU (before any download), a missing, broken or unreachable model, and
            an adapter that does not fit.
    """
    source = find_base_model(base_model)
    if adapter is not None:
        shape = check_adapter(adapter, base_model, lora_rank, lora_alpha)
    elif trainable:
        if lora_rank is None or lora_alpha is None:
            raise ValueError("a fresh LoRA needs lora_rank and lora_alpha")
        shape = LoraShape(lora_rank, lora_alpha)
    else:
        shape = None
    backend = import_backend()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        refuse_large(base_model, source)
    if isinstance(source, str):
        reach(source)
    load = load_with_unsloth if backend == "unsloth" else load_with_transformers
    with quiet_bars() if isinstance(source, Path) else nullcontext():
        model, tokenizer = load(
            source,
            max_seq_length=max_seq_length,
            fresh=shape if trainable else None,
            adapter=adapter,
            device=device,
            seed=seed,
        )
    return as_policy(model, tokenizer, base_model, backend, max_seq_length, threads)


# ---------------------------------------------------------------- loading


def reach(hub_id: str) -> None:
    """Fetch one small file of a model, because an unreachable Hub is retried for long with each file.

    Raises:
        RlvrError: when the Hub, or the model on it, cannot be reached.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    with loading(hub_id):
        try:
            hf_hub_download(hub_id, "config.json")
        except GatedRepoError:
            raise RlvrError(
                f"{hub_id}: its owner grants access one by one: ask on its page, then hf auth login"
            ) from None
        except RepositoryNotFoundError:
            raise RlvrError(
                f"{hub_id}: no such model on the Hub: check the name; a private one: hf auth login"
            ) from None


def load_with_transformers(
    source: Path | str,
    *,
    max_seq_length: int,
    fresh: LoraShape | None,
    adapter: Path | None,
    device: str,
    seed: int,
) -> tuple[Any, Any]:
    """Load with transformers and peft: float32 on the CPU, bfloat16 and gradient checkpointing on CUDA.

    `fresh` is the shape of the LoRA to train, None for inference; `adapter` is what it starts from. `max_seq_length`
    is only for a common signature with `load_with_unsloth`.
    """
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    with loading(source):
        tokenizer = AutoTokenizer.from_pretrained(source)
        loaded: Any = AutoModelForCausalLM.from_pretrained(source, dtype=dtype, output_loading_info=True)
    model, report = loaded
    if report["missing_keys"]:
        # transformers fills them with random numbers and goes on.
        missing = sorted(report["missing_keys"])
        raise RlvrError(f"base model {source}: {len(missing)} weights are missing, such as {missing[0]}: get it again")
    model.to(device)
    if adapter is not None:
        model = attach_adapter(model, adapter, trainable=fresh is not None)
    elif fresh is not None:
        lora = LoraConfig(
            r=fresh.rank,
            lora_alpha=fresh.alpha,
            lora_dropout=0.0,
            bias="none",
            target_modules=lora_targets(model),
            task_type="CAUSAL_LM",
        )
        with seeded(seed, device):
            model = get_peft_model(model, lora)
    if fresh is not None and device == "cuda":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.enable_input_require_grads()
    return model, tokenizer


def load_with_unsloth(
    source: Path | str,
    *,
    max_seq_length: int,
    fresh: LoraShape | None,
    adapter: Path | None,
    device: str,
    seed: int,
) -> tuple[Any, Any]:
    """Load with unsloth, 16-bit weights; the arguments are those of `load_with_transformers`.

    A saved adapter is put into a LoRA that unsloth made, so that its gradient checkpointing and the given base model
    hold for a warm start too: unsloth's own loading of an adapter takes the base that the adapter names.
    """
    from unsloth import FastModel  # type: ignore[import-not-found]  # isort: skip
    from peft import load_peft_weights, set_peft_model_state_dict
    from transformers import ProcessorMixin

    with loading(source):
        model, tokenizer = FastModel.from_pretrained(**unsloth_model_arguments(source, max_seq_length))
    # Multimodal models come with a processor; tasks are text, and TRL takes a tokenizer for text.
    if isinstance(tokenizer, ProcessorMixin):
        tokenizer = tokenizer.tokenizer
    if fresh is not None:
        model = FastModel.get_peft_model(model, **unsloth_lora_arguments(fresh, seed))
        if adapter is not None:
            with loading(adapter):
                weights = load_peft_weights(str(adapter), device=device)
                check_adapter_weights(model, "default", weights, adapter)
                set_peft_model_state_dict(model, weights)
    elif adapter is not None:
        model = attach_adapter(model, adapter)
    return model, tokenizer


def unsloth_model_arguments(source: Path | str, max_seq_length: int) -> dict[str, Any]:
    """What `FastModel.from_pretrained` is called with; a dtype of None is bfloat16 where the GPU has it."""
    return {
        "model_name": str(source),
        "max_seq_length": max_seq_length,
        "dtype": None,
        "load_in_4bit": False,
        "load_in_16bit": True,
        "full_finetuning": False,
    }


def unsloth_lora_arguments(shape: LoraShape, seed: int) -> dict[str, Any]:
    """What `FastModel.get_peft_model` is called with, beside the model: LoRA on the language part alone."""
    return {
        "r": shape.rank,
        "lora_alpha": shape.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "finetune_vision_layers": False,
        "finetune_language_layers": True,
        "finetune_attention_modules": True,
        "finetune_mlp_modules": True,
        "use_gradient_checkpointing": "unsloth",
        "random_state": seed,
    }


def lora_targets(model: Any) -> str | list[str]:
    """What LoRA goes on: the attention and MLP projections, of the language part alone where there are others.

    Raises:
        RlvrError: for a model that has none under these names.
    """
    names = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    if any(re.search(r"(^|\.)language_model\.", name) for name in names):
        # Vision and audio towers use the same suffixes, partly for layers that LoRA cannot wrap.
        return rf".*language_model.*\.({'|'.join(LORA_SUFFIXES)})"
    found = {name.rpartition(".")[2] for name in names}
    suffixes = [suffix for suffix in LORA_SUFFIXES if suffix in found]
    if not suffixes:
        raise RlvrError(
            f"base model {model.config.name_or_path}: no layer is named {', '.join(LORA_SUFFIXES)}: take a model of "
            "the Llama, Qwen or Gemma kind"
        )
    return suffixes


def as_policy(
    model: Any, tokenizer: Any, base_model: str, backend: Backend, max_seq_length: int, threads: int
) -> Policy:
    """Make a loaded model and tokenizer ready for generation and training, and say what they are."""
    if not tokenizer.chat_template:
        raise RlvrError(f"base model {base_model!r} has no chat template: take an instruction-tuned model")
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    # Every program that generates reads the end tokens here; a turn often ends with another one than a text.
    model.generation_config.eos_token_id = end_tokens(model, tokenizer)
    num_parameters = sum(weight.numel() for name, weight in model.named_parameters() if ".lora_" not in name)
    device = str(model.device.type)
    if threads:
        torch.set_num_threads(threads)
    elif device == "cpu" and num_parameters < TINY_PARAMETERS:
        torch.set_num_threads(1)
    positions = model.config.get_text_config().max_position_embeddings
    return Policy(
        model=model.eval(),
        tokenizer=tokenizer,
        device=device,
        backend=backend,
        prompt_style=tokenizer.init_kwargs.get("prompt_style", "full"),
        num_parameters=num_parameters,
        context_length=min(max_seq_length, positions),
    )


@contextmanager
def loading(source: Path | str) -> Iterator[None]:
    """Turn what the libraries raise for an unreachable or broken model into one line.

    Raises:
        RlvrError: naming `source`.
    """
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        # The first line says it; the rest is advice about other libraries' arguments.
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".:")
        what = "copy or save it again" if isinstance(source, Path) else "check the name, the network and your access"
        raise RlvrError(f"{source}: cannot be loaded ({reason}): {what}") from error


@contextmanager
def quiet_bars() -> Iterator[None]:
    """Hide transformers' progress bars, which say nothing about a model that is on this disk."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


# ---------------------------------------------------------------- adapters


def attach_adapter(model: Any, folder: Path, *, name: str = "default", trainable: bool = False) -> Any:
    """Load a saved LoRA onto a base model, or as one more onto a model that has some; return the PeftModel.

    The first one is active; later ones are put to use with `active_adapter`.

    Raises:
        RlvrError: for a broken file, and weights that are not the ones this model's adapter has.
    """
    from peft import PeftModel, load_peft_weights

    with loading(folder):
        if isinstance(model, PeftModel):
            model.load_adapter(str(folder), adapter_name=name, is_trainable=trainable)
        else:
            model = PeftModel.from_pretrained(model, str(folder), adapter_name=name, is_trainable=trainable)
        # peft leaves out what does not match, with a warning at most.
        check_adapter_weights(model, name, load_peft_weights(str(folder), device="cpu"), folder)
    return model


def check_adapter_weights(model: Any, name: str, weights: dict[str, torch.Tensor], folder: Path) -> None:
    """Compare the names of an adapter's weights with those that the model's adapter of that name has.

    Raises:
        RlvrError: when they differ.
    """
    from peft import get_peft_model_state_dict

    expected = get_peft_model_state_dict(model, adapter_name=name, save_embedding_layers=False).keys()
    if different := sorted(weights.keys() ^ expected):
        raise RlvrError(
            f"{folder}: {len(different)} weights do not match this base model's layers, such as {different[0]}: "
            "use the adapter with the base model that it was made for"
        )


@contextmanager
def active_adapter(model: Any, name: str | None) -> Iterator[Any]:
    """Use the adapter of that name, or the bare base model for None, for as long as the context lasts."""
    from peft import PeftModel

    if not isinstance(model, PeftModel):
        if name is not None:
            raise ValueError(f"no adapter {name!r} on a model without adapters")
        yield model
        return
    # peft makes whatever it switches on trainable; what was trainable before is again afterwards, and nothing else.
    trainable = {id(weight) for weight in model.parameters() if weight.requires_grad}
    before: Any = model.active_adapter
    try:
        if name is None:
            with model.disable_adapter():
                yield model
        else:
            model.set_adapter(name, inference_mode=True)
            yield model
    finally:
        model.set_adapter(before, inference_mode=True)
        for weight in model.parameters():
            weight.requires_grad_(id(weight) in trainable)
