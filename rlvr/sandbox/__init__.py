"""Scoring programs that a language model wrote, each in a process that can only compute and answer.

The grader's side, in the trainer or evaluator:
    grader.py     Sandbox: jobs in, results out; what each case needs next
    pool.py       the workers of a machine: started, fed, replaced
    worker.py     the handle on one zygote process, and the self-test
    case.py       one job on its way through its passes
    verdicts.py   from the lines a candidate wrote to a verdict
    programs.py   the program in a completion, and what its text tells
The workers' side, which loads nothing else of the project:
    zygote.py     locks itself in, forks once a job
    preload.py    what it has loaded before, by tier
    candidate.py  what happens in the fork
    isolation.py  seccomp, Landlock, namespaces
    alone.py      one interpreter a job, where there is no isolation
    attacks.py    hostile programs, for the tests and for validating rewards
This file imports nothing: a zygote passes through it.
"""
