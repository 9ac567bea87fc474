"""The tiny lab's model and loop, its measurements, receipts and commands: short runs of the real thing."""

import copy
import json
import math
import os
import subprocess
import sys
from statistics import fmean

import pytest
import torch

from rlvr.errors import RlvrError
from rlvr.lab import experiment, pictures, receipts, training
from rlvr.lab.experiment import mean_over_seeds, measure, run_seed
from rlvr.lab.model import Transformer, sample
from rlvr.lab.rewards import make_reward
from rlvr.lab.settings import Settings
from rlvr.lab.task import ANSWER_LENGTH, END, Problem, decode, encode_prompt, grade, split_problems
from rlvr.lab.training import advantages, policy_loss, reinforce, supervised_start, token_weights, written

SHORT = ("--start-steps", "3", "--steps", "2", "--prompts", "2", "--no-open")
QUICK = Settings(start_steps=3, steps=2, prompts=2)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    experiment.fix_threads()


@pytest.fixture(scope="module")
def model() -> Transformer:
    return supervised_start(Settings(start_steps=40), split_problems().train)


def prompts(num: int) -> torch.Tensor:
    return torch.tensor([encode_prompt(problem) for problem in split_problems().train[:num]])


def lab(*arguments, cwd, root):
    command = [sys.executable, "-m", "rlvr.lab", *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=900)


def test_the_model_has_about_as_many_parameters_as_the_docs_say():
    assert sum(weight.numel() for weight in Transformer().parameters()) == 42_460


def test_no_symbol_sees_a_later_one(model):
    tokens = torch.randint(0, 20, (3, 20))
    changed = tokens.clone()
    changed[:, 12:] = 5
    assert torch.allclose(model(tokens)[:, :12], model(changed)[:, :12], atol=1e-5)
    assert not torch.allclose(model(tokens)[:, 12:], model(changed)[:, 12:], atol=1e-2)


def test_sampling_with_a_cache_agrees_with_the_whole_forward_pass(model):
    prompts_BP = prompts(9)
    answers_BC = sample(model, prompts_BP, 0, torch.Generator())
    tokens_BT = torch.cat((prompts_BP, answers_BC), dim=1)
    likeliest_BC = training.answer_log_probabilities(model, tokens_BT).argmax(-1)
    mask_BC = written(answers_BC).bool()
    assert torch.equal(likeliest_BC[mask_BC], answers_BC[mask_BC])
    assert (answers_BC[~mask_BC] == END).all()


def test_sampling_repeats_for_a_seed_and_follows_the_temperature(model):
    draws = [sample(model, prompts(50), t, torch.Generator().manual_seed(1)) for t in (1.0, 1.0, 0.01)]
    assert torch.equal(draws[0], draws[1])
    greedy = sample(model, prompts(50), 0, torch.Generator())
    assert (draws[2] == greedy).float().mean() > (draws[0] == greedy).float().mean()


def test_written_counts_the_first_end_token_and_nothing_after_it():
    assert written(torch.tensor([[7, 3, END, END], [7, 3, 4, 5], [END, 3, 3, END]])).tolist() == [
        [1, 1, 1, 0],
        [1, 1, 1, 1],
        [1, 0, 0, 0],
    ]


def test_advantages_compare_within_the_group():
    rewards_GS = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5], [0.9, 0.9, 0.9, 0.8]])
    plain = advantages(rewards_GS, "reinforce")
    assert plain[0].tolist() == [0.75, -0.25, -0.25, -0.25]
    assert torch.allclose(plain.sum(1), torch.zeros(3), atol=1e-6)
    assert torch.equal(plain, advantages(rewards_GS, "dr_grpo"))
    scaled = advantages(rewards_GS, "grpo")
    assert scaled[1].tolist() == [0, 0, 0, 0]
    # Dividing by the spread makes a group that nearly agrees as loud as one that does not.
    assert abs(scaled[2, 3].item() / scaled[0, 0].item()) == pytest.approx(1.0, abs=0.01)


def test_token_weights():
    written_BC = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]])
    assert torch.allclose(token_weights(written_BC, "reinforce"), written_BC / 5)
    assert token_weights(written_BC, "grpo").sum(1).tolist() == [0.5, 0.5]
    assert torch.allclose(token_weights(written_BC, "dr_grpo"), written_BC / ANSWER_LENGTH / 2)


@pytest.mark.parametrize("method", ["reinforce", "grpo", "dr_grpo"])
def test_one_step_moves_likelihood_from_the_worse_answer_to_the_better(model, method):
    model = copy.deepcopy(model)
    start = copy.deepcopy(model)
    prompts_BP = prompts(1).repeat(2, 1)
    problem = split_problems().train[0]
    answers_BC = torch.tensor([training.encode_answer(text) for text in (problem.trace, "9" + problem.trace[1:])])
    tokens_BT = torch.cat((prompts_BP, answers_BC), dim=1)

    def log_likelihood():
        logp_BCV = training.answer_log_probabilities(model, tokens_BT)
        return (training.chosen(logp_BCV, tokens_BT) * written(answers_BC)).sum(1).tolist()

    before = log_likelihood()
    loss, kl = policy_loss(model, start, tokens_BT, torch.tensor([0.5, -0.5]), Settings(method=method))
    assert kl.item() == pytest.approx(0, abs=1e-6)
    loss.backward()
    with torch.no_grad():
        for weight in model.parameters():
            weight -= 0.01 * weight.grad
    after = log_likelihood()
    assert after[0] - after[1] > before[0] - before[1]


def test_the_penalty_is_the_kl_divergence_and_pulls_back(model):
    moved = copy.deepcopy(model)
    with torch.no_grad():
        moved.logits.bias[3] += 1.0
    tokens_BT = torch.cat((prompts(4), sample(model, prompts(4), 1.0, torch.Generator().manual_seed(0))), dim=1)
    loss, kl = policy_loss(moved, model, tokens_BT, torch.zeros(4), Settings(kl=0.5))
    assert kl.item() > 0.001
    assert loss.item() == pytest.approx(0.5 * kl.item())
    loss.backward()
    assert moved.logits.bias.grad[3] > 0  # going downhill takes the shift back
    free, _ = policy_loss(moved, model, tokens_BT, torch.zeros(4), Settings(kl=0.0))
    assert free.item() == 0


def test_an_update_records_what_it_did(model):
    [update] = reinforce(copy.deepcopy(model), Settings(steps=1, prompts=3), split_problems().train, len_reward)
    assert [len(group) for group in update.completions] == [8, 8, 8]
    for rewards, texts, gains in zip(update.rewards, update.completions, update.advantages, strict=True):
        assert rewards == [len_reward(Problem(0, 0, 2), text) for text in texts]
        assert gains == pytest.approx([one - fmean(rewards) for one in rewards], abs=1e-6)
    assert sum(update.groups) == pytest.approx(1)


def len_reward(problem: Problem, completion: str) -> float:
    return len(completion) / ANSWER_LENGTH


def test_reinforcement_reaches_the_weights_and_does_what_the_reward_says(model):
    """A reward that anything can learn, the length of the answer, must rise; the canary of the loop."""
    settings = Settings(steps=15, prompts=8, learning_rate=3e-3, kl=0.0)
    updates = list(
        reinforce(copy.deepcopy(model), settings, split_problems().train, lambda p, t: 1 - len_reward(p, t))
    )
    assert fmean(u.reward for u in updates[-3:]) > fmean(u.reward for u in updates[:3]) + 0.1


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    results = [run_seed(QUICK, make_reward("verified", 0)) for _ in range(2)]
    assert results[0].after == results[1].after and results[0].validation == results[1].validation
    other = run_seed(Settings(start_steps=3, steps=2, prompts=2, seed=1), make_reward("verified", 1))
    assert other.before.weight_hash != results[0].before.weight_hash


def test_a_measurement_averages_within_pairs(model):
    problems = split_problems().test
    found = measure(model, problems, 2)
    assert len(found.exact) == len(found.verified) == 51
    assert [problem for problem, _ in found.answers] == list(problems)
    greedy = measure(model, problems, 1, temperature=0)
    first = [text for problem, text in greedy.answers if (problem.a, problem.b) in ((0, 3), (3, 0))]
    asked = [problem for problem in problems if (problem.a, problem.b) in ((0, 3), (3, 0))]
    rights = [grade(problem, text).verified for problem, text in zip(asked, first, strict=True)]
    assert greedy.verified[0] == fmean(rights)


def test_the_checkpoint_is_chosen_on_the_validation_pairs():
    result = run_seed(Settings(start_steps=60, steps=11, prompts=4, learning_rate=5e-3), make_reward("verified", 0))
    assert [update for update, _ in result.validation] == [0, 5, 10, 11]
    best = max(exact for _, exact in result.validation)
    assert (result.after.update, best) in result.validation
    assert result.after.validation.exact_share.estimate == best


def test_a_receipt_that_is_not_whole_is_refused(tmp_path):
    file = tmp_path / "receipt.json"
    for text, message in (
        ("{", "not JSON"),
        ("[]", "not a receipt"),
        ('{"receipt": 1, "settings": {}}', "lacks num_seeds, control"),
        (json.dumps({name: [] for name in receipts.NEEDED} | {"receipt": 1, "num_seeds": 1}), "each of its seeds"),
    ):
        file.write_text(text)
        with pytest.raises(RlvrError, match=message):
            receipts.read_receipt(file)


def test_students_interval_over_seeds():
    interval = mean_over_seeds([0.10, 0.12, 0.14])
    assert (interval.estimate, interval.low, interval.high) == pytest.approx((0.12, 0.0703, 0.1697), abs=1e-4)
    for freedom, exact in ((4, 2.776), (5, 2.571), (9, 2.262), (30, 2.042)):
        assert experiment.t_quantile(freedom) == pytest.approx(exact, abs=0.005)
    assert math.isinf(mean_over_seeds([0.1]).high)


@pytest.mark.slow
def test_run_writes_a_receipt_that_verify_repeats(tmp_path, root):
    done = lab("run", *SHORT, "--guess", 40, cwd=tmp_path, root=root)
    assert done.returncode == 0, done.stderr
    assert "test, verified" in done.stdout and "What this allows you to say" in done.stdout
    assert "You guessed 40 %" in done.stdout and "update   2/2" in done.stderr
    file = tmp_path / "lab" / "receipt.json"
    receipt = json.loads(file.read_text())
    assert receipt["split"]["operand_pairs"] == {"train": 153, "validation": 51, "test": 51}
    assert receipt["settings"]["steps"] == 2 and receipt["versions"]["torch"] == torch.__version__
    assert set(receipt["runs"][0]["after"]["exact"]) == {"train", "validation", "test", "test_greedy"}
    assert (tmp_path / "lab" / "picture.png").read_bytes().startswith(b"\x89PNG")

    again = lab("verify", "lab/receipt.json", cwd=tmp_path, root=root)
    assert again.returncode == 0 and "came out the same" in again.stdout

    receipt["runs"][0]["after"]["exact"]["test"][0] += 0.1
    file.write_text(json.dumps(receipt))
    forged = lab("verify", "lab/receipt.json", cwd=tmp_path, root=root)
    assert forged.returncode == 1
    assert "differs: seed 0, after: exact on test" in forged.stdout


@pytest.mark.slow
def test_several_seeds_come_with_a_control_and_compare_with_a_table(tmp_path, root):
    done = lab("run", *SHORT, "--seeds", 2, "--json", "--out", "two", cwd=tmp_path, root=root)
    receipt = json.loads(done.stdout)
    assert [run["seed"] for run in receipt["runs"]] == [0, 1] and len(receipt["random_reward_runs"]) == 2
    assert len(receipt["over_seeds"]["exact_gain_over_random"]) == 3
    assert (tmp_path / "two" / "seeds.png").is_file()

    done = lab("compare", "--group-size", 2, 4, *SHORT, "--seeds", 2, cwd=tmp_path, root=root)
    assert done.returncode == 0, done.stderr
    assert "Only group-size differs" in done.stdout
    first, second = (json.loads((tmp_path / f"lab/receipt-group-size-{n}.json").read_text()) for n in (2, 4))
    assert first["runs"][0]["before"] == second["runs"][0]["before"]  # the same start
    assert (tmp_path / "lab" / "compare-group-size.png").is_file()


def test_start_check_and_train_with_ones_own_reward(tmp_path, root):
    assert lab("run", "--reward", "student", cwd=tmp_path, root=root).returncode == 2
    assert lab("start", cwd=tmp_path, root=root).returncode == 0
    checked = lab("check", cwd=tmp_path, root=root)
    assert checked.returncode == 1 and "the bare answer: '6'  <- as good as the right trace" in checked.stdout
    solution = ("--student-file", root / "docs/lab/solution/student_reward.py")
    assert lab("check", *solution, cwd=tmp_path, root=root).returncode == 0
    done = lab("run", "--reward", "student", *SHORT, cwd=tmp_path, root=root)
    assert done.returncode == 0, done.stderr
    with_other = lab("verify", "lab/receipt.json", *solution, cwd=tmp_path, root=root)
    assert with_other.returncode == 2 and "is not the reward of this receipt" in with_other.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "--kl", "0", "1", "--group-size", "2", "8"), "give several values to one option"),
        (("compare", "--kl", "0"), "give several values to one option"),
        (("run", "--steps", "0"), "--steps 0: give a number from 1"),
        (("run", "--seeds", "0"), "--seeds 0: give a number"),
        (("verify", "nothing.json"), "nothing.json: no such file"),
    ],
)
def test_what_a_user_can_get_wrong_is_said(tmp_path, root, program, arguments, message):
    done = program("rlvrctl.py", "lab", *arguments)
    assert done.returncode == 2
    assert message in done.stderr and "Traceback" not in done.stderr


def test_help_needs_no_torch(root):
    code = (
        "import sys; import rlvr.cli.lab, rlvr.lab.commands; print(sorted({'torch', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_lab_needs_nothing_that_only_unix_has(root):
    """It must import where fcntl, resource and the sandbox are missing, as on Windows."""
    code = (
        "import sys\n"
        "for name in ('fcntl', 'resource', 'pwd', 'grp', 'termios', 'pty'): sys.modules[name] = None\n"
        "import rlvr.lab.commands, rlvr.lab.experiment, rlvr.lab.receipts\n"
        "own = {name for name in sys.modules if name.startswith('rlvr.') and not name.startswith('rlvr.lab')}\n"
        "print(sorted(own))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.stdout.strip() == "['rlvr.errors', 'rlvr.files', 'rlvr.records', 'rlvr.statistics']", done.stderr


def test_a_display_is_looked_for_before_opening(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert not pictures.has_display()
    monkeypatch.setenv("DISPLAY", ":0")
    assert pictures.has_display()


def test_conclusions_say_rose_only_when_the_interval_does():
    assert receipts.direction(receipts.Interval(0.1, 0.02, 0.2)) == "rose"
    assert receipts.direction(receipts.Interval(0.1, -0.02, 0.2)) == "did not clearly change"
    assert receipts.direction(receipts.Interval(-0.1, -0.2, -0.01)) == "fell"


def test_the_answers_of_a_start_decode(model):
    texts = [decode(row) for row in sample(model, prompts(5), 1.0, torch.Generator().manual_seed(0)).tolist()]
    assert all("\n" not in text for text in texts)
