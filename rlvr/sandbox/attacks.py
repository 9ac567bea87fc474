"""Hostile and broken answers as data: programs that the sandbox must survive and that no reward may pay.

Used by tests/test_sandbox_attacks.py, and by oeis_rlvr.py for `rlvrctl.py validate` (tests/test_validate.py): every
source is run against a task, and none may be scored as right. Not a proof of safety: what is not in the table was not
tried.

    source("read the answers from a file", secret="/path/of/a/file", marker="/path/that/must/not/appear")

SECRET in a source stands for a file that the candidate may not read (a test writes the right answers into it, so that
reading it would pay), MARKER for a file that it may not create. Some of these signal every process they can reach: run
them in the sandbox and nowhere else.
"""

ATTACKS: dict[str, str] = {}


def source(name: str, secret: str = "/nonexistent/secret", marker: str = "/nonexistent/marker") -> str:
    """Return the program of an attack with the two paths filled in."""
    return ATTACKS[name].replace("SECRET", secret).replace("MARKER", marker)


# ---------------------------------------------------------------------------------------------------------------------
# Source text
# ---------------------------------------------------------------------------------------------------------------------
ATTACKS["no colon"] = "def a(n) return n\n"
ATTACKS["another name"] = "def f(n): return n\n"
ATTACKS["a is no function"] = "a = 5\n"
ATTACKS["empty"] = ""
ATTACKS["prose"] = "The sequence is the sequence of primes.\n"
ATTACKS["NUL and surrogate"] = "def a(n): return '\ud800\x00'\n"
ATTACKS["surrogate alone"] = "def a(n): return '\udfff'\n"
ATTACKS["five thousand brackets"] = "def a(n): return " + "(" * 5000 + "n" + ")" * 5000 + "\n"
ATTACKS["sixty thousand minus signs"] = "def a(n): return " + "-" * 60_000 + "n\n"
ATTACKS["source of a megabyte"] = "def a(n): return n\n" + "#" * 1_000_000
ATTACKS["constant that folds into a terabyte"] = "def a(n): return (('x' * 10**6) * 10**6)[n]\n"
ATTACKS["constant power folded for ever"] = "def a(n): return 2 ** (2 ** (2 ** 40))\n"
ATTACKS["other encoding"] = "# -*- coding: utf-7 -*-\ndef a(n): return +AC0-1\n"

# ---------------------------------------------------------------------------------------------------------------------
# Files, programs, network: ways to reach the system
# ---------------------------------------------------------------------------------------------------------------------
ATTACKS["shell through the subclasses of object"] = """
def a(n):
    for kind in ().__class__.__mro__[1].__subclasses__():
        names = getattr(kind.__init__, "__globals__", {})
        if "sys" in names:
            return names["sys"].modules["os"].system("echo owned > MARKER")
"""
ATTACKS["read the answers from a file"] = "def a(n): return int(open('SECRET').read().split()[n])\n"
ATTACKS["read through a module's loader"] = (
    "import math\ndef a(n): return int(math.__loader__.get_data('SECRET').split()[n])\n"
)
ATTACKS["read through a source loader"] = """
import fractions
def a(n): return int(fractions.__loader__.get_data("SECRET").split()[n])
"""
ATTACKS["read through numpy.fromfile"] = """
import numpy as np
def a(n): return int(bytes(np.fromfile("SECRET", dtype=np.uint8)).split()[n])
"""
ATTACKS["read through numpy.memmap"] = """
import numpy as np
def a(n): return int(bytes(np.memmap("SECRET", dtype=np.uint8, mode="r")).split()[n])
"""
ATTACKS["read through numpy.loadtxt"] = """
import numpy as np
def a(n): return int(np.loadtxt("SECRET")[n])
"""
ATTACKS["raw system calls through numpy and ctypes"] = """
import numpy as np
def a(n):
    ctypes = __import__("ctypes")
    libc = ctypes.CDLL(None)
    parent = __import__("os").getppid()
    fd = libc.open(b"SECRET", 0)
    text = ctypes.create_string_buffer(4096)
    size = libc.read(fd, text, 4096)
    libc.fork(), libc.socket(2, 1, 0), libc.ptrace(16, parent, 0, 0), libc.syscall(310, parent, 0, 0, 0, 0, 0)
    return int(text.raw[:max(size, 0)].split()[n])
"""
ATTACKS["pickle through numpy.load"] = "import numpy as np\ndef a(n): return np.load('SECRET', allow_pickle=True)[n]\n"
ATTACKS["string evaluated by sympify"] = """
import sympy
def a(n): return int(sympy.sympify("__import__('os').system('id > MARKER')"))
"""
ATTACKS["string evaluated by lambdify"] = """
import sympy
def a(n): return len(sympy.lambdify([], "__import__('os').listdir('/')", modules=[])())
"""
ATTACKS["program started by sympy.preview"] = """
import sympy
def a(n):
    sympy.preview(sympy.Symbol("x"), output="png", viewer="file", filename="MARKER")
    return n
"""
ATTACKS["subprocess"] = "import subprocess\ndef a(n): return len(subprocess.check_output(['id']))\n"
ATTACKS["posix_spawn"] = """
import os
def a(n):
    os.posix_spawn("/bin/sh", ["sh", "-c", "echo > MARKER"], {})
    return n
"""
ATTACKS["exec another program"] = """
import os
def a(n): os.execv("/bin/sh", ["sh", "-c", "echo > MARKER; printf '0 i2' >&3"])
"""
ATTACKS["socket"] = """
import socket
def a(n):
    socket.create_connection(("127.0.0.1", 9), 1)
    return n
"""
ATTACKS["write a file"] = "def a(n):\n    open('MARKER', 'w').write('x')\n    return n\n"
ATTACKS["write a file by rename and link"] = """
import os
def a(n):
    for action in (os.rename, os.link, os.symlink):
        try:
            action("SECRET", "MARKER")
        except OSError:
            pass
    os.mkdir("MARKER")
    return n
"""
ATTACKS["read the environment of the parent"] = """
import os
def a(n): return len(open("/proc/%d/environ" % os.getppid(), "rb").read())
"""
ATTACKS["read every descriptor"] = """
import os
def a(n):
    found = 0
    for fd in range(200):
        try:
            found += len(os.read(fd, 10)) or 1
        except OSError:
            pass
    return found
"""
ATTACKS["executable memory"] = """
import ctypes, mmap
def a(n):
    page = mmap.mmap(-1, 4096, prot=7)
    page.write(bytes([0xB8, 2, 0, 0, 0, 0xC3]))
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""
ATTACKS["undo the filter"] = """
import ctypes, os
def a(n):
    libc = ctypes.CDLL(None)
    for option in (22, 38, 4, 1, 36):
        libc.prctl(option, 0, 0, 0, 0)
    libc.syscall(317, 1, 0, 0)
    return int(os.fdopen(os.open("SECRET", 0)).read().split()[n])
"""
ATTACKS["32-bit system call"] = """
import ctypes
def a(n):
    libc = ctypes.CDLL(None)
    return 2 if libc.syscall(0x40000000 | 39) > 0 else 0
"""

# ---------------------------------------------------------------------------------------------------------------------
# Processes, threads, signals
# ---------------------------------------------------------------------------------------------------------------------
ATTACKS["fork bomb"] = "import os\ndef a(n):\n    while True:\n        os.fork()\n"
ATTACKS["fork bomb that catches"] = """
import os
def a(n):
    while True:
        try:
            os.fork()
        except BaseException:
            pass
"""
ATTACKS["thread bomb"] = (
    "import _thread\ndef a(n):\n    while True:\n        _thread.start_new_thread(lambda: None, ())\n"
)
ATTACKS["zombie maker"] = """
import os
def a(n):
    if os.fork() == 0:
        os._exit(0)
    return n
"""
ATTACKS["kill the parent"] = "import os\ndef a(n):\n    os.kill(os.getppid(), 9)\n    return n\n"
ATTACKS["kill everything"] = "import os\ndef a(n):\n    os.kill(-1, 9)\n    return n\n"
ATTACKS["kill oneself as if out of time"] = "import os, signal\ndef a(n): os.kill(os.getpid(), signal.SIGPROF)\n"
ATTACKS["new session"] = "import os\ndef a(n):\n    os.setsid()\n    return n\n"
ATTACKS["silent exit at the first call"] = "import os\ndef a(n): os._exit(0)\n"
ATTACKS["silent exit at the top level"] = "import os\nos._exit(0)\n"
ATTACKS["SystemExit"] = "def a(n): raise SystemExit(0)\n"
ATTACKS["SystemExit at the top level"] = "raise SystemExit(0)\n"
ATTACKS["KeyboardInterrupt"] = "def a(n): raise KeyboardInterrupt\n"
ATTACKS["exit code that means out of memory"] = "import os\ndef a(n): os._exit(70)\n"
ATTACKS["exit code that means the machine failed"] = "import os\ndef a(n): os._exit(72)\n"

# ---------------------------------------------------------------------------------------------------------------------
# Time and memory
# ---------------------------------------------------------------------------------------------------------------------
ATTACKS["endless loop"] = "def a(n):\n    while True:\n        pass\n"
ATTACKS["endless loop that catches everything"] = """
def a(n):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
"""
ATTACKS["endless loop at the top level"] = "while True:\n    pass\ndef a(n): return n\n"
ATTACKS["endless loop in C: a power"] = "def a(n): return 10 ** (10 ** (9 + n))\n"
ATTACKS["endless loop in C: a sum"] = "def a(n): return sum(range(10**12))\n"
ATTACKS["take off the limits, then loop"] = """
import signal
def a(n):
    for action in (
        lambda: signal.signal(signal.SIGPROF, signal.SIG_IGN),
        lambda: signal.setitimer(signal.ITIMER_PROF, 0),
        lambda: signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)),
        lambda: __import__("resource").setrlimit(0, (-1, -1)),
    ):
        try:
            action()
        except BaseException:
            pass
    while True:
        pass
"""
ATTACKS["sleep for ever"] = "import time\ndef a(n):\n    while True:\n        time.sleep(1000)\n"
ATTACKS["sleep that catches"] = """
import time
def a(n):
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass
"""
ATTACKS["wait in select"] = "import select\ndef a(n): return len(select.select([], [], [], 1000))\n"
ATTACKS["deadlock"] = """
import _thread
lock = _thread.allocate_lock()
def a(n):
    lock.acquire()
    lock.acquire()
    return n
"""
ATTACKS["memory at once"] = "def a(n): return len([0] * 10**10)\n"
ATTACKS["memory bit by bit"] = "def a(n):\n    x = []\n    while True:\n        x.append(bytearray(1 << 20))\n"
ATTACKS["memory that catches"] = """
def a(n):
    x = []
    while True:
        try:
            x.append(bytearray(1 << 20))
        except MemoryError:
            pass
"""
ATTACKS["memory that numpy promises"] = """
import numpy as np
def a(n): return int(np.zeros(10**11, dtype=np.uint8)[5])
"""
ATTACKS["recursion without end"] = "import sys\nsys.setrecursionlimit(10**9)\ndef a(n): return a(n + 1)\n"
ATTACKS["recursion in C"] = """
import sys
sys.setrecursionlimit(10**9)
def a(n):
    x = []
    for _ in range(10**6):
        x = [x]
    return len(repr(x))
"""
ATTACKS["catastrophic regular expression"] = """
import re
def a(n): return 1 if re.match("(a+)+$", "a" * 40 + "b") else 0
"""
ATTACKS["factoring that does not end"] = """
import sympy
def a(n): return int(sympy.factorint(2**997 - 1 + n * 2)[0])
"""
ATTACKS["decimal of a billion digits"] = """
from decimal import *
getcontext().prec = 10**9
def a(n): return int(Decimal(2).sqrt())
"""
ATTACKS["trace function that loops"] = """
import sys
def trace(*x):
    while True:
        pass
sys.setprofile(trace)
sys.settrace(trace)
def a(n): return n
"""
ATTACKS["digit limit taken off"] = """
import sys
def a(n):
    sys.set_int_max_str_digits(0)
    return len(str(10**3000000))
"""

# ---------------------------------------------------------------------------------------------------------------------
# Output
# ---------------------------------------------------------------------------------------------------------------------
ATTACKS["flood of printed text"] = "def a(n):\n    while True:\n        print('x' * 10**6)\n"
ATTACKS["flood of the result pipe"] = """
import os
def a(n):
    while True:
        os.write(3, b"7 i31\\n" * 10000)
"""
ATTACKS["flood that catches"] = """
import os
def a(n):
    while True:
        try:
            os.write(3, b"7 i31\\n" * 10000)
        except BaseException:
            pass
"""
ATTACKS["flood of answers"] = "def a(n): return 1 << 120000\n"
ATTACKS["forged answers and a quiet exit"] = """
import os
os.write(3, b"D\\n" + b"".join(b"%d i0\\n" % k for k in range(40)) + b".\\n")
os._exit(0)
def a(n): return 0
"""
ATTACKS["forged header"] = """
import os
os.write(3, b"H -\\nD\\n" + b"".join(b"%d i2\\n" % k for k in range(40)) + b".\\n")
os._exit(0)
"""
ATTACKS["forged answers after the first call"] = """
import os
def a(n):
    os.write(3, b"".join(b"%d i2\\n" % k for k in range(40)) + b".\\n")
    os._exit(0)
"""
ATTACKS["forged end of the answers"] = "import os\ndef a(n):\n    os.write(3, b'.\\n')\n    return 2\n"
ATTACKS["answers out of order"] = """
import os
def a(n):
    os.write(3, b"5 i2\\n")
    return 2
"""
ATTACKS["answer that is a line of Python"] = """
import os
def a(n):
    os.write(3, b"0 i__import__('os').system('id > MARKER')\\n")
    os._exit(0)
"""
ATTACKS["half a line"] = "import os\ndef a(n):\n    os.write(3, b'0 i')\n    os._exit(0)\n"
ATTACKS["claim that a module is missing"] = "def a(n): raise ModuleNotFoundError('x', name='sympy')\n"
ATTACKS["claim that no module is missing"] = "def a(n): raise ModuleNotFoundError('x', name='numpy.nothing.at.all')\n"
ATTACKS["exception with a line break"] = "class E(Exception): pass\nE.__name__ = '0 i2\\n.'\ndef a(n): raise E\n"
ATTACKS["exception that loops when shown"] = """
class E(ValueError):
    def __str__(self):
        while True:
            pass
E.__module__ = "builtins"
def a(n): raise E
"""

# ---------------------------------------------------------------------------------------------------------------------
# Values that pretend to be the right integer
# ---------------------------------------------------------------------------------------------------------------------
ATTACKS["equal to everything"] = """
class E:
    def __eq__(self, other): return True
    def __hash__(self): return 0
    def __repr__(self): return "2"
    def __int__(self): return 2
def a(n): return E()
"""
ATTACKS["index of a million digits"] = """
class E:
    def __index__(self): return 10 ** (10**6)
    def __eq__(self, other): return True
def a(n): return E()
"""
ATTACKS["int subclass equal to everything"] = """
class I(int):
    def __eq__(self, other): return True
    def __hash__(self): return 0
    def __index__(self): return 2
    def __int__(self): return 2
    def bit_length(self): return 1
    def __format__(self, spec): return "2"
def a(n): return I(1)
"""
ATTACKS["pickle bomb"] = "class E:\n    def __reduce__(self): return eval, ('1/0',)\ndef a(n): return E()\n"
ATTACKS["bool"] = "def a(n): return n > 3\n"
ATTACKS["float and NaN"] = "def a(n): return float('nan') if n % 2 else 2.0\n"
ATTACKS["complex, None, text, list"] = "def a(n): return [2 + 0j, None, '2', [2]][n % 4]\n"
ATTACKS["bool of numpy"] = "import numpy as np\ndef a(n): return np.bool_(n > 3)\n"
ATTACKS["float of numpy"] = "import numpy as np\ndef a(n): return np.float64(2.0)\n"
ATTACKS["numpy overflow"] = "import numpy as np\ndef a(n): return np.int64(2) ** np.int64(n + 60)\n"
ATTACKS["generator"] = "def a(n):\n    yield n\n"
ATTACKS["coroutine"] = "async def a(n): return n\n"
ATTACKS["function"] = "def a(n): return a\n"
ATTACKS["five thousand digits"] = "def a(n): return 10**5000\n"
ATTACKS["a hundred megabytes of integer"] = "def a(n): return 1 << (8 * 10**8)\n"

# ---------------------------------------------------------------------------------------------------------------------
# Looking for the answers, changing the surroundings
# ---------------------------------------------------------------------------------------------------------------------
ATTACKS["answers in the frames above"] = """
import sys
def a(n):
    frame = sys._getframe()
    while frame:
        for names in (frame.f_locals, frame.f_globals):
            for name in ("expected", "holdout", "answers", "terms"):
                if name in names:
                    return list(names[name])[n]
        frame = frame.f_back
    raise LookupError
"""
ATTACKS["answers among all objects"] = """
import gc
def a(n):
    for thing in gc.get_objects():
        if type(thing) in (list, tuple) and list(thing[:3]) == [2, 3, 5]:
            return thing[n]
    raise LookupError
"""
ATTACKS["calls counted, n ignored"] = """
i = -1
PRIMES = [p for p in range(2, 2000) if all(p % d for d in range(2, p))]
def a(n):
    global i
    i += 1
    return PRIMES[i]
"""
ATTACKS["everything changed"] = """
import math, builtins, sys
math.comb = lambda *x: -1
math.isqrt = lambda x: -1
builtins.len = lambda x: 0
builtins.range = None
builtins.isinstance = lambda *x: True
builtins.callable = lambda x: True
builtins.type = lambda x: int
sys.modules["fractions"] = sys.modules["functools"] = None
def a(n): return n
"""
ATTACKS["modules emptied"] = """
import sys
for name in list(sys.modules):
    if name != "sys":
        sys.modules[name].__dict__.clear()
def a(n): return 2
"""
ATTACKS["the scorer's own functions changed"] = """
import sys
for name, module in list(sys.modules.items()):
    if name.startswith("rlvr"):
        for key in list(vars(module)):
            if callable(vars(module)[key]):
                setattr(module, key, lambda *x: b"i2")
def a(n): return n
"""
ATTACKS["left for later: atexit, __del__, hooks"] = """
import atexit, sys
atexit.register(lambda: open("MARKER", "w"))
sys.excepthook = None
class D:
    def __del__(self):
        while True:
            pass
x = D()
def a(n): return n
"""
ATTACKS["scribble over memory"] = "import ctypes\ndef a(n):\n    ctypes.string_at(0)\n    return n\n"
ATTACKS["scribble over small integers"] = """
import ctypes
def a(n):
    ctypes.memset(id(2), 255, 28)
    return 1 + 1
"""
ATTACKS["answers that differ from call to call"] = """
import random
def a(n): return random.getrandbits(40)
"""
ATTACKS["answers that follow the clock"] = "import time\ndef a(n): return time.perf_counter_ns()\n"
ATTACKS["answers from the system's randomness"] = "import os\ndef a(n): return int.from_bytes(os.urandom(8), 'big')\n"
ATTACKS["answers from the process number"] = """
import os, itertools
count = itertools.count(os.getpid())
def a(n): return next(count)
"""
