"""The run through a reply: text, reasoning, sections, channels, blocks of calls.

Where the run is, is a value, its state; what was read is in the buffer, what was made of it in the output. `feed` and
`close` resume one generator; a whole text takes the same steps, none of which waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rightcall.ids import Ids
from rightcall.types import Event, Text
from rightcall.wire.blocks import Block, Ending
from rightcall.wire.body_reader import WholeBlock
from rightcall.wire.buffer import Steps
from rightcall.wire.call_builder import CallBuilder
from rightcall.wire.channels import first_header
from rightcall.wire.compile import LEVELS, Compiled
from rightcall.wire.format_markers import Sign
from rightcall.wire.markers import BLANKS, Probe, Scan
from rightcall.wire.options import ReadOptions
from rightcall.wire.protocol_lines import PLAIN_LINES, line
from rightcall.wire.rehearsal import Rehearsal, begin, stands, take_back
from rightcall.wire.shown import OUTSIDE, Shown
from rightcall.wire.signs import ACTIONS
from rightcall.wire.states import Held, InChannel, InReasoning, InSection, InText, State

OPENS = frozenset(("section", "call", "body"))
_OUTSIDE = frozenset((InText, InSection))
_IN_TEXT, _MAY_BE_LATE = InText(), InText(late=True)

_MOST_OPENERS = 10_000  # that hold no call; each costs as much as some hundred characters of text


class Machine:
    """Reads one reply in one format. `feed` and `close` put events into `output.events`."""

    # What few replies need is set when it is needed.
    thought_end: int | None = None  # where the last thought was closed
    has_thought = False  # reasoning was opened
    due_to: int | None = None  # a header said that a call follows: how many there were before it
    in_content = False  # a marker that opens text was seen, and not yet its close
    refused = 0  # how many calls outside all blocks were none that may run
    is_over = False  # the reply was longer than it may be
    is_cut = False  # the answer was cut off

    def __init__(self, compiled: Compiled, options: ReadOptions, ids: Ids) -> None:
        self.thought: int | None = None  # where the last reasoning began that nothing was said or called behind
        self.held: Held | None = None
        self.rehearsal: Rehearsal | None = None  # a special token stood inside a thought that is not closed
        self.p = CallBuilder(compiled, options, ids)
        self.output = self.p.output
        self.compiled = compiled
        self.room = options.limits.reply  # for so many characters more
        self.format_name = compiled.format.name
        self.state: State = _IN_TEXT if compiled.format.reasoning is None else _MAY_BE_LATE
        if options.reasoning == "open":
            self._open_reasoning()
        self._steps = self._run()

    def _open_reasoning(self) -> None:
        if self.compiled.channels is not None and "reasoning" in self.compiled.channels.kinds.values():
            self.state = InChannel("reasoning")
            self.output.turn(thinking=True)
        else:
            self._think_in_tags()

    def _think_in_tags(self) -> None:
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
        p = self.p
        if len(text) > self.room:
            self._overflow(text, self.room)
            return
        self.room -= len(text)
        if p.sink is not None and p.sink(text):
            return
        p.more(text)
        next(self._steps)

    def close(self, *, cut: bool = False) -> None:
        """The text ends, or was `cut` off: then a thought that is open was not left for a call."""
        p = self.p
        if not p.ended:
            p.ended, self.is_cut = True, cut
            p.sink = None
            next(self._steps, None)  # the last: with its frame goes the machine's only reference to itself

    def skip(self, text: str) -> None:
        """The whole text is dealt with elsewhere."""
        self._steps.close()
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

    def take_over(self, before: Machine) -> str:
        """This machine goes on where another stopped. Gives the text that the other had not taken yet."""
        p, other = self.p, before.p
        before._steps.close()
        p.base = other.at
        self.room = before.room + len(other.buf) - other.pos
        p.index, p.output, self.output = other.index, other.output, other.output
        p.told = other.told
        self.thought, self.is_over = before.thought, before.is_over
        if isinstance(before.state, InReasoning):
            # Where nothing was read yet, the reply's first header may still say what it begins with.
            self.state = before.state if p.base or self.compiled.channels is None else self.state
        elif isinstance(before.state, InText) and not before.state.late:
            self.state = InText()
        return other.buf[other.pos :]

    # -- the run -------------------------------------------------------------------------------------------------------

    def _run(self) -> Steps[None]:
        p, output = self.p, self.output
        has_tag = self.compiled.think is not None and (yield from self._first_tag(self.compiled.think))
        if self.compiled.looks_first and not has_tag:
            yield from self._first(self.compiled)
        compiled = self.compiled
        tries = compiled.may_begin or compiled.lines or compiled.again is not None
        while True:
            if tries and output.at_start and not output.thinking:
                if compiled.may_begin and (yield from self._try_bare()):
                    continue
                if compiled.lines and (yield from self._try_line()):
                    continue
                if compiled.again is not None and p.index and (yield from self._try_again(compiled.again)):
                    continue
            scan = compiled.text if type(self.state) in _OUTSIDE else self._scan()
            found = (scan.ended if p.ended else scan.search)(p.buf, p.pos)
            end = found.start() if found else len(p.buf)
            if end > p.pos:
                if found is None and p.ended and output.fresh and p.index:
                    self._take_cut_close()
                self.say(end)
            if found and (group := found.lastindex):
                sign = scan.actions[group]
                if p.told is not None and sign.is_token and p.is_letters(end, found.end()):
                    self.say_exactly(end + 1)
                    continue
                yield from ACTIONS[sign.action](self, found, sign)
            elif p.ended:
                break
            else:
                yield
        if p.pending is not None:
            p.settle_pending()
        output.last_blanks(p.base + p.pos)
        if self.held is not None:
            self.release()
        self.end_message()
        if self.rehearsal is not None:
            if self.is_cut:
                self.rehearsed(self.rehearsal)
                self.state = InReasoning()
            self.trust()

    def _first_tag(self, tag: Probe) -> Steps[bool]:
        """Many models write `<think>` first, whatever their format has for reasoning. True if it stood here."""
        p = self.p
        char = p.buf[:1]
        if char > "<" or p.base or isinstance(self.state, InReasoning):
            return False
        if char <= " ":
            taken = p.capture()
            yield from p.peek()
            self.output.hold_blanks(p.release(taken), p.at)
        found = tag.at(p.buf, p.pos, p.ended)
        if found is None:
            found = yield from p.test(tag)
        if found:
            self.marker(found.end())
            self._think_in_tags()
        return bool(found)

    def _first(self, compiled: Compiled) -> Steps[None]:
        """The prompt may have ended with a token that belongs to what the reply begins with."""
        p = self.p
        if compiled.first_header is not None and not isinstance(self.state, InReasoning):
            yield from first_header(self, compiled.first_header)
        if compiled.first_opener is None and compiled.first_thought is None:
            return
        taken = p.capture()
        yield from p.peek()
        self.output.hold_blanks(p.release(taken), p.at)
        if compiled.first_opener is not None:
            opener = yield from p.test(compiled.first_opener)
            if opener and not p.is_letters(opener.start(), opener.end()):
                yield from self.block(opener.end(), special=True, headless=True)
        elif compiled.first_thought is not None:
            label = yield from p.test(compiled.first_thought)
            if label:
                self.marker(label.end())
                self.think()

    def _scan(self) -> Scan[Sign]:
        """What to look for next."""
        state = self.state
        if isinstance(state, InReasoning):
            return self.compiled.reasoning_in_content if self.in_content else self.compiled.reasoning
        return self.compiled.message if isinstance(state, InChannel) else self.compiled.text

    def _take_cut_close(self) -> None:
        """Behind a call the text may end inside a marker that closes something."""
        p = self.p
        rest = p.buf[p.pos :].lstrip(BLANKS)
        if rest and self.compiled.closes_calls.is_begun(rest, 0):
            p.note("unclosed", "the text ended inside a marker that closes calls")
            self.marker(len(p.buf))

    def say(self, end: int) -> None:
        """Takes text up to there."""
        p = self.p
        text = p.buf[p.pos : end]
        if self.held is not None and text.strip(BLANKS):
            self._unhold(self.held)
        p.pos = end
        self.output.say(text, p.base + end)
        if self.thought is not None and not isinstance(self.state, InReasoning) and not self.output.fresh:
            self.forget_thought()

    def say_exactly(self, end: int) -> None:
        """Takes text up to there, to the byte."""
        p = self.p
        if self.held is not None:
            self._unhold(self.held)
        text = p.buf[p.pos : end]
        p.pos = end
        self.output.say_exactly(text, p.at)
        if self.thought is not None and not isinstance(self.state, InReasoning):
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
        if level in self.compiled.ends_shown:
            self.output.shown.enter(level, self.compiled.ends_shown[level])
        return True

    # -- calls without markers, which count only if nothing else follows -----------------------------------------------

    def _hold(self) -> None:
        ready, self.output.events = self.output.events, []
        self.held = Held(self.p.capture(), ready, self.output.snapshot())

    def release(self) -> None:
        """What was held were calls."""
        if self.held is not None:
            self.p.drop(self.held.start)
            self.output.events = self.held.ready + self.output.events
            self.held = None

    def _unhold(self, held: Held) -> None:
        """Text follows: what was held is text as well."""
        p = self.p
        self.held = None
        text = p.release(held.start)
        self.output.restore(held.before, held.ready)
        self.output.shown = Shown()  # nothing was said before them
        p.index, p.pending = 0, None
        self.state = InText(late=isinstance(self.state, InText) and self.state.late)
        if any(self.compiled.text.actions[found.lastindex or 0].action in OPENS for found in self._signs(text)):
            p.note("opener_without_call", "what opens a call stands in text that no marker makes a call")
        self.output.say(text, p.at)

    def _signs(self, text: str) -> Iterator[re.Match[str]]:
        return self.compiled.text.finditer(text)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def block(
        self, start: int, *, bare: bool = False, special: bool = False, headless: bool = False, inner: bool = False
    ) -> Iterable[None]:
        """A block of calls: at once if all of it is there and as usual, else step by step."""
        p = self.p
        first = p.index
        if p.pending is not None:
            p.settle_pending()
        if bare and first == 0 and self.compiled.may_begin and self.held is None:
            self._hold()
        elif not bare and self.held is not None:
            self.release()
        before = self.state
        if self.compiled.section_start is not None and not bare:
            self.state = InSection(first)
        whole = self._whole(start, bare)
        if whole is None or bare or not whole[2]:
            block = Block(p, bare=bare, special=special, headless=headless, inner=inner)
            return self._block(block, start, whole, before)
        self._take_whole(whole, 0)
        if p.buf[p.pos - 1] <= " ":
            self._end_block(p.buf[whole[0][-1][1] : p.pos])
        self._after_block("closed", before, first)
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
        if self.output.fresh and p.buf[p.pos - 1 : p.pos] <= " ":
            self._end_block(p.captured(taken))
        p.drop(taken)
        self._after_block(ending, before, first)
        if ending == "full":
            yield from self.rest_is_text()
        elif p.notes.get("opener_without_call", 0) >= _MOST_OPENERS:
            p.full = True
            yield from self.rest_is_text(f"more than {_MOST_OPENERS} openers that hold no call")

    def _whole(self, start: int, bare: bool) -> WholeBlock | None:
        p, quick = self.p, self.compiled.quick
        if quick is None or p.in_doubt or (p.options.choice and self.compiled.named):
            return None  # an object is what the chosen tool is given, whatever it looks like
        whole = quick(p, start, bare)
        return whole if whole is not None and p.index + len(whole[0]) <= p.limits.calls else None

    def _take_whole(self, whole: WholeBlock, moved: int) -> None:
        """Takes the calls of a block, whose places have moved by so much since they were found."""
        p, output = self.p, self.output
        for start, end, name, json, value, id in whole[0]:
            p.whole_call(start + moved, end + moved, name, json, value, id)
        p.pos = whole[1] + moved
        output.fresh = output.at_start = True
        output.mark("marker", p.base + p.pos)

    def _end_block(self, text: str) -> None:
        """The blanks that a block ends with say whether what follows it begins a line."""
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
            if self.state.due or ending == "due":
                self.state = InSection(self.state.before, due=ending == "due")
        else:
            self.state = InText(due=True) if ending == "due" else _IN_TEXT

    def _try_bare(self) -> Steps[bool]:
        """Where a reply may begin, a body without a marker may stand. True if one may stand here again."""
        p, output, compiled = self.p, self.output, self.compiled
        char = p.buf[p.pos : p.pos + 1]
        if char <= " ":
            taken = p.capture()
            char = yield from p.peek()
            output.hold_blanks(p.release(taken), p.at)
        if compiled.between is not None and p.index:
            found = yield from p.test(compiled.between)
            if found:
                self.marker(found.end())
                char = p.buf[p.pos]
        output.at_start = False
        fence, clash = compiled.fence, compiled.bare_clash
        if char and char in compiled.bare:
            if clash is None or not (yield from p.test(clash)):
                yield from self.block(p.pos, bare=True)
        elif fence is not None and char == "`" and (found := (yield from p.test(fence))):
            yield from self.block(found.end(), bare=True)
        return output.at_start

    def _try_again(self, again: Probe) -> Steps[bool]:
        """Right behind a call, another may stand without its opener. True if it did."""
        p, output = self.p, self.output
        output.at_start = False
        if not output.fresh:
            return False
        if p.buf[p.pos : p.pos + 1] <= " ":
            taken = p.capture()
            yield from p.peek()
            output.hold_blanks(p.release(taken), p.at)
        found = again.at(p.buf, p.pos, p.ended)
        if found is None:
            found = yield from p.test(again)
        if found and not p.is_letters(found.start(), found.end()):
            start = found.end() - len(found.group().lstrip(BLANKS + ",;"))
            if start > p.pos:
                self.marker(start)
            yield from self.block(p.pos, special=True)
            return True
        return False

    def _try_line(self) -> Steps[bool]:
        """Outside all blocks, at the beginning of a line: a call may stand here. True if one may stand here again."""
        p = self.p
        plain = None if self.output.fresh or self.output.tag or self.held is not None else PLAIN_LINES(p.buf, p.pos)
        if plain is not None:
            self.say(plain.end())
            self.output.at_start = True
            return True
        first = p.index
        start = yield from line(self)
        if start >= 0:
            yield from self.block(start, bare=True)
            if p.index == first:
                self.refused += 1
        return start >= 0 or self.output.at_start

    @property
    def labels(self) -> frozenset[str]:
        """What may stand before a call."""
        return self.compiled.readers[0].labels

    def rest_is_text(self, much: str = "") -> Steps[None]:
        """There is more than there may be, by itself of calls: everything from here on is text."""
        p = self.p
        self.release()  # they are more than enough to be calls, whatever follows
        self.trust()
        p.problem("too_large", f"the reply has {much or f'more than {p.limits.calls} calls'}; the rest was not read")
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
        """What was thought last is not looked at again: something was said or called behind it."""
        self.thought = None

    def end_message(self) -> None:
        """A message ends. One to a tool holds a call."""
        if self.due_to == self.p.index and not self.p.full:
            self.p.note("opener_without_call", f"the message to a tool that ends at {self.p.at} holds no call")
        self.due_to = None

    def turn_to(self, kind: str | None) -> None:
        """A header says what its message holds; None for a call."""
        self.end_message()
        self.due_to = self.p.index if kind is None else None
        self.output.turn(thinking=kind == "reasoning")
        if kind is not None:
            self.state = InChannel("reasoning" if kind == "reasoning" else "content")
        else:
            self.state = InText()
            self.output.settle()

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
