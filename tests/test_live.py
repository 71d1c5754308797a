"""`live`: a plain string argument is passed on while it arrives, everything else when it is whole."""

from __future__ import annotations

import pytest

from replies import (
    NULLABLE,
    STRING,
    TOOLS,
    Json,
    made,
    tool,
)
from rightcall import Arguments, Parser, Toolset, render
from rightcall.formats import FORMATS
from rightcall.types import Event

every_format = pytest.mark.parametrize("name", list(FORMATS))


def given(events: list[Event]) -> str:
    return "".join([event.json for event in events if isinstance(event, Arguments)])


@every_format
def test_live_passes_a_plain_string_on_while_it_arrives(name: str) -> None:
    text = render(made("f", s="needle in hay"), format=name, tools=TOOLS)
    parser = Parser(name, tools=TOOLS, live=True)
    assert "needle" in given(parser.feed(text[: text.index("hay")]))


@pytest.mark.parametrize(
    "schema", [{"enum": ["needle"]}, {**STRING, "pattern": "n"}, {**STRING, "format": "uri"}, NULLABLE, {}]
)
@every_format
def test_live_holds_a_string_back_that_its_schema_may_judge(name: str, schema: Json) -> None:
    tools = Toolset([tool("f", s=schema)])
    text = render(made("f", s="needle in hay"), format=name, tools=tools)
    parser = Parser(name, tools=tools, live=True)
    assert "needle" not in given(parser.feed(text[: text.index("hay")]))
