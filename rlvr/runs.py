"""From the layers of a model to a started run: what the commands, the auto run and the dashboard all call.

    begin_cycle("m", {"max_steps": "40"})      # the next cycle, in the background; returns its Run
    begin_eval("m", ["base", "003"], {})       # a held-out comparison

Everything that can be wrong is looked at before a folder is made; what fails later leaves none behind.
"""

import contextlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple

from rlvr import control, cycles, environment, folders, layers, records
from rlvr.base_models import check_adapter, find_base_model
from rlvr.budget import divide_step
from rlvr.config import Config, EvalConfig, RunConfig, TrainConfig, write_snapshot
from rlvr.cycles import Run
from rlvr.errors import RlvrError
from rlvr.records import Launch
from rlvr.status import LIVING, STATES, new_status

LATEST = "latest"
GOAL = re.compile(r"(solved|mean_holdout_match|pass@\d+)\s*>=\s*(\d*\.?\d+)")


class Resolved(NamedTuple, Generic[Config]):
    """What the next run of a kind runs with, and the layer of each key."""

    config: Config
    origins: dict[str, str]
    ephemeral: dict[str, Any]
    """What it takes from the [ephemeral] table."""
    taken: dict[str, str]
    """What it would have taken, had not a living run: key -> name of that run."""

    def notes(self) -> list[str]:
        return [
            f"{name} is set for one run, and {run} has it: this one goes without" for name, run in self.taken.items()
        ]


class Plan(NamedTuple):
    """A cycle as it would run: config and the layer of each key; `parent` is "latest", "" or an adapter's folder."""

    config: TrainConfig
    origins: dict[str, str]
    parent: str
    warm_from: str
    """For a person: the cycle or folder that it would start from now, "" for a cold start."""
    ephemeral: dict[str, Any]
    """What it takes from the [ephemeral] table."""
    notes: list[str]
    """What a person should know of it."""


def frozen_keys(model: str) -> dict[str, Any] | None:
    """What the model's first adapter was made with; None while it has none."""
    first = cycles.first_adapter(model)
    return layers.frozen_values(first.files.config) if first and first.files.config.is_file() else None


def check_config(config: RunConfig) -> None:
    """Look at what would only fail after the heavy imports.

    Raises:
        RlvrError: naming the key.
    """
    environment.check_name(config.environment)
    find_base_model(config.base_model)
    if config.corpus_dir and not Path(config.corpus_dir).expanduser().is_dir():
        raise RlvrError(
            f"corpus_dir = {config.corpus_dir!r}: no such folder: rlvrctl.py corpus fetch gets the OEIS data"
        )


def plan_cycle(model: str, overrides: Mapping[str, str], parent: str = LATEST) -> Plan:
    """Resolve the next cycle of a model and check it; starts nothing.

    `parent` is "latest", "" for a cold start, a cycle's number, or an adapter's folder.

    Raises:
        RlvrError: for anything in the layers, the overrides or the parent that is not right.
    """
    resolved = resolve(model, TrainConfig, overrides)
    config = resolved.config
    divide_step(config)
    if parent == LATEST:
        latest = cycles.latest_adapter(model)
        adapter = latest.files.adapter if latest else None
        warm_from = latest.name if latest else ""
    else:
        adapter = cycles.find_adapter(parent, model) if parent else None
        warm_from = cycles.checkpoint_name(adapter) if adapter else ""
        parent = portable(adapter) if adapter else ""
    if adapter:
        check_adapter(adapter, config.base_model, config.lora_rank, config.lora_alpha)
    return Plan(config, resolved.origins, parent, warm_from, resolved.ephemeral, resolved.notes())


def resolve(model: str, config_class: type[Config], overrides: Mapping[str, str]) -> Resolved[Config]:
    """The config of the next run of a kind, checked.

    Raises:
        RlvrError: for anything in the layers or the overrides that is not right.
    """
    folder = cycles.model_dir(model)
    one_shot = layers.ephemeral_values(folder, config_class)
    held = keys_of_living(model, config_class, one_shot) if one_shot else {}
    config, origins = layers.resolve_for(folder, config_class, overrides, frozen_keys(model), held)
    check_config(config)
    ephemeral = {name: value for name, value in one_shot.items() if name not in held}
    return Resolved(config, origins, ephemeral, {name: run for name, run in held.items() if name not in overrides})


def keys_of_living(model: str, config_class: type[RunConfig], one_shot: Mapping[str, Any]) -> dict[str, str]:
    """Which of these keys of [ephemeral] a living run of the kind took when it was started, and its name."""
    found: dict[str, str] = {}
    for run in cycles.cycle_runs(model) if config_class is TrainConfig else cycles.eval_runs(model):
        if control.status_of(run).state in LIVING:
            with contextlib.suppress(RlvrError):  # one that has no launch.json
                taken = records.read(run.files.launch, Launch).ephemeral
                found |= dict.fromkeys(layers.same_keys(one_shot, taken), run.name)
    return found


def portable(adapter: Path) -> str:
    """A path that still holds when the folder that `training/` lies in is moved; absolute outside of it."""
    with contextlib.suppress(ValueError):
        return str(adapter.resolve().relative_to(Path.cwd().resolve()))
    return str(adapter.resolve())


def start(run: Run, config: RunConfig | None, origins: Mapping[str, str], launch: Launch, **made: Any) -> Run:
    """Make the folder of a run and give it a supervisor; the caller holds the lock, `made` is as for `folders.made`.

    Raises:
        RlvrError: for a full disk or a folder that cannot be written; then nothing of the run stays.
    """
    try:
        with folders.made(run, **made) as files:
            if config:
                write_snapshot(files.config, config, origins, {})
            records.write(files.launch, launch)
            records.write(files.status, new_status(run.kind, "pending"))
        try:
            control.spawn(run)
        except BaseException:
            folders.unmake(run)
            raise
    except OSError as error:
        raise RlvrError(f"{error.filename or run.folder}: cannot be written: {error.strerror}") from None
    return run


def begin_cycle(
    model: str,
    overrides: Mapping[str, str],
    *,
    parent: str = LATEST,
    after: str = "",
    queue: bool = True,
    auto: Mapping[str, Any] | None = None,
    colab: Mapping[str, Any] | None = None,
    notice: Callable[[str], None] = lambda text: None,
) -> Run:
    """Start the next cycle of a model in the background; it begins when its turn comes.

    `auto` says which round of which auto run it belongs to, `colab` how to run it on a rented VM. `notice` is given
    what a person should know of it.

    Raises:
        RlvrError: when something is not right; then nothing was made.
    """
    cycles.model_dir(model)  # there may be no folder to lock
    after = check_after(after, model)
    with cycles.locked():
        plan = plan_cycle(model, overrides, parent)  # of two at the same moment one takes [ephemeral]
        for text in plan.notes:
            notice(text)
        run, unused = folders.next_cycle(model)
        launch = Launch(
            ticket=time.time(),
            queue=queue,
            after=after,
            parent=plan.parent,
            ephemeral=plan.ephemeral,
            auto=dict(auto or {}),
            colab=dict(colab or {}),
        )
        return start(run, plan.config, plan.origins, launch, replaces=unused, notice=notice)


def check_after(after: str, model: str) -> str:
    """The full name of the run that another is to come after.

    Raises:
        RlvrError: when it is not there, or has ended without success.
    """
    if not after:
        return ""
    run = cycles.find_run(after, model)
    state = control.status_of(run).state
    if state not in (*LIVING, "done"):
        raise RlvrError(f"{run} is {state}: a run can only come after one that is living or done")
    return str(run)


def begin_eval(
    model: str,
    participants: Sequence[str] | None,
    overrides: Mapping[str, str],
    *,
    after: str = "",
    queue: bool = True,
    auto: Mapping[str, Any] | None = None,
    notice: Callable[[str], None] = lambda text: None,
) -> Run:
    """Start a held-out comparison in the background; without `participants`, base against the latest adapter.

    `auto` and `notice` are as for `begin_cycle`.

    Raises:
        RlvrError: when a participant is missing or does not fit; then nothing was made.
    """
    cycles.model_dir(model)
    after = check_after(after, model)
    with cycles.locked():
        resolved = resolve(model, EvalConfig, overrides)
        for text in resolved.notes():
            notice(text)
        adapters = find_participants(participants, model, after)
        for adapter in adapters:
            if adapter and adapter.is_dir():
                check_adapter(adapter, resolved.config.base_model, None, None)
        names = [folders.participant_name(adapter, model) for adapter in adapters]
        launch = Launch(
            ticket=time.time(),
            queue=queue,
            after=after,
            participants=tuple(portable(adapter) if adapter else cycles.BASE for adapter in adapters),
            ephemeral=resolved.ephemeral,
            auto=dict(auto or {}),
        )
        run = folders.next_eval(model, names)
        return start(run, resolved.config, resolved.origins, launch, participants=names)


def default_participants(model: str) -> list[str]:
    latest = cycles.latest_adapter(model)
    if latest is None:
        raise RlvrError(f"model {model!r} has no adapter yet: train a cycle, or evaluate the base: --adapters base")
    return ["base", latest.name]


def find_participants(names: Sequence[str] | None, model: str, after: str = "") -> list[Path | None]:
    """The adapter folders of the participants, None for the base model; by default base and the latest adapter.

    The cycle that an evaluation is to come after counts as the latest one: it will have an adapter by then.
    """
    coming = cycles.find_run(after) if after else None
    if coming and (coming.kind, coming.model) == ("train", model):
        names = [coming.name if name == LATEST else name for name in names or (cycles.BASE, LATEST)]
    found = []
    for name in names or default_participants(model):
        is_coming = coming and name.isdigit() and f"{int(name):03d}" == coming.name and coming.model == model
        found.append(coming.files.adapter if coming and is_coming else find_participant(name, model))
    return found


def find_participant(name: str, model: str) -> Path | None:
    """The adapter folder of a participant, None for the base model."""
    if name == "base":
        return None
    if name == LATEST:
        name = default_participants(model)[1]
    return cycles.find_adapter(name, model)


def begin_auto(
    model: str,
    *,
    rounds: int,
    until: str,
    patience: int,
    train_overrides: Mapping[str, str],
    eval_overrides: Mapping[str, str],
) -> Run:
    """Start rounds of a cycle and its evaluation in the background.

    Raises:
        RlvrError: when the first round could not start, or `until` is no goal.
    """
    from rlvr.comparison import pass_ks  # brings numpy along

    goal = parse_goal(until)
    plan_cycle(model, train_overrides)
    config = resolve(model, EvalConfig, eval_overrides).config
    known = [f"pass@{k}" for k in pass_ks(config.samples)]
    if goal and goal[0].startswith("pass@") and goal[0] not in known:
        raise RlvrError(
            f"goal {until!r}: an evaluation gives {', '.join(known)}: sample more (-k), or take one of those"
        )
    options = {
        "rounds": rounds,
        "until": until,
        "patience": patience,
        "train": dict(train_overrides),
        "eval": dict(eval_overrides),
    }
    with cycles.locked():
        launch = Launch(ticket=time.time(), queue=False, auto=options)
        return start(folders.next_auto(model), None, {}, launch)


def parse_goal(until: str) -> tuple[str, float] | None:
    """`solved>=0.5` -> ("solved", 0.5); None for no goal.

    Raises:
        RlvrError: for anything else.
    """
    if not until:
        return None
    match = GOAL.fullmatch(until.strip())
    if match is None or not float(match[2]) <= 1:
        raise RlvrError(f"goal {until!r}: write it like 'solved>=0.5': solved, mean_holdout_match or pass@k, up to 1")
    return match[1], float(match[2])


def order(state: str) -> int:
    """Where runs of a state stand in a listing: live ones first."""
    return STATES.index(state) if state in LIVING else len(LIVING)
