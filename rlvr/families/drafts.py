"""What the families of made-up sequences share: Draft, and functions that spell formulas in OEIS style and in Python.

Not meant to be run. A family is a function `rng -> Draft`; rlvr/synthetic.py holds the table of all of them.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from typing import NamedTuple

Random = random.Random


class Draft(NamedTuple):
    """A sequence before its terms are computed and checked."""

    name: str
    offset: int
    code: str
    constant: bool = False  # all terms equal, on purpose


Family = Callable[[Random], Draft]


def program(body: str) -> str:
    """The source of a(n) from its body, with `import math` when it is needed."""
    lines = body.split("\n")
    source = "def a(n):\n" + "\n".join("    " + line for line in lines)
    return "import math\n" + source if "math." in body else source


def python(text: str) -> str:
    """Python of a formula in OEIS spelling: ^ becomes **, exact / becomes //, binomials and factorials are called."""
    text = text.replace(" ", "").replace("^", "**").replace("/", "//")
    text = text.replace("binomial(", "math.comb(")
    return re.sub(r"(\bn|\([^()]*\))!", lambda m: f"math.factorial({m[1].strip('()')})", text)


def closed(rng: Random, text: str, offset: int | None = None, python_text: str | None = None) -> Draft:
    """The draft of a(n) = text, in one of the spellings of real names."""
    name = rng.choice(["a(n) = %s.", "a(n) = %s.", "a(n) = %s.", "a(n) = %s.", "%s.", "a(n) = %s for n >= 0."]) % text
    if "*n" in name and rng.random() < 0.15:
        name = re.sub(r"(\d)\*([n(])", r"\1\2", name)
    if offset is None:
        offset = rng.choice([0, 0, 0, 0, 1, 1, 2])
    if " for n >= 0" in name and offset:
        name = name.replace("n >= 0", f"n >= {offset}")
    return Draft(name, offset, program("return " + (python_text or python(text))))


def small(rng: Random, low: int = 1) -> int:
    """A positive coefficient, small ones more often."""
    return rng.randint(low, max(low, rng.choice([3, 5, 9, 9, 12, 20, 30, 100])))


def signed(c: int) -> str:
    """' + 3', ' - 3' or nothing."""
    return f" + {c}" if c > 0 else f" - {-c}" if c < 0 else ""


def times(k: int, x: str) -> str:
    """'3*x', 'x' or '-x'."""
    return x if k == 1 else f"-{x}" if k == -1 else f"{k}*{x}"


def joined(pairs: list[tuple[int, str]]) -> str:
    """A sum of coefficient times text, zeros left out: [(3, 'n'), (-1, '')] -> '3*n - 1'."""
    out = ""
    for k, x in pairs:
        if k == 0:
            continue
        body = times(abs(k), x) if x else str(abs(k))
        out += (" + " if k > 0 else " - ") + body if out else ("-" if k < 0 else "") + body
    return out or "0"


def linear_text(rng: Random) -> str:
    """p*n + q, sometimes with one of them missing."""
    p, q = rng.choice([1, 2, 3, small(rng)]), rng.choice([0, 1, 1, -1, 2, small(rng)])
    if p == 1 and q == 0:
        return "n"
    return joined([(p, "n"), (q, "")]) if rng.random() < 0.9 or q <= 0 else joined([(q, ""), (p, "n")])


def bracket(text: str) -> str:
    """The text in parentheses when it is a sum."""
    return f"({text})" if "+" in text or "-" in text else text


def divisor_of(rng: Random, numerator: str, choices: list[int]) -> int:
    """A number of `choices` that divides the formula at n = 0..23, else 1."""
    formula = compile(python(numerator), "formula", "eval")
    values = [eval(formula, {"n": n, "math": math}) for n in range(24)]
    fitting = [d for d in choices if all(v % d == 0 for v in values)]
    return rng.choice(fitting) if fitting else 1


def polynomial_text(rng: Random, degree: int) -> str:
    while True:
        pairs = []
        for d in range(degree, -1, -1):
            if d < degree and rng.random() < 0.4:
                continue
            k = rng.choice([1, 1, 2, 3, 4, 5, rng.randint(1, 30)]) * (rng.choice([1, 1, -1]) if d < degree else 1)
            pairs.append((k, "" if d == 0 else "n" if d == 1 else f"n^{d}"))
        if len(pairs) > 1 or rng.random() < 0.2:
            break
    if rng.random() < 0.1 and pairs[-1][0] > 0:
        pairs.reverse()
    return joined(pairs)
