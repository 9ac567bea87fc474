"""The OEIS files as a corpus: finding them, the train/eval split, choosing the sequences that make sense as tasks.

    >>> corpus = open_corpus()                                    # oeisdata/, else the bundled sample
    >>> chosen = corpus.select(split="train", limit=5000, seed=0)
    >>> chosen.entries[0].terms, chosen.dropped

`python -m rlvr.corpus [DIR]` prints what is in a corpus; with `--bad` it names every file that could not be used.

Not here: the index that makes this fast, and what a later load notices (`corpus_index.py`); what a task or a prompt is
(`oeis_rlvr.py`); the text format (`oeis_parser.py`).
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import heapq
import re
import sqlite3
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from oeis_parser import decimal_to_int
from rlvr.arguments import Parser, run_program
from rlvr.config import EXCLUDED_KEYWORDS, REQUIRED_KEYWORDS
from rlvr.corpus_index import Refresh, delete_index, list_folders, open_index, read_about
from rlvr.corpus_reader import FLEETING_KEYWORDS
from rlvr.errors import RlvrError

_OTHER_KEYWORDS = (
    *("allocating", "bref", "core", "dumb", "eigen", "hear"),
    *("less", "look", "mult", "nice", "sign", "walk"),
)
KNOWN_KEYWORDS = frozenset((*REQUIRED_KEYWORDS, *EXCLUDED_KEYWORDS, *_OTHER_KEYWORDS))
EVAL_SHARE = 0.2
CORPUS_DIR = Path("oeisdata")
SAMPLE_DIR = Path(__file__).parent / "assets" / "sample"
HOW_TO_GET = "python rlvrctl.py corpus fetch"
HOW_TO_UPDATE = f"`{HOW_TO_GET}` or `git pull` in it may bring it"
PARTIAL_FILE = "INCOMPLETE"
"""Lies beside the `A???` folders while `corpus_fetch.py` has not brought all; holds a line that says how far it is."""

Split = Literal["train", "eval"]


def _hash_anum(anum: str) -> tuple[bool, int]:
    """Give (is in the eval split, a 64-bit key to order by); both depend on the A-number alone."""
    digest = hashlib.sha256(anum.encode("ascii")).digest()
    return int.from_bytes(digest[:8], "big") < EVAL_SHARE * 2**64, int.from_bytes(digest[8:16], "big")


def split_of(anum: str) -> Split:
    """Give the split of a sequence: "eval" for one in five, by a hash of the A-number, so it never moves."""
    return "eval" if _hash_anum(canonical_anum(anum))[0] else "train"


def canonical_anum(anum: str) -> str:
    """`a45`, `45` and `A000045` -> `A000045`."""
    match = re.fullmatch(r"[Aa]?([0-9]{1,12})", anum)
    if match is None:
        raise RlvrError(f"{anum!r} is not an A-number: write it like A000045")
    return f"A{int(match[1]):06d}"


class Entry(NamedTuple):
    """One sequence. `keywords` are sorted and leave out new and changed, which come and go."""

    anum: str
    offset: int | None  # index of the first term; `select` only gives entries that have one
    name: str
    keywords: tuple[str, ...]
    terms: tuple[int, ...]


class Selection(NamedTuple):
    """What `Corpus.select` chose: `num_total == len(entries) + sum(dropped.values())`.

    `dropped` counts each sequence once, under the first of these that holds: "keyword K" for K in the order of
    `exclude`, "no keyword K" in the order of `require`, "no offset", "fewer than N terms", "in the eval split" (or
    train), "excluded by number", "over the limit of N".
    """

    entries: list[Entry]
    dropped: dict[str, int]
    num_total: int

    def describe(self) -> str:
        """Give a line a reason, ready to print."""
        rows = [(len(self.entries), "chosen"), *((count, reason) for reason, count in self.dropped.items())]
        width = max(len(f"{count:,}") for count, _ in (*rows, (self.num_total, "")))
        return "\n".join(f"{count:{width},} {reason}" for count, reason in [(self.num_total, "sequences"), *rows])


# ---------------------------------------------------------------------------------------------------------------------
# Finding the files


def find_corpus(corpus_dir: Path | str | None = None) -> tuple[Path, bool]:
    """Give (the folder that holds the `A???` folders, is it the bundled sample).

    `corpus_dir` may be a clone of oeisdata, its `seq` folder, or any folder with `A???` folders; RlvrError when it is
    none. None means `oeisdata` here or beside the programs, else the sample.
    """
    if corpus_dir is not None:
        found = _find_seq(Path(corpus_dir).expanduser())
        if found is None:
            raise RlvrError(
                f"no folders A???/ with .seq files in {corpus_dir}: name a clone of oeisdata, or make one with "
                f"`{HOW_TO_GET}`"
            )
        return found, found == _find_seq(SAMPLE_DIR)
    for folder in (CORPUS_DIR, Path(__file__).parent.parent / CORPUS_DIR):
        found = _find_seq(folder)
        if found is not None:
            return found, False
    found = _find_seq(SAMPLE_DIR)
    if found is None:
        raise RlvrError(f"neither {CORPUS_DIR}/ nor the bundled sample {SAMPLE_DIR} is there: run `{HOW_TO_GET}`")
    return found, True


def _find_seq(folder: Path) -> Path | None:
    for candidate in (folder / "seq", folder):
        with contextlib.suppress(OSError):
            if list_folders(str(candidate)):
                return candidate.resolve()
    return None


# ---------------------------------------------------------------------------------------------------------------------
# The corpus


@dataclass(slots=True, weakref_slot=True, eq=False)
class Corpus:
    """An open corpus. `fingerprint` is a hash over all sequences; it does not change with the order of the files.

    `partial` says how much of it is there while it is fetched, such as "96 of 396 folders"; "" when it is whole.
    """

    path: Path
    is_sample: bool
    partial: str
    fingerprint: str
    num_files: int
    bad: dict[str, list[str]]  # reason -> "A000/A000001.seq: line 3: what was found"
    refresh: Refresh
    _db: sqlite3.Connection

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn damage to the index, found while reading, into a message; the next `open_corpus` builds a new one."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            delete_index(self.path)
            raise RlvrError(
                f"the index of {self.path} was damaged ({error}) and has been removed: run it again"
            ) from error

    def select(
        self,
        *,
        require: Sequence[str] = REQUIRED_KEYWORDS,
        exclude: Sequence[str] = EXCLUDED_KEYWORDS,
        min_terms: int = 20,
        split: Split | None = None,
        limit: int | None = None,
        seed: int = 0,
        exclude_anums: Iterable[str] = (),
    ) -> Selection:
        """Choose the sequences that have all of `require`, none of `exclude`, an offset and `min_terms` terms.

        `split` None means both. Of more than `limit`, the first in an order that depends on `seed` and A-number only
        are taken, in that order: a corpus that grows by a tenth changes about a tenth of them. Raises RlvrError on a
        keyword that no sequence has.
        """
        with self._reading():
            keysets = self._read_keysets()
            counts: dict[int, int] = dict(self._db.execute("SELECT keyset, count(*) FROM entries GROUP BY keyset"))
        self._check_keywords((*require, *exclude), keysets.values())
        too_short = f"fewer than {min_terms} terms"
        other_split = f"in the {'eval' if split == 'train' else 'train'} split"
        reasons = [f"keyword {word}" for word in exclude] + [f"no keyword {word}" for word in require]
        dropped = dict.fromkeys([*reasons, "no offset", too_short, other_split, "excluded by number"], 0)
        kept = []
        for key, count in counts.items():
            reason = _drop_reason(keysets[key], require, exclude)
            if reason is None:
                kept.append(key)
            else:
                dropped[reason] += count
        excluded = {canonical_anum(anum) for anum in exclude_anums}
        mix = int.from_bytes(hashlib.sha256(f"order {seed}".encode()).digest()[:8], "big")
        ordered: list[tuple[int, int]] = []
        for num, n_terms, has_offset in self._read_candidates(kept):
            anum = f"A{num:06d}"
            is_eval, order_key = _hash_anum(anum)
            if not has_offset:
                dropped["no offset"] += 1
            elif n_terms < min_terms:
                dropped[too_short] += 1
            elif split is not None and is_eval != (split == "eval"):
                dropped[other_split] += 1
            elif anum in excluded:
                dropped["excluded by number"] += 1
            else:
                ordered.append((_scramble(order_key ^ mix), num))
        chosen = sorted(ordered) if limit is None else heapq.nsmallest(limit, ordered)
        dropped[f"over the limit of {limit}"] = len(ordered) - len(chosen)
        entries = self._fetch([num for _, num in chosen], keysets)
        return Selection(entries, {reason: count for reason, count in dropped.items() if count}, sum(counts.values()))

    def get(self, anum: str) -> Entry:
        """Give one sequence by its A-number; RlvrError, with the reason, when it cannot be had."""
        anum = canonical_anum(anum)
        found = self._fetch([int(anum[1:])], self._read_keysets())
        if found:
            return found[0]
        row = self._db.execute("SELECT reason, detail FROM bad WHERE name = ?", (f"{anum}.seq",)).fetchone()
        if row:
            raise RlvrError(f"{self.path / anum[:-3] / anum}.seq cannot be used: {': '.join(filter(None, row))}")
        remedy = f"`{HOW_TO_GET}` gets the full corpus" if self.is_sample or self.partial else HOW_TO_UPDATE
        raise RlvrError(f"{anum} is not among the {self.num_files:,} sequences of {self.path}: {remedy}")

    def bad_report(self, most: int = 3) -> str:
        """Give a line a reason, naming up to `most` files each; "" when every file could be used."""
        lines = []
        for reason, files in sorted(self.bad.items(), key=lambda item: -len(item[1])):
            rest = f" and {len(files) - most:,} more" if len(files) > most else ""
            lines.append(f"{len(files):,} {reason}: {'; '.join(files[:most])}{rest}")
        return "\n".join(lines)

    def _check_keywords(self, words: Iterable[str], keysets: Iterable[frozenset[str]]) -> None:
        known = KNOWN_KEYWORDS.union(*keysets)
        for word in words:
            if word in FLEETING_KEYWORDS:
                raise RlvrError(f"keyword {word!r} cannot be chosen by: the server sets it for some weeks only")
            if word not in known:
                near = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.0)
                raise RlvrError(f"no sequence has the keyword {word!r}: did you mean {near[0]!r}?")

    def _read_keysets(self) -> dict[int, frozenset[str]]:
        return {key: frozenset(words.split(",")) for key, words in self._db.execute("SELECT * FROM keysets")}

    def _read_candidates(self, keysets: Iterable[int]) -> Iterator[tuple[int, int, bool]]:
        """Give (A-number as int, number of terms, has an offset) of the sequences with one of these keyword sets."""
        query = 'SELECT num, n_terms, "offset" IS NOT NULL FROM entries WHERE keyset = ?'
        with self._reading():
            for keyset in keysets:
                yield from self._db.execute(query, (keyset,))

    def _fetch(self, nums: list[int], keysets: dict[int, frozenset[str]]) -> list[Entry]:
        keywords = {key: tuple(sorted(words)) for key, words in keysets.items()}
        query = 'SELECT keyset, "offset", name, terms FROM entries WHERE num = ?'
        entries = []
        with self._reading():
            for num in nums:
                for keyset, offset, name, terms in self._db.execute(query, (num,)):
                    entries.append(Entry(f"A{num:06d}", offset, name, keywords[keyset], _to_terms(terms)))
        return entries


def _drop_reason(words: frozenset[str], require: Sequence[str], exclude: Sequence[str]) -> str | None:
    for word in exclude:
        if word in words:
            return f"keyword {word}"
    for word in require:
        if word not in words:
            return f"no keyword {word}"
    return None


def _scramble(key: int) -> int:
    """Mix 64 bits (the finisher of splitmix64), so that two seeds give unrelated orders."""
    key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return key ^ (key >> 31)


def _to_terms(text: str) -> tuple[int, ...]:
    if len(text) <= 640:  # no term can be too long for int()
        return tuple(map(int, text.split(","))) if text else ()
    return tuple(map(decimal_to_int, text.split(",")))


def _print_notice(text: str) -> None:
    print(text, file=sys.stderr)


def open_corpus(
    corpus_dir: Path | str | None = None,
    *,
    notice: Callable[[str], None] = _print_notice,
    progress: bool = True,
    refresh: Literal["auto", "full"] = "auto",
) -> Corpus:
    """Open the corpus in `corpus_dir` (see `find_corpus`), indexing what the index does not hold yet.

    `notice` gets what a person should know: the sample is used, files could not be used. `progress` shows a bar on
    stderr while many files are read. `refresh`: see `corpus_index.py`. RlvrError when there is no corpus.
    """
    root, is_sample = find_corpus(corpus_dir)
    partial = ""
    db, done = open_index(root, refresh == "full", progress, notice)
    fingerprint, num_files = read_about(db, "fingerprint"), int(read_about(db, "num_files") or "0")
    bad: dict[str, list[str]] = {}
    query = "SELECT folder, name, reason, detail FROM bad ORDER BY folder, name"
    for folder, name, reason, detail in db.execute(query):
        bad.setdefault(reason, []).append(f"{folder}/{name}" + (f": {detail}" if detail else ""))
    with contextlib.suppress(OSError):
        partial = (root / PARTIAL_FILE).read_text(encoding="utf-8").strip()
    corpus = Corpus(root, is_sample, partial, fingerprint, num_files, bad, done, db)
    weakref.finalize(corpus, db.close)
    if is_sample and corpus_dir is None:
        notice(
            f"No OEIS files in {CORPUS_DIR}/: using the bundled sample of {num_files} sequences."
            f" For the full corpus, run `{HOW_TO_GET}`."
        )
    elif num_files == 0:
        raise RlvrError(f"no .seq files in {root}: name a clone of oeisdata, or make one with `{HOW_TO_GET}`")
    if partial:
        notice(f"{root} is not whole ({partial}): `{HOW_TO_GET}` goes on with it.")
    if bad:
        num_bad = sum(map(len, bad.values()))
        counts = ", ".join(f"{len(files):,} {reason}" for reason, files in bad.items())
        notice(
            f"{num_bad:,} of {num_files:,} files in {root} are left out ({counts});"
            f" `python -m rlvr.corpus {'' if corpus_dir is None else root} --bad` names them."
        )
    return corpus


def main(arguments: list[str] | None = None) -> int:
    """Print what is in a corpus and what the default filter leaves of it."""
    parser = Parser(prog="python -m rlvr.corpus", description="Index a corpus and say what is in it.")
    parser.add_argument(
        "corpus", nargs="?", type=Path, help="a clone of oeisdata (default: oeisdata, else the sample)"
    )
    parser.add_argument("--bad", action="store_true", help="name every file that could not be used, and why")
    parser.add_argument("--full", action="store_true", help="look at every file, not only at folders that changed")
    options = parser.parse_args(arguments)
    corpus = open_corpus(options.corpus, refresh="full" if options.full else "auto")
    if options.bad:
        text = "".join(f"{reason}: {file}\n" for reason, files in corpus.bad.items() for file in files)
    else:
        done = corpus.refresh
        what = "index built" if done.was_cold else "index refreshed"
        text = f"{corpus.path}: {corpus.num_files:,} files, fingerprint {corpus.fingerprint}\n"
        text += f"{what}: {done.num_read:,} files read, {done.num_removed:,} removed, {done.wall_s:.2f} s\n"
        text += corpus.select().describe() + "\n"
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(run_program(main))
