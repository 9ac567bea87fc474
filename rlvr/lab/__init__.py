"""The tiny lab: a transformer of about 42,000 parameters learns two-step arithmetic from verified rewards, in seconds.

    python -m rlvr.lab run          # or: python rlvrctl.py lab run

Read it like a chapter: `task.py` (problems and the verifier), `model.py` (the transformer), `training.py` (supervised
start, then group-relative REINFORCE). The rest is around the experiment: seeds and intervals, receipts, pictures, the
command line. It is apart from everything else in this project and needs only torch, numpy, msgspec and matplotlib, on
Linux, macOS or Windows. It is not the trainer of the OEIS models, and its numbers say nothing about those.
"""
