"""The tail: only what is new, whole lines only, through torn lines, replacement, cutting short, and rubbish."""

import os

import msgspec
import pytest

from rlvr import records
from rlvr.records import Tail, TextTail


class Line(msgspec.Struct):
    """A slim view of a fatter line."""

    step: int
    value: float | None = None


def line(step: int, **more) -> bytes:
    return msgspec.json.encode({"step": step, "fat": "x" * 10, **more}) + b"\n"


def steps(tail: Tail) -> list[int]:
    return [record.step for record in tail.read()]


def test_each_read_gives_only_what_is_new(tmp_path):
    path = tmp_path / "metrics.jsonl"
    tail = Tail(path, Line)
    assert tail.read() == [] and not tail.restarted
    path.write_bytes(line(1) + line(2, value=None))
    assert [(record.step, record.value) for record in tail.read()] == [(1, None), (2, None)]
    assert tail.read() == []
    records.append(path, Line(3, 0.5))
    assert tail.read() == [Line(3, 0.5)]
    assert tail.read() == [] and tail.bad == 0 and tail.remaining == 0


def test_a_torn_last_line_waits_for_its_end(tmp_path):
    path = tmp_path / "metrics.jsonl"
    whole = line(1) + line(2)
    tail = Tail(path, Line)
    seen = []
    for size in range(len(whole) + 1):
        path.open("ab").write(whole[max(size - 1, 0) : size])
        seen += steps(tail)
    assert seen == [1, 2] and tail.bad == 0


def test_a_replaced_file_is_read_from_its_beginning(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(line(1) + line(2) + b'{"st')
    tail = Tail(path, Line)
    assert steps(tail) == [1, 2]
    new = tmp_path / "new"
    new.write_bytes(line(7) + line(8) + line(9) + line(10))
    os.replace(new, path)
    assert steps(tail) == [7, 8, 9, 10] and tail.restarted
    assert steps(tail) == [] and not tail.restarted


def test_a_file_cut_short_is_read_from_its_beginning_also_when_it_has_grown_again(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(line(1) + line(2))
    tail = Tail(path, Line)
    assert steps(tail) == [1, 2]
    path.write_bytes(line(1))
    assert steps(tail) == [1] and tail.restarted
    path.write_bytes(line(4) + line(5) + line(6))
    assert steps(tail) == [4, 5, 6] and tail.restarted


def test_a_file_that_goes_and_comes_back(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(line(1))
    tail = Tail(path, Line)
    assert steps(tail) == [1]
    path.unlink()
    assert steps(tail) == [] and tail.remaining == 0
    path.write_bytes(line(2) + line(3))
    assert steps(tail) == [2, 3] and tail.restarted


@pytest.mark.parametrize("bad", [b"\n", b"{}\n", b"not json\n", b'{"step": "1"}\n', b'{"step": 1, "fat": "\xff"\n'])
def test_what_is_no_record_is_counted_and_the_rest_is_read(tmp_path, bad):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(line(1) + bad + line(2))
    tail = Tail(path, Line)
    assert steps(tail) == [1, 2] and tail.bad == 1
    assert tail.starts == [0, len(line(1) + bad)]


def test_a_long_file_comes_in_pieces_that_end_at_lines(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b"".join(line(step) for step in range(1000)))
    tail = Tail(path, Line)
    seen, starts, reads = [], [], 0
    while True:
        seen += [record.step for record in tail.read(max_bytes=100)]
        starts += tail.starts
        reads += 1
        if not tail.remaining:
            break
    assert seen == list(range(1000)) and reads > 200
    data = path.read_bytes()
    assert [msgspec.json.decode(data[start : data.index(b"\n", start)])["step"] for start in starts] == seen


def test_a_line_longer_than_a_read_arrives_whole(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_bytes(line(1) + line(2, blob="y" * 5_000_000) + line(3))
    tail = Tail(path, Line)
    seen = []
    while not seen or tail.remaining:
        seen += [record.step for record in tail.read(max_bytes=2**20)]
    assert seen == [1, 2, 3] and tail.bad == 0


def test_an_endless_line_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_LINE_BYTES", 1000)
    path = tmp_path / "trace.jsonl"
    path.write_bytes(line(1) + line(2, blob="y" * 1500) + line(3))
    tail = Tail(path, Line)
    seen = []
    while not seen or tail.remaining:
        seen += [record.step for record in tail.read(max_bytes=600)]
    assert seen == [1, 3] and tail.bad == 1


def test_the_end_of_a_long_file_begins_at_a_whole_line(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"".join(line(step) for step in range(100)))
    tail = Tail(path, Line, last_bytes=3 * len(line(99)) + 5)
    assert steps(tail) == [97, 98, 99] and tail.bad == 0
    assert tail.skipped > 0
    short = Tail(path, Line, last_bytes=10**9)
    assert steps(short) == list(range(100)) and short.skipped == 0


def test_the_text_of_a_log_as_a_person_sees_it(tmp_path):
    path = tmp_path / "run.log"
    path.write_bytes(
        b"plain\r\n"
        b"  0%|    | 0/9\r 50%|##  | 4/9\r100%|####| 9/9\n"
        b"\x1b[1;31mred\x1b[0m and \x1b]0;a title\x07bell\x07\n"
        b"caf\xc3\xa9 \xff\n"
        b"a\tb\n"
        b"\rworking  3/9"
    )
    tail = TextTail(path)
    assert tail.read() == ["plain", "100%|####| 9/9", "red and bell", "café \ufffd", "a       b"]
    assert tail.pending == "working  3/9"
    path.open("ab").write(b"\rworking  9/9\ndone\n")
    assert tail.read() == ["working  9/9", "done"] and tail.pending == ""
