"""One server behind the proxy: its connections, its key, and what is known of how it takes tools.

    async with link.opened(body, headers) as answer: answer.status, answer.pieces()

Connections stay open between requests. What cannot be reached raises `TransportError`, and nothing else does before the
status is known; redirects are not followed, since a key must not travel on.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from rightcall.api_names import Api
from rightcall.backends.address import API_DEFAULTS, request_address
from rightcall.backends.aiohttp_exchange import auth_headers, out_of_time
from rightcall.backends.exchange import Timeouts
from rightcall.backends.http import Backend
from rightcall.errors import BodyError, TimedOut, TransportError
from rightcall.redaction.key import Key
from rightcall.serve.http_answers import HttpFault, HttpHead
from rightcall.serve.proxy_settings import ProxySettings, UpstreamSettings
from rightcall.serve.upstream_lines import UpstreamLine, UpstreamLines

_CREDENTIALS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
# Headers of a client that are about its own connection, or that must not travel on.
_OWN = frozenset(
    "host content-length content-type transfer-encoding connection keep-alive te trailer upgrade expect "
    "accept-encoding content-encoding cookie origin referer forwarded via proxy-authorization proxy-connection".split()
) | frozenset(_CREDENTIALS)
_OWN_PREFIXES = ("sec-", "x-rightcall-", "x-forwarded-", "access-control-")
# Headers of a server's answer that go on to the client.
_TOLD = ("retry-after", "retry-after-ms", "x-request-id", "request-id", "openai-processing-ms", "x-should-retry")
_TOLD_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-", "openai-")


class _Patience:
    """Ends a connection that says nothing for too long. One timer for all of an answer."""

    def __init__(self, line: UpstreamLine, url: str, limits: Timeouts) -> None:
        self._line, self._url, self._limits = line, url, limits
        self._loop = asyncio.get_running_loop()
        self.last = self._loop.time()
        self._until = self.last + limits.total
        self.has_begun = False  # the answer
        self._tick()

    def _tick(self) -> None:
        limits = self._limits
        pause = limits.idle if self.has_begun else limits.first_byte
        left = min(self.last + pause, self._until) - self._loop.time()
        if left > 0:  # which is looked at again, since it may have begun by then
            self._timer = self._loop.call_later(min(left, limits.idle), self._tick)
        else:
            self._line.fail(self._too_late())

    def heard(self) -> None:
        """Something came."""
        self.last, self.has_begun = self._loop.time(), True

    def _too_late(self) -> TimedOut:
        if self._loop.time() >= self._until:
            return out_of_time(self._url, self._limits.total)
        if not self.has_begun:
            late = f"no answer within {self._limits.first_byte:g} s; raise first_byte_seconds"
            return TimedOut(f"{self._url}: {late} if the model is that slow", "first_byte")
        late = f"nothing came for {self._limits.idle:g} s in the middle of the answer; raise idle_seconds"
        return TimedOut(f"{self._url}: {late} if the model is that slow", "idle")

    def end(self) -> None:
        self._timer.cancel()


class UpstreamAnswer:
    """What came back: the status, headers in lower case, and the body in the pieces it comes in."""

    def __init__(self, line: UpstreamLine, head: HttpHead, url: str, patience: _Patience) -> None:
        self._line, self._url, self._patience = line, url, patience
        self.status, self.headers = head.status, head.headers

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_error(self) -> bool:
        """Does the status say what is wrong? Others are about the connection, and no client's business."""
        return 400 <= self.status < 600

    @property
    def kind(self) -> str:
        """Its content type, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_read(self) -> bool:
        """Was the last piece taken?"""
        return self._line.is_read

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Raises `BodyError` where the connection breaks, `TimedOut` where it falls silent."""
        line, patience = self._line, self._patience
        try:
            while piece := await line.piece():
                patience.heard()
                yield piece
        except (HttpFault, OSError) as error:
            said = str(error) or type(error).__name__
            raise BodyError(f"{self._url}: the connection broke in the middle of the answer: {said:.200}") from None

    def break_off(self) -> None:
        """Whoever reads it finds the connection broken."""
        self._line.fail(HttpFault("the answer was broken off"))

    def over(self, lines: UpstreamLines) -> None:
        """It is not read any further."""
        self._patience.end()
        lines.put_back(self._line)

    async def whole(self, most: int) -> bytes:
        """The body, of at most so many bytes; what comes after those is not read."""
        pieces: list[bytes] = []
        size = 0
        async for piece in self.pieces():
            pieces.append(piece)
            size += len(piece)
            if size > most:
                break
        return b"".join(pieces)[:most]


class UpstreamLink:
    """Enter it to connect. `backend` knows how the server takes tools."""

    def __init__(self, upstream: UpstreamSettings, settings: ProxySettings) -> None:
        self.settings, self.name, self.api = upstream, upstream.name or upstream.url, upstream.api
        self._limits = settings.timeouts
        self.backend = Backend(
            upstream.url,
            api=upstream.api,
            mode=settings.mode,
            api_key_env=upstream.api_key_env or None,
            profile=upstream.profile or None,
            timeouts=self._limits,
            headers=upstream.headers,
        )
        self.key: Key | None = upstream.key or self.backend.key
        self._ca = upstream.ca or settings.ca
        self._lines: UpstreamLines | None = None
        self._always = {name.lower(): value for name, value in upstream.headers.items()}
        self._under_way: set[UpstreamAnswer] = set()
        self.refused: set[str] = set()  # fields that it does not take
        self.reasons = False  # an answer of it had reasoning

    def url(self, model: str, *, stream: bool, api: Api | None = None) -> str:
        """Where requests for this model go; those in another of its dialects than it is asked by, if `api` says so."""
        if api == "completions" != self.api:
            return self.backend.root + API_DEFAULTS[api].path
        return request_address(self.backend.address, self.api, model, stream=stream)

    async def connect(self) -> None:
        """Makes ready to ask; nothing is sent."""
        proxy = self.settings.proxy or _proxy_for(self.settings.url)
        self._lines = UpstreamLines(self.backend.root, proxy=proxy, ca=self._ca, seconds=self._limits.connect)
        self.backend.exchange.keep()

    def break_off(self) -> None:
        """Ends the answers that are under way, as if the server had left."""
        for answer in self._under_way:
            answer.break_off()

    async def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
        await self.backend.aclose()

    def headers(self, given: Mapping[str, str], *, same: bool, own_key: bool) -> dict[str, str]:
        """What goes with a request of a client with these headers.

        - `same`: the server speaks the client's dialect, and so knows the client's headers.
        - `own_key`: the client's credential is the proxy's, and so for nobody else.
        """
        out = {
            "content-type": "application/json",
            "accept-encoding": "identity",
            "accept": "*/*",
            "user-agent": "rightcall",
        }
        if same:
            out |= {name.lower(): value for name, value in given.items() if _travels(name.lower())}
        if self.api == "messages" and "anthropic-version" not in out:
            out["anthropic-version"] = "2023-06-01"
        credential = None if own_key else _credential(given)
        key = self.key or (Key(credential, "the client's") if credential else None)
        return {**out, **self._always, **{name.lower(): value for name, value in auth_headers(key, self.api).items()}}

    async def _heard(self, line: UpstreamLine, request: bytes, method: str, url: str) -> UpstreamAnswer:
        patience = _Patience(line, url, self._limits)
        try:
            line.ask(request, method)
            return UpstreamAnswer(line, await line.head(), url, patience)
        except BaseException:
            patience.end()
            line.close()
            raise

    async def _asked(self, lines: UpstreamLines, request: bytes, method: str, url: str) -> UpstreamAnswer:
        """What the server answers. It may close a connection that has waited for the next request while that is on its
        way: it has not heard it then, and is asked once more."""
        line = await lines.open()
        try:
            return await self._heard(line, request, method, url)
        except (HttpFault, OSError):
            if not (line.was_used and line.is_silent):
                raise
            return await self._heard(await lines.open(new=True), request, method, url)

    @asynccontextmanager
    async def opened(
        self, url: str, body: bytes | None, headers: Mapping[str, str], method: str = "POST"
    ) -> AsyncIterator[UpstreamAnswer]:
        """Sends, and gives what comes back. The connection is closed unless the answer was read to its end."""
        lines = self._lines
        assert lines is not None, "connect first"
        try:
            answer = await self._asked(lines, _request(method, lines.target(url), headers, body), method, url)
        except TimeoutError:
            late = f"no connection within {self._limits.connect:g} s; is the server running?"
            raise TimedOut(f"{url}: {late}", "connect") from None
        except (HttpFault, OSError, ValueError) as error:
            said = str(error) or type(error).__name__
            raise TransportError(f"cannot call {url}: {said:.300}; {_cure_of(error)}") from None
        self._under_way.add(answer)
        try:
            yield answer
        finally:
            self._under_way.discard(answer)
            answer.over(lines)


def _cure_of(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "have it trusted (ca), if it is the right server"
    if isinstance(error, ssl.SSLError):
        return "does it speak https at all?"
    return "is the server running?"


def _request(method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """The bytes of a request."""
    said = "".join([*headers, *headers.values()])
    if "\n" in said or "\r" in said or "\0" in said:
        raise ValueError("a header has a line end in it")
    head = "".join([f"{method} {target}", *[f"{name}: {value}\r\n" for name, value in headers.items()]])
    if body is not None or method == "POST":
        head += f"Content-Length: {len(body or b'')}\r\n"
    return b"".join([head.encode("utf-8", "surrogateescape"), b"\r\n", body or b""])


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names for this address: HTTPS_PROXY and the like. Looked up once: the HTTP client
    would do it with every request."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def told_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Of a server's headers those that its answer's reader wants."""
    return {name: value for name, value in headers.items() if name in _TOLD or name.startswith(_TOLD_PREFIXES)}


def _travels(name: str) -> bool:
    return name not in _OWN and not name.startswith(_OWN_PREFIXES)


def _credential(given: Mapping[str, str]) -> str:
    for name, value in given.items():
        if name.lower() in _CREDENTIALS and value.strip():
            return value.strip().removeprefix("Bearer ").removeprefix("bearer ").strip()
    return ""
