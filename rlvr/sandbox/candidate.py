"""What happens inside the candidate's process: compile, exec, call a(n), write one typed line a term.

Called by `zygote.py` after the fork, and by `alone.py` where there is no isolation. Standard library only.
It is no boundary: a candidate can change everything here, so the grader believes no more of the lines than it would
believe of returned values. The exception is the first line, which is written before the candidate's code runs.

Lines, in this order:
    S TEXT       the source does not compile; nothing follows
    H NAMES      it compiles; comma list of the modules it imports anywhere, "-" for none
    X 0|1 CTEXT  running the top level raised (1: a callable `a` existed); C and TEXT as for a call; nothing follows
    N            no callable `a`; nothing follows
    D            `a` is there; the calls follow
    K CTEXT      call number K gave ... C: i exact int, j exact through __index__ (both hexadecimal), b bool, f float,
                 o other, e raised, m raised MemoryError
    .            all calls done
    M NAME       in place of any line: a module was imported that is not loaded here; nothing follows
"""

import ast
import builtins
import io
import os
import random
import re
import struct
import sys
import types
from collections.abc import Callable, Sequence

MAX_INT_BITS = 131_072
"""Longest integer that is sent back, 39,456 decimal digits; a longer one is reported as `o`."""
MAX_TEXT = 120
RECURSION_LIMIT = 6000
EXIT_MEMORY, EXIT_FLOOD, EXIT_BROKEN = 70, 71, 72
MODULE_NAME = "candidate"

# ---------------------------------------------------------------------------------------------------------------------
# The job, as it travels from the grader
# ---------------------------------------------------------------------------------------------------------------------
_JOB = struct.Struct("=IIIddQ")
MESSAGE_CAP = 196_608
OUTPUT_CAP = 65_536


def pack_job(
    number: int, source: bytes, calls: Sequence[int], cpu_limit_s: float, wall_limit_s: float, seed: int
) -> bytes:
    """Return a job as one message: header, source, comma list of hexadecimal inputs."""
    inputs = b",".join(b"%x" % n for n in calls)
    return _JOB.pack(number, len(source), len(inputs), cpu_limit_s, wall_limit_s, seed) + source + inputs


def unpack_limits(message: bytes | bytearray) -> tuple[int, float, float, int]:
    """Return (number, cpu_limit_s, wall_limit_s, seed) of a job message."""
    number, _, _, cpu_limit_s, wall_limit_s, seed = _JOB.unpack_from(message)
    return number, cpu_limit_s, wall_limit_s, seed


def unpack_program(message: bytes | bytearray) -> tuple[bytes, list[int]]:
    """Return (source, inputs in call order) of a job message."""
    _, source_size, inputs_size, _, _, _ = _JOB.unpack_from(message)
    middle = _JOB.size + source_size
    inputs = bytes(message[middle : middle + inputs_size])
    return bytes(message[_JOB.size : middle]), [int(text, 16) for text in inputs.split(b",")] if inputs else []


# ---------------------------------------------------------------------------------------------------------------------
# Surroundings
# ---------------------------------------------------------------------------------------------------------------------
class Sink(io.TextIOBase):
    """Standard output for candidates: takes everything, keeps nothing."""

    class Raw(io.RawIOBase):
        def writable(self):
            return True

        def write(self, data, /):
            return len(data)

    def __init__(self):
        super().__init__()
        self.buffer = Sink.Raw()

    def writable(self):
        return True

    def write(self, text, /):
        return len(text)


def silence() -> None:
    """Make print and input harmless: output vanishes, input is at its end."""
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = Sink()  # type: ignore[assignment, misc]
    sys.stdin = sys.__stdin__ = io.StringIO("")  # type: ignore[assignment, misc]


def reseed(seed: int, source: bytes) -> None:
    """Give this process its own random state: a fork copies the parent's, so two children would agree on it."""
    random.seed(seed)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None and b"rand" in source:  # half a millisecond that others need not pay
        numpy_random.seed(seed & 0xFFFFFFFF)


class Elsewhere:
    """The last of the finders of modules: when an import comes to a module that another tier has, the run ends.

    Ending it here, and not when the import fails, also helps those that never say so: the compiler, the codecs, `re`,
    a fallback in an `except ImportError`. A candidate can remove this, which is its own loss.
    """

    def __init__(self, has: Callable[[str], bool], fd: int):
        self.has = has
        self.fd = fd

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if self.has(name):
            write_to(self.fd)(b"M " + one_line(name) + b"\n")
            os._exit(0)


# ---------------------------------------------------------------------------------------------------------------------
# Lines
# ---------------------------------------------------------------------------------------------------------------------
def one_line(text: str) -> bytes:
    """Return printable ASCII without line breaks, at most MAX_TEXT bytes."""
    line = text[:MAX_TEXT].encode("ascii", "backslashreplace")[:MAX_TEXT]
    return bytes(byte if 32 <= byte < 127 else 32 for byte in line)


def describe(error: BaseException) -> bytes:
    """Return `C` and text for an exception; its message only when the class is built in."""
    kind = type(error)
    text = kind.__name__
    if kind.__module__ == "builtins":
        try:
            said = str(error)
            if isinstance(error, ImportError):
                said = said.removesuffix(f" ({error.path})")  # where this machine keeps its modules
            text = f"{text}: {said}" if error.args else text
        except BaseException:
            text = kind.__name__
    return (b"m" if isinstance(error, MemoryError) else b"e") + one_line(text)


def encode(value: object) -> bytes:
    """Return `C` and text for what a call gave.

    Of an int only the exact C-level value counts, whatever a subclass overrides. Anything else counts as an integer
    when its type has __index__ (numpy integers, sympy Integers). bool and float are told apart.
    """
    kind = type(value)
    if kind is bool:
        return b"b1" if value else b"b0"
    code = b"i" if kind is int else b"j"
    if isinstance(value, int):
        number = int.__index__(value)
    elif isinstance(value, float):
        return b"f" + one_line(float.__repr__(value))
    elif hasattr(kind, "__index__"):
        try:
            number = kind.__index__(value)  # type: ignore[attr-defined]
        except TypeError:  # numpy arrays have the method, but not for every shape
            return b"o" + one_line(kind.__name__)
        if not isinstance(number, int) or type(number) is bool:
            return b"o" + one_line(kind.__name__)
        number = int.__index__(number)
    elif kind is str or kind is complex:
        return b"o" + one_line(f"{kind.__name__} {value!r:.80}")
    else:
        return b"o" + one_line("None" if value is None else kind.__name__)
    if number.bit_length() > MAX_INT_BITS:
        return b"oint of %d bits, more than %d" % (number.bit_length(), MAX_INT_BITS)
    return code + b"%x" % number


IMPORTS_BY_TEXT = ("exec", "eval", "compile", "__import__", "__builtins__", "__loader__")
"""Names through which a program can import what no import statement tells."""

_IMPORTS_BY_TEXT = re.compile(rb"\b(?:%b)\b" % "|".join(IMPORTS_BY_TEXT).encode())


def imported_names(tree: ast.AST) -> bytes:
    """Return the comma list of top-level modules that the source imports anywhere.

    A use of one of IMPORTS_BY_TEXT counts as a module of that name, a relative import as ".". Other ways to the same,
    such as `print.__self__`, are not seen: what must be impossible is for the kernel to forbid.
    """
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add("." if node.level else (node.module or "").partition(".")[0])
        elif isinstance(node, ast.Name) and node.id in IMPORTS_BY_TEXT:
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and node.attr in IMPORTS_BY_TEXT and node.attr.startswith("__"):
            names.add(node.attr)
    return ",".join(sorted(names)).encode("ascii", "backslashreplace")[:2048] or b"-"


_IMPORT_LINE = re.compile(
    rb"^[ \t]*(?:from[ \t]+([A-Za-z_][\w.]*)[ \t]+import\b|import[ \t]+([A-Za-z_][\w., \t]*))", re.M
)


def plain_imports(source: bytes) -> bytes | None:
    """Return what `imported_names` would, without the cost of a tree; None where only a tree can tell.

    Exact for ASCII source without line continuations and strings of several lines, when every word `import` stands in
    a line that begins as an import does: such a line is a statement, or the source does not compile.
    """
    if not source.isascii() or _IMPORTS_BY_TEXT.search(source):
        return None
    if b"import" not in source:
        return b"-"
    if b"\\" in source or b'"""' in source or b"'''" in source:
        return None
    found = _IMPORT_LINE.findall(source)
    if len(found) != len(re.findall(rb"\bimport\b", source)):
        return None
    modules = {
        name.split()[0] for module, several in found for name in (module or several).split(b",") if name.strip()
    }
    return b",".join(sorted({name.partition(b".")[0] for name in modules}))[:2048] or b"-"


# ---------------------------------------------------------------------------------------------------------------------
# The run
# ---------------------------------------------------------------------------------------------------------------------
def run(source: bytes, calls: list[int], write: Callable[[bytes], object]) -> None:
    """Run one candidate and write its lines. `source` is UTF-8; surrogates are let through for compile to refuse."""
    program = None
    try:
        text = source.decode("utf-8", "surrogatepass")
        names = plain_imports(source)
        if names is None:
            tree = ast.parse(text, "<candidate>")
            names = imported_names(tree)
            del tree
        program = compile(text, "<candidate>", "exec", dont_inherit=True)
    except ModuleNotFoundError as error:  # the compiler imports, too: no fault of the source
        write(b"M " + one_line(str(error.name)) + b"\n")
        return
    except BaseException as error:
        write(b"S " + describe(error)[1:] + b"\n")
        return
    write(b"H " + names + b"\n")
    module = types.ModuleType(MODULE_NAME)
    sys.modules[MODULE_NAME] = module
    module.__dict__["__builtins__"] = builtins
    try:
        exec(program, module.__dict__)
    except BaseException as error:
        write(b"X %d %b\n" % (callable(module.__dict__.get("a")), describe(error)))
        return
    function = module.__dict__.get("a")
    if not callable(function):
        write(b"N\n")
        return
    write(b"D\n")
    for number, n in enumerate(calls):
        try:
            line = encode(function(n))
        except BaseException as error:
            line = describe(error)
        write(b"%d %b\n" % (number, line))
    write(b".\n")


def write_to(fd: int) -> Callable[[bytes], None]:
    """Return a writer that ends the process when the pipe is full: the pipe's capacity is the cap on results."""
    os_write, os_exit = os.write, os._exit

    def write(data: bytes) -> None:
        try:
            written = os_write(fd, data)
        except BlockingIOError:
            written = -1
        if written < len(data):
            os_exit(EXIT_FLOOD)

    return write


def run_and_exit(source: bytes, calls: list[int], fd: int) -> None:
    """Run one candidate and end the process without anything it may have left behind (atexit, __del__)."""
    os_exit = os._exit
    status = EXIT_BROKEN
    try:
        run(source, calls, write_to(fd))
        status = 0
    except MemoryError:
        status = EXIT_MEMORY
    finally:
        os_exit(status)
