"""What a page is made of: values without a word of HTML.

    WebPage(
        kind="report",
        title="logs.jsonl",
        headline=Headline("91.3 %", "of 1,319 calls may run"),
        parts=(BarChart("Refused, by code", (BarRow("missing", PageRate(0.031, 0.02, 0.05), "41"), ...)),),
    )

Any text in them may come from outside: it is made visible and escaped when the page is written.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Tone = Literal["plain", "good", "fair", "bad"]
PieceKind = Literal["text", "reasoning", "call", "marker"]


class PageRate(msgspec.Struct, frozen=True):
    """A rate between 0 and 1, and the interval in which the true one lies. `of` says of how many."""

    rate: float
    low: float
    high: float
    of: int = 0
    tone: Tone = "plain"


class StripPiece(msgspec.Struct, frozen=True):
    """A piece of the one bar under a headline: the pieces are parts of a whole."""

    label: str
    rate: float
    count: int
    tone: Tone


class Headline(msgspec.Struct, frozen=True):
    """What a reader should see first: one `figure`, what it `says`, and what else to know in a line each."""

    figure: str
    says: str
    notes: tuple[str, ...] = ()
    strip: tuple[StripPiece, ...] = ()


class FigureTile(msgspec.Struct, frozen=True):
    """One of a few figures in a row."""

    label: str
    figure: str
    note: str = ""
    tone: Tone = "plain"


class FigureTiles(msgspec.Struct, frozen=True):
    tiles: tuple[FigureTile, ...]


class NamedCell(msgspec.Struct, frozen=True):
    """A name with what belongs to it in small below."""

    name: str
    below: str = ""


class ToneCell(msgspec.Struct, frozen=True):
    """A word or a number that stands out. It is sorted by its `order`."""

    text: str
    tone: Tone
    order: float


class IntervalCell(msgspec.Struct, frozen=True):
    """A rate with its interval in small below, where a bar would tell nothing."""

    rate: PageRate


Cell = str | int | NamedCell | PageRate | ToneCell | IntervalCell


class PageColumn(msgspec.Struct, frozen=True):
    """The head of a column; `hint` explains it."""

    title: str
    hint: str = ""


class PageTable(msgspec.Struct, frozen=True):
    """Rows that can be sorted by every column, and filtered. One that is `folded` shows its title only until asked."""

    title: str
    columns: tuple[PageColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    folded: bool = False


class BarRow(msgspec.Struct, frozen=True):
    """One bar. `pick` is what the samples are filtered by when it is chosen."""

    label: str
    rate: PageRate
    count: str
    note: str = ""
    pick: str = ""


class BarChart(msgspec.Struct, frozen=True):
    """Rates beside each other on one scale. A single bar is not drawn: a line says as much."""

    title: str
    rows: tuple[BarRow, ...]
    note: str = ""
    more: str = ""


class BarCharts(msgspec.Struct, frozen=True):
    """Charts side by side where there is room."""

    charts: tuple[BarChart, ...]


class SamplePiece(msgspec.Struct, frozen=True):
    """A run of characters of one kind; `found` marks what the sample is about."""

    text: str
    kind: PieceKind = "text"
    found: bool = False


class PageSample(msgspec.Struct, frozen=True):
    """A text with what became of it. `before` and `after` are characters that were left out; with `is_end` the end of
    the text is what it is about."""

    pieces: tuple[SamplePiece, ...]
    where: str = ""
    says: str = ""
    before: int = 0
    after: int = 0
    is_end: bool = False


class SampleCard(msgspec.Struct, frozen=True):
    """A few samples of the same thing. `tags` are the words that it can be filtered by."""

    kind: str
    name: str
    meaning: str
    source: str
    samples: tuple[PageSample, ...]
    tone: Tone = "plain"


class SampleCards(msgspec.Struct, frozen=True):
    title: str
    cards: tuple[SampleCard, ...]
    note: str = ""


PagePart = FigureTiles | PageTable | BarCharts | SampleCards


class WebPage(msgspec.Struct, frozen=True):
    """A page. `kind` is what rightcall calls it, `title` what it is about, `foot` a last line."""

    kind: str
    title: str
    headline: Headline
    parts: tuple[PagePart, ...]
    foot: tuple[str, ...] = ()
