"""compare and diff as a user types them, over a made-up training tree; every figure is checked against its records."""

import csv
import io
import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from training_tree import STARTED, make_eval, make_training_tree

import rlvrctl
from rlvr import records
from rlvr.config import EvalConfig, TrainConfig, resolve, write_snapshot
from rlvr.cycles import RunFiles
from rlvr.records import Evaluation, Step

NUM_STEPS = 30


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_training_tree(tmp_path, num_steps=NUM_STEPS, pid=0)


def ctl(tree: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "rlvrctl.py"), *arguments]
    done = subprocess.run(command, cwd=tree.parent, capture_output=True, text=True, timeout=300)
    assert done.returncode == code and "Traceback" not in done.stderr, done.stderr
    return done


def read_metrics(tree: Path, run: str) -> list[Step]:
    return list(records.read_lines(RunFiles(tree / run).metrics, Step))


# ---------------------------------------------------------------------------------------------------------------------
# compare


def test_the_figures_of_cycles_are_those_of_their_metrics(tree):
    first, second = json.loads(ctl(tree, "compare", "demo/001", "demo/002", "--json").stdout)
    steps = read_metrics(tree, "demo/002")
    assert (second["run"], second["state"], second["parent"]) == ("002", "done", "001")
    assert (second["steps"], second["max_steps"]) == (30, 30)
    assert second["reward_first"] == pytest.approx(statistics.fmean(step.reward for step in steps[:3]))
    assert second["reward_last"] == pytest.approx(statistics.fmean(step.reward for step in steps[-3:]))
    assert second["solved_first"] == pytest.approx(sum(step.outcomes["solved"] for step in steps[:3]) / 48)
    assert second["solved_last"] == pytest.approx(sum(step.outcomes["solved"] for step in steps[-3:]) / 48)
    for name in ("mixed", "all_right", "all_wrong", "truncated"):
        assert second[f"{name}_last"] == pytest.approx(statistics.fmean(getattr(step, name) for step in steps[-3:]))
    assert second["length_last"] == pytest.approx(statistics.fmean(step.length_mean for step in steps[-3:]))
    assert second["kl_last"] is None and first["kl_last"] > 0
    assert second["step_s"] == statistics.median(step.step_s for step in steps)
    assert second["wall_s"] == pytest.approx(sum(step.step_s for step in steps))
    assert second["tokens_per_s"] == pytest.approx(statistics.fmean(step.tokens_per_s for step in steps))
    assert (first["label"], first["parent"], first["unreadable"]) == ("cold start", "", 0)


def test_the_newest_evaluation_of_each_is_among_them(tree):
    first, third, other = json.loads(ctl(tree, "compare", "demo/001", "demo/003", "other/001", "--json").stdout)
    evaluation = records.read(RunFiles(tree / "demo/002/evals/base+001").evaluation, Evaluation)
    person = next(person for person in evaluation.participants if person.name == "001")
    assert first["run"] == "demo/001"  # two models: the name says which
    assert first["eval_run"] == "002/evals/base+001"
    assert first["eval_solved"]["estimate"] == person.solved.estimate
    difference = next(each for each in evaluation.differences if (each.second, each.metric) == ("001", "solved"))
    assert first["eval_against"] == "base"
    assert first["eval_difference"]["low"] == difference.difference.low
    assert third["eval_run"] == "003/evals/base"
    assert other["eval_run"] == "" and other["eval_solved"] is None
    # A newer one counts, and where a cycle comes first the difference is turned round.
    make_eval(tree / "demo/003/evals/001", {"003": 0.9, "001": 0.2}, started=STARTED, seed=3)
    third = json.loads(ctl(tree, "compare", "demo/003", "--json").stdout)[0]
    evaluation = records.read(RunFiles(tree / "demo/003/evals/001").evaluation, Evaluation)
    difference = next(each.difference for each in evaluation.differences if each.metric == "solved")
    assert (third["eval_run"], third["eval_against"]) == ("003/evals/001", "001")
    assert third["eval_difference"] == {
        "estimate": -difference.estimate,
        "low": -difference.high,
        "high": -difference.low,
    }
    assert third["eval_difference"]["estimate"] > 0


def test_a_run_whose_rewards_are_nan(tree):
    found = json.loads(ctl(tree, "compare", "other/001", "--json").stdout)[0]
    assert found["reward_last"] is None and found["reward_first"] is not None
    assert found["infra"] == 3 * 16


def test_lines_that_cannot_be_read_are_counted(tree):
    with RunFiles(tree / "demo/001").metrics.open("a") as metrics:
        metrics.write("nonsense\n[]\n")
    assert json.loads(ctl(tree, "compare", "demo/001", "--json").stdout)[0]["unreadable"] == 2
    assert "unreadable lines" in ctl(tree, "compare", "demo/001").stdout


def test_every_form_shows_the_same(tree):
    figures = json.loads(ctl(tree, "compare", "demo/001", "demo/002", "--json").stdout)
    lines = list(csv.DictReader(io.StringIO(ctl(tree, "compare", "demo/001", "demo/002", "--csv").stdout)))
    assert [line["run"] for line in lines] == ["001", "002"]
    assert float(lines[1]["reward_last"]) == figures[1]["reward_last"]
    assert float(lines[0]["eval_solved_low"]) == figures[0]["eval_solved"]["low"]
    assert lines[1]["kl_last"] == ""
    table = ctl(tree, "compare", "demo/001", "demo/002").stdout
    page = ctl(tree, "compare", "demo/001", "demo/002", "--md").stdout
    assert page.splitlines()[:2] == ["|  | 001 | 002 |", "| --- | ---: | ---: |"]
    for text in (f"{figures[0]['reward_last']:+.3f}", f"{figures[1]['solved_last']:.1%}", "30 of 30"):
        assert text in table and text in page
    row = next(line for line in table.splitlines() if line.startswith("reward at last"))
    assert row.split()[3:] == [f"{each['reward_last']:+.3f}" for each in figures]


def test_the_participants_of_evaluations(tree):
    done = ctl(tree, "compare", "demo/003/evals/base", "demo/002/evals/base+001", "--json")
    people = json.loads(done.stdout)
    assert [(person["run"], person["participant"]) for person in people] == [
        ("003/evals/base", "base"),
        ("003/evals/base", "003"),
        ("002/evals/base+001", "base"),
        ("002/evals/base+001", "001"),
        ("002/evals/base+001", "002"),
    ]
    evaluation = records.read(RunFiles(tree / "demo/003/evals/base").evaluation, Evaluation)
    assert people[1]["solved"]["high"] == evaluation.participants[1].solved.high
    assert people[1]["pass_at"]["4"]["estimate"] == evaluation.participants[1].pass_at["4"].estimate
    assert people[1]["difference"]["estimate"] == pytest.approx(
        people[1]["solved"]["estimate"] - people[0]["solved"]["estimate"]
    )
    assert people[0]["difference"] is None and people[1]["against"] == "base"
    assert done.stderr == ""
    assert "pass@4" in ctl(tree, "compare", "demo/003/evals/base").stdout


def test_evaluations_of_different_tasks_are_not_compared_in_silence(tree):
    file = RunFiles(tree / "demo/003/evals/base").evaluation
    document = json.loads(file.read_text())
    document["tasks"] = document["tasks"][::-1]
    file.write_text(json.dumps(document))
    done = ctl(tree, "compare", "demo/003/evals/base", "demo/002/evals/base+001", "--json")
    assert "different tasks" in done.stderr


def test_an_auto_run_stands_for_its_cycles(tree):
    assert [each["run"] for each in json.loads(ctl(tree, "compare", "demo/auto/001", "--json").stdout)] == [
        "001",
        "002",
    ]


def test_what_cannot_be_compared(tree):
    assert "either cycles or evaluations" in ctl(tree, "compare", "demo/001", "demo/003/evals/base", code=2).stderr
    RunFiles(tree / "demo/003/evals/base").evaluation.unlink()
    assert "has no result yet" in ctl(tree, "compare", "demo/003/evals/base", code=2).stderr
    # A cycle that has not begun has a column of dashes.
    assert json.loads(ctl(tree, "compare", "demo/004", "--json").stdout)[0]["steps"] == 0
    assert "pending" in ctl(tree, "compare", "demo/001", "demo/004").stdout


# ---------------------------------------------------------------------------------------------------------------------
# diff


def snapshot(tree: Path, run: str, values: dict, provenance: dict, config_class=TrainConfig) -> None:
    config, origins = resolve(config_class, [("training.toml", values)])
    write_snapshot(RunFiles(tree / run).config, config, origins, provenance)


def test_only_what_differs_with_its_layer_on_both_sides(tree):
    snapshot(tree, "demo/001", {"seed": 7}, {"torch": "2.13.0", "corpus_fingerprint": "aa", "unsloth": "1"})
    snapshot(tree, "demo/002", {"learning_rate": 1e-4, "seed": 7}, {"torch": "2.12.0", "corpus_fingerprint": "aa"})
    default = TrainConfig().learning_rate
    assert json.loads(ctl(tree, "diff", "demo/001", "demo/002", "--json").stdout) == [
        {
            "table": "config",
            "key": "learning_rate",
            "first": {"value": default, "origin": "default"},
            "second": {"value": 1e-4, "origin": "training.toml"},
        },
        {
            "table": "provenance",
            "key": "torch",
            "first": {"value": "2.13.0", "origin": ""},
            "second": {"value": "2.12.0", "origin": ""},
        },
        {"table": "provenance", "key": "unsloth", "first": {"value": "1", "origin": ""}, "second": None},
    ]
    lines = ctl(tree, "diff", "demo/001", "demo/002").stdout.splitlines()
    row = next(line for line in lines if line.startswith("learning_rate"))
    assert "(default)" in row and row.split()[-2:] == ["0.0001", "(training.toml)"]
    at = lines.index("Versions and data, only in 001:")
    assert lines[at + 1] == '  unsloth = "1"'
    assert not any("seed" in line or "fingerprint" in line for line in lines)


def test_nothing_differs(tree):
    done = ctl(tree, "diff", "demo/002", "demo/002")
    assert done.stdout == "demo/002 and demo/002 ran with the same config, versions and data.\n"
    assert json.loads(ctl(tree, "diff", "demo/002", "demo/002", "--json").stdout) == []


def test_a_cycle_and_an_evaluation(tree):
    snapshot(tree, "demo/003/evals/base", {"samples": 4}, {}, EvalConfig)
    found = json.loads(ctl(tree, "diff", "demo/001", "demo/003/evals/base", "--json").stdout)
    alone = {each["key"] for each in found if each["second"] is None and each["table"] == "config"}
    assert "learning_rate" in alone and "seed" not in alone
    assert next(each for each in found if each["key"] == "samples")["first"] is None


def test_a_run_without_a_config_of_its_own(tree):
    assert "config.toml: no such file" in ctl(tree, "diff", "demo/001", "demo/004", code=2).stderr
    RunFiles(tree / "demo/002").config.write_text("seed = \n")
    assert "config.toml: not valid TOML" in ctl(tree, "diff", "demo/001", "demo/002", code=2).stderr


# ---------------------------------------------------------------------------------------------------------------------
# The page


def test_every_command_stands_in_the_reference():
    page = (ROOT / "docs/rlvrctl.md").read_text(encoding="utf-8")
    for name in rlvrctl.COMMANDS:
        assert f"\n| `{name}" in page, name


def test_every_figure_stands_in_the_reference(tree):
    page = (ROOT / "docs/rlvrctl.md").read_text(encoding="utf-8")
    for run in ("demo/001", "demo/003/evals/base"):
        for name in json.loads(ctl(tree, "compare", run, "--json").stdout)[0]:
            assert f"`{name}`" in page, name
