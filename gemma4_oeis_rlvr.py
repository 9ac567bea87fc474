"""One GRPO training cycle: tasks, policy, training, adapter.

    python gemma4_oeis_rlvr.py                       # Gemma 4 E2B on one GPU; saves gemma_4_oeis_lora/
    python gemma4_oeis_rlvr.py --preset tiny         # the tiny model, on any CPU, in minutes
    python gemma4_oeis_rlvr.py --config config.toml --cycle training/m/002 --parent training/m/001

Every key of `rlvr/config.py` is a flag. The algorithm is TRL's GRPOTrainer; held-out evaluation is `eval_oeis.py`.
Exit codes: 0 done, 2 something to correct in the command or its files, 3 it ended itself because nothing was being
learned (`stop_on_dead_signal`), 130 Ctrl-C, 143 SIGTERM. The last three leave a checkpoint to `--resume` from.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlvr import curriculum, environment, records
from rlvr.arguments import Parser, run_program
from rlvr.budget import Budget, ModelSize, estimate_memory, plan_budget, size_from_shapes
from rlvr.config import TrainConfig, add_flags, config_from_flags, write_snapshot
from rlvr.cycles import STANDALONE_DIR, RunFiles, StandaloneFiles, find_adapter, link_parent, whole_checkpoints
from rlvr.diagnosis import Finding, Watch
from rlvr.environment import Environment, Task
from rlvr.errors import RlvrError
from rlvr.listing import step_text
from rlvr.preflight import Sampled, preflight
from rlvr.provenance import provenance
from rlvr.records import Completion, Outcomes, Step
from rlvr.status import StatusFile, new_status

if TYPE_CHECKING:
    from rlvr.models import Policy

GRADED_AT_ONCE = 512
"""Answers of the filter that go to the sandbox together."""

NOTHING_LEARNED = 3
"""Exit code of a run that ended itself because of `stop_on_dead_signal`."""

# ---------------------------------------------------------------------------------------------------------------------
# Arguments


def parse_arguments() -> argparse.Namespace:
    parser = Parser(
        description="One GRPO training cycle.",
        epilog="Alone, it saves gemma_4_oeis_lora/ and reads outcomes.json beside it.",
    )
    parser.add_argument("--cycle", type=Path, metavar="DIR", help="write into this cycle folder instead")
    parser.add_argument(
        "--parent", metavar="ADAPTER", help="warm start: an adapter folder, a cycle's folder or number"
    )
    parser.add_argument(
        "--outcomes", type=Path, metavar="FILE", help="outcomes.json of the parent, for the curriculum"
    )
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the folder")
    add_flags(parser, TrainConfig)
    return parser.parse_args()


# ---------------------------------------------------------------------------------------------------------------------
# Tasks and curriculum


def find_outcomes(args: argparse.Namespace, files: RunFiles) -> Path | None:
    """The outcomes of the cycle before: named, beside the parent's adapter, or beside this program's own output."""
    if args.outcomes:
        return args.outcomes
    if args.parent:
        beside = find_adapter(args.parent).parent / "outcomes.json"
        return beside if beside.is_file() else None
    return files.outcomes if args.cycle is None and files.outcomes.is_file() else None


def build_tasks(
    config: TrainConfig, env: Environment, outcomes_file: Path | None
) -> tuple[Sequence[Task], frozenset[str]]:
    """The tasks of this cycle, and those that the curriculum left out.

    Raises:
        RlvrError: when there are fewer than a step needs.
    """
    solved = curriculum.always_solved(outcomes_file) if outcomes_file and config.exclude_always_solved else frozenset()
    if solved:
        print(f"Curriculum: excluding {len(solved)} always-solved sequences ({outcomes_file})")
    tasks = env.build_tasks(config, split="train", limit=config.limit, exclude=solved)
    print(f"Built {len(tasks)} {config.environment.upper()} tasks.")
    if len(tasks) < config.prompts_per_step:
        raise RlvrError(
            f"{len(tasks)} tasks are left, fewer than prompts_per_step = {config.prompts_per_step}: raise limit, "
            "relax the filter, set exclude_always_solved = false, or lower prompts_per_step"
        )
    return tasks, solved


# ---------------------------------------------------------------------------------------------------------------------
# What the cycle is, before anything expensive starts


def loaded_size(policy: "Policy") -> ModelSize:
    """The numbers of a loaded model that an estimate of its memory needs."""
    weights = dict(policy.model.named_parameters())
    return size_from_shapes(
        {name: weight.shape for name, weight in weights.items() if ".lora_" not in name},
        trainable=sum(weight.numel() for weight in weights.values() if weight.requires_grad),
        value_bytes=4 if policy.device == "cpu" else 2,
    )


def print_banner(config: TrainConfig, policy: "Policy", budget: Budget, parent: Path | None, num_tasks: int) -> None:
    tokens = budget.completions * budget.completion_tokens
    memory = estimate_memory(
        loaded_size(policy),
        completions=budget.completions,
        per_forward=budget.per_forward,
        sequence_tokens=budget.longest_prompt + budget.completion_tokens,
        completion_tokens=budget.completion_tokens,
    )
    rows = {
        "base model": f"{config.base_model} ({policy.num_parameters:,} parameters, {policy.backend}, {policy.device})",
        "adapter": f"LoRA rank {config.lora_rank}, alpha {config.lora_alpha}, "
        + (f"warm start from {parent}" if parent else "cold start"),
        "a step": f"{config.prompts_per_step} prompts x {config.num_generations} samples = {budget.completions} "
        f"completions, {budget.per_forward} in one forward pass x {budget.accumulation}",
        "tokens": f"prompts up to {budget.longest_prompt} + completions up to {budget.completion_tokens}: "
        f"at most {tokens:,} generated a step",
        "cycle": f"{config.max_steps} steps = {config.max_steps * config.prompts_per_step:,} prompts "
        f"out of {num_tasks:,} tasks",
        "loss": f"{config.loss_type}, KL weight {config.kl_beta:g}, learning rate {config.learning_rate:g} "
        f"({config.lr_scheduler}), advantages scaled by {config.scale_rewards}",
        "memory": memory.describe(),
    }
    width = max(map(len, rows))
    print("-" * 100)
    for name, value in rows.items():
        print(f"{name:>{width}}  {value}")
    print("-" * 100, flush=True)


# ---------------------------------------------------------------------------------------------------------------------
# Progress, samples, status


def print_finding(finding: Finding) -> None:
    settings = f" ({', '.join(finding.settings)})" if finding.settings else ""
    print(f"WARNING: {finding.what} -> {finding.change}{settings}", flush=True)


# ---------------------------------------------------------------------------------------------------------------------
# Sampling beside the training: it draws from random streams of its own and changes nothing


def sample(
    config: TrainConfig,
    policy: "Policy",
    env: Environment,
    tasks: Sequence[Task],
    *,
    samples: int,
    tokens: int,
    batch_size: int,
) -> list[list[Sampled]]:
    """Answer each task `samples` times the way training does and grade the answers, aligned with `tasks`."""
    from rlvr import models

    answers = models.generate(
        policy.model,
        policy.tokenizer,
        [task.prompt_text(prompt_style(config, policy)) for task in tasks],
        max_new_tokens=tokens,
        samples=samples,
        temperature=config.temperature,
        top_p=config.top_p,
        batch_size=batch_size,
        seed=config.seed,
    )
    flat = [(task, answer) for task, group in zip(tasks, answers, strict=True) for answer in group]
    graded: list[Sampled] = []
    for start in range(0, len(flat), GRADED_AT_ONCE):
        part = flat[start : start + GRADED_AT_ONCE]
        texts, cut = [answer.text for _, answer in part], [answer.truncated for _, answer in part]
        graded += map(Sampled, env.grade([task for task, _ in part], texts, cut), cut)
    return [graded[start : start + samples] for start in range(0, len(graded), samples)]


def prompt_style(config: TrainConfig, policy: "Policy") -> str:
    return policy.prompt_style if config.prompt_style == "auto" else config.prompt_style


def sample_baseline(
    config: TrainConfig, policy: "Policy", env: Environment, tasks: Sequence[Task], tokens: int, when: str
) -> None:
    """Sample one answer for a few tasks and print how they fared, with one of them in full."""
    some = list(tasks)[: config.baseline_tasks]
    if not some:
        return
    size = config.completions_per_forward
    answers = sample(config, policy, env, some, samples=1, tokens=tokens, batch_size=size)
    grades = [group[0].grade for group in answers]
    solved = sum(grade.outcome == "solved" for grade in grades)
    rewards = [grade.reward for grade in grades if grade.reward is not None]
    mean = sum(rewards) / len(rewards) if rewards else float("nan")
    print(f"Baseline {when}: {solved} of {len(some)} training tasks solved, mean reward {mean:+.3f}. One of them:")
    print(f"  {some[0].id}: {grades[0].outcome}")
    print("\n".join(f"  | {line}" for line in grades[0].function.strip().splitlines()[:12]), flush=True)


def sample_first(
    config: TrainConfig, policy: "Policy", env: Environment, tasks: Sequence[Task], tokens: int, *, is_cold: bool
) -> Sequence[Task]:
    """Before a cold start, say what the base model can do; return the tasks to train on, fewer with a filter."""
    num_tasks, samples = len(tasks), config.filter_samples
    if samples:
        print(f"Filter: sampling {samples} answers to each of {num_tasks} tasks ...", flush=True)
    elif is_cold and config.preflight_tasks:
        num_tasks, samples = config.preflight_tasks, config.num_generations
    else:
        return tasks
    size = 2 * config.completions_per_forward
    answers = sample(config, policy, env, tasks[:num_tasks], samples=samples, tokens=tokens, batch_size=size)
    if is_cold and config.preflight_tasks:
        print_preflight(answers, config)
    return keep_learnable(tasks, answers, config) if config.filter_samples else tasks


def keep_learnable(tasks: Sequence[Task], answers: Sequence[Sequence[Sampled]], config: TrainConfig) -> list[Task]:
    """Keep the tasks that are solved sometimes; the groups of the others would teach nothing.

    Raises:
        RlvrError: when fewer are left than a step needs.
    """
    graded = {task.id: [answer.grade for answer in group] for task, group in zip(tasks, answers, strict=True)}
    kept, num_always, num_never = curriculum.solved_sometimes(graded)
    print(f"Filter: {num_always} always solved, {num_never} never, {len(kept)} sometimes: these are trained on.")
    if len(kept) < config.prompts_per_step:
        raise RlvrError(
            f"filter_samples = {config.filter_samples} leaves {len(kept)} tasks, fewer than prompts_per_step = "
            f"{config.prompts_per_step}: sample more answers, allow more tasks (limit), or set filter_samples = 0"
        )
    chosen = set(kept)
    return [task for task in tasks if task.id in chosen]


def print_preflight(answers: Sequence[Sequence[Sampled]], config: TrainConfig) -> None:
    """Say what the base model can do before hours are spent on it."""
    found = preflight(answers)
    print(f"Preflight: {found.describe()}")
    for finding in found.findings(config):
        print_finding(finding)


# ---------------------------------------------------------------------------------------------------------------------
# The cycle


def last_checkpoint(files: RunFiles) -> Path:
    """The newest whole checkpoint of an interrupted cycle; one that a power cut left half written is passed over.

    Raises:
        RlvrError: when there is none.
    """
    found = whole_checkpoints(files)
    if not found:
        raise RlvrError(f"{files.checkpoints}: no checkpoint to resume from: start the cycle again without --resume")
    return found[-1]


def forget_after(files: RunFiles, step: int) -> None:
    """Drop the lines of steps that the checkpoint does not know: they will be taken again."""
    for path, record_type in ((files.metrics, Step), (files.trace, Completion)):
        if path.is_file():
            kept = [
                records.encode(line) + b"\n" for line in records.read_lines(path, record_type) if line.step <= step
            ]
            temporary = path.with_name(path.name + ".tmp")
            temporary.write_bytes(b"".join(kept))
            os.replace(temporary, path)


def train(args: argparse.Namespace) -> int:
    config, origins = config_from_flags(args, TrainConfig)
    files = RunFiles(args.cycle) if args.cycle else StandaloneFiles(STANDALONE_DIR)
    parent = find_adapter(args.parent) if args.parent else None
    checkpoint = last_checkpoint(files) if args.resume else None

    env = environment.load(config.environment)
    env.configure(config)
    tasks, left_out = build_tasks(config, env, find_outcomes(args, files))

    # Heavy imports from here on; unsloth, where there is one, has to come before TRL.
    from rlvr import models

    models.import_backend()
    from datasets import Dataset
    from trl import GRPOConfig

    from rlvr.grpo import TASK_COLUMN, RecordingTrainer, StopOnSignal

    policy = models.load_policy(
        config.base_model,
        max_seq_length=config.max_seq_length,
        lora_rank=config.lora_rank,
        lora_alpha=config.lora_alpha,
        adapter=parent,
        trainable=True,
        seed=config.seed,
        threads=config.threads,
    )
    style = prompt_style(config, policy)
    prompts = [task.prompt_text(style) for task in tasks]
    encoded = models.encode_prompts(policy.tokenizer, prompts)
    prompt_lengths = {task.id: len(ids) for task, ids in zip(tasks, encoded, strict=True)}
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    budget = plan_budget(config, prompt_lengths, world_size)
    print_banner(config, policy, budget, parent, len(tasks))

    if checkpoint is not None:
        chosen = set(files.tasks.read_text(encoding="utf-8").split())
        tasks = [task for task in tasks if task.id in chosen]
    else:
        tasks = sample_first(config, policy, env, tasks, budget.completion_tokens, is_cold=parent is None)
    files.folder.mkdir(parents=True, exist_ok=True)
    if checkpoint is None:
        files.tasks.write_text("".join(f"{task.id}\n" for task in tasks), encoding="utf-8")
        for path in (files.metrics, files.trace):
            path.unlink(missing_ok=True)
    else:
        step = int(checkpoint.name.rpartition("-")[2])
        forget_after(files, step)
        print(f"Resuming after step {step} ({checkpoint})")
    about = {**provenance(), **env.provenance(config), "parent": str(parent or ""), "num_tasks": len(tasks)}
    write_snapshot(files.config, config, origins, about)
    if args.cycle and parent:
        link_parent(files, parent)
    status = StatusFile(files.status, new_status("train", "running", started=time.time(), max_steps=config.max_steps))

    on_cpu = policy.device == "cpu"
    stop = StopOnSignal()

    watch = Watch(config)
    is_main = os.environ.get("RANK", "0") == "0"

    def on_step(step: Step, completions: Sequence[Completion]) -> bool:
        new_findings = watch.add(step, completions)
        if is_main:
            print(step_text(step), flush=True)
            solved = step.outcomes.get("solved", 0) / max(sum(step.outcomes.values()), 1)
            status.write(step=step.step, reward=step.reward, solved=solved)
            for finding in new_findings:
                print_finding(finding)
        return config.stop_on_dead_signal and watch.dead is not None and step.step < step.max_steps

    trainer = RecordingTrainer(
        environment=env,
        tasks=tasks,
        trace_file=files.trace,
        metrics_file=files.metrics,
        on_step=on_step,
        model=policy.model,
        processing_class=policy.tokenizer,
        train_dataset=Dataset.from_list(
            [
                {
                    "prompt": [{"role": "user", "content": task.prompt_text(style)}],
                    TASK_COLUMN: index,
                    **task.columns(),
                }
                for index, task in enumerate(tasks)
            ]
        ),
        callbacks=[stop],
        args=GRPOConfig(
            output_dir=str(files.checkpoints),
            per_device_train_batch_size=budget.per_forward,
            gradient_accumulation_steps=budget.accumulation,
            num_generations=config.num_generations,
            max_completion_length=budget.completion_tokens,
            temperature=config.temperature,
            top_p=config.top_p,
            beta=config.kl_beta,
            loss_type=config.loss_type,
            scale_rewards=config.scale_rewards,
            mask_truncated_completions=config.mask_truncated,
            learning_rate=config.learning_rate,
            lr_scheduler_type=config.lr_scheduler,
            warmup_steps=config.warmup_steps,
            max_grad_norm=config.max_grad_norm,
            max_steps=config.max_steps,
            logging_steps=1,
            save_steps=config.save_steps,
            save_total_limit=config.keep_checkpoints,
            seed=config.seed,
            report_to="none",
            disable_tqdm=True,
            use_cpu=on_cpu,
            bf16=not on_cpu,
            gradient_checkpointing=not on_cpu,
            dataloader_pin_memory=not on_cpu,
        ),
    )

    sample_baseline(config, policy, env, tasks, budget.completion_tokens, "before")
    stop.install()
    try:
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    except BaseException as error:
        status.write(state="failed", finished=time.time(), message=f"{type(error).__name__}: {error}")
        raise
    if stop.received:
        code = 128 + stop.received
        status.write(state="killed", finished=time.time(), exit_code=code, message=f"stopped by {stop.received.name}")
        print(f"Stopped by {stop.received.name} after step {trainer.state.global_step}; go on with --resume.")
        return code
    if trainer.state.global_step < config.max_steps and watch.dead is not None:
        message = f"nothing is being learned: {watch.dead.title}: {watch.dead.what}"
        status.write(state="failed", finished=time.time(), exit_code=NOTHING_LEARNED, message=message)
        print(f"Stopped after step {trainer.state.global_step} with a checkpoint; {message}", flush=True)
        return NOTHING_LEARNED

    sample_baseline(config, policy, env, tasks, budget.completion_tokens, "after")
    policy.model.save_pretrained(files.adapter, selected_adapters=["default"])
    policy.tokenizer.save_pretrained(files.adapter)
    outcomes = curriculum.count_outcomes(records.read_lines(files.trace, Completion), left_out)
    records.write(files.outcomes, outcomes)
    status.write(state="done", finished=time.time(), exit_code=0)
    print_summary(outcomes, files)
    return 0


def print_summary(outcomes: Outcomes, files: RunFiles) -> None:
    print(
        f"Outcomes: {len(outcomes.seen)} sequences seen, {len(outcomes.always_solved)} always solved "
        f"(left out next time), {len(outcomes.never_matched)} never matched a hidden term."
    )
    print(f"Saved {files.adapter}/  ({files.metrics}, {files.trace}, {files.outcomes})")


def main() -> int:
    # Until training can stop at a step, SIGTERM ends the program the way Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    return train(parse_arguments())


if __name__ == "__main__":
    sys.exit(run_program(main))
