"""Every bad server of the zoo: a client breaks at it, and gets what was meant through the proxy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from zoo import ZOO
from zoo.bad_server import BadServer
from zoo.visit import Visits, wrong_with

CASES = [(server, api, way) for server in ZOO.values() for api in server.apis for way in server.ways]
IDS = [f"{server.name}-{api}-{way}" for server, api, way in CASES]


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
