"""`Stream`: when events are emitted, errors in the stream, and transport details."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from rightcall import Arguments, Call, CallEnd, CallStart, Ids, Reply, Tool, render
from rightcall.errors import CallerError
from rightcall.providers.json_state import JsonState, ends_early
from rightcall.providers.provider_answers import Stream, read
from rightcall.types import Event, Reasoning, Text
from support.provider_answers import LEAK, calls, chat, codes, delta, entry


def run(*chunks: Any, **options: Any) -> Reply:
    stream = Stream(ids=Ids.numbered("n"), **options)
    for chunk in chunks:
        stream.feed(chunk)
    stream.close()
    return stream.reply


# -- text, errors, transport details -----------------------------------------------------------------------------------


def feed(stream: Stream, *chunks: Any) -> list[list[Event]]:
    return [stream.feed(chunk) for chunk in chunks]


def test_text_is_emitted_chunk_by_chunk() -> None:
    stream = Stream(format="hermes")
    assert feed(stream, delta(content="Hel"), delta(content="lo")) == [[Text("Hel")], [Text("lo")]]


def test_a_call_in_the_text_is_emitted_only_at_close_because_native_calls_win() -> None:
    stream = Stream(format="hermes")
    assert feed(stream, delta(content="So" + LEAK)) == [[Text("So")]]
    assert [type(event) for event in stream.close()] == [CallStart, Arguments, CallEnd]


def test_in_live_mode_a_call_in_the_text_is_emitted_at_once_and_its_end_at_close() -> None:
    stream = Stream(format="hermes", live=True)
    events = feed(stream, delta(content=LEAK), delta(content=" Done."))
    assert [type(event) for event in events[0]] == [CallStart, Arguments] and events[1] == [Text("Done.")]
    assert [type(event) for event in stream.close()] == [CallEnd]
    assert calls(stream.reply) == [("f", {"x": 1})]


@pytest.mark.parametrize("text", [LEAK, "So" + LEAK, LEAK + LEAK, LEAK[:-15], LEAK.removeprefix("<tool_call>")])
@pytest.mark.parametrize("later", ["", " Then."])
def test_in_live_mode_the_runnable_calls_are_those_of_the_buffered_reply(text: str, later: str) -> None:
    chunks = [*map(delta_of_text, text), delta(entry(0, "a", "g", '{"y": 2}')), delta(content=later)]
    tools = [Tool(name="f"), Tool(name="g")]
    buffered, live = (run(*chunks, tools=tools, live=live) for live in (False, True))
    assert calls(buffered) == [("g", {"y": 2})]
    assert [(call.name, call.arguments) for call in live.calls] == [("g", {"y": 2})]
    assert {problem.code for call in live.refused for problem in call.problems} <= {"call_in_text", "truncated"}
    assert later.strip() in live.content


@pytest.mark.parametrize("later", [" </think>\n", "</tool_call>", "<tool_call>", '<tool_call>{"name', LEAK])
def test_in_live_mode_the_reply_is_the_same_when_no_other_calls_follow(later: str) -> None:
    chunks = [*map(delta_of_text, LEAK.replace('"f"', '"e"') + later)]
    buffered, live = (run(*chunks, tools=[Tool(name="f")], format="hermes", live=live) for live in (False, True))
    assert buffered == live and codes(live)[0] == "unknown_tool"


def delta_of_text(text: str) -> Any:
    return delta(content=text)


def test_native_calls_win_over_earlier_calls_in_the_text() -> None:
    reply = run(delta(content=LEAK), delta(entry(0, "a", "g", "{}")))
    assert calls(reply) == [("g", {})] and codes(reply) == ["call_in_text"] and '"f"' in reply.content


def test_a_string_argument_is_emitted_while_it_arrives() -> None:
    tool = Tool(
        name="f", parameters={"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}}
    )
    stream = Stream(tools=[tool], live=True)
    events = feed(
        stream,
        delta(entry(0, "a", "f", '{"n": 1')),
        delta(entry(0, arguments='2, "q": "ab')),
        delta(entry(0, arguments="cd\\")),
        delta(entry(0, arguments='n"}')),
    )
    assert [[event.json for event in each if isinstance(event, Arguments)] for each in events] == [
        [],
        ['{"n": 12, "q": "ab'],
        ["cd"],
        ['\\n"'],
    ]
    assert [event for event in stream.close() if isinstance(event, Arguments)] == [Arguments(0, "}")]
    assert stream.reply.attempts[0].arguments == {"n": 12, "q": "abcd\n"}


def test_a_call_starts_when_its_arguments_begin() -> None:
    stream = Stream()
    events = feed(stream, delta(entry(0, "a", "ge")), delta(entry(0, None, "t")), delta(entry(0, arguments="{")))
    assert events == [[], [], [CallStart(0, "a", "get")]]


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "boom"}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}},
        {"type": "error", "message": "boom"},
        'event: error\ndata: {"message": "boom"}\n\n',
    ],
)
def test_an_error_in_the_stream_is_a_problem_and_earlier_content_is_kept(error: Any) -> None:
    reply = run(delta(content="Hel"), error)
    assert reply.content == "Hel" and codes(reply) == ["provider_error"] and "boom" in reply.problems[0].message


def test_a_call_without_arguments_before_an_error_is_truncated() -> None:
    assert codes(run(delta(entry(0, "a", "f", "")), {"error": "boom"})) == ["provider_error", "truncated"]


def test_a_failed_response_is_a_problem() -> None:
    assert codes(run({"type": "response.failed", "response": {"status": "failed", "error": {"message": "x"}}})) == [
        "provider_error"
    ]


def test_a_chunk_that_is_not_json_is_a_problem_and_later_chunks_are_read() -> None:
    reply = run('data: {"choices": oops}\n\n', "data: " + json.dumps(delta(content="Hi")))
    assert reply.content == "Hi" and codes(reply) == ["malformed_chunk"]


@pytest.mark.parametrize(
    "payload", ["{}", "data: {}", "data:{}\n\n", "event: e\nid: 1\nretry: 5\ndata: {}\n\n: ping\n"]
)
def test_a_payload_is_read_with_and_without_its_sse_lines(payload: str) -> None:
    text = payload.replace("{}", json.dumps(delta(content="Hi")))
    assert run(text, text.encode(), "data: [DONE]").content == "HiHi"


def test_several_payloads_of_a_chunk_are_read_one_by_one() -> None:
    text = "".join([f"data: {json.dumps(delta(content=char))}\r\n\r\n" for char in "Hi!"]) + "data: [DONE]\n\n"
    assert run(text).content == "Hi!"


def test_json_lines_and_a_json_list_are_read() -> None:
    lines = [{"message": {"content": char}, "done": char == "i"} for char in "Hi"]
    assert run("\n".join(map(json.dumps, lines))).content == "Hi"
    parts = [{"candidates": [{"content": {"parts": [{"text": char}]}}]} for char in "Hi"]
    assert run(json.dumps(parts, indent=1)).content == "Hi"


def test_sdk_objects_are_accepted_as_chunks() -> None:
    choice = SimpleNamespace(index=0, delta=SimpleNamespace(content="Hi", tool_calls=None), finish_reason=None)
    assert run(SimpleNamespace(choices=[choice])).content == "Hi"


def test_a_truncated_payload_is_a_problem_at_close() -> None:
    assert codes(run('data: {"choices": [')) == ["malformed_chunk"]


def test_an_empty_stream_is_an_empty_reply() -> None:
    assert run() == Reply(format="auto") == read(None)


def test_feeding_a_closed_stream_raises() -> None:
    stream = Stream()
    stream.close()
    assert stream.close() == []
    with pytest.raises(CallerError, match="closed"):
        stream.feed({})


def test_reasoning_precedes_text_of_one_chunk() -> None:
    assert run(delta(reasoning_content="hm", content="Hi")).parts == (Reasoning("hm"), Text("Hi"))


@pytest.mark.parametrize("text", ['{"a": ["x\\u00e9\\n", {"b": [1.5, null, true]}], "": {}}', '[[], "", -0.5e3]'])
def test_json_state_is_independent_of_chunking(text: str) -> None:
    pieces = JsonState()
    for char in text[:-1]:
        pieces.feed(char)
        assert pieces.is_incomplete
    pieces.feed(text[-1])
    assert pieces.is_complete and not ends_early(text)
    assert all(ends_early(text[:end]) for end in range(1, len(text)))


@pytest.mark.parametrize(
    "text, final",
    [('{"a": 1', 0), ('{"a": 1, "b', 8), ('{"a": {"b": 1, "c": 2', 0), ('{"x": 1, "a": {"b": "q", "c": 2', 8)],
)
def test_arguments_are_final_after_the_next_top_level_comma(text: str, final: int) -> None:
    state = JsonState()
    state.feed(text)
    assert state.final == final


@pytest.mark.parametrize(
    "text", ["{a}", "{'a': 1}", '{"a": 01}', '{"a": nan}', '{"a" 1}', '["\n"]', "{,}", "{} x", "]"]
)
def test_invalid_json_is_distinguished_from_incomplete_json(text: str) -> None:
    state = JsonState()
    state.feed(text)
    assert state.is_invalid and not ends_early(text)


# -- regressions of single lines that no law covers --------------------------------------------------------------------

TOOLS = [
    Tool(name="ping"),
    Tool(name="lookup", parameters={"type": "object", "properties": {"word": {"type": "string"}}}),
]


def test_the_second_call_in_one_chunk_of_a_stream_is_kept() -> None:
    pieces = [entry(i, f"c{i}", "lookup", json.dumps({"word": word})) for i, word in enumerate(("owl", "bat"))]
    assert calls(run(delta(*pieces), tools=TOOLS)) == [("lookup", {"word": "owl"}), ("lookup", {"word": "bat"})]


@pytest.mark.parametrize("arguments", ["", "{}"])
def test_a_new_id_under_an_earlier_index_is_another_call(arguments: str) -> None:
    reply = run(*[delta(entry(0, id, "ping", arguments)) for id in "ab"], tools=TOOLS)
    assert [(call.id, call.name) for call in reply.calls] == [("a", "ping"), ("b", "ping")]


def test_a_later_finish_reason_does_not_hide_a_truncated_answer() -> None:
    ends: list[Any] = [
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]} for finish in ("length", "stop")
    ]
    reply = run(delta(content='{"name": "lookup", "arguments": {"word": "owl"}}'), *ends, tools=TOOLS)
    assert (reply.finish, reply.attempts) == ("length", ())


def test_the_problem_of_a_call_in_a_later_text_names_that_call() -> None:
    texts = [render([Call(name, {"word": "owl"})], format="hermes") for name in ("lookup", "nope")]
    chunks = delta(content=texts[0]), delta(reasoning_content="And now?"), delta(content=texts[1])
    reply = run(*chunks, tools=TOOLS, format="hermes")
    assert [(problem.code, problem.call) for problem in reply.problems] == [("unknown_tool", 1)]
    assert [problem.call for call in reply.refused for problem in call.problems] == [1]


def test_a_nameless_call_is_identified_by_its_arguments_while_others_are_open() -> None:
    pieces = [entry(0, "a", "lookup", '{"word'), entry(1, "b", "", '{"word": "owl"}'), entry(2, "c", "ping", "{}")]
    schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    tools = [Tool(name="ping"), Tool(name="lookup", parameters=schema)]
    for reply in (run(*map(delta, pieces), tools=tools), read(chat(tool_calls=pieces), tools=tools)):
        assert [(call.name, call.ok) for call in reply.attempts] == [
            ("lookup", False),
            ("lookup", True),
            ("ping", True),
        ]
