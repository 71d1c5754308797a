"""What commands print of text from outside: `visible` and `brief` for people, JSON in plain ASCII for programs."""

from __future__ import annotations

import json
from typing import Any

from rightcall.safe_text import brief, visible
from rightcall.storage.jsonl import finite

__all__ = ["brief", "finite", "json_line", "json_text", "visible"]


def json_text(value: Any) -> str:
    """JSON data as JSON in plain ASCII. A number too large for a float is null: JSON has no infinity."""
    return json.dumps(finite(value), indent=2).replace("\x7f", "\\u007f")


def json_line(value: Any) -> str:
    """The same on one line."""
    return json.dumps(finite(value)).replace("\x7f", "\\u007f")
