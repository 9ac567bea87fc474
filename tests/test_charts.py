"""What a chart says in its title, in as much room as it has, and what it looks like without colours."""

import itertools
import os

import msgspec
import numpy as np
import pytest
from training_tree import make_training_tree, steps

from rlvr.braille import ASCII, FIRST_COLOR
from rlvr.cycles import find_run
from rlvr.listing import remaining
from rlvr.status import read_status
from rlvr.ticks import duration
from rlvr.tui.figure import KINDS, TITLE, Curve, View, broken, draw, in_words
from rlvr.tui.frame import draw_frame
from rlvr.tui.head import in_words as stand_in_words
from rlvr.tui.head import seconds_left, standing
from rlvr.tui.series import KNOWN_CHARTS, Metrics, RunReader, StepLine, open_run

CHARTS = {spec.name: spec for spec in KNOWN_CHARTS}


def made(seed: int, num_steps: int = 40) -> Metrics:
    metrics = Metrics()
    lines = [
        msgspec.convert(msgspec.to_builtins(step), StepLine) for step, _ in itertools.islice(steps(40), num_steps)
    ]
    metrics.extend_steps(lines)
    generator = np.random.default_rng(seed)
    metrics._columns["reward"][:num_steps] = generator.normal(size=num_steps)
    return metrics


def curves(count: int) -> list[Curve]:
    return [Curve(f"demo/{index + 1:03}", made(index), index) for index in range(count)]


def title(name: str, some: list[Curve], width: int, height: int = 7, **view) -> str:
    drawn = draw(some, CHARTS[name], View(**view), height, width)
    return "\n".join(drawn.cells.text(row).rstrip() for row in range(drawn.title))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("width", [38, 48, 78])
@pytest.mark.parametrize("name", ["reward", "solved", "zero_variance"])
def test_a_title_has_every_last_value_and_the_extremes_in_the_narrowest_chart(count, width, name):
    some = curves(count)
    text = title(name, some, width)
    assert "…" not in text and len(text) <= width
    assert ("min" in text and "max" in text) or ".." in text
    column = CHARTS[name].columns[0]
    for curve in some:
        last = curve.metrics.column(column)[-1]
        spec = CHARTS[name]
        assert in_words(last, spec) in text or in_words(last, spec, brief=True) in text


def test_a_high_chart_has_room_for_the_names_of_many_runs():
    some = curves(5)
    assert "001" not in title("reward", some, 38)
    in_full = draw(some, CHARTS["reward"], View(), 24, 60)
    text = "\n".join(in_full.cells.text(row) for row in range(in_full.title))
    assert in_full.title > 1 and all(f"00{number} " in text for number in range(1, 6)) and text.count("..") == 5
    assert in_full.chart and in_full.chart.top == in_full.title


def test_a_logarithm_says_briefly_how_much_it_leaves_out():
    some = curves(1)
    assert "not positive" in title("reward", some, 78, log=frozenset({"reward"}))
    brief = title("reward", some, 38, log=frozenset({"reward"}))
    left_out = int((some[0].metrics.column("reward") <= 0).sum())
    assert brief.startswith(f" reward log −{left_out} ") and ".." in brief and "…" not in brief


def test_bars_say_what_was_measured_and_not_the_average():
    some = curves(1)
    solved = some[0].metrics.column("outcomes/solved")
    text = title("outcomes", some, 78, smoothing=0.99)
    assert f"solved {100 * solved[-1]:.0f}%" in text
    assert title("solved", some, 78, smoothing=0.99).split()[1] == f"{100 * solved[-1]:.3g}%"
    low, high = round(100 * solved.min()), round(100 * solved.max())
    assert f" {low}..{high}%" in title("outcomes", some, 78, height=24)


@pytest.mark.parametrize(("width", "kinds"), [(38, 7), (48, 9), (60, 9), (100, 9)])
def test_bars_are_not_cut_off(width, kinds):
    metrics = made(1)
    for name in CHARTS["outcomes"].columns:
        metrics._columns[name][: len(metrics)] = 0.0
    for index, name in enumerate(CHARTS["outcomes"].columns[:kinds]):
        metrics._columns[name][: len(metrics)] = 0.1 + 0.01 * index
    text = title("outcomes", [Curve("m/001", metrics, 0)], width)
    assert "…" not in text and len(text) <= width


def test_parts_are_broken_between_words():
    assert broken([("name", TITLE), ("  001 0.5", 8), ("  002 0.7", 10)], 14) == [
        [("name", TITLE), ("  001 0.5", 8)],
        [(" 002 0.7", 10)],
    ]


# ---------------------------------------------------------------------------------------------------------------------
# Without colours


def test_without_colours_one_run_is_its_average_and_several_are_letters():
    alone = draw(curves(1), CHARTS["reward"], View(letters=True), 12, 60).cells
    assert FIRST_COLOR + 1 not in alone.colors
    two = draw(curves(2), CHARTS["reward"], View(letters=True, glyphs=ASCII, guides=False), 12, 60)
    plot = "".join(line[8:] for line in two.cells.lines()[two.title : two.title + 8])
    assert set(plot) <= set("AB ") and {"A", "B"} <= set(plot)
    assert "A=001" in two.cells.text(0) and "B=002" in two.cells.text(0)


def test_the_head_of_a_frame_without_colours_says_which_letter_is_which_run(tmp_path):
    readers = [RunReader(f"m/{number}", tmp_path, tmp_path / "none") for number in (1, 2)]
    for reader in readers:
        reader.metrics = made(1)
    cells = draw_frame(readers, [CHARTS["reward"]], View(letters=True), 80, None)
    assert cells.text(0).startswith("A m/1") and cells.text(1).startswith("B m/2")


def test_every_colour_of_the_bars_stands_in_their_title():
    drawn = draw(curves(1), CHARTS["outcomes"], View(), 7, 38)
    words = {int(color) for color in drawn.cells.colors[0] if KINDS <= color < TITLE}
    bars = {int(color) for color in drawn.cells.colors[1:].ravel() if KINDS <= color < TITLE}
    assert bars and bars <= words


# ---------------------------------------------------------------------------------------------------------------------
# How a run stands


def test_the_time_left_is_the_same_in_the_viewer_and_in_a_listing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_training_tree(tmp_path, num_steps=12, pid=os.getpid())
    run = find_run("demo/003")
    reader = open_run(run)
    reader.read_all()
    status = read_status(run.files.status)
    assert status is not None and status.state == "running"
    now = float(reader.metrics.column("time")[-1]) + 1.5
    left = seconds_left(reader, now)
    assert left and left == pytest.approx(remaining(run, status, now))
    monkeypatch.setattr("rlvr.tui.head.time.time", lambda: now)
    assert f"  {duration(left)} left" in stand_in_words(standing(reader))
