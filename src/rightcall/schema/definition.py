"""Accept one schema as it was declared: copy it to plain JSON, correct unambiguous faults, refuse unsound schemas.

    {"properties": {"n": {"type": "float", "required": true}}}
    -> {"properties": {"n": {"type": "number"}}, "required": ["n"]}

    {"type": "object", "properties": {"city": {"type": "colour"}}}
    -> /properties/city/type: 'colour' is not a JSON Schema type; write one of object, string, ...

An accepted schema has keywords of the right types, resolvable references into itself only, and no more depth, size or
expansion than `schema.limits` allows. Drafts 4 to 2020-12 are understood. The operator of a gateway cannot edit other
people's tools, so an unambiguous fault is corrected and reported; any other fault refuses that tool alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from rightcall.schema.limits import MAX_CHAIN, MAX_DEPTH, MAX_EXPANSION, MAX_REPEATED, MAX_SCHEMAS, MAX_SIZE, Refused
from rightcall.schema.walk import (
    LISTS,
    MAPS,
    ONE,
    REFERRING,
    REFS,
    Refs,
    fragment_of,
    id_keyword,
    is_other_document,
    ref_stands_alone,
    references,
    schemas_and_targets,
    schemas_in_place,
    subschemas,
)
from rightcall.strict_json import pointer_step
from rightcall.types import Json

TYPES = ("object", "string", "integer", "number", "boolean", "array", "null")
_STRINGS = (
    "str text varchar char character date datetime date-time time timestamp duration email uri url uuid path file"
)
_TYPE_OF_WORD = {
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
_ANY_TYPE = frozenset(("any", "anything", "mixed", "unknown", "enum", "*"))
_UNION = re.compile(r"(?<!\s)\s*+(?:\||\bor\b)\s*+")
_GENERIC = re.compile(r"([a-z]++)\s*+(?:\[(.*+)(?<=\])|<(.*+)(?<=>))")
_MAX_TYPE_NAME = 100


def type_of_word(name: str) -> str | None:
    """Return the JSON type that one word in lower case names, "integer" for "int"; None if it names none, or any
    type."""
    return _TYPE_OF_WORD.get(name)


def schema_of_type_name(name: Any, depth: int = 3) -> Json | None:
    """Return the schema for the name of a type in any case, such as `list[str]` or `int | None`; `{}` for any type,
    None if the name is not understood. Names may be nested `depth` levels deep."""
    if not isinstance(name, str) or len(name) > _MAX_TYPE_NAME or not depth:
        return None
    folded = name.strip().lower().removeprefix("typing.")
    if folded in _ANY_TYPE:
        return {}
    if folded in _TYPE_OF_WORD:
        return {"type": _TYPE_OF_WORD[folded]}
    if folded.endswith("[]"):
        return _schema_of_list(folded[:-2], depth)
    inside = _GENERIC.fullmatch(folded)
    if inside is not None:
        return _schema_of_generic(inside[1], (inside[2] or inside[3] or " ")[:-1], depth)
    parts = _UNION.split(folded)
    return union_of_types([schema_of_type_name(part, depth - 1) for part in parts]) if len(parts) > 1 else None


def _schema_of_generic(outer: str, inner: str, depth: int) -> Json | None:
    """Return the schema for the name of a generic type, given as its outer name and the text in its brackets:
    `list[str]`, `Optional[int]`, `Union[...]` or `dict[str, int]`, whose values are not restricted. None for other
    generic types and for names that are not understood."""
    if outer == "optional":
        return union_of_types([schema_of_type_name(inner, depth - 1), {"type": "null"}])
    if outer == "union":
        return union_of_types([schema_of_type_name(part, depth - 1) for part in inner.split(",")])
    kind = _TYPE_OF_WORD.get(outer)
    if kind == "array":
        return {"type": "array"} if "," in inner or outer == "tuple" else _schema_of_list(inner, depth)
    return {"type": "object"} if kind == "object" else None


def _schema_of_list(inner: str, depth: int) -> Json | None:
    """Return the schema of an array whose items have the type named `inner`; None if that name is not understood."""
    item = schema_of_type_name(inner, depth - 1)
    return None if item is None else {"type": "array", "items": item} if item else {"type": "array"}


def union_of_types(schemas: list[Json | None]) -> Json | None:
    """Return one schema that accepts what any of these schemas accepts, all with no keyword but `type`; `{}` if one
    allows any type. None if one of them is None or has other keywords."""
    if any(schema is None or schema.keys() > {"type"} for schema in schemas):
        return None
    if any(not schema for schema in schemas):
        return {}
    names = list(dict.fromkeys(schema["type"] for schema in schemas if schema))
    return {"type": names[0] if len(names) == 1 else names}


_MAX_INT_BITS = 14_000  # bits: beyond, Python does not write it as digits


def copy_plain(value: Any) -> Any:
    """Return a deep copy made of dicts, lists and scalars, in which a class as the value of `type` becomes its name.
    Raises `Refused` for what is not JSON, for keys that are not strings, and beyond the limits of depth and size."""
    return _Copier().copy(value, "", 0)


class _Copier:
    """Copies a schema and counts its size in `left`, the number of characters that it may still have."""

    def __init__(self) -> None:
        self.left = MAX_SIZE

    def copy(self, value: Any, path: str, depth: int) -> Any:
        """Return the copy of the value at this path and depth, and count its size. Raises `Refused` for what is not
        JSON and beyond the limits."""
        self.spend(value, depth)
        if isinstance(value, Mapping):
            return {
                self.check_key(key, path): self.copy(
                    _type_name(item) if key == "type" else item, path + pointer_step(key), depth + 1
                )
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.copy(item, path + pointer_step(at), depth + 1) for at, item in enumerate(value)]
        return _check_scalar(value, path)

    def spend(self, value: Any, depth: int) -> None:
        """Subtract the size of a value, without its parts, from `left`. Raises `Refused` beyond the limits of size
        and depth."""
        self.left -= 1 + (len(value) if isinstance(value, str) else 0)
        if self.left < 0:
            raise Refused("", f"the schema has more than {MAX_SIZE:,} characters", "declare a smaller one")
        if depth > MAX_DEPTH:
            raise Refused(
                "", f"the schema is nested deeper than {MAX_DEPTH} levels", "use $defs and $ref to flatten it"
            )

    def check_key(self, key: Any, path: str) -> str:
        """Return the key of an object at `path`, and subtract its length from `left`. Raises `Refused` if it is not a
        string."""
        if not isinstance(key, str):
            raise Refused(path, f"the key {key!r} is no string", "write it in quotes")
        self.left -= len(key)
        return key


def _check_scalar(value: Any, path: str) -> Any:
    """Return a value that is neither an object nor a list. Raises `Refused` if it is not JSON, such as NaN or a set, or
    an integer of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > _MAX_INT_BITS:
        raise Refused(path, "a whole number of thousands of digits", "write a smaller one")
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    what = repr(value) if isinstance(value, float) else f"a {type(value).__name__}"
    raise Refused(path, f"{what} is not JSON", "write a string, number, boolean, null, list or object")


def _type_name(said: Any) -> Any:
    """Return the name of a class, as Python code may declare `{"type": str}`; any value that is not a class
    unchanged."""
    return said.__name__ if isinstance(said, type) else said


_COUNTS = "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains".split()
_NUMBERS = (*_COUNTS, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


_NUMERIC = frozenset(_NUMBERS)


class SchemaFix(msgspec.Struct, frozen=True):
    """A correction of a schema. `path` is a JSON Pointer into the declared schema."""

    tool: str
    path: str
    before: str
    after: str


Note = tuple[str, str, str]  # path, before, after


def fix_schema(schema: Json) -> list[Note]:
    """Correct unambiguous faults of a schema and its subschemas in place, and return a note (path, before, after)
    for each correction. The schema must be a copy made by `copy_plain`. Other faults remain, for `check_schema`."""
    notes: list[Note] = []
    waiting: list[tuple[str, Json]] = [("", schema)]
    while waiting:
        path, here = waiting.pop()
        for rule in _RULES:
            rule(here, path, notes)
        waiting += [(path + sub.path, sub.schema) for sub in subschemas(here) if isinstance(sub.schema, dict)][::-1]
    return notes


def text_schema(text: str) -> Json:
    """Return the schema of a parameter that is declared by a text instead of a schema: of the type that the text
    names, else a string. The text is its description."""
    return {"type": type_of_word(text.strip()) or "string", "description": text}


def _remove_nulls(schema: Json, path: str, notes: list[Note]) -> None:
    """Remove in place keywords that are null, which serializers write for unset fields, and append a note for each.
    Null under other keys, such as `default`, remains."""
    if None not in schema.values():
        return
    for key in [key for key, value in schema.items() if value is None and is_unset_by_null(key)]:
        del schema[key]
        notes.append((path + pointer_step(key), "null", "nothing said"))


def is_unset_by_null(key: str) -> bool:
    """Return whether null in this keyword means that it is unset."""
    known = key in ONE or key in LISTS or key in MAPS or key in _NUMBERS
    return known or key in ("type", "required", "enum", "description", "title", "format", "pattern", "nullable")


def _fix_type(schema: Json, path: str, notes: list[Note]) -> None:
    """Replace in place the name of a type by the schema that it means, and append a note. Other keywords of the
    schema are not replaced; a type that is not understood remains."""
    said = schema.get("type")
    found = _meaning_of_type(said, "enum" in schema) if "type" in schema else None
    if found is None:
        return
    schema.update({key: value for key, value in found.items() if key == "type" or key not in schema})
    if "type" not in found:
        del schema["type"]
    notes.append((f"{path}/type", repr(said)[:60], repr(schema["type"]) if "type" in schema else "any type"))


def _are_distinct(names: list[Any]) -> bool:
    """Return whether no two values have the same text."""
    return len({str(name) for name in names}) == len(names)


def _meaning_of_type(said: Any, has_enum: bool) -> Json | None:
    """Return the schema that an invalid value of `type` was meant to declare, such as {"type": "number"} for "float".
    None if the value is valid, or not understood. `has_enum` says whether the schema has an `enum`."""
    names = said if isinstance(said, list) else [said]
    if not names or (all(name in TYPES for name in names) and _are_distinct(names)):
        return None
    if said == "enum" and has_enum:
        return schema_of_type_name(said) or {}
    return (
        union_of_types([schema_of_type_name(name) for name in names])
        if isinstance(said, list)
        else schema_of_type_name(said)
    )


def _fix_required(schema: Json, path: str, notes: list[Note]) -> None:
    """Correct `required` in place and append notes: boolean flags in properties, one name without a list, a boolean,
    repeated names. Any other value remains."""
    said, inner = schema.get("required"), schema.get("properties")
    declared = inner if isinstance(inner, dict) else {}
    flagged = _remove_required_flags(declared, path, notes)
    listed: Any = said if isinstance(said, list) else [said] if isinstance(said, str) else []
    if isinstance(said, bool) or (isinstance(said, str) and said in declared):
        notes.append((f"{path}/required", repr(said)[:60], repr(listed)[:60] if listed else "nothing said"))
    elif said is not None and not isinstance(said, list):
        return
    names = _without_repetitions([*listed, *(key for key in flagged if key not in listed)])
    if len(_without_repetitions(listed)) < len(listed):
        notes.append((f"{path}/required", repr(said)[:60], repr(names)[:60]))
    if names or isinstance(said, list):
        schema["required"] = names
    else:
        schema.pop("required", None)


def _without_repetitions(names: list[Any]) -> list[Any]:
    """Return a list with each name once, in order. A list with other values than strings is returned unchanged."""
    return list(dict.fromkeys(names)) if all(isinstance(name, str) for name in names) else names


def _remove_required_flags(properties: Json, path: str, notes: list[Note]) -> list[str]:
    """Remove boolean `required` from properties in place, append a note for each, and return the names of the
    properties whose flag was true."""
    found: list[str] = []
    for key, item in properties.items():
        if isinstance(item, dict) and isinstance(item.get("required"), bool):
            where = f"{path}/properties{pointer_step(key)}/required"
            needed = item.pop("required")
            notes.append((where, str(needed), f"{key!r:.60} is {'' if needed else 'not '}required"))
            found += [key] if needed else []
    return found


def _fix_text_properties(schema: Json, path: str, notes: list[Note]) -> None:
    """Replace in place each property that is a text by a schema: of the type that the text names, else a string, with
    the text as description. Append a note for each."""
    inner = schema.get("properties")
    if isinstance(inner, dict):
        for key, item in inner.items():
            if isinstance(item, str):
                inner[key] = text_schema(item)
                notes.append(
                    (f"{path}/properties{pointer_step(key)}", repr(item)[:60], f"{inner[key]['type']}, described by it")
                )


def _fix_numbers(schema: Json, path: str, notes: list[Note]) -> None:
    """Replace in place the text of a number, in the keywords of this schema that hold numbers, by the number, and
    append a note for each."""
    for key in () if _NUMERIC.isdisjoint(schema) else _NUMBERS:
        said = schema.get(key)
        if isinstance(said, str) and (number := _parse_number(said)) is not None:
            schema[key] = number
            notes.append((f"{path}/{key}", repr(said)[:60], repr(number)))


def _parse_number(text: str) -> int | float | None:
    """Return the number in a text of at most 15 characters, such as "-3" or "1.5"; None for any other text."""
    digits = text.strip().removeprefix("-")
    if not digits.isascii() or len(digits) > 15:
        return None
    if digits.isdigit():
        return int(text)
    whole, dot, rest = digits.partition(".")
    return float(text) if dot and whole.isdigit() and rest.isdigit() else None


_RULES: tuple[Callable[[Json, str, list[Note]], None], ...] = (
    _remove_nulls,
    _fix_text_properties,
    _fix_required,
    _fix_type,
    _fix_numbers,
)


# -- soundness ---------------------------------------------------------------------------------------------------------

_DRAFTS = "draft-04 draft-06 draft-07 draft/2019-09 draft/2020-12".split()


_METASCHEMAS = {f"{scheme}://json-schema.org/{draft}/schema" for scheme in ("http", "https") for draft in _DRAFTS}


class Facts(NamedTuple):
    """What makes a sound schema costly: whether it has references, and the patterns of all its schemas."""

    refers: bool
    patterns: frozenset[str]


def check_parameters(schema: Json) -> Facts:
    """Return the facts of the schema of a tool's arguments, which must be a copy made by `copy_plain`. Raises `Refused`
    if its `type` excludes objects, and for the first fault that `check_schema` finds."""
    said = schema.get("type")
    if said is not None and said != "object" and not (isinstance(said, list) and "object" in said):
        raise Refused("/type", f"arguments are an object, not {said!r}", 'write "type": "object"')
    return check_schema(schema)


def check_schema(schema: Json) -> Facts:
    """Return the facts of a sound schema, which must be a copy made by `copy_plain`. Raises `Refused`, with the path,
    for the first fault: a keyword with an invalid value, a reference without a target, or too high a cost."""
    checker = _Checker(schema)
    checker.run()
    if checker.refers:
        _check_inner_ids(schema)
    _check_expansion(checker.refs)
    return Facts(checker.refers, frozenset(checker.patterns))


class _Checker:
    """Checks every schema of a document once, the targets of references included."""

    def __init__(self, root: Json) -> None:
        self.root = root
        self.refs = Refs(root)
        self.seen: set[int] = set()
        self.patterns: set[str] = set()
        self.refers = False

    def run(self) -> None:
        """Check all schemas and the targets of references, and collect the facts. Raises `Refused` for the first
        fault."""
        waiting: list[tuple[str, Any]] = [("", self.root)]
        while waiting:
            path, schema = waiting.pop()
            if isinstance(schema, bool) or id(schema) in self.seen:
                continue
            if not isinstance(schema, dict):
                raise Refused(path, f"{_shorten(schema)} is no schema", 'write an object such as {"type": "string"}')
            self.seen.add(id(schema))
            if len(self.seen) > MAX_SCHEMAS:
                raise Refused("", f"it has more than {MAX_SCHEMAS:,} schemas inside", "declare a smaller one")
            self.check_keywords(schema, path)
            waiting += [(path + sub.path, sub.schema) for sub in subschemas(schema)][::-1]
            if not REFERRING.isdisjoint(schema):
                for word in REFS:
                    if word in schema:
                        waiting.append((self.target_path(schema[word]), self.find_target(schema[word], path, word)))

    def check_keywords(self, schema: Json, path: str) -> None:
        """Check the keywords of one schema, without its subschemas, and collect its patterns. Raises `Refused` for the
        first keyword with an invalid value."""
        for word, value in schema.items():
            check = _CHECKS.get(word)
            wrong = check(value) if check is not None else None
            if wrong is not None:
                raise Refused(f"{path}{pointer_step(word)}", *wrong)
        self.patterns.update([schema["pattern"]] if "pattern" in schema else ())
        self.patterns.update(schema.get("patternProperties", ()))

    def target_path(self, ref: Any) -> str:
        """Return the path, without `#`, that a reference points at; "" if the reference is not a text."""
        return fragment_of(ref) if isinstance(ref, str) else ""

    def find_target(self, ref: Any, path: str, word: str) -> Any:
        """Return the schema that a reference `ref` points at, and set `refers`. Raises `Refused` if it is not a text,
        or does not begin with `#`, or points at no schema. `path` and `word` are where it is."""
        self.refers = True
        at = f"{path}/{word}"
        if not isinstance(ref, str):
            raise Refused(at, f"{_shorten(ref)} is no reference", 'write one such as "#/$defs/City"')
        if not ref.startswith("#"):
            cause = f"{ref[:80]!r} does not begin with '#': ids are not resolved, and nothing is ever fetched"
            raise Refused(at, cause, 'copy what it means under "$defs" and point there with "#/$defs/..."')
        found = self.refs.get(ref)
        if not isinstance(found, (dict, bool)):
            raise Refused(at, f"{ref[:80]!r} points at no schema", "declare it there, or correct the reference")
        return found


def _check_inner_ids(root: Json) -> None:
    """Raise `Refused` for an inner id that changes what a reference inside it means. Inner ids are ignored without
    references inside, and up to draft 7 beside a `$ref`."""
    id_word, ignores_siblings = id_keyword(root), ref_stands_alone(root)
    waiting = [("", "", root)]
    while waiting:
        path, id_path, schema = waiting.pop()
        if path and is_other_document(schema, id_word) and not (ignores_siblings and "$ref" in schema):
            id_path = f"{path}/{id_word}"
        if id_path and references(schema):
            raise Refused(id_path, f"an inner {id_word} changes what the references inside it mean", "remove it")
        waiting += [
            (path + sub.path, id_path, sub.schema) for sub in subschemas(schema) if isinstance(sub.schema, dict)
        ]


Fault = tuple[str, str]  # cause and cure


KeywordCheck = Callable[[Any], Fault | None]


def _shorten(value: Any) -> str:
    """Return the `repr` of a value, cut to 60 characters for messages."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _make_check(holds: Callable[[Any], bool], what: str) -> KeywordCheck:
    """Return a check that returns None for a value for which `holds` is true, else the fault as cause and cure. `what`
    names the expected value in both."""

    def check(value: Any) -> Fault | None:
        return None if holds(value) else (f"{_shorten(value)} is not {what}", f"write {what}, or remove the keyword")

    return check


def _check_type(value: Any) -> Fault | None:
    """Return cause and cure of the fault in the value of `type`; None if it is valid."""
    names = value if isinstance(value, list) else [value]
    for name in names:
        if name not in TYPES:
            said = (schema_of_type_name(name) or {}).get("type")
            cure = f"write {said!r}" if said in TYPES else f"write one of {', '.join(TYPES)}, or leave it out"
            return f"{_shorten(name)} is no JSON Schema type", cure
    if not names or len(set(names)) < len(names):
        return f"{_shorten(value)} is no list of different types", "name each type once"
    return None


def _check_required(value: Any) -> Fault | None:
    """Return cause and cure of the fault in the value of `required`; None if it is valid."""
    if isinstance(value, bool):
        return (
            "required is a list of property names, not a boolean",
            "name the property in the list of the object it is in",
        )
    if not _is_string_list(value):
        return f"{_shorten(value)} is no list of property names", 'write a list such as ["city"]'
    return None


def _check_metaschema(value: Any) -> Fault | None:
    """Return cause and cure of the fault in the value of `$schema`; None if it is valid. A fragment at its end is
    ignored."""
    if isinstance(value, str) and value.rstrip("#") in _METASCHEMAS:
        return None
    return f"{_shorten(value)} is none of the drafts 4 to 2020-12, and nothing is ever fetched", "remove it"


def _is_string_list(value: Any) -> bool:
    """Return whether a value is a list of different strings."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value) and len(set(value)) == len(value)


def _is_number(value: Any) -> bool:
    """Return whether a value is a number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    """Return whether a value is a whole number of at least 0; 2.0 is one."""
    return _is_number(value) and value >= 0 and value == int(value)


_TEXT = _make_check(lambda value: isinstance(value, str), "a string")


_BOOLEAN = _make_check(lambda value: isinstance(value, bool), "true or false")


_COUNT = _make_check(_is_count, "a whole number of at least 0")


_NUMBER = _make_check(_is_number, "a number")


_BOUND = _make_check(lambda value: _is_number(value) or isinstance(value, bool), "a number")


_LIST = _make_check(lambda value: isinstance(value, list), "a list")


_SCHEMAS = _make_check(lambda value: isinstance(value, list) and bool(value), "a list of at least one schema")


_MAP = _make_check(lambda value: isinstance(value, dict), "an object")


_NAME_LISTS = _make_check(
    lambda value: isinstance(value, dict) and all(map(_is_string_list, value.values())), "an object of name lists"
)


_ANCHOR = _make_check(
    lambda value: isinstance(value, str) and value.replace("-", "_").replace(".", "_").isidentifier(), "a name"
)


_CHECKS: dict[str, KeywordCheck] = {
    "type": _check_type,
    "required": _check_required,
    "$schema": _check_metaschema,
    **dict.fromkeys("title description $comment format pattern contentEncoding contentMediaType $id".split(), _TEXT),
    **dict.fromkeys("uniqueItems deprecated readOnly writeOnly nullable".split(), _BOOLEAN),
    **dict.fromkeys("minLength maxLength minItems maxItems minProperties maxProperties".split(), _COUNT),
    **dict.fromkeys("minContains maxContains".split(), _COUNT),
    **dict.fromkeys("minimum maximum".split(), _NUMBER),
    **dict.fromkeys("exclusiveMinimum exclusiveMaximum".split(), _BOUND),
    "multipleOf": _make_check(lambda value: _is_number(value) and value > 0, "a number above 0"),
    **dict.fromkeys("enum examples".split(), _LIST),
    **dict.fromkeys(sorted(LISTS - {"prefixItems"}), _SCHEMAS),
    "prefixItems": _SCHEMAS,
    **dict.fromkeys(sorted(MAPS), _MAP),
    "dependentRequired": _NAME_LISTS,
    **dict.fromkeys("$anchor $dynamicAnchor".split(), _ANCHOR),
}


def _check_expansion(refs: Refs) -> None:
    """Raise `Refused` if checking one value may cost too much: a schema applies itself to the same value, or too many
    schemas, or too long chains of them, apply to one value, at one place or in sum."""
    done: dict[int, tuple[int, int]] = {}  # schemas that apply, longest chain
    all_ = list(schemas_and_targets(refs))
    for start in all_:
        if id(start) not in done:
            _compute_expansion(start, refs, done)
    if sum(done[id(schema)][0] for schema in all_) > MAX_REPEATED:
        raise Refused("", *_MULTIPLIES)


_MULTIPLIES = ("its references and combinators multiply beyond what can be checked", "declare a simpler schema")


def _compute_expansion(start: Json, refs: Refs, done: dict[int, tuple[int, int]]) -> None:
    """Store in `done`, by id, the cost of this schema and of all schemas that apply to the same value: their number
    and the longest chain. Raises `Refused` for a schema that applies itself, and beyond the limits."""
    open_: set[int] = {id(start)}
    below = schemas_in_place(start, refs)
    stack = [(start, below, iter(below))]
    while stack:
        here, below, left = stack[-1]
        new = next((item for item in left if id(item) not in done), None)
        if new is None:
            stack.pop()
            open_.discard(id(here))
            done[id(here)] = _total_cost([done[id(item)] for item in below])
        elif id(new) in open_:
            raise Refused("", "a reference leads back to itself without end", "let it point at a part of the value")
        else:
            open_.add(id(new))
            below = schemas_in_place(new, refs)
            stack.append((new, below, iter(below)))


def _total_cost(below: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the number of schemas and the longest chain of a schema, itself included. `below` has these two numbers of
    each schema that it applies. Raises `Refused` beyond the limits."""
    count = 1 + sum(cost for cost, _ in below)
    chain = 1 + max((length for _, length in below), default=0)
    if count > MAX_EXPANSION or chain > MAX_CHAIN:
        raise Refused("", *_MULTIPLIES)
    return count, chain


_ANY_VALUE = frozenset(("const", "default", "examples", "example"))


def is_keyword(word: str, value: Any) -> bool:
    """Return whether `word` is a keyword of JSON Schema that is checked and `value` is valid for it. Schemas inside the
    value are not checked."""
    if word in ONE or word in REFS:
        return isinstance(value, (dict, bool)) if word in ONE else isinstance(value, str)
    check = _CHECKS.get(word)
    return word in _ANY_VALUE if check is None else check(value) is None
