"""The interface between a backend and a network: it takes a request and returns a status and pieces of bytes.

`Wire` is the network; a recorder wraps an exchange, and `Player` answers from a recording. No code here knows calls.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

import msgspec

from rightcall.types import Json


class HttpRequest(msgspec.Struct, frozen=True):
    """A request to the server: address, body (None: no body) and headers without any key. When `deadline`, a time of
    the event loop, is reached, the exchange raises `TimedOut`."""

    method: Literal["GET", "POST"]
    url: str
    body: Json | None = None
    headers: dict[str, str] = {}
    deadline: float = math.inf

    def __repr__(self) -> str:
        """Without the headers: one of them may be a secret."""
        return f"HttpRequest({self.method!r}, {self.url!r}, {len(self.headers)} headers)"


class HttpResponse(msgspec.Struct, frozen=True):
    """A response: its status, its headers with lower-case names, and its body in pieces as they arrive. Reading
    `chunks` raises `BodyError` where the connection broke and `TimedOut` at a time limit."""

    status: int
    headers: dict[str, str]
    chunks: AsyncIterator[bytes]


class Exchange(Protocol):
    """Sends one request and returns the response. Leaving the context of `open` closes the connection, even if the
    body was not read to its end. After `keep`, connections may stay open until `aclose`."""

    def open(self, sent: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]: ...

    def keep(self) -> None: ...  # connections may stay open from now on

    async def aclose(self) -> None: ...


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits in seconds: to `connect`, to the `first_byte` of an answer, between two pieces of it (`idle`), and
    for the whole answer with its retries (`total`)."""

    connect: float = 10.0
    first_byte: float = 300.0
    idle: float = 120.0
    total: float = 900.0


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How often a request is tried again, and how long is waited before: doubled each time, at random between half and
    all of it. What a server asks for (Retry-After) is waited if it is not longer than `longest`.

    - `most`: tries after the first.
    - `first`: seconds before the second.
    - `longest`: seconds before any.
    """

    most: int = 2
    first: float = 0.5
    longest: float = 30.0
