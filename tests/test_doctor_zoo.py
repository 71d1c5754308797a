"""The doctor before every server of the zoo: it names the class of each, the line that it prints cures it, and it finds
nothing wrong with a good one.

`make test` asks two servers of each class in one dialect; RIGHTCALL_ZOO=1 asks all, in all in which they were reported.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from rightcall.backends.base import LoopThread
from rightcall.doctor.examination import ExamSettings, diagnose_server, examine
from rightcall.doctor.failure_classes import FAILURE_CLASSES
from test_serve_command import proxy_process
from zoo import ZOO
from zoo.keeper import Keeper, keeping

# What the proxy cannot put right, each with the reason.
UNCURED = {
    ("wants_thinking_back", "messages"): "a history that began elsewhere has no signature that could be put back",
    ("breaks_off", "chat"): "the second of two calls is lost where the first has gone out",
    ("breaks_off", "responses"): "the same",
    ("breaks_off", "ollama"): "the same",
    ("is_silent", "chat"): "the test's patience is shorter than the proxy's own; test_zoo has one that matches",
    ("is_silent", "messages"): "the same",
}


def _cases(most: int) -> Iterator[tuple[str, str]]:
    asked: Counter[str] = Counter()
    for name, server in ZOO.items():
        asked[server.failure] += 1
        if os.environ.get("RIGHTCALL_ZOO"):
            yield from [(name, api) for api in server.apis]
        elif asked[server.failure] <= most:
            yield name, server.apis[0]


CASES, CURED = list(_cases(2)), [case for case in _cases(1) if case not in UNCURED]


@pytest.fixture(scope="module")
def loop() -> Iterator[LoopThread]:
    with LoopThread() as started:
        yield started


@pytest.fixture(scope="module")
def keeper(loop: LoopThread) -> Iterator[Keeper]:
    kept = keeping()
    yield loop.run(kept.__aenter__())
    loop.run(kept.__aexit__(None, None, None))


PATIENCE = {"is_silent": 0.2}  # less than its silence; that of others is as long as the machine is busy


def _settings(name: str, *apis: Any, **more: Any) -> ExamSettings:
    given = {"model": name, "apis": apis, "seconds": 20.0, "concurrency": 8, **more}
    return ExamSettings(patience=PATIENCE.get(name, 20.0), **given)


@pytest.mark.parametrize("name, api", CASES, ids=["-".join(each) for each in CASES])
def test_the_doctor_names_the_class_of_a_bad_server(name: str, api: str, loop: LoopThread, keeper: Keeper) -> None:
    found = loop.run(examine(f"{keeper.url}/{name}", _settings(name, api)))
    failure = FAILURE_CLASSES[ZOO[name].failure]
    assert failure in (*found.classes, *found.habits)
    assert bool(found.advice(failure)[1]) == (failure.flags is not None)


@pytest.mark.parametrize("name, api", CURED, ids=["-".join(each) for each in CURED])
def test_the_line_that_is_printed_cures_what_was_found(name: str, api: str, loop: LoopThread, keeper: Keeper) -> None:
    # One request at a time: of those that come together, a server that breaks off every other would break one twice.
    settings = _settings(name, api, concurrency=1)
    found = loop.run(diagnose_server(f"{keeper.url}/{name}", settings, through=True))
    assert found.through is not None and not found.through.unanswered
    told = {failure.slug for failure in FAILURE_CLASSES.values() if failure.flags is None}
    assert {each.slug for each in found.faults} & {each.slug for each in found.through.faults} <= told


def test_the_very_line_that_is_printed_is_a_command_that_cures(loop: LoopThread, keeper: Keeper) -> None:
    settings = _settings("leaks_hermes", "chat")
    found = loop.run(examine(f"{keeper.url}/leaks_hermes/v1", settings))
    program, serve, *args = shlex.split(found.cure())
    assert (program, serve) == ("rightcall", "serve") and not found.is_sound
    with proxy_process(*args) as proxy:
        loop.run(examine(proxy.address, settings)).check()


def test_nothing_is_wrong_with_a_good_server_in_any_dialect(loop: LoopThread, keeper: Keeper) -> None:
    found = loop.run(examine(f"{keeper.url}/good", _settings("good")))
    found.check()
    assert found.spoken == ("chat", "responses", "messages", "ollama", "gemini")
    assert {each.verdict for each in found.results} == {"ok", "not offered"}
