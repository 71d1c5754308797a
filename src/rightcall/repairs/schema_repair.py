"""Repair arguments that are valid JSON but do not fit the tool's schema.

    SchemaFault(("days",), "type")  with  {"days": "3"}   ->   scalar_type: /days becomes 3

`possible_changes` yields the changes that may repair one fault, the most likely first. Each round applies the next
change of every faulty place, validates once, and keeps the changes that leave fewer faults in their own place, each
with a receipt. So the number of validations does not depend on the number of faulty places. Changes of kind `guess` are
tried only if the policy allows them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from math import inf, isinf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from rightcall.repairs.loose_json import FloatText, UnreadableJson, decode_escaped, dumps, read_loose
from rightcall.schema.limits import KEYWORDS_PER_STEP, MAX_REPAIR_ERRORS, MAX_REPAIR_STEPS
from rightcall.schema.places import MISSING, Places, allows_fraction, allows_type_of, value_at_place
from rightcall.schema.unknown_names import unknown_arguments
from rightcall.schema.validation import all_errors, compiled_schema, error_path, fits_schema, make_checkable
from rightcall.strict_json import MAX_DEPTH, Undecodable, decode
from rightcall.tools.checks import steps_pointer
from rightcall.types import Json, Repair, Tool

if TYPE_CHECKING:
    from rightcall.repairs.finish import RepairBudget

_WRAPPERS = ("arguments", "parameters", "args", "kwargs", "input", "properties")
_NAMES = ("name", "function", "tool")
_BESIDE = frozenset((*_NAMES, "type", "id"))
_LAST = re.compile(r"__|[./:]").split
_INTEGER = re.compile(r"[+-]?[0-9]{1,400}(?:\.0*)?").fullmatch
_AS_JSON = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+").fullmatch
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?").fullmatch
_SEPARATORS = re.compile(r"[\s_\-./:]++").sub
_IS_NAME = re.compile(r"[\w\-]++").fullmatch
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])").sub
_BETWEEN_WORDS = re.compile(r"(?<=[^\W\d_])[ _\-]++(?=[^\W\d_])").sub
_LISTED = re.compile(r"[,;|\n]|\s-\s").search  # separators of list items in a text
_BRACKETS = frozenset("[]{}()<>\"'")
_ZEROS = re.compile(r"[+-]?0[0-9]").match
_QUOTED = re.compile(r"""(\\?["'])([^"'\\]+)\1""").fullmatch  # quoted once more than JSON requires
_LONGEST_NAME = 256
_MOST_SIMILAR = 32  # unknown names that are compared with a missing one
GONE: Any = object()  # the new value of a member that is removed

Kind = Literal["exact", "schema", "guess"]


class SchemaFault(msgspec.Struct, frozen=True):
    """A place that does not fit the schema.

    `word` is the violated keyword of JSON Schema, or `stranger` for an unknown argument that the schema tolerates.
    `where` is the path of the value; for a missing property (`name`), the path where it belongs.
    """

    where: tuple[Any, ...]
    word: str
    name: str = ""
    kind: Any = None

    @property
    def key(self) -> tuple[Any, ...]:
        """Return what identifies the fault across validations."""
        return self.where, self.word, self.name


class Change(msgspec.Struct, frozen=True):
    """A new value for one place. It is kept if it leaves fewer faults there.

    For an object, `renamed` are the pairs of old and new names and `dropped` the members with null that were removed.
    """

    rule: str
    kind: Kind
    where: tuple[Any, ...]
    new: Any
    renamed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()

    def receipts(self, value: Any) -> list[Repair]:
        """Return the receipts of this change; `value` is the arguments before it."""
        if self.renamed:
            return [self._receipt((*self.where, new), old, new) for old, new in self.renamed]
        if self.dropped:
            return [self._receipt((*self.where, name), "null", "") for name in self.dropped]
        return [self._receipt(self.where, as_text(value_at_place(value, list(self.where))), as_text(self.new))]

    def _receipt(self, where: tuple[Any, ...], before: str, after: str) -> Repair:
        """Return the receipt of this change at the path `where`."""
        return Repair(self.rule, self.kind, steps_pointer(where), before, after)


class PropertyNames(msgspec.Struct, frozen=True):
    """The member names of one object: `unknown_names` are not declared; `folded` pairs some of them with the declared
    name that differs only in case and separators."""

    value: Json
    declared: Json
    unknown_names: list[str]
    folded: list[tuple[str, str]]


class FaultyArguments:
    """The arguments of one round, with the names of their objects computed once. `depth` limits the nesting of JSON
    inside a string."""

    def __init__(self, arguments: Any, places: Places, depth: int) -> None:
        self.arguments, self.places, self.depth = arguments, places, depth
        self._names: dict[tuple[Any, ...], PropertyNames | None] = {}

    def names(self, where: list[Any]) -> PropertyNames | None:
        """Return the member names of the object at the path `where`; None if the value there is no object. Computed
        once for each path."""
        key = tuple(where)
        if key not in self._names:
            value = value_at_place(self.arguments, where)
            self._names[key] = self._property_names(where, value) if isinstance(value, dict) else None
        return self._names[key]

    def _property_names(self, where: list[Any], value: Json) -> PropertyNames:
        """Return the member names of `value`, the object at the path `where`, with those that the schema does not
        declare."""
        declared = self.places.properties(self.places.at(where))
        # Folded names are computed once per schema, which may declare many.
        by_fold = self.places.refs.folded.setdefault(id(declared), {})
        if not by_fold:
            for key in declared:
                by_fold.setdefault(fold(key), []).append(key)
        unknown_names = [key for key in value if key not in declared]
        return PropertyNames(value, declared, unknown_names, _respelled_names(value, unknown_names, by_fold))


def possible_changes(fault: SchemaFault, given: FaultyArguments) -> Iterator[Change]:
    """Yield the changes that may repair a fault, the most likely first; none for a keyword without a repair or a
    missing place. Nothing is applied."""
    named = fault.word in ("required", "stranger")
    where = list(fault.where[:-1] if named else fault.where)
    value = value_at_place(given.arguments, where)
    if value is MISSING:
        return
    if named or fault.word in ("additionalProperties", "unevaluatedProperties"):
        names = given.names(where)
        if names is not None:
            yield from _name_changes(where, names, fault, given.places)
    elif fault.word in ("enum", "const"):
        yield from _option_changes(where, value, fault.kind)
        yield from _type_changes(where, value, given)
    elif fault.word in ("type", "anyOf", "oneOf"):
        yield from _type_changes(where, value, given)


# -- names -------------------------------------------------------------------------------------------------------------


def fold(name: str) -> str:
    """Return the name in lower case and without separators (blanks, `_`, `-`, `.`, `/`, `:`); other characters stay."""
    return _SEPARATORS("", name.casefold())


def fold_option(text: str) -> str:
    """Return a value of an enum in lower case, without blanks, `_` and `-` between letters; a separator next to a digit
    stays (`-5`, `1-2`)."""
    return _BETWEEN_WORDS("", text.strip().casefold())


def _name_changes(where: list[Any], names: PropertyNames, fault: SchemaFault, places: Places) -> Iterator[Change]:
    """Yield changes of the object at the path `where` that has a missing or an unknown name: unwrap, rename, fill the
    default, drop nulls."""
    if not where:
        yield from _unwrap_changes(names, sure=fault.word == "required")
    # Unknown names that differ from a declared one only in case and separators: all of them, then each alone.
    if names.folded:
        yield _rename("folded_name", "schema", where, names, names.folded)
    for pair in names.folded[:16] if len(names.folded) > 1 else ():
        yield _rename("folded_name", "schema", where, names, [pair])
    if fault.word == "required":
        default = places.default(list(fault.where))
        if default is not MISSING:
            # An unknown argument with a similar name may be the missing one.
            others = [name[:_LONGEST_NAME] for name in names.unknown_names[:_MOST_SIMILAR]]
            misspelled = get_close_matches(fault.name[:_LONGEST_NAME], others)
            yield Change("default", "guess" if misspelled else "schema", fault.where, default)
    elif fault.word != "stranger":
        unexpected = getattr(fault.kind, "unexpected", ())
        yield from _dropped_null_changes(where, names, unexpected, places)


def _dropped_null_changes(
    where: list[Any], names: PropertyNames, unexpected: Iterable[str], places: Places
) -> Iterator[Change]:
    """Yield the removal of the members in `unexpected` with null, if there are any; a guess if one may be a misspelled
    name that allows null."""
    value = names.value
    nulls = dict.fromkeys([name for name in unexpected if name in value and value[name] is None])
    if nulls:
        kept = {key: item for key, item in value.items() if key not in nulls}
        # An unknown name may be the misspelling of one that allows null.
        meant = any(
            allows_type_of(names.declared[key], None, places.refs) for key in names.declared if key not in value
        )
        yield Change("null_dropped", "guess" if meant else "schema", tuple(where), kept, dropped=tuple(nulls))


def _respelled_names(value: Json, unknown_names: list[str], declared: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Return pairs of an unknown name and the one unused declared name that differs only in case and separators, where
    that is unambiguous. `declared`: the declared names by folded name."""
    wanted: dict[str, list[str]] = {}
    for key in unknown_names:
        free = [name for name in declared.get(fold(key), ()) if name not in value] if len(key) <= _LONGEST_NAME else ()
        if len(free) == 1:
            wanted.setdefault(free[0], []).append(key)
    return [(old[0], new) for new, old in wanted.items() if len(old) == 1]


def _rename(rule: str, kind: Kind, where: list[Any], names: PropertyNames, pairs: list[tuple[str, str]]) -> Change:
    """Return the change that renames members of the object at `where`, by pairs of old and new names, and keeps their
    order."""
    new_names = dict(pairs)
    made = {new_names.get(key, key): item for key, item in names.value.items()}
    return Change(rule, kind, tuple(where), made, renamed=tuple(pairs))


def _unwrap_changes(names: PropertyNames, *, sure: bool) -> Iterator[Change]:
    """Yield the change that moves arguments out of an object inside the arguments, `{"arguments": {...}}`, if there is
    one.

    Next to declared arguments, or if no required one is missing (not `sure`), only if all its members are declared.
    """
    beside = {key: item for key, item in names.value.items() if key in names.declared}
    wrapper = _wrapper({key: names.value[key] for key in names.unknown_names}, names.declared)
    if wrapper is not None:
        inner = names.value[wrapper]
        if (sure and not beside) or (inner and inner.keys() <= names.declared.keys() - beside.keys()):
            yield Change("unwrapped", "schema", (), {**beside, **inner})


def _wrapper(value: Json, declared: Json) -> str | None:
    """Return the one key that holds an object of arguments, if all other keys of `value` belong to a call (name, id,
    type) and it is not `declared`; else None."""
    if len(value) > len(_WRAPPERS) + len(_BESIDE):
        return None
    wrapped = [key for key in _WRAPPERS if key in value and key not in declared and isinstance(value[key], dict)]
    return wrapped[0] if len(wrapped) == 1 and set(value) <= {wrapped[0], *_BESIDE} else None


def call_inside(value: Json, name: str, declared: Any) -> tuple[str, Json] | None:
    """Return name and arguments of the whole call that was sent in place of the arguments; None if it is not one.

    `name` and `declared` are the tool's name and properties. A name that means the tool itself is returned as `name`.
    """
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
    """Return `value` with the objects of arguments that it holds as JSON text, under keys such as `arguments` that are
    not `declared`."""
    texts = {key: value[key] for key in _WRAPPERS if isinstance(value.get(key), str) and key not in declared}
    objects = {key: decode(text, MAX_DEPTH) for key, text in texts.items() if text.lstrip()[:1] == "{"}
    return {**value, **{key: made for key, made in objects.items() if isinstance(made, dict)}} if objects else value


# -- values ------------------------------------------------------------------------------------------------------------


def _option_changes(where: list[Any], value: Any, kind: Any) -> Iterator[Change]:
    """Yield the option of an enum or const that a text means: another case or separator, or a spelled number. `kind`:
    the validator's error with the options."""
    options = kind.options if kind.name == "enum" else [kind.expected_value]
    if isinstance(value, str) and len(value) <= _LONGEST_NAME:
        folded = fold_option(value)
        same = [option for option in options if isinstance(option, str) and fold_option(option) == folded]
        if folded and len(same) == 1:  # white space alone matches no option
            yield Change("enum_case", "schema", tuple(where), same[0])
        bare = value.strip().lower()
        spelled = [option for option in options if not isinstance(option, str) and as_text(option) == bare]
        if len(spelled) == 1:
            yield Change("scalar_type", "schema", tuple(where), spelled[0])


def _type_changes(where: list[Any], value: Any, given: FaultyArguments) -> Iterator[Change]:
    """Yield changes of the value at the path `where` to other types: text to number or JSON, scalar to text, one value
    to a list, a list of one to its item."""
    at = tuple(where)
    if value is None:
        yield from _null_changes(at, given.places)
    elif isinstance(value, str):
        yield from _string_changes(at, value, given)
    elif isinstance(value, bool | int | float) and not _is_infinite(value):
        # A boolean may have been written as `true` or as `True`.
        yield Change("scalar_type", "guess" if isinstance(value, bool) else "schema", at, as_text(value))
    if value is not None and not isinstance(value, list):
        yield Change("wrapped_in_array", _kind_of_wrapping(at, value), at, [value])
    elif isinstance(value, list) and len(value) == 1:
        yield Change("array_of_one", "guess", at, value[0])


def _kind_of_wrapping(at: tuple[Any, ...], value: Any) -> Kind:
    """Return "schema" if a value is certainly the one item of a missing list; "guess" if it may be an empty list, a
    list written as text, or an item of the list around it (`at`: its path)."""
    is_item = bool(at) and isinstance(at[-1], int)
    is_list = isinstance(value, str) and (
        bool(_LISTED(value)) or not _BRACKETS.isdisjoint(value.strip()[:: max(1, len(value.strip()) - 1)])
    )
    is_empty = value in ({}, "")
    return "guess" if is_item or is_list or is_empty else "schema"


def _is_infinite(value: float) -> bool:
    """Return whether a number is an infinite float: it overflowed, so that its text is lost."""
    return type(value) is float and isinf(value)


def _null_changes(at: tuple[Any, ...], places: Places) -> Iterator[Change]:
    """Yield changes of null at the path `at`: its default, then the removal of the member; a guess if it may be an item
    of a list."""
    default = places.default(list(at))
    if default is not MISSING:
        yield Change("default", "schema", at, default)
    if at and isinstance(at[-1], str):
        items = places.inner(places.at(list(at)), 0)
        is_item = items is not None and allows_type_of(items, None, places.refs)  # of a list whose brackets were lost
        yield Change("null_dropped", "guess" if is_item else "schema", at, GONE)


def _string_changes(at: tuple[Any, ...], text: str, given: FaultyArguments) -> Iterator[Change]:
    """Yield changes of a text at the path `at` to what it contains: a number, a boolean, null, or an object or list in
    JSON."""
    depth = given.depth
    bare = text.strip() if len(text) < 1_000 or text[:1] in " \t\r\n{[" else text
    if len(text) <= 1_000:
        inside = _QUOTED(bare)
        yield from _scalar_changes(at, inside.group(2).strip() if inside else bare, given.places)
    if bare[:1] in ("{", "["):
        inner = decode(bare, depth)
        if isinstance(inner, dict | list):
            yield Change("double_encoded", "schema", at, inner)
        elif isinstance(escaped := decode_escaped(bare, depth), dict | list):
            yield Change("double_encoded", "schema", at, escaped)
        elif isinstance(inner, Undecodable):
            yield from _loose_text_changes(at, bare, depth)


def _scalar_changes(at: tuple[Any, ...], bare: str, places: Places) -> Iterator[Change]:
    """Yield changes of the text `bare` at the path `at` to the number, boolean or null that it spells; a number with
    leading zeros is a guess."""
    # Leading zeros: decimal, octal, or a code.
    kind: Kind = "guess" if _ZEROS(bare) else "schema"
    is_whole = _INTEGER(bare) and ("." not in bare or not allows_fraction(places.at(list(at)), places.refs))
    if is_whole:
        yield Change("scalar_type", kind, at, int(bare.partition(".")[0]))
    elif _NUMBER(bare) and abs(float(bare)) != inf:
        yield Change("scalar_type", kind, at, FloatText(bare) if _AS_JSON(bare) else float(bare))
    if bare.lower() in ("true", "false"):
        yield Change("scalar_type", "schema", at, bare.lower() == "true")
    if bare in ("null", "None"):
        yield Change("scalar_type", "schema", at, None)


def _loose_text_changes(at: tuple[Any, ...], text: str, depth: int) -> Iterator[Change]:
    """Yield the change of a text of loose JSON at the path `at` to the object or list in it, unless parsing it takes a
    guess."""
    try:
        read = read_loose(text, depth=depth)
    except UnreadableJson:
        return
    guessed = {"unquoted_value", "missing_comma", "comment"} & {deviation.rule for deviation in read.deviations}
    guessed |= {deviation.rule for deviation in read.deviations if deviation.guess}
    if not text[read.end :].strip() and not (guessed or read.missing_closers or read.mixed):
        yield Change("double_encoded", "schema", at, read.value)


def as_text(value: Any) -> str:
    """Return the JSON of a value for a receipt; "" for a missing or removed one."""
    return "" if value is MISSING or value is GONE else dumps(value)


# -- application -------------------------------------------------------------------------------------------------------


def with_changes(value: Any, made: Iterable[Change]) -> Any:
    """Return a copy of a value with the changes applied. Parts that no change touches are shared with the original."""
    fresh: set[int] = set()
    for change in made:
        value = _set_value(value, list(change.where), change.new, fresh)
    return value


def _set_value(value: Any, where: list[Any], new: Any, fresh: set[int]) -> Any:
    """Return `value` with `new` at the path `where`, or without that member if it is `GONE`. Containers on the path are
    copied once, and `fresh` collects the ids of the copies."""
    if not where:
        return new
    top = here = _copy_once(value, fresh)
    for step in where[:-1]:
        here[step] = _copy_once(here[step], fresh)
        here = here[step]
    if new is GONE:
        here.pop(where[-1], None)
    else:
        here[where[-1]] = new
    return top


def _copy_once(value: Any, fresh: set[int]) -> Any:
    """Return a shallow copy of a container, or the container itself if it is a copy already. `fresh` has the ids of
    copies, which the caller keeps alive."""
    if id(value) in fresh:
        return value
    made = copy.copy(value)
    fresh.add(id(made))
    return made


_ROUNDS = 64
_MOST_RENAMED = 1_000
_DEEPEST = 8
_OF_PLACES = frozenset(("scalar_type", "wrapped_in_array", "null_dropped"))

Where = tuple[Any, ...]


class _TooManyFaults(Exception):
    """The validator stopped before it found all errors."""


class RepairOptions(NamedTuple):
    """What the repair of one call may do.

    - `guesses`: changes of kind `guess` are allowed. `depth`: the limit of nesting of JSON inside a string.
    - `budget`: shared by all calls of a reply.
    - `sure_brackets`: without it a value of the wrong type may belong to another object, so types are not repaired.
    """

    guesses: bool
    depth: int
    budget: RepairBudget
    sure_brackets: bool


def repair_by_schema(
    tool: Tool, arguments: dict[str, Any], options: RepairOptions
) -> tuple[dict[str, Any], list[Repair]]:
    """Return the arguments repaired by the tool's schema, with the receipts; the same object and no receipts if nothing
    helped, the faults are too many, or the budget of the reply is spent."""
    if options.budget.left <= 0:
        return arguments, []
    repair = _SchemaRepair(tool, Places(tool.parameters), arguments, options)
    try:
        repair.run()
    except _TooManyFaults:
        return arguments, []
    return repair.value, repair.receipts


def rename_aliases(tool: Tool, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[Repair]]:
    """Rename the tool's declared aliases to their arguments, unless that argument has a value other than null and "" or
    the alias is itself an argument. Return the arguments, a new object if any was renamed, and receipts."""
    receipts: list[Repair] = []
    declared = tool.parameters.get("properties") if tool.aliases else None
    declared = declared if isinstance(declared, dict) else {}
    for alias, name in tool.aliases.items():
        if alias in arguments and arguments.get(name) in (None, "") and alias not in declared:
            arguments = {name if key == alias else key: v for key, v in arguments.items() if key != name}
            receipts.append(Repair("alias", "exact", steps_pointer([name]), alias, name))
    return arguments, receipts


def rename_near_name(tool: Tool, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[Repair]]:
    """Rename the only undeclared argument to the only missing required one if one name has all words of the other.

    `filePath` becomes `path`, unless another absent argument has such a name or the renamed arguments do not fit the
    schema. Return new arguments and a receipt, or the same object and no receipt. Models write the names of other
    agents' tools: openclaw/openclaw#52164, cortexkit/aft#148.
    """
    declared = Places(tool.parameters).properties(tool.parameters)
    undeclared = [key for key in arguments if key not in declared]
    missing = [name for name in tool.parameters.get("required", ()) if name not in arguments]
    if len(undeclared) != 1 or len(missing) != 1:
        return arguments, []
    old, new = undeclared[0], missing[0]
    near = [name for name in declared if name not in arguments and _is_near(old, name)]
    renamed = {new if key == old else key: value for key, value in arguments.items()}
    if near != [new] or not fits_schema(tool, renamed):
        return arguments, []
    return renamed, [Repair("near_name", "guess", steps_pointer([new]), old, new)]


def _is_near(name: str, other: str) -> bool:
    """Return whether one of two names has all words of the other: `filePath` or `file_path` those of `path`."""
    if not _IS_NAME(name):  # the remainder of two damaged members: "days, path"
        return False
    words, others = [set(_SEPARATORS(" ", _HUMPS(" ", each)).casefold().split()) for each in (name, other)]
    return bool(words and others) and (words <= others or words >= others)


class _SchemaRepair:
    """The repair of one call's arguments: the current `value`, its remaining faults (`left`) and the receipts."""

    def __init__(self, tool: Tool, places: Places, value: dict[str, Any], options: RepairOptions) -> None:
        self.tool, self.places, self.options = tool, places, options
        self.value = value
        self.receipts: list[Repair] = []
        self.left: list[SchemaFault] = []
        self._attempts: dict[tuple[Any, ...], int] = {}
        self._about: dict[Where, SchemaFault] = {}  # the fault that the last change of a place repairs
        self._examined = 0

    def run(self, *, ahead: bool = True) -> None:
        """Repair `value` in rounds until nothing helps, with receipts. If no fewer faults are left, restore the
        original without receipts. Raises `_TooManyFaults`.

        `ahead`: at the end also try unknown names that fit once their values are repaired.
        """
        before = self.value
        self.left = self._faults(before)
        most = _count_faults(self.left)
        for _ in range(_ROUNDS):
            may_go_on = self.left and self._examined < MAX_REPAIR_STEPS and self.options.budget.left > 0
            picked = self._next_changes() if may_go_on else {}
            if not picked:
                break
            self._apply_if_better(picked)
        if ahead:
            self._rename_then_repair()
        if self.left and _count_faults(self.left) >= most:
            self.value, self.receipts = before, []

    def _faults(self, value: Any) -> list[SchemaFault]:
        """Validate a value and return its errors and the unknown arguments that the schema does not explicitly allow;
        the cost is taken from the budget. Raises `_TooManyFaults` if there are too many errors."""
        wrong = all_errors(self.tool, make_checkable(value), MAX_REPAIR_ERRORS)
        if wrong is None:
            raise _TooManyFaults
        found = [_to_fault(error) for error in wrong]
        found += [SchemaFault(tuple(where), "stranger", where[-1]) for where in unknown_arguments(self.tool, value)]
        count = 1 + len(found) + sum(map(_count_inner_errors, wrong))
        self._examined += count
        self.options.budget.left -= count + compiled_schema(self.tool).size // KEYWORDS_PER_STEP
        return found

    def _next_changes(self) -> dict[Where, Change]:
        """Return the next untried change of every faulty place, by place, and count it as tried. If one place is inside
        another, only that of the outer is returned. Empty if nothing is left to try."""
        picked: dict[Where, Change] = {}
        turns: dict[Where, int] = {}
        given = FaultyArguments(self.value, self.places, self.options.depth)
        for fault in sorted(self.left, key=lambda fault: len(fault.where)):
            if _enclosing_place(fault.where, picked) is None:
                turn, change = self._next_change(fault, given)
                if change is not None and change.where not in picked:
                    picked[change.where], turns[change.where] = change, turn
                    self._about[change.where] = fault
        picked = _outermost(picked)
        for where in picked:  # places inside another one are tried in a later round
            self._attempts[self._about[where].key] = turns[where]
        return picked

    def _next_change(self, fault: SchemaFault, given: FaultyArguments) -> tuple[int, Change | None]:
        """Return how many changes for a fault have been tried, the next one and skipped ones included, and the next
        change that the options allow, or None."""
        turn = self._attempts.get(fault.key, 0)
        for change in islice(possible_changes(fault, given), turn, None):
            turn += 1
            if self.options.guesses or (
                change.kind != "guess" and (self.options.sure_brackets or change.rule not in _OF_PLACES)
            ):
                return turn, change
        return turn, None

    def _may_be_item(self, change: Change) -> bool:
        """Return whether a string that was parsed as a list may instead be the one item of a list."""
        if change.rule != "double_encoded" or not isinstance(change.new, list):
            return False
        items = self.places.inner(self.places.at(list(change.where)), 0)
        return allows_type_of(items, "", self.places.refs)

    def _apply_if_better(self, picked: dict[Where, Change]) -> None:
        """Apply the changes to a copy and validate it; accept those that leave fewer faults in their place, if there
        are any."""
        candidate = with_changes(self.value, picked.values())
        left = self._faults(candidate) if isinstance(candidate, dict) else self.left
        good = self._improving(picked, left)
        if good and len(good) < len(picked):
            candidate = with_changes(self.value, good.values())
            left = self._faults(candidate)
        if good:
            self._accept(good.values(), candidate, left)

    def _improving(self, picked: dict[Where, Change], left: list[SchemaFault]) -> dict[Where, Change]:
        """Return the changes whose place has fewer faults in `left` than before. Unless guesses are allowed, a list
        from a string that may be the one item of a list must leave no fault."""
        before, after = _fault_weights(self.left, picked), _fault_weights(left, picked)
        good = {where: change for where, change in picked.items() if after[where] < before[where]}
        if self.options.guesses:
            return good
        # A list from a string must fit without further repair: the string may be the one item of a list.
        return {where: each for where, each in good.items() if not (self._may_be_item(each) and any(after[where]))}

    def _accept(self, made: Iterable[Change], value: dict[str, Any], left: list[SchemaFault]) -> None:
        """Set the new value and its remaining faults, and add the receipts of the changes that led to it."""
        for change in made:
            self.receipts += change.receipts(self.value)
        self.value, self.left = value, left

    def _rename_then_repair(self) -> None:
        """Rename unknown names whose values do not fit the new name, and repair the values; accept the result if it
        leaves fewer faults and no value was dropped or replaced by a default."""
        unknown = [fault for fault in self.left if fault.word == "stranger"]
        given = FaultyArguments(self.value, self.places, self.options.depth)
        changes = [next(possible_changes(fault, given), None) for fault in unknown[:_MOST_RENAMED]]
        made = _outermost({change.where: change for change in changes if change is not None})
        if not made:
            return
        renamed = with_changes(self.value, made.values())
        further = _SchemaRepair(self.tool, self.places, renamed, self.options)
        further.run(ahead=False)
        lost = any(receipt.rule in ("null_dropped", "default") for receipt in further.receipts)
        if not lost and _fault_weight(further.left) < _fault_weight(self.left):
            self._accept(made.values(), further.value, further.left)
            self.receipts += further.receipts


def _count_faults(faults: list[SchemaFault]) -> tuple[int, int]:
    """Return the number of errors, and separately of unknown names that the schema tolerates."""
    unknown = sum([fault.word == "stranger" for fault in faults])
    return len(faults) - unknown, unknown


def _to_fault(error: Any) -> SchemaFault:
    """Return the fault for an error of the validator."""
    names = [error.kind.property] if error.kind.name == "required" else []
    return SchemaFault((*error_path(error), *names), error.kind.name, "".join(names), error.kind)


def _count_inner_errors(error: Any) -> int:
    """Return the number of errors of the alternatives inside an error of `anyOf` or `oneOf`; 0 for any other error."""
    return sum(map(len, error.kind.context)) if error.kind.name in ("anyOf", "oneOf") else 0


def _outermost(picked: dict[Where, Change]) -> dict[Where, Change]:
    """Return the changes by place without those of places inside another changed place."""
    return {
        where: change for where, change in picked.items() if not where or _enclosing_place(where[:-1], picked) is None
    }


def _enclosing_place(where: Where, picked: dict[Where, Change]) -> Where | None:
    """Return the outermost changed place that is `where` or contains it; None if there is none."""
    return next((where[:size] for size in range(len(where) + 1) if where[:size] in picked), None)


def _fault_weights(faults: Iterable[SchemaFault], picked: dict[Where, Change]) -> dict[Where, list[int]]:
    """Return, for each changed place, the faults in it counted by weight (see `_fault_weight`)."""
    inside: dict[Where, list[SchemaFault]] = {where: [] for where in picked}
    for fault in faults:
        where = _enclosing_place(fault.where, picked)
        if where is not None:
            inside[where].append(fault)
    return {where: _fault_weight(found) for where, found in inside.items()}


def _fault_weight(faults: Iterable[SchemaFault]) -> list[int]:
    """Return the faults counted by weight, heaviest first; lists are compared. A fault nearer the root outweighs any
    number of deeper ones, and every fault outweighs a tolerated unknown name."""
    counts = [0] * (2 * _DEEPEST + 2)
    for fault in faults:
        depth = min(len(fault.where), _DEEPEST)
        counts[depth + _DEEPEST + 1 if fault.word == "stranger" else depth] += 1
    return counts
