"""Python calls with keyword arguments:  [f(k="v"), g(n=1)]   or one per line, without the brackets.

A value that is valid JSON keeps its spelling; any other is read by `literals`. Where a call cannot be read, the
problem's code says what is missing: a parenthesis, a name, an equals sign, a quote.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONDecoder
from json.encoder import encode_basestring as quoted
from json.scanner import make_scanner
from typing import TYPE_CHECKING, Any

from rightcall.formats.spec import Format, Marker, Pythonic
from rightcall.formats.toml_rules import ANY_TEXT, each
from rightcall.repair.literals import BadLiteral, Literals, literal_value, unescape
from rightcall.strict_json import Undecodable, decode, is_deep, scan_once
from rightcall.types import Call
from rightcall.wire.bodies.kind import CALLED, Around, BodyKind, Wrap
from rightcall.wire.engine import Engine, Whole
from rightcall.wire.interrupts import Broken, Cut, NotACall
from rightcall.wire.json_stream import whole_value
from rightcall.wire.markers import Pat, Probe, alt, blanks, literal, look, seq, templates
from rightcall.wire.prose import Steps
from rightcall.wire.reader import BodyReader
from rightcall.wire.typed import to_json
from rightcall.wire.writers import write_arguments

if TYPE_CHECKING:
    from rightcall.shapes.algebra import Node
    from rightcall.shapes.arguments import Arguments
    from rightcall.shapes.builder import Builder

_WORD = Pat(r"[A-Za-z_][\w.\-]{0,255}+", r"(?:[A-Za-z_][\w.\-]{0,255}+)?")
_FIRST = Pat(r"[^\[{\s]", "")
_STRICT = Probe(look(seq(_WORD, blanks(), literal("("))))
_NAME = Probe(look(Pat(r"[^()\[\]{},'\"=<>\n`]{0,256}+[()\[\]{},'\"=<>\n`]", r"[^()\[\]{},'\"=<>\n`]{0,256}+")))
_NAME_RUN = re.compile(r"[^()\[\]{},'\"=<>\n`]{0,256}+").match
_KEY = re.compile(r"[^=(),\[\]{}'\"<>`]{0,256}+").match
_KEY_PROBE = Probe(look(Pat(r"[^=(),\[\]{}'\"<>`]{0,256}+[=(),\[\]{}'\"<>`]", r"[^=(),\[\]{}'\"<>`]{0,256}+")))
_GOOD_KEY = re.compile(r"[\w.\-]+").fullmatch
_ENDS_VALUE = re.compile(r"[ \t\r\n]*+[,)]").match
_LOOSE = re.compile(r"[^'\"()\[\]{},<`]*+").match
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_OPEN_CODE = {")": "unclosed_paren", "]": "unterminated_list", "}": "unterminated_object"}
_REST = {
    quote: (
        re.compile(rf"(?:[^{quote}\\]++|\\.)*+{quote}", re.S).match,
        # An escape is passed on only when the longest one there is has room to be whole.
        re.compile(
            rf"(?:[^{quote}\\]++|(?=.{{12}})\\(?:u[dD][89abAB][0-9a-fA-F]{{2}}\\u[dD][c-fC-F][0-9a-fA-F]{{2}}|.))*+",
            re.S,
        ).match,
    )
    for quote in "'\""
}
# A quote inside a value that is not closed yet: the rest of the string, or as much as has arrived.
_RUN = {quote: re.compile(rf"(?:[^{quote}\\]++|\\.)*+", re.S).match for quote in "'\""}


_B = r"[ \t\r\n]*+"
_LIST = re.compile(rf"{_B}(\[)?").match
_CALL = re.compile(rf"{_B}([A-Za-z_][\w.\-]{{0,255}}+){_B}\(").match
_CALL_END = re.compile(r"[ \t\r\n,]*+\)").match
_ITEM_END = re.compile(rf"{_B}(?:(,)|\])").match
_ARGUMENT = re.compile(r"[ \t\r\n,]*+([\w.\-]{1,256}+)[ \t\r\n]*+=[ \t\r\n]*+(?=[^ \t\r\n,)])").match


class PythonicReader(BodyReader):
    begins = Probe(alt(_FIRST, seq(literal("["), blanks(), _FIRST)))

    def __init__(self, closes: list[Pat]) -> None:
        self._close = re.compile(_B + alt(*closes).whole).match if closes else None

    def quick(self, p: Engine, start: int, bare: bool) -> tuple[list[Whole], int] | None:
        """The calls of a block and its end, where the text is whole and they are as usual."""
        found = self._calls(p, start) if p.ended else None
        if not found or bare or self._close is None:
            return (found, p.pos) if found else None
        last = self._close(p.buf, p.pos)
        return (found, last.end()) if last else None

    def _calls(self, p: Engine, start: int) -> list[Whole] | None:
        """The calls of the block, if all are as usual; `pos` is behind the last."""
        buf = p.buf
        opener = _LIST(buf, start)
        assert opener is not None
        found: list[Whole] = []
        call = _CALL(buf, opener.end())
        while call is not None:
            p.pos = call.end()
            values, pieces = _whole_arguments(p)
            close = _CALL_END(buf, p.pos)
            if not values or close is None:
                return None
            p.pos = close.end()
            found.append((call.start(1), p.pos, call.group(1), "{" + ", ".join(pieces) + "}", values, ""))
            if opener.lastindex:
                after = _ITEM_END(buf, p.pos)
                if after is None:
                    return None
                p.pos = after.end()
                if not after.lastindex:
                    return found
            call = _CALL(buf, p.pos)
        return None if opener.lastindex else found

    def read(self, p: Engine, *, bare: bool) -> Steps[None]:
        first = p.index
        listed = (yield from p.peek()) == "["
        p.pos += listed
        while True:
            char = yield from p.peek()
            if not char:
                raise Cut
            if listed and char == "]":
                if bare and p.index == first:
                    raise NotACall
                p.settle()
                p.pos += 1
                return
            if char == "," and p.index > first:
                p.pos += 1
            elif not listed and p.index > first and not (yield from p.test(_STRICT)):
                return
            else:
                # Without a bracket only a name and its parenthesis tell a call from prose about the marker.
                yield from self._call(p, (bare or not listed) and p.index == first, listed)

    def _call(self, p: Engine, strict: bool, listed: bool) -> Steps[None]:
        p.raw_begin()
        if strict and not (yield from p.test(_STRICT)):
            raise NotACall
        yield from p.test(_NAME)
        found = _NAME_RUN(p.buf, p.pos)
        assert found is not None
        p.pos = found.end()
        if p.pos == len(p.buf):
            raise Cut
        if p.buf[p.pos] != "(":
            raise Broken("expected_paren", f"a call needs '(' after its name, found {p.buf[p.pos]!r}")
        p.begin(found.group().strip())
        p.pos += 1
        try:
            values = yield from self._arguments(p)
        except Broken as broken:
            # Its siblings live if the parenthesis that ends it can be found.
            yield from _skip_to(p, [")"], broken)
            p.fail(broken.code, broken.message, broken.path)
            return
        p.raw_end()
        if listed and (yield from p.peek()) not in (",", "]", ""):
            trailing = Broken("trailing_content", "unexpected text after the call's closing ')'")
            yield from _skip_to(p, [], trailing)
            p.fail(trailing.code, trailing.message)
            return
        if values:
            p.give("}")
        p.finish(values, empty=not values)

    def _arguments(self, p: Engine) -> Steps[dict[str, Any]]:
        values: dict[str, Any] = {}
        while True:
            usual = _ARGUMENT(p.buf, p.pos)
            if usual is not None and usual.group(1) not in values:
                key = usual.group(1)
                p.pos = usual.end()
                prefix = (", " if values else "{") + quoted(key) + ": "
                found = _all_there(p)
                if found is not None:
                    p.give(prefix + found[0])
                    values[key] = found[1]
                else:
                    values[key] = yield from self._value(p, key, prefix)
                continue
            char = yield from p.peek()
            if not char:
                raise Cut
            if char == ")":
                p.pos += 1
                return values
            if char == ",":
                p.pos += 1
                continue
            key = yield from self._key(p, values)
            prefix = (", " if values else "{") + quoted(key) + ": "
            values[key] = yield from self._value(p, key, prefix)

    def _key(self, p: Engine, values: dict[str, Any]) -> Steps[str]:
        yield from p.test(_KEY_PROBE)
        found = _KEY(p.buf, p.pos)
        assert found is not None
        if found.end() == len(p.buf):
            p.pos = found.end()
            raise Cut
        if p.buf[found.end()] != "=":
            close = p.compiled.call_close
            p.pos = found.end()
            if close is not None and (yield from p.test(close)):
                raise Broken("unclosed_paren", "the call's closing ')' is missing")
            raise Broken("positional_argument", "every argument needs its name: name=value")
        key = found.group().strip()
        p.pos = found.end() + 1
        if not key:
            raise Broken("empty_argument_name", "an argument has no name before '='")
        if not _GOOD_KEY(key):
            raise Broken("invalid_argument_name", f"{key[:80]!r} is no argument name")
        if key in values:
            raise Broken("duplicate_argument", f"the argument {key!r} is given twice", f"/{key}")
        return key

    def _value(self, p: Engine, key: str, prefix: str) -> Steps[Any]:
        char = yield from p.peek()
        if not char:
            raise Cut
        if char in ",)":
            p.give(prefix + '""')
            return ""
        found = _all_there(p)
        if found is None and char in "'\"" and p.kind(key) == "plain" and (yield from _is_single(p, char)):
            p.give(prefix + '"')
            return (yield from _string(p, char))
        if found is None:
            found = yield from _slowly(p)
        p.give(prefix + found[0])
        return found[1]


def _whole_arguments(p: Engine) -> tuple[dict[str, Any], list[str]]:
    """The arguments from here on that are all there, and each as JSON."""
    values: dict[str, Any] = {}
    pieces: list[str] = []
    while (usual := _ARGUMENT(p.buf, p.pos)) is not None and usual.group(1) not in values:
        key = usual.group(1)
        p.pos = usual.end()
        found = _all_there(p)
        if found is None:
            break
        pieces.append(f"{quoted(key)}: {found[0]}")
        values[key] = found[1]
    return values, pieces


def _all_there(p: Engine) -> tuple[str, Any] | None:
    """The value, if it and the comma or parenthesis behind it have arrived."""
    start = p.pos
    found = whole_value(p)
    if found is None:
        made = _respelled(p.buf, start, p.limits.depth)
        if made is not None:
            p.pos = made[2]
            found = made[:2]
    if found is None:
        reader = Literals(p.buf, p.limits.depth, start, words=False)
        try:
            value = reader.value(1)
        except BadLiteral:
            return None
        p.pos = reader.pos
        found = "", value
    if not found[0] or isinstance(found[1], str):
        # A string is written anew: while it arrives, its own spelling is not there to be kept.
        found = to_json(found[1]), found[1]
    if _ENDS_VALUE(p.buf, p.pos) is None:
        p.pos = start
        return None
    return found


_TOKEN = re.compile(
    r"""\"(?:[^\"\\]++|\\.)*+\"|'(?:[^'\\]++|\\.)*+'|[\[\]{}()]|\b(?:True|False|None)\b""", re.S
).finditer
_SAME = {"True": "true", "False": "false", "None": "null"}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


_scan_unique: Callable[[str, int], tuple[Any, int]] = make_scanner(JSONDecoder(object_pairs_hook=_unique))  # type: ignore[arg-type]


def _respelled(buf: str, start: int, depth: int) -> tuple[str, Any, int] | None:
    """A Python list or dict that is JSON but for its words and quotes: C reads it once those are changed.

    Its JSON, its value and its end; None where it is anything else.
    """
    if buf[start] not in "[{":
        return None
    out: list[str] = []
    last, level = start, 0
    for token in _TOKEN(buf, start):
        text = token.group()
        char = text[0]
        if char == '"':
            continue
        if char in "[{":
            level += 1
        elif char in "]}":
            level -= 1
            if not level:
                break
        elif char == "(" or char == ")":
            return None
        else:
            if char == "'" and ('"' in text or "\\" in text):
                return None
            out += (buf[last : token.start()], _SAME.get(text) or f'"{text[1:-1]}"')
            last = token.end()
    else:
        return None
    out.append(buf[last : token.end()])
    json = "".join(out)
    try:
        value, end = (_scan_unique if "{" in json else scan_once)(json, 0)
    except (StopIteration, ValueError, RecursionError):
        return None
    return None if end != len(json) or is_deep(json, 0, end, depth) else (json, value, token.end())


def _slowly(p: Engine) -> Steps[tuple[str, Any]]:
    """The value, its end found by brackets and quotes."""
    taken = p.capture()
    try:
        yield from _skip(p, [])
    except (Broken, Cut):
        p.drop(taken)
        raise
    text = p.release(taken).strip()
    value = decode(text, p.limits.depth)
    if not isinstance(value, (Undecodable, str)):
        return text, value
    made = _respelled(text, 0, p.limits.depth) if text else None
    if made is not None and made[2] == len(text):
        return made[:2]
    try:
        value = literal_value(text, p.limits.depth, words=True)
    except BadLiteral as bad:
        raise Broken(bad.code, bad.message) from None
    return to_json(value), value


def _skip_to(p: Engine, stack: list[str], broken: Broken) -> Steps[None]:
    """Takes everything to where the brackets in `stack` are closed; raises `broken` where that cannot be found."""
    try:
        yield from _skip(p, stack, ",]")
    except Broken:
        raise broken from None


def _skip(p: Engine, stack: list[str], ends: str = ",)") -> Steps[None]:
    """Takes everything up to what ends a value: one of `ends`, outside all brackets. `stack` are those already open."""
    outer = len(stack)
    while True:
        p.pos = _LOOSE(p.buf, p.pos).end()  # type: ignore[union-attr]
        if p.pos == len(p.buf):
            if p.ended:
                raise Cut
            yield
            continue
        char = p.buf[p.pos]
        if char in "'\"":
            p.pos += 1
            yield from _skip_string(p, char)
            continue
        if char in "<`":
            close = p.compiled.call_close
            if close is not None and (yield from p.test(close)):
                code = _OPEN_CODE[stack[-1] if stack else ")"]
                raise Broken(code, f"{stack[-1] if stack else ')'!r} is missing before the end of the call")
        elif char in _CLOSERS:
            stack.append(_CLOSERS[char])
        elif stack and char == stack[-1]:
            stack.pop()
            if outer and not stack:
                p.pos += 1
                return
        elif not stack and char in ends:
            return
        elif char != ",":
            raise Broken(_OPEN_CODE[stack[-1] if stack else ")"], f"{char!r} closes nothing that is open here")
        p.pos += 1


def _skip_string(p: Engine, quote: str) -> Steps[None]:
    """Takes the rest of a string, triple-quoted or not. `pos` is behind its first quote."""
    while len(p.buf) - p.pos < 2 and not p.ended:
        yield
    triple = p.buf.startswith(quote * 2, p.pos)
    if triple:
        p.pos += 2
    run = _RUN[quote]
    while True:
        end = run(p.buf, p.pos).end()  # type: ignore[union-attr]
        p.pos = end
        if end < len(p.buf) and p.buf[end] == quote:
            if not triple or p.buf.startswith(quote * 3, end):
                p.pos = end + (3 if triple else 1)
                return
            if len(p.buf) - end >= 3 or p.ended:
                p.pos = end + 1
                continue
        if p.ended:
            p.pos = len(p.buf)
            raise Cut
        yield


def _is_single(p: Engine, quote: str) -> Steps[bool]:
    """Does a string start here that is quoted once, and not three times?"""
    while len(p.buf) - p.pos < 3 and not p.ended:
        yield
    return not p.buf.startswith(quote * 3, p.pos) and not p.buf.startswith(quote * 2, p.pos)


def _string(p: Engine, quote: str) -> Steps[str]:
    """A string that is passed on while it arrives."""
    p.pos += 1
    whole, safe = _REST[quote]
    pieces: list[str] = []
    while True:
        found = whole(p.buf, p.pos)
        end = found.end() - 1 if found else safe(p.buf, p.pos).end()  # type: ignore[union-attr]
        if end > p.pos:
            piece = unescape(p.buf[p.pos : end])
            pieces.append(piece)
            p.give(quoted(piece)[1:-1])
            p.pos = end
        if found:
            p.pos += 1
            p.give('"')
            if (yield from p.peek()) not in (",", ")", ""):
                raise Broken("trailing_content", "a comma or ')' must follow the string")
            return "".join(pieces)
        if p.ended:
            p.pos = len(p.buf)
            raise Cut
        yield


# -- the kind: written, constrained, known by its markers --------------------------------------------------------------


class PythonicKind(BodyKind[Pythonic]):
    first = "["
    lines = True

    def reader(self, body: Pythonic, format: Format, around: Around) -> BodyReader:
        return PythonicReader(templates(format.call[1]))

    def write(self, body: Pythonic, call: Call, arguments: str, index: int) -> str:
        return f"{call.name}({', '.join([f'{key}={_written(value)}' for key, value in call.arguments.items()])})"

    def grammar(self, body: Pythonic, tool: Arguments, builder: Builder) -> list[Node]:
        from rightcall.shapes.algebra import NEVER
        from rightcall.shapes.write_python import Python

        shape = tool.object()
        writer = Python(builder, tool.prefix, tool.named)
        return [NEVER if shape is None else writer.arguments(tool.name, shape)]

    def markers(self, body: Pythonic) -> tuple[Marker, ...]:
        return body.wrap

    def wrap(self, body: Pythonic) -> Wrap | None:
        return body.wrap

    def carries_name(self, body: Pythonic, name: str) -> bool:
        return bool(CALLED(name))

    def check(self, body: Pythonic, where: str, format: Format) -> None:
        each(f"{where}.wrap", body.wrap, ANY_TEXT)


def _written(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join([_written(item) for item in value]) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join([f"{write_arguments(key)}: {_written(item)}" for key, item in value.items()]) + "}"
    return repr(value) if value is None or isinstance(value, bool) else write_arguments(value)
