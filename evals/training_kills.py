"""Kills a training run at random moments, hundreds of times, and fills its disk.

    PYTHONPATH=examples/train:tests python evals/training_kills.py [N [FOLDER]]

A tiny model of the same kind is trained for a few steps in forks of this process, so that torch is loaded once. After
each kill every file is whole or not there; started again, a run goes on from its checkpoint and ends with the very
adapter that a run without a kill has. A limit on the size of files stands in for a disk that is full; where the folder
is a small disk of its own (`tests/support/small_disk.py`), that is filled, too. Needs the extra `train`.
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
    """A model of one block with random weights, as a GGUF file that has all that SmolLM2's has."""
    words = [*sorted(ByteLevel.alphabet()), "to", "<|im_start|>", "<|im_end|>"]
    writer, chosen = GGUFWriter(path, "llama"), np.random.default_rng(1)
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
        writer.add_tensor(name, chosen.normal(0, 0.1, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def started(out: Path, model: Path, rows: Path, *, most: int | None = None) -> int:
    """The number of a process that trains. With `most`, no file of it can grow beyond so many bytes."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        torch.set_num_threads(1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if most is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails instead, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        settings: dict[str, Any] = {"rank": 2, "alpha": 4.0, "epochs": 2, "lr": 1e-2, "batch": 2, "longest": 200}
        train(
            argparse.Namespace(model=model, rows=[rows], out=out, device="cpu", seed=1, every=1, steps=None, **settings)
        )
        code = 0
    finally:
        os._exit(code)  # the parent's business is not the child's


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def look(out: Path) -> int:
    """The step of the checkpoint, 0 if there is none. Raises if a file is not whole."""
    step = 0
    if (out / "checkpoint.pt").exists():
        step = torch.load(out / "checkpoint.pt", weights_only=True)["step"]
    if (out / "adapter.safetensors").exists():
        adapter(out)
    strange = {file.name for file in out.iterdir()} - {"checkpoint.pt", "adapter.safetensors"}
    assert all(name.startswith(".") and name.endswith(".draft") for name in strange), strange
    return int(step)


def adapter(out: Path) -> dict[str, bytes]:
    with safe_open(out / "adapter.safetensors", "np") as file:
        return {name: file.get_tensor(name).tobytes() for name in file.keys()}  # noqa: SIM118 - no mapping


def main(kills: int, place: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="rightcall-training-", dir=place) as name:
        folder, chosen = Path(name), random.Random(1)
        model, rows = tiny_model(folder / "tiny.gguf"), folder / "rows.jsonl"
        row = '{"prompt": [{"role": "user", "content": "Add %d to it."}], "completion": "add(%d)"}\n'
        rows.write_text("".join([row % (number, number) for number in range(12)]))
        began = time.monotonic()
        assert ended(started(folder / "whole", model, rows)) == 0
        usual, wanted = time.monotonic() - began, adapter(folder / "whole")
        done = killed = round = 0
        while killed < kills:
            out, round, last = folder / f"run-{round}", round + 1, 0
            while not (out / "adapter.safetensors").exists():
                child = started(out, model, rows)
                time.sleep(chosen.random() * usual)
                os.kill(child, signal.SIGKILL)
                killed += ended(child) == -signal.SIGKILL
                if out.exists():
                    assert last <= (last := look(out)), "a step was lost"
            assert adapter(out) == wanted, "another adapter came out"
            done += 1
        print(f"{killed} kills, {done} runs that ended with the adapter they should have")
        starved(folder, model, rows, wanted)


def starved(folder: Path, model: Path, rows: Path, wanted: dict[str, bytes]) -> None:
    """Without room nothing is left behind; with room again, a run ends with the adapter that it should have."""
    size = (folder / "whole" / "checkpoint.pt").stat().st_size

    def went_on(name: str, failed: Callable[[Path], int]) -> None:
        out = folder / name
        assert failed(out) == 1 and list(out.iterdir()) == [], name
        assert ended(started(out, model, rows)) == 0 and adapter(out) == wanted, name

    for most in (1, size // 2, size - 1):
        went_on(f"limited-{most}", lambda out, most=most: ended(started(out, model, rows, most=most)))
    print("a full disk left nothing behind, and the run was gone on with")
    if is_small_disk(folder):
        needed = size // page_size(folder)
        for pages in (0, needed // 2, needed):
            went_on(f"full-{pages}", lambda out, pages=pages: _on_full_disk(folder, pages, out, model, rows))
        print("and so it was on a disk that really was full")


def _on_full_disk(folder: Path, pages: int, out: Path, model: Path, rows: Path) -> int:
    ballast = leave_room(folder, pages)
    try:
        return ended(started(out, model, rows))
    finally:
        ballast.unlink()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, Path(sys.argv[2]) if len(sys.argv) > 2 else None)
