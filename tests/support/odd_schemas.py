"""Hypothesis strategies of schemas with every keyword, used rightly and wrongly, and every function that uses tools.

Most are rejected when they are declared. With an accepted one, no function may raise an undocumented exception.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any, get_args

from hypothesis import strategies as st

from rightcall import (
    Call,
    CannotCarry,
    Parser,
    Stream,
    Tool,
    Toolset,
    check,
    contract,
    detect,
    dispatch_sync,
    grammar,
    parse,
    read,
    render,
    repair,
)
from rightcall.errors import EmptyToolList, GrammarCompileError
from rightcall.tools.provider_forms import to_provider
from rightcall.tools.toolset import Provider
from rightcall.types import Json

TYPES = ["string", "integer", "number", "boolean", "null", "array", "object"]
KEYS = [
    "a",
    "b",
    "a/b",
    "~",
    "",
    " ",
    "\x00",
    "é",
    "\ud800",
    "</tool_call>",
    '"',
    "x" * 300,
    "0",
    "type",
    "$ref",
    "%25",
]
PATTERNS = [
    *("^a+$", "(?!x)", "[", "(a{1000}){1000}", r"\p{L}{5}", r"\d+", "", "(((((a)))))", "a{99999}", r"(a)\1", "\ud800"),
    *(
        r"^(\w+\s?)*$",
        "[^\\x00-\\uffff]",
        "(" * 120 + "a" + ")" * 120,
        "a|b|",
        "^$",
        "(?i)a",
        "\\",
        "[[:alpha:]]",
        "$^",
    ),
]
REFS = [
    *("#", "#/$defs/d0", "#/$defs/d1", "#/$defs/d2", "#/properties/a", "#/properties/a/default", "#/additionalItems"),
    *(
        "#x",
        "#y",
        "#/properties/a~1b",
        "#/allOf/0",
        "#/properties/%C3%A9",
        "#/items/0",
        "#/definitions/d0",
        "#/nullable",
    ),
    *("#/dependencies/a", "#/x-more", "#/properties/b/enum/0", "http://example.org/x", "#/$defs/a b"),
]
NUMBERS: list[Any] = [0, 1, -1, 2, 3.0, 0.1, 1e-300, 5e-324, 1e300, 2**53, 2**64, 10**30, -(10**400), 1.5]
COUNTS: list[Any] = [0, 1, 2, 3.0, 10**9, 2**64, 10**40]
WILD: list[Any] = [None, True, False, [], {}, "x", -3, [1], {"a": 1}]
VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, -2.5, 10**30, 1e300, "", "a", "\ud800", "é", "x" * 500]),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)),
    max_leaves=5,
)


def _keyword_strategies(inner: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    several = st.lists(inner, min_size=1, max_size=3)
    mapped = st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    names = st.lists(st.sampled_from(KEYS), max_size=3, unique=True)
    one = [
        *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
        *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties", "x-more"),
    ]
    counts = [f"{end}{what}" for end in ("min", "max") for what in ("Length", "Items", "Properties", "Contains")]
    return {
        "type": st.one_of(
            st.sampled_from(TYPES), st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True)
        ),
        **dict.fromkeys(one, inner),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems", "items"), several),
        **dict.fromkeys(("properties", "$defs", "definitions", "dependentSchemas", "dependencies"), mapped),
        "properties": mapped,
        "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, max_size=2),
        "required": names,
        "dependentRequired": st.dictionaries(st.sampled_from(KEYS), names, max_size=2),
        **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef"), st.sampled_from(REFS)),
        **dict.fromkeys(("$anchor", "$dynamicAnchor"), st.sampled_from(["x", "y"])),
        "pattern": st.sampled_from(PATTERNS),
        "enum": st.lists(VALUES, max_size=4),
        **dict.fromkeys(("const", "default", "example"), VALUES),
        "examples": st.lists(VALUES, max_size=2),
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "multipleOf"), st.sampled_from(NUMBERS)),
        "exclusiveMaximum": st.sampled_from([*NUMBERS, True, False]),
        **dict.fromkeys(counts, st.sampled_from(COUNTS)),
        **dict.fromkeys(("uniqueItems", "nullable", "deprecated", "$recursiveAnchor"), st.booleans()),
        **dict.fromkeys(
            ("title", "description", "$comment", "id"), st.sampled_from(["x", "*/ </tool_call>\n", "\ud800"])
        ),
        "format": st.sampled_from(["date", "email", "uuid", "\ud800"]),
        "$schema": st.just("http://json-schema.org/draft-04/schema#"),
        "$vocabulary": st.sampled_from(WILD),
    }


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Any:
    """Draw a schema with up to five keywords; sometimes one of them has the wrong type."""
    if draw(st.integers(0, 12)) == 0 or depth == 0:
        return draw(st.sampled_from([True, False, {}, {"type": "string"}, {"type": "integer"}]))
    keywords = _keyword_strategies(schemas(depth - 1))
    chosen = draw(st.lists(st.sampled_from(sorted(keywords)), max_size=5, unique=True))
    schema = {word: draw(keywords[word]) for word in chosen}
    if draw(st.integers(0, 60)) == 0 and chosen:
        schema[chosen[0]] = draw(st.sampled_from(WILD))
    return schema


@st.composite
def parameters(draw: st.DrawFn) -> Json:
    root = draw(schemas(2))
    members = draw(st.dictionaries(st.sampled_from(KEYS), schemas(), max_size=3))
    schema: Json = {**(root if isinstance(root, dict) else {}), "type": "object", "properties": members}
    schema["$defs"] = {f"d{at}": draw(schemas(2)) for at in range(3)}
    return schema


def tools_of(parameters_list: list[Json]) -> Toolset:
    """Return the accepted tools of these parameters, each with a function to run."""
    tools = [Tool(name=f"f{at}", parameters=each, run=lambda **_: "done") for at, each in enumerate(parameters_list)]
    return Toolset.lenient(tools)


# -- functions that use tools ------------------------------------------------------------------------------------------


def _answer(name: str, arguments: str) -> Json:
    calls = [{"index": 0, "id": "a", "type": "function", "function": {"name": name, "arguments": arguments}}]
    return {"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": calls}}]}


def _stream(tools: Toolset, name: str, arguments: str) -> None:
    stream = Stream("chat", tools=tools)
    stream.feed({"choices": [{"index": 0, "delta": _answer(name, arguments)["choices"][0]["message"]}]})
    stream.close()


def _feed_chunks(text: str, tools: Toolset, format: str) -> None:
    parser = Parser(format, tools=tools, live=True)
    for start in range(0, len(text), 7):
        parser.feed(text[start : start + 7])
    parser.close()


def _compile_grammar(tools: Toolset, format: str) -> None:
    try:
        compiled = grammar(tools, format=format, isolate="open")
    except (GrammarCompileError, EmptyToolList):
        return
    for write in (compiled.gbnf, compiled.lark, compiled.json_schema, compiled.structural_tag, compiled.regex):
        with contextlib.suppress(GrammarCompileError):
            write()
    for server in ("llama.cpp", "vllm", "sglang", "ollama", "openai", "anthropic"):
        with contextlib.suppress(GrammarCompileError):
            compiled.for_server(server)


def _render_or_empty(call: Call, tools: Toolset, format: str) -> str:
    try:
        return render(call, format=format, tools=tools)
    except CannotCarry:
        return ""


def uses(tools: Toolset, format: str, arguments: Json) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield every function that uses tools, with its name."""
    arguments_text = json.dumps(arguments)
    for tool in tools:
        call = Call(tool.name, arguments)
        name = tool.name
        text = (
            _render_or_empty(call, tools, format)
            or f'<tool_call>{{"name": "{name}", "arguments": {arguments_text}}}</tool_call>'
        )
        yield "render", lambda call=call: _render_or_empty(call, tools, format)  # type: ignore[misc]
        yield "parse", lambda text=text: parse(text, tools=tools, format=format)  # type: ignore[misc]
        yield "parse, lenient", lambda text=text: parse(text[:-9], tools=tools, repair="lenient")  # type: ignore[misc]
        yield "Parser", lambda text=text: _feed_chunks(text, tools, format)  # type: ignore[misc]
        yield "detect", lambda text=text: detect(text, tools=tools)  # type: ignore[misc]
        yield "read", lambda name=name: read(_answer(name, arguments_text), tools=tools)  # type: ignore[misc]
        yield "Stream", lambda name=name: _stream(tools, name, arguments_text)  # type: ignore[misc]
        yield "check", lambda call=call: check(call, tools)  # type: ignore[misc]
        yield "repair", lambda name=name: repair(Call(name, {}, arguments_text[:-1]), tools, policy="lenient")  # type: ignore[misc]
        yield "dispatch", lambda call=call: dispatch_sync(call, tools)  # type: ignore[misc]
        yield "svg", lambda name=name: _draw_picture(tools, format, name)  # type: ignore[misc]
    yield "grammar", lambda: _compile_grammar(tools, format)
    yield "contract", lambda: contract(tools, budget=200)
    yield "contract of a format", lambda: contract(tools, format=format)
    yield "relaxed", lambda: (tools.relaxed, tools.notes, [tools.kinds(name) for name in tools.names])
    for provider in get_args(Provider):
        yield f"to {provider}", lambda provider=provider: json.dumps(to_provider(tools, provider))  # type: ignore[misc]


def _draw_picture(tools: Toolset, format: str, name: str) -> None:
    with contextlib.suppress(GrammarCompileError):
        grammar(tools, format=format, isolate="open").svg(name)
