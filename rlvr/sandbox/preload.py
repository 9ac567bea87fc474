"""What the workers of each tier have loaded before they are locked in, and which modules another tier has.

With files denied, an import of a module that is not loaded fails, and a good program with it, in silence: functions of
sympy import when they are called, the compiler does (`unicodedata`), the codecs do. A fork costs in proportion to what
is loaded, so there are three tiers, and a program goes on to the next one when it asks for what only that one has:
    light   what nearly every program needs
    heavy   numpy, sympy and mpmath with all that their ordinary functions import, and more of the standard library
    whole   every module of the three packages, and all that any of these imports
What a tier has is fixed, whatever the programs before have asked for. Standard library only; loaded by zygotes.
"""

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Callable, Iterator

from rlvr.sandbox import candidate

PACKAGES = ("numpy", "sympy", "mpmath")
NEXT_TIER = {"light": "heavy", "heavy": "whole"}

LIGHT_MODULES = """
    math cmath fractions decimal numbers itertools functools operator statistics random collections collections.abc
    heapq bisect string re typing copy enum abc types time contextlib __future__ builtins io os sys gc
    unicodedata linecache tokenize tracemalloc encodings.ascii encodings.latin_1
"""
WIDE_MODULES = """
    dataclasses textwrap array struct datetime calendar hashlib json warnings weakref inspect pprint traceback
    keyword zlib base64 secrets queue threading reprlib ast dis importlib importlib.util
    graphlib codecs atexit signal mmap _strptime
"""
HEAVY_MODULES = """
    numpy numpy.linalg numpy.fft numpy.random numpy.polynomial numpy.polynomial.polynomial numpy.lib numpy.ma
    mpmath sympy sympy.abc sympy.ntheory sympy.ntheory.factor_ sympy.ntheory.continued_fraction
    sympy.ntheory.egyptian_fraction sympy.functions.combinatorial.numbers sympy.combinatorics
    sympy.combinatorics.partitions sympy.utilities.iterables sympy.polys sympy.series sympy.series.sequences
    sympy.concrete sympy.matrices sympy.solvers sympy.solvers.recurr sympy.sets sympy.logic sympy.discrete
    sympy.integrals sympy.simplify sympy.core.numbers sympy.solvers.diophantine sympy.parsing.sympy_parser
    sympy.assumptions.facts sympy.assumptions.handlers.calculus sympy.assumptions.handlers.common
    sympy.assumptions.handlers.matrices sympy.assumptions.handlers.ntheory sympy.assumptions.handlers.order
    sympy.assumptions.handlers.sets sympy.assumptions.lra_satask sympy.assumptions.predicates.matrices
    sympy.assumptions.predicates.sets sympy.assumptions.satask sympy.combinatorics.fp_groups
    sympy.combinatorics.coset_table sympy.combinatorics.galois sympy.combinatorics.homomorphisms
    sympy.discrete.recurrences sympy.integrals.prde sympy.integrals.rde sympy.logic.algorithms.dpll
    sympy.logic.algorithms.dpll2 sympy.logic.algorithms.lra_theory sympy.logic.algorithms.minisat22_wrapper
    sympy.logic.algorithms.pycosat_wrapper sympy.logic.algorithms.z3_wrapper sympy.matrices.expressions.applyfunc
    sympy.polys.dispersion sympy.polys.distributedmodules sympy.polys.domains.old_polynomialring
    sympy.polys.domains.old_fractionfield sympy.polys.domains.quotientring
    sympy.polys.numberfields.resolvent_lookup sympy.sets.handlers.add sympy.sets.handlers.functions
    sympy.sets.handlers.mul sympy.sets.handlers.power sympy.tensor.array.array_derivatives
    sympy.tensor.array.expressions
"""
WHOLE_MODULES = """
    code doctest glob gzip pydoc xml xml.dom xml.dom.minidom
"""
NO_MODULES_OF_USE = frozenset(
    """
    __main__ _pyinstaller benchmarks conftest distutils f2py mypy_plugin pygletplot setup tests this
    """.split()  # noqa: SIM905
)
"""Parts of names in the three packages: tests and scripts, and what compiles or draws, which no candidate can."""

WARM_LIGHT = """
import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
@lru_cache(maxsize=None)
def f(n: int) -> int:
    return n if n < 2 else f(n - 1) + f(n - 2)
def a(n):
    x = [str(Fraction(1, 3) + Fraction(2, 5)), str(Decimal(2).sqrt()), f"{n}", math.isqrt(n)]
    return sum(math.comb(n, k) for k in range(n + 1) if k % 2 == 0) + f(n) // n
"""
WARM_HEAVY = """
from sympy import *
import numpy as np, mpmath, sympy as sp
x, n, k, y = sp.symbols("x n k y")
f = sp.Function("f")
CALLS = [
    lambda: np.fft.fft(np.arange(4)), lambda: np.random.seed(1), lambda: np.random.default_rng(1).integers(5),
    lambda: np.polynomial.Polynomial([1, 2]).roots(), lambda: np.linalg.det(np.eye(2)), lambda: np.unique(np.ones(2)),
    lambda: np.linalg.matrix_power(np.array([[1, 1], [1, 0]], dtype=object), 5), lambda: np.array2string(np.arange(3)),
    lambda: np.convolve([1, 2], [1, 2]), lambda: np.roots([1, 0, -1]), lambda: np.cumsum(np.arange(3)) % 2,
    lambda: mpmath.zeta(3), lambda: mpmath.nstr(mpmath.pi), lambda: mpmath.findroot(lambda t: t * t - 2, 1),
    lambda: prime(30), lambda: primepi(100), lambda: factorint(2**31 * 91), lambda: factorint(1000003 * 1000033),
    lambda: divisors(60), lambda: isprime(97), lambda: divisor_sigma(12), lambda: totient(12), lambda: mobius(30),
    lambda: list(primerange(5, 20)), lambda: nextprime(10), lambda: primitive_root(7), lambda: n_order(2, 7),
    lambda: binomial(10, 3), lambda: fibonacci(30), lambda: lucas(5), lambda: catalan(5), lambda: bell(5),
    lambda: bernoulli(6), lambda: euler(4), lambda: partition(10), lambda: integrate(x**2 * sin(x), (x, 0, 1)),
    lambda: simplify(sin(x) ** 2 + cos(x) ** 2), lambda: factor(x**2 - 1), lambda: expand((x + 1) ** 3),
    lambda: solve(x**2 - 2, x), lambda: series(exp(x), x, 0, 4), lambda: Poly(x**2 - 1, x).all_coeffs(),
    lambda: Sum(k, (k, 1, n)).doit(), lambda: Product(k, (k, 1, 4)).doit(), lambda: limit(sin(x) / x, x, 0),
    lambda: diff(x**3, x), lambda: rsolve(f(n + 1) - 2 * f(n), f(n), {f(0): 1}), lambda: Matrix([[1, 1], [1, 0]]) ** 5,
    lambda: Matrix([[2, 1], [1, 1]]).det(), lambda: sqrt(8).evalf(20), lambda: floor(sqrt(5) * 3), lambda: N(pi, 30),
    lambda: sympify("2*x+1"), lambda: lambdify(x, x**2)(3), lambda: str(Rational(1, 3)), lambda: nsimplify(0.5),
    lambda: interpolate([1, 4, 9], x), lambda: ceiling(log(10)), lambda: gcd(12, 18), lambda: lcm(4, 6),
    lambda: Mod(7, 3), lambda: apart(1 / (x * (x + 1)), x), lambda: cyclotomic_poly(6, x), lambda: chebyshevt(4, x),
    lambda: legendre(3, x), lambda: list(sp.utilities.iterables.partitions(4)), lambda: harmonic(5),
    lambda: list(sp.utilities.iterables.multiset_permutations([1, 1, 2])), lambda: discrete_log(41, 15, 7),
    lambda: factorial2(7), lambda: subfactorial(5), lambda: continued_fraction_periodic(0, 1, 7),
    lambda: jacobi_symbol(2, 7), lambda: sqrt_mod(2, 7), lambda: multiplicity(2, 8), lambda: composite(5),
    lambda: sp.ntheory.modular.crt([3, 5], [2, 3]), lambda: reduced_totient(12), lambda: primorial(4),
    lambda: linsolve([x + y - 1, x - y], [x, y]), lambda: int(np.sum(np.arange(5))) + Integer(3) ** 2 // 2,
    lambda: resultant(x**2 - 1, x - 1, x), lambda: discriminant(x**2 - 2, x), lambda: Piecewise((1, x > 0), (0, True)),
    lambda: hyper([1], [2], 1).evalf(), lambda: gamma(5) + zeta(2), lambda: integer_nthroot(27, 3),
]
def a(n):
    try:
        CALLS[n]()
    except (NameError, AttributeError):  # another version of sympy: its loss
        return 0
    return 1
"""


def warm_up(tier: str) -> None:
    """Run candidates here once, so that what is imported or allocated on first use is there for every fork."""
    runs = [(WARM_LIGHT, range(1, 4)), ("def a(n): return n / 0", range(1)), ("def a(n) return", range(1))]
    if tier != "light":
        runs.append((WARM_HEAVY, range(WARM_HEAVY.count("lambda: "))))
    for source, calls in runs:
        candidate.run(source.encode(), list(calls), lambda data: None)
        sys.modules.pop(candidate.MODULE_NAME, None)


def submodules(package: str) -> Iterator[str]:
    """Give the dotted names of all modules of a package that is loaded, at any depth. Imports none of them."""
    import pkgutil  # which the light tier need not carry

    todo = [(package, list(sys.modules[package].__path__))]
    while todo:
        parent, folders = todo.pop()
        for found in pkgutil.iter_modules(folders):
            if found.name not in NO_MODULES_OF_USE:
                name = f"{parent}.{found.name}"
                yield name
                if found.ispkg:
                    todo.append((name, [os.path.join(folder, found.name) for folder in folders]))


def prepare(tier: str) -> None:
    """Import and warm up a tier."""
    candidate.silence()
    sys.setrecursionlimit(candidate.RECURSION_LIMIT)
    names = LIGHT_MODULES.split()
    if "_pylong" in sys.stdlib_module_names:  # from Python 3.12 on, arithmetic of great length imports it
        names.append("_pylong")
    if tier != "light":
        names += [*WIDE_MODULES.split(), *PACKAGES]
    for name in names:
        importlib.import_module(name)
    if tier != "light":
        forget_other_packages()
        for name in HEAVY_MODULES.split():
            with contextlib.suppress(ModuleNotFoundError):  # another version of sympy
                importlib.import_module(name)
    if tier == "whole":
        for name in whole_names():
            with contextlib.suppress(Exception):  # some want packages that are not here
                importlib.import_module(name)
    warm_up(tier)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # a first collection costs a heavy fork 3 ms; most programs need none


def forget_other_packages() -> None:
    """Take the folders of PACKAGES off the path: what else is installed there shall change no score."""
    folders = {os.path.dirname(folder) for name in PACKAGES for folder in sys.modules[name].__path__}
    sys.path[:] = [folder for folder in sys.path if folder not in folders]


def whole_names() -> list[str]:
    """Give what the whole tier loads beyond the heavy one."""
    names = [name for package in ("encodings", *PACKAGES) for name in submodules(package)]
    return WHOLE_MODULES.split() + sorted(names)


def elsewhere(tier: str) -> Callable[[str], bool] | None:
    """Give the test whether a module that a prepared tier lacks may be in the next one; None for the last tier."""
    if tier == "light":
        roots = frozenset((*PACKAGES, *sys.stdlib_module_names))
        return lambda name: name.partition(".")[0] in roots
    if tier == "heavy":
        return (frozenset(whole_names()) - sys.modules.keys()).__contains__
    return None
