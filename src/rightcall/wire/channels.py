"""Messages with headers:  `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"x": 1}<|call|>`

A header says whether what follows is reasoning, text or a call. The reply's first has no start, because the prompt
ended with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rightcall.formats.spec import Channels, NameThenJson, alternatives
from rightcall.wire.bodies.name_then_json import read_arguments_of
from rightcall.wire.engine import Engine
from rightcall.wire.interrupts import Broken, Cut, NotACall, too_deep
from rightcall.wire.json_stream import whole_value
from rightcall.wire.markers import Probe
from rightcall.wire.prose import Capture, Steps

if TYPE_CHECKING:
    from rightcall.wire.reading import Reading

_MAX_HEADER = 256
_ODD_BEHIND = frozenset("{}]),")  # arguments: another object, brackets too many, or a part that was lost
_WORD = re.compile(r"\s*([^\s<>]+)").match


def first_header(p: Reading, probe: Probe) -> Steps[None]:
    """The prompt may have ended with the start of the first header: then the reply begins inside one."""
    taken = p.capture()
    yield from p.peek()
    if (yield from p.test(probe)):
        yield from _header(p, taken, bare=True)
    else:
        p.hold_blanks(p.release(taken))


def header(p: Reading) -> Steps[None]:
    return _header(p, p.capture(), bare=False)


def _header(p: Reading, taken: Capture, *, bare: bool) -> Steps[None]:
    """Everything up to the message; then what the message is."""
    channels = p.compiled.channels
    assert channels is not None
    size = len(channels.message)
    while True:
        end = p.buf.find(channels.message, p.pos, p.pos + _MAX_HEADER + size)
        if end >= 0 or p.ended or len(p.buf) - p.pos >= _MAX_HEADER + size:
            break
        yield
    recipient, kind = read_header(p.buf[p.pos : max(end, p.pos)], channels)
    if end < 0 or (bare and not channels.to and not (yield from _is_recipient(p, recipient, end + size))):
        if p.ended and end < 0 and len(p.buf) - p.pos < _MAX_HEADER + size:
            p.pos = len(p.buf)
            p.give_back(p.release(taken))
            return
        # No header: its first character is text, and the search goes on behind it.
        p.pos += 1
        p.give_back(p.release(taken))
        return
    p.captures.remove(taken)
    p.thinking = kind == "reasoning"
    if kind is None:
        p.settle()
    p.take_marker(end + size)
    if kind is None and isinstance(p.compiled.format.body, NameThenJson):
        yield from _call(p, recipient or "")


def read_header(text: str, channels: Channels) -> tuple[str | None, str | None]:
    """The tool a message goes to (None: to no tool), and what it holds if it is no call: reasoning or content."""
    for start in alternatives(channels.start):
        text = text.removeprefix(start.strip())
    if not channels.to:
        recipient = text.strip()
        return recipient, channels.kinds.get(recipient)
    recipient = _behind(text, channels.to.strip())
    if recipient:
        return recipient.removeprefix(channels.prefix), channels.kinds.get(recipient)
    return None, channels.kinds.get(_behind(text, channels.channel) if channels.channel else "", "content")


def _behind(text: str, marker: str) -> str:
    _, found, rest = text.partition(marker)
    word = _WORD(rest) if found else None
    return word.group(1) if word else ""


def _is_recipient(p: Engine, name: str | None, after: int) -> Steps[bool]:
    """Is a line at the reply's beginning a header, or just a line of text?"""
    assert p.compiled.channels is not None
    if name in p.compiled.channels.kinds:
        return True
    if p.tools is not None and name in p.tools:
        return True
    while after >= len(p.buf) and not p.ended:
        yield
    return p.buf.startswith("{", after)


def _whole_call(p: Reading, name: str) -> bool:
    """Reads a message to a tool at once, where the text is whole and the message as usual; else takes nothing."""
    start = p.pos
    alone = p.ended and p.compiled.call_close is None and p.index < p.limits.calls
    found = whole_value(p) if alone and p.char() == "{" else None
    end = p.pos
    if found is None or p.char() in _ODD_BEHIND:
        p.pos = start
        return False
    p.whole_call(start, end, name, *found)
    p.pos = end
    return True


def _call(p: Reading, name: str) -> Steps[None]:
    """The message to a tool."""
    if _whole_call(p, name):
        p.fresh = True
        return
    p.raw_begin()
    p.reader = p.compiled.readers[0]
    try:
        p.begin(name)
        char = yield from p.peek()
        if not char or char in '{["':
            yield from read_arguments_of(p, None)
        elif p.compiled.turn_end and (yield from p.test(p.compiled.turn_end)):
            p.raw_end()
            p.finish(empty=True)
        else:
            yield from _raw(p)
    except NotACall:
        p.raw_drop()
        yield from p.rest_is_text()
    except Cut:
        p.pos = len(p.buf)
        p.fail("truncated", "the text ended before the call did; send the whole call again")
    except (Broken, RecursionError) as error:
        broken = error if isinstance(error, Broken) else too_deep(p.limits.depth)
        found = yield from p.resync()
        if p.mend(closed=found):
            p.fresh = True
            return
        p.fail(broken.code, broken.message, broken.path)
    p.fresh = True


def _raw(p: Reading) -> Steps[None]:
    """A message that is not JSON, such as code for an interpreter: kept as it is."""
    p.args_at = p.base + p.pos
    found = yield from p.resync()
    if p.mend(closed=found):
        return
    assert p.call is not None and p.raw is not None
    p.call.parts.append(p.captured(p.raw))
    if not found:
        raise Cut
    p.fail("arguments_not_object", "the arguments must be a JSON object")
