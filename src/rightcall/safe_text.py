r"""Make untrusted text safe to display: nothing in it can control a terminal, reorder a line, or be invisible.

visible("a\\x1b[2Jb\\u202e")  # 'a\\\\x1b[2Jb\\\\u202e'
"""

from __future__ import annotations

import unicodedata

# Invisible characters whose category is letter or mark: fillers, joiners, variation selectors, the empty Braille cell.
# Format, control, surrogate, private and unassigned characters and odd spaces are recognized by their category.
_INVISIBLE = frozenset(
    (
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
        *(*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
    )
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class _Escapes(dict[int, str]):
    """A table for `str.translate`; the replacement of a character is computed at first use."""

    def __missing__(self, code: int) -> str:
        """Return the replacement of the character with this code point, and store it."""
        shown = self[code] = _escape(code)
        return shown


def _escape(code: int) -> str:
    """Return the character of this code point, or its Python escape if it is invisible or controls the display."""
    char = chr(code)
    category = unicodedata.category(char)
    if char == " " or not (category[0] in "CZ" or code in _INVISIBLE):
        return char
    if char in _SHORT:
        return _SHORT[char]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ONE_LINE = _Escapes()
_LAYOUT = _Escapes({10: "\n", 9: "\t"})


def visible(text: str, *, one_line: bool = False) -> str:
    """Return the text with control, bidirectional, zero-width and other invisible characters escaped.

    Line breaks and tabs are kept unless `one_line` is set. The result can always be encoded as UTF-8.
    """
    return text.translate(_ONE_LINE if one_line else _LAYOUT)


def brief(text: str, most: int = 160) -> str:
    """Return the first `most` characters on one line with invisible ones escaped, and ` … (N more)` if the text is
    longer. The result may be longer than `most`."""
    if len(text) <= most:
        return visible(text, one_line=True)
    return visible(text[:most], one_line=True) + f" … ({len(text) - most} more)"


def percent(rate: float) -> str:
    """Return a rate (0 to 1) as percent with one decimal, such as `12.5 %`. `0 %` and `100 %` are returned only for
    exact values, else `< 0.1 %` and `> 99.9 %`."""
    shown = f"{100 * rate:.1f}"
    if shown == "0.0" and rate > 0:
        return "< 0.1 %"
    if shown == "100.0" and rate < 1:
        return "> 99.9 %"
    return f"{shown.removesuffix('.0') if shown in ('0.0', '100.0') else shown} %"
