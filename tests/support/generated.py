"""Hypothesis strategies for the laws: calls of every type with their tools, replies, damaged texts."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from hypothesis import strategies as st

from rightcall import Call, Format, Reasoning, Text, Tool, Toolset
from rightcall.formats.spec import marker_alternatives
from rightcall.types import Part
from support.cuts import markers
from support.replies import BARE, EITHER, INTEGER, NULLABLE, STRING, Json, tool

# -- calls and replies -------------------------------------------------------------------------------------------------

ODD = [
    '"',
    "'",
    "\\",
    "\n",
    "\n\n",
    "\t",
    "\r\n",
    " ",
    "\\n",
    "\\u0041",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    "<|",
    "|>",
    "`",
]
ODD += [
    "```",
    ",",
    ":",
    "=",
    "/",
    "null",
    "None",
    "true",
    "12",
    "é",
    "東京",
    "👋",
    "\u2028",
    "\ud83d",
    "\x00",
    "\x7f",
    "&lt;",
    "]]>",
]


def strings(format: Format) -> st.SearchStrategy[str]:
    """Draw text with quotes, line breaks, unusual characters and the format's own markers."""
    piece = st.one_of(st.sampled_from(ODD), st.sampled_from(markers(format) or ["x"]), st.text(max_size=5))
    return st.one_of(st.text(max_size=8), st.lists(piece, max_size=5).map("".join))


def numbers() -> st.SearchStrategy[int | float]:
    return st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))


def any_json(format: Format) -> st.SearchStrategy[Any]:
    text = strings(format)

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(st.lists(inner, max_size=3), st.dictionaries(text, inner, max_size=3))

    return st.recursive(st.one_of(st.none(), st.booleans(), numbers(), text), nested, max_leaves=6)


KEYS = st.sampled_from(["city", "n", "max_items", "a-b", "x.y", "K9", "_", "größe"])
NAMES = st.sampled_from(["f", "get_weather", "search.docs-v2", "mcp__x__y", "F2"])
WORDS = st.lists(
    st.sampled_from(["So", "the", "plan", "is", "this:", "ok.", "é", "then (1)"]), min_size=1, max_size=6
).map(" ".join)
SCALARS = ("string", "integer", "number", "boolean", "null", "nullable")


@st.composite
def typed_values(draw: st.DrawFn, text: st.SearchStrategy[str], depth: int = 2) -> tuple[Json, Any]:
    """Draw a schema with a type at every level, and a value of it."""
    kind = draw(st.sampled_from(SCALARS if not depth else (*SCALARS, "string", "array", "object")))
    if kind == "string":
        return {"type": "string"}, draw(text)
    if kind == "nullable":
        return {"type": ["string", "null"]}, draw(st.one_of(st.none(), text))
    if kind == "integer":
        return {"type": "integer"}, draw(st.integers())
    if kind == "number":
        return {"type": "number"}, draw(st.floats(allow_nan=False, allow_infinity=False))
    if kind == "boolean":
        return {"type": "boolean"}, draw(st.booleans())
    if kind == "null":
        return {"type": "null"}, None
    if kind == "array":
        schema, value = draw(typed_values(text, depth - 1))
        return {"type": "array", "items": schema}, [value] * draw(st.integers(0, 2))
    fields = draw(st.dictionaries(KEYS, typed_values(text, depth - 1), max_size=2))
    schemas = {key: schema for key, (schema, _) in fields.items()}
    return {"type": "object", "properties": schemas}, {key: value for key, (_, value) in fields.items()}


class CallsWithTools(NamedTuple):
    calls: list[Call]
    tools: list[Tool]


@st.composite
def calls_with_tools(draw: st.DrawFn, format: Format, text: st.SearchStrategy[str] | None = None) -> CallsWithTools:
    """Draw one to three calls, and the tools that declare the types of their arguments."""
    text = strings(format) if text is None else text
    calls, tools = [], []
    for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)):
        fields = draw(st.dictionaries(KEYS, typed_values(text), max_size=3))
        schema = {"type": "object", "properties": {key: schema for key, (schema, _) in fields.items()}}
        tools.append(Tool(name=name, parameters=schema))
        arguments = {key: value for key, (_, value) in fields.items()}
        calls.append(Call(name, arguments, draw(json_spellings(arguments))))
    return CallsWithTools(calls, tools)


@st.composite
def json_spellings(draw: st.DrawFn, value: Any) -> str:
    """Draw the JSON text of a value in the style of different writers."""
    style: Json = draw(st.sampled_from([{}, {"separators": (",", ":")}, {"indent": 2}, {"ensure_ascii": False}]))
    return json.dumps(value, **style)


@st.composite
def parts_around(draw: st.DrawFn, format: Format, calls: list[Call]) -> list[Part]:
    """Draw the calls with reasoning and text, where the format allows them."""
    parts: list[Part] = list(calls)
    if format.name not in BARE | EITHER:
        for place in draw(st.sets(st.sampled_from(range(len(calls) + 1)), max_size=2)):
            parts.insert(parts.index(calls[place]) if place < len(calls) else len(parts), Text(draw(WORDS)))
    if has_reasoning(format) and draw(st.booleans()):
        parts.insert(0, Reasoning(draw(WORDS)))
    return parts


def has_reasoning(format: Format) -> bool:
    return "reasoning" in format.channels.messages if format.channels else format.reasoning is not None


def comparable_parts(parts: list[Part] | tuple[Part, ...]) -> list[Any]:
    """Return what a round trip must keep: kinds, order, names, exact values; text without outer white space."""
    return [
        (part.name, json.dumps(part.arguments)) if isinstance(part, Call) else (type(part), part.text.strip())
        for part in parts
    ]


# -- texts of a format's markers in any order -------------------------------------------------------------------------

DECLARED = Toolset([tool("f", s=STRING, n=INTEGER, u=NULLABLE, o={"type": "object"}), tool("g")])
NOISE = [
    '{"name": "f", "arguments": {"s": "x"}}',
    '{"arguments": {}, "name": "g"}',
    '{"name": "f"',
    '"arguments": ',
    '{"s": "',
]
NOISE += [
    '"}',
    "}}",
    "]",
    "[",
    "{",
    "f",
    "g",
    "s",
    "f(s='x')",
    "g()",
    "(",
    ")",
    "s=",
    "'",
    '"',
    "\\",
    "\n",
    " ",
    "\n\n",
    ",",
    ":",
]
NOISE += [
    "null",
    "-1.5e3",
    "true",
    "Hello",
    "é👋",
    "<",
    "|",
    "\ud800",
    "functions.f:0",
    "function",
    "call:f{",
    "s:",
    "to=f",
    "json",
    'f({ s: "x", n: 1 })',
    "\nf({ s: <<EOF\n",
    "\nEOF",
    "\nf({",
    "})",
    "`",
    "${",
    "/*",
    "//",
    "```\n",
]


def filled_markers(format: Format) -> list[str]:
    """Return the format's markers, with their placeholders filled."""
    names = {"name": "f", "key": "s", "type": "string", "id": "abcdefghi", "index": "0", "number": "1"}
    fields = [format.section, format.call, format.reasoning, *format.content]
    texts = [t for pair in fields if pair for marker in pair for t in marker_alternatives(marker)]
    for body in format.bodies:
        for field in ("open", "param", "value_close", "close", "empty"):
            texts += marker_alternatives(getattr(body, field, ""))
    if format.channels:
        texts += [text for pair in format.channels.messages.values() for text in pair]
        texts += [*marker_alternatives(format.channels.start), *format.channels.ends]
    holes = re.compile(r"\{(" + "|".join(names) + r")\}")
    return [holes.sub(lambda hole: names[hole.group(1)], text) for text in (*texts, *format.ends) if text]


def marker_texts(format: Format) -> st.SearchStrategy[str]:
    """Draw text of only markers and pieces of calls, in any order."""
    piece = st.one_of(
        st.sampled_from(filled_markers(format) or NOISE),
        st.sampled_from(markers(format) or NOISE),
        st.sampled_from(NOISE),
        st.text(max_size=3),
    )
    return st.lists(piece, max_size=14).map("".join)


@st.composite
def damaged_texts(draw: st.DrawFn, text: str, format: Format) -> str:
    """Draw the text with one piece lost, doubled or moved to the end, or with an inserted marker."""
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 40)))
    before, piece, after = text[:start], text[start:end], text[end:]
    marker = draw(st.sampled_from([*markers(format), *NOISE]))
    return draw(
        st.sampled_from([before + after, before + piece * 2 + after, before + after + piece, before + marker + after])
    )
