"""How often do 95 % intervals of a paired difference hold the true one? Ours, bootstrap and Student's t.

    python benchmarks/intervals.py [--rounds 1000]

Simulates comparisons in which the second checkpoint wins and loses tasks at known rates and ties the rest; prints the
share of intervals that hold the true difference, and their mean width. A few minutes. Not a test: the tests hold
ours to its promise with fewer rounds.
"""

import argparse
import math
from statistics import NormalDist

import numpy as np

from rlvr.statistics import paired_difference

RATES = ((0.10, 0.05), (0.05, 0.0), (0.30, 0.10), (0.02, 0.02))
NUM_TASKS = (20, 40, 200)
T_QUANTILE = {20: 2.093, 40: 2.0227, 200: 1.972}
"""97.5 % quantiles of Student's t with one degree of freedom less."""
NUM_RESAMPLES = 1500
NORMAL = NormalDist()


def ours(differences: np.ndarray) -> tuple[float, float]:
    interval = paired_difference(np.maximum(-differences, 0).tolist(), np.maximum(differences, 0).tolist())
    return interval.low, interval.high


def resampled_means(differences: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    num = len(differences)
    return rng.multinomial(num, np.full(num, 1 / num), size=NUM_RESAMPLES) @ differences / num


def percentile_bootstrap(differences: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    low, high = np.quantile(resampled_means(differences, rng), [0.025, 0.975])
    return low, high


def bca_bootstrap(differences: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """Bias-corrected and accelerated (Efron 1987, JASA 82:171); resampled ties count half."""
    means, mean, num = resampled_means(differences, rng), differences.mean(), len(differences)
    below = (means < mean).mean() + (means == mean).mean() / 2
    bias = NORMAL.inv_cdf(min(max(below, 1 / NUM_RESAMPLES), 1 - 1 / NUM_RESAMPLES))
    left_out = (differences.sum() - differences) / (num - 1)
    deviation = left_out.mean() - left_out
    scale = 6 * (deviation**2).sum() ** 1.5
    acceleration = (deviation**3).sum() / scale if scale else 0.0
    shifted = [bias + NORMAL.inv_cdf(level) for level in (0.025, 0.975)]
    low, high = np.quantile(means, [NORMAL.cdf(bias + z / (1 - acceleration * z)) for z in shifted])
    return low, high


def student(differences: np.ndarray) -> tuple[float, float]:
    half = T_QUANTILE[len(differences)] * differences.std(ddof=1) / math.sqrt(len(differences))
    return differences.mean() - half, differences.mean() + half


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1000)
    rounds = parser.parse_args().rounds
    rng = np.random.default_rng(0)
    methods = {
        "ours": ours,
        "percentile": lambda differences: percentile_bootstrap(differences, rng),
        "BCa": lambda differences: bca_bootstrap(differences, rng),
        "t": student,
    }
    print(f"{'wins':>5} {'loses':>5} {'tasks':>5}" + "".join(f"{name + ' (width)':>20}" for name in methods))
    for won, lost in RATES:
        for num in NUM_TASKS:
            held, width = dict.fromkeys(methods, 0), dict.fromkeys(methods, 0.0)
            for _ in range(rounds):
                chance = rng.random(num)
                differences = np.where(chance < won, 1.0, np.where(chance < won + lost, -1.0, 0.0))
                for name, method in methods.items():
                    low, high = method(differences)
                    # Bounds that are the truth but for rounding hold it.
                    held[name] += low - 1e-12 <= won - lost <= high + 1e-12
                    width[name] += high - low
            cells = (f"{100 * held[name] / rounds:.1f} % ({width[name] / rounds:.3f})" for name in methods)
            print(f"{won:>5.0%} {lost:>5.0%} {num:>5}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
