"""The tiny lab's task, verifier and split, attacks on rewards, the student's file: nothing here needs torch."""

import random
import subprocess
import sys
from collections import Counter

import pytest

from rlvr.errors import RlvrError
from rlvr.lab import rewards, task
from rlvr.lab.rewards import ATTACKS, CHECK_PROBLEM, answer_reward, check_student_reward, make_reward, verified_reward
from rlvr.lab.settings import Settings
from rlvr.lab.task import Grade, Problem, grade, is_exact, operand_pair, split_problems

PROBLEM = Problem(2, 3, 2)


def test_the_example_of_the_docs():
    assert PROBLEM.prompt == "Q:2+3,*2\nA:"
    assert PROBLEM.trace == "2+3=5;5*2=10;10"
    assert PROBLEM.answer == "10"


@pytest.mark.parametrize(
    ("completion", "right", "reward"),
    [
        ("2+3=5;5*2=10;10", (True, True, True, True), 1.0),
        ("2+3=6;6*2=12;12", (True, False, False, False), 0.10),
        ("2+3=5;5*2=11;11", (True, True, False, False), 0.35),
        ("2+3=5;5*2=11;10", (True, True, False, True), 0.65),
        ("2+3=6;5*2=10;10", (True, False, True, True), 0.75),
        ("2+3=5;5*2=10;11", (True, True, True, False), 0.70),
        ("3+2=5;5*2=10;10", (True, False, True, True), 0.75),
        ("2+3=6;6*2=12;10", (True, False, False, True), 0.40),
        ("10", (False, False, False, False), 0.0),
    ],
)
def test_every_component_is_verified_on_its_own(completion, right, reward):
    assert grade(PROBLEM, completion) == Grade(*right)
    assert grade(PROBLEM, completion).reward == reward


def test_the_weights_make_exactly_one():
    assert task.WEIGHTS == {"format": 0.10, "addition": 0.25, "multiplication": 0.35, "answer": 0.30}
    assert Grade(True, True, True, True).reward == 1.0


def test_every_right_trace_earns_everything_and_fits():
    for problem in sum(split_problems(), ()):
        assert grade(problem, problem.trace).reward == 1.0
        assert len(problem.trace) < task.ANSWER_LENGTH
        assert len(task.encode_prompt(problem)) == task.PROMPT_LENGTH
        assert task.decode(task.encode_answer(problem.trace)) == problem.trace


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_only_the_right_trace_is_verified(attack):
    earned = grade(CHECK_PROBLEM, attack.completion)
    assert earned.verified == attack.is_right
    assert (earned.reward == 1.0) == attack.is_right


def test_what_the_attacks_earn():
    earned = {attack.name: grade(CHECK_PROBLEM, attack.completion).reward for attack in ATTACKS}
    assert earned == {
        "the right trace": 1.0,
        "nothing": 0.0,
        "the bare answer": 0.0,
        "the prompt again": 0.0,
        "every number there is": 0.0,
        "the right trace of another problem": 0.10,
        "a wrong sum, carried on": 0.10,
        "a wrong product": 0.35,
        "wrong steps, right answer": 0.40,
        "right steps, wrong answer": 0.70,
        "true steps of nothing asked": 0.40,
        "a right trace, and talk": 0.0,
        "leading zeros": 0.0,
        "spaces": 0.0,
        "digits of another script": 0.0,
    }


@pytest.mark.parametrize(
    ("completion", "exact"),
    [("10", True), ("1+1=2;10", True), ("2+3=5;5*2=10;10", True), ("010", False), ("", False), ("10;", False)],
)
def test_exact_looks_at_the_last_number_only(completion, exact):
    assert is_exact(PROBLEM, completion) is exact


def test_the_split_keeps_whole_pairs_together_and_is_frozen():
    split = split_problems()
    pairs = [{operand_pair(problem) for problem in part} for part in split]
    assert not (pairs[0] & pairs[1] or pairs[0] & pairs[2] or pairs[1] & pairs[2])
    assert [len(part) for part in pairs] == [153, 51, 51]
    assert [len(part) for part in split] == [716, 240, 244]
    # A sum that is tested was trained on, with some other pair.
    trained = {p.a + p.b for p in split.train}
    assert {p.a + p.b for p in split.test} <= trained
    assert split.test[0] == Problem(0, 3, 2)


def test_the_split_is_the_same_in_every_process(root):
    code = "from rlvr.lab.task import split_problems; print(hash(split_problems()))"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=root, env={"PYTHONHASHSEED": str(seed), "PATH": ""}, capture_output=True
        ).stdout
        for seed in (1, 2)
    }
    assert len(seen) == 1


def test_homework_is_what_its_shares_say():
    rng = random.Random(0)
    grades = Counter(grade(PROBLEM, task.homework(PROBLEM, rng)) for _ in range(4000))
    assert abs(grades[Grade(True, True, True, True)] / 4000 - 0.35) < 0.03
    assert abs(grades[Grade(False, False, False, False)] / 4000 - 0.20) < 0.03  # the bare answers
    assert abs(grades[Grade(True, False, False, False)] / 4000 - 0.20) < 0.03
    assert abs(grades[Grade(True, True, False, False)] / 4000 - 0.20) < 0.03
    assert abs(grades[Grade(True, True, True, False)] / 4000 - 0.05) < 0.02


def test_the_bare_answer_hacks_the_careless_reward_and_not_the_verified_one():
    assert answer_reward(CHECK_PROBLEM, "6") == 1.0
    assert verified_reward(CHECK_PROBLEM, "6") == 0.0


def test_the_random_reward_repeats_and_ignores_the_answer():
    first = [make_reward("random", 3)(PROBLEM, text) for text in ("10", "")]
    assert first == [make_reward("random", 3)(PROBLEM, text) for text in ("", "10")]
    draws = make_reward("random", 3)
    assert 0.4 < sum(draws(PROBLEM, "10") for _ in range(1000)) / 1000 < 0.6


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"group_size": 1}, "--group-size 1: give a number from 2 to 64"),
        ({"learning_rate": float("nan")}, "--learning-rate nan: give a number"),
        ({"method": "ppo"}, "--method 'ppo': choose one of reinforce, grpo, dr_grpo"),
    ],
)
def test_settings_out_of_range_are_refused(given, message):
    with pytest.raises(RlvrError, match=message):
        Settings(**given)


def write(path, body):
    path.write_text("def reward(problem, completion):\n" + body, encoding="utf-8")
    return path


def test_the_template_runs_and_pays_for_the_bare_answer(tmp_path):
    file = tmp_path / "student_reward.py"
    rewards.write_student_file(file)
    scores = {attack.name: value for attack, value in check_student_reward(file)}
    assert scores["the right trace"] == scores["the bare answer"] == scores["wrong steps, right answer"] == 1.0
    assert scores["nothing"] == 0.0
    with pytest.raises(RlvrError, match="is there already"):
        rewards.write_student_file(file)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    return problem.answerr\n", "line 2 with AttributeError"),
        ("    return int(completion) / 100\n", "line 2 with ValueError.*look before you take an answer apart"),
        ("    pass\n", "returned nothing: end every path"),
        ("    return 'good'\n", "returned 'good': return a number from 0 to 1"),
        ("    return 10\n", "returned 10: keep it from 0 to 1"),
        ("    return float('nan')\n", "returned nan: keep it from 0 to 1"),
        ("    return 0.5\n", "every answer gets 0.5: a model learns only from differences"),
        ("    return (1\n", "line 2: Python cannot read this line"),
    ],
)
def test_kind_messages_for_a_students_mistakes(tmp_path, body, message):
    with pytest.raises(RlvrError, match=message):
        check_student_reward(write(tmp_path / "mine.py", body))


def test_other_mistakes_in_a_students_file(tmp_path, monkeypatch):
    with pytest.raises(RlvrError, match="no such file: `lab start`"):
        check_student_reward(tmp_path / "none.py")
    other = tmp_path / "other.py"
    other.write_text("def rewards(problem, completion):\n    return 1\n")
    with pytest.raises(RlvrError, match="has no function called reward"):
        check_student_reward(other)
    other.write_text("import nothing_of_that_name\n")
    with pytest.raises(RlvrError, match="line 1: ModuleNotFoundError"):
        check_student_reward(other)
    monkeypatch.setattr(rewards, "CHECK_TIMEOUT_S", 0.2)
    with pytest.raises(RlvrError, match="loop without an end"):
        check_student_reward(write(other, "    import time\n    while True:\n        time.sleep(0.01)\n"))


def test_the_reference_solution_withstands_every_attack(root):
    scores = check_student_reward(root / "docs/lab/solution/student_reward.py")
    assert {attack.name for attack, value in scores if value == 1.0} == {"the right trace"}
    assert all(value == verified_reward(CHECK_PROBLEM, attack.completion) for attack, value in scores)
