"""Chunks of a Chat stream that hold a piece of text and nothing else, told without making an object of them.

    plain_runs([b'data: {"id": "c", ..., "delta": {"content": "Hi"}}]}', b"data: [DONE]"])

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


_GROUP = 16  # chunks that are told together
_decode = msgspec.json.Decoder(PlainChunk).decode
_decode_group = msgspec.json.Decoder(list[PlainChunk]).decode
_FIELD = b"data: "


def plain_runs(frames: list[bytes]) -> Iterator[tuple[list[bytes], list[PlainChunk] | None]]:
    """The frames in order, those that are plain chunks together with what they are, the others one by one."""
    for at in range(0, len(frames), _GROUP):
        group = frames[at : at + _GROUP]
        chunks = _plain_group(group)
        if chunks is not None:
            yield group, chunks
            continue
        for frame in group:
            chunk = _plain_chunk(frame)
            yield [frame], None if chunk is None else [chunk]


def _plain_group(group: list[bytes]) -> list[PlainChunk] | None:
    """All of them, if all are plain: JSON is told fastest in one piece."""
    try:
        found = _decode_group(b"[%b]" % b",".join([frame.removeprefix(_FIELD) for frame in group]))
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if len(found) == len(group) and not any(chunk.choices[0].index for chunk in found) else None


def _plain_chunk(frame: bytes) -> PlainChunk | None:
    try:
        found = _decode(frame.removeprefix(_FIELD))
    except (msgspec.DecodeError, RecursionError):
        return None
    return None if found.choices[0].index else found


def said_by(chunks: list[PlainChunk]) -> str:
    """What they say, one after the other."""
    return "".join([chunk.choices[0].delta.content for chunk in chunks])


def chunk_of(text: str) -> dict[str, Any]:
    """A chunk that says this text."""
    return {"choices": [{"index": 0, "delta": {"content": text}}]}
