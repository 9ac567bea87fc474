"""Rules that the sample is searched for: recurrences, expansions, binomials and combinatorics.

Run: not by hand; `python -m rlvr.sample search` tries each one on a real corpus.
Not the sample itself: most of these rules have no entry, and of those that have one each group keeps only some.
"""

# ruff: noqa: E501  (one rule a line, as in a table)
# fmt: off

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

from rlvr.sample_families import Candidate, Group, formula, named, polynomial_text, terms_text


def recurrences() -> Iterator[Group]:
    yield Group("recurrence", 3, 34, "second order", [
        named(
            f"a(n) = {terms_text((p, 'a(n-1)'), (q, 'a(n-2)'))}, with a(0) = {s}, a(1) = {t}.",
            f"linear_recurrence(({p}, {q}), ({s}, {t}), n)", 0,
        )
        for p in range(0, 13) for q in range(-8, 11) for s in range(0, 4) for t in range(0, 8) if q and t + s and s * (p * t + q * s) != t * t
    ])
    yield Group("recurrence", 3, 4, "Fibonacci-like starts", [
        named(f"a(n) = a(n-1) + a(n-2), with a(0) = {s}, a(1) = {t}.", f"linear_recurrence((1, 1), ({s}, {t}), n)", 0)
        for s in range(0, 16) for t in range(s, 26)
    ])
    yield Group("recurrence", 3, 6, "first order", [
        named(f"a(n) = {k}*a(n-1) {'+' if c > 0 else '-'} {abs(c)}, with a(0) = {s}.", f"linear_recurrence(({k + 1}, -{k}), ({s}, {k * s + c}), n)", 0)
        for k in range(2, 13) for c in range(-6, 7) for s in range(0, 6) if c and k * s + c != s
    ])
    yield Group("recurrence", 3, 10, "third order", [
        named(
            f"a(n) = {terms_text((p, 'a(n-1)'), (q, 'a(n-2)'), (r, 'a(n-3)'))}, with a(0) = {s}, a(1) = {t}, a(2) = {u}.",
            f"linear_recurrence(({p}, {q}, {r}), ({s}, {t}, {u}), n)", 0,
        )
        for p in range(0, 4) for q in range(-3, 4) for r in range(-2, 3) for s in (0, 1, 3) for t in range(0, 4) for u in range(0, 5) if r and s + t + u
    ])
    yield Group("recurrence", 4, 8, "with a polynomial in n", [
        named(f"a(n) = {text}, with a(0) = {s}.", f"reduce(lambda t, k: {code}, range(1, n + 1), {s})", 0)
        for s in range(0, 4)
        for text, code in [(f"{k}*a(n-1) + {c}n".replace("1*a", "a").replace("1*n", "n"), f"{k}*t + {c}k") for k in range(2, 10) for c in ("", "2*", "3*")]
        + [(f"n*a(n-1) + {c}", f"k*t + {c}") for c in ("1", "2", "3", "n", "n^2")]
        + [(f"a(n-1) + n^{e}", f"t + k**{e}") for e in range(2, 8)]
    ])
    yield Group("recurrence", 3, 12, "Fibonacci and Lucas numbers", [
        formula(text, text.replace("Fibonacci", "fibonacci").replace("Lucas", "lucas").replace("^", "**"), (0, 1))
        for base in ("Fibonacci(n)", "Lucas(n)", "Fibonacci(2*n)", "Fibonacci(2*n + 1)", "Fibonacci(n + 1)", "Fibonacci(n + 2)", "Lucas(2*n)", "Lucas(n + 1)",
                     "Fibonacci(3*n)", "Fibonacci(4*n)", "Fibonacci(5*n)", "Lucas(3*n)", "Lucas(4*n)", "Fibonacci(3*n + 1)", "Fibonacci(3*n + 2)", "Fibonacci(4*n + 1)", "Fibonacci(4*n + 3)")
        for text in [base, f"{base}^2", f"{base}^3", f"n*{base}", f"{base} + n"] + [f"{base} + {c}" for c in range(1, 5)] + [f"{base} - {c}" for c in range(1, 4)]
        + [f"{c}*{base}" for c in range(2, 9)] + [f"2^n - {base}", f"2^n + {base}", f"{base} - n", f"{base} - n - 1", f"(n + 1)*{base}"]
    ])


def expansions() -> Iterator[Group]:
    def expand(*factors: tuple[int, ...]) -> tuple[int, ...]:
        result = [1]
        for factor in factors:
            longer = [0] * (len(result) + len(factor) - 1)
            for i, x in enumerate(result):
                for j, y in enumerate(factor):
                    longer[i + j] += x * y
            result = longer
        return tuple(result)

    def geometric(k: int) -> str:
        return "(1-x)" if k == 1 else f"(1-{k}*x)"

    def power(k: int) -> tuple[int, ...]:
        return (1, *[0] * (k - 1), -1)

    def power_text(k: int) -> str:
        return "(1-x)" if k == 1 else f"(1-x^{k})"

    def fraction(text: str, numerator: tuple[int, ...], denominator: tuple[int, ...]) -> Candidate:
        return named(f"Expansion of {text}.", f"series({numerator}, {denominator}, n)", 0)

    yield Group("expansion", 3, 14, "1/((1-a*x)*(1-b*x))", [
        fraction(f"1/({geometric(p)}*{geometric(q)})", (1,), expand((1, -p), (1, -q))) for p in range(1, 12) for q in range(p, 13)
    ])
    yield Group("expansion", 3, 10, "1/((1-a*x)*(1-b*x)*(1-c*x))", [
        fraction(f"1/({geometric(p)}*{geometric(q)}*{geometric(r)})", (1,), expand((1, -p), (1, -q), (1, -r)))
        for p in range(1, 8) for q in range(p + 1, 11) for r in range(q + 1, 12)
    ])
    yield Group("expansion", 3, 10, "1/(1-a*x-b*x^2)", [
        fraction(f"{top}/({terms_text((1, ''), (-p, 'x'), (-q, 'x^2')).replace(' ', '')})", numerator, (1, -p, -q))
        for p in range(1, 13) for q in range(-12, 13) if q
        for top, numerator in (("1", (1,)), ("x", (0, 1)), ("(1-x)", (1, -1)), ("(1+x)", (1, 1)))
        if p + q != 1 and q - p != 1
    ])
    yield Group("expansion", 4, 10, "products of 1-x^k below", [
        fraction(f"1/({'*'.join(power_text(k) for k in parts)})", (1,), expand(*[power(k) for k in parts]))
        for size in (2, 3, 4) for parts in combinations(range(1, 10), size)
    ])
    yield Group("expansion", 4, 8, "1/(1-x^i-x^j-...)", [
        fraction(
            "1/(1-" + "-".join(f"x^{k}" if k > 1 else "x" for k in parts) + ")", (1,), tuple([1] + [-(k in parts) for k in range(1, max(parts) + 1)])
        )
        for size in (2, 3, 4) for parts in combinations(range(1, 11), size)
    ])
    yield Group("expansion", 4, 6, "(1+x^k)/((1-x)^i*(1-x^j))", [
        fraction(f"(1+x^{k})/((1-x)^{i}*(1-x^{j}))", (1, *[0] * (k - 1), 1), expand(*[(1, -1)] * i, power(j))) for k in range(1, 12) for i in (2, 3) for j in range(2, 12)
    ])
    yield Group("expansion", 4, 6, "others", [
        fraction(f"1/(1-x)^{i}/(1-{k}*x)", (1,), expand(*[(1, -1)] * i, (1, -k))) for i in (2, 3, 4) for k in range(2, 10)
    ] + [
        fraction(f"1/(1-{k}*x)^{i}", (1,), expand(*[(1, -k)] * i)) for i in (2, 3, 4) for k in range(2, 10)
    ] + [
        fraction(f"(1+x)^{j}/(1-x)^{i}".replace("^1/", "/"), expand(*[(1, 1)] * j), expand(*[(1, -1)] * i)) for i in range(2, 12) for j in range(1, i + 1)
    ] + [
        fraction(f"1/((1-x)^{i}*(1+x)^{j})".replace("^1)", ")"), (1,), expand(*[(1, -1)] * i, *[(1, 1)] * j)) for i in range(2, 7) for j in range(1, i)
    ] + [fraction(f"(1-x)/(1-{p}*x+x^2)", (1, -1), (1, -p, 1)) for p in range(3, 20)])


def binomials() -> Iterator[Group]:
    yield Group("binomial", 3, 10, "binomial(n, k)", [
        formula(f"binomial(n, {k})", f"comb(n, {k})", (0, k)) for k in range(2, 18)
    ] + [formula(f"binomial(n + {k}, {k})", f"comb(n + {k}, {k})", (0,)) for k in range(2, 13)])
    yield Group("binomial", 3, 8, "multiples", [
        formula(f"{c}*binomial(n, {k})", f"{c}*comb(n, {k})", (0, k)) for k in range(2, 8) for c in range(2, 30)
    ] + [formula(f"{c}*binomial(n + {j}, {k})", f"{c}*comb(n + {j}, {k})", (0, 1)) for k in range(2, 8) for j in range(1, k + 1) for c in range(2, 12)])
    yield Group("binomial", 3, 22, "binomial(m*n + b, n + c) and binomial(m*n + b, k)", [
        formula(f"binomial({polynomial_text(m, b)}, {polynomial_text(1, c)})", f"comb({polynomial_text(m, b)}, {polynomial_text(1, c)})", (0, 1, max(-c, 0)))
        for m in range(2, 8) for b in range(-3, 7) for c in range(-12, 5)
    ] + [
        formula(f"binomial({polynomial_text(m, b)}, {k})", f"comb({polynomial_text(m, b)}, {k})", (0, 1, 2, 3, 4, 5)) for m in range(2, 5) for b in range(-8, 9) for k in range(2, 10)
    ])
    yield Group("binomial", 4, 6, "products", [
        formula(f"{text}", code, (0, 1, 2, 3, 4, 5, 6))
        for k in range(2, 9) for b in range(2, 8)
        for text, code in (
            (f"{b}^(n-{k})*binomial(n, {k})", f"{b}**max(n - {k}, 0)*comb(n, {k})"),
            (f"{b}^n*binomial(n + {k}, {k})", f"{b}**n*comb(n + {k}, {k})"),
            (f"binomial(n, {k})*binomial(n + {b}, {k})", f"comb(n, {k})*comb(n + {b}, {k})"),
            (f"(n + {b})*binomial(n, {k})", f"(n + {b})*comb(n, {k})"),
        )
    ])
    yield Group("binomial", 4, 22, "central coefficients and Catalan numbers", [
        formula("binomial(2*n, n)/(n + 1)", "comb(2*n, n)//(n + 1)"),
        formula("binomial(n, floor(n/2))", "comb(n, n//2)"),
        formula("n*binomial(2*n, n)"),
        formula("n*binomial(2*n, n)/2"),
        formula("n^2*binomial(2*n, n)", "n**2*comb(2*n, n)"),
        formula("binomial(2*n, n)^2", "comb(2*n, n)**2"),
        formula("binomial(2*n, n) - 1", "comb(2*n, n) - 1"),
        formula("binomial(2*n, n) + 1", "comb(2*n, n) + 1"),
        formula("binomial(2*n, n) - n", "comb(2*n, n) - n"),
        formula("binomial(2*n, n) + n", "comb(2*n, n) + n"),
        formula("binomial(2*n, n) - 2^n", "comb(2*n, n) - 2**n"),
        formula("4^n - binomial(2*n, n)", "4**n - comb(2*n, n)"),
        formula("(4^n - binomial(2*n, n))/2", "(4**n - comb(2*n, n))//2"),
        formula("(4^n + binomial(2*n, n))/2", "(4**n + comb(2*n, n))//2"),
        formula("2^n*binomial(2*n, n)", "2**n*comb(2*n, n)"),
        formula("2^n*binomial(2*n, n)/(n + 1)", "2**n*comb(2*n, n)//(n + 1)"),
        formula("3^n*binomial(2*n, n)", "3**n*comb(2*n, n)"),
        formula("(binomial(2*n, n) + 2^n)/2", "(comb(2*n, n) + 2**n)//2"),
        formula("binomial(2*n, n)/2", "comb(2*n, n)//2", (1,)),
        formula("binomial(3*n, n)/(2*n + 1)", "comb(3*n, n)//(2*n + 1)"),
        formula("binomial(4*n, n)/(3*n + 1)", "comb(4*n, n)//(3*n + 1)"),
        formula("binomial(5*n, n)/(4*n + 1)", "comb(5*n, n)//(4*n + 1)"),
        formula("binomial(6*n, n)/(5*n + 1)", "comb(6*n, n)//(5*n + 1)"),
        formula("2^n - binomial(n, floor(n/2))", "2**n - comb(n, n//2)"),
        formula("2^n - n*(n + 1)/2", "2**n - n*(n + 1)//2"),
        formula("2^n - binomial(n, 2)", "2**n - comb(n, 2)"),
        formula("2^n - 1 - binomial(n, 2)", "2**n - 1 - comb(n, 2)"),
        formula("2^n + binomial(n, 2)", "2**n + comb(n, 2)"),
        formula("binomial(2^n, 2)", "comb(2**n, 2)"),
        formula("binomial(2^n, 3)", "comb(2**n, 3)"),
        formula("binomial(2^n + 1, 2)", "comb(2**n + 1, 2)"),
        formula("binomial(3^n, 2)", "comb(3**n, 2)"),
        formula("binomial(n^2, 2)", "comb(n**2, 2)"),
        formula("binomial(n^2, n)", "comb(n**2, n)"),
        formula("binomial(n^2, 3)", "comb(n**2, 3)"),
        formula("binomial(n^2 + 1, 2)", "comb(n**2 + 1, 2)"),
        formula("binomial(n, 2)^2", "comb(n, 2)**2"),
        formula("binomial(n, 3)^2", "comb(n, 3)**2"),
        formula("binomial(binomial(n, 2), 2)", "comb(comb(n, 2), 2)", (0, 1, 2, 3)),
        formula("binomial(n, 2)*binomial(n, 3)", "comb(n, 2)*comb(n, 3)", (0, 1, 2, 3)),
        formula("n^2*binomial(n, 2)", "n**2*comb(n, 2)"),
        formula("Sum_{k=0..n} binomial(n, k)^3", "sum(comb(n, k)**3 for k in range(n + 1))"),
        formula("Sum_{k=0..n} binomial(n, k)^4", "sum(comb(n, k)**4 for k in range(n + 1))"),
        formula("Sum_{k=0..n} binomial(2*k, k)", "sum(comb(2*k, k) for k in range(n + 1))"),
        formula("Sum_{k=0..n} binomial(n, k)*binomial(n + k, k)", "sum(comb(n, k)*comb(n + k, k) for k in range(n + 1))"),
        formula("Sum_{k=0..n} binomial(n, k)^2*binomial(n + k, k)", "sum(comb(n, k)**2*comb(n + k, k) for k in range(n + 1))"),
        formula("Sum_{k=0..n} binomial(n, k)^2*binomial(2*k, k)", "sum(comb(n, k)**2*comb(2*k, k) for k in range(n + 1))"),
        formula("Sum_{k=0..n} binomial(n, k)*binomial(2*k, k)", "sum(comb(n, k)*comb(2*k, k) for k in range(n + 1))"),
        formula("Sum_{k=0..n} 2^k*binomial(n, k)^2", "sum(2**k*comb(n, k)**2 for k in range(n + 1))"),
        formula("Sum_{k=0..n} binomial(n - k, 2*k)", "sum(comb(n - k, 2*k) for k in range(n + 1))"),
        formula("Sum_{k=0..floor(n/3)} binomial(n, 3*k)", "sum(comb(n, 3*k) for k in range(n + 1))"),
        formula("Sum_{k=0..floor(n/4)} binomial(n, 4*k)", "sum(comb(n, 4*k) for k in range(n + 1))"),
        formula("Sum_{k=0..4} binomial(n, k)", "sum(comb(n, k) for k in range(5))"),
        formula("Sum_{k=0..3} binomial(n, k)", "sum(comb(n, k) for k in range(4))"),
        formula("Sum_{k=0..5} binomial(n, k)", "sum(comb(n, k) for k in range(6))"),
        formula("Sum_{k=0..6} binomial(n, k)", "sum(comb(n, k) for k in range(7))"),
        formula("binomial(n, 4) + binomial(n, 2)", "comb(n, 4) + comb(n, 2)"),
        formula("binomial(n, 4) + binomial(n, 3)", "comb(n, 4) + comb(n, 3)"),
        formula("binomial(n + 2, 3) + binomial(n, 3)", "comb(n + 2, 3) + comb(n, 3)"),
        formula("binomial(2*n, n) - binomial(2*n, n - 2)", "comb(2*n, n) - comb(2*n, n - 2)", (2,)),
        formula("binomial(2*n, n) + binomial(2*n + 1, n)", "comb(2*n, n) + comb(2*n + 1, n)"),
    ] + [formula(f"{k}*binomial(2*n - {k - 1 - j}, n)/(n + 1)".replace("- 0, ", ", "), f"{k}*comb(2*n - {k - 1 - j}, n)//(n + 1)", (0, 1, 2, 3)) for k in range(2, 5) for j in (0, 1)])


def combinatorics() -> Iterator[Group]:
    yield Group("combinatorial", 3, 14, "factorials", [
        formula("n!", "factorial(n)"), formula("n! + 1", "factorial(n) + 1"), formula("n! - 1", "factorial(n) - 1"), formula("n*n!", "n*factorial(n)"), formula("n^2*n!", "n**2*factorial(n)"),
        formula("(2*n)!/n!", "factorial(2*n)//factorial(n)"), formula("(2*n)!/2^n", "factorial(2*n)//2**n"), formula("(2*n)!", "factorial(2*n)"), formula("(2*n + 1)!", "factorial(2*n + 1)"), formula("(n!)^2", "factorial(n)**2"),
        formula("n!*(n + 1)!", "factorial(n)*factorial(n + 1)"), formula("(n + 1)! - n!", "factorial(n + 1) - factorial(n)"), formula("n! + n", "factorial(n) + n"), formula("n! - n", "factorial(n) - n"), formula("n! + 2^n", "factorial(n) + 2**n"), formula("n! - 2^n", "factorial(n) - 2**n"),
        formula("(2*n)!/(2^n*n!)", "factorial(2*n)//2**n//factorial(n)"), formula("2^n*n!", "2**n*factorial(n)"), formula("3^n*n!", "3**n*factorial(n)"), formula("n^n - n!", "n**n - factorial(n)"), formula("n^n + n!", "n**n + factorial(n)"),
        formula("Sum_{k=0..n} k!", "sum(factorial(k) for k in range(n + 1))"), formula("Sum_{k=1..n} k!", "sum(factorial(k) for k in range(1, n + 1))"), formula("Sum_{k=0..n} n!/k!", "sum(perm(n, k) for k in range(n + 1))"), formula("Sum_{k=0..n-1} k!", "sum(factorial(k) for k in range(n))"),
        formula("n!*(n - 1)/2", "factorial(n)*(n - 1)//2"), formula("n!*n*(n - 1)/4", "factorial(n)*n*(n - 1)//4"), formula("n!*binomial(n, 2)", "factorial(n)*comb(n, 2)"), formula("n!^2/n", "factorial(n)**2//n", (1,)), formula("n!*Fibonacci(n)", "factorial(n)*fibonacci(n)"), formula("n!*Fibonacci(n + 1)", "factorial(n)*fibonacci(n + 1)"),
        named("Double factorial n!!: the product of n, n - 2, n - 4, ...", "prod(range(n, 0, -2))"), formula("(2*n - 1)!!", "prod(range(2*n - 1, 0, -2))"), formula("(2*n + 1)!!", "prod(range(2*n + 1, 0, -2))"),
        named("Triple factorial n!!!: the product of n, n - 3, n - 6, ...", "prod(range(n, 0, -3))"), formula("(n + 1)!/2", "factorial(n + 1)//2", (1, 2)),
        formula("(n + 2)*n!", "(n + 2)*factorial(n)"), formula("(2*n + 1)*n!", "(2*n + 1)*factorial(n)"), formula("n! mod (n + 1)", "factorial(n) % (n + 1)"), formula("2*n!", "2*factorial(n)"), formula("n!*(n + 1)^2", "factorial(n)*(n + 1)**2"),
    ] + [formula(f"n!/{d}!", f"factorial(n)//factorial({d})", (d, d + 1, d - 1)) for d in range(3, 12)] + [formula(f"(n + {d})!/{d}!", f"factorial(n + {d})//factorial({d})", (0,)) for d in range(2, 12)] + [formula(f"{c}*n!", f"{c}*factorial(n)", (0, 1, 2)) for c in range(3, 20)])
    yield Group("combinatorial", 3, 6, "products of progressions", [
        formula(f"Product_{{k=0..n-1}} ({k}*k + {r})", f"prod({k}*k + {r} for k in range(n))", (0, 1)) for k in range(2, 12) for r in range(1, k + 3)
    ])
    yield Group("combinatorial", 4, 10, "partitions", [
        named(f"Number of partitions of n with no more than {k} parts.", f"restricted_partitions(n, range(1, {k + 1}))", 0) for k in range(2, 13)
    ] + [
        named(f"Number of partitions of n into exactly {k} parts.", f"restricted_partitions(n - {k}, range(1, {k + 1})) if n >= {k} else 0") for k in range(2, 13)
    ] + [
        named(f"Number of ways to pay n with coins of {', '.join(map(str, coins[:-1]))} and {coins[-1]}.", f"restricted_partitions(n, {coins})", 0)
        for size in (2, 3, 4) for coins in combinations((1, 2, 3, 4, 5, 6, 8, 10, 20, 25, 50), size)
    ])
    yield Group("combinatorial", 4, 14, "more partitions", [
        named("Number of partitions of n.", "restricted_partitions(n, range(1, n + 1))"),
        named("Number of ways to write n as a sum of different positive integers.", "distinct_partitions(n, range(1, n + 1))"),
        named("Number of partitions of n into primes.", "restricted_partitions(n, [p for p in range(n + 1) if is_prime(p)])"),
        named("Number of partitions of n into different primes.", "distinct_partitions(n, [p for p in range(n + 1) if is_prime(p)])"),
        named("Number of partitions of n all of whose parts are squares.", "restricted_partitions(n, [k*k for k in range(1, isqrt(n) + 1)])"),
        named("Number of partitions of n into different squares.", "distinct_partitions(n, [k*k for k in range(1, isqrt(n) + 1)])"),
        named("Number of partitions of n into powers of 2.", "restricted_partitions(n, [2**k for k in range(n.bit_length())])"),
        named("Number of partitions of 2*n into powers of 2.", "restricted_partitions(2*n, [2**k for k in range(n.bit_length() + 1)])"),
        named("Number of partitions of n into different odd parts.", "distinct_partitions(n, range(1, n + 1, 2))"),
        named("Number of partitions of n with no part 1.", "restricted_partitions(n, range(2, n + 1))"),
        named("Number of partitions of n with no part below 3.", "restricted_partitions(n, range(3, n + 1))"),
        named("Number of partitions of n into different parts above 1.", "distinct_partitions(n, range(2, n + 1))"),
        named("Number of partitions of n into different parts above 2.", "distinct_partitions(n, range(3, n + 1))"),
        named("Number of partitions of n into cubes.", "restricted_partitions(n, [k**3 for k in range(1, n + 1) if k**3 <= n])"),
        named("Number of partitions of n into triangular numbers.", "restricted_partitions(n, [k*(k + 1)//2 for k in range(1, n + 1)])"),
        named("Number of partitions of n into Fibonacci numbers 1, 2, 3, 5, ....", "restricted_partitions(n, [fibonacci(k) for k in range(2, n + 3)])"),
        named("Number of partitions of n into different Fibonacci numbers 1, 2, 3, 5, ....", "distinct_partitions(n, [fibonacci(k) for k in range(2, n + 3)])"),
        named("Number of partitions of n into powers of 3.", "restricted_partitions(n, [3**k for k in range(n.bit_length())])"),
        named("Number of partitions of n into parts that are not multiples of 3.", "restricted_partitions(n, [k for k in range(1, n + 1) if k % 3])"),
        named("Number of partitions of n into parts that are not multiples of 4.", "restricted_partitions(n, [k for k in range(1, n + 1) if k % 4])"),
        named("Number of partitions of n into parts that are not multiples of 5.", "restricted_partitions(n, [k for k in range(1, n + 1) if k % 5])"),
        named("Number of partitions of n into odd primes.", "restricted_partitions(n, [p for p in range(3, n + 1) if is_prime(p)])"),
        named("Number of partitions of n into divisors of n.", "restricted_partitions(n, divisors(n))", 1),
        named("Number of partitions of n into parts congruent to 1 or 4 mod 5.", "restricted_partitions(n, [k for k in range(1, n + 1) if k % 5 in (1, 4)])"),
        named("Number of partitions of n into parts congruent to 2 or 3 mod 5.", "restricted_partitions(n, [k for k in range(1, n + 1) if k % 5 in (2, 3)])"),
        named("Number of partitions of n into composite parts.", "restricted_partitions(n, [k for k in range(4, n + 1) if not is_prime(k)])"),
        named("Number of partitions of n into squarefree parts.", "restricted_partitions(n, [k for k in range(1, n + 1) if len(set(prime_factors(k))) == len(prime_factors(k))])"),
        named("Number of partitions of 2*n.", "restricted_partitions(2*n, range(1, 2*n + 1))"),
        named("Number of partitions of n with two kinds of part 1.", "restricted_partitions(n, [1, *range(1, n + 1)])"),
        named("Number of partitions of n with two kinds of each part.", "restricted_partitions(n, [*range(1, n + 1), *range(1, n + 1)])"),
        named("Number of partitions of n with three kinds of each part.", "restricted_partitions(n, [*range(1, n + 1)]*3)"),
    ])
    yield Group("combinatorial", 4, 10, "Stirling numbers", [
        named(f"Stirling numbers of the second kind S(n, {k}).", f"stirling2(n, {k})", 0, k, 1) for k in range(2, 9)
    ] + [
        named(f"Stirling numbers of the second kind S(n + {k}, n).", f"stirling2(n + {k}, n)", 0, 1) for k in range(2, 9)
    ] + [
        named(f"Number of permutations of n objects with exactly {k} cycles.", f"stirling1(n, {k})", 0, k, 1) for k in range(2, 7)
    ] + [
        named(f"Number of permutations of n + {k} objects with exactly n cycles.", f"stirling1(n + {k}, n)", 0, 1) for k in range(2, 7)
    ] + [
        named(f"Number of permutations of n objects with n - {k} cycles.", f"stirling1(n, n - {k})", k + 1, 1, k) for k in range(2, 6)
    ] + [
        named(f"Number of maps from n objects onto {k} objects.", f"factorial({k})*stirling2(n, {k})", 0, 1, k) for k in range(2, 8)
    ])
    yield Group("combinatorial", 5, 14, "set and permutation counts", [
        named("Bell numbers: ways to split a set of n elements into nonempty blocks.", "sum(stirling2(n, k) for k in range(n + 1))"),
        named("Ordered Bell numbers: weak orders on n objects.", "sum(factorial(k)*stirling2(n, k) for k in range(n + 1))"),
        named("Derangements: permutations of n objects that move each one.", "sum((-1)**k*perm(n, n - k) for k in range(n + 1))"),
        named("Involutions: permutations of n objects that are their own inverse.", "sum(factorial(n)//(factorial(k)*factorial(n - 2*k)*2**k) for k in range(n//2 + 1))"),
        named("Motzkin numbers.", "sum(comb(n, 2*k)*comb(2*k, k)//(k + 1) for k in range(n//2 + 1))"),
        named("Large Schroeder numbers.", "sum(comb(n + k, 2*k)*comb(2*k, k)//(k + 1) for k in range(n + 1))"),
        named("Coefficient of x^n in (1 + x + x^2)^n.", "convolve_power((1, 1, 1), n, n)"),
        named("Coefficient of x^(2*n) in (1 + x + x^2 + x^3 + x^4)^n.", "convolve_power((1, 1, 1, 1, 1), n, 2*n)"),
        named("a(n) = n-th Bell number minus 1.", "sum(stirling2(n, k) for k in range(n + 1)) - 1"),
        named("Permutations of n objects with exactly one fixed point.", "n*sum((-1)**k*perm(n - 1, n - 1 - k) for k in range(n))", 1, 0),
        named("Necklaces of n beads in 2 colors.", "sum(phi(d)*2**(n//d) for d in divisors(n))//n", 1),
        named("Necklaces of n beads in 3 colors.", "sum(phi(d)*3**(n//d) for d in divisors(n))//n", 1),
        named("Necklaces of n beads in 4 colors.", "sum(phi(d)*4**(n//d) for d in divisors(n))//n", 1),
        named("Number of ordered ways to write n as a sum of an odd number of positive integers.", "2**(n - 2) if n > 1 else n", 0, 1),
        named("Partial sums of the Bell numbers.", "sum(stirling2(m, k) for m in range(n + 1) for k in range(m + 1))"),
        named("Partial sums of the Catalan numbers.", "sum(comb(2*k, k)//(k + 1) for k in range(n + 1))"),
        named("Ways to put n different objects into lists, in no order among the lists.", "sum(comb(n, k)*perm(n - 1, n - k) for k in range(1, n + 1)) if n else 1"),
        named("Number of arrangements of any number of n different objects.", "sum(perm(n, k) for k in range(n + 1))"),
        named("Labeled trees on n points: n^(n - 2).", "n**(n - 2) if n > 1 else 1"),
        named("Rooted labeled trees on n points: n^(n - 1).", "n**(n - 1) if n else 0"),
        named("Labeled rooted forests on n points: (n + 1)^(n - 1).", "(n + 1)**(n - 1) if n else 1"),
        named("Idempotent maps of n objects into themselves.", "sum(comb(n, k)*k**(n - k) for k in range(n + 1))"),
        named("Regions into which n straight lines cut the plane at most.", "n*(n + 1)//2 + 1"),
        named("Parts into which n planes cut space at most.", "comb(n + 1, 3) + n + 1"),
        named("Number of ways of writing n as an ordered sum of 1's, 2's and 3's.", "series((1,), (1, -1, -1, -1), n)"),
        named("Number of ways of writing n as an ordered sum of 1's and 3's.", "series((1,), (1, -1, 0, -1), n)"),
        named("Number of ways of writing n as an ordered sum of 2's and 3's.", "series((1,), (1, 0, -1, -1), n)"),
        named("Number of ways of writing n as an ordered sum of odd numbers.", "fibonacci(n) if n else 1"),
        named("Number of subsets of 1..n without two neighbors.", "fibonacci(n + 2)"),
        named("Subsets of 1..n without three consecutive numbers.", "linear_recurrence((1, 1, 1), (1, 2, 4), n)"),
        named("Bracelets: turn-over necklaces of n beads in 2 colors.", "(sum(phi(d)*2**(n//d) for d in divisors(n))//n + (2**((n + 1)//2) if n % 2 else 3*2**(n//2 - 1)))//2", 1),
        named("Bracelets: turn-over necklaces of n beads in 3 colors.", "(sum(phi(d)*3**(n//d) for d in divisors(n))//n + (3**((n + 1)//2) if n % 2 else 2*3**(n//2)))//2", 1),
        named("Palindromes of length n over 2 letters.", "2**((n + 1)//2)"), named("Strings of n letters over 2 letters up to reversal.", "(2**n + 2**((n + 1)//2))//2"), named("Strings of n letters over 3 letters up to reversal.", "(3**n + 3**((n + 1)//2))//2"),
    ])
    yield Group("combinatorial", 4, 6, "sums of squares and lattices", [
        named(f"Number of integer solutions of {' + '.join(f'x_{i + 1}^2' for i in range(k))} = n.", f"convolve_power([1, *[2*is_square(j) for j in range(1, n + 1)]], {k}, n)", 0) for k in range(1, 7)
    ] + [
        named(f"Number of integer points with |x_1| + ... + |x_{k}| = n.", f"series({binomial_row(k)[0]}, {binomial_row(k)[1]}, n)", 0) for k in range(2, 10)
    ] + [
        named(f"Number of integer points with |x_1| + ... + |x_{k}| <= n.", f"series({binomial_row(k)[0]}, {binomial_row(k + 1)[1]}, n)", 0) for k in range(3, 10)
    ])
    yield Group("combinatorial", 4, 6, "coefficients of (1 + x + ... )^n", [
        named(f"Coefficient of x^{k} in (1 + x + x^2)^n.", f"convolve_power((1, 1, 1), n, {k})", 0, 1, 2, 3, 4, 5) for k in range(2, 12)
    ] + [
        named(f"Coefficient of x^{k} in (1 + x + x^2 + x^3)^n.", f"convolve_power((1, 1, 1, 1), n, {k})", 0, 1, 2, 3, 4) for k in range(2, 12)
    ])


def binomial_row(k: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Coefficients of (1+x)^k and of (1-x)^k."""
    row = tuple(comb(k, j) for j in range(k + 1))
    return row, tuple((-1) ** j * c for j, c in enumerate(row))
