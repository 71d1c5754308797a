"""Answer writers of every dialect: their output conforms to the dialect and reads back as the same reply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightcall.api_names import Api
from rightcall.backends.metadata import AnswerMetadata
from rightcall.providers.provider_answers import Stream, read
from rightcall.providers.sse import Payloads
from rightcall.serve.answer_writer import AnswerEnd, AnswerHead, AnswerUsage, AnswerWriter
from rightcall.serve.answer_writers import WRITERS, encoded, new_answer_id
from rightcall.serve.client_request import ClientRequest, ClientTool
from rightcall.testing import conforms
from rightcall.types import Call, Json, Reasoning, Reply, Text, Tool

TOOLS = (
    ClientTool(tool=Tool(name="plain"), name="plain"),
    ClientTool(tool=Tool(name="long_name_1"), name="a.tool.with.dots"),
)
USAGE = AnswerUsage(prompt=10, completion=5, cached=3, reasoning=2)
FINISHES = ["stop", "length", "content_filter", "tool_calls", "error", "odd"]


def writer_of(api: Api, tools: tuple[ClientTool, ...] = TOOLS, *, as_array: bool = False) -> AnswerWriter:
    request = ClientRequest(api=api, model="m", messages=[], wants_usage=True, tools=tools)
    head = AnswerHead(id=new_answer_id(api), model="m", created=1_700_000_000, request=request, as_array=as_array)
    return WRITERS[api](head)


def read_back(api: Api, data: bytes) -> Reply:
    stream = Stream(api)
    stream.feed(data)
    stream.close()
    return stream.reply


def join_parts(reply: Reply, kind: type[Text] | type[Reasoning]) -> str:
    return "".join([part.text for part in reply.parts if isinstance(part, kind)])


# -- arbitrary sequences of parts --------------------------------------------------------------------------------------

words = st.text(alphabet=st.characters(exclude_characters="<>{}[]|`", exclude_categories=["Cs"]), max_size=8)
texts = words | st.sampled_from(["\n", "  ", "a\u2028b\x85c\u2029", "\ud83d", "😀"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | words, lambda inner: st.dictionaries(words, inner, max_size=2)
)
objects = st.dictionaries(words, values, max_size=3)
ids = st.sampled_from(["", "call_1", "call_2", "x"])
names = st.sampled_from(["plain", "long_name_1", "undeclared"])
calls = st.builds(lambda name, arguments, id: Call(name, arguments, id=id), names, objects, ids)
SIGNATURES: list[Json] = [
    {"signature": "c2ln"},
    {"type": "redacted_thinking", "data": "x"},
    {"id": "rs_9", "encrypted_content": "gAAA"},
    {"thoughtSignature": "c2ln"},
    {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]},
]
PASSED: list[Json] = [
    {"type": "content_block_start", "index": 7, "content_block": {"type": "server_tool_use", "id": "s", "name": "w"}},
    {"type": "content_block_delta", "index": 7, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
    {"type": "content_block_stop", "index": 7},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"x": 1}}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
    {"type": "rightcall_note"},
    {"type": "message_start", "message": {}},
    {"type": "response.output_item.added", "output_index": 4, "item": {"type": "web_search_call", "id": "ws_1"}},
    {"type": "response.web_search_call.searching", "output_index": 4, "item_id": "ws_1"},
    {"type": "response.output_item.done", "output_index": 4, "item": {"type": "web_search_call", "id": "ws_1"}},
    {"type": "response.output_item.added", "output_index": 5, "item": {"type": "reasoning", "id": "rs_5"}},
    {
        "type": "response.output_item.done",
        "output_index": 5,
        "item": {"type": "reasoning", "id": "rs_5", "encrypted_content": "gAAA"},
    },
    {"choices": [{"index": 0, "delta": {"annotations": [{"url": "x"}], "content": "no"}, "logprobs": {"content": []}}]},
    {
        "candidates": [
            {"content": {"parts": [{"executableCode": {"code": "1"}}, {"text": "no"}]}, "citationMetadata": {}}
        ]
    },
    {"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": "c2ln"}]}}]},
    {"message": {"role": "assistant", "content": "no", "images": ["x"]}, "done": False},
]
steps = st.one_of(
    st.tuples(st.just("text"), texts),
    st.tuples(st.just("reasoning"), texts),
    st.tuples(st.just("call"), calls),
    st.tuples(st.just("call_begin"), ids, names),
    st.tuples(st.just("call_piece"), st.sampled_from(["{}", '{"a"', ":1}", "", " ", "x"])),
    st.sampled_from([("call_end",), ("begin",), ("alive",)]),
    st.tuples(st.just("signature"), st.sampled_from(SIGNATURES)),
    st.tuples(st.just("passed"), st.sampled_from(PASSED)),
)
endings = st.one_of(
    st.builds(lambda word: ("finish", AnswerEnd(finish=word, usage=USAGE)), st.sampled_from(FINISHES)),
    st.builds(lambda message: ("error", message), st.sampled_from(["it broke", "caf\u00e9\u2028"])),
)


@pytest.mark.parametrize("api", WRITERS)
@settings(max_examples=settings().max_examples * 3)
@given(given=st.lists(steps, max_size=12), ending=endings, late=st.lists(steps, max_size=2))
def test_every_written_stream_conforms_to_its_dialect(api: Api, given: list[Any], ending: Any, late: list[Any]) -> None:
    writer = writer_of(api)
    written = b"".join([getattr(writer, name)(*arguments) for name, *arguments in [*given, ending]])
    assert conforms(written, api) == []
    assert not any(getattr(writer, name)(*arguments) for name, *arguments in [*late, ending])


@settings(max_examples=settings().max_examples * 2)
@given(given=st.lists(steps, max_size=8), ending=endings)
def test_a_gemini_stream_can_be_written_as_one_json_array(given: list[Any], ending: Any) -> None:
    writer = writer_of("gemini", as_array=True)
    written = b"".join([getattr(writer, name)(*arguments) for name, *arguments in [*given, ending]])
    assert writer.content_type == "application/json" and isinstance(json.loads(written), list)
    assert conforms(written, "gemini") == []


# -- round trips -------------------------------------------------------------------------------------------------------

runs = st.one_of(
    st.tuples(st.just("text"), st.lists(words, max_size=3)),
    st.tuples(st.just("reasoning"), st.lists(words, max_size=3)),
    st.tuples(st.just("call"), calls),
    st.tuples(st.just("live"), calls),
)


def write_runs(writer: AnswerWriter, given: list[Any]) -> bytes:
    out = [writer.begin()]
    for kind, what in given:
        if kind == "call":
            out.append(writer.call(what))
        elif kind == "live":
            text = what.json or "{}"
            pieces = [text[: len(text) // 2], text[len(text) // 2 :]]
            out += [writer.call_begin(what.id, what.name), *map(writer.call_piece, pieces), writer.call_end()]
        else:
            out += [getattr(writer, kind)(piece) for piece in what]
    return b"".join(out)


def expected_text(given: list[Any]) -> str:
    """Return the text that a client reads: blank text waits for other text, and a call or the end drops it."""
    out, blanks, open = "", "", False
    for kind, what in given:
        for piece in what if kind in ("text", "reasoning") else ():
            if kind == "reasoning":
                open = open and not piece
            elif open or piece.strip():
                out, blanks, open = out + blanks + piece, "", True
            else:
                blanks += piece
        if kind in ("call", "live"):
            blanks, open = "", False
    return out


CLIENT_NAMES = {each.tool.name: each.name for each in TOOLS}
FINISHED: dict[str, dict[str, str]] = {
    "chat": {"error": "length", "odd": "stop"},
    "messages": {"error": "length", "odd": "stop"},
    "responses": {"error": "length", "odd": "stop", "calls": "stop"},
    "ollama": {"error": "length", "odd": "stop", "calls": "stop", "content_filter": "stop"},
    "gemini": {"odd": "stop", "calls": "stop"},
}


def assert_reply_matches(api: Api, reply: Reply, given: list[Any], finish: str) -> None:
    assert join_parts(reply, Text) == expected_text(given)
    assert join_parts(reply, Reasoning) == "".join(["".join(what) for kind, what in given if kind == "reasoning"])
    sent_calls = [what for kind, what in given if kind in ("call", "live")]
    wanted = [(CLIENT_NAMES.get(call.name, call.name), call.arguments) for call in sent_calls]
    assert [(call.name, call.arguments) for call in reply.attempts] == wanted
    read_ids = [call.id for call in reply.attempts]
    assert len(set(read_ids)) == len(read_ids) and all(
        call.id in ("", id) or id.startswith(call.id) for call, id in zip(sent_calls, read_ids, strict=True)
    )
    word = "calls" if sent_calls else {"tool_calls": "stop"}.get(finish, finish)
    assert reply.finish == FINISHED[api].get(word, {"calls": "tool_calls"}.get(word, word))


@pytest.mark.parametrize("api", WRITERS)
@settings(max_examples=settings().max_examples * 3)
@given(given=st.lists(runs, max_size=6), finish=st.sampled_from(FINISHES))
def test_a_written_stream_reads_back_as_the_same_parts(api: Api, given: list[Any], finish: str) -> None:
    writer = writer_of(api)
    end = AnswerEnd(finish=finish, usage=USAGE)
    reply = read_back(api, write_runs(writer, given) + writer.finish(end))
    assert_reply_matches(api, reply, given, finish)
    assert reply.usage == USAGES[api]


@pytest.mark.parametrize("api", WRITERS)
@settings(max_examples=settings().max_examples * 3)
@given(given=st.lists(runs, max_size=6), finish=st.sampled_from(FINISHES))
def test_a_whole_answer_reads_back_like_a_streamed_answer(api: Api, given: list[Any], finish: str) -> None:
    parts: list[Any] = []
    for kind, what in given:
        parts += [what] if kind in ("call", "live") else [{"text": Text, "reasoning": Reasoning}[kind](p) for p in what]
    body = encoded(writer_of(api).whole(Reply(tuple(parts)), AnswerEnd(finish=finish, usage=USAGE)))
    assert conforms(json.loads(body), api) == []
    reply = read(body, api=api)
    assert_reply_matches(api, reply, given, finish)
    assert reply.usage == USAGES[api]


USAGES: dict[str, Json] = {
    "chat": {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2},
    },
    "responses": {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 15,
    },
    "messages": {"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": 3},
    "ollama": {"prompt_eval_count": 10, "eval_count": 5},
    "gemini": {
        "promptTokenCount": 10,
        "candidatesTokenCount": 3,
        "totalTokenCount": 15,
        "cachedContentTokenCount": 3,
        "thoughtsTokenCount": 2,
    },
}


# -- kinds of calls ----------------------------------------------------------------------------------------------------

KINDS = (
    ClientTool(tool=Tool(name="apply_patch"), kind="custom", name="apply_patch"),
    ClientTool(tool=Tool(name="agents__close"), kind="namespace", name="close", namespace="agents"),
    ClientTool(tool=Tool(name="tool_search"), kind="other", name="tool_search", call_type="tool_search_call"),
    ClientTool(tool=Tool(name="local_shell"), kind="other", name="local_shell", call_type="local_shell_call"),
)
ITEMS: dict[str, tuple[Call, Json]] = {
    "custom": (
        Call("apply_patch", {"input": "*** Begin"}, id="c"),
        {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin"},
    ),
    "namespace": (
        Call("agents__close", {"target": "x"}, id="c"),
        {"type": "function_call", "name": "close", "namespace": "agents", "arguments": '{"target": "x"}'},
    ),
    "tool_search": (
        Call("tool_search", {"query": "x"}, id="c"),
        {"type": "tool_search_call", "execution": "client", "arguments": {"query": "x"}},
    ),
    "local_shell": (
        Call("local_shell", {"type": "exec", "command": ["ls"]}, id="c"),
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"]}},
    ),
}


@pytest.mark.parametrize("mode", ["whole", "streamed", "live"])
@pytest.mark.parametrize("kind", ITEMS)
def test_a_call_is_written_as_its_declared_kind(kind: str, mode: str) -> None:
    call, wanted = ITEMS[kind]
    writer = writer_of("responses", KINDS)
    if mode == "whole":
        (item,) = writer.whole(Reply((call,)), AnswerEnd())["output"]
    else:
        written = write_runs(writer, [("call" if mode == "streamed" else "live", call)]) + writer.finish(AnswerEnd())
        assert conforms(written, "responses") == []
        (item,) = payloads(written)[-1]["response"]["output"]
    assert item.items() >= {**wanted, "call_id": "c", "status": "completed"}.items() and item["id"]


def payloads(data: bytes) -> list[Json]:
    return [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: {")]


@pytest.mark.parametrize("mode", ["call", "live"])
def test_a_custom_chat_call_has_free_text_input(mode: str) -> None:
    writer = writer_of("chat", KINDS)
    written = write_runs(writer, [(mode, ITEMS["custom"][0])]) + writer.finish(AnswerEnd())
    assert conforms(written, "chat") == []
    (entry,) = payloads(written)[1]["choices"][0]["delta"]["tool_calls"]
    assert entry == {"index": 0, "id": "c", "type": "custom", "custom": {"name": "apply_patch", "input": "*** Begin"}}


# -- fields that must be preserved -------------------------------------------------------------------------------------


def test_thinking_keeps_its_signature() -> None:
    writer = writer_of("messages")
    written = writer.reasoning("hm") + writer.signature({"signature": "c2ln"}) + writer.text("Hi")
    reply = read_back("messages", written + writer.finish(AnswerEnd()))
    assert reply.extras[""] == {"thinking": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]}


def test_each_thinking_block_keeps_its_own_signature() -> None:
    writer = writer_of("messages")
    written = b""
    for at, thought in enumerate(["one", "two"]):
        signed = {"type": "signature_delta", "signature": f"c2ln{at}"}
        written += writer.reasoning(thought)
        written += writer.passed({"type": "content_block_delta", "index": at, "delta": signed})
        written += writer.passed({"type": "content_block_stop", "index": at})
    reply = read_back("messages", written + writer.finish(AnswerEnd()))
    found = [(block["thinking"], block["signature"]) for block in reply.extras[""]["thinking"]]
    assert found == [("one", "c2ln0"), ("two", "c2ln1")]


def test_citations_and_annotations_stay_with_the_text() -> None:
    citation = {"type": "char_location", "cited_text": "x"}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": citation}}
    writer = writer_of("messages")
    written = writer.passed(delta) + writer.text("Hi") + writer.passed(delta) + writer.finish(AnswerEnd())
    assert written.count(b'"citation":{"type":"char_location"') == 2 and conforms(written, "messages") == []
    noted = {"type": "response.output_text.annotation.added", "output_index": 0, "annotation": {"url": "u"}}
    writer = writer_of("responses")
    written = writer.passed(noted) + writer.text("Hi") + writer.passed(noted) + writer.finish(AnswerEnd())
    (item,) = payloads(written)[-1]["response"]["output"]
    assert item["content"][0]["annotations"] == [{"url": "u"}] * 2 and conforms(written, "responses") == []


def test_trailing_server_fields_are_written_last() -> None:
    writer = writer_of("messages")
    theirs = {"type": "message_delta", "delta": {"stop_reason": "stop_sequence", "stop_sequence": "END"}, "context": 1}
    written = writer.text("Hi") + writer.passed(theirs) + writer.finish(AnswerEnd())
    (ending,) = [each for each in payloads(written) if each["type"] == "message_delta"]
    assert ending["delta"] == theirs["delta"] and ending["context"] == 1 and conforms(written, "messages") == []


def test_reasoning_items_keep_their_id_and_encrypted_content() -> None:
    writer = writer_of("responses")
    item = {"id": "rs_1", "type": "reasoning", "summary": []}
    written = writer.passed({"type": "response.output_item.added", "output_index": 0, "item": item})
    written += writer.reasoning("hm")
    done = {**item, "encrypted_content": "gAAA"}
    written += writer.passed({"type": "response.output_item.done", "output_index": 0, "item": done})
    reply = read_back("responses", written + writer.text("Hi") + writer.finish(AnswerEnd()))
    (kept,) = reply.extras[""]["reasoning"]
    assert kept == {**done, "summary": [{"type": "summary_text", "text": "hm"}]}


def test_a_call_keeps_its_signature() -> None:
    writer = writer_of("gemini")
    written = writer.call(Call("f", {}, id="c"), {"thoughtSignature": "c2ln"}) + writer.finish(AnswerEnd())
    assert read_back("gemini", written).extras == {"c": {"thoughtSignature": "c2ln"}}


@pytest.mark.parametrize("api", WRITERS)
def test_opaque_fields_survive_in_a_whole_answer_of_the_same_dialect(api: Api) -> None:
    body = WHOLE[api]
    reply = read(body, api=api)
    written = writer_of(api).whole(reply, AnswerEnd(finish=reply.finish or "stop"), body)
    read_again = read(encoded(written), api=api)
    assert (read_again.extras, join_parts(read_again, Text)) == (reply.extras, join_parts(reply, Text))
    assert "kept" in encoded(written).decode()


def incomplete_bodies(body: Any) -> Iterator[Any]:
    """Yield the body without one of its fields, and with null for it, for every field at every depth."""
    if isinstance(body, list):
        for at, item in enumerate(body):
            yield from ([*body[:at], less, *body[at + 1 :]] for less in incomplete_bodies(item))
    elif isinstance(body, dict):
        for key, value in body.items():
            yield {name: each for name, each in body.items() if name != key}
            yield {**body, key: None}
            yield from ({**body, key: less} for less in incomplete_bodies(value))


@pytest.mark.parametrize("api", WRITERS)
def test_missing_fields_of_a_server_answer_are_added_for_the_client(api: Api) -> None:
    for body in incomplete_bodies(WHOLE[api]):
        reply = read(body, api=api)
        written = writer_of(api).whole(reply, AnswerEnd(finish=reply.finish or "stop"), body)
        assert conforms(written, api) == [], body
        assert join_parts(read(written, api=api), Text) == join_parts(reply, Text)


WHOLE: dict[str, Json] = {
    "chat": {
        "choices": [{"message": {"content": "Hi", "annotations": ["kept"], "reasoning_details": [{"data": "x"}]}}],
        "system_fingerprint": "fp",
    },
    "responses": {
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {"type": "web_search_call", "id": "ws_1", "status": "kept"},
            {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi", "annotations": [{}]}]},
        ]
    },
    "messages": {
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            {"type": "server_tool_use", "id": "s", "name": "kept", "input": {}},
            {"type": "text", "text": "Hi", "citations": [{"cited_text": "x"}]},
            {"type": "tool_use", "id": "t", "name": "f", "input": {}, "caller": {"type": "direct"}},
        ]
    },
    "ollama": {"message": {"role": "assistant", "content": "Hi", "images": ["kept"]}, "done": True},
    "gemini": {
        "candidates": [
            {
                "content": {"parts": [{"text": "Hi", "thoughtSignature": "x"}, {"executableCode": {"code": "kept"}}]},
                "groundingMetadata": {},
            }
        ]
    },
}


def test_a_written_line_contains_no_other_line_separator() -> None:
    odd = "a\u2028b\u2029c\x85d\r\ne"
    for api in WRITERS:
        writer = writer_of(api)
        written = writer.text(odd) + writer.call(Call("f", {"x": odd}, id="c")) + writer.finish(AnswerEnd())
        assert written.decode().splitlines() == written.decode().replace("\r\n", "\n").split("\n")[:-1]
        assert join_parts(read_back(api, written), Text) == odd


def test_lone_surrogates_and_large_integers_can_be_written() -> None:
    for api in WRITERS:
        writer = writer_of(api)
        call = Call("f", {"n": 2**70, "s": "\ud800"}, id="c")
        written = writer.text("x\ud83d") + writer.call(call) + writer.finish(AnswerEnd())
        reply = read_back(api, written)
        assert join_parts(reply, Text) == "x\ufffd" and reply.calls[0].arguments["n"] == 2**70
        assert "\ufffd" in encoded(writer_of(api).whole(Reply((Text("\ud83d"), call)), AnswerEnd())).decode()


def test_answer_ids_are_unique() -> None:
    assert len({new_answer_id("responses") for _ in range(1000)}) == 1000
    assert new_answer_id("chat").startswith("chatcmpl-") and new_answer_id("messages").startswith("msg_")


def test_chat_usage_is_written_only_on_request() -> None:
    request = ClientRequest(api="chat", model="m", messages=[])
    writer = WRITERS["chat"](AnswerHead(id="x", model="m", created=1, request=request))
    assert b"usage" not in writer.text("Hi") + writer.finish(AnswerEnd(usage=USAGE))


@pytest.mark.parametrize("api", WRITERS)
def test_token_counts_mean_the_same_in_every_dialect(api: Api) -> None:
    writer, facts = writer_of(api), AnswerMetadata(api)
    for payload in Payloads().feed(writer.text("Hi") + writer.finish(AnswerEnd(usage=USAGE))):
        assert isinstance(payload, dict)
        facts.add(payload)
    assert (facts.tokens.prompt, facts.tokens.completion) == (10, 5)
    assert facts.tokens.cached == (None if api == "ollama" else 3)
    assert facts.tokens.reasoning == (None if api in ("ollama", "messages") else 2)


def test_an_error_after_text_is_read_as_a_provider_error() -> None:
    for api in WRITERS:
        writer = writer_of(api)
        written = writer.text("Hi") + writer.call_begin("c", "f") + writer.call_piece('{"a"') + writer.error("it broke")
        assert conforms(written, api) == []
        reply = read_back(api, written)
        errors = [problem.message for problem in reply.problems if problem.code == "provider_error"]
        assert errors and all("it broke" in message for message in errors) and not reply.calls
