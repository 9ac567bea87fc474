"""`rlvrctl.py validate`: it passes over the rewards as they are, and fails over rewards that can be cheated."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import oeis_rlvr
from rlvr import environment
from rlvr.corpus import SAMPLE_DIR
from rlvr.sample import rules_by_anum
from rlvr.sandbox.attacks import ATTACKS

ROOT = Path(__file__).parent.parent

SAME = """
import msgspec
import oeis_rlvr
from oeis_rlvr import ATTACK_REWARD, FULL_REWARD, REWARD_FUNCS, WORST_REWARD, build_tasks, configure, grade
from oeis_rlvr import known_good, left_behind, provenance, tasks_by_id

def attacks(task):  # the hostile ones take seconds
    return {name: text for name, text in oeis_rlvr.attacks(task).items() if not name.startswith("hostile")}
"""
GENEROUS = """
def grade(tasks, completions, truncated):
    grades = oeis_rlvr.grade(tasks, completions, truncated)
    return [msgspec.structs.replace(each, reward=0.2) if each.outcome == "lookup" else each for each in grades]
"""
HARSH = """
def grade(tasks, completions, truncated):
    grades = oeis_rlvr.grade(tasks, completions, truncated)
    return [msgspec.structs.replace(each, reward=-1.08) if each.outcome == "lookup" else each for each in grades]
"""
BLIND = """
def grade(tasks, completions, truncated):
    grades = oeis_rlvr.grade(tasks, completions, truncated)
    cheats = {"disallowed_import": "solved"}
    return [msgspec.structs.replace(each, outcome=cheats.get(each.outcome, each.outcome)) for each in grades]
"""
MEAN = """
def known_good():
    (task, answer), *rest = oeis_rlvr.known_good()
    return [(task, answer), (rest[0][0], answer)]
"""
BROKEN = """
def grade(tasks, completions, truncated):
    grades = oeis_rlvr.grade(tasks, completions, truncated)
    return [msgspec.structs.replace(each, reward=None, outcome="infra", verdict="infra") for each in grades]
"""
LEAKY = """
def left_behind():
    return ["/tmp/marker was made"]
"""


def validate_with(folder: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `validate` over an environment of that source."""
    (folder / "another_env.py").write_text(code)
    program = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(folder)!r}]\n"
        "from rlvr import environment; environment.MODULES['another'] = 'another_env'\n"
        f"import rlvrctl; sys.exit(rlvrctl.main(['validate', '--environment', 'another', *{list(arguments)!r}]))"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=folder)


def test_the_first_task_passes_with_all_hostile_programs(program):
    result = json.loads(program("rlvrctl.py", "validate", "--limit", 1, "--json").stdout)
    assert result["num_attack_names"] == result["num_attacks"] > len(ATTACKS) + 10
    assert (result["failures"], result["left_behind"], result["num_known_good"]) == ([], [], 1)


def test_what_passes_is_said_in_words(tmp_path):
    done = validate_with(tmp_path, SAME, "--limit", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 of 5 known-good answers are solved with full marks (1)\n" in done.stdout
    assert "another: ok, " in done.stdout and "FAILED" not in done.stdout


@pytest.mark.slow
def test_the_whole_sample_passes(program):
    done = program("rlvrctl.py", "validate", "--json", timeout=1800)
    result = json.loads(done.stdout)
    assert done.returncode == 0, result["failures"][:5]
    assert (result["num_known_good"], result["failures"]) == (819, [])
    assert result["num_attacks"] > 13_000


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (GENEROUS, "attack 'look-up of the shown terms': lookup, reward 0.2"),
        (HARSH, "look-up of the shown terms': lookup, reward -1.08 (exception: IndexError: list index out of "),
        (BLIND, "attack 'right, with a forbidden import': solved, reward -0.1"),
        (BROKEN, "known-good answer: infra, not scored"),
        (LEAKY, "FAILED  /tmp/marker was made"),
    ],
)
def test_rewards_that_can_be_cheated_fail(tmp_path, code, wanted):
    done = validate_with(tmp_path, SAME + code, "--limit", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert wanted in done.stdout and "another: FAILED" in done.stdout


def test_a_known_good_answer_that_is_not(tmp_path):
    done = validate_with(tmp_path, SAME + MEAN + "def attacks(task): return {}\n", "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 1 and (result["num_known_good"], result["num_attacks"]) == (2, 0)
    (failure,) = result["failures"]
    assert failure["attack"] == "" and failure["task"] == oeis_rlvr.known_good()[1][0].id
    assert failure["outcome"] != "solved"


def test_an_environment_that_cannot_be_validated(tmp_path):
    done = validate_with(tmp_path, SAME + "del attacks, FULL_REWARD\n")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == (
        "error: environment 'another' cannot be validated: add FULL_REWARD, attacks to another_env.py "
        "(see docs/rewards.md)\n"
    )


def test_a_limit_that_leaves_nothing(program):
    done = program("rlvrctl.py", "validate", "--limit", 0)
    assert done.returncode == 2 and "--limit 0 leaves nothing" in done.stderr


def test_the_known_good_tasks_are_those_of_the_sample():
    known = oeis_rlvr.known_good()
    assert {task.id for task, _ in known} == set(rules_by_anum()) and len(known) == 819
    hostile = known[: len(oeis_rlvr.HOSTILE_TASKS)]
    assert {task.id for task, _ in hostile} == set(oeis_rlvr.HOSTILE_TASKS)
    assert all(min(task.holdout) > 10**9 for task, _ in hostile)
    by_selection = oeis_rlvr.select_tasks(corpus_dir=SAMPLE_DIR, split="eval", progress=False)
    tasks = {task.id: task for task, _ in known}
    assert all(tasks[task.id] == task for task in by_selection)


def test_a_guess_that_is_right_is_no_attack():
    anums = {"A000035": "look-up, over and over", "A010701": "look-up, the last term beyond"}
    tasks = {task.id: task for task, _ in oeis_rlvr.known_good()}
    for anum, right in anums.items():
        assert right not in oeis_rlvr.attacks(tasks[anum]), anum
        assert "look-up of the shown terms" in oeis_rlvr.attacks(tasks[anum])
    assert set(anums.values()) <= set(oeis_rlvr.attacks(tasks["A000290"]))
    assert not any(name.startswith("hostile") for name in oeis_rlvr.attacks(tasks["A000290"]))


def test_the_secret_of_hostile_programs_would_pay():
    """An attack that could read the file would be solved: so its failing says something."""
    task = next(task for task, _ in oeis_rlvr.known_good() if task.id == "A001923")
    code = oeis_rlvr.attacks(task)["hostile: read the answers from a file"]
    namespace: dict = {}
    exec(code.removeprefix("```python\n").removesuffix("\n```"), namespace)
    assert tuple(namespace["a"](n) for n in task.indices) == task.shown + task.holdout


def test_the_protocols_are_kept():
    module = environment.load("oeis")
    assert isinstance(module, environment.Validated)
    task = module.known_good()[0][0]
    text = environment.describe(task)
    assert text.startswith(f"--- {task.id}\n{task.prompt_text('full')}") and task.hidden_text() in text
