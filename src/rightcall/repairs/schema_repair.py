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
from math import inf
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
_QUOTED = re.compile(r"""(\\?["'])([^"'\\]+)\1""").fullmatch  # quoted once more than JSON requires (discourse-ai#613)
_LONGEST_NAME = 256
_MOST_SIMILAR = 32  # unknown names that are compared with a missing one
REMOVED: Any = object()  # the new value of a member that is removed

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
        """Return place, keyword and name: equal for the same fault in two validations."""
        return self.where, self.word, self.name


class Change(msgspec.Struct, frozen=True):
    """A new value for the place at the path `where`; `REMOVED` stands for no value. It is kept if it leaves fewer
    faults there.

    For an object, `renamed` are the pairs of old and new names and `dropped` the members with null that were removed.
    """

    rule: str
    kind: Kind
    where: tuple[Any, ...]
    new: Any
    renamed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()

    def receipts(self, value: Any) -> list[Repair]:
        """Return the receipts of this change: one for each renamed or removed member, else one for the place. `value`:
        the whole arguments before the change."""
        if self.renamed:
            return [self._receipt((*self.where, new), old, new) for old, new in self.renamed]
        if self.dropped:
            return [self._receipt((*self.where, name), "null", "") for name in self.dropped]
        return [
            self._receipt(self.where, receipt_text(value_at_place(value, list(self.where))), receipt_text(self.new))
        ]

    def _receipt(self, where: tuple[Any, ...], before: str, after: str) -> Repair:
        """Return a receipt with the rule and kind of this change, for the path `where` and these texts of the value."""
        return Repair(self.rule, self.kind, steps_pointer(where), before, after)


class ComparedNames(msgspec.Struct, frozen=True):
    """The member names of one object, `value`, compared with the properties that the schema declares there
    (`declared`).

    `unknown_names`: its members that are not declared. `folded`: pairs of such a name and the one declared, unused name
    that differs from it only in case and separators.
    """

    value: Json
    declared: Json
    unknown_names: list[str]
    folded: list[tuple[str, str]]


class FaultyArguments:
    """The arguments of one call in one round of repair; the names of each object are compared with the schema only
    once. `places`: the schemas of places. `depth`: the limit of nesting of JSON inside a string."""

    def __init__(self, arguments: Any, places: Places, depth: int) -> None:
        self.arguments, self.places, self.depth = arguments, places, depth
        self._names: dict[tuple[Any, ...], ComparedNames | None] = {}

    def compare_names(self, where: list[Any]) -> ComparedNames | None:
        """Return the member names of the object at the path `where`, compared with those that the schema declares
        there; None if the value there is missing or no object. Computed once for each path."""
        key = tuple(where)
        if key not in self._names:
            value = value_at_place(self.arguments, where)
            self._names[key] = self._compare_names_of(where, value) if isinstance(value, dict) else None
        return self._names[key]

    def _compare_names_of(self, where: list[Any], value: Json) -> ComparedNames:
        """Return the member names of `value`, the object at the path `where`, compared with those that the schema
        declares there. Not cached."""
        declared = self.places.properties(self.places.at(where))
        # Folded names are computed once per schema, which may declare many.
        by_fold = self.places.refs.folded.setdefault(id(declared), {})
        if not by_fold:
            for key in declared:
                by_fold.setdefault(fold_name(key), []).append(key)
        unknown_names = [key for key in value if key not in declared]
        return ComparedNames(value, declared, unknown_names, _respelled_names(value, unknown_names, by_fold))


def possible_changes(fault: SchemaFault, given: FaultyArguments) -> Iterator[Change]:
    """Yield the changes that may repair one fault of the arguments, the most likely first; none for a keyword without a
    repair or a place that is missing. Nothing is applied, and nothing is checked against the schema."""
    named = fault.word in ("required", "stranger")
    where = list(fault.where[:-1] if named else fault.where)
    value = value_at_place(given.arguments, where)
    if value is MISSING:
        return
    if named or fault.word in ("additionalProperties", "unevaluatedProperties"):
        names = given.compare_names(where)
        if names is not None:
            yield from _name_changes(where, names, fault, given.places)
    elif fault.word in ("enum", "const"):
        yield from _option_changes(where, value, fault.kind)
        yield from _type_changes(where, value, given)
    elif fault.word in ("type", "anyOf", "oneOf"):
        yield from _type_changes(where, value, given)


# -- names -------------------------------------------------------------------------------------------------------------


def fold_name(name: str) -> str:
    """Return the name in lower case and without separators (white space, `_`, `-`, `.`, `/`, `:`), to compare
    spellings: `Get-Weather` and `get_weather` are both `getweather`."""
    return _SEPARATORS("", name.casefold())


def fold_option(text: str) -> str:
    """Return a text value of an enum, for comparison: stripped, in lower case, and without blanks, `_` and `-` between
    two letters. A separator next to a digit stays (`-5`, `1-2`)."""
    return _BETWEEN_WORDS("", text.strip().casefold())


def _name_changes(where: list[Any], names: ComparedNames, fault: SchemaFault, places: Places) -> Iterator[Change]:
    """Yield changes of the object at the path `where` that lacks a name or has an unknown one: unwrap (at the top
    only), rename, then fill in a default for a missing member or drop nulls under forbidden names. `names`: those of
    this object."""
    if not where:
        yield from _unwrap_changes(names, sure=fault.word == "required")
    # Unknown names that differ from a declared one only in case and separators: all of them, then each alone.
    if names.folded:
        yield _rename_change("folded_name", "schema", where, names, names.folded)
    for pair in names.folded[:16] if len(names.folded) > 1 else ():
        yield _rename_change("folded_name", "schema", where, names, [pair])
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
    where: list[Any], names: ComparedNames, unexpected: Iterable[str], places: Places
) -> Iterator[Change]:
    """Yield the change that removes from the object at the path `where` all members named in `unexpected` whose value
    is null; nothing if there are none. It is a guess if an absent declared name allows null: one may be its
    misspelling."""
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
    """Return pairs of an unknown name and the one declared name, absent from the object `value`, that differs from it
    only in case and separators; only unambiguous pairs, and no very long names. `declared`: the declared names by
    folded name."""
    wanted: dict[str, list[str]] = {}
    for key in unknown_names:
        free = (
            [name for name in declared.get(fold_name(key), ()) if name not in value]
            if len(key) <= _LONGEST_NAME
            else ()
        )
        if len(free) == 1:
            wanted.setdefault(free[0], []).append(key)
    return [(old[0], new) for new, old in wanted.items() if len(old) == 1]


def _rename_change(
    rule: str, kind: Kind, where: list[Any], names: ComparedNames, pairs: list[tuple[str, str]]
) -> Change:
    """Return the change that renames members of the object at the path `where`, whose names are `names`, and keeps
    their order. `pairs`: old and new names."""
    new_names = dict(pairs)
    made = {new_names.get(key, key): item for key, item in names.value.items()}
    return Change(rule, kind, tuple(where), made, renamed=tuple(pairs))


def _unwrap_changes(names: ComparedNames, *, sure: bool) -> Iterator[Change]:
    """Yield the change that moves the arguments out of an object inside them, `{"arguments": {...}}`, to the top;
    nothing if no such object is there. `names`: those of the top.

    If a required argument is missing (`sure`) and no declared argument is next to the object, it may have any members.
    Otherwise it must have some, all declared, and none that is also next to it.
    """
    beside = {key: item for key, item in names.value.items() if key in names.declared}
    wrapper = _wrapper_key({key: names.value[key] for key in names.unknown_names}, names.declared)
    if wrapper is not None:
        inner = names.value[wrapper]
        if (sure and not beside) or (inner and inner.keys() <= names.declared.keys() - beside.keys()):
            yield Change("unwrapped", "schema", (), {**beside, **inner})


def _wrapper_key(value: Json, declared: Json) -> str | None:
    """Return the only key, such as `arguments`, under which `value` has an object of arguments; it must not be
    `declared`, and all other keys must be those of a call (name, id, type). None otherwise."""
    if len(value) > len(_WRAPPERS) + len(_BESIDE):
        return None
    wrapped = [key for key in _WRAPPERS if key in value and key not in declared and isinstance(value[key], dict)]
    return wrapped[0] if len(wrapped) == 1 and set(value) <= {wrapped[0], *_BESIDE} else None


def find_call_inside(value: Json, name: str, declared: Any) -> tuple[str, Json] | None:
    """Return tool name and arguments of the whole call that was sent in place of the arguments, `value`; None if it is
    no call: no name, or not exactly one object of arguments, under undeclared keys.

    `name` and `declared`: name and properties of the tool that was called. A name in the call that means this tool,
    with another namespace or spelling, is returned as `name`.
    """
    declared = declared if isinstance(declared, dict) else {}
    inner = value.get("function")
    if isinstance(inner, dict) and "function" not in declared and set(value) <= _BESIDE:
        value, declared = inner, {}
    wrapper = _wrapper_key(_decode_wrapped_objects(value, declared), declared)
    said = [value[key] for key in _NAMES if isinstance(value.get(key), str) and key not in declared]
    if wrapper is None or not said:
        return None
    others = [each for each in said if fold_name(_LAST(each)[-1]) != fold_name(_LAST(name)[-1])]
    return next(iter(others), name), _decode_wrapped_objects(value, declared)[wrapper]


def _decode_wrapped_objects(value: Json, declared: Json) -> Json:
    """Return a copy of `value` in which JSON text under a wrapper key, such as `arguments`, is replaced by the object
    that it contains. Keys in `declared` and text that is no JSON object are unchanged. `value` itself if no such text
    begins with `{`."""
    texts = {key: value[key] for key in _WRAPPERS if isinstance(value.get(key), str) and key not in declared}
    objects = {key: decode(text, MAX_DEPTH) for key, text in texts.items() if text.lstrip()[:1] == "{"}
    return {**value, **{key: made for key, made in objects.items() if isinstance(made, dict)}} if objects else value


# -- values ------------------------------------------------------------------------------------------------------------


def _option_changes(where: list[Any], value: Any, kind: Any) -> Iterator[Change]:
    """Yield the change of a text at the path `where` to the one option of an enum or const that it means: in another
    case or with other separators, then a number or constant in words (`"3"` for 3). Nothing for another value, an
    ambiguous or a long one. `kind`: the validator's error, which has the options."""
    options = kind.options if kind.name == "enum" else [kind.expected_value]
    if isinstance(value, str) and len(value) <= _LONGEST_NAME:
        folded = fold_option(value)
        same = [option for option in options if isinstance(option, str) and fold_option(option) == folded]
        if folded and len(same) == 1:  # white space alone matches no option
            yield Change("enum_case", "schema", tuple(where), same[0])
        bare = value.strip().lower()
        spelled = [option for option in options if not isinstance(option, str) and receipt_text(option) == bare]
        if len(spelled) == 1:
            yield Change("scalar_type", "schema", tuple(where), spelled[0])


def _type_changes(where: list[Any], value: Any, given: FaultyArguments) -> Iterator[Change]:
    """Yield changes of the value at the path `where` to other types, whether they fit the schema or not: null to its
    default or removed, text to what it contains, a scalar to text, one value to a list, a list of one to its item."""
    at = tuple(where)
    if value is None:
        yield from _null_changes(at, given.places)
    elif isinstance(value, str):
        yield from _string_changes(at, value, given)
    elif isinstance(value, bool | int | float) and value not in (inf, -inf):  # an infinite one lost its text
        # A boolean may have been written as `true` or as `True`.
        yield Change("scalar_type", "guess" if isinstance(value, bool) else "schema", at, receipt_text(value))
    if value is not None and not isinstance(value, list):
        yield Change("wrapped_in_array", _kind_of_wrapping(at, value), at, [value])
    elif isinstance(value, list) and len(value) == 1:
        yield Change("array_of_one", "guess", at, value[0])


def _kind_of_wrapping(at: tuple[Any, ...], value: Any) -> Kind:
    """Return the kind of the repair that makes a list of the value at the path `at`: "guess" if the value may be an
    empty list, a list written as text, or an item of the list around it; otherwise "schema"."""
    is_item = bool(at) and isinstance(at[-1], int)
    is_list = isinstance(value, str) and (
        bool(_LISTED(value)) or not _BRACKETS.isdisjoint(value.strip()[:: max(1, len(value.strip()) - 1)])
    )
    is_empty = value in ({}, "")
    return "guess" if is_item or is_list or is_empty else "schema"


def _null_changes(at: tuple[Any, ...], places: Places) -> Iterator[Change]:
    """Yield changes of the null at the path `at`: to its declared default, then the removal of the member, unless it is
    an item or the top. The removal is a guess if the schema declares a list there that may have null items."""
    default = places.default(list(at))
    if default is not MISSING:
        yield Change("default", "schema", at, default)
    if at and isinstance(at[-1], str):
        items = places.inner(places.at(list(at)), 0)
        is_item = items is not None and allows_type_of(items, None, places.refs)  # of a list whose brackets were lost
        yield Change("null_dropped", "guess" if is_item else "schema", at, REMOVED)


def _string_changes(at: tuple[Any, ...], text: str, given: FaultyArguments) -> Iterator[Change]:
    """Yield changes of the string `text` at the path `at` to what it contains: a number, a boolean, null, or an object
    or list in JSON. Nothing if it contains none of these."""
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
    """Yield changes of the value at the path `at` to the number, boolean or null that its text `bare` (without white
    space and extra quotes around it) spells; nothing if it spells none. A number with leading zeros is a guess."""
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
    """Yield the change of a string at the path `at` to the object or list that its `text` contains in loose JSON
    (ml-explore/mlx-lm#1004); nothing if it cannot be parsed, text follows it, brackets are missing, or parsing takes
    a guess."""
    try:
        read = read_loose(text, depth=depth)
    except UnreadableJson:
        return
    guessed = {"unquoted_value", "missing_comma", "comment"} & {deviation.rule for deviation in read.deviations}
    guessed |= {deviation.rule for deviation in read.deviations if deviation.guess}
    if not text[read.end :].strip() and not (guessed or read.missing_closers or read.mixed):
        yield Change("double_encoded", "schema", at, read.value)


def receipt_text(value: Any) -> str:
    """Return the JSON of a value for a receipt; "" for `MISSING` and `REMOVED`."""
    return "" if value is MISSING or value is REMOVED else dumps(value)


# -- application -------------------------------------------------------------------------------------------------------


def apply_changes(value: Any, made: Iterable[Change]) -> Any:
    """Return a copy of `value`, the arguments, with the changes applied in order. Parts that no change touches are
    shared with the original, which is not changed."""
    fresh: set[int] = set()
    for change in made:
        value = _replace_at(value, list(change.where), change.new, fresh)
    return value


def _replace_at(value: Any, where: list[Any], new: Any, fresh: set[int]) -> Any:
    """Return `value` with `new` at the path `where`, or without that member if `new` is `REMOVED`. Containers on the
    path are copied, unless they are copies already: `fresh` has the ids of all copies, and new ones are added."""
    if not where:
        return new
    top = here = _copy_once(value, fresh)
    for step in where[:-1]:
        here[step] = _copy_once(here[step], fresh)
        here = here[step]
    if new is REMOVED:
        here.pop(where[-1], None)
    else:
        here[where[-1]] = new
    return top


def _copy_once(value: Any, fresh: set[int]) -> Any:
    """Return a shallow copy of a container and add its id to `fresh`; the container itself if its id is there already.
    The caller keeps the copies alive."""
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
    """Return the arguments repaired by the tool's schema, with the receipts. They may still have faults. The same
    object and no receipts if nothing helped, the faults are too many, or the budget of the reply is spent."""
    if options.budget.left <= 0:
        return arguments, []
    repair = _SchemaRepair(tool, Places(tool.parameters), arguments, options)
    try:
        repair.run()
    except _TooManyFaults:
        return arguments, []
    return repair.value, repair.receipts


def rename_aliases(tool: Tool, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[Repair]]:
    """Rename the tool's declared aliases among the arguments to the argument they stand for, which loses a value of
    null or "". An alias stays if that argument has another value, or if the alias is a declared argument. Return the
    arguments, a new dict if any was renamed, and the receipts."""
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
    near = [name for name in declared if name not in arguments and _share_words(old, name)]
    renamed = {new if key == old else key: value for key, value in arguments.items()}
    if near != [new] or not fits_schema(tool, renamed):
        return arguments, []
    return renamed, [Repair("near_name", "guess", steps_pointer([new]), old, new)]


def _share_words(name: str, other: str) -> bool:
    """Return whether one of two names has all words of the other: `filePath` or `file_path` those of `path`. False if
    `name` has other characters than letters, digits, `_` and `-`."""
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
        """Repair `value` in rounds until nothing helps, and record receipts. If no fewer faults than at first are left,
        restore the original without receipts. Raises `_TooManyFaults`.

        `ahead`: at the end also rename unknown names whose values fit the new name only after a repair.
        """
        before = self.value
        self.left = self._find_faults(before)
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

    def _find_faults(self, value: Any) -> list[SchemaFault]:
        """Validate `value`, the whole arguments, and return the errors, and the unknown arguments that the schema does
        not explicitly allow; the cost is taken from the budget. Raises `_TooManyFaults` if there are too many
        errors."""
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
        """Return the next untried change of every faulty place, by the path of the place, and count it as tried. If one
        place is inside another, only the change of the outer one is returned. Empty if nothing is left to try."""
        picked: dict[Where, Change] = {}
        turns: dict[Where, int] = {}
        given = FaultyArguments(self.value, self.places, self.options.depth)
        for fault in sorted(self.left, key=lambda fault: len(fault.where)):
            if _enclosing_place(fault.where, picked) is None:
                turn, change = self._next_change(fault, given)
                if change is not None and change.where not in picked:
                    picked[change.where], turns[change.where] = change, turn
                    self._about[change.where] = fault
        picked = _outermost_changes(picked)
        for where in picked:  # places inside another one are tried in a later round
            self._attempts[self._about[where].key] = turns[where]
        return picked

    def _next_change(self, fault: SchemaFault, given: FaultyArguments) -> tuple[int, Change | None]:
        """Return the next change for a fault that the options allow, as (position behind it, change); (the number of
        all changes, None) if none is left. Nothing is counted as tried. `given`: the arguments of this round."""
        turn = self._attempts.get(fault.key, 0)
        for change in islice(possible_changes(fault, given), turn, None):
            turn += 1
            if self.options.guesses or (
                change.kind != "guess" and (self.options.sure_brackets or change.rule not in _OF_PLACES)
            ):
                return turn, change
        return turn, None

    def _may_be_list_item(self, change: Change) -> bool:
        """Return whether the change parses a string as a list, although the schema wants a list of strings there: the
        string may instead be the only item of that list."""
        if change.rule != "double_encoded" or not isinstance(change.new, list):
            return False
        items = self.places.inner(self.places.at(list(change.where)), 0)
        return allows_type_of(items, "", self.places.refs)

    def _apply_if_better(self, picked: dict[Where, Change]) -> None:
        """Apply the changes to a copy of the arguments and validate it. Accept those changes that leave lighter faults
        in their own place (`_fault_weights`); if there are none, nothing changes. `picked`: the changes by the path of
        their place. Raises `_TooManyFaults`."""
        candidate = apply_changes(self.value, picked.values())
        left = self._find_faults(candidate) if isinstance(candidate, dict) else self.left
        good = self._select_improving(picked, left)
        if good and len(good) < len(picked):
            candidate = apply_changes(self.value, good.values())
            left = self._find_faults(candidate)
        if good:
            self._accept(good.values(), candidate, left)

    def _select_improving(self, picked: dict[Where, Change], left: list[SchemaFault]) -> dict[Where, Change]:
        """Return those of the changes, by place, that make the faults in their place, inner ones included, lighter by
        `_fault_weights`: a fault nearer the root outweighs any number of deeper ones, so there may be more. `left`: the
        faults after the changes. Unless guesses are allowed, a list parsed from a string that may be the one item of a
        list must leave no fault there."""
        before, after = _fault_weights(self.left, picked), _fault_weights(left, picked)
        good = {where: change for where, change in picked.items() if after[where] < before[where]}
        if self.options.guesses:
            return good
        # A list from a string must fit without further repair: the string may be the one item of a list.
        return {where: each for where, each in good.items() if not (self._may_be_list_item(each) and any(after[where]))}

    def _accept(self, made: Iterable[Change], value: dict[str, Any], left: list[SchemaFault]) -> None:
        """Set the new `value` and its remaining faults, `left`, and add the receipts of the changes that led to it."""
        for change in made:
            self.receipts += change.receipts(self.value)
        self.value, self.left = value, left

    def _rename_then_repair(self) -> None:
        """Rename up to `_MOST_RENAMED` unknown names, also where a value does not fit the new name, and repair the
        result; accept it if its faults are lighter and no null was dropped and no default filled in. Otherwise nothing
        changes. Raises `_TooManyFaults`."""
        unknown = [fault for fault in self.left if fault.word == "stranger"]
        given = FaultyArguments(self.value, self.places, self.options.depth)
        changes = [next(possible_changes(fault, given), None) for fault in unknown[:_MOST_RENAMED]]
        made = _outermost_changes({change.where: change for change in changes if change is not None})
        if not made:
            return
        renamed = apply_changes(self.value, made.values())
        further = _SchemaRepair(self.tool, self.places, renamed, self.options)
        further.run(ahead=False)
        lost = any(receipt.rule in ("null_dropped", "default") for receipt in further.receipts)
        if not lost and _fault_weight(further.left) < _fault_weight(self.left):
            self._accept(made.values(), further.value, further.left)
            self.receipts += further.receipts


def _count_faults(faults: list[SchemaFault]) -> tuple[int, int]:
    """Return the number of errors, and separately that of unknown names that the schema tolerates, for comparison."""
    unknown = sum([fault.word == "stranger" for fault in faults])
    return len(faults) - unknown, unknown


def _to_fault(error: Any) -> SchemaFault:
    """Return the fault for an error of the validator; its place is that of the missing member for `required`."""
    names = [error.kind.property] if error.kind.name == "required" else []
    return SchemaFault((*error_path(error), *names), error.kind.name, "".join(names), error.kind)


def _count_inner_errors(error: Any) -> int:
    """Return the number of errors of all alternatives inside an error of `anyOf` or `oneOf`; 0 for another error."""
    return sum(map(len, error.kind.context)) if error.kind.name in ("anyOf", "oneOf") else 0


def _outermost_changes(picked: dict[Where, Change]) -> dict[Where, Change]:
    """Return the changes, by place, without those of places inside another changed place. `picked` is not changed."""
    return {
        where: change for where, change in picked.items() if not where or _enclosing_place(where[:-1], picked) is None
    }


def _enclosing_place(where: Where, picked: dict[Where, Change]) -> Where | None:
    """Return the path of the outermost place among the keys of `picked` that is `where` or contains it; None if there
    is none. The whole arguments are ()."""
    return next((where[:size] for size in range(len(where) + 1) if where[:size] in picked), None)


def _fault_weights(faults: Iterable[SchemaFault], picked: dict[Where, Change]) -> dict[Where, list[int]]:
    """Return, for each place among the keys of `picked`, its faults counted by weight (see `_fault_weight`), inner ones
    included. Faults outside these places are left out."""
    inside: dict[Where, list[SchemaFault]] = {where: [] for where in picked}
    for fault in faults:
        where = _enclosing_place(fault.where, picked)
        if where is not None:
            inside[where].append(fault)
    return {where: _fault_weight(found) for where, found in inside.items()}


def _fault_weight(faults: Iterable[SchemaFault]) -> list[int]:
    """Return the numbers of faults by their depth, the heaviest first, as a list to compare: first of errors, from the
    root down, then of tolerated unknown names. One fault nearer the root outweighs any number of deeper ones."""
    counts = [0] * (2 * _DEEPEST + 2)
    for fault in faults:
        depth = min(len(fault.where), _DEEPEST)
        counts[depth + _DEEPEST + 1 if fault.word == "stranger" else depth] += 1
    return counts
