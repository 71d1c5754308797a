"""Texts to test a grammar with: calls that fit, calls that do not fit, damaged calls, and quoted calls.

Law: a text that the grammar accepts is parsed as calls that pass `check`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any, NamedTuple

from hypothesis import assume
from hypothesis import strategies as st

from rightcall import Call, CannotCarry, Format, Toolset, check, parse, render
from rightcall.constrain import Relaxation
from rightcall.types import Part
from support.generated import parts_around, strings
from support.schemas import tools_and_calls

WRONG: tuple[Any, ...] = (None, True, 0, -99999, 1.5, "", "zz", "zz" * 40, [], {}, [1, "a"], {"zz": 1})
SHOWN = ("```\n{}\n```", "```{}```", "`{}`", '"{}"', "'{}'", "So:\n```xml\n{}\n```\nis it.", "~~~\n{}\n~~~", "``{}``")


class DrawnReply(NamedTuple):
    """Some tools, a fitting call of each, and a reply with these calls in a format."""

    tools: Toolset
    calls: list[Call]
    text: str
    alone: str  # the first call and nothing else


def draw_reply(
    data: st.DataObject, format: Format, is_excluded: Callable[[Format, list[Call]], bool], *, spelled: bool = True
) -> DrawnReply:
    """Draw a reply. `spelled`: the JSON has the white space of different writers."""
    tools, calls = data.draw(tools_and_calls(strings(format)))
    calls = calls if spelled else [Call(call.name, call.arguments, "") for call in calls]
    toolset = Toolset(tools)
    assume(not any(check(call, toolset) for call in calls) and not is_excluded(format, calls))
    assume(not any("\0" in text for call in calls for text in (str(call.arguments), call.json)))
    text = render_or_none(data.draw(parts_around(format, calls)), format, toolset)
    alone = render_or_none([calls[0]], format, toolset)
    assume(text is not None and alone is not None)
    assert text is not None and alone is not None
    return DrawnReply(toolset, calls, text, alone)


def render_or_none(parts: Iterable[Part], format: Format, tools: Toolset) -> str | None:
    try:
        return render(list(parts), format=format, tools=tools)
    except CannotCarry:
        return None


def damage_calls(reply: DrawnReply, format: Format, dice: Random, most: int = 12) -> Iterator[str]:
    """Yield the first call with arguments that may not fit, and its text with a character lost, doubled or changed."""
    call = reply.calls[0]
    variants = list(_change_arguments(call.arguments))
    for arguments in dice.sample(variants, min(most, len(variants))):
        text = render_or_none([Call(call.name, arguments, json.dumps(arguments))], format, reply.tools)
        if text is not None:
            yield text
    for _ in range(most // 2):
        at = dice.randint(0, len(reply.alone))
        before, behind = reply.alone[:at], reply.alone[at:]
        yield before + dice.choice([behind[1:], "x" + behind, "1" + behind[1:], "", behind[:1] + behind])


def quote_calls(reply: DrawnReply) -> Iterator[str]:
    """Yield a call in code, or after a quotation mark: it is quoted, not made."""
    for frame in SHOWN:
        yield frame.replace("{}", reply.alone)
        yield "Write " + frame.replace("{}", reply.alone)


def _change_arguments(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {}
    yield {**arguments, "zz": 1}
    for key, value in arguments.items():
        yield {other: other_value for other, other_value in arguments.items() if other != key}
        yield {key: value}
        for wrong in (*WRONG, *_change_value(value)):
            yield {**arguments, key: wrong}


def _change_value(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from _change_arguments(value)
    if isinstance(value, list):
        yield from ([*value, wrong] for wrong in WRONG)
        yield value * 3
        yield value[1:]


def find_broken_law(text: str, format: Format, tools: Toolset, limits: Iterable[Relaxation], *, calls: bool) -> str:
    """Return what is wrong with an accepted text, or an empty string if it is parsed as calls that pass `check`.

    A call of a tool with a reported relaxation may fail the check. `calls`: there must be a call.
    """
    reply = parse(text, tools=tools, format=format, repair="off")
    if calls and not reply.attempts:
        return f"no call in {text!r}"
    relaxed = {limit.tool for limit in limits if limit.keyword}
    for call in reply.attempts:
        if relaxed & {call.name, ""}:
            continue
        found = check(call, tools)
        # Raw text with markers of its own format cannot be distinguished from a call without one marker; it never runs.
        found = [one for one in found if one.code != "ambiguous_end"]
        if found:
            return f"{found[0]} in {text!r}"
    unread = [one for one in reply.problems if one.blocking and one.call is None]
    return f"{unread[0]} in {text!r}" if unread else ""
