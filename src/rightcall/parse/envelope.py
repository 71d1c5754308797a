"""JSON envelopes:  {"name": "f", "arguments": {"x": 1}}  alone, in a list, or several in a row.

Keys come in any order. `CallStart` needs a name and the arguments' key, or the envelope's end. Where no marker stood
before the envelope, one key that does not belong to a call decides at once that it is the model's own JSON.
"""

from __future__ import annotations

import re
from typing import Any

from rightcall.formats.spec import Envelope
from rightcall.parse.engine import Engine, Steps
from rightcall.parse.json_stream import LostEnd, json_string, json_value, skip_value
from rightcall.parse.live import read_arguments
from rightcall.parse.markers import Pat, Probe, alt, blanks, literal, seq
from rightcall.parse.signals import Broken, Cut, NotACall
from rightcall.strict_json import Undecodable

_NO_CLOSER = re.compile(r"[ \t\r\n]{0,128}+[^ \t\r\n}\])]").match
_BEGINS = Probe(alt(literal("{"), seq(literal("["), blanks(), Pat(r"[{\]]", ""))))


class EnvelopeReader:
    begins = _BEGINS

    def __init__(self, body: Envelope) -> None:
        self.body = body
        self.names = frozenset(body.names)
        self.args = frozenset(body.args)
        self.ids = frozenset(body.ids)
        self.outer = frozenset(body.outer)
        # The usual order of keys in one go: what it does not match is read key by key, with the same result.
        names, args = "|".join(map(re.escape, body.names)), "|".join(map(re.escape, body.args))
        self._usual = re.compile(
            rf'\{{[ \t\r\n]*+"(?:{names})"[ \t\r\n]*+:[ \t\r\n]*+"([^"\\\x00-\x1f]{{0,256}}+)"[ \t\r\n]*+,'
            rf'[ \t\r\n]*+"(?:{args})"[ \t\r\n]*+:[ \t\r\n]*+(?=[^ \t\r\n])'
        ).match

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
            yield from self._envelope(p, bare)

    def _list(self, p: Engine, bare: bool) -> Steps[None]:
        first = p.index
        while True:
            char = p.char() or (yield from p.peek())
            if char == "{":
                yield from self._envelope(p, bare and p.index == first, listed=True)
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

    def _envelope(self, p: Engine, bare: bool, *, listed: bool = False) -> Steps[None]:
        """One call, from its `{` to its `}`."""
        p.raw_begin()
        parts = _Parts()
        usual = self._usual(p.buf, p.pos) if self.names else None
        p.pos = usual.end() if usual else p.pos + 1
        try:
            if usual:
                parts.name, parts.has_args = usual.group(1), True
                p.begin(parts.name)
                parts.value = yield from read_arguments(p)
            if not (usual and p.char() == "}"):
                yield from self._members(p, parts, bare, usual is not None)
            else:
                p.pos += 1
        except LostEnd:
            raise Broken(
                "invalid_json", "the call is not valid JSON from here on; send it again as valid JSON"
            ) from None
        if p.call is None:
            self._begin_late(p, parts, bare)
        extra = p.compiled.extra_closers
        if extra is not None and not listed and p.options.repair != "off" and not _NO_CLOSER(p.buf, p.pos):
            yield from _take_extra(p, extra)
        p.finish(parts.value, empty=not parts.has_args)

    def _begin_late(self, p: Engine, parts: _Parts, bare: bool) -> None:
        """The envelope ended before the name and the arguments' key had both been seen."""
        declared = p.tools is not None and parts.name in p.tools
        if parts.name is None and not parts.has_args:
            raise NotACall
        if bare and not (parts.has_args and parts.name) and not declared:
            raise NotACall
        call = p.begin(parts.name or "", parts.id)
        if parts.has_args:
            call.parts.append(parts.json)

    def _members(self, p: Engine, parts: _Parts, bare: bool, begun: bool) -> Steps[None]:
        inner = 0  # how many `"function": {` are open
        if begun:
            yield from _comma(p)
        while True:
            char = yield from p.peek()
            if char == "}":
                p.pos += 1
                if not inner:
                    return
                inner -= 1
            elif char == '"':
                opened = yield from self._member(p, parts, bare)
                inner += opened
                if opened:
                    continue
            elif not char:
                raise Cut
            else:
                raise LostEnd
            yield from _comma(p)

    def _member(self, p: Engine, parts: _Parts, bare: bool) -> Steps[int]:
        key = yield from json_string(p)
        if key is None:
            raise LostEnd
        yield from _expect(p, ":", LostEnd())
        char = yield from p.peek()
        if not char:
            raise Cut
        if not self.names and p.call is None:
            parts.name = key
            yield from self._arguments(p, parts)
        elif key in self.names and parts.name is None and char == '"':
            parts.name = yield from json_string(p)
            if parts.name is None:
                raise LostEnd
            if parts.has_args:
                p.begin(parts.name, parts.id).parts.append(parts.json)
        elif key in self.args and not parts.has_args:
            yield from self._arguments(p, parts)
        elif key == "function" and char == "{":
            p.pos += 1
            return 1
        elif key == "function" and char == '"' and parts.name is None:
            parts.name = yield from json_string(p)
        elif key in self.ids and p.call is None:
            _, value = yield from json_value(p)
            parts.id = value if isinstance(value, str) else ""
        elif p.call is None and bare and key != "type":
            raise NotACall
        else:
            yield from skip_value(p)
        return 0

    def _arguments(self, p: Engine, parts: _Parts) -> Steps[None]:
        parts.has_args = True
        if parts.name is None:
            parts.json, parts.value = yield from json_value(p)
        else:
            p.begin(parts.name, parts.id)
            parts.value = yield from read_arguments(p)


class _Parts:
    """What of an envelope has been read."""

    __slots__ = ("has_args", "id", "json", "name", "value")

    def __init__(self) -> None:
        self.name: str | None = None
        self.id = ""
        self.has_args = False
        self.json = ""
        self.value: Any = Undecodable


def _take_extra(p: Engine, probe: Probe) -> Steps[None]:
    """One to three brackets too many before the call's close: taken, with a receipt."""
    p.raw_end()
    found = probe.at(p.buf, p.pos, p.ended)
    if found is None:
        found = yield from p.test(probe)
    if found:
        p.repaired("extra_closer", found.group().strip(), "")
        p.pos = found.end()
        p.raw_end()


def _comma(p: Engine) -> Steps[None]:
    """What must stand behind a member."""
    char = yield from p.peek()
    if char == ",":
        p.pos += 1
    elif not char:
        raise Cut
    elif char != "}":
        raise LostEnd


def _expect(p: Engine, char: str, otherwise: Exception) -> Steps[None]:
    found = yield from p.peek()
    if not found:
        raise Cut
    if found != char:
        raise otherwise
    p.pos += 1
