"""The exchange over a network, by aiohttp: keys, time limits, and network errors.

The key is added here and nowhere else, so that nothing above can log or record it. Redirects are not followed: a key
must not travel on, and a POST would lose its body.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rightcall.api_names import Api
from rightcall.backends.address import own_secrets
from rightcall.backends.exchange import HttpRequest, HttpResponse, Timeouts
from rightcall.errors import BodyError, CallerError, TimedOut, TransportError
from rightcall.extras import require_extra
from rightcall.redaction.key import Key
from rightcall.redaction.scrubber import Scrubber

if TYPE_CHECKING:
    import aiohttp

_CURE = "is the server running, and is the address right?"


class Wire:
    """An `Exchange` over the network. Each request gets a new connection until `keep` is called; from then on
    connections stay open for reuse."""

    def __init__(self, key: Key | None, api: Api, timeouts: Timeouts) -> None:
        require_extra("http")
        self._auth = auth_headers(key, api)
        self._scrubbed, self._timeouts = Scrubber(own_secrets(key)).text, timeouts
        self._kept: tuple[asyncio.AbstractEventLoop, aiohttp.ClientSession] | None = None

    def keep(self) -> None:
        """Keep connections open for reuse by requests in the running event loop, until `aclose`. Does nothing if they
        are kept already."""
        if self._kept is None:
            self._kept = asyncio.get_running_loop(), self._open_session()

    async def aclose(self) -> None:
        """Close the connections that were kept open. The next request opens a new one."""
        kept, self._kept = self._kept, None
        if kept is not None:
            await kept[1].close()

    def _open_session(self) -> aiohttp.ClientSession:
        """Return a new client session, which the caller must close."""
        import aiohttp

        limits = aiohttp.ClientTimeout(total=None, sock_connect=self._timeouts.connect)
        return aiohttp.ClientSession(timeout=limits, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=True)

    @asynccontextmanager
    async def open(self, sent: HttpRequest) -> AsyncIterator[HttpResponse]:
        """Send a request and yield the response, whose body is not read yet. The connection is closed afterwards,
        unless connections are kept in this event loop and the body was read to its end. Raises `TimedOut` or
        `TransportError` if no response arrives, and `CallerError` for a body that JSON cannot represent."""
        kept = self._kept
        is_ours = kept is not None and kept[0] is asyncio.get_running_loop()
        session = kept[1] if kept is not None and is_ours else self._open_session()
        try:
            begun = asyncio.get_running_loop().time()
            response = await self._send(session, sent)
            try:
                headers = {name.lower(): value for name, value in response.headers.items()}
                yield HttpResponse(response.status, headers, self._chunks(response, sent, begun))
            finally:
                response.close() if not response.content.at_eof() else response.release()
        finally:
            if not is_ours:
                await session.close()

    async def _send(self, session: aiohttp.ClientSession, sent: HttpRequest) -> aiohttp.ClientResponse:
        """Send a request with the key added and return the response, whose body is not read yet. Raises `TimedOut` if
        it takes too long, another `TransportError` if it fails, and `CallerError` if the body cannot be written as
        JSON."""
        import aiohttp

        # Compressed pieces would wait for each other.
        loop = asyncio.get_running_loop()
        headers = {"Accept-Encoding": "identity", **sent.headers, **self._auth}
        data = None if sent.body is None else _encode_json(sent.body)
        try:
            async with asyncio.timeout_at(_deadline(loop.time() + self._timeouts.first_byte, sent)):
                return await session.request(sent.method, sent.url, data=data, headers=headers, allow_redirects=False)
        except aiohttp.ConnectionTimeoutError:
            raise TimedOut(
                f"{sent.url}: no connection within {self._timeouts.connect:g} s; {_CURE}", "connect"
            ) from None
        except TimeoutError:
            raise self._timeout_error(sent, "first_byte") from None
        except aiohttp.ClientConnectorCertificateError as error:
            cure = "have it trusted (SSL_CERT_FILE), if it is the right server"
            raise TransportError(f"cannot call {sent.url}: {_reason(error)}; {cure}") from None
        except aiohttp.ClientError as error:
            raise TransportError(self._scrubbed(f"cannot call {sent.url}: {_reason(error)}; {_CURE}")) from None
        except (OSError, ValueError) as error:
            raise TransportError(self._scrubbed(f"cannot call {sent.url}: {error}; {_CURE}")) from None

    async def _chunks(self, response: aiohttp.ClientResponse, sent: HttpRequest, begun: float) -> AsyncIterator[bytes]:
        """Yield the pieces of the body as they arrive; `begun` is the time of the request. Raises `TimedOut` at a time
        limit and `BodyError` if the connection breaks."""
        import aiohttp

        loop, idle, stage = asyncio.get_running_loop(), self._timeouts.idle, "first_byte"
        until = begun + self._timeouts.first_byte
        while True:
            try:
                async with asyncio.timeout_at(_deadline(until, sent)):
                    piece, _ = await response.content.readchunk()
            except TimeoutError:
                raise self._timeout_error(sent, stage) from None
            except (aiohttp.ClientError, OSError) as error:
                said = f"{sent.url}: the connection broke in the middle of the answer: {_reason(error)}; retry"
                raise BodyError(self._scrubbed(said)) from None
            if piece:
                until, stage = loop.time() + idle, "idle"
                yield piece
            elif response.content.at_eof():
                return

    def _timeout_error(self, sent: HttpRequest, stage: str) -> TimedOut:
        """Return the error for a time limit that was reached: the total one if the request's deadline has passed,
        otherwise that of the `stage` ("first_byte" or "idle")."""
        limits, url = self._timeouts, sent.url
        if asyncio.get_running_loop().time() >= sent.deadline:
            return out_of_time(url, limits.total)
        if stage == "idle":
            what = f"no data arrived for {limits.idle:g} s in the middle of the answer; raise the idle limit"
        else:
            what = f"no answer within {limits.first_byte:g} s; raise the first-byte limit"
        return TimedOut(f"{url}: {what} if the model is that slow", stage)


def out_of_time(url: str, total: float) -> TimedOut:
    """Return the error for a request that exceeds the total time limit."""
    return TimedOut(f"{url}: not done within {total:g} s, all tries together; raise the total limit", "total")


def _deadline(limit: float, sent: HttpRequest) -> float:
    """Return the earlier of this time and the deadline of the request."""
    return min(limit, sent.deadline)


def auth_headers(key: Key | None, api: Api) -> dict[str, str]:
    """Return the header that carries the key in the form that servers of this API expect; {} without a key."""
    if key is None:
        return {}
    if api == "messages" and key.name != "ANTHROPIC_AUTH_TOKEN":
        return {"x-api-key": key.reveal()}
    if api == "gemini":
        return {"x-goog-api-key": key.reveal()}
    return {"Authorization": f"Bearer {key.reveal()}"}


def _encode_json(body: Any) -> bytes:
    """Return a request body as JSON in ASCII. Raises `CallerError` for a value that JSON cannot express, such as
    NaN."""
    import json

    # The standard library's writer, since integers may be of any size; lone surrogates go out as escapes.
    try:
        return json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise CallerError(f"the request cannot be written as JSON: {error}; look at its messages and `extra`") from None


def _reason(error: BaseException) -> str:
    """Return the cause of a network error, on one line of at most 300 characters: the message of the operating system
    or the HTTP parser if there is one, otherwise that of the error."""
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    said = getattr(inner, "strerror", None) or getattr(inner, "message", None) or str(inner) or type(inner).__name__
    line = " ".join(str(said).split())
    return line if len(line) <= 300 else f"{line[:297]}..."
