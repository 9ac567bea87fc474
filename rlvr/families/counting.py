"""Families of made-up sequences that count: binomials, factorials, sums, partitions, necklaces, number triangles.

A family is a function `rng -> Draft`; the table with their weights is in rlvr/synthetic.py. Not meant to be run.
"""

from __future__ import annotations

import math
import re

from rlvr.families.drafts import Draft, Random, closed, divisor_of, joined, linear_text, program, python


def binomial(rng: Random) -> Draft:
    k, m, j, d = rng.randint(2, 12), rng.randint(1, 6), rng.randint(1, 10), rng.randint(1, 9)
    word = rng.choice(["binomial", "binomial", "C"])
    pick = rng.random()
    if pick < 0.2:  # column of Pascal's triangle
        name = rng.choice([
            f"a(n) = {word}(n,{k}).", f"a(n) = binomial coefficient C(n,{k}).", f"Binomial coefficient C(n,{k}).",
            f"Binomial coefficients C(n,{k}).", f"a(n) = {word}(n, {k}).",
        ])  # fmt: skip
        return Draft(name, rng.choice([k, k, k, 0]), program(f"return math.comb(n,{k})"))
    if pick < 0.4:  # C(m*n, n-j)
        j = rng.choice([0, j, j])
        low = f"n-{j}" if j else "n"
        star = rng.choice(["", "*"])
        name = rng.choice([
            f"Binomial coefficient C({m + 1}{star}n,{low}).",
            f"a(n) = binomial coefficient C({m + 1}{star}n, {low}).", f"a(n) = binomial({m + 1}*n, {low}).",
        ])  # fmt: skip
        return Draft(name, j, program(f"return math.comb({m + 1}*n,{low})"))
    if pick < 0.55:  # C(m*n+d, k)
        top = joined([(m, "n"), (rng.choice([d, d, -d, 0]), "")])
        name = rng.choice([
            f"Binomial coefficients C({top},{k}).", f"a(n) = {word}({top}, {k}).", f"a(n) = binomial({top},{k}).",
        ])  # fmt: skip
        return Draft(name, rng.choice([0, 0, k]), program(f"return math.comb({python(top)},{k})"))
    if pick < 0.7:  # (a*n + b)*C(n+k, k)/b
        b = rng.randint(1, k)
        text = f"({joined([(rng.randint(1, 12), 'n'), (b, '')])})*binomial(n+{k},{k})"
        dd = divisor_of(rng, text, [b])
        text += f"/{dd}" if dd > 1 else ""
    else:
        text = rng.choice([
            f"binomial(n+{k},{k})", f"binomial(n+{k},{j}) - {d}", f"binomial(n+{k},{j})*{d + 1}",
            f"{k}*(n+1)*binomial(n+{j + 1},{j})", f"(n+1)*binomial(n+{k},{k})", f"2^n*binomial(n,{k})",
            f"{k}^n*binomial(n+{j},{j})", f"n*binomial(n,{k})", "binomial(2*n,n)", f"{d}*binomial(2*n,n)",
            "binomial(2*n,n)/(n+1)", f"binomial({m + 1}*n,n)/({joined([(m, 'n'), (1, '')])})", f"binomial(2*n+{d},n)",
            f"binomial(n,{k}) + binomial(n,{j})", f"binomial(n+{k},{j}) - n", "binomial(2*n+1,n+1)",
            f"binomial(n+{k},{k})*binomial(n+{j},{j})", f"binomial(n+{k},{k})^2", f"(2*n+{d})*binomial(2*n,n)",
            f"{d}^n*binomial(2*n,n)", f"binomial(2*n,n)^{m + 1}", f"binomial({m + 1}*n+{d},n)", "binomial(n^2,n)",
            f"binomial(n^{m + 1},{k})", f"2^(n-{k})*binomial(n,{k})", f"binomial(2*n,n) {rng.choice('+-')} {d}",
            f"n*binomial({m + 1}*n,n)", "(n+1)*binomial(2*n,n)", f"binomial(binomial(n,2),{k})",
            f"binomial(n*(n+1)/2,{k})",
        ])  # fmt: skip
    if word == "C":
        name_text = text.replace("binomial", "C")
        return Draft(f"a(n) = {name_text}.", k if "-" in text else 0, program("return " + python(text)))
    return closed(rng, text, k if f"(n-{k})" in text else rng.choice([0, 0, 1]))


def factorial(rng: Random) -> Draft:
    k, c = rng.randint(2, 12), rng.randint(1, 12)
    text = rng.choice([
        f"{k}*n!", f"n! + {c}", f"n! - {c}", "n! + n", "n! - n", f"(n+{c})!", f"n!/{math.factorial(c % 5 + 1)}",
        f"(n+{c})!/{c}!", "n*n!", f"({linear_text(rng)})*n!", f"{k}^n*n!", f"n!*{k}^n", "(2*n)!/n!", "n!^2",
        f"n!^{k}", f"(n!)^{k}", "(2*n)!", f"({k}*n)!", "(2*n)!/2^n", f"n!*binomial(n,{k})", "(2*n+1)!",
        f"(n+{c})!/n!", "n!*(n+1)!", "(n+1)! - n!", "(n+1)! + n!", f"n! + {k}^n", f"n^{k}*n!", f"(n!)^2*{k}",
        f"(n+{c})!*n", f"(n+{c})!*{k}", f"n! - {k}^n", f"({k}*n)!/n!", f"({k}*n)!/(n!)^{k}", f"{c}!*n",
        f"{k}*n! + {c}",
    ])  # fmt: skip
    py = re.sub(r"\((n!)\)", r"\1", text)
    py = re.sub(r"\b(\d+)!", r"math.factorial(\1)", py)
    return closed(rng, text, rng.choice([0, 0, 1]) if "/" not in text else c, python(py))


def multifactorial(rng: Random) -> Draft:
    """Products of an arithmetic progression and products over k."""
    a, b, k = rng.randint(2, 9), rng.randint(1, 9), rng.randint(1, 4)
    factor, py = rng.choice([
        (f"({a}*k + {b})", f"({a}*k+{b})"), (f"({a}*k - 1)", f"({a}*k-1)"),
        (f"(k^{k + 1} + {b})", f"(k**{k + 1}+{b})"), (f"({a}^k - 1)", f"({a}**k-1)"),
        (f"({a}^k + {b})", f"({a}**k+{b})"), ("k!", "math.factorial(k)"), (f"k^{k + 1}", f"k**{k + 1}"),
        ("k^k", "k**k"), (f"(n + {a}*k)", f"(n+{a}*k)"), (f"(k + {b})", f"(k+{b})"),
    ])  # fmt: skip
    low, high, stop = rng.choice([(0, "n-1", "n"), (1, "n", "n+1"), (0, "n", "n+1")])
    return Draft(
        f"a(n) = Product_{{k={low}..{high}}} {factor}.", 0,
        program(f"return math.prod({py} for k in range({low},{stop}))".replace("range(0,", "range(")),
    )  # fmt: skip


SUMMANDS = [
    ("{v}", "k"), ("{v}^{c}", "k**{c}"), ("{c}^{v}", "{c}**k"), ("{v}!", "math.factorial(k)"),
    ("binomial(n,{v})^{c}", "math.comb(n,k)**{c}"), ("floor(n/{v})", "n//k"), ("(n mod {v})", "n%k"),
    ("gcd(n,{v})", "math.gcd(n,k)"), ("lcm(n,{v})", "math.lcm(n,k)"), ("{v}*(n-{v})", "k*(n-k)"), ("{v}^n", "k**n"),
    ("{v}^{v}", "k**k"), ("{v}*{v}!", "k*math.factorial(k)"), ("floor({v}/{c})", "k//{c}"),
    ("{v}*(n-{v}+1)", "k*(n-k+1)"), ("{c}^{v}*binomial(n,{v})", "{c}**k*math.comb(n,k)"),
    ("floor(n^2/{v})", "n**2//k"), ("{v}^{c}*(n-{v})", "k**{c}*(n-k)"), ("{v}*floor(n/{v})", "k*(n//k)"),
    ("floor(sqrt({v}))", "math.isqrt(k)"), ("binomial(2*{v},{v})", "math.comb(2*k,k)"), ("{v}^(n-{v})", "k**(n-k)"),
    ("(n-{v})^{v}", "(n-k)**k"), ("{c}^{v}*{v}", "{c}**k*k"), ("{v}*binomial(n,{v})", "k*math.comb(n,k)"),
    ("n^{v}", "n**k"), ("(n-{v})!*{v}!", "math.factorial(n-k)*math.factorial(k)"), ("{v}*n^(n-{v})", "k*n**(n-k)"),
    ("({v} mod {c})", "k%{c}"), ("n!/{v}!", "math.factorial(n)//math.factorial(k)"),
    ("binomial(n,{v})*{v}!", "math.comb(n,k)*math.factorial(k)"),
    ("binomial(n,{v})*binomial({c}*{v},{v})", "math.comb(n,k)*math.comb({c}*k,k)"),
    ("{v}^{c}*{c}^{v}", "k**{c}*{c}**k"), ("binomial(n-{v},{v})", "math.comb(n-k,k)"), ("({v} XOR n)", "(k^n)"),
    ("({v} AND n)", "(k&n)"), ("bitcount({v})", "bin(k).count('1')"),
]  # fmt: skip


def summation(rng: Random) -> Draft:
    text, py = rng.choice(SUMMANDS)
    v, c = rng.choice("kkkij"), rng.choice([2, 2, 3, rng.randint(2, 9)])
    text, py = text.format(v=v, c=c), py.format(c=c)
    low = 1 if any(mark in py for mark in ("//k", "%k", "gcd", "lcm")) else rng.choice([0, 1, 1])
    high, stop = rng.choice([("n", "n+1"), ("n", "n+1"), ("n-1", "n")])
    name = rng.choice([
        "a(n) = Sum_{%s=%d..%s} %s.", "a(n) = Sum_{%s=%d..%s} %s.", "Sum_{%s=%d..%s} %s.",
    ]) % (v, low, high, text)  # fmt: skip
    start = f"{low}," if low else ""
    return Draft(
        name, 0 if low == 0 else rng.choice([0, 1]), program(f"return sum({py} for k in range({start}{stop}))"),
    )  # fmt: skip


def partitions(rng: Random) -> Draft:
    k, m = rng.randint(2, 12), rng.randint(2, 9)
    parts, name = rng.choice([
        (f"range(1,{k + 1})", f"Number of partitions of n into at most {k} parts."),
        (f"range(1,{k + 1})", f"Number of partitions of n into parts not exceeding {k}."),
        (f"range(1,{k + 1})", f"Number of partitions of n into parts <= {k}."),
        ("range(1,n+1)", "a(n) is the number of partitions of n."),
        ("range(1,n+1)", "Number of partitions of n (the partition numbers)."),
        ("range(1,n+1,2)", "Number of partitions of n into odd parts."),
        ("range(2,n+1,2)", "Number of partitions of n into even parts."),
        (f"range({k},n+1)", f"Number of partitions of n into parts >= {k}."),
        (f"range(1,n+1,{m})", f"Number of partitions of n into parts congruent to 1 mod {m}."),
        ("[i*i for i in range(1,n+1)]", "Number of partitions of n into squares."),
        ("[i**3 for i in range(1,n+1)]", "Number of partitions of n into cubes."),
        (f"[{m}**i for i in range(n+1)]", f"Number of partitions of n into powers of {m}."),
        ("[i*(i+1)//2 for i in range(1,n+1)]", "Number of partitions of n into triangular numbers."),
        (f"[i for i in range(1,n+1) if i%{m}]", f"Number of partitions of n into parts not divisible by {m}."),
        (f"[i for i in range(1,n+1) if i%{m}]", f"Number of partitions of n into parts not multiples of {m}."),
    ])  # fmt: skip
    loop = f"c=[1]+[0]*n\nfor k in {parts}:\n    for i in range(k,n+1): c[i]+=c[i-k]\nreturn c[n]"
    pick = rng.random()
    if pick < 0.15:
        return Draft(
            rng.choice([
                f"Number of partitions of n in which the greatest part is {k}.",
                f"Number of partitions of n into exactly {k} parts.",
            ]),
            0,
            program(
                f"c=[1]+[0]*n\nfor k in range(1,{k + 1}):\n    for i in range(k,n+1): c[i]+=c[i-k]\n"
                f"return c[n-{k}] if n>={k} else 0"
            ),
        )  # fmt: skip
    if pick < 0.3:
        parts, name = rng.choice([
            ("range(1,n+1)", "Number of partitions of n into distinct parts."),
            ("range(1,n+1,2)", "Number of partitions of n into distinct odd parts."),
            ("[i*i for i in range(1,n+1)]", "Number of partitions of n into distinct squares."),
            (f"range({k},n+1)", f"Number of partitions of n into distinct parts >= {k}."),
            (
                f"[i for i in range(1,n+1) if i%{m}]",
                f"Number of partitions of n into distinct parts not divisible by {m}.",
            ),
        ])  # fmt: skip
        return Draft(
            name, 0,
            program(f"c=[1]+[0]*n\nfor k in {parts}:\n    for i in range(n,k-1,-1): c[i]+=c[i-k]\nreturn c[n]"),
        )  # fmt: skip
    if pick < 0.4:
        coins = sorted(rng.sample([1, 2, 5, 10, 20, 25, 50, 100], rng.randint(2, 5)))
        return Draft(
            rng.choice([
                f"Number of ways of making change for n cents using coins of {', '.join(map(str, coins))} cents.",
                f"Number of ways to pay n with coins {', '.join(map(str, coins))}.",
            ]),
            0, program(loop.replace(parts, f"({','.join(map(str, coins))})")),
        )  # fmt: skip
    if pick < 0.5:
        return Draft(
            rng.choice([
                f"Expansion of Product_{{m>=1}} 1/(1-x^m)^{k}.",
                f"Number of partitions of n into parts of {k} kinds.", f"Number of {k}-colored partitions of n.",
            ]),
            0,
            program(
                f"c=[1]+[0]*n\nfor k in range(1,n+1):\n    for _ in range({k}):\n"
                "        for i in range(k,n+1): c[i]+=c[i-k]\nreturn c[n]"
            ),
        )  # fmt: skip
    if pick < 0.6:
        low = rng.randint(1, 3)
        return rng.choice([
            Draft(
                f"Number of compositions of n into parts {low} and {low + k}.", 0,
                program(f"c=[1]+[0]*(n+30)\nfor i in range(1,n+1): c[i]=c[i-{low}]+c[i-{low + k}]\nreturn c[n]"),
            ),
            Draft(
                rng.choice([
                    f"Number of compositions of n into parts <= {k}.",
                    f"Number of compositions of n with parts in 1..{k}.",
                ]),
                0,
                program(
                    f"c=[1]+[0]*(n+30)\nfor i in range(1,n+1): c[i]=sum(c[i-k] for k in range(1,{k + 1}))\nreturn c[n]"
                ),
            ),
        ])  # fmt: skip
    return Draft(name, 0, program(loop))


def sums_of_squares(rng: Random) -> Draft:
    k = rng.randint(2, 12)
    name = rng.choice([
        f"Number of ways of writing n as a sum of {k} squares.", f"Theta series of {k}-dimensional cubic lattice.",
        f"Theta series of Z^{k}.", f"Number of ways of writing n as a sum of {k} squares.",
    ])  # fmt: skip
    body = (
        f"c=[1]+[0]*n\nfor _ in range({k}): "
        "c=[c[i]+2*sum(c[i-j*j] for j in range(1,math.isqrt(i)+1)) for i in range(n+1)]\nreturn c[n]"
    )
    if rng.random() < 0.2:
        name = f"Number of ways of writing n as a sum of {k} triangular numbers."
        body = (
            f"c=[1]+[0]*n\nfor _ in range({k}): "
            "c=[sum(c[i-j*(j+1)//2] for j in range(i+1) if j*(j+1)//2<=i) for i in range(n+1)]\nreturn c[n]"
        )
    return Draft(name, 0, program(body))


def necklaces(rng: Random) -> Draft:
    k = rng.randint(2, 12)
    if rng.random() < 0.5:
        name = rng.choice([
            f"Number of n-bead necklaces with {k} colors.", f"Number of necklaces of n beads of {k} colors.",
            f"a(n) = (1/n)*Sum_{{d|n}} phi(d)*{k}^(n/d).",
        ])  # fmt: skip
        return Draft(name, 1, program(f"return sum({k}**math.gcd(n,i) for i in range(1,n+1))//n"))
    name = rng.choice([
        f"Number of Lyndon words of length n on {k} letters.",
        f"Number of primitive necklaces of n beads of {k} colors.", f"a(n) = (1/n)*Sum_{{d|n}} mu(n/d)*{k}^d.",
        f"Number of monic irreducible polynomials of degree n over GF({k}).",
    ])  # fmt: skip
    return Draft(name, 1, f"def f(n): return {k}**n-sum(f(d) for d in range(1,n) if n%d==0)\ndef a(n): return f(n)//n")


def triangles(rng: Random) -> Draft:
    """Columns and diagonals of the Stirling, Eulerian, Gaussian and Lah triangles."""
    k, q = rng.randint(2, 7), rng.randint(2, 9)
    second = f"return sum((-1)**({k}-i)*math.comb({k},i)*i**{{n}} for i in range({k + 1}))//{math.factorial(k)}"
    pick = rng.random()
    if pick < 0.4:
        shift = rng.choice([0, 0, 1])
        index = f"n+{k}" if shift else "n"
        name = rng.choice([
            f"Stirling numbers of the second kind, S({index},{k}).", f"a(n) = Stirling2({index},{k}).",
            f"Stirling numbers of second kind S({index},{k}).",
            f"a(n) = S2({index},{k})." if shift else f"Number of partitions of an n-set into {k} nonempty subsets.",
        ])  # fmt: skip
        return Draft(name, 0 if shift else k, program(second.format(n=f"({index})" if shift else "n")))
    if pick < 0.6:
        diagonal = (
            f"c=[1]+[0]*{k}\nfor m in range(1,n+{k}):\n    for i in range({k},0,-1): c[i]+=m*c[i-1]\nreturn c[{k}]"
        )
        column = (
            f"c=[1]+[0]*{k}\nfor m in range(n):\n    c=[(c[i-1] if i else 0)+m*c[i] for i in range({k + 1})]\n"
            f"return c[{k}]"
        )
        if rng.random() < 0.5:
            return Draft(
                rng.choice([f"Unsigned Stirling numbers of first kind s(n+{k},n).", f"a(n) = |Stirling1(n+{k},n)|."]),
                0, program(diagonal),
            )  # fmt: skip
        return Draft(
            rng.choice([
                f"Unsigned Stirling numbers of first kind s(n,{k}).", f"a(n) = |Stirling1(n,{k})|.",
                f"Number of permutations of n elements with {k} cycles.",
            ]),
            k, program(column),
        )  # fmt: skip
    if pick < 0.8:
        name = rng.choice([
            f"Gaussian binomial coefficients [ n,{k} ] for q = {q}.",
            f"Gaussian binomial coefficient [ n,{k} ] for q = {q}.",
        ])  # fmt: skip
        return Draft(name, k, program(f"x=1\nfor i in range({k}): x=x*({q}**(n-i)-1)//({q}**(i+1)-1)\nreturn x"))
    if pick < 0.9:
        name = rng.choice([f"Eulerian numbers, column {k}.", f"Eulerian numbers A(n,{k})."])
        return Draft(name, k, program(f"return sum((-1)**i*math.comb(n+1,i)*({k}-i)**n for i in range({k + 1}))"))
    rng.randint(2, 5)
    name = rng.choice([f"Coefficient of x^{k} in (1+x+x^2)^n.", f"a(n) = coefficient of x^{k} in (1+x+x^2)^n."])
    return Draft(
        name, 0,
        program(
            f"c=[1]+[0]*{k + 2}\nfor _ in range(n): c=[c[i]+c[i-1]+c[i-2] for i in range({k + 1})]+[0,0]\n"
            f"return c[{k}]"
        ),
    )  # fmt: skip


def repeated(rng: Random) -> Draft:
    """Self-repeating lists: n appears n times, squares repeated."""
    k, m = rng.randint(2, 9), rng.randint(2, 6)
    inner, py = rng.choice([
        ("Nonnegative integers", "{x}"), ("Nonnegative integers", "{x}"), ("Squares", "({x})**2"),
        ("Triangular numbers", "{x}*({x}+1)//2"), ("Even numbers", "2*({x})"), ("Odd numbers", "2*({x})+1"),
        ("Powers of 2", "2**({x})"), ("Integers", "{x}"),
    ])  # fmt: skip
    word = {2: "twice", 3: "three times"}.get(k, f"{k} times")
    return rng.choice([
        Draft(
            rng.choice([
                f"{inner} repeated {k} times.", f"{inner} repeated {word}.", f"{inner}, each repeated {k} times.",
            ]),
            0, program("return " + py.format(x=f"n//{k}").replace(f"(n//{k})+1", f"n//{k}+1")),
        ),
        Draft(
            rng.choice(["n appears n times.", "k appears k times.", "a(n) = k appears k times."]), 1,
            program("return (1+math.isqrt(8*n-7))//2"),
        ),
        Draft(f"n appears {m}*n times.", 1, program(f"k=1\nwhile n>{m}*k: n,k=n-{m}*k,k+1\nreturn k")),
        Draft(f"n appears n+{m} times.", 1, program(f"k=1\nwhile n>k+{m}: n,k=n-k-{m},k+1\nreturn k")),
        Draft("n appears 2n+1 times.", 0, program("return math.isqrt(n)")),
        Draft(
            rng.choice([
                f"Number of edges in {k}-partite Turan graph of order n.",
                f"Number of edges of the Turan graph T(n,{k}).",
            ]),
            0, program(f"q,r=divmod(n,{k})\nreturn (n*n-({k}-r)*q*q-r*(q+1)**2)//2"),
        ),
        Draft(
            rng.choice(["0 together with odd numbers.", "0 followed by the odd numbers."]), 0,
            program("return 2*n-1 if n else 0"),
        ),
        Draft(f"{k} followed by the multiples of {m}.", 0, program(f"return {m}*n if n else {k}")),
        Draft(f"a(0) = {k}, a(n) = {m} for n > 0.", 0, program(f"return {m} if n else {k}")),
        Draft(
            rng.choice([
                "Number of 1's in the first n binary numbers.",
                "Total number of 1's in binary expansions of 0, ..., n.",
            ]),
            0, program("return sum(bin(k).count('1') for k in range(n+1))"),
        ),
        Draft(f"Expansion of (1-x)/(1-{k}*x).", 0, program(f"return {k - 1}*{k}**(n-1) if n else 1")),
        Draft(f"Characteristic function of multiples of {k}.", 0, program(f"return int(n%{k}==0)")),
    ])  # fmt: skip
