"""Valid values that a grammar must accept: formats, classes of patterns, notations of numbers, orders of members."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llguidance import LLMatcher

from rightcall import Call, Tool, Toolset, check, grammar, render
from rightcall.constrain.gbnf import emit_gbnf_with_limits
from rightcall.constrain.json_schema import project
from rightcall.constrain.patterns import FORMAT_PATTERNS
from rightcall.errors import GrammarCompileError
from rightcall.types import Json
from support import judge
from support.format_sample import sampled
from support.judge import matcher


def accepts(schema: Any, value: Any, **options: Any) -> bool:
    """Return whether the grammar of a tool with the argument `x` of this schema accepts a call with this value."""
    parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False}
    return accepts_arguments(parameters, {"x": value}, **options)


def accepts_arguments(parameters: Json, arguments: Json, **options: Any) -> bool:
    compiled = grammar([{"name": "f", "parameters": parameters}], choice="required", parallel=False, **options)
    return consumes(matcher(compiled.lark()), arguments)


def consumes(lark_matcher: LLMatcher, arguments: Json) -> bool:
    """Return whether the matcher, from its start, accepts a call with these arguments."""
    lark_matcher.reset()
    text = '<tool_call>\n{"name": "f", "arguments": ' + json.dumps(arguments, ensure_ascii=False) + "}\n</tool_call>"
    tokens = list(text.encode())
    return bool(lark_matcher.try_consume_tokens(tokens) == len(tokens) and lark_matcher.is_accepting())


def relaxed_keywords(schema: Any, **options: Any) -> set[str]:
    parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    compiled = grammar([{"name": "f", "parameters": parameters}], **options)
    return {relaxation.keyword for relaxation in compiled.relaxations}


FORMATS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # valid, invalid
    "date": (("2024-02-29", "2000-02-29", "2023-12-31"), ("2023-02-29", "1900-02-29", "2024-13-01", "2024-04-31")),
    "time": (
        ("23:59:60Z", "08:30:06.283185307179Z", "08:30:06+23:59", "08:30:06z"),
        ("24:00:00Z", "08:30:06", "22:59:60Z", "08:30:60Z"),
    ),
    "date-time": (("2024-02-29T12:00:00Z", "1985-04-12t23:20:50.52z"), ("2023-02-29T12:00:00Z", "2024-01-01 00:00Z")),
    "duration": (("PT1H30M", "P1Y2M3DT4H5M6S", "P2W", "P1DT12H", "PT36H"), ("P", "PT", "P1D2H", "P1W1D", "1D", "pt1h")),
    "email": (
        ("a.b+c@example.org", "o'neil@x.io", '"a b"@x.io', "a@[127.0.0.1]", "a@[ipv6:::1]", "a@b--c--d.de"),
        ("a@", "@b.c", ".a@b.c", "a..b@c.d", "a@[tag:content]"),
    ),
    "hostname": (
        (
            "a",
            "a.b.c.d.e.f.g.h",
            "xn--4gbwdl.example",
            "1.2",
            "a--b",
            "abc--d",
            "a-b",
            "a-c-d",
            "ab-c",
            "ab-c-d",
            "a" * 63,
        ),
        ("-a", "a-", "a..b", "a_b", "ab--cd.de", "ab--", "abcd-", "a" * 64),
    ),
    "ipv4": (("0.0.0.0", "255.255.255.255"), ("256.0.0.1", "1.2.3", "01.2.3.4")),
    "ipv6": (
        ("::", "1::", "::1", "1::8", "1:2::7:8", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::"),
        ("1:2", ":::", "1::2::3", "12345::", "1:2:3:4:5:6:7:8:9"),
    ),
    "uri": (
        (
            "http://a.example/b?c=d#part",
            "file:///etc/hosts",
            "mailto:a@b.c",
            "urn:isbn:0",
            "http://[::1]:80/",
            "tel:+1-2",
        ),
        ("/a/b", "http:// a", "1http://a", "http://a/%zz"),
    ),
    "uri-reference": (("../a?b#c", "#part", "http://a.b", "//host/path", ""), ("\\a", "a b")),
    "json-pointer": (("", "/a~1b/0", "/"), ("a", "/~2")),
    "relative-json-pointer": (("0", "1/a", "2#", "0+1/a", "0-1#", "1-10"), ("-1", "01", "a", "0+", "0+01", "0+1+1")),
    "uuid": (("2EB8AA08-aa98-11ea-b4aa-73b441d16380",), ("2eb8aa08aa9811eab4aa73b441d16380",)),
}


def test_every_asserted_format_has_examples() -> None:
    assert set(FORMATS) == set(FORMAT_PATTERNS)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_accepts_valid_values_and_rejects_others(name: str) -> None:
    valid, invalid = FORMATS[name]
    for schema in ({"type": "string", "format": name}, {"format": name}):
        assert [text for text in valid if not accepts(schema, text, formats=True)] == []
        assert [text for text in invalid if accepts(schema, text, formats=True)] == []


@pytest.mark.parametrize("name, example", [("email", "a" * 65 + "@b.c"), ("hostname", "xn--X")])
def test_what_the_pattern_of_a_format_cannot_forbid_is_reported(name: str, example: str) -> None:
    schema = {"type": "string", "format": name}
    assert accepts(schema, example, formats=True)
    assert relaxed_keywords(schema, formats=True) == {"format"}
    assert not relaxed_keywords(schema)


def test_a_format_that_is_negated_forbids_no_text_without_a_report() -> None:
    schema = {"not": {"type": "string", "format": "date"}}
    assert accepts(schema, "noon", formats=True) and relaxed_keywords(schema, formats=True) == {"not"}
    assert not accepts(schema, "noon") and not relaxed_keywords(schema)


def test_a_format_without_a_type_accepts_values_other_than_strings() -> None:
    for value in (5, None, [1], {"a": "b"}):
        assert accepts({"format": "date"}, value, formats=True)


@pytest.mark.parametrize("name", ["regex", "iri", "idn-email", "int32", "password", "my-own"])
@pytest.mark.parametrize("type_", [{}, {"type": "string"}], ids=["no type", "string"])
def test_a_format_without_a_pattern_is_reported(name: str, type_: Json) -> None:
    assert relaxed_keywords({**type_, "format": name}, formats=True) == {"format"}
    assert relaxed_keywords({**type_, "format": name}) == set()


def test_a_format_beside_a_pattern_is_reported() -> None:
    assert relaxed_keywords({"type": "string", "format": "date", "pattern": "^2"}, formats=True) == {"format"}


CLASSES = (
    (r"^\s$", "\t\n\v\f\r \u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\ufeff", "\u0085\u001c\u180ex"),
    (r"^\S$", "x\u0085\u180eé", " \u00a0\ufeff"),
    (r"^\W$", "é中- \u0660", "a_9Z"),
    (r"^\w$", "a_9Z", "é中-"),
    (r"^[\W\d]$", "é7-", "a_"),
    (r"^[^\s]$", "é\u0085", "\u2003 "),
)


@pytest.mark.parametrize("pattern, inside, outside", CLASSES)
def test_character_classes_follow_ecma_262(pattern: str, inside: str, outside: str) -> None:
    schema: Json = {"type": "string", "pattern": pattern}
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"x": schema}}}
    for chars, expected in ((inside, True), (outside, False)):
        assert [char for char in chars if accepts(schema, char) is not expected] == []
        assert [char for char in chars if (not check(Call("f", {"x": char}), [tool])) is not expected] == []


def test_an_integral_constant_is_accepted_as_integer_and_as_float() -> None:
    for schema in ({"enum": [2.0]}, {"const": 2.0}, {"enum": ["a", -3.0, 2.0]}):
        assert accepts(schema, 2.0) and accepts(schema, 2) and not accepts(schema, 3)
    assert accepts({"const": [2.0, {"a": 4.0}]}, [2, {"a": 4}])
    assert accepts({"enum": [1e22]}, 10**22)
    assert accepts({"enum": [-0.0]}, 0) and accepts({"const": -0.0}, 0.0) and accepts({"const": -0.0}, -0.0)


def _object_schema(count: int, required: list[str]) -> Json:
    return {
        "type": "object",
        "properties": {f"m{at}": {"type": "integer"} for at in range(count)},
        "required": required,
    }


@pytest.mark.parametrize("count", [60, 61, 80, 200])
def test_members_may_come_in_any_order(count: int) -> None:
    schema = _object_schema(count, ["m3", f"m{count - 1}"])
    assert accepts_arguments(schema, {f"m{at}": at for at in reversed(range(count))})
    assert accepts_arguments(schema, {f"m{count - 1}": 1, "m3": 2})
    assert not accepts_arguments(schema, {"m3": 2})


def test_members_whose_count_is_not_enforced_are_reported() -> None:
    assert not grammar([{"name": "f", "parameters": _object_schema(60, [])}]).relaxations
    for schema in (
        _object_schema(61, []),
        {"allOf": [_object_schema(50, []), {"properties": {f"n{at}": {} for at in range(20)}}]},
    ):
        compiled = grammar([{"name": "f", "parameters": {"type": "object", **schema}}])
        (relaxation,) = compiled.relaxations
        assert relaxation.keyword == "properties" and "too few or too many" in relaxation.allows


MEMBER_LIMITS: dict[str, tuple[Json, int, list[int], list[int]]] = {
    "no member": ({"maxProperties": 0}, 1, [0], [1]),
    "none of several members": ({"maxProperties": 0}, 3, [0], [1, 2, 3]),
    "a minimum of as many as Lark counts": ({"minProperties": 2}, 60, [2, 60], [0, 1]),
    "a maximum of one, beyond what Lark counts": ({"maxProperties": 1}, 61, [0, 1], [2, 3, 61]),
    "a maximum of some, beyond what Lark counts": ({"maxProperties": 5}, 200, [0, 5], [6, 60]),
    "a maximum of all that Lark counts": ({"maxProperties": 60}, 61, [0, 59, 60], [61]),
    "a minimum beyond what Lark counts": ({"minProperties": 60}, 61, [60, 61], [58]),
}


@pytest.mark.parametrize("name", MEMBER_LIMITS)
def test_the_number_of_members_is_limited_as_far_as_lark_counts(name: str) -> None:
    limits, count, allowed, forbidden = MEMBER_LIMITS[name]
    schema = {**_object_schema(count, []), "additionalProperties": False, **limits}
    for size in allowed + forbidden:
        assert accepts_arguments(schema, {f"m{at}": at for at in range(size)}) is (size in allowed), size


@pytest.mark.parametrize(
    ("text", "is_accepted"), [("é", True), ("\x85", True), ("\n", False), ("\r", False), ("\u2028", False)]
)
def test_a_dot_in_a_pattern_matches_all_but_line_terminators(text: str, is_accepted: bool) -> None:
    assert accepts({"type": "string", "pattern": "^.$"}, text) is is_accepted


OMITTED: dict[str, tuple[Json, Json, str]] = {
    "nothing fits": ({"x": False}, {}, "no arguments can fit its schema"),
    "no integer is in the range": (
        {"x": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1}},
        {},
        "no arguments can fit its schema",
    ),
    "nothing is declared": (
        {"x": {"type": "object", "properties": {}, "minProperties": 1}},
        {},
        "no arguments fit its schema without undeclared members",
    ),
    "too little is declared": (
        {"x": {"type": "object", "properties": {"a": {}}, "minProperties": 2}},
        {},
        "no arguments fit its schema without undeclared members",
    ),
    "what one schema declares, another forbids": (
        {"x": {"type": "object", "properties": {"a": {}}, "minProperties": 1, "allOf": [{"properties": {"a": False}}]}},
        {},
        "no arguments fit its schema without undeclared members",
    ),
    "undeclared members would not help": (
        {"x": {"type": "object", "properties": {}, "minProperties": 1, "additionalProperties": False}},
        {"undeclared": True},
        "no arguments can fit its schema",
    ),
    "the format has no such name": (
        {"two words": {}},
        {"format": "pythonic"},
        "format 'pythonic' cannot write one of its required arguments",
    ),
}


@pytest.mark.parametrize("name", OMITTED)
def test_the_reason_why_a_tool_is_omitted_is_true(name: str) -> None:
    properties, options, reason = OMITTED[name]
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    other = {"name": "other", "parameters": {"properties": {}}}
    assert grammar([{"name": "f", "parameters": parameters}, other], **options).omitted == {"f": reason}


def test_a_tool_that_needs_undeclared_members_is_not_omitted_where_they_are_allowed() -> None:
    parameters = {"type": "object", "properties": {"x": {"properties": {}, "minProperties": 1}}, "required": ["x"]}
    made = grammar([{"name": "f", "parameters": parameters}], undeclared=True)
    assert not made.omitted and [relaxation.keyword for relaxation in made.relaxations] == ["minProperties"]


def test_a_regular_expression_does_not_drop_the_limits_of_members_silently() -> None:
    def regex(count: int, **limits: int) -> str:
        schema = {**_object_schema(count, []), "additionalProperties": False, **limits}
        return grammar([{"name": "f", "parameters": schema}], choice="required", parallel=False).regex()

    assert regex(3, maxProperties=1) and regex(4)
    for limit in ("minProperties", "maxProperties"):
        with pytest.raises(GrammarCompileError, match="number of more than 3 members"):
            regex(4, **{limit: 1})


EQUAL_CONSTANTS: dict[str, tuple[Any, Any, bool]] = {
    "numbers": (1, 1.0, True),
    "lists of equal numbers": ([1], [1.0], True),
    "objects in another order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    "equal numbers at depth": ({"a": [{"b": 2}]}, {"a": [{"b": 2.0}]}, True),
    "zeros": (0, -0.0, True),
    "a number and a boolean": (1, True, False),
    "a boolean and a number in lists": ([0], [False], False),
    "lists in another order": ([1, 2], [2, 1], False),
    "a text and a number": ("1", 1, False),
}


@pytest.mark.parametrize("name", EQUAL_CONSTANTS)
def test_a_one_of_is_reported_if_its_constants_are_equal(name: str) -> None:
    one, other, are_equal = EQUAL_CONSTANTS[name]
    schema = {"properties": {"x": {"oneOf": [{"const": one}, {"enum": ["z", other]}]}}}
    compiled = grammar([{"name": "f", "parameters": schema}])
    assert [relaxation.keyword for relaxation in compiled.relaxations] == ["oneOf"] * are_equal


def test_constants_that_repeat_in_one_alternative_do_not_overlap_with_another() -> None:
    schema = {"properties": {"x": {"oneOf": [{"enum": [1, 1.0]}, {"const": 2}]}}}
    assert not grammar([{"name": "f", "parameters": schema}]).relaxations


# Schemas that are combined in pairs. An engine's lexer sees the lexemes of both at the same position.
_PAIRED_SCHEMAS: tuple[Json, ...] = (
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "integer"}}},
    {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False},
    {"type": "object", "properties": {"ab": {"const": 1.5}}, "additionalProperties": {"type": "string"}},
    {"type": "object", "additionalProperties": {"type": "null"}},
    {"type": "object", "patternProperties": {"^a": {"type": "boolean"}}, "additionalProperties": False},
    {"type": "object", "required": ["a"], "additionalProperties": {"type": ["integer", "string"]}},
    {"enum": [{"a": 1}, {"b": "c"}, ["a"], "a", 1, True]},
    {"type": "string", "maxLength": 1},
    {"type": "string", "pattern": "^ab*$"},
    {"type": "integer", "minimum": 1, "maximum": 12},
    {"type": "number", "exclusiveMaximum": 1.5},
    {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
    {"type": "array", "prefixItems": [{"const": "a"}, {"type": "string"}], "items": False},
    {"not": {"type": "object"}},
)
_PAIRED_VALUES: tuple[Any, ...] = (
    *({}, {"a": 1}, {"a": "x"}, {"a": None}, {"a": True}, {"ab": 1.5}, {"b": "c"}, {"b": 2}, {"a": 1, "ab": None}),
    *("", "a", "ab", "abb", "b", 0, 1, 12, 13, 1.25, 1.5, -0.5, True, None, [], [1], ["a"], ["a", "b"], [1, 2, 3]),
)


@pytest.mark.parametrize("keyword", ["anyOf", "allOf", "oneOf"])
@pytest.mark.parametrize("first", range(len(_PAIRED_SCHEMAS)))
def test_a_grammar_of_two_schemas_accepts_the_values_that_pass_the_check(keyword: str, first: int) -> None:
    for second in _PAIRED_SCHEMAS[first:]:
        parameters: Json = {
            "type": "object",
            "properties": {"x": {keyword: [_PAIRED_SCHEMAS[first], second]}},
            "required": ["x"],
        }
        tool = {"name": "f", "parameters": parameters}
        try:
            compiled = grammar([tool], choice="required", parallel=False, undeclared=True)
        except GrammarCompileError:
            assert all(check(Call("f", {"x": value}), [tool]) for value in _PAIRED_VALUES), second
            continue
        lark_matcher = matcher(compiled.lark())
        for value in _PAIRED_VALUES:
            accepted, valid = consumes(lark_matcher, {"x": value}), not check(Call("f", {"x": value}), [tool])
            assert accepted or not valid, (second, value)
            assert valid or not accepted or compiled.relaxations, (second, value)


def test_a_constant_may_have_undeclared_members() -> None:
    schema: Json = {"type": "object", "properties": {"b": {"type": "string"}}, "enum": [{"a": 1}, {"b": 2}]}
    assert accepts(schema, {"a": 1})
    assert not accepts(schema, {"b": 2})
    with pytest.raises(GrammarCompileError):
        accepts({**schema, "additionalProperties": False}, {"a": 1})


def test_a_member_that_one_schema_forbids_is_not_declared_by_another() -> None:
    for word in ("allOf", "anyOf"):
        schema: Json = {"type": "object", "properties": {"a": {}, "b": {}}, word: [{"properties": {"b": False}}]}
        assert accepts(schema, {"a": 1})
        assert not accepts(schema, {"b": 1})


def test_members_are_counted_over_all_schemas_that_declare_them() -> None:
    schema: Json = {"type": "object", "minProperties": 2, "properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]}
    assert accepts(schema, {"a": 1, "b": 2})
    assert not accepts(schema, {"a": 1})


def test_a_member_that_is_only_required_is_unevaluated() -> None:
    schema: Json = {"type": "object", "required": ["a"], "unevaluatedProperties": False}
    with pytest.raises(GrammarCompileError):
        accepts(schema, {"a": 1})
    declaring: tuple[Json, ...] = (
        {"properties": {"a": {}}},
        {"allOf": [{"properties": {"a": {}}}]},
        {"patternProperties": {"^a": {}}},
        {"additionalProperties": True},
    )
    for keywords in declaring:
        assert accepts({**schema, **keywords}, {"a": 1}), keywords


@pytest.mark.parametrize("dialect", ["openai", "anthropic", "ollama", "xgrammar"])
def test_only_formats_that_the_server_asserts_are_sent(dialect: str) -> None:
    names = [*FORMAT_PATTERNS, "regex", "iri", "int32"]
    schema: Json = {"type": "object", "properties": {name: {"type": "string", "format": name} for name in names}}
    for formats in (False, True):
        projected, limits = project(schema, dialect, formats=formats)
        sent = {name for name in names if "format" in json.dumps(projected["properties"][name])}
        reported = {limit.path.rpartition("/")[0] for limit in limits if limit.keyword == "format"}
        assert sent <= set(FORMAT_PATTERNS) and ("date" in sent) is (dialect in ("openai", "anthropic"))
        assert reported == {f"/properties/{name}" for name in names if formats and name not in sent}


@pytest.mark.parametrize("dialect", ["openai", "anthropic", "ollama", "xgrammar"])
def test_closed_objects_are_sent_as_closed(dialect: str) -> None:
    schema: Json = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    outer: Json = {"type": "object", "properties": {"x": schema, "y": schema}, "additionalProperties": False}
    projected, _ = project(outer, dialect)
    assert projected["additionalProperties"] is False is projected["properties"]["x"]["additionalProperties"]
    assert "[]" not in json.dumps(projected)


WRITTEN: dict[str, tuple[Json, Any]] = {
    "a text that matches a pattern at its beginning": ({"type": "string", "pattern": "^a"}, "ab < c"),
    "a text that matches a pattern anywhere": ({"type": "string", "pattern": "b"}, "ab"),
    "a text of an argument without a type": ({"minLength": 2}, "ab"),
    "a text that begins as a JSON word does": ({"minLength": 2, "maxLength": 4}, "trap"),
    "a number of an argument without a type": ({"minimum": 3}, 5),
    "a list with a schema for each item": ({"type": "array", "prefixItems": [{"type": "string"}]}, ["a"]),
}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("format", sampled())
def test_every_format_accepts_an_argument_as_it_renders_it(name: str, required: bool, format: str) -> None:
    schema, value = WRITTEN[name]
    parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"] if required else []}
    tools = Toolset([Tool(name="f", parameters=parameters)])
    made = grammar(tools, format=format, choice="required", parallel=False)
    assert not made.relaxations and not made.omitted
    assert judge.accepts(made.lark(), render(Call("f", {"x": value}, ""), format=format, tools=tools))


TOO_LONG = {"a text that begins as a JSON word does": "train", "a text of an argument without a type": "a"}


@pytest.mark.parametrize("name", TOO_LONG)
@pytest.mark.parametrize("format", sampled())
def test_a_text_of_an_argument_without_a_type_has_the_lengths_of_its_schema(name: str, format: str) -> None:
    tools = Toolset([Tool(name="f", parameters={"type": "object", "properties": {"x": WRITTEN[name][0]}})])
    made = grammar(tools, format=format, choice="required", parallel=False)
    text = render(Call("f", {"x": TOO_LONG[name]}, ""), format=format, tools=tools)
    assert not judge.accepts(made.lark(), text)


def test_a_text_with_a_pattern_never_contains_the_marker_that_closes_it() -> None:
    tools = Toolset([Tool(name="f", parameters={"properties": {"x": {"type": "string", "pattern": r"^a[\s\S]*b$"}}})])
    made = grammar(tools, format="qwen3_coder", choice="required", parallel=False)
    text = render(Call("f", {"x": "a</parameter>b"}, ""), format="qwen3_coder", tools=tools)
    assert not judge.accepts(made.lark(), text.replace("a</parameter>b", "a\n</parameter>\nb"))
    assert "pattern" in {limit.keyword for limit in emit_gbnf_with_limits(made)[1]}


def test_an_optional_argument_that_a_format_cannot_write_is_reported() -> None:
    tools = Toolset([Tool(name="f", parameters={"properties": {"a b": {}, "c": {}}})])
    made = grammar(tools, format="pythonic", choice="required")
    assert [(limit.tool, limit.path) for limit in made.relaxations] == [("f", "/properties/a b")]
