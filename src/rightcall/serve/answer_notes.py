"""What is told of an answer that was read: to whoever watches, and to a client that wanted it whole."""

from __future__ import annotations

import msgspec

from rightcall.errors import BodyError, DecodeError
from rightcall.serve.answer_flow import AnswerFlow
from rightcall.serve.client_request import ClientRequest
from rightcall.serve.exchanged import Exchanged
from rightcall.serve.settling import freed
from rightcall.serve.token_estimate import cut_prompt
from rightcall.serve.upstream_link import UpstreamAnswer
from rightcall.types import Call, Reply


def note_answer(exchanged: Exchanged, flow: AnswerFlow) -> None:
    """What is to be told of an answer."""
    reply = flow.reply
    exchanged.format = reply.format if reply.format != flow.api else ""
    exchanged.repairs += [repair.rule for call in reply.attempts for repair in call.repairs]
    exchanged.problems += [problem.code for problem in reply.problems if problem.blocking]
    exchanged.near += sum([problem.code == "looks_like_a_call" for problem in reply.problems])
    if exchanged.mode == "native" and exchanged.format and reply.attempts:
        exchanged.rescues += [exchanged.format] * len(reply.attempts)
    exchanged.tokens = flow.ending("stop").usage


def note_cut(exchanged: Exchanged, request: ClientRequest, size: int) -> None:
    """Of a request of so many bytes: has the server read all of it?"""
    cut = cut_prompt(request, size, exchanged.tokens.prompt)
    exchanged.warnings += [cut] if cut else []


def shown_reply(flow: AnswerFlow) -> Reply:
    """The reply with the calls that may go out, and no other."""
    sent = {call.id: freed(call) for call in flow.sent}
    parts = [sent.get(part.id) if isinstance(part, Call) else part for part in flow.reply.parts]
    # Without its problems: a reply tells them to whatever call stands in their place now.
    return msgspec.structs.replace(flow.reply, parts=tuple([part for part in parts if part is not None]), problems=())


def raise_for_nothing(flow: AnswerFlow, answer: UpstreamAnswer, broken: str) -> None:
    """The server's answer was none: an error in its place, or nothing that could be read; `broken` says how the
    connection broke before its end, if it did."""
    if flow.error:
        raise BodyError(f"the server answered with an error: {flow.error[:600]}")
    if not flow.facts.is_answer and not flow.reply.parts:
        if broken:
            raise BodyError(broken)
        raise DecodeError(f"the answer of the server is none of its API ({answer.kind or 'no content type'})", "")
