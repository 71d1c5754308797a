"""One HTTP server for all bad servers: `http://127.0.0.1:PORT/<name>/v1/...`, or the name as the model.

async with run_server() as server:
    server.url, server.requests

It has the paths of every dialect. A request that names no bad server gets correct answers, as from `good`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web

from zoo import ZOO
from zoo.bad_server import BadServer
from zoo.question import Json, Question
from zoo.speech import Answer, encode_event, stream_kind

_ENDS = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages", "/api/chat": "ollama"}
GOOD = BadServer("good", "", "")


class ZooServer:
    """The HTTP server of all bad servers, and of those in `also`."""

    def __init__(
        self, *, file: str = "hello.txt", edits: bool = False, also: Mapping[str, BadServer] | None = None
    ) -> None:
        self._file, self._edits = file, edits
        self._servers = {**ZOO, **(also or {}), GOOD.name: GOOD}
        self._request_counts: Counter[str] = Counter()
        self.requests: list[tuple[str, Json]] = []  # the name of the bad server, and the body
        self.url = ""

    def reset(self) -> None:
        """Reset all counts and recorded requests."""
        self._request_counts.clear()
        self.requests.clear()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return _answer_get(request.path)
        head, path = self._split(request.path)
        body = _object(await request.read())
        api = _dialect(path)
        if not api or body is None:
            return web.json_response({"error": {"message": f"no such path: {path}", "type": "not_found"}}, status=404)
        server = self._servers.get(head) or self._servers.get(_model(path, body)) or GOOD
        self.requests.append((server.name, body))
        counter_key = f"{head} {server.name} {api}"
        self._request_counts[counter_key] += 1
        question = Question(
            api, body, _streams(api, path, body), self._file, self._edits, self._request_counts[counter_key]
        )
        return await _send(request, question, _answer(server, question))

    def _split(self, path: str) -> tuple[str, str]:
        """Return the name at the beginning of a path, if it is one of the servers, and the remainder."""
        _, head, remainder = (path + "/").split("/", 2)
        return (head, "/" + remainder.rstrip("/")) if head in self._servers else ("", path)


def _object(data: bytes) -> Json | None:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _answer(server: BadServer, question: Question) -> Answer:
    """Return the server's answer. A malformed request is rejected, as servers do."""
    try:
        return server.answer(question)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        return Answer(body={"error": {"message": f"cannot be read: {error!r:.100}", "type": "invalid"}}, status=400)


def _dialect(path: str) -> str:
    if ":generateContent" in path or ":streamGenerateContent" in path:
        return "gemini"
    return next((api for end, api in _ENDS.items() if path.endswith(end)), "")


def _model(path: str, body: Json) -> str:
    name = path.rpartition("/")[2].partition(":")[0] if ":" in path else body.get("model")
    return str(name).removesuffix(":latest")


def _streams(api: str, path: str, body: Json) -> bool:
    return ":stream" in path if api == "gemini" else bool(body.get("stream", api == "ollama"))


async def _send(request: web.Request, question: Question, answer: Answer) -> web.StreamResponse:
    if answer.events is None:
        return web.json_response(answer.body, status=answer.status)
    response = web.StreamResponse(headers={"Content-Type": answer.kind or stream_kind(question.api)})
    with suppress(ConnectionResetError):  # a client may close the connection early
        await response.prepare(request)
        await asyncio.sleep(answer.pause)
        for event in answer.events:
            await response.write(encode_event(question.api, event))
        if answer.breaks and request.transport is not None:
            request.transport.abort()
        else:
            await response.write_eof()
    return response


def _answer_get(path: str) -> web.Response:
    """Answer a GET request that clients send to servers of any type."""
    if path.endswith("/api/tags"):
        return web.json_response({"models": [{"name": name, "model": name} for name in ZOO]})
    if path.endswith("/v1/models"):
        models = [{"id": name, "object": "model", "created": 1, "owned_by": "zoo"} for name in ["good", *ZOO]]
        return web.json_response({"object": "list", "data": models})
    return web.json_response({"error": {"message": f"no such path: {path}", "type": "not_found"}}, status=404)


@asynccontextmanager
async def run_server(*, port: int = 0, **task: Any) -> AsyncIterator[ZooServer]:
    """Run the server on loopback."""
    server = ZooServer(**task)
    runner = web.AppRunner(server.app(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def request_line(name: str, body: Json) -> str:
    return json.dumps({"server": name, "body": body}, ensure_ascii=False)
