"""Commands about rented Colab VMs: `colab up`, `push`, `train`, `ps`, `log`, `trace`, `pull`, `stop`, `down`.

`train --on-colab` needs none of them: it rents a VM for one run and gives it back. These keep one VM for several runs.
"""

import argparse
import contextlib
import json
import signal
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import msgspec

from rlvr import control, cycles, records
from rlvr.cli import RUN_HELP, Command, follow, start
from rlvr.colab import bundle, client, costs, vms
from rlvr.colab import mirror as mirroring
from rlvr.colab import supervisor as colab_supervisor
from rlvr.cycles import COLAB_FILE, Run
from rlvr.errors import RlvrError
from rlvr.records import ColabSession, Launch
from rlvr.status import LIVING, StatusFile


def arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    up = verbs.add_parser("up", help="rent a VM that stays until `down`; again: nothing more is rented")
    add_gpu(up)
    push = verbs.add_parser("push", help="copy an adapter to that VM for a notebook of yours; train needs no push")
    push.add_argument("run", metavar="RUN", help=RUN_HELP)
    train = verbs.add_parser("train", help="the next cycle on that VM, which stays up")
    start.train_arguments(train)
    ps = verbs.add_parser("ps", help="every VM that costs money, and what runs on it")
    ps.add_argument("--json", action="store_true", help="a list of objects: session, endpoint, hardware, run, in_use")
    log = verbs.add_parser("log", help="the log of a run, as `log` prints it")
    follow.log_arguments(log)
    trace = verbs.add_parser("trace", help="the completions of a run, as `trace` prints them")
    follow.trace_arguments(trace)
    pull = verbs.add_parser("pull", help="fetch what is new of a run whose supervisor here is gone")
    pull.add_argument("run", metavar="RUN", help=RUN_HELP)
    pull.add_argument("--checkpoints", action="store_true", help="its checkpoints too")
    stop = verbs.add_parser("stop", help="stop a run with a checkpoint and give its own VM back; or just a VM")
    stop.add_argument("run", metavar="RUN|VM", help=f"{RUN_HELP}; or the name or endpoint of a VM that ps lists")
    down = verbs.add_parser("down", help="give the VM of `up` back")
    down.add_argument("--all", action="store_true", help="also every VM of this folder without a run to save")
    for each in (push, ps, pull, stop, down):
        add_auth(each)
    for each in verbs.choices.values():
        each.add_argument("--model", metavar="MODEL", default=argparse.SUPPRESS, help="of which a RUN is")


def add_gpu(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpu", metavar="GPU", help=f"{', '.join(client.GPUS)}; default {start.DEFAULT_GPU}")
    add_auth(parser)


def add_auth(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--auth", choices=client.AUTHS, default="", help="how the Colab client logs in")


def run_verb(args: argparse.Namespace) -> int:
    return VERBS[args.verb](args)


def up(args: argparse.Namespace) -> int:
    gpu = client.check_gpu(args.gpu or start.DEFAULT_GPU)
    kept = vms.kept_session(args.auth)
    if kept is not None:
        if args.gpu:
            refuse_other_gpu(kept, gpu)
        print(f"VM {kept.session} ({kept.gpu}) is up already.")
        return 0
    usage = costs.check_account(gpu, args.auth)
    if not cycles.model_names():
        raise RlvrError("no model here to train: make one with rlvrctl.py init --model NAME, then rent a VM")
    cost = costs.cost_text(gpu, usage)
    print(f"Balance {usage.balance:g} compute units. {cost} Renting {client.one(gpu)} ...", flush=True)
    name = colab_supervisor.session_name("up")
    kept = ColabSession(session=name, gpu=gpu, base="", own=False)
    # Written first: were this command interrupted now, `down` would still know the name.
    records.write(COLAB_FILE, kept)
    try:
        rented = client.new(name, gpu, args.auth)
    except client.Refused:
        COLAB_FILE.unlink()
        raise
    records.write(COLAB_FILE, msgspec.structs.replace(kept, endpoint=rented.endpoint, started=time.time()))
    after = client.usage(args.auth)
    rate = costs.remember_rate(gpu, usage, after)
    print(f"VM {name} is up, {costs.rate_text(rate, after)} from now on, used or not.")
    start.say_next("rlvrctl.py colab train", "rlvrctl.py colab ps", "rlvrctl.py colab down")
    return 0


def refuse_other_gpu(kept: ColabSession, gpu: str) -> None:
    if kept.gpu != gpu:
        raise RlvrError(f"VM {kept.session} with {client.one(kept.gpu)} is up already: rlvrctl.py colab down first")


def needed_session(auth: str) -> ColabSession:
    kept = vms.kept_session(auth)
    if kept is None:
        raise RlvrError("no VM is up: rlvrctl.py colab up --gpu A100")
    return kept


def push(args: argparse.Namespace) -> int:
    run = cycles.find_run(args.run, args.model)
    if run.kind != "train" or not cycles.has_adapter(run):
        raise RlvrError(f"{run} has no adapter to copy")
    kept = needed_session(args.auth)
    with tempfile.TemporaryDirectory(prefix="rlvr-colab-") as folder:
        archive = Path(folder) / f"{run.model}-{run.name}-adapter.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(run.files.adapter, f"{run.model}/{run.name}/{run.files.adapter.name}")
            if run.files.outcomes.exists():
                tar.add(run.files.outcomes, f"{run.model}/{run.name}/{run.files.outcomes.name}")
        client.upload(kept.session, archive, f"content/{archive.name}", args.auth)
        print(f"{run}: {archive.stat().st_size / 2**20:.1f} MiB at /content/{archive.name} of {kept.session}.")
    return 0


def train(args: argparse.Namespace) -> int:
    kept = needed_session(args.auth or "")
    if args.gpu:
        refuse_other_gpu(kept, client.check_gpu(args.gpu))
    args.on_colab, args.gpu = True, kept.gpu
    return start.train(args, session=kept.session)


def ps(args: argparse.Namespace) -> int:
    sessions = client.sessions(args.auth)
    users = vms.users_of_vms()
    if args.json:
        rows = [
            {
                "session": each.name,
                "endpoint": each.endpoint,
                "hardware": each.hardware,
                "run": user.run,
                "in_use": user.in_use,
            }
            for each in sessions
            for user in [vms.user_of(each, users)]
        ]
        print(json.dumps(rows))
    elif not sessions:
        print("No VM is rented.")
    else:
        for each in sessions:
            what = vms.user_of(each, users).what or "nothing of this folder"
            print(f"{each.name:<24} {each.hardware:<6} {each.endpoint:<20} {what}")
        usage = client.usage(args.auth)
        print(f"{usage.per_hour:g} compute units an hour, {usage.balance:g} left.")
    warn_of_idle(sessions, users)
    return 0


def warn_of_idle(sessions: list[client.Session], users: dict[str, vms.User]) -> None:
    """Say loudly which VMs cost money for nothing."""
    for each in sessions:
        user = vms.user_of(each, users)
        stop_it = f"rlvrctl.py colab stop {each.endpoint if each.name == client.ORPHAN else each.name} gives it back"
        if user.in_use:
            continue
        if user.has_work:
            what = f"{user.what}: {user.way_out}"
        elif user.what:
            what = f"{user.what}: {'rlvrctl.py colab down gives it back' if user.kept else stop_it}"
        elif each.name == client.ORPHAN:
            what = f"it has no name here: unless you use it elsewhere, {stop_it}"
        elif each.name.startswith(vms.our_prefix()):
            what = f"nothing runs on it: {stop_it}"
        else:
            continue  # a person's own, or of another folder
        print(f"WARNING: VM {each.endpoint} costs money, and {what}", file=sys.stderr)


def log(args: argparse.Namespace) -> int:
    return follow.log(args)


def trace(args: argparse.Namespace) -> int:
    return follow.trace(args)


def pull(args: argparse.Namespace) -> int:
    run = cycles.find_run(args.run, args.model)
    status = control.status_of(run)
    if status.state in LIVING:
        print(f"{run} is {status.state}: its supervisor fetches everything as it comes.")
        return 0
    session = session_of(run)
    if session is None or not session.base:
        if not control.on_colab(run):
            raise RlvrError(f"{run} did not run on Colab")
        print(f"{run} is {status.state} and has no VM: what was fetched of it lies in {run.folder}.")
        return 0
    bundle.clear_leftovers(run.files)
    state = mirroring.mirror(run, session, args.auth, checkpoints=args.checkpoints)
    steps = control.status_of(run).step
    print(f"{run}: fetched up to step {steps}; on the VM: {state['phase']}.")
    start.say_next(f"rlvrctl.py resume {run.name}", f"rlvrctl.py colab stop {run.name}")
    return 0


def session_of(run: Run) -> ColabSession | None:
    return records.read(run.files.colab, ColabSession) if run.files.colab.exists() else None


STAYS_UP = "the VM of colab up stays up: rlvrctl.py colab down gives it back"


def stop(args: argparse.Namespace) -> int:
    for each in client.sessions(args.auth):
        if args.run in (each.name, each.endpoint) and args.run != client.ORPHAN:
            return stop_vm(each, args.auth)
    run = cycles.find_run(args.run, args.model)
    status = control.status_of(run)
    if status.state in LIVING:
        said = control.kill(run)
        if said != control.TAKEN_OUT and control.on_colab(run):
            kept = records.read(run.files.launch, Launch).colab["session"]
            said += f"; {STAYS_UP if kept else 'then its VM is given back'}"
        print(f"{run}: {said}")
        return 0
    session = session_of(run)
    if session is None:
        print(f"{run} has no VM.")
        return 0
    with cycles.locked(run.training_dir):
        status = control.status_of(run)
        if status.state in LIVING:
            raise RlvrError(f"{run} is {status.state} again: rlvrctl.py kill {run.name} stops it")
        StatusFile(run.files.status, status).write(state="running", message="its VM is given back")
    then = "the VM is given back" if session.own else STAYS_UP
    print(f"{run}: on {session.session} a checkpoint is saved and fetched; {then} ...", flush=True)
    with run.files.log.open("a", encoding="utf-8") as log_file, contextlib.redirect_stdout(log_file):
        colab_supervisor.supervise(run, stop=[signal.SIGTERM])
    status = control.status_of(run)
    print(f"{run} is {status.state}{': ' + status.message if status.message else ''}.")
    return 1 if run.files.colab.exists() else 0


def stop_vm(session: client.Session, auth: str) -> int:
    """Give a VM back that no run uses."""
    vms.refuse_used(session)
    give_back(session, auth)
    return 0


def down(args: argparse.Namespace) -> int:
    if COLAB_FILE.exists():
        kept = records.read(COLAB_FILE, ColabSession)
        if users := vms.runs_on(kept.session):
            names = " ".join(run.name for run in users)
            raise RlvrError(f"VM {kept.session} is used by {names}: rlvrctl.py kill {names} first")
        session = client.Session(kept.session, kept.endpoint, kept.gpu)
        user = vms.user_of(session, vms.users_of_vms())
        if user.has_work and client.find(kept.session, kept.endpoint, args.auth):
            raise RlvrError(f"VM {kept.session}: {user.what}: {user.way_out}")
        give_back(session, auth=args.auth)
        COLAB_FILE.unlink()
    elif not args.all:
        print("No VM was rented with colab up.")
    users, spared = vms.users_of_vms(), False
    for each in client.sessions(args.auth) if args.all else ():
        user = vms.user_of(each, users)
        spared |= user.has_work
        if not (user.in_use or user.has_work) and (user.run or each.name.startswith(vms.our_prefix())):
            give_back(each, args.auth)
    warn_of_idle(client.sessions(args.auth), vms.users_of_vms())
    return 1 if spared else 0


def give_back(session: client.Session, auth: str) -> None:
    outcome = vms.give_back(session, auth)
    print(f"VM {session.name if session.name != client.ORPHAN else session.endpoint} {outcome}.")


VERBS = {
    "up": up,
    "push": push,
    "train": train,
    "ps": ps,
    "log": log,
    "trace": trace,
    "pull": pull,
    "stop": stop,
    "down": down,
}

COMMANDS = {
    "colab": Command(
        arguments,
        run_verb,
        (
            "rlvrctl.py train --on-colab --gpu A100",
            "rlvrctl.py colab up --gpu L4",
            "rlvrctl.py colab train --max-steps 100",
            "rlvrctl.py colab ps",
            "rlvrctl.py colab stop 006",
            "rlvrctl.py colab down",
        ),
        "Rented Colab VMs, through the client google-colab-cli: what runs there is mirrored into training/.",
    )
}
