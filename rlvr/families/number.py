"""Families of made-up sequences about residue classes, primes, and numbers of a given form.

A family is a function `rng -> Draft`; the table with their weights is in rlvr/synthetic.py. Searches are checked to be
dense enough (`dense`), so that a(50) costs milliseconds. Not meant to be run.
"""

from __future__ import annotations

import functools
import math

from rlvr.families.drafts import Draft, Random, closed, joined, program, python, times

PRIME = "def p(k): return k>1 and all(k%d for d in range(2,math.isqrt(k)+1))\n"


SEARCH_LIMIT = 400  # a search must find DENSE members below it


DENSE = 22


@functools.lru_cache(maxsize=200_000)
def is_prime(k: int) -> bool:
    return k > 1 and all(k % d for d in range(2, math.isqrt(k) + 1))


def search(condition: str, start: int = 1, offset: int = 1) -> str:
    """The source of: the n-th number k >= start with the condition."""
    count = "n" if offset == 1 else "n+1" if offset == 0 else f"n-{offset - 1}"
    body = f"k={start - 1}\nfor _ in range({count}):\n    k+=1\n    while not ({condition}): k+=1\nreturn k"
    helper = PRIME if "p(" in condition else ""
    source = program(body)
    if source.startswith("import math\n"):
        source = source[len("import math\n") :]
    return ("import math\n" if "math." in helper + source else "") + helper + source


def dense(condition: str) -> bool:
    """Whether the condition holds often enough to find forty members quickly."""
    test = eval(f"lambda k: {condition}", {"p": is_prime, "math": math})
    found = 0
    for k in range(1, SEARCH_LIMIT):
        found += bool(test(k))
        if found >= DENSE:
            return True
    return False


def residues_text(rng: Random, residues: list[int]) -> str:
    if len(residues) == 1 and rng.random() < 0.7:
        return str(residues[0])
    if len(residues) == 2 and rng.random() < 0.15:
        return f"{residues[0]} or {residues[1]}"
    return "{" + ", ".join(map(str, residues)) + "}"


def congruence(rng: Random) -> Draft:
    m = rng.choice([rng.randint(2, 12), rng.randint(2, 24)])
    residues = sorted(rng.sample(range(m), min(m - 1, rng.choice([1, 1, 2, 2, 3, 3, 4, 5, 6]))))
    listed = residues_text(rng, residues)
    mod = rng.choice([f"mod {m}", f"mod {m}", f"mod {m}", f"(mod {m})", f"modulo {m}"])
    name = rng.choice([
        f"Numbers that are congruent to {listed} {mod}.", f"Numbers that are congruent to {listed} {mod}.",
        f"Numbers congruent to {listed} {mod}.", f"Numbers congruent to {listed} {mod}.",
        f"Nonnegative integers congruent to {listed} {mod}.", f"Numbers k such that k == {listed} (mod {m}).",
        f"Numbers n that are congruent to {listed} {mod}.",
    ])  # fmt: skip
    offset = rng.choice([0, 1, 1, 1])
    if residues[0] == 0 and rng.random() < 0.3:  # listed from the first positive member
        residues = [*residues[1:], m]
    return congruence_draft(name, m, residues, offset)


def congruence_draft(name: str, m: int, residues: list[int], offset: int) -> Draft:
    """Numbers congruent to one of the residues, the smallest at index `offset`."""
    index = "n" if offset == 0 else f"n-{offset}"
    if len(residues) == 1:
        shift = residues[0] - m * offset
        return Draft(name, offset, program("return " + joined([(m, "n"), (shift, "")]).replace(" ", "")))
    r, count = str(residues).replace(" ", ""), len(residues)
    return Draft(name, offset, program(f"q,r=divmod({index},{count})\nreturn {m}*q+{r}[r]"))


def not_congruent(rng: Random) -> Draft:
    m = rng.randint(2, 12)
    if rng.random() < 0.6:
        name = rng.choice([
            f"Numbers not divisible by {m}.", f"Numbers that are not divisible by {m}.",
            f"Numbers that are not multiples of {m}.", f"Integers not divisible by {m}.",
        ])  # fmt: skip
        return Draft(name, 1, program(f"return n+(n-1)//{m - 1}"))
    r = rng.randrange(m)
    name = rng.choice([
        f"Numbers not congruent to {r} (mod {m}).", f"Numbers that are not congruent to {r} mod {m}.",
        f"Numbers k not congruent to {r} mod {m}.",
    ])  # fmt: skip
    k = rng.choice([3, 5, 7])
    if rng.random() < 0.2:
        return Draft(
            rng.choice([f"Odd numbers not divisible by {k}.", f"Numbers that are odd but not divisible by {k}."]), 1,
            search(f"k%2 and k%{k}"),
        )  # fmt: skip
    return congruence_draft(
        name, m, [x for x in range(m + 1) if x % m != r][: m - 1], 1,
    ) if m > 2 else Draft(f"Multiples of {m}.", 0, program(f"return {m}*n"))  # fmt: skip


def divisibility(rng: Random) -> Draft:
    m, j = rng.sample(range(2, 14), 2)
    text, condition = rng.choice([
        (f"Numbers divisible by {m} or {j}.", f"k%{m}==0 or k%{j}==0"),
        (f"Numbers divisible by {m} but not by {j}.", f"k%{m}==0 and k%{j}"),
        (f"Numbers not divisible by {m} or {j}.", f"k%{m} and k%{j}"),
        (f"Numbers divisible by neither {m} nor {j}.", f"k%{m} and k%{j}"),
        (f"Numbers relatively prime to {m * j}.", f"math.gcd(k,{m * j})==1"),
        (f"Numbers coprime to {m * j}.", f"math.gcd(k,{m * j})==1"),
        (f"Multiples of {m} that are not multiples of {j}.", f"k%{m}==0 and k%{j}"),
        (f"Numbers k such that k mod {m} < k mod {j}.", f"k%{m}<k%{j}"),
        (f"Numbers that are divisible by {m} and {j}.", f"k%{m}==0 and k%{j}==0"),
    ])  # fmt: skip
    if ("divisible by" in text and "and" in text) or not dense(condition):
        q = m * j // math.gcd(m, j)
        return Draft(f"Numbers that are divisible by both {m} and {j}.", 1, program(f"return {q}*n"))
    return Draft(text, 1, search(condition))


def primes_in_classes(rng: Random) -> Draft:
    m = rng.randint(3, 30)
    units = [x for x in range(1, m) if math.gcd(x, m) == 1]
    residues = sorted(rng.sample(units, min(len(units), rng.choice([1, 1, 2, 3, 4, 5]))))
    listed = residues_text(rng, residues)
    name = rng.choice([
        f"Primes congruent to {listed} mod {m}.", f"Primes congruent to {listed} mod {m}.",
        f"Primes congruent to {listed} (mod {m}).", f"Prime numbers == {listed} (mod {m}).",
        f"Primes p congruent to {listed} mod {m}.",
    ])  # fmt: skip
    if len(residues) == 1 and rng.random() < 0.5:
        r, v = residues[0], rng.choice("kknm")
        name = rng.choice([
            f"Primes of the form {m}*{v}+{r}.", f"Primes of form {m}{v}+{r}.", f"Primes of the form {m}*{v} + {r}.",
            f"Primes of form {m}{v}+{r}, that is, primes congruent to {r} mod {m}.",
        ])  # fmt: skip
        if rng.random() < 0.2:
            name = f"Primes of the form {m}*{v} - {m - r}."
    test = f"k%{m}=={residues[0]}" if len(residues) == 1 else f"k%{m} in ({','.join(map(str, residues))})"
    return Draft(name, 1, search(f"{test} and p(k)"))


def prime_partner(rng: Random) -> Draft:
    """Primes p such that 2*p + 9 is also prime."""
    a, b = rng.choice([1, 1, 2, 2, rng.randint(2, 10)]), rng.choice([1, -1]) * rng.randint(1, 30)
    text = joined([(a, "p"), (b, "")])
    condition = f"p(k) and p({joined([(a, 'k'), (b, '')]).replace(' ', '')})"
    if not dense(condition):
        return primes_in_classes(rng)
    name = rng.choice([
        f"Primes p such that {text} is also prime.", f"Primes p such that {text} is also prime.",
        f"Primes p such that {text} is prime.", f"Primes p such that {text} is a prime.",
        f"Primes p for which {text} is prime.",
    ])  # fmt: skip
    return Draft(name, 1, search(condition))


def primes_k_such(rng: Random) -> Draft:
    """Numbers k such that 15*k - 1 is prime."""
    a, b = rng.choice([1, 1, 2, rng.randint(1, 40)]), rng.choice([1, -1]) * rng.choice([1, 1, rng.randint(1, 30)])
    text = rng.choice([
        joined([(a, "k"), (b, "")]), joined([(a, "k"), (b, "")]), joined([(a, "k^2"), (b, "")]),
        joined([(1, "k^2"), (1, "k"), (abs(b), "")]), joined([(a, "k^2"), (rng.randint(1, 9), "k"), (b, "")]),
        joined([(1, "k^4"), (b, "")]), joined([(1, "k^3"), (b, "")]),
        f"{joined([(a, 'k'), (1, '')])} and {joined([(a, 'k'), (-1, '')])}",
    ])  # fmt: skip
    values = [python(t) for t in text.split(" and ")]
    condition = " and ".join(f"p({v})" for v in values)
    if not dense(condition):
        return primes_in_classes(rng)
    v = rng.choice("kkkkn")
    text = text.replace("k", v)
    if " and " in text:
        return Draft(f"Numbers {v} such that {text} are both prime.", 1, search(condition))
    if rng.random() < 0.2:
        return Draft(
            rng.choice([
                f"Numbers {v} such that {text} is composite.", f"Numbers {v} such that {text} is not prime.",
            ]),
            1, search(f"not p({values[0]})"),
        )  # fmt: skip
    if rng.random() < 0.15 and b > 0:
        source = search(condition).replace("return k", f"return {values[0]}")
        return Draft(f"Primes of the form {text}.", 1, source)
    return Draft(
        rng.choice([
            f"Numbers {v} such that {text} is prime.", f"Numbers {v} such that {text} is prime.",
            f"Numbers {v} such that {text} is a prime.",
        ]),
        1, search(condition),
    )  # fmt: skip


NTH_PRIME = "k=1\nfor _ in range({count}):\n    k+=1\n    while not p(k): k+=1\nreturn {result}"


def nth_prime(rng: Random) -> Draft:
    c, m, j = rng.randint(1, 12), rng.randint(2, 60), rng.randint(2, 9)
    text, result = rng.choice([
        ("prime(n)", "k"), (f"prime(n) + {c}", f"k+{c}"), (f"prime(n) - {c}", f"k-{c}"), ("prime(n) + n", "k+n"),
        ("prime(n) - n", "k-n"), (f"prime(n)^{j}", f"k**{j}"), (f"prime(n) mod {m}", f"k%{m}"),
        (f"n-th prime modulo {m}", f"k%{m}"), (f"n-th prime modulo {m}", f"k%{m}"), (f"{j}*prime(n)", f"{j}*k"),
        ("n*prime(n)", "n*k"), (f"{j}*prime(n) + {c}", f"{j}*k+{c}"), ("(prime(n) - 1)^2", "(k-1)**2"),
        (f"prime(n)^2 + {c}", f"k**2+{c}"), (f"floor(prime(n)/{j})", f"k//{j}"), ("prime(n) + n^2", "k+n**2"),
        (f"{j}^prime(n)", f"{j}**k"), ("prime(n)^2 - 1", "k**2-1"), ("prime(n)^n", "k**n"),
        (f"{j}*prime(n) - {c}", f"{j}*k-{c}"), (f"prime(n)*{m}", f"k*{m}"), ("prime(n)*(prime(n)-1)/2", "k*(k-1)//2"),
        ("p^2 + p + 1 where p = prime(n)", "k*k+k+1"), ("2^prime(n) - 1", "2**k-1"),
    ])  # fmt: skip
    count = "n"
    if text.startswith("prime(n)") and rng.random() < 0.25:
        index, index_py = rng.choice([
            (f"{j}*n", f"{j}*n"), (f"n+{c}", f"n+{c}"), ("n^2", "n*n"), (f"{j}*n+1", f"{j}*n+1"),
            (f"{j}*n-1", f"{j}*n-1"),
        ])  # fmt: skip
        text, count = text.replace("prime(n)", f"prime({index})"), index_py
    name = rng.choice([f"a(n) = {text}.", f"a(n) = {text}.", f"{text[0].upper() + text[1:]}."])
    named = {
        "k": "The prime numbers.", "k**2": "Squares of primes.", "k**3": "Cubes of primes.",
        f"{j}*k": f"{j} times primes.", f"k+{c}": f"Primes plus {c}.", f"k-{c}": f"Primes minus {c}.",
    }  # fmt: skip
    if count == "n" and result in named and rng.random() < 0.4:
        name = named[result]
    return Draft(name, 1, "import math\n" + PRIME + program(NTH_PRIME.format(count=count, result=result)))


def prime_arithmetic(rng: Random) -> Draft:
    """Next primes, counts and sums of primes, products of successive ones."""
    c, j = rng.randint(2, 9), rng.randint(2, 5)
    inner, inner_py = rng.choice([
        ("n", "n"), ("n^2", "n**2"), (f"{c}*n", f"{c}*n"), (f"{c}^n", f"{c}**n"), ("n^3", "n**3"),
    ])  # fmt: skip
    head = "import math\n" + PRIME
    if inner in (f"{c}^n", "n^3"):  # too far to count up to
        inner, inner_py = "n^2", "n**2"
    return rng.choice([
        Draft(
            rng.choice([
                f"Smallest prime > {inner}.", f"Next prime after {inner}.", f"a(n) = next prime after {inner}.",
                f"Least prime greater than {inner}.",
            ]),
            rng.choice([0, 1]), head + program(f"k={inner_py}+1\nwhile not p(k): k+=1\nreturn k"),
        ),
        Draft(
            rng.choice([f"Smallest prime >= {inner}.", f"Least prime >= {inner}."]), 1,
            head + program(f"k={inner_py}\nwhile not p(k): k+=1\nreturn k"),
        ),
        Draft(
            rng.choice([
                f"Number of primes <= {inner}.", f"pi({inner}), the number of primes <= {inner}.",
                f"a(n) = pi({inner}).", f"Number of primes not exceeding {inner}.",
            ]),
            1, head + program(f"return sum(p(k) for k in range(2,{inner_py}+1))"),
        ),
        Draft(
            rng.choice(["Sum of the first n primes.", "Sum of first n primes."]), 0,
            head + program("k=1\ns=0\nfor _ in range(n):\n    k+=1\n    while not p(k): k+=1\n    s+=k\nreturn s"),
        ),
        Draft(
            rng.choice(["Product of the first n primes.", "Primorial numbers: product of first n primes."]), 0,
            head + program("k=s=1\nfor _ in range(n):\n    k+=1\n    while not p(k): k+=1\n    s*=k\nreturn s"),
        ),
        Draft(
            rng.choice([f"Product of {j} successive primes.", f"Product of {j} consecutive primes."]), 1,
            head + program(f"s=[k for k in range(2,999) if p(k)]\nreturn math.prod(s[n-1:n+{j - 1}])"),
        ),
        Draft(
            rng.choice([
                f"Sum of {j} successive primes.", f"Sum of {j} consecutive primes.",
                f"Sums of {j} consecutive primes.",
            ]),
            1, head + program(f"s=[k for k in range(2,999) if p(k)]\nreturn sum(s[n-1:n+{j - 1}])"),
        ),
        Draft(
            rng.choice([
                "Differences between consecutive primes.", "Prime gaps: differences between consecutive primes.",
            ]),
            1, head + program("s=[k for k in range(2,999) if p(k)]\nreturn s[n]-s[n-1]"),
        ),
        Draft(
            rng.choice(["Sum of primes <= n.", "Sum of all primes <= n."]), 1,
            head + program("return sum(k for k in range(n+1) if p(k))"),
        ),
        Draft(
            rng.choice([
                "Characteristic function of primes.", "Characteristic function of primes: 1 if n is prime, else 0.",
            ]),
            1, head + program("return int(p(n))"),
        ),
    ])  # fmt: skip


def quadratic_residue_primes(rng: Random) -> Draft:
    k = rng.choice([2, 3, 5, 6, 7, rng.randint(2, 60)])
    e = rng.choice([2, 2, 3, 4, 5])
    negate = rng.random() < 0.3
    if e == 2:
        first_spelling = rng.random() < 0.5
        name = f"Primes p such that {k} is {'not ' if negate else ''}a square mod p."
        if not first_spelling:
            name = f"Primes p such that x^2 = {k} has {'no' if negate else 'a'} solution mod p."
    else:
        name = f"Primes p such that x^{e} = {k} has {'no' if negate else 'a'} solution mod p."
    condition = f"p(k) and {'not ' if negate else ''}any((x**{e}-{k})%k==0 for x in range(k))"
    if not dense(condition):
        return primes_in_classes(rng)
    return Draft(name, 1, search(condition))


def binary_forms(rng: Random) -> Draft:
    """Numbers, or primes, of the form x^2 + 5*y^2."""
    a, b = rng.choice([1, 1, 1, rng.randint(1, 6)]), rng.randint(1, 60)
    text = rng.choice([joined([(a, "x^2"), (b, "y^2")]), joined([(a, "x^2"), (b, "y^2")]).replace(" ", "")])
    name = rng.choice([f"Numbers of form {text}.", f"Numbers of the form {text}."])
    prime = a == 1 and rng.random() < 0.4
    if prime:
        name = rng.choice([f"Primes of form {text}.", f"Primes of the form {text}."])
    rest = f"k-{times(a, 'x*x')}"
    test = f"any(math.isqrt(({rest})//{b})**2*{b}=={rest} for x in range(math.isqrt(k{'' if a == 1 else f'//{a}'})+1))"
    if b == 1:
        test = f"any(math.isqrt({rest})**2=={rest} for x in range(math.isqrt(k{'' if a == 1 else f'//{a}'})+1))"
    condition = f"{'p(k) and ' if prime else ''}{test}"
    if not dense(condition):
        return closed(rng, f"n^2 + {b}", 0)
    return Draft(name, 1, search(condition, 1 if prime else 0))


def products_of_powers(rng: Random) -> Draft:
    """Numbers of form 2^i*9^j."""
    b, c = sorted(rng.sample(range(2, 14), 2))
    name = rng.choice([
        f"Numbers of form {b}^i*{c}^j, with i, j >= 0.", f"Numbers of the form {b}^i*{c}^j, with i, j >= 0.",
        f"Numbers of the form {b}^i * {c}^j.", f"Numbers of form {b}^i*{c}^j.",
    ])  # fmt: skip
    return Draft(name, 1, program(f"return sorted({{{b}**i*{c}**j for i in range(n) for j in range(n)}})[n-1]"))


def sums_of_powers(rng: Random) -> Draft:
    k, b = rng.randint(2, 9), rng.randint(2, 12)
    if rng.random() < 0.7:
        name = rng.choice([
            f"Sums of {k} distinct powers of {b}.", f"Sums of {k} distinct powers of {b}.",
            f"Numbers that are the sum of {k} distinct powers of {b}.",
        ])  # fmt: skip
        source = search(f"bin(k).count('1')=={k}")
        return Draft(name, 1, source.replace("return k", f"return int(bin(k)[2:],{b})"))
    name = rng.choice([
        f"Sums of distinct powers of {b}.", f"Numbers that are sums of distinct powers of {b}.",
        f"Numbers whose base-{b} representation contains only 0 and 1.",
    ])  # fmt: skip
    return Draft(name, 0, program(f"return int(bin(n)[2:],{b})"))
