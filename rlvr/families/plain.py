"""Families that ten terms determine (for prompts without a name), famous sequences, and names that tell nothing.

A family is a function `rng -> Draft`; the tables with their weights are in rlvr/synthetic.py. Not meant to be run.
"""

from __future__ import annotations

from rlvr.families.drafts import Draft, Random, bracket, joined, program, signed, small, times
from rlvr.families.formula import periodic
from rlvr.families.number import congruence_draft
from rlvr.families.recurrence import state_code, step_of


def plain_power_of_linear(rng: Random) -> Draft:
    p, q, k = rng.randint(1, 16), rng.randint(0, 15), rng.choice([2, 2, 3, 3, 4, 4, 5, 5, 6, 7])
    base = joined([(p, "n"), (q, "")]).replace(" ", "")
    return Draft(
        "", 0, program(f"return {bracket(base)}**{k}" if base == "n" or "+" in base else f"return ({base})**{k}"),
    )  # fmt: skip


def plain_polynomial(rng: Random) -> Draft:
    """Linear and quadratic, written by falling powers; n*(n+b)*c/2 for half-integral ones."""
    offset, half = rng.choice([0, 0, 1]), rng.random() < 0.25
    a, b, c = rng.choice([0, 0, 1, 1, 2, 3, rng.randint(0, 12)]), rng.choice([
        0, 1, 2, 3, rng.randint(-9, 12), small(rng),
    ]), rng.choice([0, 1, 1, 2, rng.randint(-9, 20), small(rng)])  # fmt: skip
    if half:
        a, b = rng.randint(1, 15), rng.randint(-15, 15)
        b += (a + b) % 2
        text = joined([(a, "n**2"), (b, "n")]).replace(" ", "")
        return Draft(
            "", offset, program(f"return ({text})//2{signed(c).replace(' ', '') if rng.random() < 0.4 else ''}"),
        )  # fmt: skip
    cubic = rng.choice([0, 0, 0, 1, 1, 2, rng.randint(1, 6)]) if a else 0
    return Draft(
        "", offset, program("return " + joined([(cubic, "n**3"), (a, "n**2"), (b, "n"), (c, "")]).replace(" ", "")),
    )  # fmt: skip


def plain_geometric(rng: Random) -> Draft:
    b, k, c = rng.choice([2, 3, rng.randint(2, 12)]), rng.choice([
        1, 1, 1, 2, 3, rng.randint(1, 9),
    ]), rng.choice([0, 0, 1, -1, rng.randint(-9, 20)])  # fmt: skip
    text = times(k, f"{b}**n") + (
        signed(c).replace(" ", "") if rng.random() < 0.85 else rng.choice(["+n", "-n", f"+{rng.randint(1, 9)}**n"])
    )  # fmt: skip
    return Draft("", rng.choice([0, 0, 0, 1]), program(f"return {text}"))


def plain_recurrence(rng: Random) -> Draft:
    order = rng.choice([2, 2, 2, 3])
    if order == 3:
        coefficients, init = [rng.choice([0, 1, 2, 3, -1]) for _ in range(2)] + [rng.choice([1, 1, 2, -1])], [
            rng.choice([0, 0, 1, 1, 2, 3]) for _ in range(3)
        ]  # fmt: skip
    else:
        coefficients, init = [
            rng.choice([1, 1, 2, 3, 4, rng.randint(1, 12)]), rng.choice([1, 1, -1, 2, rng.randint(-6, 6) or 1]),
        ], [rng.choice([0, 1, 1, 2, rng.randint(0, 12)]) for _ in range(2)]  # fmt: skip
    first = rng.choice([0, 0, 0, 1])
    return Draft("", first, state_code(init, step_of(coefficients), first))


def plain_periodic(rng: Random) -> Draft:
    return periodic(rng)


def plain_congruence(rng: Random) -> Draft:
    m = rng.randint(2, 16)
    residues = sorted(rng.sample(range(m), rng.randint(1, min(5, m - 1))))
    return congruence_draft("", m, residues, rng.choice([0, 1, 1, 1]))


def plain_floor(rng: Random) -> Draft:
    p, q = rng.randint(1, 12), rng.randint(2, 12)
    top = rng.choice(["n", f"{p}*n", f"{p}*n", "n**2", "n*(n-1)", "n*(n-1)*(n-2)"])
    return Draft("", 0, program(f"return {top}//{q}"))


def plain_binomial(rng: Random) -> Draft:
    k = rng.randint(2, 9)
    return rng.choice([
        Draft("", 0, program(f"return math.comb(n+{k},{k})")), Draft("", k, program(f"return math.comb(n,{k})")),
        Draft("", 0, program(f"return n*(n+{k})*(n+{rng.randint(1, 9)})")),
        Draft("", 0, program(f"return {k}*n*(n+1)")), Draft("", 0, program(f"return n**{k}+{rng.randint(1, 12)}")),
        Draft("", 0, program(f"return (n+{k})**2-{rng.randint(0, 9)}")),
    ])  # fmt: skip


VAGUE_SUBJECTS = ["triangle", "array", "square array", "table", "number wall"]


def vague_name(rng: Random) -> str:
    """A name from which the rule cannot be read, with a made-up reference."""
    ref = f"A{rng.randint(0, 99999):06d}"
    word = rng.choice([
        "First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Main diagonal", "Row sums", "Partial sums",
        "Bisection", "First differences", "Column 2", "Column 3",
    ])  # fmt: skip
    return rng.choice([
        f"{word} of {rng.choice(VAGUE_SUBJECTS)} {ref}.", f"{word} of {ref}.", f"Sequence b(n) mentioned in {ref}.",
        f"a(n) = T(n, {rng.randint(0, 9)}), array T given by {ref}.",
        f"{word} column of {rng.choice(VAGUE_SUBJECTS)} {ref}.",
        f"Number of ways to tile a 2 X n board with {rng.randint(2, 9)} kinds of pieces.",
        f"Number of walks of length n on a graph with {rng.randint(2, 9)} nodes.", f"A sequence related to {ref}.",
        "Number of binary words of length n that avoid a pattern.", f"Row sums of {ref}.",
        f"Number of n X {rng.randint(2, 5)} binary arrays with a condition on neighbours.",
        "Denominators of a continued fraction.", f"Convolution of {ref} with {ref}.",
        f"Number of compositions of n with {rng.randint(2, 5)} kinds of parts.",
        f"Dimension of the space of weight 2n forms for Gamma_0({rng.randint(2, 99)}).",
        f"Inverse binomial transform of {ref}.", f"Partial sums of {ref}.",
        "Number of nodes in a growing structure after n steps.",
        f"Molien series for a group of order {rng.randint(2, 99)}.",
    ])  # fmt: skip


FIB = "x,y={}\nfor _ in range(n): x,y=y,{}\nreturn x"


CLASSICS: list[tuple[tuple[str, ...], int, str]] = [
    (
        ("Fibonacci numbers.", "Fibonacci numbers: F(n) = F(n-1) + F(n-2) with F(0) = 0 and F(1) = 1."), 0,
        FIB.format("0,1", "x+y"),
    ),
    (("Lucas numbers.", "Lucas numbers beginning at 2."), 0, FIB.format("2,1", "x+y")),
    (("Pell numbers.", "Pell numbers: a(n) = 2*a(n-1) + a(n-2)."), 0, FIB.format("0,1", "2*y+x")),
    (("Jacobsthal numbers.", "Jacobsthal sequence: a(n) = a(n-1) + 2*a(n-2)."), 0, FIB.format("0,1", "y+2*x")),
    (("Jacobsthal-Lucas numbers.",), 0, FIB.format("2,1", "y+2*x")),
    (("Pell-Lucas numbers.", "Companion Pell numbers."), 0, FIB.format("2,2", "2*y+x")),
    (("Numerators of continued fraction convergents to sqrt(2).",), 0, FIB.format("1,3", "2*y+x")),
    (("Catalan numbers.", "Catalan numbers: C(n) = binomial(2n,n)/(n+1)."), 0, "return math.comb(2*n,n)//(n+1)"),
    (
        ("Central binomial coefficients.", "Central binomial coefficients: binomial(2*n,n)."), 0,
        "return math.comb(2*n,n)",
    ),
    (
        ("Factorial numbers: n!.", "Factorial numbers: n! = 1*2*3*4*...*n.", "Factorials."), 0,
        "return math.factorial(n)",
    ),
    (("Triangular numbers.", "Triangular numbers: a(n) = binomial(n+1,2) = n*(n+1)/2."), 0, "return n*(n+1)//2"),
    (("The squares: a(n) = n^2.", "Square numbers."), 0, "return n**2"),
    (("The cubes: a(n) = n^3.", "Cubes."), 0, "return n**3"),
    (("The nonnegative integers.", "The natural numbers."), 0, "return n"),
    (("The odd numbers: a(n) = 2*n + 1.", "Odd numbers."), 0, "return 2*n+1"),
    (("The even numbers: a(n) = 2*n.", "The nonnegative even numbers."), 0, "return 2*n"),
    (
        ("Tetrahedral numbers.", "Tetrahedral (or triangular pyramidal) numbers: n*(n+1)*(n+2)/6."), 0,
        "return n*(n+1)*(n+2)//6",
    ),
    (("Square pyramidal numbers.", "Square pyramidal numbers: n*(n+1)*(2*n+1)/6."), 0, "return n*(n+1)*(2*n+1)//6"),
    (("Oblong (or pronic) numbers: n*(n+1).", "Pronic numbers.", "Oblong numbers."), 0, "return n*(n+1)"),
    (("Centered square numbers.", "Centered square numbers: 2*n*(n+1) + 1."), 0, "return 2*n*(n+1)+1"),
    (
        ("Hex numbers, or centered hexagonal numbers: 3*n*(n+1)+1.", "Centered hexagonal numbers."), 0,
        "return 3*n*(n+1)+1",
    ),
    (("Star numbers.", "Star numbers: 6*n*(n-1) + 1."), 1, "return 6*n*(n-1)+1"),
    (
        ("Central polygonal numbers: n*(n+1)/2 + 1.", "Maximal number of pieces formed by n cuts of a pancake."), 0,
        "return n*(n+1)//2+1",
    ),
    (
        ("Cake numbers: maximal number of pieces of a cube cut by n planes.", "Cake numbers."), 0,
        "return (n**3+5*n+6)//6",
    ),
    (("Quarter-squares: floor(n^2/4).", "Quarter-squares."), 0, "return n**2//4"),
    (("Pentagonal numbers: n*(3*n-1)/2.", "Pentagonal numbers."), 0, "return n*(3*n-1)//2"),
    (("Hexagonal numbers: n*(2*n-1).", "Hexagonal numbers."), 0, "return n*(2*n-1)"),
    (("Second pentagonal numbers: n*(3*n+1)/2.",), 0, "return n*(3*n+1)//2"),
    (("Octahedral numbers.", "Octahedral numbers: n*(2*n^2+1)/3."), 0, "return n*(2*n**2+1)//3"),
    (("Stella octangula numbers: n*(2*n^2-1).",), 0, "return n*(2*n**2-1)"),
    (("Pentatope numbers.", "Pentatope numbers: binomial(n+3,4)."), 0, "return math.comb(n+3,4)"),
    (
        ("Bell numbers.", "Bell or exponential numbers: number of ways to partition a set of n labeled elements."), 0,
        "r=[1]\nfor _ in range(n):\n    s=[r[-1]]\n    for v in r: s.append(s[-1]+v)\n    r=s\nreturn r[0]",
    ),
    (("Motzkin numbers.",), 0, "return sum(math.comb(n,2*k)*math.comb(2*k,k)//(k+1) for k in range(n//2+1))"),
    (
        ("Derangements.", "Subfactorial numbers: number of permutations of n elements with no fixed points."), 0,
        "x=1\nfor i in range(1,n+1): x=i*x+(-1)**i\nreturn x",
    ),
    (
        ("Number of involutions on n letters.", "Number of self-inverse permutations on n letters."), 0,
        "x,y=1,1\nfor i in range(1,n+1): x,y=y,y+i*x\nreturn x",
    ),
    (
        ("Double factorial of odd numbers.", "Double factorial of odd numbers: (2*n-1)!! = 1*3*5*...*(2*n-1)."), 0,
        "return math.prod(range(1,2*n,2))",
    ),
    (("Double factorials: a(n) = n!!.", "Double factorial numbers: n!!."), 0, "return math.prod(range(n,0,-2))"),
    (("Double factorial of even numbers: (2n)!! = 2^n*n!.",), 0, "return 2**n*math.factorial(n)"),
    (("Number of labeled trees on n nodes: n^(n-2).",), 1, "return n**(n-2) if n>1 else 1"),
    (("a(n) = n^n.", "Number of functions from n labeled points to themselves: n^n."), 0, "return n**n"),
    (("Central Delannoy numbers.",), 0, "return sum(math.comb(n,k)*math.comb(n+k,k) for k in range(n+1))"),
    (("Large Schroeder numbers.",), 0, "return sum(math.comb(n+k,2*k)*math.comb(2*k,k)//(k+1) for k in range(n+1))"),
    (
        ("Central trinomial coefficients: largest coefficient of (1+x+x^2)^n.", "Central trinomial coefficients."), 0,
        "return sum(math.comb(n,2*k)*math.comb(2*k,k) for k in range(n//2+1))",
    ),
    (("Franel numbers: Sum_{k=0..n} binomial(n,k)^3.",), 0, "return sum(math.comb(n,k)**3 for k in range(n+1))"),
    (
        ("Apery numbers: Sum_{k=0..n} (binomial(n,k)*binomial(n+k,k))^2.",), 0,
        "return sum((math.comb(n,k)*math.comb(n+k,k))**2 for k in range(n+1))",
    ),
    (("Left factorials: !n = Sum_{k=0..n-1} k!.",), 0, "return sum(math.factorial(k) for k in range(n))"),
    (
        ("Number of arrangements of subsets of an n-set: Sum_{k=0..n} n!/k!.",), 0,
        "return sum(math.perm(n,k) for k in range(n+1))",
    ),
    (
        ("Padovan sequence: a(n) = a(n-2) + a(n-3), a(0)=1, a(1)=a(2)=0.",), 0,
        "x,y,z=1,0,0\nfor _ in range(n): x,y,z=y,z,x+y\nreturn x",
    ),
    (
        ("Perrin sequence: a(n) = a(n-2) + a(n-3), a(0)=3, a(1)=0, a(2)=2.",), 0,
        "x,y,z=3,0,2\nfor _ in range(n): x,y,z=y,z,x+y\nreturn x",
    ),
    (
        ("Narayana's cows sequence: a(n) = a(n-1) + a(n-3), a(0)=a(1)=a(2)=1.",), 0,
        "x,y,z=1,1,1\nfor _ in range(n): x,y,z=y,z,x+z\nreturn x",
    ),
    (
        ("Tribonacci numbers.", "Tribonacci numbers: a(n) = a(n-1) + a(n-2) + a(n-3)."), 0,
        "x,y,z=0,0,1\nfor _ in range(n): x,y,z=y,z,x+y+z\nreturn x",
    ),
    (("Ruler function: the 2-adic valuation of 2n.", "The ruler function."), 1, "return (n&-n).bit_length()"),
    (("Highest power of 2 dividing n.",), 1, "return n&-n"),
    (("Integer part of square root of n.", "Square root of n rounded down."), 0, "return math.isqrt(n)"),
    (("Mersenne numbers 2^n - 1.", "a(n) = 2^n - 1."), 0, "return 2**n-1"),
    (("Parity of n.", "Period 2: repeat [0, 1]."), 0, "return n%2"),
    (
        (
            "Characteristic function of squares.",
            "Characteristic function of squares: 1 if n is a square, otherwise 0.",
        ),
        0, "return int(math.isqrt(n)**2==n)",
    ),
    (
        ("Least common multiple (or LCM) of {1, 2, ..., n}.", "a(n) = lcm{1,2,...,n}."), 0,
        "return math.lcm(*range(1,n+1))",
    ),
    (
        (
            "Number of steps to reach 1 in '3x+1' problem.",
            "Number of halving and tripling steps to reach 1 in the Collatz problem.",
        ),
        1, "c=0\nwhile n>1: n,c=3*n+1 if n%2 else n//2,c+1\nreturn c",
    ),
    (("Cullen numbers: n*2^n + 1.",), 0, "return n*2**n+1"), (("Woodall numbers: n*2^n - 1.",), 1, "return n*2**n-1"),
    (("Repunits: (10^n - 1)/9.", "Repunits."), 0, "return (10**n-1)//9"),
    (("Number of distinct terms in the expansion of a square: n*(n+3)/2.",), 0, "return n*(n+3)//2"),
    (("Sum of all digits from 1 to n in decimal.",), 0, "return sum(sum(map(int,str(k))) for k in range(n+1))"),
    (
        ("Sylvester's sequence: a(n+1) = a(n)^2 - a(n) + 1, with a(0) = 2.",), 0,
        "x=2\nfor _ in range(n): x=x*x-x+1\nreturn x",
    ),
    (("Number of diagonals of an n-gon: n*(n-3)/2.",), 3, "return n*(n-3)//2"),
    (("Sum of the digits of n.",), 0, "return sum(map(int,str(n)))"),
    (
        ("Number of regions by joining n points on a circle: 1 + C(n,2) + C(n,4).",), 0,
        "return 1+math.comb(n,2)+math.comb(n,4)",
    ),
    (("Magic constants: n*(n^2+1)/2.",), 0, "return n*(n**2+1)//2"),
    (("Rencontres numbers with one fixed point.",), 1, "x=1\nfor i in range(1,n): x=i*x+(-1)**i\nreturn n*x"),
    (
        ("Stern's diatomic series: a(0)=0, a(1)=1; a(2*n)=a(n), a(2*n+1)=a(n)+a(n+1).",), 0,
        "x,y=1,0\nwhile n:\n    if n%2: y+=x\n    else: x+=y\n    n//=2\nreturn y",
    ),
    (("Lower Wythoff sequence: floor(n*phi).",), 1, "return (n+math.isqrt(5*n*n))//2"),
    (("Upper Wythoff sequence: floor(n*phi^2).",), 1, "return (3*n+math.isqrt(5*n*n))//2"),
    (("Number of squares on an n X n chessboard.",), 0, "return n*(n+1)*(2*n+1)//6"),
    (
        ("Golomb's sequence: a(n) is the number of times n occurs.",), 1,
        "s=[0,1]\nfor i in range(2,n+1): s.append(1+s[i-s[s[i-1]]])\nreturn s[n]",
    ),
]  # fmt: skip


def classic(rng: Random) -> Draft:
    names, offset, body = rng.choice(CLASSICS)
    return Draft(rng.choice(names), offset, program(body))
