"""Numbers with the text they were written as: `1.10` is a number, but as a string it is not "1.1".

Whoever changes a value writes the whole object anew; floats that were not touched keep their spelling, and `1e400`,
which no float holds, stays what it was.
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any

_POINT = re.compile(r"\d[.eE]|-0").search


class NumberText(float):
    """A float that remembers its text."""

    text: str

    def __new__(cls, text: str) -> NumberText:
        self = super().__new__(cls, text)
        self.text = text
        return self


def with_spelling(value: Any, text: str) -> Any:
    """The same value, read from its JSON text once more so that its floats remember theirs."""
    return json.loads(text, parse_float=NumberText, parse_int=_integer) if _POINT(text) else value


def _integer(text: str) -> int | float:
    """`-0` is a number that no integer is."""
    return NumberText(text) if text == "-0" else int(text)


def without_spelling(value: Any) -> Any:
    """The value with plain floats."""
    if isinstance(value, dict):
        return {key: without_spelling(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_spelling(item) for item in value]
    return float(value) if isinstance(value, NumberText) else value


def dumps(value: Any) -> str:
    """JSON in which such floats are written as they were."""
    if isinstance(value, dict):
        return "{" + ", ".join([f"{json.dumps(key, ensure_ascii=False)}: {dumps(value[key])}" for key in value]) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(dumps, value)) + "]"
    if isinstance(value, float):
        return written(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def written(value: float) -> str:
    if isinstance(value, NumberText):
        return value.text
    return repr(value) if isfinite(value) else "1e999" if value > 0 else "-1e999"
