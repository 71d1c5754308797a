"""Which rows are there twice, found in memory that does not grow: digests are sorted on disk.

    twins = Twins(near=0.8)
    for row in rows:
        twins.add(fingerprint(row, near=True))      # fingerprints may come from other processes, in the rows' order
    twins.find()
    17 in twins.dropped                             # the eighteenth row is a copy of an earlier one

The first of several stays. Of conversations that are alike, the first that stays is what later ones are measured by.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import IO

from rightcall.datasets.comparing import compared, wording
from rightcall.datasets.minhash import SIZE, bands, likeness, plan, signature
from rightcall.datasets.row_files import digest
from rightcall.datasets.spilling import RowNumbers, Sorted, scratch_file
from rightcall.types import Json

_DIGEST, _NUMBER = 16, 8
_PLACE = struct.Struct(">II")
EXACT = 2 * _DIGEST  # bytes of a fingerprint: unit, content
NEAR = EXACT + _PLACE.size + _DIGEST + SIZE  # and the place in the unit, what must be the same, the signature
_LONGEST = 10_000  # rows of one unit; those behind are a unit of their own
_MOST_COMPARED = 8  # of those that share a band, how many each is compared with: the first ones


def fingerprint(row: Json, *, keys: Sequence[str] = (), near: bool = False) -> bytes:
    """All that is needed of a row, `EXACT` or `NEAR` bytes."""
    found = compared(row, keys)
    if not near:
        return found.unit + found.content
    fixed, text = wording(row, keys)
    place = _PLACE.pack(found.turn, found.call)
    return found.unit + found.content + place + (fixed or bytes(_DIGEST)) + signature(text)


class Twins:
    """Rows that are there twice. `near` is how alike two must be, from 0 to 1; None: they must be the same.

    `size` is how many bytes a fingerprint has. `dropped` has the numbers of the rows to leave out, once `find` has been
    called; `exact` and `near` say how many there are of each sort.
    """

    def __init__(self, near: float | None = None) -> None:
        self.threshold = near
        self.rows = self.exact = self.near = 0
        self.dropped = RowNumbers()
        self.size = EXACT if near is None else NEAR
        self._prints = Sorted(self.size + _NUMBER)
        self._units = Sorted(_DIGEST + _NUMBER)  # content of the whole unit, first row
        self._members = Sorted(2 * _NUMBER)  # first row of the unit, another row of it
        self._likeable = Sorted(_NUMBER + _DIGEST + SIZE)  # first row, what must be the same, signature

    def add(self, found: bytes) -> None:
        self._prints.add(found + _number(self.rows))
        self.rows += 1

    def find(self) -> None:
        with self._prints, self._units, self._members, self._likeable:
            for _, unit in groupby(self._prints, key=lambda record: record[:_DIGEST]):
                self._unit(unit)
            self._prints.close()
            self._same_units()
            self._with_their_units()
            self.exact = self.dropped.count
            if self.threshold is not None:
                near = _Alike(self.threshold, self._left()).find()
                for number in near:
                    self.dropped.add(number)
                self._with_their_units()
                self.near = self.dropped.count - self.exact

    def _unit(self, unit: Iterable[bytes]) -> None:
        """Rows that are in it twice, and the unit as a whole. Its records are sorted by their content."""
        different = self._once(unit)
        while rows := list(islice(different, _LONGEST)):
            first = min([_read(row[-_NUMBER:]) for row in rows])
            if rows[0][:_DIGEST] != rows[0][_DIGEST:EXACT]:
                self._whole(rows, first)
            if self.threshold is not None:
                end = max(rows, key=lambda row: row[EXACT : EXACT + _PLACE.size])[EXACT + _PLACE.size : -_NUMBER]
                fixed = digest(end[:_DIGEST] + _number(len(rows)))
                self._likeable.add(_number(first) + fixed + end[_DIGEST:])

    def _once(self, unit: Iterable[bytes]) -> Iterator[bytes]:
        for _, same in groupby(unit, key=lambda record: record[_DIGEST:EXACT]):
            records = iter(same)
            yield next(records)
            for record in records:
                self.dropped.add(_read(record[-_NUMBER:]))

    def _whole(self, rows: list[bytes], first: int) -> None:
        """A conversation: the same as another if all of its rows are."""
        self._units.add(digest(b"".join([row[_DIGEST:EXACT] for row in rows])) + _number(first))
        for row in rows:
            if (number := _read(row[-_NUMBER:])) != first:
                self._members.add(_number(first) + _number(number))

    def _same_units(self) -> None:
        for _, same in groupby(self._units, key=lambda record: record[:_DIGEST]):
            later = iter(same)
            next(later)
            for record in later:
                self.dropped.add(_read(record[_DIGEST:]))

    def _with_their_units(self) -> None:
        """A unit that is dropped goes with all of its rows."""
        for record in self._members:
            if _read(record[:_NUMBER]) in self.dropped:
                self.dropped.add(_read(record[_NUMBER:]))

    def _left(self) -> Iterator[tuple[int, bytes, bytes]]:
        """First row, what must be the same, and signature, of the units that are still there, in their order."""
        for record in self._likeable:
            first = _read(record[:_NUMBER])
            if first not in self.dropped:
                yield first, record[_NUMBER : _NUMBER + _DIGEST], record[_NUMBER + _DIGEST :]


class _Alike:
    """Units that are alike but not the same: those that share a band are compared."""

    def __init__(self, threshold: float, units: Iterator[tuple[int, bytes, bytes]]) -> None:
        self._threshold, self._plan = threshold, plan(threshold)
        self._units = units
        self._bands = Sorted(_DIGEST + _NUMBER)  # band, unit
        self._pairs = Sorted(2 * _NUMBER)  # later unit, earlier unit

    def find(self) -> Iterator[int]:
        """The first rows of units that are like an earlier one."""
        with scratch_file() as file, self._bands, self._pairs:
            for at, (first, fixed, signed) in enumerate(self._units):
                file.write(_number(first) + fixed + signed)
                for band, numbers in enumerate(bands(signed, *self._plan)):
                    self._bands.add(digest(bytes([band]) + fixed + numbers) + _number(at))
            for _, sharing in groupby(self._bands, key=lambda record: record[:_DIGEST]):
                self._pair(record[_DIGEST:] for record in sharing)
            yield from self._compare(file)

    def _pair(self, sharing: Iterable[bytes]) -> None:
        firsts: list[bytes] = []
        for later in sharing:
            for earlier in firsts:
                self._pairs.add(later + earlier)
            if len(firsts) < _MOST_COMPARED:
                firsts.append(later)

    def _compare(self, file: IO[bytes]) -> Iterator[int]:
        gone = RowNumbers()
        for later, pairs in groupby(self._pairs, key=lambda record: record[:_NUMBER]):
            number, fixed, signed = _stored(file, _read(later))
            for earlier in dict.fromkeys([_read(pair[_NUMBER:]) for pair in pairs]):
                if earlier in gone:
                    continue
                _, others, theirs = _stored(file, earlier)
                if fixed == others and likeness(signed, theirs) >= self._threshold:
                    gone.add(_read(later))
                    yield number
                    break


_STORED = _NUMBER + _DIGEST + SIZE


def _stored(file: IO[bytes], at: int) -> tuple[int, bytes, bytes]:
    file.seek(at * _STORED)
    record = file.read(_STORED)
    return _read(record[:_NUMBER]), record[_NUMBER : _NUMBER + _DIGEST], record[_NUMBER + _DIGEST :]


def _number(value: int) -> bytes:
    return value.to_bytes(_NUMBER, "big")


def _read(data: bytes) -> int:
    return int.from_bytes(data, "big")
