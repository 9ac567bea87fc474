"""The model: a decoder-only transformer with about 42,000 parameters, and sampling from it.

>>> sum(weight.numel() for weight in Transformer().parameters())
42460

Shapes, as suffixes of tensor names:

    B  answers in the batch      T  tokens of a sequence: prompt, then answer   V  symbols
    D  width of the model        H  attention heads                             K  width of a head
    P  tokens of a prompt        C  tokens of an answer
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rlvr.lab.task import ANSWER_LENGTH, END, PROMPT_LENGTH, SYMBOLS

CONTEXT = PROMPT_LENGTH + ANSWER_LENGTH

Cache = list[list[Tensor]]
"""Per block the keys and values, each (B, H, T, K), of the tokens read so far; an empty list before the first."""


class Block(nn.Module):
    """Attention, then a perceptron; each reads the stream and adds to it."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.before_perceptron = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x_BTD: Tensor, past: list[Tensor] | None) -> Tensor:
        num, length, width = x_BTD.shape
        qkv = self.query_key_value(self.before_attention(x_BTD))
        q_BHTK, k_BHTK, v_BHTK = qkv.view(num, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if past:
            k_BHTK, v_BHTK = torch.cat((past[0], k_BHTK), dim=2), torch.cat((past[1], v_BHTK), dim=2)
        if past is not None:
            past[:] = k_BHTK, v_BHTK
        # A single new token may look at everything before it; several must not look ahead.
        attended_BHTK = F.scaled_dot_product_attention(q_BHTK, k_BHTK, v_BHTK, is_causal=length > 1)
        x_BTD = x_BTD + self.attention_out(attended_BHTK.transpose(1, 2).reshape(num, length, width))
        return x_BTD + self.perceptron(self.before_perceptron(x_BTD))


class Transformer(nn.Module):
    """Symbols in, logits of the next symbol out."""

    def __init__(self, width: int = 40, blocks: int = 2, heads: int = 4):
        super().__init__()
        self.symbols = nn.Embedding(len(SYMBOLS), width)
        self.positions = nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.last = nn.LayerNorm(width)
        self.logits = nn.Linear(width, len(SYMBOLS))
        for weight in self.parameters():
            if weight.ndim == 2:
                # Half the usual size: from small weights it finds rules more often than it learns pairs by heart.
                nn.init.normal_(weight, std=0.5 / math.sqrt(weight.shape[1]))

    def forward(self, tokens_BT: Tensor, cache: Cache | None = None) -> Tensor:
        """Return logits (B, T, V). With a `cache`, `tokens_BT` are only the new tokens, and the cache grows."""
        start = cache[0][0].shape[2] if cache and cache[0] else 0
        x_BTD = self.symbols(tokens_BT) + self.positions.weight[start : start + tokens_BT.shape[1]]
        for number, block in enumerate(self.blocks):
            x_BTD = block(x_BTD, None if cache is None else cache[number])
        return self.logits(self.last(x_BTD))


@torch.inference_mode()
def sample(model: Transformer, prompts_BP: Tensor, temperature: float, generator: torch.Generator) -> Tensor:
    """Write an answer to each prompt; returns (B, C), the end token repeated after the end.

    Temperature 0 takes the likeliest symbol each time.
    """
    cache: Cache = [[] for _ in model.blocks]
    new_BT = prompts_BP
    answers_BC = torch.full((len(prompts_BP), ANSWER_LENGTH), END)
    ended_B = torch.zeros(len(prompts_BP), dtype=torch.bool)
    for position in range(ANSWER_LENGTH):
        logits_BV = model(new_BT, cache)[:, -1]
        if temperature == 0:
            symbol_B = logits_BV.argmax(-1)
        else:
            symbol_B = torch.multinomial((logits_BV / temperature).softmax(-1), 1, generator=generator)[:, 0]
        answers_BC[:, position] = symbol_B.masked_fill(ended_B, END)
        ended_B |= symbol_B == END
        if ended_B.all():
            break
        new_BT = answers_BC[:, position, None]
    return answers_BC
