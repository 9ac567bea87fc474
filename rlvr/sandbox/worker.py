"""The grader's handles on the processes that run candidates: zygotes, or one interpreter a job without isolation.

Not run by hand. It starts, feeds and ends processes; what their answers mean is said in `verdicts.py`.
"""

import contextlib
import importlib.util
import os
import platform
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

from rlvr.errors import RlvrError
from rlvr.sandbox.candidate import EXIT_FLOOD, MESSAGE_CAP, OUTPUT_CAP, unpack_limits
from rlvr.sandbox.preload import PACKAGES
from rlvr.sandbox.verdicts import CPU_SIGNALS, Outcome

OUTCOME = struct.Struct("=Iiid")  # number, wait status, 1 when the wall limit was hit, CPU seconds
START_TIMEOUT_S = 120.0
# `random` would reseed itself in every fork, which costs a tenth of it; candidates are reseeded by candidate.py.
ZYGOTE_ENTRY = (
    "import os; os.register_at_fork = lambda **hooks: None; from rlvr.sandbox import zygote; zygote.main(sys.argv[1:])"
)
MAX_SOURCE_BYTES = 65_536
MAX_INPUTS_BYTES = 65_536

SELF_TEST_NAMES = (
    "open a file",
    "create a file",
    "list a folder",
    "open a socket",
    "fork",
    "start a thread",
    "signal another process",
    "trace another process",
    "map executable memory",
    "write to another descriptor",
    "sleep",
    "execute a program",
)
SELF_TEST_CODE = """
import ctypes, os
libc = ctypes.CDLL(None)
def start_thread():
    import _thread
    _thread.start_new_thread(int, ())
    return True
def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return True
def sleep():
    import time
    time.sleep(0.001)
    return True
PROBES = [
    lambda: os.open("/", os.O_RDONLY) >= 0,
    lambda: os.open("/tmp/rlvr-sandbox-self-test", os.O_CREAT | os.O_WRONLY) >= 0,
    lambda: os.listdir("/") is not None,
    lambda: libc.socket(2, 1, 0) >= 0 or libc.socket(1, 1, 0) >= 0,
    fork,
    start_thread,
    lambda: libc.kill(os.getpid(), 0) == 0 or libc.kill(1, 0) == 0,
    lambda: libc.ptrace(0, 0, 0, 0) == 0,
    lambda: libc.mmap(0, 4096, 7, 0x22, -1, 0) != -1,
    lambda: os.write(1, b"x") == 1,
    sleep,
    lambda: os.execv("/proc/self/exe", ["x", "-c", "pass"]),
]
def a(n):
    try:
        return int(bool(PROBES[n]()))
    except OSError:
        return 0
    except RuntimeError:  # no thread could be started
        return 0
"""


def can_isolate() -> bool:
    """True on Linux with a processor for which a filter can be built. Layers are probed where they are put on."""
    return platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64")


def package_dirs() -> list[str]:
    """Return the folders that hold numpy, sympy and mpmath, without importing them."""
    folders = []
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise RlvrError(f"the sandbox needs {name}, which is not installed: run pip install {name}")
        folders.append(str(Path(spec.submodule_search_locations[0]).parent))
    return list(dict.fromkeys(folders))


def _command(entry: str, *arguments: str) -> list[str]:
    """Return the command of a clean interpreter: no site, no user folder, no current folder on the path."""
    if not sys.executable:
        raise RlvrError("the sandbox cannot find the Python interpreter: start the program with python, not embedded")
    project = str(Path(__file__).resolve().parents[2])
    path = [project, *package_dirs()]
    setup = f"import sys; sys.path += {path!r}; {entry}"
    return [sys.executable, "-s", "-S", "-P", "-c", setup, *arguments]


def _environment() -> dict[str, str]:
    """A fixed hash seed makes scores repeatable; one thread a BLAS, as each zygote has one core."""
    fixed = {
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
        "LC_ALL": "C.UTF-8",
        "HOME": "/",
        "PATH": "/usr/bin:/bin",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "SYMPY_GROUND_TYPES": "python",
        "MPMATH_NOGMPY": "1",
    }
    kept = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
    return fixed | {name: os.environ[name] for name in kept if name in os.environ}


def _socket_pair() -> tuple[socket.socket, socket.socket]:
    """Return two connected ends that keep messages apart.

    Both sit above the standard descriptors: where those are closed in this process, a new one would take their place
    and be overwritten in the child.
    """
    import fcntl

    ends = []
    for low in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET):
        ends.append(socket.socket(fileno=fcntl.fcntl(low.fileno(), fcntl.F_DUPFD_CLOEXEC, 16)))
        low.close()
        ends[-1].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_CAP)
    return ends[0], ends[1]


class Zygote:
    """One running zygote. `state`: starting, testing (the self-test is under way), ready."""

    def __init__(self, tier: str, cpu: int, memory_mib: int, without: frozenset[str]):
        self.tier = tier
        self.state = "starting"
        self.layers: frozenset[str] = frozenset()
        self.deadline_s = float("inf")
        self.owner_pid = os.getpid()
        self.control, theirs = _socket_pair()
        numbers = [str(theirs.fileno()), str(os.getpid()), str(cpu), str(memory_mib)]
        try:
            self.process = subprocess.Popen(
                _command(ZYGOTE_ENTRY, tier, *numbers, ",".join(sorted(without)) or "-"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=_environment(),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C in the terminal is for the grader alone
            )
        except BaseException:
            self.control.close()
            raise
        finally:
            theirs.close()

    def fileno(self) -> int:
        return self.control.fileno()

    def send(self, message: bytes) -> bool:
        """Hand over one job; False when the zygote is gone."""
        try:
            self.control.send(message)
        except OSError:
            return False
        return True

    def receive(self) -> bytes:
        """Return the next message, b"" when the zygote is gone."""
        try:
            return self.control.recv(MESSAGE_CAP)
        except OSError:
            return b""

    def greet(self, message: bytes) -> None:
        """Take in the first message. RlvrError when the zygote could not start."""
        if not message.startswith(b"ready"):
            reason = message.removeprefix(b"failed ").decode("utf-8", "replace").strip() or "it ended without a word"
            raise RlvrError(f"the sandbox's {self.tier} worker did not start: {reason}")
        self.layers = frozenset(message.decode("ascii").split()[1:])
        self.state = "testing"

    def close(self) -> None:
        """End the zygote and everything it started, and wait for it. In a forked copy of the owner: only let go."""
        self.control.close()
        if os.getpid() != self.owner_pid:
            self.process.returncode = 0  # not our child: nothing to wait for
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def read_outcome(message: bytes) -> tuple[int, Outcome]:
    """Decode a zygote's message into (job number, outcome)."""
    number, status, hit_wall, cpu_s = OUTCOME.unpack_from(message)
    code = os.waitstatus_to_exitcode(status)
    return number, Outcome(max(0, -code), max(0, code), bool(hit_wall), cpu_s, message[OUTCOME.size :])


def run_alone(tier: str, message: bytes) -> Outcome:
    """Run one job in a fresh interpreter WITHOUT isolation, for systems that have none: correct, slow, not safe."""
    _, cpu_limit_s, wall_limit_s, _ = unpack_limits(message)
    process = subprocess.Popen(
        _command("from rlvr.sandbox import alone; alone.main(sys.argv[1:])", tier),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    )
    assert process.stdin is not None and process.stdout is not None
    chunks: list[bytes] = []
    started = threading.Event()

    def read() -> None:
        size = 0
        while chunk := process.stdout.read1(65_536):  # type: ignore[union-attr]
            started.set()
            chunks.append(chunk)
            size += len(chunk)
            if size > OUTPUT_CAP + 2:
                process.kill()
        started.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    hit_wall = False
    try:
        with contextlib.suppress(OSError):
            process.stdin.write(message)
            process.stdin.close()
        started.wait(START_TIMEOUT_S)
        try:
            process.wait(wall_limit_s)
        except subprocess.TimeoutExpired:
            hit_wall = True
    finally:
        process.kill()
        process.wait()
        reader.join(5)
        process.stdout.close()
    output = b"".join(chunks)
    if not output.startswith(b"R\n"):
        return Outcome(lost=True)
    output = output[2:]
    flood = len(output) > OUTPUT_CAP
    code = EXIT_FLOOD if flood else 0 if hit_wall else process.returncode
    killed_by = -code if code < 0 and os.name == "posix" else 0
    cpu_s = cpu_limit_s if hit_wall or killed_by in CPU_SIGNALS else 0.0
    return Outcome(killed_by, 0 if killed_by else code, hit_wall and not flood, cpu_s, output[:OUTPUT_CAP])
