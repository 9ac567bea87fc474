"""What the program `colab` prints and returns, and what we make of it; messages to a user; the parts of a mirror.

The texts are checked with the real google-colab-cli where it can be installed and with the stand-in: the two have to
agree. Nothing outside loopback is contacted.
"""

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
from colab_offline import OfflineColab, install_client
from colab_place import REAL, STANDIN, ColabPlace, client_python
from processes import wait_until
from workplace import SAMPLE, no_process_left

import rlvrctl
from rlvr import records
from rlvr.colab import bundle, client, remote
from rlvr.colab import supervisor as colab_supervisor
from rlvr.colab.client import Gone, Refused, Session, Unreachable
from rlvr.config import TrainConfig, preset_layer, resolve
from rlvr.cycles import COLAB_RATES_FILE, Run, RunFiles
from rlvr.errors import RlvrError
from rlvr.records import Launch, Step
from rlvr.status import StatusFile, new_status

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at through /proc")


@pytest.fixture(scope="module", params=[REAL, STANDIN])
def colab(request, tmp_path_factory):
    python = client_python(request, tmp_path_factory, both=True)
    with no_process_left():
        offline = OfflineColab(tmp_path_factory.mktemp("client") / "colab", python)
        offline.is_real = python is not None
        try:
            yield offline
        finally:
            offline.close()


@pytest.fixture(autouse=True)
def path(request, monkeypatch):
    if "colab" in request.fixturenames:
        monkeypatch.setenv("PATH", request.getfixturevalue("colab").env["PATH"])


def run_client(colab: OfflineColab, *arguments: object, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["colab", *map(str, arguments)],
        env=colab.env,
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
        **options,
    )


# ---------------------------------------------------------------------------------------------------------------------
# The client


def test_a_vm_from_new_to_stop(colab, tmp_path):
    assert client.sessions() == []
    usage = client.usage()
    assert (usage.balance, usage.per_hour, usage.assignments) == (100.0, 0.0, 0)
    rented = client.new("lab", "t4")
    assert (rented.name, rented.hardware, rented.endpoint) == ("lab", "T4", colab.assignments[0]["endpoint"])
    assert client.sessions() == [rented] and client.usage().per_hour == 1.76
    assert client.find("lab", "") == client.find("any", rented.endpoint) == rented
    assert client.find("lab", "other") is None
    # Code runs in /content and says what it returns; what it prints besides is no matter.
    code = "def main():\n    import os, sys\n    print('hello')\n    return [os.getcwd(), len(sys.argv) > 0]"
    assert client.execute("lab", code) == [str(colab.content), True]
    file = tmp_path / "a b.bin"
    file.write_bytes(bytes(range(256)) * 300)
    client.upload("lab", file, "content/there.bin")
    assert (colab.content / "there.bin").read_bytes() == file.read_bytes()
    assert client.download("lab", "content/there.bin", tmp_path / "back.bin")
    assert (tmp_path / "back.bin").read_bytes() == file.read_bytes()
    assert not client.download("lab", "content/nothing.bin", tmp_path / "nothing.bin")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a b.bin", "back.bin"]
    assert client.stop("lab") == client.GIVEN_BACK and client.sessions() == []
    assert client.stop("lab") == client.stop("never", "nowhere") == client.NOT_LISTED


def test_exit_codes_that_tell_nothing(colab, tmp_path):
    client.new("lab", "T4")
    for name, code in (("raises", "raise ValueError('no luck')"), ("exits", "import sys; sys.exit(3)")):
        file = tmp_path / f"{name}.py"
        file.write_text(code)
        assert run_client(colab, "exec", "-s", "lab", "-f", file).returncode == 0
    with pytest.raises(RlvrError, match="no luck"):
        client.execute("lab", "def main():\n    raise ValueError('no luck')")
    assert run_client(colab, "stop", "-s", "unknown").returncode == 0
    for verb in (("exec", "-f", file), ("upload", file, "content/x"), ("download", "content/x", tmp_path / "x")):
        done = run_client(colab, verb[0], "-s", "unknown", *verb[1:])
        assert (done.returncode, done.stdout.strip()) == (1, "[colab] Session 'unknown' not found.")
    with pytest.raises(Gone):
        client.execute("unknown", "def main(): pass")
    # A missing folder: the real text carries a token, which ours does not.
    done = run_client(colab, "upload", "-s", "lab", file, "content/no/such/x")
    assert done.returncode == 1 and "colab-runtime-proxy-token" in done.stdout
    with pytest.raises(RlvrError) as caught:
        client.upload("lab", file, "content/no/such/x")
    assert "upload failed" in str(caught.value) and "token" not in str(caught.value)
    client.stop("lab")


def test_names(colab):
    """An unknown GPU becomes an A100, and a name given twice loses the first VM: neither gets that far with us."""
    with pytest.raises(RlvrError, match="Colab rents T4, L4, G4, A100, H100"):
        client.new("lab", "B200")
    assert colab.assignments == []
    done = run_client(colab, "new", "-s", "lab", "--gpu", "B200")
    assert done.returncode == 0 and colab.assignments[0]["accelerator"] == "A100"
    with pytest.raises(RlvrError, match="'lab' exists already"):
        client.new("lab", "T4")
    assert len(colab.assignments) == 1
    first = client.sessions()[0]
    assert run_client(colab, "new", "-s", "lab", "--gpu", "T4").returncode == 0
    assert [each.name for each in client.sessions()] == ["?", "lab"]
    # What the client has forgotten is found, and stopped, by its endpoint.
    assert client.find("lab", first.endpoint) == Session("?", first.endpoint, "A100")
    assert client.stop("lab", first.endpoint) == client.GIVEN_BACK
    assert client.sessions() == [] and colab.assignments == []


def test_refusals(colab):
    for why, says in (("412", "Colab refused a VM"), ("400", "Colab has no L4 for this account")):
        colab.refuse(why)
        with pytest.raises(Refused, match=says):
            client.new("lab", "L4")
        assert colab.assignments == []
    colab.refuse("")


def test_without_a_network(colab):
    colab.go_offline()
    try:
        for call in (client.usage, client.sessions, lambda: client.new("lab", "T4"), lambda: client.stop("lab")):
            with pytest.raises(Unreachable, match="Colab cannot be reached: check the network"):
                call()
    finally:
        colab.go_online()


def test_a_reclaimed_vm(colab):
    client.new("lab", "T4")
    (colab.folder / "assignments.json").write_text("[]")
    assert client.stop("lab") == client.NOT_LISTED  # "Pruned 1 stale local session(s)."
    with pytest.raises(Gone):
        client.execute("lab", "def main(): pass")


RIGHT = (
    ("new", "-s", "rl-001-ab12", "--gpu", "T4"),  # refused, which is past the parser
    ("exec", "-s", "rl-001-ab12", "-f", "{file}", "--timeout", "86400"),
    ("upload", "-s", "rl-001-ab12", "{file}", "content/bundle.tar.gz"),
    ("download", "-s", "rl-001-ab12", "content/run/status.json", "{folder}/status.json"),
    ("stop", "-s", "rl-001-ab12"),
    ("sessions",),
    ("usage",),
)
RIGHT_REAL_ONLY = (
    ("ls", "-s", "rl-001-ab12", "content/run"),
    ("install", "-s", "rl-001-ab12", "-r", "{file}"),
    ("run", "--gpu", "L4", "--timeout", "3600", "--env", "A=1", "{file}", "--steps", "5"),
    ("status", "-s", "X"),
    ("log", "-s", "X", "-n", "50", "-o", "{folder}/x.jsonl"),
)
WRONG = (
    ("new", "extra"),
    ("new", "--gpu"),
    ("exec", "print(1)"),
    ("--version",),
    ("exec", "--env", "1A=1"),
    ("--auth", "foo", "sessions"),
    ("no-such-command",),
)


def test_the_argument_lists_that_we_use(colab, tmp_path):
    file = tmp_path / "boot.py"
    file.write_text("print(1)")
    colab.refuse("412")
    config = ("--config", str(tmp_path / "sessions.json"))
    for arguments in RIGHT + (RIGHT_REAL_ONLY if colab.is_real else ()):
        filled = [each.format(file=file, folder=tmp_path) for each in arguments]
        for options in ((), config, ("--auth", "adc"), ("--auth", "oauth2", *config)):
            done = run_client(colab, *options, *filled)
            assert done.returncode in (0, 1) and "Traceback" not in done.stderr, (filled, done)
    for arguments in WRONG:
        assert run_client(colab, *arguments).returncode == 2, arguments
    colab.refuse("")
    assert colab.assignments == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("500 for url: https://x/api?authuser=0&colab-runtime-proxy-token=eyJh.bGci-Oi_J&type=file", "&type=file"),
        ("{'X-Colab-Runtime-Proxy-Token': 'eyJhbGciOi', 'a': 1}", "'a': 1"),
        ("Authorization: Bearer ya29.a0AfB_by-x.y and more", "and more"),
        ('{"token": "ya29.secretsecret", "refresh_token": "1//0gsecretsecretsecretsecret"}', "{"),
        ("pip: https://me:eyJsecret@index.example/simple", "@index.example/simple"),
        ("HF_TOKEN=hf_eyJsecretsecretsecret00", "HF_"[:0]),
        ("> Authorization: Basic dXNlcjpwYXNzecret", "> "),
        ("Authorization: token abc123secret and more", " and more"),
        ("{'authorization': 'Bearer abcsecret', 'x': 1}", "'x': 1}"),
        ("got eyJhbGciOi.eyJzdWIiOiIx.abc-_secret back", "got [hidden] back"),
        ("client GOCSPX-secret-0 of", "client [hidden] of"),
        ("git clone with ghp_secret0123456789abcdef failed", "with [hidden] failed"),
        ("?api_key=AIzasecret&x=1", "&x=1"),
        ("key AIzaSysecret-1234567890abcdef.", "key [hidden]."),
        ("WANDB_API_KEY=0123secret x", " x"),
        ("X-Goog-Api-Key: secret", ""),
        ("password=secret next", " next"),
        ("{'password': 'my secret word', 'a': 1}", "'a': 1}"),
        ("cookie: SID=secret; HSID=moresecret", ""),
        ("{'Set-Cookie': 'SID=secret; Path=/', 'a': 1}", "'a': 1}"),
        ('{\\"accessToken\\": \\"secret\\", \\"a\\": 1}', "a"),
        ("-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\nend", "end"),
        ("MY_TOKEN=secret token=secret", ""),
    ],
)
def test_no_secret_gets_into_a_text_that_is_kept(text, kept):
    hidden = client.scrub(text)
    assert kept in hidden and "[hidden]" in hidden
    assert not [word for word in ("eyJ", "ya29", "secret", "bGci", "a0Af", "dXNl") if word in hidden], hidden


@pytest.mark.parametrize(
    "text",
    [
        "step 3/9  reward +0.5  412 tok/s, 3 tokens: 7 http://a.b:80/c",
        "pad_token='<pad>', eos_token: '</s>', eos_token_id=1, 'bos_token': '<bos>'",
        "longest prompt token: 99; image token: 262144; per-token: 0.1 ms",
        "Basic usage: see the tokenizer=fast of it",
    ],
)
def test_what_a_trainer_prints_is_not_hidden(text):
    assert client.scrub(text) == text


# ---------------------------------------------------------------------------------------------------------------------
# What a user is told


@pytest.fixture
def place(colab, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    place = ColabPlace(folder, colab)
    place.init()
    return place


STARTING = (("train", "--on-colab", "--gpu", "A100"), ("colab", "up", "--gpu", "A100"))


def assert_refused(place: ColabPlace, says: str, *commands, env=None) -> None:
    """Each command ends with one line, exit code 2, and nothing made here or rented."""
    before = place.tree()
    for command in commands:
        process = place.start(*command, env=env or place.colab.env)
        out, err = process.communicate(timeout=600)
        assert process.returncode == 2, (command, out, err)
        assert err.startswith("error: ") and err.count("\n") == 1 and says in err, (command, err)
    assert place.tree() == before
    assert place.colab.assignments == []


def test_a_user_who_cannot_rent_is_told_why(place, tmp_path):
    colab = place.colab
    nowhere = tmp_path / "bin"
    nowhere.mkdir()
    env = {**colab.env, "PATH": str(nowhere)}
    says = "the Colab client is not installed: uv tool install google-colab-cli"
    assert_refused(place, says, *STARTING, ("colab", "ps"), env=env)
    colab.go_offline()
    assert_refused(place, "Colab cannot be reached: check the network", *STARTING, ("colab", "ps"))
    colab.go_online()
    colab.set_balance(0)
    assert_refused(place, "no compute units left for one A100 (balance 0): `colab pay` buys some", *STARTING)
    colab.set_balance(100)
    assert_refused(place, "--gpu 'B200': Colab rents T4, L4, G4, A100, H100", ("colab", "up", "--gpu", "B200"))
    assert_refused(place, "--gpu 'B200': Colab rents T4", ("train", "--on-colab", "--gpu", "B200"))
    assert_refused(place, "no VM is up: rlvrctl.py colab up --gpu A100", ("colab", "train"))
    assert_refused(place, "--max-restarts -3: give 0 or more", (*STARTING[0], "--max-restarts", "-3"))
    here = tmp_path / "seq"
    here.mkdir()
    assert_refused(place, "is a folder of this machine", (*STARTING[0], "-o", f"corpus_dir={here}"))
    colab.refuse("412")
    before = place.tree()
    assert "Colab refused a VM: too many are up" in place.ctl("colab", "up", code=2)
    assert place.tree() == before
    colab.refuse("")


def test_what_is_for_a_rented_vm_is_refused_without_one(place):
    for flag, value in (("--gpu", "L4"), ("--auth", "adc"), ("--max-restarts", "1")):
        says = f"{flag} {value} is for a rented VM: give --on-colab too"
        assert_refused(place, says, ("train", flag, value), ("train", "--dry-run", flag, value))


def test_a_dry_run_is_about_the_rented_gpu_and_asks_colab_for_nothing(place, tmp_path):
    env = {**place.colab.env, "PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    before = place.tree()
    printed = place.ctl("train", "--dry-run", "--on-colab", "--gpu", "l4", env=env)
    assert "on  an L4 of Colab" in printed and "16-bit weights" in printed and "no GPU" not in printed
    assert "cost  not known: no earlier cycle of this model ran on an L4" in printed
    large = ("-o", "base_model=unsloth/gemma-4-E2B-it")
    assert "it will not start" in place.ctl("train", "--dry-run", *large, env=env)
    assert "it will not start" not in place.ctl("train", "--dry-run", "--on-colab", *large, env=env)
    much = ("-o", "prompts_per_step=64", "-o", "completions_per_forward=4096", "-o", "num_generations=64")
    much = (*much, "-o", "max_completion_length=512")
    assert "15.0 GiB are free on a T4 of Colab" in place.ctl(
        "train", "--dry-run", "--on-colab", "--gpu", "T4", *much, env=env
    )
    assert place.tree() == before
    assert_refused(place, "--gpu 'B200': Colab rents T4", ("train", "--dry-run", "--on-colab", "--gpu", "B200"))
    assert_refused(
        place, "is a folder of this machine", ("train", "--dry-run", "--on-colab", "-o", f"corpus_dir={tmp_path}")
    )


def test_every_verb_takes_a_model():
    parser = rlvrctl.make_parser("colab")
    for verb in ("up", "push 1", "train", "ps", "log 1", "trace 1", "pull 1", "stop 1", "down"):
        assert parser.parse_args([*verb.split(), "--model", "m"]).model == "m"
        assert parser.parse_args(["--model", "m", *verb.split()]).model == "m"


def test_a_user_without_a_login_is_told_how_to_log_in(place, tmp_path, tmp_path_factory):
    python, why_not = install_client(tmp_path_factory.getbasetemp().parent)
    if python is None or not place.colab.is_real:
        pytest.skip(why_not or "once is enough")
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "colab"
    program.write_text(f"#!/bin/sh\nexec '{python}' -m colab_cli.cli \"$@\"\n")
    program.chmod(0o755)
    home = tmp_path / "home"
    state = home / ".config/colab-cli"
    state.mkdir(parents=True)
    (state / "settings.json").write_text('{"enable_update_check": false}')
    cloud = {"CLOUDSDK_CONFIG": str(home / "gcloud"), "NO_GCE_CHECK": "true", "COLAB_CLI_RETRY_BACKOFF": "0"}
    env = {**os.environ, **cloud, "HOME": str(home), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    env = {name: value for name, value in env.items() if name != "GOOGLE_APPLICATION_CREDENTIALS"}
    says = "not logged in to Colab: run `colab sessions` once in a terminal and follow its link"
    assert_refused(place, says, STARTING[0], ("colab", "ps"), env=env)
    assert_refused(place, says, (*STARTING[0], "--auth", "adc"), env=env)
    # Logged in, and nothing is behind the proxy: the real client's own text of a network that is away.
    token = {"token": "ya29.x", "refresh_token": "r", "client_id": "c", "client_secret": "s"}
    token |= {"scopes": ["https://www.googleapis.com/auth/colaboratory"], "expiry": "2040-01-01T00:00:00Z"}
    (state / "token.json").write_text(json.dumps({**token, "token_uri": "https://oauth2.googleapis.com/token"}))
    proxies = {name: "http://127.0.0.1:9" for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")}
    env |= proxies | {"NO_PROXY": "", "no_proxy": ""}
    assert_refused(place, "Colab cannot be reached: check the network", STARTING[0], env=env)


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
    assert "The rate of an A100 is told" in colab_supervisor.cost_text("A100", usage)
    cycle_on("", 1, 1.0)
    cycle_on("T4", 2, 45.0)
    cycle_on("A100", 3, 90.0)
    on_l4, on_t4 = colab_supervisor.steps_on("m", "L4"), colab_supervisor.steps_on("m", "T4")
    assert len(on_t4) == 2
    assert colab_supervisor.cycle_cost("L4", config, on_l4) == (
        "not known: no earlier cycle of this model ran on an L4"
    )
    assert colab_supervisor.cycle_cost("T4", config, on_t4) == "60 min of training, at a rate that is not known"
    COLAB_RATES_FILE.write_text('{"T4": 1.76, "A100": 11.77}')
    assert (
        colab_supervisor.cost_text("A100", usage) == "An A100 took 11.77 an hour last time: what is left lasts 0.8 h."
    )
    nothing = colab_supervisor.cost_text("T4", client.Usage(0.0, 0.0, 0))
    assert nothing == "A T4 took 1.76 an hour last time: nothing is left for it."
    cost = colab_supervisor.cycle_cost("T4", config, on_t4, 10.0)
    assert cost == "about 1.8 compute units for 60 min of training, and what the VM takes to get ready"
    cost = colab_supervisor.cycle_cost("A100", config, colab_supervisor.steps_on("m", "A100"), 10.0)
    assert cost.startswith("about 23.5 compute units for 2 h 00 of training, more than the 10 that are left, and")


def test_the_rate_of_a_vm_is_not_that_of_the_account():
    assert colab_supervisor.rate_text(1.76, client.Usage(9.0, 1.76, 1)) == "1.76 compute units an hour"
    assert colab_supervisor.rate_text(1.76, client.Usage(9.0, 3.52, 2)) == (
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
    assert "fetch ['corpus', 'fetch', '--url', 'file:///x']" in (tmp_path / "four/run/vm.log").read_text()


def test_the_vm_fetches_the_corpus_wherever_the_config_names_none(tmp_path):
    """Left empty, the sample would be trained on in silence."""
    for name, config, fetches in (
        ("default", TrainConfig(), True),
        ("sample", TrainConfig(corpus_dir=str(SAMPLE)), False),
    ):
        spec = colab_supervisor.make_spec(config, "training/m/001")
        own = {name: spec[name] for name in ("fetch_corpus", "arguments")}
        state = supervise(tmp_path / name, own)
        log = (tmp_path / name / "run/vm.log").read_text()
        assert ("fetch ['corpus', 'fetch']" in log) is fetches, log
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
    assert colab_supervisor.cycle_there(run) == "training/m/003"
    assert colab_supervisor.parent_there(run, None) == ""
    assert colab_supervisor.parent_there(run, tmp_path / "training/m/001/adapter") == "training/m/001/adapter"
    assert colab_supervisor.parent_there(run, tmp_path / "training/other/012/adapter") == "training/other/012/adapter"
    assert colab_supervisor.parent_there(run, tmp_path / "elsewhere/adapter") == "parent/adapter"


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
