"""Recorded output of SmolLM2 (`make model`), parsed again: docs/results.md has the resulting figures."""

import asyncio
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rightcall import Parser, check, parse
from rightcall.backends.cassette import load_cassette
from rightcall.backends.recording import ReplayBackend

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not (ROOT / "evals").is_dir(), reason="the evals are not part of the sdist")


@pytest.fixture(scope="module")
def model() -> Iterator[Any]:
    """Return the module evals/model.py."""
    sys.path.insert(0, str(ROOT / "evals"))
    try:
        yield importlib.import_module("model")
    finally:
        sys.path.remove(str(ROOT / "evals"))


@pytest.fixture(scope="module")
def outcomes(model: Any) -> Any:
    return asyncio.run(model.measure(model.PROMPTS, replay=True))


@pytest.fixture(scope="module")
def texts(model: Any) -> list[tuple[Any, str]]:
    """Every recorded question with the output of the model."""
    recorded_cases = model.cases(model.PROMPTS)
    free = {"parse": model.MODES["parse"]}
    outputs = asyncio.run(model.collect_texts(ReplayBackend(model.CASSETTE), recorded_cases, free))
    return [(case, outputs[case.name, "parse"]) for case in recorded_cases]


def test_the_page_shows_the_figures_of_the_recording(model: Any, outcomes: Any) -> None:
    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    assert model.figures(outcomes) in page
    assert f"Repairs in valid replies: {model.repairs_in_valid_replies(outcomes)}." in page


def test_full_parsing_loses_no_wellformed_call(outcomes: Any) -> None:
    valid = {
        mode: {each.case for each in outcomes if each.mode == mode and each.is_valid} for mode in ("none", "parse")
    }
    right = {
        mode: {each.case for each in outcomes if each.mode == mode and each.is_right} for mode in ("none", "parse")
    }
    assert valid["none"] <= valid["parse"] and right["none"] <= right["parse"]
    assert valid["parse"] and len(valid["parse"]) < len({each.case for each in outcomes})


def test_model_output_parses_the_same_under_every_chunking(texts: list[tuple[Any, str]]) -> None:
    for case, text in texts:
        whole = parse(text, tools=case.tools)
        parser = Parser(tools=case.tools)
        for start in range(0, len(text), 3):
            parser.feed(text[start : start + 3])
        parser.close()
        assert [(call.name, call.json, call.complete) for call in parser.reply.attempts] == [
            (call.name, call.json, call.complete) for call in whole.attempts
        ]
        assert parser.reply.content == whole.content


def test_a_valid_reply_passes_check(texts: list[tuple[Any, str]], model: Any) -> None:
    for case, text in texts:
        reply = parse(text, tools=case.tools)
        if model.classify(case, "parse", reply).is_valid:
            assert [check(call, case.tools) for call in reply.attempts] == [[] for _ in reply.attempts]


def test_there_are_enough_distinct_questions(model: Any) -> None:
    all_cases = model.cases()
    assert len(all_cases) >= 200 and len({case.name for case in all_cases}) == len(all_cases)
    for case in all_cases:
        assert case.want.name in case.tools and check(case.want, case.tools) == []
        *before, question = [message["content"] for message in case.messages]
        assert question not in before


def test_the_first_questions_cover_every_tool_and_number_of_tools(model: Any) -> None:
    first = model.cases(model.PROMPTS)
    assert len({case.want.name for case in first}) == 20 == len({case.want.name for case in model.cases()})
    assert {len(case.tools) for case in first} == {1, 2, 3}
    assert {list(case.tools.names).index(case.want.name) for case in first} == {0, 1, 2}


@pytest.mark.parametrize(
    "count, of, low, high", [(0, 10, 0.0, 0.278), (5, 10, 0.237, 0.763), (10, 10, 0.722, 1.0), (50, 1000, 0.038, 0.065)]
)
def test_the_wilson_interval_has_the_published_values(model: Any, count: int, of: int, low: float, high: float) -> None:
    assert model.wilson(count, of) == pytest.approx((low, high), abs=0.001)


def test_the_recording_is_small_and_has_no_redundant_exchange(model: Any) -> None:
    assert model.CASSETTE.stat().st_size < 400_000
    bodies = [json.dumps(exchange.request.body) for exchange in load_cassette(model.CASSETTE).exchanges]
    distinct_requests = {
        (case.name, json.dumps(mode.ask(case))) for case in model.cases(model.PROMPTS) for mode in model.MODES.values()
    }
    assert len(bodies) == len(set(bodies)) == len(distinct_requests)
