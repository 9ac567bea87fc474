"""The generator of made-up pairs: deterministic, and every family's function gives the terms that the pair shows."""

import hashlib
import random

import pytest

from rlvr.families import counting, divisor, number, plain, series
from rlvr.synthetic import (
    FAMILIES,
    NAME_CHARS,
    PLAIN_FAMILIES,
    TERMS_CHARS,
    compact_name,
    compact_prompt,
    finish,
    sample_pair,
    terms_of,
)

EVERY_FAMILY = list(dict.fromkeys([*FAMILIES, *PLAIN_FAMILIES]))
DRAWS = 40


def test_pairs_depend_on_the_seed_alone():
    first = [sample_pair(random.Random(seed)) for seed in range(200)]
    again = [sample_pair(random.Random(seed)) for seed in range(200)]
    assert first == again
    assert len(set(first)) > 190


def test_first_pairs_are_those_the_shipped_model_was_trained_on():
    """Any change of a family, a weight or an order of draws moves this: then the model has to be trained anew."""
    pairs = [sample_pair(random.Random(f"pin:{i}"), hide_name=i % 4 == 3) for i in range(400)]
    assert hashlib.sha256(repr([tuple(pair) for pair in pairs]).encode()).hexdigest()[:16] == "38543ab941e93b76"


@pytest.mark.parametrize("family", EVERY_FAMILY, ids=lambda family: family.__name__)
def test_family_gives_easy_sequences_whose_code_reproduces_them(family):
    rng = random.Random(family.__name__)
    good = 0
    for _ in range(DRAWS):
        draft = family(rng)
        pair = finish(draft)
        if pair is None:
            continue
        good += 1
        assert draft.name.isascii() and "\n" not in draft.name
        # The same function, compiled anew, asked in the other order, gives the same terms: no state between calls.
        scope: dict = {}
        exec(pair.code, scope)
        last = pair.offset + len(pair.terms) - 1
        assert [scope["a"](n) for n in range(last, pair.offset - 1, -1)] == list(reversed(pair.terms))
        assert all(type(term) is int and term >= 0 for term in pair.terms)
    assert good >= DRAWS // 3


@pytest.mark.parametrize(
    ("family", "name", "terms"),
    [
        (divisor.divisor_sums, "Number of divisors of n.", [1, 2, 2, 3, 2, 4, 2, 4, 3, 4]),
        (divisor.digit_functions, "Sum of digits of n.", [1, 2, 3, 4, 5, 6, 7, 8, 9, 1]),
        (number.nth_prime, "The prime numbers.", [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]),
        (divisor.totients, "Euler totient function phi(n).", [1, 1, 2, 2, 4, 2, 6, 4, 6, 4]),
        (counting.partitions, "a(n) is the number of partitions of n.", [1, 1, 2, 3, 5, 7, 11, 15, 22, 30]),
        (plain.classic, "Bell numbers.", [1, 1, 2, 5, 15, 52, 203, 877, 4140, 21147]),
        (plain.classic, "Catalan numbers.", [1, 1, 2, 5, 14, 42, 132, 429, 1430, 4862]),
        (
            series.lattice,
            "Coordination sequence for D_4 lattice.",
            [1, 24, 144, 456, 1056, 2040, 3504, 5544, 8256, 11736],
        ),
        (series.lattice, "Coordination sequence for A_3 lattice.", [1, 12, 42, 92, 162, 252, 362, 492, 642, 812]),
        (
            counting.triangles,
            "Stirling numbers of the second kind, S(n,2).",
            [1, 3, 7, 15, 31, 63, 127, 255, 511, 1023],
        ),
        (counting.necklaces, "Number of n-bead necklaces with 2 colors.", [2, 3, 4, 6, 8, 14, 20, 36, 60, 108]),
        (number.binary_forms, "Numbers of form x^2 + y^2.", [0, 1, 2, 4, 5, 8, 9, 10, 13, 16]),
        (divisor.number_sets, "Squarefree numbers.", [1, 2, 3, 5, 6, 7, 10, 11, 13, 14]),
        (
            counting.sums_of_squares,
            "Number of ways of writing n as a sum of 2 squares.",
            [1, 4, 4, 0, 4, 8, 0, 0, 4, 4],
        ),
        (number.primes_in_classes, "Primes congruent to 3 mod 4.", [3, 7, 11, 19, 23, 31, 43, 47, 59, 67]),
    ],
)
def test_names_mean_what_they_say(family, name, terms):
    """A name gets the terms that anybody would expect, whatever else the family draws."""
    rng = random.Random(0)
    pair = next(finish(draft) for draft in (family(rng) for _ in range(20_000)) if draft.name == name)
    assert list(pair.terms[: len(terms)]) == terms


def test_a_hidden_name_is_empty_and_its_terms_are_still_computed():
    for seed in range(300):
        pair = sample_pair(random.Random(seed), hide_name=True)
        assert pair.name == ""
        assert tuple(terms_of(pair.code, pair.offset, len(pair.terms))) == pair.terms


@pytest.mark.parametrize(
    ("name", "compact"),
    [
        ("a(n) = (7n + 3)^2, n >= 0.", "a(n)=(7*n+3)^2,n>=0"),
        ("Expansion of 1/((1-x)(1-3x)).", "Expansion of 1/((1-x)*(1-3*x))"),
        ("Primes congruent to {1, 4} (mod 5).", "Primes congruent to{1,4}(mod 5)"),
        ("Primes congruent to 7 (mod 11).", "Primes congruent to 7(mod 11)"),
        ("M\u00f6bius function.", "Mobius function"),
        ("a(n) = sigma_2(n).", "a(n)=sigma_2(n)"),
        ("The 2nd  term\tof\nit", "The 2nd term of it"),
        ("", ""),
    ],
)
def test_compact_name(name, compact):
    assert compact_name(name) == compact


def test_compact_prompt_is_short_ascii_and_keeps_whole_terms():
    terms = [10**12 + k for k in range(10)]
    prompt = compact_prompt("x" * 500 + "\u221e", 3, terms)
    head, shown = prompt.removesuffix("\n").split("|3:")
    assert prompt.isascii() and prompt.endswith("\n") and len(head) == NAME_CHARS
    assert [int(t) for t in shown.split(",")] == terms[: len(shown.split(","))] and len(shown) <= TERMS_CHARS
    assert compact_prompt("", 0, [-5, 10**500]) == "|0:-5\n"
    assert compact_prompt("", -2, []) == "|-2:\n"
