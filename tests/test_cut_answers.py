"""The last call of a truncated answer is runnable only if its end was seen, in every dialect, whole and streamed.

The end was seen if something follows the call, if the provider says so (`status: "completed"`), or, where the
argument text is the model's own (chat, responses), if its last bracket is there. A `content_block_stop` is no
evidence: it is also sent for a block that a limit truncated. Arguments that the server has parsed are none either:
it may have closed them itself.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Ids, Reply, Stream, Tool, parse, read, read_all
from rightcall.backends.rewrite import MODULES, Rewriter
from rightcall.parsing.options import CUT
from support.dialects import ENDS, WIRES, Answer, Cutter, Json, WireCall

TOOLS = [Tool(name="f", parameters={"type": "object", "properties": {"x": {}, "input": {}}})]
OWN_TEXT = ("chat", "responses")  # dialects whose arguments are the text that the model wrote
TRUNCATIONS = [(api, end) for end, words in ENDS.items() if end != "stop" for api in words]
every_truncation = pytest.mark.parametrize(("api", "end"), TRUNCATIONS)


def answer_with_calls(count: int, end: str) -> Answer:
    calls = [WireCall(f"call_{at}", "f", '{"x":1}') for at in range(count)]
    return Answer("Hm.", "Let me see.", tuple(calls), end)


def read_stream(chunks: list[Json], **options: Any) -> Reply:
    stream = Stream(tools=TOOLS, ids=Ids.numbered("c"), **options)
    for chunk in chunks:
        stream.feed(chunk)
    stream.close()
    return stream.reply


def assert_only_the_last_is_cut(reply: Reply) -> None:
    *others, last = reply.attempts
    assert all(call.ok for call in others)
    assert (last.complete, last.arguments, [each.code for each in last.problems]) == (False, {}, ["truncated"])


@every_truncation
@given(data=st.data(), count=st.integers(1, 3), live=st.booleans(), hold=st.booleans())
def test_the_last_call_of_a_truncated_answer_is_runnable_only_if_its_end_was_seen(
    api: str, end: str, data: st.DataObject, count: int, live: bool, hold: bool
) -> None:
    whole, stream = WIRES[api]
    wire_answer = answer_with_calls(count, end)
    chunks = list(stream(wire_answer, Cutter(data)))
    assert read(whole(wire_answer), tools=TOOLS, ids=Ids.numbered("c")) == read_stream(chunks, hold=hold)
    for reply in (
        read(whole(wire_answer), tools=TOOLS),
        *read_all(whole(wire_answer), tools=TOOLS),
        read_stream(chunks, live=live),
    ):
        assert reply.finish in CUT and len(reply.attempts) == count
        if api in OWN_TEXT:
            assert len(reply.calls) == count
        else:
            assert_only_the_last_is_cut(reply)


@pytest.mark.parametrize(("api", "end"), [each for each in TRUNCATIONS if each[0] in OWN_TEXT])
@given(data=st.data(), count=st.integers(1, 3), length=st.integers(0, 6))
def test_truncated_arguments_are_never_completed(
    api: str, end: str, data: st.DataObject, count: int, length: int
) -> None:
    wire_answer = answer_with_calls(count, end)
    *others, last = wire_answer.calls
    wire_answer = wire_answer._replace(calls=(*others, last._replace(arguments=last.arguments[:length])))
    whole, stream = WIRES[api]
    assert_only_the_last_is_cut(read(whole(wire_answer), tools=TOOLS))
    assert_only_the_last_is_cut(read_stream(list(stream(wire_answer, Cutter(data)))))


@pytest.mark.parametrize("more", ["So", "\n"])
def test_a_call_followed_by_text_is_complete(more: str) -> None:
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
    content: list[Json] = [block, {"type": "text", "text": more}]
    message = {"type": "message", "role": "assistant", "content": content, "stop_reason": "max_tokens"}
    parts: list[Json] = [{"functionCall": {"name": "f", "args": {"x": 1}}}, {"text": more}]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "MAX_TOKENS"}
    for response, pieces in ((message, content), ({"candidates": [candidate]}, parts)):
        assert len(read(response, tools=TOOLS).calls) == len(read_stream([response]).calls) == 1
        pieces.reverse()
        assert not read(response, tools=TOOLS).calls and not read_stream([response]).calls


# -- items with their own status ---------------------------------------------------------------------------------------


def item(id: str, status: str) -> Json:
    return {"type": "function_call", "call_id": id, "name": "f", "arguments": '{"x": 1}', "status": status}


def events(response: Json) -> list[Json]:
    """Return the events of a response without the final status of each item: only the response has it."""
    out: list[Json] = []
    for at, each in enumerate(response["output"]):
        begun = {**each, "arguments": "", "status": "in_progress"}
        out.append({"type": "response.output_item.added", "output_index": at, "item": begun})
        done = {"type": "response.function_call_arguments.done", "arguments": each["arguments"]}
        out.append({**done, "output_index": at})
    return [*out, {"type": "response.incomplete", "response": response}]


@pytest.mark.parametrize("response_status", ["incomplete", "completed", "in_progress", ""])
@pytest.mark.parametrize("status", ["incomplete", "failed", "in_progress"])
def test_an_item_with_status_incomplete_is_not_runnable(status: str, response_status: str) -> None:
    items = [item("a", "completed"), item("b", status), item("c", "completed")]
    response = {"object": "response", "output": items, **({"status": response_status} if response_status else {})}
    is_stale = (status, response_status) == ("in_progress", "completed")  # the response overrides its item
    ids = ["a", "b", "c"] if is_stale else ["a", "c"]
    for body in (response, json.dumps(response)):
        assert [call.id for call in read(body, tools=TOOLS).calls] == ids
    assert len(read(items, tools=TOOLS).calls) == 2 and not read(items[1], tools=TOOLS).calls
    done = {"type": "response.output_item.done", "output_index": 1, "item": items[1]}
    if status != "in_progress":
        assert not read_stream([done]).calls
        assert_only_the_last_is_cut(read_stream(events({**response, "output": items[:2]})))


def test_an_item_with_status_completed_is_runnable_in_a_truncated_answer() -> None:
    custom = {"type": "custom_tool_call", "call_id": "a", "name": "f", "input": "{", "status": "completed"}
    for each, is_runnable in ((custom, True), ({**custom, "status": None}, False)):
        response = {"object": "response", "output": [each], "status": "incomplete"}
        done: list[Json] = [{"type": "response.output_item.done", "output_index": 0, "item": each}]
        done.append({"type": "response.incomplete", "response": response})
        assert len(read(response, tools=TOOLS).calls) == len(read_stream(done).calls) == is_runnable


# -- interrupted streams -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["messages", "gemini", "ollama"])
@given(data=st.data())
def test_an_error_event_inside_a_stream_truncates_the_last_call(api: str, data: st.DataObject) -> None:
    chunks = list(WIRES[api][1](answer_with_calls(2, "stop"), Cutter(data)))
    ending = 2 if api == "messages" else 1
    reply = read_stream([*chunks[:-ending], {"error": {"message": "overloaded"}}])
    assert reply.finish == "error"
    assert_only_the_last_is_cut(reply)


def test_an_error_event_truncates_every_choice() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}  # arguments parsed by the server
    chunks: list[Json] = [{"choices": [{"index": at, "delta": {"tool_calls": [call]}}]} for at in range(2)]
    assert len(read_stream(chunks).calls) == 2
    chunks.append({"error": {"message": "overloaded"}})
    recorded = "".join([f"data: {json.dumps(each)}\n\n" for each in chunks])
    for reply in (read_stream(chunks), *read_all(recorded, tools=TOOLS)):
        assert not reply.calls and reply.finish == "error"


@pytest.mark.parametrize("on_rejected", ["error", "drop", "pass"])
@pytest.mark.parametrize("api", list(MODULES))
@given(data=st.data(), count=st.integers(1, 2))
def test_a_truncated_call_is_never_sent_to_the_client(
    api: str, on_rejected: Any, data: st.DataObject, count: int
) -> None:
    wire_answer = answer_with_calls(count, "length")
    arguments = '{"x":1' if api in OWN_TEXT else '{"x":1}'
    wire_answer = wire_answer._replace(calls=(*wire_answer.calls[:-1], WireCall("last", "f", arguments)))
    whole, stream = WIRES[api]
    frames = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in stream(wire_answer, Cutter(data))]
    for is_stream, body in ((False, [json.dumps(whole(wire_answer)).encode()]), (True, frames)):
        rewriter = Rewriter(api, {"tools": TOOLS}, streamed=is_stream, refused=on_rejected)
        sent = b"".join([rewriter.feed(piece) for piece in body]) + rewriter.close()
        assert b'"last"' not in sent and (b"call_0" in sent) == (count > 1)


@pytest.mark.parametrize("word", [*sorted(CUT), "max_tokens", "MAX_TOKENS", "SAFETY", "refusal", "failed"])
def test_finish_reasons_of_providers_are_recognized(word: str) -> None:
    bare = '{"name": "f", "arguments": {"x": 1}}'
    assert len(parse(bare, tools=TOOLS, finish="end_turn").calls) == 1
    assert not parse(bare, tools=TOOLS, finish=word).calls
