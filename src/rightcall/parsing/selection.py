"""The one call a text holds, for callers who want a call or an exception."""

from __future__ import annotations

from collections.abc import Iterable

from rightcall.errors import NoToolCallFound
from rightcall.formats.spec import Format
from rightcall.parsing.parser import parse
from rightcall.tools.checks import check
from rightcall.tools.toolset import ToolLike, Toolset
from rightcall.types import Call, as_error


def select(
    text: str, tools: Toolset | Iterable[ToolLike] | None, *, format: str | Format = "auto", repair: str = "safe"
) -> Call:
    """The first call that may run, for those who want one call or an exception. A block that names no tool is no call.

    - `text`: what the model wrote.
    - `tools`, `format`, `repair`: as in `parse`.

    Raises `NoToolCallFound`, or where calls were made and none may run, what is wrong with the first: `UnknownTool` or
    `MalformedArguments`.
    """
    reply = parse(text, tools=tools, format=format, repair=repair)  # type: ignore[arg-type]
    if reply.calls:
        return reply.calls[0]
    for call in reply.attempts:
        wrong = check(call, tools)[0]
        if call.name.strip() or wrong.code != "invalid_name":
            raise as_error(wrong, call.name)
    raise NoToolCallFound
