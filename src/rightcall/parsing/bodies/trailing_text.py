"""Text behind a call of JSON, before the marker that closes it:  {...}, "dry_run": true}

A bracket that comes too early leaves a part of the call behind its end. Such a call must not run without that part, so
every reader checks what follows before it finishes a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.parsing.markers import FINAL, RUN, Pat, Probe, alt, blanks, literal, seq

if TYPE_CHECKING:
    from rightcall.parsing.buffer import Steps
    from rightcall.parsing.call_builder import CallBuilder

_UNEXPECTED = frozenset(',;()[]{}"')
_CLOSERS = r"(?:[}\])]{1,3}+)?+"
_KEY = Pat(r'"[^"\\\x00-\x1f]{0,128}+"', r'(?:"[^"\\\x00-\x1f]{0,128}+"?+)?+', sure=FINAL)
_COMMA = Pat(",?+", ",?+", sure=RUN)
# Another member of a call that has ended. Surplus brackets may precede it: one of them is the one that came too early.
# The comma may be lost with it.
LOST_MEMBER = Probe(
    seq(blanks(), Pat(_CLOSERS, _CLOSERS, sure=RUN), blanks(), _COMMA, blanks(), _KEY, blanks(), literal(":"))
)
_FENCE = Pat(r"(?:```\w{0,8}+)?+", r"(?:`{1,3}+\w{0,8}+)?+", sure=RUN)
_OBJECT = seq(Pat(r"\(?+", r"\(?+", sure=RUN), literal("{"))
# The arguments continue behind their end: another object, or a member whose first quote was lost with a repaired part.
ANOTHER_OBJECT = Probe(seq(literal(","), blanks(), literal("{")))
HALF_A_KEY = Probe(seq(Pat(r"[\w.$\-]{1,64}+", r"[\w.$\-]{0,64}+", sure=RUN), literal('"'), blanks(), literal(":")))
# Arguments behind a call that ended before them, possibly in a fence.
ARGUMENTS = Probe(seq(blanks(), _FENCE, blanks(), alt(_OBJECT, seq(_KEY, blanks(), literal(":")))))


def find_unexpected(builder: CallBuilder, *, closed: bool, another: Probe | None = None) -> Steps[str]:
    """Return "" if what is behind a call may follow it, else the character there, which is not taken. With `closed` (a
    marker must follow) that is a bracket, comma, semicolon or quotation mark that begins no closing marker, also no
    truncated one; only blanks are taken, and a separator that `another` finds. Without it return "," if another member
    of the call follows, and take nothing. `another`: the probe for the text before another call; `{` may follow then,
    if `closed`."""
    if not closed:
        return "," if (yield from builder.test(LOST_MEMBER)) else ""
    char = builder.char() or (yield from builder.peek())
    if char not in _UNEXPECTED or (another is not None and char == "{"):
        return ""
    if another is not None and (found := (yield from builder.test(another))):
        builder.take_match(found)
        return ""
    close = builder.compiled.call_ends.close
    if close is not None and (
        (yield from builder.test(close)) or (builder.ended and close.is_begun(builder.buf, builder.pos))
    ):
        return ""
    return char
