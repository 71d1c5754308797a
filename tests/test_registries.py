"""What is listed in more than one place is listed in all of them; where it is not, the failure says what to write."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from rightcall.api_names import APIS
from rightcall.datasets.training_shapes import SHAPES
from rightcall.providers.sniff import DIALECTS
from support.dialects import WIRES

ROOT = Path(__file__).resolve().parent.parent


def missing(names: Iterable[str], listed: Iterable[str], what: str) -> list[str]:
    """A line for each name that is not listed: what to write."""
    there = set(listed)
    return [f"{name}: {what}" for name in names if name not in there]


DIALECT_LISTS = [
    (APIS, "add the word to `Api` in api_names.py"),
    ([dialect.name for dialect in DIALECTS.values()], "let `name` of its `Dialect` be the word it has in `DIALECTS`"),
    (
        WIRES,
        "add what its server sends, whole and streamed, to `WIRES` in tests/support/dialects.py: the laws go by it",
    ),
]


@pytest.mark.parametrize("listed, what", DIALECT_LISTS)
def test_a_dialect_is_known_everywhere(listed: Iterable[str], what: str) -> None:
    unlisted = missing(DIALECTS, listed, what)
    assert not unlisted, "; ".join(unlisted)
    assert missing(["lighthouse"], listed, what) == [f"lighthouse: {what}"]


def test_the_table_of_shapes_is_the_registry() -> None:
    """A shape is one entry of `SHAPES`: the command's choices and the columns of Parquet come from there."""
    page = (ROOT / "docs" / "datasets.md").read_text("utf-8")
    rows = [f"| `{name}` | {shape.example} | {shape.arguments} |" for name, shape in SHAPES.items()]
    table = "\n".join(["| `--to` | an example is | arguments |", "|---|---|---|", *rows])
    assert table in page, f"let the table of shapes in docs/datasets.md be\n{table}"
