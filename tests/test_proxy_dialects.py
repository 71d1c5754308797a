"""Every client dialect with every server dialect: the client gets the server's answer in its own order and shape.

Laws over answers that hypothesis generates, cut anywhere; without network.
"""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Reply, Stream, Tool, Toolset
from rightcall.api_names import Api
from rightcall.backends.request_plan import ToolNames
from rightcall.serve.answer_flow import AnswerFlow, AnswerReading
from rightcall.serve.answer_writer import AnswerHead, AnswerWriter
from rightcall.serve.answer_writers import WRITERS, new_answer_id
from rightcall.serve.client_request import ClientRequest
from rightcall.serve.flow_rules import FlowRules
from rightcall.testing import conforms
from support.dialects import WIRES, Answer, Cutter, WireCall
from support.proxied import DIALECTS, SCHEMA, Json

TOOLS = Toolset([Tool(name="get_weather", parameters=SCHEMA)])
PAIRS = list(itertools.product(DIALECTS, DIALECTS))
WORDS = st.text("ab c\n.", max_size=12).map(lambda text: f"said {text}" if text.strip() else "")
CALLS = st.lists(
    st.builds(
        lambda number, city, days: WireCall(f"call_{number}", "get_weather", json.dumps({"city": city, "days": days})),
        st.integers(0, 10**6),
        st.text('Oslo é\n"{}', max_size=8),
        st.integers(-5, 5),
    ),
    max_size=3,
    unique_by=lambda call: call.id,
).map(tuple)
ANSWERS = st.builds(Answer, WORDS, WORDS, CALLS, st.just("stop"))


def frame_payloads(api: Api, payloads: list[Json]) -> bytes:
    if api == "ollama":
        return b"".join([json.dumps(each).encode() + b"\n" for each in payloads])
    named = [f"event: {each['type']}\n" if "type" in each else "" for each in payloads]
    out = b"".join([f"{name}data: {json.dumps(each)}\n\n".encode() for name, each in zip(named, payloads, strict=True)])
    return out + (b"data: [DONE]\n\n" if api == "chat" else b"")


def flow_of(client: Api, server: Api, *, live: bool = False) -> AnswerFlow:
    request = ClientRequest(api=client, model="m", messages=[], stream=True)

    def writer(first: Json) -> AnswerWriter:
        return WRITERS[client](AnswerHead(id=new_answer_id(client), model="m", created=1, request=request))

    reading = AnswerReading(api=server, naming=ToolNames(TOOLS, server), options={"tools": TOOLS})
    return AnswerFlow(reading, writer, FlowRules(same=client == server, live=live))


def run_flow(flow: AnswerFlow, pieces: list[bytes]) -> bytes:
    out = [flow.feed(piece) for piece in pieces]
    out.append(flow.end())
    return b"".join([*out, flow.finish(flow.how_ended())])


def read_back(api: Api, data: bytes) -> Reply:
    stream = Stream(api, tools=TOOLS)
    stream.feed(data)
    stream.close()
    return stream.reply


def cut_at(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@pytest.mark.parametrize(("client", "server"), PAIRS)
@given(answer=ANSWERS, data=st.data(), places=st.lists(st.integers(0, 4000), max_size=5), live=st.booleans())
def test_a_client_gets_the_answer_for_every_pair_of_dialects(
    client: Api, server: Api, answer: Answer, data: st.DataObject, places: list[int], live: bool
) -> None:
    sent = frame_payloads(server, list(WIRES[server][1](answer, Cutter(data))))
    flow = flow_of(client, server, live=live)
    out = run_flow(flow, cut_at(sent, places))
    assert conforms(out, client) == []
    reply = read_back(client, out)
    assert [(call.name, call.arguments) for call in reply.calls] == [
        (call.name, json.loads(call.arguments)) for call in answer.calls
    ]
    assert reply.refused == ()
    assert reply.content.strip() == answer.text.strip()
    assert reply.reasoning.strip() == answer.reasoning.strip()


@pytest.mark.parametrize(("client", "server"), PAIRS)
@given(answer=ANSWERS, data=st.data(), end=st.integers(0, 4000))
def test_a_broken_off_answer_ends_validly_and_adds_no_call(
    client: Api, server: Api, answer: Answer, data: st.DataObject, end: int
) -> None:
    sent = frame_payloads(server, list(WIRES[server][1](answer, Cutter(data))))
    flow = flow_of(client, server)
    out = flow.feed(sent[: end % (len(sent) + 1)]) + flow.end(broken=True)
    out += flow.finish(flow.how_ended())
    assert conforms(out, client) == []
    sent_calls = [(call.name, json.loads(call.arguments)) for call in answer.calls]
    assert all((call.name, call.arguments) in sent_calls for call in read_back(client, out).calls)


FIRST_WORDS = [(" Sure", True), ("word1", True), ("Get", False), ("get_we", False), ("{", False)]


@pytest.mark.parametrize(("word", "begins"), FIRST_WORDS)
def test_a_stream_begins_at_the_first_word_that_cannot_be_a_tool_name(word: str, begins: bool) -> None:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunk = {**head, "choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]}
    flow = flow_of("chat", "chat")
    out = flow.feed(f"data: {json.dumps(chunk)}\n\n".encode())
    assert (b'"role":"assistant"' in out, flow.begun) == (begins, begins)
    assert word.strip().encode() not in out  # The word could be the namespace of a tool.
