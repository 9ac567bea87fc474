"""Families of made-up sequences with a closed form: polynomials, powers, floors, Beatty sequences, residues, periods.

A family is a function `rng -> Draft`; the table with their weights is in rlvr/synthetic.py. Not meant to be run.
"""

from __future__ import annotations

from rlvr.families.drafts import (
    Draft,
    Random,
    bracket,
    closed,
    divisor_of,
    joined,
    linear_text,
    polynomial_text,
    program,
    python,
    signed,
    small,
)


def power_of_linear(rng: Random) -> Draft:
    p = rng.choice([1, rng.randint(2, 12), rng.randint(2, 12), rng.randint(2, 30)])
    q = rng.choice([rng.randint(0, p), rng.randint(0, p), rng.randint(0, 12)])
    k = rng.choice([2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12])
    if q == 0 and p == 1:
        return closed(rng, f"n^{k}", 0)
    return closed(
        rng, f"({joined([(p, 'n'), (q if rng.random() < 0.93 else -q, '')])})^{k}", rng.choice([0, 0, 0, 0, 1]),
    )  # fmt: skip


def linear(rng: Random) -> Draft:
    p, q = rng.choice([1, rng.randint(2, 12), small(rng)]), rng.choice([0, 1, -1, rng.randint(0, 12), small(rng)])
    if rng.random() < 0.1:
        r = rng.randint(2, 12)
        return closed(rng, f"{r}*({joined([(p, 'n'), (q or 1, '')])})")
    draft = closed(rng, joined([(q, ""), (p, "n")]) if rng.random() < 0.1 and q > 0 else joined([(p, "n"), (q, "")]))
    if q >= 0 and p > 1 and rng.random() < 0.25:
        body = program("return " + python(joined([(p, "n"), (q, "")])))
        form = rng.choice(["%s*k + %s", "%s*n + %s", "%s*m + %s"]) % (p, q)
        name = rng.choice([f"Numbers of the form {form}.", f"Numbers of form {form}."])
        if q == 0:
            name = rng.choice([
                f"Multiples of {p}.", f"Multiples of {p}: a(n) = {p}*n.", f"{p} times the nonnegative integers.",
            ])  # fmt: skip
        return Draft(name, 0, body)
    return draft


def polynomial(rng: Random) -> Draft:
    return closed(rng, polynomial_text(rng, rng.choice([2, 2, 2, 2, 3, 3, 4, 5, 6])))


def quadratic(rng: Random) -> Draft:
    b = rng.choice([0, 0, rng.randint(-9, 9), small(rng)])
    c = rng.choice([0, 0, 1, 1, -1, rng.randint(-9, 20)])
    return closed(rng, joined([(rng.choice([1, 1, 2, 3, rng.randint(1, 12)]), "n^2"), (b, "n"), (c, "")]))


def sparse_polynomial(rng: Random) -> Draft:
    """n^12 - n^6 + 1 and the like."""
    top = rng.randint(3, 14)
    powers = sorted({top, *rng.choices(range(1, top), k=rng.randint(1, 3))}, reverse=True)
    signs = rng.choice([[1], [1, -1]])
    pairs = [(signs[i % len(signs)], f"n^{d}" if d > 1 else "n") for i, d in enumerate(powers)]
    return closed(rng, joined([*pairs, (rng.choice([0, 1, 1, -1]), "")]))


def product(rng: Random) -> Draft:
    """n*(n + 1)*(2*n + 1)/6 and the like; the division is exact."""
    kind = rng.random()
    if kind < 0.35:  # n*(a*n + b)/2
        a = rng.choice([1, 1, rng.randint(1, 12), small(rng)])
        text = f"n*({joined([(a, 'n'), (rng.choice([1, -1, 1]) * small(rng), '')])})"
    elif kind < 0.55:
        factors = [bracket(linear_text(rng)) for _ in range(rng.choice([2, 2, 3]))]
        text = "*".join(sorted(factors, key=len))
    elif kind < 0.75:  # consecutive factors
        start, sign, count = rng.choice([0, 0, 1, 1, 2]), rng.choice([1, 1, -1]), rng.choice([2, 3, 3, 4, 5])
        step = rng.choice([1, 1, 1, 2, 3])
        text = "*".join(bracket(joined([(1, "n"), (sign * (start + i * step), "")])) for i in range(count))
        if rng.random() < 0.3:
            text += f"*({joined([(rng.randint(1, 6), 'n'), (rng.choice([-1, 1]) * rng.randint(1, 9), '')])})"
    else:
        text = rng.choice(["n", "n^2", "n^3"]) + f"*({polynomial_text(rng, rng.choice([2, 2, 3]))})"
    d = divisor_of(rng, text, [1, 2, 2, 2, 3, 4, 6, 6, 8, 12, 24, 30, 60, 120])
    if d == 1 and rng.random() < 0.25:
        text = f"{rng.choice([2, 3, 4, rng.randint(2, 30)])}*{text}"
    return closed(rng, text + (f"/{d}" if d > 1 else ""))


def polynomial_over(rng: Random) -> Draft:
    """(n^2 + 3*n + 4)/2: one parenthesis, divided exactly."""
    degree = rng.choice([2, 2, 3, 3, 4])
    for _ in range(40):
        text = f"({polynomial_text(rng, degree)})"
        d = divisor_of(rng, text, [2, 2, 3, 4, 6, 24])
        if d > 1:
            return closed(rng, f"{text}/{d}")
    return closed(rng, "(n^2 + n + 2)/2")


def power(rng: Random) -> Draft:
    b = rng.choice([2, 2, 3, rng.randint(2, 12), rng.randint(2, 30)])
    if rng.random() < 0.3:
        name = rng.choice([
            f"Powers of {b}.", f"Powers of {b}: a(n) = {b}^n.", f"a(n) = {b}^n.", f"{b} to the n-th power.",
        ])  # fmt: skip
        return Draft(name, 0, program(f"return {b}**n"))
    c = rng.choice([1, 1, 2, -1, -2, small(rng), -small(rng)])
    k = rng.choice([2, 3, rng.randint(2, 12)])
    d = rng.randint(1, 12)
    exponent = rng.choice([
        "n", "n", f"(n+{rng.randint(1, 5)})", f"(n-{rng.randint(1, 5)})", f"({k}*n)", f"({k}*n+{rng.randint(1, 5)})",
    ])  # fmt: skip
    text = rng.choice([
        f"{b}^n{signed(c)}", f"{b}^n{signed(c)}", f"{b}^n{rng.choice([' + n', ' - n'])}", f"{k}*{b}^n", f"{k}*{b}^n",
        f"{k}*{b}^n{signed(c)}", f"{b}^{exponent}", f"{k}*{b}^{exponent}", f"{b}^n {rng.choice('+-')} {d}^n",
        f"{b}^n {rng.choice('+-')} {k}*{d}^n{signed(c)}", f"{b}^n - n^{k}", f"{b}^n - n^{k}", f"{b}^n + n^{k}",
        f"n^{k} - {b}^n", f"n*{b}^n", f"n*{b}^n{signed(c)}", f"n*{b}^(n-1)", f"n^{k}*{b}^n", f"{b}^n*n^{k}",
        f"({linear_text(rng)})*{b}^n", f"({linear_text(rng)})*{b}^(n-1){signed(c)}", f"{b}^n + {d}^n + {k}^n",
        f"{b}^n - {k}*n{signed(c)}", f"{b}^n + {k}*n{signed(c)}", f"{k}*({b}^n - 1)", f"{b}^n*({d}^n + 1)",
        f"{k}*({b}^n - {d}^n)", f"n^n{signed(c)}", f"n^n {rng.choice('+-')} n", f"(n+{d})^n", f"n^(n+{d})",
        f"{b}^n {rng.choice('+-')} (-1)^n", f"(n + {d})*{b}^n",
    ])  # fmt: skip
    return closed(rng, text)


def power_over(rng: Random) -> Draft:
    """(7^n - 1)/6, 5*(3^n - 1)/2, (3^n + 1)/2."""
    b = rng.randint(2, 20)
    text = rng.choice([
        f"({b}^n - 1)", f"({b}^n - 1)", f"{rng.randint(2, 12)}*({b}^n - 1)", f"({b}^n + {b - 2})",
        f"({b}^n + {rng.randint(1, 9)})", f"({rng.randint(2, 9)}*{b}^n {rng.choice('+-')} {rng.randint(1, 9)})",
        f"({b}^n + {b + 2 * rng.randint(1, 4)}^n)", f"{b}^n*({b}^n {rng.choice('+-')} 1)", f"({b}^(2*n) - 1)",
        f"({b}^n - {rng.randint(1, b)}^n)", f"({b}^(2*n+1) + 1)", f"({b}^n - (-1)^n)",
        f"(n*{b}^n {rng.choice('+-')} n)",
    ])  # fmt: skip
    d = divisor_of(rng, text, [b - 1, b - 1, b + 1, 2, 3, 4]) if b > 2 else divisor_of(rng, text, [2, 3])
    return closed(rng, f"{text}/{d}" if d > 1 else text)


ORDINALS = [
    "zeroth", "first", "Squares", "Cubes", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth", "Tenth",
    "Eleventh", "Twelfth",
]  # fmt: skip


def named_powers(rng: Random) -> Draft:
    k = rng.randint(2, 20)
    word = (ORDINALS[k] + (" powers" if k > 3 else "")) if k < len(ORDINALS) else f"{k}-th powers"
    word = rng.choice([word, f"{k}-th powers", f"{k}th powers"])
    return Draft(
        rng.choice([f"{word}: a(n) = n^{k}.", f"The {word.lower()}: a(n) = n^{k}.", f"{word}."]), 0,
        program(f"return n**{k}"),
    )  # fmt: skip


def sums_of_powers_of_n(rng: Random) -> Draft:
    """1^n + 2^n + ... + 5^n and 1^k + 2^k + ... + n^k."""
    k = rng.randint(2, 12)
    if rng.random() < 0.5:
        name = rng.choice([
            f"a(n) = 1^n + 2^n + ... + {k}^n.", f"1^n + 2^n + ... + {k}^n.", f"a(n) = Sum_{{k=1..{k}}} k^n.",
        ])  # fmt: skip
        return Draft(name, 0, program(f"return sum(k**n for k in range(1,{k + 1}))"))
    name = rng.choice([
        f"Sum of {k}th powers: 1^{k} + 2^{k} + ... + n^{k}.", f"a(n) = 1^{k} + 2^{k} + ... + n^{k}.",
        f"Sum of first n {k}-th powers.", f"a(n) = Sum_{{k=0..n}} k^{k}.",
        f"Sum of the first n {ORDINALS[k].lower() + (' powers' if k > 3 else '')}.",
    ])  # fmt: skip
    return Draft(name, 0, program(f"return sum(k**{k} for k in range(n+1))"))


def floor_quotient(rng: Random) -> Draft:
    kind = rng.random()
    c = rng.choice([rng.randint(2, 30), rng.randint(10, 200), 10 ** rng.randint(1, 6)])
    d = rng.choice([rng.randint(2, 12), rng.randint(2, 60)])
    if kind < 0.2:
        top, offset, _d_text = rng.choice([str(c), str(c), f"{rng.randint(2, 12)}^{rng.randint(2, 8)}"]), 1, "n"
        if rng.random() < 0.7:
            return closed(rng, f"floor({top}/n)", 1, f"{python(top)}//n")
        return closed(rng, f"ceiling({top}/n)", 1, f"-(-{python(top)}//n)")
    if kind < 0.45:
        top = rng.choice(["n", f"{rng.randint(2, 40)}*n", f"{rng.randint(2, 40)}*n", f"({linear_text(rng)})"])
    elif kind < 0.6:
        top = rng.choice([
            "n^2", "n^2", "n^3", f"n^{rng.randint(2, 8)}", f"{rng.randint(2, 9)}*n^2", f"(n^2+{rng.randint(1, 9)})",
        ])  # fmt: skip
    elif kind < 0.8:
        count, sign = rng.choice([2, 3, 3, 4]), rng.choice(["-", "-", "+"])
        top = "*".join(["n", *(f"(n{sign}{i})" for i in range(1, count))])
    elif kind < 0.9:
        top = rng.choice([
            f"{rng.randint(2, 12)}^n", f"{rng.randint(2, 9)}^(n+{rng.randint(1, 4)})", f"({rng.randint(2, 9)}^n + 1)",
        ])  # fmt: skip
    else:
        k = rng.randint(2, 6)
        top = f"binomial(n,{k})"
    offset = rng.choice([0, 0, 0, 1])
    if rng.random() < 0.75:
        text = rng.choice([f"floor({top}/{d})", f"floor({top}/{d})", f"floor( {top}/{d} )", f"[ {top}/{d} ]"])
        return closed(rng, text, offset, f"{python(top)}//{d}")
    if rng.random() < 0.3:
        name = rng.choice([f"Nearest integer to {top}/{d}.", f"a(n) = round({top}/{d})."])
        return Draft(name, offset, program(f"return (2*{python(top)}+{d})//{2 * d}"))
    return closed(rng, f"ceiling({top}/{d})", offset, f"-(-{python(top)}//{d})")


def floor_root(rng: Random) -> Draft:
    k, b = rng.randint(2, 30), rng.randint(2, 12)
    top = rng.choice([
        "n", "n", f"{k}*n", f"n+{k}", f"{k}*n^2", "n^3", f"n^2+{k}", f"{b}^n", f"{k}*{b}^n", "n!", "n^5", f"n*(n+{b})",
    ])  # fmt: skip
    lead = rng.choice(["", "", "", f"{b}*", "n*", "n+"])
    py = f"{python(lead) if lead else ''}math.isqrt({python(top)})"
    text = rng.choice([
        f"{lead}floor(sqrt({top}))", f"{lead}[sqrt({top})]",
        f"{lead}floor({top}^(1/2))" if len(top) == 1 else f"{lead}floor(sqrt({top}))",
    ])  # fmt: skip
    if rng.random() < 0.15 and not lead:
        return Draft(f"Integer part of square root of {top}.", rng.choice([0, 1]), program(f"return {py}"))
    return closed(rng, text, rng.choice([0, 0, 1]), py)


def floor_misc(rng: Random) -> Draft:
    p, q = sorted(rng.sample(range(2, 16), 2), reverse=True)
    k = rng.randint(2, 9)
    text, py, offset = rng.choice([
        (f"floor(({p}/{q})^n)", f"{p}**n//{q}**n", 0), (f"floor({p}^n/{q}^n)", f"{p}**n//{q}**n", 0),
        (f"floor({p}^n/n)", f"{p}**n//n", 1), (f"ceiling(({p}/{q})^n)", f"-(-{p}**n//{q}**n)", 0),
        (f"floor(n/{q})*floor((n+1)/{q})", f"n//{q}*((n+1)//{q})", 0), (f"n + floor(n/{q})", f"n+n//{q}", 0),
        (f"n + floor(n/{q}) + floor(n/{p})", f"n+n//{q}+n//{p}", 0), (f"n - floor(n/{q})", f"n-n//{q}", 0),
        (f"floor(n/{q}) + floor(n/{p})", f"n//{q}+n//{p}", 0), (f"n*floor(n/{q})", f"n*(n//{q})", 0),
        (f"floor(n/{q})^{k}", f"(n//{q})**{k}", 0), (f"floor(n^{k}/{q})", f"n**{k}//{q}", 0),
        (f"{k}^floor(n/{q})", f"{k}**(n//{q})", 0), (f"floor(n/{q})*floor(n/{p})", f"n//{q}*(n//{p})", 0),
        (f"floor(log_{k}(n))", f"k=0\nwhile {k}**(k+1)<=n: k+=1\nreturn k", 1),
        (f"floor(n^2/{k}) mod {p}", f"n*n//{k}%{p}", 0), (f"floor({k}^n/(n^2))", f"{k}**n//n**2", 1),
        (f"ceiling(n/{q}) + ceiling(n/{p})", f"-(-n//{q})-(-n//{p})", 0), (f"n*ceiling(n/{q})", f"n*-(-n//{q})", 0),
    ])  # fmt: skip
    draft = closed(rng, text, offset, py)
    return draft if "\n" not in py else Draft(draft.name, offset, program(py))


def real_constant(rng: Random) -> tuple[str, str]:
    """A real number: its spelling in names, and Python for it."""
    k, j = rng.randint(2, 30), rng.randint(2, 12)
    return rng.choice([
        (f"sqrt({k})", f"math.sqrt({k})"), (f"sqrt({k})", f"math.sqrt({k})"), ("Pi", "math.pi"), ("e", "math.e"),
        ("phi", "(1+math.sqrt(5))/2"), ("tau", "(1+math.sqrt(5))/2"), (f"log({k})", f"math.log({k})"),
        (f"{k}^(1/3)", f"{k}**(1/3)"), (f"{j}^(1/{rng.choice([3, 4, 5])})", ""), ("Pi^2", "math.pi**2"),
        ("e^2", "math.e**2"), ("1/e", "1/math.e"), ("gamma", "0.5772156649015329"),
        (f"Gamma(1/{j})", f"math.gamma(1/{j})"), (f"(1+sqrt({k}))/2", f"(1+math.sqrt({k}))/2"),
        (f"{j} + sqrt({k})", f"({j}+math.sqrt({k}))"), (f"sqrt({k})/{j}", f"math.sqrt({k})/{j}"),
        (f"({j}+sqrt({k}))/{j + 1}", f"({j}+math.sqrt({k}))/{j + 1}"),
        ("sqrt(2)+sqrt(3)", "(math.sqrt(2)+math.sqrt(3))"), (f"e^(1/{j})", f"math.e**(1/{j})"),
    ])  # fmt: skip


def beatty(rng: Random) -> Draft:
    text, py = real_constant(rng)
    if not py:  # a root: the exponent is read off the spelling
        py = text.replace("^", "**")
    pick = rng.random()
    if pick < 0.55:
        if rng.random() < 0.3:
            text, py = rng.choice([
                (f"1 + {text}", f"(1+{py})"), (f"1 + 1/{text}", f"(1+1/({py}))"), (f"1/{text}", f"(1/({py}))"),
            ])  # fmt: skip
        return Draft(
            rng.choice([
                f"Beatty sequence for {text}.", f"A Beatty sequence: a(n) = floor(n*({text})).",
                f"Beatty sequence for {text}; a(n)=floor(n*{text}).",
            ]),
            1, program(f"return int(n*{py})"),
        )  # fmt: skip
    if pick < 0.8:
        return closed(rng, f"floor(n*{bracket(text)})", rng.choice([0, 1]), f"int(n*{py})")
    if pick < 0.9:
        return closed(rng, f"floor(n/{bracket(text)})", rng.choice([0, 1]), f"int(n/({py}))")
    return rng.choice([
        lambda: closed(rng, f"ceiling(n*{bracket(text)})", rng.choice([0, 1]), f"math.ceil(n*{py})"),
        lambda: closed(rng, f"floor(n^2*{bracket(text)})", rng.choice([0, 1]), f"int(n**2*{py})"),
        lambda: Draft(
            rng.choice([f"Integer part of n*{bracket(text)}.", f"Nearest integer to n*{bracket(text)}."]), 0,
            program(f"return int(n*{py})"),
        ),
        lambda: closed(rng, "floor(n*log(n))", 1, "int(n*math.log(n))"),
    ])()  # fmt: skip


def modular(rng: Random) -> Draft:
    m, k, b = rng.choice([rng.randint(2, 20), rng.randint(2, 100)]), rng.randint(2, 8), rng.randint(2, 12)
    top = rng.choice([
        "n", "n", f"n^{k}", f"{b}^n", f"{b}^n", "n^2", f"{b}*n", "(n*(n+1)/2)", f"(n^2+{b})", f"({b}*n+{k})",
        "(n^2+n)", "n^n",
    ])  # fmt: skip
    name = rng.choice([f"{top} mod {m}", f"{top} mod {m}", f"{top} modulo {m}", f"({top} mod {m})"])
    if top == "n" and rng.random() < 0.3:
        return Draft(
            rng.choice([f"Simple periodic sequence: n mod {m}.", f"Residues of n modulo {m}."]), 0,
            program(f"return n%{m}"),
        )  # fmt: skip
    return closed(rng, name, 0 if rng.random() < 0.8 else 1, f"{python(top)}%{m}")


def modular_combination(rng: Random) -> Draft:
    m, k, b = rng.randint(2, 12), rng.randint(2, 12), rng.randint(2, 9)
    text, py = rng.choice([
        (f"n + (n mod {m})", f"n+n%{m}"), (f"n - (n mod {m})", f"n-n%{m}"), (f"n*(n mod {m})", f"n*(n%{m})"),
        (f"{k}*(n mod {m})", f"{k}*(n%{m})"), (f"floor(n/{m}) + (n mod {m})", f"n//{m}+n%{m}"),
        (f"(n mod {m})*(n mod {k})", f"n%{m}*(n%{k})"), (f"(n mod {m}) + (n mod {k})", f"n%{m}+n%{k}"),
        (f"{b}^(n mod {m})", f"{b}**(n%{m})"), (f"(n mod {m})^{b}", f"(n%{m})**{b}"), (f"n XOR {m}", f"n^{m}"),
        (f"n OR {m}", f"n|{m}"), (f"n AND {m}", f"n&{m}"), (f"(n XOR {m}) + {k}", f"(n^{m})+{k}"),
        (f"n AND {k}*n", f"n&{k}*n"), (f"n XOR {k}*n", f"n^{k}*n"), (f"{k}*n + (-1)^n", f"{k}*n+(-1)**n"),
        ("n + (-1)^n", "n+(-1)**n"), (f"({k}*n + {b} - (-1)^n)/2", f"({k}*n+{b}-(-1)**n)//2"),
        (f"gcd(n, {k * m})", f"math.gcd(n,{k * m})"), (f"gcd(n,{m})", f"math.gcd(n,{m})"),
        (f"lcm(n,{m})", f"math.lcm(n,{m})"), (f"lcm({m},n)", f"math.lcm({m},n)"),
        (f"n/gcd(n,{k * m})", f"n//math.gcd(n,{k * m})"), (f"numerator of n/{k * m}", f"n//math.gcd(n,{k * m})"),
        (f"max(n, {m})", f"max(n,{m})"), (f"abs(n-{m})", f"abs(n-{m})"), (f"|n - {m}|", f"abs(n-{m})"),
        (f"lcm(n, n+{m})", f"math.lcm(n,n+{m})"), (f"gcd(n^2+{m}, {k})", f"math.gcd(n**2+{m},{k})"),
        (f"{k}*n if n is odd, otherwise n", f"{k}*n if n%2 else n"),
        (f"{k}*n if n is even, {b}*n if n is odd", f"{b}*n if n%2 else {k}*n"),
        (f"n/2 if n is even, {b}*n+1 if n is odd", f"{b}*n+1 if n%2 else n//2"),
        ("n if n odd, n/2 if n even", "n if n%2 else n//2"),
        (f"n/{m} if {m} divides n, else n", f"n if n%{m} else n//{m}"),
        (f"n if n mod {m} = 0, otherwise {k}", f"{k} if n%{m} else n"),
    ])  # fmt: skip
    if text.startswith("n XOR") and rng.random() < 0.4:
        return Draft(f"Nimsum n + {m}.", 0, program(f"return n^{m}"))
    return closed(rng, text, 1 if "gcd" in text or "numerator" in text else 0, py)


def periodic(rng: Random) -> Draft:
    period = rng.choice([2, 2, 2, 3, 3, 4, 5, 6, 7, 8])
    top = rng.choice([1, 3, 9, 9, 20])
    values = [rng.randint(0, top) for _ in range(period)]
    listed = rng.choice([", ", ","]).join(map(str, values))
    name = rng.choice([
        f"Period {period}: repeat [{listed}].", f"Period {period}: repeat ({listed}).",
        f"Period {period}: repeat {listed}.", f"Periodic sequence: Repeat {listed}.",
        f"Simple periodic sequence: repeat {listed}.", f"Repeat [{listed}].",
    ])  # fmt: skip
    return Draft(name, 0, program(f"return {str(values).replace(' ', '')}[n%{period}]"))


def constant(rng: Random) -> Draft:
    c = rng.choice([rng.randint(0, 12), rng.randint(0, 100), rng.randint(0, 1000)])
    name = rng.choice([
        f"Constant sequence: a(n) = {c}.", f"Constant sequence: the all {c}'s sequence.",
        f"The constant sequence {c}.", f"a(n) = {c}.", f"All {c}'s sequence.",
    ])  # fmt: skip
    return Draft(name, 0, program(f"return {c}"), constant=True)


FIGURES = {
    3: "Triangular", 4: "Square", 5: "Pentagonal", 6: "Hexagonal", 7: "Heptagonal", 8: "Octagonal", 9: "Nonagonal",
    10: "Decagonal", 11: "Hendecagonal", 12: "Dodecagonal",
}  # fmt: skip


def figurate(rng: Random) -> Draft:
    k, c = rng.choice([rng.randint(3, 12), rng.randint(3, 40)]), rng.randint(2, 30)
    word = FIGURES[k] if k in FIGURES and rng.random() < 0.7 else f"{k}-gonal"
    formula = f"n*({joined([(k - 2, 'n'), (4 - k, '')])})/2"
    if k % 2 == 0:
        rng.random()  # decides nothing, but the shipped model was trained on pairs drawn with it
    pick = rng.random()
    if pick < 0.35:
        name = rng.choice([
            f"{word} numbers: a(n) = {formula}.", f"{k}-gonal numbers: {formula}.", f"{word} numbers.",
            f"{k}-gonal numbers: a(n) = {formula}.",
        ])  # fmt: skip
        return Draft(name, 0, program("return " + python(formula)))
    if pick < 0.5:
        name = rng.choice([
            f"Centered {word.lower()} numbers.", f"Centered {k}-gonal numbers.",
            f"Centered {k}-gonal numbers: a(n) = {k}*n*(n-1)/2 + 1.",
        ])  # fmt: skip
        return Draft(name, 1, program(f"return {k}*n*(n-1)//2+1"))
    if pick < 0.62:
        name = rng.choice([
            f"{word} pyramidal numbers.", f"{k}-gonal pyramidal numbers.",
            f"{word} pyramidal numbers: a(n) = n*(n+1)*({joined([(k - 2, 'n'), (5 - k, '')])})/6.",
        ])  # fmt: skip
        return Draft(name, 0, program(f"return n*(n+1)*({python(joined([(k - 2, 'n'), (5 - k, '')]))})//6"))
    if pick < 0.75:
        which, py = rng.choice([
            ("triangular numbers", "n*(n+1)//2"), ("pentagonal numbers", "n*(3*n-1)//2"),
            ("hexagonal numbers", "n*(2*n-1)"), ("squares", "n**2"), ("cubes", "n**3"),
            ("octagonal numbers", "n*(3*n-2)"),
        ])  # fmt: skip
        return rng.choice([
            Draft(f"{c} times {which}.", 0, program(f"return {c}*{py}" if "//" not in py else f"return {c}*({py})")),
            Draft(f"{rng.choice(['Squares of', 'Square of'])} {which}.", 0, program(f"return ({py})**2")),
            Draft(f"{which.capitalize()} plus {c}.", 0, program(f"return {py}+{c}")),
            Draft(
                f"{which.capitalize()} mod {c}.", 0,
                program(f"return {py}%{c}" if "//" not in py else f"return ({py})%{c}"),
            ),
        ])  # fmt: skip
    if pick < 0.9:
        b = rng.randint(2, 60)
        if rng.random() < 0.2:
            text = polynomial_text(rng, rng.choice([1, 2, 2]))
            return Draft(f"a(0) = 1; for n > 0, a(n) = {text}.", 0, program(f"return {python(text)} if n else 1"))
        name = rng.choice([
            f"a(0) = 1, a(n) = {b}*n^2 + 2 for n>0.", f"a(0) = 1; for n > 0, a(n) = {b}*n^2 + 2.",
            f"Points on surface of polyhedron: a(0) = 1, a(n) = {b}*n^2 + 2 for n > 0.",
            f"a(0)=1; a(n) = {b}*n^2 + 2, n >= 1.",
        ])  # fmt: skip
        return Draft(name, 0, program(f"return {b}*n**2+2 if n else 1"))
    j = rng.randint(2, 9)
    return rng.choice([
        Draft(f"Nexus numbers (n+1)^{j + 1}-n^{j + 1}.", 0, program(f"return (n+1)**{j + 1}-n**{j + 1}")),
        Draft(f"a(n) = (n+1)^{j} - n^{j}.", 0, program(f"return (n+1)**{j}-n**{j}")),
        Draft(f"a(n) = n^{j} + (n+1)^{j}.", 0, program(f"return n**{j}+(n+1)**{j}")),
        Draft(f"{j}-dimensional centered cube numbers.", 0, program(f"return n**{j}+(n+1)**{j}")),
        Draft(f"First differences of {j + 1}^n.", 0, program(f"return {j + 1}**n-({j + 1}**(n-1) if n else 0)")),
        Draft(f"Partial sums of powers of {j}.", 0, program(f"return ({j}**(n+1)-1)//{j - 1}")),
    ])  # fmt: skip
