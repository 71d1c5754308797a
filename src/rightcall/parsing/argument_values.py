"""Argument values that are not JSON: raw text of a declared type, and other notations as they arrive."""

from __future__ import annotations

import json as stdlib
import re
from json.encoder import encode_basestring as quoted
from typing import Any, Literal

import msgspec

from rightcall.parsing.buffer import MAX_PIECE, MAX_PIECES, Broken, Cut, Sink, Steps
from rightcall.parsing.call_builder import CallBuilder, OpenCall
from rightcall.parsing.values.notation import PYTHON_LITERALS, Notation, StringText
from rightcall.parsing.values.value_reader import BadValue, Ends, LostEnd, Odd, Unfinished, ValueReader, opening
from rightcall.repairs.argument_text import restore_spelling
from rightcall.schema.places import Places, wants_text
from rightcall.strict_json import REFUSED, Undecodable, decode_unique, pointer_step
from rightcall.types import Arguments, Event, Repair, Tool

# What damage leaves behind in a text that lost its quotes, or only one of them.
_ODD = re.compile(r"[\"'`\u2018-\u201f\\]|^(?!\w++://)[^=]*+=|^[>:,]|:$|(?<!:)//|\s#|/\*").search
_ZEROS = re.compile(r"[+-]?0[0-9_]").match
_WORDS = frozenset("none null nil undefined true false yes no on off".split())
Kind = Literal["schema", "guess"]


class Read(msgspec.Struct, frozen=True):
    json: str
    value: Any
    odd: tuple[Odd, ...] = ()
    bare: tuple[Odd, ...] = ()
    escaped: tuple[Odd, ...] = ()


def read_from(reader: ValueReader) -> Read:
    value = reader.value()
    return Read(reader.json, value, tuple(reader.odd), tuple(reader.bare), tuple(reader.escaped))


def all_there(p: CallBuilder, reader: ValueReader) -> Read | None:
    """The value, if all of it has arrived and nothing is wrong with it; then it is taken."""
    try:
        found = read_from(reader)
    except (Unfinished, BadValue):
        return None
    p.advance(reader.pos - p.pos)
    return found


def whole(reader: ValueReader) -> Read:
    """The value that is all of the reader's text."""
    try:
        found = read_from(reader)
        rest = reader.peek()
    except BadValue as bad:
        raise Broken(bad.code, bad.message) from None
    except Unfinished:
        raise Broken("invalid_value", f"no value can be read at {reader.text[:40]!r}") from None
    if rest:
        raise Broken("trailing_content", f"unexpected text after the value: {reader.text[reader.pos :][:40]!r}")
    return found


def skip(p: CallBuilder, ends: Ends) -> Steps[None]:
    """Takes everything up to the end that `ends` finds."""
    while True:
        try:
            found = ends.step(p.buf, p.pos, p.ended)
        except LostEnd as lost:
            p.advance(ends.pos - p.pos)
            raise Broken(lost.code, lost.message) from None
        p.advance(ends.pos - p.pos)
        if found:
            return
        if p.ended:
            p.take_all()
            raise Cut
        yield


def skipped(p: CallBuilder, ends: Ends) -> Steps[str]:
    """The text up to that end."""
    taken = p.capture()
    try:
        yield from skip(p, ends)
    except (Broken, Cut):
        p.drop(taken)
        raise
    return p.release(taken)


def string_at(p: CallBuilder, notation: Notation) -> Steps[StringText | None]:
    """What reads the string that begins here, its opening taken; None where none does."""
    while True:
        try:
            found = opening(notation, p.buf, p.pos, p.ended)
        except Unfinished:
            yield
            continue
        except BadValue as bad:
            raise Broken(bad.code, bad.message) from None
        if found is None:
            return None
        p.advance(found[1] - p.pos)
        return found[0]


def string(p: CallBuilder, text: StringText, *, give: bool) -> Steps[str]:
    """Take the remainder of a string, to its end. With `give` it is emitted while it arrives."""
    pieces: list[str] = []
    decoded: list[str] = []  # what the sink consumed
    sink: Sink | None = None

    def record(consumed: str) -> None:
        pieces.extend(decoded)
        if give:
            p.record_given(quoted("".join(decoded))[1:-1])
        decoded.clear()

    while True:
        end, piece, closed = text.take(p.buf, p.pos, p.ended)
        p.advance(end - p.pos)
        if piece:
            pieces.append(piece)
            if give:
                p.give(quoted(piece)[1:-1])
        if closed:
            return "".join(pieces)
        if text.lost:
            raise Broken("unterminated_string", "a string is not closed before the end of the call; close it")
        if p.ended:
            p.take_all()
            raise Cut
        sink = sink or _string_sink(p, text, decoded, live=give and p.options.live)
        p.listen(sink, record)
        yield


def _string_sink(p: CallBuilder, text: StringText, decoded: list[str], *, live: bool) -> Sink:
    """Return a sink for text inside a string, which adds its content to `decoded`. It consumes only pieces that decode
    without the text before them."""
    consumed, easy, plain, index = p.consumed, text.easy, text.plain, p.call.index if p.call is not None else 0

    def sink(piece: str) -> list[Event] | None:
        if len(consumed) >= MAX_PIECES or len(piece) > MAX_PIECE:
            return None
        if not p.buf and easy(piece):
            consumed.append(piece)
            decoded.append(piece)
            return [Arguments(index, piece)] if live else []
        written = p.buf + piece
        found = plain(written)
        if found is None:
            return None
        content, size = found
        p.consume(written, size)
        decoded.append(content)
        return [Arguments(index, quoted(content)[1:-1])] if live and size else []

    return sink


def _is_sure(bare: Odd, key: str, tool: Tool | None) -> bool:
    """Is it certain that a string without quotes is one, and where it ends? Only of an argument by itself that must be
    a string: of a list or an object nobody knows which commas are theirs."""
    if tool is None:
        return True  # nothing is known of the arguments, and nothing is checked
    if bare.path or not bare.text or _ODD(bare.text) or bare.text.lower() in _WORDS:
        return False
    return wants_text(Places(tool.parameters).at([key]), tool.parameters)


def _is_text(odd: Odd, key: str, tool: Tool) -> bool:
    return wants_text(Places(tool.parameters).at([key, *odd.path]), tool.parameters)


def bad_escape(path: str, text: str) -> Repair:
    """The receipt of a string with an escape that Python takes for an error: nobody knows what its backslashes mean."""
    return Repair("bad_escape", "guess", path, text[:200], quoted(text[:200]))


def meant(p: CallBuilder, key: str, read: Read) -> tuple[str, Any]:
    """JSON and value of an argument, now that its schema is asked: what was written without quotes and is no number of
    the usual spelling stays as written where a string is wanted. Each change leaves a receipt."""
    if not (read.odd or read.bare or read.escaped):
        return read.json, read.value
    call = p.call
    assert call is not None
    path = pointer_step(key)
    tool = p.tools.get(call.name) if p.tools is not None else None
    call.add_repairs(*_receipts(read, path, key, tool))
    texts = _as_written(call, key, read, path, tool) if read.odd and tool is not None else None
    return (read.json, read.value) if texts is None else texts


def _receipts(read: Read, path: str, key: str, tool: Tool | None) -> tuple[Repair, ...]:
    zeros = _zeros(read, path, key, tool)
    if not read.escaped and not read.bare:
        return zeros
    return (*_escapes(read, path), *_unquoted(read, path, key, tool), *zeros)


def _as_written(call: OpenCall, key: str, read: Read, path: str, tool: Tool) -> tuple[str, Any] | None:
    """JSON and value where a string is wanted for what was written without quotes; None where none is."""
    holder = {key: read.value}
    _, made = restore_spelling(holder, [((key, *odd.path), odd.text) for odd in read.odd], tool)
    taken = [liberty for liberty in made if liberty.rule == "unquoted_value"]
    if not taken:
        return None
    # A boolean may have been meant as `true` or as `True`.
    is_word = any(odd.text in ("True", "False") for odd in read.odd)
    kind: Kind = "guess" if is_word else "schema"
    call.add_repairs(*[Repair(each.rule, kind, path, each.before, each.after) for each in taken])
    return to_json(holder[key]), holder[key]


def _escapes(read: Read, path: str) -> list[Repair]:
    return [bad_escape(path, each.text) for each in read.escaped[:1]]


def _unquoted(read: Read, path: str, key: str, tool: Tool | None) -> list[Repair]:
    """The receipt of the least certain string without quotes."""
    bare = min(read.bare, key=lambda each: _is_sure(each, key, tool), default=None)
    if bare is None:
        return []
    kind: Kind = "schema" if _is_sure(bare, key, tool) else "guess"
    return [Repair("unquoted_value", kind, path, bare.text[:200], quoted(bare.text[:200]))]


def _zeros(read: Read, path: str, key: str, tool: Tool | None) -> tuple[Repair, ...]:
    """The receipt of a number that begins with zeros: ten, eight in octal, or a code."""
    for odd in read.odd:
        if _ZEROS(odd.text) and not (tool and _is_text(odd, key, tool)):
            return (Repair("scalar_type", "guess", path, odd.text[:200], odd.text.lstrip("+-0")[:200]),)
    return ()


TEXT_KINDS = frozenset(("plain", "string", "nullable"))
_JSON_STARTS = frozenset('-0123456789"[{')
_LITERALS = {"true": True, "false": False, "null": None}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})").fullmatch


def to_json(value: Any) -> str:
    """Compact enough to read, never reformatting text: what goes out where the source was not JSON."""
    return quoted(value) if isinstance(value, str) else stdlib.dumps(value, ensure_ascii=False)


Wrong = tuple[str, str]  # code and message


def typed(text: str, kind: str, depth: int) -> tuple[str, Any, Wrong | None]:
    """JSON text, value, and what is wrong with it. `kind` is one of `declare.kinds.Kind`."""
    if kind in TEXT_KINDS:
        is_null = kind == "nullable" and text in ("null", "None")
        return ("null", None, None) if is_null else (quoted(text), text, None)
    if kind == "json" and _INTEGER(text):
        return text, int(text), None
    source = text.strip(" \t\r\n")
    if source in _LITERALS:
        return source, _LITERALS[source], None
    if kind == "any" and source[:1] not in _JSON_STARTS:
        return quoted(text), text, None
    return _of_json(text, source, kind, depth)


def _of_json(text: str, source: str, kind: str, depth: int) -> tuple[str, Any, Wrong | None]:
    value = decode_unique(source, depth)[0] if source else Undecodable("invalid_json", "")
    if not isinstance(value, Undecodable):
        return source, value, None
    if value.code in REFUSED:
        return quoted(text), text, (value.code, value.message)
    return (quoted(text), text, None) if kind == "any" else _of_python(text, source, depth)


def _of_python(text: str, source: str, depth: int) -> tuple[str, Any, Wrong | None]:
    try:
        value = _literal(source, depth)
    except BadValue as bad:
        if bad.code in REFUSED:
            return quoted(text), text, (bad.code, bad.message)
        value = source
    if isinstance(value, str):
        return quoted(text), text, ("wrong_type", f"{text[:60]!r} is not of the declared type; send it as JSON")
    return to_json(value), value, None


def _literal(source: str, depth: int) -> Any:
    """The value of a text that is one literal of Python's; itself where it is more than that."""
    reader = ValueReader(PYTHON_LITERALS, source, depth=depth)
    try:
        value = reader.value()
        # A number in a spelling of its own may be a string without its quotes.
        is_odd = any(odd.text not in PYTHON_LITERALS.words for odd in reader.odd if odd.path)
        return source if is_odd or reader.escaped or reader.peek() else value
    except Unfinished:
        return source
