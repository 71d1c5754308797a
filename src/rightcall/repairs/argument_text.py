"""Parse argument text in loose JSON, with superfluous brackets or a repetition of the object after it.

    read_arguments("{'zip': 02134}}", 0, tool, ...)  ->  {"zip": "02134"} and its deviations

The repair of a bracket is certain only if there is one place for it:

    {"filter": {"glob": "*", "dry_run": true}        a "}" is missing: at the end, or before "dry_run"?

There is one place if no object is inside another, or if only the last argument is an object with a single value. For
superfluous brackets at the end it is enough that nothing follows an object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from rightcall.parsing.values.notation import STRICT_NUMBER
from rightcall.repairs.loose_json import (
    MOST_OBJECTS,
    SHOWN,
    Deviation,
    FloatText,
    Loose,
    Spelling,
    UnreadableJson,
    begins_fence,
    one_object,
    read_loose,
    skip_comments,
    unfence,
)
from rightcall.schema.places import Places, allows_type_of, value_at_place, wants_text
from rightcall.schema.unknown_names import unknown_arguments
from rightcall.types import Tool

_ODD_KEY = re.compile(r"[,:{}\[\]\"]").search
_OPEN = ("additionalProperties", "patternProperties", "unevaluatedProperties", "$ref", "anyOf", "oneOf", "allOf")


def has_sure_brackets(arguments: Any, count: int, tool: Tool | None, *, extra: bool = False) -> bool:
    """Return whether no member of the arguments can belong `count` missing brackets further out or, for `extra`
    brackets, further in.

    If one bracket is in doubt, an object may be an item of a list. An extra bracket at the end cannot belong to a
    member that nothing follows.
    """
    if not extra and count == 1:
        arguments = _without_small_last(arguments, tool)
    for item, around, is_followed in _nested_containers(arguments):
        if (is_followed or not extra) and (type(item) is type(around) or (count > 1 and _holds_values(item))):
            return False
    return True


def _nested_containers(value: Any) -> Iterator[tuple[Any, Any, bool]]:
    """Yield each object or list inside a value, the one around it, and whether another member follows it there."""
    waiting = [value]
    while waiting:
        around = waiting.pop()
        members = list(around.values()) if isinstance(around, dict) else around if isinstance(around, list) else []
        for index, item in enumerate(members):
            if isinstance(item, dict | list):
                waiting.append(item)
                yield item, around, index + 1 < len(members)


def _holds_values(value: Any) -> bool:
    """Return whether a container is an object, or a list with an object or a list in it."""
    return isinstance(value, dict) or any(isinstance(item, dict | list) for item in value)


def _without_small_last(arguments: Any, tool: Tool | None) -> Any:
    """Return the arguments without the last one, if that is an object with at most one member, a scalar whose key is no
    argument of the tool; else the arguments themselves."""
    if not isinstance(arguments, dict):
        return arguments
    last = next(reversed(arguments), "")
    value = arguments.get(last)
    if not isinstance(value, dict) or len(value) > 1 or any(isinstance(item, dict | list) for item in value.values()):
        return arguments
    places = Places(tool.parameters if tool is not None else {})
    is_argument = not value.keys().isdisjoint(places.properties(places.root))
    return arguments if is_argument else {key: item for key, item in arguments.items() if key != last}


def has_odd_key(value: Any) -> bool:
    """Return whether a key, at any depth, contains a comma, colon, quote or bracket: it is two members whose separator
    was lost."""
    containers = [value, *[item for item, _, _ in _nested_containers(value)]]
    return any(_ODD_KEY(key) for each in containers if isinstance(each, dict) for key in each)


def may_be_incomplete(open: tuple[Any, ...], arguments: Any, tool: Tool | None) -> bool:
    """Return whether the `arguments` may lack something at the end of the text. `open`: the values that were open
    there. An open list or a last word always may; open arguments unless they have every property of a closed schema."""
    if any(isinstance(value, list | None) for value in open):
        return True
    if not any(value is arguments for value in open):
        return False
    parameters = tool.parameters if tool is not None else {}
    declared = parameters.get("properties")
    if not isinstance(declared, dict) or not declared or any(parameters.get(word) for word in _OPEN):
        return True
    return not declared.keys() <= arguments.keys()


_BLANK = re.compile(r"[ \t\r\n]*+").match
_CLOSERS = re.compile(r"(?:[ \t\r\n]*+[}\])]){1,3}[ \t\r\n]*+").fullmatch


def read_arguments(
    text: str, start: int, tool: Tool | None, *, depth: int, closed: bool
) -> tuple[Any, tuple[Deviation, ...]]:
    """Parse the whole text from `start` on as loose JSON and return the value, of any type, and the deviations. A code
    fence around it and superfluous brackets behind it are deviations. `closed`: nothing was cut off. Raises
    `UnreadableJson`."""
    removed: tuple[Deviation, ...] = ()
    fenced = _content_of_fence(text, start, closed)
    if fenced is not None:
        removed = (Deviation("code_fence", text[start : start + SHOWN], fenced[:SHOWN]),)
        text, start = fenced, 0
    value, deviations, end = read_object_sequence(text, start, tool, depth=depth, closed=closed)
    end, comments = skip_comments(text, end)
    deviations += tuple([each for each in comments if each.rule not in {deviation.rule for deviation in deviations}])
    rest = text[end:]
    if rest:
        if not _CLOSERS(rest):
            raise UnreadableJson("there is more text after the arguments")
        extra = rest.strip(" \t\r\n")
        unsure = any(each.rule in ("missing_closer", "trailing_comma") for each in deviations)
        unsure = unsure or is_one_too_many_unsure(value, tool, extra)
        deviations += (Deviation("extra_closer", extra, "", unsure),)
    return value, (*removed, *deviations)


def _content_of_fence(text: str, start: int, closed: bool) -> str | None:
    """Return the content of a code fence around the whole text from `start` on; None without a fence. If the call is
    `closed`, the end of the fence may be missing."""
    begin = begins_fence(text, start)
    if begin is None:
        return None
    fenced = unfence(text[start:])
    return text[begin.end() :] if fenced is None and closed else fenced


def is_one_too_many_unsure(arguments: Any, tool: Tool | None, extra: str) -> bool:
    """Return whether another bracket than the last ones, `extra`, may be the superfluous one, or an opening one may be
    missing."""
    count = len("".join(extra.split()))
    return not has_sure_brackets(arguments, count, tool, extra=True) or _has_unusual_names(arguments, tool)


def _has_unusual_names(arguments: Any, tool: Tool | None) -> bool:
    """Return whether the arguments have a name that the tool does not declare, or a key that looks like two."""
    return has_odd_key(arguments) or (tool is not None and bool(unknown_arguments(tool, arguments)))


def read_object_sequence(
    text: str, start: int, tool: Tool | None, *, depth: int, closed: bool
) -> tuple[Any, tuple[Deviation, ...], int]:
    """Parse one value, or a sequence of equal objects as one. Return it, the deviations, and the index behind it.
    Raises `UnreadableJson` for invalid text, for objects that differ, and for more than nine."""
    objects: list[Any] = []
    deviations: dict[str, Deviation] = {}
    while not objects or (isinstance(objects[-1], dict) and text.startswith("{", start)):
        if len(objects) >= MOST_OBJECTS:
            raise UnreadableJson("too many objects follow each other")
        read = read_loose(text, start, depth=depth, closed=closed)
        value, taken = fit_to_tool(read, tool)
        objects.append(value)
        deviations = {deviation.rule: deviation for deviation in taken} | deviations
        start = _BLANK(text, read.end).end()  # type: ignore[union-attr]
    if len(objects) > 1:
        value, deviation = one_object(objects)
        deviations[deviation.rule] = deviation
    return value, tuple(deviations.values()), read.end


def fit_to_tool(read: Loose, tool: Tool | None) -> tuple[Any, tuple[Deviation, ...]]:
    """Restore the spelling that the tool's schema requires and mark uncertain brackets as guesses. Return the value and
    all deviations."""
    value, made = restore_spelling(read.value, read.spellings, tool) if read.spellings else (read.value, ())
    return value, (*judge_brackets(read, value, tool), *made)


def judge_brackets(
    read: Loose, arguments: Any, tool: Tool | None, *, beside: tuple[str, ...] = ()
) -> tuple[Deviation, ...]:
    """Return the deviations of a parsed text, those of brackets and quotes that are not certain marked as guesses.

    A missing bracket is certain if there is one place for it and nothing else can be missing at the end. `beside` has
    the keys that the envelope of the arguments may have.
    """
    unsure = {"single_quotes", "smart_quotes", "unquoted_key"} if read.mixed > bool(beside) else set()
    if read.missing_closers and _is_missing_unsure(read, arguments, tool, beside):
        unsure.add("missing_closer")
    return tuple(
        [msgspec.structs.replace(each, guess=True) if each.rule in unsure else each for each in read.deviations]
    )


def _is_missing_unsure(read: Loose, arguments: Any, tool: Tool | None, beside: tuple[str, ...]) -> bool:
    """Return whether the place of a missing bracket is uncertain, or more than it may be missing. `beside`: the keys
    that the envelope of the arguments may have."""
    if isinstance(arguments, dict) and next(reversed(arguments), None) in beside:
        return True
    if arguments is None and beside and (tool is None or tool.parameters.get("properties")):
        return True  # the envelope was left open before its arguments
    unsure = may_be_incomplete(read.open_at_end, arguments, tool) or _has_unusual_names(arguments, tool)
    return unsure or not has_sure_brackets(arguments, read.missing_closers, tool)


def restore_spelling(value: Any, spellings: Iterable[Spelling], tool: Tool | None) -> tuple[Any, tuple[Deviation, ...]]:
    """Replace numbers and booleans in `value`, in place, by their text where the schema requires a string: `+3`,
    `1_000` or `1.10` may be a telephone number without quotes. Return the value and the deviations. `spellings`: path
    and text of each; a float elsewhere keeps its spelling without a deviation."""
    wanted = _StringPlaces(tool)
    made: dict[str, Deviation] = {}
    for where, text in spellings:
        number = value_at_place(value, list(where))
        if type(number) not in (int, float, bool):
            continue  # a repeated key replaced it
        if where and wanted.as_text(where, type(number)):
            value_at_place(value, list(where[:-1]))[where[-1]] = text
            made.setdefault("unquoted_value", Deviation("unquoted_value", text, f'"{text}"'))
        elif where and type(number) is float and STRICT_NUMBER(text):
            value_at_place(value, list(where[:-1]))[where[-1]] = FloatText(text)
    return value, tuple(made.values())


class _StringPlaces:
    """Tells which places of the arguments require a string; cached, since many numbers are in few lists."""

    def __init__(self, tool: Tool | None) -> None:
        self._places = Places(tool.parameters) if tool is not None else None
        self._around: dict[tuple[str | int, ...], Any] = {}
        self._found: dict[int, bool] = {}

    def as_text(self, where: tuple[str | int, ...], read_as: type) -> bool:
        """Return whether the schema requires a string at the path `where`, at which a value of type `read_as` was
        parsed; False without a tool."""
        if self._places is None:
            return False
        around = where[:-1]
        if around not in self._around:
            self._around[around] = self._places.at(list(around))
        schema = self._places.inner(self._around[around], where[-1])
        if read_as is bool and allows_type_of(schema, True, self._places.refs):
            return False
        if id(schema) not in self._found:  # the tool's schema outlives this object
            self._found[id(schema)] = wants_text(schema, self._places.refs)
        return self._found[id(schema)]
