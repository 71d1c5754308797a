"""The model and its adapter as a server, for a GPU: many questions at a time, each held to its grammar.

    python serve.py --model SmolLM2-135M-Instruct.Q4_1.gguf --adapter tools.gguf --port 8000
    rightcall eval questions --base-url http://127.0.0.1:8000/v1 --model smollm2-tools --mode text --concurrency 64

It speaks as much of llama.cpp's dialect as an evaluation needs: chat without tools of its own, the likeliest word each
time, and GBNF grammars, which xgrammar enforces (`pip install xgrammar`). For measuring: it listens here alone, and
asks for no key. On a CPU `rightcall model serve` is faster.
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

from answers import Asked, Speaker
from held import Grammars
from small_model import prompted

LONGEST = 8192  # tokens that SmolLM2 can see
TOGETHER = 65_536  # tokens of prompts in one batch, as long as the longest each
Json = dict[str, Any]
Waiting = tuple[Asked, Future[list[int]]]


class Desk:
    """Takes questions from any thread, and has those that wait answered together by one: the shortest first, so that
    no long prompt makes many short ones as long."""

    def __init__(self, speaker: Speaker, batch: int) -> None:
        self._queue: queue.Queue[Waiting] = queue.Queue()
        self._speaker, self._batch = speaker, batch
        threading.Thread(target=self._work, daemon=True).start()

    def ask(self, asked: Asked) -> list[int]:
        future: Future[list[int]] = Future()
        self._queue.put((asked, future))
        return future.result()

    def _work(self) -> None:
        waiting: list[Waiting] = []
        while True:
            waiting += [] if waiting else [self._queue.get()]
            with suppress(queue.Empty):
                while True:
                    waiting.append(self._queue.get(timeout=0.02))  # those that were asked at the same time come along
            waiting.sort(key=lambda each: len(each[0].prompt))
            fitting = [at for at, (asked, _) in enumerate(waiting, 1) if at * len(asked.prompt) <= TOGETHER]
            count = min(self._batch, max(1, len(fitting)))
            self._answer(waiting[:count])
            del waiting[:count]

    def _answer(self, taken: list[Waiting]) -> None:
        try:
            for (_, future), said in zip(taken, self._speaker.answer([asked for asked, _ in taken]), strict=True):
                future.set_result(said)
        except Exception as error:  # noqa: BLE001 - whoever asked is told, and the next ones are answered
            for _, future in taken:
                future.set_exception(error)


class Answers(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    desk: ClassVar[Desk]
    speaker: ClassVar[Speaker]
    grammars: ClassVar[Grammars]
    name: ClassVar[str]

    def do_GET(self) -> None:
        if self.path == "/props":
            caps = {"supports_tools": False}
            self._say(200, {"default_generation_settings": {"n_ctx": LONGEST}, "chat_template_caps": caps})
        else:
            self._say(200, {"object": "list", "data": [{"id": self.name, "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            self._say(200, self._answer(body))
        except Exception as error:  # noqa: BLE001 - told to whoever asked, as a server does
            self._say(400, {"error": {"message": f"{type(error).__name__}: {error}"[:500]}})

    def _answer(self, body: Json) -> Json:
        if body.get("temperature") or body.get("tools") or body.get("stream"):
            raise ValueError("only temperature 0, no tools of its own and no stream; use --temperature 0 --mode text")
        prompt = prompted(self.speaker.tokenizer, body["messages"])
        most = min(body.get("max_tokens") or 1024, LONGEST - len(prompt))
        if most < 1:
            raise ValueError(f"the prompt has {len(prompt)} tokens, and {LONGEST} are the most")
        said = self.desk.ask(Asked(prompt, most, self.grammars.hold(body)))
        message = {"role": "assistant", "content": self.speaker.text(said)}
        spent = {"prompt_tokens": len(prompt), "completion_tokens": len(said)}
        ended = "length" if len(said) == most else "stop"
        choice = {"index": 0, "message": message, "finish_reason": ended}
        return {"object": "chat.completion", "model": self.name, "choices": [choice], "usage": spent}

    def _say(self, status: int, body: Json) -> None:
        data = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class Listening(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="GGUF file of the model")
    parser.add_argument("--adapter", type=Path, help="adapter.safetensors, or the GGUF file made of it")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=128, help="questions at a time; 128 unless said")
    options = parser.parse_args()
    Answers.speaker = Speaker(options.model, options.adapter)
    Answers.grammars = Grammars(Answers.speaker)
    Answers.desk = Desk(Answers.speaker, options.batch)
    Answers.name = "smollm2" if options.adapter is None else f"smollm2+{options.adapter.stem}"
    server = Listening(("127.0.0.1", options.port), Answers)
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
