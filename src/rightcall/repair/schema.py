"""Arguments that are JSON but do not fit: the rules that the schema itself suggests.

Every rule answers one error of the checker with one change. A change stays only if it leaves strictly fewer errors, and
each that stays leaves a receipt. Rules of kind `guess` are tried only where the policy allows them.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

from rightcall.check import errors, pointer
from rightcall.declare.kinds import resolve
from rightcall.repair.loose import Unreadable, read_loose
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Repair, Tool

_ROUNDS = 48
_MOST_FAULTS = 300
_WRAPPERS = ("arguments", "parameters", "args", "kwargs", "input")
_INTEGER = re.compile(r"\s*[+-]?\d{1,400}(?:\.0*)?\s*").fullmatch
_NUMBER = re.compile(r"\s*[+-]?(?:\d{1,400}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?\s*").fullmatch
_MISSING = object()
_OPEN = frozenset(
    ("additionalProperties", "patternProperties", "unevaluatedProperties", "$ref", "allOf", "anyOf", "oneOf")
)

Improvement = tuple[dict[str, Any], list[Repair], list[Any]]
Change = tuple[str, str, list[Any], Any]  # rule, kind, where, the new value there


def mend(tool: Tool, arguments: dict[str, Any], *, guesses: bool, depth: int) -> tuple[dict[str, Any], list[Repair]]:
    """The arguments as the schema suggests they were meant, and the receipts. The same object if nothing helped."""
    mending = _Mending(tool, arguments, guesses, depth)
    mending.run()
    return mending.value, mending.receipts


def rename_aliases(tool: Tool, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[Repair]]:
    """Declared aliases become the names they stand for, unless that name has a value of its own."""
    receipts: list[Repair] = []
    for alias, name in tool.aliases.items():
        if alias in arguments and arguments.get(name) in (None, "") and alias not in _properties(tool.parameters):
            arguments = {name if key == alias else key: v for key, v in arguments.items() if key != name}
            receipts.append(Repair("alias", "exact", pointer([name]), alias, name))
    return arguments, receipts


def strangers(tool: Tool, arguments: Any) -> list[str]:
    """Arguments of a name that the tool does not know, where its schema does not allow for any in so many words."""
    properties = _properties(tool.parameters)
    if not properties or not isinstance(arguments, dict) or not _OPEN.isdisjoint(tool.parameters):
        return []
    return [key for key in arguments if key not in properties]


class _Mending:
    def __init__(self, tool: Tool, arguments: dict[str, Any], guesses: bool, depth: int) -> None:
        self.tool, self.guesses, self.depth = tool, guesses, depth
        self.root = tool.parameters
        self.value: dict[str, Any] = arguments
        self.receipts: list[Repair] = []

    def run(self) -> None:
        before = self.value
        found = self._faults(self.value)
        most = len(found)
        if most >= _MOST_FAULTS:
            return  # each look at so many costs too much, and nothing says that they have one cause
        for _ in range(_ROUNDS):
            better = (self._all_at_once(found) or next(self._improvements(found), None)) if found else None
            if better is None:
                break
            self.value, receipts, found = better
            self.receipts += receipts
        if len(found) > most or (found and len(found) == most):
            self.value, self.receipts = before, []

    def _faults(self, value: Any) -> list[Any]:
        """The checker's errors, and arguments of an unknown name where none was allowed for in so many words."""
        return [*errors(self.tool, value, _MOST_FAULTS), *strangers(self.tool, value)]

    def _all_at_once(self, found: list[Any]) -> Improvement | None:
        """The first change for every fault in one go, where there are many of a kind."""
        if len(found) < 3:
            return None
        value, receipts = self.value, []
        for fault in found:
            change = next((c for c in self._changes(fault) if c[1] != "guess" and c[2]), None)
            if change is not None and _get(value, change[2][:-1]) is not _MISSING:
                rule, kind, where, new = change
                receipts.append(Repair(rule, kind, pointer(where), _text(_get(value, where)), _text(new)))  # type: ignore[arg-type]
                value = _put(value, where, new)
        left = self._faults(value) if receipts else found
        return (value, receipts, left) if not left else None

    def _improvements(self, found: list[Any]) -> Iterator[Improvement]:
        for fault in found:
            for rule, kind, where, new in self._changes(fault):
                if kind == "guess" and not self.guesses:
                    continue
                before = _get(self.value, where)
                candidate = _put(self.value, where, new)
                left = self._faults(candidate) if isinstance(candidate, dict) else found
                if _weight(left) < _weight(found):
                    yield candidate, [Repair(rule, kind, pointer(where), _text(before), _text(new))], left  # type: ignore[arg-type]

    def _changes(self, fault: Any) -> Iterator[Change]:
        if isinstance(fault, str):
            yield from self._rename_stranger([], fault, fault)
            return
        where, value, word = list(fault.instance_path), fault.instance, fault.kind.name
        value = _get(self.value, where)
        if value is _MISSING:
            return  # a key that the checker saw in another spelling, because it is no text
        if word == "required":
            yield from self._missing(where, value, fault.kind.property)
        elif word in ("additionalProperties", "unevaluatedProperties"):
            for name in list(getattr(fault.kind, "unexpected", ()))[:16]:
                yield from self._rename_stranger(where, name, fault)
        elif word in ("enum", "const"):
            yield from self._option(where, value, fault.kind)
        elif word in ("type", "anyOf", "oneOf"):
            yield from self._retype(where, value)

    # -- names ---------------------------------------------------------------------------------------------------------

    def _missing(self, where: list[Any], value: Any, name: str) -> Iterator[Change]:
        import difflib

        if not isinstance(value, dict):
            return
        declared = _properties(_schema_at(self.root, where))
        strangers = [key for key in value if key not in declared]
        yield from self._unwrap(where, value, strangers)
        same = [key for key in strangers if fold(key) == fold(name)]
        if len(same) == 1:
            yield "folded_name", "schema", where, _renamed(value, same[0], name)
        default = _default(self.root, [*where, name])
        if default is not _MISSING:
            yield "default", "schema", [*where, name], default
        near = difflib.get_close_matches(name.lower(), [key.lower() for key in strangers[:64]], 2, 0.7)
        close = [key for key in strangers if key.lower() in near]
        if len(close) == 1:
            yield "near_name", "guess", where, _renamed(value, close[0], name)

    def _unwrap(self, where: list[Any], value: dict[str, Any], strangers: list[str]) -> Iterator[Change]:
        """Arguments inside arguments: `{"arguments": {...}}`."""
        wrapped = [key for key in strangers if key in _WRAPPERS and isinstance(value[key], dict)]
        if not where and len(wrapped) == 1 and set(value) <= {wrapped[0], "name", "function", "tool", "type", "id"}:
            yield "unwrapped", "schema", where, value[wrapped[0]]

    def _rename_stranger(self, where: list[Any], name: str, fault: Any) -> Iterator[Change]:
        value = _get(self.value, where)
        if not isinstance(value, dict) or name not in value:
            return
        free = [key for key in _properties(_schema_at(self.root, where)) if key not in value]
        same = [key for key in free if fold(key) == fold(name)]
        if len(same) == 1:
            yield "folded_name", "schema", where, _renamed(value, name, same[0])
        if value[name] is None and not isinstance(fault, str):
            yield "null_dropped", "schema", where, {key: v for key, v in value.items() if key != name}

    # -- values --------------------------------------------------------------------------------------------------------

    def _option(self, where: list[Any], value: Any, kind: Any) -> Iterator[Change]:
        options = kind.options if kind.name == "enum" else [kind.expected_value]
        if isinstance(value, str):
            same = [option for option in options if isinstance(option, str) and fold(option) == fold(value)]
            if len(same) == 1:
                yield "enum_case", "schema", where, same[0]
        spelled = [option for option in options if not isinstance(option, str) and _text(option) == str(value).lower()]
        if len(spelled) == 1:
            yield "scalar_type", "schema", where, spelled[0]
        yield from self._retype(where, value)

    def _retype(self, where: list[Any], value: Any) -> Iterator[Change]:
        if value is None:
            yield from self._null(where)
        if isinstance(value, str):
            yield from self._from_text(where, value)
        elif isinstance(value, (bool, int, float)):
            yield "scalar_type", "schema", where, _text(value)
        if value is not None and not isinstance(value, list):
            yield "wrapped_in_array", "schema", where, [value]
        elif isinstance(value, list) and len(value) == 1:
            yield "array_of_one", "guess", where, value[0]

    def _null(self, where: list[Any]) -> Iterator[Change]:
        default = _default(self.root, where)
        if default is not _MISSING:
            yield "default", "schema", where, default
        if where and isinstance(where[-1], str):
            parent = _get(self.value, where[:-1])
            yield "null_dropped", "schema", where[:-1], {key: v for key, v in parent.items() if key != where[-1]}

    def _from_text(self, where: list[Any], text: str) -> Iterator[Change]:
        bare = text.strip()
        if _INTEGER(text):
            yield "scalar_type", "schema", where, int(bare.partition(".")[0])
        elif _NUMBER(text):
            yield "scalar_type", "schema", where, float(bare)
        if bare.lower() in ("true", "false"):
            yield "scalar_type", "schema", where, bare.lower() == "true"
        if bare in ("null", "None"):
            yield "scalar_type", "schema", where, None
        if bare[:1] in ("{", "["):
            inner = decode(bare, self.depth)
            if isinstance(inner, (dict, list)):
                yield "double_encoded", "schema", where, inner
            elif isinstance(inner, Undecodable):
                yield from self._from_loose_text(where, bare)

    def _from_loose_text(self, where: list[Any], text: str) -> Iterator[Change]:
        try:
            read = read_loose(text, depth=self.depth)
        except Unreadable:
            return
        if not text[read.end :].strip() and not {"unquoted_value", "missing_comma"} & {x.rule for x in read.liberties}:
            yield "double_encoded", "schema", where, read.value


def _weight(faults: list[Any]) -> list[int]:
    """How much is wrong, by depth: a fault further up weighs more than any number further down."""
    counts = [0] * 9
    for fault in faults:
        depth = 1 if isinstance(fault, str) else len(fault.instance_path) + (fault.kind.name == "required")
        counts[min(depth, 8)] += 1
    return counts


def fold(name: str) -> str:
    """Two names that differ only in case and separators fold to the same."""
    return re.sub(r"[^0-9a-z]+", "", name.lower()) if name.isascii() else re.sub(r"[\W_]+", "", name.casefold())


def _renamed(value: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if key == old else key: item for key, item in value.items() if key != new}


def _text(value: Any) -> str:
    return "" if value is _MISSING else json.dumps(value, ensure_ascii=False, default=str)


def _get(value: Any, where: list[Any]) -> Any:
    for step in where:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return value


def _put(value: Any, where: list[Any], new: Any) -> Any:
    """A copy with another value in that place; what is not on the way there is shared."""
    if not where:
        return new
    made = copy.copy(value)
    made[where[0]] = _put(value[where[0]], where[1:], new) if len(where) > 1 else new
    return made


def _properties(schema: Any) -> dict[str, Any]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def _default(root: Any, where: list[Any]) -> Any:
    schema = _schema_at(root, where)
    return schema.get("default", _MISSING) if isinstance(schema, dict) else _MISSING


def _schema_at(root: Any, where: list[Any]) -> Any:
    """The schema of a place in the arguments, as far as it can be told without the arguments themselves."""
    schema = _resolved(root, root)
    for step in where:
        inner: Any = None
        for option in _alternatives(schema, root):
            if isinstance(step, int):
                items = option.get("prefixItems")
                inner = items[step] if isinstance(items, list) and step < len(items) else option.get("items")
            else:
                inner = _properties(option).get(step, option.get("additionalProperties"))
            if isinstance(inner, dict):
                break
        schema = _resolved(inner, root)
    return schema


def _alternatives(schema: Any, root: Any) -> list[dict[str, Any]]:
    found = [schema] if isinstance(schema, dict) else []
    for word in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(word) if isinstance(schema, dict) else None
        found += [b for b in [_resolved(branch, root) for branch in branches or ()] if isinstance(b, dict)]
    return found


def _resolved(schema: Any, root: Any) -> Any:
    for _ in range(32):
        if not (isinstance(schema, dict) and isinstance(schema.get("$ref"), str)):
            break
        schema = resolve(schema["$ref"], root)
    return schema
