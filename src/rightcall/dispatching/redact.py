"""Values that no model may see, told by JSON Pointer.

    Redaction(deny=("/user/password", "/rows/*/card"))
    Redaction(allow=("/summary",))

`*` stands for any one step. What is denied is replaced; with an allow-list, so is everything that neither leads to an
allowed place nor lies in one. Deny wins.
"""

from __future__ import annotations

from typing import Any

import msgspec

Steps = tuple[str, ...]


class Redaction(msgspec.Struct, frozen=True, kw_only=True):
    """Values that no model may see, told by JSON Pointers in which `*` stands for any one step: `/rows/*/card`.

    - `deny`: what is replaced. Deny wins.
    - `allow`: where it is given, everything is replaced that neither leads to one of these places nor lies in one.
    - `text`: what stands there instead.
    """

    deny: tuple[str, ...] = ()
    allow: tuple[str, ...] | None = None
    text: str = "[redacted]"


def redacted(value: Any, redaction: Redaction | None) -> tuple[Any, int]:
    """A copy without the values that are not to be seen, and how many were replaced."""
    if redaction is None:
        return value, 0
    walker = _Walker(redaction.text)
    allow = None if redaction.allow is None else [steps(pointer) for pointer in redaction.allow]
    return walker.walk(value, [steps(pointer) for pointer in redaction.deny], allow), walker.count


def steps(pointer: str) -> Steps:
    """The steps of a JSON Pointer. "" is the whole value."""
    return tuple([step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]])


class _Walker:
    """The lists hold what is left of each pointer that still leads here. `allow` is None inside an allowed place."""

    def __init__(self, text: str) -> None:
        self.text, self.count = text, 0

    def walk(self, value: Any, deny: list[Steps], allow: list[Steps] | None) -> Any:
        if () in deny:
            return self.hidden()
        if allow is not None and () in allow:
            allow = None
        if allow is not None and (not allow or not isinstance(value, (dict, list))):
            return self.hidden()
        if not deny and allow is None:
            return value
        if isinstance(value, dict):
            return {key: self.walk(item, _below(deny, key), _allowed(allow, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.walk(item, _below(deny, str(i)), _allowed(allow, str(i))) for i, item in enumerate(value)]
        return value

    def hidden(self) -> str:
        self.count += 1
        return self.text


def _below(pointers: list[Steps], step: str) -> list[Steps]:
    return [rest[1:] for rest in pointers if rest and rest[0] in (step, "*")]


def _allowed(allow: list[Steps] | None, step: str) -> list[Steps] | None:
    return None if allow is None else _below(allow, step)
