"""Chunks of a Chat stream that hold a piece of text and nothing else, told without making an object of them.

    plain_runs(b'data: {"id": "c", ..., "delta": {"content": "Hi"}}]}\n\ndata: [DONE]\n\n')

Most of a stream is such chunks. One that is written as every client takes it may go on as it came, with all that it has
beside; any other is read and written anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

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
_decode = msgspec.json.Decoder(list[PlainChunk]).decode


def plain_runs(frames: bytes) -> Iterator[tuple[bytes, list[PlainChunk] | None]]:
    """The frames in order: runs of plain chunks together with what they are, the others one by one."""
    chunks = _plain(frames)
    if chunks is not None:
        yield frames, chunks
        return
    at = _last_frames(frames)
    chunks = _plain(frames[:at]) if at else None
    if chunks is not None:
        yield frames[:at], chunks
        frames = frames[at:]
    for frame in frames.split(_END):
        if frame:
            yield frame + _END, _plain(frame + _END)


def _last_frames(frames: bytes) -> int:
    """Where the last few begin."""
    at = len(frames) - len(_END)
    for _ in range(_LAST):
        at = frames.rfind(_END, 0, max(at, 0))
    return at + len(_END) if at > 0 else 0


def _plain(frames: bytes) -> list[PlainChunk] | None:
    """All of them, if all are plain and of the first choice: JSON is told fastest in one piece."""
    if not frames.startswith(_FIELD):
        return None
    try:
        found = _decode(b"[%b]" % frames[len(_FIELD) : -len(_END)].replace(_END + _FIELD, b","))
    except (msgspec.DecodeError, RecursionError):
        return None
    return None if any(chunk.choices[0].index for chunk in found) else found


def said_by(chunks: list[PlainChunk]) -> str:
    """What they say, one after the other."""
    return "".join([chunk.choices[0].delta.content for chunk in chunks])


def chunk_of(text: str) -> dict[str, Any]:
    """A chunk that says this text."""
    return {"choices": [{"index": 0, "delta": {"content": text}}]}
