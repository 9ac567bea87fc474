"""The program `colab` (google-colab-cli) as a library: one function per verb, errors that say what to do.

Its exit codes do not tell success: `exec` ends with 0 whatever the code did, `stop` of an unknown session too, and an
unknown GPU name silently becomes an A100. So texts are read, remote code has to say that it came through, and names
are checked here. Standard input is closed, because it asks for a login there; every call has a deadline of our own,
because its --timeout is not enforced. What it prints may hold tokens, so every text is scrubbed before it is kept.

Written against google-colab-cli 0.7.5.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from rlvr.errors import RlvrError

GPUS = ("T4", "L4", "G4", "A100", "H100")
AUTHS = ("oauth2", "adc")
CALL_TIMEOUT_S = 180.0
MARK = "RLVR-RESULT "
"""Begins the line by which remote code says that it came through; the rest is JSON."""

SESSION_LINE = re.compile(
    r"\[(?P<name>[^\]]+)\] (?P<endpoint>\S+) \| Hardware: (?P<hardware>[^|]+?) \| Shape: [^|]+? \| Variant: \w+.*"
)
ORPHAN = "?"
"""What the client calls a VM that it has no name for."""

SECRETS = re.compile(
    r"""(?ix) ya29\.[\w.-]+ | bearer\s+[\w.~+/=-]+
    | (?: [\w-]*token | authorization | client_secret | code_challenge ) ["']? \s* [=:] \s* ["']? [^\s"'&,)}]+"""
)


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
        raise Unreachable(f"colab {arguments[0]}: no answer within {timeout_s:.0f} s: try again") from None
    called = Called(done.returncode, scrub(done.stdout), scrub(done.stderr))
    raise_known(arguments[0], called)
    return called


def raise_known(verb: str, called: Called) -> None:
    """Turn the texts of known failures into errors.

    Raises:
        Gone, Unreachable, RlvrError
    """
    text = re.sub(r"\s+", " ", called.out + called.err)
    if called.code and re.search(r"authorization code|default credentials were not found|not logged in", text, re.I):
        raise RlvrError(
            "not logged in to Colab: run `colab sessions` once in a terminal and follow its link, "
            "or log in with gcloud and give --auth adc"
        )
    if called.code and re.search(r"Failed to resolve|NameResolutionError|Connection refused|ConnectionError", text):
        raise Unreachable("Colab cannot be reached: check the network, then try again; a running VM goes on meanwhile")
    if re.search(r"Session '[^']*' not found|Pruned \d+ stale", text):
        raise Gone(f"colab {verb}: the VM is not there any more")
    if "Allocation refused" in text or "Too many" in text:
        raise RlvrError(
            "Colab refused a VM: the account's limit of VMs or its compute units are used up: "
            "rlvrctl.py colab ps shows what runs, colab pay buys units"
        )
    if match := re.search(r"Backend rejected accelerator '?(\w+)'?", text):
        raise RlvrError(f"Colab has no {match[1]} for this account now: try another --gpu or later")


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
    try:
        called = call("sessions", auth=auth)
    except Gone:  # it has just forgotten a reclaimed one, and lists the others when asked again
        called = call("sessions", auth=auth)
    if called.code:
        raise failed("sessions", called)
    found = [match for line in called.out.splitlines() if (match := SESSION_LINE.fullmatch(line.strip()))]
    return [Session(match["name"], match["endpoint"], match["hardware"]) for match in found]


def new(name: str, gpu: str, auth: str = "") -> None:
    """Rent a VM under a name that no session has: the client would forget the other VM, which costs on.

    Raises:
        RlvrError: when it is refused, or the name is taken.
    """
    if any(session.name == name for session in sessions(auth)):
        raise RlvrError(f"a Colab session {name!r} exists already: stop it first with rlvrctl.py colab down")
    called = call("new", "-s", name, "--gpu", check_gpu(gpu), auth=auth, timeout_s=900)
    if called.code or not any(session.name == name for session in sessions(auth)):
        raise failed("new", called)


def stop(name: str, auth: str = "") -> bool:
    """Give a VM back; true when it is gone from the server's list, which is the only proof."""
    with contextlib.suppress(Gone):
        call("stop", "-s", name, auth=auth)
    return all(session.name != name for session in sessions(auth))


def upload(name: str, local: Path, remote: str, auth: str = "") -> None:
    """Copy one file up; the folder must be there. The whole body goes in one request."""
    called = call("upload", "-s", name, str(local.resolve()), remote, auth=auth, timeout_s=1800)
    if called.code or "Uploaded" not in called.out:
        raise failed("upload", called)


def download(name: str, remote: str, local: Path, auth: str = "") -> bool:
    """Copy one file down, whole or not at all; false when there is no such file yet.

    Raises:
        Gone: when the VM is not there.
    """
    with tempfile.TemporaryDirectory(dir=local.parent, prefix=".download-") as folder:
        target = Path(folder) / "file"
        called = call("download", "-s", name, remote, str(target), auth=auth, timeout_s=1800)
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
