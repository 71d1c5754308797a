"""Draft a format from a template's output: the text around known calls shows the markers.

Recognised are calls with JSON arguments (an object with name and arguments, or a name and then an object), and calls
with tagged arguments. A draft that does not parse back to the same calls is discarded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from rightcall.errors import BadFormat, CannotCarry
from rightcall.formats.spec import Body, Envelope, Format, NameThenJson, Params, replace
from rightcall.formats.templates.tag_drafting import draft_tagged_call, find_tagged_call
from rightcall.formats.toml import check_format_value
from rightcall.types import Call

_NAME = "my_format"
_MOST_OBJECTS = 400  # objects of a text that are looked at


class DraftedCall(NamedTuple):
    """The position of a call, and the body that would parse it."""

    start: int
    end: int
    body: Body


def draft_formats(text: str, calls: tuple[Call, ...]) -> Iterator[Format]:
    """Yield formats that could have written these calls as this text, the most complete first. They are valid, but have
    not been tried: parsing with them may not find the calls."""
    for find in (_find_json_call, _find_tagged_call):
        found = _locate_calls(text, calls, find)
        for format in _guess_markers(text, found) if found else ():
            try:
                check_format_value(format)
            except (BadFormat, CannotCarry):
                continue
            yield format


Finder = Callable[[str, int, Call, DraftedCall | None], DraftedCall | None]


def _locate_calls(text: str, calls: tuple[Call, ...], find: Finder) -> list[DraftedCall]:
    """Return the position and the body of each call in order, as `find` finds them; [] if one is missing or its body
    differs from the first."""
    found: list[DraftedCall] = []
    for call in calls:
        place = find(text, found[-1].end if found else 0, call, found[0] if found else None)
        if place is None or (found and place.body != found[0].body):
            return []
        found.append(place)
    return found


def _find_json_call(text: str, begin: int, call: Call, first: DraftedCall | None) -> DraftedCall | None:
    """Return the next occurrence of the call with JSON arguments from `begin` on; None if there is none. `first` is not
    used."""
    return next(_iterate_json_calls(text, begin, call), None)


def _find_tagged_call(text: str, begin: int, call: Call, first: DraftedCall | None) -> DraftedCall | None:
    """Return the next occurrence of the call with tagged arguments from `begin` on; None if there is none. A call after
    the `first` must be written like it, since one argument alone does not show what separates two."""
    if first is None:
        found = draft_tagged_call(text, begin, call)
        return None if found is None else DraftedCall(*found)
    assert isinstance(first.body, Params)
    again = find_tagged_call(text, begin, call, first.body)
    return None if again is None else DraftedCall(*again, first.body)


def _iterate_json_calls(text: str, begin: int, call: Call) -> Iterator[DraftedCall]:
    """Yield each occurrence of the call with its arguments as JSON from `begin` on, with the body that parses it. At
    most 400 objects are tried."""
    at, decoder = text.find("{", begin), json.JSONDecoder()
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
            body = _guess_body(value, text[begin:at], call)
        except ValueError:
            body = None
        if isinstance(body, Envelope):
            yield DraftedCall(at, end, body)
        elif body is not None:
            yield DraftedCall(begin + text[begin:at].rindex(call.name), end, body)
        at = text.find("{", at + 1)


def _guess_body(value: dict[str, Any], before: str, call: Call) -> Body | None:
    """Return the body that parses this JSON object, preceded by the text `before`, as the call; None if it is not the
    call."""
    if value == call.arguments:
        between = before.rpartition(call.name)[2]
        return NameThenJson(open="{name}" + between) if call.name in before and len(between) <= 64 else None
    names = [key for key, item in value.items() if item == call.name]
    args = [key for key, item in value.items() if item == call.arguments]
    return Envelope(names=(names[0],), args=(args[0],)) if names and args else None


def _guess_markers(text: str, found: list[DraftedCall]) -> Iterator[Format]:
    """Yield formats with the markers that the text around the calls suggests: with a section, with an end token, and
    with neither. `found` has the calls in order, at least one."""
    head, tail, body = text[: found[0].start], text[found[-1].end :], found[0].body
    middles = [text[one.end : other.start] for one, other in pairwise(found)]
    opens = _common_suffix([head, *middles]) if middles else _last_tag(head)
    closes = _common_prefix([*[middle[: len(middle) - len(opens)] for middle in middles], tail])
    between = middles[0][len(closes) : len(middles[0]) - len(opens)] if middles else ""
    before, after = head[: len(head) - len(opens)], tail[len(closes) :]
    base = Format(_NAME, body=body, call=(opens, closes), between=between)
    if before.strip() and after.strip():
        yield replace(base, section=(before.lstrip(), after.rstrip()))
    if after.strip():
        yield replace(base, ends=(after.strip(),))
    yield base


def _common_prefix(texts: list[str]) -> str:
    """Return the longest text with which all these texts begin; there must be at least one."""
    first, last = min(texts), max(texts)  # what these two share, all share
    same = next((at for at, char in enumerate(first) if last[at : at + 1] != char), len(first))
    return first[:same]


def _common_suffix(texts: list[str]) -> str:
    """Return the longest text with which all these texts end; there must be at least one."""
    return _common_prefix([each[::-1] for each in texts])[::-1]


def _last_tag(head: str) -> str:
    """Return the end of a text from its last `<` or `[` on; the whole text if it has neither. With a single call, the
    marker is assumed to start there."""
    at = max(head.rfind("<"), head.rfind("["))
    return head[at:] if at >= 0 else head
