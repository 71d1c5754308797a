"""Servers whose faults no proxy can hide from every client. They are run to document which clients fail."""

from __future__ import annotations

from zoo.bad_server import ALL, BadServer, Refusal
from zoo.question import Question
from zoo.script import Output
from zoo.speech import Answer

_WORDS = "I will look at the file before I do anything else."


def _refuses(question: Question) -> Refusal | None:
    return Refusal("this server has no time for tools") if question.tools else None


def _with_text(output: Output, question: Question) -> Output:
    return output._replace(text=_WORDS)


_CUT = {
    "chat": "length",
    "responses": "length",
    "messages": "max_tokens",
    "ollama": "length",
    "gemini": "MAX_TOKENS",
}


def _reported_as_cut(output: Output, question: Question) -> Output:
    return output._replace(finish=_CUT[question.api])


def _half(answer: Answer, question: Question) -> Answer:
    return (
        answer
        if answer.events is None
        else answer._replace(events=answer.events[: len(answer.events) // 2], breaks=True)
    )


INCURABLE = {
    server.name: server
    for server in (
        BadServer("refuses_all", "", "an error: the server takes no request with tools", apis=ALL, refusal=_refuses),
        BadServer(
            "breaks_off_after_words", "", "half an answer: the stream ends behind its first words", apis=ALL,
            output=_with_text, damage=_half,
        ),
        BadServer(
            "words_beside_a_call", "", "words before the call, which some clients take for the answer", apis=ALL,
            output=_with_text,
        ),
        BadServer(
            "says_it_was_cut", "", "an answer that is said to be cut off, right behind its call", apis=ALL,
            output=_reported_as_cut,
        ),
    )
}  # fmt: skip
