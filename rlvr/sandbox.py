"""Scores programs written by a language model: runs each a(n) in a process that can do nothing but compute and answer.

    with Sandbox() as sandbox:
        [result] = sandbox.run([Job(code="def a(n): return n * n", inputs=(0, 1, 2), expected=(0, 1, 4))])
        result.verdict  # "ok"

Not run by hand. What it is not: a defence against bugs in the kernel calls it lets through (memory, clocks, one pipe),
against CPU side channels, or a judge of style: imports are reported, rewards decide. docs/sandbox.md says the rest.
The expected terms never leave this process, and nothing that a candidate writes is evaluated or unpickled here.
"""

import hashlib
import logging
import os
import random
import re
import selectors
import threading
import time
import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from rlvr.errors import RlvrError
from rlvr.verdicts import (
    MISSING,
    Job,
    Outcome,
    Result,
    Value,
    collect,
    judge,
    level,
    matches,
    missing_module,
    read_lines,
)
from rlvr.worker import (
    HEAVY_PACKAGES,
    MAX_SOURCE_BYTES,
    SELF_TEST_CODE,
    SELF_TEST_NAMES,
    START_TIMEOUT_S,
    Zygote,
    can_isolate,
    module_exists,
    read_outcome,
    run_alone,
)

__all__ = ["MAX_COMPLETION_CHARS", "Job", "Result", "Sandbox", "Value", "extract_code"]
log = logging.getLogger(__name__)

MAX_COMPLETION_CHARS = 60_000
NUM_REPEATS = 3
MAX_TRIES = 3
MAX_EXTRA_MODULES = 8
CACHE_SIZE = 2048
HARD_GRACE_S = 10.0
ANSWERS_CAP_BYTES = 60_000

# ---------------------------------------------------------------------------------------------------------------------
# Source text: finding it, sorting it by what it needs
# ---------------------------------------------------------------------------------------------------------------------
_FENCED = re.compile(r"```[ \t]*(?:python3?|py|Python)?[ \t]*\r?\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_FIRST_CODE_LINE = re.compile(
    r"^(?:import[ \t]+\w|from[ \t]+[\w.]+[ \t]+import\b|(?:def|class)[ \t]+\w|@\w)", re.MULTILINE
)
_DEFINES_A = re.compile(r"^\s*def\s+a\b|^a\s*=", re.MULTILINE)


def extract_code(completion: str) -> str:
    """Return the program in a completion: the last fenced block that defines `a`, else the last block, else the text
    from the first import, def, class or decorator line on. "" when there is none. An unclosed fence runs to the end.

    Only the first 60,000 characters are looked at. Example: "Sure!\\n```python\\ndef a(n): return n\\n```" gives
    "def a(n): return n\\n".
    """
    text = completion[:MAX_COMPLETION_CHARS]
    blocks = [match[1] for match in _FENCED.finditer(text)]
    if blocks:
        return next((block for block in reversed(blocks) if _DEFINES_A.search(block)), blocks[-1])
    first = _FIRST_CODE_LINE.search(text)
    return text[first.start() :] if first else ""


_HEAVY = re.compile(r"\b(?:numpy|sympy|mpmath)\b")

# A program may skip the second process when its text cannot name chance, a clock, or a way to reach names that are not in
# the text. This saves time, nothing else: a source that slips through gains only the luck that two processes would deny it.
_MAYBE_RANDOM = re.compile(
    r"__|\\|[^\x00-\x7f]|rand|time|clock|perf|date|now|hash|uuid|secret|token|empty|seed|shuffle|sample|choice|noise|"
    r"getattr|attrgetter|methodcaller|eval|exec|compile|open|globals|locals|vars|dir\b|input|parse|sympify|lambdify|"
    r"\bid\b|\bsys\b|\bos\b|\bgc\b|\bast\b|\bio\b|\bS\b|object|frame|thread|signal|import_module|builtins|inspect|types|ctypes|memory"
)
_IMPORT_LINE = re.compile(r"^\s*(?:from\s+([\w.]+)\s+import|import\s+([\w., ]+?(?:\s+as\s+\w+)?)\s*$)", re.MULTILINE)
_PLAIN_MODULES = frozenset(
    ["math", "cmath", "fractions", "itertools", "functools", "operator", "numbers", "decimal", "collections", "heapq", "bisect", "typing"]
)
_QUOTED = re.compile(r"['\"]|\b(?:chr|str|repr|bytes|format|ascii)\b")
_DOCSTRING = re.compile(r'"""[^"\\]*"""|#[^\n]*')


def is_plainly_deterministic(code: str) -> bool:
    """True when the text of a program cannot name anything that differs from run to run."""
    if _MAYBE_RANDOM.search(code):
        return False
    if _HEAVY.search(code) and _QUOTED.search(_DOCSTRING.sub("", code)):
        return False  # sympy evaluates strings, and a string can be put together from pieces
    num_imports = len(re.findall(r"\bimport\b", code))
    modules: list[str] = []
    for match in _IMPORT_LINE.finditer(code):
        num_imports -= 1
        modules += [match[1]] if match[1] else [part.split()[0] for part in match[2].split(",") if part.strip()]
    allowed = all(
        name.partition(".")[0] in _PLAIN_MODULES or _HEAVY.fullmatch(name.partition(".")[0]) for name in modules
    )
    return num_imports == 0 and allowed


def call_order(inputs: Sequence[int], rng: random.Random) -> list[int]:
    """Return positions of `inputs` in the order of the calls: shuffled, some repeated, three of the smaller ones first.

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
    """One distinct job on its way through first pass, second pass and the agreement of a second process."""

    def __init__(self, job: Job, source: bytes, first_pass_s: float):
        self.job = job
        self.source = source
        self.tier = "heavy" if _HEAVY.search(job.code) else "light"
        inputs_text = ",".join(map(str, job.inputs))
        self.digest = hashlib.blake2b(source + b"\0" + inputs_text.encode(), digest_size=8).hexdigest()
        self.phase = "first"
        self.cpu_limit_s = first_pass_s
        self.tries = 0
        self.passes = 0
        self.cpu_s = 0.0
        self.unconfirmed: Result | None = None
        self.result: Result | None = None
        self.cacheable = True
        self.order: list[int] = []

    def draw(self) -> tuple[list[int], int]:
        """Return (inputs in call order, seed of the candidate's random state); each phase has its own, tries share it."""
        rng = random.Random(f"{self.digest} {self.phase}")
        self.order = call_order(self.job.inputs, rng)
        return [self.job.inputs[position] for position in self.order], rng.getrandbits(64)

    def wall_limit_s(self) -> float:
        return (4 * self.cpu_limit_s + 1) * 4 ** max(0, self.tries - 1)


class Slot:
    """One core: at most one zygote a tier, at most one job at a time."""

    def __init__(self, cpu: int):
        self.cpu = cpu
        self.zygotes: dict[str, Zygote] = {}
        self.busy: tuple[int, Case, Zygote] | None = None
        self.deadline_s: float = 0.0


# ---------------------------------------------------------------------------------------------------------------------
# The sandbox
# ---------------------------------------------------------------------------------------------------------------------
class Sandbox:
    """Runs jobs on all cores. Workers start when first needed and end with `close()`, this process, or its death.

    `first_pass_s` and `second_pass_s` are CPU seconds of one process. Only programs whose every term so far is right get
    the second pass, and all second passes of one `run` together get `second_pass_budget_s`. `memory_mib` is what a
    candidate may add to the preloaded modules. `without` leaves layers out as if the kernel lacked them ("namespaces",
    "landlock", "seccomp"), for tests of other hosts.
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
        self.memory_mib = memory_mib
        self.without = without
        self.isolated = can_isolate() and "seccomp" not in without
        if not self.isolated:
            if not unsafe_no_isolation:
                raise RlvrError(
                    "this system cannot isolate the programs that a model writes (needed: Linux on x86_64 or aarch64 with "
                    "seccomp): use Linux, a container or Colab, or accept the risk with unsafe_no_isolation=True"
                )
            log.warning(
                "no isolation: programs written by the model run with all your rights; answers are still kept apart"
            )
        cores = sorted(os.sched_getaffinity(0)) if self.isolated else list(range(os.cpu_count() or 1))
        num_workers = workers or len(cores)
        self.slots = [Slot(cores[k % len(cores)] if len(cores) > 1 else -1) for k in range(num_workers)]
        self.infra_counts: Counter[str] = Counter()
        self._cache: OrderedDict[Job, Result] = OrderedDict()
        self._extra_modules: dict[str, list[str]] = {"light": [], "heavy": []}
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._number = 0
        self._level = "" if self.isolated else "none"
        self._live: list[Zygote] = []
        self._finalizer = weakref.finalize(self, _close_all, self._live)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def isolation(self) -> str:
        """The kernel layers that hold candidates here: full, no-namespaces, seccomp-only or none. Starts a worker if need be."""
        if not self._level:
            self.self_test()
        return self._level

    def close(self) -> None:
        """End every worker and wait for it. The sandbox may be used again: workers start anew."""
        with self._lock:
            self._forget_all()

    def self_test(self) -> dict[str, bool]:
        """Try what must be impossible in a real worker; returns {what: refused}. RlvrError when anything was possible."""
        if not self.isolated:
            return dict.fromkeys(SELF_TEST_NAMES, False)
        with self._lock:
            self._check_process()
            slot = self.slots[0]
            zygote = slot.zygotes.get("light") or self._start(slot, "light")
            while zygote.state == "starting":
                self._take_greeting(zygote, zygote.receive())
            if zygote.state == "ready":
                self._send_self_test(zygote)
            return self._check_self_test(zygote, zygote.receive())

    def run(self, jobs: Sequence[Job]) -> list[Result]:
        """Run every job and return the results in the same order. Equal jobs are run once, and remembered."""
        with self._lock:
            self._check_process()
            cases: dict[Job, Case] = {}
            known: dict[Job, Result] = {}
            for job in jobs:
                if job in self._cache:
                    self._cache.move_to_end(job)
                    known[job] = self._cache[job]
                elif job not in cases and job not in known:
                    case, refused = self._admit(job)
                    if refused:
                        known[job] = refused
                    else:
                        cases[job] = case
            if cases:
                (self._run_isolated if self.isolated else self._run_alone)(list(cases.values()))
            for job, case in cases.items():
                assert case.result is not None
                known[job] = case.result
                if case.cacheable:
                    self._cache[job] = case.result
            while len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)
            return [known[job] for job in jobs]

    # -- jobs -----------------------------------------------------------------------------------------------------

    def _admit(self, job: Job) -> tuple[Case, Result | None]:
        """Make a case; a source or a list of inputs too long to send gets its result at once."""
        if len(job.inputs) != len(job.expected):
            raise RlvrError(
                f"a job has {len(job.inputs)} inputs and {len(job.expected)} expected terms: give one for each"
            )
        answers_bytes = sum(term.bit_length() // 4 + 8 for term in job.expected)
        if answers_bytes > ANSWERS_CAP_BYTES or len(job.inputs) > 4000:
            raise RlvrError(
                f"a job's answers need {answers_bytes} bytes, {ANSWERS_CAP_BYTES} can be sent: ask for fewer terms"
            )
        source = job.code.encode("utf-8", "surrogatepass")
        if len(source) > MAX_SOURCE_BYTES:
            nothing = (MISSING,) * len(job.inputs)
            error = f"source of {len(source)} bytes, at most {MAX_SOURCE_BYTES} are run"
            refused = Result(
                "syntax_error", nothing, (False,) * len(nothing), error=error, isolation=self._level or "none"
            )
            return Case(job, b"", self.first_pass_s), refused
        return Case(job, source, self.first_pass_s), None

    def _absorb(self, case: Case, outcome: Outcome, loaded: frozenset[str]) -> bool:
        """Take in how a case's process ended; True when the case is done, else it wants another process."""
        reading = read_lines(outcome.output, len(case.order))
        values, disagreed = collect(reading, case.order, len(case.job.inputs))
        right = matches(values, case.job.expected)
        verdict, error = judge(reading, outcome, values, right, disagreed, case.cpu_limit_s, not self.isolated)
        missing = missing_module(reading)
        if missing and verdict == "exception" and self.isolated and self._provide(case, missing, loaded):
            return False
        if (
            missing
            and verdict == "exception"
            and missing.partition(".")[0] in HEAVY_PACKAGES
            and missing not in loaded
        ):
            if module_exists(missing):
                verdict, error = "infra", f"module {missing} could not be preloaded"
        case.cpu_s += outcome.cpu_s
        case.passes += 1
        result = Result(
            verdict,
            tuple(values),
            right,
            reading.imports,
            reading.has_function,
            error,
            case.cpu_s,
            case.passes,
            self._level,
        )
        if verdict == "infra":
            self.infra_counts[error] += 1
            case.tries += 1
            case.cacheable = False
            if case.tries < MAX_TRIES:
                return False
        elif case.phase == "agree":
            result = self._agreement(case, result)
        elif verdict == "ok" and not is_plainly_deterministic(case.job.code):
            case.unconfirmed = result
            case.phase, case.tries = "agree", 0
            case.cpu_limit_s = self.second_pass_s
            return False
        elif verdict == "cpu_timeout" and case.phase == "first" and self._deserves_more(reading.defined, result):
            case.unconfirmed = result
            case.phase, case.tries = "second", 0
            case.cpu_limit_s = self.second_pass_s
            return False
        case.result = result
        return True

    def _deserves_more(self, defined: bool, result: Result) -> bool:
        """Second pass: every term so far is right, and there is one, or the program was still building its tables."""
        answered = [match for value, match in zip(result.values, result.matches, strict=True) if value is not MISSING]
        return all(answered) and bool(answered or ((result.imports or not result.has_function) and not defined))

    def _agreement(self, case: Case, second: Result) -> Result:
        """Merge a right answer with what a second process said."""
        first = case.unconfirmed
        assert first is not None
        if second.verdict == "ok":
            return second
        differs = Value("error", None, "a second process gave a different answer")
        values = tuple(one if one == two else differs for one, two in zip(first.values, second.values, strict=True))
        return Result(
            "nondeterministic", values, matches(values, case.job.expected), first.imports, True,
            f"a second process did not agree: {second.verdict}", case.cpu_s, case.passes, self._level,
        )  # fmt: skip

    def _provide(self, case: Case, missing: str, loaded: frozenset[str]) -> bool:
        """React to a module that was not preloaded: another tier, or fresh workers that have it. True: try again."""
        root = missing.partition(".")[0]
        if root in HEAVY_PACKAGES and case.tier == "light":
            case.tier = "heavy"
            return True
        extra = self._extra_modules[case.tier]
        if missing in extra or missing in loaded or len(extra) >= MAX_EXTRA_MODULES:
            return False
        if root not in HEAVY_PACKAGES or not module_exists(missing):
            return False
        log.warning("module %s was not preloaded in the %s workers: starting fresh ones with it", missing, case.tier)
        extra.append(missing)
        for slot in self.slots:
            zygote = slot.zygotes.get(case.tier)
            if zygote and not (slot.busy and slot.busy[2] is zygote):
                self._discard(slot, zygote)
            elif zygote:
                zygote.state = "stale"
        return True

    # -- workers --------------------------------------------------------------------------------------------------

    def _check_process(self) -> None:
        """After a fork of this process the workers belong to the parent: let go of them and start our own."""
        if os.getpid() != self._pid:
            self._forget_all()
            self._pid = os.getpid()

    def _forget_all(self) -> None:
        for slot in self.slots:
            slot.zygotes.clear()
            slot.busy = None
        _close_all(self._live)

    def _start(self, slot: Slot, tier: str) -> Zygote:
        zygote = Zygote(tier, slot.cpu, self.memory_mib, self.without, self._extra_modules[tier])
        zygote.deadline_s = time.monotonic() + START_TIMEOUT_S
        slot.zygotes[tier] = zygote
        self._live.append(zygote)
        return zygote

    def _discard(self, slot: Slot, zygote: Zygote) -> None:
        if slot.zygotes.get(zygote.tier) is zygote:
            del slot.zygotes[zygote.tier]
        self._live.remove(zygote)
        zygote.close()

    def _take_greeting(self, zygote: Zygote, message: bytes) -> None:
        zygote.greet(message)
        self._send_self_test(zygote)

    def _send_self_test(self, zygote: Zygote) -> None:
        zygote.state = "testing"
        zygote.send(0, SELF_TEST_CODE.encode(), range(len(SELF_TEST_NAMES)), 5.0, 30.0, 1)

    def _check_self_test(self, zygote: Zygote, message: bytes) -> dict[str, bool]:
        """Refuse to score where a candidate could do what it must not."""
        outcome = read_outcome(message)[1] if message else Outcome(lost=True)
        reading = read_lines(outcome.output, len(SELF_TEST_NAMES))
        refused = {name: False for name in SELF_TEST_NAMES}
        for name, answer in zip(SELF_TEST_NAMES, reading.answers, strict=False):
            refused[name] = answer == ("i", "0")
        if not all(refused.values()) or outcome.exit_code:
            possible = ", ".join(name for name, no in refused.items() if not no)
            raise RlvrError(
                f"the sandbox does not hold on this system (possible inside it: {possible}): nothing was scored; run "
                "elsewhere and report the system"
            )
        zygote.state = "ready"
        self._level = level(zygote.layers)
        return refused

    def _run_alone(self, cases: list[Case]) -> None:
        """Without isolation: a fresh interpreter for every process, as many at a time as there are workers."""

        def complete(case: Case) -> None:
            while case.result is None:
                calls, seed = case.draw()
                outcome = run_alone(case.tier, case.source, calls, case.cpu_limit_s, case.wall_limit_s(), seed)
                self._absorb(case, outcome, frozenset())

        with ThreadPoolExecutor(len(self.slots)) as pool:
            list(pool.map(complete, cases))

    def _run_isolated(self, cases: list[Case]) -> None:
        """Feed the zygotes until every case has its result. On any exception the workers in use are ended."""
        queues = {
            "light": deque(c for c in cases if c.tier == "light"),
            "heavy": deque(c for c in cases if c.tier == "heavy"),
        }
        run = _Run(self, queues, len(cases))
        try:
            run.until_done()
        except BaseException:
            self._forget_all()
            raise
        finally:
            run.selector.close()


class _Run:
    """One call of Sandbox.run: which zygote gets which case, and what comes back."""

    def __init__(self, sandbox: Sandbox, queues: dict[str, deque[Case]], num_open: int):
        self.sandbox = sandbox
        self.queues = queues
        self.num_open = num_open
        self.budget_s = sandbox.second_pass_budget_s
        self.selector = selectors.DefaultSelector()
        self.watched: dict[Zygote, Slot] = {}
        self.num_lost = 0

    def until_done(self) -> None:
        while self.num_open:
            for slot in self.sandbox.slots:
                self.fill(slot)
            timeout_s = min(self.deadlines(), default=60.0) - time.monotonic() if self.watched else 0.0
            for key, _ in self.selector.select(max(0.0, timeout_s)):
                zygote: Zygote = key.data
                self.handle(self.watched[zygote], zygote)
            self.expire()

    def deadlines(self) -> list[float]:
        return [zygote.deadline_s for zygote in self.watched]

    def fill(self, slot: Slot) -> None:
        """Start what this slot will need, and give it a case when it has none."""
        if slot.busy:
            return
        for tier in ("heavy", "light"):
            queue = self.queues[tier]
            if not queue:
                continue
            zygote = slot.zygotes.get(tier)
            if zygote is None:
                starting = sum(1 for s in self.sandbox.slots if (z := s.zygotes.get(tier)) and z.state != "stale")
                if starting >= len(queue) and starting > 0:
                    continue  # enough workers of this tier for what is left
                zygote = self.sandbox._start(slot, tier)
            if zygote.state in ("starting", "testing"):
                self.watch(slot, zygote)
                continue
            self.dispatch(slot, zygote, queue.popleft())
            return

    def watch(self, slot: Slot, zygote: Zygote) -> None:
        if zygote not in self.watched:
            self.watched[zygote] = slot
            self.selector.register(zygote, selectors.EVENT_READ, zygote)

    def unwatch(self, zygote: Zygote) -> None:
        if zygote in self.watched:
            del self.watched[zygote]
            self.selector.unregister(zygote)

    def dispatch(self, slot: Slot, zygote: Zygote, case: Case) -> None:
        if case.phase == "second" and self.budget_s <= 0:
            case.result = case.unconfirmed
            case.cacheable = False
            self.num_open -= 1
            return
        sandbox = self.sandbox
        sandbox._number = sandbox._number % 0xFFFFFFFF + 1
        calls, seed = case.draw()
        wall_limit_s = case.wall_limit_s()
        slot.busy = sandbox._number, case, zygote
        zygote.deadline_s = time.monotonic() + wall_limit_s + HARD_GRACE_S
        self.watch(slot, zygote)
        zygote.send(sandbox._number, case.source, calls, case.cpu_limit_s, wall_limit_s, seed)

    def handle(self, slot: Slot, zygote: Zygote) -> None:
        message = zygote.receive()
        if zygote.state == "starting":
            self.sandbox._take_greeting(zygote, message)
        elif zygote.state == "testing":
            self.sandbox._check_self_test(zygote, message)
            self.unwatch(zygote)
        else:
            self.finish(slot, zygote, message)

    def finish(self, slot: Slot, zygote: Zygote, message: bytes) -> None:
        assert slot.busy is not None
        number, case, _ = slot.busy
        slot.busy = None
        self.unwatch(zygote)
        outcome = Outcome(lost=True)
        if message:
            answered, outcome = read_outcome(message)
            if answered != number:
                outcome = Outcome(lost=True)
        if case.phase == "second":
            self.budget_s -= outcome.cpu_s
        done = self.sandbox._absorb(case, outcome, zygote.loaded)
        if outcome.lost or outcome.hit_wall or zygote.state == "stale":
            if zygote in self.sandbox._live:
                self.sandbox._discard(slot, zygote)
        if done:
            self.num_open -= 1
        else:
            self.queues[case.tier].append(case)

    def expire(self) -> None:
        """End zygotes that are past their deadline; a job that was in one counts as lost."""
        now = time.monotonic()
        for zygote, slot in list(self.watched.items()):
            if now < zygote.deadline_s:
                continue
            if zygote.state in ("starting", "testing"):
                raise RlvrError(
                    f"the sandbox's {zygote.tier} worker did not start within {START_TIMEOUT_S:.0f} s: free the machine"
                )
            self.finish(slot, zygote, b"")


def _close_all(live: list[Zygote]) -> None:
    while live:
        live.pop().close()
