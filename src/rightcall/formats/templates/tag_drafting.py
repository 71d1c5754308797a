"""Draft a body with tagged arguments from calls with known arguments.

    <use tool="get_weather"><with key="city">Oslo</with> ... </use>     ->   Params(open='<use tool="{name}">', ...)

The text between a key, its value and the next key shows the tags; it must be the same for all arguments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from rightcall.formats.spec import Params
from rightcall.types import Call

_OPENERS = "<["
_MAX_GAP = 128  # characters between two texts that belong together


class _Argument(NamedTuple):
    """The positions of an argument's key and value."""

    key: str
    key_at: int
    key_end: int
    value_at: int
    value_end: int


def draft_tagged_call(text: str, begin: int, call: Call) -> tuple[int, int, Params] | None:
    """Return start and end of the first occurrence of this call from `begin` on whose arguments are in tags, and the
    body that would parse it; None if there is none."""
    name_at = text.find(call.name, begin)
    while name_at >= 0:
        found = _locate_arguments(text, name_at + len(call.name), call)
        body = _build_body(text, name_at, call.name, found) if found else None
        if body is not None:
            return body
        name_at = text.find(call.name, name_at + 1)
    return None


def find_tagged_call(text: str, begin: int, call: Call, body: Params) -> tuple[int, int] | None:
    """Return start and end of the first call from `begin` on that is written with this body and has the name and
    arguments of `call`; None if there is none."""
    opens = str(body.open).replace("{name}", call.name).rstrip()
    start = text.find(opens, begin)
    found = _locate_arguments(text, start + len(opens), call) if start >= 0 else []
    if not found:
        return None
    end = found[-1].value_end
    for closes in (str(body.value_close).replace("{key}", found[-1].key).rstrip(), str(body.close).strip()):
        rest = text[end:].lstrip() if closes.strip() == closes else text[end:]
        if not rest.startswith(closes):
            return None
        end = len(text) - len(rest) + len(closes)
    return start, end


def _locate_arguments(text: str, at: int, call: Call) -> list[_Argument]:
    """Return the positions of the arguments of a call from `at` on, in its order; [] if one is missing or too far from
    the one before it."""
    found: list[_Argument] = []
    for key, value in call.arguments.items():
        key_at = text.find(key, at, at + _MAX_GAP)
        value_at, said = next(_find_value(text, key_at + len(key), value), (-1, "")) if key_at >= 0 else (-1, "")
        if value_at < 0:
            return []
        at = value_at + len(said)
        found.append(_Argument(key, key_at, key_at + len(key), value_at, at))
    return found


def _find_value(text: str, at: int, value: Any) -> Iterator[tuple[int, str]]:
    """Yield the position and the text of a value in each notation that templates use (raw, JSON, compact JSON, Python)
    in which it occurs near `at`."""
    ways = [value] if isinstance(value, str) else []
    ways += [json.dumps(value, ensure_ascii=False), json.dumps(value, separators=(",", ":")), str(value)]
    for said in ways:
        found = text.find(said, at, at + _MAX_GAP + len(said))
        if found >= 0:
            yield found, said


def _build_body(text: str, name_at: int, name: str, found: list[_Argument]) -> tuple[int, int, Params] | None:
    """Return start, end and body of a call whose name is at `name_at`, from the positions of its arguments; None if the
    tags of its arguments differ."""
    start = _tag_start(text, name_at)
    name_end = name_at + len(name)
    heads = [text[name_end : found[0].key_at], *[text[a.value_end : b.key_at] for a, b in _neighbours(found)]]
    before = _shared_tag(heads)
    inside = {text[each.key_end : each.value_at] for each in found}
    closes = {head[: len(head) - len(before)].replace(one.key, "{key}") for head, (one, _) in _gaps(heads, found)}
    if len(inside) != 1 or len(closes) != 1 or not before:
        return None
    value_close = closes.pop()
    last = found[-1]
    end = last.value_end + len(value_close.replace("{key}", last.key))
    if text[last.value_end : end] != value_close.replace("{key}", last.key):
        value_close = value_close.rstrip()
        end = last.value_end + len(value_close.replace("{key}", last.key))
    close = _closing_tag(text, end)
    opens = text[start:name_at] + "{name}" + heads[0][: len(heads[0]) - len(before)]
    param = before + "{key}" + inside.pop()
    return start, end + len(close), Params(opens, param, value_close, close)


def _neighbours(found: list[_Argument]) -> list[tuple[_Argument, _Argument]]:
    """Return each argument with the one after it."""
    return list(pairwise(found))


def _gaps(heads: list[str], found: list[_Argument]) -> list[tuple[str, tuple[_Argument, _Argument]]]:
    """Return the text between each two neighbouring arguments, with the two: `heads` are the texts before the
    arguments. A gap begins with what closes the first of the two."""
    return list(zip(heads[1:], _neighbours(found), strict=True))


def _shared_tag(heads: list[str]) -> str:
    """Return the end, from the last `<` or `[` on, that all these texts before a key have in common; "" if they differ
    or have none."""
    starts = [max(head.rfind(sign) for sign in _OPENERS) for head in heads]
    tags = {head[start:] if start >= 0 else "" for head, start in zip(heads, starts, strict=True)}
    return tags.pop() if len(tags) == 1 else ""


def _tag_start(text: str, at: int) -> int:
    """Return the start of the tag, on the same line, that contains the name at `at`; `at` itself if there is none."""
    line = text.rfind("\n", 0, at) + 1
    start = max(text.rfind(sign, line, at) for sign in _OPENERS)
    is_open = start >= 0 and not any(sign in text[start:at] for sign in ">]")
    return start if is_open else at


def _closing_tag(text: str, at: int) -> str:
    """Return the closing tag that follows at `at`, with preceding blanks; "" if there is none."""
    rest = text[at : at + _MAX_GAP]
    tag = rest.lstrip()
    if not tag.startswith(("</", "[/")):
        return ""
    end = next((place for place, char in enumerate(tag) if char in ">]"), -1)
    return rest[: len(rest) - len(tag)] + tag[: end + 1] if end >= 0 else ""
