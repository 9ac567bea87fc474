"""The curriculum: what was always solved stays out, also in the cycle after the next."""

import pytest
from test_records import completion

from rlvr import curriculum, records
from rlvr.errors import RlvrError
from rlvr.records import Check


def answers(task: str, *outcomes: str):
    hit = (Check("a(9)", "9", "9", True, False),)
    miss = (Check("a(9)", "9", "8", False, False),)
    return [
        completion(task=task, outcome=outcome, checks=hit if outcome in ("solved", "partial") else miss)
        for outcome in outcomes
    ]


def test_outcomes_of_a_cycle(tmp_path):
    seen = [
        *answers("A1", "solved", "solved", "infra"),
        *answers("A2", "solved", "wrong"),
        *answers("A3", "wrong", "lookup", "invalid"),
        *answers("A4", "partial", "wrong"),
        *answers("A5", "infra"),
    ]
    outcomes = curriculum.count_outcomes(seen, left_out=["A9"])
    assert outcomes.seen == ["A1", "A2", "A3", "A4"]
    assert outcomes.always_solved == ["A1", "A9"]
    assert outcomes.never_matched == ["A3"]
    assert {task: (count.samples, count.solved, count.matched) for task, count in outcomes.solves.items()} == {
        "A1": (2, 2, 2),
        "A2": (2, 1, 1),
        "A3": (3, 0, 0),
        "A4": (2, 0, 1),
    }
    path = tmp_path / "outcomes.json"
    records.write(path, outcomes)
    assert curriculum.always_solved(path) == {"A1", "A9"}


def test_a_bad_outcomes_file_is_named(tmp_path):
    path = tmp_path / "outcomes.json"
    path.write_text('{"seen": 3}')
    with pytest.raises(RlvrError, match=r"outcomes.json"):
        curriculum.always_solved(path)


def test_the_filter_keeps_what_is_solved_sometimes():
    grades = {
        "A1": answers("A1", "solved", "solved", "infra"),
        "A2": answers("A2", "solved", "wrong"),
        "A3": answers("A3", "partial", "partial"),
        "A4": answers("A4", "infra", "infra"),
    }
    assert curriculum.solved_sometimes(grades) == (["A2"], 1, 2)
