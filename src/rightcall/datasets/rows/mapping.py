"""Map rows: rows of any sources, through any work, by any engine, into any sink, in order.

    totals = map_rows(sources_of(["logs/*.jsonl"]), work, sink, LocalEngine())

Memory holds a bounded number of parts, whatever the sources hold. The parent decodes nothing.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from itertools import islice
from typing import Protocol

import msgspec

from rightcall.datasets.rows.engines import Engine, LocalEngine
from rightcall.datasets.rows.sinks import Sink
from rightcall.datasets.rows.sources import PART_BYTES, Part, PartSource, RowBatch, RowSource, batch_of, parts_of
from rightcall.datasets.rows.stores import STDIN, store_of
from rightcall.errors import CallerError

MOST_FAULTS = 3  # faults that are reported with their place; the others are only counted
_LAYOUT = 2  # version of the notes that are kept of parts: a run with other notes is not resumed


class RowOutcome(msgspec.Struct):
    """The outcome of the work on one part.

    - `data`: the lines to write, each with its newline.
    - `rows`: the number of rows that were read.
    - `bad`: the number of rows that could not be worked on.
    - `faults`: the first few of these: the line, counted from 0 in the part, and the reason.
    - `counts`: whatever the work counts; added up over all parts.
    - `span`: the number of lines of the part, blank ones included. `PartWork` sets it.
    """

    data: bytes = b""
    rows: int = 0
    bad: int = 0
    faults: list[tuple[int, str]] = []
    counts: dict[str, int] = {}
    span: int = 0

    def add_fault(self, line: int, reason: str) -> None:
        """Count a bad row; the line and the reason of the first few are kept."""
        self.bad += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append((line, reason))


class RowWork(Protocol):
    """Work on rows: a value that can be pickled, called with the rows of one part in some process.

    The same rows must give the same outcome, wherever and how often they are worked on.
    """

    @property
    def key(self) -> str:
        """Everything that the outcome depends on except the rows: only a run with the same key is resumed."""
        ...

    def __call__(self, batch: RowBatch) -> RowOutcome:
        """Return the outcome of the rows of one part."""
        ...


class RowFault(msgspec.Struct, frozen=True):
    """A row that could not be worked on. As text: `logs.jsonl:17 not JSON: ...`."""

    source: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line} {self.reason}"


class Totals(msgspec.Struct):
    """Sums over all parts so far: `bytes` of the sources, `rows`, `bad` rows, and the first `faults`. `resumed` is the
    number of rows that an earlier run had done."""

    parts: int = 0
    bytes: int = 0
    rows: int = 0
    bad: int = 0
    resumed: int = 0
    faults: list[RowFault] = []
    counts: Counter[str] = msgspec.field(default_factory=Counter)


Watch = Callable[[Totals], None]


class PartWork:
    """Work on rows as work on bytes, which an engine carries."""

    def __init__(self, work: RowWork) -> None:
        self._work = work

    def __call__(self, item: bytes) -> bytes:
        """Return the encoded outcome of the work on an encoded part. Its faults have the line numbers that the part
        knows."""
        batch = batch_of(_DECODE_PART(item))
        outcome = self._work(batch)
        outcome.span = batch.span
        outcome.faults = [(batch.line(line), reason) for line, reason in outcome.faults]
        return _ENCODER.encode(outcome)


_ENCODER = msgspec.msgpack.Encoder()
_DECODE_PART = msgspec.msgpack.Decoder(Part).decode
_DECODE_OUTCOME = msgspec.msgpack.Decoder(RowOutcome).decode


def map_rows(
    sources: Sequence[RowSource | PartSource],
    work: RowWork,
    sink: Sink,
    engine: Engine | None = None,
    *,
    part_size: int = PART_BYTES,
    watch: Watch | None = None,
) -> Totals:
    """Work on all rows and return what was counted. The output is the same to the byte for any engine, any number of
    workers, and any number of interruptions and resumptions.

    - `sources`: the files, from `sources_of`, or other rows that cut themselves into parts.
    - `work`: the work on the rows of a part.
    - `sink`: where the lines go.
    - `engine`: the engine; None: all cores of this machine.
    - `part_size`: about how many bytes are worked on at a time.
    - `watch`: is called after each part with the totals so far.

    Raise `FileFailed` for what cannot be read or written, and what the work raises.
    """
    tally = _Tally(sources, watch)
    notes = sink.begin(_run_key(sources, work, part_size))
    for known in notes:
        tally.add_resumed(msgspec.convert(known, _PartNote))
    pending: deque[tuple[int, int, bool]] = deque()  # source, weight and whether it has line numbers, of each part
    with closing(parts_of(sources, size=part_size)) as parts:
        items = _encode_parts(islice(parts, len(notes), None), pending)
        with _closing_generator((engine or LocalEngine()).map(PartWork(work), items)) as results:
            for result in results:
                outcome = _DECODE_OUTCOME(result)
                note = tally.make_note(outcome, *pending.popleft())
                sink.write(outcome.data, msgspec.to_builtins(note))
                tally.add(note)
    sink.finish()
    return tally.totals


@contextmanager
def _closing_generator(results: Iterator[bytes]) -> Iterator[Iterator[bytes]]:
    """Yield the results, and close them when the block ends, also after an error, so that the engine's workers end."""
    try:
        yield results
    finally:
        if isinstance(results, Generator):
            results.close()


def _encode_parts(parts: Iterable[Part], pending: deque[tuple[int, int, bool]]) -> Iterator[bytes]:
    """Yield each part encoded for an engine, and append its source, its weight and whether it has line numbers to
    `pending`."""
    for part in parts:
        pending.append((part.source, part.weight, getattr(part, "numbers", None) is not None))
        yield _ENCODER.encode(part)


def _run_key(sources: Sequence[RowSource | PartSource], work: RowWork, part_size: int) -> str:
    """Return a digest of what must be the same for a run to be resumed: files, work and part size."""
    identities = [_identify_source(each) if isinstance(each, RowSource) else each.identity for each in sources]
    return blake2b(msgspec.json.encode([_LAYOUT, identities, work.key, part_size]), digest_size=16).hexdigest()


def _identify_source(source: RowSource) -> tuple[RowSource, str | None]:
    """Return a source, and a stamp of its file that changes with its content; None in place of the stamp for standard
    input."""
    return source, None if source.path == STDIN else store_of(source.path).stamp(source.path)


class _PartNote(msgspec.Struct):
    """What is kept of a finished part: enough to know the counts, and the line numbers of later parts. `faults` have
    line numbers of the source, from 1. `before` plus a line number of the part is the line number of the source."""

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

    def make_note(self, outcome: RowOutcome, source: int, weight: int, is_numbered: bool) -> _PartNote:
        """Return the note of the next part, which begins where the last added one ended. Line numbers of its faults are
        converted to those of the source, unless the part has them already (`is_numbered`)."""
        before = 0 if is_numbered else 1 + (self._lines if source == self._source else 0)
        faults = [(before + line, reason) for line, reason in outcome.faults]
        return _PartNote(source, weight, outcome.rows, outcome.span, before, outcome.bad, faults, outcome.counts)

    def add_resumed(self, note: _PartNote) -> None:
        """Add the note of a part that an earlier run finished, and count its rows as resumed."""
        self.totals.resumed += note.rows
        self.add(note)

    def add(self, note: _PartNote) -> None:
        """Add the note of the next part to the totals, and pass them to `watch`, which may raise."""
        self._lines = note.span + (self._lines if note.source == self._source else 0)
        self._source = note.source
        totals = self.totals
        totals.parts += 1
        totals.bytes += note.weight
        totals.rows += note.rows
        totals.bad += note.bad
        totals.counts.update(note.counts)
        room = MOST_FAULTS - len(totals.faults)
        totals.faults += [RowFault(self._names[note.source], *each) for each in note.faults[:room]]
        if self._watch is not None:
            self._watch(totals)


def refuse_stdin(sources: Sequence[RowSource]) -> None:
    """Raise `CallerError` if one of the sources is standard input: it cannot be read again, so the run cannot be
    resumed."""
    if any(source.path == STDIN for source in sources):
        raise CallerError("standard input cannot be read twice, so --resume needs a file; name one")
