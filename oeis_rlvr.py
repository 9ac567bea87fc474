"""The OEIS environment: integer sequences -> tasks, prompts and verifiable rewards.

Use it with TRL directly (`GRPOTrainer(reward_funcs=REWARD_FUNCS, train_dataset=build_dataset(), ...)`), through the
project's trainer and evaluator (`environment = "oeis"`), or look at a few tasks: `python oeis_rlvr.py --limit 3`.
It decides what an answer is worth; running it safely is `rlvr/sandbox/`, reading sequences `rlvr/corpus.py`.

The rewards, each with weight 1; a solved task totals 1.0 and the worst answer -1.0:

| reward           | best | worst | what it looks at                                                          |
|------------------|-----:|------:|---------------------------------------------------------------------------|
| function_works   |  0.1 |  -0.3 | share of the hidden terms for which a(n) returned an exact integer        |
| no_cheating      |  0.0 |  -0.2 | imports outside ALLOWED_IMPORTS: then the terms earn nothing either       |
| sequence_matches |  0.9 |  -0.5 | hidden terms: 0.9 when every term is right, up to 0.2 for some, 0 for     |
|                  |      |       | none; -0.5 for a look-up: all shown terms right and not one hidden term   |

So solved 1.0 > partial > wrong 0.1 > no working function -0.3 > look-up -0.4 that returns something beyond the shown
terms > look-up that fails there -0.8 > the same with a forbidden import -1.0.
"""

import atexit
import functools
import itertools
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from oeis_parser import decimal_to_int, int_to_decimal
from rlvr import corpus, sample, synthetic
from rlvr.arguments import Parser, positive, run_program
from rlvr.config import EXCLUDED_KEYWORDS, REQUIRED_KEYWORDS, RunConfig
from rlvr.environment import RewardFunc, describe
from rlvr.errors import RlvrError
from rlvr.records import Check, Grade, Reward
from rlvr.sandbox import attacks as hostile
from rlvr.sandbox.candidate import IMPORTS_BY_TEXT
from rlvr.sandbox.grader import Job, Result, Sandbox, extract_code

if TYPE_CHECKING:
    from datasets import Dataset

ALLOWED_IMPORTS = (
    *("math", "cmath", "fractions", "decimal", "numbers", "itertools", "functools", "operator"),
    *("statistics", "numpy", "sympy", "mpmath"),
)


# ---------------------------------------------------------------------------------------------------------------------
# Tasks


@dataclass(frozen=True, slots=True)
class Task:
    """One sequence to continue: `shown` stand in the prompt, `holdout` follow them and are used only for scoring."""

    anum: str
    name: str
    offset: int
    shown: tuple[int, ...]
    holdout: tuple[int, ...]

    @property
    def id(self) -> str:
        return self.anum

    @property
    def indices(self) -> tuple[int, ...]:
        """The n of every term, shown ones first."""
        return tuple(range(self.offset, self.offset + len(self.shown) + len(self.holdout)))

    def prompt_text(self, style: str = "full") -> str:
        """The user's message: "full" for instruction-tuned models, "compact" for the tiny one."""
        if style == "compact":
            return synthetic.compact_prompt(self.name, self.offset, self.shown)
        name = f"Name: {self.name}\n" if self.name else ""
        known = ", ".join(f"a({n})={term}" for n, term in zip(self.indices, self.shown, strict=False))
        return (
            "Write a Python function a(n) that returns the n-th term of this integer sequence.\n\n"
            f"{name}"
            f"Index of the first term: {self.offset}\n"
            f"Known terms: {known}\n\n"
            "Answer with one Python code block that defines a(n). For every index from the first on, also beyond the "
            "known terms, a(n) must return an exact int, and quickly. It must compute the terms, not list them. "
            f"Only these modules may be imported: {', '.join(ALLOWED_IMPORTS)}."
        )

    def hidden_text(self) -> str:
        """The terms that only scoring sees."""
        hidden = zip(self.indices[len(self.shown) :], map(int_to_decimal, self.holdout), strict=True)
        return f"Hidden terms: {', '.join(f'a({n})={term}' for n, term in hidden)}"

    def columns(self) -> dict[str, Any]:
        """This task as a dataset row; terms are decimal strings, because Arrow's integers end at 64 bits."""
        return {
            "anum": self.anum,
            "name": self.name,
            "offset": self.offset,
            "shown": [int_to_decimal(term) for term in self.shown],
            "holdout": [int_to_decimal(term) for term in self.holdout],
        }


def build_tasks(
    config: RunConfig,
    *,
    split: Literal["train", "eval"],
    limit: int,
    exclude: Collection[str] = (),
    progress: bool = True,
) -> list[Task]:
    """The tasks that a run with `config` works on; prints what was dropped and why."""
    return select_tasks(
        require_keywords=config.require_keywords,
        exclude_keywords=config.exclude_keywords,
        min_terms=config.min_terms,
        n_show=config.n_show,
        max_eval_terms=config.max_eval_terms,
        limit=limit,
        split=split,
        exclude_anums=exclude,
        seed=config.seed,
        show_name=config.show_name,
        corpus_dir=Path(config.corpus_dir) if config.corpus_dir else None,
        progress=progress,
    )


def select_tasks(
    require_keywords: Sequence[str] = REQUIRED_KEYWORDS,
    exclude_keywords: Sequence[str] = EXCLUDED_KEYWORDS,
    min_terms: int = 20,
    n_show: int = 10,
    max_eval_terms: int = 40,
    limit: int = 5000,
    split: Literal["train", "eval"] = "train",
    exclude_anums: Collection[str] = (),
    seed: int = 0,
    show_name: bool = True,
    corpus_dir: Path | None = None,
    progress: bool = True,
) -> list[Task]:
    """Select sequences of a split, in an order that depends on `seed` and the A-numbers alone; make each a task.

    The default filter drops what makes a(n) meaningless; a shorter `exclude_keywords` lets it in again. How many were
    dropped, and why, is printed to stderr.

    Args:
        min_terms: sequences with fewer terms are dropped; must exceed `n_show`, or nothing would be left to score.
        max_eval_terms: hidden terms a task, at most.
        split: "train" or "eval"; a hash of the A-number decides, so that a sequence never changes sides.

    Raises:
        RlvrError: when the corpus cannot be read or no sequence is left.
    """
    for name, value in (("n_show", n_show), ("max_eval_terms", max_eval_terms), ("limit", limit)):
        if value < 1:
            raise RlvrError(f"{name} = {value} must be at least 1")
    if split not in ("train", "eval"):
        raise RlvrError(f"split = {split!r}: there are 'train' and 'eval'")
    if n_show >= min_terms:
        raise RlvrError(f"n_show = {n_show} leaves no hidden term of {min_terms}: make min_terms larger than n_show")
    sequences = corpus.open_corpus(corpus_dir, progress=progress)
    selection = sequences.select(
        require=require_keywords,
        exclude=exclude_keywords,
        min_terms=min_terms,
        split=split,
        limit=limit,
        seed=seed,
        exclude_anums=exclude_anums,
    )
    if progress:
        print(selection.describe(), file=sys.stderr)
    if not selection.entries:
        raise RlvrError(
            f"{sequences.path}: no sequence of the {split} split passes the filter: relax the keywords or min_terms"
        )
    return [_task(entry, n_show, max_eval_terms, show_name) for entry in selection.entries]


def tasks_by_id(config: RunConfig, ids: Sequence[str]) -> list[Task]:
    """The tasks of these A-numbers, whether or not the filter of a run would let them in.

    Raises:
        RlvrError: for a sequence that the corpus has not, or that no task can be made of.
    """
    sequences = corpus.open_corpus(config.corpus_dir or None)
    entries = [sequences.get(anum) for anum in ids]
    for entry in entries:
        if len(entry.terms) <= config.n_show:
            raise RlvrError(
                f"{entry.anum} has {len(entry.terms)} terms and {config.n_show} are shown, which leaves none to "
                "score: choose another sequence, or a model with a smaller n_show"
            )
    return [_task(entry, config.n_show, config.max_eval_terms, config.show_name) for entry in entries]


def _task(entry: corpus.Entry, n_show: int, max_eval_terms: int, show_name: bool) -> Task:
    if entry.offset is None:
        raise RlvrError(f"{entry.anum} has no offset, so a(n) means nothing: choose another sequence")
    return Task(
        anum=entry.anum,
        name=entry.name if show_name else "",
        offset=entry.offset,
        shown=entry.terms[:n_show],
        holdout=entry.terms[n_show : n_show + max_eval_terms],
    )


def build_dataset(
    require_keywords: Sequence[str] = REQUIRED_KEYWORDS,
    exclude_keywords: Sequence[str] = EXCLUDED_KEYWORDS,
    min_terms: int = 20,
    n_show: int = 10,
    max_eval_terms: int = 40,
    limit: int = 5000,
    split: Literal["train", "eval"] = "train",
    exclude_anums: Collection[str] = (),
    seed: int = 0,
    show_name: bool = True,
    corpus_dir: Path | None = None,
    progress: bool = True,
    prompt_style: Literal["full", "compact"] = "full",
) -> "Dataset":
    """`select_tasks` as a dataset for TRL: a conversational `prompt`, and the columns that the rewards read."""
    from datasets import Dataset

    tasks = select_tasks(
        require_keywords=require_keywords,
        exclude_keywords=exclude_keywords,
        min_terms=min_terms,
        n_show=n_show,
        max_eval_terms=max_eval_terms,
        limit=limit,
        split=split,
        exclude_anums=exclude_anums,
        seed=seed,
        show_name=show_name,
        corpus_dir=corpus_dir,
        progress=progress,
    )
    return Dataset.from_list(
        [{"prompt": [{"role": "user", "content": task.prompt_text(prompt_style)}], **task.columns()} for task in tasks]
    )


# ---------------------------------------------------------------------------------------------------------------------
# Rewards


@dataclass(frozen=True, slots=True)
class Answer:
    """One completion after its one run in the sandbox: what every judge looks at."""

    task: Task
    code: str
    run: Result

    @property
    def matches(self) -> tuple[bool, ...]:
        return self.run.matches

    @property
    def shown_matched(self) -> int:
        return sum(self.matches[: len(self.task.shown)])

    @property
    def hidden_matched(self) -> int:
        return sum(self.matches[len(self.task.shown) :])

    @property
    def forbidden_imports(self) -> tuple[str, ...]:
        return tuple(name for name in self.run.imports if name not in ALLOWED_IMPORTS)

    @property
    def solved(self) -> bool:
        return self.run.verdict == "ok" and all(self.matches)

    @property
    def out_of_time(self) -> bool:
        return self.run.verdict == "cpu_timeout"

    @property
    def is_lookup(self) -> bool:
        """All shown terms right and not one hidden term: listed, not computed. Slowness alone is no proof of that."""
        return self.shown_matched == len(self.task.shown) and self.hidden_matched == 0 and not self.out_of_time


Judge = Callable[[Answer], tuple[float, str]]
"""One answer -> its value and the reason for it, in words for a person."""

JUDGES: dict[str, Judge] = {}


def reward(judge: Judge) -> RewardFunc:
    """Turn a judge of one answer into a reward function in TRL's signature, and register it by its name."""
    JUDGES[judge.__name__] = judge

    @functools.wraps(judge)
    def reward_func(
        *,
        completions: Sequence[Any],
        anum: Sequence[str],
        name: Sequence[str],
        offset: Sequence[int],
        shown: Sequence[Sequence[str]],
        holdout: Sequence[Sequence[str]],
        **_: Any,
    ) -> list[float | None]:
        columns = zip(anum, name, offset, shown, holdout, strict=True)
        tasks = tuple(
            Task(a, title, first, tuple(map(decimal_to_int, known)), tuple(map(decimal_to_int, hidden)))
            for a, title, first, known, hidden in columns
        )
        texts = tuple(completion_text(completion) for completion in completions)
        return [None if answer.run.verdict == "infra" else judge(answer)[0] for answer in run_answers(tasks, texts)]

    return reward_func


@reward
def function_works(answer: Answer) -> tuple[float, str]:
    """Does a(n) exist and return exact integers beyond the shown terms? Right or wrong does not matter here."""
    if not answer.run.has_function:
        return -0.3, f"no function a(n): {answer.run.verdict}"
    values = answer.run.values[len(answer.task.shown) :]
    integers = sum(value.kind == "int" for value in values)
    return -0.3 + 0.4 * integers / len(values), f"{integers} of {len(values)} hidden terms came back as exact integers"


@reward
def no_cheating(answer: Answer) -> tuple[float, str]:
    """Are all imports on the list of allowed ones?"""
    if answer.forbidden_imports:
        hidden = [name for name in answer.forbidden_imports if name in IMPORTS_BY_TEXT]
        plain = [name for name in answer.forbidden_imports if name not in IMPORTS_BY_TEXT]
        reasons = [f"imports {', '.join(plain)}"] * bool(plain) + [f"can import by {name}" for name in hidden]
        return -0.2, "; ".join(reasons)
    return 0.0, "only allowed imports"


@reward
def sequence_matches(answer: Answer) -> tuple[float, str]:
    """Are the hidden terms right? Partial credit stays small next to solving."""
    hidden = len(answer.task.holdout)
    found = f"{answer.hidden_matched} of {hidden} hidden terms right"
    if answer.is_lookup:
        return -0.5, f"look-up: every shown term right, {found}"
    if answer.forbidden_imports:
        return 0.0, f"{found}, but nothing is earned with a forbidden import"
    if answer.solved:
        return 0.9, f"all terms right, {found}"
    return 0.2 * answer.hidden_matched / hidden, found


REWARD_FUNCS = [function_works, no_cheating, sequence_matches]


def outcome_of(answer: Answer, truncated: bool) -> str:
    """One word for what became of an answer: the first that fits."""
    if answer.run.verdict == "infra":
        return "infra"
    if answer.solved and not answer.forbidden_imports:
        return "solved"
    if truncated:
        return "truncated"
    if answer.forbidden_imports:
        return "disallowed_import"
    if answer.is_lookup:
        return "lookup"
    if answer.out_of_time:
        return "timeout"
    if not any(value.kind == "int" for value in answer.run.values):
        return "invalid"
    return "partial" if answer.hidden_matched else "wrong"


# ---------------------------------------------------------------------------------------------------------------------
# Grading


@functools.cache
def _sandbox(workers: int = 0, unsafe_no_isolation: bool = False) -> Sandbox:
    return Sandbox(workers=workers or None, unsafe_no_isolation=unsafe_no_isolation)


_sandbox_options: dict[str, Any] = {}


def configure(config: RunConfig) -> None:
    """Choose the sandbox that later grades run in."""
    _sandbox_options.update(workers=config.sandbox_workers, unsafe_no_isolation=config.unsafe_no_isolation)


def completion_text(completion: Any) -> str:
    """The text of a completion as TRL hands it over: a string or a list of chat messages."""
    return completion if isinstance(completion, str) else "".join(message["content"] or "" for message in completion)


@functools.lru_cache(maxsize=4)
def run_answers(tasks: tuple[Task, ...], texts: tuple[str, ...]) -> tuple[Answer, ...]:
    """Run each completion once in the sandbox; the rewards of a batch share what this remembers."""
    codes = [extract_code(text) for text in texts]
    jobs = [Job(code, task.indices, task.shown + task.holdout) for task, code in zip(tasks, codes, strict=True)]
    results = _sandbox(**_sandbox_options).run(jobs)
    return tuple(Answer(task, code, run) for task, code, run in zip(tasks, codes, results, strict=True))


def grade(tasks: Sequence[Task], completions: Sequence[Any], truncated: Sequence[bool]) -> list[Grade]:
    """Grade a batch: every reward with its reason, every term expected and got, and the outcome."""
    texts = tuple(completion_text(completion) for completion in completions)
    answers = run_answers(tuple(tasks), texts)
    return [_grade(answer, cut) for answer, cut in zip(answers, truncated, strict=True)]


def _grade(answer: Answer, truncated: bool) -> Grade:
    masked = answer.run.verdict == "infra"
    judged = {func.__name__: JUDGES[func.__name__](answer) for func in REWARD_FUNCS}
    rewards = tuple(Reward(name, None if masked else value, reason) for name, (value, reason) in judged.items())
    expected = answer.task.shown + answer.task.holdout
    checks = tuple(
        Check(f"a({n})", int_to_decimal(term), value.text, match, shown=position < len(answer.task.shown))
        for position, (n, term, value, match) in enumerate(
            zip(answer.task.indices, expected, answer.run.values, answer.matches, strict=True)
        )
    )
    return Grade(
        task=answer.task.id,
        outcome=outcome_of(answer, truncated),
        reward=None if masked else sum(value for value, _ in judged.values()),
        rewards=rewards,
        function=answer.code,
        checks=checks,
        verdict=answer.run.verdict,
        error=answer.run.error,
        cpu_s=answer.run.cpu_s,
        isolation=answer.run.isolation,
    )


def provenance(config: RunConfig) -> dict[str, str]:
    """What a run records of its data."""
    folder = Path(config.corpus_dir) if config.corpus_dir else None
    sequences = corpus.open_corpus(folder, progress=False, notice=lambda text: None)
    about = {"corpus": str(sequences.path), "corpus_fingerprint": sequences.fingerprint}
    return {**about, "corpus_partial": sequences.partial} if sequences.partial else about


# ---------------------------------------------------------------------------------------------------------------------
# Validating the rewards: what must score, and what must not

FULL_REWARD = 1.0
WORST_REWARD = -1.0
ATTACK_REWARD = 0.1
"""What a function gets that works and is wrong; an attack may not be worth more than that."""

LOOKUP_ENDINGS = {
    "endless beyond": "while True: pass",
    "no memory beyond": "return [0] * 10**12",
    "a flood beyond": "return 10**39000",
    "a crash beyond": "import ctypes; ctypes.string_at(0)",
    "an import by text beyond": "return eval('__import__(\"os\").getpid()')",
}
"""What else a list of the shown terms can do where it ends; tried on `HOSTILE_TASKS`, as it takes time."""

HOSTILE_TASKS = ("A001923", "A008454")
"""Tasks of the sample on which all hostile programs are tried: no hidden term is so small as to be hit by chance."""


def known_good() -> list[tuple[Task, str]]:
    """All tasks of the bundled sample with a right answer; `HOSTILE_TASKS` first."""
    anums = sorted(sample.rules_by_anum(), key=lambda anum: anum not in HOSTILE_TASKS)
    tasks = tasks_by_id(RunConfig(corpus_dir=str(corpus.SAMPLE_DIR)), anums)
    return [(task, fenced(sample.known_good(task.anum))) for task in tasks]


def fenced(code: str) -> str:
    """A completion whose program is `code`."""
    return f"```python\n{code.rstrip()}\n```"


def attacks(task: Task) -> dict[str, str]:
    """Ways to be paid without knowing the sequence; hostile programs too when the task is one of `HOSTILE_TASKS`.

    A guess that happens to be right is no attack: constants are no hidden term, and a guess that is right anywhere is
    left out. Files that hostile programs look for lie in a folder of this process.
    """
    shown = list(task.shown)
    first, beyond = task.offset, task.offset + len(shown)
    other = next(value for value in itertools.count() if value not in task.holdout)
    look_up = f"T = {shown}\ndef a(n): return T[n - {first}]"
    codes = {
        "look-up of the shown terms": look_up,
        "look-up, a constant beyond": f"T = {shown}\ndef a(n): return T[n - {first}] if n < {beyond} else {other}",
        "look-up, a constant after an error": f"{look_up}\nb = a\ndef a(n):\n    try:\n        return b(n)\n"
        f"    except IndexError:\n        return {other}",
        "look-up with a forbidden import": f"import os\n{look_up}",
        "a constant": f"def a(n): return {other}",
    }
    if not any(term == shown[-1] for term in task.holdout):
        codes["look-up, the last term beyond"] = f"T = {shown}\ndef a(n): return T[min(n, {beyond - 1}) - {first}]"
    if not any(term == shown[k % len(shown)] for k, term in enumerate(task.holdout)):
        codes["look-up, over and over"] = f"T = {shown}\ndef a(n): return T[(n - {first}) % {len(shown)}]"
    if task.anum in sample.rules_by_anum():
        right = sample.known_good(task.anum) + "b = a\n"
        codes |= {
            "right where it is shown": f"{right}def a(n): return b(n) if n < {beyond} else {other}",
            "right, with a forbidden import": f"import os\n{right}",
            "right, as text": f"{right}def a(n): return str(b(n))",
            "right, as floats": f"{right}def a(n): return float(b(n))",
            "right, as fractions": f"from fractions import Fraction\n{right}def a(n): return Fraction(b(n))",
            "right, under another name": f"{right}del a",
        }
    if task.anum in HOSTILE_TASKS:
        secret = _lair() / f"{task.anum}.txt"
        secret.write_text("0 " * task.offset + " ".join(map(int_to_decimal, task.shown + task.holdout)))
        codes |= {
            f"look-up, {name}": f"T = {shown}\ndef a(n):\n    if n < {beyond}: return T[n - {first}]\n    {ending}"
            for name, ending in LOOKUP_ENDINGS.items()
        }
        codes |= {f"hostile: {name}": hostile.source(name, str(secret), str(_marker())) for name in hostile.ATTACKS}
    completions = {name: fenced(code) for name, code in codes.items()}
    prompt = task.prompt_text()
    return {
        **completions,
        "nothing": "",
        "an empty block": fenced(""),
        "the prompt": prompt,
        "the known terms": str(shown),
    }


def left_behind() -> list[str]:
    """The marker, when a hostile program could make it."""
    return [f"{_marker()} was made: the sandbox did not hold"] if _marker().exists() else []


@functools.cache
def _lair() -> Path:
    """A folder that lasts as long as this process, and in which all users may write: only the sandbox forbids it."""
    folder = tempfile.TemporaryDirectory(prefix="oeis-rlvr-")
    atexit.register(folder.cleanup)
    Path(folder.name).chmod(0o777)
    return Path(folder.name)


def _marker() -> Path:
    return _lair() / "marker"


def main() -> int:
    """Print a few tasks as the model sees them, and what it does not see."""
    parser = Parser(description="Print a few OEIS tasks as the model sees them.")
    parser.add_argument("--limit", type=positive, default=3, help="how many; default 3")
    parser.add_argument("--split", choices=("train", "eval"), default="train")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--style", choices=("full", "compact"), default="full")
    parser.add_argument("--hide-name", action="store_true")
    parser.add_argument("--corpus", type=Path, help="folder of .seq files; default oeisdata/, else the bundled sample")
    args = parser.parse_args()
    tasks = select_tasks(
        limit=args.limit, split=args.split, seed=args.seed, show_name=not args.hide_name, corpus_dir=args.corpus
    )
    for task in tasks:
        print(describe(task, args.style))
    return 0


if __name__ == "__main__":
    sys.exit(run_program(main))
