"""What an answer may be worth: the verified reward, a careless one, a random one for control, and a student's own.

    reward = make_reward("student", seed=0, student_file=Path("student_reward.py"))

A student's function is their own code on their own machine: it is called as it stands, without a sandbox.
"""

import importlib.util
import math
import random
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rlvr.errors import RlvrError
from rlvr.lab.task import Problem, grade, is_exact

STUDENT_FILE = Path("student_reward.py")
CHECK_TIMEOUT_S = 10


def verified_reward(problem: Problem, completion: str) -> float:
    """The sum of the four components."""
    return grade(problem, completion).reward


def answer_reward(problem: Problem, completion: str) -> float:
    """Only the last number counts: simple, and blind to how it came about."""
    return float(is_exact(problem, completion))


def make_reward(name: str, seed: int, student_file: Path = STUDENT_FILE) -> Callable[[Problem, str], float]:
    """Return the reward of that name. The random one draws the same numbers again for the same seed."""
    if name == "student":
        student = load_student_reward(student_file)
        return lambda problem, completion: checked_value(student, problem, completion)
    if name == "random":
        rng = random.Random(seed)
        return lambda problem, completion: rng.random()
    return {"verified": verified_reward, "answer": answer_reward}[name]


def load_student_reward(path: Path) -> Callable[[Problem, str], float]:
    """Load the function `reward(problem, completion)` from a file.

    Raises:
        RlvrError: when there is no such file, Python cannot read it, or it has no such function.
    """
    if not path.is_file():
        raise RlvrError(f"{path}: no such file: `lab start` writes one to begin with")
    spec = importlib.util.spec_from_file_location("student_reward", path)
    assert spec and spec.loader  # a file that ends in .py always has them
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise RlvrError(
            f"{path}, line {error.lineno}: Python cannot read this line ({error.msg}): look for a missing "
            "bracket, colon or quote, there or one line above"
        ) from error
    except Exception as error:
        raise RlvrError(f"{path}, line {line_in(path, error)}: {error_text(error)}: correct this line") from error
    if not callable(vars(module).get("reward")):
        raise RlvrError(f"{path}: has no function called reward: it begins with `def reward(problem, completion):`")
    return module.reward


def checked_value(student: Callable[[Problem, str], float], problem: Problem, completion: str) -> float:
    """Call the student's function.

    Raises:
        RlvrError: when it raises, or returns anything but a number from 0 to 1; says for which answer.
    """
    where = f"reward() for the problem {problem.prompt!r} and the answer {completion!r}"
    try:
        value = student(problem, completion)
    except Exception as error:
        line = line_in(Path(student.__code__.co_filename), error)
        raise RlvrError(
            f"{where} stopped in line {line} with {error_text(error)}: models write anything at all, so "
            "look before you take an answer apart"
        ) from error
    if value is None:
        raise RlvrError(f"{where} returned nothing: end every path through it with `return` and a number")
    if not isinstance(value, (int, float)):
        raise RlvrError(f"{where} returned {value!r}: return a number from 0 to 1")
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise RlvrError(f"{where} returned {value!r}: keep it from 0 to 1, where 1 is the best")
    return float(value)


def error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def line_in(path: Path, error: Exception) -> int | str | None:
    """The line of that file in which the error arose; a question mark when it is not in it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
    return lines[-1] if lines else "?"


# ---------------------------------------------------------------------------------------------------------------------
# lab check


class Attack(NamedTuple):
    """An answer that a reward should know, whether it is good or bad."""

    name: str
    completion: str
    is_right: bool = False


CHECK_PROBLEM = Problem(1, 2, 2)

ATTACKS = (
    Attack("the right trace", "1+2=3;3*2=6;6", is_right=True),
    Attack("nothing", ""),
    Attack("the bare answer", "6"),
    Attack("the prompt again", "Q:1+2,*2"),
    Attack("every number there is", "1;2;3;4;5;6"),
    Attack("the right trace of another problem", "1+3=4;4*2=8;8"),
    Attack("a wrong sum, carried on", "1+2=4;4*2=8;8"),
    Attack("a wrong product", "1+2=3;3*2=7;7"),
    Attack("wrong steps, right answer", "9+9=9;9*9=9;6"),
    Attack("right steps, wrong answer", "1+2=3;3*2=6;7"),
    Attack("true steps of nothing asked", "3+0=3;6*1=6;6"),
    Attack("a right trace, and talk", "1+2=3;3*2=6;6;6"),
    Attack("leading zeros", "01+2=3;3*2=06;06"),
    Attack("spaces", "1+2=3; 3*2=6; 6"),
    Attack("digits of another script", "1+2=3;3*2=6;٦"),
)
"""For the problem `Q:1+2,*2`. The right trace earns everything, and nothing else does."""


def score_attacks(reward: Callable[[Problem, str], float]) -> list[tuple[Attack, float]]:
    return [(attack, reward(CHECK_PROBLEM, attack.completion)) for attack in ATTACKS]


def check_student_reward(path: Path) -> list[tuple[Attack, float]]:
    """Load a student's reward and score every attack with it.

    Raises:
        RlvrError: for anything that would stop a training run with it, or would teach nothing.
    """
    found: list[list[tuple[Attack, float]]] = []
    errors: list[RlvrError] = []

    def score() -> None:
        try:
            found.append(score_attacks(make_reward("student", 0, path)))
        except RlvrError as error:
            errors.append(error)

    # A thread, and not a process: a process needs more of the system than a beginner's laptop may allow.
    thread = threading.Thread(target=score, daemon=True)
    thread.start()
    thread.join(CHECK_TIMEOUT_S)
    if errors:
        raise errors[0]
    if not found:
        raise RlvrError(
            f"{path}: reward() is still running after {CHECK_TIMEOUT_S} s: is there a loop without an end?"
        )
    if len({value for _, value in found[0]}) == 1:
        raise RlvrError(
            f"{path}: every answer gets {found[0][0][1]:g}: a model learns only from differences, so give "
            "the right trace more than the wrong ones"
        )
    return found[0]


STUDENT_TEMPLATE = '''"""My reward for the tiny lab: try it with `lab check`, train with `lab run --reward student`."""


def reward(problem, completion):
    """Say what an answer is worth: a number from 0 (worthless) to 1 (perfect).

    problem.a, problem.b, problem.c   the numbers of (a + b) * c
    problem.prompt                    what the model was asked, such as "Q:1+2,*2\\\\nA:"
    completion                        what the model wrote, such as "1+2=3;3*2=6;6"

    This first version looks at the last number only. `lab check` shows what else it pays for.
    """
    right = str((problem.a + problem.b) * problem.c)
    last = completion.split(";")[-1]
    if last == right:
        return 1.0
    return 0.0
'''


def write_student_file(path: Path) -> None:
    """Raises RlvrError when it is there already: nobody's work is overwritten."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(STUDENT_TEMPLATE)
    except FileExistsError as error:
        raise RlvrError(f"{path}: is there already: edit it, or move it away for a fresh one") from error
