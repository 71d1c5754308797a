"""A model server on loopback for captures: its answer depends only on the request, and some answers are invalid.

python tests/support/stub_model.py          print the port and serve until standard input ends
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


def answer(body: Json) -> Json:
    """Return calls in the first two turns, then text. Some calls are truncated, unnamed or of an unknown tool."""
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    words = json.dumps([body["model"], body.get("seed"), body["messages"]], sort_keys=True)
    dice = hashlib.sha256(words.encode()).digest()
    calls = [] if turn >= 2 or dice[0] < 30 else [_call(body, dice, at) for at in range(1 + dice[1] % 3)]
    message: Json = {"role": "assistant", "content": None if calls else f"That is all, after {turn} turns."}
    if calls:
        message["tool_calls"] = calls
    return {
        "id": f"chatcmpl-{dice.hex()[:8]}",
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": len(words), "completion_tokens": 10 + dice[2]},
    }


def _call(body: Json, dice: bytes, at: int) -> Json:
    tool = body["tools"][dice[3 + at] % len(body["tools"])]["function"]
    kind = dice[8 + at] % 8
    properties = tool["parameters"].get("properties", {})
    arguments = json.dumps({name: _value(schema) for name, schema in properties.items()})
    if kind == 0:
        arguments = arguments[:-1]  # never closed
    name = "no_such_tool" if kind == 1 else tool["name"]
    call: Json = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return call if kind == 2 else {"id": f"call_{dice[12] % 2}", **call}  # no id, or a duplicate id


def _value(schema: Json) -> Any:
    kinds = {"integer": 2, "number": 2.5, "boolean": True, "array": [], "object": {}}
    return schema["enum"][0] if "enum" in schema else kinds.get(schema.get("type", ""), "0042")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a body after its head would wait 40 ms for an acknowledgement

    def do_GET(self) -> None:
        self._send(404, {"error": {"message": "nothing here"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self._send(200, answer(body))

    def _send(self, status: int, value: Json) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Do not log."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that are killed and close the connection."""


def start_server() -> ThreadingHTTPServer:
    """Start a server and return it; `shutdown` ends it."""
    server = _Server(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


if __name__ == "__main__":
    running = start_server()
    print(running.server_port, flush=True)
    sys.stdin.read()
    running.shutdown()
