"""The one server behind which all bad servers stand: `http://127.0.0.1:PORT/<name>/v1/...`, or the name as the model.

async with keeping() as keeper:
    keeper.url, keeper.heard

It has every dialect's paths. What no bad server is called by gets answers that are right, as `good` does.
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
from zoo.speech import Answer, framed, stream_kind

_ENDS = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages", "/api/chat": "ollama"}
GOOD = BadServer("good", "", "")


class Keeper:
    """Answers for all of them, and for `also`."""

    def __init__(
        self, *, file: str = "hello.txt", edits: bool = False, also: Mapping[str, BadServer] | None = None
    ) -> None:
        self._file, self._edits = file, edits
        self._servers = {**ZOO, **(also or {}), GOOD.name: GOOD}
        self._asked: Counter[str] = Counter()
        self.heard: list[tuple[str, Json]] = []  # the name that was asked for, and the body
        self.url = ""

    def forget(self) -> None:
        """As if nothing had been asked yet."""
        self._asked.clear()
        self.heard.clear()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return _looked_up(request.path)
        head, path = self._split(request.path)
        body = _object(await request.read())
        api = _dialect(path)
        if not api or body is None:
            return web.json_response({"error": {"message": f"no such path: {path}", "type": "not_found"}}, status=404)
        server = self._servers.get(head) or self._servers.get(_model(path, body)) or GOOD
        self.heard.append((server.name, body))
        asker = f"{head} {server.name} {api}"
        self._asked[asker] += 1
        question = Question(api, body, _streams(api, path, body), self._file, self._edits, self._asked[asker])
        return await _sent(request, question, _answered(server, question))

    def _split(self, path: str) -> tuple[str, str]:
        """The name at the head of a path, if it is one of the servers, and the rest."""
        _, head, rest = (path + "/").split("/", 2)
        return (head, "/" + rest.rstrip("/")) if head in self._servers else ("", path)


def _object(data: bytes) -> Json | None:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _answered(server: BadServer, question: Question) -> Answer:
    """What it answers; a request that cannot be read is refused, as servers do."""
    try:
        return server.answer(question)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        return Answer(body={"error": {"message": f"cannot be read: {error!r:.100}", "type": "invalid"}}, status=400)


def _dialect(path: str) -> str:
    if ":generateContent" in path or ":streamGenerateContent" in path:
        return "gemini"
    return next((api for end, api in _ENDS.items() if path.endswith(end)), "")


def _model(path: str, body: Json) -> str:
    inside = path.rpartition("/")[2].partition(":")[0] if ":" in path else body.get("model")
    return str(inside).removesuffix(":latest")


def _streams(api: str, path: str, body: Json) -> bool:
    return ":stream" in path if api == "gemini" else bool(body.get("stream", api == "ollama"))


async def _sent(request: web.Request, question: Question, answer: Answer) -> web.StreamResponse:
    if answer.events is None:
        return web.json_response(answer.body, status=answer.status)
    response = web.StreamResponse(headers={"Content-Type": answer.kind or stream_kind(question.api)})
    with suppress(ConnectionResetError):  # a client that has seen enough may hang up
        await response.prepare(request)
        await asyncio.sleep(answer.pause)
        for event in answer.events:
            await response.write(framed(question.api, event))
        if answer.breaks and request.transport is not None:
            request.transport.abort()
        else:
            await response.write_eof()
    return response


def _looked_up(path: str) -> web.Response:
    """What servers of every kind are asked for beside answers."""
    if path.endswith("/api/tags"):
        return web.json_response({"models": [{"name": name, "model": name} for name in ZOO]})
    if path.endswith("/v1/models"):
        listed = [{"id": name, "object": "model", "created": 1, "owned_by": "zoo"} for name in ["good", *ZOO]]
        return web.json_response({"object": "list", "data": listed})
    return web.json_response({"error": {"message": f"no such path: {path}", "type": "not_found"}}, status=404)


@asynccontextmanager
async def keeping(*, port: int = 0, **task: Any) -> AsyncIterator[Keeper]:
    """The server, on this machine."""
    keeper = Keeper(**task)
    runner = web.AppRunner(keeper.app(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    keeper.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield keeper
    finally:
        await runner.cleanup()


def heard_line(name: str, body: Json) -> str:
    return json.dumps({"server": name, "body": body}, ensure_ascii=False)
