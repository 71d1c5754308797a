"""The markers of a format, as data: all of them, those that open a call, those that close a value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format, Marker, guess_closing_markers, marker_alternatives

FILLED = {"name": "ping", "key": "city", "type": "string", "id": "call_7", "index": "0", "number": "1", "cite": "0:[1]"}
_HOLE = re.compile(r"\{(" + "|".join(FILLED) + r")\}")
_WORDS = {
    "string",
    "json",
    "raw",
    "content",
    "reasoning",
    "call",
    "first",
    "last",
}  # of its data, not its wire


def fill(template: str, **values: str) -> str:
    return _HOLE.sub(lambda hole: (FILLED | values)[hole[1]], template)


def markers_of(format: Format) -> list[str]:
    """Every marker of a format, without the white space at its edges, its holes filled."""
    filled = {fill(text).strip() for marker in _markers(format) for text in marker_alternatives(marker)}
    return sorted(filled - {""})


def templates(format: Format) -> set[str]:
    """Every marker of a format, with its holes."""
    return {text for marker in _markers(format) for text in marker_alternatives(marker)} - {""}


def _markers(format: Format) -> Iterator[Marker]:
    yield from (
        guess_closing_markers(format),
        *format.call,
        *(format.section or ()),
        *(format.reasoning or ()),
        *format.ends,
        *(format.citations or ()),
    )
    for pair in format.content:
        yield from pair
    for body in format.bodies:
        yield from BODIES[type(body)].markers(body)
    if format.protocol is not None:
        yield from format.protocol.done
    if format.channels is not None:
        yield from (format.channels.start, format.channels.message, *format.channels.ends)
        for pair in format.channels.messages.values():
            yield from pair


# -- literal pieces ----------------------------------------------------------------------------------------------------


@lru_cache(512)
def _literals(format: str) -> tuple[str, ...]:
    found = {piece.strip() for text in _strings(json.loads(format)) for piece in _HOLE.split(text)[::2]}
    return tuple(sorted(found - {""} - _WORDS))


def literals(format: Format) -> tuple[str, ...]:
    """The literal pieces of all that a format is made of, in a fixed order."""
    wire = [format.section, format.call, format.between, format.reasoning, format.content, format.ends]
    bodies = [msgspec.structs.asdict(body) for body in format.bodies]
    protocol = [*format.protocol.done, "<<EOF", "EOF", "({", "})", "//", "/*", "*/"] if format.protocol else []
    channels = msgspec.structs.asdict(format.channels) if format.channels else {}
    return _literals(json.dumps([*wire, *bodies, channels, protocol]))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings([*value.keys(), *value.values()])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)


def any_literal(format: Format) -> re.Pattern[str]:
    """Matches the longest literal piece of more than one character."""
    longest = sorted((text for text in literals(format) if len(text) > 1), key=len, reverse=True)
    return pattern("|".join(map(re.escape, longest)) or "(?!)")


@lru_cache(512)
def pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


# -- openers -----------------------------------------------------------------------------------------------------------


def openers_of(format: Format, name: str = "ping") -> list[str]:
    """What opens a call of this name, without white space at its edges: such a text is never silent.

    A format that writes nothing before a call has none, and neither has a fence, which shows more than it calls.
    """
    if format.channels is not None:
        found = _headers(format, name)
    else:
        found = {fill(text, name=name).strip() for marker in _opening(format) for text in marker_alternatives(marker)}
    found = {opener if not opener.isalnum() else opener + _list_open(format) for opener in found}
    return sorted(
        [opener for opener in sorted(found) if len(opener) > 2 and "```" not in opener], key=len, reverse=True
    )


def _list_open(format: Format) -> str:
    """What makes a marker of a word: `functools[`."""
    body = format.bodies[0]
    return (BODIES[type(body)].wrap(body) or ("",))[0]


def _opening(format: Format) -> Iterator[Marker]:
    yield from (format.call[0], *((format.section or ())[:1]))
    may_be_empty = "" in marker_alternatives(format.call[0])
    for body in format.bodies:
        for marker in BODIES[type(body)].opening(body)[:1]:
            texts = [text for text in marker_alternatives(marker) if not text.startswith("{")]
            yield tuple([text for text in texts if may_be_empty or not text[:1].isalnum()])


def _headers(format: Format, name: str) -> set[str]:
    assert format.channels is not None
    header = fill(format.channels.messages["call"][0], name=name)
    return {start.strip() + header for start in marker_alternatives(format.channels.start)}


def closers_of(format: Format, key: str, name: str = "ping") -> list[list[str]]:
    """Of the first tagged body: the closes of a value, the body, the call and the section, each all its ways."""
    kind, body = next((BODIES[type(body)], body) for body in format.bodies if BODIES[type(body)].value_closing(body))
    pairs = [kind.value_closing(body), kind.closing(body), format.call[1], (format.section or ("", ""))[1]]
    return [
        [fill(text, key=key, name=name) for text in marker_alternatives(marker) if text.strip()] for marker in pairs
    ]
