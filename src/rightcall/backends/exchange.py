"""The seam between a backend and a network: bytes go out, a status and pieces of bytes come back.

`Wire` is the network; a recorder stands around an exchange, and a recording is one. Nothing here knows what a call is.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

import msgspec

from rightcall.types import Json


class HttpRequest(msgspec.Struct, frozen=True):
    """What goes to the server: an address, a body or none, and headers without any key.

    By `deadline`, in the loop's time, whatever is still being waited for must end in `TimedOut`.
    """

    method: Literal["GET", "POST"]
    url: str
    body: Json | None = None
    headers: dict[str, str] = {}
    deadline: float = math.inf

    def __repr__(self) -> str:
        """Without the headers: one of them may be a secret."""
        return f"HttpRequest({self.method!r}, {self.url!r}, {len(self.headers)} headers)"


class HttpResponse(msgspec.Struct, frozen=True):
    """What came back: the status, headers in lower case, and the body in the pieces it came in.

    Reading `chunks` raises `BodyError` or `TimedOut` where the connection broke or a limit was reached.
    """

    status: int
    headers: dict[str, str]
    chunks: AsyncIterator[bytes]


class Exchange(Protocol):
    """Carries one request. The context's end closes the connection, whatever was read of it."""

    def open(self, sent: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]: ...

    def keep(self) -> None: ...  # connections may stay open from now on

    async def aclose(self) -> None: ...


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long is waited, in seconds: to `connect`, to the `first_byte` of an answer, between two pieces of it
    (`idle`), and for all of it with its retries (`total`)."""

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
