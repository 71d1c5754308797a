"""Every known class of fault, over every format by discovery: a sample of the cases that `make classes` reads."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rightcall.formats import FORMATS

EVALS = Path(__file__).resolve().parent.parent / "evals"
EVERY = 41  # `make classes` reads every case.

pytestmark = pytest.mark.skipif(not EVALS.is_dir(), reason="the evals are not part of the sdist")


@pytest.fixture(scope="module")
def classes() -> Iterator[Any]:
    """Return the modules `made` and `judge` of evals/classes, and the stored cases."""
    sys.path.insert(0, str(EVALS))
    try:
        from classes import judge, made  # type: ignore[import-not-found]

        yield SimpleNamespace(made=made, judge=judge, cases=made.read_cases())
    finally:
        sys.path.remove(str(EVALS))


@pytest.mark.sweep
def test_the_stored_cases_equal_the_generated_cases(classes: Any) -> None:
    assert classes.made.generate_cases() == classes.cases, "run `make classes FLAGS=--write` and look at what changed"


def test_every_class_and_every_format_has_enough_cases(classes: Any) -> None:
    kinds = Counter([case.kind for case in classes.cases])
    assert sum(kinds.values()) >= 2000
    wanted = "A1 A2 A3 A4 A5 A6 A7 A8 A9 B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11 B12 C D E F G1 G3 G5 I".split()
    assert not set(wanted) - set(kinds)
    assert {case.format for case in classes.cases} == set(FORMATS)


def test_sampled_cases_of_every_class_are_parsed_as_expected(classes: Any) -> None:
    faults = [fault for case in classes.cases[::EVERY] if (fault := classes.judge.find_fault(case)) is not None]
    shown = [f"{f.case.kind} {f.case.shape} ({f.case.format}), {f.how}: {f.what}\n  {f.case.text!r}" for f in faults]
    assert not faults, f"{len(faults)} faults, the first of them:\n" + "\n".join(shown[:10])


def test_the_judge_reports_every_kind_of_difference(classes: Any) -> None:
    """Each field of an expectation is checked: a judge without checks would pass all tests above."""
    from classes.case import Case, Expect  # type: ignore[import-not-found]

    text = 'Well.\n<tool_call>\n{"name": "lookup", "arguments": {"word": "owl"}}\n</tool_call>'
    wrong = [
        Expect(calls=[]),
        Expect(calls=[("lookup", {"word": "bat"})]),
        Expect(among=[("stop", {})]),
        Expect(at_most=0),
        Expect(clean=["owl"]),
        Expect(refused=1),
        Expect(attempted="stop"),
        Expect(codes=["truncated"]),
        Expect(has_problem=True),
        Expect(content="Bad."),
        Expect(reasoning="Well."),
        Expect(holds=["Bad."]),
        Expect(lacks=["Well."]),
        Expect(rules=["hoisted_argument"]),
        Expect(named=["word"]),
        Expect(one_message=["word"]),
        Expect(either=[Expect(calls=[]), Expect(has_problem=True)]),
    ]
    for expect in wrong:
        assert classes.judge.find_fault(Case("X", "made here", "hermes", text, expect)) is not None, expect
    right = Expect(
        calls=[("lookup", {"word": "owl"})], content="Well.", either=[Expect(has_problem=True), Expect(at_most=1)]
    )
    assert classes.judge.find_fault(Case("X", "made here", "hermes", text, right, auto="same")) is None
