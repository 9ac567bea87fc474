"""What a person writes about a run: a short label that listings show, and notes of any length."""

import time

from rlvr.cycles import Run
from rlvr.errors import RlvrError

MAX_LABEL = 60


def check_label(text: str) -> str:
    """The label on one line, without control codes, which a terminal would obey.

    Raises:
        RlvrError: when it is too long.
    """
    text = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    if len(text) > MAX_LABEL:
        raise RlvrError(f"a label has at most {MAX_LABEL} characters, this one {len(text)}: write a note instead")
    return text


def write_label(run: Run, text: str) -> None:
    """Give a run a label; an empty one takes it away."""
    if text := check_label(text):
        run.files.label.write_text(text + "\n", encoding="utf-8")
    else:
        run.files.label.unlink(missing_ok=True)


def add_note(run: Run, text: str) -> None:
    """Append a note with the time to the run's notes.

    Raises:
        RlvrError: when it says nothing.
    """
    if not text.strip():
        raise RlvrError("an empty note says nothing: give it some words")
    with run.files.notes.open("a", encoding="utf-8") as notes:
        notes.write(f"{time.strftime('%Y-%m-%d %H:%M')}  {text}\n")
