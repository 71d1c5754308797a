"""The laws that every format must keep, as plain functions: each gives the violations it found and never raises.

    check_format(Format.from_toml(text))  # [] when the format keeps them all

- cut: what is read does not depend on how the text arrives, and the spans tile the text;
- round trip: what was rendered reads back equal;
- truncation: no beginning of a text holds a complete call that the whole text does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Literal, NamedTuple

import msgspec

from rightcall.declare.toolset import Toolset
from rightcall.errors import CannotCarry
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.laws.samples import TOOLS, Sample, markers_of, samples, texts
from rightcall.types import Arguments, Call, Event, Part, Reply
from rightcall.wire.parser import Parser, parse
from rightcall.wire.render import render, same

_ENOUGH = 20  # violations; more say nothing new
_PREFIXES = 48


class Violation(msgspec.Struct, frozen=True):
    """One law that one input breaks. `input` is the text that was parsed, or the parts that were rendered."""

    law: Literal["cut", "round trip", "truncation", "never raises"]
    what: str
    input: str


def check_format(format: Format, *, seed: int = 0, samples: int = 60) -> list[Violation]:
    """The laws on one format, over so many samples made from the seed; at most about twenty violations."""
    found: list[Violation] = []
    for violations in _checks(format, seed, samples):
        found += violations
        if len(found) >= _ENOUGH:
            break
    return found


def _checks(format: Format, seed: int, count: int) -> Iterator[list[Violation]]:
    rendered: list[str] = []
    for sample in samples(format, seed, count):
        violations, text = _round_trip(format, sample, TOOLS)
        yield violations
        if text is not None:
            rendered.append(text)
            yield cut_law(format, text, tools=TOOLS, seed=seed)
            yield truncation_law(format, text, tools=TOOLS, seed=seed)
    for text in texts(format, rendered, seed, count):
        yield cut_law(format, text, tools=TOOLS, seed=seed)


# -- the cut law -------------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What one way of cutting gave: the reply, and the joined pieces of argument JSON of every complete call.

    How much of a call that never became one was passed on before that was known depends on how it arrived.
    """

    reply: Reply
    joined: dict[int, str]


def read(format: Format, chunks: Sequence[str], *, tools: Toolset | None, live: bool = False) -> Outcome:
    """The text fed in these chunks, with ids that are the same on every run."""
    parser = Parser(format, tools=tools, ids=Ids.numbered("c"), spans=True, live=live)
    events: list[Event] = []
    for chunk in chunks:
        events += parser.feed(chunk)
    events += parser.close()
    joined: dict[int, str] = {}
    for event in events:
        if isinstance(event, Arguments):
            joined[event.index] = joined.get(event.index, "") + event.json
    reply = parser.reply
    return Outcome(reply, {i: joined.get(i, "") for i, call in enumerate(reply.attempts) if call.complete})


def cuttings(format: Format, text: str, seed: int = 0) -> dict[str, list[str]]:
    """The ways in which a text is cut, by name."""
    dice = Random(f"{seed} {len(text)} cuts")
    random = sorted(dice.sample(range(1, len(text)), min(len(text) // 5 + 1, len(text) - 1))) if len(text) > 1 else []
    return {
        "one character at a time": list(text),
        "three characters at a time": [text[i : i + 3] for i in range(0, len(text), 3)],
        "at random": _cut_at(text, random),
        "with every marker split in half": _cut_at(text, _middles(format, text)),
    }


def _cut_at(text: str, places: list[int]) -> list[str]:
    return [text[a:b] for a, b in pairwise([0, *places, len(text)])]


def _middles(format: Format, text: str) -> list[int]:
    places = set()
    for marker in markers_of(format):
        at = text.find(marker)
        while at >= 0:
            places.add(at + len(marker) // 2)
            at = text.find(marker, at + 1)
    return sorted(places - {0})


def cut_law(format: Format, text: str, *, tools: Toolset | None = None, seed: int = 0) -> list[Violation]:
    """The reply and the joined arguments are the same however the text is cut, and nothing of it is lost."""
    try:
        for live in (False, True):
            whole = read(format, [text], tools=tools, live=live)
            what = _lost(whole, text) or ("" if live else _at_once(format, text, tools, whole))
            if what:
                return [Violation("cut", what, text)]
            for how, chunks in cuttings(format, text, seed).items():
                what = _difference(whole, read(format, chunks, tools=tools, live=live))
                if what:
                    return [Violation("cut", f"cut {how}{', live' if live else ''}: {what}", text)]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a violation
        return [_raised(error, text)]
    return []


def _at_once(format: Format, text: str, tools: Toolset | None, whole: Outcome) -> str:
    """What is different where the end of the text is known from the start, if anything."""
    reply = parse(text, format=format, tools=tools, ids=Ids.numbered("c"), spans=True)
    what = _difference(whole, Outcome(reply, whole.joined))
    return f"read at once: {what}" if what else ""


def _lost(whole: Outcome, text: str) -> str:
    """What the reply lost of the text, if anything."""
    spans = whole.reply.spans or ()
    edges = [0, *(span.end for span in spans)]
    if [span.start for span in spans] != edges[:-1] or edges[-1] != len(text):
        return "the spans do not tile the text"
    for i, call in enumerate(whole.reply.attempts):
        if call.raw not in text:
            return f"the raw text of call {i} is not in the text"
        if call.complete and whole.joined[i] != call.json:
            return f"the joined arguments of call {i} are {whole.joined[i]!r}, not {call.json!r}"
    return ""


def _difference(whole: Outcome, cut: Outcome) -> str:
    if whole.reply != cut.reply:
        for field in ("parts", "problems", "spans"):
            a, b = getattr(whole.reply, field), getattr(cut.reply, field)
            if a != b:
                return f"the {field} are {b!r}, not {a!r}"
    if whole.joined != cut.joined:
        return f"the joined arguments are {cut.joined!r}, not {whole.joined!r}"
    return ""


def _raised(error: Exception, input: str) -> Violation:
    return Violation("never raises", f"{type(error).__name__}: {error}", input)


# -- the round-trip law ------------------------------------------------------------------------------------------------


def round_trip_law(format: Format, parts: Sequence[Part], *, tools: Toolset | None = None) -> list[Violation]:
    """What is rendered reads back equal. That a format says `CannotCarry` is no violation."""
    return _round_trip(format, Sample(tuple(parts)), tools)[0]


def _round_trip(format: Format, sample: Sample, tools: Toolset | None) -> tuple[list[Violation], str | None]:
    """The violations, and the rendered text if there is one."""
    try:
        text = render(sample.parts, format=format, tools=tools)
    except CannotCarry as error:
        said = f"it cannot carry what every format must: {error.path}: {error.cause}"
        return ([Violation("round trip", said, repr(sample.parts))] if sample.plain else []), None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a violation
        return [_raised(error, repr(sample.parts))], None
    try:
        what = _changed(sample.parts, read(format, [text], tools=tools).reply)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a violation
        return [_raised(error, text)], text
    return ([Violation("round trip", what, text)] if what else []), text


def _changed(sent: Sequence[Part], reply: Reply) -> str:
    """How the reply differs from what was sent, white space at the edge of a text aside."""
    if len(sent) != len(reply.parts):
        return f"{len(sent)} parts were rendered and {len(reply.parts)} read back"
    for i, (a, b) in enumerate(zip(sent, reply.parts, strict=True)):
        if type(a) is not type(b):
            return f"part {i} was a {type(a).__name__} and reads back as a {type(b).__name__}"
        if isinstance(a, Call) and isinstance(b, Call):
            path = same(a.arguments, b.arguments)
            if a.name != b.name or path is not None or not b.complete:
                return f"call {a.name!r} at part {i} reads back changed at {path or 'its name or end'}"
        elif a.text.strip() != b.text.strip():  # type: ignore[union-attr]
            return f"the text of part {i} reads back changed"
    blocking = [problem.code for problem in reply.problems if problem.blocking]
    return f"it reads back with problems: {', '.join(blocking)}" if blocking else ""


# -- the truncation law ------------------------------------------------------------------------------------------------


def truncation_law(format: Format, text: str, *, tools: Toolset | None = None, seed: int = 0) -> list[Violation]:
    """No beginning of the text yields a complete call that the whole text does not have in that place."""
    try:
        whole = read(format, [text], tools=tools).reply.attempts
        for end in _ends(text, seed):
            for i, call in enumerate(read(format, [text[:end]], tools=tools).reply.attempts):
                if call.complete and not (i < len(whole) and _equal(call, whole[i])):
                    return [Violation("truncation", f"call {i} of the text cut off here is complete", text[:end])]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a violation
        return [_raised(error, text)]
    return []


def _ends(text: str, seed: int) -> list[int]:
    if len(text) <= _PREFIXES:
        return list(range(len(text)))
    return sorted(Random(f"{seed} {len(text)} ends").sample(range(len(text)), _PREFIXES))


def _equal(cut: Call, whole: Call) -> bool:
    return whole.complete and cut.name == whole.name and same(cut.arguments, whole.arguments) is None
