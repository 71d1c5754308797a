"""Tagged arguments:  `<function=f><parameter=k>v</parameter></function>`

Values are bare text. A closing tag inside one does not close it: a close counts only when the next argument's opener
follows, or the whole chain of closes up to where the call is over. Where an opener came with its line break, only a
close with its own counts. The schema says how the text is to be read, unless the tag does.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING, Any, Literal

from rightcall.formats.spec import Format, Marker, Params, alternatives
from rightcall.formats.toml_rules import LITERAL, OPENER, OPTIONAL, Rule, each, marker_rule, refuse, template_rule
from rightcall.repair.sketch import Sketch, sketch_arguments
from rightcall.types import Call
from rightcall.wire.bodies.kind import BodyKind, filled, first
from rightcall.wire.bodies.nested import NestedTags
from rightcall.wire.engine import Engine, Whole
from rightcall.wire.interrupts import Broken, Cut, NotACall
from rightcall.wire.json_stream import LostEnd
from rightcall.wire.live import read_arguments
from rightcall.wire.markers import (
    END,
    Holes,
    Pat,
    Probe,
    Scan,
    alt,
    blanks,
    literal,
    ordered,
    seq,
    template,
    templates,
)
from rightcall.wire.prose import Steps
from rightcall.wire.reader import BodyReader
from rightcall.wire.typed import Wrong, typed
from rightcall.wire.writers import write_arguments

if TYPE_CHECKING:
    from rightcall.shapes.algebra import Node
    from rightcall.shapes.arguments import Arguments
    from rightcall.shapes.builder import Builder

_B = r"[ \t\r\n]*+"
_BLANKS = re.compile(_B).match
_TEXTUAL = frozenset(("plain", "string", "nullable"))


class ParamsReader(BodyReader):
    def __init__(self, body: Params, after: list[Pat], closes: str, call_close: Marker) -> None:
        self.body = body
        self.open = Holes(body.open)
        self.empty = Holes(body.empty) if any(alternatives(body.empty)) else None
        self.param = Holes(body.param)
        starts = templates(body.open) + templates(body.empty)
        self.begins = Probe(alt(*starts))
        self.named_first = any(text.startswith("{") for text in alternatives(body.open))
        self.opens_line = any(text.endswith("\n") for text in alternatives(body.param))
        ends = templates(body.close)
        self.close = Probe(alt(*ends)) if ends else None
        self.over = Probe(alt(*after)) if after else None
        self.nested = NestedTags(body) if body.item else None
        self.keyed = "{key}" in "".join(alternatives(body.value_close))
        self.missing_close = "" in alternatives(body.value_close)
        self.after = after
        self.after_is_open, self.after_may_miss = closes == "never", closes == "maybe"
        self._ends: dict[tuple[str, bool, str], ValueEnd] = {}
        texts = ordered(body.param)
        self._one = len(texts) == 1
        params = [template(text, named=self._one, group="key") for text in texts]
        gap = blanks().whole
        self._says_type = self._one and bool(body.types) and "{type}" in texts[0]
        self._next = re.compile(gap + alt(*params).whole).match
        # The end of a call as usual: of its body at the first group, of all of it behind the match.
        close = gap + alt(*ends).whole + "()" + gap if ends else gap + "()"
        calls = templates(call_close)
        over = alt(*calls).whole if calls else f"(?={alt(*after, END).whole})"
        self._call_end = re.compile(close + over).match

    def end_of(self, key: str, line: bool, quote: str) -> ValueEnd:
        """Where the value of an argument ends."""
        which = (key if self.keyed else "", line, quote)
        found = self._ends.get(which)
        if found is None:
            if len(self._ends) > 64:
                self._ends.clear()
            found = self._ends[which] = ValueEnd(self, *which)
        return found

    def quick(self, p: Engine, start: int, bare: bool) -> tuple[list[Whole], int] | None:
        """The call of a block and its end, where the text is whole and the call as usual."""
        buf = p.buf
        start = _BLANKS(buf, start).end()  # type: ignore[union-attr]
        opener = self.open.probe.whole(buf, start) if p.ended else None
        if opener is None or p.tools is None or (self.body.types and not self._says_type):
            return None
        holes = self.open.fill(opener)
        name = holes.get("name", "")
        found = self._next(buf, opener.end())
        if found is None or name not in p.tools or (self.empty and self.empty.probe.whole(buf, start)):
            return None
        kinds = p.tools.kinds(name)
        values: dict[str, Any] = {}
        pieces: list[str] = []
        while found is not None:
            key = found["key"] if self._one else found[found.lastindex or 0]
            kind = self._kind(kinds.get(key), self.body.types.get(found["type"]) if self._says_type else None)
            made = None if key in values else self._whole(p, found.end(), name, key, kind)
            if made is None:
                return None
            json, values[key], end = made
            pieces.append(f"{quoted(key)}: {json}")
            found = self._next(buf, end)
        last = self._call_end(buf, end)
        if last is None:
            return None
        return [(start, last.end(1), name, "{" + ", ".join(pieces) + "}", values, holes.get("id", ""))], last.end()

    def _whole(self, p: Engine, pos: int, name: str, key: str, kind: str) -> tuple[str, Any, int] | None:
        """An argument's value where the text is whole, as JSON and as a value, and where its close ends. That it is its
        close is for what follows to tell."""
        buf = p.buf
        if self.nested and kind not in _TEXTUAL and self.nested.tag.whole(buf, pos):
            return self.nested.whole(p, pos, name, key)
        line = self.opens_line and buf.startswith("\n", pos)
        pos += line
        quote = ""
        if self.body.quote and buf.startswith(self.body.quote[0], pos):
            pos, quote = pos + len(self.body.quote[0]), self.body.quote[1]
        scan = self.end_of(key, line, quote).scan
        close = scan.ended(buf, pos)
        if close is None or scan.actions[close.lastindex or 0] == "next":
            return None
        kind = "string" if quote and kind == "any" else kind
        json, value, wrong = typed(buf[pos : close.start()], kind, p.limits.depth)
        return None if wrong else (json, value, close.end())

    def sketch(self, p: Engine, text: str, closed: bool) -> list[Sketch]:
        """JSON where the tags belong, but not valid: read loosely."""
        if p.call is None or p.args_at <= p.raw_at:
            return []
        return sketch_arguments(
            text, p.args_at - p.raw_at, p.call.name, tools=p.tools, depth=p.limits.depth, closed=closed
        )

    def read(self, p: Engine, *, bare: bool) -> Steps[None]:
        p.raw_begin()
        found: re.Match[str] | Literal[False] | None
        if self.empty is not None:
            found = yield from p.test(self.empty.probe)
            if found:
                p.pos = found.end()
                p.begin(self.empty.fill(found).get("name", ""))
                p.finish(empty=True)
                return
        found = self.open.probe.at(p.buf, p.pos, p.ended)
        if found is None:
            found = yield from p.test(self.open.probe)
        if not found:
            raise NotACall
        holes = self.open.fill(found)
        name = holes.get("name", "")
        p.pos = found.end()
        if self.named_first and not (yield from self._really_opens(p, name)):
            raise NotACall
        p.begin(name, holes.get("id", ""))
        char = p.char() or (yield from p.peek())
        if char == "{":
            yield from self._json(p)
        else:
            yield from self._params(p)

    def _really_opens(self, p: Engine, name: str) -> Steps[bool]:
        """A bare name is a call's if it is declared, or if an argument follows; else it is prose about the marker."""
        char = yield from p.peek()
        if p.tools is not None and name in p.tools:
            return True
        if not char:
            raise Cut
        if (yield from p.test(self.param.probe)):
            return True
        return p.tools is None and self.over is not None and bool((yield from p.test(self.over)))

    def _json(self, p: Engine) -> Steps[None]:
        """Some models write a JSON object where the tags belong."""
        try:
            value = yield from read_arguments(p)
        except LostEnd:
            raise Broken("invalid_json", "the arguments are not valid JSON from here on; send a JSON object") from None
        yield from self._closed(p)
        p.finish(value)

    def _params(self, p: Engine) -> Steps[None]:
        values: dict[str, Any] = {}
        while True:
            if not p.char():
                yield from p.peek()
            found = self.param.probe.at(p.buf, p.pos, p.ended)
            if found is None:
                found = yield from p.test(self.param.probe)
            if not found:
                break
            holes = self.param.fill(found)
            key = holes["key"]
            if key in values:
                raise Broken("duplicate_argument", f"the argument {key!r} is given twice", "/" + key)
            p.pos = found.end()
            values[key] = yield from self._value(p, key, self.body.types.get(holes.get("type", "")), values)
        yield from self._closed(p)
        if values:
            p.give("}")
        p.finish(values, empty=not values)

    def _closed(self, p: Engine) -> Steps[None]:
        """The end of the body: its own close, or where it has none (or lost it) what ends the call."""
        char = p.char() or (yield from p.peek())
        if self.close is not None:
            found = self.close.at(p.buf, p.pos, p.ended)
            if found is None:
                found = yield from p.test(self.close)
            if found:
                p.pos = found.end()
                return
        if not char:
            raise Cut
        if self.over is None or not (yield from p.test(self.over)):
            raise Broken("unexpected_text", "something other than an argument stands between the call's arguments")

    def _value(self, p: Engine, key: str, said: str | None, values: dict[str, Any]) -> Steps[Any]:
        prefix = (", " if values else "{") + quoted(key) + ": "
        kind = self._kind(p.kind(key), said)
        nested = self.nested if kind not in _TEXTUAL else None
        found = nested.tag.at(p.buf, p.pos, p.ended) if nested else None
        if nested and (found or (found is None and (yield from p.test(nested.tag)))):
            json, value = yield from nested.read(p, key)
            p.give(prefix + json)
            return value
        line = False
        if self.opens_line:
            if p.pos == len(p.buf) and not p.ended:
                yield
            line = p.buf.startswith("\n", p.pos)
            p.pos += line
        quote = (yield from self._quote(p)) if self.body.quote else ""
        end = self.end_of(key, line, quote)
        whole = end.whole(p, values)
        if whole is not None:
            json, value, wrong = typed(whole, "string" if quote and kind == "any" else kind, p.limits.depth)
            p.give(prefix + json)
            self._wrong(p, key, wrong)
            return value
        if kind == "plain":
            p.give(prefix + '"')
            pieces: list[str] = []
            yield from end.take(p, values, pieces, give=True)
            p.give('"')
            return "".join(pieces)
        pieces = []
        yield from end.take(p, values, pieces, give=False)
        kind = "string" if quote and kind == "any" else kind
        json, value, wrong = typed("".join(pieces), kind, p.limits.depth)
        p.give(prefix + json)
        self._wrong(p, key, wrong)
        return value

    @staticmethod
    def _kind(declared: str | None, said: str | None) -> str:
        """A type in the text wins; where it says string and so does the schema, the schema says more."""
        return declared or "any" if said is None or (said == "string" and declared == "plain") else said

    def _wrong(self, p: Engine, key: str, wrong: Wrong | None) -> None:
        # A wrong type is for the check of the whole call to tell, which may also mend it.
        if wrong is not None and wrong[0] != "wrong_type" and p.call is not None:
            p.problem(wrong[0], f"{key}: {wrong[1]}", "/" + key, call=p.call.index)
            p.call.checked = True

    def _quote(self, p: Engine) -> Steps[str]:
        """What closes the quotes around the value, if it is quoted."""
        assert self.body.quote is not None
        while True:
            rest = p.buf[p.pos : p.pos + len(self.body.quote[0])]
            if rest == self.body.quote[0]:
                p.pos += len(rest)
                return self.body.quote[1]
            if p.ended or not self.body.quote[0].startswith(rest):
                return ""
            yield


class ValueEnd:
    """Finds the end of one argument's value."""

    __slots__ = ("chain", "line", "reader", "scan")

    def __init__(self, reader: ParamsReader, key: str, line: bool, quote: str) -> None:
        body = reader.body
        texts = [t.replace("{key}", key) if key else t for t in alternatives(body.value_close) if t]
        self.reader = reader
        self.line = line and any(t.startswith("\n") for t in texts)
        cores = [seq(literal(quote), template(t)) if quote else template(t) for t in texts]
        lines = [seq(literal("\n"), core) for core in cores]
        # Where the opener had no line break, one before the close is still the close's own.
        loose = not self.line and any(t.startswith("\n") for t in texts)
        candidates = lines if self.line else cores + lines if loose else cores
        entries = [("close", pat) for pat in candidates]
        if reader.missing_close:
            entries += [("next", seq(literal("\n"), pat)) for pat in templates(body.param)]
        self.scan = Scan(entries)
        over = alt(*reader.after, END)
        closes = templates(body.close)
        # Where the call's own close may be missing, the body's is enough if it stood on a line of its own.
        short = closes and (reader.after_is_open or (reader.after_may_miss and self.line))
        chain = closes if short else [seq(close, blanks(), over) for close in closes] or [over]
        params = [template(text, group="key") for text in ordered(body.param)]
        self.chain = Probe(seq(blanks(), alt(*params, *chain, END)))

    def whole(self, p: Engine, given: dict[str, Any]) -> str | None:
        """The value, if all of it and what follows it has arrived; then it and its close are taken."""
        buf, pos, ended = p.buf, p.pos, p.ended
        search = self.scan.ended if ended else self.scan.search
        while True:
            found = search(buf, pos)
            if found is None or found.lastindex is None or self.scan.actions[found.lastindex] == "next":
                return None
            follows = self.chain.at(buf, found.end(), ended)
            if follows is None:
                return None
            if follows and not self._repeats(follows, given):
                value = buf[p.pos : found.start()]
                p.pos = found.end()
                return value
            pos = found.start() + 1

    @staticmethod
    def _repeats(follows: re.Match[str], given: dict[str, Any]) -> bool:
        """Is what follows the opener of an argument that was already given?"""
        return follows.lastindex is not None and follows.group(follows.lastindex) in given

    def take(self, p: Engine, given: dict[str, Any], pieces: list[str], *, give: bool) -> Steps[None]:
        """Takes the value into `pieces`, and the marker that closes it; with `give` each piece goes out as it comes."""
        scan = self.scan
        while True:
            found = (scan.ended if p.ended else scan.search)(p.buf, p.pos)
            end = found.start() if found else len(p.buf)
            if end > p.pos:
                self._add(p, p.buf[p.pos : end], pieces, give)
                p.pos = end
            if found is None or found.lastindex is None:
                if p.ended:
                    raise Cut
                yield
                continue
            if scan.actions[found.lastindex] == "next":
                done = yield from self._next(p, given)
            else:
                done = yield from self._closes(p, found.end() - found.start(), given)
            if done:
                return
            # Not structure: its first character is the value's, and the search goes on behind it.
            self._add(p, p.buf[p.pos], pieces, give)
            p.pos += 1

    def _add(self, p: Engine, text: str, pieces: list[str], give: bool) -> None:
        pieces.append(text)
        if give:
            p.give(quoted(text)[1:-1])

    def _closes(self, p: Engine, size: int, given: dict[str, Any]) -> Steps[bool]:
        """Is the close of that size that stands here really one?"""
        while True:
            follows = self.chain.at(p.buf, p.pos + size, p.ended)
            if follows is not None:
                break
            yield
        if not follows or self._repeats(follows, given):
            return False
        p.pos += size
        return True

    def _next(self, p: Engine, given: dict[str, Any]) -> Steps[bool]:
        """The next argument's opener where a close was due: forgiven if its key is declared and not yet given."""
        while True:
            found = self.reader.param.probe.at(p.buf, p.pos + 1, p.ended)
            if found is not None:
                break
            yield
        if not found:
            return False
        key = self.reader.param.fill(found)["key"]
        if key in given or p.kind(key) is None or p.call is None:
            return False
        p.pos += 1
        p.problem("unclosed_argument", f"the argument before {key!r} was not closed", blocking=False, call=p.call.index)
        return True


# -- the kind: written, constrained, known by its markers --------------------------------------------------------------

_ENDS_IN_HOLE = re.compile(r"\{(?:key|type)\}[ \t]*\Z").search
_UNFIT_WORD = re.compile(r'[<>"\s]').search
_JSON_TYPES = {bool: "boolean", int: "number", float: "number", dict: "object", list: "array", type(None): "null"}


class ParamsKind(BodyKind[Params]):
    declared_only = True

    def reader(self, body: Params, format: Format, after: list[Pat]) -> BodyReader:
        is_required = format.section is not None or "" not in alternatives(format.call[1])
        closed = "always" if is_required else "maybe" if templates(format.call[1]) else "never"
        return ParamsReader(body, after, closed, format.call[1])

    def write(self, body: Params, call: Call, arguments: str, index: int) -> str:
        inside = "".join([_written(body, key, value) for key, value in call.arguments.items()])
        return filled(body.open, call, index) + inside + first(body.close)

    def grammar(self, body: Params, tool: Arguments, builder: Builder) -> list[Node]:
        from rightcall.shapes.algebra import NEVER
        from rightcall.shapes.markers import around
        from rightcall.shapes.write_json import Json
        from rightcall.shapes.write_params import Tags

        shape = tool.object()
        if shape is None:
            return [NEVER]
        tags = Tags(body, builder, tool.name, Json(builder, tool.prefix, tool.named), tool.kinds)
        opens, closes = around(body.open, body.close, builder, tool.name)
        return [*opens, tags.arguments(shape), *closes]

    def markers(self, body: Params) -> tuple[Marker, ...]:
        return (body.open, body.param, body.value_close, body.close, body.empty, *(body.quote or ()))

    def opening(self, body: Params) -> tuple[Marker, ...]:
        return (body.open, body.empty)

    def closing(self, body: Params) -> Marker:
        return body.close

    def check(self, body: Params, where: str, format: Format) -> None:
        typed = ("type",) if body.types else ()
        marker_rule(f"{where}.open", body.open, OPENER)
        marker_rule(f"{where}.param", body.param, Rule(need=("key", *typed)))
        marker_rule(f"{where}.value_close", body.value_close, Rule(may=("key",), empty=True))
        if not alternatives(body.value_close)[0]:
            refuse(f"{where}.value_close", "the marker is empty", "the first one is written and must be visible")
        marker_rule(f"{where}.close", body.close, OPTIONAL)
        marker_rule(f"{where}.empty", body.empty, Rule(may=OPENER.may, need=("name",), empty=True))
        template_rule(f"{where}.item", body.item, OPTIONAL)
        each(f"{where}.quote", body.quote or (), LITERAL)
        for text in alternatives(body.param):
            if _ENDS_IN_HOLE(text):
                said = f"nothing tells the end of {text[:80]!r} from the value"
                refuse(f"{where}.param", said, "end it with a literal")
        _check_types(f"{where}.types", body.types)


def _check_types(where: str, types: dict[str, Any]) -> None:
    each(where, types, LITERAL)
    for word in types:
        if len(word) > 32 or _UNFIT_WORD(word):
            refuse(where, f"{word[:80]!r} is no type word", "write 1-32 characters without blanks, quotes, < or >")
    if types and set(types.values()) != {"string", "json"}:
        example = 'for example { text = "string", other = "json" }'
        refuse(where, "it must have a word for string and one for json", example)


def _written(body: Params, key: str, value: Any) -> str:
    """One argument."""
    opener = first(body.param).replace("{type}", _type(body, value)).replace("{key}", key)
    close = first(body.value_close).replace("{key}", key)
    if isinstance(value, str):
        tag = close.strip()
        quote = body.quote if body.quote and tag and tag in value else ("", "")
        return opener + quote[0] + value + quote[1] + close
    if body.item and isinstance(value, (dict, list)) and value:
        entries = value.items() if isinstance(value, dict) else [(body.item, item) for item in value]
        return opener + "".join([_written(body, k, v) for k, v in entries]) + close
    return opener + ("" if body.item and value in ({}, []) else write_arguments(value)) + close


def _type(body: Params, value: Any) -> str:
    """What to write in a `{type}` hole."""
    wanted = "string" if isinstance(value, str) else "json"
    name = _JSON_TYPES.get(type(value), "string")
    if body.types.get(name) == wanted:
        return name
    return next((word for word, kind in body.types.items() if kind == wanted), "")
