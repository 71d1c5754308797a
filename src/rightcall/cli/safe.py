"""What commands print of text from outside: `visible` and `brief` for people, JSON in plain ASCII for programs."""

from __future__ import annotations

import json
import math
from typing import Any

from rightcall.safe_text import brief, visible

__all__ = ["brief", "finite", "json_line", "json_text", "visible"]


def json_text(value: Any) -> str:
    """JSON data as JSON in plain ASCII. A number too large for a float is null: JSON has no infinity."""
    return json.dumps(finite(value), indent=2).replace("\x7f", "\\u007f")


def json_line(value: Any) -> str:
    """The same on one line."""
    return json.dumps(finite(value)).replace("\x7f", "\\u007f")


def finite(value: Any) -> Any:
    """The same JSON data with null for what is no finite number."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return value
