"""`Recorder`: a backend that writes down what is sent and received, and otherwise is the one it stands around.

    recorder = Recorder(Backend(url, model="qwen3"), "weather.jsonl")

What goes over a wire is recorded as it went, tries that failed too. A backend that has no wire is recorded as a server
that speaks OpenAI's Chat would have answered.
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from urllib.parse import urlsplit

import msgspec

from rightcall.backends.address import own_secrets
from rightcall.backends.base import BaseBackend, Streaming
from rightcall.backends.body import write
from rightcall.backends.cassette import Asked, CassetteHead, Recorded, Response, Tape, response_of, without_keys
from rightcall.backends.exchange import Exchange, Received, Sent
from rightcall.backends.http import Backend
from rightcall.backends.plan import Choice, make_plan
from rightcall.backends.request import Answer, Request
from rightcall.errors import BackendError
from rightcall.providers import openai_chat
from rightcall.types import Event, Json


class Recorder(BaseBackend):
    """A backend that records another one into a cassette. What is already in the file stays; more is added. Keys and
    other secrets that are known by their shape are not written down.

    - `backend`: whom to ask.
    - `path`: the cassette.
    - `fresh`: begin it anew: the first exchange takes the place of what was there.
    - `force`: also where the file is no cassette.

    Raises `BadCassette`, `FileFailed`.
    """

    def __init__(
        self, backend: BaseBackend, path: str | os.PathLike[str], *, fresh: bool = False, force: bool = False
    ) -> None:
        self.path = path
        self.backend = backend
        if isinstance(backend, Backend):
            self._tape = Tape(path, _head(backend), fresh=fresh, force=force)
            own = own_secrets(backend.key, backend.headers)
            self.backend = copy.copy(backend)
            self.backend.exchange = RecordingExchange(backend.exchange, self._tape, own)
        else:
            self._tape = Tape(path, CassetteHead(), fresh=fresh, force=force)

    def __repr__(self) -> str:
        return f"Recorder({self.backend!r}, {str(self.path)!r})"

    async def __aenter__(self) -> Recorder:
        await self.backend.__aenter__()
        return self

    async def aclose(self) -> None:
        """Lets go of what the backend behind it holds open."""
        await self.backend.aclose()

    def stream(self, request: Request) -> Streaming:
        """The events of the answer to this `request`, as the backend behind it gives them; written down when it has
        ended."""
        stream = self.backend.stream(request)
        return stream if isinstance(self.backend, Backend) else Streaming(self._noted(request, stream))

    async def complete(self, request: Request) -> Answer:
        """The answer of the backend behind it to this `request`, which is then written down."""
        answer = await self.backend.complete(request)
        if not isinstance(self.backend, Backend):
            self._note(request, answer, stream=False)
        return answer

    async def _noted(self, request: Request, stream: Streaming) -> AsyncGenerator[Event | Answer]:
        async with stream:
            async for event in stream:
                yield event
        self._note(request, stream.answer, stream=True)
        yield stream.answer

    def _note(self, request: Request, answer: Answer, *, stream: bool) -> None:
        plan = make_plan(request, Choice("native"), "chat", request.model, stream=stream)
        asked = Asked("POST", "/v1/chat/completions", without_keys(write(plan)))
        self._tape.add(Recorded(asked, _as_chat(answer, stream=stream)))


def _as_chat(answer: Answer, *, stream: bool) -> Response:
    """The answer as a server that speaks Chat gives it."""
    message = openai_chat.assistant_message(answer, reasoning_key="reasoning_content")
    finish = answer.finish or ("tool_calls" if answer.attempts else "stop")
    head: Json = {"id": "chatcmpl-recorded", "created": 0, "model": answer.model}
    if not stream:
        choice = {"index": 0, "message": message, "finish_reason": finish}
        body = json.dumps({**head, "object": "chat.completion", "choices": [choice]})
        return response_of(200, {"content-type": "application/json"}, [body.encode()], [0], "")
    calls = [{**call, "index": i} for i, call in enumerate(message.pop("tool_calls", []))]
    deltas = [{**message, "tool_calls": calls} if calls else message, {}]
    choices = [{"index": 0, "delta": delta, "finish_reason": None if delta else finish} for delta in deltas]
    chunks = [json.dumps({**head, "object": "chat.completion.chunk", "choices": [each]}) for each in choices]
    pieces = [f"data: {chunk}\n\n".encode() for chunk in (*chunks, "[DONE]")]
    return response_of(200, {"content-type": "text/event-stream"}, pieces, [0] * len(pieces), "")


def _head(backend: Backend) -> CassetteHead:
    known = backend.known
    profile, native = ("", True) if known is None else (known.name, known.native)
    return CassetteHead(api=backend.api, model=backend.model, mode=backend.mode, profile=profile, native=native)


class RecordingExchange:
    """An exchange that writes down what another one carries."""

    def __init__(self, inner: Exchange, tape: Tape, own: tuple[str, ...]) -> None:
        self._inner, self._tape, self._own = inner, tape, own

    def keep(self) -> None:
        self._inner.keep()

    async def aclose(self) -> None:
        await self._inner.aclose()

    @asynccontextmanager
    async def open(self, sent: Sent) -> AsyncIterator[Received]:
        path, body = without_keys([urlsplit(sent.url).path, sent.body], *self._own)
        asked = Asked(sent.method, path, body)
        taken = _Taken()
        try:
            async with self._inner.open(sent) as received:
                taken.begin(received)
                async with aclosing(taken.pass_on(received.chunks)) as chunks:
                    yield msgspec.structs.replace(received, chunks=chunks)
        except BackendError as error:
            taken.broken = taken.broken or (str(error) if not taken.status else "")
            raise
        finally:
            self._tape.add(Recorded(asked, taken.response(*self._own)))


class _Taken:
    """A response as far as it was read."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        self.delays: list[int] = []
        self.broken = "it was not read to its end"
        self._last = time.monotonic()

    def begin(self, received: Received) -> None:
        self.status, self.headers = received.status, received.headers

    async def pass_on(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
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

    def response(self, *own: str) -> Response:
        return response_of(self.status, self.headers, self.pieces, self.delays, self.broken, *own)
