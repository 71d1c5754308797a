"""Payloads out of what a network client hands over: a `data:` line, several lines, bare JSON, in str or bytes.

A payload may be cut anywhere, also inside a character; it is given out when its JSON is whole.
"""

from __future__ import annotations

import codecs
from typing import Any

from rightcall.providers.deltas import Loss
from rightcall.providers.json_state import JsonState
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Json

_FIELDS = ("data:", "event:", "id:", "retry:", ":")
_EVENT = 64  # characters of an event's name that are kept
_DEPTH = 400  # of a payload; arguments have a limit of their own


class Payloads:
    """Feed it text or bytes; it gives objects, and a `Loss` for what cannot be read."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._head = ""  # the beginning of a line that does not yet say what it is
        self._field = ""  # what the line being read is
        self._parts: list[str] = []  # a payload that is not whole yet
        self._state = JsonState()
        self._event = ""

    def feed(self, chunk: str | bytes) -> list[Json | Loss]:
        text = chunk if isinstance(chunk, str) else self._decode(chunk)
        out: list[Json | Loss] = []
        lines = text.split("\n")
        for line in lines[:-1]:
            self._take(line + "\n", out)
            self._head = self._field = ""
        if lines[-1]:
            self._take(lines[-1], out)
        return out

    def close(self) -> list[Json | Loss]:
        out: list[Json | Loss] = []
        self._parts.append(self._head)
        self._refuse(out)
        return out

    def _take(self, text: str, out: list[Json | Loss]) -> None:
        """A line, or a piece of one."""
        if not self._field:
            text = self._begin(text)
        if self._field == "data:":
            self._data(text, out)
        elif self._field == "event:":
            self._event = (self._event + text)[:_EVENT]

    def _begin(self, text: str) -> str:
        """Finds what the line is, unless more must come for that; what follows its name."""
        start = (self._head + text).lstrip(" \r\n")
        if not start.endswith("\n") and any(name.startswith(start) for name in _FIELDS if name != start):
            self._head = start  # without its blanks, which would be looked at again with every piece
            return ""
        self._head = ""
        self._field = next((name for name in _FIELDS if start.startswith(name)), "data:")
        self._event = "" if self._field == "event:" else self._event
        return start.removeprefix(self._field)

    def _data(self, text: str, out: list[Json | Loss]) -> None:
        if not self._parts and not text.strip():
            return
        self._parts.append(text)
        self._state.feed(text)
        if self._state.whole:
            self._give(out)
        elif self._state.broken:
            self._refuse(out)

    def _give(self, out: list[Json | Loss]) -> None:
        value = decode("".join(self._parts), _DEPTH)
        if isinstance(value, Undecodable):
            self._refuse(out)
            return
        is_error = self._event.strip() == "error"
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                out.append({"error": each} if is_error and "error" not in each else each)
        self._reset()

    def _refuse(self, out: list[Json | Loss]) -> None:
        said = "".join(self._parts).strip()
        if said and said != "[DONE]":
            out.append(Loss("malformed_chunk", f"a chunk of the stream is not valid JSON: {said[:80]!r}"))
        self._reset()

    def _reset(self) -> None:
        self._parts, self._state, self._event = [], JsonState(), ""
        self._head = self._field = ""


def as_payloads(text: str) -> list[Any] | None:
    """The payloads of a recorded stream (`data:` lines, or JSON line by line); None if the text is none."""
    if not text.lstrip().startswith(("data:", "event:", "{")):
        return None
    reader = Payloads()
    found = [*reader.feed(text), *reader.close()]
    return found if found and not any(isinstance(each, Loss) for each in found) else None


def json_value(text: str) -> Any:
    """What a JSON text holds; None if it is none, or holds no object and no list."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    value: Any = decode(text, _DEPTH)
    return value if isinstance(value, dict | list) else None
