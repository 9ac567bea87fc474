"""Scores programs written by a language model: runs each a(n) in a process that can do nothing but compute and answer.

    with Sandbox() as sandbox:
        [result] = sandbox.run([Job(code="def a(n): return n * n", inputs=(0, 1, 2), expected=(0, 1, 4))])
        result.verdict  # "ok"

Not run by hand. What it is not: a defence against bugs in the kernel calls it lets through (memory, clocks, one pipe),
against CPU side channels, or a judge of style: imports are reported, rewards decide. docs/sandbox.md says the rest.
The expected terms never leave this process, and nothing that a candidate writes is evaluated or unpickled here.
"""

import logging
import os
import threading
import weakref
from collections import Counter, OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from rlvr.errors import RlvrError
from rlvr.sandbox.case import Case
from rlvr.sandbox.pool import DoesNotHold, Pool, end_all
from rlvr.sandbox.preload import NEXT_TIER
from rlvr.sandbox.programs import extract_code, is_plainly_deterministic
from rlvr.sandbox.verdicts import (
    MISSING,
    Job,
    Outcome,
    Reading,
    Result,
    Value,
    collect,
    judge,
    matches,
    read_lines,
)
from rlvr.sandbox.worker import (
    MAX_SOURCE_BYTES,
    SELF_TEST_NAMES,
    can_isolate,
    run_alone,
)

__all__ = ["Job", "Result", "Sandbox", "Value", "extract_code"]
log = logging.getLogger(__name__)

MAX_TRIES = 3
CACHE_SIZE = 2048
ANSWERS_CAP_BYTES = 60_000
MAX_INPUTS = 2000


class Sandbox:
    """Runs jobs on all cores. Workers start when first needed and end with `close()`, this process, or its death.

    `first_pass_s` and `second_pass_s` are CPU seconds of one process. Only programs whose every term so far is right
    get the second pass, and all second passes of one `run` together get `second_pass_budget_s`. `memory_mib` is what
    a candidate may add to the preloaded modules. `without` leaves layers out as if the kernel lacked them
    ("namespaces", "landlock", "seccomp"), for tests of other hosts. Threads may share one: one `run` waits for the
    other.
    """

    def __init__(
        self,
        workers: int | None = None,
        first_pass_s: float = 0.1,
        second_pass_s: float = 1.5,
        second_pass_budget_s: float = 10.0,
        memory_mib: int = 256,
        unsafe_no_isolation: bool = False,
        without: frozenset[str] = frozenset(),
    ):
        self.first_pass_s = first_pass_s
        self.second_pass_s = second_pass_s
        self.second_pass_budget_s = second_pass_budget_s
        self.unsafe_no_isolation = unsafe_no_isolation
        self.infra_counts: Counter[str] = Counter()
        self._budget_left_s = second_pass_budget_s
        self._cache: OrderedDict[Job, Result] = OrderedDict()
        self._lock = threading.RLock()
        self._num_workers = workers
        self._pool: Pool | None = None
        if can_isolate() and "seccomp" not in without:
            self._pool = Pool(workers, memory_mib, without)
            weakref.finalize(self, end_all, self._pool.live)
        elif unsafe_no_isolation:
            self._give_up_isolation("it is not Linux on x86_64 or aarch64 with seccomp")
        else:
            raise RlvrError(
                "this system cannot isolate the programs that a model writes (needed: Linux on x86_64 or aarch64 with "
                "seccomp): use Linux, a container or Colab, or accept the risk with unsafe_no_isolation=True"
            )

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every worker and wait for it. The sandbox may be used again: workers start anew."""
        with self._lock:
            if self._pool:
                self._pool.close()

    @property
    def isolation(self) -> str:
        """The kernel layers that hold candidates: full, no-namespaces, seccomp-only, none. Starts a worker to know."""
        with self._lock:
            if self._pool and not self._pool.level:
                self.self_test()
            return self._pool.level if self._pool else "none"

    def self_test(self) -> dict[str, bool]:
        """Try in a real worker what must be impossible; {what: refused}. RlvrError when anything was possible."""
        with self._lock:
            if self._pool:
                self._pool.check_process()
                try:
                    return self._pool.self_test()
                except DoesNotHold as error:
                    self._give_up_isolation(str(error), error)
            return dict.fromkeys(SELF_TEST_NAMES, False)

    def run(self, jobs: Sequence[Job]) -> list[Result]:
        """Run every job and return the results in the same order. Equal jobs are run once, and remembered."""
        with self._lock:
            cases = {job: self._admit(job) for job in dict.fromkeys(jobs) if job not in self._cache}
            known = {job: self._cache[job] for job in jobs if job in self._cache}
            waiting = [case for case in cases.values() if case.result is None]
            self._budget_left_s = self.second_pass_budget_s
            if waiting and self._pool:
                self._pool.check_process()
                try:
                    self._pool.run(waiting, self._absorb, self._drop)
                except DoesNotHold as error:
                    self._give_up_isolation(str(error), error)
            self._run_alone([case for case in waiting if case.result is None])
            for job, case in cases.items():
                assert case.result is not None
                known[job] = case.result
                if case.cacheable:
                    self._cache[job] = case.result
            for job in known:
                if job in self._cache:
                    self._cache.move_to_end(job)
            while len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)
            return [known[job] for job in jobs]

    def _give_up_isolation(self, reason: str, error: RlvrError | None = None) -> None:
        """Go on without isolation where the user accepts that, said once; else raise."""
        if not self.unsafe_no_isolation and error:
            raise error
        if self._pool:
            self._pool.close()
            self._pool = None
        log.warning("no isolation: programs written by the model run with all your rights: %s", reason)

    def _run_alone(self, cases: list[Case]) -> None:
        """Without isolation: a fresh interpreter for every process, as many at a time as there are workers."""
        if not cases:
            return

        def complete(case: Case) -> None:
            while not self._drop(case) and not self._absorb(case, run_alone(case.tier, case.message(0))):
                pass

        with ThreadPoolExecutor(self._num_workers or os.cpu_count() or 1) as executor:
            list(executor.map(complete, cases))

    # -- decisions about one case ---------------------------------------------------------------------------------
    def _admit(self, job: Job) -> Case:
        """Make a case; a source too long to run has its result at once. RlvrError for a job that makes no sense."""
        if len(job.inputs) != len(job.expected):
            raise RlvrError(
                f"a job has {len(job.inputs)} inputs and {len(job.expected)} expected terms: give one for each"
            )
        answers_bytes = sum(term.bit_length() // 4 + 8 for term in job.expected)
        if answers_bytes > ANSWERS_CAP_BYTES or len(job.inputs) > MAX_INPUTS:
            raise RlvrError(
                f"the answers to a job of {len(job.inputs)} terms need {answers_bytes} bytes: ask for at most "
                f"{MAX_INPUTS} terms and {ANSWERS_CAP_BYTES} bytes (a byte holds one hexadecimal digit)"
            )
        source = job.code.encode("utf-8", "surrogatepass")
        case = Case(job, source, self.first_pass_s, can_wait=self._pool is None)
        if len(source) > MAX_SOURCE_BYTES:
            error = f"source of {len(source)} bytes, at most {MAX_SOURCE_BYTES} are run"
            nothing = (MISSING,) * len(job.inputs)
            case.result = Result(
                "syntax_error", nothing, (False,) * len(nothing), error=error, isolation=self.isolation
            )
        return case

    def _drop(self, case: Case) -> bool:
        """True when a case's second pass must not start, because the batch has used up its time for those."""
        if case.phase == "second" and self._budget_left_s <= 0:
            case.result = case.unconfirmed
            case.cacheable = False
        return case.result is not None

    def _absorb(self, case: Case, outcome: Outcome) -> bool:
        """Take in how a case's process ended; True when the case has its result, else it wants another process."""
        job = case.job
        reading = read_lines(outcome.output, len(case.order))
        case.cpu_s += outcome.cpu_s
        case.passes += 1
        if case.phase == "second":
            self._budget_left_s -= outcome.cpu_s
        if self._pool and reading.lacks and case.tier in NEXT_TIER:
            case.tier = NEXT_TIER[case.tier]
            return False
        values, disagreed = collect(reading, case.order, len(job.inputs))
        right = matches(values, job.expected)
        verdict, error = judge(reading, outcome, values, right, disagreed, case.cpu_limit_s, self._pool is None)
        result = Result(
            verdict=verdict,
            values=tuple(values),
            matches=right,
            imports=reading.imports,
            has_function=reading.has_function,
            error=error,
            cpu_s=case.cpu_s,
            passes=case.passes,
            isolation=self._pool.level if self._pool else "none",
        )
        if verdict == "infra":
            self.infra_counts[error] += 1
            case.tries += 1
            if case.tries < MAX_TRIES:
                return False
            case.cacheable = False
        elif case.phase == "agree":
            result = _agreement(case, result)
        elif verdict == "ok" and not is_plainly_deterministic(job.code):
            return case.go_on("agree", result, self.second_pass_s)
        elif verdict == "cpu_timeout" and case.phase == "first" and _deserves_more(reading, result):
            return case.go_on("second", result, self.second_pass_s)
        case.result = result
        return True


def _deserves_more(reading: Reading, result: Result) -> bool:
    """Second pass: every term so far is right, and there is one, or the program had not come to its first call yet."""
    answered = [match for value, match in zip(result.values, result.matches, strict=True) if value is not MISSING]
    return all(answered) and bool(answered or (reading.compiled and not reading.defined))


def _agreement(case: Case, second: Result) -> Result:
    """Merge a right answer with what a second process said."""
    first = case.unconfirmed
    assert first is not None
    if second.verdict == "ok":
        return second
    differs = Value("error", None, "a second process gave a different answer")
    values = tuple(one if one == two else differs for one, two in zip(first.values, second.values, strict=True))
    return replace(
        second,
        verdict="nondeterministic",
        values=values,
        matches=matches(values, case.job.expected),
        has_function=True,
        error=f"a second process did not agree: {second.verdict} {second.error}".strip(),
    )
