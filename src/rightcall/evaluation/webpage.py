"""A page of HTML in one file that loads nothing: the values that it consists of, and the writer.

    WebPage(
        kind="report",
        title="logs.jsonl",
        headline=Headline("91.3 %", "of 1,319 calls may run"),
        parts=(BarCharts((BarChart("Refused, by code", (BarRow("missing", PageRate(0.031, 0.02, 0.05), "41"),
        ...)),)),),
    )

`render_page` returns the HTML. Any text in the values may come from outside: it is escaped, and control characters are
made visible. The page's content security policy allows its style sheet and its script, each by hash, and nothing else:
no address, no inline style, no handler. Bars are SVG, whose lengths are attributes. Without the script everything is
still readable.
"""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Literal

import msgspec

from rightcall.safe_text import brief, percent, visible
from rightcall.storage.file_kinds import FileKind, beginning

Tone = Literal["plain", "good", "fair", "bad"]
PieceKind = Literal["text", "reasoning", "call", "marker"]


class PageRate(msgspec.Struct, frozen=True):
    """A rate between 0 and 1, with its interval from `low` to `high`; `of` is the number of cases."""

    rate: float
    low: float
    high: float
    of: int = 0
    tone: Tone = "plain"


class StripPiece(msgspec.Struct, frozen=True):
    """A segment of the bar under a headline; all segments together are the whole."""

    label: str
    rate: float
    count: int
    tone: Tone


class Headline(msgspec.Struct, frozen=True):
    """The headline: one `figure`, its meaning (`says`), `notes` in a line each, and a bar (`strip`)."""

    figure: str
    says: str
    notes: tuple[str, ...] = ()
    strip: tuple[StripPiece, ...] = ()


class FigureTile(msgspec.Struct, frozen=True):
    """A figure with a label and a note."""

    label: str
    figure: str
    note: str = ""
    tone: Tone = "plain"


class FigureTiles(msgspec.Struct, frozen=True):
    """Figures in a row."""

    tiles: tuple[FigureTile, ...]


class NamedCell(msgspec.Struct, frozen=True):
    """A name, with a `description` in small type."""

    name: str
    description: str = ""


class ToneCell(msgspec.Struct, frozen=True):
    """A colored text that is sorted by `order`."""

    text: str
    tone: Tone
    order: float


class IntervalCell(msgspec.Struct, frozen=True):
    """A rate with its interval in small type, without a bar."""

    rate: PageRate


Cell = str | int | NamedCell | PageRate | ToneCell | IntervalCell


class PageColumn(msgspec.Struct, frozen=True):
    """The title of a column, and its tooltip (`hint`)."""

    title: str
    hint: str = ""


class PageTable(msgspec.Struct, frozen=True):
    """Rows that can be sorted by every column, and filtered. A `folded` table shows only its title until it is
    opened."""

    title: str
    columns: tuple[PageColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    folded: bool = False


class BarRow(msgspec.Struct, frozen=True):
    """One bar. A click on it filters the samples by `pick`."""

    label: str
    rate: PageRate
    count: str
    note: str = ""
    pick: str = ""


class BarChart(msgspec.Struct, frozen=True):
    """Rates beside each other on one scale. A single bar is not drawn, but printed as a line."""

    title: str
    rows: tuple[BarRow, ...]
    note: str = ""
    more: str = ""


class BarCharts(msgspec.Struct, frozen=True):
    """Charts side by side where there is room."""

    charts: tuple[BarChart, ...]


class SamplePiece(msgspec.Struct, frozen=True):
    """Adjacent characters of one kind; `found` marks the finding that the sample shows."""

    text: str
    kind: PieceKind = "text"
    found: bool = False


class PageSample(msgspec.Struct, frozen=True):
    """A text, divided into pieces by kind. `before` and `after` are the numbers of characters that were left out; with
    `is_end` the finding is the end of the text."""

    pieces: tuple[SamplePiece, ...]
    where: str = ""
    says: str = ""
    before: int = 0
    after: int = 0
    is_end: bool = False


class SampleCard(msgspec.Struct, frozen=True):
    """A few samples of one finding: its `kind`, `name` and `meaning`, and where they come from (`source`)."""

    kind: str
    name: str
    meaning: str
    source: str
    samples: tuple[PageSample, ...]
    tone: Tone = "plain"


class SampleCards(msgspec.Struct, frozen=True):
    """Cards that can be filtered."""

    title: str
    cards: tuple[SampleCard, ...]
    note: str = ""


PagePart = FigureTiles | PageTable | BarCharts | SampleCards


class WebPage(msgspec.Struct, frozen=True):
    """A page: its `kind` (the command that writes it), `title`, headline, parts, and the lines of its footer
    (`foot`)."""

    kind: str
    title: str
    headline: Headline
    parts: tuple[PagePart, ...]
    foot: tuple[str, ...] = ()


_SCALES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
_FORBIDDEN = "form-action 'none'; base-uri 'none'"
_MAX_TEXT = 400  # characters of a name or a sentence


def page_kind(kind: str) -> FileKind:
    """Return the file kind of pages that the command `kind` writes: a file with the same first line may be
    overwritten."""
    return beginning(f"page of `{kind}`", _first_line(kind).encode())


def _first_line(kind: str) -> str:
    return f"<!doctype html><!-- rightcall {kind} -->"


def render_page(page: WebPage) -> str:
    """Return the page as one HTML document that loads nothing: style and script are inline and allowed by their hashes,
    and texts are escaped."""
    style, script = _read_asset("webpage.css"), _read_asset("webpage.js")
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; {_FORBIDDEN}"
    parts = [_render_part(part) for part in page.parts]
    return (
        f'{_first_line(page.kind)}\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{safe(page.title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"{_render_header(page)}\n<main>\n"
        + "\n".join([part for part in parts if part])
        + f"\n</main>\n{_render_footer(page)}"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


@lru_cache(2)
def _read_asset(name: str) -> str:
    return files("rightcall.evaluation").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def safe(text: str, most: int = _MAX_TEXT) -> str:
    """Return a text from outside as one line of HTML: escaped, without line breaks, and shortened to `most`
    characters."""
    return html.escape(brief(text, most), quote=True).replace(" %", "\u00a0%")


def _percent(rate: float) -> str:
    return safe(percent(rate)).replace(" ", "\u00a0")


# -- head and foot -----------------------------------------------------------------------------------------------------


def _render_header(page: WebPage) -> str:
    """Return a page's header as HTML: title, headline, notes and the bar below."""
    top = page.headline
    notes = "".join([f"<p>{safe(note)}</p>" for note in top.notes])
    return (
        f'<header>\n<p class="over"><b>rightcall</b> {safe(page.kind)}<span>{safe(page.title, 160)}</span></p>\n'
        f'<div class="top"><h1><span class="figure">{safe(top.figure)}</span> '
        f'<span class="says">{safe(top.says)}</span></h1>\n<div class="notes">{notes}</div></div>\n'
        f"{_render_strip(top)}</header>"
    )


def _render_strip(top: Headline) -> str:
    """Return the bar of the headline and its legend, which has all its pieces, as HTML; "" if fewer than two of the
    pieces have a count above zero."""
    if len([piece for piece in top.strip if piece.count]) < 2:
        return ""
    drawn, at = [], 0.0
    for piece in top.strip:
        drawn.append(f'<rect class="{piece.tone}" x="{at:.3f}%" width="{100 * piece.rate:.3f}%" height="100%"></rect>')
        at += 100 * piece.rate
    legend = [
        f'<li><i class="{piece.tone}"></i>{safe(piece.label)} <b>{_percent(piece.rate)}</b> '
        f"<span>{piece.count:,}</span></li>"
        for piece in top.strip
    ]
    return f'<svg class="strip" aria-hidden="true">{"".join(drawn)}</svg>\n<ul class="legend">{"".join(legend)}</ul>\n'


def _render_footer(page: WebPage) -> str:
    return "<footer>" + "".join([f"<p>{safe(line, 600)}</p>" for line in page.foot]) + "</footer>\n"


# -- parts -------------------------------------------------------------------------------------------------------------


def _render_part(part: PagePart) -> str:
    """Return a part of the page (tiles, table, charts or samples) as HTML; "" for one without content."""
    if isinstance(part, FigureTiles):
        return _render_tiles(part)
    if isinstance(part, PageTable):
        return _render_table(part)
    if isinstance(part, BarCharts):
        return _render_charts(part)
    return _render_cards(part)


def _render_tiles(part: FigureTiles) -> str:
    """Return a row of figures, each with its label and note, as HTML."""
    tiles = [
        f'<div class="tile {tile.tone}"><dt>{safe(tile.label)}</dt><dd><b>{safe(tile.figure)}</b>'
        f"<span>{safe(tile.note)}</span></dd></div>"
        for tile in part.tiles
    ]
    return f'<dl class="tiles">{"".join(tiles)}</dl>'


def _titled(title: str, note: str) -> str:
    return f"<h2>{safe(title)}</h2>\n" + (f'<p class="note">{safe(note)}</p>\n' if note else "")


def _render_table(part: PageTable) -> str:
    """Return a table as HTML, with a filter if it has more than four rows, and inside `<details>` if it is folded; ""
    without rows."""
    if not part.rows:
        return ""
    numeric = [_is_numeric(part, at) for at in range(len(part.columns))]
    heads = [_render_column(column, number) for column, number in zip(part.columns, numeric, strict=True)]
    rows = [f'<tr data-find="">{"".join(map(_render_cell, row, part.columns))}</tr>' for row in part.rows]
    find = '<input type="search" class="find" placeholder="Filter rows" aria-label="Filter rows">' if rows[4:] else ""
    body = "\n".join(rows)
    table = f"<table>\n<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    if part.folded:
        summary = f"<summary>{safe(part.title)}</summary>"
        return f'<section class="table">\n<details>{summary}<div class="bar">{find}</div>{table}</details>\n</section>'
    bar = f'<div class="bar">{_titled(part.title, part.note)}{find}</div>'
    return f'<section class="table">\n{bar}\n{table}\n</section>'


def _is_numeric(part: PageTable, at: int) -> bool:
    return all(isinstance(row[at], int | PageRate | IntervalCell | ToneCell) for row in part.rows)


def _render_column(column: PageColumn, number: bool) -> str:
    """Return the head of a table column as HTML, with a button that sorts the rows. `number` aligns it as a column of
    numbers."""
    hint = f' title="{safe(column.hint)}"' if column.hint else ""
    side = ' class="number"' if number else ""
    return f'<th scope="col"{side}{hint}><button type="button">{safe(column.title)}</button></th>'


def _render_cell(cell: Cell, column: PageColumn) -> str:
    """Return a table cell as HTML, with the value to sort by for numbers."""
    label = f' data-label="{safe(column.title)}"'
    if isinstance(cell, NamedCell):
        description = f"<span>{safe(cell.description, 160)}</span>" if cell.description else ""
        return f'<td class="named"{label}><b>{safe(cell.name, 120)}</b>{description}</td>'
    if isinstance(cell, PageRate):
        return _render_rate_cell(cell, label)
    if isinstance(cell, IntervalCell):
        interval = f"{100 * cell.rate.low:.1f} to {100 * cell.rate.high:.1f}"
        below = f"<span>{interval} of {cell.rate.of:,}</span>"
        return f'<td class="number"{label} data-sort="{cell.rate.rate:.12g}">{_percent(cell.rate.rate)}{below}</td>'
    if isinstance(cell, ToneCell):
        text = f'<em class="{cell.tone}">{safe(cell.text)}</em>'
        return f'<td class="number"{label} data-sort="{cell.order:.12g}">{text}</td>'
    if isinstance(cell, int):
        return f'<td class="number"{label} data-sort="{cell}">{cell:,}</td>'
    return f"<td{label}>{safe(cell)}</td>"


def _render_rate_cell(cell: PageRate, label: str) -> str:
    """Return a table cell with a rate and its bar as HTML; a dash if the rate is of no cases. `label` is an attribute
    of the cell."""
    if not cell.of:
        return f'<td class="number none"{label} data-sort="-1">\u2013</td>'
    return (
        f'<td class="number rate {cell.tone if cell.rate else "plain zero"}"{label} data-sort="{cell.rate:.12g}"'
        f' title="{_interval_text(cell)}"><b>{_percent(cell.rate)}</b>{_render_bar(cell, 1.0)}</td>'
    )


def _interval_text(rate: PageRate) -> str:
    return f"95 % interval: {_percent(rate.low)} to {_percent(rate.high)} of {rate.of:,}"


# -- bars --------------------------------------------------------------------------------------------------------------


def _render_charts(part: BarCharts) -> str:
    """Return the charts that have rows as HTML; "" if none has."""
    drawn = [_render_chart(chart) for chart in part.charts if chart.rows]
    return f'<div class="charts">\n{"".join(drawn)}</div>' if drawn else ""


def _render_chart(chart: BarChart) -> str:
    """Return a bar chart as HTML, all bars on one scale that fits the highest interval. A chart with a single row is a
    line of text."""
    title = _titled(chart.title, chart.note)
    more = f'<p class="note">{safe(chart.more)}</p>' if chart.more else ""
    if len(chart.rows) == 1:
        only = chart.rows[0]
        rate, count = _percent(only.rate.rate), safe(only.count)
        line = f'<p class="only">{_render_bar_label(only)}<b>{rate}</b> <span>{count}</span></p>'
        return f'<section class="chart">\n{title}{line}{more}</section>\n'
    top = max([row.rate.high for row in chart.rows])
    scale = next((each for each in _SCALES if each >= top), 1.0)
    rows = "\n".join([_render_bar_row(row, scale) for row in chart.rows])
    ticks = "".join([f"<i>{100 * each:g}\u00a0%</i>" for each in (0.0, scale / 2, scale)])
    axis = f'<li class="axis" aria-hidden="true"><span></span><span class="ticks">{ticks}</span></li>'
    return f'<section class="chart">\n{title}<ul class="bars">\n{axis}\n{rows}\n</ul>{more}</section>\n'


def _render_bar_row(row: BarRow, scale: float) -> str:
    """Return one row of a chart as HTML: label, bar, rate and count. `scale` is the rate that fills the width."""
    return (
        f'<li title="{_interval_text(row.rate)}">{_render_bar_label(row)}'
        f'<span class="drawn">{_render_bar(row.rate, scale)}</span>'
        f'<b>{_percent(row.rate.rate)}</b><span class="count">{safe(row.count)}</span></li>'
    )


def _render_bar_label(row: BarRow) -> str:
    """Return the label of a bar as HTML; a button that filters the samples if the row has a `pick`."""
    name = safe(row.label, 60)
    named = (
        f'<button type="button" data-pick="{safe(row.pick)}">{name}</button>' if row.pick else f"<span>{name}</span>"
    )
    note = f"<small>{safe(row.note)}</small>" if row.note else ""
    return f'<span class="label">{named}{note}</span>'


def _render_bar(rate: PageRate, scale: float) -> str:
    """Return a rate as a bar in SVG, with its interval as a line over it. `scale` is the rate that fills the width."""
    width, low, high = [100 * min(1.0, each / scale) for each in (rate.rate, rate.low, rate.high)]
    return (
        f'<svg class="rod {rate.tone}" aria-hidden="true"><rect class="track" width="100%" height="100%"></rect>'
        f'<rect class="fill" width="{width:.2f}%" height="100%"></rect>'
        f'<line x1="{low:.2f}%" x2="{high:.2f}%" y1="50%" y2="50%"></line></svg>'
    )


# -- samples -----------------------------------------------------------------------------------------------------------

_LEGEND = (
    '<p class="kinds"><span class="s-text">text</span> <span class="s-reasoning">reasoning</span> '
    '<span class="s-call">call</span> <span class="s-marker">marker</span> <span class="s-text found">finding'
    "</span></p>"
)


def _render_cards(part: SampleCards) -> str:
    """Return the section with the cards of samples, and filters for them, as HTML; "" without cards."""
    if not part.cards:
        return ""
    kinds = list(dict.fromkeys([card.kind for card in part.cards]))
    options = "".join([f'<option value="{safe(kind)}">{safe(kind)}</option>' for kind in kinds])
    controls = (
        f'<div class="controls"><select aria-label="Kind"><option value="">all kinds</option>{options}</select>'
        '<input type="search" class="find" placeholder="Filter samples" aria-label="Filter samples">'
        f'<output aria-live="polite">{len(part.cards)} of {len(part.cards)}</output></div>'
    )
    return (
        f'<section class="samples" id="samples">\n<div class="bar">{_titled(part.title, part.note)}{controls}</div>\n'
        f"{_LEGEND}\n"
        f'<div class="cards">\n{"".join(map(_render_card, part.cards))}</div>\n</section>'
    )


def _render_card(card: SampleCard) -> str:
    """Return one card as HTML: kind, name, meaning, source and samples of a finding."""
    samples = "".join([_render_sample(sample) for sample in card.samples])
    return (
        f'<article data-find="" data-kind="{safe(card.kind)}" data-name="{safe(f"{card.kind}:{card.name}")}">\n'
        f'<h3><em class="{card.tone}">{safe(card.kind)}</em> {safe(card.name)}</h3>\n<p>{safe(card.meaning)}</p>\n'
        f'<p class="source">{safe(card.source)}</p>\n{samples}</article>\n'
    )


def _render_sample(sample: PageSample) -> str:
    """Return one sample as HTML: its place in the log, the text in marked pieces, and the message."""
    says = f"<figcaption>{safe(sample.says, 300)}</figcaption>" if sample.says else ""
    end = '<b class="end" title="the text ends here">\u25c4 ends here</b>' if sample.is_end else ""
    text = "".join(
        [*_render_omission(sample.before), *map(_render_piece, sample.pieces), end, *_render_omission(sample.after)]
    )
    where = f'<span class="where">{safe(sample.where, 120)}</span>' if sample.where else ""
    return f"<figure>{where}<pre>{text}</pre>{says}</figure>\n"


def _render_omission(characters: int) -> Iterator[str]:
    """Yield a note in HTML that so many characters were left out; nothing for 0."""
    if characters:
        yield f'<i class="left">\u2026 {characters:,} more \u2026</i>'


def _render_piece(piece: SamplePiece) -> str:
    """Return a piece of a sample as HTML, marked if it is part of the finding."""
    found = " found" if piece.found else ""
    return f'<span class="s-{piece.kind}{found}">{html.escape(visible(piece.text), quote=True)}</span>'
