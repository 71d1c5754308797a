"""`dataset label`: what each row deserves, said without a model.

A call that must not run is `deterministic_invalid`: `check` says so. A call of a known scenario gets what the
scenario's acceptable calls say of it (`capture/score.py`). How a conversation ended is `valid` if every call that was
needed was made rightly and none that ran was wrong, else `incomplete`. Rows of unknown scenarios stay as they are.

    labelled = Labeller().label(row)      ->  row["label"] = {"label": "valid", "by": "scenario", "why": ""}
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rightcall.capture.captured_rows import (
    FORGE,
    OUTCOME,
    SCHEMA,
    LineFault,
    blocking_of,
    call_of,
    conversation_before,
    tools_of,
)
from rightcall.capture.domain import Domain, Scenario, built_in_domain, built_in_names
from rightcall.capture.score import label_call, score_calls
from rightcall.datasets.row_files import LABELLED, RowRun, Seen, digest, output_sink
from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.sources import RowBatch
from rightcall.datasets.schemas import first_fault
from rightcall.storage.jsonl import encode_row
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.tools.checks import check
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Problem


class Labeller:
    """Labels rows one at a time. `domains` are those of users; the built-in ones are always known."""

    def __init__(self, domains: Iterable[Domain] = ()) -> None:
        self._domains: dict[str, Domain | None] = {domain.name: domain for domain in domains}
        self._group = ""  # of rows that do not tell their history
        self._calls: list[Call] = []

    def label(self, row: Json) -> Json:
        """The row with its label; as it is if nothing is known of it."""
        scenario = self._scenario(row)
        found = self._of_outcome(row, scenario) if row["kind"] == OUTCOME else self._of_call(row, scenario)
        return row if found is None else {**row, "label": found}

    def _of_call(self, row: Json, scenario: Scenario | None) -> Json | None:
        call, before = call_of(row), self._before(row)
        problem = next((each for each in self._problems(row, call) if each.blocking), None)
        if problem is not None:
            return {"label": "deterministic_invalid", "by": "check", "why": f"{problem.code}: {problem.message}"[:300]}
        if scenario is None:
            return None
        return {"label": label_call(scenario, call, before), "by": "scenario", "why": ""}

    def _of_outcome(self, row: Json, scenario: Scenario | None) -> Json | None:
        """Judged by the calls that could run: one that could not was a mistake without effect, and has its own row."""
        if scenario is None:
            return None
        ended, tools = row["outcome"]["ended"], self._toolset(row)
        if ended != "answer":
            return {"label": "incomplete", "by": "scenario", "why": f"ended by {ended}"}
        found = score_calls(scenario, [call for call in calls_before(row) if not check(call, tools)])
        wrong: list[str] = [label for label in found.labels if label != "valid"]
        why = ", ".join([f"not called: {name}" for name in found.missing] + wrong)
        return {"label": "valid" if found.complete else "incomplete", "by": "scenario", "why": why[:300]}

    def _problems(self, row: Json, call: Call) -> list[Problem]:
        """Those said when the call was captured, and those that it has now."""
        return blocking_of(row) + check(call, self._toolset(row))

    def _toolset(self, row: Json) -> Toolset | None:
        return tools_of(row) or None  # without any, names are not checked

    def _before(self, row: Json) -> list[Call]:
        if "messages" in row:
            return calls_before(row)
        if row["example_group_id"] != self._group:
            self._group, self._calls = row["example_group_id"], []
        before = list(self._calls)
        self._calls.append(call_of(row))
        return before

    def _scenario(self, row: Json) -> Scenario | None:
        trace = row["proxy_trace"]
        name, scenario = trace.get("domain"), trace.get("scenario")
        if name not in self._domains:
            self._domains[name] = built_in_domain(name) if name in built_in_names() else None
        domain = self._domains[name]
        found = domain.by_name.get(scenario) if domain is not None else None
        return None if found is not None and found.kind == "open" else found


def calls_before(row: Json) -> list[Call]:
    """The calls of the conversation before this one, in order, its own turn's included."""
    own = row["proxy_trace"].get("call_index") if row["kind"] != OUTCOME else 0
    turn = (row.get("assistant") or {}).get("tool_calls") or []
    earlier = [message for message in conversation_before(row) if message.get("role") == "assistant"]
    said = [each for message in earlier for each in _calls_in(message)]
    return [call for each in [*said, *turn[:own]] if (call := _call(each)) is not None]


def _calls_in(message: Json) -> list[Any]:
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else []


def _call(entry: Any) -> Call | None:
    """A call of the history; None if it could not be read."""
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    given = function.get("arguments")
    arguments = decode(given, MAX_DEPTH) if isinstance(given, str) and given.strip() else given or {}
    return Call(function["name"], arguments, "") if isinstance(arguments, dict) else None


# -- files -------------------------------------------------------------------------------------------------------------


class LabelWork:
    """The rows of a part with their labels. Rows that do not tell their history need the rows before them: `in_order`
    says that the parts come one after the other, to one and the same."""

    def __init__(self, domains: Sequence[Domain], *, in_order: bool) -> None:
        self.key = f"label {digest(pickle.dumps(list(domains))).hex()}"
        self._in_order = in_order
        self._labeller = Labeller(domains)

    def __call__(self, batch: RowBatch) -> RowOutcome:
        made, lines, counts = RowOutcome(), list[bytes](), Counter[str]()
        for number, row in batch.rows():
            made.rows += 1
            why = first_fault(row, SCHEMA, FORGE)
            if why or isinstance(row, LineFault):
                made.add_fault(number, why)
                continue
            if "messages" not in row and not self._in_order:
                raise OutOfOrder
            labelled = self._labeller.label(row)
            counts[labelled["label"]["label"] if "label" in labelled else "unlabelled"] += 1
            lines.append(encode_row(labelled))
        made.data, made.counts = b"".join(lines), dict(counts)
        return made


class OutOfOrder(Exception):
    """There are rows that are judged by those before them, so that they cannot be worked on apart."""


def label_files(
    paths: Iterable[str | Path],
    output: str | Path,
    *,
    domains: Iterable[Domain] = (),
    engine: str = "local",
    jobs: int | None = None,
    resume: bool = False,
    seen: Seen | None = None,
    force: bool = False,
) -> Counter[str]:
    """Writes the rows with their labels, found without a model: by `check`, and by what the scenario of a row takes for
    right. Gives how many got which.

    - `paths`: captures.
    - `output`: the file.
    - `domains`: those of your own; the built-in ones are always known.
    - `engine`, `jobs`, `resume`: who works on the rows ("local" or "ray"), how many at a time, and whether a run that
      was broken off is gone on with.
    - `seen`, `force`: as in `export`.

    Raises `BadRows`.
    """
    own, how = list(domains), RowRun(engine, jobs, resume, seen)
    files = how.sources(paths)
    with output_sink(output, LABELLED, files, resume=resume, force=force) as sink:
        try:
            return how.map(files, LabelWork(own, in_order=False), sink).counts
        except OutOfOrder:
            return RowRun("local", 1, seen=seen).map(files, LabelWork(own, in_order=True), sink).counts
