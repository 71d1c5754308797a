"""Damage to the text of a call: brackets, quotes, commas, colons, escapes, numbers, words, blanks, comments, its end.

A way gets the tokens of a text and gives the damaged text back; None where the text has nothing to be damaged so.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from damaged.tokens import Token, joined, partner, places

Parts = list[Token]
Way = Callable[[random.Random, Parts], str | None]

_OTHER = {"}": "]", "]": "}", ")": "]", "{": "[", "[": "{", "(": "["}
_WIDE = str.maketrans("{}[]:,", "｛｝［］：，")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.S)


# -- making ways -------------------------------------------------------------------------------------------------------


def _one(kinds: tuple[str, ...], change: Callable[[str], str | None], only: str = "") -> Way:
    """Another text for one token of these kinds, of those that `only` is found in."""

    def way(dice: random.Random, parts: Parts) -> str | None:
        at = [index for index in places(parts, *kinds) if re.search(only, parts[index].text)]
        if not at:
            return None
        index = dice.choice(at)
        made = change(parts[index].text)
        if made is None or made == parts[index].text:
            return None
        return joined([*parts[:index], Token("other", made), *parts[index + 1 :]])

    return way


def _all(kinds: tuple[str, ...], change: Callable[[str], str]) -> Way:
    """Another text for every token of these kinds."""

    def way(dice: random.Random, parts: Parts) -> str | None:
        made = "".join([change(token.text) if token.kind in kinds else token.text for token in parts])
        return made if made != joined(parts) else None

    return way


def _last(count: int) -> Way:
    """The last closers are left out."""

    def way(dice: random.Random, parts: Parts) -> str | None:
        at = places(parts, "close")[-count:]
        return joined([token for index, token in enumerate(parts) if index not in at]) if len(at) == count else None

    return way


def _behind(kinds: tuple[str, ...], text: str, *, before: bool = False) -> Way:
    """Something put behind (or before) one token of these kinds."""

    def way(dice: random.Random, parts: Parts) -> str | None:
        at = places(parts, *kinds)
        if not at:
            return None
        index = dice.choice(at) + (not before)
        return joined([*parts[:index], Token("other", text), *parts[index:]])

    return way


# -- brackets ----------------------------------------------------------------------------------------------------------


def _all_last(dice: random.Random, parts: Parts) -> str | None:
    text = joined(parts)
    made = text.rstrip("}])")
    return made if made != text else None


def _moved(step: int) -> Way:
    """A closer one value earlier, or one later."""

    def way(dice: random.Random, parts: Parts) -> str | None:
        closers = places(parts, "close")
        commas = places(parts, "comma")
        pairs = [(index, comma) for index in closers for comma in commas]
        pairs = [(i, c) for i, c in pairs if (c < i if step < 0 else c > i)]
        if not pairs:
            return None
        index, comma = dice.choice(pairs)
        token = parts[index]
        if step < 0:
            return joined([*parts[:comma], token, *parts[comma:index], *parts[index + 1 :]])
        end = next((i for i in range(comma + 1, len(parts)) if parts[i].kind in ("comma", "close")), len(parts))
        return joined([*parts[:index], *parts[index + 1 : end], token, *parts[end:]])

    return way


def _pair(dice: random.Random, parts: Parts) -> str | None:
    """Both brackets of a list or an object that has something in it: of another nothing would be left to be read."""
    at = [index for index in places(parts, "open")[1:] if (partner(parts, index) or 0) > index + 1]
    if not at:
        return None
    start = dice.choice(at)
    end = partner(parts, start)
    return joined([token for index, token in enumerate(parts) if index not in (start, end)])


# -- quotes and escapes ------------------------------------------------------------------------------------------------


def _requoted(opens: str, closes: str, *, escape: bool = True) -> Callable[[str], str]:
    def change(text: str) -> str:
        if text[:1] not in "\"'":
            return text
        inner = text[1:-1].replace(f"\\{text[0]}", text[0])
        if escape:
            inner = inner.replace(closes, f"\\{closes}")
        return f"{opens}{inner}{closes}"

    return change


def _in_string(pattern: str, put: str) -> Callable[[str], str | None]:
    """The first match inside a string, put otherwise."""
    find = re.compile(pattern, re.S)
    return lambda text: text[0] + find.sub(lambda _: put, text[1:-1], count=1) + text[-1]


def _undoubled(text: str) -> str:
    return text.replace("\\\\", "\\") if text[:1] in "\"'" else text


def _raw(text: str) -> str:
    """Escapes of control characters as the characters."""
    if text[:1] not in "\"'":
        return text
    put = {"\\n": "\n", "\\t": "\t", "\\r": "\r"}
    return _ESCAPE.sub(lambda found: put.get(found.group(), found.group()), text)


def _stray(dice: random.Random, parts: Parts) -> str | None:
    """A backslash before a character of a string that needs none."""
    at = [index for index in places(parts, "string") if len(parts[index].text) > 3 and "\\" not in parts[index].text]
    if not at:
        return None
    index = dice.choice(at)
    text = parts[index].text
    cut = dice.randint(1, len(text) - 2)
    return joined([*parts[:index], Token("other", f"{text[:cut]}\\{text[cut:]}"), *parts[index + 1 :]])


def _one_backslash(dice: random.Random, parts: Parts) -> str | None:
    at = [
        (index, found.start()) for index in places(parts, "string") for found in re.finditer(r"\\", parts[index].text)
    ]
    if not at:
        return None
    index, cut = dice.choice(at)
    text = parts[index].text
    return joined([*parts[:index], Token("other", text[:cut] + text[cut + 1 :]), *parts[index + 1 :]])


def _hex_escape(dice: random.Random, parts: Parts) -> str | None:
    at = [index for index in places(parts, "string") if re.search("[a-z]", parts[index].text[1:-1])]
    if not at:
        return None
    index = dice.choice(at)
    made = re.sub("[a-z]", lambda found: f"\\x{ord(found.group()):02x}", parts[index].text, count=1)
    return joined([*parts[:index], Token("other", made), *parts[index + 1 :]])


# -- commas, comments, ends --------------------------------------------------------------------------------------------


def _trailing(dice: random.Random, parts: Parts) -> str | None:
    closers = set(places(parts, "close"))
    at = [
        index
        for index in closers
        if (index and parts[index - 1].kind not in ("open", "close")) or index == max(closers)
    ]
    if not at:
        return None
    index = dice.choice(sorted(at))
    return joined([*parts[:index], Token("comma", ","), *parts[index:]]) if parts[index - 1].kind != "open" else None


def _merged(dice: random.Random, parts: Parts) -> str | None:
    """Two keys run into one: what stands between them is gone."""
    at = places(parts, "key")
    if len(at) < 2:
        return None
    turn = dice.randrange(len(at) - 1)
    one, two = at[turn], at[turn + 1]
    return joined([*parts[:one], Token("key", parts[one].text[:-1] + ", " + parts[two].text[1:]), *parts[two + 1 :]])


def _lines(parts: Parts) -> Parts:
    """With a line break behind every comma and opening bracket, as many models write."""
    made: Parts = []
    for token in parts:
        if token.kind != "blank" or not made or made[-1].kind not in ("comma", "open"):
            made.append(token)
        if token.kind in ("comma", "open"):
            made.append(Token("blank", "\n  "))
    return made


def _commented(comment: str) -> Way:
    """A comment behind a comma, whose line break was lost: what stood on the next line is in it."""

    def way(dice: random.Random, parts: Parts) -> str | None:
        lines = _lines(parts)
        at = [index for index in places(lines, "comma") if index + 1 < len(lines)]
        if not at:
            return None
        index = dice.choice(at)
        return joined([*lines[: index + 1], Token("other", f" {comment} "), *lines[index + 2 :]])

    return way


def _in_lines(way: Way) -> Way:
    return lambda dice, parts: way(dice, _lines(parts))


def _glued(dice: random.Random, parts: Parts) -> str | None:
    text = joined(parts)
    return text + dice.choice(("", " ", "\n")) + text


def _empty_first(dice: random.Random, parts: Parts) -> str | None:
    return "{}" + joined(parts)


def _wide_digits(text: str) -> str:
    return text.translate(str.maketrans("0123456789", "０１２３４５６７８９"))


def _arabic_digit(text: str) -> str:
    return text[:-1] + chr(0x660 + int(text[-1])) if text[-1:].isdigit() else text


def _thousands(sign: str) -> Callable[[str], str | None]:
    return lambda text: f"{text[:-3]}{sign}{text[-3:]}" if re.fullmatch("[0-9]{4,}", text) else None


def _hex(text: str) -> str | None:
    return hex(int(text)) if re.fullmatch("[0-9]+", text) else None


_STRING, _KEY, _NUMBER, _WORD = ("string",), ("key",), ("number",), ("word",)
_QUOTED = "^[\"']"

WAYS: dict[str, Way] = {
    # brackets
    "closer dropped": _one(("close",), lambda text: ""),
    "last closer dropped": _last(1),
    "last two closers dropped": _last(2),
    "all closers at the end dropped": _all_last,
    "opener dropped": _one(("open",), lambda text: ""),
    "closer doubled": _one(("close",), lambda text: text * 2),
    "closer tripled": _one(("close",), lambda text: text * 3),
    "opener doubled": _one(("open",), lambda text: text * 2),
    "stray opener": _behind(("open",), "{"),
    "stray list opener": _behind(("open",), "["),
    "closer swapped": _one(("close",), lambda text: _OTHER[text]),
    "opener swapped": _one(("open",), lambda text: _OTHER[text]),
    "closer becomes a parenthesis": _one(("close",), lambda text: ")"),
    "closer one value earlier": _moved(-1),
    "closer one value later": _moved(1),
    "stray closer": _behind(("string", "number", "word"), "}"),
    "stray list closer": _behind(("string", "number", "word"), "]"),
    "pair of brackets dropped": _pair,
    # quotes
    "opening quote of a key dropped": _one(_KEY, lambda text: text[1:], _QUOTED),
    "closing quote of a key dropped": _one(_KEY, lambda text: text[:-1], _QUOTED),
    "quotes of a key dropped": _one(_KEY, lambda text: text[1:-1], _QUOTED),
    "opening quote of a string dropped": _one(_STRING, lambda text: text[1:]),
    "closing quote of a string dropped": _one(_STRING, lambda text: text[:-1]),
    "quotes of a string dropped": _one(_STRING, lambda text: text[1:-1], r"^.[^ ]."),
    "quotes of a string dropped, in lines": _in_lines(_one(_STRING, lambda text: text[1:-1], r"^.[^ ].")),
    "quotes of all keys dropped": _all(("key",), lambda text: text.strip("\"'")),
    "opening quote doubled": _one(("string", "key"), lambda text: text[0] + text, _QUOTED),
    "closing quote doubled": _one(("string", "key"), lambda text: text + text[-1], _QUOTED),
    "single quotes": _all(("string", "key"), _requoted("'", "'")),
    "single quotes, not escaped inside": _all(("string", "key"), _requoted("'", "'", escape=False)),
    "one string in single quotes": _one(_STRING, _requoted("'", "'", escape=False)),
    "double quotes, not escaped inside": _all(("string", "key"), _requoted('"', '"', escape=False)),
    "smart quotes": _all(("string", "key"), _requoted("“", "”", escape=False)),
    "one string in smart quotes": _one(("string", "key"), _requoted("“", "”", escape=False)),
    "smart single quotes": _all(("string", "key"), _requoted("‘", "’", escape=False)),
    "closing quote is a smart one": _one(("string", "key"), lambda text: text[:-1] + "”", _QUOTED),
    "backticks": _all(("string", "key"), _requoted("`", "`")),
    "triple quotes": _one(_STRING, lambda text: f"{text[0] * 2}{text}{text[0] * 2}"),
    "every quote escaped": lambda dice, parts: joined(parts).replace('"', '\\"'),
    # commas and colons
    "comma dropped": _one(("comma",), lambda text: ""),
    "comma doubled": _one(("comma",), lambda text: ",,"),
    "trailing comma": _trailing,
    "leading comma": _behind(("open",), ","),
    "comma becomes a semicolon": _one(("comma",), lambda text: ";"),
    "comma becomes a line break": _one(("comma",), lambda text: "\n"),
    "comma becomes a colon": _one(("comma",), lambda text: ":"),
    "colon dropped": _one(("colon",), lambda text: ""),
    "colon doubled": _one(("colon",), lambda text: text * 2),
    "colon becomes =": _one(("colon",), lambda text: " ="),
    "colon becomes =>": _all(("colon",), lambda text: " =>"),
    "colon becomes a comma": _one(("colon",), lambda text: ","),
    # escapes
    "one backslash dropped": _one_backslash,
    "doubled backslashes undone": _all(_STRING, _undoubled),
    "stray backslash": _stray,
    "apostrophe escaped": _one(_STRING, _in_string("'", "\\'"), "(?s)^\"[^\\\\]*'"),
    "every apostrophe escaped": _all(_STRING, lambda text: text.replace("'", "\\'") if text[0] == '"' else text),
    "dollar escaped": _one(_STRING, _in_string(r"\$", "\\$"), r"\$"),
    "hexadecimal escape": _hex_escape,
    "raw control characters": _all(_STRING, _raw),
    "escape of a quote dropped": _one(_STRING, _in_string(r'\\"', '"'), r'\\"'),
    "escape doubled": _one(_STRING, lambda text: text.replace("\\", "\\\\"), r"\\"),
    # keys
    "two keys run together": _merged,
    "blank inside a key": _one(_KEY, lambda text: f"{text[0]} {text[1:]}", _QUOTED),
    "zero width space in a key": _one(_KEY, lambda text: f"{text[:-1]}\u200b{text[-1]}", _QUOTED),
    "key in capitals": _one(_KEY, str.upper, "(?i)[a-z]"),
    "key with dashes": _one(_KEY, lambda text: text.replace("_", "-"), "_"),
    "letter of a key dropped": _one(_KEY, lambda text: text[:2] + text[3:], "....."),
    # numbers
    "zero before a number": _one(_NUMBER, lambda text: f"0{text}" if text[0] != "-" else f"-0{text[1:]}"),
    "plus before a number": _one(_NUMBER, lambda text: f"+{text}", "^[0-9]"),
    "two signs before a number": _one(_NUMBER, lambda text: f"--{text}", "^[0-9]"),
    "underscore in a number": _one(_NUMBER, _thousands("_")),
    "comma in a number": _one(_NUMBER, _thousands(",")),
    "point behind a number": _one(_NUMBER, lambda text: f"{text}.", "^-?[0-9]+$"),
    "zero before the point dropped": _one(_NUMBER, lambda text: text.replace("0.", ".", 1), r"^-?0\."),
    "hexadecimal number": _one(_NUMBER, _hex),
    "fullwidth digits": _one(_NUMBER, _wide_digits),
    "Arabic digit": _one(_NUMBER, _arabic_digit),
    "unit behind a number": _one(_NUMBER, lambda text: f"{text} km"),
    "number too large": _one(_NUMBER, lambda text: "1e400"),
    "digit dropped": _one(_NUMBER, lambda text: text[:-1], "^[0-9]{2,}$"),
    # words
    "Python literals": _all(_WORD, lambda text: {"true": "True", "false": "False", "null": "None"}.get(text, text)),
    "JSON literals": _all(_WORD, lambda text: {"True": "true", "False": "false", "None": "null"}.get(text, text)),
    "literal in capitals": _one(_WORD, str.upper, "^(?i:true|false|null|none)$"),
    "undefined": _one(_WORD, lambda text: "undefined", "^(?:null|None)$"),
    "yes and no": _one(_WORD, lambda text: {"t": "yes", "f": "no"}[text[0].lower()], "^(?i:true|false)$"),
    # blanks, comments
    "fullwidth punctuation": _one(("open", "close", "comma", "colon"), lambda text: text.translate(_WIDE)),
    "no-break spaces": _all(("blank",), lambda text: "\u00a0" * len(text)),
    "byte order mark": lambda dice, parts: "\ufeff" + joined(parts),
    "line comment": _in_lines(_behind(("comma",), " // the next one")),
    "hash comment": _in_lines(_behind(("comma",), " # so it is, surely")),
    "comment with a bracket": _in_lines(_behind(("comma",), ' // not "x"]}')),
    "line break behind a comment lost": _commented("// the next one"),
    "line break behind a hash comment lost": _commented("# so it is, surely"),
    "line breaks lost behind a comment": _behind(("comma",), " // the next one"),
    "block comment": _behind(("comma", "open"), " /* a, b: c */ "),
    "comment at the end": lambda dice, parts: joined(parts) + " // done",
    # repeated, cut
    "given twice in a row": _glued,
    "empty object first": _empty_first,
}
