"""Damage to the text of a call: brackets, quotes, commas, colons, escapes, numbers, words, blanks, comments, its end.

A function receives the tokens of a text and returns the damaged text, or None if it does not apply to the text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from damaged.tokens import Token, join_tokens, partner, places

Parts = list[Token]
Damage = Callable[[random.Random, Parts], str | None]

_OTHER = {"}": "]", "]": "}", ")": "]", "{": "[", "[": "{", "(": "["}
_WIDE = str.maketrans("{}[]:,", "｛｝［］：，")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.S)


# -- building blocks ---------------------------------------------------------------------------------------------------


def _change_one(kinds: tuple[str, ...], change: Callable[[str], str | None], only: str = "") -> Damage:
    """Return damage that changes one token of these kinds, of those that match `only`."""

    def damage(dice: random.Random, parts: Parts) -> str | None:
        indices = [index for index in places(parts, *kinds) if re.search(only, parts[index].text)]
        if not indices:
            return None
        index = dice.choice(indices)
        changed = change(parts[index].text)
        if changed is None or changed == parts[index].text:
            return None
        return join_tokens([*parts[:index], Token("other", changed), *parts[index + 1 :]])

    return damage


def _change_all(kinds: tuple[str, ...], change: Callable[[str], str]) -> Damage:
    """Return damage that changes every token of these kinds."""

    def damage(dice: random.Random, parts: Parts) -> str | None:
        changed = "".join([change(token.text) if token.kind in kinds else token.text for token in parts])
        return changed if changed != join_tokens(parts) else None

    return damage


def _drop_last(count: int) -> Damage:
    """Return damage that drops the last closers."""

    def damage(dice: random.Random, parts: Parts) -> str | None:
        indices = places(parts, "close")[-count:]
        return (
            join_tokens([token for index, token in enumerate(parts) if index not in indices])
            if len(indices) == count
            else None
        )

    return damage


def _insert_after(kinds: tuple[str, ...], text: str, *, before: bool = False) -> Damage:
    """Return damage that inserts text after (or before) one token of these kinds."""

    def damage(dice: random.Random, parts: Parts) -> str | None:
        indices = places(parts, *kinds)
        if not indices:
            return None
        index = dice.choice(indices) + (not before)
        return join_tokens([*parts[:index], Token("other", text), *parts[index:]])

    return damage


# -- brackets ----------------------------------------------------------------------------------------------------------


def _drop_all_last(dice: random.Random, parts: Parts) -> str | None:
    text = join_tokens(parts)
    changed = text.rstrip("}])")
    return changed if changed != text else None


def _move_closer(step: int) -> Damage:
    """Return damage that moves a closer one value earlier or later."""

    def damage(dice: random.Random, parts: Parts) -> str | None:
        closers = places(parts, "close")
        commas = places(parts, "comma")
        pairs = [(index, comma) for index in closers for comma in commas]
        pairs = [(i, c) for i, c in pairs if (c < i if step < 0 else c > i)]
        if not pairs:
            return None
        index, comma = dice.choice(pairs)
        token = parts[index]
        if step < 0:
            return join_tokens([*parts[:comma], token, *parts[comma:index], *parts[index + 1 :]])
        end = next((i for i in range(comma + 1, len(parts)) if parts[i].kind in ("comma", "close")), len(parts))
        return join_tokens([*parts[:index], *parts[index + 1 : end], token, *parts[end:]])

    return damage


def _drop_pair(dice: random.Random, parts: Parts) -> str | None:
    """Drop both brackets of a list or object that is not empty: an empty one would leave no text to parse."""
    indices = [index for index in places(parts, "open")[1:] if (partner(parts, index) or 0) > index + 1]
    if not indices:
        return None
    start = dice.choice(indices)
    end = partner(parts, start)
    return join_tokens([token for index, token in enumerate(parts) if index not in (start, end)])


# -- quotes and escapes ------------------------------------------------------------------------------------------------


def _requote(opens: str, closes: str, *, escape: bool = True) -> Callable[[str], str]:
    def change(text: str) -> str:
        if text[:1] not in "\"'":
            return text
        inner = text[1:-1].replace(f"\\{text[0]}", text[0])
        if escape:
            inner = inner.replace(closes, f"\\{closes}")
        return f"{opens}{inner}{closes}"

    return change


def _replace_in_string(pattern: str, replacement: str) -> Callable[[str], str | None]:
    """Return a change that replaces the first match inside a string."""
    find = re.compile(pattern, re.S)
    return lambda text: text[0] + find.sub(lambda _: replacement, text[1:-1], count=1) + text[-1]


def _undouble_backslashes(text: str) -> str:
    return text.replace("\\\\", "\\") if text[:1] in "\"'" else text


def _unescape(text: str) -> str:
    """Replace the escapes of control characters by the characters."""
    if text[:1] not in "\"'":
        return text
    replacement = {"\\n": "\n", "\\t": "\t", "\\r": "\r"}
    return _ESCAPE.sub(lambda found: replacement.get(found.group(), found.group()), text)


def _add_backslash(dice: random.Random, parts: Parts) -> str | None:
    """Insert a backslash before a character of a string that needs none."""
    indices = [
        index for index in places(parts, "string") if len(parts[index].text) > 3 and "\\" not in parts[index].text
    ]
    if not indices:
        return None
    index = dice.choice(indices)
    text = parts[index].text
    cut = dice.randint(1, len(text) - 2)
    return join_tokens([*parts[:index], Token("other", f"{text[:cut]}\\{text[cut:]}"), *parts[index + 1 :]])


def _drop_backslash(dice: random.Random, parts: Parts) -> str | None:
    indices = [
        (index, found.start()) for index in places(parts, "string") for found in re.finditer(r"\\", parts[index].text)
    ]
    if not indices:
        return None
    index, cut = dice.choice(indices)
    text = parts[index].text
    return join_tokens([*parts[:index], Token("other", text[:cut] + text[cut + 1 :]), *parts[index + 1 :]])


def _hex_escape(dice: random.Random, parts: Parts) -> str | None:
    indices = [index for index in places(parts, "string") if re.search("[a-z]", parts[index].text[1:-1])]
    if not indices:
        return None
    index = dice.choice(indices)
    changed = re.sub("[a-z]", lambda found: f"\\x{ord(found.group()):02x}", parts[index].text, count=1)
    return join_tokens([*parts[:index], Token("other", changed), *parts[index + 1 :]])


# -- commas, comments, ends --------------------------------------------------------------------------------------------


def _add_trailing_comma(dice: random.Random, parts: Parts) -> str | None:
    closers = set(places(parts, "close"))
    indices = [
        index
        for index in closers
        if (index and parts[index - 1].kind not in ("open", "close")) or index == max(closers)
    ]
    if not indices:
        return None
    index = dice.choice(sorted(indices))
    return (
        join_tokens([*parts[:index], Token("comma", ","), *parts[index:]]) if parts[index - 1].kind != "open" else None
    )


def _merge_keys(dice: random.Random, parts: Parts) -> str | None:
    """Merge two keys into one and drop the text between them."""
    indices = places(parts, "key")
    if len(indices) < 2:
        return None
    turn = dice.randrange(len(indices) - 1)
    one, two = indices[turn], indices[turn + 1]
    return join_tokens(
        [*parts[:one], Token("key", parts[one].text[:-1] + ", " + parts[two].text[1:]), *parts[two + 1 :]]
    )


def _break_lines(parts: Parts) -> Parts:
    """Insert a line break after every comma and opening bracket, as many models do."""
    changed: Parts = []
    for token in parts:
        if token.kind != "blank" or not changed or changed[-1].kind not in ("comma", "open"):
            changed.append(token)
        if token.kind in ("comma", "open"):
            changed.append(Token("blank", "\n  "))
    return changed


def _add_comment(comment: str) -> Damage:
    """Return damage that adds a comment without its line break after a comma, so that it includes the next line."""

    def damage(dice: random.Random, parts: Parts) -> str | None:
        lines = _break_lines(parts)
        indices = [index for index in places(lines, "comma") if index + 1 < len(lines)]
        if not indices:
            return None
        index = dice.choice(indices)
        return join_tokens([*lines[: index + 1], Token("other", f" {comment} "), *lines[index + 2 :]])

    return damage


def _with_line_breaks(damage: Damage) -> Damage:
    return lambda dice, parts: damage(dice, _break_lines(parts))


def _repeat(dice: random.Random, parts: Parts) -> str | None:
    text = join_tokens(parts)
    return text + dice.choice(("", " ", "\n")) + text


def _prepend_empty_object(dice: random.Random, parts: Parts) -> str | None:
    return "{}" + join_tokens(parts)


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

WAYS: dict[str, Damage] = {
    # brackets
    "closer dropped": _change_one(("close",), lambda text: ""),
    "last closer dropped": _drop_last(1),
    "last two closers dropped": _drop_last(2),
    "all closers at the end dropped": _drop_all_last,
    "opener dropped": _change_one(("open",), lambda text: ""),
    "closer doubled": _change_one(("close",), lambda text: text * 2),
    "closer tripled": _change_one(("close",), lambda text: text * 3),
    "opener doubled": _change_one(("open",), lambda text: text * 2),
    "stray opener": _insert_after(("open",), "{"),
    "stray list opener": _insert_after(("open",), "["),
    "closer swapped": _change_one(("close",), lambda text: _OTHER[text]),
    "opener swapped": _change_one(("open",), lambda text: _OTHER[text]),
    "closer becomes a parenthesis": _change_one(("close",), lambda text: ")"),
    "closer one value earlier": _move_closer(-1),
    "closer one value later": _move_closer(1),
    "stray closer": _insert_after(("string", "number", "word"), "}"),
    "stray list closer": _insert_after(("string", "number", "word"), "]"),
    "pair of brackets dropped": _drop_pair,
    # quotes
    "opening quote of a key dropped": _change_one(_KEY, lambda text: text[1:], _QUOTED),
    "closing quote of a key dropped": _change_one(_KEY, lambda text: text[:-1], _QUOTED),
    "quotes of a key dropped": _change_one(_KEY, lambda text: text[1:-1], _QUOTED),
    "opening quote of a string dropped": _change_one(_STRING, lambda text: text[1:]),
    "closing quote of a string dropped": _change_one(_STRING, lambda text: text[:-1]),
    "quotes of a string dropped": _change_one(_STRING, lambda text: text[1:-1], r"^.[^ ]."),
    "quotes of a string dropped, in lines": _with_line_breaks(
        _change_one(_STRING, lambda text: text[1:-1], r"^.[^ ].")
    ),
    "quotes of all keys dropped": _change_all(("key",), lambda text: text.strip("\"'")),
    "opening quote doubled": _change_one(("string", "key"), lambda text: text[0] + text, _QUOTED),
    "closing quote doubled": _change_one(("string", "key"), lambda text: text + text[-1], _QUOTED),
    "single quotes": _change_all(("string", "key"), _requote("'", "'")),
    "single quotes, not escaped inside": _change_all(("string", "key"), _requote("'", "'", escape=False)),
    "one string in single quotes": _change_one(_STRING, _requote("'", "'", escape=False)),
    "double quotes, not escaped inside": _change_all(("string", "key"), _requote('"', '"', escape=False)),
    "smart quotes": _change_all(("string", "key"), _requote("“", "”", escape=False)),
    "one string in smart quotes": _change_one(("string", "key"), _requote("“", "”", escape=False)),
    "smart single quotes": _change_all(("string", "key"), _requote("‘", "’", escape=False)),
    "closing quote is a smart one": _change_one(("string", "key"), lambda text: text[:-1] + "”", _QUOTED),
    "backticks": _change_all(("string", "key"), _requote("`", "`")),
    "triple quotes": _change_one(_STRING, lambda text: f"{text[0] * 2}{text}{text[0] * 2}"),
    "every quote escaped": lambda dice, parts: join_tokens(parts).replace('"', '\\"'),
    # commas and colons
    "comma dropped": _change_one(("comma",), lambda text: ""),
    "comma doubled": _change_one(("comma",), lambda text: ",,"),
    "trailing comma": _add_trailing_comma,
    "leading comma": _insert_after(("open",), ","),
    "comma becomes a semicolon": _change_one(("comma",), lambda text: ";"),
    "comma becomes a line break": _change_one(("comma",), lambda text: "\n"),
    "comma becomes a colon": _change_one(("comma",), lambda text: ":"),
    "colon dropped": _change_one(("colon",), lambda text: ""),
    "colon doubled": _change_one(("colon",), lambda text: text * 2),
    "colon becomes =": _change_one(("colon",), lambda text: " ="),
    "colon becomes =>": _change_all(("colon",), lambda text: " =>"),
    "colon becomes a comma": _change_one(("colon",), lambda text: ","),
    # escapes
    "one backslash dropped": _drop_backslash,
    "doubled backslashes undone": _change_all(_STRING, _undouble_backslashes),
    "stray backslash": _add_backslash,
    "apostrophe escaped": _change_one(_STRING, _replace_in_string("'", "\\'"), "(?s)^\"[^\\\\]*'"),
    "every apostrophe escaped": _change_all(_STRING, lambda text: text.replace("'", "\\'") if text[0] == '"' else text),
    "dollar escaped": _change_one(_STRING, _replace_in_string(r"\$", "\\$"), r"\$"),
    "hexadecimal escape": _hex_escape,
    "raw control characters": _change_all(_STRING, _unescape),
    "escape of a quote dropped": _change_one(_STRING, _replace_in_string(r'\\"', '"'), r'\\"'),
    "escape doubled": _change_one(_STRING, lambda text: text.replace("\\", "\\\\"), r"\\"),
    # keys
    "two keys run together": _merge_keys,
    "blank inside a key": _change_one(_KEY, lambda text: f"{text[0]} {text[1:]}", _QUOTED),
    "zero width space in a key": _change_one(_KEY, lambda text: f"{text[:-1]}\u200b{text[-1]}", _QUOTED),
    "key in capitals": _change_one(_KEY, str.upper, "(?i)[a-z]"),
    "key with dashes": _change_one(_KEY, lambda text: text.replace("_", "-"), "_"),
    "letter of a key dropped": _change_one(_KEY, lambda text: text[:2] + text[3:], "....."),
    # numbers
    "zero before a number": _change_one(_NUMBER, lambda text: f"0{text}" if text[0] != "-" else f"-0{text[1:]}"),
    "plus before a number": _change_one(_NUMBER, lambda text: f"+{text}", "^[0-9]"),
    "two signs before a number": _change_one(_NUMBER, lambda text: f"--{text}", "^[0-9]"),
    "underscore in a number": _change_one(_NUMBER, _thousands("_")),
    "comma in a number": _change_one(_NUMBER, _thousands(",")),
    "point behind a number": _change_one(_NUMBER, lambda text: f"{text}.", "^-?[0-9]+$"),
    "zero before the point dropped": _change_one(_NUMBER, lambda text: text.replace("0.", ".", 1), r"^-?0\."),
    "hexadecimal number": _change_one(_NUMBER, _hex),
    "fullwidth digits": _change_one(_NUMBER, _wide_digits),
    "Arabic digit": _change_one(_NUMBER, _arabic_digit),
    "unit behind a number": _change_one(_NUMBER, lambda text: f"{text} km"),
    "number too large": _change_one(_NUMBER, lambda text: "1e400"),
    "digit dropped": _change_one(_NUMBER, lambda text: text[:-1], "^[0-9]{2,}$"),
    # words
    "Python literals": _change_all(
        _WORD, lambda text: {"true": "True", "false": "False", "null": "None"}.get(text, text)
    ),
    "JSON literals": _change_all(
        _WORD, lambda text: {"True": "true", "False": "false", "None": "null"}.get(text, text)
    ),
    "literal in capitals": _change_one(_WORD, str.upper, "^(?i:true|false|null|none)$"),
    "undefined": _change_one(_WORD, lambda text: "undefined", "^(?:null|None)$"),
    "yes and no": _change_one(_WORD, lambda text: {"t": "yes", "f": "no"}[text[0].lower()], "^(?i:true|false)$"),
    # blanks, comments
    "fullwidth punctuation": _change_one(("open", "close", "comma", "colon"), lambda text: text.translate(_WIDE)),
    "no-break spaces": _change_all(("blank",), lambda text: "\u00a0" * len(text)),
    "byte order mark": lambda dice, parts: "\ufeff" + join_tokens(parts),
    "line comment": _with_line_breaks(_insert_after(("comma",), " // the next one")),
    "hash comment": _with_line_breaks(_insert_after(("comma",), " # so it is, surely")),
    "comment with a bracket": _with_line_breaks(_insert_after(("comma",), ' // not "x"]}')),
    "line break behind a comment lost": _add_comment("// the next one"),
    "line break behind a hash comment lost": _add_comment("# so it is, surely"),
    "line breaks lost behind a comment": _insert_after(("comma",), " // the next one"),
    "block comment": _insert_after(("comma", "open"), " /* a, b: c */ "),
    "comment at the end": lambda dice, parts: join_tokens(parts) + " // done",
    # repeated, cut
    "given twice in a row": _repeat,
    "empty object first": _prepend_empty_object,
}
