"""The tokens with which any model may end a turn, as patterns: they count only where nothing but such tokens follows.

`<` is frequent in code and HTML, so what does not begin one of them must be passed over at once: the tokens are a tree.
"""

from __future__ import annotations

import re

from rightcall.formats.turn_ends import LAST_TOKENS
from rightcall.parsing.markers import END, MAX_BLANKS, Pat, tree

_MOST = 2  # tokens behind the one that ends the turn
_BLANKS = f"[ \\t\\r\\n]{{0,{MAX_BLANKS}}}+"


def last_tokens(own: str) -> list[Pat]:
    """The patterns of those that are no part of these markers, one for each way to begin."""
    foreign = [str(token) for token in LAST_TOKENS if token not in own]
    return [_pattern(start, foreign) for start in dict.fromkeys(token[:2] for token in foreign)]


def _pattern(start: str, foreign: list[str]) -> Pat:
    rests = {token[2:] for token in foreign if token.startswith(start)}
    behind = {token[1:] for token in LAST_TOKENS}
    whole, begun = tree(rests), tree(rests, begun=True)
    more = f"(?:<{tree(behind)}{_BLANKS}){{0,{_MOST}}}+"
    next_begun = f"(?:<(?:{tree(behind, begun=True)}|\\Z))?+"
    second = re.escape(start[1:])
    tail = (
        f"{second}{whole}(?={_BLANKS}{more}{END.whole})",
        f"(?:{second}(?:{whole}{_BLANKS}{more}{next_begun}|{begun}|\\Z)|)",
    )
    return Pat(f"<{tail[0]}", f"(?:<{tail[1]}|)", "<", tail, start, opening=start + _shared(rests))


def _shared(texts: set[str]) -> str:
    """What all of them begin with."""
    first, last = min(texts), max(texts)
    differ = (i for i, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return first[: next(differ, len(first))]
