"""Valid JSON arguments that violate their schema: schema repairs, their receipts, and laws."""

from __future__ import annotations

import json
import time
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Call, Tool, Toolset, check, parse, render, repair
from rightcall.errors import BadTools
from rightcall.schema.unknown_names import needs_no_repair, unknown_arguments
from rightcall.schema.validation import errors, fits_schema
from support.cuts import Setting, hold_of_every_cut
from support.replies import INTEGER, NULLABLE, STRING, Json, args, blocking, hermes, runnable

Policy = Literal["off", "safe", "lenient"]
NUMBER: Json = {"type": "number"}
BOOLEAN: Json = {"type": "boolean"}


def make_tool(properties: Json, *, required: tuple[str, ...] = (), read_only: bool = False, **more: Any) -> Tool:
    aliases = more.pop("aliases", {})
    parameters = {"type": "object", "properties": properties, "required": list(required), **more}
    return Tool(name="f", parameters=parameters, aliases=aliases, read_only=read_only)


def list_of(schema: Json) -> Json:
    return {"type": "array", "items": schema}


def record(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def repair_arguments(tool: Tool, arguments: Any, policy: Policy = "safe") -> Call:
    return repair(Call("f", arguments, json.dumps(arguments)), [tool], policy=policy)


def receipts(call: Call) -> list[tuple[str, str, str, str, str]]:
    return [(r.rule, r.kind, r.path, r.before, r.after) for r in call.repairs]


# -- values ------------------------------------------------------------------------------------------------------------

VALUES: list[tuple[Json, Any, Any, str]] = [
    # schema of v, input, result, rule
    (INTEGER, "3", 3, "scalar_type"),
    (INTEGER, " -3 ", -3, "scalar_type"),
    (INTEGER, "3.0", 3, "scalar_type"),
    (INTEGER, "123456789012345678901234567890", 123456789012345678901234567890, "scalar_type"),
    (NUMBER, "1.5", 1.5, "scalar_type"),
    (NUMBER, "12", 12, "scalar_type"),
    (BOOLEAN, "true", True, "scalar_type"),
    (BOOLEAN, "False", False, "scalar_type"),
    ({"type": ["boolean", "null"]}, "false", False, "scalar_type"),
    ({"type": ["integer", "null"]}, "null", None, "scalar_type"),
    ({"type": ["integer", "null"]}, "None", None, "scalar_type"),
    ({"anyOf": [INTEGER, BOOLEAN]}, "7", 7, "scalar_type"),
    (STRING, 12, "12", "scalar_type"),
    (STRING, 1.5, "1.5", "scalar_type"),
    ({"enum": ["celsius", "fahrenheit"]}, "Celsius", "celsius", "enum_case"),
    ({"enum": ["read-only", "read-write"]}, "READ_ONLY", "read-only", "enum_case"),
    ({"const": "on"}, "ON", "on", "enum_case"),
    ({"enum": [1, 2]}, "2", 2, "scalar_type"),
    ({"enum": [True, None]}, "True", True, "scalar_type"),
    (list_of(STRING), "a", ["a"], "wrapped_in_array"),
    (list_of(INTEGER), 5, [5], "wrapped_in_array"),
    (list_of(record(a=INTEGER)), {"a": 1}, [{"a": 1}], "wrapped_in_array"),
    (list_of(STRING), '["a", "b"]', ["a", "b"], "double_encoded"),
    (list_of(STRING), "['a', 'b']", ["a", "b"], "double_encoded"),
    (record(a=INTEGER), '{"a": 1}', {"a": 1}, "double_encoded"),
    ({"anyOf": [record(), {"type": "null"}]}, '{"a": 1}', {"a": 1}, "double_encoded"),
    ({"$ref": "#/$defs/count"}, "3", 3, "scalar_type"),
]
DEFS: Json = {"$defs": {"count": INTEGER}}


@pytest.mark.parametrize("schema, sent, expected, rule", VALUES)
def test_a_value_is_converted_to_its_schema_with_a_receipt(schema: Json, sent: Any, expected: Any, rule: str) -> None:
    tool = make_tool({"v": schema}, **DEFS)
    call = repair_arguments(tool, {"v": sent})
    assert json.dumps(call.arguments) == json.dumps({"v": expected})
    texts = [json.dumps(value, ensure_ascii=False) for value in (sent, expected)]
    assert receipts(call) == [(rule, "schema", "/v", *texts)]
    assert check(call, [tool]) == []
    assert json.loads(call.json) == call.arguments


@pytest.mark.parametrize("text", ["1.0", "1.50", "1e3", "-0.0", "0.1000000000000000055511151231257827", "1.0E+2"])
def test_a_number_in_a_string_keeps_its_spelling(text: str) -> None:
    call = repair_arguments(make_tool({"v": NUMBER}), {"v": text})
    assert call.json == f'{{"v": {text}}}'
    assert call.arguments == {"v": float(text)} and type(call.arguments["v"]) is float
    assert receipts(call) == [("scalar_type", "schema", "/v", f'"{text}"', text)]


@pytest.mark.parametrize("schema, sent, expected, rule", VALUES)
def test_a_nested_value_is_converted_too(schema: Json, sent: Any, expected: Any, rule: str) -> None:
    tool = make_tool({"o": record(items=list_of(record(v=schema)))}, **DEFS)
    call = repair_arguments(tool, {"o": {"items": [{"v": expected}, {"v": sent}]}})
    assert json.dumps(call.arguments) == json.dumps({"o": {"items": [{"v": expected}, {"v": expected}]}})
    assert [(r.rule, r.path) for r in call.repairs] == [(rule, "/o/items/1/v")]


UNREPAIRABLE: list[tuple[Json, Any]] = [
    (INTEGER, "three"),
    (INTEGER, "3.5"),
    (INTEGER, True),
    (INTEGER, 3.5),
    (INTEGER, ""),
    (BOOLEAN, "yes"),
    (BOOLEAN, 1),
    (BOOLEAN, ""),
    (NUMBER, "1,5"),
    (NUMBER, "nan"),
    ({"enum": ["celsius"]}, "kelvin"),
    ({"enum": ["a", "A"]}, " a"),
    ({"enum": ["", "a"]}, " "),
    (record(), '{"a": 1'),
    (record(), "[1]"),
    (STRING, ["a", "b"]),
    (STRING, {"a": 1}),
    ({"type": "integer", "maximum": 5}, 9),
    ({"type": "string", "pattern": "^a$"}, "A"),
]


@pytest.mark.parametrize("schema, sent", UNREPAIRABLE)
def test_a_value_without_a_matching_rule_is_kept_and_rejected(schema: Json, sent: Any) -> None:
    tool = make_tool({"v": schema})
    call = Call("f", {"v": sent}, json.dumps({"v": sent}))
    assert repair(call, [tool]) is call
    assert check(call, [tool])


FITTING: list[tuple[Json, Any]] = [
    (STRING, "007"),
    (STRING, "true"),
    (STRING, "null"),
    (STRING, '{"a": 1}'),
    (STRING, "[1, 2]"),
    (STRING, ""),
    (NULLABLE, "None"),
    ({"type": ["string", "integer"]}, "3"),
    ({"anyOf": [STRING, list_of(STRING)]}, '["a"]'),
    (INTEGER, 3.0),
    ({}, "3"),
    ({"type": "string", "default": "x"}, ""),
]


@pytest.mark.parametrize("schema, sent", FITTING)
def test_a_valid_value_is_never_changed(schema: Json, sent: Any) -> None:
    tool = make_tool({"v": schema})
    for policy in ("safe", "lenient"):
        call = Call("f", {"v": sent}, json.dumps({"v": sent}))
        assert repair(call, [tool], policy=policy) is call


def test_double_encoding_is_undone_at_every_depth() -> None:
    inner = json.dumps([{"n": "2"}])
    tool = make_tool({"o": record(a=INTEGER, deep=list_of(record(n=INTEGER)))})
    call = repair_arguments(tool, {"o": json.dumps({"a": "1", "deep": inner})})
    assert call.arguments == {"o": {"a": 1, "deep": [{"n": 2}]}}
    assert [r.rule for r in call.repairs].count("double_encoded") == 2
    assert check(call, [tool]) == []


def test_a_wrapped_scalar_is_converted_too() -> None:
    assert repair_arguments(make_tool({"v": list_of(INTEGER)}), {"v": "1"}).arguments == {"v": [1]}


@pytest.mark.parametrize("count", [10, 60, 100, 500])
def test_all_wrong_items_are_repaired(count: int) -> None:
    tool = make_tool({"v": list_of(INTEGER)})
    call = repair_arguments(tool, {"v": ["1"] * count})
    assert call.arguments == {"v": [1] * count}
    assert check(call, [tool]) == []


@pytest.mark.parametrize("count", [10_000, 20_000])
def test_more_wrong_values_than_the_budget_are_reported_and_not_repaired(count: int) -> None:
    tool = make_tool({"v": list_of(INTEGER)})
    call = repair_arguments(tool, {"v": ["1"] * count})
    assert call.arguments == {"v": ["1"] * count} and call.repairs == ()
    assert check(call, [tool])


def test_only_the_wrong_values_of_very_many_are_changed() -> None:
    tool = make_tool({"v": list_of({"type": ["integer", "array"]})})
    call = repair_arguments(tool, {"v": [1, "2", [3]] * 2_000})
    assert call.arguments == {"v": [1, 2, [3]] * 2_000}
    assert len(call.repairs) == 2_000
    either = make_tool({"v": list_of({"anyOf": [{"type": "string", "pattern": "^x"}, list_of(STRING)]})})
    mixed = Call("f", {"v": ["x1", "q"] * 2_000}, json.dumps({"v": ["x1", "q"] * 2_000}))
    assert repair(mixed, [either]) is mixed  # "q" could become ["q"], but the same rule would turn "x1" into ["x1"]


def test_one_wrong_item_among_very_many_is_found_and_repaired() -> None:
    tool = make_tool({"v": list_of(INTEGER)})
    call = repair_arguments(tool, {"v": [1] * 3_000 + ["2"] + [3] * 3_000})
    assert receipts(call) == [("scalar_type", "schema", "/v/3000", '"2"', "2")]


def test_very_many_values_in_a_string_are_repaired_too() -> None:
    call = repair_arguments(make_tool({"v": list_of(INTEGER)}), {"v": json.dumps(["1"] * 5_000)})
    assert call.arguments == {"v": [1] * 5_000}
    assert call.repairs[0].rule == "double_encoded"
    bad = Call("f", {"v": json.dumps(["x"] * 5_000)}, json.dumps({"v": json.dumps(["x"] * 5_000)}))
    assert repair(bad, [make_tool({"v": list_of(INTEGER)})]) is bad


def test_repairable_values_are_repaired_next_to_unrepairable_ones() -> None:
    tool = make_tool({"v": list_of(INTEGER), "b": BOOLEAN})
    call = repair_arguments(tool, {"v": ["1", 2, "x"], "b": "true"})
    assert call.arguments == {"v": [1, 2, "x"], "b": True}
    assert [problem.path for problem in check(call, [tool])] == ["/v/2"]


# -- null and defaults -------------------------------------------------------------------------------------------------

NULLS: list[tuple[Tool, Json, Json, list[str]]] = [
    (make_tool({"n": {"type": "integer", "default": 7}}, required=("n",)), {}, {"n": 7}, ["default"]),
    (make_tool({"n": {"type": "integer", "default": 7}}, required=("n",)), {"n": None}, {"n": 7}, ["default"]),
    (make_tool({"n": {"type": "integer", "default": 7}}), {"n": None}, {"n": 7}, ["default"]),
    (make_tool({"n": {"type": "integer", "default": 7}}), {}, {}, []),
    (make_tool({"n": INTEGER}), {"n": None}, {}, ["null_dropped"]),
    (make_tool({"n": INTEGER}, required=("n",)), {"n": None}, {"n": None}, []),
    (make_tool({"n": NULLABLE}), {"n": None}, {"n": None}, []),
    (make_tool({"n": {"type": ["integer", "null"], "default": 7}}), {"n": None}, {"n": None}, []),
    (make_tool({"a": STRING}), {"a": "x", "more": None}, {"a": "x", "more": None}, []),
    (make_tool({"a": STRING}, additionalProperties=False), {"a": "x", "m": None}, {"a": "x"}, ["null_dropped"]),
    (make_tool({"a": STRING}, additionalProperties=False), {"a": "x", "m": 1}, {"a": "x", "m": 1}, []),
]


@pytest.mark.parametrize("tool, sent, expected, rules", NULLS)
def test_null_becomes_the_default_or_is_dropped_unless_it_is_allowed_or_required(
    tool: Tool, sent: Json, expected: Json, rules: list[str]
) -> None:
    call = repair_arguments(tool, sent)
    assert (call.arguments, [r.rule for r in call.repairs]) == (expected, rules)
    assert all(r.kind == "schema" for r in call.repairs)


DEFAULTS: dict[str, tuple[Json, Json]] = {
    "beside a reference": ({"$ref": "#/$defs/N", "default": 7}, {"n": 7}),
    "at the target of a reference": ({"$ref": "#/$defs/D"}, {"n": 1}),
    "beside a reference and at its target": ({"$ref": "#/$defs/D", "default": 7}, {"n": 7}),
    "between two references": ({"$ref": "#/$defs/between"}, {"n": 2}),
    "false, beside a reference": ({"$ref": "#/$defs/B", "default": False}, {"n": False}),
    "null, beside a reference": ({"$ref": "#/$defs/O", "default": None}, {"n": None}),
    "beside allOf with a reference": ({"allOf": [{"$ref": "#/$defs/N"}], "default": 7}, {"n": 7}),
    "none": ({"$ref": "#/$defs/N"}, {}),
    "one that the target refuses": ({"$ref": "#/$defs/N", "default": "x"}, {}),
}
TARGETS = {
    "N": INTEGER,
    "D": {"type": "integer", "default": 1},
    "between": {"$ref": "#/$defs/N", "default": 2},
    "B": BOOLEAN,
    "O": {"type": ["integer", "null"]},
}


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("name", DEFAULTS)
def test_a_missing_required_argument_gets_its_default(name: str, is_nested: bool) -> None:
    schema, expected = DEFAULTS[name]
    holder: Json = {"type": "object", "properties": {"n": schema}, "required": ["n"]}
    if is_nested:
        holder = record(rows=list_of(holder))
    tool = Tool(name="f", parameters={**holder, "$defs": TARGETS})
    call = repair_arguments(tool, {"rows": [{}]} if is_nested else {})
    assert call.arguments == ({"rows": [expected]} if is_nested else expected)


# -- names of arguments ------------------------------------------------------------------------------------------------

ALIASED = make_tool(
    {"path": STRING, "action": STRING, "range_start": INTEGER, "ops": list_of(record(range_start=INTEGER))},
    aliases={"file": "path", "mode": "action"},
)


def test_declared_aliases_are_renamed_and_their_values_converted() -> None:
    call = repair_arguments(ALIASED, {"file": "a.py", "mode": "w", "range_start": "3"})
    assert call.arguments == {"path": "a.py", "action": "w", "range_start": 3}
    assert receipts(call) == [
        ("alias", "exact", "/path", "file", "path"),
        ("alias", "exact", "/action", "mode", "action"),
        ("scalar_type", "schema", "/range_start", '"3"', "3"),
    ]
    nested = repair_arguments(ALIASED, {"ops": [{"range_start": "3"}, {"range_start": "x"}]})
    assert nested.arguments == {"ops": [{"range_start": 3}, {"range_start": "x"}]}


@pytest.mark.parametrize(
    "sent, expected",
    [
        ({"file": "a", "path": "b"}, {"file": "a", "path": "b"}),
        ({"file": "a", "path": ""}, {"path": "a"}),
        ({"file": "a", "path": None}, {"path": "a"}),
        ({"file": "a"}, {"path": "a"}),
        ({"path": "b"}, {"path": "b"}),
    ],
)
def test_an_alias_is_kept_if_its_name_has_a_value(sent: Json, expected: Json) -> None:
    assert repair_arguments(ALIASED, sent).arguments == expected
    assert repair_arguments(ALIASED, sent, "off").arguments == sent


def test_a_tool_without_aliases_renames_nothing() -> None:
    call = Call("f", {"file": "a", "mode": "w"}, '{"file": "a", "mode": "w"}')
    assert repair(call, [make_tool({"path": STRING, "action": STRING})]) is call
    text = Call("f", {}, '"file"')
    assert repair(text, [ALIASED]).arguments == {} and not repair(text, [ALIASED]).ok


def test_an_alias_that_is_an_argument_is_rejected() -> None:
    with pytest.raises(BadTools, match="alias 'file'"):
        repair_arguments(make_tool({"path": STRING, "file": STRING}, aliases={"file": "path"}), {"file": "a"})


@pytest.mark.parametrize(
    "name, wanted",
    [
        ("City", "city"),
        ("CITY", "city"),
        ("zipCode", "zip_code"),
        ("zip-code", "zip_code"),
        ("ZIP CODE", "zip_code"),
        ("zipcode", "zip_code"),
    ],
)
@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("more", [{}, {"additionalProperties": False}])
def test_case_and_separators_of_an_argument_name_do_not_matter(
    name: str, wanted: str, required: bool, more: Json
) -> None:
    tool = make_tool({"city": STRING, "zip_code": STRING}, required=(wanted,) if required else (), **more)
    call = repair_arguments(tool, {name: "x"})
    assert call.arguments == {wanted: "x"}
    assert [(r.rule, r.kind) for r in call.repairs] == [("folded_name", "schema")]


def test_an_ambiguous_name_is_not_folded() -> None:
    tool = make_tool({"zip_code": STRING, "zipCode": STRING}, additionalProperties=False)
    call = Call("f", {"ZIPCODE": "x"}, '{"ZIPCODE": "x"}')
    assert repair(call, [tool], policy="lenient") is call
    both = Call("f", {"City": "x", "city": "y"}, '{"City": "x", "city": "y"}')
    assert repair(both, [make_tool({"city": STRING})]) is both


def test_names_inside_objects_are_folded_where_the_schema_declares_them() -> None:
    tool = make_tool({"o": {**record(zip_code=INTEGER), "required": ["zip_code"]}})
    assert repair_arguments(tool, {"o": {"zipCode": 1}}).arguments == {"o": {"zip_code": 1}}
    deep = make_tool({"conditions": list_of({**record(field=STRING), "required": ["field"]})}, required=("conditions",))
    call = repair_arguments(deep, {"CONDITIONS": [{"FIELD": "a"}]})
    assert call.arguments == {"conditions": [{"field": "a"}]}


NESTED = record(zip_code=STRING, level=INTEGER)


@pytest.mark.parametrize(
    "schema, sent, expected",
    [
        (NESTED, {"zipCode": "1"}, {"zip_code": "1"}),
        (list_of(NESTED), [{"ZIP_CODE": "1"}, {"zip_code": "2"}], [{"zip_code": "1"}, {"zip_code": "2"}]),
        (record(inner=NESTED), {"INNER": {"Level": 1}}, {"inner": {"level": 1}}),
        ({"anyOf": [NESTED, {"type": "null"}]}, {"ZipCode": "1"}, {"zip_code": "1"}),
        ({"$ref": "#/$defs/place"}, {"ZipCode": "1"}, {"zip_code": "1"}),
        (NESTED, {"LEVEL": "3"}, {"level": 3}),
        (list_of(NESTED), [{"LEVEL": "3"}] * 12, [{"level": 3}] * 12),
    ],
)
def test_an_optional_nested_name_is_folded_although_the_call_is_valid(schema: Json, sent: Any, expected: Any) -> None:
    defs: Json = {"$defs": {"place": NESTED}}
    tool = make_tool({"o": schema}, **defs)
    assert repair_arguments(tool, {"o": sent}).arguments == {"o": expected}
    text = hermes(json.dumps({"name": "f", "arguments": {"o": sent}}))
    reply = hold_of_every_cut(text, Setting("hermes", Toolset([tool])))
    assert runnable(reply) == [("f", {"o": expected})]
    assert {r.rule for r in reply.attempts[0].repairs} <= {"folded_name", "scalar_type"}


@pytest.mark.parametrize(
    "schema, sent",
    [
        ({**NESTED, "additionalProperties": True}, {"ZipCode": "1"}),
        ({**NESTED, "patternProperties": {"^Zip": STRING}}, {"ZipCode": "1"}),
        ({"type": "object"}, {"ZipCode": "1"}),
        (NESTED, {"Level": "high"}),
        (NESTED, {"zipCode": "1", "zip_code": "2"}),
        (NESTED, {"zipCode": "1", "ZIPCODE": "2"}),
    ],
)
def test_a_name_is_kept_if_any_name_is_allowed_or_the_folded_one_would_not_fit(schema: Json, sent: Json) -> None:
    call = Call("f", {"o": sent}, json.dumps({"o": sent}))
    assert repair(call, [make_tool({"o": schema})]) is call


def test_the_receipt_of_a_rename_has_its_path_and_both_names() -> None:
    tool = make_tool({"o": record(zip_code=STRING)}, aliases={})
    assert receipts(repair_arguments(tool, {"o": {"zipCode": "1"}})) == [
        ("folded_name", "schema", "/o/zip_code", "zipCode", "zip_code")
    ]
    strict = make_tool({"a": STRING}, additionalProperties=False)
    assert receipts(repair_arguments(strict, {"a": "x", "m": None})) == [("null_dropped", "schema", "/m", "null", "")]


OPTIONAL: list[tuple[Json, Any, Any]] = [
    (record(n=INTEGER), {"n": "3"}, {"n": 3}),
    ({**record(n=INTEGER), "required": ["n"]}, {"N": "3"}, {"n": 3}),
    (list_of(INTEGER), ["3"], [3]),
    ({"enum": ["on", "off"]}, "ON", "on"),
    (list_of({"anyOf": [record(n=INTEGER), {"type": "null"}]}), [{"n": "3"}, None], [{"n": 3}, None]),
]


@pytest.mark.parametrize("word", ["anyOf", "oneOf"])
@pytest.mark.parametrize("schema, sent, expected", OPTIONAL)
def test_nullable_values_are_repaired_inside(word: str, schema: Json, sent: Any, expected: Any) -> None:
    tool = make_tool({"v": {word: [schema, {"type": "null"}]}})
    assert repair_arguments(tool, {"v": sent}).arguments == {"v": expected}


@pytest.mark.parametrize("word", ["anyOf", "oneOf"])
def test_a_value_that_fits_one_of_several_types_after_conversion_is_repaired(word: str) -> None:
    tool = make_tool({"v": {word: [INTEGER, {"type": "boolean"}]}})
    assert repair_arguments(tool, {"v": "3"}).arguments == {"v": 3}
    assert repair_arguments(tool, {"v": "true"}).arguments == {"v": True}


def test_the_alternative_selected_by_a_constant_is_repaired() -> None:
    shapes = [
        {**record(kind={"const": "circle"}, radius=NUMBER), "required": ["kind", "radius"]},
        {**record(kind={"const": "square"}, side=NUMBER), "required": ["kind", "side"]},
    ]
    tool = make_tool({"shape": {"oneOf": shapes}})
    call = repair_arguments(tool, {"shape": {"kind": "square", "side": "2"}})
    assert call.arguments == {"shape": {"kind": "square", "side": 2}}
    assert [p.path for p in check(Call("f", {"shape": {"kind": "square"}}, ""), [tool])] == ["/shape/side"]


@pytest.mark.parametrize("written", ["1.10", "1e5", "2.50", "1E+2", "-0.0", "12345678901234567890.5"])
def test_a_number_in_place_of_a_string_keeps_its_spelling(written: str) -> None:
    tool = make_tool({"version": STRING, "n": INTEGER})
    for sent in (f'{{"version": {written}}}', f'{{"version": {written}, "N": "3"}}'):
        reply = parse(hermes(f'{{"name": "f", "arguments": {sent}}}'), format="hermes", tools=[tool])
        assert reply.attempts[0].arguments["version"] == written
        assert reply.problems == ()


@pytest.mark.parametrize("written", ["1.10", "1e5", "2.50", "1E+2", "-0.0", "12345678901234567890.5"])
def test_an_unchanged_number_keeps_its_spelling(written: str) -> None:
    tool = make_tool({"x": NUMBER, "l": list_of(NUMBER), "n": INTEGER}, aliases={"m": "n"})
    for name in ("n", "N", "m"):
        sent = f'{{"x": {written}, "l": [{written}], "{name}": "3"}}'
        reply = parse(hermes(f'{{"name": "f", "arguments": {sent}}}'), format="hermes", tools=[tool])
        assert reply.attempts[0].json == f'{{"x": {written}, "l": [{written}], "n": 3}}'
        assert type(reply.attempts[0].arguments["x"]) is float
        assert reply.problems == ()


READ = make_tool({"path": STRING, "limit": INTEGER}, required=("path",))
CLOSED = make_tool({"path": STRING}, required=("path",), additionalProperties=False)
ORDER = make_tool({"order_id": STRING, "note": STRING}, required=("order_id",))
LONG = make_tool({"file_path": STRING}, required=("file_path",))
EDIT = make_tool({"path": STRING, "old_text": STRING, "new_text": STRING}, required=("path", "old_text", "new_text"))
NEAR_NAMES: dict[str, tuple[Tool, Json, Json]] = {
    "more words": (READ, {"file_path": "a"}, {"path": "a"}),
    "in camel case": (READ, {"filePath": "a"}, {"path": "a"}),
    "with dashes": (READ, {"path-to-file": "a"}, {"path": "a"}),
    "closed": (CLOSED, {"file_path": "a"}, {"path": "a"}),
    "fewer words": (LONG, {"path": "a"}, {"file_path": "a"}),
    "next to others": (READ, {"file_path": "a", "limit": 3}, {"path": "a", "limit": 3}),
    "after a repair": (READ, {"file_path": "a", "limit": "3"}, {"path": "a", "limit": 3}),
}


@pytest.mark.parametrize("case", NEAR_NAMES)
def test_an_undeclared_name_with_the_words_of_the_missing_one_is_a_guess(case: str) -> None:
    tool, sent, expected = NEAR_NAMES[case]
    call = repair_arguments(tool, sent, "lenient")
    (old,), (new,) = set(sent) - set(expected), set(expected) - set(sent)
    assert call.arguments == expected and check(call, [tool]) == []
    assert receipts(call)[-1] == ("near_name", "guess", f"/{new}", old, new)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("policy", ["off", "safe"])
def test_a_near_name_is_renamed_under_lenient_only(policy: Policy, read_only: bool) -> None:
    tool = make_tool({"path": STRING}, required=("path",), read_only=read_only)
    call = repair_arguments(tool, {"file_path": "a"}, policy)
    assert (call.arguments, call.repairs) == ({"file_path": "a"}, ())
    assert [problem.code for problem in check(call, [tool])] == ["missing"]


OTHER_NAMES: dict[str, tuple[Tool, Json]] = {
    "a letter less": (READ, {"pat": "a"}),
    "a letter more": (READ, {"paths": "a"}),
    "part of a word": (READ, {"filepath": "a"}),
    "no word": (READ, {"_": "a"}),
    "the missing one has no word": (make_tool({"_": STRING}, required=("_",)), {"path": "a"}),
    "the remainder of two members": (READ, {"limit, path": "a"}),
    "a synonym": (READ, {"file": "a"}),
    "a word in common": (ORDER, {"user_id": "a"}),
    "a word in common in camel case": (ORDER, {"userId": "a"}),
    "two of three words in common": (
        make_tool({"new_file_path": STRING}, required=("new_file_path",)),
        {"old_file_path": "a"},
    ),
    "a word in common next to others": (ORDER, {"user_id": "a", "note": "b"}),
    "another type": (READ, {"file_path": ["a", "b"]}),
    "two undeclared": (READ, {"file_path": "a", "path_name": "b"}),
    "two missing": (EDIT, {"file_path": "a", "old_text": "b"}),
    "nothing missing": (READ, {"file_path": "a", "path": "b"}),
    "the missing one is optional": (make_tool({"path": STRING}), {"file_path": "a"}),
    "another absent name": (make_tool({"path": STRING, "file": STRING}, required=("path",)), {"file_path": "a"}),
}


@pytest.mark.parametrize("case", OTHER_NAMES)
def test_any_other_undeclared_name_is_kept(case: str) -> None:
    tool, sent = OTHER_NAMES[case]
    call = repair_arguments(tool, sent, "lenient")
    assert (call.arguments, call.repairs) == (sent, ())


@pytest.mark.parametrize("key", ["arguments", "parameters", "args", "kwargs", "input"])
def test_arguments_inside_arguments_are_unwrapped(key: str) -> None:
    tool = make_tool({"city": STRING}, required=("city",))
    call = repair_arguments(tool, {key: {"city": "Oslo"}})
    assert call.arguments == {"city": "Oslo"}
    assert [(r.rule, r.kind) for r in call.repairs] == [("unwrapped", "schema")]
    own = make_tool({key: {"type": "object"}, "city": STRING}, required=("city",))
    assert repair_arguments(own, {key: {"city": "Oslo"}}).arguments == {key: {"city": "Oslo"}}


# -- with parse --------------------------------------------------------------------------------------------------------


def test_repairs_are_independent_of_chunking() -> None:
    tool = make_tool({"city": STRING, "days": INTEGER}, required=("city",))
    text = hermes('{"name": "f", "arguments": {"City": "Oslo", "days": "3"}}')
    reply = hold_of_every_cut(text, Setting("hermes", Toolset([tool])))
    assert (args(reply), reply.problems) == ([("f", {"city": "Oslo", "days": 3})], ())
    assert [r.rule for r in reply.attempts[0].repairs] == ["folded_name", "scalar_type"]
    assert reply.attempts[0].raw == '{"name": "f", "arguments": {"City": "Oslo", "days": "3"}}'
    off = hold_of_every_cut(text, Setting("hermes", Toolset([tool]), repair="off"))
    assert off.attempts[0].json == '{"City": "Oslo", "days": "3"}'
    assert off.attempts[0].repairs == ()
    assert runnable(off) == []


def test_a_policy_for_one_tool_does_not_apply_to_others() -> None:
    tools = Toolset([make_tool({"n": INTEGER}), Tool(name="g", parameters=make_tool({"n": INTEGER}).parameters)])
    text = "".join(hermes(f'{{"name": "{name}", "arguments": {{"n": "3"}}}}') for name in "fg")
    reply = parse(text, format="hermes", tools=tools, repair={"f": "off"})
    assert args(reply) == [("f", {"n": "3"}), ("g", {"n": 3})]
    assert blocking(reply) == [("wrong_type", 0)]


# -- laws --------------------------------------------------------------------------------------------------------------

PROPERTIES: Json = {
    "s": STRING,
    "n": INTEGER,
    "x": NUMBER,
    "b": BOOLEAN,
    "e": {"enum": ["on", "off", 3]},
    "l": list_of(INTEGER),
    "o": {**record(n=INTEGER, word_two=STRING), "required": ["n"]},
    "d": {"type": "integer", "default": 1},
    "u": {"anyOf": [INTEGER, {"type": "null"}]},
}
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([0.5, 2.0])
texts = st.sampled_from(["3", "true", "null", "ON", "off", "x", "", "[1]", '["2"]', '{"n": 1}', '{"n": "1"}', "1.0"])
simple = scalars | texts
sent_values = simple | st.lists(simple, max_size=3) | st.dictionaries(st.sampled_from(["n", "N", "wordTwo"]), simple)
names = st.sampled_from([*PROPERTIES, "S", "N", "alias", "ss", "zz", "arguments"])
sent_arguments = st.dictionaries(names, sent_values, max_size=5)
tools = st.builds(
    lambda required, strict, read_only: make_tool(
        PROPERTIES,
        required=tuple(required),
        read_only=read_only,
        aliases={"alias": "s"},
        **({"additionalProperties": False} if strict else {}),
    ),
    st.lists(st.sampled_from(list(PROPERTIES)), max_size=3, unique=True),
    st.booleans(),
    st.booleans(),
)


@given(tools, sent_arguments, st.sampled_from(["off", "safe", "lenient"]))
def test_repair_reduces_problems_gives_receipts_and_is_idempotent(tool: Tool, arguments: Json, policy: Policy) -> None:
    call = Call("f", arguments, json.dumps(arguments))
    repaired_call = repair(call, [tool], policy=policy)
    before, after = len(errors(tool, arguments)), len(errors(tool, repaired_call.arguments))
    assert json.loads(repaired_call.json) == repaired_call.arguments
    if repaired_call is call:
        return
    assert policy != "off"
    assert repaired_call.repairs
    assert repaired_call.arguments != arguments
    assert all(receipt.before != receipt.after for receipt in repaired_call.repairs)
    rules = {receipt.rule for receipt in repaired_call.repairs}
    assert after < before or rules & {
        "alias",
        "folded_name",
    }  # an undeclared name may be valid, and is renamed anyway
    assert repair(repaired_call, [tool], policy=policy) == repaired_call
    if policy == "safe" and not tool.read_only:
        assert all(receipt.kind != "guess" for receipt in repaired_call.repairs)


@given(tools, sent_arguments)
def test_a_valid_call_keeps_its_values_unless_a_name_was_folded(tool: Tool, arguments: Json) -> None:
    if "alias" not in arguments and fits_schema(tool, arguments):
        repaired_call = repair(Call("f", arguments, json.dumps(arguments)), [tool])
        assert len(repaired_call.arguments) == len(arguments)
        if all(receipt.rule == "folded_name" for receipt in repaired_call.repairs):
            assert list(repaired_call.arguments.values()) == list(arguments.values())
        else:
            assert "folded_name" in {receipt.rule for receipt in repaired_call.repairs}
            assert fits_schema(tool, repaired_call.arguments)


@given(tools, sent_arguments, st.sampled_from(["off", "safe", "lenient"]))
def test_parse_and_repair_give_the_same_call(tool: Tool, arguments: Json, policy: Policy) -> None:
    sent = json.dumps(arguments)
    reply = parse(hermes(f'{{"name": "f", "arguments": {sent}}}'), format="hermes", tools=[tool], repair=policy)
    repaired_call = repair(Call("f", arguments, sent), [tool], policy=policy)
    assert (reply.attempts[0].json, reply.attempts[0].repairs) == (repaired_call.json, repaired_call.repairs)
    assert [p.code for p in reply.problems] == [p.code for p in check(repaired_call, [tool])]


# -- cost --------------------------------------------------------------------------------------------------------------

HOSTILE: dict[str, tuple[Tool, Json]] = {
    "many wrong items": (make_tool({"v": list_of(INTEGER)}), {"v": ["x"] * 5_000}),
    "many numbers in strings": (make_tool({"v": list_of(INTEGER)}), {"v": ["1"] * 5_000}),
    "many strangers": (make_tool({"v": INTEGER}, additionalProperties=False), {f"k{i}": i for i in range(20_000)}),
    "many near misses": (make_tool({"value": INTEGER}, required=("value",)), {f"valu{i}": i for i in range(20_000)}),
    "a long number": (make_tool({"v": INTEGER}), {"v": "9" * 60_000}),
    "a long word": (make_tool({"v": INTEGER}), {"v": " " * 60_000 + "x"}),
    "a long stranger": (make_tool({"v": INTEGER}, required=("v",)), {"w" * 60_000: 1}),
    "a long list in a string": (make_tool({"v": list_of(INTEGER)}), {"v": json.dumps(["x"] * 5_000)}),
    "lists in strings in lists": (make_tool({"v": list_of(list_of(INTEGER))}), {"v": ["[1]"] * 3_000}),
    "many declared": (
        make_tool({f"name_{i}": INTEGER for i in range(2_000)}, additionalProperties=False),
        {f"Name{i}": "1" for i in range(2_000)},
    ),
}


@pytest.mark.parametrize("policy", ["safe", "lenient"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_no_rule_exceeds_its_time(kind: str, policy: Policy) -> None:
    tool, arguments = HOSTILE[kind]
    start = time.process_time()
    repair_arguments(tool, arguments, policy)
    assert time.process_time() - start < 3


# -- arguments that need no repair -------------------------------------------------------------------------------------

_LEAVES: list[Json] = [
    *(INTEGER, STRING, NULLABLE, {}, {"$ref": "#/$defs/at"}, {"anyOf": [{"$ref": "#/$defs/at"}, {"type": "null"}]}),
    *({"type": "object", "nullable": True, "properties": {"a": INTEGER}}, {"enum": ["a", 1]}),
]


def _around(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    members = st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    more = st.sampled_from(({}, {"additionalProperties": False}, {"additionalProperties": INTEGER}, {"allOf": [{}]}))
    objects = st.builds(lambda given, extra: record(**given) | extra, members, more)
    lists = st.one_of(st.builds(list_of, inner), st.builds(lambda each: {"items": [each]}, inner))
    return st.one_of(objects, lists, st.builds(lambda each: {"anyOf": [each, {"type": "null"}]}, inner))


_SCHEMAS = st.recursive(st.sampled_from(_LEAVES), _around, max_leaves=6)
_NAMED = st.sampled_from(["a", "b", "c", "d", "\ud800"])
_VALUES = st.recursive(
    st.sampled_from((1, "a", None, "\ud800")),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(_NAMED, inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(_NAMED, _SCHEMAS, max_size=3), st.dictionaries(_NAMED, _VALUES, max_size=3))
def test_arguments_that_fit_without_unknown_names_are_final(properties: Json, arguments: Json) -> None:
    more: Json = {"$defs": {"at": record(a=INTEGER)}}
    tool = make_tool(properties, **more)
    assert needs_no_repair(tool, arguments) == (fits_schema(tool, arguments) and not unknown_arguments(tool, arguments))


# -- values next to an object that accepts any key ---------------------------------------------------------------------

FREE_FORM: dict[str, Json] = {
    "no keys declared": {"type": "object"},
    "any further key": {"type": "object", "properties": {"a": STRING}, "additionalProperties": True},
    "typed values": {"type": "object", "additionalProperties": STRING},
    "any value": {},
}
POST = [
    (INTEGER, None, {}, "null_dropped"),
    (INTEGER, "2", {"v": 2}, "scalar_type"),
    (BOOLEAN, "true", {"v": True}, "scalar_type"),
    (list_of(STRING), "x", {"v": ["x"]}, "wrapped_in_array"),
]


@pytest.mark.parametrize("schema, sent, expected, rule", POST)
@pytest.mark.parametrize("kind", FREE_FORM)
def test_a_value_after_a_free_form_object_is_repaired(
    kind: str, schema: Json, sent: Any, expected: Json, rule: str
) -> None:
    tool = make_tool({"headers": FREE_FORM[kind], "v": schema})
    arguments = {"headers": {"x": "1"}, "v": sent}
    call = repair_arguments(tool, arguments)
    assert call.arguments == {"headers": {"x": "1"}, **expected}
    assert [(r.rule, r.kind) for r in call.repairs] == [(rule, "schema")]
    for name in ("hermes", "mistral", "kimi_k2", "harmony"):
        text = render([Call("f", arguments)], format=name, tools=[tool])
        reply = parse(text, format=name, tools=[tool])
        assert runnable(reply) == [("f", {"headers": {"x": "1"}, **expected})], name


def test_a_value_after_a_free_form_object_is_not_repaired_after_a_bracket_repair() -> None:
    tool = make_tool({"headers": {"type": "object"}, "v": INTEGER})
    sent = '{"headers": {"x": "1", "v": null}}}'
    for text in (sent, '{"headers": {"x": "1"}, "v": null}}', '{"headers": {"x": "1", "v": null}'):
        reply = parse(hermes(f'{{"name": "f", "arguments": {text}}}'), format="hermes", tools=[tool])
        assert [call.arguments for call in reply.calls if "v" not in call.arguments.get("headers", {})] == []
