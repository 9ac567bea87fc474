"""The other screens of the dashboard: one run, evaluations, auto runs, comparison, presets, corpus, keys."""

import os
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from colab_offline import OfflineColab
from pilots import SIZES, click, focused, heard, opened, plain, press, settle, training_tree, until, words, write
from textual.pilot import Pilot
from textual.widgets import Input, SelectionList, Static, TabbedContent

from rlvr import layers
from rlvr.cli import check
from rlvr.colab import client
from rlvr.config import PRESET_SUMMARIES
from rlvr.diagnosis import Finding
from rlvr.records import Evaluation, read
from rlvr.tui import corpus, gpu
from rlvr.tui.app import Dashboard
from rlvr.tui.completion import CompletionScreen
from rlvr.tui.completions import CompletionsTable
from rlvr.tui.dashboard import RunsPage
from rlvr.tui.figure import hues_of
from rlvr.tui.graphs import RunCharts
from rlvr.tui.monitor import MonitorPage
from rlvr.tui.result import PassCharts, pass_curve
from rlvr.tui.table import KeyedTable
from rlvr.tui.verbs import SCREENS, VERBS


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with training_tree(tmp_path, monkeypatch) as folder:
        yield folder


async def go(pilot: Pilot, key: str, name: str):
    """The screen of a number key."""
    await opened(pilot)
    await press(pilot, key)
    await until(pilot, lambda: type(pilot.app.screen).__name__ == name and pilot.app.screen.ready)  # type: ignore
    return pilot.app.screen


async def monitor(pilot: Pilot, run: str) -> MonitorPage:
    page = await opened(pilot)
    page.table.select(run)
    await press(pilot, "enter")
    await until(pilot, lambda: isinstance(pilot.app.screen, MonitorPage) and pilot.app.screen.ready)
    assert isinstance(pilot.app.screen, MonitorPage)
    return pilot.app.screen


def text_of(page, selector: str) -> str:
    return str(page.query_one(selector, Static).render())


# ---------------------------------------------------------------------------------------------------------------------
# One run


@pytest.mark.parametrize("size", SIZES)
async def test_monitor_of_a_cycle(tree: Path, size: tuple[int, int]):
    async with Dashboard().run_test(size=size) as pilot:
        page = await monitor(pilot, "003")
        charts = page.query_one(RunCharts)
        await until(pilot, lambda: len(charts.charts) > 8)
        assert len(charts.curves[0].metrics) == 16  # the torn last line is left for later
        await press(pilot, "full_stop")
        table = page.query_one(CompletionsTable)
        await until(pilot, lambda: len(table.all) == 16 * 16)
        await until(pilot, lambda: pilot.app.focused is table)
        await press(pilot, "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompletionScreen))
        await press(pilot, "escape")
        await until(pilot, lambda: pilot.app.screen is page)
        await press(pilot, "full_stop")
        await until(pilot, lambda: "step   16/24" in words(pilot.app))
        await press(pilot, "full_stop")
        snapshot = page.query_one("#snapshot", KeyedTable)
        await until(pilot, lambda: "max_steps" in snapshot.cells)
        assert [plain(cell) for cell in snapshot.cells["max_steps"]] == ["max_steps", "24", "flag", "250"]
        assert text_of(page, "#verdict").strip() == ""  # it is worked out when it is looked at
        await press(pilot, "full_stop")
        await until(pilot, lambda: text_of(page, "#verdict").strip() != "")


async def test_numbers_and_log_lines_arrive_while_one_looks(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await monitor(pilot, "003")
        charts = page.query_one(RunCharts)
        await until(pilot, lambda: charts.curves and len(charts.curves[0].metrics) == 16)
        metrics = tree / "training/demo/003/metrics.jsonl"
        more = (tree / "training/demo/002/metrics.jsonl").read_bytes().splitlines(keepends=True)[16:20]
        torn = metrics.read_bytes().rpartition(b"\n")[2]
        with metrics.open("ab") as file:  # the writer ends the line it was caught in, and goes on
            file.write((tree / "training/demo/003/metrics.jsonl").read_bytes().splitlines()[-2][len(torn) :] + b"\n")
            file.writelines(more)
        with (tree / "training/demo/003/run.log").open("a") as log:
            log.write("a new line of the log\n")
        await until(pilot, lambda: len(charts.curves[0].metrics) == 21)
        page.query_one(TabbedContent).active = "pane-log"
        await until(pilot, lambda: "a new line of the log" in words(pilot.app))


async def test_files_that_cannot_be_read_end_nothing_and_are_tried_again(tree: Path):
    folder = tree / "training/demo/003"
    for name in ("metrics.jsonl", "trace.jsonl", "run.log"):
        (folder / name).rename(tree / name)
        (folder / name).mkdir()
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        page.table.select("003")
        await until(pilot, lambda: page.query(RunCharts) and "Is a directory" in page.query_one(RunCharts).reason)
        page = await monitor(pilot, "003")
        charts, table = page.query_one(RunCharts), page.query_one(CompletionsTable)
        await until(pilot, lambda: "metrics.jsonl: Is a directory" in " ".join(words(pilot.app).split()))
        page.query_one(TabbedContent).active = "pane-log"
        await until(
            pilot, lambda: f"[cannot read {Path('training/demo/003/run.log')}: Is a directory]" in words(pilot.app)
        )
        for name in ("metrics.jsonl", "trace.jsonl", "run.log"):
            (folder / name).rmdir()
            (tree / name).rename(folder / name)
        await until(pilot, lambda: charts.curves and len(charts.curves[0].metrics) == 16 and not charts.reason)
        await until(pilot, lambda: len(table.all) == 16 * 16)
        await until(pilot, lambda: "step   16/24" in words(pilot.app))


async def test_a_run_has_the_colour_it_has_in_rlvrviz(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await monitor(pilot, "003")
        charts = page.query_one(RunCharts)
        await until(pilot, lambda: charts.curves)
        assert [curve.hue for curve in charts.curves] == hues_of(["demo/003"])


async def test_doctor_of_a_failed_run_names_what_is_wrong(tree: Path):
    async with Dashboard(model="other").run_test(size=(120, 35)) as pilot:
        page = await monitor(pilot, "001")
        page.query_one(TabbedContent).active = "pane-doctor"
        await until(pilot, lambda: "infra" in text_of(page, "#verdict"))
        page.query_one(TabbedContent).active = "pane-log"
        await until(pilot, lambda: "Traceback caf\ufffd" in words(pilot.app))  # no colours, no earlier progress bars


async def test_the_doctor_names_the_command_that_rlvrctl_names(tree: Path, monkeypatch: pytest.MonkeyPatch):
    found = Finding("flat", "warning", "it does not move", "raise it", ("learning_rate=2e-4", "lora_rank=64"))
    monkeypatch.setattr(check, "diagnose", lambda *_: [found])
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await monitor(pilot, "002")
        page.query_one(TabbedContent).active = "pane-doctor"
        command = "rlvrctl.py config set --model demo --scope permanent learning_rate=2e-4"  # the rank is frozen
        await until(pilot, lambda: command in [line.strip() for line in text_of(page, "#verdict").splitlines()])


@pytest.mark.parametrize("size", SIZES)
async def test_result_of_an_evaluation(tree: Path, size: tuple[int, int]):
    result = read(tree / "training/demo/003/evals/base/eval.json", Evaluation)
    async with Dashboard().run_test(size=size) as pilot:
        page = await monitor(pilot, "003/evals/base")
        await until(pilot, lambda: "12 held-out sequences" in text_of(page, "#result"))
        await settle(pilot)
        assert page.query_one(TabbedContent).active == "pane-result"
        solved = result.participants[1].solved
        assert f"{100 * solved.estimate:.1f} [{100 * solved.low:.1f}" in text_of(page, "#intervals")
        await until(pilot, lambda: "mean_holdout_match" in words(pilot.app))
        assert ["base", "003"] in [line.split() for line in words(pilot.app).splitlines()]
        tasks = page.query_one("#tasks", KeyedTable)
        assert set(tasks.cells) == set(result.tasks) and tasks.titles[2:] == ("base", "003")
        better = {task for task, cells in tasks.cells.items() if plain(cells[1]).startswith("003")}
        assert better == set(next(each for each in result.differences if each.metric == "solved").won)


async def test_pass_curve_is_filtered_exported_and_left(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await monitor(pilot, "003/evals/base")
        charts = page.query_one(PassCharts)
        await until(pilot, lambda: charts.charts)
        page.query_one(TabbedContent).active = "pane-pass"
        charts.focus()
        await focused(pilot, "#pass")
        assert not any(each.binding.action == "step_rows" for each in page.active_bindings.values())
        await press(pilot, "slash")
        await until(pilot, lambda: pilot.app.screen.is_modal)
        await write(pilot, "none")
        await press(pilot, "enter")
        await until(pilot, lambda: pilot.app.screen is page and not charts.charts)
        await press(pilot, "escape")
        await until(pilot, lambda: charts.charts)
        said = heard(pilot.app)
        await press(pilot, "e")
        await until(pilot, lambda: pilot.app.screen.is_modal)
        await press(pilot, "c")
        await until(pilot, lambda: "written" in " ".join(said))
        file = next((tree / "training/demo/003/evals/base").rglob("*.csv"))
        assert len(file.read_text().splitlines()) == 1 + 2 * 4
        await press(pilot, "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsPage))


def test_pass_curve_meets_the_evaluation(tree: Path):
    result = read(tree / "training/demo/003/evals/base/eval.json", Evaluation)
    for person in result.participants:
        curve = pass_curve(person).column("pass@k")
        assert len(curve) == 4
        for k, interval in person.pass_at.items():
            assert curve[int(k) - 1] == pytest.approx(interval.estimate)


# ---------------------------------------------------------------------------------------------------------------------
# Evaluations, auto runs, comparison


async def test_evaluation_form_checks_and_needs_a_checkpoint(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await go(pilot, "5", "EvalsPage")
        who = page.query_one("#who", SelectionList)
        await until(pilot, lambda: who.option_count == 3)
        assert set(who.selected) == {"base", "002"}
        page.query_one("#field-num_tasks", Input).value = "0"
        await until(pilot, lambda: "must be 1 to" in text_of(page, ".problem"))
        page.query_one("#field-num_tasks", Input).value = "6"
        page.query_one("#overrides", Input).value = "batch=3"
        said = heard(pilot.app)
        await press(pilot, "ctrl+r")
        await until(pilot, lambda: "unknown key 'batch'" in " ".join(said))
        assert sorted(path.name for path in (tree / "training/demo/002/evals").iterdir()) == ["base+001"]


async def test_auto_form_and_rounds(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await go(pilot, "6", "AutoPage")
        rounds = page.query_one("#rounds", KeyedTable)
        await until(pilot, lambda: len(rounds.cells) == 2)
        assert [plain(cell) for cell in rounds.cells["2"]][:4] == ["2", "002", "002/evals/base", "46.0%"]
        page.query_one("#field-until", Input).value = "solved>5"
        await until(pilot, lambda: "write it like" in text_of(page, ".problem"))


async def test_compare_lays_marked_cycles_over_each_other(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        for run in ("001", "003"):
            page.table.select(run)
            await press(pilot, "space")
        await until(pilot, lambda: plain(page.table.cells["003"][0]) == "◆ 003")
        await press(pilot, "c")
        await until(pilot, lambda: type(pilot.app.screen).__name__ == "ComparePage" and pilot.app.screen.ready)  # type: ignore
        other = pilot.app.screen
        charts = other.query_one(RunCharts)
        await until(pilot, lambda: [curve.name for curve in charts.curves] == ["001", "003"])
        figures = other.query_one("#figures", KeyedTable)
        await until(pilot, lambda: "steps" in figures.cells)
        assert [plain(cell) for cell in figures.cells["steps"]] == ["steps", "18 of 18", "16 of 24"]
        table = other.query_one("#config-diff", KeyedTable)
        await until(pilot, lambda: "max_steps" in table.cells)
        assert [plain(cell) for cell in table.cells["max_steps"]] == ["max_steps", "18  (flag)", "24  (flag)"]


async def test_compare_without_marks_shows_the_newest_two_and_marks_none(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await go(pilot, "7", "ComparePage")
        charts = page.query_one(RunCharts)
        await until(pilot, lambda: [curve.name for curve in charts.curves] == ["002", "003"])
        await settle(pilot)
        assert pilot.app.marked == []  # type: ignore[attr-defined]
        await focused(pilot, "#which")
        await press(pilot, "space")
        await until(pilot, lambda: [curve.name for curve in charts.curves] == ["002"])
        assert pilot.app.marked == ["002"]  # type: ignore[attr-defined]
        charts.focus()
        await focused(pilot, "#graphs")
        await press(pilot, "x", "c")
        await until(pilot, lambda: isinstance(pilot.app.screen, MonitorPage))
        assert pilot.app.screen.run.name == "002"  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------------------------------
# Presets, corpus


async def test_preset_is_saved_and_applied(tree: Path):
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await go(pilot, "4", "PresetsPage")
        table = page.query_one("#presets", KeyedTable)
        await until(pilot, lambda: "tiny" in table.cells)
        table.select("gemma4-e2b")
        await until(pilot, lambda: PRESET_SUMMARIES["gemma4-e2b"] in text_of(page, "#keys-of-preset"))
        await press(pilot, "n")
        await until(pilot, lambda: pilot.app.screen.is_modal)
        await write(pilot, "mine")
        await press(pilot, "enter")
        await until(pilot, lambda: "mine" in table.cells)
        saved = tomllib.loads((tree / "training/presets/mine.toml").read_text())
        assert saved["lora_rank"] == 16 and saved["max_steps"] == 80 and "learning_rate" not in saved

        shutil.copytree(tree / "training/other", tree / "training/third")
        shutil.rmtree(tree / "training/third/001")
        pilot.app.choose("third")  # type: ignore[attr-defined]
        table.select("mine")
        await press(pilot, "enter")
        await until(pilot, lambda: pilot.app.screen.is_modal)
        await click(pilot, "#choice-global")
        await until(pilot, lambda: "lora_rank = 16" in (tree / "training/third/model.toml").read_text())
        config, _ = layers.resolve_for(tree / "training/third", layers.TrainConfig)
        assert (config.max_steps, config.lora_rank) == (80, 16)


@pytest.mark.parametrize("size", SIZES)
async def test_corpus_counts_and_a_task(tree: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(corpus, "MOST", 40)
    layers.set_keys(
        tree / "training/demo", "global", {"corpus_dir": str(Path(layers.__file__).parent / "assets/sample")}
    )
    async with Dashboard().run_test(size=size) as pilot:
        page = await go(pilot, "8", "CorpusPage")
        await until(pilot, lambda: "chosen for training" in text_of(page, "#counts"))
        table = page.query_one("#entries", KeyedTable)
        await until(pilot, lambda: len(table.cells) == 40)
        await until(pilot, lambda: not table.show_horizontal_scrollbar)
        assert isinstance(page, corpus.CorpusPage) and page.found and len(page.found.entries) > 50
        beyond = list(page.found.entries)[45]
        await press(pilot, "slash")
        await focused(pilot, "#filter")
        await write(pilot, beyond)
        await until(pilot, lambda: set(table.cells) == {beyond})
        await press(pilot, "escape")
        await until(pilot, lambda: len(table.cells) == 40)
        await until(pilot, lambda: "shown in the prompt (10)" in text_of(page, "#task"))


# ---------------------------------------------------------------------------------------------------------------------
# GPUs


async def test_gpus_have_a_line_where_nvidia_smi_is(tree: Path, monkeypatch: pytest.MonkeyPatch):
    program = tree / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ncat gpus\n")
    program.chmod(0o755)
    (tree / "gpus").write_text("87, 41234, 143771, 64\n")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(gpu, "LOOK_S", 0.1)
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        await opened(pilot)
        await until(pilot, lambda: "GPU 87 %, 40.3 of 140.4 GiB, 64 °C" in words(pilot.app))
        await monitor(pilot, "003")
        await until(pilot, lambda: "GPU 87 %, 40.3 of 140.4 GiB, 64 °C" in words(pilot.app))
        (tree / "gpus").write_text("88, 41")
        await until(pilot, lambda: "GPU" not in words(pilot.app))


@pytest.mark.parametrize(
    ("output", "wanted"),
    [
        ("", ""),
        ("No devices were found\n", ""),
        ("12, 1024, 24576, 40\n99, 10", "GPU 12 %, 1.0 of 24.0 GiB, 40 °C"),
        ("[N/A], 1024, 24576, [Not Supported]\n", "GPU 1.0 of 24.0 GiB"),
        ("[N/A], [N/A], [N/A], [N/A]\n", ""),
        ("1, 0, 1024, 30\n2, 512, 1024, 31\n", "GPU 0 1 %, 0.0 of 1.0 GiB, 30 °C   GPU 1 2 %, 0.5 of 1.0 GiB, 31 °C"),
        ("\ufffd\x00, ½, ², x\n", ""),
    ],
)
def test_what_nvidia_smi_prints_in_words(output: str, wanted: str):
    assert gpu.gpu_text(output) == wanted


async def test_without_nvidia_smi_there_is_no_line(tree: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tree))
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        assert not page.query_one(gpu.GpuLine).display


# ---------------------------------------------------------------------------------------------------------------------
# Everything


@pytest.mark.parametrize("size", SIZES)
async def test_every_screen_fits(tree: Path, size: tuple[int, int]):
    async with Dashboard().run_test(size=size) as pilot:
        await opened(pilot)
        for name in SCREENS:
            pilot.app.action_page(name)  # type: ignore[attr-defined]
            await until(pilot, lambda name=name: pilot.app.current_mode == name and pilot.app.screen.ready)  # type: ignore
            await settle(pilot)
            page = pilot.app.screen
            for widget in page.query("TitleLine, KeyBar, .pane"):
                assert page.region.contains_region(widget.region), (name, widget)


async def test_theme_and_keys_of_ones_own_are_remembered(tree: Path):
    async with Dashboard(theme="nord").run_test(size=(120, 35)) as pilot:
        await opened(pilot)
    async with Dashboard(theme="textual-light").run_test(size=(120, 35)) as pilot:
        await opened(pilot)
        pilot.app.theme = "dracula"
        file = tree / "config/oeis-rlvr/tui.toml"
        await until(pilot, lambda: file.exists() and "dracula" in file.read_text())
    assert tomllib.loads(file.read_text())["theme"] == "dracula"
    file.write_text(file.read_text() + '\n[keys]\nkill = "ctrl+k"\n')
    async with Dashboard().run_test(size=(120, 35)) as pilot:
        page = await opened(pilot)
        assert pilot.app.theme == "dracula"
        page.table.select("003")
        await press(pilot, "ctrl+k")
        await until(pilot, lambda: pilot.app.screen.is_modal)


def test_every_key_is_in_the_docs():
    page = (Path(__file__).parent.parent / "docs/rlvrtui.md").read_text(encoding="utf-8")
    for name, verb in VERBS.items():
        assert f"`{name}`" in page and verb.help in page, name


# ---------------------------------------------------------------------------------------------------------------------
# Colab


@pytest.fixture
def colab(tree: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    """The stand-in of the Colab client on PATH."""
    place = OfflineColab(tmp_path_factory.mktemp("colab"), None)
    for name in ("PATH", *(name for name in place.env if name not in os.environ)):
        monkeypatch.setenv(name, place.env[name])
    yield place
    place.close()


@pytest.mark.parametrize("size", SIZES)
async def test_rented_vms_are_shown_and_given_back(tree: Path, colab: OfflineColab, size: tuple[int, int]):
    first, second = client.new("rlvr-one", "T4"), client.new("mine", "L4")
    async with Dashboard().run_test(size=size) as pilot:
        page = await go(pilot, "9", "ColabPage")
        table = page.query_one("#vms", KeyedTable)
        await until(pilot, lambda: set(table.cells) == {first.endpoint, second.endpoint})
        await until(pilot, lambda: "100 compute units left" in words(pilot.app) and first.endpoint in words(pilot.app))
        assert [plain(cell) for cell in table.cells[second.endpoint]][1:3] == ["mine", "L4"]
        table.select(first.endpoint)
        await press(pilot, "K")
        await until(pilot, lambda: pilot.app.screen.is_modal)
        await press(pilot, "escape")
        await until(pilot, lambda: not pilot.app.screen.is_modal)
        assert len(colab.assignments) == 2
        await press(pilot, "K")
        await until(pilot, lambda: pilot.app.screen.is_modal)
        await click(pilot, "#choice-stop")
        await until(pilot, lambda: set(table.cells) == {second.endpoint})
        assert [each["endpoint"] for each in colab.assignments] == [second.endpoint]


async def test_without_a_colab_client_its_screen_is_left_out_and_says_how_to_get_it(
    tree: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tree))
    async with Dashboard().run_test(size=(200, 60)) as pilot:
        await opened(pilot)
        await until(pilot, lambda: "8 Corpus" in words(pilot.app))
        assert "9 Colab" not in words(pilot.app)
        titles = [command.title for command in pilot.app.get_system_commands(pilot.app.screen)]
        assert "Go to Corpus" in titles and "Go to Colab" not in titles
        await go(pilot, "9", "ColabPage")
        await until(pilot, lambda: "uv tool install google-colab-cli" in words(pilot.app))
