"""Servers whose faults no proxy can hide from every client. They are run to document which clients fail."""

from __future__ import annotations

from zoo.bad_server import ALL, BadServer, Refused
from zoo.question import Question
from zoo.script import Said
from zoo.speech import Answer

_WORDS = "I will look at the file before I do anything else."


def _refuses(question: Question) -> Refused | None:
    return Refused("this server has no time for tools") if question.tools else None


def _with_text(said: Said, question: Question) -> Said:
    return said._replace(text=_WORDS)


_CUT = {
    "chat": "length",
    "responses": "length",
    "messages": "max_tokens",
    "ollama": "length",
    "gemini": "MAX_TOKENS",
}


def _reported_as_cut(said: Said, question: Question) -> Said:
    return said._replace(finish=_CUT[question.api])


def _half(answer: Answer, question: Question) -> Answer:
    return (
        answer
        if answer.events is None
        else answer._replace(events=answer.events[: len(answer.events) // 2], breaks=True)
    )


INCURABLE = {
    server.name: server
    for server in (
        BadServer("refuses_all", "", "an error: the server takes no request with tools", apis=ALL, refuses=_refuses),
        BadServer(
            "breaks_off_after_words", "", "half an answer: the stream ends behind its first words", apis=ALL,
            says=_with_text, spoils=_half,
        ),
        BadServer(
            "words_beside_a_call", "", "words before the call, which some clients take for the answer", apis=ALL,
            says=_with_text,
        ),
        BadServer(
            "says_it_was_cut", "", "an answer that is said to be cut off, right behind its call", apis=ALL,
            says=_reported_as_cut,
        ),
    )
}  # fmt: skip
