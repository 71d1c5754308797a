"""The last call of an answer that was cut runs only if its end was seen, in every dialect, whole and streamed.

What counts for an end: something that follows the call; the provider's own word (`status: "completed"`); and where the
argument text is the model's own (chat, responses), its last bracket. A `content_block_stop` does not: it comes for a
block that a limit cut off, too. Nor do arguments that the server has parsed: it may have closed them itself.
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
from support.dialects import ENDS, WIRES, Answer, Cutter, Json, Wired

TOOLS = [Tool(name="f", parameters={"type": "object", "properties": {"x": {}, "input": {}}})]
OWN_TEXT = ("chat", "responses")  # whose arguments are the text that the model wrote
CUTS = [(api, end) for end, words in ENDS.items() if end != "stop" for api in words]
every_cut = pytest.mark.parametrize(("api", "end"), CUTS)


def answer(count: int, end: str) -> Answer:
    calls = [Wired(f"call_{at}", "f", '{"x":1}') for at in range(count)]
    return Answer("Hm.", "Let me see.", tuple(calls), end)


def streamed(chunks: list[Json], **options: Any) -> Reply:
    stream = Stream(tools=TOOLS, ids=Ids.numbered("c"), **options)
    for chunk in chunks:
        stream.feed(chunk)
    stream.close()
    return stream.reply


def assert_only_the_last_is_cut(reply: Reply) -> None:
    *others, last = reply.attempts
    assert all(call.ok for call in others)
    assert (last.complete, last.arguments, [each.code for each in last.problems]) == (False, {}, ["truncated"])


@every_cut
@given(data=st.data(), count=st.integers(1, 3), live=st.booleans(), hold=st.booleans())
def test_the_last_call_of_a_cut_answer_does_not_run_unless_its_end_was_seen(
    api: str, end: str, data: st.DataObject, count: int, live: bool, hold: bool
) -> None:
    whole, stream = WIRES[api]
    said = answer(count, end)
    chunks = list(stream(said, Cutter(data)))
    assert read(whole(said), tools=TOOLS, ids=Ids.numbered("c")) == streamed(chunks, hold=hold)
    for reply in (read(whole(said), tools=TOOLS), *read_all(whole(said), tools=TOOLS), streamed(chunks, live=live)):
        assert reply.finish in CUT and len(reply.attempts) == count
        if api in OWN_TEXT:
            assert len(reply.calls) == count
        else:
            assert_only_the_last_is_cut(reply)


@pytest.mark.parametrize(("api", "end"), [each for each in CUTS if each[0] in OWN_TEXT])
@given(data=st.data(), count=st.integers(1, 3), kept=st.integers(0, 6))
def test_arguments_that_were_cut_are_never_completed(
    api: str, end: str, data: st.DataObject, count: int, kept: int
) -> None:
    said = answer(count, end)
    *others, last = said.calls
    said = said._replace(calls=(*others, last._replace(arguments=last.arguments[:kept])))
    whole, stream = WIRES[api]
    assert_only_the_last_is_cut(read(whole(said), tools=TOOLS))
    assert_only_the_last_is_cut(streamed(list(stream(said, Cutter(data)))))


@pytest.mark.parametrize("more", ["So", "\n"])
def test_a_call_that_anything_follows_has_ended(more: str) -> None:
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
    content: list[Json] = [block, {"type": "text", "text": more}]
    message = {"type": "message", "role": "assistant", "content": content, "stop_reason": "max_tokens"}
    parts: list[Json] = [{"functionCall": {"name": "f", "args": {"x": 1}}}, {"text": more}]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "MAX_TOKENS"}
    for response, pieces in ((message, content), ({"candidates": [candidate]}, parts)):
        assert len(read(response, tools=TOOLS).calls) == len(streamed([response]).calls) == 1
        pieces.reverse()
        assert not read(response, tools=TOOLS).calls and not streamed([response]).calls


# -- items that say for themselves how they ended ----------------------------------------------------------------------


def item(id: str, status: str) -> Json:
    return {"type": "function_call", "call_id": id, "name": "f", "arguments": '{"x": 1}', "status": status}


def events(response: Json) -> list[Json]:
    """Without a word on how each item ended: that comes with the response."""
    out: list[Json] = []
    for at, each in enumerate(response["output"]):
        begun = {**each, "arguments": "", "status": "in_progress"}
        out.append({"type": "response.output_item.added", "output_index": at, "item": begun})
        done = {"type": "response.function_call_arguments.done", "arguments": each["arguments"]}
        out.append({**done, "output_index": at})
    return [*out, {"type": "response.incomplete", "response": response}]


@pytest.mark.parametrize("over", ["incomplete", "completed", "in_progress", ""])
@pytest.mark.parametrize("status", ["incomplete", "failed", "in_progress"])
def test_an_item_that_its_provider_calls_incomplete_does_not_run(status: str, over: str) -> None:
    items = [item("a", "completed"), item("b", status), item("c", "completed")]
    response = {"object": "response", "output": items, **({"status": over} if over else {})}
    is_stale = (status, over) == ("in_progress", "completed")  # over is over
    ids = ["a", "b", "c"] if is_stale else ["a", "c"]
    for given_as in (response, json.dumps(response)):
        assert [call.id for call in read(given_as, tools=TOOLS).calls] == ids
    assert len(read(items, tools=TOOLS).calls) == 2 and not read(items[1], tools=TOOLS).calls
    done = {"type": "response.output_item.done", "output_index": 1, "item": items[1]}
    if status != "in_progress":
        assert not streamed([done]).calls
        assert_only_the_last_is_cut(streamed(events({**response, "output": items[:2]})))


def test_an_item_that_its_provider_calls_completed_runs_though_the_answer_was_cut() -> None:
    custom = {"type": "custom_tool_call", "call_id": "a", "name": "f", "input": "{", "status": "completed"}
    for each, ended in ((custom, True), ({**custom, "status": None}, False)):
        response = {"object": "response", "output": [each], "status": "incomplete"}
        done: list[Json] = [{"type": "response.output_item.done", "output_index": 0, "item": each}]
        done.append({"type": "response.incomplete", "response": response})
        assert len(read(response, tools=TOOLS).calls) == len(streamed(done).calls) == ended


# -- streams that break off --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["messages", "gemini", "ollama"])
@given(data=st.data())
def test_an_error_in_the_middle_of_a_stream_cuts_it(api: str, data: st.DataObject) -> None:
    chunks = list(WIRES[api][1](answer(2, "stop"), Cutter(data)))
    ending = 2 if api == "messages" else 1
    reply = streamed([*chunks[:-ending], {"error": {"message": "overloaded"}}])
    assert reply.finish == "error"
    assert_only_the_last_is_cut(reply)


def test_an_error_of_the_stream_cuts_every_choice() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}  # parsed
    chunks: list[Json] = [{"choices": [{"index": at, "delta": {"tool_calls": [call]}}]} for at in range(2)]
    assert len(streamed(chunks).calls) == 2
    chunks.append({"error": {"message": "overloaded"}})
    recorded = "".join([f"data: {json.dumps(each)}\n\n" for each in chunks])
    for reply in (streamed(chunks), *read_all(recorded, tools=TOOLS)):
        assert not reply.calls and reply.finish == "error"


@pytest.mark.parametrize("refused", ["error", "drop", "pass"])
@pytest.mark.parametrize("api", list(MODULES))
@given(data=st.data(), count=st.integers(1, 2))
def test_a_client_never_sees_a_call_that_was_cut(api: str, refused: Any, data: st.DataObject, count: int) -> None:
    said = answer(count, "length")
    arguments = '{"x":1' if api in OWN_TEXT else '{"x":1}'
    said = said._replace(calls=(*said.calls[:-1], Wired("last", "f", arguments)))
    whole, stream = WIRES[api]
    frames = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in stream(said, Cutter(data))]
    for is_stream, body in ((False, [json.dumps(whole(said)).encode()]), (True, frames)):
        made = Rewriter(api, {"tools": TOOLS}, streamed=is_stream, refused=refused)
        sent = b"".join([made.feed(piece) for piece in body]) + made.close()
        assert b'"last"' not in sent and (b"call_0" in sent) == (count > 1)


@pytest.mark.parametrize("word", [*sorted(CUT), "max_tokens", "MAX_TOKENS", "SAFETY", "refusal", "failed"])
def test_the_finish_reason_may_be_the_word_of_the_provider(word: str) -> None:
    bare = '{"name": "f", "arguments": {"x": 1}}'
    assert len(parse(bare, tools=TOOLS, finish="end_turn").calls) == 1
    assert not parse(bare, tools=TOOLS, finish=word).calls
