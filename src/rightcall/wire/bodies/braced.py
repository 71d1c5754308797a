"""Bare keys in braces:  call:f{k:<|"|>v<|"|>,n:1,l:[{a:true}]}   as the Gemma family writes them.

Strings stand between two quote tokens. A quote closes one only if what follows can follow a value: a comma and a key or
a value, or a bracket that is itself followed by structure.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING, Any

from rightcall.formats.spec import Braced, Format, Marker
from rightcall.formats.toml_rules import LITERAL, OPENER, marker_rule, template_rule
from rightcall.strict_json import Undecodable, decode, scan_once
from rightcall.types import Call
from rightcall.wire.bodies.kind import Around, BodyKind, filled, first
from rightcall.wire.engine import Engine, Whole
from rightcall.wire.interrupts import Broken, Cut, NotACall
from rightcall.wire.markers import END, Holes, Pat, Probe, Scan, alt, blanks, literal, seq, templates
from rightcall.wire.prose import Steps
from rightcall.wire.reader import BodyReader
from rightcall.wire.typed import typed
from rightcall.wire.writers import write_arguments

if TYPE_CHECKING:
    from rightcall.shapes.algebra import Node
    from rightcall.shapes.arguments import Arguments
    from rightcall.shapes.builder import Builder

_KEY = Pat(r"[^\s:{}\[\],<>\"']{1,256}+", r"[^\s:{}\[\],<>\"']{0,256}+")
_KEY_PROBE = Probe(seq(_KEY, blanks(), literal(":")))
_B = r"[ \t\r\n]*+"
_BLANKS = re.compile(_B).match
_FIRST = re.compile(rf"{_B}\{{{_B}({_KEY.whole}){_B}:{_B}(?=[^ \t\r\n])").match
_NEXT = re.compile(rf"{_B},{_B}({_KEY.whole}){_B}:{_B}(?=[^ \t\r\n])").match
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?=[,}])").match
_BARE = re.compile(r"[^,{}\[\]<]*+").match
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "None": None, "True": True, "False": False}


_JSON_WORDS = {"true": "true", "false": "false", "null": "null", "None": "null", "True": "true", "False": "false"}


class BracedReader(BodyReader):
    def __init__(self, body: Braced, after: list[Pat], closes: list[Pat]) -> None:
        self.body = body
        self._call_end = re.compile(rf"{_B}\}}(){_B}{alt(*closes).whole}").match if closes else None
        self.open = Holes(body.open)
        self.begins = self.open.probe
        quote = literal(body.quote)
        self.quote = Probe(quote)
        # A string without its quote's first character, a key with its colon, a word, a comma or blanks, a bracket.
        sign, blank = re.escape(str(body.quote)), r"[ \t\r\n]"
        string = f"{sign}([^{re.escape(body.quote[0])}]*+){sign}"
        key, word = rf"([A-Za-z_][\w.\-]*+){blank}*+:{blank}*+", r"([A-Za-z_<>'\"]+)"
        self.tokens = re.compile(rf"{string}|{key}|{word}|({blank}*+,{blank}*+|{blank}++)|[\[\]{{}}]").finditer
        self.scan = Scan([("quote", quote)])
        value = alt(quote, *(literal(word) for word in _WORDS), Pat(r"[-+.0-9\[{]", ""))
        deeper = Pat(r"[,}\]]", "")
        self.follows = Probe(
            seq(
                quote,
                blanks(),
                alt(
                    seq(literal(","), blanks(), alt(seq(_KEY, blanks(), literal(":")), value)),
                    seq(Pat(r"[}\]]", ""), blanks(), alt(deeper, *after, END)),
                    END,
                ),
            )
        )

    def quick(self, p: Engine, start: int, bare: bool) -> tuple[list[Whole], int] | None:
        """The call of a block and its end, where the text is whole and the call as usual."""
        if not p.ended or self._call_end is None or p.tools is None:
            return None
        buf = p.buf
        start = _BLANKS(buf, start).end()  # type: ignore[union-attr]
        opener = self.open.probe.whole(buf, start)
        found = _FIRST(buf, opener.end()) if opener else None
        if opener is None or found is None:
            return None
        name = self.open.fill(opener).get("name", "")
        if name not in p.tools:
            return None
        kinds = p.tools.kinds(name)
        values: dict[str, Any] = {}
        pieces: list[str] = []
        while found is not None:
            key = found.group(1)
            made = None if key in values else self._all_there(p, found.end(), kinds.get(key, "any"))
            if made is None:
                return None
            json, values[key], end = made
            pieces.append(f"{quoted(key)}: {json}")
            found = _NEXT(buf, end)
        last = self._call_end(buf, end)
        if last is None:
            return None
        return [(start, last.end(1), name, "{" + ", ".join(pieces) + "}", values, "")], last.end()

    def _all_there(self, p: Engine, pos: int, kind: str) -> tuple[str, Any, int] | None:
        """The value of an argument, as JSON text and as a value, and its end, if it is as usual. What follows it is for
        the caller to judge."""
        buf, quote = p.buf, self.body.quote
        if buf.startswith(quote, pos):
            start = pos + len(quote)
            end = buf.find(quote, start)
            if end < 0:
                return None
            text = buf[start:end]
            json, value = (quoted(text), text) if kind in ("plain", "string") else self._typed(p, text, kind)
            return json, value, end + len(quote)
        number = _INTEGER(buf, pos) if kind in ("json", "any") else None
        if number is not None:
            return number.group(), int(number.group()), number.end()
        return self._container(buf, pos, p.limits.depth) if buf[pos] in "[{" and p.limits.depth > 8 else None

    def read(self, p: Engine, *, bare: bool) -> Steps[None]:
        p.raw_begin()
        found = yield from p.test(self.open.probe)
        if found is None:
            raise NotACall
        name = self.open.fill(found).get("name", "")
        p.pos = found.end()
        char = yield from p.peek()
        if char and char != "{":
            raise NotACall
        p.begin(name)
        if not char:
            raise Cut
        p.pos += 1
        values = yield from self._members(p)
        if values:
            p.give("}")
        p.finish(values, empty=not values)

    def _members(self, p: Engine) -> Steps[dict[str, Any]]:
        values: dict[str, Any] = {}
        while True:
            char = p.char() or (yield from p.peek())
            if char == "}":
                p.pos += 1
                return values
            if char == ",":
                p.pos += 1
                continue
            found = _KEY_PROBE.at(p.buf, p.pos, p.ended)
            if found:
                p.pos = found.end()
                key = found.group()[:-1].rstrip()
            else:
                key = yield from self._key(p)
            if key in values:
                raise Broken("duplicate_argument", f"the argument {key!r} is given twice", f"/{key}")
            prefix = (", " if values else "{") + quoted(key) + ": "
            values[key] = yield from self._argument(p, key, prefix)

    def _key(self, p: Engine) -> Steps[str]:
        if not (p.char() or (yield from p.peek())):
            raise Cut
        found = _KEY_PROBE.at(p.buf, p.pos, p.ended)
        if found is None:
            found = yield from p.test(_KEY_PROBE)
        if not found:
            if p.ended and re.match(r"[^\s:{}\[\],<>]*\s*\Z", p.buf[p.pos :]):
                p.pos = len(p.buf)
                raise Cut
            raise Broken("invalid_argument_name", "an argument must be written key:value")
        p.pos = found.end()
        return found.group()[:-1].strip()

    def _argument(self, p: Engine, key: str, prefix: str) -> Steps[Any]:
        kind = p.kind(key) or "any"
        number = _INTEGER(p.buf, p.pos) if kind in ("json", "any") else None
        if number is not None:
            p.pos = number.end()
            p.give(prefix + number.group())
            return int(number.group())
        is_text = self.body.quoted == "string" or kind in ("plain", "string")
        if p.char() and p.buf.startswith(self.body.quote, p.pos):
            whole = self._whole(p)
            if whole is not None:
                json, value = (quoted(whole), whole) if is_text else self._typed(p, whole, kind)
                p.give(prefix + json)
                return value
        if kind == "plain" and (yield from self._at_quote(p)):
            p.give(prefix + '"')
            text = yield from self._string(p, give=True)
            p.give('"')
            return text
        json, value = yield from self._value(p, 1, kind)
        p.give(prefix + json)
        return value

    def _at_quote(self, p: Engine) -> Steps[bool]:
        if not p.char():
            yield from p.peek()
        return p.buf.startswith(self.body.quote, p.pos) or (yield from p.test(self.quote)) is not None

    def _value(self, p: Engine, level: int, kind: str) -> Steps[tuple[str, Any]]:
        """One value, as JSON text and as a value."""
        if level > p.limits.depth:
            raise Broken("too_deep", f"the arguments are nested deeper than {p.limits.depth} levels")
        char = p.char() or (yield from p.peek())
        if not char:
            raise Cut
        if char in "[{" and not p.limits.depth < level + 8:
            found = self._container(p.buf, p.pos, p.limits.depth)
            if found is not None:
                p.pos = found[2]
                return found[:2]
        if char == "[":
            return (yield from self._list(p, level))
        if char == "{":
            return (yield from self._object(p, level))
        if char == self.body.quote[0] and (yield from self._at_quote(p)):
            text = self._whole(p)
            if text is None:
                text = yield from self._string(p, give=False)
            return self._typed(p, text, kind)
        return (yield from self._bare(p, kind))

    def _container(self, buf: str, pos: int, depth: int) -> tuple[str, Any, int] | None:
        """A list or an object that is all there and has nothing odd in it: made JSON, and read by C. And its end."""
        plain = self.body.quoted == "string"
        out: list[str] = []
        last, level = pos, 0
        for token in self.tokens(buf, pos):
            which = token.lastindex
            if which is None:
                if token.group() in "[{":
                    level += 1
                    if level > 8:
                        return None
                else:
                    level -= 1
                    if not level:
                        break
                continue
            out.append(buf[last : token.start()])
            last = token.end()
            if which == 4:
                out.append(", " if "," in token.group(4) else "")
            elif which == 3:
                word = token.group(3)
                if word not in _WORDS:
                    return None
                out.append(_JSON_WORDS[word])
            elif which == 2:
                out.append(f'"{token.group(2)}": ')
            else:
                out.append(quoted(token.group(1)) if plain else typed(token.group(1), "any", depth)[0])
        else:
            return None
        out.append(buf[last : token.end()])
        json = "".join(out)
        try:
            value, end = scan_once(json, 0)
        except (StopIteration, ValueError, RecursionError):
            return None
        return None if end != len(json) else (json, value, token.end())

    def _typed(self, p: Engine, text: str, kind: str) -> tuple[str, Any]:
        """A quoted value: a string, or where quotes say nothing about types, what the schema says."""
        if self.body.quoted == "string":
            return quoted(text), text
        json, value, _ = typed(text, kind, p.limits.depth)
        return json, value

    def _list(self, p: Engine, level: int) -> Steps[tuple[str, Any]]:
        p.pos += 1
        made: list[tuple[str, Any]] = []
        while True:
            char = p.char() or (yield from p.peek())
            if char == "]":
                p.pos += 1
                return "[" + ", ".join([json for json, _ in made]) + "]", [value for _, value in made]
            if char == "," and made:
                p.pos += 1
                char = p.char()
            elif not char:
                raise Cut
            text = self._whole(p) if p.buf.startswith(self.body.quote, p.pos) else None
            made.append((yield from self._value(p, level + 1, "any")) if text is None else self._typed(p, text, "any"))

    def _object(self, p: Engine, level: int) -> Steps[tuple[str, Any]]:
        p.pos += 1
        made: dict[str, tuple[str, Any]] = {}
        while True:
            char = yield from p.peek()
            if char == "}":
                p.pos += 1
                json = "{" + ", ".join([f"{quoted(key)}: {json}" for key, (json, _) in made.items()]) + "}"
                return json, {key: value for key, (_, value) in made.items()}
            if char == "," and made:
                p.pos += 1
            key = yield from self._key(p)
            made[key] = yield from self._value(p, level + 1, "any")

    def _bare(self, p: Engine, kind: str) -> Steps[tuple[str, Any]]:
        """A number, a word, or text that should have been quoted."""
        taken = p.capture()
        while True:
            p.pos = _BARE(p.buf, p.pos).end()  # type: ignore[union-attr]
            if p.pos < len(p.buf) or p.ended:
                break
            yield
        text = p.release(taken).strip()
        if p.pos == len(p.buf):
            raise Cut
        if not text or p.buf[p.pos] in "<[{":
            raise Broken("invalid_value", f"no value can be read at {p.buf[p.pos]!r}; strings need {self.body.quote}")
        if text in _WORDS and (kind != "plain" or _WORDS[text] is None):
            value = _WORDS[text]
            return {True: "true", False: "false", None: "null"}[value], value
        value = decode(text, p.limits.depth)
        if isinstance(value, Undecodable) or kind in ("plain", "string", "nullable"):
            return quoted(text), text
        return text, value

    def _whole(self, p: Engine) -> str | None:
        """The text between two quotes, if it and what follows it has arrived; then it is taken."""
        size = len(self.body.quote)
        start = p.pos + size
        end = p.buf.find(self.body.quote, start)
        while end >= 0:
            follows = self.follows.at(p.buf, end, p.ended)
            if follows is None:
                break
            if follows:
                p.pos = end + size
                return p.buf[start:end]
            end = p.buf.find(self.body.quote, end + 1)
        return None

    def _string(self, p: Engine, *, give: bool) -> Steps[str]:
        """The text between two quotes. `pos` is at the first."""
        p.pos += len(self.body.quote)
        pieces: list[str] = []
        scan = self.scan
        while True:
            found = (scan.ended if p.ended else scan.search)(p.buf, p.pos)
            end = found.start() if found else len(p.buf)
            closes = False
            if found is not None and found.lastindex is not None:
                if end == p.pos:
                    closes = bool((yield from p.test(self.follows)))
                    end = p.pos + (0 if closes else 1)
            elif p.ended and end == p.pos:
                raise Cut
            if end > p.pos:
                piece = p.buf[p.pos : end]
                pieces.append(piece)
                p.pos = end
                if give:
                    p.give(quoted(piece)[1:-1])
            elif closes:
                p.pos += len(self.body.quote)
                return "".join(pieces)
            elif found is None or found.lastindex is None:
                yield


# -- the kind: written, constrained, known by its markers --------------------------------------------------------------


class BracedKind(BodyKind[Braced]):
    def reader(self, body: Braced, format: Format, around: Around) -> BodyReader:
        return BracedReader(body, around.after, templates(format.call[1]))

    def write(self, body: Braced, call: Call, arguments: str, index: int) -> str:
        return filled(body.open, call, index) + _written(body, call.arguments)

    def grammar(self, body: Braced, tool: Arguments, builder: Builder) -> list[Node]:
        from rightcall.shapes.algebra import NEVER, Lit, Member, seq
        from rightcall.shapes.markers import pieces, plain
        from rightcall.shapes.write_braces import Braces
        from rightcall.shapes.write_json import in_any_order

        shape = tool.object()
        if shape is None:
            return [NEVER]
        writer = Braces(builder, plain(pieces(body.quote)), body.quoted == "raw", tool.prefix, tool.named)
        members = []
        for field in shape.fields:
            node = writer.member(field)
            if node != NEVER:
                texts = tool.kinds.get(field.name) in ("plain", "string", "nullable")
                value = writer.argument(field.shape) if texts else writer.value(field.shape)
                node = seq(Lit(f"{field.name}:"), value)
            members.append(Member(node, field.required))
        inside = in_any_order(members, Lit(","), writer.extra(shape), shape)
        return [*pieces(first(body.open), name=tool.name), Lit("{"), inside, Lit("}")]

    def markers(self, body: Braced) -> tuple[Marker, ...]:
        return (body.open, body.quote)

    def opening(self, body: Braced) -> tuple[Marker, ...]:
        return (body.open,)

    def check(self, body: Braced, where: str, format: Format) -> None:
        marker_rule(f"{where}.open", body.open, OPENER)
        template_rule(f"{where}.quote", body.quote, LITERAL)


def _written(body: Braced, value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join([f"{key}:{_written(body, item)}" for key, item in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([_written(body, item) for item in value]) + "]"
    return body.quote + value + body.quote if isinstance(value, str) else write_arguments(value)
