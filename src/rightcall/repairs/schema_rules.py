"""The rules that a schema suggests: for one fault of the arguments the changes that may mend it, most likely first.

Fault(("days",), "type")  with  {"days": "3"}   ->   scalar_type: /days becomes 3
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from math import isinf
from typing import Any, Literal

import msgspec

from rightcall.repairs.backslashes import decode_escaped
from rightcall.repairs.liberties import Unreadable
from rightcall.repairs.loose import read_loose
from rightcall.repairs.number_text import NumberText, dumps
from rightcall.schema.places import MISSING, Places, may_be, may_be_fraction, value_at
from rightcall.strict_json import MAX_DEPTH, Undecodable, decode
from rightcall.tools.checks import pointer
from rightcall.types import Json, Repair

_WRAPPERS = ("arguments", "parameters", "args", "kwargs", "input")
_NAMES = ("name", "function", "tool")
_BESIDE = frozenset((*_NAMES, "type", "id"))
_LAST = re.compile(r"__|[./:]").split
_INTEGER = re.compile(r"[+-]?[0-9]{1,400}(?:\.0*)?").fullmatch
_AS_JSON = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+").fullmatch
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?").fullmatch
_SEPARATORS = re.compile(r"[\s_\-./:]++").sub
_BETWEEN_WORDS = re.compile(r"(?<=[^\W\d_])[ _\-]++(?=[^\W\d_])").sub
_LISTED = re.compile(r"[,;|\n]|\s-\s").search  # what may stand between the items of a list
_BRACKETS = frozenset("[]{}()<>\"'")
_ZEROS = re.compile(r"[+-]?0[0-9]").match
_QUOTED = re.compile(r"""(\\?["'])([^"'\\]+)\1""").fullmatch  # once more than JSON has it
_LONGEST_NAME = 256
_MOST_SIMILAR = 32  # unknown names that are compared with a missing one
GONE: Any = object()  # nothing is to stand there any more

Kind = Literal["exact", "schema", "guess"]


class SchemaFault(msgspec.Struct, frozen=True):
    """What is wrong (`word`, a keyword of JSON Schema or `stranger`) and where; what is missing, where it should be."""

    where: tuple[Any, ...]
    word: str
    name: str = ""
    kind: Any = None

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for the same fault when it is met again."""
        return self.where, self.word, self.name


class Change(msgspec.Struct, frozen=True):
    """Another value in a place, which must leave less wrong there. `renamed` and `dropped` tell what of an object is
    different: names, and nulls that are left out."""

    rule: str
    kind: Kind
    where: tuple[Any, ...]
    new: Any
    renamed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def locus(self) -> tuple[Any, ...]:
        return self.where

    def receipts(self, value: Any) -> list[Repair]:
        """`value` is what the arguments were before."""
        if self.renamed:
            return [self._receipt((*self.where, new), old, new) for old, new in self.renamed]
        if self.dropped:
            return [self._receipt((*self.where, name), "null", "") for name in self.dropped]
        return [self._receipt(self.where, as_text(value_at(value, list(self.where))), as_text(self.new))]

    def _receipt(self, where: tuple[Any, ...], before: str, after: str) -> Repair:
        return Repair(self.rule, self.kind, pointer(where), before, after)


class PropertyNames(msgspec.Struct, frozen=True):
    """The names of one object: those it has that are not declared, and what they may be meant for."""

    value: Json
    declared: Json
    strangers: list[str]
    folded: list[tuple[str, str]]


class Given:
    """The arguments that have faults, with what is asked of them more than once. `depth` is how deep what stands in a
    string may be nested."""

    def __init__(self, arguments: Any, places: Places, depth: int) -> None:
        self.arguments, self.places, self.depth = arguments, places, depth
        self._names: dict[tuple[Any, ...], PropertyNames | None] = {}

    def names(self, where: list[Any]) -> PropertyNames | None:
        key = tuple(where)
        if key not in self._names:
            value = value_at(self.arguments, where)
            self._names[key] = self._named(where, value) if isinstance(value, dict) else None
        return self._names[key]

    def _named(self, where: list[Any], value: Json) -> PropertyNames:
        declared = self.places.properties(self.places.at(where))
        strangers = [key for key in value if key not in declared]
        return PropertyNames(value, declared, strangers, _folded(value, strangers, self._by_fold(declared)))

    def _by_fold(self, declared: Json) -> dict[str, list[str]]:
        """The declared names by what they fold to: made once, for it may be many."""
        known = self.places.refs.folded
        found = known.get(id(declared))
        if found is None:
            found = known[id(declared)] = {}
            for key in declared:
                found.setdefault(fold(key), []).append(key)
        return found


def changes(fault: SchemaFault, given: Given) -> Iterator[Change]:
    named = fault.word in ("required", "stranger")
    where = list(fault.where[:-1] if named else fault.where)
    value = value_at(given.arguments, where)
    if value is MISSING:
        return
    if named or fault.word in ("additionalProperties", "unevaluatedProperties"):
        names = given.names(where)
        if names is not None:
            yield from _named(where, names, fault, given.places)
    elif fault.word in ("enum", "const"):
        yield from _option(where, value, fault.kind)
        yield from _retyped(where, value, given)
    elif fault.word in ("type", "anyOf", "oneOf"):
        yield from _retyped(where, value, given)


# -- names -------------------------------------------------------------------------------------------------------------


def fold(name: str) -> str:
    """Two names that differ only in case and in the separators of words fold to the same. Any other sign stays."""
    return _SEPARATORS("", name.casefold())


def fold_option(text: str) -> str:
    """As `fold`, for values: a separator beside a digit may be a sign or a point (`-5`, `1-2`), and stays."""
    return _BETWEEN_WORDS("", text.strip().casefold())


def _named(where: list[Any], names: PropertyNames, fault: SchemaFault, places: Places) -> Iterator[Change]:
    yield from _unwrapped(where, names, sure=fault.word == "required")
    # Every unknown name that is a declared one but for case and separators: all of them, then each alone.
    if names.folded:
        yield _rename("folded_name", "schema", where, names, names.folded)
    for pair in names.folded[:16] if len(names.folded) > 1 else ():
        yield _rename("folded_name", "schema", where, names, [pair])
    if fault.word == "required":
        default = places.default(list(fault.where))
        if default is not MISSING:
            # An unknown argument with a similar name may be the missing one.
            others = [name[:_LONGEST_NAME] for name in names.strangers[:_MOST_SIMILAR]]
            misspelled = get_close_matches(fault.name[:_LONGEST_NAME], others)
            yield Change("default", "guess" if misspelled else "schema", fault.where, default)
    elif fault.word != "stranger":
        unexpected = getattr(fault.kind, "unexpected", ())
        yield from _null_strangers(where, names, unexpected, places)


def _null_strangers(
    where: list[Any], names: PropertyNames, unexpected: Iterable[str], places: Places
) -> Iterator[Change]:
    value = names.value
    nulls = dict.fromkeys([name for name in unexpected if name in value and value[name] is None])
    if nulls:
        kept = {key: item for key, item in value.items() if key not in nulls}
        # A name that is not known may be the misspelling of one that may be null.
        meant = any(may_be(names.declared[key], None, places.refs) for key in names.declared if key not in value)
        yield Change("null_dropped", "guess" if meant else "schema", tuple(where), kept, dropped=tuple(nulls))


def _folded(value: Json, strangers: list[str], declared: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Unknown names that are a free declared one but for case and separators, where nothing else could be meant."""
    wanted: dict[str, list[str]] = {}
    for key in strangers:
        free = [name for name in declared.get(fold(key), ()) if name not in value] if len(key) <= _LONGEST_NAME else ()
        if len(free) == 1:
            wanted.setdefault(free[0], []).append(key)
    return [(old[0], new) for new, old in wanted.items() if len(old) == 1]


def _rename(rule: str, kind: Kind, where: list[Any], names: PropertyNames, pairs: list[tuple[str, str]]) -> Change:
    meant = dict(pairs)
    made = {meant.get(key, key): item for key, item in names.value.items()}
    return Change(rule, kind, tuple(where), made, renamed=tuple(pairs))


def _unwrapped(where: list[Any], names: PropertyNames, *, sure: bool) -> Iterator[Change]:
    """Arguments inside arguments: `{"arguments": {...}}`. Unless something is missing (`sure`), only declared ones."""
    wrapper = None if where else _wrapper(names.value, names.declared)
    if wrapper is not None:
        inner = names.value[wrapper]
        if sure or (inner and inner.keys() <= names.declared.keys()):
            yield Change("unwrapped", "schema", (), inner)


def _wrapper(value: Json, declared: Json) -> str | None:
    """The one key of this object that holds arguments, where all else in it is what a call has."""
    if len(value) > len(_WRAPPERS) + len(_BESIDE):
        return None
    wrapped = [key for key in _WRAPPERS if key in value and key not in declared and isinstance(value[key], dict)]
    return wrapped[0] if len(wrapped) == 1 and set(value) <= {wrapped[0], *_BESIDE} else None


def call_inside(value: Json, name: str, declared: Any) -> tuple[str, Json] | None:
    """The name and the arguments of the call that these arguments of a tool of that name are, where they are one. Its
    own name is given as the tool has it."""
    declared = declared if isinstance(declared, dict) else {}
    inner = value.get("function")
    if isinstance(inner, dict) and "function" not in declared and set(value) <= _BESIDE:
        value, declared = inner, {}
    wrapper = _wrapper(_with_object(value, declared), declared)
    said = [value[key] for key in _NAMES if isinstance(value.get(key), str) and key not in declared]
    if wrapper is None or not said:
        return None
    others = [each for each in said if fold(_LAST(each)[-1]) != fold(_LAST(name)[-1])]
    return next(iter(others), name), _with_object(value, declared)[wrapper]


def _with_object(value: Json, declared: Json) -> Json:
    """The same where the arguments of a call are a text that holds their object."""
    texts = {key: value[key] for key in _WRAPPERS if isinstance(value.get(key), str) and key not in declared}
    objects = {key: decode(text, MAX_DEPTH) for key, text in texts.items() if text.lstrip()[:1] == "{"}
    return {**value, **{key: made for key, made in objects.items() if isinstance(made, dict)}} if objects else value


# -- values ------------------------------------------------------------------------------------------------------------


def _option(where: list[Any], value: Any, kind: Any) -> Iterator[Change]:
    options = kind.options if kind.name == "enum" else [kind.expected_value]
    if isinstance(value, str) and len(value) <= _LONGEST_NAME:
        folded = fold_option(value)
        same = [option for option in options if isinstance(option, str) and fold_option(option) == folded]
        if folded and len(same) == 1:  # blanks alone say nothing
            yield Change("enum_case", "schema", tuple(where), same[0])
        bare = value.strip().lower()
        spelled = [option for option in options if not isinstance(option, str) and as_text(option) == bare]
        if len(spelled) == 1:
            yield Change("scalar_type", "schema", tuple(where), spelled[0])


def _retyped(where: list[Any], value: Any, given: Given) -> Iterator[Change]:
    """The same value as another type."""
    at = tuple(where)
    if value is None:
        yield from _null(at, given.places)
    elif isinstance(value, str):
        yield from _from_text(at, value, given)
    elif isinstance(value, bool | int | float) and not _is_infinite(value):
        # A boolean may have been written as `true` or as `True`.
        yield Change("scalar_type", "guess" if isinstance(value, bool) else "schema", at, as_text(value))
    if value is not None and not isinstance(value, list):
        yield Change("wrapped_in_array", _kind_of_wrapping(at, value), at, [value])
    elif isinstance(value, list) and len(value) == 1:
        yield Change("array_of_one", "guess", at, value[0])


def _kind_of_wrapping(at: tuple[Any, ...], value: Any) -> Kind:
    """One value is a list of one, unless it may be a list in other clothes, an empty one among them, or belong to a
    list beside it."""
    is_item = bool(at) and isinstance(at[-1], int)
    is_list = isinstance(value, str) and (
        bool(_LISTED(value)) or not _BRACKETS.isdisjoint(value.strip()[:: max(1, len(value.strip()) - 1)])
    )
    is_empty = value in ({}, "")
    return "guess" if is_item or is_list or is_empty else "schema"


def _is_infinite(value: float) -> bool:
    """Larger than any float, and its text is not known."""
    return type(value) is float and isinf(value)


def _null(at: tuple[Any, ...], places: Places) -> Iterator[Change]:
    default = places.default(list(at))
    if default is not MISSING:
        yield Change("default", "schema", at, default)
    if at and isinstance(at[-1], str):
        items = places.inner(places.at(list(at)), 0)
        is_item = items is not None and may_be(items, None, places.refs)  # of a list that lost its brackets
        yield Change("null_dropped", "guess" if is_item else "schema", at, GONE)


def _from_text(at: tuple[Any, ...], text: str, given: Given) -> Iterator[Change]:
    depth = given.depth
    bare = text.strip() if len(text) < 1_000 or text[:1] in " \t\r\n{[" else text
    if len(text) <= 1_000:
        inside = _QUOTED(bare)
        yield from _scalars(at, inside.group(2).strip() if inside else bare, given.places)
    if bare[:1] in ("{", "["):
        inner = decode(bare, depth)
        if isinstance(inner, dict | list):
            yield Change("double_encoded", "schema", at, inner)
        elif isinstance(escaped := decode_escaped(bare, depth), dict | list):
            yield Change("double_encoded", "schema", at, escaped)
        elif isinstance(inner, Undecodable):
            yield from _from_loose_text(at, bare, depth)


def _scalars(at: tuple[Any, ...], bare: str, places: Places) -> Iterator[Change]:
    # Zeros in front: ten, eight in octal, or a code.
    kind: Kind = "guess" if _ZEROS(bare) else "schema"
    is_whole = _INTEGER(bare) and ("." not in bare or not may_be_fraction(places.at(list(at)), places.refs))
    if is_whole:
        yield Change("scalar_type", kind, at, int(bare.partition(".")[0]))
    elif _NUMBER(bare) and abs(float(bare)) != float("inf"):
        yield Change("scalar_type", kind, at, NumberText(bare) if _AS_JSON(bare) else float(bare))
    if bare.lower() in ("true", "false"):
        yield Change("scalar_type", "schema", at, bare.lower() == "true")
    if bare in ("null", "None"):
        yield Change("scalar_type", "schema", at, None)


def _from_loose_text(at: tuple[Any, ...], text: str, depth: int) -> Iterator[Change]:
    try:
        read = read_loose(text, depth=depth)
    except Unreadable:
        return
    guessed = {"unquoted_value", "missing_comma", "comment"} & {liberty.rule for liberty in read.liberties}
    guessed |= {liberty.rule for liberty in read.liberties if liberty.guess}
    if not text[read.end :].strip() and not (guessed or read.missing or read.mixed):
        yield Change("double_encoded", "schema", at, read.value)


def as_text(value: Any) -> str:
    """A value as a receipt shows it."""
    return "" if value is MISSING or value is GONE else dumps(value)


# -- doing it ---------------------------------------------------------------------------------------------------------


def with_changes(value: Any, made: Iterable[Change]) -> Any:
    """A copy with these changes made; what is not on the way to one is shared."""
    fresh: set[int] = set()
    for change in made:
        value = _put(value, list(change.where), change.new, fresh)
    return value


def _put(value: Any, where: list[Any], new: Any, fresh: set[int]) -> Any:
    if not where:
        return new
    top = here = _own(value, fresh)
    for step in where[:-1]:
        here[step] = _own(here[step], fresh)
        here = here[step]
    if new is GONE:
        here.pop(where[-1], None)
    else:
        here[where[-1]] = new
    return top


def _own(value: Any, fresh: set[int]) -> Any:
    """The value, copied unless it is a copy of ours: those live in the candidate, so their ids are their own."""
    if id(value) in fresh:
        return value
    made = copy.copy(value)
    fresh.add(id(made))
    return made
