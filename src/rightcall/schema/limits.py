"""Limits of tool definitions: how large a tool may be, what checking one call may cost, and the error beyond a limit.

A definition beyond a limit is refused by name when it is declared (`Toolset`), so nothing that is done with an accepted
definition is unbounded. `SECURITY.md` promises what these limits add up to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from rightcall.errors import BadTools

# -- one tool's schema -------------------------------------------------------------------------------------------------
MAX_DEPTH = 64  # levels of JSON
MAX_SIZE = 1_000_000  # characters, about
MAX_SCHEMAS = 50_000  # schemas in it
MAX_EXPANSION = 10_000  # schemas that apply to the same value, with references resolved
MAX_CHAIN = 64  # references and combinators in a row
MAX_REPEATED = 200_000  # schemas that apply to one value, summed over all places

# -- patterns: bytes that they compile to, estimated -------------------------------------------------------------------
REGEX_SIZE = 262_144  # of one: nested counted repetition is linear too, with a huge factor
MAX_PATTERNS = 4_000_000  # of one tool
MAX_TOOLSET_PATTERNS = 32_000_000  # of all tools together

# -- one call: a step is one keyword checked against one value ---------------------------------------------------------
STEPS_PER_CALL = 1_000_000
STEPS_PER_VALUE = 200  # in addition, for each value of the call
MAX_ERRORS = 10_000  # values in all errors together, each of which has a copy of its value: for reports
MAX_REPAIR_ERRORS = 300_000  # the same for repairs, and where the beginning of long lists is valid
MAX_REPAIR_STEPS = 8_000  # errors examined to repair one call
MAX_REPAIR_STEPS_OF_REPLY = 30_000
KEYWORDS_PER_STEP = 100  # keywords and constants of a schema: one check against a large schema counts as several errors


class Refused(BadTools):
    """A tool definition that cannot be used. `path` is a JSON Pointer into it. `given`: the definition is data from
    a third party, and not Python code of the caller."""

    given = False

    def __init__(self, path: str, cause: str, cure: str, *, tool: str = "") -> None:
        who = f"tool {tool!r}" if tool else "a tool definition"
        super().__init__(f"{who} cannot be used: {f'{path}: ' if path else ''}{cause}; {cure}")
        self.tool, self.path, self.cause, self.cure = tool, path, cause, cure

    def within(self, prefix: str = "", *, tool: str = "") -> Refused:
        """Return a copy of the error with `prefix` before its path, and with this tool if the error names none."""
        seen = Refused(prefix + self.path, self.cause, self.cure, tool=self.tool or tool)
        seen.given = self.given
        return seen


class Refusal(msgspec.Struct, frozen=True):
    """A definition that a lenient toolset left out: the `source` it came from, the `tool` it names, the `path` of the
    fault in it (a JSON Pointer), and a `message` with the cause and the cure."""

    source: str
    tool: str
    path: str
    message: str


_PATTERN_COST = 4_000  # of every pattern, however short
_PIECE_COST = 60
_WIDE_COST = 2_000  # any character, or a negated class: all of UTF-8
_UNICODE_COST = 50_000  # a class of Unicode, such as all letters
_PIECES = re.compile(
    r"""(?P<unicode>\\[pP](?:\{[^}]*+\})?+) | (?P<wide>\\[SWD]|\.|\[\^) | (?P<piece>\\.|[^\\(){}.]) | (?P<open>\()
    | (?P<close>\)) | \{(?:[0-9]*+,)?+(?P<most>[0-9]++)\} | \{(?P<least>[0-9]++),\} | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


def check_patterns(patterns: Iterable[str]) -> int:
    """Return the estimated size, in bytes, of all patterns of one tool; a repeated pattern counts each time. Raises
    `Refused` beyond `MAX_PATTERNS`."""
    size = sum(map(pattern_size, patterns))
    if size > MAX_PATTERNS:
        cause = f"its patterns compile to about {size / 1e6:.1f} MB, and {MAX_PATTERNS / 1e6:g} MB is the most"
        raise Refused("", cause, CURE)
    return size


CURE = "use fewer or shorter patterns, without large counts and classes of Unicode"


@lru_cache(4096)
def pattern_size(pattern: str) -> int:
    """Return the estimated size of a compiled pattern in bytes, at most `REGEX_SIZE`: a larger pattern is not compiled.
    An invalid pattern has a size too."""
    opened: list[int] = []  # the cost of the enclosing groups, up to where each begins
    here, last = 0, 0  # of this group, and of the previous piece
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
            last = _UNICODE_COST if kind == "unicode" else _WIDE_COST if kind == "wide" else _PIECE_COST
            here += last
    return min(_PATTERN_COST + max(0, sum(opened) + here), REGEX_SIZE)
