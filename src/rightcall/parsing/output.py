"""What a reply becomes: events in order, and spans that tile its text. White space beside a marker is the marker's.

Blanks at the end of a text wait until it is known what follows: before a marker they are its own, else they are text.
Places are counted from the beginning of the whole text.
"""

from __future__ import annotations

import msgspec

from rightcall.parsing.markers import BLANKS
from rightcall.parsing.shown import OUTSIDE, Shown
from rightcall.types import Event, Problem, Reasoning, Recast, Span, SpanKind, Text

Tile = tuple[int, SpanKind]  # where a span ends that begins where the one before it does


class Snapshot(msgspec.Struct, frozen=True):
    """An output as it was: what is needed to take back what came after."""

    tiles: list[Tile]  # the output's own list, which only grows: the first `over` of it count
    over: int
    kind: SpanKind
    tiled: int
    blanks: list[str]
    after_marker: bool
    is_silent: bool
    last: type[Text | Reasoning] | None
    last_tag: str
    text_chars: int
    text_start: int | None
    is_placed: bool
    in_reasoning: bool
    shown: Shown


class Output:
    """`events` is what goes out next; whoever takes them puts a new list there."""

    __slots__ = (
        *("_blanks", "_is_behind_call", "_kind", "_last", "_last_tag", "_seamless", "_tiles", "at_start", "events"),
        *(
            "after_marker",
            "gap",
            "is_placed",
            "is_silent",
            "text_start",
            "shown",
            "tag",
            "text_chars",
            "in_reasoning",
            "tiled",
        ),
    )

    def __init__(self) -> None:
        self.gap = 0  # how much of the text given tells the last run of it from the one before it
        self.is_placed = False  # text stood where only text stands: it is not looked at again
        self.in_reasoning = False  # what comes is reasoning, not text
        self.tag = ""  # the block of a protocol that text stands in
        self.after_marker = False  # the last thing was a marker, whose white space follows
        self.text_chars = 0  # how much was given as text
        self.at_start = (
            True  # a body without opener may stand here: nothing was said since a reply, or a line of it, began
        )
        self.is_silent = True  # nothing was said yet, and no call made
        self.text_start: int | None = (
            0  # where all that was said begins; None where something was said before a thought
        )
        self._last: type[Text | Reasoning] | None = None  # what the last thing given out was
        self._last_tag = ""  # the tag of the text given out last
        self._seamless: set[int] | None = None  # where text goes on behind a mark inside it
        self.tiled = 0  # how much of the text the spans cover
        self.events: list[Event] = []
        self._tiles: list[Tile] = []  # those that are over
        self._kind: SpanKind = "marker"  # of the last one, which ends where `tiled` says
        self.shown = Shown()
        self._is_behind_call = False  # what comes next stands on the line that a call ends on
        self._blanks: list[str] = []  # white space read but not yet known to be text or a marker's

    def problem(self, made: Problem) -> None:
        self.events.append(made)

    def mark(self, kind: SpanKind, end: int) -> None:
        """The text up to there, as far as no span covers it yet, became this."""
        if end > self.tiled:
            if kind != self._kind:
                self._tiles.append((self.tiled, self._kind))
                self._kind = kind
            self.tiled = end

    @property
    def ends_in_reasoning(self) -> bool:
        """Was what was given out last reasoning?"""
        return self._last is Reasoning

    @property
    def spans(self) -> list[Span]:
        """What became of the text so far."""
        tiles = [*self._tiles, (self.tiled, self._kind)]
        starts = [0, *[end for end, _ in tiles]]
        return [Span(start, end, kind) for start, (end, kind) in zip(starts, tiles, strict=False) if end > start]

    @spans.setter
    def spans(self, spans: list[Span]) -> None:
        self._tiles = [(span.end, span.kind) for span in spans]
        self.tiled, self._kind = self._tiles.pop() if self._tiles else (0, "marker")

    # -- text and reasoning --------------------------------------------------------------------------------------------

    def emit(self, text: str, end: int) -> None:
        """Text, or reasoning, up to that place. Behind a marker its leading blanks are the marker's."""
        if self.after_marker:
            trimmed = text.lstrip(BLANKS)
            self.mark("marker", end - len(trimmed))
            if self._is_behind_call:
                self._go_on(text[: len(text) - len(trimmed)], bool(trimmed))
            if not trimmed:
                return
            text, self.after_marker, self.gap = trimmed, False, 0
            if self._last is (Reasoning if self.in_reasoning else Text) and self._last_tag == self.tag:
                # A marker stood between two texts: they are told apart as two parts would be.
                self.gap = 2 if self.tag else 1
                self._append("\n" * self.gap, self.tiled)
        self._emit_text(text, end)

    def emit_exact(self, text: str, end: int) -> None:
        """What was taken for the beginning of a call, up to that place, is text after all, to the byte."""
        if self.after_marker:
            self.gap = 0
        self.after_marker = self.at_start = False
        self._emit_text(text, end)

    def emit_after_call(self, text: str, end: int) -> None:
        """Text behind a call, that was taken while it was not clear where the call ends."""
        trimmed = text.lstrip(BLANKS)
        self.mark("marker", end - len(trimmed))
        if self._is_behind_call:
            self._go_on(text[: len(text) - len(trimmed)], bool(trimmed))
        self.after_marker, self.gap = False, 0
        self._emit_text(trimmed, end)

    def _go_on(self, blanks: str, is_text: bool) -> None:
        """Text behind a call begins a line if a line break stands between them."""
        if is_text and "\n" not in blanks:
            self.shown.go_on()
        self._is_behind_call = not is_text and "\n" not in blanks

    def content(self, text: str, start: int, end: int) -> None:
        """Text that the format carries as a JSON value, which stands between these places."""
        self.drop_blanks()
        self.is_placed = True
        if text:
            self.events.append(Text(text))
            self.is_silent = False
        self.mark("marker", start)
        self.mark("text", end)

    def _emit_text(self, text: str, end: int) -> None:
        self.shown.take(text)
        solid = text.rstrip(BLANKS)
        if not solid:
            if text:
                self._blanks.append(text)
            return
        given = "".join(self._blanks) + solid if self._blanks else solid
        self._blanks = [text[len(solid) :]] if len(solid) < len(text) else []
        self._append(given, end - (len(text) - len(solid)))

    def _append(self, text: str, end: int) -> None:
        if self.in_reasoning:
            self._last = Reasoning
            self.events.append(Reasoning(text))
            self.begin_text(end)
            self.mark("reasoning", end)
            return
        self._last, self._last_tag = Text, self.tag
        self.is_silent = self.at_start = False
        self.text_chars += len(text)
        self.events.append(Text(text, self.tag))
        self.mark("text", end)

    def begin_text(self, end: int) -> None:
        """A thought ends there: what is said begins behind it, if nothing was said before."""
        self.text_start = end if self.is_silent else None

    def snapshot(self) -> Snapshot:
        """The output as it is. What follows counts as the beginning of a text of its own."""
        taken = Snapshot(
            self._tiles,
            len(self._tiles),
            self._kind,
            self.tiled,
            self._blanks[:],
            self.after_marker,
            self.is_silent,
            self._last,
            self._last_tag,
            self.text_chars,
            self.text_start,
            self.is_placed,
            self.in_reasoning,
            self.shown,
        )
        self.shown = Shown()
        return taken

    def restore(self, before: Snapshot, events: list[Event]) -> None:
        """Nothing of what came since counts; these events are still to go out."""
        self.events = events
        del before.tiles[before.over :]
        self._tiles, self._kind, self.tiled, self._blanks = before.tiles, before.kind, before.tiled, before.blanks
        self.after_marker, self.is_silent, self._last = before.after_marker, before.is_silent, before.last
        self._last_tag, self.text_chars = before.last_tag, before.text_chars
        self.text_start, self.is_placed = before.text_start, before.is_placed
        self.in_reasoning, self.shown = before.in_reasoning, before.shown
        self._is_behind_call = False

    # -- markers -------------------------------------------------------------------------------------------------------

    def drop_marker(self, end: int) -> None:
        """A marker up to that place is dropped, with the blanks around it."""
        if self._blanks:
            self.drop_blanks()
        self.after_marker = True
        if not self.shown.is_new:
            self.shown = Shown()
        self.mark("marker", end)

    def continue_line(self) -> None:
        """What comes next stands on the line that a marker ends on which closed something."""
        self._is_behind_call = True

    def skip_mark(self, end: int) -> None:
        """A mark inside text, up to that place, is dropped; the text around it stays whole."""
        self.gap = 0
        self.mark("marker", end)
        if self.after_marker:
            return  # the marker before it tells the texts apart
        if self._seamless is None:
            self._seamless = set()
        self._seamless.add(end)

    def reasoning_since(self, start: int) -> int:
        """How many characters of reasoning were given from that place on."""
        given = [span for span in self.spans if span.kind == "reasoning" and span.end > start]
        breaks = sum(span.start not in (self._seamless or ()) for span in given[1:])
        return sum(span.end - max(span.start, start) for span in given) + breaks

    def drop_blanks(self) -> None:
        """What comes is structure: the blanks before it are its own."""
        self._blanks.clear()
        if self.shown.is_new:
            self.shown = Shown()  # it may have taken them

    def hold_blanks(self, blanks: str, end: int) -> None:
        """Blanks that were taken up to that place: the last marker's, or waiting for what follows."""
        if self.after_marker:
            self.mark("marker", end)
            self._is_behind_call = self._is_behind_call and "\n" not in blanks
        elif blanks:
            self.shown.take(blanks)
            self._blanks.append(blanks)

    def shows(self, level: int = OUTSIDE, *, special: bool = False) -> bool:
        """Does what was said so far only show the marker that comes next?"""
        return self.shown.shows(level, special=special)

    def call(self, start: int) -> None:
        """A call begins there."""
        if self._blanks:
            self.drop_blanks()
        self.is_silent = False
        self._is_behind_call = True
        self._last = None
        if not self.shown.is_new:
            self.shown = Shown()
        self.mark("marker", start)

    def whole_call(self, start: int, end: int) -> None:
        """A call stands there, begun and over. As `call` and `mark` say, in fewer steps."""
        if self._blanks:
            self.drop_blanks()
        self.is_silent = False
        self._is_behind_call = True
        self._last = None
        if not self.shown.is_new:
            self.shown = Shown()
        if start > self.tiled:
            if self._kind != "marker":
                self._tiles.append((self.tiled, self._kind))
                self._kind = "marker"
            self.tiled = start
        if self._kind != "call":
            self._tiles.append((self.tiled, self._kind))
            self._kind = "call"
        self.tiled = end

    def flush_blanks(self, end: int) -> None:
        """The reply is over: blanks that no marker touched are text."""
        if self._blanks:
            if not self.after_marker:
                self._append("".join(self._blanks), end)
            self._blanks.clear()
        self.mark("marker", end)

    def switch(self, *, reasoning: bool) -> None:
        """From here on it is reasoning, or text again. A fence that was left open ends with it."""
        self.in_reasoning = reasoning
        self._is_behind_call = False
        self.shown = Shown()

    def recast(self, end: int) -> None:
        """All text so far, up to that place, was reasoning."""
        if self.text_chars:
            self.events.append(Recast(self.text_chars, "reasoning"))
        self.text_chars = 0
        self.is_silent = True
        self.text_start = end
        self._last = Reasoning if self._last is Text else None
        self._tiles = [(end, "reasoning" if kind == "text" else kind) for end, kind in self._tiles]
        self._kind = "reasoning" if self._kind == "text" else self._kind
