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
    Finder,
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
_PART = 3  # characters of a marker that are searched for before the whole
_MAX_PLACES = 4_096  # remembered places of a marker
_FAR = 524_288  # characters searched after so many places that were no opener
_REPEATED = 16  # openers in the ranked text
_WINDOW = 2_560  # characters around the first opener by which formats are ranked


def detect(text: str, *, tools: Toolset | Iterable[ToolLike] | None = None) -> list[str]:
    """Return the names of the formats whose opener occurs in the text, the likeliest first; empty for plain text.

    - `text`: what a model wrote, whole or a good part of it.
    - `tools`: what may be called, as in `parse`; calls of these tools count for a format.
    """
    toolset, places = Toolset.of(tools), _Places(text)
    found = [(each, place) for each in _compiled_formats() if (place := _opened_at(each, places)) >= 0]
    window = _window(text, min([place for _, place in found], default=0), places.first)
    # Sorting is stable: among equals the order of the registry decides, common formats first.
    found.sort(key=lambda each: _rank(window, each[0], toolset), reverse=True)
    return [each.format.name for each, _ in found]


def _compiled_formats() -> list[CompiledFormat]:
    return [compile_format(format) for name, format in known_formats().formats.items() if name not in NAMED_ONLY]


def _opened_at(found: CompiledFormat, places: _Places) -> int:
    """Return the first place of an opener of calls of this format, or -1."""
    for pat, finder in found.openers.of_calls:
        place = places.of_opener(pat, finder)
        if place >= 0:
            return place
    first = first_headers(known_formats()).get(found.format.name)
    if first is not None:
        return 0 if first.at(places.text, 0, True) else -1
    firsts = found.bare_calls.first_characters
    return 0 if firsts and places.text.lstrip()[:1] in tuple(firsts) else -1


class _Places:
    """The first places of openers in a text. Many formats share openers or beginnings of them, so each is searched for
    once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.first: dict[str, int] = {}  # first places of openers, markers and characters; -1 for none
        self._all: dict[str, list[int]] = {}

    def of_opener(self, pat: Pat, finder: Finder) -> int:
        """Return the first place of an opener, or -1."""
        if pat.whole not in self.first:
            starts = [self._of_marker(part) for part in pat.opening.split(ANY_GAP) if part]
            self.first[pat.whole] = self._search(finder, starts[0]) if min(starts, default=-1) >= 0 else -1
        return self.first[pat.whole]

    def _of_marker(self, marker: str) -> int:
        """Return the first place of a literal text, or -1. Most texts lack some of its characters, or its first three,
        which many markers share."""
        for part in (*marker, marker[:_PART], marker):
            if part not in self.first:
                self.first[part] = self.text.find(part)
            if self.first[part] < 0:
                return -1
        return self.first[marker]

    def _search(self, finder: Finder, start: int) -> int:
        """Return the first place of an opener from `start` on, or -1. Testing the places of its literal beginning one
        by one is faster than a search, if they are few."""
        if not finder.anchor or finder.first_of(self.text, [start]) == start:
            return finder.first(self.text, start)
        places = self._places_of(finder.anchor)
        found = finder.first_of(self.text, places)
        return found if found >= 0 or len(places) < _MAX_PLACES else finder.first(self.text, places[-1] + 1, _FAR)

    def _places_of(self, anchor: str) -> list[int]:
        """Return the first places of a literal text."""
        if anchor not in self._all:
            places: list[int] = []
            place = self.first[anchor] if anchor in self.first else self.text.find(anchor)
            while place >= 0 and len(places) < _MAX_PLACES:
                places.append(place)
                place = self.text.find(anchor, place + 1)
            self._all[anchor] = places
        return self._all[anchor]


def _window(text: str, first: int, markers: Iterable[str]) -> str:
    """Return the text around the first opener. It ends where the opener has been repeated so often that more text adds
    nothing."""
    window = text[max(0, first - _WINDOW // 4) :][:_WINDOW] if len(text) > _WINDOW else text
    there = [marker for marker in markers if len(marker) > _PART and text.startswith(marker, first)]
    opener = max(there, key=len, default="")
    pieces = window.split(opener, _REPEATED) if opener else [window]
    return window[: len(window) - len(pieces[_REPEATED])] if len(pieces) > _REPEATED else window


@lru_cache(4)
def first_headers(known: KnownFormats) -> dict[str, Probe]:
    """Return, by format, how a reply begins whose first header has no start, because the prompt ended with it."""
    formats = [format for format in known.formats.values() if format.channels]
    others = {format.channels.channel for format in formats if format.channels and format.channels.channel}
    return {format.name: Probe(_header(format, format.channels, others)) for format in formats if format.channels}


def _header(format: Format, channels: Channels, others: set[str]) -> Pat:
    """Return the pattern of such a first header. `others` are texts that introduce a channel in any format."""
    if channels.to and not channels.channel and channels.message.strip():
        return alt(_up_to_message(channels, others), seq(blanks(), to_nobody(format)))
    name = seq(template(channels.to), _WORD) if channels.to else _WORD
    if channels.message.strip():
        return seq(blanks(), name, blanks(), template(channels.channel or channels.message))
    # A header that is a name and a line break must precede arguments, or be the word for text.
    return seq(blanks(), alt(seq(name, literal("\n"), lookahead(literal("{"))), literal("all\n")))


def _up_to_message(channels: Channels, others: set[str]) -> Pat:
    """Return the pattern of a header that is only a recipient, valid or not, as the format itself accepts it. A
    recipient with the channel marker of another format belongs to that format."""
    message, stops = channels.message.strip(), "|".join(map(re.escape, sorted(others)))
    head = re.escape(message[0])
    run = rf"(?:[^{head}\n]|(?!{re.escape(message)}{'|' + stops if stops else ''}){head}){{0,256}}+"
    return seq(blanks(), template(channels.to), Pat(run, run, sure=RUN), literal(message))


def to_nobody(format: Format) -> Pat:
    """Return the pattern of the remainder of a header without a recipient, before what opens the format's own calls."""
    message = format.channels.message if format.channels else ""
    opens = templates(format.section[0]) if format.section else []
    return seq(template(message), blanks(), lookahead(alt(*opens)))


def _rank(text: str, found: CompiledFormat, tools: Toolset | None) -> tuple[int, int, int, int]:
    """Return the rank of a format for this text: more calls, then fewer rejected calls, then less remaining text, then
    a marker rather than none."""
    reply = read_whole(text, found, ReadOptions(tools))
    bad = len(reply.refused)
    return (
        len(reply.calls),
        -bad,
        -len(reply.content) - len(reply.reasoning),
        0 if found.bare_calls.first_characters else 1,
    )


def read_whole(text: str, found: CompiledFormat, options: ReadOptions) -> Reply:
    """Parse a text in a known format, without looking for calls in any other."""
    return read_piece(text, found, options).reply
