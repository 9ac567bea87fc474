"""The OEIS files as a corpus: finding them, a cached index of them, the train/eval split, choosing sequences for tasks.

    >>> corpus = open_corpus()                                    # oeisdata/, else the bundled sample
    >>> chosen = corpus.select(split="train", limit=5000, seed=0)
    >>> chosen.entries[0].terms, chosen.dropped

`python -m rlvr.corpus [DIR]` prints what is in a corpus; with `--bad` it names every file that could not be used.

The index is an SQLite file in `$XDG_CACHE_HOME/oeis-rlvr/` (default `~/.cache/oeis-rlvr/`), one per corpus folder, so
that a clone stays clean and a read-only one works. It is only a copy of what the files say: delete it at any time.

How a later load finds what changed: up to `FULL_CHECK_FILES` files, by the time and size of every file. Above that by
the time of every folder, which moves when a file in it is added, removed or replaced (git, rsync and most editors
replace), but not when a program writes into a file in place; `open_corpus(..., refresh="full")` sees that as well.

Not here: what a task or a prompt is (`oeis_rlvr.py`), and the text format (`oeis_parser.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import heapq
import os
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from oeis_parser import decimal_to_int
from rlvr.corpus_reader import DIGEST_BYTES, FLEETING_KEYWORDS, FOLDER_NAME, Job, list_folder, read_batches
from rlvr.errors import RlvrError

DEFAULT_REQUIRED = ("easy", "nonn")
DEFAULT_EXCLUDED = (  # in this order: an entry that has several is counted under the first
    *("dead", "dupe", "allocated", "recycled"),  # not a sequence, or not a living one
    *("base", "word"),  # about the writing of numbers
    *("cons", "cofr", "frac", "tabl", "tabf"),  # the index into the terms is not the n of a(n)
    *("fini", "full", "more", "hard"),  # no further terms to be judged by
    *("obsc", "unkn", "uned", "probation"),  # unclear what it is
)
KNOWN_KEYWORDS = frozenset(
    (*DEFAULT_REQUIRED, *DEFAULT_EXCLUDED)
    + ("allocating", "bref", "core", "dumb", "eigen", "hear", "less", "look", "mult", "nice", "sign", "walk")
)
EVAL_SHARE = 0.2
FULL_CHECK_FILES = 50_000
CORPUS_DIR = Path("oeisdata")
SAMPLE_DIR = Path(__file__).parent / "assets" / "sample"
HOW_TO_GET = "git clone --depth 1 https://github.com/oeis/oeisdata"
INDEX_VERSION = 1  # raise it when the schema, or what the parser makes of a file, changes

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


class Refresh(NamedTuple):
    """What `open_corpus` had to do: `was_cold` when there was no index; files read and entries removed since."""

    was_cold: bool
    num_read: int
    num_removed: int
    wall_s: float


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
            raise RlvrError(f"no folders A???/ with .seq files in {corpus_dir}: name a clone made with `{HOW_TO_GET}`")
        return found, False
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
            if _list_folders(str(candidate)):
                return candidate.resolve()
    return None


def _list_folders(root: str) -> dict[str, int]:
    """Give name -> mtime_ns of the `A???` folders."""
    with os.scandir(root) as items:
        folders = [item for item in items if FOLDER_NAME.fullmatch(item.name) and item.is_dir()]
    return {item.name: item.stat().st_mtime_ns for item in sorted(folders, key=lambda item: item.name)}


def _index_file(root: Path) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oeis-rlvr"
    return cache / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}.sqlite"


# ---------------------------------------------------------------------------------------------------------------------
# The index

# A file is unchanged when time and size are. A time so close to the moment of reading that the file could have changed
# again within the same tick of the file system's clock is stored as 0, so that the next load looks again.
_TICK_NS = 2_000_000_000

_SCHEMA = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE folders (name TEXT PRIMARY KEY, mtime_ns INTEGER NOT NULL);
CREATE TABLE keysets (id INTEGER PRIMARY KEY, keywords TEXT NOT NULL UNIQUE);
CREATE TABLE entries (
    num INTEGER PRIMARY KEY, mtime_ns INTEGER, size INTEGER, keyset INTEGER, n_terms INTEGER, "offset" INTEGER
);
CREATE TABLE texts (num INTEGER PRIMARY KEY, name TEXT, terms TEXT, digest BLOB);
CREATE TABLE bad (
    folder TEXT, name TEXT, mtime_ns INTEGER, size INTEGER, reason TEXT, detail TEXT, PRIMARY KEY (folder, name)
);
"""
_SELECTION_INDEX = 'CREATE INDEX selection ON entries (keyset, n_terms, "offset")'


class _Writer:
    """Brings one open index up to date. All its writes belong to one transaction of the caller's."""

    def __init__(self, db: sqlite3.Connection, root: str):
        self.db, self.root = db, root
        self.keysets: dict[str, int] = dict(db.execute("SELECT keywords, id FROM keysets"))
        self.fingerprint = int(_about(db, "fingerprint") or "0", 16)
        self.num_read = self.num_removed = 0

    def update(self, jobs: list[Job], num_files: int | None, on_batch: Callable[[int], None]) -> None:
        """Read the jobs' files and store what they hold."""
        started_ns = time.time_ns()

        def settled(mtime_ns: int) -> int:
            return mtime_ns if mtime_ns < started_ns - _TICK_NS else 0

        for batch in read_batches(self.root, jobs, num_files):
            for keyset in {row[3] for row in batch.rows} - self.keysets.keys():
                self.keysets[keyset] = len(self.keysets) + 1
                self.db.execute("INSERT INTO keysets VALUES (?, ?)", (self.keysets[keyset], keyset))
            keysets = self.keysets
            self.db.executemany(
                "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (num, settled(mtime), size, keysets[keyset], n, offset)
                    for num, mtime, size, keyset, n, offset, *_ in batch.rows
                ],
            )
            self.db.executemany(
                "INSERT OR REPLACE INTO texts VALUES (?, ?, ?, ?)", [(row[0], *row[6:]) for row in batch.rows]
            )
            self.db.executemany(
                "INSERT OR REPLACE INTO bad VALUES (?, ?, ?, ?, ?, ?)",
                [(batch.folder, _printable(row[0]), settled(row[1]), *row[2:]) for row in batch.bad],
            )
            self.db.execute("INSERT OR REPLACE INTO folders VALUES (?, ?)", (batch.folder, settled(batch.mtime_ns)))
            self.fingerprint += batch.digest_sum
            num_files_read = len(batch.rows) + len(batch.bad)
            self.num_read += num_files_read
            on_batch(num_files_read)

    def forget(self, folder: str, names: Iterable[str]) -> None:
        """Remove files of a folder: they are gone, or are about to be read again."""
        for name in names:
            if re.fullmatch(r"A[0-9]+\.seq", name):
                num = int(name[1:-4])
                for (digest,) in self.db.execute("SELECT digest FROM texts WHERE num = ?", (num,)):
                    self.fingerprint -= int.from_bytes(digest, "big")
                self.db.execute("DELETE FROM entries WHERE num = ?", (num,))
                self.db.execute("DELETE FROM texts WHERE num = ?", (num,))
            self.db.execute("DELETE FROM bad WHERE folder = ? AND name = ?", (folder, name))

    def finish(self) -> None:
        """Store the fingerprint and the number of files, and so mark the index as whole."""
        self.fingerprint %= 2 ** (8 * DIGEST_BYTES)
        (num_files,) = self.db.execute("SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM bad)").fetchone()
        rows = [("fingerprint", f"{self.fingerprint:032x}"), ("num_files", str(num_files)), ("root", self.root)]
        self.db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows)


def _printable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _about(db: sqlite3.Connection, key: str) -> str | None:
    row = db.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def _known_files(db: sqlite3.Connection, folder: str) -> dict[str, tuple[int, int]]:
    """Give name -> (mtime_ns, size) of what the index holds of a folder."""
    first = int(folder[1:]) * 1000
    rows = db.execute("SELECT num, mtime_ns, size FROM entries WHERE num BETWEEN ? AND ?", (first, first + 999))
    known = {f"A{num:06d}.seq": (mtime_ns, size) for num, mtime_ns, size in rows}
    # A file that could not be opened is tried again at every load: a change of permissions does not change its time.
    rows = db.execute(
        "SELECT name, mtime_ns, size FROM bad WHERE folder = ? AND reason NOT LIKE 'unreadable%'", (folder,)
    )
    return known | {name: (mtime_ns, size) for name, mtime_ns, size in rows}


@contextlib.contextmanager
def _progress(title: str, num_folders: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """Give a function to call with the number of files of each finished folder."""
    if not shown or num_folders < 3:
        yield lambda num_files: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("folders, {task.fields[files]:,} files"),
    )
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=num_folders, files=0)
        num_seen = 0

        def advance(num_files: int) -> None:
            nonlocal num_seen
            num_seen += num_files
            progress.update(task, advance=1, files=num_seen)

        yield advance


def _build(file: Path | None, root: Path, progress: bool) -> tuple[sqlite3.Connection, Refresh]:
    """Make a whole index. It appears under its name only when complete: two builders cannot disturb each other."""
    started_s = time.perf_counter()
    folders = _list_folders(str(root))
    temporary = None
    if file is not None:
        descriptor, temporary = tempfile.mkstemp(prefix=f"{file.stem}.", suffix=".new", dir=file.parent)
        os.close(descriptor)
    db = _connect(temporary or ":memory:")
    try:
        # nothing of a half-made file is ever read, so there is nothing for a journal to protect
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;")
        db.execute("BEGIN")
        for statement in _SCHEMA.split(";\n"):
            db.execute(statement)
        writer = _Writer(db, str(root))
        with _progress("Indexing the corpus", len(folders), progress) as on_batch:
            writer.update([Job(name, None) for name in folders], None, on_batch)
        writer.finish()
        db.execute(_SELECTION_INDEX)
        db.execute(f"PRAGMA user_version = {INDEX_VERSION}")
        db.execute("COMMIT")
        if file is not None and temporary is not None:
            db.close()
            os.replace(temporary, file)
            db = _connect(str(file))
    except BaseException:
        db.close()
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise
    return db, Refresh(True, writer.num_read, 0, time.perf_counter() - started_s)


def _refresh(db: sqlite3.Connection, root: Path, is_full: bool, progress: bool) -> Refresh:
    """Bring a whole index up to date with the files."""
    started_s = time.perf_counter()
    folders = _list_folders(str(root))
    known_folders = dict(db.execute("SELECT name, mtime_ns FROM folders"))
    is_full = is_full or int(_about(db, "num_files") or "0") <= FULL_CHECK_FILES
    retried = {row[0] for row in db.execute("SELECT folder FROM bad WHERE reason LIKE 'unreadable%'")}
    suspects = [
        name for name, mtime_ns in folders.items() if is_full or known_folders.get(name) != mtime_ns or name in retried
    ]
    gone_folders = known_folders.keys() - folders.keys()
    changes = _find_changes(db, root, suspects)
    if not changes and not gone_folders:
        return Refresh(False, 0, 0, time.perf_counter() - started_s)
    db.execute("BEGIN IMMEDIATE")  # waits for another process that does the same; then there may be nothing left to do
    try:
        changes = _find_changes(db, root, suspects)
        writer = _Writer(db, str(root))
        jobs = []
        num_removed = 0
        for folder, (changed, gone) in changes.items():
            writer.forget(folder, changed + gone)
            num_removed += len(gone)
            jobs.append(Job(folder, changed))
        for folder in gone_folders:
            names = tuple(_known_files(db, folder))
            writer.forget(folder, names)
            num_removed += len(names)
            db.execute("DELETE FROM bad WHERE folder = ?", (folder,))
            db.execute("DELETE FROM folders WHERE name = ?", (folder,))
        with _progress("Reading what changed", len(jobs), progress) as on_batch:
            writer.update(jobs, sum(len(job.names or ()) for job in jobs), on_batch)
        writer.finish()
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    return Refresh(False, writer.num_read, num_removed, time.perf_counter() - started_s)


def _find_changes(
    db: sqlite3.Connection, root: Path, folders: list[str]
) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Give folder -> (names to read, names that are gone), for the folders in which something is to be done."""
    changes = {}
    stored = dict(db.execute("SELECT name, mtime_ns FROM folders"))
    for folder in folders:
        mtime_ns = os.stat(root / folder).st_mtime_ns
        known, present = _known_files(db, folder), list_folder(f"{root}/{folder}")
        changed = tuple(sorted(name for name, status in present.items() if known.get(_printable(name)) != status))
        gone = tuple(sorted(known.keys() - {_printable(name) for name in present}))
        # an empty job stores the folder's new time; one that is too fresh to be trusted stays so without a write
        settles = stored.get(folder) != mtime_ns and mtime_ns < time.time_ns() - _TICK_NS
        if changed or gone or settles:
            changes[folder] = (changed, gone)
    return changes


def _connect(file: str) -> sqlite3.Connection:
    db = sqlite3.connect(file, timeout=120, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA mmap_size = 1073741824")
    return db


def _open_index(root: Path, is_full: bool, progress: bool, notice: Callable[[str], None]) -> tuple[Any, Refresh]:
    """Open, refresh or build the index of a corpus; in memory when the cache folder cannot be written."""
    file = _index_file(root)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        notice(f"The index of the corpus cannot be kept in {file.parent} ({error.strerror}): building it in memory.")
        return _build(None, root, progress)
    if file.exists():
        db = None
        try:
            db = _connect(str(file))
            if db.execute("PRAGMA user_version").fetchone() == (INDEX_VERSION,) and _about(db, "fingerprint"):
                return db, _refresh(db, root, is_full, progress)
            db.close()
        except sqlite3.OperationalError as error:
            if db is not None:
                db.close()
            if "locked" in str(error):
                raise RlvrError(f"another process has held {file} for two minutes: wait for it, or end it") from None
        except sqlite3.DatabaseError:  # not a database, or a damaged one: it is only a copy
            if db is not None:
                db.close()
    return _build(file, root, progress)


# ---------------------------------------------------------------------------------------------------------------------
# The corpus


@dataclass(slots=True)
class Corpus:
    """An open corpus. `fingerprint` is a hash over all sequences; it does not change with the order of the files."""

    path: Path
    is_sample: bool
    fingerprint: str
    num_files: int
    bad: dict[str, list[str]]  # reason -> "A000/A000001.seq: line 3: what was found"
    refresh: Refresh
    _db: Any

    def select(
        self,
        *,
        require: Sequence[str] = DEFAULT_REQUIRED,
        exclude: Sequence[str] = DEFAULT_EXCLUDED,
        min_terms: int = 20,
        split: Split | None = None,
        limit: int | None = None,
        seed: int = 0,
        exclude_anums: Iterable[str] = (),
    ) -> Selection:
        """Choose the sequences that have all of `require`, none of `exclude`, an offset and `min_terms` terms.

        `split` None means both. Of more than `limit`, the first in an order that depends on `seed` and A-number only are
        taken, in that order: a corpus that grows by a tenth changes about a tenth of them. Raises RlvrError on a keyword
        that no sequence has.
        """
        keysets = {key: frozenset(words.split(",")) for key, words in self._db.execute("SELECT * FROM keysets")}
        self._check_keywords((*require, *exclude), keysets.values())
        counts = dict(self._db.execute("SELECT keyset, count(*) FROM entries GROUP BY keyset"))
        reasons = [f"keyword {word}" for word in exclude] + [f"no keyword {word}" for word in require]
        too_short, other_split = (
            f"fewer than {min_terms} terms",
            f"in the {'eval' if split == 'train' else 'train'} split",
        )
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
        for key in kept:
            rows = self._db.execute('SELECT num, n_terms, "offset" IS NULL FROM entries WHERE keyset = ?', (key,))
            for num, n_terms, has_no_offset in rows:
                if has_no_offset:
                    dropped["no offset"] += 1
                elif n_terms < min_terms:
                    dropped[too_short] += 1
                else:
                    anum = f"A{num:06d}"
                    is_eval, order_key = _hash_anum(anum)
                    if split is not None and is_eval != (split == "eval"):
                        dropped[other_split] += 1
                    elif anum in excluded:
                        dropped["excluded by number"] += 1
                    else:
                        ordered.append((_scramble(order_key ^ mix), num))
        num_fit = len(ordered)
        chosen = sorted(ordered) if limit is None else heapq.nsmallest(limit, ordered)
        if limit is not None and num_fit > limit:
            dropped[f"over the limit of {limit}"] = num_fit - limit
        entries = self._fetch([num for _, num in chosen], keysets)
        return Selection(entries, {reason: n for reason, n in dropped.items() if n}, sum(counts.values()))

    def get(self, anum: str) -> Entry:
        """Give one sequence by its A-number; RlvrError, with the reason, when it cannot be had."""
        anum = canonical_anum(anum)
        keysets = {key: frozenset(words.split(",")) for key, words in self._db.execute("SELECT * FROM keysets")}
        found = self._fetch([int(anum[1:])], keysets)
        if found:
            return found[0]
        row = self._db.execute("SELECT reason, detail FROM bad WHERE name = ?", (f"{anum}.seq",)).fetchone()
        if row:
            raise RlvrError(f"{self.path / anum[:-3] / anum}.seq cannot be used: {': '.join(filter(None, row))}")
        remedy = f"get the full corpus with `{HOW_TO_GET}`" if self.is_sample else "`git pull` in it may bring it"
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

    def _fetch(self, nums: list[int], keysets: dict[int, frozenset[str]]) -> list[Entry]:
        keywords = {key: tuple(sorted(words)) for key, words in keysets.items()}
        query = 'SELECT keyset, "offset", name, terms FROM entries JOIN texts USING (num) WHERE num = ?'
        entries = []
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
    stderr while many files are read. `refresh`: see the top of this file. RlvrError when there is no corpus.
    """
    root, is_sample = find_corpus(corpus_dir)
    db, done = _open_index(root, refresh == "full", progress, notice)
    fingerprint, num_files = _about(db, "fingerprint") or "", int(_about(db, "num_files") or "0")
    bad: dict[str, list[str]] = {}
    for folder, name, reason, detail in db.execute(
        "SELECT folder, name, reason, detail FROM bad ORDER BY folder, name"
    ):
        bad.setdefault(reason, []).append(f"{folder}/{name}" + (f": {detail}" if detail else ""))
    corpus = Corpus(root, is_sample, fingerprint, num_files, bad, done, db)
    if is_sample:
        notice(
            f"No OEIS files in {CORPUS_DIR}/: using the bundled sample of {num_files} sequences."
            f" For the full corpus, run `{HOW_TO_GET}`."
        )
    elif num_files == 0:
        raise RlvrError(f"no .seq files in {root}: name a clone made with `{HOW_TO_GET}`")
    if bad:
        num_bad = sum(map(len, bad.values()))
        counts = ", ".join(f"{len(files):,} {reason}" for reason, files in bad.items())
        notice(
            f"{num_bad:,} of {num_files:,} files in {root} are left out ({counts}); `python -m rlvr.corpus --bad` names them."
        )
    return corpus


def main(arguments: list[str] | None = None) -> int:
    """Print what is in a corpus and what the default filter leaves of it."""
    parser = argparse.ArgumentParser(prog="python -m rlvr.corpus", description="Index a corpus and say what is in it.")
    parser.add_argument(
        "corpus", nargs="?", type=Path, help="a clone of oeisdata (default: oeisdata, else the sample)"
    )
    parser.add_argument("--bad", action="store_true", help="name every file that could not be used, and why")
    parser.add_argument("--full", action="store_true", help="look at every file, not only at folders that changed")
    options = parser.parse_args(arguments)
    try:
        corpus = open_corpus(options.corpus, refresh="full" if options.full else "auto")
    except RlvrError as error:
        print(error, file=sys.stderr)
        return 2
    if options.bad:
        for reason, files in corpus.bad.items():
            print(*(f"{reason}: {file}" for file in files), sep="\n")
        return 0
    done = corpus.refresh
    print(f"{corpus.path}: {corpus.num_files:,} files, fingerprint {corpus.fingerprint}")
    print(
        f"{'built the index' if done.was_cold else 'index refreshed'}: {done.num_read:,} files read in {done.wall_s:.2f} s"
    )
    print(corpus.select().describe())
    return 0


if __name__ == "__main__":
    sys.exit(main())
