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
from rightcall.parsing.blocks import Block
from rightcall.parsing.bodies.body_reader import WholeBlock
from rightcall.parsing.bodies.ts_call import LINE, WRAPPED, call_parts, labelled
from rightcall.parsing.buffer import MAX_PIECE, MAX_PIECES, Capture, Sink, Steps, TokenMap
from rightcall.parsing.call_builder import CallBuilder, declared, names_in
from rightcall.parsing.compile import LEVELS, Action, CompiledFormat, Sign, is_sentence, may_be_think_tag
from rightcall.parsing.events import Snapshot
from rightcall.parsing.headers import (
    Header,
    closes_only_calls,
    header_of,
    header_start_end,
    holds_structure,
    may_be_partial_header,
)
from rightcall.parsing.markers import BLANKS, Pat, Probe, Scan, blanks, literal, seq
from rightcall.parsing.options import ReadOptions
from rightcall.parsing.shown import BODY, OUTSIDE, RECORD
from rightcall.tools.checks import describe_tool_names
from rightcall.tools.toolset import Toolset
from rightcall.types import Event, Text

AwaitedClose = Literal["", "due", "late"]  # of no call; of a call that a marker opened; of one that none opened
Match = re.Match[str]


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Where the text is. `due`: the closing marker of the last block is missing and may still come."""

    due: AwaitedClose = ""


class InText(State, frozen=True):
    """Outside everything.

    - `late`: nothing contradicts yet that the prompt opened the reasoning.
    - `mentions`: an opening marker of reasoning was only shown; so may be its closing marker.
    """

    late: bool = False
    mentions: bool = False


class InSection(State, frozen=True):
    """Between the markers around all calls.

    - `before`: the number of calls before the section.
    - `is_open`: the opening marker of the section was there.
    """

    before: int
    is_open: bool = False


class InReasoning(State, frozen=True):
    """Inside reasoning."""


class InChannel(State, frozen=True):
    """Inside a message whose header says that it holds no call."""

    kind: Literal["reasoning", "content"]


class LastReasoning(msgspec.Struct, frozen=True):
    """The last reasoning of the reply.

    - `start`: its position; None if there is none, or if text or a call followed it.
    - `end`: the position of its closing marker; None while it is open.
    - `exists`: reasoning was opened at all.
    """

    start: int | None = None
    end: int | None = None
    exists: bool = False


class Message(msgspec.Struct, frozen=True):
    """The current message, and the region in it where only calls belong.

    - `calls_before`: the number of calls before a message whose header says that a call follows; else None.
    - `text_before`: how many characters of text were emitted before the region.
    """

    calls_before: int | None = None
    text_before: int = 0


class Speculation(msgspec.Struct, frozen=True):
    """The state before text that may have to be parsed in another way: a commit keeps what was parsed since, a rollback
    restores the state.

    Two things are speculative: calls without any marker, which count only if the reply is nothing else (`held`), and
    everything behind a special token inside reasoning, which is reasoning if its closing marker comes after all
    (`doubtful_reasoning`). At most one of each is open, the first inside the second.
    """

    start: Capture
    ready: list[Event]  # events that may go out
    output: Snapshot
    index: int
    notes: dict[str, int]
    reasoning_start: int | None


_OUTSIDE = frozenset((InText, InSection))
_IN_TEXT, _MAY_BE_LATE = InText(), InText(late=True)
_NO_REASONING, _NO_MESSAGE = LastReasoning(), Message()
MOST_OPENERS = 10_000  # that hold no call; each costs as much as some hundred characters of text
_LONGEST_MARKER = 512  # characters of a marker behind its first token, the names in it included
_MAX_HEADER = 256
_LOOKAHEAD = 64  # characters behind a marker that show whether it is only shown
_OPENING_ACTIONS = frozenset(("section", "call", "body"))
_NOTHING_MORE = re.compile(r"[ \t\r\n]*+\Z").match
_BRACE = Probe(literal("{"))
_OBJECT = Probe(seq(blanks(), literal("{")))
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


class Machine:
    """Parse one reply in one format. `feed` and `close` put events into `output.events`.

    - `direct`: the sink of the buffer, if its events can go out at once; then `feed` need not be called.
    - `held`: calls without any marker, which are text if text follows them.
    - `doubtful_reasoning`: what follows a special token inside reasoning.
    - `in_content`: a marker that opens text was parsed, and its closing marker was not.
    """

    __slots__ = (
        *("_flushes", "_rejected", "_sink", "_steps", "builder", "compiled", "direct", "doubtful_reasoning"),
        *("format_name", "held", "in_content", "last_reasoning", "message", "output", "state"),
    )

    def __init__(self, compiled: CompiledFormat, options: ReadOptions, ids: Ids) -> None:
        self.compiled = compiled
        self.format_name = compiled.format.name
        self.builder = CallBuilder(compiled, options, ids)
        self.output = self.builder.output
        self.last_reasoning = _NO_REASONING
        self.message = _NO_MESSAGE
        self.held: Speculation | None = None
        self.doubtful_reasoning: Speculation | None = None
        self.in_content = False
        self.direct: Sink | None = None
        self._sink: Sink | None = None  # the sink of the buffer, while the reply has room for all that it may consume
        self._rejected = 0  # calls outside all blocks that were rejected
        self._flushes = False  # no marker that is still arriving begins in the text so far
        self.state: State = _IN_TEXT if compiled.format.reasoning is None else _MAY_BE_LATE
        if options.reasoning == "open":  # the prompt opened it
            if compiled.channels is not None and "reasoning" in compiled.channels.kinds.values():
                self.state = InChannel("reasoning")
                self.output.switch(reasoning=True)
            else:
                self.enter_tagged_reasoning()
        self._steps = self._run()

    def rename_format(self, name: str) -> None:
        """Set the format name that the reply reports, because its calls were found in that format. Parsing does not
        change."""
        self.format_name = name

    @property
    def is_over(self) -> bool:
        """Return whether the reply has been longer than `limits.reply`."""
        return self.builder.base + len(self.builder.buf) > self.builder.limits.reply

    def continue_from(self, before: Machine) -> str:
        """Take over the position, token map, output, index of the next call and start of the last reasoning of
        `before`, a machine of another format, which is stopped. Its state is taken over only if it is reasoning in tags
        (not at the beginning of a reply in a format with headers) or text in which reasoning cannot be late. Return the
        text that it had not taken; this machine has not parsed it, so the caller must feed it."""
        before._steps.close()
        builder, state = self.builder, before.state
        rest = builder.start_behind(before.builder)
        builder.index = before.builder.index
        builder.output = self.output = before.output
        self.last_reasoning = LastReasoning(before.last_reasoning.start)
        if isinstance(before.state, InReasoning):
            # If nothing was parsed yet, the first header of the reply may still say what it begins with.
            self.state = state if builder.base or self.compiled.channels is None else self.state
        elif isinstance(state, InText) and not state.late:
            self.state = InText()
        return rest

    def enter_tagged_reasoning(self) -> None:
        """Begin reasoning and from now on use the variant of the format that also knows `<think>` tags."""
        self.compiled = self.compiled.with_think_tags
        self.builder.compiled = self.compiled
        self.enter_reasoning()

    def take(self) -> list[Event]:
        """Return the events that may go out and forget them; each is returned once. While reasoning or calls may still
        be taken back, only the events from before them are returned."""
        waiting = self.doubtful_reasoning or self.held
        if waiting is None:
            return self.output.take_events() if self.output.events else []
        events = waiting.ready[:]
        waiting.ready.clear()
        return events

    # -- as it arrives -------------------------------------------------------------------------------------------------

    def read(self, text: str) -> list[Event]:
        """Parse the next piece of text and return the events that may go out now, each once."""
        self.feed(text)
        return self.take()

    def feed(self, text: str) -> None:
        """Parse the next piece of text, by a waiting sink of the buffer if that accepts it, else by one step of the
        machine; `take` returns its events. The piece that exceeds the limit of the reply ends the parsing with a
        `too_large` problem; its remainder and all later pieces are emitted as text. `_sink` becomes the sink of the
        buffer if the limit is far, and `direct` too if nothing is speculative and no token map is set; both become None
        when that sink refuses a piece."""
        builder, sink = self.builder, self._sink
        if sink is not None:
            if (events := sink(text)) is not None:
                self.output.events.extend(events)
                return
            self._sink = self.direct = None
        if builder.consumed:
            builder.commit()
        room = builder.limits.reply - builder.base - len(builder.buf)
        if len(text) > room:
            self._overflow(text, room)
            return
        sink = builder.sink
        if sink is not None and (events := sink(text)) is not None:
            self.output.events.extend(events)
        else:
            builder.append(text)
            next(self._steps)
            sink = builder.sink
        if sink is not None and room > MAX_PIECES * MAX_PIECE + len(text):
            self._sink = sink
            # Events wait while reasoning or held calls may still be taken back.
            if self.held is None and self.doubtful_reasoning is None and builder.token_map is None:
                self.direct = sink

    def feed_all(self, text: str) -> None:
        """Add the whole text without parsing it: `close` parses it with its end known. A text beyond the limit of the
        reply is handled at once, as in `feed`."""
        room = self.builder.limits.reply - self.builder.base - len(self.builder.buf)
        if len(text) > room:
            self._overflow(text, room)
        else:
            self.builder.append(text)

    def flush_partial_marker(self) -> None:
        """Parse the remaining text that was fed as if its end could not be the beginning of a marker: the caller has
        found a marker behind it. A handler that waits for more text keeps waiting. Does nothing if all of it is
        taken."""
        if self.builder.pos < len(self.builder.buf):
            self._flushes = True
            next(self._steps)
            self._flushes = False

    def set_token_map(self, token_map: TokenMap | None) -> None:
        """Set which text is special tokens, or None for unknown. It also ends direct access to the sink of the buffer,
        so that `feed` records each piece first."""
        self.builder.token_map = token_map
        self.direct = None

    def close(self, *, cut: bool = False) -> None:
        """End the text: parse the remainder with its end known and finalize everything open. Does nothing if the text
        has ended. `cut`: the reply was truncated. Then the pending call is rejected if it ends in an unclosed argument,
        and what follows a special token in reasoning that no marker closed becomes reasoning again."""
        if self.builder.ended:
            return
        self.builder.end()
        self.direct = self._sink = None
        next(self._steps, None)  # the last step: with its frame goes the machine's only reference to itself
        pending = self.builder.pending
        if cut and pending is not None and any(problem.code == "unclosed_argument" for problem in pending[1].problems):
            self.builder.reject_pending("truncated", "the reply was cut off in an argument that nothing closes")
        self._finish(cut)

    def skip(self, text: str) -> None:
        """Stop parsing, add `text` to what has arrived, and mark all of it as taken and the text as ended, without any
        event or span: another reader has parsed it."""
        self._steps.close()
        self.builder.skip(text)

    def _overflow(self, text: str, room: int) -> None:
        """Parse the first `room` characters of `text`, close the reply with a `too_large` problem, and emit the
        remainder as text. If the limit was exceeded before, emit all of it as text. What is emitted here is not parsed,
        and is text also inside reasoning."""
        builder = self.builder
        if not self.is_over:
            if room:
                self.feed(text[:room])
            self.close()
            message = f"the reply is longer than {builder.limits.reply} characters; the rest was not read"
            builder.problem("too_large", message)
            text = text[room:]
        self.output.events.append(Text(text))
        builder.skip(text)
        self.output.spans.mark("text", builder.at)

    # -- the run -------------------------------------------------------------------------------------------------------

    def _run(self) -> Steps[None]:
        """Parse the reply from marker to marker; yield whenever more text is needed, and return at its end. First read
        a marker that only a reply begins with. Where a call without an opener may begin, that is tried before the next
        marker. Text before a marker is emitted, then its handler runs; of a token that is known to be plain text the
        first character is emitted too. At the end of the text a truncated closing marker is dropped."""
        if self.compiled.first.may_begin(self.builder.buf):
            yield from self._read_first_marker()
        builder, output, compiled = self.builder, self.output, self.compiled
        tries, excluded, text = compiled.bare_calls.is_possible, compiled.bare_calls.excluded, compiled.scans.text
        while True:
            is_start = tries and not output.in_reasoning and builder.pos < len(builder.buf) and output.take_start()
            may_be_bare = is_start and builder.buf[builder.pos] not in excluded
            if may_be_bare and (yield from self._try_without_opener(compiled)):
                continue
            scan = text if type(self.state) in _OUTSIDE else self._scan()
            found = (scan.ended if builder.ended or self._flushes else scan.search)(builder.buf, builder.pos)
            end = len(builder.buf) if found is None else found.start()
            if end > builder.pos:
                if found is None and builder.ended and output.after_marker and not output.in_reasoning:
                    self._take_truncated_closer()
                self.take_text(end)
            if found is not None and (group := found.lastindex):
                sign = scan.actions[group]
                if builder.token_map is not None and sign.is_token and builder.is_plain_text(end, found.end()):
                    self.take_exact(end + 1)
                    continue
                steps = _HANDLERS[sign.action](self, found, sign)
                if steps:  # most markers are dealt with at once
                    yield from steps
            elif builder.ended:
                return
            else:
                yield

    def _try_without_opener(self, compiled: CompiledFormat) -> Steps[bool]:
        """Try to read a call without an opener at this place, where a reply or a line begins: bare, on a line, or (only
        before all text and calls) headless, its opener being the end of the prompt. Only kinds that the format has are
        tried. Return True if the main loop must look again for such a call, False to look for markers."""
        if compiled.bare_calls.can_begin_reply and (yield from self._try_bare()):
            return True
        if compiled.bare_calls.can_begin_line and (yield from self._try_line()):
            return True
        headless = compiled.bare_calls.headless
        if headless is None or self.builder.index or not self.output.is_silent:
            return False
        return (yield from self._try_headless(headless))

    def _finish(self, cut: bool) -> None:
        """Finalize what is open at the end of the text: pending and held calls, section, blanks, message, reasoning. A
        message whose header names one tool and that holds neither text nor a call becomes a truncated call (beyond the
        limit of calls a `too_large` problem, if there was none). With `cut` (the reply was truncated) what followed a
        special token inside reasoning becomes reasoning again; otherwise the reasoning has ended there."""
        builder, output = self.builder, self.output
        if builder.pending is not None:
            self._end_tool_message(marked=False)
            self._finalize_calls()
        if type(self.state) is InSection:
            self._leave_section()
        output.flush_blanks(builder.base + builder.pos)
        if self.held is not None:
            self.release_held()
        is_named = bool(builder.header_name())
        if is_named and not builder.full and self.message == Message(builder.index, output.text_chars):
            builder.fail_truncated()  # the message was truncated before its call
        if self.message.calls_before is not None:
            self._end_message()
        if self.doubtful_reasoning is not None:
            if cut:
                self.resume_reasoning()
                self.state = InReasoning()
                output.flush_blanks(builder.at)
            self.commit_reasoning()

    def _scan(self) -> Scan[Sign]:
        """Return the compiled search for the markers that count in the current state; in reasoning it also depends on
        whether content is open. It is not run here."""
        state = self.state
        if isinstance(state, InReasoning):
            return self.compiled.scans.reasoning_in_content if self.in_content else self.compiled.scans.reasoning
        return self.compiled.scans.message if isinstance(state, InChannel) else self.compiled.scans.text

    def take_text(self, end: int, *, is_exact: bool = False) -> None:
        """Take the text up to index `end` of the buffer and emit it as text or reasoning. Held calls become text before
        that, unless the text is blank and not `is_exact`. Outside reasoning the last reasoning is not searched for
        calls any more, unless only blanks behind a marker were taken. `is_exact`: keep blanks that otherwise belong to
        a marker before it."""
        builder, output = self.builder, self.output
        text = builder.buf[builder.pos : end]
        if self.held is not None and (is_exact or text.strip(BLANKS)):
            self._unhold_calls(self.held)
        builder.advance(len(text))
        (output.emit_exact if is_exact else output.emit)(text, builder.base + end)
        if self.last_reasoning.start is not None and not output.after_marker:
            self.forget_reasoning()

    def take_exact(self, end: int) -> None:
        """Take the text up to index `end` of the buffer and emit it with all its blanks."""
        self.take_text(end, is_exact=True)

    def take_marker(self, end: int, *, begins_line: bool = False, continues_line: bool = False) -> None:
        """Take a marker up to index `end` of the buffer and emit no text for it; blanks that wait before it are
        dropped, and code fences and quotations that are open end. The flags are those of `Output.drop_marker`: what
        follows may be a bare call (`begins_line`), or is on the same line (`continues_line`)."""
        self.builder.advance(end - self.builder.pos)
        self.output.drop_marker(self.builder.base + end, begins_line=begins_line, continues_line=continues_line)

    def take_if_shown(self, found: Match, sign: Sign) -> bool:
        """Emit a marker as text if it is only shown (in code, quotes or a shown opener), and remember what a shown
        opener opens, so that its closing marker counts as shown too. A known special token never is, nor is a marker
        with nothing but blanks before it in its message. Return True if it was; False, with nothing taken, if not."""
        if self.output.shown.is_new:
            return False
        level = LEVELS.get(sign.action, OUTSIDE)
        if self.builder.token_map is not None and self.builder.is_token(found.start(), found.end()):
            return False
        if not self.output.shown.shows(level, special=sign.special):
            return False
        self.take_exact(found.end())
        self.output.shown.join_lines()
        if level in self.compiled.shown_ends:
            self.output.shown.enter(level, self.compiled.shown_ends[level])
        return True

    def release_held(self) -> None:
        """Make the held calls without markers final, so that their events can go out. Does nothing if none are held."""
        if self.held is not None:
            self._commit(self.held)
            self.held = None

    # -- speculation ---------------------------------------------------------------------------------------------------

    def _speculate(self) -> Speculation:
        """Begin a speculation here and return it, for `_commit` or `_rollback`, one of which must end it. The events so
        far move into it, so that they are not undone. Code fences and quotations are followed anew from here."""
        builder, output = self.builder, self.output
        return Speculation(
            builder.capture(),
            output.take_events(),
            output.snapshot(),
            builder.index,
            dict(builder.notes),
            self.last_reasoning.start,
        )

    def _commit(self, begun: Speculation) -> None:
        """End a speculation: make final what was parsed since it began, and put its earlier events that were not yet
        taken before the new ones."""
        self.builder.drop(begun.start)
        self.output.prepend_events(begun.ready)

    def _rollback(self, begun: Speculation) -> str:
        """End a speculation: undo the calls, events, notes and output since it began, and restore the start of the last
        reasoning. `state` and `message` are left to the caller. Return its text, which remains taken, so that the
        caller can emit it."""
        self.builder.rollback(begun.index, begun.notes)
        self.output.restore(begun.output, begun.ready)
        self.last_reasoning = msgspec.structs.replace(self.last_reasoning, start=begun.reasoning_start)
        return self.builder.release(begun.start)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def block(
        self, start: int, bare: bool = False, special: bool = False, headless: bool = False, inner: bool = False
    ) -> Iterable[None]:
        """Read a block of calls: at once, opener included, if all of it has arrived and is regular (then the result is
        empty), else return steps that read it. Before that the pending call is finalized as by `_finalize_at_turn_end`.
        Bare calls at the beginning of a reply are held. A marker makes held calls final, ends the search of the last
        reasoning for calls (a bare call does that too), and enters the section if the format has sections.

        - `start`: the index in the buffer where its content begins, behind the opener.
        - `bare`: no marker opens it. `special`: its opener is a special token.
        - `headless`: the prompt ended with the first token of its opener. `inner`: the opening tag of its body opened
          it.
        """
        builder, before, compiled = self.builder, self.state, self.compiled
        first = builder.index
        if builder.pending is not None:
            self._finalize_at_turn_end()
        if bare:
            if first == 0 and self.held is None and compiled.bare_calls.can_begin_reply:
                self.held = self._speculate()
        else:
            if self.last_reasoning.start is not None:
                self.forget_reasoning()  # whatever comes of it
            if self.held is not None:
                self.release_held()
            if compiled.openers.section_start is not None:
                if type(before) is not InSection:
                    self._begin_calls()
                    self.state = InSection(first)
                elif before.due:
                    self.state = InSection(before.before, before.is_open)
        # An object is what the chosen tool is given, whatever it looks like.
        has_choice = compiled.bodies.named_outside and builder.options.choice
        quick = None if builder.is_end_uncertain or has_choice else compiled.bodies.quick
        whole = quick(builder, start, bare) if quick is not None else None
        if whole is not None and first + len(whole[0]) > builder.limits.calls:
            whole = None
        if whole is None or not whole[2] or (bare and compiled.call_ends.close is not None):
            in_reasoning = self.doubtful_reasoning is not None
            block = Block(
                builder, bare=bare, special=special, headless=headless, inner=inner, in_reasoning=in_reasoning
            )
            return self._block(block, start - builder.pos, whole, before)
        builder.add_whole_calls(whole[0], whole[1], 0)
        if compiled.bodies.is_quick_held:
            builder.hold_last_call()
        if self.last_reasoning.start is not None:
            self.forget_reasoning()
        if builder.buf[builder.pos - 1] <= " ":
            self._pass_blanks(builder.buf[whole[0][-1][1] : builder.pos])
        if compiled.openers.section_start is None:
            self.state = _IN_TEXT
        return ()

    def _block(self, block: Block, size: int, whole: WholeBlock | None, before: State) -> Steps[None]:
        """Parse a block step by step and set the state behind it; beyond the limit of calls, or of openers without a
        call, the remaining reply becomes text. If the reply has no call so far, nothing stays held.
        `size`: the length of its opener. `whole`: its calls if the fast path found them, else None; if their end is not
        certain, they count only if the reader, after more text unless live, knows that the block is over. `before`: the
        state to which a block that is text returns if it has no call; with calls it returns to text."""
        builder, first, at = self.builder, self.builder.index, self.builder.pos
        taken = builder.capture()
        if whole is not None and not whole[2]:
            if not builder.options.live:
                yield  # once: the text may end here, or go on with something else
            whole = whole if self.compiled.bodies.readers[0].is_over(builder, whole[1] + builder.pos - at) else None
        if whole is None:
            ending = yield from block.read(size)
        else:
            builder.add_whole_calls(whole[0], whole[1], builder.pos - at)
            ending = (yield from block.read_end()) if block.bare else "closed"
        self.end_block(taken)
        if builder.index > first:
            before = _IN_TEXT
            self.last_reasoning = msgspec.structs.replace(self.last_reasoning, start=None)
        elif first == 0:
            self.release_held()
        due: AwaitedClose = ending if ending in ("due", "late") else ""
        if ending == "text":
            self.state = before
        elif type(self.state) is InSection:
            self.state = InSection(self.state.before, self.state.is_open, due=due)
        else:
            self.state = InText(due=due) if due else _IN_TEXT
        if ending == "full":
            yield from self.read_rest_as_text()
        elif builder.notes.get("opener_without_call", 0) >= MOST_OPENERS:
            yield from self.read_rest_as_text(f"more than {MOST_OPENERS} openers that hold no call")

    def end_block(self, taken: Capture) -> None:
        """End the capture `taken` that began before a block. If a marker was last, and blanks behind it were taken, the
        output gets the blanks at the end of what was captured: a line break in them lets text behind the calls begin a
        line."""
        builder = self.builder
        if self.output.after_marker and builder.buf[builder.pos - 1 : builder.pos] <= " ":
            self._pass_blanks(builder.captured(taken))
        builder.drop(taken)

    def _pass_blanks(self, text: str) -> None:
        """Give the blanks at the end of `text`, which was taken, to the output (`hold_blanks`): a line break in them
        lets what follows the calls begin a line."""
        self.output.hold_blanks(text[len(text.rstrip(BLANKS)) :], self.builder.at)

    def read_rest_as_text(self, much: str = "") -> Steps[None]:
        """Emit the whole remaining reply as text and return at its end. Before that make held calls and a suspension of
        reasoning final, report a `too_large` problem that says what there was too much of (`much`, by default calls),
        and set `builder.full`."""
        builder = self.builder
        self.release_held()  # they are more than enough to be calls, whatever follows
        self.commit_reasoning()
        builder.report_too_many(much)
        while True:
            if builder.pos < len(builder.buf):
                self.take_exact(len(builder.buf))
            if builder.ended:
                return
            yield

    # -- reasoning -----------------------------------------------------------------------------------------------------

    def enter_reasoning(self) -> None:
        """Begin reasoning at the current position: text that follows is reasoning."""
        self.last_reasoning = LastReasoning(self.builder.at, None, True)
        self.state = InReasoning()
        self.output.switch(reasoning=True)

    def forget_reasoning(self) -> None:
        """Do not look for calls in the last reasoning when the reply ends: text or a call followed it, or was about to.
        Does nothing inside reasoning."""
        if self.last_reasoning.start is not None and type(self.state) is not InReasoning:
            self.last_reasoning = msgspec.structs.replace(self.last_reasoning, start=None)

    def leave_reasoning(self) -> None:
        """End the reasoning at a special token and drop the blanks before it. Does nothing outside reasoning and in a
        message of reasoning with a header."""
        if isinstance(self.state, InReasoning):
            self.state = InText()
            self.output.switch(reasoning=False)
            self.output.drop_blanks()

    def suspend_reasoning(self) -> None:
        """End the reasoning at the special token of a call, for now: if its closing marker comes later, everything
        since then becomes reasoning. Does nothing outside reasoning and in a message of reasoning with a header."""
        if isinstance(self.state, InReasoning):
            self.doubtful_reasoning = self._speculate()
            self.leave_reasoning()

    def commit_reasoning(self) -> None:
        """Make final that the reasoning ended at a special token, because its closing marker cannot come any more. Does
        nothing if no such decision is open."""
        if self.doubtful_reasoning is not None:
            self._commit(self.doubtful_reasoning)
            self.doubtful_reasoning = None

    def resume_reasoning(self) -> None:
        """Undo a suspension of the reasoning: all text since then, calls included, is emitted as reasoning, and an open
        content or message to a tool is forgotten. The state is not changed, the caller sets it. Does nothing if none is
        suspended."""
        if self.doubtful_reasoning is None:
            return
        if self.held is not None:
            self.builder.drop(self.held.start)
        begun, self.doubtful_reasoning, self.held = self.doubtful_reasoning, None, None
        self.in_content, self.message = False, Message(None, self.message.text_before)
        text = self._rollback(begun)
        self.output.emit(text, self.builder.at)

    # -- markers --

    def _on_call(self, found: Match, sign: Sign) -> Iterable[None]:
        """Handle an opener of a call: text if only shown, else record the name in it and return what reads the block
        behind it (empty if it was read at once). It ends open reasoning for now. An opener with a name that the text
        ends in is left to `_on_cut_opener`."""
        if not self.output.shown.is_new and self.take_if_shown(found, sign):
            return ()
        if (edges := self.compiled.openers.name_edges) is not None and not self._read_opener_name(found.group()):
            return self._on_cut_opener(re.compile(re.escape(edges[0])), sign)
        if type(self.state) is InReasoning:
            self.suspend_reasoning()
        return self.block(found.end(), False, sign.special)

    def _on_cut_opener(self, opens: re.Pattern[str], sign: Sign) -> Iterable[None]:
        """Handle an opener that the text ends in, at or behind its name: reject a truncated call, or beyond the limit
        of calls report that. If the text ends directly behind a name that is not declared, or before any name, the
        opener counts as the end of a turn instead. `opens` matches the part of the opener before the name."""
        builder = self.builder
        start = opens.match(builder.buf, builder.pos)
        assert start is not None
        if builder.buf.endswith(builder.header_names) and not builder.is_declared(builder.header_names):
            return self._on_end(start, sign)
        self.suspend_reasoning()
        self._finalize_calls()
        self._leave_section()
        self.output.drop_blanks()
        self.take_marker(start.end())
        builder.fail_truncated()
        self.forget_reasoning()
        return ()

    def _on_body(self, found: Match, sign: Sign) -> Steps[None]:
        """Read a call without its opener, from the opening tag of its body on (ollama#16686, vllm-mlx#597). The tag is
        text if only shown; else it ends open reasoning for now. If nothing was taken, because no call follows, its
        first character is taken as text."""
        if self.take_if_shown(found, sign):
            return
        self.suspend_reasoning()
        before = self.builder.at
        yield from self.block(found.start(), False, sign.special, False, True)
        if self.builder.at == before:  # nothing was taken: its first character is text
            self.take_exact(self.builder.pos + 1)

    def _on_section(self, found: Match, sign: Sign) -> Steps[None]:
        """Handle the opener of a section of calls: text if only shown. Else it ends open reasoning for now and
        finalizes the pending call. If a call, the closing marker or the end of the text follows, take it and enter the
        section (at the end of the text with a `truncated` problem, unless a header names the tool); else a block makes
        what follows text or a rejected call, and the remaining reply text beyond the limit of calls."""
        builder, start, size = self.builder, self.compiled.openers.section_start, len(found.group())
        if start is None or self.take_if_shown(found, sign):
            return
        self.suspend_reasoning()
        self.forget_reasoning()
        if builder.pending is not None:
            self._finalize_at_turn_end()
        self._leave_section()
        while (follows := start.at(builder.buf, builder.pos, builder.ended)) is None:
            yield
        before, self.state = self.state, InSection(builder.index, True)
        self._begin_calls()
        if follows:
            self.take_marker(builder.pos + size)
            if builder.ended and _NOTHING_MORE(builder.buf, builder.pos) and not builder.header_name():
                builder.problem("truncated", "the text ended where a tool call was about to begin")
            return
        # What follows is no call of the format.
        in_reasoning = self.doubtful_reasoning is not None
        block = Block(builder, bare=False, special=sign.special, is_section=True, in_reasoning=in_reasoning)
        taken = builder.capture()
        ending = yield from block.read(size)
        if ending == "text":
            self.state = before
        self.end_block(taken)
        if ending == "full":
            yield from self.read_rest_as_text()

    def _on_section_close(self, found: Match, sign: Sign) -> None:
        """End the section of calls and take the marker. At most one note reports, in this order, that it holds no call,
        that its last call lacks its closing marker (not if that call has a problem), or text in it (not beyond the
        limit of calls). Text behind a last call without its closing marker rejects that call. Outside a section the
        marker is text if only shown, else stray."""
        if isinstance(self.state, InSection):
            if self.state.before == self.builder.index:
                message = f"the section of calls that ends at {self.builder.at} holds none"
                self.builder.note("opener_without_call", message)
            elif self.state.due == "due":
                self._reject_text_before_close()
                self._report_unclosed()
            elif self.output.text_chars > self.message.text_before:
                self._report_text("section of calls")
            self.state = InText()
            self.take_marker(found.end())
        elif not self.take_if_shown(found, sign):
            self._drop_stray(found.group(), sign)

    def _on_closer(self, found: Match, sign: Sign) -> None:
        """Handle the closing marker of a call outside a block: it is text if only shown (not a special token that a
        call still lacks), else it closes a call late, rejects a pending call of uncertain end, or is stray."""
        is_late = bool(self.state.due)
        if not (is_late and sign.special) and self.take_if_shown(found, sign):
            return
        if is_late:
            self._close_late()
            self.take_marker(found.end())
        elif self.builder.pending is not None and self.builder.is_end_uncertain:
            self._reject_pending(found.group())
            self.take_marker(found.end())
        else:
            self._drop_stray(found.group(), sign)

    def _reject_pending(self, marker: str) -> None:
        """Add the blocking problem `ambiguous_end` to the pending call, which stays pending: `marker`, a closing marker
        behind it, makes its end uncertain. The marker is not taken."""
        self.builder.reject_pending(
            "ambiguous_end",
            f"{marker[:60]!r} stands behind the call, so that its end is not certain; "
            "send the call again without its own closing markers inside a value",
        )

    def _is_pending_unclosed(self) -> bool:
        """Return whether there is a pending call with the problem `unclosed`: it lacks its closing marker, so that text
        behind it may be part of it."""
        pending = self.builder.pending
        return pending is not None and any(each.code == "unclosed" for each in pending[1].problems)

    def _on_value_close(self, found: Match, sign: Sign) -> Iterable[None] | None:
        """Handle the closing marker of a raw value or of a body outside a block. One that also closes calls or sections
        is handled as that. Else it is text if only shown, rejects a pending call, which had not ended before it, or is
        stray if none is pending or it only repeats the end of a body. A shown one also rejects a pending call without
        its closing marker."""
        builder = self.builder
        marker = found.group()
        for other, is_it in self.compiled.call_ends.markers:
            if is_it(marker):  # a closing tag that is named after an argument may be any other
                return _HANDLERS[other.action](self, found, other)
        if self.take_if_shown(found, sign):
            if self._is_pending_unclosed():
                self._reject_pending(marker)
            return ()
        ends = self.compiled.call_ends.of_bodies
        is_doubled = self.output.after_marker and any(is_it(marker) for is_it in ends)
        if builder.pending is not None and not is_doubled:
            self._reject_pending(marker)
            self.take_marker(found.end())
        else:
            self._drop_stray(marker, sign)
        return ()

    def _on_content(self, found: Match, sign: Sign) -> None:
        """Handle the opening marker of content: text if only shown (then its closing marker is shown too), else drop
        it and set `in_content`. It ends open reasoning for now."""
        if self.take_if_shown(found, sign):
            self.output.shown.enter_message()
            return
        self.suspend_reasoning()
        self.in_content = True
        self.take_marker(found.end())

    def _on_content_close(self, found: Match, sign: Sign) -> Steps[None]:
        """Handle the closing marker of content. In this order it ends open reasoning and the content around it, closes
        reasoning that a call interrupted, is text if only shown, closes a call late (not in open content), ends the
        content (without open content a marker that is no special token is dropped too, without a note), or is
        stray."""
        marker, closers = found.group(), self.compiled.call_ends.markers
        if isinstance(self.state, InReasoning):  # that was opened inside the text
            self.last_reasoning = msgspec.structs.replace(self.last_reasoning, end=self.builder.at)
            self.leave_reasoning()
            self.in_content = False
            self.take_marker(found.end())
        elif self._closes_thought(marker):
            yield from self._on_think_close(found, sign)
        elif (yield from self._is_shown_closing(marker, sign)):
            self.take_exact(self.builder.pos + len(marker))
        elif self.state.due and not self.in_content and any(is_it(marker) for _, is_it in closers):
            self._close_late()
            self.take_marker(self.builder.pos + len(marker))
        elif self.in_content or not sign.special:
            self.in_content = False
            self.take_marker(self.builder.pos + len(marker), continues_line=True)
        else:
            self._drop_stray(marker, sign)

    def _closes_thought(self, marker: str) -> bool:
        """Return whether `marker`, the end of a message, also closes reasoning, and such reasoning was interrupted by a
        call, while no content is open and no call lacks its closing marker."""
        is_open = self.doubtful_reasoning is not None and not self.in_content and not self.state.due
        return is_open and any(is_it(marker) for is_it in self.compiled.reasoning_ends)

    def _on_inline(self, found: Match, sign: Sign) -> None:
        """Drop a mark inside text, such as a citation tag, so that the text around it stays one piece. It is text if
        only shown."""
        if not self.take_if_shown(found, sign):
            self.builder.take_match(found)
            self.output.drop_inline_mark(self.builder.at)

    def _on_tag(self, found: Match, sign: Sign) -> None:
        """Handle a tag around a protocol's blocks of text: an opening tag (text if only shown) begins its block, a
        closing tag, shown or not, ends the block. Either drops the tag and ends reasoning and an open code fence; a
        call without an opener may follow."""
        tag = self.compiled.content_tags[found.group()]
        if tag and self.take_if_shown(found, sign):
            return
        self.state = InText()
        self.output.set_tag(tag)
        self.take_marker(found.end(), begins_line=True)

    def _on_done(self, found: Match, sign: Sign) -> None:
        """Take the block of a protocol that reports the end of the task, `found`, and emit a `Done` event with the text
        between its markers. It is text if only shown."""
        protocol = self.compiled.format.protocol
        if self.take_if_shown(found, sign) or protocol is None:
            return
        opens, closes = protocol.done
        self.builder.take_match(found)
        self.output.done(found.group()[len(opens.strip()) : -len(closes.strip())].strip(), self.builder.at)

    def _on_line(self, found: Match, sign: Sign) -> None:
        """Take the text up to and with a line break as text; behind it a call without an opener may begin, except
        inside a block of a protocol's text."""
        self.take_text(found.end())
        self.output.begin_line()

    def _on_end(self, found: Match, sign: Sign) -> Steps[None]:
        """Handle the end of a turn or a message: text if only shown, or the end of reasoning that a call interrupted;
        else finalize calls, end the message with its notes, and drop the marker. A message of reasoning or content ends
        with it; reasoning in tags and a section stay open. A token that begins a truncated opener at the end of the
        text is dropped and reported as such. In a format whose header is a line, the header behind it is read, unless
        it is shown."""
        builder = self.builder
        marker = found.group()
        # Behind a call or another marker nothing shows it.
        if not self.output.after_marker and (yield from self._is_shown_closing(marker, sign)):
            self.take_exact(builder.pos + len(marker))
            return
        if self.doubtful_reasoning is not None and self._closes_thought(marker):
            yield from self._on_think_close(found, sign)
            return
        self._end_tool_message()
        self._finalize_at_turn_end()
        if marker.startswith(self.compiled.openers.first_tokens) and self._take_truncated_marker(marker):
            return
        builder.set_header_names("")
        self.release_held()
        is_tool_end = not self.output.after_marker and closes_only_calls(self.compiled.channels, marker)
        if is_tool_end and self.message.calls_before is None:
            # It ends like a call, and its header named no tool.
            self.message = Message(builder.index, self.message.text_before)
        self._end_message()
        builder.set_header_names("", at_turn_end=True)
        is_thought = self.output.in_reasoning
        if isinstance(self.state, InChannel):
            self.output.switch(reasoning=False)
            self.state = InText()
        self.take_marker(builder.pos + len(marker), begins_line=True)
        if is_thought:
            self.output.begin_text(builder.at)
        self.output.shown.begin_result(marker)
        if self.compiled.headers.next is not None and not self.output.shown.shows():
            yield from self._read_first_header(self.compiled.headers.next)

    def _is_shown_closing(self, marker: str, sign: Sign) -> Steps[bool]:
        """Return whether the marker here, which ends a turn or a message, is only shown; nothing is taken. It is if it
        closes a shown opener; if it is in code or quotes and closes a shown message (which is counted as closed then),
        or text follows (in an open message no opening marker); or if a quotation mark or a backtick is directly behind
        it. Never if it is a known special token, is behind another marker, or closes a tool's result."""
        builder, shown = self.builder, self.output.shown
        if self.output.after_marker or builder.is_token(builder.pos, builder.pos + len(marker)):
            return False  # behind a call or another marker nothing shows it
        if shown.is_closing(marker):
            return True
        if shown.is_result_over(marker):
            return False
        in_code = shown.shows(special=sign.special)
        if in_code and shown.leave_message():
            return True
        behind = yield from self._text_behind(len(marker), in_code)
        if not behind.strip() or behind[0] in QUOTES:
            return bool(behind.strip())
        is_implied = sign.action == "content_close" and self.compiled.is_content_implied
        in_message = self.in_content or is_implied or isinstance(self.state, InChannel)
        return in_code and not (in_message and (yield from self._opener_follows(len(marker))))

    def _text_behind(self, size: int, in_code: bool) -> Steps[str]:
        """Return up to 64 characters behind the current marker of `size` characters, waiting until enough of them have
        arrived to decide whether the marker is shown. `in_code`: it is in code or quotes, so blanks alone are not
        enough."""
        builder = self.builder
        while True:
            behind = builder.buf[builder.pos + size : builder.pos + size + _LOOKAHEAD]
            if behind.strip() or (behind and not in_code) or len(behind) == _LOOKAHEAD or builder.ended:
                return behind
            yield

    def _opener_follows(self, size: int) -> Steps[bool]:
        """Return whether an opening marker, after blanks, follows the current marker of `size` characters; wait for
        text until that is decided."""
        builder = self.builder
        while True:
            at = builder.pos + size
            at += len(builder.buf[at : at + _LOOKAHEAD]) - len(builder.buf[at : at + _LOOKAHEAD].lstrip())
            found = self.compiled.openers.begin.at(builder.buf, at, builder.ended)
            if found is not None:
                return bool(found)
            yield

    def _on_header(self, found: Match, sign: Sign) -> Iterable[None]:
        """Handle the beginning of a message header: text if it is shown, or (only its first character) a recipient
        without a start marker outside of reasoning. Otherwise finalize pending and held calls, reject a pending call
        that text separates from the end of its message, and return the steps that read the header."""
        channels = self.compiled.channels
        # A recipient without the start of a header may only be mentioned in text.
        to = channels.to.strip() if channels is not None and not self.output.in_reasoning else ""
        if to and self.builder.buf.startswith(to, self.builder.pos):
            self.take_exact(self.builder.pos + 1)
            return ()
        if isinstance(self.state, InChannel) and channels is not None and not channels.messages["content"][1]:
            # Nothing but the next header ends a message of such a format.
            self.output.shown.end_quotations(found.group())
        if self.take_if_shown(found, sign):
            self.output.shown.enter_message()
            self.output.shown.ignore_marker()  # `>>>` at the beginning of a line is no block quote
            return ()
        self._end_tool_message()
        self._finalize_calls()
        self._leave_section()
        self.release_held()
        return self._read_header(self.builder.capture(), bare=False)

    # -- closing markers of calls: late, missing, or preceded by text --

    def _close_late(self) -> None:
        """Accept a late closing marker, which the caller takes: none is due any more. Text between the call and it
        rejects the call, because that may belong to it. Then the call is emitted, unless the format has raw values or
        the call's end is uncertain: then it stays pending."""
        self.state = msgspec.structs.replace(self.state, due="")
        self._reject_text_before_close()
        if not (self.builder.is_end_uncertain or self.compiled.bodies.has_raw_values):
            self.builder.finalize_pending()

    def _reject_text_before_close(self) -> None:
        """Add the blocking problem `trailing_content` to the pending call, which stays pending, if text is between it
        and the closing marker here, because that text may be part of it. The marker is not taken."""
        if self.builder.pending is not None and not self.output.after_marker:
            message = "words stand between the call's arguments and what closes the call"
            self.builder.reject_pending("trailing_content", f"{message}; send them as an argument, or behind the call")

    def _report_unclosed(self) -> None:
        """Add a note that the closing marker of the pending call is missing, if a marker opened the call and it has no
        problem so far."""
        pending = self.builder.pending
        if self.state.due == "due" and pending is not None and not pending[1].problems:
            message = f"the marker that closes the call is missing; what is there up to {self.builder.at} is text"
            self.builder.note("unclosed", message)

    def _finalize_calls(self) -> None:
        """Emit the pending call, if there is one, because nothing that follows can change it, with a note if its
        closing marker is missing and it has no problem."""
        self._report_unclosed()
        self.builder.finalize_pending()

    def _finalize_at_turn_end(self) -> None:
        """Finalize the pending call at the end of a turn or at an opener. A call with raw values that lacks its closing
        marker stays pending until the next call: a marker that closes a value behind it shows that it had not ended."""
        if not (self._is_pending_unclosed() and self.compiled.bodies.has_raw_values):
            self._finalize_calls()

    def _begin_calls(self) -> None:
        """Begin a region where only calls belong, from whose beginning text is counted. In a message to a tool, a note
        reports the text so far first (not beyond the limit of calls)."""
        if self.message.calls_before is not None:
            self._report_text("message to a tool")
        self.message = Message(self.message.calls_before, self.output.text_chars)

    def _report_text(self, where: str) -> None:
        """Add a note if text was emitted since the region `where` began, in which only calls belong (beyond the limit
        of calls none), and begin to count again. No call is rejected."""
        if self.output.text_chars > self.message.text_before and not self.builder.full:
            message = f"words stand in the {where} before {self.builder.at}; they are text, and no part of a call"
            self.builder.note("trailing_content", message)
        self.message = Message(self.message.calls_before, self.output.text_chars)

    def _leave_section(self) -> None:
        """Add a note that the closing marker of the section is missing, if its opener was there and text was emitted
        since it began; beyond the limit of calls none. The state does not change."""
        has_text = self.output.text_chars > self.message.text_before
        if has_text and isinstance(self.state, InSection) and self.state.is_open and not self.builder.full:
            message = f"the marker that closes the calls is missing; what follows them up to {self.builder.at} is text"
            self.builder.note("unclosed", message)

    def _end_tool_message(self, *, marked: bool = True) -> None:
        """If the end of a message to a tool is still due, record that it is here, and reject the pending call if text
        follows it there, because all of the message belongs to the call. Any marker that ends a message will do
        (sglang#10576, kekzl/imp#1719). Without one (not `marked`: the text ends), only in formats that end such
        messages with a marker."""
        channels = self.compiled.channels
        is_over = channels is not None and (marked or bool(channels.messages["call"][1]))
        if is_over and self.state.due and isinstance(self.state, InText):
            self._reject_text_before_close()
            self.state = InText()

    def _end_message(self) -> None:
        """End the current message: no call is announced any more. If its header announced one, add a note if it holds
        none, or else, in a format whose headers do not name the tool, if text is next to its calls. No note is added
        beyond the limit of calls."""
        calls_before = self.message.calls_before
        if calls_before == self.builder.index and not self.builder.full:
            message = f"the message to a tool that ends at {self.builder.at} holds no call"
            self.builder.note("opener_without_call", message)
        elif calls_before is not None and not self.compiled.headers.has_tool_name:
            self._report_text("message to a tool")
        self.message = Message(None, self.message.text_before)

    def _take_truncated_closer(self) -> None:
        """Drop the end of the text if it is a truncated closing marker and the reply has a call (colibri#505), with a
        note, and finalize the pending call; or, without a note, if it is a truncated opener in a message whose header
        names a tool and that holds no call. Otherwise nothing is taken."""
        builder, compiled = self.builder, self.compiled
        rest = builder.buf[builder.pos :].lstrip(BLANKS)
        if not rest:
            return
        in_tool_message = self.message.calls_before == builder.index and builder.header_name()
        if in_tool_message and compiled.openers.begin.is_begun(rest, 0):
            self.take_marker(len(builder.buf))
        elif builder.index and compiled.call_ends.any.is_begun(rest, 0):
            builder.note("unclosed", "the text ended inside a marker that closes calls")
            builder.finalize_pending()
            self.take_marker(len(builder.buf))

    def _take_truncated_marker(self, token: str) -> bool:
        """Drop a marker that begins with `token` here and that the text ends in, and return True. Report a `truncated`
        problem if it may open a call (then the last reasoning is not searched for calls any more), else a note. Return
        False and take nothing if the text does not end, is no truncated marker or too long, if only blanks follow the
        token, or if a word follows it in place of any name or text: a message may be one word."""
        builder, compiled = self.builder, self.compiled
        if not builder.ended or len(builder.buf) - builder.pos - len(token) >= _LONGEST_MARKER:
            return False
        probes = compiled.partial_openers, compiled.partial_markers
        rest = builder.buf[builder.pos + len(token) :].strip(BLANKS)
        # Where any letter may follow the word, it is no tool's name: a message may be one word.
        if not rest or (_WORD(rest) and any(probe.is_begun(f"{token}{rest}\u0294", 0) for probe in probes)):
            return False
        if token.startswith(compiled.openers.first_tokens) and probes[0].is_begun(builder.buf, builder.pos):
            self.forget_reasoning()
            builder.problem("truncated", "the text ended where a tool call was about to begin")
        elif probes[1].is_begun(builder.buf, builder.pos):
            builder.note("stray_marker", f"the text ends inside the marker at {builder.at}; it was dropped")
        else:
            return False
        self.take_marker(len(builder.buf))
        return True

    # -- calls and reasoning without their opening marker --

    def _take_blanks(self) -> Steps[str]:
        """Take blanks, which are held until it is known whether text follows; wait for what is behind them. Return the
        character behind them, which is not taken, "" at the end of the text."""
        builder = self.builder
        if (char := builder.buf[builder.pos : builder.pos + 1]) > " ":
            return char
        taken = builder.capture()
        char = yield from builder.peek()
        self.output.hold_blanks(builder.release(taken), builder.at)
        return char

    def _read_first_marker(self) -> Steps[None]:
        """Read a marker that only a reply begins with, if one is here: `<think>` (not in reasoning), which many models
        write whatever their format uses, or a header, an opener of a call or a reasoning label whose first token the
        prompt may have ended with. Behind `<think>` no other is tried, the label only in formats without such an
        opener. If none is here, or the opener is known to be plain text, only blanks are taken, and what
        `_reject_header` takes."""
        builder, compiled, in_reasoning = self.builder, self.compiled, isinstance(self.state, InReasoning)
        tag_probe = compiled.first.think_tag
        if tag_probe is not None and not builder.base and not in_reasoning and may_be_think_tag(builder.buf):
            yield from self._take_blanks()
            tag = yield from builder.test(tag_probe)
            if tag:
                self.take_marker(tag.end())
                self.enter_tagged_reasoning()
                return
        if compiled.first.header is not None and not in_reasoning:
            yield from self._read_first_header(compiled.first.header)
        marker = compiled.first.opener or compiled.first.reasoning_label
        if marker is None:
            return
        yield from self._take_blanks()
        found = yield from builder.test(marker)
        if found is None:
            return
        if compiled.first.opener is None:
            self.take_marker(found.end())
            self.enter_reasoning()
        elif not builder.is_plain_text(found.start(), found.end()):
            self._read_opener_name(found.group())
            yield from self.block(found.end(), special=True, headless=True)

    def _try_bare(self) -> Steps[bool]:
        """Try to read a call without an opener here, where a reply may begin, also behind a separator if calls were
        before it; a code fence may open it. Return True if another may begin at the place that was reached. Without a
        call only blanks and the separator are taken, or the block has emitted its text, and the result is False. A
        fence that the format writes and that no call follows gives a note."""
        builder, compiled = self.builder, self.compiled
        char = yield from self._take_blanks()
        if compiled.bare_calls.between is not None and builder.index:
            found = yield from builder.test(compiled.bare_calls.between)
            if found:
                self.take_marker(found.end())
                char = builder.buf[builder.pos]
        fence, clash = compiled.bare_calls.fence, compiled.openers.like_bodies
        if char and char in compiled.bare_calls.first_characters:
            if clash is None or not (yield from builder.test(clash)):
                yield from self.block(builder.pos, bare=True)
        elif fence is not None and char == "`" and (found := (yield from builder.test(fence))):
            first, at = builder.index, builder.at
            yield from self.block(found.end(), bare=True)
            if builder.index == first and compiled.bare_calls.writes_fence:
                builder.note(
                    "opener_without_call", f"the fence at {at} is what opens a call, and none follows; it is text"
                )
        return self.output.at_start

    def _try_headless(self, headless: Probe) -> Steps[bool]:
        """Read a call whose opener the prompt ended with, `f[ARGS]{"x": 1}`, and return True, if the reply begins with
        a declared name and the token behind it (mlx-lm#1448). Else, also if these are known to be plain text, take only
        blanks and return False."""
        builder = self.builder
        yield from self._take_blanks()
        found = yield from builder.test(headless)
        if not found or builder.is_plain_text(found.start(), found.end()):
            return False
        if not any(declared(word, builder.tools) for word in names_in(found.group())):
            return False
        yield from self.block(builder.pos, special=True)
        return True

    def _try_line(self) -> Steps[bool]:
        """Read a call outside all blocks at the beginning of this line, or (not behind a marker, in a protocol's block
        or while calls are held) take lines that cannot hold one as text. Return True if the main loop must look again
        for such a call, also if the block became text, which counts as rejected. If no call is here, only blanks are
        taken."""
        builder = self.builder
        is_plain = not (self.output.after_marker or self.output.tag) and self.held is None
        if is_plain and (plain := PLAIN_LINES(builder.buf, builder.pos)):
            self.take_text(plain.end())
            self.output.begin_line()
            return True
        if not (yield from self._find_line_call()):
            return self.output.at_start
        first = builder.index
        yield from self.block(builder.pos, bare=True)
        if builder.index == first:
            self._rejected += 1
        return True

    def _unhold_calls(self, held: Speculation) -> None:
        """Undo the calls since the speculation `held` and emit their text, which was taken, as text, because other text
        follows them. Nothing is held then, and the state is text, without a due closing marker. A note reports an
        opener in it."""
        builder, self.held = self.builder, None
        text = self._rollback(held)
        self.state = InText(late=isinstance(self.state, InText) and self.state.late)
        scan = self.compiled.scans.text
        if any(scan.actions[found.lastindex or 0].action in _OPENING_ACTIONS for found in scan.finditer(text)):
            builder.note("opener_without_call", "what opens a call stands in text that no marker makes a call")
        self.output.emit(text, builder.at)

    # -- reasoning and stray markers --

    def _drop_stray(self, marker: str, sign: Sign) -> None:
        """Drop a marker that closes nothing, with a note, if it is a special token or follows other markers; else emit
        it as text. A truncated marker at the end of the text is dropped as a whole, with a `truncated` problem if it
        may open a call. Where a call may have been about to begin, the last reasoning is not searched for calls any
        more."""
        end = self.builder.pos + len(marker)
        if not (sign.special or self.output.after_marker):
            self.take_exact(end)
            return
        if sign.is_token and self._take_truncated_marker(marker):
            return
        if marker in self.compiled.openers.first_tokens and not isinstance(self.state, InReasoning):
            self.forget_reasoning()  # a call was about to begin behind it
        message = f"{marker[:60]!r} at {self.builder.at} closes nothing; it was dropped"
        self.builder.note("stray_marker", message)
        self.take_marker(end, continues_line=True)  # the text behind it does not begin a line

    def _on_stray(self, found: Match, sign: Sign) -> None:
        """Handle a token that means nothing alone: text if only shown, else a stray marker."""
        if not self.take_if_shown(found, sign):
            self._drop_stray(found.group(), sign)

    def _on_think(self, found: Match, sign: Sign) -> None:
        """Handle the opening marker of reasoning: text if only shown (in text `mentions` is set then, so that its
        closing marker may be shown too), stray inside reasoning. A sentence as a marker is text where the reply has
        text or reasoning already. Else finalize the pending call, make a suspension of reasoning final, drop the
        marker, and begin reasoning."""
        if self.take_if_shown(found, sign):
            if isinstance(self.state, InText):
                self.state = msgspec.structs.replace(self.state, mentions=True)
        elif isinstance(self.state, InReasoning):
            self._drop_stray(found.group(), Sign("think", True))
        elif is_sentence(found.group()) and (self.output.text_chars or self.last_reasoning.exists):
            self.take_exact(found.end())  # a sentence, not a tag: behind other text, or a thought, it is text as well
        else:
            self._finalize_calls()
            self._leave_section()
            self.commit_reasoning()
            self.take_marker(found.end())
            self.enter_reasoning()

    def _on_think_close(self, found: Match, sign: Sign) -> Steps[None]:
        """Handle the closing marker of reasoning. Open reasoning ends, unless it closes something shown in it (checked
        only where it also has another meaning). Else a sentence is text if none is suspended; all text so far becomes
        reasoning if the prompt may have opened it; a shown marker is text; suspended reasoning is resumed and ends; any
        other marker is stray. Behind reasoning a first header is read if the reply has neither text nor a call."""
        state, marker, shown = self.state, found.group(), self.output.shown
        if isinstance(state, InReasoning):
            # It may close a call that is shown in the reasoning.
            is_text = bool(self.compiled.reasoning_ends) and shown.is_closing(marker)
        elif is_sentence(marker) and self.doubtful_reasoning is None:
            is_text = True  # not a tag: where no thought is open it closes none
        elif isinstance(state, InText) and state.late and not (yield from self._is_mentioned(marker, state.mentions)):
            # A closing tag without its opener: the prompt had opened it (vllm#13125, DeepSeek-R1#352).
            self.output.recast(self.builder.at)
            is_text = False
        elif not (is_text := shown.shows()):
            if self.doubtful_reasoning is None:
                self._drop_stray(marker, Sign("think_close", True))
                return
            self.resume_reasoning()
        if is_text:
            self.take_exact(self.builder.pos + len(marker))
            return
        self.last_reasoning = msgspec.structs.replace(self.last_reasoning, end=self.builder.at)
        self.take_marker(self.builder.pos + len(marker), begins_line=True)
        self.output.begin_text(self.builder.at)
        self.output.switch(reasoning=False)
        self.state = InText()
        if self.compiled.first.header is not None and self.output.is_silent:
            yield from self._read_first_header(self.compiled.first.header)

    def _is_mentioned(self, marker: str, is_opened: bool) -> Steps[bool]:
        """Return whether the closing marker of reasoning here is only shown: it is in code or quotes, and its opener
        was shown too (`is_opened`) or the code or quotation ends directly behind it. Reasoning that the prompt opened
        may leave a quotation mark open."""
        if not self.output.shown.shows() or is_opened:
            return is_opened and self.output.shown.shows()
        builder = self.builder
        while True:
            behind = SHOWN_ENDS.at(builder.buf, builder.pos + len(marker), builder.ended)
            if behind is not None:
                return bool(behind)
            yield

    # -- messages with headers -----------------------------------------------------------------------------------------

    def _read_first_header(self, probe: Probe) -> Steps[None]:
        """Read a header without its start marker if `probe` finds one here, as `_read_header` does: the prompt may have
        ended with the start, or the header is a line. Otherwise only blanks are taken."""
        builder = self.builder
        taken = builder.capture()
        if not builder.char():
            yield from builder.peek()
        if (yield from builder.test(probe)):
            yield from self._read_header(taken, bare=True)
        else:
            self.output.hold_blanks(builder.release(taken), builder.at)

    def _read_header(self, taken: Capture, *, bare: bool) -> Steps[None]:
        """Read a header up to its message, which must begin within 256 characters, and the message too if it is nothing
        but the arguments of a call. What is no header, or has a message marker that is known to be plain text, is
        handled by `_reject_header`. `taken`: the capture that begins at it, which ends here; `bare`: it has no start
        marker."""
        builder, compiled = self.builder, self.compiled
        marker = compiled.headers.message_marker
        size = len(marker)
        end = builder.buf.find(marker, builder.pos, builder.pos + _MAX_HEADER + size)
        while end < 0 and not builder.ended and len(builder.buf) - builder.pos < _MAX_HEADER + size:
            yield
            end = builder.buf.find(marker, builder.pos, builder.pos + _MAX_HEADER + size)
        header = header_of(compiled, builder.buf[builder.pos : max(end, builder.pos)])
        is_letters = (
            builder.token_map is not None and isinstance(marker, Special) and builder.is_plain_text(end, end + size)
        )
        is_header, length = end >= 0 and header.is_header and not is_letters, end - builder.pos
        if is_header and bare and header.recipient and compiled.channels is not None and not compiled.channels.to:
            is_header = yield from self._is_recipient(header.recipient, length + size)
        if not is_header:
            self._reject_header(taken, end, bare)
            return
        kind = header.kind
        if kind is None and not header.recipient and compiled.headers.has_tool_name:
            # Arguments without a recipient belong to a call without a name, anything else is text.
            kind = None if (yield from builder.test(_OBJECT, length + size)) else "content"
        builder.drop(taken)
        yield from self._enter_message(header, kind, length, size)

    def _is_recipient(self, name: str, ahead: int) -> Steps[bool]:
        """Return whether `name`, a line at the beginning of a reply, is a header: a known kind of message, a declared
        tool, or a word before `{`. The message would begin `ahead` characters from here. Nothing is taken."""
        builder, channels = self.builder, self.compiled.channels
        if (channels is not None and name in channels.kinds) or builder.is_declared(name):
            return True
        return bool(_IS_NAME(name) and (yield from builder.test(_BRACE, ahead)))

    def _reject_header(self, taken: Capture, end: int, bare: bool) -> None:
        """Handle a header that no message follows (llama.cpp#27720, harmony#82): if the text ends in it, reject a
        truncated call of a declared tool, or drop it, if a start token is there, with a `truncated` problem (a note if
        somebody else speaks); drop its start with a note if words follow that belong in no header; else emit its first
        character as text (all of it if the text ends in it).

        - `taken`: the capture that begins at the header, which ends.
        - `end`: the index of the message marker, or -1. `bare`: the header has no start marker.
        """
        builder, compiled, channels = self.builder, self.compiled, self.compiled.channels
        assert channels is not None
        most = _MAX_HEADER + len(compiled.headers.message_marker)
        is_cut = (
            builder.ended
            and end < 0
            and len(builder.buf) - builder.pos < most
            and not holds_structure(compiled, builder.buf[builder.pos + 1 :])
        )
        text = builder.buf[builder.pos : end if end >= 0 else builder.pos + _MAX_HEADER]
        start = header_start_end(compiled, text)
        name = header_of(compiled, text).recipient if is_cut else ""
        if name and builder.is_declared(name) and builder.has_room():
            builder.drop(taken)
            self.suspend_reasoning()
            self._begin_message(None)
            self.take_marker(len(builder.buf))
            builder.begin_text()
            builder.begin(name)
            builder.fail_truncated()
        elif start and channels.channel and not may_be_partial_header(channels, text[start:]):
            builder.drop(taken)
            builder.note("stray_marker", f"the header at {builder.at} has no end; what follows it is text")
            self.take_marker(builder.pos + start)
        elif is_cut and compiled.headers.is_token and not bare:
            builder.drop(taken)
            is_others = any(other(text) for other in compiled.headers.starts[1:])
            self.take_marker(len(builder.buf))
            self.forget_reasoning()
            if is_others:
                builder.note(
                    "stray_marker", "the text ended where it began to say what somebody else says; that was dropped"
                )
            else:
                message = "the text ended inside the header of a message, where a tool call may have begun"
                builder.problem("truncated", message)
        else:
            # Its first character is text, and the search goes on behind it.
            builder.advance(len(builder.buf) - builder.pos if is_cut else 1)
            self.output.emit_exact(builder.release(taken), builder.at)

    def _enter_message(self, header: Header, kind: str | None, length: int, size: int) -> Steps[None]:
        """Take a header of `length` characters with the message marker of `size` characters behind it, record the names
        in a call's header (else none), and begin its message of this `kind` (None: a call; none is expected if the
        header is empty and calls name themselves). Open reasoning ends for now. A message of another kind that
        addresses a declared tool, or lacks the name, is expected to hold a call too. A message that is only a call's
        arguments is read here."""
        builder, compiled, channels = self.builder, self.compiled, self.compiled.channels
        assert channels is not None
        self.suspend_reasoning()
        # Where calls say their names themselves, a header that says nothing may precede words or calls.
        is_any = header.is_empty and not compiled.headers.has_tool_name
        self._begin_message(None if is_any else kind)
        if is_any:
            self.message = Message(None, self.message.text_before)
        if kind is not None and (header.recipient == "" or builder.is_declared(header.last_recipient)):
            self.message = Message(builder.index, self.message.text_before)
            self.forget_reasoning()
        builder.set_header_names("" if kind is not None else header.named)
        self.take_marker(builder.pos + length + size)
        if kind is None and compiled.headers.has_tool_name:
            yield from self._read_message(header.recipient or "")

    def _begin_message(self, kind: str | None) -> None:
        """End the message before, with its notes, and begin one that holds reasoning, content or (None) a call: set
        `message`, which counts text from here on, and `state`."""
        self._end_message()
        self.message = Message(self.builder.index if kind is None else None, self.output.text_chars)
        self.output.begin_message(kind)
        if kind is None:
            self.state = InText()
        else:
            self.state = InChannel("reasoning" if kind == "reasoning" else "content")

    def _read_message(self, name: str) -> Steps[None]:
        """Read a message to the tool `name`: nothing but the arguments of one call. Its end is not taken, and is still
        due if the call is pending. Beyond the limit of calls the remaining reply is text."""
        builder = self.builder
        taken = builder.capture()
        block = Block(builder, bare=True, in_reasoning=self.doubtful_reasoning is not None)
        yield from block.read_message(name)
        if builder.full:
            yield from self.read_rest_as_text()
            return
        self.output.spans.mark("marker", builder.at)  # the blanks behind it were looked past
        self.state = InText(due="late" if builder.pending is not None else "")
        self.output.end_calls()
        self.end_block(taken)
        self.forget_reasoning()

    def _read_opener_name(self, opener: str) -> bool:
        """Record the name in a call's opener, which the body of the call repeats. Return False if `opener` lacks the
        text behind the name, because the text ends in it; True also for openers without a name, which record
        nothing."""
        if (edges := self.compiled.openers.name_edges) is None:
            return True
        self.builder.set_header_names(opener.strip().removeprefix(edges[0]).partition(edges[1][:1])[0].strip())
        return edges[1] in opener

    # -- lines of a protocol --

    def _find_line_call(self) -> Steps[bool]:
        """Take blanks and return whether a runnable call begins here, at the beginning of a line: of a declared tool,
        given one object literal or nothing. None is looked for without tools, in a protocol's block of text, in shown
        text (backticks count only where the reply begins), or after more rejected calls than the limit of calls.

        A declared tool behind a foreign label or with other arguments, and an unknown tool with an object, are reported
        as a problem and stay text:

            edit({ path: "a.py" })         runs, with a note
            Hint: edit({ path: "a.py" })   rejected
            edit("a.py")                   rejected
            nope({ path: "a.py" })         unknown tool
        """
        builder, output = self.builder, self.output
        at_start = builder.at == 0
        char = yield from self._take_blanks()
        if not char or output.tag or not builder.tools or self._rejected > builder.limits.calls:
            return False
        if char == "`":
            wrapped = at_start and (yield from builder.test(WRAPPED))
            return bool(wrapped) and self._check_line_call(builder.tools, "{")
        found = yield from builder.test(LINE)
        # Behind text, a label that is a role as well begins a turn of a transcript.
        if not found or (not output.is_silent and RECORD(builder.buf, builder.pos)) or output.shown.shows(BODY):
            return False
        return self._check_line_call(builder.tools, found.group()[-1])

    def _check_line_call(self, tools: Toolset, given: str) -> bool:
        """Return whether the call that begins here is runnable: a declared tool without a foreign label, given an
        object or nothing. Otherwise a declared tool, or an unknown one without a foreign label that is given an object,
        is counted and reported as a problem. Nothing is taken. `given`: the first character of its arguments, or
        `)`."""
        builder = self.builder
        label, name = call_parts(builder.buf, builder.pos)
        known = name in tools
        if label and label not in self.compiled.bodies.readers[0].labels:
            if known:
                self._rejected += 1
                builder.problem(*labelled(label, name))
            return False
        if known and given not in "{)":
            self._rejected += 1
            builder.problem(
                "arguments_not_object", f"{name} must be called with one object literal: {name}({{ key: value }})"
            )
        elif not known and given == "{":
            self._rejected += 1
            builder.problem("unknown_tool", f"there is no tool {name[:80]!r}; {describe_tool_names(tools)}")
        return known and given in "{)"


_HANDLERS: dict[Action, Callable[[Machine, Match, Sign], Iterable[None] | None]] = {
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
