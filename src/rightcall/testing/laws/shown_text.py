"""Where a text certainly does not show what follows. Judged apart from the core, and only where there is no doubt."""

from __future__ import annotations

import re
from itertools import pairwise

from rightcall.types import Span

_BLANK_LINE = re.compile(r"\n[ \t\r]*+\n")
_QUOTES = re.compile("[\"'`\u00ab\u00bb\u2018-\u201f\u2039\u203a\u300c-\u300f]")
# What a quotation shows goes on over empty lines, up to its close.
_QUOTED_OPENER = re.compile(_QUOTES.pattern + r"[^\[<{]*+[\[<{]").search
_CODE = re.compile(
    r"`|~~~|<pre|<code|<textarea|<!--|<!\[CDATA|^(?:@@ |diff --git|---|\+\+\+)|response|result", re.M | re.I
)
_ITEM = r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+"  # what a list item begins with, and one in it
_LINE = re.compile(rf"\s*+{_ITEM}(?:>|\d++[\t|:.]|\d{{2,4}}-|\[|[A-Za-z ]{{1,20}}+:)|    |\t")


def is_plain(text: str, at: int, spans: tuple[Span, ...]) -> bool:
    """Is the place certainly outside code, quotes and everything else that shows? What stands in calls
    and in other reasoning does not count."""
    before = _without_calls(text[:at], _elsewhere(spans, at))
    *others, paragraph = _BLANK_LINE.split(before)
    if _CODE.search(before) or any(map(_QUOTED_OPENER, others)):
        return False
    # What stands right behind a marker or a call begins a message, and so a line.
    begun = max([span.end for span in spans if span.kind in ("marker", "call") and span.end <= at], default=0)
    behind = text[begun:at]
    lines = (before.rpartition("\n")[2], behind.rpartition("\n")[2])
    return not _QUOTES.search(paragraph) and not any(map(_LINE.match, lines))


def _elsewhere(spans: tuple[Span, ...], at: int) -> list[Span]:
    """The spans up to a place, but for those of the thought that it stands in, which markers may interrupt."""
    before = [span for span in spans if span.start <= at]
    if before and before[-1].kind == "reasoning":
        while before and before[-1].kind in ("reasoning", "marker"):
            before.pop()
    return before


def _without_calls(before: str, spans: list[Span]) -> str:
    edges = [edge for span in spans if span.kind in ("call", "reasoning") for edge in (span.start, span.end)]
    return " ".join([before[a:b] for a, b in pairwise([0, *edges, len(before)])][::2])
