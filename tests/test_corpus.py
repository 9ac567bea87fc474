"""The corpus: finding it, its index through every kind of change and damage, the split, the selection."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from oeis_parser import parse_file, scan
from rlvr import corpus as corpus_module
from rlvr import corpus_index
from rlvr.config import EXCLUDED_KEYWORDS
from rlvr.corpus import Corpus, open_corpus, split_of
from rlvr.errors import RlvrError

REPO = Path(__file__).resolve().parent.parent
LONG_AGO_NS = 1_600_000_000 * 10**9


def entry_text(
    num: int, keywords: str = "nonn,easy", num_terms: int = 25, offset: str | None = "0,3", name: str = ""
) -> str:
    """Make an entry whose terms are num, num + 1, num + 2, ..."""
    anum = f"A{num:06d}"
    terms = ",".join(str(num + place) for place in range(num_terms))
    lines = [
        f"%I {anum}",
        f"%S {anum} {terms}",
        f"%N {anum} {name or f'Count up from {num}.'}",
        f"%K {anum} {keywords}",
    ]
    return "".join(f"{line}\n" for line in [*lines, *([f"%O {anum} {offset}"] if offset is not None else [])])


def put(root: Path, num: int, data: str | bytes | None = None, age_ns: int = LONG_AGO_NS) -> Path:
    """Write a file where it belongs, as something that was written long ago."""
    path = root / "seq" / f"A{num // 1000:03d}" / f"A{num:06d}.seq"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    text = entry_text(num) if data is None else data
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, ns=(age_ns, age_ns))
    return path


def settle(root: Path, age_ns: int = LONG_AGO_NS) -> None:
    """Give the folders an old time too, so that nothing in them counts as too fresh to be trusted."""
    for folder in (root / "seq").iterdir():
        os.utime(folder, ns=(age_ns, age_ns))


def quiet(root: Path | None, **options) -> Corpus:
    return open_corpus(root, notice=lambda text: None, progress=False, **options)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "oeis-rlvr"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Twelve sequences in four folders."""
    folder = tmp_path / "clone"
    for num in (1, 2, 3, 999, 1000, 1001, 2500, 2501, 3000, 3001, 3002, 3003):
        put(folder, num)
    settle(folder)
    return folder


@pytest.fixture
def only_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat the corpus as a large one: only folders whose time changed are looked into."""
    monkeypatch.setattr(corpus_index, "FULL_CHECK_FILES", 0)


def anums(entries: Sequence) -> list[str]:
    return [entry.anum for entry in entries]


# ---------------------------------------------------------------------------------------------------------------------
# Finding


@pytest.mark.parametrize("place", ["", "seq"])
def test_a_clone_and_its_seq_folder_are_the_same_corpus(root: Path, place: str):
    corpus = quiet(root / place)
    assert corpus.path == (root / "seq").resolve()
    assert (corpus.num_files, corpus.is_sample, corpus.bad) == (12, False, {})
    assert corpus.refresh.was_cold


def test_a_folder_without_entries_is_an_error(tmp_path: Path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(RlvrError, match=r"rlvrctl\.py corpus fetch"):
            quiet(folder)
    (tmp_path / "seq" / "A000").mkdir(parents=True)
    with pytest.raises(RlvrError, match=r"no \.seq files"):
        quiet(tmp_path)


def test_without_a_corpus_the_sample_is_used_and_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(corpus_module, "CORPUS_DIR", Path("no-such-folder"))
    notices: list[str] = []
    corpus = open_corpus(notice=notices.append, progress=False)
    assert corpus.is_sample
    assert len(notices) == 1
    assert "rlvrctl.py corpus fetch" in notices[0]
    chosen = corpus.select()
    assert len(chosen.entries) == corpus.num_files > 0
    assert chosen.dropped == {}
    assert quiet(corpus_module.SAMPLE_DIR).is_sample


def test_oeisdata_in_the_working_folder_is_found(root: Path, monkeypatch: pytest.MonkeyPatch):
    root.rename(root.parent / "oeisdata")
    monkeypatch.chdir(root.parent)
    assert quiet(None).path == (root.parent / "oeisdata" / "seq").resolve()


def test_the_corpus_folder_stays_untouched(root: Path):
    before = sorted(root.rglob("*"))
    quiet(root).select()
    assert sorted(root.rglob("*")) == before


# ---------------------------------------------------------------------------------------------------------------------
# Split and selection


def test_the_split_is_a_hash_of_the_number():
    for num in (1, 45, 108, 399_999, 1_234_567):
        anum = f"A{num:06d}"
        share = int.from_bytes(hashlib.sha256(anum.encode()).digest()[:8], "big") / 2**64
        assert split_of(anum) == ("eval" if share < 0.2 else "train")
    assert split_of("a45") == split_of("45") == split_of("A000045")
    # values of any machine, at any time; a change here would let trained sequences into the evaluation
    assert [num for num in range(1, 40) if split_of(f"A{num:06d}") == "eval"] == [4, 9, 18, 26, 28, 33, 34, 36]
    share = sum(split_of(f"A{num:06d}") == "eval" for num in range(1, 20_001)) / 20_000
    assert abs(share - 0.2) < 0.01
    with pytest.raises(RlvrError, match="A000045"):
        split_of("fibonacci")


def test_every_reason_is_counted_once_and_in_order(tmp_path: Path):
    made = {
        1: {},
        2: {"keywords": "nonn,easy,base,dead"},
        3: {"keywords": "sign,base"},
        4: {"keywords": "sign,easy"},
        5: {"keywords": "nonn"},
        6: {"keywords": "sign"},
        7: {"offset": None, "num_terms": 3},
        8: {"num_terms": 19},
        9: {"num_terms": 20},
        10: {"keywords": "nonn,easy,new,changed"},
        11: {"keywords": "easy,mult,nonn"},
        12: {"keywords": "recycled", "offset": None},
    }
    for num, parts in made.items():
        put(tmp_path, num, entry_text(num, **parts))
    corpus = quiet(tmp_path)
    chosen = corpus.select()
    assert sorted(anums(chosen.entries)) == ["A000001", "A000009", "A000010", "A000011"]
    assert chosen.dropped == {
        "keyword dead": 1,
        "keyword recycled": 1,
        "keyword base": 1,
        "no keyword easy": 2,
        "no keyword nonn": 1,
        "no offset": 1,
        "fewer than 20 terms": 1,
    }
    assert chosen.num_total == 12 == len(chosen.entries) + sum(chosen.dropped.values())
    assert chosen.describe().split("\n")[:3] == ["12 sequences", " 4 chosen", " 1 keyword dead"]
    # each can be let in again
    without_base = [word for word in EXCLUDED_KEYWORDS if word != "base"]
    assert "A000002" in anums(corpus.select(exclude=[word for word in without_base if word != "dead"]).entries)
    assert "A000003" in anums(corpus.select(exclude=without_base, require=()).entries)
    assert "A000004" in anums(corpus.select(require=["easy"]).entries)
    assert "A000008" in anums(corpus.select(min_terms=19).entries)
    assert anums(corpus.select(require=["mult"]).entries) == ["A000011"]
    assert corpus.select(min_terms=1, require=(), exclude=()).dropped == {"no offset": 2}


def test_entries_hold_what_the_file_says(tmp_path: Path):
    digits = "7" * 5000
    put(tmp_path, 1, entry_text(1, name="Café “x” % \\.", offset="-12,2", keywords="nonn,new,easy,core"))
    put(
        tmp_path,
        1_000_001,
        f"%I A1000001\n%S A1000001 -1,0,{digits}\n%N A1000001 Long.\n%K A1000001 sign\n%O A1000001 1\n",
    )
    corpus = quiet(tmp_path)
    first = corpus.get("1")
    assert (first.anum, first.offset, first.name) == ("A000001", -12, "Café “x” % \\.")
    assert first.keywords == ("core", "easy", "nonn")
    assert first.terms == tuple(range(1, 26))
    second = corpus.get("a1000001")
    assert second.terms[:2] == (-1, 0)
    assert second.terms[2] == 7 * (10**5000 - 1) // 9
    with pytest.raises(RlvrError, match="A000002"):
        corpus.get("A000002")


def test_misspelt_keywords_are_refused(root: Path):
    corpus = quiet(root)
    with pytest.raises(RlvrError, match=r"'eazy'.*'easy'"):
        corpus.select(require=["eazy"])
    with pytest.raises(RlvrError, match="'nonm'"):
        corpus.select(exclude=["nonm"])
    with pytest.raises(RlvrError, match="some weeks"):
        corpus.select(exclude=["new"])


def test_limit_and_seed(tmp_path: Path):
    for num in range(1, 401):
        put(tmp_path, num)
    corpus = quiet(tmp_path)
    everything = anums(corpus.select(seed=1).entries)
    assert len(everything) == 400
    chosen = corpus.select(seed=1, limit=100)
    assert anums(chosen.entries) == everything[:100]
    assert chosen.dropped == {"over the limit of 100": 300}
    assert anums(corpus.select(seed=1, limit=100).entries) == anums(chosen.entries)
    other = anums(corpus.select(seed=2, limit=100).entries)
    assert 5 < len(set(other) & set(anums(chosen.entries))) < 50  # 25 of 100 are expected in common
    numbers = [int(anum[1:]) for anum in anums(chosen.entries)]
    assert numbers != sorted(numbers)
    assert 100 < sum(numbers) / 100 < 300  # not the first hundred
    assert len(corpus.select(limit=0).entries) == 0


def test_splits_are_disjoint_and_numbers_can_be_left_out(tmp_path: Path):
    for num in range(1, 201):
        put(tmp_path, num)
    corpus = quiet(tmp_path)
    train, held_out = corpus.select(split="train"), corpus.select(split="eval")
    assert {split_of(anum) for anum in anums(train.entries)} == {"train"}
    assert {split_of(anum) for anum in anums(held_out.entries)} == {"eval"}
    assert len(train.entries) + len(held_out.entries) == 200
    assert train.dropped == {"in the eval split": len(held_out.entries)}
    gone = anums(train.entries)[:7]
    fewer = corpus.select(split="train", exclude_anums=[*gone, gone[0].lower(), "A099999"])
    assert anums(fewer.entries) == anums(train.entries)[7:]
    assert fewer.dropped["excluded by number"] == 7


def test_growth_moves_nothing_from_one_split_or_order_to_another(tmp_path: Path):
    for num in range(1, 301):
        put(tmp_path, num)
    before = anums(quiet(tmp_path).select(split="train", seed=5).entries)
    for num in range(301, 341):
        put(tmp_path, num)
    after = anums(quiet(tmp_path).select(split="train", seed=5).entries)
    assert len(after) > len(before)
    assert [anum for anum in after if anum in set(before)] == before


# ---------------------------------------------------------------------------------------------------------------------
# Bad files


def test_bad_files_are_named_and_stop_nothing(root: Path):
    folder = root / "seq" / "A000"
    put(root, 10, "<!DOCTYPE html>\n")
    put(root, 11, "")
    put(root, 12, entry_text(12)[:-40])
    put(root, 13, entry_text(14))
    put(root, 15, entry_text(15).replace("Count", "Caf\xe9").encode("latin-1"))
    put(root, 16, entry_text(16).replace("%K", "%T A000016 1,2\n%K"))
    put(root, 17, "%I A000017\n" + "x" * (17 << 20))
    (folder / "A000018.seq").mkdir()
    os.mkfifo(folder / "A000019.seq")
    (folder / "A000020.seq").symlink_to("nowhere")
    (folder / "A1.seq").write_text("")
    (folder / "notes é.seq").write_text("")
    (folder / os.fsdecode(b"\xff.seq")).write_text("")
    (folder / "A001500.seq").write_text(entry_text(1500))
    (folder / "README").write_text("not counted")
    (root / "seq" / "README").write_text("not counted")
    notices: list[str] = []
    corpus = open_corpus(root, notice=notices.append, progress=False)
    assert len(corpus.select().entries) == 12
    assert {reason: [file.partition(":")[0] for file in files] for reason, files in corpus.bad.items()} == {
        "HTML instead of an entry": ["A000/A000010.seq"],
        "empty file": ["A000/A000011.seq"],
        "last line has no end (truncated?)": ["A000/A000012.seq"],
        "file holds another A-number": ["A000/A000013.seq"],
        "not UTF-8": ["A000/A000015.seq"],
        "terms go on without a comma": ["A000/A000016.seq"],
        "file is too large for an entry": ["A000/A000017.seq"],
        "not a regular file": ["A000/A000018.seq", "A000/A000019.seq"],
        "unreadable: No such file or directory": ["A000/A000020.seq"],
        "file name or folder is not A???/A??????.seq": [
            *("A000/A001500.seq", "A000/A1.seq", "A000/\\xff.seq", "A000/notes é.seq"),
        ],
    }
    assert corpus.num_files == 12 + sum(map(len, corpus.bad.values()))
    assert len(notices) == 1
    assert f"{sum(map(len, corpus.bad.values()))} of {corpus.num_files} files" in notices[0]
    assert "1 HTML instead of an entry" in notices[0]
    assert "A000/A000015.seq: line 3: byte 0xe9" in corpus.bad_report()
    with pytest.raises(RlvrError, match="HTML instead of an entry"):
        corpus.get("A000010")
    os.utime(folder / "notes é.seq", ns=(LONG_AGO_NS, LONG_AGO_NS))
    os.utime(folder / os.fsdecode(b"\xff.seq"), ns=(LONG_AGO_NS, LONG_AGO_NS))
    again = quiet(root)
    assert (again.refresh.was_cold, again.bad) == (False, corpus.bad)


def test_numbers_that_no_index_can_hold_stop_nothing(root: Path):
    put(root, 7, entry_text(7, offset="9" * 20))
    put(root, 8, entry_text(8, offset="1," + "9" * 5000))
    odd = [put(root, 9, entry_text(9).replace("%I A000009", f"%I A000009 #{'9' * 5000}"))]
    put(root, 10, entry_text(10), age_ns=10**19)  # the year 2286
    put(root, 11, entry_text(11), age_ns=-9 * 10**18)
    odd += [put(root, 10**12 - 1, entry_text(10**12 - 1, offset="9" * 18))]
    put(root, 10**22)
    odd += [root / "seq" / "A000" / f"A{'9' * 30}.seq"]
    odd[-1].write_text("%I")
    first = quiet(root)
    assert first.bad["bad offset"] == [
        f"A000/A000007.seq: line 5: '{'9' * 20}'",
        f"A000/A000008.seq: line 5: '1,{'9' * 58}'",
    ]
    assert first.bad["file name or folder is not A???/A??????.seq"] == [f"A000/A{'9' * 30}.seq"]
    assert [first.get(anum).anum for anum in ("A000009", "A000010", "A000011")] == ["A000009", "A000010", "A000011"]
    assert first.get("A999999999999").offset == 10**18 - 1
    for path in odd:
        path.unlink()
    assert quiet(root).num_files == first.num_files - 3
    assert quiet(root, refresh="full").fingerprint == quiet(root).fingerprint


def test_a_repaired_file_comes_back(root: Path):
    put(root, 1, "<html>")
    assert quiet(root).bad == {"HTML instead of an entry": ["A000/A000001.seq: line 1"]}
    put(root, 1)
    corpus = quiet(root)
    assert (corpus.bad, corpus.num_files) == ({}, 12)
    assert corpus.get("A000001").terms[0] == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
def test_a_file_without_permission(root: Path, only_folders: None):
    path = root / "seq" / "A001" / "A001000.seq"
    path.chmod(0)
    assert quiet(root).bad == {"unreadable: Permission denied": ["A001/A001000.seq"]}
    path.chmod(0o644)  # changes no time, of file or folder
    assert quiet(root).bad == {}


def test_a_dangling_link_is_tried_again(root: Path, tmp_path: Path, only_folders: None):
    (root / "seq" / "A001" / "A001005.seq").symlink_to(tmp_path / "later.seq")
    settle(root)
    assert list(quiet(root).bad) == ["unreadable: No such file or directory"]
    (tmp_path / "later.seq").write_text(entry_text(1005))
    corpus = quiet(root)
    assert corpus.bad == {}
    assert corpus.get("A001005").terms[0] == 1005


# ---------------------------------------------------------------------------------------------------------------------
# Later loads


def test_nothing_changed_nothing_read(root: Path):
    first = quiet(root)
    assert (first.refresh.was_cold, first.refresh.num_read) == (True, 12)
    for options in ({}, {"refresh": "full"}):
        later = quiet(root, **options)
        assert (later.refresh.was_cold, later.refresh.num_read, later.refresh.num_removed) == (False, 0, 0)
        assert later.fingerprint == first.fingerprint


@pytest.mark.parametrize("large", [False, True])
def test_later_loads_read_only_what_changed(root: Path, large: bool, monkeypatch: pytest.MonkeyPatch, own_cache: Path):
    if large:
        monkeypatch.setattr(corpus_index, "FULL_CHECK_FILES", 0)
    quiet(root)
    put(root, 2, entry_text(2, keywords="nonn,easy,nice", name="Changed."))  # replaced, as git does
    put(root, 1002)  # added
    put(root, 4000)  # added in a new folder
    (root / "seq" / "A000" / "A000003.seq").unlink()
    shutil.rmtree(root / "seq" / "A003")
    settle(root, LONG_AGO_NS + 10**9)
    later = quiet(root)
    assert (later.refresh.num_read, later.refresh.num_removed, later.num_files) == (3, 5, 9)
    assert later.get("A000002").name == "Changed."
    assert sorted(anums(later.select().entries)) == [
        f"A{num:06d}" for num in (1, 2, 999, 1000, 1001, 1002, 2500, 2501, 4000)
    ]
    shutil.rmtree(own_cache)
    fresh = quiet(root)
    assert fresh.refresh.was_cold
    assert fresh.fingerprint == later.fingerprint
    assert anums(fresh.select().entries) == anums(later.select().entries)


def test_a_write_in_place_is_seen_by_size_or_time(root: Path):
    quiet(root)
    path = root / "seq" / "A000" / "A000001.seq"
    path.write_text(path.read_text().replace("Count", "Tally"))
    os.utime(path, ns=(LONG_AGO_NS + 10**9, LONG_AGO_NS + 10**9))
    corpus = quiet(root)
    assert corpus.refresh.num_read == 1
    assert corpus.get("A000001").name.startswith("Tally")


def test_in_a_large_corpus_a_write_in_place_is_seen_by_a_full_look(root: Path, only_folders: None):
    quiet(root)
    path = root / "seq" / "A000" / "A000001.seq"
    path.write_text(path.read_text().replace("Count", "Tally"))
    assert quiet(root).get("A000001").name.startswith("Count")  # the documented limit
    assert quiet(root, refresh="full").get("A000001").name.startswith("Tally")


def test_files_written_during_the_load_are_looked_at_again(root: Path):
    put(root, 5, age_ns=time.time_ns() + 600 * 10**9)  # as if it were written while the two loads go on
    assert quiet(root).refresh.num_read == 13
    assert quiet(root).refresh.num_read == 1  # too fresh to be trusted
    put(root, 5)
    settle(root)
    assert quiet(root).refresh.num_read == 1
    assert quiet(root).refresh.num_read == 0


def test_git_pull(tmp_path: Path, only_folders: None):
    def git(folder: Path, *arguments: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always")
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}  # nobody's own settings
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, env=env)

    upstream, clone = tmp_path / "upstream", tmp_path / "clone"
    for num in range(1, 6001, 20):
        put(upstream, num)
    git(upstream, "init", "-q")
    git(upstream, "add", ".")
    git(upstream, "commit", "-q", "-m", "first")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{upstream}", str(clone))
    for path in clone.rglob("*.seq"):
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    settle(clone)
    first = quiet(clone)
    assert first.num_files == 300
    # the same size, so that only time and place can tell
    later_ns = LONG_AGO_NS + 10**10  # or git itself may take the files for unchanged
    changed = put(upstream, 1, entry_text(1).replace("Count", "Tally"), later_ns)
    put(upstream, 3001, entry_text(3001).replace("Count", "Tally"), later_ns)
    put(upstream, 4002)
    put(upstream, 9000)
    (upstream / "seq" / "A002" / "A002001.seq").unlink()
    assert changed.stat().st_size == (clone / "seq" / "A000" / "A000001.seq").stat().st_size
    git(upstream, "add", "-A")
    git(upstream, "commit", "-q", "-m", "second")
    git(clone, "pull", "-q")
    later = quiet(clone)
    assert (later.refresh.num_read, later.refresh.num_removed, later.num_files) == (4, 1, 301)
    assert later.get("A000001").name.startswith("Tally")
    assert later.get("A003001").name.startswith("Tally")
    assert later.fingerprint != first.fingerprint


def test_what_the_fingerprint_depends_on(root: Path, tmp_path: Path):
    base = quiet(root).fingerprint
    assert len(base) == 32
    copy = tmp_path / "copy"
    numbers = [int(path.stem[1:]) for path in root.rglob("*.seq")]
    random.Random(0).shuffle(numbers)
    for num in numbers:
        put(copy, num)
    assert quiet(copy).fingerprint == base
    put(copy, 1, entry_text(1, keywords="easy,changed,nonn") + "%C A000001 A remark.\n")
    assert quiet(copy).fingerprint == base
    seen = {base}
    for parts in (
        {"keywords": "nonn,easy,nice"},
        {"num_terms": 26},
        {"offset": "1,3"},
        {"offset": None},
        {"name": "X."},
    ):
        put(copy, 1, entry_text(1, **parts))
        seen.add(quiet(copy).fingerprint)
    assert len(seen) == 6
    put(copy, 1)
    assert quiet(copy).fingerprint == base


# ---------------------------------------------------------------------------------------------------------------------
# The index file: damage, other processes, no place for it


def index_file(cache: Path) -> Path:
    (path,) = cache.glob("*.sqlite")
    return path


def test_a_damaged_index_is_built_anew(root: Path, own_cache: Path):
    fingerprint = quiet(root).fingerprint
    path = index_file(own_cache)
    whole = path.read_bytes()
    garbage = random.Random(0).randbytes(len(whole))
    for data in (b"", b"not a database", whole[: len(whole) // 2], whole[:4096], garbage, whole[:100] + garbage[100:]):
        path.write_bytes(data)
        corpus = quiet(root)
        assert corpus.refresh.was_cold
        assert (corpus.fingerprint, len(corpus.select().entries)) == (fingerprint, 12)
    assert not quiet(root).refresh.was_cold


def test_an_index_of_another_version_is_built_anew(root: Path, own_cache: Path):
    quiet(root)
    db = sqlite3.connect(index_file(own_cache))
    db.execute("PRAGMA user_version = 999")
    db.execute("DROP TABLE entries")
    db.commit()
    db.close()
    assert quiet(root).refresh.was_cold


def test_damage_found_while_reading_is_explained_and_healed(tmp_path: Path, own_cache: Path):
    for num in range(1, 2001):
        put(tmp_path, num)
    settle(tmp_path)
    corpus = quiet(tmp_path)
    path = index_file(own_cache)
    data = bytearray(path.read_bytes())
    for place in range(5 * 4096, len(data), 4096):
        data[place : place + 64] = b"\xff" * 64
    path.write_bytes(data)
    with pytest.raises(RlvrError, match="damaged"):
        corpus.select()
    corpus = quiet(tmp_path)
    assert corpus.refresh.was_cold
    assert len(corpus.select().entries) == 2000


def test_without_a_place_for_the_index_it_is_built_in_memory(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a-file"))
    notices: list[str] = []
    corpus = open_corpus(root, notice=notices.append, progress=False)
    assert len(corpus.select().entries) == 12
    assert len(notices) == 1
    assert "in memory" in notices[0]


def open_in_processes(root: Path, num: int) -> list[str]:
    """Open a corpus in some processes at once; give what each saw of it."""
    code = (
        "import sys; from rlvr.corpus import open_corpus; c = open_corpus(sys.argv[1], progress=False);"
        "print(c.fingerprint, c.num_files, len(c.select().entries))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(root)],
            cwd=REPO,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(num)
    ]
    answers = [process.communicate(timeout=300) for process in processes]
    assert [error for _, error in answers] == [""] * num
    return [output for output, _ in answers]


def test_many_processes_at_once(tmp_path: Path, own_cache: Path):
    for num in range(1, 5001):
        put(tmp_path, num)
    settle(tmp_path)
    answers = set(open_in_processes(tmp_path, 4))  # all build
    for num in range(1, 5001, 3):
        put(tmp_path, num, entry_text(num, num_terms=30))
    settle(tmp_path, LONG_AGO_NS + 10**9)
    answers |= set(open_in_processes(tmp_path, 4))  # all refresh
    shutil.rmtree(own_cache)
    fresh = quiet(tmp_path)
    assert len(answers) == 2
    assert f"{fresh.fingerprint} 5000 5000\n" in answers
    assert [path.suffix for path in own_cache.iterdir()] == [".sqlite"]


def process_group_ends(group: int) -> bool:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_ctrl_c_while_building_leaves_nothing_behind(tmp_path: Path, own_cache: Path):
    for num in range(1, 12_001):
        put(tmp_path, num)
    code = "import sys; from rlvr.corpus import open_corpus; open_corpus(sys.argv[1], progress=False); print('whole')"
    for delay_s in (0, 0.05, 0.2):  # at its start, while processes start, while they read
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=REPO,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        while process.poll() is None and not list(own_cache.glob("*.new")):
            time.sleep(0.002)
        time.sleep(delay_s)
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=300)
        assert process_group_ends(process.pid)
        if list(own_cache.glob("*.sqlite")):  # a fast machine, or a slow test: it was built before
            assert "whole" in output or errors.strip().endswith("KeyboardInterrupt")
            assert [path.suffix for path in own_cache.iterdir()] == [".sqlite"]
            assert not quiet(tmp_path).refresh.was_cold
            shutil.rmtree(own_cache)
            continue
        assert errors.strip().endswith("KeyboardInterrupt")
        assert list(own_cache.iterdir()) == []
    assert quiet(tmp_path).num_files == 12_000


def test_what_a_killed_builder_left_is_swept(root: Path, own_cache: Path):
    quiet(root)
    path = index_file(own_cache)
    old, young = path.with_suffix(".old.new"), path.with_suffix(".young.new")
    for left_over in (old, young):
        left_over.write_text("half")
    os.utime(old, (1, 1))
    path.unlink()
    quiet(root)
    assert not old.exists()
    assert young.exists()  # somebody may be at it


# ---------------------------------------------------------------------------------------------------------------------
# The command, and the real corpus


def test_the_command(root: Path):
    put(root, 7, "<html>")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "rlvr.corpus", *arguments]
        return subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=300, check=False)

    done = run(str(root))
    assert done.returncode == 0
    assert "13 files, fingerprint" in done.stdout
    assert "12 chosen" in done.stdout
    assert "1 HTML instead of an entry" in done.stderr
    assert run(str(root), "--bad").stdout == "HTML instead of an entry: A000/A000007.seq: line 1\n"
    missing = run(str(root / "nowhere"))
    assert missing.returncode == 2
    assert len(missing.stderr.strip().split("\n")) == 1


@pytest.mark.slow
def test_the_real_corpus_against_a_plain_reading_of_it():
    folder = REPO / "oeisdata" / "seq"
    if not folder.is_dir():
        pytest.skip("no real corpus in oeisdata/seq")
    chosen = quiet(folder).select()
    expected, reasons = set(), Counter()
    paths = sorted(folder.glob("A???/A??????.seq"))
    for path in paths:
        row = scan(path.read_bytes())
        words = set(row.keywords.split(","))
        unwanted = [word for word in EXCLUDED_KEYWORDS if word in words]
        missing = [word for word in ("easy", "nonn") if word not in words]
        if unwanted:
            reasons[f"keyword {unwanted[0]}"] += 1
        elif missing:
            reasons[f"no keyword {missing[0]}"] += 1
        elif len(row.terms.split(",")) < 20:
            reasons["fewer than 20 terms"] += 1
        else:
            expected.add(row.anum)
    assert set(anums(chosen.entries)) == expected
    assert chosen.dropped == dict(reasons)
    assert chosen.num_total == len(paths)
    for entry in random.Random(0).sample(chosen.entries, 200):
        whole = parse_file(folder / entry.anum[:-3] / f"{entry.anum}.seq")
        assert (entry.terms, entry.name, entry.offset) == (
            whole.terms,
            whole.name,
            whole.offset and whole.offset.first,
        )


def test_a_folder_that_cannot_be_listed_stops_nothing(root: Path, only_folders: None):
    real, hidden = root / "seq" / "A002", root / "A002"
    real.rename(hidden)
    real.symlink_to(hidden)
    assert quiet(root).num_files == 12
    hidden.rename(root / "elsewhere")  # the link leads nowhere now: as good as a folder without permission
    corpus = quiet(root)
    assert (corpus.num_files, corpus.refresh.num_removed) == (10, 2)
    (root / "elsewhere").rename(hidden)
    assert quiet(root).num_files == 12


@pytest.mark.skipif(os.geteuid() == 0, reason="root can list every folder")
def test_a_folder_without_permission(root: Path):
    folder = root / "seq" / "A002"
    quiet(root)
    for options in ({}, {"refresh": "full"}):
        folder.chmod(0)
        corpus = quiet(root, **options)
        assert corpus.bad == {"unreadable: Permission denied": ["A002/"]}
        assert corpus.num_files == 11
        folder.chmod(0o755)
        assert (quiet(root).bad, quiet(root).num_files) == ({}, 12)
