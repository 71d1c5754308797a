"""The answer on its way to one client: its head is held until something is sure, and silence is broken now and then.

    answer = ClientAnswer(http_request, exchanged, settings)
    answer.wait(make_writer, kind)         from now on the client is kept waiting, not for longer than it likes
    await answer.send(data)                the head goes out before the first of these
    return await answer.end()

Whoever sends waits for the client to take it: a slow client holds nothing but what a socket holds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from rightcall.serve.answer_writer import AnswerWriter
from rightcall.serve.exchanged import Exchanged, headers_of
from rightcall.serve.proxy_settings import ProxySettings

if TYPE_CHECKING:
    from aiohttp import web

STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


@cache
def _stream_class() -> type[web.StreamResponse]:
    from aiohttp import web

    class LateHead(web.StreamResponse):
        _send_headers_immediately = False  # but with the first piece, which is at hand

    return LateHead


class ClientAnswer:
    """One answer: streamed, or whole by `respond`."""

    def __init__(self, http: web.Request, exchanged: Exchanged, settings: ProxySettings) -> None:
        self._http, self._exchanged, self._settings = http, exchanged, settings
        self._response: web.StreamResponse | None = None
        self._kind = "text/event-stream"
        self._make_writer: Callable[[], AnswerWriter] | None = None  # once it is known that the answer is a stream
        self._timer: asyncio.TimerHandle | None = None
        self._beat: asyncio.Task[None] | None = None
        self._last = 0.0  # when something was sent, in the loop's time
        self._kept: list[bytes] = []  # goes out with what comes next
        self.headers: dict[str, str] = {}  # more of them, until the head has gone out
        self.has_content = False  # not only signs of life have gone out

    @property
    def has_begun(self) -> bool:
        """Has the head gone out?"""
        return self._response is not None

    @property
    def response(self) -> web.StreamResponse:
        """What has begun, or an empty answer for whoever has left."""
        from aiohttp import web

        return self._response or web.Response(status=499)

    @property
    def is_stream(self) -> bool:
        return self._make_writer is not None

    @property
    def writer(self) -> AnswerWriter:
        """A writer of the client's dialect, for what is none of the answer's content."""
        assert self._make_writer is not None, "only a stream has one"
        return self._make_writer()

    def wait(self, make_writer: Callable[[], AnswerWriter], kind: str) -> None:
        """The client waits for a stream of this content type from now on; after a while it gets the head, and signs of
        life, for which a writer is made."""
        self._make_writer, self._kind = make_writer, kind
        if self._timer is None and not self.has_begun:
            self._tick_in(self._settings.hold_headers)

    def _tick_in(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._tick)

    def _tick(self) -> None:
        """A sign of life, if nothing else was sent for so long."""
        loop, pause = asyncio.get_running_loop(), self._settings.keep_alive
        self._timer = None
        quiet = loop.time() - self._last
        if not self.has_begun or quiet >= pause:
            self._beat, quiet = loop.create_task(self._sign_of_life()), 0.0
        if pause:
            self._tick_in(pause - quiet)

    async def _sign_of_life(self) -> None:
        with contextlib.suppress(ConnectionError):  # whoever answers will see it too
            await self._write(self.writer.alive())

    async def send(self, data: bytes, *, is_last: bool = False) -> None:
        """A piece of the answer. The last that the server said goes out with the end that is made of it: what is sent
        costs more by the number than by the length."""
        if data:
            self.has_content = True
            if is_last:
                self._kept.append(data)
            else:
                await self._write(data)

    def _taken(self, data: bytes) -> bytes:
        if self._kept:
            data = b"".join([*self._kept, data])
            self._kept.clear()
        self._exchanged.bytes_out += len(data)
        return data

    async def _write(self, data: bytes) -> None:
        is_first = self._response is None
        if is_first:
            await self._begin()
        assert self._response is not None
        self._last = asyncio.get_running_loop().time()
        data = self._taken(data)
        if data or is_first:
            await self._response.write(data)

    async def _begin(self) -> None:
        self._exchanged.status = 200
        self._exchanged.note_first_byte()
        self._stop_timer()
        if self._settings.keep_alive and self._make_writer is not None:
            self._tick_in(self._settings.keep_alive)
        headers = {**STREAM_HEADERS, **self.headers, **headers_of(self._exchanged), "Content-Type": self._kind}
        response = _stream_class()(status=200, headers=headers)
        self._response = response
        await response.prepare(self._http)

    async def end(self) -> web.StreamResponse:
        """Nothing more comes."""
        await self.stop()
        if self._response is None:
            await self._begin()
            await self.stop()
        assert self._response is not None
        await self._response.write_eof(self._taken(b""))
        return self._response

    async def stop(self) -> None:
        """No more signs of life."""
        self._stop_timer()
        beat, self._beat = self._beat, None
        if beat is not None:
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)

    async def leave(self) -> None:
        """It is over. What a request made must not hold itself: at hundreds a second the collector would come too
        late for it."""
        await self.stop()
        self._make_writer = None

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    async def respond(
        self, status: int, body: bytes, kind: str = "application/json", headers: Mapping[str, str] | None = None
    ) -> web.StreamResponse:
        """A whole answer, where none has begun."""
        from aiohttp import web

        await self.stop()
        self._exchanged.status = status
        self._exchanged.bytes_out += len(body)
        self._exchanged.note_first_byte()
        told = {**self.headers, **(headers or {}), **headers_of(self._exchanged), "Content-Type": kind}
        return web.Response(status=status, body=body, headers=told)
