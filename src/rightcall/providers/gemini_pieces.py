"""A Gemini call whose arguments arrive in pieces:

    {"functionCall": {"name": "f", "willContinue": true}}
    {"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "Os", "willContinue": true}], ...}}
    {"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "lo"}]}}

A call is over with the piece that does not say `willContinue`. Pieces of a string are joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rightcall.providers.deltas import DeltaPiece
from rightcall.providers.sdk_view import dumps, obj, objects, text
from rightcall.types import Json

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,4})\]|\[\s*(['\"])(.*?)\3\s*\]")
_LONGEST = 400  # characters of a path, and so at most 200 steps deep
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue", "string_value", "number_value", "bool_value")


class Pieces:
    """One call being put together."""

    def __init__(self, number: int) -> None:
        self.slot = f"pieces-{number}"
        self.name = self.id = ""
        self.lost = ""  # a path that could not be followed
        self._arguments: Json = {}

    def add(self, call: Json) -> None:
        self.name, self.id = self.name or text(call.get("name")), self.id or text(call.get("id"))
        self._arguments.update(obj(call.get("args")) or {})
        for piece in objects(call.get("partialArgs", call.get("partial_args"))):
            path = text(piece.get("jsonPath", piece.get("json_path")))
            steps = list(_steps(path)) if len(path) < _LONGEST else []
            if not steps or not _put(self._arguments, steps, _value(piece)):
                self.lost = self.lost or path or "?"

    def whole(self) -> DeltaPiece:
        lost = ("malformed_response", f"a piece of the arguments has a path that leads nowhere: {self.lost}")
        fault = lost if self.lost else None
        said = dumps(_joined(self._arguments))
        return DeltaPiece(
            slot=self.slot, id=self.id, name=self.name, arguments=said, all=True, parsed=True, fault=fault
        )


def _value(piece: Json) -> Any:
    found = next((piece[key] for key in _VALUES if key in piece and key[:4] != "null"), None)
    return int(found) if isinstance(found, float) and found.is_integer() else found


def _steps(path: str) -> Iterator[str | int]:
    """`$.a[0].b` as keys and positions; nothing for a path that is not all understood."""
    at = 1 if path.startswith("$") else 0
    found: list[str | int] = []
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return
        at = step.end()
        found.append(int(step[2]) if step[2] else step[1] or step[4] or "")
    yield from found


def _makes_room(into: Any, step: str | int) -> bool:
    """Can this hold something there? A list that ends right before the position grows."""
    if isinstance(into, dict):
        return isinstance(step, str)
    if not isinstance(into, list) or isinstance(into, _GeminiText) or not isinstance(step, int) or step > len(into):
        return False
    if step == len(into):
        into.append(None)
    return True


def _put(into: Any, steps: list[str | int], value: Any) -> bool:
    """Puts a value where the steps lead, making what is missing on the way. False where that cannot be."""
    for step, follows in zip(steps, [*steps[1:], None], strict=True):
        if not _makes_room(into, step):
            return False
        before = into.get(step) if isinstance(into, dict) else into[step]
        if follows is None:
            into[step] = _longer(before, value) if isinstance(value, str) else value
        elif before is None:
            into[step] = [] if isinstance(follows, int) else {}
        into = into[step]
    return True


class _GeminiText(list[str]):
    """A string of which more may come."""


def _longer(before: Any, more: str) -> _GeminiText:
    text = before if isinstance(before, _GeminiText) else _GeminiText([before] if isinstance(before, str) else ())
    text.append(more)
    return text


def _joined(value: Any) -> Any:
    if isinstance(value, _GeminiText):
        return "".join(value)
    if isinstance(value, dict):
        return {key: _joined(each) for key, each in value.items()}
    return [_joined(each) for each in value] if isinstance(value, list) else value
