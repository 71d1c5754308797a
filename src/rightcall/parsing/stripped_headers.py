"""Harmony messages whose special tokens a server removed:  analysisLet me see.assistantfinalHello

Their headers are plain words, so they are not certain: reasoning is separated from text, and a call in such a message
stays text. Evidence: textgen#7374.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from rightcall.formats import FORMATS
from rightcall.formats.spec import Format, Special, alternatives
from rightcall.parsing.markers import BLANKS
from rightcall.parsing.piece import Piece
from rightcall.types import Part, Problem, Reasoning, Reply, Span, Text

_MAX_CHARS = 400_000
_MAX_MESSAGES = 64
_NOTE = Problem(
    "stray_marker",
    "the headers of messages are in the text without their special tokens; they were removed",
    blocking=False,
)


def stripped_messages(text: str, format: Format) -> Piece | None:
    """Parse a reply that is nothing but messages without their tokens; return None for any other text."""
    name = "harmony" if format.name == "auto" else format.name
    channels = FORMATS[name].channels if name in FORMATS else None
    if channels is None or not channels.channel or len(text) > _MAX_CHARS:
        return None
    first, later = _header_patterns(name)
    head = first.match(text)
    # A single message may be text that begins with such a word.
    headers = [head, *later.finditer(text, head.end())] if head is not None else []
    if not 1 < len(headers) <= _MAX_MESSAGES:
        return None
    parts: list[Part] = []
    spans: list[Span] = []
    ends = [header.start() for header in headers[1:]] + [len(text)]
    for header, end in zip(headers, ends, strict=True):
        is_call = bool(header["name"])  # its header says what the call would be, so it is kept
        body = text[header.start() if is_call else header.end() : end]
        start = end - len(body.lstrip(BLANKS))
        body = body.strip(BLANKS)
        is_thought = channels.kinds[header["channel"]] == "reasoning" and not is_call
        made = (Reasoning if is_thought else Text)(body)
        if body and parts and type(parts[-1]) is type(made):  # two messages of one kind
            made = msgspec.structs.replace(made, text="\n" + body)
        parts += [made] if body else []
        spans += [
            Span(header.start(), start, "marker"),
            Span(start, start + len(body), "reasoning" if is_thought else "text"),
            Span(start + len(body), end, "marker"),
        ]
    return Piece(Reply(tuple(parts), (_NOTE,), name), [span for span in spans if span.start < span.end])


@cache
def _header_patterns(format: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The header that a reply begins with, and later ones, which begin with the role. The first word of a text is its
    header only if a capital letter or a symbol follows directly."""
    channels = FORMATS[format].channels
    assert channels is not None
    start = next(text for text in alternatives(channels.start) if isinstance(text, Special))
    role = re.escape(str(start).removeprefix(start.tokens[0]))
    words = "|".join(re.escape(word) for word, kind in channels.kinds.items() if word not in ("user", "assistant"))
    to = re.escape(channels.to.strip()) + re.escape(channels.prefix)
    recipient = rf"(?:[ \t]?{to}(?P<name>[\w.\-]{{1,256}}?)(?:[ \t]?(?:json|code))?(?=\s{{0,16}}+\{{))?"
    # A quotation mark or a backtick before it shows that it is only mentioned.
    later = rf"(?<![\"'`\u201c])\s{{0,16}}+{role}(?P<channel>{words}){recipient}"
    first = rf"\s{{0,16}}+(?:{role})?(?P<channel>{words})(?=[ \t]?{to}|[^a-z\s]){recipient}"
    return re.compile(first), re.compile(later)
