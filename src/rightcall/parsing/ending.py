"""The end of a reply: what only the end can decide.

Were calls made inside reasoning that nothing followed? Is the text, which held no call of the format, one in another
shape? What looks like a call and was not taken for one? If the answer was cut off, nothing is taken out of reasoning
and nothing is rescued.
"""

from __future__ import annotations

import msgspec

from rightcall.formats.turn_ends import LAST_TOKENS
from rightcall.parsing.auto import AutoMachine, read_auto
from rightcall.parsing.buffer import TokenMap
from rightcall.parsing.compile import compile_format
from rightcall.parsing.headers import parse_stripped_messages
from rightcall.parsing.machine import InReasoning, Machine
from rightcall.parsing.near import in_thought, near_call, near_calls
from rightcall.parsing.options import was_cut
from rightcall.parsing.rescue import (
    Piece,
    behind_text,
    located,
    native_calls,
    other_format,
    read_piece,
    shifted,
    whole_reply,
)
from rightcall.types import Call, Part, Problem, Reasoning, Recast, Reply, Span

_LONGEST = 400_000
_MOST_NOTES = 8
_MOST_LAST = 3  # tokens that end one turn and begin the next
OPENED = frozenset(("opener_without_call", "no_call", "truncated"))  # what is said of an opener that no call follows


def conclude(reading: Machine | AutoMachine, source: str, finish: str | None = None) -> None:
    """Closes a reading, and puts what only the end decides into its output. `source` is the whole text."""
    cut = was_cut(finish)
    if isinstance(reading, Machine):
        machine = reading
        machine.close(cut=cut)
    elif not cut and _is_one_call(reading, source):
        return
    else:
        reading.close(cut=cut)
        machine = reading.machine
    if machine.output.text_chars or machine.output.ends_in_reasoning:
        _Conclusion(machine, source, cut, may_be_bare=isinstance(reading, Machine) or reading.is_bare).run()


def _is_one_call(reading: AutoMachine, source: str) -> bool:
    """Is what was held back a call as a whole? Then that is what it becomes: nothing of it was given out yet."""
    machine = reading.machine
    held = reading.held if machine.builder.token_map is None else ""
    piece = whole_reply(_without_last_tokens(held), machine.builder.options) if held else None
    if piece is None:
        return False
    machine.skip(held)
    whole = Piece(piece.reply, located(piece.reply, held))
    _Conclusion(machine, source, cut=False, may_be_bare=False).replace(whole, 0, len(held), 0)
    return True


def _without_last_tokens(text: str) -> str:
    """The text without the few tokens that a model may have ended its turn with."""
    text = text.rstrip()
    for _ in range(_MOST_LAST):
        token = next((token for token in LAST_TOKENS if text.endswith(token)), "")
        text = text.removesuffix(token).rstrip()
    return text


class _Conclusion:
    def __init__(self, machine: Machine, source: str, cut: bool, *, may_be_bare: bool) -> None:
        self.m, self.source, self.cut, self.may_be_bare = machine, source, cut, may_be_bare
        self.builder, self.output, self.options = machine.builder, machine.output, machine.builder.options
        self.tools = machine.builder.tools
        self.is_thought_told = False  # it was said that calls stand in the reasoning

    def run(self) -> None:
        if self.m.is_over:
            return
        if self.m.last_reasoning.start is not None and self._ends_with() != "text":
            self._thought(self.m.last_reasoning.start)
        if self.builder.full:
            return
        if self.builder.index == 0 and not self.cut and not self.output.is_placed and self._may_rescue():
            self._rescue()
        if self.tools:
            self.output.events.extend(near_calls(self.source, self._looked_at(), self.tools))

    def _looked_at(self) -> list[Span]:
        """Where what looks like a call is looked for."""
        return [span for span in self.output.spans.to_list() if not (self.is_thought_told and span.kind == "reasoning")]

    def _ends_with(self) -> str:
        """What the reply ends with, markers aside. What began like a call behind a thought is text only now."""
        return next((span.kind for span in reversed(self.output.spans.to_list()) if span.kind != "marker"), "")

    # -- calls in reasoning --------------------------------------------------------------------------------------------

    def _thought(self, start: int) -> None:
        """The reply ends with reasoning. Open, the calls in it may not run; closed, those count that it ends with. What
        is not taken out is told, because nothing was said or called behind it."""
        is_open = isinstance(self.m.state, InReasoning)
        text = self.source[start : None if is_open else self.m.last_reasoning.end]
        if len(text) > _LONGEST:
            return
        piece = self._read_thought(
            text, None if self.builder.token_map is None else self.builder.token_map.slice(start)
        )
        self._tell_of_thought(_of_no_call(piece.reply), is_open)
        first = _first_call(piece.spans) if is_open else _last_run(piece.spans)
        if first is None or self.options.reasoning_calls == "never" or (self.cut and not is_open):
            self._tell_withheld(start, piece)
        else:
            self._take_out(start, first, piece, is_open)

    def _tell_withheld(self, start: int, piece: Piece) -> None:
        """Calls that are not taken out of the reasoning are told as what looks like one."""
        self.output.events.extend(withheld_notes(piece.reply, shifted(piece.spans, start)))
        self.is_thought_told = bool(piece.reply.attempts)

    def _tell_of_thought(self, problems: list[Problem], is_open: bool) -> None:
        if any(problem.code == "too_large" for problem in problems):
            most = self.options.limits.calls
            self.builder.problem(
                "too_large", f"the reply has more than {most} calls; the rest of the reasoning was not read"
            )
        told = [problem for problem in problems if problem.code in OPENED][:_MOST_NOTES]
        self.output.events.extend(told if is_open else [_as_note(problem) for problem in told])

    def _read_thought(self, text: str, told: TokenMap | None) -> Piece:
        format = self.m.compiled.format
        limits = msgspec.structs.replace(self.options.limits, calls=self.options.limits.calls - self.builder.index)
        options = msgspec.structs.replace(self.options, limits=limits)  # what was called before the thought counts too
        if format.name == "auto":
            return read_auto(text, options, told)
        return read_piece(text, compile_format(format, reasoning=False).without_bare_calls, options, told)

    def _take_out(self, start: int, first: int, piece: Piece, is_open: bool) -> None:
        """What was given as reasoning from `first` of the piece on were calls, with reasoning around them."""
        self.output.events.append(Recast(self.output.spans.reasoning_since(start + first), "thought"))
        end = self.output.spans.end
        inside = shifted([s for s in piece.spans if s.start >= first], start)
        thought = [Span(s.start, s.end, "reasoning" if s.kind == "text" else s.kind) for s in inside]
        last = thought[-1].end
        before = _before(self.output.spans.to_list(), start + first)
        self.output.spans.replace(before + thought + ([Span(last, end, "marker")] if last < end else []))
        for part in _parts_from(piece, first):
            if isinstance(part, Call):
                self.builder.adopt(part, _IN_OPEN_REASONING if is_open else _IN_REASONING)
            else:
                self.output.events.append(Reasoning(part.text))

    def _may_rescue(self) -> bool:
        """Where it is known which text came as special tokens, a format with tokens of its own needs no guess."""
        has_tokens = self.m.compiled.openers.has_tokens
        return self.options.rescue != "off" and (self.builder.token_map is None or not has_tokens)

    # -- calls in another shape ----------------------------------------------------------------------------------------

    def _rescue(self) -> None:
        """The reply has text and no call: is the text one?"""
        said = self._last_words()
        if not said:
            return
        start, end = said[-1].start, said[-1].end
        text, is_all = self.source[start:end], len(said) == 1
        chars = self.output.text_chars if is_all else end - start
        piece = self._of_all(text) if is_all else None
        if piece is None and not self.tools:
            return
        if piece is None and (piece := self._in_other_format()) is not None:
            start, end, chars = self.output.text_start or 0, len(self.source), self.output.text_chars
        piece = piece or self._in_text(text)
        if piece is None and not is_all and (piece := self._over_tokens(said)) is not None:
            start, chars = said[0].start, self.output.text_chars
        if piece is not None:
            # What tells the text from the one before it goes with the text.
            is_gone = not is_all and start == said[-1].start and isinstance(piece.reply.parts[0], Call)
            self.replace(piece, start, end, chars + (self.output.gap if is_gone else 0))

    def _of_all(self, text: str) -> Piece | None:
        """The one text of the reply, if all of it is calls, or messages without their tokens."""
        piece = whole_reply(text, self.options, self._letters(), self.m.compiled)
        found = parse_stripped_messages(text, self.m.compiled.format) if piece is None else None
        return piece if found is None else Piece(*found)

    def _over_tokens(self, said: list[Span]) -> Piece | None:
        """The texts as one: a token in a string of a call told them apart."""
        start, end = said[0].start, said[-1].end
        thought = [span for span in self.output.spans.to_list() if span.kind == "reasoning" and span.start > start]
        if thought or not self.source.startswith(("{", "[", "call:"), start):
            return None
        return whole_reply(self.source[start:end], self.options, self._letters(), self.m.compiled)

    def _last_words(self) -> list[Span]:
        """The texts; none where something was thought behind the last, which says that it was not the last word."""
        said = [span for span in self.output.spans.to_list() if span.kind == "text"]
        thought = [span.start for span in self.output.spans.to_list() if span.kind == "reasoning"]
        return [] if said and max(thought, default=-1) > said[-1].start else said

    def _letters(self) -> TokenMap | None:
        """What is known to be a special token was read: what is left of them are letters."""
        return None if self.builder.token_map is None else TokenMap.of_plain_text(len(self.source))

    def _in_other_format(self) -> Piece | None:
        """All that was said, read as another format writes calls."""
        found, said_from = self.m.compiled, self.output.text_start
        if said_from is None or found.format.name == "auto":
            return None
        text = self.source[said_from:]
        native = native_calls(text, self.options) if found.bare_calls.can_begin_line else None
        return native or other_format(text, self.options, self._letters())

    def _in_text(self, text: str) -> Piece | None:
        """The calls in the last text, which stand there without a marker."""
        found, options = self.m.compiled, self.options
        return behind_text(text, found, options) if found.bare_calls.can_begin_reply and self.may_be_bare else None

    def replace(self, piece: Piece, start: int, end: int, chars: int) -> None:
        """The last so many characters of the text that was given out are given again, as what they are."""
        if self.m.compiled.format.name == "auto":
            self.m.rename_format(piece.reply.format)
        if chars:
            self.output.events.append(Recast(chars, "call"))
        spans = self.output.spans.to_list()
        behind = [Span(max(s.start, end), s.end, s.kind) for s in spans if s.end > end]
        self.output.spans.replace(_before(spans, start) + shifted(piece.spans, start) + behind)
        message = f"the call was written as {piece.reply.format} writes it"
        for part in piece.reply.parts:
            if isinstance(part, Call):
                self.builder.adopt(part, Problem("rescued", message, blocking=False))
            else:
                self.output.events.append(part)
        self.output.events.extend(_of_no_call(piece.reply))


_IN_REASONING = Problem("call_in_reasoning", "the call stood in the reasoning", blocking=False)
_OPENED_IN_THOUGHT = Problem(
    "opener_without_call", "the reasoning opens a call, and none follows in it", blocking=False
)
_IN_OPEN_REASONING = Problem(
    "call_in_open_reasoning",
    "the call stands inside reasoning that was never closed; close the reasoning, then send the call again outside it",
)


def _of_no_call(reply: Reply) -> list[Problem]:
    return [problem for problem in reply.problems if problem.call is None]


def _as_note(opened: Problem) -> Problem:
    """Of an opener in a thought that was closed behind it: it was not cut off there."""
    if opened.code != "truncated":
        return opened
    return _OPENED_IN_THOUGHT


def _before(spans: list[Span], end: int) -> list[Span]:
    """What of them stands before that place."""
    return [Span(span.start, min(span.end, end), span.kind) for span in spans if span.start < end]


def withheld_notes(thought: Reply, spans: list[Span]) -> list[Problem]:
    """What tells of calls that stay in the reasoning: each looks like one."""
    places = [span for span in spans if span.kind == "call"]
    if thought.attempts and not places:  # one of which nothing but the name is there
        return [_OPENED_IN_THOUGHT]
    told = list(zip(thought.attempts, places, strict=False))[:_MOST_NOTES]
    return [in_thought(near_call(call.name, span.start, span.end, thought.format)) for call, span in told]


def last_calls(reply: Reply) -> tuple[int, int]:
    """How many calls a text ends with, and where they begin: nothing but blanks and markers stands between and behind
    them. The reply has its spans."""
    spans = list(reply.spans or ())
    first = _last_run(spans)
    if first is None:
        return 0, 0
    return sum(isinstance(part, Call) for part in _parts_from(Piece(reply, spans), first)), first


def _last_run(spans: list[Span]) -> int | None:
    """Where the calls begin that a text ends with; None where it does not end with calls."""
    first, has_call = None, False
    for span in reversed(spans):
        if span.kind not in ("call", "marker"):
            break
        first, has_call = span.start, has_call or span.kind == "call"
    return first if has_call else None


def _first_call(spans: list[Span]) -> int | None:
    """Where the first call begins, with the markers before it."""
    for i, span in enumerate(spans):
        if span.kind == "call":
            return spans[i - 1].start if i and spans[i - 1].kind == "marker" else span.start
    return None


def _parts_from(piece: Piece, first: int) -> tuple[Part, ...]:
    """The parts from that place of the text on, where a call begins."""
    parts = piece.reply.parts
    spans = [span for span in piece.spans if span.kind == "call" and span.start < first]
    skipped = 0
    size = sum(span.end - span.start for span in spans)
    for i, part in enumerate(parts):
        if isinstance(part, Call):
            if skipped >= size:
                return parts[i:]
            skipped += len(part.raw)
    return ()
