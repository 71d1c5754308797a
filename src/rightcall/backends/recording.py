"""Record the traffic of a backend into a cassette, and replay it without the model.

    recorder = Recorder(Backend(url, model="qwen3"), "weather.jsonl")

    ReplayBackend("weather.jsonl").complete_sync(request)                    in this process
    async with ReplayServer("weather.jsonl") as server: ... server.url       as a server on this machine

HTTP traffic is recorded byte by byte, failed tries included. A backend without HTTP is recorded as if a Chat server had
answered. A replay gives the same answers in the same pieces, and with `timing` at the same pace.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import msgspec

from rightcall.backends.address import own_secrets
from rightcall.backends.base import BaseBackend, Streaming
from rightcall.backends.cassette import (
    KEPT_HEADERS,
    Cassette,
    CassetteHead,
    CassetteWriter,
    RecordedExchange,
    RecordedRequest,
    RecordedResponse,
    RequestMatcher,
    api_route,
    load_cassette,
    scrub_json,
    scrub_response,
)
from rightcall.backends.exchange import Exchange, HttpRequest, HttpResponse, Retries, Timeouts
from rightcall.backends.http import Backend
from rightcall.backends.profiles import PROFILES, Profile, without_native_tools
from rightcall.backends.request import Answer, Mode, Request
from rightcall.backends.request_body import write_body
from rightcall.backends.request_plan import ModeChoice, make_plan
from rightcall.errors import BackendError, BodyError, NotRecorded, TransportError
from rightcall.listeners import WebServer
from rightcall.providers.openai_chat import CHAT
from rightcall.request_gate import given_key, make_gate, new_key
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Event, Json

if TYPE_CHECKING:
    from aiohttp import web


class Recorder(BaseBackend):
    """Record another backend into a cassette. Exchanges that are already in the file stay. Keys and other secrets that
    are recognized by their shape are not written.

    - `backend`: the backend to record.
    - `path`: the cassette.
    - `fresh`: start it anew; the first exchange replaces the old content.
    - `force`: also replace a file that is not a cassette.

    Raises `BadCassette`, `FileFailed`.
    """

    def __init__(
        self, backend: BaseBackend, path: str | os.PathLike[str], *, fresh: bool = False, force: bool = False
    ) -> None:
        self.path = path
        self.backend = backend
        if isinstance(backend, Backend):
            self._tape = CassetteWriter(path, _cassette_head(backend), fresh=fresh, force=force)
            own = own_secrets(backend.key, backend.headers)
            self.backend = copy.copy(backend)
            self.backend.exchange = RecordingExchange(backend.exchange, self._tape, own)
        else:
            self._tape = CassetteWriter(path, CassetteHead(), fresh=fresh, force=force)

    def __repr__(self) -> str:
        return f"Recorder({self.backend!r}, {str(self.path)!r})"

    async def __aenter__(self) -> Recorder:
        await self.backend.__aenter__()
        return self

    async def aclose(self) -> None:
        """Close the recorded backend."""
        await self.backend.aclose()

    def stream(self, request: Request) -> Streaming:
        """Return the stream of the recorded backend's answer to `request`, unchanged. The exchange is written when the
        stream has ended."""
        stream = self.backend.stream(request)
        return stream if isinstance(self.backend, Backend) else Streaming(self._record_stream(request, stream))

    async def complete(self, request: Request) -> Answer:
        """Return the recorded backend's answer to `request`, and write the exchange to the cassette."""
        answer = await self.backend.complete(request)
        if not isinstance(self.backend, Backend):
            self._record_as_chat(request, answer, stream=False)
        return answer

    async def _record_stream(self, request: Request, stream: Streaming) -> AsyncGenerator[Event | Answer]:
        """Yield the events of `stream`, write the exchange to the cassette, and yield the answer. For a backend without
        HTTP."""
        async with stream:
            async for event in stream:
                yield event
        self._record_as_chat(request, stream.answer, stream=True)
        yield stream.answer

    def _record_as_chat(self, request: Request, answer: Answer, *, stream: bool) -> None:
        """Append request and answer of a backend without HTTP to the cassette, as the exchange with a Chat server that
        would give this answer. Secrets are removed."""
        plan = make_plan(request, ModeChoice("native"), "chat", request.model, stream=stream)
        asked = RecordedRequest("POST", "/v1/chat/completions", scrub_json(write_body(plan)))
        self._tape.add(RecordedExchange(asked, _chat_response(answer, stream=stream)))


def _chat_response(answer: Answer, *, stream: bool) -> RecordedResponse:
    """Return the answer as the recorded response of a Chat server: one JSON body, or with `stream` two chunks and
    `[DONE]`."""
    message = CHAT.assistant_message(answer, reasoning_key="reasoning_content")
    finish = answer.finish or ("tool_calls" if answer.attempts else "stop")
    head: Json = {"id": "chatcmpl-recorded", "created": 0, "model": answer.model}
    if not stream:
        choice = {"index": 0, "message": message, "finish_reason": finish}
        body = json.dumps({**head, "object": "chat.completion", "choices": [choice]})
        return scrub_response(200, {"content-type": "application/json"}, [body.encode()], [0], "")
    calls = [{**call, "index": i} for i, call in enumerate(message.pop("tool_calls", []))]
    deltas = [{**message, "tool_calls": calls} if calls else message, {}]
    choices = [{"index": 0, "delta": delta, "finish_reason": None if delta else finish} for delta in deltas]
    chunks = [json.dumps({**head, "object": "chat.completion.chunk", "choices": [each]}) for each in choices]
    pieces = [f"data: {chunk}\n\n".encode() for chunk in (*chunks, "[DONE]")]
    return scrub_response(200, {"content-type": "text/event-stream"}, pieces, [0] * len(pieces), "")


def _cassette_head(backend: Backend) -> CassetteHead:
    """Return the first line for a recording of this backend: its API, model and mode, and its profile if one was
    given."""
    known = backend.known
    profile, native = ("", True) if known is None else (known.name, known.native)
    return CassetteHead(api=backend.api, model=backend.model, mode=backend.mode, profile=profile, native=native)


class RecordingExchange:
    """An exchange that records what another exchange carries."""

    def __init__(self, inner: Exchange, tape: CassetteWriter, own: tuple[str, ...]) -> None:
        self._inner, self._tape, self._own = inner, tape, own

    def keep(self) -> None:
        """Keep the connections of the inner exchange open."""
        self._inner.keep()

    async def aclose(self) -> None:
        """Close the inner exchange."""
        await self._inner.aclose()

    @asynccontextmanager
    async def open(self, sent: HttpRequest) -> AsyncIterator[HttpResponse]:
        """Send a request through the inner exchange and yield its response. When the context ends, also by an error or
        without a response, the exchange is written to the cassette, without secrets."""
        path, body = scrub_json([urlsplit(sent.url).path, sent.body], *self._own)
        asked = RecordedRequest(sent.method, path, body)
        response = _ReceivedResponse()
        try:
            async with self._inner.open(sent) as received:
                response.begin(received)
                async with aclosing(response.pass_on(received.chunks)) as chunks:
                    yield msgspec.structs.replace(received, chunks=chunks)
        except BackendError as error:
            response.broken = response.broken or (str(error) if not response.status else "")
            raise
        finally:
            self._tape.add(RecordedExchange(asked, response.to_recorded(*self._own)))


class _ReceivedResponse:
    """A response as far as it was received. `broken` is the reason why it is incomplete, or ""."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        self.delays: list[int] = []
        self.broken = "it was not read to its end"
        self._last = time.monotonic()

    def begin(self, received: HttpResponse) -> None:
        """Store the status and the headers of the response that begins."""
        self.status, self.headers = received.status, received.headers

    async def pass_on(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """Yield the chunks unchanged, and store each with the milliseconds since the one before. `broken` becomes "" at
        the end, or the message of a `BackendError`, which is raised."""
        try:
            async for chunk in chunks:
                now = time.monotonic()
                self.pieces.append(chunk)
                self.delays.append(round((now - self._last) * 1000))
                self._last = now
                yield chunk
            self.broken = ""
        except BackendError as error:
            self.broken = str(error)
            raise

    def to_recorded(self, *own: str) -> RecordedResponse:
        """Return the response to write, without secrets; `own` are known secret values."""
        return scrub_response(self.status, self.headers, self.pieces, self.delays, self.broken, *own)


_DEPTH = 400
_NOWHERE = "http://replay.localhost"


class Player:
    """An exchange that answers from a cassette."""

    def __init__(self, cassette: Cassette, *, strict: bool = True, timing: bool = False) -> None:
        self.matcher = RequestMatcher(cassette, strict=strict)
        self._timing = timing

    def keep(self) -> None:
        """Do nothing: a replay has no connections."""

    async def aclose(self) -> None:
        """Do nothing: a replay has no connections."""

    @asynccontextmanager
    async def open(self, sent: HttpRequest) -> AsyncIterator[HttpResponse]:
        """Yield the response that was recorded for a request. Raises `NotRecorded` if there is none, and
        `TransportError` if the recorded server did not answer."""
        response = self.matcher.answer(RecordedRequest(sent.method, urlsplit(sent.url).path, sent.body)).response
        if not response.status:
            raise TransportError(f"{response.broken} (recorded)")
        async with aclosing(replay_pieces(response, timing=self._timing)) as chunks:
            yield HttpResponse(response.status, dict(response.headers), chunks)


async def replay_pieces(response: RecordedResponse, *, timing: bool) -> AsyncGenerator[bytes]:
    """Yield the recorded body in the recorded pieces, at the recorded pace if `timing`. Raises `BodyError` where the
    recording broke off."""
    delays = response.delays if timing else []
    for at, piece in enumerate(response.pieces()):
        if at < len(delays):
            await asyncio.sleep(max(0, delays[at]) / 1000)
        yield piece
    if response.broken:
        raise BodyError(f"{response.broken} (recorded)")


class ReplayBackend(Backend):
    """A backend that answers from a cassette, without a network. A setting that is not given is taken from the
    recording.

    - `cassette`: the file, or a loaded cassette.
    - `api`, `model`, `mode`, `profile`, `timeouts`: as in `Backend`.
    - `strict`: raise `NotRecorded` for a request that was not recorded; otherwise it gets the answer of the nearest
      one.
    - `timing`: deliver the pieces at the recorded pace.
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
        self.cassette = cassette if isinstance(cassette, Cassette) else load_cassette(cassette)
        head = self.cassette.head
        super().__init__(
            _NOWHERE,
            api=api or head.api,
            model=head.model if model is None else model,
            mode=mode or head.mode,  # type: ignore[arg-type]
            profile=profile or _recorded_profile(head),
            timeouts=timeouts,
            retries=Retries(first=0.0, longest=0.0),
            exchange=Player(self.cassette, strict=strict, timing=timing),
            environ={},
        )

    def __repr__(self) -> str:
        return f"ReplayBackend({self.cassette.path!r}, api={self.api!r}, model={self.model!r}, mode={self.mode!r})"


def _recorded_profile(head: CassetteHead) -> Profile | None:
    """Return the profile of the recorded server; None if it is missing or unknown to this version."""
    found = PROFILES.get(head.profile)
    return found if found is None or head.native else without_native_tools(found)


class ReplayServer:
    """Serve a recording on this machine for any client. An async context manager.

    - `cassette`, `strict`, `timing`: as in `ReplayBackend`.
    - `port`: 0 for any free port; `url` contains it.
    - `key`: the key that clients must send; by default, a new one is created at each start.
    - `no_key`: clients need no key.
    - `origins`: web pages that may use the server too.
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
        self.cassette = cassette if isinstance(cassette, Cassette) else load_cassette(cassette)
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
        """Return the response to one HTTP request from the cassette: 405 for a method other than GET and POST, 400 for
        a POST whose body is not a JSON object, and for an unrecorded request that of `_answer_unrecorded`."""
        if request.method not in ("GET", "POST"):
            return _error_response(405, f"{request.method} is not answered here", "method_not_allowed")
        body: Any = None
        if request.method == "POST":
            body = decode((await request.read()).decode("utf-8", "replace"), _DEPTH)
            if isinstance(body, Undecodable) or not isinstance(body, dict):
                return _error_response(400, "the body must be a JSON object", "invalid_request_error")
        try:
            found = self._matcher.answer(RecordedRequest(request.method, request.path, body))  # type: ignore[arg-type]
        except NotRecorded as error:
            return self._answer_unrecorded(request, str(error))
        return await self._send(request, found)

    def _answer_unrecorded(self, request: web.Request, message: str) -> web.StreamResponse:
        """Return the response to a request that was not recorded: a model list or a health check is invented, anything
        else gets 404 with this message."""
        from aiohttp import web

        path = api_route(request.path)
        if request.method == "GET" and path in ("/v1/models", "/models"):
            return web.json_response({"object": "list", "data": list(map(_model_entry, self._recorded_models()))})
        if request.method == "GET" and path == "/health":
            return web.json_response({"status": "ok"})
        return _error_response(404, message, "not_recorded")

    def _recorded_models(self) -> list[str]:
        """Return the names of the models in the recorded requests, each once; without any, the model in the cassette's
        head, or "recorded"."""
        bodies = [exchange.request.body or {} for exchange in self.cassette.exchanges]
        named = [name for body in bodies if isinstance(name := body.get("model"), str) and name]
        return list(dict.fromkeys(named)) or [self.cassette.head.model or "recorded"]

    async def _send(self, request: web.Request, found: RecordedExchange) -> web.StreamResponse:
        """Send the response of a recorded exchange to the client; where the recording broke off, or no answer had
        begun, abort the connection."""
        from aiohttp import web

        recorded = found.response
        if recorded.status < 200:
            return self._abort_connection(request, web.Response())
        response = web.StreamResponse(status=recorded.status, headers=_replayed_headers(recorded))
        response.enable_chunked_encoding()
        await response.prepare(request)
        try:
            async with aclosing(replay_pieces(recorded, timing=self._timing)) as chunks:
                async for chunk in chunks:
                    await response.write(chunk)
        except BodyError:  # the recording broke off here
            return self._abort_connection(request, response)
        await response.write_eof()
        return response

    def _abort_connection(self, request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
        """Abort the connection of the client of `request`, and return the given response, which a handler has to
        return."""
        if request.transport is not None:
            request.transport.abort()
        return response


def _replayed_headers(recorded: RecordedResponse) -> dict[str, str]:
    """Return the recorded headers that are safe to send, since a cassette may come from anywhere: printable ones that
    are in `KEPT_HEADERS`."""
    return {name: value for name, value in recorded.headers.items() if name in KEPT_HEADERS and value.isprintable()}


def _model_entry(name: str) -> Json:
    """Return the entry of a model in the model list of OpenAI's API."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "rightcall"}


def _error_response(status: int, message: str, kind: str) -> web.StreamResponse:
    """Return a response with this status and an error in the form of OpenAI's API; `kind` is its type and its code."""
    from aiohttp import web

    return web.json_response({"error": {"message": message, "type": kind, "code": kind}}, status=status)
