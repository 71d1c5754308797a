"""Servers that listen: aiohttp (`WebServer`) and ASGI applications (`gate_asgi`), both protected by a `Gate`.

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
    """An aiohttp server protected by a gate; it listens inside its `async with` block.

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
        """Return the URL of the server; its port is known once the server listens."""
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
        """Open the port and store its number. Raises `OSError` if it cannot be opened."""
        handlers, seconds = runner.server, self.gate.limits.head_seconds
        assert handlers is not None  # `setup` created it
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: TimedHead(handlers(), seconds), self.gate.host, self.port, backlog=128
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def __aexit__(self, *_: object) -> None:
        """Close the port, and give answers in progress `stop_seconds` to end."""
        if self._server is not None:
            self._server.close()
        if self.runner is not None:
            await self.runner.cleanup()

    async def _accept(self, request: web.Request) -> web.StreamResponse:
        """Return the response to a request: the refusal of the gate, 204 for a CORS preflight, 503 if too many requests
        are in progress, otherwise the response of the handler or of a body that cannot be read."""
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
            return await self._read_body_and_handle(request)

    async def _add_cors_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add the CORS headers to a response in place before it is sent, if the request's origin is allowed
        explicitly."""
        response.headers.update(self.gate.cors_headers(request.headers.get("origin")))

    async def _read_body_and_handle(self, request: web.Request) -> web.StreamResponse:
        """Read the body, then return the response of the handler; return a refusal if the body is too large, too
        slow or malformed."""
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
        """Call `on_refused`, if there is one, and return the response for this refusal."""
        if self._on_refused is not None:
            self._on_refused(request.method, refused.status, refused.code)
        return _refusal_response(refused, request)


def _server_log() -> logging.Logger:
    """Return the logger of server faults, which drops records of malformed HTTP: anyone could fill a disk with them,
    and their text may contain a key."""
    log = logging.getLogger("rightcall.servers")
    log.addFilter(_is_server_fault)
    return log


def _is_server_fault(record: logging.LogRecord) -> bool:
    """Return False for a record of malformed HTTP, which the client caused, and True for any other."""
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
        """Start the timer for the first request head, and pass the transport on to the wrapped protocol."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's class is not a subclass
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._close)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass the data on to the wrapped protocol, after stopping the timer if the first request head ends in it."""
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
        """Stop the timer for good; do nothing if it is stopped already."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def eof_received(self) -> bool | None:
        """Pass this callback of the transport on to the wrapped protocol, and return its answer."""
        return self._inner.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """Stop the timer, and pass this callback of the transport on to the wrapped protocol."""
        self._cancel_timer()
        self._inner.connection_lost(error)

    def pause_writing(self) -> None:
        """Pass this callback of the transport on to the wrapped protocol."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass this callback of the transport on to the wrapped protocol."""
        self._inner.resume_writing()


# -- ASGI applications of other libraries ------------------------------------------------------------------------------


def gate_asgi(app: AsgiApp, gate: Gate) -> AsgiApp:
    """Return an ASGI application that checks each HTTP request with the gate and passes accepted ones to `app`. Web
    sockets are closed; lifespan events are passed on."""
    slots = asyncio.Semaphore(gate.limits.concurrent)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request: the gate's refusal, 204 for a CORS preflight, 503 if too many requests are in progress,
        otherwise what the application sends."""
        if scope["type"] == "lifespan":
            return await app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        head = _request_head(scope)
        origin = dict(head.headers).get("origin")
        # One request per connection, because only the first head of a connection is timed.
        send = _add_headers_to_response(send, {**gate.cors_headers(origin), "Connection": "close"})
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
    """Return the head of the request in this ASGI scope, with header names in lower case."""
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
        self._is_whole = self._is_started = False

    async def run(self, app: AsgiApp, scope: Scope) -> None:
        """Run the application for this request; return normally if a limit was exceeded."""
        try:
            await app(scope, self.receive, self.send)
        except _Stopped:
            return

    async def receive(self) -> MutableMapping[str, Any]:
        """Return the next message of the body. If a limit is exceeded, send the refusal unless a response has begun,
        and raise `_Stopped`."""
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
        """Send a message of the response, and note that the response has started."""
        self._is_started = True
        await self._send(message)

    async def _stop(self, refused: RequestRefusal) -> _Stopped:
        """Send the refusal, unless the application has started its response, and return the exception to raise."""
        if not self._is_started:
            await _send_refusal(self._send, refused, self._path)
        return _Stopped()


def _add_headers_to_response(send: Send, more: dict[str, str]) -> Send:
    """Return an ASGI `send` that passes messages on to `send`, with these headers added to the start of the
    response."""
    added = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in more.items()]

    async def send_with_headers(message: MutableMapping[str, Any]) -> None:
        """Pass a message on, with the headers added if it starts the response."""
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *added]}
        await send(message)

    return send_with_headers


async def _send_refusal(send: Send, refused: RequestRefusal, path: str) -> None:
    """Send the response for this refusal as JSON, in the shape of the API that the path belongs to."""
    headers = {**refused.headers, "Content-Type": "application/json", "X-Content-Type-Options": "nosniff"}
    await _send_response(send, refused.status, headers, json.dumps(refusal_body(refused, path)).encode())


async def _send_response(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    """Send a whole response, with the length of the body added to the headers."""
    written = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    written.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": written})
    await send({"type": "http.response.body", "body": body})
