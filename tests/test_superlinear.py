"""The search for what costs more than it is long finds nothing in the source, and finds what is put there."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fuzz"))

import patterns
import superlinear

from rightcall.formats import FORMATS
from steps import MOST

FEW = 24


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


def test_every_pattern_of_the_source_is_known() -> None:
    found = {each.place.partition(":")[0] for each in patterns.known()}
    compiling = {
        str(path.relative_to(patterns.SOURCE))
        for path in patterns.SOURCE.rglob("*.py")
        if "re.compile(" in path.read_text()
    }
    assert compiling - found == set()
