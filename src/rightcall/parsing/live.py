"""JSON arguments as they arrive: an object's members, passed on when they are final.

A string goes out while it arrives if its key is declared as a plain string; anything else goes out when it is whole.
What goes out are slices of the source, so the pieces joined are the arguments exactly as sent.
"""

from __future__ import annotations

from typing import Any

from rightcall.parsing.buffer import Capture, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.interrupts import Cut
from rightcall.parsing.json_stream import (
    STRING_RUN,
    LostJsonEnd,
    escape_pending,
    json_string,
    skip_nested,
    skip_scalar,
    skip_value,
    whole_value,
)
from rightcall.strict_json import Undecodable


def read_arguments(p: CallBuilder) -> Steps[Any]:
    """The argument value of a call that has begun. Gives what it holds, or the class `Undecodable` for "decode it"."""
    p.args_at = p.base + p.pos
    found = whole_value(p)
    assert p.call is not None
    if found is not None:
        # What is no object may still be decoded or refused: it is not final.
        p.give(found[0]) if type(found[1]) is dict else p.call.parts.append(found[0])
        return found[1]
    pending = [p.capture()]
    is_object = p.buf[p.pos] == "{"
    try:
        if p.live and is_object:
            yield from _object(p, pending)
        else:
            yield from skip_value(p)
    except (LostJsonEnd, Cut) as lost:
        p.pos = len(p.buf) if isinstance(lost, Cut) else p.pos
        # Kept with the call, but never given out: it is not known to be final.
        p.call.parts.append(p.release(pending[0]))
        raise
    text = p.release(pending[0])
    p.give(text) if is_object else p.call.parts.append(text)
    return Undecodable


def _object(p: CallBuilder, pending: list[Capture]) -> Steps[None]:
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
        _flush(p, pending)
    # The closing brace, or something odd: then the end is found as it is without looking inside.
    yield from skip_nested(p, ["}"])


def _member(p: CallBuilder, pending: list[Capture]) -> Steps[bool]:
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
        yield from _string(p, pending)
    elif char in '"[{':
        yield from skip_value(p)
    else:
        yield from skip_scalar(p)
    return True


def _flush(p: CallBuilder, pending: list[Capture]) -> None:
    text = p.captured(pending[0])
    pending[0] = p.at
    if text:
        p.give(text)


def _string(p: CallBuilder, pending: list[Capture]) -> Steps[None]:
    """A string that is passed on while it arrives."""
    p.pos += 1
    run, pass_on = STRING_RUN, p.pass_on

    def sink(piece: str) -> bool:
        text = p.buf + piece if p.buf else piece
        end = run(text).end()  # type: ignore[union-attr]
        if end == len(text):
            pass_on(text, "", text)
        elif not escape_pending(text, end):
            return False
        elif end:
            pass_on(text[:end], text[end:], text[:end])
        else:
            p.buf = text
        return True

    while True:
        p.pos = pos = STRING_RUN(p.buf, p.pos).end()  # type: ignore[union-attr]
        _flush(p, pending)
        if pos < len(p.buf):
            if p.buf[pos] == '"':
                p.pos += 1
                return
            if not escape_pending(p.buf, pos):
                raise LostJsonEnd
        if p.ended:
            raise Cut
        p.listen(sink)
        yield
        p.sink = None
        pending[0] = p.at  # all before it was given out
