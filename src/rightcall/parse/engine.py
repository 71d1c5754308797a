"""What every reader of a reply stands on: the text as it arrives, the events that go out, the call being read.

Rules of this file and of the readers beside it:
- A bare `yield` means: more text, please. A position in the buffer does not survive it; `pos` and captures do.
- Nothing is taken before it is certain; nothing is given back afterwards.
- Every loop takes at least one character, yields or raises.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from rightcall.check import fits, name_problem
from rightcall.declare.kinds import Kind
from rightcall.declare.toolset import Toolset
from rightcall.ids import Ids
from rightcall.parse.markers import BLANKS, Probe
from rightcall.parse.shown import Fences
from rightcall.parse.signals import NotACall
from rightcall.parse.typed import to_json
from rightcall.repair.names import settle_name
from rightcall.repair.settle import receipts, settle
from rightcall.repair.sketch import Sketch
from rightcall.repair.strangers import strangers
from rightcall.strict_json import Undecodable
from rightcall.types import (
    Arguments,
    Call,
    CallEnd,
    CallStart,
    Event,
    Problem,
    Reasoning,
    Recast,
    Repair,
    Span,
    SpanKind,
    Text,
)

if TYPE_CHECKING:
    from rightcall.parse.compile import Compiled

T = TypeVar("T")
Steps = Generator[None, None, T]
# A call that is all there: where it begins and ends, its name, its arguments as JSON and as a value, its id.
Whole = tuple[int, int, str, str, dict[str, Any], str]

_NO_CLOSER = re.compile(r"[ \t\r\n]{0,128}+[^ \t\r\n}\])]").match
_NO_KINDS: dict[str, Kind] = {}
_BLANKS = re.compile(r"[ \t\r\n]*+").match


class Limits(msgspec.Struct, frozen=True):
    """Past a limit a problem is left. A call too large or too deep is kept with its text; a reply with too much text or
    too many calls is plain text from there on."""

    reply: int = 16_000_000
    call: int = 4_000_000
    depth: int = 200
    calls: int = 256


class Options(msgspec.Struct, frozen=True):
    tools: Toolset | None = None
    reasoning: str = "auto"
    repair: str | Mapping[str, str] = "safe"
    choice: str | None = None
    spans: bool = False
    live: bool = False
    limits: Limits = Limits()
    rescue: bool = True
    calls_in_reasoning: bool = True


class Capture:
    """Text from a place on, over any number of chunks."""

    __slots__ = ("parts", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.parts: list[str] = []


class Building:
    """The call being read."""

    __slots__ = ("checked", "given", "id", "index", "kinds", "name", "parts", "repairs")

    def __init__(self, index: int, id: str, name: str, kinds: dict[str, Kind]) -> None:
        self.index, self.id, self.name = index, id, name
        self.kinds = kinds  # how each declared argument is to be read
        self.parts: list[str] = []  # pieces of argument JSON
        self.checked = False  # a problem was found that says it all
        self.given = 0  # how many of them were given out
        self.repairs: tuple[Repair, ...] = ()


class Engine:
    """The state of one reply being read."""

    buf = ""
    pos = 0
    base = 0  # how much of the text lies before the buffer
    ended = False
    index = 0  # of the next call
    fenced: tuple[Repair, ...] = ()  # the receipt of a code fence around the block being read
    full = False  # there were more calls than there may be
    call: Building | None = None
    raw: Capture | None = None
    raw_at = 0
    broken_at = 0  # where it could not be read any further
    args_at = 0  # where the arguments of the call began
    _raw_text: str | None = None
    thinking = False
    tag = ""  # the block of a protocol that text stands in
    _said_tag = ""  # and that of the text given out last
    refused = 0  # how many calls outside all blocks were none that may run
    dropped = ""  # the code fence around calls outside all blocks, whose first line was taken for a marker
    fresh = False  # the last thing was a marker, whose white space follows
    may_open = True  # a body without opener may stand here
    text_chars = 0
    said_at: int | None = 0  # where all that was said begins; None where something was said before a thought
    _tiled = 0  # how much of the text the spans cover
    _last: type[Text | Reasoning] | None = None  # what the last thing given out was

    def __init__(self, compiled: Compiled, options: Options, ids: Ids) -> None:
        self.compiled = compiled
        self.options = options
        self.limits = options.limits
        self.tools = options.tools
        self.live = options.live and options.tools is not None
        self.ids = ids
        self.out: list[Event] = []
        self.captures: list[Capture] = []
        self.recastable = compiled.format.reasoning is not None
        self.spans: list[Span] | None = [] if options.spans else None
        self.fences = Fences()
        self._blanks: list[str] = []  # white space read but not yet known to be text or a marker's
        # What was said and thought so far, kept until there is a call: without one, rescue looks at it again.
        rescue = options.rescue and self.tools is not None and len(self.tools) > 0
        self.said: list[str] | None = [] if rescue else None
        self.thought: list[str] = []
        self.original: list[str] = []  # the text as it came, kept as long

    # -- the text ------------------------------------------------------------------------------------------------------

    def more(self, text: str) -> None:
        """More text has arrived: what was taken leaves the buffer."""
        pos = self.pos
        for capture in self.captures:
            capture.parts.append(self.buf[capture.start : pos])
            capture.start = 0
        self.base += pos
        self.buf = self.buf[pos:] + text if pos < len(self.buf) else text
        self.pos = 0

    def char(self) -> str:
        """As `peek`, but "" where more text is needed: `p.char() or (yield from p.peek())` costs less than `peek`."""
        pos = self.pos
        if pos < len(self.buf):
            char = self.buf[pos]
            if char > " ":
                return char
            self.pos = pos = _BLANKS(self.buf, pos).end()  # type: ignore[union-attr]
            if pos < len(self.buf):
                return self.buf[pos]
        return ""

    def peek(self) -> Steps[str]:
        """The next character that is not blank, "" at the end of the text. Takes the blanks before it."""
        while True:
            self.pos = pos = _BLANKS(self.buf, self.pos).end()  # type: ignore[union-attr]
            if pos < len(self.buf):
                return self.buf[pos]
            if self.ended:
                return ""
            yield

    def test(self, probe: Probe) -> Steps[re.Match[str] | None]:
        """Is this here? Takes nothing."""
        while True:
            found = probe.at(self.buf, self.pos, self.ended)
            if found is not None:
                return found or None
            yield

    def capture(self) -> Capture:
        capture = Capture(self.pos)
        self.captures.append(capture)
        return capture

    def captured(self, capture: Capture) -> str:
        """What was taken since."""
        last = self.buf[capture.start : self.pos]
        return "".join([*capture.parts, last]) if capture.parts else last

    def release(self, capture: Capture) -> str:
        self.captures.remove(capture)
        return self.captured(capture)

    def mark(self, kind: SpanKind, end: int) -> None:
        """The text up to here, as far as no span covers it yet, became this. Called only where spans were asked for."""
        assert self.spans is not None
        if end <= self._tiled:
            return
        if self.spans and self.spans[-1].kind == kind:
            self.spans[-1] = Span(self.spans[-1].start, end, kind)
        else:
            self.spans.append(Span(self._tiled, end, kind))
        self._tiled = end

    def problem(
        self, code: str, message: str, path: str = "", *, blocking: bool = True, call: int | None = None
    ) -> None:
        self.out.append(Problem(code, message, path, call, blocking))

    # -- one call ------------------------------------------------------------------------------------------------------

    def raw_begin(self) -> None:
        """A call's own text starts here."""
        if self.raw is not None:
            self.raw_drop()
        self.raw = raw = Capture(self.pos)
        self.captures.append(raw)
        self.raw_at = self.base + self.pos
        self._raw_text = None

    def raw_end(self) -> None:
        """A whole call's own text ends here; what is read between this and `finish` is no part of it."""
        assert self.raw is not None
        self._raw_text = self.captured(self.raw)

    def raw_drop(self) -> None:
        if self.raw is not None:
            self.captures.remove(self.raw)
            self.raw = None

    def begin(self, name: str, id: str = "", repairs: tuple[Repair, ...] = (), *, unread: bool = False) -> Building:
        """It is a call: all that is known of it before its arguments goes out, and is final. `unread`: it broke before
        its name was read, which another problem tells."""
        if self.index >= self.limits.calls:
            self.full = True
            raise NotACall
        if self._blanks or self.recastable:
            self.settle()
        self.said = None
        if self.spans is not None:
            self.mark("marker", self.raw_at)
        if self.tools is not None and name not in self.tools:
            name, found = settle_name(name, self.tools, self.policy(name))
            repairs += found
        kinds = _NO_KINDS if self.tools is None else self.tools.kinds(name)
        call = self.call = Building(self.index, self.ids.take(id), name, kinds)
        call.repairs = (*self.fenced, *repairs)
        self.index += 1
        self._last = None
        self.out.append(CallStart(call.index, call.id, name))
        if (self.tools is None or name not in self.tools) and not unread:
            wrong = name_problem(name, self.tools)
            if wrong is not None:
                self.problem(*wrong, call=call.index)
        return call

    def policy(self, name: str) -> str:
        """How far calls of this tool may be repaired. What was given out is final, and never."""
        repair = self.options.repair
        return repair if isinstance(repair, str) else repair.get(name, repair.get("*", "safe"))

    def whole_call(self, start: int, end: int, name: str, json: str, value: dict[str, Any], id: str = "") -> None:
        """A call that is all there, from `start` to `end` of the buffer."""
        if self._is_plain(name, value) and end - start <= self.limits.call:
            # Where there is nothing to repair and nothing to tell, the same events as below cost less.
            if self._blanks or self.recastable:
                self.settle()
            if self.spans is not None:
                self.mark("marker", self.base + start)
                self.mark("call", self.base + end)
            call = Call(name, value, json, self.ids.take(id), self.buf[start:end])
            index = self.index
            self.index = index + 1
            self.said = self._last = None
            self.out += (CallStart(index, call.id, name), Arguments(index, json), CallEnd(index, call))
            return
        self.pos = start
        self.raw_begin()
        self.begin(name, id).parts.append(json)
        self.pos = end
        self.finish(value)

    def _is_plain(self, name: str, value: dict[str, Any]) -> bool:
        tools = self.tools
        tool = tools.get(name) if tools is not None else None
        if tools is None or tool is None or not value or self.fenced or tool.aliases:
            return False
        return value.keys() <= tools.kinds(name).keys() and fits(tool, value) and not strangers(tool, value)

    def take_extra_closers(self, probe: Probe | None = None) -> Steps[None]:
        """One to three brackets too many before the call's close (or as the probe says): taken, with a receipt."""
        probe = probe or self.compiled.extra_closers
        if probe is None or self.policy("") == "off" or _NO_CLOSER(self.buf, self.pos):
            return
        self.raw_end()
        found = yield from self.test(probe)
        if found:
            self.repaired("extra_closer", found.group().strip(), "")
            self.pos += len(found.group().rstrip())
            self.raw_end()

    def mend(self, *, closed: bool = True) -> bool:
        """Reads a call again, loosely, that could not be read. False where that does not help."""
        return False

    def mended_call(self, sketch: Sketch, text: str, start: int) -> None:
        """A call that was read loosely: `text` is its block from `start` on."""
        if self.call is None:
            self.raw_begin()
            self.raw_at = start + sketch.start
            self.begin(sketch.name, sketch.id)
        assert self.call is not None
        self.call.repairs += receipts(sketch.liberties)
        self.call.parts = [to_json(sketch.arguments)]
        self._raw_text = text[sketch.start : sketch.end]
        self.finish(sketch.arguments, empty=sketch.arguments is None)

    def kind(self, key: str) -> str | None:
        """How the schema says this argument of the current call is to be read; None when it is not declared."""
        return self.call.kinds.get(key) if self.call is not None else None

    def give(self, json: str) -> None:
        """A final piece of argument JSON: goes out at once when live."""
        call = self.call
        assert call is not None
        call.parts.append(json)
        if self.live:
            self.out.append(Arguments(call.index, json))
            call.given += 1

    def finish(self, value: Any = Undecodable, *, empty: bool = False) -> None:
        """The body's own end was seen. `value` is what the argument JSON holds, where the reader already knows."""
        call, raw = self.call, self.raw
        assert call is not None and raw is not None
        self.captures.remove(raw)
        text = self.captured(raw) if self._raw_text is None else self._raw_text
        json = "" if empty else "".join(call.parts)
        if len(text) > self.limits.call:
            self.problem("too_large", f"the call is longer than {self.limits.call} characters", call=call.index)
            self._out(Call(call.name, {}, json, call.id, text, call.repairs, False))
            return
        if type(value) is dict and not empty and json and self._fits(call, value):
            rest = "".join(call.parts[call.given :]) if call.given else json
            if rest:
                self.out.append(Arguments(call.index, rest))
            self._out(Call(call.name, value, json, call.id, text, call.repairs))
            return
        made, problems = settle(
            call.name,
            json,
            index=call.index,
            id=call.id,
            raw=text,
            tools=None if call.checked else self.tools,
            # Of an object some may have been given out, which is final. What is repaired must not depend on the cut.
            policy="off" if self.live and json.startswith("{") else self.policy(call.name),
            depth=self.limits.depth,
            value=value,
            repairs=call.repairs,
        )
        if made.complete:
            rest = "".join(call.parts[call.given :]) if call.given else made.json
            if rest:
                self.out.append(Arguments(call.index, rest))
        self.out.extend(problems)
        self._out(made)

    def repaired(self, rule: str, before: str, after: str) -> None:
        assert self.call is not None
        self.call.repairs += (Repair(rule, "exact", "", before, after),)

    def _fits(self, call: Building, value: dict[str, Any]) -> bool:
        """Is there nothing to settle? The usual case, which costs least."""
        if self.tools is None or call.checked:
            return True
        tool = self.tools.get(call.name)
        if tool is None:
            return True
        known = not tool.aliases and value.keys() <= call.kinds.keys()
        return known and fits(tool, value) and not strangers(tool, value)

    def fail(self, code: str, message: str, path: str = "", *, whole: bool = True) -> None:
        """The call cannot be used: a problem says why, and its text so far is kept. Unless `whole`, what stands behind
        the place where it broke is text."""
        assert self.raw is not None
        call = self.call or self.begin("", unread=True)
        self.problem(code, message, path, call=call.index)
        raw = self.release(self.raw)
        size = len(raw) if whole else min(len(raw), self.broken_at - self.raw_at)
        self._out(Call(call.name, {}, "".join(call.parts), call.id, raw[:size], call.repairs, False))
        if size < len(raw):
            self.text_behind(raw[size:])

    def text_behind(self, text: str) -> None:
        """Text behind a call, up to `pos`, that was taken while it was not clear where the call ends."""
        trimmed = text.lstrip(BLANKS)
        if self.spans is not None:
            self.mark("marker", self.base + self.pos - len(trimmed))
        self.fresh = False
        self._text(trimmed)

    def _out(self, made: Call) -> None:
        assert self.call is not None
        self.out.append(CallEnd(self.call.index, made))
        if self.spans is not None:
            self.mark("call", self.raw_at + len(made.raw))
        self.call = self.raw = None

    # -- text ----------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """A marker is certain: the blanks before it are its own, and text before it cannot be recast any more."""
        self._blanks.clear()
        self.recastable = False

    def recast(self) -> None:
        """All text so far was reasoning."""
        if self.text_chars:
            self.out.append(Recast(self.text_chars, "reasoning"))
        if self.said is not None:
            self.thought, self.said = self.said, []
            self.said_at = self.base + self.pos
        self.text_chars = 0
        self._last = Reasoning if self._last is Text else None
        if self.spans is not None:
            self.spans = [Span(s.start, s.end, "reasoning" if s.kind == "text" else s.kind) for s in self.spans]

    def take_text(self, end: int) -> None:
        """Takes text up to there. Blanks at its end wait until it is known what follows."""
        text = self.buf[self.pos : end]
        self.pos = end
        if self.fresh:
            trimmed = text.lstrip(BLANKS)
            if self.spans is not None:
                self.mark("marker", self.base + end - len(trimmed))
            if not trimmed:
                return
            text, self.fresh = trimmed, False
            if self._last is (Reasoning if self.thinking else Text) and self._said_tag == self.tag:
                # A marker stood between two texts: they are told apart as two parts would be.
                self._emit("\n\n" if self.tag else "\n", self._tiled)
        self._text(text)

    def give_back(self, text: str) -> None:
        """What was taken for the beginning of a call, up to `pos`, is text after all, to the byte."""
        self.fresh = self.may_open = False
        self._text(text)

    def held_blanks(self) -> str:
        return "".join(self._blanks)

    def hold_blanks(self, blanks: str) -> None:
        """Blanks that were taken: the last marker's, or waiting for what follows."""
        if self.fresh:
            if self.spans is not None:
                self.mark("marker", self.base + self.pos)
        elif blanks:
            self._blanks.append(blanks)

    def _text(self, text: str) -> None:
        solid = text.rstrip(BLANKS)
        if not solid:
            self._blanks.append(text)
            return
        given = "".join(self._blanks) + solid if self._blanks else solid
        self._blanks = [text[len(solid) :]] if len(solid) < len(text) else []
        self._emit(given, self.base + self.pos - (len(text) - len(solid)))

    def _emit(self, text: str, end: int) -> None:
        if self.thinking:
            self._last = Reasoning
            self.out.append(Reasoning(text))
            if self.said is not None:
                self.thought.append(text)
                self.said_at = None if self.said else end
            if self.spans is not None:
                self.mark("reasoning", end)
            return
        self.may_open = False
        self.fences.take(text)
        self._last, self._said_tag = Text, self.tag
        self.text_chars += len(text)
        self.out.append(Text(text, self.tag))
        if self.said is not None:
            self.said.append(text)
        if self.spans is not None:
            self.mark("text", end)

    def take_marker(self, end: int) -> None:
        """Drops a marker and the blanks around it."""
        self.pos = end
        self._blanks.clear()
        self.fresh = True
        self.fences.take("\n")
        if self.spans is not None:
            self.mark("marker", self.base + end)

    def content(self, text: str, source: int) -> None:
        """Text that the format carries as a JSON value; `source` is how long it is on the wire, up to `pos`."""
        self.settle()
        if text:
            self.out.append(Text(text))
        if self.spans is not None:
            self.mark("marker", self.base + self.pos - source)
            self.mark("text", self.base + self.pos)

    def last_blanks(self) -> None:
        """The reply is over: blanks that no marker touched are text."""
        if self._blanks and not self.fresh:
            self._emit("".join(self._blanks), self.base + self.pos)
        if self.spans is not None:
            self.mark("marker", self.base + self.pos)
