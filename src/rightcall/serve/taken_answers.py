"""Answers of servers that somebody wants to have whole: for a capture, a recording, a log with content.

    async with taking(link.opened(url, body, headers), asked, exchanged, watchers) as answer: ...

What is read of the answer is kept beside, up to a bound, and handed over when it is over. Where nobody wants it,
nothing of this is in the way.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager

import msgspec

from rightcall.errors import BackendError
from rightcall.serve.exchanged import Exchanged
from rightcall.serve.traffic_record import UpstreamExchange
from rightcall.serve.upstream_link import UpstreamAnswer
from rightcall.serve.watchers import Watchers

_MOST = 16_000_000  # bytes of an answer


class AskedUpstream(msgspec.Struct, frozen=True):
    """What a server is asked: by its name, where, and the body."""

    upstream: str
    url: str
    body: bytes


class _TakenAnswer(UpstreamAnswer):
    """An answer that is kept as far as it is read."""

    def __init__(self, answer: UpstreamAnswer) -> None:
        self._answer = answer
        self.status, self.headers = answer.status, answer.headers
        self.taken: list[bytes] = []
        self.delays: list[int] = []
        self.broken = "it was not read to its end"
        self._size = 0
        self._last = time.monotonic()

    async def pieces(self) -> AsyncGenerator[bytes]:
        try:
            async with aclosing(self._answer.pieces()) as pieces:
                async for piece in pieces:
                    self._keep(piece)
                    yield piece
            self.broken = "" if self._size <= _MOST else "the rest of it was not kept: it is too long"
        except BackendError as error:
            self.broken = str(error)
            raise

    def _keep(self, piece: bytes) -> None:
        now = time.monotonic()
        self._size += len(piece)
        if self._size <= _MOST:
            self.taken.append(piece)
            self.delays.append(round((now - self._last) * 1000))
        self._last = now


@asynccontextmanager
async def taking(
    opening: AbstractAsyncContextManager[UpstreamAnswer], asked: AskedUpstream, exchanged: Exchanged, watchers: Watchers
) -> AsyncIterator[UpstreamAnswer]:
    """The answer as it comes; those who watch have it when it is over."""
    answer: _TakenAnswer | None = None
    broken = "no answer began"
    try:
        async with opening as given:
            answer = _TakenAnswer(given)
            yield answer
    except BackendError as error:
        broken = str(error)
        raise
    finally:
        _hand_over(answer, broken, asked, exchanged, watchers)


def _hand_over(
    answer: _TakenAnswer | None, broken: str, asked: AskedUpstream, exchanged: Exchanged, watchers: Watchers
) -> None:
    content = exchanged.content
    if content is not None:
        is_whole = answer is not None and not answer.broken
        content.sent, content.received = asked.body, b"".join(answer.taken) if answer is not None and is_whole else None
    if not watchers.records:
        return
    if answer is None:
        watchers.record(UpstreamExchange(upstream=asked.upstream, url=asked.url, body=asked.body, broken=broken))
        return
    watchers.record(
        UpstreamExchange(
            upstream=asked.upstream,
            url=asked.url,
            body=asked.body,
            status=answer.status,
            headers=answer.headers,
            pieces=answer.taken,
            delays=answer.delays,
            broken=answer.broken,
        )
    )
