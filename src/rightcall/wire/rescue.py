"""Calls that came in another shape than the one expected. It fires only for declared tools whose arguments fit.

Two ways. In the text around a call, only the opener of a known format counts, and not where prose shows an example: in
code, or behind a quote. Without any opener, the whole reply must be calls: JSON objects or lists (in a fence or not),
`name[ARGS]{...}`, Python calls one to a line.
"""

from __future__ import annotations

import re

from rightcall.declare.toolset import Toolset
from rightcall.formats import FORMATS
from rightcall.ids import Ids
from rightcall.types import Call, Event, Reply, Span
from rightcall.wire.compile import Compiled, compiled
from rightcall.wire.fold import Fold
from rightcall.wire.options import ReadOptions

# A reply that is nothing but calls, said as if it had stood in the markers of a format that reads it.
_WRAPS = (
    ("<tool_call>\n", "\n</tool_call>", "hermes", re.compile(r"[\[{]").match),
    ("", "", "generic_json", re.compile(r"\{\s*\"tool_calls?\"").match),
    ("<|python_start|>", "<|python_end|>", "llama4_pythonic", re.compile(r"\[\s*[A-Za-z_][\w.\-]*\s*\(").match),
    ("", "", "contract", re.compile(r"[A-Za-z_$][\w.\-$]*\(\s*\{").match),
    ("<function_calls>", "</function_calls>", "olmo3", re.compile(r"[A-Za-z_][\w.\-]*\(").match),
    ("[TOOL_CALLS]", "", "mistral_v11", re.compile(r"[A-Za-z_][\w.\-]*\[ARGS\]").match),
)
_OBJECT = re.compile(r"\{").match  # of arguments alone, where the request named the tool
MINTED = "\0"  # an id that begins so was not in the text
_ENDS = {"[": "]", "{": "}"}
_FENCE = re.compile(r"```[A-Za-z_]*[ \t]*\n(.*?)\n?[ \t]*```", re.S)
_MOST = 400_000
_OPEN = ("additionalProperties", "patternProperties")  # arguments that are not declared are welcome


def whole_reply(text: str, options: ReadOptions) -> Reply | None:
    """What a reply holds that is nothing but calls of declared tools; None if it is anything else."""
    if options.tools is None or not len(options.tools) or len(text) > _MOST:
        return None
    inner = text.strip()
    fenced = _FENCE.fullmatch(inner)
    fenced = None if fenced and "\n```" in fenced.group(1) else fenced  # several, one behind the other
    inner = fenced.group(1).strip() if fenced else inner
    if fenced and (other := other_format(inner, options)) is not None and not other[0].content:
        return other[0]
    if inner[-1:] not in _ENDS.get(inner[:1], ")}"):
        return None  # cut off, or not nothing but calls
    forced = [("", "", "forced_choice", _OBJECT)] if options.choice else []
    for before, after, name, begins in (*_WRAPS, *forced):
        if begins(inner):
            reply = _read(before + inner + after, compiled(FORMATS[name]), quiet(options))
            if reply.calls and not reply.content and trusted(reply, options) and not _completed(reply):
                return reply
    return None


def _completed(reply: Reply) -> bool:
    """Was something added? Nothing says that the text was not cut off, so brackets may not be; and nothing says that an
    object without a name is a call."""
    added = ("missing_closer", "inferred_name")
    return any(repair.rule in added for call in reply.calls for repair in call.repairs)


def other_format(text: str, options: ReadOptions) -> tuple[Reply, list[Span]] | None:
    """What a reply holds that is written in another format than was said, and its spans; None if it is none."""
    from rightcall.wire.auto import AutoReading

    if options.tools is None or len(text) > _MOST:
        return None
    reading = AutoReading(quiet(options, spans=True), Ids.numbered(MINTED))
    reading.whole(text)
    reply = fold(reading.out, reading.compiled.format.name)
    return (reply, reading.spans or []) if reply.calls and trusted(reply, options) else None


def trusted(reply: Reply, options: ReadOptions) -> bool:
    """Are all its calls whole, of declared tools with declared arguments, and without a problem?"""
    tools = options.tools
    declared = tools is not None and all(call.complete and _declared(call, tools) for call in reply.calls)
    # A key that had no use may be an argument that is not declared, and without it another call would run.
    return declared and not any(problem.blocking or problem.code == "unknown_key" for problem in reply.problems)


def _declared(call: Call, tools: Toolset) -> bool:
    """The definition of a tool whose arguments are all optional looks like a call, but for its arguments' names."""
    tool = tools.get(call.name)
    if tool is None:
        return False
    schema = tool.parameters
    is_open = "properties" not in schema or not schema.keys().isdisjoint(_OPEN)
    return is_open or not call.arguments or not call.arguments.keys().isdisjoint(tools.kinds(call.name))


def in_reasoning(reasoning: str, found: Compiled, options: ReadOptions) -> Reply | None:
    """The calls in a reply that is nothing but reasoning."""
    if not reasoning or len(reasoning) > _MOST:
        return None
    if found.format.name == "auto":
        other = other_format(reasoning, options)
        reply = other[0] if other is not None else Reply()
    else:
        reply = _read(reasoning, found, quiet(options))
    calls = Reply(reply.calls, reply.problems, reply.format)
    return calls if calls.calls and trusted(calls, options) else None


def quiet(options: ReadOptions, *, spans: bool = False) -> ReadOptions:
    """The same options for a reading inside another: no rescue of its own, nothing held, nothing live."""
    tools, repair, limits = options.tools, options.repair, options.limits
    return ReadOptions(tools, repair=repair, choice=options.choice, spans=spans, limits=limits, rescue=False)


def _read(text: str, found: Compiled, options: ReadOptions) -> Reply:
    from rightcall.wire.reading import Reading

    reading = Reading(found, options, Ids.numbered(MINTED))
    reading.whole(text)
    return fold(reading.out, found.format.name)


def fold(events: list[Event], name: str) -> Reply:
    folding = Fold()
    folding.add(events)
    return folding.reply(name, None)
