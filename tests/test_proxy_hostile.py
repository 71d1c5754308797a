"""The proxy over real sockets, and requests that no client should send: an answer or a clear refusal, never our fault."""

from __future__ import annotations

from typing import Any

import pytest

from loopback import chunked, events
from proxied import Proxied
from test_proxy import RIGHT, TEXT, run

NO_CALLS: list[Any] = [[None], {"a": 1}, 7, [{"id": [], "function": []}]]


@pytest.mark.parametrize("calls", NO_CALLS)
def test_calls_of_wrong_types_in_the_history_are_no_failure_of_the_proxy(calls: Any) -> None:
    async def story(proxy: Proxied) -> None:
        history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "tool_calls": calls}]
        got = await proxy.ask("chat", stream=True, messages=history)
        assert got.status == 200

    run(story, RIGHT)


@pytest.mark.parametrize("odd", ["\ud800", 10**40])
def test_a_response_that_cannot_be_written_as_json_is_kept_all_the_same(odd: Any) -> None:
    async def story(proxy: Proxied) -> None:
        given = [{"role": "user", "content": "Hi \ud800" if odd == "\ud800" else "Hi", "odd": odd}]
        got = await proxy.ask("responses", stream=True, input=given)
        assert (got.status, got.reply.content) == (200, "Hello")

    run(story, chunked(events(*TEXT)))
