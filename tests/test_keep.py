"""label, note, rm and kill as a user types them: what is kept, what is printed, exit codes; no process is started."""

import subprocess

import pytest

from rlvr import records
from rlvr.cycles import Run, RunFiles
from rlvr.status import new_status, process_start


@pytest.fixture
def run(tmp_path) -> Run:
    """m/001, done."""
    folder = tmp_path / "training/m/001"
    folder.mkdir(parents=True)
    (tmp_path / "training/m/model.toml").touch()
    records.write(folder / "status.json", new_status("train", "done", step=1))
    return Run("m", "001", "train", folder)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("higher  learning rate", "higher learning rate"),
        ("a\x1b[31mb\x07c\n\td", "a [31mb c d"),
        ("\u202eevil", "evil"),
        ("größer ∑", "größer ∑"),
    ],
)
def test_a_label_is_one_line_without_control_codes(here, run, text, kept):
    assert here("label", "001", text) == (0, "", "")
    assert run.files.label.read_text() == f"{kept}\n"
    assert here("label", "001") == (0, f"{kept}\n", "")
    assert here("label", "001", "")[0] == 0 and not run.files.label.exists()


def test_a_label_that_was_written_by_hand_cannot_harm_the_terminal_either(here, run):
    run.files.label.write_bytes(b"a\x1b]0;title\x07b\xff\n")
    assert here("label", "001")[1] == "a ]0;title b\ufffd\n"


def test_notes_are_read_whatever_their_encoding_and_an_empty_one_is_refused(here, run):
    run.files.notes.write_bytes(b"r\xe9sum\xe9\n")
    assert here("note", "001") == (0, "r\ufffdsum\ufffd\n", "")
    for empty in ("", "  "):
        code, _, error = here("note", "001", empty)
        assert code == 2 and "an empty note says nothing" in error
    assert run.files.notes.read_bytes() == b"r\xe9sum\xe9\n"
    assert here("note", "001", "collapsed")[0] == 0 and here("note", "1")[1].endswith("  collapsed\n")


def test_one_run_that_cannot_be_killed_leaves_the_others_to_be(here, run):
    pending = RunFiles(run.folder.parent / "002")
    pending.folder.mkdir()
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        status = new_status("train", "pending", pid=process.pid, process_start=process_start(process.pid))
        records.write(pending.status, status)
        code, _, error = here("kill", "002", "009")
        assert code == 2 and "no run '009'" in error and process.poll() is None  # a misspelt name ends nothing
        code, out, error = here("kill", "001", "2", "002")
        assert (code, out) == (2, "m/002: taken out of the queue\n")
        assert error == "error: m/001 is not running: it is done\n"
        assert process.wait(60) < 0
    finally:
        process.kill()
        process.wait()
    assert here("kill", "001", "002")[2].count("error: ") == 2
