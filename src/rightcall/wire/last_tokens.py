"""The tokens with which any model may end a turn, as patterns: they count only where nothing but such tokens follows.

`<` is frequent in code and HTML, so what does not begin one of them must be passed over at once: the tokens are a tree.
"""

from __future__ import annotations

import re

from rightcall.formats.turn_ends import LAST_TOKENS
from rightcall.wire.markers import END, MAX_BLANKS, Pat

_MOST = 2  # tokens behind the one that ends the turn
_BLANKS = f"[ \\t\\r\\n]{{0,{MAX_BLANKS}}}+"


def last_tokens(own: str) -> list[Pat]:
    """The patterns of those that are no part of these markers, one for each way to begin."""
    foreign = [str(token) for token in LAST_TOKENS if token not in own]
    return [_pattern(start, foreign) for start in dict.fromkeys(token[:2] for token in foreign)]


def _pattern(start: str, foreign: list[str]) -> Pat:
    rests = {token[2:] for token in foreign if token.startswith(start)}
    whole, begun = _tree(rests), _tree(rests, begun=True)
    more = f"(?:<{_tree({token[1:] for token in LAST_TOKENS})}{_BLANKS}){{0,{_MOST}}}+"
    next_begun = f"(?:<{_tree({token[1:] for token in LAST_TOKENS}, begun=True)})?+"
    second = re.escape(start[1:])
    tail = (
        f"{second}{whole}(?={_BLANKS}{more}{END.whole})",
        f"(?:{second}(?:{whole}{_BLANKS}{more}{next_begun}|{begun})|)",
    )
    return Pat(f"<{tail[0]}", f"(?:<{tail[1]}|)", "<", tail, start, opening=start)


def _tree(texts: set[str], *, begun: bool = False) -> str:
    """An expression for any of these texts; `begun`: or the beginning of one at the end of what has arrived."""
    heads = sorted({text[0] for text in texts if text})
    branches = [re.escape(head) + _tree({t[1:] for t in texts if t[:1] == head}, begun=begun) for head in heads]
    branches += [r"\Z"] if begun and "" not in texts else []
    branches += [""] if "" in texts else []
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
