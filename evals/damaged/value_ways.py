"""Damage to the values: types, names, nesting. The text stays (almost) well formed; the values do not fit."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from damaged.toolsets import Truth

Arguments = dict[str, Any]
ValueDamage = Callable[[random.Random, Truth], Arguments | None]
Place = tuple[Any, Any]  # the container of a value, and its key or index


def _places(value: Any) -> Iterator[Place]:
    found = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in found:
        yield value, key
        yield from _places(item)


def _copy(truth: Truth) -> Arguments:
    arguments: Arguments = json.loads(json.dumps(truth.arguments))
    return arguments


def _change_one(kinds: tuple[type, ...], change: Callable[[Any], Any]) -> ValueDamage:
    """Return damage that changes one value of these types."""

    def damage(dice: random.Random, truth: Truth) -> Arguments | None:
        arguments = _copy(truth)
        locations = [(holder, key) for holder, key in _places(arguments) if type(holder[key]) in kinds]
        if not locations:
            return None
        holder, key = dice.choice(locations)
        holder[key] = change(holder[key])
        return arguments

    return damage


def _stringify_all(dice: random.Random, truth: Truth) -> Arguments | None:
    """Write every argument that can only be a number or a boolean as a string."""
    declared = truth.parameters["properties"]
    keys = [key for key in truth.arguments if declared[key].get("type") in ("integer", "number", "boolean")]
    arguments = {**truth.arguments, **{key: json.dumps(truth.arguments[key]) for key in keys}}
    return arguments if keys else None


def _rename_key(change: Callable[[str], str]) -> ValueDamage:
    """Return damage that renames one key in its place."""

    def damage(dice: random.Random, truth: Truth) -> Arguments | None:
        arguments = _copy(truth)
        locations = [
            (holder, key)
            for holder, key in _places(arguments)
            if isinstance(holder, dict) and change(key) not in holder
        ]
        if not locations:
            return None
        holder, key = dice.choice(locations)
        items = [(change(name) if name == key else name, item) for name, item in holder.items()]
        holder.clear()
        holder.update(items)
        return arguments

    return damage


def _camel(key: str) -> str:
    if "_" in key:
        first, *rest = key.split("_")
        return first + "".join([word.title() for word in rest])
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", key).lower()


def _repr_text(value: Any) -> str:
    return repr(value)


def _unwrap_item(dice: random.Random, truth: Truth) -> Arguments | None:
    arguments = _copy(truth)
    locations = [
        (holder, key) for holder, key in _places(arguments) if isinstance(holder[key], list) and len(holder[key]) == 1
    ]
    if not locations:
        return None
    holder, key = dice.choice(locations)
    holder[key] = holder[key][0]
    return arguments


def _join_list(dice: random.Random, truth: Truth) -> Arguments | None:
    """Write a list of strings as one string."""
    arguments = _copy(truth)
    locations = [(holder, key) for holder, key in _places(arguments) if isinstance(holder[key], list) and holder[key]]
    locations = [(holder, key) for holder, key in locations if all(isinstance(item, str) for item in holder[key])]
    if not locations:
        return None
    holder, key = dice.choice(locations)
    holder[key] = dice.choice((", ", ",", "; ", "\n", " | ")).join(holder[key])
    return arguments


def _move_up(dice: random.Random, truth: Truth) -> Arguments | None:
    """Move a key of a nested object into the surrounding object."""
    arguments = _copy(truth)
    locations = [
        (holder, key)
        for holder, key in _places(arguments)
        if isinstance(holder, dict) and isinstance(holder[key], dict)
    ]
    locations = [(holder, key) for holder, key in locations if holder[key].keys() - holder.keys()]
    if not locations:
        return None
    holder, key = dice.choice(locations)
    name = dice.choice(sorted(holder[key].keys() - holder.keys()))
    holder[name] = holder[key].pop(name)
    return arguments


def _drop_required(dice: random.Random, truth: Truth) -> Arguments | None:
    """Drop a required key."""
    arguments = _copy(truth)
    needed = [key for key in truth.parameters.get("required", ()) if key in arguments]
    if not needed:
        return None
    del arguments[dice.choice(needed)]
    return arguments


def _wrap(dice: random.Random, truth: Truth) -> Arguments | None:
    return {dice.choice(("arguments", "parameters", "input", "kwargs")): _copy(truth)}


WAYS: dict[str, ValueDamage] = {
    "number as a string": _change_one((int, float), str),
    "every number and boolean as a string": _stringify_all,
    "boolean as a string": _change_one((bool,), str),
    "boolean as a number": _change_one((bool,), int),
    "null as a string": _change_one((type(None),), lambda value: "null"),
    "number as a string with a zero": _change_one((int,), lambda value: f"0{value}"),
    "number as a string with a unit": _change_one((int, float), lambda value: f"{value} items"),
    "string that is no number as a list": _change_one((str,), lambda value: [value]),
    "value as a JSON string": _change_one((dict, list), json.dumps),
    "value as a JSON string twice": _change_one((dict, list), lambda value: json.dumps(json.dumps(value))),
    "value as a Python string": _change_one((dict, list), _repr_text),
    "value in a list": _change_one((int, float, bool, dict), lambda value: [value]),
    "list of one as its item": _unwrap_item,
    "list as one string": _join_list,
    "key in camel case": _rename_key(_camel),
    "key in capitals": _rename_key(str.upper),
    "key with blanks": _rename_key(lambda key: f" {key} "),
    "key with another letter": _rename_key(lambda key: key[:1] + "x" + key[2:]),
    "key doubled by a letter": _rename_key(lambda key: key + key[-1]),
    "key one level up": _move_up,
    "required key dropped": _drop_required,
    "option in another case": _change_one((str,), lambda value: value.upper() if value.islower() else value.lower()),
    "option with other separators": _change_one((str,), lambda value: re.sub("[ _-]", "", value)),
    "sign before a string": _change_one((str,), lambda value: f"-{value}"),
    "arguments inside arguments": _wrap,
}
