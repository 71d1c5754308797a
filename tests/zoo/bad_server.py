"""`BadServer`: one known fault of servers, as a value.

    BadServer("no_index", "bad_index", symptom="...", damage=each_call(without("index")))

A server is defined by its differences from a correct one. `intent` changes what its model wants to output (by default
the script), `output` changes what the model outputs, `damage` changes the encoded answer, and `refusal` rejects a
request. Each gets the question, too. Faults occur in turns with calls, and only if tools are offered natively: the
model of a server with a broken parser can still write calls as text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from zoo.orders import follow_instructions
from zoo.question import Question
from zoo.script import Output, render_output, scripted_output
from zoo.speech import Answer, encode_answer

ALL = ("chat", "responses", "messages", "ollama", "gemini")


class Refusal(NamedTuple):
    """An error response for a request that the server does not accept."""

    message: str
    status: int = 400


def same_output(output: Output, question: Question) -> Output:
    return output


def same_answer(answer: Answer, question: Question) -> Answer:
    return answer


def accept(question: Question) -> Refusal | None:
    return None


class BadServer(NamedTuple):
    """One bad server.

    - `name`: its name in requests: as the model, or at the beginning of the path.
    - `failure`: the slug of its class in `rightcall.doctor`.
    - `symptom`: what a client gets from it. `result`: what a client gets through the proxy.
    - `apis`: the dialects in which it was reported. `modes`: as a stream, whole, or both.
    - `settings`: settings of the proxy, if its defaults do not hide the fault.
    - `scene`: the conversation of the client; one of `zoo.scenes`.
    - `right`: what a client must get through the proxy: the intended output (`meant`), text without a call or an error
      (`no_call`), a warning (`warned`), or the intended output after keep-alive messages (`alive`).
    - `reports`: public threads about it.
    - `always`: the fault occurs in turns without calls, too.
    """

    name: str
    failure: str
    symptom: str
    result: str = "the call"
    apis: tuple[str, ...] = ("chat",)
    modes: tuple[str, ...] = ("stream", "whole")
    intent: Callable[[Output, Question], Output] = same_output
    output: Callable[[Output, Question], Output] = same_output
    damage: Callable[[Answer, Question], Answer] = same_answer
    refusal: Callable[[Question], Refusal | None] = accept
    settings: dict[str, Any] = {}  # noqa: RUF012  (it is never changed)
    scene: str = "plain"
    right: str = "meant"
    reports: str = ""
    always: bool = False

    def intended_output(self, question: Question) -> Output:
        """Return the output of a correct server."""
        output = follow_instructions(question, scripted_output(question))
        return self.intent(output, question) if output.calls else output

    def answer(self, question: Question) -> Answer:
        """Return the answer of this server."""
        refusal = self.refusal(question)
        if refusal is not None:
            return Answer(body=_error(question.api, refusal), status=refusal.status)
        output = self.intended_output(question)
        if question.tools_in_prompt:
            return encode_answer(Output(text=render_output(output)), question)
        if not (output.calls or (self.always and question.tools)):
            return encode_answer(output, question)
        return self.damage(encode_answer(self.output(output, question), question), question)


def _error(api: str, refusal: Refusal) -> Any:
    if api == "messages":
        return {"type": "error", "error": {"type": "invalid_request_error", "message": refusal.message}}
    if api == "ollama":
        return {"error": refusal.message}
    if api == "gemini":
        return {"error": {"code": refusal.status, "message": refusal.message, "status": "INVALID_ARGUMENT"}}
    return {"error": {"message": refusal.message, "type": "invalid_request_error", "code": refusal.status}}
