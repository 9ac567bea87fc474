"""Families of made-up sequences given by a recurrence: linear ones, Fibonacci and relatives, with factors of n, Pisot.

A family is a function `rng -> Draft`; the table with their weights is in rlvr/synthetic.py. Not meant to be run.
"""

from __future__ import annotations

from rlvr.families.drafts import Draft, Random, joined, program, python, times

VARIABLES = "xyzwv"


def state_code(init: list[int], step: str, first: int, count: str = "") -> str:
    """a(n) by running order-len(init) states: x,y = y,step; `first` is the index of init[0]."""
    names = VARIABLES[: len(init)]
    left = ",".join(names)
    right = ",".join([*names[1:], step])
    span = "n" if first == 0 else f"n-{first}"
    return program(f"{left}={','.join(map(str, init))}\nfor _ in range({span}): {left}={right}\nreturn x")


def step_of(coefficients: list[int], constant: int = 0) -> str:
    """The Python of c1*a(n-1) + c2*a(n-2) + ... over the state variables."""
    order = len(coefficients)
    pairs = [(k, VARIABLES[order - 1 - i]) for i, k in enumerate(coefficients)]
    return joined([*pairs, (constant, "")]).replace(" ", "")


def initial_text(rng: Random, init: list[int], first: int) -> str:
    gap = rng.choice(["=", "=", " = "])
    values = [f"a({first + i}){gap}{v}" for i, v in enumerate(init)]
    if len(set(init)) == 1 and len(init) > 1 and rng.random() < 0.4:
        return gap.join([f"a({first + i})" for i in range(len(init))] + [str(init[0])])
    if rng.random() < 0.3 and len(values) > 1:
        return ", ".join(values[:-1]) + rng.choice([" and ", ", and "]) + values[-1]
    return ", ".join(values)


def random_recurrence(rng: Random, order: int) -> tuple[list[int], list[int]]:
    """(coefficients, initial values), small and mostly growing."""
    while True:
        coefficients = [
            rng.choice([0, 1, 1, 1, 2, 2, 3, -1, rng.randint(-6, 9), rng.randint(1, 20)]) for _ in range(order)
        ]  # fmt: skip
        if order >= 3:
            coefficients = [rng.choice([0, 1, 1, 2, -1, rng.randint(-3, 6)]) for _ in range(order)]
        if coefficients[-1] == 0 or max(coefficients) <= 0 or sum(coefficients) < 0:
            continue
        init = [rng.choice([0, 1, 1, 2, 3, rng.randint(0, 9), rng.randint(0, 20)]) for _ in range(order)]
        if any(init):
            return coefficients, init


def recurrence(rng: Random) -> Draft:
    order = rng.choice([1, 2, 2, 2, 2, 2, 3, 3, 4])
    coefficients, init = random_recurrence(rng, order)
    if rng.random() < 0.15 and order == 2:  # a Fibonacci-like special case
        coefficients, init = [rng.randint(2, 20), rng.choice([1, -1])], rng.choice([
            [0, 1], [1, rng.randint(1, 9)], [2, rng.randint(1, 20)],
        ])  # fmt: skip
    constant = rng.choice([0, 0, 0, 0, 0, 1, 2, rng.randint(-3, 9)])
    first = rng.choice([0, 0, 0, 1])
    star = rng.choice(["*", "*", "*", ""])
    pairs = [(k, f"a(n-{i + 1})") for i, k in enumerate(coefficients)]
    right = joined([*pairs, (constant, "")]).replace("*", star)
    if rng.random() < 0.08:  # written forwards
        right = joined([
            *((k, f"a(n+{order - 1 - i})" if i < order - 1 else "a(n)") for i, k in enumerate(coefficients)),
            (constant, ""),
        ])  # fmt: skip
        left = f"a(n+{order})"
    else:
        left = "a(n)"
    start = initial_text(rng, init, first)
    since = f" for n > {first + order - 1}" if rng.random() < 0.5 else f" for n >= {first + order}"
    name = rng.choice([
        f"{left} = {right}, with {start}.", f"{left} = {right}, with {start}.", f"{left} = {right}, {start}.",
        f"{left} = {right}; {start}.", f"{left} = {right}{since}, {start}.", f"{left} = {right}{since}; {start}.",
        f"{left} = {right}{since}, with {start}.", f"{start}, {left} = {right}.", f"{start}; {left} = {right}.",
        f"{start}; {left} = {right}{since}.", f"{left} = {right}.",
        f"{left} = {right}, starting {', '.join(map(str, init))}.", f"{start}; thereafter {left} = {right}.",
        f"{start}, {left} = {right}{since}.",
    ])  # fmt: skip
    return Draft(name, first, state_code(init, step_of(coefficients, constant), first))


def fibonacci_like(rng: Random) -> Draft:
    kind = rng.random()
    if kind < 0.45:
        x, y = rng.randint(0, 20), rng.randint(1, 30)
        name = rng.choice([
            f"Fibonacci sequence beginning {x}, {y}.", f"Fibonacci sequence beginning {x}, {y}.",
            f"Fibonacci sequence with initial values a(0) = {x} and a(1) = {y}.",
            f"a(n) = a(n-1) + a(n-2), with a(0) = {x}, a(1) = {y}.",
            f"Generalized Fibonacci sequence starting {x}, {y}.",
        ])  # fmt: skip
        return Draft(name, 0, state_code([x, y], "x+y", 0))
    if kind < 0.6:
        k = rng.randint(2, 20)
        name = rng.choice([
            f"Generalized Pellian with second term equal to {k}.", f"Generalized Pellian with second term of {k}.",
            f"Generalized Pell sequence: a(n) = 2*a(n-1) + a(n-2), a(0)=1, a(1)={k}.",
        ])  # fmt: skip
        return Draft(name, 0, state_code([1, k], "2*y+x", 0))
    if kind < 0.8:
        p, q = rng.randint(1, 12), rng.choice([1, 1, -1, rng.randint(1, 12)])
        right = joined([(p, "a(n-1)"), (q, "a(n-2)")])
        init = rng.choice([[0, 1], [1, 1], [1, p]])
        name = rng.choice([
            f"Generalized Fibonacci numbers: a(n) = {right}.", f"Generalized Fibonacci sequence: a(n) = {right}.",
            f"a(n) = {right}.",
        ])  # fmt: skip
        return Draft(name, 0, state_code(init, step_of([p, q]), 0))
    order = rng.randint(3, 5)
    word = {3: "Tribonacci", 4: "Tetranacci", 5: "Pentanacci"}[order]
    init = rng.choice([[0] * (order - 1) + [1], [1] * order, [rng.randint(0, 4) for _ in range(order - 1)] + [1]])
    right = " + ".join(f"a(n-{i + 1})" for i in range(order))
    name = rng.choice([
        f"{word} numbers: a(n) = {right} with {initial_text(rng, init, 0)}.",
        f"a(n) = {right}, {initial_text(rng, init, 0)}.", f"{word} numbers with {initial_text(rng, init, 0)}.",
    ])  # fmt: skip
    return Draft(name, 0, state_code(init, "+".join(VARIABLES[:order]), 0))


FIBONACCI_CODE = "x,y={start}\nfor _ in range({count}): x,y=y,x+y\nreturn {result}"


def fibonacci_formula(rng: Random) -> Draft:
    word, start = rng.choice([("Fibonacci", "0,1"), ("Fibonacci", "0,1"), ("F", "0,1"), ("Lucas", "2,1")])
    k, j, c = rng.choice([1, 1, 2, 3, rng.randint(2, 9)]), rng.choice([0, 0, 1, rng.randint(1, 9)]), rng.randint(1, 12)
    index = joined([(k, "n"), (j, "")]).replace(" ", "")
    core = f"{word}({index})"
    text, result = rng.choice([
        (core, "x"), (core, "x"), (f"{core} + {c}", f"x+{c}"), (f"{core} - {c}", f"x-{c}"), (f"{c}*{core}", f"{c}*x"),
        (f"n*{core}", "n*x"), (f"{core} + n", "x+n"), (f"{core}^{c % 4 + 2}", f"x**{c % 4 + 2}"),
        (f"floor({core}/{c + 1})", f"x//{c + 1}"), (f"{core} mod {c + 1}", f"x%{c + 1}"), (f"{core}*2^n", "x*2**n"),
        (f"2^n - {core}", "2**n-x"), (f"{core} + 2^n", "x+2**n"), (f"n!*{core}", "math.factorial(n)*x"),
        (f"{core} - n", "x-n"), (f"{core}*{word}({index}+1)", "x*y"),
    ])  # fmt: skip
    name = rng.choice([
        f"a(n) = {text}.", f"a(n) = {text}.", f"{text}.",
        f"a(n) = {text}" + (", where F() = Fibonacci numbers." if word == "F" else "."),
    ])  # fmt: skip
    return Draft(name, 0, program(FIBONACCI_CODE.format(start=start, count=index, result=result)))


def factorial_recurrence(rng: Random) -> Draft:
    """a(n) = n*a(n-1) + 1 and relatives."""
    first = rng.choice([0, 0, 1])
    c, b, x = rng.randint(1, 9), rng.randint(2, 9), rng.choice([0, 1, 1, 2])
    lead, lead_py = rng.choice([
        ("n", "i"), ("n", "i"), (f"{b}*n", f"{b}*i"), (f"(n+{c})", f"(i+{c})"), ("n^2", "i*i"),
        (f"({b}*n-1)", f"({b}*i-1)"), ("(n-1)", "(i-1)"), ("", ""), ("", ""), (str(b), str(b)),
    ])  # fmt: skip
    extra, extra_py = rng.choice([
        ("+ 1", "+1"), ("- 1", "-1"), (f"+ {c}", f"+{c}"), ("+ n", "+i"), ("+ n^2", "+i*i"), (f"+ {b}^n", f"+{b}**i"),
        (f"+ n*{b}^(n-1)", f"+i*{b}**(i-1)"), ("+ n!", "+math.factorial(i)"), ("+ (-1)^n", "+(-1)**i"),
        (f"+ {c}*n", f"+{c}*i"), (f"+ n^{b}", f"+i**{b}"), ("+ n^n", "+i**i"),
    ])  # fmt: skip
    dot = "*" if lead else ""
    right = rng.choice([
        f"{lead}{dot}a(n-1) {extra}", f"{lead}{dot}a(n-1) {extra}",
        f"{extra[2:]} + {lead}{dot}a(n-1)" if extra[0] == "+" else f"{lead}{dot}a(n-1) {extra}",
    ])  # fmt: skip
    name = rng.choice([
        f"a(n) = {right}, with a({first}) = {x}.", f"a(n) = {right}, a({first})={x}.",
        f"a({first}) = {x}; a(n) = {right}.", f"a({first})={x}, a(n) = {right}.",
        f"a({first}) = {x}; for n > {first}, a(n) = {right}.",
    ])  # fmt: skip
    return Draft(
        name, first, program(f"x={x}\nfor i in range({first + 1},n+1): x={lead_py}{dot}x{extra_py}\nreturn x"),
    )  # fmt: skip


def second_order_in_n(rng: Random) -> Draft:
    """a(n) = n*a(n-1) + (n-2)*a(n-2)."""
    first, c = rng.choice([0, 0, 1]), rng.randint(1, 9)
    choices = [
        ("n*", "i*"), ("(n-1)*", "(i-1)*"), ("(n-2)*", "(i-2)*"), (f"(n+{c})*", f"(i+{c})*"), ("", ""),
        (f"{c + 1}*", f"{c + 1}*"), ("n^2*", "i*i*"), (f"{c + 1}*n*", f"{c + 1}*i*"),
    ]  # fmt: skip
    (p, p_py), (q, q_py) = rng.choice(choices[:4] + choices[6:]), rng.choice(choices)
    sign = rng.choice(["+", "+", "+", "-"])
    init = rng.choice([[0, 1], [1, 1], [1, 2], [1, 0], [1, c]])
    right = f"{p}a(n-1) {sign} {q}a(n-2)"
    start = initial_text(rng, init, first)
    name = rng.choice([
        f"a(n) = {right}, with {start}.", f"a(n) = {right}, {start}.", f"{start}; a(n) = {right}.",
        f"{start}, a(n) = {right}.", f"a(n) = {right} for n > {first + 1}, with {start}.",
    ])  # fmt: skip
    return Draft(
        name, first,
        program(f"x,y={init[0]},{init[1]}\nfor i in range({first + 2},n+2): x,y=y,{p_py}y{sign}{q_py}x\nreturn x"),
    )  # fmt: skip


def pisot(rng: Random) -> Draft:
    x = rng.randint(2, 12)
    y = rng.randint(x + 1, 3 * x + 8)
    kind, step = rng.choice([
        ("E", "(2*y*y+x)//(2*x)"), ("T", "y*y//x"), ("L", "-(-y*y//x)"), ("P", "-((x-2*y*y)//(2*x))"),
    ])  # fmt: skip
    rule = {
        "E": "floor(a(n-1)^2/a(n-2) + 1/2)", "T": "floor(a(n-1)^2/a(n-2))", "L": "ceiling(a(n-1)^2/a(n-2))",
        "P": "ceiling(a(n-1)^2/a(n-2) - 1/2)",
    }[kind]  # fmt: skip
    name = rng.choice([
        f"Pisot sequence {kind}({x},{y}).", f"Pisot sequences {kind}({x},{y}).",
        f"Pisot sequence {kind}({x},{y}): a(n) = {rule}.",
        f"Pisot sequence {kind}({x},{y}), a(n) = {rule} for n>1, a(0)={x}, a(1)={y}.",
    ])  # fmt: skip
    return Draft(name, 0, state_code([x, y], step, 0))


def divide_and_conquer(rng: Random) -> Draft:
    p, q, c = rng.randint(1, 5), rng.randint(1, 5), rng.randint(0, 4)
    b = rng.choice([2, 2, 3])
    even, odd = joined([(p, "a(n)")]), joined([(q, "a(n)"), (c, "")])
    if b == 2:
        name = rng.choice([
            f"a(2*n) = {even}, a(2*n+1) = {odd}, with a(0) = 1.", f"a(0) = 1, a(2n) = {even}, a(2n+1) = {odd}.",
        ])  # fmt: skip
        return Draft(
            name, 0,
            "def a(n):\n    if n<1: return 1\n    x=a(n//2)\n    return " + python(
                joined([(q, "x"), (c, "")])
            ) + " if n%2 else " + times(p, "x"),
        )  # fmt: skip
    k = rng.choice(["n", "1", f"n*{q}"])
    name = rng.choice([f"a(n) = {k} + a(floor(n/{p + 1})), a(0) = 0.", f"a(0) = 0; a(n) = a(floor(n/{p + 1})) + {k}."])
    return Draft(name, 0, f"def a(n): return {k}+a(n//{p + 1}) if n else 0")
