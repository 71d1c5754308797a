"""Repair the envelope of a call: parse broken JSON, and place members that are neither the name nor the arguments.

    {"name": "delete_rows", "arguments": {"table": "users"}, "where": "id=7"}

`where` is an argument of that tool, so it is moved into the arguments, with a receipt. If that is not certain, a
problem names the key. No member is dropped silently: a call must not run without an argument that was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from rightcall.repairs.argument_text import (
    is_extra_closer_unsure,
    mark_uncertain_deviations,
    read_arguments,
    read_object_sequence,
    restore_spelling,
)
from rightcall.repairs.loose_json import AGAIN, SHOWN, Deviation, LooseValue, UnreadableJson, dumps, read_loose
from rightcall.repairs.schema_repair import fold_name
from rightcall.strict_json import is_same_json, pointer_step
from rightcall.tools.checks import argument_problems
from rightcall.tools.toolset import Toolset
from rightcall.types import Json, Problem, Repair, Tool

# stranger   belongs to the arguments, or has no use
# arguments  a second object of arguments
# known      an id, a type, an index, a second name: a usual member of an envelope, unless it fits as an argument
# clash      the key is repeated with another value
# again      the key is repeated with the same value
# call       another call (in formats whose key is the name)
# id         the call's id, if the tool has an argument of that name
Role = Literal["stranger", "arguments", "known", "clash", "again", "call", "id"]


class ExtraMember(msgspec.Struct, frozen=True):
    """A member of an envelope that is neither the name nor the arguments."""

    key: str
    value: Any
    role: Role = "stranger"


class PlacedMembers(msgspec.Struct):
    """The arguments with the members of the envelope that were moved into them, the receipts and the problems."""

    arguments: dict[str, Any]
    receipts: list[Repair]
    problems: list[Problem]
    unsure: bool = False  # a usual member of an envelope may also be an argument


def place_members(
    members: Iterable[ExtraMember],
    arguments: dict[str, Any],
    tool: Tool | None,
    tools: Toolset | None,
    policy: str,
    *,
    has_none: bool = False,
) -> PlacedMembers:
    """Move each member of an envelope into the arguments or report it; return the new arguments, receipts and problems.
    The dict `arguments` is not changed.

    `tool`: None if unknown; then nothing is moved. `policy`: "off", "safe" or "lenient". `has_none`: the envelope has
    no key of arguments.
    """
    placed = PlacedMembers(arguments, [], [])
    names = _argument_names_by_key(tool, tools)
    unknown: list[str] = []
    for member in members:
        name = names.get(member.key) or names.get(fold_name(member.key))
        if tool is not None and name is not None and _is_moved(member, name, tool, placed.arguments):
            _move_into_arguments(member, name, placed, policy)
        elif member.role == "stranger":
            lost = _lost_arguments_problems(member, tool, has_none)
            placed.problems += lost
            unknown += [] if lost else [member.key]
        elif member.role == "id":
            placed.unsure = member.key not in placed.arguments
        elif problem := _problem_of_member(member, placed.arguments):
            placed.problems.append(problem)
    placed.problems += _unknown_key_note(unknown)
    return placed


def unknown_member_notes(members: Iterable[ExtraMember]) -> list[Problem]:
    """Return one non-blocking problem, in a list, that names the members of the envelope, ids and other usual ones
    excepted, as unknown and ignored; empty if there are none. For a call whose arguments cannot be parsed."""
    return _unknown_key_note([member.key for member in members if member.role not in ("known", "id")])


def _argument_names_by_key(tool: Tool | None, tools: Toolset | None) -> dict[str, str]:
    """Return the name of the declared argument that each key means: declared names, aliases, and folded names (see
    `fold_name`) of which only one is declared; on a conflict the first of these. Keys are to be looked up as written,
    then folded. Empty without a tool."""
    if tool is None or tools is None:
        return {}
    declared = tools.kinds(tool.name)
    folded: dict[str, list[str]] = {}
    for name in declared:
        folded.setdefault(fold_name(name), []).append(name)
    near = {key: names[0] for key, names in folded.items() if key and len(names) == 1}
    return {**near, **tool.aliases, **{name: name for name in declared}}


def _is_moved(member: ExtraMember, name: str, tool: Tool, arguments: dict[str, Any]) -> bool:
    """Return whether a member of the envelope is moved into the arguments, as the argument `name`. A stranger always
    is, even if it does not fit; a usual member or second arguments only if absent from the arguments and fitting the
    schema; members of the other roles never."""
    if member.role == "stranger":
        return True  # even if it does not fit: the call must not run without it
    if member.role in ("clash", "again", "call", "id") or name in arguments or member.key in arguments:
        return False
    merged, path = {**arguments, name: member.value}, pointer_step(name)
    wrong = [problem.path for problem in argument_problems(tool, merged, 0)]
    return not any(place == path or place.startswith(path + "/") for place in wrong)


def _move_into_arguments(member: ExtraMember, name: str, placed: PlacedMembers, policy: str) -> None:
    """Add a member of the envelope, which means the argument `name`, to `placed.arguments` under its own key, with a
    receipt. If the argument is there already, or the policy is "off", only add a problem; it does not block if both
    values are equal."""
    key, value, path = member.key, member.value, pointer_step(member.key)
    there = [placed.arguments[each] for each in (name, key) if each in placed.arguments]
    if there and is_same_json(there[0], value):
        message = f"{key[:80]!r} is given inside the arguments and next to them; send it once"
        placed.problems.append(Problem("duplicate_argument", message, path, blocking=False))
    elif there:
        both = f"{dumps(there[0])[:80]} inside the arguments and {dumps(value)[:80]} next to them"
        message = f"{key[:80]!r} is given twice: {both}; send it once"
        placed.problems.append(Problem("duplicate_argument", message, path))
    elif policy == "off":
        message = f"{key[:80]!r} is next to the arguments; send it inside them"
        placed.problems.append(Problem("misplaced_argument", message, path))
    else:
        placed.arguments = {**placed.arguments, key: value}
        placed.receipts.append(Repair("hoisted_argument", "schema", path, "", dumps(value)[:SHOWN]))


def _problem_of_member(member: ExtraMember, arguments: dict[str, Any]) -> Problem | None:
    """Return the problem of a member of the envelope that is not moved: a repeated key, second arguments or a second
    call. It does not block if the value is equal to the first, or second arguments are empty; None for the role
    "known". `arguments`: the call's own."""
    key = repr(member.key[:80])
    if member.role == "arguments":
        value = _decode_text_value(member.value)
        if value is None or value == {} or is_same_json(value, arguments):
            return Problem("duplicate_argument", f"the arguments are given again in {key}", blocking=False)
        return Problem(
            "duplicate_argument", f"the arguments are given twice, and those in {key} differ; send them once"
        )
    if member.role == "call":
        message = f"a second call, {key}, is in the same object; send each call in its own object"
        return Problem("trailing_content", message)
    if member.role == "again":
        return Problem("duplicate_key", f"{key} is given twice with the same value; send it once", blocking=False)
    is_known = member.role == "known"
    return None if is_known else Problem("duplicate_key", f"{key} is given twice, with two values; send it once")


def _lost_arguments_problems(member: ExtraMember, tool: Tool | None, has_none: bool) -> list[Problem]:
    """Return a blocking problem, in a list, if the member may hold the arguments of a call without a key of arguments
    (`has_none`): it is a non-empty object, or JSON text of one, and the tool has parameters or is unknown. Empty
    otherwise."""
    value = _decode_text_value(member.value) if has_none else None
    if not isinstance(value, dict) or not value or (tool is not None and not tool.parameters.get("properties")):
        return []
    message = f"the call has no arguments, and {member.key[:80]!r} may hold them; send them as arguments"
    return [Problem("misplaced_argument", message, pointer_step(member.key))]


def _decode_text_value(value: Any) -> Any:
    """Return the decoded value of JSON text; None for blank text, the text itself if it is no JSON. A value that is no
    text is returned unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.strip() else None
    except (ValueError, RecursionError):
        return value


def _unknown_key_note(keys: list[str]) -> list[Problem]:
    """Return one non-blocking problem, in a list, that these keys are unknown and were ignored; empty without keys."""
    if not keys:
        return []
    shown = ", ".join([repr(key[:80]) for key in keys])
    message = f"{shown} next to the arguments is unknown and was ignored"
    return [Problem("unknown_key", message, blocking=False)]


_BETWEEN = re.compile(r"[\s,;]*+").match
_MOST = 64
_BESIDE = ("type", "index", "function")  # further members that an envelope may have
_ONLY_CLOSERS = re.compile(r"[\s}\])]*+").fullmatch


class EnvelopeKeys(msgspec.Struct, frozen=True):
    """The keys of a format's envelopes: those of the tool name, of the arguments and of the id, the preferred ones
    first. Without `names` the first key of an envelope is the tool name and its value the arguments."""

    names: tuple[str, ...]
    args: tuple[str, ...]
    ids: tuple[str, ...]


class LooseCall(msgspec.Struct, frozen=True):
    """A call parsed from loose JSON. `start` and `end` are indexes in the text of its block; `arguments` is None if the
    envelope has none; `name` and `id` may be ""."""

    start: int
    end: int
    name: str
    id: str
    arguments: Any
    deviations: tuple[Deviation, ...]
    beside: tuple[ExtraMember, ...] = ()  # the other members of the envelope


def read_loose_envelopes(
    text: str, keys: EnvelopeKeys, *, tools: Toolset | None, depth: int, closed: bool
) -> list[LooseCall]:
    """Parse the envelopes in the text of a block as loose JSON and return their calls in order; [] if that fails.

    If the end of the block was seen (`closed`), all of the text must be envelopes, with separators and closing
    brackets. Otherwise any text may follow them, but every bracket in them must be closed. `keys`: those of the format;
    `depth`: the limit of nesting.
    """
    found: list[LooseCall] = []
    pos = _BETWEEN(text, 0).end()  # type: ignore[union-attr]
    while not _ONLY_CLOSERS(text, pos):
        if text[pos] != "{" or len(found) >= _MOST:
            return [] if closed else found
        try:
            read = read_loose(text, pos, depth=depth, closed=closed)
        except UnreadableJson:
            return []
        loose_call = _extract_call(read, pos, keys, tools)
        if loose_call is None or not (closed or _has_all_closers(read.deviations)):
            return []
        found.append(loose_call)
        pos = _BETWEEN(text, loose_call.end).end()  # type: ignore[union-attr]
    return [*found[:-1], _with_extra_closers(found[-1], text[pos:], tools)] if found else []


def _with_extra_closers(loose_call: LooseCall, rest: str, tools: Toolset | None) -> LooseCall:
    """Return the call with a deviation for superfluous closing brackets in `rest`, the text behind it, which has only
    closing brackets and white space; the call itself if there are none. A final `]` or `]}` closes a list around the
    call and is not superfluous."""
    extra = "".join(rest.split())
    extra = extra.removesuffix("]}") if extra.endswith("]}") else extra.removesuffix("]")
    if not extra:
        return loose_call
    tool = tools.get(loose_call.name) if tools is not None else None
    guess = not _has_all_closers(loose_call.deviations) or is_extra_closer_unsure(loose_call.arguments, tool, extra)
    deviations = (*loose_call.deviations, Deviation("extra_closer", extra[:SHOWN], "", guess))
    return msgspec.structs.replace(loose_call, deviations=deviations)


def _has_all_closers(deviations: tuple[Deviation, ...]) -> bool:
    """Return whether none of the deviations is a missing closing bracket."""
    return all(deviation.rule != "missing_closer" for deviation in deviations)


def _extract_call(read: LooseValue, start: int, keys: EnvelopeKeys, tools: Toolset | None) -> LooseCall | None:
    """Return the call in a parsed envelope, `read`, which begins at index `start` of the block; None if it has neither
    a name nor arguments. A `function` object in it is part of the envelope."""
    value: dict[str, Any] = read.value
    inner = value.get("function")
    inner = inner if isinstance(inner, dict) else {}
    fields = {**value, **inner}
    named, name, args, id = _envelope_parts(fields, keys)
    if not name and args is None:
        return None
    arguments = None if args is None else fields[args]
    where = ("function", args) if args in inner else (args,)
    spellings = [(steps[len(where) :], text) for steps, text in read.spellings if steps[: len(where)] == where]
    tool = tools.get(name) if tools is not None else None
    arguments, made = restore_spelling(arguments, spellings, tool)
    beside = list(_extra_members(value, inner, (named, args), keys, tools, name if keys.names else ""))
    beside += _repeated_key_members(read.deviations)
    deviations = mark_uncertain_deviations(read, arguments, tool, beside=(*keys.names, *keys.args, *keys.ids, *_BESIDE))
    return LooseCall(start, read.end, name, id, arguments, (*deviations, *made), tuple(beside))


def _extra_members(
    value: Json, inner: Json, used: tuple[str, str | None], keys: EnvelopeKeys, tools: Toolset | None, name: str
) -> Iterator[ExtraMember]:
    """Yield the members of an envelope that are neither name nor arguments, with their roles, except usual ones without
    a meaning.

    `value`: the envelope; `inner`: its `function` object, {} if absent; `used`: the keys of name and arguments, which
    are left out; `name`: the tool, or "". At the end a key that both objects have with different values is yielded as a
    "clash".
    """
    for key, item in {**value, **inner}.items():
        if key not in used and not (key == "function" and isinstance(item, dict)):
            role = member_role(key, item, keys, tools, name=name, has_args=used[1] is not None)
            if role is not None:
                yield ExtraMember(key, item, role)
    for key in inner:
        if key in value and not is_same_json(value[key], inner[key]):
            yield ExtraMember(key, value[key], "clash")


def _envelope_parts(fields: dict[str, Any], keys: EnvelopeKeys) -> tuple[str, str, str | None, str]:
    """Return the key of the name, the name, the key of the arguments and the id of an envelope with these `fields`. ""
    for what is missing or no text, None for a missing key of arguments; of several keys the first in `keys`. Without
    `keys.names` the first key of the envelope is the name and the key of the arguments."""
    if not keys.names:  # the name is the key
        name = next(iter(fields), "")
        return name, name, name or None, ""
    texts = {key: value for key, value in fields.items() if isinstance(value, str)}
    named = next((key for key in (*keys.names, "function") if texts.get(key, "").strip()), "")
    args = [key for key in keys.args if key in fields]
    ids = [texts[key] for key in keys.ids if key in texts]
    return named, texts.get(named, ""), (*args, None)[0], (*ids, "")[0]


def _repeated_key_members(deviations: tuple[Deviation, ...]) -> tuple[ExtraMember, ...]:
    """Return a member with the role "again" and the value None for each key that was given twice with the same
    value."""
    return tuple([ExtraMember(each.before, None, "again") for each in deviations if each.rule == AGAIN])


_ARGUMENTS = frozenset(("arguments", "parameters", "args", "kwargs", "input"))
_TYPES = frozenset(("function", "tool", "tool_call", "tool_use", "function_call", "custom"))


def member_role(
    key: str, value: Any, keys: EnvelopeKeys, tools: Toolset | None, *, name: str, has_args: bool
) -> Role | None:
    """Return the role (see `Role`) of a member of an envelope that is neither the name nor the arguments; None for a
    usual member that has no meaning beside the call, such as the id or a known type.

    `name`: the call's tool, or ""; `has_args`: the envelope has arguments; `tools`: the declared ones, or None.
    """
    if not keys.names and isinstance(value, dict) and (tools is None or key in tools):
        return "call"
    if key in keys.args or (has_args and _is_second_arguments(key, value) and not _is_declared(key, tools, name)):
        return "arguments"
    return _usual_member_role(key, value, keys, tools, name, has_args)


def _usual_member_role(
    key: str, value: Any, keys: EnvelopeKeys, tools: Toolset | None, name: str, has_args: bool
) -> Role | None:
    """Return the role of a member that is no call and no arguments. A key of names gives None if the value repeats
    `name`, "clash" for another declared tool, else "stranger". An id beside arguments gives None, or "id" if the tool
    declares an argument of that name. A known `type` gives None, another one, an index or a further id "known". Any
    other key is a "stranger"."""
    if key in keys.names or (key == "function" and keys.names):
        is_tool = isinstance(value, str) and tools is not None and value in tools
        return None if value == name else "clash" if is_tool else "stranger"
    if key in keys.ids and has_args and isinstance(value, str):
        return "id" if _is_declared(key, tools, name) else None
    if key == "type" and isinstance(value, str) and value in _TYPES:
        return None
    return "known" if key in ("type", "index", *keys.ids) else "stranger"


def _is_second_arguments(key: str, value: Any) -> bool:
    """Return whether a member holds a second object of arguments: an object, or text that begins with `{`, under a key
    that some format uses for arguments."""
    return key in _ARGUMENTS and (isinstance(value, dict) or (isinstance(value, str) and value.lstrip()[:1] == "{"))


def _is_declared(key: str, tools: Toolset | None, name: str) -> bool:
    """Return whether the tool `name` declares the argument `key`; False without tools or for an unknown tool."""
    return tools is not None and name in tools and key in tools.kinds(name)


def read_loose_arguments(
    text: str, start: int, name: str, *, tools: Toolset | None, depth: int, closed: bool
) -> list[LooseCall]:
    """Parse the arguments of a call of the tool `name` from index `start` of `text` on as loose JSON. Return the call
    in a list, with 0 as its start; [] if parsing fails or they are no object.

    If the end was seen (`closed`), only closing brackets and comments may follow the arguments. Otherwise any text may,
    but no bracket may be missing. `depth`: the limit of nesting.
    """
    tool = tools.get(name) if tools is not None else None
    try:
        if closed:
            value, deviations = read_arguments(text, start, tool, depth=depth, closed=True)
            end = len(text.rstrip())
        else:
            value, deviations, end = read_object_sequence(text, start, tool, depth=depth, closed=False)
    except UnreadableJson:
        return []
    if not isinstance(value, dict) or not (closed or _has_all_closers(deviations)):
        return []
    return [LooseCall(0, end, name, "", value, deviations, _repeated_key_members(deviations))]
