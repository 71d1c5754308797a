"""What a model answers, many questions at a time, without llama.cpp.

    python answers.py --model X.gguf --rows test.jsonl --out answers.jsonl

Reads rows as `train.py` does and writes each with its `answer`, the likeliest word each time; `--adapter` puts an
adapter into the model, as `train.py` or `to_gguf.py` wrote it. For a GPU: on a CPU llama.cpp is faster. `serve.py`
gives the same answers to whoever asks for them over HTTP.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from small_model import END, load, prompted
from to_gguf import adapter_of
from tokenizers import Tokenizer
from train import write_whole

Hold = Callable[[list[int]], torch.Tensor | None]


@dataclass(frozen=True)
class Asked:
    """The tokens of a prompt, the most that may be said, and what holds the answer: told what was said so far, it gives
    a bit for each token that may come next, 32 to a number, or None for all of them."""

    prompt: list[int]
    most: int
    hold: Hold | None = None


class Speaker:
    """A model, its adapter and its tokenizer on a device. All in 32 bits: what stands beside a question in a batch
    then hardly ever changes its answer."""

    def __init__(self, model: Path, adapter: Path | None = None, device: str = "") -> None:
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.tokenizer: Tokenizer
        self.tokenizer, self.model = load(model)
        if adapter is not None:
            put_in(self.model, adapter)
        self.model.to(self.device).eval()
        self.end = self.tokenizer.token_to_id(END)

    def text(self, tokens: list[int]) -> str:
        return str(self.tokenizer.decode(tokens))

    @torch.inference_mode()
    def answer(self, asked: list[Asked]) -> list[list[int]]:
        """The likeliest tokens, one by one, without the end; all questions at a time."""
        ids, mask = self._padded([each.prompt for each in asked])
        said: list[list[int]] = [[] for _ in asked]
        open_: set[int] = set(range(len(asked)))
        cache: Any = None
        while open_:
            places = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            made = self.model(
                input_ids=ids, attention_mask=mask, position_ids=places, past_key_values=cache, logits_to_keep=1
            )
            cache, logits = made.past_key_values, made.logits[:, -1]
            self._hold(logits, asked, said, open_)
            chosen = logits.argmax(-1)
            for at, token in enumerate(chosen.tolist()):
                if at in open_ and token != self.end:
                    said[at].append(token)
                if at in open_ and (token == self.end or len(said[at]) == asked[at].most):
                    open_.discard(at)
            ids = chosen[:, None]
            mask = torch.cat([mask, torch.ones_like(ids)], 1)
        return said

    def _padded(self, prompts: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        longest = max(map(len, prompts))
        ids = torch.tensor([[self.end] * (longest - len(prompt)) + prompt for prompt in prompts])
        mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        return ids.to(self.device), mask.to(self.device)

    def _hold(self, logits: torch.Tensor, asked: list[Asked], said: list[list[int]], open_: set[int]) -> None:
        masks = {at: hold(said[at]) for at in sorted(open_) if (hold := asked[at].hold) is not None}
        held = {at: bits for at, bits in masks.items() if bits is not None}
        if held:
            words = torch.stack(list(held.values())).to(self.device)
            bits = (words[:, :, None] >> torch.arange(32, device=self.device)) & 1
            allowed = bits.flatten(1)[:, : logits.shape[1]].bool()
            rows = torch.tensor(list(held), device=self.device)
            logits[rows] = logits[rows].masked_fill(~allowed, float("-inf"))


def put_in(model: torch.nn.Module, adapter: Path) -> None:
    """Adds the product of an adapter's matrices to the layers that it stands beside."""
    found, alpha = adapter_of(adapter)
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
    parser.add_argument("--most", type=int, default=160, help="tokens of an answer; 160 unless said")
    options = parser.parse_args()
    speaker = Speaker(options.model, options.adapter)
    rows = [json.loads(line) for line in options.rows.read_text("utf-8").splitlines()]
    prompts = [prompted(speaker.tokenizer, row["prompt"]) for row in rows]
    order = sorted(range(len(rows)), key=lambda at: len(prompts[at]))
    for start in range(0, len(order), options.batch):
        some = order[start : start + options.batch]
        for at, said in zip(some, speaker.answer([Asked(prompts[at], options.most) for at in some]), strict=True):
            rows[at]["answer"] = speaker.text(said)
        print(f"{start + len(some)} of {len(order)}", flush=True)
    write_whole(options.out, "".join([json.dumps(row, ensure_ascii=False) + "\n" for row in rows]).encode())


if __name__ == "__main__":
    main()
