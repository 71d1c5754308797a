"""The end of a reply: decide what only the end can decide.

- Calls inside reasoning that nothing follows are taken out of it.
- Text that holds no call of the format is parsed as calls outside its markers (`rescue`).
- Text that looks like a call and is none is reported (`near_misses`).

If the reply was truncated, only open reasoning loses its calls, which are rejected, and no text is rescued.
"""

from __future__ import annotations

import msgspec

from rightcall.formats.turn_ends import LAST_TOKENS
from rightcall.parsing.auto import AutoMachine, read_auto
from rightcall.parsing.buffer import TokenMap
from rightcall.parsing.compile import compile_format
from rightcall.parsing.headers import parse_stripped_messages
from rightcall.parsing.machine import InReasoning, Machine
from rightcall.parsing.near_misses import find_near_misses, near_miss, near_miss_in_reasoning
from rightcall.parsing.options import was_cut
from rightcall.parsing.rescue import (
    Piece,
    api_calls,
    behind_text,
    located,
    other_format,
    read_piece,
    shifted,
    whole_reply,
)
from rightcall.types import Call, Part, Problem, Reasoning, Recast, Reply, Span

_MAX_CHARS = 400_000
_MOST_NOTES = 8
_MOST_LAST_TOKENS = 3  # tokens that end one turn and begin the next
# The codes of an opener that no call follows.
UNUSED_OPENER = frozenset(("opener_without_call", "no_call", "truncated"))
_IN_REASONING = Problem("call_in_reasoning", "the call stood in the reasoning", blocking=False)
_OPENED_IN_REASONING = Problem(
    "opener_without_call", "the reasoning opens a call, and none follows in it", blocking=False
)
_IN_OPEN_REASONING = Problem(
    "call_in_open_reasoning",
    "the call stands inside reasoning that was never closed; close the reasoning, then send the call again outside it",
)


def conclude(reading: Machine | AutoMachine, source: str, finish: str | None = None) -> None:
    """Close a machine and add the events that only the end decides: calls out of reasoning, rescued calls, near misses.
    Nothing is added to a reply that has no text and does not end in reasoning, or that is beyond its limit. An
    untruncated reply of an `AutoMachine` that is nothing but calls is not closed: these are emitted
    (`_emit_calls_only`). `source`: the whole text. `finish`: the finish reason; if it means truncated, no text is
    rescued and closed reasoning keeps its calls."""
    cut = finish is not None and was_cut(finish)
    if isinstance(reading, Machine):
        machine = reading
        machine.close(cut=cut)
    elif not cut and _emit_calls_only(reading, source):
        return
    else:
        reading.close(cut=cut)
        machine = reading.machine
    output = machine.output
    if (output.text_chars or output.ends_in_reasoning) and not machine.is_over:
        _Conclusion(machine, source, cut, may_be_bare=isinstance(reading, Machine) or reading.is_bare).run()


def _emit_calls_only(reading: AutoMachine, source: str) -> bool:
    """Emit the calls of a reply that was held back and is nothing but calls of declared tools, each with the note
    `rescued`; a code fence around them and up to three turn-end tokens behind them are ignored. Return True then: the
    machine is stopped, with all text taken as markers and calls. Return False, with nothing emitted or taken, if it is
    anything else, was not held back, or its special tokens are known. `source`: the whole text."""
    machine = reading.machine
    held = reading.undecided_text if machine.builder.token_map is None else ""
    text = held.rstrip()
    for _ in range(_MOST_LAST_TOKENS):
        token = next((token for token in LAST_TOKENS if text.endswith(token)), "")
        text = text.removesuffix(token).rstrip()
    piece = whole_reply(text, machine.builder.options) if text else None
    if piece is None:
        return False
    machine.skip(held)
    whole = Piece(piece.reply, located(piece.reply, held))
    _Conclusion(machine, source, cut=False, may_be_bare=False).replace_text(whole, 0, len(held), 0)
    return True


class _Conclusion:
    """The decisions at the end of one reply. `may_be_bare`: calls of its format may have no opener."""

    def __init__(self, machine: Machine, source: str, cut: bool, *, may_be_bare: bool) -> None:
        self._machine, self._source, self._cut, self._may_be_bare = machine, source, cut, may_be_bare
        self._builder, self._output, self._options = machine.builder, machine.output, machine.builder.options

    def run(self) -> None:
        """Add the events that only the end of the reply decides: of calls in its last reasoning, if nothing follows
        that, its text as calls, and with declared tools notes on near misses (not in reasoning if its calls were
        reported). Beyond the limit of calls only the first. Text is tried as calls if no call was found or
        taken out of reasoning, the reply was not truncated, no text was where only text belongs, rescue is not off, and
        special tokens are unknown or the format has none."""
        builder, output, start = self._builder, self._output, self._machine.last_reasoning.start
        has_reported = False
        if start is not None:
            last = next((span.kind for span in reversed(output.spans.to_list()) if span.kind != "marker"), "")
            # Text behind the reasoning that looked like a call is known to be text only now.
            has_reported = last != "text" and self._read_reasoning(start)
        if builder.full:
            return
        # Where the special tokens are known, a format that has some needs no rescue.
        may_rescue = builder.token_map is None or not self._machine.compiled.openers.has_tokens
        if not (builder.index or self._cut or output.is_placed) and self._options.rescue != "off" and may_rescue:
            self._rescue()
        if builder.tools:
            spans = output.spans.to_list()
            if has_reported:
                spans = [span for span in spans if span.kind != "reasoning"]
            output.events.extend(find_near_misses(self._source, spans, builder.tools))

    # -- calls in reasoning --------------------------------------------------------------------------------------------

    def _read_reasoning(self, start: int) -> bool:
        """Parse the reasoning from position `start` on, which ends the reply. Of open reasoning all calls are taken out
        and rejected, of closed reasoning only those at its end are taken out (vllm#39055, vllm-mlx#433). No call is
        taken out with `reasoning_calls` "never", or of closed reasoning in a truncated reply; then at most eight are
        reported, and True is returned if there are any. Otherwise return False.

        At most eight openers that no call follows, and too many calls, are reported too. Reasoning that is too long to
        parse is left, without a report."""
        is_open = isinstance(self._machine.state, InReasoning)
        text = self._source[start : None if is_open else self._machine.last_reasoning.end]
        if len(text) > _MAX_CHARS:
            return False
        piece = self._parse_reasoning(text, start)
        events, calls = self._output.events, self._options.limits.calls
        problems = _problems_of_no_call(piece.reply)
        if any(problem.code == "too_large" for problem in problems):
            message = f"the reply has more than {calls} calls; the rest of the reasoning was not read"
            self._builder.problem("too_large", message)
        for problem in [problem for problem in problems if problem.code in UNUSED_OPENER][:_MOST_NOTES]:
            # Closed reasoning was not truncated behind the opener.
            events.append(_OPENED_IN_REASONING if problem.code == "truncated" and not is_open else problem)
        first = _first_call(piece.spans) if is_open else _first_of_last_calls(piece.spans)
        if first is None or self._options.reasoning_calls == "never" or (self._cut and not is_open):
            events.extend(withheld_notes(piece.reply, shifted(piece.spans, start)))
            return bool(piece.reply.attempts)
        self._take_out(start, first, piece, is_open)
        return False

    def _parse_reasoning(self, text: str, start: int) -> Piece:
        """Parse `text`, reasoning that begins at position `start` of the reply, in the format of the reply, where
        bare calls and reasoning markers are text; if that is "auto", in whatever format it is written. Calls before it
        count against the limit. Positions in the piece count from `start`; nothing is emitted."""
        format, token_map = self._machine.compiled.format, self._builder.token_map
        told = None if token_map is None else token_map.slice(start)
        # Calls before the reasoning count against the limit too.
        calls = self._options.limits.calls - self._builder.index
        limits = msgspec.structs.replace(self._options.limits, calls=calls)
        options = msgspec.structs.replace(self._options, limits=limits)
        if format.name == "auto":
            return read_auto(text, options, told)
        return read_piece(text, compile_format(format, reasoning=False).without_bare_calls, options, told)

    def _take_out(self, start: int, first: int, piece: Piece, is_open: bool) -> None:
        """Replace the reasoning from position `start + first` on by the parts of `piece` from its first call at or
        behind `first` on: calls, rejected if the reasoning `is_open`, else with a note, and reasoning between and
        behind them. A `Recast` event takes the reasoning back first."""
        output = self._output
        output.events.append(Recast(output.spans.reasoning_since(start + first), "thought"))
        end = output.spans.end
        inside = shifted([span for span in piece.spans if span.start >= first], start)
        made = [Span(span.start, span.end, "reasoning" if span.kind == "text" else span.kind) for span in inside]
        last = made[-1].end
        before = _before(output.spans.to_list(), start + first)
        output.spans.replace(before + made + ([Span(last, end, "marker")] if last < end else []))
        for part in _parts_from(piece, first):
            if isinstance(part, Call):
                self._builder.adopt(part, _IN_OPEN_REASONING if is_open else _IN_REASONING)
            else:
                output.events.append(Reasoning(part.text))

    # -- calls outside the markers of the format -----------------------------------------------------------------------

    def _rescue(self) -> None:
        """Replace text of a reply without calls by the first of these that is accepted: all text as nothing but calls
        or stripped messages; with declared tools, unless the format is "auto" or text is before reasoning, calls of an
        API (if bare calls may begin a line), then of another format; with declared tools, bare calls that the last text
        ends with, if the format has them. Nothing happens without text, or if reasoning follows the last text."""
        spans, output = self._output.spans.to_list(), self._output
        texts = [span for span in spans if span.kind == "text"]
        # Text that reasoning follows was not the last word of the model.
        if not texts or any(span.kind == "reasoning" and span.start > texts[-1].start for span in spans):
            return
        start, end, is_all = texts[-1].start, texts[-1].end, len(texts) == 1
        chars = output.text_chars if is_all else end - start
        compiled, options = self._machine.compiled, self._options
        piece = self._read_whole(texts, spans)
        if piece is not None:
            start, chars = texts[0].start, output.text_chars
        elif not options.tools:
            return
        if piece is None and output.text_start is not None and compiled.format.name != "auto":
            text = self._source[output.text_start :]
            piece = api_calls(text, options) if compiled.bare_calls.can_begin_line else None
            piece = piece or other_format(text, options, self._plain_token_map())
            if piece is not None:
                start, end, chars = output.text_start, len(self._source), output.text_chars
        if piece is None and compiled.bare_calls.can_begin_reply and self._may_be_bare:
            piece = behind_text(self._source[start:end], compiled, options)
        if piece is not None:
            # The line breaks that separate the text from the one before it go with it.
            is_gone = not is_all and start == texts[-1].start and isinstance(piece.reply.parts[0], Call)
            self.replace_text(piece, start, end, chars + (output.gap if is_gone else 0))

    def _read_whole(self, texts: list[Span], spans: list[Span]) -> Piece | None:
        """Return all text of the reply parsed as nothing but calls or, if it is one text, as messages without their
        special tokens; None if it is neither. `texts` are the spans of text among all `spans`. Several count as one
        text if that begins with `{`, `[` or `call:`, because a token in a string of a call may have separated them
        (NAVER-Cloud-HyperCLOVA-X/hcx-vllm-plugin#5, Pasta-Devs/Marinara-Engine#3009). None if reasoning is behind their
        start."""
        first, is_all, format = texts[0].start, len(texts) == 1, self._machine.compiled.format
        text = self._source[first : texts[-1].end]
        is_begun = is_all or text.startswith(("{", "[", "call:"))
        if not is_begun or any(span.kind == "reasoning" and span.start > first for span in spans):
            return None
        piece = whole_reply(text, self._options, self._plain_token_map(), self._machine.compiled)
        stripped = parse_stripped_messages(text, format) if piece is None and is_all else None
        return piece if stripped is None else Piece(*stripped)

    def _plain_token_map(self) -> TokenMap | None:
        """Return a token map that says that nothing in a text of the reply is a special token, because those in the
        reply were parsed; None if nothing is known of tokens."""
        return None if self._builder.token_map is None else TokenMap.of_plain_text(len(self._source))

    def replace_text(self, piece: Piece, start: int, end: int, chars: int) -> None:
        """Replace the last `chars` characters of text that were emitted, which are between the positions `start` and
        `end` of the reply, by the parts, the problems of no call, and the spans of `piece`. If there are any `chars`, a
        `Recast` event takes them back first. Each call gets a note (`rescued`). In the format "auto" the reply gets the
        format of `piece`."""
        output = self._output
        if self._machine.compiled.format.name == "auto":
            self._machine.rename_format(piece.reply.format)
        if chars:
            output.events.append(Recast(chars, "call"))
        spans = output.spans.to_list()
        behind = [Span(max(span.start, end), span.end, span.kind) for span in spans if span.end > end]
        output.spans.replace(_before(spans, start) + shifted(piece.spans, start) + behind)
        message = f"the call was written as {piece.reply.format} writes it"
        for part in piece.reply.parts:
            if isinstance(part, Call):
                self._builder.adopt(part, Problem("rescued", message, blocking=False))
            else:
                output.events.append(part)
        output.events.extend(_problems_of_no_call(piece.reply))


def _problems_of_no_call(reply: Reply) -> list[Problem]:
    """Return the problems of the reply that belong to no call."""
    return [problem for problem in reply.problems if problem.call is None]


def _before(spans: list[Span], end: int) -> list[Span]:
    """Return the spans that begin before the position `end`; one that goes on behind it is shortened."""
    return [Span(span.start, min(span.end, end), span.kind) for span in spans if span.start < end]


def withheld_notes(reasoning: Reply, spans: list[Span]) -> list[Problem]:
    """Return a near miss for each call in `reasoning`, a reply parsed from reasoning where its calls stay, at most
    eight; if the calls have no spans, one note `opener_without_call`. Empty without calls. `spans` are those of the
    reasoning, in positions of the whole reply."""
    places = [span for span in spans if span.kind == "call"]
    if reasoning.attempts and not places:  # one of which nothing but the name is there
        return [_OPENED_IN_REASONING]
    calls = list(zip(reasoning.attempts, places, strict=False))[:_MOST_NOTES]
    return [
        near_miss_in_reasoning(near_miss(call.name, span.start, span.end, reasoning.format)) for call, span in calls
    ]


def last_calls(reply: Reply) -> tuple[int, int]:
    """Return how many calls a text ends with, and the position where they begin, with the markers before them: only
    markers are between and behind them. (0, 0) if it does not end with calls. The reply must have its spans."""
    spans = list(reply.spans or ())
    first = _first_of_last_calls(spans)
    if first is None:
        return 0, 0
    return sum(isinstance(part, Call) for part in _parts_from(Piece(reply, spans), first)), first


def _first_of_last_calls(spans: list[Span]) -> int | None:
    """Return the position where the calls at the end of a text begin, with the markers before, between and behind them;
    None if text or reasoning is at its end, or nothing but markers."""
    first, has_call = None, False
    for span in reversed(spans):
        if span.kind not in ("call", "marker"):
            break
        first, has_call = span.start, has_call or span.kind == "call"
    return first if has_call else None


def _first_call(spans: list[Span]) -> int | None:
    """Return the position where the first call begins, or the marker directly before it; None if there is no call."""
    for i, span in enumerate(spans):
        if span.kind == "call":
            return spans[i - 1].start if i and spans[i - 1].kind == "marker" else span.start
    return None


def _parts_from(piece: Piece, first: int) -> tuple[Part, ...]:
    """Return the parts of a piece from its first call at or behind the position `first` on, text and reasoning behind
    that call included; empty if there is no such call."""
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
