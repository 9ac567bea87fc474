"""The sandbox against honest programs, hostile ones (rlvr/attacks.py), and the accidents of its surroundings.

Real processes throughout; no assertion looks at a clock. Run: python -m pytest tests/test_sandbox.py
"""

import contextlib
import math
import os
import platform
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from rlvr.attacks import ATTACKS, source
from rlvr.case import Case
from rlvr.errors import RlvrError
from rlvr.sandbox import Job, Sandbox
from rlvr.verdicts import VERDICTS

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"), reason="isolation needs Linux"
)

ROOT = Path(__file__).resolve().parent.parent
PRIMES = tuple(p for p in range(2, 200) if all(p % d for d in range(2, p)))[:30]
NS = tuple(range(30))


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(second_pass_s=0.5) as sandbox:
        yield sandbox
    assert children() == []


def job(code: str, function, ns=range(20)) -> Job:
    return Job(textwrap.dedent(code), tuple(ns), tuple(function(n) for n in ns))


def children() -> list[int]:
    """Process numbers of this process's children, zombies among them."""
    return [int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]


def descendants(pid: int) -> set[int]:
    """Every process below `pid`."""
    found, new = set(), {pid}
    while new:
        below = set()
        for parent in new:
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{parent}/task").iterdir():
                    below |= {int(child) for child in (task / "children").read_text().split()}
        new = below - found
        found |= new
    return found


def alive(pid: int) -> bool:
    """True for a process that runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def cpu_ticks(pid: int) -> int:
    """CPU time of a process in hundredths of a second, 0 when it is gone."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0


def wait_until(condition, timeout_s: float = 60.0) -> bool:
    """Wait for something that must happen; the time is only there to end a broken test."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


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
    "factorint": job("import sympy\ndef a(n): return sum(sympy.factorint(n).values())", lambda n: [0, 1, 1, 2, 1, 2, 1, 3][n - 1], range(1, 9)),
    "divisors": job("from sympy import divisors\ndef a(n): return sum(divisors(n))", sigma, POSITIVE),
    "divisor_sigma": job("from sympy import divisor_sigma as s\ndef a(n): return s(n, 1)", sigma, POSITIVE),
    "isprime": job("from sympy import isprime\ndef a(n): return int(isprime(n))", lambda n: int(n in PRIMES)),
    "binomial": job("from sympy import binomial\ndef a(n): return binomial(2 * n, n)", lambda n: math.comb(2 * n, n)),
    "sympy fibonacci": job("from sympy import fibonacci\ndef a(n): return fibonacci(n)", fibonacci),
    "totient and friends": job(
        "from sympy import totient, mobius, lcm, gcd\ndef a(n): return totient(n) + 0 * mobius(n) * lcm(n, 2) * gcd(n, 2)",
        lambda n: sum(math.gcd(n, k) == 1 for k in range(1, n + 1)),
        POSITIVE,
    ),
    "simplify": job(
        "from sympy import *\nx = symbols('x')\ndef a(n): return simplify((x**2 - 1) / (x - 1)).subs(x, n)", lambda n: n + 1
    ),
    "integrate": job("from sympy import *\nx = symbols('x')\ndef a(n): return integrate(2 * x, (x, 0, n))", lambda n: n * n),
    "solve": job("from sympy import *\nx = symbols('x')\ndef a(n): return solve(x - 3 * n, x)[0]", lambda n: 3 * n, range(5)),
    "series": job(
        "from sympy import *\nx = symbols('x')\ndef a(n): return Poly(expand((1 + x) ** 10), x).all_coeffs()[n]",
        lambda n: math.comb(10, n),
        range(10),
    ),
    "summation": job("from sympy import *\nk = symbols('k')\ndef a(n): return summation(k, (k, 1, n))", lambda n: n * (n + 1) // 2, range(8)),
    "matrix power": job("from sympy import Matrix\ndef a(n): return (Matrix([[1, 1], [1, 0]]) ** n)[0, 1]", fibonacci),
    "floor of an irrational": job("from sympy import floor, sqrt\ndef a(n): return floor(n * sqrt(2))", lambda n: math.isqrt(2 * n * n)),
    "sympy Integer": job("from sympy import Integer\ndef a(n): return Integer(n) ** 5", lambda n: n**5),
    "numpy sum": job("import numpy as np\ndef a(n): return np.sum(np.arange(n + 1))", lambda n: n * (n + 1) // 2),
    "numpy integer": job("import numpy as np\ndef a(n): return np.int64(n) * np.int32(3)", lambda n: 3 * n),
    "numpy object matrix": job(
        "import numpy as np\ndef a(n): return np.linalg.matrix_power(np.array([[1, 1], [1, 0]], dtype=object), n)[0][1]",
        fibonacci,
        range(0, 200, 20),
    ),
    "numpy scalar array": job("import numpy as np\ndef a(n): return np.array(n)", lambda n: n),
    "mpmath": job("from mpmath import mp, floor, pi\nmp.dps = 50\ndef a(n): return int(floor(pi * 10**n)) % 10", lambda n: int(str(31415926535897932384)[n])),
    "numpy fft and roots": job(
        "import numpy as np\ndef a(n):\n    np.fft.fft([1, 2]), np.roots([1, 0, -1])\n    return int(round(abs(np.fft.fft([n, 0])[0])))",
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
}  # fmt: skip


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
    assert called.imports == ("__import__",)


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
# Hostile programs
# ---------------------------------------------------------------------------------------------------------------------
EXPECTED_VERDICTS = {
    "no colon": {"syntax_error"},
    "another name": {"no_function"},
    "source of a megabyte": {"syntax_error"},
    "read the answers from a file": {"exception"},
    "read through a module's loader": {"exception"},
    "read through numpy.fromfile": {"exception"},
    "socket": {"exception"},
    "fork bomb": {"exception"},
    "fork bomb that catches": {"cpu_timeout"},
    "thread bomb": {"exception"},
    "exec another program": {"exception"},
    "kill oneself as if out of time": {"exception"},
    "32-bit system call": {"crash", "wrong"},
    "silent exit at the first call": {"crash"},
    "exit code that means the machine failed": {"crash"},
    "SystemExit": {"exception"},
    "endless loop": {"cpu_timeout"},
    "endless loop that catches everything": {"cpu_timeout"},
    "endless loop at the top level": {"cpu_timeout"},
    "take off the limits, then loop": {"cpu_timeout"},
    "sleep for ever": {"exception"},
    "sleep that catches": {"cpu_timeout"},
    "deadlock": {"crash"},
    "memory at once": {"memory"},
    "memory that numpy promises": {"memory"},
    "flood of the result pipe": {"flood"},
    "flood of answers": {"flood"},
    "forged answers and a quiet exit": {"crash"},
    "forged header": {"crash"},
    "forged end of the answers": {"crash"},
    "answers out of order": {"crash"},
    "claim that a module is missing": {"exception"},
    "claim that no module is missing": {"exception"},
    "equal to everything": {"wrong"},
    "int subclass equal to everything": {"wrong"},
    "bool": {"wrong"},
    "calls counted, n ignored": {"nondeterministic", "wrong"},
    "answers that differ from call to call": {"nondeterministic"},
    "answers that follow the clock": {"nondeterministic"},
    "answers from the system's randomness": {"nondeterministic"},
}


def run_attacks(sandbox: Sandbox, folder: Path, names) -> dict:
    """Run attacks against the primes, which a readable-by-all file beside them spells out; return {name: result}."""
    secret, marker = folder / "secret", folder / "marker"
    secret.write_text(" ".join(map(str, PRIMES)))
    secret.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    folder.chmod(0o777)
    results = dict(
        zip(names, sandbox.run([Job(source(n, str(secret), str(marker)), NS, PRIMES) for n in names]), strict=True)
    )
    assert not marker.exists()
    for name, result in results.items():
        assert result.verdict in VERDICTS and result.verdict not in ("ok", "infra"), (name, result)
        assert not all(result.matches), name
        assert sum(result.matches) <= 3, name
        assert result.verdict in EXPECTED_VERDICTS.get(name, VERDICTS), (name, result.verdict, result.error)
    return results


@pytest.fixture
def open_folder(tmp_path_factory):
    """A folder that an ordinary user can reach, as pytest's own is not."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_every_attack(sandbox, open_folder):
    assert len(run_attacks(sandbox, open_folder, list(ATTACKS))) >= 80
    [after] = sandbox.run([job("def a(n): return n + 1", lambda n: n + 1)])
    assert after.verdict == "ok"
    assert sandbox.infra_counts == {}


BEGINNINGS = ("read ", "write ", "kill ", "exec", "posix", "socket", "shell", "zombie", "undo", "thread")
REACHING_OUT = [name for name in ATTACKS if name.startswith(BEGINNINGS) and "numpy" not in name]


@pytest.mark.parametrize(
    ("without", "isolation"),
    [
        ({"namespaces"}, "no-namespaces"),
        ({"landlock"}, "seccomp-only"),
        ({"landlock", "namespaces"}, "seccomp-only"),
    ],
)
def test_attacks_on_a_host_with_fewer_layers(open_folder, without, isolation):
    with Sandbox(workers=1, without=frozenset(without)) as sandbox:
        results = run_attacks(sandbox, open_folder, [*REACHING_OUT, "fork bomb", "deadlock", "endless loop"])
        assert {result.isolation for result in results.values()} == {isolation}
        assert sandbox.isolation == isolation


AS_A_USER = """
import os, sys, tempfile
from pathlib import Path
sys.path[:0] = [{root!r}, {tests!r}]
from test_sandbox import REACHING_OUT, Sandbox, job, run_attacks
assert os.getuid() == 65534
for without in ((), ("namespaces",)):
    with tempfile.TemporaryDirectory() as folder, Sandbox(workers=1, without=frozenset(without)) as sandbox:
        run_attacks(sandbox, Path(folder), REACHING_OUT + ["read through numpy.memmap"] * (not without))
        print(sandbox.isolation)
"""
# A home of root's that nobody may enter may hold the interpreter: show it in a mount namespace of the test's own.
SHOW_INTERPRETER = """
set -e
mkdir -p "$2" && mount --bind "$1" "$2" && mount -t tmpfs none "$3" && mkdir -p "$1" && chmod -R 755 "$3"
mount --bind "$2" "$1"
shift 3
exec "$@"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="is an ordinary user already")
def test_attacks_as_an_ordinary_user_when_root(open_folder):
    script = open_folder / "as_a_user.py"
    script.write_text(AS_A_USER.format(root=str(ROOT), tests=str(ROOT / "tests")))
    open_folder.chmod(0o777)
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
    command = [*user, "env", "-C", "/", "TMPDIR=/tmp", "PYTHONDONTWRITEBYTECODE=1", sys.executable]
    interpreter = Path(sys.executable).resolve()
    closed = [folder for folder in interpreter.parents if not folder.stat().st_mode & stat.S_IXOTH]
    if closed:
        base = interpreter.parent.parent
        show = [
            "unshare",
            "-m",
            "bash",
            "-c",
            SHOW_INTERPRETER,
            "-",
            str(base),
            str(open_folder / "base"),
            str(closed[-1]),
        ]
        command = show + command
    try:
        probe = subprocess.run([*command, "-c", "import sympy, pytest"], capture_output=True, text=True)
    except FileNotFoundError as missing:
        pytest.skip(f"needs {missing.filename}")
    if probe.returncode:
        pytest.skip(f"an ordinary user cannot start this Python here: {probe.stderr[-200:]}")
    done = subprocess.run([*command, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split()[1] == "no-namespaces"


def test_the_self_test_says_what_was_refused(sandbox):
    refused = sandbox.self_test()
    assert {"open a file", "open a socket", "fork", "execute a program", "sleep"} <= set(refused)
    assert all(refused.values())


def test_the_expected_terms_are_not_sent():
    expected = (123456789123456789, 987654321987654321)
    case = Case(Job("def a(n): return n", (1, 2), expected), b"def a(n): return n", 0.1)
    message = case.message(1)
    for term in expected:
        for text in (str(term).encode(), b"%x" % term, term.to_bytes(8, "little"), term.to_bytes(8, "big")):
            assert text not in message


def test_a_worker_holds_no_project_module_but_its_own(sandbox):
    code = """
    import sys
    KNOWN = {"rlvr", "rlvr.candidate", "rlvr.isolation", "rlvr.zygote"}
    NAMES = [m for m in sys.modules if m.partition(".")[0] in ("rlvr", "oeis_rlvr", "oeis_parser", "torch", "pytest", "site")]
    def a(n): return len(set(NAMES) - KNOWN)
    """
    [result] = sandbox.run([job(code, lambda n: 0)])
    assert result.verdict == "ok"


def test_a_candidate_has_one_descriptor(sandbox):
    code = """
    import os
    def a(n):
        try:
            os.write(n, b"")
            return 1
        except OSError as error:
            return error.errno
    """
    [result] = sandbox.run([Job(textwrap.dedent(code), (0, 1, 2, 3, 4, 5, 9), (1, 1, 1, 1, 1, 1, 1))])
    assert [value.value for value in result.values] == [1, 1, 1, 1, 1, 1, 1]  # EPERM is 1 as well: only 3 is allowed
    assert result.verdict == "ok"


# ---------------------------------------------------------------------------------------------------------------------
# Group mates: nothing one does reaches the next
# ---------------------------------------------------------------------------------------------------------------------
def test_one_candidate_does_not_change_the_next():
    saboteurs = [
        "import math\nmath.comb = lambda *x: -1\ndef a(n): return math.comb(n, 2)",
        "import builtins\nbuiltins.sum = lambda x: -1\nbuiltins.range = None\ndef a(n): return 0",
        "import sys\nsys.modules['math'] = None\nsys.modules.pop('functools', None)\ndef a(n): return 0",
        "import sys\nfor m in list(sys.modules.values()):\n    m.__dict__.clear()\ndef a(n): return 0",
        "import sympy\nsympy.binomial = lambda *x: -1\nsympy.core.numbers.Integer.__index__ = lambda s: 0\ndef a(n): return 0",
        "import gc\ngc.disable()\nimport decimal\ndecimal.getcontext().prec = 1\ndef a(n): return 0",
        "import sys\nsys.setrecursionlimit(50)\ndef a(n): return 0",
    ]
    light = "import math\ndef a(n): return math.comb(n, 2) + sum(range(3))  # {}"
    heavy = (
        "import sympy\nfrom decimal import Decimal\ndef a(n): return sympy.binomial(n, 2) + int(Decimal('3.0'))  # {}"
    )
    jobs = []
    for number, saboteur in enumerate(saboteurs):
        jobs += [job(saboteur, lambda n: n)]
        jobs += [job(code.format(number), lambda n: math.comb(n, 2) + 3) for code in (light, heavy)]
    with Sandbox(workers=1) as sandbox:
        results = sandbox.run(jobs)
    honest = [result for place, result in enumerate(results) if place % 3]
    assert {result.verdict for result in honest} == {"ok"}
    assert "ok" not in {result.verdict for place, result in enumerate(results) if place % 3 == 0}


def test_no_trace_of_an_earlier_source_is_left():
    """A worker forgets a job before the next: its buffer, which a candidate can find, holds no group mate's program."""
    search = """
    import sys
    PARTS = b"this_must_be_", b"forgotten"
    def a(n):
        frame = sys._getframe()
        while frame:
            worker = frame.f_locals.get("self")
            if hasattr(worker, "buffer"):
                return int(b"".join(PARTS) in worker.buffer)
            frame = frame.f_back
        return -1
    """
    with Sandbox(workers=1) as sandbox:
        padding = "# " + "x" * 3000
        sandbox.run(
            [job(f"{padding}\ndef a(n): return 'this_must_be_' 'forgotten'\n# this_must_be_forgotten", lambda n: n)]
        )
        [result] = sandbox.run([job(search, lambda n: 0, range(2))])
    assert [value.value for value in result.values] == [0, 0]


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
    with Sandbox(workers=1) as one, Sandbox(workers=2) as two:
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
    slow = "def a(n):\n    x = 0\n    while x < 300000: x += 1\n    return n + {}  # {}"
    with Sandbox(first_pass_s=0.06, second_pass_s=20.0, second_pass_budget_s=100.0) as sandbox:
        right, wrong = sandbox.run([job(slow.format(0, 0), lambda n: n), job(slow.format(1, 0), lambda n: n)])
        assert (right.verdict, right.passes) == ("ok", 2)
        assert (wrong.verdict, wrong.passes) == ("cpu_timeout", 1)
    with Sandbox(first_pass_s=0.06, second_pass_s=20.0, second_pass_budget_s=0.0) as sandbox:
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
    """Limits count CPU time, so four busy loops beside a program that uses half of its limit change nothing."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        code = "import time\ndef a(n):\n    end = time.process_time() + 0.002\n    while time.process_time() < end: pass\n    return n  # {}"
        with Sandbox(first_pass_s=0.15, second_pass_s=0.15) as sandbox:
            results = sandbox.run([job(code.format(k), lambda n: n) for k in range(8)])
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    assert [result.verdict for result in results] == ["ok"] * 8


# ---------------------------------------------------------------------------------------------------------------------
# Leaks and lives
# ---------------------------------------------------------------------------------------------------------------------
def test_thousands_of_programs_leave_nothing_behind():
    kinds = [
        "def a(n): return n  # {}",
        "def a(n): return n + 1  # {}",
        "def a(n) return n  # {}",
        "import os\ndef a(n): os._exit(3)  # {}",
        "def a(n): return 1 << 120000  # {}",
    ]
    others = set(children())
    with Sandbox() as sandbox:
        sandbox.run([job(kind.format("warm"), lambda n: n) for kind in kinds])
        before = set(os.listdir("/proc/self/fd")), set(children())
        workers = {pid for guard in before[1] - others for pid in (guard, *descendants(guard))}
        worker_fds = {pid: len(os.listdir(f"/proc/{pid}/fd")) for pid in workers}
        results = sandbox.run([job(kinds[k % 5].format(k), lambda n: n, range(3)) for k in range(2000)])
        assert [r.verdict for r in results] == ["ok", "wrong", "syntax_error", "crash", "flood"] * 400
        assert (set(os.listdir("/proc/self/fd")), set(children())) == before
        assert workers <= descendants(os.getpid())
        assert {pid: len(os.listdir(f"/proc/{pid}/fd")) for pid in workers} == worker_fds
        assert sandbox.infra_counts == {}
    assert not any(alive(pid) for pid in workers)
    assert set(children()) == others


def test_a_light_batch_starts_no_heavy_worker():
    before = descendants(os.getpid())
    with Sandbox(workers=1) as sandbox:
        sandbox.run([job("def a(n): return n", lambda n: n)])
        light = descendants(os.getpid()) - before
        sandbox.run([job("import numpy\ndef a(n): return n", lambda n: n)])
        both = descendants(os.getpid()) - before
        assert light < both and (len(light), len(both)) == (2, 4)  # a guard and a zygote each


@pytest.mark.parametrize("victim", ["guard", "zygote"])
def test_a_killed_worker_costs_no_score(victim):
    before = set(children())
    with Sandbox(workers=1, first_pass_s=5.0) as sandbox:
        sandbox.run([job("def a(n): return n", lambda n: n)])
        [guard] = set(children()) - before
        [zygote] = descendants(guard)
        killer = threading.Timer(0.3, os.kill, (guard if victim == "guard" else zygote, signal.SIGKILL))
        killer.start()
        spin = "def a(n):\n    for i in range(150000): pass\n    return n  # {}"
        results = sandbox.run([job(spin.format(k), lambda n: n, range(3)) for k in range(60)])
        killer.join()
        assert {result.verdict for result in results} == {"ok"}
        assert wait_until(lambda: not alive(zygote) and not alive(guard))
        assert sandbox.run([job("def a(n): return n + 2", lambda n: n + 2)])[0].verdict == "ok"
    assert set(children()) == before


def test_infra_when_every_worker_dies():
    """A candidate cannot do this; a machine without memory can. The verdict is infra: neither right nor wrong."""
    before = set(children())
    with Sandbox(workers=1, first_pass_s=300.0) as sandbox:
        sandbox.run([job("def a(n): return n", lambda n: n)])
        stop = threading.Event()

        def kill_on():
            while not stop.is_set():
                for guard in set(children()) - before:
                    for zygote in descendants(guard):
                        if any(cpu_ticks(pid) > 50 for pid in descendants(zygote)):  # a candidate, not the self-test
                            with contextlib.suppress(ProcessLookupError):
                                os.kill(zygote, signal.SIGKILL)
                time.sleep(0.05)

        killer = threading.Thread(target=kill_on)
        killer.start()
        try:
            [result] = sandbox.run([job("def a(n):\n    while True: pass", lambda n: n)])
        finally:
            stop.set()
            killer.join()
        assert result.verdict == "infra" and result.passes == 3
        assert sum(sandbox.infra_counts.values()) == 3
    assert set(children()) == before


def test_from_threads_that_end_and_several_at_once():
    before = set(children())
    with Sandbox(workers=1) as shared, Sandbox(workers=1) as other:
        verdicts = []

        def work(box, number):
            results = box.run([job(f"def a(n): return n * {number}  # {k}", lambda n: n * number) for k in range(5)])
            verdicts.extend(result.verdict for result in results)

        for _ in range(2):  # the threads that started the workers are gone in the second round
            threads = [threading.Thread(target=work, args=(box, k)) for box in (shared, other) for k in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert verdicts == ["ok"] * 30
            verdicts.clear()
        assert len(set(children()) - before) == 2
    assert set(children()) == before


def test_after_a_fork_the_child_has_workers_of_its_own():
    with Sandbox(workers=1) as sandbox:
        sandbox.run([job("def a(n): return n", lambda n: n)])
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                [result] = sandbox.run([job("def a(n): return n + 3", lambda n: n + 3)])
                sandbox.close()
                status = 0 if result.verdict == "ok" and children() == [] else 2  # the parent's are not its own
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert sandbox.run([job("def a(n): return n + 4", lambda n: n + 4)])[0].verdict == "ok"


SCRIPT = """
import os, sys, time
sys.path[:0] = [{root!r}]
{setup}
from rlvr.sandbox import Job, Sandbox
sandbox = Sandbox(first_pass_s=60.0)
print(sandbox.run([Job("def a(n): return n", (1, 2), (1, 2))])[0].verdict, flush=True)
{then}
"""


def script(setup: str = "", then: str = "", **popen) -> subprocess.Popen:
    code = SCRIPT.format(root=str(ROOT), setup=setup, then=then)
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen
    )


@pytest.mark.parametrize("closed", ["(0,)", "(0, 2)"])
def test_with_standard_streams_closed(closed):
    process = script(setup=f"for fd in {closed}: os.close(fd)", then="sandbox.close(); print('closed')")
    out, _ = process.communicate()
    assert out.split() == ["ok", "closed"] and process.returncode == 0


def test_exit_without_close():
    process = script(then="pass")
    out, err = process.communicate()
    assert (out.split(), err, process.returncode) == (["ok"], "", 0)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_workers_end_with_the_grader(how):
    process = script(then="sandbox.run([Job('def a(n):\\n    while True: pass', (1,), (1,))])", start_new_session=True)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().strip() == "ok"
    assert wait_until(lambda: len(descendants(process.pid)) > 2)  # guards, zygotes, and a candidate at work
    below = descendants(process.pid)
    os.kill(process.pid, how) if how == signal.SIGKILL else os.killpg(process.pid, how)
    process.wait()
    assert wait_until(lambda: not any(alive(pid) for pid in below))
    if how == signal.SIGINT:
        assert "KeyboardInterrupt" in process.stderr.read()
    process.stdout.close()
    process.stderr.close()


@pytest.mark.slow
def test_in_a_process_with_torch_and_its_threads():
    pytest.importorskip("torch")
    setup = "import torch\ntorch.randn(300, 300) @ torch.randn(300, 300)"
    out, err = script(setup=setup, then="sandbox.close()").communicate()
    assert out.split() == ["ok"], err


# ---------------------------------------------------------------------------------------------------------------------
# Modules that were not preloaded; systems that cannot isolate
# ---------------------------------------------------------------------------------------------------------------------
def test_a_module_that_was_not_preloaded_is_the_machine_s_fault():
    with Sandbox(workers=1) as sandbox:
        lazy = "from sympy.crypto.crypto import encipher_shift\ndef a(n): return n"
        stdlib = "import colorsys\ndef a(n): return n"
        absent = "import numpy.no_such_module\ndef a(n): return n"
        forged = "def a(n): raise ModuleNotFoundError('no', name='sympy')"
        results = sandbox.run([job(code, lambda n: n) for code in (lazy, stdlib, absent, forged)])
    assert [result.verdict for result in results] == ["ok", "ok", "exception", "exception"]
    assert results[0].passes == 2


def test_a_module_that_cannot_be_preloaded_masks_the_sample():
    with Sandbox(workers=1) as sandbox:
        assert sandbox._pool is not None
        sandbox._pool.extra_modules["heavy"] += ["no_room"] * 8
        code = "import sympy.crypto.crypto\ndef a(n): return n"
        [result] = sandbox.run([job(code, lambda n: n)])
        assert (result.verdict, result.error) == ("infra", "module sympy.crypto could not be preloaded")
        assert sum(sandbox.infra_counts.values()) == 1


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
        "def a(n):\n    while True: pass": "cpu_timeout",
        "import time\ndef a(n): time.sleep(1000)": "cpu_timeout",
        "import os\ndef a(n): os._exit(0)": "crash",
        "import os\ndef a(n): os.write(1, b'x'); return n * n": "ok",
        "def a(n): return 1 << 120000": "flood",
        "import sympy\ndef a(n): return sympy.Integer(n) ** 2": "ok",
    }
    with Sandbox(without=frozenset({"seccomp"}), unsafe_no_isolation=True, second_pass_s=0.3) as sandbox:
        results = sandbox.run([job(code, lambda n: n * n) for code in programs])
        assert sandbox.isolation == "none" and not any(sandbox.self_test().values())
    assert {code: r.verdict for code, r in zip(programs, results, strict=True)} == programs
    assert {result.isolation for result in results} == {"none"}
    assert caplog.text.count("no isolation") == 1
