"""Lay out the output of commands: labelled rows, paragraphs, tables, bar charts, streamed text and JSON.

On a terminal, lines are wrapped between words at its width and indented under the text that they continue. Only a word
that is longer than a line is broken. In a pipe or a file lines are not wrapped, unless COLUMNS sets a width. Callers
pass text of a model or a user through `safe_text.visible` or `brief` first.

    row(out, "note", "a text of any length", "yellow")
    table(out, ("tool", "calls"), [("get_weather", 12)])
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

from rich.cells import cell_len, get_character_cell_size
from rich.console import Console
from rich.text import Text as Styled

from rightcall.storage.jsonl import finite

LABEL = 11
_MIN_COLUMNS = 40  # in a narrower terminal, the terminal breaks the lines
_DEFAULT_COLUMNS = 80  # for a terminal that does not report its size
_GAP = 2
_INDENT = 2
_LONGEST_TERM = 24  # columns of a term beside its definition
_WORD = re.compile(r"( *+)([^ ]*+)")
Cell = str | int | float | Styled


class Screen(Console):
    """A console without markup, highlighting, emoji codes and wrapping: this module wraps lines itself."""

    def __init__(self, *, stderr: bool = False, file: IO[str] | None = None) -> None:
        super().__init__(markup=False, highlight=False, emoji=False, soft_wrap=True, stderr=stderr, file=file)

    def on_broken_pipe(self) -> None:
        """Raise `BrokenPipeError`, so that the whole command ends; the base class would exit by itself."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Return a new console that writes to standard output, or with `stderr` to standard error."""
    return Screen(stderr=stderr)


class Page(Screen):
    """A screen that keeps its output in memory, in lines of `columns`."""

    def __init__(self, columns: int) -> None:
        super().__init__(file=io.StringIO())
        self.columns = columns

    @property
    def text(self) -> str:
        """Return all output so far."""
        assert isinstance(self.file, io.StringIO)
        return self.file.getvalue()


def line_width(out: Console) -> int | None:
    """Return the number of columns in which output is wrapped: that of a `Page` or a terminal, or COLUMNS. None if its
    lines are not wrapped, as in a pipe or a file. At least `_MIN_COLUMNS`, except for a `Page`."""
    if isinstance(out, Page):
        return out.columns
    setting, is_terminal = os.environ.get("COLUMNS", ""), _is_terminal(out)
    if setting.isdigit() and int(setting) and (is_terminal or not out.stderr):  # keep redirected messages on one line
        return max(int(setting), _MIN_COLUMNS)
    try:
        size = os.get_terminal_size(out.file.fileno()).columns if is_terminal else None
    except (OSError, ValueError):  # a stream without a file descriptor
        return None
    return None if size is None else max(size or _DEFAULT_COLUMNS, _MIN_COLUMNS)


def _is_terminal(out: Console) -> bool:
    """Return whether the console writes to a terminal."""
    return bool(getattr(out.file, "isatty", bool)())


def row(out: Console, label: str, text: str | Styled, style: str = "default") -> None:
    """Print a label in bold, and beside it a text of one or more lines, of which all are indented by `LABEL`
    columns."""
    paragraph(out, text, style, label=_bold(label.ljust(LABEL - 1) + " "), hang=LABEL)


def paragraph(
    out: Console, text: str | Styled, style: str = "", *, label: str | Styled = "", hang: int | None = None
) -> None:
    """Print a text after a label, wrapped to the width of the output. Further lines are indented to the column where
    the text begins, or by `hang` columns."""
    head = Styled.assemble(label)
    under = len(head) if hang is None else hang
    limit = line_width(out)
    for number, line in enumerate(_split_lines(text, style)):
        before = Styled(" " * min(under, len(head))) if number else head
        for indent, piece in _wrap(line, limit, cell_len(before.plain), under):
            out.print(Styled.assemble(before if indent is None else " " * indent, piece))


def definitions(out: Console, pairs: Sequence[tuple[str, str]]) -> None:
    """Print terms and their definitions, given as pairs, side by side. A term longer than `_LONGEST_TERM` is on a
    separate line, its definition below. Raises `ValueError` for no pairs."""
    sizes = [len(word) for word, _ in pairs]
    wide = max([size for size in sizes if size <= _LONGEST_TERM], default=0) + 2 * _INDENT
    wide = max(wide, _LONGEST_TERM // 2 + 2 * _INDENT) if max(sizes) > _LONGEST_TERM else wide
    for word, meaning in pairs:
        if len(word) > _LONGEST_TERM:
            fits = len(word) + _INDENT <= (line_width(out) or len(word) + _INDENT)
            paragraph(out, word if fits else word.replace("|", " | "), hang=3 * _INDENT, label=" " * _INDENT)
            paragraph(out, meaning, hang=wide, label=" " * wide)
        else:
            paragraph(out, meaning, label=(" " * _INDENT + word).ljust(wide))


def heading(out: Console, text: str) -> None:
    """Print a title in bold."""
    paragraph(out, text, "bold", hang=_INDENT)


def _bold(text: str) -> Styled:
    """Return a text in bold."""
    return Styled.assemble((text, "bold"))


def _split_lines(text: str | Styled, style: str) -> list[Styled]:
    """Return the lines of a text, also blank ones. A plain text gets `style`; a styled one keeps its own."""
    styled = text if isinstance(text, Styled) else Styled(text, style)
    return list(styled.split("\n", allow_blank=True))


# -- breaking a line ---------------------------------------------------------------------------------------------------


class _Piece(NamedTuple):
    """A slice of a line. `indent` is None if it follows the label."""

    indent: int | None
    start: int
    end: int


def _wrap(line: Styled, limit: int | None, first: int, hang: int) -> Iterator[tuple[int | None, Styled]]:
    """Yield the pieces of one line that fit in `limit` columns, each with its indentation, which is None for the first.

    `first` columns are already used before the first piece; further ones are indented by `hang`, and more if the line
    itself is indented. Without a `limit` the line is yielded whole."""
    if limit is None:
        yield None, line
        return
    if "\t" in line.plain:
        line = line.copy()
        line.expand_tabs(4)
    own = min(len(line.plain) - len(line.plain.lstrip(" ")), limit // 2)
    under = hang + own + _INDENT if own else hang
    pieces = _break_line(line.plain[own:], limit, first + own, under if under <= limit // 2 else hang)
    for number, piece in enumerate(pieces):
        yield piece.indent, line[piece.start + own if number else 0 : piece.end + own]


def _break_line(text: str, limit: int, first: int, hang: int) -> list[_Piece]:
    """Return the pieces of one line, broken between words so that each fits in `limit` columns.

    `first` columns are already used before the first piece, and further ones are indented by `hang`. A word that fits a
    line but not an indented one is indented less; one that is longer than a line is cut."""
    pieces: list[_Piece] = []
    indent, start, end, used = None, 0, 0, first
    for found in _WORD.finditer(text):
        blanks, word = found.groups()
        size = cell_len(word)
        if used + len(blanks) + size <= limit or not word:
            used, end = used + len(blanks) + size, found.end() if word else end
            continue
        if end > start or size <= limit:
            pieces.append(_Piece(indent, start, end))
            indent, start = hang if size > limit else min(hang, limit - size), found.start(2)
            used = indent
        for cut in _cut_word(word, limit - used, limit - hang):
            pieces.append(_Piece(indent, start, found.start(2) + cut))
            indent, start, used = hang, found.start(2) + cut, hang
        used, end = used + cell_len(text[start : found.end()]), found.end()
    return [*pieces, _Piece(indent, start, end)]


def _cut_word(word: str, room: int, further: int) -> Iterator[int]:
    """Yield the positions at which to cut a word that is longer than a line: the first piece has `room` columns, the
    others have `further`."""
    used = 0
    for at, char in enumerate(word):
        size = get_character_cell_size(char)
        if used + size > room and at:
            yield at
            used, room = 0, further
        used += size


# -- tables ------------------------------------------------------------------------------------------------------------


def table(out: Console, heads: Sequence[str], rows: Sequence[Sequence[Cell]], *, indent: int = 0) -> None:
    """Print a table with these column titles; columns of numbers are aligned to the right. If it is too wide even with
    wrapped cells, print each row as a record. Titles that are all empty are not printed."""
    cells = [[_cell(value) for value in each] for each in rows]
    titled = [[_bold(head) for head in heads], *cells]
    widths = _column_widths(titled, line_width(out), indent)
    if widths is None:
        _print_records(out, heads, cells, indent)
        return
    right = [bool(rows) and all(isinstance(each[at], int | float) for each in rows) for at in range(len(heads))]
    for each in titled if any(heads) else cells:
        _print_table_row(out, each, widths, right, indent)


def _cell(value: Cell) -> Styled:
    """Return the content of a cell as styled text; an integer gets separators."""
    return value if isinstance(value, Styled) else Styled(f"{value:,}" if isinstance(value, int) else str(value))


def _column_widths(rows: list[list[Styled]], limit: int | None, indent: int) -> list[int] | None:
    """Return the width of each column: that of its longest cell, or less, so that the indented table fits in `limit`
    columns without breaking words. None if that is not possible."""
    columns = list(zip(*rows, strict=True))
    wanted = [max(cell_len(cell.plain) for cell in column) for column in columns]
    if limit is None:
        return wanted
    words = [[word for cell in column for word in cell.plain.split()] for column in columns]
    widths = [max(map(cell_len, each), default=0) for each in words]
    spare = limit - indent - sum(widths) - _GAP * (len(widths) - 1)
    if spare < 0:
        return None
    for _ in range(spare):  # widen the column that lacks most
        lacking = max(range(len(widths)), key=lambda at: wanted[at] - widths[at])
        if wanted[lacking] == widths[lacking]:
            break
        widths[lacking] += 1
    return widths


def _print_table_row(out: Console, cells: list[Styled], widths: list[int], right: list[bool], indent: int) -> None:
    """Print one row of a table, with wrapped cells on further lines. `right` says for each column whether it is aligned
    to the right."""
    folded = [_fold_cell(cell, width) for cell, width in zip(cells, widths, strict=True)]
    for at in range(max(map(len, folded))):
        line = Styled(" " * indent)
        for each, width, to_right in zip(folded, widths, right, strict=True):
            piece = each[at] if at < len(each) else Styled()
            blank = " " * (width - cell_len(piece.plain))
            line = Styled.assemble(line, *((blank, piece) if to_right else (piece, blank)), " " * _GAP)
        line.rstrip()
        out.print(line)


def _fold_cell(cell: Styled, width: int) -> list[Styled]:
    """Return the lines of a cell, each at most `width` columns wide."""
    return [
        line[piece.start : piece.end]
        for line in _split_lines(cell, "")
        for piece in _break_line(line.plain, width, 0, 0)
    ]


def _print_records(out: Console, heads: Sequence[str], rows: list[list[Styled]], indent: int) -> None:
    """Print each row as a record: its first cell, and below it the others that are not empty, after their heads."""
    wide = max([len(head) for head in heads[1:]], default=0) + _GAP
    for cells in rows:
        paragraph(out, Styled.assemble(cells[0]), label=" " * indent, hang=indent + 2 * _INDENT)
        for head, cell in zip(heads[1:], cells[1:], strict=True):
            if cell.plain:
                paragraph(out, cell, label=_bold(" " * (indent + _INDENT) + head.ljust(wide)))


# -- streamed text -----------------------------------------------------------------------------------------------------


class Flow:
    """Print streamed text word by word, and wrap lines between words."""

    def __init__(self, out: Console) -> None:
        self._out, self._column, self._word = out, 0, Styled()

    def write(self, text: str, style: str = "") -> None:
        """Print this piece of streamed text up to its last word, which is kept until more text or `close` shows that it
        is complete. If lines are not wrapped, print everything at once."""
        for part in re.findall(r"\n|[^\S\n]|\S+", text):
            if part.isspace():
                self._print_word()
                self._print_blank(part, style)
            else:
                self._word.append(part, style)
                if line_width(self._out) is None:
                    self._print_word()

    def close(self) -> None:
        """Print the last word and end the current line, if there is one."""
        self._print_word()
        if self._column:
            self._out.print()
        self._column = 0

    def _print_blank(self, blank: str, style: str) -> None:
        """End the kept line at a line break, or print another blank as a space; the space is dropped at the end of a
        full line."""
        limit = line_width(self._out)
        if blank == "\n":
            self._out.print()
            self._column = 0
        elif limit is None or self._column < limit:
            self._out.print(Styled(" ", style), end="")
            self._column += 1

    def _print_word(self) -> None:
        """Print the kept word, on a new line if it does not fit, and forget it; a word longer than a line is cut."""
        limit, size = line_width(self._out), cell_len(self._word.plain)
        if limit is not None and self._column and self._column + size > limit:
            self._out.print()
            self._column = 0
        for piece in _fold_cell(self._word, limit or max(size, 1)):
            if piece and self._column + cell_len(piece.plain) > (limit or size + self._column):
                self._out.print()
                self._column = 0
            self._out.print(piece, end="")
            self._column += cell_len(piece.plain)
        self._word = Styled()


# -- charts ------------------------------------------------------------------------------------------------------------

_LONGEST_BAR = 40


def bar_chart(
    out: Console, rows: Sequence[tuple[str, int]], *, most: int = 0, unit: str = "", style: str = "blue"
) -> None:
    """Print a bar and a number with `unit` for each pair of label and number. The longest bar is that of the number
    `most`, or if this is 0 of the largest number; larger numbers have no longer bar. Prints nothing for no rows."""
    if not rows:
        return
    limit = line_width(out) or _DEFAULT_COLUMNS
    most = most or max(number for _, number in rows) or 1
    numbers = max(len(f"{number:,}{unit}") for _, number in rows)
    wide = min(max(cell_len(label) for label, _ in rows), limit - numbers - 15)
    longest = min(_LONGEST_BAR, limit - wide - numbers - 5)
    for label, number in rows:
        bar = "█" * round(longest * min(number, most) / most) or "▏"
        pieces = _fold_cell(Styled(label), wide)
        for at, piece in enumerate(pieces):
            line = Styled.assemble(" " * _INDENT, piece, " " * (wide - cell_len(piece.plain)))
            out.print(
                line if at < len(pieces) - 1 else line.append("  ").append(bar, style).append(f" {number:,}{unit}")
            )


# -- JSON --------------------------------------------------------------------------------------------------------------


def format_json(value: Any) -> str:
    """Return JSON data as indented ASCII text. A number too large for a float becomes null: JSON has no infinity."""
    return json.dumps(finite(value), indent=2).replace("\x7f", "\\u007f")


def json_line(value: Any) -> str:
    """Return JSON data as one line of ASCII text. A number too large for a float becomes null."""
    return json.dumps(finite(value)).replace("\x7f", "\\u007f")
