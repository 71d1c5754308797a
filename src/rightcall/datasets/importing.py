"""`dataset import`: convert logs of other programs to rows of a capture.

Workers read each line by itself. Lines that belong together (a request and its result, the rows of one conversation)
are grouped and read once more. The parent then gives each row its conversation, in the order of the lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import msgspec
from msgspec.structs import replace

from rightcall.capture.captured_rows import unix_ms
from rightcall.datasets.log_rows import ImportOptions, import_line
from rightcall.datasets.logs import KINDS, find_join_key, resolve_log_kind
from rightcall.datasets.row_files import IMPORTED, GroupedRows, RowRun, Scratch, Seen, Where, digest, output_sink
from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.sinks import RowSpool, Sink, pack_frame
from rightcall.datasets.rows.sources import RowBatch, RowSource
from rightcall.datasets.rows.stores import store_of
from rightcall.formats import find
from rightcall.formats.registered import FormatCarrier
from rightcall.storage.jsonl import LineFault, encode_row
from rightcall.tools.toolset import Toolset
from rightcall.types import Json

_WRITTEN_BYTES = 1 << 18  # bytes that are written at a time
_MOST_JOINED = 10_000  # lines that are joined to one; later ones are ignored
Report = Callable[[Where, str], None]


def import_files(
    paths: Iterable[str | Path],
    output: str | Path,
    *,
    kind: str = "auto",
    tools: Toolset | None = None,
    format: str = "auto",
    repair: str = "safe",
    rescue: str = "safe",
    reasoning_calls: str = "safe",
    model: str = "unknown",
    refused: Callable[[Where, str], None],
    passed_over: Callable[[Where, str], None] | None = None,
    engine: str = "local",
    jobs: int | None = None,
    resume: bool = False,
    seen: Seen | None = None,
    force: bool = False,
) -> Counter[str]:
    """Write logs of other programs as rows of ours, through the same reading, repair and check as a live model. Return
    counts of what was found.

    - `paths`: files of JSON lines: cassettes, batches, logs, datasets; a file may hold lines of several kinds.
    - `output`: the file.
    - `kind`: the kind of the lines; "auto" detects it by their keys.
    - `tools`: the tools that could be called, where the logs do not have them.
    - `format`, `repair`, `rescue`, `reasoning_calls`: as in `parse`.
    - `model`: the model's name, where the logs do not have it. A time that they do not have is that of the file.
    - `refused`: is called with the place and the reason of each line in which nothing is found.
    - `passed_over`: is called with the place and the reason of each valid line without a conversation, such as the head
      of a cassette.
    - `engine`, `jobs`, `resume`: as in `label_files`.
    - `seen`, `force`: as in `export`.

    Raise `CallerError` for an unknown `kind`.
    """
    run = RowRun(engine, jobs, resume, seen)
    sources = run.sources(paths)
    options = ImportOptions(
        kind=resolve_log_kind(kind),
        tools=tools,
        format=format if format == "auto" else find(format),
        repair=repair,
        rescue=rescue,
        reasoning_calls=reasoning_calls,
        model=model,
    )
    with (
        output_sink(output, IMPORTED, sources, force=force) as sink,
        RowSpool(output, "read", resume=resume) as single,
        RowSpool(output, "joined", resume=resume) as joined,
        Scratch("CREATE TABLE ends (key BLOB PRIMARY KEY, name TEXT) WITHOUT ROWID", "BEGIN") as scratch,
    ):
        conversations = _Conversations(scratch, sources, refused, passed_over or (lambda where, reason: None))
        sink.begin("import")
        times = [store_of(source.path).time_ms(source.path) or unix_ms() for source in sources]
        run.map(sources, _ImportWork(options, times), single)
        with GroupedRows(single, _TO_JOIN, most=_MOST_JOINED) as grouped:
            run.map([grouped], _JoinedImportWork(options, times), joined)
        _write_blocks(conversations.lines(chain(_read_frames(single), _read_frames(joined))), sink)
        sink.finish()
    return conversations.counts


def _write_blocks(lines: Iterator[bytes], sink: Sink) -> None:
    """Write the encoded lines to the sink, in order, in blocks of at least 256 KiB; the last one may be smaller."""
    pending, size = list[bytes](), 0
    for line in lines:
        pending.append(line)
        size += len(line)
        if size >= _WRITTEN_BYTES:
            sink.write(b"".join(pending), {})
            pending, size = [], 0
    sink.write(b"".join(pending), {})


# -- the work on the lines of a part -----------------------------------------------------------------------------------

_IMPORTED, _TO_JOIN = 0, 1  # tags of frames: the rows of a line, and a line that is joined with others
_NO_GROUP = "\0"
_GROUP_GAP = b'"example_group_id":""'


class _ImportedRow(msgspec.Struct, array_like=True):
    """An encoded row, in two pieces around the name of its group, which a worker does not know. `suffix` of the name
    tells the choices of one answer apart."""

    before: bytes
    after: bytes
    suffix: str

    def line(self, group: str) -> bytes:
        """Return the encoded line of the row with the name of its conversation, `group`, filled in."""
        return self.before + encode_row({"example_group_id": group})[1:-2] + self.after


class _ImportedFrame(msgspec.Struct, array_like=True):
    """The rows of a line, or the `reason` there are none. `group` is the name of the conversation where the log has
    one, `place` the source and line of the first of several joined lines; `histories` and `end` are those of
    `ImportedLine`."""

    rows: list[_ImportedRow]
    counts: dict[str, int]
    histories: list[bytes]
    end: bytes
    reason: str
    is_refused: bool
    group: str = ""
    place: tuple[int, int] | None = None


_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(_ImportedFrame).decode


class _ImportWork(FormatCarrier):
    """Read the rows of each line that stands alone. `times` of the sources are used for lines without a time."""

    def __init__(self, options: ImportOptions, times: Sequence[int]) -> None:
        self._options, self._times = options, times
        tools = None if options.tools is None else options.tools.definitions()
        values = [getattr(options, name) for name in options.__struct_fields__ if name != "tools"]
        self.key = f"import {digest(repr((values, tools))).hex()}"

    def __call__(self, batch: RowBatch) -> RowOutcome:
        """Return a frame for each line of a part: its imported rows or, for a line that is joined with others, the line
        itself."""
        outcome, frames = RowOutcome(), list[bytes]()
        options = replace(self._options, at=self._times[batch.source])
        for number, row in batch.rows():
            outcome.rows += 1
            kind, key = ("", "") if isinstance(row, LineFault) else find_join_key(row, options.kind)
            if key:
                frames.append(pack_frame(_TO_JOIN, batch.line(number), batch.data(number), digest(f"{kind}\0{key}")))
            else:
                frames.append(pack_frame(_IMPORTED, batch.line(number), _ENCODE(_make_import_frame(row, options))))
        outcome.data = b"".join(frames)
        return outcome


class _JoinedImportWork(_ImportWork):
    """Read the rows of lines that belong together, joined to one line."""

    def __call__(self, batch: RowBatch) -> RowOutcome:
        """Return a frame with the imported rows of each group of lines, joined to one line. Each row of the batch is a
        group, `{"rows": [...], "place": [source, line]}`."""
        outcome, frames = RowOutcome(), list[bytes]()
        for number, group in batch.rows():
            assert isinstance(group, dict)
            outcome.rows += 1
            kind, _ = find_join_key(group["rows"][0], self._options.kind)
            join = KINDS[kind].join
            assert join is not None
            options = replace(self._options, kind=kind, at=self._times[group["place"][0]])
            frame = replace(_make_import_frame(join(group["rows"]), options), place=group["place"])
            frames.append(pack_frame(_IMPORTED, number, _ENCODE(frame)))
        outcome.data = b"".join(frames)
        return outcome


def _make_import_frame(row: Json | LineFault, options: ImportOptions) -> _ImportedFrame:
    """Import one line and return its encoded rows without the name of their group, its counts, and the reason if it has
    no rows. Invalid lines raise nothing."""
    line = import_line(row, _NO_GROUP, options)
    group: str = line.rows[0]["example_group_id"] if line.rows else _NO_GROUP
    rows = []
    for each in line.rows:
        before, _, after = encode_row({**each, "example_group_id": ""}).partition(_GROUP_GAP)
        rows.append(_ImportedRow(before, after, each["example_group_id"].removeprefix(group)))
    calls = sum("candidate_call" in each for each in line.rows)
    counts = {
        "calls": calls,
        "answers": len(line.rows) - calls,
        "repairs": sum(len(each.get("repairs", ())) for each in line.rows),
        "problems": sum(len(each["problems"]) for each in line.rows),
    }
    name = "" if group == _NO_GROUP else group
    return _ImportedFrame(rows, counts, line.histories, line.end, line.reason, line.is_refused, name)


def _read_frames(spool: RowSpool) -> Iterator[tuple[int, int, _ImportedFrame]]:
    """Yield the source, the line number and the frame of each imported line in the spool; lines that are still to be
    joined are skipped."""
    for each in spool.frames():
        if each.tag == _IMPORTED:
            frame = _DECODE(each.data)
            source, line = frame.place or (each.source, each.line)
            yield source, line, frame


# -- the conversation of each row --------------------------------------------------------------------------------------


class _Conversations:
    """Names the conversation of each line. An exchange whose history is the end of an earlier one continues that one's
    conversation; a second such exchange is another conversation. The ends are on disk."""

    def __init__(self, scratch: Scratch, sources: list[RowSource], refused: Report, passed_over: Report) -> None:
        self._ends, self._names = scratch.db, [source.name for source in sources]
        self._refused, self._passed_over = refused, passed_over
        self.counts: Counter[str] = Counter()

    def lines(self, frames: Iterable[tuple[int, int, _ImportedFrame]]) -> Iterator[bytes]:
        """Yield the encoded rows of the frames (source, line, frame) with the names of their conversations, and add
        them to `counts`. A line without rows is passed to the callback for refused or passed-over lines."""
        for source, line, frame in frames:
            where = Where(self._names[source], line)
            if not frame.rows:
                self.counts["refused" if frame.is_refused else "passed_over"] += 1
                (self._refused if frame.is_refused else self._passed_over)(where, frame.reason)
                continue
            own = frame.group or f"import-{digest(where.path).hex()[:8]}-{where.number:08d}"
            name = self._name_conversation(own, frame)
            self.counts["conversations"] += name == own
            self.counts.update(frame.counts)
            yield from [row.line(own + row.suffix if row.suffix else name) for row in frame.rows]

    def _name_conversation(self, own: str, frame: _ImportedFrame) -> str:
        """Return the name of the conversation that a line continues, or `own` if it begins one. The end of an exchange
        is recorded, so that one later line can continue it."""
        if not frame.end:
            return own
        name = next((name for end in reversed(frame.histories) if (name := self._take_conversation(end))), own)
        self._ends.execute("INSERT OR REPLACE INTO ends VALUES (?, ?)", (frame.end, name))
        return name

    def _take_conversation(self, end: bytes) -> str:
        """Return the name of the conversation with this recorded end, and remove the end; "" if it is not recorded."""
        found = self._ends.execute("DELETE FROM ends WHERE key = ? RETURNING name", (end,)).fetchone()
        return found[0] if found else ""
