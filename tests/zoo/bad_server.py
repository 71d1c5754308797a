"""`BadServer`: one way in which servers are known to misbehave, as a value.

    BadServer("no_index", "bad_index", said="...", spoils=each_call(without("index")))

A server is a difference from one that behaves. `means` is what its model wants to say (by default what the script
says), `says` what becomes of it in the model's words, `spoils` what becomes of the answer on the wire, and `refuses`
what the server does not take at all. Each gets the question too. Faults are in turns with calls, and where tools are
offered as such: the model behind a server whose parser is broken can still write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from zoo.orders import ordered
from zoo.question import Question
from zoo.script import Said, reply_to, written_out
from zoo.speech import Answer, spoken

ALL = ("chat", "responses", "messages", "ollama", "gemini")


class Refused(NamedTuple):
    """A request that the server does not take."""

    message: str
    status: int = 400


def as_meant(said: Said, question: Question) -> Said:
    return said


def as_spoken(answer: Answer, question: Question) -> Answer:
    return answer


def takes_all(question: Question) -> Refused | None:
    return None


class BadServer(NamedTuple):
    """One bad server.

    - `name`: what it is asked for by: as the model, or at the head of the path.
    - `failure`: the slug of its class in `rightcall.doctor`.
    - `saw`: what a client saw of it. `sees`: what a client sees through the proxy.
    - `apis`: the dialects in which it was reported. `ways`: as a stream, whole, or both.
    - `settings`: of the proxy, where its defaults are not the cure.
    - `scene`: what the client does; one of `zoo.scenes`.
    - `right`: what a client must get through the proxy: what was `meant`, the text but no call (`no_call`: that, or
      a refusal), a warning (`told`), or what was meant with signs of life before it (`alive`).
    - `reports`: the threads that tell of it.
    - `always`: it misbehaves in turns without calls too.
    """

    name: str
    failure: str
    saw: str
    sees: str = "the call"
    apis: tuple[str, ...] = ("chat",)
    ways: tuple[str, ...] = ("stream", "whole")
    means: Callable[[Said, Question], Said] = as_meant
    says: Callable[[Said, Question], Said] = as_meant
    spoils: Callable[[Answer, Question], Answer] = as_spoken
    refuses: Callable[[Question], Refused | None] = takes_all
    settings: dict[str, Any] = {}  # noqa: RUF012  (nobody writes into it)
    scene: str = "plain"
    right: str = "meant"
    reports: str = ""
    always: bool = False

    def meant(self, question: Question) -> Said:
        """What a server that behaves would have said."""
        said = ordered(question, reply_to(question))
        return self.means(said, question) if said.calls else said

    def answer(self, question: Question) -> Answer:
        """What this one answers."""
        refused = self.refuses(question)
        if refused is not None:
            return Answer(body=_error(question.api, refused), status=refused.status)
        said = self.meant(question)
        if question.in_words:
            return spoken(Said(text=written_out(said)), question)
        if not (said.calls or (self.always and question.tools)):
            return spoken(said, question)
        return self.spoils(spoken(self.says(said, question), question), question)


def _error(api: str, refused: Refused) -> Any:
    if api == "messages":
        return {"type": "error", "error": {"type": "invalid_request_error", "message": refused.message}}
    if api == "ollama":
        return {"error": refused.message}
    if api == "gemini":
        return {"error": {"code": refused.status, "message": refused.message, "status": "INVALID_ARGUMENT"}}
    return {"error": {"message": refused.message, "type": "invalid_request_error", "code": refused.status}}
