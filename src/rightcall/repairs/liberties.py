"""What a loose reading gives: a value, where it ends, and every liberty that was taken with the rules of JSON."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from rightcall.strict_json import is_same

MOST_OBJECTS = 9
AGAIN = "again"  # no rule, and no receipt: a key that stands twice with one value leaves a note
SHOWN = 200  # characters of a receipt; `Call.raw` has the whole


class Liberty(msgspec.Struct, frozen=True):
    """One thing that strict JSON does not allow: the rule that reads it, and the first place where it was met."""

    rule: str
    before: str
    after: str
    guess: bool = False  # another reading was as good


Spelled = tuple[tuple[str | int, ...], str]


class Unreadable(Exception):
    """No value can be made of the text; `cut` says that it ended too early, `code` which problem that is, where it is a
    certain one."""

    def __init__(self, reason: str, *, cut: bool = False, code: str = "") -> None:
        super().__init__(reason)
        self.cut, self.code = cut, code


class Loose(msgspec.Struct, frozen=True):
    """A value and where it ends. `spelled` are numbers and words that are not written as we would, with place and text:
    only the schema can tell whether the value or the text was meant. Of brackets that were not closed there are
    `missing` so many; `mixed` is how deep an object stands that writes its keys in another way than the one around it;
    `open` are the objects and lists that were open at the end of the text, None among them where
    it ends in a number or a word, of which more may have stood there."""

    value: Any
    end: int
    liberties: tuple[Liberty, ...]
    spelled: tuple[Spelled, ...] = ()
    missing: int = 0
    open: tuple[Any, ...] = ()
    mixed: int = 0


def one_object(objects: list[dict[str, Any]]) -> tuple[dict[str, Any], Liberty]:
    """One of several objects in a row: the only one that is not empty, or the one that all of them are."""
    filled = [found for found in objects if found]
    if not all(is_same(found, filled[0]) for found in filled[1:]):
        raise Unreadable("several objects stand in a row, and they disagree")
    before = "".join([json.dumps(found, ensure_ascii=False)[:100] for found in objects])[:200]
    value = filled[0] if filled else {}
    return value, Liberty("concatenated", before, json.dumps(value, ensure_ascii=False)[:200])
