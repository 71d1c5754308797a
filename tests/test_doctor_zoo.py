"""The doctor examines every server of the zoo: it names the failure class, its printed command cures the failure, and a
good server has no faults.

`make test` examines two servers of each class in one dialect; RIGHTCALL_ZOO=1 examines all servers in all dialects in
which the failure was reported.
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
from zoo.keeper import ZooServer, run_server

# Failures that the proxy cannot cure, with the reason.
UNCURED = {
    ("wants_thinking_back", "messages"): "a history that began elsewhere has no signature that could be put back",
    ("breaks_off", "chat"): "the second of two calls is lost where the first has gone out",
    ("breaks_off", "responses"): "the same",
    ("breaks_off", "ollama"): "the same",
    ("is_silent", "chat"): "the test's patience is shorter than the proxy's own; test_zoo has one that matches",
    ("is_silent", "messages"): "the same",
}


def _cases(most: int) -> Iterator[tuple[str, str]]:
    servers_per_class: Counter[str] = Counter()
    for name, server in ZOO.items():
        servers_per_class[server.failure] += 1
        if os.environ.get("RIGHTCALL_ZOO"):
            yield from [(name, api) for api in server.apis]
        elif servers_per_class[server.failure] <= most:
            yield name, server.apis[0]


CASES, CURED = list(_cases(2)), [case for case in _cases(1) if case not in UNCURED]


@pytest.fixture(scope="module")
def loop() -> Iterator[LoopThread]:
    with LoopThread() as started:
        yield started


@pytest.fixture(scope="module")
def keeper(loop: LoopThread) -> Iterator[ZooServer]:
    kept = run_server()
    yield loop.run(kept.__aenter__())
    loop.run(kept.__aexit__(None, None, None))


PATIENCE = {
    "is_silent": 0.2
}  # shorter than the server's silence; other servers may be slow because the machine is busy


def _exam_settings(name: str, *apis: Any, **more: Any) -> ExamSettings:
    given = {"model": name, "apis": apis, "seconds": 20.0, "concurrency": 8, **more}
    return ExamSettings(patience=PATIENCE.get(name, 20.0), **given)


@pytest.mark.parametrize("name, api", CASES, ids=["-".join(each) for each in CASES])
def test_the_doctor_names_the_class_of_a_bad_server(name: str, api: str, loop: LoopThread, keeper: ZooServer) -> None:
    found = loop.run(examine(f"{keeper.url}/{name}", _exam_settings(name, api)))
    failure = FAILURE_CLASSES[ZOO[name].failure]
    assert failure in (*found.classes, *found.habits)
    assert bool(found.advice(failure)[1]) == (failure.flags is not None)


@pytest.mark.parametrize("name, api", CURED, ids=["-".join(each) for each in CURED])
def test_the_recommended_flags_cure_the_fault(name: str, api: str, loop: LoopThread, keeper: ZooServer) -> None:
    # One request at a time: otherwise a server that breaks off every other answer breaks one of them off twice.
    settings = _exam_settings(name, api, concurrency=1)
    found = loop.run(diagnose_server(f"{keeper.url}/{name}", settings, through=True))
    assert found.through is not None and not found.through.unanswered
    incurable = {failure.slug for failure in FAILURE_CLASSES.values() if failure.flags is None}
    assert {each.slug for each in found.faults} & {each.slug for each in found.through.faults} <= incurable


def test_the_printed_command_starts_a_proxy_that_cures_the_fault(loop: LoopThread, keeper: ZooServer) -> None:
    settings = _exam_settings("leaks_hermes", "chat")
    found = loop.run(examine(f"{keeper.url}/leaks_hermes/v1", settings))
    program, serve, *args = shlex.split(found.cure())
    assert (program, serve) == ("rightcall", "serve") and not found.is_sound
    with proxy_process(*args) as proxy:
        loop.run(examine(proxy.address, settings)).check()


def test_a_good_server_has_no_faults_in_any_dialect(loop: LoopThread, keeper: ZooServer) -> None:
    found = loop.run(examine(f"{keeper.url}/good", _exam_settings("good")))
    found.check()
    assert found.spoken == ("chat", "responses", "messages", "ollama", "gemini")
    assert {each.verdict for each in found.results} == {"ok", "not offered"}
