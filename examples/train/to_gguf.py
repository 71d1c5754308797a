"""Convert an adapter of `train.py` to GGUF for llama.cpp, and read it again.

    python to_gguf.py run/adapter.safetensors tools.gguf
    rightcall model serve smollm2 --lora tools.gguf

Weights have sixteen bits. `--small` stores one of the two matrices in eight bits: the file is a quarter smaller.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter, quants
from safetensors import safe_open

NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
HEAD = 64  # width of an attention head in SmolLM2


def gguf_name(name: str) -> tuple[str, str]:
    """Return llama.cpp's name of `model.layers.3.mlp.up_proj.a`, and the kind of layer."""
    _, _, number, *layer, side = name.split(".")
    kind = NAMES[".".join(layer)]
    return f"blk.{number}.{kind}.weight.lora_{side}", kind


def to_gguf_order(b: np.ndarray) -> np.ndarray:
    """Reorder rows of queries and keys for llama.cpp, where the halves of a rotated pair are neighbours."""
    heads = b.shape[0] // HEAD
    return b.reshape(heads, 2, HEAD // 2, b.shape[1]).swapaxes(1, 2).reshape(b.shape)


def from_gguf_order(b: np.ndarray) -> np.ndarray:
    heads = b.shape[0] // HEAD
    return b.reshape(heads, HEAD // 2, 2, b.shape[1]).swapaxes(1, 2).reshape(b.shape)


def read_adapter(path: Path) -> tuple[dict[str, np.ndarray], float]:
    """Return the matrices of an adapter by their names in `train.py`, and its alpha; from either kind of file."""
    if path.suffix != ".gguf":
        with safe_open(path, "np") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, float(file.metadata()["alpha"])  # noqa: SIM118
    reader, layers, found = GGUFReader(path), {gguf_tensor_name: name for name, gguf_tensor_name in NAMES.items()}, {}
    for tensor in reader.tensors:
        _, number, kind, _, side = tensor.name.split(".")
        data = quants.dequantize(tensor.data, tensor.tensor_type)
        is_reordered = side == "lora_b" and kind in ("attn_q", "attn_k")
        name = f"model.layers.{number}.{layers[kind]}.{side.removeprefix('lora_')}"
        found[name] = from_gguf_order(data) if is_reordered else data
    return found, float(reader.fields["adapter.lora.alpha"].contents())


def convert(source: Path, output: Path, *, name: str, small: bool) -> None:
    with safe_open(source, "np") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    draft = output.with_name(f".{output.name}.draft")
    writer = GGUFWriter(draft, "llama")
    writer.add_type("adapter")
    writer.add_name(name)
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(metadata["alpha"]))
    for name, tensor in sorted(tensors.items()):
        gguf_tensor_name, kind = gguf_name(name)
        data = to_gguf_order(tensor) if gguf_tensor_name.endswith("lora_b") and kind in ("attn_q", "attn_k") else tensor
        if small and gguf_tensor_name.endswith("lora_a"):
            eight = GGMLQuantizationType.Q8_0
            writer.add_tensor(gguf_tensor_name, quants.quantize(data.astype(np.float32), eight), raw_dtype=eight)
        else:
            writer.add_tensor(gguf_tensor_name, data.astype(np.float16))
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(draft, output)
    finally:
        draft.unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("adapter", type=Path, help="adapter.safetensors")
    parser.add_argument("output", type=Path, help="the GGUF file to write")
    parser.add_argument("--name", default="smollm2-tools", help="the name in the adapter")
    parser.add_argument("--small", action="store_true", help="store one of the two matrices in eight bits")
    options = parser.parse_args()
    convert(options.adapter, options.output, name=options.name, small=options.small)


if __name__ == "__main__":
    main()
