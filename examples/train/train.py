"""Train a small adapter (LoRA) on rows of `rightcall dataset export --to text --contract auto`.

    python train.py --model SmolLM2-135M-Instruct.Q4_1.gguf --rows train.jsonl --out run

Plain torch and transformers, on one GPU or a CPU. The loss covers only the model's answers. `run/checkpoint.pt` is
written during the run, `run/adapter.safetensors` at the end, both atomically. A run that is started again with the same
settings resumes from the checkpoint, and ends with the same adapter on a CPU. `to_gguf.py` converts the adapter for
`rightcall model serve --lora`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save
from small_model import add_lora, encode_example, load
from torch import nn
from torch.nn import functional as F

Row = tuple[list[int], int]  # tokens, and how many of them are the prompt


def read_rows(files: list[Path], tokenizer: object, max_length: int) -> list[Row]:
    """Return the rows as tokens; rows that are too long are skipped, not truncated."""
    lines = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    rows = [encode_example(tokenizer, line["prompt"], line["completion"]) for line in lines]
    rows_kept = [row for row in rows if len(row[0]) <= max_length]
    print(
        f"{len(rows_kept)} rows, {sum(len(row[0]) for row in rows_kept)} tokens; {len(rows) - len(rows_kept)} too long",
        flush=True,
    )
    return rows_kept


def batches(rows: list[Row], size: int, epochs: int, seed: int) -> list[list[Row]]:
    """Return all batches of all epochs, the same for the same seed. Rows of similar length share a batch."""
    all_batches: list[list[Row]] = []
    for epoch in range(epochs):
        dice = random.Random(f"{seed} {epoch}")
        order = sorted(rows, key=lambda row: len(row[0]) + dice.randint(0, 60))
        batches_of_epoch = [order[at : at + size] for at in range(0, len(order), size)]
        dice.shuffle(batches_of_epoch)
        all_batches += batches_of_epoch
    return all_batches


def loss_of(model: nn.Module, batch: list[Row], device: str) -> torch.Tensor:
    max_length = max(len(tokens) for tokens, _ in batch)
    ids = torch.zeros(len(batch), max_length, dtype=torch.long)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, -100)
    for at, (tokens, start) in enumerate(batch):
        ids[at, : len(tokens)] = torch.tensor(tokens)
        mask[at, : len(tokens)] = 1
        labels[at, start : len(tokens)] = torch.tensor(tokens[start:])
    hidden = model.model(input_ids=ids.to(device), attention_mask=mask.to(device)).last_hidden_state[:, :-1]
    targets = labels[:, 1:].to(device)
    is_target = targets != -100  # compute logits only there, because they are most of the work
    return F.cross_entropy(model.lm_head(hidden[is_target]).float(), targets[is_target])


def write_whole(path: Path, data: bytes) -> None:
    """Write the file atomically."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def save_checkpoint(path: Path, step: int, settings: dict[str, object], weights: dict, optimizer: object) -> None:
    from io import BytesIO

    buffer = BytesIO()
    state = {name: weight.detach() for name, weight in weights.items()}
    torch.save({"step": step, "settings": settings, "weights": state, "optimizer": optimizer.state_dict()}, buffer)
    write_whole(path, buffer.getvalue())


def load_checkpoint(path: Path, settings: dict[str, object], weights: dict, optimizer: object, device: str) -> int:
    """Load the checkpoint and return its step; 0 if there is none. Exit if its settings differ."""
    if not path.exists():
        return 0
    found = torch.load(path, map_location=device, weights_only=True)
    if found["settings"] != settings:
        sys.exit(f"{path} is from a run with other settings: {found['settings']}: pass another --out, or remove it")
    for name, weight in weights.items():
        weight.data.copy_(found["weights"][name])
    optimizer.load_state_dict(found["optimizer"])
    print(f"resuming at step {found['step']}", flush=True)
    return int(found["step"])


def train(options: argparse.Namespace) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")
    tokenizer, model = load(options.model, dtype=torch.bfloat16 if device == "cuda" else torch.float32)
    weights = add_lora(model, options.rank, options.alpha, options.seed)
    model.to(device).train()
    rows = read_rows(options.rows, tokenizer, options.longest)
    todo = batches(rows, options.batch, options.epochs, options.seed)[: options.steps]
    optimizer = torch.optim.AdamW(weights.values(), lr=options.lr, weight_decay=0.0)
    settings = {name: getattr(options, name) for name in ("rank", "alpha", "epochs", "lr", "batch", "longest", "seed")}
    settings |= {"rows": len(rows), "steps": len(todo)}
    checkpoint_path, started, mean = options.out / "checkpoint.pt", time.monotonic(), 0.0
    for step in range(load_checkpoint(checkpoint_path, settings, weights, optimizer, device), len(todo)):
        warm, remaining = min(1.0, (step + 1) / 30), 1 - step / len(todo)
        for group in optimizer.param_groups:
            group["lr"] = options.lr * warm * max(0.05, remaining)
        loss = loss_of(model, todo[step], device)
        loss.backward()
        nn.utils.clip_grad_norm_(weights.values(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if (step + 1) % options.every == 0 or step + 1 == len(todo):
            mean = loss.item()
            save_checkpoint(checkpoint_path, step + 1, settings, weights, optimizer)
            print(f"step {step + 1} of {len(todo)}, loss {mean:.3f}, {time.monotonic() - started:.0f} s", flush=True)
    metadata = {key: str(value) for key, value in settings.items()}
    state = {name: weight.detach().float().cpu().contiguous() for name, weight in weights.items()}
    write_whole(options.out / "adapter.safetensors", save(state, metadata=metadata))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="GGUF file of the model")
    parser.add_argument("--rows", type=Path, nargs="+", required=True, help="files of rows")
    parser.add_argument("--out", type=Path, required=True, help="folder to write into")
    parser.add_argument("--device", default="", help="cuda or cpu (default: the GPU if there is one)")
    numbers = {"rank": 8, "epochs": 4, "batch": 16, "longest": 1024, "seed": 1, "every": 100}
    for name, value in {**numbers, "alpha": 16.0, "lr": 1e-3}.items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help=f"default: {value}")
    parser.add_argument("--steps", type=int, help="stop after this many steps")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
