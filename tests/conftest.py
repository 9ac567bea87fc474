"""Fixtures that many tests use: the root, its programs as subprocesses, a cache of their own."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import rlvrctl

ROOT = Path(__file__).parent.parent

# A shell that starts the tests in the background lets them, and all that they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files with slow tests first: side by side, what is long must not begin last."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory):
    """No test reads or writes the user's own cache."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the tests assert what happens without a GPU
    return folder


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run one of the root programs as a user would, in an empty folder; returns the finished process."""

    def run(
        name: str, *arguments: object, cwd: Path = tmp_path, timeout: float = 900
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(ROOT / name), *map(str, arguments)]
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout)

    return run


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run rlvrctl.py in this very process, in an empty folder; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = rlvrctl.main([*map(str, arguments)])
        except SystemExit as end:  # argparse
            code = int(end.code or 0)
        return code, *capsys.readouterr()

    return run
