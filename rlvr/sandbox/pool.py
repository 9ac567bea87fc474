"""The zygotes of one sandbox, one a core and tier, and who gets which case. Linux only.

Not run by hand. It starts workers when they are first needed, tests each before it may run anything, hands out cases,
and replaces what dies; what the answers mean is decided in `grader.py`.
"""

import os
import selectors
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rlvr.errors import RlvrError
from rlvr.sandbox.candidate import pack_job
from rlvr.sandbox.case import Case
from rlvr.sandbox.verdicts import Outcome, level, read_lines
from rlvr.sandbox.worker import SELF_TEST_CODE, SELF_TEST_NAMES, START_TIMEOUT_S, Zygote, read_outcome

HARD_GRACE_S = 10.0
MAX_FAILED_STARTS = 3
MAX_WORKERS = 16  # unless asked for more: a heavy zygote takes about 90 MB, one of the whole tier about 110
TIERS = ("whole", "heavy", "light")  # those that take longest to start come first
IDLE = float("inf")


class DoesNotHold(RlvrError):
    """A self-test in a real worker could do what no candidate may."""


@dataclass(eq=False, slots=True)
class Slot:
    """One core: at most one zygote a tier, at most one case at a time."""

    cpu: int
    zygotes: dict[str, Zygote] = field(default_factory=dict)
    busy: tuple[int, Case, Zygote] | None = None


class Pool:
    """All zygotes of a sandbox. Not thread-safe."""

    def __init__(self, num_workers: int | None, memory_mib: int, without: frozenset[str]):
        cores = sorted(os.sched_getaffinity(0))
        num_workers = num_workers or min(len(cores), MAX_WORKERS)
        self.memory_mib = memory_mib
        self.without = without
        self.level = ""
        self.live: list[Zygote] = []
        self.slots = [Slot(cores[number % len(cores)] if len(cores) > 1 else -1) for number in range(num_workers)]
        self._pid = os.getpid()
        self._number = 0
        self._num_failed_starts = 0
        self._selector: selectors.BaseSelector | None = None
        self._watched: dict[Zygote, Slot] = {}

    # -- life of the workers --------------------------------------------------------------------------------------
    def close(self) -> None:
        """End every worker and wait for it."""
        for slot in self.slots:
            slot.zygotes.clear()
            slot.busy = None
        end_all(self.live)

    def check_process(self) -> None:
        """After a fork of this process the workers belong to the parent: let go of them."""
        if os.getpid() != self._pid:
            self.close()
            self._pid = os.getpid()

    def self_test(self) -> dict[str, bool]:
        """Try in a real worker what must be impossible; {what: refused}. DoesNotHold when anything was possible."""
        slot = self.slots[0]
        for _ in range(MAX_FAILED_STARTS):
            zygote = slot.zygotes.get("light") or self._start(slot, "light")
            if zygote.state == "starting":
                zygote.greet(zygote.receive())
                self._send_self_test(zygote)
            elif zygote.state == "ready":
                self._send_self_test(zygote)
            answer = zygote.receive() if zygote.state == "testing" else b""
            if answer:
                return self._check_self_test(zygote, answer)
            self._discard(slot, zygote)
        raise RlvrError("the sandbox's worker keeps ending while it is tested: free some memory")

    def _start(self, slot: Slot, tier: str) -> Zygote:
        zygote = Zygote(tier, slot.cpu, self.memory_mib, self.without)
        slot.zygotes[tier] = zygote
        self.live.append(zygote)
        return zygote

    def _discard(self, slot: Slot, zygote: Zygote) -> None:
        self._unwatch(zygote)
        slot.zygotes.pop(zygote.tier, None)
        if zygote in self.live:
            self.live.remove(zygote)
        zygote.close()

    def _send_self_test(self, zygote: Zygote) -> None:
        zygote.state = "testing"
        zygote.send(pack_job(0, SELF_TEST_CODE.encode(), range(len(SELF_TEST_NAMES)), 5.0, 60.0, 1))

    def _check_self_test(self, zygote: Zygote, message: bytes) -> dict[str, bool]:
        outcome = read_outcome(message)[1]
        reading = read_lines(outcome.output, len(SELF_TEST_NAMES))
        answers = reading.answers + [("", "")] * len(SELF_TEST_NAMES)
        refused = {name: answer == ("i", "0") for name, answer in zip(SELF_TEST_NAMES, answers, strict=False)}
        if not all(refused.values()):
            possible = ", ".join(name for name, no in refused.items() if not no)
            raise DoesNotHold(
                f"the sandbox does not hold on this system (possible, or untested: {possible}): use Linux with "
                "seccomp filters (most containers have them), or accept the risk with unsafe_no_isolation=True"
            )
        zygote.state = "ready"
        self._num_failed_starts = 0
        self.level = level(zygote.layers)
        return refused

    # -- one batch --------------------------------------------------------------------------------------------
    def run(
        self,
        cases: Sequence[Case],
        absorb: Callable[[Case, Outcome], bool],
        drop: Callable[[Case], bool],
    ) -> None:
        """Feed the workers until every case is done.

        `absorb(case, outcome)` is told how a process ended and says whether the case is done; `drop(case)` is asked
        before each process and may take the case off.
        On an exception, Ctrl-C among them, the workers end: none of them is left with half a job.
        """
        queues = {tier: deque(case for case in cases if case.tier == tier) for tier in TIERS}
        num_open = len(cases)
        self._watched.clear()
        self._selector = selectors.DefaultSelector()
        try:
            while num_open:
                for slot in self.slots:
                    while not slot.busy and (case := self._next_case(slot, queues)):
                        if drop(case):
                            num_open -= 1
                        else:
                            self._dispatch(slot, case)
                for slot, case, outcome, zygote in self._wait():
                    if absorb(case, outcome):
                        num_open -= 1
                    else:
                        queues[case.tier].append(case)
                    if outcome.lost or outcome.hit_wall:
                        self._discard(slot, zygote)
        except BaseException:
            self._watched.clear()
            self.close()
            raise
        finally:
            for zygote in list(self._watched):
                self._unwatch(zygote)
            self._selector.close()
            self._selector = None

    def _next_case(self, slot: Slot, queues: dict[str, deque[Case]]) -> Case | None:
        """Return a case for a ready zygote of this slot; where there is need, start one without waiting for it."""
        for tier, queue in queues.items():
            if not queue:
                continue
            zygote = slot.zygotes.get(tier)
            if zygote is None:
                if sum(tier in other.zygotes for other in self.slots) >= len(queue):
                    continue  # there are enough workers of this tier for what is left
                zygote = self._start(slot, tier)
            if zygote.state == "ready":
                return queue.popleft()
            if zygote not in self._watched:
                zygote.deadline_s = time.monotonic() + START_TIMEOUT_S
                self._watch(slot, zygote)
        return None

    def _dispatch(self, slot: Slot, case: Case) -> None:
        zygote = slot.zygotes[case.tier]
        self._number = self._number % 0xFFFFFFFF + 1
        slot.busy = self._number, case, zygote
        zygote.deadline_s = time.monotonic() + case.wall_limit_s() + HARD_GRACE_S
        if zygote not in self._watched:
            self._watch(slot, zygote)
        if not zygote.send(case.message(self._number)):
            zygote.deadline_s = 0.0

    def _wait(self) -> list[tuple[Slot, Case, Outcome, Zygote]]:
        """Wait for messages or deadlines; return the cases whose process has ended somehow."""
        assert self._selector is not None
        now = time.monotonic()
        deadlines = [zygote.deadline_s for zygote in self._watched if zygote.deadline_s != IDLE]
        finished = []
        for key, _ in self._selector.select(max(0.0, min(deadlines, default=now) - now)):
            zygote: Zygote = key.data
            slot = self._watched[zygote]
            message = zygote.receive()
            if slot.busy and slot.busy[2] is zygote:
                number, case, _ = slot.busy
                slot.busy = None
                zygote.deadline_s = IDLE
                answered, outcome = read_outcome(message) if message else (number, Outcome(lost=True))
                finished.append((slot, case, outcome if answered == number else Outcome(lost=True), zygote))
            else:
                self._prepare(slot, zygote, message)
        now = time.monotonic()
        for zygote, slot in [item for item in self._watched.items() if item[0].deadline_s < now]:
            if slot.busy and slot.busy[2] is zygote:
                finished.append((slot, slot.busy[1], Outcome(lost=True), zygote))
                slot.busy = None
                zygote.deadline_s = IDLE
            else:
                raise RlvrError(
                    f"the sandbox's {zygote.tier} worker did not start in {START_TIMEOUT_S:.0f} s: free the machine"
                )
        return finished

    def _prepare(self, slot: Slot, zygote: Zygote, message: bytes) -> None:
        """Take in what a worker says while it has no case: its greeting, its self-test, or its end."""
        if not message:
            self._discard(slot, zygote)
            self._num_failed_starts += 1
            if self._num_failed_starts >= MAX_FAILED_STARTS:
                raise RlvrError(f"the sandbox's {zygote.tier} worker keeps ending while it starts: free some memory")
        elif zygote.state == "starting":
            zygote.greet(message)
            self._send_self_test(zygote)
        else:
            self._check_self_test(zygote, message)
            zygote.deadline_s = IDLE

    def _watch(self, slot: Slot, zygote: Zygote) -> None:
        assert self._selector is not None
        self._watched[zygote] = slot
        self._selector.register(zygote, selectors.EVENT_READ, zygote)

    def _unwatch(self, zygote: Zygote) -> None:
        if zygote in self._watched:
            assert self._selector is not None
            del self._watched[zygote]
            self._selector.unregister(zygote)


def end_all(live: list[Zygote]) -> None:
    """End the zygotes in the list, which is emptied."""
    while live:
        live.pop().close()
