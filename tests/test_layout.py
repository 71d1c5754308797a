"""Text layout on a terminal: no line is too wide, no word that fits is broken, and no text is lost."""

import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from rightcall.cli.layout import LABEL, Flow, paragraph, row, table

WIDTHS = st.integers(40, 130)
SHORT = st.lists(st.text("ab界", min_size=1, max_size=14), max_size=40)
LONG = st.lists(st.text("ab", min_size=1, max_size=200), max_size=8)
TABLES = st.integers(1, 6).flatmap(
    lambda wide: st.lists(st.lists(SHORT.map(" ".join), min_size=wide, max_size=wide), min_size=1, max_size=5)
)


def render_lines(draw: Callable[[Console], None], width: int | None) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width) if width else "")
        file = io.StringIO()
        draw(Console(file=file, soft_wrap=True, markup=False, highlight=False, emoji=False))
        return file.getvalue().splitlines()


def words_of(lines: list[str]) -> list[str]:
    return " ".join(lines).split()


@given(SHORT, WIDTHS, st.integers(0, 12))
def test_a_row_wraps_between_words_and_is_indented(words: list[str], width: int, indent: int) -> None:
    lines = render_lines(lambda out: row(out, "label", " " * indent + " ".join(words)), width)
    assert all(cell_len(line) <= width for line in lines)
    assert words_of(lines) == ["label", *words]
    assert all(line.startswith(" " * LABEL) for line in lines[1:])


@given(LONG, WIDTHS)
def test_only_a_word_longer_than_the_line_is_broken(words: list[str], width: int) -> None:
    lines = render_lines(lambda out: row(out, "label", " ".join(words)), width)
    assert all(cell_len(line) <= width for line in lines)
    shown = words_of(lines)[1:]
    assert "".join(shown) == "".join(words)
    if all(len(word) <= width for word in words):
        assert shown == words


@given(SHORT)
def test_lines_are_not_wrapped_in_a_pipe(words: list[str]) -> None:
    assert render_lines(lambda out: paragraph(out, " ".join(words)), None) == [" ".join(words)]


@given(TABLES, WIDTHS)
def test_a_table_fits_its_width_and_breaks_no_word(rows: list[list[str]], width: int) -> None:
    heads = [f"head {number}" for number in range(len(rows[0]))]
    lines = render_lines(lambda out: table(out, heads, rows), width)
    assert all(cell_len(line) <= width for line in lines)
    expected = sorted(word for each in rows for cell in each for word in cell.split())
    assert [word for word in sorted(words_of(lines)) if word in expected] == expected


def test_numbers_are_right_aligned_and_a_table_without_room_becomes_a_list() -> None:
    assert render_lines(lambda out: table(out, ("name", "n"), [("a", 1), ("b", 1000)]), 60) == [
        "name      n",
        "a         1",
        "b     1,000",
    ]
    wide = [("x" * 30, "y" * 30)]
    assert render_lines(lambda out: table(out, ("one", "other"), wide), 60) == ["x" * 30, "  other  " + "y" * 30]


@given(SHORT.map(" ".join), WIDTHS, st.integers(1, 9))
def test_streamed_text_is_laid_out_like_whole_text(text: str, width: int, size: int) -> None:
    def flow_lines(size: int) -> list[str]:
        def draw(out: Console) -> None:
            flow = Flow(out)
            for start in range(0, len(text), size):
                flow.write(text[start : start + size])
            flow.close()

        return render_lines(draw, width)

    lines = flow_lines(size)
    assert lines == flow_lines(10_000)
    assert all(cell_len(line) <= width for line in lines)
    assert words_of(lines) == text.split()
