"""An answer of an HTTP server, read as its bytes come. No IO.

    reading = HttpReading("POST")
    reading.feed(data)         the bytes of the body in these, once `reading.head` is known
    reading.is_whole, reading.is_reusable
    reading.close()            the connection is over; raises where the answer is not

HTTP/1.1 and 1.0: bodies in chunks, of a length, or up to the end of the connection; packed ones are unpacked. Each byte
is looked at once, whatever pieces they come in.
"""

from __future__ import annotations

import re
import zlib
from typing import Protocol

import msgspec

MAX_HEAD = 65_536  # bytes of a head, or of what follows the last chunk
_MAX_LINE = 1024  # bytes of the line before a chunk
_STATUS = re.compile(r"HTTP/1\.([01]) ([1-5]\d\d)(?: [^\r\n]*)?\Z").match
_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?\r?\Z", re.S).match
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++\Z").match
_PACKED = {"gzip": 31, "x-gzip": 31, "deflate": 47}
_UNPACKED_AT_ONCE = 1 << 26  # bytes; what holds more than that in one piece is a bomb
_MOST_PACKS = 1000  # packed one behind the other
_BLANK = re.compile(rb"\n\r?\n").search
_SIZES = {b"\n%x" % size: size + 1 for size in range(1, 4096)}  # most of what stands before chunks


class HttpFault(Exception):
    """What came is no answer of an HTTP server, or not all of one."""


class HttpHead(msgspec.Struct, frozen=True):
    """The head of an answer, with the names of its headers in small letters."""

    status: int
    headers: dict[str, str]
    is_kept: bool  # the connection stays open behind the answer


class _Body(Protocol):
    is_whole: bool
    ends_with_connection: bool
    rest: bytes  # what came behind its end

    def feed(self, data: bytes) -> bytes: ...


class HttpReading:
    """One answer to a request with this method. Raises `HttpFault`."""

    def __init__(self, method: str) -> None:
        self._method = method
        self._begun = b""  # of a head that is not whole
        self._body: _Body | None = None
        self._unpacking: _Unpacking | None = None
        self.head: HttpHead | None = None

    @property
    def has_begun(self) -> bool:
        """Has anything of it come?"""
        return self.head is not None or bool(self._begun)

    @property
    def is_whole(self) -> bool:
        return self._body is not None and self._body.is_whole

    @property
    def is_reusable(self) -> bool:
        """May the next request go over the same connection?"""
        body, head = self._body, self.head
        if body is None or head is None or body.ends_with_connection or _says_two_lengths(head):
            return False
        return head.is_kept and body.is_whole and not body.rest

    def feed(self, data: bytes) -> bytes:
        while self._body is None:
            data = self._begun + data
            blank = _BLANK(data, max(len(self._begun) - 2, 0))
            if blank is None or blank.start() > MAX_HEAD:
                if len(data) > MAX_HEAD:
                    raise HttpFault(f"its head is longer than {MAX_HEAD:,} bytes")
                _check_beginning(data)
                self._begun = data
                return b""
            self._begun, head, data = b"", data[: blank.start()], data[blank.end() :]
            self._heard(head_of(head))
        said = self._body.feed(data)
        if self._unpacking is None:
            return said
        said = self._unpacking.feed(said)
        if self._body.is_whole:
            self._unpacking.close()
        return said

    def _heard(self, head: HttpHead) -> None:
        if head.status == 101:
            raise HttpFault("it changes to another protocol, unasked")
        if head.status < 200:
            return  # the answer proper comes behind
        self.head, self._body = head, _body_of(head, self._method)
        packing = head.headers.get("content-encoding", "identity").strip().lower()
        if packing not in ("", "identity") and not self._body.is_whole:
            self._unpacking = _Unpacking(packing)

    def close(self) -> None:
        """Raises where an end was still to come."""
        if self._body is None:
            raise HttpFault("it closed the connection in the middle of a head" if self._begun else "it hung up")
        if self._body.ends_with_connection:
            self._body.is_whole = True
            if self._unpacking is not None:
                self._unpacking.close()
        elif not self._body.is_whole:
            raise HttpFault("it closed the connection in the middle of the body")


def _check_beginning(data: bytes) -> None:
    if not data.startswith(b"HTTP/1."[: len(data)]):
        raise HttpFault("what it says is no HTTP/1")


def head_of(data: bytes) -> HttpHead:
    """The head in these lines."""
    first, *lines = data.decode("utf-8", "surrogateescape").split("\n")
    found = _STATUS(first.rstrip("\r"))
    if found is None:
        raise HttpFault("what it says is no HTTP/1")
    headers = _headers(lines)
    options = headers.get("connection", "").lower()
    is_kept = "close" not in options if found[1] == "1" else "keep-alive" in options
    return HttpHead(int(found[2]), headers, is_kept)


def _says_two_lengths(head: HttpHead) -> bool:
    """Where one who reads it otherwise would look for the next answer elsewhere."""
    return "transfer-encoding" in head.headers and "content-length" in head.headers


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    last = ""
    for line in [each.removesuffix("\r") for each in lines]:
        if line[:1] in (" ", "\t") and last:  # it goes on
            headers[last] += " " + line.strip(" \t")
            continue
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN(name) or "\r" in value or "\0" in value:
            raise HttpFault("one of its headers cannot be read")
        last, value = name.lower(), value.strip(" \t")
        headers[last] = f"{headers[last]}, {value}" if last in headers else value
    return headers


def _body_of(head: HttpHead, method: str) -> _Body:
    headers, status = head.headers, head.status
    if method == "HEAD" or status in (204, 304) or (method == "CONNECT" and status < 300):
        return _Sized(0)
    codings = headers.get("transfer-encoding")
    if codings is not None:
        if codings.strip(" \t").lower() != "chunked":
            raise HttpFault(f"its transfer coding {codings[:40]!r} is not known here")
        return _Chunked()
    lengths = {each.strip() for each in headers.get("content-length", "").split(",")}
    if lengths == {""}:
        return _UntilClosed()
    length = lengths.pop()
    if lengths or not (length.isascii() and length.isdigit() and len(length) < 19):
        raise HttpFault("its content length is no number")
    return _Sized(int(length))


class _Sized:
    ends_with_connection = False

    def __init__(self, length: int) -> None:
        self._left, self.rest, self.is_whole = length, b"", not length

    def feed(self, data: bytes) -> bytes:
        if len(data) > self._left:
            data, self.rest = data[: self._left], data[self._left :]
        self._left -= len(data)
        self.is_whole = not self._left
        return data


class _UntilClosed:
    ends_with_connection = True

    def __init__(self) -> None:
        self.rest, self.is_whole = b"", False

    def feed(self, data: bytes) -> bytes:
        return data


class _Chunked:
    ends_with_connection = False

    def __init__(self) -> None:
        self._left = 0  # bytes of a chunk that are still to come, with the end of its line
        self._kept = b""  # of a line that is not whole
        self._trailer = -1  # bytes behind the last chunk; -1 before that
        self.rest, self.is_whole = b"", False

    def feed(self, data: bytes) -> bytes:
        if self.is_whole:
            self.rest = self.rest or data
            return b""
        if self._kept:
            data, self._kept = self._kept + data, b""
        said: list[bytes] = []
        at = self._whole_chunks(data, said) if not self._left and self._trailer < 0 else 0
        if self._trailer >= 0:
            at = self._end(data, 0)
        while 0 <= at < len(data) and not self.is_whole:
            at = self._chunk(data, at, said)
        return b"".join(said)

    def _whole_chunks(self, data: bytes, said: list[bytes]) -> int:
        """Reads the chunks that came whole, if they are written as most are; gives where they end. Carriage returns
        stand around chunks and, mostly, nowhere else: so all chunks are found at once."""
        lines = data.split(b"\r")
        lines[0] = b"\n" + lines[0]
        last = (len(lines) - 1) & ~1  # from here on it may be cut
        if last and (lines[last][:1] != b"\n" or lines[last - 2] == b"\n0"):
            last -= 2
        sizes, chunks = lines[:last:2], lines[1:last:2]
        if [*map(_SIZES.get, sizes)] != [*map(len, chunks)] or {10} != {chunk[0] for chunk in chunks}:
            chunks = chunks[: _alike(sizes, chunks)]
        said += [chunk[1:] for chunk in chunks]
        return sum(map(len, chunks)) + sum(map(len, sizes[: len(chunks)])) + 2 * len(chunks)

    def _chunk(self, data: bytes, at: int, said: list[bytes]) -> int:
        """Reads on from there; gives where it stopped, -1 where more is needed."""
        left = self._left
        if left > 2:
            until = at + left - 2
            said.append(data[at:until])
            if until >= len(data):
                self._left = left - (len(data) - at)
                return -1
            at, left = until, 2
        if left:
            if data[at : at + 2] != b"\r\n":
                return self._short(data, at, 2)
            at += 2
        self._left = 0
        end = data.find(b"\n", at, at + _MAX_LINE)
        if end < 0:
            return self._short(data, at, _MAX_LINE)
        self._left = size = _size(data[at:end])
        if not size:
            self._trailer = 0
            return self._end(data, end + 1)
        self._left = size + 2
        return end + 1

    def _short(self, data: bytes, at: int, enough: int) -> int:
        """What is needed has not come, or something else in its place."""
        if len(data) - at >= enough or (enough == 2 and data[at:] not in (b"", b"\r")):
            raise HttpFault("one of its chunks has another length than it says")
        self._left, self._kept = (2 if enough == 2 else 0), data[at:]
        return -1

    def _end(self, data: bytes, at: int) -> int:
        """Lines behind the last chunk, up to a blank one."""
        while True:
            end = data.find(b"\n", at)
            if end < 0:
                self._kept = data[at:]
                self._check_trailer(len(self._kept))
                return -1
            line, at = data[at:end], end + 1
            self._trailer += len(line) + 1
            self._check_trailer(0)
            if line in (b"", b"\r"):
                self.is_whole, self.rest = True, data[at:]
                return at

    def _check_trailer(self, more: int) -> None:
        if self._trailer + more > MAX_HEAD:
            raise HttpFault("what follows its last chunk has no end")


def _alike(sizes: list[bytes], chunks: list[bytes]) -> int:
    """How many of the first are as long as they say."""
    pairs = enumerate(zip(sizes, chunks, strict=True))
    odd = (at for at, (size, chunk) in pairs if _SIZES.get(size) != len(chunk) or chunk[:1] != b"\n")
    return max(next(odd, len(chunks)) - 1, 0)  # the line end behind a chunk is the beginning of the next size


def _size(line: bytes) -> int:
    """The number in the line before a chunk."""
    found = _SIZE(line)
    if found is None:
        raise HttpFault("one of its chunks does not say how long it is")
    return int(found[1], 16)


class _Unpacking:
    """A packed body. However much it holds, so much of it is unpacked at once as the reader takes."""

    def __init__(self, packing: str) -> None:
        if packing not in _PACKED:
            raise HttpFault(f"its body is packed as {packing[:40]!r}, unasked; that is not known here")
        self._bits = _PACKED[packing]
        self._unpacker = zlib.decompressobj(self._bits)
        self._is_first = True
        self._packs = 1

    def close(self) -> None:
        """Raises where an end was still to come."""
        if not self._is_first and not self._unpacker.eof:
            raise HttpFault("its packed body ends in the middle")

    def feed(self, data: bytes) -> bytes:
        if not data:
            return b""
        try:
            return self._unpacked(data)
        except zlib.error as error:
            raise HttpFault(f"its body cannot be unpacked: {error}") from None

    def _unpacked(self, data: bytes) -> bytes:
        if self._is_first and self._bits == 47 and data[0] & 15 != 8:
            self._bits = -15  # without its head, as many write it
            self._unpacker = zlib.decompressobj(self._bits)
        self._is_first = False
        said: list[bytes] = []
        room = _UNPACKED_AT_ONCE
        while data:
            if self._unpacker.eof:  # the next one
                self._unpacker = zlib.decompressobj(self._bits)
                self._packs += 1
            said.append(self._unpacker.decompress(data, room))
            room -= len(said[-1])
            if self._unpacker.unconsumed_tail or room <= 0 or self._packs > _MOST_PACKS:
                raise HttpFault("its body unpacks to far more than it is")
            data = self._unpacker.unused_data
        return b"".join(said)
