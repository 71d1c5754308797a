"""JSON envelopes:  {"name": "f", "arguments": {"x": 1}}  alone, in a list, or several in a row.

Keys come in any order. `CallStart` needs a name and the arguments' key, or the envelope's end. Where no marker stood
before the envelope, one key that does not belong to a call decides at once that it is the model's own JSON.
"""

from __future__ import annotations

import re
from typing import Any

from rightcall.formats.spec import Envelope
from rightcall.repair.names import find_name
from rightcall.repair.sketch import Keys, Sketch, sketch_envelopes
from rightcall.strict_json import Undecodable, is_deep, scan_once
from rightcall.types import Repair
from rightcall.wire.engine import Engine, Whole
from rightcall.wire.interrupts import Broken, Cut, NotACall
from rightcall.wire.json_stream import LostEnd, json_string, json_value, skip_nested, skip_value
from rightcall.wire.live import read_arguments
from rightcall.wire.markers import Pat, Probe, alt, blanks, literal, look, seq
from rightcall.wire.prose import Steps
from rightcall.wire.reader import BodyReader

_B = r"[ \t\r\n]*+"
_COMMENTED = re.compile(r"/\*|//|#").search
_BEGINS = Probe(alt(literal("{"), seq(literal("["), blanks(), Pat(r"[{\]]", ""))))
_EXTRA_IN_LIST = Probe(seq(blanks(), Pat(r"\}{1,3}+", r"\}{0,3}"), blanks(), look(Pat(r"[,\]]", ""))))


class EnvelopeReader(BodyReader):
    begins = _BEGINS

    def __init__(self, body: Envelope, closes: list[Pat]) -> None:
        self.body = body
        self.names = frozenset(body.names)
        self.args = frozenset(body.args)
        self.ids = frozenset(body.ids)
        self.outer = frozenset(body.outer)
        # The usual order of keys in one go: what it does not match is read key by key, with the same result.
        names, args = "|".join(map(re.escape, body.names)), "|".join(map(re.escape, body.args))
        ids = "|".join(map(re.escape, body.ids))
        text = r'"(?P<{}>[^"\\\x00-\x1f]{{1,256}}+)"'.format
        first, then = (rf'"(?:{names})"{_B}:{_B}', rf'{_B},{_B}"(?:{args})"') if body.names else ("", "")
        before = rf'(?:"(?:{ids})"{_B}:{_B}{text("id")}{_B},{_B})?' if ids and body.names else "(?P<id>)"
        usual = rf"(?P<object>\{{){_B}{before}{first}{text('name')}{then}{_B}:{_B}(?=[^ \t\r\n])"
        self._usual = re.compile(usual).match
        outer = "|".join(map(re.escape, body.outer))
        opens = rf'\{{{_B}"(?:{outer})"{_B}:{_B}(?P<list>\[{_B})' if outer else rf"(?P<list>\[{_B})?"
        self._first = re.compile(_B + opens + usual).match
        after = rf'(?:,{_B}"(?:{ids})"{_B}:{_B}"[^"\\\x00-\x1f]*+"{_B})?' if ids and body.names else ""
        close = "(?:" + "|".join(pat.whole for pat in closes) + ")" if closes else ""
        # What may close the list, and the object around it, behind a call that was read loosely.
        self._tail = re.compile(rf"{_B}\]?" + (rf"{_B}\}}?" if body.outer else "")).match
        # The end of an object; a second group where another follows.
        self._ends_item = re.compile(rf"{_B}{after}(\}}){_B}(?:(,)|\]){_B}").match
        self._ends_alone = re.compile(rf"{_B}{after}(\}}){_B}").match
        self._ends_block = (
            re.compile(rf"{_B}{after}(\}}){_B}(?:(?=(\{{))|{close})").match if closes else self._ends_alone
        )
        behind_list = rf"{_B}\}}{_B}" if outer else _B
        self._list_ends = re.compile(behind_list).match, re.compile(behind_list + close).match

    def quick(self, p: Engine, start: int, bare: bool) -> tuple[list[Whole], int] | None:
        """The calls of a block and its end, if all of it is there and as usual."""
        buf = p.buf
        usual = self._first(buf, start)
        if usual is None:
            return None
        listed = usual["list"] is not None
        ends = self._ends_item if listed else self._ends_alone if bare else self._ends_block
        found: list[Whole] = []
        while usual is not None:
            begin = usual.end()
            try:
                value, end = scan_once(buf, begin)
            except (StopIteration, ValueError, RecursionError):
                return None
            close = ends(buf, end)
            if close is None or type(value) is not dict or is_deep(buf, begin, end, p.limits.depth):
                return None
            found.append((usual.start("object"), close.end(1), usual["name"], buf[begin:end], value, usual["id"] or ""))
            if close.lastindex == 1:
                break
            usual = self._usual(buf, close.end())
        else:
            return None
        last = self._list_ends[not bare](buf, close.end()) if listed else close
        return (found, last.end()) if last else None

    def sketch(self, p: Engine, text: str, closed: bool) -> list[Sketch]:
        """The calls of a block that is not valid JSON, read loosely."""
        keys = Keys(self.body.names, self.body.args, self.body.ids)
        found = sketch_envelopes(text, keys, tools=p.tools, depth=p.limits.depth, closed=closed)
        begun = p.call
        return [] if begun is not None and found and found[0].name != begun.name else found

    def tail(self, text: str, end: int) -> int:
        return self._tail(text, end).end()  # type: ignore[union-attr]

    def read(self, p: Engine, *, bare: bool) -> Steps[None]:
        char = p.char() or (yield from p.peek())
        if char == "[":
            p.pos += 1
            yield from self._list(p, bare)
        elif char != "{":
            raise NotACall
        elif self.outer:
            try:
                yield from self._outer(p)
            except LostEnd:
                raise NotACall from None
        else:
            yield from self._run(p, bare)

    def _run(self, p: Engine, bare: bool) -> Steps[None]:
        """One envelope, or several with only white space between them where a marker will close them."""
        yield from self._envelope(p, bare)
        while p.compiled.call_close is not None and not bare:
            if (p.char() or (yield from p.peek())) != "{":
                return
            yield from self._envelope(p, bare, later=True)

    def _list(self, p: Engine, bare: bool) -> Steps[None]:
        first = p.index
        while True:
            char = p.char() or (yield from p.peek())
            if char == "{":
                later = p.index > first
                yield from self._envelope(p, bare and not later, listed=True, later=later)
            elif char == "]" and (p.index > first or not bare):
                p.settle()
                p.pos += 1
                return
            elif not char:
                raise Cut
            elif p.index == first:
                raise NotACall
            else:
                return
            if (p.char() or (yield from p.peek())) == ",":
                p.pos += 1

    def _outer(self, p: Engine) -> Steps[None]:
        """`{"tool_calls": [...]}`: calls, or text for the user, under a key of their own."""
        p.pos += 1
        seen = False
        while (yield from p.peek()) == '"' and (yield from self._outer_member(p, seen)):
            seen = True
            if (yield from p.peek()) == ",":
                p.pos += 1
        if not seen:
            raise NotACall
        if (yield from p.peek()) == "}":
            p.pos += 1

    def _outer_member(self, p: Engine, seen: bool) -> Steps[bool]:
        key = yield from json_string(p)
        if (yield from p.peek()) != ":":
            return False
        p.pos += 1
        char = yield from p.peek()
        if key in self.outer and char == "[":
            p.pos += 1
            yield from self._list(p, False)
        elif key in self.outer and char == "{":
            yield from self._envelope(p, False)
        elif key == self.body.content and char == '"':
            text, value = yield from json_value(p)
            if isinstance(value, str):
                p.content(value, len(text))
        elif seen and char:
            yield from json_value(p)
        else:
            return False
        return True

    def _envelope(self, p: Engine, bare: bool, *, listed: bool = False, later: bool = False) -> Steps[None]:
        """One call, from its `{` to its `}`."""
        p.raw_begin()
        parts = _Parts()
        usual = self._usual(p.buf, p.pos)
        p.pos = usual.end() if usual else p.pos + 1
        try:
            if usual:
                parts.name, parts.has_args = usual["name"], True
                p.begin(usual["name"], usual["id"] or "")
                parts.value = yield from read_arguments(p)
            if not (usual and p.char() == "}"):
                yield from self._members(p, parts, bare, usual is not None)
            else:
                p.pos += 1
        except LostEnd as lost:
            if bare and p.call is None:
                raise NotACall from None
            yield from self._malformed(p, parts, lost)
            return
        if p.call is None:
            self._begin_late(p, parts, bare, later)
        yield from p.take_extra_closers(_EXTRA_IN_LIST if listed else None)
        p.finish(parts.value, empty=not parts.has_args)

    def _malformed(self, p: Engine, parts: _Parts, lost: LostEnd) -> Steps[None]:
        """Not valid JSON. Where the envelope's own brackets can still be matched, its siblings live."""
        broken = Broken("invalid_json", "the call is not valid JSON; send it again as valid JSON")
        if not isinstance(lost, _Odd):
            raise broken
        try:
            yield from skip_nested(p, ["}"] * (1 + parts.inner))
        except LostEnd:
            raise broken from None
        if p.mend(closed=False):
            return
        if p.raw is not None and _COMMENTED(p.captured(p.raw)):
            raise broken  # a bracket in a comment is none
        p.fail(broken.code, broken.message)

    def _begin_late(self, p: Engine, parts: _Parts, bare: bool, later: bool) -> None:
        """The envelope ended before the name and the arguments' key had both been seen. Beside another call of the same
        block (`later`) it is one too, whatever it holds."""
        declared = p.tools is not None and parts.name in p.tools
        if parts.name is None and not parts.has_args and not later:
            raise NotACall
        if bare and not (parts.has_args and parts.name) and not declared:
            raise NotACall
        name: str = parts.name or ""
        repairs: tuple[Repair, ...] = ()
        if not name and p.policy("") != "off":
            name, made, repairs = find_name(parts.value, parts.json, p.tools)
            if made != parts.json:
                parts.json, parts.value = made, Undecodable
        call = p.begin(name, parts.id, repairs)
        if parts.has_args:
            call.parts.append(parts.json)

    def _members(self, p: Engine, parts: _Parts, bare: bool, begun: bool) -> Steps[None]:
        if begun:
            yield from _comma(p)
        while True:
            char = yield from p.peek()
            if char == "}":
                p.pos += 1
                if not parts.inner:
                    return
                parts.inner -= 1
            elif char == '"':
                if (yield from self._member(p, parts, bare)):
                    parts.inner += 1
                    continue
            elif not char:
                raise Cut
            else:
                raise _Odd
            yield from _comma(p)

    def _member(self, p: Engine, parts: _Parts, bare: bool) -> Steps[bool]:
        """A key and its value; True if the value is an object that is read as part of the envelope."""
        key = yield from json_string(p)
        if key is None:
            raise _Odd
        yield from _colon(p)
        char = yield from p.peek()
        if not char:
            raise Cut
        if not self.names and p.call is None:
            parts.name = key
            yield from self._arguments(p, parts)
        elif key in self.names and parts.name is None and char == '"':
            name = yield from json_string(p)
            if name is None:
                raise _Odd
            parts.name = name or None  # a blank name is none
            if parts.has_args and parts.name is not None:
                p.begin(parts.name, parts.id).parts.append(parts.json)
        elif key in self.args and not parts.has_args:
            yield from self._arguments(p, parts)
        elif key == "function" and char == "{":
            p.pos += 1
            return True
        elif key == "function" and char == '"' and parts.name is None:
            parts.name = yield from json_string(p)
        elif key in self.ids and p.call is None:
            _, value = yield from json_value(p)
            parts.id = value if isinstance(value, str) else ""
        elif p.call is None and bare and key != "type":
            raise NotACall
        else:
            yield from skip_value(p)
        return False

    def _arguments(self, p: Engine, parts: _Parts) -> Steps[None]:
        parts.has_args = True
        if parts.name is None:
            parts.json, parts.value = yield from json_value(p)
        else:
            p.begin(parts.name, parts.id)
            parts.value = yield from read_arguments(p)


class _Odd(LostEnd):
    """Something odd stands between the members of an envelope, and no bracket but its own is open."""


class _Parts:
    """What of an envelope has been read."""

    __slots__ = ("has_args", "id", "inner", "json", "name", "value")

    def __init__(self) -> None:
        self.name: str | None = None
        self.id = ""
        self.inner = 0  # how many `"function": {` are open
        self.has_args = False
        self.json = ""
        self.value: Any = Undecodable


def _comma(p: Engine) -> Steps[None]:
    """What must stand behind a member."""
    char = yield from p.peek()
    if char == ",":
        p.pos += 1
    elif not char:
        raise Cut
    elif char != "}":
        raise _Odd


def _colon(p: Engine) -> Steps[None]:
    char = yield from p.peek()
    if not char:
        raise Cut
    if char != ":":
        raise _Odd
    p.pos += 1
