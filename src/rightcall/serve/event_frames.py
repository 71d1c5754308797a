"""A stream's bytes, cut into whole server-sent events: blocks of lines that a blank line ends.

    Frames().feed(b'data: {"a": 1}\n\ndata: {"b"')   ->   b'data: {"a": 1}\n\n'

A frame may come in any pieces; each byte is looked at once, or twice where it ends a piece.
"""

from __future__ import annotations

_END = b"\n\n"
MAX_FRAME = 16_000_000  # bytes of one event that are waited for


class Frames:
    """Feed it bytes; it gives whole frames, one after the other, each with the blank line that ends it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of a frame that is not whole
        self._size = 0
        self._carriage = False  # a carriage return was the last byte: a line feed may follow
        self.too_long = False

    def feed(self, data: bytes) -> bytes:
        """The frames that these bytes make whole."""
        data = self._plain(data)
        if self._parts:
            if _END not in self._parts[-1][-1:] + data:
                return self._keep(data)
            data = b"".join([*self._parts, data])
            self._parts, self._size = [], 0
        at = data.rfind(_END) + len(_END)
        if at < len(_END):
            return self._keep(data)
        if at == len(data):
            return data
        self._keep(data[at:])
        return data[:at]

    def close(self) -> bytes:
        """What came after the last frame."""
        parts, self._parts, self._size = self._parts, [], 0
        return b"".join(parts)

    def _keep(self, data: bytes) -> bytes:
        self._size += len(data)
        self.too_long = self.too_long or self._size > MAX_FRAME
        if data and not self.too_long:
            self._parts.append(data)
        return b""

    def _plain(self, data: bytes) -> bytes:
        """Line ends as line feeds alone."""
        if not self._carriage and b"\r" not in data:
            return data
        if self._carriage:
            data = b"\r" + data
        self._carriage = data.endswith(b"\r")
        return (data[:-1] if self._carriage else data).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
