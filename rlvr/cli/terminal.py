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
    styles: Sequence[Sequence[str]] | None = None,
    room: int | None = None,
    widest: int | None = None,
) -> list[str]:
    """Lines of a table: columns as wide as they have to be, empty ones left out.

    A cell wider than `widest` moves the rest of its own row to the right, not that of all rows.

    The last column is for sentences: one that does not fit `room` columns gets a line of its own below its row.
    `styles` has a colour, or "", for each cell; None for a table without any.
    """
    last = len(header) - 1
    shown = [at for at in range(last) if any(row[at] for row in rows)]
    sizes = {at: [cells(header[at]), *(cells(row[at]) for row in rows)] for at in shown}
    widths = {at: max(size for size in sizes[at] if widest is None or size <= widest) for at in shown}
    used = sum(widths.values()) + 2 * len(shown)
    fits = room is None or any(row[last] and used + cells(row[last]) <= room for row in rows)
    lines = []
    for number, row in enumerate([header, *rows]):
        looks = [""] * len(header) if styles is None else ["dim"] * len(header) if not number else styles[number - 1]
        parts = []
        for at in shown:
            gap = " " * (widths[at] - cells(row[at]))
            parts.append(coloured(gap + row[at] if right[at] else row[at] + gap, looks[at]))
        line, sentence = "  ".join(parts), row[last] if number or (fits and any(row[last] for row in rows)) else ""
        if not sentence or room is None or used + cells(sentence) <= room:
            lines.append(f"{line}  {coloured(sentence, looks[last])}".rstrip())
        else:
            lines += [line.rstrip(), "    " + coloured(cut(sentence, room - 4), looks[last])]
    return lines


def one_line(text: str) -> str:
    """A text of a user or a program without line breaks and control codes."""
    return " ".join(printable(text).split())


def printable(text: str) -> str:
    """A text whose control codes cannot reach the terminal."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else " " for sign in text)


def is_terminal() -> bool:
    return sys.stdout.isatty()
