"""The screens of the dashboard that stand still, as text, compared with what was looked at and kept.

What is kept lies in tests/snapshots/; `UPDATE_SNAPSHOTS=1 pytest tests/test_snapshots.py` writes it anew: look at the
difference before you commit it. Times, durations and paths are others at every run and are blotted out.
"""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pilots import opened, press, training_tree, until, words
from textual.app import App
from textual.pilot import Pilot

from rlvr.tui.app import Dashboard

SNAPSHOTS = Path(__file__).parent / "snapshots"
SIZE = (120, 35)

SCREENS = {
    "models": (["2"], "other"),
    "config": (["3"], "learning_rate"),
    "presets": (["4"], "gemma4-e2b"),
    "corpus": (["8"], "chosen for training"),
}
"""Screen -> the keys that lead there, a word that tells that it is whole. Those that show a run never stand still."""

BLOTS = (
    (re.compile(r"\d{4}-\d\d-\d\d|\b\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b"), "DATE"),
    (re.compile(r"\b\d\d:\d\d(:\d\d)?\b"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? (s|min|h|d)\b( \d+ (s|min|h)\b)?"), "SPAN"),
    (re.compile(r"SPAN \d+ "), "SPAN "),  # a time that was cut off
    (re.compile(r"\"/[^\"…]*…"), '"FOLDER…'),
    (re.compile(r"/[\w./ -]*?/(training|rlvr/assets)"), r"FOLDER/\1"),
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    with training_tree(tmp_path, monkeypatch) as folder:
        yield folder


def blotted(app: App) -> str:
    """The screen without what differs from run to run; blanks count as one, because widths follow what was blotted."""
    text = words(app)
    for pattern, blot in BLOTS:
        text = pattern.sub(blot, text)
    lines = [re.sub(r"[ ─━]+", " ", line).rstrip() for line in text.splitlines()]
    return "\n".join(lines) + "\n"


async def settled(pilot: Pilot) -> str:
    """The screen when nothing comes any more."""
    last = ""
    for _ in range(200):
        await pilot.pause(0.3)
        if last == (last := blotted(pilot.app)):
            break
    return last


@pytest.mark.parametrize("name", SCREENS)
async def test_a_screen_of_the_dashboard(tree: Path, name: str):
    keys, word = SCREENS[name]
    file = SNAPSHOTS / f"dashboard-{name}.txt"
    async with Dashboard().run_test(size=SIZE) as pilot:
        await opened(pilot)
        await press(pilot, *keys)
        await until(pilot, lambda: word in words(pilot.app))
        if os.environ.get("UPDATE_SNAPSHOTS"):
            SNAPSHOTS.mkdir(exist_ok=True)
            file.write_text(await settled(pilot), encoding="utf-8")
        wanted = file.read_text(encoding="utf-8")
        end = time.monotonic() + 60
        while blotted(pilot.app) != wanted and time.monotonic() < end:  # what is read in threads may come late
            await pilot.pause(0.05)
        assert blotted(pilot.app) == wanted
