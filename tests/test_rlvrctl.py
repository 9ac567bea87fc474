"""rlvrctl.py from init to the last resume, on the tiny model, with the processes and files of a user. Linux only.

The tests of a model run in the order of this file, each on what those before it left.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib

import pytest
from msgspec.structs import asdict
from processes import alive, descendants, held, is_due, wait_until
from workplace import LONG_S, Workplace, living, no_process_left

from rlvr import records
from rlvr.cycles import RunFiles, whole_checkpoints
from rlvr.records import Completion, Evaluation, Round, Step

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at through /proc"),
]
CLOCK = {"time", "step_s", "generation_s", "scoring_s", "update_s", "tokens_per_s"}


@pytest.fixture(scope="module", autouse=True)
def nothing_stays():
    with no_process_left():
        yield


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    place = Workplace(tmp_path_factory.mktemp("a person's work"))
    place.init()
    return place


def lines(path, record_type):
    return list(records.read_lines(path, record_type))


def trained(folder) -> tuple[list, list, bytes]:
    """What a cycle came to: its metrics without what a clock says, its completions, its adapter."""
    steps = [
        {name: value for name, value in asdict(step).items() if name not in CLOCK}
        for step in lines(folder / "metrics.jsonl", Step)
    ]
    texts = [
        (line.step, line.group, line.sample, line.task, line.completion, line.reward)
        for line in lines(folder / "trace.jsonl", Completion)
    ]
    return steps, texts, (folder / "adapter/adapter_model.safetensors").read_bytes()


# ---------------------------------------------------------------------------------------------------------------------
# Cycles, a queue, an evaluation


def test_the_first_cycle(work):
    training = work / "m/training.toml"
    training.write_text(training.read_text() + "\n# a word of mine\n")
    work.ctl("config", "set", "--scope", "ephemeral", "learning_rate=0.001")
    plan = work.ctl("train", "--dry-run", "-o", "seed=5")
    assert "learning_rate = 0.001" in plan and "seed = 5" in plan and "cold start" in plan
    assert not (work / "m/001").exists()
    printed = work.ctl("train", "--temperature", "0.9", "--save")
    assert "Cycle 001 of m: cold start.\nNext: rlvrctl.py watch 001" in printed
    status = work.wait_for("001", "done", "failed")
    assert (status.state, status.step, status.max_steps, status.exit_code) == ("done", 2, 2, 0), status
    assert status.reward is not None and status.solved is not None and status.started < status.finished
    snapshot = tomllib.loads((work / "m/001/config.toml").read_text())
    assert (snapshot["learning_rate"], snapshot["temperature"], snapshot["lora_rank"]) == (0.001, 0.9, 16)
    origin = snapshot["origin"]
    assert origin["learning_rate"] == "training.toml [ephemeral]" and origin["temperature"] == "command line"
    assert origin["max_steps"] == "training.toml" and origin["lora_rank"] == "model.toml"
    assert origin["kl_beta"] == "default"
    assert snapshot["provenance"]["corpus_fingerprint"] and snapshot["provenance"]["torch"]
    # --save keeps the flag; the one-shot key has served; what a person wrote stays.
    assert "temperature = 0.9\n" in training.read_text() and "# a word of mine" in training.read_text()
    assert wait_until(lambda: "learning_rate" not in training.read_text())
    assert len(lines(work / "m/001/trace.jsonl", Completion)) == 2 * 16


def test_a_queue_of_a_warm_cycle_and_an_evaluation_survives_its_supervisor(work):
    assert "warm start from 001" in work.ctl("train")
    with held(work.program("002")):
        queued = work.ctl("eval", "-n", "4", "-k", "2")
        assert "Evaluation 001/evals/base of m: base against 001, waiting for 002." in queued
        # The machine goes down, as far as the waiting one is concerned, and comes up again.
        assert wait_until(lambda: work.status("001/evals/base").waiting_for == "002")
        waiting = work.status("001/evals/base").pid
        os.kill(waiting, signal.SIGKILL)
        assert wait_until(lambda: not alive(waiting))
        assert "its supervisor was gone: started again" in work.ctl("queue")
        queued = work.ctl("queue")
        assert "m/001/evals/base  waiting for" in queued and "(its" not in queued
    assert work.wait_for("002", "done", "failed").state == "done"
    assert os.readlink(work / "m/002/parent") == "../001/adapter"
    status = work.wait_for("001/evals/base", "done", "failed")
    assert (status.state, status.step, status.max_steps) == ("done", 16, 16)
    assert status.started >= work.status("002").finished
    result = records.read(work / "m/001/evals/base/eval.json", Evaluation)
    assert [person.name for person in result.participants] == ["base", "001"]
    assert (result.num_tasks, result.samples) == (4, 2)
    assert os.readlink(work / "m/base/evals/001") == "../../001/evals/base"
    assert (work / "m/base/evals/001/eval.json").samefile(work / "m/001/evals/base/eval.json")
    assert {line.participant for line in lines(work / "m/001/evals/base/completions.jsonl", Completion)} == {
        "base",
        "001",
    }


# ---------------------------------------------------------------------------------------------------------------------
# Auto


def test_an_auto_run_of_two_rounds_that_is_killed_in_the_middle(work):
    work.ctl("auto", "--rounds", "2", "-n", "4", "-o", "max_steps=1")
    assert wait_until((work / "m/003/status.json").exists, LONG_S)
    with held(work.program("003")):
        assert wait_until(lambda: work.status("auto/001").waiting_for == "003")
        assert work.status("auto/001").state == "running"
        os.kill(work.status("auto/001").pid, signal.SIGKILL)
        assert wait_until(lambda: work.status("auto/001").state == "lost")
        assert work.status("003").state == "running"  # what it started goes on
        assert "goes on with its last round" in work.ctl("resume", "auto/001")
    # Once more, and with notice, while the round is at its evaluation.
    assert wait_until((work / "m/003/evals/base/status.json").exists, LONG_S)
    with held(work.program("003/evals/base")) as program:
        assert "asked to stop" in work.ctl("kill", "auto/001")
        assert wait_until(lambda: is_due(program, signal.SIGTERM))
    assert work.ctl("wait", "auto/001", code=143) == ""
    assert work.status("003/evals/base").state == "killed"
    work.ctl("resume", "auto/001")
    status = work.wait_for("auto/001", "done", "failed", "lost")
    assert (status.state, status.step, status.max_steps, status.message) == ("done", 2, 2, "2 rounds were run")
    rounds = lines(work / "m/auto/001/rounds.jsonl", Round)
    assert [(each.round, each.cycle, each.evaluation) for each in rounds] == [
        (1, "003", "003/evals/base"),
        (2, "004", "004/evals/base"),
    ]
    assert sorted(path.name for path in (work / "m").glob("[0-9]*")) == ["001", "002", "003", "004"]
    assert sorted(os.listdir(work / "m/003/evals")) == ["base"]
    assert os.readlink(work / "m/004/parent") == "../003/adapter"
    evaluation = records.read(work / "m/004/evals/base/eval.json", Evaluation)
    assert rounds[1].solved == evaluation.participants[1].solved.estimate
    assert tomllib.loads((work / "m/004/config.toml").read_text())["max_steps"] == 1


# ---------------------------------------------------------------------------------------------------------------------
# Stopping and going on


def test_killed_lost_and_resumed_twice_is_the_same_as_uninterrupted(work):
    """Beside each other: one cycle as a whole, and one in three pieces."""
    work.init("whole", max_steps=12)
    work.init("pieces", max_steps=12)
    work.ctl("train", "--model", "pieces", "--no-queue")
    work.ctl("train", "--model", "whole", "--no-queue")
    work.wait_for_step("001", model="pieces")
    with held(work.program("001", "pieces")) as program:
        assert "asked to stop" in work.ctl("kill", "pieces/001")
        assert wait_until(lambda: is_due(program, signal.SIGTERM))
    status = work.wait_for("001", "killed", "done", model="pieces")
    first = status.step
    assert status.state == "killed" and 1 <= first < 12 and status.exit_code == 143, status
    assert len(lines(work / "pieces/001/metrics.jsonl", Step)) == first
    assert "goes on from its last checkpoint" in work.ctl("resume", "pieces/001")

    # Its supervisor dies: the trainer ends too, and says how far it came.
    work.wait_for_step("001", first + 1, model="pieces")
    with held(work.program("001", "pieces")):
        supervisor = work.status("001", "pieces").pid
        trainer = descendants(supervisor)
        os.kill(supervisor, signal.SIGKILL)
        assert wait_until(lambda: work.status("001", "pieces").state == "lost")
    assert wait_until(lambda: not any(map(alive, trainer)), LONG_S)
    assert work.status("001", "pieces").state == "lost"
    second = len(lines(work / "pieces/001/metrics.jsonl", Step))
    rows = json.loads(work.ctl("ps", "-a", "--json"))
    row = next(row for row in rows if (row["model"], row["run"]) == ("pieces", "001"))
    assert row["state"] == "lost" and first < row["step"] <= second
    work.ctl("resume", "001", "--model", "pieces")
    status = work.wait_for("001", "done", "failed", "killed", model="pieces")
    assert (status.state, status.step) == ("done", 12), status
    work.wait_for("001", "done", "failed", model="whole")

    whole, pieces = trained(work / "whole/001"), trained(work / "pieces/001")
    assert [step["step"] for step in pieces[0]] == list(range(1, 13))
    assert pieces[0] == whole[0]
    assert len(pieces[1]) == len(set(line[:3] for line in pieces[1])) == 12 * 16
    assert pieces[1] == whole[1]
    assert pieces[2] == whole[2]
    assert "is done: start the next one" in work.ctl("resume", "pieces/001", code=2)


def test_kill_by_force_leaves_no_process_and_the_moved_folder_goes_on(work, tmp_path_factory):
    work.ctl("train", "--model", "m", "-o", "max_steps=60", "-o", "save_steps=1")
    work.wait_for_step("005")
    assert wait_until(lambda: whole_checkpoints(RunFiles(work / "m/005")))  # it comes after the line of the step
    group = descendants(work.status("005").pid)
    assert len(group) >= 3, living()  # the trainer, a sandbox worker and its zygotes
    assert "whole process group" in work.ctl("kill", "005", "--force")
    status = work.status("005")
    assert (status.state, status.exit_code) == ("killed", 137)
    assert wait_until(lambda: not any(map(alive, group))), living()
    assert "005 is not running: it is killed" in work.ctl("kill", "005", code=2)

    moved = tmp_path_factory.mktemp("elsewhere") / "a b"
    work.folder.rename(moved)
    work.folder = moved
    assert (work / "m/base/evals/003/eval.json").samefile(work / "m/003/evals/base/eval.json")
    assert "goes on from its last checkpoint" in work.ctl("resume", "005", "--model", "m")
    work.wait_for_step("005", len(lines(work / "m/005/metrics.jsonl", Step)) + 1)
    work.ctl("kill", "live", "--model", "m")
    assert work.wait_for("005", "killed", "failed").state == "killed"
    steps = [step.step for step in lines(work / "m/005/metrics.jsonl", Step)]
    assert steps == list(range(1, len(steps) + 1))
    # The next one starts from the latest adapter, which 005 has not.
    work.ctl("train", "--model", "m", "-o", "max_steps=1")
    assert work.wait_for("006", "done", "failed").state == "done"
    assert os.readlink(work / "m/006/parent") == "../004/adapter"
    copy = tmp_path_factory.mktemp("copy") / "c"
    shutil.copytree(work.folder, copy, symlinks=True)
    assert (copy / "training/m/006/parent/adapter_config.json").exists()
    assert (copy / "training/m/base/evals/004/eval.json").exists()


def test_ctrl_c_in_the_foreground_stops_the_run_and_its_number_is_used_again(work):
    for number in (signal.SIGINT, signal.SIGTERM):
        process = work.start("train", "--model", "m", "--foreground", start_new_session=True)
        assert process.stdout is not None and "Cycle 007" in process.stdout.readline()
        with held(work.program("007")) as program:
            supervisor = work.status("007").pid
            os.killpg(process.pid, number)  # as a terminal does
            assert wait_until(lambda pid=program: is_due(pid, signal.SIGTERM))
        out, err = process.communicate(timeout=LONG_S)
        assert process.returncode == 128 + number, (out, err)
        assert "asked to stop" in err
        assert work.status("007").state == "killed"
        assert wait_until(lambda pid=supervisor: not alive(pid))
    assert len(list((work / ".trash").glob("m-007-*"))) == 1


# ---------------------------------------------------------------------------------------------------------------------
# What can go wrong


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small disk can only be mounted by root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(folder) -> None:
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def test_a_full_disk_is_one_message_before_the_run_and_one_in_its_status_after(small_disk):
    work = Workplace(small_disk)
    work.init(max_steps=60)
    fill(small_disk)
    before = work.tree()
    for command in (("train",), ("eval", "--adapters", "base"), ("auto",), ("init", "--model", "other")):
        message = work.ctl(*command, code=2)
        assert "No space left on device" in message and len(message.strip().splitlines()) == 1, message
        assert work.tree() == before
    # The disk fills up while a cycle runs.
    (small_disk / "filler").unlink()
    work.ctl("train")
    work.wait_for_step("001", 1)
    fill(small_disk)
    status = work.wait_for("001", "failed", "lost", "killed", "done")
    assert status.state == "failed" and "No space left on device" in status.message, status
    # With room again it goes on.
    (small_disk / "filler").unlink()
    assert status.step >= 1
    work.ctl("resume", "001")
    # Its program is ended from outside, as by a machine that is out of memory.
    assert wait_until(lambda: len(descendants(work.status("001").pid)) >= 3, LONG_S)
    group = descendants(work.status("001").pid)
    os.kill(work.program("001"), signal.SIGKILL)
    status = work.wait_for("001", "failed")
    assert status.exit_code == 137 and "its program was ended by SIGKILL" in status.message
    assert "No space" not in status.message  # that was the attempt before
    assert wait_until(lambda: not any(map(alive, group))), living()
    work.ctl("wait", "001", code=137)


@pytest.fixture
def read_only(work, tmp_path):
    """A copy of the work on a disk that is mounted read-only."""
    folder = tmp_path / "fixed"
    shutil.copytree(work.folder, folder, symlinks=True)
    mounted = subprocess.run(["mount", "--bind", folder, folder], capture_output=True)
    if mounted.returncode or subprocess.run(["mount", "-o", "remount,bind,ro", folder]).returncode:
        pytest.skip("a read-only disk can only be mounted by root")
    yield Workplace(folder)
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_read_only_folder_is_one_message(read_only):
    before = read_only.tree()
    for command in (
        ("train",),
        ("eval", "--adapters", "base"),
        ("auto",),
        ("resume", "005"),
        ("rm", "005"),
        ("label", "001", "x"),
        ("config", "set", "--scope", "permanent", "seed=1"),
    ):
        message = read_only.ctl(*command, "--model", "m", code=2)
        assert "Read-only file system" in message and len(message.strip().splitlines()) == 1, message
    assert read_only.ctl("ps", "-a") and read_only.tree() == before


def test_what_a_user_can_get_wrong_is_one_message_and_leaves_nothing(work, tmp_path):
    work.ctl("queue")
    before = work.tree()
    other = tmp_path / "other"
    shutil.copytree(work / "m/001/adapter", other)
    config = json.loads((other / "adapter_config.json").read_text())
    (other / "adapter_config.json").write_text(json.dumps(config | {"r": 4}))
    foreign = tmp_path / "foreign"
    shutil.copytree(other, foreign)
    (foreign / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": "google/gemma"}))
    for arguments, message in (
        (("train", "-o", "corpus_dir=/nowhere"), "corpus_dir = '/nowhere': no such folder"),
        (("train", "--parent", other), "made with lora_rank = 4, not 16"),
        (("train", "--parent", foreign), "made for base model 'google/gemma', not 'tiny'"),
        (("train", "--parent", "077"), "no adapter '077'"),
        (("train", "-o", "lora_rank=4"), "lora_rank = 4, but the adapters of this model were made with 16"),
        (("train", "--lora-alpha", "4", "--save"), "lora_alpha = 4, but the adapters"),
        (("train", "-o", "learnin_rate=1"), "did you mean 'learning_rate'"),
        (("train", "-o", "learning_rate=fast"), "learning_rate = 'fast' must be a number"),
        (("train", "-o", "learning_rate"), "is not KEY=VALUE"),
        (("train", "-o", "completions_per_forward=7"), "completions_per_forward = 7"),
        (("train", "--after", "099"), "has no run '099'"),
        (("train", "--after", "005"), "m/005 is killed"),
        (("eval", "--adapters", "base", foreign), "made for base model"),
        (("eval", "--adapters", "base", "005"), "no adapter '005'"),
        (("eval", "--adapter-a", "001", "--adapters", "002"), "either --adapters or"),
        (("eval", "-n", "0"), "num_tasks = 0"),
        (("auto", "--until", "solved>2"), "write it like 'solved>=0.5'"),
        (("auto", "--until", "pass@8>=0.5", "-k", "4"), "pass@1, pass@2, pass@4"),
        (("auto", "--rounds", "0"), "at least 1"),
        (("resume", "001"), "m/001 is done"),
        (("resume", "099"), "has no run '099'"),
        (("kill", "001"), "is not running: it is done"),
        (("kill", "live"), "no run of model 'm' is running"),
        (("rm", "001"), "is needed by"),
        (("init", "--preset", "tyni"), "tyni"),
    ):
        printed = work.ctl(*arguments, "--model", "m" if arguments[0] != "init" else "new", code=2)
        assert message in printed and len(printed.strip().splitlines()) == 1, (arguments, printed)
    training = work / "m/training.toml"
    text = training.read_text()
    training.write_text(text + "max_steps = = 3\n")
    assert "training.toml: not valid TOML" in work.ctl("train", "--model", "m", code=2)
    training.write_text(text)
    assert work.tree() == before
