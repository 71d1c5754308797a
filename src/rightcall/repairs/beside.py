"""Keys that stand in a call's envelope beside its arguments: each is put where it belongs, or named.

    {"name": "delete_rows", "arguments": {"table": "users"}, "where": "id=7"}

`where` is an argument of that tool, so it is put among them, with a receipt. Where that is not certain, a problem names
the key. None is ever dropped without a word: a call must not run without an argument that was written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from rightcall.json_pointer import step
from rightcall.repairs.number_text import dumps
from rightcall.repairs.schema_rules import fold
from rightcall.strict_json import is_same
from rightcall.tools.checks import argument_problems
from rightcall.tools.toolset import Toolset
from rightcall.types import Problem, Repair, Tool

SHOWN = 200

# stranger   belongs among the arguments, or is nobody's
# arguments  a second object of arguments
# known      an id, a type, an index, a second name: what calls have beside them, unless it fits as an argument
# clash      its key was there before with another value
# again      its key was there before with the same value
# call       another call, where the key is the name
# id         the call's id, where the tool has an argument of that name
Role = Literal["stranger", "arguments", "known", "clash", "again", "call", "id"]


class BesideMember(msgspec.Struct, frozen=True):
    """One key of an envelope that is neither its name nor its arguments."""

    key: str
    value: Any
    role: Role = "stranger"


class Placed(msgspec.Struct):
    """The arguments with what was put among them."""

    arguments: dict[str, Any]
    receipts: list[Repair]
    problems: list[Problem]
    unsure: bool = False  # something that calls have beside their arguments may be one of them as well


def place(
    members: Iterable[BesideMember],
    arguments: dict[str, Any],
    tool: Tool | None,
    tools: Toolset | None,
    policy: str,
    *,
    has_none: bool = False,
) -> Placed:
    """Puts each member where it belongs. `policy` is how far calls of the tool may be repaired; `has_none` says that
    there is no key of arguments."""
    placed = Placed(arguments, [], [])
    names = _names(tool, tools)
    unknown: list[str] = []
    for member in members:
        name = names.get(member.key) or names.get(fold(member.key))
        if tool is not None and name is not None and _belongs(member, name, tool, placed.arguments):
            _put(member, name, placed, policy)
        elif member.role == "stranger":
            _keep_stranger(member, tool, has_none, placed.problems, unknown)
        elif member.role == "id":
            placed.unsure = member.key not in placed.arguments
        elif problem := _named(member, placed.arguments):
            placed.problems.append(problem)
    placed.problems += _unknown(unknown)
    return placed


def name_members(members: Iterable[BesideMember]) -> list[Problem]:
    """A note that names what stands beside arguments that cannot be read."""
    return _unknown([member.key for member in members if member.role not in ("known", "id")])


def _names(tool: Tool | None, tools: Toolset | None) -> dict[str, str]:
    """The declared argument that a key stands for: exactly, by an alias, or but for case and separators."""
    if tool is None or tools is None:
        return {}
    declared = tools.kinds(tool.name)
    folded: dict[str, list[str]] = {}
    for name in declared:
        folded.setdefault(fold(name), []).append(name)
    near = {key: names[0] for key, names in folded.items() if key and len(names) == 1}
    return {**near, **tool.aliases, **{name: name for name in declared}}


def _belongs(member: BesideMember, name: str, tool: Tool, arguments: dict[str, Any]) -> bool:
    if member.role == "stranger":
        return True  # if it does not fit, the call may not run without it
    if member.role in ("clash", "again", "call", "id") or name in arguments or member.key in arguments:
        return False  # an id, a type: what a call has beside its arguments
    merged, path = {**arguments, name: member.value}, step(name)
    wrong = [problem.path for problem in argument_problems(tool, merged, 0)]
    return not any(place == path or place.startswith(path + "/") for place in wrong)


def _put(member: BesideMember, name: str, placed: Placed, policy: str) -> None:
    key, value, path = member.key, member.value, step(member.key)
    there = [placed.arguments[each] for each in (name, key) if each in placed.arguments]
    if there:
        placed.problems.append(_doubled(key, there[0], value))
    elif policy == "off":
        message = f"{key[:80]!r} stands beside the arguments; send it inside them"
        placed.problems.append(Problem("misplaced_argument", message, path))
    else:
        placed.arguments = {**placed.arguments, key: value}
        placed.receipts.append(Repair("hoisted_argument", "schema", path, "", dumps(value)[:SHOWN]))


def _named(member: BesideMember, arguments: dict[str, Any]) -> Problem | None:
    key, value = member.key, member.value
    if member.role == "known":
        return None
    if member.role == "arguments":
        value = _decoded(value)
        if value is None or value == {} or is_same(value, arguments):
            return Problem("duplicate_argument", f"the arguments are given again in {key[:80]!r}", blocking=False)
        message = f"the arguments are given twice, and those in {key[:80]!r} are others; send them once"
        return Problem("duplicate_argument", message)
    if member.role == "call":
        message = f"a second call, {key[:80]!r}, stands in the same object; send each call in an object of its own"
        return Problem("trailing_content", message)
    if member.role == "again":
        message = f"{key[:80]!r} is given twice with the same value; send it once"
        return Problem("duplicate_key", message, blocking=False)
    return Problem("duplicate_key", f"{key[:80]!r} is given twice, with two values; send it once")


def _keep_stranger(
    member: BesideMember, tool: Tool | None, has_none: bool, problems: list[Problem], unknown: list[str]
) -> None:
    """Names what is nobody's; it may be all the arguments there are."""
    lost = _lost_arguments(member, tool) if has_none else None
    if lost is not None:
        problems.append(lost)
    else:
        unknown.append(member.key)


def _lost_arguments(member: BesideMember, tool: Tool | None) -> Problem | None:
    """An object that holds something, in a call without arguments, may be them, if the tool has any."""
    value = _decoded(member.value)
    if not isinstance(value, dict) or not value or (tool is not None and not tool.parameters.get("properties")):
        return None
    message = f"the call has no arguments, and {member.key[:80]!r} may hold them; send them as arguments"
    return Problem("misplaced_argument", message, step(member.key))


def _decoded(value: Any) -> Any:
    """What a JSON string of arguments holds."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.strip() else None
    except (ValueError, RecursionError):
        return value


def _doubled(key: str, inside: Any, beside: Any) -> Problem:
    if is_same(inside, beside):
        message = f"{key[:80]!r} is given among the arguments and beside them; send it once"
        return Problem("duplicate_argument", message, step(key), blocking=False)
    shown = f"{dumps(inside)[:80]} among the arguments and {dumps(beside)[:80]} beside them"
    return Problem("duplicate_argument", f"{key[:80]!r} is given twice: {shown}; send it once", step(key))


def _unknown(keys: list[str]) -> list[Problem]:
    if not keys:
        return []
    shown = ", ".join([repr(key[:80]) for key in keys])
    verb = "stands" if len(keys) == 1 else "stand"
    return [Problem("unknown_key", f"{shown} {verb} beside the arguments and had no use", blocking=False)]
