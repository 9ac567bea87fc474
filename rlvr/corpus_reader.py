"""Read folders of `.seq` files into rows for the corpus index, in this process or in as many as there are cores.

Started by `rlvr/corpus_index.py`, as `python -c` processes that take jobs on stdin and answer on stdout. They are not
`multiprocessing` children on purpose: a fork of a process with torch's threads can hang, and a spawn imports the
program's main script, torch and all, once more in each.

Not here: SQLite, or which files are worth reading; that is `rlvr/corpus_index.py`.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import marshal
import os
import queue
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

from oeis_parser import ParseError, scan
from rlvr.errors import RlvrError

FOLDER_NAME = re.compile(r"A(?:[0-9]{3}|[1-9][0-9]{3,8})")  # with the three digits of a file's name, at most 12
MAX_FILE_BYTES = 16 << 20  # the largest entry has 0.13 MB
FLEETING_KEYWORDS = frozenset({"new", "changed"})  # set by the server for some weeks: never part of anything here
DIGEST_BYTES = 16
_TICK_NS = 2_000_000_000  # of the coarsest clock of a file system
_FEW_FILES = 3000  # below this, starting processes takes longer than reading


class Job(NamedTuple):
    """Read `names` in `root/folder`; None means whatever `.seq` files are there."""

    folder: str
    names: tuple[str, ...] | None


class Batch(NamedTuple):
    """What a job found.

    `rows`: (num, mtime_ns, size, keyset, n_terms, offset or None, name, terms), where num is the A-number as int,
    mtime_ns is 0 when it is too fresh (see `settled`), and `keysets[keyset]` are the sorted keywords, comma-joined,
    without new and changed.
    `bad`: (file name, mtime_ns, size, reason, detail). `digest_sum`: the sum of `digest` over the rows.
    """

    folder: str
    mtime_ns: int
    rows: list[tuple]
    keysets: dict[int, str]
    bad: list[tuple[str, int, int, str, str]]
    digest_sum: int


def list_folder(path: str) -> dict[str, tuple[int, int]]:
    """Give name -> (mtime_ns, size) of what is called `*.seq` in a folder; (0, 0) when it cannot be asked.

    A folder that cannot be listed has one file, "", which cannot be read.
    """
    found = {}
    try:
        items = os.scandir(path)
    except OSError:
        return {"": (0, 0)}
    with items:
        for item in items:
            if item.name.endswith(".seq"):
                try:
                    status = item.stat()
                    found[item.name] = (status.st_mtime_ns, status.st_size)
                except OSError:
                    found[item.name] = (0, 0)
    return found


def settled(mtime_ns: int, started_ns: int) -> int:
    """Give a time as it may be stored: 0 when so fresh that the file could change again without changing its time."""
    return mtime_ns if mtime_ns < started_ns - _TICK_NS else 0


def digest(num: int, offset: int | None, keyset: str, name: str, terms: str) -> int:
    """Hash what makes a sequence what it is, to 16 bytes, as an int."""
    content = f"{num}\n{offset}\n{keyset}\n{name}\n{terms}".encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest(), "big")


def read_folder(root: str, started_ns: int, job: Job) -> Batch:
    """Read and check the files of one job. Whatever is wrong with a file ends up in `bad`, never in an exception."""
    fresh_ns = started_ns - _TICK_NS
    folder = f"{root}/{job.folder}"
    names = job.names
    try:
        folder_mtime_ns = os.stat(folder).st_mtime_ns  # before the listing: what comes later must show
        if names is None:
            names = sorted(name for name in os.listdir(folder) if name.endswith(".seq"))
    except OSError:
        folder_mtime_ns, names = 0, ("",)
    keysets: dict[int, str] = {}
    keyset_of: dict[str, int] = {}
    rows: list[tuple] = []
    bad: list[tuple[str, int, int, str, str]] = []
    digest_sum = 0
    is_name = re.compile(rf"{job.folder}[0-9]{{3}}\.seq").fullmatch
    for name in names:
        path = f"{folder}/{name}"
        try:
            if not name:
                os.listdir(folder)  # to have the reason
            if is_name(name) is None:
                raise ParseError("file name or folder is not A???/A??????.seq", path)
            data, mtime_ns, size = _read_file(path)
            anum, offset, title, keywords, terms = scan(data, path)
            if anum != name[:-4]:
                raise ParseError("file holds another A-number", path, 1, anum)
        except ParseError as error:
            detail = error.detail if error.line is None else f"line {error.line}: {error.detail}".rstrip(": ")
            with contextlib.suppress(OSError):
                status = os.stat(path)
                bad.append((name, settled(status.st_mtime_ns, started_ns), status.st_size, error.reason, detail))
            continue
        except OSError as error:
            bad.append((name, 0, 0, f"unreadable: {error.strerror}", ""))
            continue
        keyset = keyset_of.get(keywords)
        if keyset is None:
            words = ",".join(sorted(set(keywords.split(",")) - FLEETING_KEYWORDS))
            keyset = keyset_of[keywords] = _keyset_id(words)
            keysets[keyset] = words
        num = int(anum[1:])
        digest_sum += digest(num, offset, keysets[keyset], title, terms)
        n_terms = terms.count(",") + 1 if terms else 0
        rows.append((num, mtime_ns if mtime_ns < fresh_ns else 0, size, keyset, n_terms, offset, title, terms))
    return Batch(job.folder, settled(folder_mtime_ns, started_ns), rows, keysets, bad, digest_sum)


def _keyset_id(words: str) -> int:
    """Number a set of keywords, the same in every process."""
    return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=6).digest(), "big") >> 1


def _read_file(path: str) -> tuple[bytes, int, int]:
    """Give (bytes, mtime_ns, size) of a regular file. Not `open`: that costs as much again as the reading."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # O_NONBLOCK: a named pipe must not stop a load
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ParseError("not a regular file", path)
        if status.st_size > MAX_FILE_BYTES:
            raise ParseError("file is too large for an entry", path, detail=f"{status.st_size} bytes")
        data = os.read(descriptor, status.st_size + 1)
        return data, status.st_mtime_ns, status.st_size
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------------------------------------------------------------
# Many processes. Each gets a job ahead of the one it is at, so that none waits for this process to write its rows.


def read_batches(root: str, started_ns: int, jobs: Sequence[Job], num_files: int | None = None) -> Generator[Batch]:
    """Read all jobs, in any order.

    `started_ns`: when the caller began to look for what to read; nothing later than that can be trusted to be settled.
    `num_files` (None: unknown, many) decides whether other processes are worth their start.
    """
    if len(jobs) <= 2 or (num_files is not None and num_files < _FEW_FILES):
        for job in jobs:
            yield read_folder(root, started_ns, job)
        return
    results: queue.Queue[Batch | Exception] = queue.Queue(maxsize=8)
    todo = iter(jobs)
    processes: list[subprocess.Popen[bytes]] = []
    threads: list[threading.Thread] = []
    try:
        for _ in range(min(len(os.sched_getaffinity(0)), len(jobs))):
            processes.append(_start_process(root, started_ns))
            threads.append(threading.Thread(target=_feed, args=(root, processes[-1], todo, results), daemon=True))
            threads[-1].start()
        for _ in jobs:
            result = results.get()
            if isinstance(result, Exception):
                raise result
            yield result
    finally:
        for process in processes:
            process.kill()
            process.wait()
        while any(thread.is_alive() for thread in threads):  # one may be waiting for room in the queue
            with contextlib.suppress(queue.Empty):
                results.get(timeout=0.02)
        for process in processes:
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()


def _start_process(root: str, started_ns: int) -> subprocess.Popen[bytes]:
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; from rlvr.corpus_reader import serve; serve({root!r}, {started_ns})"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _feed(
    root: str, process: subprocess.Popen[bytes], todo: Iterator[Job], results: queue.Queue[Batch | Exception]
) -> None:
    """Hand jobs to one process and its answers to `results`, until there are no more jobs."""
    assert process.stdin is not None and process.stdout is not None
    try:
        num_waiting = 0
        while True:
            while num_waiting < 2 and (job := next(todo, None)) is not None:
                marshal.dump(tuple(job), process.stdin)
                process.stdin.flush()
                num_waiting += 1
            if not num_waiting:
                process.stdin.close()
                return
            num_bytes = int.from_bytes(process.stdout.read(8), "big")
            results.put(Batch(*marshal.loads(process.stdout.read(num_bytes))))  # load() would read a value at a time
            num_waiting -= 1
    except (OSError, EOFError, ValueError) as error:
        results.put(RlvrError(f"a process that reads {root} ended early ({error!r}): run it again"))


def serve(root: str, started_ns: int) -> None:
    """Answer jobs from stdin on stdout until stdin ends. Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # only rows pile up here, and they go with each batch
    while True:
        try:
            job = Job(*marshal.load(sys.stdin.buffer))
        except EOFError:
            return
        answer = marshal.dumps(tuple(read_folder(root, started_ns, job)))
        sys.stdout.buffer.write(len(answer).to_bytes(8, "big") + answer)
        sys.stdout.buffer.flush()
