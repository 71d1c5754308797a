"""Is what looks like a comment one, and nothing else? Its line break, or a quote before it, may have been lost:

    {"note": "x", // the note "dry_run": true}        {"note": ""// all", "dry_run": true}

Whoever skips these skips an argument.
"""

from __future__ import annotations

import re

_WORDS = r"(?i:true|false|null|none|undefined)\b"
# A key in quotes, or one without before something that can only be a value.
_member = re.compile(rf"[\"'`”’][ \t]*+(?::|=)|\w[ \t]*+(?::(?!//)|=>?)[ \t]*+(?:[\"'`“‘\[{{+\-.\d]|{_WORDS})").search
_BRACKETS = frozenset("{}[]()")
_QUOTES = frozenset("\"'`“”‘’")
_STOPS = (",", ":", "=", ";", "{", "[", "(")


def may_hold_more(text: str, comment: re.Match[str], *, in_list: bool) -> bool:
    """May a part of the value stand in it?"""
    found, start = comment.group().rstrip(), comment.start()
    if text[max(0, start - 1) : start] in _QUOTES and not _QUOTES.isdisjoint(found):
        return True  # that quote may be one too many, and this the string
    if found.startswith("/*"):
        return False  # it has an end of its own
    if found.endswith(_STOPS) or found.count('"') % 2 == 1 or _member(found) is not None:
        return True
    return in_list and _has_own_line(text, start)


def _has_own_line(text: str, start: int) -> bool:
    """`#urgent` or `//host/share` on a line of its own may be an item of a list that lost its quotes."""
    line = text.rfind("\n", max(0, start - 256), start) + 1
    return bool(line) and not text[line:start].strip()


def holds_bracket(comment: str) -> bool:
    """May the bracket that is missing elsewhere stand in it?"""
    return not comment.startswith("/*") and not _BRACKETS.isdisjoint(comment)
