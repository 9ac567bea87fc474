"""The bundled sample: files against the table, the table against itself, and every term against the real corpus."""

import os
import subprocess
import sys
import tarfile
import time
from collections import Counter
from pathlib import Path

import pytest

from rlvr.corpus import split_of
from rlvr.errors import RlvrError
from rlvr.sample import (
    LINE_CHARS,
    MIN_TERMS,
    SAMPLE_DIR,
    entry_path,
    entry_text,
    function_of,
    known_good,
    sample_terms,
    term_lines,
    write_sample,
)
from rlvr.sample_rules import RULES
from rlvr.sample_search import (
    find_rows,
    is_formula,
    passes_default_filter,
    plain,
    read_corpus,
    read_entry,
)
from rlvr.sandbox.grader import Sandbox
from rlvr.sandbox.verdicts import Job

ROOT = Path(__file__).parent.parent
BY_ANUM = {rule.anum: rule for rule in RULES}


@pytest.fixture(scope="module")
def real_entries():
    """Real entries of the sample's numbers, by A-number, from whichever copy of the OEIS is there."""
    named = Path(os.environ.get("OEIS_REAL_DIR", ROOT / "oeisdata"))
    for folder in (named, ROOT / "oeisdata"):
        if (folder / entry_path("A000045")).exists():
            paths = (folder / entry_path(anum) for anum in BY_ANUM)
            return {path.stem: read_entry(path.read_bytes()) for path in paths}
    archive = named / "core-seq.tar.gz"
    if not archive.exists():
        pytest.skip("no real OEIS corpus: put one into oeisdata/, or name its folder in OEIS_REAL_DIR")
    entries = {}
    with tarfile.open(archive) as members:
        for member in members:
            if Path(member.name).stem in BY_ANUM:
                entries[Path(member.name).stem] = read_entry(members.extractfile(member).read())
    return entries


def test_there_are_enough_and_the_families_are_spread():
    assert len(RULES) >= 400
    families = Counter(rule.family for rule in RULES)
    assert len(families) >= 10
    assert min(families.values()) >= 25, families
    assert max(families.values()) <= 0.2 * len(RULES), families
    assert set(Counter(rule.grade for rule in RULES)) == {1, 2, 3, 4, 5}


def test_every_family_has_members_on_both_sides_of_the_split():
    sides = Counter((rule.family, split_of(rule.anum)) for rule in RULES)
    for family in {rule.family for rule in RULES}:
        assert sides[family, "train"] > sides[family, "eval"] >= 3, family


def test_each_number_and_each_name_stands_once():
    assert [anum for anum, count in Counter(rule.anum for rule in RULES).items() if count > 1] == []
    # The same words over the same indices would be two names for one sequence.
    assert [
        key for key, count in Counter((plain(rule.name), rule.offset) for rule in RULES).items() if count > 1
    ] == []


def test_the_files_are_what_the_table_gives():
    on_disk = {path.relative_to(SAMPLE_DIR) for path in SAMPLE_DIR.rglob("*.seq")}
    assert on_disk == {entry_path(anum) for anum in BY_ANUM}
    stale = [
        rule.anum for rule in RULES if (SAMPLE_DIR / entry_path(rule.anum)).read_text("utf-8") != entry_text(rule)
    ]
    assert stale == [], "run python -m rlvr.sample write"


def test_the_parser_reads_every_file_back():
    from oeis_parser import parse_file

    for rule in RULES:
        entry = parse_file(SAMPLE_DIR / entry_path(rule.anum))
        assert (entry.anum, entry.name) == (rule.anum, rule.name)
        assert list(entry.terms) == sample_terms(rule.source, rule.offset)
        assert entry.offset.first == rule.offset
        assert ",".join(entry.keywords) == rule.keywords


def test_every_sequence_passes_the_default_filter():
    for entry in read_corpus(SAMPLE_DIR):
        assert passes_default_filter(entry), entry.anum
        assert len(entry.terms) >= MIN_TERMS
        assert min(entry.terms) >= 0, entry.anum


def test_lines_are_filled_as_in_the_oeis():
    terms = list(range(100))
    lines = term_lines(terms)
    assert "".join(lines) == ",".join(map(str, terms))
    assert lines[0] == "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,"
    assert lines[0].endswith(",") and lines[1].endswith(",")
    assert all(len(line) <= LINE_CHARS for line in lines[:2])
    assert len(lines[0]) + len("26,") > LINE_CHARS
    assert term_lines([1, 10**284, 2]) == ["1,", str(10**284) + ",", "2"]


def test_terms_of_known_sequences():
    """Values from outside the table."""
    assert sample_terms(BY_ANUM["A001158"].source, 1)[:5] == [1, 9, 28, 73, 126]
    assert sample_terms(BY_ANUM["A000035"].source, 0)[:5] == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("family", sorted({rule.family for rule in RULES}))
def test_answers_are_exact_repeatable_and_independent_of_order(family):
    for rule in RULES:
        if rule.family != family:
            continue
        terms = sample_terms(rule.source, rule.offset)
        a = function_of(rule.source)
        backwards = [a(n) for n in range(rule.offset + len(terms) - 1, rule.offset - 1, -1)][::-1]
        assert backwards == terms, rule.anum
        assert {type(term) for term in backwards} == {int}, rule.anum


def test_answers_run_alone_in_a_fresh_interpreter_and_read_no_file(tmp_path):
    """All answers, one after the other, in an interpreter without this package, with `open` taken away."""
    program = ["import builtins, functools, math", "builtins.open = None", "failed = []"]
    for rule in RULES:
        terms = sample_terms(rule.source, rule.offset)
        program.append(
            f"scope = {{}}\nexec({known_good(rule.anum)!r}, scope)\n"
            f"got = [scope['a'](n) for n in range({rule.offset}, {rule.offset + len(terms)})]\n"
            f"if got != {terms}: failed.append({rule.anum!r})"
        )
    program.append("print(failed)")
    script = tmp_path / "answers.py"
    script.write_text("\n".join(program), encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_answers_are_far_from_a_sandbox_limit():
    """Fifty terms in CPU time; generous here, since a machine may be slow: the search keeps them under 0.05 s."""
    for rule in RULES:
        a = function_of(rule.source)
        start = time.process_time()
        for n in range(rule.offset, rule.offset + 51):
            a(n)
        assert time.process_time() - start < 2.0, rule.anum


def test_imports_of_answers_are_allowed_ones():
    lines = {line for rule in RULES for line in known_good(rule.anum).split("\n") if "import" in line}
    assert {line.split()[1] for line in lines} <= {"math", "functools"}


@pytest.mark.slow
def test_answers_are_right_in_the_sandbox():
    """Three of each family, from both ends and the middle of the table, on as many terms as an evaluation uses."""
    chosen = []
    for family in dict.fromkeys(rule.family for rule in RULES):
        members = [rule for rule in RULES if rule.family == family]
        chosen += [members[0], members[len(members) // 2], members[-1]]
    jobs = []
    for rule in chosen:
        terms = tuple(sample_terms(rule.source, rule.offset)[:40])
        jobs.append(Job(known_good(rule.anum), tuple(range(rule.offset, rule.offset + len(terms))), terms))
    with Sandbox(workers=1) as sandbox:
        results = sandbox.run(jobs)
    wrong = [rule.anum for rule, result in zip(chosen, results, strict=True) if not all(result.matches)]
    assert wrong == []


def test_an_unknown_number_is_an_error():
    with pytest.raises(RlvrError, match="A999999 is not in the bundled sample"):
        known_good("A999999")


def test_writing_takes_files_of_other_numbers_away(tmp_path):
    stray = tmp_path / entry_path("A999999")
    stray.parent.mkdir(parents=True)
    stray.write_text("%I A999999\n")
    assert write_sample(tmp_path) == len(RULES)
    assert not stray.exists()
    assert len(list(tmp_path.rglob("*.seq"))) == len(RULES)


def test_every_real_term_is_what_the_rule_gives(real_entries):
    """All terms, offset and keywords of the real entry of every sequence of the sample."""
    assert real_entries.keys() == BY_ANUM.keys()
    for anum, entry in real_entries.items():
        rule = BY_ANUM[anum]
        a = function_of(rule.source)
        assert entry.offset == rule.offset, anum
        assert tuple(a(n) for n in range(rule.offset, rule.offset + len(entry.terms))) == entry.terms, anum
        assert entry.keywords == rule.keywords, anum
        assert passes_default_filter(entry), anum


def test_no_name_is_the_real_entrys_words(real_entries):
    """A formula is a fact and may be written the same way; words are ours."""
    same = [anum for anum, entry in real_entries.items() if plain(entry.name) == plain(BY_ANUM[anum].name)]
    assert [BY_ANUM[anum].name for anum in same if not is_formula(BY_ANUM[anum].name)] == []


def test_what_counts_as_a_formula():
    assert is_formula("a(n) = floor(n/3).")
    assert is_formula("a(n) = 3*a(n-1) - a(n-2), with a(0) = 1, a(1) = 2.")
    assert is_formula("Expansion of 1/((1-x)*(1-3*x)).")
    assert not is_formula("Number of divisors of n.")
    assert not is_formula("Multiples of 7.")


def test_the_search_finds_a_rule_by_its_terms_only_if_all_agree():
    entry = read_entry(entry_text(BY_ANUM["A001105"]).encode())._replace(name="some other words")
    broken = entry._replace(anum="A999999", terms=(*entry.terms[:-1], entry.terms[-1] + 1))
    assert [rule.anum for rule, _ in find_rows([broken, entry])] == ["A001105"]
