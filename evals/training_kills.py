"""Kill a training run at random moments, hundreds of times, and fill its disk.

    PYTHONPATH=examples/train:tests python evals/training_kills.py [N [FOLDER]]

A tiny model of the same architecture is trained for a few steps in forks of this process, so that torch is loaded once.
After each kill every file is complete or absent. A restarted run continues from its checkpoint and ends with the same
adapter as a run without a kill. A limit on the size of files simulates a full disk. If the folder is a small disk of
its own (`tests/support/small_disk.py`), that disk is filled, too. Needs the extra `train`.
"""

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFWriter
from safetensors import safe_open
from tokenizers.pre_tokenizers import ByteLevel
from train import train

from support.small_disk import is_small_disk, leave_room, page_size

WIDE = 64


def tiny_model(path: Path) -> Path:
    """Write a model of one block with random weights, as a GGUF file with all fields of SmolLM2's."""
    words = [*sorted(ByteLevel.alphabet()), "to", "<|im_start|>", "<|im_end|>"]
    writer, dice = GGUFWriter(path, "llama"), np.random.default_rng(1)
    writer.add_context_length(512)
    writer.add_embedding_length(WIDE)
    writer.add_block_count(1)
    writer.add_feed_forward_length(WIDE)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDE)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words)
    writer.add_token_types([3 if word.startswith("<|") else 1 for word in words])
    writer.add_token_merges(["t o"])
    layers = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    shapes: dict[str, tuple[int, ...]] = {f"blk.0.{layer}.weight": (WIDE, WIDE) for layer in layers}
    shapes |= {"blk.0.attn_norm.weight": (WIDE,), "blk.0.ffn_norm.weight": (WIDE,), "output_norm.weight": (WIDE,)}
    for name, shape in {**shapes, "token_embd.weight": (len(words), WIDE)}.items():
        writer.add_tensor(name, dice.normal(0, 0.1, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def start_training(out: Path, model: Path, rows: Path, *, max_bytes: int | None = None) -> int:
    """Start a process that trains, and return its ID. With `max_bytes`, its files cannot grow beyond that size."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        torch.set_num_threads(1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if max_bytes is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails instead, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))
        settings: dict[str, Any] = {"rank": 2, "alpha": 4.0, "epochs": 2, "lr": 1e-2, "batch": 2, "longest": 200}
        train(
            argparse.Namespace(model=model, rows=[rows], out=out, device="cpu", seed=1, every=1, steps=None, **settings)
        )
        code = 0
    finally:
        os._exit(code)  # do not run the parent's cleanup in the child


def wait_for_exit(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def check_files(out: Path) -> int:
    """Return the step of the checkpoint, 0 if there is none. Raise if a file is not complete."""
    step = 0
    if (out / "checkpoint.pt").exists():
        step = torch.load(out / "checkpoint.pt", weights_only=True)["step"]
    if (out / "adapter.safetensors").exists():
        adapter(out)
    unexpected_files = {file.name for file in out.iterdir()} - {"checkpoint.pt", "adapter.safetensors"}
    assert all(name.startswith(".") and name.endswith(".draft") for name in unexpected_files), unexpected_files
    return int(step)


def adapter(out: Path) -> dict[str, bytes]:
    with safe_open(out / "adapter.safetensors", "np") as file:
        return {name: file.get_tensor(name).tobytes() for name in file.keys()}  # noqa: SIM118 - no mapping


def main(kills: int, parent: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="rightcall-training-", dir=parent) as name:
        folder, dice = Path(name), random.Random(1)
        model, rows = tiny_model(folder / "tiny.gguf"), folder / "rows.jsonl"
        row = '{"prompt": [{"role": "user", "content": "Add %d to it."}], "completion": "add(%d)"}\n'
        rows.write_text("".join([row % (number, number) for number in range(12)]))
        started_at = time.monotonic()
        assert wait_for_exit(start_training(folder / "whole", model, rows)) == 0
        usual_seconds, expected_adapter = time.monotonic() - started_at, adapter(folder / "whole")
        done = killed = number = 0
        while killed < kills:
            out, number, last = folder / f"run-{number}", number + 1, 0
            while not (out / "adapter.safetensors").exists():
                child = start_training(out, model, rows)
                time.sleep(dice.random() * usual_seconds)
                os.kill(child, signal.SIGKILL)
                killed += wait_for_exit(child) == -signal.SIGKILL
                if out.exists():
                    assert last <= (last := check_files(out)), "a step was lost"
            assert adapter(out) == expected_adapter, "the adapter differs"
            done += 1
        print(f"{killed} kills, {done} runs that ended with the expected adapter")
        check_full_disk(folder, model, rows, expected_adapter)


def check_full_disk(folder: Path, model: Path, rows: Path, expected_adapter: dict[str, bytes]) -> None:
    """Check that a run without disk space leaves no files, and that it continues when there is space again."""
    size = (folder / "whole" / "checkpoint.pt").stat().st_size

    def check_continued(name: str, failed: Callable[[Path], int]) -> None:
        out = folder / name
        assert failed(out) == 1 and list(out.iterdir()) == [], name
        assert wait_for_exit(start_training(out, model, rows)) == 0 and adapter(out) == expected_adapter, name

    for max_bytes in (1, size // 2, size - 1):
        check_continued(
            f"limited-{max_bytes}",
            lambda out, max_bytes=max_bytes: wait_for_exit(start_training(out, model, rows, max_bytes=max_bytes)),
        )
    print("a full disk left no files, and the run continued")
    if is_small_disk(folder):
        needed = size // page_size(folder)
        for pages in (0, needed // 2, needed):
            check_continued(f"full-{pages}", lambda out, pages=pages: _on_full_disk(folder, pages, out, model, rows))
        print("so did a run on a disk that was really full")


def _on_full_disk(folder: Path, pages: int, out: Path, model: Path, rows: Path) -> int:
    ballast = leave_room(folder, pages)
    try:
        return wait_for_exit(start_training(out, model, rows))
    finally:
        ballast.unlink()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, Path(sys.argv[2]) if len(sys.argv) > 2 else None)
