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
    LooseValue,
    Spelling,
    UnreadableJson,
    begins_fence,
    merge_equal_objects,
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
    """Return whether `count` missing closing brackets can be at the end of the arguments only, or, with `extra`,
    whether `count` superfluous ones there cannot belong further inside.

    For one bracket: no object is directly in an object, and no list in a list. For several: there is no object and no
    list of containers inside the arguments. With `extra` only containers that another member follows count. For one
    missing bracket a small last argument does not count (see `_without_last_object`); `tool` may be None.
    """
    if not extra and count == 1:
        arguments = _without_last_object(arguments, tool)
    for item, around, is_followed in _nested_containers(arguments):
        if (is_followed or not extra) and (type(item) is type(around) or (count > 1 and _is_object_or_nested(item))):
            return False
    return True


def _nested_containers(value: Any) -> Iterator[tuple[Any, Any, bool]]:
    """Yield each object or list inside a value at any depth, as (container, the one directly around it, whether another
    member follows it there); nothing for a scalar."""
    waiting = [value]
    while waiting:
        around = waiting.pop()
        members = list(around.values()) if isinstance(around, dict) else around if isinstance(around, list) else []
        for index, item in enumerate(members):
            if isinstance(item, dict | list):
                waiting.append(item)
                yield item, around, index + 1 < len(members)


def _is_object_or_nested(value: Any) -> bool:
    """Return whether a container is an object, or a list with an object or a list in it; False for a list of
    scalars."""
    return isinstance(value, dict) or any(isinstance(item, dict | list) for item in value)


def _without_last_object(arguments: Any, tool: Tool | None) -> Any:
    """Return a copy of a call's arguments without the last one, if its value is an object that is empty or has one
    scalar member whose key is no argument of the tool; otherwise the same object.

    A missing bracket cannot belong before such a member, since the member would then be an unknown argument.
    """
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
    """Return whether a key of an object, at any depth of `value`, contains a comma, colon, double quote, brace or
    square bracket: it may be two members whose separator was lost."""
    containers = [value, *[item for item, _, _ in _nested_containers(value)]]
    return any(_ODD_KEY(key) for each in containers if isinstance(each, dict) for key in each)


def may_be_incomplete(open: tuple[Any, ...], arguments: Any, tool: Tool | None) -> bool:
    """Return whether text whose end was reached inside brackets may lack more than them. `open`: the values that were
    open there, None among them if the text ends in a word or number; `arguments`: the parsed arguments.

    True for an open list or a None. If the `arguments` object itself is open, True unless it has every declared
    property of a schema that allows no others. Otherwise False.
    """
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
    """Parse the argument text from index `start` to its end as loose JSON; return the value, of any type, and the
    deviations. A code fence around it, comments, and up to three superfluous closing brackets behind it are deviations.
    `closed`: the text was not cut off. Raises `UnreadableJson`, also for other text behind the value."""
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
        unsure = unsure or is_extra_closer_unsure(value, tool, extra)
        deviations += (Deviation("extra_closer", extra, "", unsure),)
    return value, (*removed, *deviations)


def _content_of_fence(text: str, start: int, closed: bool) -> str | None:
    """Return the content of a code fence that encloses the text from index `start` to its end; None without such a
    fence. If the text was not cut off (`closed`), the closing fence may be missing (LangChain's test_json.py)."""
    begin = begins_fence(text, start)
    if begin is None:
        return None
    fenced = unfence(text[start:])
    return text[begin.end() :] if fenced is None and closed else fenced


def is_extra_closer_unsure(arguments: Any, tool: Tool | None, extra: str) -> bool:
    """Return whether it is uncertain that `extra`, the text of superfluous closing brackets behind the arguments, is
    superfluous: another bracket may be, or an opening one may be missing. Undeclared arguments and keys that look like
    two members make it uncertain."""
    count = len("".join(extra.split()))
    return not has_sure_brackets(arguments, count, tool, extra=True) or _has_unusual_names(arguments, tool)


def _has_unusual_names(arguments: Any, tool: Tool | None) -> bool:
    """Return whether the arguments have a name, at any depth, that the tool does not declare, or a key that looks like
    two (see `has_odd_key`). Without a tool only the latter counts."""
    return has_odd_key(arguments) or (tool is not None and bool(unknown_arguments(tool, arguments)))


def read_object_sequence(
    text: str, start: int, tool: Tool | None, *, depth: int, closed: bool
) -> tuple[Any, tuple[Deviation, ...], int]:
    """Parse loose JSON at index `start`: one value, or objects in a row that are equal, apart from empty ones, as one.
    Return the value, the deviations, and the index behind the value or the last object. Text may follow. Raises
    `UnreadableJson` for invalid text, for objects that differ, and for more than nine."""
    objects: list[Any] = []
    deviations: dict[str, Deviation] = {}
    while not objects or (isinstance(objects[-1], dict) and text.startswith("{", start)):
        if len(objects) >= MOST_OBJECTS:
            raise UnreadableJson("too many objects follow each other")
        read = read_loose(text, start, depth=depth, closed=closed)
        value, taken = restore_and_mark(read, tool)
        objects.append(value)
        deviations = {deviation.rule: deviation for deviation in taken} | deviations
        start = _BLANK(text, read.end).end()  # type: ignore[union-attr]
    if len(objects) > 1:
        value, deviation = merge_equal_objects(objects)
        deviations[deviation.rule] = deviation
    return value, tuple(deviations.values()), read.end


def restore_and_mark(read: LooseValue, tool: Tool | None) -> tuple[Any, tuple[Deviation, ...]]:
    """Return the value of parsed text and all deviations, after `restore_spelling` has put back text where the tool's
    schema wants strings, and with uncertain deviations marked as guesses. `read.value` is changed in place."""
    value, made = restore_spelling(read.value, read.spellings, tool) if read.spellings else (read.value, ())
    return value, (*mark_uncertain_deviations(read, value, tool), *made)


def mark_uncertain_deviations(
    read: LooseValue, arguments: Any, tool: Tool | None, *, beside: tuple[str, ...] = ()
) -> tuple[Deviation, ...]:
    """Return the deviations of the parsed text `read`, those of missing brackets and of quotes that are not certain
    marked as guesses. `arguments`: those of the call in it.

    A missing bracket is certain if there is one place for it and nothing else can be missing at the end. Quotes are not
    if objects inside each other quote their keys differently. `beside`: the keys that an envelope around the arguments
    may have; () if there is no envelope.
    """
    unsure = {"single_quotes", "smart_quotes", "unquoted_key"} if read.mixed > bool(beside) else set()
    if read.missing_closers and _is_missing_closer_unsure(read, arguments, tool, beside):
        unsure.add("missing_closer")
    return tuple(
        [msgspec.structs.replace(each, guess=True) if each.rule in unsure else each for each in read.deviations]
    )


def _is_missing_closer_unsure(read: LooseValue, arguments: Any, tool: Tool | None, beside: tuple[str, ...]) -> bool:
    """Return whether the place of a missing bracket is uncertain, or more than brackets may be missing. `arguments`:
    None if an envelope was left open before them. `beside`: the keys that the envelope may have: one of them as the
    last argument makes it uncertain."""
    if isinstance(arguments, dict) and next(reversed(arguments), None) in beside:
        return True
    if arguments is None and beside and (tool is None or tool.parameters.get("properties")):
        return True  # the envelope was left open before its arguments
    unsure = may_be_incomplete(read.open_at_end, arguments, tool) or _has_unusual_names(arguments, tool)
    return unsure or not has_sure_brackets(arguments, read.missing_closers, tool)


def restore_spelling(value: Any, spellings: Iterable[Spelling], tool: Tool | None) -> tuple[Any, tuple[Deviation, ...]]:
    """Replace numbers and booleans in `value`, in place, by the text they were parsed from where the tool's schema
    wants a string: `+3`, `1_000` or `1.10` may be a telephone number without quotes. Return `value` and the deviations.

    `spellings`: path and text of each candidate; those whose value is no number or boolean any more are skipped. Where
    the schema does not want a string, a float becomes a `FloatText`, without a deviation.
    """
    wanted = _TextChecker(tool)
    made: dict[str, Deviation] = {}
    for where, text in spellings:
        number = value_at_place(value, list(where))
        if type(number) not in (int, float, bool):
            continue  # a repeated key replaced it
        if where and wanted.is_text_wanted(where, type(number)):
            value_at_place(value, list(where[:-1]))[where[-1]] = text
            made.setdefault("unquoted_value", Deviation("unquoted_value", text, f'"{text}"'))
        elif where and type(number) is float and STRICT_NUMBER(text):
            value_at_place(value, list(where[:-1]))[where[-1]] = FloatText(text)
    return value, tuple(made.values())


class _TextChecker:
    """Decides for which places of a call's arguments the schema wants a string; cached, since many numbers are in few
    lists."""

    def __init__(self, tool: Tool | None) -> None:
        self._places = Places(tool.parameters) if tool is not None else None
        self._around: dict[tuple[str | int, ...], Any] = {}
        self._found: dict[int, bool] = {}

    def is_text_wanted(self, where: tuple[str | int, ...], read_as: type) -> bool:
        """Return whether the value at the path `where`, which was parsed as a number or boolean, should be a string:
        the schema there accepts strings, perhaps null and containers too, but neither numbers nor constants of other
        types nor, if a boolean was parsed (`read_as` is bool), booleans. False without a tool and for a schema without
        types."""
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
