"""The laws of `apis`, over every dialect: an answer reads the same however it is streamed, what is written reads back.

An answer is written once as a whole response and once as a stream that is split at random: text, reasoning, names and
arguments in pieces, several deltas in one chunk, the stream's bytes cut anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rightcall import Arguments, Call, CallEnd, CallStart, Ids, Reply, Tool, Toolset
from rightcall.apis import anthropic, gemini, ollama, openai_chat, openai_responses
from rightcall.apis.sniff import sniff
from rightcall.apis.stream import Stream
from rightcall.apis.whole import read
from rightcall.types import Event
from rightcall.wire.fold import Fold

Json = dict[str, Any]


class Wired(NamedTuple):
    id: str
    name: str
    arguments: str  # JSON text


class Answer(NamedTuple):
    reasoning: str
    text: str
    calls: tuple[Wired, ...]


# -- what is said ------------------------------------------------------------------------------------------------------

NAMES = ("get_weather", "search.docs-v2", "f")
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=6), st.sampled_from(['"', "\\", "}{", "é👋"])),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.sampled_from(["city", "q", "n", "ä b"]), VALUES, max_size=3)
SPELLED = st.builds(
    lambda value, spaced, ascii: json.dumps(value, separators=None if spaced else (",", ":"), ensure_ascii=ascii),
    OBJECTS,
    st.booleans(),
    st.booleans(),
)
WORDS = st.lists(st.sampled_from(["So", " the", "\n", " plan", "é", "  ", "."]), max_size=5).map("".join)
LEAKS = st.sampled_from(
    ['<tool_call>\n{"name": "f", "arguments": {"city": "B"}}\n</tool_call>', "<think>\nhm\n</think>\n\nok", "</think>x"]
)
TEXTS = st.one_of(WORDS, WORDS, st.tuples(WORDS, LEAKS, WORDS).map("".join))


@st.composite
def answers(draw: st.DrawFn, texts: st.SearchStrategy[str] = TEXTS) -> Answer:
    calls = draw(st.lists(st.tuples(st.sampled_from(NAMES), SPELLED), max_size=3))
    wired = tuple(Wired(f"call_{i}", name, arguments) for i, (name, arguments) in enumerate(calls))
    return Answer(draw(WORDS), draw(texts), wired)


class Cutter:
    """Splits texts and joins chunks, at places that hypothesis chooses."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw = data.draw

    def pieces(self, text: str) -> list[str]:
        places = sorted(self.draw(st.lists(st.integers(0, len(text)), max_size=4)))
        edges = [0, *places, len(text)]
        return [text[a:b] for a, b in pairwise(edges)]

    def yes(self) -> bool:
        return self.draw(st.booleans())


# -- every dialect, whole and streamed ---------------------------------------------------------------------------------


USAGE = {"total_tokens": 3}


def chat_whole(answer: Answer) -> Json:
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in answer.calls
    ]
    message = {"role": "assistant", "content": answer.text, "reasoning_content": answer.reasoning, "tool_calls": calls}
    return {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": USAGE,
    }


def chat_stream(answer: Answer, cut: Cutter) -> Iterator[Json]:
    def chunk(**delta: Any) -> Json:
        return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

    yield chunk(role="assistant", content="")
    yield from (chunk(reasoning_content=piece) for piece in cut.pieces(answer.reasoning))
    yield from (chunk(content=piece, tool_calls=None) for piece in cut.pieces(answer.text))
    for i, call in enumerate(answer.calls):
        yield chunk(
            tool_calls=[{"index": i, "id": call.id, "type": "function", "function": {"name": "", "arguments": ""}}]
        )
        for piece in cut.pieces(call.name):
            yield chunk(tool_calls=[{"index": i, "function": {"name": piece}}])
        for piece in cut.pieces(call.arguments):
            yield chunk(tool_calls=[{"index": i, "function": {"arguments": piece}}])
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    yield {"choices": [], "usage": USAGE}


def responses_whole(answer: Answer) -> Json:
    output: list[Json] = []
    if answer.reasoning:
        output.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": answer.reasoning}]})
    if answer.text:
        output.append({"type": "message", "content": [{"type": "output_text", "text": answer.text}]})
    for i, c in enumerate(answer.calls):
        call = {"id": f"fc_{i}", "call_id": c.id, "name": c.name, "arguments": c.arguments}
        output.append({"type": "function_call", **call})
    return {"object": "response", "status": "completed", "output": output}


def responses_stream(answer: Answer, cut: Cutter) -> Iterator[Json]:
    whole = responses_whole(answer)
    yield {"type": "response.created", "response": {"object": "response", "output": []}}
    shown = cut.yes()
    for i, item in enumerate(whole["output"]):
        at = {"output_index": i, "item_id": item.get("id", f"x{i}")}
        empty = (
            {**item, "arguments": ""} if "arguments" in item else {"type": item["type"], "content": [], "summary": []}
        )
        yield {"type": "response.output_item.added", "item": empty, **at}
        if item["type"] == "function_call":
            for piece in cut.pieces(item["arguments"]) if shown else []:
                yield {"type": "response.function_call_arguments.delta", "delta": piece, **at}
            yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"], **at}
        elif item["type"] == "reasoning":
            for piece in cut.pieces(answer.reasoning) if shown else []:
                yield {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": piece, **at}
        else:
            for piece in cut.pieces(answer.text) if shown else []:
                yield {"type": "response.output_text.delta", "content_index": 0, "delta": piece, **at}
            yield {"type": "response.output_text.done", "text": answer.text, **at}
        yield {"type": "response.output_item.done", "item": item, **at}
    yield {"type": "response.completed", "response": whole}


def anthropic_whole(answer: Answer) -> Json:
    content: list[Json] = []
    if answer.reasoning:
        content.append({"type": "thinking", "thinking": answer.reasoning, "signature": "s"})
    if answer.text:
        content.append({"type": "text", "text": answer.text})
    content += [
        {"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.arguments)} for c in answer.calls
    ]
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}


def compact(arguments: str) -> str:
    return json.dumps(json.loads(arguments), ensure_ascii=False, separators=(",", ":"))


def anthropic_stream(answer: Answer, cut: Cutter) -> Iterator[Json]:
    arguments = iter(call.arguments for call in answer.calls)
    yield {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": []}}
    yield {"type": "ping"}
    for i, block in enumerate(anthropic_whole(answer)["content"]):
        kind = block["type"]
        empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}.get(kind, {**block, "input": {}})
        yield {"type": "content_block_start", "index": i, "content_block": {"type": kind, **empty}}
        wire = compact(next(arguments)) if kind == "tool_use" else block[kind]
        name, key = {"tool_use": ("input_json_delta", "partial_json")}.get(kind, (f"{kind}_delta", kind))
        for piece in cut.pieces(wire):
            yield {"type": "content_block_delta", "index": i, "delta": {"type": name, key: piece}}
        if "signature" in block:
            signed = {"type": "signature_delta", "signature": block["signature"]}
            yield {"type": "content_block_delta", "index": i, "delta": signed}
        yield {"type": "content_block_stop", "index": i}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    yield {"type": "message_stop"}


def gemini_whole(answer: Answer) -> Json:
    parts: list[Json] = [{"text": answer.reasoning, "thought": True}] if answer.reasoning else []
    parts += [{"text": answer.text}] if answer.text else []
    parts += [{"functionCall": {"id": c.id, "name": c.name, "args": json.loads(c.arguments)}} for c in answer.calls]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}


def gemini_stream(answer: Answer, cut: Cutter) -> Iterator[Json]:
    for part in gemini_whole(answer)["candidates"][0]["content"]["parts"]:
        pieces = [{**part, "text": piece} for piece in cut.pieces(part["text"])] if "text" in part else [part]
        for piece in pieces:
            yield {"candidates": [{"content": {"role": "model", "parts": [piece]}, "index": 0}]}
    yield {"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}], "usageMetadata": {}}


def ollama_whole(answer: Answer) -> Json:
    calls = [{"id": c.id, "function": {"name": c.name, "arguments": json.loads(c.arguments)}} for c in answer.calls]
    message = {"role": "assistant", "content": answer.text, "thinking": answer.reasoning, "tool_calls": calls}
    return {"model": "m", "message": message, "done": True, "done_reason": "stop"}


def ollama_stream(answer: Answer, cut: Cutter) -> Iterator[Json]:
    def chunk(**message: Any) -> Json:
        return {"model": "m", "message": {"role": "assistant", "content": "", **message}, "done": False}

    yield from (chunk(thinking=piece) for piece in cut.pieces(answer.reasoning))
    yield from (chunk(content=piece) for piece in cut.pieces(answer.text))
    calls = ollama_whole(answer)["message"]["tool_calls"]
    yield from (chunk(tool_calls=[call]) for call in calls) if cut.yes() else [chunk(tool_calls=calls)]
    yield {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}


WIRES: dict[str, tuple[Callable[[Answer], Json], Callable[[Answer, Cutter], Iterator[Json]]]] = {
    "chat": (chat_whole, chat_stream),
    "responses": (responses_whole, responses_stream),
    "messages": (anthropic_whole, anthropic_stream),
    "gemini": (gemini_whole, gemini_stream),
    "ollama": (ollama_whole, ollama_stream),
}
every_dialect = pytest.mark.parametrize("api", list(WIRES))

STRING = {"type": "string"}
TOOLS = Toolset([Tool(name=name, parameters={"type": "object", "properties": {"q": STRING}}) for name in NAMES])


class Streamed(NamedTuple):
    events: list[Event]
    reply: Reply


def streamed(chunks: list[Any], **options: Any) -> Streamed:
    stream = Stream(ids=Ids.numbered("c"), **options)
    events = [event for chunk in chunks for event in stream.feed(chunk)]
    return Streamed(events + stream.close(), stream.reply)


def folded(events: list[Event], like: Reply) -> Reply:
    """What the events add up to; how the answer ended and what it cost are no events."""
    fold = Fold()
    fold.add(events)
    beside = {name: getattr(like, name) for name in ("finish", "usage", "api", "extras")}
    return msgspec.structs.replace(fold.reply(like.format, None), **beside)


def assert_every_call_knows_its_problems(reply: Reply) -> None:
    for index, call in enumerate(reply.attempts):
        about = [problem for problem in reply.problems if problem.call == index]
        assert [each for each in about if each.blocking] == [each for each in call.problems if each.blocking]
        assert set(call.problems) <= set(about)
        assert call.complete or not call.ok


# -- the laws ----------------------------------------------------------------------------------------------------------


@every_dialect
@given(
    data=st.data(), answer=answers(), tools=st.sampled_from([None, TOOLS]), format=st.sampled_from(["auto", "hermes"])
)
def test_a_streamed_answer_gives_the_reply_that_the_whole_answer_gives(
    api: str, data: st.DataObject, answer: Answer, tools: Toolset | None, format: str
) -> None:
    whole, stream = WIRES[api]
    given_whole = read(whole(answer), tools=tools, format=format, ids=Ids.numbered("c"))
    chunks = list(stream(answer, Cutter(data)))
    result = streamed(chunks, tools=tools, format=format)
    assert result.reply == given_whole
    assert folded(result.events, result.reply) == result.reply
    assert_every_call_knows_its_problems(result.reply)


@every_dialect
@given(data=st.data(), answer=answers())
def test_the_bytes_of_a_stream_may_be_cut_anywhere(api: str, data: st.DataObject, answer: Answer) -> None:
    chunks = list(WIRES[api][1](answer, Cutter(data)))
    lines = [f"event: e\ndata: {json.dumps(chunk, ensure_ascii=False)}\n\n: ping\n\n" for chunk in chunks]
    wire = ("".join(lines) + "data: [DONE]\n\n").encode()
    places = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=6)))
    pieces = [wire[a:b] for a, b in zip([0, *places], [*places, len(wire)], strict=True)]
    assert streamed(pieces).reply == streamed(chunks).reply
    assert read(wire, ids=Ids.numbered("c")) == streamed(chunks).reply


@every_dialect
@given(data=st.data(), answer=answers(WORDS))
def test_live_pieces_are_what_was_sent_and_the_call_is_the_same_as_without_them(
    api: str, data: st.DataObject, answer: Answer
) -> None:
    result = streamed(list(WIRES[api][1](answer, Cutter(data))), tools=TOOLS, live=True)
    for event in result.events:
        if isinstance(event, CallEnd) and event.call.complete:
            given_out = [
                each.json for each in result.events if isinstance(each, Arguments) and each.index == event.index
            ]
            shown = {event.call.json} if not event.call.repairs else {event.call.json, event.call.raw}
            assert "".join(given_out) in shown
            assert json.loads(event.call.json) == event.call.arguments
    whole = read(WIRES[api][0](answer), tools=TOOLS, ids=Ids.numbered("c"))
    assert [_settled(call) for call in result.reply.attempts] == [_settled(call) for call in whole.attempts]


def _settled(call: Call) -> tuple[Any, ...]:
    return call.name, call.raw, call.arguments, call.json, call.repairs, call.problems, call.complete


@every_dialect
@given(data=st.data(), answer=answers())
def test_calls_start_and_end_once_and_in_order(api: str, data: st.DataObject, answer: Answer) -> None:
    events = streamed(list(WIRES[api][1](answer, Cutter(data)))).events
    starts = [event for event in events if isinstance(event, CallStart)]
    ends = [event for event in events if isinstance(event, CallEnd)]
    assert [event.index for event in starts] == [event.index for event in ends] == list(range(len(starts)))
    assert [(event.id, event.name) for event in starts] == [(event.call.id, event.call.name) for event in ends]
    assert all(events.index(start) < events.index(end) for start, end in zip(starts, ends, strict=True))


@every_dialect
@given(data=st.data(), answer=answers(WORDS))
def test_a_stream_cut_short_never_completes_a_call(api: str, data: st.DataObject, answer: Answer) -> None:
    chunks = list(WIRES[api][1](answer, Cutter(data)))
    kept = chunks[: data.draw(st.integers(0, len(chunks)))]
    meant = [json.loads(call.arguments) for call in answer.calls]
    for call, arguments in zip(streamed(kept).reply.attempts, meant, strict=False):
        assert not call.complete or call.arguments in (arguments, {})


@every_dialect
@given(answer=answers())
def test_every_dialect_is_recognised(api: str, answer: Answer) -> None:
    assert sniff(WIRES[api][0](answer)) == api


# -- whatever is sent --------------------------------------------------------------------------------------------------

JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1.5, "", "x", "{", [], [None], {}, {"type": []}, {"name": {}}, [[{}]], ["a", 1]]
)


def mangled(value: Any, data: st.DataObject) -> Any:
    """The same with some of its values replaced."""
    if data.draw(st.integers(0, 12)) == 0:
        return data.draw(JUNK)
    if isinstance(value, dict):
        return {key: mangled(each, data) for key, each in value.items()}
    return [mangled(each, data) for each in value] if isinstance(value, list) else value


@every_dialect
@given(data=st.data(), answer=answers())
def test_nothing_that_is_sent_raises(api: str, data: st.DataObject, answer: Answer) -> None:
    whole, stream = WIRES[api]
    broken = mangled(whole(answer), data)
    read(broken)
    read(broken, api=api, tools=TOOLS)
    read(broken, api=api).message(api)
    chunks = [mangled(chunk, data) for chunk in stream(answer, Cutter(data))]
    result = streamed(chunks, api=data.draw(st.sampled_from(["auto", api])), live=data.draw(st.booleans()), tools=TOOLS)
    assert folded(result.events, result.reply) == result.reply
    assert_every_call_knows_its_problems(result.reply)


# -- writing and reading back ------------------------------------------------------------------------------------------

WRITERS: dict[str, Callable[[Reply], Any]] = {
    "chat": openai_chat.assistant_message,
    "responses": openai_responses.assistant_message,
    "messages": anthropic.assistant_message,
    "gemini": gemini.assistant_message,
    "ollama": ollama.assistant_message,
}


@every_dialect
@given(answer=answers(WORDS))
def test_what_is_written_reads_back(api: str, answer: Answer) -> None:
    assume(answer.text.strip() or answer.calls)
    reply = read(chat_whole(answer))
    back = read(WRITERS[api](reply), api=api)
    assert back.content == reply.content
    assert back.reasoning == reply.reasoning
    assert [(call.name, call.arguments) for call in back.attempts] == [(c.name, c.arguments) for c in reply.attempts]
    if api != "ollama":  # its wire has no ids
        assert [call.id for call in back.attempts] == [call.id for call in reply.attempts]
    assert (
        read(json.dumps(WRITERS[api](reply)), api=api, ids=Ids.numbered("c")).attempts
        == read(WRITERS[api](reply), api=api, ids=Ids.numbered("c")).attempts
    )


def test_a_call_written_by_hand_is_written_too() -> None:
    call = Call("f", {"x": 1}, "", "a")
    assert openai_chat.assistant_message("", [call])["tool_calls"][0]["function"]["arguments"] == '{"x": 1}'
