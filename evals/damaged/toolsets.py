"""Generate random tools and calls: nested, with names that several levels share, and strings that look like code.

make_truth(dice, toolset(dice))  ->  Truth(name="move_items", arguments={"filter": {"limit": 3}, "limit": 5}, tools=...)
"""

from __future__ import annotations

import random
from typing import Any

import msgspec

from rightcall import Call, Toolset, check

Schema = dict[str, Any]

# Few names, so that objects inside objects declare the same ones.
_NAMES = ("path", "limit", "mode", "filter", "options", "tags", "dry_run", "text", "query", "depth", "kind", "userId")
_NAMES += ("max_items", "id", "name", "type", "value", "range", "source", "when")
_TOOLS = ("search_files", "move_items", "send_mail", "notes.add", "setLevel", "delete_rows", "run_query", "plan")
_ENUMS = (
    ("celsius", "fahrenheit"),
    ("asc", "desc"),
    ("<", ">", "<=", ">=", "=", "!="),
    ("+", "-", "*"),
    ("c", "C++", "C#", "java"),
    ("1.1", "1.2", "11", "-5", "5"),
    ("read_only", "read-write", "All Users"),
    ("*", ""),
    ("north-east", "northeast", "south"),
)
_WORDS = "the quick owl reads a long note about tea in Oslo and Bergen before 10 o'clock, then it sleeps".split()
# Except for `true`, `True` and numbers, none of these is a literal of JSON or Python: without its quotes, such a string
# is that literal, and no parser can detect the damage.
_TEXTS = (
    "",
    " ",
    "it's late",
    'she said "no"',
    'a "quoted", b',
    "line one\nline two",
    "tab\there",
    "a, b",
    "a, b: c",
    "key: value",
    "x=1, y=2",
    "[a] or [b]",
    '{"a": 1}',
    '{"a": 1, "b": [2, 3]}',
    "{'a': 'b', 'c': 1}",
    "def f(x):\n    return x[0] + {'k': \"v\"}['k']",
    "if (a < b) { return c; } // done",
    "SELECT * FROM t WHERE a = 'it''s' -- all",
    r"\d+\s*",
    r"^\w+\.py$",
    r"(\d{3})-(\d{4})",
    r"\bword\b",
    r"C:\Users\new\table.txt",
    r"\\host\share\docs",
    r"\Windows\System32",
    r"print('it\'s')",
    "/usr/local/bin",
    "//server/share",
    "#urgent",
    "https://example.com/a?b=c&d=%20#top",
    "src/**/*.py",
    "/* a comment */",
    "true",
    "True",
    "12",
    "007",
    "02134",
    "+4712345678",
    "1.10",
    "1e5",
    "2024-01-05",
    "10:30",
    "yes",
    "null and void",
    "naïve café — “smart” ‘quotes’…",
    "日本語, テキスト",
    "😀 done",
    "ends with \\",
    "}",
    "]}",
    "<b>bold</b>",
    "```json\n{}\n```",
    "$HOME/${x}",
    "a\\nb",
    "50%",
    "user@example.com",
)


class Truth(msgspec.Struct, frozen=True):
    """A correct call, and the tools that it may call."""

    name: str
    arguments: dict[str, Any]
    tools: Toolset
    parameters: Schema


def make_truth(dice: random.Random, toolset: tuple[Toolset, dict[str, Schema]]) -> Truth | None:
    """Return a call of one of the tools, or None if the generated arguments do not fit."""
    tools, parameters = toolset
    name = dice.choice(list(parameters))
    arguments = _object(dice, parameters[name], 0)
    truth = Truth(name, arguments, tools, parameters[name])
    return truth if not check(Call(name, arguments), tools) else None


def toolset(dice: random.Random) -> tuple[Toolset, dict[str, Schema]]:
    names = dice.sample(_TOOLS, dice.randint(1, 4))
    parameters = {name: _object_schema(dice, 0) for name in names}
    return Toolset([{"name": name, "parameters": schema} for name, schema in parameters.items()]), parameters


# -- schemas -----------------------------------------------------------------------------------------------------------


def _object_schema(dice: random.Random, level: int) -> Schema:
    keys = dice.sample(_NAMES, dice.randint(1, 6 if level == 0 else 4))
    schema: Schema = {"type": "object", "properties": {key: _schema(dice, level + 1) for key in keys}}
    required = [key for key in keys if dice.random() < 0.35]
    if required:
        schema["required"] = required
    if dice.random() < 0.4:
        schema["additionalProperties"] = False
    return schema


def _schema(dice: random.Random, level: int) -> Schema:
    roll = dice.random()
    if level <= 3 and roll < 0.34:
        return dice.choice((_object_schema, _object_schema, _free_schema, _array_schema))(dice, level)
    if level <= 3 and roll < 0.42:
        return _array_schema(dice, level)
    return _scalar_schema(dice, dice.random())


def _free_schema(dice: random.Random, level: int) -> Schema:
    if dice.random() < 0.3:
        return {"type": "object", "additionalProperties": _scalar_schema(dice, dice.random())}
    return {"type": "object"}


def _array_schema(dice: random.Random, level: int) -> Schema:
    roll = dice.random()
    if roll < 0.15:
        return {"type": "array"}
    if roll < 0.4 and level <= 2:
        return {"type": "array", "items": _object_schema(dice, level + 1)}
    if roll < 0.5:
        return {"type": "array", "items": {"type": "array", "items": _scalar_schema(dice, dice.random())}}
    return {"type": "array", "items": _scalar_schema(dice, dice.random())}


def _scalar_schema(dice: random.Random, roll: float) -> Schema:
    if roll < 0.42:
        return {"type": "string"}
    if roll < 0.54:
        return {"type": "string", "enum": list(dice.choice(_ENUMS))}
    if roll < 0.68:
        return {"type": "integer"}
    if roll < 0.78:
        return {"type": "number"}
    if roll < 0.88:
        return {"type": "boolean"}
    if roll < 0.92:
        return {"type": ["string", "null"]}
    if roll < 0.95:
        return {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    return {"type": ["integer", "null"]} if roll < 0.98 else {}


# -- values ------------------------------------------------------------------------------------------------------------


def _value(dice: random.Random, schema: Schema, level: int) -> Any:
    if "enum" in schema:
        return dice.choice(schema["enum"])
    kind = schema.get("type")
    if "anyOf" in schema:
        return _value(dice, dice.choice(schema["anyOf"]), level)
    kind = dice.choice(kind) if isinstance(kind, list) else kind
    if kind == "object":
        return _object(dice, schema, level)
    if kind == "array":
        return [_value(dice, schema.get("items", {}), level + 1) for _ in range(dice.choice((0, 1, 1, 2, 3)))]
    return _scalar(dice, kind or dice.choice(("string", "integer", "boolean")))


def _object(dice: random.Random, schema: Schema, level: int) -> dict[str, Any]:
    declared = schema.get("properties")
    if declared is None:
        inner = schema.get("additionalProperties", {})
        return {key: _value(dice, inner, level + 1) for key in dice.sample(_NAMES, dice.choice((0, 1, 2, 3)))}
    needed = schema.get("required", ())
    keys = [key for key in declared if key in needed or dice.random() < 0.7]
    dice.shuffle(keys)
    return {key: _value(dice, declared[key], level + 1) for key in keys}


def _scalar(dice: random.Random, kind: str) -> Any:
    if kind == "string":
        return dice.choice(_TEXTS) if dice.random() < 0.6 else " ".join(dice.sample(_WORDS, dice.randint(1, 6)))
    if kind == "integer":
        return dice.choice((0, 1, 3, 7, 10, 42, -5, 100, 1234, 100000, 2**53 + 1, -17))
    if kind == "number":
        return dice.choice((0.5, 1.5, -2.25, 3, 10.0, 1e-7, 59.9139, 1e21, -0.125))
    return dice.random() < 0.5 if kind == "boolean" else None
