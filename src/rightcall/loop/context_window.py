"""Messages within a budget of tokens: no call is separated from its result, and what must stay stays.

    fit(messages, 4_000)

First old results are shortened, then the oldest exchanges go, whole. The system message, the first and the last thing
the user said and the last exchanges stay as they are. Tokens are counted as four characters each unless somebody
counts better.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from rightcall.guard.turn import is_users
from rightcall.providers.sdk_view import dumps
from rightcall.types import Json

SHORT = 400
RECENT = 2
_SHORTENED = "\n[... {lost:,} characters of an old result are left out ...]\n"
_DROPPED = "(Earlier turns are left out: {turns} of them, with {calls} calls.)"

Count = Callable[[Sequence[Json]], int]
Summary = Callable[[Sequence[Json]], str]


def estimate(messages: Sequence[Json]) -> int:
    """Tokens, at four characters each."""
    return sum(len(dumps(message)) for message in messages) // 4


def fit(
    messages: Sequence[Json], tokens: int, *, count: Count = estimate, summarise: Summary | None = None
) -> list[Json]:
    """The `messages` within so many `tokens`, as far as that can be: what must stay stays even if it is too much.

    - `count`: counts the tokens of messages.
    - `summarise`: says in a text what the messages were that are left out; without it their number is told.
    """
    if count(messages) <= tokens:
        return list(messages)
    window = _Window(messages)
    gone = window.least(tokens, count)
    if not gone or summarise is None:
        return window.without(gone)
    said = summarise(window.lost(gone))
    if count(window.without(gone, said)) > tokens:  # a long summary, which needs room of its own
        gone = window.least(tokens, count, said)
        said = summarise(window.lost(gone))
    return window.without(gone, said)


class _Window:
    """Messages in exchanges that go or stay whole. What leads stays, so do the last exchanges, and what the user last
    said; results of the others are shortened before any of them goes."""

    def __init__(self, messages: Sequence[Json]) -> None:
        self._head, groups = _grouped(messages)
        self._recent = groups[-RECENT:]
        self._old = groups[:-RECENT]
        self._short = [[_shortened(message) for message in group] for group in self._old]
        asked = [at for at, group in enumerate(groups) if is_users(group[0])]
        self._stays = asked[-1] if asked else -1

    def least(self, tokens: int, count: Count, said: str = "") -> int:
        """How many of the oldest exchanges must go; the more go the fewer tokens are left."""
        return bisect_left(range(len(self._old)), True, key=lambda gone: count(self.without(gone, said)) <= tokens)

    def lost(self, gone: int) -> list[Json]:
        return _flat([group for at, group in enumerate(self._old[:gone]) if at != self._stays])

    def without(self, gone: int, said: str = "") -> list[Json]:
        """The messages, but for so many of the oldest exchanges; `said` stands for them."""
        asked = self._old[self._stays] if 0 <= self._stays < gone else []
        note = _note(self.lost(gone), said)
        return [*self._head, *note, *asked, *_flat(self._short[gone:]), *_flat(self._recent)]


def _grouped(messages: Sequence[Json]) -> tuple[list[Json], list[list[Json]]]:
    """What leads (system messages, the first user), then exchanges: a turn with all of its results, or one message."""
    head: list[Json] = []
    rest = list(messages)
    while rest and rest[0].get("role") in ("system", "developer"):
        head.append(rest.pop(0))
    if rest and rest[0].get("role") == "user":
        head.append(rest.pop(0))
    groups: list[list[Json]] = []
    for message in rest:
        if message.get("role") == "tool" and groups:
            groups[-1].append(message)
        else:
            groups.append([message])
    return head, groups


def _shortened(message: Json) -> Json:
    said = message.get("content")
    if message.get("role") != "tool" or not isinstance(said, str) or len(said) <= SHORT:
        return message
    half = SHORT // 2
    return {**message, "content": said[:half] + _SHORTENED.format(lost=len(said) - SHORT) + said[-half:]}


def _note(gone: list[Json], said: str) -> list[Json]:
    if not gone:
        return []
    calls = sum(len(message.get("tool_calls") or ()) for message in gone)
    turns = sum(message.get("role") == "assistant" for message in gone)
    return [{"role": "user", "content": said or _DROPPED.format(turns=turns, calls=calls)}]


def _flat(groups: Sequence[Sequence[Any]]) -> list[Any]:
    return [each for group in groups for each in group]
