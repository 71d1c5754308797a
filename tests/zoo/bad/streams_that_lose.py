"""Streaming parsers that lose a part of the whole answer: the arguments, their first piece, or a call."""

from __future__ import annotations

from zoo.bad_server import BadServer
from zoo.question import Question
from zoo.script import Output
from zoo.spoiling import OutputChange, twice

STREAM = ("stream",)


def only_in_streams(change: OutputChange) -> OutputChange:
    """Apply a change only to streams, not to whole answers."""

    def change_output(output: Output, question: Question) -> Output:
        return change(output, question) if question.stream else output

    return change_output


def drop_arguments(output: Output, question: Question) -> Output:
    return output._replace(calls=tuple([call._replace(raw="") for call in output.calls]))


def drop_first_piece(output: Output, question: Question) -> Output:
    """Drop the chunk with the opening `{"`."""
    return output._replace(calls=tuple([call._replace(raw=call.text[2:]) for call in output.calls]))


def drop_second_arguments(output: Output, question: Question) -> Output:
    first, second = output.calls
    return output._replace(calls=(first, second._replace(raw="")))


def drop_call(output: Output, question: Question) -> Output:
    return Output(finish={"chat": "tool_calls"}.get(question.api, ""))


SERVERS = [
    BadServer(
        "stream_loses_arguments",
        "lost_in_stream",
        "a call without its arguments, with status 200 and no error",
        apis=("chat", "responses", "messages"),
        modes=STREAM,
        output=only_in_streams(drop_arguments),
        reports="vllm-project/vllm#55082 vllm-project/vllm#48347 BerriAI/litellm#25321",
    ),
    BadServer(
        "stream_loses_first_piece",
        "lost_in_stream",
        "arguments that json.loads refuses, for 60 % of the calls",
        apis=("chat", "responses"),
        modes=STREAM,
        output=only_in_streams(drop_first_piece),
        reports="vllm-project/vllm#42683 vllm-project/vllm#48852",
    ),
    BadServer(
        "stream_loses_second_arguments",
        "lost_in_stream",
        "two calls, of which the second has no arguments",
        result="both calls",
        apis=("chat", "responses"),
        modes=STREAM,
        intent=twice,
        output=only_in_streams(drop_second_arguments),
        settings={"mode": "text"},
        reports="vllm-project/vllm#47901 sgl-project/sglang#37634",
    ),
    BadServer(
        "stream_loses_empty_call",
        "lost_in_stream",
        "no call at all: one without arguments is dropped",
        modes=STREAM,
        scene="no_arguments",
        output=only_in_streams(drop_call),
        settings={"mode": "text"},
        reports="vllm-project/vllm#44326",
    ),
]
