"""Brackets that were repaired: is there only one place where each of them can have been?

    {"filter": {"glob": "*", "dry_run": true}        a "}" is missing: at the end, or before "dry_run"?

Arguments in which no object is inside another can be read in one way only. So can those in which the last argument is
an object with one value and nothing else. All others are ambiguous.
"""

from __future__ import annotations

import re
from typing import Any

from rightcall.schema.places import Places
from rightcall.types import Tool

_ODD_KEY = re.compile(r"[,:{}\[\]\"]").search
_OPEN = ("additionalProperties", "patternProperties", "unevaluatedProperties", "$ref", "anyOf", "oneOf", "allOf")


def has_sure_brackets(arguments: Any, count: int, tool: Tool | None, *, extra: bool = False) -> bool:
    """Can no member of these arguments have been `count` brackets further out or, where they are `extra`, further in?

    An object may be an item of a list, if only one bracket is in doubt. Of extra brackets at the end, none can
    belong to a member that nothing follows.
    """
    waiting = [arguments]
    if not extra and count == 1 and isinstance(arguments, dict) and arguments:
        last = next(reversed(arguments))
        if _holds_one_value(arguments[last], tool):
            waiting = [{key: item for key, item in arguments.items() if key != last}]
    while waiting:
        here = waiting.pop()
        members = list(here.values()) if isinstance(here, dict) else here if isinstance(here, list) else []
        for index, item in enumerate(members):
            if not isinstance(item, dict | list):
                continue
            waiting.append(item)
            is_followed = index + 1 < len(members)
            if (is_followed or not extra) and (type(item) is type(here) or (count > 1 and _holds_values(item))):
                return False
    return True


def _holds_values(value: Any) -> bool:
    """Is this an object, or a list that holds objects or lists?"""
    return isinstance(value, dict) or any(isinstance(item, dict | list) for item in value)


def _holds_one_value(value: Any, tool: Tool | None) -> bool:
    """Is this an object with at most one value, which cannot be an argument of its own?"""
    if not isinstance(value, dict) or len(value) > 1 or any(isinstance(item, dict | list) for item in value.values()):
        return False
    places = Places(tool.parameters if tool is not None else {})
    return value.keys().isdisjoint(places.properties(places.root))


def has_odd_key(value: Any) -> bool:
    """Is there a key that looks like two, which what stood between them was lost from?"""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            if any(_ODD_KEY(key) for key in here):
                return True
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here
    return False


def may_be_cut(open: tuple[Any, ...], arguments: Any, tool: Tool | None) -> bool:
    """May one of the values that were open at the end have held more than was read? Not the arguments, where they have
    all that the tool declares."""
    if any(value is None or isinstance(value, list) for value in open):
        return True
    if not any(value is arguments for value in open):
        return False
    parameters = tool.parameters if tool is not None else {}
    declared = parameters.get("properties")
    if not isinstance(declared, dict) or not declared or any(parameters.get(word) for word in _OPEN):
        return True
    return not declared.keys() <= arguments.keys()
