"""Calls with an object literal, as TypeScript writes them:  edit({ path: "a.py", text: <<EOF ... EOF })

In a block of its own a call is passed on as it arrives: an argument that is declared as plain text while it is being
written, any other when it is whole. Outside all blocks, `bare`, it is held until it is whole: then
it is a call with a note, or text with a problem.
"""

from __future__ import annotations

import re
from typing import Any

from rightcall.formats.spec import Format, Marker, TsCall, alternatives
from rightcall.formats.toml_rules import LITERAL, each, refuse
from rightcall.parsing.bodies.kind import CALLED, Around, BodyKind, BodyReader
from rightcall.parsing.bodies.ts_arguments import held_ts_arguments, ts_arguments
from rightcall.parsing.buffer import Broken, Capture, Cut, NotACall, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.markers import END, Pat, Probe, alt, blanks, literal, seq, templates
from rightcall.parsing.values.strings import closing
from rightcall.parsing.writers import write_arguments
from rightcall.types import Call

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

    def __init__(self, body: TsCall, closes: list[Pat]) -> None:
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
        p.raw_begin()
        found = yield from p.test(_OPENING)
        if found is None:
            if p.ended and _OPENING.is_begun(p.buf, p.pos) and (begun := _BEGUN(p.buf, p.pos)):
                p.pos = len(p.buf)
                if p.tools is not None and begun.group(1) in p.tools:
                    p.begin(begun.group(1))
                raise Cut
            if (yield from p.test(self.begins)):
                raise Broken("invalid_name", "the call has no tool name; send the name of a tool with its arguments")
            raise NotACall
        label, name = call_parts(p.buf, p.pos)
        p.pos = found.end()
        p.begin(name)
        p.args_at = p.base + p.pos
        if label and label not in self.labels:
            raise Broken(*labelled(label, name))
        return _ends(found)

    def _trail(self, p: CallBuilder, ends: str) -> Steps[None]:
        """What models put behind a call that belongs to it: a semicolon, the end of a tag or of code."""
        p.raw_end()
        while (char := p.char() or (yield from p.peek())) and char in ends:
            p.pos += 1
            p.raw_end()

    # -- outside all blocks --------------------------------------------------------------------------------------------

    def _bare(self, p: CallBuilder) -> Steps[None]:
        """A call that counts only when it is whole."""
        p.raw_begin()
        wrapped = p.buf.startswith("`", p.pos)
        found = yield from p.test(_OPENING)
        if found is None:
            raise NotACall
        _, name = call_parts(p.buf, p.pos)
        ends = _ends(found)
        p.pos = found.end()
        taken = p.capture()
        try:
            values = yield from held_ts_arguments(p)
        except (Broken, Cut) as wrong:
            cut = isinstance(wrong, Cut)
            p.pos = len(p.buf) if cut else p.pos
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
        p.pos += min(places)
    else:
        p.drop(taken)


def _ends(found: re.Match[str]) -> str:
    """What belongs to a call behind its parenthesis: a semicolon, or what closes the quote or bracket before it."""
    lead = found.group()[:2]
    return ";" + (">" if "<" in lead else "") + ("`" if "`" in lead else "")


def labelled(label: str, name: str) -> tuple[str, str]:
    """Code and message."""
    return "labelled_call", f"do not put {label + ':'!r} before a call; write {name}({{ ... }}) alone"


# -- the kind: written, constrained, known by its markers --------------------------------------------------------------

_IS_LABEL = re.compile(r"[A-Za-z_][\w\-]{0,39}").fullmatch
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*").fullmatch


class TsCallKind(BodyKind[TsCall]):
    found_on_lines = True

    def reader(self, body: TsCall, format: Format, around: Around) -> BodyReader:
        return TsCallReader(body, templates(format.call[1]))

    def write(self, body: TsCall, call: Call, arguments: str, index: int) -> str:
        return f"{call.name}({write_literal(call.arguments)})"

    def markers(self, body: TsCall) -> tuple[Marker, ...]:
        return ("{name}({ city: ", " })", "<<EOF\n", "\nEOF", "// ", "/*", "*/", f"{body.labels[0]}: ")

    def carries_name(self, body: TsCall, name: str) -> bool:
        return bool(CALLED(name))

    def check(self, body: TsCall, where: str, format: Format) -> None:
        each(f"{where}.labels", body.labels, LITERAL)
        for label in body.labels:
            if not _IS_LABEL(label):
                cure = "write a word of letters, digits, _ and -, at most 40"
                refuse(f"{where}.labels", f"{label[:80]!r} is no label", cure)
        if "" in alternatives(format.call[0]) or not any(alternatives(format.call[1])):
            refuse(where, "without markers around a call nothing tells it from text", "write call with both markers")


def write_literal(value: Any) -> str:
    """A value as TypeScript writes it. A string of several lines is a heredoc, which needs no escapes."""
    if isinstance(value, dict):
        entries = [
            f"{key if _IDENTIFIER(key) else write_arguments(key)}: {write_literal(v)}" for key, v in value.items()
        ]
        return f"{{ {', '.join(entries)} }}" if entries else "{}"
    if isinstance(value, list):
        return "[" + ", ".join([write_literal(item) for item in value]) + "]"
    if isinstance(value, str) and "\n" in value and not value.endswith("\r"):
        tag = _free_tag(value)
        return f"<<{tag}\n{value}\n{tag}"
    return write_arguments(value)


def _free_tag(text: str) -> str:
    """A tag that no line of the text begins with."""
    number = 1
    while closing(tag := f"EOF{number}" if number > 1 else "EOF").search(f"\n{text}\n"):
        number += 1
    return tag
