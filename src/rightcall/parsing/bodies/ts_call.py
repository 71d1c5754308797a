"""Calls with an object literal, as TypeScript writes them:  edit({ path: "a.py", text: <<EOF ... EOF })

What models add to it, such as labels, backticks and a quotation mark before a heredoc, is in the tests of the parser of
Harn (burin-labs/harn, crates/harn-vm/src/llm/tools/tests).

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


def take_arguments(builder: CallBuilder, *, is_held: bool = False) -> Steps[tuple[str, dict[str, Any]]]:
    """Take the arguments of a call up to and with its `)` and return their JSON and values; "" and {} for `f()`. A
    comma before the `)` is ignored.

    Unless `is_held`, the JSON is given to the call as it arrives instead, none for an empty object, and "" is returned.
    With it nothing is given and no schema is applied. Raises `Broken` for arguments that are invalid or no object, or
    if no `)` follows, `Cut` if the text ends in them; what was taken or given then stays so.
    """
    char = yield from _space(builder)
    json = ""
    values: dict[str, Any] = {}
    if char == "{" and is_held:
        read = yield from _nested(builder, builder.limits.depth)
        json, values = read.json, read.value
    elif char == "{":
        values = _take_whole_object(builder) or (yield from _members(builder))
    elif char != ")":
        raise Broken("arguments_not_object", "the arguments must be one object literal: name({ key: value })")
    if (char := (yield from _space(builder))) == ",":
        builder.advance()
        char = yield from _space(builder)
    if char != ")":
        raise Broken("invalid_call", f"')' must follow the arguments, not {char!r}")
    builder.advance()
    return json, values


def _take_whole_object(builder: CallBuilder) -> dict[str, Any]:
    """Take the object that begins here, give its JSON to the call at once and return it. Return {}, with nothing taken
    or given, if it has not all arrived, is empty or invalid, or has numbers or words in a spelling that the schema must
    interpret (not `None` or `undefined`)."""
    start = builder.pos
    read = take_whole_value(
        builder, ValueReader(TYPESCRIPT, builder.buf, start, depth=builder.limits.depth, ended=False)
    )
    if read is None or read.odd or not read.value:
        builder.advance(start - builder.pos)
        return {}
    builder.give(read.json)
    values: dict[str, Any] = read.value
    return values


def _members(builder: CallBuilder) -> Steps[dict[str, Any]]:
    """Take the object that begins here, up to and with its `}`, give its JSON, with that brace, to the call as it
    arrives, and return it; for an empty object nothing is given. A comma before the `}` is ignored. Raises `Broken` for
    an invalid or repeated member or without a colon or a comma, `Cut` if the text ends."""
    values: dict[str, Any] = {}
    builder.advance()
    while True:
        char = yield from _space(builder)
        if char == "}":
            builder.advance()
            if values:
                builder.give("}")
            return values
        key = yield from _key(builder, char)
        if (yield from _space(builder)) != ":":
            raise Broken("invalid_value", f"the key {key[:60]!r} needs ':' and a value")
        builder.advance()
        if key in values:
            raise Broken("duplicate_argument", f"the argument {key[:60]!r} is given twice")
        prefix = (", " if values else "{") + quoted(key) + ": "
        values[key] = yield from _member(builder, key, prefix)
        char = yield from _space(builder)
        if char == ",":
            builder.advance()
        elif char != "}":
            raise Broken("invalid_value", f"a comma or '}}' must follow a value, not {char!r}")


def _key(builder: CallBuilder, char: str) -> Steps[str]:
    """Take a key, a name, a string, a template or a heredoc in quotes, which begins with `char`, and return its text;
    nothing is given to the call. Raises `Broken` for anything else, `Cut` if the text ends in it, or directly behind a
    name."""
    if char in "'\"`" and (text := (yield from open_string(builder, TYPESCRIPT))) is not None:
        return (yield from take_string(builder, text, give=False))
    while True:
        found = TYPESCRIPT.bare_key(builder.buf, builder.pos)
        if found is None:
            raise Broken("invalid_argument_name", f"a key must be a name or a string, not {char!r}")
        if found.end() < len(builder.buf):
            builder.take_match(found)
            return found.group()
        if builder.ended:
            raise Cut
        yield


def _member(builder: CallBuilder, key: str, prefix: str) -> Steps[Any]:
    """Take the value of `key`, blanks and comments before it included, give its JSON behind `prefix` to the call and
    return it. A string is given while it arrives if the declared kind of `key` is "plain" (then `prefix` is given
    before it), any other value, with `prefix`, when it is complete. Raises `Broken` if it is invalid, `Cut` if the text
    ends."""
    char = yield from _space(builder)
    if char in _STRINGS and builder.kind(key) == "plain":
        builder.give(prefix + '"')
        text = yield from _string(builder, give=True)
        builder.give('"')
        return text
    json, value = yield from _value(builder, key, char)
    builder.give(prefix + json)
    return value


def _value(builder: CallBuilder, key: str, char: str) -> Steps[tuple[str, Any]]:
    """Take the value of `key`, which begins with `char`, and return its JSON and its value: a string as it is, any
    other as the schema wants it; nothing is given to the call but receipts. Raises `Broken` if it is invalid, `Cut` if
    the text ends."""
    if char in _STRINGS:
        text = yield from _string(builder, give=False)
        return quoted(text), text
    read = (
        (yield from _nested(builder, builder.limits.depth - 1)) if char in "{[" else (yield from _scalar(builder, char))
    )
    return interpret_by_schema(builder, key, read)


def _string(builder: CallBuilder, *, give: bool) -> Steps[str]:
    """Take the string, template or heredoc that must begin here and return its content; with `give` it is given to the
    call, without quotes, while it arrives. Raises `Broken` if it is not closed or an invalid heredoc, `Cut` if the text
    ends."""
    text = yield from open_string(builder, TYPESCRIPT)
    assert text is not None
    return (yield from take_string(builder, text, give=give))


def _nested(builder: CallBuilder, depth: int) -> Steps[ParsedValue]:
    """Take a list or an object, nested at most `depth` levels, with its closing bracket, waiting for it, and return it,
    no schema applied; nothing is given to the call. Raises `Broken` if it is invalid, nested deeper, or the call ends
    before it does, `Cut` if the text ends."""
    found = take_whole_value(builder, ValueReader(TYPESCRIPT, builder.buf, builder.pos, depth=depth, ended=False))
    if found is None:
        text = yield from take_to_end(builder, Ends(TYPESCRIPT, stop=builder.compiled.call_ends.edge.at, stops="<"))
        found = parse_value(ValueReader(TYPESCRIPT, text, depth=depth))
    return found


def _scalar(builder: CallBuilder, char: str) -> Steps[ParsedValue]:
    """Take a number or a word with a meaning, which begins with `char`, and return it, no schema applied. Raises
    `Broken` for anything else, also another word, `Cut` if the text ends with it."""
    text = yield from take_run(builder, TYPESCRIPT.bare_value)
    if not text:
        raise Broken("invalid_value", f"no value can be read at {char!r}")
    return parse_value(ValueReader(TYPESCRIPT, text))


def _space(builder: CallBuilder) -> Steps[str]:
    """Take white space and comments and return the next character, which is not taken. Raises `Broken` for a `/` that
    begins no comment, `Cut` at the end of the text, also in a comment."""
    while True:
        char = builder.char() or (yield from builder.peek())
        if not char:
            raise Cut
        if char != "/":
            return char
        while len(builder.buf) - builder.pos < 2 and not builder.ended:
            yield
        if builder.buf[builder.pos + 1 : builder.pos + 2] not in ("/", "*"):
            raise Broken("invalid_value", "no value can be read at '/'")
        yield from skip_to_end(builder, Ends(TYPESCRIPT, comment=True))


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
    """Return the label (as `Hint` in `Hint: edit(`; "" if it has none) and the name of the call that `LINE` or `_CALL`
    found at `pos`; ("", "") if there is no call."""
    found = _PARTS(text, pos)
    return ((found.group(1) or "").rstrip(), found.group(2)) if found else ("", "")


class TsCallReader(BodyReader):
    # A call; one without its name; a name at which the text ends.
    begins = Probe(alt(_CALL, seq(literal("("), blanks(), literal("{")), seq(_NAME, END)))

    def __init__(self, body: TsCall, format: Format, around: Around) -> None:
        self.labels = frozenset(body.labels)

    def read(self, builder: CallBuilder, *, bare: bool) -> Steps[None]:
        """Parse and finish the calls of a block, each rejected (`several_calls`) if there are several: one follows if a
        name, `(` and `{` or `)` do. Raises `NotACall` if none begins here, or beyond the limit of calls, `Broken` if a
        call is invalid, `Cut` if the text ends in one. `bare`: parse one call outside all blocks instead, and raise
        only `NotACall`, as `_bare`."""
        if bare:
            yield from self._bare(builder)
            return
        first = builder.index
        while True:
            ends = yield from self._opening(builder)
            _, values = yield from take_arguments(builder)
            yield from self._take_trailing_marks(builder, ends)
            more = bool((yield from builder.test(_NEXT)))
            assert builder.call is not None
            if more or builder.index > first + 1:
                builder.problem(
                    "several_calls",
                    "a block holds one call; send each call in a block of its own",
                    call=builder.call.index,
                )
            builder.finish(values, empty=not values)
            if not more:
                return

    def _opening(self, builder: CallBuilder) -> Steps[str]:
        """Take the name of a call and its parenthesis, with a label or mark before it, begin the call, and return the
        characters that may follow it and belong to it. Raises `NotACall` if no call is here or beyond the limit of
        calls, `Broken` if its name is missing, or, with the call begun, for a foreign label. If the text ends in what
        may become the parenthesis, takes all, begins the call if its name is declared, and raises `Cut`."""
        builder.begin_text()
        found = yield from builder.test(_OPENING)
        if found is None:
            if (
                builder.ended
                and _OPENING.is_begun(builder.buf, builder.pos)
                and (begun := _BEGUN(builder.buf, builder.pos))
            ):
                builder.take_all()
                if builder.tools is not None and begun.group(1) in builder.tools:
                    builder.begin(begun.group(1))
                raise Cut
            if (yield from builder.test(self.begins)):
                raise Broken("invalid_name", "the call has no tool name; send the name of a tool with its arguments")
            raise NotACall
        label, name = call_parts(builder.buf, builder.pos)
        builder.take_match(found)
        builder.begin(name)
        builder.text.arguments = builder.at
        if label and label not in self.labels:
            raise Broken(*labelled(label, name))
        return _ends(found)

    def _take_trailing_marks(self, builder: CallBuilder, ends: str) -> Steps[None]:
        """Take the characters in `ends` behind a call, such as a semicolon or the end of a code span, and end the
        call's text behind the last of them. Blanks between and behind them are taken too."""
        builder.end_text()
        while (char := builder.char() or (yield from builder.peek())) and char in ends:
            builder.advance()
            builder.end_text()

    # -- outside all blocks --------------------------------------------------------------------------------------------

    def _bare(self, builder: CallBuilder) -> Steps[None]:
        """Parse and finish a call outside all blocks, with the note `bare_call`, if it is whole and valid; a label is
        ignored. Otherwise, or beyond the limit of calls, raises `NotACall` with no call begun, so that its text is
        text; invalid or truncated arguments are reported as a problem of the reply first, and an opener of calls in
        them is read next. A call that begins with a backtick is text, without a problem, if other text than its closing
        marks follows."""
        builder.begin_text()
        wrapped = builder.buf.startswith("`", builder.pos)
        found = yield from builder.test(_OPENING)
        if found is None:
            raise NotACall
        _, name = call_parts(builder.buf, builder.pos)
        ends = _ends(found)
        builder.take_match(found)
        taken = builder.capture()
        try:
            json, values = yield from take_arguments(builder, is_held=True)
        except (Broken, Cut) as wrong:
            cut = isinstance(wrong, Cut)
            builder.advance(len(builder.buf) - builder.pos if cut else 0)
            _give_back_opener(builder, taken)
            if isinstance(wrong, Broken):
                builder.problem(wrong.code, f"{name}: {wrong.message}")
            else:
                builder.problem(
                    "truncated", f"the text ended before the call of {name!r} did; send the whole call again"
                )
            raise NotACall from None
        builder.drop(taken)
        yield from self._take_trailing_marks(builder, ends)
        if wrapped and (yield from builder.peek()):
            raise NotACall
        call = builder.begin(name)
        call.parts.append(json)
        builder.problem("bare_call", f"the call of {name!r} stood outside its block", blocking=False, call=call.index)
        builder.finish(values, empty=not values)


def _give_back_opener(builder: CallBuilder, taken: Capture) -> None:
    """End the capture `taken`, whose text is no call. If it contains an opener of calls, move back to the first one,
    which is read next; else the text stays taken."""
    text = builder.captured(taken)
    places = [place for _, finder in builder.compiled.openers.of_calls if (place := finder.first(text, 0)) >= 0]
    if places:
        builder.give_back(taken)
        builder.advance(min(places))
    else:
        builder.drop(taken)


def _ends(found: re.Match[str]) -> str:
    """Return the characters that may follow a call and belong to it: a semicolon, and what closes the quote or bracket
    before the call that `found` matched."""
    lead = found.group()[:2]
    return ";" + (">" if "<" in lead else "") + ("`" if "`" in lead else "")


def labelled(label: str, name: str) -> tuple[str, str]:
    """Return code and message of the problem of a call of tool `name` with the foreign label `label`."""
    return "labelled_call", f"do not put {label + ':'!r} before a call; write {name}({{ ... }}) alone"
