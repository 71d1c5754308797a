"""`make measure` and `make walk`: reached goals stay reached, and the figures count what they claim."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import measure
import walk


def parse_function(text: str) -> ast.FunctionDef:
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def write_package(folder: Path, **modules: str) -> list[measure.Source]:
    package = folder / "src" / "rightcall"
    for name, text in modules.items():
        path = package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return measure.read_package(folder / "src")


@pytest.mark.sweep  # it parses the package several times
def test_reached_goals_stay_reached() -> None:
    rows = {row.name: row for row in measure.measure()}
    assert rows.keys() >= measure.REACHED
    assert [row for name, row in rows.items() if name in measure.REACHED and not row.is_met] == []


@pytest.mark.parametrize(
    "text, branches",
    [
        ("def f():\n    return 1", 1),
        ("def f(a):\n    if a:\n        return 1\n    elif a is None:\n        return 2\n    return 3", 3),
        ("def f(a, b, c):\n    return a and b or c", 3),
        ("def f(a):\n    return [b for b in a if b]", 3),
        ("def f(a):\n    match a:\n        case 1:\n            return 2\n        case _:\n            return 3", 3),
        ("def f(a):\n    try:\n        return a()\n    except OSError:\n        return None", 2),
        ("def f(a):\n    def g(b):\n        return b or a\n    return g", 1),
        ("def f(a):\n    return lambda b: b or a", 1),
    ],
)
def test_complexity_counts_branches_outside_inner_functions(text: str, branches: int) -> None:
    assert measure.complexity(parse_function(text)) == branches


def test_code_lines_exclude_comments_blank_lines_and_docstrings(tmp_path: Path) -> None:
    text = '"""Doc.\n\nMore."""\n\n# a comment\na = 1  # one\nb = [\n    2,\n]\n'
    (source,) = write_package(tmp_path, one=text)
    assert source.code_lines == {6, 7, 8, 9}


def test_writes_to_other_objects_include_calls_of_setters(tmp_path: Path) -> None:
    setter = "class A:\n    def __init__(self, b):\n        self.b = b\n    def set_b(self, b):\n        self.b = b\n"
    sources = write_package(tmp_path, one=setter, two="def f(a):\n    a.b = 1\n    a.b.c += 1\n    a.set_b(2)\n")
    assert measure.count_writes(sources) == 3


@pytest.mark.parametrize(
    "text, count",
    [
        ("class A:\n    def f(self):\n        self.a = 1\n        self.b, self.a = 2, 3", 2),
        ("class A:\n    __slots__ = ('a', 'b', 'c')", 3),
        ("class A:\n    a: int\n    b: str = ''", 2),
        ("class A(NamedTuple):\n    a: int", 0),
        ("class A(msgspec.Struct, frozen=True):\n    a: int", 0),
        ("@dataclass(frozen=True)\nclass A:\n    a: int", 0),
    ],
)
def test_attributes_of_values_are_not_counted(text: str, count: int) -> None:
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.ClassDef)
    assert measure.count_attributes(node) == count


def test_names_in_the_private_vocabulary_are_listed(tmp_path: Path) -> None:
    text = "def _told(): ...\ndef tell_user(): ...\nclass Settled: ...\ndef settle_all(): ...\ndef parse(): ...\n"
    sources = write_package(tmp_path, one=text, rehearsal="", serve="")
    names = [line.partition(" ")[2] for line in measure.private_names(sources)]
    assert sorted(names) == ["Settled", "_told", "rehearsal", "settle_all"]


def test_walk_counts_functions_by_file_and_calls_between_files(tmp_path: Path) -> None:
    texts = {
        "one": "from rightcall.two import g\ndef f():\n    return h() + g()\ndef h():\n    return 1\n",
        "two": "def g():\n    return 2\n",
    }
    write_package(tmp_path, **texts)
    package = str(tmp_path / "src" / "rightcall")
    modules: dict[str, object] = {}
    for name in ("two", "one"):
        text = texts[name].replace("from rightcall.two import g\n", "")
        exec(compile(text, f"{package}/{name}.py", "exec"), modules)
    task = modules["f"]
    assert callable(task)
    assert walk.trace_walk(task, package).counts == (2, 3, 1)
