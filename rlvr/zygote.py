"""The process that forks candidates: imports and warms up what they may use, locks itself in, then one fork a job.

Started by `rlvr/sandbox.py` with a clean environment as `python -s -S -P -c "...; zygote.main()" ARGUMENTS`; never by hand.
It holds no expected term, no dataset and no project module but `rlvr.candidate` and `rlvr.isolation`. Two processes: a
guard, which ends everything when the grader ends, and the zygote proper, process 1 of its namespaces where there are any.

Messages on the control socket (SEQPACKET, one message each):
    zygote -> grader   b"ready LAYERS\\n" + space list of loaded modules, or b"failed TEXT"
    grader -> zygote   JOB header, source, comma list of hexadecimal inputs
    zygote -> grader   OUTCOME header, the candidate's lines as they came
"""

import contextlib
import fcntl
import gc
import importlib
import os
import resource
import select
import signal
import socket
import struct
import sys
import traceback

from rlvr import candidate, isolation

JOB = struct.Struct("=IIIddQ")  # number, source bytes, inputs bytes, cpu_limit_s, wall_limit_s, seed
OUTCOME = struct.Struct("=Iiid")  # number, wait status, 1 when the wall limit was hit, CPU seconds used
OUTPUT_CAP = 65_536
MESSAGE_CAP = 196_608
CONTROL_FD = 4

LIGHT_MODULES = ["math", "cmath", "fractions", "decimal", "numbers", "itertools", "functools", "operator", "statistics", "collections", "collections.abc", "heapq", "bisect", "string", "re", "typing", "dataclasses", "enum", "abc", "contextlib", "copy", "types", "textwrap", "array", "struct", "random", "time", "datetime", "calendar", "hashlib", "json", "warnings", "weakref", "inspect", "pprint", "traceback", "linecache", "tokenize", "keyword", "unicodedata", "zlib", "base64", "secrets", "queue", "threading", "reprlib", "ast", "dis", "__future__", "importlib", "importlib.util", "graphlib", "builtins", "codecs", "io", "os", "sys", "gc", "atexit", "signal"]
HEAVY_MODULES = ["numpy", "numpy.linalg", "numpy.fft", "numpy.random", "numpy.polynomial", "numpy.polynomial.polynomial", "numpy.lib", "numpy.ma", "numpy.matlib", "mpmath", "sympy", "sympy.abc", "sympy.ntheory", "sympy.ntheory.factor_", "sympy.ntheory.continued_fraction", "sympy.ntheory.egyptian_fraction", "sympy.functions.combinatorial.numbers", "sympy.combinatorics", "sympy.combinatorics.partitions", "sympy.utilities.iterables", "sympy.polys", "sympy.series", "sympy.series.sequences", "sympy.concrete", "sympy.matrices", "sympy.solvers", "sympy.solvers.recurr", "sympy.sets", "sympy.logic", "sympy.geometry", "sympy.discrete", "sympy.integrals", "sympy.simplify", "sympy.stats", "sympy.core.numbers", "sympy.solvers.diophantine", "sympy.parsing.sympy_parser", "sympy.crypto"]


def warm_up_light() -> None:
    """Run what imports or allocates on first use, so that no fork has to."""
    from decimal import Decimal
    from fractions import Fraction

    module_lines = "import math\ndef a(n):\n    return sum(math.comb(n, k) for k in range(n + 1) if k % 2 == 0)\n"
    candidate.run(module_lines.encode(), [1, 2, 3], lambda data: None)
    candidate.run(b"def a(n): return n/0\n", [1], lambda data: None)
    candidate.run(b"def a(n) return", [1], lambda data: None)
    sys.modules.pop(candidate.MODULE_NAME, None)
    str(Fraction(1, 3) + Fraction(2, 5)), str(Decimal(2).sqrt())
    compile("def f(x: int) -> list[int]:\n    return [f'{y}' for y in range(x)]\n", "<warm>", "exec")


def warm_up_heavy() -> None:
    """Execute representative calls: numpy and sympy import parts of themselves and of the library on first use."""
    import mpmath
    import numpy as np
    import sympy as sp

    x, n, k = sp.symbols("x n k")
    np.fft.fft(np.arange(4))
    np.random.seed(1)
    np.random.default_rng(1).integers(5)
    np.polynomial.Polynomial([1, 2]).roots()
    np.linalg.matrix_power(np.array([[1, 1], [1, 0]], dtype=object), 5)
    np.linalg.det(np.eye(2))
    np.array2string(np.arange(3))
    np.unique(np.array([1, 1]))
    mpmath.mp.dps = 30
    mpmath.zeta(3), mpmath.nstr(mpmath.pi), mpmath.findroot(lambda t: t * t - 2, 1)
    mpmath.mp.dps = 15
    (
        sp.prime(30),
        sp.primepi(100),
        sp.factorint(2**31 * 91),
        sp.factorint(1000003 * 1000033),
        sp.divisors(60),
        sp.isprime(97),
    )
    sp.divisor_sigma(12), sp.totient(12), sp.mobius(30), sp.primerange(5, 20), sp.nextprime(10), sp.primitive_root(7)
    sp.binomial(10, 3), sp.fibonacci(30), sp.lucas(5), sp.catalan(5), sp.bell(5), sp.bernoulli(6), sp.euler(4)
    sp.integrate(x**2 * sp.sin(x), (x, 0, 1)), sp.simplify(sp.sin(x) ** 2 + sp.cos(x) ** 2), sp.factor(x**2 - 1)
    sp.expand((x + 1) ** 3), sp.solve(x**2 - 2, x), sp.series(sp.exp(x), x, 0, 4), sp.Poly(x**2 - 1, x).all_coeffs()
    sp.Sum(k, (k, 1, n)).doit(), sp.Product(k, (k, 1, 4)).doit(), sp.limit(sp.sin(x) / x, x, 0), sp.diff(x**3, x)
    sp.rsolve(sp.Function("y")(n + 1) - 2 * sp.Function("y")(n), sp.Function("y")(n), {sp.Function("y")(0): 1})
    sp.Matrix([[1, 1], [1, 0]]) ** 5, sp.Matrix([[2, 1], [1, 1]]).det(), sp.sqrt(8).evalf(20), sp.floor(sp.sqrt(5) * 3)
    sp.N(sp.pi, 30), sp.sympify("2*x+1"), sp.lambdify(x, x**2)(3), str(sp.Rational(1, 3)), sp.interpolate([1, 4, 9], x)
    sp.ceiling(sp.log(10)), sp.gcd(12, 18), sp.lcm(4, 6), sp.Mod(7, 3)
    sp.nsimplify(0.5), sp.apart(1 / (x * (x + 1)), x), sp.cyclotomic_poly(6, x), sp.chebyshevt(4, x), sp.legendre(3, x)
    list(sp.utilities.iterables.partitions(4)), list(sp.utilities.iterables.multiset_permutations([1, 1, 2]))
    sp.ntheory.residue_ntheory.discrete_log(41, 15, 7), sp.harmonic(5), sp.factorial2(7), sp.subfactorial(5)
    sp.continued_fraction_periodic(0, 1, 7), sp.jacobi_symbol(2, 7), sp.sqrt_mod(2, 7), sp.multiplicity(2, 8)
    sp.ntheory.modular.crt([3, 5], [2, 3]), sp.composite(5), sp.reduced_totient(12), sp.primorial(4)
    source = "from sympy import *\nimport numpy as np\ndef a(n):\n    return int(np.sum(np.arange(n))) + prime(n + 1) + Integer(3)\n"
    candidate.run(source.encode(), [1, 2], lambda data: None)
    sys.modules.pop(candidate.MODULE_NAME, None)


# ---------------------------------------------------------------------------------------------------------------------
# The zygote proper
# ---------------------------------------------------------------------------------------------------------------------
def vm_size_bytes() -> int:
    """Return the address space in use, the base on which a candidate's memory limit is put."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def prepare(tier: str, extra_modules: list[str]) -> None:
    """Import and warm up a tier; extra modules (found missing by an earlier zygote) may fail on their own."""
    candidate.silence()
    sys.setrecursionlimit(candidate.RECURSION_LIMIT)
    for name in LIGHT_MODULES:
        importlib.import_module(name)
    if tier == "heavy":
        for name in HEAVY_MODULES:
            importlib.import_module(name)
    for name in extra_modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    warm_up_light()
    if tier == "heavy":
        warm_up_heavy()


def lock_in(memory_mib: int, without: set[str], in_namespaces: bool) -> set[str]:
    """Put on every layer that forks inherit; returns the names of the live ones (seccomp is put on in each fork)."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # when memory runs out, the kernel shall take a candidate and never the trainer
    limit = vm_size_bytes() + memory_mib * 2**20
    isolation.drop_privileges()
    isolation.die_with_parent(signal.SIGKILL)
    for what, amount in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_AS, limit)):
        resource.setrlimit(what, (amount, amount))
    layers = {"seccomp"} - without
    if in_namespaces:
        layers.add("namespaces")
    if "landlock" not in without and isolation.landlock_deny_all():
        layers.add("landlock")
    return layers


def result_pipe() -> int:
    """Put the write end of the result pipe on RESULT_FD, both ends non-blocking; returns the read end.

    One pipe serves all jobs: a candidate cannot leave a process behind, so nothing writes once it has been waited for.
    """
    ends = os.pipe()
    read_end, write_end = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, CONTROL_FD + 1) for fd in ends)
    for fd in ends:
        os.close(fd)
    os.dup2(write_end, isolation.RESULT_FD)
    os.close(write_end)
    for fd in (read_end, isolation.RESULT_FD):
        os.set_blocking(fd, False)
    capacity = fcntl.fcntl(isolation.RESULT_FD, fcntl.F_GETPIPE_SZ)
    if capacity < OUTPUT_CAP:
        raise OSError(f"result pipe holds {capacity} bytes, {OUTPUT_CAP} are needed")
    return read_end


class Forker:
    """Serves jobs one after the other until the control socket closes."""

    def __init__(self, control: socket.socket, read_end: int, layers: set[str]):
        self.control = control
        self.read_end = read_end
        self.layers = layers
        self.filter = isolation.SyscallFilter() if "seccomp" in layers else None
        self.buffer = bytearray(MESSAGE_CAP)
        self.zeros = bytes(MESSAGE_CAP)

    def serve(self) -> None:
        signals = {signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        view = memoryview(self.buffer)
        while size := self.control.recv_into(self.buffer):
            number, _, _, _, wall_limit_s, _ = JOB.unpack_from(self.buffer)
            pid = os.fork()
            if pid == 0:
                self.become_candidate()
            view[:size] = self.zeros[:size]  # the next candidate shall not find this one's source in its memory
            hit_wall = 0
            reaped, status, usage = 0, 0, None
            while not reaped:
                if signal.sigtimedwait(signals, wall_limit_s) is None and not hit_wall:
                    hit_wall = 1
                    os.kill(pid, signal.SIGKILL)
                reaped, status, usage = os.wait4(pid, 0 if hit_wall else os.WNOHANG)
            assert usage is not None
            output = b""
            with contextlib.suppress(BlockingIOError):
                output = os.read(self.read_end, OUTPUT_CAP)
            self.control.send(OUTCOME.pack(number, status, hit_wall, usage.ru_utime + usage.ru_stime) + output)

    def become_candidate(self) -> None:
        """In the fork: close everything but the result pipe, limit, filter, run. Never returns."""
        try:
            if "namespaces" not in self.layers:
                isolation.die_with_parent(signal.SIGKILL)
            number, source_size, inputs_size, cpu_limit_s, _, seed = JOB.unpack_from(self.buffer)
            start = JOB.size
            source = bytes(self.buffer[start : start + source_size])
            inputs = bytes(self.buffer[start + source_size : start + source_size + inputs_size])
            calls = [int(text, 16) for text in inputs.split(b",")] if inputs else []
            os.closerange(0, isolation.RESULT_FD)
            os.closerange(isolation.RESULT_FD + 1, self.read_end + 1)
            seconds = int(cpu_limit_s) + 2
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_NOFILE, (isolation.RESULT_FD + 1, isolation.RESULT_FD + 1))
            candidate.reseed(seed)
            signal.setitimer(signal.ITIMER_PROF, cpu_limit_s)
            if self.filter is not None:
                self.filter.install()
        except BaseException:
            os._exit(candidate.EXIT_BROKEN)
        candidate.run_and_exit(source, calls, isolation.RESULT_FD)


def zygote(
    control: socket.socket, tier: str, memory_mib: int, without: set[str], in_namespaces: bool, extra: list[str]
):
    """Prepare, lock in, report, serve. Every failure before the report is sent to the grader as text."""
    try:
        prepare(tier, extra)
        control.setblocking(True)
        os.dup2(control.fileno(), CONTROL_FD)
        if control.fileno() != CONTROL_FD:
            control.close()
        control = socket.socket(fileno=CONTROL_FD)
        os.closerange(CONTROL_FD + 1, 4096)
        read_end = result_pipe()
        layers = lock_in(memory_mib, without, in_namespaces)
        sys.path[:] = []
        sys.path_importer_cache.clear()
        forker = Forker(control, read_end, layers)
        names = " ".join(sorted(sys.modules))
        control.send(f"ready {' '.join(sorted(layers))}\n{names}".encode("ascii", "replace")[:MESSAGE_CAP])
    except BaseException:
        control.send(b"failed " + traceback.format_exc()[-2000:].encode("utf-8", "replace"))
        return
    gc.collect()
    gc.freeze()
    with contextlib.suppress(ConnectionError):
        forker.serve()


# ---------------------------------------------------------------------------------------------------------------------
# The guard
# ---------------------------------------------------------------------------------------------------------------------
def guard(zygote_pid: int, grader_pid: int) -> None:
    """Wait for the zygote; end it when the grader ends (whole process, not just the thread that started us) or on SIGTERM."""

    def stop(*_: object) -> None:
        raise SystemExit

    signal.signal(signal.SIGTERM, stop)
    poller = select.poll()
    timeout_ms = None
    try:
        try:
            for pid in (grader_pid, zygote_pid):
                poller.register(os.pidfd_open(pid), select.POLLIN)
        except OSError:
            timeout_ms = 200  # kernel before 5.3, or the grader is gone already: look at the parent now and then
        while os.getppid() == grader_pid and os.waitpid(zygote_pid, os.WNOHANG)[0] == 0:
            poller.poll(timeout_ms)
    except ChildProcessError:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(zygote_pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:  # a subreaper: what the zygote left behind comes to us
                os.waitpid(-1, 0)


def main(arguments: list[str]) -> None:
    """Entry point: TIER CONTROL_FD GRADER_PID CPU MEMORY_MIB WITHOUT EXTRA_MODULES (comma lists, "-" for none)."""
    tier, control_fd, grader_pid, cpu, memory_mib, without_text, extra_text = arguments
    without = set(without_text.split(",")) - {"-"}
    extra = [name for name in extra_text.split(",") if name != "-"]
    if int(cpu) >= 0:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {int(cpu)})
    control = socket.socket(fileno=int(control_fd))
    isolation.prctl(isolation.PR_SET_CHILD_SUBREAPER, 1)
    in_namespaces = "namespaces" not in without and isolation.namespaces_allowed()
    if in_namespaces:
        isolation.enter_namespaces()
    pid = os.fork()
    if pid == 0:
        isolation.die_with_parent(signal.SIGKILL)
        try:
            zygote(control, tier, int(memory_mib), without, in_namespaces, extra)
        finally:
            os._exit(0)
    control.close()
    guard(pid, int(grader_pid))
