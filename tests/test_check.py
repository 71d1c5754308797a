"""`check`: each fault of a call has a code, a path and a message that names the expected value."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

import pytest

from rightcall import Call, Problem, Reply, Text, Tool, Toolset, check, parse, repair
from rightcall.errors import BadTools
from rightcall.schema.validation import fits_schema, validator
from rightcall.tools.checks import argument_problems, steps_pointer
from support.replies import INTEGER, NULLABLE, STRING, Json, blocking, hermes


def make_tool(properties: Json | None = None, *, required: tuple[str, ...] = (), **more: Any) -> Tool:
    parameters = {"type": "object", "properties": properties or {}, "required": list(required), **more}
    return Tool(name="f", parameters=parameters)


def problems(tool: Tool, arguments: Any) -> list[Problem]:
    return check(Call("f", arguments, ""), [tool])


def single_problem(schema: Any, value: Any) -> Problem:
    """Return the single problem of a call whose only argument, `u`, has this schema and this value."""
    [problem] = problems(make_tool({"u": schema}), {"u": value})
    return problem


# -- codes and messages ------------------------------------------------------------------------------------------------

VALUES: list[tuple[str, Any, Any, tuple[str, ...]]] = [
    # code, schema of u, value of u, pieces of the message
    ("wrong_type", INTEGER, "three", ("u must be an integer", 'the string "three"')),
    ("wrong_type", INTEGER, 1.5, ("an integer", "1.5")),
    ("wrong_type", STRING, {"a": 1}, ("a string", 'the object {"a": 1}')),
    ("wrong_type", {"type": "boolean"}, "yes", ("true or false", '"yes"')),
    ("wrong_type", {"type": "array"}, 5, ("an array", "5")),
    ("wrong_type", {"type": ["integer", "null"]}, "x", ("an integer", "null", '"x"')),
    ("wrong_type", STRING, None, ("u is null", "send a string")),
    ("not_allowed", {"enum": ["c", "f"]}, "k", ('"c", "f"', 'the string "k"')),
    ("not_allowed", {"enum": [1, None]}, 2, ("1, null", "2")),
    ("not_allowed", {"const": "c"}, "k", ('"c"', '"k"')),
    ("no_match", {"anyOf": [STRING, INTEGER]}, [1], ("u", "[1]")),
    ("no_match", {"oneOf": [STRING, INTEGER]}, [1], ("u", "[1]")),
    ("wrong_pattern", {"type": "string", "pattern": "^a+$"}, "k", ('"k"', "^a+$")),
    ("out_of_range", {"minimum": 1}, 0, ("0", "1")),
    ("out_of_range", {"maximum": 14}, 20, ("20", "14")),
    ("out_of_range", {"exclusiveMinimum": 0}, 0, ("0",)),
    ("out_of_range", {"exclusiveMaximum": 5}, 5, ("5",)),
    ("out_of_range", {"multipleOf": 5}, 7, ("7", "5")),
    ("wrong_length", {"minLength": 2}, "a", ('"a"', "2")),
    ("wrong_length", {"maxLength": 2}, "abc", ('"abc"', "2")),
    ("wrong_length", {"minItems": 1}, [], ("[]", "1")),
    ("wrong_length", {"maxItems": 1}, [1, 2], ("1",)),
    ("wrong_length", {"minProperties": 1}, {}, ("{}", "1")),
    ("wrong_length", {"maxProperties": 0}, {"a": 1}, ("0",)),
    ("not_unique", {"uniqueItems": True}, [1, 1], ("u",)),
    ("unknown_argument", False, 1, ("no argument u",)),
    ("schema", {"not": STRING}, "x", ("u",)),
    ("schema", {"contains": INTEGER}, ["a"], ("u",)),
]


@pytest.mark.parametrize("code, schema, value, says", VALUES)
def test_an_invalid_value_has_a_code_a_path_and_a_message_with_the_sent_value(
    code: str, schema: Any, value: Any, says: tuple[str, ...]
) -> None:
    problem = single_problem(schema, value)
    assert (problem.code, problem.path, problem.blocking, problem.call) == (code, "/u", True, None)
    assert all(piece in problem.message for piece in says), problem.message


def test_every_problem_code_is_in_the_table_of_values() -> None:
    from rightcall import check as function  # The module has the same name.
    from rightcall.tools.checks import _CODES

    assert callable(function)
    tested_codes = {code for code, *_ in VALUES} | {"missing"}
    assert set(_CODES.values()) <= tested_codes


def test_a_missing_argument_is_reported_with_the_received_keys() -> None:
    tool = make_tool({"city": STRING, "days": INTEGER}, required=("city",))
    [problem] = problems(tool, {"town": "Oslo", "days": 3})
    assert (problem.code, problem.path) == ("missing", "/city")
    assert all(piece in problem.message for piece in ("city is required", "days, town", "Send city"))
    assert "no arguments" in problems(tool, {})[0].message


def test_unknown_arguments_are_reported_with_the_known_ones() -> None:
    tool = make_tool({"city": STRING, "days": INTEGER}, additionalProperties=False)
    [problem] = problems(tool, {"town": "Oslo", "dys": 3})
    assert (problem.code, problem.path) == ("unknown_argument", "")
    assert all(piece in problem.message for piece in ("'town'", "'dys'", "city, days"))


@pytest.mark.parametrize(
    "more", [{"unevaluatedProperties": False}, {"propertyNames": {"maxLength": 4}}, {"additionalProperties": False}]
)
def test_every_keyword_that_forbids_a_name_reports_the_name(more: Json) -> None:
    [problem] = problems(make_tool({"city": STRING}, **more), {"district": "x"})
    assert problem.code == "unknown_argument"
    assert "district" in problem.message


@pytest.mark.parametrize("word", ["anyOf", "oneOf"])
def test_a_value_that_fits_no_alternative_is_reported_with_the_alternatives(word: str) -> None:
    message = single_problem({word: [STRING, INTEGER, {"enum": [True]}]}, [1]).message
    assert "a string" in message
    assert "an integer" in message
    assert word not in message


# -- null --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        STRING,
        INTEGER,
        {"type": "array", "items": STRING},
        {"enum": ["a", "b"]},
        {"const": "a"},
        {"anyOf": [STRING, INTEGER]},
        {"$ref": "#/$defs/word"},
    ],
)
def test_null_for_a_required_argument_is_missing(schema: Json) -> None:
    tool = make_tool({"u": schema}, required=("u",), **{"$defs": {"word": STRING}})
    found = problems(tool, {"u": None})
    assert [(problem.code, problem.path) for problem in found] == [("missing", "/u")]
    assert "u is required" in found[0].message


@pytest.mark.parametrize(
    "schema", [NULLABLE, {"enum": ["a", None]}, {"anyOf": [STRING, {"type": "null"}]}, {"type": "null"}, {}]
)
def test_null_for_a_required_argument_is_valid_if_its_schema_allows_null(schema: Json) -> None:
    assert problems(make_tool({"u": schema}, required=("u",)), {"u": None}) == []


def test_null_for_an_optional_argument_is_of_the_wrong_type() -> None:
    assert single_problem(INTEGER, None).code == "wrong_type"


# -- paths and order ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "steps, path", [([], ""), (["a", 0, "b"], "/a/0/b"), (["a/b"], "/a~1b"), (["a~b"], "/a~0b"), (["~1", ""], "/~01/")]
)
def test_a_json_pointer_escapes_tilde_and_slash(steps: list[Any], path: str) -> None:
    assert steps_pointer(steps) == path


def test_the_path_of_a_problem_is_a_json_pointer_into_the_arguments() -> None:
    inner = {"type": "object", "properties": {"x/y": INTEGER}, "required": ["q~"]}
    tool = make_tool({"a~/b": INTEGER, "list": {"type": "array", "items": inner}})
    found = problems(tool, {"a~/b": "x", "list": [{"q~": 1}, {"x/y": "s"}]})
    assert {(p.code, p.path) for p in found} == {
        ("wrong_type", "/a~0~1b"),
        ("missing", "/list/1/q~0"),
        ("wrong_type", "/list/1/x~1y"),
    }
    assert any("list[1].x/y" in p.message for p in found)


def test_at_most_five_problems_are_reported_with_the_most_useful_first() -> None:
    properties: Json = {f"n{i}": {"type": "integer", "maximum": 1} for i in range(8)}
    properties |= {"city": STRING, "unit": {"enum": ["c"]}, "either": {"anyOf": [STRING, INTEGER]}}
    tool = make_tool(properties, required=("city",), additionalProperties=False)
    sent: Json = {f"n{i}": 9 for i in range(8)} | {"unit": "k", "either": [], "other": 1, "n0": "x"}
    assert [p.code for p in problems(tool, sent)] == [
        "missing",
        "unknown_argument",
        "wrong_type",
        "not_allowed",
        "no_match",
    ]


def test_missing_arguments_are_listed_in_the_order_of_the_schema() -> None:
    tool = make_tool(dict.fromkeys("abcd", STRING), required=("d", "b", "a"))
    [problem] = problems(tool, {"c": "x"})
    assert problem.path == "" and problem.message.startswith("d, b and a are required; received: c.")


@pytest.mark.parametrize("count", [2, 5, 6, 8, 40])
def test_all_missing_arguments_are_named_in_one_problem(count: int) -> None:
    names = [f"argument_{i}" for i in range(count)]
    inner: Json = {"type": "object", "properties": dict.fromkeys(names, STRING), "required": names}
    for tool, sent, where in (
        (make_tool(dict.fromkeys(names, STRING), required=tuple(names)), {}, ""),
        (make_tool({"list": {"type": "array", "items": inner}}), {"list": [{}]}, "/list/0"),
        (make_tool(dict.fromkeys(names, STRING), required=tuple(names)), dict.fromkeys(names[:2]), ""),
    ):
        [problem] = problems(tool, sent)
        assert (problem.code, problem.path) == ("missing", where)
        assert all(re.search(rf"{name}\b", problem.message) for name in names)


def test_the_number_of_unreported_errors_is_reported() -> None:
    tool = make_tool({f"n{i}": INTEGER for i in range(8)})
    found = problems(tool, {f"n{i}": "x" for i in range(8)})
    assert len(found) == 5 and found[-1].message.endswith("(and 3 more problems of this call)")
    assert not any("more problem" in p.message for p in problems(tool, {f"n{i}": "x" for i in range(5)}))


@pytest.mark.parametrize("word", ["anyOf", "oneOf"])
def test_a_message_about_the_arguments_themselves_is_in_the_plural(word: str) -> None:
    tool = Tool(name="f", parameters={"type": "object", word: [{"required": ["a"]}, {"required": ["b"]}]})
    for sent in ({}, {"a": 1, "b": 1}, None):
        found = argument_problems(tool, sent, None)  # type: ignore[arg-type]
        assert not any("the arguments is" in p.message or "the arguments fits" in p.message for p in found)


@pytest.mark.parametrize(
    "tool, arguments",
    [
        (make_tool({"a": STRING}, additionalProperties=False), {"z" * 100_000: 1}),
        (make_tool({"a": {"enum": ["z" * 100_000, "y"]}}), {"a": "x"}),
        (make_tool({"a": STRING}, required=("a",)), {f"key{i}": 1 for i in range(10_000)}),
        (make_tool({"a": {"type": "string", "pattern": "^z"}}), {"a": "y" * 100_000}),
        (make_tool({"a": INTEGER}), {"a": "y" * 100_000}),
        (make_tool({f"argument{i}": STRING for i in range(5_000)}, additionalProperties=False), {"b": 1}),
    ],
)
def test_messages_have_bounded_length(tool: Tool, arguments: Json) -> None:
    assert all(len(problem.message) < 2_000 for problem in problems(tool, arguments))


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", " ", "get weather", "a/b", "f\n", "größe"])
def test_an_invalid_name_is_reported_with_and_without_tools(name: str) -> None:
    for tools in (None, [make_tool()]):
        assert [p.code for p in check(Call(name, {}, ""), tools)] == ["invalid_name"]


def test_an_unknown_tool_is_distinguished_from_an_unauthorised_one() -> None:
    tools = Toolset([Tool(name="get_weather"), Tool(name="send_mail")])
    scoped = tools.scoped(["get_weather", "get_time"])
    for toolset, name, code in (
        (tools, "get_wether", "unknown_tool"),
        (tools, "zzz", "unknown_tool"),
        (scoped, "send_mail", "not_authorised"),
        (scoped, "zzz", "not_authorised"),
        (scoped, "get_time", "unknown_tool"),
        (Toolset(()), "get_weather", "unknown_tool"),
    ):
        [problem] = check(Call(name, {}, ""), toolset)
        assert (problem.code, problem.blocking) == (code, True), name
        assert name in problem.message
    assert check(Call("get_weather", {}, ""), scoped) == []


def test_an_unknown_tool_is_reported_with_the_nearest_name_or_all_names() -> None:
    tools = Toolset([Tool(name="get_weather"), Tool(name="send_mail")])
    assert "did you mean 'get_weather'?" in check(Call("get_wether", {}, ""), tools)[0].message
    assert "get_weather, send_mail" in check(Call("zzz", {}, ""), tools)[0].message
    many = Toolset([Tool(name=f"tool{n}") for n in range(30)])
    assert "and 10 more" in check(Call("zzz", {}, ""), many)[0].message


def test_a_scope_does_not_reveal_hidden_tools() -> None:
    scoped = Toolset([Tool(name="get_weather"), Tool(name="send_mail")]).scoped(["get_weather"])
    assert check(Call("send_mail", {}, ""), scoped)[0].message.replace("send_mail", "send_male") == (
        check(Call("send_male", {}, ""), scoped)[0].message
    )


def test_without_tools_names_and_arguments_are_not_checked() -> None:
    assert check(Call("anything", {"a": [None]}, ""), None) == []


def test_a_truncated_call_is_incomplete_and_its_arguments_are_not_checked() -> None:
    tool = make_tool({"a": INTEGER}, required=("a",))
    assert [p.code for p in check(Call("f", {}, "", complete=False), [tool])] == ["incomplete"]
    assert [p.code for p in check(Call("g", {}, "", complete=False), [tool])] == ["incomplete", "unknown_tool"]


def test_a_call_in_a_reply_is_named_by_its_index() -> None:
    assert [p.call for p in check(Call("f", {"a": "x"}, ""), [make_tool({"a": INTEGER})], index=3)] == [3]
    two = hermes('{"name": "f", "arguments": {"a": 1}}') + hermes('{"name": "f", "arguments": {"a": "x"}}')
    assert blocking(parse(two, format="hermes", tools=[make_tool({"a": INTEGER})])) == [("wrong_type", 1)]


# -- promises of the contract's own check (spec 3.6) -------------------------------------------------------------------

EDIT = make_tool({"path": STRING, "content": STRING, "mode": STRING}, required=("path", "content"))


@pytest.mark.parametrize(
    "arguments, missing",
    [
        ({"content": "x"}, ["/path"]),
        ({}, [""]),
        ({"path": "a", "content": "x"}, []),
        ({"path": "a", "content": "x", "mode": "w"}, []),
        ({"path": None, "content": "x"}, ["/path"]),
    ],
)
def test_every_required_argument_that_is_absent_or_null_is_named(arguments: Json, missing: list[str]) -> None:
    found = problems(EDIT, arguments)
    assert [(p.code, p.path) for p in found] == [("missing", path) for path in missing]
    assert all("required" in p.message and "end" in p.message for p in found)


@pytest.mark.parametrize("sent", ["[]", "5", '"x"'])
def test_arguments_that_are_not_an_object_are_one_problem(sent: str) -> None:
    reply = parse(hermes(f'{{"name": "f", "arguments": {sent}}}'), format="hermes", tools=[EDIT])
    assert blocking(reply) == [("arguments_not_object", 0)]
    assert "must be a JSON object" in reply.problems[0].message


def test_parse_fills_in_the_default_of_a_required_argument() -> None:
    tool = make_tool({"n": {"type": "integer", "default": 3}}, required=("n",))
    reply = parse(hermes('{"name": "f", "arguments": {}}'), format="hermes", tools=[tool])
    assert (reply.attempts[0].arguments, reply.problems) == ({"n": 3}, ())


@pytest.mark.parametrize("inner", [{"default": 3}, {"type": "integer", "default": 3}, {"$ref": "#/$defs/n"}])
def test_a_required_argument_with_a_default_is_missing_until_a_repair_fills_it_in(inner: Json) -> None:
    schema: Json = {"type": "object", "properties": {"n": inner}, "required": ["n"]}
    defs = {"$defs": {"n": {"type": "integer", "default": 3}}}
    tool = make_tool({"n": inner, "o": schema, "l": {"type": "array", "items": schema}}, required=("n",), **defs)
    assert [p.code for p in problems(tool, {"o": {"n": 1}})] == ["missing"]
    assert {p.path for p in problems(tool, {"n": 1, "o": {}, "l": [{}, {"n": 1}]})} == {"/o/n", "/l/0/n"}
    filled = repair(Call("f", {"o": {}}, '{"o": {}}'), [tool])
    assert filled.arguments == {"n": 3, "o": {"n": 3}}
    assert {(r.rule, r.path) for r in filled.repairs} == {("default", "/n"), ("default", "/o/n")}


@pytest.mark.parametrize(
    "sent, filled",
    [
        ({}, True),
        ({"other": 1}, True),
        ({"other": 1, "more": "x"}, True),
        ({"cont": 7}, False),  # This key may be a misspelling of the missing argument.
    ],
)
def test_a_missing_argument_with_a_default_is_filled_in_or_reported(sent: Json, filled: bool) -> None:
    tool = make_tool({"count": {"type": "integer", "default": 3}}, required=("count",))
    text = hermes('{"name": "f", "arguments": ' + json.dumps(sent) + "}")
    off = parse(text, format="hermes", tools=[tool], repair="off")
    assert [p.code for p in off.problems] == ["missing"] == [p.code for p in problems(tool, sent)]
    safe = parse(text, format="hermes", tools=[tool])
    if filled:
        assert safe.calls[0].arguments == {**sent, "count": 3} and not safe.problems
        assert [r.rule for r in safe.calls[0].repairs] == ["default"]
    else:
        assert not safe.calls and [p.code for p in safe.problems] == ["missing"]


@pytest.mark.parametrize("inner", [{}, {"n": 1}], ids=["empty", "whole"])
@pytest.mark.parametrize("wrapper", ["arguments", "properties", "parameters", "input", "kwargs"])
def test_check_finds_no_arguments_inside_a_wrapper(wrapper: str, inner: Json) -> None:
    tool = make_tool({"n": {"type": "integer", "default": 3}}, required=("n",))
    off = parse(
        hermes(json.dumps({"name": "f", "arguments": {wrapper: inner}})), format="hermes", tools=[tool], repair="off"
    )
    assert [p.code for p in off.problems] == ["missing"] == [p.code for p in problems(tool, {wrapper: inner})]


def test_null_for_a_required_argument_with_a_default_is_missing() -> None:
    tool = make_tool({"n": {"type": "integer", "default": 3}}, required=("n",))
    assert [p.code for p in problems(tool, {"n": None})] == ["missing"]


def test_the_errors_of_the_selected_alternative_are_reported() -> None:
    inner: Json = {"type": "object", "properties": {"a": INTEGER}, "required": ["b"]}
    tool = make_tool({"u": {"anyOf": [inner, {"type": "null"}]}})
    assert [(p.code, p.path) for p in problems(tool, {"u": {"a": "x"}})] == [
        ("missing", "/u/b"),
        ("wrong_type", "/u/a"),
    ]
    [problem] = problems(make_tool({"u": {"anyOf": [{"enum": ["c", "f"]}, {"type": "null"}]}}), {"u": "k"})
    assert (problem.code, problem.path) == ("not_allowed", "/u")


def test_objects_that_fit_no_alternative_are_reported_with_each_requirement() -> None:
    forms: list[Json] = [{"type": "object", "required": ["x", "y"]}, {"type": "object", "required": ["name"]}]
    assert "an object with x, y or an object with name" in single_problem({"oneOf": forms}, {}).message
    many: list[Json] = [{"type": "object", "required": [f"key{i}" * 40]} for i in range(60)]
    assert len(single_problem({"anyOf": many}, {}).message) <= 600
    assert "several forms of which only one" in single_problem({"oneOf": [{"type": "object"}, {}]}, {}).message


# -- unusual values ----------------------------------------------------------------------------------------------------

BIG = 10**30


@pytest.mark.parametrize(
    "schema, value, codes",
    [
        (INTEGER, BIG, []),
        (INTEGER, -BIG, []),
        (INTEGER, 1.0, []),
        (INTEGER, 1.5, ["wrong_type"]),
        (INTEGER, True, ["wrong_type"]),
        ({"type": "number"}, BIG, []),
        ({"type": "integer", "maximum": 5}, BIG, ["out_of_range"]),
        ({"type": "integer", "maximum": BIG}, BIG + 1, ["out_of_range"]),
        ({"const": BIG}, BIG, []),
        ({"const": BIG}, BIG + 1, ["not_allowed"]),
        (STRING, "\ud800", []),
        (INTEGER, "\ud800", ["wrong_type"]),
        ({"type": "string", "maxLength": 1}, "\ud800", []),
        ({"enum": ["?"]}, "\ud800", ["not_allowed"]),
        ({"type": "object", "additionalProperties": INTEGER}, {"\udfff": "x"}, ["wrong_type"]),
    ],
)
def test_big_integers_floats_and_lone_surrogates_are_checked_as_their_own_types(
    schema: Json, value: Any, codes: list[str]
) -> None:
    assert [p.code for p in problems(make_tool({"u": schema}), {"u": value})] == codes


@pytest.mark.parametrize("sent", ["1e400", "-1e400", "[1e400]", '{"v": 1.0E+999}'])
def test_a_number_beyond_the_float_range_blocks_the_call(sent: str) -> None:
    for schema in ({"type": "number"}, {}):
        reply = parse(
            hermes(f'{{"name": "f", "arguments": {{"u": {sent}}}}}'), format="hermes", tools=[make_tool({"u": schema})]
        )
        assert reply.attempts[0].json == f'{{"u": {sent}}}'
        assert not reply.attempts[0].ok
        assert [p.code for p in reply.problems] == ["not_finite"]


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), [float("inf")], {"v": float("nan")}])
def test_a_value_that_json_cannot_carry_is_a_problem(value: Any) -> None:
    for schema in ({"type": "number"}, {}):
        assert [p.code for p in problems(make_tool({"u": schema}), {"u": value})] == ["not_finite"]


def test_a_lone_surrogate_in_a_schema_matches_one_in_the_arguments() -> None:
    tool = make_tool({"u": {"enum": ["\ud800", "x"]}})
    assert problems(tool, {"u": "\ud800"}) == []
    assert [p.code for p in problems(tool, {"u": "\ud801"})] == ["not_allowed"]


def test_a_value_under_a_lone_surrogate_is_reported_and_repaired() -> None:
    tool = make_tool({"u": {"type": "object", "additionalProperties": INTEGER}})
    [problem] = problems(tool, {"u": {"\udfff": "x"}})
    assert problem.path == "/u/\\udfff"
    call = repair(Call("f", {"u": {"\udfff": "3"}}, '{"u": {"\\udfff": "3"}}'), [tool])
    assert call.arguments == {"u": {"\udfff": 3}}


def test_a_lone_surrogate_in_a_key_is_an_unknown_argument() -> None:
    [problem] = problems(make_tool({"u": STRING}, additionalProperties=False), {"\ud800": 1})
    assert problem.code == "unknown_argument"
    problem.message.encode()


@pytest.mark.parametrize("value", [{"a": "\ud800"}, {"\ud800": 1}, ["\udfff", {"b": "\ud800"}]])
def test_every_message_can_be_written_as_utf_8(value: Any) -> None:
    found = problems(make_tool({"u": INTEGER}), {"u": value})
    assert found
    assert all(problem.message.encode() for problem in found)


@pytest.mark.parametrize(
    "sent", ['{"\\udfff": "3"}', '{"\\udfff": "x"}', '{"a": {"\\ud800": 1}}', '["\\ud800", {"\\ud800": "3"}]']
)
@pytest.mark.parametrize("policy", ["off", "safe", "lenient"])
def test_a_lone_surrogate_in_a_key_at_any_depth_raises_no_exception(
    sent: str, policy: Literal["off", "safe", "lenient"]
) -> None:
    for inner in (INTEGER, {"type": "object", "additionalProperties": INTEGER}, {"type": "array"}):
        tool = make_tool({"u": {"type": "object", "additionalProperties": inner}})
        text = hermes(f'{{"name": "f", "arguments": {{"u": {sent}}}}}')
        [call] = parse(text, format="hermes", tools=[tool], repair=policy).attempts
        assert call.complete
        repair(call, [tool], policy=policy)


# -- hostile schemas ---------------------------------------------------------------------------------------------------


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.settimeout(0.05)
        yield server


def received_no_connection(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except TimeoutError:
        return True
    return False


HERE = "{here}"
FETCHING: list[Json] = [
    {"properties": {"a": {"$ref": HERE}}},
    {"properties": {"a": {"$ref": f"{HERE}#/x"}}},
    {"$id": HERE, "properties": {"a": {"$ref": "other.json"}}},
    {"$id": HERE, "$ref": "#/$defs/x", "$defs": {"x": {"$ref": "y"}}},
    {"properties": {"a": {"$id": HERE, "$ref": "#/$defs/x"}}},
    {"properties": {"a": {"$dynamicRef": f"{HERE}#x"}}},
    {"$schema": HERE},
    {"$schema": HERE, "$defs": {"a": {"$schema": HERE}}},
    {"properties": {"a": {"$ref": "//127.0.0.1/x"}}},
    {"allOf": [{"$ref": HERE}]},
    {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
    {"$id": "file:///etc/", "properties": {"a": {"$ref": "passwd"}}},
]


def with_address(schema: Any, address: str) -> Any:
    if isinstance(schema, dict):
        return {key: with_address(value, address) for key, value in schema.items()}
    if isinstance(schema, list):
        return [with_address(value, address) for value in schema]
    return schema.replace(HERE, address) if isinstance(schema, str) else schema


@pytest.mark.parametrize("schema", FETCHING)
def test_references_of_a_schema_are_never_fetched(schema: Json, listener: socket.socket) -> None:
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
    tool = Tool(name="f", parameters={"type": "object", **with_address(schema, address)})
    with pytest.raises(BadTools, match=r"fetched|\$id|draft|points"):
        check(Call("f", {"a": 1}, ""), [tool])
    with suppress(ValueError):
        fits_schema(tool, {"a": 1})  # No toolset has validated this tool.
    assert received_no_connection(listener)


@pytest.mark.parametrize(
    "pattern",
    ["^(a+)+$", "^(a|a)*$", "(x+x+)+y", "(.*a){30}", "^(?=a)b", r"(a)\1", "(a{1,1000}){1,1000}", "(", "^[a-z]+$"],
)
def test_every_pattern_is_checked_quickly(pattern: str) -> None:
    tool = make_tool({"a": {"type": "string", "pattern": pattern}})
    start = time.process_time()
    assert all(p.code == "wrong_pattern" for p in problems(tool, {"a": "a" * 60_000 + "!"}))
    assert time.process_time() - start < 2


def test_a_pattern_of_nested_counts_is_checked_quickly() -> None:
    tool = make_tool({"a": {"type": "string", "pattern": "^((a{1,20}){1,20}){1,20}$"}})
    start = time.process_time()
    problems(tool, {"a": "a" * 3_000 + "!"})
    assert time.process_time() - start < 1


def test_a_recursive_schema_is_checked_at_every_level() -> None:
    tool = make_tool({"child": {"$ref": "#"}, "n": INTEGER}, additionalProperties=False)
    sent: Json = {"n": "x"}
    for _ in range(150):
        sent = {"child": sent}
    assert [(p.code, p.path) for p in problems(tool, sent)] == [("wrong_type", "/child" * 150 + "/n")]


def nested(levels: int) -> Json:
    schema: Json = INTEGER
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    "parameters",
    [
        nested(5_000),
        {"type": "object", "$ref": "#"},
        {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {
            "type": "object",
            "$ref": "#/$defs/d0",
            "$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)} | {"d30": {}},
        },
    ],
)
def test_an_endless_schema_is_rejected_quickly(parameters: Json) -> None:
    start = time.process_time()
    with pytest.raises(BadTools):
        check(Call("f", {}, ""), [Tool(name="f", parameters=parameters)])
    assert time.process_time() - start < 1


def test_a_long_list_of_wrong_items_is_checked_quickly() -> None:
    tool = make_tool({"a": {"type": "array", "items": INTEGER}})
    start = time.process_time()
    assert len(problems(tool, {"a": ["x"] * 20_000})) == 5
    assert time.process_time() - start < 1


# -- compiled once -----------------------------------------------------------------------------------------------------


def test_a_validator_is_compiled_once_per_tool() -> None:
    tool = make_tool({"a": INTEGER})
    first = validator(tool)
    check(Call("f", {"a": 1}, ""), Toolset([tool]))
    parse(hermes('{"name": "f", "arguments": {"a": 1}}'), format="hermes", tools=Toolset([tool]))
    assert validator(tool) is first
    assert validator(make_tool({"a": STRING})) is not first


def test_a_tool_is_never_checked_with_the_schema_of_a_deleted_tool() -> None:
    for kind, good, bad in ((STRING, "x", 1), (INTEGER, 1, "x")) * 200:
        tool = make_tool({"a": kind})
        assert (fits_schema(tool, {"a": good}), fits_schema(tool, {"a": bad})) == (True, False)


def test_a_schema_with_a_lone_surrogate_in_a_key_is_checked() -> None:
    schema = {"type": "object", "properties": {"\ud800": {"enum": ["a\ud800"]}}, "required": ["\ud800"]}
    odd = Toolset([Tool(name="f", parameters=schema)])
    assert check(Call("f", {"\ud800": "a\ud800"}, ""), odd) == []
    assert [problem.code for problem in check(Call("f", {}, ""), odd)] == ["missing"]


def test_an_unknown_argument_inside_an_object_is_reported_with_the_known_ones() -> None:
    inner = {"type": "object", "properties": {"x": {}, "y": {}}, "additionalProperties": False}
    schema = {"type": "object", "properties": {"o": {"$ref": "#/$defs/O"}}, "$defs": {"O": inner}}
    tools = Toolset([{"name": "f", "parameters": schema}])
    (problem,) = check(Call("f", {"o": {"z": 1}}, ""), tools)
    assert (problem.code, problem.path) == ("unknown_argument", "/o")
    assert problem.message == "there is no argument 'z'; the arguments of o are: x, y"


def test_check_reports_the_problems_of_all_calls_of_a_reply() -> None:
    tool = Tool(name="f", parameters={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    known = Problem("ambiguous_end", "where it ends is not known", call=1)
    parts = (Call("f", {"n": 1}), Call("f", {"n": 2}, problems=(known,)), Text("and"), Call("f"), Call("g"))
    reply = Reply(parts, (known, Problem("malformed_response", "an entry is no object")))
    found = check(reply, [tool])
    assert [(each.code, each.call) for each in found] == [("ambiguous_end", 1), ("missing", 2), ("unknown_tool", 3)]
    assert check(Reply(parts[:1]), [tool]) == [] and check(parts[1], [tool]) == [known]
