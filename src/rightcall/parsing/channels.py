"""Messages with headers:  `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"x": 1}<|call|>`

A header says whether what follows is reasoning, text or a call. The reply's first has no start, because the prompt
ended with it. Nothing in a message of text is a call.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from rightcall.formats.spec import Channels, Special
from rightcall.parsing.buffer import Capture, Steps
from rightcall.parsing.closes_of_calls import end_message
from rightcall.parsing.markers import BLANKS, MAX_BLANKS, Probe
from rightcall.parsing.messages_to_tools import read_message_to
from rightcall.parsing.states import InChannel, InText

if TYPE_CHECKING:
    from rightcall.parsing.compile import Match
    from rightcall.parsing.machine import Machine

_MAX_HEADER = 256
_NO_HEADER = frozenset(("section", "call", "body", "end"))
_WORD = re.compile(r"\s*([^\s<>]+)").match
_RECIPIENT = re.compile(r"\s*+[^\s<>\"{}\[\]]*+").match
_IS_TOKEN = re.compile(r"<(?:\|[^<>|\s]*+\|?+>?+\s*+\w*+)?+(?:<\|?+[^<>|\s]*+\|?+)?+").fullmatch
_IS_NAME = re.compile(r"[\w$.\-]++").fullmatch
# What may stand in a header behind its recipient: tokens, each with a word.
_MANY = 64  # headers that are kept: their words come from the model
_REST = re.compile(r"(?:\s*+<\|[^<>|\s]{1,32}+\|>\s*+[\w.\-]*+)*+\s*+").match


def first_header(m: Machine, probe: Probe) -> Steps[None]:
    """The prompt may have ended with the start of the first header: then the reply begins inside one."""
    p = m.p
    taken = p.capture()
    if not p.char():
        yield from p.peek()
    found = probe.at(p.buf, p.pos, p.ended)
    if found is None:
        found = yield from p.test(probe)
    if found:
        yield from _header(m, taken, bare=True)
    else:
        m.output.hold_blanks(p.release(taken), p.at)


def next_header(m: Machine, probe: Probe) -> Steps[None]:
    """Where a header is a line, it may stand behind the end of a message alone."""
    p = m.p
    taken = p.capture()
    yield from p.peek()
    m.output.hold_blanks(p.release(taken), p.at)
    yield from first_header(m, probe)


def header(m: Machine) -> Steps[None]:
    return _header(m, m.p.capture(), bare=False)


def _header(m: Machine, taken: Capture, *, bare: bool) -> Steps[None]:
    """Everything up to the message; then what the message is."""
    p, channels = m.p, m.compiled.channels
    assert channels is not None
    marker = m.compiled.message_marker
    size = len(marker)
    end = p.buf.find(marker, p.pos, p.pos + _MAX_HEADER + size)
    if end < 0:
        end = yield from _message_start(m, marker)
    header = _kept_header(m, p.buf[p.pos : max(end, p.pos)])
    recipient, kind = header.recipient, header.kind
    # The marker may be letters.
    is_written = p.told is not None and isinstance(marker, Special) and p.is_letters(end, end + size)
    is_header = end >= 0 and not header.holds_more and not is_written
    length = end - p.pos
    # What is known of it however the text is cut.
    known = p.buf[p.pos : end if end >= 0 else p.pos + _MAX_HEADER]
    if is_header and bare and not channels.to and recipient:
        is_header = yield from _is_recipient(m, recipient, length + size)
    if is_header:
        if kind is None and not recipient and m.compiled.is_named_by_header:
            kind = yield from _to_nobody(m, length + size)
        p.drop(taken)
        yield from _enter(m, recipient, kind, p.pos + length, p.pos + length + size)
    elif lone := _lone_header(m, known, size, end >= 0):
        p.drop(taken)
        yield from _enter(m, lone[0], None, lone[1], lone[1])
        p.said = p.said and lone[0]  # where the call says its name again
    elif told := _lone_channel(m, known):
        p.drop(taken)
        p.note("stray_marker", f"the header at {p.at} has no end; what follows it is its message")
        yield from _enter(m, None, told[0], told[1], told[1])
    else:
        # Its first character is text, and the search goes on behind it.
        is_cut = p.ended and end < 0 and len(p.buf) - p.pos < _MAX_HEADER + size
        is_cut = is_cut and not _holds_more(m, p.buf[p.pos + 1 :])
        started = _start_of(m, known)
        lead = started or (len(channels.channel) if known.startswith(channels.channel) else 0)
        if lead and channels.channel and not _is_header_begun(known[started:], channels):
            p.drop(taken)
            p.note("stray_marker", f"the header at {p.at} has no end; what follows it is text")
            m.marker(p.pos + lead)
            return
        if is_cut and m.compiled.is_header_token and not bare:
            p.drop(taken)
            begun = p.buf[p.pos : p.pos + _MAX_HEADER]
            others = any(start(begun) for start in m.compiled.header_starts[1:])
            m.marker(len(p.buf))
            m.forget_thought()
            if others:
                p.note("stray_marker", "the text ended where it began to say what somebody else says; that was dropped")
            else:
                said = "the text ended inside the header of a message, where a tool call may have begun"
                p.problem("truncated", said)
            return
        p.pos = len(p.buf) if is_cut else p.pos + 1
        m.output.say_exactly(p.release(taken), p.at)


def _to_nobody(m: Machine, ahead: int) -> Steps[Literal["content"] | None]:
    """What the message is that begins so far ahead, and goes to nobody: arguments are those of a call without a name,
    and anything else is text."""
    p = m.p
    while True:
        begun = p.buf[p.pos + ahead : p.pos + ahead + MAX_BLANKS]
        if begun.strip(BLANKS) or len(begun) == MAX_BLANKS or p.ended:
            return None if begun.lstrip(BLANKS).startswith("{") else "content"
        yield


def _holds_arguments(m: Machine, text: str) -> bool:
    """Do arguments stand in the header? Then the message began before its marker."""
    return m.compiled.is_named_by_header and "{" in text


def _lone_channel(m: Machine, text: str) -> tuple[str, int] | None:
    """A header that says what its message holds, and goes on with it at once: that, and where the message begins."""
    channels = m.compiled.channels
    if channels is None or not channels.channel:
        return None
    start = _start_of(m, text)
    if not text.startswith(channels.channel, start):
        return None
    word = _WORD(text, start + len(channels.channel))
    kind = channels.kinds.get(word.group(1)) if word else None
    if word is None or kind is None or _is_header_begun(text[word.end() :], channels):
        return None
    return kind, m.p.pos + word.end()


def _start_of(m: Machine, text: str) -> int:
    """Where the start of a header ends that this begins with; 0 where it does not."""
    return next((found.end() for each in m.compiled.header_starts if (found := each(text))), 0)


def _is_header_begun(text: str, channels: Channels) -> bool:
    """Is this nothing but what stands in a header, as far as it came? Words of a message are more."""
    to = channels.to.strip()
    behind = _REST(text)
    rest = text[behind.end() :] if behind else text
    if rest.startswith(to) and (word := _RECIPIENT(rest, len(to))):
        rest = rest[word.end() :].lstrip()
    return not rest or to.startswith(rest) or _IS_TOKEN(rest) is not None


def _lone_header(m: Machine, text: str, size: int, ended: bool) -> tuple[str, int] | None:
    """A header to a tool that no marker of a message follows, because the arguments stand there at once, or the call
    ends, or the text: the tool, and where its message begins. `ended`: a marker follows, and what should be the header
    is none."""
    p, channels = m.p, m.compiled.channels
    if channels is None:
        return None
    if channels.to and channels.to.strip() not in text:
        return None  # it goes to nobody
    scan = m.compiled.text
    stops = (found for found in scan.finditer(text, 1) if scan.actions[found.lastindex or 0].action in _NO_HEADER)
    stop = next(stops, None)
    is_cut = p.ended and len(p.buf) - p.pos < _MAX_HEADER + size if not ended else _holds_arguments(m, text)
    is_cut = is_cut and stop is None
    text = text[: stop.start()] if stop else text
    begun = _message_of(text, channels) if channels.to and m.compiled.is_named_by_header else len(text)
    ends = stop is not None and m.compiled.is_named_by_header and ends_call(m, stop.group())
    if not is_cut and not ends and not text.startswith("{", begun):
        return None
    recipient, kind = read_header(text[:begun], channels, m.compiled.header_starts)
    if recipient and (word := _WORD(recipient)):
        recipient = word.group(1)  # behind it stands what a message begins with, as far as it came
    is_tool = recipient in p.tools if p.tools is not None else bool(channels.to)
    return (recipient, p.pos + begun) if recipient and kind is None and is_tool else None


def _message_of(text: str, channels: Channels) -> int:
    """Where the message begins, of a header to a tool that no marker ends: behind the recipient, and what else a header
    says."""
    head, found, rest = text.partition("{")[0].rpartition(channels.to.strip())
    word = _WORD(rest)
    behind = _REST(rest, word.end() if word else 0)
    return len(head + found) + behind.end() if behind else len(text)


def _enter(m: Machine, recipient: str | None, kind: str | None, end: int, start: int) -> Steps[None]:
    """The message begins at `start` whose header ends at `end`."""
    p, channels = m.p, m.compiled.channels
    assert channels is not None
    m.leave_for_call()
    is_named, header = m.compiled.is_named_by_header, _kept_header(m, p.buf[p.pos : end])
    if not is_named and header.is_empty:
        _turn_to_nobody(m)
    else:
        _turn_to(m, kind)
    if kind is not None and (recipient == "" or _was_to_tool(m, p.buf[p.pos : end])):
        m.due_to = p.index
        m.forget_thought()
    p.said = "" if kind is not None else header.said
    m.marker(start)
    if kind is None and is_named:
        yield from read_message_to(m, recipient or "")


def hear_name(m: Machine, opener: str) -> bool:
    """The opener of a call may say its name, which the call itself says again. False if the text ends in the opener."""
    if (edges := m.compiled.name_edges) is None:
        return True
    m.p.said = opener.strip().removeprefix(edges[0]).partition(edges[1][:1])[0].strip()
    return edges[1] in opener


def _turn_to(m: Machine, kind: str | None) -> None:
    """A header says what its message holds; None for a call."""
    end_message(m)
    m.due_to = m.p.index if kind is None else None
    m.words_from = m.output.text_chars
    m.output.turn(thinking=kind == "reasoning")
    m.output.is_placed = m.output.is_placed or kind == "content"
    if kind is not None:
        m.state = InChannel("reasoning" if kind == "reasoning" else "content")
    else:
        m.state = InText()
        m.output.settle()


def _says_nothing(m: Machine, header: str) -> bool:
    """Is this the model's own header, with neither a recipient nor a channel?"""
    start = m.compiled.header_starts[0](header.lstrip())
    return not (header.lstrip()[start.end() :] if start else header).strip()


def _turn_to_nobody(m: Machine) -> None:
    """A header that says nothing of its message, where calls say their names themselves: it may hold words or calls."""
    _turn_to(m, None)
    m.due_to = None


def _message_start(m: Machine, marker: str) -> Steps[int]:
    """Where the marker stands that a message begins with; -1 where none does, or too far away."""
    p, most = m.p, _MAX_HEADER + len(marker)
    while True:
        end = p.buf.find(marker, p.pos, p.pos + most)
        if end >= 0 or p.ended or len(p.buf) - p.pos >= most:
            return end
        yield


class Header(msgspec.Struct, frozen=True):
    """What a header says: the first two as `read_header` does. `said`: which tools, as `_said_beside` does. `is_empty`:
    it is the model's own, with neither a recipient nor a channel. `holds_more`: other structure, or arguments, stand in
    it, so that it is none."""

    recipient: str | None
    kind: str | None
    said: str
    is_empty: bool
    holds_more: bool


def _kept_header(m: Machine, text: str) -> Header:
    """What this header says. Most headers of a conversation are the same few."""
    compiled = m.compiled
    found = compiled.headers.get(text)
    if found is None:
        channels = compiled.channels
        assert channels is not None
        recipient, kind = read_header(text, channels, compiled.header_starts)
        said = _said_beside(text, channels, compiled.is_named_by_header)
        holds_more = _holds_more(m, text[1:]) or _holds_arguments(m, text)
        if len(compiled.headers) > _MANY:
            compiled.headers.clear()
        found = compiled.headers[text] = Header(recipient, kind, said, _says_nothing(m, text), holds_more)
    return found


def _holds_more(m: Machine, text: str) -> bool:
    """Does what should be a header hold other structure? Then its end is that of another."""
    scan = m.compiled.text
    return any(scan.actions[found.lastindex or 0].action in _NO_HEADER for found in scan.finditer(text))


def read_header(text: str, channels: Channels, starts: list[Match]) -> tuple[str | None, str | None]:
    """The tool a message goes to (None: to no tool), and what it holds if it is no call: reasoning or content."""
    for i, start in enumerate(starts):
        found = start(text.lstrip())
        text = text.lstrip()[found.end() :] if found else text
        if found and i:
            # Somebody else's: the model made it up, and calls nothing with it. To a tool it is told.
            to = _behind(text, channels.to.strip()) if channels.to else ""
            return "" if to and to not in channels.kinds else None, "content"
    if not channels.to:
        recipient = text.strip()
        return recipient, channels.kinds.get(recipient)
    if channels.channel:
        # A second channel starts the header again.
        before, mark, last = text.rpartition(channels.channel)
        text = mark + last if channels.channel in before else text
    recipient = _behind(text, channels.to.strip())
    channel = _behind(text, channels.channel) if channels.channel else ""
    if recipient or channels.to.strip() in text:
        kind = channels.kinds.get(recipient)
        return recipient.removeprefix(channels.prefix), kind and channels.kinds.get(channel, kind)
    return None, channels.kinds.get(channel, "content")


def _said_beside(text: str, channels: Channels, is_named: bool) -> str:
    """The names of tools in a header to one, where there are several, or where the call names itself too: then it is
    all that stands there, which is no name if the header was damaged."""
    if not channels.to:
        return ""
    parts = text.split(channels.to.strip())[1:]
    if len(parts) > 1:
        names = [word.group(1).removeprefix(channels.prefix) for part in parts if (word := _WORD(part))]
        if len(set(names)) > 1:
            return ",".join(dict.fromkeys(names))
    return "" if is_named or not parts else parts[-1].strip()


def _was_to_tool(m: Machine, text: str) -> bool:
    """Did the header name a declared tool before it was started again without one?"""
    channels, tools = m.compiled.channels, m.p.tools
    if channels is None or not channels.to or tools is None:
        return False
    named = _behind(text, channels.to.strip()).removeprefix(channels.prefix)
    return named in tools


def ends_call(m: Machine, marker: str) -> bool:
    """Does this end only messages to tools?"""
    channels = m.compiled.channels
    if channels is None or "call" not in channels.messages:
        return False
    others = [closes for kind, (_, closes) in channels.messages.items() if kind != "call"]
    return marker.strip() == channels.messages["call"][1].strip() and marker.strip() not in map(str.strip, others)


def _behind(text: str, marker: str) -> str:
    """The word behind the marker. Where the marker stands again, the header began again."""
    _, found, rest = text.rpartition(marker)
    word = _WORD(rest) if found else None
    return word.group(1) if word else ""


def _is_recipient(m: Machine, name: str, ahead: int) -> Steps[bool]:
    """Is a line at the reply's beginning, whose message would begin so far ahead, a header, or just a line of text?"""
    p = m.p
    assert m.compiled.channels is not None
    if name in m.compiled.channels.kinds or (p.tools is not None and name in p.tools):
        return True
    if not _IS_NAME(name):
        return False
    while p.pos + ahead >= len(p.buf) and not p.ended:
        yield
    return p.buf.startswith("{", p.pos + ahead)
