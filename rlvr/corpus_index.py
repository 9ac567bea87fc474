"""The cached index of a corpus: an SQLite file that says what the `.seq` files hold, built once, then kept up to date.

It lies in `$XDG_CACHE_HOME/oeis-rlvr/` (default `~/.cache/oeis-rlvr/`), one file per corpus folder, so that a clone
stays clean and a read-only one works. It is only a copy of what the files say: delete it at any time.

How a later load finds what changed: up to `FULL_CHECK_FILES` files, by the time and size of every file. Above that by
the time of every folder, which moves when a file in it is added, removed or replaced (git, rsync and most editors
replace), but not when a program writes into a file in place; `is_full` sees that as well.

Not here: which sequences are chosen from it; that is `rlvr/corpus.py`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from rlvr.corpus_reader import DIGEST_BYTES, FOLDER_NAME, Batch, Job, digest, list_folder, read_batches, settled
from rlvr.errors import RlvrError

FULL_CHECK_FILES = 50_000
INDEX_VERSION = 4  # raise it when the schema, or what the parser makes of a file, changes

# A file is unchanged when time and size are. A time so close to the moment of reading that the file could change again
# within the same tick of the file system's clock is stored as 0, so that the next load looks again.
_SCHEMA = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE folders (name TEXT PRIMARY KEY, mtime_ns INTEGER NOT NULL);
CREATE TABLE keysets (id INTEGER PRIMARY KEY, keywords TEXT NOT NULL UNIQUE);
CREATE TABLE entries (
    num INTEGER PRIMARY KEY, mtime_ns INTEGER, size INTEGER, keyset INTEGER, n_terms INTEGER, "offset" INTEGER,
    name TEXT, terms TEXT
);
CREATE TABLE bad (
    folder TEXT, name TEXT, mtime_ns INTEGER, size INTEGER, reason TEXT, detail TEXT, PRIMARY KEY (folder, name)
);
"""
_SELECTION_INDEX = 'CREATE INDEX selection ON entries (keyset, n_terms, "offset")'


class Refresh(NamedTuple):
    """What `open_corpus` had to do: `was_cold` when there was no index; files read and entries removed since."""

    was_cold: bool
    num_read: int
    num_removed: int
    wall_s: float


def delete_index(root: Path) -> None:
    """Remove the index of a corpus; the next load builds a new one."""
    _index_file(root).unlink(missing_ok=True)


def list_folders(root: str) -> dict[str, int]:
    """Give name -> mtime_ns of the `A???` folders."""
    with os.scandir(root) as items:
        folders = [item for item in items if FOLDER_NAME.fullmatch(item.name) and item.is_dir()]
    return {item.name: item.stat().st_mtime_ns for item in sorted(folders, key=lambda item: item.name)}


def _index_file(root: Path) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oeis-rlvr"
    return cache / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}.sqlite"


class _Writer:
    """Brings one open index up to date. All its writes belong to one transaction of the caller's."""

    def __init__(self, db: sqlite3.Connection, root: str):
        self.db, self.root = db, root
        self.fingerprint = int(read_about(db, "fingerprint") or "0", 16)
        self.num_read = 0
        self.started_ns = time.time_ns()  # before any folder is listed

    def update(self, jobs: list[Job], num_files: int | None, on_batch: Callable[[int], None]) -> None:
        """Read the jobs' files, `num_files` in all if that is known, and store what they hold."""
        with contextlib.closing(read_batches(self.root, self.started_ns, jobs, num_files)) as batches:
            self._store(batches, on_batch)

    def _store(self, batches: Iterable[Batch], on_batch: Callable[[int], None]) -> None:
        for batch in batches:
            self.db.executemany("INSERT OR IGNORE INTO keysets VALUES (?, ?)", batch.keysets.items())
            self.db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", batch.rows)
            self.db.execute(
                "DELETE FROM bad WHERE folder = ? AND name = ''", (batch.folder,)
            )  # it may be readable again
            bad = [(batch.folder, _printable(name), *row) for name, *row in batch.bad]
            self.db.executemany("INSERT INTO bad VALUES (?, ?, ?, ?, ?, ?)", bad)
            self.db.execute("INSERT OR REPLACE INTO folders VALUES (?, ?)", (batch.folder, batch.mtime_ns))
            self.fingerprint += batch.digest_sum
            num_files_read = len(batch.rows) + len(batch.bad)
            self.num_read += num_files_read
            on_batch(num_files_read)

    def forget(self, folder: str, names: Iterable[str]) -> None:
        """Remove files of a folder: they are gone, or are about to be read again."""
        for name in names:
            if re.fullmatch(r"A[0-9]{6,12}\.seq", name):
                num = int(name[1:-4])
                content = 'num, "offset", keywords, name, terms FROM entries JOIN keysets ON keyset = id'
                for row in self.db.execute(f"SELECT {content} WHERE num = ?", (num,)):
                    self.fingerprint -= digest(*row)
                self.db.execute("DELETE FROM entries WHERE num = ?", (num,))
            self.db.execute("DELETE FROM bad WHERE folder = ? AND name = ?", (folder, _printable(name)))

    def finish(self) -> None:
        """Store the fingerprint and the number of files, and so mark the index as whole."""
        self.fingerprint %= 2 ** (8 * DIGEST_BYTES)
        (num_files,) = self.db.execute("SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM bad)").fetchone()
        rows = [("fingerprint", f"{self.fingerprint:032x}"), ("num_files", str(num_files)), ("root", self.root)]
        self.db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows)


def _printable(name: str) -> str:
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


def read_about(db: sqlite3.Connection, key: str) -> str:
    """Give "fingerprint" (hex), "num_files" (the bad ones too) or "root"; "" when it is not there."""
    row = db.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
    return row[0] if row else ""


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


def _sweep(file: Path) -> None:
    """Remove what builders that were killed an hour ago or more have left."""
    for left_over in file.parent.glob(f"{file.stem}.*.new"):
        with contextlib.suppress(OSError):
            if left_over.stat().st_mtime < time.time() - 3600:
                left_over.unlink()


def _build(file: Path | None, root: Path, progress: bool) -> tuple[sqlite3.Connection, Refresh]:
    """Make a whole index. It appears under its name only when complete: two builders cannot disturb each other."""
    started_s = time.perf_counter()
    folders = list_folders(str(root))
    temporary = None if file is None else file.with_suffix(f".{os.getpid()}-{time.time_ns()}.new")
    db = None
    try:
        if file is not None:
            _sweep(file)
        db = _connect(str(temporary or ":memory:"))
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
        if db is not None:
            db.close()
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise
    return db, Refresh(True, writer.num_read, 0, time.perf_counter() - started_s)


def _refresh(db: sqlite3.Connection, root: Path, is_full: bool, progress: bool) -> Refresh:
    """Bring a whole index up to date with the files."""
    started_s = time.perf_counter()
    folders = list_folders(str(root))
    known_folders = dict(db.execute("SELECT name, mtime_ns FROM folders"))
    is_full = is_full or int(read_about(db, "num_files") or "0") <= FULL_CHECK_FILES
    retried = {row[0] for row in db.execute("SELECT folder FROM bad WHERE reason LIKE 'unreadable%'")}
    suspects = {
        name: mtime_ns
        for name, mtime_ns in folders.items()
        if is_full or known_folders.get(name) != mtime_ns or name in retried
    }
    gone_folders = known_folders.keys() - folders.keys()
    changes = _find_changes(db, root, suspects)
    if not changes and not gone_folders:
        return Refresh(False, 0, 0, time.perf_counter() - started_s)
    db.execute("BEGIN IMMEDIATE")  # waits for another process that does the same; then there may be nothing left to do
    try:
        writer = _Writer(db, str(root))
        changes = _find_changes(db, root, suspects)
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
    db: sqlite3.Connection, root: Path, folders: dict[str, int]
) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Give folder -> (names to read, names that are gone), for the folders in which something is to be done.

    `folders`: name -> mtime_ns of those to look into.
    """
    changes = {}
    stored = dict(db.execute("SELECT name, mtime_ns FROM folders"))
    for folder in folders:
        mtime_ns = folders[folder]
        known, present = _known_files(db, folder), list_folder(f"{root}/{folder}")
        changed = gone = ()
        if known != present:
            changed = tuple(sorted(name for name, status in present.items() if known.get(_printable(name)) != status))
            gone = tuple(sorted(known.keys() - {_printable(name) for name in present}))
        # an empty job stores the folder's new time; one that is too fresh to be trusted stays so without a write
        settles = stored.get(folder) != mtime_ns and settled(mtime_ns, time.time_ns()) == mtime_ns
        if changed or gone or settles:
            changes[folder] = (changed, gone)
    return changes


def _connect(file: str) -> sqlite3.Connection:
    db = sqlite3.connect(file, timeout=120, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA mmap_size = 1073741824")
    return db


def open_index(
    root: Path, is_full: bool, progress: bool, notice: Callable[[str], None]
) -> tuple[sqlite3.Connection, Refresh]:
    """Open and refresh, or build, the index of a corpus; in memory when the cache folder cannot be written."""
    file = _index_file(root)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        notice(f"The index of the corpus cannot be kept in {file.parent} ({error.strerror}): building it in memory.")
        return _build(None, root, progress)
    if file.exists():
        db = _connect(str(file))
        try:
            if db.execute("PRAGMA user_version").fetchone() == (INDEX_VERSION,) and read_about(db, "fingerprint"):
                return db, _refresh(db, root, is_full, progress)
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                db.close()
                raise RlvrError(f"another process has held {file} for two minutes: wait for it, or end it") from None
        except sqlite3.DatabaseError:
            pass  # not a database, or a damaged one: it is only a copy
        db.close()
    try:
        return _build(file, root, progress)
    except sqlite3.OperationalError as error:
        remedy = "make room there, or name another cache folder in XDG_CACHE_HOME"
        raise RlvrError(f"the index {file} cannot be written ({error}): {remedy}") from error
