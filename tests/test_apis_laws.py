"""Laws of the provider dialects: streaming does not change the reply, and a written answer reads back.

An answer is written once as a whole response and once as a stream that is split at random: text, reasoning, names and
arguments in pieces, several deltas in one chunk, the stream's bytes cut anywhere.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rightcall import Arguments, Call, CallEnd, CallStart, Ids, Reply, Tool, Toolset
from rightcall.parsing.events import Fold
from rightcall.providers.openai_chat import CHAT
from rightcall.providers.provider_answers import Stream, read
from rightcall.providers.sniff import DIALECTS, detect_dialect
from rightcall.types import Event
from support.dialects import WIRES, Answer, Cutter, WireCall, chat_whole

Json = dict[str, Any]


# -- generated answers -------------------------------------------------------------------------------------------------

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
    wired = tuple(WireCall(f"call_{i}", name, arguments) for i, (name, arguments) in enumerate(calls))
    return Answer(draw(WORDS), draw(texts), wired)


every_dialect = pytest.mark.parametrize("api", list(WIRES))

STRING = {"type": "string"}
TOOLS = Toolset([Tool(name=name, parameters={"type": "object", "properties": {"q": STRING}}) for name in NAMES])


class StreamResult(NamedTuple):
    events: list[Event]
    reply: Reply


def read_stream(chunks: list[Any], **options: Any) -> StreamResult:
    stream = Stream(ids=Ids.numbered("c"), **options)
    events = [event for chunk in chunks for event in stream.feed(chunk)]
    return StreamResult(events + stream.close(), stream.reply)


def fold_events(events: list[Event], like: Reply) -> Reply:
    """Fold the events into a reply; finish reason, usage, API and extras are copied because no event carries them."""
    fold = Fold()
    fold.add(events)
    beside = {name: getattr(like, name) for name in ("finish", "usage", "api", "extras")}
    return msgspec.structs.replace(fold.reply(like.format, None), **beside)


def assert_every_call_knows_its_problems(reply: Reply) -> None:
    for index, call in enumerate(reply.attempts):
        about = [problem for problem in reply.problems if problem.call == index]
        assert sorted(map(repr, about)) == sorted(map(repr, call.problems))
        assert call.complete or not call.ok


# -- laws --------------------------------------------------------------------------------------------------------------


@every_dialect
@given(
    data=st.data(), answer=answers(), tools=st.sampled_from([None, TOOLS]), format=st.sampled_from(["auto", "hermes"])
)
def test_a_streamed_answer_gives_the_same_reply_as_the_whole_answer(
    api: str, data: st.DataObject, answer: Answer, tools: Toolset | None, format: str
) -> None:
    whole, stream = WIRES[api]
    whole_reply = read(whole(answer), tools=tools, format=format, ids=Ids.numbered("c"))
    chunks = list(stream(answer, Cutter(data)))
    result = read_stream(chunks, tools=tools, format=format)
    assert result.reply == whole_reply
    assert fold_events(result.events, result.reply) == result.reply
    assert_every_call_knows_its_problems(result.reply)


@every_dialect
@given(data=st.data(), answer=answers())
def test_a_byte_stream_can_be_cut_anywhere(api: str, data: st.DataObject, answer: Answer) -> None:
    chunks = list(WIRES[api][1](answer, Cutter(data)))
    lines = [f"event: e\ndata: {json.dumps(chunk, ensure_ascii=False)}\n\n: ping\n\n" for chunk in chunks]
    wire = ("".join(lines) + "data: [DONE]\n\n").encode()
    places = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=6)))
    pieces = [wire[a:b] for a, b in zip([0, *places], [*places, len(wire)], strict=True)]
    assert read_stream(pieces).reply == read_stream(chunks).reply
    assert read(wire, ids=Ids.numbered("c")) == read_stream(chunks).reply


@every_dialect
@given(data=st.data(), answer=answers(WORDS))
def test_live_argument_pieces_join_to_the_call_text_and_do_not_change_the_call(
    api: str, data: st.DataObject, answer: Answer
) -> None:
    result = read_stream(list(WIRES[api][1](answer, Cutter(data))), tools=TOOLS, live=True)
    for event in result.events:
        if isinstance(event, CallEnd) and event.call.complete:
            pieces = [each.json for each in result.events if isinstance(each, Arguments) and each.index == event.index]
            shown = {event.call.json} if not event.call.repairs else {event.call.json, event.call.raw}
            assert "".join(pieces) in shown
            assert json.loads(event.call.json) == event.call.arguments
    whole = read(WIRES[api][0](answer), tools=TOOLS, ids=Ids.numbered("c"))
    assert [_final_fields(call) for call in result.reply.attempts] == [_final_fields(call) for call in whole.attempts]


def _final_fields(call: Call) -> tuple[Any, ...]:
    return call.name, call.raw, call.arguments, call.json, call.repairs, call.problems, call.complete


@every_dialect
@given(data=st.data(), answer=answers())
def test_calls_start_and_end_once_and_in_order(api: str, data: st.DataObject, answer: Answer) -> None:
    events = read_stream(list(WIRES[api][1](answer, Cutter(data)))).events
    starts = [event for event in events if isinstance(event, CallStart)]
    ends = [event for event in events if isinstance(event, CallEnd)]
    assert [event.index for event in starts] == [event.index for event in ends] == list(range(len(starts)))
    assert [(event.id, event.name) for event in starts] == [(event.call.id, event.call.name) for event in ends]
    assert all(events.index(start) < events.index(end) for start, end in zip(starts, ends, strict=True))


@every_dialect
@given(data=st.data(), answer=answers(WORDS))
def test_a_truncated_stream_never_completes_a_call(api: str, data: st.DataObject, answer: Answer) -> None:
    chunks = list(WIRES[api][1](answer, Cutter(data)))
    kept = chunks[: data.draw(st.integers(0, len(chunks)))]
    meant = [json.loads(call.arguments) for call in answer.calls]
    for call, arguments in zip(read_stream(kept).reply.attempts, meant, strict=False):
        assert not call.complete or call.arguments in (arguments, {})


class StringSubclass(str):
    """A `str` subclass, as some libraries return it."""


def with_string_subclass(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: with_string_subclass(each) for key, each in value.items()}
    if isinstance(value, list):
        return [with_string_subclass(each) for each in value]
    return StringSubclass(value) if isinstance(value, str) else value


@every_dialect
@given(data=st.data(), answer=answers())
def test_string_subclasses_are_read_as_strings(api: str, data: st.DataObject, answer: Answer) -> None:
    whole, stream = WIRES[api]
    whole_reply = read(whole(answer), ids=Ids.numbered("c"))
    assert read(with_string_subclass(whole(answer)), ids=Ids.numbered("c")) == whole_reply
    assert read_stream([with_string_subclass(chunk) for chunk in stream(answer, Cutter(data))]).reply == whole_reply


@every_dialect
@given(answer=answers())
def test_every_dialect_is_detected(api: str, answer: Answer) -> None:
    assert detect_dialect(WIRES[api][0](answer)) == api


# -- malformed answers -------------------------------------------------------------------------------------------------

JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1.5, "", "x", "{", [], [None], {}, {"type": []}, {"name": {}}, [[{}]], ["a", 1]]
)


def mangle(value: Any, data: st.DataObject) -> Any:
    """Return a copy with some of its values replaced."""
    if data.draw(st.integers(0, 12)) == 0:
        return data.draw(JUNK)
    if isinstance(value, dict):
        return {key: mangle(each, data) for key, each in value.items()}
    return [mangle(each, data) for each in value] if isinstance(value, list) else value


@every_dialect
@given(data=st.data(), answer=answers())
def test_malformed_answers_never_raise(api: str, data: st.DataObject, answer: Answer) -> None:
    whole, stream = WIRES[api]
    broken = mangle(whole(answer), data)
    read(broken)
    read(broken, api=api, tools=TOOLS)
    read(broken, api=api).message(api)
    chunks = [mangle(chunk, data) for chunk in stream(answer, Cutter(data))]
    result = read_stream(
        chunks, api=data.draw(st.sampled_from(["auto", api])), live=data.draw(st.booleans()), tools=TOOLS
    )
    assert fold_events(result.events, result.reply) == result.reply
    assert_every_call_knows_its_problems(result.reply)


# -- writing and reading back ------------------------------------------------------------------------------------------


@every_dialect
@given(answer=answers(WORDS))
def test_a_written_answer_reads_back_as_the_same_reply(api: str, answer: Answer) -> None:
    assume(answer.text.strip() or answer.calls)
    reply = read(chat_whole(answer))
    back = read(DIALECTS[api].assistant_message(reply), api=api)
    assert back.content == reply.content
    assert back.reasoning == reply.reasoning
    assert [(call.name, call.arguments) for call in back.attempts] == [(c.name, c.arguments) for c in reply.attempts]
    if api != "ollama":  # its wire has no ids
        assert [call.id for call in back.attempts] == [call.id for call in reply.attempts]
    assert (
        read(json.dumps(DIALECTS[api].assistant_message(reply)), api=api, ids=Ids.numbered("c")).attempts
        == read(DIALECTS[api].assistant_message(reply), api=api, ids=Ids.numbered("c")).attempts
    )


def test_a_call_created_in_code_is_written() -> None:
    call = Call("f", {"x": 1}, "", "a")
    assert CHAT.assistant_message("", [call])["tool_calls"][0]["function"]["arguments"] == '{"x": 1}'
