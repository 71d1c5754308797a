"""The search for superlinear cost finds nothing in the source and detects superlinear samples."""

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

SEEDS = 24
# Inputs that the search has found.
FOUND_INPUTS = [
    ("read", "inkling", '\'{"name": "write", "arguments": {', "'1\t", "<|content_invoke_tool_text|>"),
    ("parse", "lfm2", "<|tool_call_start|>[write(text='a'", ",", ""),
]


@pytest.mark.parametrize("found", FOUND_INPUTS, ids=lambda found: str(found[1]))
def test_inputs_found_earlier_are_linear(found: tuple[str, ...]) -> None:
    assert superlinear.times(superlinear.Case(*found)) <= MOST


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_steps_of_a_random_case_are_linear(seed: int) -> None:
    case = superlinear.draw(random.Random(seed), list(FORMATS))
    assert superlinear.times(case) <= MOST, case


SLOW = {
    "two runs that overlap": (r"\s*a?\s*:", ("match",)),
    "a run that is looked for": (r"[ \t]+x", ("search",)),
    "a lazy run and blanks": (r"```(.*?)\n?[ \t]*```", ("match",)),
    "a run of runs": (r"(?:a+)+b", ("match",)),
    "a run at every place": (r"<[^>]*>", ("finditer",)),
}


@pytest.mark.parametrize("case", SLOW)
def test_an_attack_detects_a_superlinear_pattern(case: str) -> None:
    source, methods = SLOW[case]
    assert patterns.find_slow_text(patterns.SourcePattern(source, re.S, "", methods)) is not None


@pytest.mark.parametrize("source", [r"\s*+a?+\s*+:", r"(?<![ \t])[ \t]++x", r"(?:a++)++b", r"[^>]*+>"])
def test_an_attack_does_not_report_a_linear_pattern(source: str) -> None:
    assert patterns.find_slow_text(patterns.SourcePattern(source, 0, "", ("match",))) is None


@pytest.mark.sweep  # it loads the package a second time
def test_the_patterns_of_the_source_are_collected() -> None:
    found = {each.place.partition(":")[0] for each in patterns.find_patterns()}
    assert {"parsing/markers.py", "repairs/loose_json.py"} <= found
