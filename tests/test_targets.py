"""The fuzzer's targets: a few cases of each hold, and each sees what it looks for."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

import rightcall
from rightcall import Reply
from support.hostile import Broken

FUZZ = Path(__file__).resolve().parent.parent / "fuzz"
if not FUZZ.exists():
    pytest.skip("the fuzzer is not part of the sdist", allow_module_level=True)
sys.path.insert(0, str(FUZZ))
targets: Any = importlib.import_module("targets")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", targets.TARGETS)
def test_a_case_of_a_target_holds(name: str, seed: int) -> None:
    case = targets.TARGETS[name](Random(seed))
    case.judge(case.text)
    assert case.repro(case.text)


@pytest.mark.parametrize("name", targets.TARGETS)
def test_the_same_dice_make_the_same_case(name: str) -> None:
    first, second = (targets.TARGETS[name](Random(7)) for _ in range(2))
    assert first.text == second.text and first.repro(first.text) == second.repro(second.text)


def _blind(call: Any, tools: Any) -> list[Any]:
    return [rightcall.Problem("missing", "not so")]


@pytest.mark.parametrize("name", ["parse", "read", "stream", "repair", "check", "grammar"])
def test_a_target_sees_a_check_that_disagrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "check", _blind)
    assert any(_breaks(name, seed) for seed in range(30))


def test_the_target_of_dispatch_sees_calls_that_run_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_of_them(reply: Reply, tools: Any) -> None:
        for call in reply.attempts:
            for _ in range(2):
                rightcall.dispatch_sync([call], tools)

    monkeypatch.setattr(targets, "dispatch_sync", all_of_them)
    assert any(_breaks("dispatch", seed) for seed in range(30))


def _breaks(name: str, seed: int) -> bool:
    case = targets.TARGETS[name](Random(seed))
    try:
        case.judge(case.text)
    except Broken:
        return True
    return False
