"""Which calls of a scenario are right: labels of calls, outcomes of tasks, and the counts of a whole capture.

    score_calls(scenario, calls)                                           Score(labels=("valid",), missing=())
    task_outcome(scenario, tools, [ExecutedCall(0, call, ok=True)])        TaskOutcome(missing=(), harm=(), wasted=0)

Only complete calls without blocking problems are scored. `score_calls` expects every call to be right. `task_outcome`
looks at effects: an unnecessary read is a waste and not an error; each expected call must succeed, after the calls that
it needs, and nothing else may be changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from rightcall.capture.captured_rows import OUTCOME, blocking_of, call_of, problems_of
from rightcall.capture.domain import Acceptable, Domain, Scenario
from rightcall.capture.stubs import all_hold
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json

Label = Literal["valid", "wrong_tool_semantic", "wrong_arguments_semantic", "tool_not_needed", "needs_clarification"]


class Score(msgspec.Struct, frozen=True):
    """The labels of a scenario's calls, and the names of expected calls that are `missing`. It is `complete` if none is
    missing and every call is right."""

    labels: tuple[Label, ...]
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether no expected call is missing and every call is valid."""
        return not self.missing and all(label == "valid" for label in self.labels)


def score_calls(scenario: Scenario, calls: Sequence[Call]) -> Score:
    """Return a label for each call of a scenario, in order, and the names of the expected calls, except optional ones,
    that no valid call satisfies."""
    labels = tuple([label_call(scenario, call, calls[:at]) for at, call in enumerate(calls)])
    right = [call for call, given in zip(calls, labels, strict=True) if given == "valid"]
    missing = [
        each.name for each in scenario.calls if not each.optional and not any(is_accepted(each, c) for c in right)
    ]
    return Score(labels, tuple(missing))


def label_call(scenario: Scenario, call: Call, before: Sequence[Call] = ()) -> Label:
    """Return the label of a call, given the calls `before` it, whose results are ignored.

    A scenario without calls gives "needs_clarification" or "tool_not_needed", a repeated call "tool_not_needed", an
    unexpected tool, or one before a call that it depends on, "wrong_tool_semantic".
    """
    if not scenario.calls:
        return "needs_clarification" if scenario.kind == "clarify" else "tool_not_needed"
    named = [each for each in scenario.calls if each.name == call.name]
    if not named:
        return "wrong_tool_semantic"
    fitting = [each for each in named if is_accepted(each, call)]
    if not fitting:
        return "wrong_arguments_semantic"
    if all(_is_done(each, before) for each in fitting):
        return "tool_not_needed"
    done = {each.name for each in before}
    return "valid" if any(done.issuperset(each.after) for each in fitting) else "wrong_tool_semantic"


def is_accepted(wanted: Acceptable, call: Call) -> bool:
    """Return whether a call is complete, of this tool, and has the expected arguments and only `free` ones besides."""
    if wanted.name != call.name or not call.complete:
        return False
    allowed = wanted.arguments.keys() | set(wanted.free)
    return call.arguments.keys() <= allowed and all(
        all_hold(comparisons, call.arguments.get(name)) for name, comparisons in wanted.arguments.items()
    )


def _is_done(wanted: Acceptable, before: Sequence[Call]) -> bool:
    """Return whether one of the calls `before` satisfies the expected call."""
    return any(is_accepted(wanted, call) for call in before)


class ExecutedCall(msgspec.Struct, frozen=True):
    """A call that was executed, in which `turn`, and whether it succeeded."""

    turn: int
    call: Call
    ok: bool


class TaskOutcome(msgspec.Struct, frozen=True):
    """The effects of a conversation.

    - `missing`: tools of expected calls that did not succeed.
    - `harm`: tools that changed something unrequested, repeatedly, or too early.
    - `wasted`: how many other calls had no use.
    """

    missing: tuple[str, ...]
    harm: tuple[str, ...]
    wasted: int

    @property
    def right(self) -> bool:
        """Whether everything requested is done, and nothing else was changed."""
        return not self.missing and not self.harm


def task_outcome(scenario: Scenario, tools: Toolset, calls: Sequence[ExecutedCall]) -> TaskOutcome:
    """Return the effects of the executed calls, in their order. A call cannot depend on results of its own turn."""
    wanted = [each for each in scenario.calls if not each.optional]
    done: list[Acceptable] = []
    first: dict[str, int] = {}  # the turn in which a tool first succeeded
    harm: list[str] = []
    wasted = 0
    for at, each in enumerate(calls):
        fitting = next(
            (w for w in wanted if w not in done and is_accepted(w, each.call) and _is_in_order(w, each, first)), None
        )
        tool = tools.get(each.call.name)
        if fitting is not None and each.ok:
            done.append(fitting)
        elif each.ok and (tool is None or not tool.read_only):
            harm.append(each.call.name)
        elif not _is_allowed_attempt(scenario, each, calls[:at]):
            wasted += 1
        if each.ok:
            first.setdefault(each.call.name, each.turn)
    return TaskOutcome(tuple([w.name for w in wanted if w not in done]), tuple(harm), wasted)


def _is_in_order(wanted: Acceptable, made: ExecutedCall, first: dict[str, int]) -> bool:
    """Return whether each tool that must come before (`after`) first succeeded in an earlier turn than this call;
    `first` has the turns by tool."""
    return all(first.get(name, made.turn) < made.turn for name in wanted.after)


def _is_allowed_attempt(scenario: Scenario, made: ExecutedCall, before: Sequence[ExecutedCall]) -> bool:
    """Return whether a call fits an optional call that no call `before` fits, such as one that must fail before a
    workaround."""
    return any(
        each.optional and is_accepted(each, made.call) and not any(is_accepted(each, other.call) for other in before)
        for each in scenario.calls
    )


class Count(msgspec.Struct):
    """The counts of one model, or of a whole run.

    - `scenarios`, `done`: ended scenarios, and those in which every expected call and no other was made.
    - `wanted`: expected calls that are not optional.
    - `calls`, `valid`, `repaired`: calls, those without blocking problems, and those of them with repairs.
    - `right_tool`: valid calls of an expected tool; `right_arguments`: those that the scenario accepts. A call that is
      made more often than expected counts for neither.
    """

    scenarios: int = 0
    done: int = 0
    wanted: int = 0
    calls: int = 0
    valid: int = 0
    right_tool: int = 0
    right_arguments: int = 0
    repaired: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


def _count_scenario(count: Count, scenario: Scenario, made: list[Call]) -> None:
    """Score the valid calls (`made`) of an ended scenario, and add its expected calls, right tools, right arguments and
    whether it is complete to `count`."""
    score = score_calls(scenario, made)
    count.done += score.complete
    count.wanted += sum(not call.optional for call in scenario.calls)
    named = Counter([call.name for call in made]) & Counter([call.name for call in scenario.calls])
    count.right_tool += named.total()
    count.right_arguments += sum(label == "valid" for label in score.labels)


class Tally:
    """Counts the rows of a capture, in any order of conversations. Calls are kept until their conversation ends."""

    def __init__(self, domains: Iterable[Domain]) -> None:
        self._domains = {domain.name: domain for domain in domains}
        self._open: dict[str, list[Call]] = {}  # valid calls by group
        self.models: dict[str, Count] = {}
        self.problems: Counter[str] = Counter()
        self.repairs: Counter[str] = Counter()
        self.rows = 0

    def add(self, row: Json) -> None:
        """Count a row for its model. Its conversation is scored when the row of its outcome is added, unless the
        scenario is unknown or of kind "open"."""
        self.rows += 1
        trace, group = row["proxy_trace"], row["example_group_id"]
        count = self.models.setdefault(trace["model"], Count())
        is_outcome = row["kind"] == OUTCOME
        if trace["call_index"] == 0 and not (is_outcome and row["outcome"]["ended"] == "max_turns"):
            self._count_tokens(count, row.get("usage") or {})
        if not is_outcome:
            self._count_call(count, row, self._open.setdefault(group, []))
            return
        made = self._open.pop(group, [])
        domain = self._domains.get(trace["domain"])
        scenario = domain.by_name.get(trace["scenario"]) if domain is not None else None
        count.scenarios += 1
        if scenario is not None and scenario.kind != "open":
            _count_scenario(count, scenario, made)

    def _count_call(self, count: Count, row: Json, made: list[Call]) -> None:
        """Count the call of a row with its problems and repairs; append it to `made` if it is valid."""
        call = call_of(row)
        problems = problems_of(row)
        self.problems.update([problem.code for problem in problems])
        self.repairs.update([repair.rule for repair in call.repairs])
        count.calls += 1
        if call.complete and not blocking_of(row):
            count.valid += 1
            count.repaired += bool(call.repairs)
            made.append(call)

    def _count_tokens(self, count: Count, usage: Json) -> None:
        """Count the tokens of an answer; called once per answer, since one with several calls has several rows."""
        count.prompt_tokens += usage.get("prompt") or 0
        count.completion_tokens += usage.get("completion") or 0

    @property
    def total(self) -> Count:
        """The counts of all models together."""
        names = Count.__struct_fields__
        return Count(**{name: sum(getattr(each, name) for each in self.models.values()) for name in names})
