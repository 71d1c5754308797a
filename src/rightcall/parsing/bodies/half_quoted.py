"""A text whose first quote was left out, where a format has quotes of its own:  k:some words<|"|>,n:1

The quote behind it tells, if what follows can follow a value and no other argument began in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from rightcall.json_pointer import step
from rightcall.types import Repair

if TYPE_CHECKING:
    from rightcall.parsing.buffer import Steps
    from rightcall.parsing.call_builder import CallBuilder
    from rightcall.parsing.markers import Probe

_RUN = re.compile(r"[^<{}\[\]]*+").match
_NEXT = re.compile(r",[ \t\r\n]*+[^\s:{}\[\],<>\"']++[ \t\r\n]*+:").search
_FAR = 512  # so long is a key with the blanks beside it at most
_OPENS = (",", ":")  # behind these a quote begins a text


def half_quoted(p: CallBuilder, follows: Probe, quote: str) -> Steps[str]:
    """The text that begins here and ends before a quote that closes it, not taken; "" where none does, or where it
    begins with a piece of the quote. `follows` is that quote with what may stand behind it."""
    size = 0
    while True:
        end = _RUN(p.buf, p.pos + size).end()  # type: ignore[union-attr]
        begun = max(0, size - _FAR)
        size = end - p.pos
        if _NEXT(p.buf, p.pos + begun, end):
            return ""
        if end < len(p.buf) or p.ended:
            break
        yield
    while True:
        closes = follows.at(p.buf, p.pos + size, p.ended)
        if closes is not None:
            text = p.buf[p.pos : p.pos + size]
            return text if closes and _is_said(text, quote) else ""
        yield


def _is_said(text: str, quote: str) -> bool:
    """Is it a text, that begins neither with a piece of the quote nor with the quote whose first sign is another?"""
    torn = text.startswith(tuple([quote[at:] for at in range(1, len(quote) - 1)])) or text.startswith(quote[1:], 1)
    return bool(text.strip()) and not torn and not text.rstrip().endswith(_OPENS)


def take_half_quoted(p: CallBuilder, key: str, text: str, quote: str) -> str:
    """Takes such a text and the quote behind it, with a receipt."""
    if p.call is not None:
        p.call.repairs += (Repair("ordinary_quotes", "exact", step(key), text + quote, quote + text + quote),)
    p.pos += len(text) + len(quote)
    return text


def edge_of_text(quote: str) -> Callable[[str], re.Match[str] | None]:
    """A search for a quote beside structure: one in a value may be where another text began or ended."""
    mark, blank = re.escape(quote), r"[ \t\r\n]{0,8}+"
    return re.compile(rf"[,:\[{{]{blank}{mark}|{mark}{blank}[,}}\]]").search
