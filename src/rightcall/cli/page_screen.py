"""A page on a terminal: the same headline, figures, tables, bars and samples, wrapped at its width, from 60 columns up.

show_page(out, report_page(tally, "logs.jsonl"), samples=6)
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from rightcall.cli.layout import paragraph, room
from rightcall.cli.safe import brief, visible
from rightcall.cli.show import STYLES
from rightcall.evaluation.webpages.page_parts import (
    BarChart,
    BarCharts,
    BarRow,
    Cell,
    FigureTiles,
    IntervalCell,
    NamedCell,
    PageRate,
    PageSample,
    PageTable,
    SampleCard,
    SampleCards,
    SamplePiece,
    Tone,
    ToneCell,
    WebPage,
)
from rightcall.safe_text import percent

NARROWEST, _USUAL = 60, 80
_TONES: dict[Tone, str] = {"plain": "default", "good": "green", "fair": "yellow", "bad": "red"}
_LABEL, _BAR = 26, 40
_AROUND = 160  # characters of a sample before what it is about, and behind


def _columns(out: Console) -> int:
    """How wide bars and rows of numbers may be, in a pipe too."""
    return max(room(out) or _USUAL, NARROWEST)


def show_page(out: Console, page: WebPage, *, samples: int = 6) -> None:
    """Prints a page. Of its samples as many cards are shown as told; of folded tables the title."""
    top = page.headline
    paragraph(out, f"{visible(top.figure)} {visible(top.says, one_line=True)}", "bold", hang=2)
    for note in top.notes:
        paragraph(out, brief(note, 400), hang=2)
    for part in page.parts:
        if isinstance(part, FigureTiles):
            _tiles(out, part)
        elif isinstance(part, PageTable):
            _table(out, part)
        elif isinstance(part, BarCharts):
            for chart in part.charts:
                _chart(out, chart)
        else:
            _cards(out, part, samples)


def _heading(out: Console, title: str, note: str = "") -> None:
    out.print()
    paragraph(out, Text.assemble((brief(title), "bold"), (f"  {brief(note)}" if note else "", "dim")), hang=2)


def _tiles(out: Console, part: FigureTiles) -> None:
    out.print()
    wide = max(len(tile.label) for tile in part.tiles)
    figure = max(len(tile.figure) for tile in part.tiles)
    for tile in part.tiles:
        said = Text.assemble(f"{brief(tile.label):<{wide}}  ", (f"{tile.figure:>{figure}}  ", _TONES[tile.tone]))
        paragraph(out, brief(tile.note), "dim", label=said)


# -- tables ------------------------------------------------------------------------------------------------------------


def _table(out: Console, part: PageTable) -> None:
    if not part.rows:
        return
    _heading(out, part.title, part.note)
    if part.folded:
        return
    titles = [column.title for column in part.columns]
    rows = [[_said(cell) for cell in row] for row in part.rows]
    widths = [max(map(len, column)) for column in zip(titles[1:], *[row[1:] for row in rows], strict=True)]
    gap = next((gap for gap in (3, 2, 1) if sum(widths) + gap * len(widths) <= _columns(out)), 0)
    if gap:
        out.print(
            Text("".join([f"{'':{gap}}{title:>{wide}}" for title, wide in zip(titles[1:], widths, strict=True)]), "dim")
        )
    for row, cells in zip(rows, part.rows, strict=True):
        _name(out, cells[0])
        if gap:
            out.print(_numbers(row[1:], cells[1:], widths, gap))
        else:
            _pairs(out, titles[1:], row[1:], cells[1:])


def _name(out: Console, cell: Cell) -> None:
    if isinstance(cell, NamedCell):
        below = f"  {brief(cell.below)}" if cell.below else ""
        paragraph(out, Text.assemble((brief(cell.name), "bold"), (below, "dim")), hang=2)
    else:
        paragraph(out, _said(cell), "bold", hang=2)


def _numbers(said: list[str], cells: tuple[Cell, ...], widths: list[int], gap: int) -> Text:
    line = Text()
    for text, cell, wide in zip(said, cells, widths, strict=True):
        line.append(f"{'':{gap}}{text:>{wide}}", _style(cell))
    return line


def _pairs(out: Console, titles: list[str], said: list[str], cells: tuple[Cell, ...]) -> None:
    """Cells that do not fit side by side: with their names, as many on a line as there is room for."""
    line = Text("  ")
    for title, text, cell in zip(titles, said, cells, strict=True):
        size = len(title) + len(text) + 3
        if len(line) > 2 and len(line) + size > _columns(out):
            out.print(line)
            line = Text("  ")
        if size > _columns(out):
            paragraph(out, Text(text, _style(cell)), label=Text(f"  {title} ", "dim"), hang=4)
            continue
        line.append("  " if len(line) > 2 else "").append(f"{title} ", "dim").append(text, _style(cell))
    if len(line) > 2:
        out.print(line)


def _said(cell: Cell) -> str:
    if isinstance(cell, NamedCell):
        return brief(cell.name)
    if isinstance(cell, IntervalCell):
        return f"{percent(cell.rate.rate)} ({100 * cell.rate.low:.0f}-{100 * cell.rate.high:.0f})"
    if isinstance(cell, PageRate):
        return percent(cell.rate) if cell.of else "–"
    if isinstance(cell, ToneCell):
        return brief(cell.text)
    return f"{cell:,}" if isinstance(cell, int) else brief(cell)


def _style(cell: Cell) -> str:
    if isinstance(cell, ToneCell):
        return _TONES[cell.tone]
    return _TONES[cell.tone] if isinstance(cell, PageRate) and cell.rate else "default"


# -- bars --------------------------------------------------------------------------------------------------------------


def _chart(out: Console, chart: BarChart) -> None:
    _heading(out, chart.title, chart.note)
    labels = [brief(row.label, 60) for row in chart.rows]
    wide = min(_LABEL, max(map(len, labels)))
    counts = max(len(row.count) for row in chart.rows)
    longest = min(_BAR, _columns(out) - wide - counts - 16)
    most = max(row.rate.rate for row in chart.rows) or 1.0
    for row, label in zip(chart.rows, labels, strict=True):
        if len(label) > wide:
            paragraph(out, label, label="  ", hang=4)
            label = ""
        bar = "" if len(chart.rows) == 1 else _drawn(row, most, longest)
        said = f" {percent(row.rate.rate):>8}  {row.count:>{counts}}"
        out.print(Text.assemble(f"  {label:<{wide}}  ", (bar, _TONES[row.rate.tone]), said))
    if chart.more:
        paragraph(out, chart.more, "dim", label="  ")


def _drawn(row: BarRow, most: float, longest: int) -> str:
    eighths = round(8 * longest * row.rate.rate / most)
    whole, part = divmod(eighths, 8)
    drawn = "█" * whole + ("", *"▏▎▍▌▋▊▉")[part]
    return f"{drawn or '▏':<{longest}}"


# -- samples -----------------------------------------------------------------------------------------------------------


def _cards(out: Console, part: SampleCards, most: int) -> None:
    shown = part.cards[:most]
    if not shown:
        return
    left = len(part.cards) - len(shown)
    _heading(out, part.title, f"{left} more in --html and --json" if left else part.note)
    for card in shown:
        _card(out, card)


def _card(out: Console, card: SampleCard) -> None:
    title = Text.assemble((brief(card.kind), _TONES[card.tone]), " ", (brief(card.name), "bold"))
    paragraph(out, title.append(f"  {brief(card.source, 300)}", "dim"), hang=2)
    for sample in card.samples:
        paragraph(out, _sample(out, sample), label="    ")
        if sample.says:
            paragraph(out, f"{brief(sample.where)}: {brief(sample.says, 300)}", "dim", label="    ")


def _sample(out: Console, sample: PageSample) -> Text:
    """What the sample is about, with some of the text around it. Without colours, brackets show what it is."""
    coloured = out.color_system is not None and not out.no_color
    said = Text("… " if sample.before else "")
    for at, piece in enumerate(sample.pieces):
        begins = piece.found and not (at and sample.pieces[at - 1].found)
        ends = piece.found and not (sample.pieces[at + 1 : at + 2] and sample.pieces[at + 1].found)
        text = visible(_shortened(piece, at, sample), one_line=True)
        if coloured:
            said.append(text, f"{STYLES[piece.kind]} underline" if piece.found else STYLES[piece.kind])
        else:
            said.append(f"{'⟦' if begins else ''}{text}{'⟧' if ends else ''}")
    if sample.is_end:
        said.append("◄", "red")
    return said.append(" …") if sample.after else said


def _shortened(piece: SamplePiece, at: int, sample: PageSample) -> str:
    """Text far from what the sample is about is left out."""
    if piece.found or len(piece.text) <= _AROUND:
        return piece.text[: 4 * _AROUND]
    before = any(each.found for each in sample.pieces[at + 1 :]) or sample.is_end
    return f"… {piece.text[-_AROUND:]}" if before else f"{piece.text[:_AROUND]} …"
