"""The values and events: frozen, slotted, comparable, with a JSON form."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import msgspec
import pytest

from rightcall import (
    Arguments,
    Call,
    CallEnd,
    CallStart,
    Problem,
    Reasoning,
    Recast,
    Repair,
    Reply,
    Span,
    Text,
    Tool,
    parse,
)
from rightcall.types import Done, Part, to_json

REPAIR = Repair("extra_closer", "exact", "", "}", "")
CALL = Call("f", {"x": [1, None]}, '{"x": [1, null]}', "c1", '{"name": "f"}', (REPAIR,))
PROBLEM = Problem("unknown_tool", "there is no tool 'f'", "/x", 0, True)
REFUSED = msgspec.structs.replace(CALL, problems=(PROBLEM,))
SPAN = Span(0, 4, "text")
REPLY = Reply((Text("Hi"), Reasoning("Hm"), REFUSED, Text("Bye")), (PROBLEM,), "hermes", None, (SPAN,))

REPAIR_JSON = {"rule": "extra_closer", "kind": "exact", "path": "", "before": "}", "after": ""}
CALL_JSON = {
    "name": "f",
    "arguments": {"x": [1, None]},
    "json": '{"x": [1, null]}',
    "id": "c1",
    "raw": '{"name": "f"}',
    "repairs": [REPAIR_JSON],
    "problems": [],
    "complete": True,
}
PROBLEM_JSON = {"code": "unknown_tool", "message": "there is no tool 'f'", "path": "/x", "call": 0, "blocking": True}
REFUSED_JSON = {**CALL_JSON, "problems": [PROBLEM_JSON]}
SPAN_JSON = {"start": 0, "end": 4, "kind": "text"}

# a value, another that differs in one field, its JSON form
VALUES: list[tuple[Any, Any, Any]] = [
    (REPAIR, Repair("extra_closer", "guess", "", "}", ""), REPAIR_JSON),
    (CALL, msgspec.structs.replace(CALL, complete=False), CALL_JSON),
    (PROBLEM, msgspec.structs.replace(PROBLEM, blocking=False), PROBLEM_JSON),
    (SPAN, Span(0, 4, "marker"), SPAN_JSON),
    (Text("a"), Text("b"), {"text": "a"}),
    (Text("a", "user_response"), Text("a"), {"text": "a", "tag": "user_response"}),
    (Done("yes"), Done("no"), {"text": "yes"}),
    (Reasoning("a"), Reasoning("b"), {"text": "a"}),
    (CallStart(0, "c1", "f"), CallStart(1, "c1", "f"), {"index": 0, "id": "c1", "name": "f"}),
    (Arguments(0, "{"), Arguments(0, "}"), {"index": 0, "json": "{"}),
    (CallEnd(0, CALL), CallEnd(1, CALL), {"index": 0, "call": CALL_JSON}),
    (Recast(4, "reasoning"), Recast(4, "call"), {"chars": 4, "kind": "reasoning"}),
    (
        Tool(name="f", description="d", parameters={"type": "object"}, aliases={"p": "path"}, run=sorted),
        Tool(
            name="f", description="d", parameters={"type": "object"}, aliases={"p": "path"}, run=sorted, read_only=True
        ),
        {
            "name": "f",
            "description": "d",
            "parameters": {"type": "object"},
            "output_schema": None,
            "aliases": {"p": "path"},
            "read_only": False,
            "compact": False,
        },
    ),
    (
        REPLY,
        msgspec.structs.replace(REPLY, done="yes"),
        {
            "content": "Hi\nBye",
            "reasoning": "Hm",
            "calls": [],
            "refused": [REFUSED_JSON],
            "problems": [PROBLEM_JSON],
            "format": "hermes",
            "done": None,
            "finish": None,
            "usage": None,
            "api": "",
            "extras": {},
            "parts": [
                {"type": "text", "text": "Hi"},
                {"type": "reasoning", "text": "Hm"},
                {"type": "call", **REFUSED_JSON},
                {"type": "text", "text": "Bye"},
            ],
            "spans": [SPAN_JSON],
        },
    ),
]
each_value = pytest.mark.parametrize("value, other, form", VALUES, ids=lambda v: type(v).__name__)


@each_value
def test_a_value_is_immutable(value: Any, other: Any, form: Any) -> None:
    for field in value.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(value, field, None)
    with pytest.raises(AttributeError):
        value.something_else = 1


@each_value
def test_a_value_has_slots_and_no_dict(value: Any, other: Any, form: Any) -> None:
    assert not hasattr(value, "__dict__")


@each_value
def test_values_with_the_same_fields_are_equal_and_others_are_not(value: Any, other: Any, form: Any) -> None:
    assert copy.copy(value) == value
    assert type(value)(**{name: getattr(value, name) for name in value.__struct_fields__}) == value
    assert value != other
    assert value != form


@each_value
def test_a_value_has_a_json_form(value: Any, other: Any, form: Any) -> None:
    assert to_json(value) == form
    assert json.loads(json.dumps(to_json(value))) == form


@each_value
def test_the_repr_of_a_value_has_its_fields(value: Any, other: Any, form: Any) -> None:
    shown = repr(value)
    assert shown.startswith(type(value).__name__ + "(")
    assert all(f"{field}=" in shown for field in value.__struct_fields__ if field in form or field != "tag")


@each_value
def test_a_value_can_be_pickled(value: Any, other: Any, form: Any) -> None:
    assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - our own bytes


def test_events_in_a_json_list_have_a_type() -> None:
    events = [Text("a"), Reasoning("b"), CallStart(0, "c1", "f"), Arguments(0, "{}"), CallEnd(0, CALL), PROBLEM]
    types = [event["type"] for event in to_json([*events, Recast(1, "call"), Done("yes")])]
    assert types == ["text", "reasoning", "call_start", "arguments", "call_end", "problem", "recast", "done"]


def test_text_and_reasoning_with_the_same_content_differ() -> None:
    parts: list[Part] = [Text("a"), Reasoning("a")]
    assert parts[0] != parts[1]


def test_the_properties_of_a_reply_are_derived_from_its_parts() -> None:
    assert (REPLY.content, REPLY.reasoning, REPLY.attempts) == ("Hi\nBye", "Hm", (REFUSED,))
    empty = Reply()
    assert (empty.content, empty.reasoning, empty.attempts, empty.spans) == ("", "", (), None)


BLOCKING, NOTE = Problem("missing", "city is required", call=0), Problem("rescued", "found", call=0, blocking=False)
RUNNABLE = {
    "good": (Call("f"), True),
    "noted": (Call("f", problems=(NOTE,)), True),
    "blocked": (Call("f", problems=(NOTE, BLOCKING)), False),
    "cut off": (Call("f", complete=False), False),
    "cut off and blocked": (Call("f", problems=(BLOCKING,), complete=False), False),
}


@pytest.mark.parametrize("name", RUNNABLE)
def test_a_call_is_runnable_if_complete_and_without_blocking_problems(name: str) -> None:
    call, is_runnable = RUNNABLE[name]
    assert call.ok is is_runnable
    reply = Reply((Text("Hi"), call, Call("g")))
    assert (call in reply.calls, call in reply.refused) == (is_runnable, not is_runnable)
    assert reply.attempts == (call, Call("g"))


def test_attempts_are_split_into_calls_and_rejected_calls_in_order() -> None:
    attempts = [call for call, _ in RUNNABLE.values()]
    reply = Reply(tuple(attempts))
    assert list(reply.calls) == [call for call in attempts if call.ok]
    assert list(reply.refused) == [call for call in attempts if not call.ok]
    assert [each["name"] for each in to_json(reply)["refused"]] == ["f"] * 3


def test_calls_of_a_constructed_reply_have_the_problems_of_their_index() -> None:
    late = Problem("missing", "city is required", call=1)
    reply = Reply((Text("Hi"), Call("f", problems=(NOTE,)), Call("g")), (NOTE, late, Problem("near", "of no call")))
    assert [call.problems for call in reply.attempts] == [(NOTE,), (late,)]
    assert [call.name for call in reply.refused] == ["g"]
    assert Reply((Call("f"),), (late,)).calls == (Call("f"),), "an index after the last call belongs to no call"


def test_a_call_can_be_constructed_from_name_and_arguments() -> None:
    assert Call("f", {"x": "ä"}).json == '{"x": "ä"}' and Call("f").json == "" and Call("f", {}, "{}").json == "{}"


def test_spans_are_recorded_only_on_request() -> None:
    assert parse("Hi", format="hermes").spans is None
    assert parse("Hi", format="hermes", spans=True).spans == (Span(0, 2, "text"),)


def test_calls_and_tools_have_defaults() -> None:
    assert Call("f", {}, "{}") == Call("f", {}, "{}", "", "", (), (), True)
    tool = Tool(name="f")
    assert (tool.parameters, tool.read_only, tool.run) == ({}, False, None)
    assert Tool(name="a").parameters is not Tool(name="b").parameters
    with pytest.raises(TypeError):
        Tool("f")  # type: ignore[call-arg]


def test_a_problem_blocks_by_default() -> None:
    assert Problem("c", "m").blocking
    assert Problem("c", "m").call is None
