"""TRL's GRPOTrainer, with every completion graded by an environment and every step recorded.

The algorithm is TRL's, unchanged; this subclass looks on: it times generation and scoring, writes one trace line a
completion and one metrics line a step, and stops at a signal with a checkpoint. Import it after
`models.import_backend()`, because unsloth wants to be imported before TRL.
"""

import contextlib
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from transformers import PrinterCallback, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from trl import GRPOTrainer

from rlvr import records
from rlvr.environment import Environment, Task
from rlvr.generation import complete
from rlvr.records import Completion, Grade, Step

TASK_COLUMN = "task_index"

EQUAL_REWARDS = 1e-6
"""Rewards this close are equal: their sums are rounded."""


class RecordingTrainer(GRPOTrainer):
    """GRPOTrainer over the tasks of an environment.

    Args:
        environment: grades completions; its `REWARD_FUNCS` are the trainer's reward functions.
        tasks: the dataset's column `task_index` points into them.
        trace_file: one line a completion is appended here.
        metrics_file: one line a step is appended here.
        before_writing: called before anything is written; what it raises ends the training.
        on_step: called in every process with each step's record and completions after they were written; True ends
            the training with a checkpoint.
        on_saved: called in the main process after a checkpoint was written.
    """

    def __init__(
        self,
        *,
        environment: Environment,
        tasks: Sequence[Task],
        trace_file: Path,
        metrics_file: Path,
        before_writing: Callable[[], None],
        on_step: Callable[[Step, Sequence[Completion]], bool],
        on_saved: Callable[[], None],
        **trainer_args: Any,
    ):
        super().__init__(reward_funcs=list(environment.REWARD_FUNCS), **trainer_args)
        self.remove_callback(PrinterCallback)  # on_step prints, in our words
        self._environment = environment
        self._tasks = tasks
        self._trace_file = trace_file
        self._metrics_file = metrics_file
        self._before_writing = before_writing
        self._on_step = on_step
        self._on_saved = on_saved
        self._graded: list[tuple[Task, str, Grade, int, bool]] = []
        self._step_completions: list[Completion] = []
        self._generation_s = self._scoring_s = 0.0
        self._step_began = time.perf_counter()

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        super()._load_from_checkpoint(resume_from_checkpoint, model)
        # transformers loads the adapters in subfolders, such as the KL reference, and then not the one beside them.
        peft_model: Any = self.model if model is None else model
        peft_model.load_adapter(resume_from_checkpoint, "default", is_trainable=True)
        peft_model.set_adapter("default")

    def load_weights(self, checkpoint: Path) -> None:
        """Take the weights of a checkpoint without going on from it: TRL takes a step more after the last one."""
        self._load_from_checkpoint(str(checkpoint))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self._before_writing()
        super()._save_checkpoint(model, trial)
        if self.accelerator.is_main_process:
            self._on_saved()

    def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        if self.accelerator.device.type == "cpu" and self.max_completion_length:
            # A small model on a CPU spends most of its time here: ours reads a group's prompt once.
            completion_ids = complete(
                self.accelerator.unwrap_model(self.model),
                self.processing_class,
                prompt_ids,
                max_new_tokens=self.max_completion_length,
                temperature=self.temperature,
                top_p=self.top_p,
            )
            generated = completion_ids, None
        else:
            generated = super()._generate_single_turn(prompt_ids, *args, **kwargs)
        self._generation_s += time.perf_counter() - began
        return generated

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> torch.Tensor:
        began = time.perf_counter()
        tasks = [self._tasks[row[TASK_COLUMN]] for row in inputs]
        texts = [completion[-1]["content"] for completion in completions]
        ended = set(self.eos_token_ids)
        truncated = [not ids or ids[-1] not in ended for ids in completion_ids_list]
        grades = self._environment.grade(tasks, completions, truncated)
        lengths = [len(ids) for ids in completion_ids_list]
        self._graded = list(zip(tasks, texts, grades, lengths, truncated, strict=True))
        # The reward functions find the answers that grade() has just run, and run nothing again.
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        self._scoring_s += time.perf_counter() - began
        return rewards

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)
        size = self.num_generations or len(inputs)
        first_group = self.accelerator.process_index * len(inputs) // size
        local = [
            completion_record(
                grade,
                step=self.state.global_step + 1,
                group=first_group + position // size,
                sample=position % size,
                prompt=inputs[position]["prompt"][-1]["content"],
                completion=text,
                tokens=length,
                truncated=cut,
                advantage=advantage,
            )
            for position, ((_, text, grade, length, cut), advantage) in enumerate(
                zip(self._graded, output["advantages"].tolist(), strict=True)
            )
        ]
        self._step_completions = gather_object(local)
        if self.accelerator.is_main_process:
            self._before_writing()
            records.append(self._trace_file, *self._step_completions)
        return output

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        super().log(logs, start_time)
        if "loss" not in logs or not self._step_completions:
            return
        now = time.perf_counter()
        step = step_record(
            self._step_completions,
            logs,
            step=self.state.global_step,
            max_steps=self.state.max_steps,
            generation_s=self._generation_s,
            scoring_s=self._scoring_s,
            step_s=now - self._step_began,
        )
        if self.accelerator.is_main_process:
            self._before_writing()
            records.append(self._metrics_file, step)
        if self._on_step(step, self._step_completions):
            self.control.should_save = self.control.should_training_stop = True
        self._step_began, self._generation_s, self._scoring_s = now, 0.0, 0.0
        self._step_completions = []


def completion_record(grade: Grade, **about: Any) -> Completion:
    """A grade and what was graded, as one line of the trace."""
    fields = {name: getattr(grade, name) for name in grade.__struct_fields__}
    return Completion(**fields, time=time.time(), **about)


def step_record(
    completions: Sequence[Completion],
    logs: dict[str, float],
    *,
    step: int,
    max_steps: int,
    generation_s: float,
    scoring_s: float,
    step_s: float,
) -> Step:
    """Sum up the completions of a step and what TRL logged of it.

    A group is all right or all wrong by what was solved, not by partial credit: only a mixed group teaches solving.
    One whose rewards are all equal teaches nothing at all; TRL counts those by batch when it scales by batch.
    """
    groups: dict[int, list[Completion]] = {}
    for completion in completions:
        if completion.reward is not None:
            groups.setdefault(completion.group, []).append(completion)
    solved = [sum(one.outcome == "solved" for one in group) for group in groups.values()]
    sizes = [len(group) for group in groups.values()]
    rewards = [[one.reward or 0.0 for one in group] for group in groups.values()]
    equal = sum(max(group) - min(group) < EQUAL_REWARDS for group in rewards)
    num_groups = max(len(groups), 1)
    all_right = sum(won == size for won, size in zip(solved, sizes, strict=True)) / num_groups
    all_wrong = sum(won == 0 for won in solved) / num_groups
    tokens = sum(one.tokens for one in completions)
    return Step(
        step=step,
        max_steps=max_steps,
        time=time.time(),
        reward=logs.get("reward"),
        reward_std=logs.get("reward_std"),
        rewards={
            name.split("/")[1]: value
            for name, value in logs.items()
            if name.startswith("rewards/") and name.endswith("/mean")
        },
        all_right=all_right,
        mixed=1.0 - all_right - all_wrong if groups else 0.0,
        all_wrong=all_wrong,
        zero_variance=equal / num_groups if groups else 1.0,
        outcomes=dict(Counter(one.outcome for one in completions)),
        loss=logs.get("loss"),
        kl=logs.get("kl"),
        entropy=logs.get("entropy"),
        grad_norm=logs.get("grad_norm"),
        learning_rate=logs.get("learning_rate"),
        length_mean=tokens / len(completions),
        length_max=max(one.tokens for one in completions),
        truncated=sum(one.truncated for one in completions) / len(completions),
        tokens=tokens,
        tokens_per_s=tokens / generation_s if generation_s else 0.0,
        generation_s=generation_s,
        scoring_s=scoring_s,
        update_s=max(step_s - generation_s - scoring_s, 0.0),
        step_s=step_s,
    )


class StopOnSignal(TrainerCallback):
    """SIGTERM and Ctrl-C end the training after the step in progress, with a checkpoint; `received` says which."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._breaks_off = False

    def install(self) -> None:
        """Take over both signals; before this, and at a second Ctrl-C, they end the program at once."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._receive)

    def _receive(self, number: int, frame: Any) -> None:
        at_once = self._breaks_off or self.received is signal.SIGINT
        self.received = signal.Signals(number)
        if at_once:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def breaking_off(self) -> Iterator[None]:
        """Around what may be left out: a signal breaks that off, and what comes after it is still done."""
        self._breaks_off = True
        try:
            yield
        except KeyboardInterrupt:
            pass
        finally:
            self._breaks_off = False

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> TrainerControl:
        # Processes that train together stop together, whichever of them had the signal.
        received = max(gather_object([int(self.received or 0)]))
        if received:
            self.received = signal.Signals(received)
            control.should_save = control.should_training_stop = True
        return control
