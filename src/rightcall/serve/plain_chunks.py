"""Chunks of a Chat stream that hold a piece of text and nothing else, told without making an object of them.

    piece_of(b'{"id": "c", "object": "chat.completion.chunk", ..., "delta": {"content": "Hi"}}]}')   ->   "Hi"

Most of a stream is such chunks. One that is written as every client takes it may go on as it came, with all that it has
beside; any other is read and written anew.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class _PlainDelta(msgspec.Struct):
    content: str
    role: Literal["assistant"] | None = None
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


_decode = msgspec.json.Decoder(PlainChunk).decode


def plain_chunk(data: bytes) -> PlainChunk | None:
    """The chunk, if it is plain and of the first choice."""
    try:
        found = _decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if found.choices[0].index == 0 else None


def said_by(chunk: PlainChunk) -> str:
    return chunk.choices[0].delta.content


def chunk_of(text: str) -> dict[str, Any]:
    """A chunk that says this text."""
    return {"choices": [{"index": 0, "delta": {"content": text}}]}
