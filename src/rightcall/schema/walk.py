"""Walk a JSON Schema: subschemas, references and the schemas that apply to the same value. Drafts 4 to 2020-12.

The only code that knows which keywords hold schemas. Nothing is judged here: `schema.definition` accepts or refuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rightcall.json_pointer import step, unescaped
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
REFERRING = frozenset(REFS)
_IN_PLACE = frozenset((*REFS, *_IN_PLACE_ONE, *_IN_PLACE_LISTS, *_IN_PLACE_MAPS))
_UNKNOWN = object()


class Sub(NamedTuple):
    """A schema inside another: the keyword that holds it, and its path."""

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
    if REFERRING.isdisjoint(schema):
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
