"""Looks after `examples/train/serve.py` with a tiny model, without a GPU.    python evals/served_adapter.py FOLDER

An adapter is the same when it went through GGUF. A model with one says to a question what it says to it alone, whoever
else asks, and its server says the same; held to a grammar it keeps to that, and with a trigger only from there on.
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
from answers import Asked, Speaker
from safetensors.numpy import save_file
from small_model import load, prompted, with_lora
from to_gguf import adapter_of, convert
from training_kills import tiny_model

TEXTS = ("Add 1.", "Add 22 to it, and then some more.", "to")
MOST = 12
GRAMMAR = 'root ::= "<call>" [0-9]{2} "</call>"'


def tiny_adapter(folder: Path, model: Path) -> Path:
    """Random weights, written as `train.py` does and as llama.cpp takes them."""
    torch.manual_seed(1)
    weights = with_lora(load(model)[1], 4, 8.0, 1)
    made = {name: torch.randn(weight.shape).numpy() for name, weight in weights.items()}
    trained, converted = folder / "adapter.safetensors", folder / "tools.gguf"
    save_file(made, trained, metadata={"alpha": "8"})
    convert(trained, converted, name="tiny", small=False)
    for found, alpha in map(adapter_of, (trained, converted)):
        assert alpha == 8.0 and found.keys() == made.keys()
        assert all(np.allclose(found[name], made[name], atol=2e-3) for name in made)
    return converted


def listening(speaker: Speaker) -> str:
    serve.Answers.speaker, serve.Answers.name = speaker, "tiny"
    serve.Answers.grammars, serve.Answers.desk = serve.Grammars(speaker), serve.Desk(speaker, 8)
    server = serve.Listening(("127.0.0.1", 0), serve.Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1/chat/completions"


def said(url: str, text: str, **more: Any) -> str:
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": MOST, "temperature": 0, **more}
    with urllib.request.urlopen(url, json.dumps(body).encode()) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


def main(folder: Path) -> None:
    model = tiny_model(folder / "tiny.gguf")
    plain, tuned = Speaker(model), Speaker(model, tiny_adapter(folder, model))
    asked = [Asked(prompted(tuned.tokenizer, [{"role": "user", "content": text}]), MOST) for text in TEXTS]
    alone = [tuned.answer([each])[0] for each in asked]
    assert tuned.answer(asked) == alone != plain.answer(asked)
    url = listening(tuned)
    assert [said(url, text) for text in TEXTS] == [tuned.text(each) for each in alone]
    held = said(url, "Add.", grammar=GRAMMAR, max_tokens=40)
    assert held.startswith("<call>") and held.endswith("</call>") and held[6:8].isdigit() and len(held) == 15, held
    free = said(url, "Add.")
    never = {"grammar": GRAMMAR, "grammar_lazy": True, "grammar_triggers": [{"type": 1, "value": "<call>"}]}
    assert "<call>" in free or said(url, "Add.", **never) == free
    at_once = {**never, "grammar": f"root ::= {json.dumps(free[:1])} [0-9]", "grammar_triggers": [{"value": free[:1]}]}
    assert said(url, "Add.", **at_once)[1:].isdigit()
    print("served")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
