"""`rlvrctl.py doctor` as a user runs it: this machine, runs that are well, ill, unborn, and what is no run."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import ROOT
from test_diagnosis import CLIPPED, CUT_STEP, EQUAL_STEP, RATE, steps

from rlvr import machine, records
from rlvr.cli import check
from rlvr.config import TrainConfig, preset_layer, resolve, write_snapshot
from rlvr.cycles import RunFiles
from rlvr.records import Step
from rlvr.status import new_status


def make_run(folder: Path, run: list[Step], state: str = "done", **changes: Any) -> Path:
    """The folder of a training run with these metrics; no trace."""
    files = RunFiles(folder)
    folder.mkdir(parents=True)
    config, origins = resolve(TrainConfig, [preset_layer("tiny", TrainConfig), ("test", changes)])
    write_snapshot(files.config, config, origins, {"python": "3.11"})
    if run:
        records.append(files.metrics, *run)
    records.write(files.status, new_status("train", state, step=len(run), max_steps=80))
    return folder


@pytest.fixture
def doctor(program, tmp_path):
    """Run the command in a folder with one model, "m"; returns the finished process."""
    (tmp_path / "training/m").mkdir(parents=True)
    (tmp_path / "training/m/model.toml").write_text("", encoding="utf-8")
    return lambda *arguments: program("rlvrctl.py", "doctor", *arguments, cwd=tmp_path)


# ---------------------------------------------------------------------------------------------------------------------
# The machine


def test_the_machine_is_looked_at(doctor):
    done = doctor("--json")
    looked = json.loads(done.stdout)
    assert done.returncode == any(each["state"] == "problem" for each in looked), done.stderr
    by_name = {each["name"]: each for each in looked}
    assert set(by_name) == {"python", "packages", "gpu", "memory", "disk", "sandbox", "corpus", "colab"}
    assert {each["state"] for each in looked} <= {"ok", "note", "problem"}
    assert by_name["python"]["state"] == "ok" and by_name["sandbox"]["state"] in ("ok", "note")
    assert "isolation" in by_name["sandbox"]["what"] and "all refused" in by_name["sandbox"]["what"]
    assert "files in" in by_name["corpus"]["what"] and "GiB free" in by_name["disk"]["what"]
    # The tests hide any GPU; what that means is said, and it is no problem.
    assert by_name["gpu"]["state"] == "note" and "500 million" in by_name["gpu"]["change"]
    assert all(each["change"] for each in looked if each["state"] != "ok")
    printed = doctor().stdout
    assert printed.splitlines()[0].startswith("ok       python") and printed.splitlines()[-1].endswith("found.")


def test_packages_outside_the_range_that_was_tried_are_a_problem():
    wanted = check.Needs(
        ">=3.11", ("msgspec>=0.19,<1", "psutil<0.1", "no-such-package-of-anybody>=2"), ("unsloth>=1",)
    )
    *wrong, fine = check.look_at_packages(wanted, has_gpu=False)
    assert [each.state for each in wrong] == ["problem", "problem"]
    assert "outside the range that was tried, <0.1" in wrong[0].what and wrong[0].change == 'pip install "psutil<0.1"'
    assert wrong[1].what == "no-such-package-of-anybody is not installed"
    assert fine.state == "ok" and fine.what.startswith("1 within the ranges that were tried: msgspec ")
    assert any(each.what == "unsloth is not installed" for each in check.look_at_packages(wanted, has_gpu=True))
    assert check.look_at_python(wanted._replace(python=">=99")).state == "problem"


def test_the_ranges_are_those_of_the_project():
    wanted = check.needs()
    assert "trl>=1.10,<1.15" in wanted.packages and wanted.gpu_packages == ("unsloth>=2026.10",)


def test_gpus_are_read_from_nvidia_smi():
    table = "NVIDIA L4, 23034, 22500, 550.54.15\nNVIDIA H200, NVL, 143771, 1000, 565.57\nbroken\nX, [N/A], [N/A], 1\n"
    gpus = machine.read_gpus(table)
    assert gpus == [("NVIDIA L4", 23034, 22500, "550.54.15"), ("NVIDIA H200, NVL", 143771, 1000, "565.57")]
    free, taken = [each for each in check.look_at_gpus(gpus) if "driver" in each.what]
    assert free.state == "ok" and free.what == "NVIDIA L4, 22.0 of 22.5 GiB free, driver 550.54.15"
    assert taken.state == "note" and "another program" in taken.change


def test_disk_and_memory_are_measured_where_they_count(tmp_path):
    assert machine.nearest_folder(tmp_path / "not/there/yet") == tmp_path
    assert machine.disk_free_gib(tmp_path / "not/there") == pytest.approx(
        shutil.disk_usage(tmp_path).free / 2**30, abs=1
    )
    total, available = machine.memory_gib()
    assert 0 < available <= total and machine.usable_cores() >= 1


# ---------------------------------------------------------------------------------------------------------------------
# A run


def test_a_healthy_run_has_no_finding(doctor, tmp_path):
    make_run(tmp_path / "training/m/001", steps(40))
    done = doctor("latest")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("m/001, step 40 of 80: nothing wrong in the last 10 steps")


def test_findings_come_with_numbers_and_the_command_that_makes_the_change(doctor, tmp_path):
    make_run(tmp_path / "training/m/001", steps(12, **CUT_STEP, **EQUAL_STEP), learning_rate=1e-6)
    done = doctor("001")
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "m/001, step 12 of 80: 3 findings; further steps teach nothing: most completions clipped"
    assert f"warning: {RATE}" in lines and f"dead: {CLIPPED}" in lines
    assert "  100% of the completions in steps 3 to 12 were cut at 64 tokens before their end" in lines
    command = "rlvrctl.py config set --model m --scope permanent learning_rate=5e-05"
    assert f"     {command}" in lines
    found = json.loads(doctor("1", "--json").stdout)
    assert found["run"] == "m/001" and found["step"] == 12
    assert [each["severity"] for each in found["findings"]] == ["warning", "dead", "dead"]
    assert found["findings"][0]["command"] == command


def test_the_command_can_be_run(doctor, program, tmp_path):
    (tmp_path / "training/m").rename(tmp_path / "aside")
    made = program("rlvrctl.py", "init", "--model", "m", "--preset", "tiny", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    make_run(tmp_path / "training/m/001", steps(12, **CUT_STEP))
    command = json.loads(doctor("001", "--json").stdout)["findings"][0]["command"].split()
    done = program(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "128" in (tmp_path / "training/m/training.toml").read_text(encoding="utf-8")


def test_a_frozen_key_is_advised_and_no_command_that_would_be_refused(doctor, tmp_path):
    run = make_run(tmp_path / "training/m/001", steps(12, **CUT_STEP), max_completion_length=0)
    found = json.loads(doctor("001", "--json").stdout)["findings"][0]
    assert found["command"].endswith("max_seq_length=1024")
    (run / "adapter").mkdir()
    (run / "adapter/adapter_config.json").write_text("{}", encoding="utf-8")
    found = json.loads(doctor("001", "--json").stdout)["findings"][0]
    assert found["command"] == "" and "keeps its own" in found["change"]


def test_a_folder_and_a_file_of_metrics_will_do(doctor, tmp_path):
    elsewhere = make_run(tmp_path / "elsewhere/001", steps(12, **CUT_STEP))
    for what in (elsewhere, elsewhere / "metrics.jsonl"):
        done = doctor(what)
        assert done.returncode == 1 and done.stdout.startswith(f"{elsewhere}, step 12 of 80"), done.stderr
        assert f"gemma4_oeis_rlvr.py --config {elsewhere}/config.toml --max-completion-length 128" in done.stdout
    # Without a config the defaults stand for it.
    (elsewhere / "config.toml").unlink()
    assert doctor(elsewhere).returncode == 1
    nothing = doctor(tmp_path)
    assert nothing.returncode == 2 and "no metrics.jsonl in it" in nothing.stderr


def test_a_run_that_failed_before_its_first_step_shows_its_last_words(doctor, tmp_path):
    run = make_run(tmp_path / "training/m/001", [], state="failed")
    words = [f"line {number}" for number in range(40)] + ["error: base model 'x': no such folder"]
    (run / "run.log").write_text("\n".join(words) + "\n", encoding="utf-8")
    done = doctor("001")
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "m/001: failed before its first step" and lines[-1] == f"  | {words[-1]}"
    assert "  | line 26" in lines and "  | line 25" not in lines
    assert json.loads(doctor("001", "--json").stdout)["log"][-1] == words[-1]


def test_a_run_that_has_just_begun_is_not_ill(doctor, tmp_path):
    make_run(tmp_path / "training/m/001", [], state="pending")
    done = doctor("001")
    assert (done.returncode, done.stdout) == (0, "m/001: no step yet\n"), done.stderr


def test_a_torn_last_line_and_a_broken_one_are_passed_over(doctor, tmp_path):
    run = make_run(tmp_path / "training/m/001", steps(12))
    with (run / "metrics.jsonl").open("ab") as metrics:
        metrics.write(b'{"step": "x"}\n' + msgspec.json.encode(steps(13)[-1])[:50])
    done = doctor("001")
    assert done.returncode == 0 and "step 12 of 80" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("what", "message"),
    [("004", "has no run '004'"), ("nowhere", "has no run 'nowhere'"), ("001/evals/base", "is no training")],
)
def test_what_is_no_training_is_one_line(doctor, tmp_path, what, message):
    make_run(tmp_path / "training/m/001", steps(3))
    (tmp_path / "training/m/001/evals/base").mkdir(parents=True)
    done = doctor(what)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


def test_the_doctor_is_light():
    code = "import sys, rlvr.cli.check, rlvr.budget, rlvr.preflight; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"'torch'", "'transformers'", "'trl'", "'datasets'"} & set(done.stdout.strip("[]\n").split(", "))
