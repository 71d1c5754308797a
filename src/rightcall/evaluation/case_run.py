"""One case in one configuration: a conversation, from its first request to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from rightcall.backends.request import Answer, Request
from rightcall.capture.domain import Domain
from rightcall.capture.task_outcome import CallMade
from rightcall.dispatching.result import Result
from rightcall.evaluation.configurations import Configuration
from rightcall.evaluation.eval_case import EvalCase, Played
from rightcall.loop.conversation import Conversation
from rightcall.loop.task_runner import Runner
from rightcall.types import Call, Json

Ask = Callable[[Request], Awaitable[Answer]]


class AskedAlike(msgspec.Struct, frozen=True, kw_only=True):
    """How every configuration asks: `fields` of a request, the most `turns`, `choice` and `parallel` as in `Request`,
    and the `mode` in which tools are offered where no grammar is."""

    turns: int
    mode: str
    fields: Json = {}
    choice: str = "auto"
    parallel: bool = True


class CaseRun(msgspec.Struct, frozen=True):
    """What a conversation came to, and its `answers`: each as the configuration saw it. `interventions` are those of
    the guard, as "policy: action"."""

    played: Played
    answers: tuple[Answer, ...]
    interventions: tuple[str, ...]


class StubRuns:
    """Runs calls with the stubs of a domain, and keeps what ran."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self.made: list[CallMade] = []

    def run(self, calls: Sequence[Call], turn: int) -> list[Result]:
        """What each of the `calls` of this `turn` gave."""
        results = []
        for call in calls:
            given = self._domain.run(call.name, call.arguments)
            self.made.append(CallMade(turn, call, given.status == "ok"))
            failed = given.status == "error"
            results.append(Result(call, given.message, failed, "failed" if failed else "completed"))
        return results


async def run_case(case: EvalCase, configuration: Configuration, asked: AskedAlike, ask: Ask) -> CaseRun:
    """Holds the conversation. A question ends with the first answer whose calls may run; nothing is run for it."""
    runner = Runner(
        None,
        case.tools,
        guard=configuration.guard,
        conversation=Conversation(case.messages),
        choice=asked.choice,
        parallel=asked.parallel,
        fields={**asked.fields, **configuration.fields(asked.mode)},
    )
    stubs = StubRuns(case.domain) if case.domain is not None else None
    answers: list[Answer] = []
    calls: tuple[Call, ...] = ()
    is_answered = False
    while len(answers) < asked.turns and not is_answered and (request := runner.next_request()) is not None:
        answers.append(configuration.read(await ask(request)))
        judged = runner.receive(answers[-1])
        calls = judged.calls
        is_answered = bool(calls) and stubs is None
        if calls and stubs is not None:
            runner.give(stubs.run(calls, len(answers) - 1))
    return CaseRun(
        _played(runner.conversation, answers, stubs, calls),
        tuple(answers),
        tuple([f"{each.policy}: {each.action}" for each in runner.conversation.interventions]),
    )


def _played(talk: Conversation, answers: Sequence[Answer], stubs: StubRuns | None, calls: tuple[Call, ...]) -> Played:
    judged = answers[-1:] if stubs is None else answers
    return Played(
        attempts=tuple([call for answer in judged for call in answer.attempts]),
        calls=calls if stubs is None else tuple([each.call for each in stubs.made]),
        made=tuple(stubs.made) if stubs is not None else (),
        ended="done" if calls and stubs is None else "out of turns" if talk.status == "open" else talk.status,
        text=answers[-1].content if answers else "",
    )
