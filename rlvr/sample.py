"""The bundled sample corpus: real OEIS numbers whose terms all come from rules of ours.

Run: python -m rlvr.sample write    write assets/sample/seq from the table in sample_rules.py
     python -m rlvr.sample search --corpus oeisdata    print the table again, found anew in a real corpus
     python -m rlvr.sample show A000045    print a rule's known-good answer and its first terms
Not a copy of OEIS entries: A-number, offset and keywords are the entry's; name and terms are made here.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rlvr.arguments import Parser, run_program
from rlvr.errors import RlvrError

SAMPLE_DIR = Path(__file__).parent / "assets" / "sample"

MATH_NAMES = frozenset({"comb", "factorial", "gcd", "isqrt", "lcm", "perm", "prod"})  # a rule may use these of math

MIN_TERMS = 20  # the default filter of the corpus wants as many
MAX_TERMS = 60
MAX_CHARS = 260  # of the terms joined by commas, as in most real entries
LINE_CHARS = 69  # text of the lines S and T, the trailing comma included


class Rule(NamedTuple):
    """One row of the table: a sequence of the sample and how to compute it."""

    anum: str
    offset: int  # index of the first term
    keywords: str  # as in the real entry of 2015, in its order
    family: str
    grade: int  # 1 trivial, 2 easy, 3 needs an idea or a loop, 4 needs several, 5 hard
    name: str  # in our own words; a formula is a fact
    source: str  # Python expression in n; may call sample_prelude's functions and MATH_NAMES


@functools.cache
def rules_by_anum() -> dict[str, Rule]:
    """All rules, by A-number."""
    from rlvr.sample_rules import RULES

    return {rule.anum: rule for rule in RULES}


@functools.cache
def prelude_sources() -> dict[str, str]:
    """Source text of each function of sample_prelude.py, without its docstring, by name."""
    sources = {}
    for node in ast.parse(Path(__file__).with_name("sample_prelude.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            node.body = node.body[1:]
            sources[node.name] = ast.unparse(node)
    return sources


def names_used(source: str) -> set[str]:
    """Every identifier that is read in a piece of Python."""
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


@functools.cache
def answer_for(expression: str) -> str:
    """Return a program that defines a(n) as this expression, with the helpers it needs in front."""
    prelude = prelude_sources()
    wanted, names = [expression], names_used(expression)
    helpers: set[str] = set()
    while wanted:
        used = names_used(wanted.pop())
        names |= used
        for helper in sorted(used & prelude.keys() - helpers):
            helpers.add(helper)
            wanted.append(prelude[helper])
    parts = []
    if "reduce" in names:
        parts.append("from functools import reduce\n")
    if names & MATH_NAMES:
        parts.append(f"from math import {', '.join(sorted(names & MATH_NAMES))}\n")
    parts += [text for name, text in prelude.items() if name in helpers]
    parts.append(f"def a(n):\n    return {expression}")
    return "\n\n".join(parts).replace("\n\n\n", "\n\n") + "\n"


def known_good(anum: str) -> str:
    """Source of a program whose a(n) is right for every n from the sequence's offset on.

    It needs no file and imports at most `math`. Raises RlvrError for a sequence that is not in the sample.
    """
    rule = rules_by_anum().get(anum)
    if rule is None:
        raise RlvrError(f"{anum} is not in the bundled sample: choose one of the A-numbers in rlvr/sample_rules.py")
    return answer_for(rule.source)


def function_of(expression: str) -> Callable[[int], int]:
    """Compile an expression of the table into a(n). Only for this package's own table: it is executed as it is."""
    namespace: dict = {}
    exec(answer_for(expression), namespace)
    return namespace["a"]


def sample_terms(expression: str, offset: int) -> list[int]:
    """Terms from the offset on, as many as an entry usually shows: MAX_CHARS of text, MAX_TERMS at most."""
    a = function_of(expression)
    terms: list[int] = []
    length = 0
    while len(terms) < MAX_TERMS:
        term = a(offset + len(terms))
        length += len(str(term)) + 1
        if length > MAX_CHARS:
            break
        terms.append(term)
    return terms


def term_lines(terms: list[int]) -> list[str]:
    """Fill the texts of lines S, T and U the way the OEIS does: S and T greedily, U takes the rest.

    A line that is followed by another one ends in a comma; no term is split.
    """
    lines = [""]
    for position, term in enumerate(terms):
        text = str(term) + ("," if position < len(terms) - 1 else "")
        if lines[-1] and len(lines) < 3 and len(lines[-1]) + len(text) > LINE_CHARS:
            lines.append("")
        lines[-1] += text
    return lines


def second_offset(terms: list[int]) -> int:
    """1-based place of the first term with |term| > 1, or 1 if there is none."""
    return next((place for place, term in enumerate(terms, 1) if abs(term) > 1), 1)


def entry_text(rule: Rule) -> str:
    """One whole file in the OEIS internal format."""
    terms = sample_terms(rule.source, rule.offset)
    lines = [f"%I {rule.anum}"]
    lines += [f"%{code} {rule.anum} {text}" for code, text in zip("STU", term_lines(terms), strict=False)]
    lines += [
        f"%N {rule.anum} {rule.name}",
        f"%K {rule.anum} {rule.keywords}",
        f"%O {rule.anum} {rule.offset},{second_offset(terms)}",
    ]
    return "\n".join(lines) + "\n"


def entry_path(anum: str) -> Path:
    """Place of an entry below a corpus folder, e.g. seq/A000/A000045.seq."""
    return Path("seq") / anum[:4] / f"{anum}.seq"


def write_sample(folder: Path = SAMPLE_DIR) -> int:
    """Write every entry of the table below folder, remove .seq files of other numbers, return how many are there."""
    wanted = {folder / entry_path(rule.anum): rule for rule in rules_by_anum().values()}
    for path in folder.glob("seq/A*/A*.seq"):
        if path not in wanted:
            path.unlink()
    for path, rule in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(entry_text(rule), encoding="utf-8")
    return len(wanted)


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog="python -m rlvr.sample", description="The bundled sample corpus.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write", help="write the .seq files of the table")
    show = commands.add_parser("show", help="print the known-good answer of one sequence")
    show.add_argument("anum", help="A-number, e.g. A000045")
    search = commands.add_parser("search", help="find the rows of the table anew in a real corpus")
    search.add_argument("--corpus", type=Path, default=Path("oeisdata"), help="folder that holds seq/A???/A??????.seq")
    search.add_argument("--output", type=Path, help="file to write the table to (default: standard output)")
    search.add_argument("--compare", action="store_true", help="print rows beside the real names, to be read by eye")
    options = parser.parse_args(arguments)
    if options.command == "write":
        print(f"{write_sample()} sequences in {SAMPLE_DIR}")
    elif options.command == "show":
        print(known_good(options.anum))
        rule = rules_by_anum()[options.anum]
        print(f"# {rule.name}\n# " + ", ".join(map(str, sample_terms(rule.source, rule.offset))))
    else:
        from rlvr import sample_search

        sample_search.run(options.corpus, options.output, options.compare)
    return 0


if __name__ == "__main__":
    sys.exit(run_program(main))
