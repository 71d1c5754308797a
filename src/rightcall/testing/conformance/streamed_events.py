"""The events of a stream as a strict client reads them: names, payloads, and what is no event at all.

b'event: ping\\ndata: {"type": "ping"}\\n\\n'  ->  [StreamedEvent("ping", {"type": "ping"})]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from rightcall.api_names import Api
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Json

_DEEPEST = 400  # levels that clients read


class StreamedEvent(msgspec.Struct, frozen=True):
    """One event. `payload` is None for `[DONE]`; `fault` is set where there is none that could be read."""

    name: str | None = None
    payload: Json | None = None
    fault: str = ""


def events_in(data: bytes, api: Api) -> list[StreamedEvent]:
    """What the bytes of a whole stream hold."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return [StreamedEvent(fault=f"the stream is not UTF-8: {error.reason} at byte {error.start}")]
    if api == "ollama":
        return list(_lines(text))
    if api == "gemini" and text.lstrip().startswith("["):
        return list(_listed(text))
    return list(_blocks(text, comments=api != "gemini"))


def events_of(given: Iterable[Any]) -> list[StreamedEvent]:
    """Parsed events: payloads, or pairs of a name and a payload."""
    out = [StreamedEvent(each[0], each[1]) if isinstance(each, tuple) else StreamedEvent(None, each) for each in given]
    return [_checked(event) for event in out]


def _checked(event: StreamedEvent) -> StreamedEvent:
    if event.payload is None or isinstance(event.payload, dict):
        return event
    if event.payload == "[DONE]":
        return StreamedEvent(event.name)
    return StreamedEvent(event.name, fault=f"it is no object: {event.payload!r:.60}")


def _lines(text: str) -> Iterator[StreamedEvent]:
    if text and not text.endswith("\n"):
        yield StreamedEvent(fault="the last line has no end")
    for line in text.removesuffix("\n").split("\n") if text else ():
        if not line.strip():
            yield StreamedEvent(fault="a blank line")
        elif line.startswith(("data:", "event:", ":")):
            yield StreamedEvent(fault="events in place of lines of JSON")
        else:
            yield _read(None, line)


def _listed(text: str) -> Iterator[StreamedEvent]:
    found = read_json(text)
    if isinstance(found, list):
        yield from events_of(found)
    else:
        yield StreamedEvent(fault=f"the array is not JSON: {text[:60]!r}")


def _blocks(text: str, *, comments: bool) -> Iterator[StreamedEvent]:
    """Events are ended by a blank line; what stands behind the last one is lost to a client."""
    name: str | None = None
    data: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield _read(name, "\n".join(data))
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


def _read(name: str | None, data: str) -> StreamedEvent:
    if data.strip() == "[DONE]":
        return StreamedEvent(name)
    found = read_json(data)
    if isinstance(found, Undecodable):
        what = f"it is nested deeper than {_DEEPEST}" if found.code == "too_deep" else "it is not JSON"
        return StreamedEvent(name, fault=f"{what}: {data[:60]!r}")
    return _checked(StreamedEvent(name, found))


def read_json(text: str) -> Any:
    """The value of a JSON text, or `Undecodable`."""
    return decode(text, _DEEPEST)
