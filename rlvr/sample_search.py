"""Find real OEIS entries for the rules of sample_families, sample_numbers and sample_counting; print sample_rules.py.

Run: python -m rlvr.sample search --corpus oeisdata --output rlvr/sample_rules.py
Not needed to use the sample: only to rebuild or widen the table. Compares every term of an entry, never a few; but an
entry may show too few terms to tell two rules apart, so read --compare by eye and name what is wrong in COINCIDENCES.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from oeis_parser import ParseError, decimal_to_int, scan
from rlvr import sample_counting, sample_families, sample_numbers, sample_prelude
from rlvr.config import EXCLUDED_KEYWORDS, REQUIRED_KEYWORDS
from rlvr.errors import RlvrError
from rlvr.sample import MATH_NAMES, MIN_TERMS, Rule, sample_terms
from rlvr.sample_families import Group

# Rules that give every term an entry shows although they say something else than the entry.
COINCIDENCES = frozenset(
    (
        ("A038502", "n//gcd(n, 27)"),
        ("A059557", "nth(n, lambda k: k % 8 in (1, 2, 3, 5, 6, 7))"),
        ("A064458", "n//11"),
        ("A064459", "n//12"),
        ("A059537", "6*n//5"),
        ("A064717", "20*n//13"),
        ("A038128", "isqrt(n*n//3)"),
        ("A059558", "n + isqrt(9*n*n)"),
    )
)
# Words of formulas, and of the few phrases around a formula for which there is no other short wording.
FORMULA_WORDS = """floor ceiling mod gcd lcm binomial Fibonacci Lucas Sum Product sqrt prime sigma tau phi pi omega
    bigomega max min XOR AND OR with for of form the to in is if and or otherwise such that are also
    Expansion Period repeat Numbers Primes congruent"""
CANDIDATE_LIMIT_S = 0.2  # CPU seconds; a slower rule is no known-good answer anyway
KEY_TERMS = 12  # terms that an entry is looked up by, before all of them are compared
NO_KEYWORDS = frozenset(("new", "changed"))  # set by the server for some weeks

HEADER = '''"""The table of the bundled sample: one row a sequence, found in a real corpus by sample_search.py.

Run: python -m rlvr.sample write    makes the files of the sample from it.
Not a copy of OEIS entries: A-number, offset and keywords are facts of the entry, name and rule are ours.
Columns: A-number, offset, keywords, family, grade (1 trivial to 5 hard), name, a(n) as a Python expression.
"""

from rlvr.sample import Rule

# ruff: noqa: E501
# fmt: off
RULES = (
'''


class RealEntry(NamedTuple):
    """What a real file says, as far as it is a fact: and its name, only to keep ours different."""

    anum: str
    offset: int
    keywords: str
    name: str
    terms: tuple[int, ...]


def read_entry(data: bytes, source: str = "<text>") -> RealEntry | None:
    """Read one .seq file's bytes; None if it is damaged or has no offset."""
    try:
        found = scan(data, source)
    except ParseError:
        return None
    if found.offset is None or not found.terms:
        return None
    keywords = ",".join(word for word in found.keywords.split(",") if word not in NO_KEYWORDS)
    terms = tuple(map(decimal_to_int, found.terms.split(",")))
    return RealEntry(found.anum, found.offset, keywords, found.name, terms)


def passes_default_filter(entry: RealEntry) -> bool:
    """True if a corpus would keep the entry under its default settings."""
    words = set(entry.keywords.split(","))
    return (
        words.issuperset(REQUIRED_KEYWORDS) and words.isdisjoint(EXCLUDED_KEYWORDS) and len(entry.terms) >= MIN_TERMS
    )


def read_corpus(folder: Path) -> list[RealEntry]:
    """All entries of a corpus folder, in order of their numbers."""
    paths = sorted(folder.glob("seq/A*/A*.seq"))
    if not paths:
        raise RlvrError(f"no seq/A???/A??????.seq below {folder}: give the folder of an OEIS corpus with --corpus")
    entries = (read_entry(path.read_bytes(), str(path)) for path in paths)
    return [entry for entry in entries if entry is not None]


def plain(name: str) -> str:
    """A name without case, blanks and final period, for comparisons."""
    return "".join(name.lower().split()).rstrip(".")


def shuffled(items: Iterable, key) -> list:
    """A fixed order that has nothing to do with the items' own: the same on every machine."""
    return sorted(items, key=lambda item: hashlib.sha256(f"pick {key(item)}".encode()).digest())


def is_formula(name: str) -> bool:
    """True if a name is mathematics only, so that anybody who states the fact writes it the same way."""
    formula_words = FORMULA_WORDS.split()
    words = set("".join(c if c.isalpha() else " " for c in name).split())
    return not {word for word in words if len(word) > 1 and word not in formula_words}


def all_groups() -> Iterator[Group]:
    """Every group, in the order of the table: from trivial families to hard ones."""
    for family in (
        *(sample_families.linear, sample_families.polynomials, sample_families.modular, sample_families.powers),
        *(sample_families.floors, sample_numbers.bits, sample_numbers.divisor_rules, sample_numbers.prime_rules),
        *(sample_counting.recurrences, sample_counting.expansions, sample_counting.binomials),
        sample_counting.combinatorics,
    ):
        yield from family()


def find_rows(entries: list[RealEntry]) -> list[tuple[Rule, str]]:
    """Rows of the table with the real name of each, in the order of the families' groups, then of A-numbers."""
    index: dict[tuple[int, tuple[int, ...]], list[RealEntry]] = {}
    for entry in entries:
        if passes_default_filter(entry):
            for length in (4, KEY_TERMS):
                index.setdefault((entry.offset, entry.terms[:length]), []).append(entry)
    real_names = {plain(entry.name) for entry in entries}
    signal.signal(signal.SIGVTALRM, raise_too_slow)
    rows: list[tuple[Rule, str]] = []
    taken: set[str] = set()
    for group in all_groups():
        hits: dict[str, tuple[Rule, str]] = {}
        for candidate in group.candidates:
            entry = find_entry(candidate.source, candidate.offsets, index, taken | hits.keys())
            if entry is None:
                continue
            names = shuffled(candidate.names, lambda name: name)
            allowed = [name for name in names if is_formula(name) or plain(name) not in real_names]
            if not allowed:
                print(f"{entry.anum}: no name of our own among {names}", file=sys.stderr)
                continue
            rule = Rule(
                entry.anum, entry.offset, entry.keywords, group.family, group.grade, allowed[0], candidate.source
            )
            hits[entry.anum] = (rule, entry.name)
        chosen = shuffled(hits, lambda anum: anum)[: group.limit]
        print(f"{group.family:15} {group.title:40} {len(chosen):3} of {len(hits)}", file=sys.stderr, flush=True)
        taken |= set(chosen)
        rows += [hits[anum] for anum in sorted(chosen)]
    return rows


def quick_function(source: str) -> Callable[[int], int]:
    """Like sample.function_of, without taking the prelude's text apart for each of the many candidates."""
    namespace = vars(sample_prelude) | {name: vars(math)[name] for name in MATH_NAMES} | {"reduce": functools.reduce}
    return eval(f"lambda n: {source}", namespace)


class TooSlow(Exception):
    """A candidate took more than CANDIDATE_LIMIT_S."""


def raise_too_slow(*_: object) -> None:
    raise TooSlow


def find_entry(source: str, offsets: Iterable[int], index: dict, taken: set[str]) -> RealEntry | None:
    """Lowest-numbered entry not taken yet whose every term the expression gives, or None."""
    found = []
    signal.setitimer(signal.ITIMER_VIRTUAL, CANDIDATE_LIMIT_S)
    try:
        a = functools.cache(quick_function(source))
        for offset in offsets:
            try:
                for length in (4, KEY_TERMS):  # most candidates stop after four terms
                    entries = index.get((offset, tuple(a(n) for n in range(offset, offset + length))), ())
                    if not entries:
                        break
                for entry in entries:
                    same = all(a(n) == term for n, term in enumerate(entry.terms, offset))
                    if same and entry.anum not in taken and (entry.anum, source) not in COINCIDENCES:
                        found.append(entry)
            except (ArithmeticError, ValueError, IndexError, TypeError):  # the rule does not start at this offset
                continue
    except TooSlow:
        return None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    found = [entry for entry in found if len(sample_terms(source, entry.offset)) >= MIN_TERMS]
    return min(found, default=None)


def row_text(rule: Rule) -> str:
    """A row as it stands in the table: one line, or two if that gets too long."""
    fields = [json.dumps(value, ensure_ascii=False) for value in rule]
    line = f"    Rule({', '.join(fields)}),"
    if len(line) <= 119:
        return line
    return f"    Rule({', '.join(fields[:-1])},\n         {fields[-1]}),"


def run(corpus: Path, output: Path | None, compare: bool) -> None:
    """Search and print the table, or the comparison of names."""
    rows = find_rows(read_corpus(corpus))
    if compare:
        for rule, real_name in rows:
            print(f"{rule.anum} {rule.family} | {rule.name} | {rule.source} | {real_name}")
        return
    text = HEADER + "\n".join(row_text(rule) for rule, _ in rows) + "\n)\n"
    if output:
        output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
