"""The command play: a person answers a task, as a model would, and sees every reward with its reason.

It knows tasks and grades only, whatever the environment; the answer runs in the sandbox like any model's.
"""

import argparse
import ast
import contextlib
import dataclasses
import os
import random
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rlvr import cycles, environment, layers
from rlvr.config import RunConfig, TrainConfig
from rlvr.environment import Environment, Task
from rlvr.errors import RlvrError
from rlvr.records import Grade

if TYPE_CHECKING:
    from rich.console import Console

NUM_RANDOM_TASKS = 1000
BELOW = "# ---- your answer below this line ----"
MAX_CELL_CHARS = 44
COLOURS = {"solved": "green", "partial": "yellow", "truncated": "yellow", "timeout": "yellow"}
"""Of an outcome; any other is red."""


def config_of(args: argparse.Namespace) -> RunConfig:
    """The config of the model that was named, else the defaults, with the flags of these commands on top."""
    config: RunConfig = RunConfig()
    if args.model:
        config, _ = layers.resolve_for(cycles.model_dir(args.model), TrainConfig)
    given = {
        "environment": args.environment,
        "corpus_dir": args.corpus,
        "seed": args.seed,
        "show_name": False if args.hide_name else None,
    }
    return dataclasses.replace(config, **{key: value for key, value in given.items() if value is not None})


def task_arguments(parser: argparse.ArgumentParser) -> None:
    """Which tasks, and how they are asked: what play and corpus preview share."""
    parser.add_argument(
        "--task",
        "--anum",
        dest="ids",
        nargs="+",
        metavar="ID",
        help="tasks by id, such as A000290; default: random ones",
    )
    parser.add_argument("--seed", type=int, help="choose the random tasks by this")
    parser.add_argument("--style", choices=("full", "compact"), default="full", help="wording of the prompt")
    parser.add_argument("--hide-name", action="store_true", help="leave out the name of the task")
    parser.add_argument("--corpus", metavar="DIR", help="folder of .seq files; default oeisdata/, else the sample")


def play_arguments(parser: argparse.ArgumentParser) -> None:
    task_arguments(parser)
    parser.add_argument("--environment", metavar="NAME", help="where the tasks come from; default oeis")
    parser.add_argument(
        "--answer", metavar="FILE", help="take the answer from this file, - for standard input, and ask nothing"
    )
    parser.add_argument("--json", action="store_true", help="print prompt and grade of each task; asks nothing")


def play(args: argparse.Namespace) -> int:
    config = config_of(args)
    env = environment.load(config.environment)
    env.configure(config)
    is_asking = sys.stdin.isatty() and not args.answer and not args.json
    if args.ids:
        tasks = env.tasks_by_id(config, args.ids)
    else:
        if args.seed is None:
            config = dataclasses.replace(config, seed=random.randrange(2**31))
        limit = NUM_RANDOM_TASKS if is_asking else 1
        tasks = env.build_tasks(config, split="train", limit=limit, progress=False)
    if is_asking:
        return _play_in_turn(env, tasks, args.style)
    answer = as_completion(read_answer(args.answer))
    grades = env.grade(tasks, [answer] * len(tasks), [False] * len(tasks))
    if args.json:
        lines = [
            {"task": task.id, "prompt": task.prompt_text(args.style), "grade": msgspec.to_builtins(grade)}
            for task, grade in zip(tasks, grades, strict=True)
        ]
        print(msgspec.json.format(msgspec.json.encode(lines), indent=2).decode())
        return 0
    console = wide_console()
    for task, grade in zip(tasks, grades, strict=True):
        print_prompt(console, task, args.style)
        print_grade(console, grade)
    return 0


def wide_console() -> "Console":
    """As wide as the terminal; a pipe gets lines that are not folded at 80."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(width=160, highlight=False)


# ---------------------------------------------------------------------------------------------------------------------
# A person at a terminal


def _play_in_turn(env: Environment, tasks: Sequence[Task], style: str) -> int:
    """Task by task, until there is none left or the person has enough."""
    console = wide_console()
    for place, task in enumerate(tasks):
        is_last = place == len(tasks) - 1
        print_prompt(console, task, style)
        choice = "t"
        while choice == "t":
            answer = ask_answer(task, style)
            if answer is None:
                return 0
            (grade,) = env.grade([task], [as_completion(answer)], [False])
            print_grade(console, grade)
            choice = ask_choice(console, env, task, is_last)
        if choice == "q":
            return 0
    return 0


def ask_choice(console: "Console", env: Environment, task: Task, is_last: bool) -> str:
    """What to do now: "t" try again, "n" next, "q" quit; a known-good answer is shown here."""
    offers = {"t": "[t]ry again", "n": "[n]ext task", "s": "[s]how a known-good answer", "q": "[q]uit"}
    if is_last:
        del offers["n"]
    while True:
        try:
            typed = input(f"{', '.join(offers.values())}: ").strip().lower()[:1]
        except EOFError:
            print()
            return "q"
        if typed == "s":
            show_known_good(console, env, task)
        elif typed in offers:
            return typed


def show_known_good(console: "Console", env: Environment, task: Task) -> None:
    from rich.syntax import Syntax

    known = {}
    if isinstance(env, environment.Validated):
        known = {each.id: answer for each, answer in env.known_good()}
    if task.id in known:
        console.print(Syntax(known[task.id], "markdown", background_color="default", word_wrap=True))
    else:
        console.print(f"No known-good answer for {task.id}.")


def ask_answer(task: Task, style: str) -> str | None:
    """Let a person write an answer, in their editor if they have set one; None when they want no more."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if editor:
        return edit_answer(editor, task.prompt_text(style))
    print("Your answer, ended by a line with a single dot (set $EDITOR to write it there):")
    lines: list[str] = []
    with contextlib.suppress(EOFError):
        while (line := input()) != ".":
            lines.append(line)
        return "\n".join(lines)
    print()
    return "\n".join(lines) if lines else None


def edit_answer(editor: str, prompt: str) -> str | None:
    """Open a file with the prompt as comments; what stands below them when the editor ends is the answer.

    Raises:
        RlvrError: when the editor cannot be started.
    """
    comments = "".join(f"# {line}".rstrip() + "\n" for line in prompt.splitlines())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer.py"
        file.write_text(f"{comments}{BELOW}\n\n", encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(editor), str(file)])
        except (OSError, ValueError) as error:
            raise RlvrError(f"the editor {editor!r} cannot be started ({error}): set $EDITOR to another one") from None
        if done.returncode:
            raise RlvrError(f"the editor {editor!r} ended with {done.returncode}: nothing was graded")
        text = file.read_text(encoding="utf-8", errors="replace")
    answer = text.partition(BELOW)[2] if BELOW in text else text
    return answer.strip("\n") or None


# ---------------------------------------------------------------------------------------------------------------------
# Answers


def read_answer(file: str | None) -> str:
    """The text of an answer from a file, or from standard input."""
    if file in (None, "-"):
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise RlvrError(f"{file} cannot be read ({error.strerror}): name the file of an answer") from None


def as_completion(answer: str) -> str:
    """Put a bare Python program into a code block, as a model would; any other text stays as it is."""
    try:
        body = ast.parse(answer).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return answer
    is_program = any(not isinstance(statement, ast.Expr) for statement in body)
    return f"```python\n{answer.strip()}\n```" if is_program else answer


# ---------------------------------------------------------------------------------------------------------------------
# What is shown


def print_prompt(console: "Console", task: Task, style: str) -> None:
    from rich.rule import Rule
    from rich.text import Text

    console.print(Rule(Text(task.id)))
    console.print(Text(task.prompt_text(style)))
    console.print()


def print_grade(console: "Console", grade: Grade) -> None:
    """Everything that is known of a graded answer."""
    from rich.syntax import Syntax
    from rich.table import Table
    from rich.text import Text

    if grade.function:
        console.print(Syntax(grade.function.strip("\n"), "python", background_color="default", word_wrap=True))
        console.print()
    total = "not scored" if grade.reward is None else f"total reward {grade.reward:.3f}"
    console.print(Text.assemble((grade.outcome, f"bold {COLOURS.get(grade.outcome, 'red')}"), f", {total}"))
    rewards = Table("reward", "value", "reason", box=None, pad_edge=False, header_style="bold")
    rewards.columns[1].justify = "right"
    for reward in grade.rewards:
        value = "-" if reward.value is None else f"{reward.value:+.3f}"
        rewards.add_row(Text(reward.name), value, Text(reward.reason))
    console.print(rewards)
    console.print()
    checks = Table("", "shown?", "expected", "got", "match", box=None, pad_edge=False, header_style="bold")
    for column in checks.columns[2:4]:
        column.justify = "right"
    for check in grade.checks:
        mark = Text("yes", "green") if check.passed else Text("no", "red")
        shown = "shown" if check.shown else "hidden"
        checks.add_row(Text(check.label), shown, Text(shorten(check.expected)), Text(shorten(check.got)), mark)
    console.print(checks)
    if grade.error:
        console.print(Text.assemble(("\n" + grade.verdict, "bold red"), f": {grade.error}"))
    console.print()


def shorten(text: str) -> str:
    """A long number by its two ends and its length; the whole is in --json."""
    if len(text) <= MAX_CELL_CHARS:
        return text
    end = (MAX_CELL_CHARS - 20) // 2
    return f"{text[:end]}...{text[-end:]} ({len(text):,} long)"
