"""JSON arguments as they arrive: an object's members, passed on when they are final.

A string goes out while it arrives if its key is declared as a plain string; anything else goes out when it is whole.
What goes out are slices of the source, so the pieces joined are the arguments exactly as sent.
"""

from __future__ import annotations

from typing import Any

from rightcall.parsing.buffer import Cut, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.json_stream import (
    LostJsonEnd,
    json_string,
    skip_nested,
    skip_scalar,
    skip_string,
    skip_value,
    whole_value,
)
from rightcall.strict_json import Undecodable


class _Pending:
    """The argument text that was taken and not emitted yet."""

    def __init__(self, builder: CallBuilder) -> None:
        self._builder, self.start = builder, builder.capture()

    def flush(self) -> None:
        text = self._builder.captured(self.start)
        self.start = self._builder.at
        if text:
            self._builder.give(text)

    def record(self, text: str) -> None:
        self._builder.record_given(text)
        self.start += len(text)


def read_arguments(p: CallBuilder) -> Steps[Any]:
    """The argument value of a call that has begun. Gives what it holds, or the class `Undecodable` for "decode it"."""
    p.args_at = p.base + p.pos
    found = whole_value(p)
    assert p.call is not None
    if found is not None:
        # What is no object may still be decoded or refused: it is not final.
        p.give(found[0]) if type(found[1]) is dict else p.call.parts.append(found[0])
        return found[1]
    pending = _Pending(p)
    is_object = p.buf[p.pos] == "{"
    try:
        if p.live and is_object:
            yield from _object(p, pending)
        else:
            yield from skip_value(p)
    except (LostJsonEnd, Cut) as lost:
        p.pos = len(p.buf) if isinstance(lost, Cut) else p.pos
        # Kept with the call, but never given out: it is not known to be final.
        p.call.parts.append(p.release(pending.start))
        raise
    text = p.release(pending.start)
    p.give(text) if is_object else p.call.parts.append(text)
    return Undecodable


def _object(p: CallBuilder, pending: _Pending) -> Steps[None]:
    p.pos += 1
    while True:
        char = yield from p.peek()
        if char == '"' and (yield from _member(p, pending)):
            char = yield from p.peek()
        if not char:
            raise Cut
        if char != ",":
            break
        p.pos += 1
        pending.flush()
    # The closing brace, or something odd: then the end is found as it is without looking inside.
    yield from skip_nested(p, ["}"])


def _member(p: CallBuilder, pending: _Pending) -> Steps[bool]:
    """A key and its value; False if what is here is neither, and nothing odd was taken."""
    key = yield from json_string(p)
    if key is None:
        return False
    char = yield from p.peek()
    if char == ":":
        p.pos += 1
        char = yield from p.peek()
    if not char:
        raise Cut
    if char == '"' and p.kind(key) == "plain":
        p.pos += 1
        yield from skip_string(p, pending)
    elif char in '"[{':
        yield from skip_value(p)
    else:
        yield from skip_scalar(p)
    return True
