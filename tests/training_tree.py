"""A `training/` folder as real runs leave it, made up in a moment: for tests of whatever reads one.

    python tests/training_tree.py FOLDER          # makes FOLDER/training, to look at with rlvrctl, rlvrviz, rlvrtui

    demo/001     done, a label, notes; the policy gets better from step to step
    demo/002     done, warm-started from 001, which never used KL
    demo/003     running (as this process, unless told otherwise), the last lines of trace and metrics torn
    demo/004     pending, waiting for 003
    demo/003/evals/base, demo/002/evals/base+001, demo/auto/001
    other/001    failed at step 9: rewards that are NaN, completions that could not be scored, bad UTF-8 in its log

Every number follows from the completions: a step's shares are those of its 16 lines in the trace. No model was used.
"""

import math
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from oeis_rlvr import Task
from rlvr import comparison, records
from rlvr.config import PRESETS, EvalConfig, TrainConfig, resolve, write_snapshot
from rlvr.cycles import ModelFiles, Run, RunFiles
from rlvr.records import Check, Completion, Evaluation, Outcomes, Reward, Round, Solves, Status, Step
from rlvr.status import process_start

PROMPTS, SAMPLES = 4, 4
"""Of a step."""

STARTED = 1_790_000_000.0
"""When the first cycle began, in seconds since 1970."""


@dataclass(frozen=True)
class Known:
    """A sequence with a right function and a wrong one."""

    anum: str
    name: str
    right: str
    wrong: str
    function: Callable[[int], int]

    def task(self) -> Task:
        terms = tuple(self.function(n) for n in range(24))
        return Task(self.anum, self.name, 0, terms[:10], terms[10:])


KNOWN = (
    Known("A000027", "The positive integers, counted from n = 0.", "return n + 1", "return n", lambda n: n + 1),
    Known("A000290", "The squares: a(n) = n^2.", "return n * n", "return 2 * n", lambda n: n * n),
    Known("A000578", "The cubes: a(n) = n^3.", "return n**3", "return n * n", lambda n: n**3),
    Known("A000079", "Powers of 2: a(n) = 2^n.", "return 2**n", "return n * n", lambda n: 2**n),
    Known("A000217", "Triangular numbers.", "return n * (n + 1) // 2", "return n * n // 2",
          lambda n: n * (n + 1) // 2),
    Known("A000142", "Factorials.", "return math.factorial(n)", "return n**3", math.factorial),
    Known("A000244", "Powers of 3: a(n) = 3^n.", "return 3**n", "return 3 * n", lambda n: 3**n),
    Known("A005408", "The odd numbers.", "return 2 * n + 1", "return 2 * n", lambda n: 2 * n + 1),
    Known("A002378", "Pronic numbers.", "return n * (n + 1)", "return n * n", lambda n: n * (n + 1)),
    Known("A000108", "Catalan numbers.", "return math.comb(2 * n, n) // (n + 1)", "return 2**n // 2",
          lambda n: math.comb(2 * n, n) // (n + 1)),
    Known("A000984", "Central binomial coefficients.", "return math.comb(2 * n, n)", "return 4**n // 2",
          lambda n: math.comb(2 * n, n)),
    Known("A001333", "Numerators of the continued fraction convergents of the square root of 2, with a long name.",
          "x, y = 1, 1\n    for _ in range(n):\n        x, y = y, 2 * y + x\n    return x", "return 2**n",
          lambda n: _pell(n)),
)  # fmt: skip


def _pell(n: int) -> int:
    x, y = 1, 1
    for _ in range(n):
        x, y = y, 2 * y + x
    return x


def _code(known: Known, outcome: str) -> str:
    terms = known.task().shown
    return {
        "solved": f"import math\n\n\ndef a(n):\n    {known.right}\n",
        "partial": f"import math\n\n\ndef a(n):\n    if n > 16:\n        return 0\n    {known.right}\n",
        "wrong": f"def a(n):\n    {known.wrong}\n",
        "lookup": f"def a(n):\n    return {list(terms)}[n] if n < {len(terms)} else 0\n",
        "disallowed_import": f"import os\nimport math\n\n\ndef a(n):\n    {known.right}\n",
        "invalid": f"def a(n)\n    {known.right}\n",
        "truncated": f"def a(n):\n    # Let us look at the terms once more: {', '.join(map(str, terms))}, and then",
        "timeout": "def a(n):\n    while True:\n        n += 1\n",
        "infra": f"def a(n):\n    {known.right}\n",
    }[outcome]


def _got(known: Known, outcome: str, n: int) -> str:
    """What that code gives for n; empty for no value."""
    if outcome == "wrong":
        return str(eval(known.wrong.removeprefix("return "), {"n": n}))
    if (outcome == "partial" and n > 16) or (outcome == "lookup" and n >= 10):
        return "0"
    return "" if outcome in ("invalid", "truncated", "timeout", "infra") else str(known.function(n))


def completion(known: Known, outcome: str, *, step: int, group: int, sample: int, time: float, rng: random.Random,
               participant: str = "") -> Completion:  # fmt: skip
    """One graded answer with that outcome."""
    task, code = known.task(), _code(known, outcome)
    expected = (*task.shown, *task.holdout)
    checks = tuple(
        Check(f"a({n})", str(term), got, got == str(term), shown=n < len(task.shown))
        for n, term in enumerate(expected)
        if (got := _got(known, outcome, n)) is not None
    )
    hidden = sum(check.passed for check in checks if not check.shown)
    integers = sum(bool(check.got) for check in checks)
    works = -0.3 + 0.4 * integers / len(checks)
    matches = {"solved": 0.9, "lookup": -0.5, "disallowed_import": 0.0}.get(outcome, 0.2 * hidden / len(task.holdout))
    rewards = (
        Reward("function_works", works, f"{integers} of {len(checks)} terms came back as exact integers"),
        Reward("no_cheating", -0.2 * (outcome == "disallowed_import"),
               "imports os" if outcome == "disallowed_import" else "only allowed imports"),
        Reward("sequence_matches", matches, f"{hidden} of {len(task.holdout)} hidden terms right"),
    )  # fmt: skip
    if outcome == "infra":
        rewards = tuple(Reward(reward.name, None, "not scored") for reward in rewards)
    verdict = {"invalid": "syntax_error", "timeout": "cpu_timeout", "infra": "infra"}.get(outcome, "ok")
    words = rng.randint(8, 40)
    thought = f"The terms look like {known.name[:40].lower().rstrip('.')}. " + "So we check them again. " * (
        words // 8
    )
    text = f"{thought}\n\n```python\n{code}" + ("" if outcome == "truncated" else "```\n")
    return Completion(
        task=known.anum,
        outcome=outcome,
        reward=None if outcome == "infra" else sum(reward.value or 0.0 for reward in rewards),
        rewards=rewards,
        function=code,
        checks=checks,
        verdict=verdict,
        error="SyntaxError: expected ':'" if outcome == "invalid" else "",
        cpu_s=round(rng.uniform(0.001, 0.02), 4),
        isolation="test",
        step=step,
        group=group,
        sample=sample,
        prompt=task.prompt_text("full"),
        completion=text,
        tokens=384 if outcome == "truncated" else len(text) // 4,
        truncated=outcome == "truncated",
        advantage=None if outcome == "infra" else 0.0,
        participant=participant,
        time=time,
    )


def _outcome(skill: float, rng: random.Random) -> str:
    """Something better the higher `skill` in [0, 1] is."""
    if rng.random() < skill:
        return "solved"
    kinds = ("partial", "wrong", "lookup", "disallowed_import", "invalid", "truncated", "timeout")
    weights = (2, 4, 0.6 * skill, 0.5, 3 * (1 - skill), 1.5 * (1 - skill), 0.3)
    return rng.choices(kinds, weights)[0]


def steps(
    count: int,
    *,
    seed: int = 0,
    skill: tuple[float, float] = (0.15, 0.7),
    started: float = STARTED,
    max_steps: int | None = None,
    kl: bool = True,
    first: int = 1,
    infra_from: int | None = None,
) -> Iterator[tuple[Step, list[Completion]]]:
    """The steps of a cycle and their completions; the chance to solve an easy task goes from skill[0] to skill[1].

    Two equal calls give equal records. From step `infra_from` on nothing can be scored: rewards are NaN.
    """
    total = max_steps or count
    for number in range(first, first + count):
        rng = random.Random(seed * 1_000_003 + number)
        progress = 1 - math.exp(-3 * number / total)
        level = skill[0] + (skill[1] - skill[0]) * progress
        now = started + 40 + 6.5 * number + rng.uniform(-1, 1)
        lines = []
        for group in range(PROMPTS):
            index = rng.randrange(len(KNOWN))
            chance = min(max(level + (0.35 - 0.06 * index), 0.0), 1.0)
            for sample in range(SAMPLES):
                outcome = "infra" if infra_from and number >= infra_from else _outcome(chance, rng)
                place = dict(step=number, group=group, sample=sample, time=now)
                lines.append(completion(KNOWN[index], outcome, rng=rng, **place))
        yield _step(lines, number, total, now, progress, kl, rng), lines


def _step(
    lines: list[Completion], number: int, total: int, now: float, progress: float, kl: bool, rng: random.Random
) -> Step:
    scored = [line.reward for line in lines if line.reward is not None]
    groups = [lines[start : start + SAMPLES] for start in range(0, len(lines), SAMPLES)]
    solved = [sum(line.outcome == "solved" for line in group) for group in groups]
    equal = [len({line.reward for line in group}) == 1 for group in groups]
    mean = sum(scored) / len(scored) if scored else math.nan
    names = [reward.name for reward in lines[0].rewards]
    parts = {
        name: [
            reward.value
            for line in lines
            for reward in line.rewards
            if reward.name == name and reward.value is not None
        ]
        for name in names
    }
    tokens = sum(line.tokens for line in lines)
    generation = 4.0 + rng.uniform(-0.5, 0.5)
    return Step(
        step=number,
        max_steps=total,
        time=now,
        reward=mean,
        reward_std=math.sqrt(sum((value - mean) ** 2 for value in scored) / len(scored)) if scored else math.nan,
        rewards={name: sum(values) / len(values) if values else None for name, values in parts.items()},
        all_right=sum(won == SAMPLES for won in solved) / PROMPTS,
        mixed=sum(0 < won < SAMPLES for won in solved) / PROMPTS,
        all_wrong=sum(won == 0 for won in solved) / PROMPTS,
        zero_variance=sum(equal) / PROMPTS,
        outcomes=dict(Counter(line.outcome for line in lines)),
        loss=0.05 * math.exp(-2 * progress) + rng.gauss(0, 0.01),
        kl=abs(0.02 * progress + rng.gauss(0, 0.002)) if kl else None,
        entropy=0.9 - 0.5 * progress + rng.gauss(0, 0.03),
        grad_norm=abs(0.4 + rng.gauss(0, 0.12)) + (4.0 if number % 37 == 0 else 0.0),
        learning_rate=2e-3 * min(number / 5, 1.0) * (0.5 + 0.5 * math.cos(math.pi * number / total)),
        length_mean=tokens / len(lines),
        length_max=max(line.tokens for line in lines),
        truncated=sum(line.truncated for line in lines) / len(lines),
        tokens=tokens,
        tokens_per_s=tokens / generation,
        generation_s=generation,
        scoring_s=0.3,
        update_s=1.9,
        step_s=generation + 2.2,
    )


def write_step(files: RunFiles, step: Step, lines: list[Completion]) -> None:
    """Append one step as the trainer does: its completions, then its metrics, then the log."""
    records.append(files.trace, *lines)
    records.append(files.metrics, step)
    reward = "-" if step.reward is None or math.isnan(step.reward) else f"{step.reward:+.3f}"
    with files.log.open("a", encoding="utf-8") as log:
        log.write(f"step {step.step:>4}/{step.max_steps}  reward {reward}  {step.tokens_per_s:,.0f} tok/s\n")


def make_cycle(
    folder: Path,
    count: int,
    *,
    state: str = "done",
    pid: int = 0,
    parent: str = "",
    message: str = "",
    exit_code: int | None = None,
    max_steps: int | None = None,
    started: float = STARTED,
    **more,
) -> RunFiles:
    """Make the folder of one cycle of `count` steps; `more` goes to `steps`."""
    files = RunFiles(folder)
    folder.mkdir(parents=True)
    total = max_steps or count
    config, origins = resolve(TrainConfig, [("preset tiny", _known(TrainConfig)), ("flag", {"max_steps": total})])
    write_snapshot(files.config, config, origins, {"parent": parent, "num_tasks": len(KNOWN), "torch": "2.13.0"})
    files.log.write_text("Built 12 OEIS tasks.\nBaseline before: 2 of 8 training tasks solved\n", encoding="utf-8")
    seen: dict[str, Solves] = {}
    step = None
    for step, lines in steps(count, started=started, max_steps=total, **more):
        write_step(files, step, lines)
        for line in lines:
            entry = seen.setdefault(line.task, Solves())
            entry.samples += 1
            entry.solved += line.outcome == "solved"
            entry.matched += line.hidden_passed > 0
    if state == "done":
        always = [task for task, entry in seen.items() if entry.samples == entry.solved]
        never = [task for task, entry in seen.items() if not entry.matched]
        records.write(
            files.outcomes, Outcomes(seen=list(seen), always_solved=always, never_matched=never, solves=seen)
        )
        files.adapter.mkdir()
        (files.adapter / "adapter_config.json").write_text('{"r": 16, "lora_alpha": 32, "peft_type": "LORA"}\n')
    if parent:
        files.parent.symlink_to(f"../{parent}/adapter")
    last = started + 40 + 6.5 * count
    living = state in ("pending", "running")
    records.write(
        files.status,
        Status(
            state=state,
            kind="train",
            created=started - 5,
            updated=last,
            pid=pid,
            process_start=(process_start(pid) or 0.0) if pid else 0.0,
            started=None if state == "pending" else started,
            finished=None if living else last + 3,
            step=count,
            max_steps=total,
            reward=step.reward if step else None,
            solved=step.outcomes.get("solved", 0) / (PROMPTS * SAMPLES) if step else None,
            exit_code=exit_code if exit_code is not None else 0 if state == "done" else None,
            message=message,
        ),
    )
    return files


def _known(config_class) -> dict:
    return {name: value for name, value in PRESETS["tiny"].items() if name in config_class.__dataclass_fields__}


def make_eval(folder: Path, participants: dict[str, float], *, started: float = STARTED, seed: int = 0) -> RunFiles:
    """Make the folder of an evaluation: participant -> its chance to solve an easy task."""
    files = RunFiles(folder)
    folder.mkdir(parents=True)
    config, origins = resolve(EvalConfig, [("preset tiny", _known(EvalConfig)), ("flag", {"samples": SAMPLES})])
    write_snapshot(files.config, config, origins, {})
    tasks, summaries = [known.anum for known in KNOWN], []
    for name, skill in participants.items():
        rng = random.Random(f"{seed} {name}")
        lines = [
            completion(known, _outcome(min(max(skill + 0.3 - 0.06 * index, 0), 1), rng), step=0, group=index,
                       sample=sample, time=started + index, rng=rng, participant=name)
            for index, known in enumerate(KNOWN)
            for sample in range(SAMPLES)
        ]  # fmt: skip
        records.append(files.completions, *lines)
        adapter = "" if name == "base" else str(folder.parent.parent.parent / name / "adapter")
        options = dict(tasks=tasks, samples=SAMPLES, name=name, adapter=adapter, sha256=adapter and "ab" * 32)
        summaries.append(comparison.summarize(lines, seconds=12.5, **options))
    first, *others = summaries
    metrics = ("solved", "mean_holdout_match", f"pass@{SAMPLES}")
    differences = [comparison.compare(first, other, metric) for other in others for metric in metrics]
    evaluation = Evaluation(
        title=f"{len(tasks)} held-out sequences, {SAMPLES} samples each",
        environment="oeis",
        base_model="tiny",
        num_tasks=len(tasks),
        samples=SAMPLES,
        temperature=1.0,
        max_new_tokens=64,
        seed=seed,
        isolation="test",
        participants=summaries,
        differences=differences,
        conclusions=[comparison.conclude(each, "sequences") for each in differences if each.metric == "solved"],
        tasks=tasks,
        provenance={"torch": "2.13.0"},
    )
    records.write(files.evaluation, evaluation)
    files.log.write_text(evaluation.title + "\n" + "\n".join(evaluation.conclusions) + "\n", encoding="utf-8")
    total = len(participants) * len(tasks) * SAMPLES
    records.write(
        files.status,
        Status(
            state="done",
            kind="eval",
            created=started,
            started=started,
            updated=started + 30,
            finished=started + 30,
            step=total,
            max_steps=total,
            exit_code=0,
        ),
    )
    return files


def make_training_tree(folder: Path, *, num_steps: int = 60, pid: int | None = None) -> Path:
    """Make `folder`/training as the top of this file says; returns it. Programs are run with `folder` as their cwd.

    Args:
        num_steps: steps of demo/002; the other cycles have about as many.
        pid: whose process demo/003 is, this one by default; 0 for none, so that readers find it lost.
    """
    training = folder / "training"
    demo = ModelFiles(training / "demo")
    demo.folder.mkdir(parents=True)
    demo.model_toml.write_text('base_model = "tiny"\nlora_rank = 16  # as small as it goes\nlora_alpha = 32\n')
    demo.training_toml.write_text("max_steps = 80\n\n[ephemeral]\nlearning_rate = 0.001\n")
    demo.eval_toml.write_text("num_tasks = 12\n")

    first = make_cycle(demo.folder / "001", num_steps * 3 // 4, seed=1, skill=(0.1, 0.45))
    first.label.write_text("cold start\n", encoding="utf-8")
    first.notes.write_text("The first one that got anywhere.\n", encoding="utf-8")
    day = 3600.0
    more = dict(parent="001", kl=False)
    make_cycle(demo.folder / "002", num_steps, seed=2, skill=(0.4, 0.65), started=STARTED + day, **more)
    now = time.time()
    third = make_cycle(
        demo.folder / "003",
        num_steps * 2 // 3,
        seed=3,
        skill=(0.5, 0.9),
        state="running",
        pid=os.getpid() if pid is None else pid,
        parent="002",
        max_steps=num_steps,
        started=now - 40 - 6.5 * (num_steps * 2 // 3),
    )
    for file in (third.trace, third.metrics):
        with file.open("ab") as lines:
            lines.write(file.read_bytes().splitlines()[-1][:70])  # a writer caught in the middle of a line
    fourth = RunFiles(demo.folder / "004")
    fourth.folder.mkdir()
    waiting = Status(state="pending", kind="train", created=now, updated=now, waiting_for="003", max_steps=num_steps)
    records.write(fourth.status, waiting)

    make_eval(RunFiles(demo.folder / "002").evals / "base+001", {"base": 0.1, "001": 0.35, "002": 0.55}, seed=5)
    make_eval(third.evals / "base", {"base": 0.1, "003": 0.8}, seed=6)
    for owner, link, target in (
        ("001", "base+002", "../../002/evals/base+001"),
        ("base", "001+002", "../../002/evals/base+001"),
        ("base", "003", "../../003/evals/base"),
    ):
        evals = RunFiles(demo.folder / owner).evals
        evals.mkdir(parents=True, exist_ok=True)
        (evals / link).symlink_to(target)
    auto = Run("demo", "auto/001", "auto", demo.folder / "auto" / "001").files
    auto.folder.mkdir(parents=True)
    for number, solved in ((1, 0.31), (2, 0.46)):
        records.append(
            auto.rounds,
            Round(round=number, cycle=f"00{number}", evaluation=f"00{number}/evals/base", time=STARTED + number * day,
                  solved=solved, goal=solved, difference=solved - 0.1, low=solved - 0.25, high=solved, improved=True),
        )  # fmt: skip
    finished = Status(state="done", kind="auto", created=STARTED, started=STARTED, updated=STARTED + 3 * day,
                      finished=STARTED + 3 * day, step=2, max_steps=2, exit_code=0)  # fmt: skip
    records.write(auto.status, finished)

    other = ModelFiles(training / "other")
    other.folder.mkdir()
    other.model_toml.write_text('base_model = "tiny"\n')
    broken = make_cycle(
        other.folder / "001", 9, state="failed", exit_code=1, message="RuntimeError: the sandbox died", max_steps=80,
        seed=9, infra_from=7, started=STARTED + 2 * day,
    )  # fmt: skip
    with broken.log.open("ab") as log:
        log.write(b"  0%|   | 0/9\r 50%|## | 4/9\r\x1b[31mTraceback\x1b[0m caf\xe9\n")
    return training


if __name__ == "__main__":
    print(make_training_tree(Path(sys.argv[1]), num_steps=int(sys.argv[2]) if len(sys.argv) > 2 else 60))
