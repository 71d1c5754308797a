"""The names of JSON Schema's types, and the one type that another name for it means.

meant("float") == {"type": "number"}    meant("list[str]") == {"type": "array", "items": {"type": "string"}}
meant("any") == {}                      meant("colour") is None
"""

from __future__ import annotations

import re
from typing import Any

from rightcall.types import Json

TYPES = ("object", "string", "integer", "number", "boolean", "array", "null")
_STRINGS = (
    "str text varchar char character date datetime date-time time timestamp duration email uri url uuid path file"
)
_MEANT = {
    **{name: name for name in TYPES},
    **dict.fromkeys((*_STRINGS.split(), "password", "unicode"), "string"),
    **dict.fromkeys("int long short byte uint ulong ushort bigint smallint tinyint unsigned".split(), "integer"),
    **{f"{sign}int{bits}": "integer" for sign in ("", "u") for bits in (8, 16, 32, 64, 128)},
    **dict.fromkeys("float double decimal real numeric float16 float32 float64".split(), "number"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys("list tuple set frozenset sequence iterable arraylist vector".split(), "array"),
    **dict.fromkeys("dict dictionary map mapping struct hashmap record json_object".split(), "object"),
    **dict.fromkeys("none nil nonetype".split(), "null"),
}
_ANYTHING = frozenset(("any", "anything", "mixed", "unknown", "enum", "*"))
_PARTS = re.compile(r"(?<!\s)\s*+(?:\||\bor\b)\s*+")
_OF = re.compile(r"([a-z]++)\s*+(?:\[(.*+)(?<=\])|<(.*+)(?<=>))")
_LONGEST = 100


def word(name: str) -> str | None:
    """The type that one word means, `int` for `integer`; None if it means none, or any."""
    return _MEANT.get(name)


def meant(name: Any, depth: int = 3) -> Json | None:
    """The schema that this name of a type stands for; None where it stands for nothing certain."""
    if not isinstance(name, str) or len(name) > _LONGEST or not depth:
        return None
    folded = name.strip().lower().removeprefix("typing.")
    if folded in _ANYTHING:
        return {}
    if folded in _MEANT:
        return {"type": _MEANT[folded]}
    if folded.endswith("[]"):
        return _list_of(folded[:-2], depth)
    inside = _OF.fullmatch(folded)
    if inside is not None:
        return _with_inside(inside[1], (inside[2] or inside[3] or " ")[:-1], depth)
    parts = _PARTS.split(folded)
    return either([meant(part, depth - 1) for part in parts]) if len(parts) > 1 else None


def _with_inside(outer: str, inner: str, depth: int) -> Json | None:
    """`list[str]`, `Optional[int]`, `dict[str, int]`."""
    if outer == "optional":
        return either([meant(inner, depth - 1), {"type": "null"}])
    if outer == "union":
        return either([meant(part, depth - 1) for part in inner.split(",")])
    kind = _MEANT.get(outer)
    if kind == "array":
        return {"type": "array"} if "," in inner or outer == "tuple" else _list_of(inner, depth)
    return {"type": "object"} if kind == "object" else None


def _list_of(inner: str, depth: int) -> Json | None:
    item = meant(inner, depth - 1)
    return None if item is None else {"type": "array", "items": item} if item else {"type": "array"}


def either(schemas: list[Json | None]) -> Json | None:
    """One schema of several that say a type and nothing else; None where one of them is not known or says more."""
    if any(schema is None or schema.keys() > {"type"} for schema in schemas):
        return None
    if any(not schema for schema in schemas):
        return {}
    names = list(dict.fromkeys(schema["type"] for schema in schemas if schema))
    return {"type": names[0] if len(names) == 1 else names}
