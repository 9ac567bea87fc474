"""The arrows of the house: a fresh interpreter per module, and what must not have been imported with it."""

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "transformers", "trl", "peft", "datasets", "unsloth", "accelerate"}
PROGRAMS = {"oeis_parser", "oeis_rlvr", "gemma4_oeis_rlvr", "eval_oeis", "rlvrctl", "rlvrviz", "rlvrtui"}
MAY_BE_HEAVY = {"rlvr.models", "rlvr.generation", "rlvr.grpo", "rlvr.tiny"}
"""The modules that work with a model; the lab is apart from the rest."""


def light_modules(root) -> list[str]:
    """Every program, and every module of the package but those that work with a model."""
    package = [
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((root / "rlvr").rglob("*.py"))
        if "lab" not in path.parts and path.stem not in ("alone", "zygote", "candidate")
    ]
    return sorted(PROGRAMS) + [name for name in package if name not in MAY_BE_HEAVY]


def imported_with(modules: str | list[str], root) -> set[str]:
    names = modules if isinstance(modules, str) else ", ".join(modules)
    code = f"import json, sys; import {names}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_whatever_is_light_stays_light(root):
    modules = light_modules(root)
    assert len(modules) > 60
    if imported_with(modules, root) & HEAVY:
        assert [name for name in modules if imported_with(name, root) & HEAVY] == []


@pytest.mark.parametrize("module", sorted(PROGRAMS))
def test_a_program_starts_light(module, root):
    assert not imported_with(module, root) & HEAVY


def test_help_needs_little(root):
    assert not imported_with("rlvrctl", root) & {"rich", "textual", "msgspec", "psutil", "numpy"}
    for module in ("rlvrviz", "rlvrtui"):
        assert "textual" not in imported_with(module, root), module


def test_the_parser_is_a_leaf(root):
    standard = set(sys.stdlib_module_names)
    baseline = imported_with("json", root)
    own = {name.partition(".")[0] for name in imported_with("oeis_parser", root) - baseline}
    assert own - standard == {"oeis_parser"}


@pytest.mark.parametrize(
    "module", ["rlvr.corpus", "rlvr.sandbox.grader", "rlvr.environment", "rlvr.curriculum", "rlvr.statistics"]
)
def test_shared_modules_import_no_program(module, root):
    allowed = {"oeis_parser"} if module == "rlvr.corpus" else set()
    assert imported_with(module, root) & PROGRAMS <= allowed


def test_nothing_but_the_environment_knows_oeis(root):
    for module in ("rlvr.environment", "rlvr.records", "rlvr.curriculum", "gemma4_oeis_rlvr", "eval_oeis"):
        assert not imported_with(module, root) & {"oeis_rlvr", "rlvr.corpus", "oeis_parser"}, module
