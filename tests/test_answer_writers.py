"""Every dialect's writer: whatever it is given, its clients can read it, and what they read is what was given."""

from __future__ import annotations

import pytest

from rightcall.api_names import Api
from rightcall.apis.stream import Stream
from rightcall.serve.answer_writer import AnswerEnd, AnswerHead, AnswerUsage, AnswerWriter
from rightcall.serve.answer_writers import WRITERS, new_answer_id
from rightcall.serve.client_request import ClientRequest
from rightcall.types import Call, Reply


def writer_of(api: Api) -> AnswerWriter:
    request = ClientRequest(api=api, model="m", messages=[], wants_usage=True)
    return WRITERS[api](AnswerHead(id=new_answer_id(api), model="m", created=1_700_000_000, request=request))


def read_back(api: Api, data: bytes) -> Reply:
    stream = Stream(api)
    stream.feed(data)
    stream.close()
    return stream.reply


@pytest.mark.parametrize("api", WRITERS)
def test_what_is_written_is_read_back(api: Api) -> None:
    writer = writer_of(api)
    pieces = [writer.begin(), writer.reasoning("hm "), writer.reasoning("hm"), writer.text("Hé"), writer.text("llo")]
    pieces += [writer.call(Call("f", {"x": 1}, id="call_1")), writer.call_begin("call_2", "g")]
    pieces += [writer.call_piece('{"a":'), writer.call_piece("2}"), writer.call_end(), writer.alive()]
    pieces += [writer.finish(AnswerEnd(usage=AnswerUsage(10, 5))), writer.text("late"), writer.alive()]
    reply = read_back(api, b"".join(pieces))
    assert (reply.content, reply.reasoning, reply.problems) == ("Héllo", "hm hm", ())
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [
        ("call_1", "f", {"x": 1}),
        ("call_2", "g", {"a": 2}),
    ]
