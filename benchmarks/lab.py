"""Seconds an update: the lab's loop beside TRL's GRPOTrainer, with the same model, problems, rewards and batch.

    python benchmarks/lab.py                    # three rounds of 30 updates each, interleaved
    python benchmarks/lab.py --rounds 1 --updates 10

All begin at the same supervised start, in this process, with one thread. TRL runs twice: with the lab's weights in
transformers' GPT-2, which is the same architecture and what one would train with it, and with the lab's own modules
behind the thinnest wrapper, which leaves out what transformers does around a forward pass. Both sample through
`generate` with a key-value cache; log-probabilities and loss are TRL's own code. Logging, saving and evaluation are
off. Seconds are from one optimizer step to the next, without the first two, as wall and as CPU time: on a busy machine
compare the latter. It is no comparison of what TRL is made for, large models on GPUs.
"""

import argparse
import copy
import os
import statistics
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import datasets
import torch
import transformers
import trl
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationMixin, PreTrainedModel, PreTrainedTokenizerFast, TrainerCallback
from transformers.cache_utils import DynamicCache
from transformers.configuration_utils import PretrainedConfig
from transformers.modeling_outputs import CausalLMOutputWithPast

from rlvr.lab.model import CONTEXT, Transformer
from rlvr.lab.rewards import verified_reward
from rlvr.lab.settings import Settings
from rlvr.lab.task import ANSWER_LENGTH, END, PROMPT_LENGTH, SYMBOLS, Problem, decode, encode, grade, split_problems
from rlvr.lab.training import reinforce, supervised_start

WARM_UP = 2
"""Updates at the beginning of a round that are not counted."""


# ---------------------------------------------------------------------------------------------------------------------
# The lab's model as a transformers model


class LabConfig(PretrainedConfig):
    model_type = "tiny_lab"

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size, self.hidden_size, self.num_hidden_layers = len(SYMBOLS), 40, 2
        self.num_attention_heads = self.num_key_value_heads = 4
        self.max_position_embeddings = CONTEXT
        self.auto_map = {"AutoModelForCausalLM": ""}  # TRL asks it which class loads the reference model


class LabForTrl(PreTrainedModel, GenerationMixin):
    """The same modules; prompts all have one length, so that there is nothing to mask on the left."""

    config_class = LabConfig
    _supports_sdpa = True

    def __init__(self, config: LabConfig):
        super().__init__(config)
        self.lab = Transformer()
        self.post_init()

    def _init_weights(self, module):
        pass

    def get_input_embeddings(self):
        return self.lab.symbols

    def get_output_embeddings(self):
        return self.lab.logits

    def forward(self, input_ids, attention_mask=None, past_key_values=None, use_cache=None, logits_to_keep=0, **_):
        cache = past_key_values if use_cache else None
        start = cache.get_seq_length() if cache is not None else 0
        x_BTD = self.lab.symbols(input_ids) + self.lab.positions.weight[start : start + input_ids.shape[1]]
        for number, block in enumerate(self.lab.blocks):
            # The block concatenates what it has read; a transformers cache keeps exactly that.
            past = None
            if cache is not None:
                past = [cache.layers[number].keys, cache.layers[number].values] if start else []
            x_BTD = block(x_BTD, past)
            if cache is not None:
                store(cache, number, *past)
        hidden_BTD = self.lab.last(x_BTD)
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) and logits_to_keep else slice(None)
        return CausalLMOutputWithPast(logits=self.lab.logits(hidden_BTD[:, kept]), past_key_values=cache)


transformers.AutoConfig.register(LabConfig.model_type, LabConfig)
transformers.AutoModelForCausalLM.register(LabConfig, LabForTrl)


def as_gpt2(start: Transformer) -> transformers.GPT2LMHeadModel:
    """The same function in transformers' own class: same shapes, same weights."""
    config = transformers.GPT2Config(
        vocab_size=len(SYMBOLS),
        n_positions=CONTEXT,
        n_embd=40,
        n_layer=2,
        n_head=4,
        activation_function="gelu",
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        tie_word_embeddings=False,
        bos_token_id=END,
        eos_token_id=END,
        pad_token_id=END,
    )
    model = transformers.GPT2LMHeadModel(config)
    body = model.transformer
    with torch.no_grad():
        body.wte.weight.copy_(start.symbols.weight)
        body.wpe.weight.copy_(start.positions.weight)
        for theirs, ours in zip(body.h, start.blocks, strict=True):
            for norm, other in ((theirs.ln_1, ours.before_attention), (theirs.ln_2, ours.before_perceptron)):
                norm.load_state_dict(other.state_dict())
            for layer, other in (
                (theirs.attn.c_attn, ours.query_key_value),
                (theirs.attn.c_proj, ours.attention_out),
                (theirs.mlp.c_fc, ours.perceptron[0]),
                (theirs.mlp.c_proj, ours.perceptron[2]),
            ):
                layer.weight.copy_(other.weight.T)
                layer.bias.copy_(other.bias)
        model.lm_head.weight.copy_(start.logits.weight)
        # GPT-2 has no bias in its last layer; the same shift of the logits goes into the norm before it.
        shift = torch.linalg.lstsq(start.logits.weight, start.logits.bias[:, None]).solution[:, 0]
        body.ln_f.weight.copy_(start.last.weight)
        body.ln_f.bias.copy_(start.last.bias + shift)
        tokens = torch.tensor([encode("Q:2+3,*2\nA:2+3=")])
        assert torch.allclose(model(tokens).logits, start(tokens), atol=1e-4)
    return model


def wrapped(start: Transformer) -> LabForTrl:
    model = LabForTrl(LabConfig())
    model.lab.load_state_dict(start.state_dict())
    model.generation_config.update(eos_token_id=END, pad_token_id=END)
    return model


def store(cache: DynamicCache, number: int, keys: torch.Tensor, values: torch.Tensor) -> None:
    """Put a layer's keys and values into the cache without copying them again."""
    if len(cache.layers) <= number or not cache.layers[number].is_initialized:
        cache.update(keys, values, number)
    else:
        cache.layers[number].keys, cache.layers[number].values = keys, values


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A token a character; the end token pads, too. Prompts come filled up to one length."""
    tokenizer = Tokenizer(models.WordLevel({symbol: number for number, symbol in enumerate(SYMBOLS)}, unk_token="="))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    end = SYMBOLS[END]
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end, pad_token=end, padding_side="left")
    # As a special token the end symbol would be cut from the middle of the prompt.
    assert fast("Q:2+3,*2\nA:")["input_ids"] == encode("Q:2+3,*2\nA:")
    return fast


# ---------------------------------------------------------------------------------------------------------------------
# The two arms: each returns seconds per update, wall and CPU, and the mean reward of the last five updates

Times = tuple[list[float], list[float], float]


def time_lab(start: Transformer, settings: Settings) -> Times:
    wall, cpu, rewards = [], [], []
    model, problems = copy.deepcopy(start), split_problems().train
    before = time.perf_counter(), time.process_time()
    for update in reinforce(model, settings, problems, verified_reward):
        now = time.perf_counter(), time.process_time()
        wall.append(now[0] - before[0])
        cpu.append(now[1] - before[1])
        rewards.append(update.reward)
        before = now
    return wall[WARM_UP:], cpu[WARM_UP:], statistics.fmean(rewards[-5:])


class Clock(TrainerCallback):
    """Notes the time at the end of every optimizer step."""

    def __init__(self):
        self.marks: list[tuple[float, float]] = []

    def on_train_begin(self, *_, **__):
        self.marks.append((time.perf_counter(), time.process_time()))

    def on_step_end(self, *_, **__):
        self.marks.append((time.perf_counter(), time.process_time()))


def time_trl(model: PreTrainedModel, settings: Settings) -> Times:
    rows = [{"prompt": p.prompt.rjust(PROMPT_LENGTH), "a": p.a, "b": p.b, "c": p.c} for p in split_problems().train]
    rewards: list[float] = []

    def reward(completion_ids, a, b, c, **_) -> list[float]:
        problems = map(Problem, a, b, c)
        found = [grade(p, decode(ids)).reward for p, ids in zip(problems, completion_ids, strict=True)]
        rewards.append(statistics.fmean(found))
        return found

    clock = Clock()
    answers = settings.prompts * settings.group_size
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)  # TRL loads the reference model, which stays at the start, from the disk
        model = type(model).from_pretrained(folder)
        trainer = trl.GRPOTrainer(
            model=model,
            processing_class=make_tokenizer(),
            reward_funcs=reward,
            train_dataset=datasets.Dataset.from_list(rows),
            callbacks=[clock],
            args=trl.GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=answers,
                gradient_accumulation_steps=1,
                num_generations=settings.group_size,
                max_completion_length=ANSWER_LENGTH,
                max_steps=settings.steps,
                learning_rate=settings.learning_rate,
                lr_scheduler_type="constant",
                adam_beta2=0.98,
                max_grad_norm=0.0,
                beta=settings.kl,
                loss_type="bnpo",
                scale_rewards="none",
                temperature=settings.temperature,
                use_cpu=True,
                bf16=False,
                gradient_checkpointing=False,
                dataloader_pin_memory=False,
                report_to="none",
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
                seed=settings.seed,
            ),
        )
        trainer.train()
    pairs = list(zip(clock.marks, clock.marks[1:], strict=False))[WARM_UP:]
    wall, cpu = [b[0] - a[0] for a, b in pairs], [b[1] - a[1] for a, b in pairs]
    return wall, cpu, statistics.fmean(rewards[-5:])


ARMS = {
    "lab": "the lab's loop",
    "gpt2": "TRL's GRPOTrainer, GPT-2",
    "wrapped": "TRL's GRPOTrainer, the lab's modules",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--prompts", type=int, default=Settings().prompts)
    parser.add_argument("--start-steps", type=int, default=Settings().start_steps)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    settings = Settings(steps=args.updates, prompts=args.prompts, start_steps=args.start_steps)
    start = supervised_start(settings, split_problems().train)
    found: dict[str, list[Times]] = {name: [] for name in ARMS}
    for number in range(args.rounds):
        settings = replace(settings, seed=number)
        found["lab"].append(time_lab(start, settings))
        found["gpt2"].append(time_trl(as_gpt2(start), settings))
        found["wrapped"].append(time_trl(wrapped(start), settings))
    print(
        f"\n{settings.prompts} problems x {settings.group_size} answers an update, {args.updates} updates, "
        f"{args.rounds} rounds, one thread; torch {torch.__version__}, trl {trl.__version__}, "
        f"transformers {transformers.__version__}\n"
    )
    print(
        "| | median ms an update (wall) | median ms an update (CPU) | best round (wall) | mean reward of the last 5 |"
    )
    print("|---|---:|---:|---:|---:|")
    medians = {}
    for name, rounds in found.items():
        wall = statistics.median(one for wall, _, _ in rounds for one in wall)
        cpu = statistics.median(one for _, cpu, _ in rounds for one in cpu)
        best = min(statistics.median(wall) for wall, _, _ in rounds)
        reward = statistics.fmean(reward for _, _, reward in rounds)
        medians[name] = wall, cpu, best
        print(f"| {ARMS[name]} | {1000 * wall:.1f} | {1000 * cpu:.1f} | {1000 * best:.1f} | {reward:.2f} |")
    for name in ("gpt2", "wrapped"):
        ratios = [trl_s / lab_s for lab_s, trl_s in zip(medians["lab"], medians[name], strict=True)]
        print(f"| {ARMS[name]}: times the lab's | {ratios[0]:.1f} | {ratios[1]:.1f} | {ratios[2]:.1f} | |")


if __name__ == "__main__":
    main()
