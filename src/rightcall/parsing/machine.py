"""The run through a reply: text, reasoning, sections, channels, blocks of calls.

Where the run is, is a value, its state; what was read is in the buffer, what was made of it in the output. `feed` and
`close` resume one generator; a whole text takes the same steps, none of which waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rightcall.ids import Ids
from rightcall.parsing.beginnings import (
    first_of_reply,
    first_tag,
    hold_calls,
    may_be_tag,
    open_reasoning,
    try_bare,
    try_headless,
    try_line,
    unhold_calls,
)
from rightcall.parsing.blocks import Block, Ending
from rightcall.parsing.body_reader import WholeBlock
from rightcall.parsing.buffer import MAX_PIECE, MAX_PIECES, Capture, Sink, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.closes_of_calls import (
    begin_calls,
    end_cut_message,
    end_to_tool,
    leave_section,
    settle_calls,
    settle_ended,
    take_cut_marker,
    tell_too_many,
)
from rightcall.parsing.compile import LEVELS, Compiled
from rightcall.parsing.format_markers import Sign
from rightcall.parsing.markers import BLANKS
from rightcall.parsing.options import ReadOptions
from rightcall.parsing.rehearsal import Rehearsal, begin, stands, take_back
from rightcall.parsing.scan import Scan
from rightcall.parsing.shown import OUTSIDE
from rightcall.parsing.signs import ACTIONS
from rightcall.parsing.states import Due, Held, InChannel, InReasoning, InSection, InText, State
from rightcall.types import Event, Text

_OUTSIDE = frozenset((InText, InSection))
_DUE: dict[Ending, Due] = {"due": "due", "late": "late"}
_IN_TEXT, _MAY_BE_LATE = InText(), InText(late=True)

MOST_OPENERS = 10_000  # that hold no call; each costs as much as some hundred characters of text


class Machine:
    """Reads one reply in one format. `feed` and `close` put events into `output.events`."""

    __slots__ = (
        *("_sink", "_steps", "compiled", "direct", "due_to", "format_name", "has_thought", "held", "in_content"),
        *("is_cut", "is_over", "is_whole", "max_end"),
        *("output", "p", "refused", "rehearsal", "state", "thought", "thought_end", "words_from"),
    )

    def __init__(self, compiled: Compiled, options: ReadOptions, ids: Ids) -> None:
        self.thought: int | None = None  # where the last reasoning began that nothing was said or called behind
        self.held: Held | None = None
        self.rehearsal: Rehearsal | None = None  # a special token stood inside a thought that is not closed
        self.thought_end: int | None = None  # where the last thought was closed
        self.has_thought = False  # reasoning was opened
        self.due_to: int | None = None  # a header said that a call follows: how many there were before it
        self.words_from = 0  # how much was said before a place where nothing but calls belongs
        self.in_content = False  # a marker that opens text was seen, and not yet its close
        self.refused = 0  # how many calls outside all blocks were none that may run
        self.is_over = False  # the reply was longer than it may be
        self.is_whole = False  # no marker that is still arriving begins in what was fed
        self.is_cut = False  # the answer was cut off
        self.p = CallBuilder(compiled, options, ids)
        self.output = self.p.output
        self.compiled = compiled
        self.max_end = options.limits.reply  # a text that is longer is cut off there
        self._sink: Sink | None = None  # that of the buffer, while the reply has room for all that it may consume
        self.direct: Sink | None = None  # the same, where its events can go out at once, so that `feed` is not needed
        self.format_name = compiled.format.name
        self.state: State = _IN_TEXT if compiled.format.reasoning is None else _MAY_BE_LATE
        if options.reasoning == "open":
            open_reasoning(self)
        self._steps = self._run()

    def think_in_tags(self) -> None:
        self.compiled = self.p.compiled = self.compiled.tagged
        self.think()

    def take(self) -> list[Event]:
        """The events so far; they are given once."""
        waiting = self.rehearsal or self.held
        if waiting is not None:
            events = waiting.ready[:]
            if events:
                waiting.ready.clear()
            return events
        events, self.output.events = self.output.events, []
        return events

    # -- as it arrives -------------------------------------------------------------------------------------------------

    def feed(self, text: str) -> None:
        p, sink = self.p, self._sink
        if sink is not None and (events := sink(text)) is not None:
            self.output.events += events
            return
        p.commit()
        room = self.max_end - p.base - len(p.buf)
        if len(text) > room:
            self._overflow(text, room)
            return
        if p.sink is not None and (events := p.sink(text)) is not None:
            self.output.events += events
        else:
            p.more(text)
            next(self._steps)
        # Events wait while a thought or a held call may still be taken back.
        is_waiting = self.held is not None or self.rehearsal is not None or p.told is not None
        self._sink = p.sink if room > MAX_PIECES * MAX_PIECE + len(text) else None
        self.direct = None if is_waiting else self._sink

    def feed_all(self, text: str) -> None:
        """As `feed`, of all the text there is: it is read when it is closed, its end known."""
        room = self.max_end - self.p.base - len(self.p.buf)
        if len(text) > room:
            self._overflow(text, room)
        else:
            self.p.more(text)

    def say_held(self) -> None:
        """What another reading knows to be a marker follows: no marker begins in what was fed."""
        if self.p.pos < len(self.p.buf):
            self.is_whole = True
            next(self._steps)
            self.is_whole = False

    def close(self, *, cut: bool = False) -> None:
        """The text ends, or was `cut` off: then a thought that is open was not left for a call."""
        p = self.p
        if not p.ended:
            p.commit()
            p.ended, self.is_cut = True, cut
            p.sink = self.direct = self._sink = None
            next(self._steps, None)  # the last: with its frame goes the machine's only reference to itself

    def stop(self) -> None:
        """Nothing more is read here."""
        self._steps.close()

    def skip(self, text: str) -> None:
        """The whole text is dealt with elsewhere."""
        self.stop()
        p = self.p
        p.more(text)
        p.pos, p.ended = len(p.buf), True

    def _overflow(self, text: str, room: int) -> None:
        """Text past the limit is text, whatever it holds."""
        p = self.p
        if not self.is_over:
            if room:
                self.feed(text[:room])
            self.close()
            self.is_over = True
            p.problem("too_large", f"the reply is longer than {p.limits.reply} characters; the rest was not read")
            text = text[room:]
        self.output.events.append(Text(text))
        p.more(text)
        p.pos = len(p.buf)
        self.output.mark("text", p.at)

    # -- the run -------------------------------------------------------------------------------------------------------

    def _run(self) -> Steps[None]:
        p, output, think = self.p, self.output, self.compiled.think
        has_tag = think is not None and may_be_tag(p.buf) and (yield from first_tag(self, think))
        if self.compiled.looks_first and not has_tag:
            yield from first_of_reply(self, self.compiled)
        compiled = self.compiled
        may_begin, lines, headless, text = compiled.may_begin, compiled.lines, compiled.headless, compiled.text
        tries = may_begin or lines or headless is not None
        while True:
            if tries and output.at_start and not output.thinking and p.pos < len(p.buf):
                if may_begin:
                    if p.buf[p.pos] == compiled.not_bare:
                        output.at_start = False
                    elif (yield from try_bare(self)):
                        continue
                if lines and (yield from try_line(self)):
                    continue
                if (
                    headless is not None
                    and p.index == 0
                    and output.is_silent
                    and (yield from try_headless(self, headless))
                ):
                    continue
            scan = text if type(self.state) in _OUTSIDE else self._scan()
            found = (scan.ended if p.ended or self.is_whole else scan.search)(p.buf, p.pos)
            end = len(p.buf) if found is None else found.start()
            if end > p.pos:
                if found is None and p.ended and output.fresh and not output.thinking:
                    take_cut_marker(self)
                if output.fresh and self.held is None and not p.buf[p.pos : end].strip(BLANKS):
                    output.hold_blanks(p.buf[p.pos : end], p.base + end)
                    p.pos = end
                else:
                    self.say(end)
            if found is not None and (group := found.lastindex):
                sign = scan.actions[group]
                if p.told is not None and sign.is_token and p.is_letters(end, found.end()):
                    self.say_exactly(end + 1)
                    continue
                steps = ACTIONS[sign.action](self, found, sign)
                if steps:  # most markers are dealt with at once
                    yield from steps
            elif p.ended:
                break
            else:
                yield
        if p.pending is not None:
            end_to_tool(self, marked=False)
            settle_calls(self)
        if type(self.state) is InSection:
            leave_section(self)
        output.last_blanks(p.base + p.pos)
        if self.held is not None:
            self.release()
        if self.due_to is not None:
            end_cut_message(self)
        if self.rehearsal is not None:
            if self.is_cut:
                self.rehearsed(self.rehearsal)
                self.state = InReasoning()
                output.last_blanks(p.at)
            self.trust()

    def _scan(self) -> Scan[Sign]:
        """What to look for next."""
        state = self.state
        if isinstance(state, InReasoning):
            return self.compiled.reasoning_in_content if self.in_content else self.compiled.reasoning
        return self.compiled.message if isinstance(state, InChannel) else self.compiled.text

    def say(self, end: int) -> None:
        """Takes text up to there."""
        p = self.p
        text = p.buf[p.pos : end]
        if self.held is not None and text.strip(BLANKS):
            unhold_calls(self, self.held)
        p.pos = end
        self.output.say(text, p.base + end)
        if self.thought is not None and not self.output.fresh:
            self.forget_thought()

    def say_exactly(self, end: int) -> None:
        """Takes text up to there, to the byte."""
        p = self.p
        if self.held is not None:
            unhold_calls(self, self.held)
        text = p.buf[p.pos : end]
        p.pos = end
        self.output.say_exactly(text, p.at)
        if self.thought is not None:
            self.forget_thought()

    def marker(self, end: int) -> None:
        """Takes a marker up to there."""
        self.p.pos = end
        self.output.marker(self.p.base + end)

    def is_shown(self, found: re.Match[str], sign: Sign) -> bool:
        """Is this marker only shown? Then it is text, and so is every token in it and all that it opens."""
        if self.output.shown.is_new:
            return False
        level = LEVELS.get(sign.action, OUTSIDE)
        if self.p.told is not None and self.p.is_token(found.start(), found.end()):
            return False
        if not self.output.shows(level, special=sign.special):
            return False
        self.say_exactly(found.end())
        self.output.shown.join_lines()
        if level in self.compiled.ends_shown:
            self.output.shown.enter(level, self.compiled.ends_shown[level])
        return True

    def release(self) -> None:
        """What was held were calls."""
        if self.held is not None:
            self.p.drop(self.held.start)
            self.held.ready.extend(self.output.events)  # in place: there may be many of them, and many times
            self.output.events = self.held.ready
            self.held = None

    # -- calls ---------------------------------------------------------------------------------------------------------

    def block(
        self, start: int, bare: bool = False, special: bool = False, headless: bool = False, inner: bool = False
    ) -> Iterable[None]:
        """A block of calls: at once if all of it is there and as usual, else step by step."""
        p, before, compiled = self.p, self.state, self.compiled
        first = p.index
        if p.pending is not None:
            settle_ended(self)
        if bare:
            if first == 0 and self.held is None and compiled.may_begin:
                hold_calls(self)
        else:
            if self.thought is not None:
                self.forget_thought()  # whatever comes of it
            if self.held is not None:
                self.release()
            if compiled.section_start is not None:
                if type(before) is not InSection:
                    begin_calls(self)
                    self.state = InSection(first)
                elif before.due:
                    self.state = InSection(before.before, before.is_open)
        # An object is what the chosen tool is given, whatever it looks like.
        quick = None if p.in_doubt or (compiled.named and p.options.choice) else compiled.quick
        whole = quick(p, start, bare) if quick is not None else None
        if whole is not None and first + len(whole[0]) > p.limits.calls:
            whole = None
        if whole is None or not whole[2] or (bare and compiled.call_close is not None):
            block = Block(p, bare=bare, special=special, headless=headless, inner=inner)
            return self._block(block, start, whole, before)
        self._take_whole(whole, 0)
        self.thought = None
        if p.buf[p.pos - 1] <= " ":
            self._pass_blanks(p.buf[whole[0][-1][1] : p.pos])
        if compiled.section_start is None:
            self.state = _IN_TEXT
        return ()

    def _block(self, block: Block, start: int, whole: WholeBlock | None, before: State) -> Steps[None]:
        p, first, at = self.p, self.p.index, self.p.pos
        taken = p.capture()
        if whole is not None and not whole[2]:
            if not p.live:
                yield  # once: the text may end here, or go on with something else
            start += p.pos - at
            whole = whole if self.compiled.readers[0].is_over(p, whole[1] + p.pos - at) else None
        if whole is None:
            ending = yield from block.read(start)
        else:
            self._take_whole(whole, p.pos - at)
            ending = (yield from block.end()) if block.bare else "closed"
        self.end_block(taken)
        self._after_block(ending, before, first)
        if ending == "full":
            yield from self.rest_is_text()
        elif p.notes.get("opener_without_call", 0) >= MOST_OPENERS:
            yield from self.rest_is_text(f"more than {MOST_OPENERS} openers that hold no call")

    def _take_whole(self, whole: WholeBlock, moved: int) -> None:
        """Takes the calls of a block, whose places have moved by so much since they were found."""
        p, output = self.p, self.output
        calls, end, _ = whole
        for call in calls:
            p.whole_call(call, moved)
        p.pos = end = end + moved
        output.fresh = output.at_start = True
        output.mark("marker", p.base + end)

    def end_block(self, taken: Capture) -> None:
        """Calls were read since that capture, which is over."""
        p = self.p
        if self.output.fresh and p.buf[p.pos - 1 : p.pos] <= " ":
            self._pass_blanks(p.captured(taken))
        p.drop(taken)

    def _pass_blanks(self, text: str) -> None:
        """The blanks that this text ends with say whether what follows the calls in it begins a line."""
        self.output.hold_blanks(text[len(text.rstrip(BLANKS)) :], self.p.at)

    def _after_block(self, ending: Ending, before: State, first: int) -> None:
        if self.p.index > first:
            before = _IN_TEXT
            self.thought = None
        elif first == 0:
            self.release()
        if ending == "text":
            self.state = before
        elif type(self.state) is InSection:
            if self.state.due or ending in _DUE:
                self.state = InSection(self.state.before, self.state.is_open, _DUE.get(ending, ""))
        else:
            self.state = InText(due=_DUE[ending]) if ending in _DUE else _IN_TEXT

    def rest_is_text(self, much: str = "") -> Steps[None]:
        """There is more than there may be, by itself of calls: everything from here on is text."""
        p = self.p
        self.release()  # they are more than enough to be calls, whatever follows
        self.trust()
        tell_too_many(p, much)
        while True:
            if p.pos < len(p.buf):
                self.say_exactly(len(p.buf))
            if p.ended:
                return
            yield

    # -- reasoning -----------------------------------------------------------------------------------------------------

    def think(self) -> None:
        self.thought, self.thought_end, self.has_thought = self.p.at, None, True
        self.state = InReasoning()
        self.output.turn(thinking=True)

    def forget_thought(self) -> None:
        """What was thought last is not looked at again: something was said or called behind it, or was about to be."""
        if not isinstance(self.state, InReasoning):
            self.thought = None

    def leave_reasoning(self) -> None:
        """A special token says that the model has stopped thinking."""
        if isinstance(self.state, InReasoning):
            self.state = InText()
            self.output.turn(thinking=False)
            self.output.settle()

    def leave_for_call(self) -> None:
        """The same for one that opens a call, until the thought is closed after all."""
        if isinstance(self.state, InReasoning):
            self.rehearsal = begin(self)
            self.leave_reasoning()

    def trust(self) -> None:
        """What stood behind a thought that was not closed is what it seemed to be."""
        if self.rehearsal is not None:
            stands(self, self.rehearsal)
            self.rehearsal = None

    def rehearsed(self, kept: Rehearsal) -> None:
        """The thought went on: what was read as calls and text was part of it."""
        if self.held is not None:
            self.p.drop(self.held.start)
        self.rehearsal = self.held = None
        self.in_content, self.due_to = False, None
        take_back(self, kept)
