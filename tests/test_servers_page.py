"""docs/servers.md equals the generated page and contains nothing about the machine that generated it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from rightcall.backends import ReplayBackend

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not (ROOT / "evals").is_dir(), reason="the evals are not part of the sdist")


@pytest.fixture
def servers_page() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "evals"))
    try:
        yield importlib.import_module("real_servers.servers_page")
    finally:
        sys.path.remove(str(ROOT / "evals"))


def test_the_page_is_up_to_date(servers_page: ModuleType) -> None:
    assert (ROOT / "docs" / "servers.md").read_text("utf-8") == servers_page.page()


def test_the_page_contains_no_local_paths(servers_page: ModuleType) -> None:
    text = servers_page.page()
    assert not [word for word in ("/root", "/home", "/tmp", "/work") if word in text]


def test_every_mode_gives_the_recorded_call(servers_page: ModuleType) -> None:
    examined = importlib.import_module("real_servers.examined")
    tapes = sorted(examined.CASSETTES.glob("*.jsonl"))
    assert tapes
    for tape in tapes:
        for mode in examined.load(tape.stem).asked:
            backend = ReplayBackend(tape, mode=mode.mode)
            assert examined.try_mode(backend, mode.mode) == mode, tape.name
