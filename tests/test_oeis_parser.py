"""The parser: every field, every malformed input by name, and all real files that are there."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import time
from datetime import datetime
from pathlib import Path

import pytest

import oeis_parser
from oeis_parser import Credit, Link, Note, Offset, ParseError, Program, parse_file, parse_text, scan

REPO = Path(__file__).resolve().parent.parent

# an entry with made-up texts; the terms, offset and keywords are those of the Fibonacci numbers
FULL = """\
%I A000045 M0692 N0256 #2514 Apr 08 2026 10:58:11
%S A000045 0,1,1,2,3,5,8,13,21,34,55,89,144,233,377,610,987,1597,2584,4181,6765,
%T A000045 10946,17711,28657,46368,75025,121393,196418,317811,514229,832040,
%U A000045 1346269,2178309
%N A000045 Each term is the sum of the two before it; 100% made-up "name" {\\}.
%C A000045 A first remark. - _Ada Writer_, Oct 25 2006
%C A000045 From _Ben Author_ and _Cy Other_, Nov 01 2020: (Start)
%C A000045 Line one.
%C A000045   indented line two. (End)
%C A000045 A remark by two. - _Ada Writer_ and Dan Plain, Jul 11 2011
%C A000045 An old remark. - Dan Plain (dan(AT)example.org), Aug 15 2001
%C A000045 No credit - but a dash.
%D A000045 A. Writer, A Book, 1964, p. 3.
%H A000045 Ada Writer, <a href="/A000045/b000045.txt">Table of n, a(n) for n = 0..100</a>
%H A000045 Eve, Jr. and F. Two, <a href="https://example.org/?a=1&amp;b=2">A title</a>, J. Ex. 3 (2001), 4-5.
%H A000045 A line without a link
%F A000045 a(n) = a(n-1) + a(n-2). [From _Ada Writer_, Mar 12 2009]
%e A000045   1
%e A000045  1 1
%p A000045 f := n -> 1: # _Ada Writer_, Sep 18 2023
%p A000045 g := proc(n)
%p A000045   2 end; # keep this, _Ben Author_, Sep 19 2023
%t A000045 F[n_] := 1 (* _Ada Writer_, Nov 21 2021 *)
%o A000045 (PARI) a(n) = 1; \\\\ _Ada Writer_, Feb 05 2011
%o A000045 (Python) # see below
%o A000045 def a(n):
%o A000045     return 1 # _Ben Author_, Mar 17 2017
%o A000045 (MIT/GNU Scheme, two ways)
%o A000045 (define (a n) 1)
%o A000045 (definec (b n) 2)
%o A000045 ;; _Cy Other_, Apr 16 2014
%o A000045 (Scala) val s = 1
%o A000045 (0 to 49).map(f)
%Y A000045 Cf. A000032.
%K A000045 nonn,core,easy,nice,changed
%O A000045 0,4
%A A000045 _Ada Writer_, E. M. Other, 1964
%E A000045 More terms from _Ben Author_, May 15 2008
%E A000045 Edited by Dan Plain (dan(AT)example.org), Dec 16 2004
%E A000045 Updated to the newest values _Cy Other_, Dec 15 2012
"""
SHORT = "%I A000045\n%S A000045 0,1,1,2,3\n%N A000045 A name.\n%K A000045 nonn,easy\n%O A000045 0,4\n"


def test_every_field():
    entry = parse_text(FULL)
    assert (entry.anum, entry.m_number, entry.n_number) == ("A000045", "M0692", "N0256")
    assert (entry.revision, entry.timestamp) == (2514, datetime(2026, 4, 8, 10, 58, 11))
    assert len(entry.terms) == 33
    assert entry.terms[:6] == (0, 1, 1, 2, 3, 5)
    assert entry.terms[20:22] == (6765, 10946)
    assert entry.terms[-1] == 2178309
    assert entry.name == 'Each term is the sum of the two before it; 100% made-up "name" {\\}.'
    assert entry.keywords == ("nonn", "core", "easy", "nice", "changed")
    assert entry.offset == Offset(0, 4)
    assert entry.author == Credit(("Ada Writer", "E. M. Other"), "", "_Ada Writer_, E. M. Other, 1964")
    assert entry.references == (Note("A. Writer, A Book, 1964, p. 3.", None),)
    assert entry.cross_references == (Note("Cf. A000032.", None),)
    assert [note.text for note in entry.examples] == ["  1", " 1 1"]


def test_credits_and_blocks():
    entry = parse_text(FULL)
    assert entry.comments == (
        Note("A first remark.", Credit(("Ada Writer",), "Oct 25 2006", "_Ada Writer_, Oct 25 2006")),
        Note(
            "Line one.\n  indented line two.",
            Credit(("Ben Author", "Cy Other"), "Nov 01 2020", "_Ben Author_ and _Cy Other_, Nov 01 2020"),
        ),
        Note(
            "A remark by two.",
            Credit(("Ada Writer", "Dan Plain"), "Jul 11 2011", "_Ada Writer_ and Dan Plain, Jul 11 2011"),
        ),
        Note("An old remark.", Credit(("Dan Plain",), "Aug 15 2001", "Dan Plain (dan(AT)example.org), Aug 15 2001")),
        Note("No credit - but a dash.", None),
    )
    assert entry.formulas == (
        Note("a(n) = a(n-1) + a(n-2).", Credit(("Ada Writer",), "Mar 12 2009", "_Ada Writer_, Mar 12 2009")),
    )
    assert [(note.text, note.credit and note.credit.names) for note in entry.extensions] == [
        ("More terms", ("Ben Author",)),
        ("Edited", ("Dan Plain",)),
        ("Updated to the newest values", ("Cy Other",)),
    ]


@pytest.mark.parametrize(
    ("line", "text", "names", "date"),
    [
        ("X. - Omar Plain, Feb 22 2011.", "X.", ("Omar Plain",), "Feb 22 2011"),
        ("X. - _A Bc_, Mar 09 2010, corrected Apr 16 2011", "X.", ("A Bc",), "Mar 09 2010"),
        ("X. - _A Bc_ Jan 11 2011", "X.", ("A Bc",), "Jan 11 2011"),
        ("X. - _A Bc_, circa 2004 & Mar 06 2017", "X.", ("A Bc",), "Mar 06 2017"),
        ("X. - _A Bc_, _D Ef_ & _G Hi_, Feb 21 2009", "X.", ("A Bc", "D Ef", "G Hi"), "Feb 21 2009"),
        ("X. - _A Bc_", "X.", ("A Bc",), ""),
        ("From _A Bc_, Oct 17 2020: X.", "X.", ("A Bc",), "Oct 17 2020"),
        ('X".- _A Bc_, Nov 24 2025', 'X"', ("A Bc",), "Nov 24 2025"),
        ("n > 0. _A Bc_, Mar 25 2014", "n > 0.", ("A Bc",), "Mar 25 2014"),
    ],
)
def test_shapes_of_credits(line: str, text: str, names: tuple[str, ...], date: str):
    note = parse_text(SHORT.replace("%K", f"%C A000045 {line}\n%K")).comments[0]
    assert note.credit is not None
    assert (note.text.rstrip("."), note.credit.names, note.credit.date) == (text.rstrip("."), names, date)


@pytest.mark.parametrize(
    "line", ["See p - q, Jan 01 2001.", "a(n) = b(n) - c(n)", "(see _A Bc_ - _D Ef_, May 05 2015)"]
)
def test_what_is_no_credit(line: str):
    assert parse_text(SHORT.replace("%K", f"%C A000045 {line}\n%K")).comments == (Note(line, None),)


def test_blocks_without_an_end():
    lines = ["From _A Bc_, May 01 2001: (Start)", "one", "From _D Ef_, May 02 2001: (Start)", "two (End) [and more]"]
    block = "".join(f"%C A000045 {line}\n" for line in lines)
    comments = parse_text(SHORT.replace("%K", f"{block}%K")).comments
    assert [(note.text, note.credit and note.credit.names) for note in comments] == [
        ("one", ("A Bc",)),
        ("two [and more]", ("D Ef",)),
    ]


def test_links():
    assert parse_text(FULL).links == (
        Link("Ada Writer", "https://oeis.org/A000045/b000045.txt", "Table of n, a(n) for n = 0..100", ""),
        Link("Eve, Jr. and F. Two", "https://example.org/?a=1&b=2", "A title", "J. Ex. 3 (2001), 4-5."),
        Link("", "", "A line without a link", ""),
    )


def test_programs_by_language():
    entry = parse_text(FULL)
    assert [(program.code, program.credit and program.credit.names) for program in entry.maple] == [
        ("f := n -> 1:", ("Ada Writer",)),
        ("g := proc(n)\n  2 end; # keep this, _Ben Author_, Sep 19 2023", ("Ben Author",)),
    ]
    assert entry.mathematica[0].code == "F[n_] := 1"
    assert [(program.language, program.tag, program.code) for program in entry.programs] == [
        ("PARI", "PARI", "a(n) = 1;"),
        ("Python", "Python", "# see below\ndef a(n):\n    return 1"),
        ("MIT/GNU Scheme", "MIT/GNU Scheme, two ways", "(define (a n) 1)\n(definec (b n) 2)"),
        ("Scala", "Scala", "val s = 1\n(0 to 49).map(f)"),
    ]
    assert [program.credit and program.credit.names[0] for program in entry.programs] == [
        *("Ada Writer", "Ben Author", "Cy Other"),
        None,
    ]
    untagged = parse_text(SHORT.replace("%K", "%o A000045 x = 1\n%K"))
    assert untagged.programs == (Program("", "", "x = 1", None),)


# ---------------------------------------------------------------------------------------------------------------------
# Made-up inputs: the right value, or a named error; `scan` and `parse_text` must agree on all of them


def check_both(text: str) -> tuple[int, ...]:
    """Give the terms, after checking that scan reads the same; both must raise the same ParseError otherwise."""
    try:
        entry = parse_text(text)
    except ParseError as error:
        with pytest.raises(ParseError) as caught:
            scan(text.encode())
        assert str(caught.value) == str(error)
        raise
    row = scan(text.encode())
    assert (row.anum, row.name) == (entry.anum, entry.name)
    assert tuple(row.keywords.split(",")) == entry.keywords
    assert row.offset == (None if entry.offset is None else entry.offset.first)
    assert tuple(row.terms.split(",") if row.terms else ()) == tuple(map(oeis_parser.int_to_decimal, entry.terms))
    return entry.terms


def test_seven_digit_number():
    assert check_both(SHORT.replace("A000045", "A1000045")) == (0, 1, 1, 2, 3)
    assert parse_text(SHORT.replace("A000045", "A1000045")).anum == "A1000045"


@pytest.mark.parametrize("mark", ["\u2028", "\u0085", "\x0c", "\x0b", "\x1c", "\u2029"])
def test_only_a_line_feed_ends_a_line(mark: str):
    text = SHORT.replace("A name.", f"Before{mark}after.").replace("%K", f"%C A000045 one{mark}two\n%K")
    assert check_both(text) == (0, 1, 1, 2, 3)
    assert parse_text(text).name == f"Before{mark}after."
    assert parse_text(text).comments[0].text == f"one{mark}two"


def test_byte_order_mark_and_carriage_returns():
    assert check_both("\ufeff" + SHORT) == (0, 1, 1, 2, 3)
    assert check_both(SHORT.replace("\n", "\r\n")) == (0, 1, 1, 2, 3)
    assert parse_text(FULL.replace("\n", "\r\n")) == parse_text(FULL)


def test_terms_of_any_length():
    limit = sys.get_int_max_str_digits()
    digits = "9" + "0123456789" * 2000
    value = 9
    for _ in range(2000):
        value = value * 10**10 + 123456789
    text = SHORT.replace("0,1,1,2,3", f"1,\n%T A000045 -{digits}")
    assert check_both(text) == (1, -value)
    assert sys.get_int_max_str_digits() == limit
    with pytest.raises(ValueError, match="4300"):
        int(digits)  # the process-wide limit stands as before


@pytest.mark.parametrize("power", [0, 1, 599, 600, 603, 604, 640, 641, 4299, 4300, 5000, 30000])
def test_decimal_conversions_at_every_length(power: int):
    for value in (10**power, 10**power - 1, -(10**power), 7 * 10**power + 3):
        text = oeis_parser.int_to_decimal(value)
        assert oeis_parser.decimal_to_int(text) == value
    assert oeis_parser.int_to_decimal(10**power) == "1" + "0" * power
    assert oeis_parser.int_to_decimal(10**power - 1) == ("9" * power or "0")


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("", "empty file", None),
        ("\n\n", "empty file", None),
        ("\ufeff", "empty file", None),
        ("<!DOCTYPE html>\n<html>\n", "HTML instead of an entry", 1),
        ("<<<<<<< HEAD\n" + SHORT + "=======\n" + SHORT + ">>>>>>> 1234567\n", "git left a conflict here", 1),
        (SHORT.replace("%K", "<<<<<<< HEAD\n%K"), "git left a conflict here", 4),
        (SHORT + "=======\n", "git left a conflict here", 6),
        (SHORT + "||||||| 1234567\n", "git left a conflict here", 6),
        (SHORT + ">>>>>>> 1234567\n", "git left a conflict here", 6),
        (SHORT + "======== a heading\n", "not a line of an entry", 6),
        ("503 Service Unavailable\n", "not a line of an entry", 1),
        ("# Greetings from The On-Line Encyclopedia of Integer Sequences!\n", "no %I line at the start", None),
        (SHORT.removeprefix("%I A000045\n"), "no %I line at the start", 1),
        (SHORT.replace("0,1,1,2,3", "1,2\n%T A000045 3,4"), "terms go on without a comma", 2),
        (SHORT.replace("0,1,1,2,3", "1,2,\n%T A000045 3,4\n%U A000045 5"), "terms go on without a comma", 3),
        (SHORT.replace("0,1,1,2,3", "1,2,"), "terms end with a comma", 2),
        (SHORT.replace("0,1,1,2,3", "1,2,\n%U A000045 3"), "%U without %T", 3),
        (SHORT.replace("0,1,1,2,3", ""), "no terms", 2),
        (SHORT.replace("0,1,1,2,3", "1,,2"), "bad term", 2),
        (SHORT.replace("0,1,1,2,3", "1, 2"), "bad term", 2),
        (SHORT.replace("0,1,1,2,3", "1,2 3"), "bad term", 2),
        (SHORT.replace("0,1,1,2,3", "1,1-2"), "bad term", 2),
        (SHORT.replace("0,1,1,2,3", "1,--2"), "bad term", 2),
        (SHORT.replace("0,1,1,2,3", "1,007"), "bad term", 2),
        (SHORT.replace("0,1,1,2,3", "1,-0"), "bad term", 2),
        (SHORT.replace("0,1,1,2,3", "1,2.5"), "bad term", 2),
        (SHORT.replace("0,1,1,2,3", "1,1e5"), "bad term", 2),
        (SHORT.replace("0,1,1,2,3", "1,1_000"), "bad term", 2),
        (SHORT.replace("0,1,1,2,3", "1,٣"), "bad term", 2),
        (SHORT.replace("%K", "%S A000045 7\n%K"), "second %S line", 4),
        (SHORT.replace("%K", "%K A000045 dead\n%K"), "second %K line", 5),
        (SHORT + SHORT, "second %I line", 6),
        (SHORT + SHORT.replace("45", "46"), "line of another A-number", 6),
        (SHORT.replace("%N A000045", "%N A000046"), "line of another A-number", 3),
        (SHORT.replace("%N A000045 A name.\n", ""), "no %N line (truncated?)", None),
        (SHORT.replace("%S A000045 0,1,1,2,3\n", ""), "no %S line (truncated?)", None),
        (SHORT.replace("%K A000045 nonn,easy\n", ""), "no %K line (truncated?)", None),
        (SHORT.replace("A name.", " "), "no name", 3),
        (SHORT.replace("nonn,easy", ""), "bad keywords", 4),
        (SHORT.replace("nonn,easy", "nonn,,easy"), "bad keywords", 4),
        (SHORT.replace("nonn,easy", "nonn, easy"), "bad keywords", 4),
        (SHORT.replace("0,4", ""), "bad offset", 5),
        (SHORT.replace("0,4", "0.5,1"), "bad offset", 5),
        (SHORT.replace("0,4", "0,"), "bad offset", 5),
        (SHORT.replace("0,4", "9" * 19), "bad offset", 5),
        (SHORT.replace("0,4", "-" + "9" * 19 + ",1"), "bad offset", 5),
        (SHORT.replace("0,4", "0," + "9" * 19), "bad offset", 5),
        (SHORT.replace("0,4", "9" * 5000), "bad offset", 5),
        (SHORT.replace("0,4", "0," + "9" * 5000), "bad offset", 5),
        (SHORT.replace("A000045", "A" + "1" * 13), "not a line of an entry", 1),
        (SHORT.replace("A000045", "A" + "1" * 5000), "not a line of an entry", 1),
        (SHORT.replace("%K", "%C A0000045 text\n%K"), "not a line of an entry", 4),
        (SHORT.replace("%K", "%C A00045 text\n%K"), "not a line of an entry", 4),
        (SHORT.replace("%K", "a bare line\n%K"), "not a line of an entry", 4),
        (SHORT.replace("%K", "%CA000045 text\n%K"), "not a line of an entry", 4),
        ("\x00" * 4096, "last line has no end (truncated?)", 1),
    ],
)
def test_named_errors(text: str, reason: str, line: int | None):
    with pytest.raises(ParseError) as caught:
        check_both(text)
    assert (caught.value.reason, caught.value.line, caught.value.source) == (reason, line, "<text>")


def test_a_truncated_file_never_gives_a_wrong_value():
    whole = check_both(FULL)
    for length in range(len(FULL)):
        try:
            terms = check_both(FULL[:length])
        except ParseError:
            continue
        entry = parse_text(FULL[:length])
        assert terms == whole
        assert entry.keywords == ("nonn", "core", "easy", "nice", "changed")
        assert entry.offset in (None, Offset(0, 4))


def test_not_utf8_names_the_line(tmp_path: Path):
    path = tmp_path / "A000045.seq"
    path.write_bytes(SHORT.encode().replace(b"A name.", b"Caf\xe9."))
    with pytest.raises(ParseError) as caught:
        parse_file(path)
    assert str(caught.value) == f"{path}:3: not UTF-8: byte 0xe9"
    with pytest.raises(ParseError, match="not UTF-8"):
        scan(path.read_bytes())


def test_offsets_and_missing_parts():
    assert parse_text(SHORT.replace("0,4", "-12,2")).offset == Offset(-12, 2)
    assert parse_text(SHORT.replace("0,4", "1")).offset == Offset(1, None)
    assert parse_text(SHORT.replace("%O A000045 0,4\n", "")).offset is None
    assert scan(SHORT.replace("%O A000045 0,4\n", "").encode()).offset is None
    negative = SHORT.replace("0,1,1,2,3", "-1,0,-22")
    assert check_both(negative) == (-1, 0, -22)


def test_the_longest_numbers_that_are_read():
    long = SHORT.replace("A000045", "A" + "1" * 12).replace("0,4", f"-{'9' * 18},{'9' * 18}")
    assert check_both(long) == (0, 1, 1, 2, 3)
    assert parse_text(long).offset == Offset(1 - 10**18, 10**18 - 1)


@pytest.mark.parametrize(
    ("identification", "revision"),
    [("#12", 12), ("M0692 #" + "9" * 12, 10**12 - 1), ("#" + "9" * 13, None), ("#" + "9" * 5000, None), ("#x", None)],
)
def test_a_revision_that_cannot_be_one_is_none(identification: str, revision: int | None):
    text = SHORT.replace("%I A000045", f"%I A000045 {identification} Apr 08 2026 10:58:11")
    assert check_both(text) == (0, 1, 1, 2, 3)
    assert parse_text(text).revision == revision


PIECES = (
    *(
        "9" * 20,
        "9" * 5000,
        "-" + "9" * 22,
        "#" + "9" * 5000,
        "A" + "1" * 22,
        "0" * 5000,
        "٣",
        "²",
        "M²³⁴⁵",
        "\x00",
        "é",
    ),
    *(
        "\n",
        "\r\n",
        "\u2028",
        "\ufeff",
        "😀",
        ",",
        "-",
        "_",
        " - ",
        "(",
        "))",
        "[",
        "<",
        "%",
        "=======\n",
        "%O A000045 ",
    ),
    *("(Start)", "(End)", "From _A Bc_, ", '<a href="', "</a>", "(PARI) ", "_X_", "(AT)", "Feb 31 2001", "Jan 99999"),
    *("#123 Jan 01 0000 99:99:99", "%K A000045 nonn\n", "%N A000045 \n", "%S "),
)


def test_damaged_entries_have_a_named_error_or_the_same_value_both_ways():
    rng = random.Random(0)
    num_read = 0
    for _ in range(3000):
        text = rng.choice((FULL, SHORT, SHORT))
        for _ in range(rng.randint(1, 3)):
            start = rng.randrange(len(text) + 1)
            text = text[:start] + rng.choice((*PIECES, "")) + text[start + rng.choice((0, 0, rng.randrange(30))) :]
        with contextlib.suppress(ParseError):
            check_both(text)
            num_read += 1
    assert 300 < num_read < 2700


def test_reserved_entries_may_be_empty():
    for keyword in ("allocated", "recycled"):
        text = f"%I A397217\n%S A397217 \n%N A397217 \n%K A397217 {keyword}\n"
        assert check_both(text) == ()
        assert check_both(text.replace("%S A397217 \n", "%S A397217\n")) == ()
    with pytest.raises(ParseError, match="no terms"):
        parse_text("%I A397217\n%S A397217 \n%N A397217 A name.\n%K A397217 nonn\n")


def test_order_of_lines_does_not_matter():
    lines = FULL.splitlines(keepends=True)
    moved = [line for line in lines if line[1] in "IKO"] + [line for line in lines if line[1] not in "IKO"]
    assert parse_text("".join(moved)) == parse_text(FULL)
    assert check_both("".join(moved)) == parse_text(FULL).terms


def test_ignored_lines():
    signed = SHORT.replace("%N", "%V A000045 0,-1,1\n%W A000045 2\n%X A000045 3\n%N").replace("%K", "%Z A000045 z\n%K")
    assert check_both(signed) == (0, 1, 1, 2, 3)
    served = f"# Greetings\n\nSearch: id:a000045\nShowing 1-1 of 1\n\n{SHORT}\n# Content is available under\n"
    assert check_both(served) == (0, 1, 1, 2, 3)


def test_hostile_lines_take_no_time():
    nasty = [
        " - " + "Aa and " * 3000,
        "x - _" + "a_ and _" * 3000,
        "[From _" + "(AT)" * 5000 + "]",
        "From " + "a (" * 5000 + "(Start)",
        "<a href=" * 5000,
        "(" * 20000,
        "_" * 20000,
        " " * 20000 + "x",
    ]
    text = SHORT.replace("%K", "".join(f"%{code} A000045 {line}\n" for code in "CDHFepotYAE" for line in nasty) + "%K")
    started_s = time.process_time()
    check_both(text)
    assert time.process_time() - started_s < 20  # an exponential pattern would take years


# ---------------------------------------------------------------------------------------------------------------------
# The command


def run_command(*arguments: str, cwd: Path = REPO) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(REPO / "oeis_parser.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=60, check=False)


@pytest.fixture
def small_corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "clone" / "seq" / "A000"
    folder.mkdir(parents=True)
    (folder / "A000045.seq").write_text(FULL, encoding="utf-8")
    (folder / "A000046.seq").write_text(SHORT, encoding="utf-8")
    (folder / "A000047.seq").write_text("<html>", encoding="utf-8")
    return tmp_path / "clone"


@pytest.mark.parametrize("wanted", ["A000045", "a000045", "45", "a45"])
@pytest.mark.parametrize("place", [".", "seq"])
def test_command_finds_an_entry(small_corpus: Path, wanted: str, place: str):
    done = run_command(wanted, "--corpus", str(small_corpus / place))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("A000045  Each term is the sum")
    assert "0, 1, 1, 2, 3, 5, 8, 13, 21" in done.stdout


def test_command_default_folder_and_path(small_corpus: Path):
    small_corpus.rename(small_corpus.parent / "oeisdata")
    by_number = run_command("45", cwd=small_corpus.parent)
    by_path = run_command("oeisdata/seq/A000/A000045.seq", cwd=small_corpus.parent)
    assert by_number.returncode == by_path.returncode == 0
    assert by_number.stdout == by_path.stdout


def test_command_finds_the_corpus_beside_itself_from_any_folder(small_corpus: Path, tmp_path: Path):
    program = tmp_path / "programs" / "oeis_parser.py"
    elsewhere = tmp_path / "elsewhere"
    program.parent.mkdir()
    (elsewhere / "oeisdata").mkdir(parents=True)  # holds nothing
    shutil.copy(REPO / "oeis_parser.py", program)

    def run(wanted: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(program), wanted]
        return subprocess.run(command, capture_output=True, text=True, cwd=elsewhere, timeout=300, check=False)

    missing = run("45")
    assert missing.returncode == 2 and "python rlvrctl.py corpus fetch" in missing.stderr
    small_corpus.rename(program.parent / "oeisdata")
    assert run("45").stdout.startswith("A000045  Each term")
    shutil.copytree(
        program.parent / "oeisdata" / "seq", elsewhere / "oeisdata", dirs_exist_ok=True
    )  # what is here comes first
    (elsewhere / "oeisdata" / "A000" / "A000045.seq").write_text(SHORT, encoding="utf-8")
    assert run("45").stdout.startswith("A000045  A name.")


def test_command_json_keeps_every_digit(tmp_path: Path):
    digits = "123456789" * 1000
    path = tmp_path / "A000045.seq"
    path.write_text(FULL.replace("1346269,2178309", f"-{digits}"), encoding="utf-8")
    done = run_command(str(path), "--json")
    value = json.loads(done.stdout)
    assert value["terms"][:4] == ["0", "1", "1", "2"]
    assert value["terms"][-1] == f"-{digits}"
    assert value["offset"] == {"first": 0, "second": 4}
    assert value["timestamp"] == "2026-04-08 10:58:11"
    assert value["programs"][1]["language"] == "Python"
    assert value["links"][0]["url"] == "https://oeis.org/A000045/b000045.txt"


@pytest.mark.parametrize("wanted", ["A999999", "nosuchfile.seq", "A000047", "."])
def test_command_user_errors(small_corpus: Path, wanted: str):
    done = run_command(wanted, "--corpus", str(small_corpus))
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().split("\n")) == 1
    assert wanted in done.stderr


def test_command_survives_a_closed_pipe(small_corpus: Path):
    folder = small_corpus / "seq" / "A000"
    lines = "".join(f"%C A000045 line {n}\n" for n in range(50_000))
    (folder / "A000045.seq").write_text(FULL.replace("%D", lines + "%D"), encoding="utf-8")
    command = f"set -o pipefail; {sys.executable} oeis_parser.py {folder}/A000045.seq | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=REPO, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("A000045")


def test_the_parser_needs_only_the_standard_library():
    code = "import sys; sys.path.insert(0, '.'); import oeis_parser; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, cwd=REPO, check=True
    )
    names = {name.partition(".")[0] for name in done.stdout.split()}
    assert names - {"oeis_parser", "__main__"} <= sys.stdlib_module_names | {"__mp_main__"}


# ---------------------------------------------------------------------------------------------------------------------
# Real files, where they are


def real_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.seq"))


@pytest.fixture(scope="session")
def odd_entries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real entries chosen for their oddities: the unpacked archive real-seq.tar.gz."""
    archive = Path(os.environ.get("OEIS_REAL_DIR", REPO / "oeisdata")) / "real-seq.tar.gz"
    if not archive.is_file():
        pytest.skip(f"the real OEIS entries are not here: no {archive.name} in OEIS_REAL_DIR")
    target = tmp_path_factory.mktemp("real-seq")
    with tarfile.open(archive) as tar:
        tar.extractall(target, filter="data")
    return target


def compare_scan(paths: list[Path]) -> None:
    for path in paths:
        data = path.read_bytes()
        entry, row = parse_text(data.decode(), str(path)), scan(data, str(path))
        assert entry.anum == row.anum == path.stem
        assert entry.name == row.name
        assert entry.keywords == tuple(row.keywords.split(","))
        assert (entry.offset and entry.offset.first) == row.offset
        assert ",".join(map(oeis_parser.int_to_decimal, entry.terms)) == row.terms


def test_all_odd_real_entries(odd_entries: Path):
    paths = real_files(odd_entries)
    assert len(paths) == 143
    compare_scan(paths)


def test_known_oddities(odd_entries: Path):
    entries = {path.stem: parse_file(path) for path in real_files(odd_entries / "seq")}
    assert len(entries) == 140
    for anum, offset in {
        "A285345": Offset(1, None), "A285196": Offset(0, None), "A080074": Offset(-12, 2), "A003676": Offset(-33, 1),
        "A090651": Offset(1901, 1),
    }.items():  # fmt: skip
        assert entries[anum].offset is not None
        assert entries[anum].offset.first == offset.first, anum
        assert (entries[anum].offset.second is None) == (offset.second is None), anum
    assert [len(entries[anum].terms) for anum in ("A058445", "A062659", "A001502", "A049487")] == [1, 2, 3, 6]
    assert max(len(str(term)) for term in entries["A119555"].terms) == 285
    assert min(entries["A000036"].terms) < 0
    assert entries["A000045"].revision == 2514
    assert (entries["A000045"].m_number, entries["A000045"].n_number) == ("M0692", "N0256")
    assert [program.language for program in entries["A105221"].programs] == ["Haskell", "PARI", "Python"]
    assert [program.language for program in entries["A235049"].programs] == ["MIT/GNU Scheme", "Haskell"]
    assert "dead" in entries["A000017"].keywords
    assert entries["A000017"].author is None
    assert entries["A153961"].author is not None
    assert entries["A153961"].author.date == "Jan 03 2009"
    assert entries["A059985"].name.startswith("Ł")
    assert {anum for anum, entry in entries.items() if "%" in entry.name} >= {"A152437", "A102827"}
    assert all("(Start)" not in note.text for entry in entries.values() for note in entry.comments + entry.formulas)
    for path in real_files(odd_entries / "reserved"):
        entry = parse_file(path)
        assert (entry.terms, entry.offset) == ((), None)


@pytest.mark.slow
def test_the_whole_real_corpus():
    folder = REPO / "oeisdata" / "seq"
    if not folder.is_dir():
        pytest.skip("no real corpus in oeisdata/seq")
    paths = real_files(folder)
    assert len(paths) > 1000
    compare_scan(paths)
