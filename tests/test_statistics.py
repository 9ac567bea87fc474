"""The numbers of an evaluation against published tables, enumeration, and simulated truth."""

import doctest
import itertools
import math

import numpy as np
import pytest

from rlvr import statistics
from rlvr.statistics import (
    mean_interval,
    minimum_detectable_effect,
    paired_difference,
    pass_at_k,
    sign_test_p,
    wilson_interval,
)


def test_worked_examples_of_the_docstrings():
    results = doctest.testmod(statistics)
    assert results.attempted >= 7
    assert results.failed == 0


@pytest.mark.parametrize("num_samples", range(1, 8))
def test_pass_at_k_is_the_share_of_draws_that_hold_a_solved_sample(num_samples):
    for num_solved in range(num_samples + 1):
        samples = [True] * num_solved + [False] * (num_samples - num_solved)
        for k in range(1, num_samples + 1):
            draws = [any(draw) for draw in itertools.combinations(samples, k)]
            assert pass_at_k(num_samples, num_solved, k) == pytest.approx(sum(draws) / len(draws), abs=1e-12)


def test_pass_at_k_is_unbiased():
    """Its mean over binomial counts is 1 - (1 - p)^k exactly, which the plug-in estimate exceeds or misses."""
    p, n, k = 0.3, 10, 4
    weights = [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    truth = 1 - (1 - p) ** k
    assert sum(w * pass_at_k(n, c, k) for c, w in enumerate(weights)) == pytest.approx(truth, abs=1e-12)
    assert sum(w * (1 - (1 - c / n) ** k) for c, w in enumerate(weights)) < truth - 0.02


@pytest.mark.parametrize("arguments", [(4, 5, 1), (4, -1, 1), (4, 1, 0), (4, 1, 5), (0, 0, 1)])
def test_pass_at_k_refuses_what_is_not_defined(arguments):
    with pytest.raises(ValueError):
        pass_at_k(*arguments)


@pytest.mark.parametrize(
    ("num_solved", "num_tasks", "low", "high"),
    # Newcombe 1998, Statistics in Medicine 17:857, table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_interval_of_a_published_table(num_solved, num_tasks, low, high):
    interval = wilson_interval(num_solved, num_tasks)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)
    assert interval.estimate == num_solved / num_tasks


def test_wilson_interval_mirrors_and_holds_its_estimate():
    for num_tasks in (1, 7, 40):
        for num_solved in range(num_tasks + 1):
            solved, missed = wilson_interval(num_solved, num_tasks), wilson_interval(num_tasks - num_solved, num_tasks)
            assert solved.low == pytest.approx(1 - missed.high, abs=1e-12)
            assert 0 <= solved.low <= solved.estimate <= solved.high <= 1
            assert solved.high > solved.low


def test_mean_interval_is_wilsons_for_solved_or_not_and_has_a_width_for_constants():
    assert mean_interval([1, 0, 0, 1, 0]) == wilson_interval(2, 5)
    assert mean_interval([0.5] * 10) == wilson_interval(5, 10)
    assert mean_interval([0.0] * 20).high == pytest.approx(0.1611, abs=1e-4)


@pytest.mark.parametrize("scores", [[], [1.1], [-0.1], [float("nan")], [[0.5]]])
def test_scores_must_lie_in_the_unit_interval(scores):
    with pytest.raises(ValueError):
        mean_interval(scores)


def pairs(both: int, first_only: int, second_only: int, neither: int) -> tuple[list[int], list[int]]:
    first = [1] * both + [1] * first_only + [0] * second_only + [0] * neither
    second = [1] * both + [0] * first_only + [1] * second_only + [0] * neither
    return first, second


@pytest.mark.parametrize(
    ("cells", "estimate", "low", "high"),
    [
        # Bentur et al. 2009, the example of Fagerland, Lydersen, Laake 2014, by hand with 2/23 and 8/23.
        ((1, 7, 1, 12), -6 / 21, -6 / 23 - 1.959964 * 0.126270, -6 / 23 + 1.959964 * 0.126270),
        # Cavo et al. 2012, 161 pairs: 7/163 and 17/163, standard error sqrt((24/163 - (10/163)^2) / 163).
        ((59, 16, 6, 80), -10 / 161, -10 / 163 - 1.959964 * 0.029668, -10 / 163 + 1.959964 * 0.029668),
    ],
)
def test_paired_difference_of_published_tables(cells, estimate, low, high):
    interval = paired_difference(*pairs(*cells))
    assert interval.estimate == pytest.approx(estimate, abs=1e-12)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=2e-5)


def test_paired_difference_changes_its_sign_when_the_arms_are_swapped():
    rng = np.random.default_rng(3)
    first, second = rng.random(25), rng.random(25)
    forth, back = paired_difference(first, second), paired_difference(second, first)
    assert (forth.estimate, forth.low, forth.high) == pytest.approx((-back.estimate, -back.high, -back.low), abs=1e-12)


def test_paired_difference_is_paired():
    """The same shares say more when the arms agree task by task than when they do not."""
    agreeing = paired_difference(*pairs(20, 0, 6, 14))
    crossing = paired_difference(*pairs(8, 12, 18, 2))
    assert agreeing.estimate == crossing.estimate
    assert agreeing.low > 0 > crossing.low


def test_paired_difference_does_not_depend_on_the_order_of_the_tasks():
    rng = np.random.default_rng(5)
    first, second = rng.random(31), rng.random(31)
    order = rng.permutation(31)
    assert paired_difference(first, second) == paired_difference(first[order], second[order])


def test_paired_difference_refuses_unequal_lengths():
    with pytest.raises(ValueError, match="2 and 3 scores"):
        paired_difference([0, 1], [0, 1, 1])


def coverage(draw, truth: float, interval_of, num_rounds: int = 2000) -> float:
    hits = 0
    for _ in range(num_rounds):
        interval = interval_of(draw())
        hits += interval.low <= truth <= interval.high
    return hits / num_rounds


@pytest.mark.parametrize(("won", "lost"), [(0.3, 0.1), (0.1, 0.05), (0.05, 0.0), (0.02, 0.02)])
def test_the_paired_interval_holds_the_truth_in_95_of_100_comparisons(won, lost):
    """2,000 rounds of 40 tasks: an interval of 90 % or one without the imagined tasks falls below the bound."""
    rng = np.random.default_rng(11)

    def draw():
        chance = rng.random(40)
        return np.where(chance < lost, 1.0, 0.0), np.where(chance > 1 - won, 1.0, 0.0)

    assert coverage(draw, won - lost, lambda arms: paired_difference(*arms)) > 0.94


def test_the_paired_interval_is_not_needlessly_wide_with_many_tasks():
    rng = np.random.default_rng(13)

    def draw():
        chance = rng.random(400)
        return np.where(chance < 0.1, 1.0, 0.0), np.where(chance > 0.8, 1.0, 0.0)

    assert 0.935 < coverage(draw, 0.1, lambda arms: paired_difference(*arms)) < 0.97


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_mean_interval_holds_the_truth_for_partial_scores(share):
    rng = np.random.default_rng(17)

    def draw():
        return np.where(rng.random(40) < share, np.where(rng.random(40) < 0.5, 1.0, rng.random(40)), 0.0)

    assert coverage(draw, share * 0.75, mean_interval) > 0.94


@pytest.mark.parametrize(
    ("won", "lost", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (1, 7, 0.0703125), (3, 3, 1.0), (6, 16, 0.052479)],
)
def test_sign_test_by_hand(won, lost, p):
    """(1, 7) and (6, 16) are the exact McNemar tests of the two published tables above: 0.070 and 0.0525."""
    assert sign_test_p(won, lost) == pytest.approx(p, abs=1e-6)
    assert sign_test_p(lost, won) == sign_test_p(won, lost)


def test_sign_test_counts_as_the_coin_does():
    """Against all 2^12 outcomes of twelve coins: the share that is at least as lopsided."""
    tosses = [sum(bits) for bits in itertools.product((0, 1), repeat=12)]
    for won in range(13):
        lopsided = [abs(heads - 6) >= abs(won - 6) for heads in tosses]
        assert sign_test_p(won, 12 - won) == pytest.approx(sum(lopsided) / len(tosses), abs=1e-12)


def test_sign_test_of_many_tasks_stays_a_number():
    assert 0 < sign_test_p(1100, 900) < 1e-4
    assert sign_test_p(1_000, 1_000) == 1.0


def test_the_minimum_detectable_effect_is_found_in_four_of_five_comparisons():
    rng = np.random.default_rng(19)
    first, second = pairs(70, 20, 40, 70)
    effect = minimum_detectable_effect(first, second)
    won, lost = 0.3 / 2 + effect / 2, 0.3 / 2 - effect / 2
    found = 0
    for _ in range(1000):
        chance = rng.random(200)
        interval = paired_difference(np.where(chance < lost, 1.0, 0.0), np.where(chance > 1 - won, 1.0, 0.0))
        found += interval.low > 0
    assert 0.74 < found / 1000 < 0.86
