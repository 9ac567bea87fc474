"""The OEIS environment: prompts, split, and what an answer is worth, from real runs in the sandbox."""

import inspect

import pytest

import oeis_rlvr
from oeis_rlvr import ALLOWED_IMPORTS, REWARD_FUNCS, Task
from rlvr.config import TrainConfig
from rlvr.errors import RlvrError


@pytest.fixture(autouse=True)
def ample(monkeypatch):
    """CPU time that no program of these tests needs but the endless one, on a slow machine either."""
    monkeypatch.setattr(oeis_rlvr._sandbox(**oeis_rlvr._sandbox_options), "first_pass_s", 1.5)


SQUARES = Task("A000290", "The squares.", 0, tuple(n * n for n in range(10)), tuple(n * n for n in range(10, 30)))

SOLVED = "def a(n):\n    return n * n"
LOOKUP = f"def a(n):\n    return {list(SQUARES.shown)}[n]"

CASES = {
    # name: (completion, outcome, total reward)
    "plain": (SOLVED, "solved", 1.0),
    "in a fence": (f"Let me think.\n```python\n{SOLVED}\n```\nDone.", "solved", 1.0),
    "sympy integer": ("from sympy import Integer\ndef a(n):\n    return Integer(n) ** 2", "solved", 1.0),
    "numpy integer": ("import numpy as np\ndef a(n):\n    return np.int64(n) ** 2", "solved", 1.0),
    "prints while it works": (f"print('hello')\n{SOLVED}", "solved", 1.0),
    "half right": ("def a(n):\n    return n * n if n < 20 else 0", "partial", 0.1 + 0.2 * 10 / 20),
    "wrong": ("def a(n):\n    return n * n + 1", "wrong", 0.1),
    "float": ("def a(n):\n    return float(n * n)", "invalid", -0.3),
    "bool": ("def a(n):\n    return bool(n)", "invalid", -0.3),
    "string": ("def a(n):\n    return str(n * n)", "invalid", -0.3),
    "no function": ("def b(n):\n    return n * n", "invalid", -0.3),
    "syntax error": ("def a(n) return n", "invalid", -0.3),
    "prose": ("I do not know.", "invalid", -0.3),
    "empty": ("", "invalid", -0.3),
    "raises": ("def a(n):\n    raise ValueError", "invalid", -0.3),
    "look-up, error beyond": (LOOKUP, "lookup", -0.3 - 0.5),
    "look-up, zero beyond": (
        f"def a(n):\n    t = {list(SQUARES.shown)}\n    return t[n] if n < 10 else -1",
        "lookup",
        0.1 - 0.5,
    ),
    "look-up by dictionary": (
        f"def a(n):\n    return {dict(enumerate(SQUARES.shown))}.get(n, -1)",
        "lookup",
        0.1 - 0.5,
    ),
    "forbidden import, right": (f"import os\n{SOLVED}", "disallowed_import", 0.1 - 0.2),
    "forbidden import inside": ("def a(n):\n    import collections\n    return n * n", "disallowed_import", 0.1 - 0.2),
    "forbidden import, look-up": (
        f"import string\ndef a(n):\n    t = {list(SQUARES.shown)}\n    return t[n] if n < 10 else -1",
        "disallowed_import",
        0.1 - 0.2 - 0.5,
    ),
    "forbidden import, look-up, error beyond": (f"import os\n{LOOKUP}", "disallowed_import", -1.0),
    "import by exec": (oeis_rlvr.fenced(f"exec('import os')\n{SOLVED}"), "disallowed_import", 0.1 - 0.2),
    "import by eval": (oeis_rlvr.fenced(f"eval('1')\n{SOLVED}"), "disallowed_import", 0.1 - 0.2),
    "import by builtins": (
        oeis_rlvr.fenced(f"r = __builtins__.__dict__['__imp' + 'ort__']('random')\n{SOLVED}"),
        "disallowed_import",
        0.1 - 0.2,
    ),
    "look-up, no memory beyond": (f"{LOOKUP} if n < 10 else [0] * 10**12", "lookup", -0.3 - 0.5),
    "look-up, endless beyond": (
        f"{LOOKUP} if n < 10 else endless()\ndef endless():\n    while True: pass",
        "timeout",
        -0.3,
    ),
    "works for the shown terms only": ("def a(n):\n    return 7 if n < 10 else None", "wrong", -0.3),
    "endless": ("def a(n):\n    while True: pass", "timeout", -0.3),
    "never the same": ("import random\ndef a(n):\n    return random.randrange(10**9)", "disallowed_import", None),
}


@pytest.mark.parametrize("name", CASES)
def test_what_an_answer_is_worth(name):
    completion, outcome, total = CASES[name]
    (grade,) = oeis_rlvr.grade([SQUARES], [completion], [False])
    assert grade.outcome == outcome
    if total is not None:
        assert grade.reward == pytest.approx(total)
    assert -1.0 <= grade.reward <= 1.0
    assert grade.reward == pytest.approx(sum(reward.value for reward in grade.rewards))
    assert [reward.name for reward in grade.rewards] == ["function_works", "no_cheating", "sequence_matches"]
    assert all(reward.reason for reward in grade.rewards)
    assert len(grade.checks) == 30 and sum(check.shown for check in grade.checks) == 10


def test_the_order_of_answers_by_reward():
    def total(name):
        (grade,) = oeis_rlvr.grade([SQUARES], [CASES[name][0]], [False])
        return grade.reward

    order = [
        *("plain", "half right", "wrong", "forbidden import, right", "syntax error", "look-up, zero beyond"),
        *("look-up, error beyond", "forbidden import, look-up, error beyond"),
    ]
    totals = [total(name) for name in order]
    assert totals == sorted(totals, reverse=True) and len(set(totals)) == len(totals)
    assert total(order[-1]) == pytest.approx(oeis_rlvr.WORST_REWARD)


@pytest.mark.parametrize("num_hidden", [1, 10, 40])
@pytest.mark.parametrize("before", ["", "import os\n"])
def test_no_answer_is_worth_less_than_the_worst(num_hidden, before):
    task = Task("A000290", "", 0, SQUARES.shown, tuple(n * n for n in range(10, 10 + num_hidden)))
    own = [LOOKUP, "def a(n): raise ValueError"]
    own += [f"{LOOKUP} if n < 10 else go()\ndef go():\n    {end}" for end in oeis_rlvr.LOOKUP_ENDINGS.values()]
    texts = [*map(oeis_rlvr.fenced, own), *oeis_rlvr.attacks(task).values()]
    texts = [text.replace("```python\n", f"```python\n{before}") for text in texts]
    honest, *_ = oeis_rlvr.grade([task], ["no program"], [False])
    for grade in oeis_rlvr.grade([task] * len(texts), texts, [False] * len(texts)):
        assert oeis_rlvr.WORST_REWARD - 1e-9 <= grade.reward <= oeis_rlvr.ATTACK_REWARD + 1e-9
        if [check.passed for check in grade.checks] == [check.shown for check in grade.checks]:
            assert grade.reward <= honest.reward + 1e-9  # slow ones are worth as little, all others less


def test_a_truncated_answer_is_named_so_unless_it_is_right():
    grades = oeis_rlvr.grade([SQUARES] * 2, ["def a(n):\n    ret", SOLVED], [True, True])
    assert [grade.outcome for grade in grades] == ["truncated", "solved"]


def test_reward_functions_in_trl_signature_agree_with_the_grade():
    completions = [completion for completion, _, _ in CASES.values()]
    tasks = [SQUARES] * len(completions)
    rows = [task.columns() for task in tasks]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    messages = [[{"role": "assistant", "content": completion}] for completion in completions]
    values = [
        func(
            prompts=["p"] * len(rows),
            completions=messages,
            completion_ids=[[1]] * len(rows),
            trainer_state=None,
            **columns,
        )
        for func in REWARD_FUNCS
    ]
    grades = oeis_rlvr.grade(tasks, messages, [False] * len(tasks))
    for func, column in zip(REWARD_FUNCS, values, strict=True):
        graded = [reward.value for grade in grades for reward in grade.rewards if reward.name == func.__name__]
        assert column == graded


def test_the_rewards_of_a_batch_share_one_run(monkeypatch):
    runs = []
    sandbox = oeis_rlvr._sandbox(**oeis_rlvr._sandbox_options)
    real = sandbox.run
    monkeypatch.setattr(sandbox, "run", lambda jobs: (runs.append(len(jobs)), real(jobs))[1])
    row = SQUARES.columns()
    columns = {name: [value] * 2 for name, value in row.items()}
    oeis_rlvr.grade([SQUARES] * 2, ["def a(n): return 77", SOLVED], [False, False])
    for func in REWARD_FUNCS:
        func(completions=["def a(n): return 77", SOLVED], **columns)
    assert runs == [2]


def test_every_reward_takes_what_trl_passes():
    for func in REWARD_FUNCS:
        assert any(p.kind is p.VAR_KEYWORD for p in inspect.signature(func, follow_wrapped=False).parameters.values())


def test_the_full_prompt():
    text = SQUARES.prompt_text()
    assert text.startswith("Write a Python function a(n) that returns the n-th term of this integer sequence.\n")
    assert "Name: The squares.\nIndex of the first term: 0\nKnown terms: a(0)=0, a(1)=1, a(2)=4," in text
    assert "a(9)=81" in text and "100" not in text
    assert all(module in text for module in ALLOWED_IMPORTS)


def test_terms_beyond_every_limit_survive_columns_and_checks():
    big = 10**5000
    task = Task("A1", "", 1, (1, big), (big + 1,))
    assert [len(term) for term in task.columns()["shown"]] == [1, 5001]
    (grade,) = oeis_rlvr.grade([task], ["def a(n): return 1 if n == 1 else 10**5000 + n - 2"], [False])
    assert grade.outcome == "solved"
    assert grade.checks[2].expected == "1" + "0" * 4999 + "1"


def select(**options):
    return oeis_rlvr.select_tasks(corpus_dir=oeis_rlvr.corpus.SAMPLE_DIR, progress=False, **options)


def test_tasks_of_the_sample():
    train, held_out = select(split="train"), select(split="eval")
    assert not {task.id for task in train} & {task.id for task in held_out}
    assert len(train) > 3 * len(held_out) > 200
    for task in train:
        assert len(task.shown) == 10 and 10 <= len(task.holdout) <= 40
    assert select(limit=20) == train[:20]
    assert {task.id for task in select(seed=1)} == {task.id for task in train}
    assert select(seed=1) != train
    without = select(exclude_anums=[train[0].id])
    assert [task.id for task in without] == [task.id for task in train[1:]]
    assert all(task.name == "" for task in select(show_name=False))


def test_the_dataset_for_trl():
    dataset = oeis_rlvr.build_dataset(limit=4, corpus_dir=oeis_rlvr.corpus.SAMPLE_DIR, prompt_style="compact")
    tasks = select(limit=4)
    assert dataset.column_names == ["prompt", "anum", "name", "offset", "shown", "holdout"]
    assert [row["prompt"][0]["content"] for row in dataset] == [task.prompt_text("compact") for task in tasks]
    assert [int(term) for term in dataset[0]["holdout"]] == list(tasks[0].holdout)


def test_the_dataset_takes_what_tasks_are_selected_by():
    *parameters, style = inspect.signature(oeis_rlvr.build_dataset).parameters.values()
    assert parameters == list(inspect.signature(oeis_rlvr.select_tasks).parameters.values())  # defaults and types, too
    assert style.name == "prompt_style"
    dataset = oeis_rlvr.build_dataset(["easy"], limit=2, corpus_dir=oeis_rlvr.corpus.SAMPLE_DIR)
    assert [row["prompt"][0]["content"][:7] for row in dataset] == ["Write a"] * 2


def test_options_that_leave_nothing_are_refused():
    with pytest.raises(RlvrError, match="n_show = 20 leaves no hidden term"):
        select(n_show=20)
    with pytest.raises(RlvrError, match="split = 'test': there are 'train' and 'eval'"):
        select(split="test")
    for name in ("n_show", "max_eval_terms", "limit"):
        with pytest.raises(RlvrError, match=f"{name} = 0 must be at least 1"):
            select(**{name: 0})
    with pytest.raises(RlvrError, match="no sequence of the train split"):
        select(require_keywords=("easy", "nonn", "hear"), min_terms=500)


def test_the_program_prints_tasks(program):
    done = program(
        "oeis_rlvr.py", "--limit", 2, "--hide-name", "--style", "full", "--corpus", oeis_rlvr.corpus.SAMPLE_DIR
    )
    assert done.returncode == 0 and done.stdout.count("Write a Python function a(n)") == 2
    assert "Name:" not in done.stdout
    bad = program("oeis_rlvr.py", "--corpus", "nowhere")
    assert bad.returncode == 2 and "nowhere" in bad.stderr and "Traceback" not in bad.stderr


def test_configured_defaults_are_the_functions_defaults():
    defaults = inspect.signature(oeis_rlvr.select_tasks).parameters
    config = TrainConfig()
    for key, argument in [
        ("min_terms",) * 2,
        ("n_show",) * 2,
        ("max_eval_terms",) * 2,
        ("limit",) * 2,
        ("show_name",) * 2,
    ]:
        assert getattr(config, key) == defaults[argument].default
    assert config.exclude_keywords == defaults["exclude_keywords"].default
    assert config.require_keywords == defaults["require_keywords"].default
