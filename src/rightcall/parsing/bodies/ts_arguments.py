"""What stands between the parentheses of a call as TypeScript writes it:  { path: "a.py", text: <<EOF ... EOF }

Passed on as it arrives, or held until it is whole.
"""

from __future__ import annotations

from json.encoder import encode_basestring as quoted
from typing import Any

from rightcall.parsing.argument_values import Read, all_there, meant, skip, skipped, string, string_at, to_json, whole
from rightcall.parsing.buffer import Broken, Cut, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.values.notation import TYPESCRIPT
from rightcall.parsing.values.value_ends import Ends
from rightcall.parsing.values.value_reader import BadValue, Odd, ValueReader, not_finite, number_of, same

_WORD, _SCALAR = TYPESCRIPT.bare_key, TYPESCRIPT.bare_value
_NOT_FINITE = frozenset(("NaN", "Infinity", "-Infinity", "+Infinity"))
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
    read = all_there(p, ValueReader(TYPESCRIPT, p.buf, start, depth=p.limits.depth, ended=False))
    if read is None or read.odd or not read.value:
        p.pos = start
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
        p.pos += 1
        char = yield from _space(p)
    if char != ")":
        raise Broken("invalid_call", f"')' must follow the arguments, not {char!r}") if char else Cut
    p.pos += 1


def _members(p: CallBuilder) -> Steps[dict[str, Any]]:
    values: dict[str, Any] = {}
    p.pos += 1
    while True:
        char = yield from _space(p)
        if char == "}":
            p.pos += 1
            if values:
                p.give("}")
            return values
        key = yield from _key(p, char)
        if (char := (yield from _space(p))) != ":":
            raise Broken("invalid_value", f"the key {key[:60]!r} needs ':' and a value") if char else Cut
        p.pos += 1
        if key in values:
            yield from _again(p, key, values[key])
        else:
            prefix = (", " if values else "{") + quoted(key) + ": "
            values[key] = yield from _member(p, key, prefix)
        char = yield from _space(p)
        if char == ",":
            p.pos += 1
        elif char != "}":
            raise Broken("invalid_value", f"a comma or '}}' must follow a value, not {char!r}") if char else Cut


def _key(p: CallBuilder, char: str) -> Steps[str]:
    if not char:
        raise Cut
    if char in "'\"`" and (text := (yield from string_at(p, TYPESCRIPT))) is not None:
        return (yield from string(p, text, give=False))
    while True:
        found = _WORD(p.buf, p.pos)
        if found is None:
            raise Broken("invalid_argument_name", f"a key must be a name or a string, not {char!r}")
        if found.end() < len(p.buf):
            p.pos = found.end()
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


def _again(p: CallBuilder, key: str, first: Any) -> Steps[None]:
    """A key that was there before: the same value again says nothing new."""
    char = yield from _space(p)
    _, value = yield from _value(p, key, char)
    if not same(first, value):
        raise Broken("duplicate_argument", f"the argument {key[:60]!r} is given twice, with different values")


def _value(p: CallBuilder, key: str, char: str) -> Steps[tuple[str, Any]]:
    if not char:
        raise Cut
    if char in _STRINGS:
        text = yield from _string(p, give=False)
        return quoted(text), text
    read = (yield from _nested(p, p.limits.depth - 1)) if char in "{[" else (yield from _scalar(p, char))
    return meant(p, key, read)


def _string(p: CallBuilder, *, give: bool) -> Steps[str]:
    if p.buf[p.pos] == "<":
        yield from _no_edge(p)
    text = yield from string_at(p, TYPESCRIPT)
    assert text is not None
    return (yield from string(p, text, give=give))


def _nested(p: CallBuilder, depth: int) -> Steps[Read]:
    """A list or an object."""
    found = all_there(p, ValueReader(TYPESCRIPT, p.buf, p.pos, depth=depth, ended=False))
    if found is None:
        text = yield from skipped(p, Ends(TYPESCRIPT, stop=p.compiled.call_ends.edge.at, stops="<"))
        found = whole(ValueReader(TYPESCRIPT, text, depth=depth))
    return found


def _scalar(p: CallBuilder, char: str) -> Steps[Read]:
    """A number or a word."""
    taken = p.capture()
    while True:
        found = _SCALAR(p.buf, p.pos)
        p.pos = p.pos if found is None else found.end()
        if p.pos < len(p.buf):
            break
        if p.ended:
            p.drop(taken)
            raise Cut
        yield
    text = p.release(taken)
    if not text:
        raise Broken("invalid_value", f"no value can be read at {char!r}")
    if text in TYPESCRIPT.words:
        value = TYPESCRIPT.words[text]
        json = to_json(value)
        return Read(json, value, (Odd((), text),) if json != text and value is not None else ())
    try:
        if text in _NOT_FINITE:
            raise not_finite(text)
        json, number = number_of(text, TYPESCRIPT)
    except BadValue as bad:
        raise Broken(bad.code, bad.message) from None
    if number is not None:
        return Read(json, number, (Odd((), text),) if json != text else ())
    raise Broken("invalid_value", f"{text[:60]!r} is no value; a string needs quotes")


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
            yield from skip(p, Ends(TYPESCRIPT, comment=True))
        except Cut:
            return ""
