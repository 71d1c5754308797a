"""`Guard`: apply the policies of a preset to a turn and return one judgement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from rightcall.dispatching.result import FINE, Result, answers
from rightcall.dispatching.trace import Intervention
from rightcall.errors import CallerError
from rightcall.guard.policies import (
    GuardPolicy,
    announced,
    failing_budget,
    malformed_budget,
    near_calls,
    one_at_a_time,
    oversized_results,
    problems,
    repeated,
    silence,
    tool_choice,
    unknown_tool,
)
from rightcall.guard.turn import Turn
from rightcall.tools.toolset import Tools, Toolset
from rightcall.types import Call, Json, Reply


def _parse_policies() -> tuple[GuardPolicy, ...]:
    """Return new policies of the preset "parse", which report to the model what is wrong with its calls."""
    return malformed_budget(), unknown_tool(), problems(), near_calls()


def _full_policies() -> tuple[GuardPolicy, ...]:
    """Return new policies of the preset "full": those of "parse", and those that keep the model on its task."""
    return (
        *(failing_budget(), *_parse_policies()),
        *(tool_choice(), one_at_a_time(), repeated(), announced(), silence(), oversized_results()),
    )


PRESETS: dict[str, Callable[[], tuple[GuardPolicy, ...]]] = {
    "none": tuple,
    "parse": _parse_policies,
    "full": _full_policies,
}


Decision = Literal["run", "again", "done", "stop"]
_FINAL_ACTIONS = ("refuse", "answer")


class Judgement(msgspec.Struct, frozen=True):
    """What happens to a reply.

    - `reply`: as it was read.
    - `decision`: "run" its calls, send a request "again", the task is "done", or "stop" here.
    - `calls`: those to run, in order.
    - `results`: of those that are not run: rejected, or answered without running.
    - `interventions`: the interventions of the policies, in order.
    """

    reply: Reply
    decision: Decision
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    interventions: tuple[Intervention, ...] = ()

    @property
    def reason(self) -> str:
        """Return the reasons of all interventions, joined; "" without any."""
        return "; ".join([each.reason for each in self.interventions])

    @property
    def answer(self) -> str:
        """Return the text for the user: the messages of the interventions that end the task, one per line; without such
        a message, the reply's content."""
        spoken = [each.message for each in self.interventions if each.action == "end" and each.message]
        return "\n".join(spoken) or self.reply.content

    @property
    def ends(self) -> bool:
        """Return whether any intervention has the action "end": the task is then done once the calls have succeeded."""
        return any(each.action == "end" for each in self.interventions)

    def over(self, results: Iterable[Result] = ()) -> bool:
        """Return whether the loop is over, given the `results` of the calls that were run.

        True for the decisions "done" and "stop". Otherwise True only if an intervention has the action "end" and none
        of the `results` is a failure."""
        if self.decision in ("done", "stop"):
            return True
        return self.ends and all(result.kind in FINE and not result.error for result in results)

    def messages(self, results: Iterable[Result] = (), *, api: str = "chat") -> list[Any]:
        """Return the messages to append to the history: the reply as the assistant's turn, then an answer to each of
        its calls.

        Notes and nudges of policies are appended to the answers. For a reply without calls, the nudges are one message
        in the user's role. Raises `CallerError` for an unknown API.

        - `results`: the results of the calls that were run; those of refused calls are added here. A call without a
          result is answered as not run.
        - `api`: as in `answers`.
        """
        nudges = [each.message for each in self.interventions if each.action == "nudge"]
        if self.reply.attempts:
            every = [self._with_notes(result, nudges) for result in (*results, *self.results)]
            following = answers(self.reply, every, api=api)
        else:
            following = [_user_message("\n".join(nudges), api)] if nudges else []
        turn = self.reply.message(api)
        return [*(turn if isinstance(turn, list) else [turn]), *following]

    def _with_notes(self, result: Result, nudges: list[str]) -> Result:
        """Return the result with the notes of policies for its call (action "tell") appended to its text. The result of
        the reply's last call also gets the `nudges`. A result without either is returned unchanged."""
        attempts = self.reply.attempts
        notes = [
            each.message
            for each in self.interventions
            if each.action == "tell" and each.call is not None and attempts[each.call].id == result.id
        ]
        notes += nudges if result.id == attempts[-1].id else []
        if not notes:
            return result
        return msgspec.structs.replace(result, output="\n".join([result.outcome.output, *notes]), envelope=None)


def shorten_results(turn: Turn, interventions: Iterable[Intervention]) -> list[Json]:
    """Return the messages of the `turn` as a new list. A tool result for which there is an intervention with the action
    "cut" is replaced by a copy with the shortened content; other messages are the same objects. The turn is not
    changed."""
    cuts = {each.at: each.message for each in interventions if each.action == "cut"}
    return [{**message, "content": cuts[at]} if at in cuts else message for at, message in enumerate(turn.messages)]


def _user_message(content: str, api: str) -> Json:
    """Return one message in the user's role with this content, in the shape of this API. Raises `CallerError` for an
    unknown API."""
    from rightcall.providers.history_messages import write_results

    return write_results(api, [], content)[0]


class Guard:
    """Policies in their order: `Guard(*policies)`; the names "none", "parse" and "full" are presets.

    See `rightcall.guard` for the `policies` there are; any function of a `Turn` is a policy too."""

    def __init__(self, *policies: GuardPolicy) -> None:
        self.policies = policies

    @staticmethod
    def of(guard: str | Guard) -> Guard:
        """Return the `guard` of this name; a `Guard` is returned unchanged.

        "none" changes nothing, "parse" reports to the model what was wrong with its calls, "full" also keeps it on its
        task. Raises `CallerError` for another name.
        """
        if isinstance(guard, Guard):
            return guard

        if guard not in PRESETS:
            raise CallerError(f"guard={guard!r} is not one of {', '.join(PRESETS)}, nor a Guard")
        return Guard(*PRESETS[guard]())

    def with_policies(self, *policies: GuardPolicy) -> Guard:
        """Return a new guard with the policies of this one, followed by these `policies`."""
        return Guard(*self.policies, *policies)

    def tools(self, tools: Tools | None) -> Toolset | None:
        """Return a toolset to offer: the given `tools`, and those that policies such as `Respond` have as their `tool`.
        None if `tools` is None and no policy has one. Raises `BadTools` for unusable tools."""
        brought = [policy.tool for policy in self.policies if hasattr(policy, "tool")]
        given = Toolset.of(tools)
        return given if not brought else Toolset(*([given] if given else []), *brought)

    def prepare(self, turn: Turn) -> list[Json]:
        """Return the messages of a `turn` without a reply, to be sent in the shape of OpenAI's Chat: those of its
        history, with the tool results shortened for which a policy proposes that (`oversized_results`). The turn is not
        changed."""
        return shorten_results(turn, self.interventions(turn))

    def interventions(self, turn: Turn) -> list[Intervention]:
        """Call each policy with this `turn` and return all interventions, in the order of the policies.

        Once a call is refused or answered, later interventions about this call are dropped."""
        out: list[Intervention] = []
        final: set[int] = set()
        for policy in self.policies:
            for each in policy(turn):
                if each.call is not None and each.call in final:
                    continue
                if each.action in _FINAL_ACTIONS and each.call is not None:
                    final.add(each.call)
                out.append(each)
        return out

    def judge(self, turn: Turn) -> Judgement:
        """Decide what happens to the reply of this `turn`, and return the `Judgement`. Nothing is run here.

        A call that is not `ok` is never among the calls to run, whatever the policies are. Raises `CallerError` for a
        turn without a reply."""
        reply = turn.reply
        if reply is None:
            raise CallerError("the turn has no reply to judge; make it with Turn.of(messages, tools, reply=reply)")
        said = self.interventions(turn)
        final = {each.call: each for each in said if each.action in _FINAL_ACTIONS}
        run = tuple([call for at, call in enumerate(reply.attempts) if call.ok and at not in final])
        results = tuple([_result_without_run(reply.attempts[at], each) for at, each in final.items() if at is not None])
        decision = _decide(reply, run, said)
        return Judgement(reply, decision, () if decision == "stop" else run, results, tuple(said))


def _decide(reply: Reply, run: Sequence[Call], said: Sequence[Intervention]) -> Decision:
    """Return the decision about a reply, given the calls to `run` and all interventions (`said`). The first that
    applies: "stop" if an intervention stops the task; "run" if there are calls to run; "done" for a reply without calls
    and nudges, or if an intervention ends the task and no call is refused; otherwise "again"."""
    actions = {each.action for each in said}
    if "stop" in actions:
        return "stop"
    if run:
        return "run"
    if not reply.attempts and "nudge" not in actions:
        return "done"
    return "done" if "end" in actions and "refuse" not in actions else "again"


def _result_without_run(call: Call, each: Intervention) -> Result:
    """Return the result of a call that is not run because of intervention `each`, whose message is the output: of kind
    "skipped" for the action "answer", else an error of kind "refused" with the call's problems."""
    if each.action == "answer":
        return Result(call, each.message, False, "skipped", each.reason)
    return Result(call, each.message, True, "refused", each.reason, call.problems)
