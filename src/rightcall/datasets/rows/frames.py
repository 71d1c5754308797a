"""Messages between a parent and its workers: a letter, a length, and so many bytes."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

_HEAD = Struct("<cQ")


def framed(kind: bytes, data: bytes) -> bytes:
    return _HEAD.pack(kind, len(data)) + data


class FrameReader:
    """Frames out of bytes that come in pieces of any size."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held, self._wanted = 0, _HEAD.size

    def add(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The frames that are whole with this piece."""
        self._pieces.append(data)
        self._held += len(data)
        while self._held >= self._wanted:
            joined = b"".join(self._pieces)
            kind, size = _HEAD.unpack_from(joined)
            end = _HEAD.size + size
            if len(joined) < end:
                self._pieces, self._wanted = [joined], end
                return
            self._pieces, self._held, self._wanted = [joined[end:]], len(joined) - end, _HEAD.size
            yield kind, joined[_HEAD.size : end]
