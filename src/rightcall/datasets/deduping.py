"""`dataset dedupe`: every row once. The rows that are kept are written as they were, in their order.

    dedupe_files(["a.jsonl", "b.jsonl"], "once.jsonl")                 # without equal rows
    dedupe_files(["a.jsonl", "b.jsonl"], "once.jsonl", near=0.8)       # and without similar rows

Workers make a fingerprint of each row. The parent sorts the fingerprints in a scratch database, so memory does not grow
with the number of rows, except for one bit of each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import msgspec

from rightcall.capture.captured_rows import FORGE, SCHEMA, LineFault
from rightcall.datasets import row_files
from rightcall.datasets.row_files import DEDUPED, BadRows, RowNumbers, RowRun, Scratch, Seen, digest, output_sink
from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.sinks import RowSpool, Sink
from rightcall.datasets.rows.sources import RowBatch, RowSource, batch_of, parts_of
from rightcall.datasets.schemas import first_fault
from rightcall.datasets.similarity import (
    SIGNATURE_SIZE,
    estimate_similarity,
    plan_bands,
    row_identity,
    signature,
    split_bands,
    split_fixed_and_prose,
)
from rightcall.errors import CallerError
from rightcall.types import Json

LEAST = 0.3  # the lowest threshold: below it, unrelated rows are similar


class Deduped(msgspec.Struct, frozen=True):
    """The result: the number of `rows`, of rows that were `kept`, and of rows that were dropped because they are the
    `same` as an earlier one or `near` to it; `output` is the file."""

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
    engine: str = "local",
    jobs: int | None = None,
    resume: bool = False,
    seen: Seen | None = None,
    force: bool = False,
) -> Deduped:
    """Write every row once: the first of several equal ones. Of captures whole conversations are compared, by what a
    trainer sees of them; other rows are compared one by one. Memory does not grow with the number of rows, except for
    one bit of each.

    - `paths`: files of rows, of any schema or none.
    - `output`: the file; rows are in it as they were, in their order.
    - `near`: the similarity from which two rows count as the same, from 0.3 to 1; None: only equal rows. Calls must be
      equal in any case, except for the prose in their arguments, and labels too.
    - `keys`: compare only the values at these paths (`text`, `request.messages`).
    - `engine`, `jobs`, `resume`: as in `label_files`.
    - `seen`, `force`: as in `export`.

    Raise `BadRows` for rows with faults, and `CallerError` if `near` is out of range; nothing is written then.
    """
    if near is not None and not LEAST <= near <= 1:
        raise CallerError(f"the similarity is a number from {LEAST} to 1, not {near}")
    run = RowRun(engine, jobs, resume, seen)
    files = run.sources(paths)
    with (
        output_sink(output, DEDUPED, files, force=force) as sink,
        RowSpool(output, "prints", resume=resume) as spool,
        DuplicateFinder(near) as finder,
    ):
        sink.begin("dedupe")
        run.map(files, _FingerprintWork(tuple(keys), near is not None), spool)
        finder.add(_split_records(spool.pieces(), finder.size))
        finder.find()
        _write_kept_rows(files, finder, sink)
        sink.finish()
    return Deduped(finder.rows, finder.rows - finder.dropped.count, finder.exact, finder.near, str(output))


def _split_records(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield records of `size` bytes from pieces of any size; an incomplete last record is dropped."""
    remainder = b""
    for piece in pieces:
        data = remainder + piece
        end = len(data) - len(data) % size
        yield from (data[at : at + size] for at in range(0, end, size))
        remainder = data[end:]


def _write_kept_rows(sources: Sequence[RowSource], finder: DuplicateFinder, sink: Sink) -> None:
    """Write the rows whose numbers are not in `finder.dropped`, in order. Their content is unchanged; blank lines are
    left out, and each line ends in a newline alone. Raises `BadRows` if the number of rows has changed since they were
    read."""
    number = 0
    for part in parts_of(sources, size=row_files.PART):
        kept: list[bytes] = []
        for line in batch_of(part).lines():
            if number not in finder.dropped:
                kept.append(line.rstrip(b"\r") + b"\n")
            number += 1
        sink.write(b"".join(kept), {})
    if number != finder.rows:
        raise BadRows("the files changed while they were read; run the command again")


# -- fingerprints ------------------------------------------------------------------------------------------------------

_EXACT = struct.Struct("16s16s")  # digests of the unit and of the content
_NEAR = struct.Struct(f"16s16s8s16s{SIGNATURE_SIZE}s")  # and place in the unit, what must be equal, signature
_PLACE = struct.Struct(">II")  # turn and call; places compare as bytes


def row_fingerprint(row: Json, *, keys: Sequence[str] = (), near: bool = False) -> bytes:
    """Return the fingerprint of a row, by which `DuplicateFinder` compares it; with `near`, also what it needs to
    find similar rows. `keys` limits the comparison to these paths."""
    found = row_identity(row, keys)
    if not near:
        return _EXACT.pack(found.unit, found.content)
    fixed, text = split_fixed_and_prose(row, keys)
    place = _PLACE.pack(found.turn, found.call)
    return _NEAR.pack(found.unit, found.content, place, fixed, signature(text))


class _FingerprintWork:
    """Make the fingerprints of the rows of a part."""

    def __init__(self, keys: tuple[str, ...], near: bool) -> None:
        self.key = f"dedupe {keys} {near}"
        self._keys, self._near = keys, near

    def __call__(self, batch: RowBatch) -> RowOutcome:
        """Return the fingerprints of the rows of a part, joined. Rows without one, invalid or nested too deeply, are
        recorded as faults."""
        outcome, prints = RowOutcome(), list[bytes]()
        for number, row in batch.rows():
            outcome.rows += 1
            try:
                prints.append(self._make_fingerprint(row))
            except RecursionError:
                outcome.add_fault(number, "is nested too deeply to be compared; leave the row out")
            except CallerError as error:
                outcome.add_fault(number, str(error))
        outcome.data = b"".join(prints)
        return outcome

    def _make_fingerprint(self, row: Json | LineFault) -> bytes:
        """Return the fingerprint of a row. Raises `CallerError` for a line that is no row, and for an invalid row of
        a capture."""
        is_capture = not self._keys and not isinstance(row, LineFault) and row.get("schema_version") in (SCHEMA, FORGE)
        if (isinstance(row, LineFault) or is_capture) and (fault := first_fault(row)):
            raise CallerError(fault)
        assert not isinstance(row, LineFault)
        return row_fingerprint(row, keys=self._keys, near=self._near)


# -- duplicates --------------------------------------------------------------------------------------------------------

_MOST_ROWS = 10_000  # rows of one unit; later ones are a unit of their own
_MOST_COMPARED = 8  # units of one band with which each is compared: the first ones
_TABLES = (
    "CREATE TABLE prints (unit BLOB, content BLOB, number INT, place BLOB, fixed BLOB, signature BLOB)",
    "CREATE TABLE units (content BLOB, first INT)",  # of conversations: digest of all rows, number of the first
    "CREATE TABLE members (first INT, number INT)",  # of conversations: the numbers of the other rows
    "CREATE TABLE candidates (first INT, fixed BLOB, signature BLOB)",  # units to compare by similarity
    "CREATE TABLE compared (id INTEGER PRIMARY KEY, first INT, fixed BLOB, signature BLOB)",  # those, in order
    "CREATE TABLE bands (band BLOB, id INT)",
    "CREATE TABLE pairs (later INT, earlier INT)",
)


class DuplicateFinder:
    """Finds the rows that are duplicates of earlier ones.

        with DuplicateFinder(near=0.8) as finder:
            finder.add(row_fingerprint(row, near=True) for row in rows)     # in the order of the rows
            finder.find()
            17 in finder.dropped                                        # the eighteenth row is a duplicate

    `near` is the least similarity, from 0 to 1; None: only equal rows are duplicates. The first of several stays; of
    similar conversations, later ones are compared with those that stay. `size` is the size of a fingerprint. `find`
    fills `dropped` with row numbers, and sets `exact` and `near`, the numbers of equal and similar rows.
    """

    def __init__(self, near: float | None = None) -> None:
        self.threshold = near
        self.rows = self.exact = self.near = 0
        self.dropped = RowNumbers()
        self.size = (_EXACT if near is None else _NEAR).size
        self._scratch = Scratch(*_TABLES)
        self._db = self._scratch.db

    def __enter__(self) -> DuplicateFinder:
        return self

    def __exit__(self, *error: Any) -> None:
        self._scratch.__exit__(*error)

    def add(self, fingerprints: Iterable[bytes]) -> None:
        """Add the fingerprints of further rows, in the order of the rows."""
        self._scratch.insert("INSERT INTO prints VALUES (?, ?, ?, ?, ?, ?)", self._make_records(fingerprints))

    def _make_records(self, fingerprints: Iterable[bytes]) -> Iterator[tuple[Any, ...]]:
        """Yield a record of the table `prints` for each row, given its fingerprint, with the number of the row, and
        count the rows in `rows`."""
        for each in fingerprints:
            if self.threshold is None:
                yield *_EXACT.unpack(each), self.rows, b"", b"", b""
            else:
                unit, content, *others = _NEAR.unpack(each)
                yield unit, content, self.rows, *others
            self.rows += 1

    def find(self) -> None:
        """Find all duplicates among the added rows: fill `dropped`, and set `exact` and `near`. The rows of a unit
        after its first `_MOST_ROWS` different ones count as further units. Call this once."""
        self._db.execute("BEGIN")
        prints = self._db.execute("SELECT * FROM prints ORDER BY unit, content, number")
        for _, unit in groupby(prints, key=lambda record: record[0]):
            different = self._keep_first_of_equal(unit)
            while rows := list(islice(different, _MOST_ROWS)):
                self._add_unit(rows)
        self._db.execute("DELETE FROM prints")
        units = self._db.execute("SELECT content, first FROM units ORDER BY content, first")
        for _, same in groupby(units, key=lambda record: record[0]):
            for _, first in islice(same, 1, None):
                self.dropped.add(first)
        self._drop_members()
        self.exact = self.dropped.count
        if self.threshold is not None:
            self._find_similar(self.threshold)
            self._drop_members()
            self.near = self.dropped.count - self.exact
        self._db.execute("COMMIT")

    def _keep_first_of_equal(self, unit: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Yield the record of the first of each set of equal rows of a unit, and add the numbers of the others to
        `dropped`. The records must be sorted by content and number."""
        for _, same in groupby(unit, key=lambda record: record[1]):
            records = iter(same)
            yield next(records)
            for record in records:
                self.dropped.add(record[2])

    def _add_unit(self, rows: list[tuple[Any, ...]]) -> None:
        """Record a unit: for a conversation, the digest of all its rows, by which equal conversations are found, and
        its row numbers; and, if similar rows are sought, its last row as a candidate. `rows` are records of
        `prints`."""
        unit, content = rows[0][:2]
        first = min([row[2] for row in rows])
        if unit != content:
            self._db.execute("INSERT INTO units VALUES (?, ?)", (digest(b"".join([row[1] for row in rows])), first))
            members = [(first, row[2]) for row in rows if row[2] != first]
            self._db.executemany("INSERT INTO members VALUES (?, ?)", members)
        if self.threshold is not None:
            *_, fixed, signed = max(rows, key=lambda row: row[3])  # the last row, which has the whole history
            fixed = digest(fixed + len(rows).to_bytes(8, "big"))
            self._db.execute("INSERT INTO candidates VALUES (?, ?, ?)", (first, fixed, signed))

    def _drop_members(self) -> None:
        """Drop all rows of the units whose first row is dropped."""
        for first, number in self._db.execute("SELECT first, number FROM members"):
            if first in self.dropped:
                self.dropped.add(number)

    # -- similar units -------------------------------------------------------------------------------------------------

    def _find_similar(self, threshold: float) -> None:
        """Drop the first row of each unit whose similarity to an earlier unit that stays is at least `threshold`. Only
        units whose fixed parts are equal are compared, and each only with the first `_MOST_COMPARED` units of a band
        that it shares."""
        self._add_bands(plan_bands(threshold))
        bands = self._db.execute("SELECT band, id FROM bands ORDER BY band, id")
        for _, sharing in groupby(bands, key=lambda record: record[0]):
            earliest: list[int] = []
            for _, later in sharing:
                self._db.executemany("INSERT INTO pairs VALUES (?, ?)", [(later, earlier) for earlier in earliest])
                if len(earliest) < _MOST_COMPARED:
                    earliest.append(later)
        similar = RowNumbers()
        pairs = self._db.execute("SELECT DISTINCT later, earlier FROM pairs ORDER BY later, earlier")
        for later, group in groupby(pairs, key=lambda record: record[0]):
            first, fixed, signed = self._read_unit(later)
            for _, earlier in group:
                if earlier in similar:
                    continue
                _, other_fixed, other_signed = self._read_unit(earlier)
                if fixed == other_fixed and estimate_similarity(signed, other_signed) >= threshold:
                    similar.add(later)
                    self.dropped.add(first)
                    break

    def _add_bands(self, plan: tuple[int, int]) -> None:
        """Number the units that are not dropped, in the order of their first rows, and record their bands. `plan` is
        the number of bands and their width."""
        id = 0
        for first, fixed, signed in self._db.execute("SELECT * FROM candidates ORDER BY first"):
            if first in self.dropped:
                continue
            self._db.execute("INSERT INTO compared VALUES (?, ?, ?, ?)", (id, first, fixed, signed))
            bands = enumerate(split_bands(signed, *plan))
            records = [(digest(bytes([band]) + fixed + numbers), id) for band, numbers in bands]
            self._db.executemany("INSERT INTO bands VALUES (?, ?)", records)
            id += 1

    def _read_unit(self, id: int) -> Any:
        """Return the number of the first row, the digest of the fixed parts and the signature of the compared unit with
        this id."""
        return self._db.execute("SELECT first, fixed, signature FROM compared WHERE id = ?", (id,)).fetchone()
