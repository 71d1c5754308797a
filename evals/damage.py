"""Twelve kinds of damage that models do to a correct call. Each is applied to a call whose truth is known.

    single quotes   {'name': 'f', 'arguments': {'x': 'it\\'s'}}
    extra closer    {"name": "f", "arguments": {"x": 1}}}

A kind of damage that does not apply to a call, such as Python literals where there is no boolean and no null, yields
nothing. The damage never destroys the meaning of the call.
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
    """A damaged call and its truth.

    `block` replaces the whole call. In `sent`, only the argument text is damaged; it is None if that kind of damage is
    outside the arguments.
    """

    block: str
    sent: Call | None
    truth: Call
    tools: Toolset


class Style(msgspec.Struct, frozen=True):
    """A way to write JSON, or text that is almost JSON."""

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


def _write_in_style(call: Call, tools: Toolset, style: Style) -> Damaged:
    """Write the same call in another style."""
    text = style.write(call.arguments)
    sent = Call(call.name, {}, text) if text != PLAIN.write(call.arguments) else None
    return Damaged(envelope(call.name, call.arguments, style), sent, call, tools)


def _change_arguments(call: Call, arguments: dict[str, Any], tools: Toolset) -> Iterator[Damaged]:
    """Yield well-formed JSON with other arguments; nothing if they are equal."""
    if arguments != call.arguments or json.dumps(arguments) != json.dumps(call.arguments):
        sent = Call(call.name, arguments, PLAIN.write(arguments))
        yield Damaged(envelope(call.name, arguments), sent, call, tools)


# -- the twelve --------------------------------------------------------------------------------------------------------


def single_quotes(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    yield _write_in_style(call, tools, Style(quote="'"))


def python_literals(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    if any(value is None or isinstance(value, bool) for value in leaves(call.arguments)):
        yield _write_in_style(call, tools, Style(words=("True", "False", "None")))


def trailing_comma(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    yield _write_in_style(call, tools, Style(trailing=","))


def unquoted_keys(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    yield _write_in_style(call, tools, Style(bare_keys=True))


def raw_newline(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    """Put a line break into a text of several words, if the tool accepts it."""
    for key, value in call.arguments.items():
        if isinstance(value, str) and " " in value.strip():
            truth = Call(call.name, {**call.arguments, key: value.strip().replace(" ", "\n", 1)}, "")
            if not check(truth, tools):
                yield _write_in_style(truth, tools, Style(raw_newlines=True))
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
    """Encode all arguments as one string; and each argument that is an object or an array."""
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
    yield from _change_arguments(call, inside, tools) if len(inside) == len(call.arguments) else ()


def stringified_scalars(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    yield from _change_arguments(call, _stringify(call.arguments, _tool(call, tools).parameters, turn), tools)


def wrong_case_keys(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    yield from _change_arguments(call, _recase(call.arguments, _tool(call, tools).parameters, turn), tools)


def aliased_key(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    """Use another name for one argument, which the tool declares as an alias."""
    tool = _tool(call, tools)
    properties = tool.parameters.get("properties", {})
    keys = [key for key in call.arguments if key in properties and f"{key}_value" not in properties]
    if not keys:
        return
    key = keys[turn % len(keys)]
    alias = f"{key}_value"
    declared = Toolset([msgspec.structs.replace(tool, aliases={alias: key}), *[t for t in tools if t is not tool]])
    yield from _change_arguments(call, {alias if k == key else k: v for k, v in call.arguments.items()}, declared)


def name_inside_arguments(call: Call, tools: Toolset, turn: int) -> Iterator[Damaged]:
    used_names = {*call.arguments, *_tool(call, tools).parameters.get("properties", {})}
    key = next((word for word in ("name", "tool", "tool_name", "function") if word not in used_names), None)
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


# -- helpers of the kinds ----------------------------------------------------------------------------------------------


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)
    else:
        yield value


def _tool(call: Call, tools: Toolset) -> Tool:
    tool = tools.get(call.name)
    assert tool is not None
    return tool


def _kinds(schema: Any) -> set[str]:
    """Return the types that a schema allows; a schema without a type allows all."""
    declared = schema.get("type") if isinstance(schema, dict) else None
    return {declared} if isinstance(declared, str) else set(declared or ("string", *_SCALARS, *_CONTAINERS))


def _stringify(value: Any, schema: dict[str, Any], turn: int) -> Any:
    """Turn numbers and booleans into strings wherever the schema does not allow a string."""
    if isinstance(value, dict):
        inner = schema.get("properties", {})
        return {key: _stringify(item, inner.get(key, {}), turn) for key, item in value.items()}
    if isinstance(value, list):
        return [_stringify(item, schema.get("items", {}), turn) for item in value]
    if isinstance(value, (bool, int, float)) and "string" not in _kinds(schema):
        return json.dumps(value) if turn % 2 else str(value)
    return value


def _recase(value: Any, schema: dict[str, Any], turn: int) -> Any:
    """Write declared names in another case, at every depth."""
    if isinstance(value, list):
        return [_recase(item, schema.get("items", {}), turn) for item in value]
    if not isinstance(value, dict):
        return value
    inner = schema.get("properties", {})
    names = {key: recase(key, turn) if key in inner else key for key in value}
    if len(set(map(_bare, inner))) < len(inner) or set(names.values()) & set(inner):
        names = {key: key for key in value}  # with another case it would be another argument
    return {names[key]: _recase(item, inner.get(key, {}), turn) for key, item in value.items()}


def _bare(name: str) -> str:
    return _SEPARATOR.sub("", name).lower()


def recase(name: str, turn: int) -> str:
    """Convert between snake_case and camelCase; a single word becomes upper case or title case."""
    words = [word for word in _SEPARATOR.split(_HUMP.sub("_", name)) if word]
    if len(words) < 2:
        return name.upper() if turn % 2 or name.title() == name else name.title()
    if "_" in name:
        return words[0].lower() + "".join([word.title() for word in words[1:]])
    return "_".join([word.lower() for word in words])
