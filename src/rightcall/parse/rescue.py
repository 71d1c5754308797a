"""Calls that came in another shape than the one expected. It fires only for declared tools whose arguments fit.

Two ways. In the text around a call, only the opener of a known format counts, and not where prose shows an example: in
code, or behind a quote. Without any opener, the whole reply must be calls: JSON objects or lists (in a fence or not),
`name[ARGS]{...}`, Python calls one to a line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rightcall.formats import FORMATS
from rightcall.ids import Ids
from rightcall.parse.compile import compiled
from rightcall.parse.engine import Options
from rightcall.parse.fold import Fold
from rightcall.types import Call, Event, Reply

if TYPE_CHECKING:
    from rightcall.parse.reading import Reading

# A reply that is nothing but calls, said as if it had stood in the markers of a format that reads it.
_WRAPS = (
    ("<tool_call>\n", "\n</tool_call>", "hermes", re.compile(r"[\[{]").match),
    ("", "", "generic_json", re.compile(r"\{\s*\"tool_calls?\"").match),
    ("<|python_start|>", "<|python_end|>", "llama4_pythonic", re.compile(r"\[\s*[A-Za-z_][\w.\-]*\s*\(").match),
    ("<function_calls>", "</function_calls>", "olmo3", re.compile(r"[A-Za-z_][\w.\-]*\(").match),
    ("[TOOL_CALLS]", "", "mistral_v11", re.compile(r"[A-Za-z_][\w.\-]*\[ARGS\]").match),
)
_FENCE = re.compile(r"```[A-Za-z_]*[ \t]*\n(.*?)\n?[ \t]*```", re.S)
_MOST = 400_000


def whole_reply(text: str, options: Options) -> Reply | None:
    """What a reply holds that is nothing but calls of declared tools; None if it is anything else."""
    if options.tools is None or not len(options.tools) or len(text) > _MOST:
        return None
    inner = text.strip()
    fenced = _FENCE.fullmatch(inner)
    inner = fenced.group(1).strip() if fenced else inner
    for before, after, name, begins in _WRAPS:
        if begins(inner):
            reply = read_as(before + inner + after, name, options)
            if reply.calls and not reply.content and trusted(reply, options):
                return reply
    return None


def trusted(reply: Reply, options: Options) -> bool:
    """Are all its calls whole, of declared tools, and without a problem?"""
    declared = all(options.tools is not None and call.name in options.tools and call.complete for call in reply.calls)
    return declared and not any(problem.blocking for problem in reply.problems)


def read_as(text: str, name: str, options: Options) -> Reply:
    return fold(read_events(text, name, options), name)


def read_events(text: str, name: str, options: Options, ids: Ids | None = None) -> list[Event]:
    from rightcall.parse.reading import Reading

    reading = Reading(compiled(FORMATS[name]), quiet(options), ids or Ids())
    reading.feed(text)
    reading.close()
    return reading.out


def quiet(options: Options) -> Options:
    """The same options for a reading inside another: no rescue of its own, nothing held, nothing live."""
    tools, repair, limits = options.tools, options.repair, options.limits
    return Options(tools, repair=repair, choice=options.choice, limits=limits, rescue=False)


def fold(events: list[Event], name: str) -> Reply:
    folding = Fold()
    folding.add(events)
    return folding.reply(name, None)


def in_reasoning(reading: Reading, reasoning: str) -> Reply | None:
    """The calls in a reply that is nothing but reasoning."""
    if reading.tools is None or not reasoning.strip():
        return None
    reply = read_as(reasoning, reading.compiled.format.name, reading.options)
    return reply if reply.calls and trusted(reply, reading.options) else None


def calls_of(reply: Reply) -> list[Call]:
    return list(reply.calls)
