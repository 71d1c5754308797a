"""A stream that is passed through and breaks off anywhere gets an end that clients accept."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator

import pytest

from rightcall.api_names import Api
from rightcall.serve.answer_writer import AnswerEnd, AnswerHead, AnswerUsage
from rightcall.serve.answer_writers import WRITERS, new_answer_id
from rightcall.serve.client_request import ClientRequest
from rightcall.serve.passed_streams import PassedStream
from rightcall.testing import conforms

_EMPTY = "a text block is empty"  # It had begun when the stream broke off.


def _streams(api: Api) -> Iterator[bytes]:
    for thought in ("", "hm é"):
        for texts in (["Hi there"], ["a", "bé🎉"], []):
            request = ClientRequest(api=api, model="m", messages=[], wants_usage=True)
            writer = WRITERS[api](AnswerHead(id=new_answer_id(api), model="m", created=1, request=request))
            pieces = [writer.begin(), *([writer.reasoning(thought)] if thought else []), *map(writer.text, texts)]
            yield b"".join([*pieces, writer.finish(AnswerEnd(finish="stop", usage=AnswerUsage(10, 5)))])


@pytest.mark.parametrize("api", WRITERS)
@pytest.mark.parametrize("step", [7, 100_000])
def test_a_passed_stream_that_breaks_off_gets_a_valid_end_of_its_dialect(api: Api, step: int) -> None:
    for data in _streams(api):
        for cut in range(0, len(data) + 1, 11):
            stream = PassedStream(api)
            out = b"".join([stream.pass_on(data[at : min(cut, at + step)]) for at in range(0, cut, step)])
            assert data.startswith(out)
            if stream.has_begun:
                faults = [line for line in conforms(out + stream.ending(), api, stream=True) if _EMPTY not in line]
                assert not faults, (cut, faults)


def test_a_very_long_stream_is_passed_in_constant_memory() -> None:
    stream = PassedStream("responses")
    added = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "msg_1"}}
    delta = {"type": "response.output_text.delta", "output_index": 0, "item_id": "msg_1", "delta": "a" * 1_000_000}
    stream.pass_on(f"data: {json.dumps(added)}\n\n".encode())
    piece = f"data: {json.dumps(delta)}\n\n".encode()
    tracemalloc.start()
    try:
        for _ in range(40):
            assert stream.pass_on(bytes(bytearray(piece))) == piece
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()
    assert b'"status":"incomplete"' in stream.ending()
