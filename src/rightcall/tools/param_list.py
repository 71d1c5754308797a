"""The parameters of a tool one by one, as a prompt lists them."""

from __future__ import annotations

from typing import Any

import msgspec

from rightcall.schema.places import properties
from rightcall.types import Json, Tool


class Param(msgspec.Struct, frozen=True):
    """`default` is `msgspec.UNSET` if there is none; `schema` is the whole property, `{}` for one that says nothing."""

    name: str
    schema: Json
    description: str = ""
    required: bool = False
    default: Any = msgspec.UNSET
    examples: tuple[Any, ...] = ()


def params(tool: Tool) -> tuple[Param, ...]:
    """Required ones first, then by name. What the schema does not call required is optional."""
    listed = tool.parameters.get("required")
    required = set(listed) if isinstance(listed, list) else set()
    found = [_param(key, schema, key in required) for key, schema in properties(tool.parameters).items()]
    return tuple(sorted(found, key=lambda param: (not param.required, param.name)))


def _param(name: str, given: Any, required: bool) -> Param:
    schema = given if isinstance(given, dict) else {}
    text = schema.get("description")
    default = schema.get("default", msgspec.UNSET)
    return Param(name, schema, text if isinstance(text, str) else "", required, default, examples(schema))


def examples(schema: Json) -> tuple[Any, ...]:
    """A list of examples wins over a single one."""
    if isinstance(schema.get("examples"), list):
        return tuple(schema["examples"])
    return (schema["example"],) if "example" in schema else ()
