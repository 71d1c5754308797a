"""The work of `rightcall check --rows` and `repair --rows`: the calls of each row, judged or put right, as one line.

    check     {"id": 7, "calls": 1, "refused": 0, "problems": []}
    repair    {"id": 7, "calls": [...], "refused": [], "problems": []}

A row holds what `rightcall check` takes, alone or under a key that replies are called by.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rightcall.datasets.rows.batches import RowBatch
from rightcall.datasets.rows.outcomes import RowOutcome
from rightcall.datasets.rows.reply_lines import FaultLine, written
from rightcall.datasets.rows.row_fields import RowKeys, id_of, reply_of, told, tools_of_row
from rightcall.datasets.rows.sent_calls import Judged, judged, sent_in
from rightcall.errors import CallerError
from rightcall.storage.file_kinds import json_lines
from rightcall.storage.jsonl import LineFault
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Problem

_KEYS = {"calls", "refused", "problems"}
CHECKED = json_lines("file that `check --rows` wrote", "id", also=lambda row: "error" in row or row.keys() >= _KEYS)
REPAIRED = json_lines("file that `repair --rows` wrote", "id", also=lambda row: "error" in row or row.keys() >= _KEYS)


class CallsLine(msgspec.Struct):
    """What is written of the calls of a row: their numbers, or themselves."""

    id: Any
    calls: int | list[Call]
    refused: int | list[Call]
    problems: list[Problem]


class CallsWork:
    """Judges the calls of each row against `tools`, or against those that it declares, repaired as `policy` allows."""

    def __init__(
        self, key: str, keys: RowKeys, tools: Toolset | None, policy: str, gives: Literal["counts", "calls"]
    ) -> None:
        self.key, self._keys, self._tools, self._policy, self._gives = key, keys, tools, policy, gives
        self._looks_for_tools = tools is None or keys.tools is not None

    def __call__(self, batch: RowBatch) -> RowOutcome:
        made = RowOutcome()
        lines: list[bytes] = []
        calls = refused = repaired = 0
        for number, row in batch.rows():
            found = self._judged(row)
            if isinstance(found, FaultLine):
                made.fault(number, found.error)
                lines.append(written(found))
                continue
            id, each = found
            lines.append(written(self._line(id, each)))
            may_run = sum(one.call.ok for one in each)
            calls, refused = calls + may_run, refused + len(each) - may_run
            repaired += sum(bool(one.call.repairs) for one in each)
        made.data, made.rows = b"".join(lines), len(lines)
        made.counts = {"calls": calls, "refused": refused, "repaired": repaired}
        return made

    def _judged(self, row: Json | LineFault) -> tuple[Any, list[Judged]] | FaultLine:
        if isinstance(row, LineFault):
            return FaultLine(None, row.message)
        id = id_of(row, self._keys)
        tools = tools_of_row(row, self._keys) if self._looks_for_tools else None
        tools = self._tools if tools is None else tools
        if tools is None:
            return FaultLine(id, "it declares no tools; give them with --tools, or say where they stand: --tools-key")
        try:
            return id, judged(self._sent(row), tools, self._policy)
        except CallerError as error:
            return FaultLine(id, str(error))

    def _sent(self, row: Json) -> list[Call]:
        """The calls of the row itself, or of what stands where replies do."""
        if self._keys.text is not None:
            return sent_in(told(row, self._keys.text))
        try:
            return sent_in(row)
        except CallerError as error:
            found = reply_of(row, self._keys)
            if found is row or isinstance(found, str):
                raise error
            return sent_in(found)

    def _line(self, id: Any, found: list[Judged]) -> CallsLine:
        problems = [problem for each in found for problem in each.problems]
        runs = [each.call for each in found if each.call.ok]
        rest = [each.call for each in found if not each.call.ok]
        if self._gives == "counts":
            return CallsLine(id, len(runs), len(rest), problems)
        return CallsLine(id, runs, rest, problems)
