"""The calls of a reply, one at a time: how one begins, what of it goes out when, how it ends or fails."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from rightcall.check import fits, name_problem
from rightcall.declare.kinds import Kind
from rightcall.repair.beside import Member
from rightcall.repair.names import settle_name
from rightcall.repair.settle import receipts, settle
from rightcall.repair.sketch import Sketch
from rightcall.repair.strangers import strangers
from rightcall.strict_json import Undecodable
from rightcall.types import Arguments, Call, CallEnd, CallStart, Problem, Repair
from rightcall.wire.interrupts import NotACall
from rightcall.wire.markers import BLANKS, Probe
from rightcall.wire.prose import Capture, Prose, Steps
from rightcall.wire.typed import to_json

# A call that is all there: where it begins and ends, its name, its arguments as JSON and as a value, its id.
Whole = tuple[int, int, str, str, dict[str, Any], str]

_NO_CLOSER = re.compile(r"[ \t\r\n]{0,128}+[^ \t\r\n}\])]").match
_NO_KINDS: dict[str, Kind] = {}


class Building:
    """The call being read."""

    __slots__ = ("beside", "checked", "given", "id", "index", "kinds", "name", "parts", "problems", "repairs")

    def __init__(self, index: int, id: str, name: str, kinds: dict[str, Kind]) -> None:
        self.index, self.id, self.name = index, id, name
        self.kinds = kinds  # how each declared argument is to be read
        self.parts: list[str] = []  # pieces of argument JSON
        self.checked = False  # a problem was found that says it all
        self.given = 0  # how many of them were given out
        self.repairs: tuple[Repair, ...] = ()
        self.problems: list[Problem] = []
        self.beside: tuple[Member, ...] = ()  # what stands in its envelope beside the arguments


class Engine(Prose):
    """The state of one reply being read: what every reader of a body works with."""

    index = 0  # of the next call
    fenced: tuple[Repair, ...] = ()  # the receipt of a code fence around the block being read
    full = False  # there were more calls than there may be
    call: Building | None = None
    raw: Capture | None = None
    raw_at = 0
    broken_at = 0  # where it could not be read any further
    args_at = 0  # where the arguments of the call began
    _raw_text: str | None = None
    refused = 0  # how many calls outside all blocks were none that may run
    dropped = ""  # the code fence around calls outside all blocks, whose first line was taken for a marker

    def raw_begin(self) -> None:
        """A call's own text starts here."""
        if self.raw is not None:
            self.raw_drop()
        self.raw = raw = Capture(self.pos)
        self.captures.append(raw)
        self.raw_at = self.base + self.pos
        self._raw_text = None

    def raw_end(self) -> None:
        """A whole call's own text ends here; what is read between this and `finish` is no part of it."""
        assert self.raw is not None
        self._raw_text = self.captured(self.raw)

    def raw_drop(self) -> None:
        if self.raw is not None:
            self.captures.remove(self.raw)
            self.raw = None

    def begin(self, name: str, id: str = "", repairs: tuple[Repair, ...] = (), *, unread: bool = False) -> Building:
        """It is a call: all that is known of it before its arguments goes out, and is final. `unread`: it broke before
        its name was read, which another problem tells."""
        if self.index >= self.limits.calls:
            self.full = True
            raise NotACall
        if self._blanks or self.recastable:
            self.settle()
        self.said = None
        if self.spans is not None:
            self.mark("marker", self.raw_at)
        if self.tools is not None and name not in self.tools:
            name, found = settle_name(name, self.tools, self.policy(name))
            repairs += found
        kinds = _NO_KINDS if self.tools is None else self.tools.kinds(name)
        call = self.call = Building(self.index, self.ids.take(id), name, kinds)
        call.repairs = (*self.fenced, *repairs)
        self.index += 1
        self._last = None
        self.out.append(CallStart(call.index, call.id, name))
        if (self.tools is None or name not in self.tools) and not unread:
            wrong = name_problem(name, self.tools)
            if wrong is not None:
                self.problem(*wrong, call=call.index)
        return call

    def policy(self, name: str) -> str:
        """How far calls of this tool may be repaired. What was given out is final, and never."""
        repair = self.options.repair
        return repair if isinstance(repair, str) else repair.get(name, repair.get("*", "safe"))

    def whole_call(self, start: int, end: int, name: str, json: str, value: dict[str, Any], id: str = "") -> None:
        """A call that is all there, from `start` to `end` of the buffer."""
        if self._is_plain(name, value) and end - start <= self.limits.call:
            # Where there is nothing to repair and nothing to tell, the same events as below cost less.
            if self._blanks or self.recastable:
                self.settle()
            if self.spans is not None:
                self.mark("marker", self.base + start)
                self.mark("call", self.base + end)
            call = Call(name, value, json, self.ids.take(id), self.buf[start:end])
            index = self.index
            self.index = index + 1
            self.said = self._last = None
            self.out += (CallStart(index, call.id, name), Arguments(index, json), CallEnd(index, call))
            return
        self.pos = start
        self.raw_begin()
        self.begin(name, id).parts.append(json)
        self.pos = end
        self.finish(value)

    def _is_plain(self, name: str, value: dict[str, Any]) -> bool:
        tools = self.tools
        tool = tools.get(name) if tools is not None else None
        if tools is None or tool is None or not value or self.fenced or tool.aliases:
            return False
        return value.keys() <= tools.kinds(name).keys() and fits(tool, value) and not strangers(tool, value)

    def take_extra_closers(self, probe: Probe | None = None) -> Steps[None]:
        """One to three brackets too many before the call's close (or as the probe says): taken, with a receipt."""
        probe = probe or self.compiled.extra_closers
        if probe is None or self.policy("") == "off" or _NO_CLOSER(self.buf, self.pos):
            return
        self.raw_end()
        found = yield from self.test(probe)
        if found:
            self.repaired("extra_closer", found.group().strip(), "")
            self.pos += len(found.group().rstrip())
            self.raw_end()

    def mend(self, *, closed: bool = True) -> bool:
        """Reads a call again, loosely, that could not be read. False where that does not help."""
        return False

    def mended_call(self, sketch: Sketch, text: str, start: int) -> None:
        """A call that was read loosely: `text` is its block from `start` on."""
        if self.call is None:
            self.raw_begin()
            self.raw_at = start + sketch.start
            self.begin(sketch.name, sketch.id)
        assert self.call is not None
        self.call.repairs += receipts(sketch.liberties)
        self.call.beside = sketch.beside
        self.call.parts = [to_json(sketch.arguments)]
        self._raw_text = text[sketch.start : sketch.end]
        self.finish(sketch.arguments, empty=sketch.arguments is None)

    def kind(self, key: str) -> str | None:
        """How the schema says this argument of the current call is to be read; None when it is not declared."""
        return self.call.kinds.get(key) if self.call is not None else None

    def give(self, json: str) -> None:
        """A final piece of argument JSON: goes out at once when live."""
        call = self.call
        assert call is not None
        call.parts.append(json)
        if self.live:
            self.out.append(Arguments(call.index, json))
            call.given += 1

    def finish(self, value: Any = Undecodable, *, empty: bool = False) -> None:
        """The body's own end was seen. `value` is what the argument JSON holds, where the reader already knows."""
        call, raw = self.call, self.raw
        assert call is not None and raw is not None
        self.captures.remove(raw)
        text = self.captured(raw) if self._raw_text is None else self._raw_text
        json = "" if empty else "".join(call.parts)
        if len(text) > self.limits.call:
            self.problem("too_large", f"the call is longer than {self.limits.call} characters", call=call.index)
            self._out(Call(call.name, {}, json, call.id, text, call.repairs, complete=False))
            return
        if type(value) is dict and not empty and json and not call.beside and self._fits(call, value):
            rest = "".join(call.parts[call.given :]) if call.given else json
            if rest:
                self.out.append(Arguments(call.index, rest))
            self._out(Call(call.name, value, json, call.id, text, call.repairs))
            return
        made, problems = settle(
            call.name,
            json,
            index=call.index,
            id=call.id,
            raw=text,
            tools=None if call.checked else self.tools,
            # Of an object some may have been given out, which is final. What is repaired must not depend on the cut.
            policy="off" if self.live and json.startswith("{") else self.policy(call.name),
            depth=self.limits.depth,
            value=value,
            repairs=call.repairs,
            beside=call.beside,
        )
        if made.complete:
            rest = "".join(call.parts[call.given :]) if call.given else made.json
            if rest:
                self.out.append(Arguments(call.index, rest))
        self.out.extend(problems)
        call.problems += problems
        self._out(made)

    def repaired(self, rule: str, before: str, after: str) -> None:
        assert self.call is not None
        self.call.repairs += (Repair(rule, "exact", "", before, after),)

    def _fits(self, call: Building, value: dict[str, Any]) -> bool:
        """Is there nothing to settle? The usual case, which costs least."""
        if self.tools is None or call.checked:
            return True
        tool = self.tools.get(call.name)
        if tool is None:
            return True
        known = not tool.aliases and value.keys() <= call.kinds.keys()
        return known and fits(tool, value) and not strangers(tool, value)

    def fail(self, code: str, message: str, path: str = "", *, whole: bool = True) -> None:
        """The call cannot be used: a problem says why, and its text so far is kept. Unless `whole`, what stands behind
        the place where it broke is text."""
        assert self.raw is not None
        call = self.call or self.begin("", unread=True)
        self.problem(code, message, path, call=call.index)
        raw = self.release(self.raw)
        size = len(raw) if whole else min(len(raw), self.broken_at - self.raw_at)
        self._out(Call(call.name, {}, "".join(call.parts), call.id, raw[:size], call.repairs, complete=False))
        if size < len(raw):
            self.text_behind(raw[size:])

    def text_behind(self, text: str) -> None:
        """Text behind a call, up to `pos`, that was taken while it was not clear where the call ends."""
        trimmed = text.lstrip(BLANKS)
        if self.spans is not None:
            self.mark("marker", self.base + self.pos - len(trimmed))
        self.fresh = False
        self._text(trimmed)

    def _out(self, made: Call) -> None:
        assert self.call is not None
        if self.call.problems:
            made = msgspec.structs.replace(made, problems=tuple(self.call.problems))
        self.out.append(CallEnd(self.call.index, made))
        if self.spans is not None:
            self.mark("call", self.raw_at + len(made.raw))
        self.call = self.raw = None
