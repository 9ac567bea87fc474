"""Build a random Gemma 4 of a few hundred thousand weights, with a tokenizer and a chat template like the real one's.

`make_tiny_gemma4(folder, kind="conditional")`, or `python tests/tiny_gemma4.py FOLDER --kind text`. It has what is
unusual in Gemma 4 (per-layer inputs, shared keys and values, sliding windows, global heads of another size, and for
"conditional" a vision and an audio tower). It knows nothing: it shows that code runs, not that anything is learned.
"""

import argparse
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    Gemma4AudioConfig,
    Gemma4Config,
    Gemma4ForCausalLM,
    Gemma4ForConditionalGeneration,
    Gemma4TextConfig,
    Gemma4VisionConfig,
    GenerationConfig,
    PreTrainedTokenizerFast,
)

Kind = Literal["text", "conditional"]

SPECIAL = (
    "<pad>",
    "<eos>",
    "<bos>",
    "<|turn>",
    "<turn|>",
    "<|image|>",
    "<|video|>",
    "<|audio|>",
    "<image|>",
    "<audio|>",
)
"""Special tokens; a token's id is its place. A turn ends with <turn|>, a text with <eos>."""

CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{{ '<|turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\n' }}"
    "{{ message['content'] | trim + '<turn|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|turn>model\n' }}{% endif %}"
)


def make_tiny_gemma4(folder: Path, kind: Kind = "text", seed: int = 0) -> Path:
    """Write model, generation config and tokenizer into `folder` in Hugging Face's format; return `folder`."""
    tokenizer = byte_tokenizer()
    tokenizer.save_pretrained(folder)
    text = text_config(len(tokenizer))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = (
            Gemma4ForCausalLM(text) if kind == "text" else Gemma4ForConditionalGeneration(conditional_config(text))
        )
    # As in the real checkpoint: several tokens end an answer, and it recommends a sampling of its own.
    model.generation_config = GenerationConfig(
        bos_token_id=2, eos_token_id=[1, 4], pad_token_id=0, do_sample=True, temperature=1.0, top_k=64, top_p=0.95
    )
    model.save_pretrained(folder)
    return folder


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """One token a byte of UTF-8, beside the special ones."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([*SPECIAL, *letters])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<eos>",
        bos_token="<bos>",
        additional_special_tokens=list(SPECIAL[3:]),
        chat_template=CHAT_TEMPLATE,
    )


def text_config(vocab_size: int) -> Gemma4TextConfig:
    return Gemma4TextConfig(
        vocab_size=vocab_size,
        vocab_size_per_layer_input=vocab_size,
        hidden_size=64,
        hidden_size_per_layer_input=16,
        intermediate_size=96,
        num_hidden_layers=4,
        layer_types=["sliding_attention", "full_attention"] * 2,
        num_kv_shared_layers=2,
        use_double_wide_mlp=True,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        global_head_dim=32,  # type: ignore[call-arg]
        sliding_window=64,
        max_position_embeddings=4096,
        final_logit_softcapping=30.0,
    )


def conditional_config(text: Gemma4TextConfig) -> Gemma4Config:
    return Gemma4Config(
        text_config=text,
        vision_config=Gemma4VisionConfig(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=16,
            position_embedding_size=64,
        ),
        audio_config=Gemma4AudioConfig(
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            subsampling_conv_channels=(8, 4),
            output_proj_dims=48,
        ),
        image_token_id=5,
        video_token_id=6,
        audio_token_id=7,
        boi_token_id=5,
        eoi_token_id=8,
        boa_token_id=7,
        eoa_token_index=9,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write a random tiny Gemma 4 into a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=("text", "conditional"), default="text")
    args = parser.parse_args()
    print(make_tiny_gemma4(args.folder, args.kind))
