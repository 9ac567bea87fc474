"""Read entries of the On-Line Encyclopedia of Integer Sequences in its internal format (`.seq` files).

    python oeis_parser.py A000045            print an entry of oeisdata (also: 45, a000045, a path)
    python oeis_parser.py 45 --json          the same as JSON, terms as decimal strings

    >>> from oeis_parser import parse_file
    >>> parse_file("oeisdata/seq/A000/A000045.seq").terms[:5]
    (0, 1, 1, 2, 3)

Standard library only; no network; it does not read b-files. An entry that is not what the format says raises
`ParseError` with file, line and reason: a term is never guessed. `scan` reads only what an index needs, and faster.

Of the format's line codes, V, W and X (terms of the signed version, in historic files) and codes it does not know are
accepted and ignored; so are the `#`, `Search:` and `Showing` lines around an entry from oeis.org's `fmt=text`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

OEIS_URL = "https://oeis.org"
RESERVED = frozenset({"allocated", "allocating", "recycled"})  # the only entries that may have neither name nor terms


class ParseError(ValueError):
    """An entry that is not what the format says.

    `source` is the file, or "<text>"; `line` the 1-based line, or None when the whole is meant; `reason` a short
    phrase from a fixed set, for counting; `detail` what was found there.
    """

    def __init__(self, reason: str, source: str = "<text>", line: int | None = None, detail: str = ""):
        super().__init__(reason, source, line, detail)
        self.reason, self.source, self.line, self.detail = reason, source, line, detail

    def __str__(self) -> str:
        where = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{where}: {self.reason}" + (f": {self.detail}" if self.detail else "")


@dataclass(frozen=True, slots=True)
class Credit:
    """Who gave something, and when: `_Mitch Harris_, Oct 25 2006` -> names ("Mitch Harris",), date "Oct 25 2006".

    `date` is as written ("" when there is none, or none of the usual form); `text` is the whole credit as written.
    """

    names: tuple[str, ...]
    date: str
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """One comment, reference, formula, ...: a line, or a (Start)/(End) block with its lines joined by newlines."""

    text: str
    credit: Credit | None


@dataclass(frozen=True, slots=True)
class Link:
    """`author, <a href="url">title</a> rest`.

    `url` is absolute. A line without a link has it all in `title`; further links of a line stand in `rest` as written.
    """

    author: str
    url: str
    title: str
    rest: str


@dataclass(frozen=True, slots=True)
class Program:
    """`tag` is what stood in parentheses, `language` its part before a comma. Code lines keep their indentation."""

    language: str
    tag: str
    code: str
    credit: Credit | None


@dataclass(frozen=True, slots=True)
class Offset:
    """`first`: index of the first term; `second`: 1-based place of the first term beyond 1 in size, if given."""

    first: int
    second: int | None


@dataclass(frozen=True, slots=True)
class Sequence:
    """A whole entry. Texts are as written, credits taken off their ends."""

    anum: str
    m_number: str | None  # number in the 1995 book, "M0692"
    n_number: str | None  # number in the 1973 book, "N0256"
    revision: int | None
    timestamp: datetime | None  # of that revision, in the server's time zone (not given)
    terms: tuple[int, ...]
    name: str
    comments: tuple[Note, ...]
    references: tuple[Note, ...]
    links: tuple[Link, ...]
    formulas: tuple[Note, ...]
    examples: tuple[Note, ...]
    maple: tuple[Program, ...]
    mathematica: tuple[Program, ...]
    programs: tuple[Program, ...]
    cross_references: tuple[Note, ...]
    keywords: tuple[str, ...]
    offset: Offset | None
    author: Credit | None
    extensions: tuple[Note, ...]


class Scan(NamedTuple):
    """What an index needs of an entry. `keywords` and `terms` are comma lists without blanks, terms in decimal."""

    anum: str
    offset: int | None
    name: str
    keywords: str
    terms: str


# ---------------------------------------------------------------------------------------------------------------------
# Integers of any length. int() and str() refuse more than 4,300 digits unless a process-wide limit is lifted, which is
# not a library's to do; up to 640 digits no setting can forbid.

_SAFE_DIGITS = 640


def decimal_to_int(text: str) -> int:
    """Turn a decimal string of any length into an int, leaving `sys.set_int_max_str_digits` alone."""
    if len(text) <= _SAFE_DIGITS:
        return int(text)
    if text.startswith("-"):
        return -decimal_to_int(text[1:])
    half = len(text) // 2
    return decimal_to_int(text[:-half]) * 10**half + decimal_to_int(text[-half:])


def int_to_decimal(value: int) -> str:
    """Turn an int of any size into its decimal string, leaving `sys.set_int_max_str_digits` alone."""
    if value.bit_length() <= 2000:  # at most 603 digits
        return str(value)
    if value < 0:
        return "-" + int_to_decimal(-value)
    half = int(value.bit_length() * 0.30103) // 2
    high, low = divmod(value, 10**half)
    return int_to_decimal(high) + int_to_decimal(low).zfill(half)


# ---------------------------------------------------------------------------------------------------------------------
# Lines: text -> code -> [(line number, text)]

# Numbers other than terms have as many digits as 64 bits, and so a database, can hold.
_LINE = re.compile(r"%([A-Za-z]) (A(?:[0-9]{6}|[1-9][0-9]{6,11}))(?: (.*))?", re.DOTALL)
_TERM = re.compile(r"0|-?[1-9][0-9]*")
# the same, comma-joined; runs of positive terms have a loop of their own because that makes it twice as fast
_TERMS = re.compile(r"(?:0|-?[1-9][0-9]*+)(?:(?:,[1-9][0-9]*+)++|,0|,-[1-9][0-9]*+)*+")
_OFFSET = re.compile(r"(-?[0-9]{1,18})(?:,([0-9]{1,18}))?")
_KEYWORDS = re.compile(r"[a-z]+(?:,[a-z]+)*")
_CONFLICT = re.compile(r"(?:<{7}|\|{7}|>{7})(?: .*)?|={7}")
_ONCE = "ISTUNKO"

Lines = dict[str, list[tuple[int, str]]]


def _split_lines(text: str, source: str) -> tuple[str, Lines]:
    """Give the A-number and the lines by code. Only LF ends a line: names hold form feeds and U+2028."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise ParseError("empty file", source)
    if text.lstrip().startswith("<") and not text.startswith("<<<<<<<"):
        raise ParseError("HTML instead of an entry", source, 1)
    rows = text.split("\n")
    unfinished = rows.pop()  # "" when the text ends with LF as it must
    anum = ""
    lines: Lines = {}
    for number, row in enumerate(rows, 1):
        row = row.removesuffix("\r")
        if not row or row.startswith("#") or (not anum and row.startswith(("Search:", "Showing"))):
            continue
        match = _LINE.fullmatch(row)
        if match is None and _CONFLICT.fullmatch(row):
            raise ParseError("git left a conflict here", source, number, repr(row[:60]))
        if match is None:
            raise ParseError("not a line of an entry", source, number, repr(row[:60]))
        code, line_anum, content = match.groups("")
        if not anum:
            if code != "I":
                raise ParseError("no %I line at the start", source, number, repr(row[:60]))
            anum = line_anum
        elif line_anum != anum:
            raise ParseError("line of another A-number", source, number, f"{line_anum} in {anum}")
        if code in _ONCE and code in lines:
            raise ParseError(f"second %{code} line", source, number)
        lines.setdefault(code, []).append((number, content))
    if unfinished.strip():
        # A file cut off inside %S would otherwise end in a wrong term, one cut off inside %O in a wrong offset.
        raise ParseError("last line has no end (truncated?)", source, len(rows) + 1, repr(unfinished[:60]))
    if not anum:
        raise ParseError("no %I line at the start", source)
    return anum, lines


def _read_core(anum: str, lines: Lines, source: str) -> tuple[Scan, Offset | None]:
    """Check and read what every entry must have."""
    for code in "SNK":
        if code not in lines:
            raise ParseError(f"no %{code} line (truncated?)", source)
    number, keywords = lines["K"][0]
    if not _KEYWORDS.fullmatch(keywords):
        raise ParseError("bad keywords", source, number, repr(keywords[:60]))
    reserved = not RESERVED.isdisjoint(keywords.split(","))
    number, name = lines["N"][0]
    if not name.strip() and not reserved:
        raise ParseError("no name", source, number)
    offset = None
    if "O" in lines:
        number, text = lines["O"][0]
        match = _OFFSET.fullmatch(text)
        if match is None:
            raise ParseError("bad offset", source, number, repr(text[:60]))
        offset = Offset(int(match[1]), int(match[2]) if match[2] else None)
    return Scan(anum, offset and offset.first, name, keywords, _read_terms(lines, reserved, source)), offset


def _read_terms(lines: Lines, reserved: bool, source: str) -> str:
    """Join %S, %T, %U. A term is never split over lines, so a line that another follows must end with a comma."""
    if "U" in lines and "T" not in lines:
        raise ParseError("%U without %T", source, lines["U"][0][0])
    rows = [lines[code][0] for code in "STU" if code in lines]
    if len(rows) == 1 and not rows[0][1].strip():
        if reserved:
            return ""
        raise ParseError("no terms", source, rows[0][0])
    for place, (number, text) in enumerate(rows):
        is_last = place == len(rows) - 1
        if text.endswith(",") and is_last:
            raise ParseError("terms end with a comma", source, number)
        if not text.endswith(",") and not is_last:
            raise ParseError("terms go on without a comma", source, number)
        for term in text.removesuffix(",").split(","):
            if not _TERM.fullmatch(term):
                raise ParseError("bad term", source, number, repr(term[:60]))
    return "".join(text for _, text in rows)


# ---------------------------------------------------------------------------------------------------------------------
# The fast path. One pattern takes a whole clean file; whatever it does not take goes the slow way, which finds the
# reason. It accepts nothing that the slow way rejects.

_CLEAN_FILE = re.compile(
    rb"%I (A(?:[0-9]{6}|[1-9][0-9]{6,11}))(?: [^\n]*+)?\n"
    rb"%S \1 ([-0-9,]++)\n(?:%T \1 ([-0-9,]++)\n(?:%U \1 ([-0-9,]++)\n)?+)?+"
    rb"%N \1 ([^\n]*+)\n"
    rb"(?:%[B-HP-RV-Za-z] \1(?: [^\n]*+)?\n)*+"
    rb"%K \1 ([a-z]++(?:,[a-z]++)*+)\n"
    rb"(?:%O \1 (-?[0-9]{1,18}+)(?:,[0-9]{1,18}+)?+\n)?+"
    rb"(?:%[A-HP-RV-Za-z] \1(?: [^\n]*+)?\n)*+"
)


def scan(data: bytes, source: str = "<text>") -> Scan:
    """Read what an index needs of one file's bytes, with the errors of `parse_text`."""
    match = _CLEAN_FILE.fullmatch(data)
    if match is not None and b"\r" not in data:
        anum, first, second, third, name, keywords, offset = match.groups()
        joined = (first + second + third if third else first + second) if second else first
        text = joined.decode("ascii")
        clean_joints = not second or (first[-1:] == b"," and (not third or second[-1:] == b","))
        if clean_joints and _TERMS.fullmatch(text) and name.strip() and (data.isascii() or _is_utf8(data)):
            return Scan(anum.decode(), None if offset is None else int(offset), name.decode(), keywords.decode(), text)
    return _read_core(*_split_lines(_decode(data, source), source), source)[0]


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _decode(data: bytes, source: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ParseError("not UTF-8", source, line, f"byte {data[error.start]:#04x}") from None


# ---------------------------------------------------------------------------------------------------------------------
# Credits: `_Wiki Name_ and Plain Name (x(AT)y), Oct 25 2006, corrected ...` at the end of a text

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DATE = re.compile(rf"\b{_MONTH}[a-z]*\.? \d{{1,2}},? \d{{4}}\b")
_MAIL = r"(?: \((?:[^()]|\(AT\))*\(AT\)(?:[^()]|\(AT\))*\))"
_WIKI = r"_[^_\n]{2,80}_"
_PLAIN = rf"(?!{_MONTH}[a-z.]* \d)[^\W\d_a-z](?:(?! and )[^\d_\n,;:()\[\]=&]){{1,60}}"
_PERSON = rf"(?:{_WIKI}|{_PLAIN}){_MAIL}?"
_JOIN = r"(?:,? and |,? & |, )"
_WHEN = rf"(?:,? [^_\n]{{0,40}}?(?:{_MONTH}[a-z]* \d|\d{{4}}\b).{{0,100}})"
_SIGNATURE = re.compile(
    rf"(?:{_WIKI}{_MAIL}?(?:{_JOIN}{_PERSON})*{_WHEN}?|{_PLAIN}{_MAIL}?(?:{_JOIN}{_PERSON})*,? {_DATE.pattern})\.?"
)
_EXTENSION = re.compile(
    rf"^(.*?)(?:^|\s|\s(?:from|by)\s)"
    rf"(?:({_WIKI}{_MAIL}?(?:{_JOIN}{_PERSON})*{_WHEN}?\.?)"
    rf"|(?:from|by) ({_PLAIN}{_MAIL}(?:{_JOIN}{_PERSON})*{_WHEN}?\.?))$"
)
# the dash forgotten or run together: `... n > 0. _Name_, Mar 25 2014`, `... Moon".- _Name_, ...`
_LOOSE = re.compile(rf"(?:\s*-\s*|(?<=[.!?\"\])])\s+)({_WIKI}{_MAIL}?(?:{_JOIN}{_PERSON})*,? {_DATE.pattern})\.?$")
_BLOCK = re.compile(r"(?:(?:Contributions?|Comments?) )?[Ff]rom (.{2,200}?):? *\(Start\) ?(.*)", re.DOTALL)
_FROM = re.compile(rf"From ({_WIKI}[^:\n]{{0,80}}?\d{{4}}): (?!\(Start\))(.+)", re.DOTALL)
_TAIL_LENGTH = 300  # no credit is longer; keeps the patterns away from comments of thousands of characters


def _is_signature(text: str) -> bool:
    return _SIGNATURE.fullmatch(text) is not None and text.count("(") == text.count(")")


def _make_credit(text: str) -> Credit:
    date = _DATE.search(text)
    people = re.sub(_MAIL, "", re.split(rf"{_DATE.pattern}|\bcirca\b|\b\d{{4}}\b", text, maxsplit=1)[0]).strip(" ,")
    names: list[str] = []
    for person in re.split(_JOIN, people):
        wiki = re.match(_WIKI, person)
        name = wiki[0].strip("_") if wiki else person.strip()
        if name in ("Jr.", "Sr.", "II", "III") and names:
            names[-1] += f", {name}"
        elif name:
            names.append(name)
    return Credit(tuple(names), date[0] if date else "", text)


def _split_credit(text: str) -> Note:
    """Take ` - _Name_, date`, ` [From _Name_, date]` or a leading `From _Name_, date:` off a text."""
    whole = _FROM.fullmatch(text)
    if whole:
        return Note(whole[2], _make_credit(whole[1]))
    start = max(0, len(text) - _TAIL_LENGTH)
    dash = len(text)
    while (dash := text.rfind(" - ", start, dash)) >= 0:
        tail = text[dash + 3 :].strip()
        if _is_signature(tail):
            return Note(text[:dash].rstrip(), _make_credit(tail))
    loose = _LOOSE.search(text, start)
    if loose and loose.start() > 0:
        return Note(text[: loose.start()], _make_credit(loose[1]))
    bracket = text.rfind("[", start)
    if bracket > 0 and text.rstrip(".").endswith("]"):
        tail = text[bracket + 1 :].rstrip(".")[:-1].removeprefix("From ").strip()
        if tail.startswith("_") and _is_signature(tail):
            return Note(text[:bracket].rstrip(), _make_credit(tail))
    return Note(text, None)


def _read_notes(rows: list[tuple[int, str]]) -> tuple[Note, ...]:
    """Join (Start)/(End) blocks, separate credits. A block never closed ends before the next one, or at the end."""
    notes: list[Note] = []
    block: list[str] | None = None
    credit: Credit | None = None

    def close() -> None:
        nonlocal block
        if block is not None:
            notes.append(Note("\n".join(block).strip("\n"), credit))
        block = None

    for _, text in rows:
        header = _BLOCK.fullmatch(text)
        if header:
            close()
            block, credit, text = [], _make_credit(header[1]), header[2]
            if not text:
                continue
        elif block is None and text.rstrip().endswith("(Start)"):
            block, credit, text = [], None, text.rstrip().removesuffix("(Start)").rstrip()
        if block is None:
            notes.append(_split_credit(text))
        elif "(End)" in text:
            before, _, after = text.rpartition("(End)")
            block.append((before.rstrip() + (" " + after.strip() if after.strip() else "")).rstrip())
            close()
        else:
            block.append(text)
    close()
    return tuple(notes)


def _read_extensions(rows: list[tuple[int, str]]) -> tuple[Note, ...]:
    """`More terms from _Name_, date` -> "More terms" and the credit; the from or by before a name goes with it."""
    notes = []
    for note in _read_notes(rows):
        match = _EXTENSION.match(note.text) if note.credit is None and len(note.text) < 1000 else None
        notes.append(Note(match[1].rstrip(" ,-"), _make_credit(match[2] or match[3])) if match else note)
    return tuple(notes)


# ---------------------------------------------------------------------------------------------------------------------
# Links and programs

_ANCHOR = re.compile(r"""<a\s+href\s*=\s*"([^"]*)"\s*>(.*?)</a>""", re.DOTALL | re.IGNORECASE)


def _read_link(text: str) -> Link:
    match = _ANCHOR.search(text)
    if match is None:
        return Link("", "", text, "")
    url = match[1].strip().replace("&amp;", "&")
    author, rest = text[: match.start()].strip(" ,"), text[match.end() :].strip().lstrip(",. ")
    return Link(author, OEIS_URL + url if url.startswith("/") else url, match[2].strip(), rest)


# A line of a program may itself begin with a parenthesis, `(0 to 49).map(...)`, `(define (f n) ...`: a tag begins with
# a language that is used in the OEIS, or stands on the first line.
_LANGUAGES = frozenset(
    """
    05AB1E Ada Agda Algol Alonzo APL ARIBAS Asymptote AWK Awk Axiom Bash BASIC bc BCPL BQN C C# C++ Chapel
    Clojure COBOL CoCoA Common Coq Crystal Curry D dc Delphi DERIVE Derive Dyalog Elixir Elm Erlang EXCEL Excel
    F# Factor FORTH Forth FORTRAN Fortran Free FreeBASIC FriCAS Frink GAP Giac GMP Gnuplot Go Groovy Haskell
    Icon Idris Io Isabelle J Janet Java JavaScript Javascript Jelly Julia K KASH Kash Kotlin Lean LiE Linux LISP
    Lisp LOGO Logo Lua Macaulay2 Macsyma MAGMA Magma Maple MATHCAD Mathcad Mathics MATLAB Matlab Maxima Mercury
    Microsoft MiniZinc MIT/GNU MuPAD Mupad NARS2000 Nim Oberon OCaml Octave Other Oz PARI PARI/GP Pascal Perl
    PHP PL/I PostScript Prolog PureBasic Python Python2 Python3 QBASIC QBasic R Racket Raku REDUCE Reduce REXX
    Rexx Ruby Rust SAGE Sage SageMath Sagemath Scala Scheme sed SETL Sidef Singular Smalltalk SML Snap! SQL
    Standard Swift Tcl TI TI-BASIC TypeScript UBASIC Ubasic Unix VB VBA Visual Wolfram WolframAlpha Xcas Yacas
    Zig
    """.split()  # noqa: SIM905
)
_TAG = re.compile(r"\(([^()]{1,80}(?:\([^()]*\)[^()]{0,40})?)\)(?= |$)")
_COMMENT_OPENER = re.compile(r"#|\\\\|\(\*|/\*|//|--|;+|%|!|\s-\s|\"|'")
_COMMENT_CLOSER = re.compile(r"\s*(?:\*\)|\*/)$")
_INNER_CREDIT = re.compile(rf"({_WIKI}, {_DATE.pattern})\s*(?:\*\)|\*/|\))?$")


def _program_tag(text: str, is_first: bool) -> re.Match[str] | None:
    match = _TAG.match(text)
    if match is None:
        return None
    word = re.split(r"[ ,:;(]", match[1].strip(), maxsplit=1)[0]
    return match if is_first or word in _LANGUAGES else None


def _line_credit(line: str) -> tuple[str, Credit | None]:
    """Find a credit in the comment that ends a line of code; the comment goes when it holds nothing else."""
    line = line.rstrip()
    start = max(0, len(line) - _TAIL_LENGTH)
    if line.find("_", start) < 0 and line.find("(AT)", start) < 0:
        return line, None
    for opener in _COMMENT_OPENER.finditer(line, start):
        comment = _COMMENT_CLOSER.sub("", line[opener.end() :]).strip()
        if (comment.startswith("_") or "(AT)" in comment) and _is_signature(comment):
            return line[: opener.start()].rstrip(), _make_credit(comment)
    inner = _INNER_CREDIT.search(line, start)
    return line, _make_credit(inner[1]) if inner else None


def _make_program(tag: str, lines: list[str]) -> Program:
    lines = list(lines)
    credit = None
    if lines:
        lines[-1], credit = _line_credit(lines[-1])
    return Program(tag.partition(",")[0].strip(), tag, "\n".join(lines).strip("\n"), credit)


def _read_programs(rows: list[tuple[int, str]]) -> tuple[Program, ...]:
    """Split %o lines by their `(Language)` tags; lines without one go on with the program before."""
    programs: list[tuple[str, list[str]]] = []
    for _, text in rows:
        match = _program_tag(text, not programs)
        if match:
            rest = text[match.end() :].removeprefix(" ")
            programs.append((match[1].strip(), [rest] if rest else []))
        elif programs:
            programs[-1][1].append(text)
        else:
            programs.append(("", [text]))
    return tuple(_make_program(tag, lines) for tag, lines in programs)


def _read_untagged(language: str, rows: list[tuple[int, str]]) -> tuple[Program, ...]:
    """Split %p or %t lines where a line with a credit ends one program and the next line is not indented."""
    programs: list[list[str]] = []
    ended = True
    for _, text in rows:
        if ended and not (programs and text.startswith(" ")):
            programs.append([])
        programs[-1].append(text)
        ended = _line_credit(text)[1] is not None
    return tuple(_make_program(language, lines) for lines in programs)


# ---------------------------------------------------------------------------------------------------------------------
# The whole entry

_REVISION = re.compile(
    rf"#([0-9]{{1,12}})(?![0-9])(?: ({_MONTH}) ([0-9]{{1,2}}) ([0-9]{{4}}) ([0-9]{{2}}):([0-9]{{2}}):([0-9]{{2}}))?"
)
_MONTHS = tuple(_MONTH[3:-1].split("|"))


def _read_timestamp(match: re.Match[str] | None) -> datetime | None:
    if match is None or match[2] is None:
        return None
    day, year, hour, minute, second = (int(part) for part in match.groups()[2:])
    try:
        return datetime(year, _MONTHS.index(match[2]) + 1, day, hour, minute, second)
    except ValueError:  # Feb 31: the date is of no weight, the entry is
        return None


def parse_text(text: str, source: str = "<text>") -> Sequence:
    """Read one entry. Every line, the last one too, must end with LF (or CRLF). Raises `ParseError`."""
    anum, lines = _split_lines(text, source)
    core, offset = _read_core(anum, lines, source)
    identification = lines["I"][0][1]
    numbers = identification.split()
    revision = _REVISION.search(identification)
    author = ", ".join(text.strip() for _, text in lines.get("A", []))
    return Sequence(
        anum=anum,
        m_number=next((word for word in numbers if re.fullmatch(r"M\d{4}", word)), None),
        n_number=next((word for word in numbers if re.fullmatch(r"N\d{4}", word)), None),
        revision=int(revision[1]) if revision else None,
        timestamp=_read_timestamp(revision),
        terms=tuple(decimal_to_int(term) for term in core.terms.split(",")) if core.terms else (),
        name=core.name,
        comments=_read_notes(lines.get("C", [])),
        references=_read_notes(lines.get("D", [])),
        links=tuple(_read_link(text) for _, text in lines.get("H", [])),
        formulas=_read_notes(lines.get("F", [])),
        examples=_read_notes(lines.get("e", [])),
        maple=_read_untagged("Maple", lines.get("p", [])),
        mathematica=_read_untagged("Mathematica", lines.get("t", [])),
        programs=_read_programs(lines.get("o", [])),
        cross_references=_read_notes(lines.get("Y", [])),
        keywords=tuple(core.keywords.split(",")),
        offset=offset,
        author=_make_credit(author) if author else None,
        extensions=_read_extensions(lines.get("E", [])),
    )


def parse_file(path: str | os.PathLike[str]) -> Sequence:
    """Read one `.seq` file. Raises `ParseError`, and `OSError` when it cannot be read."""
    source = os.fspath(path)
    return parse_text(_decode(Path(path).read_bytes(), source), source)


# ---------------------------------------------------------------------------------------------------------------------
# The command


def to_jsonable(value: Any) -> Any:
    """Turn an entry into what `json.dumps` takes: ints in `terms` become decimal strings, any length."""
    if is_dataclass(value):
        made = {field.name: to_jsonable(getattr(value, field.name)) for field in fields(value)}
        if isinstance(value, Sequence):
            made["terms"] = [int_to_decimal(term) for term in value.terms]
        return made
    if isinstance(value, tuple):
        return [to_jsonable(item) for item in value]
    return value.isoformat(sep=" ") if isinstance(value, datetime) else value


def to_text(entry: Sequence) -> str:
    """Lay an entry out for a person to read."""
    lines = [f"{entry.anum}  {entry.name}"]
    facts = [fact for fact in (entry.m_number, entry.n_number) if fact]
    facts += [f"revision {entry.revision}"] if entry.revision is not None else []
    facts += [str(entry.timestamp)] if entry.timestamp else []
    facts += [f"offset {entry.offset.first}"] if entry.offset else []
    lines += [
        "  ".join([*facts, "keywords " + ",".join(entry.keywords)]),
        "",
        ", ".join(map(int_to_decimal, entry.terms)),
    ]

    def by(credit: Credit | None) -> str:
        return f"  [{credit.text}]" if credit else ""

    def add(title: str, items: list[str]) -> None:
        if items:
            lines.extend(["", title])
            lines.extend("    " + item.replace("\n", "\n    ") for item in items)

    def notes(items: tuple[Note, ...]) -> list[str]:
        return [note.text + by(note.credit) for note in items]

    def programs(items: tuple[Program, ...]) -> list[str]:
        return [f"({item.tag}){by(item.credit)}\n{item.code}" for item in items]

    add("Author", [entry.author.text] if entry.author else [])
    add("Comments", notes(entry.comments))
    add("References", notes(entry.references))
    add(
        "Links",
        [" ".join(filter(None, (f"{x.author}:" if x.author else "", x.title, x.url, x.rest))) for x in entry.links],
    )
    add("Formulas", notes(entry.formulas))
    add("Examples", notes(entry.examples))
    add("Programs", programs(entry.maple + entry.mathematica + entry.programs))
    add("Cross references", notes(entry.cross_references))
    add("Extensions", notes(entry.extensions))
    return "\n".join(lines)


def find_file(wanted: str, corpus_dir: Path) -> Path | None:
    """Find the file of `A000045`, `a45`, `45` or a path; `corpus_dir` is a clone of oeisdata or its `seq` folder."""
    number = re.fullmatch(r"[Aa]?([0-9]{1,9})", wanted)
    if number is None or Path(wanted).is_file():
        return Path(wanted) if Path(wanted).is_file() else None
    anum = f"A{int(number[1]):06d}"
    for folder in (corpus_dir / "seq", corpus_dir):
        path = folder / anum[:-3] / f"{anum}.seq"
        if path.is_file():
            return path
    return None


def default_corpus() -> Path:
    """Find `oeisdata` here or beside this file, the first that has folders of entries; what is here when none has."""
    here, beside = Path("oeisdata"), Path(__file__).resolve().parent / "oeisdata"
    for folder in (here, beside):
        if any(any(place.glob("A[0-9][0-9][0-9]*/")) for place in (folder / "seq", folder)):
            return folder
    return here


def main(arguments: list[str] | None = None) -> int:
    """Print one entry; 0 when it was printed, 2 with one line on stderr when the user has to change something."""
    parser = argparse.ArgumentParser(description="Print an entry of the OEIS.")
    parser.add_argument("entry", help="A000045, a000045, 45, or the path of a .seq file")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="default: oeisdata, here or beside this program")
    parser.add_argument("--json", action="store_true", help="print JSON; terms are decimal strings")
    options = parser.parse_args(arguments)
    corpus_dir = options.corpus or default_corpus()
    path = find_file(options.entry, corpus_dir)
    try:
        if path is None:
            raise FileNotFoundError(
                f"{options.entry}: no such file, nor such an entry under {corpus_dir}"
                " (name the folder with --corpus; `python rlvrctl.py corpus fetch` gets the full corpus)"
            )
        entry = parse_file(path)
    except (ParseError, OSError) as error:
        print(f"oeis_parser.py: {error}", file=sys.stderr)
        return 2
    text = json.dumps(to_jsonable(entry), indent=1) if options.json else to_text(entry)
    try:
        sys.stdout.buffer.write(text.encode() + b"\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
