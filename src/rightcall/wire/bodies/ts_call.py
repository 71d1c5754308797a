"""Calls with an object literal, as TypeScript writes them:  edit({ path: "a.py", text: <<EOF ... EOF })

In a block of its own a call is passed on as it arrives. Outside all blocks, `bare`, it is held until it is whole: then
it is a call with a note, or text with a problem.
"""

from __future__ import annotations

import re
from typing import Any

from rightcall.check import fits
from rightcall.formats.spec import TsCall
from rightcall.repair.schema import rename_aliases
from rightcall.wire.bodies.ts_arguments import arguments, held
from rightcall.wire.engine import Engine, Whole
from rightcall.wire.interrupts import Broken, Cut, NotACall
from rightcall.wire.markers import END, Pat, Probe, alt, blanks, literal, look, seq
from rightcall.wire.prose import Steps

_NOTHING = Pat("", "")
_NAME = Pat(r"[\w$][\w$.\-]{0,255}+", r"(?:[\w$][\w$.\-]{0,255}+)?")
_LABEL = Pat(r"[A-Za-z_][\w \-]{0,39}+:[ \t]{0,8}+", r"(?:[A-Za-z_][\w \-]{0,39}+(?::[ \t]{0,8}+)?)?")
_PAREN = seq(Pat(r"[ \t]{0,8}+", r"[ \t]{0,8}+"), literal("("))
_NAMED = seq(alt(literal("<"), _NOTHING), alt(seq(_LABEL, _NAME, _PAREN), seq(_NAME, _PAREN)))
_CALL = seq(alt(literal("`"), _NOTHING), _NAMED)
_OPENING = Probe(_CALL)
# A call at the beginning of a line, and the first character of what it is given.
LINE = Probe(seq(_NAMED, blanks(), Pat(r"[^ \t\r\n]", "")))
FENCED = Probe(
    seq(
        alt(literal("```"), literal("~~~")),
        Pat(r"[A-Za-z_]{0,16}+[ \t]{0,8}+", r"[A-Za-z_]{0,16}+[ \t]{0,8}+"),
        literal("\n"),
        blanks(),
        look(seq(_NAMED, blanks(), Pat(r"[^ \t\r\n]", ""))),
    )
)
WRAPPED = Probe(seq(literal("`"), _NAMED, blanks(), literal("{")))
_NEXT = Probe(seq(_NAME, literal("("), blanks(), Pat(r"[{)]", "")))
_PARTS = re.compile(r"`?<?(?:([A-Za-z_][\w \-]{0,39}+):[ \t]{0,8})?([\w$][\w$.\-]{0,255}+)[ \t]{0,8}\(").match
_BEGUN = re.compile(r"[`<]{0,2}([\w$ .:\-]{0,300}+)\Z").match


def call_parts(text: str, pos: int) -> tuple[str, str]:
    """Label and name of the call that `LINE` or `_CALL` found there."""
    found = _PARTS(text, pos)
    return ((found.group(1) or "").rstrip(), found.group(2)) if found else ("", "")


class TsCallReader:
    # A call; one without its name; a name at which the text ends.
    begins = Probe(alt(_CALL, seq(literal("("), blanks(), literal("{")), seq(_NAME, END)))

    def __init__(self, body: TsCall, closes: list[Pat]) -> None:
        self.labels = frozenset(body.labels)

    def quick(self, p: Engine, start: int, bare: bool) -> tuple[list[Whole], int] | None:
        return None

    def read(self, p: Engine, *, bare: bool) -> Steps[None]:
        if bare:
            yield from self._bare(p)
            return
        first = p.index
        while True:
            ends = yield from self._opening(p)
            values = yield from arguments(p)
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

    def _opening(self, p: Engine) -> Steps[str]:
        """The name and its parenthesis: then it is a call. Gives what may follow it."""
        p.raw_begin()
        found = yield from p.test(_OPENING)
        if found is None:
            if p.ended and (begun := _BEGUN(p.buf, p.pos)):
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

    def _trail(self, p: Engine, ends: str) -> Steps[None]:
        """What models put behind a call that belongs to it: a semicolon, the end of a tag or of code."""
        p.raw_end()
        while (char := p.char() or (yield from p.peek())) and char in ends:
            p.pos += 1
            p.raw_end()

    # -- outside all blocks --------------------------------------------------------------------------------------------

    def _bare(self, p: Engine) -> Steps[None]:
        """A call that counts only when it is whole."""
        shown = bool(p.dropped or p.fences.open)
        p.raw_begin()
        wrapped = p.buf.startswith("`", p.pos)
        found = yield from p.test(_OPENING)
        if found is None:
            raise NotACall
        _, name = call_parts(p.buf, p.pos)
        ends = _ends(found)
        p.pos = found.end()
        try:
            values = yield from held(p)
        except (Broken, Cut) as wrong:
            cut = isinstance(wrong, Cut)
            p.pos = len(p.buf) if cut else p.pos
            if not shown and isinstance(wrong, Broken):
                p.problem(wrong.code, f"{name}: {wrong.message}")
            elif not shown:
                p.problem("truncated", f"the text ended before the call of {name!r} did; send the whole call again")
            raise NotACall from None
        yield from self._trail(p, ends)
        if (wrapped and (yield from p.peek())) or (shown and not _may_run(p, name, values[1])):
            raise NotACall
        call = p.begin(name)
        call.parts.append(values[0])
        p.finish(values[1], empty=not values[1])
        p.problem("bare_call", f"the call of {name!r} stood outside its block", blocking=False, call=p.index - 1)


def _ends(found: re.Match[str]) -> str:
    """What belongs to a call behind its parenthesis: a semicolon, or what closes the quote or bracket before it."""
    lead = found.group()[:2]
    return ";" + (">" if "<" in lead else "") + ("`" if "`" in lead else "")


def _may_run(p: Engine, name: str, value: dict[str, Any]) -> bool:
    tool = p.tools.get(name) if p.tools is not None else None
    return tool is not None and fits(tool, rename_aliases(tool, value)[0])


def labelled(label: str, name: str) -> tuple[str, str]:
    """Code and message."""
    return "labelled_call", f"do not put {label + ':'!r} before a call; write {name}({{ ... }}) alone"
