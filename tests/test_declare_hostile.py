"""Hostile tools: an accepted toolset makes nothing raise and costs linear time; a rejected tool is named."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable
from itertools import cycle, product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rightcall import Call, Tool, Toolset, check, grammar, parse, repair
from rightcall.formats import FORMATS
from rightcall.schema.limits import MAX_CHAIN, MAX_EXPANSION, MAX_PATTERNS, MAX_SCHEMAS, pattern_size
from rightcall.schema.validation import iter_error_reports
from rightcall.types import Json
from support.format_sample import selected
from support.hostile_tools import TEXT, TOOLSETS, tool
from support.odd_schemas import VALUES, parameters, tools_of, uses
from support.steps import MOST, measure_growth, shared

ARGUMENTS: Json = {"a": ["x"] * 40, "k0": "a", "b": {"n": {"n": 1}}}


# -- no exceptions -----------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(parameters(), min_size=1, max_size=2),
    st.sampled_from(sorted(FORMATS)),
    st.dictionaries(st.sampled_from(["a", "b", "é", "zz"]), VALUES, max_size=3),
)
def test_nothing_raises_with_an_accepted_toolset(schemas: list[Json], format: str, arguments: Json) -> None:
    for _, use in uses(tools_of(schemas), format, arguments):
        use()


@pytest.mark.parametrize("format", ["hermes", pytest.param("qwen3_coder", marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", list(TOOLSETS))
def test_nothing_raises_with_a_hostile_toolset(name: str, format: str) -> None:
    given = TOOLSETS[name](2_000)[:2]
    tools = Toolset.lenient([Tool(name=t.name, parameters=t.parameters, run=_run) for t in Toolset.lenient(given)])
    for _, use in uses(tools, format, ARGUMENTS):
        use()


def _run(**arguments: Any) -> str:
    return "done"


def test_a_long_chain_of_references_is_a_valid_schema() -> None:
    tools = Toolset(TOOLSETS["a chain of references"](40_000))
    good: Json = {"a": {"n": {"n": {"n": {}}}}}
    bad: Json = {"a": {"n": {"n": {"n": 3}}}}
    assert len(tools) == 1 and check(Call("f", good), tools) == []
    assert [problem.path for problem in check(Call("f", bad), tools)] == ["/a/n/n/n"]
    assert repair(Call("f", {"A": {}}, '{"A": {}}'), tools).arguments == {"a": {}}


ANCHORED: list[Json] = [
    {"additionalItems": {"$anchor": "x", "type": "object", "required": ["b"]}, "$ref": "#x"},
    {"definitions": {"d": {"$anchor": "x", "required": ["b"]}}, "allOf": [{"$ref": "#x"}]},
    {"dependencies": {"q": {"$anchor": "x", "required": ["b"]}}, "$ref": "#x"},
    {"x-more": {"required": ["b"]}, "$ref": "#/x-more"},
    {"$defs": {"a b": {"required": ["b"]}}, "$ref": "#/$defs/a%20b"},
    {"$defs": {"a b": {"required": ["b"]}}, "$ref": "#/$defs/a b"},
    {"$defs": {"d": {"$dynamicAnchor": "x", "required": ["b"]}}, "$dynamicRef": "#x"},
    {"$defs": {"d": {"required": ["b"]}, "e": True}, "$ref": "#/$defs/e", "$recursiveRef": "#/$defs/d"},
    {"properties": {"q": {"default": {"required": ["b"]}}}, "$ref": "#/properties/q/default"},
    {"$defs": {"\ud800": {"required": ["b"]}}, "$ref": "#/$defs/\ud800"},
]


@pytest.mark.parametrize("schema", ANCHORED, ids=json.dumps)
def test_a_reference_resolves_wherever_its_target_is(schema: Json) -> None:
    tools = Toolset([{"name": "f", "parameters": {"type": "object", **schema}}])
    assert check(Call("f", {"b": 1}), tools) == []
    assert [problem.code for problem in check(Call("f", {"a": 1}), tools)] == ["missing"]


def test_a_reference_to_a_false_schema_accepts_nothing() -> None:
    tools = Toolset([tool({"a": {"$ref": "#/$defs/no"}}, more={"$defs": {"no": False}})])
    assert check(Call("f", {}), tools) == [] and check(Call("f", {"a": 1}), tools) != []


def test_a_grammar_of_a_long_tuple_is_written() -> None:
    items = {"type": "array", "prefixItems": [{"const": at} for at in range(150)], "items": False}
    built = grammar([tool({"a": {**items, "minItems": 40}}), tool({"a": items}, "g")])
    assert built.for_server("llama.cpp") and built.lark() and not built.relaxations
    longer = grammar([tool({"a": {"type": "array", "prefixItems": [TEXT] * 1_500}})])
    assert [one.keyword for one in longer.relaxations] == ["prefixItems"]
    assert longer.gbnf() and longer.lark()


# -- rejected tools ----------------------------------------------------------------------------------------------------

LINKS: Json = {f"d{at}": {"$ref": f"#/$defs/d{at + 1}"} for at in range(MAX_CHAIN)} | {f"d{MAX_CHAIN}": {}}
LEFT_OUT: dict[str, tuple[Json, str]] = {
    "too many schemas": (tool({f"k{at}": {} for at in range(MAX_SCHEMAS)}), "schemas inside"),
    "too many for one value": (tool({"a": {"allOf": [{}] * MAX_EXPANSION}}), "multiply beyond"),
    "a chain too long": (tool({"a": {"$ref": "#/$defs/d0"}}, more={"$defs": LINKS}), "multiply beyond"),
    "references that double for every member": (TOOLSETS["references that double"](60_000)[0], "multiply beyond"),
    "patterns": (TOOLSETS["patterns"](160_000)[0], "patterns compile to about"),
    "an endless number": (tool({"a": {"minimum": 10**5000}}), "thousands of digits"),
}


@pytest.mark.parametrize("name", list(LEFT_OUT))
def test_a_too_large_tool_is_rejected_with_its_name_cause_and_cure(name: str) -> None:
    definition, message = LEFT_OUT[name]
    tools = Toolset.of([{**definition, "name": "bad"}, tool({"k0": TEXT}, "good")])
    assert tools is not None and tools.names == ("good",)
    (refused,) = tools.refused
    assert refused.tool == "bad" and message in refused.message and "; " in refused.message
    reply = parse('<tool_call>{"name": "good", "arguments": {"k0": "x"}}</tool_call>', tools=tools, format="hermes")
    assert [call.name for call in reply.calls] == ["good"]


def test_the_patterns_of_all_tools_together_are_bounded() -> None:
    pattern = r"\p{L}{30}"
    most = MAX_PATTERNS // pattern_size(pattern)
    members = [{f"k{at}": {"pattern": f"{pattern}{at}{number}"} for at in range(most)} for number in range(12)]
    tools = Toolset.lenient([tool(each, f"f{number}") for number, each in enumerate(members)])
    assert 2 < len(tools) < 12 and len(tools) + len(tools.refused) == 12
    assert "of all tools" in tools.refused[0].message
    assert len(Toolset.lenient(tools, [tool(members[0], "more")])) == len(tools)


def test_ordinary_patterns_are_far_below_the_limit() -> None:
    for pattern in (r"^[a-z0-9_-]{1,64}$", r"^\d{4}-\d{2}-\d{2}T", r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$", r"^\w+$"):
        assert pattern_size(pattern) < MAX_PATTERNS / 200


# -- cost of text and tools together -----------------------------------------------------------------------------------


def test_arguments_too_large_for_their_schema_are_reported() -> None:
    tools = Toolset([tool({"a": {"type": "array", "items": {"allOf": [{"minLength": 1}] * 9_000}}})])
    (problem,) = check(Call("f", {"a": ["x"] * 20_000}), tools)
    assert problem.code == "too_large" and problem.blocking and "several calls" in problem.message
    assert check(Call("f", {"a": ["x"] * 20}), tools) == []


def test_only_the_first_of_very_many_errors_are_reported() -> None:
    items = {"allOf": [{"minLength": at} for at in range(10, 1_610)]}
    tools = Toolset([tool({"a": {"type": "array", "items": items}})])
    text = json.dumps({"name": "f", "arguments": {"a": ["x"] * 500}})
    used = _run_in_child(lambda: parse(f"<tool_call>{text}</tool_call>", tools=tools, format="hermes").problems)
    assert set(used.codes) == {"wrong_length"} and used.megabytes < 120


def test_hundreds_of_values_that_match_no_alternative_give_few_errors() -> None:
    (declared,) = Toolset([tool({"a": {"type": "array", "items": {"anyOf": [{"type": "array"}, {"type": "null"}]}}})])
    report = next(iter_error_reports(declared, {"a": ["x"] * 400}))
    assert 5 < len(report.errors) <= 50 and not report.is_whole


def test_an_error_after_many_valid_values_is_found() -> None:
    rows = {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    tools = Toolset([tool({"a": rows})])
    arguments = {"a": [{"n": 1}] * 60_000 + [{"n": "x"}]}
    assert [(p.code, p.path) for p in check(Call("f", arguments), tools)] == [("wrong_type", "/a/60000/n")]


def test_many_patterns_need_little_memory() -> None:
    members = {f"k{at}": {"type": "string", "pattern": rf"{at}\p{{L}}{{6}}"} for at in range(3_000)}
    used = _run_in_child(lambda: check(Call("f", {"k0": "a"}), Toolset.lenient([tool(members), tool({}, "g")])))
    assert used.codes == ["unknown_tool"] and used.megabytes < 120


class _ChildResult:
    def __init__(self, codes: list[str], megabytes: float) -> None:
        self.codes, self.megabytes = codes, megabytes


def _run_in_child(run: Callable[[], Any]) -> _ChildResult:
    """Run the function in a child process; return the problem codes and the additional memory."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        codes = [problem.code for problem in run()]
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        os.write(writer, json.dumps([codes, (after - before) / 1024]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        found = json.loads(pipe.read())
    os.waitpid(child, 0)
    return _ChildResult(*found)


# -- cost per tool -----------------------------------------------------------------------------------------------------

GROWING = [
    *("a chain of references", "members and required", "enums", "anyOf of objects", "allOf of objects", "a tuple"),
    *("plain patterns", "tools", "anchors", "unevaluated members"),
]
USES: dict[str, Callable[[Any, Any], object]] = {
    "declare": lambda rightcall, tools: None,
    "parse": lambda rightcall, tools: rightcall.parse(_call_text(tools), tools=tools, format="hermes"),
    "contract": lambda rightcall, tools: rightcall.contract(tools),
    "grammar": lambda rightcall, tools: rightcall.grammar(tools, isolate="open").gbnf(),
}


def _call_text(tools: Any) -> str:
    name = next(iter(tools)).name if len(tools) else "f"
    return f'<tool_call>{{"name": "{name}", "arguments": {json.dumps(ARGUMENTS)}}}</tool_call>'


@pytest.mark.parametrize(
    "pair",
    selected(product(GROWING, USES), kept=list(zip(GROWING, cycle(USES), strict=False))),
    ids="-".join,
)
def test_the_steps_grow_linearly_with_the_tools(pair: tuple[str, str]) -> None:
    name, used = pair

    def work(rightcall: Any, _: Any, size: int) -> None:
        tools = rightcall.Toolset.lenient(TOOLSETS[name](size))
        if len(tools):
            USES[used](rightcall, tools)

    # The positions of the first thousand alternatives are looked up in another way.
    assert measure_growth(work, size=6_000 if name == "allOf of objects" else 1_000) <= MOST


@pytest.mark.parametrize("name", ["members", "enums", "defaults", "anchors"])
def test_a_second_failing_call_costs_the_same_for_large_tools(name: str) -> None:
    assert _steps_of_more_calls(name, 40_000) <= 1.5 * _steps_of_more_calls(name, 10_000)


def _steps_of_more_calls(name: str, size: int) -> int:
    """Return the steps of 16 additional invalid calls of a hostile tool of that size."""
    wrong = json.dumps({"name": "f", "arguments": {"a": {"b": 1}, "k0": [1], "K_1": 2}})
    with shared().on() as metered:
        rightcall = metered.load("rightcall")
        tools = rightcall.Toolset.lenient(TOOLSETS[name](size))
        assert len(tools) == 1

        def count_steps(calls: int) -> int:
            text = f"<tool_call>{wrong}</tool_call>" * calls
            return metered.count(lambda: rightcall.parse(text, tools=tools, format="hermes"))

        count_steps(1)  # the first use compiles the tool, which is not a cost of a call
        return count_steps(24) - count_steps(8)
