"""Did it come out right? A run of a scenario, judged by what its calls did, not by how it got there.

    outcome(scenario, domain.tools, [CallMade(0, call, ok=True), ...])  ->  TaskOutcome(missing=(), harm=(), wasted=0)

`score` wants every call right; here a look too many is a waste, and no fault. What counts is that each call that is
wanted went well, after those it needs, and that nothing else was changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rightcall.capture.domain import Acceptable, Scenario
from rightcall.capture.score import fits
from rightcall.tools.toolset import Toolset
from rightcall.types import Call


class CallMade(msgspec.Struct, frozen=True):
    """A call that was run in this turn, and whether it went well."""

    turn: int
    call: Call
    ok: bool


class TaskOutcome(msgspec.Struct, frozen=True):
    """What a run came to.

    - `missing`: tools of which a wanted call did not go well.
    - `harm`: tools that changed something that was not asked for, again, or before what they need.
    - `wasted`: how many other calls ran for nothing.
    """

    missing: tuple[str, ...]
    harm: tuple[str, ...]
    wasted: int

    @property
    def right(self) -> bool:
        """Is everything done that was asked for, and nothing else changed?"""
        return not self.missing and not self.harm


def outcome(scenario: Scenario, tools: Toolset, made: Sequence[CallMade]) -> TaskOutcome:
    """What the calls that ran came to, in their order. Calls of one turn do not know of each other's results."""
    wanted = [each for each in scenario.calls if not each.optional]
    done: list[Acceptable] = []
    first: dict[str, int] = {}  # in which turn a tool first went well
    harm: list[str] = []
    wasted = 0
    for at, each in enumerate(made):
        fitting = next((w for w in wanted if w not in done and fits(w, each.call) and _in_time(w, each, first)), None)
        tool = tools.get(each.call.name)
        if fitting is not None and each.ok:
            done.append(fitting)
        elif each.ok and (tool is None or not tool.read_only):
            harm.append(each.call.name)
        elif not _expected(scenario, each, made[:at]):
            wasted += 1
        if each.ok:
            first.setdefault(each.call.name, each.turn)
    return TaskOutcome(tuple([w.name for w in wanted if w not in done]), tuple(harm), wasted)


def _in_time(wanted: Acceptable, made: CallMade, first: dict[str, int]) -> bool:
    return all(first.get(name, made.turn) < made.turn for name in wanted.after)


def _expected(scenario: Scenario, made: CallMade, before: Sequence[CallMade]) -> bool:
    """Is it a first try that the scenario allows, such as the one that fails before the way round?"""
    return any(
        each.optional and fits(each, made.call) and not any(fits(each, other.call) for other in before)
        for each in scenario.calls
    )
