"""What a schema asks of a value beyond its type, in words for a comment: "1 to 10", "format date", "unique items"."""

from __future__ import annotations

from typing import Any

from rightcall.types import Json

_LONGEST = 200
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_DEEPEST = 4


def notes(schema: Any, depth: int = 0) -> list[str]:
    """The bounds that this schema states itself. Of a choice with null those of the only other member."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return []
    found = [*_number(schema), *_string(schema), *_array(schema), *_object(schema)]
    each = [f"each item: {note}" for note in notes(schema.get("items"), depth + 1)]
    choice = schema.get("anyOf", schema.get("oneOf"))
    others = [item for item in choice if item != {"type": "null"}] if isinstance(choice, list) else []
    inner = notes(others[0], depth + 1) if len(others) == 1 else []
    return [note[:_LONGEST] for note in found + each + inner]


def _span(low: Any, high: Any, what: str = "") -> list[str]:
    unit = f" {what}" if what else ""
    if low is not None and high is not None:
        return [f"exactly {low}{unit}" if low == high else f"{low} to {high}{unit}"]
    if low is not None:
        return [f"at least {low}{unit}"]
    return [f"at most {high}{unit}"] if high is not None else []


def _number(schema: Json) -> list[str]:
    if not any(word in schema for word in _NUMBERS):
        return []
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if above is True:  # as draft 4 said it
        low, above = None, low
    if below is True:
        high, below = None, high
    found = [f"more than {above}"] if _is_number(above) else []
    found += [f"less than {below}"] if _is_number(below) else []
    found += _span(low, high)
    if "multipleOf" in schema:
        found.append(f"a multiple of {schema['multipleOf']}")
    whole = "integer, " if schema.get("type") == "integer" else ""
    return [whole + ", ".join(found)] if found else []


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _string(schema: Json) -> list[str]:
    found = _span(schema.get("minLength") or None, schema.get("maxLength"), "characters")
    found += [f"{word} {schema[word]}" for word in ("format", "pattern") if isinstance(schema.get(word), str)]
    return found


def _array(schema: Json) -> list[str]:
    found = _span(schema.get("minItems") or None, schema.get("maxItems"), "items")
    return [*found, "unique items"] if schema.get("uniqueItems") is True else found


def _object(schema: Json) -> list[str]:
    return _span(schema.get("minProperties") or None, schema.get("maxProperties"), "keys")
