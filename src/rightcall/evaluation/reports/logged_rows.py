"""The work of `rightcall report`: the replies of the rows of a part, read and tallied.

    with TallySink(sources) as sink:
        map_rows(sources, TallyWork(key, keys, tools, options), sink)
    sink.tally

A row is what `parse --rows` reads (a text, or a provider's answer), a line that it wrote, or a row of a capture; of the
latter two, what was read then is counted.
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
from rightcall.datasets.rows.replies import NoReply, ReplyOptions, ReplyWork, RowKeys, model_of, reply_of, value_at
from rightcall.datasets.rows.sinks import RowSpool, unfinished_path
from rightcall.datasets.rows.sources import RowBatch, RowSource
from rightcall.datasets.rows.stores import STDIN
from rightcall.datasets.schemas import faults
from rightcall.errors import FileFailed
from rightcall.evaluation.reports.logged_reply import LoggedReply, Reread
from rightcall.evaluation.reports.reply_tally import ReplyTally
from rightcall.evaluation.reports.tally_bytes import packed, unpacked
from rightcall.formats import FORMATS
from rightcall.formats.spec import Format
from rightcall.parsing.parser import parse
from rightcall.storage.jsonl import LineFault
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Part, Problem, Reply, Span, Text

_SERVERS = ("server", "backend", "provider", "engine", "server_name", "base_url", "endpoint", "api_base", "host")
_AROUND = ("request", "metadata", "meta")
_OURS = frozenset(("content", "calls", "refused", "problems", "format", "api"))


class TallyWork(ReplyWork):
    """Tallies the replies of a part. `server_key` says where the server's name stands; None finds it by name."""

    def __init__(
        self, key: str, keys: RowKeys, tools: Toolset | None, options: ReplyOptions, *, server_key: str | None = None
    ) -> None:
        super().__init__(key, keys, tools, options)
        self._server_key = server_key
        self._named = options.format.name if isinstance(options.format, Format) else options.format

    def __call__(self, batch: RowBatch) -> RowOutcome:
        made, tally = RowOutcome(), ReplyTally()
        for number, row in batch.rows():
            made.rows += 1
            try:
                tally.add(self.logged(row, batch.line(number)))
            except NoReply as error:
                made.add_fault(number, str(error))
        tally.bad = made.bad
        made.data = packed(tally)
        return made

    def logged(self, row: Json | LineFault, line: int = 0) -> LoggedReply:
        """The reply of a row. Raises `NoReply`."""
        if isinstance(row, LineFault):
            raise NoReply(row.message)
        if row.get("schema_version") in (SCHEMA, FORGE):
            return _captured(row, line)
        if row.keys() == {"id", "error"} and isinstance(row["error"], str):
            raise NoReply(row["error"])
        model, server = _word(model_of(row, self._keys)), _server(row, self._server_key)
        if row.keys() >= _OURS:
            reply = _written(row)
            return LoggedReply(reply=reply, model=model, server=server, format=_format(reply), line=line)
        reply = self._read(row)
        found = reply_of(row, self._keys)
        source = found if isinstance(found, str) and not reply.api else None
        return LoggedReply(
            reply=reply,
            model=model,
            server=server,
            format=_format(reply, self._named),
            line=line,
            source=source,
            reread=None if source is None else lambda: self._spans(row, source),
        )

    def _spans(self, row: Json, source: str) -> Sequence[Span]:
        options = {**self._options, "spans": True, "tools": self._tools_for(row), "finish": self._finish_for(row)}
        return parse(source, **options).spans or ()


def _format(reply: Reply, named: str = "auto") -> str:
    """What the reply is written in. Without a call nothing tells, unless the format was named or an API carried it."""
    if reply.api or reply.attempts:
        return reply.format
    return "" if named == "auto" else FORMATS[named].name if named in FORMATS else named


def _word(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)[:200]


def _server(row: Json, key: str | None) -> str:
    """The server's name; of an address only the host, which holds no key."""
    found = value_at(row, key) if key is not None else _named_server(row)
    name = _word(found)
    if "://" not in name:
        return name
    try:
        return urlsplit(name).netloc.rpartition("@")[2]
    except ValueError:  # an address that is none
        return ""


def _named_server(row: Json) -> Any:
    for each in (row, *[inner for name in _AROUND if isinstance(inner := row.get(name), dict)]):
        for name in _SERVERS:
            if isinstance(each.get(name), str):
                return each[name]
    return None


# -- rows that were read before ----------------------------------------------------------------------------------------


class _Line(msgspec.Struct):
    """What is used of a line that `parse --rows` wrote."""

    calls: tuple[Call, ...]
    refused: tuple[Call, ...]
    problems: tuple[Problem, ...]
    content: str = ""
    format: str = ""
    finish: str | None = None
    api: str = ""


def _written(row: Json) -> Reply:
    try:
        line = msgspec.convert(row, _Line)
    except (msgspec.ValidationError, ValueError, TypeError) as error:
        raise NoReply(f"it looks like a line of `parse --rows`, and is none: {error}") from None
    said = (Text(line.content),) if line.content else ()
    parts: tuple[Part, ...] = (*said, *line.calls, *line.refused)
    return Reply(parts, line.problems, line.format, finish=line.finish, api=line.api)


def _captured(row: Json, line: int) -> LoggedReply:
    """One call of an answer, or how a conversation ended. An answer with several calls has several rows."""
    wrong = faults(row)
    if wrong:
        raise NoReply(f"a row of a capture that is not as it should be: {wrong[0]}")
    trace, problems = row["proxy_trace"], problems_of(row)
    is_outcome = row["kind"] == OUTCOME
    index = trace.get("call_index") or 0
    if is_outcome:
        ended, said = row["outcome"]["ended"], row["outcome"]["text"]
        parts: tuple[Part, ...] = (Text(said),) if said else ()
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
        server=_server(row, None),
        format=row.get("format") or "",
        line=line,
        source=source if isinstance(source, str) else None,
        reread=_captured_spans(row) if isinstance(source, str) else None,
        is_first=is_first,
    )


def _captured_spans(row: Json) -> Reread:
    format = row.get("format") or "auto"
    known = format if format in FORMATS else "auto"
    return lambda: parse(row["reply"], format=known, tools=tools_of(row), spans=True).spans or ()


# -- parts together ----------------------------------------------------------------------------------------------------


class TallySink:
    """Where the tallies of parts are merged, in order; samples get the line that they have in their file.

    What was counted is kept on disk too while the run lasts, in `$XDG_STATE_HOME/rightcall/unfinished`, and `resume`
    goes on with it. Where that cannot be written, a run is counted in memory alone, unless it is to be gone on with.
    """

    def __init__(self, sources: Sequence[RowSource], *, resume: bool = False) -> None:
        self.tally = ReplyTally()
        self._names, self._resume = [source.name for source in sources], resume
        self._can_be_resumed = all(source.path != STDIN for source in sources)
        self._open, self._spool = ExitStack(), None  # type: tuple[ExitStack, RowSpool | None]

    def begin(self, run: str) -> list[Json]:
        if not self._can_be_resumed:
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
        if self._spool is not None:
            self._spool.write(data, note)
        self._merge(data, note)

    def _merge(self, data: bytes, note: Json) -> None:
        self.tally.merge(unpacked(data, self._names[note["source"]], note["before"]))

    def finish(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.__exit__(kind, error, at)
