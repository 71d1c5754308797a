"""One request to a server and all that came back, byte for byte: status, headers, body, and when it came.

    line = ServerLine("http://127.0.0.1:8080", "chat", api_key_env=None, seconds=60)
    raw = await line.ask({"model": "m", "messages": [...]}, "m", stream=True)

A server that never answers, never ends or sends without limit costs so many seconds and bytes, and no more. Secrets are
still in what came: whoever shows any of it takes them out (`ServerLine.scrubber`).
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import msgspec

from rightcall.api_names import Api
from rightcall.backends.address import api_address, find_key, own_secrets, request_address, root_url
from rightcall.backends.aiohttp_exchange import Wire
from rightcall.backends.exchange import Sent, Timeouts
from rightcall.backends.http import Backend
from rightcall.errors import BackendError, BodyError, TimedOut, TransportError
from rightcall.redaction.scrubber import Scrubber
from rightcall.types import Json

MOST_BYTES = 1_000_000
Break = Literal["", "unreachable", "late", "silent", "broke", "endless"]


class RawAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. `broke` says how it ended before its time: nothing came (`unreachable`), it was not done in time
    (`late`), for most of which nothing more came (`silent`), the connection closed (`broke`), or it had no end
    (`endless`). `silence` is the longest time in which nothing came."""

    status: int = 0
    headers: dict[str, str] = {}
    body: bytes = b""
    first_byte: float = 0.0
    silence: float = 0.0
    seconds: float = 0.0
    pieces: int = 0
    broke: Break = ""
    says: str = ""

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300 and not self.broke

    @property
    def is_refused(self) -> bool:
        return self.status >= 400

    @property
    def kind(self) -> str:
        """Its content type, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class ServerLine:
    """The way to one server in one dialect."""

    def __init__(self, url: str, api: Api, *, api_key_env: str | None, seconds: float) -> None:
        self.api: Api = api
        self.root, self._address = root_url(url), api_address(url, api)
        self._seconds = seconds
        key = find_key(api, api_key_env, self._address)
        limits = Timeouts(connect=min(10.0, seconds), first_byte=seconds, idle=seconds, total=seconds)
        self._wire = Wire(key, api, limits)
        self._headers = Backend(url, api=api, exchange=self._wire).headers
        self.scrubber = Scrubber(own_secrets(key))

    def keep(self) -> None:
        """Connections stay open from now on."""
        self._wire.keep()

    async def aclose(self) -> None:
        await self._wire.aclose()

    async def ask(self, body: Json, model: str, *, stream: bool) -> RawAnswer:
        """Never raises for what a server does."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        url = request_address(self._address, self.api, model, stream=stream)
        got: dict[str, Any] = {}
        pieces: list[bytes] = []
        heard = [begun]  # when something came last
        sent = Sent("POST", url, body, self._headers, begun + self._seconds)
        try:
            try:
                await self._gather(sent, got, pieces, heard)
            except TransportError as error:
                if got or isinstance(error, TimedOut):
                    raise
                await self._gather(sent, got, pieces, heard)  # it had closed the connection that was kept
        except BackendError as error:
            got |= {"broke": _broke(error), "says": str(error).removeprefix(f"{url}: ")}
            if isinstance(error, TimedOut) and error.stage != "connect":
                got |= self._late(loop.time() - heard[0], begun="status" in got)
        return RawAnswer(body=b"".join(pieces), seconds=loop.time() - begun, **got)

    def _late(self, silence: float, *, begun: bool) -> dict[str, Any]:
        """How an answer that was not done in time is told, after so many seconds without a piece of it."""
        if not begun:
            return {"says": f"no answer within {self._seconds:g} s; allow more (--timeout)"}
        if silence > self._seconds / 2:
            return {"broke": "silent", "says": f"nothing came for {silence:.0f} s in the middle of the answer"}
        return {"broke": "late", "says": f"it was not done within {self._seconds:g} s; allow more (--timeout)"}

    async def _gather(self, sent: Sent, got: dict[str, Any], pieces: list[bytes], heard: list[float]) -> None:
        size, begun, loop = 0, heard[0], asyncio.get_running_loop()
        async with self._wire.open(sent) as received:
            got |= {"status": received.status, "headers": received.headers}
            async for piece in received.chunks:
                now = loop.time()
                got["silence"] = max(got.get("silence", 0.0), now - heard[0])
                heard[0] = now
                got.setdefault("first_byte", now - begun)
                pieces.append(piece)
                got["pieces"] = len(pieces)
                size += len(piece)
                if size > MOST_BYTES:
                    got |= {"broke": "endless", "says": f"more than {MOST_BYTES:,} bytes came, and no end"}
                    return


def _broke(error: BackendError) -> Break:
    return "broke" if isinstance(error, BodyError) else "unreachable"
