"""Fixtures of the Colab tests: VMs on loopback, by the real client where it can be installed, else by the stand-in."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from colab_offline import OfflineColab, install_client
from workplace import Workplace, no_process_left

from rlvr import records
from rlvr.records import ColabSession

REAL, STANDIN = "real client", "stand-in"


def client_python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, *, both: bool):
    """The Python of the real client, None for the stand-in; the test is skipped for the one that is not wanted."""
    python, why_not = install_client(tmp_path_factory.getbasetemp().parent)
    if request.param == REAL and python is None:
        pytest.skip(f"{why_not}: the stand-in is tested instead")
    if request.param == STANDIN and python is not None and not both:
        pytest.skip("the real client is here, and tested")
    return python if request.param == REAL else None


class ColabPlace(Workplace):
    """A folder to work in where the program `colab` is the one of `colab`."""

    def __init__(self, folder: Path, colab: OfflineColab):
        super().__init__(folder)
        self.colab = colab

    def start(self, *arguments: object, **options) -> subprocess.Popen[str]:
        options.setdefault("env", self.colab.env)
        return super().start(*arguments, **options)

    def session(self, run: str, model: str = "m") -> ColabSession:
        return records.read(self / f"{model}/{run}/colab.json", ColabSession)

    def log(self, run: str, model: str = "m") -> str:
        return (self / f"{model}/{run}/run.log").read_text(errors="replace")


def make_place(folder: Path, python: Path | None) -> Iterator[ColabPlace]:
    """A workplace and its VMs; nothing that was started may be there at the end."""
    with no_process_left():
        colab = OfflineColab(folder / "colab", python)
        place = ColabPlace(folder / "a person's work", colab)
        place.folder.mkdir()
        try:
            yield place
        finally:
            colab.close()
