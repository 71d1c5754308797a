"""The tokens with which any model may end a turn, as patterns: they count only where nothing but such tokens follows.

`<` is frequent in code and HTML, so what does not begin one of them must be passed over at once: the tokens are a tree.
"""

from __future__ import annotations

import re
from collections.abc import Set
from functools import cache

from rightcall.formats.turn_ends import LAST_TOKENS
from rightcall.parsing.markers import END, MAX_BLANKS, Pat, tree

_MOST = 2  # tokens behind the one that ends the turn
_BLANKS = f"[ \\t\\r\\n]{{0,{MAX_BLANKS}}}+"


def last_tokens(own: str) -> list[Pat]:
    """The patterns of those that are no part of these markers, one for each way to begin."""
    foreign = [str(token) for token in LAST_TOKENS if token not in own]
    starts = dict.fromkeys(token[:2] for token in foreign)
    return [_pattern(start, frozenset(token[2:] for token in foreign if token.startswith(start))) for start in starts]


@cache  # many formats have the same
def _pattern(start: str, rests: frozenset[str]) -> Pat:
    whole, begun = tree(rests), tree(rests, begun=True)
    more, next_begun = _further_tokens()
    second = re.escape(start[1:])
    tail = (
        f"{second}{whole}(?={_BLANKS}{more}{END.whole})",
        f"(?:{second}(?:{whole}{_BLANKS}{more}{next_begun}|{begun}|\\Z)|)",
    )
    return Pat(f"<{tail[0]}", f"(?:<{tail[1]}|)", "<", tail, start, opening=start + _shared(rests))


@cache
def _further_tokens() -> tuple[str, str]:
    """Expressions for whole tokens behind the one that ends the turn, and for one that has only begun."""
    behind = {token[1:] for token in LAST_TOKENS}
    more = f"(?:<{tree(behind)}{_BLANKS}){{0,{_MOST}}}+"
    return more, f"(?:<(?:{tree(behind, begun=True)}|\\Z))?+"


def _shared(texts: Set[str]) -> str:
    """What all of them begin with."""
    first, last = min(texts), max(texts)
    differ = (i for i, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return first[: next(differ, len(first))]
