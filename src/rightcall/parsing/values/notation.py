"""How values are written, apart from JSON, which the C scanner reads: four notations, each a value.

`LOOSE` is JSON as models write it,
`PYTHON` the literals of Python, `TYPESCRIPT` object literals with templates and heredocs, `braces` bare keys and
strings between two quote tokens of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from rightcall.parsing.values import escapes
from rightcall.parsing.values.escapes import Escapes
from rightcall.parsing.values.strings import Match, StringText

FullMatch = Callable[[str], "re.Match[str] | None"]


_NONE = re.compile("(?!)").match


class Quote(msgspec.Struct, frozen=True):
    """One way to write a string. `rule` is the liberty that it takes where only JSON's would do. `make` reads it, where
    its end is not simply the next `close`."""

    open: str
    close: str
    escapes: Escapes | None
    rule: str = ""
    make: Callable[[], StringText] | None = None


class Notation(msgspec.Struct, frozen=True):
    """What the reader and the search for an end need to know."""

    name: str
    brackets: dict[str, str]
    quotes: tuple[Quote, ...]  # the longest openers first
    heads: str  # what a string may begin with
    words: dict[str, Any]
    space: Match  # white space, and comments where there are any
    number: FullMatch | None  # how numbers are written that are none of JSON's; None: in no other way
    bare_value: Match  # a number, a word or an unquoted string
    bare_key: Match
    # An object's first entry and another: a comma, a key as it is mostly written, which is the match's group, a colon.
    entries: tuple[Match, Match] = _NONE, _NONE
    usual_value: Match = _NONE  # made by `usual_values`
    separators: tuple[str, ...] = (":",)
    prefixes: Match | None = None  # letters before a quote, as in r'...'
    templates: bool = False
    heredocs: bool = False
    comments: Match = _NONE
    open_comment: Match | None = None
    bare_strings: bool = False  # what is neither word nor number is a string
    gaps: bool = False  # empty items between commas are skipped, and an absent value is ""
    sets: bool = False
    shy: str = ""  # quotes that begin a string only where a value begins
    typed_keys: bool = False  # keys are values, of which only strings will do


JSON_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_BOTH = JSON_WORDS | {"True": True, "False": False, "None": None}
_BLANK = re.compile(r"[ \t\r\n]*+").match
_ANY_BLANK = re.compile(r"\s*+").match
_DIGITS = r"[0-9][0-9_]*+"
# Zeros in front are no number's: a code or a telephone number without its quotes.
_PROGRAMMERS = rf"[+-]?(?:(?!0[0-9_]){_DIGITS}(?:\.[0-9_]*+)?|\.[0-9][0-9_]*+)(?:[eE][+-]?[0-9]++)?"
_BASED = r"[+-]?0(?:[xX][0-9a-fA-F_]++|[oO][0-7_]++|[bB][01_]++)"

STRICT_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?([eE][+-]?[0-9]++)?").fullmatch
NOT_FINITE = frozenset("nan inf infinity +inf -inf +nan -nan -infinity +infinity".split())

# Strings of one line without escapes, which are the same in every notation; neither empty nor a heredoc.
SIMPLE_STRINGS = {quote: rf"{quote}((?!<<)[^{quote}\\\x00-\x1f]++){quote}" for quote in "'\""}
_SIMPLE = "|".join(SIMPLE_STRINGS.values())
_KEY_CHAR = r"[^\s,:=\[\](){}'\"`\u2018-\u201f]"


def _entries(key: str) -> tuple[Match, Match]:
    return re.compile(rf"(?:{key}): ?").match, re.compile(rf", ?(?:{key}): ?").match


def usual_values(*strings: str) -> Match:
    """A value as it is mostly written, before what can only follow one: a whole number is the match's first group, a
    word its second, the text of a string the last."""
    kinds = "|".join([r"(-?(?:0|[1-9][0-9]{0,15}+))", "([Tt]rue|[Ff]alse|null|None)", *strings])
    return re.compile(rf" ?(?:{kinds})(?=[,\]}}])").match


PYTHON = Notation(
    name="python",
    brackets={"[": "]", "{": "}", "(": ")"},
    quotes=tuple([Quote(mark, mark, escapes.PYTHON) for mark in ("'''", '"""', "'", '"')]),
    heads="'\"bBrRuUfF",
    words=_BOTH,
    space=_ANY_BLANK,
    number=re.compile(rf"{_PROGRAMMERS}|{_BASED}").fullmatch,
    bare_value=re.compile(r"[^,\[\](){}'\"\n]++").match,
    bare_key=re.compile(rf"{_KEY_CHAR}++(?:[ \t]++{_KEY_CHAR}++)*+").match,
    entries=_entries(_SIMPLE),
    usual_value=usual_values(_SIMPLE),
    prefixes=re.compile(r"[bBrRuUfF]{0,2}+(?=['\"])").match,
    bare_strings=True,
    gaps=True,
    sets=True,
    typed_keys=True,
)

# The same, but a bare word is no string, and `{'a'}` an object without a colon.
PYTHON_LITERALS = msgspec.structs.replace(PYTHON, bare_strings=False, gaps=False)

_TS_SPACE = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+\n|/\*(?:[^*]++|\*(?!/))*+\*/)*+").match

TYPESCRIPT = Notation(
    name="typescript",
    brackets={"[": "]", "{": "}"},
    quotes=(Quote("'", "'", escapes.TYPESCRIPT), Quote('"', '"', escapes.TYPESCRIPT)),
    heads="'\"`<",
    words=_BOTH | {"undefined": None},
    space=_TS_SPACE,
    open_comment=re.compile(r"//[^\n]*+\Z|/\Z|/\*(?:[^*]++|\*(?!/))*+\Z").match,
    number=re.compile(rf"(?:{_BASED}|{_PROGRAMMERS}|[+-]?{_DIGITS})n?").fullmatch,
    bare_value=re.compile(r"[\w$.+\-]++").match,
    bare_key=re.compile(r"[\w$][\w$.\-]{0,255}+").match,
    entries=_entries(rf"([\w$][\w$.\-]{{0,255}}+)|{_SIMPLE}"),
    usual_value=usual_values(_SIMPLE),
    templates=True,
    heredocs=True,
)


_BRACED_WORD = r"[^\s:{}\[\],<>\"']"
# Templates write a key as it is, blanks and all.
BRACED_KEY = rf"{_BRACED_WORD}{{1,256}}+(?:[ \t]{{1,4}}+{_BRACED_WORD}{{1,256}}+){{0,32}}+"


def braces(quote: str, make: Callable[[], StringText], others: tuple[Quote, ...], simple: str) -> Notation:
    """Bare keys, and strings between two of these, which `make` reads; or, where a value begins, between others.
    `simple`: a pattern of such strings that hold no piece of a quote."""
    head = re.escape(quote[0])
    shy = "".join([other.open for other in others])
    return Notation(
        name="braces",
        brackets={"[": "]", "{": "}"},
        quotes=(Quote(quote, quote, None, make=make), *others),
        heads=quote[0] + shy,
        shy=shy,
        words=_BOTH,
        space=_BLANK,
        number=None,
        bare_value=re.compile(rf"[^,{{}}\[\]<{head}]++").match,
        bare_key=re.compile(BRACED_KEY).match,
        entries=_entries(rf"(?![{re.escape(quote[0] + shy)}])({BRACED_KEY})"),
        usual_value=usual_values(simple),
        bare_strings=True,
        gaps=True,
    )


_CURLY = (("\u201c", "\u201d"), ("\u201d", "\u201d"), ("\u2018", "\u2019"), ("\u2019", "\u2019"))

LOOSE = Notation(
    name="loose",
    brackets={"[": "]", "{": "}"},
    quotes=(
        Quote('"', '"', escapes.PYTHON),
        *[Quote(mark, mark, escapes.PYTHON, "single_quotes") for mark in "'`"],
        *[Quote(opens, closes, escapes.PYTHON, "smart_quotes") for opens, closes in _CURLY],
    ),
    heads="".join(['"', "'`", *[opens for opens, _ in _CURLY]]),
    words=_BOTH | {"undefined": None},
    space=_BLANK,
    comments=re.compile(r"//[^\n]*+|#[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/", re.S).match,
    number=re.compile(_PROGRAMMERS).fullmatch,
    bare_value=re.compile(r"[^,\]}{\[\n\"':]++").match,
    bare_key=re.compile(r"[A-Za-z_$][\w$.\-]*+|[0-9]++").match,
    separators=("=>", "=", ":"),
    bare_strings=True,
)
