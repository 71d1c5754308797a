"""The names of shared types: which references of several tools mean the same type, and what each is called.

Two references are one type if their last steps are alike and so is everything that can be reached from where they
point. Different types with the same last step get numbers: `City`, `City2`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from rightcall.json_pointer import unescaped
from rightcall.schema.walk import REFS, Refs, all_schemas, reachable
from rightcall.types import Json

_ROUNDS = 64
_UNFIT = re.compile(r"[^A-Za-z0-9_$]+")
_RESERVED = frozenset(
    "any unknown never void null undefined string number boolean symbol object bigint Tools "
    "break case catch class const continue debugger default delete do else enum export extends false finally for "
    "function if import in instanceof new return super switch this throw true try typeof var while with "
    "implements interface let package private protected public static yield await arguments eval".split()
)


def is_reserved(name: str) -> bool:
    return name in _RESERVED


class _Place(msgspec.Struct, eq=False):
    """Where some references of one document point. `kind` tells places apart, better with each round."""

    document: int
    refs: Refs
    target: Json
    name: str
    inner: list[_Place] = []
    kind: int = 0


class TypeNames:
    """The type names of the references in these documents. Time is linear in their size, but for the rounds."""

    def __init__(self, documents: Iterable[Json]) -> None:
        self._places: dict[tuple[int, int], _Place] = {}  # by document, and by what it points at
        self._roots: list[Json] = []  # kept alive, so that what a reference points at keeps its identity
        for number, root in enumerate(documents):
            self._roots.append(root)
            self._collect(number, Refs(root))
        self._link()
        self._tell_apart()
        self._called: dict[int, str] = {}
        self._taken: dict[str, int] = {}

    def of(self, document: int, target: Any) -> str | None:
        """What the type that a reference of this document points at is called; None where no reference points.

        The type that is asked for first gets the name without a number."""
        place = self._places.get((document, id(target)))
        if place is not None and place.kind not in self._called:
            self._called[place.kind] = _fresh(place.name, self._taken)
        return None if place is None else self._called[place.kind]

    def _collect(self, number: int, refs: Refs) -> None:
        for schema in reachable(refs):
            for ref, target in _targets(schema, refs):
                if (number, id(target)) not in self._places:
                    self._places[number, id(target)] = _Place(number, refs, target, preferred(ref, refs.root))

    def _link(self) -> None:
        for place in self._places.values():
            inner = {
                ref: target for schema in all_schemas(place.target) for ref, target in _targets(schema, place.refs)
            }
            place.inner = [self._places[place.document, id(inner[ref])] for ref in sorted(inner)]
            place.kind = hash((place.name, json.dumps(place.target, sort_keys=True)))

    def _tell_apart(self) -> None:
        """Two places of one kind whose inner places are of different kinds are of different kinds themselves."""
        places = list(self._places.values())
        count = len({place.kind for place in places})
        for _ in range(_ROUNDS):
            kinds = [hash((place.kind, *[inner.kind for inner in place.inner])) for place in places]
            for place, kind in zip(places, kinds, strict=True):
                place.kind = kind
            if count == (count := len(set(kinds))):
                return
        for place in places:  # a chain longer than the rounds: nothing is shared between documents
            place.kind = hash((place.document, place.kind))


def _targets(schema: Json, refs: Refs) -> Iterator[tuple[str, Json]]:
    for word in REFS:
        if isinstance(schema.get(word), str) and isinstance(target := refs.get(schema[word]), dict):
            yield schema[word], target


def preferred(ref: str, root: Any = None) -> str:
    """The name that a reference asks for: its last step, as an identifier. Empty for one that points at itself."""
    last = unescaped(ref.rstrip("/").rpartition("/")[2].strip("#"))
    if not last and isinstance(root, dict) and "$ref" not in root:
        last = root["title"] if isinstance(root.get("title"), str) and root["title"].strip() else "Arguments"
    name = _UNFIT.sub("_", last).strip("_") or ("_" if last else "")
    return f"_{name}" if name[:1].isdigit() else name


def _fresh(name: str, taken: dict[str, int]) -> str:
    """`taken` has how often each name was asked for, so that the next number is near."""
    number = taken.get(name, 1)
    new = f"{name}{number}" if number > 1 else f"{name}_" if name in _RESERVED else name or "_"
    while new in taken:
        number, new = number + 1, f"{name}{number + 1}"
    taken[new] = taken.get(new, 1)
    taken[name] = number
    return new
