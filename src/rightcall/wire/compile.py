"""A `Format` turned into what the engine runs on: a search for the next marker in each state, a reader for each body.

Compiled once per format and kept; a compiled format is immutable and shared.
"""

from __future__ import annotations

import re
from typing import Protocol as Shape

import msgspec

from rightcall.formats.spec import (
    Body,
    Braced,
    Envelope,
    Format,
    NameThenJson,
    Pair,
    Params,
    Protocol,
    Pythonic,
    TsCall,
    alternatives,
)
from rightcall.wire.bodies.envelope import EnvelopeReader
from rightcall.wire.bodies.name_then_json import NameThenJsonReader
from rightcall.wire.engine import Engine
from rightcall.wire.markers import (
    END,
    NAME,
    RUN,
    Pat,
    Probe,
    Scan,
    alt,
    blanks,
    literal,
    look,
    ordered,
    seq,
    template,
    templates,
)
from rightcall.wire.prose import Steps

Entries = list[tuple[str, Pat]]


class Reader(Shape):
    """Reads one block of calls. `begins` tells a body from its siblings; `bare` says that no marker stood before it.

    `read` is right always; `quick`, where a reader has it, gives the same at once, or None: where not all is there, or
    anything is unusual.
    """

    begins: Probe

    def read(self, engine: Engine, *, bare: bool) -> Steps[None]: ...


class Compiled:
    """What each state of the engine looks for."""

    def __init__(self, format: Format) -> None:
        self.format = format
        self.channels = format.channels
        bare = "" in alternatives(format.call[0])
        # A code fence is how prose shows an example: it opens a call only where a reply may begin.
        fences = [pat for pat in templates(format.call[0]) if pat.head == "`"]
        self.fence = Probe(alt(*fences)) if fences else None
        inner: Entries = [("call", pat) for pat in templates(format.call[0]) if pat.head != "`"]
        # Without a marker before it, a body is found by its own opening tag, or opens only where a reply may begin.
        # The tag of a tagged body says enough even where the marker before it was left out.
        inner += [("body", pat) for body in format.bodies if bare or isinstance(body, Params) for pat in _opening(body)]
        inner += [("body", pat) for body in format.bodies for pat in _damaged(body, format)]
        self.bare = (
            "".join(_FIRST.get(type(body), "") for body in format.bodies) if bare and not format.channels else ""
        )
        clashes = [pat for _, pat in inner if pat.head and pat.head in self.bare]
        self.bare_clash = Probe(alt(*clashes)) if clashes else None
        self._states(inner)
        self.call_close = _probe(format.call[1])
        closes = templates(format.call[1])
        self.close_heads = frozenset(pat.head for pat in closes)
        self.resync = Scan(self._resync(inner))
        ends = [pat for end in format.channels.ends for pat in templates(end)] if format.channels else []
        closing = closes + self._body_closes() + ends
        # Where nothing closes an envelope, it is over with its bracket, and more of them are text.
        named_only = all(isinstance(body, NameThenJson) for body in format.bodies)
        self.extra_closers = _extra([*closing, END] if named_only else closing)
        self.turn_end = Probe(alt(*ends)) if ends else None
        self.between = self._between()
        self.first_header = self._first_header()
        after = self._after(inner)
        named = [body for body in format.bodies if isinstance(body, NameThenJson) and not body.open]
        self.named = NameThenJsonReader(named[0], []) if named and not format.channels else None
        self.readers: list[Reader] = [self._reader(body, after) for body in format.bodies]
        # The first body only: where there are several, what is not usual for the first goes the long way.
        self.quick = getattr(self.readers[0], "quick", None)

    def _reader(self, body: Body, after: list[Pat]) -> Reader:
        """What reads this body. Kinds that few formats have are imported with the first that has them."""
        closes = templates(self.format.call[1])
        if isinstance(body, Envelope):
            return EnvelopeReader(body, closes)
        if isinstance(body, NameThenJson):
            return NameThenJsonReader(body, closes)
        if isinstance(body, Params):
            from rightcall.wire.bodies.params import ParamsReader

            return ParamsReader(body, self.format, [pat for _, pat in self._turns()])
        if isinstance(body, Pythonic):
            from rightcall.wire.bodies.pythonic import PythonicReader

            return PythonicReader(closes)
        if isinstance(body, TsCall):
            from rightcall.wire.bodies.ts_call import TsCallReader

            return TsCallReader(body, closes)
        from rightcall.wire.bodies.braced import BracedReader

        return BracedReader(body, after, closes)

    def _states(self, inner: Entries) -> None:
        format, around = self.format, self._around()
        # Prose shows calls in code fences.
        fences: Entries = [("fence", literal(run)) for run in ("```", "~~~")]
        # Where calls outside their block are looked for, every line is.
        self.lines = format.protocol is not None and any(isinstance(body, TsCall) for body in format.bodies)
        fences += [("line", literal("\n"))] if self.lines else []
        late: Entries = [("late_close", pat) for pat in templates(format.call[1])]
        self.thinking = Scan(_pair_entries(format.reasoning, "", "think_close") + self._turns())
        if format.section is None:
            self.inside = self.outside = Scan(inner + around + fences)
            self.inside_due = self.outside_due = Scan(inner + around + late + fences)
            return
        closes = [("section_close", pat) for pat in templates(format.section[1])]
        follows = look(alt(*(pat for _, pat in inner + closes), END))
        opens = [("section", seq(pat, blanks(), follows)) for pat in templates(format.section[0])]
        # A call with a marker or a tag of its own is one even where the section's was left out.
        tagged = any(isinstance(body, Params) for body in format.bodies)
        opens += [entry for entry in inner if tagged or entry[0] == "call"]
        self.outside = Scan(opens + around + fences)
        self.outside_due = Scan(opens + around + late + fences)
        self.inside = Scan(inner + closes + around)
        self.inside_due = Scan(inner + closes + around + late)

    def _around(self) -> Entries:
        drops: Entries = []
        self.tags: dict[str, str] = {}  # the blocks of a protocol that hold text: what opens them, and what closes them
        for pair in self.format.content:
            drops += _pair_entries(pair, "drop", "drop")
        if self.format.protocol is not None:
            self.tags = _tags(self.format.content)
            drops = [("tag", literal(marker)) for marker in self.tags] + [self._done(self.format.protocol)]
        drops += self._turns()
        # A marker that ends other things as well says nothing about reasoning once it stands in text.
        shared = {pat.whole for _, pat in drops}
        thinks = _pair_entries(self.format.reasoning, "think", "think_close")
        return [entry for entry in thinks if entry[1].whole not in shared] + drops

    def _done(self, protocol: Protocol) -> tuple[str, Pat]:
        opens, closes = (marker.strip() for marker in protocol.done)
        return _done(opens, closes, [*self.tags, *ordered(self.format.call[0])])

    def _turns(self) -> Entries:
        """End-of-turn tokens, and what begins a channel's header."""
        ends = [("end", template(end)) for end in self.format.ends]
        if self.channels is None:
            return ends
        ends += [("end", template(end)) for end in self.channels.ends]
        starts = list(alternatives(self.channels.start))
        if self.channels.to:
            starts += [self.channels.channel] if self.channels.channel else []
            return ends + [("header", look(template(start))) for start in starts]
        # The header is the recipient itself: only a whole one tells a header from text.
        name = seq(NAME, literal(self.channels.message))
        return ends + [("header", look(seq(template(start), name))) for start in starts]

    def _after(self, inner: Entries) -> list[Pat]:
        """What may follow the end of a body: the call's close, or where there is none whatever else is structure."""
        closes = templates(self.format.call[1])
        if self.format.section:
            closes += templates(self.format.section[1])
        return closes + [pat for _, pat in inner] + [pat for _, pat in self._turns()]

    def _resync(self, inner: Entries) -> Entries:
        """Where a broken call is over: at its close, at its body's, or at what can only stand behind it."""
        closes = [("close", pat) for pat in templates(self.format.call[1])]
        if self.channels is not None:
            closes += [("close", pat) for _, pat in self._turns()]
        closes += [("body_close", pat) for pat in self._body_closes()]
        if self.format.section:
            closes += [("stop", pat) for pat in templates(self.format.section[1])]
        self.closes = any(action != "stop" for action, _ in closes)
        return closes + [("stop", pat) for _, pat in inner + self._turns()]

    def _body_closes(self) -> list[Pat]:
        return [pat for body in self.format.bodies for pat in templates(getattr(body, "close", ""))]

    def _between(self) -> Probe | None:
        between = self.format.between.strip()
        if not self.bare or not between:
            return None
        opener = alt(*(literal(char) for char in self.bare), *templates(self.format.call[0]))
        return Probe(seq(template(between), blanks(), look(opener)))

    def _first_header(self) -> Probe | None:
        """How the reply's first header begins, which has no `start` because the prompt ended with it."""
        if self.channels is None:
            return None
        if self.channels.to:
            return Probe(look(template(self.channels.to)))
        return Probe(look(seq(NAME, literal(self.channels.message))))


_FIRST = {Envelope: "[{", Pythonic: "["}


def _opening(body: Body) -> list[Pat]:
    """The tags by which a body is found in text. A bare name is none."""
    if isinstance(body, (Params, NameThenJson, Braced)):
        empty = body.empty if isinstance(body, Params) else ""
        return [pat for pat in templates(body.open) + templates(empty) if pat.head]
    return []


def _damaged(body: Body, format: Format) -> list[Pat]:
    """The tags of a tagged body with a character missing, where what follows leaves no doubt."""
    if not isinstance(body, Params):
        return []
    from rightcall.wire.bodies.tags import Tags

    return Tags(body, format, []).damaged_openers


def _tags(content: tuple[Pair, ...]) -> dict[str, str]:
    found = {}
    for opens, closes in content:
        found[str(opens).strip()] = str(opens).strip("<> \t\r\n")
        found[str(closes).strip()] = ""
    return found


def _done(opens: str, closes: str, others: list[str]) -> tuple[str, Pat]:
    """A whole block that says the task is done: short, and without the beginning of another in it."""
    head = opens[0]
    stops = "|".join([re.escape(marker[1:]) for marker in (opens, closes, *others) if marker[0] == head])
    body = f"(?:[^{re.escape(head)}]|{re.escape(head)}(?!{stops})){{0,2000}}+"
    return "done", seq(literal(opens), Pat(body, body, sure=RUN), literal(closes))


def _pair_entries(pair: Pair | None, opens: str, closes: str) -> Entries:
    if pair is None:
        return []
    found = [(opens, pat) for pat in templates(pair[0])] if opens else []
    return found + [(closes, pat) for pat in templates(pair[1])]


def _probe(marker: str | tuple[str, ...]) -> Probe | None:
    found = templates(marker)
    return Probe(alt(*found)) if found else None


def _extra(closes: list[Pat]) -> Probe | None:
    """One to three brackets too many before what closes a call."""
    if not closes:
        return None
    return Probe(seq(blanks(), Pat(r"[}\])]{1,3}+", r"[}\])]{0,3}"), blanks(), look(alt(*closes))))


_CACHE: dict[int, tuple[Format, Compiled]] = {}


def compiled(format: Format) -> Compiled:
    found = _CACHE.get(id(format))
    if found is None:
        if len(_CACHE) > 256:
            _CACHE.clear()
        # The format is kept beside what was made of it: an id is only unique among living objects.
        found = _CACHE[id(format)] = (format, Compiled(format))
    return found[1]


def without_reasoning(found: Compiled) -> Compiled:
    """The same format, but its reasoning markers are text."""
    key = ~id(found.format)  # never another format's own
    kept = _CACHE.get(key)
    if kept is None or kept[0] is not found.format:
        kept = _CACHE[key] = (found.format, Compiled(msgspec.structs.replace(found.format, reasoning=None)))
    return kept[1]
