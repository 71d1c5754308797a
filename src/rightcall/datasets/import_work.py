"""The work of `dataset import` on the lines of a part, and what it says of each line to whoever puts them together.

    map_rows(sources, ImportWork(how, times), spool)       # lines that stand alone; those that do not are set aside
    map_rows([GatheredRows(spool, ASIDE, ...)], JoinedImportWork(how, times), spool)

Which conversation a line belongs to is not known here, so a row travels in two pieces, with a gap for that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from rightcall.datasets.imported_line import ImportedLine, ImportOptions, import_line
from rightcall.datasets.logs import KINDS, joined_by
from rightcall.datasets.row_files import digest
from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.sinks import pack_frame
from rightcall.datasets.rows.sources import RowBatch
from rightcall.formats.registered import FormatCarrier
from rightcall.storage.jsonl import LineFault, encode_row
from rightcall.types import Json

MADE, ASIDE = 0, 1  # tags of frames: what a line came to, and a line that belongs to others
MOST_JOINED = 10_000  # lines that belong together; those behind are left alone
_UNNAMED = "\0"
_GAP = b'"example_group_id":""'


class ImportedRow(msgspec.Struct, array_like=True):
    """A row around the gap where its group is named; `suffix` tells apart the choices of one answer."""

    before: bytes
    after: bytes
    suffix: str

    def line(self, group: str) -> bytes:
        """The row, of this group."""
        return self.before + encode_row({"example_group_id": group})[1:-2] + self.after


class ImportFrame(msgspec.Struct, array_like=True):
    """What a line came to: its rows, or `why` there are none. `group` is its name where the log says one, `place` its
    source and line where it was made of several; `ends` and `end` are where the exchange goes on and ends."""

    rows: list[ImportedRow]
    counts: dict[str, int]
    ends: list[bytes]
    end: bytes
    why: str
    is_refused: bool
    group: str = ""
    place: tuple[int, int] | None = None


_ENCODER = msgspec.msgpack.Encoder()
read_frame = msgspec.msgpack.Decoder(ImportFrame).decode


class ImportWork(FormatCarrier):
    """What each line comes to that stands alone. `times` are those of the sources, for lines that say none."""

    def __init__(self, how: ImportOptions, times: Sequence[int]) -> None:
        self._how, self._times = how, times
        tools = None if how.tools is None else how.tools.definitions()
        said = [getattr(how, name) for name in how.__struct_fields__ if name != "tools"]
        self.key = f"import {digest(repr((said, tools))).hex()}"

    def __call__(self, batch: RowBatch) -> RowOutcome:
        made, frames = RowOutcome(), list[bytes]()
        how = replace(self._how, at=self._times[batch.source])
        for number, row in batch.rows():
            made.rows += 1
            name, key = ("", "") if isinstance(row, LineFault) else joined_by(row, how.kind)
            if key:
                kept = digest(f"{name}\0{key}")
                frames.append(pack_frame(ASIDE, batch.line(number), batch.data(number), kept))
            else:
                frames.append(pack_frame(MADE, batch.line(number), _ENCODER.encode(_framed(row, how))))
        made.data = b"".join(frames)
        return made


class JoinedImportWork(ImportWork):
    """The same of lines that belong together, as one each."""

    def __call__(self, batch: RowBatch) -> RowOutcome:
        made, frames = RowOutcome(), list[bytes]()
        for number, group in batch.rows():
            assert isinstance(group, dict)
            made.rows += 1
            kind, _ = joined_by(group["rows"][0], self._how.kind)
            how = replace(self._how, kind=kind, at=self._times[group["place"][0]])
            frame = replace(_framed(_joined(kind, group["rows"]), how), place=group["place"])
            frames.append(pack_frame(MADE, number, _ENCODER.encode(frame)))
        made.data = b"".join(frames)
        return made


def _joined(kind: str, rows: list[Json]) -> Json:
    join = KINDS[kind].join
    assert join is not None
    return join(rows)


def _framed(row: Json | LineFault, how: ImportOptions) -> ImportFrame:
    made = import_line(row, _UNNAMED, how)
    own = made.rows[0]["example_group_id"] if made.rows else _UNNAMED
    rows = [_around_gap(each, own) for each in made.rows]
    group = "" if own == _UNNAMED else own
    return ImportFrame(rows, _counts(made), made.before, made.after, made.why, made.is_refused, group)


def _around_gap(row: Json, own: str) -> ImportedRow:
    before, _, after = encode_row({**row, "example_group_id": ""}).partition(_GAP)
    return ImportedRow(before, after, row["example_group_id"].removeprefix(own))


def _counts(made: ImportedLine) -> dict[str, int]:
    rows: list[Any] = made.rows
    calls = sum("candidate_call" in row for row in rows)
    repairs = sum(len(row.get("repairs", ())) for row in rows)
    return {
        "calls": calls,
        "answers": len(rows) - calls,
        "repairs": repairs,
        "problems": sum(len(row["problems"]) for row in rows),
    }
