"""Pieces of a grammar as the text of a regular expression, as Rust and Python read it.

Repeat(chars((0x30, 0x39)), 1)  ->  [0-9]+
"""

from __future__ import annotations

from functools import lru_cache

from rightcall.shapes.algebra import Alt, Chars, Lexeme, Lit, Node, Repeat, Seq, Token, inverse

_SPECIAL = set("\\.+*?()|[]{}^$#&-~/\"' ")


@lru_cache(4096)
def regex_text(node: Node) -> str:
    """A regular expression as Rust and Python read it. The node must be regular."""
    match node:
        case Lit(text) | Token(text):
            return "".join(map(regex_char, text))
        case Chars(spans):
            return _class(spans)
        case Seq(items):
            return "".join([f"(?:{regex_text(item)})" if type(item) is Alt else regex_text(item) for item in items])
        case Alt(items):
            return "|".join([regex_text(item) for item in items])
        case Repeat(item, least, most):
            return _group(item) + _times(least, most)
        case Lexeme(item):
            return regex_text(item)
    raise TypeError(type(node).__name__)


def regex_char(char: str) -> str:
    if char in _SPECIAL:
        return f"\\x{ord(char):02x}" if char in "/\"' -&~#" else "\\" + char
    code = ord(char)
    if 0x20 <= code < 0x7F:
        return char
    return f"\\x{code:02x}" if code < 0x80 else char if char.isprintable() else f"\\U{code:08x}"


def _group(node: Node) -> str:
    text = regex_text(node)
    return text if type(node) is Chars or (type(node) is Lit and len(node.text) == 1) else f"(?:{text})"


def _times(least: int, most: int | None) -> str:
    known = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return known.get((least, most)) or (
        f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
    )


@lru_cache(4096)
def _class(spans: tuple[tuple[int, int], ...]) -> str:
    if not spans:
        return "[^\\x00-\\U0010ffff]"
    if spans[0][0] == 0 and spans[-1][1] == 0x10FFFF:
        gaps = inverse(Chars(spans)).spans
        return "[^" + "".join(map(_span, gaps)) + "]" if gaps else "(?s:.)"
    return "[" + "".join(map(_span, spans)) + "]"


def _span(span: tuple[int, int]) -> str:
    low, high = span
    return _point(low) if low == high else f"{_point(low)}-{_point(high)}"


def _point(code: int) -> str:
    char = chr(code)
    if char.isascii() and char.isalnum():
        return char
    return f"\\x{code:02x}" if code < 0x80 else f"\\U{code:08x}"


def anywhere(texts: tuple[str, ...]) -> str:
    """Matches a text that holds one of these."""
    return "(?s:.*)(?:" + "|".join([regex_text(Lit(text)) for text in texts]) + ")(?s:.*)"
