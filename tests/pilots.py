"""What the tests of the dashboard share: a tree on disk with a run that lives, waiting, typing, reading the screen."""

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from textual.app import App
from textual.pilot import Pilot
from training_tree import make_training_tree

from rlvr import cycles
from rlvr.tui.dashboard import RunsPage

SIZES = [(80, 24), (120, 35), (200, 60)]

SAMPLE = Path(cycles.__file__).parent / "assets/sample"

MODEL_TOML = f"""\
corpus_dir = "{SAMPLE}"
base_model = "tiny"
max_seq_length = 512
lora_rank = 16  # as small as it goes
lora_alpha = 32
"""


@contextlib.contextmanager
def training_tree(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with training/ in it as the cwd; demo/003 runs as a process of its own, which may be killed."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.chdir(folder)
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        make_training_tree(folder, num_steps=24, pid=process.pid)
        (folder / "training/demo/model.toml").write_text(MODEL_TOML)
        cycles.remember_model("demo")
        yield folder
    finally:
        process.kill()
        process.wait()


async def until(pilot: Pilot, wanted: Callable[[], Any], timeout_s: float = 60.0) -> None:
    """Let the application go on until something is so."""
    end = time.monotonic() + timeout_s
    while not wanted():
        assert time.monotonic() < end, "it never came about"
        await pilot.pause(0.05)


async def opened(pilot: Pilot) -> RunsPage:
    """The list of runs, filled."""
    await until(pilot, lambda: isinstance(pilot.app.screen, RunsPage) and len(pilot.app.screen.table.cells) > 0)
    page = pilot.app.screen
    assert isinstance(page, RunsPage)
    return page


async def write(pilot: Pilot, text: str) -> None:
    for character in text:
        await pilot.press("space" if character == " " else character)


def words(app: App) -> str:
    """What stands on the screen."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)


def plain(cell: Text | str) -> str:
    return cell.plain if isinstance(cell, Text) else cell
