"""Servers before which no proxy can help every client: they are run to show that this is so, and for whom."""

from __future__ import annotations

from zoo.bad_server import ALL, BadServer, Refused
from zoo.question import Question
from zoo.script import Said
from zoo.speech import Answer

_WORDS = "I will look at the file before I do anything else."


def _refuses(question: Question) -> Refused | None:
    return Refused("this server has no time for tools") if question.tools else None


def _with_words(said: Said, question: Question) -> Said:
    return said._replace(text=_WORDS)


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
            says=_with_words, spoils=_half,
        ),
        BadServer(
            "words_beside_a_call", "", "words before the call, which some clients take for the answer", apis=ALL,
            says=_with_words,
        ),
    )
}  # fmt: skip
