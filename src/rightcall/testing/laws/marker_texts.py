"""The markers of a format: all of them, those that open a call, those that close a value, and their literal pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format, Marker, guess_closing_markers, marker_alternatives

PLACEHOLDER_VALUES = {
    "name": "ping",
    "key": "city",
    "type": "string",
    "id": "call_7",
    "index": "0",
    "number": "1",
    "cite": "0:[1]",
}
_PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDER_VALUES) + r")\}")
_WORDS = {
    "string",
    "json",
    "raw",
    "content",
    "reasoning",
    "call",
    "first",
    "last",
}  # words of the data of a format that are not part of its texts


def fill(template: str, **values: str) -> str:
    """Return a marker with its placeholders replaced by `values`, or else by fixed values."""
    return _PLACEHOLDER.sub(lambda hole: (PLACEHOLDER_VALUES | values)[hole[1]], template)


def markers_of(format: Format) -> list[str]:
    """Return every marker of a format, with its placeholders filled by fixed values, stripped, sorted and without empty
    ones."""
    filled = {fill(text).strip() for marker in _all_markers(format) for text in marker_alternatives(marker)}
    return sorted(filled - {""})


def marker_templates(format: Format) -> set[str]:
    """Return every marker of a format, with its placeholders."""
    return {text for marker in _all_markers(format) for text in marker_alternatives(marker)} - {""}


def _all_markers(format: Format) -> Iterator[Marker]:
    """Yield every marker of a format, and the closing markers that models invent for it. A marker is a template or a
    tuple of alternative templates; some are empty."""
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
    """Return the texts between placeholders of all strings in the JSON text `format`, the data of a format, stripped
    and sorted, without words that are no part of its texts. The result is cached."""
    found = {piece.strip() for text in _strings(json.loads(format)) for piece in _PLACEHOLDER.split(text)[::2]}
    return tuple(sorted(found - {""} - _WORDS))


def literals(format: Format) -> tuple[str, ...]:
    """Return the literal pieces of all markers of a format, the texts between their placeholders, stripped and
    sorted."""
    wire = [format.section, format.call, format.between, format.reasoning, format.content, format.ends]
    bodies = [msgspec.structs.asdict(body) for body in format.bodies]
    protocol = [*format.protocol.done, "<<EOF", "EOF", "({", "})", "//", "/*", "*/"] if format.protocol else []
    channels = msgspec.structs.asdict(format.channels) if format.channels else {}
    return _literals(json.dumps([*wire, *bodies, channels, protocol]))


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings([*value.keys(), *value.values()])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)


def any_literal(format: Format) -> re.Pattern[str]:
    """Return a pattern that matches the longest literal piece of the format's markers that has more than one character;
    one that matches nothing if there is none."""
    longest = sorted((text for text in literals(format) if len(text) > 1), key=len, reverse=True)
    return pattern("|".join(map(re.escape, longest)) or "(?!)")


@lru_cache(512)
def pattern(text: str) -> re.Pattern[str]:
    """Return the compiled pattern, from a cache that is large enough for all formats."""
    return re.compile(text)


# -- openers -----------------------------------------------------------------------------------------------------------


def openers_of(format: Format, name: str = "ping") -> list[str]:
    """Return the stripped markers that open a call of the tool `name`, the longest first. Text with such a marker must
    lead to an attempt or a problem.

    A format without a marker before calls has none. Code fences, which mostly quote, and markers of one or two
    characters are left out."""
    if format.channels is not None:
        found = _message_headers(format, name)
    else:
        found = {
            fill(text, name=name).strip() for marker in _opening_markers(format) for text in marker_alternatives(marker)
        }
    found = {opener if not opener.isalnum() else opener + _list_opener(format) for opener in found}
    return sorted(
        [opener for opener in sorted(found) if len(opener) > 2 and "```" not in opener], key=len, reverse=True
    )


def _list_opener(format: Format) -> str:
    """Return the text that opens a list of calls in the format's first body, which turns a word into a marker (`[` in
    `functools[`); "" if it has no list."""
    body = format.bodies[0]
    return (BODIES[type(body)].wrap(body) or ("",))[0]


def _opening_markers(format: Format) -> Iterator[Marker]:
    """Yield the markers that may open a call, for a format without message headers: those of call and section, and the
    first of each body. A marker of a body that begins with a letter or a digit is left out unless the call has none."""
    yield from (format.call[0], *((format.section or ())[:1]))
    may_be_empty = "" in marker_alternatives(format.call[0])
    for body in format.bodies:
        for marker in BODIES[type(body)].opening(body)[:1]:
            texts = [text for text in marker_alternatives(marker) if not text.startswith("{")]
            yield tuple([text for text in texts if may_be_empty or not text[:1].isalnum()])


def _message_headers(format: Format, name: str) -> set[str]:
    """Return the headers that open a message with a call of this name; the format must have channels."""
    assert format.channels is not None
    header = fill(format.channels.messages["call"][0], name=name)
    return {start.strip() + header for start in marker_alternatives(format.channels.start)}


def closers_of(format: Format, key: str, name: str = "ping") -> list[list[str]]:
    """Return the alternatives of the closing markers of a value, the body, the call and the section, in this order, for
    the first body with raw values. A level without a marker is an empty list. Raises StopIteration if no body has raw
    values."""
    kind, body = next((BODIES[type(body)], body) for body in format.bodies if BODIES[type(body)].value_closing(body))
    pairs = [kind.value_closing(body), kind.closing(body), format.call[1], (format.section or ("", ""))[1]]
    return [
        [fill(text, key=key, name=name) for text in marker_alternatives(marker) if text.strip()] for marker in pairs
    ]
