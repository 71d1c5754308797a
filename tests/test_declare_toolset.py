"""`Toolset`: merging, rejection, scopes and lookup."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from rightcall import Call, parse, render
from rightcall.errors import BadTools
from rightcall.tools.toolset import Toolset, to_tool
from rightcall.types import Json, Tool
from support.format_sample import sampled

WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"location": {"type": "string"}, "unit": {"type": "string"}},
            "required": ["location"],
        },
    },
}
CALC: Json = {"name": "calculate", "input_schema": {"type": "object", "properties": {"expression": {"type": "string"}}}}
BAD: Json = {"name": "bad", "input_schema": {"type": "object", "properties": {"a": {"type": "colour"}}}}


def roll(sides: int = 6) -> int:
    """Rolls a die."""
    return sides


def test_a_tool_is_found_by_its_name_and_others_are_not() -> None:
    tools = Toolset([WEATHER, CALC])
    found = tools.get("get_weather")
    assert found is not None and found.name == "get_weather"
    assert tools.get("missing") is None and "missing" not in tools and "calculate" in tools


def test_a_toolset_has_a_length_and_is_false_if_empty() -> None:
    assert len(Toolset([WEATHER, CALC])) == 2 and Toolset([WEATHER])
    assert len(Toolset()) == len(Toolset([])) == 0 and not Toolset()


def test_all_names_are_listed_sorted_and_tools_in_the_order_declared() -> None:
    tools = Toolset([WEATHER, CALC])
    assert tools.names == ("calculate", "get_weather")
    assert [tool.name for tool in tools] == ["get_weather", "calculate"]
    assert repr(tools) == "Toolset(get_weather, calculate)"


def test_definitions_of_every_kind_are_accepted_alone_in_lists_or_mixed() -> None:
    tools = Toolset(
        roll, [WEATHER, [CALC]], Toolset(Tool(name="x")), {"tools": [{"name": "y"}]}, (t for t in [Tool(name="z")])
    )
    assert tools.names == ("calculate", "get_weather", "roll", "x", "y", "z")
    for alone in (roll, WEATHER, Tool(name="x"), {"tools": [CALC]}):
        toolset = Toolset.of(alone)
        assert toolset is not None and len(toolset) == 1


def test_toolset_of_returns_a_toolset_or_none_unchanged() -> None:
    tools = Toolset(roll)
    assert Toolset.of(tools) is tools and Toolset.of(None) is None
    nothing = Toolset.of(())
    assert nothing is not None and len(nothing) == 0


def test_the_first_tool_of_a_name_is_kept_and_the_clash_is_reported() -> None:
    tools = Toolset([Tool(name="f", description="one")], [Tool(name="g"), Tool(name="f", description="two")])
    kept = tools.get("f")
    assert kept is not None and kept.description == "one"
    (clash,) = tools.clashes
    assert (clash.name, clash.kept, clash.dropped, clash.same) == ("f", "Tool at /0/0", "Tool at /1/1", False)


def test_replace_keeps_the_last_tool_of_a_name_at_the_position_of_the_first() -> None:
    tools = Toolset([Tool(name="f"), Tool(name="g"), Tool(name="f", description="new")], replace=True)
    kept = tools.get("f")
    assert kept is not None and kept.description == "new"
    assert [tool.name for tool in tools] == ["f", "g"]
    assert (tools.clashes[0].kept, tools.clashes[0].dropped) == ("Tool at /2", "Tool at /0")


def test_registering_a_name_again_replaces_its_tool() -> None:
    tools = Toolset(Toolset(WEATHER), Tool(name="get_weather", description="new"), replace=True)
    kept = tools.get("get_weather")
    assert len(tools) == 1 and kept is not None and kept.description == "new"


def test_named_sources_are_reported_by_their_names() -> None:
    tools = Toolset.merge({"github": [Tool(name="search")], "jira": {"tools": [{"name": "search"}, BAD]}}, lenient=True)
    (clash,) = tools.clashes
    assert (clash.kept, clash.dropped, clash.same) == ("github: Tool at /0", "jira: bare at /tools/0", False)
    assert tools.refused[0].source == "jira: /tools/1"
    assert tools.source("search") == "github: Tool at /0" and tools.source("none") == ""
    with pytest.raises(BadTools):
        Toolset.merge({"jira": [BAD]})


def test_a_bad_tool_raises_with_its_name_and_the_path_of_its_fault() -> None:
    with pytest.raises(BadTools, match=r"tool 'bad' .*/1/input_schema/properties/a/type: 'colour'.*write one of"):
        Toolset([WEATHER, BAD])
    with pytest.raises(BadTools, match=r"/0/1/input_schema"):
        Toolset([WEATHER, BAD], roll)


def test_a_lenient_toolset_omits_only_the_bad_tools() -> None:
    def bad_function(*args: int) -> None: ...

    mixed: list[Any] = [BAD, WEATHER, 3, bad_function, CALC, None, Tool(name="")]
    tools = Toolset.lenient(mixed, roll)
    assert tools.names == ("calculate", "get_weather", "roll")
    assert [(refusal.tool, refusal.path) for refusal in tools.refused] == [
        ("bad", "/0/0/input_schema/properties/a/type"),
        ("", "/0/2"),
        ("bad_function", "/0/3"),
        ("", "/0/5"),
        ("", "/0/6/name"),
    ]
    assert all(refusal.message for refusal in tools.refused)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\x00", "\x1b[31m", "x" * 257])
def test_an_unprintable_or_oversized_name_is_rejected(name: str) -> None:
    with pytest.raises(BadTools):
        Toolset(Tool(name=name))


@pytest.mark.parametrize("name", ["a", "a.b/c", "größe", "天気", "mcp__x__y", "a b"])
def test_a_name_can_be_any_printable_text(name: str) -> None:
    assert Toolset(Tool(name=name)).names == (name,)


@pytest.mark.parametrize("aliases", [{"file": "nowhere"}, {"path": "path"}, {"path": "other"}])
def test_aliases_must_be_other_names_of_parameters(aliases: dict[str, str]) -> None:
    schema = {"properties": {"path": {"type": "string"}, "other": {"type": "string"}}}
    with pytest.raises(BadTools, match="/aliases/"):
        Toolset(Tool(name="f", parameters=schema, aliases=aliases))


def test_a_scope_shows_only_its_names() -> None:
    tools = Toolset([WEATHER, CALC], roll).scoped(["calculate", "ghost"])
    assert len(tools) == 1 and tools.names == ("calculate",) and [tool.name for tool in tools] == ["calculate"]
    assert (
        tools.get("roll") is None and "roll" not in tools and tools.kinds("roll") == {} and tools.schema("roll") is None
    )
    assert tools.nearest("rol") == [] and tools.source("roll") == "" and set(tools.wire_names("chat")) == {"calculate"}
    assert tools.from_wire_name("chat", "roll") is None


def test_authorisation_is_checked_before_existence() -> None:
    tools = Toolset([WEATHER, CALC], roll)
    scope = tools.scoped(["calculate", "ghost"])
    assert scope.authorise("calculate") is None
    assert scope.authorise("roll") == "not_authorised"
    assert scope.authorise("never_declared") == "not_authorised"
    assert scope.authorise("ghost") == "unknown_tool"
    assert tools.authorise("roll") is None and tools.authorise("ghost") == "unknown_tool"


def test_scopes_do_not_change_the_toolset_and_nested_scopes_never_allow_more() -> None:
    tools = Toolset([WEATHER, CALC], roll)
    inner = tools.scoped(["calculate", "roll"]).scoped(["roll", "get_weather"])
    assert len(tools) == 3 and inner.names == ("roll",)
    assert inner.authorise("get_weather") == "not_authorised" and inner.authorise("calculate") == "not_authorised"


def test_an_empty_scope_allows_nothing() -> None:
    scope = Toolset(roll).scoped([])
    assert len(scope) == 0 and scope.authorise("roll") == "not_authorised"


def test_a_toolset_of_a_scope_has_only_the_tools_of_the_scope() -> None:
    assert Toolset(Toolset([WEATHER, CALC]).scoped(["calculate"])).names == ("calculate",)


def test_lookup_time_is_independent_of_toolset_size() -> None:
    def measure_lookups(tools: Toolset) -> float:
        begun = time.process_time()
        for _ in range(20_000):
            tools.get("t7")
            tools.authorise("t7")
        return time.process_time() - begun

    small, large = (Toolset([Tool(name=f"t{at}") for at in range(count)]) for count in (10, 5000))
    assert min(measure_lookups(large) for _ in range(3)) < 4 * min(measure_lookups(small) for _ in range(3))


def test_a_toolset_can_be_shared_between_threads() -> None:
    tools = Toolset([Tool(name=f"t{at}", parameters={"properties": {"a": {"pattern": "(?=x)"}}}) for at in range(50)])
    seen: list[Any] = []

    def use() -> None:
        seen.append(([tools.kinds(name) for name in tools.names], tools.relaxed, tools.wire_names("chat")))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4 and all(one == seen[0] for one in seen)
    assert len(seen[0][1]) == 50


def test_to_tool_accepts_exactly_one_definition() -> None:
    assert to_tool({"tools": [CALC]}).name == "calculate"
    with pytest.raises(BadTools, match="there are 2"):
        to_tool({"tools": [CALC, WEATHER]})
    with pytest.raises(BadTools, match="'colour'"):
        to_tool(BAD)


FLOAT: Json = {"name": "scale", "parameters": {"type": "object", "properties": {"by": {"type": "float"}}}}


@pytest.mark.parametrize("name", sampled())
def test_a_reply_is_parsed_although_one_tool_is_invalid(name: str) -> None:
    calls = [Call("scale", {"by": 2.5}), Call("calculate", {"expression": "1"})]
    text = render(calls, format=name, tools=[FLOAT, CALC])
    reply = parse(text, format=name, tools=[BAD, FLOAT, CALC, {"description": "no name"}, None])  # type: ignore[list-item]
    assert [(call.name, call.arguments) for call in reply.calls] == [
        ("scale", {"by": 2.5}),
        ("calculate", {"expression": "1"}),
    ]


def test_an_invalid_tool_is_omitted_with_a_note() -> None:
    tools = Toolset.of([BAD, CALC])
    assert tools is not None and tools.names == ("calculate",)
    (note,) = tools.notes
    assert (note.code, note.blocking) == ("tool_left_out", False) and "tool 'bad' cannot be used" in note.message


def test_a_call_of_an_omitted_tool_is_rejected_and_never_renamed() -> None:
    other = {"name": "Bad"}
    reply = parse('<tool_call>{"name": "bad", "arguments": {}}</tool_call>', format="hermes", tools=[BAD, other])
    assert not reply.calls
    (problem,) = reply.refused[0].problems
    assert problem.code == "unknown_tool" and "its definition cannot be used" in problem.message


@pytest.mark.parametrize("tools", ["read", 3, [roll, lambda *all: 1], [Tool(name="")]])
def test_invalid_tools_of_the_caller_raise(tools: Any) -> None:
    with pytest.raises(BadTools):
        Toolset.of(tools)


def test_derived_toolsets_keep_omissions_and_repairs() -> None:
    inner = Toolset.lenient([BAD, FLOAT])
    for toolset in (Toolset(inner, CALC), inner.scoped(["scale"]), inner.registered(CALC)):
        assert [each.tool for each in toolset.refused] == ["bad"] and [each.tool for each in toolset.mended] == [
            "scale"
        ]


@pytest.mark.parametrize(
    "choice",
    ["none", "NONE", {"type": "none"}, {"mode": "none"}, {"functionCallingConfig": {"mode": "NONE"}}],
)
@pytest.mark.parametrize("given", [None, [CALC], Toolset(CALC)])
def test_choice_none_rejects_every_call(choice: Any, given: Any) -> None:
    tools = Toolset.of(given, choice=choice)
    reply = parse('hi<tool_call>{"name": "calculate", "arguments": {}}</tool_call>', format="hermes", tools=tools)
    assert reply.content == "hi" and not reply.calls
    assert [problem.code for problem in reply.refused[0].problems if problem.blocking] == ["not_authorised"]


@pytest.mark.parametrize("choice", [None, "auto", "required", "calculate", {"type": "function"}, {"type": "auto"}])
def test_any_other_choice_keeps_all_tools(choice: Any) -> None:
    tools = Toolset.of([CALC], choice=choice)
    assert tools is not None and tools.names == ("calculate",)


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J", "a\u202eb", "a\0"])
def test_a_name_with_control_characters_is_rejected(name: str) -> None:
    with pytest.raises(BadTools, match="control characters"):
        Toolset([{"name": name}])
