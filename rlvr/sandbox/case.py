"""One distinct job on its way through the sandbox: its phase, its limits, the order of its calls.

Not run by hand. `grader.py` decides what comes next; `pool.py` and `worker.py` carry it out.
"""

import hashlib
import random
from collections.abc import Sequence

from rlvr.sandbox.candidate import pack_job
from rlvr.sandbox.programs import needs_heavy_tier
from rlvr.sandbox.verdicts import Job, Result

NUM_REPEATS = 3


def call_order(inputs: Sequence[int], rng: random.Random) -> list[int]:
    """Return positions of `inputs` in the order of the calls: shuffled, some repeated, three small ones first.

    A counter that ignores n passes when n is called in order. The small ones go first so that an exponential program
    shows what it can do before its time is up.
    """
    by_size = sorted(range(len(inputs)), key=lambda position: inputs[position])
    smaller = by_size[: max(3, len(by_size) // 3)]
    first = rng.sample(smaller, min(3, len(smaller)))
    rest = [position for position in by_size if position not in first]
    rest += rng.sample(by_size, min(NUM_REPEATS, len(by_size)))
    rng.shuffle(rest)
    return first + rest


class Case:
    """One distinct job on its way through the phases: first, second (more time), agree (a second process)."""

    def __init__(self, job: Job, source: bytes, first_pass_s: float, can_wait: bool = False):
        self.job = job
        self.tier = "heavy" if needs_heavy_tier(job.code) else "light"
        self.phase = "first"
        self.cpu_limit_s = first_pass_s
        self.can_wait = can_wait
        self.tries = 0
        self.passes = 0
        self.cpu_s = 0.0
        self.order: list[int] = []
        self.unconfirmed: Result | None = None
        self.result: Result | None = None
        self.cacheable = True
        self._source = source
        inputs = ",".join(map(str, job.inputs)).encode()
        self._digest = hashlib.blake2b(source + b"\0" + inputs, digest_size=8).hexdigest()

    def wall_limit_s(self) -> float:
        """Backstop for one process. Generous where a candidate has no call to wait with."""
        return 4 * self.cpu_limit_s + 1 if self.can_wait else 60 * self.cpu_limit_s + 30

    def message(self, number: int) -> bytes:
        """Return the job as it is sent. Call order and random state differ by phase, not from run to run."""
        rng = random.Random(f"{self._digest} {self.phase}")
        self.order = call_order(self.job.inputs, rng)
        calls = [self.job.inputs[position] for position in self.order]
        return pack_job(number, self._source, calls, self.cpu_limit_s, self.wall_limit_s(), rng.getrandbits(64))

    def go_on(self, phase: str, result: Result, cpu_limit_s: float) -> bool:
        """Move to another phase with what is known so far. Returns False: the case is not done."""
        self.phase, self.unconfirmed, self.cpu_limit_s, self.tries = phase, result, cpu_limit_s, 0
        return False
