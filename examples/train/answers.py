"""Generate a model's answers to many questions in batches, without llama.cpp.

    python answers.py --model X.gguf --rows test.jsonl --out answers.jsonl

Reads rows as `train.py` does and writes each with its `answer`, decoded greedily. `--adapter` applies an adapter that
`train.py` or `to_gguf.py` wrote. For a GPU: on a CPU llama.cpp is faster. `serve.py` gives the same answers over HTTP.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from small_model import END, encode_prompt, load
from to_gguf import read_adapter
from tokenizers import Tokenizer
from train import write_whole

Constraint = Callable[[list[int]], torch.Tensor | None]


@dataclass(frozen=True)
class GenerationRequest:
    """One request: the tokens of a prompt, the maximum number of new tokens, and an optional constraint.

    The constraint is called with the tokens so far and returns a bitmask of the allowed next tokens, 32 to a number, or
    None for all of them.
    """

    prompt: list[int]
    max_tokens: int
    constraint: Constraint | None = None


class Generator:
    """A model, its adapter and its tokenizer on a device.

    All in 32 bits: then the other questions in a batch hardly ever change an answer.
    """

    def __init__(self, model: Path, adapter: Path | None = None, device: str = "") -> None:
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.tokenizer: Tokenizer
        self.tokenizer, self.model = load(model)
        if adapter is not None:
            apply_adapter(self.model, adapter)
        self.model.to(self.device).eval()
        self.end = self.tokenizer.token_to_id(END)

    def text(self, tokens: list[int]) -> str:
        return str(self.tokenizer.decode(tokens))

    @torch.inference_mode()
    def answer(self, requests: list[GenerationRequest]) -> list[list[int]]:
        """Decode greedily, for all requests at once; return the new tokens without the end token."""
        ids, mask = self._pad([each.prompt for each in requests])
        new_tokens: list[list[int]] = [[] for _ in requests]
        pending: set[int] = set(range(len(requests)))
        cache: Any = None
        while pending:
            places = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            output = self.model(
                input_ids=ids, attention_mask=mask, position_ids=places, past_key_values=cache, logits_to_keep=1
            )
            cache, logits = output.past_key_values, output.logits[:, -1]
            self._apply_constraints(logits, requests, new_tokens, pending)
            next_tokens = logits.argmax(-1)
            for at, token in enumerate(next_tokens.tolist()):
                if at in pending and token != self.end:
                    new_tokens[at].append(token)
                if at in pending and (token == self.end or len(new_tokens[at]) == requests[at].max_tokens):
                    pending.discard(at)
            ids = next_tokens[:, None]
            mask = torch.cat([mask, torch.ones_like(ids)], 1)
        return new_tokens

    def _pad(self, prompts: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        longest = max(map(len, prompts))
        ids = torch.tensor([[self.end] * (longest - len(prompt)) + prompt for prompt in prompts])
        mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        return ids.to(self.device), mask.to(self.device)

    def _apply_constraints(
        self, logits: torch.Tensor, requests: list[GenerationRequest], new_tokens: list[list[int]], pending: set[int]
    ) -> None:
        masks = {
            at: constraint(new_tokens[at])
            for at in sorted(pending)
            if (constraint := requests[at].constraint) is not None
        }
        constrained = {at: bits for at, bits in masks.items() if bits is not None}
        if constrained:
            words = torch.stack(list(constrained.values())).to(self.device)
            bits = (words[:, :, None] >> torch.arange(32, device=self.device)) & 1
            allowed = bits.flatten(1)[:, : logits.shape[1]].bool()
            rows = torch.tensor(list(constrained), device=self.device)
            logits[rows] = logits[rows].masked_fill(~allowed, float("-inf"))


def apply_adapter(model: torch.nn.Module, adapter: Path) -> None:
    """Add the product of an adapter's matrices to its layers."""
    found, alpha = read_adapter(adapter)
    for name in [name.removesuffix(".a") for name in found if name.endswith(".a")]:
        a, b = (torch.tensor(found[f"{name}.{side}"], dtype=torch.float32) for side in "ab")
        weight = model.get_parameter(f"{name}.weight")
        weight.data += (b @ a) * (alpha / a.shape[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="GGUF file of the model")
    parser.add_argument("--adapter", type=Path, help="adapter.safetensors, or the GGUF file made of it")
    parser.add_argument("--rows", type=Path, required=True, help="rows with a prompt")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--most", type=int, default=160, help="maximum tokens of an answer (default: 160)")
    options = parser.parse_args()
    generator = Generator(options.model, options.adapter)
    rows = [json.loads(line) for line in options.rows.read_text("utf-8").splitlines()]
    prompts = [encode_prompt(generator.tokenizer, row["prompt"]) for row in rows]
    order = sorted(range(len(rows)), key=lambda at: len(prompts[at]))
    for start in range(0, len(order), options.batch):
        some = order[start : start + options.batch]
        for at, new_tokens in zip(
            some, generator.answer([GenerationRequest(prompts[at], options.most) for at in some]), strict=True
        ):
            rows[at]["answer"] = generator.text(new_tokens)
        print(f"{start + len(some)} of {len(order)}", flush=True)
    write_whole(options.out, "".join([json.dumps(row, ensure_ascii=False) + "\n" for row in rows]).encode())


if __name__ == "__main__":
    main()
