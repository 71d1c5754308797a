"""How a reply is to be read: options and limits."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rightcall.tools.toolset import Toolset


class Limits(msgspec.Struct, frozen=True):
    """How much is read. Past a limit a problem is left: a call too large or too deep is kept with its text, and a reply
    with too much text or too many calls is plain text from there on.

    - `reply`: characters of a whole reply.
    - `call`: characters of one call.
    - `depth`: brackets inside brackets.
    - `calls`: calls in a reply.
    """

    reply: int = 16_000_000
    call: int = 4_000_000
    depth: int = 200
    calls: int = 256


class ReadOptions(msgspec.Struct, frozen=True):
    """`choice` is the one tool that the request asked for; `forbidden` says that it allowed none. Without `previews`
    nobody sees a call begin, only what became of it."""

    tools: Toolset | None = None
    reasoning: str = "auto"
    repair: str | Mapping[str, str] = "safe"
    choice: str | None = None
    spans: bool = False
    live: bool = False
    limits: Limits = Limits()
    rescue: str = "safe"
    reasoning_calls: str = "safe"
    forbidden: bool = False
    previews: bool = True
