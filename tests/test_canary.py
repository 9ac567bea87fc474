"""The canary: with a trivial reward the sampled completions must change, or training never reaches the sampler."""

import pytest
import torch

from rlvr import models, records
from rlvr.records import Completion, Grade, Reward, Step


class WantsLoops:
    """An environment whose answers are worth 1 when they contain a loop and 0 when not."""

    @staticmethod
    def loops(completions, **_):
        return [float("for " in completion[0]["content"]) for completion in completions]

    REWARD_FUNCS = (loops,)

    def grade(self, tasks, completions, truncated):
        values = self.loops(completions)
        return [
            Grade(
                task=task,
                outcome="solved" if value else "wrong",
                reward=value,
                rewards=(Reward("loops", value, ""),),
                function=completion[0]["content"],
                checks=(),
                verdict="ok",
            )
            for task, completion, value in zip(tasks, completions, values, strict=True)
        ]


@pytest.mark.slow
def test_a_trivial_reward_rises(tmp_path):
    from datasets import Dataset
    from trl import GRPOConfig

    from rlvr.grpo import TASK_COLUMN, RecordingTrainer

    policy = models.load_policy("tiny", max_seq_length=512, lora_rank=16, lora_alpha=32, trainable=True, seed=0)
    prompts = [
        f"Numbers that are congruent to {{1,{n}}}mod {n + 3}|1:1,{n},{n + 4},{2 * n + 3}\n" for n in range(2, 10)
    ]
    prompts += [f"A sequence|0:1,{n},{n * n},{n**3},{n**4}\n" for n in range(2, 10)]
    torch.manual_seed(0)
    trainer = RecordingTrainer(
        environment=WantsLoops(),
        tasks=prompts,
        trace_file=tmp_path / "trace.jsonl",
        metrics_file=tmp_path / "metrics.jsonl",
        before_writing=lambda: None,
        on_step=lambda step, completions: False,
        on_saved=lambda: None,
        model=policy.model,
        processing_class=policy.tokenizer,
        train_dataset=Dataset.from_list(
            [{"prompt": [{"role": "user", "content": text}], TASK_COLUMN: n} for n, text in enumerate(prompts)]
        ),
        args=GRPOConfig(
            output_dir=str(tmp_path / "checkpoints"),
            per_device_train_batch_size=64,
            num_generations=8,
            max_completion_length=32,
            temperature=1.5,
            learning_rate=3e-3,
            max_steps=20,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            dataloader_pin_memory=False,
        ),
    )
    trainer.train()
    rewards = [step.reward for step in records.read_lines(tmp_path / "metrics.jsonl", Step)]
    assert len(rewards) == 20 and sum(1 for _ in records.read_lines(tmp_path / "trace.jsonl", Completion)) == 20 * 64
    first, last = sum(rewards[:4]) / 4, sum(rewards[-4:]) / 4
    assert last > first + 0.3, rewards
