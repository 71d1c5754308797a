"""Calls with an object literal, as TypeScript writes them:  edit({ path: "a.py", text: <<EOF ... EOF })

In a block of its own a call is passed on as it arrives. Outside all blocks, `bare`, it is held until it is whole: then
it is a call with a note, or text with a problem.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rightcall.check import fits
from rightcall.formats.spec import Format, Marker, TsCall, alternatives
from rightcall.formats.toml_rules import LITERAL, each, refuse
from rightcall.repair.schema import rename_aliases
from rightcall.types import Call
from rightcall.wire.bodies.kind import CALLED, Around, BodyKind
from rightcall.wire.bodies.ts_arguments import arguments, held
from rightcall.wire.bodies.ts_strings import closing
from rightcall.wire.bodies.ts_values import BadValue, TsValues, Unfinished, plain_object
from rightcall.wire.engine import Engine, Whole
from rightcall.wire.interrupts import Broken, Cut, NotACall
from rightcall.wire.markers import Pat, Probe, alt, blanks, literal, look, seq, templates
from rightcall.wire.prose import Steps
from rightcall.wire.reader import BodyReader
from rightcall.wire.writers import write_arguments

if TYPE_CHECKING:
    from rightcall.shapes.algebra import Node
    from rightcall.shapes.arguments import Arguments
    from rightcall.shapes.builder import Builder

_NOTHING = Pat("", "")
_NAME = Pat(r"[\w$][\w$.\-]{0,255}+", r"(?:[\w$][\w$.\-]{0,255}+)?")
_LABEL = Pat(r"[A-Za-z_][\w \-]{0,39}+:[ \t]{0,8}+", r"(?:[A-Za-z_][\w \-]{0,39}+(?::[ \t]{0,8}+)?)?")
_PAREN = seq(Pat(r"[ \t]{0,8}+", r"[ \t]{0,8}+"), literal("("))
_NAMED = seq(alt(literal("<"), _NOTHING), alt(seq(_LABEL, _NAME, _PAREN), seq(_NAME, _PAREN)))
_CALL = seq(alt(literal("`"), _NOTHING), _NAMED)
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
_BEGUN = re.compile(r"[`<]{0,2}[\w$ .:\-]{0,300}\Z").match
_USUAL = re.compile(r"[ \t\r\n]*+([\w$][\w$.\-]{0,255}+)\(").match
_END = re.compile(r"[ \t\r\n]*+,?[ \t\r\n]*+\)[ \t]*+;?").match


def call_parts(text: str, pos: int) -> tuple[str, str]:
    """Label and name of the call that `LINE` or `_CALL` found there."""
    found = _PARTS(text, pos)
    return ((found.group(1) or "").rstrip(), found.group(2)) if found else ("", "")


class TsCallReader(BodyReader):
    begins = Probe(_CALL)

    def __init__(self, body: TsCall, closes: list[Pat]) -> None:
        self.labels = frozenset(body.labels)
        ends = "|".join(pat.whole for pat in closes)
        self._block_end = re.compile(rf"[ \t\r\n]*+(?:{ends})").match if closes else None

    def quick(self, p: Engine, start: int, bare: bool) -> tuple[list[Whole], int] | None:
        """The call of a block and its end, if all of it is there and as usual."""
        name = _USUAL(p.buf, start)
        if name is None or bare or self._block_end is None:
            return None
        found = plain_object(p.buf, name.end(), p.limits.depth) or self._object(p.buf, name.end(), p.limits.depth)
        if found is None:
            return None
        json, value, pos = found
        end = _END(p.buf, pos)
        last = self._block_end(p.buf, end.end()) if end else None
        if end is None or last is None:
            return None
        return [(name.start(1), end.end(), name.group(1), json, value, "")], last.end()

    def _object(self, text: str, pos: int, depth: int) -> tuple[str, dict[str, Any], int] | None:
        values = TsValues(text, pos, depth, ended=False)
        try:
            if values.char() != "{":
                return None
            json, value = values.value(1)
        except (Unfinished, BadValue):
            return None
        return json, value, values.pos

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
        found = yield from p.test(self.begins)
        if found is None:
            if p.ended and _BEGUN(p.buf, p.pos):
                p.pos = len(p.buf)
                raise Cut
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
        shown = p.in_fence
        p.raw_begin()
        wrapped = p.buf.startswith("`", p.pos)
        found = yield from p.test(self.begins)
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
        p.problem("bare_call", f"the call of {name!r} stood outside its block", blocking=False, call=call.index)
        p.finish(values[1], empty=not values[1])


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


# -- the kind: written, constrained, known by its markers --------------------------------------------------------------

_IS_LABEL = re.compile(r"[A-Za-z_][\w\-]{0,39}").fullmatch
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*").fullmatch


class TsCallKind(BodyKind[TsCall]):
    def reader(self, body: TsCall, format: Format, around: Around) -> BodyReader:
        return TsCallReader(body, templates(format.call[1]))

    def write(self, body: TsCall, call: Call, arguments: str, index: int) -> str:
        return f"{call.name}({_written(call.arguments)})"

    def grammar(self, body: TsCall, tool: Arguments, builder: Builder) -> list[Node]:
        from rightcall.shapes.algebra import NEVER, Lit, seq
        from rightcall.shapes.write_ts import Ts

        arguments = Ts(builder, tool.prefix, tool.named, _written).value(tool.shape)
        return [NEVER if arguments == NEVER else seq(Lit(f"{tool.name}("), arguments, Lit(")"))]

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


def _written(value: Any) -> str:
    """A value as TypeScript writes it. A string of several lines is a heredoc, which needs no escapes."""
    if isinstance(value, dict):
        entries = [f"{key if _IDENTIFIER(key) else write_arguments(key)}: {_written(v)}" for key, v in value.items()]
        return f"{{ {', '.join(entries)} }}" if entries else "{}"
    if isinstance(value, list):
        return "[" + ", ".join([_written(item) for item in value]) + "]"
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
