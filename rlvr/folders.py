"""The folders of runs: the next number, a folder that appears whole, the links to an evaluation, the trash.

    with locked():
        run, unused = next_cycle("m")
        with made(run, replaces=unused) as files: ...      # training/m/004/, or nothing

What lies where is `cycles.py`; what may be removed is `trash.py`.
"""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rlvr.cycles import (
    ALONE,
    BASE,
    TRAINING_DIR,
    TRASH_DIR,
    Run,
    RunFiles,
    auto_runs,
    cycle_runs,
    has_adapter,
    is_cycle_name,
    run_at,
)
from rlvr.status import LIVING, left_of, read_status


def never_began(run: Run) -> bool:
    """Did this cycle end before its first step? Then it holds nothing, and its number may be used again."""
    status = read_status(run.files.status)
    if has_adapter(run) or (run.files.metrics.exists() and run.files.metrics.stat().st_size):
        return False
    if status is None:
        return True
    # A supervisor that has written how its run ended needs a moment to go, and no folder for it.
    left = set(left_of(status)) - {status.pid}
    return status.state not in LIVING and status.step == 0 and not left


def next_cycle(model: str) -> tuple[Run, list[Run]]:
    """The next cycle of a model, and the ones to be removed for it: the newest ones that never made a step.

    So numbers stay without gaps. The caller holds the lock.
    """
    cycles = cycle_runs(model)
    unused = []
    while cycles and never_began(cycles[-1]) and not children(cycles[-1]):
        unused.append(cycles.pop())
    name = f"{int(cycles[-1].name) + 1 if cycles else 1:03d}"
    return Run(model, name, "train", TRAINING_DIR / model / name), unused


def next_auto(model: str) -> Run:
    """The next auto run of a model. The caller holds the lock."""
    runs = auto_runs(model)
    number = int(runs[-1].name.rpartition("/")[2]) + 1 if runs else 1
    return Run(model, f"auto/{number:03d}", "auto", TRAINING_DIR / model / "auto" / f"{number:03d}")


def next_eval(model: str, participants: Sequence[str]) -> Run:
    """An evaluation of these participants, under the highest of them. The caller holds the lock.

    `participants` are names as `participant_name` gives them: "base", "001" and "003" make `003/evals/base+001`, the
    same set again `003/evals/base+001.2`.
    """
    numbered = [name for name in participants if is_cycle_name(name)]
    owner = max(numbered, key=int) if numbered else BASE
    evals = RunFiles(TRAINING_DIR / model / owner).evals
    name = free_name(evals, without(participants, owner))
    return Run(model, f"{owner}/{evals.name}/{name}", "eval", evals / name)


@contextlib.contextmanager
def made(
    run: Run,
    replaces: Sequence[Run] = (),
    participants: Sequence[str] = (),
    notice: Callable[[str], None] = lambda text: None,
) -> Iterator[RunFiles]:
    """Make the folder of a run: its files are written aside, and it appears whole, with the links to it.

    `replaces` go to the trash at that moment, and `notice` is told where each lies now. When the body or anything else
    fails, nothing of the run stays. The caller holds the lock.
    """
    aside = run.folder.parent / ".new"
    shutil.rmtree(aside, ignore_errors=True)  # a command that was interrupted left it
    try:
        aside.mkdir(parents=True)
        yield RunFiles(aside)
        for other in replaces:
            notice(f"{other} never made a step: moved to {move_to_trash(other)}, its number is used again")
        aside.rename(run.folder)
        link_participants(run, participants)
    except BaseException:
        unmake(run)
        raise


def unmake(run: Run) -> None:
    """Take away a run that could not be started, with what was made for it."""
    links = links_to(run)
    for link in links:
        link.unlink(missing_ok=True)
    for folder in (run.folder, run.folder.parent / ".new"):
        shutil.rmtree(folder, ignore_errors=True)
    remove_empty(run, links)


def remove_empty(run: Run, links: Sequence[Path]) -> None:
    """After an evaluation or auto run is gone: remove `evals/`, `base/`, `auto/` where nothing else is left in it."""
    for folder in (run.folder, *links) if run.kind != "train" else ():
        with contextlib.suppress(OSError):  # there are others in it
            while (folder := folder.parent).name in (run.files.evals.name, "auto", BASE):
                folder.rmdir()


def link_participants(run: Run, participants: Sequence[str]) -> None:
    """Relative links to an evaluation: `003/evals/base+001` from `base/evals/001+003` and `001/evals/base+003`."""
    for other in sorted(set(participants)):
        evals = RunFiles(TRAINING_DIR / run.model / other).evals
        if evals == run.folder.parent or not (other == BASE or is_cycle_name(other)):
            continue
        evals.mkdir(parents=True, exist_ok=True)
        link = evals / free_name(evals, without(participants, other))
        link.symlink_to(os.path.relpath(run.folder, evals))


def participant_name(adapter: Path | None, model: str) -> str:
    """What a checkpoint is called in the name of an evaluation of a model: "base", "003", or what another lies in."""
    if adapter is None:
        return BASE
    for run in cycle_runs(model):
        if run.files.adapter.resolve() == adapter.resolve():
            return run.name
    parts = [part for part in adapter.resolve().parts if part != RunFiles(adapter).adapter.name]
    return "-".join(parts[-2:]) if is_cycle_name(parts[-1]) else parts[-1]


def without(participants: Sequence[str], one: str) -> str:
    """The name of an evaluation among the files of `one`: the other participants in order, base first, joined."""
    others = sorted(participants, key=lambda name: (name != BASE, not is_cycle_name(name), len(name), name))
    if one in others:
        others.remove(one)
    return "+".join(re.sub(r"[^\w.-]", "_", other) for other in others) or ALONE


def free_name(folder: Path, name: str) -> str:
    """`name`, or the first of `name.2`, `name.3`, ... that is not taken."""
    number = 1
    while True:
        candidate = name if number == 1 else f"{name}.{number}"
        if not os.path.lexists(folder / candidate):
            return candidate
        number += 1


def children(run: Run) -> list[Run]:
    """What depends on a run: cycles warm-started from it and evaluations of it."""
    if run.kind != "train":
        return []
    adapter = run.files.adapter.resolve()
    found = [
        other
        for other in cycle_runs(run.model)
        if other.files.parent.is_symlink() and other.files.parent.resolve() == adapter
    ]
    with contextlib.suppress(FileNotFoundError):
        entries = sorted(entry for entry in run.files.evals.iterdir() if entry.name[0] != ".")
        found += [evaluation for entry in entries if (evaluation := run_at(entry)) is not None]
    return found


def move_to_trash(run: Run) -> Path:
    """Move a run, and the links to it, out of the way; returns where it lies now."""
    links = links_to(run)
    for link in links:
        link.unlink()
    TRASH_DIR.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = free_name(TRASH_DIR, f"{run.model}-{run.name.replace('/', '-')}-{stamp}")
    shutil.move(run.folder, TRASH_DIR / name)
    remove_empty(run, links)
    return TRASH_DIR / name


def links_to(run: Run) -> list[Path]:
    """The links from earlier participants to an evaluation."""
    if run.kind != "eval":
        return []
    model = TRAINING_DIR / run.model
    target = run.folder.resolve()
    return [link for link in model.glob("*/evals/*") if link.is_symlink() and link.resolve() == target]
