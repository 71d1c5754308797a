"""Is this a JSON Schema that may be trusted? Judged once, at declare time, in time linear in its size.

    {"type": "object", "properties": {"city": {"type": "colour"}}}
    -> /properties/city/type: 'colour' is no JSON Schema type; write one of object, string, ...

What passes has keywords of the right shape, only references into itself that resolve, and no more depth, size or
expansion than the limits here, so nothing behind it has to fear a hostile schema. Drafts 4 to 2020-12 are understood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rightcall.json_pointer import step, unescaped
from rightcall.schema.refusals import Refused
from rightcall.schema.tool_limits import MAX_CHAIN, MAX_EXPANSION, MAX_REPEATED, MAX_SCHEMAS
from rightcall.schema.type_names import TYPES, meant
from rightcall.types import Json

ONE = {
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
}
LISTS = {"allOf", "anyOf", "oneOf", "prefixItems"}
MAPS = {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
REFS = ("$ref", "$dynamicRef", "$recursiveRef")
ANCHORS = ("$anchor", "$dynamicAnchor")
_IN_PLACE_ONE = ("not", "if", "then", "else")
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE_MAPS = ("dependentSchemas", "dependencies")
# Most schemas are leaves, and every walk comes to all of them: one look tells that nothing is in them.
_HOLDERS = frozenset((*ONE, *LISTS, *MAPS))
_REFERRING = frozenset(REFS)
_IN_PLACE = frozenset((*REFS, *_IN_PLACE_ONE, *_IN_PLACE_LISTS, *_IN_PLACE_MAPS))
_UNKNOWN = object()

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
    _check_expansion(checker.refs)
    return Facts(checker.refers, frozenset(checker.patterns))


class Sub(NamedTuple):
    """A schema inside another: the keyword it stands under, and its place."""

    keyword: str
    path: str
    schema: Any


def subschemas(schema: Json) -> Iterator[Sub]:
    """The schemas one level down, wherever a keyword may hold some."""
    for word, value in () if _HOLDERS.isdisjoint(schema) else schema.items():
        if word in LISTS or (word == "items" and isinstance(value, list)):
            for at, item in enumerate(value if isinstance(value, list) else ()):
                yield Sub(word, f"/{word}/{at}", item)
        elif word in MAPS:
            for key, item in value.items() if isinstance(value, dict) else ():
                if not (word == "dependencies" and isinstance(item, list)):
                    yield Sub(word, f"/{word}{step(key)}", item)
        elif word in ONE:
            yield Sub(word, f"/{word}", value)


def inner(schema: Json) -> list[Any]:
    """The same without their places, which cost more than all else."""
    found: list[Any] = []
    for word, value in () if _HOLDERS.isdisjoint(schema) else schema.items():
        if word in LISTS or (word == "items" and isinstance(value, list)):
            found += value if isinstance(value, list) else ()
        elif word == "dependencies" and isinstance(value, dict):
            found += [item for item in value.values() if not isinstance(item, list)]
        elif word in MAPS:
            found += value.values() if isinstance(value, dict) else ()
        elif word in ONE:
            found.append(value)
    return found


def references(schema: Json) -> list[str]:
    """Those that a schema holds itself."""
    if _REFERRING.isdisjoint(schema):
        return []
    return [schema[word] for word in REFS if isinstance(schema.get(word), str)]


class Refs:
    """What the local references of one document point at; each is followed once."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._found: dict[str, Any] = {}
        self._anchors: dict[str, Json] | None = None
        # What others found out of each schema, which is kept: an id is only unique among living objects.
        self.types: dict[int, tuple[Json, set[str] | None]] = {}
        self.declared: dict[int, tuple[Any, Json]] = {}
        self.folded: dict[int, dict[str, list[str]]] = {}

    def get(self, ref: str) -> Any:
        """The target of `#/$defs/City` or `#city`; None for anything else, which is never fetched."""
        found = self._found.get(ref, _UNKNOWN)
        if found is _UNKNOWN:
            found = self._found[ref] = self._follow(unquoted(ref)) if ref.startswith("#") else None
        return found

    def _follow(self, pointer: str) -> Any:
        if pointer and not pointer.startswith("/"):
            if self._anchors is None:
                self._anchors = _anchors(self.root)
            return self._anchors.get(pointer)
        here = self.root
        for part in pointer.split("/")[1:]:
            part = unescaped(part)
            if isinstance(here, list):
                here = here[int(part)] if part.isascii() and part.isdigit() and int(part) < len(here) else None
            else:
                here = here.get(part) if isinstance(here, dict) else None
        return here


def unquoted(ref: str) -> str:
    """The place that a reference into the same document names."""
    from urllib.parse import unquote

    return unquote(ref[1:]) if "%" in ref else ref[1:]


_REFS: dict[int, Refs] = {}
_MOST_KEPT = 256  # documents


def refs_of(root: Any) -> Refs:
    """The references of a document, the same for as long as it is used."""
    found = _REFS.get(id(root))
    if found is None:
        if len(_REFS) >= _MOST_KEPT:
            _REFS.clear()
        found = _REFS[id(root)] = Refs(root)
    return found


def _anchors(root: Any) -> dict[str, Json]:
    return {
        schema[word]: schema for schema in all_schemas(root) for word in ANCHORS if isinstance(schema.get(word), str)
    }


def all_schemas(root: Any) -> Iterator[Json]:
    """Every schema of a document that is an object, the root included."""
    waiting: list[Any] = [root]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            yield here
            waiting += inner(here)


def reachable(refs: Refs) -> Iterator[Json]:
    """Every schema of a document once, wherever else references point included."""
    seen: set[int] = set()
    waiting: list[Any] = [refs.root]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict) and id(here) not in seen:
            seen.add(id(here))
            yield here
            waiting += inner(here)
            waiting += map(refs.get, references(here))


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
            if not _REFERRING.isdisjoint(schema):
                pointed = [(schema[word], word) for word in REFS if word in schema]
                waiting += [(self.where(ref), self.target(ref, path, word)) for ref, word in pointed]

    def keywords(self, schema: Json, path: str) -> None:
        for word, value in schema.items():
            judge = _JUDGES.get(word)
            wrong = judge(value) if judge is not None else None
            if wrong is not None:
                raise Refused(f"{path}{step(word)}", *wrong)
        if path and isinstance(schema.get("$id"), str):
            raise Refused(f"{path}/$id", "an inner $id changes what references mean", "remove it")
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


def in_place(schema: Json, refs: Refs) -> list[Json]:
    """The schemas that apply to the same value as this one."""
    if _IN_PLACE.isdisjoint(schema):
        return []
    found = [refs.get(ref) for ref in references(schema)]
    found += [schema[word] for word in _IN_PLACE_ONE if word in schema]
    for word in _IN_PLACE_LISTS:
        found += schema.get(word, ())
    for word in _IN_PLACE_MAPS:
        found += schema.get(word, {}).values()
    return [item for item in found if isinstance(item, dict)]
