"""A reward that sounds reasonable and is hacked: half for the right number, half for being brief.

python rlvrctl.py lab check --student-file docs/lab/solution/brief_reward.py      # says which answers it overpays
python rlvrctl.py lab run --reward student --student-file docs/lab/solution/brief_reward.py
"""


def reward(problem, completion):
    right = str((problem.a + problem.b) * problem.c)
    score = 0.0
    if completion.split(";")[-1] == right:
        score += 0.5
    if len(completion) <= 5:
        score += 0.5
    return score
