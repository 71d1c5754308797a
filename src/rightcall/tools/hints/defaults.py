"""A default as JSON shows it."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import msgspec

from rightcall.types import Json


class NotJson:
    """Says that there is nothing to show."""


NOT_JSON = NotJson()


def as_json(value: Any) -> Any:
    """What JSON has for a Python value; `NOT_JSON` if it has nothing."""
    try:
        made = msgspec.to_builtins(value, builtin_types=(bytes,), enc_hook=_other)
        return json.loads(json.dumps(made, allow_nan=False, default=bytes.decode))
    except (TypeError, ValueError, RecursionError):
        return NOT_JSON


def with_default(schema: Json, value: Any) -> Json:
    """The schema, with this default where JSON can say it."""
    said = as_json(value)
    return schema if said is NOT_JSON else {**schema, "default": said}


def _other(value: Any) -> Any:
    if isinstance(value, pathlib.PurePath):
        return str(value)
    raise TypeError(value)
