"""A server for the model and its adapter, for a GPU: many questions in a batch, each constrained by its grammar.

    python serve.py --model SmolLM2-135M-Instruct.Q4_1.gguf --adapter tools.gguf --port 8000
    rightcall eval questions --base-url http://127.0.0.1:8000/v1 --model smollm2-tools --mode text --concurrency 64

It supports the part of llama.cpp's API that an evaluation needs: chat without native tools, greedy decoding, and GBNF
grammars, which xgrammar enforces (`pip install xgrammar`). It is for measurements: it listens on loopback only and
needs no key. On a CPU `rightcall model serve` is faster.
"""

from __future__ import annotations

import argparse
import json
import queue
import threading
from concurrent.futures import Future
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from answers import GenerationRequest, Generator
from held import Grammars
from small_model import encode_prompt

CONTEXT_SIZE = 8192  # context size of SmolLM2 in tokens
MOST_BATCH_TOKENS = 65_536  # tokens of one batch, with all prompts padded to the longest
Json = dict[str, Any]
PendingRequest = tuple[GenerationRequest, Future[list[int]]]


class Batcher:
    """Accepts requests from any thread and answers the pending ones in batches in one thread.

    Shorter prompts come first, so that a long prompt does not pad many short ones.
    """

    def __init__(self, generator: Generator, batch: int) -> None:
        self._queue: queue.Queue[PendingRequest] = queue.Queue()
        self._generator, self._batch = generator, batch
        threading.Thread(target=self._run, daemon=True).start()

    def ask(self, request: GenerationRequest) -> list[int]:
        future: Future[list[int]] = Future()
        self._queue.put((request, future))
        return future.result()

    def _run(self) -> None:
        pending: list[PendingRequest] = []
        while True:
            pending += [] if pending else [self._queue.get()]
            with suppress(queue.Empty):
                while True:
                    pending.append(self._queue.get(timeout=0.02))  # simultaneous requests join the batch
            pending.sort(key=lambda each: len(each[0].prompt))
            fitting = [
                at for at, (request, _) in enumerate(pending, 1) if at * len(request.prompt) <= MOST_BATCH_TOKENS
            ]
            count = min(self._batch, max(1, len(fitting)))
            self._answer(pending[:count])
            del pending[:count]

    def _answer(self, batch: list[PendingRequest]) -> None:
        try:
            for (_, future), new_tokens in zip(
                batch, self._generator.answer([request for request, _ in batch]), strict=True
            ):
                future.set_result(new_tokens)
        except Exception as error:  # noqa: BLE001 - the callers get it, and the next requests are answered
            for _, future in batch:
                future.set_exception(error)


class RequestHandler(BaseHTTPRequestHandler):
    """The handler of one connection."""

    protocol_version = "HTTP/1.1"
    batcher: ClassVar[Batcher]
    generator: ClassVar[Generator]
    grammars: ClassVar[Grammars]
    name: ClassVar[str]

    def do_GET(self) -> None:
        if self.path == "/props":
            caps = {"supports_tools": False}
            self._send(200, {"default_generation_settings": {"n_ctx": CONTEXT_SIZE}, "chat_template_caps": caps})
        else:
            self._send(200, {"object": "list", "data": [{"id": self.name, "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            self._send(200, self._answer(body))
        except Exception as error:  # noqa: BLE001 - the client gets it in an error response
            self._send(400, {"error": {"message": f"{type(error).__name__}: {error}"[:500]}})

    def _answer(self, body: Json) -> Json:
        if body.get("temperature") or body.get("tools") or body.get("stream"):
            raise ValueError(
                "only temperature 0 without native tools and streams is supported: use --temperature 0 --mode text"
            )
        prompt = encode_prompt(self.generator.tokenizer, body["messages"])
        max_tokens = min(body.get("max_tokens") or 1024, CONTEXT_SIZE - len(prompt))
        if max_tokens < 1:
            raise ValueError(f"the prompt has {len(prompt)} tokens, the maximum is {CONTEXT_SIZE - 1}")
        new_tokens = self.batcher.ask(GenerationRequest(prompt, max_tokens, self.grammars.constraint(body)))
        message = {"role": "assistant", "content": self.generator.text(new_tokens)}
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(new_tokens)}
        finish_reason = "length" if len(new_tokens) == max_tokens else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish_reason}
        return {"object": "chat.completion", "model": self.name, "choices": [choice], "usage": usage}

    def _send(self, status: int, body: Json) -> None:
        data = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Do not log."""


class Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="GGUF file of the model")
    parser.add_argument("--adapter", type=Path, help="adapter.safetensors, or the GGUF file made of it")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=128, help="questions in a batch (default: 128)")
    options = parser.parse_args()
    RequestHandler.generator = Generator(options.model, options.adapter)
    RequestHandler.grammars = Grammars(RequestHandler.generator)
    RequestHandler.batcher = Batcher(RequestHandler.generator, options.batch)
    RequestHandler.name = "smollm2" if options.adapter is None else f"smollm2+{options.adapter.stem}"
    server = Server(("127.0.0.1", options.port), RequestHandler)
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
