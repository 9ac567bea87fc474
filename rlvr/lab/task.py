"""The task: add two numbers, multiply by a third, show the steps. Problems, their split, the verifier, the pupils.

>>> problem = Problem(2, 3, 2)
>>> problem.prompt + problem.trace
'Q:2+3,*2\\nA:2+3=5;5*2=10;10'
>>> grade(problem, "2+3=5;5*2=11;11").reward
0.35

A completion is text that a model wrote. Nothing here runs it: what is right is the exact text. It imports no torch.
"""

import hashlib
import random
import re
from typing import NamedTuple

SYMBOLS = "\n 0123456789QA:+,*=;"
"""Every character is a token. The first one ends an answer, the second fills up short prompts on the left."""
END = 0
LARGEST_A, LARGEST_B, MULTIPLIERS = 29, 9, (2, 3, 4, 5)
PROMPT_LENGTH = len("Q:29+9,*5\nA:")
ANSWER_LENGTH = len("29+9=38;38*5=190;190\n")
"""The longest right answer, and the most that a model may write."""

WEIGHTS = {"format": 0.10, "addition": 0.25, "multiplication": 0.35, "answer": 0.30}
"""What each component of the reward is worth."""

NUMBER = "(0|[1-9][0-9]{0,3})"
TRACE = re.compile(rf"{NUMBER}\+{NUMBER}={NUMBER};{NUMBER}\*{NUMBER}={NUMBER};{NUMBER}")


class Problem(NamedTuple):
    """What is (a + b) * c?"""

    a: int
    b: int
    c: int

    @property
    def prompt(self) -> str:
        return f"Q:{self.a}+{self.b},*{self.c}\nA:"

    @property
    def answer(self) -> str:
        return str((self.a + self.b) * self.c)

    @property
    def trace(self) -> str:
        """The one answer with full marks."""
        return steps(self, self.a + self.b, (self.a + self.b) * self.c, (self.a + self.b) * self.c)


def steps(problem: Problem, total: int, result: int, last: int) -> str:
    """Return a trace with these numbers, right or not."""
    return f"{problem.a}+{problem.b}={total};{total}*{problem.c}={result};{last}"


# ---------------------------------------------------------------------------------------------------------------------
# The verifier


class Grade(NamedTuple):
    """What the verifier says of one completion: is each component of the reward earned?"""

    format: bool
    addition: bool
    multiplication: bool
    answer: bool

    @property
    def reward(self) -> float:
        """Between 0 and 1; 1.0 for the right trace and for nothing else."""
        # Whole hundredths: 0.10 + 0.25 + 0.35 + 0.30 must be 1.0, not 0.9999999.
        earned = (WEIGHTS[name] for name, right in zip(self._fields, self, strict=True) if right)
        return sum(round(100 * weight) for weight in earned) / 100

    @property
    def verified(self) -> bool:
        """Is every step right, and not only the last number?"""
        return all(self)


def grade(problem: Problem, completion: str) -> Grade:
    """Verify one completion, without its end token.

    Nothing counts without the format: two worked steps and a final number, without spaces, leading zeros or anything
    around them. A step counts when it is the right step of *this* problem, so a multiplication that goes on rightly
    from a wrong sum is wrong.
    """
    found = TRACE.fullmatch(completion)
    if not found:
        return Grade(False, False, False, False)
    total = str(problem.a + problem.b)
    return Grade(
        format=True,
        addition=found.groups()[0:3] == (str(problem.a), str(problem.b), total),
        multiplication=found.groups()[3:6] == (total, str(problem.c), problem.answer),
        answer=found[7] == problem.answer,
    )


def is_exact(problem: Problem, completion: str) -> bool:
    """Is the last number right, however it came about? A bare `10` is exact; only a right trace is verified."""
    return completion.rpartition(";")[2] == problem.answer


# ---------------------------------------------------------------------------------------------------------------------
# Characters and tokens


def encode(text: str) -> list[int]:
    return [SYMBOLS.index(character) for character in text]


def encode_prompt(problem: Problem) -> list[int]:
    """Filled up on the left, so that every answer begins at the same place."""
    return encode(problem.prompt.rjust(PROMPT_LENGTH))


def encode_answer(text: str) -> list[int]:
    """With the end token, which is then repeated up to the full length."""
    return encode((text + SYMBOLS[END]).ljust(ANSWER_LENGTH, SYMBOLS[END]))


def decode(tokens: list[int]) -> str:
    """The text before the first end token."""
    return "".join(SYMBOLS[token] for token in tokens).partition(SYMBOLS[END])[0]


# ---------------------------------------------------------------------------------------------------------------------
# The split


class Split(NamedTuple):
    train: tuple[Problem, ...]
    validation: tuple[Problem, ...]
    test: tuple[Problem, ...]


def operand_pair(problem: Problem) -> tuple[int, int]:
    """2+3 and 3+2 are one pair: whoever has seen one has seen most of the other."""
    return min(problem.a, problem.b), max(problem.a, problem.b)


def split_problems() -> Split:
    """Return the frozen split: a whole operand pair, in both orders and with every multiplier, lies on one side only.

    Pairs are ranked by a hash, so that the split is the same on every machine and for every seed: 51 pairs to test,
    51 to validate, the other 153 to train. The only pair with its sum (0+0, 0+1, 28+9, 29+9) is always trained on: a
    sum that was never written cannot be multiplied.
    """
    everything = [Problem(a, b, c) for a in range(LARGEST_A + 1) for b in range(LARGEST_B + 1) for c in MULTIPLIERS]
    pairs = sorted(set(map(operand_pair, everything)))
    sums = [sum(pair) for pair in pairs]
    ranked = sorted(pairs, key=lambda pair: hashlib.sha256(f"{pair[0]}+{pair[1]}".encode()).digest())
    movable = [pair for pair in ranked if sums.count(sum(pair)) > 1]
    share = len(pairs) // 5
    test, validation = set(movable[:share]), set(movable[share : 2 * share])
    return Split(
        train=tuple(problem for problem in everything if operand_pair(problem) not in test | validation),
        validation=tuple(problem for problem in everything if operand_pair(problem) in validation),
        test=tuple(problem for problem in everything if operand_pair(problem) in test),
    )


# ---------------------------------------------------------------------------------------------------------------------
# The pupils whose homework the model first learns to imitate

PUPILS = {"careful": 0.35, "bare": 0.20, "slips adding": 0.20, "slips multiplying": 0.20, "slips copying": 0.05}
"""Who wrote the homework, and how much of it. Like text from the internet, most of it is not what we want."""


def homework(problem: Problem, rng: random.Random) -> str:
    """Return what a random pupil writes: a right trace, only the last number, or a trace with a slip by one."""
    [pupil] = rng.choices(list(PUPILS), list(PUPILS.values()))
    total, result = problem.a + problem.b, (problem.a + problem.b) * problem.c
    slipped = max(total + rng.choice((-1, 1)), 0)
    match pupil:
        case "bare":
            return str(result)
        case "slips adding":
            return steps(problem, slipped, slipped * problem.c, slipped * problem.c)
        case "slips multiplying":
            return steps(problem, total, slipped * problem.c, slipped * problem.c)
        case "slips copying":
            return steps(problem, total, result, result + 1)
    return problem.trace
