"""Braille: small pictures drawn by hand, axes, smoothing, and everything that is no ordinary curve."""

import doctest
import itertools

import numpy as np
import pytest

from rlvr import braille, ticks
from rlvr.braille import (
    ASCII,
    BLOCKS,
    BRAILLE,
    FIRST_COLOR,
    Cells,
    Layer,
    draw_bars,
    draw_chart,
    draw_lines,
    line_dots,
)

NAN = float("nan")


def picture(x, y, window, rows, columns) -> list[str]:
    dots = line_dots(np.array(x, dtype=float), np.array(y, dtype=float), window, rows, columns)
    return ["".join("#" if dot else "." for dot in row) for row in dots]


@pytest.mark.parametrize(
    ("x", "y", "drawn"),
    [
        ([0, 4], [0, 4], ["....#", "...#.", "..#..", ".#...", "#...."]),
        ([0, 4], [2, 2], [".....", ".....", "#####", ".....", "....."]),
        ([0, 1, 2, 3, 4], [0, 4, 0, 4, 0], [".#.#.", ".#.#.", "#####", "#.#.#", "#.#.#"]),
        ([2], [4], ["..#..", ".....", ".....", ".....", "....."]),
        ([], [], ["....."] * 5),
        ([0, 1, 2, 3, 4], [0, 0, NAN, 4, 4], ["...##", ".....", ".....", ".....", "##..."]),
        ([0, 1, 2, 3, 4], [NAN, NAN, NAN, NAN, NAN], ["....."] * 5),
        ([0, 2, 4], [0, NAN, 0], [".....", ".....", ".....", ".....", "#...#"]),
        # Several points in a column: lowest and highest are joined.
        ([2, 2, 2, 4], [1, 3, 2, 2], [".....", "..#..", "..###", "..#..", "....."]),
        # Beyond the window the line goes on, and infinities are gaps.
        ([-4, 8], [-4, 8], ["....#", "...#.", "..#..", ".#...", "#...."]),
        ([-100, -50], [2, 2], ["....."] * 5),
        ([0, 4], [9, 9], ["....."] * 5),
        ([0, 1, 4], [2, np.inf, 2], [".....", ".....", "#...#", ".....", "....."]),
    ],
)  # fmt: skip
def test_a_line_is_these_dots(x, y, drawn):
    assert picture(x, y, (0, 4, 0, 4), 5, 5) == drawn


def test_no_peak_is_lost_among_a_million_points():
    y = np.zeros(1_000_000)
    y[123_456] = 1.0
    dots = line_dots(np.arange(1e6), y, (0, 1e6, 0, 1), 8, 100)
    assert dots[0].nonzero()[0].tolist() == [12] and dots[-1].all()
    assert dots[:, 12].all()


def test_neighbouring_columns_always_touch():
    rng = np.random.default_rng(1)
    for count in (2, 3, 7, 50, 400):
        dots = line_dots(np.sort(rng.uniform(0, 1, count)), rng.uniform(0, 1, count), (0, 1, 0, 1), 40, 60)
        columns = [set(column.nonzero()[0].tolist()) for column in dots.T if column.any()]
        for one, other in itertools.pairwise(columns):
            assert any(abs(a - b) <= 1 for a in one for b in other)


def test_a_rising_line_in_each_kind_of_character():
    x = np.array([0.0, 1.0])
    layer = Layer(x, x, FIRST_COLOR)
    assert draw_lines([layer], (0, 1, 0, 1), 2, 4, BRAILLE).lines() == [
        "⠀⠀⡠⠊".replace("⠀", " "),
        "⡠⠊⠀⠀".replace("⠀", " "),
    ]
    assert draw_lines([layer], (0, 1, 0, 1), 2, 2, BLOCKS).lines() == [" ▞", "▞ "]
    assert draw_lines([layer], (0, 1, 0, 1), 2, 4, ASCII).lines() == ["  .'", ".'  "]


def test_the_later_curve_owns_a_cell():
    x = np.array([0.0, 1.0])
    layers = [Layer(x, np.zeros(2), 8), Layer(x, np.array([0.0, 1.0]), 9)]
    cells = draw_lines(layers, (0, 1, 0, 1), 3, 3)
    assert cells.colors.tolist() == [[0, 9, 9], [0, 9, 0], [9, 9, 8]]
    assert cells.lines() == [" ⢀⡞", " ⡜ ", "⡼⠁⣀"]


def test_smoothing_is_the_formula_of_tensorboard():
    rng = np.random.default_rng(0)
    values = rng.normal(size=1000)
    values[[0, 5, 6, 200]] = NAN
    average = total = 0.0
    expected = []
    for value in values:
        if np.isnan(value):
            expected.append(NAN)
            continue
        average, total = 0.9 * average + 0.1 * value, 0.9 * total + 0.1
        expected.append(average / total)
    np.testing.assert_allclose(braille.smooth(values, 0.9)[0], expected, rtol=1e-9)
    first, state = braille.smooth(values[:333], 0.9)
    second, _ = braille.smooth(values[333:], 0.9, state)
    np.testing.assert_allclose(np.concatenate((first, second)), expected, rtol=1e-9)
    assert braille.smooth(values, 0.0)[0][1] == values[1]
    assert len(braille.smooth(np.empty(0), 0.9)[0]) == 0
    np.testing.assert_allclose(braille.smooth(np.full(5000, 3.25), 0.99)[0], 3.25)


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 1, 4, [0, 0.25, 0.5, 0.75, 1]),
        (-1, 1, 4, [-1, -0.5, 0, 0.5, 1]),
        (0, 300, 3, [0, 100, 200, 300]),
        (3.2, 3.9, 4, [3.2, 3.4, 3.6, 3.8]),
        (0, 1e-5, 5, [0, 2e-6, 4e-6, 6e-6, 8e-6, 1e-5]),
        (1e6, 1e6 + 4, 4, [1e6, 1e6 + 1, 1e6 + 2, 1e6 + 3, 1e6 + 4]),
    ],
)
def test_ticks_are_round(low, high, most, expected):
    assert ticks.linear_ticks(low, high, most) == pytest.approx(expected)


@pytest.mark.parametrize("width", [12, 20, 30, 38, 90])
@pytest.mark.parametrize(("low", "high"), [(1, 39), (1, 3), (0, 1), (7, 7000), (1, 450), (95, 105)])
@pytest.mark.parametrize("times", [False, True])
def test_an_x_axis_has_at_least_two_labels_and_they_do_not_touch(low, high, width, times):
    found = ticks.x_ticks(low, high, width, times)
    labels = [(cell, label) for cell, _, label in found if label]
    assert len(labels) > 1 or width == 12
    row = [" "] * (width + 9)
    for cell, label in labels:
        begin = 9 + min(cell - len(label) // 2, width - len(label))
        assert set(row[max(begin - 1, 0) : begin + len(label) + 1]) == {" "}
        row[begin : begin + len(label)] = label


def test_a_low_log_axis_has_two_ticks_too():
    for low, high in ((0.011, 0.018), (2.1, 4.9), (1.5, 60), (1e-7, 3e-7)):
        chart = draw_chart(
            [Layer(np.arange(5.0), np.linspace(low, high, 5), FIRST_COLOR)], 7, 40, x_range=(0, 4), log=True
        )
        assert sum(BRAILLE.tick_y in line for line in chart.cells.lines()) >= 2


def test_a_plot_of_four_lines_has_ticks_at_its_ends_only():
    cells = draw_chart(
        [], 6, 40, x_range=(0, 9), y_range=(0, 1), labels=lambda values: [f"{v:.0%}" for v in values]
    ).cells
    assert [line[:5].strip("│ ") for line in cells.lines()[:4]] == ["100%┤", "", "", "0%┤"]


@pytest.mark.parametrize("value", [0.3, 0.2, 0.1, 12.0, 0.7])
@pytest.mark.parametrize("height", [5, 8, 9, 12])
def test_a_smoothed_constant_is_one_row_of_dots_without_gaps(value, height):
    y = braille.smooth(np.full(300, value), 0.9)[0]
    x = np.arange(300.0)
    window = (0.0, 299.0, *braille.data_range([Layer(x, y, 0)], (0, 299)))
    dots = line_dots(x, y, window, 4 * height, 120)
    assert dots.any(axis=1).sum() == 1 and dots.any(axis=0).all()


def test_without_colours_a_curve_is_its_letter():
    x = np.arange(10.0)
    cells = draw_lines([Layer(x, x, 8, "B"), Layer(x, 9 - x, 9, "A")], (0, 9, 0, 9), 5, 10)
    assert set("".join(cells.lines())) == {"A", "B", " "}


def test_the_crosshair_stands_on_the_bar_and_not_in_a_hole():
    x = np.arange(10.0)
    shares = np.full((1, 10), 1.0)
    chart = draw_chart(
        [],
        8,
        40,
        x_range=(0, 9),
        cursor=5.0,
        bars=lambda rows, columns: draw_bars(x, shares, [30], (0, 9), rows, columns),
    )
    column = chart.column_of(5.0)
    assert (chart.cells.backgrounds[: chart.height, column] == 30).all()


def test_labels_of_ticks():
    assert ticks.tick_labels([-0.5, 0, 0.5]) == ["-0.5", "0.0", "0.5"]
    assert ticks.tick_labels([0, 2.5e6, 5e6]) == ["0.0", "2.5M", "5.0M"]
    assert ticks.log_ticks(0.0003, 40, 6) == pytest.approx([0.001, 0.01, 0.1, 1, 10])
    assert ticks.log_ticks(1, 10, 6) == pytest.approx([1, 2, 5, 10])
    assert [ticks.number(value) for value in (-0.1234567, 1234.5, 999_999, 1e12, None, 17.0)] == [
        *("-0.1235", "1,234", "1M", "1e12", "–", "17"),
    ]


def test_a_chart_has_axes_with_labels():
    x = np.arange(5.0)
    chart = draw_chart([Layer(x, x, FIRST_COLOR)], 7, 24, x_range=(0, 4), y_range=(0, 4), guides=False)
    assert [line.rstrip() for line in chart.cells.lines()] == [
        "4┤                 ⢀⣀⠤⠒⠉",
        " │             ⢀⡠⠔⠊⠁",
        "2┤         ⣀⠤⠒⠊⠁",
        " │    ⢀⡠⠔⠒⠉",
        "0┤⣀⠤⠒⠉⠁",
        " └┬─────────┬──────────┬",
        "  0         2          4",
    ]
    assert chart.x_at(chart.column_of(3)) == pytest.approx(3, abs=0.1)


@pytest.mark.parametrize("y", [[], [3.0], [3.0, 3.0, 3.0], [NAN, NAN], [0.0], [-1e300, 1e300], [1e-300, 2e-300]])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (5, 20), (15, 100)])
@pytest.mark.parametrize("glyphs", [BRAILLE, BLOCKS, ASCII])
@pytest.mark.filterwarnings("error")
def test_any_series_can_be_drawn_at_any_size(y, log, size, glyphs):
    x = np.arange(float(len(y)))
    chart = draw_chart(
        [Layer(x, np.array(y), FIRST_COLOR)],
        *size,
        x_range=(0, max(len(y) - 1, 1)),
        log=log,
        glyphs=glyphs,
        cursor=0.5,
    )
    assert chart.cells.codes.shape == size
    if glyphs is ASCII:
        assert all(line.isascii() for line in chart.cells.lines())


def test_a_constant_series_stands_in_the_middle_and_a_single_point_is_seen():
    for y in ([3.0, 3.0], [3.0]):
        layer = Layer(np.arange(float(len(y))), np.array(y), FIRST_COLOR)
        bottom, top = braille.data_range([layer], (0, 1))
        assert (bottom, top) == (1.5, 4.5)
        assert (draw_chart([layer], 9, 30, x_range=(0, 1)).cells.colors == FIRST_COLOR).any()


def test_what_is_not_positive_is_left_out_of_a_log_axis_and_outliers_can_be():
    x = np.arange(1000.0)
    y = np.linspace(1, 2, 1000)
    y[500] = 1000.0
    y[501] = -5.0
    layer = Layer(x, y, FIRST_COLOR)
    low, high = braille.data_range([layer], (0, 999), log=True)
    assert 0.5 < low < 1 and high > 1000
    low, high = braille.data_range([layer], (0, 999), outliers=False)
    assert low > 0.9 and high < 2.2
    assert braille.data_range([layer], (0, 100))[1] < 1.2  # only what is in view counts


def test_a_logarithm_is_drawn_as_a_straight_line():
    x = np.arange(5.0)
    straight = draw_chart([Layer(x, x, 8)], 8, 30, x_range=(0, 4), y_range=(0, 4), guides=False)
    log = draw_chart([Layer(x, 10.0**x, 8)], 8, 30, x_range=(0, 4), y_range=(1, 1e4), log=True, guides=False)
    wide = straight.width - log.width  # the labels "10k" and "1" against "4" and "0"
    narrow = draw_chart([Layer(x, x, 8)], 8, 30 - wide, x_range=(0, 4), y_range=(0, 4), guides=False)
    plots = [[line[chart.left :] for line in chart.cells.lines()[: chart.height]] for chart in (log, narrow)]
    assert plots[0] == plots[1]
    assert log.cells.text(0).startswith("10k┤")


def test_bars_are_stacked_from_the_bottom():
    shares = np.array([[0.5, 1.0, 0.0], [0.25, 0.0, 0.0]])
    cells = draw_bars(np.arange(3.0), shares, [8, 9], (0, 2), 4, 3)
    assert cells.lines() == [" █ ", "██ ", "██ ", "██ "]
    assert cells.colors.tolist() == [[0, 8, 0], [9, 8, 0], [8, 8, 0], [8, 8, 0]]
    letters = draw_bars(np.arange(3.0), shares, [8, 9], (0, 2), 4, 3, letters="sw")
    assert letters.lines() == [" s ", "ws ", "ss ", "ss "]


def test_a_border_between_bars_falls_within_a_cell():
    cells = draw_bars(np.arange(1.0), np.array([[0.25], [0.75]]), [8, 9], (0, 1), 2, 1)
    assert cells.lines() == ["█", "▄"]
    assert (cells.colors[1, 0], cells.backgrounds[1, 0], cells.backgrounds[0, 0]) == (8, 9, 0)


def test_bars_average_what_shares_a_column_and_fill_what_has_none():
    cells = draw_bars(np.repeat(np.arange(5.0), 2), np.array([[1.0, 0.0] * 5]), [8], (0, 4), 2, 5)
    assert cells.lines() == ["     ", "█████"]
    cells = draw_bars(np.array([0.0, 9.0]), np.array([[1.0, 1.0]]), [8], (0, 9), 1, 10)
    assert cells.lines() == ["██████████"]
    assert draw_bars(np.empty(0), np.empty((2, 0)), [8, 9], (0, 1), 2, 3).lines() == ["   ", "   "]


def test_text_is_cut_at_the_border_and_runs_join_what_looks_the_same():
    cells = Cells(1, 6)
    cells.put(0, 4, "abc", 8)
    cells.put(0, -1, "xyz", 9)
    cells.put(3, 0, "nowhere")
    assert cells.lines() == ["yz  ab"]
    assert list(cells.runs(0)) == [("yz", 9, 0), ("  ", 0, 0), ("ab", 8, 0)]


def test_the_examples_in_the_docstrings():
    assert doctest.testmod(braille).failed == 0 and doctest.testmod(ticks).failed == 0
