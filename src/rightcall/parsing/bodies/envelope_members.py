"""The members of one envelope, in whatever order they come."""

from __future__ import annotations

from rightcall.formats.spec import Envelope
from rightcall.parsing.bodies.envelope_parts import ARGUMENTS, OddMember, Parts, is_no_name, take_colon, take_comma
from rightcall.parsing.buffer import Cut, NotACall, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.json_stream import json_string, json_value, read_arguments
from rightcall.strict_json import Undecodable


class EnvelopeMembers:
    """Reads members into `Parts`. A call begins as soon as its name and the key of its arguments are known."""

    def __init__(self, body: Envelope) -> None:
        self.names, self.args, self.ids = frozenset(body.names), frozenset(body.args), frozenset(body.ids)

    def read(self, p: CallBuilder, parts: Parts, bare: bool, begun: bool) -> Steps[None]:
        """All up to the bracket that ends the envelope; `begun`: some were read before."""
        if begun:
            yield from take_comma(p)
        while True:
            char = yield from p.peek()
            if char == "}":
                p.pos += 1
                if not parts.inner:
                    return
                parts.inner -= 1
            elif char == '"':
                if (yield from self._member(p, parts, bare)):
                    parts.inner += 1
                    continue
            elif not char:
                raise Cut
            else:
                raise OddMember
            yield from take_comma(p)

    def _member(self, p: CallBuilder, parts: Parts, bare: bool) -> Steps[bool]:
        """A key and its value; True if the value is an object that is read as part of the envelope."""
        key = yield from json_string(p)
        if key is None:
            raise OddMember
        yield from take_colon(p)
        char = yield from p.peek()
        if not char:
            parts.name = parts.name if self.names or parts.name else key
            raise Cut
        if key == "function" and char == "{" and (self.names or parts.name is not None):
            p.pos += 1
            return True
        if parts.name is None and self._is_named_by(key, char):
            yield from (self._name(p, parts, key) if self.names else self._named_arguments(p, parts, key))
        elif key in self.args and not parts.has_args:
            yield from self._arguments(p, parts, key)
        else:
            yield from self._other(p, parts, key, bare)
        return False

    def _is_named_by(self, key: str, char: str) -> bool:
        """Does this member say the name? `char` is what its value begins with."""
        if self.names:
            return char == '"' and (key in self.names or key == "function")
        return char != '"' or not self._is_of_call(key)

    def _is_of_call(self, key: str) -> bool:
        """Does a call have such a key beside its name and its arguments?"""
        return key in self.ids or key == "type"

    def _name(self, p: CallBuilder, parts: Parts, key: str) -> Steps[None]:
        name = yield from json_string(p)
        if name is None:
            raise OddMember
        if key in parts.seen:
            parts.note_again(key, name)
        parts.seen[key] = name
        parts.name = name if name.strip() else None  # a blank name is none
        if parts.has_args and parts.name is not None and not parts.doubtful:
            p.begin(parts.name, parts.id).parts.append(parts.json)
            parts.value = Undecodable

    def _named_arguments(self, p: CallBuilder, parts: Parts, name: str) -> Steps[None]:
        """The key is the name."""
        parts.name = name
        return self._arguments(p, parts, name)

    def _arguments(self, p: CallBuilder, parts: Parts, key: str) -> Steps[None]:
        parts.has_args = True
        parts.seen[key] = ARGUMENTS
        if parts.name is None or parts.doubtful:
            parts.json, parts.value = yield from json_value(p)
        else:
            p.begin(parts.name, parts.id)
            parts.value = yield from read_arguments(p)

    def _other(self, p: CallBuilder, parts: Parts, key: str, bare: bool) -> Steps[None]:
        """A member that is neither the name nor the arguments."""
        may_doubt = bare and p.call is None and not self._is_of_call(key)
        if may_doubt and key not in self.names:
            self._doubt(p, parts, key)
        if isinstance(value := (yield from json_value(p))[1], Undecodable):
            raise OddMember
        if may_doubt and key in self.names and not is_no_name(key, value, self.names):
            self._doubt(p, parts, key)
        if key in self.ids and isinstance(value, str) and p.call is None and not parts.id:
            parts.id = value
        if parts.seen.get(key, ARGUMENTS) is not ARGUMENTS:
            parts.note_again(key, value)
            return
        parts.seen.setdefault(key, value)
        parts.members.append((key, value))

    def _doubt(self, p: CallBuilder, parts: Parts, key: str) -> None:
        """A key that no call has, where no marker stands before the envelope: the model's own JSON, unless what else
        it holds can only be a call of a declared tool."""
        tools = p.tools
        if tools is None or (parts.name is not None and parts.name not in tools):
            raise NotACall
        if parts.name is None:
            if not any(key in tools.kinds(tool.name) for tool in tools):
                raise NotACall
        elif key not in tools.kinds(parts.name):
            parts.doubtful = True
