"""Is this the call that was wanted? The match rules of the Berkeley Function Calling Leaderboard, for calls in JSON.

    is_match("f", {"city": "new york"}, function, {"f": {"city": ["New York"], "days": [3, ""]}})   ->  True

A truth lists the acceptable values of each argument; "" among them says that it may be left out. Strings are compared
without case, blanks and the marks ,./-_*^ between them; types are those that the function declares, or that the truth
has. These are the leaderboard's rules, its oddities included, so that figures can be held against its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from rightcall.types import Json

_LEFT_OUT = re.compile(r"[ ,./\-_*^]")
_KINDS: dict[str, type[Any]] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
Made = tuple[str, Json]  # the name of a call, and its arguments


def are_matches(made: Sequence[Made], functions: Iterable[Json], truths: Sequence[Json]) -> bool:
    """Is each truth met by a call of its own, and is there no other call? In any order."""
    known = {function["name"]: function for function in functions}
    left = dict(enumerate(made))  # equal calls may differ in their types
    if len(made) != len(truths):
        return False
    for truth in truths:
        function = known.get(next(iter(truth)), {})
        found = next((at for at, call in left.items() if is_match(*call, function, truth)), None)
        if found is None:
            return False
        del left[found]
    return True


def is_match(name: str, arguments: Json, function: Json, truth: Json) -> bool:
    """Is a call of this `name` with these `arguments` one that the `truth` accepts of this `function`?"""
    ((wanted, accepted),) = truth.items()
    declared = function.get("parameters", {})
    if name != wanted or any(each not in arguments for each in declared.get("required", ())):
        return False
    if any("" not in values for key, values in accepted.items() if key not in arguments):
        return False
    known = declared.get("properties", {})
    return all(
        key in known and key in accepted and _is_accepted(value, accepted[key], known[key])
        for key, value in arguments.items()
    )


def _is_accepted(given: Any, accepted: Sequence[Any], declared: Json) -> bool:
    said = declared.get("type", "any")
    kind = _KINDS.get(said, str)
    items: type[Any] | None = _KINDS.get(declared.get("items", {}).get("type", "any"), str) if kind is list else None
    value: Any = float(given) if said == "float" and type(given) is int else given
    if not _has_kind(value, accepted, kind, items):
        return False
    if _kind_of(accepted) not in (None, kind) or (type(value) is not kind):
        return value in accepted  # the name of a variable in the place of a value
    if kind is dict:
        return any(_is_object(value, each) for each in accepted if each != "")
    if kind is list:
        return any((_are_objects if items is dict else _is_list)(value, each) for each in accepted)
    return _plain(value) in map(_plain, accepted) if kind is str else value in accepted


def _kind_of(accepted: Iterable[Any]) -> type[Any] | None:
    """The type of the values that a truth has; None where it only says that there may be none."""
    return next((type(each) for each in accepted if each != ""), None)


def _has_kind(value: Any, accepted: Sequence[Any], kind: type[Any], items: type[Any] | None) -> bool:
    """Is the value of the declared type, or else of the truth's own?"""
    if type(value) is not kind:
        return type(value) is _kind_of(accepted)
    return items is None or any(not isinstance(each, list) or _have_kind(value, each, items) for each in accepted)


def _have_kind(value: list[Any], accepted: list[Any], kind: type[Any]) -> bool:
    return all(_has_kind(item, accepted, kind, None) for item in value)


def _plain(value: Any) -> Any:
    """A string without what does not count; anything else as it is."""
    return _LEFT_OUT.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value


def _is_list(value: list[Any], accepted: Any) -> bool:
    return isinstance(accepted, list | str) and list(map(_plain, value)) == list(map(_plain, accepted))


def _is_object(value: Any, accepted: Any) -> bool:
    if not (isinstance(value, dict) and isinstance(accepted, dict)):
        return False
    options = {key: each if isinstance(each, list | str) else [each] for key, each in accepted.items()}
    if any("" not in values for key, values in options.items() if key not in value):
        return False
    return all(key in options and _plain(item) in map(_plain, options[key]) for key, item in value.items())


def _are_objects(value: list[Any], accepted: Any) -> bool:
    if not isinstance(accepted, list | str) or len(value) != len(accepted):
        return False
    return all(map(_is_object, value, accepted))
