"""Outside all blocks of a protocol: a call counts only at the beginning of a line, and only of a declared tool.

    edit({ path: "a.py" })         runs, with a note
    Hint: edit({ path: "a.py" })   refused
    nope({ path: "a.py" })         no such tool

What is only shown is neither run nor refused. A reply may be one call in backticks, and nothing else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rightcall.parsing.bodies.ts_call import LINE, WRAPPED, call_parts, labelled
from rightcall.parsing.buffer import Steps
from rightcall.parsing.shown import BODY
from rightcall.parsing.shown.line_starts import RECORD
from rightcall.tools.checks import listing

if TYPE_CHECKING:
    from rightcall.parsing.machine import Machine


# Lines in which neither a call nor a marker can begin: taken at once.
PLAIN_LINES = re.compile(r"(?:[^(<`~\n]*+\n)++").match


def line(m: Machine) -> Steps[int]:
    """Where a call may begin on the line that begins here; -1 for none."""
    p, output = m.p, m.output
    at_start = p.at == 0
    char = p.buf[p.pos : p.pos + 1]
    if char <= " " or output.fresh:
        taken = p.capture()
        char = yield from p.peek()
        output.hold_blanks(p.release(taken), p.at)
    output.at_start = False
    if not char or output.tag or not p.tools or m.refused > p.limits.calls:
        return -1
    if char == "`":
        wrapped = at_start and (yield from p.test(WRAPPED))
        return p.pos if wrapped and _opens(m, p.pos, "{") else -1
    found = LINE.at(p.buf, p.pos, p.ended)
    if found is None:
        found = yield from p.test(LINE)
    # Behind text, a label that is a role as well begins a turn of a transcript.
    if not found or (not output.is_silent and RECORD(p.buf, p.pos)) or output.shows(BODY):
        return -1
    return p.pos if _opens(m, p.pos, found.group()[-1]) else -1


def _opens(m: Machine, pos: int, given: str) -> bool:
    """Does a call that may run begin here? `given` is the first character of its arguments."""
    p = m.p
    assert p.tools is not None
    label, name = call_parts(p.buf, pos)
    known = name in p.tools
    if label and label not in m.compiled.readers[0].labels:
        if known:
            m.refused += 1
            p.problem(*labelled(label, name))
        return False
    if known and given not in "{)":
        m.refused += 1
        p.problem("arguments_not_object", f"{name} must be called with one object literal: {name}({{ key: value }})")
    elif not known and given == "{":
        m.refused += 1
        p.problem("unknown_tool", f"there is no tool {name[:80]!r}; {listing(p.tools)}")
    return known and given in "{)"
