"""How large a tool may be, and what checking one call of it may cost: every limit of the tools' side, in one place.

A definition beyond a limit is refused by name when it is declared (`Toolset`), so nothing that is done with an accepted
one has to fear it. `SECURITY.md` promises what these add up to.
"""

from __future__ import annotations

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
