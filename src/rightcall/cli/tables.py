"""Plain tables: columns as wide as they must be, numbers to the right."""

from __future__ import annotations

from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A heading and a line per row. The cells are shown as they are: what comes from outside is made visible before."""
    cells = [list(heads), *[[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[at]) for row in cells) for at in range(len(heads))]
    right = [bool(rows) and all(isinstance(row[at], int | float) for row in rows) for at in range(len(heads))]
    lines = [
        "  ".join(
            [
                cell.rjust(width) if to_right else cell.ljust(width)
                for cell, width, to_right in zip(row, widths, right, strict=True)
            ]
        )
        for row in cells
    ]
    return "\n".join([line.rstrip() for line in lines])
