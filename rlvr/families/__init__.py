"""Families of made-up sequences, for the tiny base model's training data.

A family is a function that draws a `Draft` (name, offset, program) from a random number generator. `rlvr/synthetic.py`
has the table of all of them with their weights; the files here group them by what they are about.
"""
