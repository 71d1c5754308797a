"""What a run came to, counted from its rows: calls that hold, calls that are right, tokens.

A call is *valid* if nothing blocks it: a declared tool, arguments that fit its schema, not cut off. Of valid calls, one
has the *right tool* if the scenario wants a call of it, and *right arguments* if it is a call that the scenario accepts
(`score.py`); what is made again beyond what is wanted counts for neither. A scenario is *done* if every call that it
wants was made, and no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from rightcall.capture.captured_rows import OUTCOME, blocking_of, call_of, problems_of
from rightcall.capture.domain import Domain, Scenario
from rightcall.capture.score import score
from rightcall.types import Call, Json


class Count(msgspec.Struct):
    """Of one model, or of a whole run. `wanted` are the calls that the scenarios cannot do without."""

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


def _score(count: Count, scenario: Scenario, made: list[Call]) -> None:
    scored = score(scenario, made)
    count.done += scored.complete
    count.wanted += sum(not call.optional for call in scenario.calls)
    named = Counter([call.name for call in made]) & Counter([call.name for call in scenario.calls])
    count.right_tool += named.total()
    count.right_arguments += sum(label == "valid" for label in scored.labels)


class Tally:
    """Counts rows as they come. Memory holds the conversations that have not ended."""

    def __init__(self, domains: Iterable[Domain]) -> None:
        self._domains = {domain.name: domain for domain in domains}
        self._open: dict[str, list[Call]] = {}  # valid calls by group
        self.models: dict[str, Count] = {}
        self.problems: Counter[str] = Counter()
        self.repairs: Counter[str] = Counter()
        self.rows = 0

    def add(self, row: Json) -> None:
        self.rows += 1
        trace, group = row["proxy_trace"], row["example_group_id"]
        count = self.models.setdefault(trace["model"], Count())
        is_outcome = row["kind"] == OUTCOME
        if trace["call_index"] == 0 and not (is_outcome and row["outcome"]["ended"] == "max_turns"):
            self._spend(count, row.get("usage") or {})
        if not is_outcome:
            self._call(count, row, self._open.setdefault(group, []))
            return
        made = self._open.pop(group, [])
        domain = self._domains.get(trace["domain"])
        scenario = domain.by_name.get(trace["scenario"]) if domain is not None else None
        count.scenarios += 1
        if scenario is not None and scenario.kind != "open":
            _score(count, scenario, made)

    def _call(self, count: Count, row: Json, made: list[Call]) -> None:
        call = call_of(row)
        problems = problems_of(row)
        self.problems.update([problem.code for problem in problems])
        self.repairs.update([repair.rule for repair in call.repairs])
        count.calls += 1
        if call.complete and not blocking_of(row):
            count.valid += 1
            count.repaired += bool(call.repairs)
            made.append(call)

    def _spend(self, count: Count, usage: Json) -> None:
        """Tokens are an answer's, and an answer with several calls has several rows."""
        count.prompt_tokens += usage.get("prompt") or 0
        count.completion_tokens += usage.get("completion") or 0

    @property
    def total(self) -> Count:
        names = Count.__struct_fields__
        return Count(**{name: sum(getattr(each, name) for each in self.models.values()) for name in names})
