"""Calls damaged by `evals/damaged`: no repaired call runs with wrong arguments.

`make damage` tries many more.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

EVALS = Path(__file__).resolve().parent.parent / "evals"


@pytest.fixture
def evals(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Import the the module `damaged.count` from the directory `evals`."""
    monkeypatch.syspath_prepend(str(EVALS))
    import importlib

    yield importlib.import_module("damaged.count")
    for name in [name for name in sys.modules if name == "damaged" or name.startswith("damaged.")]:
        del sys.modules[name]


@pytest.mark.parametrize("seed", [1, 2])
def test_no_damaged_call_runs_with_wrong_arguments(evals: ModuleType, seed: int) -> None:
    counted = evals.count_chunk(seed)
    assert counted.wrong == []
    assert counted.total() == evals.CHUNK
    assert counted.total("right") > evals.CHUNK // 5


def test_a_call_with_wrong_arguments_is_counted(evals: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = sys.modules["damaged.judge"].Verdict("other")
    monkeypatch.setattr(evals, "judge_call", lambda *asked: verdict)
    counted = evals.count_chunk(1, count=20)
    assert len(counted.wrong) == counted.total("other") == 20
