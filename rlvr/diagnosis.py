"""Why a run is not learning, from its records: findings with their numbers and the change to make.

    >>> for finding in diagnose(steps, completions, config):
    ...     print(finding.what, "->", finding.change)

The trainer asks after every step (`Watch`) and prints each finding once; `rlvrctl.py doctor RUN` asks afterwards.
Every rule is a small function with a line in `RULES`; docs/doctor.md has them as a table. No finding means that
nothing known to be wrong was seen, not that the run will get better: that is what `eval_oeis.py` is for.
"""

import math
import statistics
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Literal, NamedTuple

from rlvr.comparison import VALID_OUTCOMES
from rlvr.config import TrainConfig
from rlvr.records import Completion, Grade, Step

WINDOW_STEPS = 10
"""Rules look at so many last steps: 40 groups with the default keys, and soon over."""

FIRST_STEPS = 3
"""What is wrong in every completion shows in so few steps; hours should not pass before it is said."""

TREND_STEPS = 40
"""A change over time is looked for in so many last steps, their first half against their second."""

MOST_CLIPPED = 0.5
"""Above this share of cut answers, length decides over the reward more often than anything in the answer does."""

ALMOST_ALL = 0.8
"""When so many groups are all right, or all wrong, four fifths of the time teaches nothing about solving."""

DROWNS = 0.9
"""One reward with this share of the variance leaves the others a tenth of the advantage: they are noise in it."""

KL_EXPLODED = 1.0
"""Nats a token. Runs that learn stay well below 0.5; at 1 a typical token has lost e-fold in probability."""

GRADIENT_GREW = 10.0
"""The norm before clipping, last three steps against those before: healthy runs wander by a factor of two or three."""

GRADIENT_HUGE = 20.0
"""Times `max_grad_norm`: what is left of such a gradient after clipping is its direction, and that is mostly noise."""

INFRA_SHARE = 0.02
"""A lost worker now and then is masked and harmless; one answer in fifty is a fault of the machine."""

LOOKUPS_ROSE = 3.0
"""Standard errors between the halves of the trend: chance alone does this once in 700 looks."""

LORA_LEARNING_RATE = 5e-6
"""LoRA wants about ten times the learning rate of full fine-tuning, 1e-5 to 1e-3; full fine-tuning with RL takes 1e-6.
Below this a cycle of some hundred steps moves an adapter by less than its effect can be measured."""

USUAL_LEARNING_RATE = 5e-5

Severity = Literal["warning", "dead"]
"""dead: further steps cannot teach anything."""


@dataclass(frozen=True)
class Finding:
    """Something that keeps a run from learning: `what` with its numbers, the `change` to make, and keys to set.

    `because` names the finding that it follows from, "" for a cause.
    """

    name: str
    severity: Severity
    what: str
    change: str
    settings: tuple[str, ...] = ()
    because: str = ""

    @property
    def title(self) -> str:
        return f"{self.name} (follows from {self.because})" if self.because else self.name


class Advice(NamedTuple):
    """The change to make, and the keys that make it as `key=value`."""

    change: str
    settings: tuple[str, ...] = ()


class Symptom(NamedTuple):
    """What a rule says when its condition holds."""

    what: str
    advice: Advice
    dead: bool = False


@dataclass(frozen=True)
class Evidence:
    """What the rules look at: the last steps, their completions (none where there is no trace), the keys."""

    trend: Sequence[Step]
    all_completions: Sequence[Completion]
    config: TrainConfig

    @property
    def steps(self) -> Sequence[Step]:
        """The window."""
        return self.trend[-WINDOW_STEPS:]

    @cached_property
    def completions(self) -> list[Completion]:
        """Those of the window."""
        first = self.steps[0].step if self.steps else 0
        return [one for one in self.all_completions if one.step >= first]

    @cached_property
    def outcomes(self) -> Counter[str]:
        return sum((Counter(step.outcomes) for step in self.steps), Counter())

    @property
    def window(self) -> str:
        """The window in words."""
        first, last = self.steps[0].step, self.steps[-1].step
        return f"step {last}" if first == last else f"steps {first} to {last}"

    @property
    def is_full(self) -> bool:
        return len(self.steps) == WINDOW_STEPS

    @property
    def all_equal(self) -> bool:
        """Had no group of the window answers of different rewards?"""
        return all(step.zero_variance == 1 for step in self.steps)

    def mean(self, name: str) -> float:
        """The mean of a field of the window's steps that is never missing."""
        return statistics.fmean(getattr(step, name) for step in self.steps)

    def numbers(self, name: str) -> list[float]:
        """The values of a field in the window that are numbers."""
        return [value for step in self.steps if is_number(value := getattr(step, name))]

    def groups(self) -> Iterator[list[Completion]]:
        """The scored completions of each group that has several."""
        scored = [one for one in self.completions if one.reward is not None]
        for _, group in groupby(sorted(scored, key=group_of), key=group_of):
            members = list(group)
            if len(members) > 1:
                yield members


def is_number(value: float | None) -> bool:
    """NaN and infinity are written as null."""
    return value is not None and math.isfinite(value)


def group_of(completion: Completion) -> tuple[int, int]:
    return completion.step, completion.group


def most_common_error(completions: Iterable[Grade]) -> str:
    """', most often "..." (12 times)' for the errors of answers that did not work; "" without a trace."""
    errors = Counter(one.error or one.verdict for one in completions if one.outcome not in VALID_OUTCOMES)
    if not errors:
        return ""
    error, count = errors.most_common(1)[0]
    return f', most often "{error[:80]}" ({count} times)'


# ---------------------------------------------------------------------------------------------------------------------
# The rules


def infrastructure_failures(seen: Evidence) -> Symptom | None:
    failed, total = seen.outcomes["infra"], seen.outcomes.total()
    if not total or failed / total < INFRA_SHARE:
        return None
    lost = most_common_error(one for one in seen.completions if one.outcome == "infra")
    return Symptom(
        f"{failed} of {total} completions in {seen.window} could not be scored and were masked{lost}",
        working_machine(),
        dead=failed == total and seen.is_full,
    )


def not_a_number(seen: Evidence) -> Symptom | None:
    logs_gradient = any(step.grad_norm is not None for step in seen.steps)
    bad = [
        step.step
        for step in seen.steps
        if not is_number(step.loss) or (logs_gradient and not is_number(step.grad_norm))
    ]
    if not bad:
        return None
    return Symptom(
        f"loss or gradient was not a number in {len(bad)} of the last {len(seen.steps)} steps, first in step {bad[0]}",
        Advice(
            "lower learning_rate and start again from the last good adapter: weights that are not numbers stay so",
            (lower_rate(seen.config),),
        ),
        dead=len(bad) >= FIRST_STEPS and bad[-FIRST_STEPS:] == [step.step for step in seen.steps[-FIRST_STEPS:]],
    )


def most_clipped(seen: Evidence) -> Symptom | None:
    share = seen.mean("truncated")
    if share < MOST_CLIPPED:
        return None
    longest = max(step.length_max for step in seen.steps)
    return Symptom(
        f"{share:.0%} of the completions in {seen.window} were cut at {longest:,} tokens before their end",
        longer_answers(seen.config),
        # Cut answers can still differ in reward; left out of the loss, or all the same, they teach nothing.
        dead=share == 1 and seen.is_full and (seen.config.mask_truncated or seen.all_equal),
    )


def no_valid_function(seen: Evidence) -> Symptom | None:
    scored = seen.outcomes.total() - seen.outcomes["infra"]
    if not scored or any(seen.outcomes[outcome] for outcome in VALID_OUTCOMES):
        return None
    kinds = ", ".join(f"{count} {name}" for name, count in seen.outcomes.most_common() if name != "infra")
    return Symptom(
        f"none of the {scored} completions in {seen.window} is a function that works ({kinds})"
        + most_common_error(seen.completions),
        working_functions(seen.config),
        dead=seen.is_full and seen.all_equal,
    )


def all_rewards_equal(seen: Evidence) -> Symptom | None:
    equal = 0
    for step in reversed(seen.steps):
        if step.zero_variance < 1:
            break
        equal += 1
    if equal < FIRST_STEPS:
        return None
    return Symptom(
        f"in each of the last {equal} steps all answers to a prompt got the same reward (mean "
        f"{seen.steps[-1].reward or 0.0:+.2f}): every advantage was 0",
        Advice(
            "sample more answers a prompt, and only tasks that are solved sometimes",
            (more_answers(seen.config), *filter_setting(seen.config)),
        ),
        dead=equal == WINDOW_STEPS,
    )


def groups_all_right(seen: Evidence) -> Symptom | None:
    share = seen.mean("all_right")
    if share < ALMOST_ALL:
        return None
    return Symptom(
        f"{share:.0%} of the groups in {seen.window} were all right: there is nothing left to learn from them",
        harder_tasks(seen.config),
    )


def groups_all_wrong(seen: Evidence) -> Symptom | None:
    share = seen.mean("all_wrong")
    if share < ALMOST_ALL:
        return None
    solved = seen.outcomes["solved"] / max(seen.outcomes.total(), 1)
    return Symptom(
        f"{share:.0%} of the groups in {seen.window} were all wrong ({solved:.1%} of the completions solved)",
        easier_tasks(seen.config),
    )


def one_reward_drowns(seen: Evidence) -> Symptom | None:
    shares, pays_solving = reward_shares(seen.groups())
    if sum(share > 1e-6 for share in shares.values()) < 2:
        return None
    top = max(shares, key=shares.__getitem__)
    if shares[top] < DROWNS or top == pays_solving:
        return None
    others = ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if name != top)
    return Symptom(
        f"{top} makes {shares[top]:.0%} of the difference between answers to the same prompt in {seen.window} "
        f"({others}): the model is taught that and little else",
        Advice(f"lower what {top} can pay in the environment's REWARD_FUNCS, or raise the others"),
    )


def reward_shares(groups: Iterable[Sequence[Completion]]) -> tuple[dict[str, float], str]:
    """Each reward's share of the variance within groups, and the reward that goes with solving most ("" for none).

    Differences between groups count for nothing: an advantage is against the answers to the same prompt.
    """
    variances: dict[str, float] = defaultdict(float)
    with_solved: dict[str, float] = defaultdict(float)
    for group in groups:
        solved = centred([float(one.outcome == "solved") for one in group])
        for position, reward in enumerate(group[0].rewards):
            values = centred([one.rewards[position].value or 0.0 for one in group])
            variances[reward.name] += sum(value * value for value in values)
            with_solved[reward.name] += sum(map(math.prod, zip(values, solved, strict=True)))
    total = sum(variances.values())
    if total <= 1e-9:
        return {}, ""
    best = max(with_solved, key=with_solved.__getitem__)
    return {name: part / total for name, part in variances.items()}, best if with_solved[best] > 1e-9 else ""


def centred(values: Sequence[float]) -> list[float]:
    mean = statistics.fmean(values)
    return [value - mean for value in values]


def kl_explosion(seen: Evidence) -> Symptom | None:
    values = seen.numbers("kl")
    if not values or (typical := statistics.median(values)) < KL_EXPLODED:
        return None
    return Symptom(
        f"the KL divergence from the policy the cycle began with is {typical:.2f} nats a token (median of "
        f"{seen.window}, at most {max(values):.2f})",
        Advice(
            "lower learning_rate or raise kl_beta, and start again from the adapter before",
            (lower_rate(seen.config), f"kl_beta={min(max(10 * seen.config.kl_beta, 0.01), 1.0):g}"),
        ),
    )


def gradient_explosion(seen: Evidence) -> Symptom | None:
    norms = seen.numbers("grad_norm")
    limit = seen.config.max_grad_norm or 1.0
    if len(norms) <= FIRST_STEPS:
        return None
    before, now = statistics.median(norms[:-FIRST_STEPS]), statistics.median(norms[-FIRST_STEPS:])
    grew = now > GRADIENT_GREW * before and now > limit
    if not grew and statistics.median(norms) < GRADIENT_HUGE * limit:
        return None
    return Symptom(
        f"the gradient's norm is {now:.3g} in the last {FIRST_STEPS} steps and was {before:.3g} in those before "
        f"(clipped at {limit:g})",
        Advice(
            "lower learning_rate, take more warmup_steps, or more completions a step",
            (lower_rate(seen.config), f"warmup_steps={max(20, seen.config.warmup_steps)}"),
        ),
    )


def lookups_rise(seen: Evidence) -> Symptom | None:
    half = len(seen.trend) // 2
    lookups, solves, totals = [], [], []
    for part in (seen.trend[-2 * half : -half], seen.trend[-half:]):
        counts = sum((Counter(step.outcomes) for step in part), Counter())
        totals.append(max(counts.total() - counts["infra"], 1))
        lookups.append(counts["lookup"] / totals[-1])
        solves.append(counts["solved"] / totals[-1])
    if standard_errors(lookups, totals) < LOOKUPS_ROSE or standard_errors(solves, totals) > 1.0:
        return None
    return Symptom(
        f"look-ups went from {lookups[0]:.1%} to {lookups[1]:.1%} of the completions between the halves of the last "
        f"{2 * half} steps, solved ones from {solves[0]:.1%} to {solves[1]:.1%}",
        Advice(
            "go back to the cycle before and take tasks that are solved sometimes; see to it that a look-up pays less "
            "than an honest failure",
            filter_setting(seen.config),
        ),
    )


def standard_errors(shares: Sequence[float], totals: Sequence[int]) -> float:
    """By how many standard errors the second of two shares is above the first."""
    pooled = (shares[0] * totals[0] + shares[1] * totals[1]) / sum(totals)
    error = math.sqrt(pooled * (1 - pooled) * (1 / totals[0] + 1 / totals[1]))
    return (shares[1] - shares[0]) / error if error else 0.0


def full_fine_tuning_rate(seen: Evidence) -> Symptom | None:
    rate = seen.config.learning_rate
    if rate >= LORA_LEARNING_RATE:
        return None
    return Symptom(
        f"learning_rate = {rate:g} is one of full fine-tuning; LoRA adapters want 1e-5 to 1e-3",
        Advice("raise learning_rate", (f"learning_rate={USUAL_LEARNING_RATE:g}",)),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Advice that several rules give


def working_machine() -> Advice:
    return Advice("the machine fails, not the model: see rlvrctl.py doctor, free memory, or set sandbox_workers lower")


def longer_answers(config: TrainConfig) -> Advice:
    also = ", or take a base model that answers more briefly"
    if 0 < config.max_completion_length < config.max_seq_length:
        length = min(2 * config.max_completion_length, config.max_seq_length)
        return Advice(f"raise max_completion_length{also}", (f"max_completion_length={length}",))
    return Advice(
        f"raise max_seq_length (a model that has an adapter keeps its own: make another){also}",
        (f"max_seq_length={2 * config.max_seq_length}",),
    )


def working_functions(config: TrainConfig) -> Advice:
    return Advice(
        "look at some with rlvrctl.py trace; try another prompt_style, a lower temperature, or a base model that is "
        "tuned to follow instructions",
        ("temperature=0.7",) if config.temperature > 0.7 else (),
    )


def harder_tasks(config: TrainConfig) -> Advice:
    return Advice(
        "take harder tasks: start the next cycle, which leaves out what was always solved, train only on what is "
        "solved sometimes, or hide the names",
        (*filter_setting(config), *(("show_name=false",) if config.show_name else ())),
    )


def easier_tasks(config: TrainConfig) -> Advice:
    return Advice(
        "take easier tasks or more answers a prompt: train only on what is solved sometimes, show the names",
        (*(filter_setting(config) or (more_answers(config),)), *(() if config.show_name else ("show_name=true",))),
    )


def filter_setting(config: TrainConfig) -> tuple[str, ...]:
    return () if config.filter_samples else ("filter_samples=8",)


def more_answers(config: TrainConfig) -> str:
    """At least eight answers a prompt, a multiple of what there were, so that the step can be divided as before."""
    return f"num_generations={config.num_generations * max(2, math.ceil(8 / config.num_generations))}"


def lower_rate(config: TrainConfig) -> str:
    """A third of the learning rate, in two digits."""
    return f"learning_rate={config.learning_rate / 3:.2g}"


# ---------------------------------------------------------------------------------------------------------------------
# The table


class Rule(NamedTuple):
    """A rule, the steps it needs, and the findings that already explain what it would say."""

    name: str
    check: Callable[[Evidence], Symptom | None]
    needs_steps: int
    unless: tuple[str, ...] = ()


RATE = "learning rate of full fine-tuning"
INFRA = "infrastructure failures"
NAN = "not a number"
KL = "KL explosion"
CLIPPED = "most completions clipped"
INVALID = "no valid function"
RIGHT = "groups almost all right"

RULES = (  # causes before what follows from them
    Rule(RATE, full_fine_tuning_rate, 0),
    Rule(INFRA, infrastructure_failures, FIRST_STEPS),
    Rule(NAN, not_a_number, 1),
    Rule(KL, kl_explosion, FIRST_STEPS),
    Rule("gradient explosion", gradient_explosion, WINDOW_STEPS),
    Rule(CLIPPED, most_clipped, FIRST_STEPS, (NAN, KL)),
    Rule(INVALID, no_valid_function, FIRST_STEPS, (INFRA, NAN, KL, CLIPPED)),
    Rule(RIGHT, groups_all_right, WINDOW_STEPS),
    Rule("groups almost all wrong", groups_all_wrong, WINDOW_STEPS, (INFRA, NAN, KL, CLIPPED, INVALID)),
    Rule("all rewards equal", all_rewards_equal, FIRST_STEPS, (INFRA, NAN, KL, CLIPPED, INVALID, RIGHT)),
    Rule("one reward drowns the others", one_reward_drowns, WINDOW_STEPS, (NAN, KL, CLIPPED, INVALID)),
    Rule("look-ups rise, solves do not", lookups_rise, 2 * WINDOW_STEPS),
)


def diagnose(steps: Sequence[Step], completions: Iterable[Completion], config: TrainConfig) -> list[Finding]:
    """What keeps the run from learning, causes first; empty when nothing known is wrong.

    Only the last steps count. A rule that needs more steps than there are stays silent, and so does one whose finding
    would only follow from another, unless no further step can teach anything.
    """
    seen = Evidence(steps[-TREND_STEPS:], list(completions), config)
    found: list[Finding] = []
    for rule in RULES:
        symptom = rule.check(seen) if len(seen.trend) >= rule.needs_steps else None
        if symptom is None:
            continue
        because = next((finding.name for finding in found if finding.name in rule.unless), "")
        if symptom.dead or not because:
            severity = "dead" if symptom.dead else "warning"
            advice = Advice(f"mend what it follows from: {because}") if because else symptom.advice
            found.append(Finding(rule.name, severity, symptom.what, *advice, because=because))
    return found


def conclusion(steps: Sequence[Step], findings: Sequence[Finding]) -> str:
    """One sentence over all findings."""
    if findings:
        dead = [finding.title for finding in findings if finding.severity == "dead"]
        count = f"{len(findings)} finding{'s' if len(findings) > 1 else ''}"
        return f"{count}; further steps teach nothing: {dead[0]}" if dead else count
    if len(steps) < WINDOW_STEPS:
        return f"too little to judge by: {len(steps)} of the {WINDOW_STEPS} steps that most rules look at"
    return (
        f"nothing wrong in the last {min(len(steps), WINDOW_STEPS)} steps; whether it got better, rlvrctl.py eval says"
    )


class Watch:
    """`diagnose` while a run goes on: it keeps the last steps and says each finding once."""

    def __init__(self, config: TrainConfig):
        self.config = config
        self.dead: Finding | None = None
        """The first finding after which further steps teach nothing."""
        self._steps: deque[Step] = deque(maxlen=TREND_STEPS)
        self._completions: deque[Sequence[Completion]] = deque(maxlen=WINDOW_STEPS)
        self._said: set[str] = set()

    def add(self, step: Step, completions: Sequence[Completion]) -> list[Finding]:
        """Take in a step; return the findings that are new by name."""
        self._steps.append(step)
        self._completions.append(completions)
        flat = [one for each in self._completions for one in each]
        findings = diagnose(list(self._steps), flat, self.config)
        self.dead = next((finding for finding in findings if finding.severity == "dead"), None)
        new = [finding for finding in findings if finding.name not in self._said]
        self._said.update(finding.name for finding in new)
        return new
