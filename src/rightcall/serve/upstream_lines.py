"""Connections to one server, kept open between requests.

    lines = UpstreamLines(settings, limits)
    line = await lines.open()
    line.ask(request, "POST"); await line.head(); await line.piece()     b"" at the end
    lines.put_back(line)

Whoever reads too slowly holds no more than a little: the server is not read meanwhile.
"""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from rightcall.serve.http_answers import HttpFault, HttpHead, HttpReading

_MOST_WAITING = 1 << 18  # bytes that have come and were not taken
_IDLE_SECONDS = 15.0  # how long a connection waits for the next request
_PATH = re.compile(r"[!-~]++\Z").match
_TARGETS = 100  # addresses that are remembered
_PORTS = {"http": 80, "https": 443}


class UpstreamLine(asyncio.Protocol):
    """One connection. `head` and `piece` raise `HttpFault`, `OSError` or what `fail` was given."""

    def __init__(self) -> None:
        self.transport: Any = None
        self._reading: HttpReading | None = None
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._is_paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._fault: Exception | None = None
        self.was_used = False
        self.idle_since = 0.0

    # -- a request -----------------------------------------------------------------------------------------------------

    def ask(self, request: bytes, method: str) -> None:
        """Sends; the answer to the request before must have been read."""
        self._reading = HttpReading(method)
        self.transport.write(request)

    async def head(self) -> HttpHead:
        """The head of the answer, when it has come."""
        reading = self._reading
        assert reading is not None, "ask first"
        while reading.head is None:
            await self._more()
        return reading.head

    async def piece(self) -> bytes:
        """What has come of the body; b"" when that was all."""
        reading = self._reading
        assert reading is not None, "ask first"
        while not self._pieces:
            if reading.is_whole:
                return b""
            await self._more()
        pieces, self._pieces, self._waiting = self._pieces, [], 0
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _more(self) -> None:
        if self._fault is not None:
            raise self._fault
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    @property
    def is_read(self) -> bool:
        """Was all of the answer taken?"""
        return self._reading is not None and self._reading.is_whole and not self._pieces

    @property
    def is_silent(self) -> bool:
        """Has nothing come of an answer?"""
        return self._reading is None or not self._reading.has_begun

    @property
    def is_over(self) -> bool:
        """Is it of no more use?"""
        return self._fault is not None or self.transport.is_closing()

    def end(self) -> bool:
        """The request is over; False where the connection cannot be used again."""
        reading, self._reading = self._reading, None
        if self.is_over or reading is None or not reading.is_reusable or self._is_paused:
            return False
        self._pieces, self._waiting, self.was_used = [], 0, True
        return True

    def fail(self, error: Exception) -> None:
        """Whoever reads, or will, finds this; the connection is closed."""
        self._fault = self._fault or error
        self.close()
        self._wake()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    # -- what comes ----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        reading = self._reading
        if reading is None:
            self.fail(HttpFault("it says something unasked"))
            return
        try:
            said = reading.feed(data)
        except HttpFault as fault:
            self.fail(fault)
            return
        if said:
            self._pieces.append(said)
            self._waiting += len(said)
            if self._waiting > _MOST_WAITING and not self._is_paused:
                self._is_paused = True
                self.transport.pause_reading()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        try:
            if self._reading is not None and error is None and self._fault is None:
                self._reading.close()
        except HttpFault as fault:
            error = fault
        self._fault = self._fault or error or HttpFault("it hung up")
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class UpstreamLines:
    """All connections to the server of `url`: through `proxy`, if there is one; `ca` is a file of certificates."""

    def __init__(self, url: str, *, proxy: str | None, ca: str, seconds: float) -> None:
        self._to, self._proxy, self._seconds = urlsplit(url), urlsplit(proxy) if proxy else None, seconds
        self._tls = _trusting(ca) if self._to.scheme == "https" else None
        self._idle: list[UpstreamLine] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._targets: dict[str, str] = {}
        # Without TLS a proxy reads the request itself, with the whole address in it.
        self._asks_proxy = self._proxy is not None and self._tls is None

    def target(self, url: str) -> str:
        """The rest of a request's first line for this address, and the lines that say where it goes."""
        found = self._targets.get(url)
        if found is None:
            if len(self._targets) >= _TARGETS:
                self._targets.clear()  # clients can write anything behind a question mark
            found = self._targets[url] = self._made_target(url)
        return found

    def _made_target(self, url: str) -> str:
        parts = urlsplit(url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if _PATH(path) is None:
            raise ValueError("the address has characters that belong in none")
        whole = f"{parts.scheme}://{_authority(self._to)}{path}" if self._asks_proxy else path
        proxied = _proxy_key(self._proxy) if self._asks_proxy and self._proxy is not None else ""
        return f"{whole} HTTP/1.1\r\nHost: {_authority(self._to)}\r\n{proxied}"

    async def open(self, *, new: bool = False) -> UpstreamLine:
        """A connection that nobody uses, or a new one. Raises `OSError`, `TimeoutError` or `HttpFault`."""
        while self._idle and not new:
            line = self._idle.pop()
            if not line.is_over:
                return line
        async with asyncio.timeout(self._seconds):
            return await self._connected()

    def put_back(self, line: UpstreamLine) -> None:
        """It is not needed now."""
        if not line.end() or self._is_closed:
            line.close()
            return
        loop = asyncio.get_running_loop()
        line.idle_since = loop.time()
        self._idle.append(line)
        if self._timer is None:
            self._timer = loop.call_later(_IDLE_SECONDS, self._close_idle, loop)

    def _close_idle(self, loop: asyncio.AbstractEventLoop) -> None:
        since = loop.time() - _IDLE_SECONDS
        late = [line for line in self._idle if line.idle_since <= since or line.is_over]
        self._idle = [line for line in self._idle if line not in late]
        for line in late:
            line.close()
        self._timer = loop.call_later(_IDLE_SECONDS, self._close_idle, loop) if self._idle else None

    def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for line in self._idle:
            line.close()
        self._idle = []

    # -- connecting ----------------------------------------------------------------------------------------------------

    async def _connected(self) -> UpstreamLine:
        if self._proxy is None:
            return await _reach(self._to, self._tls)
        line = await _reach(self._proxy, _trusting("") if self._proxy.scheme == "https" else None)
        return line if self._tls is None else await self._tunnel(line, self._proxy, self._tls)

    async def _tunnel(self, line: UpstreamLine, proxy: SplitResult, tls: ssl.SSLContext) -> UpstreamLine:
        """The proxy lets everything through to the server, unread."""
        try:
            to = _authority(self._to, with_port=True)
            line.ask(f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{_proxy_key(proxy)}\r\n".encode(), "CONNECT")
            head = await line.head()
            if head.status != 200:
                raise HttpFault(f"the proxy {proxy.hostname} refused the connection with status {head.status}")
            loop = asyncio.get_running_loop()
            line.transport = await loop.start_tls(line.transport, line, tls, server_hostname=self._to.hostname)
            return line
        except BaseException:
            line.close()
            raise


async def _reach(to: SplitResult, tls: ssl.SSLContext | None) -> UpstreamLine:
    host, port = to.hostname or "", to.port or _PORTS[to.scheme]
    name = host if tls is not None else None
    _, line = await asyncio.get_running_loop().create_connection(
        UpstreamLine, host, port, ssl=tls, server_hostname=name
    )
    return line


def _trusting(ca: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca or None)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _authority(to: SplitResult, *, with_port: bool = False) -> str:
    host, port = to.hostname or "", to.port or _PORTS[to.scheme]
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{port}" if with_port or port != _PORTS[to.scheme] else host


def _proxy_key(proxy: SplitResult) -> str:
    """The line that tells a proxy who asks, if its address names somebody."""
    if not proxy.username:
        return ""
    who = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return f"Proxy-Authorization: Basic {base64.b64encode(who.encode()).decode()}\r\n"
