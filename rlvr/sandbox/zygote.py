"""The process that forks candidates: loads what they may use, locks itself in, then forks once a job.

Started by `worker.py` with a clean environment, never by hand. It holds no expected term, no data and no project
module but `candidate`, `isolation` and `preload`. Two processes: a guard, which ends everything when the grader
ends, and the zygote proper, process 1 of its namespaces where there are any.

Messages on the control socket, which keeps them apart (SEQPACKET):
    zygote -> grader   b"ready LAYERS" or b"failed TEXT"
    grader -> zygote   one job (candidate.py)
    zygote -> grader   OUTCOME header and the candidate's lines as they came
"""

import contextlib
import ctypes
import fcntl
import os
import resource
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable

from rlvr.sandbox import candidate, isolation, preload

OUTCOME = struct.Struct("=Iiid")  # number, wait status, 1 when the wall limit was hit, CPU seconds
CONTROL_FD = 4
HUGE_PAGE_BYTES = 2**21
MADV_HUGEPAGE, MADV_COLLAPSE = 14, 25


# ---------------------------------------------------------------------------------------------------------------------
# The zygote proper
# ---------------------------------------------------------------------------------------------------------------------
def vm_size_bytes() -> int:
    """Return the address space in use, the base on which a candidate's memory limit is put."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


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

    def __init__(
        self, control: socket.socket, read_end: int, layers: set[str], elsewhere: Callable[[str], bool] | None
    ):
        self.control = control
        self.read_end = read_end
        self.layers = layers
        self.elsewhere = elsewhere
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
            if self.elsewhere is not None:
                sys.meta_path.append(candidate.Elsewhere(self.elsewhere, isolation.RESULT_FD))
            signal.setitimer(signal.ITIMER_PROF, cpu_limit_s)
            if self.filter is not None:
                self.filter.install()
        except BaseException:
            os._exit(candidate.EXIT_BROKEN)
        candidate.run_and_exit(source, calls, isolation.RESULT_FD)


def zygote(control: socket.socket, tier: str, memory_mib: int, without: set[str], in_namespaces: bool) -> None:
    """Prepare, lock in, report, serve. Every failure before the report is sent to the grader as text."""
    try:
        preload.prepare(tier)
        elsewhere = preload.elsewhere(tier)
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
        forker = Forker(control, read_end, layers, elsewhere)
        control.send(f"ready {' '.join(sorted(layers))}".encode("ascii"))
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
    """Entry point: TIER CONTROL_FD GRADER_PID CPU MEMORY_MIB WITHOUT (a comma list, "-" for none)."""
    tier, control_fd, grader_pid, cpu, memory_mib, without_text = arguments
    without = set(without_text.split(",")) - {"-"}
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
            zygote(control, tier, int(memory_mib), without, in_namespaces)
        finally:
            os._exit(0)
    control.close()
    guard(pid, int(grader_pid))
