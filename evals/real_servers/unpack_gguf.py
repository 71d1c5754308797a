"""Convert a Llama GGUF file to a folder for transformers, vLLM and MLX: python unpack_gguf.py MODEL TEMPLATE FOLDER

Weights are converted to float32, the tokenizer comes from the file, the chat template is an argument. Runs in its own
environment, which has gguf and safetensors and not rightcall. Needs no network.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors.numpy import save_file

LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
CONTROL = 3  # the type of a token that is never text


def main(model: str, template: str, folder: str) -> None:
    reader = GGUFReader(model)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    output = Path(folder)
    output.mkdir(parents=True, exist_ok=True)
    weights = dict(rename_tensor(tensor, fields) for tensor in reader.tensors)
    save_file(weights, output / "model.safetensors", metadata={"format": "pt"})
    write(output / "config.json", config(fields, tied="lm_head.weight" not in weights))
    write(output / "generation_config.json", {"do_sample": False, **ends(fields)})
    write(output / "tokenizer.json", tokenizer(fields))
    write(output / "tokenizer_config.json", tokenizer_config(fields))
    (output / "chat_template.jinja").write_text(Path(template).read_text("utf-8"), "utf-8")


def rename_tensor(tensor: Any, fields: dict[str, Any]) -> tuple[str, Any]:
    """Return a tensor with its name in transformers."""
    weight = dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
    first, *rest = tensor.name.split(".")
    if first != "blk":
        return f"{OUTSIDE[first]}.weight", weight
    number, part, _ = rest
    if part in ("attn_q", "attn_k"):
        weight = reorder_heads(weight, fields["llama.attention.head_count" + ("_kv" if part == "attn_k" else "")])
    return f"model.layers.{number}.{LAYER[part]}.weight", weight


def reorder_heads(weight: Any, heads: int) -> Any:
    """Reorder the rows of each head: llama.cpp rotates neighbours, transformers rotates halves."""
    pairs = weight.reshape(heads, weight.shape[0] // heads // 2, 2, *weight.shape[1:])
    return numpy.ascontiguousarray(pairs.swapaxes(1, 2).reshape(weight.shape))


def ends(fields: dict[str, Any]) -> dict[str, int]:
    return {
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
    }


def config(fields: dict[str, Any], *, tied: bool) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": fields["llama.embedding_length"],
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": fields["llama.attention.head_count"],
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "max_position_embeddings": fields["llama.context_length"],
        "rms_norm_eps": fields["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": fields["llama.rope.freq_base"],
        "vocab_size": len(fields["tokenizer.ggml.tokens"]),
        "hidden_act": "silu",
        "tie_word_embeddings": tied,
        "torch_dtype": "float32",
        **ends(fields),
    }


def tokenizer(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the tokenizer: byte pairs as in GPT-2, digits one by one; the file calls it `smollm`."""
    tokens, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    bytewise = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": index, "content": token, **plain} for index, token in enumerate(tokens) if kinds[index] == CONTROL
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, bytewise],
        },
        "post_processor": None,
        "decoder": bytewise,
        "model": {
            "type": "BPE",
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in fields["tokenizer.ggml.merges"]],
        },
    }


def tokenizer_config(fields: dict[str, Any]) -> dict[str, Any]:
    tokens = fields["tokenizer.ggml.tokens"]
    token_keys = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    ids = {name: fields.get(f"tokenizer.ggml.{which}_token_id") for name, which in token_keys.items()}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": fields["llama.context_length"],
        **{name: tokens[index] for name, index in ids.items() if index is not None},
    }


def write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
