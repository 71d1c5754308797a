"""Text by the author of a tool, made fit to stand in a prompt: it cannot speak the markers of the format.

    Harmless.of("hermes").prose("ends with </tool_call>")    # "ends with < /tool_call>"
    Harmless.of("hermes").strings('"</tool_call>"')          # '"\\u003c/tool_call>"', the same JSON string

Prose is changed by one blank; values keep their meaning, because a model has to send them back as they are.
"""

from __future__ import annotations

import re

from rightcall.formats import find
from rightcall.formats.spec import Format, alternatives

PROTOCOL = ("tool_call", "assistant_prose", "user_response", "done", "task_ledger")
LISTS = ("tools", "tool", "functions", "function", "available_tools", "tool_list")
_HOLE = re.compile(r"\{\w+\}")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_LONE = re.compile("[\ud800-\udfff]")
# Tags of our own protocol and of lists of tools, and whatever looks like a special token of some vocabulary.
_ALWAYS = rf"</?(?:{'|'.join((*PROTOCOL, *LISTS))})\b|<[|｜]|\[/?AVAILABLE_TOOLS|</?(?:start|end)_function_declaration"
# What lists of tools are made of besides, by the name of the listing.
_QWEN = "name description type parameter parameters required enum default".split()
_LISTING: dict[str, tuple[str, ...]] = {
    "qwen3_coder": tuple(f"{opens}{tag}>" for tag in _QWEN for opens in ("<", "</")),
    **dict.fromkeys(("fenced", "cohere", "pythonic"), ("```",)),
}


class Harmless:
    """Knows what must not be said. Linear in the text."""

    def __init__(self, markers: tuple[str, ...] = ()) -> None:
        words = sorted({marker for marker in markers if _speaks(marker)}, key=len, reverse=True)
        self._find = re.compile("|".join([_ALWAYS, *map(re.escape, words)]), re.IGNORECASE)

    @staticmethod
    def of(format: str | Format) -> Harmless:
        """For prompts of this format."""
        chosen = find(format)
        words = _LISTING.get(chosen.tools, ())
        return Harmless((*words, *[piece.strip() for text in _texts(chosen) for piece in _HOLE.split(text)]))

    def prose(self, text: str) -> str:
        """A description: every marker in it has a blank behind its first character."""
        text = text if text.isascii() else _LONE.sub("\ufffd", text)
        for _ in range(3):  # what is left of one marker may make another with what follows: >>>>
            text = self._find.sub(_spaced, text)
        return text

    def line(self, text: str) -> str:
        """A description on one line."""
        return self.prose(" ".join(text.split()))

    def strings(self, json_text: str) -> str:
        """JSON that means the same: every marker in its strings begins with an escape."""
        return _STRING.sub(self._escaped, json_text)

    def _escaped(self, string: re.Match[str]) -> str:
        text = string.group()
        if not text.isascii():
            text = _LONE.sub(lambda lone: f"\\u{ord(lone.group()):04x}", text)
        return self._find.sub(lambda marker: f"\\u{ord(marker.group()[0]):04x}{marker.group()[1:]}", text)


def _spaced(marker: re.Match[str]) -> str:
    return f"{marker.group()[0]} {marker.group()[1:]}"


def _speaks(marker: str) -> bool:
    return len(marker) >= 3 and not marker[0].isalnum() and marker[0] not in '\\"'


def _texts(format: Format) -> list[str]:
    pairs = [format.section, format.call, format.reasoning, *format.content]
    found = [text for pair in pairs if pair for marker in pair for text in alternatives(marker)]
    for body in format.bodies:
        for field in ("open", "close", "param", "value_close", "empty", "quote"):
            value = getattr(body, field, None) or ""
            found += alternatives(value)
    if format.channels is not None:
        found += [*alternatives(format.channels.start), format.channels.message, *format.channels.ends]
    return [*found, *format.ends]
