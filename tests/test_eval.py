"""The held-out evaluation, as a user runs it: the tiny model and random adapters of it, on the bundled sample."""

import hashlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import combinations

import pytest
import warm
from conftest import ROOT
from msgspec.structs import asdict, replace

from rlvr import comparison, records
from rlvr.config import EvalConfig, read_layer
from rlvr.errors import RlvrError
from rlvr.records import Check, Completion, Evaluation, Interval

NUM_TASKS = 12
SMALL = ("--preset", "tiny", "--corpus-dir", ROOT / "rlvr/assets/sample", "--sandbox-workers", 1)


@pytest.fixture(scope="module")
def adapters(tmp_path_factory):
    """Two adapters of the tiny model: `mild` moves it a little, `wild` a lot."""
    import torch

    from rlvr.models import load_policy

    folder = tmp_path_factory.mktemp("adapters")
    for seed, (name, scale) in enumerate({"mild": 0.05, "wild": 0.3}.items()):
        model = load_policy(
            "tiny", max_seq_length=512, lora_rank=4, lora_alpha=8, trainable=True, seed=seed, threads=1
        ).model
        torch.manual_seed(seed)
        with torch.no_grad():
            for weight_name, weight in model.named_parameters():
                if ".lora_B." in weight_name:
                    weight.normal_(0, scale)
        model.save_pretrained(folder / name)
    return folder


def command(*flags):
    return [str(part) for part in (sys.executable, ROOT / "eval_oeis.py", *SMALL, *flags)]


def evaluate(cwd, *flags, num_tasks=NUM_TASKS):
    done = warm.run([ROOT / "eval_oeis.py", *SMALL, "-n", num_tasks, *flags], cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done


def read(folder):
    lines = list(records.read_lines(folder / "completions.jsonl", Completion))
    return records.read(folder / "eval.json", Evaluation), lines


def without_clock(participant):
    return {name: value for name, value in asdict(participant).items() if name != "seconds"}


def lines_of(lines, name):
    """A participant's lines without what a clock says."""
    return [replace(line, time=0, cpu_s=0) for line in lines if line.participant == name]


@pytest.fixture(scope="module")
def greedy(adapters, tmp_path_factory):
    """A greedy evaluation of the base and both adapters: its folder and what it printed."""
    folder = tmp_path_factory.mktemp("greedy")
    done = evaluate(folder, "--adapters", "base", adapters / "mild", adapters / "wild", "--out", "out")
    return folder / "out", done


@pytest.mark.slow
def test_every_number_follows_from_the_completions(greedy, adapters):
    evaluation, lines = read(greedy[0])
    assert [person.name for person in evaluation.participants] == ["base", "mild", "wild"]
    assert len(evaluation.tasks) == len(set(evaluation.tasks)) == NUM_TASKS
    assert len(lines) == 3 * NUM_TASKS
    for person in evaluation.participants:
        own = {line.task: line for line in lines if line.participant == person.name}
        assert set(own) == set(evaluation.tasks) == set(person.scores)
        solved = sum(line.outcome == "solved" for line in own.values())
        assert person.solved.estimate == pytest.approx(solved / NUM_TASKS)
        assert person.outcomes.get("solved", 0) == solved
        assert sum(person.outcomes.values()) == NUM_TASKS
        matches = [
            sum(check.passed for check in line.checks if not check.shown)
            / sum(not check.shown for check in line.checks)
            for line in own.values()
            if line.outcome != "disallowed_import"
        ]
        assert person.mean_holdout_match.estimate == pytest.approx(math.fsum(matches) / NUM_TASKS)
        assert person.truncated == sum(line.truncated for line in own.values())
        assert person.tokens == sum(line.tokens for line in own.values())
        assert person.pass_at == {"1": person.solved}
        for line in own.values():
            assert evaluation.tasks[line.group] == line.task
            assert all(check.shown == (number < 10) for number, check in enumerate(line.checks))
    for difference in evaluation.differences:
        first, second = (
            {line.task for line in lines if line.participant == name and line.outcome == "solved"}
            for name in (difference.first, difference.second)
        )
        if difference.metric == "solved":
            assert set(difference.won) == second - first and set(difference.lost) == first - second
            assert difference.difference.estimate == pytest.approx((len(second) - len(first)) / NUM_TASKS)
        assert len(difference.won) + len(difference.lost) + difference.tied == NUM_TASKS
        assert difference.difference.low <= difference.difference.estimate <= difference.difference.high
    shas = [
        hashlib.sha256((adapters / n / "adapter_model.safetensors").read_bytes()).hexdigest() for n in ("mild", "wild")
    ]
    assert [person.sha256 for person in evaluation.participants] == ["", *shas]


@pytest.mark.slow
def test_all_participants_are_asked_the_same_and_answer_differently(greedy):
    _, lines = read(greedy[0])
    by_name = {
        name: {line.task: line for line in lines if line.participant == name} for name in ("base", "mild", "wild")
    }
    for task, line in by_name["base"].items():
        assert by_name["mild"][task].prompt == by_name["wild"][task].prompt == line.prompt
        assert by_name["mild"][task].group == line.group
    texts = {name: [line.completion for line in own.values()] for name, own in by_name.items()}
    assert texts["base"] != texts["mild"] != texts["wild"] != texts["base"]


@pytest.mark.slow
def test_the_report_says_what_was_compared_and_what_follows(greedy):
    folder, done = greedy
    evaluation, _ = read(folder)
    printed = done.stdout
    assert (
        f"HELD-OUT COMPARISON ({NUM_TASKS} unseen sequences, greedy, up to 64 new tokens, base model tiny" in printed
    )
    assert evaluation.title in printed
    for label in ("mean_holdout_match", "fully_solved", "produced_valid_fn", "lookups", "truncated", "infra (masked)"):
        assert label in printed
    assert len(evaluation.conclusions) == 2
    for sentence in evaluation.conclusions:
        assert sentence in printed
    assert "base: 12 of 12 completions" in done.stderr and "12 of 12 completions" not in printed
    for difference in evaluation.differences:
        for task in (*difference.won, *difference.lost):
            assert difference.metric != "solved" or task in printed


@pytest.mark.slow
def test_order_company_and_config_file_change_no_number(greedy, adapters, tmp_path):
    evaluation, lines = read(greedy[0])
    again = evaluate(
        tmp_path,
        "--config",
        greedy[0] / "config.toml",
        "--adapters",
        adapters / "wild",
        "base",
        "--json",
        "--out",
        "o",
    )
    swapped, other_lines = read(tmp_path / "o")
    assert json.loads(again.stdout) == json.loads((tmp_path / "o/eval.json").read_text())
    assert "HELD-OUT" in again.stderr
    before = {person.name: without_clock(person) for person in evaluation.participants}
    after = {person.name: without_clock(person) for person in swapped.participants}
    assert list(after) == ["wild", "base"]
    assert {name: before[name] for name in after} == after
    for name in after:
        assert lines_of(other_lines, name) == lines_of(lines, name)
    forth = {d.metric: d for d in evaluation.differences if d.second == "wild"}
    for back in swapped.differences:
        assert back.difference.estimate == pytest.approx(-forth[back.metric].difference.estimate, abs=1e-12)
        assert back.difference.low == pytest.approx(-forth[back.metric].difference.high, abs=1e-12)
        assert (back.won, back.lost) == (forth[back.metric].lost, forth[back.metric].won)
        assert back.p_value == forth[back.metric].p_value


@pytest.mark.slow
def test_the_snapshot_holds_every_key_and_where_it_came_from(greedy, adapters):
    _, values = read_layer(greedy[0] / "config.toml", EvalConfig)
    assert EvalConfig(**values).num_tasks == NUM_TASKS
    assert EvalConfig(**values).base_model == "tiny"
    text = (greedy[0] / "config.toml").read_text()
    assert 'num_tasks = "command line"' in text and 'max_new_tokens = "preset tiny"' in text
    assert "corpus_fingerprint" in text and "torch" in text
    assert hashlib.sha256((adapters / "wild/adapter_model.safetensors").read_bytes()).hexdigest() in text


@pytest.mark.slow
def test_cycles_by_number_equal_checkpoints_and_a_budget_that_does_not_fit(adapters, tmp_path):
    for number in ("001", "002"):
        shutil.copytree(adapters / "wild", tmp_path / "training/m" / number / "adapter")
    done = evaluate(
        tmp_path, "--model", "m", "--adapters", "base", "base", "2", "training/m/001", "-t", 3072, num_tasks=4
    )
    evaluation, lines = read(tmp_path / "evals/base_vs_base.2_vs_002_vs_001")
    assert [person.name for person in evaluation.participants] == ["base", "base.2", "002", "001"]
    same = [difference for difference in evaluation.differences if difference.second == "base.2"]
    assert [difference.difference for difference in same] == [Interval(0.0, 0.0, 0.0)] * 2
    assert all(difference.p_value == 1 and difference.tied == 4 for difference in same)
    assert evaluation.conclusions[0] == "base.2 and base are the same checkpoint."
    texts = {name: [line.completion for line in lines if line.participant == name] for name in ("base", "001", "002")}
    assert texts["001"] == texts["002"] != texts["base"]
    assert f"max_new_tokens lowered from 3072 to {evaluation.max_new_tokens}" in done.stderr
    assert 16 <= evaluation.max_new_tokens < 512
    assert max(line.tokens for line in lines) <= evaluation.max_new_tokens


@pytest.mark.slow
def test_samples_give_unbiased_pass_at_k_and_are_drawn_from_the_seed(adapters, tmp_path):
    flags = ("-k", 4, "--temperature", 1, "--adapters", "base", adapters / "mild")
    done = evaluate(tmp_path, *flags, "--out", "a", num_tasks=6)
    evaluation, lines = read(tmp_path / "a")
    assert "4 samples at temperature 1" in done.stdout and "pass@4" in done.stdout
    assert evaluation.temperature == 1 and len(lines) == 2 * 6 * 4
    for person in evaluation.participants:
        own = [line for line in lines if line.participant == person.name]
        assert list(person.pass_at) == ["1", "2", "4"]
        for k in (1, 2, 4):
            shares = []
            for task in evaluation.tasks:
                solved = [line.outcome == "solved" for line in own if line.task == task]
                assert len(solved) == 4
                draws = [any(draw) for draw in combinations(solved, k)]
                shares.append(sum(draws) / len(draws))
            assert person.pass_at[str(k)].estimate == pytest.approx(sum(shares) / len(shares))
        assert sorted(line.sample for line in own) == sorted([0, 1, 2, 3] * 6)
        assert len({line.completion for line in own}) > 6
    evaluate(tmp_path, *flags[:4], "--adapters", adapters / "mild", "--out", "b", num_tasks=6)
    other, other_lines = read(tmp_path / "b")
    assert without_clock(other.participants[0]) == without_clock(evaluation.participants[1])
    assert lines_of(other_lines, "mild") == lines_of(lines, "mild")


@pytest.mark.slow
def test_alone_it_compares_the_base_with_the_trainers_folder(adapters, tmp_path):
    shutil.copytree(adapters / "mild", tmp_path / "gemma_4_oeis_lora")
    (tmp_path / "evals/base_vs_gemma_4_oeis_lora").mkdir(parents=True)
    done = evaluate(tmp_path, num_tasks=2)
    evaluation, _ = read(tmp_path / "evals/base_vs_gemma_4_oeis_lora.2")
    assert [person.name for person in evaluation.participants] == ["base", "gemma_4_oeis_lora"]
    assert "Saved evals/base_vs_gemma_4_oeis_lora.2/" in done.stdout
    assert list((tmp_path / "evals/base_vs_gemma_4_oeis_lora").iterdir()) == []


@pytest.mark.slow
def test_interrupted_it_keeps_whole_lines_and_leaves_no_eval_json(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/eval.json").write_text("an earlier one")
    process = subprocess.Popen(
        command("-n", 30, "-k", 64, "--batch-size", 8, "--adapters", "base", "--out", "out"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    file = tmp_path / "out/completions.jsonl"
    deadline = time.monotonic() + 600
    while not (file.exists() and file.stat().st_size) and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    # Ctrl-C reaches every process of a terminal's group, those that run candidates too.
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 130, stderr
    assert "Interrupted" in stderr and "completions.jsonl" in stderr and "Traceback" not in stderr
    assert not (tmp_path / "out/eval.json").exists() and not (tmp_path / "out/eval.json.tmp").exists()
    content = file.read_bytes()
    assert content.endswith(b"\n")
    assert 0 < len(list(records.read_lines(file, Completion))) == content.count(b"\n") < 30 * 64


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "gemma_4_oeis_lora: no adapter there"),
        (("--adapters", "base", "nowhere"), "no adapter 'nowhere'"),
        (("--adapters", "base", "007", "--model", "m"), "training/m/007"),
        (("--adapters", "base", "--batch-size", "many"), "batch_size = 'many' must be an integer"),
        (("--adapters", "base", "-k", "0"), "samples = 0 must be 1 to"),
        (("--adapters", "base", "--config", "absent.toml"), "absent.toml: no such file"),
        (("--adapters", "base", "--corpus-dir", "absent"), "absent"),
        (("--adapters", "base", "--environment", "oies"), "unknown environment 'oies'"),
        (("--adapters", "base", "--base-model", "google/gemma-4-31B-it"), "tiny"),
    ],
)
def test_what_a_user_can_get_wrong_is_one_line_and_leaves_nothing(tmp_path, flags, message):
    done = subprocess.run(command(*flags), cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert done.returncode == 2, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ") and message in last
    assert "Traceback" not in done.stderr and done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_key_in_a_config_file_is_named(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("sample = 4\n")
    done = subprocess.run(
        command("--adapters", "base", "--config", file), cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    assert f"{file}: unknown key 'sample': did you mean 'samples'?" in done.stderr


@pytest.mark.slow
def test_a_prompt_without_room_for_an_answer_is_named_by_its_sequence(tmp_path):
    narrow = ("--max-seq-length", 64, "--prompt-style", "full", "-n", 3)
    done = warm.run([ROOT / "eval_oeis.py", *SMALL, "--adapters", "base", *narrow], cwd=tmp_path)
    assert done.returncode == 2
    assert "leaves no room for an answer within 64" in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("error: A")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------------------
# The numbers of a comparison, without a model


def line(task, outcome, passed=0, hidden=4, **changes) -> Completion:
    checks = (Check("a(0)", "1", "1", True, True), *(Check("h", "1", "1", n < passed, False) for n in range(hidden)))
    values = dict(
        task=task, outcome=outcome, reward=0.0, rewards=(), function="", checks=checks, verdict="ok", step=0, group=0
    )
    return Completion(
        **{**values, "sample": 0, "prompt": "", "completion": "", "tokens": 5, "truncated": False, **changes}
    )


def summary(name, lines, tasks=("a", "b", "c"), samples=1, adapter="x"):
    return comparison.summarize(
        lines, tasks=tasks, samples=samples, name=name, adapter=adapter, sha256="", seconds=1.0
    )


def test_what_failed_on_our_side_leaves_every_denominator():
    person = summary("p", [line("a", "solved", 4), line("b", "partial", 1), line("c", "infra")])
    assert person.solved.estimate == 1 / 2
    assert person.mean_holdout_match.estimate == (1 + 0.25) / 2
    assert person.produced_valid_fn == 1.0
    assert person.infra == 1
    assert person.scores["c"].match is None
    other = summary("q", [line("a", "infra"), line("b", "solved", 4), line("c", "solved", 4)])
    difference = comparison.compare(person, other, "solved")
    assert (difference.num_tasks, difference.won, difference.lost, difference.tied) == (1, ["b"], [], 0)


def test_nothing_graded_is_an_error_and_no_zero():
    with pytest.raises(RlvrError, match="p: no task has enough graded completions"):
        summary("p", [line("a", "infra"), line("b", "infra"), line("c", "infra")])


def test_an_answer_that_breaks_the_rules_earns_no_match_and_is_no_valid_function():
    person = summary("p", [line("a", "disallowed_import", 4), line("b", "lookup", 0), line("c", "truncated", 0)])
    assert person.mean_holdout_match.estimate == 0
    assert person.produced_valid_fn == pytest.approx(1 / 3)
    assert person.lookups == 1


def test_pass_at_k_leaves_out_tasks_with_fewer_graded_samples():
    lines = [line("a", "solved", 4), line("a", "wrong"), line("b", "infra"), line("b", "wrong")]
    person = summary("p", lines, tasks=("a", "b"), samples=2)
    assert person.pass_at["1"].estimate == (0.5 + 0.0) / 2
    assert person.pass_at["2"].estimate == 1.0


@pytest.mark.parametrize(("samples", "ks"), [(1, [1]), (4, [1, 2, 4]), (10, [1, 2, 4, 8, 10]), (3, [1, 2, 3])])
def test_the_reported_ks(samples, ks):
    assert comparison.pass_ks(samples) == ks


def arms(both, first_only, second_only, neither):
    tasks = [str(number) for number in range(both + first_only + second_only + neither)]
    first = [True] * (both + first_only) + [False] * (second_only + neither)
    second = [True] * both + [False] * first_only + [True] * second_only + [False] * neither
    people = [
        summary(
            name, [line(t, "solved" if s else "wrong") for t, s in zip(tasks, solved, strict=True)], tasks, 1, name
        )
        for name, solved in (("old", first), ("new", second))
    ]
    return comparison.compare(*people, "solved")


@pytest.mark.parametrize(
    ("cells", "start"),
    [
        ((10, 1, 12, 17), "new solves more than old (+27.5 points"),
        ((10, 12, 1, 17), "new solves fewer than old (-27.5 points"),
        ((10, 3, 4, 23), "No difference between new and old that these 40 sequences could show (+2.5 points"),
        # Five wins of five: p = 0.0625, while the interval excludes 0.
        ((10, 0, 5, 25), "Borderline, new against old (+12.5 points"),
    ],
)
def test_the_sentence_follows_interval_and_test(cells, start):
    assert comparison.conclude(arms(*cells), "sequences").startswith(start)
