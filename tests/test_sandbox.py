"""The sandbox and honest programs: values, limits, agreement, modules, systems without isolation.

Real processes throughout; no assertion looks at a clock. Run: python -m pytest tests/test_sandbox.py
"""

import ast
import importlib
import math
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from processes import NS, PRIMES, children, job

from rlvr.errors import RlvrError
from rlvr.sandbox import preload
from rlvr.sandbox.grader import Job, Sandbox

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"), reason="isolation needs Linux"
)


AMPLE = {"first_pass_s": 5.0, "second_pass_s": 20.0, "second_pass_budget_s": 100.0}
"""CPU seconds for programs that come to their end by themselves: a slow machine shall not end them before."""


@pytest.fixture(scope="module")
def sandbox():
    before = children()  # another test's sandbox may be alive in this process
    with Sandbox(**AMPLE) as sandbox:
        yield sandbox
    assert set(children()) <= set(before)


# ---------------------------------------------------------------------------------------------------------------------
# Honest programs
# ---------------------------------------------------------------------------------------------------------------------
def fibonacci(n: int) -> int:
    x, y = 0, 1
    for _ in range(n):
        x, y = y, x + y
    return x


def sigma(n: int) -> int:
    return sum(d for d in range(1, n + 1) if n % d == 0)


POSITIVE = range(1, 21)
HONEST_LIGHT = {
    "one line": job("def a(n): return n * n", lambda n: n * n),
    "lambda": job("a = lambda n: n + 7", lambda n: n + 7),
    "import inside": job("def a(n):\n    import math\n    return math.comb(2 * n, n)", lambda n: math.comb(2 * n, n)),
    "import at the top": job("import math\ndef a(n): return math.isqrt(n * 7)", lambda n: math.isqrt(n * 7)),
    "star import": job("from math import *\ndef a(n): return factorial(n)", math.factorial),
    "print": job("def a(n):\n    print('debug', n, end='', flush=True)\n    return n", lambda n: n),
    "print to stderr": job(
        "import sys\ndef a(n):\n    print(n, file=sys.stderr)\n    sys.stdout.write('x')\n    return n", lambda n: n
    ),
    "main block": job(
        "def a(n): return n\nif __name__ == '__main__':\n    for i in range(10):\n        print(a(i))", lambda n: n
    ),
    "input is at its end": job(
        "def a(n):\n    try:\n        input()\n    except EOFError:\n        return n", lambda n: n
    ),
    "cached recursion": job(
        """
        from functools import lru_cache
        @lru_cache(maxsize=None)
        def a(n):
            return n if n < 2 else a(n - 1) + a(n - 2)
        """,
        fibonacci,
        range(0, 900, 45),
    ),
    "deep recursion": job("def a(n): return 0 if n == 0 else 1 + a(n - 1)", lambda n: n, (0, 10, 1500, 4000)),
    "deep cached recursion": job(
        "import functools\n@functools.cache\ndef a(n): return 0 if n == 0 else 1 + a(n - 1)",
        lambda n: n,
        (0, 10, 2500),
    ),
    "fractions": job(
        """
        from fractions import Fraction
        def a(n):
            return sum((Fraction(1, k) for k in range(1, n + 1)), Fraction(0)).numerator
        """,
        lambda n: {1: 1, 2: 3, 3: 11, 4: 25, 5: 137}[n],
        range(1, 6),
    ),
    "decimal": job(
        """
        from decimal import Decimal, getcontext
        def a(n):
            getcontext().prec = 60
            return int(Decimal(2).sqrt() * 10 ** n) % 10
        """,
        lambda n: math.isqrt(2 * 10 ** (2 * n)) % 10,
    ),
    "itertools": job(
        """
        import itertools, operator
        def a(n):
            return list(itertools.accumulate(range(1, n + 1), operator.add))[-1]
        """,
        lambda n: n * (n + 1) // 2,
        POSITIVE,
    ),
    "statistics": job("import statistics\ndef a(n): return statistics.median([n, n, 5 * n])", lambda n: n),
    "harmless others": job(
        """
        from __future__ import annotations
        import bisect, collections, heapq, re, string, copy, datetime, json
        from typing import Dict, List, Optional
        def a(n: int) -> int:
            h: List[int] = [3, 1, 2]
            heapq.heapify(h)
            seen: Dict[int, int] = collections.defaultdict(int)
            bisect.insort(h, n)
            assert re.sub("x", "y", "x") == "y" and string.digits and json.dumps([n]) and copy.copy(h)
            return h[0] + len(seen)
        """,
        lambda n: min(n, 1),
    ),
    "dataclass": job(
        """
        from __future__ import annotations
        from dataclasses import dataclass, field
        @dataclass(order=True)
        class Pair:
            x: int
            y: int = 2
            z: list[int] = field(default_factory=list)
        def a(n):
            return Pair(n).x + Pair(n).y
        """,
        lambda n: n + 2,
    ),
    "generator": job(
        """
        def terms():
            x = 1
            while True:
                yield x
                x *= 3
        def a(n):
            g = terms()
            for _ in range(n):
                next(g)
            return next(g)
        """,
        lambda n: 3**n,
    ),
    "table in a closure": job(
        """
        def make():
            table = {0: 1}
            def f(n):
                if n not in table:
                    table[n] = 2 * f(n - 1)
                return table[n]
            return f
        a = make()
        """,
        lambda n: 2**n,
    ),
    "sieve at the top level": job(
        """
        N = 200000
        sieve = bytearray([1]) * N
        for i in range(2, 450):
            if sieve[i]:
                sieve[i * i::i] = bytes(len(range(i * i, N, i)))
        primes = [i for i in range(2, N) if sieve[i]]
        def a(n):
            return primes[n]
        """,
        lambda n: PRIMES[n],
    ),
    "class with __call__": job("class A:\n    def __call__(self, n): return n % 3\na = A()", lambda n: n % 3),
    "negative terms": job("def a(n): return (-1) ** n * n", lambda n: (-1) ** n * n),
    "keyword of its own": job("def a(n, cache={}):\n    cache[n] = n\n    return cache[n]", lambda n: n),
    "enum": job("import enum\nclass C(enum.IntEnum):\n    X = 4\ndef a(n): return C.X", lambda n: 4),
    "__import__": job("def a(n): return __import__('math').gcd(n, 12)", lambda n: math.gcd(n, 12)),
    "hidden sympy": job("def a(n): return int(__import__('sym' + 'py').prime(n + 1))", lambda n: PRIMES[n]),
    "random but right": job("import random\ndef a(n): return 0 * random.random() or n", lambda n: n),
    "exact arithmetic of great length": job(
        "def a(n): return 7 ** (1000 * n)", lambda n: 7 ** (1000 * n), range(0, 10)
    ),
}
HONEST_HEAVY = {
    "from sympy import *": job("from sympy import *\ndef a(n): return prime(n + 1)", lambda n: PRIMES[n]),
    "primepi": job("import sympy\ndef a(n): return sympy.primepi(n)", lambda n: sum(p <= n for p in PRIMES)),
    "factorint": job(
        "import sympy\ndef a(n): return sum(sympy.factorint(n).values())",
        lambda n: [0, 1, 1, 2, 1, 2, 1, 3][n - 1],
        range(1, 9),
    ),
    "divisors": job("from sympy import divisors\ndef a(n): return sum(divisors(n))", sigma, POSITIVE),
    "divisor_sigma": job("from sympy import divisor_sigma as s\ndef a(n): return s(n, 1)", sigma, POSITIVE),
    "isprime": job("from sympy import isprime\ndef a(n): return int(isprime(n))", lambda n: int(n in PRIMES)),
    "binomial": job("from sympy import binomial\ndef a(n): return binomial(2 * n, n)", lambda n: math.comb(2 * n, n)),
    "sympy fibonacci": job("from sympy import fibonacci\ndef a(n): return fibonacci(n)", fibonacci),
    "totient and friends": job(
        "from sympy import totient, mobius, lcm, gcd\ndef a(n): return totient(n) + 0 * mobius(n) * lcm(n, gcd(n, 2))",
        lambda n: sum(math.gcd(n, k) == 1 for k in range(1, n + 1)),
        POSITIVE,
    ),
    "simplify": job(
        "from sympy import *\nx = symbols('x')\ndef a(n): return simplify((x**2 - 1) / (x - 1)).subs(x, n)",
        lambda n: n + 1,
    ),
    "integrate": job(
        "from sympy import *\nx = symbols('x')\ndef a(n): return integrate(2 * x, (x, 0, n))", lambda n: n * n
    ),
    "solve": job(
        "from sympy import *\nx = symbols('x')\ndef a(n): return solve(x - 3 * n, x)[0]", lambda n: 3 * n, range(5)
    ),
    "series": job(
        "from sympy import *\nx = symbols('x')\ndef a(n): return Poly(expand((1 + x) ** 10), x).all_coeffs()[n]",
        lambda n: math.comb(10, n),
        range(10),
    ),
    "summation": job(
        "from sympy import *\nk = symbols('k')\ndef a(n): return summation(k, (k, 1, n))",
        lambda n: n * (n + 1) // 2,
        range(8),
    ),
    "matrix power": job("from sympy import Matrix\ndef a(n): return (Matrix([[1, 1], [1, 0]]) ** n)[0, 1]", fibonacci),
    "floor of an irrational": job(
        "from sympy import floor, sqrt\ndef a(n): return floor(n * sqrt(2))", lambda n: math.isqrt(2 * n * n)
    ),
    "sympy Integer": job("from sympy import Integer\ndef a(n): return Integer(n) ** 5", lambda n: n**5),
    "numpy sum": job("import numpy as np\ndef a(n): return np.sum(np.arange(n + 1))", lambda n: n * (n + 1) // 2),
    "numpy integer": job("import numpy as np\ndef a(n): return np.int64(n) * np.int32(3)", lambda n: 3 * n),
    "numpy object matrix": job(
        "import numpy as np\n"
        "m = np.array([[1, 1], [1, 0]], dtype=object)\ndef a(n): return np.linalg.matrix_power(m, n)[0][1]",
        fibonacci,
        range(0, 200, 20),
    ),
    "numpy scalar array": job("import numpy as np\ndef a(n): return np.array(n)", lambda n: n),
    "mpmath": job(
        "from mpmath import mp, floor, pi\nmp.dps = 50\ndef a(n): return int(floor(pi * 10**n)) % 10",
        lambda n: int(str(31415926535897932384)[n]),
    ),
    "numpy fft and roots": job(
        "import numpy as np\ndef a(n): return int(round(abs(np.fft.fft([n, 0])[0]))) + 0 * len(np.roots([1, 0, -1]))",
        lambda n: n,
    ),
    "sympy submodules": job(
        """
        from sympy.ntheory import factorint, primerange
        from sympy.ntheory.factor_ import core, digits
        from sympy.functions.combinatorial.numbers import stirling, bell, catalan
        from sympy.utilities.iterables import partitions
        from sympy.combinatorics.partitions import Partition
        def a(n):
            return stirling(n, 2) + 0 * sum(1 for _ in partitions(3)) + 0 * bell(3) * catalan(3) + 0 * core(12)
        """,
        lambda n: 2 ** (n - 1) - 1,
        range(2, 12),
    ),
}


def test_honest_programs(sandbox):
    programs = HONEST_LIGHT | HONEST_HEAVY
    results = sandbox.run(list(programs.values()))
    wrong = {
        name: (result.verdict, result.error)
        for name, result in zip(programs, results, strict=True)
        if result.verdict != "ok" or not all(result.matches)
    }
    assert wrong == {}
    assert {result.isolation for result in results} == {sandbox.isolation}
    assert sandbox.infra_counts == {}


def test_imports_are_reported_wherever_they_stand(sandbox):
    code = "import os.path as p, math\ndef a(n):\n    if n > 99:\n        from sys import path\n    return n\n"
    [result, without, relative, called] = sandbox.run(
        [
            job(code, lambda n: n),
            job("def a(n): return n  # import os", lambda n: n),
            job("def a(n):\n    if n < 0:\n        from . import x\n    return n", lambda n: n),
            job("def a(n):\n    if n < 0:\n        __builtins__.__import__('os')\n    return n", lambda n: n),
        ]
    )
    assert (result.verdict, result.imports) == ("ok", ("math", "os", "sys"))
    assert without.imports == ()
    assert relative.imports == (".",)
    assert called.imports == ("__builtins__", "__import__")


def test_values_by_kind(sandbox):
    code = """
    import numpy as np
    from sympy import Integer, Rational, Float
    class I(int):
        def __eq__(self, other): return True
        def __hash__(self): return 0
        def __index__(self): return 99
    VALUES = [5, True, 5.0, "5", None, I(4), np.int64(5), np.bool_(True), Integer(5), Rational(1, 2), Float(5), [5]]
    def a(n): return VALUES[n]
    """
    [result] = sandbox.run([job(code, lambda n: 5, range(12))])
    kinds = [value.kind for value in result.values]
    assert kinds == ["int", "bool", "float", "other", "other", "int", "int", "other", "int", "other", "other", "other"]
    assert [value.value for value in result.values if value.kind == "int"] == [5, 4, 5, 5]
    assert result.matches == tuple(n in (0, 6, 8) for n in range(12))
    assert result.verdict == "wrong"
    assert result.values[3].text == "str '5'"


def test_long_integers_up_to_the_cap(sandbox):
    long = 10**12_000 + 7  # 39,864 bits, more digits than int() takes
    [right, over] = sandbox.run(
        [
            Job("def a(n): return n * (10**12000 + 7)", (1, 2, -1), (long, 2 * long, -long)),
            Job("def a(n): return 1 << 140000", (1,), (1,)),
        ]
    )
    assert right.verdict == "ok"
    assert right.values[0].text == "int of 39864 bits"
    assert (over.verdict, over.values[0].kind) == ("wrong", "other")
    assert over.values[0].text == "int of 140001 bits, more than 131072"
    with pytest.raises(RlvrError, match="ask for at most"):
        sandbox.run([Job("def a(n): return n", tuple(range(10)), (10**12_000,) * 10)])


def test_partial_answers_are_kept(sandbox):
    [raises] = sandbox.run([job("def a(n):\n    assert n < 10, 'too far'\n    return n", lambda n: n)])
    assert raises.verdict == "exception" and "too far" in raises.error
    assert raises.matches == tuple(n < 10 for n in range(20))
    assert raises.values[15].kind == "error"
    [loops] = sandbox.run([job("def a(n):\n    while n > 5: pass\n    return n - 1", lambda n: n)])
    assert loops.verdict == "cpu_timeout" and loops.passes == 1
    assert "missing" in {value.kind for value in loops.values}


def test_has_function_tells_failing_programs_apart(sandbox):
    codes = ["def a(n): return 1 / 0", "x = 1", "def a(n): return n\n1 / 0", "1 / 0", "def a(n) x", "a = 5"]
    results = sandbox.run([job(code, lambda n: n) for code in codes])
    assert [(r.verdict, r.has_function) for r in results] == [
        ("exception", True),
        ("no_function", False),
        ("exception", True),
        ("exception", False),
        ("syntax_error", False),
        ("no_function", False),
    ]


def test_no_inputs_and_equal_jobs(sandbox):
    empty = Job("def a(n): return n", (), ())
    other = Job("def a(n): return n", (1,), (2,))
    results = sandbox.run([empty, other, empty, other])
    assert [r.verdict for r in results] == ["ok", "wrong", "ok", "wrong"]
    assert results[0] is results[2] and results[1] is sandbox.run([other])[0]
    assert sandbox.run([]) == []


# ---------------------------------------------------------------------------------------------------------------------
# Chance and agreement
# ---------------------------------------------------------------------------------------------------------------------
def test_a_lucky_program_must_be_lucky_in_a_second_process(sandbox):
    """Each of these is right in about half of its processes; one that is right twice passes, as nothing can tell."""
    codes = [
        f"import random\nlucky = random.random() < 0.5\ndef a(n): return n if lucky else n + 1  # {k}"
        for k in range(40)
    ]
    results = sandbox.run([job(code, lambda n: n) for code in codes])
    verdicts = [result.verdict for result in results]
    assert set(verdicts) == {"ok", "wrong", "nondeterministic"}
    for result in results:
        assert result.passes == (1 if result.verdict == "wrong" else 2)
        if result.verdict == "nondeterministic":
            assert not any(result.matches)
    assert (
        3 <= verdicts.count("nondeterministic") <= 20
    )  # a quarter of forty, drawn once: the seeds come from the source


@pytest.mark.parametrize("draw", ["random.random()", "numpy.random.rand()", "random.SystemRandom().random()"])
def test_each_process_has_its_own_random_state(sandbox, draw):
    code = f"import random, numpy\nx = {draw}\ndef a(n): return int(x * 2**40)"
    results = sandbox.run([job(f"{code}  # {k}", lambda n: n) for k in range(4)])
    assert len({result.values[0].value for result in results}) == 4


def test_scores_are_the_same_in_every_sandbox():
    jobs = [
        job(f"import random\ndef a(n): return n if random.random() < .97 else 0  # {k}", lambda n: n)
        for k in range(20)
    ]
    jobs.append(job("def a(n): return hash('text') % 1000", lambda n: n))
    with Sandbox(workers=1, **AMPLE) as one, Sandbox(workers=2, **AMPLE) as two:
        first, second = one.run(jobs), two.run(jobs)
    assert [(r.verdict, r.values) for r in first] == [(r.verdict, r.values) for r in second]


def test_a_table_of_the_terms_is_an_ordinary_answer(sandbox):
    """A look-up is right where it reaches and raises where it does not: the reward tells, the sandbox only reports."""
    [result] = sandbox.run([Job(f"TERMS = {PRIMES[:10]}\ndef a(n): return TERMS[n]", NS, PRIMES)])
    assert result.verdict == "exception"
    assert result.matches == tuple(n < 10 for n in NS)


# ---------------------------------------------------------------------------------------------------------------------
# Limits
# ---------------------------------------------------------------------------------------------------------------------
def test_a_slow_right_program_gets_more_time_and_a_wrong_one_does_not():
    spin = "    end = process_time() + 0.05\n    while process_time() < end: pass\n"  # alike on every machine
    slow = "from time import process_time\ndef a(n):\n" + spin + "    return n + {}  # {}"
    limits = {"first_pass_s": 0.6, "second_pass_s": 20.0}
    with Sandbox(**limits, second_pass_budget_s=100.0) as sandbox:
        right, wrong = sandbox.run([job(slow.format(0, 0), lambda n: n), job(slow.format(1, 0), lambda n: n)])
        assert (right.verdict, right.passes) == ("ok", 3)  # the third, because it reads a clock, to agree with it
        assert (wrong.verdict, wrong.passes) == ("cpu_timeout", 1)
    with Sandbox(**limits, second_pass_budget_s=0.0) as sandbox:
        [refused] = sandbox.run([job(slow.format(0, 1), lambda n: n)])
        assert (refused.verdict, refused.passes) == ("cpu_timeout", 1)
        assert any(refused.matches)


def test_memory_limit():
    code = "def a(n): return len(bytearray({} << 20)) >> 20"
    with Sandbox(memory_mib=64, first_pass_s=5.0) as sandbox:
        fits, does_not = sandbox.run([job(code.format(20), lambda n: 20), job(code.format(100), lambda n: 100)])
        grows = sandbox.run([job("def a(n):\n    x = []\n    while True: x.append(bytearray(1 << 20))", lambda n: n)])[
            0
        ]
    assert (fits.verdict, does_not.verdict, grows.verdict) == ("ok", "memory", "memory")


def test_a_busy_machine_makes_no_honest_program_late():
    """Limits count CPU time, so four busy loops beside a program that uses a third of its limit change nothing."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        spin = "    end = process_time() + 0.005\n    while process_time() < end: pass\n"
        code = "from time import process_time\ndef a(n):\n" + spin + "    return n  # {}"
        with Sandbox(first_pass_s=0.4, second_pass_s=0.4) as sandbox:
            results = sandbox.run([job(code.format(k), lambda n: n) for k in range(8)])
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    assert [result.verdict for result in results] == ["ok"] * 8


# ---------------------------------------------------------------------------------------------------------------------
# Modules that were not preloaded; systems that cannot isolate
# ---------------------------------------------------------------------------------------------------------------------
LAZY = {
    "a letter that is not ASCII": "φ = 1\ndef a(n): return n * φ",
    "a name that the compiler normalises": "ﬁve = 5\ndef a(n): return n + five - 5",
    "a character by its name": "def a(n): return n + len('\\N{BULLET}') - 1",
    "a character by its name in a pattern": "import re\ndef a(n): return n if re.match('\\\\N{BULLET}', '•') else -1",
    "a warning of the compiler": "x = 1 if 1 is 1 else 2\ny = '\\d'\ndef a(n): return n * x",
    "the same where sympy is": "import sympy\nφ = 1\ndef a(n): return n * φ * len('\\N{BULLET}')",
    "an encoding": "def a(n): return n + len('é'.encode('cp437')) - 1",
    "no encoding": "def a(n):\n    try:\n        'x'.encode('nonsense')\n    except LookupError:\n        return n",
    "a codec from bytes to bytes": "import codecs\ndef a(n): return n * len(codecs.encode('a', 'rot13'))",
    "a date": "import time\ndef a(n): return n + 0 * time.strptime('2020', '%Y').tm_year",
    "digits without a limit": """
        import sys
        sys.set_int_max_str_digits(0)
        def a(n): return n + int(str(10 ** 20_000)) // 10 ** 20_000 - 1
        """,
    "division of great length": "def a(n): return n * (10 ** 40_000 // 10 ** 20_000 == 10 ** 20_000)",
    "a logical question": "import sympy\nx = sympy.Symbol('x')\ndef a(n): return n if sympy.satisfiable(x) else -1",
    "an assumption": "from sympy import ask, Q\ndef a(n): return n if ask(Q.prime(7)) else -1",
    "a set": """
        from sympy import *
        x = Symbol("x")
        def a(n): return n if imageset(x, x + 1, Interval(1, 2)) == Interval(2, 3) else -1
        """,
    "mark-up": "import sympy\ndef a(n): return n if sympy.mathml(sympy.pi) else -1",
    "mark-up that is printed": "import sympy\ndef a(n): return n if sympy.print_mathml(sympy.pi) is None else -1",
    "a module of a package": "from sympy import stats\ndef a(n): return n * bool(stats.Die('X'))",
    "a module that few ask for": "from sympy.crypto.crypto import encipher_shift\ndef a(n): return n",
    "an import with a fallback": """
        try:
            from sympy.stats import Die
        except ImportError:
            Die = None
        def a(n): return n if Die else -1
        """,
}
"""Programs for which Python or a package imports something without being told to, or what hardly anybody asks for."""


def test_what_is_imported_lazily_is_there(sandbox):
    results = dict(zip(LAZY, sandbox.run([job(code, lambda n: n) for code in LAZY.values()]), strict=True))
    assert {name: r.error for name, r in results.items() if r.verdict != "ok"} == {}
    assert sandbox.infra_counts == {}


def test_modules_that_no_tier_has_cost_nobody_anything():
    """Not even many of them: what a worker has loaded does not depend on what programs asked for."""
    odd = [
        "wave",
        "cgi",
        "zipapp",
        "tarfile",
        "xmlrpc.client",
        "mailbox",
        "poplib",
        "imaplib",
        "antigravity",
        "pandas",
    ]
    absent = ["numpy.no_such_module", "sympy.plotting.pygletplot.plot", *(f"sympy.no_such_{k}" for k in range(20))]
    codes = [f"import {name}\ndef a(n): return n" for name in (*odd, *absent)]
    codes += ["from sympy import no_such_name\ndef a(n): return n"]
    forged = [
        "def a(n): raise ModuleNotFoundError('no', name='sympy')",
        "import os\ndef a(n):\n    os.write(3, b'M numpy\\n')\n    os._exit(0)",
        "import sys\ndef a(n): sys.meta_path[-1].find_spec('numpy.testing._private')",
    ]
    with Sandbox(workers=1, **AMPLE) as sandbox:
        results = sandbox.run([job(code, lambda n: n) for code in codes])
        assert {(result.verdict, result.has_function) for result in results} == {("exception", False)}
        assert results[0].error == "ModuleNotFoundError: No module named 'wave'"
        assert results[-1].error == "ImportError: cannot import name 'no_such_name' from 'sympy'"
        results = sandbox.run([job(code, lambda n: n) for code in forged])
        assert [result.verdict for result in results] == ["exception", "crash", "wrong"]
        assert max(result.passes for result in results) <= 3
        workers = set(children())
        honest = [
            LAZY["a logical question"],
            LAZY["a module that few ask for"],
            "import sympy.polys\ndef a(n): return n",
        ]
        assert {result.verdict for result in sandbox.run([job(code, lambda n: n) for code in honest])} == {"ok"}
        assert set(children()) == workers and len(sandbox._pool.live) == 3
        assert sandbox.infra_counts == {}


def test_what_else_is_installed_changes_no_score(sandbox):
    code = """
    import sys, sympy
    ROOTS = {name.partition(".")[0] for name in sys.modules}
    KNOWN = {"__main__", "candidate", "cython_runtime", "mpmath", "numpy", "rlvr", "sympy", *sys.stdlib_module_names}
    OTHER = [name for name in ROOTS - KNOWN if not name.startswith(("_cython_", "_sysconfigdata"))]
    def a(n): return str(OTHER)
    """
    whole = code.replace("sympy\n", "sympy, sympy.stats\n")
    for result in sandbox.run([job(code, lambda n: 0, (1,)), job(whole, lambda n: 0, (1,))]):
        assert result.values[0].text == "str '[]'"


@pytest.mark.slow
def test_what_the_packages_import_of_the_standard_library_is_there(sandbox):
    useless = {"imp", "readline", "rlcompleter"}  # an old Python's, a terminal's
    useless |= {"urllib.error", "urllib.request"}  # the network's
    useless |= {"_winapi", "msvcrt", "nt", "winreg"}  # another system's
    wanted = set()
    for name in preload.PACKAGES:
        folder = Path(importlib.import_module(name).__file__).parent
        for path in folder.rglob("*.py"):
            if preload.NO_MODULES_OF_USE.isdisjoint((*path.relative_to(folder).parts, path.stem)):
                for node in ast.walk(ast.parse(path.read_bytes())):
                    if isinstance(node, ast.Import):
                        wanted |= {alias.name for alias in node.names}
                    elif isinstance(node, ast.ImportFrom) and not node.level:
                        wanted.add(node.module)
    names = sorted(name for name in wanted - useless if name.partition(".")[0] in sys.stdlib_module_names)
    assert len(names) > 50
    code = f"import importlib\nNAMES = {names}\ndef a(n): return importlib.import_module(NAMES[n]) and n"
    [result] = sandbox.run([job(code, lambda n: n, range(len(names)))])
    assert [name for name, right in zip(names, result.matches, strict=True) if not right] == []


def test_refuses_where_nothing_can_isolate():
    with pytest.raises(RlvrError, match="unsafe_no_isolation"):
        Sandbox(without=frozenset({"seccomp"}))


def test_without_isolation_answers_are_still_right(caplog):
    programs = {
        "def a(n): return n * n": "ok",
        "import math\ndef a(n):\n    print('x')\n    return math.isqrt(n ** 4)": "ok",
        "import random\ndef a(n): return n * n + 0 * random.getrandbits(3)": "ok",
        "def a(n): return n": "wrong",
        "def a(n) return n": "syntax_error",
        "import os\ndef a(n): os._exit(0)": "crash",
        "import os\ndef a(n): os.write(1, b'x'); return n * n": "ok",
        "def a(n): return 1 << 120000": "flood",
        "import sympy\ndef a(n): return sympy.Integer(n) ** 2": "ok",
    }
    endless = ["def a(n):\n    while True: pass", "import time\ndef a(n): time.sleep(1000)"]
    nothing = {"without": frozenset({"seccomp"}), "unsafe_no_isolation": True}
    with Sandbox(**nothing, **AMPLE) as sandbox:
        results = sandbox.run([job(code, lambda n: n * n) for code in programs])
        assert sandbox.isolation == "none" and not any(sandbox.self_test().values())
    assert {code: r.verdict for code, r in zip(programs, results, strict=True)} == programs
    assert {result.isolation for result in results} == {"none"}
    assert caplog.text.count("no isolation") == 1
    with Sandbox(**nothing, first_pass_s=0.1) as sandbox:  # these end at the clock on the wall, which waits for nobody
        results = sandbox.run([job(code, lambda n: n * n) for code in endless])
    assert [result.verdict for result in results] == ["cpu_timeout"] * 2
