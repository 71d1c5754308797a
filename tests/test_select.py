"""`select` and `Reply.raise_for_problems` return or raise; the five errors that they and other functions raise."""

from __future__ import annotations

import json

import pytest

from rightcall import Ids, Problem, Reply, RightcallError, Tool, Toolset, check, parse, select
from rightcall.errors import (
    CallerError,
    EmptyToolList,
    GrammarCompileError,
    MalformedArguments,
    ModelError,
    NoToolCallFound,
    UnknownTool,
)
from rightcall.types import Call
from support.replies import STRING, hermes

WEATHER = Tool(
    name="get_weather",
    parameters={
        "type": "object",
        "properties": {"location": STRING, "unit": {"type": "string", "enum": ["c", "f"]}},
        "required": ["location"],
    },
)
CALC = Tool(
    name="calc", parameters={"type": "object", "properties": {"expression": STRING}, "required": ["expression"]}
)
ANY = Tool(name="f")
TOOLS = Toolset([WEATHER, CALC, ANY])


# -- select ------------------------------------------------------------------------------------------------------------


def tagged_call(body: str) -> str:
    return f"<tool_call>{body}</tool_call>"


def test_a_tagged_call_is_found_with_text_around_it_and_a_fresh_id() -> None:
    call = select("text " + tagged_call('{"name":"f","arguments":{"a":1}}') + " text", TOOLS)
    assert (call.name, call.arguments, call.json) == ("f", {"a": 1}, '{"a":1}')
    assert call.id.startswith("call_")
    assert select(tagged_call('{"name":"get_weather","arguments":{"location":"Oslo"}}'), TOOLS).arguments == {
        "location": "Oslo"
    }


def test_a_call_without_arguments_has_an_empty_object() -> None:
    call = select(tagged_call('{"name":"f"}'), TOOLS)
    assert (call.name, call.arguments, call.json) == ("f", {}, "{}")


def test_a_bad_first_block_does_not_hide_a_good_second() -> None:
    text = tagged_call("{bad}") + tagged_call('{"name":"f"}')
    assert select(text, TOOLS).name == "f"
    assert {problem.call for problem in parse(text, tools=TOOLS).problems if problem.blocking} == {0}


@pytest.mark.parametrize("text", ["no call here", "", "Sunny.", "<tool_call></tool_call>", "Use <tool_call> to call."])
def test_prose_has_no_call(text: str) -> None:
    for format in ("auto", "hermes"):
        with pytest.raises(NoToolCallFound):
            select(text, TOOLS, format=format)


@pytest.mark.parametrize("body", ['{"arguments":{}}', '{"name":"","arguments":{}}', '{"name":" ","arguments":{"a":1}}'])
def test_a_block_without_a_name_is_not_a_call(body: str) -> None:
    with pytest.raises(NoToolCallFound):
        select(tagged_call(body), TOOLS)
    with pytest.raises(UnknownTool):
        select(tagged_call(body) + tagged_call('{"name":"gone"}'), TOOLS)


def test_an_undeclared_name_is_an_unknown_tool_error_with_the_declared_names() -> None:
    with pytest.raises(UnknownTool, match=r"unknown tool: 'get_wether'.*get_weather") as raised:
        select(hermes('{"name":"get_wether","arguments":{"location":"Oslo"}}'), TOOLS)
    assert raised.value.name == "get_wether"
    with pytest.raises(UnknownTool):
        select(hermes('{"name":"get_weather","arguments":{"location":"Oslo"}}'), TOOLS.scoped(["calc"]))
    with pytest.raises(UnknownTool):
        select(hermes('{"name":"f"}'), ())


def test_without_tools_any_name_is_accepted() -> None:
    assert select(hermes('{"name":"anything","arguments":{"a":1}}'), None).name == "anything"


def test_the_name_is_matched_among_several_tools() -> None:
    assert select(hermes('{"name":"calc","arguments":{"expression":"1+1"}}'), TOOLS).name == "calc"


@pytest.mark.parametrize(
    "body, reason",
    [
        ('{"name":"get_weather","arguments":[]}', "must be a JSON object"),
        ('{"name":"get_weather","arguments":{"unit":"c"}}', "location is required"),
        ('{"name":"get_weather","arguments":{"location":null}}', "location is required"),
        ('{"name":"get_weather","arguments":{"location":"Oslo","unit":"kelvin"}}', '"c", "f"'),
        ('{"name":"get_weather","arguments":{"location" "Oslo"}}', "JSON"),
        ('{"name":"get_weather","arguments":{"location":"Os', "ended"),
    ],
)
def test_invalid_arguments_are_malformed_with_a_reason(body: str, reason: str) -> None:
    text = hermes(body) if body.endswith("}") else f"<tool_call>\n{body}"
    with pytest.raises(MalformedArguments, match=r"malformed tool arguments: ") as raised:
        select(text, TOOLS)
    assert reason in raised.value.reason


def test_null_is_accepted_if_the_schema_allows_it() -> None:
    nullable = Tool(
        name="f", parameters={"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}
    )
    assert select(hermes('{"name":"f","arguments":{"a":null}}'), [nullable]).arguments == {"a": None}


def test_repaired_calls_are_selected_and_off_repairs_nothing() -> None:
    text = hermes("""{"name":"get_weather","arguments":{'location':'Oslo'}}""")
    assert select(text, TOOLS).arguments == {"location": "Oslo"}
    with pytest.raises(MalformedArguments):
        select(text, TOOLS, repair="off")


def test_the_first_runnable_call_is_selected() -> None:
    bad, good = '{"name":"nope"}', '{"name":"calc","arguments":{"expression":"1"}}'
    assert select(hermes(bad) + hermes(good), TOOLS).name == "calc"
    with pytest.raises(UnknownTool, match="'nope'"):
        select(hermes(bad) + hermes('{"name":"calc"}'), TOOLS)


def test_the_first_call_is_selected_from_a_text_with_too_many_calls() -> None:
    assert select(hermes('{"name":"f"}') * 300, TOOLS).name == "f"


# -- arguments alone ---------------------------------------------------------------------------------------------------


def argument_codes(sent: str) -> list[str]:
    parsed = parse(hermes(f'{{"name":"get_weather","arguments":{sent}}}'), format="hermes", tools=TOOLS, repair="off")
    return [problem.code for problem in parsed.problems]


def test_complete_arguments_pass() -> None:
    assert argument_codes('{"location":"Oslo","unit":"c"}') == []
    assert check(Call("get_weather", {"location": "Oslo"}, ""), TOOLS) == []


def test_a_missing_field_is_an_error_that_names_it() -> None:
    assert argument_codes('{"unit":"c"}') == ["missing"]
    [problem] = check(Call("get_weather", {"unit": "c"}, ""), TOOLS)
    assert (problem.path, "location is required" in problem.message) == ("/location", True)


def test_invalid_json_is_an_error() -> None:
    assert argument_codes('{"location" "Oslo"}') == ["invalid_json"]


def test_arguments_that_are_not_an_object_are_an_error() -> None:
    assert argument_codes("[]") == argument_codes("5") == argument_codes('"x"') == ["arguments_not_object"]


def test_a_tool_without_required_arguments_accepts_none() -> None:
    assert check(Call("f", {}, "{}"), TOOLS) == []


# -- ids ---------------------------------------------------------------------------------------------------------------


def test_a_new_id_has_the_call_prefix() -> None:
    assert Ids.new().startswith("call_")


def test_new_ids_are_unique_and_have_the_call_prefix() -> None:
    ids = [Ids.new() for _ in range(5)]
    assert all(id.startswith("call_") for id in ids)
    assert len(set(ids)) == 5


def test_ids_of_a_scenario_are_kept_or_numbered_and_unique() -> None:
    ids = Ids.numbered("capture_call")
    turns = [["a", "a", "a"], ["a", ""], ["capture_call_1_1"]]
    used = []
    for turn in turns:
        used.append([ids.take(received) for received in turn])
        ids.next_turn()
    assert used == [["a", "a_dup_1", "a_dup_2"], ["a_dup_3", "capture_call_1_1"], ["capture_call_1_1_dup_1"]]
    assert ids.received("a_dup_3") == "a"


# -- the five errors ---------------------------------------------------------------------------------------------------

ERRORS: list[tuple[RightcallError, RightcallError, str, type[RightcallError]]] = [
    # error, equal error, beginning of its text, base class of the responsible party
    (NoToolCallFound(), NoToolCallFound(), "no tool call found in model output", ModelError),
    (UnknownTool("x"), UnknownTool("x"), "unknown tool: 'x'", ModelError),
    (MalformedArguments("why"), MalformedArguments("why"), "malformed tool arguments: why", ModelError),
    (GrammarCompileError("why"), GrammarCompileError("why"), "grammar compile error: why", CallerError),
    (EmptyToolList(), EmptyToolList(), "tool list is empty", CallerError),
]


@pytest.mark.parametrize("error, twin, text, parent", ERRORS)
def test_each_error_has_a_text_and_a_responsible_base_class(
    error: RightcallError, twin: RightcallError, text: str, parent: type[RightcallError]
) -> None:
    assert str(error).startswith(text)
    assert isinstance(error, parent)


@pytest.mark.parametrize("error, twin, text, parent", ERRORS)
def test_each_error_is_comparable_and_hashable(
    error: RightcallError, twin: RightcallError, text: str, parent: type[RightcallError]
) -> None:
    assert error == twin
    assert hash(error) == hash(twin)
    assert all((error == other) == (error is other) for other, *_ in ERRORS)


def test_errors_with_different_texts_differ() -> None:
    assert UnknownTool("x") != UnknownTool("y")
    assert MalformedArguments("x") != MalformedArguments("y")
    assert UnknownTool("x") != "unknown tool: 'x'"


# -- raise_for_problems ------------------------------------------------------------------------------------------------


def reply_with_problems(*problems: Problem) -> Reply:
    return Reply((Call("f", {}, "{}"), Call("g", {}, "{}")), problems)


def test_a_reply_without_blocking_problems_raises_nothing() -> None:
    reply_with_problems().raise_for_problems()
    reply_with_problems(Problem("rescued", "a note", call=0, blocking=False)).raise_for_problems()
    Reply().raise_for_problems()


@pytest.mark.parametrize(
    "code, error",
    [
        ("unknown_tool", UnknownTool),
        ("not_authorised", UnknownTool),
        ("invalid_name", UnknownTool),
        ("missing", MalformedArguments),
        ("wrong_type", MalformedArguments),
        ("invalid_json", MalformedArguments),
        ("truncated", MalformedArguments),
        ("arguments_not_object", MalformedArguments),
    ],
)
def test_a_blocking_problem_raises_its_error(code: str, error: type[ModelError]) -> None:
    with pytest.raises(error) as raised:
        reply_with_problems(
            Problem("note", "x", blocking=False), Problem(code, "what is wrong", call=1)
        ).raise_for_problems()
    assert "what is wrong" in str(raised.value)
    if isinstance(raised.value, UnknownTool):
        assert raised.value.name == "g"


def test_a_problem_without_a_call_is_raised_too() -> None:
    with pytest.raises(ModelError):
        reply_with_problems(Problem("too_large", "the reply is too long")).raise_for_problems()


def test_the_first_blocking_problem_is_raised() -> None:
    text = hermes('{"name":"nope"}') + hermes('{"name":"calc"}')
    with pytest.raises(UnknownTool, match="'nope'"):
        parse(text, tools=TOOLS).raise_for_problems()
    with pytest.raises(MalformedArguments, match="expression is required"):
        parse(hermes('{"name":"calc"}'), tools=TOOLS).raise_for_problems()


def test_select_returns_the_same_call_as_parse() -> None:
    text = hermes(json.dumps({"name": "calc", "arguments": {"expression": "1"}}))
    call, [other] = select(text, TOOLS), parse(text, tools=TOOLS).attempts
    assert (call.name, call.arguments, call.json, call.raw) == (other.name, other.arguments, other.json, other.raw)
