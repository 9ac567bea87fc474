"""Keys of the viewer that a person has to find: the footer, the other pane, the pinned run, the way out."""

from pathlib import Path

import pytest
from pilots import press, settle, stand_in, until, words
from textual.color import Color
from textual.theme import BUILTIN_THEMES
from training_tree import make_training_tree

from rlvr.cycles import find_run
from rlvr.records import OUTCOMES
from rlvr.tui.chart import Chart, row_heights
from rlvr.tui.choose import RunsScreen
from rlvr.tui.contrast import LEAST_CONTRAST, contrast, readable
from rlvr.tui.figure import hues_of
from rlvr.tui.keybar import KeyBar
from rlvr.tui.series import open_run
from rlvr.tui.viz import VizApp


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    make_training_tree(folder, num_steps=12)
    return folder


@pytest.fixture
def here(tree, monkeypatch, tmp_path) -> Path:
    return stand_in(tree, tmp_path / "config", monkeypatch)


def viewer(*runs: str, **options) -> VizApp:
    return VizApp([open_run(find_run(run)) for run in runs], **options)


async def loaded(pilot, app: VizApp) -> None:
    await until(pilot, lambda: app.grid.charts and app.pane.table.all and not app.grid.reading)
    await settle(pilot)


def footer(app: VizApp) -> str:
    return words(app).splitlines()[-1]


async def test_the_footer_says_first_how_to_get_to_the_completions_and_to_other_runs(here):
    app = viewer("demo/001")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot, app)
        assert footer(app).split("  ")[:5] == [" ? Help", "q Quit", "tab Completions", "f Runs", "P Pause"]
        await press(pilot, "tab")
        assert app.pane.table.has_focus and app.pane.region.height > 15
        assert "tab Charts" in footer(app) and "tab Completions" not in footer(app)
        await press(pilot, "tab")
        assert app.grid.has_focus and "tab Completions" in footer(app)
        await press(pilot, "slash", "z", "tab")
        assert app.pane.table.has_focus and not app.query_one("#filter").has_class("open")


async def test_ctrl_c_leaves(here):
    app = viewer("demo/001")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot, app)
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app._exit)
    assert app.return_code == 0


async def test_a_pinned_run_is_on_top_and_its_completions_are_listed(here):
    app = viewer("demo/001", "demo/002", "demo/003")
    async with app.run_test(size=(120, 35)) as pilot:
        await loaded(pilot, app)
        metrics = [reader.metrics for reader in app.readers]
        hues = {curve.name: curve.hue for curve in app.grid.curves}
        await press(pilot, "x", "p")
        assert [curve.name for curve in app.grid.curves] == ["demo/002", "demo/003", "demo/001"]
        assert app.grid.view.cursor is not None
        await until(pilot, lambda: app.pane.table.all and app.pane.file == app.readers[0].completions_file)
        assert app.pane.file == find_run("demo/002").files.trace
        assert {id(reader.metrics) for reader in app.readers} == set(map(id, metrics))
        assert {curve.name: curve.hue for curve in app.grid.curves} == hues
        assert [line[3:11] for line in words(app).splitlines()[:3]] == ["demo/002", "demo/003", "demo/001"]
        await settle(pilot)
        assert "◆ demo/002" in words(app) and f"Completions: {len(app.pane.table.all)} " in words(app)


async def test_a_run_that_is_pinned_while_the_picture_is_held_still_is_listed_all_the_same(here):
    app = viewer("demo/001", "demo/002")
    async with app.run_test(size=(120, 35)) as pilot:
        await loaded(pilot, app)
        await press(pilot, "P", "p")
        await until(pilot, lambda: app.pane.table.all)
        assert app.paused and app.pane.file == find_run("demo/002").files.trace
        await press(pilot, "P")
        assert len({row.start for row in app.pane.table.all}) == len(app.pane.table.all)


def test_colours_do_not_depend_on_the_order_of_the_runs():
    names = [f"demo/{number:03}" for number in range(1, 8)]
    hues = dict(zip(names, hues_of(names), strict=True))
    assert hues_of(names[::-1]) == [hues[name] for name in names[::-1]] and len(set(hues.values())) == 7


async def test_the_list_of_runs_begins_at_the_one_on_the_screen_and_p_puts_one_first(here):
    app = viewer("demo/001")
    async with app.run_test(size=(120, 35)) as pilot:
        await loaded(pilot, app)
        await press(pilot, "f")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and app.screen.runs)
        screen = app.screen
        assert str(screen.current()) == "demo/001"
        names = list(map(str, screen.runs))
        screen.query_one("OptionList").highlighted = names.index("demo/002")
        await press(pilot, "space")
        screen.query_one("OptionList").highlighted = names.index("demo/003")
        await press(pilot, "p", "enter")
        await until(pilot, lambda: [reader.name for reader in app.readers] == ["demo/003", "demo/002"])


async def test_l_on_one_chart_then_on_all_is_on_for_all(here):
    app = viewer("demo/001")
    async with app.run_test(size=(120, 35)) as pilot:
        await loaded(pilot, app)
        every = {spec.name for spec in app.grid.charts}
        await press(pilot, "l", "L")
        assert app.grid.view.log == every
        await press(pilot, "L")
        assert not app.grid.view.log


async def test_a_filter_says_how_many_charts_it_leaves(here):
    app = viewer("demo/001", charts="rew")
    async with app.run_test(size=(120, 35)) as pilot:
        await loaded(pilot, app)
        assert f"only 'rew': 2 of {app.grid.count}" in words(app) and app.grid.count > 15


@pytest.mark.parametrize("height", range(21, 60))
def test_rows_fill_a_page_whichever_one_begins_with(height):
    page = height // 7
    heights = row_heights(height, page)
    assert len(heights) == page and min(heights) >= 7
    for begin in range(page):
        assert sum((heights * 2)[begin : begin + page]) == height


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (120, 38), (200, 60)])
async def test_no_chart_is_cut_in_half(here, size):
    app = viewer("demo/001")
    async with app.run_test(size=size) as pilot:
        await loaded(pilot, app)
        for _ in range(12):
            view = app.grid.region
            charts = [chart.region for chart in app.query(Chart) if chart.region.overlaps(view)]
            assert all(view.contains_region(region) for region in charts)
            await press(pilot, "down")


# ---------------------------------------------------------------------------------------------------------------------
# Colours that can be read


def test_a_colour_is_kept_where_it_can_be_read_and_moved_where_not():
    white, dark = Color.parse("#ffffff"), Color.parse("#121212")
    yellow = Color.parse("#e3b341")
    assert readable(yellow, dark) == yellow
    assert contrast(yellow, white) < LEAST_CONTRAST <= contrast(readable(yellow, white), white)
    assert contrast(Color.parse("#000"), white) == pytest.approx(21)


@pytest.mark.parametrize("theme", sorted(BUILTIN_THEMES))
async def test_every_text_of_the_viewer_can_be_read_in_every_theme(here, theme):
    app = viewer("demo/001", theme=theme)
    async with app.run_test(size=(120, 35)) as pilot:
        await loaded(pilot, app)
        await press(pilot, "2")
        table = app.pane.table
        assert set(OUTCOMES) <= set(table._styles["cursor"])
        strips = [table.render_line(y) for y in range(6)]
        strips += [line for chart in app.query(Chart) for line in chart._strips[:1]]
        bar = app.query_one(KeyBar)
        if not theme.startswith("ansi"):
            strips.append(bar.render_line(0))
        for strip in strips:
            for text, style, _ in strip:
                if text.strip() and style is not None and style.color and style.bgcolor and not style.dim:
                    pair = Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor)
                    assert contrast(*pair) > LEAST_CONTRAST - 0.1, (text, style)
