"""Loading a policy and generating from it, on random small models in local folders; nothing is downloaded."""

import copy
import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_gemma4 import byte_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from rlvr import generation, models
from rlvr.base_models import TINY_DIR, base_identity, parameters_in_folder, parameters_in_name
from rlvr.errors import RlvrError
from rlvr.synthetic import compact_prompt

PROMPTS = ["squares: 1, 4, 9, 16", "b", "primes: 2, 3, 5, 7, 11, 13, 17, 19, 23"]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama whose answers end after about twenty tokens when sampled."""
    folder = tmp_path_factory.mktemp("llama")
    tokenizer = byte_tokenizer()
    # No padding token, as in many checkpoints.
    tokenizer.pad_token = None
    tokenizer.init_kwargs["prompt_style"] = "compact"
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=256,
            bos_token_id=2,
            eos_token_id=list(range(4, 16)),
        )
        model = LlamaForCausalLM(config)
        # Larger than a fresh model's: its greedy answers then vary from token to token.
        for weight in model.parameters():
            weight.data.mul_(8.0 if weight.dim() == 2 else 1.0)
        model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def policy(llama: Path) -> models.Policy:
    return load(llama)


def load(folder: Path, **arguments: Any) -> models.Policy:
    return models.load_policy(str(folder), **{"max_seq_length": 128} | arguments)


def trained(llama: Path, folder: Path, seed: int = 0) -> models.Policy:
    """A trainable policy whose LoRA is no longer the identity, saved into `folder`."""
    policy = load(llama, lora_rank=4, lora_alpha=8, trainable=True, seed=seed)
    randomise(policy.model, seed)
    policy.model.save_pretrained(folder)
    return policy


def randomise(model: Any, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if ".lora_B" in name:
                weight.copy_(torch.randn(weight.shape, generator=generator))


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model(input_ids=torch.arange(20, 40).unsqueeze(0)).logits


def generate(policy: models.Policy, **arguments: Any) -> list[list[models.Generation]]:
    return models.generate(
        policy.model,
        policy.tokenizer,
        PROMPTS,
        **{"max_new_tokens": 40, "batch_size": 64, "seed": 0, "temperature": 1.0} | arguments,
    )


# ---------------------------------------------------------------- loading


def test_policy_says_what_was_loaded(llama: Path, policy: models.Policy):
    assert (policy.device, policy.backend, policy.prompt_style) == ("cpu", "transformers", "compact")
    assert policy.num_parameters == parameters_in_folder(llama)
    assert policy.context_length == 128
    assert load(llama, max_seq_length=100_000).context_length == 256
    assert next(policy.model.parameters()).dtype == torch.float32
    assert policy.tokenizer.padding_side == "left"
    assert policy.tokenizer.pad_token == "<eos>"
    # A tiny model keeps to one thread, unless told otherwise.
    assert torch.get_num_threads() == 1
    load(llama, threads=2)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)


def test_fresh_lora_counts_apart_and_comes_from_its_seed(llama: Path, policy: models.Policy):
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first, second, other = (
        load(llama, lora_rank=4, lora_alpha=8, trainable=True, seed=seed).model.state_dict() for seed in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), before), "loading must not shift the caller's random numbers"
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)
    fresh = load(llama, lora_rank=4, lora_alpha=8, trainable=True)
    assert fresh.num_parameters == policy.num_parameters
    assert {
        name.rpartition(".lora_")[2] for name, weight in fresh.model.named_parameters() if weight.requires_grad
    } == {
        "A.default.weight",
        "B.default.weight",
    }
    # A fresh LoRA changes nothing.
    assert torch.equal(logits(fresh.model), logits(policy.model))


def test_what_the_optimizer_changes_reaches_the_sampler(llama: Path):
    policy = load(llama, lora_rank=4, lora_alpha=8, trainable=True)
    before, before_logits = generate(policy, temperature=None), logits(policy.model)
    randomise(policy.model, 0)
    assert not torch.allclose(logits(policy.model), before_logits, atol=0.1)
    assert generate(policy, temperature=None) != before


def test_saved_adapter_gives_the_same_logits_to_the_bit(llama: Path, tmp_path: Path):
    wanted = logits(trained(llama, tmp_path).model)
    assert torch.equal(logits(load(llama, adapter=tmp_path).model), wanted)
    warm = load(llama, adapter=tmp_path, trainable=True, lora_rank=4, lora_alpha=8)
    assert torch.equal(logits(warm.model), wanted)
    assert sum(weight.requires_grad for weight in warm.model.parameters()) == 2 * 7 * 2
    frozen = load(llama, adapter=tmp_path)
    assert not any(weight.requires_grad for weight in frozen.model.parameters())


def test_adapters_share_one_base(llama: Path, policy: models.Policy, tmp_path: Path):
    wanted = {name: logits(trained(llama, tmp_path / name, seed).model) for name, seed in (("one", 1), ("two", 2))}
    wanted_base = logits(policy.model)
    model = load(llama).model
    for name in wanted:
        model = models.attach_adapter(model, tmp_path / name, name=name)
    for name in ("two", None, "one", "two"):
        with models.active_adapter(model, name):
            assert torch.equal(logits(model), wanted[name] if name else wanted_base), name
    assert torch.equal(logits(model), wanted["one"]), "the first one stays the active one"
    assert not any(weight.requires_grad for weight in model.parameters())


def test_active_adapter_leaves_a_trainable_policy_trainable(llama: Path, tmp_path: Path):
    trained(llama, tmp_path, 1)
    policy = load(llama, lora_rank=4, lora_alpha=8, trainable=True)
    trainable = [name for name, weight in policy.model.named_parameters() if weight.requires_grad]
    models.attach_adapter(policy.model, tmp_path, name="other")
    for name in ("other", "default", None):
        with models.active_adapter(policy.model, name):
            pass
    assert [name for name, weight in policy.model.named_parameters() if weight.requires_grad] == trainable


def test_active_adapter_of_a_model_without_any(policy: models.Policy):
    with models.active_adapter(policy.model, None) as model:
        assert model is policy.model
    with pytest.raises(ValueError, match="without adapters"), models.active_adapter(policy.model, "one"):
        pass


@pytest.mark.skipif(not (TINY_DIR / "model.safetensors").is_file(), reason="rlvr/assets/tiny has no weights yet")
def test_tiny_writes_a_function():
    policy = models.load_policy("tiny", max_seq_length=512)
    assert policy.prompt_style == "compact"
    assert policy.num_parameters < 4_000_000
    [[answer]] = models.generate(
        policy.model,
        policy.tokenizer,
        [compact_prompt("a(n) = 2*n + 1.", 0, [1, 3, 5, 7, 9, 11, 13, 15, 17, 19])],
        max_new_tokens=192,
        batch_size=1,
        seed=0,
    )
    assert "def a(n)" in answer.text
    assert not answer.truncated


def test_loading_is_quiet(llama: Path, tmp_path: Path):
    """No bars, warnings or reports for a model that is in order, from a program that only loads and generates."""
    trained(llama, tmp_path)
    code = (
        "import sys; from pathlib import Path; from rlvr.models import load_policy, generate\n"
        "p = load_policy(sys.argv[1], max_seq_length=128, adapter=Path(sys.argv[2]))\n"
        "for temperature in (None, 0.7):\n"
        "    generate(p.model, p.tokenizer, ['x'], max_new_tokens=3, batch_size=1, seed=0, temperature=temperature)"
    )
    command = [sys.executable, "-W", "default::UserWarning", "-c", code, str(llama), str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


def test_importing_models_imports_none_of_what_unsloth_must_precede():
    code = "import sys, rlvr.models; print(sorted({'transformers', 'peft', 'trl', 'unsloth'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# ---------------------------------------------------------------- what a user can get wrong


def refused(base_model: str | Path, **arguments: Any) -> str:
    with pytest.raises(RlvrError) as caught:
        models.load_policy(str(base_model), **{"max_seq_length": 128} | arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("unsloth/gemma-4-E2B-it", 2_000_000_000),
        ("Qwen/Qwen3-0.6B", 600_000_000),
        ("Qwen/Qwen3-30B-A3B", 30_000_000_000),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", 135_000_000),
        ("roneneldan/TinyStories-656K", 656_000),
        ("mistralai/Mistral-7B-Instruct-v0.3", 7_000_000_000),
        ("meta-llama/Llama-3.2-1B-Instruct", 1_000_000_000),
        ("unsloth/Qwen3-4B-Base-unsloth-bnb-4bit", 4_000_000_000),
        ("openai-community/gpt2", None),
        ("microsoft/Phi-4-mini-instruct", None),
        ("13B/model", None),
    ],
)
def test_size_in_a_name(name: str, size: int | None):
    assert parameters_in_name(name) == size


@pytest.mark.parametrize("name", ["unsloth/gemma-4-E2B-it", "Qwen/Qwen3-0.6B", "openai-community/gpt2"])
def test_large_or_unknown_is_refused_on_a_cpu_before_any_download(name: str, monkeypatch: pytest.MonkeyPatch):
    # Nothing listens there: any attempt to download would fail with another message.
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    message = refused(name)
    for way_out in ("--base-model tiny", "HuggingFaceTB/SmolLM2-135M-Instruct", "Colab"):
        assert way_out in message


def test_large_local_folder_is_refused_on_a_cpu(tmp_path: Path):
    """A sparse file with the header of a two billion parameter model."""
    size = 4_000_000_000
    header = json.dumps({"w": {"dtype": "BF16", "shape": [size // 2], "data_offsets": [0, size]}}).encode()
    (tmp_path / "config.json").write_text("{}")
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + size)
    assert "2,000 million parameters" in refused(tmp_path)


class EmptyHub(http.server.BaseHTTPRequestHandler):
    """A Hub that holds no repository, and answers as the real one does."""

    def do_HEAD(self):
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("X-Error-Message", "Repository not found")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_hub_without_the_model_and_no_hub_are_one_line():
    """In processes of their own: the endpoint is read when huggingface_hub is imported."""
    code = (
        "from rlvr.models import load_policy\nfrom rlvr.errors import RlvrError\n"
        "try: load_policy('nobody/nothing-1M', max_seq_length=128)\nexcept RlvrError as error: print(error)"
    )
    # Past any proxy, whatever this machine is set to, and with time for a hub that is slow to answer.
    direct = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "HF_HUB_OFFLINE": "0", "HF_HUB_ETAG_TIMEOUT": "300"}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), EmptyHub) as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        for extra, expected in (
            ({"HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}", **direct}, "no such model on the Hub"),
            ({"HF_HUB_OFFLINE": "1"}, "check the name, the network"),
        ):
            process = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **extra}, timeout=900
            )
            assert process.stdout.startswith("nobody/nothing-1M: "), process
            assert expected in process.stdout
            assert (process.stdout.count("\n"), process.stderr) == (1, "")
        hub.shutdown()


def test_paths_that_hold_no_model(tmp_path: Path):
    assert "config.json" in refused(tmp_path)
    assert "no such folder" in refused(tmp_path / "absent")
    assert "no such folder" in refused("./absent")
    (tmp_path / "config.json").write_text("{}")
    assert str(tmp_path) in refused(tmp_path)


def test_broken_weights(llama: Path, tmp_path: Path):
    copied = copy_folder(llama, tmp_path / "half")
    file = copied / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    assert str(file) in refused(copied)
    file.write_bytes(b"not safetensors")
    assert str(file) in refused(copied)


def test_missing_weights_are_not_made_up(llama: Path, tmp_path: Path):
    from safetensors.torch import load_file, save_file

    copied = copy_folder(llama, tmp_path / "partial")
    weights = load_file(copied / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    assert "model.layers.1.mlp.up_proj.weight" in refused(copied)


def test_model_without_a_chat_template(llama: Path, tmp_path: Path):
    copied = copy_folder(llama, tmp_path / "plain")
    (copied / "chat_template.jinja").unlink()
    assert "chat template" in refused(copied)


def test_adapter_folders_that_do_not_fit(llama: Path, tmp_path: Path):
    good = tmp_path / "good"
    trained(llama, good)
    assert "adapter_config.json" in refused(llama, adapter=tmp_path / "absent")
    assert "lora_rank = 4, not 8" in refused(llama, adapter=good, trainable=True, lora_rank=8, lora_alpha=8)
    assert "lora_alpha = 8, not 9" in refused(llama, adapter=good, trainable=True, lora_rank=4, lora_alpha=9)
    other_base = copy_folder(llama, tmp_path / "other")
    assert "made for base model" in refused(other_base, adapter=good)
    for name, damage in {
        "no-weights": lambda folder: (folder / "adapter_model.safetensors").unlink(),
        "half": lambda folder: os.truncate(folder / "adapter_model.safetensors", 1000),
        "no-json": lambda folder: (folder / "adapter_config.json").write_text("{"),
        "other-kind": lambda folder: edit(folder, peft_type="PROMPT_TUNING"),
        "other-layers": lambda folder: edit(folder, target_modules=["q_proj"]),
    }.items():
        damaged = copy_folder(good, tmp_path / name)
        damage(damaged)
        assert str(damaged) in refused(llama, adapter=damaged), name


def edit(adapter: Path, **changes: Any) -> None:
    file = adapter / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def copy_folder(source: Path, target: Path) -> Path:
    target.mkdir()
    for file in source.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


def test_base_identity_survives_moves_and_quantised_copies():
    assert base_identity("/elsewhere/rlvr/assets/tiny") == base_identity("tiny") == base_identity(str(TINY_DIR))
    assert base_identity("unsloth/gemma-4-E2B-it-unsloth-bnb-4bit") == base_identity("unsloth/gemma-4-e2b-it")
    assert base_identity("unsloth/gemma-4-E4B-it") != base_identity("unsloth/gemma-4-E2B-it")


# ---------------------------------------------------------------- generation


def test_own_decoding_equals_the_models_generate(policy: models.Policy):
    """Greedy, uneven prompts, answers that end at different times, one prompt three times."""
    prompts = models.encode_prompts(policy.tokenizer, [*PROMPTS, "zz", PROMPTS[1], PROMPTS[1]])
    arguments = (policy.model, policy.tokenizer, prompts, 60, None, 1.0)
    with torch.no_grad():
        ours, theirs = generation.complete_with_forward(*arguments), generation.complete_with_generate(*arguments)
    assert ours == theirs
    assert len({len(answer) for answer in ours}) > 1, "answers of one length would not test that ended rows leave"


def test_sampling_follows_the_distribution(policy: models.Policy):
    """First tokens of 4,000 samples against the softmax at that temperature."""
    [ids] = models.encode_prompts(policy.tokenizer, ["x"])
    with torch.no_grad():
        scores = policy.model(input_ids=torch.tensor([ids])).logits[0, -1]
    temperature = 2.0 * float(scores.std())
    wanted = torch.softmax(scores / temperature, -1)
    torch.manual_seed(0)
    drawn = models.complete(policy.model, policy.tokenizer, [ids] * 4000, max_new_tokens=1, temperature=temperature)
    counts = torch.bincount(torch.tensor(drawn).squeeze(-1), minlength=len(wanted))
    # Pearson's chi-squared of n cells has mean n - 1 and variance 2 (n - 1).
    chi_squared = float(((counts - 4000 * wanted) ** 2 / (4000 * wanted)).sum())
    cells = len(wanted) - 1
    assert abs(chi_squared - cells) < 5 * (2 * cells) ** 0.5
    nucleus = models.complete(
        policy.model, policy.tokenizer, [ids] * 500, max_new_tokens=1, temperature=temperature, top_p=0.2
    )
    order = wanted.argsort(descending=True)
    kept = int((wanted[order].cumsum(-1) < 0.2).sum()) + 1
    assert {token for [token] in nucleus} == set(order[:kept].tolist())


def test_same_seed_same_answers_whatever_came_before(policy: models.Policy):
    first = generate(policy, samples=3, seed=5)
    torch.manual_seed(123)
    state = torch.get_rng_state()
    assert generate(policy, samples=3, seed=5) == first
    assert torch.equal(torch.get_rng_state(), state)
    assert generate(policy, samples=3, seed=6) != first
    assert len({answer.text for answer in first[0]}) == 3


def test_answers_come_in_the_order_of_the_prompts(policy: models.Policy):
    alone = [
        models.generate(policy.model, policy.tokenizer, [prompt], max_new_tokens=20, batch_size=1, seed=0)
        for prompt in PROMPTS
    ]
    seen: list[int] = []
    together = generate(policy, temperature=None, max_new_tokens=20, batch_size=2, on_batch=seen.append)
    assert together == [answers for [answers] in alone]
    assert seen == [2, 1]
    assert models.generate(policy.model, policy.tokenizer, [], max_new_tokens=20, batch_size=2, seed=0) == []


def test_truncated_means_that_no_end_token_came(policy: models.Policy):
    """The model ends with any of twelve tokens; the tokenizer's own is a thirteenth."""
    assert generation.end_tokens(policy.model, policy.tokenizer) == [1, *range(4, 16)]
    answers = [answer for answers in generate(policy, samples=30, max_new_tokens=10) for answer in answers]
    assert {answer.truncated for answer in answers} == {True, False}
    for answer in answers:
        assert answer.tokens <= 10
        assert answer.tokens == 10 or not answer.truncated
    ids = models.complete(
        policy.model,
        policy.tokenizer,
        models.encode_prompts(policy.tokenizer, PROMPTS) * 10,
        max_new_tokens=10,
        temperature=1.0,
    )
    assert all(set(row[:-1]).isdisjoint({1, *range(4, 16)}) for row in ids), "something follows an end token"


def test_answers_stop_where_the_positions_end(policy: models.Policy):
    [ids] = models.encode_prompts(policy.tokenizer, ["y" * 200])
    [[answer]] = models.generate(
        policy.model, policy.tokenizer, ["y" * 200], max_new_tokens=500, batch_size=1, seed=0, temperature=0.01
    )
    assert answer.tokens <= 256 - len(ids)
    with pytest.raises(RlvrError, match="show fewer terms"):
        models.generate(policy.model, policy.tokenizer, ["y" * 300], max_new_tokens=5, batch_size=1, seed=0)


def test_generation_restores_the_training_mode(llama: Path):
    policy = load(llama, lora_rank=4, lora_alpha=8, trainable=True)
    policy.model.train()
    settings = copy.deepcopy(policy.model.generation_config.to_dict())
    generate(policy)
    assert policy.model.training
    assert policy.model.generation_config.to_dict() == settings
