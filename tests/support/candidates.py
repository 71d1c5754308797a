"""Texts to put before the judge of a grammar: renderings of calls that fit, of calls that do not, damaged ones, and
calls that are only shown. What a judge accepts of them is held to the law: it reads as calls that pass the check."""

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
from support.generated import around, strings
from support.schemas import tools_and_calls

WRONG: tuple[Any, ...] = (None, True, 0, -99999, 1.5, "", "zz", "zz" * 40, [], {}, [1, "a"], {"zz": 1})
SHOWN = ("```\n{}\n```", "```{}```", "`{}`", '"{}"', "'{}'", "So:\n```xml\n{}\n```\nis it.", "~~~\n{}\n~~~", "``{}``")


class Drawn(NamedTuple):
    """Some tools, a call of each that fits, and a reply with them, as a format writes it."""

    tools: Toolset
    calls: list[Call]
    text: str
    alone: str  # the first call and nothing else


def drawn_reply(
    data: st.DataObject, format: Format, left_out: Callable[[Format, list[Call]], bool], *, spelled: bool = True
) -> Drawn:
    """`spelled`: JSON with the white space of different writers."""
    tools, calls = data.draw(tools_and_calls(strings(format)))
    calls = calls if spelled else [Call(call.name, call.arguments, "") for call in calls]
    toolset = Toolset(tools)
    assume(not any(check(call, toolset) for call in calls) and not left_out(format, calls))
    assume(not any("\0" in text for call in calls for text in (str(call.arguments), call.json)))
    text = rendered(data.draw(around(format, calls)), format, toolset)
    alone = rendered([calls[0]], format, toolset)
    assume(text is not None and alone is not None)
    assert text is not None and alone is not None
    return Drawn(toolset, calls, text, alone)


def rendered(parts: Iterable[Part], format: Format, tools: Toolset) -> str | None:
    try:
        return render(list(parts), format=format, tools=tools)
    except CannotCarry:
        return None


def damaged_calls(drawn: Drawn, format: Format, dice: Random, most: int = 12) -> Iterator[str]:
    """The first call with arguments that may not fit, and its text with a character lost, doubled or changed."""
    call = drawn.calls[0]
    changed = list(_changed(call.arguments))
    for arguments in dice.sample(changed, min(most, len(changed))):
        text = rendered([Call(call.name, arguments, json.dumps(arguments))], format, drawn.tools)
        if text is not None:
            yield text
    for _ in range(most // 2):
        at = dice.randint(0, len(drawn.alone))
        before, behind = drawn.alone[:at], drawn.alone[at:]
        yield before + dice.choice([behind[1:], "x" + behind, "1" + behind[1:], "", behind[:1] + behind])


def shown_calls(drawn: Drawn) -> Iterator[str]:
    """A call in code, or behind a quotation mark: it is shown, not made."""
    for frame in SHOWN:
        yield frame.replace("{}", drawn.alone)
        yield "Write " + frame.replace("{}", drawn.alone)


def _changed(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {}
    yield {**arguments, "zz": 1}
    for key, value in arguments.items():
        yield {other: kept for other, kept in arguments.items() if other != key}
        yield {key: value}
        for wrong in (*WRONG, *_inside(value)):
            yield {**arguments, key: wrong}


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from _changed(value)
    if isinstance(value, list):
        yield from ([*value, wrong] for wrong in WRONG)
        yield value * 3
        yield value[1:]


def broken_law(text: str, format: Format, tools: Toolset, limits: Iterable[Relaxation], *, calls: bool) -> str:
    """What is wrong with a text that was accepted; nothing if it reads as calls that pass the check. A call of a tool
    whose grammar says that it was relaxed may fail the check. `calls`: there must be one."""
    reply = parse(text, tools=tools, format=format, repair="off")
    if calls and not reply.attempts:
        return f"no call in {text!r}"
    relaxed = {limit.tool for limit in limits if limit.keyword}
    for call in reply.attempts:
        if relaxed & {call.name, ""}:
            continue
        found = check(call, tools)
        # Raw text that holds markers of its own format cannot be told from a call that lost one: it never runs.
        found = [one for one in found if one.code != "ambiguous_end"]
        if found:
            return f"{found[0]} in {text!r}"
    unread = [one for one in reply.problems if one.blocking and one.call is None]
    return f"{unread[0]} in {text!r}" if unread else ""
