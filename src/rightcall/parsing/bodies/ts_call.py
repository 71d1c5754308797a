"""Calls with an object literal, as TypeScript writes them:  edit({ path: "a.py", text: <<EOF ... EOF })

In a block of its own a call is passed on as it arrives: an argument that is declared as plain text while it is being
written, any other when it is whole. Outside all blocks, `bare`, it is held until it is whole: then
it is a call with a note, or text with a problem.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring as quoted
from typing import Any

from rightcall.formats.spec import Format, TsCall
from rightcall.parsing.argument_values import (
    ParsedValue,
    interpret_by_schema,
    open_string,
    parse_value,
    skip_to_end,
    take_run,
    take_string,
    take_to_end,
    take_whole_value,
)
from rightcall.parsing.bodies.body_reader import Around, BodyReader
from rightcall.parsing.buffer import Broken, Capture, Cut, NotACall, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.markers import END, Pat, Probe, alt, blanks, literal, seq
from rightcall.parsing.values.notation import TYPESCRIPT
from rightcall.parsing.values.value_reader import Ends, ValueReader

_STRINGS = "'\"`<"


def ts_arguments(p: CallBuilder) -> Steps[dict[str, Any]]:
    """What stands between the parentheses of a call that has begun, passed on as it arrives."""
    char = yield from _space(p)
    values: dict[str, Any] = {}
    if char == "{":
        values = _at_once(p) or (yield from _members(p))
    elif char != ")":
        raise _no_object(char)
    yield from _close(p)
    return values


def _at_once(p: CallBuilder) -> dict[str, Any]:
    """The whole object, if all of it has arrived and the schema has nothing to say about its spelling."""
    start = p.pos
    read = take_whole_value(p, ValueReader(TYPESCRIPT, p.buf, start, depth=p.limits.depth, ended=False))
    if read is None or read.odd or not read.value:
        p.advance(start - p.pos)
        return {}
    p.give(read.json)
    values: dict[str, Any] = read.value
    return values


def held_ts_arguments(p: CallBuilder) -> Steps[tuple[str, dict[str, Any]]]:
    """The same, all at once."""
    char = yield from _space(p)
    json = ""
    value: dict[str, Any] = {}
    if char == "{":
        read = yield from _nested(p, p.limits.depth)
        json, value = read.json, read.value
    elif char != ")":
        raise _no_object(char)
    yield from _close(p)
    return json, value


def _no_object(char: str) -> Exception:
    return (
        Broken("arguments_not_object", "the arguments must be one object literal: name({ key: value })")
        if char
        else Cut()
    )


def _close(p: CallBuilder) -> Steps[None]:
    char = yield from _space(p)
    if char == ",":
        p.advance()
        char = yield from _space(p)
    if char != ")":
        raise Broken("invalid_call", f"')' must follow the arguments, not {char!r}") if char else Cut
    p.advance()


def _members(p: CallBuilder) -> Steps[dict[str, Any]]:
    values: dict[str, Any] = {}
    p.advance()
    while True:
        char = yield from _space(p)
        if char == "}":
            p.advance()
            if values:
                p.give("}")
            return values
        key = yield from _key(p, char)
        if (char := (yield from _space(p))) != ":":
            raise Broken("invalid_value", f"the key {key[:60]!r} needs ':' and a value") if char else Cut
        p.advance()
        if key in values:
            raise Broken("duplicate_argument", f"the argument {key[:60]!r} is given twice")
        prefix = (", " if values else "{") + quoted(key) + ": "
        values[key] = yield from _member(p, key, prefix)
        char = yield from _space(p)
        if char == ",":
            p.advance()
        elif char != "}":
            raise Broken("invalid_value", f"a comma or '}}' must follow a value, not {char!r}") if char else Cut


def _key(p: CallBuilder, char: str) -> Steps[str]:
    if not char:
        raise Cut
    if char in "'\"`" and (text := (yield from open_string(p, TYPESCRIPT))) is not None:
        return (yield from take_string(p, text, give=False))
    while True:
        found = TYPESCRIPT.bare_key(p.buf, p.pos)
        if found is None:
            raise Broken("invalid_argument_name", f"a key must be a name or a string, not {char!r}")
        if found.end() < len(p.buf):
            p.take_match(found)
            return found.group()
        if p.ended:
            raise Cut
        yield


def _member(p: CallBuilder, key: str, prefix: str) -> Steps[Any]:
    char = yield from _space(p)
    if char and char in _STRINGS and p.kind(key) == "plain":
        p.give(prefix + '"')
        text = yield from _string(p, give=True)
        p.give('"')
        return text
    json, value = yield from _value(p, key, char)
    p.give(prefix + json)
    return value


def _value(p: CallBuilder, key: str, char: str) -> Steps[tuple[str, Any]]:
    if not char:
        raise Cut
    if char in _STRINGS:
        text = yield from _string(p, give=False)
        return quoted(text), text
    read = (yield from _nested(p, p.limits.depth - 1)) if char in "{[" else (yield from _scalar(p, char))
    return interpret_by_schema(p, key, read)


def _string(p: CallBuilder, *, give: bool) -> Steps[str]:
    if p.buf[p.pos] == "<":
        yield from _no_edge(p)
    text = yield from open_string(p, TYPESCRIPT)
    assert text is not None
    return (yield from take_string(p, text, give=give))


def _nested(p: CallBuilder, depth: int) -> Steps[ParsedValue]:
    """A list or an object."""
    found = take_whole_value(p, ValueReader(TYPESCRIPT, p.buf, p.pos, depth=depth, ended=False))
    if found is None:
        text = yield from take_to_end(p, Ends(TYPESCRIPT, stop=p.compiled.call_ends.edge.at, stops="<"))
        found = parse_value(ValueReader(TYPESCRIPT, text, depth=depth))
    return found


def _scalar(p: CallBuilder, char: str) -> Steps[ParsedValue]:
    """Take a number or a word."""
    text = yield from take_run(p, TYPESCRIPT.bare_value)
    if not text:
        raise Broken("invalid_value", f"no value can be read at {char!r}")
    return parse_value(ValueReader(TYPESCRIPT, text))


def _no_edge(p: CallBuilder) -> Steps[None]:
    if (yield from p.test(p.compiled.call_ends.edge)):
        raise Broken("invalid_value", "'}' is missing before the end of the call")


def _space(p: CallBuilder) -> Steps[str]:
    """The next character that is neither white space nor a comment's, "" at the end of the text."""
    while True:
        char = p.char() or (yield from p.peek())
        if char != "/":
            return char
        while len(p.buf) - p.pos < 2 and not p.ended:
            yield
        if p.buf[p.pos + 1 : p.pos + 2] not in ("/", "*"):
            raise Broken("invalid_value", "no value can be read at '/'")
        try:
            yield from skip_to_end(p, Ends(TYPESCRIPT, comment=True))
        except Cut:
            return ""


_NOTHING = Pat("", "")
_NAME = Pat(r"[\w$][\w$.\-]{0,255}+", r"(?:[\w$][\w$.\-]{0,255}+)?")
_LABEL = Pat(r"[A-Za-z_][\w \-]{0,39}+:[ \t]{0,8}+", r"(?:[A-Za-z_][\w \-]{0,39}+(?::[ \t]{0,8}+)?)?")
_PAREN = seq(Pat(r"[ \t]{0,8}+", r"[ \t]{0,8}+"), literal("("))
_NAMED = seq(alt(literal("<"), _NOTHING), alt(seq(_LABEL, _NAME, _PAREN), seq(_NAME, _PAREN)))
_CALL = seq(alt(literal("`"), _NOTHING), _NAMED)
_OPENING = Probe(_CALL)
# A call at the beginning of a line, and the first character of what it is given.
LINE = Probe(seq(_NAMED, blanks(), Pat(r"[^ \t\r\n]", "")))
WRAPPED = Probe(seq(literal("`"), _NAMED, blanks(), literal("{")))
_NEXT = Probe(seq(_NAME, literal("("), blanks(), Pat(r"[{)]", "")))
_PARTS = re.compile(r"`?<?(?:([A-Za-z_][\w \-]{0,39}+):[ \t]{0,8})?([\w$][\w$.\-]{0,255}+)[ \t]{0,8}\(").match
_BEGUN = re.compile(r"[`<]{0,2}([\w$ .:\-]{0,300}+)\Z").match


def call_parts(text: str, pos: int) -> tuple[str, str]:
    """Label and name of the call that `LINE` or `_CALL` found there."""
    found = _PARTS(text, pos)
    return ((found.group(1) or "").rstrip(), found.group(2)) if found else ("", "")


class TsCallReader(BodyReader):
    # A call; one without its name; a name at which the text ends.
    begins = Probe(alt(_CALL, seq(literal("("), blanks(), literal("{")), seq(_NAME, END)))

    def __init__(self, body: TsCall, format: Format, around: Around) -> None:
        self.labels = frozenset(body.labels)

    def read(self, p: CallBuilder, *, bare: bool) -> Steps[None]:
        if bare:
            yield from self._bare(p)
            return
        first = p.index
        while True:
            ends = yield from self._opening(p)
            values = yield from ts_arguments(p)
            yield from self._trail(p, ends)
            more = bool((yield from p.test(_NEXT)))
            assert p.call is not None
            if more or p.index > first + 1:
                p.problem(
                    "several_calls", "a block holds one call; send each call in a block of its own", call=p.call.index
                )
            p.finish(values, empty=not values)
            if not more:
                return

    def _opening(self, p: CallBuilder) -> Steps[str]:
        """The name and its parenthesis: then it is a call. Gives what may follow it."""
        p.begin_text()
        found = yield from p.test(_OPENING)
        if found is None:
            if p.ended and _OPENING.is_begun(p.buf, p.pos) and (begun := _BEGUN(p.buf, p.pos)):
                p.take_all()
                if p.tools is not None and begun.group(1) in p.tools:
                    p.begin(begun.group(1))
                raise Cut
            if (yield from p.test(self.begins)):
                raise Broken("invalid_name", "the call has no tool name; send the name of a tool with its arguments")
            raise NotACall
        label, name = call_parts(p.buf, p.pos)
        p.take_match(found)
        p.begin(name)
        p.text.arguments = p.at
        if label and label not in self.labels:
            raise Broken(*labelled(label, name))
        return _ends(found)

    def _trail(self, p: CallBuilder, ends: str) -> Steps[None]:
        """What models put behind a call that belongs to it: a semicolon, the end of a tag or of code."""
        p.end_text()
        while (char := p.char() or (yield from p.peek())) and char in ends:
            p.advance()
            p.end_text()

    # -- outside all blocks --------------------------------------------------------------------------------------------

    def _bare(self, p: CallBuilder) -> Steps[None]:
        """A call that counts only when it is whole."""
        p.begin_text()
        wrapped = p.buf.startswith("`", p.pos)
        found = yield from p.test(_OPENING)
        if found is None:
            raise NotACall
        _, name = call_parts(p.buf, p.pos)
        ends = _ends(found)
        p.take_match(found)
        taken = p.capture()
        try:
            values = yield from held_ts_arguments(p)
        except (Broken, Cut) as wrong:
            cut = isinstance(wrong, Cut)
            p.advance(len(p.buf) - p.pos if cut else 0)
            _give_back_opener(p, taken)
            if isinstance(wrong, Broken):
                p.problem(wrong.code, f"{name}: {wrong.message}")
            else:
                p.problem("truncated", f"the text ended before the call of {name!r} did; send the whole call again")
            raise NotACall from None
        p.drop(taken)
        yield from self._trail(p, ends)
        if wrapped and (yield from p.peek()):
            raise NotACall
        call = p.begin(name)
        call.parts.append(values[0])
        p.problem("bare_call", f"the call of {name!r} stood outside its block", blocking=False, call=call.index)
        p.finish(values[1], empty=not values[1])


def _give_back_opener(p: CallBuilder, taken: Capture) -> None:
    """What was taken is no call: what opens a block in it opens one."""
    text = p.captured(taken)
    places = [place for _, finder in p.compiled.openers.of_calls if (place := finder.first(text, 0)) >= 0]
    if places:
        p.give_back(taken)
        p.advance(min(places))
    else:
        p.drop(taken)


def _ends(found: re.Match[str]) -> str:
    """What belongs to a call behind its parenthesis: a semicolon, or what closes the quote or bracket before it."""
    lead = found.group()[:2]
    return ";" + (">" if "<" in lead else "") + ("`" if "`" in lead else "")


def labelled(label: str, name: str) -> tuple[str, str]:
    """Code and message."""
    return "labelled_call", f"do not put {label + ':'!r} before a call; write {name}({{ ... }}) alone"
