"""Quotes inside a Python string that should have been escaped:  word='grep 'owl' notes'

The string closed where it could not have. All that is left of the call is looked at: if exactly one of the later quotes
can end the string so that the rest can be read and the arguments fit, that one does, with a receipt.
"""

from __future__ import annotations

import re
from typing import Any

from rightcall.parsing.buffer import Broken, Cut, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.values.escapes import PYTHON as ESCAPES
from rightcall.parsing.values.notation import PYTHON
from rightcall.parsing.values.value_reader import BadValue, Unfinished, ValueReader
from rightcall.tools.checks import fits
from rightcall.types import Repair

_MOST_HELD = 4096
_MOST_READINGS = 32
# Behind a string that is over: strings side by side, an operator, a method, a condition. That is code.
_CODE = re.compile(r"\s*+(?:['\"]|[-+%*/.\[]|(?:if|or|and|in|not|is|for)\b)").match
_QUOTES = {quote: re.compile(rf"(?:[^{quote}\\]|\\.)*+{quote}", re.S).match for quote in "'\""}
_NEXT = re.compile(r"\s*+(?:\)|,\s*+([\w.\-]{1,256}+)\s*+=\s*+)").match
_OVER = re.compile(r"\s*+(?:\Z|\]|\)[\])\s]*+\Z|;|,?\s*+[^\W\d][\w.\-]*+\s*+\()").match

# In a string that was read over its own quotes: an argument behind one of them, and other calls.
_KEYS = {quote: re.compile(rf"{quote}[^\w'\"]*+([^\W\d][\w.\-]*+)\s*+=(?!=)").finditer for quote in "'\""}
_ENDS_WITH_KEY = re.compile(r"(?<![\w.\-])([^\W\d][\w.\-]{0,255}+)\s{0,16}+=\s{0,16}+[\[({]{0,8}+\Z").search
_CALLS = re.compile(r"(?<![\w.\-])([^\W\d][\w.\-]{0,255}+)\s*+\(").finditer
_NEXT_CALL = re.compile(
    r"(?<![\w.\-])[^\W\d][\w.\-]{0,255}+\s*+\(\s*+[^\W\d][\w.\-]*+\s*+=(?!=)"
    r"|\)\s*+[,;]\s*+[^\W\d][\w.\-]{0,255}+\s*+\("
).search


def inner_quotes(p: CallBuilder, quote: str, key: str, before: str, values: dict[str, Any]) -> Steps[str]:
    """The rest of a string whose end was none; `before` is what stands before that quote. Takes its true end."""
    broken = Broken("trailing_content", "a comma or ')' must follow the string; escape the quotes inside it", f"/{key}")
    assert p.raw is not None and p.call is not None
    key_before = _ENDS_WITH_KEY(before)
    if key_before is not None and _is_argument(p, key_before):
        raise broken  # the quote that begins the next argument's string
    if p.policy(p.call.name) == "off" or not before or before.endswith("\\"):
        raise broken  # of two quotes at its beginning one may be one too many, and so may a backslash before it
    # The blanks behind the quote were taken: they are the string's.
    taken = p.captured(p.raw)
    lead = taken[taken.rfind(quote) :]
    end = yield from _held(p, broken)
    rest = p.buf[p.pos : end]
    if _CODE(rest):
        raise broken
    found = [
        size
        for size in _ends(rest, quote)
        if _fits(p, rest[size:], {**values, key: before + ESCAPES.read(lead + rest[: size - 1])}, quote)
    ]
    if len(found) != 1:
        raise broken
    text = lead + rest[: found[0] - 1]
    if _holds_another(p, text, quote) or _begins_another(p, before):
        message = "the string seems to go on over what follows it; escape the quotes inside it, and send the call again"
        raise Broken("ambiguous_end", message, f"/{key}")
    p.pos += found[0]
    receipt = Repair("inner_quotes", "schema", f"/{key}", text[:200], text.replace(quote, "\\" + quote)[:200])
    p.call.repairs += (receipt,)
    return ESCAPES.read(text)


def _holds_another(p: CallBuilder, text: str, quote: str) -> bool:
    """Does the string, read over its own quotes, hold another argument or another call? Then a comma was lost."""
    if any(_is_argument(p, found) for found in _KEYS[quote](text)):
        return True
    names = (found.group(1) for found in _CALLS(text))
    return _NEXT_CALL(text) is not None or any(p.tools is not None and name in p.tools for name in names)


def _begins_another(p: CallBuilder, before: str) -> bool:
    """Does a call begin before the first of its quotes? Then this one was given up, and its string never closed."""
    if any(pat.prefix in before for pat, _ in p.compiled.openers.of_calls):
        return True
    if p.tools is None:
        return _NEXT_CALL(before) is not None
    return any(found.group(1) in p.tools for found in _CALLS(before))


def _is_argument(p: CallBuilder, found: re.Match[str]) -> bool:
    return p.tools is None or p.kind(found.group(1)) is not None


def _held(p: CallBuilder, broken: Broken) -> Steps[int]:
    """Waits for the end of the block, of which nothing is taken; where it is."""
    start = p.capture()
    found = yield from _block_end(p, start)
    end = p.at
    if found is None:
        p.drop(start)
        p.pos = len(p.buf)
        raise Cut
    p.give_back(start)
    if not found:
        raise broken
    return end - p.base


def _block_end(p: CallBuilder, start: int) -> Steps[bool | None]:
    """Goes to the end of the block. False if that is too far away, None if the text ended first."""
    close = p.compiled.call_ends.close
    while True:
        most = min(len(p.buf), p.pos + _MOST_HELD + 1)
        sign: object = False
        while close is not None and p.pos < most and not (sign := close.at(p.buf, p.pos, p.ended)):
            if sign is None:
                break
            p.pos += 1
        if sign:
            return p.at - start <= _MOST_HELD
        p.pos = p.pos if close is not None else len(p.buf)
        if p.at - start > _MOST_HELD:
            return False
        if p.ended:
            return None if close is not None and not p.compiled.bare_calls.first_characters else True
        yield


def _ends(rest: str, quote: str) -> list[int]:
    """Behind which quotes the string may be over."""
    found: list[int] = []
    pos = 0
    while len(found) <= _MOST_READINGS and (run := _QUOTES[quote](rest, pos)) is not None:
        pos = run.end()
        if _NEXT(rest, pos):
            found.append(pos)
    return found if len(found) <= _MOST_READINGS else []


def _fits(p: CallBuilder, rest: str, values: dict[str, Any], quote: str) -> bool:
    """Can the rest of the call be read, and does it make arguments that the tool takes?"""
    arguments = _arguments(p, rest, values)
    assert p.call is not None
    tool = p.tools.get(p.call.name) if p.tools is not None else None
    if arguments is None or tool is None:
        return arguments is not None
    return arguments.keys() <= p.call.kinds.keys() and fits(tool, arguments)


def _arguments(p: CallBuilder, rest: str, values: dict[str, Any]) -> dict[str, Any] | None:
    pos, found = 0, dict(values)
    while (sign := _NEXT(rest, pos)) is not None and sign.group(1):
        if sign.group(1) in found:
            return None
        read = _value(p, rest, sign.end())
        if read is None:
            return None
        found[sign.group(1)], pos = read
    return found if sign is not None and _OVER(rest, sign.end()) else None


def _value(p: CallBuilder, rest: str, pos: int) -> tuple[Any, int] | None:
    reader = ValueReader(PYTHON, rest, pos, depth=p.limits.depth)
    try:
        value = reader.value()
    except (BadValue, Unfinished):
        return None
    return value, reader.pos
