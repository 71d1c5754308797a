"""Streams that go through as they are, and how one that breaks off is ended.

    stream = PassedStream("chat")
    send(stream.pass_on(data)) ...
    send(stream.ending())          b"" where the server ended it itself

Only whole events go on, byte for byte, so that the end can follow them: a client that never sees an end asks again
without a limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from rightcall.api_names import Api
from rightcall.providers.sdk_view import text
from rightcall.serve.event_frames import MAX_FRAME
from rightcall.types import Json

_BLOCK = re.compile(rb'"type": ?"content_block_(start|stop)"[^\n]{0,400}?"index": ?(\d{1,6})')


class PassedStream:
    """One stream of a server in its own dialect."""

    def __init__(self, api: Api) -> None:
        self._signs, self._end = _ENDINGS[api]
        self._separator = b"\n" if api == "ollama" else b"\n\n"
        self._rest: list[bytes] = []  # of an event that is not whole
        self._size = 0
        self._seam = b""  # its last bytes: what ends it may come in pieces
        self._first = b""
        self._ended = self._finished = False
        self._open: int | None = None
        self._watches_blocks = api == "messages"
        self._watches_items = api == "responses"
        self._items: list[bytes] = []  # the events of items that are done
        self._since: list[bytes] = []  # what came after the last of them
        self._watched = 0  # bytes
        self._last = _LAST.get(api, ())
        self._is_cut = False  # the server's last event waits for what it left out before it

    def pass_on(self, data: bytes) -> bytes:
        """The events that are whole now."""
        if self._is_cut:
            return b""
        if self._rest:
            if not self._last_end(self._seam + data) and self._size + len(data) <= MAX_FRAME:
                return self._keep(data)
            data = b"".join([*self._rest, data])
            self._rest, self._size, self._seam = [], 0, b""
        at = self._last_end(data)
        if not at and len(data) <= MAX_FRAME:
            return self._keep(data)
        whole = data[:at] if 0 < at < len(data) else data  # what is longer than any event goes on as it is
        if len(whole) < len(data):
            self._keep(data[at:])
        return self._seen(whole)

    def _keep(self, data: bytes) -> bytes:
        self._rest.append(data)
        self._size += len(data)
        self._seam = (self._seam + data)[-3:]
        return b""

    def _last_end(self, data: bytes) -> int:
        """Where the last whole event ends; 0 if there is none."""
        at = data.rfind(self._separator)
        if at < 0 and self._separator == b"\n\n":
            crlf = data.rfind(b"\r\n\r\n")
            return crlf + 4 if crlf >= 0 else 0
        return at + len(self._separator) if at >= 0 else 0

    def _seen(self, events: bytes) -> bytes:
        """The events, up to a last one that comes before the answer was finished: no client takes such an end."""
        self._see(events)
        if not self._ended or self._finished or not self._last:
            return events
        at = min([found for sign in self._last if (found := (b"\n" + events).find(sign)) >= 0], default=-1)
        if at < 0:
            return events
        self._is_cut, self._ended = True, False
        return events[: self._last_end(events[:at])]

    def _see(self, events: bytes) -> None:
        if not self._first and b"{" in events:
            self._first = events[:MAX_FRAME].partition(self._separator)[0]
        finish, end = self._signs
        self._finished = self._finished or any(sign in events for sign in finish)
        self._ended = self._ended or any(sign in events or events.startswith(sign[1:]) for sign in end)
        if self._watches_blocks:
            for kind, index in _BLOCK.findall(events):
                self._open = int(index) if kind == b"start" else None
        if self._watches_items:
            self._see_items(events)

    def _see_items(self, events: bytes) -> None:
        """Of a stream that is longer than any event may be, nothing is kept: then it is only said that it was cut."""
        self._watched += len(events)
        if self._watched > MAX_FRAME:
            self._items, self._since = [], []
            return
        if any(sign in events for sign in _ITEM_DONE):
            self._items += [line for line in events.splitlines() if any(sign in line for sign in _ITEM_DONE)]
            last = max([events.rfind(sign) for sign in _ITEM_DONE])
            self._since, events = [], events[last:].partition(b"\n")[2]
        self._since.append(events)

    @property
    def has_begun(self) -> bool:
        """Has an event gone on?"""
        return bool(self._first)

    @property
    def is_whole(self) -> bool:
        """Has the server said that it is over?"""
        return self._ended or self._finished

    def ending(self) -> bytes:
        """What must follow now that nothing more comes from the server."""
        if self._ended:
            return b""
        items = [item for line in self._items if isinstance(item := _payload(line).get("item"), dict)]
        since = [_payload(line) for line in b"".join(self._since).splitlines() if line.startswith(b"data:")]
        return self._end(Unended(_payload(self._first), self._finished, self._open, items, since))


class Unended(NamedTuple):
    """A stream that has no end: its first object, whether what it says is whole, and what is known of its parts: the
    number of a block that is open, the items that are done, and the events since the last of these."""

    first: Json
    finished: bool
    open_block: int | None
    items: list[Json]
    since: list[Json]


def _payload(event: bytes) -> Json:
    """The first object of the stream, for what its end must repeat."""
    begin = event.find(b"{")
    try:
        value = json.loads(event[begin:].splitlines()[0]) if begin >= 0 else {}
    except (ValueError, IndexError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _sse(payload: Json, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(payload, separators=(',', ':'))}\n\n".encode()


def _chat(left: Unended) -> bytes:
    done = b"data: [DONE]\n\n"
    if left.finished:
        return done
    choice = {"index": 0, "delta": {}, "finish_reason": "length"}
    head = {"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 0, "model": ""}
    return _sse({**head, **{key: left.first[key] for key in head if key in left.first}, "choices": [choice]}) + done


def _completions(left: Unended) -> bytes:
    done = b"data: [DONE]\n\n"
    if left.finished:
        return done
    choice = {"index": 0, "text": "", "logprobs": None, "finish_reason": "length"}
    head = {"id": "cmpl-0", "object": "text_completion", "created": 0, "model": ""}
    return _sse({**head, **{key: left.first[key] for key in head if key in left.first}, "choices": [choice]}) + done


def _messages(left: Unended) -> bytes:
    out = b""
    if left.open_block is not None:
        out += _sse({"type": "content_block_stop", "index": left.open_block}, "content_block_stop")
    if not left.finished:
        delta = {"stop_reason": "max_tokens", "stop_sequence": None}
        out += _sse({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 0}}, "message_delta")
    return out + _sse({"type": "message_stop"}, "message_stop")


def _responses(left: Unended) -> bytes:
    begun = left.first.get("response")
    ending: Json = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    if left.finished:
        ending = {"status": "completed"}
    closing, items = _closed_item(left, ending["status"])
    usage = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    response = {**(begun if isinstance(begun, dict) else {}), **ending, "output": items, "usage": usage}
    kind = f"response.{ending['status']}"
    return closing + _sse({"type": kind, "response": response}, kind)


def _closed_item(left: Unended, status: str) -> tuple[bytes, list[Json]]:
    """The events that close an item which is open, and all items then: clients take those that are done."""
    opened = [each for each in left.since if each.get("type") == "response.output_item.added"]
    item = opened[-1].get("item") if opened else None
    if not isinstance(item, dict):
        return b"", left.items
    where = {"output_index": opened[-1].get("output_index"), "item_id": item.get("id")}
    deltas = [each for each in left.since if str(each.get("type")).endswith("text.delta")]
    said = "".join([text(each.get("delta")) for each in deltas])
    done: Json = {"summary": [{"type": "summary_text", "text": said}]}
    if item.get("type") == "message":
        done = {"content": [{"type": "output_text", "text": said, "annotations": []}], "status": status}
    whole = {**item, **done} if deltas or _has(left.since, "part.added") else item
    out = b""
    if deltas and not _has(left.since, "text.done"):
        index: Json = {key: deltas[-1][key] for key in ("content_index", "summary_index") if key in deltas[-1]}
        kind = str(deltas[-1]["type"]).removesuffix("delta") + "done"
        out += _sse({"type": kind, **where, **index, "text": said}, kind)
    last = "response.output_item.done"
    return out + _sse({"type": last, "output_index": where["output_index"], "item": whole}, last), [*left.items, whole]


def _has(events: list[Json], kind: str) -> bool:
    return any(str(each.get("type")).endswith(kind) for each in events)


def _ollama(left: Unended) -> bytes:
    head = {key: left.first[key] for key in ("model", "created_at") if key in left.first}
    message = {"role": "assistant", "content": ""}
    return json.dumps({**head, "message": message, "done": True, "done_reason": "length"}).encode() + b"\n"


def _gemini(left: Unended) -> bytes:
    if left.finished:
        return b""
    content = {"role": "model", "parts": [{"text": ""}]}
    usage = left.first.get("usageMetadata") or {"promptTokenCount": 0, "totalTokenCount": 0}
    candidate = {"index": 0, "content": content, "finishReason": "MAX_TOKENS"}
    return _sse({"candidates": [candidate], "usageMetadata": usage})


def _typed(*kinds: str) -> tuple[bytes, ...]:
    """The ways in which an event says its type. What a model writes cannot look like it: its quotes are escaped."""
    return tuple([f'"type":{blank}"{kind}"'.encode() for kind in kinds for blank in ("", " ")])


_Ending = Callable[[Unended], bytes]
_FINISH = (b'"finish_reason":"', b'"finish_reason": "')
_DONE = (b"\ndata: [DONE]", b"\ndata:[DONE]")
_CLOSED = _typed("response.completed", "response.incomplete", "response.failed", "error")
_ITEM_DONE = _typed("response.output_item.done")
# The event that says nothing but that the stream is over.
_LAST: dict[Api, tuple[bytes, ...]] = {"chat": _DONE, "completions": _DONE, "messages": _typed("message_stop")}
# What shows that an answer was finished, what shows that its stream is over, and how to end one that is not.
_ENDINGS: dict[Api, tuple[tuple[tuple[bytes, ...], tuple[bytes, ...]], _Ending]] = {
    "chat": ((_FINISH, _DONE), _chat),
    "completions": ((_FINISH, _DONE), _completions),
    "messages": ((_typed("message_delta"), _typed("message_stop", "error")), _messages),
    "responses": ((_typed("response.output_text.done"), _CLOSED), _responses),
    "ollama": (((), (b'"done":true', b'"done": true')), _ollama),
    "gemini": (((b'"finishReason"',), ()), _gemini),
}
_BEGINNING = 16  # bytes that tell a stream from a whole answer and from an error
_ERRORS = (b'data: {"error"', b'data:{"error"', b'{"error"', b"event: error", b"event:error")


async def beginning(pieces: AsyncIterator[bytes]) -> bytes:
    """As much of an answer as shows what it is."""
    first = b""
    async for piece in pieces:
        first += piece
        if len(first.lstrip()) > _BEGINNING:
            break
    return first


def is_stream(first: bytes, api: str) -> bool:
    """Does an answer begin like a stream of this API? One that came whole must be read, and so must an error."""
    begins = first.lstrip()
    if begins.startswith(_ERRORS):
        return False
    return begins.startswith(b"{") if api == "ollama" else begins.startswith((b"data:", b"event:", b":", b"id:"))
