"""How far a run is, from the lines that its program appends.

    progress = Progress(run)
    progress.advance(status)        # brings step, reward and solved of a Status up to date

It starts nothing and writes nothing: `supervisor.py` writes what it finds, `control.py` asks it about lost runs.
"""

import contextlib
import tomllib

import msgspec

from rlvr.cycles import Run
from rlvr.records import Record, Status, Step, Tail


class Answered(msgspec.Struct):
    """What counts here of a completion."""

    outcome: str


def read_all(tail: Tail[Record]) -> tuple[list[Record], bool]:
    """Everything that was added to a file, and whether it begins at the beginning again."""
    found, restarted = tail.read(), tail.restarted
    while tail.remaining:
        found += tail.read()
    return found, restarted


class Progress:
    """How far a run is, from what its program appends: steps of a cycle, completions of an evaluation."""

    def __init__(self, run: Run):
        self.run = run
        self.steps = Tail(run.files.metrics, Step)
        self.answered = Tail(run.files.completions, Answered)
        self.answers = self.solved = self.total = 0

    def advance(self, status: Status) -> bool:
        """Bring a status up to date; true when something changed."""
        before = (status.step, status.max_steps)
        if self.run.kind == "train":
            for step in read_all(self.steps)[0]:
                status.step, status.max_steps = step.step, step.max_steps
                status.reward = step.reward
                status.solved = step.outcomes.get("solved", 0) / max(sum(step.outcomes.values()), 1)
        elif self.run.kind == "eval":
            new, restarted = read_all(self.answered)
            if restarted:  # an evaluation that begins anew replaces what it had
                self.answers = self.solved = 0
            status.step = self.answers = self.answers + len(new)
            self.solved += sum(line.outcome == "solved" for line in new)
            status.solved = self.solved / self.answers if self.answers else None
            self.total = self.total or self.expected_completions()
            status.max_steps = self.total
        return (status.step, status.max_steps) != before

    def expected_completions(self) -> int:
        """Tasks x samples x participants, once the evaluator has written them down; 0 before."""
        with contextlib.suppress(OSError, tomllib.TOMLDecodeError, KeyError):
            snapshot = tomllib.loads(self.run.files.config.read_text(encoding="utf-8"))
            about = snapshot["provenance"]
            return about["num_tasks"] * snapshot["samples"] * len(about["participants"])
        return 0
