"""Was it the right call? A run of a scenario, judged by the scenario's acceptable calls.

    score(scenario, calls)  ->  Score(right_tool=True, right_arguments=False, ...)

Only whole, valid calls are judged; what is wrong with the others `check` has said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from rightcall.capture.domain import Acceptable, Scenario
from rightcall.capture.stubs import holds
from rightcall.types import Call

Label = Literal["valid", "wrong_tool_semantic", "wrong_arguments_semantic", "tool_not_needed", "needs_clarification"]


class Score(msgspec.Struct, frozen=True):
    """Of a whole scenario: `complete` if every call that is not optional was made rightly, and none that is wrong."""

    labels: tuple[Label, ...]
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        return not self.missing and all(label == "valid" for label in self.labels)


def score(scenario: Scenario, calls: Sequence[Call]) -> Score:
    labels = tuple([label(scenario, call, calls[:at]) for at, call in enumerate(calls)])
    right = [call for call, given in zip(calls, labels, strict=True) if given == "valid"]
    missing = [each.name for each in scenario.calls if not each.optional and not any(fits(each, c) for c in right)]
    return Score(labels, tuple(missing))


def label(scenario: Scenario, call: Call, before: Sequence[Call] = ()) -> Label:
    """What a call deserves, judged by the request and by what was called before, never by its result."""
    if not scenario.calls:
        return "needs_clarification" if scenario.kind == "clarify" else "tool_not_needed"
    named = [each for each in scenario.calls if each.name == call.name]
    if not named:
        return "wrong_tool_semantic"
    fitting = [each for each in named if fits(each, call)]
    if not fitting:
        return "wrong_arguments_semantic"
    if all(_is_done(each, before) for each in fitting):
        return "tool_not_needed"
    done = {each.name for each in before}
    return "valid" if any(done.issuperset(each.after) for each in fitting) else "wrong_tool_semantic"


def fits(wanted: Acceptable, call: Call) -> bool:
    """Has the call these arguments, and no others that matter?"""
    if wanted.name != call.name or not call.complete:
        return False
    known = wanted.arguments.keys() | set(wanted.free)
    return call.arguments.keys() <= known and all(
        holds(comparisons, call.arguments.get(name)) for name, comparisons in wanted.arguments.items()
    )


def _is_done(wanted: Acceptable, before: Sequence[Call]) -> bool:
    return any(fits(wanted, call) for call in before)
