"""The text of a program that a model wrote: where it is in a completion, and what can be told without running it.

Not run by hand. Regular expressions only: the grader's process never parses, compiles or imports what a model wrote.
"""

import re
import textwrap

MAX_COMPLETION_CHARS = 60_000

_CODE = r"(?:import[ \t]+\w|from[ \t]+[\w.]+[ \t]+import\b|(?:def|class)[ \t]+\w|@\w|a[ \t]*=[ \t]*lambda\b)"
_FIRST_CODE_LINE = re.compile(rf"^{_CODE}", re.MULTILINE)
# group 1: code that begins on the line of the fence, and may end on it; group 2: what is below a fence of any language
_FENCED = re.compile(
    rf"```[ \t]*(?:(?:python3?|py)[ \t]+)?(?={_CODE})(.*?)(?:```|\Z)|```[^`\n]*\n(.*?)(?:^[ \t]*```|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_DEFINES_A = re.compile(r"^[ \t]*def[ \t]+a\b|^a[ \t]*=", re.MULTILINE)


def extract_code(completion: str) -> str:
    """Return the program in a completion, "" when there is none.

    The last fenced block that defines `a`, else the last fenced block, else the text from the first line on that
    begins with import, def, class, a decorator or `a = lambda`. An unclosed fence runs to the end; a block that is
    indented as a whole, as in a list, is moved to the margin. Only the first 60,000 characters are looked at.
    Example: "Sure!\\n```python\\ndef a(n): return n\\n```" gives "def a(n): return n\\n".
    """
    text = completion[:MAX_COMPLETION_CHARS]
    blocks = [_at_margin(match[1] or match[2] or "") for match in _FENCED.finditer(text)]
    if blocks:
        return next((block for block in reversed(blocks) if _DEFINES_A.search(block)), blocks[-1])
    first = _FIRST_CODE_LINE.search(text)
    return text[first.start() :].partition("\n```")[0] if first else ""


def _at_margin(block: str) -> str:
    """Take off what all lines of a block are indented by. One that begins at the margin stays as it is."""
    return textwrap.dedent(block) if block.lstrip("\r\n")[:1] in (" ", "\t") else block


_HEAVY = re.compile(r"\b(?:numpy|sympy|mpmath)\b")


def needs_heavy_tier(code: str) -> bool:
    """True when the text names numpy, sympy or mpmath. A program that hides the name gets there by a retry."""
    return _HEAVY.search(code) is not None


# ---------------------------------------------------------------------------------------------------------------------
# May the second process be left out?
# ---------------------------------------------------------------------------------------------------------------------
# Yes when the text cannot name chance, a clock, or a way to names that are not in the text. This saves time and
# nothing else: what slips through gains only the luck that a second process would have denied it.
_MAYBE_RANDOM = re.compile(
    r"__|\\|[^\x00-\x7f]|rand|time|clock|perf|date|now|hash|uuid|secret|token|empty|seed|shuffle|sample|choice|noise"
    r"|getattr|attrgetter|methodcaller|eval|exec|compile|open|globals|locals|vars|input|parse|sympify|lambdify|object"
    r"|frame|thread|signal|builtins|inspect|types|memory|\b(?:id|dir|sys|os|gc|ast|io|S)\b"
)
_IMPORT_LINE = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+(\w[\w., \t]*)$)", re.MULTILINE
)  # group 1: the module of a from-import; group 2: "numpy as np, math"
_PLAIN_MODULES = frozenset(
    "math cmath fractions itertools functools operator numbers decimal collections heapq bisect typing".split()  # noqa: SIM905
)
_QUOTED = re.compile(r"['\"]|\b(?:chr|str|repr|bytes|format|ascii)\b")
_DOCSTRING_OR_COMMENT = re.compile(r'"""[^"\\]*"""|#[^\n]*')


def is_plainly_deterministic(code: str) -> bool:
    """True when the text of a program cannot name anything that differs from one process to the next."""
    if _MAYBE_RANDOM.search(code):
        return False
    if needs_heavy_tier(code) and _QUOTED.search(_DOCSTRING_OR_COMMENT.sub("", code)):
        return False  # sympy evaluates strings, and a string can be put together from pieces
    num_unread = len(re.findall(r"\bimport\b", code))
    for match in _IMPORT_LINE.finditer(code):
        num_unread -= 1
        for name in [match[1]] if match[1] else match[2].split(","):
            root = name.strip().partition(" ")[0].partition(".")[0]
            if root not in _PLAIN_MODULES and not _HEAVY.fullmatch(root):
                return False
    return num_unread == 0
