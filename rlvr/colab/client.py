"""The program `colab` (google-colab-cli) as a library: one function per verb, errors that say what to do.

Its exit codes do not tell success: `exec` ends with 0 whatever the code did, `stop` of an unknown session too, and an
unknown GPU name silently becomes an A100. So texts are read, remote code has to say that it came through, and names
are checked here. Standard input is closed, because it asks for a login there; every call has a deadline of our own,
because its --timeout is not enforced. What it prints may hold tokens, so every text is scrubbed before it is kept.
It also forgets the name of a VM that did not answer once: so a VM is known by its endpoint, and stopped by it.

Written against google-colab-cli 0.7.5.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from rlvr.errors import RlvrError

GPUS = {"T4": 15_360, "L4": 23_034, "G4": 97_887, "A100": 40_960, "H100": 81_559}
"""What Colab rents -> its memory in MiB, as nvidia-smi tells it; there are A100s with twice as much."""

AUTHS = ("oauth2", "adc")
CALL_TIMEOUT_S = 180.0
NEW_TIMEOUT_S = 900.0
TRANSFER_TIMEOUT_S = 1800.0
MARK = "RLVR-RESULT "
"""Begins the line by which remote code says that it came through; the rest is JSON."""

SESSION_LINE = re.compile(
    r"\[(?P<name>[^\]]+)\] (?P<endpoint>\S+) \| Hardware: (?P<hardware>[^|]+?) \| Shape: [^|]+? \| Variant: \w+.*"
)
ORPHAN = "?"
"""What the client calls a VM that it has no name for."""

SECRETS = re.compile(
    r"""(?x)
    # A secret by its form: of Google, Hugging Face, GitHub, OpenAI; a JSON Web Token, a private key, a login in a URL.
      \bya29\.[\w.-]+ | \b1//[\w-]{20,} | \b4/0[\w-]{20,} | \bGOCSPX-[\w-]+ | \bAIza[\w-]{20,}
    | \bhf_[A-Za-z0-9]{16,} | \bgh[opsur]_[A-Za-z0-9]{16,} | \bgithub_pat_\w{16,} | \bsk-[\w-]{20,}
    | \beyJ[\w-]{6,}(?:\.[\w-]*){0,4}
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----[^-]*(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----)?
    | (?<=://)[^\s/@:]*:[^\s/@]+(?=@)
    # By the name before it. Cookies stand one beside the other, to the end of the line or of the string.
    | (?i: (?<![\w-])(?:set-)?cookie\\?["']?[ \t]*[=:][ \t]*)(?:"[^"\n]+"|'[^'\n]+'|[^"'\n]+)
    | (?i: (?<![\w-])(?:proxy-)?authorization\\?["']?[ \t]*[=:][ \t]*\\?["']?
           (?:(?:basic|bearer|digest|negotiate|token)[ \t]+)?)[^\s"'&,)}]+
    | (?i: \bbearer)[ \t]+[\w.~+/=-]{8,}
    | (?<![\w-])(?:
        [A-Z0-9_]*TOKEN
      | (?i: (?!per-)[\w-]*-token
           | [\w-]*(?:access|api|auth|csrf|proxy|refresh|secret|security|session|xsrf)_?token
           | (?:[\w-]*_)?(?:gh|github|gitlab|hf|hub|id|kaggle|pypi|user|wandb)_?token
           | [\w-]*(?:api[_-]?key|secret|secret[_-]?key|access[_-]?key|password|passwd|passphrase)
           | code_challenge | code_verifier )
      )\\?["']?[ \t]*[=:][ \t]*\\?(?:"[^"\n]+"|'[^'\n]+'|["']?[^\s"'&,)}]+)
    # "prompt token: 99" is a count: after the word alone only what is as long as a secret.
    | (?i: (?<![\w-])token\\?["']?[ \t]*[=:][ \t]*\\?["']?)(?!\d+\b)[^\s"'&,)}<]{6,}"""
)
"""What is taken out of every text. Rather a word too many than one too few; but what a trainer prints of its own, such
as pad_token='<pad>', stays."""


class Session(NamedTuple):
    """A VM that costs money; `name` is "?" for one that only the server knows."""

    name: str
    endpoint: str
    hardware: str


class Usage(NamedTuple):
    """Compute units: what is left, and what all running VMs take in an hour."""

    balance: float
    per_hour: float
    assignments: int


class Gone(RlvrError):
    """The VM of a session is not there any more: reclaimed, or stopped elsewhere."""


class Unreachable(RlvrError):
    """Colab could not be asked; the VM may be well."""


class Refused(RlvrError):
    """Colab gives no such VM, now or to this account."""


def scrub(text: str) -> str:
    """The text without tokens.

    >>> scrub("url?colab-runtime-proxy-token=abc&x=1")
    'url?[hidden]&x=1'
    """
    return SECRETS.sub("[hidden]", text)


def find_client() -> str:
    """The path of the program `colab`.

    Raises:
        RlvrError: saying how to get it.
    """
    found = shutil.which("colab")
    if found is None:
        raise RlvrError(
            "the Colab client is not installed: uv tool install google-colab-cli (or pipx install google-colab-cli); "
            "it needs Python 3.12 or newer, in an environment of its own"
        )
    return found


VERBS = ("usage", "sessions", "new", "stop", "exec", "upload", "download")


class Called(NamedTuple):
    """What a call printed, scrubbed."""

    code: int
    out: str
    err: str


def call(*arguments: str, auth: str = "", timeout_s: float = CALL_TIMEOUT_S) -> Called:
    """Run the client once.

    Raises:
        Gone, Unreachable, RlvrError: for the failures that it is known to print, whatever its exit code.
    """
    verb = next(word for word in arguments if word in VERBS)
    command = [find_client(), *(["--auth", auth] if auth else []), *arguments]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
        )
    except subprocess.TimeoutExpired:
        raise Unreachable(f"colab {verb}: no answer within {timeout_s:.0f} s: try again") from None
    except OSError as error:
        raise RlvrError(f"{command[0]}: cannot be started: {error.strerror}: install it again") from None
    called = Called(done.returncode, scrub(done.stdout), scrub(done.stderr))
    raise_known(verb, called)
    return called


def raise_known(verb: str, called: Called) -> None:
    """Turn the texts of known failures into errors.

    Raises:
        Gone, Unreachable, RlvrError
    """
    # A traceback is drawn in a box and broken anywhere, also within words.
    text = re.sub(r"[\s│]+", "", called.out + called.err).lower()

    def says(*phrases: str) -> bool:
        return any(phrase.replace(" ", "").lower() in text for phrase in phrases)

    if called.code and says(
        "authorization code", "default credentials were not found", "invalid_grant", "Reauthentication is needed"
    ):
        raise RlvrError(
            "not logged in to Colab: run `colab sessions` once in a terminal and follow its link, "
            "or log in with gcloud and give --auth adc"
        )
    if re.search(r"session'[^']*'notfound\.", text) or says("appears to be lost (404/401)"):
        raise Gone(f"colab {verb}: the VM is not there any more")
    if called.code and says("Failed to resolve", "Connection refused", "Network is unreachable", "ConnectionError:"):
        raise Unreachable("Colab cannot be reached: check the network, then try again; a running VM goes on meanwhile")
    if verb == "new" and says("Allocation refused"):
        raise Refused(
            "Colab refused a VM: too many are up, the compute units are used up, or it has none to give now: "
            "rlvrctl.py colab ps shows what runs, `colab pay` buys units, another --gpu may be free"
        )
    if verb == "new" and says("Backend rejected accelerator"):
        gpu = re.search(r"rejectedaccelerator'?(\w+?)'?\.", text)
        raise Refused(f"Colab has no {gpu[1].upper() if gpu else 'such GPU'} for this account: try another --gpu")


def failed(verb: str, called: Called) -> RlvrError:
    """An error with the last words of a call that failed in a way not known here."""
    words = [line.strip() for line in (called.out + "\n" + called.err).splitlines() if line.strip(" │╭╰─╮╯")]
    return RlvrError(f"colab {verb} failed ({called.code}): {words[-1][:300] if words else 'it printed nothing'}")


# ---------------------------------------------------------------------------------------------------------------------
# The verbs


def check_gpu(gpu: str) -> str:
    """The GPU's name as the client knows it: an unknown one would silently become an A100.

    Raises:
        RlvrError: for any other.
    """
    if gpu.upper() not in GPUS:
        raise RlvrError(f"--gpu {gpu!r}: Colab rents {', '.join(GPUS)}")
    return gpu.upper()


def one(gpu: str) -> str:
    """The GPU's name with its article.

    >>> one("A100"), one("T4")
    ('an A100', 'a T4')
    """
    return f"{'an' if gpu[:1] in 'AEFHILMNORSX' else 'a'} {gpu}"


def usage(auth: str = "") -> Usage:
    """Balance and rate of the account."""
    called = call("usage", auth=auth)
    numbers = {
        name: float(found[1])
        for name, pattern in (
            ("balance", r"balance: ([\d.]+)"),
            ("rate", r"rate: ([\d.]+)"),
            ("count", r"assignments: (\d+)"),
        )
        if (found := re.search(pattern, called.out))
    }
    if called.code or len(numbers) < 3:
        raise failed("usage", called)
    return Usage(numbers["balance"], numbers["rate"], int(numbers["count"]))


def sessions(auth: str = "") -> list[Session]:
    """Every VM of the account, those without a name too."""
    called = call("sessions", auth=auth)
    if called.code:
        raise failed("sessions", called)
    found = [match for line in called.out.splitlines() if (match := SESSION_LINE.fullmatch(line.strip()))]
    if not found:
        # It says that there is none where a login has failed, too; this tells the two apart.
        usage(auth)
    return [Session(match["name"], match["endpoint"], match["hardware"]) for match in found]


def find(name: str, endpoint: str, auth: str = "") -> Session | None:
    """The VM of that endpoint, under whatever name, or where none is known, of that name."""
    for each in sessions(auth):
        if each.endpoint == endpoint if endpoint else each.name == name:
            return each
    return None


def new(name: str, gpu: str, auth: str = "") -> Session:
    """Rent a VM under a name that no session has: the client would forget the other VM, which costs on.

    Raises:
        RlvrError: when it is refused, or the name is taken.
    """
    gpu = check_gpu(gpu)
    before = sessions(auth)
    if any(each.name == name for each in before):
        raise RlvrError(f"a Colab session {name!r} exists already: give it back with rlvrctl.py colab stop {name}")
    try:
        called = call("new", "-s", name, "--gpu", gpu, auth=auth, timeout_s=NEW_TIMEOUT_S)
        error = failed("new", called)
    except Refused:
        raise
    except RlvrError as caught:
        error = caught
    after = [each for each in sessions(auth) if each not in before]
    for each in after:
        if each.name == name:
            if each.hardware == gpu:
                return each
            stop(name, each.endpoint, auth)
            wrong = f"Colab gave {one(each.hardware)} instead of {one(gpu)}"
            raise RlvrError(f"{wrong}: it was given back: try again later")
    strays = ", ".join(each.endpoint for each in after)
    raise RlvrError(
        f"{error}; meanwhile a VM {strays} came up, which costs money: rlvrctl.py colab stop {strays}"
        if after
        else str(error)
    )


GIVEN_BACK, NOT_LISTED, LISTED = "is given back", "is not on Colab's list", ""


def stop(name: str, endpoint: str = "", auth: str = "") -> str:
    """Give a VM back: GIVEN_BACK, or NOT_LISTED where there was none, or, when it is still on Colab's list, LISTED.

    That list is the only proof. What is no cost any more is true.
    """
    before = find(name, endpoint, auth)  # also lets the client forget a VM that was taken back
    gone = NOT_LISTED if before is None else GIVEN_BACK
    try:
        call("stop", "-s", name, auth=auth)
        gone = GIVEN_BACK
    except Gone:
        pass
    left = find(name, endpoint, auth)
    if left is None:
        return gone
    # The client has forgotten its name: it stops what a list of its own tells it.
    entry = {"name": "left", "token": "", "url": "http://127.0.0.1:9", "endpoint": left.endpoint}
    with tempfile.TemporaryDirectory(prefix="rlvr-colab-") as folder:
        file = Path(folder) / "sessions.json"
        file.write_text(json.dumps({"left": entry}), encoding="utf-8")
        call("--config", str(file), "stop", "-s", "left", auth=auth)
    return GIVEN_BACK if find(name, left.endpoint, auth) is None else LISTED


def upload(name: str, local: Path, remote: str, auth: str = "") -> None:
    """Copy one file up; the folder must be there. The whole body goes in one request."""
    called = call("upload", "-s", name, str(local.resolve()), remote, auth=auth, timeout_s=TRANSFER_TIMEOUT_S)
    if called.code or "Uploaded" not in called.out:
        raise failed("upload", called)


def download(name: str, remote: str, local: Path, auth: str = "") -> bool:
    """Copy one file down, whole or not at all; false when there is no such file yet.

    Raises:
        Gone: when the VM is not there.
    """
    with tempfile.TemporaryDirectory(dir=local.parent, prefix=".download-") as folder:
        target = Path(folder) / "file"
        called = call("download", "-s", name, remote, str(target), auth=auth, timeout_s=TRANSFER_TIMEOUT_S)
        if called.code or "Downloaded" not in called.out or not target.is_file():
            return False
        os.replace(target, local)
    return True


def execute(name: str, code: str, auth: str = "", timeout_s: float = CALL_TIMEOUT_S) -> Any:
    """Run Python code on the VM and return what its function `main` returns, through JSON.

    Raises:
        RlvrError: with its last words when it did not come through, whatever the client's exit code says.
    """
    text = f"{code}\n\nimport json as _json\nprint({MARK!r} + _json.dumps(main()))\n"
    with tempfile.TemporaryDirectory(prefix="rlvr-colab-") as folder:
        file = Path(folder) / "remote_step.py"
        file.write_text(text, encoding="utf-8")
        called = call(
            "exec", "-s", name, "-f", str(file), "--timeout", str(int(timeout_s)), auth=auth, timeout_s=timeout_s
        )
    for line in called.out.splitlines():
        if line.startswith(MARK):
            return json.loads(line.removeprefix(MARK))
    raise failed("exec", called)
