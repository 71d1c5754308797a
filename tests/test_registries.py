"""What is listed in more than one place is listed in all of them; where it is not, the failure says what to write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from dialects import WIRES
from rightcall.api_names import APIS
from rightcall.apis.sniff import DIALECTS
from rightcall.cli.dataset_command import ExportShape
from rightcall.datasets.message_shapes import SHAPES
from rightcall.datasets.parquet import COLUMNS

ROOT = Path(__file__).resolve().parent.parent


def missing(names: Iterable[str], listed: Iterable[str], what: str) -> list[str]:
    """A line for each name that is not listed: what to write."""
    there = set(listed)
    return [f"{name}: {what}" for name in names if name not in there]


DIALECT_LISTS = [
    (APIS, "add the word to `Api` in api_names.py"),
    ([dialect.name for dialect in DIALECTS.values()], "let `name` of its `Dialect` be the word it has in `DIALECTS`"),
    (WIRES, "add what its server sends, whole and streamed, to `WIRES` in tests/dialects.py: the laws go by it"),
]
SHAPE_LISTS = [
    ([shape.value for shape in ExportShape], "add it to `ExportShape` in cli/dataset_command.py"),
    (COLUMNS, "add its columns to `COLUMNS` in datasets/parquet.py"),
    (
        re.findall(r"(?m)^\| `([\w-]+)` \|", (ROOT / "docs" / "datasets.md").read_text("utf-8")),
        "add a line to the table of shapes in docs/datasets.md",
    ),
]


@pytest.mark.parametrize("listed, what", DIALECT_LISTS)
def test_a_dialect_is_known_everywhere(listed: Iterable[str], what: str) -> None:
    unlisted = missing(DIALECTS, listed, what)
    assert not unlisted, "; ".join(unlisted)
    assert missing(["lighthouse"], listed, what) == [f"lighthouse: {what}"]


@pytest.mark.parametrize("listed, what", SHAPE_LISTS)
def test_a_dataset_shape_is_known_everywhere(listed: Iterable[str], what: str) -> None:
    unlisted = missing(SHAPES, listed, what)
    assert not unlisted, "; ".join(unlisted)
    assert missing(["lighthouse"], listed, what) == [f"lighthouse: {what}"]
