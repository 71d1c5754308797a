"""The bugs of `make mutants` match the source, and their checks exist."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rightcall.formats import FORMATS
from rightcall.testing.laws import LAWS

ROOT = Path(__file__).resolve().parent.parent
BUGS = ROOT / "fuzz/mutants.toml"

pytestmark = pytest.mark.skipif(not BUGS.exists(), reason="the bugs are not part of the sdist")


def bugs() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(BUGS.read_text())["mutant"] if BUGS.exists() else []
    return found


@pytest.mark.parametrize("bug", bugs(), ids=lambda bug: str(bug["name"]))
def test_a_bug_matches_exactly_one_line_of_the_source(bug: dict[str, Any]) -> None:
    source = (ROOT / "src/rightcall" / bug["file"]).read_text()
    assert source.count(bug["find"]) == 1, "the line was changed: put the bug in anew, or another in its place"
    assert "\n" not in bug["find"] + bug["put"]
    compile(source.replace(bug["find"], bug["put"]), bug["file"], "exec")


@pytest.mark.parametrize("check", sorted({check for bug in bugs() for check in bug["checks"]}))
def test_a_check_exists(check: str) -> None:
    words = shlex.split(check)
    if words[0] == "law":
        assert len(words) == 3 and words[1] in LAWS and words[2] in FORMATS
    else:
        assert (ROOT / words[0]).is_file()


def test_the_mutants_are_many_and_distinct() -> None:
    assert len({bug["name"] for bug in bugs()}) == len(bugs()) >= 30
    assert all(bug["checks"] for bug in bugs())
