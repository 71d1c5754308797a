"""How values are written, apart from JSON, which the C scanner reads: three notations, each a value.

`PYTHON` has the literals of Python, `TYPESCRIPT` object literals with templates and heredocs, `braces` bare keys and
strings between two quote tokens of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Protocol

import msgspec

SURROGATE_PAIR = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
LONGEST = 12  # a pair of surrogates: an escape that has so much room is whole


class Escapes(msgspec.Struct, frozen=True):
    """How the escapes of a kind of string are read."""

    read: Callable[[str], str]
    short: str  # characters that make an escape with one backslash before them
    is_odd: Callable[[str], object] = lambda text: None  # has it an escape that is begun and not whole?


def _pair(text: str) -> str:
    """Return the character of a surrogate pair of escapes; `text` is the pair without its first backslash:
    `uD83D\\uDE00`."""
    return chr(0x10000 + ((int(text[1:5], 16) & 0x3FF) << 10) + (int(text[7:], 16) & 0x3FF))


_PYTHON = re.compile(
    rf"\\({SURROGATE_PAIR}|\n|x[0-9a-fA-F]{{2}}|u[0-9a-fA-F]{{4}}|U[0-9a-fA-F]{{8}}|[0-7]{{1,3}}|.)", re.S
).sub
_PYTHON_CHARS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "\n": ""}
_PYTHON_CHARS |= {"\\": "\\", "'": "'", '"': '"', "/": "/"}


def _python(text: str) -> str:
    """Return the text with Python's escapes and `\\/` decoded, two escapes of a surrogate pair as one character. An
    escape that Python does not know, `\\N{...}`, and one not whole or beyond Unicode, stays as it is."""
    return _PYTHON(_python_one, text) if "\\" in text else text


def _python_one(found: re.Match[str]) -> str:
    """Return the character of one escape (or surrogate pair of escapes) that `_PYTHON` found, "" for a backslash before
    a line break; the escape itself, with its backslash, if it is unknown, not whole or beyond Unicode."""
    code = found.group(1)
    if code in _PYTHON_CHARS:
        return _PYTHON_CHARS[code]
    if len(code) == LONGEST - 1:
        return _pair(code)
    if len(code) > 1 and code[0] in "xuU":
        point = int(code[1:], 16)
        return chr(point) if point <= 0x10FFFF else found.group()
    return chr(int(code, 8)) if code[0] in "01234567" else found.group()


_TYPESCRIPT = re.compile(
    rf"\\(?:u\{{([0-9a-fA-F]{{1,6}})\}}|({SURROGATE_PAIR})|u([0-9a-fA-F]{{4}})|x([0-9a-fA-F]{{2}})|(\r\n|.))", re.S
).sub
_TYPESCRIPT_CHARS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f", "v": "\v"}
_TYPESCRIPT_CHARS |= {"\n": "", "\r": "", "\r\n": ""}


def _typescript_one(found: re.Match[str]) -> str:
    """Return the character of one escape (or surrogate pair of escapes) that `_TYPESCRIPT` found, "" for a backslash
    before a line break; the escape without its backslash if it is unknown, not whole or beyond Unicode."""
    braced, pair, four, two, char = found.groups()
    if char is not None:
        return _TYPESCRIPT_CHARS.get(char, char)
    if pair is not None:
        return _pair(pair)
    code = int(braced or four or two, 16)
    return chr(code) if code <= 0x10FFFF else found.group()[1:]


_TEMPLATE = re.compile(r"\\(\r\n|.)", re.S).sub
_TEMPLATE_CHARS = {"n": "\n", "t": "\t", "r": "\r", "\n": "", "\r": "", "\r\n": "", "`": "`", "$": "$", "\\": "\\"}


def template_text(text: str) -> str:
    """Return the text of a template literal with its escapes decoded; a backslash before a line break is removed with
    it. An escape that has no meaning in one keeps its backslash."""
    return _TEMPLATE(lambda found: _TEMPLATE_CHARS.get(found[1], found[0]), text) if "\\" in text else text


_ODD = re.compile(r"(?<!\\)(?:\\\\)*+\\(?:x(?![0-9a-fA-F]{2})|u(?![0-9a-fA-F]{4})|U(?![0-9a-fA-F]{8})|N(?!\{))").search

PYTHON_ESCAPES = Escapes(_python, "ntr\\'\"/", _ODD)
TYPESCRIPT_ESCAPES = Escapes(partial(_TYPESCRIPT, _typescript_one), "nt\\'\"`")


HOLE = "an f-string with braces is a program and no text; send the text itself, in plain quotes"
Taken = tuple[int, str, bool]
Match = Callable[[str, int], "re.Match[str] | None"]


FullMatch = Callable[[str], "re.Match[str] | None"]


@lru_cache(64)
def easy_without(chars: str) -> FullMatch:
    """Return a function that matches a whole piece if it holds none of the characters `chars` and nothing that JSON
    escapes."""
    return re.compile(rf'[^"\\\x00-\x1f{re.escape(chars)}]*+').fullmatch


class OpenText(Protocol):
    """Text whose end has not arrived.

    - `easy` matches a piece that belongs to it as it is.
    - `plain` returns the content of the part of a piece that belongs to it, and the size of that part; None if that
      depends on the text before it.
    """

    @property
    def easy(self) -> FullMatch: ...

    def plain(self, text: str) -> tuple[str, int] | None: ...


class StringText(OpenText, Protocol):
    odd: bool
    has_hole: bool
    lost: bool  # its end cannot come any more

    def take(self, text: str, pos: int, ended: bool) -> Taken: ...


@lru_cache(64)
def _quoted(close: str, short: str) -> tuple[Match, Match, Callable[[str], re.Match[str] | None]]:
    """Return three match functions for the text behind the opening quote of a string that ends with `close`: for all of
    it to behind its end (group 1: the content; None if it is not closed), for as much of it, maybe nothing, as no later
    text changes, and for plain text and short escapes alone, up to the first character of `close` or another escape.
    `short`: the characters that make an escape with one backslash; "" if no escape is decoded."""
    quote = re.escape(close[0])
    other = "" if len(close) == 1 else rf"|{quote}(?!{re.escape(close[1:])})"
    room = rf"(?=.{{{LONGEST}}})"
    whole = re.compile(rf"((?:[^{quote}\\]++|\\.{other})*+){re.escape(close)}", re.S)
    held = "" if len(close) == 1 else rf"|(?=.{{{len(close)}}}){quote}(?!{re.escape(close[1:])})"
    # An escape of more than two characters is final only when the longest one there is has room to be whole.
    brief = rf"|\\[{re.escape(short)}]" if short else ""
    safe = re.compile(rf"(?:[^{quote}\\]++{brief}|{room}\\(?:{SURROGATE_PAIR}|.){held})*+", re.S)
    plain = re.compile(rf"(?:[^{quote}\\]++|\\[{re.escape(short)}])*+") if short else re.compile(rf"[^{quote}\\]*+")
    return whole.match, safe.match, plain.match


class Quoted:
    """Behind its first quote. Without `escapes` a backslash keeps the quote behind it in the string, and stays. With
    `holes` it is one of Python's `f'...'`, where braces stand for what nobody filled in."""

    __slots__ = ("_escapes", "_holes", "_plain", "_safe", "_whole", "easy", "has_hole", "odd")
    lost = False

    def __init__(self, close: str, escapes: Escapes | None, *, holes: bool = False) -> None:
        self.easy = easy_without(close[0] + "{}" if holes else close[0])
        self._holes = holes
        self._whole, self._safe, self._plain = _quoted(close, "" if escapes is None else escapes.short)
        self._escapes = escapes
        self.odd = False  # has it an escape that is none, and would be an error?
        self.has_hole = False

    def take(self, text: str, pos: int, ended: bool) -> Taken:
        """Decode the string from index `pos` on. Return the index that was reached, the content up to it, and whether
        the string is closed; then the index is behind its quote. What later text may change waits unless `ended`; if
        `ended`, an unclosed string is read to the end of the text. Sets `odd` and `has_hole` as `_decoded` does."""
        whole = self._whole(text, pos)
        if whole is not None:
            return whole.end(), self._decoded(whole.group(1)), True
        end = len(text) if ended else self._safe(text, pos).end()  # type: ignore[union-attr]
        return end, self._decoded(text[pos:end]), False

    def _decoded(self, text: str) -> str:
        """Return the text with its escapes decoded, if the string has any; set `odd` to True at an invalid escape and
        `has_hole` at a brace of an f-string. Neither is ever set back."""
        if self._holes and ("{" in text or "}" in text):
            self.has_hole = True
        if self._escapes is None or "\\" not in text:
            return text
        self.odd = self.odd or bool(self._escapes.is_odd(text))
        return self._escapes.read(text)

    def plain(self, text: str) -> tuple[str, int] | None:
        """Return the decoded content and the size of the part of a piece that is text and short escapes (those with one
        character); None, with nothing recorded, unless that is all of the piece, but for a backslash at its end, which
        the size does not count. Sets what `_decoded` does."""
        end = self._plain(text).end()  # type: ignore[union-attr]
        return (self._decoded(text[:end]), end) if end == len(text) or text[end:] == "\\" else None


_IN_TEMPLATE = re.compile(r"[^`\\$]*+").match
_IN_HOLE = re.compile(r"[^{}]*+").match


class Template:
    """Behind its first backtick."""

    __slots__ = ("_level",)
    easy = staticmethod(easy_without("`${}"))
    odd = has_hole = lost = False

    def __init__(self) -> None:
        self._level = 0  # of the braces of a hole

    def take(self, text: str, pos: int, ended: bool) -> Taken:
        """Decode the template literal from index `pos` on; holes `${...}` stay as written, a backtick in one does not
        close it. Return the index that was reached, the content up to it, and whether the template is closed; then the
        index is behind its backtick. An escape or `$` at the end of the text, whose next character is missing, is not
        read; `ended` changes nothing. `_level` keeps the open braces of a hole for the next piece."""
        pieces: list[str] = []
        start = pos
        while True:
            pos = self._run(text, pos)
            if self._level:
                if pos < len(text):
                    self._level += 1 if text[pos] == "{" else -1
                    pos += 1
                    if self._level:
                        continue
                pieces.append(text[start:pos])
                start = pos
                if pos == len(text):
                    return pos, "".join(pieces), False
                continue
            char = text[pos : pos + 1]
            follows = text[pos + 1 : pos + 2]
            if char == "`" or not char or not follows or (char == "\\" and follows == "\r" and len(text) < pos + 3):
                # Over, or what has arrived ends here, maybe inside an escape.
                pieces.append(template_text(text[start:pos]))
                return pos + (char == "`"), "".join(pieces), char == "`"
            if char == "$" and follows == "{":
                pieces.append(template_text(text[start:pos]))
                start, self._level = pos, 1
                pos += 2
            else:
                pos += 2 if char == "\\" else 1

    def plain(self, text: str) -> tuple[str, int] | None:
        """Return the piece and its size if nothing in it can end or change the template, or the hole in it (a backtick,
        backslash or `$`, or a brace in a hole); else None."""
        end = self._run(text, 0)
        return (text, end) if end == len(text) else None

    def _run(self, text: str, pos: int) -> int:
        """Return the index up to which nothing from `pos` on can end or change the template, or the hole in it."""
        return (_IN_HOLE if self._level else _IN_TEMPLATE)(text, pos).end()  # type: ignore[union-attr]


WORD_CHAR = r"[\w$]"
_BLANKS = r"[ \t]{0,128}+"
HEREDOC = re.compile(r"(?P<quote>['\"]?)<<(?P<mark>['\"]?)(?P<tag>[A-Za-z0-9_]{1,64})(?P=mark)[ \t]{0,16}\r?(?=\n)")


class Heredoc:
    """Behind its tag, at the line break. The line that ends it begins with the tag; what else it holds is not taken."""

    __slots__ = ("_first", "_patterns", "_quote")
    easy = staticmethod(easy_without(""))
    odd = has_hole = lost = False

    def __init__(self, tag: str, quote: str = "") -> None:
        self._patterns = _heredoc(tag)
        self._first = True
        self._quote = quote  # models put some in quotes: that quote is taken with the end

    def take(self, text: str, pos: int, ended: bool) -> Taken:
        """Take the text of the heredoc from index `pos` on, first its line break. Return the index that was reached,
        the text up to it without the line break before its end, and whether the heredoc is closed; then the index is
        behind its tag and quote. Unless `ended`, a last line that may become the end waits, and so does a tag that is
        the last text; if `ended`, an unclosed heredoc is read to the end of the text. `_first` is False once its first
        line break was taken."""
        more, last, part = self._patterns
        found = (last if ended else more)(text, pos)
        if found is not None and self._quote and found.end() == len(text) and not ended:
            found = None
        if self._first:
            if found is not None and found.start() == pos:
                return self._end(text, found), "", True
            if not ended and part(text, pos):
                return pos, "", False
            self._first = False
            pos += 1
        if found is not None:
            end = found.start()
            return self._end(text, found), text[pos : end - (end > pos and text[end - 1] == "\r")], True
        end = len(text)
        if not ended:
            line = text.rfind("\n", pos)
            end = line if line >= 0 and part(text, line) else end
            end -= end > pos and text[end - 1] == "\r"
        return end, text[pos:end], False

    def _end(self, text: str, found: re.Match[str]) -> int:
        """Return the index behind the closing tag that `found` matched, and behind the quote there if the opener had
        the same before it."""
        return found.end() + (bool(self._quote) and text.startswith(self._quote, found.end()))

    def plain(self, text: str) -> tuple[str, int] | None:
        """Return the piece and its size if it is inside a line of the heredoc; None if it has a line break, or if the
        first line break of the heredoc was not taken yet."""
        return None if self._first or "\n" in text or "\r" in text else (text, len(text))


def closing(tag: str) -> re.Pattern[str]:
    """Return the pattern that ends a heredoc: a line break, at most 128 blanks and the tag. A tag that goes on as a
    longer word does not match."""
    return re.compile(rf"\n{_BLANKS}{tag}(?!{WORD_CHAR})")


@lru_cache(256)
def _heredoc(tag: str) -> tuple[Match, Match, Match]:
    """Return three functions for the heredoc of this tag: the search for its end while more text may come (not at the
    end of the text, where the tag may go on), the same when no more comes, and the match of a last line, from its line
    break on, that may become the end."""
    part = ""
    for char in reversed(tag):
        part = f"(?:{char}{part})?"
    close = closing(tag)
    more = re.compile(rf"{close.pattern}(?!\Z)")
    return more.search, close.search, re.compile(rf"\n{_BLANKS}{part}\Z").match


class Quote(msgspec.Struct, frozen=True):
    """One way to write a string: the mark that opens it, and its escapes. `make` reads it, where its end is not simply
    the next such mark."""

    open: str
    escapes: Escapes | None = None
    make: Callable[[], StringText] | None = None


class Notation(msgspec.Struct, frozen=True):
    """What the reader and the search for an end need to know."""

    brackets: dict[str, str]
    quotes: tuple[Quote, ...]  # the longest openers first
    heads: str  # what a string may begin with
    words: dict[str, Any]
    bare_value: Match  # a number, a word or an unquoted string
    bare_key: Match
    space: Match  # white space, and comments where there are any
    # An object's first entry and another: a comma, a key as it is mostly written, which is the match's group, a colon.
    entries: tuple[Match, Match]
    usual_value: Match  # made by `usual_values`
    number: FullMatch | None = None  # how numbers are written that are none of JSON's; None: in no other way
    prefixes: Match | None = None  # letters before a quote, as in r'...'
    templates: bool = False  # template literals and heredocs are strings, too
    open_comment: Match | None = None
    bare_strings: bool = False  # what is neither word nor number is a string
    gaps: bool = False  # empty items between commas are skipped, and an absent value is "", as in rig-compose
    shy: str = ""  # quotes that begin a string only where a value begins
    typed_keys: bool = False  # keys are values, of which only strings will do


JSON_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_BOTH = JSON_WORDS | {"True": True, "False": False, "None": None}
_BLANK = re.compile(r"[ \t\r\n]*+").match
_ANY_BLANK = re.compile(r"\s*+").match
_DIGITS = r"[0-9][0-9_]*+"
# Zeros in front are no number's: a code or a telephone number without its quotes.
_PROGRAMMERS = rf"[+-]?(?:(?!0[0-9_]){_DIGITS}(?:\.[0-9_]*+)?|\.[0-9][0-9_]*+)(?:[eE][+-]?[0-9]++)?"
_BASED = r"[+-]?0(?:[xX]_*+[0-9a-fA-F][0-9a-fA-F_]*+|[oO]_*+[0-7][0-7_]*+|[bB]_*+[01][01_]*+)"

STRICT_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?([eE][+-]?[0-9]++)?").fullmatch
NOT_FINITE = frozenset("nan inf infinity +inf -inf +nan -nan -infinity +infinity".split())

# Strings of one line without escapes, which are the same in every notation; neither empty nor a heredoc.
SIMPLE_STRINGS = {quote: rf"{quote}((?!<<)[^{quote}\\\x00-\x1f]++){quote}" for quote in "'\""}
_SIMPLE = "|".join(SIMPLE_STRINGS.values())
_KEY_CHAR = r"[^\s,:=\[\](){}'\"`\u2018-\u201f]"


def _entries(key: str) -> tuple[Match, Match]:
    """Return two functions that match an object's first entry, from its key on, and a further one, from the comma
    before it on, each up to behind the colon and one space. `key`: the source of a key, whose only group that matches
    is the key without quotes."""
    return re.compile(rf"(?:{key}): ?").match, re.compile(rf", ?(?:{key}): ?").match


def usual_values(*strings: str) -> Match:
    """Return a function that matches a value as it is mostly written, maybe behind one space, before `,`, `]` or `}`,
    which it does not consume. Group 1 is a whole number, group 2 a word; any other group is the content of a string,
    matched by one of the patterns `strings`. One of the groups matches; the others are None."""
    kinds = "|".join([r"(-?(?:0|[1-9][0-9]{0,15}+))", "([Tt]rue|[Ff]alse|null|None)", *strings])
    return re.compile(rf" ?(?:{kinds})(?=[,\]}}])").match


PYTHON = Notation(
    brackets={"[": "]", "{": "}", "(": ")"},
    quotes=tuple([Quote(mark, PYTHON_ESCAPES) for mark in ("'''", '"""', "'", '"')]),
    heads="'\"bBrRuUfF",
    words=_BOTH,
    space=_ANY_BLANK,
    number=re.compile(rf"{_PROGRAMMERS}|{_BASED}").fullmatch,
    bare_value=re.compile(r"[^,\[\](){}'\"\n]++").match,
    bare_key=re.compile(rf"{_KEY_CHAR}++(?:[ \t]++{_KEY_CHAR}++)*+").match,
    entries=_entries(_SIMPLE),
    usual_value=usual_values(_SIMPLE),
    prefixes=re.compile(r"[bBrRuUfF]{0,2}+(?=['\"]|\Z)").match,
    bare_strings=True,
    gaps=True,
    typed_keys=True,
)

# The same, but a bare word is no string.
PYTHON_LITERALS = msgspec.structs.replace(PYTHON, bare_strings=False, gaps=False)

_TS_SPACE = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+\n|/\*(?:[^*]++|\*(?!/))*+\*/)*+").match

TYPESCRIPT = Notation(
    brackets={"[": "]", "{": "}"},
    quotes=(Quote("'", TYPESCRIPT_ESCAPES), Quote('"', TYPESCRIPT_ESCAPES)),
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
)


_BRACED_WORD = r"[^\s:{}\[\],<>\"']"
# Templates write a key as it is, blanks and all.
BRACED_KEY = rf"{_BRACED_WORD}{{1,256}}+(?:[ \t]{{1,4}}+{_BRACED_WORD}{{1,256}}+){{0,32}}+"


def braces(
    quote: str, make: Callable[[], StringText], others: tuple[Quote, ...], simple: str, around: str = ""
) -> Notation:
    """Return the notation with bare keys, bare strings, and strings between two tokens `quote`, or, where a value
    begins, between other quotes. `make` returns a new reader of a string between tokens.

    - `others`: these other quotes.
    - `simple`: a pattern of strings between two tokens that contain no piece of a token.
    - `around`: the brackets around all arguments, which end a bare value, if they are not the notation's own.
    """
    head = re.escape(quote[0])
    shy = "".join([other.open for other in others])
    return Notation(
        brackets={"[": "]", "{": "}"},
        quotes=(Quote(quote, make=make), *others),
        heads=quote[0] + shy,
        shy=shy,
        words=_BOTH,  # Gemma 4's template writes null as None
        space=_BLANK,
        bare_value=re.compile(rf"[^,{{}}\[\]<{head}{re.escape(around)}]++").match,
        bare_key=re.compile(BRACED_KEY).match,
        entries=_entries(rf"(?![{re.escape(quote[0] + shy)}])({BRACED_KEY})"),
        usual_value=usual_values(simple),
        bare_strings=True,
    )
