"""What is decided before a run begins, and between the rounds of an auto run; no program is started here."""

import json
from pathlib import Path

import pytest

from rlvr import auto, control, cycles, folders, layers, records, runs
from rlvr.config import PRESETS, EvalConfig, TrainConfig, read_toml, write_snapshot
from rlvr.cycles import Run
from rlvr.errors import RlvrError
from rlvr.records import Launch, Round
from rlvr.status import StatusFile, new_status


@pytest.fixture(autouse=True)
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    layers.create(Path("training/m"), PRESETS["tiny"])


def make_cycle(name: str, model: str = "m", **about: object) -> Run:
    """A finished cycle with an adapter of the tiny model's shape."""
    folder = Path("training", model, name)
    adapter = folder / "adapter"
    adapter.mkdir(parents=True)
    config = {"peft_type": "LORA", "r": 16, "lora_alpha": 32, "base_model_name_or_path": "tiny"} | about
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    (adapter / "adapter_model.safetensors").touch()
    records.write(folder / "status.json", new_status("train", "done", step=1))
    write_snapshot(folder / "config.toml", TrainConfig(**{**TINY, "lora_rank": config["r"]}), {}, {})
    return Run(model, name, "train", folder)


TINY = {name: value for name, value in PRESETS["tiny"].items() if name in vars(TrainConfig())}


def test_a_cycle_starts_from_the_latest_adapter_an_earlier_one_or_cold():
    assert runs.plan_cycle("m", {})[2:4] == ("latest", "")
    make_cycle("001")
    make_cycle("002")
    Path("training/m/003").mkdir()  # without an adapter
    assert runs.plan_cycle("m", {})[2:4] == ("latest", "002")
    assert runs.plan_cycle("m", {}, "1")[2:4] == ("training/m/001/adapter", "001")
    assert runs.plan_cycle("m", {}, "training/m/001")[2:4] == ("training/m/001/adapter", "001")
    assert runs.plan_cycle("m", {}, "")[2:4] == ("", "")
    with pytest.raises(RlvrError, match="no adapter '003'"):
        runs.plan_cycle("m", {}, "003")


def test_flags_win_over_the_one_shot_keys_and_those_over_the_others():
    layers.set_keys(Path("training/m"), "global", {"seed": "1", "max_steps": "11", "limit": "111"})
    layers.set_keys(Path("training/m"), "permanent", {"seed": "2", "max_steps": "22"})
    layers.set_keys(Path("training/m"), "ephemeral", {"seed": "3"})
    plan = runs.plan_cycle("m", {"n_show": "7"})
    config = plan.config
    assert (config.seed, config.max_steps, config.limit, config.n_show) == (3, 22, 111, 7)
    assert runs.plan_cycle("m", {"seed": "4"}).config.seed == 4
    assert plan.origins["seed"] == "training.toml [ephemeral]" and plan.origins["n_show"] == "command line"


@pytest.fixture
def no_process(monkeypatch):
    """A run that is started stays pending, and nobody looks after it."""
    monkeypatch.setattr(control, "spawn", lambda run: None)


def end(run: Run, state: str) -> None:
    records.write(run.files.status, new_status(run.kind, state, step=1))


@pytest.mark.parametrize(
    ("config_class", "begin"),
    [
        (TrainConfig, lambda **options: runs.begin_cycle("m", {}, **options)),
        (EvalConfig, lambda **options: runs.begin_eval("m", ["base"], {}, **options)),
    ],
)
def test_one_shot_keys_are_for_one_run(no_process, config_class, begin):
    folder, target = Path("training/m"), layers.target_of(config_class)
    layers.set_keys(folder, "ephemeral", {"seed": "77", "require_keywords": "nonn,core"}, target)
    said: list[str] = []
    first = begin(notice=said.append)
    assert said == []
    second = begin(notice=said.append)
    assert said == [
        f"{name} is set for one run, and {first.name} has it: this one goes without"
        for name in ("seed", "require_keywords")
    ]
    layers.set_keys(folder, "ephemeral", {"seed": "88"}, target)  # another one-shot value is for another run
    third = begin()
    seeds = [read_toml(run.files.config)["seed"] for run in (first, second, third)]
    assert seeds == [77, 0, 88]
    assert [records.read(run.files.launch, Launch).ephemeral.get("seed") for run in (first, second, third)] == [
        77,
        None,
        88,
    ]
    # What was not successful leaves them for the next one.
    end(third, "failed")
    assert read_toml(begin().files.config)["seed"] == 88


def test_a_flag_wins_over_a_one_shot_key_that_another_run_has(no_process):
    layers.set_keys(Path("training/m"), "ephemeral", {"seed": "77", "kl_beta": "0.5"})
    runs.begin_cycle("m", {})
    plan = runs.plan_cycle("m", {"seed": "5"})
    assert (plan.config.seed, plan.config.kl_beta, plan.ephemeral) == (5, 0.001, {})
    assert plan.notes == ["kl_beta is set for one run, and 001 has it: this one goes without"]


def test_a_cycle_that_never_began_makes_room_and_it_is_said(no_process):
    first = runs.begin_cycle("m", {})
    records.write(first.files.status, new_status("train", "failed"))
    first.files.label.write_text("mine\n")
    said: list[str] = []
    assert runs.begin_cycle("m", {}, notice=said.append).name == "001"
    (text,) = said
    assert text.startswith("m/001 never made a step: moved to training/.trash/m-001-")
    place = Path(text.split(": moved to ")[1].partition(",")[0])
    assert (place / "label.txt").read_text() == "mine\n"


@pytest.mark.parametrize("base_model", ["/nowhere", "./nowhere/at/all"])
def test_a_base_model_that_is_not_there_starts_nothing(no_process, base_model):
    overrides = {"base_model": base_model}
    for begin in (
        lambda: runs.begin_cycle("m", overrides),
        lambda: runs.begin_eval("m", ["base"], overrides),
        lambda: runs.begin_auto(
            "m", rounds=1, until="", patience=1, train_overrides=overrides, eval_overrides=overrides
        ),
    ):
        with pytest.raises(RlvrError, match="no such folder, nor a Hub id"):
            begin()
    assert cycles.all_runs("m") == []


def test_the_shape_of_the_first_adapter_is_kept():
    make_cycle("001")
    with pytest.raises(RlvrError, match="lora_rank = 8, but the adapters of this model were made with 16"):
        runs.plan_cycle("m", {"lora_rank": "8"}, "")
    make_cycle("001", "other", r=8)
    with pytest.raises(RlvrError, match="made with lora_rank = 8, not 16"):
        runs.plan_cycle("m", {}, "training/other/001")


def test_whom_an_evaluation_compares():
    with pytest.raises(RlvrError, match="model 'm' has no adapter yet: train a cycle"):
        runs.default_participants("m")
    make_cycle("001")
    assert runs.default_participants("m") == ["base", "001"]
    assert runs.find_participant("base", "m") is None
    assert runs.find_participant("latest", "m") == Path("training/m/001/adapter")
    # Another model's cycle is not taken for the own one of that number.
    other = make_cycle("001", "other").files.adapter
    assert folders.participant_name(other, "m") == "other-001"
    assert folders.participant_name(Path("training/m/001/adapter").resolve(), "m") == "001"


@pytest.mark.parametrize(
    ("text", "goal"),
    [("solved>=0.5", ("solved", 0.5)), ("pass@8 >= .25", ("pass@8", 0.25)), ("mean_holdout_match>=1", None)],
)
def test_goals(text, goal):
    assert runs.parse_goal(text) == (goal or ("mean_holdout_match", 1.0))


@pytest.mark.parametrize("text", ["solved>0.5", "solved>=2", "reward>=1", "solved>=0.5.5", "0.5"])
def test_what_is_no_goal_is_refused(text):
    with pytest.raises(RlvrError, match="write it like 'solved>=0.5'"):
        runs.parse_goal(text)


# ---------------------------------------------------------------------------------------------------------------------
# Auto


def play(*solved: float, best: float = 0.1) -> list[Round]:
    """Rounds with these shares solved, after a base that solves `best`."""
    history = []
    for number, share in enumerate(solved, 1):
        common = {"difference": 0.0, "low": 0.0, "high": 0.0, "time": 0.0, "evaluation": f"{number:03d}/evals/base"}
        improved = share > max([best, *(each.solved for each in history)])
        history.append(
            Round(round=number, cycle=f"{number:03d}", solved=share, goal=share, improved=improved, **common)
        )
    return history


@pytest.mark.parametrize(
    ("solved", "rounds", "until", "patience", "end"),
    [
        ((), 3, "", 1, None),
        ((0.2,), 3, "", 1, None),
        ((0.2, 0.3, 0.4), 3, "", 1, "3 rounds were run"),
        ((0.05,), 9, "", 1, "no improvement for 1 rounds"),
        ((0.05,), 9, "", 2, None),
        ((0.2, 0.2, 0.1), 9, "", 2, "no improvement for 2 rounds: solved stays at 0.200"),
        ((0.2, 0.1, 0.3, 0.3), 9, "", 2, None),
        ((0.2, 0.5), 9, "solved>=0.5", 1, "the goal solved>=0.5 is reached: 0.500 after round 2"),
        ((0.2, 0.49), 9, "solved>=0.5", 1, None),
    ],
)
def test_when_an_auto_run_ends(solved, rounds, until, patience, end):
    options = {"rounds": rounds, "until": until, "patience": patience}
    if end is None:
        auto.judge(play(*solved), options)
    else:
        with pytest.raises(auto.Ended, match=end) as ended:
            auto.judge(play(*solved), options)
        assert ended.value.state == "done"


@pytest.mark.parametrize(
    ("before", "value", "better"),
    [((), 0.3, False), ((), 0.5, True), ((0.2,), 0.3, False), ((0.2,), 0.5, True), ((0.6,), 0.5, False)],
)
def test_better_is_better_than_base_and_every_round_before(before, value, better):
    assert auto.is_better(value, 0.4, play(*before)) is better


def test_patience_goes_by_the_metric_of_the_goal():
    options = {"rounds": 9, "until": "mean_holdout_match>=0.9", "patience": 1}
    assert auto.metric_of(options) == "mean_holdout_match" and auto.metric_of({"until": ""}) == "solved"
    with pytest.raises(auto.Ended, match="no improvement for 1 rounds: mean_holdout_match stays at 0.050 or below"):
        auto.judge(play(0.05), options)


def test_an_auto_run_finds_what_its_interrupted_round_has_begun():
    for name, launch in (
        ("001", {"run": "auto/001", "round": 1}),
        ("002", {"run": "auto/002", "round": 1}),
        ("003", {"run": "auto/001", "round": 2}),
        ("004", {}),
    ):
        make_cycle(name)
        records.write(Path("training/m", name, "launch.json"), Launch(ticket=100.0, auto=launch))
    make_cycle("005")  # started by hand, without a launch.json
    status = StatusFile(Path("training/m/status.json"), new_status("auto", "running"))
    status.status.created = 50.0
    found = [auto.find_begun(cycles.cycle_runs("m"), {"run": "auto/001", "round": n}, status) for n in (1, 2, 3)]
    assert [run and run.name for run in found] == ["001", "003", None]
    # What an earlier auto/001 did, which was removed since, is not this one's.
    status.status.created = 150.0
    assert auto.find_begun(cycles.cycle_runs("m"), {"run": "auto/001", "round": 1}, status) is None
