"""The parts of a cycle on a rented VM: what it costs, what is sent up, what the VM does, and how it is mirrored."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from processes import wait_until
from workplace import SAMPLE

from rlvr import records
from rlvr.colab import bundle, client, costs, remote
from rlvr.colab import supervisor as colab_supervisor
from rlvr.config import TrainConfig, preset_layer, resolve
from rlvr.cycles import COLAB_RATES_FILE, Run, RunFiles
from rlvr.errors import RlvrError
from rlvr.records import Launch, Step
from rlvr.status import StatusFile, new_status

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at through /proc")

# ---------------------------------------------------------------------------------------------------------------------
# What it costs


def cycle_on(gpu: str, number: int, step_s: float) -> None:
    """A cycle of the model m in this folder, of two steps on such a GPU."""
    folder = Path(f"training/m/{number:03d}")
    folder.mkdir(parents=True)
    colab = {"gpu": gpu} if gpu else {}
    launch = Launch(ticket=0.0, queue=False, after="", parent="", colab=colab)
    records.write(RunFiles(folder).launch, launch)
    step = {
        **{"step": 1, "max_steps": 2, "time": 0.0, "reward": 0.3, "reward_std": 0.4, "rewards": {}},
        **{"all_right": 0.25, "mixed": 0.5, "all_wrong": 0.25, "zero_variance": 0.3, "loss": 0.0, "kl": 0.0},
        **{"outcomes": {"solved": 64}, "entropy": 0.3, "grad_norm": 0.1, "learning_rate": 1e-3},
        **{"length_mean": 20.0, "length_max": 50, "truncated": 0.0, "tokens": 1280, "tokens_per_s": 1000.0},
        **{"generation_s": 1.0, "scoring_s": 0.2, "update_s": 0.8, "step_s": step_s},
    }
    for _ in range(2):
        records.append(RunFiles(folder).metrics, Step(**step))


def test_what_a_cycle_will_cost_is_said_as_far_as_it_is_known(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config, _ = resolve(TrainConfig, [preset_layer("tiny", TrainConfig)])  # 80 steps of 64 completions
    usage = client.Usage(10.0, 0.0, 0)
    assert "The rate of an A100 is told" in costs.cost_text("A100", usage)
    cycle_on("", 1, 1.0)
    cycle_on("T4", 2, 45.0)
    cycle_on("A100", 3, 90.0)
    on_l4, on_t4 = costs.steps_on("m", "L4"), costs.steps_on("m", "T4")
    assert len(on_t4) == 2
    assert costs.cycle_cost("L4", config, on_l4) == ("not known: no earlier cycle of this model ran on an L4")
    assert costs.cycle_cost("T4", config, on_t4) == "60 min of training, at a rate that is not known"
    COLAB_RATES_FILE.write_text('{"T4": 1.76, "A100": 11.77}')
    assert costs.cost_text("A100", usage) == "An A100 took 11.77 an hour last time: what is left lasts 0.8 h."
    nothing = costs.cost_text("T4", client.Usage(0.0, 0.0, 0))
    assert nothing == "A T4 took 1.76 an hour last time: nothing is left for it."
    cost = costs.cycle_cost("T4", config, on_t4, 10.0)
    assert cost == "about 1.8 compute units for 60 min of training, and what the VM takes to get ready"
    cost = costs.cycle_cost("A100", config, costs.steps_on("m", "A100"), 10.0)
    assert cost.startswith("about 23.5 compute units for 2 h 00 of training, more than the 10 that are left, and")


def test_the_rate_of_a_vm_is_not_that_of_the_account():
    assert costs.rate_text(1.76, client.Usage(9.0, 1.76, 1)) == "1.76 compute units an hour"
    assert costs.rate_text(1.76, client.Usage(9.0, 3.52, 2)) == (
        "1.76 compute units an hour, 3.52 for all 2 VMs of the account,"
    )
    assert [client.one(gpu) for gpu in client.GPUS] == ["a T4", "an L4", "a G4", "an A100", "an H100"]


# ---------------------------------------------------------------------------------------------------------------------
# The parts of a mirror


@pytest.fixture
def both(tmp_path) -> tuple[Path, RunFiles]:
    """The base folder on a VM with a run that trains, and the run's folder here."""
    base = tmp_path / "vm/base"
    (base / "run/checkpoints/checkpoint-2").mkdir(parents=True)
    here = tmp_path / "here"
    here.mkdir()
    for name, text in (("metrics.jsonl", "one\n"), ("vm.log", "$ train\nhalf a li"), ("status.json", "{}")):
        (base / "run" / name).write_text(text)
    (base / "run/checkpoints/checkpoint-2/weights.bin").write_bytes(b"w" * 5000)
    keep_alive = [sys.executable, "-c", "import sys, time; time.sleep(600)", str(base)]
    process = subprocess.Popen(keep_alive)
    assert wait_until(lambda: remote.is_supervisor(process.pid, str(base)))
    remote.write_state(str(base), phase="training", pid=process.pid)
    yield base, RunFiles(here)
    process.kill()
    process.wait()


def mirror(base: Path, files: RunFiles, log_bytes: int = 0, part_bytes: int = 1000) -> dict:
    have, have_checkpoints = bundle.what_we_have(files)
    answer = remote.pack(str(base), have, log_bytes, have_checkpoints, True, part_bytes)
    if answer["manifest"] is not None:
        piece = files.folder.parent / remote.PIECE_FILE
        parts = sorted(base.glob(f"{remote.PIECE_FILE}.*"))
        assert len(parts) == answer["manifest"]["parts"]
        bundle.join(parts, piece, answer["manifest"]["sha256"])
        bundle.apply_piece(piece, answer["manifest"], files, answer["kept_checkpoints"])
    return answer


def test_growing_replaced_and_unfinished_files(both):
    base, files = both
    answer = mirror(base, files)
    assert answer["manifest"]["log_bytes"] == len("$ train\n")  # no line is cut in two
    assert files.log.read_text() == "$ train\n" and not files.status.exists()
    assert files.metrics.read_text() == "one\n"
    assert not files.checkpoints.exists()  # it is being written
    (base / "run/checkpoints/checkpoint-2/trainer_state.json").write_text("{}")
    (base / "run/metrics.jsonl").write_text("one\ntwo\n")
    inode = files.metrics.stat().st_ino
    answer = mirror(base, files, 8)
    assert answer["manifest"]["files"] == {"metrics.jsonl": 4} and answer["manifest"]["parts"] >= 1
    assert files.metrics.read_text() == "one\ntwo\n" and files.metrics.stat().st_ino == inode
    assert (files.checkpoints / "checkpoint-2/weights.bin").stat().st_size == 5000
    assert mirror(base, files, 8)["manifest"] is None
    # A resumed trainer has dropped a line and written another: the file is replaced, not changed in place.
    (base / "run/metrics.jsonl").write_text("one\n2\n")
    assert mirror(base, files, 8)["manifest"]["files"] == {"metrics.jsonl": 0}
    assert files.metrics.read_text() == "one\n2\n" and files.metrics.stat().st_ino != inode
    # Another checkpoint takes the place of the first.
    (base / "run/checkpoints/checkpoint-2").rename(base / "run/checkpoints/checkpoint-4")
    mirror(base, files, 8)
    assert [path.name for path in files.checkpoints.iterdir()] == ["checkpoint-4"]
    # The end: the rest of the log, and the adapter.
    (base / "run/adapter").mkdir()
    (base / "run/adapter/adapter_config.json").write_text("{}")
    assert mirror(base, files, 8)["manifest"] is None
    (base / "run/vm.log").write_text("$ train\nhalf a line token=abcdef")
    remote.write_state(str(base), phase="ended", code=0, error="")
    mirror(base, files, 8)
    assert files.log.read_text() == "$ train\nhalf a line [hidden]"
    assert (files.adapter / "adapter_config.json").exists()


def test_a_piece_that_is_not_whole_or_not_ours_changes_nothing(both, tmp_path):
    base, files = both
    mirror(base, files)
    (base / "run/metrics.jsonl").write_text("one\ntwo\n")
    before = {path.name: path.read_bytes() for path in files.folder.iterdir()}
    answer = remote.pack(str(base), bundle.what_we_have(files)[0], 8, [], True, 10**9)
    part = base / f"{remote.PIECE_FILE}.000"
    whole = part.read_bytes()
    for broken in (whole[: len(whole) // 2], whole[:-1], b"", whole.replace(whole[30:31], b"\x00", 1) + b"x"):
        part.write_bytes(broken)
        with pytest.raises(RlvrError, match="is not whole: it is fetched again"):
            bundle.join([part], tmp_path / "piece", answer["manifest"]["sha256"])
    (tmp_path / "piece").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RlvrError, match="cannot be unpacked here"):
        bundle.apply_piece(tmp_path / "piece", answer["manifest"], files, [])
    for name in ("../status.json", "status.json", "launch.json", ".hidden", "config.toml"):
        with tarfile.open(tmp_path / "piece", "w:gz"):
            pass
        manifest = {**answer["manifest"], "files": {name: 0}}
        with pytest.raises(RlvrError, match="that a run does not have"):
            bundle.apply_piece(tmp_path / "piece", manifest, files, [])
    (files.folder / "metrics.jsonl").write_text("one\nand more\n")
    (tmp_path / "piece").write_bytes(whole)
    with pytest.raises(RlvrError, match="changed while it was mirrored"):
        bundle.apply_piece(tmp_path / "piece", answer["manifest"], files, [])
    (files.folder / "metrics.jsonl").write_text("one\n")
    assert {path.name: path.read_bytes() for path in files.folder.iterdir()} == before


def test_a_supervisor_that_died_on_the_vm_has_ended(both):
    base, _ = both
    assert remote.read_state(str(base))["phase"] == "training"
    remote.write_state(str(base), phase="installing packages", pid=2**22 - 1)
    state = remote.read_state(str(base))
    assert (state["phase"], state["code"]) == ("ended", 1) and "while installing packages" in state["error"]


def supervise(base: Path, spec: dict, **env: str) -> dict:
    """Run the supervisor of a VM to its end; the state that it leaves."""
    (base / "run").mkdir(parents=True, exist_ok=True)
    (base / "code").mkdir(exist_ok=True)
    (base / "code/gemma4_oeis_rlvr.py").write_text("print('trained')")
    (base / "code/rlvrctl.py").write_text("import sys\nprint('fetch', sys.argv[1:])\nsys.exit(4)")
    whole = {"requirements": [], "ranges": [], "gpu_requirements": [], "fetch_corpus": None, "arguments": []}
    (base / "spec.json").write_text(json.dumps({**whole, **spec}))
    command = [sys.executable, remote.__file__, str(base)]
    assert subprocess.run(command, env={**os.environ, **env}, timeout=300, capture_output=True).returncode == 0
    return remote.read_state(str(base))


def test_packages_are_installed_as_here_or_within_the_ranges_or_the_run_fails(tmp_path):
    """With pip itself, from a folder of wheels into a folder of its own."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "rlvr_test_dummy-1.5-py3-none-any.whl", "w") as wheel:
        info = "rlvr_test_dummy-1.5.dist-info"
        wheel.writestr("rlvr_test_dummy.py", "")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: rlvr-test-dummy\nVersion: 1.5\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"rlvr_test_dummy.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    target = tmp_path / "target"
    env = {
        **{"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_TARGET": str(target)},
        **{"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_EXTRA_INDEX_URL": "", "PIP_CONFIG_FILE": os.devnull},
    }
    spec = {"requirements": ["rlvr-test-dummy==2.0"], "ranges": ["rlvr-test-dummy>=1,<3"]}
    state = supervise(tmp_path / "one", spec, **env)
    log = (tmp_path / "one/run/vm.log").read_text()
    assert (state["phase"], state["code"], state["error"]) == ("ended", 0, ""), log
    assert (target / "rlvr_test_dummy.py").exists() and log.endswith("trained\n")
    constraints = (tmp_path / "one/constraints.txt").read_text()
    assert f"torch=={remote.installed('torch')}\n" in constraints
    state = supervise(tmp_path / "two", {**spec, "ranges": ["rlvr-test-dummy>=3"]}, **env)
    log = (tmp_path / "two/run/vm.log").read_text()
    assert state["code"] == 1 and state["error"] == "pip could not install the packages"
    assert log.count("-m pip install") == 3 and "trained" not in log
    assert supervise(tmp_path / "three", {"requirements": [f"pytest=={pytest.__version__}"]})["code"] == 0
    assert "pip" not in (tmp_path / "three/run/vm.log").read_text()
    state = supervise(tmp_path / "four", {"fetch_corpus": ["--url", "file:///x"]})
    assert (state["code"], state["error"]) == (4, "the OEIS corpus could not be fetched")
    fetched = "fetch ['corpus', 'fetch', '--dir', '../oeisdata', '--url', 'file:///x']"
    assert fetched in (tmp_path / "four/run/vm.log").read_text()


def test_the_vm_fetches_the_corpus_wherever_the_config_names_none(tmp_path):
    """Left empty, the sample would be trained on in silence."""
    for name, config, fetches in (
        ("default", TrainConfig(), True),
        ("sample", TrainConfig(corpus_dir=str(SAMPLE)), False),
    ):
        spec = bundle.make_spec(config, "training/m/001")
        own = {name: spec[name] for name in ("fetch_corpus", "arguments")}
        state = supervise(tmp_path / name, own)
        log = (tmp_path / name / "run/vm.log").read_text()
        assert ("fetch ['corpus', 'fetch', '--dir', '../oeisdata']" in log) is fetches, log
        assert os.path.islink(tmp_path / name / "oeisdata") is fetches  # one copy for all runs of a VM
        assert state["code"] == (4 if fetches else 0)


# ---------------------------------------------------------------------------------------------------------------------
# What is sent up


def test_of_site_packages_only_what_is_ours_is_sent(tmp_path, monkeypatch, root):
    """Installed from a wheel, the programs have neighbours, and no pyproject.toml."""
    metadata = tomllib.loads((root / "pyproject.toml").read_text())
    assert sorted(bundle.MODULES) == sorted(metadata["tool"]["setuptools"]["py-modules"])
    shutil.copytree(root / "rlvr/colab", tmp_path / "rlvr/colab", ignore=shutil.ignore_patterns("__pycache__"))
    for name in (*bundle.MODULES, "six"):
        (tmp_path / f"{name}.py").touch()
    (tmp_path / "rlvr/assets").mkdir()
    monkeypatch.setattr(bundle, "ROOT", tmp_path)
    names = {str(path) for path in bundle.code_files()}
    assert names >= {"rlvrctl.py", "gemma4_oeis_rlvr.py", "rlvr/colab/remote.py"}
    assert "six.py" not in names and "pyproject.toml" not in names
    files = RunFiles(tmp_path / "training/m/001")
    files.folder.mkdir(parents=True)
    files.config.touch()
    spec = {"cycle": "training/m/001", "parent": ""}
    bundle.make_bundle(tmp_path / "b.tar.gz", files, spec=spec, parent=None, checkpoint=None)
    with tarfile.open(tmp_path / "b.tar.gz") as archive:
        archive.extractall(tmp_path / "vm", filter="data")
    assert (tmp_path / "vm/run/config.toml").samefile(tmp_path / "vm/training/m/001/config.toml")


def test_what_cannot_be_packed_is_not_rented_for(tmp_path, monkeypatch):
    run = Run("m", "001", "train", tmp_path / "training/m/001")
    run.folder.mkdir(parents=True)
    run.files.config.write_text('base_model = "tiny"\n')
    launch = Launch(ticket=0.0, queue=False, after="", parent=str(tmp_path / "gone/adapter"))
    options = colab_supervisor.Options("T4")
    monkeypatch.setenv("PATH", "")  # no client: it would be asked next
    with pytest.raises(RlvrError, match="gone/adapter: cannot be packed for the VM: No such file"):
        status = StatusFile(run.files.status, new_status("train", "running"))
        colab_supervisor.provision(run, launch, options, status, [])
    assert not run.files.colab.exists()


def test_where_a_run_and_its_parent_lie_on_the_vm(tmp_path):
    run = Run("m", "003", "train", tmp_path / "training/m/003")
    for adapter in ("training/m/001/adapter", "training/other/012/adapter", "elsewhere/adapter"):
        (tmp_path / adapter).mkdir(parents=True)
    assert bundle.cycle_there(run) == "training/m/003"
    assert bundle.parent_there(run, None) == ""
    assert bundle.parent_there(run, tmp_path / "training/m/001/adapter") == "training/m/001/adapter"
    assert bundle.parent_there(run, tmp_path / "training/other/012/adapter") == "training/other/012/adapter"
    assert bundle.parent_there(run, tmp_path / "elsewhere/adapter") == "parent/adapter"


def test_the_sample_on_the_vm_is_the_sample_here(tmp_path):
    files = RunFiles(tmp_path)
    files.config.write_text('base_model = "tiny"\n')
    for there, here in (("code/rlvr/assets/sample/seq", str(SAMPLE / "seq")), ("oeisdata/seq", "oeisdata/seq")):
        bundle.keep_provenance(files, {"num_tasks": "3", "corpus": there}, "")
        assert tomllib.loads(files.config.read_text())["provenance"]["corpus"] == here


def test_what_is_sent_up_runs_without_what_only_people_need(tmp_path, root):
    """The trainer and `corpus fetch` import nothing that the VM does not install; the code is all there."""
    requirements = bundle.requirements()
    names = {each.partition("==")[0] for each in requirements.pinned}
    assert {"transformers", "trl", "msgspec"} <= names and not {"torch", "textual", "pytest"} & names
    assert any(each.startswith("torch<") and ">=" in each for each in requirements.ranges)
    assert requirements.gpu and requirements.gpu[0].startswith("unsloth")
    blocked = f"import sys\nfor name in {bundle.NOT_ON_THE_VM!r}: sys.modules[name] = None\n"
    code = tmp_path / "code"
    for path in bundle.code_files():
        (code / path).parent.mkdir(parents=True, exist_ok=True)
        (code / path).write_bytes((root / path).read_bytes())
    for arguments in (["rlvrctl.py", "corpus", "fetch", "--help"], ["gemma4_oeis_rlvr.py", "--help"]):
        text = (
            f"{blocked}import runpy\nsys.argv = {arguments!r}\nrunpy.run_path({arguments[0]!r}, run_name='__main__')"
        )
        done = subprocess.run([sys.executable, "-c", text], cwd=code, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0 and "usage:" in done.stdout, done.stderr
