"""Print a web page on a terminal: headline, figures, tables, bars and samples, wrapped from 60 columns up.

show_page(out, report_page(tally, "logs.jsonl"), samples=6)
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from rightcall.cli.inputs import usage_errors
from rightcall.cli.layout import line_width, paragraph
from rightcall.cli.show import STYLES
from rightcall.evaluation.webpage import (
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
    page_kind,
    render_page,
)
from rightcall.safe_text import brief, percent, visible
from rightcall.storage.whole_files import WholeFile

MIN_COLUMNS, _DEFAULT_COLUMNS = 60, 80
_TONES: dict[Tone, str] = {"plain": "default", "good": "green", "fair": "yellow", "bad": "red"}
_LABEL, _BAR = 26, 40
_AROUND = 160  # characters of context before and after the marked text


def _columns(out: Console) -> int:
    """Return the number of columns for bars and rows of numbers: the width of the output, at least `MIN_COLUMNS`, and a
    default for a pipe."""
    return max(line_width(out) or _DEFAULT_COLUMNS, MIN_COLUMNS)


def write_page(page: WebPage, path: str, *, sources: Sequence[str] = (), force: bool = False) -> None:
    """Write a page as one self-contained HTML file. Exits with a usage error if `path` is one of `sources`, or, unless
    `force`, a file of another kind; with code 1 if it cannot be written."""
    with usage_errors(), WholeFile(path, page_kind(page.kind), sources=sources, force=force) as file:
        file.write_bytes(render_page(page).encode())


def show_page(out: Console, page: WebPage, *, samples: int = 6) -> None:
    """Print a page: all figures and charts, only the titles of folded tables, and the first `samples` cards."""
    top = page.headline
    paragraph(out, f"{visible(top.figure)} {visible(top.says, one_line=True)}", "bold", hang=2)
    for note in top.notes:
        paragraph(out, brief(note, 400), hang=2)
    for part in page.parts:
        if isinstance(part, FigureTiles):
            _print_tiles(out, part)
        elif isinstance(part, PageTable):
            _print_table(out, part)
        elif isinstance(part, BarCharts):
            for chart in part.charts:
                _print_chart(out, chart)
        else:
            _print_cards(out, part, samples)


def _print_title(out: Console, title: str, note: str = "") -> None:
    """Print a blank line, and a title in bold with a dimmed note after it."""
    out.print()
    paragraph(out, Text.assemble((brief(title), "bold"), (f"  {brief(note)}" if note else "", "dim")), hang=2)


def _print_tiles(out: Console, part: FigureTiles) -> None:
    """Print figures with their labels and notes, one on each line."""
    out.print()
    wide = max(len(tile.label) for tile in part.tiles)
    figure = max(len(tile.figure) for tile in part.tiles)
    for tile in part.tiles:
        label = Text.assemble(f"{brief(tile.label):<{wide}}  ", (f"{tile.figure:>{figure}}  ", _TONES[tile.tone]))
        paragraph(out, brief(tile.note), "dim", label=label)


# -- tables ------------------------------------------------------------------------------------------------------------


def _print_table(out: Console, part: PageTable) -> None:
    """Print a table: the first cell of each row on a line, its numbers below, side by side if they fit. Of a folded
    table only the title is printed, of one without rows nothing."""
    if not part.rows:
        return
    _print_title(out, part.title, part.note)
    if part.folded:
        return
    titles = [column.title for column in part.columns]
    rows = [[_format_cell(cell) for cell in row] for row in part.rows]
    widths = [max(map(len, column)) for column in zip(titles[1:], *[row[1:] for row in rows], strict=True)]
    gap = next((gap for gap in (3, 2, 1) if sum(widths) + gap * len(widths) <= _columns(out)), 0)
    if gap:
        out.print(
            Text("".join([f"{'':{gap}}{title:>{wide}}" for title, wide in zip(titles[1:], widths, strict=True)]), "dim")
        )
    for row, cells in zip(rows, part.rows, strict=True):
        _print_name(out, cells[0])
        if gap:
            out.print(_format_numbers(row[1:], cells[1:], widths, gap))
        else:
            _print_pairs(out, titles[1:], row[1:], cells[1:])


def _print_name(out: Console, cell: Cell) -> None:
    """Print the first cell of a row in bold. The description of a `NamedCell` follows on the same line, dimmed."""
    if isinstance(cell, NamedCell):
        description = f"  {brief(cell.description)}" if cell.description else ""
        paragraph(out, Text.assemble((brief(cell.name), "bold"), (description, "dim")), hang=2)
    else:
        paragraph(out, _format_cell(cell), "bold", hang=2)


def _format_numbers(texts: list[str], cells: tuple[Cell, ...], widths: list[int], gap: int) -> Text:
    """Return the numbers of a row as one line, right-aligned in `widths` and each in its colour."""
    line = Text()
    for text, cell, wide in zip(texts, cells, widths, strict=True):
        line.append(f"{'':{gap}}{text:>{wide}}", _cell_style(cell))
    return line


def _print_pairs(out: Console, titles: list[str], texts: list[str], cells: tuple[Cell, ...]) -> None:
    """Print cells of one row that do not fit side by side under common titles: each after its own title, as many on a
    line as fit."""
    line = Text("  ")
    for title, text, cell in zip(titles, texts, cells, strict=True):
        size = len(title) + len(text) + 3
        if len(line) > 2 and len(line) + size > _columns(out):
            out.print(line)
            line = Text("  ")
        if size > _columns(out):
            paragraph(out, Text(text, _cell_style(cell)), label=Text(f"  {title} ", "dim"), hang=4)
            continue
        line.append("  " if len(line) > 2 else "").append(f"{title} ", "dim").append(text, _cell_style(cell))
    if len(line) > 2:
        out.print(line)


def _format_cell(cell: Cell) -> str:
    """Return the text of a cell without its style; of a `NamedCell` only the name, of a rate without cases a dash."""
    if isinstance(cell, NamedCell):
        return brief(cell.name)
    if isinstance(cell, IntervalCell):
        return f"{percent(cell.rate.rate)} ({100 * cell.rate.low:.0f}-{100 * cell.rate.high:.0f})"
    if isinstance(cell, PageRate):
        return percent(cell.rate) if cell.of else "–"
    if isinstance(cell, ToneCell):
        return brief(cell.text)
    return f"{cell:,}" if isinstance(cell, int) else brief(cell)


def _cell_style(cell: Cell) -> str:
    """Return the style of a cell: the colour of its tone if it has one, else "default"; also "default" for a rate of
    0."""
    if isinstance(cell, ToneCell):
        return _TONES[cell.tone]
    return _TONES[cell.tone] if isinstance(cell, PageRate) and cell.rate else "default"


# -- bars --------------------------------------------------------------------------------------------------------------


def _print_chart(out: Console, chart: BarChart) -> None:
    """Print a chart: for each row its label, a bar, its rate and its count. A single row has no bar."""
    _print_title(out, chart.title, chart.note)
    labels = [brief(row.label, 60) for row in chart.rows]
    wide = min(_LABEL, max(map(len, labels)))
    counts = max(len(row.count) for row in chart.rows)
    longest = min(_BAR, _columns(out) - wide - counts - 16)
    most = max(row.rate.rate for row in chart.rows) or 1.0
    for row, label in zip(chart.rows, labels, strict=True):
        if len(label) > wide:
            paragraph(out, label, label="  ", hang=4)
            label = ""
        bar = "" if len(chart.rows) == 1 else _draw_bar(row, most, longest)
        figures = f" {percent(row.rate.rate):>8}  {row.count:>{counts}}"
        out.print(Text.assemble(f"  {label:<{wide}}  ", (bar, _TONES[row.rate.tone]), figures))
    if chart.more:
        paragraph(out, chart.more, "dim", label="  ")


def _draw_bar(row: BarRow, most: float, longest: int) -> str:
    """Return the bar of a row as block characters, in eighths of a column, padded to `longest` columns. The rate `most`
    fills them; a rate of 0 has a thin bar."""
    eighths = round(8 * longest * row.rate.rate / most)
    whole, part = divmod(eighths, 8)
    drawn = "█" * whole + ("", *"▏▎▍▌▋▊▉")[part]
    return f"{drawn or '▏':<{longest}}"


# -- samples -----------------------------------------------------------------------------------------------------------


def _print_cards(out: Console, part: SampleCards, most: int) -> None:
    """Print the first `most` cards of samples."""
    shown = part.cards[:most]
    if not shown:
        return
    left = len(part.cards) - len(shown)
    _print_title(out, part.title, f"{left} more in --html and --json" if left else part.note)
    for card in shown:
        _print_card(out, card)


def _print_card(out: Console, card: SampleCard) -> None:
    """Print one card: its title and its samples."""
    title = Text.assemble((brief(card.kind), _TONES[card.tone]), " ", (brief(card.name), "bold"))
    paragraph(out, title.append(f"  {brief(card.source, 300)}", "dim"), hang=2)
    for sample in card.samples:
        paragraph(out, _format_sample(out, sample), label="    ")
        if sample.says:
            paragraph(out, f"{brief(sample.where)}: {brief(sample.says, 300)}", "dim", label="    ")


def _format_sample(out: Console, sample: PageSample) -> Text:
    """Return a sample as text, with the finding marked by colours, or by brackets on a terminal without colours."""
    coloured = out.color_system is not None and not out.no_color
    text = Text("… " if sample.before else "")
    for at, piece in enumerate(sample.pieces):
        begins = piece.found and not (at and sample.pieces[at - 1].found)
        ends = piece.found and not (sample.pieces[at + 1 : at + 2] and sample.pieces[at + 1].found)
        content = visible(_shorten_piece(piece, at, sample), one_line=True)
        if coloured:
            text.append(content, f"{STYLES[piece.kind]} underline" if piece.found else STYLES[piece.kind])
        else:
            text.append(f"{'⟦' if begins else ''}{content}{'⟧' if ends else ''}")
    if sample.is_end:
        text.append("◄", "red")
    return text.append(" …") if sample.after else text


def _shorten_piece(piece: SamplePiece, at: int, sample: PageSample) -> str:
    """Return the text of the piece at index `at` of a sample: only its end before the finding, its beginning after it,
    and the beginning of the finding itself if it is very long."""
    if piece.found or len(piece.text) <= _AROUND:
        return piece.text[: 4 * _AROUND]
    before = any(each.found for each in sample.pieces[at + 1 :]) or sample.is_end
    return f"… {piece.text[-_AROUND:]}" if before else f"{piece.text[:_AROUND]} …"
