"""Helpers that inspect a reply, and that create calls and tools."""

from __future__ import annotations

import json
from typing import Any

from rightcall import Call, Format, Reply, Tool, Toolset
from rightcall.formats import FORMATS
from rightcall.formats.spec import marker_alternatives
from rightcall.parsing.compile import is_sentence
from rightcall.parsing.known_openers import known_openers
from rightcall.parsing.markers import template
from support.cuts import Setting, hold_of_every_cut

Json = dict[str, Any]
Args = list[tuple[str, Json]]


def has_opener(format: Format) -> bool:
    first = [marker[0] for marker in (format.section, format.call) if marker] + [getattr(format.bodies[0], "open", "")]
    openers = [marker_alternatives(marker)[0] for marker in first]
    return format.channels is not None or any(opener and not opener.startswith("`") for opener in openers)


STRING: Json = {"type": "string"}
INTEGER: Json = {"type": "integer"}
NULLABLE: Json = {"type": ["string", "null"]}

EITHER = {name for name, format in FORMATS.items() if getattr(format.bodies[0], "content", "")}
"""Formats that carry text or calls, never both."""
BARE = {name for name, format in FORMATS.items() if not has_opener(format)} - EITHER
"""Formats that have no text before a call, so a call can begin only at the beginning of a reply."""


def is_distinctive_reasoning(name: str, side: int) -> bool:
    """Return whether `auto` recognises the opening (0) or closing (1) marker of the format's reasoning before a call.

    It does not recognise a plain tag other than `<think>`, which may be a part of the answer.
    """
    reasoning = FORMATS[name].reasoning
    return reasoning is not None and any(
        text.strip() in ("<think>", "</think>") or is_sentence(text) or template(text).whole in known_openers().marks
        for text in marker_alternatives(reasoning[side])
    )


def tool(name: str = "f", **properties: Json) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": properties})


TOOLS = Toolset([tool("f", s=STRING, n=INTEGER), tool("get_weather", city=STRING), tool("g")])


def make_call(name: str, **arguments: Any) -> Call:
    return Call(name, arguments, json.dumps(arguments))


def hermes(inside: str) -> str:
    return f"<tool_call>\n{inside}\n</tool_call>"


def read(text: str, format: str, tools: Toolset | None = TOOLS, **how: Any) -> Reply:
    """Return the reply to a text, which is the same under every cut. By default nothing is repaired."""
    return hold_of_every_cut(text, Setting(format, tools, **{"repair": "off", **how}))


def args(reply: Reply) -> Args:
    return [(call.name, call.arguments) for call in reply.attempts]


def codes(reply: Reply) -> list[str]:
    return [problem.code for problem in reply.problems]


NOTES = {"looks_like_a_call", "opener_without_call", "stray_marker"}
"""Problems of text that was not parsed as a call. They block nothing."""


def notes(reply: Reply) -> set[str]:
    """Return which of those notes the reply has."""
    return {problem.code for problem in reply.problems} & NOTES


def wrong(reply: Reply) -> list[str]:
    """Return the codes of all problems that are not notes."""
    return [problem.code for problem in reply.problems if problem.blocking or problem.code not in NOTES]


def blocking(reply: Reply) -> list[tuple[str, int | None]]:
    """Return the blocking problems, with the index of their call."""
    return [(problem.code, problem.call) for problem in reply.problems if problem.blocking]


def runnable(reply: Reply) -> Args:
    return [(call.name, call.arguments) for call in reply.calls]


def is_kept(reply: Reply, text: str) -> bool:
    return text in reply.content or any(text in call.raw for call in reply.attempts)
