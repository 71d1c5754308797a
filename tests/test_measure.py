"""The figures of `make measure` do not get worse, and count what they say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from measure import Source, complexity, copied, measure


def function(text: str) -> ast.FunctionDef:
    found = ast.parse(text).body[0]
    assert isinstance(found, ast.FunctionDef)
    return found


def test_every_goal_is_met() -> None:
    rows = [row for row in measure() if row.goal]
    missed = [f"{row.what}: {row.value}, goal {row.goal}" for row in rows if not row.kept]
    assert rows and not missed, f"{missed}; `make measure FLAGS=--worst` names the worst"


@pytest.mark.parametrize(
    "text, ways",
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
def test_complexity_counts_the_ways_through_a_function_and_not_those_of_what_it_defines(text: str, ways: int) -> None:
    assert complexity(function(text)) == ways


def test_a_line_is_copied_if_it_stands_in_a_run_of_six_that_another_file_has_too() -> None:
    six = "\n".join(f"a{at} = {at}" for at in range(6))
    texts = {"one.py": six, "two.py": "import os\n\n# the same\n" + six, "three.py": six.rpartition("\n")[0]}
    sources = [Source(Path(name), text) for name, text in texts.items()]
    assert copied(sources) == pytest.approx(100 * 12 / 17)
