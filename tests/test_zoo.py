"""Every bad server of the zoo: a client breaks at it, and gets what was meant through the proxy."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from rightcall.doctor.failure_classes import FAILURE_CLASSES
from zoo import ZOO
from zoo.bad_server import ALL, BadServer
from zoo.keeper import GOOD
from zoo.scenes import SCENES
from zoo.visit import Visits, wrong_with

CASES = [(server, api, way) for server in ZOO.values() for api in server.apis for way in server.ways]
IDS = [f"{server.name}-{api}-{way}" for server, api, way in CASES]
PAIRS = [(server, api) for server in ZOO.values() for api in server.apis]
PAIR_IDS = [f"{server.name}-{api}" for server, api in PAIRS]
# Classes whose answers are written against the rules of their dialect; those of others keep to them.
SHAPES = frozenset(
    "bad_ids bad_index bad_translation wrong_finish broken_arguments empty_arguments cut_but_run lost_in_stream".split()
)


OF_CONVERSATIONS = ("ids_of_every_round",)  # what one answer alone does not show


@pytest.fixture(scope="module")
def visits() -> Iterator[Visits]:
    with Visits() as open_visits:
        yield open_visits


@pytest.mark.parametrize("server, api, way", CASES, ids=IDS)
def test_a_client_breaks_at_it_and_does_not_behind_the_proxy(
    visits: Visits, server: BadServer, api: str, way: str
) -> None:
    stream = way == "stream"
    bare = visits.bare(server, api, stream=stream)
    assert wrong_with(bare, server, api, stream=stream), "the server does nothing wrong"
    heard = visits.proxied(server, api, stream=stream)
    assert (wrong_with(heard, server, api, stream=stream), heard.faults) == ("", [])


@pytest.mark.parametrize("server, api", PAIRS, ids=PAIR_IDS)
def test_a_client_of_any_other_dialect_gets_what_was_meant(visits: Visits, server: BadServer, api: str) -> None:
    for client in _clients(server, api):
        for way in server.ways:
            heard = visits.proxied(server, api, stream=way == "stream", client=client)
            wrong = wrong_with(heard, server, client, stream=way == "stream")
            assert (wrong, heard.faults) == ("", []), (client, way)


def _clients(server: BadServer, api: str) -> list[str]:
    """Those who can ask what the scene is about."""
    scene = SCENES[server.scene]
    if "alter" in scene or server.right == "alive":
        return []
    return [client for client in ALL if client != api and not (client == "ollama" and scene.get("choice"))]


@pytest.mark.parametrize("server, api, way", CASES, ids=IDS)
def test_what_breaks_the_rules_of_its_dialect_is_told_by_conforms(
    visits: Visits, server: BadServer, api: str, way: str
) -> None:
    bare = visits.bare(server, api, stream=way == "stream")
    is_told = server.failure in SHAPES and server.name not in OF_CONVERSATIONS and bare.status == 200
    assert bool(bare.faults) == is_told, bare


@pytest.mark.parametrize("api", ALL)
@pytest.mark.parametrize("way", ["stream", "whole"])
@pytest.mark.parametrize("scene", SCENES)
def test_a_server_that_behaves_breaks_nobody(visits: Visits, scene: str, way: str, api: str) -> None:
    server, stream = GOOD._replace(scene=scene), way == "stream"
    for heard in (visits.bare(server, api, stream=stream), visits.proxied(server, api, stream=stream)):
        assert (wrong_with(heard, server, api, stream=stream), heard.faults) == ("", [])


def test_every_class_that_a_server_shows_has_a_bad_server() -> None:
    shown = {server.failure for server in ZOO.values()}
    assert shown <= FAILURE_CLASSES.keys()
    assert {slug for slug, each in FAILURE_CLASSES.items() if each.where == "server"} <= shown


def test_every_bad_server_names_public_reports() -> None:
    for server in ZOO.values():
        assert server.reports, server.name
        assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", each) for each in server.reports.split()), server.reports
