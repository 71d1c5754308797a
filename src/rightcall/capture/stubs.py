"""What a stub tool answers: data with holes, chosen by comparisons. No expressions, nothing is executed.

    [[tools.answers]]
    when = { quantity = { at_most = 0 } }
    error = "quantity must be positive, got {quantity}"

    [[tools.answers]]
    result = { product_id = "{product_id}", quantity = "{quantity}", cart = "cart-001" }

The first answer whose comparisons all hold is given. A string that is nothing but a hole becomes the argument as it is,
with its type; elsewhere a hole is filled in as text. `{{` and `}}` are braces. An argument that is absent is "".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from rightcall.types import Json

_HOLE = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w{0,63})\}")
_ONLY = re.compile(r"\{([A-Za-z_]\w{0,63})\}").fullmatch


class StubAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`result` is data, `error` a message; exactly one of them is said."""

    when: dict[str, dict[str, Any]] = {}
    result: Any = None
    error: str = ""


class StubOutcome(msgspec.Struct, frozen=True):
    """What a stub gave back: its `status`, "ok" or "error", and the `content`."""

    status: Literal["ok", "error"]
    content: Any

    @property
    def message(self) -> str:
        """The content as a tool message carries it: text as it is, the rest as compact JSON."""
        if isinstance(self.content, str):
            return self.content
        return msgspec.json.encode(self.content).decode()


def answered(answers: tuple[StubAnswer, ...], arguments: Json) -> StubOutcome:
    for answer in answers:
        if all(holds(comparisons, arguments.get(name)) for name, comparisons in answer.when.items()):
            if answer.error:
                return StubOutcome("error", {"error": filled(answer.error, arguments)})
            return StubOutcome("ok", filled(answer.result, arguments))
    return StubOutcome("error", {"error": "no data for these arguments"})


def filled(template: Any, arguments: Mapping[str, Any]) -> Any:
    """The template with its holes filled in."""
    if isinstance(template, str):
        only = _ONLY(template)
        return arguments.get(only[1], "") if only else _HOLE.sub(lambda hole: _said(hole, arguments), template)
    if isinstance(template, dict):
        return {key: filled(value, arguments) for key, value in template.items()}
    return [filled(value, arguments) for value in template] if isinstance(template, list) else template


def _said(hole: re.Match[str], arguments: Mapping[str, Any]) -> str:
    if hole[1] is None:
        return hole[0][0]
    value = arguments.get(hole[1], "")
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def holes(template: Any) -> set[str]:
    """The arguments that a template mentions."""
    if isinstance(template, str):
        return {hole[1] for hole in _HOLE.finditer(template) if hole[1]}
    inner = template.values() if isinstance(template, dict) else template if isinstance(template, list) else ()
    return {name for value in inner for name in holes(value)}


# -- comparisons -------------------------------------------------------------------------------------------------------


def holds(comparisons: Mapping[str, Any], value: Any) -> bool:
    """Do all of them hold of this value?"""
    return all(COMPARISONS[name](value, wanted) for name, wanted in comparisons.items())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(value: Any, wanted: Any) -> bool:
    """Equal, where 1 and true are not the same, and 2 and 2.0 are."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(_same, value, wanted))
    if isinstance(value, dict) and isinstance(wanted, dict):
        return value.keys() == wanted.keys() and all(_same(value[key], wanted[key]) for key in wanted)
    return bool(value == wanted)


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(value, str) and isinstance(wanted, str):
        return wanted.casefold() in value.casefold()
    return isinstance(value, list) and any(_same(each, wanted) for each in value)


def _digits(value: Any, wanted: Any) -> bool:
    return isinstance(value, str) and len(value) == wanted and value.isascii() and value.isdigit()


def _same_text(value: Any, wanted: Any) -> bool:
    """The same words, whatever their case and the blanks between them."""
    return isinstance(value, str) and " ".join(value.split()).casefold() == str(wanted).casefold()


def _same_items(value: Any, wanted: list[Any]) -> bool:
    """The same values in any order."""
    return isinstance(value, list) and sorted(map(repr, value)) == sorted(map(repr, wanted))


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "is": _same,
    "is_not": lambda value, wanted: not _same(value, wanted),
    "one_of": lambda value, wanted: any(_same(value, each) for each in wanted),
    "none_of": lambda value, wanted: not any(_same(value, each) for each in wanted),
    "at_least": lambda value, wanted: _is_number(value) and value >= wanted,
    "at_most": lambda value, wanted: _is_number(value) and value <= wanted,
    "contains": _contains,
    "contains_all": lambda value, wanted: all(_contains(value, each) for each in wanted),
    "contains_any": lambda value, wanted: any(_contains(value, each) for each in wanted),
    "same_text": _same_text,
    "same_items": _same_items,
    "digits": _digits,
    "not_digits": lambda value, wanted: not _digits(value, wanted),
    "present": lambda value, wanted: (value not in (None, "")) is wanted,
}
LISTS = ("one_of", "none_of", "contains_all", "contains_any", "same_items")
NUMBERS = ("at_least", "at_most", "digits", "not_digits")
