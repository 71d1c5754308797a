"""A server by aiohttp behind a guard.

    async with WebServer(answer, guard, port=0) as server: ... server.address

`answer` gets the requests that the guard lets in, with the body read and within its limits.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Self

from rightcall.errors import CallerError
from rightcall.extras import needs
from rightcall.servers.gate import Gate, RequestHead, RequestRefusal
from rightcall.servers.refused_requests import body_of
from rightcall.servers.slow_heads import TimedHead

if TYPE_CHECKING:
    from aiohttp import web

    Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebServer:
    """Listens as long as it is entered; answers that are under way then end within `stop_seconds`. Raises `CallerError`
    where nothing can listen. `refused` is told of requests that do not come in: method, status, code."""

    def __init__(
        self,
        answer: Answer,
        guard: Gate,
        *,
        port: int = 0,
        stop_seconds: float = 1.0,
        refused: Callable[[str, int, str], None] | None = None,
    ) -> None:
        needs("http")
        self._refused = refused
        self._answer, self.guard, self.port, self._stop_seconds = answer, guard, port, stop_seconds
        self._room = asyncio.Semaphore(guard.limits.together)
        self.runner: web.AppRunner | None = None
        self._listening: asyncio.Server | None = None

    @property
    def address(self) -> str:
        host = f"[{self.guard.host}]" if ":" in self.guard.host else self.guard.host
        return f"http://{host}:{self.port}"

    async def __aenter__(self) -> Self:
        from aiohttp import web

        app = web.Application(client_max_size=self.guard.limits.body)
        app.router.add_route("*", "/{path:.*}", self._serve)
        app.on_response_prepare.append(self._allow_page)
        self.runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=self._stop_seconds,
            handler_cancellation=True,
            keepalive_timeout=self.guard.limits.head_seconds,
            logger=_quiet_log(),
            lingering_time=1.0,  # for the rest of a body that was refused
        )
        await self.runner.setup()
        try:
            await self._listen(self.runner)
        except OSError as error:
            await self.runner.cleanup()
            said = error.strerror or str(error)
            raise CallerError(f"cannot listen on port {self.port}: {said}; name another with --port, or none") from None
        return self

    async def _listen(self, runner: web.AppRunner) -> None:
        handlers, seconds = runner.server, self.guard.limits.head_seconds
        assert handlers is not None  # it was set up
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(
            lambda: TimedHead(handlers(), seconds), self.guard.host, self.port, backlog=128
        )
        self.port = self._listening.sockets[0].getsockname()[1]

    async def __aexit__(self, *_: object) -> None:
        if self._listening is not None:
            self._listening.close()
        if self.runner is not None:
            await self.runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        head = RequestHead(
            request.method, request.path, [(name.lower(), value) for name, value in request.headers.items()]
        )
        refused = self.guard.refusal(head)
        if refused is None and (allowed := self.guard.preflight(head)) is not None:
            from aiohttp import web

            return web.Response(status=204, headers=allowed)
        if refused is None and self._room.locked():
            refused = self.guard.too_many()
        if refused is not None:
            return self._said(refused, request)
        async with self._room:
            return await self._answered(request)

    async def _allow_page(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(self.guard.cors(request.headers.get("origin")))

    async def _answered(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        try:
            if request.content.is_eof():  # it has come with the head, as most do
                await request.read()
            else:
                async with asyncio.timeout(self.guard.limits.seconds):
                    await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._said(self.guard.too_long(), request)
        except TimeoutError:
            return self._said(self.guard.too_slow(), request)
        except web.RequestPayloadError:
            return self._said(self.guard.unreadable(), request)
        return await self._answer(request)

    def _said(self, refused: RequestRefusal, request: web.Request) -> web.StreamResponse:
        if self._refused is not None:
            self._refused(request.method, refused.status, refused.code)
        return _said(refused, request)


def _quiet_log() -> logging.Logger:
    """A log for what goes wrong in here. What is no HTTP is not in it: a stranger could fill a disk with such requests,
    and the lines that cannot be read may hold a key."""
    log = logging.getLogger("rightcall.servers")
    log.addFilter(_is_ours)
    return log


def _is_ours(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return type(error).__module__ != "aiohttp.http_exceptions"  # its faults of reading, under no public name


def _said(refused: RequestRefusal, request: web.Request) -> web.StreamResponse:
    from aiohttp import web

    headers = {**refused.headers, "X-Content-Type-Options": "nosniff"}
    text = json.dumps(body_of(refused, request.path))
    response = web.Response(status=refused.status, text=text, content_type="application/json", headers=headers)
    response.force_close()  # what is left of the request is not read
    return response
