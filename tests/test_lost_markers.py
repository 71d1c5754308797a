"""A completely lost marker: every runnable call has the arguments that were sent, or there is none.

    <parameter=city>\nzebra\n</parameter>\ndays>\n7\n</parameter>      the opener of the second argument is lost

The tools require nothing, so that only the parser can detect that something is missing."""

from __future__ import annotations

import pytest

from rightcall import Call, parse
from rightcall.formats.builtin import FORMATS
from rightcall.testing.laws.damage import marker_places
from rightcall.testing.laws.samples import rendering
from support.format_sample import sampled

TOOLS = [
    {"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}},
    {"name": "take_note", "parameters": {"properties": {"text": {"type": "string"}, "about": {"type": "string"}}}},
]
SENT = (Call("get_weather", {"city": "zebra", "days": 7}), Call("take_note", {"text": "walrus", "about": "lynx"}))
GIVEN = {call.name: list(call.arguments.values()) for call in SENT}


@pytest.mark.parametrize("name", sampled())
def test_runnable_calls_have_the_values_that_were_sent(name: str) -> None:
    format = FORMATS[name]
    text = rendering(format, SENT)
    assert text is not None
    for start, end in dict.fromkeys(marker_places(format, text)):
        spoiled = text[:start] + text[end:]
        for call in parse(spoiled, tools=TOOLS, format=name).calls:
            values = [value.strip() if isinstance(value, str) else value for value in call.arguments.values()]
            assert values == GIVEN[call.name], spoiled
