"""`rlvrctl.py play`: from a pipe, from a file, and by a person at a (pseudo) terminal."""

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlvr.cli.play import as_completion, shorten
from rlvr.corpus import SAMPLE_DIR

ROOT = Path(__file__).parent.parent
PLAY = (sys.executable, str(ROOT / "rlvrctl.py"), "play", "--corpus", str(SAMPLE_DIR))
SQUARES = "def a(n):\n    return n * n\n"


def piped(*arguments: str, answer: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PLAY, *arguments], input=answer, capture_output=True, text=True, cwd=cwd)


def test_an_answer_from_a_pipe_shows_every_reward_with_its_reason(tmp_path):
    done = piped("--anum", "A000290", answer="def a(n): return n * n if n < 12 else -n", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for text in (
        "Known terms: a(0)=0, a(1)=1",
        "partial, total reward 0.110",
        "function_works    +0.100  40 of 40 hidden terms came back as exact integers",
        "no_cheating       +0.000  only allowed imports",
        "sequence_matches  +0.010  2 of 40 hidden terms right",
        "def a(n): return n * n if n < 12 else -n",
    ):
        assert text in done.stdout, text
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("a(")]
    assert rows[9] == ["a(9)", "shown", "81", "81", "yes"] and rows[12] == ["a(12)", "hidden", "144", "-12", "no"]
    assert len(rows) == 50 and "\x1b" not in done.stdout


def test_an_answer_from_a_file_and_json(tmp_path):
    file = tmp_path / "answer.py"
    file.write_text("import math\nb = lambda n: n * n\na = b\n")
    done = piped("--task", "A000290", "A000217", "--answer", str(file), "--json", answer="", cwd=tmp_path)
    squares, triangles = json.loads(done.stdout)
    assert (squares["task"], squares["grade"]["outcome"], squares["grade"]["reward"]) == ("A000290", "solved", 1.0)
    # n*n and n(n+1)/2 agree at 0 and 1, which are shown
    assert (triangles["grade"]["outcome"], triangles["grade"]["reward"]) == ("wrong", pytest.approx(0.1))
    assert [check["got"] for check in triangles["grade"]["checks"][:3]] == ["0", "1", "4"]
    assert "Write a Python function" in squares["prompt"]


def test_an_error_is_shown_with_what_raised_it(tmp_path):
    done = piped("--anum", "A000290", answer="def a(n): return n // 0", cwd=tmp_path)
    assert "invalid, total reward -0.300" in done.stdout and "exception: ZeroDivisionError" in done.stdout


def test_random_tasks_are_of_the_train_split_and_follow_the_seed(tmp_path):
    def task(*arguments):
        (line,) = json.loads(piped("--json", *arguments, answer="", cwd=tmp_path).stdout)
        assert line["grade"]["outcome"] == "invalid"
        return line["task"]

    train = subprocess.run(
        [sys.executable, str(ROOT / "oeis_rlvr.py"), "--corpus", str(SAMPLE_DIR), "--limit", "1", "--seed", "7"],
        capture_output=True,
        text=True,
    )
    assert train.stdout.startswith(f"--- {task('--seed', '7')}\n")
    assert len({task() for _ in range(4)}) > 1


def test_what_cannot_be_had_is_said_in_a_line(tmp_path):
    unknown = piped("--anum", "A999999", answer="", cwd=tmp_path)
    assert unknown.returncode == 2 and unknown.stdout == ""
    assert "error: A999999 is not among the 819 sequences" in unknown.stderr and "corpus fetch" in unknown.stderr
    assert "'x9' is not an A-number" in piped("--anum", "x9", answer="", cwd=tmp_path).stderr
    missing = piped("--anum", "A000290", "--answer", "nowhere.py", answer="", cwd=tmp_path)
    assert missing.returncode == 2 and "nowhere.py cannot be read" in missing.stderr
    assert "known: oeis" in piped("--environment", "chess", answer="", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("answer", "is_wrapped"),
    [
        (SQUARES, True),
        ("a = lambda n: n", True),
        (f"Here:\n```python\n{SQUARES}```", False),
        ("42", False),
        ("", False),
        ("I do not know.", False),
        ("(" * 100_000, False),
        ("x\0y", False),
    ],
)
def test_a_bare_program_is_put_into_a_block(answer, is_wrapped):
    assert as_completion(answer) == (f"```python\n{answer.strip()}\n```" if is_wrapped else answer)


def test_long_terms_are_shown_by_their_ends():
    assert shorten("1" * 44) == "1" * 44
    assert shorten("12" * 3000) == "121212121212...121212121212 (6,000 long)"


# ---------------------------------------------------------------------------------------------------------------------
# At a terminal


class Terminal:
    """A program in a pseudo-terminal; what it shows, without colours."""

    def __init__(self, *arguments: str, cwd: Path, **environment: str):
        inherited = {name: value for name, value in os.environ.items() if name not in ("VISUAL", "EDITOR", "NO_COLOR")}
        self.screen, screen = pty.openpty()
        self.process = subprocess.Popen(
            [*PLAY, *arguments],
            stdin=screen,
            stdout=screen,
            stderr=screen,
            cwd=cwd,
            env={**inherited, "TERM": "xterm-256color", **environment},
            start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # its controlling terminal, for Ctrl-C
        )
        os.close(screen)
        self.raw = self.seen = ""

    def read_until(self, text: str, timeout_s: float = 300) -> str:
        """Wait for a text after what was read before; the time only ends a broken test."""
        end = time.monotonic() + timeout_s
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} not in {self.seen}"
            if select.select([self.screen], [], [], 0.1)[0]:
                try:
                    chunk = os.read(self.screen, 65_536).decode()
                except OSError:
                    chunk = ""
                assert chunk, f"{text!r} not in {self.seen}"
                self.raw += chunk
                self.seen += re.sub(r"\x1b\[[0-9;]*m", "", chunk).replace("\r", "")
        before, _, self.seen = self.seen.partition(text)
        return before

    def send(self, text: str) -> None:
        os.write(self.screen, text.encode())

    def end(self) -> int:
        """Exit code, once everything was read."""
        while True:
            try:
                chunk = os.read(self.screen, 65_536)
            except OSError:
                chunk = b""
            if not chunk:
                break
            self.raw += chunk.decode()
        os.close(self.screen)
        assert "Traceback" not in self.raw
        return self.process.wait(300)


def test_a_person_tries_again_looks_at_the_answer_and_goes_on(tmp_path):
    terminal = Terminal("--anum", "A000290", "A000217", cwd=tmp_path)
    terminal.read_until("a(9)=81")
    terminal.read_until("single dot")
    terminal.send("def a(n):\n    return n\n.\n")
    terminal.read_until("wrong, total reward 0.100")
    assert "[n]ext task" in terminal.read_until("[q]uit: ")
    terminal.send("t\n")
    terminal.read_until("single dot")
    terminal.send("def a(n):\n    return n * n\n.\n")
    terminal.read_until("solved, total reward 1.000")
    terminal.read_until("[q]uit: ")
    terminal.send("s\n")
    assert "n**2" in terminal.read_until("[q]uit: ").replace(" ", "")
    terminal.send("what\n")
    terminal.read_until("[q]uit: ")
    terminal.send("n\n")
    terminal.read_until("A000217")
    terminal.read_until("single dot")
    terminal.send("def a(n): return n * (n + 1) // 2\n\x04")
    terminal.read_until("solved, total reward 1.000")
    assert "[n]ext" not in terminal.read_until("[q]uit: ")
    terminal.send("q\n")
    assert terminal.end() == 0
    assert "\x1b[" in terminal.raw  # the function has colours


@pytest.mark.parametrize(("typed", "code"), [("\x04", 0), ("def a(\x03", 130)])
def test_leaving_while_an_answer_is_asked_for(tmp_path, typed, code):
    terminal = Terminal("--anum", "A000290", cwd=tmp_path)
    terminal.read_until("single dot")
    terminal.read_until("\n")
    terminal.send(typed)
    assert terminal.end() == code


def test_leaving_at_the_question(tmp_path):
    terminal = Terminal("--anum", "A000290", cwd=tmp_path)
    terminal.read_until("single dot")
    terminal.send("no idea\n.\n")
    terminal.read_until("[q]uit: ")
    terminal.send("\x04")
    assert terminal.end() == 0


EDITOR = """#!{python}
import pathlib, sys
file = pathlib.Path(sys.argv[-1])
text = file.read_text()
pathlib.Path({seen!r}).write_text(text)
file.write_text(text + "def a(n):\\n    return n * n  # edited\\n")
sys.exit({code})
"""


def test_the_editor_gets_the_prompt_and_gives_the_answer(tmp_path):
    editor = tmp_path / "my editor"
    seen = tmp_path / "seen"
    editor.write_text(EDITOR.format(python=sys.executable, seen=str(seen), code=0))
    editor.chmod(0o755)
    terminal = Terminal("--anum", "A000290", cwd=tmp_path, VISUAL=f"'{editor}' --wait", EDITOR="/bin/false")
    terminal.read_until("# edited")
    terminal.read_until("solved, total reward 1.000")
    terminal.send("q\n")
    assert terminal.end() == 0
    template = seen.read_text()
    assert template.startswith("# Write a Python function a(n)") and "# Known terms: a(0)=0" in template
    assert all(line.startswith("#") or not line for line in template.splitlines())


@pytest.mark.parametrize(
    ("editor", "message"), [("/bin/false", "ended with 1"), ("no-such-editor", "cannot be start")]
)
def test_an_editor_that_fails(tmp_path, editor, message):
    terminal = Terminal("--anum", "A000290", cwd=tmp_path, EDITOR=editor)
    terminal.read_until(f"error: the editor '{editor}' {message}")
    assert terminal.end() == 2
