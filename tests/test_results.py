"""The first part of docs/results.md matches the raw rows in results/."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="the results are not part of the sdist")


@pytest.fixture(scope="module")
def results() -> Iterator[Any]:
    """Return the module evals/results.py."""
    sys.path.insert(0, str(ROOT / "evals"))
    try:
        yield importlib.import_module("results")
    finally:
        sys.path.remove(str(ROOT / "evals"))


def test_every_table_of_the_page_is_computed_from_its_rows(results: Any) -> None:
    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    found = [each for each in results.read_all() if f"`{each.file}`" in page]
    assert found
    for each in found:
        assert results.figures(each) in page and results.steps(each) in page


def test_the_picture_has_a_line_for_every_result(results: Any) -> None:
    lines = results.lines_of(results.read_all())
    svg = results.picture(lines)
    assert len(lines) >= 2 and all(line.label in svg for line in lines)
    assert svg.count('class="i"') == 3 * len(lines)
