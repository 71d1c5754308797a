"""The end of every call, whatever wire it came on: its argument text becomes arguments, receipts and problems."""

from __future__ import annotations

from typing import Any

from rightcall.declare.toolset import Toolset
from rightcall.strict_json import MAX_DEPTH, Undecodable, decode
from rightcall.types import Call, Problem, Repair

_BLANKS = " \t\r\n"


def settle(
    name: str,
    json: str,
    *,
    index: int,
    id: str = "",
    raw: str = "",
    tools: Toolset | None = None,
    policy: str = "safe",
    depth: int = MAX_DEPTH,
    value: Any = Undecodable,
    repairs: tuple[Repair, ...] = (),
) -> tuple[Call, list[Problem]]:
    """A whole call (never one that was cut off) and what is wrong with it. `value` is what `json` holds, if known.

    Blank, `null` or absent arguments are `{}`. Arguments that cannot be read leave `complete=False`.
    """
    if not json.strip(_BLANKS):
        return Call(name, {}, "{}", id, raw, repairs), []
    if value is Undecodable:
        value = decode(json, depth)
    if type(value) is dict:
        return Call(name, value, json, id, raw, repairs), []
    if isinstance(value, Undecodable):
        return Call(name, {}, json, id, raw, repairs, False), [Problem(value.code, value.message, call=index)]
    if value is None or (isinstance(value, str) and not value.strip(_BLANKS)):
        return Call(name, {}, "{}", id, raw, repairs), []
    if isinstance(value, str) and policy != "off":
        inner = value.strip(_BLANKS)
        found = decode(inner, depth) if inner.startswith("{") else None
        if isinstance(found, dict):
            receipt = Repair("double_encoded", "exact", "", json, inner)
            return Call(name, found, inner, id, raw, (*repairs, receipt)), []
    kind = {str: "a string", list: "an array", bool: "a boolean"}.get(type(value), "a number")
    problem = Problem("arguments_not_object", f"the arguments must be a JSON object, not {kind}", call=index)
    return Call(name, {}, json, id, raw, repairs), [problem]
