"""The supervisor of a cycle that runs on a Colab VM: provision, start, mirror, replace a lost VM, tear down.

    python -m rlvr.colab.supervisor training/m/003      (what `rlvrctl.py train --on-colab` runs in the background)

It writes the same files as a local run, so that every reader takes it for one. The VM is given back at the end, also
after a failure; when that cannot be shown to have worked, the log and the status say so loudly. When this process
dies, the VM goes on: `resume` finds it again by `colab.json`.
"""

import os
import re
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from rlvr import cycles, records, supervisor
from rlvr.colab import bundle, client, remote
from rlvr.colab.client import Gone, Unreachable
from rlvr.config import TrainConfig, read_layers, resolve
from rlvr.cycles import Run, RunFiles
from rlvr.errors import RlvrError
from rlvr.records import ColabSession, Launch
from rlvr.status import StatusFile

POLL_S = float(os.environ.get("RLVR_COLAB_POLL_S", "15"))
"""Between two looks at the VM: each takes the client some seconds."""

UNREACHABLE_LIMIT_S = 6 * 3600.0
"""How long a network may be away before a run is given up."""

SESSION_PREFIX = "rlvr-"

START = """
def main():
    import os, subprocess, sys, tarfile
    base = os.path.join(os.getcwd(), {name!r})
    os.makedirs(base, exist_ok=True)
    with tarfile.open(base + ".tar.gz") as archive:
        archive.extractall(base)
    os.remove(base + ".tar.gz")
    # A notebook's kernel tells programs that they may draw on a terminal.
    env = {{name: value for name, value in os.environ.items()
           if name not in ("FORCE_COLOR", "CLICOLOR_FORCE", "MPLBACKEND")}}
    with open(os.path.join(base, "remote.log"), "ab") as log:
        process = subprocess.Popen([sys.executable, os.path.join(base, "code/rlvr/colab/remote.py"), base],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True)
    return {{"base": base, "pid": process.pid}}
"""

PACK = """
def main():
    import sys
    sys.path.insert(0, {base!r} + "/code/rlvr/colab")
    import remote
    return remote.pack({base!r}, *{arguments!r})
"""

STOP = """
def main():
    import json, os, signal
    with open({base!r} + "/state.json") as file:
        os.kill(json.load(file)["pid"], signal.SIGTERM)
"""


class Options(NamedTuple):
    """What `train --on-colab` was asked for."""

    gpu: str
    auth: str = ""
    max_restarts: int = 3
    session: str = ""
    """A VM that is up already and stays up; empty: one of this run's own."""


def check_account(options: Options) -> client.Usage:
    """Ask for the balance before anything is made, and say what is left.

    Raises:
        RlvrError: without a client, a login, a network, or compute units.
    """
    client.check_gpu(options.gpu)
    usage = client.usage(options.auth)
    if usage.balance <= 0 and options.gpu != "T4":
        raise RlvrError(
            f"no compute units left for a {options.gpu} (balance {usage.balance:g}): `colab pay` buys some; "
            "a T4 may be had without"
        )
    return usage


def cost_text(gpu: str, usage: client.Usage) -> str:
    """What an hour costs, as far as it is known: Colab tells the rate only while a VM is up, so it is remembered."""
    rate = known_rates().get(gpu)
    if not rate:
        return f"The rate of a {gpu} is told, and remembered, once the first one is up: rlvrctl.py colab ps."
    return f"A {gpu} took {rate:g} an hour last time: what is left lasts {usage.balance / rate:.1f} h."


def known_rates() -> dict[str, float]:
    try:
        return msgspec.json.decode(cycles.COLAB_RATES_FILE.read_bytes(), type=dict[str, float])
    except (OSError, msgspec.MsgspecError):
        return {}


def remember_rate(gpu: str, rate: float) -> None:
    if rate > 0:
        cycles.COLAB_RATES_FILE.write_bytes(msgspec.json.encode({**known_rates(), gpu: rate}))


def supervise(run: Run) -> int:
    """See a cycle through on a VM, and leave a status that says how it ended."""
    launch = records.read(run.files.launch, Launch)
    options = Options(**launch.colab)
    status = StatusFile(run.files.status, supervisor.status_of(run))
    status.write(state="running", started=status.status.started or time.time(), message=f"on Colab {options.gpu}")
    stop: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: stop.append(number))
    say(f"on Colab {options.gpu}")
    code, message = 1, ""
    try:
        code = see_through(run, launch, options, status, stop)
    except RlvrError as error:
        code, message = (143, "stopped before it began") if stop else (2, str(error))
        say(f"error: {error}")
    finally:
        warning = tear_down(run, options)
        supervisor.end(run, launch, status, code, message)
        if warning:
            status.write(message=f"{warning} {status.status.message}".strip())
    return code


def see_through(run: Run, launch: Launch, options: Options, status: StatusFile, stop: list[int]) -> int:
    """Get a VM, run the cycle on it, and again when it is lost; the exit code of the trainer.

    Raises:
        RlvrError: when no VM is to be had, or it was lost too often.
    """
    restarts = 0
    session = attach(run, options)
    while True:
        try:
            if session is None:
                session = provision(run, launch, options, status)
            return follow(run, session, options, status, stop)
        except Gone:
            session = None
            restarts += 1
            if stop:
                raise RlvrError("the VM was lost while the run was being stopped") from None
            if restarts > options.max_restarts:
                raise RlvrError(
                    f"the VM was lost {restarts} times: rlvrctl.py resume {run.name} tries again"
                ) from None
            say(f"the VM is gone: a new one goes on from the last mirrored checkpoint ({restarts}. restart)")


def attach(run: Run, options: Options) -> ColabSession | None:
    """The VM that an earlier supervisor of this run has left running, if it is still there."""
    if not run.files.colab.exists():
        return None
    known = records.read(run.files.colab, ColabSession)
    if known.base and any(each.name == known.session for each in client.sessions(options.auth)):
        say(f"found VM {known.session} again")
        return known
    return None


def provision(run: Run, launch: Launch, options: Options, status: StatusFile) -> ColabSession:
    """Rent a VM, send everything up and start the supervisor there."""
    name = options.session or f"{SESSION_PREFIX}{run.model[:20]}-{run.name}-{secrets.token_hex(2)}".replace("_", "-")
    session = ColabSession(session=name, gpu=options.gpu, base="", own=not options.session)
    records.write(run.files.colab, session)
    if not options.session:
        status.write(message=f"on Colab {options.gpu}: waiting for a VM")
        before = client.usage(options.auth)
        client.new(name, options.gpu, options.auth)
        usage = client.usage(options.auth)
        remember_rate(options.gpu, usage.per_hour - before.per_hour)
        say(f"VM {name} is up; balance {usage.balance:g} compute units, {usage.per_hour:g} an hour from now on")
    status.write(message=f"on Colab {options.gpu}: sending the project up")
    checkpoint = last_checkpoint(run.files)
    config, _ = resolve(TrainConfig, read_layers(run.files.config, TrainConfig))
    parent = parent_of(run, launch)
    if parent is not None:
        cycles.link_parent(run.files, parent)
    folder_name = re.sub(r"[^\w-]", "-", f"rlvr-{run.model}-{run.name}")
    with tempfile.TemporaryDirectory(prefix="rlvr-colab-") as folder:
        archive = Path(folder) / f"{folder_name}.tar.gz"
        spec = make_spec(config, parent is not None, checkpoint is not None)
        bundle.make_bundle(archive, run.files, spec=spec, parent=parent, checkpoint=checkpoint)
        say(f"sending {archive.stat().st_size / 2**20:.1f} MiB up")
        client.upload(name, archive, f"content/{archive.name}", options.auth)
    started = client.execute(name, START.format(name=folder_name), options.auth)
    session = ColabSession(session=name, gpu=options.gpu, base=started["base"], own=not options.session)
    records.write(run.files.colab, session)
    return session


def make_spec(config: TrainConfig, warm: bool, resume: bool) -> dict[str, Any]:
    """What the supervisor on the VM has to do.

    Raises:
        RlvrError: for a config that names something of this machine.
    """
    requirements, gpu_requirements = bundle.pinned_requirements()
    arguments = ["--config", "../run/config.toml", "--cycle", "../run"]
    arguments += ["--parent", "../parent/adapter"] if warm else []
    arguments += ["--resume"] if resume else []
    corpus_here = config.corpus_dir
    if corpus_here:
        path = Path(corpus_here).expanduser().resolve()
        if not path.is_relative_to(bundle.ROOT / "rlvr"):
            raise RlvrError(
                f"corpus_dir = {corpus_here!r} is a folder of this machine: leave it empty, then the VM fetches the "
                "whole OEIS, or name the bundled sample"
            )
        arguments += ["--corpus-dir", str(path.relative_to(bundle.ROOT))]
    if Path(config.base_model).expanduser().is_dir() and config.base_model != "tiny":
        raise RlvrError(f"base_model = {config.base_model!r} is a folder of this machine: name a model of the Hub")
    return {
        "requirements": requirements,
        "gpu_requirements": gpu_requirements,
        "fetch_corpus": config.environment == "oeis" and not corpus_here,
        "arguments": arguments,
    }


def parent_of(run: Run, launch: Launch) -> Path | None:
    """The adapter that this cycle starts from: what it began with before, what was asked for, or the latest."""
    if run.files.parent.exists():
        return run.files.parent.resolve()
    if launch.parent != "latest":
        return Path(launch.parent) if launch.parent else None
    latest = cycles.latest_adapter(run.model, before=run.name)
    return latest.files.adapter if latest else None


def last_checkpoint(files: RunFiles) -> Path | None:
    names = remote.whole_checkpoints(files.checkpoints)
    return max(
        (files.checkpoints / name for name in names), key=lambda path: int(path.name.split("-")[1]), default=None
    )


def follow(run: Run, session: ColabSession, options: Options, status: StatusFile, stop: list[int]) -> int:
    """Mirror until the trainer on the VM has ended; its exit code. SIGTERM is passed on.

    Raises:
        Gone: when the VM is lost.
        RlvrError: when it cannot be reached for too long, or never began.
    """
    progress = supervisor.Progress(run)
    passed_on = False
    reached = time.monotonic()
    while True:
        try:
            if stop and not passed_on:
                say("asking the trainer on the VM to stop, with a checkpoint")
                client.execute(session.session, STOP.format(base=session.base), options.auth)
                passed_on = True
            state = mirror(run, session, options)
            reached = time.monotonic()
        except Unreachable as error:
            if time.monotonic() - reached > UNREACHABLE_LIMIT_S:
                raise RlvrError(f"given up after {UNREACHABLE_LIMIT_S / 3600:g} h: {error}") from None
            say(str(error))
            state: dict[str, Any] = {"phase": ""}
        progress.advance(status.status)
        if state["phase"]:
            status.write(message=f"on Colab {options.gpu}: {state['phase']}")
        if state["phase"] == "ended":
            if state.get("error"):
                raise RlvrError(f"on the VM: {state['error']}: see rlvrctl.py log {run.name}")
            return state["code"]
        sleep(POLL_S, unless=[] if passed_on else stop)


def sleep(seconds: float, unless: Sequence[int]) -> None:
    """Sleep, but no longer than until `unless` holds something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not unless:
        time.sleep(0.2)


def mirror(run: Run, session: ColabSession, options: Options, checkpoints: bool = True) -> dict[str, Any]:
    """Fetch what has grown on the VM since the last time; the state of the supervisor there.

    Asking for it also keeps the VM's kernel busy, without which Colab takes an idle VM back.

    Raises:
        Gone: when the VM is lost.
        Unreachable: when it does not answer.
    """
    have, have_checkpoints = bundle.what_we_have(run.files)
    arguments = (
        have,
        have_checkpoints if checkpoints else None,
        not (run.files.adapter / "adapter_config.json").exists(),
    )
    try:
        answer = client.execute(session.session, PACK.format(base=session.base, arguments=arguments), options.auth)
        if answer["manifest"] is not None:
            with tempfile.TemporaryDirectory(dir=run.folder, prefix=".piece-") as folder:
                piece = Path(folder) / remote.PIECE_FILE
                where = f"content/{Path(session.base).name}/{remote.PIECE_FILE}"
                if not client.download(session.session, where, piece, options.auth):
                    raise RlvrError("what has grown could not be fetched")
                bundle.apply_piece(piece, answer["manifest"], run.files, answer["kept_checkpoints"])
    except Gone:
        raise
    except RlvrError as error:
        # A kernel that does not answer may be a VM that is gone: the list of sessions tells, if Colab can be reached.
        if all(each.name != session.session for each in client.sessions(options.auth)):
            raise Gone(str(error)) from None
        raise Unreachable(str(error)) from None
    state = answer["state"]
    if state["phase"] == "ended" and answer["manifest"] is not None:
        return mirror(run, session, options)  # until nothing is left to fetch
    return state


def tear_down(run: Run, options: Options) -> str:
    """Give the VM back; a warning when it cannot be shown to be gone."""
    if not run.files.colab.exists():
        return ""
    session = records.read(run.files.colab, ColabSession)
    if not session.own:
        return ""
    for attempt in range(3):
        try:
            if client.stop(session.session, options.auth):
                run.files.colab.unlink()
                say(f"VM {session.session} is given back")
                return ""
        except RlvrError as error:
            say(f"VM {session.session} could not be stopped: {error}")
            time.sleep(min(POLL_S, 5 * 2**attempt))
    warning = f"WARNING: VM {session.session} may still cost money: rlvrctl.py colab ps, then rlvrctl.py colab down."
    say(warning)
    return warning


def say(text: str) -> None:
    """A line of ours in the run's log, apart from the trainer's."""
    print(f"[colab {time.strftime('%H:%M:%S')}] {text}", flush=True)


if __name__ == "__main__":
    sys.exit(supervisor.main(supervise))
