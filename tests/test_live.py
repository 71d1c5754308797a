"""`live`: a plain string argument is emitted while it arrives, all other arguments when they are complete."""

from __future__ import annotations

import pytest

from rightcall import Arguments, Parser, Toolset, render
from rightcall.types import Event
from support.format_sample import sampled
from support.replies import (
    BARE,
    NULLABLE,
    STRING,
    TOOLS,
    Json,
    make_call,
    tool,
)

every_format = pytest.mark.parametrize("name", sampled())


HELD_UNTIL_CLOSE = BARE | {"generic_json"}
"""Formats without an opener: a call must be the whole reply, so nothing is emitted before the end."""


def emitted_json(events: list[Event]) -> str:
    return "".join([event.json for event in events if isinstance(event, Arguments)])


@every_format
def test_live_mode_emits_a_plain_string_while_it_arrives(name: str) -> None:
    text = render(make_call("f", s="needle in hay"), format=name, tools=TOOLS)
    parser = Parser(name, tools=TOOLS, live=True)
    events = parser.feed(text[: text.index("hay")])
    if name in HELD_UNTIL_CLOSE:
        assert events == [] and "needle" in emitted_json(parser.feed(text[text.index("hay") :]) + parser.close())
    else:
        assert "needle" in emitted_json(events)


@pytest.mark.parametrize(
    "schema", [{"enum": ["needle"]}, {**STRING, "pattern": "n"}, {**STRING, "format": "uri"}, NULLABLE, {}]
)
@every_format
def test_live_mode_holds_back_a_string_that_its_schema_may_reject(name: str, schema: Json) -> None:
    tools = Toolset([tool("f", s=schema)])
    text = render(make_call("f", s="needle in hay"), format=name, tools=tools)
    parser = Parser(name, tools=tools, live=True)
    assert "needle" not in emitted_json(parser.feed(text[: text.index("hay")]))
