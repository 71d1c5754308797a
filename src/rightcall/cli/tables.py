"""Plain tables: columns as wide as they must be, numbers to the right."""

from __future__ import annotations

from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A heading and a line per row. The cells are shown as they are: what comes from outside is made visible before."""
    columns = [_column(head, [row[at] for row in rows]) for at, head in enumerate(heads)]
    return "\n".join(["  ".join(line).rstrip() for line in zip(*columns, strict=True)])


def _column(head: str, values: list[object]) -> list[str]:
    """The cells of a column, all of one width; numbers stand to the right."""
    cells = [head, *[f"{value:,}" if isinstance(value, int) else str(value) for value in values]]
    width = max(map(len, cells))
    if values and all(isinstance(value, int | float) for value in values):
        return [cell.rjust(width) for cell in cells]
    return [cell.ljust(width) for cell in cells]
