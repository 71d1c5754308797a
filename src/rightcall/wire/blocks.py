"""Blocks of calls: an opener, the calls behind it, its close, and everything that can go wrong in between.

Three exceptions carry what goes wrong: `NotACall` (before a call began: it was text), `Broken` (after: read on at the
call's close, so that its siblings live) and `Cut` (the text ended).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rightcall.repair.settle import allowed, receipts
from rightcall.repair.sketch import Sketch
from rightcall.types import Repair
from rightcall.wire.engine import Engine
from rightcall.wire.interrupts import Broken, Cut, NotACall, too_deep
from rightcall.wire.markers import RUN, Pat, Probe, literal, seq
from rightcall.wire.prose import Capture, Steps
from rightcall.wire.shown import RUN as RUN_OF_FENCE

if TYPE_CHECKING:
    from rightcall.wire.compile import Reader

_FENCE = Probe(
    seq(literal("```"), Pat(r"[A-Za-z_]{0,16}+[ \t]{0,8}+", r"[A-Za-z_]{0,16}+[ \t]{0,8}+", sure=RUN), literal("\n"))
)
_FENCE_END = Probe(literal("```"))


class Blocks(Engine):
    """Reads blocks of calls; what stands around them is `Reading`'s."""

    in_section = False
    close_due = False  # a block ended without the marker that closes it
    reader: Reader | None = None  # of the block being read
    _body_close = 0  # how long the body's own close is that a broken call was read up to

    def on_fence(self, found: re.Match[str]) -> Steps[None]:
        """A code fence in the text: what stands in it is shown, not called. A reply that is nothing else is rescued."""
        run = RUN_OF_FENCE(self.buf, self.pos)
        while run is not None and run.end() == len(self.buf) and not self.ended:
            yield
            run = RUN_OF_FENCE(self.buf, self.pos)
        assert run is not None
        self.fences.take(self.held_blanks())
        self.fences.take_run(run.group())
        self.pos = run.end()
        self.give_back(run.group())

    def is_shown(self, found: re.Match[str]) -> bool:
        """Does prose only show this opener? Then its first character is text, and the search goes on behind it."""
        if not self.fences.before or not self.fences.show(self.held_blanks()):
            return False
        self.pos = found.start() + 1
        self.give_back(found.group()[:1])
        return True

    def on_call(self, found: re.Match[str]) -> Iterable[None]:
        if self.is_shown(found):
            return ()
        self.in_section = True
        return self.open_block(found.end())

    def on_body(self, found: re.Match[str]) -> Iterable[None]:
        if self.is_shown(found):
            return ()
        return self.open_block(found.start())

    def open_block(self, start: int, *, bare: bool = False) -> Iterable[None]:
        """A block of calls: at once if all of it is there and as usual, else step by step."""
        quick, before = self.compiled.quick, self.pos
        try:
            found = quick(self, start, bare) if quick is not None else None
        except RecursionError:
            found = None
        if found is None or self.index + len(found[0]) > self.limits.calls:
            self.pos = before
            return self._block(start, bare=bare)
        for call in found[0]:
            self.whole_call(*call)
        self.pos = found[1]
        self.close_due = False
        self.fresh = self.may_open = True
        if self.spans is not None:
            self.mark("marker", self.base + self.pos)
        return self._after_block(bare) if bare and self.compiled.call_close else ()

    def try_bare(self) -> Steps[bool]:
        """Where a reply may begin, a body without a marker may stand. True if one may stand here again."""
        taken = self.capture()
        char = yield from self.peek()
        self.hold_blanks(self.release(taken))
        between = self.compiled.between
        if between is not None and self.index:
            found = yield from self.test(between)
            if found:
                self.take_marker(found.end())
                char = self.buf[self.pos]
        self.may_open = False
        fence = self.compiled.fence
        clash = self.compiled.bare_clash
        if char and char in self.compiled.bare:
            if clash is None or not (yield from self.test(clash)):
                yield from self.open_block(self.pos, bare=True)
        elif fence is not None and char == "`" and (found := (yield from self.test(fence))):
            yield from self._block(found.end(), bare=True)
        return self.may_open

    def _block(self, start: int, *, bare: bool = False) -> Steps[None]:
        """One opener and the calls behind it."""
        first = self.index
        self.close_due = False
        self._body_close = 0
        opening = self.capture()
        self.pos = start
        try:
            yield from self._read(bare)
        except NotACall:
            self._was_text(opening, since_last=self.index > first)
            if self.full:
                yield from self.rest_is_text()
            return
        except Cut:
            if self._is_full() or not self._cut(first, bare=bare):
                self._was_text(opening, since_last=self.index > first)
                if self.full:
                    yield from self.rest_is_text()
                return
            self.captures.remove(opening)
            self.fresh = True
            return
        except (Broken, RecursionError) as error:
            if bare and self.index == first:
                self._was_text(opening)
                return
            broken = error if isinstance(error, Broken) else too_deep(self.limits.depth)
            found = yield from self.resync()
            if self._is_full():
                self._was_text(opening, since_last=self.index > first)
                yield from self.rest_is_text()
                return
            if not self.mend(closed=found and self.compiled.closes):
                if self.call is None and self.index == first and not (found and self.compiled.closes):
                    # Neither a name nor an end: more likely text than a call, and as text nothing is lost.
                    self._was_text(opening)
                    self.problem(broken.code, broken.message, broken.path)
                    return
                self.fail(broken.code, broken.message, broken.path, whole=self.compiled.closes)
        self.captures.remove(opening)
        self.pos += self._body_close
        self._blanks.clear()  # of text behind a broken call: they touch what follows the block
        self.fresh = self.may_open = True
        if self.spans is not None:
            self.mark("marker", self.base + self.pos)
        yield from self._after_block(bare)

    def _is_full(self) -> bool:
        """Is there no room for the call that was being read? Then it is text."""
        self.full = self.call is None and self.index >= self.limits.calls
        if self.full and self.ended:
            self.pos = len(self.buf)
        return self.full

    def _read(self, bare: bool) -> Steps[None]:
        compiled = self.compiled
        char = self.char() or (yield from self.peek())
        if not char:
            raise Cut
        if not bare and compiled.call_close and char in compiled.close_heads:
            found = compiled.call_close.at(self.buf, self.pos, self.ended)
            if found is None:
                found = yield from self.test(compiled.call_close)
            if found:
                self.settle()  # an empty block
                if compiled.format.protocol is not None:
                    self.problem("no_call", "a block for a call is empty; it must hold one call, name({ ... })")
                return
        if char == "`" and not bare and (yield from self._fence()):
            char = self.char() or (yield from self.peek())
        if compiled.named and self.options.choice and char == "{":
            yield from compiled.named.read_choice(self, self.options.choice)
            return
        for reader in compiled.readers:
            if len(compiled.readers) == 1 or (yield from self.test(reader.begins)):
                self.reader = reader
                yield from reader.read(self, bare=bare)
                return
        raise NotACall

    def _fence(self) -> Steps[bool]:
        """A code fence between the markers and the calls: taken, with a receipt."""
        found = (yield from self.test(_FENCE)) if self.policy("") != "off" else None
        if found:
            self.pos = found.end()
            self.fenced = (Repair("code_fence", "exact", "", found.group().strip(), ""),)
        return bool(found)

    def mend(self, *, closed: bool = True) -> bool:
        """Reads a broken call again, loosely; `raw` holds what is left of the block. `closed`: its end was seen, so
        that brackets left open were forgotten and not cut off."""
        call, raw = self.call, self.raw
        sketch = getattr(self.reader, "sketch", None)
        policy = self.policy("" if call is None else call.name)
        if sketch is None or raw is None or policy == "off" or self.live:
            return False
        text, start = self.captured(raw), self.raw_at
        found: list[Sketch] = sketch(self, text, closed)
        for each in found:
            tool = self.tools.get(each.name) if self.tools is not None else None
            if not allowed(receipts(each.liberties), tool, policy):
                return False
        if not found or self.index + len(found) > self.limits.calls:
            return False
        for each in found:
            self.mended_call(each, text, start)
        tail = getattr(self.reader, "tail", None)
        end = found[-1].end if tail is None else tail(text, found[-1].end).end()
        rest = text[end:] if not closed else ""
        if rest.strip():
            self.fresh = True
            self.text_behind(rest)
        return True

    def _was_text(self, opening: Capture, *, since_last: bool = False) -> None:
        """What was read of a block was text; where calls of it were whole, only what came after the last."""
        text = self.release(opening)
        if since_last:
            text = "" if self.raw is None else self.captured(self.raw)
            if self.spans is not None:
                self.mark("marker", self.base + self.pos - len(text))
        self.raw_drop()
        self.give_back(text)

    def _cut(self, first: int, *, bare: bool) -> bool:
        """The text ended inside a block. False if so little of it was there that it is text."""
        self.pos = len(self.buf)
        if self.call is not None:
            if self._close_inside():
                self.fail("unterminated_string", "the call's end marker stands inside a string that was never closed")
            else:
                self.fail("truncated", "the text ended before the call did; send the whole call again")
        elif bare and self.index == first:
            return False
        elif self.raw is not None and self.captured(self.raw).strip():
            self.fail("truncated", "the text ended before the call's name was known; send the whole call again")
        else:
            self.raw_drop()
            self.settle()
            if self.index == first:
                self.problem("truncated", "the text ended where a tool call was about to begin")
        return True

    def _close_inside(self) -> bool:
        assert self.raw is not None
        scan = self.compiled.resync
        text = self.captured(self.raw)[max(0, self.args_at - self.raw_at) :]
        return any(scan.actions[found.lastindex or 0].endswith("close") for found in scan.finditer(text))

    def resync(self) -> Steps[bool]:
        """Takes everything up to the call's close, or what can only stand behind it; False if the text ended first."""
        if self.raw is None:
            self.raw_begin()
        self.broken_at = self.base + self.pos
        scan = self.compiled.resync
        while True:
            found = (scan.ended if self.ended else scan.search)(self.buf, self.pos)
            self.pos = found.start() if found else len(self.buf)
            if found is not None and found.lastindex is not None:
                if scan.actions[found.lastindex] == "body_close":
                    self._body_close = found.end() - found.start()
                return True
            if self.ended:
                return False
            yield

    def _after_block(self, bare: bool) -> Steps[None]:
        close = self.compiled.call_close
        if close is None:
            return
        char = self.char() or (yield from self.peek())
        if char == "`" and self.fenced and (end := (yield from self.test(_FENCE_END))):
            self.pos = end.end()
            char = self.char() or (yield from self.peek())
        self.fenced = ()
        found = close.at(self.buf, self.pos, self.ended)
        if found is None:
            found = yield from self.test(close)
        if found:
            self.pos = found.end()
        elif not char and not bare:
            self.problem("unclosed", "the text ended before the marker that closes the call", blocking=False)
        elif char:
            # It may still come: then it is dropped, and what stands before it is text.
            self.close_due = True
            if char in ",;()[]{}" and self.index:
                self.problem("trailing_content", f"unexpected {char!r} after the call", call=self.index - 1)
        if self.spans is not None:
            self.mark("marker", self.base + self.pos)

    def rest_is_text(self) -> Steps[None]:
        """There are more calls than there may be: everything from here on is text."""
        self.problem("too_large", f"the reply has more than {self.limits.calls} calls; the rest was not read")
        while True:
            if self.pos < len(self.buf):
                text = self.buf[self.pos :]
                self.pos = len(self.buf)
                self.give_back(text)
            if self.ended:
                return
            yield
