"""One case of an evaluation, and the judges that decide what is right about a conversation.

A *question* is answered by calls: the first answer with runnable calls ends it, and no call is executed. A *task* is a
conversation with stub tools that ends when the model stops calling.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from rightcall.capture.domain import Domain, Scenario
from rightcall.capture.score import ExecutedCall, task_outcome
from rightcall.capture.stubs import all_hold
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json

Metric = Literal["valid", "right_tool", "right_arguments", "irrelevance", "completed"]
METRICS: tuple[Metric, ...] = ("valid", "right_tool", "right_arguments", "irrelevance", "completed")


class EvalVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is right about one conversation; a metric is None where the case does not measure it.

    - `valid`: a call was made, and each call names a declared tool, fits its schema and is complete.
    - `right_tool`: the runnable calls are of the expected tools, and of no other.
    - `right_arguments`: and they have the right arguments.
    - `irrelevance`: no call was expected, and no runnable call was made.
    - `completed`: of a task: everything requested is done, nothing else was changed, and the model ended.
    """

    valid: bool | None = None
    right_tool: bool | None = None
    right_arguments: bool | None = None
    irrelevance: bool | None = None
    completed: bool | None = None


class CaseOutcome(msgspec.Struct, frozen=True):
    """What a conversation led to.

    - `attempts`: all calls, also rejected ones: of the last answer of a question, of all answers of a task.
    - `calls`: the calls that the guard accepted; of a task, those that stub tools executed.
    - `made`: of a task: the executed calls, with turn and success.
    - `ended`: "done", "stopped" by the guard, or "out of turns".
    - `text`: the text of the last answer.
    """

    attempts: tuple[Call, ...] = ()
    calls: tuple[Call, ...] = ()
    made: tuple[ExecutedCall, ...] = ()
    ended: str = "done"
    text: str = ""


Judge = Callable[[CaseOutcome], EvalVerdict]


class EvalCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case.

    - `suite`, `id`, `category`: where it comes from.
    - `tools`, `messages`: the request.
    - `wanted`: the expected calls as JSON data, for the reader of a row.
    - `judge`: decides what is right about the conversation.
    - `domain`: of a task: its stubs answer the calls.
    """

    suite: str
    id: str
    category: str
    tools: Toolset
    messages: tuple[Json, ...]
    wanted: Any
    judge: Judge
    domain: Domain | None = None

    @property
    def key(self) -> str:
        return f"{self.suite}/{self.id}"

    @property
    def digest(self) -> str:
        """The SHA-256 hash of the key, the tools, the messages and the expected calls, as hexadecimal digits."""
        tools = [[tool.name, tool.description, tool.parameters] for tool in self.tools]
        content = json.dumps([self.key, tools, self.messages, self.wanted], sort_keys=True, default=str)
        return hashlib.sha256(content.encode()).hexdigest()


def exactly(expected: Sequence[Call]) -> Judge:
    """Return a judge of a question that accepts these calls in any order, and no others. If none is expected, only an
    answer without calls is right."""

    def are_right(calls: Sequence[Call]) -> bool:
        """Return whether the calls are the expected ones, in any order, with the same arguments."""
        missing = list(expected)
        for call in calls:
            same = [e for e in missing if e.name == call.name and all_hold({"is": e.arguments}, call.arguments)]
            if not same:
                return False
            missing.remove(same[0])
        return not missing

    return by_names_and([call.name for call in expected], are_right)


def by_names_and(names: Sequence[str], are_right: Callable[[Sequence[Call]], bool]) -> Judge:
    """Return a judge of a question, from the tool names of the expected calls, repeated ones included.

    `are_right` receives the accepted calls and decides about their arguments. Without names, no call is expected.
    """

    def judge_answer(outcome: CaseOutcome) -> EvalVerdict:
        """Return the verdict of an answer: its validity, tools and arguments, or whether it has no call if none is
        expected."""
        if not names:
            return EvalVerdict(irrelevance=not outcome.calls)
        return EvalVerdict(
            valid=_is_valid(outcome),
            right_tool=Counter(names) == Counter([call.name for call in outcome.calls]),
            right_arguments=are_right(outcome.calls),
        )

    return judge_answer


def judge_any_call(outcome: CaseOutcome) -> EvalVerdict:
    """Judge a case that expects a call, but does not define which: only `valid` is decided."""
    return EvalVerdict(valid=_is_valid(outcome))


def by_scenario(scenario: Scenario, domain: Domain) -> Judge:
    """Return a judge of a task. It compares the executed calls with those of the scenario: their order is free, except
    that a call must follow the tools in its `after`. The task is completed if no expected call is missing, no other
    call changed anything, and the model ended the conversation itself.

    Without expected calls, no call must be made. `domain` has the tools, whose `read_only` marks are used; nothing is
    executed.
    """
    expected = Counter([call.name for call in scenario.calls if not call.optional])

    def judge_effects(conversation: CaseOutcome) -> EvalVerdict:
        """Return the verdict of a task's conversation, from the effects of the calls that were executed."""
        effects = task_outcome(scenario, domain.tools, conversation.made)
        ended = conversation.ended == "done" and bool(scenario.calls or conversation.text.strip())
        if not scenario.calls:
            return EvalVerdict(irrelevance=not conversation.made, completed=effects.right and ended)
        return EvalVerdict(
            valid=_is_valid(conversation),
            right_tool=expected <= Counter([each.call.name for each in conversation.made]),
            right_arguments=not effects.missing,
            completed=effects.right and ended,
        )

    return judge_effects


def _is_valid(outcome: CaseOutcome) -> bool:
    return bool(outcome.attempts) and all(call.ok for call in outcome.attempts)
