"""Where a run stands: `status.json` as its own process writes it and as everybody else reads it.

A run is alive while the process that answers for it is: the pid is running and started when the status says it did, so
that a later process with the same number is never taken for the run, nor killed. A status also names the folder that
it was written in by device and inode, which a folder keeps when it is renamed and a copy does not have: the process of
a run is never taken for that of a copy.
"""

import contextlib
import os
import time
from pathlib import Path

import psutil

from rlvr import records
from rlvr.errors import RlvrError
from rlvr.records import State, Status

LIVING = ("pending", "running")
"""States of a run whose process should be there."""

STATES = ("running", "pending", "done", "failed", "killed", "lost")
"""All that a reader can meet, live ones first."""

COLAB_NAME = "colab.json"
"""The file of a run that is on a rented VM."""

SUPERVISED = "RLVR_SUPERVISED"
"""Set in the environment of a program whose status its supervisor writes."""


def process_start(pid: int) -> float | None:
    """Seconds from the start of the machine to the start of a process; None when there is no such process.

    Measured from the start of the machine because a step of the clock moves both.
    """
    try:
        while True:
            boot = psutil.boot_time()
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            start = process.create_time() - boot
            if psutil.boot_time() == boot:  # the clock was not set between the two
                return start
    except psutil.Error:
        return None


def is_alive(status: Status) -> bool:
    """Is the process that answers for the run still there?"""
    start = process_start(status.pid) if status.pid and status.process_start else None
    return start is not None and abs(start - status.process_start) < 1.0


def is_copied(status: Status, folder: Path) -> bool:
    """Was this status written in another folder than the one it lies in now, which then is a copy of that?

    After a restart of the machine a disk may have another number: it counts while the process is there.
    """
    if not status.inode:
        return False
    try:
        now = folder.stat()
    except OSError:
        return False
    return now.st_ino != status.inode or (now.st_dev != status.device and is_alive(status))


def group_members(group: int) -> list[int]:
    """Process numbers of what lives in the process group that a run's supervisor leads or led; none for group 0.

    The number of a group is not given to a process while the group has members: a process that has it leads it.
    """
    found = []
    for process in psutil.process_iter() if group else ():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def left_of(status: Status) -> list[int]:
    """Process numbers of what is left of a run: its group, unless the group's number belongs to a stranger by now."""
    if process_start(status.pid) is not None and not is_alive(status):
        return []
    return group_members(status.pid)


def left_on_colab(folder: Path) -> str:
    """What a cycle without a supervisor has left on a rented VM; "" for nothing."""
    if not (folder / COLAB_NAME).exists():
        return ""
    return f"its VM goes on and costs money: rlvrctl.py colab stop {folder.name}"


def read_status(file: Path) -> Status | None:
    """The status in `file`, with the state "lost" for a run that should be running and has no process.

    None when there is no such file; one that cannot be read is a failed run that says so. A pending run without a
    process stays pending: whoever looks after the queue starts it again. In a copied folder nobody looks after a run,
    whatever the original does: one that waited is killed there, so that no copy starts to train by itself.
    """
    before = None
    while True:
        try:
            status = records.read(file, Status)
        except RlvrError as error:
            if not file.exists():
                return None
            return Status(state="failed", kind="", created=0.0, updated=0.0, message=str(error))
        if status.state in LIVING and is_copied(status, file.parent):
            return as_copy(status)
        if status.state != "running" or is_alive(status):
            return status
        if status == before:
            break
        before = status  # its last word may have come, and its process have ended, since this was read
    status.state = "lost"
    status.message = "its process is gone without a word: rlvrctl.py resume goes on"
    if goes_on := left_on_colab(file.parent):
        status.message = f"its supervisor is gone; {goes_on}, or rlvrctl.py resume {file.parent.name}"
    return status


def as_copy(status: Status) -> Status:
    """What a living run is in a copy of its folder."""
    if status.state == "running":
        status.state, status.message = "lost", "a copy of a running run: rlvrctl.py resume goes on with it"
    else:
        status.state, status.message = "killed", "a copy of a waiting run: rlvrctl.py resume starts it"
    status.waiting_for = ""
    status.pid, status.process_start, status.device, status.inode = 0, 0.0, 0, 0
    return status


class FolderMoved(RlvrError):
    """The folder of a run is no longer where it was when its process began."""


class StatusFile:
    """`status.json` of a run of this process, replaced at every change, in the folder that was there at first.

    Where a supervisor writes it, or with `writes` False, it is not written, and only the folder is looked after.
    """

    def __init__(self, file: Path, status: Status, writes: bool = True):
        self.file = file
        self.status = status
        self.writes = writes and SUPERVISED not in os.environ
        self.folder = file.parent
        # Held open, so that no other folder can get its inode, and to find it where it was moved to.
        self._held = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        where = os.fstat(self._held)
        self.status.device, self.status.inode = where.st_dev, where.st_ino
        self.status.pid = os.getpid()
        self.status.process_start = process_start(os.getpid()) or 0.0
        self.write()

    def write(self, **changes: object) -> None:
        """Set fields and write the file.

        Raises:
            FolderMoved: when the folder is not there any more, or is another one.
            OSError: when the disk is full or the folder cannot be written.
        """
        for name, value in {**changes, "updated": time.time()}.items():
            setattr(self.status, name, value)
        if self.writes:
            self.check_folder()
            records.write(self.file, self.status)

    def check_folder(self) -> None:
        """Look whether the folder is still the one that was there at first: nothing is to be made anew in its place.

        Raises:
            FolderMoved: when it is not.
        """
        try:
            is_same = os.path.samestat(os.stat(self.file.parent), os.fstat(self._held))
        except (FileNotFoundError, NotADirectoryError):
            is_same = False
        if not is_same:
            raise FolderMoved(f"{self.folder}: moved or removed while the run was going on")

    def follow_folder(self) -> None:
        """Make the moved folder the current one, so that the last word can be written into it.

        Raises:
            OSError: when it cannot be entered.
        """
        os.fchdir(self._held)
        self.file = Path(self.file.name)


def new_status(kind: str, state: State, **fields: object) -> Status:
    """A status from this moment on."""
    now = time.time()
    return Status(state=state, kind=kind, created=now, updated=now, **fields)  # type: ignore[arg-type]
