"""A loopback server that sends exactly the bytes that a test defines, including protocol violations.

async with serving(json_answer({...}), drop) as server:      the first POST gets the first answer, and so on
    Backend(server.url)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

from rightcall.backends.exchange import Retries, Timeouts
from rightcall.backends.http import Backend
from rightcall.backends.request import Request

QUICK = Retries(first=0.001, longest=0.5)
SHORT = Timeouts(connect=5, first_byte=20, idle=20, total=30)


class ReceivedRequest(NamedTuple):
    """One request as the server received it."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


Answering = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Loopback:
    def __init__(self, answers: tuple[Answering, ...], gets: dict[str, Answering]) -> None:
        self._answers, self._gets = answers, gets
        self.requests: list[ReceivedRequest] = []
        self.client_closed = asyncio.Event()  # a client closed its connection
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def posts(self) -> list[ReceivedRequest]:
        return [each for each in self.requests if each.method == "POST"]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read_request(reader)
            if request is None:
                return
            self.requests.append(request)
            watch_task = asyncio.create_task(self._watch_connection(reader))
            try:
                await self._answer(request)(writer)
                await writer.drain()
            finally:
                watch_task.cancel()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.client_closed.set()
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            writer.close()

    async def _watch_connection(self, reader: asyncio.StreamReader) -> None:
        if not await reader.read(1):
            self.client_closed.set()

    def _answer(self, request: ReceivedRequest) -> Answering:
        if request.method == "GET":
            return self._gets.get(request.path, answer(404, b"{}"))
        return self._answers[min(len(self.posts), len(self._answers)) - 1]


async def _read_request(reader: asyncio.StreamReader) -> ReceivedRequest | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *rest = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest) if name}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return ReceivedRequest(method, path, headers, json.loads(body) if body else None)


@asynccontextmanager
async def serving(*answers: Answering, gets: dict[str, Answering] | None = None) -> AsyncIterator[Loopback]:
    loopback = Loopback(answers, gets or {})
    server = await asyncio.start_server(loopback.serve, "127.0.0.1", 0)
    loopback.port = server.sockets[0].getsockname()[1]
    try:
        yield loopback
    finally:
        server.close()


# -- answers -----------------------------------------------------------------------------------------------------------


def answer(status: int, body: bytes, **headers: str) -> Answering:
    async def write_answer(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)

    return write_answer


def json_answer(value: Any, status: int = 200, **headers: str) -> Answering:
    return answer(status, json.dumps(value).encode(), Content_Type="application/json", **headers)


def chunked(
    pieces: Iterable[bytes],
    *,
    kind: str = "text/event-stream",
    ends: bool = True,
    then: Callable[[asyncio.StreamWriter], Awaitable[None]] | None = None,
) -> Answering:
    """Answer in chunks. Without an end (`ends=False`) the connection breaks."""

    async def write_answer(writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        for piece in pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0)
        if then is not None:
            await then(writer)
        if ends:
            writer.write(b"0\r\n\r\n")

    return write_answer


def events(*payloads: Any, done: bool = True, end: str = "\n\n") -> list[bytes]:
    """Return server-sent events of these payloads."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in payloads]
    return [f"data: {each}{end}".encode() for each in [*texts, *(["[DONE]"] if done else [])]]


async def drop(writer: asyncio.StreamWriter) -> None:
    """Close the connection without an answer."""


async def silence(writer: asyncio.StreamWriter) -> None:
    """Send nothing, for longer than any test waits."""
    await asyncio.sleep(60)


# -- requests and model answers ----------------------------------------------------------------------------------------


def get_weather(city: str) -> str:
    """The weather in a city."""
    raise NotImplementedError


def ask(**fields: Any) -> Request:
    fields_given = {
        "messages": [{"role": "user", "content": "Weather in Oslo?"}],
        "tools": [get_weather],
        "mode": "native",
    }
    return Request(**{**fields_given, **fields})


class Addressed(Protocol):
    @property
    def url(self) -> str: ...


def backend(server: Addressed, **options: Any) -> Backend:
    key = getattr(server, "key", None)
    environ = {} if key is None else {"OPENAI_API_KEY": key.reveal()}
    fields_given: dict[str, Any] = {"model": "m", "timeouts": SHORT, "retries": QUICK, "environ": environ}
    return Backend(server.url, **{**fields_given, **options})


def chat(content: str = "", *, calls: tuple[tuple[str, str], ...] = (), finish: str = "stop") -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        entries = [{"name": name, "arguments": arguments} for name, arguments in calls]
        message["tool_calls"] = [
            {"id": f"call_{i}", "type": "function", "function": entry} for i, entry in enumerate(entries)
        ]
    usage = {"prompt_tokens": 7, "completion_tokens": 5}
    return {"model": "m-1", "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call_delta(arguments: str, name: str = "", id: str = "", index: int = 0) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return delta(tool_calls=[{"index": index, **({"id": id, "type": "function"} if id else {}), "function": function}])


WEATHER = (call_delta("", "get_weather", "call_a"), call_delta('{"ci'), call_delta('ty": "Oslo"}'), delta("tool_calls"))
