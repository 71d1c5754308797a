"""Repairs that a schema suggests for arguments that are JSON and do not fit.

    SchemaFault(("days",), "type")  with  {"days": "3"}   ->   scalar_type: /days becomes 3

`changes` yields the changes that may repair one fault, most likely first. In each round every faulty place gets its
next change, all are validated at once, and those that left fewer faults in their own place stay, each with its receipt.
So the cost does not depend on the number of faulty places. Changes of kind `guess` are tried only where the policy
allows.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from math import isinf
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from rightcall.repairs.loose_json import FloatText, UnreadableJson, decode_escaped, dumps, read_loose
from rightcall.schema.limits import KEYWORDS_PER_STEP, MAX_REPAIR_ERRORS, MAX_REPAIR_STEPS
from rightcall.schema.places import MISSING, Places, allows_fraction, allows_type_of, value_at_place
from rightcall.schema.unknown_names import unknown_arguments
from rightcall.schema.validation import all_errors as errors
from rightcall.schema.validation import checkable, compiled_schema, error_path
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
        return [self._receipt(self.where, as_text(value_at_place(value, list(self.where))), as_text(self.new))]

    def _receipt(self, where: tuple[Any, ...], before: str, after: str) -> Repair:
        return Repair(self.rule, self.kind, steps_pointer(where), before, after)


class PropertyNames(msgspec.Struct, frozen=True):
    """The names of one object: those it has that are not declared, and what they may be meant for."""

    value: Json
    declared: Json
    strangers: list[str]
    folded: list[tuple[str, str]]


class FaultyArguments:
    """The arguments that have faults, with what is asked of them more than once. `depth` is how deep what stands in a
    string may be nested."""

    def __init__(self, arguments: Any, places: Places, depth: int) -> None:
        self.arguments, self.places, self.depth = arguments, places, depth
        self._names: dict[tuple[Any, ...], PropertyNames | None] = {}

    def names(self, where: list[Any]) -> PropertyNames | None:
        key = tuple(where)
        if key not in self._names:
            value = value_at_place(self.arguments, where)
            self._names[key] = self._name_changes(where, value) if isinstance(value, dict) else None
        return self._names[key]

    def _name_changes(self, where: list[Any], value: Json) -> PropertyNames:
        declared = self.places.properties(self.places.at(where))
        strangers = [key for key in value if key not in declared]
        return PropertyNames(value, declared, strangers, _respelled_names(value, strangers, self._by_fold(declared)))

    def _by_fold(self, declared: Json) -> dict[str, list[str]]:
        """The declared names by what they fold to: made once, for it may be many."""
        known = self.places.refs.folded
        found = known.get(id(declared))
        if found is None:
            found = known[id(declared)] = {}
            for key in declared:
                found.setdefault(fold(key), []).append(key)
        return found


def changes(fault: SchemaFault, given: FaultyArguments) -> Iterator[Change]:
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
    """Two names that differ only in case and in the separators of words fold to the same. Any other sign stays."""
    return _SEPARATORS("", name.casefold())


def fold_option(text: str) -> str:
    """As `fold`, for values: a separator beside a digit may be a sign or a point (`-5`, `1-2`), and stays."""
    return _BETWEEN_WORDS("", text.strip().casefold())


def _name_changes(where: list[Any], names: PropertyNames, fault: SchemaFault, places: Places) -> Iterator[Change]:
    yield from _unwrap_changes(where, names, sure=fault.word == "required")
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
        yield from _drop_null_changes(where, names, unexpected, places)


def _drop_null_changes(
    where: list[Any], names: PropertyNames, unexpected: Iterable[str], places: Places
) -> Iterator[Change]:
    value = names.value
    nulls = dict.fromkeys([name for name in unexpected if name in value and value[name] is None])
    if nulls:
        kept = {key: item for key, item in value.items() if key not in nulls}
        # A name that is not known may be the misspelling of one that may be null.
        meant = any(
            allows_type_of(names.declared[key], None, places.refs) for key in names.declared if key not in value
        )
        yield Change("null_dropped", "guess" if meant else "schema", tuple(where), kept, dropped=tuple(nulls))


def _respelled_names(value: Json, strangers: list[str], declared: dict[str, list[str]]) -> list[tuple[str, str]]:
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


def _unwrap_changes(where: list[Any], names: PropertyNames, *, sure: bool) -> Iterator[Change]:
    """Move arguments out of an object inside the arguments: `{"arguments": {...}}`.

    Next to declared arguments, or unless something is missing (`sure`), only if all that it holds is declared.
    """
    beside = {key: item for key, item in names.value.items() if key in names.declared} if not where else {}
    others = {key: item for key, item in names.value.items() if key not in beside}
    wrapper = None if where else _wrapper(others, names.declared)
    if wrapper is not None:
        inner = names.value[wrapper]
        if (sure and not beside) or (inner and inner.keys() <= names.declared.keys() - beside.keys()):
            yield Change("unwrapped", "schema", (), {**beside, **inner})


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


def _option_changes(where: list[Any], value: Any, kind: Any) -> Iterator[Change]:
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


def _type_changes(where: list[Any], value: Any, given: FaultyArguments) -> Iterator[Change]:
    """The same value as another type."""
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


def _null_changes(at: tuple[Any, ...], places: Places) -> Iterator[Change]:
    default = places.default(list(at))
    if default is not MISSING:
        yield Change("default", "schema", at, default)
    if at and isinstance(at[-1], str):
        items = places.inner(places.at(list(at)), 0)
        is_item = items is not None and allows_type_of(items, None, places.refs)  # of a list that lost its brackets
        yield Change("null_dropped", "guess" if is_item else "schema", at, GONE)


def _string_changes(at: tuple[Any, ...], text: str, given: FaultyArguments) -> Iterator[Change]:
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
    # Zeros in front: ten, eight in octal, or a code.
    kind: Kind = "guess" if _ZEROS(bare) else "schema"
    is_whole = _INTEGER(bare) and ("." not in bare or not allows_fraction(places.at(list(at)), places.refs))
    if is_whole:
        yield Change("scalar_type", kind, at, int(bare.partition(".")[0]))
    elif _NUMBER(bare) and abs(float(bare)) != float("inf"):
        yield Change("scalar_type", kind, at, FloatText(bare) if _AS_JSON(bare) else float(bare))
    if bare.lower() in ("true", "false"):
        yield Change("scalar_type", "schema", at, bare.lower() == "true")
    if bare in ("null", "None"):
        yield Change("scalar_type", "schema", at, None)


def _loose_text_changes(at: tuple[Any, ...], text: str, depth: int) -> Iterator[Change]:
    try:
        read = read_loose(text, depth=depth)
    except UnreadableJson:
        return
    guessed = {"unquoted_value", "missing_comma", "comment"} & {deviation.rule for deviation in read.deviations}
    guessed |= {deviation.rule for deviation in read.deviations if deviation.guess}
    if not text[read.end :].strip() and not (guessed or read.missing_closers or read.mixed):
        yield Change("double_encoded", "schema", at, read.value)


def as_text(value: Any) -> str:
    """A value as a receipt shows it."""
    return "" if value is MISSING or value is GONE else dumps(value)


# -- doing it ---------------------------------------------------------------------------------------------------------


def with_changes(value: Any, made: Iterable[Change]) -> Any:
    """A copy with these changes made; what is not on the way to one is shared."""
    fresh: set[int] = set()
    for change in made:
        value = _set_value(value, list(change.where), change.new, fresh)
    return value


def _set_value(value: Any, where: list[Any], new: Any, fresh: set[int]) -> Any:
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
    """The value, copied unless it is a copy of ours: those live in the candidate, so their ids are their own."""
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
    """There may be more errors than can be looked at."""


def repair_by_schema(
    tool: Tool,
    arguments: dict[str, Any],
    *,
    guesses: bool,
    depth: int,
    budget: RepairBudget,
    sure_brackets: bool = True,
) -> tuple[dict[str, Any], list[Repair]]:
    """The arguments as the schema suggests they were meant, and the receipts. The same object if nothing helped.

    Unless `sure_brackets`, a value of the wrong type may belong to another object, so its type is not repaired.
    """
    if budget.left <= 0:
        return arguments, []
    repair = _SchemaRepair(tool, Places(tool.parameters), arguments, guesses, depth, budget, sure_brackets)
    try:
        repair.run()
    except _TooManyFaults:
        return arguments, []
    return repair.value, repair.receipts


def rename_aliases(tool: Tool, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[Repair]]:
    """Declared aliases become the names they stand for, unless that name has a value of its own."""
    receipts: list[Repair] = []
    declared = tool.parameters.get("properties") if tool.aliases else None
    declared = declared if isinstance(declared, dict) else {}
    for alias, name in tool.aliases.items():
        if alias in arguments and arguments.get(name) in (None, "") and alias not in declared:
            arguments = {name if key == alias else key: v for key, v in arguments.items() if key != name}
            receipts.append(Repair("alias", "exact", steps_pointer([name]), alias, name))
    return arguments, receipts


class _SchemaRepair:
    def __init__(
        self,
        tool: Tool,
        places: Places,
        value: dict[str, Any],
        guesses: bool,
        depth: int,
        budget: RepairBudget,
        sure_brackets: bool,
    ) -> None:
        self.budget, self.sure_brackets = budget, sure_brackets
        self.tool, self.places, self.guesses, self.depth = tool, places, guesses, depth
        self.value = value
        self.receipts: list[Repair] = []
        self.left: list[SchemaFault] = []
        self._attempts: dict[tuple[Any, ...], int] = {}
        self._about: dict[Where, SchemaFault] = {}  # the fault that the last change for a place answers
        self._examined = 0

    def run(self, *, ahead: bool = True) -> None:
        before = self.value
        self.left = self._faults(before)
        most = _count_faults(self.left)
        for _ in range(_ROUNDS):
            picked = (
                self._next_changes() if self.left and self._examined < MAX_REPAIR_STEPS and self.budget.left > 0 else {}
            )
            if not picked:
                break
            self._apply_if_better(picked)
        if ahead:
            self._rename_then_repair()
        if self.left and _count_faults(self.left) >= most:
            self.value, self.receipts = before, []

    def _faults(self, value: Any) -> list[SchemaFault]:
        """The checker's errors, and arguments of an unknown name where none was allowed for in so many words."""
        wrong = errors(self.tool, checkable(value), MAX_REPAIR_ERRORS)
        if wrong is None:
            raise _TooManyFaults
        found = [_to_fault(error) for error in wrong]
        found += [SchemaFault(tuple(where), "stranger", where[-1]) for where in unknown_arguments(self.tool, value)]
        count = 1 + len(found) + sum(map(_count_inner_errors, wrong))
        self._examined += count
        self.budget.left -= count + compiled_schema(self.tool).size // KEYWORDS_PER_STEP
        return found

    def _next_changes(self) -> dict[Where, Change]:
        """The next change for every faulty place; of two places one of which is inside the other, for the outer."""
        picked: dict[Where, Change] = {}
        turns: dict[Where, int] = {}
        given = FaultyArguments(self.value, self.places, self.depth)
        for fault in sorted(self.left, key=lambda fault: len(fault.where)):
            if _enclosing_place(fault.where, picked) is None:
                turn, change = self._next_change(fault, given)
                if change is not None and change.locus not in picked:
                    picked[change.locus], turns[change.locus] = change, turn
                    self._about[change.locus] = fault
        picked = _outermost(picked)
        for locus in picked:  # what stood inside another place has its turn later
            self._attempts[self._about[locus].key] = turns[locus]
        return picked

    def _next_change(self, fault: SchemaFault, given: FaultyArguments) -> tuple[int, Change | None]:
        """The first change for a fault that was not tried yet, and how many were with this one."""
        turn = self._attempts.get(fault.key, 0)
        for change in islice(changes(fault, given), turn, None):
            turn += 1
            if self.guesses or (change.kind != "guess" and (self.sure_brackets or change.rule not in _OF_PLACES)):
                return turn, change
        return turn, None

    def _may_be_item(self, change: Change) -> bool:
        """A list that stood in a string: could the string be the one item of a list?"""
        if change.rule != "double_encoded" or not isinstance(change.new, list):
            return False
        items = self.places.inner(self.places.at(list(change.where)), 0)
        return allows_type_of(items, "", self.places.refs)

    def _apply_if_better(self, picked: dict[Where, Change]) -> None:
        candidate = with_changes(self.value, picked.values())
        if not isinstance(candidate, dict):
            return
        left = self._faults(candidate)
        good = self._improving(picked, left)
        if good and len(good) < len(picked):
            candidate = with_changes(self.value, good.values())
            left = self._faults(candidate)
        if good:
            self._accept(good.values(), candidate, left)

    def _improving(self, picked: dict[Where, Change], left: list[SchemaFault]) -> dict[Where, Change]:
        """Those after which less is wrong in their place."""
        before, after = _fault_weights(self.left, picked), _fault_weights(left, picked)
        good = {locus: change for locus, change in picked.items() if after[locus] < before[locus]}
        if self.guesses:
            return good
        # A list in a string must be right as it is: a string may be the list's one item.
        return {locus: each for locus, each in good.items() if not (self._may_be_item(each) and any(after[locus]))}

    def _accept(self, made: Iterable[Change], value: dict[str, Any], left: list[SchemaFault]) -> None:
        for change in made:
            self.receipts += change.receipts(self.value)
        self.value, self.left = value, left

    def _rename_then_repair(self) -> None:
        """Names that would be right but for their values: renamed, if what is wrong with the values can be mended."""
        unknown = [fault for fault in self.left if fault.word == "stranger"]
        given = FaultyArguments(self.value, self.places, self.depth)
        made: dict[Where, Change] = {}
        for fault in unknown[:_MOST_RENAMED]:
            change = next(changes(fault, given), None)
            if change is not None:
                made[change.locus] = change
                self._about[change.locus] = fault
        made = _outermost(made)
        if not made:
            return
        renamed = with_changes(self.value, made.values())
        further = _SchemaRepair(
            self.tool, self.places, renamed, self.guesses, self.depth, self.budget, self.sure_brackets
        )
        further.run(ahead=False)
        lost = any(receipt.rule in ("null_dropped", "default") for receipt in further.receipts)
        if not lost and _fault_weight(further.left) < _fault_weight(self.left):
            self._accept(made.values(), further.value, further.left)
            self.receipts += further.receipts


def _count_faults(faults: list[SchemaFault]) -> tuple[int, int]:
    """How many errors, and how many names that are not known but do no harm."""
    unknown = sum([fault.word == "stranger" for fault in faults])
    return len(faults) - unknown, unknown


def _to_fault(error: Any) -> SchemaFault:
    where, word = error_path(error), error.kind.name
    name = ""
    if word == "required":
        name = error.kind.property
        where.append(name)
    return SchemaFault(tuple(where), word, name, error.kind)


def _count_inner_errors(error: Any) -> int:
    """How many errors one of alternatives holds, which were made with it."""
    return sum(map(len, error.kind.context)) if error.kind.name in ("anyOf", "oneOf") else 0


def _outermost(picked: dict[Where, Change]) -> dict[Where, Change]:
    return {
        locus: change for locus, change in picked.items() if not locus or _enclosing_place(locus[:-1], picked) is None
    }


def _enclosing_place(where: Where, picked: dict[Where, Change]) -> Where | None:
    """The picked place that this one is, or is inside of."""
    for size in range(len(where) + 1):
        if where[:size] in picked:
            return where[:size]
    return None


def _fault_weights(faults: Iterable[SchemaFault], picked: dict[Where, Change]) -> dict[Where, list[int]]:
    """How much is wrong in each of the picked places."""
    found = {locus: [0] * (2 * _DEEPEST + 2) for locus in picked}
    for fault in faults:
        locus = _enclosing_place(fault.where, picked)
        if locus is not None:
            found[locus][_weight_index(fault)] += 1
    return found


def _fault_weight(faults: Iterable[SchemaFault]) -> list[int]:
    counts = [0] * (2 * _DEEPEST + 2)
    for fault in faults:
        counts[_weight_index(fault)] += 1
    return counts


def _weight_index(fault: SchemaFault) -> int:
    """A fault further up weighs more than any number further down, and any more than a name that is not known."""
    depth = min(len(fault.where), _DEEPEST)
    return depth + _DEEPEST + 1 if fault.word == "stranger" else depth
