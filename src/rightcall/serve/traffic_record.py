"""Cassettes of what went to the upstreams and came back, byte for byte: `--record FOLDER`.

    FOLDER/127.0.0.1_8080.jsonl, FOLDER/127.0.0.1_8080-2.jsonl ...

One for each upstream, and a new one when it has grown to the size that a cassette may have. What `rightcall replay` and
`rightcall dataset import` read. All of it together is bounded: what comes then is counted and not written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from rightcall.backends.cassette import (
    CASSETTE,
    MAX_BYTES,
    CassetteHead,
    RecordedExchange,
    RecordedRequest,
    cassette_line,
    scrub_json,
    scrub_response,
)
from rightcall.serve.bounded_writer import BoundedWriter, LineSink
from rightcall.serve.proxy_settings import ProxySettings, UpstreamSettings
from rightcall.serve.request_log import known_secrets
from rightcall.storage.journal import Journal
from rightcall.storage.jsonl import ensure_parent_dir
from rightcall.types import Json

_ODD = re.compile(r"[^A-Za-z0-9._-]")
_LARGEST = MAX_BYTES // 2


class UpstreamExchange(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange with an upstream, as it was: what was sent, and the pieces that came with the milliseconds before
    each. `broken` says what ended it early; status 0, that no answer began."""

    upstream: str
    url: str
    method: Literal["GET", "POST"] = "POST"
    body: Json | None = None
    status: int = 0
    headers: dict[str, str] = {}
    pieces: list[bytes] = []
    delays: list[int] = []
    broken: str = ""

    @property
    def size(self) -> int:
        """About how much there is to write."""
        return sum([len(each) for each in self.pieces]) + 2000


class TrafficRecorder:
    """Cassettes in a folder, which is made. Raises `FileFailed` where nothing can be written; what fails later is
    counted."""

    def __init__(self, settings: ProxySettings, *, tell: Callable[[str], None] | None = None) -> None:
        self._own = tuple(known_secrets(settings))
        self._left = settings.record_bytes
        self._writers: dict[str, BoundedWriter[UpstreamExchange]] = {
            each.name: BoundedWriter(_CassetteSink(settings.record, each), self._line, tell=tell)
            for each in settings.upstream
        }
        self.refused = 0

    def add(self, exchange: UpstreamExchange) -> None:
        """An exchange is over."""
        self._left -= exchange.size
        if self._left < 0:
            self.refused += 1
        elif (writer := self._writers.get(exchange.upstream)) is not None:
            writer.put(exchange, exchange.size)

    @property
    def writers(self) -> list[BoundedWriter[UpstreamExchange]]:
        return list(self._writers.values())

    def _line(self, exchange: UpstreamExchange) -> bytes:
        path, body = scrub_json([urlsplit(exchange.url).path, exchange.body], *self._own)
        it = exchange
        response = scrub_response(it.status, it.headers, it.pieces, it.delays, it.broken, *self._own)
        return cassette_line(RecordedExchange(RecordedRequest(it.method, path, body), response))

    def close(self) -> None:
        """What waits is written."""
        for writer in self._writers.values():
            writer.close()


class _CassetteSink(LineSink):
    """Cassettes of one upstream, one after the other."""

    def __init__(self, folder: str, upstream: UpstreamSettings) -> None:
        self._base = os.path.join(folder, _ODD.sub("_", upstream.name) or "upstream")
        self._head = cassette_line(CassetteHead(api=upstream.api, profile=upstream.profile))
        self._number = 1
        self._open()

    def _open(self) -> None:
        self.path = f"{self._base}.jsonl" if self._number == 1 else f"{self._base}-{self._number}.jsonl"
        ensure_parent_dir(self.path)
        self._tape = Journal(self.path, CASSETTE, torn="cut")
        self._size = os.stat(self.path).st_size
        if self._tape.is_empty:
            self._tape.append_bytes(self._head)

    def write(self, lines: bytes) -> None:
        while self._size and self._size + len(lines) > _LARGEST:
            self._tape.close()
            self._number += 1
            self._open()
        self._tape.append_bytes(lines)
        self._size += len(lines)

    def close(self) -> None:
        self._tape.close()
