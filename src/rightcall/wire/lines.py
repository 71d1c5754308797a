"""Outside all blocks of a protocol: a call counts only at the beginning of a line, and only of a declared tool.

    edit({ path: "a.py" })         runs, with a note
    Hint: edit({ path: "a.py" })   refused
    nope({ path: "a.py" })         no such tool

Models put calls into code fences too. There nothing is refused, and a call runs only if its arguments fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.check import listing
from rightcall.wire.bodies.ts_call import FENCED, LINE, WRAPPED, call_parts, labelled
from rightcall.wire.prose import Steps

if TYPE_CHECKING:
    from rightcall.wire.reading import Reading


def line(p: Reading) -> Steps[int]:
    """Where a call may begin on the line that begins here; -1 for none."""
    at_start = p.base + p.pos == 0
    taken = p.capture()
    char = yield from p.peek()
    p.hold_blanks(p.release(taken))
    p.may_open = False
    if not char or p.tag or not p.tools or p.refused > p.limits.calls:
        return -1
    if char in "`~":
        return (yield from _fence(p, char, at_start))
    found = yield from p.test(LINE)
    return p.pos if found and _opens(p, p.pos, found.group()[-1]) else -1


def _fence(p: Reading, char: str, at_start: bool) -> Steps[int]:
    """A code fence with a call behind it, or the end of one; or one pair of backticks around the whole reply."""
    if p.dropped:
        while len(p.buf) - p.pos < len(p.dropped) and not p.ended:
            yield
        if p.buf.startswith(p.dropped, p.pos):
            p.take_marker(p.pos + len(p.dropped))
            p.dropped, p.may_open = "", True
        return -1
    found = yield from p.test(FENCED)
    if found and not p.fences.open:
        inside = LINE.whole(p.buf, found.end())
        p.dropped = char * 3
        if inside and _opens(p, found.end(), inside.group()[-1]):
            return found.end()
        p.dropped = ""
        return -1
    if at_start and (found := (yield from p.test(WRAPPED))):
        return p.pos if _opens(p, p.pos, "{") else -1
    return -1


def _opens(p: Reading, pos: int, given: str) -> bool:
    """Does a call that may run begin here? `given` is the first character of its arguments."""
    assert p.tools is not None
    label, name = call_parts(p.buf, pos)
    known, shown = name in p.tools, bool(p.fences.open or p.dropped)
    if label and label not in p.labels:
        if known and not shown:
            p.refused += 1
            p.problem(*labelled(label, name))
        return False
    if known and given not in "{)" and not shown:
        p.refused += 1
        p.problem("arguments_not_object", f"{name} must be called with one object literal: {name}({{ key: value }})")
    elif not known and given == "{" and not shown:
        p.refused += 1
        p.problem("unknown_tool", f"there is no tool {name[:80]!r}; {listing(p.tools)}")
    return known and given in "{)"
