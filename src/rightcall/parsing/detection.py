"""Which formats may this text be written in? Found by their openers, ranked by what they make of the text."""

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
_PART = 3  # characters of a marker that are looked for before the whole
_FEW = 4_096  # so many places of a marker are remembered
_FAR = 524_288  # characters in which an opener is looked for that so often was none
_NEAR = 131_072  # and behind its first sign, a damaged one
_REPEATED = 16  # how often an opener may be repeated in that
_WINDOW = 2_560  # characters from the first opener on, by which formats are ranked


def detect(text: str, *, tools: Toolset | Iterable[ToolLike] | None = None) -> list[str]:
    """Names of the formats whose opener occurs in the text, the likeliest first; empty for plain text.

    - `text`: what a model wrote, whole or a good part of it.
    - `tools`: what may be called, as in `parse`; calls of these count for a format.
    """
    toolset, places = Toolset.of(tools), _Places(text)
    found = [(each, place) for each in _known() if (place := _opened_at(each, places)) >= 0]
    window = _window(text, min([place for _, place in found], default=0), places.first)
    # Sorting is stable: among equals the order of the registry decides, where the common ones stand first.
    found.sort(key=lambda each: _rank(window, each[0], toolset), reverse=True)
    return [each.format.name for each, _ in found]


def _known() -> list[CompiledFormat]:
    return [compile_format(format) for name, format in known_formats().formats.items() if name not in NAMED_ONLY]


def _opened_at(found: CompiledFormat, places: _Places) -> int:
    """Where the text holds what opens a call in this format; -1 where it does not."""
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
    """Where openers stand in a text. Many formats share one, or what it begins with, so each is looked for once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.first: dict[str, int] = {}  # of openers, markers and characters; -1 for nowhere
        self._all: dict[str, list[int]] = {}

    def of_opener(self, pat: Pat, finder: Finder) -> int:
        """Where an opener stands first, or -1."""
        if pat.whole not in self.first:
            starts = [self._of_marker(part) for part in pat.opening.split(ANY_GAP) if part]
            self.first[pat.whole] = self._search(finder, starts[0]) if min(starts, default=-1) >= 0 else -1
        return self.first[pat.whole]

    def _of_marker(self, marker: str) -> int:
        """Where a marker stands first, or -1. Most texts do not even hold all of its characters, or the first three,
        which many share."""
        for part in (*marker, marker[:_PART], marker):
            if part not in self.first:
                self.first[part] = self.text.find(part)
            if self.first[part] < 0:
                return -1
        return self.first[marker]

    def _search(self, finder: Finder, start: int) -> int:
        """The first places are tried one by one, which is quicker than an expression's own search if they are few."""
        if finder.is_loose:
            return finder.first(self.text, start, start + _NEAR)
        if not finder.anchor or finder.first_of(self.text, [start]) == start:
            return finder.first(self.text, start)
        places = self._few(finder.anchor)
        found = finder.first_of(self.text, places)
        return found if found >= 0 or len(places) < _FEW else finder.first(self.text, places[-1] + 1, _FAR)

    def _few(self, anchor: str) -> list[int]:
        if anchor not in self._all:
            places: list[int] = []
            place = self.first[anchor] if anchor in self.first else self.text.find(anchor)
            while place >= 0 and len(places) < _FEW:
                places.append(place)
                place = self.text.find(anchor, place + 1)
            self._all[anchor] = places
        return self._all[anchor]


def _window(text: str, first: int, markers: Iterable[str]) -> str:
    """The text around the first opener. It ends where that has been repeated so often that more would tell nothing."""
    window = text[max(0, first - _WINDOW // 4) :][:_WINDOW] if len(text) > _WINDOW else text
    there = [marker for marker in markers if len(marker) > _PART and text.startswith(marker, first)]
    opener = max(there, key=len, default="")
    pieces = window.split(opener, _REPEATED) if opener else [window]
    return window[: len(window) - len(pieces[_REPEATED])] if len(pieces) > _REPEATED else window


@lru_cache(4)
def first_headers(known: KnownFormats) -> dict[str, Probe]:
    """How a reply begins whose first header has no start, because the prompt ended with it; by the format's name."""
    formats = [format for format in known.formats.values() if format.channels]
    others = {format.channels.channel for format in formats if format.channels and format.channels.channel}
    return {format.name: Probe(_header(format, format.channels, others)) for format in formats if format.channels}


def _header(format: Format, channels: Channels, others: set[str]) -> Pat:
    if channels.to and not channels.channel and channels.message.strip():
        return alt(_up_to_message(channels, others), seq(blanks(), to_nobody(format)))
    name = seq(template(channels.to), _WORD) if channels.to else _WORD
    if channels.message.strip():
        return seq(blanks(), name, blanks(), template(channels.channel or channels.message))
    # Where the header is nothing but a name and a line break, arguments must follow, or the word for text.
    return seq(blanks(), alt(seq(name, literal("\n"), lookahead(literal("{"))), literal("all\n")))


def _up_to_message(channels: Channels, others: set[str]) -> Pat:
    """A header that is nothing but its recipient, whatever that is: as the format itself reads it, if it was damaged.
    One that another format introduces a channel with is that one's."""
    message, stops = channels.message.strip(), "|".join(map(re.escape, sorted(others)))
    head = re.escape(message[0])
    run = rf"(?:[^{head}\n]|(?!{re.escape(message)}{'|' + stops if stops else ''}){head}){{0,256}}+"
    return seq(blanks(), template(channels.to), Pat(run, run, sure=RUN), literal(message))


def to_nobody(format: Format) -> Pat:
    """The rest of a header that says nothing, before what opens the format's own calls."""
    message = format.channels.message if format.channels else ""
    opens = templates(format.section[0]) if format.section else []
    return seq(template(message), blanks(), lookahead(alt(*opens)))


def _rank(text: str, found: CompiledFormat, tools: Toolset | None) -> tuple[int, int, int, int]:
    """Good calls, then few problems, then little text left over, then a marker rather than none."""
    reply = read_whole(text, found, ReadOptions(tools))
    bad = len(reply.refused)
    return (
        len(reply.calls),
        -bad,
        -len(reply.content) - len(reply.reasoning),
        0 if found.bare_calls.first_characters else 1,
    )


def read_whole(text: str, found: CompiledFormat, options: ReadOptions) -> Reply:
    """A text in a known format, without looking for calls in any other."""
    return read_piece(text, found, options).reply
