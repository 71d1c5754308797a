"""Which exchange of a cassette answers a request: the one whose request is the same where it matters.

Ids of calls are counted instead of compared, since they are minted anew; fields that change nothing in the answer do
not count. The same request asked again gets the next answer that was recorded for it, and the last one from then on.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rightcall.backends.cassette import Asked, Cassette, Recorded, without_keys
from rightcall.errors import NotRecorded
from rightcall.types import Json

_IGNORED = frozenset(("user", "metadata", "stream_options", "prompt_cache_key", "safety_identifier"))
_IDS = frozenset(("id", "call_id", "tool_call_id", "tool_use_id"))
_ARGUMENTS = frozenset(("input", "arguments"))  # of a call, where an id is the model's own word
_ROUTE = re.compile(
    r"/(?:v\d[^/]*/)?(?:chat/completions|completions|responses|messages|models)$|/api/\w+(?:/\w+)?$"
    r"|/v\d[^/]*/models/[^/:]+:\w+$"  # of Gemini
)


def canonical(asked: Asked) -> Json:
    """The request where it matters. What two requests have in common here is what they have in common."""
    body = {name: value for name, value in (asked.body or {}).items() if name not in _IGNORED and value is not None}
    seen: dict[str, str] = {}
    path, body = without_keys([route(asked.path), body])
    return {"method": asked.method, "path": path, "body": _counted(body, seen)}


def route(path: str) -> str:
    """The path without what a base URL puts before it, and without its query."""
    path = path.partition("?")[0].rstrip("/")
    found = _ROUTE.search(path)
    return found.group() if found else path


def _counted(value: Any, seen: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_counted(each, seen) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _field(name, each, seen) for name, each in value.items()}


def _field(name: str, value: Any, seen: dict[str, str]) -> Any:
    if name in _ARGUMENTS and isinstance(value, dict):
        return value
    if name in _IDS and isinstance(value, str):
        return seen.setdefault(value, f"id_{len(seen)}")
    return _counted(value, seen)


def _key(asked: Asked) -> str:
    return json.dumps(canonical(asked), sort_keys=True)


class RequestMatcher:
    """Gives each request its answer. With `strict=False` one that was not recorded gets the nearest one's."""

    def __init__(self, cassette: Cassette, *, strict: bool = True) -> None:
        self._cassette, self._strict = cassette, strict
        self._by_key: dict[str, list[Recorded]] = {}
        for exchange in cassette.exchanges:
            self._by_key.setdefault(_key(exchange.request), []).append(exchange)
        self._given: Counter[str] = Counter()

    def answer(self, asked: Asked) -> Recorded:
        """Raises `NotRecorded`, naming the nearest request that was."""
        key = _key(asked)
        if key not in self._by_key:
            near = self._nearest(asked)
            if self._strict or near is None or asked.method == "GET":
                raise NotRecorded(self._unknown(asked, near))
            key = _key(near.request)
        found = self._by_key[key]
        self._given[key] += 1
        return found[min(self._given[key], len(found)) - 1]

    def _nearest(self, asked: Asked) -> Recorded | None:
        """The most alike of those that are answered in the same way: same path, streamed or not."""
        wanted = set(leaves(canonical(asked)))
        best: tuple[float, Recorded | None] = (-1.0, None)
        for exchange in self._cassette.exchanges:
            if not _alike(asked, exchange.request):
                continue
            found = set(leaves(canonical(exchange.request)))
            score = len(wanted & found) / max(1, len(wanted | found))
            best = (score, exchange) if score > best[0] else best
        return best[1]

    def _unknown(self, asked: Asked, near: Recorded | None) -> str:
        what = f"the cassette {self._cassette.path!r} has no answer to this {asked.method} {route(asked.path)}"
        cure = "record it again, or replay it leniently"
        if near is None:
            return f"{what}, nor to any like it ({len(self._cassette.exchanges)} exchanges); {cure}"
        number = self._cassette.exchanges.index(near) + 1
        found = "; ".join(list(differences(canonical(asked), canonical(near.request)))[:3])
        return f"{what}; the nearest is exchange {number}, which differs {found}; {cure}"


def _alike(one: Asked, other: Asked) -> bool:
    streamed = [bool((each.body or {}).get("stream")) for each in (one, other)]
    return one.method == other.method and route(one.path) == route(other.path) and streamed[0] == streamed[1]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every value of JSON data that holds no others, with the way to it."""
    if isinstance(value, dict | list) and value:
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(each, f"{path}/{name}")
    else:
        yield path, json.dumps(value)


def differences(here: Json, recorded: Json) -> Iterator[str]:
    """Where two requests differ, in words."""
    ours, theirs = dict(leaves(here)), dict(leaves(recorded))
    for path in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(path, "nothing"), theirs.get(path, "nothing")
        if one != other:
            yield f"at {path.removeprefix('/body')}: {one[:60]} here, {other[:60]} recorded"
