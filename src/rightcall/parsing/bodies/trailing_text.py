"""What stands behind a call of JSON before the marker that closes it:  {...}, "dry_run": true}

A bracket closed too early leaves a part of the call behind it. Such a call must not run without that part, so one looks
before it is settled.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rightcall.parsing.markers import FINAL, RUN, Pat, Probe, alt, blanks, literal, seq

if TYPE_CHECKING:
    from rightcall.parsing.buffer import Steps
    from rightcall.parsing.call_builder import CallBuilder

_ODD = frozenset(',;()[]{}"')
_B = r"[ \t\r\n]*+"
_CLOSERS = r"(?:[}\])]{1,3}+)?+"
_KEY = Pat(r'"[^"\\\x00-\x1f]{0,128}+"', r'(?:"[^"\\\x00-\x1f]{0,128}+"?+)?+', sure=FINAL)
_COMMA = Pat(",?+", ",?+", sure=RUN)
# Brackets too many may stand before it: one of them was the one that came too early. The comma may be lost with it.
_LOST_MEMBER = Probe(
    seq(blanks(), Pat(_CLOSERS, _CLOSERS, sure=RUN), blanks(), _COMMA, blanks(), _KEY, blanks(), literal(":"))
)
_MAY_GO_ON = re.compile(rf'{_B}{_CLOSERS}{_B}(?:(,?{_B}")|,?{_B}\Z)').match
# Arguments that stand behind a call which ended before them, in a fence maybe.
_FENCE = Pat(r"(?:```\w{0,8}+)?+", r"(?:`{1,3}+\w{0,8}+)?+", sure=RUN)
_OBJECT = seq(Pat(r"\(?+", r"\(?+", sure=RUN), literal("{"))
# Arguments go on behind their own end: another object, or a member whose first quote was lost with what was mended.
ANOTHER_OBJECT = Probe(seq(literal(","), blanks(), literal("{")))
HALF_A_KEY = Probe(seq(Pat(r"[\w.$\-]{1,64}+", r"[\w.$\-]{0,64}+", sure=RUN), literal('"'), blanks(), literal(":")))
ARGUMENTS = Probe(seq(blanks(), _FENCE, blanks(), alt(_OBJECT, seq(_KEY, blanks(), literal(":")))))


def what_stands_behind(p: CallBuilder, *, closed: bool, another: Probe | None = None) -> Steps[str]:
    """The character behind a call that cannot stand there, or "". `closed` says that a marker must follow. Where no
    marker closes a call anything may follow it, but never another member. What stands between it and `another` is
    taken."""
    if not closed:
        return "," if (yield from is_member_lost(p)) else ""
    char = p.char() or (yield from p.peek())
    if char not in _ODD or (another is not None and char == "{"):
        return ""
    if another is not None and (found := (yield from p.test(another))):
        p.take_match(found)
        return ""
    return "" if (yield from _is_closed(p)) else char


def _is_closed(p: CallBuilder) -> Steps[bool]:
    """Does the marker that closes the call stand here, if only its beginning where the text ends?"""
    close = p.compiled.call_ends.close
    if close is None:
        return False
    return bool((yield from p.test(close))) or (p.ended and close.is_begun(p.buf, p.pos))


def is_member_lost(p: CallBuilder) -> Steps[bool]:
    """Does another member of the call that is over follow?"""
    return (yield from p.test(_LOST_MEMBER)) is not None


def goes_on(text: str, pos: int, ended: bool) -> bool | None:
    """Does another member follow here, where a call is over? None where more text is needed to tell."""
    found = _MAY_GO_ON(text, pos)
    if found is None or found.group(1) is not None:
        return found is not None
    return False if ended else None
