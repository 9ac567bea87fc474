"""Shell completion as a shell asks for it, and the overview of commands."""

import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

import rlvrctl
from rlvr.cli import parsers_below

SCRIPT = """
export PATH="$1:$2:$PATH"
eval "$(rlvrctl.py completion bash)"
complete_line() {
    local COMP_LINE="$1" COMP_POINT=${#1} COMP_TYPE=9
    COMP_WORDS=($1); [[ "$1" == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
    _python_argcomplete rlvrctl.py "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    echo "${COMPREPLY[*]}"
}
shift 2
for line in "$@"; do complete_line "$line"; done
"""


@pytest.fixture
def tree(tmp_path):
    for name in ("tall", "thin"):
        (tmp_path / "training" / name).mkdir(parents=True)
        (tmp_path / "training" / name / "model.toml").touch()
    for number in ("001", "002"):
        (tmp_path / "training/tall" / number).mkdir()
    (tmp_path / "training/tall/001/adapter").mkdir()
    (tmp_path / "training/tall/001/adapter/adapter_config.json").touch()
    (tmp_path / "training/.last-model").write_text("tall\n")
    return tmp_path


ANSWER = """
import json, os, sys, tempfile
import argcomplete, rlvrctl

class Left(Exception):
    pass

def leave(code):
    raise Left

answers = []
for line in json.load(sys.stdin):
    with tempfile.NamedTemporaryFile("r") as file:
        os.environ |= {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": file.name, "_ARGCOMPLETE_IFS": " "}
        os.environ |= {"_ARGCOMPLETE_SUPPRESS_SPACE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
        finder = argcomplete.CompletionFinder()
        argcomplete.autocomplete = lambda parser: finder(parser, exit_method=leave)
        try:
            rlvrctl.main([])
        except Left:
            answers.append(file.read().split(" "))
json.dump(answers, sys.stdout)
"""
"""Complete lines by the protocol of argcomplete, which a shell would start a process for each time."""

OFFERED = [
    ("config set ", "learning_rate= num_tasks=", "training"),
    ("config set --for eval temp", "temperature=", "kl_beta="),
    ("config set loss_type=d", "loss_type=dr_grpo loss_type=dapo", "loss_type=grpo"),
    ("config show ", "learning_rate num_tasks", "learning_rate= training"),
    ("config unset ", "learning_rate", "training"),
    ("config diff ", "latest 001", "training"),
    ("config diff --model thin ", "latest", "001 training"),
    ("config set --scope ", "global ephemeral", "training"),
    ("preset show ", "tiny mine", "tiny.toml training"),
    ("preset apply ", "tiny mine", "training"),
    ("preset save ", "", "training"),
    ("train --loss-type ", "dr_grpo", "training"),
    ("train --show-name ", "true false", "training"),
    ("train --environment ", "oeis", "training"),
    ("train -o show_name=", "show_name=true show_name=false", "training"),
    ("train --corpus-dir ", "training", ""),
    ("init --environment ", "oeis", "training"),
    ("validate --environment ", "oeis", "training"),
    ("colab push ", "001", "training"),
    ("colab train --prompt-style ", "compact", "training"),
]
"""What is typed, some of what is offered then, and what is not."""


@pytest.mark.skipif(shutil.which("bash") is None, reason="it is what finds the names of files")
def test_what_is_offered_below_a_command(tree):
    (tree / "training/presets").mkdir()
    (tree / "training/presets/mine.toml").touch()
    (tree / "training/presets/tiny.toml").touch()  # never used: the name is a built-in one's
    lines = json.dumps([f"rlvrctl.py {line}" for line, _, _ in OFFERED])
    command = [sys.executable, "-c", ANSWER]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, input=lines, env=environment, cwd=tree, capture_output=True, text=True, timeout=300)
    answers = [{each.rstrip("/") for each in found} for found in json.loads(done.stdout)]
    for (line, some, none), found in zip(OFFERED, answers, strict=True):
        assert set(some.split()) <= found and not set(none.split()) & found, (line, found)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_is_offered_commands_options_models_and_runs(tree):
    lines = ("rlvrctl.py tr", "rlvrctl.py train --learn", "rlvrctl.py ps --model ", "rlvrctl.py kill ")
    lines += ("rlvrctl.py train --parent ", "rlvrctl.py kill --model thin ", "rlvrctl.py init --preset smol")
    python = str(ROOT / "rlvrctl.py")
    own = tree / "bin"
    own.mkdir()
    (own / "rlvrctl.py").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{python}" "$@"\n')
    (own / "rlvrctl.py").chmod(0o755)
    command = ["bash", "--norc", "-c", SCRIPT, "bash", str(own), str(ROOT), *lines]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=600)
    answers = [set(line.split()) for line in done.stdout.splitlines()]
    assert len(answers) == len(lines), done.stderr
    assert answers[0] == {"train", "trace"}
    assert answers[1] == {"--learning-rate"}
    assert answers[2] == {"tall", "thin"}
    assert {"latest", "live", "001", "002", "--force"} <= answers[3]
    assert answers[4] == {"base", "latest", "001"}
    assert "001" not in answers[5]
    assert answers[6] == {"smollm2-135m"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_code_for_our_program(program, shell):
    done = program("rlvrctl.py", "completion", shell)
    assert done.returncode == 0 and "rlvrctl.py" in done.stdout


def test_help_names_every_command_and_a_misspelt_one_gets_the_nearest(program):
    overview = program("rlvrctl.py", "--help")
    assert overview.returncode == 0
    for name, (_, summary) in rlvrctl.COMMANDS.items():
        assert f"  {name} " in overview.stdout and summary in overview.stdout
    wrong = program("rlvrctl.py", "trian")
    assert wrong.returncode == 2 and wrong.stderr == "error: no command 'trian': did you mean 'train'?\n"
    strange = program("rlvrctl.py", "xyzzy")
    assert strange.returncode == 2 and "--help lists them" in strange.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "--learning-rte", "1"), "unknown option --learning-rte: did you mean --learning-rate?"),
        (("ps", "--xyzzy"), "unknown option --xyzzy: rlvrctl.py ps --help tells what it takes"),
        (("config", "shwo"), "did you mean show?"),
        (("completion", "fsh"), "did you mean fish?"),
        (("kill",), "the following arguments are required: RUN: rlvrctl.py kill --help tells what it takes"),
        (("auto", "--rounds", "x"), "argument --rounds: invalid int value: 'x'"),
    ],
)
def test_a_misspelt_option_or_choice_is_one_line_with_the_nearest(program, arguments, message):
    done = program("rlvrctl.py", *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert message in done.stderr


@pytest.mark.parametrize("name", rlvrctl.COMMANDS)
def test_every_command_has_help_with_examples_that_parse(name, capsys):
    with pytest.raises(SystemExit) as end:
        rlvrctl.main([name, "--help"])
    assert end.value.code == 0
    printed = capsys.readouterr().out
    examples = rlvrctl.find_command(name).examples
    assert "examples:" in printed and examples
    for action, parser in parsers_below(rlvrctl.make_parser(name)).items():
        assert "example" in parser.format_help() or name == "colab", action
    for example in examples:
        assert example in printed
        for words in commands_in(example):
            assert rlvrctl.make_parser(words[0]).parse_args(words[1:]).run_command


def commands_in(line):
    """The commands of ours in a line of shell, without its pipes, redirections, substitutions and comments."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    found, words = [], []
    for token in [*lexer, ";"]:
        if set(token) <= set("();<>|&"):
            found.append(words)
            words = []
        else:
            words.append(token)
    return [words[1:] for words in found if words and words[0].endswith("rlvrctl.py") and words[1] in rlvrctl.COMMANDS]
