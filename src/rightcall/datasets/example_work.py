"""Conversations as examples, made by an engine: one process reads them, many make the examples."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import islice

from rightcall.datasets.conversations import CapturedConversation
from rightcall.datasets.message_shapes import SHAPES, Found, LeftOut, MessageOptions
from rightcall.rows.engines import Engine
from rightcall.types import Json

_TOGETHER = 32  # conversations that travel to a worker together


def examples(
    conversations: Iterator[CapturedConversation], to: str, how: MessageOptions, engine: Engine
) -> Iterator[list[Json | LeftOut]]:
    """The examples of each conversation, in order; a `LeftOut` says why there is none."""
    for result in engine.map(ExampleWork(to, how), _batches(conversations)):
        yield from pickle.loads(result)  # noqa: S301 - our own bytes


def _batches(conversations: Iterator[CapturedConversation]) -> Iterator[bytes]:
    while batch := list(islice(conversations, _TOGETHER)):
        yield pickle.dumps(batch)


class ExampleWork:
    """What an engine carries: conversations in, their examples out."""

    def __init__(self, to: str, how: MessageOptions) -> None:
        self._to, self._how = to, how

    def __call__(self, item: bytes) -> bytes:
        return pickle.dumps([list(self._examples(each)) for each in pickle.loads(item)])  # noqa: S301 - our own bytes

    def _examples(self, conversation: CapturedConversation) -> Found:
        try:
            yield from SHAPES[self._to](conversation, self._how)
        except LeftOut as reason:
            yield LeftOut(str(reason))
