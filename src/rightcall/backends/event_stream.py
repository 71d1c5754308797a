"""Parse server-sent events and JSON lines, as servers really send them, from bytes to payloads. No IO.

    data: {"choices": [...]}         one payload per event; several data lines are one payload
    : ping                           a comment, and so nothing
    data: [DONE]                     the end, which many servers forget
    {"message": {...}, "done": true} without `data:`: a line is a payload (Ollama), or all lines are one

Lines end in LF, CR or CRLF; pieces may be cut anywhere, in a character too. What cannot be read is a `Fault`.
"""

from __future__ import annotations

from enum import Enum, auto

from rightcall.providers.dialect import Fault
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Json

MAX_LINE = 16_000_000  # bytes of a line, and of an event
_DEPTH = 400
_BOM = b"\xef\xbb\xbf"


class Signal(Enum):
    """A payload that is no data: `done` is the server's marker for the end of the stream."""

    done = auto()  # the server's end marker


Payload = Json | Fault | Signal


class _StreamForm(Enum):
    """The form of the stream, decided by its first line that is not blank."""

    unknown = auto()
    events = auto()
    lines = auto()  # each line is a payload
    whole = auto()  # all lines together are one payload


class ServerEvents:
    """Parses the bytes of a stream into payloads. Beyond `longest` bytes in a line or event it reports a fault, sets
    `too_long` and ignores all further input."""

    def __init__(self, *, longest: int = MAX_LINE) -> None:
        self._longest = longest
        self._line: list[bytes] = []  # pieces of the line that has not ended
        self._size = 0
        self._after_cr = False
        self._first = True
        self._form = _StreamForm.unknown
        self._event = ""
        self._data: list[str] = []
        self._data_size = 0
        self.too_long = False
        self.head = b""  # how the stream began, for an error message

    def feed(self, chunk: bytes) -> list[Payload]:
        """Add bytes of the stream, cut anywhere, and return the payloads that they complete: objects, a `Signal` for
        the end marker, and a `Fault` for what is not JSON or too long. Returns [] if none is complete or reading has
        stopped."""
        out: list[Payload] = []
        if len(self.head) < 500:
            self.head += chunk[: 500 - len(self.head)]
        if not chunk:
            return out
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        for piece in chunk.splitlines(keepends=True):  # of bytes: at LF, CR and CRLF, and nowhere else
            if self.too_long:
                break
            self._line.append(piece)
            self._size += len(piece)
            if self._size > self._longest:
                self._give_up(out)
            elif piece.endswith((b"\n", b"\r")):
                self._end_line(out)
        return out

    def close(self, *, broken: bool = False) -> list[Payload]:
        """End the stream and return its last payloads, an unfinished event included. Returns [] if the connection is
        `broken`, where an unfinished event is discarded, or if reading has stopped at a line that was too long."""
        out: list[Payload] = []
        if broken or self.too_long:
            return out
        if self._line:
            self._end_line(out)
        self._dispatch(out)
        return out

    def _end_line(self, out: list[Payload]) -> None:
        """Decode the current line, which is complete, process it, and append the payloads that it completes to
        `out`."""
        raw = b"".join(self._line)
        self._line, self._size = [], 0
        if self._first:
            raw, self._first = raw.removeprefix(_BOM), False
        self._process_line(raw.rstrip(b"\r\n").decode("utf-8", "replace"), out)

    def _process_line(self, line: str, out: list[Payload]) -> None:
        """Process one line without its line end, and append the payloads that it completes to `out`. The first line
        that is not blank decides the form of the stream: server-sent events, JSON lines, or one JSON document."""
        if self._form is _StreamForm.unknown and line.strip():
            self._form = _detect_form(line)
        if self._form is _StreamForm.lines:
            out += _to_payloads(line, decode(line, _DEPTH), is_error=False) if line.strip() else []
        elif self._form is _StreamForm.whole:
            self._add_data(line, out)
        elif self._form is _StreamForm.events:
            self._process_event_line(line, out)

    # -- events --------------------------------------------------------------------------------------------------------

    def _process_event_line(self, line: str, out: list[Payload]) -> None:
        """Process one line of server-sent events: a `data` or `event` field, or the blank line that ends the event.
        Payloads that are complete are appended to `out`: a `data` line first completes the event before it if that is
        whole JSON without a blank line. Comments and other fields are ignored."""
        if not line:
            self._dispatch(out)
            return
        field, colon, value = line.partition(":")
        value = value.removeprefix(" ") if colon else ""
        if field == "data":
            if self._ended_without_a_blank_line(value):
                self._dispatch(out)
            self._add_data(value, out)
        elif field == "event":
            self._event = value

    def _ended_without_a_blank_line(self, following: str) -> bool:
        """Return whether the current event is complete although no blank line ended it: it is one line of complete
        JSON, and `following`, the value of the next data line, begins an object or is `[DONE]`."""
        if len(self._data) != 1 or not following.startswith(("{", "[DONE]")):
            return False
        return self._data[0].endswith("}") and not isinstance(decode(self._data[0], _DEPTH), Undecodable)

    def _add_data(self, value: str, out: list[Payload]) -> None:
        """Add a line of data to the current event. If the event becomes too long, stop reading and append a `Fault` to
        `out`."""
        self._data.append(value)
        self._data_size += len(value)
        if self._data_size > self._longest:
            self._give_up(out)

    def _dispatch(self, out: list[Payload]) -> None:
        """End the current event and append its payloads to `out`: `Signal.done` for `[DONE]`, otherwise those of its
        JSON, as errors if the event is named `error`. An event without data gives nothing."""
        text, is_error = "\n".join(self._data), self._event == "error"
        self._data, self._data_size = [], 0
        self._event = ""
        if not text.strip():
            return
        if text.strip() == "[DONE]":
            out.append(Signal.done)
            return
        out += _to_payloads(text, decode(text, _DEPTH), is_error=is_error)

    def _give_up(self, out: list[Payload]) -> None:
        """Stop reading for good: set `too_long`, discard the unfinished line or event, and append a `too_large` fault
        to `out`."""
        self.too_long = True
        self._line, self._data = [], []
        out.append(
            Fault("too_large", f"a line of the stream is longer than {self._longest:,} bytes; nothing more is read")
        )


def _detect_form(line: str) -> _StreamForm:
    """Return the form of a stream from its first line: `events` unless it begins a JSON object or array, `lines` if it
    is complete JSON, `whole` (all lines are one document) if it is not."""
    if not line.lstrip().startswith(("{", "[")):
        return _StreamForm.events
    return _StreamForm.whole if isinstance(decode(line, _DEPTH), Undecodable) else _StreamForm.lines


def _to_payloads(text: str, value: object, *, is_error: bool) -> list[Payload]:
    """Return the payloads of a chunk, given its `text` and decoded `value`: its object, or the objects of its array; []
    for other JSON, and one `Fault` for text that is not JSON.

    With `is_error` each payload is an object with `error`, in which an object without that key is wrapped; a chunk
    without an object, also one that is no JSON, gives one error with its text.
    """
    if isinstance(value, Undecodable) and not is_error:
        return [Fault("malformed_chunk", f"a chunk of the stream is not valid JSON: {text[:80]!r}")]
    found = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]
    if not is_error:
        return [*found]
    return [each if "error" in each else {"error": each} for each in found or [{"message": text[:2000]}]]
