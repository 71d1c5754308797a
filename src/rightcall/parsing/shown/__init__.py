"""What text only shows: nothing that is shown is called. The machine, rescue and every format ask here.

Shown is: code (fences and spans as CommonMark has them, four blanks or a tab behind an empty line), what stands in
quotation marks, in a block quote, in a diff, between HTML tags that show their content or between the markers of a
tool's result; a line of a numbered file, of a transcript or of a log; and what stands inside an opener that is shown.

Whether a place is shown depends on the text before it alone, so that neither more text nor another cut changes the
answer: what was opened shows until it is closed. A span or a quotation that is not closed ends with its paragraph,
everything ends with its message. Text is only looked at when somebody asks, and once.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rightcall.parsing.shown.line_starts import (
    BLANKS,
    DIFF,
    HEADING,
    MINUS,
    MOST_ITEMS,
    PLUS,
    RECORD,
    RUN,
    columns,
    item,
)
from rightcall.parsing.shown.marks import Marks
from rightcall.parsing.shown.raw import Closes, ends_told, result_closing, unfinished

# How far out what opens stands: a section around calls, a call, its body. What is no opener of a call is outside all.
OUTSIDE, SECTION, CALL, BODY, INNERMOST = range(5)
_CODE = 4  # columns
# The first look at a text in which nothing is open: most hold nothing that shows anything.
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


class _Inside(NamedTuple):
    """What stands behind an opener that is shown, up to what closes it."""

    level: int
    closes: Closes


class Shown:
    """Follows one message. `take` the text before a marker, then ask whether it `shows` the marker."""

    # Most messages are never asked about, or hold nothing of interest: what is not said here is not made for them.
    is_new: bool  # nothing but blanks was taken: nothing is shown
    _marks = Marks()
    _items: tuple[int, ...] = ()  # the columns where the content of the open list items begins
    _kept: list[str]  # the text inside a shown opener
    _inside: _Inside | None = None
    _sure = False  # a body follows that opener: prose does not only mention it
    _raw: Closes | None = None  # inside a tag: what closes it
    _fence: _Fence | None = None
    _diff = False
    _code = False  # the last line that was not empty was indented code
    _has_text = False  # there was a line before this one that is not empty
    _after_empty = False
    _minus = False  # the last line named the old file of a diff
    messages = 0  # how many messages were opened by markers that are shown
    # Of the line:
    _begun = False  # there is more than blanks in it
    _indent = 0
    _line = False  # it is shown, whatever stands in it
    _skip = False  # nothing in it opens or closes anything
    _heading = False
    _edge: _Fence | None = None  # the fence that it opens or closes, if nothing speaks against it

    def __init__(self) -> None:
        self.is_new = True
        self._pending: list[str] = []  # taken, and not looked at

    def _start_line(self) -> None:
        self._begun = self._line = self._skip = self._heading = False
        self._indent = 0
        self._edge = None

    # -- asked ---------------------------------------------------------------------------------------------------------

    def take(self, text: str) -> None:
        """More of the text."""
        if self.is_new and text.strip(" \t\r\n"):
            self.is_new = False
        self._pending.append(text)

    def shows(self, level: int = OUTSIDE, *, special: bool = False) -> bool:
        """Does the text so far only show the marker that comes next? `level` is how far out that stands. Behind the run
        that closes a fence a special token may stand: it is no text."""
        self._catch_up()
        if self._inside is not None:
            if level > self._inside.level:
                self._sure = True
                return True
            self._leave()
        if self._raw is not None or self._line or self._diff or self._marks:
            return True
        if self._fence is not None:
            return not (special and self._edge is not None)
        if self._edge is not None:
            return True
        return not self._begun and self._is_code()

    def go_on(self) -> None:
        """The text that comes does not begin a line: a call stands before it."""
        self.is_new = False
        self._begun = True

    def pass_marker(self) -> None:
        """The piece that was taken last is a marker that is shown: nothing in it opens or closes anything."""
        if self._pending:
            self._pending[-1] = "x"

    def join_lines(self) -> None:
        """The piece that was taken last is a marker that is shown: an empty line in it ends no paragraph."""
        if self._pending and "\n" in (marker := self._pending[-1]):
            self._pending[-1] = _EMPTY_LINES("\n", marker)

    def enter(self, level: int, closes: Closes | None) -> None:
        """The opener that was taken last is shown: so is what stands in it."""
        self._catch_up()
        if closes is not None and self._inside is None:
            self._inside, self._sure, self._kept = _Inside(level, closes), False, []

    def is_closing(self, marker: str) -> bool:
        """Does this marker close an opener that is shown?"""
        self._catch_up()
        return self._inside is not None and self._inside.closes(marker, 0) is not None

    def begin_result(self, marker: str) -> None:
        """A special token was taken for a marker: it may begin the result of a tool."""
        self._raw = result_closing(marker)
        if self._raw is not None:
            self.is_new = False

    def is_result_over(self, marker: str) -> bool:
        """Does this marker, which ends a turn, end a result?"""
        self._catch_up()
        return ends_told(self._raw, marker)

    def end_quotations(self, header: str) -> None:
        """The header of another message comes next. On a line of its own it ends the quotations before it; code may
        still show it."""
        self._catch_up()
        if self._marks.open and not self._marks.span and (header[0] == "\n" or not (self._begun or self._indent)):
            self._marks.end()

    @property
    def in_fence(self) -> bool:
        """Does a line that begins here stand in a code fence?"""
        self._catch_up()
        return self._fence is not None

    # -- followed ------------------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        if not self._pending:
            return
        text = "".join(self._pending)
        self._pending.clear()
        if self._inside is not None:
            text = self._follow(self._inside, text)
        if text:
            self._read(text)

    def _read(self, text: str) -> None:
        if self._is_calm() and not _INTEREST(text):
            self._pass(text)
            return
        self._make_marks()
        if self._raw is None and (end := unfinished(text)) < len(text):
            # Somebody asks in the middle of what may become a tag: it is looked at when there is more of it.
            self._pending.append(text[end:])
            text = text[:end]
        self._walk(text)

    def _make_marks(self) -> None:
        """Those of the class are nobody's: a message has its own as soon as something may open one."""
        if self._marks is Shown._marks:
            self._marks = Marks()

    def _follow(self, inside: _Inside, text: str) -> str:
        """Text inside a shown opener. Gives what stands behind its end."""
        if not self._sure and text.strip():
            self._sure = _FOLLOWS(text) is not None
            if not self._sure:
                self._inside = None
                return "".join(self._kept) + text
        closed = inside.closes(text, 0)
        if closed is None:
            self._kept.append(text)
            return ""
        self._inside, self._begun = None, True
        self._make_marks()
        self._marks.pass_over("".join(self._kept) + text[: closed.start()])
        return text[closed.end() :]

    def _leave(self) -> None:
        """What was taken for the inside of an opener was not closed: it is text like any other."""
        if self._inside is not None:
            self._inside = None
            self._read("".join(self._kept))

    def _is_calm(self) -> bool:
        if self._marks or self._items or self._raw or self._fence or self._edge:
            return False
        if self._diff or self._code or self._line or self._minus:
            return False
        return self._begun or not self._is_code()

    def _pass(self, text: str) -> None:
        """Text that opens nothing."""
        before, broken, line = text.rpartition("\n")
        if broken:
            solid = before.rstrip(" \r\n")
            self._has_text = self._has_text or self._begun or bool(solid)
            self._after_empty = "\n" in before[len(solid) :] or not (solid or self._begun)
            self._start_line()
        if line.strip():
            self._begun = True
        elif not self._begun:
            self._indent = columns(self._indent, line)

    def _walk(self, text: str) -> None:
        at, size = 0, len(text)
        while at < size:
            if self._raw is not None:
                found = self._raw(text, at)
                if found is None:
                    self._begun = True
                    return
                self._raw, self._begun, at = None, True, found.end()
                continue
            end = text.find("\n", at)
            stop = size if end < 0 else end
            if not self._begun:
                at = self._begin(text, at, stop)
            elif self._edge is not None and not self._skip and self._edge.char == "`" and "`" in text[at:stop]:
                self._edge = None  # such an info string holds no backtick: it was a code span
            if at < stop:
                at = self._go_on(text, at, stop)
            if at == stop and end >= 0:
                self._end_line()
                at = end + 1

    def _go_on(self, text: str, at: int, stop: int) -> int:
        """The rest of a line."""
        if self._skip:
            if self._edge is not None and text[at:stop].strip():
                self._edge = None  # text behind the run: it closes nothing
            return stop
        at, self._raw = self._marks.walk(text, at, stop)
        return at

    def _begin(self, text: str, at: int, stop: int) -> int:
        """The beginning of a line: gives where the rest of it begins."""
        blanks = BLANKS(text, at, stop)
        assert blanks is not None
        self._indent = columns(self._indent, blanks.group())
        at = blanks.end()
        if at == stop:
            return at
        self._begun = True
        self._marks.last = "\n" if blanks.end() == blanks.start() else " "
        if self._fence is not None:
            return self._in_fence(self._fence, text, at, stop)
        if self._diff:
            return self._all_shown(stop)
        self._leave_items()
        base = self._items[-1] if self._items else 0
        if self._is_code() and not (base and self._indent - base < _CODE and RUN(text, at, stop)):
            self._code = True
            return self._all_shown(stop)
        self._code = False
        at = self._list(text, at, stop)
        return self._classify(text, at, stop) if at < stop else at

    def _is_code(self) -> bool:
        """Is a line code that begins in this column?"""
        return self._indent >= _CODE and (self._code or (self._after_empty and self._has_text))

    def _in_fence(self, fence: _Fence, text: str, at: int, stop: int) -> int:
        run = RUN(text, at, stop)
        self._skip = True
        if run is None or run[0][0] != fence.char or len(run[0]) < fence.size or self._indent - fence.base >= _CODE:
            return stop
        self._edge = fence
        return run.end()

    def _list(self, text: str, at: int, stop: int) -> int:
        """The items of lists that begin here, one in the other."""
        for _ in range(MOST_ITEMS):
            found = item(text, at, stop)
            if found is None or at == stop:
                break
            self._marks.end()
            self._leave_items()
            self._indent = columns(self._indent, found.group())
            self._items += (self._indent,)
            at = found.end()
        return at

    def _leave_items(self) -> None:
        """A line that begins further left than the content of a list item is not in it."""
        items = self._items
        while items and items[-1] > self._indent:
            items = items[:-1]
        self._items = items

    def _all_shown(self, stop: int) -> int:
        self._line = self._skip = True
        return stop

    def _classify(self, text: str, at: int, stop: int) -> int:
        marks, char = self._marks, text[at]
        if char == ">":
            marks.end()
            return self._all_shown(stop)
        if char in "`~" and (run := RUN(text, at, stop)) is not None:
            self._edge = self._opened(char, len(run[0]), text[run.end() : stop])
            return at
        if DIFF(text, at, stop) or (self._minus and PLUS(text, at, stop)):
            marks.end()
            self._diff = True
            return self._all_shown(stop)
        self._minus = MINUS(text, at, stop) is not None
        self._line = RECORD(text, at, stop) is not None
        if char == "#" and HEADING(text, at, stop):
            marks.end()
            self._heading = True
        return at

    def _opened(self, char: str, size: int, info: str) -> _Fence | None:
        """The fence that a line opens. With a backtick in its info string it is a code span."""
        base = self._items[-1] if self._items else 0
        if self._indent - base >= _CODE or (char == "`" and char in info):
            return None
        return _Fence(char, size, base)

    def _end_line(self) -> None:
        marks = self._marks
        if self._edge is not None:
            self._fence = self._edge if self._fence is None else None
            marks.end()
        if self._begun:
            self._has_text, self._after_empty = True, False
        else:
            marks.end()
            self._after_empty, self._minus = True, False
            self._diff = self._diff and self._indent > 0
        if self._heading:
            marks.end()
        self._start_line()
        marks.last = "\n"


def shows(text: str) -> bool:
    """Does a text only show what comes behind it?"""
    shown = Shown()
    shown.take(text)
    return shown.shows()


def _make_the_first() -> None:
    """Python keeps an attribute beside its object only where one of the first objects of the class had it; else every
    object that gets it becomes slow. This one has them all."""
    first = Shown()
    for name, value in [*vars(Shown).items()]:
        if not (callable(value) or name.startswith("__") or isinstance(value, property)):
            setattr(first, name, value)


_make_the_first()
