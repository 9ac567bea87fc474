"""Commands about rented Colab VMs: `colab up`, `push`, `train`, `ps`, `log`, `trace`, `pull`, `stop`, `down`.

`train --on-colab` needs none of them: it rents a VM for one run and gives it back. These keep one VM for several runs.
"""

import argparse
import json
import secrets
import sys
import tarfile
import tempfile
from pathlib import Path

from rlvr import cycles, records, supervisor
from rlvr.cli import RUN_HELP, Command, follow, start
from rlvr.colab import client
from rlvr.colab import supervisor as colab_supervisor
from rlvr.cycles import COLAB_FILE, Run
from rlvr.errors import RlvrError
from rlvr.records import ColabSession
from rlvr.status import LIVING

DEFAULT_GPU = "A100"


def arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    up = verbs.add_parser("up", help="rent a VM that stays until `down`; again: nothing more is rented")
    add_gpu(up)
    push = verbs.add_parser("push", help="copy the adapter and outcomes of a cycle to that VM")
    push.add_argument("run", metavar="RUN", help=RUN_HELP)
    train = verbs.add_parser("train", help="the next cycle on that VM, which stays up")
    start.train_arguments(train)
    ps = verbs.add_parser("ps", help="every VM that costs money, and what runs on it")
    ps.add_argument("--json", action="store_true", help="a list of objects: session, endpoint, hardware, run")
    log = verbs.add_parser("log", help="the log of a run, as `log` prints it")
    follow.log_arguments(log)
    trace = verbs.add_parser("trace", help="the completions of a run, as `trace` prints them")
    follow.trace_arguments(trace)
    pull = verbs.add_parser("pull", help="fetch what is new of a run whose supervisor here is gone")
    pull.add_argument("run", metavar="RUN", help=RUN_HELP)
    pull.add_argument("--checkpoints", action="store_true", help="its checkpoints too")
    stop = verbs.add_parser("stop", help="stop a run with a checkpoint and give its VM back")
    stop.add_argument("run", metavar="RUN", help=RUN_HELP)
    down = verbs.add_parser("down", help="give the VM of `up` back")
    down.add_argument("--all", action="store_true", help="also every VM of ours that no living run uses")
    for each in (push, ps, pull, stop, down):
        add_auth(each)


def add_gpu(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpu", metavar="GPU", help=f"{', '.join(client.GPUS)}; default {DEFAULT_GPU}")
    add_auth(parser)


def add_auth(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--auth", choices=client.AUTHS, default="", help="how the Colab client logs in")


def run_verb(args: argparse.Namespace) -> int:
    return VERBS[args.verb](args)


def up(args: argparse.Namespace) -> int:
    gpu = client.check_gpu(args.gpu or DEFAULT_GPU)
    kept = kept_session(args.auth)
    if kept is not None:
        if args.gpu and kept.gpu != gpu:
            raise RlvrError(f"VM {kept.session} with a {kept.gpu} is up already: rlvrctl.py colab down first")
        print(f"VM {kept.session} ({kept.gpu}) is up already.")
        return 0
    usage = colab_supervisor.check_account(colab_supervisor.Options(gpu, args.auth))
    print(f"Balance {usage.balance:g} compute units. Renting a {gpu} ...", flush=True)
    name = f"{colab_supervisor.SESSION_PREFIX}up-{secrets.token_hex(2)}"
    cycles.TRAINING_DIR.mkdir(exist_ok=True)
    # Written first: were this command interrupted now, `down` would still know the name.
    records.write(COLAB_FILE, ColabSession(session=name, gpu=gpu, base="", own=False))
    client.new(name, gpu, args.auth)
    print(f"VM {name} is up, {client.usage(args.auth).per_hour:g} compute units an hour from now on.")
    start.say_next("rlvrctl.py colab train", "rlvrctl.py colab ps", "rlvrctl.py colab down")
    return 0


def kept_session(auth: str) -> ColabSession | None:
    """The VM that `up` rented, if it is still there."""
    if not COLAB_FILE.exists():
        return None
    kept = records.read(COLAB_FILE, ColabSession)
    return kept if any(each.name == kept.session for each in client.sessions(auth)) else None


def needed_session(auth: str) -> ColabSession:
    kept = kept_session(auth)
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
    kept = needed_session(args.auth)
    args.on_colab, args.gpu = True, kept.gpu
    return start.train(args, session=kept.session)


def ps(args: argparse.Namespace) -> int:
    sessions = client.sessions(args.auth)
    users = used_sessions()
    if args.json:
        rows = [{**each._asdict(), "run": users.get(each.name, "")} for each in sessions]
        print(json.dumps([{"session": row.pop("name"), **row} for row in rows]))
        return 0
    if not sessions:
        print("No VM is rented.")
        return 0
    for each in sessions:
        user = users.get(each.name, "nothing of ours runs on it")
        print(f"{each.name:<24} {each.hardware:<6} {each.endpoint:<20} {user}")
    usage = client.usage(args.auth)
    print(f"{usage.per_hour:g} compute units an hour, {usage.balance:g} left.")
    warn_of_idle(sessions, users)
    return 0


def warn_of_idle(sessions: list[client.Session], users: dict[str, str]) -> None:
    """Say loudly which VMs cost money for nothing."""
    for each in sessions:
        if each.name == client.ORPHAN:
            print(
                f"WARNING: VM {each.endpoint} costs money and has no name here: stop it on colab.research.google.com "
                "(Manage sessions)",
                file=sys.stderr,
            )
        elif each.name not in users and each.name.startswith(colab_supervisor.SESSION_PREFIX):
            print(
                f"WARNING: VM {each.name} costs money and nothing runs on it: rlvrctl.py colab down --all",
                file=sys.stderr,
            )


def used_sessions() -> dict[str, str]:
    """Session -> what it is there for: a living run, or `colab up`."""
    users = {}
    if COLAB_FILE.exists():
        users[records.read(COLAB_FILE, ColabSession).session] = "kept by colab up"
    for run in colab_runs():
        session = records.read(run.files.colab, ColabSession).session
        state = supervisor.status_of(run).state
        if state in LIVING:
            users[session] = str(run)
        else:
            users.setdefault(session, f"{run} ({state}: rlvrctl.py resume {run.name} finds it again)")
    return users


def colab_runs() -> list[Run]:
    """The runs that have a VM."""
    runs = [run for model in cycles.model_names() for run in cycles.cycle_runs(model)]
    return [run for run in runs if run.files.colab.exists()]


def log(args: argparse.Namespace) -> int:
    return follow.log(args)


def trace(args: argparse.Namespace) -> int:
    return follow.trace(args)


def pull(args: argparse.Namespace) -> int:
    run = cycles.find_run(args.run, args.model)
    status = supervisor.status_of(run)
    if status.state in LIVING:
        print(f"{run} is {status.state}: its supervisor fetches everything as it comes.")
        return 0
    if not run.files.colab.exists():
        raise RlvrError(f"{run} has no VM any more: what was fetched of it lies in {run.folder}")
    session = records.read(run.files.colab, ColabSession)
    options = colab_supervisor.Options(session.gpu, args.auth)
    state = colab_supervisor.mirror(run, session, options, checkpoints=args.checkpoints)
    print(f"{run}: fetched; on the VM: {state['phase']}.")
    return 0


def stop(args: argparse.Namespace) -> int:
    run = cycles.find_run(args.run, args.model)
    if supervisor.status_of(run).state in LIVING:
        print(f"{run}: {supervisor.kill(run)}; its VM is given back then")
        return 0
    if not run.files.colab.exists():
        print(f"{run} has no VM.")
        return 0
    session = records.read(run.files.colab, ColabSession)
    give_back(session.session, args.auth)
    run.files.colab.unlink()
    return 0


def down(args: argparse.Namespace) -> int:
    if COLAB_FILE.exists():
        kept = records.read(COLAB_FILE, ColabSession)
        give_back(kept.session, args.auth)
        COLAB_FILE.unlink()
    elif not args.all:
        print("No VM was rented with colab up.")
    if args.all:
        living = {name for name, user in used_sessions().items() if "(" not in user}
        for each in client.sessions(args.auth):
            if each.name.startswith(colab_supervisor.SESSION_PREFIX) and each.name not in living:
                give_back(each.name, args.auth)
    warn_of_idle(client.sessions(args.auth), used_sessions())
    return 0


def give_back(session: str, auth: str) -> None:
    if not client.stop(session, auth):
        raise RlvrError(f"VM {session} is still on Colab's list and costs money: try again, or stop it on the website")
    print(f"VM {session} is given back.")


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
            "rlvrctl.py colab down",
        ),
        "Rented Colab VMs, through the client google-colab-cli: what runs there is mirrored into training/.",
    )
}
