"""Detect the formats that a text may be written in, by their openers, ranked by the calls in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from rightcall.formats import NAMED_ONLY
from rightcall.formats.registered import KnownFormats, known_formats
from rightcall.formats.spec import Channels, Format
from rightcall.parsing.compile import CompiledFormat, compile_format
from rightcall.parsing.markers import (
    ANY_GAP,
    RUN,
    Pat,
    Probe,
    alt,
    blanks,
    literal,
    lookahead,
    seq,
    template,
    templates,
)
from rightcall.parsing.options import ReadOptions
from rightcall.parsing.rescue import read_piece
from rightcall.tools.toolset import ToolLike, Toolset
from rightcall.types import Reply

_WORD = Pat(r"[^\W\d][\w.\-]{0,255}+", r"(?:[^\W\d][\w.\-]{0,255}+)?", sure=RUN)
_FAR = 524_288  # characters searched for an opener behind the first text that it may begin with
_REPEATED = 16  # openers in the ranked text
_WINDOW = 2_560  # characters around the first opener by which formats are ranked


def detect(text: str, *, tools: Toolset | Iterable[ToolLike] | None = None) -> list[str]:
    """Return the names of the formats whose opener occurs in the text, or whose first header or bare calls it may begin
    with, the likeliest first; empty if there are none. Formats that are only used by name are left out.

    - `text`: what a model wrote, whole or a good part of it.
    - `tools`: what may be called, as in `parse`; if given, other calls count as rejected. Unusable functions, classes
      and `Tool` values raise `BadTools`.
    """
    toolset, characters, places = Toolset.of(tools), frozenset(text), dict[str, int]()
    formats = [compile_format(format) for name, format in known_formats().formats.items() if name not in NAMED_ONLY]
    placed = [(each, _opened_at(each, text, characters, places)) for each in formats]
    found = [(each, place) for each, place in placed if place >= 0]
    window = _window(text, min([place for _, place in found], default=0), places)
    # Sorting is stable: among equals the order of the registry decides, common formats first.
    found.sort(key=lambda each: _rank(window, each[0], toolset), reverse=True)
    return [each.format.name for each, _ in found]


def _opened_at(found: CompiledFormat, text: str, characters: frozenset[str], places: dict[str, int]) -> int:
    """Return the first index in `text` of one of the format's openers of calls: of the first in the format's order that
    occurs within 524,288 characters behind its first literal part. Without one, 0 if the text begins with a first
    header without its start, or, in formats without headers, with a character with which a bare call begins (blanks may
    precede it). Else -1.

    - `characters`: those of the text. Most openers have one that it lacks.
    - `places`: a cache that is added to: the first places of openers and of literal text in them, -1 for none.
    """
    for pat, finder in found.openers.of_calls:
        if pat.whole not in places:
            parts = [part for part in pat.opening.split(ANY_GAP) if part]
            new = [part for part in parts if part not in places]
            places |= {part: text.find(part) if characters.issuperset(part) else -1 for part in new}
            is_possible = min([places[part] for part in parts], default=-1) >= 0
            start = places[parts[0]] if is_possible else 0
            places[pat.whole] = finder.first(text, start, start + _FAR) if is_possible else -1
        if places[pat.whole] >= 0:
            return places[pat.whole]
    first = first_headers(known_formats()).get(found.format.name)
    if first is not None:
        return 0 if first.at(text, 0, True) else -1
    firsts = found.bare_calls.first_characters
    return 0 if firsts and text.lstrip()[:1] in tuple(firsts) else -1


def _window(text: str, first: int, markers: Iterable[str]) -> str:
    """Return the part of the text by which formats are ranked: all of a text of up to 2,560 characters, else as many
    from 640 before index `first`, that of the first opener, on. It ends behind the 16th occurrence in it of that
    opener, the longest of `markers` there, if that has more than three characters."""
    window = text[max(0, first - _WINDOW // 4) :][:_WINDOW] if len(text) > _WINDOW else text
    opener = max([marker for marker in markers if text.startswith(marker, first)], key=len, default="")
    pieces = window.split(opener, _REPEATED) if len(opener) > 3 else [window]
    return window[: len(window) - len(pieces[_REPEATED])] if len(pieces) > _REPEATED else window


@lru_cache(4)
def first_headers(known: KnownFormats) -> dict[str, Probe]:
    """Return, by format name, the probe for a reply whose first header has no start, because the prompt ended with it.
    Cached; formats without channels are left out."""
    formats = [format for format in known.formats.values() if format.channels]
    others = {format.channels.channel for format in formats if format.channels and format.channels.channel}
    return {format.name: Probe(_first_header(format, format.channels, others)) for format in formats if format.channels}


def _first_header(format: Format, channels: Channels, others: set[str]) -> Pat:
    """Return the pattern of a reply's first header without its start, which the prompt contained, up to and with its
    message marker or, if the format has one, its channel marker. For a header that is a name on a line it requires `{`
    behind it (not consumed), or the name `all`. `others`: the texts that introduce a channel in any format; a recipient
    with one of them belongs to another format."""
    if channels.to and not channels.channel and channels.message.strip():
        return alt(_up_to_message(channels, others), seq(blanks(), header_without_recipient(format)))
    name = seq(template(channels.to), _WORD) if channels.to else _WORD
    if channels.message.strip():
        return seq(blanks(), name, blanks(), template(channels.channel or channels.message))
    # A header that is a name and a line break must precede arguments, or be the word for text.
    return seq(blanks(), alt(seq(name, literal("\n"), lookahead(literal("{"))), literal("all\n")))


def _up_to_message(channels: Channels, others: set[str]) -> Pat:
    """Return the pattern of a header that is only a recipient, valid or not, and the message marker behind it, in one
    line. It does not match across a marker in `others`, which introduces a channel in another format, if that begins
    with the same character as the message marker."""
    message, stops = channels.message.strip(), "|".join(map(re.escape, sorted(others)))
    head = re.escape(message[0])
    run = rf"(?:[^{head}\n]|(?!{re.escape(message)}{'|' + stops if stops else ''}){head}){{0,256}}+"
    return seq(blanks(), template(channels.to), Pat(run, run, sure=RUN), literal(message))


def header_without_recipient(format: Format) -> Pat:
    """Return the pattern of the message marker (consumed) with the opener of a section of the format behind it, which
    is not consumed: the remainder of a header without a recipient. For formats with headers and sections."""
    message = format.channels.message if format.channels else ""
    opens = templates(format.section[0]) if format.section else []
    return seq(template(message), blanks(), lookahead(alt(*opens)))


def _rank(text: str, found: CompiledFormat, tools: Toolset | None) -> tuple[int, int, int, int]:
    """Parse the text in the format `found` and return the rank of the format; the highest is the likeliest: by more
    runnable calls, then fewer rejected calls, then less text and reasoning, then a format whose calls always have a
    marker."""
    reply = read_whole(text, found, ReadOptions(tools))
    rest = len(reply.content) + len(reply.reasoning)
    return len(reply.calls), -len(reply.refused), -rest, 0 if found.bare_calls.first_characters else 1


def read_whole(text: str, found: CompiledFormat, options: ReadOptions) -> Reply:
    """Parse a text in a known format, without looking for calls in any other, and with the options for a part of
    another reply (`quiet`). Return the reply."""
    return read_piece(text, found, options).reply
