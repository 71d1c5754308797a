"""Answers of stub tools: templates with placeholders, chosen by comparisons. There are no expressions; nothing is
executed.

    [[tools.answers]]
    when = { quantity = { at_most = 0 } }
    error = "quantity must be positive, got {quantity}"

    [[tools.answers]]
    result = { product_id = "{product_id}", quantity = "{quantity}", cart = "cart-001" }

A tool returns the first answer whose comparisons all hold. A string that is only a placeholder becomes the argument
with its type; elsewhere a placeholder is filled in as text. `{{` and `}}` are braces. A missing argument is "".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from rightcall.types import Json

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w{0,63})\}")
_ONLY_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w{0,63})\}").fullmatch


class StubAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A possible answer: its condition (`when`), and either a `result` or an `error` message."""

    when: dict[str, dict[str, Any]] = {}
    result: Any = None
    error: str = ""


class StubOutcome(msgspec.Struct, frozen=True):
    """The result of a tool: its `status`, "ok" or "error", and the `content`."""

    status: Literal["ok", "error"]
    content: Any

    @property
    def message(self) -> str:
        """The content as text of a tool message: text as it is, other values as compact JSON."""
        if isinstance(self.content, str):
            return self.content
        return msgspec.json.encode(self.content).decode()


def choose_answer(answers: tuple[StubAnswer, ...], arguments: Json) -> StubOutcome:
    """Return the outcome of the first answer whose comparisons hold for these arguments, with its placeholders filled.
    If none fits, return an error outcome."""
    for answer in answers:
        if all(all_hold(comparisons, arguments.get(name)) for name, comparisons in answer.when.items()):
            if answer.error:
                return StubOutcome("error", {"error": fill_placeholders(answer.error, arguments)})
            return StubOutcome("ok", fill_placeholders(answer.result, arguments))
    return StubOutcome("error", {"error": "no data for these arguments"})


def fill_placeholders(template: Any, arguments: Mapping[str, Any]) -> Any:
    """Return a template with its placeholders `{name}` replaced by the arguments, in every text of it, which may be
    nested. A text that is only a placeholder becomes the argument with its type; a missing argument is ""."""
    if isinstance(template, str):
        only = _ONLY_PLACEHOLDER(template)
        return (
            arguments.get(only[1], "")
            if only
            else _PLACEHOLDER.sub(lambda match: _placeholder_text(match, arguments), template)
        )
    if isinstance(template, dict):
        return {key: fill_placeholders(value, arguments) for key, value in template.items()}
    return [fill_placeholders(value, arguments) for value in template] if isinstance(template, list) else template


def _placeholder_text(match: re.Match[str], arguments: Mapping[str, Any]) -> str:
    """Return the replacement of one match: a brace for a doubled one, otherwise the argument, as JSON if it is not a
    text, and "" if it is missing."""
    if match[1] is None:
        return match[0][0]
    value = arguments.get(match[1], "")
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def placeholders(template: Any) -> set[str]:
    """Return the names of the arguments that the placeholders `{name}` use, in every text of a template, which may be
    nested."""
    if isinstance(template, str):
        return {match[1] for match in _PLACEHOLDER.finditer(template) if match[1]}
    inner = template.values() if isinstance(template, dict) else template if isinstance(template, list) else ()
    return {name for value in inner for name in placeholders(value)}


# -- comparisons -------------------------------------------------------------------------------------------------------


def all_hold(comparisons: Mapping[str, Any], value: Any) -> bool:
    """Return whether all comparisons, given by their names in `COMPARISONS` with their operands, hold for this value.
    Raises `KeyError` for an unknown name."""
    return all(COMPARISONS[name](value, wanted) for name, wanted in comparisons.items())


def _is_number(value: Any) -> bool:
    """Return whether a value is an integer or a float, and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_equal(value: Any, wanted: Any) -> bool:
    """Return whether JSON values are equal: 2 equals 2.0, but 1 does not equal true."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(_is_equal, value, wanted))
    if isinstance(value, dict) and isinstance(wanted, dict):
        return value.keys() == wanted.keys() and all(_is_equal(value[key], wanted[key]) for key in wanted)
    return bool(value == wanted)


def _contains(value: Any, wanted: Any) -> bool:
    """Return whether a text contains `wanted`, ignoring case, or a list has an item equal to it; False for any other
    value."""
    if isinstance(value, str) and isinstance(wanted, str):
        return wanted.casefold() in value.casefold()
    return isinstance(value, list) and any(_is_equal(each, wanted) for each in value)


def _digits(value: Any, wanted: Any) -> bool:
    """Return whether a value is a text of exactly `wanted` ASCII digits."""
    return isinstance(value, str) and len(value) == wanted and value.isascii() and value.isdigit()


def _is_equal_text(value: Any, wanted: Any) -> bool:
    """Return whether a text equals `wanted`, ignoring case. Outer white space of the text is ignored, and runs of it
    count as one space; that of `wanted` is kept."""
    return isinstance(value, str) and " ".join(value.split()).casefold() == str(wanted).casefold()


def _has_equal_items(value: Any, wanted: list[Any]) -> bool:
    """Return whether a list has the same items as `wanted`, in any order. Items are compared with their types: 2
    differs from 2.0."""
    return isinstance(value, list) and sorted(map(repr, value)) == sorted(map(repr, wanted))


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "is": _is_equal,
    "is_not": lambda value, wanted: not _is_equal(value, wanted),
    "one_of": lambda value, wanted: any(_is_equal(value, each) for each in wanted),
    "none_of": lambda value, wanted: not any(_is_equal(value, each) for each in wanted),
    "at_least": lambda value, wanted: _is_number(value) and value >= wanted,
    "at_most": lambda value, wanted: _is_number(value) and value <= wanted,
    "contains": _contains,
    "contains_all": lambda value, wanted: all(_contains(value, each) for each in wanted),
    "contains_any": lambda value, wanted: any(_contains(value, each) for each in wanted),
    "same_text": _is_equal_text,
    "same_items": _has_equal_items,
    "digits": _digits,
    "not_digits": lambda value, wanted: not _digits(value, wanted),
    "present": lambda value, wanted: (value not in (None, "")) is wanted,
}
LISTS = ("one_of", "none_of", "contains_all", "contains_any", "same_items")
NUMBERS = ("at_least", "at_most", "digits", "not_digits")
