"""The dashboard with real runs: a tiny cycle started, followed and ended from it, in a Pilot and in a terminal."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pilots import click, heard, plain, press, until, words
from processes import wait_until
from textual.widgets import Input

from rlvr import control, cycles, layers
from rlvr.config import PRESETS
from rlvr.records import Launch, read
from rlvr.status import LIVING, process_start
from rlvr.tui.app import Dashboard
from rlvr.tui.launch import NewCycle
from rlvr.tui.table import KeyedTable

ROOT = Path(__file__).parent.parent
SMALL = {
    "prompts_per_step": 4,
    "num_generations": 4,
    "filter_samples": 0,
    "baseline_tasks": 0,
    "preflight_tasks": 0,
    "sandbox_workers": 1,
    "corpus_dir": str(ROOT / "rlvr/assets/sample"),
}

pytestmark = pytest.mark.slow


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A model `m` without runs; whatever was started is killed at the end."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.chdir(tmp_path)
    layers.create(tmp_path / "training/m", {**PRESETS["tiny"], **SMALL})
    yield tmp_path
    for run in cycles.all_runs("m"):
        if control.status_of(run).state in LIVING:
            control.kill(run, force=True)


async def test_a_cycle_is_started_after_its_plan_was_seen(model: Path):
    async with Dashboard().run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "no run yet" in words(pilot.app))
        await press(pilot, "n")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewCycle))
        dialog = pilot.app.screen
        await until(pilot, lambda: dialog.query("#overrides"))
        dialog.query_one("#overrides", Input).value = "max_step=8"
        await until(pilot, lambda: "did you mean 'max_steps'" in " ".join(words(pilot.app).split()))
        dialog.query_one("#overrides", Input).value = "max_steps=8"  # enough to be seen while they run
        await until(pilot, lambda: "cold start from the base model" in words(pilot.app))
        await until(pilot, lambda: "8 steps" in words(pilot.app))
        (model / "training/m/001").mkdir()  # what is left of a cycle that never began
        said = heard(pilot.app)
        await press(pilot, "ctrl+r")
        await until(pilot, lambda: any(text.startswith("m/001 never made a step: moved to ") for text in said))
        await until(pilot, lambda: [run.name for run in cycles.cycle_runs("m")] == ["001"])
        run = cycles.find_run("001", "m")
        await until(pilot, lambda: control.status_of(run).state == "running")
        await until(pilot, lambda: "● running" in words(pilot.app))
        status = control.status_of(run)
        assert os.getsid(status.pid) == status.pid != os.getsid(0)  # a session of its own: it outlives the terminal
    assert control.status_of(run).state in (*LIVING, "done")
    assert control.wait([run], timeout_s=600) == 0
    assert control.status_of(run).step == 8
    assert "max_steps = 8" in run.files.config.read_text()
    async with Dashboard().run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "✓ done" in words(pilot.app))

        # An evaluation of it, from the form.
        await press(pilot, "5")
        await until(pilot, lambda: type(pilot.app.screen).__name__ == "EvalsPage" and pilot.app.screen.ready)  # type: ignore
        page = pilot.app.screen
        await until(pilot, lambda: page.offered == ["base", "001"])  # type: ignore[attr-defined]
        page.query_one("#field-num_tasks", Input).value = "4"
        await press(pilot, "ctrl+r")
        await until(pilot, lambda: page.table.has_focus)  # type: ignore[attr-defined]  # it was started
    evaluation = cycles.eval_runs("m")[0]
    assert evaluation.name == "001/evals/base"
    assert read(evaluation.files.launch, Launch).participants == ("base", "training/m/001/adapter")
    assert control.wait([evaluation], timeout_s=600) == 0


async def test_an_auto_run_is_started_from_its_form_and_killed(model: Path):
    async with Dashboard().run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "no run yet" in words(pilot.app))
        await press(pilot, "6")
        await until(pilot, lambda: type(pilot.app.screen).__name__ == "AutoPage" and pilot.app.screen.ready)  # type: ignore
        page = pilot.app.screen
        for name, text in {
            "rounds": "2",
            "until": "solved>=0.9",
            "num_tasks": "4",
            "overrides": "max_steps=500",
        }.items():
            page.query_one(f"#field-{name}", Input).value = text
        await press(pilot, "ctrl+r")
        await until(pilot, lambda: bool(cycles.auto_runs("m")))
        run = cycles.auto_runs("m")[0]
        await until(pilot, lambda: control.status_of(run).state == "running", timeout_s=300)
        assert read(run.files.launch, Launch).auto == {
            "rounds": 2,
            "until": "solved>=0.9",
            "patience": 3,
            "train": {"max_steps": "500"},
            "eval": {"num_tasks": "4"},
        }
        table = page.query_one("#autos", KeyedTable)
        await until(pilot, lambda: "running" in plain(table.cells.get("auto/001", ("", ""))[1]))
        await until(pilot, lambda: [each.name for each in cycles.cycle_runs("m")] == ["001"], timeout_s=300)
        await until(pilot, lambda: control.status_of(cycles.cycle_runs("m")[0]).state == "running", timeout_s=300)
        table.focus()
        await until(pilot, lambda: table.has_focus and page.check_action("kill", ()))
        await press(pilot, "K")
        await until(pilot, lambda: pilot.app.screen.is_modal)
        await click(pilot, "#choice-stop")
        await until(pilot, lambda: control.status_of(run).state == "killed", timeout_s=300)
        assert control.status_of(cycles.find_run("001", "m")).state == "killed"


# ---------------------------------------------------------------------------------------------------------------------
# In a terminal


class Terminal:
    """A tmux session of its own server."""

    def __init__(self, folder: Path, width: int, height: int):
        self.socket = f"rlvrtui-{os.getpid()}-{time.monotonic_ns()}"
        size = ["-x", str(width), "-y", str(height)]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "t", *size, "-c", str(folder), "sh")

    def tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-L", self.socket, *arguments], capture_output=True, encoding="utf-8", check=True
        )
        return done.stdout

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "t", *keys)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-t", "t", "-l", text)

    def text(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "t")

    def wait(self, wanted: str | Callable[[str], bool], timeout_s: float = 240.0) -> str:
        """Wait until something stands on the screen; returns all of it."""
        end = time.monotonic() + timeout_s
        while True:
            text = self.text()
            if wanted in text if isinstance(wanted, str) else wanted(text):
                return text
            assert time.monotonic() < end, f"{wanted!r} never came; the screen is\n{text}"
            time.sleep(0.05)

    def close(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.tmux("kill-server")


@pytest.fixture
def terminal(model: Path) -> Iterator[Terminal]:
    opened = Terminal(model, 120, 35)
    opened.type("export TERM=xterm-256color LANG=C.UTF-8 PS1='$ '; stty -a > before; clear")
    opened.keys("Enter")
    yield opened
    opened.close()


DASHBOARD = f"{sys.executable} {ROOT / 'rlvrtui.py'}"


@pytest.mark.tmux
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is missing")
def test_a_run_lives_on_when_the_dashboard_ends_and_is_killed_from_the_next(model: Path, terminal: Terminal):
    layers.set_keys(model / "training/m", "permanent", {"max_steps": "5000"}, "train")  # it ends when it is killed
    terminal.type(f"{DASHBOARD}; echo code $?")
    terminal.keys("Enter")
    terminal.wait("no run yet")
    terminal.keys("n")
    terminal.wait("cold start from the base model")
    terminal.keys("C-r")
    terminal.wait("● running")
    run = cycles.find_run("001", "m")
    terminal.wait(lambda text: "/5,000" in text and "reward" in text, timeout_s=300)  # the first steps have come
    terminal.keys("q")
    terminal.wait("code 0")
    assert control.status_of(run).state == "running"
    terminal.type("clear; stty -a > after; cmp before after && echo 'same' terminal")
    terminal.keys("Enter")
    terminal.wait("same terminal")

    terminal.type(f"clear; {DASHBOARD}; echo code $?")
    terminal.keys("Enter")
    terminal.wait("● running")
    terminal.keys("K")
    terminal.wait("Kill 001")
    assert control.status_of(run).state == "running"
    terminal.keys("Left", "Left")
    terminal.keys("Enter")  # stop with a checkpoint
    terminal.wait("■ killed")
    status = control.status_of(run)
    assert (status.state, status.exit_code) == ("killed", 143)
    assert wait_until(lambda: process_start(status.pid) is None)  # it says so first and ends then
    terminal.keys("r")
    terminal.wait("● running")
    assert read(run.files.launch, Launch).resume
    terminal.keys("K")
    terminal.wait("Kill 001")
    terminal.keys("Left")
    terminal.keys("Enter")  # at once
    terminal.wait("■ killed")
    assert control.status_of(run).exit_code == 137
    terminal.keys("q")
    terminal.wait("code 0")


@pytest.mark.tmux
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is missing")
def test_a_crash_leaves_the_terminal_as_it_was(model: Path, terminal: Terminal):
    (model / "crash.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "import rlvrtui\nfrom rlvr.tui.dashboard import RunsPage\nRunsPage.cells = None\nrlvrtui.main([])\n"
    )
    (model / "training/m/001").mkdir()
    terminal.type(f"clear; {sys.executable} crash.py; stty -a > after; cmp before after && echo 'same' terminal")
    terminal.keys("Enter")
    text = terminal.wait("same terminal")
    assert "TypeError" in text
    terminal.type("echo typed $((6 * 7))")
    terminal.keys("Enter")
    terminal.wait("typed 42")
