"""One completion in full: its terms cut so that a difference is seen, its group, the rows beside it."""

import doctest

import pytest
from pilots import press, until, words
from training_tree import steps, write_step

from rlvr.cycles import RunFiles
from rlvr.records import Check
from rlvr.tui import completion
from rlvr.tui.completion import CompletionScreen, checks_table, cut_alike
from rlvr.tui.series import open_path
from rlvr.tui.viz import VizApp


@pytest.mark.parametrize("room", [6, 7, 8, 12, 30])
@pytest.mark.parametrize("at", [0, 3, 5, 6, 11, 39, 40])
def test_a_difference_is_seen_wherever_it_is(at, room):
    expected = "1" * 41
    got = expected[:at] + "2" + expected[at + 1 :]
    for longer in ("", "123456789"):
        left, right = cut_alike(expected, got + longer, room)
        assert len(left) <= room and len(right) <= room
        assert left != right and "2" in right
        assert all(one == other for one, other in zip(left, right[: right.index("2")], strict=False))


def test_equal_terms_keep_both_ends_and_short_ones_are_whole():
    assert cut_alike("123", "124", 6) == ("123", "124")
    left, right = cut_alike("1" * 20 + "7", "1" * 20 + "7", 8)
    assert left == right and left.startswith("1111…") and left.endswith("7") and len(left) == 8


def test_the_table_of_terms_says_what_stands_in_each_column():
    long = "9" * 60
    checks = [
        Check(label="a(3)", expected=long + "1", got=long + "2", passed=False, shown=False),
        Check(label="a(4)", expected="5", got="5", passed=True, shown=True),
    ]
    lines = checks_table(checks, 60).plain.splitlines()
    assert lines[0].split() == ["n", "expected", "got", "match"]
    assert len({line.index("match" if "match" in line else "✓" if "✓" in line else "✗") for line in lines}) == 1
    assert lines[1].split() == ["a(3)", "…" + "9" * 19 + "1", "…" + "9" * 19 + "2", "✗"]
    assert lines[2].split() == ["a(4)", "5", "5", "✓", "shown"] and max(map(len, lines)) <= 60


def test_what_one_column_of_terms_does_not_need_the_other_has():
    checks = [Check(label="a(1)", expected="9" * 30, got="", passed=False, shown=False)]
    assert checks_table(checks, 60).plain.splitlines()[1].split() == ["a(1)", "9" * 30, "–", "✗"]
    checks = [Check(label="a(1)", expected="7", got="9" * 60, passed=False, shown=False)]
    lines = checks_table(checks, 50).plain.splitlines()
    assert lines[1].split() == ["a(1)", "7", "9" * 23 + "…", "✗"] and max(map(len, lines)) <= 50
    assert doctest.testmod(completion).failed == 0


async def test_the_next_row_of_a_filtered_table_has_its_whole_group(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    files = RunFiles(tmp_path / "run")
    files.folder.mkdir()
    for step, lines in list(steps(20))[:4]:
        write_step(files, step, lines)
    app = VizApp([open_path(files.folder)])
    async with app.run_test(size=(200, 60)) as pilot:
        await until(pilot, lambda: len(app.pane.table.all) == 64)
        await press(pilot, "2", "o")
        table = app.pane.table
        assert {row.outcome for row in table.shown} == {"solved"}
        alone = next(
            index
            for index, row in enumerate(table.shown[1:], 1)
            if row.prompt_key != table.shown[index - 1].prompt_key
        )
        table.cursor = alone - 1
        await press(pilot, "enter")
        await until(pilot, lambda: isinstance(app.screen, CompletionScreen) and app.screen.completion)
        screen = app.screen
        await press(pilot, "j")
        await until(pilot, lambda: screen.mates and screen.mates[0].prompt_key == table.shown[alone].prompt_key)
        assert screen.row == table.shown[alone] and [mate.sample for mate in screen.mates] == [0, 1, 2, 3]
        await press(pilot, "m")
        await until(pilot, lambda: words(app).count("hidden terms") == 4)


async def test_the_terms_are_whole_from_the_first_picture_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    widths = []
    monkeypatch.setattr(
        "rlvr.tui.completion.checks_table", lambda checks, width: widths.append(width) or checks_table(checks, width)
    )
    files = RunFiles(tmp_path / "run")
    files.folder.mkdir()
    write_step(files, *next(steps(20)))
    app = VizApp([open_path(files.folder)])
    async with app.run_test(size=(200, 60)) as pilot:
        await until(pilot, lambda: len(app.pane.table.all) == 16)
        await press(pilot, "2", "enter")
        await until(pilot, lambda: "expected" in words(app))
        assert min(widths) > 50
