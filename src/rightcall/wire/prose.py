"""The text of a reply, as it arrives and as it goes out: the buffer, captures, spans, text and reasoning.

Rules of this file and of the readers that stand on it:
- A bare `yield` means: more text, please. A position in the buffer does not survive it; `pos` and captures do.
- Nothing is taken before it is certain; nothing is given back afterwards.
- Every loop takes at least one character, yields or raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, TypeVar

from rightcall.ids import Ids
from rightcall.types import Event, Problem, Reasoning, Recast, Span, SpanKind, Text
from rightcall.wire.markers import BLANKS, Probe
from rightcall.wire.options import ReadOptions
from rightcall.wire.shown import Fences

if TYPE_CHECKING:
    from rightcall.wire.compile import Compiled

T = TypeVar("T")
Steps = Generator[None, None, T]
_BLANKS = re.compile(r"[ \t\r\n]*+").match


class Capture:
    """Text from a place on, over any number of chunks."""

    __slots__ = ("parts", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.parts: list[str] = []


class Prose:
    """Everything about a reply being read but its calls."""

    buf = ""
    pos = 0
    base = 0  # how much of the text lies before the buffer
    ended = False
    # Set by a reader while it waits inside a string: takes a piece that is all string, without waking the reader.
    sink: Callable[[str], bool] | None = None
    thinking = False
    tag = ""  # the block of a protocol that text stands in
    _said_tag = ""  # and that of the text given out last
    fresh = False  # the last thing was a marker, whose white space follows
    may_open = True  # a body without opener may stand here
    text_chars = 0
    said_at: int | None = 0  # where all that was said begins; None where something was said before a thought
    _tiled = 0  # how much of the text the spans cover
    _last: type[Text | Reasoning] | None = None  # what the last thing given out was

    def __init__(self, compiled: Compiled, options: ReadOptions, ids: Ids) -> None:
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

    # -- as it arrives -------------------------------------------------------------------------------------------------

    def more(self, text: str) -> None:
        """More text has arrived: what was taken leaves the buffer."""
        pos = self.pos
        for capture in self.captures:
            capture.parts.append(self.buf[capture.start : pos])
            capture.start = 0
        self.base += pos
        self.buf = self.buf[pos:] + text if pos < len(self.buf) else text
        self.pos = 0

    def passed(self, text: str) -> None:
        """A piece that a `sink` took whole: it never enters the buffer, which is used up."""
        if self.buf:
            self.more("")
        for capture in self.captures:
            capture.parts.append(text)
        self.base += len(text)

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
        made = Problem(code, message, path, call, blocking)
        self.out.append(made)
        building = getattr(self, "call", None)
        if building is not None and building.index == call:
            building.problems.append(made)

    # -- as it goes out ------------------------------------------------------------------------------------------------

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
