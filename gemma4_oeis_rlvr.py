"""One GRPO training cycle: tasks, policy, training, adapter.

    python gemma4_oeis_rlvr.py                       # Gemma 4 E2B on one GPU; saves gemma_4_oeis_lora/
    python gemma4_oeis_rlvr.py --preset tiny         # the tiny model, on any CPU, in minutes
    python gemma4_oeis_rlvr.py --config config.toml --cycle training/m/002 --parent training/m/001

Every key of `rlvr/config.py` is a flag. The algorithm is TRL's GRPOTrainer; held-out evaluation is `eval_oeis.py`.
Exit codes: 0 done, 2 something to correct in the command or its files, 3 it ended itself because nothing was being
learned (`stop_on_dead_signal`), 130 Ctrl-C, 143 SIGTERM. The last three leave a checkpoint to `--resume` from.
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rlvr import curriculum, environment, records
from rlvr.arguments import Parser, run_program
from rlvr.budget import Budget, ModelSize, estimate_memory, plan_budget, size_from_shapes
from rlvr.config import TrainConfig, add_flags, config_from_flags, write_snapshot
from rlvr.cycles import STANDALONE_DIR, RunFiles, StandaloneFiles, find_adapter, link_parent, whole_checkpoints
from rlvr.diagnosis import Finding, Watch
from rlvr.environment import Environment, Task
from rlvr.errors import RlvrError
from rlvr.files import replace_file
from rlvr.listing import step_text
from rlvr.preflight import Sampled, preflight
from rlvr.provenance import provenance
from rlvr.records import Completion, Step
from rlvr.status import SUPERVISED, StatusFile, new_status

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
            replace_file(path, b"".join(kept))


def say_what_is_replaced(files: RunFiles) -> None:
    """Say it before the model is loaded, while nothing is lost yet."""
    if old := whole_checkpoints(files):
        print(
            f"{files.folder} holds a run of {step_of(old[-1])} steps: this one takes its place once it begins to "
            "train. --resume goes on with it instead."
        )


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def make_room(files: RunFiles) -> None:
    """Take away what a run before this one left in its folder, so that no --resume takes that for its own.

    Its adapter and outcomes stay until there is something in their place: see `forget_adapter`.
    """
    for checkpoint in files.checkpoints.glob("checkpoint-*"):
        shutil.rmtree(checkpoint)
    for path in (files.metrics, files.trace):
        path.unlink(missing_ok=True)
    if files.parent.is_symlink():
        files.parent.unlink()


def forget_adapter(files: RunFiles, outcomes_file: Path | None) -> None:
    """Take away the weights of the run before, and its outcomes unless those are what --resume is to read again.

    The rest of the adapter's folder is written anew with the new weights.
    """
    for path in files.adapter.glob("adapter_*"):
        path.unlink()
    if outcomes_file != files.outcomes:
        files.outcomes.unlink(missing_ok=True)


def make_folder(files: RunFiles) -> None:
    """Make the folder of a run; a supervisor has made that of its own, which is not to be made anew where it was.

    Raises:
        RlvrError: when that is gone.
    """
    if SUPERVISED not in os.environ:
        files.folder.mkdir(parents=True, exist_ok=True)
    elif not files.folder.is_dir():
        raise RlvrError(f"{files.folder}: moved or removed while the run was being started")


@contextlib.contextmanager
def leaving_a_status(status: StatusFile) -> Iterator[None]:
    """When a run does not come to an end of its own, say in its status why."""
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(OSError, RlvrError):  # a full disk, or a folder that was moved, may be the reason
            status.write(finished=time.time(), **end_of(error))
        raise


def end_of(error: BaseException) -> dict[str, object]:
    """The fields of a status that say how an exception ended the run."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        number = signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM
        return {"state": "killed", "exit_code": 128 + number, "message": f"stopped at once by {number.name}"}
    if isinstance(error, RlvrError):
        return {"state": "failed", "exit_code": 2, "message": str(error)}
    return {"state": "failed", "exit_code": 1, "message": f"{type(error).__name__}: {error}"}


class Cycle(NamedTuple):
    """A cycle, looked at and loaded: `left_out` by the curriculum of `outcomes_file`, to go on from `checkpoint`."""

    config: TrainConfig
    files: RunFiles
    env: Environment
    tasks: Sequence[Task]
    left_out: frozenset[str]
    outcomes_file: Path | None
    policy: "Policy"
    budget: Budget
    parent: Path | None
    checkpoint: Path | None

    @property
    def first_step(self) -> int:
        """The steps that are taken already."""
        return step_of(self.checkpoint) if self.checkpoint else 0


def prepare(args: argparse.Namespace, config: TrainConfig) -> Cycle:
    """Find and load what the cycle needs; nothing is written yet.

    Raises:
        RlvrError: for something to correct.
    """
    files = RunFiles(args.cycle) if args.cycle else StandaloneFiles(STANDALONE_DIR)
    if SUPERVISED in os.environ:
        make_folder(files)
    parent = find_adapter(args.parent) if args.parent else None
    checkpoint = last_checkpoint(files) if args.resume else None
    if checkpoint is None:
        say_what_is_replaced(files)

    env = environment.load(config.environment)
    env.configure(config)
    outcomes_file = find_outcomes(args, files)
    tasks, left_out = build_tasks(config, env, outcomes_file)

    # Heavy imports from here on; unsloth, where there is one, has to come before TRL.
    from rlvr import models

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
    encoded = models.encode_prompts(policy.tokenizer, [task.prompt_text(style) for task in tasks])
    prompt_lengths = {task.id: len(ids) for task, ids in zip(tasks, encoded, strict=True)}
    budget = plan_budget(config, prompt_lengths, int(os.environ.get("WORLD_SIZE", "1")))
    print_banner(config, policy, budget, parent, len(tasks))
    if checkpoint is not None:
        chosen = set(files.tasks.read_text(encoding="utf-8").split())
        tasks = [task for task in tasks if task.id in chosen]
    else:
        tasks = sample_first(config, policy, env, tasks, budget.completion_tokens, is_cold=parent is None)
    return Cycle(config, files, env, tasks, left_out, outcomes_file, policy, budget, parent, checkpoint)


def train(args: argparse.Namespace) -> int:
    config, origins = config_from_flags(args, TrainConfig)
    cycle = prepare(args, config)
    files = cycle.files
    make_folder(files)
    # Of several processes that train together, one writes.
    is_main = os.environ.get("RANK", "0") == "0"
    now = new_status("train", "running", started=time.time(), step=cycle.first_step, max_steps=config.max_steps)
    status = StatusFile(files.status, now, writes=is_main)
    with leaving_a_status(status):
        if is_main:
            begin_files(cycle)
            about = {**provenance(), **cycle.env.provenance(config), "parent": str(cycle.parent or "")}
            write_snapshot(files.config, config, origins, {**about, "num_tasks": len(cycle.tasks)})
            if args.cycle and cycle.parent:
                link_parent(files, cycle.parent)
        code = run_steps(cycle, status, is_main)
        if code == 0 and is_main:
            status.check_folder()
            save(cycle)
            status.write(state="done", finished=time.time(), exit_code=0)
    return code


def begin_files(cycle: Cycle) -> None:
    """Let the files of the folder say where this run begins: at its first step, or after its checkpoint."""
    files, checkpoint = cycle.files, cycle.checkpoint
    if checkpoint is None:
        make_room(files)
        files.tasks.write_text("".join(f"{task.id}\n" for task in cycle.tasks), encoding="utf-8")
    else:
        forget_after(files, cycle.first_step)
        print(f"Resuming after step {cycle.first_step} ({checkpoint})")


def run_steps(cycle: Cycle, status: StatusFile, is_main: bool) -> int:
    """Take the steps that are still to be taken; the exit code, 0 when the last one is."""
    from datasets import Dataset
    from trl import GRPOConfig

    from rlvr.grpo import TASK_COLUMN, RecordingTrainer, StopOnSignal

    config, files, policy = cycle.config, cycle.files, cycle.policy
    env, tasks, budget = cycle.env, cycle.tasks, cycle.budget
    style = prompt_style(config, policy)
    on_cpu = policy.device == "cpu"
    stop = StopOnSignal()
    watch = Watch(config)

    def on_step(step: Step, completions: Sequence[Completion]) -> bool:
        new_findings = watch.add(step, completions)
        if is_main:
            print(step_text(step), flush=True)
            solved = step.outcomes.get("solved", 0) / max(sum(step.outcomes.values()), 1)
            status.write(step=step.step, reward=step.reward, solved=solved)
            for finding in new_findings:
                print_finding(finding)
        return config.stop_on_dead_signal and watch.dead is not None and step.step < step.max_steps

    def on_saved() -> None:
        # Now there is something in place of what the run before left; one that starts from that still needs it.
        is_own_parent = cycle.parent is not None and cycle.parent.resolve() == files.adapter.resolve()
        if cycle.checkpoint is None and not is_own_parent:
            forget_adapter(files, cycle.outcomes_file)

    status.check_folder()
    trainer = RecordingTrainer(
        environment=env,
        tasks=tasks,
        trace_file=files.trace,
        metrics_file=files.metrics,
        before_writing=status.check_folder,
        on_step=on_step,
        on_saved=on_saved,
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

    if cycle.checkpoint and cycle.first_step >= config.max_steps:
        print("Every step is taken: the adapter is saved.", flush=True)
        trainer.load_weights(cycle.checkpoint)
        stop.install()
    else:
        sample_baseline(config, policy, env, tasks, budget.completion_tokens, "before")
        stop.install()
        trainer.train(resume_from_checkpoint=str(cycle.checkpoint) if cycle.checkpoint else None)
        taken = trainer.state.global_step
        if stop.received and taken < config.max_steps:
            code, name = 128 + stop.received, stop.received.name
            status.write(state="killed", finished=time.time(), exit_code=code, message=f"stopped by {name}")
            print(f"Stopped by {name} after step {taken}; go on with --resume.")
            return code
        if taken < config.max_steps and watch.dead is not None:
            message = f"nothing is being learned: {watch.dead.title}: {watch.dead.what}"
            status.write(state="failed", finished=time.time(), exit_code=NOTHING_LEARNED, message=message)
            print(f"Stopped after step {taken} with a checkpoint; {message}", flush=True)
            return NOTHING_LEARNED

    with stop.breaking_off():
        if not stop.received:
            sample_baseline(config, policy, env, tasks, budget.completion_tokens, "after")
    if stop.received:
        print(f"{stop.received.name}: every step is taken, so the adapter is saved all the same.", flush=True)
    return 0


def save(cycle: Cycle) -> None:
    """Save the adapter and what the next cycle's curriculum reads, and say so."""
    files, policy = cycle.files, cycle.policy
    policy.model.save_pretrained(files.adapter, selected_adapters=["default"])
    policy.tokenizer.save_pretrained(files.adapter)
    outcomes = curriculum.count_outcomes(records.read_lines(files.trace, Completion), cycle.left_out)
    records.write(files.outcomes, outcomes)
    print(
        f"Outcomes: {len(outcomes.seen)} sequences seen, {len(outcomes.always_solved)} always solved "
        f"(left out next time), {len(outcomes.never_matched)} never matched a hidden term."
    )
    print(f"Saved {files.adapter}/  ({files.metrics}, {files.trace}, {files.outcomes})")


def main() -> int:
    # Until training can stop at a step, SIGTERM ends the program the way Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        return train(parse_arguments())
    except SystemExit as ended:
        if ended.code == 128 + signal.SIGTERM:
            print("Stopped at once by SIGTERM.", file=sys.stderr)
        raise


if __name__ == "__main__":
    sys.exit(run_program(main))
