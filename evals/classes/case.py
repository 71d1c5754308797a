"""A case: a text, how it is parsed and what is expected; and the tools that the texts call."""

from __future__ import annotations

from random import Random
from typing import Any, Literal, NamedTuple

import msgspec

from rightcall import Tool

Json = dict[str, Any]
CallData = tuple[str, Json]  # a call: its tool and its arguments


class Expect(msgspec.Struct, frozen=True, omit_defaults=True):
    """The expected result of parsing a text. A field with its default value is not checked.

    `calls` are exactly the runnable calls, in order. `among`: each runnable call is one of these. `clean` texts appear
    in no argument of a runnable call. `lacks` texts appear neither there nor in content nor in reasoning. Each of
    `codes` is a choice (`a|b`) of which one problem must have. `has_problem`: there is at least one problem. `named`
    texts appear in a problem or a repair, `one_message` texts all in one problem. `either` are alternatives: one of
    them must match.
    """

    calls: list[CallData] | None = None
    among: list[CallData] | None = None
    at_most: int | None = None
    clean: list[str] = []
    refused: int = 0
    attempted: str = ""
    codes: list[str] = []
    not_codes: list[str] = []
    has_problem: bool = msgspec.field(name="told", default=False)
    content: str | None = None
    reasoning: str | None = None
    holds: list[str] = []
    lacks: list[str] = []
    rules: list[str] = []
    named: list[str] = []
    one_message: list[str] = []
    either: list[Expect] = []


class Case(msgspec.Struct, frozen=True, omit_defaults=True):
    """One text with its expectation.

    `auto` says how much of the expectation applies to `auto` as well: all of it (`same`), only that no other call runs
    and none is lost (`weak`), or nothing. `by` is the function that reads the text: `parse`, `read` (a provider's
    answer as JSON), `dispatch` or `select`.
    """

    kind: str
    shape: str
    format: str
    text: str
    expect: Expect
    tools: str = "words"
    options: dict[str, str] = {}
    auto: Literal["same", "weak", ""] = ""
    by: Literal["parse", "read", "dispatch", "select"] = "parse"


# -- tools -------------------------------------------------------------------------------------------------------------

STRING: Json = {"type": "string"}
INTEGER: Json = {"type": "integer"}


class Kit(NamedTuple):
    """Names of four tools with the same shapes in every kit: text and integer; nothing; nested; a number."""

    find: str
    text: str
    count: str
    stop: str
    keep: str
    title: str
    meta: str
    weigh: str
    ratio: str

    def tools(self) -> list[Tool]:
        inner = {"type": "object", "properties": {"tags": {"type": "array", "items": STRING}, "depth": INTEGER}}
        return [
            _tool(self.find, {self.text: STRING, self.count: INTEGER}, self.text),
            _tool(self.stop, {}),
            _tool(self.keep, {self.title: STRING, self.meta: inner}, self.title),
            _tool(self.weigh, {self.ratio: {"type": "number"}}, self.ratio),
        ]

    def draw(self, dice: Random, *, both: bool | None = None) -> CallData:
        """Return a call of the first tool, with both of its arguments or only the text."""
        arguments: Json = {self.text: dice.choice(WORDS)}
        if dice.random() < 0.5 if both is None else both:
            arguments[self.count] = dice.randint(1, 99)
        return self.find, arguments

    def draw_nested(self, dice: Random) -> CallData:
        meta = {"tags": dice.sample(["a", "b c", "x-y"], 2), "depth": dice.randint(0, 9)}
        return self.keep, {self.title: dice.choice(WORDS), self.meta: meta}


WORDS = ("owl", "barn owl", "Zürich", "snow-owl", "two words", "a_b.c", "line one\nline two", "naïve café", "x = y + 1")


def _tool(name: str, properties: Json, *required: str) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": properties, "required": list(required)})


KITS = {
    "words": Kit("lookup", "word", "n", "stop", "note", "title", "meta", "weigh", "ratio"),
    "files": Kit("read_file", "path", "lines", "ping", "save_draft", "label", "extra", "set_zoom", "factor"),
    "shop": Kit("find-item", "query", "limit", "refresh", "place_order", "item", "details", "set_price", "amount"),
}
EIGHT = tuple("alpha beta gamma delta epsilon zeta eta theta".split())
# Spellings of types in third-party tool definitions; each has one meaning.
LOOSE_TYPES: dict[str, Any] = {
    "float": 1.5,
    "int": 3,
    "str": "owl",
    "bool": True,
    "list": ["a"],
    "dict": {"a": 1},
    "tuple": ["a"],
    "any": "owl",
}


def _function(name: str, properties: Json, *required: str) -> Json:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": schema}}


def toolset(key: str) -> list[Any]:
    """Return the tools for a key, in the form that `tools=` accepts."""
    if key in KITS:
        return list(KITS[key].tools())
    if key == "eight":
        return [_tool("fill_form", dict.fromkeys(EIGHT, STRING), *EIGHT)]
    if key == "escaped":
        return [_tool("lookup", {'say "hi"': STRING, "a&b": STRING, "x<y": STRING})]
    if key == "unusable":
        return [_function("broken", {"a": {"type": "string", "pattern": "("}}), _function("lookup", {"word": STRING})]
    kind = key.removeprefix("loose_")
    return [_function("measure", {"value": {"type": kind}}, "value"), _function("lookup", {"word": STRING}, "word")]
