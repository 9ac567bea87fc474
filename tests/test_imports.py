"""The arrows of the house: a fresh interpreter per module, and what must not have been imported with it."""

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "transformers", "trl", "peft", "datasets", "unsloth", "accelerate"}
PROGRAMS = {"oeis_parser", "oeis_rlvr", "gemma4_oeis_rlvr", "eval_oeis"}
LIGHT = [
    *("oeis_parser", "oeis_rlvr", "gemma4_oeis_rlvr", "eval_oeis", "rlvr.config", "rlvr.records", "rlvr.cycles"),
    *("rlvr.curriculum", "rlvr.environment", "rlvr.corpus", "rlvr.sample", "rlvr.sandbox.grader", "rlvr.statistics"),
    *("rlvr.provenance", "rlvr.synthetic", "rlvr.demo", "rlvr.comparison", "rlvr.corpus_index", "rlvr.corpus_reader"),
]


def imported_with(module: str, root) -> set[str]:
    code = f"import json, sys; import {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("module", LIGHT)
def test_a_light_module_stays_light(module, root):
    assert not imported_with(module, root) & HEAVY


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
