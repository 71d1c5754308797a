"""Ways to cut a text into chunks, and what must hold of a reply however its text was cut.

`hold_of_every_cut` is laws 1 and 4 for one text: the same reply and the same joined events under every cut, the reply a
fold over its events, spans that tile the text and account for every character.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import msgspec

from rightcall import (
    Arguments,
    Call,
    CallEnd,
    CallStart,
    Format,
    Ids,
    Parser,
    Problem,
    Reasoning,
    Recast,
    Reply,
    Span,
    Text,
    Toolset,
    parse,
)
from rightcall.formats import find
from rightcall.types import Done, Event, Part
from rightcall.wire.options import Limits

_HOLE = re.compile(r"\{(?:name|key|type|id|index|number)\}")


class Read(NamedTuple):
    events: list[Event]
    reply: Reply


class Setting(NamedTuple):
    """How a text is to be read."""

    format: str | Format
    tools: Toolset | None = None
    reasoning: Literal["auto", "open", "off"] = "auto"
    repair: Literal["off", "safe", "lenient"] = "safe"
    choice: str | None = None
    limits: Limits | None = None


def read(chunks: Iterable[str], setting: Setting, *, live: bool = False, hold: bool = False) -> Read:
    parser = Parser(
        setting.format,
        tools=setting.tools,
        reasoning=setting.reasoning,
        repair=setting.repair,
        choice=setting.choice,
        ids=Ids.numbered("c"),
        spans=True,
        live=live,
        hold=hold,
        limits=setting.limits,
    )
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return Read(events + parser.close(), parser.reply)


def at_once(text: str, setting: Setting) -> Reply:
    return parse(
        text,
        format=setting.format,
        tools=setting.tools,
        reasoning=setting.reasoning,
        repair=setting.repair,
        choice=setting.choice,
        ids=Ids.numbered("c"),
        spans=True,
        limits=setting.limits,
    )


# -- cuts --------------------------------------------------------------------------------------------------------------


def cuts(text: str, format: str | Format, *, seed: int = 0) -> Iterator[list[str]]:
    """One delta, one character at a time, at random places, every marker in half."""
    yield [text]
    yield list(text)
    yield _at(text, _random_places(text, seed))
    yield _at(text, _inside_markers(text, find(format)))


def _random_places(text: str, seed: int) -> list[int]:
    chance = random.Random(f"{seed}{len(text)}")
    return sorted(chance.sample(range(len(text) + 1), min(len(text), chance.randint(1, 12))))


def _inside_markers(text: str, format: Format) -> list[int]:
    found = _any_marker(tuple(markers(format))).finditer(text)
    return [match.start() + len(match.group()) // 2 for match in found]


@cache
def _any_marker(texts: tuple[str, ...]) -> re.Pattern[str]:
    literals = sorted((text for text in texts if len(text) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, literals)) or "(?!)")


def _at(text: str, places: Sequence[int]) -> list[str]:
    edges = [0, *places, len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


def markers(format: Format) -> list[str]:
    """The literal pieces of all that a format is made of, in a fixed order."""
    fields = [format.section, format.call, format.between, format.reasoning, format.content, format.ends]
    bodies = [msgspec.structs.asdict(body) for body in format.bodies]
    channels = msgspec.structs.asdict(format.channels) if format.channels else {}
    protocol = [*format.protocol.done, "<<EOF", "EOF", "({", "})", "//", "/*", "*/"] if format.protocol else []
    found = {piece.strip() for text in _strings([*fields, *bodies, channels, protocol]) for piece in _HOLE.split(text)}
    return sorted(found - {"", "string", "json", "raw", "content", "reasoning", "call", "first", "last"})


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings([*value.keys(), *value.values()])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)


# -- what must hold ----------------------------------------------------------------------------------------------------


def hold_of_every_cut(text: str, setting: Setting, *, seed: int = 0) -> Reply:
    """Laws 1 and 4 for this text; gives the reply."""
    whole = read([text], setting)
    assert at_once(text, setting) == whole.reply, "another reply when the end of the text is known from the start"
    for live in (False, True):
        first = read([text], setting, live=live)
        # What has been given out is final: live, a repair that would change it is not made.
        if not any(call.repairs for call in whole.reply.attempts):
            assert first.reply == whole.reply, "another reply when live"
        for chunks in cuts(text, setting.format, seed=seed):
            again = read(chunks, setting, live=live)
            assert again.reply == first.reply, _difference("reply", chunks, live)
            assert told(again, setting) == told(first, setting), _difference("events", chunks, live)
            _events_agree(again)
    nothing_lost(text, whole.reply)
    return whole.reply


def _difference(what: str, chunks: list[str], live: bool) -> str:
    return f"another {what} when {'live and ' if live else ''}cut so: {chunks!r}"


def _events_agree(got: Read) -> None:
    assert fold(got.events, got.reply.format, got.reply.spans) == got.reply
    given: dict[int, list[str]] = {}
    started: list[CallStart] = []
    ended: dict[int, Call] = {}
    for event in got.events:
        if isinstance(event, CallStart):
            started.append(event)
        elif isinstance(event, Arguments):
            assert event.index not in ended, "arguments behind the end of their call"
            given.setdefault(event.index, []).append(event.json)
        elif isinstance(event, CallEnd):
            ended[event.index] = event.call
    assert [start.index for start in started] == list(range(len(started))) == list(ended)
    assert [(start.id, start.name) for start in started] == [(call.id, call.name) for call in ended.values()]
    for index, call in ended.items():
        pieces = "".join(given.get(index, []))
        if call.complete:
            assert pieces == call.json
        else:
            assert call.arguments == {}
            assert call.json.startswith(pieces), "what was given out is not what was kept"
    blocked = {problem.call for problem in got.reply.problems if problem.blocking}
    for index, call in enumerate(got.reply.attempts):
        if call.complete and index not in blocked:
            assert json.loads(call.json) == call.arguments
        elif not call.complete:
            assert index in blocked, "a call that was cut off may run"


def told(got: Read, setting: Setting) -> list[Event]:
    """The joined events. How much of a call went out before it was found too large is up to the cut."""
    lost = {index for index, call in enumerate(got.reply.attempts) if not call.complete} if setting.limits else set()
    return joined([event for event in got.events if not (isinstance(event, Arguments) and event.index in lost)])


def joined(events: Iterable[Event]) -> list[Event]:
    """Events with neighbours of a kind made one."""
    out: list[Event] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, Text) and isinstance(last, Text) and last.tag == event.tag:
            out[-1] = Text(last.text + event.text, event.tag)
        elif isinstance(event, Reasoning) and isinstance(last, Reasoning):
            out[-1] = Reasoning(last.text + event.text)
        elif isinstance(event, Arguments) and isinstance(last, Arguments) and last.index == event.index:
            out[-1] = Arguments(event.index, last.json + event.json)
        else:
            out.append(event)
    return out


def fold(events: Iterable[Event], format: str, spans: tuple[Span, ...] | None) -> Reply:
    """The reply, from its events alone."""
    parts: list[Part] = []
    problems: list[Problem] = []
    done: str | None = None
    for event in joined(events):
        if isinstance(event, (Text, Reasoning)):
            parts.append(event)
        elif isinstance(event, CallEnd):
            parts.append(event.call)
        elif isinstance(event, Problem):
            problems.append(event)
        elif isinstance(event, Recast):
            parts = _recast(parts, event)
        elif isinstance(event, Done):
            done = event.text
    return Reply(tuple(_merged(parts)), tuple(problems), format, done, spans)


def _recast(parts: list[Part], event: Recast) -> list[Part]:
    """The last characters of text turn into reasoning, or go: a call that follows was made of them."""
    chars, out = event.chars, list[Part]()
    for part in reversed(parts):
        if isinstance(part, Text) and chars:
            taken = min(chars, len(part.text))
            chars -= taken
            if event.kind == "reasoning":
                out.append(Reasoning(part.text[len(part.text) - taken :]))
            if taken < len(part.text):
                out.append(Text(part.text[: len(part.text) - taken], part.tag))
        else:
            out.append(part)
    assert not chars, "more text recast than was given"
    return out[::-1]


def _merged(parts: list[Part]) -> list[Part]:
    """A problem between two pieces of text does not make them two parts."""
    out: list[Part] = []
    for part in parts:
        last = out[-1] if out else None
        if isinstance(part, Text) and isinstance(last, Text) and last.tag == part.tag:
            out[-1] = Text(last.text + part.text, part.tag)
        elif isinstance(part, Reasoning) and isinstance(last, Reasoning):
            out[-1] = Reasoning(last.text + part.text)
        else:
            out.append(part)
    return out


def nothing_lost(text: str, reply: Reply) -> None:
    """The spans tile the text, and what they say it became is what the reply holds."""
    spans = reply.spans
    assert spans is not None
    assert "".join([text[span.start : span.end] for span in spans]) == text
    assert all(a.start < a.end == b.start for a, b in pairwise(spans))
    became = {kind: _text_of(text, spans, kind) for kind in ("text", "reasoning", "call")}
    raws = [call.raw for call in reply.attempts]
    notes = {problem.code for problem in reply.problems}
    if "rescued" in notes:  # what stands around such calls counts as theirs
        assert re.search(".*".join(map(re.escape, raws)), became["call"], re.S)
    elif "call_in_reasoning" not in notes:  # such a call stays in the reasoning as well
        assert became["call"] == "".join(raws)
    assert _solid(became["reasoning"]) == _solid(reply.reasoning)
    if reply.format != "generic_json":  # its text stands in a JSON string
        assert _solid(became["text"]) == _solid(reply.content)


def _text_of(text: str, spans: tuple[Span, ...], kind: str) -> str:
    return "".join([text[span.start : span.end] for span in spans if span.kind == kind])


def _solid(text: str) -> str:
    return "".join(text.split())
