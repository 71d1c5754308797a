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
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rightcall.api_names import Api
from rightcall.backends.address import HABITS, request_address
from rightcall.backends.aiohttp_exchange import auth_headers
from rightcall.backends.http import Backend
from rightcall.errors import BodyError, TimedOut, TransportError
from rightcall.redaction.key import Key
from rightcall.serve.proxy_settings import ProxySettings, UpstreamSettings

if TYPE_CHECKING:
    import aiohttp

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


class UpstreamAnswer:
    """What came back: the status, headers in lower case, and the body in the pieces it comes in."""

    def __init__(self, response: aiohttp.ClientResponse, url: str, idle: float) -> None:
        self._response, self._url, self._idle = response, url, idle
        self._last, self._is_late = 0.0, False
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}

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

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Raises `BodyError` where the connection breaks, `TimedOut` where it falls silent."""
        import aiohttp

        loop = asyncio.get_running_loop()
        self._last = loop.time()
        self._watch(loop)
        try:
            async for piece in self._response.content.iter_any():
                self._last = loop.time()
                yield piece
        except (aiohttp.ClientError, OSError) as error:
            if self._is_late or isinstance(error, TimeoutError):
                late = f"nothing came for {self._idle:g} s in the middle of the answer; raise the idle limit"
                raise TimedOut(f"{self._url}: {late} if the model is that slow", "idle") from None
            said = str(error) or type(error).__name__
            raise BodyError(f"{self._url}: the connection broke in the middle of the answer: {said:.200}") from None
        finally:
            self._timer.cancel()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ends the answer once nothing has come for so long; one timer for all of its pieces."""
        left = self._last + self._idle - loop.time()
        if left > 0:
            self._timer = loop.call_later(left, self._watch, loop)
        else:
            self._is_late = True
            self._response.close()

    def break_off(self) -> None:
        """Whoever reads it finds the connection broken."""
        self._response.close()

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
        self._session: aiohttp.ClientSession | None = None
        self._under_way: set[UpstreamAnswer] = set()
        self.refused: set[str] = set()  # fields that it does not take

    def url(self, model: str, *, stream: bool, api: Api | None = None) -> str:
        """Where requests for this model go; those in another of its dialects than it is asked by, if `api` says so."""
        if api == "completions" != self.api:
            return self.backend.root + HABITS[api].path
        return request_address(self.backend.address, self.api, model, stream=stream)

    async def connect(self) -> None:
        """Makes ready to ask; nothing is sent."""
        import aiohttp

        context = ssl.create_default_context(cafile=self._ca) if self._ca else None
        connector = aiohttp.TCPConnector(limit=0, ssl=context if context is not None else True)
        limits = aiohttp.ClientTimeout(
            total=self._limits.total,
            sock_connect=self._limits.connect,
            sock_read=max(self._limits.first_byte, self._limits.idle),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=limits,
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=self.settings.proxy or _proxy_for(self.settings.url),
            read_bufsize=2**18,
        )
        self.backend.exchange.keep()

    def break_off(self) -> None:
        """Ends the answers that are under way, as if the server had left."""
        for answer in self._under_way:
            answer.break_off()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        await self.backend.aclose()

    def headers(self, given: Mapping[str, str], *, same: bool, own_key: bool) -> dict[str, str]:
        """What goes with a request of a client with these headers.

        - `same`: the server speaks the client's dialect, and so knows the client's headers.
        - `own_key`: the client's credential is the proxy's, and so for nobody else.
        """
        out = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if same:
            out |= {name: value for name, value in given.items() if _travels(name.lower())}
        if self.api == "messages" and "anthropic-version" not in {name.lower() for name in out}:
            out["anthropic-version"] = "2023-06-01"
        credential = None if own_key else _credential(given)
        key = self.key or (Key(credential, "the client's") if credential else None)
        return {**out, **self.settings.headers, **auth_headers(key, self.api)}

    async def _asked(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> aiohttp.ClientResponse:
        """What a server answers. It may close a connection that has waited for the next request while that is on its
        way: it has not heard it then, and is asked once more."""
        import aiohttp

        assert self._session is not None, "connect first"
        given: dict[str, Any] = {"data": body, "headers": headers, "allow_redirects": False}
        try:
            return await self._session.request(method, url, **given)
        except aiohttp.ServerDisconnectedError:
            return await self._session.request(method, url, **given)

    @asynccontextmanager
    async def opened(
        self, url: str, body: bytes | None, headers: Mapping[str, str], method: str = "POST"
    ) -> AsyncIterator[UpstreamAnswer]:
        """Sends, and gives what comes back. The connection is closed unless the answer was read to its end."""
        import aiohttp

        try:
            response = await self._asked(method, url, body, headers)
        except TimeoutError:
            raise TimedOut(f"{url}: no answer in time; is the server running?", "first_byte") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            said = str(error) or type(error).__name__
            raise TransportError(f"cannot call {url}: {said:.300}; is the server running?") from None
        answer = UpstreamAnswer(response, url, self._limits.idle)
        self._under_way.add(answer)
        try:
            yield answer
        finally:
            self._under_way.discard(answer)
            response.close() if not response.content.at_eof() else response.release()


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
