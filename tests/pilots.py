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
from textual.widgets import Input
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


def stand_in(folder: Path, config_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in `folder`, with preferences of its own and no wish of the user about colours."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config_home))
    monkeypatch.delenv("TEXTUAL_THEME", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return folder


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


async def settle(pilot: Pilot) -> None:
    """Let every widget handle what it was sent, and what that sets off, five times over.

    Pilot waits for a CPU that idles instead, which on a busy machine is too early: a key is a chain of messages.
    """
    for _ in range(5):
        await pilot.pause(0)


async def until(pilot: Pilot, wanted: Callable[[], Any], timeout_s: float = 120.0) -> None:
    """Let the application go on until something is so."""
    end = time.monotonic() + timeout_s
    while not wanted():
        assert time.monotonic() < end, f"it never came about:\n{words(pilot.app)}"
        await pilot.pause(0.05)


async def opened(pilot: Pilot) -> RunsPage:
    """The list of runs, filled."""
    await until(pilot, lambda: isinstance(pilot.app.screen, RunsPage) and len(pilot.app.screen.table.cells) > 0)
    await settle(pilot)
    page = pilot.app.screen
    assert isinstance(page, RunsPage)
    return page


async def press(pilot: Pilot, *keys: str) -> None:
    """Type keys as a person does: the next one when what the one before set off is over."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


async def focused(pilot: Pilot, selector: str) -> None:
    """Wait until the focus is there: keys go elsewhere before."""
    await until(pilot, lambda: pilot.app.focused in pilot.app.screen.query(selector))
    await settle(pilot)


async def click(pilot: Pilot, selector: str) -> None:
    """Click on a widget once it has its place on the screen."""
    await until(pilot, lambda: any(widget.region.area for widget in pilot.app.screen.query(selector)))
    await settle(pilot)
    assert await pilot.click(selector), f"something else lies over {selector}"


async def write(pilot: Pilot, text: str) -> None:
    """Type a text into the field that has the focus, or will have it in a moment."""
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))
    await press(pilot, *("space" if character == " " else character for character in text))


def heard(app: App) -> list[str]:
    """What the application says from now on; from the screen a message goes away by itself."""
    said: list[str] = []
    notify = app.notify

    def note(message: str, **options: Any) -> None:
        said.append(message)
        notify(message, **options)

    app.notify = note  # type: ignore[method-assign]
    return said


def words(app: App) -> str:
    """What stands on the screen."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)


def plain(cell: Text | str) -> str:
    return cell.plain if isinstance(cell, Text) else cell
