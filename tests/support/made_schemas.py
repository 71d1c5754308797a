"""Hypothesis strategies of schemas for the TypeScript declarations: hostile names, texts and enums, and fitting values.

Their types are complete: there are no bounds, and no member of a choice accepts everything, because such a member is
omitted next to more specific ones.
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


class SchemaAndValue(NamedTuple):
    schema: Any
    value: Any


@st.composite
def schemas_with_values(draw: st.DrawFn, depth: int = 3) -> SchemaAndValue:
    """Draw a schema and a value of it."""
    leaves = [_scalar, _enum]
    kind = draw(
        st.sampled_from(
            [*leaves, _scalar, _array, _tuple, _object, _choice, _both, _several, _reference] if depth else leaves
        )
    )
    schema, value = draw(kind(depth))
    return SchemaAndValue({**schema, **draw(_prose())}, value)


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
def _scalar(draw: st.DrawFn, depth: int) -> SchemaAndValue:
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
        return SchemaAndValue({"type": name, "nullable": True}, draw(st.sampled_from([value, None])))
    return SchemaAndValue({"type": name}, value)


@st.composite
def _enum(draw: st.DrawFn, depth: int) -> SchemaAndValue:
    values = draw(st.lists(LITERALS, min_size=1, max_size=3, unique_by=repr))
    return SchemaAndValue({"const": values[0]} if draw(st.booleans()) else {"enum": values}, values[0])


@st.composite
def _array(draw: st.DrawFn, depth: int) -> SchemaAndValue:
    item = draw(schemas_with_values(depth - 1))
    return SchemaAndValue({"type": "array", "items": item.schema}, [item.value] * draw(st.integers(0, 2)))


@st.composite
def _tuple(draw: st.DrawFn, depth: int) -> SchemaAndValue:
    items = draw(st.lists(schemas_with_values(depth - 1), min_size=1, max_size=3))
    schema: Json = {"type": "array", "prefixItems": [item.schema for item in items]}
    rest = draw(st.sampled_from([None, False, "more"]))
    more = draw(schemas_with_values(0))
    if rest is not None:
        schema["items"] = False if rest is False else more.schema
    values = [item.value for item in items]
    if draw(st.booleans()):
        schema["minItems"] = draw(st.integers(0, len(values)))
        return SchemaAndValue(schema, values + [more.value] * (rest == "more"))
    return SchemaAndValue(schema, values[: draw(st.integers(0, len(values)))])


@st.composite
def _object(draw: st.DrawFn, depth: int) -> SchemaAndValue:
    fields = draw(st.dictionaries(KEYS, schemas_with_values(depth - 1), max_size=3))
    required: list[str] = [key for key in fields if draw(st.booleans())]
    schema: Json = {"type": "object", "properties": {key: item.schema for key, item in fields.items()}}
    if len(required) or draw(st.booleans()):
        schema["required"] = required
    value = {key: item.value for key, item in fields.items() if key in required or draw(st.booleans())}
    rest, other, key = draw(st.sampled_from(["", "", "no", "any", "typed"])), draw(schemas_with_values(0)), draw(KEYS)
    if rest:
        schema["additionalProperties"] = False if rest == "no" else True if rest == "any" else other.schema
    if rest in ("any", "typed") and key not in fields:
        value[key] = other.value
    return SchemaAndValue(schema, value)


@st.composite
def _choice(draw: st.DrawFn, depth: int) -> SchemaAndValue:
    members = draw(st.lists(schemas_with_values(depth - 1), min_size=1, max_size=3))
    word = draw(st.sampled_from(["anyOf", "oneOf"]))
    return SchemaAndValue({word: [member.schema for member in members]}, draw(st.sampled_from(members)).value)


@st.composite
def _both(draw: st.DrawFn, depth: int) -> SchemaAndValue:
    one, other = draw(_object(depth - 1)), draw(_object(depth - 1))
    return SchemaAndValue({"allOf": [one.schema, other.schema]}, {**other.value, **one.value})


@st.composite
def _several(draw: st.DrawFn, depth: int) -> SchemaAndValue:
    item = draw(schemas_with_values(depth - 1))
    schema = {"type": ["array", "null"], "items": item.schema}
    return SchemaAndValue(schema, draw(st.sampled_from([None, [], [item.value]])))


@st.composite
def _reference(draw: st.DrawFn, depth: int) -> SchemaAndValue:
    """Draw a reference to the definitions that `tool` adds."""
    value: Json = draw(st.sampled_from([{"next": None}, {"next": {"next": None}}]))
    if draw(st.booleans()):
        return SchemaAndValue({"$ref": "#/$defs/Node"}, value)
    beside = draw(_object(0))
    return SchemaAndValue({"$ref": "#/$defs/Node", **beside.schema}, {**beside.value, **value})


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
    """Draw a tool that can be declared, and arguments; `fits` says whether they pass `check`."""
    schema, value = draw(_object(3))
    schema = {**schema, "$defs": {"Node": NODE}}
    tool = Tool(name=draw(NAMES), description=draw(HOSTILE), parameters=schema)
    return Case(tool, value, is_text(schema) and not check(Call(tool.name, value, ""), Toolset(tool)))


def is_text(value: Any) -> bool:
    """Return whether this can be encoded as UTF-8. A schema with a lone surrogate can be declared, but not compiled."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
