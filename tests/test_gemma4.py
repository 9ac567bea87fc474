"""The Gemma 4 path on random tiny models of both classes: load, LoRA, generate, one GRPO step, all on the CPU."""

import ast
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_gemma4 import make_tiny_gemma4

from rlvr import generation, models
from rlvr.base_models import LoraShape

CLASSES = {"text": "Gemma4ForCausalLM", "conditional": "Gemma4ForConditionalGeneration"}


@pytest.fixture(scope="module", params=list(CLASSES))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_gemma4(tmp_path_factory.mktemp("gemma4") / request.param, request.param)


def load(folder: Path, **arguments: Any) -> models.Policy:
    return models.load_policy(str(folder), **{"max_seq_length": 512} | arguments)


def test_lora_is_on_the_language_part_alone(folder: Path):
    policy = load(folder, lora_rank=4, lora_alpha=8, trainable=True)
    assert type(policy.model.get_base_model()).__name__ == CLASSES[folder.name]
    wrapped = [name.removesuffix(".lora_A") for name, _ in policy.model.named_modules() if name.endswith(".lora_A")]
    assert all(re.search(r"\.layers\.\d+\.(self_attn|mlp)\.(q|k|v|o|gate|up|down)_proj$", name) for name in wrapped)
    if folder.name == "conditional":
        assert all(".language_model." in name for name in wrapped)
    # Seven projections in each of four layers; the last two take keys and values from others.
    assert len(wrapped) == 2 * 7 + 2 * 5


def test_own_decoding_equals_the_models_generate(folder: Path):
    """Longer than the sliding window of 64, uneven prompts, a prompt that comes twice."""
    policy = load(folder)
    assert generation.end_tokens(policy.model, policy.tokenizer) == [1, 4]
    prompts = models.encode_prompts(policy.tokenizer, ["primes: 2, 3, 5, 7, 11, 13 " * 3, "x", "squares", "x"])
    assert policy.tokenizer.decode(prompts[1]) == "<bos><|turn>user\nx<turn|>\n<|turn>model\n"
    arguments = (policy.model, policy.tokenizer, prompts, 90, None, 1.0)
    with torch.no_grad():
        ours = generation.complete_with_forward(*arguments)
        assert ours == generation.complete_with_generate(*arguments)
    assert ours[1] == ours[3] != ours[2]


def test_grpo_step_changes_the_adapter_and_a_saved_one_gives_the_same_logits(folder: Path, tmp_path: Path):
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    policy = load(folder, lora_rank=4, lora_alpha=8, trainable=True)
    before = {name: weight.clone() for name, weight in policy.model.named_parameters()}

    def more_vowels(completions: list[list[dict[str, str]]], **columns: Any) -> list[float]:
        return [sum(letter in "aeiou" for letter in completion[0]["content"]) / 10 for completion in completions]

    prompts = [{"prompt": [{"role": "user", "content": text}]} for text in ("one", "another one")]
    trainer = GRPOTrainer(
        model=policy.model,
        processing_class=policy.tokenizer,
        reward_funcs=[more_vowels],
        train_dataset=Dataset.from_list(prompts),
        args=GRPOConfig(
            output_dir=str(tmp_path / "run"),
            per_device_train_batch_size=8,
            num_generations=4,
            max_completion_length=40,
            beta=0.01,
            learning_rate=1e-3,
            max_steps=1,
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
    # Every token that ends a turn ends a completion, not only the tokenizer's own.
    assert sorted(trainer.eos_token_ids) == [1, 4]
    trainer.train()
    assert trainer.state.log_history[0]["reward_std"] > 0, "equal rewards would teach nothing"
    assert trainer.state.log_history[0]["grad_norm"] > 0
    after = dict(policy.model.named_parameters())
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if ".lora_B.default." in name}

    policy.model.save_pretrained(tmp_path / "adapter", selected_adapters=["default"])
    ids = torch.arange(20, 60).unsqueeze(0)
    with torch.no_grad():
        wanted = policy.model.eval()(input_ids=ids).logits
        assert torch.equal(load(folder, adapter=tmp_path / "adapter").model(input_ids=ids).logits, wanted)
        assert not torch.equal(load(folder).model(input_ids=ids).logits, wanted)


def named_parameters(file: Path, owner: str, function: str) -> set[str]:
    """The parameters that a method takes by name, read from its source: importing unsloth patches transformers."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    [body] = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner]
    [method] = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == function]
    return {argument.arg for argument in [*method.args.args, *method.args.kwonlyargs]}


@pytest.mark.skipif(importlib.util.find_spec("unsloth") is None, reason="unsloth is not installed")
def test_unsloth_takes_what_it_is_given():
    """Both signatures end in **kwargs, so that a misspelt argument would vanish in silence."""
    [package] = importlib.util.find_spec("unsloth").submodule_search_locations  # type: ignore[union-attr,misc]
    loader, vision = Path(package) / "models" / "loader.py", Path(package) / "models" / "vision.py"
    given = set(models.unsloth_model_arguments("x", 512))
    assert given <= named_parameters(loader, "FastModel", "from_pretrained")
    given = set(models.unsloth_lora_arguments(LoraShape(32, 64), 0))
    # FastModel.get_peft_model passes everything on to this one.
    assert given <= named_parameters(vision, "FastBaseModel", "get_peft_model")
