"""The doctor before every server of the zoo: it names the class of each, and finds nothing wrong with a good one.

`make test` asks two servers of each class in one dialect; RIGHTCALL_ZOO=1 asks all, in all in which they were reported.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from rightcall.backends.loop_thread import LoopThread
from rightcall.doctor.diagnosis import Diagnosis
from rightcall.doctor.examination import ExamSettings, examine
from zoo import ZOO
from zoo.keeper import Keeper, keeping

# What no doctor can see in a few questions, each with the reason.
UNSEEN = {"is_silent": "its silence is shorter than any client's patience"}
_SOME = 2


def _cases() -> Iterator[tuple[str, str]]:
    asked: Counter[str] = Counter()
    for name, server in ZOO.items():
        asked[server.failure] += 1
        if name not in UNSEEN and os.environ.get("RIGHTCALL_ZOO"):
            yield from [(name, api) for api in server.apis]
        elif name not in UNSEEN and asked[server.failure] <= _SOME:
            yield name, server.apis[0]


CASES = list(_cases())


@pytest.fixture(scope="module")
def loop() -> Iterator[LoopThread]:
    with LoopThread() as started:
        yield started


@pytest.fixture(scope="module")
def keeper(loop: LoopThread) -> Iterator[Keeper]:
    kept = keeping()
    yield loop.run(kept.__aenter__())
    loop.run(kept.__aexit__(None, None, None))


def _seen(loop: LoopThread, keeper: Keeper, name: str, *apis: Any) -> Diagnosis:
    settings = ExamSettings(model=name, apis=apis, seconds=20.0, concurrency=8)
    return loop.run(examine(f"{keeper.url}/{name}", settings))


@pytest.mark.parametrize("name, api", CASES, ids=["-".join(each) for each in CASES])
def test_the_doctor_names_the_class_of_a_bad_server(name: str, api: str, loop: LoopThread, keeper: Keeper) -> None:
    found = _seen(loop, keeper, name, api)
    assert ZOO[name].failure in {each.slug for each in found.results if each.verdict in ("fault", "model")}


def test_nothing_is_wrong_with_a_good_server_in_any_dialect(loop: LoopThread, keeper: Keeper) -> None:
    found = _seen(loop, keeper, "good")
    found.check()
    assert found.spoken == ("chat", "responses", "messages", "ollama", "gemini")
    assert {each.verdict for each in found.results} == {"ok", "not offered"}
