"""How arguments are written as JSON, wherever a wire has JSON in it."""

from __future__ import annotations

import json
from typing import Any


def write_arguments(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
