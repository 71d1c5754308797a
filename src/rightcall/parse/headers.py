"""The header of a channel's message:  <|channel|>commentary to=functions.f <|constrain|>json"""

from __future__ import annotations

import re

from rightcall.formats.spec import Channels, alternatives

_WORD = re.compile(r"\s*([^\s<>]+)").match


def read_header(text: str, channels: Channels) -> tuple[str | None, str | None]:
    """The tool a message goes to (None: to no tool), and what it holds if it is no call: reasoning or content."""
    for start in alternatives(channels.start):
        text = text.removeprefix(start.strip())
    if not channels.to:
        recipient = text.strip()
        return recipient, channels.kinds.get(recipient)
    recipient = _behind(text, channels.to.strip())
    if recipient:
        kind = channels.kinds.get(recipient)
        name = recipient.removeprefix(channels.prefix) if channels.prefix else recipient
        return name, kind
    channel = _behind(text, channels.channel) if channels.channel else ""
    return None, channels.kinds.get(channel, "content")


def _behind(text: str, marker: str) -> str:
    _, found, rest = text.partition(marker)
    word = _WORD(rest) if found else None
    return word.group(1) if word else ""
