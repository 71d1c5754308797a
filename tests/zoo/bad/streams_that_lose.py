"""Streaming parsers that lose what the whole answer has: the arguments, their first piece, or a call."""

from __future__ import annotations

from zoo.bad_server import BadServer
from zoo.question import Question
from zoo.script import Said
from zoo.spoiling import Wording, twice

STREAM = ("stream",)


def in_streams(wording: Wording) -> Wording:
    """Only in streams: whole answers stay."""

    def say(said: Said, question: Question) -> Said:
        return wording(said, question) if question.stream else said

    return say


def no_arguments(said: Said, question: Question) -> Said:
    return said._replace(calls=tuple([call._replace(raw="") for call in said.calls]))


def no_first_piece(said: Said, question: Question) -> Said:
    """The chunk with the opening `{"` is gone."""
    return said._replace(calls=tuple([call._replace(raw=call.text[2:]) for call in said.calls]))


def no_second_arguments(said: Said, question: Question) -> Said:
    first, second = said.calls
    return said._replace(calls=(first, second._replace(raw="")))


def no_call(said: Said, question: Question) -> Said:
    return Said(finish={"chat": "tool_calls"}.get(question.api, ""))


SERVERS = [
    BadServer(
        "stream_loses_arguments",
        "lost_in_stream",
        "a call without its arguments, with status 200 and no error",
        apis=("chat", "responses", "messages"),
        ways=STREAM,
        says=in_streams(no_arguments),
        reports="vllm-project/vllm#55082 vllm-project/vllm#48347 BerriAI/litellm#25321",
    ),
    BadServer(
        "stream_loses_first_piece",
        "lost_in_stream",
        "arguments that json.loads refuses, for 60 % of the calls",
        apis=("chat", "responses"),
        ways=STREAM,
        says=in_streams(no_first_piece),
        reports="vllm-project/vllm#42683 vllm-project/vllm#48852",
    ),
    BadServer(
        "stream_loses_second_arguments",
        "lost_in_stream",
        "two calls, of which the second has no arguments",
        sees="both calls",
        apis=("chat", "responses"),
        ways=STREAM,
        means=twice,
        says=in_streams(no_second_arguments),
        settings={"mode": "text"},
        reports="vllm-project/vllm#47901 sgl-project/sglang#37634",
    ),
    BadServer(
        "stream_loses_empty_call",
        "lost_in_stream",
        "no call at all: one without arguments is dropped",
        ways=STREAM,
        scene="no_arguments",
        says=in_streams(no_call),
        settings={"mode": "text"},
        reports="vllm-project/vllm#44326",
    ),
]
