"""Messages whose special tokens a server left out:  analysisLet me see.assistantcommentary to=functions.f json{"x": 1}

What is left of a header are its words, and no longer certain: so what was thought is told from what was said, and a
call in it is text, unless calls are to be found anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec

from rightcall.formats import FORMATS
from rightcall.formats.spec import Channels, Format, Special, alternatives
from rightcall.parsing.compile import compiled
from rightcall.parsing.markers import BLANKS
from rightcall.parsing.options import ReadOptions
from rightcall.parsing.piece import Piece, read_piece
from rightcall.parsing.rescue import fits
from rightcall.types import Part, Problem, Reasoning, Reply, Span, SpanKind, Text

Find = Callable[[str], re.Match[str] | None]
FindAll = Callable[[str, int], Iterator[re.Match[str]]]
_LONGEST = 400_000
_MOST = 64  # messages
_NOTE = "the words of headers stand in the text without their special tokens, and were taken for what they are"
_TOLD = Problem("stray_marker", _NOTE, blocking=False)


class _Message(NamedTuple):
    """A message: what its channel holds, the tool it goes to, and where its header and its text begin and end."""

    kind: str
    name: str
    start: int
    body: int
    end: int


def stripped_messages(text: str, format: Format, options: ReadOptions) -> Piece | None:
    """What a reply holds that is nothing but messages without their tokens; None for any other text."""
    name = "harmony" if format.name == "auto" else format.name
    channels = FORMATS[name].channels if name in FORMATS else None
    if channels is None or not channels.channel or len(text) > _LONGEST:
        return None
    found = _messages(text, name, channels)
    return _made(text, found, name, options) if _are_enough(found, options) else None


def _are_enough(found: list[_Message], options: ReadOptions) -> bool:
    """Is it certain that these are messages? One alone may begin with such a word, unless it goes to a tool."""
    if len(found) == 1:
        return bool(found[0].name) and options.rescue == "anywhere"
    return 1 < len(found) <= _MOST


def _made(text: str, found: list[_Message], name: str, options: ReadOptions) -> Piece:
    parts: list[Part] = []
    spans: list[Span] = []
    for each in found:
        made, inside = _read(text, each, name, options)
        parts += _apart(parts, made)
        spans += inside
    return Piece(Reply(tuple(parts), (_TOLD,), name), [span for span in spans if span.start < span.end])


def _messages(text: str, name: str, channels: Channels) -> list[_Message]:
    first, others = _headers(name)
    head = first(text)
    if head is None:
        return []
    heads = [head, *others(text, head.end())]
    ends = [other.start() for other in heads[1:]] + [len(text)]
    return [
        _Message(channels.kinds[head["channel"]], head["name"] or "", head.start(), head.end(), end)
        for head, end in zip(heads, ends, strict=True)
    ]


@lru_cache(4)
def _headers(format: str) -> tuple[Find, FindAll]:
    """The header that a reply begins with, and those behind it, which begin with the role. The first word of a text is
    its header only where a capital letter or a sign follows at once, as in no word."""
    channels = FORMATS[format].channels
    assert channels is not None
    start = next(text for text in alternatives(channels.start) if isinstance(text, Special))
    role = re.escape(str(start).removeprefix(start.tokens[0]))
    words = "|".join(re.escape(word) for word, kind in channels.kinds.items() if word not in ("user", "assistant"))
    to = re.escape(channels.to.strip()) + re.escape(channels.prefix)
    rest = rf"(?:[ \t]?{to}(?P<name>[\w.\-]{{1,256}}?)(?:[ \t]?(?:json|code))?(?=\s{{0,16}}+\{{))?"
    # A quotation mark or a tick before it says that it is only spoken of.
    later = rf"(?<![\"'`\u201c])\s{{0,16}}+{role}(?P<channel>{words}){rest}"
    first = rf"\s{{0,16}}+(?:{role})?(?P<channel>{words})(?=[ \t]?{to}|[^a-z\s]){rest}"
    return re.compile(first).match, re.compile(later).finditer


def _read(text: str, message: _Message, format: str, options: ReadOptions) -> tuple[list[Part], list[Span]]:
    """What one message is."""
    body = text[message.body : message.end]
    begin = message.body + len(body) - len(body.lstrip(BLANKS))
    end = message.body + len(body.rstrip(BLANKS))
    if message.name and (call := _call(text[begin:end], message.name, format, options)):
        spans = [Span(message.start, begin, "marker"), Span(begin, end, "call"), Span(end, message.end, "marker")]
        return list(call), spans
    if message.name:  # its header says what it would be
        begin = message.start + len(text[message.start : end]) - len(text[message.start : end].lstrip(BLANKS))
    said = text[begin:end]
    kind: SpanKind = "reasoning" if message.kind == "reasoning" and not message.name else "text"
    parts: list[Part] = [(Reasoning if kind == "reasoning" else Text)(said)] if said else []
    return parts, [Span(message.start, begin, "marker"), Span(begin, end, kind), Span(end, message.end, "marker")]


def _call(arguments: str, name: str, format: str, options: ReadOptions) -> tuple[Part, ...]:
    """The call with these arguments, if it may run, and such calls are wanted."""
    channels = FORMATS[format].channels
    if options.rescue != "anywhere" or channels is None:
        return ()
    opens, closes = channels.messages["call"]
    written = opens.replace("{name}", name) + arguments + closes
    reply = read_piece(written, compiled(FORMATS[format]), options).reply
    return reply.parts if fits(reply, options.tools) and len(reply.parts) == 1 else ()


def _apart(parts: list[Part], made: list[Part]) -> list[Part]:
    """Two messages of one kind are told apart by a line break."""
    if parts and made and isinstance(made[0], (Text, Reasoning)) and type(parts[-1]) is type(made[0]):
        return [msgspec.structs.replace(made[0], text="\n" + made[0].text), *made[1:]]
    return made
