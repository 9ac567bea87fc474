"""Families of made-up sequences that are coefficients of a power series: rational ones, e.g.f., lattices.

A family is a function `rng -> Draft`; the table with their weights is in rlvr/synthetic.py. Not meant to be run.
"""

from __future__ import annotations

from rlvr.families.drafts import Draft, Random, bracket, joined, program, times
from rlvr.families.recurrence import random_recurrence


def expansion_name(rng: Random, text: str) -> str:
    return rng.choice([
        "Expansion of %s.", "Expansion of %s.", "Expansion of %s.", "Expansion of g.f. %s.", "Expansion of g.f.: %s.",
        "G.f.: %s.", "G.f. %s.", "Expansion of %s in powers of x.",
    ]) % text  # fmt: skip


def series(numerator: list[int], steps: list[str]) -> str:
    """Power series code: c starts as the numerator, every step divides or multiplies it in place.

    The list is longer than needed and its end stays zero, so that c[i-3] is 0 for i < 3.
    """
    start = "[1]" if numerator == [1] else str(numerator).replace(" ", "")
    return program("\n".join([f"c={start}+[0]*(n+30)", *steps, "return c[n]"]))


def geometric_denominators(rng: Random) -> Draft:
    """1/((1-x)*(1-3*x)*(1-8*x))."""
    count = rng.choice([2, 3, 3, 3, 4, 4, 4])
    ks = sorted(rng.sample(range(1, 13), count)) if rng.random() < 0.9 else sorted(
        rng.randint(1, 9) for _ in range(count)
    )  # fmt: skip
    gap = rng.choice(["", " "])
    star = rng.choice(["*", "*", ""])
    factors = [f"(1{gap}-{gap}{'' if k == 1 else f'{k}{star}'}x)" for k in ks]
    text = f"1/({rng.choice(['*', star]).join(factors)})"
    step = f"for k in ({','.join(map(str, ks))}):\n    for i in range(1,n+1): c[i]+=k*c[i-1]"
    return Draft(expansion_name(rng, text), 0, series([1], [step]))


def power_denominators(rng: Random) -> Draft:
    """1/((1-x^2)*(1-x^5)*(1-x^9)): partitions into given parts."""
    count = rng.choice([2, 3, 4, 4, 4])
    ks = sorted(rng.choices(range(1, 13), k=count)) if rng.random() < 0.5 else sorted(rng.sample(range(1, 13), count))
    star = rng.choice(["*", ""])
    text = f"1/({star.join(f'(1-x^{k})' if k > 1 else '(1-x)' for k in ks)})"
    name = expansion_name(rng, text)
    if rng.random() < 0.2 and len(set(ks)) == len(ks):
        listed = ", ".join(map(str, ks[:-1])) + f" and {ks[-1]}"
        name = rng.choice([
            f"Number of partitions of n into parts {listed}.",
            f"Number of partitions of n into parts of size {listed}.",
            f"Molien series: 1/({'*'.join(f'(1-x^{k})' for k in ks)}).",
        ])  # fmt: skip
    step = f"for k in ({','.join(map(str, ks))}):\n    for i in range(k,n+1): c[i]+=c[i-k]"
    return Draft(name, 0, series([1], [step]))


def x_power(k: int) -> str:
    return "" if k == 0 else "x" if k == 1 else f"x^{k}"


def polynomial_in_x(rng: Random, coefficients: list[int]) -> str:
    gap = rng.choice([" ", ""])
    return joined([(k, x_power(i)) for i, k in enumerate(coefficients)]).replace(" ", gap)


def rational_expansion(rng: Random) -> Draft:
    """(1+x)/(1-7*x-5*x^2)."""
    order = rng.choice([1, 2, 2, 2, 2, 3])
    coefficients, _ = random_recurrence(rng, order)
    numerator = rng.choice([
        [1], [1], [0, 1], [1, rng.choice([1, -1, rng.randint(-6, 6)])], [1, rng.choice([1, -1]), rng.randint(-3, 3)],
    ])  # fmt: skip
    while numerator[-1] == 0:
        numerator = numerator[:-1]
    top = polynomial_in_x(rng, numerator)
    bottom = polynomial_in_x(rng, [1, *(-k for k in coefficients)])
    name = expansion_name(rng, f"{bracket(top)}/({bottom})")
    right = joined([(k, f"c[i-{i + 1}]") for i, k in enumerate(coefficients)]).replace(" ", "")
    return Draft(name, 0, series(numerator, [f"for i in range(1,n+1): c[i]+={right}"]))


def run_of_powers(rng: Random) -> Draft:
    """1/(1-x^3-x^4-x^5-...-x^13)."""
    low = rng.choice([1, 2, rng.randint(2, 8)])
    high = low + rng.choice([1, 1, 2, 3, rng.randint(1, 10)])
    gap = rng.choice(["", " "])
    powers = [x_power(k) for k in range(low, high + 1)]
    if rng.random() < 0.3:
        powers = [x_power(low), x_power(high)]
        step = f"for i in range(1,n+1): c[i]+=c[i-{low}]+c[i-{high}]"
    elif rng.random() < 0.1:
        powers = [x_power(low), x_power(low + 1), "..."]
        step = f"for i in range(1,n+1): c[i]+=sum(c[:max(0,i-{low - 1})])"
    else:
        step = f"for i in range(1,n+1): c[i]+=sum(c[i-k] for k in range({low},{high + 1}))"
    text = f"1/(1{gap}-{gap}" + f"{gap}-{gap}".join(powers) + ")"
    name = expansion_name(rng, text)
    if rng.random() < 0.1 and "..." not in text:
        name = f"a(n) = {' + '.join(f'a(n-{x[2:] if len(x) > 1 else 1})' for x in powers)}."
    return Draft(name, 0, series([1], [step]))


def mixed_denominators(rng: Random) -> Draft:
    """(1+x^3)/((1-x)^2*(1-x^4)), (1-x)^2/(1-5*x), 1/((1+x)*(1-x)^3)."""
    steps, bottom = [], []
    for _ in range(rng.choice([1, 1, 2, 2, 3])):
        kind, times_ = rng.random(), rng.choice([1, 1, 1, 2, 3, rng.randint(1, 9)])
        if kind < 0.45:
            k, factor, step = 1, "(1-x)", "c[i]+=c[i-1]"
        elif kind < 0.65:
            b = rng.randint(2, 12)
            k, factor, step = 1, f"(1-{b}*x)", f"c[i]+={b}*c[i-1]"
        elif kind < 0.85:
            k = rng.randint(2, 6)
            factor, step = f"(1-x^{k})", f"c[i]+=c[i-{k}]"
        elif kind < 0.95:
            k, factor, step = 1, "(1+x)", "c[i]-=c[i-1]"
        else:
            k, factor, step = 1, "(1-x-x^2)", "c[i]+=c[i-1]+c[i-2]"
        if factor in "".join(bottom):
            continue
        loop = f"for i in range({k},n+1): {step}"
        steps.append(loop if times_ == 1 else f"for _ in range({times_}):\n    {loop}")
        bottom.append(factor if times_ == 1 else f"{factor}^{times_}")
    numerator, top = [1], "1"
    pick = rng.random()
    if pick < 0.2:
        k = rng.randint(1, 8)
        numerator, top = [1, *[0] * (k - 1), 1], f"(1+{x_power(k)})"
    elif pick < 0.3:
        k = rng.randint(1, 5)
        numerator, top = [*[0] * k, 1], x_power(k)
    elif pick < 0.45:
        b, k = rng.randint(-6, 12) or 1, rng.randint(1, 3)
        numerator, top = [1, b], f"({polynomial_in_x(rng, [1, b])})"
        if rng.random() < 0.4:
            numerator, top = [1, b, rng.choice([1, -1, 2])], ""
            top = f"({polynomial_in_x(rng, numerator)})"
    elif pick < 0.55:
        k, sign = rng.randint(2, 9), rng.choice("+-")
        steps.insert(0, f"for _ in range({k}):\n    for i in range(n,0,-1): c[i]{sign}=c[i-1]")
        top = f"(1{sign}x)^{k}"
    dot = rng.choice(["*", "*", ""])
    below = dot.join(bottom)
    text = f"{top}/{below if len(bottom) == 1 else f'({below})'}"
    return Draft(expansion_name(rng, text.replace("^1/", "/")), 0, series(numerator, steps))


def convolution_power(rng: Random) -> Draft:
    k, b = rng.randint(2, 12), rng.randint(1, 12)
    base = "(1-x)" if b == 1 else f"(1-{b}*x)"
    name = rng.choice([
        f"Expansion of 1/{base}^{k}.", f"Expansion of 1/{base}^{k}; {k}-fold convolution of powers of {b}.",
        f"{k}-fold convolution of the powers of {b}.", f"G.f.: 1/{base}^{k}.",
    ])  # fmt: skip
    return Draft(name, 0, program(f"return math.comb(n+{k - 1},{k - 1})" + (f"*{b}**n" if b > 1 else "")))


def exponential_series(rng: Random) -> Draft:
    """Expansion of e.g.f. with a short closed form or recurrence."""
    k, m, j = rng.randint(1, 6), rng.randint(1, 6), rng.randint(1, 6)
    kx, mx = times(k, "x"), times(m, "x")
    xj = x_power(j)
    fj = f"math.perm(n,{j})"
    text, body = rng.choice([
        (f"exp({kx})/(1-{mx})", f"x=1\nfor i in range(1,n+1): x={times(m, 'i')}*x+{k}**i\nreturn x"),
        (f"exp(-x)/(1-{mx})", f"x=1\nfor i in range(1,n+1): x={times(m, 'i')}*x+(-1)**i\nreturn x"),
        (f"{xj}*exp({kx})", f"return {fj}*{k}**max(n-{j},0)"),
        (f"{xj}/(1-x)", f"return math.factorial(n) if n>={j} else 0"),
        (f"1/(1-{mx})^{j}", f"return math.factorial(n)*math.comb(n+{j - 1},{j - 1})*{m}**n"),
        (f"exp({kx})*(1+{mx})", f"return {k}**n+{m}*n*{k}**max(n-1,0)"),
        (f"(exp({kx})-1)^2/2", f"return ({2 * k}**n-2*{k}**n+(n<1))//2"),
        (f"exp({kx})+exp({mx})", f"return {k}**n+{m}**n"),
        (f"exp({kx})*cosh({mx})", f"return ({k + m}**n+({k - m})**n)//2"),
        (f"exp({kx})*sinh({mx})", f"return ({k + m}**n-({k - m})**n)//2"),
        (f"1/(1-x^{j + 1})", f"return math.factorial(n) if n%{j + 1}==0 else 0"),
        (
            "exp(exp(x)-1)",
            "r=[1]\nfor _ in range(n):\n    s=[r[-1]]\n    for v in r: s.append(s[-1]+v)\n    r=s\nreturn r[0]",
        ),
        ("exp(x+x^2/2)", "x,y=1,1\nfor i in range(1,n+1): x,y=y,y+i*x\nreturn x"),
        (f"exp({kx}+x^2/2)", f"x,y=1,{k}\nfor i in range(1,n+1): x,y=y,{times(k, 'y')}+i*x\nreturn x"),
        (f"exp({kx}+x^2)", f"x,y=1,{k}\nfor i in range(1,n+1): x,y=y,{times(k, 'y')}+2*i*x\nreturn x"),
        (
            f"1/(2-exp({kx}))",
            "c=[1]\nfor i in range(1,n+1): "
            f"c.append(sum(math.comb(i,j)*{k}**j*c[i-j] for j in range(1,i+1)))\nreturn c[n]",
        ),
        ("exp(x*exp(x))", "return sum(math.comb(n,k)*k**(n-k) for k in range(n+1))"),
        (f"exp({kx}*exp(x))", f"return sum(math.comb(n,k)*{k}**k*k**(n-k) for k in range(n+1))"),
        ("x/(1-x)^2", "return n*math.factorial(n)"),
        (
            "exp(x/(1-x))",
            "return 1 if n<1 else sum(math.comb(n-1,k-1)*math.factorial(n)//math.factorial(k) for k in range(1,n+1))",
        ),
        (
            f"1/(1-x-x^{j + 1})",
            f"c=[1]+[0]*(n+30)\nfor i in range(1,n+1): c[i]+=c[i-1]+c[i-{j + 1}]\nreturn c[n]*math.factorial(n)",
        ),
        (f"(1+{mx})/(1-x)", f"return math.factorial(n)*({m + 1} if n else 1)"),
        (f"-log(1-{mx})", f"return math.factorial(n-1)*{m}**n if n else 0"),
    ])  # fmt: skip
    return Draft(
        rng.choice([
            f"E.g.f.: {text}.", f"Expansion of e.g.f. {text}.", f"Expansion of e.g.f.: {text}.", f"E.g.f. {text}.",
            f"Expansion of e.g.f. {text}.",
        ]),
        0, program(body),
    )  # fmt: skip


def lattice(rng: Random) -> Draft:
    """Coordination and crystal ball sequences of the root lattices and of Z^k."""
    k = rng.randint(2, 50) if rng.random() < 0.4 else rng.randint(2, 15)
    ball = rng.random() < 0.2
    kind = rng.choice("ZZZZABCD")
    h = {
        "Z": f"math.comb({k},i)", "A": f"math.comb({k},i)**2", "C": f"math.comb({2 * k},2*i)",
        "B": f"(math.comb({2 * k + 1},2*i)-2*i*math.comb({k},i))",
    }.get(kind, "")  # fmt: skip
    if kind == "D":
        k = max(4, k)
        h = f"(math.comb({2 * k},2*i)-2*i*({k}-i)*math.comb({k},i)//{k - 1})"
    what = "Crystal ball" if ball else "Coordination"
    if kind == "Z":
        name = rng.choice([
            f"{what} sequence for {k}-dimensional cubic lattice.", f"{what} sequence for Z^{k}.",
            f"{what} sequence for {k}-dimensional cubic lattice.",
        ])  # fmt: skip
    else:
        name = rng.choice([
            f"{what} sequence for {kind}_{k} lattice.", f"{what} sequence for root lattice {kind}_{k}.",
            f"{what} sequence for {kind}_{k} lattice.",
        ])  # fmt: skip
    shift = k if ball else k - 1
    return Draft(name, 0, program(f"return sum({h}*math.comb(n-i+{shift},{shift}) for i in range(min(n,{k})+1))"))
