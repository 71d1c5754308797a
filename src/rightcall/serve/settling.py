"""What becomes of an answer once it is read: which of its calls may go on, whether it is asked for again, or given up.

    settled = settle(flow, turn, guard, give_up="pass")
    settled.again      the messages that tell the model what was wrong; empty where it is settled
    settled.calls      what goes to the client beside what has gone already

No IO, and nothing here knows a dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from rightcall.backends.request_plan import ModeChoice
from rightcall.guard import Guard, Judgement, Turn, one_at_a_time, repeated, tool_choice
from rightcall.serve.answer_flow import AnswerFlow
from rightcall.serve.client_request import ClientRequest
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Reply

# What only a schema says: the client's own check will say it again, in words that the model can use.
_OF_SCHEMA = frozenset(
    "missing unknown_argument wrong_type not_allowed no_match out_of_range wrong_length wrong_pattern not_unique "
    "schema invalid_argument".split()
)

_NEVER = 1_000_000
_PATIENT = Guard(repeated(tell=_NEVER, answer=_NEVER))


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done with an answer.

    - `calls`: those that go out now, in order.
    - `again`: the turn and what is said to it, in the shape of Chat, if it should be asked for again.
    - `wrong`: what to tell a client that gets none of its calls; empty where the answer stands.
    - `passed`: calls among them that go out as they were written though they break their schema, or were made before.
    - `guard`: what the policies did, each as "policy: action".
    """

    calls: tuple[Call, ...] = ()
    again: tuple[Json, ...] = ()
    wrong: str = ""
    passed: tuple[Call, ...] = ()
    guard: tuple[str, ...] = ()


def guard_for(name: str, request: ClientRequest) -> Guard:
    """The guard of this name, and what the request itself demands."""
    guard = Guard.of(name)
    if name == "parse" and request.choice != "auto":
        guard = guard.with_policies(tool_choice())
    if name == "parse" and not request.parallel:
        guard = guard.with_policies(one_at_a_time())
    return guard


def settle(
    flow: AnswerFlow,
    request: ClientRequest,
    messages: Sequence[Json],
    tools: Toolset | None,
    guard: Guard,
    give_up: Literal["pass", "error"],
) -> Settled:
    """Judges an answer that has been read to its end."""
    reply = pardoned(flow)
    if flow.begun and not (reply.attempts or reply.problems):
        return Settled()  # words that have gone out, and nothing else
    if is_cut(reply) and not flow.waiting:
        return Settled(calls=tuple(flow.waiting))  # the client asked for so many tokens, and learns that they are spent
    turn = Turn.of(messages, tools, reply=reply, choice=request.choice, parallel=request.parallel)
    judged = guard.judge(turn)
    said = tuple([f"{each.policy}: {each.action}" for each in judged.interventions])
    allowed = {call.id for call in judged.calls}
    waiting = tuple([call for call in flow.waiting if call.id in allowed or not guard.policies])
    again = _again(judged, flow, waiting)
    passed = _given_up(flow, judged, turn) if give_up == "pass" else ()
    room = passed if request.parallel else passed[: 0 if flow.sent or waiting else 1]
    wrong = "" if flow.sent or waiting or room else _wrong(flow, request, judged, give_up)
    return Settled(calls=(*waiting, *room), again=again, wrong=wrong, passed=room, guard=said)


def is_cut(reply: Reply) -> bool:
    """Did the server stop because the answer was as long as it may be?"""
    return reply.finish == "length"


def is_other(flow: AnswerFlow, way: ModeChoice, choice: str) -> bool:
    """Did the server not keep to the tool that was named, though it was told the name? Then it is offered no other,
    which needs no words to the model."""
    names = [call.name for call in flow.reply.attempts]
    return choice not in ("auto", "required", "none", *names) and "named" in way.profile.choices


def pardoned(flow: AnswerFlow) -> Reply:
    """The reply, in which calls that may go count as right."""
    reply = flow.reply
    forgiven = {call.id for call in reply.attempts if not call.ok and flow.may_go(call)}
    if not forgiven:
        return reply
    parts = [freed(part) if isinstance(part, Call) and part.id in forgiven else part for part in reply.parts]
    # Problems are told to the calls of a reply when it is made, so those of the forgiven go too.
    left = [each for each in reply.problems if each.call is None or reply.attempts[each.call].id not in forgiven]
    return msgspec.structs.replace(reply, parts=tuple(parts), problems=tuple(left))


def freed(call: Call) -> Call:
    """The call as it was written, with nothing against it."""
    return msgspec.structs.replace(call, problems=())


def _again(judged: Judgement, flow: AnswerFlow, waiting: Sequence[Call]) -> tuple[Json, ...]:
    if flow.begun or waiting or judged.decision != "again":
        return ()
    return tuple(judged.messages())


def _given_up(flow: AnswerFlow, judged: Judgement, turn: Turn) -> tuple[Call, ...]:
    """What goes out after all when retries are spent: calls that only break their schema; else one that the model
    insists on making once more, until it is refused for its number. Nobody says here which tools only read, and to read
    something twice is no reason to end a conversation."""
    broken = tuple([freed(call) for call in flow.refused if _passes(call, turn.tools)])
    if broken or judged.decision != "again" or {each.policy for each in judged.interventions} != {"repeated"}:
        return broken
    patient = {call.id for call in _PATIENT.judge(turn).calls}
    return tuple([call for call in flow.waiting if call.id in patient][:1])


def _passes(call: Call, tools: Toolset | None) -> bool:
    """Is it a call of a declared tool, whole and valid, that only breaks its schema?"""
    if not call.complete or tools is None or call.name not in tools:
        return False
    if not isinstance(decode(call.json or "{}", MAX_DEPTH), dict):
        return False
    return all(problem.code in _OF_SCHEMA for problem in call.problems if problem.blocking)


def _wrong(flow: AnswerFlow, request: ClientRequest, judged: Judgement, give_up: str) -> str:
    """Why the client gets no call, where that makes the answer wrong."""
    if flow.refused:
        problems = [problem.message for call in flow.refused for problem in call.problems if problem.blocking]
        return "the model's call cannot be trusted: " + "; ".join(dict.fromkeys(problems))[:600]
    if give_up == "error" and request.choice not in ("auto", "none"):
        return f"a call was demanded (tool_choice {request.choice!r:.80}), and the model made none"
    is_over = judged.decision == "stop" or (judged.decision == "again" and flow.reply.attempts)
    return judged.reason if is_over and not flow.reply.content else ""
