"""Rules that the sample is searched for: what a candidate is, and the elementary families.

Run: not by hand; `python -m rlvr.sample search` tries each one on a real corpus.
Not the sample itself: most of these rules have no entry, and of those that have one each group keeps only some.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import gcd, isqrt
from typing import NamedTuple


class Candidate(NamedTuple):
    """A rule that may be a sequence of the OEIS."""

    names: tuple[str, ...]  # wordings of ours to choose from
    source: str  # Python expression in n
    offsets: tuple[int, ...] = (0, 1)  # indices of the first term to try


class Group(NamedTuple):
    """Rules alike; of those that are found, `limit` go into the table."""

    family: str
    grade: int
    limit: int
    title: str
    candidates: list[Candidate]


def formula(text: str, source: str | None = None, offsets: tuple[int, ...] = (0, 1)) -> Candidate:
    """A rule whose name is "a(n) = text."; without a source, text itself is the expression (a/b is exact there)."""
    python = source or text.replace("^", "**").replace("/", "//").replace("binomial", "comb")
    return Candidate((f"a(n) = {text}.",), python, offsets)


def named(name: str, source: str, *offsets: int) -> Candidate:
    """A rule with one wording; offsets to try, default 0 and 1."""
    return Candidate((name,), source, offsets or (0, 1))


def terms_text(*terms: tuple[int, str]) -> str:
    """Write a sum of coefficient times symbol, e.g. (3, "n^2"), (0, "n"), (-1, "") as 3*n^2 - 1."""
    text = ""
    for coefficient, symbol in terms:
        if coefficient == 0:
            continue
        size = abs(coefficient)
        piece = str(size) if not symbol else symbol if size == 1 else f"{size}*{symbol}"
        sign = "-" if coefficient < 0 else "+"
        text = f"{text} {sign} {piece}" if text else (f"-{piece}" if coefficient < 0 else piece)
    return text or "0"


def polynomial_text(*coefficients: int) -> str:
    """Write a polynomial in n, highest power first, e.g. (1, 0, -2) as n^2 - 2."""
    degree = len(coefficients) - 1
    symbols = [f"n^{k}" if k > 1 else "n" if k else "" for k in range(degree, -1, -1)]
    return terms_text(*zip(coefficients, symbols, strict=True))


def listed(names: tuple[str, ...], test: str, start: int = 1, offsets: tuple[int, ...] = (1,)) -> Candidate:
    """The increasing list of the k >= start for which a test (an expression in k) holds; usually of offset 1."""
    tail = f", {start}" if start != 1 else ""
    return Candidate(names, f"nth(n, lambda k: {test}{tail})", offsets)


# One rule a line from here on, as in a table.
# ruff: noqa: E501
# fmt: off

def linear() -> Iterator[Group]:
    yield Group("linear", 1, 8, "constants", [
        Candidate((f"The constant {c}: a(n) = {c}.", f"a(n) = {c}."), str(c)) for c in range(1, 60)
    ])
    yield Group("linear", 1, 14, "multiples", [
        Candidate((f"Nonnegative multiples of {k}.", f"a(n) = {k}*n."), f"{k}*n") for k in range(2, 61)
    ])
    yield Group("linear", 1, 6, "n + c", [formula(f"n + {c}") for c in range(1, 60)])
    yield Group("linear", 1, 34, "k*n + r", [
        Candidate((f"a(n) = {k}*n + {r}.", f"a(n) = {k}*n + {r}.", f"Numbers congruent to {r} mod {k}."), f"{k}*n + {r}", (0,))
        for k in range(2, 26) for r in range(1, k)
    ])
    yield Group("linear", 1, 8, "k*n - r", [
        formula(f"{k}*n - {r}") for k in range(2, 13) for r in range(1, 2 * k)
    ])
    yield Group("linear", 1, 4, "k*n + r, r >= k", [
        formula(f"{k}*n + {r}") for k in range(2, 13) for r in range(k + 1, 5 * k)
    ])
    yield Group("linear", 2, 4, "first term apart", [
        Candidate((f"a(0) = 1; for n > 0, a(n) = {k}*n.",), f"{k}*n if n else 1", (0,)) for k in range(2, 20)
    ] + [
        Candidate((f"a(0) = {c}; a(n) = n for n > 0.",), f"n if n else {c}", (0,)) for c in range(1, 20)
    ])


def polynomials() -> Iterator[Group]:
    yield Group("polynomial", 2, 8, "n^2 + c", [formula(polynomial_text(1, 0, c)) for c in range(-25, 26)])
    yield Group("polynomial", 2, 6, "a*n^2", [formula(f"{k}*n^2") for k in range(2, 40)])
    yield Group("polynomial", 2, 12, "a*n^2 + b*n + c", [
        formula(polynomial_text(k, b, c)) for k in range(1, 9) for b in range(-9, 10) for c in range(-6, 12) if b
    ])
    yield Group("polynomial", 2, 6, "n*(a*n + b)", [
        formula(f"n*({polynomial_text(k, b)})") for k in range(1, 13) for b in range(-12, 14) if gcd(k, b) == 1
    ])
    yield Group("polynomial", 2, 8, "n*(a*n + b)/2", [
        formula(f"n*({polynomial_text(k, b)})/2") for k in range(1, 26) for b in range(-25, 26) 
        if (k + b) % 2 == 0 and gcd(k, b) == 1
    ])
    yield Group("polynomial", 2, 4, "n^k", [
        Candidate((f"a(n) = n^{k}.", f"The {k}th powers of 0, 1, 2, ..." if k > 3 else f"a(n) = n^{k}."), f"n**{k}") for k in range(2, 12)
    ])
    yield Group("polynomial", 2, 14, "(a*n + b)^k", [
        formula(f"({polynomial_text(m, b)})^{k}") for m in range(2, 13) for b in range(m) for k in range(2, 6)
    ])
    yield Group("polynomial", 3, 5, "n^3 + ...", [
        formula(polynomial_text(k, 0, b, c)) for k in range(1, 5) for b in range(-5, 6) for c in range(-5, 10)
    ])
    yield Group("polynomial", 3, 6, "n*(n+1)*(a*n + b)/6", [
        formula(f"n*(n + 1)*({polynomial_text(k, b)})/6") for k in range(1, 20) for b in range(-19, 20) if gcd(k, b) == 1
    ])
    yield Group("polynomial", 3, 3, "products of consecutive numbers", [
        formula("*".join(f"(n + {j})" if j else "n" for j in range(s, s + k))) for k in range(2, 6) for s in range(5)
    ] + [formula(f"n*(n + {c})*(n + {d})") for c in range(1, 8) for d in range(c + 1, 9)])
    yield Group("polynomial", 3, 5, "n^4 + ...", [
        formula(polynomial_text(k, b, c, d, e)) for k in (1, 2, 3) for b in (-4, -2, -1, 0, 1, 2, 4)
        for c in range(-4, 7) for d in (-2, -1, 0, 1, 2) for e in (-1, 0, 1, 2)
    ])
    yield Group("polynomial", 3, 4, "n*(a*n^2 + b)/c", [
        formula(f"n*({polynomial_text(k, 0, b)})/{c}") for c in (2, 3, 6) for k in range(1, 20) for b in range(-19, 20) if b
        if (k + b) % c == 0 and (8 * k + 2 * b) % c == 0 and gcd(gcd(k, b), c) == 1
    ])
    yield Group("polynomial", 2, 6, "centered polygons", [
        Candidate((f"Centered {k}-gonal numbers: 1 + {k}*n*(n - 1)/2.", f"a(n) = {k}*n*(n - 1)/2 + 1."), f"{k}*n*(n - 1)//2 + 1", (1,)) for k in range(3, 30)
    ])
    yield Group("polynomial", 3, 4, "1, then a*n^2 + 2", [
        Candidate((f"a(0) = 1; for n > 0, a(n) = {k}*n^2 + 2.",), f"{k}*n**2 + 2 if n else 1", (0,)) for k in range(1, 41)
    ])
    yield Group("polynomial", 3, 3, "n^a + n^b", [
        formula(f"n^{a} + n^{b}") for a in range(3, 9) for b in range(1, a)
    ] + [formula(f"n^{a} - n^{b}") for a in range(3, 9) for b in range(2, a)])
    yield Group("polynomial", 3, 3, "n^a*(n^b + c)/d", [
        formula(f"{p}*(n^{q} {sign} 1)/{d}") for p in ("n", "n^2", "n^3") for q in (2, 3, 4) for sign in "+-" for d in (2, 3, 4, 6)
    ])


def modular() -> Iterator[Group]:
    yield Group("modular", 1, 5, "n mod m", [
        Candidate((f"a(n) = n mod {m}.",), f"n % {m}") for m in range(2, 30)
    ])
    yield Group("modular", 2, 9, "n^k mod m", [
        formula(f"n^{k} mod {m}", f"n**{k} % {m}") for k in range(2, 8) for m in range(3, 60)
        if all([n**j % m for n in range(m)] != [n**k % m for n in range(m)] for j in range(1, k))
    ])
    yield Group("modular", 2, 7, "a*n mod m", [
        formula(f"{k}*n mod {m}", f"{k} * n % {m}") for m in range(5, 50) for k in range(2, m)
    ])
    yield Group("modular", 2, 8, "b^n mod m", [
        formula(f"{b}^n mod {m}", f"pow({b}, n, {m})") for b in range(2, 12) for m in range(3, 60)
    ])
    yield Group("modular", 2, 22, "congruent to {...} mod m", [
        Candidate(
            (f"Numbers congruent to {{{', '.join(map(str, residues))}}} mod {m}.",),
            f"nth(n, lambda k: k % {m} in {residues}{', 0' if residues[0] == 0 else ''})", (1,),
        )
        for m in range(3, 13) for size in range(2, min(m, 7)) for residues in combinations(range(m), size)
    ])
    yield Group("modular", 2, 4, "not divisible", [
        listed((f"Numbers k that {m} does not divide.", f"Numbers k with k mod {m} > 0."), f"k % {m} > 0") for m in range(3, 30)
    ] + [
        listed((f"Numbers k with gcd(k, {m}) = 1.",), f"gcd(k, {m}) == 1") for m in range(6, 43)
    ])
    yield Group("modular", 2, 9, "periods", [
        Candidate(
            (f"Period {len(period)}: repeat {', '.join(map(str, period))}.", f"Repeat {', '.join(map(str, period))} without end."),
            f"{period}[n % {len(period)}]", (0,),
        )
        for size, top in ((2, 11), (3, 5), (4, 4)) for period in product(range(top), repeat=size)
        if len(set(period)) > 1 and not (size == 4 and period[:2] == period[2:])
    ])
    yield Group("modular", 3, 3, "Fibonacci(n) mod m", [
        formula(f"Fibonacci(n) mod {m}", f"fibonacci(n) % {m}") for m in range(2, 20)
    ])
    yield Group("modular", 3, 3, "polynomials mod m", [
        formula(f"n*(n + 1)/2 mod {m}", f"n*(n + 1)//2 % {m}") for m in range(3, 20)
    ] + [formula(f"n^{k} mod n^{j}", f"n**{k} % n**{j}") for k in range(1, 4) for j in range(1, 4)] + [
        formula(f"{b}^n mod n", f"pow({b}, n, n)", (1,)) for b in range(2, 14)
    ] + [formula(f"n^n mod {m}", f"pow(n, n, {m})") for m in range(3, 20)])
    yield Group("modular", 3, 4, "n mod of a root, n modulo sum", [
        formula("n mod floor(sqrt(n))", "n % isqrt(n)", (1,)),
        formula("n^2 mod (n + 1)", "n**2 % (n + 1)"),
        formula("2^n mod (n + 1)", "pow(2, n, n + 1)"),
    ] + [formula(f"{c} mod n", f"{c} % n", (1,)) for c in range(5, 130)])
    yield Group("modular", 3, 4, "characteristic functions", [
        Candidate((f"a(n) = 1 if {m} divides n, otherwise 0.", f"1 for the multiples of {m}, 0 for other n."), f"int(n % {m} == 0)") for m in range(2, 14)
    ] + [Candidate(("1 for a square n, 0 for other n.",), "int(is_square(n))")])


def powers() -> Iterator[Group]:
    yield Group("power", 1, 7, "k^n", [
        Candidate((f"a(n) = {k}^n.", f"Powers of {k}, from 1 on."), f"{k}**n", (0,)) for k in range(2, 13)
    ])
    yield Group("power", 2, 10, "c*k^n", [formula(f"{c}*{k}^n") for k in range(2, 9) for c in range(2, 40)])
    yield Group("power", 2, 12, "k^n + c", [formula(f"{k}^n {s} {c}") for k in range(2, 13) for c in range(1, 12) for s in "+-"])
    yield Group("power", 2, 14, "j^n + k^n, j^n - k^n", [
        formula(f"{k}^n {s} {j}^n") for k in range(3, 13) for j in range(2, k) for s in "+-"
    ])
    yield Group("power", 2, 6, "c*k^n + d", [formula(f"{c}*{k}^n {s} {d}") for k in range(2, 9) for c in range(2, 16) for d in range(1, 16) for s in "+-"])
    yield Group("power", 3, 6, "(k^n + c)/d", [
        formula(f"({k}^n {s} {c})/{d}") for k in range(3, 13) for c in range(1, 6) for s in "+-" for d in range(2, 13) if (1 + (c if s == "+" else -c)) % d == 0 and (k + (c if s == "+" else -c)) % d == 0
    ])
    yield Group("power", 2, 10, "polynomial times k^n", [
        formula(f"{text}*{k}^n") for k in range(2, 11) for text in ["n", "n^2", "n^3", "n*(n + 1)"] + [f"({polynomial_text(m, c)})" for m in (1, 2, 3) for c in range(-3, 9) if c]
    ] + [
        formula(f"n*{k}^(n-1)", f"n*{k}**max(n - 1, 0)") for k in range(2, 13)
    ])
    yield Group("power", 2, 8, "k^n + polynomial", [
        formula(f"{k}^n {s} {text}") for k in range(2, 11) for s in "+-" for text in ["n", "n^2", "n^3", "n - 1", "n + 1", f"n^{k}"]
    ] + [formula(f"n^{k} {s} {k}^n") for k in range(2, 11) for s in "+-"])
    yield Group("power", 2, 8, "other exponents", [
        formula(f"{k}^({polynomial_text(m, c)})", f"{k}**({polynomial_text(m, c)})") for k in (2, 3, 4, 5) for m in (2, 3) for c in range(0, 3)
    ] + [
        formula("n^n"), formula("n^n + 1"), formula("n^n - 1"), formula("n^(n + 1)"), formula("n^(n - 1)", None, (1,)), formula("(n + 1)^n"), formula("n^(n + 2)"), formula("(n + 2)^n"), formula("n^n + n"),
        formula("(2*n)^n"), formula("(2*n + 1)^n"), formula("n^(n - 2)", None, (2,)), formula("(n + 3)^n"), formula("(n + 1)^(n + 1) - n^n"), formula("n^n - n"), formula("(n - 1)^n"), formula("(n + 4)^n"),
        formula("(2^n - 1)^2"), formula("(2^n + 1)^2"), formula("(3^n - 1)^2"), formula("(2^n - 1)*(2^n - 2)"), formula("2^n*(2^n - 1)"), formula("2^n*(2^n + 1)"), formula("2^n*(2^n + 1)/2"), formula("2^n*3^(n + 1)"),
        formula("2^floor(n/2)", "2**(n//2)"), formula("3^floor(n/2)", "3**(n//2)"), formula("2^(n*(n-1)/2)", "2**(n*(n-1)//2)"), formula("(3^n - 2^n)^2"), formula("(2^n - 1)*(3^n - 1)"), formula("2^ceiling(n/2)", "2**(-(-n//2))"),
        formula("1 + 2^n + 3^n"), formula("1 + 2^n + 3^n + 4^n"), formula("2^n + 3^n + 4^n"), formula("3^n - 2*2^n + 1"), formula("4^n - 3^n - 2^n"), formula("6^n - 3^n - 2^n"), formula("1 + 2^n + 4^n"),
        formula("1 + 2^n + 3^n + 4^n + 5^n"), formula("4^n - 2*3^n + 2^n"), formula("2*4^n - 2^n"), formula("(3^n + 1)*2^n"), formula("3^n - 3*2^n + 3", None, (1,)), formula("2*3^n - 2^n"), formula("2*3^n + 2^n"),
    ])


def floors() -> Iterator[Group]:
    no_squares = [k for k in range(2, 40) if isqrt(k) ** 2 != k]
    yield Group("floor-root", 2, 4, "floor(n/k)", [formula(f"floor(n/{k})", f"n//{k}") for k in range(2, 20)])
    yield Group("floor-root", 2, 5, "floor(a*n/b)", [formula(f"floor({p}*n/{q})", f"{p}*n//{q}") for q in range(2, 30) for p in range(2, 34) if p % q])
    yield Group("floor-root", 2, 12, "floor(polynomial/k)", [
        formula(f"floor({text}/{k})", f"{code}//{k}") for k in range(2, 40)
        for text, code in (("n^2", "n**2"), ("n^3", "n**3"), ("n*(n - 1)", "n*(n - 1)"), ("n*(n - 1)*(n - 2)", "n*(n - 1)*(n - 2)"), ("n^4", "n**4"), ("(n + 1)^2", "(n + 1)**2"),
                           ("n*(n + 1)", "n*(n + 1)"), ("n*(n + 2)", "n*(n + 2)"), ("n*(n - 1)*(n - 2)*(n - 3)", "n*(n - 1)*(n - 2)*(n - 3)"))
        if any(eval(code, {"n": n}) % k for n in range(12))
    ])
    yield Group("floor-root", 2, 4, "nearest integer and ceiling", [
        named(f"Integer nearest to {text}/{k}.", f"(2*{code} + {k})//{2 * k}") for k in range(3, 40) for text, code in (("n", "n"), ("n^2", "n**2"), ("n^3", "n**3"))
    ] + [formula(f"ceiling({text}/{k})", f"-(-{code}//{k})") for k in range(2, 30) for text, code in (("n", "n"), ("n^2", "n**2"), ("n^3", "n**3"))])
    yield Group("floor-root", 3, 12, "floor(n*sqrt(k)) and floor of powers", [
        formula(f"floor(n*sqrt({k}))", f"isqrt({k}*n*n)") for k in no_squares
    ] + [
        formula(f"floor(n*(1 + sqrt({k})))", f"n + isqrt({k}*n*n)") for k in no_squares
    ] + [
        formula(f"floor(sqrt({k})^n)", f"isqrt({k}**n)") for k in no_squares
    ] + [
        formula(f"floor(n*({c} + sqrt({k})))", f"{c}*n + isqrt({k}*n*n)") for k in no_squares for c in (2, 3, 4, 5)
    ] + [formula(f"floor(n/sqrt({k}))", f"isqrt(n*n//{k})") for k in no_squares])
    yield Group("floor-root", 3, 10, "floor(sqrt(...))", [
        formula(f"floor(sqrt({text}))", f"isqrt({code})", (0, 1, 2))
        for text, code in [(terms_text((k, "n"), (c, "")),) * 2 for k in range(1, 9) for c in range(-4, 5)] + [(f"n^{k}", f"n**{k}") for k in (3, 5, 7)]
        + [("n!", "factorial(n)"), ("2^n", "2**n"), ("n^2/2", "n**2//2"), ("n/2", "n//2"), ("n/3", "n//3"), ("n*(n + 1)/2", "n*(n + 1)//2"), ("binomial(2*n, n)", "comb(2*n, n)"), ("Fibonacci(n)", "fibonacci(n)"), ("prime(n)", "prime(n)"), ("n^n", "n**n"), ("3^n", "3**n")]
    ] + [formula(f"floor(n^(1/{k}))", f"integer_root(n, {k})") for k in (3, 4, 5)] + [formula(f"floor(n^({p}/{q}))", f"integer_root(n**{p}, {q})") for p in (2, 3, 4, 5) for q in (2, 3, 4) if p % q])
    yield Group("floor-root", 3, 12, "golden ratio and square roots, single rules", [
        named("Beatty sequence of the golden ratio phi: floor(n*phi).", "(n + isqrt(5*n*n))//2"),
        named("Beatty sequence of phi^2, phi the golden ratio: floor(n*phi^2).", "(3*n + isqrt(5*n*n))//2"),
        named("Positive integers that are not squares.", "nth(n, lambda k: not is_square(k))", 1),
        named("Difference between n and the greatest square <= n.", "n - isqrt(n)**2"),
        named("Greatest square <= n.", "isqrt(n)**2"),
        named("Least square >= n.", "n if is_square(n) else (isqrt(n) + 1)**2"),
        named("Each n occurs n times: 1, 2, 2, 3, 3, 3, ...", "(isqrt(8*n) + 1)//2"),
        named("Each n occurs n + 1 times: 0, 1, 1, 2, 2, 2, ...", "(isqrt(8*n + 1) - 1)//2"),
        named("Integer nearest to sqrt(n).", "isqrt(4*n) + 1 >> 1"),
        named("a(n) = n + floor(sqrt(n)).", "n + isqrt(n)"),
        named("a(n) = n - floor(sqrt(n)).", "n - isqrt(n)"),
        named("a(n) = n*floor(sqrt(n)).", "n*isqrt(n)"),
        named("a(n) = floor(n/floor(sqrt(n))).", "n//isqrt(n)", 1),
        named("a(n) = n mod floor(sqrt(n)).", "n % isqrt(n)", 1),
        named("Each n occurs 2*n + 1 times, n from 1 on.", "isqrt(n + 1)"),
        named("a(n) = ceiling(sqrt(n)).", "0 if n == 0 else isqrt(n - 1) + 1"),
        named("Numbers that are not triangular numbers k*(k + 1)/2.", "nth(n, lambda k: not is_square(8*k + 1))", 1),
        named("Distance from n to the nearest square.", "min(n - isqrt(n)**2, (isqrt(n) + 1)**2 - n)"),
        named("Numbers that are not cubes.", "nth(n, lambda k: integer_root(k, 3)**3 != k)", 1),
        named("Number of squares up to n, 0 included.", "isqrt(n) + 1"),
        named("Squares and cubes in increasing order.", "nth(n, lambda k: is_square(k) or integer_root(k, 3)**3 == k)", 1),
        named("Difference between the least square >= n and n.", "0 if is_square(n) else (isqrt(n) + 1)**2 - n"),
        named("a(n) = floor(n*(sqrt(5) - 1)/2).", "(isqrt(5*n*n) - n)//2"),
        named("a(n) = Sum_{k=0..n} floor(sqrt(k)).", "sum(isqrt(k) for k in range(n + 1))"),
        named("a(n) = Sum_{k=1..n} floor(n/k).", "sum(n//k for k in range(1, n + 1))"),
        named("a(n) = Sum_{k=1..n} (n mod k).", "sum(n % k for k in range(1, n + 1))"),
        named("Numbers 1..n in turn, for n = 1, 2, 3, ...", "n - comb((isqrt(8*n) + 1)//2, 2)", 1),
        named("a(n) = floor(n^2/2) + floor(n/2).", "n**2//2 + n//2"),
        named("a(n) = floor(sqrt(n)) + floor(n^(1/3)).", "isqrt(n) + integer_root(n, 3)"),
        named("Sum of two squares: numbers of the form x^2 + y^2.", "nth(n, lambda k: any(is_square(k - x*x) for x in range(isqrt(k) + 1)), 0)", 1),
        named("Numbers of the form x^2 + y^2 with x, y >= 1.", "nth(n, lambda k: any(is_square(k - x*x) for x in range(1, isqrt(k - 1) + 1)))", 1),
        named("Numbers that are not of the form x^2 + y^2.", "nth(n, lambda k: not any(is_square(k - x*x) for x in range(isqrt(k) + 1)))", 1),
        named("Perfect powers m^k with k >= 2.", "nth(n, lambda k: k == 1 or any(integer_root(k, e)**e == k for e in range(2, k.bit_length())))", 1),
    ])
    yield Group("floor-root", 3, 12, "products and sums of floors", [
        formula(f"floor(n/{p})*floor((n + 1)/{p})", f"n//{p}*((n + 1)//{p})") for p in range(2, 6)
    ] + [formula(f"floor(n/{p})*floor(n/{q})", f"n//{p}*(n//{q})") for p in range(1, 7) for q in range(p + 1, 10)] + [
        formula(f"floor(n/{p}) + floor(n/{q})", f"n//{p} + n//{q}") for p in range(2, 7) for q in range(p + 1, 10)
    ] + [formula(f"n + floor(n/{p})", f"n + n//{p}") for p in range(2, 12)] + [formula(f"n - floor(n/{p})", f"n - n//{p}") for p in range(3, 12)] + [
        formula(f"floor({b}^n/{c})", f"{b}**n//{c}") for b in range(2, 6) for c in range(3, 30)
    ] + [formula(f"floor({b}^n/n)", f"{b}**n//n", (1,)) for b in range(2, 9)] + [formula(f"floor(({p}/{q})^n)", f"{p}**n//{q}**n") for q in range(2, 6) for p in range(q + 1, 12)] + [
        formula(f"floor(Fibonacci(n)/{c})", f"fibonacci(n)//{c}") for c in range(2, 12)] + [formula(f"floor(binomial(n, {k})/{c})", f"comb(n, {k})//{c}") for k in range(2, 8) for c in range(2, 12)] + [
        formula("floor(n!/2^n)", "factorial(n)//2**n"), formula("floor(n^2/2) + 1", "n**2//2 + 1"), formula("floor(2^n/n^2)", "2**n//n**2", (1,)), formula("floor(n!/n^2)", "factorial(n)//n**2", (1,))])
