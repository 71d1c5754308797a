"""Servers that listen: aiohttp (`WebServer`) and ASGI applications (`gate_asgi`), both behind a `Gate`.

    async with WebServer(handle, gate, port=0) as server:
        print(server.address)

No other module opens a listening port, so host, origin, key and limits are checked for every request.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Self, cast

from rightcall.errors import CallerError
from rightcall.extras import require_extra
from rightcall.request_gate import Gate, RequestHead, RequestRefusal, refusal_body

if TYPE_CHECKING:
    from aiohttp import web

    RequestHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

_HEAD_ENDS = (b"\r\n\r\n", b"\n\n")
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class WebServer:
    """An aiohttp server behind a gate, listening while it is entered.

    `handle` receives the accepted requests with their bodies read and within the limits. `on_refused` is called with
    method, status and code of every other request. On exit, answers in progress get `stop_seconds` to end. Raises
    `CallerError` if the port cannot be opened.
    """

    def __init__(
        self,
        handle: RequestHandler,
        gate: Gate,
        *,
        port: int = 0,
        stop_seconds: float = 1.0,
        on_refused: Callable[[str, int, str], None] | None = None,
    ) -> None:
        require_extra("http")
        self._on_refused = on_refused
        self._handle, self.gate, self.port, self._stop_seconds = handle, gate, port, stop_seconds
        self._slots = asyncio.Semaphore(gate.limits.concurrent)
        self.runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        host = f"[{self.gate.host}]" if ":" in self.gate.host else self.gate.host
        return f"http://{host}:{self.port}"

    async def __aenter__(self) -> Self:
        """Start to listen. Raises `CallerError` if the port cannot be opened."""
        from aiohttp import web

        app = web.Application(client_max_size=self.gate.limits.body)
        app.router.add_route("*", "/{path:.*}", self._accept)
        app.on_response_prepare.append(self._add_cors_headers)
        self.runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=self._stop_seconds,
            handler_cancellation=True,
            keepalive_timeout=self.gate.limits.head_seconds,
            logger=_server_log(),
            lingering_time=1.0,  # seconds to read the remainder of a refused body
        )
        await self.runner.setup()
        try:
            await self._listen(self.runner)
        except OSError as error:
            await self.runner.cleanup()
            cause = error.strerror or str(error)
            raise CallerError(f"cannot listen on port {self.port}: {cause}; choose another with --port") from None
        return self

    async def _listen(self, runner: web.AppRunner) -> None:
        handlers, seconds = runner.server, self.gate.limits.head_seconds
        assert handlers is not None  # `setup` created it
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: TimedHead(handlers(), seconds), self.gate.host, self.port, backlog=128
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        if self.runner is not None:
            await self.runner.cleanup()

    async def _accept(self, request: web.Request) -> web.StreamResponse:
        """Answer a request with the refusal of the gate, 204 for a CORS preflight, 503 if too many requests are in
        progress, or the response of the handler."""
        head = RequestHead(
            request.method, request.path, [(name.lower(), value) for name, value in request.headers.items()]
        )
        refused = self.gate.check(head)
        if refused is None and (allowed := self.gate.preflight_headers(head)) is not None:
            from aiohttp import web

            return web.Response(status=204, headers=allowed)
        if refused is None and self._slots.locked():
            refused = self.gate.busy_refusal()
        if refused is not None:
            return self._refuse(refused, request)
        async with self._slots:
            return await self._read_and_handle(request)

    async def _add_cors_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(self.gate.cors_headers(request.headers.get("origin")))

    async def _read_and_handle(self, request: web.Request) -> web.StreamResponse:
        """Read the body within the limits and call the handler."""
        from aiohttp import web

        try:
            if request.content.is_eof():  # most bodies arrive together with the head
                await request.read()
            else:
                async with asyncio.timeout(self.gate.limits.seconds):
                    await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._refuse(self.gate.large_body_refusal(), request)
        except TimeoutError:
            return self._refuse(self.gate.slow_body_refusal(), request)
        except web.RequestPayloadError:
            return self._refuse(self.gate.malformed_body_refusal(), request)
        return await self._handle(request)

    def _refuse(self, refused: RequestRefusal, request: web.Request) -> web.StreamResponse:
        if self._on_refused is not None:
            self._on_refused(request.method, refused.status, refused.code)
        return _refusal_response(refused, request)


def _server_log() -> logging.Logger:
    """Return the log of server faults, without malformed HTTP: anyone could fill a disk with it, and its lines
    may contain a key."""
    log = logging.getLogger("rightcall.servers")
    log.addFilter(_is_server_fault)
    return log


def _is_server_fault(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return type(error).__module__ != "aiohttp.http_exceptions"  # aiohttp's parse errors have no public base class


def _refusal_response(refused: RequestRefusal, request: web.Request) -> web.StreamResponse:
    """Return the response of a refused request; the connection is closed after it."""
    from aiohttp import web

    headers = {**refused.headers, "X-Content-Type-Options": "nosniff"}
    text = json.dumps(refusal_body(refused, request.path))
    response = web.Response(status=refused.status, text=text, content_type="application/json", headers=headers)
    response.force_close()  # the remainder of the request is not read
    return response


class TimedHead(asyncio.Protocol):
    """Close a connection whose first request head does not arrive within `seconds`.

    Servers time bodies and idle connections, but wait for the first head without a limit. All callbacks of the
    transport are passed on to the `inner` protocol.
    """

    def __init__(self, inner: asyncio.Protocol, seconds: float) -> None:
        self._inner, self._seconds = inner, seconds
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._last = b""  # the last bytes: the end of the head may be split

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's class is not a subclass
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._close)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass the data on, and stop the timer at the end of the first request head."""
        if self._timer is not None:
            seen = self._last + data if self._last else data.lstrip(b"\r\n")  # empty lines may precede the head
            self._last = seen[-3:]
            if any(end in seen for end in _HEAD_ENDS):
                self._cancel_timer()
        self._inner.data_received(data)

    def _close(self) -> None:
        """Close the connection, with a 408 response if a part of the head has arrived."""
        if self._transport is not None and not self._transport.is_closing():
            if self._last:
                self._transport.write(_TOO_SLOW)
            self._transport.close()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        self._cancel_timer()
        self._inner.connection_lost(error)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


# -- ASGI applications of other libraries ------------------------------------------------------------------------------


def gate_asgi(app: AsgiApp, gate: Gate) -> AsgiApp:
    """Return the ASGI application behind a gate. It receives accepted HTTP requests only, and no web sockets."""
    slots = asyncio.Semaphore(gate.limits.concurrent)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        head = _request_head(scope)
        origin = dict(head.headers).get("origin")
        # One request per connection, because only the first head of a connection is timed.
        send = _adding_headers(send, {**gate.cors_headers(origin), "Connection": "close"})
        refused = gate.check(head)
        if refused is None and (allowed := gate.preflight_headers(head)) is not None:
            return await _send_response(send, 204, allowed, b"")
        if refused is None and slots.locked():
            refused = gate.busy_refusal()
        if refused is not None:
            return await _send_refusal(send, refused, head.path)
        async with slots:
            await _BoundedRequest(gate, receive, send, head.path).run(app, scope)

    return serve


def _request_head(scope: Scope) -> RequestHead:
    headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
    return RequestHead(scope["method"], scope["path"], headers)


class _Stopped(Exception):
    """The body exceeded a limit and the refusal was sent."""


class _BoundedRequest:
    """Count and time the body of one request while the application reads it."""

    def __init__(self, gate: Gate, receive: Receive, send: Send, path: str) -> None:
        self._gate, self._receive, self._send, self._path = gate, receive, send, path
        self._size = 0
        self._until = asyncio.get_running_loop().time() + gate.limits.seconds
        self._is_whole = self._has_begun = False

    async def run(self, app: AsgiApp, scope: Scope) -> None:
        try:
            await app(scope, self.receive, self.send)
        except _Stopped:
            return

    async def receive(self) -> MutableMapping[str, Any]:
        """Receive the next message of the body; refuse the request if a limit is exceeded."""
        if self._is_whole:
            return await self._receive()  # the next message can only be the disconnect
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise await self._stop(self._gate.slow_body_refusal()) from None
        self._size += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if self._size > self._gate.limits.body:
            raise await self._stop(self._gate.large_body_refusal())
        return message

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self._has_begun = True
        await self._send(message)

    async def _stop(self, refused: RequestRefusal) -> _Stopped:
        if not self._has_begun:
            await _send_refusal(self._send, refused, self._path)
        return _Stopped()


def _adding_headers(send: Send, more: dict[str, str]) -> Send:
    """Return a `send` that adds these headers to the response."""
    added = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in more.items()]

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *added]}
        await send(message)

    return sending


async def _send_refusal(send: Send, refused: RequestRefusal, path: str) -> None:
    headers = {**refused.headers, "Content-Type": "application/json", "X-Content-Type-Options": "nosniff"}
    await _send_response(send, refused.status, headers, json.dumps(refusal_body(refused, path)).encode())


async def _send_response(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    written = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    written.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": written})
    await send({"type": "http.response.body", "body": body})
