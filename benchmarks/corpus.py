"""Measure the corpus index: reading the files alone, building the index, opening it again, choosing 5,000 sequences.

    python benchmarks/make_corpus.py /tmp/bigcorpus --files 390000
    python benchmarks/corpus.py /tmp/bigcorpus             # or a clone of oeisdata
    python benchmarks/corpus.py /tmp/bigcorpus --uncached  # also with the files' contents dropped from memory

"Reading" is `open(path, "rb").read()` on every file in as many processes as the index uses. Each number is the median
of `--repeat` rounds; reading and indexing take turns, so that a busy machine is busy for both. The index goes to a
temporary folder, never to the user's cache.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

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


def time_reading(folders: list[str]) -> tuple[float, int]:
    started_s = time.perf_counter()
    with multiprocessing.Pool(NUM_PROCESSES) as pool:
        num_files = sum(pool.imap_unordered(read_files, folders))
    return time.perf_counter() - started_s, num_files


def time_cold_index(corpus_dir: Path) -> float:
    """Build the index into a fresh cache folder."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        started_s = time.perf_counter()
        open_corpus(corpus_dir, progress=False)
        return time.perf_counter() - started_s


def compare(title: str, corpus_dir: Path, folders: list[str], repeat: int, uncached: bool) -> None:
    reading_s, index_s, num_files = [], [], 0
    for _ in range(repeat):
        for measured in (reading_s, index_s):
            if uncached:
                with multiprocessing.Pool(NUM_PROCESSES) as pool:
                    pool.map(drop_files, folders)
            if measured is reading_s:
                wall_s, num_files = time_reading(folders)
            else:
                wall_s = time_cold_index(corpus_dir)
            measured.append(wall_s)
    reading, index = statistics.median(reading_s), statistics.median(index_s)
    print(f"{title}: {num_files:,} files, {NUM_PROCESSES} processes, median of {repeat}")
    print(f"  reading the files   {reading:7.2f} s   ({', '.join(f'{x:.2f}' for x in reading_s)})")
    print(
        f"  building the index  {index:7.2f} s   ({', '.join(f'{x:.2f}' for x in index_s)})   {index / reading:.2f} x"
    )


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
        open_s, full_s, select_s = [], [], []
        for _ in range(options.repeat):
            marks = [time.perf_counter()]
            open_corpus(root, refresh="full")
            marks.append(time.perf_counter())
            corpus = open_corpus(root)
            marks.append(time.perf_counter())
            chosen = corpus.select(split="train", limit=options.limit, seed=0)
            marks.append(time.perf_counter())
            for measured, start_s, end_s in zip((full_s, open_s, select_s), marks, marks[1:], strict=False):
                measured.append(end_s - start_s)
        index_mb = sum(path.stat().st_size for path in Path(cache).rglob("*.sqlite")) / 1e6
    print(f"with the index there ({index_mb:,.0f} MB), median of {options.repeat}")
    print(f"  open, looking at every file      {statistics.median(full_s):7.3f} s")
    print(f"  open                             {statistics.median(open_s):7.3f} s")
    print(f"  select(split=train, limit={options.limit:<5})  {statistics.median(select_s):7.3f} s")
    print(chosen.describe())


if __name__ == "__main__":
    main()
