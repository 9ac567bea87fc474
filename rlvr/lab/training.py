"""The lesson: a supervised start, then group-relative REINFORCE with a KL penalty that holds it near that start.

    model = supervised_start(settings, split.train)
    for update in reinforce(model, settings, split.train, reward): ...

One update: ask G problems, sample S answers to each, let the reward score every answer, compare each answer with the
others to its problem, make the symbols of the better ones likelier. No value network, no clipping, no replay: a sample
is used once, by the model that wrote it.

Shapes, besides those of `model.py`: G problems of an update, S answers to each (the group); B = G * S answers.
"""

import copy
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rlvr.lab.model import Transformer, sample
from rlvr.lab.settings import Settings
from rlvr.lab.task import (
    ANSWER_LENGTH,
    END,
    PROMPT_LENGTH,
    Problem,
    decode,
    encode_answer,
    encode_prompt,
    grade,
    homework,
    is_exact,
)

Reward = Callable[[Problem, str], float]
"""What an answer to a problem is worth, between 0 and 1."""

# ---------------------------------------------------------------------------------------------------------------------
# The supervised start


def supervised_start(settings: Settings, problems: Sequence[Problem]) -> Transformer:
    """Train a new model on the pupils' homework, mistakes and all.

    Reinforcement makes likelier what is already written sometimes, so the start must sometimes be right.
    """
    torch.manual_seed(settings.seed)
    rng = random.Random(settings.seed)
    model = Transformer()
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    pages = [encode_prompt(problem) + encode_answer(homework(problem, rng)) for problem in problems for _ in range(8)]
    tokens_NT = torch.tensor(pages)
    for step in range(settings.start_steps):
        warm_up, cool_down = min((step + 1) / 30, 1), 1 - 0.9 * step / settings.start_steps
        optimizer.param_groups[0]["lr"] = 0.015 * warm_up * cool_down
        tokens_BT = tokens_NT[torch.randint(len(tokens_NT), (64,))]
        logp_BC = chosen(answer_log_probabilities(model, tokens_BT), tokens_BT)
        written_BC = written(tokens_BT[:, PROMPT_LENGTH:])
        loss = -(logp_BC * written_BC).sum() / written_BC.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def answer_log_probabilities(model: Transformer, tokens_BT: Tensor, temperature: float = 1.0) -> Tensor:
    """Return (B, C, V): at each place of the answer, the log-probability of every symbol that could stand there."""
    logits_BCV = model(tokens_BT[:, :-1])[:, PROMPT_LENGTH - 1 :]  # what stands at t was predicted at t - 1
    return (logits_BCV / temperature).log_softmax(-1)


def chosen(logp_BCV: Tensor, tokens_BT: Tensor) -> Tensor:
    """Return (B, C): the log-probabilities of the symbols that do stand there."""
    return logp_BCV.gather(-1, tokens_BT[:, PROMPT_LENGTH:, None])[..., 0]


def written(answers_BC: Tensor) -> Tensor:
    """Return (B, C): 1 up to and with the first end token, 0 after it.

    >>> written(torch.tensor([[7, 3, END, END]]))
    tensor([[1., 1., 1., 0.]])
    """
    is_end_BC = (answers_BC == END).long()
    return (is_end_BC.cumsum(1) - is_end_BC == 0).float()


# ---------------------------------------------------------------------------------------------------------------------
# Reinforcement


@dataclass(frozen=True)
class Update:
    """What happened in one update. Lists of lists have a row per problem, with an entry per answer to it."""

    number: int
    problems: list[Problem]
    completions: list[list[str]]
    rewards: list[list[float]]
    advantages: list[list[float]]
    kl: float
    """How far from the start, in nats per symbol, before this update."""
    wall_s: float
    cpu_s: float

    @property
    def reward(self) -> float:
        return sum(map(sum, self.rewards)) / sum(map(len, self.rewards))

    def share(self, is_so: Callable[[Problem, str], bool]) -> float:
        """The share of the answers for which it is so."""
        flags = [is_so(p, text) for p, texts in zip(self.problems, self.completions, strict=True) for text in texts]
        return sum(flags) / len(flags)

    @property
    def exact(self) -> float:
        return self.share(is_exact)

    @property
    def verified(self) -> float:
        return self.share(lambda problem, text: grade(problem, text).verified)

    @property
    def groups(self) -> tuple[float, float, float]:
        """Shares of the groups whose answers are all verified, some of them, none of them: these sum to 1."""
        rights = [
            [grade(problem, text).verified for text in texts]
            for problem, texts in zip(self.problems, self.completions, strict=True)
        ]
        everyone, nobody = sum(map(all, rights)), sum(not any(group) for group in rights)
        return everyone / len(rights), (len(rights) - everyone - nobody) / len(rights), nobody / len(rights)

    @property
    def silent(self) -> float:
        """The share of the groups whose rewards are all equal: they teach nothing."""
        return sum(len(set(group)) == 1 for group in self.rewards) / len(self.rewards)


def advantages(rewards_GS: Tensor, method: str) -> Tensor:
    """Compare every answer with the others to its problem: better than their mean is positive.

    >>> advantages(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), "reinforce")
    tensor([[ 0.7500, -0.2500, -0.2500, -0.2500]])
    """
    centred_GS = rewards_GS - rewards_GS.mean(1, keepdim=True)
    if method == "grpo":  # also divides by the spread, so that groups that nearly agree count as much as the others
        return centred_GS / (rewards_GS.std(1, keepdim=True) + 1e-4)
    return centred_GS


def token_weights(written_BC: Tensor, method: str) -> Tensor:
    """How much each symbol of the batch counts in the loss (B, C).

    reinforce: every symbol the same. grpo: every answer the same, so a symbol of a long answer counts less. dr_grpo:
    a constant per symbol, whatever was written, so that length is neither rewarded nor punished.
    """
    if method == "grpo":
        return written_BC / written_BC.sum(1, keepdim=True) / len(written_BC)
    if method == "dr_grpo":
        return written_BC / ANSWER_LENGTH / len(written_BC)
    return written_BC / written_BC.sum()


def policy_loss(
    model: Transformer, start: Transformer, tokens_BT: Tensor, advantages_B: Tensor, settings: Settings
) -> tuple[Tensor, Tensor]:
    """Return (loss, KL). To lower the loss, symbols of better answers become likelier, of worse ones unlikelier."""
    logp_BCV = answer_log_probabilities(model, tokens_BT, settings.temperature)
    with torch.no_grad():
        start_logp_BCV = answer_log_probabilities(start, tokens_BT, settings.temperature)
    written_BC = written(tokens_BT[:, PROMPT_LENGTH:])
    weights_BC = token_weights(written_BC, settings.method)
    gain = (advantages_B[:, None] * chosen(logp_BCV, tokens_BT) * weights_BC).sum()
    # With so few symbols the KL divergence is not estimated: it is summed over all of them.
    kl_BC = (logp_BCV.exp() * (logp_BCV - start_logp_BCV)).sum(-1)
    kl = (kl_BC * written_BC).sum() / written_BC.sum()
    return -gain + settings.kl * kl, kl


def reinforce(model: Transformer, settings: Settings, problems: Sequence[Problem], reward: Reward) -> Iterator[Update]:
    """Improve `model` in place, one update a time."""
    start = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate, betas=(0.9, 0.98))
    rng = random.Random(settings.seed)
    generator = torch.Generator().manual_seed(settings.seed)
    for number in range(1, settings.steps + 1):
        began_s, began_cpu_s = time.perf_counter(), time.process_time()

        # 1. Ask, and sample a group of answers to each problem.
        asked = rng.sample(problems, settings.prompts)
        prompts_BP = torch.tensor([encode_prompt(problem) for problem in asked for _ in range(settings.group_size)])
        answers_BC = sample(model, prompts_BP, settings.temperature, generator)
        texts = [decode(tokens) for tokens in answers_BC.tolist()]
        groups = [texts[i : i + settings.group_size] for i in range(0, len(texts), settings.group_size)]

        # 2. Score every answer, and compare it with its group.
        rewards = [[reward(p, text) for text in group] for p, group in zip(asked, groups, strict=True)]
        advantages_GS = advantages(torch.tensor(rewards), settings.method)

        # 3. Move.
        tokens_BT = torch.cat((prompts_BP, answers_BC), dim=1)
        loss, kl = policy_loss(model, start, tokens_BT, advantages_GS.flatten(), settings)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
        yield Update(number, asked, groups, rewards, advantages_GS.tolist(), kl.item(), wall_s, cpu_s)
