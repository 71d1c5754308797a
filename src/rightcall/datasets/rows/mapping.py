"""`map_rows`: rows out of any sources, through any work, by any engine, into any sink, in order.

    totals = map_rows(sources_of(["logs/*.jsonl"]), work, sink, LocalEngine())

Memory holds a bounded number of parts, whatever the sources hold. The parent decodes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from itertools import islice

import msgspec

from rightcall.datasets.rows.batches import batch_of
from rightcall.datasets.rows.engines import Engine
from rightcall.datasets.rows.local_pool import LocalEngine
from rightcall.datasets.rows.outcomes import TOLD, RowFault, RowOutcome, RowWork, Totals
from rightcall.datasets.rows.parts import PART, Part, PartSource, parts_of
from rightcall.datasets.rows.row_sources import RowSource
from rightcall.datasets.rows.sinks import Sink
from rightcall.datasets.rows.stores import STDIN, store_of
from rightcall.errors import CallerError

Watch = Callable[[Totals], None]
_LAYOUT = 2  # of what is kept of a part: a run of another one is not gone on with


class PartWork:
    """Work on rows as work on bytes: what an engine carries."""

    def __init__(self, work: RowWork) -> None:
        self._work = work

    def __call__(self, item: bytes) -> bytes:
        batch = batch_of(_DECODER.decode(item))
        outcome = self._work(batch)
        outcome.span = batch.span
        if outcome.faults:
            outcome.faults = [(batch.line(line), why) for line, why in outcome.faults]
        return _ENCODER.encode(outcome)


_DECODER = msgspec.msgpack.Decoder(Part)
_OUTCOME = msgspec.msgpack.Decoder(RowOutcome)
_ENCODER = msgspec.msgpack.Encoder()


def map_rows(
    sources: Sequence[RowSource | PartSource],
    work: RowWork,
    sink: Sink,
    engine: Engine | None = None,
    *,
    part_size: int = PART,
    watch: Watch | None = None,
) -> Totals:
    """Works on all rows and gives what was counted. The bytes that go out are the same whatever the engine, the number
    of its workers, and however often it was broken off and gone on with.

    - `sources`: the files, from `sources_of`; or rows that somebody else cuts.
    - `work`: what is done with the rows of a part.
    - `sink`: where lines go.
    - `engine`: who does it; None: all cores of this machine.
    - `part_size`: about how many bytes are worked on at a time.
    - `watch`: is told after each part how far it is.

    Raises `FileFailed` for what cannot be read or written, and what the work raises.
    """
    tally = _Tally(sources, watch)
    notes = sink.begin(run_key(sources, work, part_size))
    for known in notes:
        tally.resumed(msgspec.convert(known, _PartNote))
    given: deque[tuple[int, int, bool]] = deque()  # of parts that are being worked on: what is not asked twice
    with closing(parts_of(sources, size=part_size)) as parts:
        items = _handed_out(islice(parts, len(notes), None), given)
        with _closed_after((engine or LocalEngine()).map(PartWork(work), items)) as results:
            for result in results:
                outcome = _OUTCOME.decode(result)
                note = tally.note(outcome, *given.popleft())
                sink.write(outcome.data, msgspec.to_builtins(note))
                tally.add(note)
    sink.finish()
    return tally.totals


@contextmanager
def _closed_after(results: Iterator[bytes]) -> Iterator[Iterator[bytes]]:
    """What an engine started ends with the block, also where it is left early."""
    try:
        yield results
    finally:
        if isinstance(results, Generator):
            results.close()


def _handed_out(parts: Iterable[Part], given: deque[tuple[int, int, bool]]) -> Iterator[bytes]:
    for part in parts:
        given.append((part.source, part.weight, getattr(part, "numbers", None) is not None))
        yield _ENCODER.encode(part)


def run_key(sources: Sequence[RowSource | PartSource], work: RowWork, part_size: int) -> str:
    """What must be the same for a run to be gone on with: the files, the work, how they are cut."""
    told = [_stamped(each) if isinstance(each, RowSource) else each.told for each in sources]
    said = msgspec.json.encode([_LAYOUT, told, work.key, part_size])
    return blake2b(said, digest_size=16).hexdigest()


def _stamped(source: RowSource) -> tuple[RowSource, str | None]:
    return source, None if source.path == STDIN else store_of(source.path).stamp(source.path)


class _PartNote(msgspec.Struct):
    """What is kept of a part: enough to know the counts and line numbers of those behind it. `faults` have the lines
    of the source, from 1; `before` added to a line as it travelled (`RowBatch.line`) is that line."""

    source: int
    weight: int
    rows: int
    span: int
    before: int
    bad: int = 0
    faults: list[tuple[int, str]] = []
    counts: dict[str, int] = {}


class _Tally:
    """Adds up parts in their order."""

    def __init__(self, sources: Sequence[RowSource | PartSource], watch: Watch | None) -> None:
        self.totals = Totals()
        self._names, self._watch = [source.name for source in sources], watch
        self._source, self._lines = 0, 0  # where the next part begins

    def note(self, outcome: RowOutcome, source: int, weight: int, is_numbered: bool) -> _PartNote:
        before = 0 if is_numbered else 1 + (self._lines if source == self._source else 0)
        faults = [(before + line, why) for line, why in outcome.faults]
        return _PartNote(source, weight, outcome.rows, outcome.span, before, outcome.bad, faults, outcome.counts)

    def resumed(self, note: _PartNote) -> None:
        self.totals.resumed += note.rows
        self.add(note)

    def add(self, note: _PartNote) -> None:
        self._lines = note.span + (self._lines if note.source == self._source else 0)
        self._source = note.source
        totals = self.totals
        totals.parts += 1
        totals.bytes += note.weight
        totals.rows += note.rows
        totals.bad += note.bad
        totals.counts.update(note.counts)
        room = TOLD - len(totals.faults)
        totals.faults += [RowFault(self._names[note.source], *each) for each in note.faults[:room]]
        if self._watch is not None:
            self._watch(totals)


def refuse_stdin(sources: Sequence[RowSource]) -> None:
    """Raises `CallerError` if a run over these cannot be gone on with."""
    if any(source.path == STDIN for source in sources):
        raise CallerError("standard input cannot be read twice, so --resume needs a file; name one")
