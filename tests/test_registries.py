"""Names that are listed in more than one place are listed in all of them; a failure says what to add."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from rightcall.api_names import APIS
from rightcall.datasets.training_shapes import SHAPES
from rightcall.providers.sniff import DIALECTS
from support.dialects import WIRES

ROOT = Path(__file__).resolve().parent.parent


def missing_names(names: Iterable[str], listed: Iterable[str], what: str) -> list[str]:
    """Return a line for each name that is not listed, which says what to add."""
    present = set(listed)
    return [f"{name}: {what}" for name in names if name not in present]


DIALECT_LISTS = [
    (APIS, "add the word to `Api` in api_names.py"),
    ([dialect.name for dialect in DIALECTS.values()], "let `name` of its `Dialect` be the word it has in `DIALECTS`"),
    (
        WIRES,
        "add what its server sends, whole and streamed, to `WIRES` in tests/support/dialects.py: the laws go by it",
    ),
]


@pytest.mark.parametrize("listed, what", DIALECT_LISTS)
def test_every_dialect_is_in_every_list(listed: Iterable[str], what: str) -> None:
    unlisted = missing_names(DIALECTS, listed, what)
    assert not unlisted, "; ".join(unlisted)
    assert missing_names(["lighthouse"], listed, what) == [f"lighthouse: {what}"]


def test_the_documented_table_of_shapes_equals_the_registry() -> None:
    """A shape is one entry of `SHAPES`; the choices of the command and the columns of Parquet are derived from it."""
    page = (ROOT / "docs" / "datasets.md").read_text("utf-8")
    rows = [f"| `{name}` | {shape.example} | {shape.arguments} |" for name, shape in SHAPES.items()]
    table = "\n".join(["| `--to` | an example is | arguments |", "|---|---|---|", *rows])
    assert table in page, f"let the table of shapes in docs/datasets.md be\n{table}"
