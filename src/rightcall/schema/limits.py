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
MAX_SCHEMAS = 50_000  # schemas in it, all told
MAX_EXPANSION = 10_000  # schemas that apply to one and the same value once references are followed
MAX_CHAIN = 64  # references and combinators in a row
MAX_REPEATED = 200_000  # schemas that apply to one value, added up over all places where a value may stand

# -- patterns: bytes that they compile to, estimated -------------------------------------------------------------------
REGEX_SIZE = 262_144  # of one: nested counted repetition is linear too, with a huge factor
MAX_PATTERNS = 4_000_000  # of one tool
MAX_TOOLSET_PATTERNS = 32_000_000  # of all tools together

# -- one call: a step is a look of one keyword at one value ------------------------------------------------------------
STEPS_PER_CALL = 1_000_000
STEPS_PER_VALUE = 200  # and these for each value that is sent
MAX_ERRORS = (
    10_000  # values in all errors together, each of which has a copy of what it is about: to tell what is wrong
)
MAX_MENDED = 300_000  # the same, to put it right, and where the beginning of long lists is right
MOST_LOOKS = 8_000  # errors looked at to put one call right
MOST_LOOKS_OF_A_REPLY = 30_000
SIZE_OF_A_LOOK = 100  # keywords and constants of a tool's schema: to ask a large one once counts as that many errors


class Refused(BadTools):
    """`path` is a JSON Pointer into what was passed. `given`: the fault is in a definition, which is data that came
    from somebody else, and not in what the caller wrote in Python."""

    given = False

    def __init__(self, path: str, cause: str, cure: str, *, tool: str = "") -> None:
        who = f"tool {tool!r}" if tool else "a tool definition"
        super().__init__(f"{who} cannot be used: {f'{path}: ' if path else ''}{cause}; {cure}")
        self.tool, self.path, self.cause, self.cure = tool, path, cause, cure

    def within(self, prefix: str = "", *, tool: str = "") -> Refused:
        """The same fault, seen from further outside."""
        seen = Refused(prefix + self.path, self.cause, self.cure, tool=self.tool or tool)
        seen.given = self.given
        return seen


class Refusal(msgspec.Struct, frozen=True):
    """A definition that a lenient toolset left out: the `source` it came from, the `tool` it names, the `path` of the
    fault in it (a JSON Pointer), and a `message` that says what is wrong and what would do."""

    source: str
    tool: str
    path: str
    message: str


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
