"""The targets of the fuzzer: sample cases of each pass, and each detects the faults it is for."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

import rightcall
from rightcall import Reply
from support.hostile import BrokenLaw

FUZZ = Path(__file__).resolve().parent.parent / "fuzz"
if not FUZZ.exists():
    pytest.skip("the fuzzer is not part of the sdist", allow_module_level=True)
sys.path.insert(0, str(FUZZ))
targets: Any = importlib.import_module("targets")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", targets.TARGETS)
def test_sample_cases_of_a_target_pass(name: str, seed: int) -> None:
    case = targets.TARGETS[name](Random(seed))
    case.check(case.text)
    assert case.repro(case.text)


@pytest.mark.parametrize("name", targets.TARGETS)
def test_the_same_seed_gives_the_same_case(name: str) -> None:
    first, second = (targets.TARGETS[name](Random(7)) for _ in range(2))
    assert first.text == second.text and first.repro(first.text) == second.repro(second.text)


def _check_with_a_problem(call: Any, tools: Any) -> list[Any]:
    return [rightcall.Problem("missing", "not so")]


@pytest.mark.parametrize("name", ["parse", "read", "stream", "repair", "check", "grammar"])
def test_a_target_detects_a_check_that_disagrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "check", _check_with_a_problem)
    assert any(_detects_a_fault(name, seed) for seed in range(30))


def test_the_dispatch_target_detects_calls_that_run_without_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_all_twice(reply: Reply, tools: Any) -> None:
        for call in reply.attempts:
            for _ in range(2):
                rightcall.dispatch_sync([call], tools)

    monkeypatch.setattr(targets, "dispatch_sync", run_all_twice)
    assert any(_detects_a_fault("dispatch", seed) for seed in range(30))


def _detects_a_fault(name: str, seed: int) -> bool:
    case = targets.TARGETS[name](Random(seed))
    try:
        case.check(case.text)
    except BrokenLaw:
        return True
    return False
