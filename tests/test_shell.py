"""Shell completion as a shell asks for it, and the overview of commands."""

import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

import rlvrctl

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
