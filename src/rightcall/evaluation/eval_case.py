"""One thing that a model is asked, and how what it does is judged.

A *question* is answered by calls: the first answer whose calls may run ends it, and nothing is run. A *task* is held as
a conversation with stub tools until the model says that it is done.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from rightcall.capture.domain import Domain, Scenario
from rightcall.capture.stubs import holds
from rightcall.capture.task_outcome import CallMade, outcome
from rightcall.evaluation.answer_match import are_matches
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json

Metric = Literal["valid", "right_tool", "right_arguments", "irrelevance", "completed"]
METRICS: tuple[Metric, ...] = ("valid", "right_tool", "right_arguments", "irrelevance", "completed")


class EvalVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one case came to. None where a case does not ask for it.

    - `valid`: there is a call, and each is of a declared tool, with arguments that fit its schema, and whole.
    - `right_tool`: the calls that may run are of the tools that were wanted, and no other.
    - `right_arguments`: and they have the right arguments.
    - `irrelevance`: no call was wanted, and none was made that could run.
    - `completed`: a task: everything that was asked for is done, nothing else was changed, and the model ended.
    """

    valid: bool | None = None
    right_tool: bool | None = None
    right_arguments: bool | None = None
    irrelevance: bool | None = None
    completed: bool | None = None


class Played(msgspec.Struct, frozen=True):
    """What a conversation came to: the `attempts` of its last answer (of a task, of all), the `calls` of it that the
    guard would let run, those that were `made` with stub tools, how it `ended`, and the last `text`."""

    attempts: tuple[Call, ...] = ()
    calls: tuple[Call, ...] = ()
    made: tuple[CallMade, ...] = ()
    ended: str = "done"
    text: str = ""


Judge = Callable[[Played], EvalVerdict]


class EvalCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case: where it is from, what is sent, what may be called, and who judges. `wanted` is for the reader of a
    row; a task has the `domain` whose stubs answer its calls."""

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
        """Another one if anything that is asked or wanted changes."""
        tools = [[tool.name, tool.description, tool.parameters] for tool in self.tools]
        said = json.dumps([self.key, tools, self.messages, self.wanted], sort_keys=True, default=str)
        return hashlib.sha256(said.encode()).hexdigest()


# -- questions ---------------------------------------------------------------------------------------------------------


def exactly(wanted: Sequence[Call]) -> Judge:
    """Judges by calls that are wanted just so, in any order; without any, none may be made."""

    def are_right(made: Sequence[Call]) -> bool:
        left = list(wanted)
        for call in made:
            same = [each for each in left if each.name == call.name and holds({"is": each.arguments}, call.arguments)]
            if not same:
                return False
            left.remove(same[0])
        return not left

    return _judge([call.name for call in wanted], are_right)


def by_truths(truths: Sequence[Json], functions: Sequence[Json]) -> Judge:
    """Judges by the leaderboard's truths and rules."""

    def are_right(made: Sequence[Call]) -> bool:
        return are_matches([(call.name, call.arguments) for call in made], functions, truths)

    return _judge([next(iter(truth)) for truth in truths], are_right)


def any_call(played: Played) -> EvalVerdict:
    """Judges a case where some call is wanted, and nobody said which."""
    return EvalVerdict(valid=_is_valid(played))


def _judge(names: Sequence[str], are_right: Callable[[Sequence[Call]], bool]) -> Judge:
    def judge(played: Played) -> EvalVerdict:
        if not names:
            return EvalVerdict(irrelevance=not played.calls)
        return EvalVerdict(
            valid=_is_valid(played),
            right_tool=Counter(names) == Counter([call.name for call in played.calls]),
            right_arguments=are_right(played.calls),
        )

    return judge


def _is_valid(played: Played) -> bool:
    return bool(played.attempts) and all(call.ok for call in played.attempts)


# -- tasks -------------------------------------------------------------------------------------------------------------


def by_scenario(scenario: Scenario, domain: Domain) -> Judge:
    """Judges a task by what its calls did, not by how it got there."""
    wanted = Counter([call.name for call in scenario.calls if not call.optional])

    def judge(played: Played) -> EvalVerdict:
        came = outcome(scenario, domain.tools, played.made)
        ended = played.ended == "done" and bool(scenario.calls or played.text.strip())
        if not scenario.calls:
            return EvalVerdict(irrelevance=not played.made, completed=came.right and ended)
        made = Counter([each.call.name for each in played.made])
        return EvalVerdict(
            valid=_is_valid(played),
            right_tool=wanted <= made,
            right_arguments=not came.missing,
            completed=came.right and ended,
        )

    return judge
