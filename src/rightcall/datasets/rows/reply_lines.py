"""The work of `rightcall parse --rows`: each row's reply, read by `parse` or `read`, as one line of JSON.

    {"id": 7, "model": null, "content": "On it.", "reasoning": "", "calls": [...], "refused": [], "problems": [], ...}

Calls that came without an id are numbered, `call_0_0`, so that the same row gives the same line in every run. A row in
which no reply is found gives a line too, `{"id": 8, "error": "..."}`, so that line n is about row n.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rightcall.datasets.rows.batches import RowBatch
from rightcall.datasets.rows.outcomes import RowOutcome
from rightcall.datasets.rows.row_fields import (
    NoReply,
    RowKeys,
    finish_of,
    id_of,
    is_of_provider,
    model_of,
    reply_of,
    tools_of_row,
)
from rightcall.formats.registered import FormatCarrier
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.parsing.parser import parse
from rightcall.providers.provider_answers import read
from rightcall.storage.file_kinds import json_lines
from rightcall.storage.jsonl import LineFault, encode_row
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Problem, Reply

_encode = msgspec.json.Encoder().encode


class ReplyLine(msgspec.Struct):
    """What is written of a reply: what `Reply.to_json` gives, but for the parts, which say it again in order."""

    id: Any
    model: Any
    content: str
    reasoning: str
    calls: tuple[Call, ...]
    refused: tuple[Call, ...]
    problems: tuple[Problem, ...]
    format: str
    done: str | None
    finish: str | None
    usage: Json | None
    api: str


class FaultLine(msgspec.Struct):
    """What is written of a row that holds nothing to work on."""

    id: Any
    error: str


REPLIES = json_lines(
    "file of replies", "id", also=lambda row: "error" in row or {"content", "calls", "problems", "format"} <= row.keys()
)


class RowReading(msgspec.Struct, frozen=True):
    """How replies are read: the options of `parse`."""

    format: str | Format = "auto"
    reasoning: str = "auto"
    repair: str = "safe"
    rescue: str = "safe"
    reasoning_calls: str = "safe"
    finish: str | None = None


class ReplyWork(FormatCarrier):
    """Reads the reply of each row. `tools` are those of rows that declare none, or of all where no key is told."""

    def __init__(self, key: str, keys: RowKeys, tools: Toolset | None, options: RowReading) -> None:
        self.key, self._keys, self._tools = key, keys, tools
        self._options: Json = {name: getattr(options, name) for name in options.__struct_fields__}
        self._finish = self._options.pop("finish")
        self._looks_for_tools = tools is None or keys.tools is not None

    def __call__(self, batch: RowBatch) -> RowOutcome:
        made = RowOutcome()
        lines: list[bytes] = []
        calls = refused = repaired = 0
        for number, row in batch.rows():
            line = self._line(row)
            lines.append(written(line))
            if isinstance(line, FaultLine):
                made.fault(number, line.error)
                continue
            calls += len(line.calls)
            refused += len(line.refused)
            repaired += len([call for call in (*line.calls, *line.refused) if call.repairs])
        made.data, made.rows = b"".join(lines), len(lines)
        made.counts = {"calls": calls, "refused": refused, "repaired": repaired}
        return made

    def _line(self, row: Json | LineFault) -> ReplyLine | FaultLine:
        if isinstance(row, LineFault):
            return FaultLine(None, row.message)
        id = id_of(row, self._keys)
        try:
            reply = self._read(row)
        except NoReply as error:
            return FaultLine(id, str(error))
        return line_of(id, model_of(row, self._keys), reply)

    def _read(self, row: Json) -> Reply:
        found, tools = reply_of(row, self._keys), self._tools_for(row)
        if not isinstance(found, str) or is_of_provider(found):
            reply = read(found, tools=tools, ids=Ids.numbered("call"), **self._options)
            if reply.api or not isinstance(found, str):
                return reply
        return parse(found, tools=tools, finish=self._finish_for(row), ids=Ids.numbered("call"), **self._options)

    def _tools_for(self, row: Json) -> Toolset | None:
        tools = tools_of_row(row, self._keys) if self._looks_for_tools else None
        return self._tools if tools is None else tools

    def _finish_for(self, row: Json) -> str | None:
        return self._finish or finish_of(row)


def line_of(id: Any, model: Any, reply: Reply) -> ReplyLine:
    return ReplyLine(
        id,
        model,
        reply.content,
        reply.reasoning,
        reply.calls,
        reply.refused,
        reply.problems,
        reply.format,
        reply.done,
        reply.finish,
        reply.usage,
        reply.api,
    )


def written(line: msgspec.Struct) -> bytes:
    """The line with its newline. Numbers of any size and lone surrogates stay exact."""
    try:
        return _encode(line) + b"\n"
    except (UnicodeEncodeError, OverflowError):
        return encode_row(msgspec.to_builtins(line))
