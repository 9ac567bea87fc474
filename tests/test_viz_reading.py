"""The viewer while files change under it: held still, replaced, of another run; and what it remembers of a person."""

import os
from pathlib import Path

import pytest
from pilots import press, settle, stand_in, until, words
from training_tree import make_training_tree, steps, write_step

from rlvr.cycles import RunFiles, find_run
from rlvr.tui import preferences
from rlvr.tui.series import open_path, open_run
from rlvr.tui.viz import VizApp


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    return stand_in(tmp_path, tmp_path / "config", monkeypatch)


def make_run(folder: Path, num_steps: int) -> RunFiles:
    """A run of so many steps, 16 completions each."""
    files = RunFiles(folder)
    folder.mkdir()
    for step, lines in list(steps(60))[:num_steps]:
        write_step(files, step, lines)
    return files


async def test_another_run_is_shown_though_the_picture_was_held_still(here):
    make_training_tree(here, num_steps=8)
    app = VizApp([open_run(find_run("demo/001"))])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: app.pane.table.all and app.grid.charts)
        await press(pilot, "P")
        app.open_runs([find_run("demo/002")])
        await until(pilot, lambda: app.pane.table.all and app.grid.charts)
        await settle(pilot)
        assert not app.paused and app.grid.curves[0].name == "demo/002" and len(app.grid.curves[0].metrics) > 4


async def test_a_file_replaced_while_the_picture_is_held_still_takes_its_place(here):
    files = make_run(here / "run", 6)
    other = make_run(here / "other", 2)
    app = VizApp([open_path(files.folder)])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: len(app.pane.table.all) == 96)
        await press(pilot, "P")
        os.replace(other.metrics, files.metrics)
        os.replace(other.trace, files.trace)
        await until(pilot, lambda: len(app._held) == 32 and app.readers[0].metrics.count == 2)
        assert len(app.pane.table.all) == 96 and len(app.grid.curves[0].metrics) == 6
        await press(pilot, "P")
        assert len(app.pane.table.all) == 32 and len(app.grid.curves[0].metrics) == 2


@pytest.mark.parametrize(
    "text", ['keys = "x"', "keys = 3", "[keys]\ncross = 5\nunheard-of = 'z'", 'theme = ["x"]', "["]
)
async def test_preferences_of_any_kind_are_no_reason_to_fall_over(here, text):
    file = here / "config/oeis-rlvr/tui.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    app = VizApp([open_path(make_run(here / "run", 1).folder)])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: "reward" in words(app))


def test_preferences_are_replaced_in_one_go(here, monkeypatch):
    preferences.remember("theme", "nord")
    file = here / "config/oeis-rlvr/tui.toml"
    before = file.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    preferences.remember("viz_columns", 3)
    assert file.read_bytes() == before


async def test_a_theme_that_there_is_not_ends_the_viewer_and_says_which_there_are(here):
    app = VizApp([open_path(make_run(here / "run", 1).folder)], theme="nope")
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: app._exit)
    assert app.return_code == 2
