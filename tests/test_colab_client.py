"""What the program `colab` prints and returns, and what we make of it; messages to a user; the parts of a mirror.

The texts are checked with the real google-colab-cli where it can be installed and with the stand-in: the two have to
agree. Nothing outside loopback is contacted.
"""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from colab_offline import OfflineColab, install_client
from colab_place import REAL, STANDIN, ColabPlace, client_python
from processes import wait_until
from workplace import no_process_left

from rlvr.colab import bundle, client, remote
from rlvr.colab.client import Gone, Refused, Session, Unreachable
from rlvr.cycles import RunFiles
from rlvr.errors import RlvrError

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
    assert client.stop("lab") and client.sessions() == []
    assert client.stop("lab") and client.stop("never", "nowhere")


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
    assert client.stop("lab", first.endpoint)
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
    assert client.sessions() == []  # "Pruned 1 stale local session(s)."
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
    ],
)
def test_no_secret_gets_into_a_text_that_is_kept(text, kept):
    hidden = client.scrub(text)
    assert kept in hidden and "[hidden]" in hidden
    assert not [word for word in ("eyJ", "ya29", "secret", "bGci", "a0Af") if word in hidden], hidden
    plain = "step 3/9  reward +0.5  412 tok/s, 3 tokens: 7 http://a.b:80/c"
    assert client.scrub(plain) == plain


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
    here = tmp_path / "seq"
    here.mkdir()
    assert_refused(place, "is a folder of this machine", (*STARTING[0], "-o", f"corpus_dir={here}"))
    colab.refuse("412")
    before = place.tree()
    assert "Colab refused a VM: too many are up" in place.ctl("colab", "up", code=2)
    assert place.tree() == before
    colab.refuse("")


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
