"""ps, watch, wait, tail, log and trace as a user types them, over a made-up training tree."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from conftest import ROOT
from msgspec import structs
from processes import wait_until
from training_tree import make_cycle, make_training_tree, steps, write_step

from rlvr import listing, records
from rlvr.cycles import RunFiles
from rlvr.errors import RlvrError
from rlvr.records import Completion, Launch, Status, Step
from rlvr.status import is_alive, process_start

NUM_STEPS = 24
CTL = (sys.executable, str(ROOT / "rlvrctl.py"))


class Tree:
    """A folder with `training/` in it, whose demo/003 "runs" as a process that does nothing."""

    def __init__(self, folder: Path, pid: int):
        self.folder = folder
        self.pid = pid
        make_training_tree(folder, num_steps=NUM_STEPS, pid=pid)

    def files(self, run: str) -> RunFiles:
        return RunFiles(self.folder / "training" / run)

    def status(self, run: str) -> Status:
        return records.read(self.files(run).status, Status)

    def set_status(self, run: str, **changes: object) -> None:
        records.write(self.files(run).status, structs.replace(self.status(run), **changes))

    def run(self, *arguments: object, **options) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*CTL, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=300, **options
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def out(self, *arguments: object) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*CTL, *map(str, arguments)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def rows(self, *arguments: object) -> dict[str, dict]:
        found = json.loads(self.out("ps", "--json", *arguments))
        return {f"{row['model']}/{row['run']}": row for row in found}


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    process = subprocess.Popen(["sleep", "600"])
    try:
        yield Tree(tmp_path, process.pid)
    finally:
        process.kill()
        process.wait()


def on_a_terminal(tree: Tree, *arguments: str, columns: int, **environment: str) -> str:
    """What a command writes to a terminal of so many columns."""
    main, other = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "40", **environment}
    env = {name: value for name, value in env.items() if value}
    process = subprocess.Popen([*CTL, *arguments], cwd=tree.folder, stdout=other, stderr=other, env=env)
    os.close(other)
    found = b""
    try:
        while block := os.read(main, 65536):
            found += block
    except OSError:  # how Linux says that the other side was closed
        pass
    os.close(main)
    assert process.wait(300) == 0, found
    return found.decode()


# ---------------------------------------------------------------------------------------------------------------------
# ps


def test_live_runs_come_first_then_the_newest(tree):
    rows = tree.rows("-a")
    assert list(rows)[:4] == ["demo/003", "demo/004", "other/001", "demo/002"]
    assert len(rows) == 8
    created = [row["created"] for row in list(rows.values())[2:]]
    assert created == sorted(created, reverse=True)
    assert list(tree.rows("--model", "other")) == ["other/001"]


def test_a_row_says_how_far_how_long_and_how_well(tree):
    rows = tree.rows("-a")
    live = rows["demo/003"]
    done = NUM_STEPS * 2 // 3
    assert (live["state"], live["step"], live["max_steps"], live["pid"]) == ("running", done, NUM_STEPS, tree.pid)
    assert live["percent"] == pytest.approx(100 * done / NUM_STEPS)
    last = read_whole(tree.files("demo/003").metrics, Step)[-1]
    assert live["reward"] == last.reward
    assert live["solved"] == last.outcomes["solved"] / 16
    # The tree makes a step every 6.5 s, give or take one; eight are left, and the newest was just now.
    assert 0 < live["remaining_s"] <= (NUM_STEPS - done) * 8.5
    assert live["elapsed_s"] > 40 + 6.5 * done - 2
    finished = rows["demo/002"]
    assert finished["elapsed_s"] == finished["finished"] - finished["started"] == pytest.approx(43 + 6.5 * NUM_STEPS)
    assert finished["remaining_s"] is None and finished["pid"] is None
    assert rows["demo/001"]["label"] == "cold start"
    assert rows["demo/004"]["waiting_for"] == "003" and rows["demo/004"]["elapsed_s"] is None
    assert rows["other/001"]["message"] == "RuntimeError: the sandbox died" and rows["other/001"]["exit_code"] == 1


def test_the_json_is_what_the_page_says(tree):
    documented = (ROOT / "docs" / "rlvrctl.md").read_text(encoding="utf-8")
    for name in tree.rows("-a")["demo/003"]:
        assert f"`{name}`" in documented, name


def test_the_table_shows_the_same(tree):
    lines = tree.out("ps", "--model", "demo").splitlines()
    assert "waiting for 003" in lines[2]
    assert lines[0].split() == ["run", "state", "progress", "elapsed", "left", "reward", "solved", "label", "message"]
    assert lines[1].split()[:4] == ["003", "running", "16/24", "66%"]
    assert any(line.startswith("001 ") and "cold start" in line for line in lines)
    assert "other" not in "".join(lines)
    assert any(line.startswith("other/001") for line in tree.out("ps", "-a").splitlines())


def test_without_a_only_the_newest_ended_are_listed(tree):
    for number in range(5, 30):
        make_cycle(tree.folder / f"training/demo/{number:03d}", 1, started=1.6e9 + number)
    lines = tree.out("ps", "--model", "demo").splitlines()
    assert len(lines) == 1 + 2 + 20 + 1  # a header, two that live, twenty that have ended, how many more
    assert lines[-1] == "10 more: rlvrctl.py ps -a --model demo"
    ended = [line.split()[0] for line in lines[3:-1]]
    assert ended == [*ended[:5], *(f"{number:03d}" for number in range(29, 14, -1))]  # the tree's own are newer
    assert len(tree.out("ps", "-a", "--model", "demo").splitlines()) == 1 + 2 + 30
    assert len(tree.rows("--model", "demo")) == 32


def test_runs_of_other_models_that_live_are_named(tree):
    assert "demo/003 is running" in tree.out("ps", "--model", "other")


def test_a_run_of_a_process_that_took_its_number_is_lost(tree):
    started = process_start(1)
    assert started is not None
    for pid, start in ((1, started + 500), (tree.pid, 12.0), (2**22 - 3, 12.0)):
        tree.set_status("demo/003", state="running", pid=pid, process_start=start, step=3)
        row = tree.rows("-a")["demo/003"]
        assert row["state"] == "lost" and row["pid"] is None, pid
        assert row["step"] == NUM_STEPS * 2 // 3  # what its program has written, though its supervisor had not seen it
        assert "resume" in row["message"]


def test_what_cannot_be_read_is_a_row_that_says_so(tree):
    tree.files("demo/002").status.write_text('{"state": "done", ')
    tree.files("demo/001").status.write_bytes(b'{"state": 5}\xff')
    tree.files("other/001").status.unlink()
    (tree.folder / "training/other/001/label.txt").write_bytes(b"caf\xe9")
    rows = tree.rows("-a")
    assert len(rows) == 8
    assert rows["demo/002"]["state"] == rows["demo/001"]["state"] == "failed"
    assert "status.json: not a valid Status record" in rows["demo/002"]["message"]
    assert rows["other/001"]["message"] == "it has no status.json"
    assert rows["demo/003"]["state"] == "running"
    assert "demo/002" in tree.out("ps", "-a")


def test_a_queue_that_nobody_looks_after_goes_on(tree):
    records.write(tree.files("demo/004").launch, Launch(ticket=1.0, after="demo/003"))
    tree.out("ps", "-a")
    assert wait_until(lambda: is_alive(tree.status("demo/004")))
    assert wait_until(
        lambda: tree.rows("-a")["demo/004"]["message"] == "waiting for 003"
    )  # its first look at the queue
    status = tree.status("demo/004")
    assert status.pid != tree.pid
    assert psutil.Process(status.pid).cmdline()[-1].endswith("training/demo/004")
    tree.out("kill", "demo/004")
    assert wait_until(lambda: tree.status("demo/004").state == "killed")


def test_no_model_and_no_run(here, tmp_path):
    for arguments in (("ps",), ("ps", "-a")):
        code, out, _ = here(*arguments)
        assert (code, out) == (0, f"Nothing yet in {tmp_path}/training. Next: rlvrctl.py init --model NAME\n")
        assert here(*arguments, "--json")[:2] == (0, "[]\n")
    code, _, error = here("ps", "--model", "m")
    assert code == 2 and "training/m: no such model" in error
    for model in ("m", "n"):
        (tmp_path / "training" / model).mkdir(parents=True)
        (tmp_path / "training" / model / "model.toml").write_text("")
    assert here("ps", "--model", "m")[1] == "Nothing yet. Next: rlvrctl.py train --model m\n"
    assert here("ps", "--json")[:2] == (0, "[]\n")


def test_colours_on_a_terminal_only(tree):
    assert "\x1b[" not in tree.out("ps", "-a")
    assert "\x1b[32mrunning" in on_a_terminal(tree, "ps", "-a", columns=140, NO_COLOR="")
    assert "\x1b[" not in on_a_terminal(tree, "ps", "-a", columns=140, NO_COLOR="1")


@pytest.mark.parametrize("columns", [60, 80, 100, 160])
def test_a_line_fits_the_terminal(tree, columns):
    tree.set_status("other/001", message="error: " + "long " * 100)
    lines = on_a_terminal(tree, "ps", "-a", columns=columns, NO_COLOR="1").splitlines()
    assert any("error: long" in line for line in lines)
    assert max(len(line) for line in lines) <= max(columns, 79)  # the columns of numbers need so many


def test_a_label_cannot_harm_the_terminal(tree):
    tree.files("demo/001").label.write_text("a\x1b[2Jb\n日本語\n")
    line = next(line for line in tree.out("ps", "-a").splitlines() if line.startswith("demo/001"))
    assert line.endswith("a [2Jb 日本語")


# ---------------------------------------------------------------------------------------------------------------------
# wait, watch


def test_wait_gives_the_exit_code_of_the_first_that_failed(tree):
    done = tree.run("wait", "demo/001", "demo/003/evals/base")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith("demo/001: done at step 18 of 18")
    tree.set_status("other/001", exit_code=3)
    done = tree.run("wait", "demo/001", "other/001")
    assert done.returncode == 3
    assert "exit code 3: RuntimeError: the sandbox died" in done.stdout


def test_wait_gives_up_after_its_time(tree):
    done = tree.run("wait", "demo/003", "--timeout", "0.2s")
    assert done.returncode == 124
    assert "demo/003: running at step 16 of 24" in done.stderr and done.stdout == ""
    assert done.stderr.endswith("error: not ended within 0.2s\n")
    assert tree.run("wait", "demo/003", "--timeout", "soon").returncode == 2


def test_wait_says_a_run_once_and_a_time_with_its_unit(tree, here):
    code, out, _ = here("wait", "demo/001", "demo/1", "demo/001")
    assert code == 0 and out.count("\n") == 1
    assert here("wait", "demo/003", "--timeout", "0")[2].endswith("error: not ended within 0 s\n")


def test_wait_ends_with_the_run(tree):
    process = tree.start("wait", "demo/003")
    time.sleep(0.5)
    assert process.poll() is None
    tree.set_status("demo/003", state="killed", exit_code=143)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 143 and "demo/003: killed" in out


def test_watch_prints_a_line_a_step_into_a_pipe(tree):
    process = tree.start("watch", "demo/003")
    assert process.stdout is not None
    assert "step 16/24" in process.stdout.readline()
    tree.set_status("demo/003", step=17)
    assert "step 17/24" in process.stdout.readline()
    tree.set_status("demo/003", step=24, state="done", finished=time.time(), exit_code=0)
    out, err = process.communicate(timeout=300)
    assert out.startswith("003  done  step 24/24 100%") and not err and process.returncode == 0


def test_watch_keeps_a_line_on_a_terminal(tree):
    tree.set_status("demo/003", state="done", finished=time.time())
    assert "24" in on_a_terminal(tree, "watch", "demo/003", columns=100)


def test_ctrl_c_leaves_quietly_and_the_run_alone(tree):
    process = tree.start("watch")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130 and err.strip() == ""
    assert wait_until(lambda: psutil.Process(tree.pid).status() == psutil.STATUS_SLEEPING)


def test_a_closed_pipe_is_silent(tree):
    for command in ("ps -a", "trace demo/002 -n all", "trace demo/002 --json", "log demo/002", "tail demo/002 -n 99"):
        line = f"{' '.join(CTL)} {command} | head -1"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line], cwd=tree.folder, capture_output=True, text=True, timeout=300
        )
        assert done.stderr == "" and done.stdout.count("\n") == 1 and done.returncode == 0, command


# ---------------------------------------------------------------------------------------------------------------------
# tail


def read_whole(file: Path, kind):
    """The records of a file, but for a torn last line."""
    return list(records.read_lines(file, kind))


def add_steps(tree: Tree, run: str, first: int, count: int) -> None:
    files = tree.files(run)
    for step, lines in steps(count, first=first, max_steps=NUM_STEPS, started=time.time(), seed=3):
        write_step(files, step, lines)


def test_tail_shows_the_last_steps_and_completions(tree):
    lines = tree.out("tail", "demo/002", "-n", "3").splitlines()
    metrics = read_whole(tree.files("demo/002").metrics, Step)
    assert lines[:3] == [listing.step_text(step) for step in metrics[-3:]]
    assert lines[0].startswith(f"step   22/{NUM_STEPS}  reward ") and " tok/s  " in lines[0]
    newest = read_whole(tree.files("demo/002").trace, Completion)[-1]
    assert lines[-1].split()[:4] == [newest.task, newest.outcome, "reward", f"{newest.reward:+.3f}"]
    assert len(lines) == 3 + 3
    assert "round 2: 002 solves 46.0 %" in tree.out("tail", "demo/auto/001")
    assert "003, " in tree.out("tail", "demo/003/evals/base").splitlines()[-1]


def test_lines_that_cannot_be_read_are_counted(tree):
    with tree.files("demo/002").metrics.open("a") as metrics:
        metrics.write('{"step": 25}\nnonsense\n')
    done = tree.run("tail", "demo/002", "-n", "1")
    assert done.returncode == 0
    assert done.stdout.startswith(f"step   24/{NUM_STEPS}")
    assert "metrics.jsonl: 2 lines could not be read" in done.stderr


def test_tail_follows_a_run_through_a_resume_to_its_end(tree):
    process = tree.start("tail", "demo/003", "-n", "1", "-f")
    assert process.stdout is not None
    while not process.stdout.readline().startswith("step   16/24"):
        assert process.poll() is None
    files = tree.files("demo/003")
    for file in (files.trace, files.metrics):  # as a resume does: what came after the checkpoint is cut off
        whole = [line for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
        kept = [line for line in whole if json.loads(line)["step"] <= 15]
        file.with_suffix(".new").write_bytes(b"".join(kept))
        os.replace(file.with_suffix(".new"), file)
    add_steps(tree, "demo/003", 16, 2)
    tree.set_status("demo/003", state="done")
    lines = process.stdout.read().splitlines()
    assert process.wait(timeout=300) == 0
    again = [number for number, line in enumerate(lines) if line.startswith("step   16/24")]
    assert len(again) == 1
    assert [line.split()[1] for line in lines if line.startswith("step")] == ["16/24", "17/24"]
    # The completions of a step stand before it; what stood there of the old step 16 may still be printed.
    assert sum(line.startswith("  ") for line in lines[again[0] :]) == 16


# ---------------------------------------------------------------------------------------------------------------------
# log


def test_log_shows_all_or_the_last_lines(tree):
    assert tree.out("log", "demo/002").splitlines()[0] == "Built 12 OEIS tasks."
    assert len(tree.out("log", "demo/002").splitlines()) == 2 + NUM_STEPS
    lines = tree.out("log", "other/001", "-n", "2").splitlines()
    assert lines[0].startswith("step    9/80") and lines[1] == "Traceback caf\ufffd"
    done = tree.run("log", "demo/004")
    assert done.returncode == 2 and "run.log: no such file" in done.stderr


def test_log_since_goes_by_the_times_of_steps(tree):
    files = tree.files("demo/003")
    metrics = read_whole(files.metrics, Step)
    now = time.time()
    lines = tree.out("log", "demo/003", "--since", "60s").splitlines()
    # A step may have grown that old since `now`.
    sure, possible = ([step.step for step in metrics if step.time < end - 60] for end in (now, time.time()))
    assert int(lines[0].split()[1].removesuffix("/24")) - 1 in range(sure[-1], possible[-1] + 1)
    assert lines[-1].split()[1] == "16/24"
    assert tree.out("log", "demo/003", "--since", "1d") == tree.out("log", "demo/003")
    os.utime(files.log, (now - 600, now - 600))
    assert tree.out("log", "demo/003", "--since", "5m") == ""


def test_without_a_run_it_is_the_running_one_else_the_newest_cycle(tree, here):
    model = ("--model", "demo")
    code, out, error = here("trace", "-n", "1", *model)
    assert code == 0 and out.startswith("step 16") and "demo/003:\n" in error
    assert "step   16/24" in here("tail", *model)[1]
    tree.set_status("demo/003", state="done")
    assert here("log", *model)[2].startswith("demo/004:\n")
    assert here("log", "-n", "1", "--model", "other")[2] == "other/001:\n"


@pytest.mark.parametrize("command", ["log", "tail", "trace"])
def test_a_number_of_lines_is_none_some_or_all(tree, here, command):
    counts = {number: here(command, "demo/002", "-n", number)[1].count("\n") for number in ("0", "2", "all")}
    assert 0 == counts["0"] < counts["2"] <= counts["all"]
    for wrong in ("-1", "x", "1.5"):
        code, out, error = here(command, "demo/002", "-n", wrong)
        assert (code, out) == (2, "") and f"{wrong!r} is neither a number nor 'all'" in error


def test_log_follows_until_the_end(tree):
    process = tree.start("log", "demo/003", "-n", "1", "-f")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("step   16/24")
    with tree.files("demo/003").log.open("a") as log:
        log.write("step 17\nSaved.\nno end")
        log.flush()
        assert process.stdout.readline() == "step 17\n"
        tree.set_status("demo/003", state="done")
        # Not communicate(): it does not see what readline() has read ahead.
        out = process.stdout.read()
    assert process.wait(timeout=300) == 0
    assert out == "Saved.\nno end\n"


# ---------------------------------------------------------------------------------------------------------------------
# trace


def test_trace_prints_the_lines_as_they_are(tree):
    file = tree.files("demo/002").trace
    assert tree.out("trace", "demo/002", "--json") == file.read_text()
    chosen = [line for line in file.read_text().splitlines() if json.loads(line)["outcome"] == "wrong"]
    assert tree.out("trace", "demo/002", "--json", "--outcome", "wrong").splitlines() == chosen
    assert tree.out("trace", "demo/002", "--json", "--outcome", "wrong", "-n", "2").splitlines() == chosen[-2:]
    chosen = [line for line in file.read_text().splitlines() if json.loads(line)["task"] == "A000142"]
    for name in ("A000142", "a142", "142"):
        assert tree.out("trace", "demo/002", "--json", "--anum", name).splitlines() == chosen
    assert tree.out("trace", "demo/002", "--json", "--task", "A000142").splitlines() == chosen
    at = tree.out("trace", "demo/002", "--json", "--step", "7").splitlines()
    assert len(at) == 16 and {json.loads(line)["step"] for line in at} == {7}


def test_a_block_has_reward_reasons_function_and_missed_terms(tree):
    wrong = [line for line in read_whole(tree.files("demo/002").trace, Completion) if line.outcome == "wrong"][-1]
    lines = tree.out("trace", "demo/002", "--outcome", "wrong", "-n", "1").splitlines()
    assert lines[0].split()[:5] == ["step", str(wrong.step), wrong.task, "wrong", "+0.100"]
    assert lines[1].split()[:2] == ["function_works", "+0.100"]
    assert lines[1].endswith("24 of 24 terms came back as exact integers")
    assert f"    {wrong.function.splitlines()[-1]}" in lines
    missed = [check for check in wrong.checks if not check.passed]
    assert f"  {missed[0].label} is {missed[0].got}, not {missed[0].expected}" in lines[6]
    if len(missed) > 4:
        assert f"  and {len(missed) - 4} more of 24 terms" in lines
    assert "\x1b[" not in "".join(lines)
    assert "\x1b[" in on_a_terminal(tree, "trace", "demo/002", "-n", "1", columns=100, NO_COLOR="")


def test_trace_of_an_evaluation_by_participant(tree):
    lines = tree.out("trace", "demo/003/evals/base", "--participant", "base", "--json").splitlines()
    assert len(lines) == 48 and {json.loads(line)["participant"] for line in lines} == {"base"}
    assert tree.out("trace", "demo/base/evals/003", "-n", "1").startswith("003  A001333")


def test_trace_says_when_there_is_none(tree):
    done = tree.run("trace", "demo/002", "--step", "99")
    assert done.returncode == 0 and done.stdout == ""
    assert done.stderr == f"None of the {16 * NUM_STEPS} completions of demo/002 has step 99.\n"
    done = tree.run("trace", "demo/002", "--anum", "45", "--outcome", "lookup")
    assert (
        done.stderr == f"None of the {16 * NUM_STEPS} completions of demo/002 has task A000045 and outcome lookup.\n"
    )
    done = tree.run("trace", "demo/002", "--participant", "base")
    assert done.returncode == 2 and "demo/002 is no evaluation: leave out --participant" in done.stderr
    done = tree.run("trace", "demo/004")
    assert done.returncode == 2 and "has answered nothing yet" in done.stderr


def test_trace_follows(tree):
    with tree.files("demo/003").trace.open("rb+") as trace:  # the torn last line is never finished in the tree
        whole = trace.read()
        trace.truncate(whole.rfind(b"\n") + 1)
    process = tree.start("trace", "demo/003", "-n", "1", "-f", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["step"] == 16
    add_steps(tree, "demo/003", 17, 1)
    assert [json.loads(process.stdout.readline())["step"] for _ in range(16)] == [17] * 16
    tree.set_status("demo/003", state="done")
    assert process.stdout.read() == "" and process.wait(timeout=300) == 0


# ---------------------------------------------------------------------------------------------------------------------
# Words


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("10m", 600),
        ("1h30m", 5400),
        ("2H", 7200),
        ("1d", 86400),
        ("0.5s", 0.5),
        ("1.5h", 5400),
    ],
)
def test_times_as_people_write_them(text, seconds):
    assert listing.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5x", "-5", "10 m", "m", "5m3"])
def test_what_is_no_time(text):
    with pytest.raises(RlvrError, match="is no time"):
        listing.parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (0, "0 s"), (59.6, "60 s"), (100, "2 min"), (5999, "1 h 40"), (3600 * 49, "2 d 01 h")],
)
def test_durations_as_people_read_them(seconds, text):
    assert listing.duration_text(seconds) == text
