"""The arithmetic before a cycle: how a step is divided, what it takes of memory and time, from keys and headers."""

from typing import Any

import pytest

from rlvr import budget
from rlvr.base_models import TINY_DIR, tensor_shapes
from rlvr.budget import divide_step, estimate_memory, plan_budget, preview, size_from_shapes
from rlvr.config import TrainConfig, preset_layer, resolve
from rlvr.errors import RlvrError
from rlvr.records import Step


def config(**changes: Any) -> TrainConfig:
    return resolve(TrainConfig, [preset_layer("tiny", TrainConfig), ("test", changes)])[0]


def step(number: int = 1, **changes: Any) -> Step:
    """A step of 64 answers of up to 64 tokens, none cut, that took 2 seconds."""
    values: dict[str, Any] = {
        **{"step": number, "max_steps": 80, "time": 0.0, "reward": 0.3, "reward_std": 0.4, "rewards": {}},
        **{"all_right": 0.25, "mixed": 0.5, "all_wrong": 0.25, "zero_variance": 0.3, "loss": 0.0, "kl": 0.0},
        **{"outcomes": {"solved": 24, "wrong": 40}, "entropy": 0.3, "grad_norm": 0.1, "learning_rate": 1e-3},
        **{"length_mean": 20.0, "length_max": 50, "truncated": 0.0, "tokens": 1280, "tokens_per_s": 1000.0},
        **{"generation_s": 1.0, "scoring_s": 0.2, "update_s": 0.8, "step_s": 2.0},
    }
    return Step(**values | changes)


def rows(config: TrainConfig, earlier: list[Step] | None = None) -> dict[str, str]:
    return dict(preview(config, earlier or []))


def test_a_step_is_divided_into_forward_passes():
    keys = config(prompts_per_step=4, num_generations=6, completions_per_forward=8)
    assert divide_step(keys) == (24, 8, 3)
    assert divide_step(keys, world_size=3) == (24, 8, 1)
    # More in a forward pass than a step has is no mistake.
    assert divide_step(config(prompts_per_step=2, num_generations=2, completions_per_forward=64)) == (4, 4, 1)


def test_what_does_not_divide_is_refused_with_what_does():
    keys = config(prompts_per_step=3, num_generations=4, completions_per_forward=5)
    with pytest.raises(RlvrError, match="12 completions a step on 1 .* use one of 1, 2, 3, 4, 6, 12$"):
        divide_step(keys)
    with pytest.raises(RlvrError, match="on 4 .* use one of 1, 3$"):
        divide_step(keys, world_size=4)
    with pytest.raises(RlvrError, match="use one of fewer processes"):
        divide_step(keys, world_size=5)


def test_fewer_tasks_than_a_step_needs_are_refused():
    with pytest.raises(RlvrError, match=r"limit = 3: fewer tasks than prompts_per_step = 4"):
        divide_step(config(prompts_per_step=4, num_generations=6, completions_per_forward=8, limit=3))


def test_the_longest_prompt_leaves_the_room_of_an_answer():
    keys = config(max_seq_length=512, max_completion_length=0)
    planned = plan_budget(keys, {"A1": 100, "A2": 412, "A3": 7}, world_size=1)
    assert (planned.longest_prompt, planned.completion_tokens) == (412, 100)
    assert plan_budget(config(max_completion_length=64), {"A1": 100}, 1).completion_tokens == 64
    assert plan_budget(config(max_completion_length=64), {"A1": 470}, 1).completion_tokens == 42
    with pytest.raises(RlvrError, match=r"A2: its prompt has 497 tokens"):
        plan_budget(keys, {"A1": 100, "A2": 497}, 1)


def test_memory_is_the_sum_of_its_parts():
    size = budget.ModelSize(parameters=1000, trainable=10, vocabulary=50, cache_width=8, value_bytes=2)
    memory = estimate_memory(size, completions=6, per_forward=3, sequence_tokens=40, completion_tokens=20)
    assert memory == (2000, 160, 3 * 3 * 20 * 50 * 4, 6 * 40 * 8 * 2)
    assert memory.total == 2000 + 160 + 36_000


def test_the_headers_of_the_tiny_model_give_its_size():
    size = size_from_shapes(tensor_shapes(TINY_DIR), lora_rank=16, value_bytes=4)
    # Four layers of width 192 with six heads of 32, an MLP of 512, a vocabulary of 640 that is tied.
    attention, mlp, width = 4 * 192 * 192, 3 * 192 * 512, 192
    assert size.parameters == 640 * width + 4 * (attention + mlp + 2 * width) + width
    assert size.trainable == 16 * 4 * (4 * (192 + 192) + 3 * (192 + 512))
    assert (size.vocabulary, size.cache_width) == (640, 4 * 2 * 192)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tiny", "text", "conditional"])
def test_headers_and_the_loaded_model_give_the_same_size(tmp_path, kind):
    """What the dry run says is what the run itself says, also where a vision tower has projections of its own."""
    from tiny_gemma4 import make_tiny_gemma4

    import gemma4_oeis_rlvr
    from rlvr import models

    folder = TINY_DIR if kind == "tiny" else make_tiny_gemma4(tmp_path / "gemma", kind)
    policy = models.load_policy(str(folder), max_seq_length=512, lora_rank=8, lora_alpha=8, trainable=True)
    loaded = gemma4_oeis_rlvr.loaded_size(policy)
    read = size_from_shapes(tensor_shapes(folder), lora_rank=8, value_bytes=4)
    assert read._replace(parameters=0) == loaded._replace(parameters=0) and policy.num_parameters == loaded.parameters
    # Files also hold a few buffers that are no parameters.
    assert 0 <= read.parameters - loaded.parameters < 0.001 * loaded.parameters


def test_the_preview_of_the_tiny_preset():
    found = rows(config())
    assert "1,894,080 parameters" in found["base model"]
    assert found["adapter"] == "LoRA rank 16, alpha 32: 233,472 parameters to train"
    assert found["a step"] == "8 prompts x 8 samples = 64 completions, 64 in one forward pass x 1"
    assert "at most 4,096 generated a step, 327,680 a cycle" in found["tokens"]
    assert "40,000 answers" in found["before it"]
    assert found["memory"].startswith("about 203 MiB without activations (weights 7 MiB")
    assert "it will not start" not in found


def test_a_time_is_never_invented():
    text = rows(config())["time"]
    # 80 steps of 64 answers of 64 tokens, at 1,000 tokens a second: 327.68 s.
    assert text.startswith("not known") and "at 1,000 generated tokens a second" in text and "takes 5 min" in text


@pytest.mark.parametrize(
    ("changes", "earlier", "expected"),
    [
        ({}, {}, "about 3 min: 80 steps x 2.0 s, the median of 3 earlier steps"),
        ({"prompts_per_step": 16}, {}, "80 steps x 4.0 s"),
        # Nothing was cut at the old limit: a higher one changes nothing, a lower one does.
        ({"max_completion_length": 128}, {}, "80 steps x 2.0 s"),
        ({"max_completion_length": 25}, {}, "80 steps x 1.0 s"),
        ({"max_completion_length": 128}, {"truncated": 0.5, "length_max": 64}, "80 steps x 4.0 s"),
    ],
)
def test_a_measured_time_is_scaled_by_what_differs(changes, earlier, expected):
    steps = [step(1, step_s=2.0, **earlier), step(2, step_s=9.0, **earlier), step(3, step_s=1.5, **earlier)]
    assert expected in rows(config(**changes), steps)["time"]


def test_a_model_that_is_not_here_is_said_so_and_not_guessed():
    found = rows(config(base_model="unsloth/gemma-4-E2B-it"))
    assert "not on this machine" in found["base model"] and "2,000 million" in found["base model"]
    assert found["memory"] == "unknown: the weights of unsloth/gemma-4-E2B-it are not on this machine"
    assert "without a GPU" in found["it will not start"]
    with pytest.raises(RlvrError, match="no such folder"):
        preview(config(base_model="./nowhere"), [])
