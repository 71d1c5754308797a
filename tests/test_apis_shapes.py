"""`read` for dialects other than Chat, for calls in text, and for every kind of input value."""

from __future__ import annotations

import json
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

from rightcall import Call, Ids, Problem, Reply, Tool, Toolset
from rightcall.errors import CallerError
from rightcall.providers.provider_answers import Stream, read, read_all
from rightcall.providers.sniff import detect_dialect
from rightcall.types import Reasoning, Text
from support.provider_answers import LEAK, Json, calls, chat, chat_call, codes, item

# -- the other dialects ------------------------------------------------------------------------------------------------


def test_an_anthropic_message_gives_its_blocks_in_order() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "Hi"},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}},
    ]
    reply = read({"type": "message", "role": "assistant", "content": blocks, "stop_reason": "tool_use"})
    assert reply.parts == (Reasoning("hm"), Text("Hi"), Call("f", {"x": 1}, '{"x":1}', "toolu_1", '{"x":1}'))
    assert read(blocks).parts == reply.parts and calls(read(blocks[-1])) == [("f", {"x": 1})]


@pytest.mark.parametrize("call, thought", [("functionCall", "thought"), ("function_call", "thought")])
def test_a_gemini_response_gives_its_parts_in_order(call: str, thought: str) -> None:
    parts = [{"text": "hm", thought: True}, {"text": "Hi"}, {call: {"name": "f", "args": {"x": 1}}}]
    response = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    for shape in (response, response["candidates"][0], {"role": "model", "parts": parts}, parts):
        reply = read(shape, ids=Ids.numbered("n"))
        assert reply.parts == (Reasoning("hm"), Text("Hi"), Call("f", {"x": 1}, '{"x":1}', "n_0_0", '{"x":1}'))
    assert calls(read(parts[-1])) == [("f", {"x": 1})]


def test_every_gemini_candidate_is_a_reply() -> None:
    candidates = [{"content": {"parts": [{"text": text}]}} for text in "ab"]
    assert [reply.content for reply in read_all({"candidates": candidates})] == ["a", "b"]
    assert read({"candidates": candidates}).content == "a\nb"


def test_a_call_that_gemini_withheld_is_a_problem() -> None:
    reply = read({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "print(f(x=1))"}]})
    assert codes(reply) == ["provider_error"] and "print(f(x=1))" in reply.problems[0].message
    assert codes(read({"promptFeedback": {"blockReason": "SAFETY"}})) == ["provider_error"]


def test_a_partial_gemini_call_is_truncated() -> None:
    part = {"functionCall": {"name": "f", "partialArgs": [{"jsonPath": "$.x", "numberValue": 1}], "willContinue": True}}
    reply = read(part)
    assert codes(reply) == ["truncated"] and not reply.attempts[0].complete


def test_an_ollama_response_gives_thinking_text_and_calls() -> None:
    message = {"role": "assistant", "content": "Hi", "thinking": "hm"}
    message["tool_calls"] = [{"function": {"name": "f", "arguments": {"x": 1}}}]  # type: ignore[assignment]
    for shape in ({"model": "m", "message": message, "done": True}, message):
        reply = read(shape, ids=Ids.numbered("n"))
        assert reply.format == "ollama"
        assert reply.parts == (Reasoning("hm"), Text("Hi"), Call("f", {"x": 1}, '{"x":1}', "n_0_0", '{"x":1}'))
    assert read({"model": "m", "response": "Hi", "done": True}).content == "Hi"


TEXT, USE = {"type": "text", "text": "Hi"}, {"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}}
OUT = {"type": "output_text", "text": "Hi"}
# Responses with one object where a list of objects is expected.
LONE = {
    "a chat message's parts": (chat("stop", content=TEXT), "Hi", []),
    "a chat message's parts, a call": (chat("stop", content=USE), "", [("f", {"x": 1})]),
    "a chat call": (chat(content="Hi", tool_calls=chat_call()), "Hi", [("f", {"x": 1})]),
    "an item": ({"output": item()}, "", [("f", {"x": 1})]),
    "an item's parts": ({"output": [{"type": "message", "role": "assistant", "content": OUT}]}, "Hi", []),
    "an item and its parts": ({"output": {"type": "message", "role": "assistant", "content": OUT}}, "Hi", []),
    "a block": ({"type": "message", "role": "assistant", "content": TEXT, "stop_reason": "end_turn"}, "Hi", []),
    "a block, a call": ({"type": "message", "role": "assistant", "content": USE}, "", [("f", {"x": 1})]),
    "a candidate": ({"candidates": {"content": {"parts": [{"text": "Hi"}]}}}, "Hi", []),
    "a part": ({"candidates": [{"content": {"parts": {"text": "Hi"}}}]}, "Hi", []),
    "a part, a call": (
        {"candidates": [{"content": {"parts": {"functionCall": {"name": "f", "args": {"x": 1}}}}}]},
        "",
        [("f", {"x": 1})],
    ),
    "an ollama call": (
        {"message": {"content": "", "tool_calls": {"function": {"name": "f", "arguments": {"x": 1}}}}, "done": True},
        "",
        [("f", {"x": 1})],
    ),
}


@pytest.mark.parametrize("where", LONE)
def test_one_object_in_place_of_a_list_is_read_as_its_only_item(where: str) -> None:
    response, content, expected_calls = LONE[where]
    assert (read(response).content, calls(read(response)), codes(read(response))) == (content, expected_calls, [])
    stream = Stream()
    stream.feed(response)
    stream.close()
    assert (stream.reply.content, calls(stream.reply)) == (content, expected_calls)


def test_an_invalid_object_in_place_of_a_call_is_reported() -> None:
    assert codes(read(chat(tool_calls={"name": "f", "arguments": "{}"}))) == ["missing_function"]
    assert codes(read(chat(content="Hi", tool_calls={}))) == []


# -- calls in the text -------------------------------------------------------------------------------------------------

LEAKING = [
    chat("stop", content=LEAK),
    {"output": [{"type": "message", "content": [{"type": "output_text", "text": LEAK}]}]},
    {"type": "message", "role": "assistant", "content": [{"type": "text", "text": LEAK}]},
    {"candidates": [{"content": {"parts": [{"text": LEAK}]}}]},
    {"message": {"role": "assistant", "content": LEAK}, "done": True},
]


@pytest.mark.parametrize("response", LEAKING)
@pytest.mark.parametrize("format", ["auto", "hermes"])
def test_a_call_in_text_is_read_if_the_response_has_no_native_call(response: Json, format: str) -> None:
    reply = read(response, format=format)
    assert calls(reply) == [("f", {"x": 1})] and reply.content == "" and reply.format == "hermes"


def test_native_calls_take_precedence_over_calls_in_text() -> None:
    reply = read(chat(content="So: " + LEAK, tool_calls=[chat_call("g", "{}")]))
    assert calls(reply) == [("g", {})] and '{"name": "f", "arguments": {"x": 1}}' in reply.content
    assert [(problem.code, problem.blocking) for problem in reply.problems] == [("call_in_text", False)]
    assert reply.attempts[0].id == "call_1"


def test_think_tags_in_content_are_reasoning_when_there_are_native_calls() -> None:
    reply = read(chat(content="<think>\nhm\n</think>\n\nHi", tool_calls=[chat_call()]))
    assert reply.reasoning == "hm" and reply.content == "Hi" and len(reply.attempts) == 1


def test_only_calls_at_the_end_of_reasoning_are_runnable() -> None:
    thought = f"First {LEAK.replace('1', '2')} or rather {LEAK} {LEAK.replace('1', '3')}\n"
    reply = read(chat("stop", content="", reasoning_content=thought), tools=[Tool(name="f")])
    assert calls(reply) == [("f", {"x": 1}), ("f", {"x": 3})]
    stream = Stream(tools=[Tool(name="f")])
    for piece in thought:
        stream.feed({"choices": [{"index": 0, "delta": {"reasoning_content": piece}}]})
    stream.close()
    assert calls(stream.reply) == calls(reply)


def test_reasoning_calls_never_leaves_calls_in_reasoning() -> None:
    in_tags = chat("stop", content=f"<think>\n{LEAK}\n</think>")
    for response in (chat("stop", content="", reasoning_content=LEAK), in_tags):
        assert len(read(response, tools=[Tool(name="f")]).calls) == 1
        reply = read(response, tools=[Tool(name="f")], reasoning_calls="never")
        assert reply.attempts == () and LEAK in reply.reasoning
        (reply,) = read_all(response, tools=[Tool(name="f")], reasoning_calls="never")
        assert reply.attempts == () and LEAK in reply.reasoning


BARE = '{"name": "f", "arguments": {"x": 1}}'


@pytest.mark.parametrize(
    "text, found",
    [
        (BARE, ("safe",)),
        (f"Sure: {BARE}", ()),
        (f"Sure: {BARE}, as you asked.", ()),
        (f"Sure: `{BARE}`", ()),
    ],
)
@pytest.mark.parametrize("rescue", ["off", "safe"])
def test_the_rescue_option_decides_what_is_rescued(text: str, found: tuple[str, ...], rescue: Any) -> None:
    tools, answer = [Tool(name="f")], chat("stop", content=text)
    stream = Stream(tools=tools, rescue=rescue)
    stream.feed({"choices": [{"index": 0, "delta": {"content": text}}]})
    stream.close()
    for reply in (read(answer, tools=tools, rescue=rescue), read(text, tools=tools, rescue=rescue), stream.reply):
        assert (calls(reply) == [("f", {"x": 1})]) == (rescue in found)
        assert codes(reply) == (["rescued"] if rescue in found else ["looks_like_a_call"])
        assert not any(problem.blocking for problem in reply.problems)


def test_no_call_is_rescued_from_a_truncated_response() -> None:
    for text in (BARE, f"Sure: {BARE}"):
        reply = read(chat("length", content=text), tools=[Tool(name="f")])
        assert reply.attempts == () and codes(reply) == ["looks_like_a_call"]


def test_a_call_in_reasoning_is_read_only_without_other_content_or_calls() -> None:
    alone = read(chat("stop", content="", reasoning_content="I call " + LEAK), tools=[Tool(name="f")])
    assert calls(alone) == [("f", {"x": 1})] and codes(alone) == ["call_in_reasoning"]
    assert (alone.reasoning, alone.content) == ("I call", "")
    assert alone.calls[0].problems == alone.problems and alone.problems[0].call == 0
    assert calls(read(chat("stop", content="Hi", reasoning_content=LEAK))) == []
    assert calls(read(chat("stop", content="", reasoning_content=LEAK + " Or not."), tools=[Tool(name="f")])) == []
    unknown = read(chat("stop", content="", reasoning_content=LEAK), tools=[Tool(name="g")])
    assert unknown.calls == () and codes(unknown) == ["unknown_tool", "call_in_reasoning"]
    assert calls(read(chat(content="", reasoning_content=LEAK, tool_calls=[chat_call("g", "{}")]))) == [("g", {})]


# -- input values ------------------------------------------------------------------------------------------------------


class Reason(Enum):
    STOP = "tool_calls"


class ModelDumpObject:
    """An SDK object with `model_dump`, as pydantic models have."""

    def __init__(self, data: Json) -> None:
        self.data = data

    def model_dump(self) -> Json:
        return self.data


class ToDictObject:
    def __init__(self, data: Json) -> None:
        self._data = data

    def to_dict(self) -> Json:
        return self._data


def as_namespace(value: Any) -> Any:
    """Convert dicts to plain objects with attributes, recursively."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: as_namespace(each) for key, each in value.items()})
    return [as_namespace(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "wrap", [ModelDumpObject, ToDictObject, as_namespace, json.dumps, lambda v: json.dumps(v).encode(), lambda v: v]
)
def test_a_response_reads_the_same_as_dict_sdk_object_text_and_bytes(wrap: Any) -> None:
    response = chat(content="Hi", reasoning_content="hm", tool_calls=[chat_call()])
    assert read(wrap(response)) == read(response)


def test_nested_sdk_objects_and_enums_are_read() -> None:
    choice = SimpleNamespace(message=ModelDumpObject({"tool_calls": [chat_call()]}), finish_reason=Reason.STOP)
    assert calls(read({"choices": [choice]})) == [("f", {"x": 1})]


@pytest.mark.parametrize("text", ["Hello.", "5", '"Hi"', "{not json", "[1, 2]", '{"answer": 42}', ""])
def test_text_that_is_not_a_provider_response_is_read_as_model_output(text: str) -> None:
    assert read(text).content == text


def test_calls_in_model_output_are_parsed() -> None:
    assert calls(read(LEAK)) == [("f", {"x": 1})]
    assert calls(read(LEAK, format="hermes")) == [("f", {"x": 1})]


def test_a_recorded_stream_is_read() -> None:
    lines = ['{"message": {"content": "H"}, "done": false}', '{"message": {"content": "i"}, "done": true}']
    assert read("\n".join(lines)).content == "Hi"


@pytest.mark.parametrize("nothing", [None, {}, []])
def test_an_empty_value_is_an_empty_reply(nothing: Any) -> None:
    assert read(nothing) == Reply(format="auto")


def test_an_unknown_shape_is_reported() -> None:
    reply = read({"detail": "Not Found"})
    assert reply.problems == (
        Problem("unknown_shape", "the value is not an answer of a known API: keys 'detail'", blocking=False),
    )


ERRORS = [
    {"error": {"message": "boom", "type": "server_error"}},
    {"error": "boom"},
    {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}},
    {"type": "error", "message": "boom", "code": "x"},
    {"object": "response", "status": "failed", "error": {"message": "boom"}, "output": []},
    {"error": {"code": 503, "message": "boom", "status": "UNAVAILABLE"}},
    {"choices": [{"error": {"message": "boom"}, "message": {"content": ""}}]},
]


@pytest.mark.parametrize("response", ERRORS)
def test_an_error_in_place_of_a_response_is_a_problem(response: Json) -> None:
    reply = read(response)
    assert codes(reply) == ["provider_error"] and "boom" in reply.problems[0].message


def test_unknown_api_is_rejected_with_the_nearest_name() -> None:
    with pytest.raises(CallerError, match="did you mean 'chat'"):
        read({}, api="openai_chatt")


def test_invalid_option_values_are_rejected() -> None:
    with pytest.raises(CallerError, match="repair="):
        read({}, repair="never")  # type: ignore[arg-type]
    with pytest.raises(CallerError, match="rescue="):
        read({}, rescue="always")  # type: ignore[arg-type]
    with pytest.raises(CallerError, match="reasoning_calls="):
        Stream(reasoning_calls="always")  # type: ignore[arg-type]
    with pytest.raises(CallerError, match="reasoning="):
        read({}, reasoning="never")  # type: ignore[arg-type]


def test_ids_are_unique_over_a_conversation() -> None:
    ids = Ids.numbered("capture_call")
    turns = []
    for sent in (["a", "a", "a"], ["a", ""], ["capture_call_1_1"]):
        reply = read(chat(tool_calls=[chat_call(id=id) for id in sent]), ids=ids)
        turns.append([call.id for call in reply.attempts])
        ids.next_turn()
    assert turns == [["a", "a_dup_1", "a_dup_2"], ["a_dup_3", "capture_call_1_1"], ["capture_call_1_1_dup_1"]]


def test_lists_and_items_of_every_dialect_are_distinguished() -> None:
    assert detect_dialect([{"type": "tool_use"}]) == "messages"
    assert detect_dialect([{"functionCall": {}}]) == "gemini"
    assert detect_dialect([item()]) == "responses"
    assert detect_dialect([chat_call()]) == "chat"
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    assert detect_dialect(deep) is None
    assert detect_dialect({"role": "assistant", "content": "x"}) == "chat"
    assert (
        detect_dialect({"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"})
        == "chat"
    )
    assert detect_dialect({"message": {"tool_calls": [{"function": {"name": "f", "arguments": {}}}]}}) == "ollama"
    assert detect_dialect({"message": {"x": 1}}) is None
    assert detect_dialect({"x": 1}) is None


def test_a_single_choice_reads_the_same_as_the_whole_response() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [chat_call()]}
    whole, choice = {"choices": [{"index": 0, "message": message}]}, {"index": 0, "message": message}
    assert [call.name for call in read(choice).attempts] == [call.name for call in read(whole).attempts] != []


def test_read_accepts_a_toolset() -> None:
    tools = Toolset([Tool(name="f")])
    assert codes(read(chat(tool_calls=[chat_call()]), tools=tools)) == []


# -- names and repairs -------------------------------------------------------------------------------------------------

WEATHER = Tool(
    name="get_weather",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def test_a_namespaced_name_is_repaired_with_a_receipt() -> None:
    call = read(chat(tool_calls=[chat_call("functions.get_weather", '{"city": "B"}')]), tools=[WEATHER]).attempts[0]
    assert call.name == "get_weather" and [repair.rule for repair in call.repairs] == ["namespace"]


def test_a_missing_name_is_taken_from_the_arguments_with_a_receipt() -> None:
    hoisted = read(chat(tool_calls=[chat_call("", '{"name": "get_weather", "city": "B"}')]), tools=[WEATHER])
    inferred = read(chat(tool_calls=[chat_call("", '{"city": "B"}')]), tools=[WEATHER])
    for reply, rule in ((hoisted, "hoisted_name"), (inferred, "inferred_name")):
        assert calls(reply) == [("get_weather", {"city": "B"})] and codes(reply) == []
        assert [repair.rule for repair in reply.attempts[0].repairs] == [rule]
    assert codes(read(chat(tool_calls=[chat_call("", '{"city": "B"}')]), tools=[WEATHER], repair="off")) == [
        "invalid_name"
    ]


def test_repair_policy_can_be_set_per_tool() -> None:
    broken = chat(tool_calls=[chat_call("get_weather", "{'city': 'B'}")])
    repaired = read(broken, tools=[WEATHER])
    assert calls(repaired) == [("get_weather", {"city": "B"})] and repaired.attempts[0].raw == "{'city': 'B'}"
    assert repaired.attempts[0].repairs
    assert codes(read(broken, tools=[WEATHER], repair={"get_weather": "off"})) == ["invalid_json"]


def test_arguments_that_violate_the_schema_are_a_problem() -> None:
    reply = read(chat(tool_calls=[chat_call("get_weather", "{}")]), tools=[WEATHER])
    assert codes(reply) == ["missing"] and reply.problems[0].call == 0


def test_bare_json_next_to_native_calls_is_text_and_reported_once() -> None:
    bare = '{"name": "get_weather", "arguments": {"city": "B"}}'
    for format in ("auto", "hermes"):
        reply = read(
            chat(content=bare, tool_calls=[chat_call("get_weather", '{"city": "C"}')]), tools=[WEATHER], format=format
        )
        assert calls(reply) == [("get_weather", {"city": "C"})] and reply.content == bare


# -- Responses: one item in place of a list, and calls next to the output ----------------------------------------------

ITEM = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"x": 1}'}
BESIDE = {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}
SAID = {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}


@pytest.mark.parametrize("api", ["auto", "responses"])
@pytest.mark.parametrize(
    "response, names, content",
    [
        ({"output": ITEM}, ["f"], ""),
        ({"output": SAID}, [], "Hi"),
        ({"object": "response", "output": ITEM}, ["f"], ""),
        ({"output": ITEM, "tool_calls": [BESIDE]}, ["f", "g"], ""),
        ({"output": [SAID, ITEM], "tool_calls": [BESIDE]}, ["f", "g"], "Hi"),
        ({"output": [SAID], "tool_calls": BESIDE}, ["g"], "Hi"),
        ({"output": [], "tool_calls": [BESIDE]}, ["g"], ""),
        ({"output": "Hi", "tool_calls": [BESIDE]}, ["g"], "Hi"),
    ],
)
def test_a_single_output_item_and_calls_next_to_the_output_are_read(
    response: Json, names: list[str], content: str, api: str
) -> None:
    reply = read(response, api=api)
    assert ([call.name for call in reply.calls], reply.content, reply.problems) == (names, content, ())


@pytest.mark.parametrize(
    "twin",
    [
        {"id": "c1", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"function": {"name": "f", "arguments": '{"x": 1}'}},
    ],
)
def test_a_call_both_in_and_next_to_the_output_is_read_once(twin: Json) -> None:
    assert [call.id for call in read({"output": [ITEM], "tool_calls": [twin]}).calls] == ["c1"]


def test_choice_none_rejects_native_calls() -> None:
    for tools in (None, [Tool(name="g")]):
        reply = read({"choices": [{"message": {"content": "Hi", "tool_calls": [BESIDE]}}]}, tools=tools, choice="none")
        assert reply.content == "Hi" and [problem.code for problem in reply.problems] == ["not_authorised"]
