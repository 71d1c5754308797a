"""Walk a JSON Schema: subschemas, references and the schemas that apply to the same value. Drafts 4 to 2020-12.

This is the only code that knows which keywords hold schemas. It checks nothing: `schema.definition` accepts or refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from rightcall.strict_json import pointer_step, unescape_step
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
# Most schemas are leaves: one test shows that nothing is in them.
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
    """Yield the schemas one level inside a schema, with their keyword and relative path. A value in the place of a
    schema is yielded even if it is no schema."""
    for word, value in () if _HOLDERS.isdisjoint(schema) else schema.items():
        if word in LISTS or (word == "items" and isinstance(value, list)):
            for at, item in enumerate(value if isinstance(value, list) else ()):
                yield Sub(word, f"/{word}/{at}", item)
        elif word in MAPS:
            for key, item in value.items() if isinstance(value, dict) else ():
                if not (word == "dependencies" and isinstance(item, list)):
                    yield Sub(word, f"/{word}{pointer_step(key)}", item)
        elif word in ONE:
            yield Sub(word, f"/{word}", value)


def direct_subschemas(schema: Json) -> list[Any]:
    """Return the schemas one level inside a schema, without their keywords and paths, which take most of the time of
    `subschemas`. A value in the place of a schema is included even if it is no schema."""
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
    """Return the texts of `$ref`, `$dynamicRef` and `$recursiveRef` in a schema, without those in its subschemas."""
    if REFERRING.isdisjoint(schema):
        return []
    return [schema[word] for word in REFS if isinstance(schema.get(word), str)]


class Refs:
    """Resolves the local references of one document, each of them once. The document must not change."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._found: dict[str, Any] = {}
        self._collect_anchors: dict[str, Json] | None = None
        # Caches of other modules. Each entry keeps its schema, because an id is only unique among living objects.
        self.types: dict[int, tuple[Json, set[str] | None]] = {}
        self.declared: dict[int, tuple[Any, Json]] = {}
        self.folded: dict[int, dict[str, list[str]]] = {}

    def get(self, ref: str) -> Any:
        """Return the target of a local reference (`#/$defs/City`, `#city`), which need not be a schema; None if there
        is none, and for any other reference, which is never fetched."""
        found = self._found.get(ref, _UNKNOWN)
        if found is _UNKNOWN:
            found = self._found[ref] = self._follow(fragment_of(ref)) if ref.startswith("#") else None
        return found

    def _follow(self, pointer: str) -> Any:
        """Return the value at a JSON Pointer, or the schema with this anchor, in the document; None if there is
        none."""
        if pointer and not pointer.startswith("/"):
            if self._collect_anchors is None:
                self._collect_anchors = _collect_anchors(self.root)
            return self._collect_anchors.get(pointer)
        here = self.root
        for part in pointer.split("/")[1:]:
            part = unescape_step(part)
            if isinstance(here, list):
                here = here[int(part)] if part.isascii() and part.isdigit() and int(part) < len(here) else None
            else:
                here = here.get(part) if isinstance(here, dict) else None
        return here


def fragment_of(ref: str) -> str:
    """Return the reference without its first character, decoded from percent encoding. The caller makes sure that it
    begins with `#`."""
    from urllib.parse import unquote

    return unquote(ref[1:]) if "%" in ref else ref[1:]


_REFS: dict[int, Refs] = {}
_MAX_DOCUMENTS = 256  # documents


def refs_of(root: Any) -> Refs:
    """Return the resolver of a document, from a cache by identity, which is cleared when full."""
    found = _REFS.get(id(root))
    if found is None:
        if len(_REFS) >= _MAX_DOCUMENTS:
            _REFS.clear()
        found = _REFS[id(root)] = Refs(root)
    return found


def _collect_anchors(root: Any) -> dict[str, Json]:
    """Return the schemas of a document by their anchors. Drafts 4 to 7 write `"$id": "#city"`, or `id`. An anchor of
    the document comes before the same one inside an inner id, which belongs to another document."""
    id_word = id_keyword(root)
    found: dict[str, Json] = {}
    documents: list[Any] = [root]
    for document in documents:
        waiting: list[Any] = [document]
        while waiting:
            here = waiting.pop()
            if isinstance(here, dict):
                names = [here[word] for word in ANCHORS if isinstance(here.get(word), str)]
                ids = [here[word] for word in ("$id", "id") if isinstance(here.get(word), str)]
                for name in names + [name[1:] for name in ids if name.startswith("#")]:
                    found.setdefault(name, here)
                for inner in direct_subschemas(here):
                    (documents if is_other_document(inner, id_word) else waiting).append(inner)
    return found


def draft_of(root: Any) -> str:
    """Return the draft in `$schema`, such as "draft-07", if it is one before 2020-12, else ""."""
    said = root.get("$schema") if isinstance(root, dict) else None
    found = _DRAFT.search(said) if isinstance(said, str) else None
    return found[1] if found is not None else ""


_DRAFT = re.compile(r"json-schema\.org/(draft-0[467]|draft/2019-09)/")


def ref_stands_alone(root: Any) -> bool:
    """Return whether the draft of a document ignores the keywords beside a `$ref`, as drafts up to 7 do."""
    return draft_of(root).startswith("draft-0")


def id_keyword(root: Any) -> str:
    """Return the keyword that names a schema in the draft of a document: `id` in draft 4, `$id` in later ones."""
    return "id" if draft_of(root) == "draft-04" else "$id"


def is_other_document(schema: Any, id_word: str) -> bool:
    """Return whether an inner schema has an id, in the keyword `id_word`, that is no anchor, which makes it a document
    of its own."""
    said = schema.get(id_word) if isinstance(schema, dict) else None
    return isinstance(said, str) and not said.startswith("#")


def all_schemas(root: Any) -> Iterator[Json]:
    """Yield every schema of a document that is an object, the root included. References are not followed."""
    waiting: list[Any] = [root]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            yield here
            waiting += direct_subschemas(here)


def schemas_and_targets(refs: Refs) -> Iterator[Json]:
    """Yield each schema of a document once: all subschemas, unreferenced definitions included, and the targets of
    references, which may be in places that hold no schemas."""
    seen: set[int] = set()
    waiting: list[Any] = [refs.root]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict) and id(here) not in seen:
            seen.add(id(here))
            yield here
            waiting += direct_subschemas(here)
            waiting += map(refs.get, references(here))


def schemas_in_place(schema: Json, refs: Refs) -> list[Json]:
    """Return the schemas that a schema applies to the same value, directly: its alternatives, conditions, dependent
    schemas and the targets of its references. Booleans are left out."""
    if _IN_PLACE.isdisjoint(schema):
        return []
    found = [refs.get(ref) for ref in references(schema)]
    found += [schema[word] for word in _IN_PLACE_ONE if word in schema]
    for word in _IN_PLACE_LISTS:
        found += schema.get(word, ())
    for word in _IN_PLACE_MAPS:
        found += schema.get(word, {}).values()
    return [item for item in found if isinstance(item, dict)]
