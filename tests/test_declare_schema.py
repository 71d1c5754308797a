"""Validation of schemas at declaration: shape, references, size; and relaxation for the check."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Call, check, grammar
from rightcall.errors import BadTools
from rightcall.schema.limits import MAX_DEPTH, Refused
from rightcall.schema.places import kinds
from rightcall.schema.relax import relax_schema, runs_in_linear_time
from rightcall.schema.walk import Refs
from rightcall.tools.toolset import Toolset, to_tool
from rightcall.types import Json, Tool
from support.judge import matcher


def declare_tool(schema: Any) -> Tool:
    return to_tool({"type": "function", "function": {"name": "f", "parameters": schema}})


def with_property(schema: Any) -> Json:
    return {"type": "object", "properties": {"x": schema}}


FAULTS: list[tuple[Any, str, str]] = [
    ({"type": "colour"}, "/type", "write one of object, string"),
    ({"type": "list[colour]"}, "/type", "write one of object, string"),
    ({"type": ["string", "colour"]}, "/type", "write one of object, string"),
    ({"anyOf": [{"type": "colour"}]}, "/anyOf/0/type", "'colour' is no JSON Schema type"),
    ({"items": {"type": "colour"}}, "/items/type", "'colour' is no JSON Schema type"),
    ({"maxItems": "few"}, "/maxItems", "whole number"),
    ({"minimum": "low"}, "/minimum", "is not a number"),
    ({"type": []}, "/type", "name each type once"),
    ({"type": 3}, "/type", "3 is no JSON Schema type"),
    (3, "", "is no schema"),
    (None, "", "is no schema"),
    ({"type": "object", "properties": {"a/b": 3}}, "/properties/a~1b", "is no schema"),
    ({"properties": []}, "/properties", "is not an object"),
    ({"required": "x"}, "/required", "no list of property names"),
    ({"description": 3}, "/description", "is not a string"),
    ({"enum": "a"}, "/enum", "is not a list"),
    ({"anyOf": []}, "/anyOf", "at least one schema"),
    ({"allOf": {}}, "/allOf", "at least one schema"),
    ({"items": 3}, "/items", "is no schema"),
    ({"additionalProperties": "no"}, "/additionalProperties", "is no schema"),
    ({"minLength": -1}, "/minLength", "whole number"),
    ({"minimum": True}, "/minimum", "is not a number"),
    ({"multipleOf": 0}, "/multipleOf", "above 0"),
    ({"uniqueItems": 1}, "/uniqueItems", "true or false"),
    ({"pattern": 3}, "/pattern", "is not a string"),
    ({"dependentRequired": {"a": "b"}}, "/dependentRequired", "name lists"),
    ({"$ref": 3}, "/$ref", "is no reference"),
    ({"$ref": "#/$defs/Gone"}, "/$ref", "points at no schema"),
    ({"$ref": "#gone"}, "/$ref", "points at no schema"),
    ({"$ref": "#/properties/x/default", "default": 3}, "/$ref", "points at no schema"),
    ({"default": float("nan")}, "/default", "nan is not JSON"),
    ({"default": {1, 2}}, "/default", "set is not JSON"),
    ({"default": {1: 2}}, "/default", "key 1 is no string"),
    ({"$schema": "http://example.org/my-schema"}, "/$schema", "none of the drafts 4 to 2020-12"),
]


@pytest.mark.parametrize("schema, path, message", FAULTS, ids=[repr(schema) for schema, _, _ in FAULTS])
def test_a_fault_is_rejected_with_its_path(schema: Any, path: str, message: str) -> None:
    with pytest.raises(Refused) as caught:
        declare_tool(with_property(schema))
    assert caught.value.path == f"/function/parameters/properties/x{path}"
    assert message in str(caught.value) and caught.value.path in str(caught.value) and "'f'" in str(caught.value)


MEANT: list[tuple[Any, Any]] = [
    ({"type": "float"}, {"type": "number"}),
    ({"type": "double"}, {"type": "number"}),
    ({"type": "int"}, {"type": "integer"}),
    ({"type": "str"}, {"type": "string"}),
    ({"type": "bool"}, {"type": "boolean"}),
    ({"type": "dict"}, {"type": "object"}),
    ({"type": "list"}, {"type": "array"}),
    ({"type": "tuple"}, {"type": "array"}),
    ({"type": "none"}, {"type": "null"}),
    ({"type": "any"}, {}),
    ({"type": "STRING"}, {"type": "string"}),
    ({"type": "HashMap"}, {"type": "object"}),
    ({"type": "date-time"}, {"type": "string"}),
    ({"type": float}, {"type": "number"}),
    ({"type": None}, {}),
    ({"type": ["str", "None"]}, {"type": ["string", "null"]}),
    ({"type": ["string", "string"]}, {"type": "string"}),
    ({"type": "list[str]"}, {"type": "array", "items": {"type": "string"}}),
    ({"type": "List[List[int]]"}, {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}),
    ({"type": "string[]"}, {"type": "array", "items": {"type": "string"}}),
    ({"type": "array<number>"}, {"type": "array", "items": {"type": "number"}}),
    ({"type": "Optional[int]"}, {"type": ["integer", "null"]}),
    ({"type": "str | None"}, {"type": ["string", "null"]}),
    ({"type": "dict[str, int]"}, {"type": "object"}),
    ({"type": "enum", "enum": ["a"]}, {"enum": ["a"]}),
    ({"anyOf": [{"type": "int"}]}, {"anyOf": [{"type": "integer"}]}),
    ({"items": {"type": "str"}}, {"items": {"type": "string"}}),
    ({"properties": {"y": {"type": "float"}}}, {"properties": {"y": {"type": "number"}}}),
    (
        {"properties": {"y": {"type": "int", "required": True}, "z": {"required": False}}},
        {"properties": {"y": {"type": "integer"}, "z": {}}, "required": ["y"]},
    ),
    ({"properties": {"y": "int"}}, {"properties": {"y": {"type": "integer", "description": "int"}}}),
    ({"properties": {"y": {}}, "required": "y"}, {"properties": {"y": {}}, "required": ["y"]}),
    ({"required": ["a", "a"]}, {"required": ["a"]}),
    ({"maxItems": "3", "minimum": "-1.5"}, {"maxItems": 3, "minimum": -1.5}),
    ({"description": None, "enum": None, "items": None, "default": None}, {"default": None}),
]


@pytest.mark.parametrize("schema, expected", MEANT, ids=[repr(schema) for schema, _ in MEANT])
def test_an_unambiguous_fault_is_repaired_with_a_note(schema: Any, expected: Any) -> None:
    for definition in (
        {"name": "f", "input_schema": with_property(schema)},
        {"type": "function", "function": {"name": "f", "parameters": with_property(schema)}},
        Tool(name="f", parameters=with_property(schema)),
    ):
        tools = Toolset([definition])
        (tool,) = tools
        assert tool.parameters == with_property(expected)
        assert tools.mended and all(note.tool == "f" and "/properties/x" in note.path for note in tools.mended)
        assert [note.code for note in tools.notes] == ["tool_mended"] * len(tools.mended)
        assert not any(note.blocking for note in tools.notes)


def test_required_true_inside_a_property_is_moved_to_the_object() -> None:
    tool = declare_tool({"type": "object", "properties": {"x": {"type": "int", "required": True}}})
    assert tool.parameters == {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def test_type_dict_of_the_parameters_is_repaired() -> None:
    assert declare_tool({"type": "dict", "properties": {"x": {}}}).parameters["type"] == "object"
    assert declare_tool({"type": "dict"}).parameters == {"type": "object"}


def test_a_valid_schema_has_no_notes() -> None:
    tools = Toolset(
        [declare_tool({"type": "object", "properties": {"x": {"type": ["string", "null"], "default": None}}})]
    )
    assert tools.mended == () and tools.notes == ()


@pytest.mark.parametrize("declared_type", ["string", "array", ["string", "null"]])
def test_parameters_of_another_type_than_object_are_rejected(declared_type: Any) -> None:
    with pytest.raises(BadTools, match=r"/function/parameters/type: arguments are an object"):
        declare_tool({"type": declared_type})


@pytest.mark.parametrize("schema", [[], "object", 3, True])
def test_parameters_that_are_not_a_schema_are_rejected(schema: Any) -> None:
    with pytest.raises(BadTools, match="a JSON Schema object is needed"):
        declare_tool(schema)


SOUND: list[Json] = [
    {},
    {"properties": {"a": True, "b": {}}},
    {"type": ["object", "null"]},
    {"$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://example.org/mine", "type": "object"},
    {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}},
    {"properties": {"a": {"$ref": "#/definitions/A%20B"}}, "definitions": {"A B": {"type": "string"}}},
    {"properties": {"a": {"$ref": "#there"}}, "$defs": {"A": {"$anchor": "there", "type": "string"}}},
    {"properties": {"a": {"anyOf": [{"type": "string"}]}, "b": {"$ref": "#/properties/a/anyOf/0"}}},
    {"properties": {"child": {"$ref": "#"}}},
    {"properties": {"$id": {"type": "string"}, "$ref": {"type": "string"}, "type": {"type": "string"}}},
    {"properties": {"a": {"enum": [{"$ref": "http://example.org"}], "default": {"type": "float"}}}},
    {"properties": {"a": {"items": [{"type": "string"}], "additionalItems": False}}},
    {"properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}},
    {"properties": {"a": {"x-mine": {"type": "float"}, "markdownDescription": 3}}},
    {"$ref": "#/$defs/Root", "$defs": {"Root": {"type": "object", "properties": {"a": {"type": "string"}}}}},
]


@pytest.mark.parametrize("schema", SOUND, ids=repr)
def test_a_valid_schema_is_kept_unchanged(schema: Json) -> None:
    assert declare_tool(schema).parameters == schema


@pytest.mark.parametrize("schema", SOUND, ids=repr)
def test_schemas_of_every_draft_are_converted_to_2020_12(schema: Json) -> None:
    checked = Toolset(declare_tool(schema)).schema("f")
    assert checked is not None and "$schema" not in checked and "$id" not in checked
    jsonschema_rs.Draft202012Validator(checked, pattern_options=jsonschema_rs.RegexOptions())


OUTSIDE = [
    "http://example.org/x.json",
    "https://h/x#/a",
    "file:///etc/passwd",
    "other.json",
    "/etc/passwd",
    "",
    "urn:x:y",
]


@pytest.mark.parametrize("word", ["$ref", "$dynamicRef", "$recursiveRef"])
@pytest.mark.parametrize("ref", OUTSIDE)
def test_an_external_reference_is_rejected(word: str, ref: str) -> None:
    with pytest.raises(BadTools, match="nothing is ever fetched"):
        declare_tool(with_property({word: ref}))


@pytest.mark.parametrize("base", ["http://example.org/", "file:///etc/", "other.json"])
def test_an_id_does_not_change_whether_a_reference_is_external(base: str) -> None:
    with pytest.raises(BadTools, match="nothing is ever fetched"):
        declare_tool({"$id": base, "properties": {"x": {"$ref": base + "#/$defs/A"}}, "$defs": {"A": {}}})
    inside = {"$id": base, "properties": {"x": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}
    checked = Toolset(declare_tool(inside)).schema("f")
    assert checked == {"properties": {"x": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}


def test_a_schema_reachable_only_by_reference_is_validated() -> None:
    hidden: Json = {"properties": {"x": {"$ref": "#/x-mine/a"}}, "x-mine": {"a": {"$ref": "http://example.org"}}}
    with pytest.raises(BadTools, match=r"/x-mine/a/\$ref: .*nothing is ever fetched"):
        declare_tool(hidden)
    hidden = {"properties": {"x": {"$ref": "#/properties/y/default"}, "y": {"default": {"type": "float"}}}}
    with pytest.raises(BadTools, match=r"write 'number'"):
        declare_tool(hidden)


def test_a_recursive_schema_is_valid() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    assert kinds(declare_tool({"properties": {"node": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}})) == {
        "node": "json"
    }


ENDLESS: list[Json] = [
    {"$ref": "#"},
    {"properties": {"x": {"$ref": "#/properties/x"}}},
    {"allOf": [{"$ref": "#"}]},
    {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/B"}]}, "B": {"not": {"$ref": "#/$defs/A"}}}},
]


@pytest.mark.parametrize("schema", ENDLESS, ids=repr)
def test_a_circular_reference_is_rejected(schema: Json) -> None:
    with pytest.raises(BadTools, match="leads back to itself"):
        declare_tool(schema)


def nested(levels: int) -> Json:
    schema: Json = {}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


def doubling(levels: int) -> Json:
    """Return a schema in which each definition applies the next one twice."""
    definitions: Json = {
        f"a{at}": {"allOf": [{"$ref": f"#/$defs/a{at + 1}"}, {"$ref": f"#/$defs/a{at + 1}"}]} for at in range(levels)
    }
    return {"properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": {**definitions, f"a{levels}": {"type": "string"}}}


def shared_objects(levels: int) -> Json:
    """Return a schema that is small in memory and huge when written out."""
    schema: Json = {"type": "string"}
    for _ in range(levels):
        schema = {"properties": {"a": schema, "b": schema}}
    return schema


def cyclic() -> Json:
    schema: Json = {"properties": {}}
    schema["properties"]["x"] = schema
    return schema


def chain(length: int) -> Json:
    links: Json = {f"a{at}": {"$ref": f"#/$defs/a{at + 1}"} for at in range(length)}
    return {"properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": {**links, f"a{length}": {}}}


HOSTILE: list[tuple[str, Json, str]] = [
    ("too deep", nested(MAX_DEPTH + 1), "nested deeper"),
    ("too large", with_property({"description": "x" * 1_000_001}), "more than 1,000,000"),
    ("doubling references", doubling(40), "multiply beyond"),
    ("shared objects", shared_objects(25), "more than 1,000,000"),
    ("an object inside itself", cyclic(), "nested deeper"),
    ("a long chain of references", chain(20_000), "multiply beyond"),
]


@pytest.mark.parametrize("schema, message", [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_a_hostile_schema_is_rejected_quickly(schema: Json, message: str) -> None:
    begun = time.process_time()
    with pytest.raises(BadTools, match=message):
        declare_tool(schema)
    assert time.process_time() - begun < 3


def schema_with_many_references(count: int) -> Json:
    properties: Json = {f"p{at}": {"$ref": f"#n{at % 50}"} for at in range(count)}
    definitions: Json = {f"d{at}": {"$anchor": f"n{at}", "type": "string"} for at in range(count)}
    return {
        "type": "object",
        "properties": properties,
        "$defs": definitions,
        "anyOf": [{"required": [k]} for k in properties],
    }


def test_validation_takes_linear_time() -> None:
    seconds = []
    for count in (500, 4000):
        schema = schema_with_many_references(count)
        begun = time.process_time()
        tools = Toolset(declare_tool(schema))
        tools.kinds("f")
        tools.schema("f")
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 8 * seconds[0] * 4


def test_kinds_follow_root_references_and_anchors() -> None:
    root = {
        "type": "object",
        "properties": {"a": {"$ref": "#text"}},
        "$defs": {"T": {"$anchor": "text", "type": "string"}},
    }
    tool = declare_tool({"allOf": [{"$ref": "#/$defs/Root"}], "$defs": {"Root": root, "U": root["$defs"]["T"]}})  # type: ignore[index]
    assert kinds(tool) == {"a": "string"}


PATTERNS = {
    "^[a-z]+$": True,
    r"^\d{3}-\d{4}$": True,
    r"\p{L}": True,
    "(?=a)b": False,
    "(?<!x)y": False,
    r"(a)\1": False,
    "(?>a)": False,
    "[": False,
    "(x{1,1000}){1,1000}": False,
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_linear_time_patterns_are_recognised(pattern: str) -> None:
    assert runs_in_linear_time(pattern) is PATTERNS[pattern]


BAD = "^(?!x)"
RELAXED: list[tuple[Json, Json, list[tuple[str, str]]]] = [
    ({"pattern": BAD, "minLength": 1}, {"minLength": 1}, [("/pattern", "pattern")]),
    ({"pattern": "^y"}, {"pattern": "^y"}, []),
    ({"default": {"pattern": BAD}}, {"default": {"pattern": BAD}}, []),
    (
        {"patternProperties": {BAD: {}, "^y": {}}, "additionalProperties": False},
        {"patternProperties": {"^y": {}}},
        [(f"/patternProperties/{BAD}", "patternProperties"), ("/additionalProperties", "additionalProperties")],
    ),
    ({"not": {"pattern": BAD}}, {}, [("/not/pattern", "pattern"), ("/not", "not")]),
    (
        {"if": {"pattern": BAD}, "then": {"minLength": 3}},
        {},
        [("/if/pattern", "pattern"), ("/then", "then"), ("/if", "if")],
    ),
    (
        {"oneOf": [{"pattern": BAD}, {"type": "string"}]},
        {"allOf": [{"anyOf": [{}, {"type": "string"}]}]},
        [("/oneOf/0/pattern", "pattern"), ("/oneOf", "oneOf")],
    ),
    ({"anyOf": [{"pattern": BAD}]}, {"anyOf": [{}]}, [("/anyOf/0/pattern", "pattern")]),
    ({"type": "string", "nullable": True}, {"type": ["string", "null"]}, []),
    ({"enum": ["a"], "nullable": True}, {"enum": ["a", None]}, []),
    ({"const": "a", "nullable": True}, {"enum": ["a", None]}, []),
    *(
        ({word: [{"type": "string"}], "nullable": True}, {word: [{"type": "string"}, {"type": "null"}]}, [])
        for word in ("anyOf", "oneOf")
    ),
    ({"allOf": [{"minLength": 1}], "nullable": True}, {"anyOf": [{"allOf": [{"minLength": 1}]}, {"type": "null"}]}, []),
    ({"items": [{"type": "string"}]}, {"prefixItems": [{"type": "string"}]}, []),
    ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}, []),
    ({"dependencies": {"a": ["b"], "c": {}}}, {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {}}}, []),
]


@pytest.mark.parametrize("schema, checked, relaxations", RELAXED, ids=[repr(case[0]) for case in RELAXED])
def test_a_keyword_that_is_not_checked_in_linear_time_is_relaxed_and_reported(
    schema: Json, checked: Json, relaxations: list[tuple[str, str]]
) -> None:
    tools = Toolset(declare_tool(with_property(schema)))
    assert tools.schema("f") == with_property(checked)
    assert [(one.path.removeprefix("/properties/x"), one.keyword) for one in tools.relaxed] == relaxations
    assert all(one.tool == "f" and one.reason for one in tools.relaxed)
    tool = tools.get("f")
    assert tool is not None and tool.parameters == with_property(schema)


def test_a_reference_into_a_moved_schema_is_updated() -> None:
    schema = {
        "properties": {
            "a": {"items": [{"type": "string", "pattern": BAD}]},
            "b": {"$ref": "#/properties/a/items/0"},
            "c": {"$ref": "#/x-shared/d"},
        },
        "x-shared": {"d": {"type": "integer", "nullable": True}},
    }
    tools = Toolset(declare_tool(schema))
    checked = tools.schema("f")
    assert checked is not None
    validator = jsonschema_rs.Draft202012Validator(checked, pattern_options=jsonschema_rs.RegexOptions())
    assert validator.is_valid({"b": "x", "c": None}) and not validator.is_valid({"b": 3})
    assert not validator.is_valid({"c": "x"})
    assert {one.path for one in tools.relaxed} == {"/properties/a/items/0/pattern"}


_LEAVES = st.sampled_from(
    [{"pattern": BAD}, {"pattern": "^x"}, {"type": "string"}, {"minLength": 2}, {}, False, {"$ref": "#/$defs/d"}]
)


def _wrap(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, min_size=1, max_size=2)
    return st.one_of(
        st.builds(lambda s: {"not": s}, inner),
        st.builds(lambda a, b, c: {"if": a, "then": b, "else": c}, inner, inner, inner),
        st.builds(lambda word, s: {word: s}, st.sampled_from(["anyOf", "allOf", "oneOf"]), lists),
        st.builds(lambda s: {"contains": s, "maxContains": 1}, inner),
        st.builds(
            lambda p, s: {"patternProperties": {p: s}, "additionalProperties": False},
            st.sampled_from([BAD, "^x"]),
            inner,
        ),
        st.builds(lambda s, t: {"allOf": [s], "properties": {"x": t}, "unevaluatedProperties": False}, inner, inner),
        st.builds(lambda s: {"items": s}, inner),
    )


_SCHEMAS = st.recursive(_LEAVES, _wrap, max_leaves=5)
_VALUES = st.recursive(
    st.sampled_from(["", "x", "xy", "y", "yz", 1, None]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y"]), inner, max_size=2),
    max_leaves=4,
)


@given(_SCHEMAS, st.sampled_from([{"pattern": BAD}, {"type": "string"}]), st.lists(_VALUES, min_size=5, max_size=10))
def test_a_relaxed_schema_accepts_everything_the_original_accepts(schema: Any, d: Json, values: list[Any]) -> None:
    parameters = {"properties": {"v": schema}, "$defs": {"d": d}}
    copy, _ = relax_schema("f", json.loads(json.dumps(parameters)))
    original = jsonschema_rs.Draft202012Validator(parameters)
    loosened = jsonschema_rs.Draft202012Validator(copy, pattern_options=jsonschema_rs.RegexOptions())
    for value in values:
        assert loosened.is_valid({"v": value}) or not original.is_valid({"v": value}), (copy, value)


def test_references_follow_escapes_and_list_indices() -> None:
    refs = Refs({"a/b": {"c~d": [{"e": 1}]}})
    assert refs.get("#/a~1b/c~0d/0/e") == 1
    assert refs.get("#/a~1b/c~0d/1") is None and refs.get("#/nothing/at/all") is None and refs.get("x") is None


# -- drafts, ids and reasons -------------------------------------------------------------------------------------------


def _fits(schema: Json, arguments: Json) -> bool:
    """Return whether the arguments are valid, and check that a grammar agrees."""
    tool = declare_tool(schema)
    tool_grammar = grammar([tool], choice="required", parallel=False)
    found = matcher(tool_grammar.lark())
    tokens = list(f'<tool_call>\n{{"name": "f", "arguments": {json.dumps(arguments)}}}\n</tool_call>'.encode())
    accepted = bool(found.try_consume_tokens(tokens) == len(tokens) and found.is_accepting())
    passed = not check(Call("f", arguments), [tool])
    assert accepted == passed or (accepted and tool_grammar.relaxations)
    return passed


def _in_draft(draft: str, schema: Json) -> Json:
    url = f"https://json-schema.org/{draft}/schema" if "/" in draft else f"http://json-schema.org/{draft}/schema#"
    return {"$schema": url, **schema}


@pytest.mark.parametrize(
    "beside", [{"maximum": 3}, {"type": "string"}, {"enum": [1]}, {"not": {}}, {"allOf": [{"minimum": 9}]}]
)
def test_keywords_next_to_a_reference_apply_since_draft_2019_09(beside: Json) -> None:
    schema: Json = {**with_property({"$ref": "#/definitions/a", **beside}), "definitions": {"a": {"type": "integer"}}}
    for draft in ("draft-04", "draft-06", "draft-07"):
        assert _fits(_in_draft(draft, schema), {"x": 5}) and not _fits(_in_draft(draft, schema), {"x": "a"})
    for draft in ("draft/2019-09", "draft/2020-12"):
        assert not _fits(_in_draft(draft, schema), {"x": 5})
    assert not _fits(schema, {"x": 5})


@pytest.mark.parametrize(
    "keywords, known_from",
    [
        ({"if": {"required": ["x"]}, "then": {"required": ["y"]}}, "draft-07"),
        ({"propertyNames": {"maxLength": 0}}, "draft-06"),
        ({"properties": {"x": {"const": 7}}}, "draft-06"),
        ({"dependentRequired": {"x": ["y"]}}, "draft/2019-09"),
        ({"dependentSchemas": {"x": {"required": ["y"]}}}, "draft/2019-09"),
        ({"properties": {"x": {"$dynamicRef": "#/$defs/a"}}, "$defs": {"a": {"minimum": 9}}}, "draft/2020-12"),
        ({"$dynamicRef": "#/$defs/a", "$defs": {"a": {"required": ["y"]}}}, "draft/2020-12"),
    ],
)
def test_a_keyword_applies_since_the_draft_that_defines_it(keywords: Json, known_from: str) -> None:
    drafts = ["draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"]
    schema: Json = {"type": "object", "properties": {"x": {"type": "integer"}}, **keywords}
    for at, draft in enumerate(drafts):
        assert _fits(_in_draft(draft, schema), {"x": 5}) == (at < drafts.index(known_from)), draft


@pytest.mark.parametrize(
    "inner",
    [
        {"$id": "http://example.org/x", "type": "string"},
        {"$id": "x.json", "type": "array", "items": {"$id": "item.json", "type": "string"}},
        {"anyOf": [{"$id": "a", "type": "string"}, {"$id": "b", "type": "array"}]},
        {"$id": "#anchor", "type": "string"},
    ],
)
def test_an_inner_id_without_references_inside_is_ignored(inner: Json) -> None:
    other: Json = {**with_property(inner), "$defs": {"z": {"type": "integer"}}}
    other["properties"]["y"] = {"$ref": "#/$defs/z"}
    for schema in (with_property(inner), other):
        declare_tool(schema)
        assert not _fits(schema, {"x": 5})
    assert _fits(with_property({"$id": "http://example.org/x", "type": "integer"}), {"x": 5})


@pytest.mark.parametrize("draft, word", [("draft-04", "id"), ("draft-06", "$id"), ("draft-07", "$id")])
def test_an_id_that_is_a_fragment_is_an_anchor(draft: str, word: str) -> None:
    schema = {**with_property({"$ref": "#word"}), "definitions": {"w": {word: "#word", "type": "string"}}}
    assert _fits(_in_draft(draft, schema), {"x": "a"})
    assert not _fits(_in_draft(draft, schema), {"x": 5})


@pytest.mark.parametrize("draft, word", [("draft-04", "id"), ("draft-07", "$id"), ("draft/2020-12", "$id")])
@pytest.mark.parametrize(
    "inner",
    [
        {"properties": {"b": {"$ref": "#/$defs/z"}}},
        {"items": {"anyOf": [{"$ref": "#/$defs/z"}]}},
        {"not": {"$ref": "#"}},
        {"$defs": {"z": {}}, "additionalProperties": {"$ref": "#/$defs/z"}},
    ],
)
def test_an_inner_id_with_references_inside_is_rejected(draft: str, word: str, inner: Json) -> None:
    schema = {**with_property({"properties": {"a": {word: "x.json", **inner}}}), "$defs": {"z": {}}}
    with pytest.raises(BadTools, match=f"/a/{re.escape(word)}: an inner .* changes what the references inside it mean"):
        declare_tool(_in_draft(draft, schema))


def test_a_reference_beside_an_inner_id_is_rejected_since_draft_2019_09() -> None:
    schema = {**with_property({"$id": "x.json", "$ref": "#/$defs/z"}), "$defs": {"z": {}}}
    with pytest.raises(BadTools, match=r"an inner \$id changes what the references inside it mean"):
        declare_tool(schema)
    declare_tool(_in_draft("draft-07", schema))


def test_the_keyword_for_the_first_items_depends_on_the_draft() -> None:
    for draft, word in (("draft-07", "items"), ("draft/2019-09", "items"), ("draft/2020-12", "prefixItems")):
        for keyword in ("items", "prefixItems"):
            if (draft, keyword) != ("draft/2020-12", "items"):
                schema = _in_draft(draft, with_property({"type": "array", keyword: [{"type": "integer"}]}))
                assert _fits(schema, {"x": ["a"]}) is (keyword != word), (draft, keyword)


@pytest.mark.parametrize(
    "draft, inner",
    [
        ("draft-07", {"$id": "x.json", "$ref": "#/definitions/z"}),
        ("draft-06", {"$id": "http://example.org/x", "$ref": "#/definitions/z"}),
        ("draft-04", {"$id": "x.json", "allOf": [{"$ref": "#/definitions/z"}]}),
        ("draft-04", {"id": "x.json", "$ref": "#/definitions/z"}),
        ("draft-04", {"id": "#anchor", "allOf": [{"$ref": "#/definitions/z"}]}),
        ("draft-06", {"id": "x.json", "allOf": [{"$ref": "#/definitions/z"}]}),
        ("draft/2020-12", {"id": "x.json", "allOf": [{"$ref": "#/definitions/z"}]}),
    ],
)
def test_an_inner_id_that_its_draft_ignores_changes_no_reference(draft: str, inner: Json) -> None:
    schema = _in_draft(draft, {**with_property(inner), "definitions": {"z": {"type": "integer"}}})
    assert _fits(schema, {"x": 5}) and not _fits(schema, {"x": "a"})


def test_an_anchor_of_the_document_takes_precedence_over_one_in_an_inner_id() -> None:
    inner: Json = {"$id": "x.json", "$anchor": "n", "type": "integer"}
    own: Json = {"$anchor": "n", "type": "string"}
    for definitions in ({"a": inner, "b": own}, {"a": own, "b": inner}, {"a": {"items": inner}, "b": own}):
        schema = {**with_property({"$ref": "#n"}), "$defs": definitions}
        assert _fits(schema, {"x": "a"}) and not _fits(schema, {"x": 5})


@pytest.mark.parametrize("swap", [False, True], ids=["own-last", "own-first"])
def test_an_anchor_inside_an_inner_id_of_draft_4_belongs_to_another_document(swap: bool) -> None:
    inner: Json = {"id": "x.json", "items": {"id": "#n", "type": "integer"}}
    own: Json = {"id": "#n", "type": "string"}
    definitions = {"a": own, "b": inner} if swap else {"a": inner, "b": own}
    schema = _in_draft("draft-04", {**with_property({"$ref": "#n"}), "definitions": definitions})
    assert _fits(schema, {"x": "a"}) and not _fits(schema, {"x": 5})


@pytest.mark.parametrize("ref", ["", "http://e.org/root.json", "http://e.org/root.json#/$defs/i", "item.json"])
def test_the_reason_against_a_reference_by_id_is_true(ref: str) -> None:
    schema: Json = {"$id": "http://e.org/root.json", "$defs": {"i": {"$id": "item.json", "type": "integer"}}}
    with pytest.raises(BadTools) as caught:
        declare_tool({**schema, **with_property({"$ref": ref})})
    assert "does not begin with '#'" in str(caught.value) and "outside" not in str(caught.value)


@pytest.mark.parametrize(
    "pattern, reason",
    [
        (r"^\w{2,60000}$", "too large"),
        (r"^(\p{L}{1,400}){1,50}$", "too large"),
        (r"^a\(\?=b{1,100000}$", "too large"),
        ("^(?!x)y", "linear time"),
        (r"^(a)\1$", "linear time"),
        (r"(?<=a)b", "linear time"),
        ("^[(?=a-z]{9999}$", "too large"),
        (r"^[\](?=]{9999}$", "too large"),
        ("^[)](?!a)b$", "linear time"),
        (r"^(?<n>a)\k<n>$", "linear time"),
        (r"^\\(a)\1$", "linear time"),
        (r"^[\1]$", "does not support"),
        ("^a{2}{x}$", "does not support"),
    ],
)
def test_a_relaxed_pattern_is_reported_with_the_correct_reason(pattern: str, reason: str) -> None:
    schemas: list[Json] = [with_property({"type": "string", "pattern": pattern}), {"patternProperties": {pattern: {}}}]
    for schema in schemas:
        _, relaxations = relax_schema("f", schema)
        assert relaxations and reason in relaxations[0].reason
