"""Whoever connects must send the head of a request soon: a connection that says nothing, or a letter a minute, ends.

    loop.create_server(lambda: TimedHead(protocol(), seconds), host, port)

Servers time bodies and the pause between two requests; the first head they wait for without an end.
"""

from __future__ import annotations

import asyncio
from typing import cast

_ENDS = (b"\r\n\r\n", b"\n\n")
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class TimedHead(asyncio.Protocol):
    """A server's protocol for one connection, which is closed if no head has come in so many seconds."""

    def __init__(self, inner: asyncio.Protocol, seconds: float) -> None:
        self._inner, self._seconds = inner, seconds
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._last = b""  # the last few bytes: an end may be cut in two

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._end)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._timer is not None:
            seen = self._last + data if self._last else data.lstrip(b"\r\n")  # empty lines may stand before it
            self._last = seen[-3:]
            if any(end in seen for end in _ENDS):
                self._stop()
        self._inner.data_received(data)

    def _end(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            if self._last:
                self._transport.write(_TOO_SLOW)
            self._transport.close()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        self._stop()
        self._inner.connection_lost(error)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
