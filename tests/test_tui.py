"""The dashboard: real key presses against a training tree on disk; what it does is read back from the files."""

import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pilots import SIZES, click, focused, heard, opened, plain, press, training_tree, until, words, write
from textual.app import App
from textual.command import CommandList
from textual.pilot import Pilot
from textual.widgets import Input

from rlvr import control, cycles, layers, records
from rlvr.records import Status
from rlvr.tui.app import Dashboard
from rlvr.tui.chart import ChartGrid
from rlvr.tui.completions import CompletionsTable
from rlvr.tui.configure import ConfigPage
from rlvr.tui.dashboard import RunsPage
from rlvr.tui.follow import LogView, RunView
from rlvr.tui.help import HelpScreen
from rlvr.tui.table import KeyedTable

ROOT = Path(__file__).parent.parent


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with training_tree(tmp_path, monkeypatch) as folder:
        yield folder


# ---------------------------------------------------------------------------------------------------------------------
# Runs


@pytest.mark.parametrize("size", SIZES)
async def test_runs_live_ones_first(tree: Path, size: tuple[int, int]):
    async with Dashboard().run_test(size=size) as pilot:
        page = await opened(pilot)
        assert next(iter(page.table.cells)) == "003"
        assert set(page.table.cells) == {
            "001",
            "002",
            "003",
            "004",
            "002/evals/base+001",
            "003/evals/base",
            "auto/001",
        }
        assert [plain(cell) for cell in page.table.cells["003"]][:3] == ["003", "● running", " 66% 16/24"]
        await until(pilot, lambda: "reward" in words(pilot.app) and "16/24" in words(pilot.app))
        for line in words(pilot.app).splitlines():
            assert len(line) <= size[0]


async def test_the_cursor_stays_on_its_run_when_others_come_and_go(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        page.table.select("002")
        shutil.copytree(tree / "training/demo/002", tree / "training/demo/005", symlinks=True)
        await until(pilot, lambda: "005" in page.table.cells)
        assert page.table.selected == "002"
        shutil.rmtree(tree / "training/demo/005")
        await until(pilot, lambda: "005" not in page.table.cells)
        assert page.table.selected == "002"


async def test_a_run_that_ends_moves_and_says_so(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        file = tree / "training/demo/003/status.json"
        status = records.read(file, Status)
        status.state, status.finished, status.step = "failed", time.time(), 17
        status.message = "RuntimeError: out of memory"
        records.write(file, status)
        await until(pilot, lambda: "failed" in plain(page.table.cells["003"][1]))
        assert "17/24" in plain(page.table.cells["003"][2])
        await until(pilot, lambda: "out of memory" in words(pilot.app))


async def test_kill_asks_first_and_cancel_is_the_default(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        page.table.select("003")
        await press(pilot, "K")
        await until(pilot, lambda: pilot.app.screen.is_modal)
        await focused(pilot, "#cancel")
        await press(pilot, "enter")
        await until(pilot, lambda: pilot.app.screen is page)
        assert control.status_of(cycles.find_run("demo/003")).state == "running"
        await press(pilot, "K")
        await until(pilot, lambda: pilot.app.screen.is_modal)
        await click(pilot, "#choice-force")
        await until(pilot, lambda: control.status_of(cycles.find_run("demo/003")).state == "killed")
        await until(pilot, lambda: "killed" in plain(page.table.cells["003"][1]))


async def test_verbs_that_do_not_fit_the_run_are_off(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        page.table.select("001")
        await pilot.pause()
        assert page.check_action("kill", ()) is None and page.check_action("resume", ()) is None
        assert page.check_action("remove", ()) is True
        page.table.select("003")
        await pilot.pause()
        assert page.check_action("kill", ()) is True and page.check_action("remove", ()) is None


async def test_remove_names_what_depends_on_it_and_moves_all(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        page.table.select("002/evals/base+001")
        await press(pilot, "d")
        await until(pilot, lambda: pilot.app.screen.is_modal)
        await click(pilot, "#choice-remove")
        await until(pilot, lambda: not (tree / "training/demo/002/evals/base+001").exists())
        assert any((tree / "training/.trash").iterdir())
        await until(pilot, lambda: "002/evals/base+001" not in page.table.cells)


async def test_only_cycles_are_marked_and_as_many_as_there_are_colours(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        page.table.select("003/evals/base")
        await press(pilot, "space")
        assert pilot.app.marked == []  # type: ignore[attr-defined]
        pilot.app.marked = [f"9{index}" for index in range(8)]  # type: ignore[attr-defined]
        page.table.select("002")
        said = heard(pilot.app)
        await press(pilot, "space")
        await until(pilot, lambda: "At most 8" in " ".join(said))
        assert "002" not in pilot.app.marked  # type: ignore[attr-defined]


async def test_the_cursor_goes_to_a_run_that_was_started_when_it_comes(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        page.table.select("001")
        page.table.select_when_there("005")
        assert page.table.selected == "001"
        shutil.copytree(tree / "training/demo/002", tree / "training/demo/005", symlinks=True)
        await until(pilot, lambda: page.table.selected == "005")
        await until(pilot, lambda: "005  cycle" in words(pilot.app))


async def test_the_completions_of_the_step_under_the_crosshair(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        page.table.select("002")
        await until(pilot, lambda: page.query("#graphs") and page.query_one("#graphs", ChartGrid).charts)
        page.query_one("#graphs").focus()
        await focused(pilot, "#graphs")
        await press(pilot, "x", "c")
        await until(pilot, lambda: type(pilot.app.screen).__name__ == "MonitorPage")
        await until(pilot, lambda: pilot.app.screen.query("CompletionsTable"))
        table = pilot.app.screen.query_one(CompletionsTable)
        await until(pilot, lambda: table.shown)
        assert {row.step for row in table.shown} == {24}


@pytest.mark.parametrize("size", SIZES)
async def test_help_is_a_window_with_the_keys_of_the_screen_first(tree: Path, size: tuple[int, int]):
    (tree / "config/oeis-rlvr").mkdir(parents=True)
    (tree / "config/oeis-rlvr/tui.toml").write_text('[keys]\nkill = "ctrl+k"\nsmooth = "v"\n')
    async with Dashboard().run_test(size=size) as pilot:
        page = await opened(pilot)
        await until(pilot, lambda: page.query("#graphs"))
        await press(pilot, "question_mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        titles = [title for title, _ in pilot.app.screen.sections]  # type: ignore[attr-defined]
        assert titles == ["This screen", "Charts", "Every screen"]
        await until(pilot, lambda: "ctrl+k" in words(pilot.app) and "Start the next cycle" in words(pilot.app))
        await press(pilot, "escape")
        await until(pilot, lambda: pilot.app.screen is page)
        page.query_one("#graphs").focus()
        await focused(pilot, "#graphs")
        await press(pilot, "question_mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        title, rows = pilot.app.screen.sections[0]  # type: ignore[attr-defined]
        assert title == "Charts" and any(key.startswith("v") and "smoothing" in about for key, about in rows)


@pytest.mark.parametrize("size", SIZES)
async def test_enter_and_the_panes_stand_in_the_footer(tree: Path, size: tuple[int, int]):
    async with Dashboard().run_test(size=size) as pilot:
        await opened(pilot)
        await until(pilot, lambda: "⏎ Open" in words(pilot.app))
        await press(pilot, "2")
        await until(pilot, lambda: "⏎ Choose" in words(pilot.app))
        await press(pilot, "3")
        await until(pilot, lambda: "⏎ Edit" in words(pilot.app))
        await press(pilot, "4")
        await until(pilot, lambda: "⏎ Apply" in words(pilot.app))
        await press(pilot, "7")
        await until(pilot, lambda: ". Pane" in words(pilot.app))


async def test_a_narrow_title_line_says_what_runs_and_where(tree: Path):
    async with Dashboard().run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await until(pilot, lambda: words(pilot.app).splitlines()[0].rstrip().endswith("●1 ○1 demo"))


async def test_label_is_written_and_shown(tree: Path):
    async with Dashboard().run_test(size=(200, 60)) as pilot:
        page = await opened(pilot)
        page.table.select("002")
        await press(pilot, "L")
        await until(pilot, lambda: pilot.app.screen.is_modal)
        await write(pilot, "half the rate")
        await press(pilot, "enter")
        await until(pilot, lambda: plain(page.table.cells["002"][-1]) == "half the rate")
        assert (tree / "training/demo/002/label.txt").read_text() == "half the rate\n"


@pytest.mark.parametrize("size", SIZES)
async def test_columns_give_way_and_what_is_cut_off_ends_with_an_ellipsis(tree: Path, size: tuple[int, int]):
    (tree / "training/demo/002/label.txt").write_text("half [the] rate" + 8 * " more words" + "\n")
    async with Dashboard().run_test(size=size) as pilot:
        page = await opened(pilot)
        await until(pilot, lambda: "half [the]" in words(pilot.app))
        table = page.table
        assert table.virtual_size.width <= table.size.width
        assert table.shown[:3] == ["Run", "State", "Progress"] and table.shown[-1] == "Label"
        assert ("When" in table.shown) == (size[0] == 200)
        line = next(line for line in words(pilot.app).splitlines() if "half [the]" in line)
        assert "…" in line
        page.table.select("002")
        await pilot.resize_terminal(200, 60)
        await until(pilot, lambda: "When" in table.shown and table.shown == list(table.titles))
        assert table.selected == "002" and "✓ done" in words(pilot.app)


async def test_a_row_that_is_drawn_before_its_columns_have_their_width_is_not_cut_off_for_good():
    class Shown(App):
        def compose(self):
            yield KeyedTable("Name")

    async with Shown().run_test() as pilot:
        table = pilot.app.query_one(KeyedTable)
        table.show({"one": ("A name that is longer than its title",)})
        table.render_line(1)
        await until(pilot, lambda: "A name that is longer than its title" in words(pilot.app))


async def test_f5_reads_the_run_under_the_cursor_again(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        page.table.select("002")
        view = page.query_one(RunView)
        await until(pilot, lambda: view.run and view.run.name == "002" and view.query("#graphs"))
        await press(pilot, "f5")
        assert view.run and view.run.name == "002"
        await until(pilot, lambda: view.query_one(LogView).line_count and "reward" in words(pilot.app))


async def test_filter_and_escape(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        await press(pilot, "slash")
        await focused(pilot, "#filter")
        await write(pilot, "evals")
        await until(pilot, lambda: set(page.table.cells) == {"002/evals/base+001", "003/evals/base"})
        await press(pilot, "escape")
        await until(pilot, lambda: len(page.table.cells) == 7)


async def test_palette_shows_the_keys_in_their_window(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        (command,) = [each for each in pilot.app.get_system_commands(page) if each.title == "Keys"]
        command.callback()
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))


async def test_palette_opens_a_run(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        await opened(pilot)
        await press(pilot, "ctrl+p")
        await until(pilot, lambda: pilot.app.screen.query(CommandList))
        await write(pilot, "open run 002")
        found = pilot.app.screen.query_one(CommandList)
        await until(pilot, lambda: [option.hit.text for option in found.options][:1] == ["Open run 002"])  # type: ignore
        await press(pilot, "enter")
        await until(pilot, lambda: type(pilot.app.screen).__name__ == "MonitorPage")
        await until(pilot, lambda: "cycle, done" in words(pilot.app))
        await press(pilot, "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsPage))


# ---------------------------------------------------------------------------------------------------------------------
# Config


async def config_page(pilot: Pilot) -> ConfigPage:
    await opened(pilot)
    await press(pilot, "3")
    await until(pilot, lambda: isinstance(pilot.app.screen, ConfigPage) and pilot.app.screen.drafts is not None)
    page = pilot.app.screen
    assert isinstance(page, ConfigPage)
    return page


async def test_a_form_edit_ends_up_in_training_toml_with_comments_kept(tree: Path):
    file = tree / "training/demo/training.toml"
    file.write_text("# mine\nmax_steps = 80  # enough\n\n[ephemeral]\nlearning_rate = 0.001\n")
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await config_page(pilot)
        await press(pilot, "full_stop")
        await until(pilot, lambda: page.place.title == "training" and "80" in plain(page.table.cells["max_steps"][1]))
        page.table.select("max_steps")
        await press(pilot, "enter")
        await until(pilot, lambda: pilot.app.focused is page.query_one("#field"))
        page.query_one("#field", Input).value = ""
        await write(pilot, "4x")
        await until(pilot, lambda: "must be an integer" in str(page.query_one(".problem").render()))
        await press(pilot, "backspace", "0")
        await press(pilot, "enter")
        await until(pilot, lambda: plain(page.table.cells["max_steps"][1]) == "* 40")
        assert tomllib.loads(file.read_text())["max_steps"] == 80  # nothing is written before it is saved
        await press(pilot, "ctrl+s")
        await until(pilot, lambda: "40" in file.read_text())
    assert file.read_text() == "# mine\nmax_steps = 40  # enough\n\n[ephemeral]\nlearning_rate = 0.001\n"


async def test_shadowing_value_is_jumped_to_and_unset(tree: Path):
    folder = tree / "training/demo"
    layers.set_keys(folder, "permanent", {"learning_rate": "2e-3"}, "train")
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await config_page(pilot)
        await press(pilot, "full_stop")
        await until(pilot, lambda: page.place.title == "training")
        page.table.select("learning_rate")
        wanted = ["0.002", "0.001", "↑ next cycle"]
        await until(pilot, lambda: [plain(cell) for cell in page.table.cells["learning_rate"]][1:4] == wanted)
        assert page.table.selected == "learning_rate"
        await press(pilot, "s")
        await until(pilot, lambda: page.place.title == "next cycle" and page.table.selected == "learning_rate")
        await press(pilot, "u")
        await until(pilot, lambda: plain(page.table.cells["learning_rate"][1]) == "* (unset)")
        await press(pilot, "ctrl+s")
        await until(pilot, lambda: "0.001" not in (folder / "training.toml").read_text())
        config, origins = layers.resolve_for(folder, layers.TrainConfig)
        assert (config.learning_rate, origins["learning_rate"]) == (0.002, "training.toml")


async def test_leaving_with_unsaved_changes_asks(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await config_page(pilot)
        page.table.select("seed")
        await press(pilot, "enter")
        await focused(pilot, "#field")
        await press(pilot, "7", "enter")
        await until(pilot, lambda: plain(page.table.cells["seed"][1]) == "* 7")
        await press(pilot, "1")
        await opened(pilot)
        await press(pilot, "q")
        await until(pilot, lambda: pilot.app.screen.is_modal)
        await until(pilot, lambda: "1 changed key is not saved" in words(pilot.app))
        await press(pilot, "escape")
        await opened(pilot)
        await press(pilot, "3")
        await until(pilot, lambda: pilot.app.screen is page)
        assert plain(page.table.cells["seed"][1]) == "* 7"
        await press(pilot, "z")
        await until(pilot, lambda: plain(page.table.cells["seed"][1]) == "")


async def test_a_frozen_key_cannot_be_changed(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await config_page(pilot)
        page.table.select("lora_rank")
        await press(pilot, "enter")
        await focused(pilot, "#field")
        page.query_one("#field", Input).value = "8"
        await until(pilot, lambda: "fixed at 16" in str(page.query_one(".problem").render()))
        assert not page.drafts.changes  # type: ignore[union-attr]


async def test_a_broken_file_is_an_error_that_names_it(tree: Path):
    (tree / "training/demo/training.toml").write_text("max_step = 3\n")
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        await opened(pilot)
        await press(pilot, "3")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfigPage) and pilot.app.screen.ready)
        await until(pilot, lambda: "unknown key 'max_step'" in str(pilot.app.screen.query_one("#trouble").render()))
        (tree / "training/demo/training.toml").write_text("max_steps = 3\n")
        await press(pilot, "f5")
        await until(pilot, lambda: pilot.app.screen.drafts is not None)  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------------------------------
# Models


async def test_the_first_model_is_made_in_the_dashboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    async with Dashboard().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "No model yet" in words(pilot.app))
        await press(pilot, "n")
        await until(pilot, lambda: pilot.app.screen.is_modal)
        await focused(pilot, "#name")
        await write(pilot, "003")
        dialog = pilot.app.screen
        await until(pilot, lambda: "not only digits" in str(dialog.query_one(".problem").render()))
        pilot.app.screen.query_one("#name", Input).value = "mine"
        await press(pilot, "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsPage))
        document = tomllib.loads((tmp_path / "training/mine/model.toml").read_text())
        assert document["base_model"] == "tiny" and document["environment"] == "oeis"
        assert pilot.app.model == "mine"  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------------------------------
# Starting


def modules_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after running this."""
    script = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    return set(done.stdout.split())


def test_help_needs_no_textual_and_the_first_screen_no_numpy():
    shown = modules_after("import rlvrtui\nrlvrtui.make_parser().format_help()")
    assert not shown & {"textual", "rich", "numpy", "msgspec"}
    first = modules_after("import rlvr.tui.app, rlvr.tui.dashboard")
    assert "textual" in first and not first & {"numpy", "torch", "transformers", "rlvr.tui.graphs"}
    rest = "monitor, configure, bundles, evaluations, auto, compare, corpus, models"
    assert not modules_after(f"from rlvr.tui import {rest}") & {"torch", "transformers", "trl", "datasets", "unsloth"}


def test_without_a_terminal_it_says_what_to_use_instead(tmp_path: Path):
    done = subprocess.run([sys.executable, ROOT / "rlvrtui.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "rlvrctl.py ps" in done.stderr and not done.stdout
    done = subprocess.run(
        [sys.executable, ROOT / "rlvrtui.py", "--model", "none"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2 and "no such model" in done.stderr


async def test_a_model_that_vanishes_is_said_once(tree: Path):
    app = Dashboard()
    told: list[str] = []
    app.complain = lambda error: told.append(str(error))  # a message on the screen goes away by itself
    async with app.run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        (tree / "training/demo").rename(tree / "gone")
        await until(pilot, lambda: not page.table.cells)
        await pilot.pause(2.5)
        assert len([text for text in told if "no such model" in text]) == 1
        (tree / "gone").rename(tree / "training/demo")
        await until(pilot, lambda: len(page.table.cells) == 7)
