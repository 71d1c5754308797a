"""The one call a text holds, for callers who want a call or an exception."""

from __future__ import annotations

from collections.abc import Iterable

from rightcall.declare.toolset import ToolLike, Toolset
from rightcall.errors import NoToolCallFound
from rightcall.formats.spec import Format
from rightcall.types import Call, as_error
from rightcall.wire.parser import parse


def select(
    text: str, tools: Toolset | Iterable[ToolLike] | None, *, format: str | Format = "auto", repair: str = "safe"
) -> Call:
    """The first call that may run. Raises `NoToolCallFound`, or what is wrong with the first where none may."""
    reply = parse(text, tools=tools, format=format, repair=repair)  # type: ignore[arg-type]
    if not reply.calls:
        raise NoToolCallFound
    wrong = {problem.call: problem for problem in reversed(reply.problems) if problem.blocking}
    for index, call in enumerate(reply.calls):
        if index not in wrong:
            return call
    raise as_error(wrong[0], reply.calls[0].name)
