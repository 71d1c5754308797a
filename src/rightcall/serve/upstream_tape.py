"""One exchange with a server, kept as it was for whoever wants it: a capture, a log with content, a recording.

tape = UpstreamTape(board.watch, exchanged, link, url, body)
tape.heard(answer); tape.piece(data) ...; tape.over()
"""

from __future__ import annotations

import asyncio

from rightcall.serve.exchanged import Exchanged
from rightcall.serve.proxy_watch import ProxyWatch
from rightcall.serve.traffic_record import UpstreamExchange
from rightcall.serve.upstream_link import UpstreamAnswer, UpstreamLink
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Json

MOST = 16_000_000  # bytes of an answer that are kept
_DEPTH = 400


class UpstreamTape:
    """Keeps nothing where nobody wants it."""

    def __init__(self, watch: ProxyWatch, exchanged: Exchanged, link: UpstreamLink, url: str, body: bytes) -> None:
        self._recorder, self._content = watch.recorder, exchanged.content
        self._link, self._url, self._body = link, url, body
        self._pieces: list[bytes] = []
        self._delays: list[int] = []
        self._size = 0
        self._answer: UpstreamAnswer | None = None
        self.is_on = self._recorder is not None or self._content is not None
        self._last = asyncio.get_running_loop().time() if self.is_on else 0.0

    def heard(self, answer: UpstreamAnswer) -> None:
        """The server answers."""
        self._answer = answer

    def piece(self, data: bytes) -> None:
        """A piece of its answer."""
        if not self.is_on or self._size > MOST:
            return
        now = asyncio.get_running_loop().time()
        self._pieces.append(data)
        self._delays.append(int((now - self._last) * 1000))
        self._size, self._last = self._size + len(data), now

    def over(self, broken: str = "") -> None:
        """Nothing more comes; `broken` says why, where that is too early."""
        if not self.is_on:
            return
        sent = _object(self._body)
        if self._content is not None:
            self._content.sent, self._content.received = sent, b"".join(self._pieces)
        if self._recorder is not None:
            answer = self._answer
            self._recorder.add(
                UpstreamExchange(
                    upstream=self._link.name,
                    url=self._url,
                    body=sent,
                    status=answer.status if answer is not None else 0,
                    headers=answer.headers if answer is not None else {},
                    pieces=self._pieces,
                    delays=self._delays,
                    broken=broken,
                )
            )


def _object(body: bytes) -> Json | None:
    value = decode(body.decode("utf-8", "replace"), _DEPTH)
    return None if isinstance(value, Undecodable) or not isinstance(value, dict) else value
