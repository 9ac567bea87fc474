"""What every program has in common: errors of one line, pipes that close early, Ctrl-C."""

import signal
import subprocess
import sys

import pytest
from conftest import ROOT

PROGRAMS = {
    "gemma4_oeis_rlvr.py": ("--max-stepz", "--max-steps"),
    "eval_oeis.py": ("--num-task", "--num-tasks"),
    "oeis_rlvr.py": ("--lim", "--limit"),
    "rlvrviz.py": ("--smoothin", "--smoothing"),
    "rlvrtui.py": ("--thme", "--theme"),
}
MODULES = {
    "rlvr.demo": ("--step", "--steps"),
    "rlvr.tiny score": ("--verbos", None),
    "rlvr.corpus": ("--ful", "--full"),
    "rlvr.lab": ("--modl", None),
}


def command_of(name: str) -> list[str]:
    module, *rest = name.split()
    return [sys.executable, *([str(ROOT / name)] if name in PROGRAMS else ["-m", module, *rest])]


@pytest.mark.parametrize("name", [*PROGRAMS, *MODULES])
def test_a_misspelt_or_shortened_option_is_one_line_with_the_nearest(name, tmp_path):
    misspelt, nearest = {**PROGRAMS, **MODULES}[name]
    done = subprocess.run(
        [*command_of(name), misspelt, "3"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    if nearest:
        assert done.stderr == f"error: unknown option {misspelt}: did you mean {nearest}?\n"


@pytest.mark.parametrize(
    "command",
    [
        "oeis_rlvr.py --limit 0",
        "-m rlvr.tiny score -n 0",
        "-m rlvr.tiny make --workers -1",
        "-m rlvr.demo --steps 0",
    ],
)
def test_what_is_counted_is_at_least_one(command, tmp_path):
    arguments = command.replace("oeis_rlvr.py", str(ROOT / "oeis_rlvr.py")).split()
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2 and "must be at least 1" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["oeis_rlvr.py --limit 300 --corpus SAMPLE", "-m rlvr.corpus SAMPLE"])
def test_a_reader_that_has_seen_enough_is_no_error(command, tmp_path):
    sample = str(ROOT / "rlvr/assets/sample")
    arguments = command.replace("oeis_rlvr.py", str(ROOT / "oeis_rlvr.py")).replace("SAMPLE", sample).split()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(timeout=120) == 0, errors
    assert "Traceback" not in errors and "BrokenPipe" not in errors


def test_ctrl_c_is_130_and_one_line(tmp_path):
    code = (
        "import sys, time\nfrom rlvr.arguments import run_program\n"
        "def main():\n    print('ready', flush=True)\n    time.sleep(300)\n"
        "sys.exit(run_program(main))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.read(6) == "ready\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (130, "Interrupted.\n")
