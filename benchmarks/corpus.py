"""Measure the corpus index: reading the files alone, building the index, opening it again, choosing 5,000 sequences.

    python benchmarks/make_corpus.py /tmp/bigcorpus --files 390000
    python benchmarks/corpus.py /tmp/bigcorpus             # or a clone of oeisdata
    python benchmarks/corpus.py /tmp/bigcorpus --uncached  # also with the files' contents dropped from memory

"Reading" is `open(path, "rb").read()` on every file in as many processes as the index uses. Each number is the median
of `--repeat` rounds; reading and indexing take turns, so that a busy machine is busy for both. The index goes to a
temporary folder, never to the user's cache. Computing time is what stays comparable on a busy machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rlvr.corpus import find_corpus, open_corpus

NUM_PROCESSES = len(os.sched_getaffinity(0))


def read_files(folder: str) -> int:
    """Read every file of a folder; give how many."""
    names = os.listdir(folder)
    for name in names:
        with open(f"{folder}/{name}", "rb") as file:
            file.read()
    return len(names)


def drop_files(folder: str) -> None:
    """Ask the kernel to forget the contents of every file of a folder (not its names and sizes)."""
    for name in os.listdir(folder):
        descriptor = os.open(f"{folder}/{name}", os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


class Cost(NamedTuple):
    """Seconds by the clock, and of computing time in this process and its children."""

    wall_s: float
    cpu_s: float


def time_it(action: Callable[[], object]) -> Cost:
    started_s, before = time.perf_counter(), os.times()
    action()
    return Cost(time.perf_counter() - started_s, sum(os.times()[:4]) - sum(before[:4]))


def in_processes(action: Callable[[str], object], folders: list[str]) -> None:
    pool = multiprocessing.Pool(NUM_PROCESSES)
    for _ in pool.imap_unordered(action, folders):
        pass
    pool.close()
    pool.join()  # only then do its processes count as children


def build_index(corpus_dir: Path) -> None:
    """Build the index into a fresh cache folder."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        open_corpus(corpus_dir, progress=False)


def compare(title: str, corpus_dir: Path, folders: list[str], repeat: int, uncached: bool) -> None:
    reading: list[Cost] = []
    indexing: list[Cost] = []
    for _ in range(repeat):
        if uncached:
            in_processes(drop_files, folders)
        reading.append(time_it(lambda: in_processes(read_files, folders)))
        if uncached:
            in_processes(drop_files, folders)
        indexing.append(time_it(lambda: build_index(corpus_dir)))
    num_files = sum(len(os.listdir(folder)) for folder in folders)
    print(f"{title}: {num_files:,} files, {NUM_PROCESSES} processes, median of {repeat}")
    medians = []
    for name, costs in (("reading the files", reading), ("building the index", indexing)):
        wall_s, cpu_s = (statistics.median(column) for column in zip(*costs, strict=True))
        medians.append((wall_s, cpu_s))
        rounds = ", ".join(f"{cost.wall_s:.2f}" for cost in costs)
        print(f"  {name:20} {wall_s:7.2f} s, computing {cpu_s:7.2f} s   (rounds: {rounds})", flush=True)
    (wall_reading, cpu_reading), (wall_index, cpu_index) = medians
    print(f"  {'ratio':20} {wall_index / wall_reading:7.2f}              {cpu_index / cpu_reading:7.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the corpus index.")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--limit", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--uncached", action="store_true", help="measure also with the files' contents not in memory")
    options = parser.parse_args()
    root, _ = find_corpus(options.corpus)
    folders = [str(path) for path in sorted(root.iterdir()) if path.is_dir()]
    compare("files in memory", root, folders, options.repeat, uncached=False)
    if options.uncached:
        os.sync()  # a page that is not written yet cannot be dropped
        compare("files not in memory", root, folders, options.repeat, uncached=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        open_corpus(root, progress=False)
        rows: dict[str, list[Cost]] = {"open, looking at every file": [], "open": [], f"select({options.limit})": []}
        full, warm, select = rows.values()
        for _ in range(options.repeat):
            full.append(time_it(lambda: open_corpus(root, refresh="full")))
            warm.append(time_it(lambda: open_corpus(root)))
            corpus = open_corpus(root)
            select.append(time_it(lambda: corpus.select(split="train", limit=options.limit, seed=0)))  # noqa: B023
        index_mb = sum(path.stat().st_size for path in Path(cache).rglob("*.sqlite")) / 1e6
        chosen = open_corpus(root).select(split="train", limit=options.limit, seed=0)
    print(f"with the index there ({index_mb:,.0f} MB), median of {options.repeat}")
    for name, costs in rows.items():
        wall_s, cpu_s = (statistics.median(column) for column in zip(*costs, strict=True))
        print(f"  {name:28} {wall_s:7.3f} s, computing {cpu_s:7.3f} s")
    print(chosen.describe())


if __name__ == "__main__":
    main()
