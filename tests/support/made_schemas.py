"""Schemas made by hypothesis for the TypeScript declarations: hostile names, texts and enums, and values that fit.

Their types say all there is: no bounds, and in a choice no member that lets anything through, because such a member is
left out beside ones that tell more.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from hypothesis import strategies as st

from rightcall import Call, Tool, Toolset, check
from rightcall.types import Json

PIECES = [
    *(
        "*/",
        "/*",
        "//",
        "*",
        "/",
        "\n",
        "\r\n",
        "\u2028",
        "\u0085",
        '"',
        "'",
        "`",
        "\\",
        "\\u0041",
        "${x}",
        "{",
        "}",
        ";",
    ),
    *("<tool_call>", "</tool_call>", "</tools>", "<|im_start|>", "<done>", "```", "-->", "[TOOL_CALLS]", "type X = 1;"),
    *("é", "東京", "\ud800", "\x00", "\t", "\x1b[2J", "\u202e", "a", "constructor", "1", "declare function f(): void"),
]
HOSTILE = st.one_of(st.text(max_size=8), st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join))
KEYS = st.one_of(st.sampled_from(["city", "n", "a-b", "x y", "class", "1", "größe", "a"]), HOSTILE.filter(bool))
NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, HOSTILE)
LITERALS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(HOSTILE, inner, max_size=2)),
    max_leaves=3,
)
NAMES = st.one_of(
    st.sampled_from(["f", "get_weather", "search.docs-v2", "class", "eval", "undefined", "Array", "$", "Tools"]),
    HOSTILE.filter(lambda name: name.strip() != "" and name.isprintable()),
)


class Made(NamedTuple):
    schema: Any
    value: Any


@st.composite
def made(draw: st.DrawFn, depth: int = 3) -> Made:
    """A schema and a value of it."""
    leaves = [_scalar, _enum]
    kind = draw(
        st.sampled_from(
            [*leaves, _scalar, _array, _tuple, _object, _choice, _both, _several, _reference] if depth else leaves
        )
    )
    schema, value = draw(kind(depth))
    return Made({**schema, **draw(_prose())}, value)


@st.composite
def _prose(draw: st.DrawFn) -> Json:
    found: Json = {}
    if draw(st.booleans()):
        found["description"] = draw(HOSTILE)
    if draw(st.integers(0, 4)) == 0:
        found["default"] = draw(LITERALS)
    if draw(st.integers(0, 4)) == 0:
        found["examples"] = draw(st.lists(LITERALS, max_size=2))
    return found


@st.composite
def _scalar(draw: st.DrawFn, depth: int) -> Made:
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "string": HOSTILE,
        "integer": st.integers(),
        "number": NUMBERS,
        "boolean": st.booleans(),
        "null": st.none(),
    }
    name = draw(st.sampled_from(sorted(kinds)))
    value = draw(kinds[name])
    if draw(st.integers(0, 3)) == 0:
        return Made({"type": name, "nullable": True}, draw(st.sampled_from([value, None])))
    return Made({"type": name}, value)


@st.composite
def _enum(draw: st.DrawFn, depth: int) -> Made:
    values = draw(st.lists(LITERALS, min_size=1, max_size=3, unique_by=repr))
    return Made({"const": values[0]} if draw(st.booleans()) else {"enum": values}, values[0])


@st.composite
def _array(draw: st.DrawFn, depth: int) -> Made:
    item = draw(made(depth - 1))
    return Made({"type": "array", "items": item.schema}, [item.value] * draw(st.integers(0, 2)))


@st.composite
def _tuple(draw: st.DrawFn, depth: int) -> Made:
    items = draw(st.lists(made(depth - 1), min_size=1, max_size=3))
    schema: Json = {"type": "array", "prefixItems": [item.schema for item in items]}
    rest = draw(st.sampled_from([None, False, "more"]))
    more = draw(made(0))
    if rest is not None:
        schema["items"] = False if rest is False else more.schema
    values = [item.value for item in items]
    if draw(st.booleans()):
        schema["minItems"] = draw(st.integers(0, len(values)))
        return Made(schema, values + [more.value] * (rest == "more"))
    return Made(schema, values[: draw(st.integers(0, len(values)))])


@st.composite
def _object(draw: st.DrawFn, depth: int) -> Made:
    fields = draw(st.dictionaries(KEYS, made(depth - 1), max_size=3))
    required: list[str] = [key for key in fields if draw(st.booleans())]
    schema: Json = {"type": "object", "properties": {key: item.schema for key, item in fields.items()}}
    if len(required) or draw(st.booleans()):
        schema["required"] = required
    value = {key: item.value for key, item in fields.items() if key in required or draw(st.booleans())}
    rest, other, key = draw(st.sampled_from(["", "", "no", "any", "typed"])), draw(made(0)), draw(KEYS)
    if rest:
        schema["additionalProperties"] = False if rest == "no" else True if rest == "any" else other.schema
    if rest in ("any", "typed") and key not in fields:
        value[key] = other.value
    return Made(schema, value)


@st.composite
def _choice(draw: st.DrawFn, depth: int) -> Made:
    members = draw(st.lists(made(depth - 1), min_size=1, max_size=3))
    word = draw(st.sampled_from(["anyOf", "oneOf"]))
    return Made({word: [member.schema for member in members]}, draw(st.sampled_from(members)).value)


@st.composite
def _both(draw: st.DrawFn, depth: int) -> Made:
    one, other = draw(_object(depth - 1)), draw(_object(depth - 1))
    return Made({"allOf": [one.schema, other.schema]}, {**other.value, **one.value})


@st.composite
def _several(draw: st.DrawFn, depth: int) -> Made:
    item = draw(made(depth - 1))
    schema = {"type": ["array", "null"], "items": item.schema}
    return Made(schema, draw(st.sampled_from([None, [], [item.value]])))


@st.composite
def _reference(draw: st.DrawFn, depth: int) -> Made:
    """Into the definitions that `tool` adds."""
    value: Json = draw(st.sampled_from([{"next": None}, {"next": {"next": None}}]))
    if draw(st.booleans()):
        return Made({"$ref": "#/$defs/Node"}, value)
    beside = draw(_object(0))
    return Made({"$ref": "#/$defs/Node", **beside.schema}, {**beside.value, **value})


NODE: Json = {
    "type": "object",
    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
    "required": ["next"],
}


class Case(NamedTuple):
    tool: Tool
    arguments: Json
    fits: bool


@st.composite
def tools(draw: st.DrawFn) -> Case:
    """A tool that can be declared, and arguments; `fits` says whether they pass `check`."""
    schema, value = draw(_object(3))
    schema = {**schema, "$defs": {"Node": NODE}}
    tool = Tool(name=draw(NAMES), description=draw(HOSTILE), parameters=schema)
    return Case(tool, value, is_text(schema) and not check(Call(tool.name, value, ""), Toolset(tool)))


def is_text(value: Any) -> bool:
    """Can this be UTF-8? A schema with a lone surrogate can be declared, but not compiled."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
