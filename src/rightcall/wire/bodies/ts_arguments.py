"""What stands between the parentheses of a TypeScript call, as it arrives.

An argument that is declared as plain text goes out while it is being written; any other waits until it is whole. Each
value is tried at once first; if it has not all arrived, its end is found by brackets and strings alone, and then it is
read as a whole: `ts_values` is the only place that knows what a value means.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring as quoted
from typing import Any

from rightcall.wire.bodies.ts_strings import HEREDOC, TsString
from rightcall.wire.bodies.ts_values import SCALAR, WORD, BadValue, TsValues, Unfinished, Value, string_of
from rightcall.wire.engine import Engine
from rightcall.wire.interrupts import Broken, Cut, too_deep
from rightcall.wire.markers import Pat, Probe, seq
from rightcall.wire.prose import Steps

_HEREDOC = Probe(
    seq(
        Pat(
            r"['\"]?<<['\"]?[A-Za-z0-9_]{1,64}+['\"]?[ \t]{0,16}+",
            r"['\"]?(?:<(?:<['\"]?[A-Za-z0-9_]{0,64}+['\"]?[ \t]{0,16}+)?)?",
        ),
        Pat(r"\r?\n", r"\r?"),
    )
)
_LOOSE = re.compile(r"[^'\"`<{}\[\]()/]*+").match
_CLOSERS = {"{": "}", "[": "]", "(": ")"}
_OPEN_CODE = {")": "unclosed_paren", "]": "unterminated_list", "}": "unterminated_object"}
_TO_LINE_END = re.compile(r"[^\n]*+").match
_TO_STAR = re.compile(r"[^*]*+").match


def arguments(p: Engine) -> Steps[dict[str, Any]]:
    """What stands between the parentheses of a call that has begun, passed on as it arrives."""
    char = yield from _space(p)
    values: dict[str, Any] = {}
    if char == "{":
        p.pos += 1
        values = yield from _members(p)
        if values:
            p.give("}")
    elif char != ")":
        raise _no_object(char)
    yield from _close(p)
    return values


def held(p: Engine) -> Steps[tuple[str, dict[str, Any]]]:
    """The same, all at once."""
    char = yield from _space(p)
    json = ""
    value: dict[str, Any] = {}
    if char == "{":
        json, value = yield from _value(p, 1)
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


def _close(p: Engine) -> Steps[None]:
    char = yield from _space(p)
    if char == ",":
        p.pos += 1
        char = yield from _space(p)
    if char != ")":
        raise Broken("unclosed_paren", f"')' must follow the arguments, not {char!r}") if char else Cut
    p.pos += 1


def _members(p: Engine) -> Steps[dict[str, Any]]:
    values: dict[str, Any] = {}
    while True:
        char = yield from _space(p)
        if char == "}":
            p.pos += 1
            return values
        key = yield from _key(p, char)
        if (char := (yield from _space(p))) != ":":
            raise Broken("missing_colon", f"the key {key[:60]!r} needs ':' and a value") if char else Cut
        p.pos += 1
        prefix = (", " if values else "{") + quoted(key) + ": "
        values[key] = yield from _member(p, key, prefix)
        char = yield from _space(p)
        if char == ",":
            p.pos += 1
        elif char != "}":
            raise Broken("unterminated_object", f"a comma or '}}' must follow a value, not {char!r}") if char else Cut


def _key(p: Engine, char: str) -> Steps[str]:
    if not char:
        raise Cut
    if char in "'\"`":
        p.pos += 1
        pieces: list[str] = []
        yield from _take(p, string_of(char, None), pieces)
        return "".join(pieces)
    while True:
        found = WORD(p.buf, p.pos)
        if found is None:
            raise Broken("invalid_argument_name", f"a key must be a name or a string, not {char!r}")
        if found.end() < len(p.buf):
            p.pos = found.end()
            return found.group()
        if p.ended:
            raise Cut
        yield


def _member(p: Engine, key: str, prefix: str) -> Steps[Any]:
    char = yield from _space(p)
    found = _all_there(p, 2)
    if found is None and char and char in "'\"`<" and p.kind(key) == "plain":
        p.give(prefix + '"')
        text = yield from _string(p, char, give=True)
        p.give('"')
        return text
    if found is None:
        found = yield from _slowly(p, 2)
    p.give(prefix + found[0])
    return found[1]


def _value(p: Engine, level: int) -> Steps[Value]:
    found = _all_there(p, level)
    return found if found is not None else (yield from _slowly(p, level))


def _all_there(p: Engine, level: int) -> Value | None:
    """The value, if all of it has arrived and nothing is wrong with it."""
    values = TsValues(p.buf, p.pos, p.limits.depth, ended=False)
    try:
        found = values.value(level)
    except (Unfinished, BadValue, RecursionError):
        return None
    p.pos = values.pos
    return found


def _slowly(p: Engine, level: int) -> Steps[Value]:
    """The value, its end found by brackets and strings."""
    taken = p.capture()
    try:
        char = yield from _space(p)
        if not char:
            raise Cut
        if char in "{[":
            yield from _nested(p)
        elif char in "'\"`<":
            yield from _string(p, char, give=False)
        else:
            yield from _scalar(p)
    except (Broken, Cut):
        p.drop(taken)
        raise
    text = p.release(taken)
    values = TsValues(text, 0, p.limits.depth, ended=True)
    try:
        found = values.value(level)
    except BadValue as bad:
        raise Broken(bad.code, bad.message) from None
    except RecursionError:
        raise too_deep(p.limits.depth) from None
    except Unfinished:
        raise Broken("invalid_value", f"no value can be read at {text[:40] or char!r}") from None
    if values.pos != len(text):
        raise Broken("invalid_value", f"no value can be read at {text[values.pos :][:40]!r}")
    return found


def _scalar(p: Engine) -> Steps[None]:
    while True:
        p.pos = SCALAR(p.buf, p.pos).end()  # type: ignore[union-attr]
        if p.pos < len(p.buf):
            return
        if p.ended:
            raise Cut
        yield


def _nested(p: Engine) -> Steps[None]:
    """Takes a list or an object, by its brackets."""
    stack: list[str] = []
    while True:
        p.pos = _LOOSE(p.buf, p.pos).end()  # type: ignore[union-attr]
        if p.pos == len(p.buf):
            if p.ended:
                raise Cut
            yield
            continue
        char = p.buf[p.pos]
        if char in _CLOSERS:
            stack.append(_CLOSERS[char])
            p.pos += 1
        elif char == stack[-1]:
            stack.pop()
            p.pos += 1
            if not stack:
                return
        elif char in "'\"`":
            yield from _string(p, char, give=False)
        elif char == "/":
            yield from _comment(p)
        elif char == "<" and (yield from p.test(_HEREDOC)):
            yield from _string(p, char, give=False)
        elif char == "<":
            yield from _no_close(p, stack[-1])
            p.pos += 1
        else:
            raise Broken(_OPEN_CODE[stack[-1]], f"{char!r} closes nothing that is open here")


def _no_close(p: Engine, closer: str) -> Steps[None]:
    close = p.compiled.call_close
    if close is not None and (yield from p.test(close)):
        raise Broken(_OPEN_CODE[closer], f"{closer!r} is missing before the end of the call")


# -- strings, white space ----------------------------------------------------------------------------------------------


def _string(p: Engine, char: str, *, give: bool) -> Steps[str]:
    """A string of any kind. `give` passes it on while it arrives."""
    heredoc = None
    if char != "`" and (yield from p.test(_HEREDOC)):
        heredoc = HEREDOC.match(p.buf, p.pos)
    if heredoc is None and char == "<":
        yield from _no_close(p, "}")
        raise Broken("invalid_heredoc", "a heredoc is <<TAG, a line break, the text, and TAG at a line's beginning")
    p.pos = p.pos + 1 if heredoc is None else heredoc.end()
    pieces: list[str] = []
    yield from _take(p, string_of(char, heredoc), pieces, give=give)
    if heredoc is not None and heredoc["quote"]:
        while p.pos == len(p.buf) and not p.ended:
            yield
        p.pos += p.buf.startswith(heredoc["quote"], p.pos)
    return "".join(pieces)


def _take(p: Engine, string: TsString, pieces: list[str], *, give: bool = False) -> Steps[None]:
    while True:
        p.pos, piece, closed = string.take(p.buf, p.pos, p.ended)
        if piece:
            pieces.append(piece)
            if give:
                p.give(quoted(piece)[1:-1])
        if closed:
            return
        if p.ended:
            p.pos = len(p.buf)
            raise Cut
        yield


def _space(p: Engine) -> Steps[str]:
    """The next character that is neither white space nor a comment's, "" at the end of the text."""
    while True:
        char = p.char() or (yield from p.peek())
        if char != "/":
            return char
        before = p.base + p.pos
        yield from _comment(p)
        if p.base + p.pos == before + 1:
            raise Broken("invalid_value", "no value can be read at '/'")


def _comment(p: Engine) -> Steps[None]:
    """Takes a comment, or the one slash that begins none."""
    while len(p.buf) - p.pos < 2 and not p.ended:
        yield
    kind = p.buf[p.pos + 1 : p.pos + 2]
    if kind not in ("/", "*"):
        p.pos += 1
        return
    p.pos += 2
    while True:
        p.pos = (_TO_LINE_END if kind == "/" else _TO_STAR)(p.buf, p.pos).end()  # type: ignore[union-attr]
        if p.pos < len(p.buf) and (kind == "/" or p.buf.startswith("*/", p.pos)):
            p.pos += len("*/") if kind == "*" else 0
            return
        if kind == "*" and p.pos < len(p.buf) - 1:
            p.pos += 1
        elif p.ended:
            p.pos = len(p.buf)
            return
        else:
            yield
