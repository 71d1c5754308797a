"""The run through a reply: text, reasoning, sections, blocks of calls. One generator, resumed with every chunk.

Three exceptions carry all that goes wrong in a block: `NotACall` (before a call began: it was text), `Broken` (after:
read on at the call's close, so that its siblings live) and `Cut` (the text ended).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

import msgspec

from rightcall.ids import Ids
from rightcall.parse.channels import first_header, header
from rightcall.parse.engine import Capture, Engine, Options, Steps
from rightcall.parse.markers import RUN, Pat, Probe, Scan, literal, seq
from rightcall.parse.rescue import MINTED, in_reasoning, other_format, whole_reply
from rightcall.parse.shown import QUOTES, Fences
from rightcall.parse.shown import RUN as RUN_OF_FENCE
from rightcall.parse.signals import Broken, Cut, NotACall, too_deep
from rightcall.repair.settle import allowed, receipts
from rightcall.repair.sketch import Sketch
from rightcall.types import Arguments, Call, CallEnd, CallStart, Done, Recast, Repair, Reply, Span, Text

if TYPE_CHECKING:
    from rightcall.parse.compile import Compiled, Reader


_FENCE = Probe(
    seq(literal("```"), Pat(r"[A-Za-z_]{0,16}+[ \t]{0,8}+", r"[A-Za-z_]{0,16}+[ \t]{0,8}+", sure=RUN), literal("\n"))
)
_FAR = 64
_FENCE_END = Probe(literal("```"))


class Reading(Engine):
    """`feed` and `close` put events into `out`."""

    _in_section = False
    _close_due = False  # a block ended without the marker that closes it
    reader: Reader | None = None  # of the block being read
    _body_close = 0  # how long the body's own close is that a broken call was read up to
    _over = False  # the reply was longer than it may be

    def __init__(self, compiled: Compiled, options: Options, ids: Ids) -> None:
        super().__init__(compiled, options, ids)
        self.thinking = options.reasoning == "open" and compiled.format.reasoning is not None
        self._steps = self._run()

    def whole(self, text: str) -> None:
        """All the text there will be: as `feed` and `close`, but nothing waits for more."""
        if len(text) <= self.limits.reply - self.base - len(self.buf):
            self._arrives(text)
        else:
            self.feed(text)
        self.close()

    def _arrives(self, text: str) -> None:
        if self.said is not None:
            self.original.append(text)
        self.more(text)

    def feed(self, text: str) -> None:
        room = max(0, self.limits.reply - self.base - len(self.buf))
        if len(text) <= room:
            self._arrives(text)
            next(self._steps)
        elif self._over:
            self._overflow(text)
        else:
            self.feed(text[:room])
            self.close()
            self._over = True
            self.problem("too_large", f"the reply is longer than {self.limits.reply} characters; the rest was not read")
            self._overflow(text[room:])

    def close(self) -> None:
        if not self.ended:
            self.ended = True
            next(self._steps, None)  # the last: with its frame goes the reading's only reference to itself
            if self.said is not None and not self._over:
                self._rescue("".join(self.said))

    def _rescue(self, text: str) -> None:
        """No call was found. Is the text one in another format, or did the reply end inside its own reasoning?"""
        if text.strip():
            reply = whole_reply(text, self.options)
            if reply is not None:
                self.rescued(reply, located(reply, text, self.spans or []))
            elif self.said_at is not None:
                self._rescue_as_written(self.said_at)
        elif self.options.calls_in_reasoning:
            reply = in_reasoning("".join(self.thought), self.compiled, self.options)
            if reply is not None:
                self._give_parts(reply, "call_in_reasoning", "the call stood in the reasoning")

    def _rescue_as_written(self, start: int) -> None:
        """Is what follows the reasoning, with the markers that this format dropped, a reply in another format?"""
        text = "".join(self.original)[start:]
        native = self._native(text) if self.compiled.lines else None
        other = native or other_format(text, self.options)
        if other is not None:
            before = [Span(s.start, min(s.end, start), s.kind) for s in self.spans or () if s.start < start]
            self.rescued(other[0], before + [Span(s.start + start, s.end + start, s.kind) for s in other[1]])
            self.out += native[0].problems if native else ()

    def _native(self, text: str) -> tuple[Reply, list[Span]] | None:
        from rightcall.parse.native import native_calls

        return native_calls(text, self.options)

    def rescued(self, reply: Reply, spans: list[Span]) -> None:
        """The text that was given out was a reply in another format: it is given again, as what it is."""
        if self.text_chars:
            self.out.append(Recast(self.text_chars, "call"))
        self.spans = None if self.spans is None else spans
        self._give_parts(reply, "rescued", f"the call was written as {reply.format} writes it")

    def _give_parts(self, reply: Reply, code: str, message: str) -> None:
        for part in reply.parts:
            if not isinstance(part, Call):
                self.out.append(part)
                continue
            call, id = part, self.ids.take("" if part.id.startswith(MINTED) else part.id)
            self.out.append(CallStart(self.index, id, call.name))
            self.out.append(Arguments(self.index, call.json))
            self.problem(code, message, blocking=False, call=self.index)
            self.out.append(CallEnd(self.index, msgspec.structs.replace(call, id=id)))
            self.index += 1

    def take_over(self, before: Reading) -> str:
        """This reading goes on where another stopped. Gives the text that the other had not taken yet."""
        before._steps.close()
        self.base = before.base + before.pos
        self.spans, self._tiled, self._blanks = before.spans, before._tiled, before._blanks
        self.text_chars, self.index, self.fresh, self._last = (
            before.text_chars,
            before.index,
            before.fresh,
            before._last,
        )
        self.recastable = self.recastable and before.recastable
        self.thinking = before.thinking
        self.said, self.thought, self.said_at = before.said, before.thought, before.said_at
        self.original = ["".join(before.original)[: self.base]]
        self.fences, self._over = before.fences, before._over
        return before.buf[before.pos :]

    def _overflow(self, text: str) -> None:
        self.out.append(Text(text))
        self.more(text)
        self.pos = len(self.buf)
        if self.spans is not None:
            self.mark("text", self.base + self.pos)

    # -- states --------------------------------------------------------------------------------------------------------

    def _run(self) -> Steps[None]:
        compiled = self.compiled
        if compiled.first_header is not None:
            yield from first_header(self, compiled.first_header)
        while True:
            if self.may_open and compiled.bare and not self.thinking and (yield from self._try_bare()):
                continue
            if self.may_open and compiled.lines and not self.thinking and (yield from self._try_line()):
                continue
            scan = self._scan()
            found = (scan.ended if self.ended else scan.search)(self.buf, self.pos)
            end = found.start() if found else len(self.buf)
            if end > self.pos:
                self.take_text(end)
            if found is not None and found.lastindex is not None:
                yield from self._actions[scan.actions[found.lastindex]](self, found)
            elif self.ended:
                break
            else:
                yield
        self.last_blanks()

    def _scan(self) -> Scan:
        """What to look for next."""
        if self.thinking:
            return self.compiled.thinking
        if self._close_due:
            return self.compiled.inside_due if self._in_section else self.compiled.outside_due
        return self.compiled.inside if self._in_section else self.compiled.outside

    def _on_drop(self, found: re.Match[str]) -> Steps[None]:
        self.take_marker(found.end())
        yield from ()

    def _on_tag(self, found: re.Match[str]) -> Steps[None]:
        """A block of text begins or ends. A code fence that was left open ends with it."""
        tag = self.compiled.tags[found.group()]
        if tag and self._is_shown(found):
            return
        self.settle()
        self.tag, self.may_open, self.fences = tag, True, Fences()
        self.said = None if tag else self.said  # what has its place is not looked at again
        self.take_marker(found.end())
        yield from ()

    def _on_done(self, found: re.Match[str]) -> Steps[None]:
        protocol = self.compiled.format.protocol
        if self._is_shown(found) or protocol is None:
            return
        self.settle()
        opens, closes = protocol.done
        self.out.append(Done(found.group()[len(opens.strip()) : -len(closes.strip())].strip()))
        self.may_open, self.said = True, None
        self.take_marker(found.end())
        yield from ()

    def _on_line(self, found: re.Match[str]) -> Steps[None]:
        self.take_text(found.end())
        self.may_open = not self.tag
        yield from ()

    def _try_line(self) -> Steps[bool]:
        """Outside all blocks, at the beginning of a line: a call may stand here. True if one may stand here again."""
        first = self.index
        from rightcall.parse.lines import line

        start = yield from line(self)
        if start >= 0:
            yield from self._block(start, bare=True)
            if self.index == first:
                # No call: its fence, if it had one, is one in the text.
                self.refused += 1
                self.fences.open, self.dropped = self.dropped or self.fences.open, ""
        return start >= 0 or self.may_open

    @property
    def labels(self) -> frozenset[str]:
        """What may stand before a call."""
        return getattr(self.compiled.readers[0], "labels", frozenset())

    def _on_late_close(self, found: re.Match[str]) -> Steps[None]:
        self._close_due = False
        return self._on_drop(found)

    def _on_end(self, found: re.Match[str]) -> Steps[None]:
        marker = found.group()
        if not self.thinking and (yield from self._is_shown_end(marker)):
            self.pos += 1
            self.give_back(marker[:1])
            return
        self.may_open = True
        if self.compiled.channels is not None:
            self.thinking = False
        self.take_marker(self.pos + len(marker))

    def _is_shown_end(self, marker: str) -> Steps[bool]:
        """Is this end-of-turn token only shown? Then text goes on behind it, and it stands in code or in quotes."""
        in_code = self.fences.show(self.held_blanks())
        while True:
            behind = self.buf[self.pos + len(marker) : self.pos + len(marker) + _FAR]
            if behind.strip() or (behind and not in_code) or len(behind) == _FAR or self.ended:
                break
            yield
        return bool(behind.strip()) and (in_code or behind[0] in QUOTES)

    def _on_section(self, found: re.Match[str]) -> Steps[None]:
        if self._is_shown(found):
            return
        self.settle()
        self._in_section = True
        self.take_marker(found.end())
        if self.ended and self.pos == len(self.buf):
            self.problem("truncated", "the text ended where a tool call was about to begin")
        yield from ()

    def _on_section_close(self, found: re.Match[str]) -> Steps[None]:
        self._in_section = False
        return self._on_drop(found)

    def _on_think(self, found: re.Match[str]) -> Steps[None]:
        self.settle()
        self.take_marker(found.end())
        self.thinking = True
        yield from ()

    def _on_think_close(self, found: re.Match[str]) -> Steps[None]:
        if not self.thinking and not self.recastable:
            self.pos = found.end()
            self.give_back(found.group())
            return
        if not self.thinking:
            # A closing tag without its opener: the prompt had opened it.
            self.recast()
        self.settle()
        self.take_marker(found.end())
        self.thinking = False
        self.may_open = True
        yield from ()

    def _on_header(self, found: re.Match[str]) -> Iterable[None]:
        return () if not self.thinking and self._is_shown(found) else header(self)

    # -- blocks of calls -----------------------------------------------------------------------------------------------

    def _on_fence(self, found: re.Match[str]) -> Steps[None]:
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

    def _is_shown(self, found: re.Match[str]) -> bool:
        """Does prose only show this opener? Then its first character is text, and the search goes on behind it."""
        if not self.fences.before or not self.fences.show(self.held_blanks()):
            return False
        self.pos = found.start() + 1
        self.give_back(found.group()[:1])
        return True

    def _on_call(self, found: re.Match[str]) -> Iterable[None]:
        if self._is_shown(found):
            return ()
        self._in_section = True
        return self._open(found.end())

    def _on_body(self, found: re.Match[str]) -> Iterable[None]:
        if self._is_shown(found):
            return ()
        return self._open(found.start())

    def _open(self, start: int, *, bare: bool = False) -> Iterable[None]:
        """A block of calls: at once if all of it is there and as usual, else step by step."""
        quick, before = self.compiled.quick, self.pos
        try:
            found = quick(self, start, bare)
        except RecursionError:
            found = None
        if found is None or self.index + len(found[0]) > self.limits.calls:
            self.pos = before
            return self._block(start, bare=bare)
        for call in found[0]:
            self.whole_call(*call)
        self.pos = found[1]
        self._close_due = False
        self.fresh = self.may_open = True
        if self.spans is not None:
            self.mark("marker", self.base + self.pos)
        return self._after_block(bare) if bare and self.compiled.call_close else ()

    def _try_bare(self) -> Steps[bool]:
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
                yield from self._open(self.pos, bare=True)
        elif fence is not None and char == "`" and (found := (yield from self.test(fence))):
            yield from self._block(found.end(), bare=True)
        return self.may_open

    def _block(self, start: int, *, bare: bool = False) -> Steps[None]:
        """One opener and the calls behind it."""
        first = self.index
        self._close_due = False
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
            self._close_due = True
            if char in ",;()[]{}" and self.index:
                self.problem("trailing_content", f"unexpected {char!r} after the call", call=self.index - 1)
        if self.spans is not None:
            self.mark("marker", self.base + self.pos)

    _actions: ClassVar[dict[str, Callable[[Reading, re.Match[str]], Iterable[None]]]] = {
        "call": _on_call,
        "body": _on_body,
        "section": _on_section,
        "section_close": _on_section_close,
        "late_close": _on_late_close,
        "think": _on_think,
        "think_close": _on_think_close,
        "drop": _on_drop,
        "end": _on_end,
        "header": _on_header,
        "fence": _on_fence,
        "tag": _on_tag,
        "done": _on_done,
        "line": _on_line,
    }

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


def located(reply: Reply, text: str, spans: list[Span]) -> list[Span]:
    """The spans of a reply whose text turned out to be nothing but calls: each call's own text, and markers around."""
    said = [span for span in spans if span.kind == "text"]
    if len(said) != 1 or said[0].end - said[0].start != len(text):
        return [Span(span.start, span.end, "call") if span.kind == "text" else span for span in spans]
    found: list[Span] = []
    at = 0
    for call in reply.calls:
        start = max(at, text.find(call.raw, at))
        found += [Span(at, start, "marker"), Span(start, start + len(call.raw), "call")]
        at = start + len(call.raw)
    found.append(Span(at, len(text), "marker"))
    begin = said[0].start
    made = [Span(begin + span.start, begin + span.end, span.kind) for span in found if span.end > span.start]
    where = spans.index(said[0])
    return [*spans[:where], *made, *spans[where + 1 :]]
