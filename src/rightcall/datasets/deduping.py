"""`dataset dedupe`: every row once. The rows that stay are written as they were, in their order.

dedupe_files(["a.jsonl", "b.jsonl"], "once.jsonl")                 # the same
dedupe_files(["a.jsonl", "b.jsonl"], "once.jsonl", near=0.8)       # and those that are nearly the same
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from rightcall.capture.captured_rows import FORGE, SCHEMA, LineFault
from rightcall.datasets.label import sound
from rightcall.datasets.row_files import BadRows, Seen, Where, read_all
from rightcall.datasets.twins import Twins, fingerprint
from rightcall.datasets.written_kinds import DEDUPED
from rightcall.errors import CallerError
from rightcall.files.jsonl import read_lines
from rightcall.files.whole_files import WholeFile
from rightcall.types import Json

LEAST = 0.3  # how alike two rows may be asked to be: below, everything is like everything


class Deduped(msgspec.Struct, frozen=True):
    """What came of it: how many `rows` there were, how many are `kept`, and how many were dropped as the `same` as an
    earlier one, or `near` to it; `output` is where they are."""

    rows: int
    kept: int
    same: int
    near: int
    output: str


def dedupe_files(
    paths: Iterable[str | Path],
    output: str | Path,
    *,
    near: float | None = None,
    keys: Sequence[str] = (),
    seen: Seen | None = None,
    force: bool = False,
) -> Deduped:
    """Writes every row once: the first of several that are the same. Of captures whole conversations are compared, by
    what a trainer sees of them; of other rows, each by itself. Memory does not grow with the number of rows but for one
    bit of each.

    - `paths`: files of rows, of any schema or none.
    - `output`: the file; rows are in it as they were, in their order.
    - `near`: how alike two rows must be to be taken for the same, from 0.3 to 1; None: they must be the same. Calls
      must be the same in any case, but for the prose in their arguments, and labels too.
    - `keys`: compare only what stands at these paths (`text`, `request.messages`).
    - `seen`, `force`: as in `export`.

    Raises `BadRows`.
    """
    if near is not None and not LEAST <= near <= 1:
        raise CallerError(f"how alike rows must be is a number from {LEAST} to 1, not {near}")
    files, twins = [Path(path) for path in paths], Twins(near)
    with WholeFile(output, DEDUPED, sources=files, force=force) as out:
        for where, row in read_all(files, seen=seen):
            twins.add(_fingerprint(where, row, keys, near is not None))
        twins.find()
        number = 0
        for file in files:
            for line in read_lines(file, seen=seen):
                if number not in twins.dropped:
                    out.write_bytes(line.data.rstrip(b"\r\n") + b"\n")
                number += 1
        if number != twins.rows:
            raise BadRows("the files changed while they were read; run the command again")
    return Deduped(number, number - twins.dropped.count, twins.exact, twins.near, str(output))


def _fingerprint(where: Where, row: Json | LineFault, keys: Sequence[str], near: bool) -> bytes:
    if isinstance(row, LineFault):
        raise BadRows(f"{where} {row.message}; `rightcall dataset validate` lists every fault")
    try:
        if row.get("schema_version") in (SCHEMA, FORGE) and not keys:
            sound(where, row, SCHEMA, FORGE)
        return fingerprint(row, keys=keys, near=near)
    except RecursionError as error:
        raise BadRows(f"{where} is nested too deeply to be compared") from error
    except BadRows:
        raise
    except CallerError as error:
        raise BadRows(f"{where} {error}") from error
