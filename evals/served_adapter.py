"""Test `examples/train/serve.py` with a tiny model, without a GPU.    python evals/served_adapter.py FOLDER

An adapter is unchanged after a conversion to GGUF. A model with an adapter gives a question the same answer in a batch
as alone, and its server gives the same answer. With a grammar, the answer matches it; with a trigger, from there on.
"""

from __future__ import annotations

import json
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import serve
import torch
from answers import GenerationRequest, Generator
from safetensors.numpy import save_file
from small_model import add_lora, encode_prompt, load
from to_gguf import convert, read_adapter
from training_kills import tiny_model

TEXTS = ("Add 1.", "Add 22 to it, and then some more.", "to")
MOST = 12
GRAMMAR = 'root ::= "<call>" [0-9]{2} "</call>"'


def tiny_adapter(folder: Path, model: Path) -> Path:
    """Write random weights as `train.py` does, convert them as llama.cpp needs them, and return the converted file."""
    torch.manual_seed(1)
    weights = add_lora(load(model)[1], 4, 8.0, 1)
    weights_by_name = {name: torch.randn(weight.shape).numpy() for name, weight in weights.items()}
    trained, converted = folder / "adapter.safetensors", folder / "tools.gguf"
    save_file(weights_by_name, trained, metadata={"alpha": "8"})
    convert(trained, converted, name="tiny", small=False)
    for tensors, alpha in map(read_adapter, (trained, converted)):
        assert alpha == 8.0 and tensors.keys() == weights_by_name.keys()
        assert all(np.allclose(tensors[name], weights_by_name[name], atol=2e-3) for name in weights_by_name)
    return converted


def start_server(generator: Generator) -> str:
    serve.RequestHandler.generator, serve.RequestHandler.name = generator, "tiny"
    serve.RequestHandler.grammars, serve.RequestHandler.batcher = serve.Grammars(generator), serve.Batcher(generator, 8)
    server = serve.Server(("127.0.0.1", 0), serve.RequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1/chat/completions"


def request_text(url: str, text: str, **more: Any) -> str:
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": MOST, "temperature": 0, **more}
    with urllib.request.urlopen(url, json.dumps(body).encode()) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


def main(folder: Path) -> None:
    model = tiny_model(folder / "tiny.gguf")
    plain, tuned = Generator(model), Generator(model, tiny_adapter(folder, model))
    requests = [
        GenerationRequest(encode_prompt(tuned.tokenizer, [{"role": "user", "content": text}]), MOST) for text in TEXTS
    ]
    alone = [tuned.answer([each])[0] for each in requests]
    assert tuned.answer(requests) == alone != plain.answer(requests)
    url = start_server(tuned)
    assert [request_text(url, text) for text in TEXTS] == [tuned.text(each) for each in alone]
    constrained = request_text(url, "Add.", grammar=GRAMMAR, max_tokens=40)
    assert (
        constrained.startswith("<call>")
        and constrained.endswith("</call>")
        and constrained[6:8].isdigit()
        and len(constrained) == 15
    ), constrained
    unconstrained = request_text(url, "Add.")
    lazy_options = {"grammar": GRAMMAR, "grammar_lazy": True, "grammar_triggers": [{"type": 1, "value": "<call>"}]}
    assert "<call>" in unconstrained or request_text(url, "Add.", **lazy_options) == unconstrained
    triggered_options = {
        **lazy_options,
        "grammar": f"root ::= {json.dumps(unconstrained[:1])} [0-9]",
        "grammar_triggers": [{"value": unconstrained[:1]}],
    }
    assert request_text(url, "Add.", **triggered_options)[1:].isdigit()
    print("served")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
