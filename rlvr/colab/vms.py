"""The rented VMs: what each is there for, and giving one back. For the commands and the dashboard alike."""

from typing import NamedTuple

from rlvr import cycles, records, supervisor
from rlvr.colab import client
from rlvr.colab import supervisor as colab_supervisor
from rlvr.cycles import COLAB_FILE, Run
from rlvr.errors import RlvrError
from rlvr.records import ColabSession, Launch
from rlvr.status import LIVING


class User(NamedTuple):
    """Who rented a VM from this folder: a run, or, with `run` empty, `colab up`; `what` is for a person."""

    run: str
    what: str
    in_use: bool


def our_prefix() -> str:
    """What the names of all VMs begin with that were rented from this folder."""
    return f"{colab_supervisor.SESSION_PREFIX}{colab_supervisor.folder_tag()}-"


def kept_session(auth: str = "") -> ColabSession | None:
    """The VM that `up` rented, if it is still there."""
    if not COLAB_FILE.exists():
        return None
    kept = records.read(COLAB_FILE, ColabSession)
    found = client.find(kept.session, kept.endpoint, auth)
    return kept if found is not None and found.name == kept.session else None


def users_of_vms() -> dict[str, User]:
    """The endpoint, and the name, of a VM -> who rented it here."""
    users = {}
    kept = records.read(COLAB_FILE, ColabSession) if COLAB_FILE.exists() else None
    if kept is not None:
        users[kept.session] = users[kept.endpoint] = User("", "it is kept by colab up and nothing runs on it", False)
    for run in colab_runs():
        session = records.read(run.files.colab, ColabSession)
        state = supervisor.status_of(run).state
        if state == "running":
            user = User(str(run), f"{run} runs on it", True)
        elif session.own:
            goes_on = "" if state == "done" else f", which rlvrctl.py resume {run.name} would go on with"
            user = User(str(run), f"it is left of {run}, {state}{goes_on}", False)
        else:
            continue
        users[session.session] = users[session.endpoint] = user
    users.pop("", None)
    return users


def user_of(session: client.Session, users: dict[str, User]) -> User:
    return users.get(session.endpoint) or users.get(session.name) or User("", "", False)


def colab_runs() -> list[Run]:
    """The runs that have a VM."""
    runs = [run for model in cycles.model_names() for run in cycles.cycle_runs(model)]
    return [run for run in runs if run.files.colab.exists()]


def runs_on(session: str) -> list[Run]:
    """The living runs that are on this VM or wait for it."""
    found = []
    for model in cycles.model_names():
        for run in cycles.cycle_runs(model):
            if supervisor.on_colab(run) and supervisor.status_of(run).state in LIVING:
                launch = records.read(run.files.launch, Launch)
                found += [run] if launch.colab["session"] == session else []
    return found


def refuse_used(session: client.Session) -> None:
    """Raise RlvrError for a VM that a run uses, or that `colab up` keeps."""
    user = user_of(session, users_of_vms())
    if user.in_use:
        raise RlvrError(f"{user.run} runs on it: rlvrctl.py colab stop {user.run} stops both")
    if user.what and not user.run:
        raise RlvrError("it is kept by colab up: rlvrctl.py colab down gives it back")


def give_back(session: client.Session, auth: str = "") -> None:
    """Give a VM back, and forget which run had it.

    Raises:
        RlvrError: when it is still on Colab's list.
    """
    if not client.stop(session.name, session.endpoint, auth):
        raise RlvrError(
            f"VM {session.name} ({session.endpoint}) is still on Colab's list and costs money: try again, or stop it "
            "on colab.research.google.com (Manage sessions)"
        )
    for run in colab_runs():
        if session.name == records.read(run.files.colab, ColabSession).session:
            run.files.colab.unlink()
