"""Detect shown text: text that only shows a call. No call in it runs.

Shown text is code (fences and spans as CommonMark defines them, four blanks or a tab after an empty line), text in
quotation marks, in a block quote, in a diff, between HTML tags that show their content or between the markers of a
tool's result, a line of a numbered file, of a transcript or of a log, and everything inside an opener that is shown.

Whether a place is shown depends only on the text before it, so that neither more text nor other chunks change the
answer: what was opened shows until it is closed. An unclosed span or quotation ends with its paragraph, and everything
ends with its message. Text is inspected only when a caller asks about a marker, and once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

Closes = Callable[[str, int], "re.Match[str] | None"]

# -- tags that show their content --------------------------------------------------------------------------------------

_HTML = ("pre", "code", "textarea")
_TAGS = (
    *("tool_response", "tool_responses", "tool_result", "tool_results", "tool_output", "tool_outputs"),
    *("function_response", "function_result", "function_results", "function_output", "response"),
)
# The result markers of formats, which no tag closes of the same name.
_TAG_PAIRS = {
    "<!--": "-->",
    "<![cdata[": "]]>",
    "[tool_results]": "[/tool_results]",
    "<｜tool▁outputs▁begin｜>": "<｜tool▁outputs▁end｜>",
    "<｜tool▁output▁begin｜>": "<｜tool▁output▁end｜>",
    "<|tool_response_start|>": "<|tool_response_end|>",
    "<|tool_response>": "<tool_response|>",
    "<start_function_response>": "<end_function_response>",
    "<|start_tool_result|>": "<|end_tool_result|>",
}
# What a prompt writes before the result of a tool. A model that continues behind it has made the result up. Nothing
# closes some of them.
_NEVER = "(?!)"
_RESULT_LABELS = {"observation:": _NEVER, "✿result✿:": "✿return✿:?+", "✿result✿": "✿return✿:?+"}
_NAMED = "|".join((*_HTML, *_TAGS))
OPENS = rf"<(?:{_NAMED})(?=[\s>/])|" + "|".join(map(re.escape, _TAG_PAIRS))


_LONGEST_OPENER = 32
_CLOSE_SOURCES = {opener: re.escape(close) for opener, close in _TAG_PAIRS.items()}
_CLOSE_SOURCES |= {f"<{name}": rf"</{name}\s{{0,16}}+>" for name in (*_HTML, *_TAGS)}
_CLOSES: dict[str, Closes] = {opener: re.compile(close, re.I).search for opener, close in _CLOSE_SOURCES.items()}
_BEGINNINGS = frozenset([opener[:size] for opener in _CLOSES for size in range(1, len(opener) + 1)])


def unfinished(text: str) -> int:
    """Return the index of a partial opener of shown content, such as `<tool_resp`, that the text ends with, in any
    case. Return the length of the text if it ends with none, or with a whole marker such as `<!--`. The name of a tag,
    `<pre`, is partial too until a character follows it."""
    tail = text[-_LONGEST_OPENER:].lower()
    for start in (tail.rfind("<"), tail.rfind("[")):
        end = tail[start:] if start >= 0 else ""
        if end in _TAG_PAIRS:
            break
        if end in _BEGINNINGS:
            return len(text) - len(end)
    return len(text)


_LABEL_CLOSES: dict[str, Closes] = {opener: re.compile(close, re.I).search for opener, close in _RESULT_LABELS.items()}
# The search for what closes a tool's result, by the marker that begins it. It finds nothing if nothing closes it.
RESULTS = {opener: _CLOSES[opener] for opener in _TAG_PAIRS} | _LABEL_CLOSES


# -- beginnings of lines -----------------------------------------------------------------------------------------------

BLANKS = re.compile(r"[ \t\r\f\v]*+").match
RUN = re.compile(r"`{3,}+|~{3,}+").match
HEADING = re.compile(r"#{1,6}+(?=[ \t])").match
_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,9}+[.)])(?:[ \t]{1,4}+|(?=\n|\Z))").match
DIFF = re.compile(r"@@ |diff --git ").match
MINUS = re.compile(r"--- [^\s-]").match
PLUS = re.compile(r"\+\+\+ \S").match
_ROLES = "user|human|customer|assistant|ai|bot|chatbot|model|agent|system|developer|tool|function"
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_FROM = "|".join(
    (
        r"[0-9]{1,7}+ {0,4}+[\t|:]",  # a file with its lines numbered
        rf"(?!<\w+:)[*_\[(<]{{0,4}}+(?:{_ROLES})[*_\])>]{{0,4}}+ {{0,2}}+(?:\([^()\n]{{0,40}}+\) {{0,2}}+)?+[:\uff1a]",
        r"[\[(]?+(?:[0-9]{4}([-/.])[0-9]{2}\1[0-9]{2}|[0-9]{1,2}[/.][0-9]{1,2}[/.][0-9]{2,4}|[0-9]{1,2}:[0-9]{2})(?![0-9])",
        rf"[\[(]?+(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{{0,6}}+,? )?+(?:{_MONTHS})[a-z]{{0,6}}+ [ 0-9]?[0-9],?"
        r" (?:[0-9]{4},? )?+[0-9]{2}:[0-9]{2}",
    )
)
RECORD = re.compile(_FROM, re.I).match  # a line of a file, a transcript or a log
MOST_ITEMS = 8


def columns(before: int, blanks: str) -> int:
    """Return the column behind these blanks, which begin in column `before`. Tab stops are four columns apart; a
    carriage return has no width."""
    if "\t" not in blanks:
        return before + len(blanks) - blanks.count("\r")
    return len((" " * before + blanks.replace("\r", "")).expandtabs(4))


# -- code spans and quotation marks in a line --------------------------------------------------------------------------

_ESCAPE = r"\\[^\n]"
_PAIRS = {"\u201c": "\u201d", "\u201e": "\u201c\u201d", "\u2018": "\u2019", "\u201a": "\u2018\u2019"}
_PAIRS |= {"\u00ab": "\u00bb", "\u2039": "\u203a", "\u300c": "\u300d", "\u300e": "\u300f"}
_PAIRS |= {"\u00bb": "\u00ab", "\u203a": "\u2039", "\u201d": "\u201d"}  # as German, Danish and Swedish books have them
_ODD = frozenset("\u00bb\u203a\u201d\u2019")  # what opens only where a word would begin, or never
_QUOTES = "\"'" + "".join(dict.fromkeys([*_PAIRS, *"".join(_PAIRS.values())]))
_STRAIGHT = frozenset("\"'")
_BRACKETS = {"{": "}", "[": "]", "(": ")"}
_CLOSERS = frozenset(_BRACKETS.values())
_OUTSIDE = re.compile(rf"{_ESCAPE}|`++|{OPENS}|[{_QUOTES}]", re.I).search
_INSIDE = re.compile(rf"{_ESCAPE}|`++|{OPENS}|[{_QUOTES}\[\](){{}}]", re.I).search
_DOUBLE = re.compile(r'(?<!\\)"').findall
_NEXT_MEMBER = re.compile(r'(?<!\\)"[ \t\r\n]*+,[ \t\r\n]*+"\w++"[ \t\r\n]*+:').search
_TICKS = re.compile("`++").search
_BLANK = frozenset(" \t\r\n\f\v\u00a0")
_BEFORE_OPENING = _BLANK | frozenset("([{<=,:;>*_~/|&+-\u2013\u2014" + "".join(_PAIRS))
_ENDS_PHRASE = _BLANK | frozenset(",.;:!?)]}")
_BEFORE_STRING = _BLANK | frozenset("{[(:,=")
_BEFORE_CLIPPED = _BLANK | frozenset('(*_-"\u201c\u2013\u2014')
# What is left of a word behind an apostrophe, and endings that are spoken of. The last ones are words of their own too:
# there a capital letter begins a quotation.
_CLIPPED = re.compile(
    r"(?:(?i:em|till?|cause|cuz|coz|tisn?|twas|twasn|twere|twill|twould|twixt|tween|nother|nuff|neath|cept|fraid|gainst"
    r"|kay|scuse|sup|struth|ello|[nstdmk]|re|ve|ll|ne|nen|nem|ner)|round|bout|fore|hood|spose|specially|burbs)(?![\w'])"
).match
# A header that goes on where a prompt ended begins with a blank.
_TEXT_BEHIND = re.compile(r"[ \t\f\v\u00a0]++(?!to=)\S").match
_FIRST_WORD = re.compile(r"([^\s\"'<>\[{(]{1,200}+)(?=\s)").match
_ENDS_SENTENCE = ".,;:!?)"
_NEVER_FIRST = frozenset(":,;)]}%=>|&^+")  # in a quotation: what is left of a broken call begins so


class Marks:
    """The code span and the quotations that are open in a paragraph. `walk` reads a piece of a line of it."""

    __slots__ = ("_last", "open", "span")

    def __init__(self) -> None:
        self.span = 0  # the number of backticks that opened the code span
        self.open: list[str] = []  # quotation marks, and brackets inside them
        self._last = "\n"  # the character before the next piece

    def __bool__(self) -> bool:
        return bool(self.span or self.open)

    def end(self) -> None:
        """End the paragraph: its code span and its quotations end with it."""
        self.span = 0
        if self.open:
            self.open = []

    def begin_line(self, *, is_indented: bool = False) -> None:
        """Record that the next piece begins a line, with blanks before it if `is_indented`."""
        self._last = " " if is_indented else "\n"

    def skip(self, text: str) -> None:
        """Record that a shown call with this text follows: nothing in it opens or closes anything, with one exception.
        If a double quotation mark is open, and the text has an odd number of unescaped ones and a JSON member behind a
        string (`", "key":`), the outermost open one began that string: it is closed, with all that was opened inside
        it."""
        if '"' in self.open and len(_DOUBLE(text)) % 2 and _NEXT_MEMBER(text):
            del self.open[self.open.index('"') :]

    def walk(self, text: str, at: int, stop: int) -> tuple[int, Closes | None]:
        """Follow code spans, quotations and the brackets in them from index `at` up to `stop`, or to behind an opener
        of shown content such as `<pre` or `<!--`, and update `span`, `open` and `_last`. In a code span only backticks
        count; outside of one, escaped characters do not. Return the index that was reached, and the search for what
        closes that opener, or None without one."""
        while at < stop:
            found = (_TICKS if self.span else _INSIDE if self.open else _OUTSIDE)(text, at, stop)
            if found is None:
                break
            start, at = found.span()
            char = text[start]
            if char == "`":
                self.span = at - start if not self.span else 0 if self.span == at - start else self.span
            elif char in _QUOTES:
                before = text[start - 1] if start else self._last
                is_apostrophe = char in "'\u2018" and before in _BEFORE_CLIPPED and _CLIPPED(text, at) is not None
                may_open = char in _STRAIGHT and char not in self.open[-64:]
                if not is_apostrophe and (not may_open or _may_open(before, text, at)):
                    self._quote(char, before, text[at : at + 1] or "<")
            elif char in _BRACKETS and at - start == 1:
                self.open.append(char)
            elif char in _CLOSERS:
                self._close_bracket(char)
            elif char != "\\":
                self._last = ">"
                return at, _CLOSES[found.group().lower()]
        self._last = text[stop - 1]
        return stop, None

    def _quote(self, char: str, before: str, behind: str) -> None:
        """Open or close a quotation at the mark `char`, straight (see `_straight`) or typographic, between the
        characters `before` and `behind`. A typographic mark closes the innermost quotation that it can close, with all
        that was opened inside it; else it opens one if it is an opening mark (`»`, `›`, `”` only behind a blank or
        opening punctuation). Nothing changes at an apostrophe in a word."""
        if char in "'\u2019" and before.isalnum() and behind.isalnum():
            return  # an apostrophe
        if char in _STRAIGHT:
            self._straight(char, before, behind)
        elif (place := self._opener_of(char)) >= 0:
            del self.open[place:]
        elif char in _PAIRS and (char not in _ODD or before in _BEFORE_OPENING):
            self.open.append(char)

    def _opener_of(self, closes: str) -> int:
        """Return the index in `open` of the innermost opening mark to which `closes` is the closing mark; -1 for none.
        Only the last 64 entries are searched; straight marks have no such pair."""
        opened = self.open
        places = range(len(opened) - 1, max(-1, len(opened) - 65), -1)
        return next((i for i in places if closes in _PAIRS.get(opened[i], "")), -1)

    def _straight(self, char: str, before: str, behind: str) -> None:
        """Open or close a quotation at the straight mark `char`, between the characters `before` and `behind`. If the
        last 64 entries of `open` lack this mark, one is opened behind a blank, opening punctuation or a straight mark
        (not before one of `:,;)]}%=>|&^+`, or as in `'90s`), else nothing changes. Otherwise it opens a string inside
        the quotation (`_is_inner`), or closes the innermost one of this mark with all that was opened inside it."""
        opened = self.open
        if char not in opened[-64:]:
            is_year = char == "'" and behind.isdigit() and before in _BLANK  # the '90s
            if not is_year and (before in _BEFORE_OPENING or before in _STRAIGHT) and behind not in _NEVER_FIRST:
                opened.append(char)
        elif self._is_inner(char, before, behind):
            opened.append(char)
        else:
            while opened.pop() != char:
                pass

    def _is_inner(self, char: str, before: str, behind: str) -> bool:
        """Return whether a straight mark, whose kind is open already, opens a string inside the quotation, by the
        characters `before` and `behind` it; otherwise it closes the quotation. Directly in a bracket it opens one
        behind a blank or one of `{[(:,=`, but not right behind that bracket if what follows ends a phrase; elsewhere
        behind a blank or `=`, but not if what follows ends a phrase or is a quotation mark."""
        top = self.open[-1]
        if top in _BRACKETS:
            return before in _BEFORE_STRING and not (before == top and behind in _ENDS_PHRASE)
        if behind in _ENDS_PHRASE or behind in _QUOTES:
            return False
        return before in _BLANK or before == "="

    def _close_bracket(self, char: str) -> None:
        """Close the innermost open bracket of the kind that `char` closes, and all brackets in it. Does nothing if none
        is open among the last 64 entries, or if a quotation was opened behind it that is still open."""
        opened = self.open
        for i in range(len(opened) - 1, max(-1, len(opened) - 65), -1):
            if opened[i] not in _BRACKETS:
                return
            if _BRACKETS[opened[i]] == char:
                del opened[i:]
                return


def _may_open(before: str, text: str, at: int) -> bool:
    """Return whether a straight mark that ends at `at` may open a quotation: not if blanks and then text follow on the
    line (`to=` is not counted). If `before`, the character before it, is "=", that is not checked: the mark may not
    open only if a word that ends before white space follows, and is a value by `_is_value`."""
    if before != "=":
        return _TEXT_BEHIND(text, at) is None
    word = _FIRST_WORD(text, at)
    return word is None or not _is_value(word[0], _TEXT_BEHIND(text, word.end()) is not None)


def _is_value(word: str, has_text_behind: bool) -> bool:
    """Return whether `word`, which follows a mark behind `=` and ends before white space, is a whole value, not the
    first word of prose. One of letters (hyphens and punctuation at its end not counted) is a value only if it has one
    letter, none of `aAIoO`, and either these or text on the line (`has_text_behind`) follow the letter; any other if it
    ends with punctuation, or if it begins with no digit and text follows on the line."""
    said = word.rstrip(_ENDS_SENTENCE).replace("-", "")
    if said.isalpha():
        is_word = len(said) > 1 or said in "aAIoO"
        return not is_word and (has_text_behind or said != word)
    return word[-1] in _ENDS_SENTENCE or (has_text_behind and not word[0].isdigit())


# -- the message -------------------------------------------------------------------------------------------------------

# The levels of openers, from the outside: a section around calls, a call, its body. Any other marker is outside.
OUTSIDE, SECTION, CALL, BODY, INNERMOST = range(5)
_CODE = 4  # columns
# Found in every text that may open something. Most texts hold nothing of it, so they are not read any further.
_INTEREST = re.compile(
    r"""[`~"\t>|@\u00ab\u00bb\u2018\u201a-\u201f\u2039\u203a\u300c-\u300f]|(?<![^\W_])'|    |<[!PRCTFSprctfs\uff5c]"""
    r"""|\[TOOL|(?:\A|\n) {0,3}+(?:--- |diff )|(?:\A|\n)[ *_\[(<+-]*+(?:[0-9]|[A-Za-z]++[ *_\])>]*+[:\uff1a(]"""
    r"""|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun))""",
).search
_EMPTY_LINES = re.compile(r"\n(?:[ \t\r]*+\n)++").sub
_FOLLOWS = re.compile(r"\s*+(?:[\[{<]|[\w.:$-]++\s*?(?:[\[({<\n]))").match  # a body, and not prose about a marker


class _Fence(NamedTuple):
    char: str
    size: int
    base: int  # the column where the content of its list item begins


class _ShownCall:
    """The text behind a shown opener, up to what closes it. `text` collects it."""

    __slots__ = ("_is_call", "closes", "level", "text")

    def __init__(self, level: int, closes: Closes) -> None:
        self.level, self.closes = level, closes
        self.text: list[str] = []
        self._is_call = False  # a body follows the opener: prose does not only mention it

    def holds(self, level: int) -> bool:
        """Return whether `level` is deeper than the level of the opener, so that a marker of that level is inside it.
        If so, record that a call follows the opener: `is_prose` returns False from then on."""
        self._is_call = self._is_call or level > self.level
        return level > self.level

    def is_prose(self, text: str) -> bool:
        """Return whether this text, the first behind the opener that is not blank, is prose and no body, so that the
        opener is only mentioned. A body is recorded. False for blank text, and for any text behind a body or a marker
        for which `holds` was true."""
        if not self._is_call and text.strip():
            self._is_call = _FOLLOWS(text) is not None
            return not self._is_call
        return False


class Shown:
    """Follow one message. `take` the text before a marker, then ask whether it `shows` the marker."""

    # Most messages are never asked about, or open nothing: attributes with a value here are not set for them.
    is_new: bool  # only blanks were taken
    _pending: list[str]  # text that was taken and not read
    _marks = Marks()
    _items: tuple[int, ...] = ()  # the columns where the content of the open list items begins
    _inside: _ShownCall | None = None
    _tag_closes: Closes | None = None  # inside a tag that shows its content: the search for what closes it
    _fence: _Fence | None = None
    _diff: Literal["", "old file", "open"] = ""  # the last line named the old file of a diff; a diff is open
    _code = False  # the last line that was not empty was indented code
    # The lines before this one: none with text; text; text and an empty line.
    _before: Literal["", "text", "empty"] = ""
    _messages = 0  # how many messages were opened by markers that are shown
    # Of the current line:
    _begun = False  # it holds more than blanks
    _indent = 0
    # It is shown whatever it holds ("quote": nothing in it opens or closes anything), is in a fence, or is a heading.
    _line: Literal["", "quote", "record", "fenced", "heading"] = ""
    _edge: _Fence | None = None  # the fence that it opens or closes, unless text follows in the line

    def __init__(self) -> None:
        self.is_new = True
        self._pending = []

    # -- queries -------------------------------------------------------------------------------------------------------

    def shows(self, level: int = OUTSIDE, *, special: bool = False) -> bool:
        """Return whether the text so far only shows the marker that comes next, so that it is text.

        `level`: that of the marker, such as `CALL`. A shown opener that is not closed shows every marker of a deeper
        level; a marker of any other level ends it, and the text behind it is then read like any other before the
        answer. `special`: the marker is a special token, which may follow the run that closes a fence.
        """
        self._catch_up()
        if self._inside is not None:
            if self._inside.holds(level):
                return True
            # The shown opener was not closed: what follows it is text like any other.
            inside, self._inside = self._inside, None
            self._read("".join(inside.text))
        if self._tag_closes is not None or self._line in ("quote", "record") or self._diff == "open" or self._marks:
            return True
        if self._fence is not None:
            return not (special and self._edge is not None)
        if self._edge is not None:
            return True
        return not self._begun and self._is_code()

    def is_closing(self, marker: str) -> bool:
        """Return whether this marker closes the shown opener that is open. Nothing changes: the opener stays open."""
        self._catch_up()
        return self._inside is not None and self._inside.closes(marker, 0) is not None

    def is_result_over(self, marker: str) -> bool:
        """Return whether this marker, which ends a turn, also closes the tool's result that is open, if that began with
        a label such as `✿RESULT✿`. False for a result that nothing closes (`Observation:`). Nothing is closed here."""
        self._catch_up()
        closes = self._tag_closes
        return closes is not None and closes in _LABEL_CLOSES.values() and closes(marker, 0) is not None

    @property
    def in_fence(self) -> bool:
        """Return whether a code fence is open. One that the current line opens or closes counts when that line has
        ended."""
        self._catch_up()
        return self._fence is not None

    # -- text and markers ----------------------------------------------------------------------------------------------

    def take(self, text: str) -> None:
        """Add more of the message's text, which is read when a query needs it. Text that is not blank unsets
        `is_new`."""
        if self.is_new and text.strip(" \t\r\n"):
            self.is_new = False
        self._pending.append(text)

    def continue_line(self) -> None:
        """Record that the text that follows does not begin a line, because a call is before it."""
        self.is_new = False
        self._begun = True

    def enter_message(self) -> None:
        """Record that the marker that was taken last is shown and opens a message, which a shown closing marker may
        end."""
        self._messages += 1

    def leave_message(self) -> bool:
        """Return whether a message is open that a shown marker opened (`enter_message`), and count one message less
        then: its closing marker, which comes next, is shown too."""
        if not self._messages:
            return False
        self._messages -= 1
        return True

    def ignore_marker(self) -> None:
        """Record that the piece that was taken last is a shown marker: no character in it opens or closes anything.
        Does nothing if that piece was read already."""
        if self._pending:
            self._pending[-1] = "x"

    def join_lines(self) -> None:
        """Record that the piece that was taken last is a shown marker: an empty line in it ends no paragraph. Does
        nothing if that piece was read already."""
        if self._pending and "\n" in (marker := self._pending[-1]):
            self._pending[-1] = _EMPTY_LINES("\n", marker)

    def enter(self, level: int, closes: Closes | None) -> None:
        """Record that the opener of this level that was taken last is shown: so is the text up to what `closes` finds.
        Does nothing inside another shown opener, or if nothing closes it."""
        self._catch_up()
        if closes is not None and self._inside is None:
            self._inside = _ShownCall(level, closes)

    def begin_result(self, marker: str) -> None:
        """Record a special token that was parsed as a marker. If it begins the result of a tool, what follows is shown
        up to the end of the result, and `is_new` is unset; any other token ends a result, or a tag that shows its
        content, that is open. Text that was taken is not read before."""
        self._tag_closes = RESULTS.get(marker.strip().lower())
        if self._tag_closes is not None:
            self.is_new = False

    def end_quotations(self, header: str) -> None:
        """End open quotations if `header`, the beginning of another message, begins with a line break or is the first
        of its line without blanks before it. Nothing changes in a code span: code may still show the header."""
        self._catch_up()
        if self._marks.open and not self._marks.span and (header[0] == "\n" or not (self._begun or self._indent)):
            self._marks.end()

    # -- reading -------------------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Read the text that was taken and not read. What is inside a shown opener is only collected, and a partial tag
        at the end may wait (`_read`)."""
        if not self._pending:
            return
        text = "".join(self._pending)
        self._pending.clear()
        if self._inside is not None:
            text = self._read_inside(self._inside, text)
        if text:
            self._read(text)

    def _read_inside(self, inside: _ShownCall, text: str) -> str:
        """Add text to that of the shown opener `inside`, and return what is not inside it, to be read as usual: "" if
        the opener is still open; if it was only mentioned in prose, all text behind it; else the text behind its
        closing marker, and the text before that is skipped (`Marks.skip`); then `_begun` is set. In both last cases no
        opener is open any more."""
        if inside.is_prose(text):
            self._inside = None
            return "".join(inside.text) + text
        closed = inside.closes(text, 0)
        if closed is None:
            inside.text.append(text)
            return ""
        self._inside, self._begun = None, True
        self._make_marks()
        self._marks.skip("".join(inside.text) + text[: closed.start()])
        return text[closed.end() :]

    def _read(self, text: str) -> None:
        """Read text and update what is open: the fast way if nothing is open or shown and nothing in it can open
        anything, else line by line. In the second case a partial tag at its end waits in `_pending`, unless a tag or
        result is open."""
        is_open = self._marks or self._items or self._tag_closes or self._fence or self._edge or self._diff
        is_shown = self._code or self._line in ("quote", "record") or (not self._begun and self._is_code())
        if not (is_open or is_shown or _INTEREST(text)):
            self._read_plain(text)
            return
        self._make_marks()
        if self._tag_closes is None and (end := unfinished(text)) < len(text):
            # The text ends in what may become a tag: it is read when more of it has arrived.
            self._pending.append(text[end:])
            text = text[:end]
        self._walk(text)

    def _make_marks(self) -> None:
        """Give the message its own `Marks`, unless it has them: the instance on the class is shared and must not
        change."""
        if self._marks is Shown._marks:
            self._marks = Marks()

    def _read_plain(self, text: str) -> None:
        """Update the state of lines (`_before`, `_begun`, `_indent`) for text that opens and closes nothing. A line
        break in it also resets `_line`, and sets `_before` for the lines before its last one; else that stays."""
        before, broken, line = text.rpartition("\n")
        if broken:
            solid = before.rstrip(" \r\n")
            has_text = bool(self._before or self._begun or solid)
            is_empty = "\n" in before[len(solid) :] or not (solid or self._begun)
            self._before = "" if not has_text else "empty" if is_empty else "text"
            self._start_line()
        if line.strip():
            self._begun = True
        elif line and not self._begun:
            self._indent = columns(self._indent, line)

    def _walk(self, text: str) -> None:
        """Read text line by line and update what is open. In a tag or a result that is shown, only what closes it is
        searched for, and lines do not count: what follows continues a line (`_begun`). A run of backticks opens no
        fence any more if more of its line arrives with a backtick."""
        at, size = 0, len(text)
        while at < size:
            if self._tag_closes is not None:
                found = self._tag_closes(text, at)
                if found is None:
                    self._begun = True
                    return
                self._tag_closes, self._begun, at = None, True, found.end()
                continue
            end = text.find("\n", at)
            stop = size if end < 0 else end
            if not self._begun:
                at = self._begin_line(text, at, stop)
            elif self._edge is not None and self._line != "fenced" and self._edge.char == "`" and "`" in text[at:stop]:
                self._edge = None  # such an info string holds no backtick: it was a code span
            if at < stop:
                at = self._read_line(text, at, stop)
            if at == stop and end >= 0:
                self._end_line()
                at = end + 1

    def _read_line(self, text: str, at: int, stop: int) -> int:
        """Read a line from index `at` up to `stop`, or up to a tag that shows its content, which is recorded in
        `_tag_closes` (None without one). A line of a block quote, a diff, code or a fence is passed over, nothing in it
        opens, but text behind the run that closes a fence unsets `_edge`. Return the index that was reached."""
        if self._line in ("quote", "fenced"):
            if self._edge is not None and text[at:stop].strip():
                self._edge = None  # text behind the run: it closes nothing
            return stop
        at, self._tag_closes = self._marks.walk(text, at, stop)
        return at

    def _begin_line(self, text: str, at: int, stop: int) -> int:
        """Read the beginning of a line: its indentation (`_indent`), list items, and what kind of line it is; set
        `_begun`. In a fence only its closing run counts, in a diff nothing; else set `_code` (a fence that begins in
        the content of a list item is no indented code). Return the index from which the line is read on, `stop` if
        nothing in it can open anything. If it has only blanks so far, only update `_indent`, and return `stop`."""
        blanks = BLANKS(text, at, stop)
        assert blanks is not None
        self._indent = columns(self._indent, blanks.group())
        at = blanks.end()
        if at == stop:
            return at
        self._begun = True
        self._marks.begin_line(is_indented=blanks.end() > blanks.start())
        if self._fence is not None:
            return self._read_in_fence(self._fence, text, at, stop)
        if self._diff == "open":
            return self._show_line(stop)
        self._leave_items()
        base = self._content_column
        if self._is_code() and not (base and self._indent - base < _CODE and RUN(text, at, stop)):
            self._code = True
            return self._show_line(stop)
        self._code = False
        at = self._read_items(text, at, stop)
        return self._classify(text, at, stop) if at < stop else at

    def _is_code(self) -> bool:
        """Return whether a line that begins in the current column is indented code: at least four columns, behind other
        indented code or an empty line with text before it."""
        return self._indent >= _CODE and (self._code or self._before == "empty")

    def _read_in_fence(self, fence: _Fence, text: str, at: int, stop: int) -> int:
        """Read the beginning of a line inside `fence` and set `_line` to "fenced". If the run that closes the fence is
        at `at`, set `_edge` to `fence` and return the index behind the run: the fence ends with the line, unless text
        follows. Else return `stop`."""
        run = RUN(text, at, stop)
        self._line = "fenced"
        if run is None or run[0][0] != fence.char or len(run[0]) < fence.size or self._indent - fence.base >= _CODE:
            return stop
        self._edge = fence
        return run.end()

    def _read_items(self, text: str, at: int, stop: int) -> int:
        """Read the marks of the list items that begin here, one inside the other, at most eight, and open these items
        in `_items`; they end the paragraph, and `_indent` is the column behind the last mark then. Return the index
        behind their marks, `at` without any."""
        for _ in range(MOST_ITEMS):
            found = _ITEM(text, at, stop)
            if found is None or at == stop:
                break
            self._marks.end()
            self._leave_items()
            self._indent = columns(self._indent, found.group())
            self._items += (self._indent,)
            at = found.end()
        return at

    @property
    def _content_column(self) -> int:
        """Return the column where the content of the innermost open list item begins; 0 outside of lists."""
        return self._items[-1] if self._items else 0

    def _leave_items(self) -> None:
        """End the list items whose content begins further right than the current column."""
        items = self._items
        while items and items[-1] > self._indent:
            items = items[:-1]
        self._items = items

    def _show_line(self, stop: int) -> int:
        """Mark the line as shown whatever it holds, and return `stop`, its end."""
        self._line = "quote"
        return stop

    def _classify(self, text: str, at: int, stop: int) -> int:
        """Recognize a block quote, fence, diff, record or heading by the beginning of its line at index `at`, and
        record it in `_line` (a quote or a diff as "quote"), `_edge` or `_diff`; `--- name` is recorded there as "old
        file", so that `+++ name` in the next line opens a diff. A quote, a diff and a heading end the paragraph. A run
        with a backtick in its info string, or indented four columns, opens no fence. Return the index from which the
        line is read on: `stop` for a block quote or a diff, in which nothing opens, else `at`."""
        marks, char = self._marks, text[at]
        if char == ">":
            marks.end()
            return self._show_line(stop)
        if char in "`~" and (run := RUN(text, at, stop)) is not None:
            base = self._content_column
            info = text[run.end() : stop]
            # With a backtick in its info string it is a code span.
            is_fence = self._indent - base < _CODE and not (char == "`" and char in info)
            self._edge = _Fence(char, len(run[0]), base) if is_fence else None
            return at
        if DIFF(text, at, stop) or (self._diff == "old file" and PLUS(text, at, stop)):
            marks.end()
            self._diff = "open"
            return self._show_line(stop)
        self._diff = "old file" if MINUS(text, at, stop) else ""
        self._line = "record" if RECORD(text, at, stop) else ""
        if char == "#" and HEADING(text, at, stop):
            marks.end()
            self._line = "heading"
        return at

    def _start_line(self) -> None:
        """Reset what is known of the current line."""
        self._begun, self._indent, self._line, self._edge = False, 0, "", None

    def _end_line(self) -> None:
        """End a line: open or close the fence in `_edge`, end the paragraph behind an empty line, a fence or a heading,
        set `_before`, and reset what is known of the line. An empty line without blanks also ends a diff, any empty
        line forgets an "old file". `_before` stays "" until a line has text."""
        marks = self._marks
        if self._edge is not None:
            self._fence = self._edge if self._fence is None else None
            marks.end()
        if self._begun:
            self._before = "text"
        else:
            marks.end()
            self._before = "empty" if self._before else ""
            self._diff = "open" if self._diff == "open" and self._indent > 0 else ""
        if self._line == "heading":
            marks.end()
        self._start_line()
        marks.begin_line()


def shows(text: str) -> bool:
    """Return whether this text, from the beginning of a message, only shows a marker that follows it."""
    shown = Shown()
    shown.take(text)
    return shown.shows()


# -- code fences of a whole text ---------------------------------------------------------------------------------------


def only_fence(text: str) -> str | None:
    """Return the content, without white space around it, of the one code fence that a text consists of; None for any
    other text, and for a fence with `<` or its own character in its first line or that is not closed. "" for a fence
    without content. The line break before the closing run may be missing (beyondessential/tupaia#6570)."""
    text = text.strip()
    run = RUN(text, 0)
    first, _, body = text.partition("\n")
    if run is None or not body or run[0][0] in first[run.end() :] or "<" in first:
        return None  # a marker in its first line says that it is something else
    edge = re.compile(rf"^ {{0,3}}+{run[0][0]}{{{len(run[0])},}}+[ \t]*+$", re.M)
    closed = edge.search(body)
    if closed is None:
        inner = body.rstrip(run[0][0])
        return inner.strip() if len(body) - len(inner) == len(run[0]) else None
    return body[: closed.start()].strip() if closed.end() == len(body) else None


def last_fence(text: str) -> int:
    """Return the index of the first character that is not blank in the line that opens the last code fence of a text;
    -1 if it has none. A line without a line break opens none."""
    shown, last, at, was = Shown(), -1, 0, False
    for line in text.splitlines(keepends=True):
        shown.take(line)
        if shown.in_fence and not was:
            last = BLANKS(line).end() + at  # type: ignore[union-attr]
        was = shown.in_fence
        at += len(line)
    return last
