"""Write a made-up corpus in the OEIS internal format, of realistic size and shape, for benchmarks.

    python benchmarks/make_corpus.py /tmp/bigcorpus --files 390000

It holds no OEIS content: numbers, names and texts come from a seeded generator. What is taken from the real corpus is
its shape: file sizes (median 1.1 KB, 90 % under 2.6 KB, a tail to 130 KB), terms a file (1/10/25/50/75/90/99 %: 5, 12,
19, 35, 59, 86, 105), 15 % with a term beyond 64 bits, 5 % with a negative one, about 13 % left by the default filter.
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import os
import random
import time
from pathlib import Path

NUM_TERMS_QUANTILES = [
    (0.0, 1),
    (0.01, 5),
    (0.1, 12),
    (0.25, 19),
    (0.5, 35),
    (0.75, 59),
    (0.9, 86),
    (0.99, 105),
    (1.0, 110),
]
LINE_CHARS = 69  # of %S and %T, the trailing comma included
TOTAL_CHARS = 270  # of all terms
MEDIAN_BYTES, P90_BYTES, MAX_BYTES = 1100, 2600, 130_000
# each entry has each of these on its own with this chance; together they leave the share that the real filter leaves
UNWANTED = {
    "base": 0.10,
    "more": 0.09,
    "hard": 0.05,
    "cons": 0.06,
    "tabl": 0.06,
    "tabf": 0.03,
    "frac": 0.04,
    "fini": 0.04,
}
NEUTRAL = {"look": 0.02, "mult": 0.01, "less": 0.02, "nice": 0.01, "walk": 0.02, "changed": 0.01}
WORDS = "of the sum number product with where every value table array path lattice prime square count index".split()  # noqa: SIM905


def draw_num_terms(rng: random.Random) -> int:
    """Draw from the quantiles above, linearly between them."""
    share = rng.random()
    for (low, few), (high, many) in itertools.pairwise(NUM_TERMS_QUANTILES):
        if share <= high:
            return round(few + (many - few) * (share - low) / (high - low))
    return NUM_TERMS_QUANTILES[-1][1]


def draw_terms(rng: random.Random) -> list[str]:
    """Draw the terms of one entry, as decimal strings, up to about 260 characters in all."""
    num_terms = draw_num_terms(rng)
    kind = rng.random()
    sign = -1 if rng.random() < 0.05 else 1
    terms: list[str] = []
    num_chars = 0
    for n in range(num_terms):
        if kind < 0.17:  # exponential: the ones that leave 64 bits
            value = int(10 ** ((n + 1) * rng.uniform(0.9, 1.1)))
        elif kind < 0.6:
            value = n * n * 3 + rng.randrange(n + 2)
        else:
            value = rng.randrange(100)
        text = str(value * sign**n)
        num_chars += len(text) + 1
        if num_chars > TOTAL_CHARS and terms:
            break
        terms.append(text)
    return terms


def term_lines(anum: str, terms: list[str]) -> list[str]:
    """Fill %S and %T greedily, the rest goes to %U; a line that another follows ends with a comma."""
    lines = [""]
    for place, term in enumerate(terms):
        piece = term + ("," if place < len(terms) - 1 else "")
        if len(lines) < 3 and lines[-1] and len(lines[-1]) + len(piece) > LINE_CHARS:
            lines.append("")
        lines[-1] += piece
    return [f"%{code} {anum} {text}" for code, text in zip("STU", lines, strict=False)]


def draw_text(rng: random.Random, num_chars: int) -> str:
    words = []
    while num_chars > 0:
        words.append(rng.choice(WORDS))
        num_chars -= len(words[-1]) + 1
    return " ".join(words).capitalize() + "."


def make_entry(num: int, seed: int) -> str:
    """Make one entry; it depends on its number and the seed alone."""
    rng = random.Random(seed * 10_000_000 + num)
    anum = f"A{num:06d}"
    terms = draw_terms(rng)
    keywords = ["sign" if any(term.startswith("-") for term in terms) else "nonn"]
    keywords += [word for word, chance in {"easy": 0.27, **UNWANTED, **NEUTRAL}.items() if rng.random() < chance]
    sigma = math.log(P90_BYTES / MEDIAN_BYTES) / 1.2816
    num_bytes = min(MAX_BYTES, int(rng.lognormvariate(math.log(MEDIAN_BYTES), sigma)))
    lines = [f"%I {anum} #{rng.randrange(1, 60)} Jan 01 2026 00:00:00", *term_lines(anum, terms)]
    lines.append(f"%N {anum} {draw_text(rng, rng.randrange(20, 120))}")
    num_left = num_bytes - sum(map(len, lines)) - 80
    while num_left > 0:
        lines.append(f"%{rng.choice('CDHFepto')} {anum} {draw_text(rng, min(num_left, rng.randrange(20, 160)))}")
        num_left -= len(lines[-1]) + 1
    lines += [f"%K {anum} {','.join(keywords)}", f"%O {anum} {rng.randrange(2)},{rng.randrange(1, 5)}"]
    lines.append(f"%A {anum} _Nobody_, Jan 01 2026")
    codes = "ISTUNCDHFeptoYKOAE"
    return "\n".join(sorted(lines, key=lambda line: codes.index(line[1]))) + "\n"


def write_folder(job: tuple[Path, int, int, int]) -> int:
    """Write the entries first..last of one A??? folder; give their size in bytes."""
    target, first, last, seed = job
    folder = target / "seq" / f"A{first // 1000:03d}"
    folder.mkdir(parents=True, exist_ok=True)
    num_bytes = 0
    for num in range(first, last + 1):
        data = make_entry(num, seed).encode()
        num_bytes += len(data)
        with open(folder / f"A{num:06d}.seq", "wb") as file:
            file.write(data)
    return num_bytes


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a made-up corpus in the OEIS internal format.")
    parser.add_argument("target", type=Path, help="folder to make; the files go to TARGET/seq/A???/")
    parser.add_argument("--files", type=int, default=390_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started_s = time.perf_counter()
    firsts = [1, *range(1000, options.files + 1, 1000)]
    jobs = [(options.target, first, min(first // 1000 * 1000 + 999, options.files), options.seed) for first in firsts]
    with multiprocessing.Pool(os.cpu_count()) as pool:
        num_bytes = sum(pool.imap_unordered(write_folder, jobs))
    wall_s = time.perf_counter() - started_s
    print(f"{options.files:,} files, {num_bytes / 1e6:,.0f} MB in {options.target}/seq, {wall_s:.0f} s")


if __name__ == "__main__":
    main()
