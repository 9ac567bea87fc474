"""Made-up sequence tasks, (name, offset, terms, function), that look like easy OEIS entries.

    python -m rlvr.synthetic 20        # print twenty of them

They train the tiny base model (rlvr/tiny.py). Every parameter is drawn at random and every term is computed by the
function of the pair; nothing is taken from an OEIS entry, and no A-number occurs. A family is one small function in a
rlvr/families/. This is not a benchmark: it imitates the phrasing of real entries, not their variety.
"""

from __future__ import annotations

import functools
import random
import re
import sys
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from rlvr.families import counting, divisor, formula, number, plain, recurrence, series
from rlvr.families.drafts import Draft, Family

# Each family with its weight: roughly its share among real easy entries, simple ones a little more often. The pairs
# depend on order and weights: whoever changes them has to train the model anew.
FAMILIES: dict[Family, float] = {
    formula.power_of_linear: 7, formula.linear: 5, formula.polynomial: 3, formula.quadratic: 3,
    formula.sparse_polynomial: 1.5, formula.product: 5, formula.polynomial_over: 1.5, formula.power: 6,
    formula.power_over: 1.8, formula.named_powers: 1, formula.sums_of_powers_of_n: 0.8, formula.floor_quotient: 4.5,
    formula.floor_root: 1.2, formula.floor_misc: 1.2, formula.beatty: 2.5, formula.modular: 1.6,
    formula.modular_combination: 1.6, counting.binomial: 4, counting.factorial: 1.6, counting.multifactorial: 0.7,
    counting.summation: 2.4, recurrence.recurrence: 7, recurrence.fibonacci_like: 2,
    recurrence.fibonacci_formula: 1.4, recurrence.factorial_recurrence: 1.8, recurrence.second_order_in_n: 0.8,
    recurrence.pisot: 0.8, recurrence.divide_and_conquer: 0.4, series.geometric_denominators: 5,
    series.power_denominators: 3, series.rational_expansion: 3.5, series.run_of_powers: 1.8,
    series.mixed_denominators: 3.5, series.convolution_power: 0.8, series.exponential_series: 1.8,
    series.lattice: 1.6, formula.periodic: 1.4, formula.constant: 0.7, formula.figurate: 2.5, number.congruence: 4.5,
    number.not_congruent: 0.7, number.divisibility: 0.7, number.primes_in_classes: 3, number.prime_partner: 1.2,
    number.primes_k_such: 1.8, number.nth_prime: 2, number.prime_arithmetic: 1.2,
    number.quadratic_residue_primes: 0.6, number.binary_forms: 1.5, number.products_of_powers: 1,
    number.sums_of_powers: 1.2, divisor.base_conditions: 1.3, divisor.digit_functions: 2, divisor.divisor_sums: 2.2,
    divisor.totients: 1.2, divisor.prime_factors: 1.2, divisor.number_sets: 1.2, divisor.divisors_of_constants: 0.5,
    counting.partitions: 1.8, counting.sums_of_squares: 0.5, counting.necklaces: 0.6, counting.triangles: 1,
    counting.repeated: 1.2, plain.classic: 2.5,
}  # fmt: skip
# Families whose rule the terms determine, for prompts without a (telling) name.
PLAIN_FAMILIES: dict[Family, float] = {
    plain.plain_power_of_linear: 5, plain.plain_polynomial: 6, plain.plain_geometric: 3, plain.plain_recurrence: 5,
    plain.plain_periodic: 1, plain.plain_congruence: 3, plain.plain_floor: 1.2, plain.plain_binomial: 1.2,
    plain.classic: 3,
}  # fmt: skip
NAMED = (tuple(FAMILIES), tuple(FAMILIES.values()))
PLAIN = (tuple(PLAIN_FAMILIES), tuple(PLAIN_FAMILIES.values()))

N_TERMS = 12  # terms computed of a pair: the ten shown and two to spare
NAME_CHARS = 96
TERMS_CHARS = 64
VAGUE_NAME_SHARE = 0.07  # of the named pairs: a name that does not give the rule away, as most real names do not


class Pair(NamedTuple):
    """One training pair: a(offset), a(offset+1), ... = terms, and `code` defines a(n)."""

    name: str
    offset: int
    terms: tuple[int, ...]
    code: str


@functools.lru_cache(maxsize=4096)
def compact_name(name: str) -> str:
    """The name in few characters: ASCII only, no blanks around operators, products written out (7n -> 7*n).

    >>> compact_name("a(n) = (7n + 3)^2, n >= 0.")
    'a(n)=(7*n+3)^2,n>=0'
    """
    text = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r" ?([-+*/^=<>,;:|(){}\[\]]) ?", r"\1", text)
    text = re.sub(r"(?<![A-Za-z_\d.])(\d+)([nkxijm](?![a-z])|\((?!mod))", r"\1*\2", text)
    text = text.replace(")(", ")*(")
    return text[:NAME_CHARS].rstrip(". ")


def compact_prompt(name: str, offset: int, shown: Sequence[int]) -> str:
    """The prompt that the tiny model reads, at most about 180 characters; as many of the shown terms as fit.

    >>> compact_prompt("a(n) = 3*n + 1.", 0, [1, 4, 7])
    'a(n)=3*n+1|0:1,4,7\\n'
    """
    parts: list[str] = []
    room = TERMS_CHARS
    for term in shown:
        text = str(term) if abs(term) < 10**TERMS_CHARS else ""
        if not text or len(text) > room:
            break
        parts.append(text)
        room -= len(text) + 1
    return f"{compact_name(name)}|{offset}:{','.join(parts)}\n"


def terms_of(code: str, offset: int, count: int) -> list[int]:
    """The terms that a function of one of our own families gives, run right here; never for a model's answers."""
    scope: dict = {}
    exec(code, scope)
    return [scope["a"](n) for n in range(offset, offset + count)]


def finish(draft: Draft) -> Pair | None:
    """The pair of a draft, or None when its terms are not those of an easy entry of nonnegative terms."""
    try:
        terms = terms_of(draft.code, draft.offset, N_TERMS)
    except (ArithmeticError, ValueError, IndexError):  # a random formula that is undefined at some n
        return None
    if any(type(t) is not int or t < 0 for t in terms) or len(str(max(terms[:3]))) > TERMS_CHARS // 3:
        return None
    if len(set(terms)) == 1 and not draft.constant:
        return None
    return Pair(draft.name, draft.offset, tuple(terms), draft.code)


def sample_pair(rng: random.Random, hide_name: bool = False) -> Pair:
    """A random pair; `hide_name` leaves the name empty and draws from the families that terms alone determine."""
    vague = not hide_name and rng.random() < VAGUE_NAME_SHARE
    families, weights = PLAIN if hide_name or vague else NAMED
    while True:
        pair = finish(rng.choices(families, weights)[0](rng))
        if pair is None:
            continue
        if hide_name:
            return pair._replace(name="")
        if vague:
            return pair._replace(name=plain.vague_name(rng))
        return pair


if __name__ == "__main__":
    for index in range(int(sys.argv[1]) if len(sys.argv) > 1 else 10):
        pair = sample_pair(random.Random(index), hide_name=index % 4 == 3)
        print(compact_prompt(pair.name, pair.offset, pair.terms[:10]) + pair.code + "\n")
