"""The process that forks candidates: imports and warms up what they may use, locks itself in, then forks once a job.

Started by `worker.py` with a clean environment, never by hand. It holds no expected term, no data and no project
module but `candidate` and `isolation`. Two processes: a guard, which ends everything when the grader ends,
and the zygote proper, process 1 of its namespaces where there are any.

Messages on the control socket, which keeps them apart (SEQPACKET):
    zygote -> grader   b"ready LAYERS\\n" and a space list of the loaded modules, or b"failed TEXT"
    grader -> zygote   one job (candidate.py)
    zygote -> grader   OUTCOME header and the candidate's lines as they came
"""

import contextlib
import ctypes
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

from rlvr.sandbox import candidate, isolation

OUTCOME = struct.Struct("=Iiid")  # number, wait status, 1 when the wall limit was hit, CPU seconds
CONTROL_FD = 4
HUGE_PAGE_BYTES = 2**21
MADV_HUGEPAGE, MADV_COLLAPSE = 14, 25

# With files denied, a module that is not preloaded is missing. What is missing in the light tier is looked for in the
# heavy one; what is missing there, fresh heavy zygotes get. So these lists are about speed: a fork costs in proportion
# to what is loaded, and the few modules of the light tier serve nearly every program.
LIGHT_MODULES = """
    math cmath fractions decimal numbers itertools functools operator statistics random collections collections.abc
    heapq bisect string re typing copy enum abc types time contextlib __future__ builtins io os sys gc
"""
WIDE_MODULES = """
    dataclasses textwrap array struct datetime calendar hashlib json warnings weakref inspect pprint traceback
    linecache tokenize keyword unicodedata zlib base64 secrets queue threading reprlib ast dis importlib importlib.util
    graphlib codecs atexit signal mmap
"""
HEAVY_MODULES = """
    numpy numpy.linalg numpy.fft numpy.random numpy.polynomial numpy.polynomial.polynomial numpy.lib numpy.ma
    mpmath sympy sympy.abc sympy.ntheory sympy.ntheory.factor_ sympy.ntheory.continued_fraction
    sympy.ntheory.egyptian_fraction sympy.functions.combinatorial.numbers sympy.combinatorics
    sympy.combinatorics.partitions sympy.utilities.iterables sympy.polys sympy.series sympy.series.sequences
    sympy.concrete sympy.matrices sympy.solvers sympy.solvers.recurr sympy.sets sympy.logic sympy.discrete
    sympy.integrals sympy.simplify sympy.core.numbers sympy.solvers.diophantine sympy.parsing.sympy_parser
"""

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
    if tier == "heavy":
        runs.append((WARM_HEAVY, range(WARM_HEAVY.count("lambda: "))))
    for source, calls in runs:
        candidate.run(source.encode(), list(calls), lambda data: None)
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
    for name in LIGHT_MODULES.split():
        importlib.import_module(name)
    if tier == "heavy":
        for name in (WIDE_MODULES + HEAVY_MODULES).split():
            importlib.import_module(name)
    for name in extra_modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    warm_up(tier)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # a first collection costs a heavy fork 3 ms; most programs need none


def use_huge_pages() -> None:
    """Gather the heap into huge pages where the kernel offers it: a fork then copies far smaller page tables."""
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with open("/proc/self/maps") as file:
        lines = [line.split() for line in file]
    for span, rights, *rest in lines:
        if not rights.startswith("rw") or (len(rest) > 3 and rest[3] != "[heap]"):
            continue
        start, end = (int(text, 16) for text in span.split("-"))
        start, end = -(-start // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES, end // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES
        if start < end:
            libc.madvise(start, end - start, MADV_HUGEPAGE)
            for address in range(start, end, HUGE_PAGE_BYTES):
                libc.madvise(address, HUGE_PAGE_BYTES, MADV_COLLAPSE)


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
    if capacity < candidate.OUTPUT_CAP:
        raise OSError(f"result pipe holds {capacity} bytes, {candidate.OUTPUT_CAP} are needed")
    return read_end


class Forker:
    """Serves jobs one after the other until the control socket closes."""

    def __init__(self, control: socket.socket, read_end: int, layers: set[str]):
        self.control = control
        self.read_end = read_end
        self.layers = layers
        self.filter = isolation.SyscallFilter() if "seccomp" in layers else None
        self.buffer = bytearray(candidate.MESSAGE_CAP)
        self.zeros = bytes(candidate.MESSAGE_CAP)

    def serve(self) -> None:
        signals = {signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        view = memoryview(self.buffer)
        while size := self.control.recv_into(self.buffer):
            number, _, wall_limit_s, _ = candidate.unpack_limits(self.buffer)
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
                output = os.read(self.read_end, candidate.OUTPUT_CAP)
            self.control.send(OUTCOME.pack(number, status, hit_wall, usage.ru_utime + usage.ru_stime) + output)

    def become_candidate(self) -> None:
        """In the fork: close everything but the result pipe, limit, filter, run. Never returns."""
        try:
            if "namespaces" not in self.layers:
                isolation.die_with_parent(signal.SIGKILL)
            _, cpu_limit_s, _, seed = candidate.unpack_limits(self.buffer)
            source, calls = candidate.unpack_program(self.buffer)
            os.closerange(0, isolation.RESULT_FD)
            os.closerange(isolation.RESULT_FD + 1, self.read_end + 1)
            seconds = int(cpu_limit_s) + 2
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_NOFILE, (isolation.RESULT_FD + 1, isolation.RESULT_FD + 1))
            candidate.reseed(seed, source)
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
        use_huge_pages()
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
        control.send(f"ready {' '.join(sorted(layers))}\n{names}".encode("ascii", "replace")[: candidate.MESSAGE_CAP])
    except BaseException:
        import traceback

        control.send(b"failed " + traceback.format_exc()[-2000:].encode("utf-8", "replace"))
        return
    with contextlib.suppress(ConnectionError):
        forker.serve()


# ---------------------------------------------------------------------------------------------------------------------
# The guard
# ---------------------------------------------------------------------------------------------------------------------
def guard(zygote_pid: int, grader_pid: int) -> None:
    """Wait for the zygote; end it on SIGTERM, or when the grader ends: the process, not the thread that started us."""

    def stop(*_: object) -> None:
        raise SystemExit

    poller = select.poll()
    timeout_ms = None
    try:
        signal.signal(signal.SIGTERM, stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        try:
            for pid in (grader_pid, zygote_pid):
                poller.register(os.pidfd_open(pid), select.POLLIN)
        except OSError:
            timeout_ms = 200  # kernel before 5.3, or the grader is gone already: look at the parent now and then
        while os.getppid() == grader_pid and not os.waitid(os.P_PID, zygote_pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            poller.poll(timeout_ms)
    finally:
        os.kill(zygote_pid, signal.SIGKILL)  # not waited for yet, so the number is still its own
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
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until somebody is there who ends the zygote
    pid = os.fork()
    if pid == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        isolation.die_with_parent(signal.SIGKILL)
        try:
            zygote(control, tier, int(memory_mib), without, in_namespaces, extra)
        finally:
            os._exit(0)
    control.close()
    guard(pid, int(grader_pid))
