"""What of an envelope has been read, and the small steps of reading one."""

from __future__ import annotations

import re
from typing import Any

from rightcall.parsing.buffer import Broken, Cut, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.json_stream import LostJsonEnd, json_value
from rightcall.repairs.envelope_repair import BesideMember
from rightcall.repairs.tool_meant import find_name, hoist_name
from rightcall.strict_json import Undecodable, is_same
from rightcall.tools.toolset import Toolset
from rightcall.types import Repair


class OddMember(LostJsonEnd):
    """Something odd stands between the members of an envelope, and no bracket but its own is open."""


ARGUMENTS: Any = object()  # stands for a value that is not known before the call is settled


class Parts:
    """What of an envelope has been read."""

    __slots__ = ("again", "doubtful", "has_args", "id", "inner", "json", "members", "name", "seen", "value")

    def __init__(self) -> None:
        self.name: str | None = None
        self.id = ""
        self.inner = 0  # how many `"function": {` are open
        self.has_args = False
        self.doubtful = False  # it has a key that no call has
        self.json = ""
        self.value: Any = Undecodable
        self.seen: dict[str, Any] = {}
        self.members: list[tuple[str, Any]] = []  # beside name and arguments
        self.again: list[BesideMember] = []  # those whose key was there before

    def take_usual(self, usual: re.Match[str]) -> None:
        """The usual beginning: an id, the name, the arguments' key."""
        self.name, self.id, self.has_args = usual["name"], usual["id"] or "", True
        self.seen = {usual["name_key"] or usual["name"]: usual["name"], usual["args_key"] or usual["name"]: ARGUMENTS}
        if usual["id_key"]:
            self.seen[usual["id_key"]] = self.id

    def ids_behind(self, ids: frozenset[str]) -> tuple[BesideMember, ...]:
        """Ids that stand behind the arguments."""
        seen = list(self.seen)
        args = next((index for index, key in enumerate(seen) if self.seen[key] is ARGUMENTS), len(seen))
        return tuple(
            [BesideMember(key, value, "id") for key, value in self.members if key in ids and key in seen[args:]]
        )

    def note_again(self, key: str, value: Any) -> None:
        same = is_same(self.seen[key], value)
        self.again.append(BesideMember(key, value, "again" if same else "clash"))


def is_no_name(key: str, value: Any, names: frozenset[str]) -> bool:
    """Null, a number or a word where the name should be: neither a name nor an argument."""
    return key in names and not isinstance(value, (str, dict, list))


def find_name_of(parts: Parts, names: frozenset[str], tools: Toolset | None) -> tuple[str, tuple[Repair, ...]]:
    """The name of a call that has none of its own: it stands under another key, among the arguments, or only one tool
    fits."""
    members = {key: value for key, value in parts.members if not is_no_name(key, value, names)}
    hoisted = hoist_name(members, tools)
    if hoisted is not None:
        name, rest = hoisted
        parts.members = [member for member in parts.members if member[0] in rest or member[0] not in members]
        return name, (Repair("hoisted_name", "schema", "", "", name),)
    if not parts.has_args:
        name, _, repairs = find_name(members, "", tools)
        return name, repairs
    name, parts.json, repairs = find_name(parts.value, parts.json, tools)
    return name, repairs


def refuse_item(p: CallBuilder) -> Steps[None]:
    """Something in a list of calls that is none: it is kept and refused, and its siblings live."""
    p.raw_begin()
    try:
        yield from json_value(p)
    except LostJsonEnd:
        raise Broken("invalid_json", "the list of calls is not valid JSON; send it again as valid JSON") from None
    p.fail("call_not_object", "an entry of the list of calls is no object; send an object with a name and arguments")


def take_comma(p: CallBuilder) -> Steps[None]:
    """What must stand behind a member."""
    char = yield from p.peek()
    if char == ",":
        p.pos += 1
    elif not char:
        raise Cut
    elif char != "}":
        raise OddMember


def take_colon(p: CallBuilder) -> Steps[None]:
    char = yield from p.peek()
    if not char:
        raise Cut
    if char != ":":
        raise OddMember
    p.pos += 1
