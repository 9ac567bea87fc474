"""The supervisor of a cycle that runs on a Colab VM: provision, start, mirror, replace a lost VM, tear down.

    python -m rlvr.colab.supervisor training/m/003      (what `rlvrctl.py train --on-colab` runs in the background)

It writes the same files as a local run, so that every reader takes it for one. The VM is given back at the end, also
after a failure; when that cannot be shown to have worked, the log and the status say so loudly. When this process
dies, the VM goes on: `resume` finds it again by `colab.json`.
"""

import contextlib
import hashlib
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

from rlvr import control, cycles, records, supervisor
from rlvr.colab import bundle, client, costs, remote
from rlvr.colab import mirror as mirroring
from rlvr.colab.client import Gone, Refused, Unreachable
from rlvr.config import TrainConfig, read_layers, resolve
from rlvr.cycles import Run, RunFiles
from rlvr.errors import RlvrError
from rlvr.records import ColabSession, Launch
from rlvr.status import StatusFile

POLL_S = float(os.environ.get("RLVR_COLAB_POLL_S", "15"))
"""Between two looks at the VM: each takes the client some seconds."""

UNREACHABLE_LIMIT_S = 6 * 3600.0
"""How long a network may be away before a run is given up."""

TEAR_DOWN_ATTEMPTS = 20
"""How often the VM is asked to go, one poll apart, before it is left with a warning."""

REFUSED_POLLS = 20
"""How many polls to wait before a replacement is asked for again that was refused."""

SESSION_PREFIX = "rlvr-"

START = """
def main():
    import glob, hashlib, json, os, subprocess, sys, tarfile, time
    base = os.path.join(os.getcwd(), {name!r})
    archive, digest = base + ".tar.gz", hashlib.sha256()
    with open(archive, "wb") as whole:
        for number in range({parts}):
            with open("%s.%03d" % (archive, number), "rb") as part:
                block = part.read()
            digest.update(block)
            whole.write(block)
    for path in glob.glob(archive + ".*"):
        os.remove(path)
    if digest.hexdigest() != {sha256!r}:
        raise ValueError("what arrived is not what was sent")
    os.makedirs(base, exist_ok=True)
    with tarfile.open(archive) as files:
        files.extractall(base)
    os.remove(archive)
    # A notebook's kernel tells programs that they may draw on a terminal.
    env = {{name: value for name, value in os.environ.items()
           if name not in ("FORCE_COLOR", "CLICOLOR_FORCE", "MPLBACKEND")}}
    with open(os.path.join(base, "remote.log"), "ab") as log:
        process = subprocess.Popen([sys.executable, os.path.join(base, "code/rlvr/colab/remote.py"), base],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True)
    state = os.path.join(base, "state.json")
    for _ in range(600):
        if os.path.exists(state):
            break
        time.sleep(0.1)
    else:
        with open(os.path.join(base, "remote.log")) as log:
            raise RuntimeError("the supervisor on the VM did not start: " + log.read()[-300:])
    return {{"base": base, "pid": process.pid}}
"""

STOP = """
def main():
    import json, os, signal
    with open({base!r} + "/state.json") as file:
        state = json.load(file)
    if state["phase"] != "ended":
        os.kill(state["pid"], signal.SIGTERM)
"""

CLEAR = """
def main():
    import json, os, shutil, signal
    with open({base!r} + "/state.json") as file:
        pid = json.load(file)["pid"]
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass
    shutil.rmtree({base!r})
"""


class Options(NamedTuple):
    """What `train --on-colab` was asked for."""

    gpu: str
    auth: str = ""
    max_restarts: int = 3
    session: str = ""
    """The VM of `colab up`, which stays up; empty: one of this run's own."""


def supervise(run: Run, stop: Sequence[int] = ()) -> int:
    """See a cycle through on a VM, and leave a status that says how it ended.

    With `stop` set it only sees to the end what is on a VM already.
    """
    status = StatusFile(run.files.status, control.status_of(run))
    signals = list(stop)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: signals.append(number))
    code, message = 1, ""
    try:
        launch = records.read(run.files.launch, Launch)
        options = Options(**launch.colab)
        if stop:
            status.write(state="running", waiting_for="")
        else:
            supervisor.wait_turn(run, launch, status, signals)
    except supervisor.Stopped:
        return 143  # it is still pending: whoever takes a run out of the queue writes that down
    except RlvrError as error:
        status.write(state="failed", finished=time.time(), exit_code=2, waiting_for="", message=str(error))
        return 2
    status.write(message=f"on Colab {options.gpu}")
    bundle.clear_leftovers(run.files)
    try:
        code = see_through(run, launch, options, status, signals)
        if code not in (0, *supervisor.EXIT_KILLED):
            message = supervisor.last_words(run.files.log)
            if code > 128:
                ended_by = signal.Signals(code - 128).name
                message = f"its program was ended by {ended_by}; its last words: {message}"
    except supervisor.Stopped:
        code, message = 143, supervisor.stopped_text(run, status.status)
    except RlvrError as error:
        code, message = 2, str(error)
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
        Stopped: when that was asked for and nothing runs on a VM.
        RlvrError: when no VM is to be had, or it was lost too often.
    """
    restarts = 0
    session = attach_patiently(run, options, status, stop)
    while True:
        try:
            if session is None:
                session = provision(run, launch, options, status, stop)
            return follow(run, session, options, status, stop)
        except Gone as gone:
            session, why = None, str(gone)
        except (Refused, Unreachable) as refused:  # a VM that runs does not get here: `follow` waits for the network
            if not restarts:
                raise
            why = str(refused)
            say(f"{refused}: asking again in {REFUSED_POLLS * POLL_S / 60:.0f} min")
            sleep(REFUSED_POLLS * POLL_S, unless=stop)
        let_go(run, options)
        check_stop(stop)
        restarts += 1
        if restarts > options.max_restarts:
            raise RlvrError(
                f"the VM was lost and max_restarts = {options.max_restarts} used up ({why}): "
                f"rlvrctl.py resume {run.name} tries again from the last mirrored checkpoint"
            )
        say(f"the VM is gone: a new one goes on from the last mirrored checkpoint (restart {restarts})")


def check_stop(stop: Sequence[int]) -> None:
    if stop:
        raise supervisor.Stopped


def attach_patiently(run: Run, options: Options, status: StatusFile, stop: Sequence[int]) -> ColabSession | None:
    """Like `attach`; while Colab cannot be asked, the VM is neither given up nor is another rented.

    Raises:
        RlvrError: when that takes too long.
    """
    begin = time.monotonic()
    while True:
        try:
            return attach(run, options)
        except RlvrError as error:
            check_stop(stop)
            if time.monotonic() - begin > UNREACHABLE_LIMIT_S:
                raise
            say(str(error))
            status.write(message=f"on Colab {options.gpu}: tried again: {error}")
            sleep(POLL_S, unless=stop)


def attach(run: Run, options: Options) -> ColabSession | None:
    """What an earlier supervisor of this run has left running on a VM, if it is still there and of use.

    Raises:
        RlvrError: when Colab cannot be asked.
    """
    if not run.files.colab.exists():
        return None
    known = records.read(run.files.colab, ColabSession)
    found = client.find(known.session, known.endpoint, options.auth)
    if found is None:
        run.files.colab.unlink()
        return None
    if found.name == known.session and known.base:
        with contextlib.suppress(Gone):
            state = mirroring.mirror(run, known, options.auth)
            if state["phase"] != "ended" or state["code"] == 0:
                say(f"found VM {known.session} again: {state['phase']}")
                return known
            say(f"found VM {known.session} again, where the last attempt has ended: a new one begins")
    let_go(run, options)
    return None


def let_go(run: Run, options: Options) -> None:
    """Forget a VM that is of no more use, and make sure that it costs nothing."""
    if warning := tear_down(run, options):
        raise RlvrError(warning)


def provision(run: Run, launch: Launch, options: Options, status: StatusFile, stop: Sequence[int]) -> ColabSession:
    """Rent a VM, send everything up and start the supervisor there.

    Raises:
        Stopped: when that was asked for meanwhile.
        RlvrError: when no VM is to be had, or something of the run cannot be sent.
    """
    check_stop(stop)
    config, _ = resolve(TrainConfig, read_layers(run.files.config, TrainConfig))
    parent = parent_of(run, launch)
    checkpoint = last_checkpoint(run.files)
    spec = bundle.make_spec(
        config, bundle.cycle_there(run), bundle.parent_there(run, parent), resume=checkpoint is not None
    )
    if parent is not None:
        cycles.link_parent(run.files, parent)
    # No other attempt, on a VM that stays up, may have this folder.
    folder_name = re.sub(r"[^\w-]", "-", f"rlvr-{run.model}-{run.name}-{secrets.token_hex(3)}")
    with tempfile.TemporaryDirectory(prefix="rlvr-colab-") as folder:
        # Before the VM: what cannot be packed costs nothing.
        archive = Path(folder) / f"{folder_name}.tar.gz"
        try:
            bundle.make_bundle(archive, run.files, spec=spec, parent=parent, checkpoint=checkpoint)
        except OSError as error:
            raise RlvrError(f"{error.filename or folder}: cannot be packed for the VM: {error.strerror}") from None
        mebibytes, sha256 = archive.stat().st_size / 2**20, hashlib.sha256(archive.read_bytes()).hexdigest()
        parts = bundle.cut(archive, mirroring.PART_BYTES)
        session = rent(run, options, status)
        check_stop(stop)
        status.write(message=f"on Colab {options.gpu}: sending the project up")
        say(f"sending {mebibytes:.1f} MiB up")
        for part in parts:
            patiently(client.upload, session.session, part, f"content/{part.name}", options.auth)
            check_stop(stop)
    start = START.format(name=folder_name, parts=len(parts), sha256=sha256)
    started = client.execute(session.session, start, options.auth)
    session = msgspec.structs.replace(session, base=started["base"])
    records.write(run.files.colab, session)
    return session


def rent(run: Run, options: Options, status: StatusFile) -> ColabSession:
    """The VM of `colab up`, where it is still there; else a new one.

    Raises:
        RlvrError: when no VM is to be had.
    """
    own = not options.session
    name = options.session or session_name(f"{run.model[:20]}-{run.name}")
    session = ColabSession(session=name, gpu=options.gpu, base="", own=own, started=time.time())
    found = None if own else client.find(name, "", options.auth)
    if found is None:
        status.write(message=f"on Colab {options.gpu}: waiting for a VM")
        kept = None if own else forget_kept(options)
        before = client.usage(options.auth)
        # Written first: were this process ended now, the name would still be known.
        records.write(run.files.colab, session)
        try:
            found = client.new(name, options.gpu, options.auth)
        except Refused:
            run.files.colab.unlink()  # there is none to give back
            raise
        session = msgspec.structs.replace(session, endpoint=found.endpoint)
        records.write(run.files.colab, session)
        if kept is not None:
            records.write(cycles.COLAB_FILE, msgspec.structs.replace(kept, endpoint=found.endpoint))
        usage = client.usage(options.auth)
        rate = costs.remember_rate(options.gpu, before, usage)
        session = msgspec.structs.replace(session, per_hour=rate)
        say(f"VM {name} is up; balance {usage.balance:g}, {costs.rate_text(rate, usage)} from now on")
    session = msgspec.structs.replace(session, endpoint=found.endpoint)
    records.write(run.files.colab, session)
    return session


def forget_kept(options: Options) -> ColabSession | None:
    """Make sure that the VM of `colab up`, which is lost, costs nothing; what is known of it.

    Raises:
        RlvrError: when it is there still.
    """
    if not cycles.COLAB_FILE.exists():
        return None
    kept = records.read(cycles.COLAB_FILE, ColabSession)
    if kept.session != options.session:
        return None
    if client.stop(kept.session, kept.endpoint, options.auth) == client.LISTED:
        raise RlvrError(f"VM {kept.session} does not work and cannot be stopped: rlvrctl.py colab down")
    return kept


def patiently(call: Any, *arguments: Any) -> None:
    """Try again what may be done twice, should the network be away for a moment."""
    for _ in range(4):
        try:
            return call(*arguments)
        except Gone:
            raise
        except RlvrError as error:
            say(str(error))
            time.sleep(POLL_S)
    call(*arguments)


def session_name(what: str) -> str:
    """A name for a VM that no other has, which tells the folder that it was rented from."""
    tag = folder_tag()
    return re.sub(r"[^\w-]", "-", f"{SESSION_PREFIX}{tag}-{what}-{secrets.token_hex(2)}").replace("_", "-")


def folder_tag() -> str:
    """Four letters of this `training/`: others of the same account may have VMs that are none of our business."""
    return hashlib.sha256(os.fsencode(cycles.TRAINING_DIR.resolve())).hexdigest()[:4]


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
        RlvrError: when it cannot be reached for too long, or the VM could not do its part.
    """
    progress = supervisor.Progress(run)
    passed_on = False
    reached = time.monotonic()
    while True:
        try:
            if stop and not passed_on:
                say("asking the trainer on the VM to stop, with a checkpoint")
                mirroring.ask(session, STOP.format(base=session.base), options.auth)
                passed_on = True
            state = mirroring.mirror(run, session, options.auth)
            reached = time.monotonic()
            message = f"on Colab {options.gpu}: {state['phase']}"
        except Unreachable as error:
            away_s = time.monotonic() - reached
            if away_s > UNREACHABLE_LIMIT_S:
                raise RlvrError(f"given up after {UNREACHABLE_LIMIT_S / 3600:g} h: {error}") from None
            say(str(error))
            message = f"on Colab {options.gpu}: not reached for {away_s:.0f} s, tried again: {error}"
            state: dict[str, Any] = {"phase": ""}
        progress.advance(status.status)
        status.write(message=message)
        if state["phase"] == "ended":
            if state["error"]:
                raise RlvrError(f"on the VM: {state['error']}: see rlvrctl.py log {run.name}")
            return state["code"]
        sleep(POLL_S, unless=[] if passed_on else stop)


def sleep(seconds: float, unless: Sequence[int]) -> None:
    """Sleep, but no longer than until `unless` holds something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not unless:
        time.sleep(0.2)


def tear_down(run: Run, options: Options) -> str:
    """Give the VM back, or clear the one of `colab up`; a warning when it cannot be shown to be gone."""
    if not run.files.colab.exists():
        return ""
    session = records.read(run.files.colab, ColabSession)
    if not session.own:
        if session.base:
            with contextlib.suppress(RlvrError):
                client.execute(session.session, CLEAR.format(base=session.base), options.auth)
        run.files.colab.unlink()
        return ""
    for _ in range(TEAR_DOWN_ATTEMPTS):
        try:
            if outcome := client.stop(session.session, session.endpoint, options.auth):
                run.files.colab.unlink()
                say(f"VM {session.session} {outcome}{costs.cost_of(session)}")
                return ""
            say(f"VM {session.session} is still on Colab's list")
        except RlvrError as error:
            say(f"VM {session.session} could not be stopped: {error}")
        time.sleep(POLL_S)
    warning = f"WARNING: VM {session.session} may still cost money: rlvrctl.py colab stop {run.name} gives it back."
    say(warning)
    return warning


def say(text: str) -> None:
    """A line of ours in the run's log, apart from the trainer's."""
    print(f"{supervisor.OWN_WORDS}{time.strftime('%H:%M:%S')}] {text}", flush=True)


if __name__ == "__main__":
    sys.exit(supervisor.main(supervise))
