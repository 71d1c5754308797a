"""Parse argument values that are not JSON: raw text of a declared type, and other notations while they arrive."""

from __future__ import annotations

import json as stdlib
import re
from collections.abc import Callable
from json.encoder import encode_basestring as quoted
from typing import Any, Literal

import msgspec

from rightcall.parsing.buffer import MAX_PIECE, MAX_PIECES, Broken, Cut, Sink, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.values.notation import JSON_WORDS, PYTHON_LITERALS, Match, Notation, OpenText, StringText
from rightcall.parsing.values.value_reader import BadValue, Ends, Odd, Unfinished, ValueReader, opening
from rightcall.repairs.argument_text import restore_spelling
from rightcall.schema.places import Places, wants_text
from rightcall.strict_json import REFUSED, Undecodable, decode_unique, pointer_step
from rightcall.types import Arguments, Event, Repair, Tool

# What damage leaves in a text that lost its quotes, or only one of them.
_has_lost_quotes = re.compile(r"[\"'`\u2018-\u201f\\]|^(?!\w++://)[^=]*+=|^[>:,]|:$|(?<!:)//|\s#|/\*").search
_begins_with_zero = re.compile(r"[+-]?0[0-9_]").match
_WORDS = frozenset("none null nil undefined true false yes no on off".split())
_MAX_SHOWN = 200


class ParsedValue(msgspec.Struct, frozen=True):
    """A value and its JSON, with what only the schema can interpret.

    - `odd`: numbers in a spelling that is not JSON's.
    - `bare`: strings without quotes.
    - `escaped`: strings with an invalid escape.
    """

    json: str
    value: Any
    odd: tuple[Odd, ...] = ()
    bare: tuple[Odd, ...] = ()
    escaped: tuple[Odd, ...] = ()


def _read_value(reader: ValueReader) -> ParsedValue:
    """Read one value from the reader's position, and return it with what the reader recorded. Raises `BadValue` if
    there is none, `Unfinished` if more text is needed."""
    value = reader.value()
    return ParsedValue(reader.json, value, tuple(reader.odd), tuple(reader.bare), tuple(reader.escaped))


def take_whole_value(builder: CallBuilder, reader: ValueReader) -> ParsedValue | None:
    """Take and return the value that `reader` reads; its text must be the builder's `buf`, its position the builder's.
    Return None and take nothing if the value has not all arrived or is invalid."""
    try:
        found = _read_value(reader)
    except (Unfinished, BadValue):
        return None
    builder.advance(reader.pos - builder.pos)
    return found


def parse_value(reader: ValueReader) -> ParsedValue:
    """Parse the value that is all of the reader's text and return it. Raises `Broken` if it is invalid or not whole, or
    if other text than white space and comments follows it."""
    try:
        found = _read_value(reader)
        trailing = reader.peek()
    except BadValue as bad:
        raise Broken(bad.code, bad.message) from None
    except Unfinished:
        raise Broken("invalid_value", f"no value can be read at {reader.text[:40]!r}") from None
    if trailing:
        raise Broken("trailing_content", f"unexpected text after the value: {reader.text[reader.pos :][:40]!r}")
    return found


def skip_to_end(builder: CallBuilder, ends: Ends) -> Steps[None]:
    """Take everything up to the end that `ends` finds (behind a bracket, before a character of `until`), waiting for
    text. Raises `Broken`, with the text up to there taken, if there can be no end, `Cut` if the text ends first."""
    while True:
        try:
            found = ends.step(builder.buf, builder.pos, builder.ended)
        except BadValue as bad:
            builder.advance(ends.pos - builder.pos)
            raise Broken(bad.code, bad.message) from None
        builder.advance(ends.pos - builder.pos)
        if found:
            return
        if builder.ended:
            builder.take_all()
            raise Cut
        yield


def take_to_end(builder: CallBuilder, ends: Ends) -> Steps[str]:
    """Take everything up to the end that `ends` finds, and return it as written, a closing bracket included. Raises as
    `skip_to_end`: `Broken` if there can be no end, `Cut` if the text ends first; what was taken stays taken."""
    taken = builder.capture()
    try:
        yield from skip_to_end(builder, ends)
    except (Broken, Cut):
        builder.drop(taken)
        raise
    return builder.release(taken)


def take_run(builder: CallBuilder, match: Match) -> Steps[str]:
    """Take and return all that `match` matches here, "" if nothing, waiting until the character behind it has arrived.
    Raises `Cut`, with it taken, if the text ends with it, or here (also if nothing matches)."""
    taken = builder.capture()
    while True:
        found = match(builder.buf, builder.pos)
        builder.advance(0 if found is None else found.end() - builder.pos)
        if builder.pos < len(builder.buf):
            return builder.release(taken)
        if builder.ended:
            builder.drop(taken)
            raise Cut
        yield


def open_string(builder: CallBuilder, notation: Notation) -> Steps[StringText | None]:
    """Take the opening quote of a string, with its prefix, and return a new reader of the string; None, with nothing
    taken, if no string begins here. Waits for text until that is decided. Raises `Broken` for an invalid heredoc, with
    nothing taken."""
    while True:
        try:
            found = opening(notation, builder.buf, builder.pos, builder.ended)
        except Unfinished:
            yield
            continue
        except BadValue as bad:
            raise Broken(bad.code, bad.message) from None
        if found is None:
            return None
        builder.advance(found[1] - builder.pos)
        return found[0]


def take_string(builder: CallBuilder, text: StringText, *, give: bool) -> Steps[str]:
    """Take a string behind its opening quote, with its closing quote, and return its content. `text`: its reader, as
    `open_string` returns it. With `give` the content is given to the call, as JSON without quotes, while it arrives.
    Raises `Broken` if it is not closed before the call ends, with the text up to there taken, `Cut`, with all text
    taken, if the text ends in it."""
    pieces: list[str] = []
    sink = None
    while True:
        end, piece, closed = text.take(builder.buf, builder.pos, builder.ended)
        builder.advance(end - builder.pos)
        if piece:
            pieces.append(piece)
            if give:
                builder.give(quoted(piece)[1:-1])
        if closed:
            return "".join(pieces)
        if text.lost:
            raise Broken("unterminated_string", "a string is not closed before the end of the call; close it")
        if builder.ended:
            builder.take_all()
            raise Cut
        sink = sink or text_sink(builder, text, pieces, give=give)
        builder.listen(*sink)
        yield


def text_sink(
    builder: CallBuilder, text: OpenText, pieces: list[str], *, give: bool
) -> tuple[Sink, Callable[[str], None]]:
    """Return a sink for what arrives inside `text`, and its `record` function, the arguments of `Buffer.listen`. The
    content is added to `pieces` and, with `give`, to the call, but only by `record`, at the next commit. The sink
    consumes only pieces that decode without the text before them, up to `MAX_PIECES`, none longer than `MAX_PIECE`."""
    consumed, easy, plain = builder.consumed, text.easy, text.plain
    index, live = builder.call.index if builder.call is not None else 0, give and builder.options.live
    decoded: list[str] = []  # what the sink consumed

    def record(consumed: str) -> None:
        """Add what the sink consumed to `pieces` and, with `give`, to the call."""
        pieces.extend(decoded)
        if give:
            builder.give(quoted("".join(decoded))[1:-1], is_emitted=True)
        decoded.clear()

    def sink(piece: str) -> list[Event] | None:
        """Consume a piece, or as much of it as is certain, and return its preview events, none unless the content is
        given live; None, with nothing consumed, if the reader must parse it."""
        if len(consumed) >= MAX_PIECES or len(piece) > MAX_PIECE:
            return None
        if not builder.buf and easy(piece):
            consumed.append(piece)
            decoded.append(piece)
            return [Arguments(index, piece)] if live else []
        written = builder.buf + piece
        found = plain(written)
        if found is None:
            return None
        content, size = found
        builder.consume(written, size)
        decoded.append(content)
        return [Arguments(index, quoted(content)[1:-1])] if live and size else []

    return sink, record


def _is_certain(bare: Odd, key: str, tool: Tool | None) -> bool:
    """Return whether it is certain that `bare`, a string without quotes in the argument `key`, is a string, and where
    it ends: without a `tool` always, else if it is not empty, the schema wants text there, and nothing in it looks like
    a lost quote, an assignment or a comment, and it is no word such as `none` or `yes`.

    Inside a list or an object it is not: a comma may belong to the string.
    """
    if tool is None:
        return True  # nothing is known of the arguments, and nothing is checked
    if bare.path or not bare.text or _has_lost_quotes(bare.text) or bare.text.lower() in _WORDS:
        return False
    return wants_text(Places(tool.parameters).at([key]), tool.parameters)


def bad_escape_receipt(path: str, text: str) -> Repair:
    """Return the receipt of a string, at the JSON Pointer `path`, with an invalid escape: what its backslashes mean is
    a guess."""
    return Repair("bad_escape", "guess", path, text[:_MAX_SHOWN], quoted(text[:_MAX_SHOWN]))


def interpret_by_schema(builder: CallBuilder, key: str, read: ParsedValue) -> tuple[str, Any]:
    """Return JSON and value of the argument `key`, which was parsed as `read`, as its schema wants them. Nothing is
    given to the call but receipts: one for invalid escapes, one for unquoted strings (the least certain), one for a
    number that begins with zero where no text is wanted, and one for each spelling that is restored.

    A number or word that JSON spells in another way stays as written, as a string, where the schema wants text. Without
    declared tools nothing is changed.
    """
    if not (read.odd or read.bare or read.escaped):
        return read.json, read.value
    call = builder.call
    assert call is not None
    path = pointer_step(key)
    tool = builder.tools.get(call.name) if builder.tools is not None else None
    call.add_repairs(*[bad_escape_receipt(path, each.text) for each in read.escaped[:1]])
    bare = min(read.bare, key=lambda each: _is_certain(each, key, tool), default=None)  # the least certain string
    if bare is not None:
        kind: Literal["schema", "guess"] = "schema" if _is_certain(bare, key, tool) else "guess"
        call.add_repairs(Repair("unquoted_value", kind, path, bare.text[:_MAX_SHOWN], quoted(bare.text[:_MAX_SHOWN])))
    for odd in read.odd:
        if not _begins_with_zero(odd.text):
            continue
        if tool is None or not wants_text(Places(tool.parameters).at([key, *odd.path]), tool.parameters):
            number = odd.text.lstrip("+-0")  # ten, eight in octal, or a code
            call.add_repairs(Repair("scalar_type", "guess", path, odd.text[:_MAX_SHOWN], number[:_MAX_SHOWN]))
            break
    if tool is None or not read.odd:
        return read.json, read.value
    holder = {key: read.value}
    _, made = restore_spelling(holder, [((key, *odd.path), odd.text) for odd in read.odd], tool)
    unquoted = [each for each in made if each.rule == "unquoted_value"]
    if not unquoted:
        return read.json, read.value
    # A boolean may have been meant as `true` or as `True`.
    kind = "guess" if any(odd.text in ("True", "False") for odd in read.odd) else "schema"
    call.add_repairs(*[Repair(each.rule, kind, path, each.before, each.after) for each in unquoted])
    return to_json(holder[key]), holder[key]


TEXT_KINDS = frozenset(("plain", "string", "nullable"))
_JSON_STARTS = frozenset('-0123456789"[{')
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})").fullmatch


def to_json(value: Any) -> str:
    """Return JSON of a value whose source was not JSON, with non-ASCII characters as they are."""
    return quoted(value) if isinstance(value, str) else stdlib.dumps(value, ensure_ascii=False)


def parse_by_kind(text: str, kind: str, depth: int) -> tuple[str, Any, tuple[str, str] | None]:
    """Return JSON, value and problem (code and message, or None) of raw text for a declared kind of type, one of
    `schema.places.Kind`. For a kind of text it is a string, or null. For others it is JSON or, unless the kind is
    "any", a literal of Python but a string (mlx-lm#1004, vllm-mlx#63). Text that is neither is a string, with the
    problem `wrong_type`; of kind "any" with none. JSON or a literal that is refused, such as an object with a repeated
    key, is a string, with the code of that as the problem."""
    if kind in TEXT_KINDS:
        is_null = kind == "nullable" and text in ("null", "None")
        return ("null", None, None) if is_null else (quoted(text), text, None)
    if kind == "json" and _INTEGER(text):
        return text, int(text), None
    source = text.strip(" \t\r\n")
    if source in JSON_WORDS:
        return source, JSON_WORDS[source], None
    if kind == "any" and source[:1] not in _JSON_STARTS:
        return quoted(text), text, None
    value = decode_unique(source, depth)[0] if source else Undecodable("invalid_json", "")
    if not isinstance(value, Undecodable):
        return source, value, None
    if value.code in REFUSED:
        return quoted(text), text, (value.code, value.message)
    if kind == "any":
        return quoted(text), text, None
    try:
        value = _parse_python_literal(source, depth)
    except BadValue as bad:
        if bad.code in REFUSED:
            return quoted(text), text, (bad.code, bad.message)
        value = source
    if isinstance(value, str):
        return quoted(text), text, ("wrong_type", f"{text[:60]!r} is not of the declared type; send it as JSON")
    return to_json(value), value, None


def _parse_python_literal(source: str, depth: int) -> Any:
    """Return the value of a text that is one literal of Python. Return the text itself if other text follows the
    literal, if it has an invalid escape, or if a number inside a list or an object is not spelled as in JSON. Raises
    `BadValue` if it begins with no literal, or with an invalid one or one that is nested too deep."""
    reader = ValueReader(PYTHON_LITERALS, source, depth=depth)
    value = reader.value()
    # A number in a spelling of its own may be a string without its quotes.
    is_odd = any(odd.text not in PYTHON_LITERALS.words for odd in reader.odd if odd.path)
    return source if is_odd or reader.escaped or reader.peek() else value
