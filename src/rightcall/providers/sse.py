"""Decode the payloads of an event stream: `data:` lines, or JSON values without them, in str or bytes.

Chunks may be cut anywhere, even inside a character. A payload is returned once its JSON is complete.
"""

from __future__ import annotations

import codecs
from typing import Any

from rightcall.providers.dialect import Loss
from rightcall.providers.json_state import JsonState
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Json

_FIELDS = ("data:", "event:", "id:", "retry:", ":")
_MAX_EVENT_NAME = 64  # characters that are kept
_MAX_DEPTH = 400  # of a payload; arguments have a separate limit


class Payloads:
    """A decoder of an event stream. It returns objects, and a `Loss` for each payload that is not valid JSON. The
    objects of a list are returned one by one; other values, such as numbers, are dropped."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._head = ""  # the beginning of a line whose field name is incomplete
        self._field = ""  # of the current line
        self._parts: list[str] = []  # of the incomplete payload
        self._state = JsonState()
        self._event = ""

    def feed(self, chunk: str | bytes) -> list[Json | Loss]:
        """Read a chunk of the stream and return the payloads that are complete with it: objects, and a `Loss` for each
        invalid payload. An object of an event named `error` is returned as `{"error": object}`, unless it has that
        key."""
        text = chunk if isinstance(chunk, str) else self._decode(chunk)
        out: list[Json | Loss] = []
        lines = text.split("\n")
        for line in lines[:-1]:
            if line.startswith("data:") and not (self._parts or self._field or self._head):
                # A whole payload in one line, as servers send it, is decoded without looking for its end.
                value = decode(line[len("data:") :], _MAX_DEPTH)
                if isinstance(value, dict):
                    self._emit_payload(value, out)
                    continue
            self._read_line(line + "\n", out)
            self._head = self._field = ""
        if lines[-1]:
            self._read_line(lines[-1], out)
        return out

    def close(self) -> list[Json | Loss]:
        """End the stream and return a `Loss` for an incomplete payload; an empty list if there is none."""
        out: list[Json | Loss] = []
        self._parts.append(self._head)
        self._reject_payload(out)
        return out

    def _read_line(self, text: str, out: list[Json | Loss]) -> None:
        """Read a line, or a piece of one: add data to the payload, and append complete payloads to `out`. Fields other
        than data and event are ignored."""
        if not self._field:
            text = self._read_field(text)
        if self._field == "data:":
            self._read_data(text, out)
        elif self._field == "event:":
            self._event = (self._event + text)[:_MAX_EVENT_NAME]

    def _read_field(self, text: str) -> str:
        """Find the name of the line's field, store it in `_field`, and return what follows it in `text`. While the name
        is incomplete, store its beginning in `_head` and return "". A line without a field's name is data. A new
        event's name replaces the last one."""
        start = (self._head + text).lstrip(" \r\n")
        if not start.endswith("\n") and any(name.startswith(start) for name in _FIELDS if name != start):
            self._head = start  # without blanks, which every piece would scan again
            return ""
        self._head = ""
        self._field = next((name for name in _FIELDS if start.startswith(name)), "data:")
        self._event = "" if self._field == "event:" else self._event
        return start.removeprefix(self._field)

    def _read_data(self, text: str, out: list[Json | Loss]) -> None:
        """Add a piece of a `data:` line to the current payload. Append the payload to `out` once its JSON is complete,
        or a `Loss` (nothing for `[DONE]`) once it is invalid. The length is not limited. Blank text before a payload is
        ignored."""
        if not self._parts and not text.strip():
            return
        self._parts.append(text)
        self._state.feed(text)
        if self._state.is_complete:
            self._emit_payload(decode("".join(self._parts), _MAX_DEPTH), out)
        elif self._state.is_invalid:
            self._reject_payload(out)

    def _emit_payload(self, value: Any, out: list[Json | Loss]) -> None:
        """Append the JSON objects of a decoded payload, an object or a list, to `out` and begin a new payload. An
        object of an `error` event is appended as `{"error": object}`, unless it has that key. An `Undecodable` value is
        appended as a `Loss`; other values are dropped."""
        if isinstance(value, Undecodable):
            self._reject_payload(out)
            return
        is_error = self._event.strip() == "error"
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                out.append({"error": each} if is_error and "error" not in each else each)
        self._reset()

    def _reject_payload(self, out: list[Json | Loss]) -> None:
        """Append a `Loss` for the current payload, unless it is empty or the end marker `[DONE]`, and begin a new
        one."""
        text = "".join(self._parts).strip()
        if text and text != "[DONE]":
            out.append(Loss("malformed_chunk", f"a chunk of the stream is not valid JSON: {text[:80]!r}"))
        self._reset()

    def _reset(self) -> None:
        """Forget the current payload, its event name and the current line."""
        if self._parts:
            self._parts, self._state = [], JsonState()
        self._event = ""
        self._head = self._field = ""


def parse_recording(text: str) -> list[Any] | None:
    """Return the payloads of a recorded stream (`data:` lines, or JSON lines) as a list. Return None if the text is no
    recorded stream: it does not begin like one, has no payloads, or has one that is not valid JSON."""
    if not text.lstrip().startswith(("data:", "event:", "{")):
        return None
    reader = Payloads()
    payloads = [*reader.feed(text), *reader.close()]
    return payloads if payloads and not any(isinstance(each, Loss) for each in payloads) else None


def decode_container(text: str) -> Any:
    """Return the dict or list that a JSON text stands for; None for a text that is not one whole JSON object or
    list."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    value: Any = decode(text, _MAX_DEPTH)
    return value if isinstance(value, dict | list) else None
