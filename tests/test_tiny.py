"""The tiny base model: tokenizer, prompt format, the shipped weights, and that training is the same twice."""

import argparse
import hashlib
import json
import random
from pathlib import Path

import pytest
import torch
from conftest import ROOT
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlvr import tiny
from rlvr.base_models import TINY_DIR
from rlvr.errors import RlvrError
from rlvr.synthetic import compact_prompt, sample_pair, terms_of

DIGITS = "0123456789"


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(TINY_DIR)


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(TINY_DIR).eval()


def test_tokenizer_gives_back_every_text(tokenizer):
    for seed in range(300):
        pair = sample_pair(random.Random(seed), hide_name=seed % 3 == 0)
        for text in (compact_prompt(pair.name, pair.offset, pair.terms), pair.code):
            assert tokenizer.decode(tokenizer.encode(text)) == text
    for text in ("", "\u221e \u00e9\t{}\n\n  x", "<b>0</b>", " leading and trailing "):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_every_digit_is_one_token(tokenizer):
    with_digits = [token for token in tokenizer.get_vocab() if set(token) & set(DIGITS)]
    assert sorted(with_digits) == list(DIGITS)
    assert len(tokenizer.encode("a(n)=1234567890")) == len(tokenizer.encode("a(n)=")) + 10


def test_chat_template_gives_the_training_format(tokenizer):
    prompt, answer = tiny.example(0, 0)
    message = [{"role": "user", "content": prompt}]
    ids = tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=False)
    assert ids == [tokenizer.bos_token_id, *tokenizer.encode(prompt)]
    whole = tokenizer.apply_chat_template([*message, {"role": "assistant", "content": answer}], return_dict=False)
    assert whole == [*ids, *tokenizer.encode(answer), tokenizer.eos_token_id]
    _, rows, mask = next(tiny.batches(tokenizer, 0, 0, 0, 1, 16))
    row, answered = rows[0], mask[0]
    start = int(answered.int().argmax())
    assert row[0] == tokenizer.bos_token_id and "\n" in tokenizer.decode(row[start - 1])
    assert row[answered][-1] == tokenizer.eos_token_id
    assert not answered[row == tokenizer.pad_token_id].any()
    assert tokenizer.decode(row[answered][:-1]).startswith(("def a(n)", "import math\n", "def f(n)"))


def test_shipped_model_is_what_its_card_says(model, tokenizer):
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert 1_000_000 <= parameters <= 3_000_000
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight
    assert len(tokenizer) == model.config.vocab_size
    assert (model.config.bos_token_id, model.config.eos_token_id, model.config.pad_token_id) == (
        tokenizer.bos_token_id,
        tokenizer.eos_token_id,
        tokenizer.pad_token_id,
    )
    card = (TINY_DIR / "README.md").read_text()
    digest = hashlib.sha256((TINY_DIR / "model.safetensors").read_bytes()).hexdigest()
    assert f"{parameters:,}" in card and digest in card
    assert sum(path.stat().st_size for path in TINY_DIR.iterdir()) < 8_000_000


EASY = [
    ("a(n) = 7*n + 3.", 0, "7*n+3"),
    ("a(n) = (4*n + 1)^3.", 0, "(4*n+1)**3"),
    ("Multiples of 6.", 0, "6*n"),
    ("Powers of 5.", 0, "5**n"),
    ("a(n) = n^2 + 1.", 0, "n*n+1"),
    ("a(n) = floor(n/3).", 0, "n//3"),
    ("Numbers that are congruent to {1, 4} mod 6.", 1, "3*n-2"),
    ("Fibonacci numbers.", 0, "round(((1+5**.5)/2)**n/5**.5)"),
    ("Number of divisors of n.", 1, "sum(n%d==0 for d in range(1,n+1))"),
    ("a(n) = 2*a(n-1) + 1, with a(0) = 0.", 0, "2**n-1"),
    ("a(n) = n!.", 0, "__import__('math').factorial(n)"),
    ("", 0, "9*n+2"),
    ("", 0, "n**2"),
    ("", 0, "2**n"),
]


def test_shipped_model_solves_easy_prompts(model, tokenizer):
    """Swapped, broken or half-trained weights fail here."""
    solved = []
    rules = [terms_of(f"def a(n): return {rule}", offset, 20) for _, offset, rule in EASY]
    prompts = [compact_prompt(name, offset, terms[:10]) for (name, offset, _), terms in zip(EASY, rules, strict=True)]
    answers = tiny.complete(model, tokenizer, prompts, samples=1, temperature=0.0, seed=0)
    for (name, offset, rule), terms, [answer] in zip(EASY, rules, answers, strict=True):
        try:
            solved.append(terms_of(answer, offset, 20) == terms)
        except Exception as error:
            pytest.fail(f"{name or rule}: {error!r} in {answer!r}")
    assert all(solved), [easy for easy, ok in zip(EASY, solved, strict=True) if not ok]


def test_sampling_differs_and_follows_the_seed(model, tokenizer):
    prompts = [compact_prompt("", 0, [3, 14, 15, 92, 65, 35, 89, 79, 32, 38])]
    one = tiny.complete(model, tokenizer, prompts, samples=8, temperature=1.0, seed=1)
    assert one == tiny.complete(model, tokenizer, prompts, samples=8, temperature=1.0, seed=1)
    assert one != tiny.complete(model, tokenizer, prompts, samples=8, temperature=1.0, seed=2)
    assert len(set(one[0])) > 1


def quick(out: Path, **changes) -> argparse.Namespace:
    given = ["make", "--out", str(out), "--steps", "20", "--batch", "8", "--layers", "1", "--tokenizer-pairs", "300"]
    args = tiny.arguments(given)
    for key, value in changes.items():
        setattr(args, key, value)
    return args


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_make_is_the_same_twice_bit_for_bit(tmp_path, workers):
    for name in ("one", "two"):
        tiny.make(quick(tmp_path / name, workers=workers))
    assert weights(tmp_path / "one") == weights(tmp_path / "two")
    assert (tmp_path / "one" / "tokenizer.json").read_text() == (tmp_path / "two" / "tokenizer.json").read_text()
    lines = [json.loads(line) for line in (tmp_path / "one" / "work" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [20] and lines[0]["pairs"] == 160
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "one")
    assert next(loaded.parameters()).dtype == torch.float32


def test_an_interrupted_run_ends_as_an_uninterrupted_one(tmp_path, monkeypatch):
    """Also when the number of steps is changed before the learning rate begins to fall."""
    monkeypatch.setattr(tiny, "CHECKPOINT_CHUNKS", 1)
    monkeypatch.setattr(tiny, "CHUNK_BATCHES", 2)
    tiny.make(quick(tmp_path / "whole", workers=1, steps=20))
    real_save = torch.save

    def stop_after(state, path):
        real_save(state, path)
        if state["step"] == 8:
            Path(path).replace(tmp_path / "stopped" / "work" / "checkpoint.pt")
            raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", stop_after)
    with pytest.raises(KeyboardInterrupt):
        tiny.make(quick(tmp_path / "stopped", workers=1, steps=40))
    monkeypatch.setattr(torch, "save", real_save)
    tiny.make(quick(tmp_path / "stopped", workers=1, steps=20, resume=True))
    assert weights(tmp_path / "stopped") == weights(tmp_path / "whole")


def test_learning_rate_rises_stays_and_falls_to_half():
    rates = [tiny.learning_rate(step, 1000) for step in range(1000)]
    assert rates[0] < rates[50] < rates[99] == rates[100] == rates[750] == tiny.LEARNING_RATE
    assert rates[999] < rates[800] < rates[751] < tiny.LEARNING_RATE
    assert abs(rates[999] / tiny.LEARNING_RATE - 0.5) < 0.01
    assert [tiny.learning_rate(step, 2000) for step in range(750)] == rates[:750]


def test_a_wrong_number_of_workers_and_a_missing_checkpoint_are_named(tmp_path):
    with pytest.raises(RlvrError, match="--batch 9 does not divide by --workers 2"):
        tiny.make(quick(tmp_path, workers=2, batch=9))
    with pytest.raises(RlvrError, match="nothing to resume"):
        tiny.main(["make", "--out", str(tmp_path / "none"), "--resume"])


def test_score_prints_shares_that_fit_its_own_verbose_lines(capsys):
    assert tiny.main(["score", "--corpus", str(ROOT / "rlvr/assets/sample"), "-n", "12", "-k", "2", "--verbose"]) == 0
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if line.startswith(("ok ", "-- "))]
    solved = sum(row.startswith("ok ") for row in rows)
    assert len(rows) == 12 and f"greedy: {solved / 12:.1%}" in out
    assert "within 2: " in out and "12 entries of" in out
