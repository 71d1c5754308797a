"""Every bad server of the zoo: a client breaks at it, and gets what was meant through the proxy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from zoo import ZOO
from zoo.bad_server import BadServer
from zoo.question import Question
from zoo.scenes import TOOLS, call, made, result, user, worded
from zoo.script import FINAL, reply_to
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


@pytest.mark.parametrize("api", ["chat", "responses", "messages", "ollama", "gemini"])
def test_the_model_does_one_after_the_other_what_a_user_wants_so(api: str) -> None:
    turns = [user('Call read_file {"path": "a"}, then call write_file {"path": "a", "content": "{"}. Then stop.')]
    said = []
    for _ in range(3):
        _, body = worded(api, turns, TOOLS, "good", stream=False, choice="")
        said.append(reply_to(Question(api, body, stream=False)))
        turns += [made(call(id="call_a"), call(id="call_b")), result("x", "call_a"), result("y", "call_b")]
    assert [each.call.name for each in said[:2]] == ["read_file", "write_file"]
    assert said[1].call.arguments == {"path": "a", "content": "{"} and said[2].text == FINAL
