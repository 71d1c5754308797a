"""A recording in place of a model: in this process (`ReplayBackend`), or as a server on this machine (`ReplayServer`).

    ReplayBackend("weather.jsonl").complete_sync(request)
    async with ReplayServer("weather.jsonl") as server: ... server.url

The same requests give the same answers, in the pieces they were recorded in, and with `timing` at the same pace.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from rightcall.backends.cassette import KEPT_HEADERS, Asked, Cassette, CassetteHead, Recorded, Response, load
from rightcall.backends.exchange import Received, Retries, Sent, Timeouts
from rightcall.backends.http import Backend
from rightcall.backends.match import RequestMatcher, route
from rightcall.backends.profiles import PROFILES, Profile, no_tools
from rightcall.backends.request import Mode
from rightcall.errors import BodyError, NotRecorded, TransportError
from rightcall.listeners import WebServer
from rightcall.request_gate import given_key, make_gate, new_key
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Json

if TYPE_CHECKING:
    from aiohttp import web

_DEPTH = 400
_NOWHERE = "http://replay.localhost"


class Player:
    """The exchange of a recording."""

    def __init__(self, cassette: Cassette, *, strict: bool = True, timing: bool = False) -> None:
        self.matcher = RequestMatcher(cassette, strict=strict)
        self._timing = timing

    def keep(self) -> None:
        """Nothing is open."""

    async def aclose(self) -> None:
        """Nothing is open."""

    @asynccontextmanager
    async def open(self, sent: Sent) -> AsyncIterator[Received]:
        response = self.matcher.answer(Asked(sent.method, urlsplit(sent.url).path, sent.body)).response
        if not response.status:
            raise TransportError(f"{response.broken} (recorded)")
        async with aclosing(pieces(response, timing=self._timing)) as chunks:
            yield Received(response.status, dict(response.headers), chunks)


async def pieces(response: Response, *, timing: bool) -> AsyncGenerator[bytes]:
    """The body as it came. Raises `BodyError` where it broke."""
    delays = response.delays if timing else []
    for at, piece in enumerate(response.pieces()):
        if at < len(delays):
            await asyncio.sleep(max(0, delays[at]) / 1000)
        yield piece
    if response.broken:
        raise BodyError(f"{response.broken} (recorded)")


class ReplayBackend(Backend):
    """A backend that answers from a cassette, without a network. What is not given is as it was when the cassette was
    recorded.

    - `cassette`: the file, or one that was read.
    - `api`, `model`, `mode`, `profile`, `timeouts`: as in `Backend`.
    - `strict`: a request that was not recorded is `NotRecorded`; otherwise it gets the answer of the nearest one.
    - `timing`: the pieces come at the pace they were recorded at.
    """

    def __init__(
        self,
        cassette: str | os.PathLike[str] | Cassette,
        *,
        api: str | None = None,
        model: str | None = None,
        mode: Mode | None = None,
        profile: str | Profile | None = None,
        strict: bool = True,
        timing: bool = False,
        timeouts: Timeouts | None = None,
    ) -> None:
        self.cassette = cassette if isinstance(cassette, Cassette) else load(cassette)
        head = self.cassette.head
        super().__init__(
            _NOWHERE,
            api=api or head.api,
            model=head.model if model is None else model,
            mode=mode or head.mode,  # type: ignore[arg-type]
            profile=profile or _profile(head),
            timeouts=timeouts,
            retries=Retries(first=0.0, longest=0.0),
            exchange=Player(self.cassette, strict=strict, timing=timing),
            environ={},
        )

    def __repr__(self) -> str:
        return f"ReplayBackend({self.cassette.path!r}, api={self.api!r}, model={self.model!r}, mode={self.mode!r})"


def _profile(head: CassetteHead) -> Profile | None:
    """The kind of server that was recorded; None where that is not said, or not known to this version."""
    found = PROFILES.get(head.profile)
    return found if found is None or head.native else no_tools(found)


class ReplayServer:
    """A recording behind an address of this machine, for clients of any make. An async context manager.

    - `cassette`, `strict`, `timing`: as in `ReplayBackend`.
    - `port`: 0 for any that is free; `url` has it.
    - `key`: what clients must send; one is made for each start unless it is given.
    - `no_key`: none is asked for.
    - `origins`: web pages that may use it too.
    """

    def __init__(
        self,
        cassette: str | os.PathLike[str] | Cassette,
        *,
        port: int = 0,
        strict: bool = True,
        timing: bool = False,
        key: str = "",
        no_key: bool = False,
        origins: Iterable[str] = (),
    ) -> None:
        self.cassette = cassette if isinstance(cassette, Cassette) else load(cassette)
        self.key = None if no_key else given_key(key) if key else new_key()
        self._matcher = RequestMatcher(self.cassette, strict=strict)
        self._timing = timing
        self._server = WebServer(
            self._serve, make_gate("127.0.0.1", key=self.key, no_key=no_key, origins=origins), port=port
        )

    @property
    def url(self) -> str:
        """The base URL, once it serves."""
        return f"{self._server.address}/v1"

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.__aexit__()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if request.method not in ("GET", "POST"):
            return _error(405, f"{request.method} is not answered here", "method_not_allowed")
        body: Any = None
        if request.method == "POST":
            body = decode((await request.read()).decode("utf-8", "replace"), _DEPTH)
            if isinstance(body, Undecodable) or not isinstance(body, dict):
                return _error(400, "the body must be a JSON object", "invalid_request_error")
        try:
            found = self._matcher.answer(Asked(request.method, request.path, body))  # type: ignore[arg-type]
        except NotRecorded as error:
            return self._unrecorded(request, str(error))
        return await self._send(request, found)

    def _unrecorded(self, request: web.Request, message: str) -> web.StreamResponse:
        from aiohttp import web

        path = route(request.path)
        if request.method == "GET" and path in ("/v1/models", "/models"):
            return web.json_response({"object": "list", "data": list(map(_model, self._models()))})
        if request.method == "GET" and path == "/health":
            return web.json_response({"status": "ok"})
        return _error(404, message, "not_recorded")

    def _models(self) -> list[str]:
        bodies = [exchange.request.body or {} for exchange in self.cassette.exchanges]
        named = [name for body in bodies if isinstance(name := body.get("model"), str) and name]
        return list(dict.fromkeys(named)) or [self.cassette.head.model or "recorded"]

    async def _send(self, request: web.Request, found: Recorded) -> web.StreamResponse:
        from aiohttp import web

        recorded = found.response
        if recorded.status < 200:
            return self._hang_up(request, web.Response())
        response = web.StreamResponse(status=recorded.status, headers=_headers(recorded))
        response.enable_chunked_encoding()
        await response.prepare(request)
        try:
            async with aclosing(pieces(recorded, timing=self._timing)) as chunks:
                async for chunk in chunks:
                    await response.write(chunk)
        except BodyError:  # it broke here when it was recorded, and so it does now
            return self._hang_up(request, response)
        await response.write_eof()
        return response

    def _hang_up(self, request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return response


def _headers(recorded: Response) -> dict[str, str]:
    """As recorded, if they are headers: a cassette may come from anywhere."""
    return {name: value for name, value in recorded.headers.items() if name in KEPT_HEADERS and value.isprintable()}


def _model(name: str) -> Json:
    return {"id": name, "object": "model", "created": 0, "owned_by": "rightcall"}


def _error(status: int, message: str, kind: str) -> web.StreamResponse:
    from aiohttp import web

    return web.json_response({"error": {"message": message, "type": kind, "code": kind}}, status=status)
