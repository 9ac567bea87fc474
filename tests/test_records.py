"""Records: what is written is what is read, line by line, also when a line is torn or a number is not one."""

import math

import pytest

from rlvr import records
from rlvr.errors import RlvrError
from rlvr.records import Check, Completion, Reward, Status


def completion(**changes) -> Completion:
    values = dict(
        task="A000045",
        outcome="solved",
        reward=1.0,
        rewards=(Reward("function_works", 0.1, "fine"),),
        function="def a(n): return n",
        checks=(Check("a(0)", "0", "0", True, True), Check("a(9)", "9" * 5000, "1", False, False)),
        verdict="ok",
        step=3,
        group=0,
        sample=1,
        prompt="p",
        completion="line\nbreak \u2028 é",
        tokens=12,
        truncated=False,
    )
    return Completion(**{**values, **changes})


def test_a_line_round_trips_with_terms_of_any_length(tmp_path):
    path = tmp_path / "trace.jsonl"
    records.append(path, completion())
    records.append(path, completion(step=4), completion(step=5))
    assert path.read_bytes().count(b"\n") == 3
    lines = list(records.read_lines(path, Completion))
    assert [line.step for line in lines] == [3, 4, 5]
    assert lines[0] == completion()
    assert (lines[0].hidden_passed, lines[0].hidden_total) == (0, 1)


def test_a_torn_last_line_is_left_for_later(tmp_path):
    path = tmp_path / "trace.jsonl"
    records.append(path, completion())
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:50])
    assert len(list(records.read_lines(path, Completion))) == 1


@pytest.mark.parametrize("bad", [b"{}\n", b"\n", b"not json\n", b'{"task": 1}\n', b"\xff\xfe\n"])
def test_a_bad_line_is_named_by_file_and_line(tmp_path, bad):
    path = tmp_path / "trace.jsonl"
    records.append(path, completion())
    path.write_bytes(path.read_bytes() + bad)
    with pytest.raises(RlvrError, match=r"trace.jsonl, line 2: not a valid Completion"):
        list(records.read_lines(path, Completion))


def test_nan_is_written_as_null(tmp_path):
    path = tmp_path / "trace.jsonl"
    records.append(path, completion(reward=math.nan))
    assert b"NaN" not in path.read_bytes()
    assert next(records.read_lines(path, Completion)).reward is None


def test_a_whole_file_is_replaced_and_read_by_name(tmp_path):
    path = tmp_path / "status.json"
    status = Status(state="running", kind="train", created=1.0, pid=1, process_start=1.5, started=2.0, updated=3.0)
    records.write(path, status)
    assert records.read(path, Status) == status
    assert [file.name for file in tmp_path.iterdir()] == ["status.json"]
    path.write_text("{")
    with pytest.raises(RlvrError, match=r"status.json: not a valid Status"):
        records.read(path, Status)
    with pytest.raises(RlvrError, match=r"absent.json: no such file"):
        records.read(tmp_path / "absent.json", Status)
