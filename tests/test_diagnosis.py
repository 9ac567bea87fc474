"""Why a run is not learning: each rule where it speaks and just short of it, and runs that are well."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from conftest import ROOT
from msgspec.structs import replace

from rlvr.config import TrainConfig, keys, known_key, preset_layer, resolve
from rlvr.diagnosis import RULES, Watch, conclusion, diagnose, reward_shares
from rlvr.preflight import Sampled, preflight
from rlvr.records import Completion, Grade, Reward, Step

RATE = "learning rate of full fine-tuning"
INFRA = "infrastructure failures"
NAN = "not a number"
CLIPPED = "most completions clipped"
INVALID = "no valid function"
RIGHT = "groups almost all right"
WRONG = "groups almost all wrong"
EQUAL = "all rewards equal"
DROWNS = "one reward drowns the others"
KL = "KL explosion"
GRADIENT = "gradient explosion"
LOOKUPS = "look-ups rise, solves do not"

HEALTHY: dict[str, Any] = {
    **{"max_steps": 80, "time": 0.0, "reward": 0.31, "reward_std": 0.42, "all_right": 0.25, "mixed": 0.5},
    **{"rewards": {"function_works": 0.02, "no_cheating": 0.0, "sequence_matches": 0.29}, "all_wrong": 0.25},
    **{"zero_variance": 0.375, "outcomes": {"solved": 24, "wrong": 22, "invalid": 15, "lookup": 3}},
    **{"loss": 0.002, "kl": 0.03, "entropy": 0.3, "grad_norm": 0.25, "learning_rate": 1e-3, "length_mean": 18.0},
    **{"length_max": 52, "truncated": 0.02, "tokens": 1152, "tokens_per_s": 1100.0, "generation_s": 1.05},
    **{"scoring_s": 0.2, "update_s": 0.75, "step_s": 2.0},
}
"""A step of the tiny model as real ones are: 8 prompts x 8 samples."""


def config(**changes: Any) -> TrainConfig:
    return resolve(TrainConfig, [preset_layer("tiny", TrainConfig), ("test", changes)])[0]


def step(number: int, **changes: Any) -> Step:
    return Step(step=number, **HEALTHY | changes)


def steps(num_steps: int, **changes: Any) -> list[Step]:
    return [step(number, **changes) for number in range(1, num_steps + 1)]


def answer(
    number: int, group: int, sample: int, outcome: str, rewards: Mapping[str, float | None], error: str = ""
) -> Completion:
    values = [value for value in rewards.values() if value is not None]
    return Completion(
        task=f"A{group:06d}",
        outcome=outcome,
        reward=sum(values) if values else None,
        rewards=tuple(Reward(name, value, "") for name, value in rewards.items()),
        function="def a(n): return n",
        checks=(),
        verdict="ok",
        error=error,
        step=number,
        group=group,
        sample=sample,
        prompt="",
        completion="",
        tokens=18,
        truncated=False,
    )


def found(
    steps: Sequence[Step], completions: Sequence[Completion] = (), keys: TrainConfig | None = None
) -> dict[str, str]:
    """Name -> severity of what is found."""
    return {one.name: one.severity for one in diagnose(steps, completions, keys or config())}


def only(name: str, steps: Sequence[Step], completions: Sequence[Completion] = (), keys: TrainConfig | None = None):
    """The one finding, which must have that name."""
    findings = diagnose(steps, completions, keys or config())
    assert [one.name for one in findings] == [name]
    return findings[0]


# ---------------------------------------------------------------------------------------------------------------------
# Each rule


def test_a_healthy_run_has_no_finding():
    assert found(steps(40)) == {}
    assert conclusion(steps(40), []).startswith("nothing wrong in the last 10 steps")
    assert conclusion(steps(4), []) == "too little to judge by: 4 of the 10 steps that most rules look at"
    assert conclusion([], []).startswith("too little to judge by: 0 of")


# What is wrong, what is just not, in so many steps; and does it end the teaching?
EQUAL_STEP = {"zero_variance": 1.0}
CUT_STEP = {"truncated": 1.0, "length_max": 64}
INVALID_STEP = {"outcomes": {"invalid": 60, "truncated": 4}}
INFRA_STEP = {"outcomes": {"infra": 64}}
NAN_STEP = {"loss": float("nan"), "grad_norm": None}


@pytest.mark.parametrize(
    ("name", "num_steps", "bad", "near_miss"),
    [
        (INFRA, 3, {"outcomes": {"infra": 2, "solved": 30, "wrong": 32}}, {"outcomes": {"infra": 1, "solved": 63}}),
        (NAN, 1, {"loss": float("nan")}, {"loss": -123.0}),
        (NAN, 1, {"loss": None}, {"loss": 0.0}),
        (NAN, 1, {"grad_norm": float("inf")}, {"grad_norm": 5.0}),
        (CLIPPED, 3, {"truncated": 0.5}, {"truncated": 0.49}),
        (INVALID, 3, INVALID_STEP, {"outcomes": {"invalid": 63, "lookup": 1}}),
        (RIGHT, 10, {"all_right": 0.8, "mixed": 0.2, "all_wrong": 0.0}, {"all_right": 0.79, "all_wrong": 0.0}),
        (WRONG, 10, {"all_wrong": 0.85, "mixed": 0.15, "all_right": 0.0}, {"all_wrong": 0.78, "all_right": 0.0}),
        (EQUAL, 3, EQUAL_STEP, {"zero_variance": 0.875}),
        (KL, 3, {"kl": 1.5}, {"kl": 0.9}),
        (GRADIENT, 10, {"grad_norm": 25.0}, {"grad_norm": 15.0}),
    ],
)
def test_a_rule_speaks_when_its_condition_holds(name, num_steps, bad, near_miss):
    finding = only(name, steps(num_steps, **bad))
    assert finding.what and finding.change
    assert found(steps(num_steps, **near_miss)) == {}
    if num_steps > 1:
        assert found(steps(num_steps - 1, **bad)) == {}, "too few steps to say so"
    # What was so once, and is over, is not said.
    later = [step(number) for number in range(num_steps + 1, num_steps + 11)]
    assert found([*steps(num_steps, **bad), *later]) == {}


def test_numbers_are_in_the_sentence():
    assert only(CLIPPED, steps(12, truncated=0.75, length_max=64)).what == (
        "75% of the completions in steps 3 to 12 were cut at 64 tokens before their end"
    )
    assert only(EQUAL, [*steps(4), *(step(number, reward=-0.5, **EQUAL_STEP) for number in (5, 6, 7))]).what == (
        "in each of the last 3 steps all answers to a prompt got the same reward (mean -0.50): every advantage was 0"
    )
    assert "2 of the last 10 steps, first in step 11" in only(NAN, [*steps(10), *steps(12, **NAN_STEP)[10:]]).what
    assert "1.50 nats a token (median of steps 1 to 3, at most 1.50)" in only(KL, steps(3, kl=1.5)).what


def test_the_most_common_error_is_named():
    broken = {"function_works": -0.5, "no_cheating": 0.0, "sequence_matches": 0.0}
    lines = [
        answer(number, 0, sample, "invalid", broken, error="no function a(n)" if sample < 5 else "SyntaxError")
        for number in range(1, 4)
        for sample in range(8)
    ]
    finding = only(INVALID, steps(3, **INVALID_STEP), lines)
    assert finding.what.endswith('(180 invalid, 12 truncated), most often "no function a(n)" (15 times)')


def test_gradients_explode_by_growing_too():
    calm = steps(7, grad_norm=0.3)
    assert found([*calm, *(step(number, grad_norm=4.0) for number in (8, 9, 10))]) == {GRADIENT: "warning"}
    assert found([*calm, *(step(number, grad_norm=2.8) for number in (8, 9, 10))]) == {}
    # From nearly nothing to something is no explosion: it is not even clipped.
    silent = steps(7, grad_norm=1e-6)
    assert found([*silent, *(step(number, grad_norm=0.3) for number in (8, 9, 10))]) == {}


def test_lookups_rise_while_solves_do_not():
    def half(first: int, lookup: int, solved: int) -> list[Step]:
        return [
            step(first + n, outcomes={"lookup": lookup, "solved": solved, "wrong": 64 - lookup - solved})
            for n in range(10)
        ]

    finding = only(LOOKUPS, half(1, 2, 20) + half(11, 9, 20))
    assert "from 3.1% to 14.1% of the completions" in finding.what and "31.2% to 31.2%" in finding.what
    assert found(half(1, 2, 20) + half(11, 3, 20)) == {}, "within chance"
    assert found(half(1, 2, 20) + half(11, 9, 30)) == {}, "solves rise with them"
    assert found((half(1, 2, 20) + half(11, 9, 20))[1:]) == {}, "too few steps"


def test_a_learning_rate_of_full_fine_tuning_is_seen_before_any_step():
    finding = only(RATE, [], keys=config(learning_rate=1e-6))
    assert "learning_rate = 1e-06" in finding.what and finding.settings == ("learning_rate=5e-05",)
    assert found([], keys=config(learning_rate=5e-6)) == {}


def groups_of(*kinds: tuple[str, Mapping[str, float | None]]) -> list[Completion]:
    """Ten steps of two groups, each with these answers."""
    return [
        answer(number, group, sample, outcome, rewards)
        for number in range(1, 11)
        for group in range(2)
        for sample, (outcome, rewards) in enumerate(kinds)
    ]


def test_a_reward_that_drowns_the_one_that_pays_solving():
    def kinds(style_of_wrong: float) -> list[Completion]:
        return groups_of(
            ("solved", {"works": 0.1, "matches": 0.2, "style": 0.0}),
            ("wrong", {"works": 0.1, "matches": 0.0, "style": style_of_wrong}),
            ("wrong", {"works": 0.1, "matches": 0.0, "style": 0.0}),
        )

    finding = only(DROWNS, steps(10), kinds(2.0))
    assert finding.what.startswith("style makes 99% of the difference") and "matches 1%" in finding.what
    assert found(steps(10), kinds(0.1)) == {}
    assert found(steps(9), kinds(2.0)) == {}, "too few steps"


def test_the_reward_for_solving_may_make_all_the_difference():
    lines = groups_of(
        ("solved", {"function_works": 0.1, "no_cheating": 0.0, "sequence_matches": 0.9}),
        ("wrong", {"function_works": 0.1, "no_cheating": 0.0, "sequence_matches": 0.02}),
        ("wrong", {"function_works": 0.09, "no_cheating": 0.0, "sequence_matches": 0.0}),
    )
    shares, pays_solving = reward_shares([lines[:3]])
    assert shares["sequence_matches"] > 0.9 and sum(shares.values()) == pytest.approx(1)
    assert pays_solving == "sequence_matches" and found(steps(10), lines) == {}


def test_only_differences_within_a_group_count():
    """Between groups everything differs; an advantage does not see it."""
    easy = {"works": 0.1, "matches": 0.9}
    hard = {"works": -0.5, "matches": 0.0}
    lines = [
        *(answer(1, 0, sample, "solved", easy) for sample in range(4)),
        *(answer(1, 1, sample, "invalid", hard) for sample in range(4)),
    ]
    assert reward_shares([lines[:4], lines[4:]]) == ({}, "")


# ---------------------------------------------------------------------------------------------------------------------
# Causes, consequences, and the end of teaching


def test_a_cause_is_named_and_not_what_follows_from_it():
    cut = {**CUT_STEP, "outcomes": {"truncated": 64}, "zero_variance": 1.0, "all_wrong": 1.0, "all_right": 0.0}
    assert found(steps(9, **cut)) == {CLIPPED: "warning"}
    # The end of teaching is never passed over.
    assert found(steps(10, **cut)) == {CLIPPED: "dead", INVALID: "dead", EQUAL: "dead"}
    assert conclusion(steps(10), diagnose(steps(10, **cut), [], config())) == (
        "3 findings; further steps teach nothing: most completions clipped"
    )
    broken = {**INVALID_STEP, "zero_variance": 1.0, "all_wrong": 1.0, "all_right": 0.0}
    assert found(steps(9, **broken)) == {INVALID: "warning"}
    collapsed = {**cut, "kl": 6.0}
    assert found(steps(9, **collapsed)) == {KL: "warning"}
    ended = diagnose(steps(10, **collapsed), [], config())
    assert [(one.name, one.because) for one in ended] == [(KL, ""), (CLIPPED, KL), (INVALID, KL), (EQUAL, KL)]
    assert ended[0].settings == ("learning_rate=0.00067", "kl_beta=0.01")
    assert (ended[1].change, ended[1].settings) == ("mend what it follows from: KL explosion", ())
    assert conclusion(steps(10), ended) == (
        "4 findings; further steps teach nothing: most completions clipped (follows from KL explosion)"
    )
    lost = {**INFRA_STEP, "zero_variance": 1.0, "all_right": 0.0, "all_wrong": 0.0}
    assert found(steps(9, **lost)) == {INFRA: "warning"}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (EQUAL, EQUAL_STEP),
        (CLIPPED, CUT_STEP | EQUAL_STEP),
        (INVALID, INVALID_STEP | EQUAL_STEP),
        (INFRA, INFRA_STEP | EQUAL_STEP),
    ],
)
def test_dead_is_what_held_for_the_whole_window(name, changes):
    assert found(steps(10, **changes))[name] == "dead"
    assert found(steps(9, **changes))[name] == "warning"
    # One step that taught something in the window, and it may again.
    assert "dead" not in found([step(1), *steps(10, **changes)[1:]]).values()


def test_what_still_teaches_is_never_dead():
    assert found(steps(10, **CUT_STEP))[CLIPPED] == "warning"
    assert found(steps(10, **CUT_STEP), keys=config(mask_truncated=True))[CLIPPED] == "dead"
    assert found(steps(10, **INVALID_STEP))[INVALID] == "warning"
    assert found(steps(10, all_wrong=1.0, all_right=0.0, mixed=0.0)) == {WRONG: "warning"}
    assert found([*steps(2), *steps(5, **NAN_STEP)[2:]])[NAN] == "dead"
    assert found([*steps(2), *steps(4, **NAN_STEP)[2:]])[NAN] == "warning"
    assert found(steps(2, **NAN_STEP))[NAN] == "warning"
    assert found([*steps(5, **NAN_STEP), step(6)])[NAN] == "warning"


def test_a_watch_says_each_finding_once_and_agrees_with_the_diagnosis():
    keys = config(stop_on_dead_signal=True)
    watch, said, dead_at = Watch(keys), [], None
    run = [*steps(5), *(replace(one, zero_variance=1.0, truncated=0.6) for one in steps(30)[5:])]
    for one in run:
        said += [(one.step, finding.name) for finding in watch.add(one, [])]
        if watch.dead and dead_at is None:
            dead_at = one.step
    # Clipped on average over steps 1 to 10 is 30 %, over 5 to 14 54 %: the first window above a half.
    assert said == [(8, EQUAL), (14, CLIPPED)]
    assert dead_at == 15 and watch.dead == next(one for one in diagnose(run, [], keys) if one.severity == "dead")


def test_a_watch_keeps_only_the_completions_of_its_window():
    lines = groups_of(
        ("solved", {"matches": 0.2, "style": 0.0}),
        ("wrong", {"matches": 0.0, "style": 2.0}),
    )
    by_step = [[line for line in lines if line.step == number] for number in range(1, 11)]
    watch = Watch(config())
    names = [finding.name for one, own in zip(steps(10), by_step, strict=True) for finding in watch.add(one, own)]
    assert names == [DROWNS]


# ---------------------------------------------------------------------------------------------------------------------
# Advice


BAD_RUNS = [
    steps(10, **CUT_STEP),
    steps(10, **INVALID_STEP),
    steps(10, **EQUAL_STEP),
    steps(10, **NAN_STEP),
    steps(10, kl=3.0, grad_norm=99.0),
    steps(10, all_right=1.0, all_wrong=0.0),
    steps(10, all_wrong=1.0, all_right=0.0),
]


@pytest.mark.parametrize("preset", ["tiny", "gemma4-e2b", "qwen3-0.6b"])
@pytest.mark.parametrize("run", BAD_RUNS)
def test_every_setting_that_is_advised_is_allowed_and_a_change(preset, run):
    before = resolve(TrainConfig, [preset_layer(preset, TrainConfig), ("t", {"learning_rate": 1e-6})])[0]
    findings = diagnose(run, [], before)
    assert len(findings) >= 2 and findings[0].name == RATE
    for finding in findings:
        for setting in finding.settings:
            name, _, text = setting.partition("=")
            assert known_key(TrainConfig, name, "advice").parse(text, "advice") != getattr(before, name), setting


def test_more_answers_leave_the_step_divisible():
    from rlvr.budget import divide_step

    before = config(prompts_per_step=4, num_generations=3, completions_per_forward=6)
    setting = next(text for text in only(EQUAL, steps(4, **EQUAL_STEP), keys=before).settings if "generations" in text)
    assert setting == "num_generations=9"
    assert divide_step(config(prompts_per_step=4, num_generations=9, completions_per_forward=6)).accumulation == 6


def test_the_page_has_every_rule():
    page = (ROOT / "docs/doctor.md").read_text(encoding="utf-8")
    for rule in RULES:
        assert f"| {rule.name} |" in page
        assert {name for name in rule.unless} <= {other.name for other in RULES}
    assert "stop_on_dead_signal" in page and "stop_on_dead_signal" in keys(TrainConfig)


# ---------------------------------------------------------------------------------------------------------------------
# Before the first step


def sampled(*outcomes: str, truncated: bool = False, error: str = "") -> list[Sampled]:
    """The answers to one task."""
    return [
        Sampled(
            Grade(
                task="A1", outcome=outcome, reward=None, rewards=(), function="", checks=(), verdict="", error=error
            ),
            truncated,
        )
        for outcome in outcomes
    ]


def test_preflight_counts():
    found = preflight(
        [
            sampled("solved", "solved", "solved", "solved"),
            sampled("solved", "wrong", "wrong", "invalid"),
            sampled("wrong", "lookup", "timeout", "infra"),
            sampled("truncated", "truncated", "truncated", "truncated", truncated=True),
        ]
    )
    assert (found.num_tasks, found.samples) == (4, 4)
    # Of 15 scored: 5 solved, 3 wrong, 1 look-up are functions that work.
    assert found.valid == pytest.approx(9 / 15) and found.clipped == pytest.approx(4 / 15)
    assert found.pass_1 == pytest.approx((1 + 0.25 + 0 + 0) / 4) and found.pass_k == 0.5
    assert (found.all_right, found.mixed, found.all_wrong) == (0.25, 0.25, 0.5)
    assert found.findings(config()) == []
    assert found.describe() == (
        "4 tasks x 4 answers: 60% valid functions, 27% cut off, pass@1 31.2%, pass@4 50.0%, "
        "groups right/mixed/wrong 25%/25%/50%"
    )


@pytest.mark.parametrize(
    ("answers", "name", "what"),
    [
        ([sampled("truncated", "wrong", truncated=True)], CLIPPED, "100% of 2 answers were cut off"),
        (
            [sampled("invalid", "invalid", error="no function a(n)")] * 3,
            INVALID,
            'none of 6 answers is a function that works, most often "no function a(n)" (6 times)',
        ),
        ([sampled("solved", "solved")] * 4, RIGHT, "100% of 4 tasks are solved every time"),
        ([sampled("wrong", "wrong")] * 4, WRONG, "100% of 4 tasks are not solved once in 2 answers"),
        ([sampled("infra", "infra")], INFRA, "none of 2 answers could be scored"),
    ],
)
def test_preflight_warns_before_hours_go(answers, name, what):
    findings = preflight(answers).findings(config())
    assert [finding.name for finding in findings] == [name] and what in findings[0].what
    assert findings[0].change
