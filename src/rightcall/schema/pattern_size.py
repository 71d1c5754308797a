"""What patterns cost once they are compiled: told from their text, because compiling them is what costs.

    pattern_size(r"^[a-z]{2,40}$")   ->   about 7,000 bytes

An estimate, and rather too high: a class of Unicode letters is a small automaton, and a counted repeat so many copies
of what it repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from rightcall.schema.refusals import Refused
from rightcall.schema.tool_limits import MAX_PATTERNS, REGEX_SIZE

_EACH = 4_000  # what every pattern costs, however short
_PIECE = 60
_WIDE = 2_000  # any character, or any but some: all of UTF-8
_UNICODE = 50_000  # a class of Unicode, such as all letters
_PIECES = re.compile(
    r"""(?P<unicode>\\[pP](?:\{[^}]*+\})?+) | (?P<wide>\\[SWD]|\.|\[\^) | (?P<piece>\\.|[^\\(){}.]) | (?P<open>\()
    | (?P<close>\)) | \{(?:[0-9]*+,)?+(?P<most>[0-9]++)\} | \{(?P<least>[0-9]++),\} | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


def check_patterns(patterns: Iterable[str]) -> int:
    """What the patterns of one tool cost together. Raises `Refused` if that is too much."""
    size = sum(map(pattern_size, patterns))
    if size > MAX_PATTERNS:
        cause = f"its patterns compile to about {size / 1e6:.1f} MB, and {MAX_PATTERNS / 1e6:g} MB is the most"
        raise Refused("", cause, CURE)
    return size


CURE = "use fewer or shorter patterns, without large counts and classes of Unicode"


@lru_cache(4096)
def pattern_size(pattern: str) -> int:
    """At most what one may have: a pattern beyond that is not compiled at all."""
    opened: list[int] = []  # the cost of the groups around, up to where each begins
    here, last = 0, 0  # of this group, and of the piece before
    for piece in _PIECES.finditer(pattern):
        kind = piece.lastgroup
        if kind == "open":
            opened.append(here)
            here = last = 0
        elif kind == "close" and opened:
            here, last = opened.pop() + here, here
        elif kind in ("most", "least"):
            before, last = last, min(last * int(piece[kind][:6]), REGEX_SIZE)
            here += last - before
        else:
            last = _UNICODE if kind == "unicode" else _WIDE if kind == "wide" else _PIECE
            here += last
    return min(_EACH + max(0, sum(opened) + here), REGEX_SIZE)
