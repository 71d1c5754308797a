"""Validation rules for markers in a format file, used by the body kinds too. A violation is a `BadFormat`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import NamedTuple, NoReturn

from rightcall.errors import BadFormat
from rightcall.formats.spec import Marker, Pair, marker_alternatives

MAX_MARKER = 128
MAX_LIST = 32  # alternatives of a marker, end tokens, words of a table
_HOLES = ("name", "key", "type", "id", "index", "number", "cite")
_HOLE = re.compile(r"\{([A-Za-z_]\w*)\}")
# White space with a line break is optional when a marker is read, so that it does not keep two holes apart.
_ADJACENT = re.compile(r"\{(\w+)\}(?:[ \t\r]*\n[ \t\r\n]*)?\{(\w+)\}")
_UNFIT_KEY = re.compile(r'["\\\x00-\x1f]').search


def reject_field(where: str, cause: str, cure: str) -> NoReturn:
    """Raise `BadFormat` with the place `where`, the cause and the cure. Never returns."""
    raise BadFormat(f"format file, {where}: {cause}; {cure}")


def suggest(word: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown word: the most similar known word, or all of them if none is similar."""
    known = list(known)
    near = difflib.get_close_matches(word[:64], known, 1, 0.4)
    return f"did you mean {near[0]!r}?" if near else "known: " + ", ".join(known)


def check_count(where: str, values: Iterable[object], most: int) -> None:
    """Raise `BadFormat` if a list at the place `where` has more than `most` entries."""
    count = len(list(values))
    if count > most:
        reject_field(where, f"it has {count} entries", f"write at most {most}")


class FieldRule(NamedTuple):
    """The holes that a marker may have. `need` must be in every alternative; `empty` allows an empty marker."""

    may: tuple[str, ...] = ()
    need: tuple[str, ...] = ()
    empty: bool = False
    blank: bool = False  # white space alone will do


LITERAL = FieldRule()
OPTIONAL = FieldRule(empty=True)
ANY_TEXT = FieldRule(empty=True, blank=True)
OPENER = FieldRule(may=("name", "id", "index", "number", "cite"), need=("name",))


def check_marker(where: str, marker: Marker, rule: FieldRule) -> None:
    """Raise `BadFormat` unless a marker has 1 to 32 alternatives that all satisfy `rule`, and the first one, which is
    written, has no `{cite}`."""
    texts = marker_alternatives(marker)
    if not texts:
        reject_field(where, "it has no alternatives", "write a string, or an array of at least one")
    check_count(where, texts, MAX_LIST)
    for text in texts:
        check_marker_text(where, text, rule)
    if "cite" in _HOLE.findall(texts[0]):
        reject_field(
            where, "the first marker is written, and nothing is known for {cite}", "write one without it before it"
        )


def check_marker_text(where: str, text: str, rule: FieldRule) -> None:
    """Raise `BadFormat` unless one alternative of a marker satisfies `rule`: at most `MAX_MARKER` characters, empty or
    blank only if allowed, and the required and allowed holes only."""
    if len(text) > MAX_MARKER:
        reject_field(where, f"a marker of {len(text)} characters", f"write at most {MAX_MARKER}")
    if not text:
        if not rule.empty:
            reject_field(where, "the marker is empty", f"write 1-{MAX_MARKER} characters")
        return
    if not rule.blank and not text.strip():
        reject_field(where, "the marker is only white space, which is optional when read", "write a visible marker")
    _check_holes(where, text, rule)


def _check_hole(where: str, hole: str, allowed: tuple[str, ...]) -> None:
    """Raise `BadFormat` for a hole that does not exist, or is not in `allowed`."""
    if hole not in _HOLES:
        reject_field(where, f"there is no hole {{{hole[:40]}}}", suggest(hole, _HOLES))
    if hole not in allowed:
        cure = f"only {', '.join(allowed)} can be used here" if allowed else "write it without holes"
        reject_field(where, f"the hole {{{hole}}} has no meaning here", cure)


def _check_holes(where: str, text: str, rule: FieldRule) -> None:
    """Raise `BadFormat` unless each hole of a template is allowed by `rule`, used once, and separated from the next by
    literal text, and all required holes are there."""
    allowed = (*rule.need, *(hole for hole in rule.may if hole not in rule.need))
    holes = _HOLE.findall(text)
    for hole in holes:
        _check_hole(where, hole, allowed)
        if holes.count(hole) > 1:
            reject_field(where, f"the hole {{{hole}}} occurs twice", "write it once")
    for hole in rule.need:
        if hole not in holes:
            reject_field(
                where, f"{text[:80]!r} lacks the hole {{{hole}}}", f"put {{{hole}}} at the place of the {hole}"
            )
    if found := _ADJACENT.search(text):
        first, second = found.groups()
        reject_field(
            where, f"nothing separates {{{first}}} from {{{second}}}", "put literal text between the two holes"
        )


def check_pair(where: str, pair: Pair | None, opens: FieldRule, closes: FieldRule) -> None:
    """Raise `BadFormat` unless the opening marker of a pair satisfies the rule `opens` and its closing marker `closes`.
    None is valid."""
    if pair is not None:
        check_marker(f"{where}[0]", pair[0], opens)
        check_marker(f"{where}[1]", pair[1], closes)


def check_each(where: str, texts: Iterable[str], rule: FieldRule) -> None:
    """Raise `BadFormat` if a list has more than 32 texts, or one of them violates `rule` (see `check_marker_text`)."""
    texts = list(texts)
    check_count(where, texts, MAX_LIST)
    for i, text in enumerate(texts):
        check_marker_text(f"{where}[{i}]", text, rule)


def check_json_key(where: str, key: str) -> None:
    """Raise `BadFormat` for a key that would have to be escaped in JSON."""
    if _UNFIT_KEY(key):
        reject_field(where, f"the key {key[:80]!r} has quotes, backslashes or control characters", "write a plain key")
