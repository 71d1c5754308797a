"""Twelve ways in which models get a right call wrong. Each is done to a call whose truth is known.

    single quotes   {'name': 'f', 'arguments': {'x': 'it\\'s'}}
    extra closer    {"name": "f", "arguments": {"x": 1}}}

A kind of damage that does not apply to a call, such as Python literals where there is no boolean and no null, makes
nothing of it. What is made can be understood: the damage never destroys the meaning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from rightcall import Call, Tool, Toolset, check

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*").fullmatch
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATOR = re.compile(r"[_\-]+")
_SCALARS = {"integer", "number", "boolean"}
_CONTAINERS = {"object", "array"}


class Damaged(msgspec.Struct, frozen=True):
    """What the model wrote, and what it meant: `block` stands where the whole call should, `sent` has only the argument
    text damaged (None where that kind of damage is outside the arguments)."""

    block: str
    sent: Call | None
    truth: Call
    tools: Toolset


class Style(msgspec.Struct, frozen=True):
    """How JSON is written, or what comes near it."""

    quote: str = '"'
    words: tuple[str, str, str] = ("true", "false", "null")
    trailing: str = ""
    bare_keys: bool = False
    raw_newlines: bool = False

    def write(self, value: Any) -> str:
        if isinstance(value, dict):
            pairs = [f"{self._key(key)}: {self.write(item)}" for key, item in value.items()]
            return "{" + ", ".join(pairs) + (self.trailing if pairs else "") + "}"
        if isinstance(value, list):
            items = [self.write(item) for item in value]
            return "[" + ", ".join(items) + (self.trailing if items else "") + "]"
        if isinstance(value, str):
            return self._string(value)
        if value is None or isinstance(value, bool):
            return self.words[2 if value is None else 0 if value else 1]
        return json.dumps(value)

    def _key(self, key: str) -> str:
        return key if self.bare_keys and _IDENTIFIER(key) else self._string(key)

    def _string(self, text: str) -> str:
        lines = text.split("\n") if self.raw_newlines else [text]
        body = "\n".join([json.dumps(line, ensure_ascii=False)[1:-1] for line in lines])
        if self.quote == "'":
            body = body.replace('\\"', '"').replace("'", "\\'")
        return f"{self.quote}{body}{self.quote}"


PLAIN = Style()


def envelope(name: str, arguments: Any, style: Style = PLAIN) -> str:
    return style.write({"name": name, "arguments": arguments})


def _written(call: Call, tools: Toolset, style: Style) -> Damaged:
    """The same call in another style."""
    text = style.write(call.arguments)
    sent = Call(call.name, {}, text) if text != PLAIN.write(call.arguments) else None
    return Damaged(envelope(call.name, call.arguments, style), sent, call, tools)


def _changed(call: Call, arguments: dict[str, Any], tools: Toolset) -> Iterator[Damaged]:
    """Well-formed JSON, but with other arguments; nothing if they are the same."""
    if arguments != call.arguments or json.dumps(arguments) != json.dumps(call.arguments):
        sent = Call(call.name, arguments, PLAIN.write(arguments))
        yield Damaged(envelope(call.name, arguments), sent, call, tools)


# -- the twelve --------------------------------------------------------------------------------------------------------


def single_quotes(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    yield _written(call, tools, Style(quote="'"))


def python_literals(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    if any(value is None or isinstance(value, bool) for value in leaves(call.arguments)):
        yield _written(call, tools, Style(words=("True", "False", "None")))


def trailing_comma(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    yield _written(call, tools, Style(trailing=","))


def unquoted_keys(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    yield _written(call, tools, Style(bare_keys=True))


def raw_newline(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    """A text with several words gets a line break, if the tool takes it with one."""
    for key, value in call.arguments.items():
        if isinstance(value, str) and " " in value.strip():
            meant = Call(call.name, {**call.arguments, key: value.strip().replace(" ", "\n", 1)}, "")
            if not check(meant, tools):
                yield _written(meant, tools, Style(raw_newlines=True))
                return


def extra_closer(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    closers = "}" * (turn % 3 + 1)
    sent = Call(call.name, {}, PLAIN.write(call.arguments) + closers)
    yield Damaged(envelope(call.name, call.arguments) + closers, sent, call, tools)


def code_fence(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    before = ("```json\n", "```\n")[turn % 2]
    sent = Call(call.name, {}, f"{before}{PLAIN.write(call.arguments)}\n```")
    yield Damaged(f"{before}{envelope(call.name, call.arguments)}\n```", sent, call, tools)


def double_encoding(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    """All arguments as one string; and each argument that is an object or an array."""
    text = PLAIN.write(call.arguments)
    yield Damaged(envelope(call.name, text), Call(call.name, {}, PLAIN.write(text)), call, tools)
    properties = _tool(call, tools).parameters.get("properties", {})
    inside = {
        key: PLAIN.write(value)
        if _kinds(properties.get(key)) & _CONTAINERS and isinstance(value, (dict, list))
        else value
        for key, value in call.arguments.items()
        if "string" not in _kinds(properties.get(key)) or not isinstance(value, (dict, list))
    }
    yield from _changed(call, inside, tools) if len(inside) == len(call.arguments) else ()


def stringified_scalars(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    yield from _changed(call, _stringified(call.arguments, _tool(call, tools).parameters, turn), tools)


def wrong_case_keys(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    yield from _changed(call, _recased(call.arguments, _tool(call, tools).parameters, turn), tools)


def aliased_key(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    """One argument under another name, which the tool declares."""
    tool = _tool(call, tools)
    properties = tool.parameters.get("properties", {})
    keys = [key for key in call.arguments if key in properties and f"{key}_value" not in properties]
    if not keys:
        return
    key = keys[turn % len(keys)]
    alias = f"{key}_value"
    declared = Toolset([msgspec.structs.replace(tool, aliases={alias: key}), *[t for t in tools if t is not tool]])
    yield from _changed(call, {alias if k == key else k: v for k, v in call.arguments.items()}, declared)


def name_inside_arguments(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    taken = {*call.arguments, *_tool(call, tools).parameters.get("properties", {})}
    key = next((word for word in ("name", "tool", "tool_name", "function") if word not in taken), None)
    if key is not None:
        arguments = {key: call.name, **call.arguments}
        yield Damaged(PLAIN.write({"arguments": arguments}), Call("", arguments, PLAIN.write(arguments)), call, tools)


KINDS: dict[str, Callable[[Call, Toolset, int], Iterator[Damaged]]] = {
    "single quotes": single_quotes,
    "Python literals": python_literals,
    "trailing comma": trailing_comma,
    "unquoted keys": unquoted_keys,
    "raw newline in a string": raw_newline,
    "extra closer": extra_closer,
    "code fence": code_fence,
    "double encoding": double_encoding,
    "stringified scalars": stringified_scalars,
    "wrong-case keys": wrong_case_keys,
    "aliased key": aliased_key,
    "name inside arguments": name_inside_arguments,
}


# -- what they need ----------------------------------------------------------------------------------------------------


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)
    else:
        yield value


def _tool(call: Call, tools: Toolset) -> Tool:
    found = tools.get(call.name)
    assert found is not None
    return found


def _kinds(schema: Any) -> set[str]:
    """The types a schema allows; none said means any."""
    said = schema.get("type") if isinstance(schema, dict) else None
    return {said} if isinstance(said, str) else set(said or ("string", *_SCALARS, *_CONTAINERS))


def _stringified(value: Any, schema: dict[str, Any], turn: int) -> Any:
    """Numbers and booleans become strings wherever the schema does not allow a string."""
    if isinstance(value, dict):
        inner = schema.get("properties", {})
        return {key: _stringified(item, inner.get(key, {}), turn) for key, item in value.items()}
    if isinstance(value, list):
        return [_stringified(item, schema.get("items", {}), turn) for item in value]
    if isinstance(value, (bool, int, float)) and "string" not in _kinds(schema):
        return json.dumps(value) if turn % 2 else str(value)
    return value


def _recased(value: Any, schema: dict[str, Any], turn: int) -> Any:
    """Declared names in another case, at every depth."""
    if isinstance(value, list):
        return [_recased(item, schema.get("items", {}), turn) for item in value]
    if not isinstance(value, dict):
        return value
    inner = schema.get("properties", {})
    names = {key: recase(key, turn) if key in inner else key for key in value}
    if len(set(map(_bare, inner))) < len(inner) or set(names.values()) & set(inner):
        names = {key: key for key in value}  # another case would be another argument
    return {names[key]: _recased(item, inner.get(key, {}), turn) for key, item in value.items()}


def _bare(name: str) -> str:
    return _SEPARATOR.sub("", name).lower()


def recase(name: str, turn: int) -> str:
    """snake_case becomes camelCase and the other way round; a single word becomes upper case or a title."""
    words = [word for word in _SEPARATOR.split(_HUMP.sub("_", name)) if word]
    if len(words) < 2:
        return name.upper() if turn % 2 or name.title() == name else name.title()
    if "_" in name:
        return words[0].lower() + "".join([word.title() for word in words[1:]])
    return "_".join([word.lower() for word in words])
