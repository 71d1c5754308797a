"""Load SmolLM2 from its GGUF file for torch: the weights, and a tokenizer that gives the same tokens as llama.cpp.

    tokenizer, model = load(Path("SmolLM2-135M-Instruct.Q4_1.gguf"))
    encode_prompt(tokenizer, messages)                          # tokens of a conversation, up to the model's answer
    encode_example(tokenizer, messages, "<tool_call>...")       # the same with the answer, and the answer's start

The tokenizer is built here from the file's tokens and merges: SmolLM2 splits digits, but the tokenizer of transformers
does not, so numbers would be trained in tokens that llama.cpp never produces.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import nn
from torch.nn import functional as F
from transformers import AutoModelForCausalLM

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
START, END = "<|im_start|>", "<|im_end|>"


def load(path: Path, *, dtype: torch.dtype = torch.float32) -> tuple[Tokenizer, Any]:
    model = AutoModelForCausalLM.from_pretrained(str(path.parent), gguf_file=path.name, dtype=torch.float32)
    torch.nn.Module.to(model, dtype)  # transformers rejects its own `.to(dtype)` for a model from GGUF
    return tokenizer_of(path), model


def tokenizer_of(path: Path) -> Tokenizer:
    fields = GGUFReader(path).fields
    tokens, kinds, merges = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "token_type", "merges"))
    tokenizer = Tokenizer(
        models.BPE({word: at for at, word in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(word, special=True) for word, kind in zip(tokens, kinds, strict=True) if kind == 3]
    )
    return tokenizer


def encode_prompt(tokenizer: Tokenizer, messages: list[dict[str, str]]) -> list[int]:
    text = "".join([f"{START}{message['role']}\n{message['content']}{END}\n" for message in messages])
    return tokenizer.encode(f"{text}{START}assistant\n").ids


def encode_example(tokenizer: Tokenizer, messages: list[dict[str, str]], answer: str) -> tuple[list[int], int]:
    before = encode_prompt(tokenizer, messages)
    return [*before, *tokenizer.encode(answer).ids, tokenizer.token_to_id(END)], len(before)


class Lora(nn.Module):
    """A frozen layer with a trainable low-rank product of two matrices."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.base, self.scale = base, alpha / rank
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + F.linear(F.linear(x, self.a.to(x.dtype)), self.b.to(x.dtype)) * self.scale


def add_lora(model: nn.Module, rank: int, alpha: float, seed: int) -> dict[str, nn.Parameter]:
    """Add an adapter to every linear layer of the blocks. Return the trainable weights by name."""
    torch.manual_seed(seed)
    model.requires_grad_(False)
    for path, layer in [(path, layer) for path, layer in model.named_modules() if path.endswith(TARGETS)]:
        parent, _, name = path.rpartition(".")
        setattr(model.get_submodule(parent), name, Lora(layer, rank, alpha))
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
