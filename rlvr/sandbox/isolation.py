"""The kernel layers that hold a candidate: seccomp, Landlock, namespaces, dropped privileges. Linux only, ctypes only.

Used by `zygote.py` inside its own process; nothing here is run by hand. This is not a policy for anything but a
forked, single-threaded CPython that writes to one pipe, and it does not protect against kernel bugs.
"""

import ctypes
import os
import platform
import struct

RESULT_FD = 3
"""The only file descriptor that a candidate has, and the only one it may write to."""

# ---------------------------------------------------------------------------------------------------------------------
# Numbers of the kernel's interface (linux/{prctl,seccomp,filter,audit,landlock,sched,capability}.h)
# ---------------------------------------------------------------------------------------------------------------------
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 36, 38
SECCOMP_MODE_FILTER = 2
SECCOMP_KILL, SECCOMP_ALLOW, SECCOMP_EPERM = 0x80000000, 0x7FFF0000, 0x00050000 | 1
LD_WORD, JEQ, JSET, JGE, RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
X32_BIT = 0x40000000
PROT_EXEC, MAP_ANONYMOUS = 4, 0x20
NEW_NS, NEW_UTS, NEW_IPC, NEW_USER, NEW_PID, NEW_NET = (
    0x20000,
    0x4000000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF = 444, 446  # the same on every architecture
NOBODY = 65534

ARCHITECTURES: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        {
            "write": 1,
            "mmap": 9,
            "mprotect": 10,
            "munmap": 11,
            "brk": 12,
            "rt_sigreturn": 15,
            "mremap": 25,
            "madvise": 28,
            "getpid": 39,
            "exit": 60,
            "gettimeofday": 96,
            "sigaltstack": 131,
            "time": 201,
            "clock_gettime": 228,
            "clock_getres": 229,
            "exit_group": 231,
            "getrandom": 318,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "write": 64,
            "exit": 93,
            "exit_group": 94,
            "clock_gettime": 113,
            "clock_getres": 114,
            "sigaltstack": 132,
            "rt_sigreturn": 139,
            "gettimeofday": 169,
            "getpid": 172,
            "brk": 214,
            "munmap": 215,
            "mremap": 216,
            "mmap": 222,
            "mprotect": 226,
            "madvise": 233,
            "getrandom": 278,
        },
    ),
}
"""Machine -> (AUDIT_ARCH value, the allowed system calls). Nothing in the list can wait, open, connect or fork."""


class SockFprog(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class IsolationError(OSError):
    """A layer that was asked for could not be put on."""


_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)
_libc.syscall.restype = ctypes.c_long


def prctl(option: int, value: int) -> None:
    """Call prctl(2) and raise IsolationError when it fails."""
    if _libc.prctl(option, value, None, 0, 0):
        raise IsolationError(ctypes.get_errno(), f"prctl({option}, {value}) failed")


# ---------------------------------------------------------------------------------------------------------------------
# seccomp: classic BPF over struct seccomp_data {int nr; u32 arch; u64 instruction_pointer; u64 args[6];}
# ---------------------------------------------------------------------------------------------------------------------
def build_filter(machine: str) -> bytes:
    """Return the BPF program (8 bytes an instruction) for `machine`; KeyError for an architecture without a table.

    Everything outside the table gets EPERM. write: result pipe only. mmap, mprotect: never executable; mmap: no files.
    A foreign architecture or the x32 numbering kills the process.
    """
    audit_arch, numbers = ARCHITECTURES[machine]
    plain = [number for name, number in numbers.items() if name not in ("write", "mmap", "mprotect")]

    def step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, if_true, if_false, value)

    def low_word_of_argument(position: int) -> bytes:
        return step(LD_WORD, 16 + 8 * position)  # little endian

    allow, deny, kill = (step(RETURN, action) for action in (SECCOMP_ALLOW, SECCOMP_EPERM, SECCOMP_KILL))
    program = [
        step(LD_WORD, 4),
        step(JEQ, audit_arch, 1, 0),
        kill,
        step(LD_WORD, 0),
        step(JGE, X32_BIT, 0, 1),
        kill,
        # Each special case: skip its block unless the number is its own.
        step(JEQ, numbers["write"], 0, 4),
        low_word_of_argument(0),
        step(JEQ, RESULT_FD, 0, 1),
        allow,
        deny,
        step(JEQ, numbers["mprotect"], 0, 4),
        low_word_of_argument(2),
        step(JSET, PROT_EXEC, 1, 0),
        allow,
        deny,
        step(JEQ, numbers["mmap"], 0, 6),
        low_word_of_argument(2),
        step(JSET, PROT_EXEC, 3, 0),
        low_word_of_argument(3),
        step(JSET, MAP_ANONYMOUS, 0, 1),
        allow,
        deny,
    ]
    for number in plain:
        program += [step(JEQ, number, 0, 1), allow]
    program.append(deny)
    return b"".join(program)


class SyscallFilter:
    """The compiled filter, made once in the zygote so that `install` in a fork is one call."""

    def __init__(self, machine: str | None = None):
        code = build_filter(machine or platform.machine())
        self._code = ctypes.create_string_buffer(code, len(code))
        self._program = SockFprog(len(code) // 8, ctypes.addressof(self._code))
        self._pointer = ctypes.cast(ctypes.pointer(self._program), ctypes.c_void_p)

    def install(self) -> None:
        """Bind this process, for good. Needs NO_NEW_PRIVS."""
        if _libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, self._pointer, 0, 0):
            raise IsolationError(ctypes.get_errno(), "seccomp filter refused")


# ---------------------------------------------------------------------------------------------------------------------
# Landlock: a ruleset that handles every access and has no rule denies every access
# ---------------------------------------------------------------------------------------------------------------------
def landlock_abi() -> int:
    """Return the kernel's Landlock version, 0 when it has none."""
    version = _libc.syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    return max(0, version)


def landlock_deny_all() -> bool:
    """Forbid this process all files, TCP, abstract sockets and foreign signals, as far as the kernel knows them.

    Returns False when the kernel has no Landlock. Needs NO_NEW_PRIVS. Open descriptors stay usable.
    """
    abi = landlock_abi()
    if not abi:
        return False
    files = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)) - 1
    words = [files, 0b11, 0b11][: 1 if abi < 4 else 2 if abi < 6 else 3]
    attributes = struct.pack(f"={len(words)}Q", *words)
    ruleset = _libc.syscall(LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))
    if ruleset < 0:
        return False
    try:
        return _libc.syscall(LANDLOCK_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0)) == 0
    finally:
        os.close(ruleset)


# ---------------------------------------------------------------------------------------------------------------------
# Namespaces and privileges
# ---------------------------------------------------------------------------------------------------------------------
def namespaces_allowed() -> bool:
    """Probe by applying in a child: may we make the namespaces, and does a process start inside them?"""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            enter_namespaces()
            inner = os.fork()
            if inner == 0:
                os._exit(0)
            status = os.waitpid(inner, 0)[1]
        finally:
            os._exit(1 if status else 0)
    return os.waitpid(pid, 0)[1] == 0


def enter_namespaces() -> None:
    """Leave the host's network, IPC, mounts, host name and process numbers; the next fork becomes process 1.

    Root needs no user namespace (it drops to nobody later); an ordinary user gets one without any id mapped.
    """
    flags = NEW_NS | NEW_IPC | NEW_PID | NEW_NET | NEW_UTS | (NEW_USER if os.geteuid() else 0)
    if _libc.unshare(flags):
        raise IsolationError(ctypes.get_errno(), "unshare refused")


def drop_privileges() -> None:
    """Become nobody when root, give up every capability, and refuse new ones (NO_NEW_PRIVS) and debuggers."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    header = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    if _libc.capset(header, bytes(24)):
        raise IsolationError(ctypes.get_errno(), "capset refused")
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def die_with_parent(signal_number: int) -> None:
    """Ask the kernel for `signal_number` when the parent ends. Call after a change of user id, which clears it."""
    prctl(PR_SET_PDEATHSIG, signal_number)
