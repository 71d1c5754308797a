"""A loopback server that answers every POST, whole or as a stream, and records the requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Answers = Callable[[str, Json], Json | list[Json]]


def _frames(payloads: list[Json], path: str) -> Iterator[bytes]:
    for payload in payloads:
        event_line = f"event: {payload['type']}\n" if "type" in payload else ""
        yield f"{event_line}data: {json.dumps(payload)}\n\n".encode()
    if path.endswith("/chat/completions"):
        yield b"data: [DONE]\n\n"


@contextmanager
def scripted(answers: Answers, gets: dict[str, Json] | None = None) -> Iterator[tuple[str, list[Json]]]:
    """Run the server; yield its address and the list of request bodies.

    A list is streamed, in pieces that cut it anywhere. `gets` has the answer for each path of a GET request; other
    paths give 404.
    """
    bodies: list[Json] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = (gets or {}).get(self.path)
            data = json.dumps(found or {}).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            bodies.append(body)
            answer = answers(self.path, body)
            self.send_response(200)
            streamed = isinstance(answer, list)
            self.send_header("content-type", "text/event-stream" if streamed else "application/json")
            data = b"".join(_frames(answer, self.path)) if isinstance(answer, list) else json.dumps(answer).encode()
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            for at in range(0, len(data), 37):
                self.wfile.write(data[at : at + 37])

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", bodies
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
