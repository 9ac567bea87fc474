"""What the commands print with: a rich console where its 50 ms do not matter, and plain columns where they do."""

import os
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPED_WIDTH = 160
COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36, "bold": 1, "dim": 2}


def console() -> "Console":
    """As wide as the terminal; a pipe gets lines that are not folded at 80."""
    from rich.console import Console

    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=PIPED_WIDTH)


def width() -> int:
    """Columns that a line of output may take."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPED_WIDTH


def has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str, style: str) -> str:
    """`text` in a colour of the terminal; "" for none."""
    return f"\x1b[{COLOURS[style]}m{text}\x1b[0m" if style and text.strip() else text


def cells(text: str) -> int:
    """Columns that a text takes: wide characters take two, marks on others none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


def cut(text: str, room: int) -> str:
    """At most `room` columns of a text, with an ellipsis where something is missing."""
    if cells(text) <= room:
        return text
    kept = text[: max(room - 1, 0)]
    while cells(kept) > room - 1 and kept:
        kept = kept[:-1]
    return kept + "…" if room > 0 else ""


def columns(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[bool],
    styles: Sequence[Sequence[str]] | None,
    room: int,
) -> list[str]:
    """Lines of a table: columns as wide as they have to be, empty ones left out, the last one cut at `room`.

    `styles` has a colour, or "", for each cell; None for a table without any.
    """
    shown = [at for at in range(len(header)) if any(row[at] for row in rows)]
    widths = {at: max(cells(header[at]), *(cells(row[at]) for row in rows)) for at in shown}
    lines = []
    for number, row in enumerate([header, *rows]):
        parts, used = [], 0
        for at in shown:
            text = row[at]
            if at == shown[-1]:
                text = cut(text, room - used)
            else:
                gap = " " * (widths[at] - cells(text))
                text = gap + text if right[at] else text + gap
            used += cells(text) + 2
            if styles is not None:
                style = "dim" if number == 0 else styles[number - 1][at]
                text = coloured(text, style)
            parts.append(text)
        lines.append("  ".join(parts).rstrip())
    return lines


def one_line(text: str) -> str:
    """A text of a user or a program without line breaks and control codes."""
    return " ".join(printable(text).split())


def printable(text: str) -> str:
    """A text whose control codes cannot reach the terminal."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else " " for sign in text)


def is_terminal() -> bool:
    return sys.stdout.isatty()
