"""A run from start to report: train, choose a checkpoint on the validation set, measure it on the test set; seeds.

    result = run_seed(Settings(), make_reward("verified", 0))
    result.after.test.exact_share

An accuracy is a mean over operand pairs, the unit that was drawn at random, of the share of right answers to the
problems of the pair. Accuracies are of two kinds. Sampled: several answers a problem at temperature 1, the policy as
it was trained. Greedy: the likeliest symbol every time. It knows nothing of files or pictures.
"""

import copy
import hashlib
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import NamedTuple

import torch

from rlvr.lab.model import Transformer, sample
from rlvr.lab.rewards import make_reward
from rlvr.lab.settings import Settings
from rlvr.lab.task import Problem, decode, encode_prompt, grade, is_exact, operand_pair, split_problems
from rlvr.lab.training import Reward, Update, answer_log_probabilities, reinforce, supervised_start, written
from rlvr.records import Interval
from rlvr.statistics import mean_interval, paired_difference

SAMPLES = 4
"""Sampled answers to a problem of the validation and test sets; one to each of the many training problems."""
MEASURE_SEED = 20_000
"""Measurements draw from a generator of their own: the same draws for every checkpoint, none of the training's."""
CHECKPOINT_EVERY = 5
"""Updates from one checkpoint that is measured on the validation set to the next."""


@dataclass(frozen=True)
class Measurement:
    """How a model answered some problems: shares of exact and of verified answers, one a pair, in order."""

    exact: list[float]
    verified: list[float]
    answers: list[tuple[Problem, str]] = field(repr=False)
    """One answer to each problem."""

    @property
    def exact_share(self) -> Interval:
        return mean_interval(self.exact)

    @property
    def verified_share(self) -> Interval:
        return mean_interval(self.verified)

    @property
    def format_share(self) -> float:
        return statistics.fmean(grade(problem, text).format for problem, text in self.answers)


class Checkpoint(NamedTuple):
    """One model, measured: sampled on the three parts of the split, and greedy on the test set."""

    update: int
    train: Measurement
    validation: Measurement
    test: Measurement
    test_greedy: Measurement
    kl: float
    """How far from the start, in nats per symbol, over sampled answers to the test problems."""
    weight_hash: str


@dataclass(frozen=True)
class Result:
    """One run with one seed."""

    settings: Settings
    updates: list[Update] = field(repr=False)
    validation: list[tuple[int, float]]
    """(update, exact share) of every checkpoint that was looked at, the start first."""
    before: Checkpoint
    after: Checkpoint
    """The checkpoint with the highest validation accuracy, the earliest of several."""
    start_s: float
    updates_s: float
    """Wall time of the updates alone, without the measurements between them."""
    measure_s: float

    @property
    def exact_gain(self) -> Interval:
        """Sampled test accuracy, after minus before, paired by operand pair."""
        return paired_difference(self.before.test.exact, self.after.test.exact)

    @property
    def verified_gain(self) -> Interval:
        return paired_difference(self.before.test.verified, self.after.test.verified)

    @property
    def greedy_gain(self) -> Interval:
        return paired_difference(self.before.test_greedy.exact, self.after.test_greedy.exact)


def fix_threads() -> None:
    """One thread: sums are then added up in one order, and for tensors this small more threads are slower."""
    torch.set_num_threads(1)


def measure(model: Transformer, problems: Sequence[Problem], samples: int, temperature: float = 1.0) -> Measurement:
    """Answer every problem `samples` times."""
    generator = torch.Generator().manual_seed(MEASURE_SEED)
    asked = list(problems) * samples
    prompts_BP = torch.tensor([encode_prompt(problem) for problem in asked])
    texts = [decode(tokens) for tokens in sample(model, prompts_BP, temperature, generator).tolist()]
    exact, verified = defaultdict(list), defaultdict(list)
    for problem, text in zip(asked, texts, strict=True):
        exact[operand_pair(problem)].append(is_exact(problem, text))
        verified[operand_pair(problem)].append(grade(problem, text).verified)
    pairs = sorted(exact)
    return Measurement(
        [statistics.fmean(exact[pair]) for pair in pairs],
        [statistics.fmean(verified[pair]) for pair in pairs],
        list(zip(problems, texts[: len(problems)], strict=True)),
    )


@torch.inference_mode()
def distance(model: Transformer, start: Transformer, problems: Sequence[Problem]) -> float:
    """Return the KL divergence of `model` from `start` in nats per symbol, over answers that `model` samples."""
    prompts_BP = torch.tensor([encode_prompt(problem) for problem in problems])
    answers_BC = sample(model, prompts_BP, 1.0, torch.Generator().manual_seed(MEASURE_SEED))
    tokens_BT, written_BC = torch.cat((prompts_BP, answers_BC), dim=1), written(answers_BC)
    logp_BCV = answer_log_probabilities(model, tokens_BT)
    kl_BC = (logp_BCV.exp() * (logp_BCV - answer_log_probabilities(start, tokens_BT))).sum(-1)
    return ((kl_BC * written_BC).sum() / written_BC.sum()).item()


def hash_weights(model: Transformer) -> str:
    return hashlib.sha256(b"".join(weight.detach().numpy().tobytes() for weight in model.parameters())).hexdigest()


def hash_split() -> str:
    return hashlib.sha256(repr(split_problems()).encode()).hexdigest()


def measure_checkpoint(model: Transformer, start: Transformer, update: int) -> Checkpoint:
    split = split_problems()
    return Checkpoint(
        update,
        train=measure(model, split.train, 1),
        validation=measure(model, split.validation, SAMPLES),
        test=measure(model, split.test, SAMPLES),
        test_greedy=measure(model, split.test, 1, temperature=0),
        kl=distance(model, start, split.test),
        weight_hash=hash_weights(model),
    )


Starts = dict[tuple[int, int], tuple[Transformer, float]]
"""(seed, start_steps) -> the supervised start and the seconds it took: runs that share it train it once."""


def run_seed(
    settings: Settings,
    reward: Reward,
    watch: Callable[[Update], None] = lambda update: None,
    starts: Starts | None = None,
) -> Result:
    """Train once and measure; `watch` sees every update as it happens.

    The test set is looked at twice, before the first update and for the chosen checkpoint. It chooses nothing.
    """
    fix_threads()
    split = split_problems()
    starts = {} if starts is None else starts
    key = settings.seed, settings.start_steps
    if key not in starts:
        began_s = time.perf_counter()
        starts[key] = supervised_start(settings, split.train), time.perf_counter() - began_s
    start, start_s = starts[key]

    began_s = time.perf_counter()
    model, best = copy.deepcopy(start), copy.deepcopy(start)
    before = measure_checkpoint(start, start, 0)
    validation = [(0, before.validation.exact_share.estimate)]
    updates = []
    for update in reinforce(model, settings, split.train, reward):
        updates.append(update)
        watch(update)
        if update.number % CHECKPOINT_EVERY == 0 or update.number == settings.steps:
            exact = measure(model, split.validation, SAMPLES).exact_share.estimate
            if exact > max(earlier for _, earlier in validation):
                best = copy.deepcopy(model)
            validation.append((update.number, exact))
    chosen_update = max(validation, key=lambda entry: (entry[1], -entry[0]))[0]
    after = measure_checkpoint(best, start, chosen_update)
    updates_s = sum(update.wall_s for update in updates)
    measure_s = time.perf_counter() - began_s - updates_s
    return Result(settings, updates, validation, before, after, start_s, updates_s, measure_s)


# ---------------------------------------------------------------------------------------------------------------------
# Several seeds


def mean_over_seeds(numbers: Sequence[float]) -> Interval:
    """The mean over seeds with Student's 95 % interval: what another seed would add to it is in the interval.

    What other test problems would add is not. With one number there is no interval: it spans everything.

    >>> mean_over_seeds([0.10, 0.12, 0.14])
    Interval(estimate=0.12, low=0.0703, high=0.1697)
    """
    mean = statistics.fmean(numbers)
    if len(numbers) < 2:
        return Interval(mean, float("-inf"), float("inf"))
    half = t_quantile(len(numbers) - 1) * statistics.stdev(numbers) / len(numbers) ** 0.5
    return Interval(mean, mean - half, mean + half)


def t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t.

    Exact to three digits up to 4 degrees of freedom, from 5 on by the expansion of Peiser 1943 (Annals of
    Mathematical Statistics 14:56), which is then off by less than 0.005.
    """
    if freedom <= 4:
        return (12.706, 4.303, 3.182, 2.776)[freedom - 1]
    z = NormalDist().inv_cdf(0.975)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def run_seeds(
    settings: Settings,
    num_seeds: int,
    reward_of: Callable[[Settings], Reward] = lambda settings: make_reward(settings.reward, settings.seed),
    watch: Callable[[Settings, Update], None] = lambda settings, update: None,
    starts: Starts | None = None,
) -> list[Result]:
    """Run the same settings with `num_seeds` seeds, counted up from theirs. Weights, homework and samples differ."""
    starts = {} if starts is None else starts
    results = []
    for seed in range(settings.seed, settings.seed + num_seeds):
        one = replace(settings, seed=seed)
        results.append(run_seed(one, reward_of(one), lambda update, one=one: watch(one, update), starts))
    return results
