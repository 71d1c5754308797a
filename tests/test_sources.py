"""The provenance table, `docs/capabilities.md`, is complete and correct.

Each function and each test of the source documents has a row, and a row names an existing module and existing
tests. Tests are found by parsing their files, not by importing them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "capabilities.md"

HEADER = ("source item", "kind", "what it does / asserts", "ours", "test")
KINDS = {"function", "test", "extra"}
AREAS = {"trust", "contract", "backend", "constrain", "dispatch", "capture"}

# Numbers of functions and tests, counted in the source documents, which are not part of this repository.
SOURCES = {
    "Capture CLI": (13, 5),
    "Normaliser and dispatch": (45, 32),
    "Contract and text calls": (33, 0),
    "Coding tools": (2, 12),
    "Grammar": (14, 16),
}

CELL_END = re.compile(r"(?<!\\)\|")
ITEM = re.compile(r"`[^`]+`")
MODULES = re.compile(r"`[\w/]+\.py`(, `[\w/]+\.py`)*")
NODE_IDS = re.compile(r"`tests/[\w/]+\.py(::\w+)+`(, `tests/[\w/]+\.py(::\w+)+`)*")
PLANNED = re.compile(r"planned: (.+)")


class Row(NamedTuple):
    section: str
    item: str
    kind: str
    what: str
    ours: str
    test: str


def read_rows(markdown: str) -> Iterator[Row]:
    section = ""
    for line in markdown.splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
        elif line.startswith("|"):
            cells = tuple(cell.strip() for cell in CELL_END.split(line)[1:-1])
            if cells != HEADER and not all(set(cell) <= set("-:") for cell in cells):
                assert len(cells) == len(HEADER), f"not {len(HEADER)} cells: {line}"
                yield Row(section, *cells)


def row_faults(row: Row, *, root: Path = ROOT) -> list[str]:
    """Return what is wrong with this row alone; an empty list if it is correct."""
    faults = [f"unknown kind {row.kind!r}"] if row.kind not in KINDS else []
    faults += [] if ITEM.fullmatch(row.item) else ["the source item is not in backticks"]
    faults += [] if row.what else ["does not say what it does"]
    faults += _module_faults(row.ours, root) + _test_faults(row.test, root)
    if (row.ours == "planned") != row.test.startswith("planned"):
        faults.append("planned in one column only")
    return faults


def _module_faults(modules: str, root: Path) -> list[str]:
    if modules == "planned":
        return []
    if not MODULES.fullmatch(modules):
        return [f"neither a module nor 'planned': {modules!r}"]
    package = root / "src" / "rightcall"
    return [f"no module {name}" for name in _names_in_backticks(modules) if not (package / name).is_file()]


def _test_faults(test: str, root: Path) -> list[str]:
    if planned := PLANNED.fullmatch(test):
        return [] if planned[1] in AREAS else [f"unknown area {planned[1]!r}"]
    if not NODE_IDS.fullmatch(test):
        return [f"unknown status {test!r}"]
    return [f"no test {node_id}" for node_id in _names_in_backticks(test) if not is_a_test(node_id, root=root)]


def _names_in_backticks(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def is_a_test(node_id: str, *, root: Path = ROOT) -> bool:
    """Return whether `tests/file.py::test_name` or `tests/file.py::TestClass::test_name` names an existing test."""
    file, *names = node_id.split("::")
    return names[-1].startswith("test_") and tuple(names) in _defined_functions(root / file)


@cache
def _defined_functions(path: Path) -> frozenset[tuple[str, ...]]:
    if not path.is_file():
        return frozenset()
    return frozenset(_functions(ast.parse(path.read_text(encoding="utf-8")).body, ()))


def _functions(body: Sequence[ast.stmt], outer: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (*outer, node.name)
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, (*outer, node.name))


def duplicate_items(rows: Sequence[Row]) -> list[str]:
    """Return the items with two rows.

    The name of a test is unique over all sources, that of a function in its source.
    """
    keys = Counter(row.item if row.kind == "test" else f"{row.section}: {row.item}" for row in rows)
    return [key for key, count in keys.items() if count > 1]


def _rows() -> list[Row]:
    return list(read_rows(TABLE.read_text(encoding="utf-8")))


def test_every_row_names_an_existing_module_and_test_or_a_known_plan() -> None:
    wrong = [f"{row.section}, {row.item}: {fault}" for row in _rows() for fault in row_faults(row)]
    assert not wrong, "\n".join(wrong)


def test_the_table_has_exactly_one_section_per_source() -> None:
    assert list(dict.fromkeys(row.section for row in _rows())) == list(SOURCES)


def test_each_of_the_65_source_tests_has_a_row() -> None:
    assert sum(row.kind == "test" for row in _rows()) == 65


def test_each_source_has_the_counted_number_of_functions_and_tests() -> None:
    counts = Counter((row.section, row.kind) for row in _rows())
    assert {name: (counts[name, "function"], counts[name, "test"]) for name in SOURCES} == SOURCES


def test_no_source_item_has_two_rows() -> None:
    assert duplicate_items(_rows()) == []


def test_a_wrong_row_is_reported(tmp_path: Path) -> None:
    (tmp_path / "src/rightcall").mkdir(parents=True)
    (tmp_path / "src/rightcall/m.py").touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_x.py").write_text(
        "def test_a(): ...\ndef helper(): ...\nclass TestB:\n    async def test_c(self): ...\n"
    )
    right = Row("S", "`f`", "test", "does it", "`m.py`", "`tests/test_x.py::test_a`, `tests/test_x.py::TestB::test_c`")
    wrong = {
        "no test tests/test_x.py::test_c": right._replace(test="`tests/test_x.py::test_c`"),
        "no test tests/test_x.py::helper": right._replace(test="`tests/test_x.py::helper`"),
        "no test tests/gone.py::test_a": right._replace(test="`tests/gone.py::test_a`"),
        "unknown status 'done'": right._replace(test="done"),
        "unknown area 'later'": right._replace(ours="planned", test="planned: later"),
        "planned in one column only": right._replace(test="planned: trust"),
        "no module n.py": right._replace(ours="`n.py`"),
        "unknown kind 'macro'": right._replace(kind="macro"),
    }
    assert row_faults(right, root=tmp_path) == []
    assert {fault: row_faults(row, root=tmp_path) for fault, row in wrong.items()} == {
        fault: [fault] for fault in wrong
    }


def test_a_second_row_for_a_source_test_is_reported() -> None:
    row = Row("S", "`t`", "test", "asserts it", "planned", "planned: trust")
    assert duplicate_items([row, row._replace(section="Other")]) == ["`t`"]
    assert duplicate_items([row._replace(kind="function"), row._replace(kind="function", section="Other")]) == []
