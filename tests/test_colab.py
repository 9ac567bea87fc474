"""Cycles on rented VMs, offline: mirrored, crashed, reclaimed, refused, stopped, lost. Linux only.

The tests run in the order of this file, each on what those before it left; with the real google-colab-cli where that
can be installed, else with the stand-in: the id says which, and the reason of the skipped ones says why.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from colab_place import REAL, STANDIN, ColabPlace, client_python, make_place
from msgspec.structs import asdict
from processes import wait_until
from workplace import LONG_S, SAMPLE

from rlvr import records
from rlvr.records import Completion, Step

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at through /proc"),
]
CLOCK = {"time", "step_s", "generation_s", "scoring_s", "update_s", "tokens_per_s", "cpu_s"}
TRAINER = "gemma4_oeis_rlvr.py"


@pytest.fixture(scope="module", params=[REAL, STANDIN])
def place(request, tmp_path_factory):
    python = client_python(request, tmp_path_factory, both=False)
    yield from make_place(tmp_path_factory.mktemp("colab"), python)


def lines(path, record_type) -> list[dict]:
    found = [asdict(record) for record in records.read_lines(path, record_type)]
    return [{name: value for name, value in each.items() if name not in CLOCK} for each in found]


def until(condition) -> None:
    assert wait_until(condition, LONG_S)


def wait_for_base(place: ColabPlace, run: str) -> None:
    """Wait until the supervisor on the VM was started."""
    until(lambda: (place / f"m/{run}/colab.json").exists() and place.session(run).base)


def wait_for_checkpoint(place: ColabPlace, run: str) -> None:
    checkpoints = place / f"m/{run}/checkpoints"
    until(lambda: checkpoints.exists() and any(checkpoints.iterdir()))


@contextlib.contextmanager
def trainer_held(place: ColabPlace) -> Iterator[None]:
    """Let the next trainer on a VM stand still meanwhile, from its first moment.

    To be entered at once: by the time its supervisor here has heard that it was started, a short one may have ended.
    """
    until(lambda: place.colab.signal_programs(signal.SIGSTOP, place.colab.content, TRAINER))
    try:
        yield
    finally:
        place.colab.signal_programs(signal.SIGCONT, place.colab.content, TRAINER)


def stop_trainer_at(place: ColabPlace, run: str, step: int) -> None:
    """Let the trainer on the VM stand still once it has made this step."""
    base = place.session(run).base
    metrics = Path(base) / "run/metrics.jsonl"
    until(lambda: metrics.exists() and metrics.read_bytes().count(b"\n") >= step)
    assert place.colab.signal_programs(signal.SIGSTOP, base, TRAINER)


def test_a_mirrored_run_cannot_be_told_from_a_local_one(place):
    place.init(max_steps=3, save_steps=2)
    place.ctl("train")
    assert place.wait_for("001", "done", "failed", "lost").state == "done"
    # The same cycle here and, at the same time, on a VM, both from the adapter that is here.
    place.ctl("train", "--parent", "001")
    printed = place.ctl("train", "--on-colab", "--gpu", "t4", "--parent", "001")
    assert "Colab: 100 compute units. The rate of a T4 is told" in printed and "warm start from 001" in printed
    assert "This cycle: not known: no earlier cycle of this model ran on a T4." in printed
    with trainer_held(place):
        wait_for_base(place, "003")
        listed = json.loads(place.ctl("colab", "ps", "--json"))
        assert [(row["hardware"], row["run"], row["in_use"]) for row in listed] == [("T4", "m/003", True)]
        assert "m/003 runs on it" in place.ctl("colab", "ps")
    for run in ("002", "003"):
        assert place.wait_for(run, "done", "failed", "lost").state == "done", place.log(run)
    assert place.colab.assignments == []

    here, there = place / "m/002", place / "m/003"
    model_card = "checkpoints/README.md"  # of TRL, about no checkpoint
    files = [{str(path.relative_to(folder)) for path in folder.rglob("*")} - {model_card} for folder in (here, there)]
    assert files[0] == files[1]
    assert os.readlink(there / "parent") == os.readlink(here / "parent") == "../001/adapter"
    assert lines(here / "metrics.jsonl", Step) == lines(there / "metrics.jsonl", Step)
    assert lines(here / "trace.jsonl", Completion) == lines(there / "trace.jsonl", Completion)
    for file in (here / "adapter").iterdir():
        if file.suffix not in (".md", ".json"):
            assert file.read_bytes() == (there / "adapter" / file.name).read_bytes(), file.name
    adapters = [json.loads((folder / "adapter/adapter_config.json").read_text()) for folder in (here, there)]
    for adapter in adapters:
        adapter["target_modules"].sort()  # a set, in any order
    assert adapters[0] == adapters[1]
    for name in ("outcomes.json", "tasks.txt"):
        assert (here / name).read_bytes() == (there / name).read_bytes()
    snapshots = [tomllib.loads((folder / "config.toml").read_text()) for folder in (here, there)]
    for snapshot in snapshots:
        snapshot["provenance"]["git_revision"] = bool(
            snapshot["provenance"].get("git_revision")
        )  # may go on meanwhile
    assert snapshots[0] == snapshots[1]
    rows = {row["run"]: row for row in json.loads(place.ctl("ps", "-a", "--json"))}
    local, mirrored = rows["002"], rows["003"]
    assert {name: type(value) for name, value in local.items()} == {
        name: type(value) for name, value in mirrored.items()
    }
    same = ("state", "step", "max_steps", "reward", "solved", "exit_code", "message", "kind")
    assert [local[name] for name in same] == [mirrored[name] for name in same]
    # The rate was seen while the VM was up.
    printed = place.ctl("train", "--on-colab", "--gpu", "T4", "--max-steps", "0", code=2)
    assert "max_steps" in printed
    assert json.loads((place.folder / "training/.colab-rates.json").read_text()) == {"T4": 1.76}
    planned = place.ctl("train", "--dry-run", "--on-colab", "--gpu", "T4", "--max-steps", "100000")
    assert "compute units for" in planned and "of training, and what the VM takes to get ready" in planned


def test_the_next_cycle_and_an_evaluation_work_on_it(place):
    """They go on while the tests after this one run; the last test looks at them."""
    assert "warm start from 003" in place.ctl("train", "--no-queue")
    place.ctl("eval", "--adapters", "002", "003", "-n", "2", "-k", "2", "--no-queue")
    plain = place.ctl("tail", "003")
    assert "3/3" in plain or "step" in plain
    printed = place.ctl("colab", "log", "003", "-n", "50", "--model", "m")
    assert "Saved training/m/003/adapter/  (training/m/003/metrics.jsonl, " in printed
    assert "warm start from training/m/001/adapter" in place.log("003")
    assert "/content/" not in place.log("003").replace(str(place.colab.content), "")
    assert place.ctl("colab", "trace", "003") == place.ctl("trace", "003") != ""


def test_everything_that_can_happen_to_one_run(place):
    """No network, a broken piece, a supervisor that dies, a VM that is taken back: each step and completion once."""
    colab = place.colab
    place.ctl("train", "--on-colab", "--gpu", "T4", "--parent", "003", "-o", "max_steps=12", "-o", "save_steps=1")
    with trainer_held(place):
        wait_for_base(place, "005")
        first = place.session("005")
    stop_trainer_at(place, "005", 1)
    place.wait_for_step("005", 1)

    colab.go_offline()
    until(lambda: "Colab cannot be reached" in place.log("005"))
    until(lambda: "not reached for" in place.status("005").message)
    assert "Colab cannot be reached" in place.ctl("colab", "ps", code=2)
    colab.cut_next_download()
    colab.go_online()
    os.truncate(place / "m/005/trace.jsonl", 5000)  # so that there is something to fetch, in the middle of a line
    until(lambda: "is not whole: it is fetched again" in place.log("005"))
    until(lambda: (place / "m/005/trace.jsonl").stat().st_size > 5000)
    assert place.status("005").state == "running"

    supervisor = place.status("005").pid
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: place.status("005").state == "lost")
    assert "its supervisor is gone; its VM goes on and costs money: rlvrctl.py colab stop 005" in place.ctl("ps", "-a")
    process = place.start("colab", "ps")
    out, err = process.communicate(timeout=LONG_S)
    assert first.session in out and process.returncode == 0
    assert f"WARNING: VM {first.endpoint} costs money, and the lost run m/005 may still be at work on it" in err, err
    assert "rlvrctl.py resume m/005 goes on with it, rlvrctl.py colab stop m/005 saves a checkpoint" in err, err
    assert "the lost run m/005 may still be at work on it" in place.ctl("colab", "down", "--all", code=1)
    assert "005: fetched up to step" in place.ctl("colab", "pull", "005", "--checkpoints")
    place.ctl("resume", "005")
    until(lambda: f"found VM {first.session} again: training" in place.log("005"))
    assert [row["endpoint"] for row in colab.assignments] == [first.endpoint]

    colab.signal_programs(signal.SIGCONT, first.base, TRAINER)
    stop_trainer_at(place, "005", 3)
    wait_for_checkpoint(place, "005")
    before = (place / "m/005/metrics.jsonl").read_bytes()
    colab.reclaim(first.endpoint, first.base)
    until(lambda: "a new one goes on from the last mirrored checkpoint (restart 1)" in place.log("005"))
    status = place.wait_for("005", "done", "failed", "lost")
    assert (status.state, status.step, status.max_steps) == ("done", 12, 12), place.log("005")
    assert colab.assignments == []
    assert "Resuming after step" in place.log("005")
    metrics = (place / "m/005/metrics.jsonl").read_bytes()
    assert metrics.startswith(before[: before.index(b"\n") + 1])  # it went on, it did not begin anew
    assert [step["step"] for step in lines(place / "m/005/metrics.jsonl", Step)] == list(range(1, 13))
    counts = Counter(
        (each["step"], each["group"], each["sample"]) for each in lines(place / "m/005/trace.jsonl", Completion)
    )
    assert len(counts) == 12 * 16 and set(counts.values()) == {1}
    assert (place / "m/005/adapter/adapter_config.json").exists()
    assert not list((place / "m/005").glob(".*"))
    assert "secret-token" not in place.log("005") and "Traceback" not in place.log("005")


def test_stopped_with_and_without_a_supervisor(place):
    """Two at once: Ctrl-C for the one in the foreground; the other loses its supervisor, and is stopped then."""
    process = place.start("train", "--on-colab", "--gpu", "L4", "--foreground", "-o", "max_steps=500")
    until((place / "m/006/status.json").exists)
    place.ctl("train", "--on-colab", "--gpu", "L4", "-o", "max_steps=500", "-o", "save_steps=500")
    place.wait_for_step("006", 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 130, (out, err)
    assert "asking the trainer on the VM to stop, with a checkpoint" in out
    status = place.status("006")
    assert (status.state, status.exit_code, status.message) == ("killed", 143, f"stopped after step {status.step}")
    assert (place / f"m/006/checkpoints/checkpoint-{status.step}/trainer_state.json").exists()
    assert not (place / "m/006/colab.json").exists()

    place.wait_for_step("007", 1)
    assert "its VM goes on and costs money: rlvrctl.py colab stop 007" in place.ctl("kill", "007", "--force")
    goes_on = "its VM goes on and costs money: rlvrctl.py colab stop 007"
    assert goes_on in place.status("007").message and goes_on in place.ctl("ps", "-a")
    assert [row["endpoint"] for row in place.colab.assignments] == [place.session("007").endpoint]
    assert "007 is killed: stopped after step" in place.ctl("colab", "stop", "007")
    status = place.status("007")
    assert (place / f"m/007/checkpoints/checkpoint-{status.step}/trainer_state.json").exists()
    assert place.colab.assignments == [] and not (place / "m/007/colab.json").exists()
    assert "m/007 has no VM." in place.ctl("colab", "stop", "007")
    assert "m/007 is killed and has no VM: what was fetched of it lies in" in place.ctl("colab", "pull", "007")
    assert "m/002 did not run on Colab" in place.ctl("colab", "pull", "002", code=2)


def test_a_crash_on_the_vm_is_a_failed_run_with_its_last_words(place, tmp_path):
    """It is one that fetches the corpus on the VM, from a repository like oeisdata."""
    server = tmp_path / "server"
    shutil.copytree(SAMPLE / "seq", server / "seq")
    git = ("git", "-C", server, "-c", "user.name=t", "-c", "user.email=t@example.org")
    for arguments in ("init -q", "config uploadpack.allowFilter true", "add -A", "commit -q -m one"):
        subprocess.run([*git, *arguments.split()], check=True)
    env = {**place.colab.env, "RLVR_COLAB_CORPUS_URL": f"file://{server}"}
    one_answer = ("-o", "filter_samples=1", "-o", "limit=8")  # no task is solved sometimes in one answer
    place.ctl("train", "--on-colab", "--gpu", "A100", "-o", "corpus_dir=", *one_answer, env=env)
    status = place.wait_for("008", "done", "failed", "lost")
    assert (status.state, status.exit_code) == ("failed", 2), place.log("008")
    assert status.message.startswith("error: filter_samples = 1 leaves 0 tasks, fewer than prompts_per_step = 4")
    assert "corpus fetch --dir ../oeisdata --url file://" in place.log("008")
    assert (place.colab.content / "oeisdata/seq").is_dir()  # for the next run there
    assert place.colab.assignments == []


def test_refused_and_lost_too_often(place):
    colab = place.colab
    for why, says in (("412", "Colab refused a VM: too many are up"), ("400", "Colab has no H100 for this account")):
        colab.refuse(why)
        place.ctl("train", "--on-colab", "--gpu", "H100")
        # Nothing was learned by the one before: its number is used again.
        status = place.wait_for("008", "failed", "done", "lost")
        assert (status.state, status.exit_code) == ("failed", 2) and says in status.message
        assert colab.assignments == [] and not (place / "m/008/colab.json").exists()
        assert "is given back" not in place.log("008")  # there was none
    colab.refuse("")
    place.ctl("train", "--on-colab", "--gpu", "H100", "--max-restarts", "0")
    with trainer_held(place):
        wait_for_base(place, "008")
        session = place.session("008")
        colab.reclaim(session.endpoint, session.base)
    status = place.wait_for("008", "failed", "done", "lost")
    assert "max_restarts = 0 used up" in status.message and status.state == "failed"
    assert colab.assignments == [] and not (place / "m/009").exists()


def test_one_vm_for_several_runs(place):
    colab = place.colab
    assert "is up, 1.76 compute units an hour from now on, used or not." in place.ctl("colab", "up", "--gpu", "L4")
    assert "is up already." in place.ctl("colab", "up")
    for verb in ("up", "train"):
        assert "with an L4 is up already" in place.ctl("colab", verb, "--gpu", "A100", code=2)
    assert [row["accelerator"] for row in colab.assignments] == ["L4"]
    assert "MiB at /content/m-003-adapter.tar.gz" in place.ctl("colab", "push", "003")
    assert (colab.content / "m-003-adapter.tar.gz").stat().st_size > 1000
    process = place.start("colab", "ps")
    out, err = process.communicate(timeout=LONG_S)
    assert "kept by colab up and nothing runs on it" in out and "rlvrctl.py colab down gives it back" in err
    # One at a time: a VM has one GPU.
    place.ctl("colab", "train", "-o", "max_steps=2")
    with trainer_held(place):
        wait_for_base(place, "008")
        session = place.session("008")
        assert not session.own
        place.ctl("colab", "train", "-o", "max_steps=2")
        until(lambda: place.status("009").waiting_for == "008")
        # It is taken back, and replaced under its name.
        colab.reclaim(session.endpoint, session.base)
    with trainer_held(place):
        assert "(restart 1)" in place.log("008") and "sending" in place.log("008").partition("(restart 1)")[2]
        assert f"VM {session.session} (L4) is up already." in place.ctl("colab", "up")
        until(lambda: place.session("008").base not in ("", session.base))
        base = place.session("008").base
        assert "used by 008 009: rlvrctl.py kill 008 009 first" in place.ctl("colab", "down", code=2)
        assert place.ctl("colab", "stop", "009").strip() == "m/009: taken out of the queue"
        # Its supervisor dies: what it may still be doing there is not thrown away.
        os.kill(place.status("008").pid, signal.SIGKILL)
        until(lambda: place.status("008").state == "lost")
        process = place.start("colab", "ps")
        out, err = process.communicate(timeout=LONG_S)
        assert "the lost run m/008 may still be at work on it" in out and "nothing runs on it" not in out
        assert "rlvrctl.py resume m/008 goes on with it" in err and "fetches it and clears the VM" in err
        for options in ((), ("--all",)):
            assert "the lost run m/008 may still be at work on it: " in place.ctl("colab", "down", *options, code=2)
        assert len(colab.assignments) == 1
        place.ctl("resume", "008")
        until(lambda: f"found VM {session.session} again" in place.log("008"))
    assert place.wait_for("008", "done", "failed", "lost").state == "done", place.log("008")
    assert [row["accelerator"] for row in colab.assignments] == ["L4"]
    assert not os.path.exists(base)  # cleared, with everything fetched
    assert not (place / "m/008/colab.json").exists()
    place.ctl("colab", "train", "-o", "max_steps=500")
    wait_for_base(place, "009")
    assert "the VM of colab up stays up: rlvrctl.py colab down gives it back" in place.ctl("colab", "stop", "009")
    assert place.wait_for("009", "killed", "failed", "done").state == "killed"
    assert len(colab.assignments) == 1
    endpoint = colab.rent_elsewhere()
    process = place.start("colab", "down")
    out, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 0 and "is given back." in out
    assert f"WARNING: VM {endpoint} costs money, and it has no name here" in err
    assert [row["endpoint"] for row in colab.assignments] == [endpoint]
    assert f"VM {endpoint} is given back." in place.ctl("colab", "stop", endpoint)
    assert "No VM was rented with colab up." in place.ctl("colab", "down")
    assert "No VM is rented." in place.ctl("colab", "ps")
    place.ctl("colab", "up", "--gpu", "T4")
    assert "is given back." in place.ctl("colab", "down", "--all")
    assert colab.assignments == []
    place.ctl("colab", "up", "--gpu", "T4")
    with colab.changed_assignments() as rows:
        rows.clear()
    assert "is not on Colab's list." in place.ctl("colab", "down")


def test_what_was_started_from_a_mirrored_run_is_done(place):
    assert place.wait_for("004", "done", "failed", "lost").state == "done"
    assert os.readlink(place / "m/004/parent") == "../003/adapter"
    status = place.wait_for("003/evals/002", "done", "failed", "lost")
    assert status.state == "done"
