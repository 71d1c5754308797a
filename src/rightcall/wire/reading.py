"""The run through a reply: text, reasoning, sections, blocks of calls. One generator, resumed with every chunk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

import msgspec

from rightcall.ids import Ids
from rightcall.types import Arguments, Call, CallEnd, CallStart, Done, Recast, Reply, Span, Text
from rightcall.wire.blocks import Blocks
from rightcall.wire.channels import first_header, header
from rightcall.wire.markers import Scan
from rightcall.wire.options import ReadOptions
from rightcall.wire.prose import Steps
from rightcall.wire.rescue import MINTED, in_reasoning, other_format, whole_reply
from rightcall.wire.shown import QUOTES, Fences

if TYPE_CHECKING:
    from rightcall.wire.compile import Compiled


_FAR = 64


class Reading(Blocks):
    """`feed` and `close` put events into `out`."""

    _over = False  # the reply was longer than it may be

    def __init__(self, compiled: Compiled, options: ReadOptions, ids: Ids) -> None:
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
        if self.sink is not None and self.pos == len(self.buf) and len(text) <= room and self.sink(text):
            return
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
            thought = "".join(self.thought)
            # Where a marker was dropped out of it, its text is not what was written, and a call in it neither.
            is_whole = thought in "".join(self.original)
            reply = in_reasoning(thought, self.compiled, self.options) if is_whole else None
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
        from rightcall.wire.native import native_calls

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
            if self.may_open and compiled.bare and not self.thinking and (yield from self.try_bare()):
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
        if self.close_due:
            return self.compiled.inside_due if self.in_section else self.compiled.outside_due
        return self.compiled.inside if self.in_section else self.compiled.outside

    def _on_drop(self, found: re.Match[str]) -> Steps[None]:
        self.take_marker(found.end())
        yield from ()

    def _on_tag(self, found: re.Match[str]) -> Steps[None]:
        """A block of text begins or ends. A code fence that was left open ends with it."""
        tag = self.compiled.tags[found.group()]
        if tag and self.is_shown(found):
            return
        self.settle()
        self.tag, self.may_open, self.fences = tag, True, Fences()
        self.said = None if tag else self.said  # what has its place is not looked at again
        self.take_marker(found.end())
        yield from ()

    def _on_done(self, found: re.Match[str]) -> Steps[None]:
        protocol = self.compiled.format.protocol
        if self.is_shown(found) or protocol is None:
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
        from rightcall.wire.lines import line

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
        self.close_due = False
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
        if self.is_shown(found):
            return
        self.settle()
        self.in_section = True
        self.take_marker(found.end())
        if self.ended and self.pos == len(self.buf):
            self.problem("truncated", "the text ended where a tool call was about to begin")
        yield from ()

    def _on_section_close(self, found: re.Match[str]) -> Steps[None]:
        self.in_section = False
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
        return () if not self.thinking and self.is_shown(found) else header(self)

    _actions: ClassVar[dict[str, Callable[[Reading, re.Match[str]], Iterable[None]]]] = {
        "call": Blocks.on_call,
        "body": Blocks.on_body,
        "section": _on_section,
        "section_close": _on_section_close,
        "late_close": _on_late_close,
        "think": _on_think,
        "think_close": _on_think_close,
        "drop": _on_drop,
        "end": _on_end,
        "header": _on_header,
        "fence": Blocks.on_fence,
        "tag": _on_tag,
        "done": _on_done,
        "line": _on_line,
    }


def located(reply: Reply, text: str, spans: list[Span]) -> list[Span]:
    """The spans of a reply whose text turned out to be nothing but calls: each call's own text, and markers around."""
    said = [span for span in spans if span.kind == "text"]
    if len(said) != 1 or said[0].end - said[0].start != len(text):
        return [Span(span.start, span.end, "call") if span.kind == "text" else span for span in spans]
    found: list[Span] = []
    at = 0
    for call in reply.attempts:
        start = max(at, text.find(call.raw, at))
        found += [Span(at, start, "marker"), Span(start, start + len(call.raw), "call")]
        at = start + len(call.raw)
    found.append(Span(at, len(text), "marker"))
    begin = said[0].start
    made = [Span(begin + span.start, begin + span.end, span.kind) for span in found if span.end > span.start]
    where = spans.index(said[0])
    return [*spans[:where], *made, *spans[where + 1 :]]
