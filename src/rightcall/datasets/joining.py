"""What lines of logs have to do with each other: some belong together, and some go on where another ended.

    for where, row, kind in joined_lines(["requests.jsonl", "results.jsonl"]): ...   # a request with its result is one

What must be known of other lines is kept on disk, so memory does not grow with the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from rightcall.datasets.logs import KINDS, joined_by
from rightcall.datasets.row_files import RowReader, Scratch, Seen, Where, digest
from rightcall.files.jsonl import LineFault, read_lines
from rightcall.types import Json

_IN_ORDER = """
    SELECT key, kind, file, line, place, size FROM (
        SELECT rowid AS number, key, kind, file, line, place, size, min(rowid) OVER (PARTITION BY key) AS first
        FROM lines
    ) ORDER BY first, number
"""
_MOST = 10_000  # lines that belong together; those behind are left alone


class LogLine(NamedTuple):
    """A line of a log, or one made of those that belong together; `kind` is what it is, where that is known."""

    where: Where
    row: Json | LineFault
    kind: str


def joined_lines(paths: Iterable[str | Path], kind: str = "auto", *, seen: Seen | None = None) -> Iterator[LogLine]:
    """The lines of files, in order; then those that belong together, as one each, with the place of the first."""
    files = [Path(path) for path in paths]
    with Scratch() as scratch:
        scratch.db.execute("CREATE TABLE lines (key BLOB, kind TEXT, file INT, line INT, place INT, size INT)")
        scratch.db.execute("BEGIN")
        for at, path in enumerate(files):
            for line in read_lines(path, seen=seen):
                name, key = ("", "") if isinstance(line.row, LineFault) else joined_by(line.row, kind)
                if key:
                    values = (digest(f"{name}\0{key}"), name, at, line.number, line.place, line.size)
                    scratch.db.execute("INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?)", values)
                else:
                    yield LogLine(Where(str(path), line.number), line.row, kind)
        scratch.db.execute("COMMIT")
        yield from _together(scratch, files)


def _together(scratch: Scratch, files: list[Path]) -> Iterator[LogLine]:
    reader = RowReader(files)
    try:
        for _, lines in groupby(scratch.db.execute(_IN_ORDER), key=lambda line: line[0]):
            found = [line for at, line in enumerate(lines) if at < _MOST]
            _, kind, file, number, _, _ = found[0]
            join = KINDS[kind].join
            assert join is not None
            rows = [reader.row(each[2], each[4], each[5]) for each in found]
            yield LogLine(Where(str(files[file]), number), join(rows), kind)
    finally:
        reader.close()


class LinkedTurns:
    """Exchanges of one conversation get one name: an exchange whose history is what another ended with goes on with
    that one. Whoever comes first goes on with it; a second is another conversation."""

    def __init__(self) -> None:
        self._scratch = Scratch("CREATE TABLE ends (key BLOB PRIMARY KEY, name TEXT) WITHOUT ROWID", "BEGIN")

    def __enter__(self) -> LinkedTurns:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._scratch.__exit__(kind, error, at)

    def take(self, rows: list[Json], before: list[bytes], after: bytes) -> int:
        """Names the rows of an exchange as the conversation that they go on with. Gives 1 if they begin one, else 0."""
        if not after:
            return 1
        own: str = rows[0]["example_group_id"]
        known = next((name for end in reversed(before) if (name := self._ended(end))), "")
        for row in rows:
            if known and row["example_group_id"] == own:
                row["example_group_id"] = known
        self._scratch.db.execute("INSERT OR REPLACE INTO ends VALUES (?, ?)", (after, known or own))
        return 0 if known else 1

    def _ended(self, end: bytes) -> str:
        found = self._scratch.db.execute("DELETE FROM ends WHERE key = ? RETURNING name", (end,)).fetchone()
        return found[0] if found else ""
