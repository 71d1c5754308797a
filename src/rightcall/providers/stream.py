"""`Stream`: a provider's streamed answer, chunk by chunk.

    stream = Stream(tools=tools)
    for event in stream.events(response): ...
    stream.reply

The reply is the one that `read` makes of the same answer given whole.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Literal, overload

from rightcall.errors import CallerError
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.parsing.all_events import all_events
from rightcall.parsing.hold import Hold
from rightcall.parsing.options import Limits
from rightcall.parsing.parser import Policy, ReasoningCalls, Rescue
from rightcall.providers import whole as reading
from rightcall.providers.assembler import Assembler
from rightcall.providers.deltas import Delta, Deltas, Fault, Said, Seen, Stop, of_choice
from rightcall.providers.opaque_fields import Keepsakes
from rightcall.providers.sdk_view import items, obj
from rightcall.providers.sniff import named, sniff
from rightcall.providers.sse import Payloads
from rightcall.providers.usage import usage_of
from rightcall.tools.toolset import ToolLike, Toolset
from rightcall.types import Event, Json, Reply


class Stream:
    """Reads one streamed answer of a provider. `feed` gives the events that a chunk made certain, `close` the rest;
    `reply` is then the one that `read` makes of the whole answer. Of several choices the first goes out as it comes,
    the others at the end.

    The options are those of `read`: `api`, `tools`, `format`, `reasoning`, `repair`, `rescue`, `reasoning_calls`,
    `choice`, `ids` and `limits`. And two:

    - `live`: string arguments go out while they arrive, as a preview, of calls found in the text too. The end of those
      waits for the end of the answer: native calls that follow win, and a call in the text then may not run.
    - `hold`: text that may turn out to be reasoning or a call waits, so that nothing is ever taken back by a `Recast`.
    """

    def __init__(
        self,
        api: str = "auto",
        *,
        tools: Toolset | Iterable[ToolLike] | None = None,
        format: str | Format = "auto",
        reasoning: Literal["auto", "open", "off"] = "auto",
        repair: Policy | Mapping[str, Policy] = "safe",
        rescue: Rescue = "safe",
        reasoning_calls: ReasoningCalls = "safe",
        choice: str | Mapping[str, Any] | None = None,
        ids: Ids | None = None,
        live: bool = False,
        hold: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self._api = named(api)
        self._manner = reading.manner(
            tools, format, reasoning, repair, rescue, reasoning_calls, choice, limits, live=live
        )
        self._ids = Ids() if ids is None else ids
        self._payloads = Payloads()
        self._seen: Seen = {}
        self._keepsakes = Keepsakes()
        self._first: Assembler | None = None  # of choice 0
        self._others: dict[int, list[list[Delta]]] = {}
        self._replies: list[Reply] = []
        self._usage: Json = {}
        self._lost = False  # something of it, and so maybe the end of any choice
        self._closed = False
        self._hold = Hold() if hold else None

    def feed(self, chunk: Any) -> list[Event]:
        """The events that this `chunk` made certain: parsed JSON, an SDK's object, or text or bytes of the stream in
        any pieces. Raises `CallerError` once the stream is closed."""
        if self._closed:
            raise CallerError("this stream is closed; a new answer needs a new Stream")
        if type(chunk) is Said:
            return self._said(chunk)
        if isinstance(chunk, str | bytes):
            found: list[Any] = list(self._payloads.feed(chunk))
        elif isinstance(chunk, list | tuple):
            found = items(chunk)
        else:
            found = [chunk]
        events: list[Event] = []
        for payload in found:
            events += self._payload(payload)
        return events if self._hold is None else self._hold.pass_on(events, closed=False)

    def close(self) -> list[Event]:
        """The stream ended: the events that only the end could decide. Closing twice does nothing."""
        if self._closed:
            return []
        self._closed = True
        events = [event for fault in self._payloads.close() for event in self._payload(fault)]
        first = self._assembler()
        first.close()
        events += first.take()
        self._replies = [first.reply]
        count = first.count
        for number in sorted(self._others):
            other = Assembler(self._api, self._manner, self._ids, count)
            for deltas in self._others[number]:
                other.chunk(deltas)
            other.chunk([Stop("error")] if self._lost else [])
            other.close()
            events += other.take()
            self._replies.append(other.reply)
            count = other.count
        return events if self._hold is None else self._hold.pass_on(events, closed=True)

    @overload
    def events(self, chunks: Iterable[Any]) -> Iterator[Event]: ...
    @overload
    def events(self, chunks: AsyncIterable[Any]) -> AsyncIterator[Event]: ...
    def events(self, chunks: Iterable[Any] | AsyncIterable[Any]) -> Iterator[Event] | AsyncIterator[Event]:
        """All the events of a stream: feeds each of `chunks`, then closes. Over an async stream with `async for`."""
        return all_events(self, chunks)

    @property
    def reply(self) -> Reply:
        """What has been read so far; whole once the stream is closed."""
        if self._closed:
            reply = reading.merged(self._replies)
        else:
            reply = self._first.reply if self._first is not None else Reply()
        return reading.of_provider(reply, self._api, self._usage, self._keepsakes.response(self._api))

    @property
    def has_native_calls(self) -> bool:
        """Has the answer calls of the provider's own, not only in its text?"""
        return self._first is not None and self._first.is_native

    def _said(self, said: Said) -> list[Event]:
        """A piece of text, of which its reader knows that the chunk held nothing else."""
        self._seen[0] = True
        first = self._assembler()
        first.chunk((said,))
        events = first.take()
        return events if self._hold is None else self._hold.pass_on(events, closed=False)

    def _payload(self, payload: Any) -> list[Event]:
        deltas: Deltas = []
        if isinstance(payload, Fault):
            deltas = [(0, payload)]
        elif fields := obj(payload):
            deltas = self._deltas(fields)
            self._keepsakes.add(self._api, fields)
            self._usage |= usage_of(fields)
        if not deltas:
            return []
        self._lost = self._lost or reading.has_loss([deltas])
        first = self._assembler()
        first.chunk(of_choice(deltas, 0))
        for number in {number for number, _ in deltas} - {0}:
            self._others.setdefault(number, []).append(of_choice(deltas, number))
        return first.take()

    def _deltas(self, payload: Json) -> Deltas:
        if self._api == "auto":
            self._api = sniff(payload) or "auto"
        return reading.chunk(payload, self._api, self._seen)

    def _assembler(self) -> Assembler:
        if self._first is None:
            self._first = Assembler(self._api, self._manner, self._ids)
        return self._first
