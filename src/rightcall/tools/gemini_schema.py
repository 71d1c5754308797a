"""Gemini's schema language, OpenAPI's: types in capitals, `nullable`, few keywords.

    {"type": ["string", "null"]}   <->   {"type": "STRING", "nullable": true}

What it cannot say exactly goes out as JSON Schema, in the field Gemini has for that.
"""

from __future__ import annotations

from typing import Any

from rightcall.schema.definition import TYPES
from rightcall.types import Json

_CAPITALS = {name.upper() for name in TYPES}
_COUNTS = {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}
_SAYABLE = _COUNTS | {
    *("type", "format", "title", "description", "nullable", "enum", "items", "properties", "required", "anyOf"),
    *("propertyOrdering", "default", "example", "minimum", "maximum", "pattern"),
}
_FORMATS = {"enum", "date-time", "float", "double", "int32", "int64"}
_SNAKE: dict[str, str] = {"".join(f"_{c.lower()}" if c.isupper() else c for c in word): word for word in _SAYABLE} | {
    "additional_properties": "additionalProperties",
    "prefix_items": "prefixItems",
}


def is_openapi(schema: Any) -> bool:
    return isinstance(schema, dict) and isinstance(schema.get("type"), str) and schema["type"] in _CAPITALS


def from_openapi(schema: Any) -> Any:
    """JSON Schema of a Gemini schema. Both spellings of its keywords are known, `anyOf` and `any_of`."""
    if not isinstance(schema, dict):
        return schema
    found: Json = {_SNAKE.get(str(word), str(word)): value for word, value in schema.items()}
    new = {word: _from_keyword(word, value) for word, value in found.items()}
    said = new.get("type")
    if said == "type_unspecified":
        del new["type"]
    if new.get("nullable") is True and isinstance(said, str):
        del new["nullable"]
        new["type"] = [said, "null"]
    return new


def _from_keyword(word: str, value: Any) -> Any:
    if word == "type" and isinstance(value, str):
        return value.lower()
    if word in _COUNTS and isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    if word == "properties" and isinstance(value, dict):
        return {key: from_openapi(item) for key, item in value.items()}
    if word in ("anyOf", "prefixItems") and isinstance(value, list):
        return [from_openapi(item) for item in value]
    return from_openapi(value) if word in ("items", "additionalProperties") else value


def to_openapi(schema: Json) -> Json | None:
    """The Gemini schema that reads back as exactly this; None if there is none."""
    new = _to_openapi(schema)
    return new if new is not None and from_openapi(new) == schema else None


def _to_openapi(schema: Any) -> Json | None:
    if not isinstance(schema, dict) or not schema.keys() <= _SAYABLE or schema.get("format", "enum") not in _FORMATS:
        return None
    new = dict(schema)
    said = schema.get("type")
    if isinstance(said, list) and len(said) == 2 and "null" in said:
        new["type"], new["nullable"] = said[0], True
    if not isinstance(new.get("type", ""), str) or not ("type" in new or "anyOf" in new):
        return None
    if "type" in new:
        new["type"] = new["type"].upper()
    if not all(isinstance(value, str) for value in schema.get("enum", ())):
        return None
    return _inside(new)


def _inside(new: Json) -> Json | None:
    if "items" in new:
        new["items"] = _to_openapi(new["items"])
    if "properties" in new:
        new["properties"] = {key: _to_openapi(item) for key, item in new["properties"].items()}
    if "anyOf" in new:
        new["anyOf"] = [_to_openapi(item) for item in new["anyOf"]]
    parts = [new.get("items", {}), *new.get("properties", {}).values(), *new.get("anyOf", ())]
    return None if None in parts or new.get("properties", True) == {} else new
