"""Hostile texts and what must hold of every one of them, shared by `test_hostile.py` and `fuzz/run.py`.

A hostile text is a *stress* (100,000 brackets, half a marker again and again, ...) put at a *place* of a reply that is
otherwise well written: in its text, in a string argument, in a key, where a name should stand, ... The places are found
by rendering a reply with words nobody uses and cutting it there, so that a new format is covered without a line here.
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator

from rightcall import (
    Arguments,
    Call,
    CallEnd,
    CallStart,
    CannotCarry,
    Ids,
    Parser,
    Reasoning,
    Recast,
    Reply,
    Text,
    Tool,
    Toolset,
    render,
)
from rightcall.formats import FORMATS
from rightcall.formats.spec import Braced, Envelope, Format, NameThenJson, Params, alternatives
from rightcall.wire.options import Limits

TOOLS = Toolset(
    [
        Tool(
            name="write",
            parameters={
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "count": {"type": "integer"},
                    "rows": {"type": "array"},
                    "more": {"type": "object"},
                    "note": {"type": ["string", "null"]},
                },
            },
        ),
        Tool(name="ping", parameters={"type": "object", "properties": {}}),
    ]
)

Result = tuple[Reply, list[object]]

# -- the laws ----------------------------------------------------------------------------------------------------------


class Broken(Exception):
    """A law does not hold: which, and how."""

    def __init__(self, law: str, detail: str) -> None:
        super().__init__(f"{law}: {detail}")
        self.law = law


def read(
    text: str,
    format: str,
    cuts: Iterable[int] = (),
    *,
    live: bool = False,
    hold: bool = False,
    tools: Toolset | None = TOOLS,
    limits: Limits | None = None,
    reasoning: str = "auto",
    repair: str = "off",
    look: bool = False,
) -> Result:
    """The reply, and every event, of a text cut at these places; `look` looks at the reply after each piece."""
    parser = Parser(
        format,
        tools=tools,
        ids=Ids.numbered("call"),
        spans=True,
        live=live,
        hold=hold,
        limits=limits,
        reasoning=reasoning,  # type: ignore[arg-type]
        repair=repair,  # type: ignore[arg-type]
    )
    events: list[object] = []
    last = 0
    for cut in [*cuts, len(text)]:
        events += parser.feed(text[last:cut])
        last = cut
        if look:
            _ = parser.reply
    events += parser.close()
    return parser.reply, events


def every(step: int, text: str) -> range:
    return range(step, len(text), step)


def stream(text: str, format: str, step: int, *, live: bool = True) -> None:
    """Only the cost of reading: nothing is kept."""
    parser = Parser(format, tools=TOOLS, live=live)
    for start in range(0, len(text), step):
        parser.feed(text[start : start + step])
    parser.close()


def check_laws(
    text: str,
    format: str,
    cuts: list[list[int]],
    *,
    tools: Toolset | None = TOOLS,
    limits: Limits | None = None,
    reasoning: str = "auto",
    repair: str = "off",
) -> None:
    """Raises `Broken` where this text breaks a law: whatever the cuts, one reply, and nothing of the text lost."""
    for live in (False, True):
        read_with = functools.partial(
            read, text, format, tools=tools, limits=limits, reasoning=reasoning, repair=repair, live=live
        )
        whole, events = read_with()
        check_nothing_lost(text, format, whole)
        check_events(whole, events)
        if limits is not None and len(whole.attempts) > limits.calls:
            raise Broken("limits", f"{len(whole.attempts)} calls, {limits.calls} are allowed")
        check_cuts(read_with, cuts, whole, join(events))
        if not live:
            at_rest = whole
        elif repair == "off" and whole != at_rest:
            # With repair they may differ: what was given out live is not changed any more.
            raise Broken("live", difference(at_rest, whole))


def check_cuts(read_with: Callable[..., Result], cuts: list[list[int]], whole: Reply, joined: list[object]) -> None:
    for at in cuts:
        for how in _WAYS:
            got, events = read_with(at, **how)
            said = f"cuts={at if len(at) < 20 else f'[{at[0]}, {at[1]}, ...]'} {how}"
            if got != whole:
                raise Broken("look" if "look" in how else "cut", f"{said}: {difference(whole, got)}")
            check_events(got, events)
            if "hold" not in how and join(events) != joined:
                raise Broken("cut (events)", f"{said}: {join(events)} is not {joined}")
            if "hold" in how and any(type(event) is Recast for event in events):
                raise Broken("hold", f"{said}: a Recast was given out")


_WAYS: list[dict[str, bool]] = [{}, {"hold": True}, {"look": True}]


def difference(want: Reply, got: Reply) -> str:
    for name in ("parts", "problems", "spans", "format", "done"):
        a, b = getattr(want, name), getattr(got, name)
        if a != b:
            return f"{name} are {b!r}, whole they are {a!r}"
    return "equal"


def join(events: list[object]) -> list[object]:
    """The events with neighbouring pieces of the same thing put together, and pieces of arguments."""
    out: list[object] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, Text) and isinstance(last, Text) and last.tag == event.tag:
            out[-1] = Text(last.text + event.text, event.tag)
        elif isinstance(event, Reasoning) and isinstance(last, Reasoning):
            out[-1] = Reasoning(last.text + event.text)
        elif not isinstance(event, Arguments):
            out.append(event)
    return out


def check_events(reply: Reply, events: list[object]) -> None:
    """Calls begin and end in order; the pieces of a complete call's arguments are its JSON, and say what it holds."""
    pieces: dict[int, list[str]] = {}
    started: dict[int, CallStart] = {}
    for event in events:
        if isinstance(event, CallStart):
            if event.index != len(started):
                raise Broken("events", f"call {event.index} begins after {len(started)} calls")
            started[event.index] = event
            pieces[event.index] = []
        elif isinstance(event, Arguments):
            pieces[event.index].append(event.json)
        elif isinstance(event, CallEnd):
            check_call(started[event.index], event.call, "".join(pieces[event.index]))
    if len(started) != len(reply.attempts):
        raise Broken("events", f"{len(started)} calls began, {len(reply.attempts)} ended")


def check_call(start: CallStart, call: Call, arguments: str) -> None:
    if (start.name, start.id) != (call.name, call.id):
        raise Broken("events", f"{start!r} is not {call!r}")
    if not call.complete:
        if call.arguments:
            raise Broken("events", f"an incomplete call has arguments: {call!r}")
        return
    if arguments != call.json:
        raise Broken("events", f"the arguments given out are {arguments!r}, the call's are {call.json!r}")
    value = json.loads(arguments)
    if isinstance(value, dict) and value != call.arguments:
        raise Broken("events", f"{arguments!r} is not {call.arguments!r}")


def check_nothing_lost(text: str, format: str, reply: Reply) -> None:
    """The spans tile the text, and what lies under them is what the parts hold; under a marker there is no text."""
    spans = reply.spans
    assert spans is not None
    at = 0
    for span in spans:
        if span.start != at or span.end <= at:
            raise Broken("nothing lost", f"the spans do not tile the text at {at}: {spans!r}")
        at = span.end
    if at != len(text):
        raise Broken("nothing lost", f"the spans cover {at} of {len(text)} characters")
    under = {kind: "".join(text[s.start : s.end] for s in spans if s.kind == kind) for kind in _KINDS}
    held = {
        "text": "".join(part.text for part in reply.parts if isinstance(part, Text)),
        "reasoning": "".join(part.text for part in reply.parts if isinstance(part, Reasoning)),
        "call": "".join(call.raw for i, call in enumerate(reply.attempts) if i not in _found_elsewhere(reply)),
    }
    for i in _found_elsewhere(reply):
        if reply.attempts[i].raw not in text:
            raise Broken("nothing lost", f"{reply.attempts[i].raw!r} is not what was written")
    if _says_text_in_json(reply.format):
        held["text"] = under["text"]
    for kind, want in held.items():
        # Where a marker between two pieces was dropped, a line break stands for it.
        if under[kind].replace("\n", "") != want.replace("\n", ""):
            raise Broken("nothing lost", f"the spans of {kind} hold {under[kind]!r}, the parts {want!r}")
    for span in spans:
        if span.kind == "marker":
            shown = text[span.start : span.end]
            rest = residue(_ENDS.sub("", shown) if format == "auto" else shown, reply.format or format)
            if rest:
                raise Broken("nothing lost", f"{rest!r} went under in a marker: {text[span.start : span.end]!r}")


_KINDS = ("text", "reasoning", "call", "marker")


def _found_elsewhere(reply: Reply) -> set[int]:
    """Calls that were found in reasoning, which stays as it was."""
    return {p.call for p in reply.problems if p.code == "call_in_reasoning" and p.call is not None}


def _says_text_in_json(format: str) -> bool:
    found = FORMATS.get(format)
    return found is not None and any(isinstance(body, Envelope) and body.content for body in found.bodies)


def residue(marker: str, format: str) -> str:
    """What is left of a marker's text without the markers of this format, white space and the brackets of a list."""
    if format not in FORMATS or FORMATS[format].channels or _says_text_in_json(format):
        return ""  # a header, or JSON around the calls, may say anything
    if (protocol := FORMATS[format].protocol) is not None:  # a whole block that says done is a marker
        marker = re.sub(".*?".join(map(re.escape, protocol.done)), "", marker, flags=re.S)
    # A code fence around the calls of a block goes with its markers.
    return re.sub(r"```[A-Za-z_]{0,16}|[\s\[\],;}{)]", "", _all_markers(format).sub("", marker))


# Where the format is not known, every format's end-of-turn tokens are dropped.
_ENDS = re.compile("|".join(sorted({re.escape(end) for f in FORMATS.values() for end in f.ends}, reverse=True)))


@functools.cache
def _all_markers(format: str) -> re.Pattern[str]:
    found = sorted({m.strip() for m in templates(FORMATS[format])} - {""}, key=len, reverse=True)
    return re.compile("|".join(_loose(marker) for marker in found) or "(?!)")


def _loose(marker: str) -> str:
    pieces = re.split(r"(\{(?:name|key|type|id|index|number)\}|\s+)", marker)
    return "".join(
        "" if not p else r"\s*" if p.isspace() else ".{1,256}?" if i % 2 else re.escape(p) for i, p in enumerate(pieces)
    )


# -- markers of a format, as data --------------------------------------------------------------------------------------


def templates(format: Format) -> Iterator[str]:
    """Every marker of a format, with its holes."""
    pairs = [format.section, format.call, format.reasoning, *format.content]
    for pair in pairs:
        for marker in pair or ():
            yield from alternatives(marker)
    yield from format.ends
    yield format.between
    for body in format.bodies:
        if isinstance(body, Params):
            for marker in (body.open, body.param, body.value_close, body.close, body.empty):
                yield from alternatives(marker)
            yield from body.quote or ()
        elif isinstance(body, NameThenJson):
            yield from alternatives(body.open)
            yield from alternatives(body.close)
        elif isinstance(body, Braced):
            yield from alternatives(body.open)
            yield body.quote
    if format.protocol is not None:
        # So is the fence around a call outside all blocks.
        yield from (*format.protocol.done, "```{name}\n", "```", "~~~{name}\n", "~~~")
    if format.channels is not None:
        yield from alternatives(format.channels.start)
        yield from (format.channels.message, format.channels.to, format.channels.channel, *format.channels.ends)
        for opens, closes in format.channels.messages.values():
            yield from (opens, closes)


_FILL = {"name": "write", "key": "text", "type": "string", "id": "call_0", "index": "0", "number": "1"}


@functools.cache
def markers(format: str) -> tuple[str, ...]:
    """Every marker of a format, as a model would write it."""
    fill = re.compile(r"\{(name|key|type|id|index|number)\}")
    found = {fill.sub(lambda hole: _FILL[hole.group(1)], text) for text in templates(FORMATS[format])}
    return tuple(sorted(found - {""}))


# -- places ------------------------------------------------------------------------------------------------------------

_TEXT, _THOUGHT, _NAME, _KEY, _STRING = "zqtextqz", "zqthoughtqz", "zqnameqz", "zqkeyqz", "zqstringqz"
_COUNT = 918273645
_NESTED = {"a": [True, "b", {"c": _COUNT, "d": ["e", 1.5]}], "f": {"g": False}}


def _written(format: str, parts: list[Text | Reasoning | Call]) -> str | None:
    try:
        return render(parts, format=format)
    except CannotCarry:
        return None


@functools.cache
def places(format: str) -> dict[str, tuple[str, str]]:
    """Where a stress can stand: what is before it and what is behind it."""
    call = Call("write", {"text": _STRING, "count": 3}, "")
    wanted: dict[str, tuple[list[Text | Reasoning | Call], str]] = {
        "a string": ([call], _STRING),
        "a number": ([Call("write", {"count": _COUNT, "text": "a"}, "")], str(_COUNT)),
        "a list": ([Call("write", {"rows": [1, _COUNT]}, "")], str(_COUNT)),
        "a nested value": ([Call("write", {"more": _NESTED}, "")], str(_COUNT)),
        "a key": ([Call("write", {_KEY: 1, "text": "a"}, "")], _KEY),
        "a name": ([Call(_NAME, {"text": "a"}, "")], _NAME),
        "text": ([Text(_TEXT)], _TEXT),
        "text before a call": ([Text(_TEXT), call], _TEXT),
        "text after a call": ([call, Text(_TEXT)], _TEXT),
        "reasoning": ([Reasoning(_THOUGHT), Text("a")], _THOUGHT),
    }
    found = {"all": ("", "")}
    for place, (parts, word) in wanted.items():
        text = _written(format, parts)
        if text is not None and word in text:
            before, _, after = text.partition(word)
            found[place] = (before, after)
    found |= {f"{place}, cut": (before, "") for place, (before, _) in found.items() if place != "all"}
    return found


# -- stresses ----------------------------------------------------------------------------------------------------------


def times(unit: str, size: int) -> str:
    """This again and again, about so many characters of it."""
    return unit * max(1, size // len(unit))


PLAIN: dict[str, Callable[[int], str]] = {
    **{
        f"only {unit!r}": functools.partial(times, unit)
        for unit in (
            *"<>[]{}()\"'`|,:;=/\\ \n\t\r\0#-.1_a",
            "[{",
            '{"',
            '{"a":',
            '{"a":[',
            "[]",
            "{}",
            "()",
            "a(",
            "a=",
            "f(a=1),",
            ', "a": 1',
            '"a",',
            "'a',",
            "1,",
            "1 ",
            "-1e",
            "1.",
            '""',
            "''",
            '"""',
            "'''",
            "```",
            "```json\n",
            "\r\n",
            " \n",
            " a",
            "a\n",
            "a b c. ",
            '\\"',
            "\\'",
            "\\\\",
            "\\n",
            "\\u",
            "\\ud83d",
            "\\ud83d\\ude00",
            "\\u00e9",
            "\\x4",
            "\\U0001f60",
            "\\0",
            "\ud800",
            "\udc00",
            "\ud83d\ude00",
            "é",
            "\N{GRINNING FACE}",
            "\u2028",
            "<|",
            "|>",
            "</",
            "<a>",
            "</a>",
            "<!--",
            "]]>",
            "true",
            "None,",
            "NaN",
            '{"name": "write", ',
            '{"name": "write", "arguments": {}}',
            '{"arguments": {"text": "a"}, "name": "write"}',
            "{'name': 'write'}",
        )
    },
    "an open string": lambda size: '"' + "a" * size,
    "an open string of escapes": lambda size: '"' + times("\\n", size),
    "a long number": lambda size: "1" * size,
    "a long fraction": lambda size: "0." + "1" * size,
    "a deep list": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "a deep object": lambda size: times('{"a":', size * 5 // 6) + "1" + "}" * (size // 6),
    "a long list": lambda size: "[" + times("1, ", size) + "1]",
    "a list of strings": lambda size: "[" + times('"a", ', size) + '""]',
    "a list of objects": lambda size: "[" + times('{"a": 1}, ', size) + "{}]",
    "a wide object": lambda size: "{" + "".join(f'"k{i}": {i}, ' for i in range(size // 12)) + '"z": 0}',
    "many keywords": lambda size: "".join(f"k{i}={i}, " for i in range(size // 9)),
}


@functools.cache
def marked(format: str) -> dict[str, Callable[[int], str]]:
    """Stresses made of a format's own markers."""
    found: dict[str, Callable[[int], str]] = {}
    for marker in markers(format):
        core = marker.strip() or marker
        for unit in (
            marker,
            core[:-1] or core,
            core[: len(core) // 2] or core,
            core[:-1] + "\n" + core[-1:],
            core + " ",
            core + "a",
            core + "\n" * 130,
            core + "{",
            core + '{"',
        ):
            found[f"only {unit!r}"] = functools.partial(times, unit)
    for place, (before, after) in places(format).items():
        whole = before + "a" + after
        found[f"many times {place}"] = functools.partial(times, whole)
        found[f"many times {place}, on lines"] = functools.partial(times, whole + "\n")
    return found


def stresses(format: str) -> dict[str, Callable[[int], str]]:
    return {**PLAIN, **marked(format)}


def hostile(format: str, place: str, stress: str, size: int) -> str:
    before, after = places(format)[place]
    return before + stresses(format)[stress](size) + after


# -- cost --------------------------------------------------------------------------------------------------------------


def cost(run: Callable[[], object]) -> float:
    """CPU seconds."""
    start = time.process_time()
    run()
    return time.process_time() - start


def growth(
    make: Callable[[int], Callable[[], object]], size: int, *, enough: float, most: float, tries: int = 4
) -> float:
    """How many times as much four times the size costs (4: linear, 16: quadratic).

    The least of several tries, and 1 where even the larger costs less than `enough` seconds.
    """
    best = float("inf")
    for _ in range(tries):
        large = cost(make(4 * size))
        if large < enough:
            return 1.0
        best = min(best, large / max(cost(make(size)), 1e-6))
        if best <= most:
            break
    return best
