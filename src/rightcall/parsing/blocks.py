"""A block of calls: an opener, the calls behind it, its close, and everything that can go wrong in between.

Three exceptions carry what goes wrong: `NotACall` (before a call began), `Broken` (after: read on at the call's close,
so that its siblings live) and `Cut` (the text ended). An opener is never silent: behind one there is a call, a call
that may not run, or a note that the opener stood alone.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from rightcall.parsing.arriving_fences import FENCE_BEGIN, FENCE_END
from rightcall.parsing.bodies.behind import ARGUMENTS
from rightcall.parsing.bodies.name_then_json import read_arguments_of
from rightcall.parsing.buffer import Broken, Capture, Cut, NotACall, Steps, broken_by
from rightcall.parsing.call_builder import declared, name_at
from rightcall.parsing.json_stream import whole_value
from rightcall.parsing.markers import HOLES, RUN, Pat, Probe, blanks, seq
from rightcall.parsing.unread_calls import is_cut_short, keep_rest, read_broken, read_unreadable, resync
from rightcall.repairs.broken_blocks import Sketch
from rightcall.repairs.finish import allowed, receipts
from rightcall.types import Repair

if TYPE_CHECKING:
    from rightcall.parsing.body_reader import BodyReader
    from rightcall.parsing.call_builder import CallBuilder

# How a block ended: what was read was text; at its close; without its close, which may still come, and is missed only
# where a marker opened the block ("due"); at too many calls.
Ending = Literal["text", "closed", "due", "late", "full"]

_WORD = Probe(Pat(f"(?:{HOLES['name']})?+", f"(?:{HOLES['name']})?+", sure=RUN))
_BRACKETS = tuple(")]}")  # what arguments end with
_WORDS = re.compile(r"(?:\s++[\w'.,-]++)++\Z").match


class Block:
    """One block of calls being read. `bare`: no marker stood before it."""

    __slots__ = (
        "_headless",
        "_is_empty",
        "_is_inner",
        "_is_odd",
        "bare",
        "body_close",
        "broken_at",
        "content",
        "fenced",
        "first",
        "holds",
        "p",
        "reader",
        "special",
    )

    def __init__(
        self,
        p: CallBuilder,
        *,
        bare: bool,
        special: bool = False,
        is_odd: bool = False,
        headless: bool = False,
        inner: bool = False,
    ) -> None:
        self.p = p
        self.bare = bare
        self.special = special  # its opener is a token that nobody writes by chance
        self._is_odd = is_odd  # what follows the opener is known to be no call as the format writes it
        self._headless = headless  # its opener begins with the call's name, as the prompt has the token before it
        self._is_inner = inner  # its body's own tag opened it: no marker around it must be closed
        self._is_empty = False
        self.fenced: tuple[Repair, ...] = ()  # the receipt of a code fence around the calls
        self.reader: BodyReader | None = None
        self.holds = p.compiled.call_close is not None and not bare  # calls wait for what follows them
        self.first = p.index
        self.body_close = 0  # how long the body's own close is that a broken call was read up to
        self.broken_at = 0  # where it could not be read any further
        self.content = p.at  # where what stands behind the opener begins

    def read(self, start: int) -> Steps[Ending]:
        """The block whose opener ends at `start` of the buffer."""
        p = self.p
        opening = p.capture()
        p.pos = start
        self.content = p.at
        p.block = self
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
                if self.bare and p.index == self.first:
                    return self._text(opening)
                yield from read_broken(self, broken_by(error, p.limits.depth))
            if p.full:
                return self._full(opening)
            p.drop(opening)
            self._end_of_calls()
            return (yield from self.end())
        finally:
            p.block = None

    def _no_call(self, opening: Capture) -> Steps[Ending | None]:
        """What follows the opener is no call as the format writes it. None where one was read all the same."""
        p = self.p
        if p.full:
            return self._full(opening)
        if not self.bare and is_cut_short(self, opening, self._is_odd):
            keep_rest(self)
            return self._end_of_text(opening)
        if self.bare or not (yield from self._has_body()):
            return self._text(opening)
        yield from read_unreadable(self)
        return None

    def _end_of_text(self, opening: Capture) -> Ending:
        p = self.p
        if self.is_full():
            return self._full(opening)
        if not self._cut():
            return self._text(opening)
        p.drop(opening)
        p.output.fresh = True
        p.settle_pending()
        return "closed"

    def _end_of_calls(self) -> None:
        p = self.p
        if p.index == self.first and not self._is_empty:
            p.note("opener_without_call", f"the block at {self.content} holds no call")
        p.pos += self.body_close
        p.output.settle()
        p.output.fresh = p.output.at_start = True
        p.output.mark("marker", p.at)

    def is_full(self) -> bool:
        """Is there no room for the call that was being read? Then it is text."""
        p = self.p
        p.full = p.call is None and p.index >= p.limits.calls
        if p.full and p.ended:
            p.pos = len(p.buf)
        return p.full

    def _full(self, opening: Capture) -> Ending:
        self._text(opening)
        return "full"

    def _text(self, opening: Capture) -> Ending:
        """What was read was text; where calls of it were whole, only what came after the last."""
        p = self.p
        text = p.captured(opening)
        p.drop(opening)
        p.settle_pending()
        if p.index > self.first:
            text = "" if p.raw is None else p.captured(p.raw)
            p.output.mark("marker", p.at - len(text))
        elif not self.bare and not p.full:
            p.note("opener_without_call", f"the text at {opening} opens a call, and none follows; it is text")
            if self.special:
                return self._text_behind_token(opening, text)
        p.raw_drop()
        p.output.say_exactly(text, p.at)
        return "text"

    def _text_behind_token(self, opening: Capture, text: str) -> Ending:
        """The opener is a token, and dropped: it tells what was said before it from what is said behind it."""
        p = self.p
        name = name_at(text) if self._headless else None
        if name is not None:
            p.output.say_exactly(name.group(), opening + name.end())
        p.output.marker(self.content)
        p.raw_drop()
        p.output.say(text[self.content - opening :], p.at)
        p.output.at_start = False
        return "text"

    def _has_body(self) -> Steps[bool]:
        """Does a body, or the name of a declared tool, follow the opener? Else prose only mentions it."""
        p = self.p
        text = p.captured(self.content).strip()
        if not text or text in [receipt.before for receipt in self.fenced]:
            yield from p.peek()
            if (yield from p.test(p.compiled.body_begins)):
                return True
            word = yield from p.test(_WORD)
            text = word.group() if word else ""
        name = name_at(text)
        return name is not None and bool(declared(name.group(), p.tools))

    # -- the calls -----------------------------------------------------------------------------------------------------

    def _calls(self) -> Steps[None]:
        p, compiled = self.p, self.p.compiled
        char = p.char() or (yield from p.peek())
        if not char:
            raise Cut
        if self._is_odd:
            raise NotACall
        if not self.bare and char in compiled.close_heads and (yield from self._closes_at_once()):
            self._empty()
            return
        if compiled.clash is not None and not self.bare and (yield from p.test(compiled.clash)):
            self._empty()  # another opener, and no body, though one may begin like it
            return
        if char == "`" and not self.bare:
            char = yield from self._past_fence()
        yield from self._body(char)

    def _closes_at_once(self) -> Steps[bool]:
        p, close = self.p, self.p.compiled.call_close
        found = close.at(p.buf, p.pos, p.ended) if close is not None else False
        if close is not None and found is None:
            found = yield from p.test(close)
        return bool(found)

    def _body(self, char: str) -> Steps[None]:
        """What reads the calls that begin here."""
        p, compiled = self.p, self.p.compiled
        if compiled.named and p.options.choice and char == "{":
            return compiled.named.read_choice(p, p.options.choice)
        if len(compiled.readers) == 1:
            return self._read_by(compiled.readers[0])
        return self._first_that_begins(compiled.readers)

    def _first_that_begins(self, readers: list[BodyReader]) -> Steps[None]:
        for reader in readers:
            if (yield from self.p.test(reader.begins)):
                yield from self._read_by(reader)
                return
        raise NotACall

    def _read_by(self, reader: BodyReader) -> Steps[None]:
        self.reader = reader
        self.holds = self.holds or bool(reader.closers) or self.p.in_doubt
        return reader.read(self.p, bare=self.bare)

    def _empty(self) -> None:
        """The opener, and its close at once."""
        p = self.p
        self._is_empty = True
        p.settle()
        if p.compiled.format.protocol is not None:
            p.problem("no_call", "a block for a call is empty; it must hold one call, name({ ... })")
        else:
            p.note("opener_without_call", f"the block at {self.content} holds no call")

    def _past_fence(self) -> Steps[str]:
        """A code fence between the markers and the calls: taken, with a receipt. What stands behind it."""
        p = self.p
        found = (yield from p.test(FENCE_BEGIN)) if p.policy("") != "off" else None
        if found:
            p.pos = found.end()
            self.fenced = (Repair("code_fence", "exact", "", found.group().strip(), ""),)
        return p.char() or (yield from p.peek())

    def mend(self, *, closed: bool = True) -> bool:
        """Reads a broken call again, loosely; `raw` holds what is left of the block. `closed`: its end was seen, so
        that brackets left open were forgotten and not cut off."""
        p = self.p
        if self.reader is None or p.raw is None:
            return False
        text, start = p.captured(p.raw), p.raw_at
        found = self._sketch(self.reader, text, closed)
        if not found or p.index + len(found) > p.limits.calls:
            return False
        for each in found:
            p.mended_call(each, text, start)
        rest = text[self.reader.tail(text, found[-1].end) :] if not closed else ""
        if rest.strip():
            p.output.fresh = True
            p.output.say_behind(rest, p.at)
        return True

    def holds_all(self) -> bool:
        """Are there calls in what is left of the block, read loosely, and nothing behind them?"""
        reader, p = self.reader, self.p
        text = p.captured(p.raw) if p.raw is not None else ""
        found = self._sketch(reader, text, False) if reader is not None else []
        return bool(found) and reader is not None and not text[reader.tail(text, found[-1].end) :].strip()

    def _sketch(self, reader: BodyReader, text: str, closed: bool) -> list[Sketch]:
        """The calls in it, read loosely; none where that is not allowed."""
        p, tools = self.p, self.p.tools
        policy = p.policy("" if p.call is None else p.call.name)
        found = reader.sketch(p, text, closed) if policy != "off" else []
        named = [(each, tools.get(each.name) if tools is not None else None) for each in found]
        return found if all(allowed(receipts(each.liberties), tool, policy) for each, tool in named) else []

    def _cut(self) -> bool:
        """The text ended inside a block. False if so little of it was there that it is text."""
        p = self.p
        p.pos = len(p.buf)
        if p.call is not None:
            if self._close_inside():
                p.fail("unterminated_string", "the call's end marker stands inside a string that was never closed")
            else:
                p.fail("truncated", "the text ended before the call did; send the whole call again")
        elif p.index == self.first and (not p.index if self.bare else self._is_word()):
            return False
        elif p.known_name():
            p.fail_truncated()
        elif p.raw is not None and p.captured(p.raw).strip():
            p.fail("truncated", "the text ended before the call's name was known; send the whole call again")
        else:
            p.raw_drop()
            p.settle()
            if p.index == self.first:
                p.problem("truncated", "the text ended where a tool call was about to begin")
        return True

    def _is_word(self) -> bool:
        """Is what stands behind the opener words, or one that begins no tool's name? Then prose ends with it."""
        p = self.p
        word = p.captured(self.content).strip()
        found = name_at(word) if not self.special else None
        if found is None or found.end() < len(word):
            return found is not None and _WORDS(word, found.end()) is not None
        if p.tools is None:
            return word.endswith(".")
        return not any(tool.name.startswith(word) for tool in p.tools)

    def _close_inside(self) -> bool:
        p = self.p
        assert p.raw is not None
        scan = p.compiled.resync
        text = p.captured(p.raw)[max(0, p.args_at - p.raw_at) :]
        return any(scan.actions[found.lastindex or 0].endswith("close") for found in scan.finditer(text))

    # -- its end -------------------------------------------------------------------------------------------------------

    def end(self) -> Steps[Ending]:
        """The marker that closes the block, if it stands here."""
        p = self.p
        close = p.compiled.call_close
        if self.fenced:
            yield from self._past_fence_end()
        is_due = close is not None and (yield from self._close(close))
        if is_due:
            return "late" if self.bare or self._is_inner else "due"
        self._settle()
        return "closed"

    def _past_fence_end(self) -> Steps[None]:
        """The fence around the calls ends with them."""
        p = self.p
        if (p.char() or (yield from p.peek())) == "`" and (end := (yield from p.test(FENCE_END))):
            p.pos = end.end()
            p.output.mark("marker", p.at)

    def _settle(self) -> None:
        """The call is over, unless its values are raw: then what follows may still say otherwise."""
        if self.reader is None or not (self.reader.closers or self.p.in_doubt):
            self.p.settle_pending()

    def _close(self, close: Probe) -> Steps[bool]:
        """Takes the closing marker. True if it may still come: then it is dropped, and what is before it is text."""
        p = self.p
        char = p.char() or (yield from p.peek())
        found = close.at(p.buf, p.pos, p.ended)
        if found is None:
            found = yield from p.test(close)
        if found:
            p.pos = found.end()
            yield from self._reject_late_arguments()
        is_due = not found and self._is_due(close, char)
        p.output.mark("marker", p.at)
        return is_due

    def _reject_late_arguments(self) -> Steps[None]:
        """The call is closed. If it has no arguments, those that stand behind its closing marker are its own."""
        p = self.p
        call = p.pending[1] if p.pending is not None else None
        if call is None or call.arguments:
            return
        if call.raw.rstrip()[-1:] not in _BRACKETS and (yield from p.test(ARGUMENTS)):
            p.block_pending("trailing_content", "the call ends before its arguments; send them inside of it")

    def _is_due(self, close: Probe, char: str) -> bool:
        """The closing marker does not stand here: may it still come?"""
        p = self.p
        is_cut = p.ended and close.is_begun(p.buf, p.pos)
        if self.bare and is_cut:
            p.pos = len(p.buf)  # the fence around the calls was cut off in its last line
            return False
        if not char:
            if not self.bare and not self._is_inner:
                p.problem("unclosed", "the text ended before the marker that closes the call", blocking=False)
            return False
        in_code = p.compiled.close_heads == {"`"}  # all that stands before its fence
        if (in_code or char in ",;()[]{}") and p.pending is not None and not is_cut:
            p.block_pending("trailing_content", f"unexpected {char!r} after the call")
        return True


# -- messages to a tool ------------------------------------------------------------------------------------------------


def _is_end(p: CallBuilder) -> bool:
    """Is it certain that a message is over here?"""
    if not p.char():
        return p.ended
    return p.compiled.turn_end is not None and bool(p.compiled.turn_end.at(p.buf, p.pos, p.ended))


def take_whole_message(p: CallBuilder, name: str) -> bool:
    """Read a message to a tool at once, if all of it is there and as usual; else take nothing."""
    start = p.pos
    alone = p.compiled.call_close is None and p.index < p.limits.calls
    found = whole_value(p) if alone and p.char() == "{" else None
    end = p.pos
    if found is None or type(found[1]) is not dict or not _is_end(p):
        p.pos = start
        return False
    p.whole_call((start, end, name, *found, ""))
    p.pos = end
    return True


def read_message(p: CallBuilder, name: str) -> Steps[None]:
    """Read a message to a tool: its arguments, whole or as they arrive, and what else may stand there."""
    p.raw_begin()
    block = p.block = Block(p, bare=True)
    block.holds = True
    block.reader = p.compiled.readers[0]
    try:
        yield from _message(p, name, block)
    finally:
        p.block = None


def _message(p: CallBuilder, name: str, block: Block) -> Steps[None]:
    try:
        p.begin(name)
        char = yield from p.peek()
        if not char or char in '{["':
            yield from read_arguments_of(p, None)
        elif p.compiled.turn_end and (end := (yield from p.test(p.compiled.turn_end))):
            yield from _reject_arguments_behind(p, end.end() - p.pos)
            p.raw_end()
            p.finish(empty=True)
        else:
            yield from _raw(p, block)
    except NotACall:
        p.raw_drop()
    except Cut:
        p.pos = len(p.buf)
        p.fail("truncated", "the text ended before the call did; send the whole call again")
    except (Broken, RecursionError) as error:
        broken = broken_by(error, p.limits.depth)
        found = yield from resync(block, headed=True)
        if not p.mend(closed=found):
            p.fail(broken.code, broken.message, broken.path)


def _reject_arguments_behind(p: CallBuilder, ahead: int) -> Steps[None]:
    assert p.compiled.channels is not None
    if (yield from p.test(_late_arguments(p.compiled.channels.channel), ahead)):
        raise Broken("trailing_content", "the message ends before the call's arguments; send them inside of it")


@lru_cache(8)
def _late_arguments(channel: str) -> Probe:
    """Arguments behind the end of their message, with tokens of its header before them, but for those that begin
    another."""
    other = rf"<\|start\|>|{re.escape(channel)}" if channel else r"<\|"
    tokens = rf"(?:(?!{other})<\|[^<>|\s]{{1,32}}+\|>\w{{0,16}}+[ \t\r\n]{{0,8}}+){{0,3}}+"
    return Probe(seq(blanks(), Pat(tokens, r"(?:<[^<>\s]{0,36}+>?+\w{0,16}+[ \t\r\n]{0,8}+){0,3}+"), ARGUMENTS.pat))


def _raw(p: CallBuilder, block: Block) -> Steps[None]:
    """A message that is not JSON, such as code for an interpreter: kept as it is."""
    p.args_at = p.at
    found = yield from resync(block, headed=True)
    if p.mend(closed=found):
        return
    assert p.call is not None and p.raw is not None
    p.call.parts.append(p.captured(p.raw))
    if not found:
        raise Cut
    p.fail("arguments_not_object", "the arguments must be a JSON object")
