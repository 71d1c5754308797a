"""Parse the header of a message:  `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"x": 1}<|call|>`

A header says whether its message holds reasoning, text or a call. The first of a reply has no start, because the prompt
ended with it. These functions know only the text of a header; `Machine` finds it and applies what it says.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import msgspec

from rightcall.formats import FORMATS
from rightcall.formats.spec import Channels, Format, Special, marker_alternatives
from rightcall.parsing.markers import BLANKS
from rightcall.types import Part, Problem, Reasoning, Reply, Span, Text

if TYPE_CHECKING:
    from rightcall.parsing.compile import CompiledFormat


_NOT_IN_HEADER = frozenset(("section", "call", "body", "end"))
_WORD = re.compile(r"\s*([^\s<>]+)").match


class Header(msgspec.Struct, frozen=True):
    """What a header says of its message.

    - `recipient`: the tool that the message goes to; None: to no tool.
    - `kind`: "reasoning" or "content"; None for a call.
    - `last_recipient`: the tool that it names last, even if it began again behind that without one.
    - `named`: the tools it names, with commas, if they are several or if the call names its tool itself.
    - `is_empty`: it is the model's own header, with neither a recipient nor a channel.
    - `is_header`: False if other structure or arguments stand in it: then its end is that of another header.
    """

    recipient: str | None
    kind: str | None
    last_recipient: str
    named: str
    is_empty: bool
    is_header: bool


@lru_cache(512)  # most headers of a conversation are the same few; shared by all formats
def header_of(compiled: CompiledFormat, text: str) -> Header:
    """Return what a header says; cached. `text`: the header from its start marker, which may be missing, up to the
    message marker, which is left out. Nothing is raised: `is_header` is False for text with a marker of other structure
    behind its first character, or, where headers name the tool, with `{`."""
    channels = compiled.channels
    assert channels is not None
    recipient, kind = _recipient_and_kind(compiled, channels, text)
    start = compiled.headers.starts[0](text.lstrip())
    is_empty = not (text.lstrip()[start.end() :] if start else text).strip()
    holds_more = holds_structure(compiled, text[1:]) or (compiled.headers.has_tool_name and "{" in text)
    last = _word_after(text, channels.to.strip()).removeprefix(channels.prefix) if channels.to else ""
    return Header(recipient, kind, last, _tools_named(compiled, channels, text), is_empty, not holds_more)


def _recipient_and_kind(compiled: CompiledFormat, channels: Channels, text: str) -> tuple[str | None, str | None]:
    """Return the tool that a header addresses, without its prefix (all of the header where no word introduces the
    tool), and the kind of its message; None for a call. The tool is None if it addresses none (an unknown channel is
    then "content"), "" if the name is missing, or if somebody else addresses a tool, whose message is content. A word
    for a kind in place of the tool is returned as the tool too; the kind is then that of the channel, if it has a known
    one. Of a repeated channel token the part behind the last counts."""
    for i, start in enumerate(compiled.headers.starts):
        found = start(text.lstrip())
        text = text.lstrip()[found.end() :] if found else text
        if found and i:
            # The model writes what somebody else says: it calls nothing with it. A message to a tool is reported.
            to = _word_after(text, channels.to.strip()) if channels.to else ""
            return "" if to and to not in channels.kinds else None, "content"
    if not channels.to:
        recipient = text.strip()
        return recipient, channels.kinds.get(recipient)
    if channels.channel:
        # A second channel starts the header again (harmony#114, llama.cpp#27720).
        before, mark, last = text.rpartition(channels.channel)
        text = mark + last if channels.channel in before else text
    recipient = _word_after(text, channels.to.strip())
    channel = _word_after(text, channels.channel) if channels.channel else ""
    # A call may be on any channel, and its tool may lack the prefix (vllm#42454, vllm-mlx#562).
    if recipient or channels.to.strip() in text:
        kind = channels.kinds.get(recipient)
        return recipient.removeprefix(channels.prefix), kind and channels.kinds.get(channel, kind)
    return None, channels.kinds.get(channel, "content")


def _tools_named(compiled: CompiledFormat, channels: Channels, text: str) -> str:
    """Return the different recipients in the header `text`, separated by commas, if there are several. For one
    recipient, or if its word is missing, return all text behind its last introduction, or "" if the format takes the
    name from the header anyway. Also "" without an introduction, or in a format that has none."""
    if not channels.to:
        return ""
    parts = text.split(channels.to.strip())[1:]
    names = [word.group(1).removeprefix(channels.prefix) for part in parts if (word := _WORD(part))]
    if len(set(names)) > 1:
        return ",".join(dict.fromkeys(names))
    # All that stands there: a damaged header names no tool.
    return "" if compiled.headers.has_tool_name or not parts else parts[-1].strip()


def _word_after(text: str, marker: str) -> str:
    """Return the word behind the last occurrence of `marker` in the text and the blanks there, up to white space, `<`
    or `>`; "" without the marker or if no word follows."""
    _, found, rest = text.rpartition(marker)
    word = _WORD(rest) if found else None
    return word.group(1) if word else ""


def holds_structure(compiled: CompiledFormat, text: str) -> bool:
    """Return whether this text contains a marker that belongs in no header: of a section, a call, a body, or the end of
    a turn."""
    scan = compiled.scans.text
    return any(scan.actions[found.lastindex or 0].action in _NOT_IN_HEADER for found in scan.finditer(text))


def header_start_end(compiled: CompiledFormat, text: str) -> int:
    """Return the index behind the start marker, or else the channel token, that this text begins with; 0 if with
    neither."""
    start = next((found.end() for each in compiled.headers.starts if (found := each(text))), 0)
    channel = compiled.channels.channel if compiled.channels is not None else ""
    return start or (len(channel) if channel and text.startswith(channel) else 0)


def closes_only_calls(channels: Channels | None, marker: str) -> bool:
    """Return whether this marker ends messages to tools and no other kind of message, blanks around it excepted; False
    without channels or messages to tools."""
    if channels is None or "call" not in channels.messages:
        return False
    others = [closes.strip() for kind, (_, closes) in channels.messages.items() if kind != "call"]
    return marker.strip() == channels.messages["call"][1].strip() and marker.strip() not in others


# Tokens with a word each, which may stand in a header behind its recipient.
_TOKENS = re.compile(r"(?:\s*+<\|[^<>|\s]{1,32}+\|>\s*+[\w.\-]*+)*+\s*+").match
_RECIPIENT = re.compile(r"\s*+[^\s<>\"{}\[\]]*+").match
_IS_TOKEN = re.compile(r"<(?:\|[^<>|\s]*+\|?+>?+\s*+\w*+)?+(?:<\|?+[^<>|\s]*+\|?+)?+").fullmatch


def may_be_partial_header(channels: Channels, text: str) -> bool:
    """Return whether this text, which follows the start marker or the channel token of a header, consists only of parts
    of a header: tokens with a word each, then a recipient, or the beginning of either at its end. True for "". False if
    words of a message follow."""
    to = channels.to.strip()
    behind = _TOKENS(text)
    rest = text[behind.end() :] if behind else text
    if rest.startswith(to) and (word := _RECIPIENT(rest, len(to))):
        rest = rest[word.end() :].lstrip()
    return not rest or to.startswith(rest) or _IS_TOKEN(rest) is not None


# -- headers without their special tokens ------------------------------------------------------------------------------

_MAX_CHARS = 400_000
_MAX_MESSAGES = 64
_NOTE = Problem(
    "stray_marker",
    "the headers of messages are in the text without their special tokens; they were removed",
    blocking=False,
)


def parse_stripped_messages(text: str, format: Format) -> tuple[Reply, list[Span]] | None:
    """Parse a reply that is nothing but Harmony messages whose special tokens a server removed: analysisLet me
    see.assistantfinalHello

    Return the reply, with a note, and its spans; None for any other text or format, for one message alone, for more
    than 64 and for more than 400,000 characters. The headers are plain words, so they are not certain: reasoning is
    separated from text, and a call in such a message stays text, with its header. Empty messages give no part; a part
    of the same kind as the one before begins with a line break. Evidence: textgen#7374.
    """
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
    return Reply(tuple(parts), (_NOTE,), name), [span for span in spans if span.start < span.end]


@cache
def _header_patterns(format: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return two patterns for headers without their special tokens, for the format of this name: of the header that a
    reply begins with, and of later ones, which begin with the role. The first word of a text is a header only if a
    capital letter or a symbol follows directly."""
    channels = FORMATS[format].channels
    assert channels is not None
    start = next(text for text in marker_alternatives(channels.start) if isinstance(text, Special))
    role = re.escape(str(start).removeprefix(start.tokens[0]))
    words = "|".join(re.escape(word) for word, kind in channels.kinds.items() if word not in ("user", "assistant"))
    to = re.escape(channels.to.strip()) + re.escape(channels.prefix)
    recipient = rf"(?:[ \t]?{to}(?P<name>[\w.\-]{{1,256}}?)(?:[ \t]?(?:json|code))?(?=\s{{0,16}}+\{{))?"
    # A quotation mark or a backtick before it shows that it is only mentioned.
    later = rf"(?<![\"'`\u201c])\s{{0,16}}+{role}(?P<channel>{words}){recipient}"
    first = rf"\s{{0,16}}+(?:{role})?(?P<channel>{words})(?=[ \t]?{to}|[^a-z\s]){recipient}"
    return re.compile(first), re.compile(later)
