"""The search for what costs more than it is long finds nothing in the source, and finds what is put there."""

from __future__ import annotations

import importlib
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from rightcall.formats import FORMATS
from support.steps import MOST

FUZZ = Path(__file__).resolve().parent.parent / "fuzz"
if not FUZZ.exists():
    pytest.skip("the fuzzer is not part of the sdist", allow_module_level=True)
sys.path.insert(0, str(FUZZ))
patterns: Any = importlib.import_module("patterns")
superlinear: Any = importlib.import_module("superlinear")

FEW = 24
# What the search found once.
FOUND = [
    ("read", "inkling", '\'{"name": "write", "arguments": {', "'1\t", "<|content_invoke_tool_text|>"),
    ("parse", "lfm2", "<|tool_call_start|>[write(text='a'", ",", ""),
]


@pytest.mark.parametrize("found", FOUND, ids=lambda found: str(found[1]))
def test_what_was_found_once_is_linear(found: tuple[str, ...]) -> None:
    assert superlinear.times(superlinear.Case(*found)) <= MOST


@pytest.mark.parametrize("seed", range(FEW))
def test_the_steps_of_a_case_grow_with_its_text_and_no_faster(seed: int) -> None:
    case = superlinear.draw(random.Random(seed), list(FORMATS))
    assert superlinear.times(case) <= MOST, case


SLOW = {
    "two runs that overlap": (r"\s*a?\s*:", ("match",)),
    "a run that is looked for": (r"[ \t]+x", ("search",)),
    "a lazy run and blanks": (r"```(.*?)\n?[ \t]*```", ("match",)),
    "a run of runs": (r"(?:a+)+b", ("match",)),
    "a run at every place": (r"<[^>]*>", ("finditer",)),
}


@pytest.mark.parametrize("how", SLOW)
def test_an_attack_finds_a_pattern_that_is_not_linear(how: str) -> None:
    source, methods = SLOW[how]
    assert patterns.slow(patterns.Found(source, re.S, "", methods)) is not None


@pytest.mark.parametrize("source", [r"\s*+a?+\s*+:", r"(?<![ \t])[ \t]++x", r"(?:a++)++b", r"[^>]*+>"])
def test_an_attack_leaves_a_linear_pattern_alone(source: str) -> None:
    assert patterns.slow(patterns.Found(source, 0, "", ("match",))) is None


@pytest.mark.sweep  # it loads the package a second time
def test_the_patterns_of_the_source_are_known() -> None:
    found = {each.place.partition(":")[0] for each in patterns.known()}
    assert {"parsing/markers.py", "repairs/loose_json.py"} <= found
