"""Say where a base model lies, how large it is and whether an adapter fits it, before anything heavy is loaded.

`find_base_model("tiny")` gives a folder, `refuse_large` stops what this machine cannot run, `check_adapter` reads an
adapter's config. It loads no weights, never touches the network and imports no torch.
"""

import json
import math
import re
from pathlib import Path
from typing import NamedTuple

from rlvr.errors import RlvrError

TINY_DIR = Path(__file__).parent / "assets" / "tiny"
"""The base model that ships with the project."""

MAX_CPU_DOWNLOAD_PARAMETERS = 500_000_000
MAX_CPU_LOCAL_PARAMETERS = 1_000_000_000

WAYS_OUT = (
    "use --base-model tiny (ships with the project), a small model such as "
    "--base-model HuggingFaceTB/SmolLM2-135M-Instruct, or a machine with a GPU such as a rented Colab one"
)


class LoraShape(NamedTuple):
    """Rank and scale of an adapter; alpha / rank multiplies its output."""

    rank: int
    alpha: int


def find_base_model(base_model: str) -> Path | str:
    """The local folder that `base_model` means ("tiny", a path), or the Hub id that it is.

    Raises:
        RlvrError: for a path that does not exist, and a folder without a model in it.
    """
    folder = TINY_DIR if base_model == "tiny" else Path(base_model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise RlvrError(f"{folder}: no config.json: give the folder of a model in Hugging Face's format")
        return folder.resolve()
    if base_model == "tiny":
        raise RlvrError(f"{folder}: the tiny base model is missing: rebuild it with python -m rlvr.tiny make --seed 0")
    # A Hub id is NAME or OWNER/NAME; everything else was meant as a path.
    if not re.fullmatch(r"(?:[\w-][\w.-]*/)?[\w-][\w.-]*", base_model):
        raise RlvrError(f"base model {base_model!r}: no such folder, nor a Hub id (OWNER/NAME): check the path")
    return base_model


def refuse_large(base_model: str, source: Path | str) -> None:
    """Stop before a download or load that a machine without a GPU cannot use.

    Raises:
        RlvrError: naming the ways out.
    """
    if isinstance(source, Path):
        count, limit = parameters_in_folder(source), MAX_CPU_LOCAL_PARAMETERS
        if count is None:
            return
    else:
        cached = cached_folder(source)
        count = parameters_in_folder(cached) if cached else None
        limit = MAX_CPU_LOCAL_PARAMETERS if count else MAX_CPU_DOWNLOAD_PARAMETERS
        count = count or parameters_in_name(source)
        if count is None:
            raise RlvrError(
                f"base model {source!r}: its name does not say how large it is, there is no GPU here, and nothing is "
                f"downloaded on a guess: {WAYS_OUT}, or download it to a folder and give that folder"
            )
    if count > limit:
        raise RlvrError(
            f"base model {base_model!r} has about {count / 1e6:,.0f} million parameters, too many for a machine "
            f"without a GPU (at most {limit / 1e6:,.0f} million): {WAYS_OUT}"
        )


def cached_folder(hub_id: str) -> Path | None:
    """Where the Hub's cache on this machine holds the model; None when it does not."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(hub_id, "config.json")
    return Path(found).parent if isinstance(found, str) else None


def parameters_in_name(hub_id: str) -> int | None:
    """The number of parameters that a name states: "Qwen3-0.6B" -> 600_000_000, "gemma-4-E2B-it" -> 2_000_000_000."""
    sizes = re.findall(r"(?<![a-z0-9.])e?(\d+(?:\.\d+)?)([kmb])(?![a-z0-9])", hub_id.lower().rpartition("/")[2])
    if not sizes:
        return None
    # The largest: "30B-A3B" is 30 billion of which 3 are active.
    return max(int(float(number) * {"k": 10**3, "m": 10**6, "b": 10**9}[unit]) for number, unit in sizes)


def parameters_in_folder(folder: Path) -> int | None:
    """The number of parameters in a folder's safetensors files, from their headers; None when it has none.

    Raises:
        RlvrError: for a file that is not what its header says, such as half a download.
    """
    return sum(map(math.prod, tensor_shapes(folder).values())) or None


def tensor_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every weight in a folder's safetensors files, from their headers; empty when it has none.

    Raises:
        RlvrError: for a file that is not what its header says, such as half a download.
    """
    from safetensors import SafetensorError, safe_open

    shapes = {}
    for file in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(file, framework="numpy") as tensors:
                # keys() is a method of safe_open, which is no mapping.
                for name in tensors.keys():  # noqa: SIM118
                    shapes[name] = tuple(tensors.get_slice(name).get_shape())
        except SafetensorError as error:
            raise RlvrError(f"{file}: broken ({error}): copy or download it again") from None
    return shapes


def check_adapter(folder: Path, base_model: str, lora_rank: int | None, lora_alpha: int | None) -> LoraShape:
    """The shape of a saved LoRA adapter, after checking it against what it is to be used with.

    Raises:
        RlvrError: for a folder without an adapter, another kind, rank, alpha or base model.
    """
    file = folder / "adapter_config.json"
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
        kind, rank, alpha, base = (config[key] for key in ("peft_type", "r", "lora_alpha", "base_model_name_or_path"))
    except FileNotFoundError:
        raise RlvrError(f"{file}: no such file: give the folder of a saved LoRA adapter") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RlvrError(f"{file}: not the config of a LoRA adapter ({error!r}): give the folder of one") from None
    if kind != "LORA":
        raise RlvrError(f"{file}: a {kind} adapter: only LoRA adapters can be used here")
    for name, found, wanted in (("lora_rank", rank, lora_rank), ("lora_alpha", alpha, lora_alpha)):
        if wanted is not None and found != wanted:
            raise RlvrError(f"{file}: made with {name} = {found}, not {wanted}: set {name} = {found}, or start cold")
    if base and base_identity(base) != base_identity(base_model):
        raise RlvrError(f"{file}: made for base model {base!r}, not {base_model!r}: use it with its own base model")
    if not (folder / "adapter_model.safetensors").is_file():
        raise RlvrError(f"{folder}: no adapter_model.safetensors: the adapter was not saved whole")
    return LoraShape(rank, alpha)


def base_identity(base_model: str) -> str:
    """What stays the same of a base model's name when a checkout moves or unsloth takes a quantised copy of it."""
    path = Path(base_model).expanduser()
    # Another checkout's tiny model is known by the end of its path.
    if base_model == "tiny" or path.parts[-3:] == TINY_DIR.parts[-3:]:
        return "tiny"
    if path.is_dir():
        return str(path.resolve())
    return re.sub(r"(-unsloth)?-bnb-4bit$", "", base_model.lower())
