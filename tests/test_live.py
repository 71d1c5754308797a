"""`live`: a plain string argument is passed on while it arrives, everything else when it is whole."""

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
    made,
    tool,
)

every_format = pytest.mark.parametrize("name", sampled())


HELD = BARE | {"generic_json"}
"""Where nothing opens a call, it is one only if the reply is nothing else: nothing goes out before the end."""


def given(events: list[Event]) -> str:
    return "".join([event.json for event in events if isinstance(event, Arguments)])


@every_format
def test_live_passes_a_plain_string_on_while_it_arrives(name: str) -> None:
    text = render(made("f", s="needle in hay"), format=name, tools=TOOLS)
    parser = Parser(name, tools=TOOLS, live=True)
    events = parser.feed(text[: text.index("hay")])
    if name in HELD:
        assert events == [] and "needle" in given(parser.feed(text[text.index("hay") :]) + parser.close())
    else:
        assert "needle" in given(events)


@pytest.mark.parametrize(
    "schema", [{"enum": ["needle"]}, {**STRING, "pattern": "n"}, {**STRING, "format": "uri"}, NULLABLE, {}]
)
@every_format
def test_live_holds_back_a_string_that_its_schema_may_reject(name: str, schema: Json) -> None:
    tools = Toolset([tool("f", s=schema)])
    text = render(made("f", s="needle in hay"), format=name, tools=tools)
    parser = Parser(name, tools=tools, live=True)
    assert "needle" not in given(parser.feed(text[: text.index("hay")]))
