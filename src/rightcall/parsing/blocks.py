"""Read a block of calls: its opener, its calls, its closing marker, and every error in between.

Three exceptions carry what goes wrong: `NotACall` (before a call began), `Broken` (after: read on at the call's close,
so that its siblings live) and `Cut` (the text ended). An opener is never silent: behind one there is a call, a call
that may not run, or a note that the opener stood alone.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from rightcall.formats.spec import HOLES
from rightcall.parsing.bodies.name_then_json import read_arguments_of
from rightcall.parsing.bodies.trailing_text import ARGUMENTS
from rightcall.parsing.buffer import Broken, Capture, Cut, NotACall, Steps, broken_by
from rightcall.parsing.call_builder import declared, name_at
from rightcall.parsing.json_stream import whole_value
from rightcall.parsing.markers import BLANKS, RUN, Pat, Probe, Scan, blanks, literal, seq
from rightcall.repairs.envelope_repair import Sketch
from rightcall.repairs.finish import allowed, receipts
from rightcall.repairs.loose_json import INFO
from rightcall.types import Repair

if TYPE_CHECKING:
    from rightcall.parsing.bodies.body_reader import BodyReader
    from rightcall.parsing.call_builder import CallBuilder


# How a block ended: what was read was text; at its close; without its close, which may still come, and is missed only
# where a marker opened the block ("due"); at too many calls.
Ending = Literal["text", "closed", "due", "late", "full"]

# A code fence between the opener of a call and its body.
FENCE_BEGIN = Probe(seq(literal("```"), Pat(INFO, INFO, sure=RUN), literal("\n")))
_FENCE_END = Probe(literal("```"))
_WORD = Probe(Pat(f"(?:{HOLES['name']})?+", f"(?:{HOLES['name']})?+", sure=RUN))
_WORDS = re.compile(r"(?:\s++[\w'.,-]++)++\Z").match


class Block:
    """One block of calls. `bare`: no marker opened it."""

    __slots__ = (
        "_headless",
        "_is_empty",
        "_is_inner",
        "_is_odd",
        "bare",
        "body_close",
        "broken_at",
        "builder",
        "content",
        "fenced",
        "first",
        "holds",
        "reader",
        "special",
    )

    def __init__(
        self,
        builder: CallBuilder,
        *,
        bare: bool,
        special: bool = False,
        is_odd: bool = False,
        headless: bool = False,
        inner: bool = False,
    ) -> None:
        self.builder = builder
        self.bare = bare
        self.special = special  # its opener is a token that nobody writes by chance
        self._is_odd = is_odd  # what follows the opener is known to be no call as the format writes it
        self._headless = headless  # its opener begins with the call's name, as the prompt has the token before it
        self._is_inner = inner  # its body's own tag opened it: no marker around it must be closed
        self._is_empty = False
        self.fenced: tuple[Repair, ...] = ()  # the receipt of a code fence around the calls
        self.reader: BodyReader | None = None
        self.holds = builder.compiled.call_ends.close is not None and not bare  # calls wait for what follows them
        self.first = builder.index
        self.body_close = 0  # how long the body's own close is that a broken call was read up to
        self.broken_at = 0  # where it could not be read any further
        self.content = builder.at  # where what stands behind the opener begins

    def read(self, start: int) -> Steps[Ending]:
        """Read the block whose opener ends at this index of the buffer."""
        builder = self.builder
        opening = builder.capture()
        builder.pos = start
        self.content = builder.at
        builder.block = self
        try:
            try:
                yield from self._calls()
            except NotACall:
                ending = yield from self._no_call(opening)
                if ending is not None:
                    return ending
            except Cut:
                return self._end_of_text(opening)
            except (Broken, RecursionError) as error:
                if self.bare and builder.index == self.first:
                    return self._text(opening)
                yield from read_broken(self, broken_by(error, builder.limits.depth))
            if builder.full:
                return self._full(opening)
            builder.drop(opening)
            self._end_of_calls()
            return (yield from self.end())
        finally:
            builder.block = None

    def _no_call(self, opening: Capture) -> Steps[Ending | None]:
        """Handle an opener that no call of the format follows. None if a call was rejected instead."""
        builder = self.builder
        if builder.full:
            return self._full(opening)
        if not self.bare and is_cut_short(self, opening, self._is_odd):
            keep_rest(self)
            return self._end_of_text(opening)
        if self.bare or not (yield from self._has_body()):
            return self._text(opening)
        yield from read_unreadable(self)
        return None

    def _end_of_text(self, opening: Capture) -> Ending:
        builder = self.builder
        if self.is_full():
            return self._full(opening)
        if not self._cut():
            return self._text(opening)
        builder.drop(opening)
        builder.output.after_marker = True
        builder.finalize_pending()
        return "closed"

    def _end_of_calls(self) -> None:
        builder = self.builder
        if builder.index == self.first and not self._is_empty:
            builder.note("opener_without_call", f"the block at {self.content} holds no call")
        builder.pos += self.body_close
        builder.output.drop_blanks()
        builder.output.after_marker = builder.output.at_start = True
        builder.output.mark("marker", builder.at)

    def is_full(self) -> bool:
        """Does the call that is being read exceed the limit of calls? Then it is text."""
        builder = self.builder
        builder.full = builder.call is None and builder.index >= builder.limits.calls
        if builder.full and builder.ended:
            builder.pos = len(builder.buf)
        return builder.full

    def _full(self, opening: Capture) -> Ending:
        self._text(opening)
        return "full"

    def _text(self, opening: Capture) -> Ending:
        """Emit as text what was read, from the last whole call on."""
        builder = self.builder
        text = builder.captured(opening)
        builder.drop(opening)
        builder.finalize_pending()
        if builder.index > self.first:
            text = "" if builder.raw is None else builder.captured(builder.raw)
            builder.output.mark("marker", builder.at - len(text))
        elif not self.bare and not builder.full:
            builder.note("opener_without_call", f"the text at {opening} opens a call, and none follows; it is text")
            if self.special:
                return self._text_behind_token(opening, text)
        builder.raw_drop()
        builder.output.emit_exact(text, builder.at)
        return "text"

    def _text_behind_token(self, opening: Capture, text: str) -> Ending:
        """Drop an opener that is a special token, and emit the text behind it apart from the text before it."""
        builder = self.builder
        name = name_at(text) if self._headless else None
        if name is not None:
            builder.output.emit_exact(name.group(), opening + name.end())
        builder.output.drop_marker(self.content)
        builder.raw_drop()
        builder.output.emit(text[self.content - opening :], builder.at)
        builder.output.at_start = False
        return "text"

    def _has_body(self) -> Steps[bool]:
        """Does a body, or the name of a declared tool, follow the opener? Else the opener is only mentioned."""
        builder = self.builder
        text = builder.captured(self.content).strip()
        if not text or text in [receipt.before for receipt in self.fenced]:
            yield from builder.peek()
            if (yield from builder.test(builder.compiled.bodies.begin)):
                return True
            word = yield from builder.test(_WORD)
            text = word.group() if word else ""
        name = name_at(text)
        return name is not None and bool(declared(name.group(), builder.tools))

    # -- the calls -----------------------------------------------------------------------------------------------------

    def _calls(self) -> Steps[None]:
        builder, compiled = self.builder, self.builder.compiled
        char = builder.char() or (yield from builder.peek())
        if not char:
            raise Cut
        if self._is_odd:
            raise NotACall
        if not self.bare and char in compiled.call_ends.heads and (yield from self._closes_at_once()):
            self._empty()
            return
        clash = compiled.openers.like_bodies
        if clash is not None and not self.bare and (yield from builder.test(clash)):
            self._empty()  # another opener, and no body, though one may begin like it
            return
        if char == "`" and not self.bare:
            char = yield from self._past_fence()
        yield from self._body(char)

    def _closes_at_once(self) -> Steps[bool]:
        builder, close = self.builder, self.builder.compiled.call_ends.close
        found = close.at(builder.buf, builder.pos, builder.ended) if close is not None else False
        if close is not None and found is None:
            found = yield from builder.test(close)
        return bool(found)

    def _body(self, char: str) -> Steps[None]:
        """Choose the reader of the calls that begin here."""
        builder, compiled = self.builder, self.builder.compiled
        if compiled.bodies.named_outside and builder.options.choice and char == "{":
            return compiled.bodies.named_outside.read_choice(builder, builder.options.choice)
        if len(compiled.bodies.readers) == 1:
            return self._read_by(compiled.bodies.readers[0])
        return self._first_that_begins(compiled.bodies.readers)

    def _first_that_begins(self, readers: list[BodyReader]) -> Steps[None]:
        for reader in readers:
            if (yield from self.builder.test(reader.begins)):
                yield from self._read_by(reader)
                return
        raise NotACall

    def _read_by(self, reader: BodyReader) -> Steps[None]:
        self.reader = reader
        self.holds = self.holds or bool(reader.closers) or self.builder.is_end_uncertain
        return reader.read(self.builder, bare=self.bare)

    def _empty(self) -> None:
        """Report an opener that its closing marker follows at once."""
        builder = self.builder
        self._is_empty = True
        builder.drop_blanks()
        if builder.compiled.format.protocol is not None:
            builder.problem("no_call", "a block for a call is empty; it must hold one call, name({ ... })")
        else:
            builder.note("opener_without_call", f"the block at {self.content} holds no call")

    def _past_fence(self) -> Steps[str]:
        """Take a code fence between the opener and the calls, with a receipt. Return the character behind it."""
        builder = self.builder
        found = (yield from builder.test(FENCE_BEGIN)) if builder.policy("") != "off" else None
        if found:
            builder.pos = found.end()
            self.fenced = (Repair("code_fence", "exact", "", found.group().strip(), ""),)
        return builder.char() or (yield from builder.peek())

    def reread(self, *, closed: bool = True) -> bool:
        """Read a broken call again with the tolerant reader; `raw` holds the remainder of the block. `closed`: its end
        was there, so that open brackets were forgotten and not cut off."""
        builder = self.builder
        if self.reader is None or builder.raw is None:
            return False
        text, start = builder.captured(builder.raw), builder.raw_at
        found = self._sketch(self.reader, text, closed)
        if not found or builder.index + len(found) > builder.limits.calls:
            return False
        for each in found:
            builder.add_reread_call(each, text, start)
        rest = text[self.reader.tail(text, found[-1].end) :] if not closed else ""
        if rest.strip():
            builder.output.after_marker = True
            builder.output.emit_after_call(rest, builder.at)
        return True

    def holds_all(self) -> bool:
        """Does the tolerant reader find calls in the remainder of the block, and nothing behind them?"""
        reader, builder = self.reader, self.builder
        text = builder.captured(builder.raw) if builder.raw is not None else ""
        found = self._sketch(reader, text, False) if reader is not None else []
        return bool(found) and reader is not None and not text[reader.tail(text, found[-1].end) :].strip()

    def _sketch(self, reader: BodyReader, text: str, closed: bool) -> list[Sketch]:
        """Return the calls that the tolerant reader finds, if the policy allows all of its repairs."""
        builder, tools = self.builder, self.builder.tools
        policy = builder.policy("" if builder.call is None else builder.call.name)
        found = reader.sketch(builder, text, closed) if policy != "off" else []
        named = [(each, tools.get(each.name) if tools is not None else None) for each in found]
        return found if all(allowed(receipts(each.liberties), tool, policy) for each, tool in named) else []

    def _cut(self) -> bool:
        """Handle the end of the text inside a block. False if so little of the block is there that it is text."""
        builder = self.builder
        builder.pos = len(builder.buf)
        if builder.call is not None:
            if self._close_inside():
                builder.fail(
                    "unterminated_string", "the call's end marker stands inside a string that was never closed"
                )
            else:
                builder.fail("truncated", "the text ended before the call did; send the whole call again")
        elif builder.index == self.first and (not builder.index if self.bare else self._is_word()):
            return False
        elif builder.header_name():
            builder.fail_truncated()
        elif builder.raw is not None and builder.captured(builder.raw).strip():
            builder.fail("truncated", "the text ended before the call's name was known; send the whole call again")
        else:
            builder.raw_drop()
            builder.drop_blanks()
            if builder.index == self.first:
                builder.problem("truncated", "the text ended where a tool call was about to begin")
        return True

    def _is_word(self) -> bool:
        """Is the opener followed by words, or by one that begins no tool's name? Then it is only mentioned."""
        builder = self.builder
        word = builder.captured(self.content).strip()
        found = name_at(word) if not self.special else None
        if found is None or found.end() < len(word):
            return found is not None and _WORDS(word, found.end()) is not None
        if builder.tools is None:
            return word.endswith(".")
        return not any(tool.name.startswith(word) for tool in builder.tools)

    def _close_inside(self) -> bool:
        builder = self.builder
        assert builder.raw is not None
        scan = builder.compiled.recovery.scan
        text = builder.captured(builder.raw)[max(0, builder.args_at - builder.raw_at) :]
        return any(scan.actions[found.lastindex or 0].endswith("close") for found in scan.finditer(text))

    # -- its end -------------------------------------------------------------------------------------------------------

    def end(self) -> Steps[Ending]:
        """Read the closing marker of the block."""
        builder = self.builder
        close = builder.compiled.call_ends.close
        if self.fenced:
            yield from self._past_fence_end()
        is_due = close is not None and (yield from self._close(close))
        if is_due:
            return "late" if self.bare or self._is_inner else "due"
        self._settle()
        return "closed"

    def _past_fence_end(self) -> Steps[None]:
        """Take the end of the code fence around the calls."""
        builder = self.builder
        if (builder.char() or (yield from builder.peek())) == "`" and (end := (yield from builder.test(_FENCE_END))):
            builder.pos = end.end()
            builder.output.mark("marker", builder.at)

    def _settle(self) -> None:
        """Finalize the call, unless its values are raw: then what follows may show that it has not ended."""
        if self.reader is None or not (self.reader.closers or self.builder.is_end_uncertain):
            self.builder.finalize_pending()

    def _close(self, close: Probe) -> Steps[bool]:
        """Take the closing marker. True if it is missing and may still come, behind text."""
        builder = self.builder
        char = builder.char() or (yield from builder.peek())
        found = close.at(builder.buf, builder.pos, builder.ended)
        if found is None:
            found = yield from builder.test(close)
        if found:
            builder.pos = found.end()
            yield from self._reject_late_arguments()
        is_due = not found and self._is_due(close, char)
        builder.output.mark("marker", builder.at)
        return is_due

    def _reject_late_arguments(self) -> Steps[None]:
        """Reject a call without arguments if arguments follow its closing marker: they are its own."""
        builder = self.builder
        call = builder.pending[1] if builder.pending is not None else None
        if call is None or call.arguments:
            return
        if call.raw.rstrip()[-1:] not in _BRACKETS and (yield from builder.test(ARGUMENTS)):
            builder.reject_pending("trailing_content", "the call ends before its arguments; send them inside of it")

    def _is_due(self, close: Probe, char: str) -> bool:
        """The closing marker is not here: may it still come?"""
        builder = self.builder
        is_cut = builder.ended and close.is_begun(builder.buf, builder.pos)
        if self.bare and is_cut:
            builder.pos = len(builder.buf)  # the fence around the calls was cut off in its last line
            return False
        if not char:
            if not self.bare and not self._is_inner:
                builder.problem("unclosed", "the text ended before the marker that closes the call", blocking=False)
            return False
        in_code = builder.compiled.call_ends.heads == {"`"}  # all that stands before its fence
        if (in_code or char in ",;()[]{}") and builder.pending is not None and not is_cut:
            builder.reject_pending("trailing_content", f"unexpected {char!r} after the call")
        return True


# -- messages to a tool ------------------------------------------------------------------------------------------------


def _is_end(builder: CallBuilder) -> bool:
    """Is it certain that the message ends here?"""
    if not builder.char():
        return builder.ended
    return builder.compiled.call_ends.turn is not None and bool(
        builder.compiled.call_ends.turn.at(builder.buf, builder.pos, builder.ended)
    )


def take_whole_message(builder: CallBuilder, name: str) -> bool:
    """Read a message to a tool at once, if all of it is there and as usual; else take nothing."""
    start = builder.pos
    alone = builder.compiled.call_ends.close is None and builder.index < builder.limits.calls
    found = whole_value(builder) if alone and builder.char() == "{" else None
    end = builder.pos
    if found is None or type(found[1]) is not dict or not _is_end(builder):
        builder.pos = start
        return False
    builder.whole_call((start, end, name, *found, ""))
    builder.pos = end
    return True


def read_message(builder: CallBuilder, name: str) -> Steps[None]:
    """Read a message to a tool: its arguments, whole or as they arrive, and what else may stand there."""
    builder.raw_begin()
    block = builder.block = Block(builder, bare=True)
    block.holds = True
    block.reader = builder.compiled.bodies.readers[0]
    try:
        yield from _message(builder, name, block)
    finally:
        builder.block = None


def _message(builder: CallBuilder, name: str, block: Block) -> Steps[None]:
    try:
        builder.begin(name)
        char = yield from builder.peek()
        if not char or char in '{["':
            yield from read_arguments_of(builder, None)
        elif builder.compiled.call_ends.turn and (end := (yield from builder.test(builder.compiled.call_ends.turn))):
            yield from _reject_arguments_behind(builder, end.end() - builder.pos)
            builder.raw_end()
            builder.finish(empty=True)
        else:
            yield from _raw(builder, block)
    except NotACall:
        builder.raw_drop()
    except Cut:
        builder.pos = len(builder.buf)
        builder.fail("truncated", "the text ended before the call did; send the whole call again")
    except (Broken, RecursionError) as error:
        broken = broken_by(error, builder.limits.depth)
        found = yield from resync(block, headed=True)
        if not builder.reread(closed=found):
            builder.fail(broken.code, broken.message, broken.path)


def _reject_arguments_behind(builder: CallBuilder, ahead: int) -> Steps[None]:
    assert builder.compiled.channels is not None
    if (yield from builder.test(_late_arguments(builder.compiled.channels.channel), ahead)):
        raise Broken("trailing_content", "the message ends before the call's arguments; send them inside of it")


@lru_cache(8)
def _late_arguments(channel: str) -> Probe:
    """Return a probe for arguments behind the end of their message, with tokens of its header before them, except
    tokens that begin another header."""
    other = rf"<\|start\|>|{re.escape(channel)}" if channel else r"<\|"
    tokens = rf"(?:(?!{other})<\|[^<>|\s]{{1,32}}+\|>\w{{0,16}}+[ \t\r\n]{{0,8}}+){{0,3}}+"
    return Probe(seq(blanks(), Pat(tokens, r"(?:<[^<>\s]{0,36}+>?+\w{0,16}+[ \t\r\n]{0,8}+){0,3}+"), ARGUMENTS.pat))


def _raw(builder: CallBuilder, block: Block) -> Steps[None]:
    """Reject a message that is not JSON, such as code for an interpreter, and keep its text."""
    builder.args_at = builder.at
    found = yield from resync(block, headed=True)
    if builder.reread(closed=found):
        return
    assert builder.call is not None and builder.raw is not None
    builder.call.parts.append(builder.captured(builder.raw))
    if not found:
        raise Cut
    builder.fail("arguments_not_object", "the arguments must be a JSON object")


_QUOTES = "=\"' "
_BRACKETS = frozenset(")]}")  # what a text that was not cut off may end with
_LONGEST_OPENER = 1_024
_NO_NAME = "the call has no tool name; send the name of a tool with its arguments"
_UNREADABLE = "the call could not be read; send it again exactly as the format asks for"


def read_broken(block: Block, broken: Broken) -> Steps[None]:
    """Reads on to the call's close. The call is read again, loosely, or fails."""
    builder = block.builder
    found = yield from resync(block)
    if block.is_full():
        return
    closes = builder.compiled.recovery.has_close
    if block.reread(closed=found and closes):
        if closes and not block.body_close and builder.compiled.call_ends.close is None:
            builder.note("unclosed", "the marker that closes the call is missing")
    else:
        if builder.call is None and _is_nameless(block):
            broken = Broken("invalid_name", _NO_NAME)
        if builder.index == block.first and builder.raw_at == block.broken_at:
            builder.raw = builder.raw_at = block.content  # nothing of it was read: what stood before it is left of it
        builder.fail(broken.code, broken.message, broken.path, end=_end_of_broken(block, found, block.broken_at))
        builder.is_end_uncertain = True


def read_unreadable(block: Block) -> Steps[None]:
    """What follows the opener is no call as the format writes it: the call is rejected, its text is kept."""
    builder = block.builder
    builder.raw_drop()
    found = yield from resync(block)
    if not block.is_full():
        _unreadable(block, builder.captured(block.content), found)


def _unreadable(block: Block, content: str, found: bool) -> None:
    """A call that cannot be read: what of its name is known, and why it may not run."""
    builder, text = block.builder, content.lstrip()
    tag, name = _begin_known(block, text)
    if (tag and name is None) or _is_nameless(block):
        builder.fail("invalid_name", _NO_NAME)
    elif builder.ended and not found and (builder.compiled.recovery.has_close or text.rstrip()[-1:] not in _BRACKETS):
        builder.fail("truncated", "the text ended before the call did; send the whole call again")
    else:
        known_to = block.content + len(content) - len(text) + (name.end() if name is not None else len(tag))
        builder.fail("invalid_call", _UNREADABLE, end=_end_of_broken(block, found, known_to))
    builder.is_end_uncertain = True


def is_cut_short(block: Block, opening: Capture, odd: bool) -> bool:
    """Does the text end inside of a longer opener, or of what opens a call behind this one? Then it is no prose. `odd`:
    the opener is a section's, behind which other openers stand."""
    builder, compiled = block.builder, block.builder.compiled
    if not builder.ended or builder.base + len(builder.buf) - opening > _LONGEST_OPENER:
        return False
    text = builder.captured(opening) + builder.buf[builder.pos :]
    if odd:
        return compiled.openers.section_start is not None and compiled.openers.section_start.is_begun(text, 0)
    rest = text[block.content - opening :].lstrip(BLANKS)
    is_begun = bool(rest) and any(reader.begins.is_begun(rest, 0) for reader in compiled.bodies.readers)
    return is_begun or compiled.openers.begin.is_begun(text, 0)


def keep_rest(block: Block) -> None:
    """All that stands behind the opener is the call's own text, and may say its name; text, where there is no room for
    the call."""
    builder = block.builder
    if block.is_full():
        return
    builder.raw_begin()
    builder.raw = builder.raw_at = block.content
    builder.pos = len(builder.buf)
    _begin_known(block, builder.captured(block.content).lstrip())


def _begin_known(block: Block, text: str) -> tuple[str, re.Match[str] | None]:
    """How the body's opening tag begins, if it stands here, and what stands where the name should. If that is a
    declared tool's, the call begins."""
    tag = next((tag for tag in map(_unquoted, block.builder.compiled.bodies.tags) if text.startswith(tag)), "")
    name = name_at(text, len(text) - len(text[len(tag) :].lstrip(_QUOTES)))
    if name is not None and (known := declared(name.group(), block.builder.tools)):
        block.builder.begin(known)
    return tag, name


def _unquoted(tag: str) -> str:
    """How a tag with a name begins, however it is quoted."""
    return tag.rstrip(_QUOTES)


def _is_nameless(block: Block) -> bool:
    """Is all as it should be behind the opener, but for the name?"""
    return bool(block.builder.compiled.bodies.nameless.at(block.builder.captured(block.content).lstrip(), 0, True))


def _end_of_broken(block: Block, found: bool, end: int) -> int | None:
    """Without a close nobody knows what belongs to a call: what stands behind the break is text. Of the call itself
    something is left."""
    return None if (found and block.builder.compiled.recovery.has_close) or end <= block.builder.raw_at else end


def resync(block: Block, *, headed: bool = False) -> Steps[bool]:
    """Takes everything up to the call's close, or what can only stand behind it; False if the text ended first.
    `headed`: a header opened the call, and no tag."""
    builder = block.builder
    if builder.raw is None:
        builder.raw_begin()
    block.broken_at = builder.at
    scan = builder.compiled.recovery.scan_in_reasoning if builder.in_open_reasoning else builder.compiled.recovery.scan
    # A body's own opening tag does not end what it opens.
    skip = 0 if headed or builder.captured(block.content).strip() else 1
    turn: Capture | None = None
    action, size = yield from _next_sign(block.builder, scan, skip)
    while action == "turn":
        # The turn's end, or a word of a value: what came behind it before the call's close stands in the call.
        turn = builder.capture() if turn is None else turn
        builder.pos += size
        action, size = yield from _next_sign(block.builder, scan, 0)
    is_sign = bool(action) or turn is not None
    if is_sign and block.bare and not block.first and (yield from _is_all_of_it(block)):
        action = "close"
    if turn is not None:
        (builder.drop if action.endswith("close") else builder.give_back)(turn)
    if action == "body_close":
        block.body_close = size
    return bool(action) or turn is not None


def _is_all_of_it(block: Block) -> Steps[bool]:
    """Of calls that no marker opened: are they all the rest of the text, read loosely? Then a marker in it is a
    word of a value. Takes it, or nothing."""
    builder = block.builder
    taken = builder.capture()
    while not builder.ended:
        builder.pos = len(builder.buf)
        yield
    builder.pos = len(builder.buf)
    if block.holds_all():
        builder.drop(taken)
        return True
    builder.give_back(taken)
    return False


def _next_sign(builder: CallBuilder, scan: Scan[str], skip: int) -> Steps[tuple[str, int]]:
    """Takes everything up to the next marker: what it does, and its length. The first so many characters are no
    beginning of one. Nothing where the text ended first."""
    while True:
        found = (scan.ended if builder.ended else scan.search)(builder.buf, builder.pos + skip)
        if builder.pos + skip <= len(builder.buf):
            builder.pos, skip = builder.pos + skip, 0
        builder.pos = found.start() if found else len(builder.buf)
        if found is not None and found.lastindex is not None:
            return scan.actions[found.lastindex], found.end() - found.start()
        if builder.ended:
            return "", 0
        yield
