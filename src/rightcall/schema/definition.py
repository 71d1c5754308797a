"""Accept one schema as it was declared: copy it to plain JSON, correct what has one meaning, refuse what is not sound.

    {"properties": {"n": {"type": "float", "required": true}}}
    -> {"properties": {"n": {"type": "number"}}, "required": ["n"]}

    {"type": "object", "properties": {"city": {"type": "colour"}}}
    -> /properties/city/type: 'colour' is not a JSON Schema type; write one of object, string, ...

An accepted schema has keywords of the right types, references only into itself that resolve, and no more depth, size or
expansion than `schema.limits` allows. Drafts 4 to 2020-12 are understood. The operator of a gateway cannot edit other
people's tools, so a fault with one meaning is corrected and noted; any other is refused for that tool alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from rightcall.json_pointer import step
from rightcall.schema.limits import MAX_CHAIN, MAX_DEPTH, MAX_EXPANSION, MAX_REPEATED, MAX_SCHEMAS, MAX_SIZE, Refused
from rightcall.schema.walk import (
    LISTS,
    MAPS,
    ONE,
    REFERRING,
    REFS,
    Refs,
    in_place,
    reachable,
    references,
    subschemas,
    unquoted,
)
from rightcall.types import Json

TYPES = ("object", "string", "integer", "number", "boolean", "array", "null")
_STRINGS = (
    "str text varchar char character date datetime date-time time timestamp duration email uri url uuid path file"
)
_MEANT = {
    **{name: name for name in TYPES},
    **dict.fromkeys((*_STRINGS.split(), "password", "unicode"), "string"),
    **dict.fromkeys("int long short byte uint ulong ushort bigint smallint tinyint unsigned".split(), "integer"),
    **{f"{sign}int{bits}": "integer" for sign in ("", "u") for bits in (8, 16, 32, 64, 128)},
    **dict.fromkeys("float double decimal real numeric float16 float32 float64".split(), "number"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys("list tuple set frozenset sequence iterable arraylist vector".split(), "array"),
    **dict.fromkeys("dict dictionary map mapping struct hashmap record json_object".split(), "object"),
    **dict.fromkeys("none nil nonetype".split(), "null"),
}
_ANYTHING = frozenset(("any", "anything", "mixed", "unknown", "enum", "*"))
_PARTS = re.compile(r"(?<!\s)\s*+(?:\||\bor\b)\s*+")
_OF = re.compile(r"([a-z]++)\s*+(?:\[(.*+)(?<=\])|<(.*+)(?<=>))")
_LONGEST = 100


def word(name: str) -> str | None:
    """The type that one word means, `int` for `integer`; None if it means none, or any."""
    return _MEANT.get(name)


def meant(name: Any, depth: int = 3) -> Json | None:
    """The schema that this name of a type stands for; None where it stands for nothing certain."""
    if not isinstance(name, str) or len(name) > _LONGEST or not depth:
        return None
    folded = name.strip().lower().removeprefix("typing.")
    if folded in _ANYTHING:
        return {}
    if folded in _MEANT:
        return {"type": _MEANT[folded]}
    if folded.endswith("[]"):
        return _list_of(folded[:-2], depth)
    inside = _OF.fullmatch(folded)
    if inside is not None:
        return _with_inside(inside[1], (inside[2] or inside[3] or " ")[:-1], depth)
    parts = _PARTS.split(folded)
    return either([meant(part, depth - 1) for part in parts]) if len(parts) > 1 else None


def _with_inside(outer: str, inner: str, depth: int) -> Json | None:
    """`list[str]`, `Optional[int]`, `dict[str, int]`."""
    if outer == "optional":
        return either([meant(inner, depth - 1), {"type": "null"}])
    if outer == "union":
        return either([meant(part, depth - 1) for part in inner.split(",")])
    kind = _MEANT.get(outer)
    if kind == "array":
        return {"type": "array"} if "," in inner or outer == "tuple" else _list_of(inner, depth)
    return {"type": "object"} if kind == "object" else None


def _list_of(inner: str, depth: int) -> Json | None:
    item = meant(inner, depth - 1)
    return None if item is None else {"type": "array", "items": item} if item else {"type": "array"}


def either(schemas: list[Json | None]) -> Json | None:
    """One schema of several that say a type and nothing else; None where one of them is not known or says more."""
    if any(schema is None or schema.keys() > {"type"} for schema in schemas):
        return None
    if any(not schema for schema in schemas):
        return {}
    names = list(dict.fromkeys(schema["type"] for schema in schemas if schema))
    return {"type": names[0] if len(names) == 1 else names}


_LONGEST_INT = 14_000  # bits: beyond, Python does not write it as digits


def plain(value: Any) -> Any:
    """A copy made of dicts, lists and scalars alone, within the limits of depth and size. Raises `Refused`."""
    return _Copier().copy(value, "", 0)


class _Copier:
    def __init__(self) -> None:
        self.left = MAX_SIZE

    def copy(self, value: Any, path: str, depth: int) -> Any:
        self.spend(value, depth)
        if isinstance(value, Mapping):
            return {
                self.key(key, path): self.copy(_type_name(item) if key == "type" else item, path + step(key), depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.copy(item, path + step(at), depth + 1) for at, item in enumerate(value)]
        return _scalar(value, path)

    def spend(self, value: Any, depth: int) -> None:
        self.left -= 1 + (len(value) if isinstance(value, str) else 0)
        if self.left < 0:
            raise Refused("", f"the schema has more than {MAX_SIZE:,} characters", "declare a smaller one")
        if depth > MAX_DEPTH:
            raise Refused(
                "", f"the schema is nested deeper than {MAX_DEPTH} levels", "use $defs and $ref to flatten it"
            )

    def key(self, key: Any, path: str) -> str:
        if not isinstance(key, str):
            raise Refused(path, f"the key {key!r} is no string", "write it in quotes")
        self.left -= len(key)
        return key


def _scalar(value: Any, path: str) -> Any:
    if isinstance(value, int) and value.bit_length() > _LONGEST_INT:
        raise Refused(path, "a whole number of thousands of digits", "write a smaller one")
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    what = repr(value) if isinstance(value, float) else f"a {type(value).__name__}"
    raise Refused(path, f"{what} is not JSON", "write a string, number, boolean, null, list or object")


def _type_name(said: Any) -> Any:
    """`{"type": str}`: who builds schemas in Python may write the class."""
    return said.__name__ if isinstance(said, type) else said


_COUNTS = "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains".split()
_NUMBERS = (*_COUNTS, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


_NUMERIC = frozenset(_NUMBERS)


class Mended(msgspec.Struct, frozen=True):
    """A word of a schema that was taken for what it means. `path` is a JSON Pointer into what was passed."""

    tool: str
    path: str
    before: str
    after: str


Note = tuple[str, str, str]  # path, before, after


def mend(schema: Json) -> list[Note]:
    """Mends a schema, which must be a copy made by `plain`, in place; what was done, in order."""
    notes: list[Note] = []
    waiting: list[tuple[str, Json]] = [("", schema)]
    while waiting:
        path, here = waiting.pop()
        for rule in _RULES:
            rule(here, path, notes)
        waiting += [(path + sub.path, sub.schema) for sub in subschemas(here) if isinstance(sub.schema, dict)][::-1]
    return notes


def text_schema(text: str) -> Json:
    """A parameter of which only a text is known: a string, unless the text is the name of a type."""
    return {"type": word(text.strip()) or "string", "description": text}


def _nothing_said(schema: Json, path: str, notes: list[Note]) -> None:
    """`"items": null`, as serialisers write what was not given."""
    if None not in schema.values():
        return
    for key in [key for key, value in schema.items() if value is None and _is_keyword(key)]:
        del schema[key]
        notes.append((path + step(key), "null", "nothing said"))


def _is_keyword(key: str) -> bool:
    known = key in ONE or key in LISTS or key in MAPS or key in _NUMBERS
    return known or key in ("type", "required", "enum", "description", "title", "format", "pattern", "nullable")


def _fix_type(schema: Json, path: str, notes: list[Note]) -> None:
    said = schema.get("type")
    found = _type_meant(said, "enum" in schema) if "type" in schema else None
    if found is None:
        return
    schema.update({key: value for key, value in found.items() if key == "type" or key not in schema})
    if "type" not in found:
        del schema["type"]
    notes.append((f"{path}/type", repr(said)[:60], repr(schema["type"]) if "type" in schema else "any type"))


def _different(names: list[Any]) -> bool:
    return len({str(name) for name in names}) == len(names)


def _type_meant(said: Any, has_enum: bool) -> Json | None:
    """The schema that a type stands for; None where it is right, or stands for nothing certain."""
    names = said if isinstance(said, list) else [said]
    if not names or (all(name in TYPES for name in names) and _different(names)):
        return None
    if said == "enum" and has_enum:
        return meant(said) or {}
    return either([meant(name) for name in names]) if isinstance(said, list) else meant(said)


def _fix_required(schema: Json, path: str, notes: list[Note]) -> None:
    """A property that says itself that it is required, one name without its list, a name twice."""
    said, inner = schema.get("required"), schema.get("properties")
    declared = inner if isinstance(inner, dict) else {}
    flagged = _flagged(declared, path, notes)
    listed: Any = said if isinstance(said, list) else [said] if isinstance(said, str) else []
    if isinstance(said, bool) or (isinstance(said, str) and said in declared):
        notes.append((f"{path}/required", repr(said)[:60], repr(listed)[:60] if listed else "nothing said"))
    elif said is not None and not isinstance(said, list):
        return
    names = _each_once([*listed, *(key for key in flagged if key not in listed)])
    if len(_each_once(listed)) < len(listed):
        notes.append((f"{path}/required", repr(said)[:60], repr(names)[:60]))
    if names or isinstance(said, list):
        schema["required"] = names
    else:
        schema.pop("required", None)


def _each_once(names: list[Any]) -> list[Any]:
    """What holds something else than names stays as it is."""
    return list(dict.fromkeys(names)) if all(isinstance(name, str) for name in names) else names


def _flagged(properties: Json, path: str, notes: list[Note]) -> list[str]:
    found: list[str] = []
    for key, item in properties.items():
        if isinstance(item, dict) and isinstance(item.get("required"), bool):
            where = f"{path}/properties{step(key)}/required"
            needed = item.pop("required")
            notes.append((where, str(needed), f"{key!r:.60} is {'' if needed else 'not '}required"))
            found += [key] if needed else []
    return found


def _texts(schema: Json, path: str, notes: list[Note]) -> None:
    """A property that is nothing but a text: its type if that is one, else its description."""
    inner = schema.get("properties")
    if isinstance(inner, dict):
        for key, item in inner.items():
            if isinstance(item, str):
                inner[key] = text_schema(item)
                notes.append(
                    (f"{path}/properties{step(key)}", repr(item)[:60], f"{inner[key]['type']}, described by it")
                )


def _numbers(schema: Json, path: str, notes: list[Note]) -> None:
    for key in () if _NUMERIC.isdisjoint(schema) else _NUMBERS:
        said = schema.get(key)
        if isinstance(said, str) and (number := _parse_number(said)) is not None:
            schema[key] = number
            notes.append((f"{path}/{key}", repr(said)[:60], repr(number)))


def _parse_number(text: str) -> int | float | None:
    digits = text.strip().removeprefix("-")
    if not digits.isascii() or len(digits) > 15:
        return None
    if digits.isdigit():
        return int(text)
    whole, dot, rest = digits.partition(".")
    return float(text) if dot and whole.isdigit() and rest.isdigit() else None


_RULES: tuple[Callable[[Json, str, list[Note]], None], ...] = (
    _nothing_said,
    _texts,
    _fix_required,
    _fix_type,
    _numbers,
)


# -- soundness -----

_DRAFTS = "draft-04 draft-06 draft-07 draft/2019-09 draft/2020-12".split()


_METASCHEMAS = {f"{scheme}://json-schema.org/{draft}/schema" for scheme in ("http", "https") for draft in _DRAFTS}


class Facts(NamedTuple):
    """What a sound schema holds that costs: references, and the patterns that it is to match texts and names with."""

    refers: bool
    patterns: frozenset[str]


def check_parameters(schema: Json) -> Facts:
    """Raises `Refused` unless this is a sound schema of a tool's arguments, which are always an object."""
    said = schema.get("type")
    if said is not None and said != "object" and not (isinstance(said, list) and "object" in said):
        raise Refused("/type", f"arguments are an object, not {said!r}", 'write "type": "object"')
    return check_schema(schema)


def check_schema(schema: Json) -> Facts:
    """Raises `Refused` unless this is a sound schema. It must be `plain`."""
    checker = _Checker(schema)
    checker.run()
    if checker.refers:
        _check_inner_ids(schema)
    _check_expansion(checker.refs)
    return Facts(checker.refers, frozenset(checker.patterns))


class _Checker:
    """Walks every schema of a document once, what references point at included."""

    def __init__(self, root: Json) -> None:
        self.root = root
        self.refs = Refs(root)
        self.seen: set[int] = set()
        self.patterns: set[str] = set()
        self.refers = False

    def run(self) -> None:
        waiting: list[tuple[str, Any]] = [("", self.root)]
        while waiting:
            path, schema = waiting.pop()
            if isinstance(schema, bool) or id(schema) in self.seen:
                continue
            if not isinstance(schema, dict):
                raise Refused(path, f"{_short(schema)} is no schema", 'write an object such as {"type": "string"}')
            self.seen.add(id(schema))
            if len(self.seen) > MAX_SCHEMAS:
                raise Refused("", f"it has more than {MAX_SCHEMAS:,} schemas inside", "declare a smaller one")
            self.keywords(schema, path)
            waiting += [(path + sub.path, sub.schema) for sub in subschemas(schema)][::-1]
            if not REFERRING.isdisjoint(schema):
                pointed = [(schema[word], word) for word in REFS if word in schema]
                waiting += [(self.where(ref), self.target(ref, path, word)) for ref, word in pointed]

    def keywords(self, schema: Json, path: str) -> None:
        for word, value in schema.items():
            judge = _JUDGES.get(word)
            wrong = judge(value) if judge is not None else None
            if wrong is not None:
                raise Refused(f"{path}{step(word)}", *wrong)
        self.patterns.update([schema["pattern"]] if "pattern" in schema else ())
        self.patterns.update(schema.get("patternProperties", ()))

    def where(self, ref: Any) -> str:
        return unquoted(ref) if isinstance(ref, str) else ""

    def target(self, ref: Any, path: str, word: str) -> Any:
        self.refers = True
        at = f"{path}/{word}"
        if not isinstance(ref, str):
            raise Refused(at, f"{_short(ref)} is no reference", 'write one such as "#/$defs/City"')
        if not ref.startswith("#"):
            cause = f"{ref[:80]!r} points outside this schema, and nothing is ever fetched"
            raise Refused(at, cause, 'copy what it means under "$defs" and point there with "#/$defs/..."')
        found = self.refs.get(ref)
        if not isinstance(found, (dict, bool)):
            raise Refused(at, f"{ref[:80]!r} points at no schema", "declare it there, or correct the reference")
        return found


def _check_inner_ids(root: Json) -> None:
    """Raise `Refused` for an inner `$id` that changes what a reference inside it means. Any other is an annotation."""
    waiting = [("", "", root)]
    while waiting:
        path, id_path, schema = waiting.pop()
        if path and isinstance(schema.get("$id"), str) and not schema["$id"].startswith("#"):
            id_path = f"{path}/$id"
        if id_path and references(schema):
            raise Refused(id_path, "an inner $id changes what the references inside it mean", "remove it")
        waiting += [
            (path + sub.path, id_path, sub.schema) for sub in subschemas(schema) if isinstance(sub.schema, dict)
        ]


Wrong = tuple[str, str]  # cause and cure


Judge = Callable[[Any], Wrong | None]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _must(holds: Callable[[Any], bool], what: str) -> Judge:
    def judge(value: Any) -> Wrong | None:
        return None if holds(value) else (f"{_short(value)} is not {what}", f"write {what}, or remove the keyword")

    return judge


def _type(value: Any) -> Wrong | None:
    names = value if isinstance(value, list) else [value]
    for name in names:
        if name not in TYPES:
            said = (meant(name) or {}).get("type")
            cure = f"write {said!r}" if said in TYPES else f"write one of {', '.join(TYPES)}, or leave it out"
            return f"{_short(name)} is no JSON Schema type", cure
    if not names or len(set(names)) < len(names):
        return f"{_short(value)} is no list of different types", "name each type once"
    return None


def _required(value: Any) -> Wrong | None:
    if isinstance(value, bool):
        return (
            "required is a list of property names, not a boolean",
            "name the property in the list of the object it is in",
        )
    if not _strings(value):
        return f"{_short(value)} is no list of property names", 'write a list such as ["city"]'
    return None


def _metaschema(value: Any) -> Wrong | None:
    if isinstance(value, str) and value.rstrip("#") in _METASCHEMAS:
        return None
    return f"{_short(value)} is no published draft, and nothing is ever fetched", "remove it"


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value) and len(set(value)) == len(value)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return _number(value) and value >= 0 and value == int(value)


_TEXT = _must(lambda value: isinstance(value, str), "a string")


_BOOLEAN = _must(lambda value: isinstance(value, bool), "true or false")


_COUNT = _must(_count, "a whole number of at least 0")


_NUMBER = _must(_number, "a number")


_BOUND = _must(lambda value: _number(value) or isinstance(value, bool), "a number")


_LIST = _must(lambda value: isinstance(value, list), "a list")


_SCHEMAS = _must(lambda value: isinstance(value, list) and bool(value), "a list of at least one schema")


_MAP = _must(lambda value: isinstance(value, dict), "an object")


_NAMES = _must(lambda value: isinstance(value, dict) and all(map(_strings, value.values())), "an object of name lists")


_ANCHOR = _must(
    lambda value: isinstance(value, str) and value.replace("-", "_").replace(".", "_").isidentifier(), "a name"
)


_JUDGES: dict[str, Judge] = {
    "type": _type,
    "required": _required,
    "$schema": _metaschema,
    **dict.fromkeys("title description $comment format pattern contentEncoding contentMediaType $id".split(), _TEXT),
    **dict.fromkeys("uniqueItems deprecated readOnly writeOnly nullable".split(), _BOOLEAN),
    **dict.fromkeys("minLength maxLength minItems maxItems minProperties maxProperties".split(), _COUNT),
    **dict.fromkeys("minContains maxContains".split(), _COUNT),
    **dict.fromkeys("minimum maximum".split(), _NUMBER),
    **dict.fromkeys("exclusiveMinimum exclusiveMaximum".split(), _BOUND),
    "multipleOf": _must(lambda value: _number(value) and value > 0, "a number above 0"),
    **dict.fromkeys("enum examples".split(), _LIST),
    **dict.fromkeys(sorted(LISTS - {"prefixItems"}), _SCHEMAS),
    "prefixItems": _SCHEMAS,
    **dict.fromkeys(sorted(MAPS), _MAP),
    "dependentRequired": _NAMES,
    **dict.fromkeys("$anchor $dynamicAnchor".split(), _ANCHOR),
}


def _check_expansion(refs: Refs) -> None:
    """Bounds what one value can cost to check: a schema that applies itself to the same value, or applies very many
    or very long chains of others, is refused."""
    done: dict[int, tuple[int, int]] = {}  # schemas that apply, longest chain
    all_ = list(reachable(refs))
    for start in all_:
        if id(start) not in done:
            _expand(start, refs, done)
    if sum(done[id(schema)][0] for schema in all_) > MAX_REPEATED:
        raise Refused("", *_MULTIPLIES)


_MULTIPLIES = ("its references and combinators multiply beyond what can be checked", "declare a simpler schema")


def _expand(start: Json, refs: Refs, done: dict[int, tuple[int, int]]) -> None:
    open_: set[int] = {id(start)}
    below = in_place(start, refs)
    stack = [(start, below, iter(below))]
    while stack:
        here, below, left = stack[-1]
        new = next((item for item in left if id(item) not in done), None)
        if new is None:
            stack.pop()
            open_.discard(id(here))
            done[id(here)] = _cost([done[id(item)] for item in below])
        elif id(new) in open_:
            raise Refused("", "a reference leads back to itself without end", "let it point at a part of the value")
        else:
            open_.add(id(new))
            below = in_place(new, refs)
            stack.append((new, below, iter(below)))


def _cost(below: list[tuple[int, int]]) -> tuple[int, int]:
    count = 1 + sum(cost for cost, _ in below)
    chain = 1 + max((length for _, length in below), default=0)
    if count > MAX_EXPANSION or chain > MAX_CHAIN:
        raise Refused("", *_MULTIPLIES)
    return count, chain


_ANY_VALUE = frozenset(("const", "default", "examples", "example"))


def is_keyword(word: str, value: Any) -> bool:
    """Is this a keyword of JSON Schema, with a value that the keyword may have?"""
    if word in ONE or word in REFS:
        return isinstance(value, (dict, bool)) if word in ONE else isinstance(value, str)
    judge = _JUDGES.get(word)
    return word in _ANY_VALUE if judge is None else judge(value) is None
