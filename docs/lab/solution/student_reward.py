"""A reward that pays for the steps: one solution of the lab's exercise, to be read after trying it oneself.

python rlvrctl.py lab check --student-file docs/lab/solution/student_reward.py
"""

import re

STEPS = re.compile(r"([0-9]+)\+([0-9]+)=([0-9]+);([0-9]+)\*([0-9]+)=([0-9]+);([0-9]+)")


def reward(problem, completion):
    found = STEPS.fullmatch(completion)  # fullmatch: nothing before the steps and nothing after them
    if not found:
        return 0.0
    numbers = found.groups()
    if any(number != str(int(number)) for number in numbers):  # 06 is not how one writes 6
        return 0.0
    a, b, total, factor, c, product, answer = numbers
    right_total = problem.a + problem.b
    right_answer = right_total * problem.c
    hundredths = 10
    if (a, b, total) == (str(problem.a), str(problem.b), str(right_total)):
        hundredths += 25
    if (factor, c, product) == (str(right_total), str(problem.c), str(right_answer)):
        hundredths += 35
    if answer == str(right_answer):
        hundredths += 30
    return hundredths / 100
