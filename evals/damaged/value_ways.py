"""Damage to what is said: types, names, nesting. The text is well formed, or nearly; what it says is not what fits."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from damaged.toolsets import Truth

Arguments = dict[str, Any]
ValueWay = Callable[[random.Random, Truth], Arguments | None]
Place = tuple[Any, Any]  # what holds a value, and its key or index there


def _places(value: Any) -> Iterator[Place]:
    found = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in found:
        yield value, key
        yield from _places(item)


def _copy(truth: Truth) -> Arguments:
    made: Arguments = json.loads(json.dumps(truth.arguments))
    return made


def _one(kinds: tuple[type, ...], change: Callable[[Any], Any]) -> ValueWay:
    """Another value for one of these types."""

    def way(dice: random.Random, truth: Truth) -> Arguments | None:
        made = _copy(truth)
        at = [(holder, key) for holder, key in _places(made) if type(holder[key]) in kinds]
        if not at:
            return None
        holder, key = dice.choice(at)
        holder[key] = change(holder[key])
        return made

    return way


def _all_typed(dice: random.Random, truth: Truth) -> Arguments | None:
    """Every argument that can only be a number or a boolean, as a string."""
    declared = truth.parameters["properties"]
    wanted = [key for key in truth.arguments if declared[key].get("type") in ("integer", "number", "boolean")]
    made = {**truth.arguments, **{key: json.dumps(truth.arguments[key]) for key in wanted}}
    return made if wanted else None


def _keyed(change: Callable[[str], str]) -> ValueWay:
    """Another name for one key, its place among the others kept."""

    def way(dice: random.Random, truth: Truth) -> Arguments | None:
        made = _copy(truth)
        at = [(holder, key) for holder, key in _places(made) if isinstance(holder, dict) and change(key) not in holder]
        if not at:
            return None
        holder, key = dice.choice(at)
        items = [(change(name) if name == key else name, item) for name, item in holder.items()]
        holder.clear()
        holder.update(items)
        return made

    return way


def _camel(key: str) -> str:
    if "_" in key:
        first, *rest = key.split("_")
        return first + "".join([word.title() for word in rest])
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", key).lower()


def _repr_text(value: Any) -> str:
    return repr(value)


def _item_unwrapped(dice: random.Random, truth: Truth) -> Arguments | None:
    made = _copy(truth)
    at = [(holder, key) for holder, key in _places(made) if isinstance(holder[key], list) and len(holder[key]) == 1]
    if not at:
        return None
    holder, key = dice.choice(at)
    holder[key] = holder[key][0]
    return made


def _joined(dice: random.Random, truth: Truth) -> Arguments | None:
    """A list of strings as one string."""
    made = _copy(truth)
    at = [(holder, key) for holder, key in _places(made) if isinstance(holder[key], list) and holder[key]]
    at = [(holder, key) for holder, key in at if all(isinstance(item, str) for item in holder[key])]
    if not at:
        return None
    holder, key = dice.choice(at)
    holder[key] = dice.choice((", ", ",", "; ", "\n", " | ")).join(holder[key])
    return made


def _up(dice: random.Random, truth: Truth) -> Arguments | None:
    """A key of an object inside stands in the one around it."""
    made = _copy(truth)
    at = [(holder, key) for holder, key in _places(made) if isinstance(holder, dict) and isinstance(holder[key], dict)]
    at = [(holder, key) for holder, key in at if holder[key].keys() - holder.keys()]
    if not at:
        return None
    holder, key = dice.choice(at)
    name = dice.choice(sorted(holder[key].keys() - holder.keys()))
    holder[name] = holder[key].pop(name)
    return made


def _dropped(dice: random.Random, truth: Truth) -> Arguments | None:
    """A required key is gone."""
    made = _copy(truth)
    needed = [key for key in truth.parameters.get("required", ()) if key in made]
    if not needed:
        return None
    del made[dice.choice(needed)]
    return made


def _wrapped(dice: random.Random, truth: Truth) -> Arguments | None:
    return {dice.choice(("arguments", "parameters", "input", "kwargs")): _copy(truth)}


WAYS: dict[str, ValueWay] = {
    "number as a string": _one((int, float), str),
    "every number and boolean as a string": _all_typed,
    "boolean as a string": _one((bool,), str),
    "boolean as a number": _one((bool,), int),
    "null as a string": _one((type(None),), lambda value: "null"),
    "number as a string with a zero": _one((int,), lambda value: f"0{value}"),
    "number as a string with a unit": _one((int, float), lambda value: f"{value} items"),
    "string that is no number as a list": _one((str,), lambda value: [value]),
    "value as a JSON string": _one((dict, list), json.dumps),
    "value as a JSON string twice": _one((dict, list), lambda value: json.dumps(json.dumps(value))),
    "value as a Python string": _one((dict, list), _repr_text),
    "value in a list": _one((int, float, bool, dict), lambda value: [value]),
    "list of one as its item": _item_unwrapped,
    "list as one string": _joined,
    "key in camel case": _keyed(_camel),
    "key in capitals": _keyed(str.upper),
    "key with blanks": _keyed(lambda key: f" {key} "),
    "key with another letter": _keyed(lambda key: key[:1] + "x" + key[2:]),
    "key doubled by a letter": _keyed(lambda key: key + key[-1]),
    "key one level up": _up,
    "required key dropped": _dropped,
    "option in another case": _one((str,), lambda value: value.upper() if value.islower() else value.lower()),
    "option with other separators": _one((str,), lambda value: re.sub("[ _-]", "", value)),
    "sign before a string": _one((str,), lambda value: f"-{value}"),
    "arguments inside arguments": _wrapped,
}
