"""Texts of unknown origin and length as a terminal can bear them, and rewards as text."""

from textual.content import Content

MAX_SHOWN = 4000
"""Characters of a text that are shown; what is copied is whole."""


def signed(value: float | None, missing: str = "–") -> str:
    """A reward with its sign; nothing has none."""
    if value is None or value != value:
        return missing
    return f"{value:+.2f}" if round(value, 2) else "0.00"


def clipped(text: str, width: int) -> str:
    """Text for one cell of a table: one line, no control characters, not wider than `width`."""
    text = " ".join(text[: 4 * width + 8].split())
    plain = "".join(character if character.isprintable() else "·" for character in text)
    content = Content(plain)
    return plain if content.cell_length <= width else content.truncate(max(width, 1), ellipsis=True).plain


def capped(text: str, limit: int = MAX_SHOWN) -> str:
    """The text without control characters, not longer than a screen can bear."""
    shown = "".join(character if character.isprintable() or character == "\n" else "·" for character in text[:limit])
    return shown if len(text) <= limit else f"{shown}\n… {len(text) - limit:,} more characters"
