"""The sandbox and hostile programs (rlvr/sandbox/attacks.py), as root and as another user, with all layers and fewer.

Run: python -m pytest tests/test_sandbox_attacks.py
"""

import math
import os
import platform
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from processes import NS, PRIMES, children, job

from rlvr.sandbox.attacks import ATTACKS, source
from rlvr.sandbox.case import Case
from rlvr.sandbox.grader import Job, Sandbox
from rlvr.sandbox.verdicts import VERDICTS

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"), reason="isolation needs Linux"
)


LIMITS = {"first_pass_s": 0.4, "second_pass_s": 0.5}
"""CPU seconds: many times what an attack takes that ends by itself, and not long to wait for those that do not."""


@pytest.fixture(scope="module")
def sandbox():
    before = children()  # another test's sandbox may be alive in this process
    with Sandbox(**LIMITS) as sandbox:
        yield sandbox
    assert set(children()) <= set(before)


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
    with Sandbox(workers=1, without=frozenset(without), **LIMITS) as sandbox:
        results = run_attacks(sandbox, open_folder, [*REACHING_OUT, "fork bomb", "deadlock", "endless loop"])
        assert {result.isolation for result in results.values()} == {isolation}
        assert sandbox.isolation == isolation


AS_A_USER = """
import os, sys, tempfile
from pathlib import Path
sys.path[:0] = [{root!r}, {tests!r}]
from test_sandbox_attacks import LIMITS, REACHING_OUT, Sandbox, run_attacks
assert os.getuid() == 65534
for without in ((), ("namespaces",)):
    options = {{"workers": 1, "without": frozenset(without), **LIMITS}}
    with tempfile.TemporaryDirectory() as folder, Sandbox(**options) as sandbox:
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
        probe = subprocess.run([*command, "-c", "import sympy, pytest"], capture_output=True, text=True, timeout=300)
    except FileNotFoundError as missing:
        pytest.skip(f"needs {missing.filename}")
    if probe.returncode:
        pytest.skip(f"an ordinary user cannot start this Python here: {probe.stderr[-200:]}")
    done = subprocess.run([*command, str(script)], capture_output=True, text=True, timeout=600)
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
    OWN = ("candidate", "isolation", "preload", "zygote")
    KNOWN = {"rlvr", "rlvr.sandbox", *(f"rlvr.sandbox.{name}" for name in OWN)}
    NAMES = [m for m in sys.modules if m.partition(".")[0] in ("rlvr", "oeis_rlvr", "torch", "pytest", "site")]
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
        "import sympy\nsympy.binomial = lambda *x: -1\nsympy.Integer.__index__ = lambda s: 0\ndef a(n): return 0",
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
    with Sandbox(workers=1, first_pass_s=5.0) as sandbox:
        results = sandbox.run(jobs)
    honest = [result for place, result in enumerate(results) if place % 3]
    assert {result.verdict for result in honest} == {"ok"}
    assert "ok" not in {result.verdict for place, result in enumerate(results) if place % 3 == 0}


def test_no_trace_of_an_earlier_source_is_left():
    """A worker forgets a job before the next: its buffer, which a candidate finds, holds no other program."""
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
    with Sandbox(workers=1, first_pass_s=5.0) as sandbox:
        padding = "# " + "x" * 3000
        sandbox.run(
            [job(f"{padding}\ndef a(n): return 'this_must_be_' 'forgotten'\n# this_must_be_forgotten", lambda n: n)]
        )
        [result] = sandbox.run([job(search, lambda n: 0, range(2))])
    assert [value.value for value in result.values] == [0, 0]
