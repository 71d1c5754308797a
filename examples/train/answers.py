"""What a model answers, many questions at a time, without llama.cpp.

    python answers.py --model X.gguf --rows test.jsonl --out answers.jsonl

Reads rows as `train.py` does and writes each with its `answer`, the likeliest word each time; `--adapter` puts an
adapter beside the model. For a GPU: on a CPU llama.cpp is faster (`rightcall eval`).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import load_file, safe_open
from small_model import END, load, prompted, with_lora
from train import write_whole


@torch.inference_mode()
def answered(model: torch.nn.Module, prompts: list[list[int]], most: int, end: int, device: str) -> list[list[int]]:
    longest = max(map(len, prompts))
    ids = torch.full((len(prompts), longest), end)
    mask = torch.zeros_like(ids)
    for at, prompt in enumerate(prompts):
        ids[at, longest - len(prompt) :] = torch.tensor(prompt)
        mask[at, longest - len(prompt) :] = 1
    said = model.generate(
        input_ids=ids.to(device),
        attention_mask=mask.to(device),
        max_new_tokens=most,
        do_sample=False,
        eos_token_id=end,
        pad_token_id=end,
    )
    return said[:, longest:].tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="GGUF file of the model")
    parser.add_argument("--adapter", type=Path, help="adapter.safetensors")
    parser.add_argument("--rows", type=Path, required=True, help="rows with a prompt")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--most", type=int, default=112, help="tokens of an answer; 112 unless said")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer, model = load(options.model, dtype=torch.bfloat16 if device == "cuda" else torch.float32)
    if options.adapter:
        with safe_open(options.adapter, "pt") as file:
            told = file.metadata()
        with_lora(model, int(told["rank"]), float(told["alpha"]), 0)
        model.load_state_dict(load_file(options.adapter), strict=False)
    model.to(device).eval()
    end = tokenizer.token_to_id(END)
    rows = [json.loads(line) for line in options.rows.read_text("utf-8").splitlines()]
    prompts = [prompted(tokenizer, row["prompt"]) for row in rows]
    order = sorted(range(len(rows)), key=lambda at: len(prompts[at]))
    for start in range(0, len(order), options.batch):
        some = order[start : start + options.batch]
        for at, ids in zip(some, answered(model, [prompts[at] for at in some], options.most, end, device), strict=True):
            cut = ids.index(end) if end in ids else len(ids)
            rows[at]["answer"] = tokenizer.decode(ids[:cut])
        print(f"{min(start + options.batch, len(order))} of {len(order)}", flush=True)
    write_whole(options.out, "".join([json.dumps(row, ensure_ascii=False) + "\n" for row in rows]).encode())


if __name__ == "__main__":
    main()
