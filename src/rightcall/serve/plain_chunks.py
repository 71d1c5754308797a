"""Chunks of a Chat stream that hold a piece of text and nothing else, told without making an object of them.

    PlainChunks().runs(b'data: {"id": "c", ..., "delta": {"content": "Hi"}}]}\n\ndata: [DONE]\n\n')

Most of a stream is such chunks. One that is written as every client takes it may go on as it came, with all that it has
beside; any other is read and written anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec


class _PlainDelta(msgspec.Struct):
    content: str
    role: None = None
    tool_calls: None = None
    function_call: None = None
    reasoning_content: None = None
    reasoning: None = None
    refusal: None = None


class _PlainChoice(msgspec.Struct):
    index: int
    delta: _PlainDelta
    finish_reason: None = None


class PlainChunk(msgspec.Struct):
    """A chunk of text. Null is as good as nothing; what has another type here is no plain chunk."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: tuple[_PlainChoice]
    usage: None = None
    error: None = None


_END, _FIELD = b"\n\n", b"data: "
_LAST = 3  # frames at the end of a piece that are rarely plain: how the answer ended, what it cost, that it is over
_CONTENT = re.compile(rb'"content": ?("(?:[^"\\]|\\.)*+")')
_decode_chunks = msgspec.json.Decoder(list[PlainChunk]).decode
_decode_texts = msgspec.json.Decoder(list[str]).decode


class PlainChunks:
    """The chunks of one stream. From the first plain one it learns what stands around the text in all of them, so that
    only the texts must be read; a chunk that looks otherwise is read whole."""

    def __init__(self) -> None:
        self._before = self._behind = b""
        self.first: PlainChunk | None = None

    def runs(self, frames: bytes) -> Iterator[tuple[bytes, str | None]]:
        """The frames in order: runs of plain chunks with what they say, the others one by one with None."""
        if not self._before:
            self._read(frames[: frames.find(_END) + len(_END)])
        at = len(frames)
        said = self._quick(frames)
        if said is None:
            at = _last_frames(frames)
            said = self._quick(frames[:at])
        if said is None and at:
            said = self._read(frames[:at])
        if said is not None:
            yield frames[:at], said
            frames = frames[at:]
        for frame in frames.split(_END):
            if frame:
                yield frame + _END, self._read(frame + _END)

    def _quick(self, frames: bytes) -> str | None:
        """What they say, if all look as the first did."""
        before, behind = self._before, self._behind
        if not before:
            return None
        begin, end = len(before), len(_END) - len(behind)
        texts = [line[begin:end] for line in frames.split(b"\n")[:-1:2]]  # at one byte, which is found fastest
        if (behind + before).join(texts) != frames[begin : -len(behind)]:
            return None
        if not (frames.startswith(before) and frames.endswith(behind)):
            return None
        try:
            found = _decode_texts(b"[%b]" % b",".join(texts))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return "".join(found) if len(found) == len(texts) else None

    def _read(self, frames: bytes) -> str | None:
        """What they say, if all are plain and of the first choice."""
        if not frames.startswith(_FIELD):
            return None
        try:
            found = _decode_chunks(b"[%b]" % frames[len(_FIELD) : -len(_END)].replace(_END + _FIELD, b","))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if any(chunk.choices[0].index for chunk in found):
            return None
        self.first = self.first or found[0]
        self._learn(frames[: frames.find(_END) + len(_END)])
        return "".join([chunk.choices[0].delta.content for chunk in found])

    def _learn(self, frame: bytes) -> None:
        found = _CONTENT.search(frame)
        if found is not None and frame.count(b'"content"') == 1:
            self._before, self._behind = frame[: found.start(1)], frame[found.end(1) :]


def _last_frames(frames: bytes) -> int:
    """Where the last few begin."""
    at = len(frames) - len(_END)
    for _ in range(_LAST):
        at = frames.rfind(_END, 0, max(at, 0))
    return at + len(_END) if at > 0 else 0
