"""The parts of the sandbox that need no process: finding code, the filter program, reading lines, verdicts.

Run: python -m pytest tests/test_sandbox_parts.py
"""

import ast
import struct
import sys

import pytest

from rlvr.sandbox import isolation, programs
from rlvr.sandbox.candidate import (
    describe,
    encode,
    imported_names,
    pack_job,
    plain_imports,
    run,
    unpack_limits,
    unpack_program,
)
from rlvr.sandbox.case import call_order
from rlvr.sandbox.programs import extract_code, is_plainly_deterministic
from rlvr.sandbox.verdicts import Outcome, collect, judge, matches, read_lines


# ---------------------------------------------------------------------------------------------------------------------
# Program text
# ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("completion", "code"),
    [
        ("Sure!\n```python\ndef a(n): return n\n```\nDone.", "def a(n): return n\n"),
        ("```py\nx = 1\n```\ntext\n```python\ndef a(n): return x\n```", "def a(n): return x\n"),
        ("```python\ndef a(n): return 1\n```\nlonger\n```\nprint(a(3))\n```", "def a(n): return 1\n"),
        ("```python\ndef a(n): return 1\n```\nbetter:\n```python\ndef a(n): return 2\n```", "def a(n): return 2\n"),
        ("```\nfoo\n```", "foo\n"),
        ("```python\r\ndef a(n): return n\r\n```", "def a(n): return n\r\n"),
        ("```python\ndef a(n):\n    return n", "def a(n):\n    return n"),
        ("I think:\nimport math\ndef a(n): return math.pi", "import math\ndef a(n): return math.pi"),
        ("from the start, squares\n@cache\ndef a(n): return n", "@cache\ndef a(n): return n"),
        ("from math import comb\ndef a(n): return n\n```", "from math import comb\ndef a(n): return n"),
        ("1. Answer:\n   ```python\n   def a(n):\n       return n\n   ```", "def a(n):\n    return n\n"),
        ("- so:\n\n\t```\n\tdef a(n):\n\n\t\treturn n\n\t```\n", "def a(n):\n\n\treturn n\n"),
        ("1. ```python\n   a = lambda n: n\n   ```\n2. ```\n   a(3)\n   ```", "a = lambda n: n\n"),
        ("```python\ndef a(n):\n    return 1\n  # end\n```", "def a(n):\n    return 1\n  # end\n"),
        ("```python def a(n): return n```", "def a(n): return n"),
        ("It is ```def a(n): return n```\nas you see.\n", "def a(n): return n"),
        ("```python def a(n):\n    return n\n```\nas you see", "def a(n):\n    return n\n"),
        ("With ```n``` given:\ndef a(n): return n", "def a(n): return n"),
        ("```text\n0, 1, 4\n```\nSo:\n```python3.12\ndef a(n): return n * n\n```\n", "def a(n): return n * n\n"),
        ("a = lambda n: n", "a = lambda n: n"),
        ("The squares:\na = lambda n: n * n\n", "a = lambda n: n * n\n"),
        ("a = b is what one wants", ""),
        ("  def a(n): return n", ""),
        ("The sequence of primes.", ""),
        ("", ""),
    ],
)
def test_extract_code(completion, code):
    assert extract_code(completion) == code


def test_extract_code_reads_a_limited_part_in_reasonable_steps():
    assert len(extract_code("def a(n): return n\n" + "x" * 10**6)) == programs.MAX_COMPLETION_CHARS
    assert extract_code("```" * 20_000) is not None
    for piece in (
        "```python\n",
        "```python ",
        "```def a",
        "```a =" + " " * 9_000,
        "```\n    ",
        "from a." + "b." * 9_000,
    ):
        assert extract_code(piece * 6_000) is not None
    assert extract_code(" " * 60_000) == ""


@pytest.mark.parametrize(
    ("code", "plain"),
    [
        ("def a(n): return n * n", True),
        ("import math\nfrom functools import lru_cache\ndef a(n): return math.comb(n, 2)", True),
        ("from sympy import *\ndef a(n): return prime(n)", True),
        ("import numpy as np, sympy\ndef a(n): return np.sum(n)", True),
        ("def a(n):\n    'the squares'\n    return str(n)", True),
        ("import random\ndef a(n): return n", False),
        ("from statistics import random as r\ndef a(n): return r.choice(n)", False),
        ("import time\ndef a(n): return n", False),
        ("import numpy as np\ndef a(n): return np.random.rand()", False),
        ("import numpy as np\ndef a(n): return np.empty(3)[0]", False),
        ("def a(n): return id(n)", False),
        ("def a(n): return getattr(n, 'x')", False),
        ("def a(n): return (0).__class__", False),
        ("def a(n): return '\\x5f'", False),
        ("import sympy\ndef a(n): return sympy.Integer('1' + '2')", False),
        ("import sympy\ndef a(n): return sympy.factorial(chr(n))", False),
        ("if 1: import math\ndef a(n): return n", False),
        ("import json\ndef a(n): return n", False),
        ("def a(n): return 𝓇andom", False),
        ("import math; import posix\ndef a(n): return n", False),
    ],
)
def test_is_plainly_deterministic(code, plain):
    assert is_plainly_deterministic(code) is plain


@pytest.mark.parametrize(
    ("source", "exact"),
    [
        ("def a(n): return n", True),
        (
            "import math\nfrom sympy.ntheory import prime as p, factorint\ndef a(n):\n    import os.path as q, sys\n",
            True,
        ),
        ("import math # import os\n", False),
        ("import math; import os\n", False),
        ("if 1: import os\n", False),
        ("x = 'import'\n", False),
        ("x = '''\nimport os\n'''\n", False),
        ("x = '\\\nimport os'\n", False),
        ("def a(n): return __import__('os')\n", False),
        ("def a(n): return __ｉｍｐｏｒｔ__('os')\n", False),
        ("from . import x\n", False),
        ("important = 1\nimport  numpy  as  np\n", True),
        ("from math import (\n    sqrt,\n    comb,\n)\n", True),
    ],
)
def test_imports_by_line_agree_with_the_tree(source, exact):
    found = plain_imports(source.encode())
    assert (found is not None) is exact
    if exact:
        assert found == imported_names(ast.parse(source))


# ---------------------------------------------------------------------------------------------------------------------
# The filter, run by an interpreter of classic BPF
# ---------------------------------------------------------------------------------------------------------------------
def decide(program: bytes, number: int, arch: int, arguments=()) -> int:
    """Run a seccomp filter on one system call and return the action."""
    padded = tuple(arguments) + (0,) * (6 - len(arguments))
    data = struct.pack("<iIQ6Q", number, arch, 0, *padded)
    code = list(struct.iter_unpack("=HBBI", program))
    accumulator = place = 0
    while True:
        what, if_true, if_false, value = code[place]
        place += 1
        if what == isolation.LD_WORD:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif what == isolation.JEQ:
            place += if_true if accumulator == value else if_false
        elif what == isolation.JGE:
            place += if_true if accumulator >= value else if_false
        elif what == isolation.JSET:
            place += if_true if accumulator & value else if_false
        else:
            assert what == isolation.RETURN
            return value


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_filter(machine):
    program = isolation.build_filter(machine)
    arch, numbers = isolation.ARCHITECTURES[machine]
    special = {"write", "mmap", "mprotect"}
    allow, deny, kill = isolation.SECCOMP_ALLOW, isolation.SECCOMP_EPERM, isolation.SECCOMP_KILL
    for name, number in numbers.items():
        if name not in special:
            assert decide(program, number, arch) == allow, name
    for number in set(range(1024)) - set(numbers.values()):
        assert decide(program, number, arch) == deny, number
    write, mmap, mprotect = (numbers[name] for name in ("write", "mmap", "mprotect"))
    assert [decide(program, write, arch, (fd,)) for fd in (0, 1, 2, 3, 4, 2**32 - 1)] == [deny] * 3 + [allow] + [
        deny
    ] * 2
    assert decide(program, mmap, arch, (0, 4096, 3, 0x22)) == allow
    assert decide(program, mmap, arch, (0, 4096, 7, 0x22)) == deny
    assert decide(program, mmap, arch, (0, 4096, 3, 0x02)) == deny
    assert decide(program, mprotect, arch, (0, 4096, 3)) == allow
    assert decide(program, mprotect, arch, (0, 4096, 5)) == deny
    for other in (0x40000003, 0xC000003E, 0xC00000B7, 0):
        if other != arch:
            assert decide(program, write, other, (3,)) == kill
    assert decide(program, 0x40000000 | 39, arch) == kill


def test_filter_of_an_unknown_machine():
    with pytest.raises(KeyError):
        isolation.build_filter("mips")


# ---------------------------------------------------------------------------------------------------------------------
# Lines, values, verdicts
# ---------------------------------------------------------------------------------------------------------------------
def test_a_job_travels_unchanged():
    message = pack_job(7, b"def a(n): ...", [0, -3, 10**30], 0.1, 1.4, 2**64 - 1)
    assert unpack_limits(message) == (7, 0.1, 1.4, 2**64 - 1)
    assert unpack_program(bytearray(message) + b"rest") == (b"def a(n): ...", [0, -3, 10**30])
    assert unpack_program(pack_job(7, b"", [], 1, 1, 1)) == (b"", [])


def test_call_order_covers_all_repeats_some_and_starts_small():
    import random

    inputs = [10 * k for k in range(30)]
    orders = [call_order(inputs, random.Random(seed)) for seed in range(20)]
    for order in orders:
        assert set(order) == set(range(30)) and len(order) == 33
        assert max(order[:3]) < 10
        assert order != sorted(order)
    assert len({tuple(order) for order in orders}) == 20
    assert call_order([], random.Random(1)) == []
    assert sorted(call_order([5], random.Random(1))) == [0, 0]
    assert sorted(set(call_order([5, 5], random.Random(1)))) == [0, 1]


@pytest.mark.parametrize(
    ("output", "garbled", "num_answers", "finished"),
    [
        (b"H -\nD\n0 i1\n1 i2\n.\n", False, 2, True),
        (b"H -\nD\n0 i1\n1 i2", False, 1, False),
        (b"H -\nD\n0 i1\n.\n", True, 1, False),
        (b"H -\nD\n1 i1\n", True, 0, False),
        (b"H -\nD\n0 i1\n0 i1\n", True, 1, False),
        (b"H -\nD\n0 i1\n1 i2\n2 i3\n", True, 2, False),
        (b"H -\nD\n0 i1\n1 i2\n.\n.\n", True, 2, True),
        (b"H -\nD\n0 i1\n1 i2\n.\nrest", True, 2, True),
        (b"H -\nH os\nD\n0 i1\n", True, 0, False),
        (b"H -\nS forged\n", True, 0, False),
        (b"D\n0 i1\n", True, 0, False),
        (b"H -\n0 i1\n", True, 0, False),
        (b"H -\nD\n0 i0x1\n", True, 0, False),
        (b"H -\nD\n0 i1_0\n", True, 0, False),
        (b"H -\nD\n0 i+1\n", True, 0, False),
        (b"H -\nD\n0 i\n", True, 0, False),
        (b"H -\nD\n0 i 1\n", True, 0, False),
        (b"H -\nD\n 0 i1\n", True, 0, False),
        (b"H -\nD\n-0 i1\n", True, 0, False),
        (b"H -\nD\n0 i\xd9\xa1\n", True, 0, False),
        (b"H -\nD\n0 z1\n", True, 0, False),
        (b"H -\nD\n0 qsympy\n", True, 0, False),
        (b"H -\nD\n0 o" + b"x" * 200 + b"\n", True, 0, False),
        (b"", False, 0, False),
        (b"\n", True, 0, False),
        (b"\0" * 100, False, 0, False),
    ],
)
def test_read_lines(output, garbled, num_answers, finished):
    reading = read_lines(output, 2)
    assert (reading.garbled, len(reading.answers), reading.finished) == (garbled, num_answers, finished)


@pytest.mark.parametrize("before", [b"", b"H -\n", b"H -\nD\n", b"H -\nD\n0 i1\n", b"H -\nX 0 eNameError\n"])
def test_a_module_that_is_elsewhere_ends_the_lines(before):
    reading = read_lines(before + b"M sympy.stats\nH os\n0 i1\n.\n", 2)
    assert (reading.lacks, reading.imports, reading.finished) == ("sympy.stats", (), False)
    assert len(reading.answers) == before.count(b" i")


def test_a_module_that_the_compiler_lacks_is_no_syntax_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "unicodedata", None)
    lines = []
    run("é = 1".encode(), [], lines.append)
    assert lines == [b"M unicodedata\n"]


def test_an_import_error_does_not_say_where_modules_lie():
    error = ImportError("cannot import name 'x' from 'y' (/home/me/y.py)", name="y", path="/home/me/y.py")
    assert describe(error) == b"eImportError: cannot import name 'x' from 'y'"


def test_only_the_first_header_counts():
    reading = read_lines(b"H math,sympy\nH -\nD\n", 1)
    assert reading.imports == ("math", "sympy") and reading.garbled


def test_collect_finds_calls_that_disagree():
    reading = read_lines(b"H -\nD\n0 i5\n1 i1\n2 i6\n", 4)
    values, disagreed = collect(reading, [2, 0, 2, 1], 3)
    assert disagreed and [value.kind for value in values] == ["int", "missing", "error"]
    assert matches(values, [1, 5, 5]) == (True, False, False)


@pytest.mark.parametrize(
    ("outcome", "output", "verdict"),
    [
        (Outcome(), b"H -\nD\n0 i1\n.\n", "ok"),
        (Outcome(), b"H -\nD\n0 j1\n.\n", "ok"),
        (Outcome(), b"H -\nD\n0 b1\n.\n", "wrong"),
        (Outcome(), b"H -\nD\n0 f1.0\n.\n", "wrong"),
        (Outcome(), b"H -\nD\n0 i2\n.\n", "wrong"),
        (Outcome(exit_code=1), b"H -\nD\n0 i1\n.\n", "crash"),
        (Outcome(signal=11), b"H -\nD\n0 i1\n.\n", "crash"),
        (Outcome(signal=27), b"H -\nD\n0 i1\n", "cpu_timeout"),
        (Outcome(signal=24), b"H -\nD\n0 i1\n", "cpu_timeout"),
        (Outcome(signal=9, cpu_s=0.05), b"H -\n", "memory"),
        (Outcome(signal=9, cpu_s=3.0), b"H -\n", "cpu_timeout"),
        (Outcome(signal=9, hit_wall=True), b"H -\n", "infra"),
        (Outcome(exit_code=70), b"H -\n", "memory"),
        (Outcome(exit_code=71), b"H -\nD\n", "flood"),
        (Outcome(exit_code=72), b"", "infra"),
        (Outcome(exit_code=72), b"H -\n", "crash"),
        (Outcome(lost=True), b"", "infra"),
        (Outcome(), b"S SyntaxError\n", "syntax_error"),
        (Outcome(), b"S MemoryError\n", "memory"),
        (Outcome(), b"M unicodedata\n", "infra"),
        (Outcome(), b"H -\nD\nM unicodedata\n", "crash"),
        (Outcome(), b"H -\nD\n0 i1\nM unicodedata\n", "crash"),
        (Outcome(), b"H -\nN\n", "no_function"),
        (Outcome(), b"H -\nX 0 eNameError\n", "exception"),
        (Outcome(), b"H -\nX 1 mMemoryError\n", "memory"),
        (Outcome(), b"H -\nD\n0 eValueError\n.\n", "exception"),
        (Outcome(), b"H -\nD\n0 mMemoryError\n.\n", "memory"),
        (Outcome(), b"H -\n", "crash"),
        (Outcome(), b"", "crash"),
        (Outcome(), b"noise\n", "crash"),
    ],
)
def test_verdicts(outcome, output, verdict):
    reading = read_lines(output, 1)
    values, disagreed = collect(reading, [0], 1)
    right = matches(values, [1])
    assert judge(reading, outcome, values, right, disagreed, cpu_limit_s=1.0, can_wait=False)[0] == verdict


@pytest.mark.parametrize(
    ("outcomes", "output"),
    [
        ((Outcome(signal=27, cpu_s=0.10), Outcome(signal=27, cpu_s=0.11)), (b"H -\nD\n", b"H -\nD\n")),
        ((Outcome(signal=9, cpu_s=3.0), Outcome(signal=9, cpu_s=3.1)), (b"H -\nD\n", b"H -\nD\n")),
        ((Outcome(), Outcome()), (b"H -\nX 1 eE: <f at 0x7f1c3dfa48f0>\n", b"H -\nX 1 eE: <f at 0x7f8800a048f0>\n")),
        ((Outcome(), Outcome()), (b"H -\nD\n0 eE: 0x7f1c3dfa48f0\n.\n", b"H -\nD\n0 eE: 0x7f8800a048f0\n.\n")),
    ],
)
def test_what_is_said_of_a_program_is_the_same_in_every_process(outcomes, output):
    said = []
    for outcome, text in zip(outcomes, output, strict=True):
        reading = read_lines(text, 1)
        values, disagreed = collect(reading, [0], 1)
        verdict = judge(reading, outcome, values, matches(values, [1]), disagreed, cpu_limit_s=1.0, can_wait=False)
        said.append((verdict, values))
    assert said[0] == said[1]


def test_a_wall_clock_limit_is_the_candidate_s_where_it_can_sleep():
    reading = read_lines(b"H -\nD\n", 1)
    outcome = Outcome(signal=9, hit_wall=True)
    assert judge(reading, outcome, [], (), False, cpu_limit_s=1.0, can_wait=True)[0] == "cpu_timeout"


class Sneaky(int):
    def __index__(self):
        return 99

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def bit_length(self):
        return 1


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (0, b"i0"),
        (-255, b"i-ff"),
        (True, b"b1"),
        (Sneaky(16), b"j10"),
        (1.5, b"f1.5"),
        (float("nan"), b"fnan"),
        (None, b"oNone"),
        ("x\ny", b"ostr 'x\\ny'"),
        ([1], b"olist"),
    ],
)
def test_encode(value, line):
    assert encode(value) == line


def test_encode_long_integers():
    assert encode(-(10**12_000)) == b"i-" + f"{10**12_000:x}".encode()
    assert encode(1 << 131_072) == b"oint of 131073 bits, more than 131072"
