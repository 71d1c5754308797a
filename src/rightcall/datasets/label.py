"""`dataset label`: labels of rows, found without a model.

A call with a blocking problem is `deterministic_invalid`, as `check` reports it. A call of a known scenario is compared
with the calls that the scenario accepts (`capture/score.py`). The end of a conversation is `valid` if every required
call was made and no call that ran was wrong, else `incomplete`. Rows of unknown scenarios are not changed.

    labelled = Labeller().label(row)      ->  row["label"] = {"label": "valid", "by": "scenario", "why": ""}
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rightcall.capture.captured_rows import OUTCOME, blocking_of, call_of, conversation_before, tools_of
from rightcall.capture.domain import Domain, Scenario, built_in_domain, built_in_names
from rightcall.capture.score import label_call, score_calls
from rightcall.datasets.row_files import LABELLED, RowRun, Seen, capture_rows, digest, output_sink
from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.sources import RowBatch
from rightcall.storage.jsonl import encode_row
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.tools.checks import check
from rightcall.types import Call, Json


class Labeller:
    """Labels rows one at a time. `domains` are those of the user; the built-in ones are always known."""

    def __init__(self, domains: Iterable[Domain] = ()) -> None:
        self._domains: dict[str, Domain | None] = {domain.name: domain for domain in domains}
        self._group = ""  # of the last row without a history
        self._calls: list[Call] = []

    def label(self, row: Json) -> Json:
        """Return a copy of the row with a `label`, or the row unchanged if none can be found. Rows without `messages`
        must come in their order, since the calls before them are remembered."""
        scenario = self._find_scenario(row)
        label = self._label_outcome(row, scenario) if row["kind"] == OUTCOME else self._label_call(row, scenario)
        return row if label is None else {**row, "label": label}

    def _label_call(self, row: Json, scenario: Scenario | None) -> Json | None:
        """Return the label of a call: `deterministic_invalid` for a blocking problem, else that of the scenario; None
        if there is no problem and the scenario is unknown."""
        call, before = call_of(row), self._calls_before(row)
        problems = blocking_of(row) + check(call, tools_of(row) or None)  # without tools, names are not checked
        problem = next((each for each in problems if each.blocking), None)
        if problem is not None:
            return {"label": "deterministic_invalid", "by": "check", "why": f"{problem.code}: {problem.message}"[:300]}
        if scenario is None:
            return None
        return {"label": label_call(scenario, call, before), "by": "scenario", "why": ""}

    def _label_outcome(self, row: Json, scenario: Scenario | None) -> Json | None:
        """Return the label of the end of a conversation: "valid" if it ended with an answer and its runnable calls are
        all right and complete, else "incomplete"; None if the scenario is unknown. Calls with problems are not counted:
        they have no effect, and rows of their own."""
        if scenario is None:
            return None
        ended, tools = row["outcome"]["ended"], tools_of(row) or None
        if ended != "answer":
            return {"label": "incomplete", "by": "scenario", "why": f"ended by {ended}"}
        score = score_calls(scenario, [call for call in calls_before(row) if not check(call, tools)])
        wrong: list[str] = [label for label in score.labels if label != "valid"]
        why = ", ".join([f"not called: {name}" for name in score.missing] + wrong)
        return {"label": "valid" if score.complete else "incomplete", "by": "scenario", "why": why[:300]}

    def _calls_before(self, row: Json) -> list[Call]:
        """Return the calls before the call of a row. For rows without `messages`, these are the calls of the earlier
        rows of its group, and its own call is remembered for the next row."""
        if "messages" in row:
            return calls_before(row)
        if row["example_group_id"] != self._group:
            self._group, self._calls = row["example_group_id"], []
        before = list(self._calls)
        self._calls.append(call_of(row))
        return before

    def _find_scenario(self, row: Json) -> Scenario | None:
        """Return the scenario of a row, of the user's domains or else of the built-in ones; None if it is unknown, or
        its calls are not judged (kind "open")."""
        trace = row["proxy_trace"]
        name = trace.get("domain")
        if name not in self._domains:
            self._domains[name] = built_in_domain(name) if name in built_in_names() else None
        domain = self._domains[name]
        scenario = domain.by_name.get(trace.get("scenario")) if domain is not None else None
        return None if scenario is not None and scenario.kind == "open" else scenario


def calls_before(row: Json) -> list[Call]:
    """Return the calls of the conversation before the call of a row, in order, including earlier calls of its own turn.
    Calls that cannot be parsed are left out."""
    index = row["proxy_trace"].get("call_index") if row["kind"] != OUTCOME else 0
    entries: list[Any] = []
    for message in conversation_before(row):
        if message.get("role") == "assistant" and isinstance(message.get("tool_calls"), list):
            entries += message["tool_calls"]
    entries += ((row.get("assistant") or {}).get("tool_calls") or [])[:index]
    return [call for each in entries if (call := _parse_call_entry(each)) is not None]


def _parse_call_entry(entry: Any) -> Call | None:
    """Return the call of an entry of `tool_calls`, without its exact text; None if it has no name or its arguments are
    no object. Missing arguments are {}."""
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    given = function.get("arguments")
    arguments = decode(given, MAX_DEPTH) if isinstance(given, str) and given.strip() else given or {}
    return Call(function["name"], arguments, "") if isinstance(arguments, dict) else None


# -- files -------------------------------------------------------------------------------------------------------------


class _OutOfOrderError(Exception):
    """Rows whose labels depend on the rows before them cannot be labelled in parallel."""


class _LabelWork:
    """Label the rows of a part. Rows without a history need the rows before them: `in_order` says that all parts are
    worked on by this object, one after the other."""

    def __init__(self, domains: Sequence[Domain], *, in_order: bool) -> None:
        self.key = f"label {digest(pickle.dumps(list(domains))).hex()}"
        self._in_order = in_order
        self._labeller = Labeller(domains)

    def __call__(self, batch: RowBatch) -> RowOutcome:
        """Return the encoded rows of a part with their labels, and counts by label. Raises `_OutOfOrderError` for a row
        without `messages` unless parts are worked on in order; invalid rows are recorded as faults."""
        outcome, lines, counts = RowOutcome(), list[bytes](), Counter[str]()
        for _, row in capture_rows(batch, outcome):
            if "messages" not in row and not self._in_order:
                raise _OutOfOrderError
            labelled = self._labeller.label(row)
            counts[labelled["label"]["label"] if "label" in labelled else "unlabelled"] += 1
            lines.append(encode_row(labelled))
        outcome.data, outcome.counts = b"".join(lines), dict(counts)
        return outcome


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
    """Write the rows with their labels, found without a model: by `check`, and by the calls that the scenario of a row
    accepts. Return the number of rows by label.

    - `paths`: captures.
    - `output`: the file.
    - `domains`: your own domains; the built-in ones are always known.
    - `engine`, `jobs`, `resume`: the engine that works on the rows ("local" or "ray"), the number of workers, and
      whether an interrupted run is resumed.
    - `seen`, `force`: as in `export`.

    Raise `BadRows` for rows with faults; nothing is written then.
    """
    own, run = list(domains), RowRun(engine, jobs, resume, seen)
    files = run.sources(paths)
    with output_sink(output, LABELLED, files, resume=resume, force=force) as sink:
        try:
            return run.map(files, _LabelWork(own, in_order=False), sink).counts
        except _OutOfOrderError:
            return RowRun("local", 1, seen=seen).map(files, _LabelWork(own, in_order=True), sink).counts
