"""Payloads out of what a network client hands over: a `data:` line, several lines, bare JSON, in str or bytes.

A payload may be cut anywhere, also inside a character; it is given out when its JSON is whole.
"""

from __future__ import annotations

import codecs
import re
from typing import Any

from rightcall.apis.deltas import Fault
from rightcall.apis.json_state import JsonState
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Json

_BEGINNING = re.compile(r"\s*(?:d|da|dat|data|e|ev|eve|even|event|i|id|r|re|ret|retr|retry)").fullmatch
_FIELD = re.compile(r"(event|id|retry)\s*:").match
_DEPTH = 400  # of a payload; arguments have a limit of their own


class Payloads:
    """Feed it text or bytes; it gives objects, and a `Fault` for what cannot be read."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._head = ""  # the beginning of a line that does not yet say what it is
        self._parts: list[str] = []  # a payload that is not whole yet
        self._state = JsonState()
        self._inside = False  # of a line of which a piece has been taken
        self._event = ""

    def feed(self, chunk: str | bytes) -> list[Json | Fault]:
        text = self._head + (chunk if isinstance(chunk, str) else self._decode(chunk))
        self._head = ""
        out: list[Json | Fault] = []
        lines = text.split("\n")
        for line in lines[:-1]:
            self._take(line + "\n", out)
            self._inside = False
        if _BEGINNING(lines[-1]) and not self._inside:
            self._head = lines[-1]
        elif lines[-1]:
            self._take(lines[-1], out)
            self._inside = True
        return out

    def close(self) -> list[Json | Fault]:
        out: list[Json | Fault] = []
        self._parts.append(self._head)
        self._refuse(out)
        return out

    def _take(self, line: str, out: list[Json | Fault]) -> None:
        stripped = line.strip()
        if stripped.startswith("data:") and not self._inside:
            self._data(line.lstrip()[5:].lstrip(" "), out)
        elif self._parts:
            self._data(line, out)
        elif not stripped or stripped.startswith(":"):
            return
        elif _FIELD(stripped):
            name, _, value = stripped.partition(":")
            self._event = value.strip() if name.strip() == "event" else self._event
        else:
            self._data(line, out)

    def _data(self, text: str, out: list[Json | Fault]) -> None:
        if not self._parts and text.strip() in ("", "[DONE]"):
            return
        self._parts.append(text)
        self._state.feed(text)
        if self._state.whole:
            self._give(out)
        elif self._state.broken:
            self._refuse(out)

    def _give(self, out: list[Json | Fault]) -> None:
        value = decode("".join(self._parts), _DEPTH)
        if isinstance(value, Undecodable):
            self._refuse(out)
            return
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                out.append({"error": each} if self._event == "error" and "error" not in each else each)
        self._reset()

    def _refuse(self, out: list[Json | Fault]) -> None:
        said = "".join(self._parts).strip()
        if said and said != "[DONE]":
            out.append(Fault("malformed_chunk", f"a chunk of the stream is not valid JSON: {said[:80]!r}"))
        self._reset()

    def _reset(self) -> None:
        self._parts, self._state, self._event, self._inside = [], JsonState(), "", False


def as_payloads(text: str) -> list[Any] | None:
    """The payloads of a recorded stream (`data:` lines, or JSON line by line); None if the text is none."""
    if not text.lstrip().startswith(("data:", "event:", "{")):
        return None
    reader = Payloads()
    found = [*reader.feed(text), *reader.close()]
    return found if found and not any(isinstance(each, Fault) for each in found) else None


def json_value(text: str) -> Any:
    """What a JSON text holds; None if it is none, or holds no object and no list."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    value: Any = decode(text, _DEPTH)
    return value if isinstance(value, dict | list) else None
