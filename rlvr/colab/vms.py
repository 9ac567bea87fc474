"""The rented VMs: what each is there for, and giving one back. For the commands and the dashboard alike."""

from typing import NamedTuple

from rlvr import control, cycles, records
from rlvr.colab import client
from rlvr.colab import supervisor as colab_supervisor
from rlvr.cycles import COLAB_FILE, Run
from rlvr.errors import RlvrError
from rlvr.records import ColabSession, Launch
from rlvr.status import LIVING

MAY_WORK = ("lost", "killed")
"""States of a run whose trainer on the VM may go on, with what was not fetched yet."""


class User(NamedTuple):
    """What a VM that was rented from this folder is there for; `what` is for a person.

    `run` is the run that is or was on it, "" for none. `kept`: `colab up` rented it. `in_use`: the run is living.
    `has_work`: what its run did may not be here.
    """

    run: str
    what: str
    in_use: bool
    kept: bool = False
    has_work: bool = False

    @property
    def way_out(self) -> str:
        """How the work on it, `has_work`, is not lost."""
        return (
            f"rlvrctl.py resume {self.run} goes on with it, rlvrctl.py colab stop {self.run} saves a checkpoint, "
            f"fetches it and {'clears the VM' if self.kept else 'gives the VM back'}"
        )


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
    """The endpoint of a VM, and its name -> what it is there for."""
    users: dict[str, User] = {}
    kept = records.read(COLAB_FILE, ColabSession) if COLAB_FILE.exists() else None
    if kept is not None:
        nothing = User("", "it is kept by colab up and nothing runs on it", False, kept=True)
        users[kept.session] = users[kept.endpoint] = nothing
    for run in colab_runs():
        session = records.read(run.files.colab, ColabSession)
        state = control.status_of(run).state
        on_kept = not session.own
        if state in LIVING:
            does = "runs on it" if state == "running" else "is going to run on it"
            user = User(str(run), f"{run} {does}", True, on_kept)
        elif on_kept and kept is not None and session.endpoint != kept.endpoint:
            continue  # what it ran on is gone: the one of that name came after it
        elif state in MAY_WORK:
            user = User(str(run), f"the {state} run {run} may still be at work on it", False, on_kept, has_work=True)
        elif session.own:
            user = User(str(run), f"it is left of {run}, {state}", False)
        else:
            continue
        before = users.get(session.endpoint or session.session)
        if before is None or not before.in_use:  # of several on one VM the living one counts
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
            if control.on_colab(run) and control.status_of(run).state in LIVING:
                launch = records.read(run.files.launch, Launch)
                found += [run] if launch.colab["session"] == session else []
    return found


def refuse_used(session: client.Session) -> None:
    """Raise RlvrError for a VM that a run uses, or that `colab up` keeps."""
    user = user_of(session, users_of_vms())
    if user.in_use:
        raise RlvrError(f"{user.what}: rlvrctl.py colab stop {user.run} stops {'it' if user.kept else 'both'}")
    if user.kept:
        raise RlvrError("it is kept by colab up: rlvrctl.py colab down gives it back")


def give_back(session: client.Session, auth: str = "") -> str:
    """Give a VM back, and forget which run had it; what became of it, as `client.stop` says.

    Raises:
        RlvrError: when it is still on Colab's list.
    """
    outcome = client.stop(session.name, session.endpoint, auth)
    if outcome == client.LISTED:
        raise RlvrError(
            f"VM {session.name} ({session.endpoint}) is still on Colab's list and costs money: try again, or stop it "
            "on colab.research.google.com (Manage sessions)"
        )
    for run in colab_runs():
        known = records.read(run.files.colab, ColabSession)
        if session.name == known.session or (known.endpoint and session.endpoint == known.endpoint):
            run.files.colab.unlink()
    return outcome
