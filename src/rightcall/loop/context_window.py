"""Messages within a budget of tokens: no call is separated from its result, and what must stay stays.

    fit(messages, 4_000)

First old results are shortened, then the oldest exchanges go, whole. The system message, the first thing the user said
and the last exchanges stay as they are. Tokens are counted as four characters each unless somebody counts better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rightcall.apis.sdk_view import dumps
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
    head, groups = _grouped(messages)
    kept = [*head]
    old, recent = groups[:-RECENT], groups[-RECENT:]
    short = [[_shortened(message) for message in group] for group in old]
    for gone in range(len(short) + 1):
        note = _note(old[:gone], summarise if gone and _fits(head, short[gone:], recent, tokens, count) else None)
        kept = [*head, *note, *_flat(short[gone:]), *_flat(recent)]
        if count(kept) <= tokens:
            break
    return kept


def _fits(head: list[Json], old: list[list[Json]], recent: list[list[Json]], tokens: int, count: Count) -> bool:
    return count([*head, *_flat(old), *_flat(recent)]) <= tokens


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


def _note(gone: list[list[Json]], summarise: Summary | None) -> list[Json]:
    if not gone:
        return []
    if summarise is not None:
        return [{"role": "user", "content": summarise(_flat(gone))}]
    calls = sum(len(message.get("tool_calls") or ()) for message in _flat(gone))
    turns = sum(message.get("role") == "assistant" for message in _flat(gone))
    return [{"role": "user", "content": _DROPPED.format(turns=turns, calls=calls)}]


def _flat(groups: Sequence[Sequence[Any]]) -> list[Any]:
    return [each for group in groups for each in group]
