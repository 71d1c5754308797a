"""evals/guard.py: the scripted models behave as declared, every loop ends, and the page shows the recorded results."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not (ROOT / "evals").is_dir(), reason="the evals are not part of the sdist")


@pytest.fixture(scope="module")
def guard() -> Iterator[Any]:
    """Return the module evals/guard.py."""
    sys.path.insert(0, str(ROOT / "evals"))
    try:
        yield importlib.import_module("guard")
    finally:
        sys.path.remove(str(ROOT / "evals"))


@pytest.fixture(scope="module")
def fleet_ways(guard: Any) -> list[Any]:
    return [way for way in guard.task_paths() if way.domain.name == "fleet"]


def run_scripted(guard: Any, fleet_ways: list[Any], model: str, heed: float, of: str) -> list[Any]:
    fault = guard.FAULTS[model]
    able = [way for way in fleet_ways if guard.can_show(fault, way)]
    return [guard.run_scripted(way, fault, heed, "1", of) for way in able]


@pytest.mark.parametrize("of", ["none", "parse", "full", "task"])
def test_a_model_without_a_fault_completes_every_task_under_every_guard(guard: Any, of: str) -> None:
    for run in run_scripted(guard, guard.task_paths(), "none", 1.0, of):
        assert run.completed and not run.harm and not run.wasted


FAULTY = (
    "unknown_name missing_argument one_or_the_other odd_call hollow_call announces silent answers_at_once two_at_once "
    "repeats goes_round keeps_failing ends_early skips_ahead goes_on wanders short_memory must_call lookalike "
    "acts_unasked"
).split()


def test_every_fault_is_covered(guard: Any) -> None:
    assert list(guard.FAULTS) == ["none", *FAULTY]
    assert {fault.policy for fault in guard.FAULTS.values() if fault.policy} == set(guard.POLICIES)


@pytest.mark.parametrize("model", FAULTY)
def test_a_model_that_ignores_the_guard_never_loops_endlessly(guard: Any, fleet_ways: list[Any], model: str) -> None:
    found = run_scripted(guard, fleet_ways, model, 0.0, "task")
    assert found and all(run.status != "out of turns" for run in found)
    assert any(run.completed for run in found) == (model in ("goes_on", "short_memory", "must_call"))


@pytest.mark.parametrize(
    "model",
    (
        "odd_call announces silent answers_at_once two_at_once ends_early skips_ahead goes_on repeats short_memory "
        "must_call"
    ).split(),
)
def test_the_policy_for_a_fault_alone_helps_a_model_that_heeds_it(
    guard: Any, fleet_ways: list[Any], model: str
) -> None:
    policy = guard.FAULTS[model].policy
    assert not any(run.completed for run in run_scripted(guard, fleet_ways, model, 1.0, "none"))
    assert all(run.completed for run in run_scripted(guard, fleet_ways, model, 1.0, f"only {policy}"))


def test_the_page_shows_the_recorded_cells(guard: Any) -> None:
    lines = (guard.FOLDER / "scripted.jsonl").read_text("utf-8").splitlines()
    cells = [msgspec.convert(json.loads(line), guard.Cell) for line in lines[1:]]
    assert guard.part(cells) in guard.PAGE.read_text("utf-8")
