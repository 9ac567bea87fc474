"""Run what a GPU machine runs with unsloth, once, on the CPU: load, LoRA, generate, two GRPO steps, save, warm start.

    python -m venv unsloth-venv && unsloth-venv/bin/pip install torch==2.13.0 unsloth "trl<1.15"
    unsloth-venv/bin/pip uninstall -y torchvision
    unsloth-venv/bin/python tests/unsloth_branch.py

Unsloth falls back to a CPU backend for text LoRA where there is no GPU; the model is a random tiny Gemma 4. It goes
through `load_with_unsloth`, the function that `load_policy` calls on CUDA. It is no test of unsloth's GPU kernels, and
pytest does not collect it: unsloth patches the libraries that all other tests use.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import unsloth  # type: ignore[import-not-found]  # isort: skip  # before transformers, as import_backend() does
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parent.parent))

from datasets import Dataset
from tiny_gemma4 import make_tiny_gemma4
from trl import GRPOConfig, GRPOTrainer

from rlvr import models
from rlvr.base_models import LoraShape


def load(folder: Path, adapter: Path | None = None, trainable: bool = True) -> models.Policy:
    model, tokenizer = models.load_with_unsloth(
        folder,
        max_seq_length=512,
        fresh=LoraShape(4, 8) if trainable else None,
        adapter=adapter,
        device="cpu",
        seed=0,
    )
    return models.as_policy(model, tokenizer, str(folder), "unsloth", 512, 0)


def vowels(completions: list[list[dict[str, str]]], **columns: Any) -> list[float]:
    return [sum(letter in "aeiou" for letter in completion[0]["content"]) / 10 for completion in completions]


def logits(policy: models.Policy) -> torch.Tensor:
    policy.model.eval()
    with torch.no_grad():
        return policy.model(input_ids=torch.arange(20, 60).unsqueeze(0)).logits.float()


def main(folder: Path) -> None:
    print(f"unsloth {unsloth.__version__}, {unsloth.FastModel.__mro__[1].__name__}")
    base = make_tiny_gemma4(folder / "gemma4", "text")
    transformers.utils.logging.disable_progress_bar()
    policy = load(base)
    trainable = [name for name, weight in policy.model.named_parameters() if weight.requires_grad]
    dtypes = sorted({str(weight.dtype) for weight in policy.model.parameters()})
    print(
        f"loaded {type(policy.model).__name__} of {policy.num_parameters:,} parameters ({', '.join(dtypes)}), ", end=""
    )
    print(f"{len(trainable)} LoRA matrices, tokenizer {type(policy.tokenizer).__name__}")

    arguments: dict[str, Any] = {"max_new_tokens": 12, "batch_size": 4, "seed": 0, "temperature": 1.0}
    answers = models.generate(policy.model, policy.tokenizer, ["one", "another"], samples=2, **arguments)
    assert answers == models.generate(policy.model, policy.tokenizer, ["one", "another"], samples=2, **arguments)
    print(f"generated {sum(answer.tokens for group in answers for answer in group)} tokens, the same again")

    before = {name: weight.clone() for name, weight in policy.model.named_parameters()}
    trainer = GRPOTrainer(
        model=policy.model,
        processing_class=policy.tokenizer,
        reward_funcs=[vowels],
        train_dataset=Dataset.from_list(
            [{"prompt": [{"role": "user", "content": text}]} for text in ("one", "another one")]
        ),
        args=GRPOConfig(
            output_dir=str(folder / "run"),
            per_device_train_batch_size=8,
            num_generations=4,
            max_completion_length=40,
            learning_rate=1e-3,
            max_steps=2,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            dataloader_pin_memory=False,
        ),
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    for line in trainer.state.log_history[:2]:
        print({key: line[key] for key in ("step", "reward", "reward_std", "loss", "grad_norm") if key in line})
    changed = [name for name, weight in policy.model.named_parameters() if not torch.equal(before[name], weight)]
    assert changed and all(".lora_" in name for name in changed), changed
    print(f"{type(trainer).__module__}.{type(trainer).__name__} changed {len(changed)} LoRA matrices, nothing else")

    adapter = folder / "adapter"
    policy.model.save_pretrained(adapter, selected_adapters=["default"])
    wanted = logits(policy)
    for kind, again in (
        ("warm start", load(base, adapter)),
        ("inference", load(base, adapter, trainable=False)),
        ("transformers and peft", models.load_policy(str(base), max_seq_length=512, adapter=adapter)),
    ):
        difference = float((logits(again) - wanted).abs().max())
        print(f"adapter loaded again for {kind}: logits differ by at most {difference:.2g}")
    bare = logits(models.load_policy(str(base), max_seq_length=512))
    model, _ = models.load_with_unsloth(base, max_seq_length=512, fresh=None, adapter=None, device="cpu", seed=0)
    with torch.no_grad():
        rounding = model.eval()(input_ids=torch.arange(20, 60).unsqueeze(0)).logits.float() - bare
    print(f"for scale: the adapter moved them by {float((bare - wanted).abs().max()):.2g}, ", end="")
    print(f"rounding to {model.dtype} moves the bare base's by {float(rounding.abs().max()):.2g}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
