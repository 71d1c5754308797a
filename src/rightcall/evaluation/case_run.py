"""Configurations, and the run of one case in one of them.

The configurations go from bare to full: each is the one before with one part of rightcall added. `bare` is a plain
client with a loop: it accepts calls only in the requested form, runs no call that is undeclared or does not fit its
schema, returns such errors to the model as tool results, and has as many turns as the others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from rightcall.backends.request import Answer, Request
from rightcall.capture.domain import Domain
from rightcall.capture.scenario_run import drop_unrequested_calls
from rightcall.capture.score import ExecutedCall
from rightcall.dispatching.result import Result
from rightcall.errors import CallerError
from rightcall.evaluation.eval_case import CaseOutcome, EvalCase
from rightcall.loop.conversation import Conversation
from rightcall.loop.task_runner import Runner
from rightcall.types import Call, Json


class Configuration(msgspec.Struct, frozen=True):
    """Which parts of rightcall are used between the model and the tools.

    - `about`: a description in one line.
    - `parse`: calls are found in any format, also where another one was requested.
    - `repair`: calls are repaired where that is safe.
    - `guard`: the name of the guard; with "none" the model only receives errors of calls.
    - `grammar`: the server constrains the model to the tools.
    """

    about: str
    parse: bool = True
    repair: bool = True
    guard: str = "none"
    grammar: bool = False

    def request_fields(self, mode: str) -> Json:
        """Return the request fields that this configuration sets: `mode`, which is "grammar" if it uses one and else
        the given mode, and `repair`."""
        return {"mode": "grammar" if self.grammar else mode, "repair": "safe" if self.repair else "off"}

    def filter(self, answer: Answer) -> Answer:
        """Return the answer as this configuration reads it: unchanged, or without `parse` with calls in another form
        than the requested one turned to text."""
        return answer if self.parse else drop_unrequested_calls(answer)


CONFIGURATIONS: dict[str, Configuration] = {
    "bare": Configuration("calls in the requested form, as written", parse=False, repair=False),
    "+parse": Configuration("calls in any form, anywhere in the answer", repair=False),
    "+repair": Configuration("and safe repairs"),
    "+nudge": Configuration("and errors and near-calls are reported to the model", guard="parse"),
    "+grammar": Configuration("and the server constrains the model to the tools", guard="parse", grammar=True),
    "full": Configuration("and the whole guard", guard="full", grammar=True),
}


def find_configurations(given: Iterable[str]) -> list[str]:
    """Return the names of these configurations in their usual order, each once; all if none is given.

    The `+` of a name may be left out. Raises `CallerError` for an unknown name.
    """
    names = [word if word in CONFIGURATIONS else f"+{word}" for word in given if word]
    for name in names:
        if name not in CONFIGURATIONS:
            raise CallerError(f"no configuration {name.lstrip('+')!r:.80}; there are {', '.join(CONFIGURATIONS)}")
    return [name for name in CONFIGURATIONS if name in names] or list(CONFIGURATIONS)


class RequestSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the requests of all configurations.

    - `turns`: the maximum number of answers in one conversation.
    - `mode`: how tools are offered where no grammar is used.
    - `fields`: other fields of the requests.
    - `choice`, `parallel`: as in `Request`.
    """

    turns: int
    mode: str
    fields: Json = {}
    choice: str = "auto"
    parallel: bool = True


class CaseRun(msgspec.Struct, frozen=True):
    """The result of one case: the `outcome` that is judged, the `answers` as the configuration read them, and the
    `interventions` of the guard, as "policy: action"."""

    outcome: CaseOutcome
    answers: tuple[Answer, ...]
    interventions: tuple[str, ...]


class StubRuns:
    """Executes calls with the stubs of a domain, and records them in `made`."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self.made: list[ExecutedCall] = []

    def run(self, calls: Sequence[Call], turn: int) -> list[Result]:
        """Execute the `calls` of this `turn` with the stubs, record them, and return their results."""
        results = []
        for call in calls:
            stub = self._domain.run(call.name, call.arguments)
            self.made.append(ExecutedCall(turn, call, stub.status == "ok"))
            failed = stub.status == "error"
            results.append(Result(call, stub.message, failed, "failed" if failed else "completed"))
        return results


async def run_case(
    case: EvalCase,
    configuration: Configuration,
    settings: RequestSettings,
    complete: Callable[[Request], Awaitable[Answer]],
) -> CaseRun:
    """Run the conversation of a case and return its result; `complete` sends a request to the model.

    A question ends with the first answer that has runnable calls, which are not executed. The calls of a task are
    executed by the stubs of its domain.
    """
    runner = Runner(
        None,
        case.tools,
        guard=configuration.guard,
        conversation=Conversation(case.messages),
        choice=settings.choice,
        parallel=settings.parallel,
        fields={**settings.fields, **configuration.request_fields(settings.mode)},
    )
    stubs = StubRuns(case.domain) if case.domain is not None else None
    answers: list[Answer] = []
    calls: tuple[Call, ...] = ()
    is_answered = False
    while len(answers) < settings.turns and not is_answered and (request := runner.next_request()) is not None:
        answers.append(configuration.filter(await complete(request)))
        calls = runner.receive(answers[-1]).calls
        is_answered = bool(calls) and stubs is None
        if calls and stubs is not None:
            runner.give(stubs.run(calls, len(answers) - 1))
    conversation = runner.conversation
    counted = answers[-1:] if stubs is None else answers
    outcome = CaseOutcome(
        attempts=tuple([call for answer in counted for call in answer.attempts]),
        calls=calls if stubs is None else tuple([each.call for each in stubs.made]),
        made=tuple(stubs.made) if stubs is not None else (),
        ended="done" if is_answered else "out of turns" if conversation.status == "open" else conversation.status,
        text=answers[-1].content if answers else "",
    )
    return CaseRun(
        outcome, tuple(answers), tuple([f"{each.policy}: {each.action}" for each in conversation.interventions])
    )
