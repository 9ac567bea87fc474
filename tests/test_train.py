"""One GRPO cycle, as a user runs it: real steps of the tiny model on the bundled sample, in real processes."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import warm
from conftest import ROOT
from msgspec.structs import asdict, replace
from tiny_gemma4 import make_tiny_gemma4

from rlvr import records
from rlvr.config import TrainConfig, keys
from rlvr.cycles import RunFiles, StandaloneFiles
from rlvr.errors import RlvrError
from rlvr.records import Completion, Outcomes, Status, Step

SMALL = (
    *(
        "--preset",
        "tiny",
        "--corpus-dir",
        ROOT / "rlvr/assets/sample",
        "--prompts-per-step",
        4,
        "--num-generations",
        4,
    ),
    *("--completions-per-forward", 8, "--baseline-tasks", 2, "--save-steps", 2, "--sandbox-workers", 1),
    *("--filter-samples", 0, "--preflight-tasks", 0),
)
CLOCK = {"time", "step_s", "generation_s", "scoring_s", "update_s", "tokens_per_s"}


def lines(path, record_type):
    return list(records.read_lines(path, record_type))


def without_clock(steps):
    return [{name: value for name, value in asdict(step).items() if name not in CLOCK} for step in steps]


@pytest.fixture(scope="module")
def cycle(tmp_path_factory):
    """The folder of a finished cycle of six steps, and what it printed."""
    folder = tmp_path_factory.mktemp("model")
    command = [sys.executable, ROOT / "gemma4_oeis_rlvr.py", *SMALL, "--cycle", "001", "--max-steps", 6]
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def train(*flags, cwd):
    return warm.run([ROOT / "gemma4_oeis_rlvr.py", *SMALL, *flags], cwd=cwd)


@pytest.mark.slow
def test_a_cycle_writes_every_file(cycle):
    folder, printed = cycle
    steps, trace = lines(folder / "001/metrics.jsonl", Step), lines(folder / "001/trace.jsonl", Completion)
    assert [step.step for step in steps] == [1, 2, 3, 4, 5, 6]
    assert len(trace) == 6 * 16
    for step in steps:
        own = [line for line in trace if line.step == step.step]
        rewards = [line.reward for line in own if line.reward is not None]
        assert step.reward == pytest.approx(sum(rewards) / len(rewards), abs=1e-4)
        assert step.reward == pytest.approx(sum(step.rewards.values()), abs=1e-4)
        assert sum(step.outcomes.values()) == 16 and step.tokens == sum(line.tokens for line in own)
        assert step.all_right + step.mixed + step.all_wrong == pytest.approx(1)
        assert step.grad_norm is not None and step.kl is not None and step.loss is not None
        assert step.generation_s > 0 and step.scoring_s > 0 and step.update_s > 0
        for group in range(4):
            samples = [line for line in own if line.group == group]
            assert [line.sample for line in samples] == [0, 1, 2, 3]
            assert len({(line.task, line.prompt) for line in samples}) == 1
            # A group's advantages are centred: they are the group's own, not a neighbour's.
            assert sum(line.advantage for line in samples) == pytest.approx(0, abs=1e-3)
            order = sorted(samples, key=lambda line: line.reward)
            assert [line.advantage for line in order] == sorted(line.advantage for line in order)
    outcomes = records.read(folder / "001/outcomes.json", Outcomes)
    assert outcomes.seen == sorted({line.task for line in trace})
    assert sum(count.samples for count in outcomes.solves.values()) == 96
    status = records.read(folder / "001/status.json", Status)
    assert (status.state, status.step, status.exit_code) == ("done", 6, 0)
    config = tomllib.loads((folder / "001/config.toml").read_text())
    assert set(keys(TrainConfig)) <= set(config) and config["base_model"] == "tiny"
    assert config["provenance"]["corpus_fingerprint"] and config["provenance"]["torch"]
    assert (folder / "001/checkpoints/checkpoint-6/optimizer.pt").is_file()
    assert "4 prompts x 4 samples = 16 completions, 8 in one forward pass x 2" in printed
    assert "Baseline before:" in printed and "Baseline after:" in printed


@pytest.mark.slow
def test_the_adapter_is_a_peft_adapter_that_changes_the_model(cycle):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(ROOT / "rlvr/assets/tiny", dtype=torch.float32)
    ids = torch.arange(5, 25)[None]
    before = base(ids).logits
    tuned = PeftModel.from_pretrained(base, cycle[0] / "001/adapter")
    assert (tuned(ids).logits - before).abs().max() > 1e-4


HOOKS = """
import os, runpy, signal, sys
from pathlib import Path
from rlvr import models, records

def at_first_step(act):
    def append(path, *lines):
        write(path, *lines)
        if path.name == "metrics.jsonl":
            records.append = write
            act()
    write, records.append = records.append, append

def at_sampling(number, act):  # the preflight and the baselines sample, training does it in another way
    calls = []
    def generate(*args, **options):
        calls.append(1)
        if len(calls) == number:
            act()
        return sample(*args, **options)
    sample, models.generate = models.generate, generate

def send(*numbers):
    for number in numbers:
        os.kill(os.getpid(), number)

"""
"""For a program that does something to itself at a certain moment: done from outside, it may come too late."""


def train_with(hook, *flags, cwd, **environment):
    """As `train`, with a line of Python that hooks something into it."""
    code = f"{HOOKS}{hook}\ndel sys.argv[0]\nrunpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", code, ROOT / "gemma4_oeis_rlvr.py", *SMALL, *flags]
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, timeout=900)


STOP_AT_FIRST_STEP = "at_first_step(lambda: send(signal.SIGTERM))"


@pytest.mark.slow
def test_killed_and_resumed_equals_uninterrupted(cycle, tmp_path):
    done = train_with(STOP_AT_FIRST_STEP, "--cycle", "001", "--max-steps", 6, cwd=tmp_path)
    assert done.returncode == 143, done.stderr
    metrics = tmp_path / "001/metrics.jsonl"
    stopped_at = len(lines(metrics, Step))
    assert stopped_at < 6
    assert records.read(tmp_path / "001/status.json", Status).state == "killed"
    assert not (tmp_path / "001/adapter").exists()
    # A crash after the checkpoint leaves lines that the checkpoint does not know: they are taken again, once.
    extra = lines(tmp_path / "001/trace.jsonl", Completion)[-1]
    records.append(tmp_path / "001/trace.jsonl", replace(extra, step=stopped_at + 1))

    resumed = train("--cycle", "001", "--max-steps", 6, "--resume", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert f"Resuming after step {stopped_at}" in resumed.stdout
    whole, pieces = lines(cycle[0] / "001/metrics.jsonl", Step), lines(metrics, Step)
    assert without_clock(pieces) == without_clock(whole)
    texts = [
        [
            (line.step, line.group, line.sample, line.completion)
            for line in lines(folder / "001/trace.jsonl", Completion)
        ]
        for folder in (cycle[0], tmp_path)
    ]
    assert texts[0] == texts[1]
    weights = [(folder / "001/adapter/adapter_model.safetensors").read_bytes() for folder in (cycle[0], tmp_path)]
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_resumed_after_its_last_step_it_saves_what_it_had_learned(cycle, tmp_path):
    """As when it was killed between its last checkpoint and its adapter."""
    shutil.copytree(cycle[0] / "001", tmp_path / "001")
    shutil.rmtree(tmp_path / "001/adapter")
    (tmp_path / "001/outcomes.json").unlink()
    done = train("--cycle", "001", "--max-steps", 6, "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Every step is taken" in done.stdout and "Baseline before" not in done.stdout
    whole, own = lines(cycle[0] / "001/metrics.jsonl", Step), lines(tmp_path / "001/metrics.jsonl", Step)
    assert own == whole
    weights = [(folder / "001/adapter/adapter_model.safetensors").read_bytes() for folder in (cycle[0], tmp_path)]
    assert weights[0] == weights[1]
    status = records.read(tmp_path / "001/status.json", Status)
    assert (status.state, status.step, status.max_steps) == ("done", 6, 6)
    assert records.read(tmp_path / "001/outcomes.json", Outcomes).seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "hook", [STOP_AT_FIRST_STEP, "at_sampling(2, lambda: send(signal.SIGINT))"], ids=["last step", "baseline after"]
)
def test_asked_to_stop_when_nothing_is_left_to_train_it_saves_and_is_done(tmp_path, hook):
    done = train_with(hook, "--cycle", "001", "--max-steps", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Baseline before" in done.stdout and "Baseline after" not in done.stdout
    assert "every step is taken, so the adapter is saved all the same" in done.stdout
    assert records.read(tmp_path / "001/status.json", Status).state == "done"
    assert (tmp_path / "001/adapter/adapter_model.safetensors").is_file() and (
        tmp_path / "001/outcomes.json"
    ).is_file()


@pytest.mark.slow
def test_a_second_ctrl_c_ends_it_at_once(tmp_path):
    hook = "at_first_step(lambda: send(signal.SIGINT, signal.SIGINT))"
    done = train_with(hook, "--cycle", "001", "--max-steps", 6, cwd=tmp_path)
    assert done.returncode == 130 and "Traceback" not in done.stderr, done.stderr
    status = records.read(tmp_path / "001/status.json", Status)
    assert (status.state, status.exit_code, status.message) == ("killed", 130, "stopped at once by SIGINT")


@pytest.mark.slow
def test_stopped_in_the_preflight_it_says_so_and_leaves_nothing(tmp_path):
    hook = "at_sampling(1, lambda: send(signal.SIGTERM))"
    done = train_with(hook, "--cycle", "001", "--preflight-tasks", 5, cwd=tmp_path)
    assert done.returncode == 143 and done.stderr.splitlines()[-1] == "Stopped at once by SIGTERM."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_new_run_in_the_same_folder_is_not_mixed_up_with_the_last_one(cycle, tmp_path):
    folder = tmp_path / "001"
    shutil.copytree(cycle[0] / "001", folder)
    old = (folder / "adapter/adapter_model.safetensors").read_bytes()
    flags = ("--cycle", "001", "--seed", 9)

    # It ends before it has saved anything: what the last one has learned is still there, and nothing to resume.
    killed = train_with("at_first_step(lambda: send(signal.SIGKILL))", *flags, cwd=tmp_path)
    assert killed.returncode == -9, killed.stderr
    assert "001 holds a run of 6 steps: this one takes its place once it begins to train" in killed.stdout
    assert (folder / "adapter/adapter_model.safetensors").read_bytes() == old
    resumed = train(*flags, "--resume", cwd=tmp_path)
    assert resumed.returncode == 2 and "no checkpoint to resume from" in resumed.stderr

    stopped = train_with(STOP_AT_FIRST_STEP, *flags, "--max-steps", 50, cwd=tmp_path)
    assert stopped.returncode == 143, stopped.stderr
    assert [path.name for path in (folder / "checkpoints").glob("checkpoint-*")] == ["checkpoint-2"]
    assert not (folder / "adapter/adapter_config.json").exists() and not (folder / "outcomes.json").exists()
    resumed = train(*flags, "--max-steps", 3, "--resume", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert "Resuming after step 2 (001/checkpoints/checkpoint-2)" in resumed.stdout
    assert [step.step for step in lines(folder / "metrics.jsonl", Step)] == [1, 2, 3]


def test_what_a_resume_alone_reads_again_is_kept(tmp_path, monkeypatch):
    import gemma4_oeis_rlvr

    monkeypatch.chdir(tmp_path)
    files = StandaloneFiles(Path("gemma_4_oeis_lora"))
    checkpoint(files.folder, 6)
    names = ("adapter_config.json", "adapter_model.safetensors", "tokenizer.json", "metrics.jsonl", "trace.jsonl")
    for path in (*(files.folder / name for name in names), files.outcomes):
        path.write_text("{}")
    gemma4_oeis_rlvr.make_room(files)
    assert os.listdir(files.checkpoints) == [] and files.outcomes.exists()
    assert sorted(path.name for path in files.folder.iterdir() if path.is_file()) == sorted(names[:3])
    gemma4_oeis_rlvr.forget_adapter(files, files.outcomes)
    assert [path.name for path in files.folder.iterdir() if path.is_file()] == ["tokenizer.json"]
    assert files.outcomes.exists()
    gemma4_oeis_rlvr.forget_adapter(files, None)
    assert not files.outcomes.exists()


@pytest.mark.slow
def test_moved_while_it_trains_it_ends_and_makes_nothing_anew(tmp_path):
    hook = "at_first_step(lambda: Path('models').rename('moved'))"
    done = train_with(hook, "--cycle", "models/001", "--max-steps", 6, "--save-steps", 1, cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert "error: models/001: moved or removed while the run was going on" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["moved"]


def test_the_folder_that_a_supervisor_made_is_not_made_again(tmp_path):
    done = train_with("os.environ['RLVR_SUPERVISED'] = '1'", "--cycle", "models/001", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: models/001: moved or removed while the run was being started\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_of_several_processes_one_writes_and_all_stop_together(tmp_path):
    """The signal comes to the one that writes, in its first step; the other would wait for it in the third."""
    program = tmp_path / "program.py"
    program.write_text(
        f"""{HOOKS}
def noted(write):
    def function(path, *lines):
        with open("writes", "a") as file:
            print(os.environ["RANK"], path.name, file=file)
        write(path, *lines)
    return function
records.append, records.write = noted(records.append), noted(records.write)
{STOP_AT_FIRST_STEP}
runpy.run_path({str(ROOT / "gemma4_oeis_rlvr.py")!r}, run_name="__main__")
"""
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, program, *SMALL]
    command += ["--cycle", "001", "--max-steps", 9, "--completions-per-forward", 4]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(list(map(str, command)), cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900)
    # The launcher ends the others when one has ended; by then they have nothing left to do.
    codes = re.findall(r"exitcode +: (-?\d+)", done.stderr)
    assert "143" in codes and set(codes) <= {"143", "-15"}, done.stderr
    writes = {tuple(line.split()) for line in (tmp_path / "writes").read_text().splitlines()}
    assert writes == {("0", "status.json"), ("0", "metrics.jsonl"), ("0", "trace.jsonl")}
    status = records.read(tmp_path / "001/status.json", Status)
    assert (status.state, status.exit_code, status.step) == ("killed", 143, 2)
    assert len(lines(tmp_path / "001/trace.jsonl", Completion)) == 2 * 16
    checkpoint = tmp_path / "001/checkpoints/checkpoint-2"
    assert {"rng_state_0.pth", "rng_state_1.pth"} <= set(os.listdir(checkpoint))


@pytest.mark.slow
def test_the_next_cycle_starts_warm_and_leaves_out_what_was_solved(cycle):
    folder = cycle[0]
    outcomes = records.read(folder / "001/outcomes.json", Outcomes)
    solved = set(outcomes.always_solved) | {outcomes.seen[0]}
    records.write(folder / "001/outcomes.json", replace(outcomes, always_solved=sorted(solved)))
    done = train("--cycle", "002", "--parent", "001", "--max-steps", 1, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert f"Curriculum: excluding {len(solved)} always-solved sequences" in done.stdout
    assert "warm start from 001/adapter" in done.stdout
    assert os.readlink(folder / "002/parent") == "../001/adapter"
    assert not {line.task for line in lines(folder / "002/trace.jsonl", Completion)} & solved
    assert set(records.read(folder / "002/outcomes.json", Outcomes).always_solved) >= solved


@pytest.mark.slow
def test_the_filter_trains_on_what_is_solved_sometimes(tmp_path):
    done = train("--cycle", "001", "--filter-samples", 4, "--limit", 60, "--max-steps", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    always, never, sometimes = map(
        int, re.search(r"Filter: (\d+) always solved, (\d+) never, (\d+) some", done.stdout).groups()
    )
    assert always + never + sometimes == 60 and sometimes >= 4
    kept = (tmp_path / "001/tasks.txt").read_text().split()
    assert len(kept) == sometimes
    assert {line.task for line in lines(tmp_path / "001/trace.jsonl", Completion)} <= set(kept)
    too_few = train("--cycle", "002", "--filter-samples", 1, "--limit", 20, "--max-steps", 1, cwd=tmp_path)
    assert too_few.returncode == 2 and "filter_samples = 1 leaves 0 tasks" in too_few.stderr


@pytest.mark.slow
def test_a_preflight_says_what_the_base_model_can_and_changes_nothing(cycle, tmp_path):
    done = train("--cycle", "001", "--max-steps", 6, "--preflight-tasks", 5, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = re.search(
        r"Preflight: 5 tasks x 4 answers: (\d+)% valid functions, (\d+)% cut off, pass@1 ([\d.]+)%, pass@4 ([\d.]+)%",
        done.stdout,
    )
    valid, cut, pass_1, pass_4 = map(float, said.groups())
    assert valid > 20 and cut < 50 and 0 <= pass_1 <= pass_4 and pass_4 % 20 == 0
    assert done.stdout.index("Preflight:") < done.stdout.index("step    1/6")
    assert "Preflight" not in cycle[1]
    whole, own = lines(cycle[0] / "001/metrics.jsonl", Step), lines(tmp_path / "001/metrics.jsonl", Step)
    assert without_clock(own) == without_clock(whole)
    weights = [(folder / "001/adapter/adapter_model.safetensors").read_bytes() for folder in (cycle[0], tmp_path)]
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_where_nothing_can_be_learned_it_warns_once_and_stops_when_told_to(tmp_path):
    """One token is no function: everything is cut off, invalid, and worth the same."""
    flags = ("--max-completion-length", 1, "--baseline-tasks", 0, "--limit", 40, "--save-steps", 50)
    done = train("--cycle", "001", "--max-steps", 30, "--stop-on-dead-signal", "true", *flags, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    warnings = [line for line in done.stdout.splitlines() if line.startswith("WARNING: ")]
    assert warnings[0] == (
        "WARNING: 100% of the completions in steps 1 to 3 were cut at 1 tokens before their end -> raise "
        "max_completion_length, or take a base model that answers more briefly (max_completion_length=2)"
    )
    assert sum("were cut at" in line for line in warnings) == 1
    status = records.read(tmp_path / "001/status.json", Status)
    assert (status.state, status.exit_code) == ("failed", 3) and 10 <= status.step < 30
    assert status.message.startswith("nothing is being learned: most completions clipped: 100% of the completions")
    last = done.stdout.splitlines()[-1]
    assert last == f"Stopped after step {status.step} with a checkpoint; {status.message}"
    assert len(lines(tmp_path / "001/metrics.jsonl", Step)) == status.step
    assert (tmp_path / f"001/checkpoints/checkpoint-{status.step}/trainer_state.json").is_file()
    assert not (tmp_path / "001/adapter").exists()

    # It goes on from there, and once the last step is taken the cycle is done as any other.
    resumed = train("--cycle", "001", "--max-steps", status.step + 2, "--resume", *flags, cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert (
        f"Resuming after step {status.step}" in resumed.stdout
        and "WARNING: 100% of the completions" not in resumed.stdout
    )
    assert (tmp_path / "001/adapter/adapter_model.safetensors").is_file()


@pytest.mark.slow
def test_the_answers_of_the_filter_serve_the_preflight(tmp_path):
    done = train(
        *("--cycle", "001", "--filter-samples", 4, "--preflight-tasks", 5, "--limit", 60, "--max-steps", 1),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    always, _never, sometimes = map(
        int, re.search(r"Filter: (\d+) always solved, (\d+) never, (\d+) some", done.stdout).groups()
    )
    pass_4 = re.search(r"Preflight: 60 tasks x 4 answers: .* pass@4 ([\d.]+)%", done.stdout).group(1)
    assert float(pass_4) == pytest.approx(100 * (always + sometimes) / 60, abs=0.06)
    # The next cycle starts from an adapter: what the base model can is known.
    second = train("--cycle", "002", "--parent", "001", "--preflight-tasks", 5, "--max-steps", 1, cwd=tmp_path)
    assert second.returncode == 0 and "Preflight" not in second.stdout, second.stderr


def checkpoint(folder, step, **files):
    """A checkpoint folder with these files beside the usual ones."""
    where = folder / f"checkpoints/checkpoint-{step}"
    where.mkdir(parents=True)
    usual = {"adapter_model.safetensors": b"w", "optimizer.pt": b"o", "trainer_state.json": b'{"global_step": 1}'}
    for name, content in (usual | files).items():
        if content is not None:
            (where / name).write_bytes(content)
    return where


def test_a_checkpoint_that_was_not_written_to_its_end_is_passed_over(tmp_path):
    import gemma4_oeis_rlvr

    files = RunFiles(tmp_path)
    with pytest.raises(RlvrError, match="no checkpoint to resume from"):
        gemma4_oeis_rlvr.last_checkpoint(files)
    checkpoint(tmp_path, 1, **{"trainer_state.json": b'{"global_st'})
    with pytest.raises(RlvrError, match="no checkpoint to resume from"):
        gemma4_oeis_rlvr.last_checkpoint(files)
    good = checkpoint(tmp_path, 9)
    checkpoint(tmp_path, 10, **{"trainer_state.json": None})
    checkpoint(tmp_path, 11, **{"trainer_state.json": b""})
    checkpoint(tmp_path, 100, **{"optimizer.pt": b""})
    assert gemma4_oeis_rlvr.last_checkpoint(files) == good


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["text", "conditional"])
def test_a_cycle_of_a_random_tiny_gemma4(tmp_path, kind):
    make_tiny_gemma4(tmp_path / "gemma", kind=kind)
    small = ("--prompts-per-step", 2, "--num-generations", 2, "--completions-per-forward", 2, "--limit", 8)
    flags = ("--preset", "gemma4-e2b", "--base-model", "gemma", "--max-completion-length", 24, "--max-steps", 2)
    done = train(*flags, *small, "--cycle", "001", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    trace = lines(tmp_path / "001/trace.jsonl", Completion)
    assert len(trace) == 8 and trace[0].prompt.startswith("Write a Python function a(n)")
    assert (tmp_path / "001/adapter/adapter_model.safetensors").is_file()


@pytest.mark.slow
def test_alone_it_saves_beside_itself_and_reads_its_own_outcomes(tmp_path):
    first = train("--max-steps", 1, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "OEIS tasks." in first.stdout and "Curriculum" not in first.stdout
    assert (tmp_path / "gemma_4_oeis_lora/adapter_config.json").is_file()
    outcomes = records.read(tmp_path / "outcomes.json", Outcomes)
    records.write(tmp_path / "outcomes.json", replace(outcomes, always_solved=outcomes.seen[:2]))
    second = train("--max-steps", 1, "--parent", "gemma_4_oeis_lora", cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    assert "Curriculum: excluding 2 always-solved sequences" in second.stdout


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--parent", "nowhere"), "no adapter 'nowhere'"),
        (("--resume",), "no checkpoint to resume from"),
        (("--loss-type", "gppo"), "did you mean 'grpo'"),
        (("--config", "absent.toml"), "absent.toml: no such file"),
        (("--outcomes", "absent.json"), "absent.json: no such file"),
        (("--completions-per-forward", 5), "completions_per_forward = 5"),
        (("--max-seq-length", 64), "leaves no room for an answer"),
        (("--limit", 3), "3 tasks are left, fewer than prompts_per_step = 4"),
        (("--corpus-dir", "absent"), "absent"),
        (("--environment", "oies"), "unknown environment 'oies'"),
        (("--base-model", "google/gemma-4-31B-it"), "tiny"),
    ],
)
def test_what_a_user_can_get_wrong_is_one_line_and_leaves_nothing(tmp_path, flags, message):
    done = train(*flags, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()[-1]) < 500
    assert list(tmp_path.iterdir()) == []
