"""Removing runs: what depends on them goes first or not at all, and everything goes to the trash, where it stays."""

from collections.abc import Sequence
from pathlib import Path

from rlvr import control, cycles, folders
from rlvr.cycles import Run
from rlvr.errors import RlvrError
from rlvr.status import LIVING


def dependents(run: Run) -> list[Run]:
    """What depends on a run, what depends on that before it; each once."""
    found: list[Run] = []
    for child in folders.children(run):
        for one in [*dependents(child), child]:
            if one not in found:
                found.append(one)
    return found


def remove(runs: Sequence[Run], with_dependents: bool = False) -> list[tuple[Run, Path]]:
    """Move runs to the trash, all of them or none; returns where each lies now.

    Raises:
        RlvrError: when one is living, or is needed by another that does not go with it.
    """
    if len({run.training_dir for run in runs}) > 1:
        raise RlvrError("these runs lie under several training/ folders: remove them one folder at a time")
    with cycles.locked(runs[0].training_dir):
        chosen: list[Run] = []
        for run in runs:
            needed_by = dependents(run)
            chosen += [one for one in [*needed_by, run] if one not in chosen]
            blocking = [one.name for one in needed_by if one not in runs]
            if blocking and not with_dependents:
                raise RlvrError(
                    f"{run} is needed by {', '.join(blocking)}: remove those first, or all with --with-dependents"
                )
        for run in chosen:
            state = control.status_of(run).state
            if state in LIVING:
                raise RlvrError(f"{run} is {state}: rlvrctl.py kill {run.name} first")
        return [(run, folders.move_to_trash(run)) for run in chosen]
