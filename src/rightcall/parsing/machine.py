"""The state machine that reads one reply in one format: text, reasoning, sections, messages and blocks of calls.

`Machine.feed` and `Machine.close` resume one generator. Its loop looks for the next marker of the current state and
runs the handler of that marker; a whole text takes the same steps as a stream, none of which waits. What has arrived is
in the `builder` (a `Buffer`), what was made of it goes to the `output`.

Invariants:
- An opener is never silent: it gives a call, a rejected call, or a note.
- Text between a call's arguments and its closing marker rejects the call. Text behind that marker is text, also where
  only calls belong; then a note reports it.
- A call without its closing marker keeps a note (`unclosed`) if text stands in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from rightcall.formats.spec import Special
from rightcall.ids import Ids
from rightcall.parsing.blocks import Block, Ending, read_message, take_whole_message
from rightcall.parsing.bodies.ts_call import LINE, WRAPPED, call_parts, labelled
from rightcall.parsing.body_reader import WholeBlock
from rightcall.parsing.buffer import MAX_PIECE, MAX_PIECES, Capture, Sink, Steps
from rightcall.parsing.call_builder import CallBuilder, declared, names_in
from rightcall.parsing.compile import LEVELS, THINK_OPENS, Action, Compiled, Sign, is_sentence
from rightcall.parsing.headers import (
    Header,
    closes_only_calls,
    header_of,
    holds_structure,
    is_begun,
    start_of_header,
    was_to_tool,
)
from rightcall.parsing.markers import BLANKS, MAX_BLANKS, Pat, Probe, Scan
from rightcall.parsing.options import ReadOptions
from rightcall.parsing.output import Snapshot
from rightcall.parsing.shown import BODY, OUTSIDE
from rightcall.parsing.shown.line_starts import RECORD
from rightcall.tools.checks import listing
from rightcall.types import CallEnd, CallStart, Done, Event, Text

AwaitedClose = Literal["", "due", "late"]  # of no call; of a call that a marker opened; of one that none opened
Match = re.Match[str]


class InText(msgspec.Struct, frozen=True):
    """Outside everything.

    - `late`: nothing contradicts yet that the prompt opened the reasoning.
    - `due`: whether the closing marker of the last block is missing and may still come.
    - `mentions`: an opening marker of reasoning was only shown; so may be its closing marker.
    """

    late: bool = False
    due: AwaitedClose = ""
    mentions: bool = False


class InSection(msgspec.Struct, frozen=True):
    """Between the markers around all calls.

    - `before`: the number of calls before the section.
    - `is_open`: the opening marker of the section was there.
    - `due`: as in `InText`.
    """

    before: int
    is_open: bool = False
    due: AwaitedClose = ""


class InReasoning(msgspec.Struct, frozen=True):
    """Inside reasoning."""


class InChannel(msgspec.Struct, frozen=True):
    """Inside a message whose header says that it holds no call."""

    kind: Literal["reasoning", "content"]


State = InText | InSection | InReasoning | InChannel


class Speculation(msgspec.Struct, frozen=True):
    """The state before text that may have to be read as something else: what a commit keeps and a rollback restores.

    Two things are speculative: calls without any marker, which count only if the reply is nothing else (`held`), and
    everything behind a special token inside reasoning, which is reasoning if its closing marker comes after all
    (`in_thought`). At most one of each is open, the first inside the second.
    """

    start: Capture
    ready: list[Event]  # events that may go out
    output: Snapshot
    index: int
    notes: dict[str, int]
    thought: int | None


_OUTSIDE = frozenset((InText, InSection))
_AWAITED: dict[Ending, AwaitedClose] = {"due": "due", "late": "late"}
_IN_TEXT, _MAY_BE_LATE = InText(), InText(late=True)
MOST_OPENERS = 10_000  # that hold no call; each costs as much as some hundred characters of text
_LONGEST_MARKER = 512  # characters of a marker behind its first token, the names in it included
_MAX_HEADER = 256
_LOOKAHEAD = 64  # characters behind a marker that show whether it is only shown
_OPENING_ACTIONS = frozenset(("section", "call", "body"))
_NOTHING_MORE = re.compile(r"[ \t\r\n]*+\Z").match
_WORD = re.compile(r"[\w.\-]++").fullmatch
_IS_NAME = re.compile(r"[\w$.\-]++").fullmatch
# Lines in which neither a call nor a marker can begin: taken at once.
PLAIN_LINES = re.compile(r"(?:[^(<`~\n]*+\n)++").match
QUOTES = frozenset("`'\"")
# The end of a code span, a quotation or a code fence.
_FENCE = r"[ \t]{0,16}+\r?\n[ \t]{0,3}+"
SHOWN_ENDS = Probe(
    Pat(rf"(?:[`'\"”’»›」』]|{_FENCE}(?:`{{3}}|~{{3}}))", rf"(?:{_FENCE}(?:`{{0,2}}+|~{{0,2}}+)|[ \t]{{0,16}}+\r?+)")
)
_TEXT_BEFORE_CLOSE = "words stand between the call's arguments and what closes the call"


def may_be_think_tag(text: str) -> bool:
    """May a reply that begins so begin with `<think>`, with blanks before it?"""
    begun = text[:2] if text[:1] > " " else text.lstrip(BLANKS)[:2]
    return THINK_OPENS.startswith(begun)


def _names_tool(p: CallBuilder, opener: str) -> bool:
    return any(declared(word, p.tools) for word in names_in(opener))


class Machine:
    """Reads one reply in one format. `feed` and `close` put events into `output.events`."""

    __slots__ = (
        *("_sink", "_steps", "compiled", "direct", "due_to", "format_name", "has_thought", "held", "in_content"),
        *("in_thought", "is_cut", "is_over", "is_whole", "max_end"),
        *("output", "p", "refused", "state", "thought", "thought_end", "words_from"),
    )

    def __init__(self, compiled: Compiled, options: ReadOptions, ids: Ids) -> None:
        self.thought: int | None = None  # where the last reasoning began that nothing was said or called behind
        self.held: Speculation | None = None  # calls without any marker
        self.in_thought: Speculation | None = None  # what follows a special token inside reasoning
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
            self._open_reasoning()
        self._steps = self._run()

    def think_in_tags(self) -> None:
        self.compiled = self.p.compiled = self.compiled.tagged
        self.think()

    def take(self) -> list[Event]:
        """The events so far; they are given once."""
        waiting = self.in_thought or self.held
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
        is_waiting = self.held is not None or self.in_thought is not None or p.told is not None
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
        has_tag = think is not None and may_be_think_tag(p.buf) and (yield from self._read_first_tag(think))
        if self.compiled.looks_first and not has_tag:
            yield from self._read_first_marker(self.compiled)
        compiled = self.compiled
        may_begin, lines, headless, text = compiled.may_begin, compiled.lines, compiled.headless, compiled.text
        tries = may_begin or lines or headless is not None
        while True:
            if tries and output.at_start and not output.thinking and p.pos < len(p.buf):
                if may_begin:
                    if p.buf[p.pos] == compiled.not_bare:
                        output.at_start = False
                    elif (yield from self._try_bare()):
                        continue
                if lines and (yield from self._try_line()):
                    continue
                if (
                    headless is not None
                    and p.index == 0
                    and output.is_silent
                    and (yield from self._try_headless(headless))
                ):
                    continue
            scan = text if type(self.state) in _OUTSIDE else self._scan()
            found = (scan.ended if p.ended or self.is_whole else scan.search)(p.buf, p.pos)
            end = len(p.buf) if found is None else found.start()
            if end > p.pos:
                if found is None and p.ended and output.fresh and not output.thinking:
                    self._take_truncated_closer()
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
                steps = _HANDLERS[sign.action](self, found, sign)
                if steps:  # most markers are dealt with at once
                    yield from steps
            elif p.ended:
                break
            else:
                yield
        if p.pending is not None:
            self._end_tool_message(marked=False)
            self._finalize_calls()
        if type(self.state) is InSection:
            self._leave_section()
        output.last_blanks(p.base + p.pos)
        if self.held is not None:
            self.release()
        if self.due_to is not None:
            self._end_cut_message()
        if self.in_thought is not None:
            if self.is_cut:
                self.return_to_reasoning()
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
            self._unhold_calls(self.held)
        p.pos = end
        self.output.say(text, p.base + end)
        if self.thought is not None and not self.output.fresh:
            self.forget_thought()

    def say_exactly(self, end: int) -> None:
        """Takes text up to there, to the byte."""
        p = self.p
        if self.held is not None:
            self._unhold_calls(self.held)
        text = p.buf[p.pos : end]
        p.pos = end
        self.output.say_exactly(text, p.at)
        if self.thought is not None:
            self.forget_thought()

    def marker(self, end: int) -> None:
        """Takes a marker up to there."""
        self.p.pos = end
        self.output.marker(self.p.base + end)

    def is_shown(self, found: Match, sign: Sign) -> bool:
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
        """What was held are calls."""
        if self.held is not None:
            self._commit(self.held)
            self.held = None

    # -- speculation ---------------------------------------------------------------------------------------------------

    def _speculate(self) -> Speculation:
        """Begin to read text that may have to be read as something else. Nothing goes out until that is decided."""
        p, output = self.p, self.output
        ready, output.events = output.events, []
        return Speculation(p.capture(), ready, output.snapshot(), p.index, dict(p.notes), self.thought)

    def _commit(self, begun: Speculation) -> None:
        """What was read since is final."""
        self.p.drop(begun.start)
        begun.ready.extend(self.output.events)  # in place: there may be many of them, and many times
        self.output.events = begun.ready

    def _rollback(self, begun: Speculation) -> str:
        """Nothing of what was read since counts. Returns its text, which was taken."""
        p, output = self.p, self.output
        ends = [event.call.id for event in output.events if isinstance(event, CallEnd)]
        p.ids.forget([*ends, *[event.id for event in output.events if isinstance(event, CallStart)]])
        p.index, p.pending, p.notes = begun.index, None, begun.notes
        output.restore(begun.output, begun.ready)
        self.thought = begun.thought
        return p.release(begun.start)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def block(
        self, start: int, bare: bool = False, special: bool = False, headless: bool = False, inner: bool = False
    ) -> Iterable[None]:
        """A block of calls: at once if all of it is there and as usual, else step by step."""
        p, before, compiled = self.p, self.state, self.compiled
        first = p.index
        if p.pending is not None:
            self._finalize_at_turn_end()
        if bare:
            if first == 0 and self.held is None and compiled.may_begin:
                self.held = self._speculate()
        else:
            if self.thought is not None:
                self.forget_thought()  # whatever comes of it
            if self.held is not None:
                self.release()
            if compiled.section_start is not None:
                if type(before) is not InSection:
                    self._begin_calls()
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
            if self.state.due or ending in _AWAITED:
                self.state = InSection(self.state.before, self.state.is_open, _AWAITED.get(ending, ""))
        else:
            self.state = InText(due=_AWAITED[ending]) if ending in _AWAITED else _IN_TEXT

    def rest_is_text(self, much: str = "") -> Steps[None]:
        """There is more than there may be, by itself of calls: everything from here on is text."""
        p = self.p
        self.release()  # they are more than enough to be calls, whatever follows
        self.trust()
        p.report_too_many(much)
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
        """The same for one that opens a call, until the reasoning is closed after all."""
        if isinstance(self.state, InReasoning):
            self.in_thought = self._speculate()
            self.p.in_thought = True
            self.leave_reasoning()

    def trust(self) -> None:
        """Reasoning that is never closed ended at the special token behind it."""
        if self.in_thought is not None:
            self.p.in_thought = False
            self._commit(self.in_thought)
            self.in_thought = None

    def return_to_reasoning(self) -> None:
        """The reasoning is closed here: what was read as calls and text behind a special token was part of it."""
        if self.in_thought is None:
            return
        if self.held is not None:
            self.p.drop(self.held.start)
        begun, self.in_thought, self.held = self.in_thought, None, None
        self.in_content, self.due_to, self.p.in_thought = False, None, False
        text = self._rollback(begun)
        self.output.say(text, self.p.at)

    # -- markers --

    def _on_call(self, found: Match, sign: Sign) -> Iterable[None]:
        if not self.output.shown.is_new and self.is_shown(found, sign):
            return ()
        if (edges := self.compiled.name_edges) is not None and not self._read_opener_name(found.group()):
            return self._on_cut_opener(re.compile(re.escape(edges[0])), sign)
        if type(self.state) is InReasoning:
            self.leave_for_call()
        return self.block(found.end(), False, sign.special)

    def _on_cut_opener(self, opens: re.Pattern[str], sign: Sign) -> Iterable[None]:
        """The text ends inside the opener of a call, at or behind a name; or with a word, if no tool has that name and
        nothing stands behind it."""
        p = self.p
        start = opens.match(p.buf, p.pos)
        assert start is not None
        if p.buf.endswith(p.said) and not (p.tools is not None and p.said in p.tools):
            return self._on_end(start, sign)
        self.leave_for_call()
        self._finalize_calls()
        self._leave_section()
        self.output.settle()
        self.marker(start.end())
        p.fail_truncated()
        self.forget_thought()
        return ()

    def _on_body(self, found: Match, sign: Sign) -> Iterable[None]:
        if not self.output.shown.is_new and self.is_shown(found, sign):
            return ()
        if type(self.state) is InReasoning:
            self.leave_for_call()
        before = self.p.at
        steps = self.block(found.start(), False, sign.special, False, True)
        return self._read_body(steps, before) if steps else ()

    def _read_body(self, steps: Iterable[None], before: int) -> Steps[None]:
        yield from steps
        if self.p.at == before:  # nothing was taken: its first character is text
            self.say_exactly(self.p.pos + 1)

    def _on_section(self, found: Match, sign: Sign) -> Iterable[None]:
        if not self.output.shown.is_new and self.is_shown(found, sign):
            return ()
        p = self.p
        if type(self.state) is InReasoning:
            self.leave_for_call()
        if self.thought is not None:
            self.forget_thought()
        if p.pending is not None:
            self._finalize_at_turn_end()
        if type(self.state) is InSection:
            self._leave_section()
        size, start = found.end() - p.pos, self.compiled.section_start
        assert start is not None
        if start.at(p.buf, p.pos, p.ended):
            self._open_section(size)
            return ()
        return self._read_doubtful_section(size, sign, start)

    def _read_doubtful_section(self, size: int, sign: Sign, start: Probe) -> Steps[None]:
        """What opens a section, where it is not clear yet that it does."""
        p = self.p
        if (yield from p.test(start)):
            self._open_section(size)
            return
        before, self.state = self.state, InSection(p.index, is_open=True)
        self._begin_calls()
        block, taken = Block(p, bare=False, special=sign.special, is_odd=True), p.capture()
        ending = yield from block.read(p.pos + size)
        if ending == "text":
            self.state = before
        self.end_block(taken)
        if ending == "full":
            yield from self.rest_is_text()

    def _open_section(self, size: int) -> None:
        p = self.p
        self.state = InSection(p.index, True)
        self._begin_calls()
        self.marker(p.pos + size)
        if p.ended and p.buf[p.pos : p.pos + 1] <= " " and _NOTHING_MORE(p.buf, p.pos) and not p.known_name():
            p.problem("truncated", "the text ended where a tool call was about to begin")

    def _on_section_close(self, found: Match, sign: Sign) -> Iterable[None]:
        if isinstance(self.state, InSection):
            if self.state.before == self.p.index:
                self.p.note("opener_without_call", f"the section of calls that ends at {self.p.at} holds none")
            elif self.state.due == "due":
                self._reject_text_before_close()
                self._report_unclosed()
            elif self.output.text_chars > self.words_from:
                self._report_text("section of calls")
            self.state = InText()
            self.marker(found.end())
        elif not self.is_shown(found, sign):
            self._drop_stray(found.group(), sign)
        return ()

    def _on_closer(self, found: Match, sign: Sign) -> Iterable[None]:
        """What closes a call: of one whose close had not come yet, or of none."""
        is_late = self._awaits_close()
        if not (is_late and sign.special) and self.is_shown(found, sign):
            return ()
        if is_late:
            self._close_late()
            self.marker(found.end())
        elif self.p.pending is not None and self.p.in_doubt:
            self._reject_pending_at(found)
        else:
            self._drop_stray(found.group(), sign)
        return ()

    def _reject_pending_at(self, found: Match) -> None:
        """A marker that closes a call, or what is in one, stands behind a call that is over."""
        self._reject_pending(found.group())
        self.marker(found.end())

    def _reject_pending(self, marker: str) -> None:
        self.p.block_pending(
            "ambiguous_end",
            f"{marker[:60]!r} stands behind the call, so that its end is not certain; "
            "send the call again without its own closing markers inside a value",
        )

    def _is_pending_unclosed(self) -> bool:
        """Was the last call not closed? Then what shows a marker behind it may be left of the call itself."""
        return self.p.pending is not None and any(each.code == "unclosed" for each in self.p.pending[1].problems)

    def _on_value_close(self, found: Match, sign: Sign) -> Iterable[None]:
        """What ends a value, or the body, where values are raw: behind a call it says that the call had not ended."""
        p = self.p
        for other, is_it in self.compiled.closing:
            if is_it(found.group()):  # a closing tag that is named after an argument may be any other
                return _HANDLERS[other.action](self, found, other)
        marker = found.group()
        if self.is_shown(found, sign):
            if self._is_pending_unclosed():
                self._reject_pending(marker)
            return ()
        is_doubled = self.output.fresh and any(is_it(found.group()) for is_it in self.compiled.body_is_call)
        if p.pending is not None and not is_doubled:
            self._reject_pending_at(found)
        else:
            self._drop_stray(found.group(), sign)
        return ()

    def _on_content(self, found: Match, sign: Sign) -> Iterable[None]:
        if self.is_shown(found, sign):
            self.output.shown.messages += 1
            return ()
        self.leave_for_call()
        self.in_content = True
        self.marker(found.end())
        return ()

    def _on_content_close(self, found: Match, sign: Sign) -> Steps[None]:
        if isinstance(self.state, InReasoning):  # that was opened inside the text
            self.thought_end = self.p.at
            self.leave_reasoning()
            self.in_content = False
            self.marker(found.end())
        elif self._closes_thought(found.group()):
            yield from self._on_think_close(found, sign)
        elif (yield from self._is_shown_closing(found.group(), sign)):
            self.say_exactly(self.p.pos + len(found.group()))
        elif (
            self._awaits_close()
            and not self.in_content
            and any(is_it(found.group()) for _, is_it in self.compiled.closing)
        ):
            self._close_late()
            self.marker(self.p.pos + len(found.group()))
        elif self.in_content or not sign.special:
            self.in_content = False
            self.marker(self.p.pos + len(found.group()))
            self.output.go_on_line()
        else:
            self._drop_stray(found.group(), sign)

    def _closes_thought(self, marker: str) -> bool:
        """Does what ends a message end a thought that a call stood in? Nothing else is open then."""
        is_open = self.in_thought is not None and not self.in_content and not self._awaits_close()
        return is_open and any(is_it(marker) for is_it in self.compiled.ends_thought)

    def _on_inline(self, found: Match, sign: Sign) -> Iterable[None]:
        if not self.is_shown(found, sign):
            self.p.pos = found.end()
            self.output.skip(self.p.at)
        return ()

    def _on_tag(self, found: Match, sign: Sign) -> Iterable[None]:
        """A block of text begins or ends. A code fence that was left open ends with it."""
        tag = self.compiled.tags[found.group()]
        if tag and self.is_shown(found, sign):
            return ()
        output = self.output
        self.state = InText()
        output.turn(thinking=False)
        output.tag = tag
        output.is_placed = output.is_placed or bool(tag)
        self.marker(found.end())
        output.at_start = True
        return ()

    def _on_done(self, found: Match, sign: Sign) -> Iterable[None]:
        protocol = self.compiled.format.protocol
        if self.is_shown(found, sign) or protocol is None:
            return ()
        opens, closes = protocol.done
        self.output.events.append(Done(found.group()[len(opens.strip()) : -len(closes.strip())].strip()))
        self.output.is_placed = True
        self.marker(found.end())
        self.output.at_start = True
        return ()

    def _on_line(self, found: Match, sign: Sign) -> Iterable[None]:
        self.say(found.end())
        self.output.at_start = not self.output.tag
        return ()

    def _on_end(self, found: Match, sign: Sign) -> Steps[None]:
        p = self.p
        marker = found.group()
        # Behind a call or another marker nothing shows it.
        if not self.output.fresh and (yield from self._is_shown_closing(marker, sign)):
            self.say_exactly(p.pos + len(marker))
            return
        if self.in_thought is not None and self._closes_thought(marker):
            yield from self._on_think_close(found, sign)
            return
        self._end_tool_message()
        self._finalize_at_turn_end()
        if marker.startswith(self.compiled.first_tokens) and self._take_truncated_marker(marker):
            return
        p.said = ""
        self.release()
        if self.due_to is None and not self.output.fresh and closes_only_calls(self.compiled.channels, marker):
            self.due_to = p.index  # it ends like a call, and its header named no tool
        self._end_message()
        p.in_doubt = False
        self.output.at_start = True
        is_thought = self.output.thinking
        if isinstance(self.state, InChannel):
            self.output.turn(thinking=False)
            self.state = InText()
        self.marker(p.pos + len(marker))
        if is_thought:
            self.output.say_from(p.at)
        self.output.shown.begin_result(marker)
        if self.compiled.next_header is not None and not self.output.shows():
            yield from self._read_first_header(self.compiled.next_header)

    def _is_shown_closing(self, marker: str, sign: Sign) -> Steps[bool]:
        """Is the end of a turn or a message only shown? Then text follows it, and it is in code or in quotes, or
        it ends what is shown. The end of a message before another message or a call is real."""
        p, shown = self.p, self.output.shown
        if self.output.fresh or p.is_token(p.pos, p.pos + len(marker)):
            return False  # behind a call or another marker nothing shows it
        if shown.is_closing(marker):
            return True
        if shown.is_result_over(marker):
            return False
        in_code = shown.shows(special=sign.special)
        if in_code and shown.messages:
            shown.messages -= 1
            return True
        behind = yield from self._text_behind(len(marker), in_code)
        if not behind.strip() or behind[0] in QUOTES:
            return bool(behind.strip())
        is_implied = sign.action == "content_close" and self.compiled.is_content_implied
        in_message = self.in_content or is_implied or isinstance(self.state, InChannel)
        return in_code and not (in_message and (yield from self._opener_follows(len(marker))))

    def _text_behind(self, size: int, in_code: bool) -> Steps[str]:
        """What stands behind the marker of that size that stands here, as far as it must be known."""
        p = self.p
        while True:
            behind = p.buf[p.pos + size : p.pos + size + _LOOKAHEAD]
            if behind.strip() or (behind and not in_code) or len(behind) == _LOOKAHEAD or p.ended:
                return behind
            yield

    def _opener_follows(self, size: int) -> Steps[bool]:
        """Does a marker that opens something stand behind the one of that size that stands here?"""
        p = self.p
        while True:
            at = p.pos + size
            at += len(p.buf[at : at + _LOOKAHEAD]) - len(p.buf[at : at + _LOOKAHEAD].lstrip())
            found = self.compiled.begins.at(p.buf, at, p.ended)
            if found is not None:
                return bool(found)
            yield

    def _on_header(self, found: Match, sign: Sign) -> Iterable[None]:
        channels = self.compiled.channels
        if channels is not None and channels.to and self._is_recipient_in_text(channels.to.strip()):
            self.say_exactly(self.p.pos + 1)
            return ()
        if isinstance(self.state, InChannel) and channels is not None and not channels.messages["content"][1]:
            # Nothing but the next header ends a message of such a format.
            self.output.shown.end_quotations(found.group())
        if self.is_shown(found, sign):
            self.output.shown.messages += 1
            self.output.shown.pass_marker()  # `>>>` at the beginning of a line is no block quote
            return ()
        self._end_tool_message()
        self._finalize_calls()
        self._leave_section()
        self.release()
        return self._read_header(self.p.capture(), bare=False)

    def _is_recipient_in_text(self, to: str) -> bool:
        """Is this a recipient without the start of a header, in text? The text may only mention it."""
        return not self.output.thinking and self.p.buf.startswith(to, self.p.pos)

    # -- closing markers of calls: late, missing, or preceded by text --

    def _awaits_close(self) -> bool:
        return isinstance(self.state, (InText, InSection)) and bool(self.state.due)

    def _close_late(self) -> None:
        """The close of a call that is over comes here. Words before it may belong to the call."""
        p, state = self.p, self.state
        assert isinstance(state, (InText, InSection))
        self.state = msgspec.structs.replace(state, due="")
        self._reject_text_before_close()
        if not (p.in_doubt or any(reader.closers for reader in self.compiled.readers)):
            p.settle_pending()

    def _reject_text_before_close(self) -> None:
        """Words that stand between a call's arguments and what closes the call may be a part of it."""
        if self.p.pending is not None and not self.output.fresh:
            message = "words stand between the call's arguments and what closes the call"
            self.p.block_pending("trailing_content", f"{message}; send them as an argument, or behind the call")

    def _report_unclosed(self) -> None:
        """The close of a call that a marker opened has not come, and will not."""
        state, pending = self.state, self.p.pending
        is_due = isinstance(state, (InText, InSection)) and state.due == "due"
        if is_due and pending is not None and not pending[1].problems:
            self.p.note(
                "unclosed", f"the marker that closes the call is missing; what stands there up to {self.p.at} is text"
            )

    def _finalize_calls(self) -> None:
        """Nothing that follows can change the last call any more."""
        self._report_unclosed()
        self.p.settle_pending()

    def _finalize_at_turn_end(self) -> None:
        """Finalize the pending call at the end of a turn or at an opener. A call without its own closing marker stays
        pending until the next call: what closes its values behind it shows that it had not ended."""
        pending = self.p.pending
        if pending is None:
            self._report_unclosed()
        elif not any(each.code == "unclosed" for each in pending[1].problems) or not any(
            reader.closers for reader in self.compiled.readers
        ):
            self._finalize_calls()

    def _begin_calls(self) -> None:
        """From here on nothing but calls belongs. In a message to a tool nothing else did before."""
        if self.due_to is not None:
            self._report_text("message to a tool")
        self.words_from = self.output.text_chars

    def _report_text(self, where: str) -> None:
        """Words that stand where nothing but calls belongs are text: they are told, and no call is refused for them."""
        if self.output.text_chars > self.words_from and not self.p.full:
            message = f"words stand in the {where} before {self.p.at}; they are text, and no part of a call"
            self.p.note("trailing_content", message)
        self.words_from = self.output.text_chars

    def _leave_section(self) -> None:
        """What surrounds calls was opened, and its close has not come: where words follow, they may be what is left of
        it."""
        if (
            type(self.state) is InSection
            and self.state.is_open
            and not self.p.full
            and self.output.text_chars > self.words_from
        ):
            self.p.note(
                "unclosed", f"the marker that closes the calls is missing; what follows them up to {self.p.at} is text"
            )

    def _end_tool_message(self, *, marked: bool = True) -> None:
        """A message ends; all of one to a tool is the call's. `marked`: a marker says so, and not the text's end."""
        channels = self.compiled.channels
        is_over = channels is not None and (marked or bool(channels.messages["call"][1]))
        if is_over and isinstance(self.state, InText) and self.state.due:
            self._reject_text_before_close()
            self.state = InText()

    def _end_message(self) -> None:
        """A message ends. One to a tool holds a call."""
        if self.due_to == self.p.index and not self.p.full:
            self.p.note("opener_without_call", f"the message to a tool that ends at {self.p.at} holds no call")
        elif self.due_to is not None and not self.compiled.is_named_by_header:
            self._report_text("message to a tool")
        self.due_to = None

    def _end_cut_message(self) -> None:
        """The text ends in a message. One to a tool that holds nothing was cut off before its call."""
        p = self.p
        if self.due_to == p.index and not p.full and p.known_name() and self.output.text_chars == self.words_from:
            p.fail_truncated()
        self._end_message()

    def _take_truncated_closer(self) -> None:
        """Behind a call the text may end inside a marker that closes something; in a message to a tool, inside its
        opener."""
        p = self.p
        rest = p.buf[p.pos :].lstrip(BLANKS)
        if rest and self.due_to == p.index and p.known_name() and self.compiled.begins.is_begun(rest, 0):
            self.marker(len(p.buf))
        elif rest and p.index and self.compiled.closes_calls.is_begun(rest, 0):
            p.note("unclosed", "the text ended inside a marker that closes calls")
            p.settle_pending()
            self.marker(len(p.buf))

    def _take_truncated_marker(self, token: str) -> bool:
        """Drop a marker that the text ends in, behind its first token. Report it if it may be the opener of a call."""
        p = self.p
        left = len(p.buf) - p.pos - len(token)
        rest = p.buf[p.pos + len(token) :].strip(BLANKS) if p.ended and 0 < left < _LONGEST_MARKER else ""
        if not rest or (_WORD(rest) and self._may_continue(token + rest)):
            return False  # no tool's name, or a call had begun: a message may be one word
        opens = token.startswith(self.compiled.first_tokens) and self.compiled.cut_openers.is_begun(p.buf, p.pos)
        if not opens and not self.compiled.cut_marks.is_begun(p.buf, p.pos):
            return False
        if opens:
            self.forget_thought()
            p.problem("truncated", "the text ended where a tool call was about to begin")
        else:
            p.note("stray_marker", f"the text ends inside the marker at {p.at}; it was dropped")
        self.marker(len(p.buf))
        return True

    def _may_continue(self, text: str) -> bool:
        """Does it end where a marker has a name, so that any letter may follow?"""
        return any(probe.is_begun(text + "\u0294", 0) for probe in (self.compiled.cut_openers, self.compiled.cut_marks))

    # -- calls and reasoning without their opening marker --

    def _open_reasoning(self) -> None:
        """The prompt has begun the reasoning."""
        channels = self.compiled.channels
        if channels is not None and "reasoning" in channels.kinds.values():
            self.state = InChannel("reasoning")
            self.output.turn(thinking=True)
        else:
            self.think_in_tags()

    def _take_blanks(self) -> Steps[str]:
        """The next character that is not blank, "" at the end of the text."""
        taken = self.p.capture()
        char = yield from self.p.peek()
        self.output.hold_blanks(self.p.release(taken), self.p.at)
        return char

    def _read_first_tag(self, tag: Probe) -> Steps[bool]:
        """Many models write `<think>` first, whatever their format has for reasoning. True if it stood here."""
        p = self.p
        if p.base or isinstance(self.state, InReasoning):
            return False
        if p.buf[:1] <= " ":
            yield from self._take_blanks()
        found = tag.at(p.buf, p.pos, p.ended)
        if found is None:
            found = yield from p.test(tag)
        if found:
            self.marker(found.end())
            self.think_in_tags()
        return bool(found)

    def _read_first_marker(self, compiled: Compiled) -> Steps[None]:
        """The prompt may have ended with a token that belongs to what the reply begins with."""
        p = self.p
        if compiled.first_header is not None and not isinstance(self.state, InReasoning):
            yield from self._read_first_header(compiled.first_header)
        if compiled.first_opener is None and compiled.first_thought is None:
            return
        if p.buf[p.pos : p.pos + 1] <= " ":
            yield from self._take_blanks()
        if compiled.first_opener is not None:
            opener = compiled.first_opener.at(p.buf, p.pos, p.ended)
            if opener is None:
                opener = yield from p.test(compiled.first_opener)
            if opener and not p.is_letters(opener.start(), opener.end()):
                self._read_opener_name(opener.group())
                yield from self.block(opener.end(), special=True, headless=True)
        elif compiled.first_thought is not None:
            label = yield from p.test(compiled.first_thought)
            if label:
                self.marker(label.end())
                self.think()

    def _try_bare(self) -> Steps[bool]:
        """Where a reply may begin, a body without a marker may stand. True if one may stand here again."""
        p, output, compiled = self.p, self.output, self.compiled
        char = p.buf[p.pos : p.pos + 1]
        if char <= " ":
            char = yield from self._take_blanks()
        if compiled.between is not None and p.index:
            found = compiled.between.at(p.buf, p.pos, p.ended)
            if found is None:
                found = yield from p.test(compiled.between)
            if found:
                self.marker(found.end())
                char = p.buf[p.pos]
        output.at_start = False
        fence, clash = compiled.fence, compiled.clash
        if char and char in compiled.bare:
            found = clash.at(p.buf, p.pos, p.ended) if clash is not None else False
            if found is None and clash is not None:
                found = yield from p.test(clash)
            if not found:
                yield from self.block(p.pos, bare=True)
        elif fence is not None and char == "`" and (found := (yield from p.test(fence))):
            first, at = p.index, p.at
            yield from self.block(found.end(), bare=True)
            if p.index == first and compiled.writes_fence:
                p.note("opener_without_call", f"the fence at {at} is what opens a call, and none follows; it is text")
        return output.at_start

    def _try_headless(self, headless: Probe) -> Steps[bool]:
        """The first call of a reply may stand without its opener, if the prompt ended with it:  f[ARGS]{"x": 1}"""
        p, output = self.p, self.output
        output.at_start = False
        if p.buf[p.pos : p.pos + 1] <= " ":
            yield from self._take_blanks()
        found = headless.at(p.buf, p.pos, p.ended)
        if found is None:
            found = yield from p.test(headless)
        if not found or p.is_letters(found.start(), found.end()) or not _names_tool(p, found.group()):
            return False
        yield from self.block(p.pos, special=True)
        return True

    def _try_line(self) -> Steps[bool]:
        """Outside all blocks, at the beginning of a line: a call may stand here. True if one may stand here again."""
        p = self.p
        plain = None if self.output.fresh or self.output.tag or self.held is not None else PLAIN_LINES(p.buf, p.pos)
        if plain is not None:
            self.say(plain.end())
            self.output.at_start = True
            return True
        first = p.index
        start = yield from self._find_line_call()
        if start >= 0:
            yield from self.block(start, bare=True)
            if p.index == first:
                self.refused += 1
        return start >= 0 or self.output.at_start

    def _unhold_calls(self, held: Speculation) -> None:
        """Text follows calls without a marker: they are text as well."""
        p, self.held = self.p, None
        text = self._rollback(held)
        self.state = InText(late=isinstance(self.state, InText) and self.state.late)
        if any(
            self.compiled.text.actions[found.lastindex or 0].action in _OPENING_ACTIONS
            for found in self.compiled.text.finditer(text)
        ):
            p.note("opener_without_call", "what opens a call stands in text that no marker makes a call")
        self.output.say(text, p.at)

    # -- reasoning and stray markers --

    def _drop_stray(self, marker: str, sign: Sign) -> None:
        """A marker that closes nothing: dropped with a note if it is a special token or stands behind other markers;
        else it is text."""
        end = self.p.pos + len(marker)
        if not (sign.special or self.output.fresh):
            self.say_exactly(end)
            return
        if sign.is_token and self._take_truncated_marker(marker):
            return
        if marker in self.compiled.opening_tokens and not isinstance(self.state, InReasoning):
            self.forget_thought()  # a call was about to begin behind it
        message = f"{marker[:60]!r} at {self.p.at} closes nothing; it was dropped"
        self.p.note("stray_marker", message)
        self.marker(end)
        self.output.go_on_line()  # nothing that a line begins with shows what follows

    def _on_stray(self, found: Match, sign: Sign) -> Iterable[None]:
        """A token that means nothing alone."""
        if not self.is_shown(found, sign):
            self._drop_stray(found.group(), sign)
        return ()

    def _on_think(self, found: Match, sign: Sign) -> Iterable[None]:
        if self.is_shown(found, sign):
            if isinstance(self.state, InText):
                self.state = msgspec.structs.replace(self.state, mentions=True)
            return ()
        if isinstance(self.state, InReasoning):
            self._drop_stray(found.group(), Sign("think", True))
            return ()
        if is_sentence(found.group()) and (self.output.text_chars or self.has_thought):
            self.say_exactly(found.end())  # a sentence, not a tag: behind other text, or a thought, it is text as well
            return ()
        self._finalize_calls()
        self._leave_section()
        self.trust()
        self.marker(found.end())
        self.think()
        return ()

    def _on_think_close(self, found: Match, sign: Sign) -> Steps[None]:
        state, marker = self.state, found.group()
        if not isinstance(state, InReasoning):
            if is_sentence(marker) and self.in_thought is None:
                self.say_exactly(self.p.pos + len(marker))  # not a tag: where no thought is open it closes none
                return
            if isinstance(state, InText) and state.late and not (yield from self._is_mentioned(marker, state.mentions)):
                # A closing tag without its opener: the prompt had opened it.
                self.output.recast(self.p.at)
            elif not self._ends_speculation(marker):
                return
        elif self._closes_shown(marker):
            return
        self.thought_end = self.p.at
        self.marker(self.p.pos + len(marker))
        self.output.say_from(self.p.at)
        self.output.turn(thinking=False)
        self.output.at_start = True
        self.state = InText()
        if self.compiled.first_header is not None and self.output.is_silent:
            yield from self._read_first_header(self.compiled.first_header)

    def _closes_shown(self, marker: str) -> bool:
        """Where it closes a call as well: does it close one here that is shown? Then it is text of the thought."""
        closes = bool(self.compiled.ends_thought) and self.output.shown.is_closing(marker)
        if closes:
            self.say_exactly(self.p.pos + len(marker))
        return closes

    def _ends_speculation(self, marker: str) -> bool:
        """A close of a thought outside of one: of one that calls were read behind, or shown, or of nothing."""
        if self.output.shows():
            self.say_exactly(self.p.pos + len(marker))
        elif self.in_thought is None:
            self._drop_stray(marker, Sign("think_close", True))
        else:
            self.return_to_reasoning()
            return True
        return False

    def _is_mentioned(self, marker: str, is_opened: bool) -> Steps[bool]:
        """Is the closing marker of reasoning only shown? It is in code or quotes, if its opener was shown too or if the
        code or quotation ends right behind it: reasoning that the prompt opened may leave a quotation mark open."""
        if not self.output.shows() or is_opened:
            return is_opened and self.output.shows()
        p = self.p
        while True:
            behind = SHOWN_ENDS.at(p.buf, p.pos + len(marker), p.ended)
            if behind is not None:
                return bool(behind)
            yield

    # -- messages with headers -----------------------------------------------------------------------------------------

    def _read_first_header(self, probe: Probe) -> Steps[None]:
        """Read a header without its start: the prompt may have ended with it, or the header is a line."""
        p = self.p
        taken = p.capture()
        if not p.char():
            yield from p.peek()
        found = probe.at(p.buf, p.pos, p.ended)
        if found is None:
            found = yield from p.test(probe)
        if found:
            yield from self._read_header(taken, bare=True)
        else:
            self.output.hold_blanks(p.release(taken), p.at)

    def _read_header(self, taken: Capture, *, bare: bool) -> Steps[None]:
        """Read everything up to the message, and the message if it is a call. `bare`: the header has no start."""
        p, compiled = self.p, self.compiled
        marker = compiled.message_marker
        size = len(marker)
        end = p.buf.find(marker, p.pos, p.pos + _MAX_HEADER + size)
        while end < 0 and not p.ended and len(p.buf) - p.pos < _MAX_HEADER + size:
            yield
            end = p.buf.find(marker, p.pos, p.pos + _MAX_HEADER + size)
        header = header_of(compiled, p.buf[p.pos : max(end, p.pos)])
        is_letters = p.told is not None and isinstance(marker, Special) and p.is_letters(end, end + size)
        is_header, length = end >= 0 and header.is_header and not is_letters, end - p.pos
        if is_header and bare and header.recipient and compiled.channels is not None and not compiled.channels.to:
            is_header = yield from self._is_recipient(header.recipient, length + size)
        if not is_header:
            self._reject_header(taken, end, bare)
            return
        kind = header.kind
        if kind is None and not header.recipient and compiled.is_named_by_header:
            kind = yield from self._message_to_nobody(length + size)
        p.drop(taken)
        yield from self._enter_message(header, kind, length, size)

    def _is_recipient(self, name: str, ahead: int) -> Steps[bool]:
        """Is a line at the beginning of a reply a header, whose message would begin so far ahead, or a line of text?"""
        p, channels = self.p, self.compiled.channels
        if (channels is not None and name in channels.kinds) or (p.tools is not None and name in p.tools):
            return True
        if not _IS_NAME(name):
            return False
        while p.pos + ahead >= len(p.buf) and not p.ended:
            yield
        return p.buf.startswith("{", p.pos + ahead)

    def _message_to_nobody(self, ahead: int) -> Steps[Literal["content"] | None]:
        """What a message holds that begins so far ahead, and goes to nobody: arguments belong to a call without a name,
        anything else is text."""
        p = self.p
        while True:
            begun = p.buf[p.pos + ahead : p.pos + ahead + MAX_BLANKS]
            if begun.strip(BLANKS) or len(begun) == MAX_BLANKS or p.ended:
                return None if begun.lstrip(BLANKS).startswith("{") else "content"
            yield

    def _reject_header(self, taken: Capture, end: int, bare: bool) -> None:
        """No message follows the header: drop what is certainly a marker of it and report that, else it is text."""
        p, compiled, channels = self.p, self.compiled, self.compiled.channels
        assert channels is not None
        most = _MAX_HEADER + len(compiled.message_marker)
        is_cut = p.ended and end < 0 and len(p.buf) - p.pos < most and not holds_structure(compiled, p.buf[p.pos + 1 :])
        text = p.buf[p.pos : end if end >= 0 else p.pos + _MAX_HEADER]
        start = start_of_header(compiled, text)
        name = header_of(compiled, text).recipient if is_cut else ""
        if name and p.tools is not None and name in p.tools and p.has_room():
            p.drop(taken)
            self.leave_for_call()
            self._begin_message(None)
            self.marker(len(p.buf))
            p.raw_begin()
            p.begin(name)
            p.fail_truncated()
        elif start and channels.channel and not is_begun(channels, text[start:]):
            p.drop(taken)
            p.note("stray_marker", f"the header at {p.at} has no end; what follows it is text")
            self.marker(p.pos + start)
        elif is_cut and compiled.is_header_token and not bare:
            p.drop(taken)
            is_others = any(other(text) for other in compiled.header_starts[1:])
            self.marker(len(p.buf))
            self.forget_thought()
            if is_others:
                p.note("stray_marker", "the text ended where it began to say what somebody else says; that was dropped")
            else:
                message = "the text ended inside the header of a message, where a tool call may have begun"
                p.problem("truncated", message)
        else:
            # Its first character is text, and the search goes on behind it.
            p.pos = len(p.buf) if is_cut else p.pos + 1
            self.output.say_exactly(p.release(taken), p.at)

    def _enter_message(self, header: Header, kind: str | None, length: int, size: int) -> Steps[None]:
        """Take a header of that length with the marker behind it: its message begins."""
        p, compiled, channels = self.p, self.compiled, self.compiled.channels
        assert channels is not None
        self.leave_for_call()
        # Where calls say their names themselves, a header that says nothing may precede words or calls.
        is_any = header.is_empty and not compiled.is_named_by_header
        self._begin_message(None if is_any else kind)
        if is_any:
            self.due_to = None
        if kind is not None and (
            header.recipient == "" or was_to_tool(channels, p.buf[p.pos : p.pos + length], p.tools)
        ):
            self.due_to = p.index
            self.forget_thought()
        p.said = "" if kind is not None else header.named
        self.marker(p.pos + length + size)
        if kind is None and compiled.is_named_by_header:
            yield from self._read_message(header.recipient or "")

    def _begin_message(self, kind: str | None) -> None:
        """Begin a message that holds reasoning, content or (None) a call."""
        self._end_message()
        self.due_to = self.p.index if kind is None else None
        self.words_from = self.output.text_chars
        self.output.turn(thinking=kind == "reasoning")
        self.output.is_placed = self.output.is_placed or kind == "content"
        if kind is None:
            self.state = InText()
            self.output.settle()
        else:
            self.state = InChannel("reasoning" if kind == "reasoning" else "content")

    def _read_message(self, name: str) -> Steps[None]:
        """Read a message to a tool: nothing in it but the arguments of one call."""
        p = self.p
        taken = p.capture()
        if not take_whole_message(p, name):
            yield from read_message(p, name)
            if p.full:
                yield from self.rest_is_text()
                return
            self.output.mark("marker", p.at)  # the blanks behind it were looked past
            self.state = InText(due="late" if p.pending is not None else "")
        self.output.fresh = True
        self.end_block(taken)
        self.forget_thought()

    def _read_opener_name(self, opener: str) -> bool:
        """Note the name in a call's opener, which the call itself says again. False if the text ends in the opener."""
        if (edges := self.compiled.name_edges) is None:
            return True
        self.p.said = opener.strip().removeprefix(edges[0]).partition(edges[1][:1])[0].strip()
        return edges[1] in opener

    # -- lines of a protocol --

    def _find_line_call(self) -> Steps[int]:
        """Where a call may begin on the line that begins here; -1 for none."""
        p, output = self.p, self.output
        at_start = p.at == 0
        char = p.buf[p.pos : p.pos + 1]
        if char <= " " or output.fresh:
            taken = p.capture()
            char = yield from p.peek()
            output.hold_blanks(p.release(taken), p.at)
        output.at_start = False
        if not char or output.tag or not p.tools or self.refused > p.limits.calls:
            return -1
        if char == "`":
            wrapped = at_start and (yield from p.test(WRAPPED))
            return p.pos if wrapped and self._opens_call(p.pos, "{") else -1
        found = LINE.at(p.buf, p.pos, p.ended)
        if found is None:
            found = yield from p.test(LINE)
        # Behind text, a label that is a role as well begins a turn of a transcript.
        if not found or (not output.is_silent and RECORD(p.buf, p.pos)) or output.shows(BODY):
            return -1
        return p.pos if self._opens_call(p.pos, found.group()[-1]) else -1

    def _opens_call(self, pos: int, given: str) -> bool:
        """Does a call that may run begin here? `given` is the first character of its arguments."""
        p = self.p
        assert p.tools is not None
        label, name = call_parts(p.buf, pos)
        known = name in p.tools
        if label and label not in self.compiled.readers[0].labels:
            if known:
                self.refused += 1
                p.problem(*labelled(label, name))
            return False
        if known and given not in "{)":
            self.refused += 1
            p.problem(
                "arguments_not_object", f"{name} must be called with one object literal: {name}({{ key: value }})"
            )
        elif not known and given == "{":
            self.refused += 1
            p.problem("unknown_tool", f"there is no tool {name[:80]!r}; {listing(p.tools)}")
        return known and given in "{)"


_HANDLERS: dict[Action, Callable[[Machine, Match, Sign], Iterable[None]]] = {
    "call": Machine._on_call,
    "body": Machine._on_body,
    "section": Machine._on_section,
    "section_close": Machine._on_section_close,
    "closer": Machine._on_closer,
    "value_close": Machine._on_value_close,
    "think": Machine._on_think,
    "think_close": Machine._on_think_close,
    "content": Machine._on_content,
    "content_close": Machine._on_content_close,
    "inline": Machine._on_inline,
    "end": Machine._on_end,
    "header": Machine._on_header,
    "tag": Machine._on_tag,
    "done": Machine._on_done,
    "line": Machine._on_line,
    "stray": Machine._on_stray,
}
