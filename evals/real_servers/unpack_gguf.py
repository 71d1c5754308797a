"""A Llama of a GGUF file as a folder for transformers, vLLM and MLX: python unpack_gguf.py MODEL TEMPLATE FOLDER

Weights are widened to float32, the tokenizer is the file's own, the chat template is the one that is given. Runs in an
environment of its own, which has gguf and safetensors and nothing of rightcall. Needs nothing from any other place.
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
CONTROL = 3  # the kind of a token that is never text


def main(model: str, template: str, folder: str) -> None:
    reader = GGUFReader(model)
    facts = {name: field.contents() for name, field in reader.fields.items()}
    into = Path(folder)
    into.mkdir(parents=True, exist_ok=True)
    weights = dict(named(tensor, facts) for tensor in reader.tensors)
    save_file(weights, into / "model.safetensors", metadata={"format": "pt"})
    write(into / "config.json", config(facts, tied="lm_head.weight" not in weights))
    write(into / "generation_config.json", {"do_sample": False, **ends(facts)})
    write(into / "tokenizer.json", tokenizer(facts))
    write(into / "tokenizer_config.json", tokenizer_config(facts))
    (into / "chat_template.jinja").write_text(Path(template).read_text("utf-8"), "utf-8")


def named(tensor: Any, facts: dict[str, Any]) -> tuple[str, Any]:
    """A tensor under the name that transformers has for it."""
    weight = dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
    first, *rest = tensor.name.split(".")
    if first != "blk":
        return f"{OUTSIDE[first]}.weight", weight
    number, part, _ = rest
    if part in ("attn_q", "attn_k"):
        weight = in_halves(weight, facts["llama.attention.head_count" + ("_kv" if part == "attn_k" else "")])
    return f"model.layers.{number}.{LAYER[part]}.weight", weight


def in_halves(weight: Any, heads: int) -> Any:
    """llama.cpp turns neighbours, transformers halves: the rows of each head in the order of the latter."""
    pairs = weight.reshape(heads, weight.shape[0] // heads // 2, 2, *weight.shape[1:])
    return numpy.ascontiguousarray(pairs.swapaxes(1, 2).reshape(weight.shape))


def ends(facts: dict[str, Any]) -> dict[str, int]:
    return {"bos_token_id": facts["tokenizer.ggml.bos_token_id"], "eos_token_id": facts["tokenizer.ggml.eos_token_id"]}


def config(facts: dict[str, Any], *, tied: bool) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": facts["llama.embedding_length"],
        "intermediate_size": facts["llama.feed_forward_length"],
        "num_hidden_layers": facts["llama.block_count"],
        "num_attention_heads": facts["llama.attention.head_count"],
        "num_key_value_heads": facts["llama.attention.head_count_kv"],
        "max_position_embeddings": facts["llama.context_length"],
        "rms_norm_eps": facts["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": facts["llama.rope.freq_base"],
        "vocab_size": len(facts["tokenizer.ggml.tokens"]),
        "hidden_act": "silu",
        "tie_word_embeddings": tied,
        "torch_dtype": "float32",
        **ends(facts),
    }


def tokenizer(facts: dict[str, Any]) -> dict[str, Any]:
    """Byte pairs as GPT-2 has them, digits one by one: what the file calls `smollm`."""
    tokens, kinds = facts["tokenizer.ggml.tokens"], facts["tokenizer.ggml.token_type"]
    bytewise = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": at, "content": token, **plain} for at, token in enumerate(tokens) if kinds[at] == CONTROL
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
            "vocab": {token: at for at, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in facts["tokenizer.ggml.merges"]],
        },
    }


def tokenizer_config(facts: dict[str, Any]) -> dict[str, Any]:
    tokens = facts["tokenizer.ggml.tokens"]
    told = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    ids = {name: facts.get(f"tokenizer.ggml.{which}_token_id") for name, which in told.items()}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": facts["llama.context_length"],
        **{name: tokens[at] for name, at in ids.items() if at is not None},
    }


def write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
