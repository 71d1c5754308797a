"""`Stream`: streams as real servers send them, one kind of deviation per row."""

from __future__ import annotations

from typing import Any

import pytest

from rightcall import Ids, Reply, Tool, Toolset, read
from rightcall.providers.provider_answers import Stream
from support.provider_answers import Json, calls, codes, delta, entry

TOOLS = Toolset([Tool(name="f"), Tool(name="g")])


def run(*chunks: Any, **options: Any) -> Reply:
    stream = Stream(ids=Ids.numbered("n"), **options)
    for chunk in chunks:
        stream.feed(chunk)
    stream.close()
    return stream.reply


TWO = [("f", {"x": 1}), ("g", {"y": 2})]
MISBEHAVING: dict[str, list[Json]] = {
    "as it should be": [
        delta(entry(0, "a", "f", "")),
        delta(entry(0, arguments='{"x"')),
        delta(entry(0, arguments=": 1}")),
        delta(entry(1, "b", "g", "")),
        delta(entry(1, arguments='{"y": 2}')),
    ],
    "no index": [
        delta(entry(None, "a", "f", '{"x"')),
        delta(entry(None, arguments=": 1}")),
        delta(entry(None, "b", "g", '{"y": ')),
        delta(entry(None, arguments="2}")),
    ],
    "neither index nor id": [
        delta(entry(name="f", arguments='{"x": ')),
        delta(entry(arguments="1}")),
        delta(entry(name="g", arguments='{"y": 2}')),
    ],
    "index always 0": [
        delta(entry(0, "a", "f", '{"x": 1}')),
        delta(entry(0, "b", "g", '{"y"')),
        delta(entry(0, arguments=": 2}")),
    ],
    "index always 0 and no ids": [
        delta(entry(0, name="f", arguments='{"x": 1}')),
        delta(entry(0, name="g", arguments='{"y"')),
        delta(entry(0, arguments=": 2}")),
    ],
    "index differs between id chunk and argument chunks": [
        delta(entry(0, "a", "f", "")),
        delta(entry(1, arguments='{"x"')),
        delta(entry(1, arguments=": 1}")),
        delta(entry(1, "b", "g", "")),
        delta(entry(2, arguments='{"y": 2}')),
    ],
    "the same id twice": [
        delta(entry(0, "a", "f", '{"x": 1}')),
        delta(entry(1, "a", "g", '{"y":')),
        delta(entry(1, "a", arguments=" 2}")),
    ],
    "the same id and index twice": [
        delta(entry(0, "a", "f", '{"x": 1}')),
        delta(entry(0, "a", "g", '{"y": 2}')),
    ],
    "id and name with every chunk": [
        delta(entry(0, "a", "f", '{"x"')),
        delta(entry(0, "a", "f", ": 1")),
        delta(entry(0, "a", "f", "}")),
        delta(entry(0, "a", "f", "")),
        delta(entry(1, "b", "g", '{"y": ')),
        delta(entry(1, "b", "g", "2}")),
    ],
    "another id with every chunk": [
        delta(entry(0, "a", "f", "")),
        delta(entry(0, "a2", arguments='{"x"')),
        delta(entry(0, "a3", arguments=": 1}")),
        delta(entry(1, "b", "g", "")),
        delta(entry(1, "b2", arguments='{"y": 2}')),
    ],
    "name repeated whole before the arguments": [
        delta(entry(0, "a", "f", "")),
        delta(entry(0, "a", "f", "")),
        delta(entry(0, arguments='{"x": 1}')),
        delta(entry(1, "b", "g", '{"y": 2}')),
    ],
    "heads first, arguments mixed": [
        delta(entry(0, "a", "f"), entry(1, "b", "g")),
        delta(entry(1, arguments='{"y"')),
        delta(entry(0, arguments='{"x"')),
        delta(entry(1, arguments=": 2}"), entry(0, arguments=": 1}")),
    ],
    "several calls in one chunk": [delta(entry(0, "a", "f", '{"x": 1}'), entry(1, "b", "g", '{"y": 2}'))],
    "several calls in one chunk, all with index 0": [
        delta(entry(0, name="f", arguments='{"x": 1}'), entry(0, name="g", arguments='{"y": 2}'))
    ],
    "several calls in every chunk, told by position": [
        delta(entry(name="f", arguments='{"x"'), entry(name="g", arguments='{"y"')),
        delta(entry(arguments=": 1}"), entry(arguments=": 2}")),
    ],
    "the whole answer in one chunk": [
        {"choices": [{"message": {"tool_calls": [entry(0, "a", "f", '{"x": 1}'), entry(1, "b", "g", '{"y": 2}')]}}]}
    ],
    "the whole message after its deltas": [
        delta(entry(0, "a", "f", '{"x": 1}'), entry(1, "b", "g", '{"y": 2}')),
        {"choices": [{"message": {"tool_calls": [entry(0, "a", "f", '{"x": 1}')]}, "finish_reason": "stop"}]},
    ],
    "the whole message after its deltas and an empty one": [
        delta(entry(0, "a", "f", '{"x": 1}'), entry(1, "b", "g", '{"y": 2}')),
        delta(),
        delta(content=""),
        {"choices": [{"message": {"tool_calls": [entry(0, "a", "f", '{"x": 1}')]}, "finish_reason": "stop"}]},
    ],
    "the whole message after an empty delta": [
        delta(content="", role="assistant"),
        {"choices": [{"message": {"tool_calls": [entry(0, "a", "f", '{"x": 1}'), entry(1, "b", "g", '{"y": 2}')]}}]},
    ],
    "arguments as an object": [delta(entry(0, "a", "f", {"x": 1})), delta(entry(1, "b", "g", {"y": 2}))],
    "arguments sent once more in whole": [
        delta(entry(0, "a", "f", '{"x": 1}')),
        delta(entry(0, "a", "f", '{"x": 1}')),
        delta(entry(1, "b", "g", '{"y": 2}')),
        delta(entry(1, arguments='{"y": 2}')),
    ],
    "empty chunks and nulls": [
        {},
        {"choices": []},
        delta(content="", tool_calls=None),
        delta(entry(0, "a", "f", "")),
        delta({"index": 0, "function": None}),
        delta({"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": '{"x": 1}'}}),
        delta(None, entry(1, "b", "g", '{"y": 2}')),
        {"choices": [{"delta": None, "finish_reason": "stop"}]},
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    ],
    "a lone call where a list should be": [
        delta(tool_calls=entry(0, "a", "f", '{"x": 1}')),
        delta(tool_calls=entry(1, "b", "g", '{"y": 2}')),
    ],
    "the id after the name": [
        delta(entry(0, name="f")),
        delta({"index": 0, "id": "a"}),
        delta(entry(0, arguments='{"x": 1}')),
        delta(entry(1, "b", "g", '{"y": 2}')),
    ],
}


@pytest.mark.parametrize("tools", [None, TOOLS], ids=["no tools", "tools"])
@pytest.mark.parametrize("kind", list(MISBEHAVING))
def test_the_calls_of_a_misbehaving_stream_are_read(kind: str, tools: Toolset | None) -> None:
    reply = run(*MISBEHAVING[kind], tools=tools)
    assert calls(reply) == TWO and codes(reply) == [] and len({call.id for call in reply.attempts}) == 2


@pytest.mark.parametrize("at", range(4))
def test_text_is_emitted_once_if_a_message_repeats_it_wherever_an_empty_delta_is(at: int) -> None:
    def of_choice(index: int, **fields: Any) -> Json:
        return {"choices": [{"index": index, **fields}]}

    chunks = [of_choice(0, delta={"content": "Hel"}), of_choice(1, delta={"content": "Bye"})]
    chunks.append(of_choice(0, delta={"content": "lo"}))
    for index in (0, 1):
        whole = [of_choice(number, message={"content": text}) for number, text in enumerate(("Hello", "Bye"))]
        assert run(*chunks[:at], of_choice(index, delta={}), *chunks[at:], *whole).content == "Hello\nBye"


NEEDS_Y = {"type": "object", "properties": {"y": {"type": "string"}}, "required": ["y"]}
NAMELESS = [("f", "{}"), ("", '{"y": "a"}'), ("f", "{}")]


@pytest.mark.parametrize("points", ["id and index", "id", "index"])
def test_arguments_are_never_assigned_to_the_call_of_another_tool(points: str) -> None:
    tools = Toolset([Tool(name="f"), Tool(name="g", parameters=NEEDS_Y)])
    entries = [entry(i, f"c{i}", name, arguments) for i, (name, arguments) in enumerate(NAMELESS)]
    whole = read({"choices": [{"message": {"tool_calls": entries}}]}, tools=tools)
    pointing = {"id": ("id",), "index": ("index",)}.get(points, ("id", "index"))
    pieces = [{key: each[key] for key in (*pointing, "function")} for each in entries]
    for reply in (whole, run(*map(delta, pieces), tools=tools)):
        assert calls(reply) == [("f", {}), ("g", {"y": "a"}), ("f", {})]


@pytest.mark.parametrize("name", ["f", "g"])
def test_one_id_for_two_calls_at_two_indexes_is_two_calls(name: str) -> None:
    second = [delta(entry(1, "a", name, "")), delta(entry(1, arguments='{"y"')), delta(entry(1, arguments=": 2}"))]
    reply = run(delta(entry(0, "a", "f", '{"x": 1}')), *second, tools=TOOLS)
    assert calls(reply) == [("f", {"x": 1}), (name, {"y": 2})] and codes(reply) == []
    assert [call.id for call in reply.attempts] == ["a", "a_dup_1"]


def test_a_name_may_be_split_over_chunks() -> None:
    chunks = [delta(entry(0, "a", piece)) for piece in ("get", "_wea", "ther")]
    assert calls(run(*chunks, delta(entry(0, arguments="{}")))) == [("get_weather", {})]


def test_a_repeated_name_is_resolved_by_the_declared_tools() -> None:
    chunks = [delta(entry(0, "a", "ha")), delta(entry(0, None, "ha")), delta(entry(0, arguments="{}"))]
    assert calls(run(*chunks)) == [("ha", {})]
    assert calls(run(*chunks, tools=[Tool(name="haha")])) == [("haha", {})]


def test_calls_without_arguments_and_ids_are_resolved_by_the_declared_tools() -> None:
    assert calls(run(delta(entry(name="f")), delta(entry(name="g")), tools=TOOLS)) == [("f", {}), ("g", {})]


def test_the_same_call_twice_is_two_calls() -> None:
    twice = [delta(entry(0, name="f", arguments='{"x": 1}'))] * 2
    assert calls(run(*twice)) == [("f", {"x": 1})] * 2


def test_a_call_that_is_started_again_leaves_its_first_attempt_truncated() -> None:
    reply = run(delta(entry(0, "a", "f", '{"x": 1')), delta(entry(0, "a", "f", '{"x": 1}')))
    assert [(call.complete, call.arguments) for call in reply.attempts] == [(False, {}), (True, {"x": 1})]
    assert codes(reply) == ["truncated"]


def test_arguments_after_the_end_of_a_call_are_reported() -> None:
    chunks = [delta(entry(0, "a", "f", "{}")), delta(entry(1, "b", "g", "{}")), delta(entry(0, arguments='"x": 1}'))]
    reply = run(*chunks)
    assert codes(reply) == ["late_arguments"] and calls(reply) == [("f", {}), ("g", {})] and not reply.refused


def test_a_legacy_function_call_is_read_from_a_stream() -> None:
    chunks = [delta(function_call={"name": "f", "arguments": ""})]
    chunks += [delta(function_call={"arguments": piece}) for piece in ('{"x"', ": 1}")]
    assert calls(run(*chunks)) == [("f", {"x": 1})]


def test_a_custom_call_is_read_from_a_stream() -> None:
    chunks = [delta({"index": 0, "id": "a", "type": "custom", "custom": {"name": "patch", "input": ""}})]
    chunks += [delta({"index": 0, "custom": {"input": piece}}) for piece in ("*** ", "Begin")]
    assert calls(run(*chunks)) == [("patch", {"input": "*** Begin"})]


def test_a_second_finish_reason_changes_nothing() -> None:
    finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    assert calls(run(delta(entry(0, "a", "f", '{"x"')), finish, delta(entry(0, arguments=": 1}")), finish)) == TWO[:1]


def test_a_stream_that_ends_inside_a_call_leaves_it_truncated() -> None:
    reply = run(delta(entry(0, "a", "f", "{}")), delta(entry(1, "b", "g", '{"y": "ab')))
    assert codes(reply) == ["truncated"] and [call.complete for call in reply.attempts] == [True, False]


def test_the_text_of_several_choices_is_concatenated_by_choice() -> None:
    def choice(index: int, text: str) -> Json:
        return {"index": index, "delta": {"content": text}}

    reply = run(
        {"choices": [choice(1, "c"), choice(0, "a")]}, {"choices": [choice(0, "b")]}, {"choices": [choice(1, "d")]}
    )
    assert reply.content == "ab\ncd"


# -- the other dialects ------------------------------------------------------------------------------------------------


def test_anthropic_server_tool_calls_are_ignored() -> None:
    chunks = [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "server_tool_use", "id": "s", "name": "w"},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"q": 1}'}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ""}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]
    assert calls(run(*chunks)) == [("f", {})]


def test_arguments_at_the_start_of_an_anthropic_block_are_used_unless_deltas_follow() -> None:
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    piece = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": '{"x": 2}'},
    }
    assert calls(run(start, {"type": "content_block_stop", "index": 0})) == [("f", {"x": 1})]
    assert calls(run(start, piece)) == [("f", {"x": 2})]


def test_text_after_an_anthropic_call_is_emitted_after_it() -> None:
    chunks = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "f"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hi"}},
    ]
    assert [type(part).__name__ for part in run(*chunks).parts] == ["Call", "Text"]


ITEM = {"type": "function_call", "id": "fc", "call_id": "a", "name": "f", "arguments": '{"x": 1}'}
COMPLETED = {"type": "response.completed", "response": {"status": "completed", "output": [ITEM]}}


def test_a_responses_stream_may_contain_only_its_final_event() -> None:
    assert calls(run(COMPLETED)) == [("f", {"x": 1})]


def test_a_responses_stream_may_send_calls_only_as_done_items() -> None:
    assert calls(run({"type": "response.output_item.done", "output_index": 0, "item": ITEM}, COMPLETED)) == [
        ("f", {"x": 1})
    ]


def test_lost_argument_deltas_of_a_responses_call_are_taken_from_its_done_event() -> None:
    added = {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "arguments": ""}}
    piece = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": 'x": 1}'}
    done = {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"x": 1}'}
    assert calls(run(added, piece, done, COMPLETED)) == [("f", {"x": 1})]


def test_a_responses_stream_without_indexes_is_read() -> None:
    added = {"type": "response.output_item.added", "item": {**ITEM, "arguments": ""}}
    pieces = [{"type": "response.function_call_arguments.delta", "item_id": "fc", "delta": d} for d in ('{"x"', ": 1}")]
    assert calls(run(added, *pieces)) == [("f", {"x": 1})]


LEAKED = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
MESSAGE = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": LEAKED}]}
REASONING = {"type": "reasoning", "id": "m", "summary": [{"type": "summary_text", "text": LEAKED}]}
POINTERS: dict[str, Json] = {"index": {"output_index": 0}, "id": {"item_id": "m"}, "nothing": {}}
POINTERS["both"] = {"output_index": 0, "item_id": "m"}


@pytest.mark.parametrize("first", list(POINTERS))
@pytest.mark.parametrize("last", ["index", "nothing"])
@pytest.mark.parametrize("item", [MESSAGE, REASONING], ids=["text", "reasoning"])
def test_repeated_text_of_a_responses_stream_is_emitted_once(item: Json, first: str, last: str) -> None:
    """Text that is counted twice would run its calls twice, even if the server omits indexes or ids."""
    kind = "output_text" if item["type"] == "message" else "reasoning_summary_text"
    pieces = [{"type": f"response.{kind}.delta", "delta": part, **POINTERS[first]} for part in (LEAKED[:9], LEAKED[9:])]
    done = {"type": "response.output_item.done", "item": item, **POINTERS[last]}
    ending = {"type": "response.completed", "response": {"status": "completed", "output": [item]}}
    reply = run(*pieces, done, ending, tools=TOOLS)
    assert calls(reply) == [("f", {"x": 1})] and not reply.content and not reply.reasoning


def test_a_final_responses_event_is_read_after_a_server_side_search() -> None:
    search = {"type": "web_search_call", "id": "w", "status": "completed"}
    ending = {"type": "response.completed", "response": {"status": "completed", "output": [search, MESSAGE]}}
    reply = run({"type": "response.output_item.done", "output_index": 0, "item": search}, ending, tools=TOOLS)
    assert calls(reply) == [("f", {"x": 1})]


def test_argument_deltas_of_responses_calls_are_matched_by_item_id() -> None:
    items = [{**ITEM, "id": f"fc{i}", "call_id": f"c{i}", "arguments": ""} for i in range(2)]
    added = [{"type": "response.output_item.added", "output_index": i, "item": item} for i, item in enumerate(items)]
    pieces = [(0, '{"x"'), (1, '{"x": '), (0, ": 1}"), (1, "2}")]
    args = [{"type": "response.function_call_arguments.delta", "item_id": f"fc{i}", "delta": d} for i, d in pieces]
    assert calls(run(*added, *args)) == [("f", {"x": 1}), ("f", {"x": 2})]


def test_an_incomplete_response_leaves_its_call_truncated() -> None:
    added = {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "arguments": ""}}
    ending = {"type": "response.incomplete", "response": {"status": "incomplete", "output": []}}
    assert codes(run(added, ending)) == ["truncated"]


def test_a_custom_responses_call_is_read_from_a_stream() -> None:
    item = {"type": "custom_tool_call", "id": "ct", "call_id": "a", "name": "patch", "input": ""}
    chunks = [{"type": "response.output_item.added", "output_index": 0, "item": item}]
    chunks += [{"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": d} for d in ("**", "*")]
    assert calls(run(*chunks)) == [("patch", {"input": "***"})]


def test_reasoning_summaries_of_one_item_are_separated() -> None:
    kind = "response.reasoning_summary_text.delta"
    chunks = [
        {"type": kind, "output_index": 0, "summary_index": i, "delta": d} for i, d in ((0, "a"), (0, "b"), (1, "c"))
    ]
    assert run(*chunks).reasoning == "ab\n\nc"


# -- opaque fields that a provider expects back ------------------------------------------------------------------------


def closed_stream(api: str, *chunks: Json) -> Stream:
    stream = Stream(api)
    for chunk in chunks:
        stream.feed(chunk)
    stream.close()
    return stream


def test_signed_thinking_of_a_stream_can_be_sent_back() -> None:
    def block(index: int, start: Json, *deltas: Json) -> list[Json]:
        delta_events = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        return [{"type": "content_block_start", "index": index, "content_block": start}, *delta_events]

    thinking = [{"type": "thinking_delta", "thinking": text} for text in ("h", "m")]
    signed = [{"type": "signature_delta", "signature": "s"}]
    stream = closed_stream(
        "messages",
        *block(0, {"type": "thinking", "thinking": ""}, *thinking, *signed),
        *block(1, {"type": "redacted_thinking", "data": "x"}),
        *block(2, {"type": "tool_use", "id": "a", "name": "f", "input": {}, "caller": {"type": "direct"}}),
    )
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    assert stream.reply.extras == {
        "": {"thinking": [thought, {"type": "redacted_thinking", "data": "x"}]},
        "a": {"caller": {"type": "direct"}},
    }


def test_signatures_of_streamed_gemini_parts_are_keyed_by_call_id() -> None:
    def chunk(part: Json) -> Json:
        return {"candidates": [{"content": {"parts": [part]}}]}

    stream = closed_stream(
        "gemini",
        chunk({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s"}),
        chunk({"functionCall": {"name": "g", "args": {}}}),
    )
    assert stream.reply.extras == {stream.reply.attempts[0].id: {"thoughtSignature": "s"}}


def test_opaque_fields_of_streamed_chat_and_responses_calls_are_kept() -> None:
    def delta(**fields: object) -> Json:
        return {"choices": [{"index": 0, "delta": fields}]}

    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{"}}
    more = {"index": 0, "function": {"arguments": "}"}, "extra_content": {"google": {"thought_signature": "s"}}}
    details = [{"type": "reasoning.encrypted", "data": "x"}]
    stream = closed_stream("chat", delta(reasoning_details=details), delta(tool_calls=[call]), delta(tool_calls=[more]))
    assert stream.reply.extras == {
        "": {"reasoning_details": details},
        "a": {"extra_content": {"google": {"thought_signature": "s"}}},
    }
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    assert closed_stream("responses", {"type": "response.output_item.done", "item": thought}).reply.extras == {
        "": {"reasoning": [thought]}
    }


# -- Gemini calls whose arguments are streamed -------------------------------------------------------------------------


def gemini_stream(*calls: Json) -> Stream:
    return closed_stream("gemini", *({"candidates": [{"content": {"parts": [{"functionCall": c}]}}]} for c in calls))


def argument_piece(path: str, **value: object) -> Json:
    return {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}


def test_streamed_gemini_arguments_are_joined() -> None:
    reply = gemini_stream(
        {"name": "f", "id": "a", "willContinue": True},
        argument_piece("$.city", stringValue="Os", willContinue=True),
        argument_piece("$.city", stringValue="lo"),
        argument_piece("$.days", numberValue=3.0),
        argument_piece("$.on[0].x", boolValue=True),
        argument_piece("$.on[1]", nullValue="NULL_VALUE"),
        argument_piece("$['odd.key']", stringValue="v"),
        {},
        {"name": "g", "args": {"x": 1}},
    ).reply
    assert [(call.name, call.arguments) for call in reply.attempts] == [
        ("f", {"city": "Oslo", "days": 3, "on": [{"x": True}, None], "odd.key": "v"}),
        ("g", {"x": 1}),
    ]
    assert reply.attempts[0].id == "a" and not reply.problems


def test_a_gemini_call_without_its_last_piece_is_truncated() -> None:
    reply = gemini_stream(
        {"name": "f", "willContinue": True}, argument_piece("$.city", stringValue="Os", willContinue=True)
    ).reply
    assert [call.complete for call in reply.attempts] == [False]
    assert [problem.code for problem in reply.problems if problem.blocking] == ["truncated"]


@pytest.mark.parametrize("path", ["", "$", "$.a[7]", "$..a", "$.a[*]", "$.city.x", "$[0]"])
def test_an_invalid_argument_path_is_a_blocking_problem(path: str) -> None:
    reply = gemini_stream(
        {"name": "f", "args": {"city": "Oslo"}, "willContinue": True}, argument_piece(path, stringValue="x"), {}
    ).reply
    assert any(problem.blocking for problem in reply.problems)
