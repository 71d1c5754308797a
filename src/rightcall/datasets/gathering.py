"""Rows that belong together, brought together: the rows of one conversation may lie anywhere in the files.

    with GatheredRows(spool, tag, most=1_000) as gathered:
        map_rows([gathered], work, sink)          # each row that the work is given is a group: {"rows": [...]}

What is known of each row is kept on disk, and the rows lie in the spool; memory holds the groups that are worked on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from types import TracebackType
from typing import Any

from rightcall.datasets.row_files import Scratch
from rightcall.datasets.rows.sinks import RowSpool
from rightcall.datasets.rows.sources import LineGroups, Part

_TABLE = "CREATE TABLE lines (key BLOB, source INT, line INT, place INT, size INT)"
_IN_ORDER = """
    SELECT key, source, line, place, size FROM (
        SELECT rowid AS number, *, min(rowid) OVER (PARTITION BY key) AS first FROM lines
    ) ORDER BY first, number
"""


class GatheredRows:
    """The frames of a spool that have this tag, by their keys: groups in the order in which they begin, rows in theirs.

    `most` is how many rows of a group are given; those behind are left out and counted in `left_out`. `identity` names
    the spool, for a run that is resumed.
    """

    name = "rows that belong together"

    def __init__(self, spool: RowSpool, tag: int, *, most: int) -> None:
        self._spool, self._tag, self._most = spool, tag, most
        self.identity = f"{spool.run} {tag} {most}"
        self.left_out = 0

    def __enter__(self) -> GatheredRows:
        self._scratch = Scratch(_TABLE)
        try:
            self._scratch.insert("INSERT INTO lines VALUES (?, ?, ?, ?, ?)", self._places())
        except BaseException as error:
            self._scratch.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._scratch.__exit__(kind, error, at)

    def _places(self) -> Iterator[tuple[Any, ...]]:
        for frame in self._spool.frames():
            if frame.tag == self._tag:
                yield frame.key, frame.source, frame.line, frame.offset, len(frame.data)

    def parts(self, at: int, size: int) -> Iterator[Part]:
        groups: list[list[bytes]] = []
        places: list[tuple[int, int]] = []
        weight = 0
        for _, lines in groupby(self._scratch.db.execute(_IN_ORDER), key=lambda line: line[0]):
            place, group = self._group(lines)
            groups.append(group)
            places.append(place)
            weight += sum(map(len, group))
            if weight >= size:
                yield LineGroups(at, groups, places, weight)
                groups, places, weight = [], [], 0
        if groups:
            yield LineGroups(at, groups, places, weight)

    def _group(self, lines: Iterator[tuple[Any, ...]]) -> tuple[tuple[int, int], list[bytes]]:
        group: list[bytes] = []
        first = (0, 0)
        for _, source, line, place, size in lines:
            if len(group) < self._most:
                first = first if group else (source, line)
                group.append(self._spool.read(place, size))
            else:
                self.left_out += 1
        return first, group
