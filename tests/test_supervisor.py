"""The queue, liveness and killing with real supervisors and commands; no model is loaded here."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import alive, held, wait_until
from workplace import LONG_S, SAMPLE, Workplace, busy, living, no_process_left

from rlvr import records
from rlvr.control import status_of
from rlvr.cycles import Run
from rlvr.folders import never_began
from rlvr.records import Launch, Status
from rlvr.status import group_members, is_alive, new_status, process_start, read_status
from rlvr.supervisor import stopped_text

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at through /proc")


@pytest.fixture(scope="module", autouse=True)
def nothing_stays():
    with no_process_left():
        yield


@pytest.fixture
def work(tmp_path):
    """A folder with a blank in its name and a model without cycles."""
    folder = tmp_path / "my work"
    folder.mkdir()
    place = Workplace(folder)
    place.ctl("init", "--model", "m", "--preset", "tiny")
    return place


def kill_all(work: Workplace) -> None:
    names = sorted(path.name for path in (work / "m").glob("[0-9]*"))
    work.ctl("kill", *(name for name in names if work.status(name).state == "pending"))
    assert wait_until(lambda: not [line for line in living().values() if "rlvr.supervisor" in line])


def supervisors_of(run: str) -> list[int]:
    return [pid for pid, line in living().items() if "rlvr.supervisor" in line and line.endswith(run)]


def test_eight_at_the_same_instant_get_eight_numbers_and_go_in_order(work):
    with busy(work):
        started = [work.start("train") for _ in range(8)]
        printed = [process.communicate(timeout=LONG_S) for process in started]
        assert [process.returncode for process in started] == [0] * 8, printed
        names = sorted(out.split()[1] for out, _ in printed)
        assert names == [f"{number:03d}" for number in range(2, 10)]
        assert sorted(path.name for path in (work / "m").glob("[0-9]*")) == ["001", *names]
        for name in names:
            work.wait_for(name, "pending")
            assert wait_until(lambda name=name: work.status(name).waiting_for == "001")
        queued = work.ctl("queue").splitlines()
        assert [line.split()[0] for line in queued] == [f"m/{name}" for name in names]
        assert all(line.endswith("waiting for 001") for line in queued)
        kill_all(work)
        assert {work.status(name).state for name in names} == {"killed"}
        assert work.ctl("queue") == "Nothing waits.\n"
    # Nothing of them began: the next one takes the first of their numbers, and they are in the trash.
    with busy(work, "m/010"):
        pass
    assert "Cycle 011" in work.ctl("train", "-o", "corpus_dir=.")
    work.wait_for("011", "failed")


def test_numbers_of_what_never_began_are_used_again(work):
    empty = work.folder / "empty"
    empty.mkdir()
    for _ in range(2):
        assert "Cycle 001 of m: cold start." in work.ctl("train", "--corpus-dir", empty)
        status = work.wait_for("001", "failed")
        assert status.exit_code == 2 and str(empty) in status.message, status
    assert sorted(path.name for path in (work / "m").glob("[0-9]*")) == ["001"]
    assert len(list((work / ".trash").glob("m-001-*"))) == 1


def test_a_waiting_supervisor_that_is_killed_has_a_successor_at_the_next_command(work):
    with busy(work):
        work.ctl("train")
        first = wait_until(lambda: work.status("002").waiting_for == "001") and work.status("002").pid
        assert supervisors_of("002") == [first]
        os.kill(first, signal.SIGKILL)
        assert wait_until(lambda: not alive(first))
        assert work.status("002").state == "pending"
        # Of many commands at the same instant only one starts it again.
        commands = [work.start("queue", "--json") for _ in range(6)]
        outputs = [command.communicate(timeout=LONG_S)[0] for command in commands]
        assert all('"run": "m/002", "state": "pending"' in text for text in outputs), outputs
        second = work.status("002").pid
        assert second != first and wait_until(lambda: supervisors_of("002"))
        assert supervisors_of("002") == [second]
        # Whoever waits for a run looks after it too.
        waiter = work.start("wait", "002")
        os.kill(second, signal.SIGKILL)
        assert wait_until(lambda: work.status("002").pid != second and work.status("002").waiting_for == "001")
        third = work.status("002").pid
        waiter.kill()
        waiter.communicate()
        os.kill(third, signal.SIGKILL)
        assert wait_until(lambda: not alive(third))
        work.ctl("kill", "002")  # without a supervisor it is taken out all the same
        assert work.status("002").state == "killed"
        assert work.ctl("queue") == "Nothing waits.\n"
        assert supervisors_of("002") == []


def test_killed_at_any_moment_of_its_start_it_stays_killed(work):
    """The signal comes before the supervisor has handlers, while it takes its place, or later."""
    with busy(work):
        for _ in range(2):
            work.ctl("train", "--no-queue", "--after", "001")
            work.ctl("kill", "latest")
            assert work.status("002").state == "killed"
            work.ctl("queue")
            assert wait_until(lambda: not supervisors_of("002"))
            assert work.status("002").state == "killed"


def test_a_shutdown_of_the_machine_leaves_the_queue(work):
    """SIGTERM for all processes: those that wait stay pending, and the next command starts them again."""
    with busy(work):
        work.ctl("train")
        work.ctl("train")
        assert wait_until(lambda: work.status("003").waiting_for == "001")
        pids = [work.status(name).pid for name in ("002", "003")]
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        assert wait_until(lambda: not any(map(alive, pids)))
        assert {work.status(name).state for name in ("002", "003")} == {"pending"}
        assert work.ctl("queue").count("started again") == 2
        kill_all(work)


def test_a_supervisor_that_status_json_does_not_name_ends_at_once(work):
    with busy(work):
        work.ctl("train")
        assert wait_until(lambda: work.status("002").waiting_for == "001")
        named = work.status("002").pid
        before = (work / "m/002/status.json").read_bytes()
        second = subprocess.run(
            [sys.executable, "-m", "rlvr.supervisor", "training/m/002"],
            cwd=work.folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
            timeout=LONG_S,
        )
        assert second.returncode == 0
        assert (work / "m/002/status.json").read_bytes() == before
        assert supervisors_of("002") == [named]
        kill_all(work)


def test_a_reused_pid_is_neither_taken_for_a_run_nor_killed(work):
    """The same pid, started at another time: what stands in status.json is about an earlier process."""
    with busy(work) as stranger:
        file = work / "m/001/status.json"
        status = records.read(file, Status)
        status.process_start -= 60.0
        records.write(file, status)
        assert read_status(file).state == "lost"
        assert "it is lost" in work.ctl("kill", "001", code=2)
        assert "it is lost" in work.ctl("kill", "001", "--force", code=2)
        assert alive(stranger.pid)
        # A resume does not wait for the stranger's process group either.
        records.write(work / "m/001/launch.json", Launch(ticket=0.0, after=""))
        (work / "m/001/config.toml").write_text(f'corpus_dir = "{work.folder}"\n')
        work.ctl("resume", "001")
        work.wait_for("001", "failed")
        assert alive(stranger.pid)

        status.state = "pending"
        records.write(file, status)
        work.ctl("kill", "001")
        assert alive(stranger.pid) and work.status("001").state == "killed"


def written_in(folder: Path, file: Path) -> Status:
    """The status in `file`, as one that was written in `folder`."""
    status, where = records.read(file, Status), folder.stat()
    status.device, status.inode = where.st_dev, where.st_ino
    return status


def test_a_copied_model_has_no_part_in_the_runs_of_the_original(work):
    with busy(work) as original:
        file = work / "m/001/status.json"
        records.write(file, written_in(file.parent, file))
        work.ctl("train", "-o", "corpus_dir=.")
        assert wait_until(lambda: work.status("002").waiting_for == "001")
        shutil.copytree(work / "m", work / "copy", symlinks=True)
        assert [work.status(name, "copy").state for name in ("001", "002")] == ["lost", "killed"]
        for flags in ((), ("--force",)):
            assert "copy/001 is not running: it is lost" in work.ctl("kill", "copy/001", *flags, code=2)
            assert "copy/002 is not running: it is killed" in work.ctl("kill", "copy/002", *flags, code=2)
        assert "a copy of a running run: rlvrctl.py resume goes on with it" in work.ctl("ps", "--json", "-a")
        assert work.ctl("queue").split() == ["m/002", "waiting", "for", "001"]
        assert alive(original.pid) and work.status("001").state == "running"
        assert len(supervisors_of("002")) == 1
        kill_all(work)
    # Nobody looks after the original any more, and the copy still begins nothing by itself.
    assert work.ctl("queue") == "Nothing waits.\n"
    assert "from its first step" in work.ctl("resume", "copy/002")
    work.wait_for("002", "failed", model="copy")
    assert work.status("002").state == "killed"


@pytest.mark.parametrize(("state", "in_copy"), [("running", "lost"), ("pending", "killed"), ("done", "done")])
def test_a_folder_is_known_by_its_inode_and_while_its_process_lives_by_its_disk(tmp_path, state, in_copy):
    file = tmp_path / "status.json"
    own = {"pid": os.getpid(), "process_start": process_start(os.getpid()) or 0.0}

    def seen(**changes: object) -> str:
        records.write(file, new_status("train", state, **own))
        status = written_in(tmp_path, file)
        for name, value in changes.items():
            setattr(status, name, value)
        records.write(file, status)
        read = read_status(file)
        assert read is not None
        return read.state

    other_disk, other_folder = tmp_path.stat().st_dev + 1, tmp_path.stat().st_ino + 1
    assert seen() == state
    assert seen(inode=other_folder) == seen(device=other_disk) == in_copy
    # After a restart of the machine the disk may have another number: the queue goes on all the same.
    assert seen(device=other_disk, process_start=1e9) == ("lost" if state == "running" else state)
    assert seen(inode=other_folder, process_start=1e9) == in_copy


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_run_whose_folder_is_moved_or_removed_ends_and_makes_nothing_anew(work, is_removed):
    work.ctl("train", "--corpus-dir", SAMPLE)
    with held(work.program("001")) as program:
        supervisor = work.status("001").pid
        (work.folder / "piece/001/checkpoints/checkpoint-2").mkdir(parents=True)
        with held(supervisor):
            if is_removed:
                shutil.rmtree(work / "m/001")
            else:
                (work / "m").rename(work / "moved")
                # What a checkpoint that was being written at this moment would make anew.
                (work.folder / "piece").rename(work / "m")
        assert wait_until(lambda: not alive(program))
    assert wait_until(lambda: not alive(supervisor))
    if is_removed:
        assert not (work / "m/001").exists()
        return
    assert not (work / "m").exists()
    status = work.status("001", "moved")
    assert (status.state, status.exit_code) == ("failed", 2)
    said = "training/m/001: moved or removed while the run was going on"
    assert status.message == f"{said}: rlvrctl.py resume goes on where it is now"
    assert f"error: {said}" in (work / "moved/001/run.log").read_text()


def test_a_waiting_run_goes_on_waiting_where_its_folder_was_moved_to(work):
    work.ctl("init", "--model", "other", "--preset", "tiny")
    with busy(work, "other/001"):
        work.ctl("train", "--model", "m", "-o", "corpus_dir=.")
        assert wait_until(lambda: work.status("001").waiting_for == "other/001")
        supervisor = work.status("001").pid
        (work / "m").rename(work / "moved")
        # Another one takes the place: nothing of the first is written into it.
        (work / "m/001").mkdir(parents=True)
        assert wait_until(lambda: not alive(supervisor))
        assert list((work / "m/001").iterdir()) == []
        assert "moved/001  waiting for" in work.ctl("queue")
        assert wait_until(lambda: work.status("001", "moved").waiting_for == "other/001")
    assert work.wait_for("001", "failed", model="moved").exit_code == 2


def test_an_evaluation_that_is_stopped_is_not_spoken_of_as_a_cycle(work):
    (work / "m/base/evals").mkdir(parents=True)
    with busy(work, "m/base/evals/alone"):
        said = work.ctl("kill", "base/evals/alone")
    assert said.endswith("asked to stop: it ends at once; what was graded stays in its completions.jsonl\n")
    run = Run("m", "base/evals/alone", "eval", work / "m/base/evals/alone")
    assert stopped_text(run, new_status("eval", "running")) == "stopped before its first completion"
    status = new_status("eval", "running", step=5, max_steps=16)
    assert stopped_text(run, status) == "stopped after completion 5 of 16"
    cycle = Run("m", "001", "train", work / "m/001")
    assert stopped_text(cycle, new_status("train", "running", step=5, max_steps=16)) == "stopped after step 5"


@pytest.mark.parametrize("field", ['"pid": -1', '"step": -5', '"max_steps": -1', '"state": "weird"', '"inode": "x"'])
def test_a_status_that_no_program_has_written_is_a_failed_run_of_its_own(work, field):
    (work / "m/001").mkdir()
    text = f'{{"state": "running", "kind": "train", "created": 1.0, "updated": 1.0, {field}}}'
    (work / "m/001/status.json").write_text(text)
    row, *others = json.loads(work.ctl("ps", "-a", "--json"))
    assert row["state"] == "failed" and "not a valid Status record" in row["message"] and others == []


def test_a_process_is_not_known_by_its_number_alone(tmp_path, monkeypatch):
    file = tmp_path / "status.json"
    records.write(file, new_status("train", "running", pid=1))
    monkeypatch.setattr("rlvr.status.process_start", lambda pid: 0.5)  # as the first one of a machine
    status = read_status(file)
    assert status is not None and status.state == "lost"
    assert status.message == "its process is gone without a word: rlvrctl.py resume goes on"


def test_after_waits_and_fails_with_what_it_waits_for(work):
    with busy(work) as first:
        work.ctl("train", "--after", "001", "--no-queue", "-o", "corpus_dir=.")
        assert wait_until(lambda: work.status("002").waiting_for == "001")
        work.ctl("train", "--after", "002")
        assert wait_until(lambda: work.status("003").waiting_for == "002")
        assert work.status("001").state == "running" and first.poll() is None
    # 001 is done, so 002 begins, fails for want of a corpus, and 003 with it.
    assert work.wait_for("002", "failed").exit_code == 2
    status = work.wait_for("003", "failed")
    assert status.message == "not started: it was to come after m/002, which is failed"
    assert "m/002 is failed" in work.ctl("train", "--after", "002", code=2)


def test_what_is_left_of_a_lost_run_is_waited_for(work):
    """Its supervisor is gone, and its program still saves a checkpoint: on one GPU there is no room for another."""
    leader = subprocess.Popen(["sh", "-c", "sleep 600 & exec sleep 600"], start_new_session=True)
    assert wait_until(lambda: len(group_members(leader.pid)) == 2)
    (work / "m/001").mkdir()
    status = new_status("train", "running", pid=leader.pid, process_start=process_start(leader.pid), step=1)
    records.write(work / "m/001/status.json", status)
    leader.kill()
    leader.wait()
    assert work.status("001").state == "lost"
    program = group_members(leader.pid)
    work.ctl("train", "-o", "corpus_dir=.")
    assert wait_until(lambda: work.status("002").waiting_for == "001")
    os.kill(program[0], signal.SIGTERM)
    assert work.wait_for("002", "failed").exit_code == 2


def test_no_queue_begins_beside_a_running_one(work):
    with busy(work):
        work.ctl("train", "--no-queue", "-o", "corpus_dir=.")
        status = work.wait_for("002", "failed")
        assert status.started is not None and status.waiting_for == ""
        assert work.status("001").state == "running"


def test_two_resumes_at_the_same_instant_start_it_once(work):
    work.ctl("train", "-o", "corpus_dir=.")
    work.wait_for("001", "failed")
    with busy(work, "m/002"):
        both = [work.start("resume", "001") for _ in range(2)]
        outputs = [process.communicate(timeout=LONG_S) for process in both]
        assert sorted(process.returncode for process in both) == [0, 2], outputs
        assert sum("m/001 is pending: there is nothing to resume" in err for _, err in outputs) == 1, outputs
        assert wait_until(lambda: work.status("001").waiting_for == "002")
        assert len(supervisors_of("001")) == 1
        kill_all(work)


def test_the_queue_goes_on_when_the_folder_is_moved_and_where_training_is_a_link(work, tmp_path):
    large = tmp_path / "large disk"
    large.mkdir()
    (work.folder / "training").rename(large / "runs")
    (work.folder / "training").symlink_to(large / "runs")
    with busy(work):
        work.ctl("train", "-o", "corpus_dir=.")
        assert wait_until(lambda: work.status("002").waiting_for == "001")
        moved = tmp_path / "moved"
        work.folder.rename(moved)
        work.folder = moved
    assert work.wait_for("002", "failed").exit_code == 2  # it had its turn, in the moved folder


def test_files_of_the_user_are_not_taken_for_modules(work):
    for name in ("signal", "rlvr", "msgspec", "queue", "datasets"):
        (work.folder / f"{name}.py").write_text("raise SystemExit('the wrong module')")
    work.ctl("train", "-o", "corpus_dir=.")
    assert "corpus" in work.wait_for("001", "failed").message
    assert "wrong module" not in (work / "m/001/run.log").read_text()


def test_an_evaluation_may_come_after_the_cycle_that_it_is_about(work):
    with busy(work):
        printed = work.ctl("eval", "--after", "live")
        assert "Evaluation 001/evals/base of m: base against 001, waiting for 001." in printed
        assert os.readlink(work / "m/base/evals/001") == "../../001/evals/base"
        assert "no adapter '002'" in work.ctl("eval", "--after", "001", "--adapters", "base", "002", code=2)
    # The cycle ends without an adapter.
    status = work.wait_for("001/evals/base", "failed")
    assert status.exit_code == 2 and "no adapter 'training/m/001/adapter'" in status.message


def test_what_an_auto_run_has_started_ends_and_goes_on_with_it(work):
    def of_auto() -> list[str]:
        return sorted(line.split(" -m ")[1] for line in living().values() if " -m rlvr." in line)

    both = ["rlvr.auto training/m/auto/001", "rlvr.supervisor training/m/002"]
    with busy(work):
        work.ctl("auto", "--rounds", "2")
        assert wait_until(lambda: work.status("auto/001").waiting_for == "002")
        for number in (signal.SIGKILL, signal.SIGTERM, None):
            assert wait_until(lambda: of_auto() == both), of_auto()
            pid = work.status("auto/001").pid
            if number is None:
                work.ctl("kill", "auto/001", "--force")
            else:
                os.kill(pid, number)
            assert wait_until(lambda pid=pid: not alive(pid))
            # Killed without a word it leaves what it has started; asked to end it takes that along.
            expected = "lost" if number == signal.SIGKILL else "killed"
            assert work.status("auto/001").state == expected
            assert work.status("002").state == ("pending" if number == signal.SIGKILL else "killed")
            assert wait_until(lambda number=number: of_auto() == (both[1:] if number == signal.SIGKILL else []))
            assert "goes on with its last round" in work.ctl("resume", "auto/001")
            assert wait_until(lambda: work.status("auto/001").waiting_for == "002")
            assert wait_until(lambda: work.status("002").waiting_for == "001")
        assert sorted(path.name for path in (work / "m").glob("[0-9]*")) == ["001", "002"]
        work.ctl("kill", "auto/001")
        assert work.wait_for("auto/001", "killed").exit_code == 143
        assert work.status("002").state == "killed"


def test_what_waits_is_listed_where_nothing_can_be_written(work):
    with busy(work):
        work.ctl("train")
        os.kill(work.status("002").pid, signal.SIGKILL)
        assert wait_until(lambda: not is_alive(work.status("002")))
        if subprocess.run(["mount", "--bind", work.folder, work.folder], capture_output=True).returncode:
            pytest.skip("a read-only disk can only be mounted by root")
        try:
            subprocess.run(["mount", "-o", "remount,bind,ro", work.folder], check=True)
            assert "nobody looks after it: its folder cannot be written" in work.ctl("queue")
            assert "Read-only file system" in work.ctl("kill", "002", code=2)
            assert json.loads(work.ctl("ps", "--json"))[1]["state"] == "pending"
        finally:
            subprocess.run(["umount", "-l", work.folder], check=True)
        work.ctl("kill", "002")
        assert work.status("002").exit_code == 143


def test_a_run_that_ends_while_it_is_looked_at_is_not_lost(tmp_path, monkeypatch):
    """Its last word comes, and its process goes, after the file was read and before the process is looked for."""
    file = tmp_path / "status.json"
    records.write(file, new_status("train", "running"))

    def has_ended(_: Status) -> bool:
        records.write(file, new_status("train", "done"))
        return False

    monkeypatch.setattr("rlvr.status.is_alive", has_ended)
    assert read_status(file).state == "done"


def test_a_lost_auto_run_keeps_its_rounds(tmp_path):
    run = Run("m", "auto/001", "auto", tmp_path)
    records.write(run.files.status, new_status("auto", "running", step=1, max_steps=3))
    status = status_of(run)
    assert (status.state, status.step, status.max_steps) == ("lost", 1, 3)


def test_a_number_is_used_again_while_its_supervisor_is_still_going(tmp_path):
    """It has written that its run has failed; the program of a lost run, though, still needs the folder."""
    run = Run("m", "001", "train", tmp_path)
    leader = subprocess.Popen(["sh", "-c", "sleep 600 & exec sleep 600"], start_new_session=True)
    try:
        assert wait_until(lambda: len(group_members(leader.pid)) == 2)
        about = {"pid": leader.pid, "process_start": process_start(leader.pid)}
        records.write(run.files.status, new_status("train", "failed", **about))
        assert not never_began(run)
        (child,) = set(group_members(leader.pid)) - {leader.pid}
        os.kill(child, signal.SIGKILL)
        assert wait_until(lambda: group_members(leader.pid) == [leader.pid])
        assert alive(leader.pid) and never_began(run)
    finally:
        os.killpg(leader.pid, signal.SIGKILL)
        leader.wait()
