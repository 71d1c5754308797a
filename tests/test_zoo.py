"""Every bad server of the zoo: a client fails with it, and gets the intended answer through the proxy.

`conforms` distinguishes servers that violate their dialect from servers that follow it and are wrong nevertheless.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from rightcall.doctor.failure_classes import FAILURE_CLASSES
from zoo import ZOO
from zoo.bad_server import ALL, BadServer
from zoo.keeper import GOOD
from zoo.question import Question
from zoo.scenes import SCENES
from zoo.visit import ZooSession, compare_output, find_deviation

CASES = [(server, api, way) for server in ZOO.values() for api in server.apis for way in server.modes]
IDS = [f"{server.name}-{api}-{way}" for server, api, way in CASES]
PAIRS = [(server, api) for server in ZOO.values() for api in server.apis]
PAIR_IDS = [f"{server.name}-{api}" for server, api in PAIRS]
# Classes whose answers violate their dialect; those of other classes follow it.
SHAPES = frozenset(
    "bad_ids bad_index bad_translation wrong_finish broken_arguments empty_arguments cut_but_run lost_in_stream".split()
)


OF_CONVERSATIONS = ("ids_of_every_round",)  # Servers whose fault is not visible in a single answer.


@pytest.fixture(scope="module")
def zoo_session() -> Iterator[ZooSession]:
    with ZooSession() as open_session:
        yield open_session


@pytest.mark.parametrize("server, api, way", CASES, ids=IDS)
def test_a_client_fails_without_the_proxy_and_works_with_it(
    zoo_session: ZooSession, server: BadServer, api: str, way: str
) -> None:
    stream = way == "stream"
    bare = zoo_session.request_bare(server, api, stream=stream)
    assert find_deviation(bare, server, api, stream=stream), "the server does nothing wrong"
    breaks_rules = server.failure in SHAPES and server.name not in OF_CONVERSATIONS and bare.status == 200
    assert bool(bare.faults) == breaks_rules, bare.faults
    answer = zoo_session.request_proxied(server, api, stream=stream)
    assert (find_deviation(answer, server, api, stream=stream), answer.faults) == ("", [])


@pytest.mark.parametrize("server, api", PAIRS, ids=PAIR_IDS)
def test_a_client_of_any_other_dialect_gets_the_intended_answer(
    zoo_session: ZooSession, server: BadServer, api: str
) -> None:
    stream = "stream" in server.modes
    for client in _clients(server, api):
        answer = zoo_session.request_proxied(server, api, stream=stream, client=client)
        assert (find_deviation(answer, server, client, stream=stream), answer.faults) == ("", []), client


def _clients(server: BadServer, api: str) -> list[str]:
    """Return the dialects that can express the request of the scene."""
    scene = SCENES[server.scene]
    if "alter" in scene or server.right == "alive":
        return []
    return [client for client in ALL if client != api and not (client == "ollama" and scene.get("choice"))]


def _is_plain(server: BadServer) -> bool:
    """Return whether the single answer is all that an SDK must return."""
    return server.right == "meant" and server.scene != "two_rounds" and "alter" not in SCENES[server.scene]


SDK_PAIRS = [(server, api) for server, api in PAIRS if _is_plain(server)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("server, api", SDK_PAIRS, ids=[f"{server.name}-{api}" for server, api in SDK_PAIRS])
def test_the_sdk_of_the_provider_gets_the_intended_answer(zoo_session: ZooSession, server: BadServer, api: str) -> None:
    stream = "stream" in server.modes
    seen, body = zoo_session.request_with_sdk(server, api, stream=stream)
    assert not compare_output(seen, server.intended_output(Question(api, body, stream)))


@pytest.mark.parametrize("api", ALL)
@pytest.mark.parametrize("scene", SCENES)
def test_a_correct_server_breaks_no_client(zoo_session: ZooSession, scene: str, api: str) -> None:
    server = GOOD._replace(scene=scene)
    for stream in (True, False):
        for answer in (
            zoo_session.request_bare(server, api, stream=stream),
            zoo_session.request_proxied(server, api, stream=stream),
        ):
            assert (find_deviation(answer, server, api, stream=stream), answer.faults) == ("", []), stream


def test_every_failure_class_of_servers_has_a_bad_server() -> None:
    failures = {server.failure for server in ZOO.values()}
    assert failures <= FAILURE_CLASSES.keys()
    assert {slug for slug, each in FAILURE_CLASSES.items() if each.where == "server"} <= failures


def test_every_bad_server_names_public_reports() -> None:
    for server in ZOO.values():
        assert server.reports, server.name
        assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", each) for each in server.reports.split()), server.reports
