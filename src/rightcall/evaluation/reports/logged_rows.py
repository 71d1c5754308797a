"""The row worker of `rightcall report`: parse the replies of a part of a log, and tally them.

    with TallySink(sources) as sink:
        map_rows(sources, TallyWork(key, keys, tools, options), sink)
    sink.tally

A row is an input of `parse --rows` (a text, or a provider's answer), a line of its output, or a row of a capture. Rows
of the latter two kinds have been parsed before, and are not parsed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from rightcall.capture.captured_rows import FORGE, OUTCOME, SCHEMA, call_of, problems_of, tools_of
from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.replies import (
    NoReply,
    ParseOptions,
    ReplyWork,
    RowKeys,
    find_row_model,
    require_reply,
    value_at,
)
from rightcall.datasets.rows.sinks import RowSpool, unfinished_path
from rightcall.datasets.rows.sources import RowBatch, RowSource
from rightcall.datasets.rows.stores import STDIN
from rightcall.datasets.schemas import faults
from rightcall.errors import FileFailed
from rightcall.evaluation.reports.findings import LoggedReply, Reread
from rightcall.evaluation.reports.reply_tally import ReplyTally, pack_tally, unpack_tally
from rightcall.formats import FORMATS
from rightcall.formats.spec import Format
from rightcall.parsing.parser import parse
from rightcall.storage.jsonl import LineFault
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Part, Problem, Reply, Span, Text

_SERVER_KEYS = ("server", "backend", "provider", "engine", "server_name", "base_url", "endpoint", "api_base", "host")
_CONTAINERS = ("request", "metadata", "meta")
_PARSED_LINE_KEYS = frozenset(("content", "calls", "refused", "problems", "format", "api"))


class TallyWork(ReplyWork):
    """Work that counts the replies of a batch of rows. `server_key` is the key of the server's name in a row; None
    tries common keys."""

    def __init__(
        self, key: str, keys: RowKeys, tools: Toolset | None, options: ParseOptions, *, server_key: str | None = None
    ) -> None:
        super().__init__(key, keys, tools, options)
        self._server_key = server_key
        self._format_name = options.format.name if isinstance(options.format, Format) else options.format

    def __call__(self, batch: RowBatch) -> RowOutcome:
        outcome, tally = RowOutcome(), ReplyTally()
        for number, row in batch.rows():
            outcome.rows += 1
            try:
                tally.add(self.read_row(row, batch.line(number)))
            except NoReply as error:
                outcome.add_fault(number, str(error))
        tally.bad = outcome.bad
        outcome.data = pack_tally(tally)
        return outcome

    def read_row(self, row: Json | LineFault, line: int = 0) -> LoggedReply:
        """Return the reply of a row of a log, parsed unless the row is a parsed line or a capture; `line` is its
        number. Raises `NoReply` if the row is invalid or has none."""
        if isinstance(row, LineFault):
            raise NoReply(row.message)
        if row.get("schema_version") in (SCHEMA, FORGE):
            return _read_capture_row(row, line)
        if row.keys() == {"id", "error"} and isinstance(row["error"], str):
            raise NoReply(row["error"])
        model, server = _text(find_row_model(row, self._keys)), _server_name(row, self._server_key)
        if row.keys() >= _PARSED_LINE_KEYS:
            reply = _read_parsed_line(row)
            return LoggedReply(reply=reply, model=model, server=server, format=_format_name(reply), line=line)
        reply = self._read_reply(row)
        found = require_reply(row, self._keys)
        source = found if isinstance(found, str) and not reply.api else None
        return LoggedReply(
            reply=reply,
            model=model,
            server=server,
            format=_format_name(reply, self._format_name),
            line=line,
            source=source,
            reread=None if source is None else lambda: self._parse_spans(row, source),
        )

    def _parse_spans(self, row: Json, source: str) -> Sequence[Span]:
        """Parse the text `source` of a row again, with the row's tools and finish reason, and return its spans."""
        options = {**self._options, "spans": True, "tools": self._choose_tools(row), "finish": self._choose_finish(row)}
        return parse(source, **options).spans or ()


def _format_name(reply: Reply, named: str = "auto") -> str:
    """Return the name of the format that a reply is counted under. For a reply without calls that no API sent, it is
    the format that the user `named`; "" if that is "auto"."""
    if reply.api or reply.attempts:
        return reply.format
    return "" if named == "auto" else FORMATS[named].name if named in FORMATS else named


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)[:200]


def _server_name(row: Json, key: str | None) -> str:
    """Return the name of a row's server, under the `key` or else under a common key; of a URL only the host, since the
    rest may contain a secret. "" if there is none."""
    name = _text(value_at(row, key) if key is not None else _find_server(row))
    if "://" not in name:
        return name
    try:
        return urlsplit(name).netloc.rpartition("@")[2]
    except ValueError:  # not a valid URL
        return ""


def _find_server(row: Json) -> Any:
    """Return the first text under one of the usual keys for a server (`server`, `base_url` ...), in the row, its
    request or its metadata; else None."""
    for each in (row, *[inner for name in _CONTAINERS if isinstance(inner := row.get(name), dict)]):
        for name in _SERVER_KEYS:
            if isinstance(each.get(name), str):
                return each[name]
    return None


# -- parsed rows and captures ------------------------------------------------------------------------------------------


class _Line(msgspec.Struct):
    """The keys of a line of `parse --rows` that a report uses."""

    calls: tuple[Call, ...]
    refused: tuple[Call, ...]
    problems: tuple[Problem, ...]
    content: str = ""
    format: str = ""
    finish: str | None = None
    api: str = ""


def _read_parsed_line(row: Json) -> Reply:
    """Return the reply in a line of the output of `parse --rows`. Raises `NoReply` if the line is invalid."""
    try:
        line = msgspec.convert(row, _Line)
    except (msgspec.ValidationError, ValueError, TypeError) as error:
        raise NoReply(f"not a valid line of `parse --rows`: {error}") from None
    content = (Text(line.content),) if line.content else ()
    parts: tuple[Part, ...] = (*content, *line.calls, *line.refused)
    return Reply(parts, line.problems, line.format, finish=line.finish, api=line.api)


def _read_capture_row(row: Json, line: int) -> LoggedReply:
    """Return the reply of a capture's row at this `line`: one call of an answer, or the end of a conversation.

    An answer with several calls has several rows, of which only the first counts as a reply (`is_first`). Raises
    `NoReply` if the row is invalid.
    """
    if problems_of_schema := faults(row):
        raise NoReply(f"not a valid row of a capture: {problems_of_schema[0]}")
    trace, problems = row["proxy_trace"], problems_of(row)
    is_outcome = row["kind"] == OUTCOME
    index = trace.get("call_index") or 0
    if is_outcome:
        ended, text = row["outcome"]["ended"], row["outcome"]["text"]
        parts: tuple[Part, ...] = (Text(text),) if text else ()
        is_first, finish = ended != "max_turns", "error" if ended == "error" else trace.get("finish_reason")
    else:
        own = [problem for problem in problems if problem.call in (index, None) and problem.blocking]
        parts = (msgspec.structs.replace(call_of(row), problems=tuple(own)),)
        is_first, finish = index == 0, trace.get("finish_reason")
        problems = [msgspec.structs.replace(each, call=0) if each.call == index else each for each in problems]
    source = row.get("reply")
    return LoggedReply(
        reply=Reply(parts, tuple(problems), row.get("format") or "", finish=finish),
        model=trace["model"],
        server=_server_name(row, None),
        format=row.get("format") or "",
        line=line,
        source=source if isinstance(source, str) else None,
        reread=_make_span_reader(row) if isinstance(source, str) else None,
        is_first=is_first,
    )


def _make_span_reader(row: Json) -> Reread:
    """Return a function without parameters that parses the raw reply of a capture's row again, in the row's format and
    with its tools, and returns its spans."""
    format = row.get("format") or "auto"
    name = format if format in FORMATS else "auto"
    return lambda: parse(row["reply"], format=name, tools=tools_of(row), spans=True).spans or ()


# -- merging -----------------------------------------------------------------------------------------------------------


class TallySink:
    """Merges the tallies of batches in order, and gives samples the line numbers of their file.

    During the run, the tallies are also stored in `$XDG_STATE_HOME/rightcall/unfinished`, so that `resume` can
    continue. If that folder is not writable, a run without `resume` counts in memory only.
    """

    def __init__(self, sources: Sequence[RowSource], *, resume: bool = False) -> None:
        self.tally = ReplyTally()
        self._names, self._resume = [source.name for source in sources], resume
        self._is_resumable = all(source.path != STDIN for source in sources)
        self._open, self._spool = ExitStack(), None  # type: tuple[ExitStack, RowSpool | None]

    def begin(self, run: str) -> list[Json]:
        """Start or resume the run with this key. Return the notes of the parts that an earlier run stored, whose
        tallies are added; [] for a new run. Raises `FileFailed` if a run to resume cannot be read."""
        if not self._is_resumable:
            return []
        spool = RowSpool(unfinished_path(run), "tallies", resume=self._resume)
        try:
            notes = self._open.enter_context(spool).begin(run)
        except FileFailed:
            if self._resume:
                raise
            return []
        for data, note in spool.parts():
            self._merge(data, note)
        self._spool = spool
        return notes

    def write(self, data: bytes, note: Json) -> None:
        """Add a tally that `pack_tally` encoded, and store it with its `note` for a resumed run."""
        if self._spool is not None:
            self._spool.write(data, note)
        self._merge(data, note)

    def _merge(self, data: bytes, note: Json) -> None:
        """Decode a tally and add it to the total; `note` names the index of its file and the number of lines before
        it."""
        self.tally.merge(unpack_tally(data, self._names[note["source"]], note["before"]))

    def finish(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.__exit__(kind, error, at)
