"""The viewer: its values, its keys in a terminal of three sizes, and a file that grows while it looks."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from pilots import heard, press, settle, stand_in, until
from textual import events
from training_tree import KNOWN, make_training_tree, steps, write_step

from rlvr import records
from rlvr.cycles import RunFiles, find_run
from rlvr.errors import RlvrError
from rlvr.records import Completion
from rlvr.tui import keys
from rlvr.tui.chart import Chart, ChartGrid
from rlvr.tui.choose import FormatScreen, RunsScreen
from rlvr.tui.completion import CompletionScreen
from rlvr.tui.completions import CompletionsTable
from rlvr.tui.figure import Curve, View, draw
from rlvr.tui.help import HelpScreen
from rlvr.tui.rows import Row, Rows, arranged, load, selector, title_of
from rlvr.tui.series import KNOWN_CHARTS, Metrics, StepLine, charts_of, matching, open_path, open_run, parse_trl
from rlvr.tui.viz import VizApp

SIZES = [(80, 24), (120, 35), (200, 60)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """The folder that holds a made-up training/; nothing may write into it."""
    folder = tmp_path_factory.mktemp("tree")
    make_training_tree(folder)
    return folder


@pytest.fixture
def here(tree, monkeypatch, tmp_path) -> Path:
    return stand_in(tree, tmp_path / "config", monkeypatch)


# ---------------------------------------------------------------------------------------------------------------------
# Series


def test_the_series_are_the_numbers_of_the_file(here):
    reader = open_run(find_run("demo/001"))
    reader.read_all()
    lines = [json.loads(line) for line in reader.metrics_file.read_bytes().splitlines()]
    metrics = reader.metrics
    assert metrics.column("step").tolist() == [line["step"] for line in lines]
    assert metrics.column("reward").tolist() == [line["reward"] for line in lines]
    assert metrics.column("rewards/no_cheating").tolist() == [line["rewards"]["no_cheating"] for line in lines]
    shares = [line["outcomes"].get("solved", 0) / 16 for line in lines]
    assert metrics.column("outcomes/solved").tolist() == shares
    assert metrics.x(times=True)[-1] == pytest.approx(lines[-1]["time"] - lines[0]["time"] + lines[0]["step_s"])
    assert metrics.max_steps == 45 and reader.bad == 0


def test_a_torn_line_and_missing_values_are_no_numbers(here):
    torn = open_run(find_run("demo/003"))
    torn.read_all()
    assert len(torn.metrics) == 40 and torn.bad == 0
    without_kl = open_run(find_run("demo/002"))
    without_kl.read_all()
    names = [chart.name for chart in charts_of([without_kl.metrics])]
    assert "kl" not in names and names[:3] == ["reward", "solved", "outcomes"]
    failed = open_run(find_run("other/001"))
    failed.read_all()
    assert np.isnan(failed.metrics.column("reward")[6:]).all() and failed.metrics.has("reward")
    assert failed.metrics.column("outcomes/infra")[-1] == 1.0


def test_every_chart_of_the_trainer_is_there(here):
    reader = open_run(find_run("demo/001"))
    reader.read_all()
    names = {chart.name for chart in charts_of([reader.metrics])}
    rewards = {"function_works", "no_cheating", "sequence_matches"}
    assert names == {chart.name for chart in KNOWN_CHARTS} - {"rung"} | rewards
    assert all(spec.about for spec in charts_of([reader.metrics]))


def test_a_rung_is_charted_where_there_is_one(tmp_path):
    step, _ = next(steps(1))
    line = msgspec.to_builtins(step) | {"rung": 3}
    (tmp_path / "metrics.jsonl").write_bytes(msgspec.json.encode(line) + b"\n")
    reader = open_path(tmp_path / "metrics.jsonl")
    reader.read_all()
    assert "rung" in [chart.name for chart in charts_of([reader.metrics])]
    assert reader.metrics.column("rung").tolist() == [3.0]


def test_a_replaced_file_starts_the_series_anew(tmp_path):
    files = RunFiles(tmp_path)
    for step, lines in steps(6):
        write_step(files, step, lines)
    reader = open_path(tmp_path)
    reader.read_all()
    before = reader.metrics
    kept = files.metrics.read_bytes().splitlines(keepends=True)[:3]
    (tmp_path / "new").write_bytes(b"".join(kept))
    (tmp_path / "new").rename(files.metrics)
    assert reader.poll() and reader.metrics is not before
    assert reader.metrics.column("step").tolist() == [1, 2, 3]


def test_series_grow_and_are_smoothed_piece_by_piece():
    rng = np.random.default_rng(0)
    values = rng.normal(size=700)
    metrics, whole = Metrics(), Metrics()
    whole.extend({"step": list(range(700)), "loss": values.tolist()}, 700)
    for start in range(0, 700, 33):
        part = values[start : start + 33]
        metrics.extend({"step": list(range(start, start + len(part))), "loss": part.tolist()}, len(part))
        metrics.smoothed("loss", 0.9)
    np.testing.assert_allclose(metrics.smoothed("loss", 0.9), whole.smoothed("loss", 0.9))
    metrics.limit = 10
    assert len(metrics.column("loss")) == len(metrics.smoothed("loss", 0.9)) == len(metrics.x(True)) == 10
    late = Metrics()
    late.extend({"step": [1.0, 2.0]}, 2)
    late.extend({"step": [3.0], "kl": [0.5]}, 1)
    assert np.isnan(late.column("kl")[:2]).all() and late.column("kl")[2] == 0.5


def test_a_chart_is_drawn_while_another_thread_appends():
    metrics = Metrics()
    lines = [msgspec.convert(msgspec.to_builtins(step), StepLine) for step, _ in steps(40)]
    metrics.extend_steps(lines)

    def append() -> None:
        for number in range(41, 2000):
            metrics.extend({"step": [float(number)], "reward": [0.5]}, 1)

    writer = threading.Thread(target=append)
    writer.start()
    curve = Curve("m/001", metrics, 0)
    while writer.is_alive():
        for spec in (KNOWN_CHARTS[0], KNOWN_CHARTS[2]):
            draw([curve], spec, View(cursor=5.0, smoothing=0.0, log=frozenset({"reward"})), 10, 60)
    assert len(metrics) == 1999


TRL_LOG = """\
Loading weights: 100%|####| 272/272
{'loss': 0.012, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'num_tokens': 1000.0, 'completions/mean_length': 60.5, \
'completions/clipped_ratio': 0.25, 'rewards/f/mean': 0.5, 'rewards/f/std': 0.1, 'reward': 0.5, 'reward_std': nan, \
'frac_reward_zero_std': 0.0, 'kl': 0.001, 'step_time': 2.0, 'clip_ratio/low_mean': 0.0, 'epoch': 0.01}
  1%|          | 1/100 [00:02<03:18]\r  2%|2         | 2/100 [00:04<03:16]{'loss': '-0.5', 'reward': '1.25', \
'num_tokens': '3000', 'step_time': '4.0', 'epoch': '0.02'}
{'oops': __import__('os').system('true')}
{'train_runtime': 6.0, 'train_loss': 0.2}
"""


def test_a_log_of_plain_trl_gives_the_same_series(tmp_path):
    log = tmp_path / "run.log"
    log.write_text(TRL_LOG)
    for reader in (open_path(log), open_path(tmp_path)):
        reader.read_all()
        metrics = reader.metrics
        assert metrics.column("step").tolist() == [1, 2]
        assert metrics.column("loss").tolist() == [0.012, -0.5]
        assert metrics.column("rewards/f").tolist()[0] == 0.5
        assert metrics.column("tokens_per_s").tolist() == [500.0, 500.0]
        assert metrics.column("length_mean")[0] == 60.5 and metrics.column("truncated")[0] == 0.25
        assert metrics.x(times=True).tolist() == [2.0, 6.0]
        names = [chart.name for chart in charts_of([metrics])]
        assert names == [
            *("reward", "f", "zero_variance", "length", "truncated", "loss", "kl", "grad_norm", "learning_rate"),
            *("tokens/s", "step_time", "clip_ratio/low_mean"),
        ]


@pytest.mark.parametrize(
    "line", ["{}", "{'a': 'b'}", "{'a': [1]}", "{'a': 1", "text {'a'}", "{'a': " + "1" * 30_000 + "}"]
)
def test_any_other_line_is_no_log_line(line):
    assert parse_trl(line) is None


def test_charts_are_chosen_by_words():
    assert [spec.name for spec in matching(KNOWN_CHARTS, "rew *norm")] == ["reward", "reward_std", "grad_norm"]
    assert matching(KNOWN_CHARTS, "") == list(KNOWN_CHARTS) and matching(KNOWN_CHARTS, "zzz") == []


def test_what_cannot_be_opened_is_said(tmp_path):
    with pytest.raises(RlvrError, match="no such file or folder"):
        open_path(tmp_path / "absent.jsonl")
    with pytest.raises(RlvrError, match="no metrics.jsonl"):
        open_path(tmp_path)


# ---------------------------------------------------------------------------------------------------------------------
# Figures


def two_points() -> Metrics:
    metrics = Metrics()
    metrics.extend({"step": [1.0, 2.0, 3.0], "loss": [0.5, float("nan"), 0.25]}, 3)
    return metrics


def test_a_title_holds_last_min_and_max_or_the_value_at_the_crosshair():
    loss = next(spec for spec in KNOWN_CHARTS if spec.name == "loss")
    curves = [Curve("m/001", two_points(), 0)]
    assert draw(curves, loss, View(), 8, 60).cells.text(0).split() == ["loss", "0.25", "min", "0.25", "max", "0.5"]
    narrow = draw(curves, loss, View(), 8, 24).cells.text(0)
    assert narrow.split() == ["loss", "0.25", "0.25..0.5"]
    assert draw(curves, loss, View(cursor=1.2), 8, 60).cells.text(0).split()[1] == "0.5"
    assert draw(curves, loss, View(x_range=(1, 2)), 8, 60).cells.text(0).split()[1] == "0.5"


def test_a_log_axis_says_what_it_leaves_out():
    metrics = Metrics()
    metrics.extend({"step": [1.0, 2.0, 3.0, 4.0], "kl": [0.1, 0.0, -1.0, 0.2]}, 4)
    kl = next(spec for spec in KNOWN_CHARTS if spec.name == "kl")
    title = draw([Curve("m/001", metrics, 0)], kl, View(log=frozenset({"kl"})), 8, 80).cells.text(0)
    assert title.strip().startswith("kl log, 2 not positive 0.2")


def test_two_runs_have_two_colours_and_their_names(here):
    curves = []
    for hue, name in enumerate(("demo/001", "demo/002")):
        reader = open_run(find_run(name))
        reader.read_all()
        curves.append(Curve(name, reader.metrics, hue))
    cells = draw(curves, KNOWN_CHARTS[0], View(), 12, 80).cells
    assert "001 " in cells.text(0) and "002 " in cells.text(0)
    assert {8, 10} <= set(cells.colors[1:].ravel().tolist())


# ---------------------------------------------------------------------------------------------------------------------
# Rows


def all_rows(files: RunFiles) -> Rows:
    rows = Rows(files.trace)
    rows.poll()
    return rows


def test_rows_are_the_lines_of_the_trace(here):
    files = find_run("demo/001").files
    rows = all_rows(files)
    lines = list(records.read_lines(files.trace, Completion))
    assert [(row.step, row.task, row.outcome, row.reward) for row in rows.rows] == [
        (line.step, line.task, line.outcome, line.reward) for line in lines
    ]
    assert rows.part_names == ("function_works", "no_cheating", "sequence_matches")
    names = {known.anum: known.name for known in KNOWN}
    assert all(row.name == names[row.task] for row in rows.rows)
    for position in (0, 17, -1):
        assert load(files.trace, rows.rows[position]) == lines[position]
    mates = rows.mates(rows.rows[5])
    assert [mate.sample for mate in mates] == [0, 1, 2, 3] and len({mate.task for mate in mates}) == 1


def test_a_row_of_a_replaced_file_is_not_mistaken_for_another(tmp_path):
    files = RunFiles(tmp_path)
    for step, lines in steps(2):
        write_step(files, step, lines)
    row = all_rows(files).rows[-1]
    files.trace.write_bytes(b"\n" * 100_000)
    with pytest.raises(RlvrError, match="cannot read this completion|was replaced"):
        load(files.trace, row)


def test_search_filter_and_sort(here):
    rows = all_rows(find_run("demo/001").files).rows

    def found(text: str, outcome: str = "") -> list[Row]:
        return [row for row in rows if selector(text, outcome)(row)]

    assert {row.task for row in found("factorials")} == {"A000142"}
    assert {row.outcome for row in found("", "wrong")} == {"wrong"}
    assert [row.step for row in found("step:3")] == [3] * 16
    assert {row.step for row in found("step:3-4 a0")} == {3, 4}
    assert all(row.reward is not None and row.reward > 0.5 for row in found("reward>0.5"))
    assert len(found("reward>=1 length<9999")) == sum(row.outcome == "solved" for row in rows)
    assert arranged(rows, "newest", False)[0] is rows[-1]
    by_reward = [row.reward for row in arranged(rows, "reward", True)]
    assert by_reward == sorted(by_reward, reverse=True)
    assert title_of("a(n)=n^2|0:0,1,4\n") == "a(n)=n^2"


# ---------------------------------------------------------------------------------------------------------------------
# One frame


def once(program, tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return program("rlvrviz.py", "--once", *arguments, cwd=tree)


def test_a_frame_in_a_pipe_is_plain_text_with_the_right_values(program, tree):
    done = once(program, tree, "demo/001", "--size", "200x40")
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert "\x1b" not in done.stdout and len(lines) <= 40 and max(map(len, lines)) <= 200
    metrics = [json.loads(line) for line in (tree / "training/demo/001/metrics.jsonl").read_bytes().splitlines()]
    rewards = [line["reward"] for line in metrics]
    title = re.search(r"reward (\S+)  min (\S+)  max (\S+)", done.stdout)
    assert title and [float(value) for value in title.groups()] == pytest.approx(
        [rewards[-1], min(rewards), max(rewards)], abs=1e-4
    )
    assert lines[0].startswith("demo/001  done  step 45 of 45")


def test_the_frame_as_json_as_sentences_and_in_ascii(program, tree):
    found = json.loads(once(program, tree, "demo/001", "--json").stdout)["demo/001"]
    metrics = [json.loads(line) for line in (tree / "training/demo/001/metrics.jsonl").read_bytes().splitlines()]
    losses = [line["loss"] for line in metrics]
    assert found["series"]["loss"] == {"last": losses[-1], "min": min(losses), "max": max(losses)}
    assert found["steps"] == 45 and found["state"] == "done"
    text = once(program, tree, "demo/001", "--text").stdout
    assert re.search(r"^  loss: \S+, min \S+, max \S+  \(policy loss", text, re.MULTILINE)
    assert once(program, tree, "demo/001", "demo/002", "--ascii").stdout.isascii()


def test_colours_only_where_they_are_wanted(program, tree, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[38;2;88;166;255m" in once(program, tree, "demo/001").stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in once(program, tree, "demo/001").stdout
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, once(program, tree, "demo/001").stdout.splitlines())) <= 60


def test_the_running_run_is_found_else_the_latest(program, tmp_path):
    make_training_tree(tmp_path, num_steps=8)
    assert once(program, tmp_path, "--json").stdout.startswith('{\n  "demo/003"')
    status = tmp_path / "training/demo/003/status.json"
    status.write_text(status.read_text().replace('"running"', '"killed"'))
    assert '"demo/003"' in once(program, tmp_path, "--model", "demo", "--json").stdout
    assert '"demo/002"' in once(program, tmp_path, "--model", "demo", "2", "--json").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo/009"], "has no run '009'"),
        (["absent.jsonl"], "no such file or folder"),
        (["demo/001", "--size", "9x9"], "--size 9x9"),
        (["demo/001", "--smoothing", "2"], "--smoothing 2.0"),
        (["demo/001", "--replay", "fast"], "--replay fast"),
        (["demo/001", "--replay", "20x"], "are for the live view"),
        (["demo/001", "--theme", "nord"], "are for the live view"),
        (["demo/001", "--log", "loss,bogus"], "--log bogus: there is no such chart"),
        (["demo/001", "--charts", "zzz"], "--charts zzz: no chart matches; there are reward, solved"),
        (["demo/001", "--charts", "zzz", "--export", "csv"], "--charts zzz: no chart matches"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(program, tree, arguments, message):
    done = once(program, tree, *arguments)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1 and done.stdout == ""


def test_a_run_without_numbers_says_why(program, tree, tmp_path):
    assert "lists its completions" in once(program, tree, "demo/003/evals/base").stdout
    assert "with the first step" in once(program, tree, "demo/004", "--charts", "zzz").stdout
    assert "its cycles have them" in once(program, tree, "demo/auto/001").stdout
    (tmp_path / "run.log").write_text("hello\n")
    assert "no line of numbers" in once(program, tmp_path, "run.log").stdout


@pytest.mark.parametrize("form", ["png", "svg", "csv"])
def test_charts_are_written_beside_the_run_without_a_terminal(program, tmp_path, form):
    files = RunFiles(tmp_path / "run")
    files.folder.mkdir()
    for step, lines in list(steps(20))[:5]:
        write_step(files, step, lines)
    done = program("rlvrviz.py", "run", "--charts", "reward", "--export", form, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.split() == [f"run/charts/{name}.{form}" for name in ("reward", "reward_std")]
    assert all((tmp_path / path).stat().st_size > 100 for path in done.stdout.split())


def test_of_the_running_runs_of_all_models_the_newest_is_found(program, tmp_path):
    make_training_tree(tmp_path, num_steps=8)
    shutil.copytree(tmp_path / "training/demo", tmp_path / "training/zzz", symlinks=True)
    file = tmp_path / "training/zzz/003/status.json"
    status = json.loads(file.read_text())
    assert status["state"] == "running"
    for change_s, newest in ((100.0, "zzz/003"), (-100.0, "demo/003")):
        file.write_text(json.dumps(status | {"started": status["started"] + change_s}))
        assert once(program, tmp_path, "--json").stdout.startswith(f'{{\n  "{newest}"')


def test_without_a_terminal_it_says_what_to_do(program, tree):
    done = program("rlvrviz.py", "demo/001", cwd=tree)
    assert done.returncode == 2 and "--once" in done.stderr


def test_a_frame_needs_no_textual(root):
    code = (
        "import sys; sys.argv = ['rlvrviz.py', '--help']\n"
        "import rlvrviz, rlvr.tui.frame\n"
        "print([name for name in ('textual', 'torch', 'transformers', 'matplotlib', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---------------------------------------------------------------------------------------------------------------------
# The live view


def viewer(*runs: str, **options) -> VizApp:
    return VizApp([open_run(find_run(run)) for run in runs], **options)


async def loaded(pilot, app: VizApp, count: int) -> None:
    """Wait until the worker has read so many completions, and they are shown."""
    await until(pilot, lambda: len(app.pane.table.all) >= count and app.grid.charts)
    await settle(pilot)


def screen_text(app: VizApp) -> str:
    lines = app.screen._compositor.render_strips(app.size)
    return "\n".join("".join(segment.text for segment in strip) for strip in lines)


@pytest.mark.parametrize("size", SIZES)
async def test_it_shows_charts_and_completions_at_every_size(here, size):
    app = viewer("demo/003")
    async with app.run_test(size=size) as pilot:
        await loaded(pilot, app, 640)
        text = screen_text(app)
        assert "demo/003  running" in text and "40/60" in text and "reward" in text and "? Help" in text
        charts = [chart for chart in app.query(Chart) if chart.display]
        assert len(charts) == len(charts_of([app.readers[0].metrics]))
        assert all(chart.size.width >= 36 and chart.size.height >= 7 for chart in charts)
        await press(pilot, "2")
        await pilot.pause()
        assert app.pane.table.has_focus and "Completions: 640" in screen_text(app)
        await press(pilot, "1")
        assert app.grid.has_focus


async def test_the_keys_of_the_charts(here):
    app = viewer("demo/001")
    async with app.run_test(size=(120, 35)) as pilot:
        await loaded(pilot, app, 720)
        grid = app.grid
        await press(pilot, "s")
        assert grid.view.smoothing == 0.99
        await press(pilot, "S", "l", "t", "o", "G")
        assert grid.view.smoothing == 0.9 and grid.view.log == {"reward"}
        assert grid.view.times and not grid.view.outliers and not grid.view.guides
        await press(pilot, "t", "l", "right")
        assert grid.selected == "solved" and not grid.view.log
        await press(pilot, "x")
        assert grid.view.cursor == 45.0
        await press(pilot, "left", "left")
        assert grid.view.cursor == 43.0
        metrics = app.readers[0].metrics
        assert f"{100 * metrics.column('outcomes/solved')[42]:.3g}%" in grid.value_text()
        assert "at step 43" in grid.value_text()
        await press(pilot, "c")
        await pilot.pause()
        assert app.pane.table.has_focus and {row.step for row in app.pane.table.shown} == {43}
        await press(pilot, "escape", "1", "plus")
        left, right = grid.view.x_range or (0, 0)
        assert right - left == pytest.approx(22) and left < 43 < right
        await press(pilot, "left_square_bracket")
        assert grid.view.x_range == (pytest.approx(left - 5.5), pytest.approx(right - 5.5))
        await press(pilot, "0", "enter")
        assert grid.full and [chart.spec.name for chart in app.query(Chart) if chart.display] == ["solved"]
        await press(pilot, "escape", "escape")
        assert not grid.full and grid.view.cursor is None
        await press(pilot, "slash", *"loss")
        await pilot.pause()
        assert [spec.name for spec in grid.charts] == ["loss"]
        await press(pilot, "enter")
        assert grid.has_focus and grid.pattern == "loss"
        await press(pilot, "escape")
        await pilot.pause()
        assert len(grid.charts) > 10
        await press(pilot, "y")
        assert app.clipboard.startswith("loss ")


async def test_smoothing_grid_theme_and_own_keys_are_remembered(here):
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "oeis-rlvr" / "tui.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[keys]\ncross = "X"\n')
    app = viewer("demo/001")
    async with app.run_test(size=(200, 60)) as pilot:
        await loaded(pilot, app, 720)
        await press(pilot, "s", "g", "x")
        assert app.grid.shape[0] == 1 and app.grid.view.cursor is None
        await press(pilot, "X")
        assert app.grid.view.cursor is not None
        app.theme = "nord"
        await until(pilot, lambda: "nord" in config.read_text())
    again = viewer("demo/001")
    async with again.run_test(size=(200, 60)) as pilot:
        await loaded(pilot, again, 720)
        assert again.grid.view.smoothing == 0.99 and again.grid.shape[0] == 1 and again.theme == "nord"
    given = viewer("demo/001", view=View(smoothing=0.6), smoothing_chosen=True)
    assert given.first_view.smoothing == 0.6


def test_of_an_endless_run_the_newest_completions_are_kept(monkeypatch, tmp_path):
    monkeypatch.setattr("rlvr.tui.rows.MAX_ROWS", 100)
    files = RunFiles(tmp_path)
    rows = Rows(files.trace)
    for step, lines in steps(12):
        write_step(files, step, lines)
        rows.poll()
        assert len(rows.rows) <= 110
    assert rows.rows[-1].step == 12 and rows.rows[0].step >= 6


async def test_the_wheel_zooms_at_the_mouse_and_a_click_sets_the_crosshair(here):
    app = viewer("demo/001")
    async with app.run_test(size=(120, 35)) as pilot:
        await loaded(pilot, app, 720)
        chart = next(iter(app.query(Chart)))
        await until(pilot, lambda: chart.drawn and chart.drawn.chart)
        drawn = chart.drawn.chart
        column = drawn.left + drawn.width // 2
        await pilot.click(chart, offset=(column, 3))
        await until(pilot, lambda: app.grid.view.cursor == pytest.approx(drawn.x_at(column), abs=0.51))
        under_mouse = drawn.x_at(column)
        await pilot._post_mouse_events([events.MouseScrollUp], chart, (column, 3))
        await until(pilot, lambda: app.grid.view.x_range)
        left, right = app.grid.view.x_range or (0, 0)
        assert right - left == pytest.approx(0.8 * 44)
        assert (under_mouse - left) / (right - left) == pytest.approx((under_mouse - 1) / 44)


async def test_a_zoom_to_the_end_moves_on_with_the_run(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    files = RunFiles(tmp_path / "run")
    files.folder.mkdir()
    new = steps(60)
    for _ in range(21):
        write_step(files, *next(new))
    app = VizApp([open_path(files.folder)])
    async with app.run_test(size=(120, 35)) as pilot:
        await loaded(pilot, app, 21 * 16)
        await press(pilot, "plus")
        assert app.grid.view.x_range == (11.0, 21.0)
        write_step(files, *next(new))
        await until(pilot, lambda: app.grid.view.x_range == (12.0, 22.0))
        await press(pilot, "left_square_bracket")
        before = app.grid.view.x_range
        write_step(files, *next(new))
        await loaded(pilot, app, 23 * 16)
        assert app.grid.view.x_range == before  # looking at the past, it stays there


@pytest.mark.parametrize("size", [(1, 1), (20, 5), (40, 10), (500, 12)])
async def test_no_size_is_too_small_or_too_wide(here, size):
    app = viewer("demo/001", "demo/002")
    async with app.run_test(size=size) as pilot:
        await loaded(pilot, app, 720)
        await press(pilot, "x", "enter", "tab", "enter")
        await press(pilot, "m", "escape", "question_mark", "escape", "1", "f", "escape")
        await pilot.resize_terminal(100, 30)
        await until(pilot, lambda: "demo/001" in screen_text(app))


async def test_a_file_that_cannot_be_read_is_said_and_read_later(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    files = RunFiles(tmp_path / "run")
    files.trace.mkdir(parents=True)
    app = VizApp([open_path(files.folder)])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: "Is a directory" in screen_text(app))
        files.trace.rmdir()
        for step, lines in steps(2):
            write_step(files, step, lines)
        await loaded(pilot, app, 32)
        await until(pilot, lambda: "Is a directory" not in screen_text(app))


async def test_pause_holds_the_picture_while_reading_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    files = RunFiles(tmp_path / "run")
    files.folder.mkdir()
    new = steps(30)
    for _ in range(5):
        write_step(files, *next(new))
    app = VizApp([open_path(files.folder)])
    async with app.run_test(size=(120, 35)) as pilot:
        await loaded(pilot, app, 80)
        await press(pilot, "P")
        assert "PAUSED" in screen_text(app)
        for _ in range(5):
            write_step(files, *next(new))
        await until(pilot, lambda: app.readers[0].metrics.count == 10 and len(app._held) == 80)
        assert len(app.readers[0].metrics) == 5 and len(app.pane.table.all) == 80
        await press(pilot, "P")
        await loaded(pilot, app, 160)
        assert len(app.readers[0].metrics) == 10 and "PAUSED" not in screen_text(app)


async def test_the_table_keeps_its_row_while_new_ones_arrive(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    files = RunFiles(tmp_path / "run")
    files.folder.mkdir()
    new = steps(30)
    for _ in range(6):
        write_step(files, *next(new))
    app = VizApp([open_path(files.folder)])
    async with app.run_test(size=(120, 35)) as pilot:
        await loaded(pilot, app, 96)
        table = app.pane.table
        assert table.current is table.all[-1]
        write_step(files, *next(new))
        await loaded(pilot, app, 112)
        assert table.current is table.all[-1] and table.cursor == 0  # at the top it follows
        await press(pilot, "2")
        await pilot.press(*["down"] * 20)
        await settle(pilot)
        row, place = table.current, table.cursor - table.scroll_offset.y
        write_step(files, *next(new))
        await loaded(pilot, app, 128)
        await pilot.pause()
        assert table.current is row and table.cursor == 36 and table.cursor - table.scroll_offset.y == place
        await press(pilot, "o")
        assert {row.outcome for row in table.shown} == {"solved"}
        await press(pilot, "escape", "s", "s", "s", "s")
        assert table.sort == "reward"
        rewards = [row.reward for row in table.shown]
        assert rewards == sorted(rewards, key=lambda value: value or 0.0, reverse=True)
        await press(pilot, "slash", *"squares", "enter")
        assert {row.task for row in table.shown} == {"A000290"} and table.has_focus


async def test_a_completion_in_full_and_its_group_mates(here):
    app = viewer("demo/001")
    async with app.run_test(size=(120, 35)) as pilot:
        await loaded(pilot, app, 720)
        await press(pilot, "2", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, CompletionScreen) and app.screen.completion is not None)
        screen = app.screen
        row = app.pane.table.current
        assert row is not None and screen.completion.task == row.task
        shown = ("Function", "Terms", "Rewards", "Reasoning", "Prompt", "def a(n)", "expected", row.task)
        for word in (*shown, *(reward.name for reward in screen.completion.rewards)):
            await until(pilot, lambda word=word: word in screen_text(app))
        sample = screen.row.sample
        await press(pilot, "right")
        assert screen.row.sample == (sample + 1) % 4 and screen.row.prompt_key == row.prompt_key
        await press(pilot, "m")
        await until(pilot, lambda: screen_text(app).count("hidden terms") == 4)
        await press(pilot, "y")
        assert app.clipboard == screen.completion.function
        await press(pilot, "escape")
        await until(pilot, lambda: app.pane.table.current == screen.row)


async def test_runs_are_chosen_and_laid_over_each_other(here):
    app = viewer("demo/003")
    async with app.run_test(size=(120, 35)) as pilot:
        await loaded(pilot, app, 640)
        await press(pilot, "f")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and app.screen.runs)
        await press(pilot, "slash", *"done", "space", *"train", "down")
        options = app.screen.runs
        assert [str(run) for run in options] == ["demo/002", "demo/001"]
        app.screen.query_one("OptionList").focus()
        await settle(pilot)
        await press(pilot, "space", "down", "space", "enter")
        await until(pilot, lambda: [reader.name for reader in app.readers] == ["demo/002", "demo/001"])
        await loaded(pilot, app, 960)
        assert len(app.grid.curves) == 2 and "002 " in screen_text(app)


async def test_an_evaluation_has_completions_and_no_charts(here):
    app = viewer("demo/003/evals/base")
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: "Completions: 96" in screen_text(app))
        await settle(pilot)
        text = screen_text(app)
        assert "base" in text and "who" in text
        assert not app.grid.display and app.pane.size.height > 30
        await press(pilot, "f")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and app.screen.runs)
        assert not [run for run in app.screen.runs if run.kind == "auto"]  # nothing could be shown of it
        await press(pilot, "slash", *"demo/004", "enter")
        await until(pilot, lambda: "no numbers yet" in screen_text(app))


async def test_an_auto_run_says_where_its_numbers_are(here):
    app = viewer("demo/auto/001")
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: "its cycles have them" in screen_text(app))


async def test_a_filter_is_blamed_only_where_it_hides_something(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    files = RunFiles(tmp_path / "run")
    files.folder.mkdir()
    files.trace.write_text("")
    app = VizApp([open_path(files.folder)], charts="zzz")
    async with app.run_test(size=(120, 35)) as pilot:
        assert "reading ..." in screen_text(app) or not app.grid.reading
        await until(pilot, lambda: "no numbers yet" in screen_text(app))
        write_step(files, *next(steps(3)))
        await until(pilot, lambda: "no chart matches 'zzz'" in screen_text(app))


@pytest.mark.parametrize("form", ["png", "svg", "csv"])
async def test_a_chart_is_written_beside_the_run(tmp_path, monkeypatch, form):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    files = RunFiles(tmp_path / "run")
    files.folder.mkdir()
    for step, lines in steps(5):
        write_step(files, step, lines)
    app = VizApp([open_path(files.folder)])
    async with app.run_test(size=(120, 35)) as pilot:
        await loaded(pilot, app, 80)
        said = heard(app)
        await press(pilot, "e")
        await until(pilot, lambda: isinstance(app.screen, FormatScreen))
        await press(pilot, form[0])
        path = files.folder / "charts" / f"reward.{form}"
        await until(pilot, lambda: f"written: {path}" in said, timeout_s=600)  # fonts are looked for first
    data = path.read_bytes()
    if form == "csv":
        lines = data.decode().splitlines()
        assert lines[0] == "run,step,seconds,reward" and len(lines) == 6
        first = json.loads(files.metrics.read_bytes().splitlines()[0])
        assert float(lines[1].split(",")[3]) == pytest.approx(first["reward"])
    else:
        assert data.startswith(b"\x89PNG") or b"<svg" in data


async def test_a_replay_shows_the_run_again(here, monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, time=time.time)
    monkeypatch.setattr("rlvr.tui.viz.time", clock)  # a busy machine would play on before it pauses
    app = viewer("demo/001", replay=100.0)
    async with app.run_test(size=(120, 35)) as pilot:
        metrics, table = app.readers[0].metrics, app.pane.table
        await until(pilot, lambda: app.replayed is not None)
        clock.now += 1
        await until(pilot, lambda: len(metrics) > 0)
        await press(pilot, "P")
        await until(pilot, lambda: len(table.all) == 16 * len(metrics))
        assert 0 < len(metrics) < 45 and "PAUSED" in screen_text(app)
        await press(pilot, "P")
        clock.now += 60
        await until(pilot, lambda: (len(metrics), len(table.all)) == (45, 720))
        assert "replay 100x" in screen_text(app)
        assert [row.step for row in app.pane.table.all] == sorted(row.step for row in app.pane.table.all)


async def test_help_lists_every_key_and_the_footer_leaves_out_what_does_not_fit(here):
    app = viewer("demo/001")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot, app, 720)
        bar = screen_text(app).splitlines()[-1]
        assert "? Help" in bar and "q Quit" in bar and bar.rstrip().endswith("  s Smooth")
        await press(pilot, "question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        shown = " ".join(str(app.screen.lines()).split())
        assert all(key.about in shown for key in keys.KEYS)
        await press(pilot, "escape")
        await pilot.press("q")
    assert app.return_code == 0


def test_the_keys_on_the_docs_page_are_those_of_the_program(root):
    assert keys.as_markdown() in (root / "docs" / "rlvrviz.md").read_text(encoding="utf-8")
    for where in keys.TITLES:
        taken = [one for key in keys.KEYS if key.where == where for one in key.keys.split(",")]
        assert len(taken) == len(set(taken)), where
    actions = {
        "charts": ChartGrid,
        "completions": CompletionsTable,
        "everywhere": VizApp,
        "completion": CompletionScreen,
    }
    for key in keys.KEYS:
        assert callable(getattr(actions[key.where], f"action_{key.action.partition('(')[0]}")), key.id


# ---------------------------------------------------------------------------------------------------------------------
# In a real terminal


@pytest.mark.tmux
@pytest.mark.skipif(not shutil.which("tmux"), reason="needs tmux")
def test_a_run_is_watched_while_it_goes_on_and_the_terminal_is_left_as_it_was(tmp_path, root):
    from shot import Terminal

    files = RunFiles(tmp_path / "run")
    files.folder.mkdir()
    new = steps(100)
    for _ in range(3):
        write_step(files, *next(new))
    terminal = Terminal([sys.executable, str(root / "rlvrviz.py"), "run"], tmp_path, 120, 35, {"HOME": str(tmp_path)})
    try:
        terminal.wait("Completions: 48")
        for _ in range(4):
            write_step(files, *next(new))
        terminal.wait("Completions: 112")
        terminal.resize(80, 24)
        terminal.wait("s Smooth\n")
        terminal.resize(120, 35)
        terminal.wait("Completions: 112")
        terminal.keys("q")
        text = terminal.wait("ended with 0")
        assert "reward" not in text  # the alternate screen is gone
        terminal.keys("stty -a | tr ' ;' '\\n' | grep -x -e echo -e icanon | tr '\\n' ' '", "Enter")
        assert "icanon echo" in terminal.wait("icanon echo")
        terminal.tmux("send-keys", f"{sys.executable} {root / 'rlvrviz.py'} run; echo code=$?", "Enter")
        terminal.wait("Completions: 112")
        pid = int(terminal.tmux("display-message", "-p", "#{pane_pid}"))
        child = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[-1]
        subprocess.run(["kill", "-TERM", child], check=True)
        assert "Completions" not in terminal.wait("code=143")
        terminal.keys("echo visible", "Enter")
        terminal.wait("\nvisible")
    finally:
        terminal.close()
