"""An ASGI application behind a guard: for servers that are made by somebody else's library."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from rightcall.servers.gate import Gate, RequestHead, RequestRefusal
from rightcall.servers.refused_requests import body_of

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def guarded(app: App, guard: Gate) -> App:
    """The application, for requests that the guard lets in. It is given no other, and no web socket."""
    room = asyncio.Semaphore(guard.limits.together)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        head = _head(scope)
        origin = dict(head.headers).get("origin")
        # One request for each connection: only the head of the first is timed.
        send = _with_headers(send, {**guard.cors(origin), "Connection": "close"})
        refused = guard.refusal(head)
        if refused is None and (allowed := guard.preflight(head)) is not None:
            return await _answer(send, 204, allowed, b"")
        if refused is None and room.locked():
            refused = guard.too_many()
        if refused is not None:
            return await _refuse(send, refused, head.path)
        async with room:
            await _Bounded(guard, receive, send, head.path).run(app, scope)

    return serve


def _head(scope: Scope) -> RequestHead:
    headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
    return RequestHead(scope["method"], scope["path"], headers)


class _Stopped(Exception):
    """The body was too much; the answer says so."""


class _Bounded:
    """One request: its body is counted and timed as it comes."""

    def __init__(self, guard: Gate, receive: Receive, send: Send, path: str) -> None:
        self._guard, self._receive, self._send, self._path = guard, receive, send, path
        self._size = 0
        self._until = asyncio.get_running_loop().time() + guard.limits.seconds
        self._is_whole = self._has_begun = False

    async def run(self, app: App, scope: Scope) -> None:
        try:
            await app(scope, self.receive, self.send)
        except _Stopped:
            return

    async def receive(self) -> MutableMapping[str, Any]:
        if self._is_whole:
            return await self._receive()  # what comes now is that the client went away
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise await self._stop(self._guard.too_slow()) from None
        self._size += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if self._size > self._guard.limits.body:
            raise await self._stop(self._guard.too_long())
        return message

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self._has_begun = True
        await self._send(message)

    async def _stop(self, refused: RequestRefusal) -> _Stopped:
        if not self._has_begun:
            await _refuse(self._send, refused, self._path)
        return _Stopped()


def _with_headers(send: Send, more: dict[str, str]) -> Send:
    added = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in more.items()]

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *added]}
        await send(message)

    return sending


async def _refuse(send: Send, refused: RequestRefusal, path: str) -> None:
    headers = {**refused.headers, "Content-Type": "application/json", "X-Content-Type-Options": "nosniff"}
    await _answer(send, refused.status, headers, json.dumps(body_of(refused, path)).encode())


async def _answer(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    written = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    written.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": written})
    await send({"type": "http.response.body", "body": body})
