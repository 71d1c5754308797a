"""Patterns of JSON Schema as grammar nodes, and the patterns of the common values of `format`.

The supported subset: literals, `.`, classes, `\\d \\w \\s` and their opposites, escapes, groups, `| * + ? {m,n}`, lazy
or not, and `^` and `$` where a branch begins or ends. Look-around, back-references, `\\b` and `\\p` are not supported.
Where engines read a construct differently, the narrower reading is used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from rightcall.constrain.algebra import (
    ANY,
    DIGIT,
    EMPTY,
    Alt,
    Chars,
    Lexeme,
    Lit,
    Node,
    Repeat,
    Seq,
    alt,
    both,
    chars,
    inverse,
    minus,
    repeat,
    seq,
)

MAX_PATTERN = 4_096  # characters
MAX_REPEAT = 1_000
MAX_COPIES = 2_000  # what counted repeats inside each other may come to

_WORD = chars((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A), "_")
# White space and line terminators of ECMA-262, by which `check` reads patterns too.
_SPACE = chars((0x09, 0x0D), " \xa0\u1680", (0x2000, 0x200A), "\u2028\u2029\u202f\u205f\u3000\ufeff")
_DOT = inverse(chars("\n\r\u2028\u2029"))  # the line terminators of ECMA-262; `check` excludes only "\n"
_CLASSES = {
    "d": DIGIT,
    "D": inverse(DIGIT),
    "w": _WORD,
    "W": inverse(_WORD),
    "s": _SPACE,
    "S": inverse(_SPACE),
}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
ANY_TEXT = Repeat(ANY)
# What some engine may read as `{m,n}`: only ASCII digits count, and Rust's engine ignores white space.
_COUNTS = re.compile(r"\{\s*+([0-9]*+)\s*+(,?+)\s*+([0-9]*+)\s*+\}")


class Irregular(Exception):
    """The pattern is outside the supported subset; the message gives the reason."""


def read_pattern(pattern: str) -> Node:
    """Return the node of the texts that match a pattern; without anchors, any text may be before and after the
    match. Raises `Irregular` for a pattern outside the supported subset."""
    if len(pattern) > MAX_PATTERN:
        raise Irregular(f"longer than {MAX_PATTERN} characters")
    return _parse_pattern(pattern)


@lru_cache
def read_format(name: str) -> Node:
    """Return the node of the texts of a `format`, which must be a key of `FORMAT_PATTERNS` (KeyError)."""
    return _parse_pattern(FORMAT_PATTERNS[name])


def _parse_pattern(pattern: str) -> Node:
    """Return the node of the texts that match a pattern of any length. Raises `Irregular` for one outside the supported
    subset, and if its counted repeats are too long when written out."""
    reader = _PatternReader(pattern)
    node = reader.branches(top=True)
    if reader.at < len(pattern):
        raise Irregular(f"unmatched {pattern[reader.at]!r}")
    if copies(node) > MAX_COPIES:
        raise Irregular(f"longer than {MAX_COPIES:,} characters with its counted repeats written out")
    return node


def copies(node: Node) -> int:
    """Return the length of a node with all counted repeats written out: each literal counts its characters, any other
    leaf one. A repeat without an upper limit counts its minimum, at least one."""
    match node:
        case Seq(items) | Alt(items):
            return sum(map(copies, items))
        case Repeat(item, least, most):
            return max(least, most or 1, 1) * copies(item)
        case Lexeme(item):
            return copies(item)
        case Lit(text):
            return len(text)
    return 1


class _PatternReader:
    """Parses a pattern by recursive descent: each method reads on from `at`, and raises `Irregular` for a construct
    outside the supported subset."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def peek(self) -> str:
        """Return the next character without reading it; "" at the end."""
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        """Read one character and return it. Raises `Irregular` at the end."""
        char = self.peek()
        if not char:
            raise Irregular("the pattern ends unexpectedly")
        self.at += 1
        return char

    def skip(self, text: str) -> bool:
        """Read this text and return True if it is next; otherwise read nothing and return False."""
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def branches(self, *, top: bool = False) -> Node:
        """Read alternatives separated by `|`, up to `)` or the end, and return the node of any of them. With `top`,
        they are the whole pattern: `^` and `$` are allowed, and where a branch lacks one, any text may be there. Raises
        `Irregular` if an alternative cannot be read."""
        found = [self.branch(top)]
        while self.skip("|"):
            found.append(self.branch(top))
        return alt(*found)

    def branch(self, top: bool) -> Node:
        """Read one alternative, up to `|`, `)` or the end, and return its node. With `top`, `^` and `$` are allowed at
        its ends, and where one is missing, any text may be there. Raises `Irregular` for an anchor elsewhere."""
        begins = top and self.skip("^")
        items: list[Node] = []
        ends = False
        while self.peek() not in ("", "|", ")"):
            if self.peek() == "$":
                self.at += 1
                if not top or self.peek() not in ("", "|", ")"):
                    raise Irregular("'$' is not at the end of a branch")
                ends = True
                break
            items.append(self.piece(top))
        # ^(a|b)$ is usual, and ^(^a$|b)$ is not: anchors in a group are taken only where nothing is around it.
        inner = seq(*items)
        if not top:
            return inner
        return seq(EMPTY if begins else ANY_TEXT, inner, EMPTY if ends else ANY_TEXT)

    def piece(self, top: bool) -> Node:
        """Read an atom and its quantifier, if it has one, and return the node. Raises `Irregular` for a possessive
        quantifier; a lazy one is read like a greedy one."""
        item = self.atom()
        char = self.peek()
        if char in ("*", "+", "?"):
            self.at += 1
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        elif (counts := self.counts()) is not None:
            least, most = counts
        else:
            return item
        if not self.skip("?") and self.peek() == "+":
            raise Irregular("a possessive repeat")
        return repeat(item, least, most)

    def counts(self) -> tuple[int, int | None] | None:
        """Read `{m,n}`, `{m,}` or `{m}` and return both counts (None: no upper limit); None, with nothing read, if no
        quantifier is next. Raises `Irregular` for `{,n}` and for white space in it, for counts that are too large or in
        the wrong order."""
        found = _COUNTS.match(self.text, self.at) if self.peek() == "{" else None
        if found is None or not (found[1] or found[3]):
            return None
        self.at = found.end()
        least, comma, most = found.groups()
        if found[0] != f"{{{least}{comma}{most}}}" or not least:
            raise Irregular(f"{found[0]!r:.20}, which engines read differently")
        return _check_counts(int(least), int(most) if most else None if comma else int(least))

    def atom(self) -> Node:
        """Read one character, `.`, class, escape or group and return its node. Raises `Irregular` for a quantifier or
        `^` in this place: engines disagree about one that follows another, or nothing."""
        start = self.at
        if self.counts() is not None:
            raise Irregular(f"{self.text[start : self.at]!r:.20} is not supported in this position")
        char = self.take()
        if char == "(":
            return self.group()
        if char == "[":
            return self.bracket()
        if char == ".":
            return _DOT
        if char == "\\":
            return self.escape()
        if char in "*+?^":
            raise Irregular(f"{char!r} is not supported in this position")
        return Lit(char)

    def group(self) -> Node:
        """Read a group, whose opening parenthesis is already read, and return the node of its content. Raises
        `Irregular` for look-around, flags, groups that do not end, and too deep nesting."""
        if self.skip("?"):
            if self.skip("<") and self.peek() not in ("=", "!"):
                end = self.text.find(">", self.at)
                if end < 0:
                    raise Irregular("a group's name does not end")
                self.at = end + 1
            elif not self.skip(":"):
                raise Irregular("look-around or a flag")
        self.depth += 1
        if self.depth > 32:
            raise Irregular("groups nested deeper than 32 levels")
        found = self.branches()
        if not self.skip(")"):
            raise Irregular("a group does not end")
        self.depth -= 1
        return found

    def escape(self) -> Node:
        """Read an escape, whose backslash is already read, and return the node of its character or class. Raises
        `Irregular` for one that is not supported."""
        char = self.take()
        if char in _CLASSES:
            return _CLASSES[char]
        return Lit(self.escaped_char(char))

    def escaped_char(self, char: str) -> str:
        """Return the character that a backslash and `char` mean; the digits of a hexadecimal code are read from the
        pattern, and ASCII punctuation means itself. Raises `Irregular` for any other character that is not known, such
        as a letter."""
        if char == "x":
            return self.hex_code(2)
        if char == "u":
            if self.skip("{"):
                end = self.text.find("}", self.at)
                return self.hex_code(end - self.at, closing=1)
            return self.hex_code(4)
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char.isalnum() or not char.isascii():
            raise Irregular(f"the escape \\{char}")
        return char

    def hex_code(self, size: int, closing: int = 0) -> str:
        """Read `size` hexadecimal digits, skip `closing` characters after them, and return the character with this
        code. Raises `Irregular` if the digits are not `size` in number or no valid character."""
        digits = self.text[self.at : self.at + max(size, 0)]
        try:
            number = int(digits, 16) if len(digits) == size and digits.isascii() and digits.isalnum() else -1
        except ValueError:
            number = -1
        if not 0 <= number <= 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            raise Irregular("an escape that is not a valid character")
        self.at += size + closing
        return chr(number)

    def bracket(self) -> Chars:
        """Read a class such as `[^a-z]`, whose opening bracket is already read, and return its set of characters.
        Raises `Irregular` for one that engines read differently, and for an empty one."""
        negative = self.skip("^")
        spans = [*self.spans()]
        while self.peek() != "]":
            spans += self.spans()
        self.at += 1
        if any(self.text.startswith(two, self.at - 3) for two in ("&&", "--")) or not spans:
            raise Irregular("a class that engines read differently")
        found = chars(*spans)
        return inverse(found) if negative else found

    def spans(self) -> Sequence[tuple[int, int] | str]:
        r"""Read a character, a class such as `\d`, or a range inside brackets, and return its spans. Raises `Irregular`
        for `[`, and for a range that ends with a class or is in reverse order."""
        if self.peek() == "[":
            raise Irregular("'[' inside a class")  # nested classes, which engines read differently
        low = self.member()
        if isinstance(low, Chars):
            return low.spans
        if self.peek() != "-" or self.text[self.at + 1 : self.at + 2] in ("]", ""):
            return [low]
        self.at += 1
        high = self.member()
        if isinstance(high, Chars):
            raise Irregular("a class at the end of a range, which engines read differently")
        if high < low:
            raise Irregular("a range in reverse order")
        return [(ord(low), ord(high))]

    def member(self) -> str | Chars:
        r"""Read one character inside brackets and return it; an escape such as `\d` is returned as a set of
        characters. Raises `Irregular` at the end, and for an unknown escape."""
        char = self.take()
        if char != "\\":
            return char
        char = self.take()
        if char in _CLASSES:
            return _CLASSES[char]
        return "\b" if char == "b" else self.escaped_char(char)


def _check_counts(least: int, most: int | None) -> tuple[int, int | None]:
    """Return both counts. Raises `Irregular` if one is too large or they are in the wrong order."""
    if most is not None and most < least:
        raise Irregular("the counts of a repeat are in reverse order")
    if max(least, most or 0) > MAX_REPEAT:
        raise Irregular(f"it repeats something more than {MAX_REPEAT:,} times")
    return least, most


# -- in the escapes of JSON --------------------------------------------------------------------------------------------

_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = chars((0, 0x1F), '"\\')


def escape_in_json(node: Node) -> Node:
    """Return a node for the same texts as they are written between the quotes of a JSON string, each character in one
    spelling: escaped only where needed. A node without fixed texts, such as a reference, is an error of the caller
    (TypeError)."""
    match node:
        case Lit(text):
            return Lit("".join(map(json_char, text)))
        case Chars():
            plain = minus(node, _ESCAPED)
            odd = both(node, _ESCAPED)
            escapes = [Lit(json_char(chr(n))) for low, high in odd.spans for n in range(low, high + 1)]
            return alt(*([plain] if plain.spans else []), *escapes)
        case Seq(items):
            return seq(*map(escape_in_json, items))
        case Alt(items):
            return alt(*map(escape_in_json, items))
        case Repeat(item, least, most):
            return repeat(escape_in_json(item), least, most)
        case Lexeme(item):
            return escape_in_json(item)
    raise TypeError(type(node).__name__)


def json_char(char: str) -> str:
    """Return a character as it is written in a JSON string, escaped where needed."""
    return _SHORT.get(char) or (f"\\u{ord(char):04x}" if ord(char) < 0x20 else char)


_LEAP = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rf"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
)
_OFFSET = r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_FRACTION = r"(?:\.[0-9]+)?"
_CLOCK = (
    rf"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]{_FRACTION}{_OFFSET}"
    rf"|23:59:60{_FRACTION}(?:[Zz]|[+-]00:00))"  # a leap second, only as written in UTC
)
_IN_DAY = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DURATION = rf"P(?:{_IN_DAY}|[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)(?:{_IN_DAY})?)"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN = rf"{_LABEL}(?:\.{_LABEL})*"
# RFC 5891: a label has two hyphens behind two characters only if those are `xn`.
_HOST_LABEL = (
    "(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,2}[A-Za-z0-9])?|[Xx][Nn]--[A-Za-z0-9-]{0,58}[A-Za-z0-9]"
    "|[A-Za-z0-9][A-Za-z0-9-](?:[A-Za-z0-9][A-Za-z0-9-]|-[A-Za-z0-9])[A-Za-z0-9-]{0,58}[A-Za-z0-9])"
)
_HEX = "[0-9a-fA-F]"


def _ipv6() -> str:
    """Return the pattern of an IPv6 address, without anchors: eight groups, where `::` replaces one or more and an IPv4
    address may replace the last two."""
    group = f"{_HEX}{{1,4}}"
    last = f"(?:{group}:{group}|{_IPV4})"
    forms = [f"(?:{group}:){{6}}{last}", f"::(?:{group}:){{5}}{last}"]
    forms += [f"(?:{group}(?::{group}){{0,{n}}})?::(?:{group}:){{{4 - n}}}{last}" for n in range(5)]
    forms += [f"(?:{group}(?::{group}){{0,5}})?::{group}", f"(?:{group}(?::{group}){{0,6}})?::"]
    return f"(?:{'|'.join(forms)})"


_IPV6 = _ipv6()
_WORD_CHAR = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_QUOTED = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'
# RFC 5321 has further tags of addresses in brackets, but only `IPv6` is registered.
_EMAIL = rf"(?:{_WORD_CHAR}(?:\.{_WORD_CHAR})*|{_QUOTED})@(?:{_DOMAIN}|\[{_IPV4}\]|\[[Ii][Pp][Vv]6:{_IPV6}\])"
_URI_CHAR = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%{_HEX}{{2}})"
_HOST = rf"(?:\[(?:{_IPV6}|v{_HEX}+\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%{_HEX}{{2}})*)"
_AUTHORITY = rf"(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%{_HEX}{{2}})*@)?{_HOST}(?::[0-9]*)?"
_PATH = rf"(?:/{_URI_CHAR}*)*"
_ABSOLUTE = rf"/(?:{_URI_CHAR}+{_PATH})?"
_BEHIND_PATH = rf"(?:\?(?:{_URI_CHAR}|[/?])*)?(?:#(?:{_URI_CHAR}|[/?])*)?"
_URI = rf"[A-Za-z][A-Za-z0-9+.-]*:(?://{_AUTHORITY}{_PATH}|{_ABSOLUTE}|{_URI_CHAR}+{_PATH}|){_BEHIND_PATH}"
_FIRST_STEP = rf"(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%{_HEX}{{2}})+"
_RELATIVE = rf"(?://{_AUTHORITY}{_PATH}|{_ABSOLUTE}|{_FIRST_STEP}{_PATH}|){_BEHIND_PATH}"
_POINTER = "(?:/(?:[^/~]|~[01])*)*"

_COUNT = "(?:0|[1-9][0-9]*)"

# The values of `format` that a grammar can assert. JSON Schema does not assert them, and a grammar does only if it is
# asked to (`formats=True`). Each takes every valid value, but for leap seconds with an offset and durations in lower
# case. Where a rule has no short regular expression, it takes a few invalid ones: see `FORMAT_LIMITS`.
FORMAT_PATTERNS: dict[str, str] = {
    "date": f"^{_DATE}$",
    "time": f"^{_CLOCK}$",
    "date-time": f"^{_DATE}[Tt]{_CLOCK}$",
    "duration": f"^{_DURATION}$",
    "email": f"^{_EMAIL}$",
    "hostname": rf"^{_HOST_LABEL}(?:\.{_HOST_LABEL})*$",
    "ipv4": f"^{_IPV4}$",
    "ipv6": f"^{_IPV6}$",
    "uri": f"^{_URI}$",
    "uri-reference": f"^(?:{_URI}|{_RELATIVE})$",
    "json-pointer": f"^{_POINTER}$",
    "relative-json-pointer": f"^{_COUNT}(?:[+-]{_COUNT})?(?:#|{_POINTER})$",
    "uuid": rf"^{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}$",
}
FORMAT_LIMITS: dict[str, str] = {
    "email": "more than 64 characters before the `@`, or 253 after it",
    "hostname": "more than 253 characters, or a label after `xn--` that is no Punycode",
}
