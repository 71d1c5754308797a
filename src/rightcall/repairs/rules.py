"""Every repair rule: its name, its kind, what it does, and a call that shows it.

The page `docs/repair.md` is made from this table, and the tests run every line of it. Each example is a call as a
provider hands it over: the tool's name and the exact text of the arguments; or with a `format`, as a model writes it.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rightcall.types import Tool


class RepairRule(msgspec.Struct, frozen=True):
    """`sent` becomes `arguments`, with a receipt of this name and kind. A rule may have several of these."""

    name: str
    kind: Literal["exact", "schema", "guess"]
    what: str
    sent: str
    arguments: dict[str, Any]
    tool: str = "get_weather"  # the name as it was sent
    of: str = "get_weather"  # the declared tool
    beside: dict[str, Any] = {}  # what was sent beside name and arguments
    format: str = ""  # where `sent` is a model's text in this format


_OSLO: dict[str, Any] = {"city": "Oslo"}

TOOLS: tuple[Tool, ...] = (
    Tool(
        name="get_weather",
        parameters={
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "unit": {"enum": ["celsius", "fahrenheit"]},
                "hourly": {"type": "boolean", "default": False},
                "tags": {"type": "array", "items": {"type": "string"}},
                "place": {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}},
            },
            "required": ["city"],
        },
        aliases={"town": "city"},
    ),
    Tool(
        name="notes.add",
        parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    ),
)

RULES: tuple[RepairRule, ...] = (
    # -- the text is not JSON
    RepairRule(
        "code_fence",
        "exact",
        "A code fence around the arguments, or around a value in them, is taken off.",
        '```json\n{"city": "Oslo"}\n```',
        _OSLO,
    ),
    RepairRule(
        "broken_opener",
        "exact",
        "A damaged tag that opens a call is read as what it was if an argument or the call's close follows the name.",
        "<tool_call>\n<function=get_weather\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
        _OSLO,
        format="qwen3_coder",
    ),
    RepairRule(
        "double_encoded",
        "exact",
        "Arguments that are a JSON string which holds an object are that object.",
        r'"{\"city\": \"Oslo\"}"',
        _OSLO,
    ),
    RepairRule(
        "double_encoded",
        "schema",
        "A string that holds an object or array, where the schema wants one, is what it holds, with escaped quotation "
        "marks too. At any depth; a declared string is never touched.",
        r'{"city": "Oslo", "place": "{\"lat\": 59.9}"}',
        {"city": "Oslo", "place": {"lat": 59.9}},
    ),
    RepairRule(
        "single_quotes", "exact", "Strings in single quotes or backticks are strings.", "{'city': 'Oslo'}", _OSLO
    ),
    RepairRule("smart_quotes", "exact", "Strings in typographic quotes are strings.", "{“city”: “Oslo”}", _OSLO),
    RepairRule(
        "python_literal",
        "exact",
        "`True`, `False`, `None` and `undefined` are `true`, `false` and `null`.",
        '{"city": "Oslo", "hourly": True}',
        {"city": "Oslo", "hourly": True},
    ),
    RepairRule(
        "trailing_comma",
        "exact",
        "A comma that nothing follows is dropped. One where an item or the first member should stand is dropped as a "
        "guess: something may have been lost there.",
        '{"city": "Oslo",}',
        _OSLO,
    ),
    RepairRule(
        "comment",
        "exact",
        "Comments are dropped: `// ...`, `# ...` and `/* ... */`. One in the place of a list's item is dropped as a "
        "guess: `#urgent` may have lost its quotes. So is one that may hold an argument, because its line break was "
        "lost.",
        '{"city": "Oslo" /* the capital */}',
        _OSLO,
    ),
    RepairRule(
        "ordinary_quotes",
        "exact",
        "Where a format has quotes of its own, a string in ordinary ones is a string, with JSON's escapes, and so is "
        "one that lacks the quote before it. A key in quotes is a key. With another such quote inside that was not "
        "escaped it is a guess.",
        '<|tool_call>call:get_weather{city:"Oslo"}<tool_call|>',
        _OSLO,
        format="gemma4",
    ),
    RepairRule("unquoted_key", "exact", "A key without quotes is a key.", '{city: "Oslo"}', _OSLO),
    RepairRule("key_separator", "exact", "`=` or `=>` behind a key is `:`.", '{"city" = "Oslo"}', _OSLO),
    RepairRule(
        "raw_newline",
        "exact",
        "A line break or another control character inside a string is part of the string.",
        '{"city": "Oslo\nNorway"}',
        {"city": "Oslo\nNorway"},
    ),
    RepairRule(
        "bad_escape",
        "exact",
        "In a Windows path every backslash is one, and in a regular expression (`\\d+`) those are that begin no JSON "
        "escape; in any other string that is a guess, because such a backslash may as well be one too many. `\\'` is a "
        "quote, if the string has no other that is not escaped. A string whose escapes are all valid is JSON and stays "
        "so: the `\\t` in `C:\\temp` is a tab.",
        r'{"city": "C:\Users\new"}',
        {"city": r"C:\Users\new"},
    ),
    RepairRule(
        "number_spelling",
        "exact",
        "Numbers as programmers write them: `+3`, `.5`, `1_000`. Where a string is wanted, the text stays as it was "
        "written (`unquoted_value`); where anything may stand, that `+3` is a number is a guess.",
        '{"city": "Oslo", "days": +3}',
        {"city": "Oslo", "days": 3},
    ),
    RepairRule(
        "extra_closer",
        "exact",
        "One to three closing brackets too many at the end are dropped; as a guess, if another bracket could be the "
        "one too many as far as the schema tells.",
        '{"city": "Oslo"}}',
        _OSLO,
    ),
    RepairRule(
        "missing_closer",
        "exact",
        "A bracket that was not closed before the one around it is closed there. One that is open at the end is closed "
        "only where the end of the call was seen: what was cut off is never completed. It is a guess if it could have "
        "stood elsewhere, so that a key would belong to another object that takes it as well, or if what was open at "
        "the end could have held more.",
        '{"city": "Oslo", "tags": ["cold"}',
        {"city": "Oslo", "tags": ["cold"]},
    ),
    RepairRule(
        "swapped_closer",
        "exact",
        "A closing bracket of the wrong kind closes what is open, if all the others are right then.",
        '{"city": "Oslo", "tags": ["cold"}, "days": 3}',
        {"city": "Oslo", "tags": ["cold"], "days": 3},
    ),
    RepairRule(
        "concatenated",
        "exact",
        "Of several objects in a row, all the same or all but one empty, the one is taken; also inside the arguments.",
        '{}{"city": "Oslo"}',
        _OSLO,
    ),
    RepairRule(
        "merged_objects",
        "guess",
        "Several objects in a row that have no key in common are one.",
        '{"city": "Oslo"} {"days": 3}',
        {"city": "Oslo", "days": 3},
    ),
    RepairRule(
        "missing_comma",
        "guess",
        "A comma that is missing between two entries is put in.",
        '{"city": "Oslo" "days": 3}',
        {"city": "Oslo", "days": 3},
    ),
    RepairRule(
        "unquoted_value",
        "guess",
        "A bare word is a string. In Python calls it is one, and so is what is no Python (`when=2024-01-05`), with the "
        "kind `schema`, if the argument must be a string and nothing in it tells of lost quotes.",
        '{"city": Oslo}',
        _OSLO,
    ),
    RepairRule(
        "inner_quotes",
        "schema",
        "In Python calls, quotes inside a string that were not escaped belong to it, if only one reading fits.",
        "[get_weather(city='the 'big' city')]",
        {"city": "the 'big' city"},
        format="pythonic",
    ),
    RepairRule(
        "json_repair",
        "guess",
        "The last rung, under `lenient` only: what the json_repair library makes of a short text, if that fits the "
        "schema: in one reply some 4,000 characters with few brackets, 600 with a hundred.",
        '{"city": "the "big" city"}',
        {"city": 'the "big" city'},
    ),
    # -- the names
    RepairRule(
        "control_tokens",
        "exact",
        "Control tokens that got into the tool's name are cut off.",
        '{"city": "Oslo"}',
        _OSLO,
        tool="get_weather<|channel|>commentary",
    ),
    RepairRule(
        "namespace",
        "exact",
        "A namespace before a declared name is dropped: `functions.f`, `default_api.f`, `mcp__server__f`.",
        '{"city": "Oslo"}',
        _OSLO,
        tool="functions.get_weather",
    ),
    RepairRule(
        "namespace",
        "schema",
        "A name that is the end of exactly one declared name stands for it.",
        '{"text": "Buy milk."}',
        {"text": "Buy milk."},
        tool="add",
        of="notes.add",
    ),
    RepairRule(
        "folded_name",
        "schema",
        "A tool's name that differs from one declared name only in case and separators is that name.",
        '{"city": "Oslo"}',
        _OSLO,
        tool="getWeather",
    ),
    RepairRule("folded_name", "schema", "So is an argument's name, at any depth.", '{"City": "Oslo"}', _OSLO),
    RepairRule(
        "near_name",
        "guess",
        "Under `lenient` only: a tool's name that is very similar to exactly one declared name is that name.",
        '{"city": "Oslo"}',
        _OSLO,
        tool="get_wheather",
    ),
    RepairRule(
        "near_name",
        "guess",
        "The name of a required argument that is missing is given to the one unknown argument whose name is similar.",
        '{"citty": "Oslo"}',
        _OSLO,
    ),
    RepairRule(
        "near_name",
        "guess",
        "Or to the one whose name has all its words, or only words of it, and no other argument's.",
        '{"city_name": "Oslo"}',
        _OSLO,
    ),
    RepairRule(
        "hoisted_name",
        "schema",
        "A call without a name that has a declared tool's name among its arguments is a call of that tool.",
        '{"name": "get_weather", "city": "Oslo"}',
        _OSLO,
        tool="",
    ),
    RepairRule(
        "inferred_name",
        "schema",
        "A call without a name is a call of the one tool that its arguments fit: all that the tool requires, nothing "
        "that it does not know, and no other tool requires the same.",
        '{"city": "Oslo", "days": 3}',
        {"city": "Oslo", "days": 3},
        tool="",
    ),
    RepairRule(
        "alias",
        "exact",
        "An alias that the tool declares becomes the argument's own name.",
        '{"town": "Oslo"}',
        _OSLO,
    ),
    RepairRule(
        "unwrapped",
        "schema",
        "Arguments inside `arguments`, `parameters`, `args`, `kwargs` or `input` are taken out.",
        '{"arguments": {"city": "Oslo"}}',
        _OSLO,
    ),
    RepairRule(
        "hoisted_argument",
        "schema",
        "An argument of the tool that stands beside the arguments and not among them is put there.",
        '{"city": "Oslo"}',
        {"city": "Oslo", "days": 3},
        beside={"days": 3},
    ),
    # -- the values
    RepairRule(
        "scalar_type",
        "schema",
        "A number, boolean or null that was sent as a string, or the other way round, where the schema wants that. A "
        'number keeps its spelling: `1.10` is "1.10" and `"1.0"` is `1.0`, but `1` for an integer. With zeros in front '
        '(`"010"`) it is a guess.',
        '{"city": "Oslo", "days": "3"}',
        {"city": "Oslo", "days": 3},
    ),
    RepairRule(
        "enum_case",
        "schema",
        "A value that differs from one allowed value only in case, and in blanks, `_` and `-` between letters, is that "
        "value.",
        '{"city": "Oslo", "unit": "Celsius"}',
        {"city": "Oslo", "unit": "celsius"},
    ),
    RepairRule(
        "wrapped_in_array",
        "schema",
        "One value where an array of such is wanted becomes an array of one; as a guess, if it may be a list in other "
        "clothes (`a, b`) or stands in a list itself.",
        '{"city": "Oslo", "tags": "cold"}',
        {"city": "Oslo", "tags": ["cold"]},
    ),
    RepairRule(
        "array_of_one",
        "guess",
        "An array of one value where one value is wanted becomes that value.",
        '{"city": ["Oslo"]}',
        _OSLO,
    ),
    RepairRule(
        "default",
        "schema",
        "A null where the schema allows none, or a required argument that is missing, takes the declared default.",
        '{"city": "Oslo", "hourly": null}',
        {"city": "Oslo", "hourly": False},
    ),
    RepairRule(
        "null_dropped",
        "schema",
        "A null for an optional argument that allows none and has no default is left out.",
        '{"city": "Oslo", "days": null}',
        _OSLO,
    ),
)
