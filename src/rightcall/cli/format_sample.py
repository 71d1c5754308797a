"""What a reply looks like in a format, rendered on the spot."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rightcall.errors import CannotCarry
from rightcall.formats.spec import Format
from rightcall.parsing.rendering import render
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Part, Reasoning, Text, Tool

_TOOLS = Toolset(
    [
        Tool(
            name="get_weather",
            parameters={
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            },
        ),
        Tool(name="get_time", parameters={"type": "object", "properties": {"zone": {"type": "string"}}}),
    ]
)


def _call(name: str, arguments: dict[str, object]) -> Call:
    return Call(name, arguments, json.dumps(arguments), "call12345")


_WEATHER = _call("get_weather", {"city": "Oslo", "days": 3})
_TIME = _call("get_time", {"zone": "CET"})


def sample(format: Format, *, calls: int = 2) -> str:
    """What a reply looks like in this format, rendered now: reasoning, text and calls, as far as it carries them."""
    several: tuple[Sequence[Part], ...] = (
        (Reasoning("The user asks about Oslo."), Text("Let me look."), _WEATHER, _TIME),
        (Text("Let me look."), _WEATHER, _TIME),
        (_WEATHER, _TIME),
    )
    for parts in (several if calls > 1 else ()) + ((_WEATHER,),):
        try:
            return render(parts, format=format, tools=_TOOLS)
        except CannotCarry:
            continue
    return ""
