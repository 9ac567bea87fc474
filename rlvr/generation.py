"""Generate answers from a loaded chat model, on a CPU or a GPU.

`generate(model, tokenizer, ["Write ..."], max_new_tokens=192, batch_size=64, seed=0)` takes texts and gives texts;
`complete` takes and gives token ids, for a trainer. It loads nothing.
"""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from rlvr.errors import RlvrError


class Generation(NamedTuple):
    """One answer: `tokens` counts the end token; `truncated` means there was none within the limit."""

    text: str
    tokens: int
    truncated: bool


def encode_prompts(tokenizer: Any, prompts: Sequence[str]) -> list[list[int]]:
    """Each prompt as the user's message of a chat, ready for an answer, in token ids."""
    return [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], add_generation_prompt=True, tokenize=True, return_dict=False
        )
        for prompt in prompts
    ]


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """The ids that end an answer: those of the model's generation config, and the tokenizer's."""
    declared = model.generation_config.eos_token_id
    ids = [] if declared is None else [declared] if isinstance(declared, int) else declared
    return sorted({*ids, *([] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id])})


@contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Draw torch's random numbers from `seed`, and leave the generators as they were afterwards."""
    with torch.random.fork_rng(devices=[torch.cuda.current_device()] if device == "cuda" else []):
        torch.manual_seed(seed)
        yield


def generate(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[str],
    *,
    max_new_tokens: int,
    samples: int = 1,
    temperature: float | None = None,
    top_p: float = 1.0,
    batch_size: int,
    seed: int,
    on_batch: Callable[[int], None] | None = None,
) -> list[list[Generation]]:
    """Answer each prompt `samples` times, in the order of the prompts.

    Greedy when `temperature` is None, else sampled from the whole distribution at that temperature (cut to the nucleus
    `top_p`). The same arguments give the same answers on the same device, whatever was generated before. At most
    `batch_size` answers are generated at once; `on_batch` is told how many after each batch. An answer is cut, and
    marked truncated, at `max_new_tokens` or where the model has no more positions.

    Raises:
        RlvrError: for a prompt that leaves no room for an answer.
    """
    ids = encode_prompts(tokenizer, prompts)
    order = sorted((index for index in range(len(ids)) for _ in range(samples)), key=lambda index: -len(ids[index]))
    room = model.config.get_text_config().max_position_embeddings - max(map(len, ids), default=0)
    if room < 1:
        raise RlvrError(f"a prompt has {1 - room} tokens more than the model has room for: show fewer terms")
    answers: list[list[Generation]] = [[] for _ in prompts]
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        # A stream of its own for each batch: nothing that ran before can shift it.
        with seeded(random.Random(f"{seed} {start}").getrandbits(63), model.device.type):
            batch = complete(
                model,
                tokenizer,
                [ids[index] for index in chosen],
                max_new_tokens=min(max_new_tokens, room),
                temperature=temperature,
                top_p=top_p,
            )
        for index, tokens in zip(chosen, batch, strict=True):
            text = tokenizer.decode(tokens, skip_special_tokens=True)
            answers[index].append(Generation(text, len(tokens), tokens[-1] not in end_tokens(model, tokenizer)))
        if on_batch:
            on_batch(len(chosen))
    return answers


@torch.no_grad()
def complete(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    temperature: float | None,
    top_p: float = 1.0,
) -> list[list[int]]:
    """Continue each row of token ids, all together, up to and with its end token; draws from torch's generator.

    The same as `model.generate`, for less: equal prompts, such as a group's, are read once, and rows that have ended
    leave the batch, which is most of the time saved when answers differ in length.
    """
    was_training = model.training
    model.eval()
    try:
        if "unsloth" in sys.modules:
            # Its patched models promise logits and caches to their own generate alone.
            return complete_with_generate(model, tokenizer, prompts, max_new_tokens, temperature, top_p)
        return complete_with_forward(model, tokenizer, prompts, max_new_tokens, temperature, top_p)
    finally:
        model.train(was_training)


def complete_with_forward(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    temperature: float | None,
    top_p: float,
) -> list[list[int]]:
    """`complete`, one forward pass a token.

    Shapes: B rows that are still being written, T tokens of prompt and answer so far, V the vocabulary.
    """
    unique = list(dict.fromkeys(map(tuple, prompts)))
    tokens_BT, mask_BT = left_padded(unique, tokenizer.pad_token_id, model.device)
    position_B1 = mask_BT.sum(-1, keepdim=True) - 1
    output = model(
        input_ids=tokens_BT,
        attention_mask=mask_BT,
        position_ids=(mask_BT.cumsum(-1) - 1).clamp(min=0),
        use_cache=True,
        logits_to_keep=1,
    )
    cache = output.past_key_values
    index = {prompt: row for row, prompt in enumerate(unique)}
    rows_B = torch.tensor([index[tuple(prompt)] for prompt in prompts], device=model.device)
    cache.batch_select_indices(rows_B)
    logits_BV, mask_BT, position_B1 = output.logits[rows_B, -1], mask_BT[rows_B], position_B1[rows_B]

    ends = torch.tensor(end_tokens(model, tokenizer), device=model.device)
    answers = torch.full((len(prompts), max_new_tokens), tokenizer.pad_token_id, device=model.device)
    lengths = torch.full((len(prompts),), max_new_tokens, device=model.device)
    answer_B = torch.arange(len(prompts), device=model.device)
    ended_B = torch.zeros(len(prompts), dtype=torch.bool, device=model.device)
    for step in range(max_new_tokens):
        token_B = next_tokens(logits_BV, temperature, top_p)
        answers[answer_B, step] = token_B
        ending_B = torch.isin(token_B, ends) & ~ended_B
        lengths[answer_B[ending_B]] = step + 1
        ended_B |= ending_B
        num_ended = int(ended_B.sum())
        if num_ended == len(ended_B):
            break
        # Rows that ended leave a few at a time: each time the whole cache is copied.
        if num_ended * 8 >= len(ended_B):
            live_B = (~ended_B).nonzero().squeeze(-1)
            cache.batch_select_indices(live_B)
            answer_B, token_B, ended_B = answer_B[live_B], token_B[live_B], ended_B[live_B]
            mask_BT, position_B1 = mask_BT[live_B], position_B1[live_B]
        if step + 1 == max_new_tokens:
            break
        mask_BT = torch.cat([mask_BT, mask_BT.new_ones((len(mask_BT), 1))], dim=1)
        position_B1 = position_B1 + 1
        logits_BV = model(
            input_ids=token_B.unsqueeze(-1),
            attention_mask=mask_BT,
            position_ids=position_B1,
            past_key_values=cache,
            use_cache=True,
        ).logits[:, -1]
    return [row[:length] for row, length in zip(answers.tolist(), lengths.tolist(), strict=True)]


def next_tokens(logits_BV: torch.Tensor, temperature: float | None, top_p: float) -> torch.Tensor:
    """One token a row, (B,): the most likely one when `temperature` is None, else a drawn one."""
    from transformers import TopPLogitsWarper

    if temperature is None:
        return logits_BV.argmax(-1)
    scores_BV = logits_BV.float() / temperature
    if top_p < 1.0:
        no_ids: Any = None
        scores_BV = TopPLogitsWarper(top_p)(no_ids, scores_BV)  # type: ignore[arg-type]
    return torch.multinomial(torch.softmax(scores_BV, -1), 1).squeeze(-1)


def complete_with_generate(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    temperature: float | None,
    top_p: float,
) -> list[list[int]]:
    """`complete` with the model's own `generate`."""
    from transformers import GenerationConfig

    if temperature is None:
        # The values that mean "unset" to transformers: it warns that greedy decoding ignores others.
        how: dict[str, Any] = {"do_sample": False, "temperature": 1.0, "top_p": 1.0, "top_k": 50}
    else:
        how = {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": 0}
    ends = end_tokens(model, tokenizer)
    # Complete, so that nothing of the model's own habits (top_k, penalties) is mixed in.
    settings = GenerationConfig(
        max_new_tokens=max_new_tokens,
        eos_token_id=ends,
        pad_token_id=tokenizer.pad_token_id,
        repetition_penalty=1.0,
        use_cache=True,
        disable_compile=True,
        **how,
    )
    tokens, mask = left_padded(prompts, tokenizer.pad_token_id, model.device)
    output = model.generate(input_ids=tokens, attention_mask=mask, generation_config=settings)
    answers = []
    for row in output[:, tokens.shape[1] :].tolist():
        end = next((position for position, token in enumerate(row) if token in ends), len(row))
        answers.append(row[: end + 1])
    return answers


def left_padded(rows: Sequence[Sequence[int]], pad: int, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and attention mask, both (rows, longest): [[5, 6], [8]] -> [[5, 6], [pad, 8]] and [[1, 1], [0, 1]]."""
    width = max(map(len, rows))
    tokens = torch.tensor([[pad] * (width - len(row)) + list(row) for row in rows], device=device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device)
    return tokens, mask
