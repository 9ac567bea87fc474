"""The commands that an installation has, and what a wheel holds of the project."""

import os
import subprocess
import sys
import tomllib

import pytest

COMMANDS = {"rlvrctl": "rlvrctl:main", "rlvrviz": "rlvrviz:main", "rlvrtui": "rlvrtui:main"}


def run_command(root, folder, name: str, *arguments: str, **options) -> subprocess.Popen[str]:
    """What the command of an installation does, in a folder that has nothing to do with it."""
    module, _, function = COMMANDS[name].partition(":")
    code = f"import sys; from {module} import {function}; sys.exit({function}())"
    env = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", code, *arguments],
        cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def test_the_programs_are_commands(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())
    assert project["project"]["scripts"] == COMMANDS
    assert set(COMMANDS) <= set(project["tool"]["setuptools"]["py-modules"])


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_works_in_any_folder(root, tmp_path, name):
    out, err = run_command(root, tmp_path, name, "--help").communicate(timeout=600)
    assert "usage:" in out and not err
    process = run_command(root, tmp_path, name, "--no-such-option")
    out, err = process.communicate(timeout=600)
    assert process.returncode == 2 and "Traceback" not in err


def test_a_command_ends_quietly_when_its_reader_has_seen_enough(root, tmp_path):
    process = run_command(root, tmp_path, "rlvrctl", "completion", "bash")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=600) == 0 and process.stderr.read() == ""
    process.stderr.close()


def test_what_is_imported_or_read_is_in_the_package(root):
    """Files that are no modules, but those that `package-data` names, would be missing from a wheel."""
    data = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["rlvr"]
    named = {path for pattern in data for path in (root / "rlvr").glob(pattern)}
    files = [path for path in (root / "rlvr").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert [path for path in files if path.suffix != ".py" and path not in named] == []
    for folder in {path.parent for path in files if path.suffix == ".py"}:
        assert (folder / "__init__.py").exists(), folder
