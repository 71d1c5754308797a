"""Which formats may this text be written in? Found by their openers, ranked by what they make of the text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from rightcall.declare.toolset import ToolLike, Toolset
from rightcall.formats import FORMATS
from rightcall.formats.spec import Channels
from rightcall.ids import Ids
from rightcall.types import Reply
from rightcall.wire.compile import Compiled, compiled
from rightcall.wire.fold import Fold
from rightcall.wire.markers import RUN, Pat, Probe, alt, blanks, literal, look, seq, template
from rightcall.wire.options import ReadOptions
from rightcall.wire.reading import Reading

_WORD = Pat(r"[A-Za-z_][\w.\-]{0,255}+", r"(?:[A-Za-z_][\w.\-]{0,255}+)?", sure=RUN)
_OPENERS = frozenset(("section", "call", "body", "header"))


def detect(text: str, *, tools: Toolset | Iterable[ToolLike] | None = None) -> list[str]:
    """Names of the formats whose opener occurs in the text, the likeliest first; empty for plain text."""
    toolset = Toolset.of(tools)
    found = [each for each in map(compiled, FORMATS.values()) if applies(each, text)]
    # Sorting is stable: among equals the order of the registry decides, where the common ones stand first.
    found.sort(key=lambda each: _rank(text, each, toolset), reverse=True)
    return [each.format.name for each in found]


def applies(found: Compiled, text: str) -> bool:
    """Does the text hold what opens a call in this format?"""
    if any(found.outside.actions[m.lastindex or 0] in _OPENERS for m in found.outside.finditer(text)):
        return True
    first = first_headers().get(found.format.name)
    if first is not None:
        return bool(first.at(text, 0, True))
    return bool(found.bare) and text.lstrip()[:1] in tuple(found.bare)


@lru_cache(1)
def first_headers() -> dict[str, Probe]:
    """How a reply begins whose first header has no start, because the prompt ended with it; by the format's name."""
    return {format.name: Probe(_header(format.channels)) for format in FORMATS.values() if format.channels}


def _header(channels: Channels) -> Pat:
    name = seq(template(channels.to), _WORD) if channels.to else _WORD
    if channels.message.strip():
        return seq(blanks(), name, blanks(), template(channels.channel or channels.message))
    # Where the header is nothing but a name and a line break, arguments must follow, or the word for text.
    return seq(blanks(), alt(seq(name, literal("\n"), look(literal("{"))), literal("all\n")))


def _rank(text: str, found: Compiled, tools: Toolset | None) -> tuple[int, int, int, int]:
    """Good calls, then few problems, then little text left over, then a marker rather than none."""
    reply = read_whole(text, found, ReadOptions(tools, rescue=False))
    bad = {problem.call for problem in reply.problems if problem.blocking}
    return len(reply.calls), -len(bad), -len(reply.content) - len(reply.reasoning), 0 if found.bare else 1


def read_whole(text: str, found: Compiled, options: ReadOptions) -> Reply:
    """A text in a known format, without looking for calls in any other."""
    reading = Reading(found, options, Ids())
    reading.feed(text)
    reading.close()
    fold = Fold()
    fold.add(reading.out)
    return fold.reply(found.format.name, None)
