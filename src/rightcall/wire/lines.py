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
from rightcall.wire.buffer import Steps

if TYPE_CHECKING:
    from rightcall.wire.machine import Machine


def line(m: Machine) -> Steps[int]:
    """Where a call may begin on the line that begins here; -1 for none."""
    p, output = m.p, m.output
    at_start = p.at == 0
    taken = p.capture()
    char = yield from p.peek()
    output.hold_blanks(p.release(taken), p.at)
    output.at_start = False
    if not char or output.tag or not p.tools or m.refused > p.limits.calls:
        return -1
    if char in "`~":
        return (yield from _fence(m, char, at_start))
    found = yield from p.test(LINE)
    return p.pos if found and _opens(m, p.pos, found.group()[-1]) else -1


def _fence(m: Machine, char: str, at_start: bool) -> Steps[int]:
    """A code fence with a call behind it, or the end of one; or one pair of backticks around the whole reply."""
    p = m.p
    if p.dropped:
        while len(p.buf) - p.pos < len(p.dropped) and not p.ended:
            yield
        if p.buf.startswith(p.dropped, p.pos):
            m.marker(p.pos + len(p.dropped))
            p.dropped, m.output.at_start = "", True
        return -1
    found = yield from p.test(FENCED)
    if found and not m.output.shown.open_fence:
        inside = LINE.whole(p.buf, found.end())
        p.dropped = char * 3
        if inside and _opens(m, found.end(), inside.group()[-1]):
            return found.end()
        p.dropped = ""
        return -1
    if at_start and (found := (yield from p.test(WRAPPED))):
        return p.pos if _opens(m, p.pos, "{") else -1
    return -1


def _opens(m: Machine, pos: int, given: str) -> bool:
    """Does a call that may run begin here? `given` is the first character of its arguments."""
    p = m.p
    assert p.tools is not None
    label, name = call_parts(p.buf, pos)
    known, shown = name in p.tools, p.in_fence
    if label and label not in m.labels:
        if known and not shown:
            m.refused += 1
            p.problem(*labelled(label, name))
        return False
    if known and given not in "{)" and not shown:
        m.refused += 1
        p.problem("arguments_not_object", f"{name} must be called with one object literal: {name}({{ key: value }})")
    elif not known and given == "{" and not shown:
        m.refused += 1
        p.problem("unknown_tool", f"there is no tool {name[:80]!r}; {listing(p.tools)}")
    return known and given in "{)"
