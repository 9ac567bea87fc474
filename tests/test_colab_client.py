"""What the program `colab` prints and returns, and what we make of it; messages to a user.

The texts are checked with the real google-colab-cli where it can be installed and with the stand-in: the two have to
agree. Nothing outside loopback is contacted.
"""

import json
import os
import subprocess
import sys

import pytest
from colab_offline import OfflineColab, install_client
from colab_place import REAL, STANDIN, ColabPlace, client_python
from workplace import no_process_left

import rlvrctl
from rlvr.colab import client
from rlvr.colab.client import Gone, Refused, Session, Unreachable
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
