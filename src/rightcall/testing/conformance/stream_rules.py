"""The common part of the rules of all dialects: the events of a stream as a strict client reads them, and checks of
fields.

events_in(b'event: ping\\ndata: {"type": "ping"}\\n\\n', "messages")      [StreamedEvent("ping", {"type": "ping"})]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from rightcall.api_names import Api
from rightcall.providers.sdk_view import obj
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Json

_MAX_DEPTH = 400  # of JSON that clients can read


class StreamedEvent(msgspec.Struct, frozen=True):
    """One event. `payload` is None for `[DONE]`; `fault` says why an event could not be read."""

    name: str | None = None
    payload: Json | None = None
    fault: str = ""


def events_in(data: bytes, api: Api) -> list[StreamedEvent]:
    """Parse the bytes of a whole stream of this API and return its events. What a strict client could not read gives an
    event with a `fault`; bytes that are not UTF-8 give one such event."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return [StreamedEvent(fault=f"the stream is not UTF-8: {error.reason} at byte {error.start}")]
    if api == "ollama":
        return list(_check_json_lines(text))
    if api == "gemini" and text.lstrip().startswith("["):
        return list(_array_events(text))
    return list(_sse_events(text, comments=api != "gemini"))


def events_of(given: Iterable[Any]) -> list[StreamedEvent]:
    """Return events from parsed payloads, or from pairs of a name and a payload. `[DONE]` becomes an event without a
    payload, and a payload that is no object an event with a `fault`."""
    out = [StreamedEvent(each[0], each[1]) if isinstance(each, tuple) else StreamedEvent(None, each) for each in given]
    return [_check_payload(event) for event in out]


def _check_payload(event: StreamedEvent) -> StreamedEvent:
    """Return the event unchanged if its payload is an object or None; without its payload if that is `[DONE]`; else
    with a `fault` in place of the payload."""
    if event.payload is None or isinstance(event.payload, dict):
        return event
    if event.payload == "[DONE]":
        return StreamedEvent(event.name)
    return StreamedEvent(event.name, fault=f"it is no object: {event.payload!r:.60}")


def _check_json_lines(text: str) -> Iterator[StreamedEvent]:
    """Yield the event of each line of a stream of JSON lines. A blank line, a line of server-sent events and a missing
    line end yield an event with a `fault`."""
    if text and not text.endswith("\n"):
        yield StreamedEvent(fault="the last line has no end")
    for line in text.removesuffix("\n").split("\n") if text else ():
        if not line.strip():
            yield StreamedEvent(fault="a blank line")
        elif line.startswith(("data:", "event:", ":")):
            yield StreamedEvent(fault="events in place of lines of JSON")
        else:
            yield _parse_event(None, line)


def _array_events(text: str) -> Iterator[StreamedEvent]:
    """Yield an event for each item of a stream that is one JSON array; one event with a `fault` if the text is not
    JSON."""
    found = read_json(text)
    if isinstance(found, list):
        yield from events_of(found)
    else:
        yield StreamedEvent(fault=f"the array is not JSON: {text[:60]!r}")


def _sse_events(text: str, *, comments: bool) -> Iterator[StreamedEvent]:
    """Yield the server-sent events in a text. An unknown line yields an event with a `fault`, and so do a last event
    without the blank line that ends it, and a comment unless `comments` are allowed."""
    name: str | None = None
    data: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield _parse_event(name, "\n".join(data))
            name, data = None, []
        elif not field:
            if not comments:
                yield StreamedEvent(fault="a comment, which Google's clients take for JSON")
        elif field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field not in ("id", "retry"):
            yield StreamedEvent(fault=f"a line that is no field of an event: {line[:60]!r}")
    if data:
        yield StreamedEvent(fault="the last event is not ended by a blank line")


def _parse_event(name: str | None, data: str) -> StreamedEvent:
    """Return the event with this name and data. If the data is neither a JSON object nor `[DONE]`, the event has a
    `fault` instead of a payload."""
    if data.strip() == "[DONE]":
        return StreamedEvent(name)
    found = read_json(data)
    if isinstance(found, Undecodable):
        what = f"it is nested deeper than {_MAX_DEPTH}" if found.code == "too_deep" else "it is not JSON"
        return StreamedEvent(name, fault=f"{what}: {data[:60]!r}")
    return _check_payload(StreamedEvent(name, found))


def read_json(text: str) -> Any:
    """Return the value of a JSON text, or `Undecodable`, also beyond `_MAX_DEPTH`."""
    return decode(text, _MAX_DEPTH)


_MAX_FAULTS = 1000


class StreamRules:
    """Checks the events of one answer. `faults` lists the violations, each with the number of its event.

    A dialect implements `check_event` for an event and `check_whole` for a whole answer, and sets `ended` to what ended
    the answer."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.number = 0  # of the current event
        self.ended = ""  # what ended the answer; empty before that
        self._ids: set[str] = set()

    def check(self, events: list[StreamedEvent]) -> list[str]:
        """Check all events of a stream and return `faults`, the list of all violations. After 1,000 of them the
        remaining events are not checked. Call this once."""
        for self.number, event in enumerate(events):
            if len(self.faults) >= _MAX_FAULTS:
                self.report_overall(f"and so on: {len(events) - self.number} more events were not checked")
                return self.faults
            if event.fault:
                self.report(event.fault)
            elif event.payload is None:
                self.on_done_mark()
            elif self.ended and not self.may_follow(event.payload):
                self.report(f"it comes after {self.ended}, which ended the answer")
            else:
                self.check_event(event.name, event.payload)
        self.close()
        return self.faults

    def report(self, what: str) -> None:
        """Add a fault of the current event."""
        self.faults.append(f"event {self.number}: {what}")

    def report_overall(self, what: str) -> None:
        """Add a fault of the answer as a whole."""
        self.faults.append(what)

    # -- implemented by dialects ---------------------------------------------------------------------------------------

    def check_event(self, name: str | None, payload: Json) -> None:
        """Check one event that is no `[DONE]`, and report its faults. `name` is None if it has none. Subclasses
        implement it."""
        raise NotImplementedError

    def may_follow(self, payload: Json) -> bool:
        """Return whether this event may come after the event that ended the answer: False unless a subclass allows
        it."""
        return False

    def on_done_mark(self) -> None:
        """Check the event `[DONE]`, which ends the answer."""
        self.ended = self.ended or "[DONE]"

    def close(self) -> None:
        """Report, at the end of the stream, that no event has ended the answer, unless `ended` is set."""
        if not self.ended:
            self.report_overall("the stream ends without an end: clients wait, or retry without limit")

    # -- checks of fields ----------------------------------------------------------------------------------------------

    def check_error(self, payload: Json, *keys: str) -> None:
        """Report each text `keys` that is missing in the error of a payload, or in the payload itself if it has no
        `error`, and note in `ended` that the error ends the answer."""
        error = obj(payload.get("error")) or payload
        self.check_texts(error, *keys)
        self.ended = "the error"

    def check_texts(self, fields: Json, *names: str) -> None:
        """Report each of the fields `names` that is missing, not a text, or empty."""
        for name in names:
            if not isinstance(fields.get(name), str) or not fields[name]:
                self.report(f"`{name}` must be a text that is not empty, not {fields.get(name)!r:.40}")

    def check_numbers(self, fields: Json, *names: str) -> None:
        """Report each of the fields `names` that is missing or not an integer."""
        for name in names:
            if type(fields.get(name)) is not int:
                self.report(f"`{name}` must be a whole number, not {fields.get(name)!r:.40}")

    def check_usage(self, usage: Any, *names: str) -> None:
        """Report a usage that is not an object, and each of the counts `names` in it that is missing or not an
        integer."""
        found = obj(usage)
        if found is None:
            self.report(f"`usage` must be an object with {', '.join(names)}, not {usage!r:.40}")
        else:
            self.check_numbers(found, *names)

    def check_call_id(self, id: Any, key: str = "id") -> None:
        """Report the id of a new call if it is not a text, empty, or the id of another call; otherwise store it. `key`
        is its name in reports."""
        if not isinstance(id, str) or not id:
            self.report(f"the call's `{key}` must be a text that is not empty, not {id!r:.40}")
        elif id in self._ids:
            self.report(f"two calls have the id {id!r:.60}")
        else:
            self._ids.add(id)

    def check_call_name(self, name: Any) -> None:
        """Report a name of a call that is not a text, or empty."""
        if not isinstance(name, str) or not name:
            self.report(f"the call's name must be whole when it begins, not {name!r:.40}")


def is_object_text(value: Any) -> bool:
    """Return whether a value is the text of a JSON object."""
    return isinstance(value, str) and isinstance(read_json(value), dict)


class TextSoFar:
    """Text that comes in pieces, which are not kept."""

    def __init__(self) -> None:
        self._any = self._solid = False

    def add(self, piece: str) -> None:
        """Take the next piece."""
        self._any = self._any or bool(piece)
        self._solid = self._solid or bool(piece.strip())

    @property
    def is_blank(self) -> bool:
        """Return whether there is text so far, and all of it is white space."""
        return self._any and not self._solid
