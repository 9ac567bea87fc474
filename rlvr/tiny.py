"""The tiny base model: its tokenizer, its supervised training and its score on real or sample entries.

    python -m rlvr.tiny make                                  # rebuild rlvr/assets/tiny: twenty minutes, two cores
    python -m rlvr.tiny score --corpus oeisdata -n 300 -k 8   # greedy, sampled and within-8 on real entries

A Llama of about two million parameters learns the pairs that rlvr/synthetic.py makes up: from a compact prompt (name,
offset, first terms) to a short Python function. It exists so that the whole reinforcement learning cycle can run in
minutes without a GPU. It is not a language model for anything else, and its scores say nothing about large ones.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rlvr.arguments import Parser, positive, run_program
from rlvr.base_models import TINY_DIR
from rlvr.errors import RlvrError
from rlvr.synthetic import Pair, compact_prompt, sample_pair

BOS, EOS, PAD = "<bos>", "<eos>", "<pad>"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}{{ message['content'] + eos_token }}"
    "{% else %}{{ bos_token + message['content'] }}{% endif %}"
    "{% endfor %}"
)

VOCAB_SIZE = 640
TOKENIZER_PAIRS = 20_000  # pairs the tokenizer is trained on
# Share of the pairs without a name, whose families are the ones that terms alone determine. First the model learns to
# read names, which is quick; then it spends more of its time on the slow part, arithmetic on the terms.
HIDE_NAME_SHARE, LATER_HIDE_NAME_SHARE, LATER_FROM_PAIR = 0.3, 0.55, 153_600
N_SHOWN = 10  # terms in a training prompt, as in the environment's default
MODEL = {
    "hidden_size": 192,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "max_position_embeddings": 512,
}
BATCH = 128  # pairs a step, over all workers
CHUNK_BATCHES = 16  # batches drawn together and sorted by length, so that little is padded
WARMUP_STEPS = 100
DECAY_SHARE = 0.25  # of the steps at the end, in which the learning rate falls linearly
FINAL_LEARNING_RATE_SHARE = 0.5  # where it ends: a rate of zero makes samples too alike for reinforcement
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 0.05
CHECKPOINT_CHUNKS = 15

SCORE_BATCH = 100
MAX_NEW_TOKENS = 128
MAX_HIDDEN = 40  # terms beyond the shown ones that must be right, as in the environment's default


def make_tokenizer(seed: int, n_pairs: int = TOKENIZER_PAIRS, vocab_size: int = VOCAB_SIZE):
    """A byte-level BPE tokenizer in which every digit is a token of its own. Merges may cross words and operators."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[PAD, BOS, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )

    texts = [text for index in range(n_pairs) for text in example(seed, -1 - index)]
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=BOS, eos_token=EOS, pad_token=PAD, padding_side="left",
        chat_template=CHAT_TEMPLATE, clean_up_tokenization_spaces=False, prompt_style="compact",
    )  # fmt: skip


def example(seed: int, index: int) -> tuple[str, str]:
    """The training pair number `index`: (prompt, answer). It depends on nothing but `seed` and `index`."""
    rng = random.Random(f"{seed}:{index}")
    hide_share = HIDE_NAME_SHARE if index < LATER_FROM_PAIR else LATER_HIDE_NAME_SHARE
    pair: Pair = sample_pair(rng, hide_name=rng.random() < hide_share)
    return compact_prompt(pair.name, pair.offset, pair.terms[:N_SHOWN]), pair.code


def learning_rate(step: int, steps: int) -> float:
    """Linear warm-up, constant, linear fall: until the fall begins it does not depend on `steps`, so a run can be
    lengthened or ended early and is still the run that a fresh start with the new number of steps would give."""
    fall = max(1, int(steps * DECAY_SHARE))
    fallen = max(0.0, (step - (steps - fall)) / fall)
    return LEARNING_RATE * min(1.0, (step + 1) / WARMUP_STEPS, 1 - (1 - FINAL_LEARNING_RATE_SHARE) * fallen)


def batches(tokenizer, seed: int, first_chunk: int, rank: int, workers: int, batch: int):
    """Endless (chunk number, token ids, answer mask) of this worker; ids and mask are (pairs, longest) int64 and bool.

    A chunk is CHUNK_BATCHES batches of pairs, sorted by length and cut; the batches come in the same shuffled order in
    every worker, so that those that run at the same time are about equally long.
    """
    import torch

    share = batch // workers
    chunk = first_chunk
    while True:
        start = chunk * CHUNK_BATCHES * batch + rank * CHUNK_BATCHES * share
        pairs = [example(seed, start + i) for i in range(CHUNK_BATCHES * share)]
        prompts = tokenizer([p for p, _ in pairs], add_special_tokens=False)["input_ids"]
        answers = tokenizer([a for _, a in pairs], add_special_tokens=False)["input_ids"]
        rows = [
            ([tokenizer.bos_token_id, *p], [*a, tokenizer.eos_token_id]) for p, a in zip(prompts, answers, strict=True)
        ]
        rows.sort(key=lambda row: len(row[0]) + len(row[1]))
        order = list(range(CHUNK_BATCHES))
        random.Random(f"{seed}:{chunk}").shuffle(order)
        for k in order:
            part = rows[k * share : (k + 1) * share]
            longest = max(len(p) + len(a) for p, a in part)
            ids = torch.full((share, longest), tokenizer.pad_token_id)
            mask = torch.zeros((share, longest), dtype=torch.bool)
            for i, (p, a) in enumerate(part):
                ids[i, : len(p) + len(a)] = torch.tensor(p + a)
                mask[i, len(p) : len(p) + len(a)] = True
            yield chunk, ids, mask
        chunk += 1


def plain_attention(module, query, key, value, attention_mask, scaling, **kwargs):
    """Causal attention (batch, heads, length, head size) by two matrix products, for short rows padded on the right.

    torch's fused kernel has a backward pass that is several times slower in bfloat16 on the CPU.
    """
    import torch

    length = query.shape[2]
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    scores = (query @ key.transpose(-1, -2)).float() * scaling
    weights = scores.masked_fill(future, float("-inf")).softmax(-1).to(value.dtype)
    return (weights @ value).transpose(1, 2).contiguous(), None


def new_model(tokenizer, seed: int, sizes: dict[str, Any]):
    """A freshly initialised Llama with tied embeddings, float32."""
    import torch
    from transformers import AttentionInterface, LlamaConfig, LlamaForCausalLM

    AttentionInterface.register("plain_attention", plain_attention)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer), tie_word_embeddings=True, bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, **sizes,
    )  # fmt: skip
    config._attn_implementation = "plain_attention"
    return LlamaForCausalLM(config)


def optimizers(model):
    """Muon for the weight matrices of the layers, AdamW for embeddings and norms."""
    import torch

    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    rest = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    return [
        torch.optim.Muon(matrices, lr=1.0, weight_decay=WEIGHT_DECAY, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(rest, lr=1.0, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def train(
    tokenizer, out: Path, *, seed: int, steps: int, rank: int, workers: int, batch: int, sizes, resume: bool, store
):
    """Trains and, in worker 0, writes checkpoints and log lines into `out`; returns the model.

    Each worker is a process with one thread: two of them finish sooner than one with two threads whenever another
    program needs a core, and the sum of their gradients does not depend on which came first.
    """
    import torch
    import torch.distributed as dist

    if workers > 1:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=workers)
    model = new_model(tokenizer, seed, sizes)
    opts = optimizers(model)
    parameters = list(model.parameters())
    step = chunk = 0
    checkpoint = out / "checkpoint.pt"
    if resume:
        state = torch.load(checkpoint, weights_only=False)
        model.load_state_dict(state["model"])
        for opt, saved in zip(opts, state["optimizers"], strict=True):
            opt.load_state_dict(saved)
        step, chunk = state["step"], state["chunk"]
    began, loss_sum, loss_n, tokens = time.monotonic(), 0.0, 0, 0
    model.train()
    for at_chunk, ids, mask in batches(tokenizer, seed, chunk, rank, workers, batch):
        if at_chunk != chunk:
            chunk = at_chunk
            if rank == 0 and chunk % CHECKPOINT_CHUNKS == 0:
                state = {
                    "model": model.state_dict(),
                    "optimizers": [o.state_dict() for o in opts],
                    "step": step,
                    "chunk": chunk,
                }
                torch.save(state, out / "checkpoint.tmp")
                os.replace(out / "checkpoint.tmp", checkpoint)
        if step == steps:
            break
        with torch.autocast("cpu", torch.bfloat16):
            hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
            logits = model.lm_head(hidden[mask[:, 1:]])  # only where an answer token comes next
        loss = torch.nn.functional.cross_entropy(logits.float(), ids[:, 1:][mask[:, 1:]])
        loss.backward()
        if workers > 1:
            gradients = [p.grad for p in parameters if p.grad is not None]
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
            dist.all_reduce(flat)
            flat /= workers
            at = 0
            for gradient in gradients:
                gradient.copy_(flat[at : at + gradient.numel()].view_as(gradient))
                at += gradient.numel()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        for opt in opts:
            for group in opt.param_groups:
                group["lr"] = learning_rate(step, steps)
            opt.step()
            opt.zero_grad()
        step += 1
        loss_sum, loss_n, tokens = loss_sum + loss.item(), loss_n + 1, tokens + ids.numel() * workers
        if rank == 0 and (step % 20 == 0 or step == steps):
            elapsed = time.monotonic() - began
            loss_mean = round(loss_sum / loss_n, 4)
            line = {"step": step, "pairs": step * batch, "loss": loss_mean, "seconds": round(elapsed, 1),
                    "tokens_per_s": round(tokens / elapsed), "lr": learning_rate(step - 1, steps)}  # fmt: skip
            with open(out / "log.jsonl", "a") as log:
                log.write(json.dumps(line) + "\n")
            loss_sum = loss_n = 0
    if workers > 1:
        dist.destroy_process_group()
    return model


def save(model, tokenizer, out: Path) -> None:
    """Writes the model as bfloat16 (half the size) with a configuration that loads it as float32."""
    from transformers import LlamaForCausalLM

    config = model.config
    config._attn_implementation = "sdpa"
    stored = LlamaForCausalLM(config).bfloat16()
    stored.load_state_dict(model.state_dict())
    stored.save_pretrained(out)
    path = out / "config.json"
    text = json.loads(path.read_text())
    text["dtype"] = "float32"
    path.write_text(json.dumps(text, indent=2, sort_keys=True) + "\n")
    tokenizer.save_pretrained(out)


def worker(rank: int, args: argparse.Namespace, store: str) -> None:
    """One process of `make`; worker 0 saves."""
    import torch

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    tokenizer = make_tokenizer(args.seed, args.tokenizer_pairs)
    sizes = MODEL | ({"num_hidden_layers": args.layers} if args.layers else {})
    model = train(
        tokenizer, args.work, seed=args.seed, steps=args.steps, rank=rank, workers=args.workers, batch=args.batch,
        sizes=sizes, resume=args.resume, store=store,
    )  # fmt: skip
    if rank == 0:
        save(model, tokenizer, args.out)


def make(args: argparse.Namespace) -> None:
    """Trains the model with `args.workers` processes and saves it to `args.out`."""
    import torch
    import torch.multiprocessing as mp

    if args.batch % args.workers:
        raise RlvrError(f"--batch {args.batch} does not divide by --workers {args.workers}: choose a multiple")
    args.work = args.work or args.out / "work"
    args.work.mkdir(parents=True, exist_ok=True)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.resume and not (args.work / "checkpoint.pt").exists():
        raise RlvrError(f"{args.work}/checkpoint.pt: not there, so there is nothing to resume; leave out --resume")
    if args.workers == 1:
        threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
        try:
            worker(0, args, "")
        finally:
            torch.set_num_threads(threads)
            torch.use_deterministic_algorithms(deterministic)
        return
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, (args, f"{folder}/store"), nprocs=args.workers)


# ---------------------------------------------------------------------------------------------------------------------
# Score


def complete(model, tokenizer, prompts: list[str], samples: int, temperature: float, seed: int) -> list[list[str]]:
    """`samples` completions of every prompt; temperature 0 is greedy. Prompts of about the same length go together."""
    import torch

    torch.manual_seed(seed)
    out: list[list[str]] = [[] for _ in prompts]
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    sampling = (
        {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
        if temperature
        else {"do_sample": False}
    )
    for at in range(0, len(order), SCORE_BATCH):
        part = order[at : at + SCORE_BATCH]
        texts = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": prompts[i]}], add_generation_prompt=True, tokenize=False
            )
            for i in part
        ]
        inputs = tokenizer(
            texts, return_tensors="pt", padding=True, add_special_tokens=False, return_token_type_ids=False
        )
        with torch.inference_mode():
            rows = model.generate(
                **inputs, max_new_tokens=MAX_NEW_TOKENS, num_return_sequences=samples, **sampling,
                pad_token_id=tokenizer.pad_token_id,
            )  # fmt: skip
        answers = tokenizer.batch_decode(rows[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        for j, i in enumerate(part):
            out[i] = answers[j * samples : (j + 1) * samples]
    return out


def score(args: argparse.Namespace) -> None:
    """Prints how many of `args.n` entries the model solves: all terms shown (10) and hidden (up to 40) are right."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from rlvr.corpus import open_corpus
    from rlvr.sandbox.grader import Job, Sandbox, extract_code

    torch.set_num_threads(args.threads)
    corpus = open_corpus(args.corpus)
    entries = corpus.select(split=args.split, limit=args.n, seed=args.seed).entries
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    prompts, inputs, expected = [], [], []
    for entry in entries:
        name = "" if args.hide_name else entry.name
        prompts.append(compact_prompt(name, entry.offset or 0, entry.terms[:N_SHOWN]))
        terms = entry.terms[: N_SHOWN + MAX_HIDDEN]
        expected.append(terms)
        inputs.append(tuple(range(entry.offset or 0, (entry.offset or 0) + len(terms))))

    def solved(answers: list[list[str]], sandbox: Sandbox) -> list[list[bool]]:
        jobs = [Job(extract_code(text), inputs[i], expected[i]) for i, texts in enumerate(answers) for text in texts]
        right = iter(result.verdict == "ok" for result in sandbox.run(jobs))
        return [[next(right) for _ in texts] for texts in answers]

    with Sandbox() as sandbox:
        greedy = complete(model, tokenizer, prompts, 1, 0.0, args.seed)
        marks = solved(greedy, sandbox)
        n = len(entries)
        print(f"{n} entries of {corpus.path}, name {'hidden' if args.hide_name else 'shown'}")
        print(f"greedy: {sum(m[0] for m in marks) / n:.1%}")
        if args.k > 1:
            sampled = solved(complete(model, tokenizer, prompts, args.k, args.temperature, args.seed), sandbox)
            mean = sum(sum(m) for m in sampled) / (n * args.k)
            mixed = sum(0 < sum(m) < args.k for m in sampled) / n
            print(f"sampled at temperature {args.temperature:g}: {mean:.1%}")
            print(f"within {args.k}: {sum(any(m) for m in sampled) / n:.1%}, sometimes solved: {mixed:.1%}")
    if args.verbose:
        for entry, answers, (ok,) in zip(entries, greedy, marks, strict=True):
            print(f"{'ok ' if ok else '-- '}{entry.anum} {compact_prompt(entry.name, 0, ())[:-4]!r} {answers[0]!r}")


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = Parser(prog="python -m rlvr.tiny", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    sub = commands.add_parser("make", help="rebuild the model from a seed")
    sub.add_argument("--out", type=Path, default=TINY_DIR, help="folder for the model")
    sub.add_argument("--work", type=Path, help="folder for log.jsonl and checkpoint.pt (default: OUT/work)")
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument("--steps", type=positive, default=1600)
    sub.add_argument("--batch", type=positive, default=BATCH, help="pairs a step, over all workers")
    sub.add_argument("--workers", type=positive, default=2, help="processes of one thread; results depend on it")
    sub.add_argument("--layers", type=positive, help="other than the shipped model's number, for tests")
    sub.add_argument("--tokenizer-pairs", type=positive, default=TOKENIZER_PAIRS, help="fewer make a quick test")
    sub.add_argument("--resume", action="store_true", help="go on from WORK/checkpoint.pt, perhaps to other --steps")
    sub.set_defaults(run=make)
    sub = commands.add_parser("score", help="share of entries of a corpus that the model solves")
    sub.add_argument("--corpus", type=Path, help="folder of .seq files (default: oeisdata, else the bundled sample)")
    sub.add_argument("--model", type=Path, default=TINY_DIR)
    sub.add_argument("-n", type=positive, default=300, help="entries")
    sub.add_argument("-k", type=positive, default=1, help="samples an entry, besides the greedy answer")
    sub.add_argument("--temperature", type=float, default=1.0)
    sub.add_argument("--split", choices=["train", "eval"], help="only this split of the corpus")
    sub.add_argument("--hide-name", action="store_true")
    sub.add_argument("--seed", type=int, default=0, help="chooses the entries and seeds the sampling")
    sub.add_argument("--threads", type=positive, default=1)
    sub.add_argument("--verbose", action="store_true", help="print every greedy answer")
    sub.set_defaults(run=score)
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    args = arguments(argv)
    args.run(args)
    return 0


if __name__ == "__main__":
    sys.exit(run_program(lambda: main(sys.argv[1:])))
