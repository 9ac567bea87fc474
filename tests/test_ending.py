"""The viewers when they are ended from outside: no process stays behind, and the terminal is as it was."""

import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from processes import alive, wait_until
from shot import Terminal
from training_tree import make_training_tree

from rlvr.tui import ending

PROGRAMS = {"rlvrviz.py": "reward", "rlvrtui.py": "Runs of"}

in_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    make_training_tree(tmp_path, num_steps=8)
    return tmp_path


def opened(root: Path, tree: Path, program: str) -> Terminal:
    env = {"HOME": str(tree), "XDG_CONFIG_HOME": str(tree / "config")}
    command = [sys.executable, str(root / program), "--model", "demo"]
    return Terminal(command, tree, 120, 35, env)


def viewers(tree: Path) -> list[int]:
    """The processes that run in this folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if Path(os.readlink(folder / "cwd")) == tree and sys.executable.encode() == words[0]:
                found.append(int(folder.name))
        except OSError:
            continue
    return [pid for pid in found if alive(pid)]


@pytest.mark.tmux
@in_tmux
@pytest.mark.parametrize("program", PROGRAMS)
def test_closing_the_terminal_leaves_no_process(root: Path, tree: Path, program: str):
    terminals = [opened(root, tree, program) for _ in range(4)]
    try:
        for terminal in terminals:
            terminal.wait(PROGRAMS[program])
        assert len(viewers(tree)) == 4
    finally:
        for terminal in terminals:
            terminal.close()
    assert wait_until(lambda: not viewers(tree))


@pytest.mark.tmux
@in_tmux
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_leaves_the_terminal_as_it_was(root: Path, tree: Path, program: str, number: int):
    terminal = opened(root, tree, program)
    try:
        terminal.wait(PROGRAMS[program])
        [pid] = viewers(tree)
        os.kill(pid, number)
        terminal.wait(f"ended with {128 + number}")
        state = terminal.tmux(
            "display-message", "-p", "#{alternate_on} #{mouse_any_flag} #{mouse_sgr_flag} #{cursor_flag}"
        )
        assert state.split() == ["0", "0", "0", "1"]
    finally:
        terminal.close()


def test_what_does_not_end_in_order_is_ended_hard(monkeypatch: pytest.MonkeyPatch):
    codes, done = [], threading.Event()
    monkeypatch.setattr(ending, "GRACE_S", 0.05)
    monkeypatch.setattr(os, "_exit", lambda code: (codes.append(code), done.set()))

    class Stuck:
        """An application whose end waits for a terminal that is gone."""

        def exit(self, return_code: int) -> None:
            codes.append(-return_code)

    before = time.monotonic()
    ending.end(Stuck(), 129)  # type: ignore[arg-type]
    assert time.monotonic() - before < 5 and codes[0] == -129
    assert done.wait(30) and codes == [-129, 129]
