"""`Parser` and `parse`: text in, events and a reply out.

    parser = Parser("hermes", tools=tools)
    for chunk in stream:
        for event in parser.feed(chunk): ...
    parser.close()
    parser.reply

Parsing a whole text takes the same steps, none of which waits: there is no second implementation to disagree with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from rightcall.declare.toolset import ToolLike, Toolset
from rightcall.errors import CallerError
from rightcall.formats import find
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.types import Call, CallStart, Done, Event, Reply
from rightcall.wire.auto import AutoReading
from rightcall.wire.compile import compiled, without_reasoning
from rightcall.wire.fold import Fold
from rightcall.wire.options import Limits, ReadOptions
from rightcall.wire.reading import Reading

Policy = Literal["off", "safe", "lenient"]
_REASONING = ("auto", "open", "off")
_REPAIR = ("off", "safe", "lenient")
_LIMITS = Limits()


class Parser:
    """Reads one reply. `feed` gives the events that the text so far has made certain, `close` the rest.

    A parser belongs to one stream; formats and toolsets may be shared. `live` passes plain string arguments on while
    they arrive; `hold` holds back text that may turn out to be reasoning instead of recasting it later.
    """

    __slots__ = ("_closed", "_fold", "_held", "_reading")

    def __init__(
        self,
        format: str | Format = "auto",
        *,
        tools: Toolset | Iterable[ToolLike] | None = None,
        reasoning: Literal["auto", "open", "off"] = "auto",
        repair: Policy | Mapping[str, Policy] = "safe",
        choice: str | Mapping[str, Any] | None = None,
        ids: Ids | None = None,
        spans: bool = False,
        live: bool = False,
        hold: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self._reading = _start(format, tools, reasoning, repair, choice, ids, spans, live, limits)
        self._fold = Fold()
        self._closed = False
        self._held: list[Event] | None = [] if hold else None

    def feed(self, text: str) -> list[Event]:
        """The events that this piece of text made certain."""
        if self._closed:
            raise CallerError("this parser is closed; a new reply needs a new Parser")
        if text:
            self._reading.feed(text)
        return self._take()

    def close(self) -> list[Event]:
        """The stream ended: the events that only the end could decide. Closing twice does nothing."""
        if self._closed:
            return []
        self._closed = True
        self._reading.close()
        return self._take()

    def _take(self) -> list[Event]:
        events = self._reading.out
        if events:
            self._reading.out = []
            self._fold.add(events)
        elif self._held is None:
            return []  # not the list that later events go into
        return events if self._held is None else self._hold(events)

    def _hold(self, events: list[Event]) -> list[Event]:
        """Nothing goes out that may still be recast: text and reasoning wait for the first call, or for the end."""
        assert self._held is not None
        self._held += events
        begun = next((i for i, event in enumerate(self._held) if isinstance(event, CallStart)), None)
        if begun is None and not self._closed:
            return []
        held, self._held = self._held, None
        before = held[:begun]
        settled = Fold()
        settled.add(before)
        reply = settled.reply("", None)
        parts = [part for part in reply.parts if not isinstance(part, Call)]
        done = [Done(reply.done)] if reply.done is not None else []
        return [*parts, *reply.problems, *done, *(held[begun:] if begun is not None else ())]

    @property
    def reply(self) -> Reply:
        """What has been read so far; whole once the parser is closed."""
        spans = self._reading.spans
        return self._fold.reply(self._reading.compiled.format.name, None if spans is None else tuple(spans))


def _start(
    format: str | Format,
    tools: Toolset | Iterable[ToolLike] | None,
    reasoning: str,
    repair: str | Mapping[str, str],
    choice: str | Mapping[str, Any] | None,
    ids: Ids | None,
    spans: bool,
    live: bool,
    limits: Limits | None,
) -> Reading | AutoReading:
    """A reading with these options. Raises where one of them is wrong."""
    if reasoning not in _REASONING:
        raise CallerError(f"reasoning={reasoning!r} is not one of {', '.join(_REASONING)}")
    if repair not in _REPAIR:
        _check_repair(repair)
    toolset = tools if type(tools) is Toolset else Toolset.of(tools)
    chosen = None if choice is None else _chosen(choice)
    options = ReadOptions(toolset, reasoning, repair, chosen, spans, live, limits or _LIMITS)
    if format == "auto":
        return AutoReading(options, ids or Ids())
    found = compiled(find(format))
    return Reading(found if reasoning != "off" else without_reasoning(found), options, ids or Ids())


def _check_repair(repair: str | Mapping[str, str]) -> None:
    for policy in (repair,) if isinstance(repair, str) else repair.values():
        if policy not in _REPAIR:
            raise CallerError(f"repair={policy!r} is not one of {', '.join(_REPAIR)}")


def _chosen(choice: str | Mapping[str, Any] | None) -> str | None:
    """The one tool that the request asked for, if it named one: `"f"` or OpenAI's `{"function": {"name": "f"}}`."""
    if isinstance(choice, Mapping):
        inner = choice.get("function", choice)
        choice = inner.get("name") if isinstance(inner, Mapping) else None
    return None if choice in (None, "", "auto", "required", "any", "none") else str(choice)


def parse(
    text: str,
    *,
    tools: Toolset | Iterable[ToolLike] | None = None,
    format: str | Format = "auto",
    reasoning: Literal["auto", "open", "off"] = "auto",
    repair: Policy | Mapping[str, Policy] = "safe",
    choice: str | Mapping[str, Any] | None = None,
    ids: Ids | None = None,
    spans: bool = False,
    limits: Limits | None = None,
) -> Reply:
    """The reply that a model's whole text holds. Never raises because of what the text is."""
    reading = _start(format, tools, reasoning, repair, choice, ids, spans, False, limits)
    reading.whole(text)
    fold = Fold()
    fold.add(reading.out)
    return fold.reply(reading.compiled.format.name, None if reading.spans is None else tuple(reading.spans))
