"""Arguments that are JSON but do not fit: mended until they do, or as far as that goes.

Every rule (`changes`) answers one fault with one change. In each round every faulty place gets its next change, all are
judged by one look at the whole, and those that left less wrong in their own place stay, each with its receipt. So the
cost does not depend on how many places are wrong. Rules of kind `guess` are tried only where the policy allows them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from rightcall.repairs.schema_rules import Change, Given, SchemaFault, changes, with_changes
from rightcall.schema.limits import MAX_MENDED, MOST_LOOKS, SIZE_OF_A_LOOK
from rightcall.schema.places import Places, may_be
from rightcall.schema.unknown_names import strangers
from rightcall.schema.validation import judge_of
from rightcall.tools.checks import faults as errors
from rightcall.tools.checks import place, plain, pointer
from rightcall.types import Repair, Tool

if TYPE_CHECKING:
    from rightcall.repairs.finish import RepairBudget

_ROUNDS = 64
_MOST_RENAMED = 1_000
_DEEPEST = 8
_OF_PLACES = frozenset(("scalar_type", "wrapped_in_array", "null_dropped"))

Where = tuple[Any, ...]


class _TooManyFaults(Exception):
    """There may be more errors than can be looked at."""


def mend(
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
    mending = _Mending(tool, Places(tool.parameters), arguments, guesses, depth, budget, sure_brackets)
    try:
        mending.run()
    except _TooManyFaults:
        return arguments, []
    return mending.value, mending.receipts


def rename_aliases(tool: Tool, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[Repair]]:
    """Declared aliases become the names they stand for, unless that name has a value of its own."""
    receipts: list[Repair] = []
    declared = tool.parameters.get("properties") if tool.aliases else None
    declared = declared if isinstance(declared, dict) else {}
    for alias, name in tool.aliases.items():
        if alias in arguments and arguments.get(name) in (None, "") and alias not in declared:
            arguments = {name if key == alias else key: v for key, v in arguments.items() if key != name}
            receipts.append(Repair("alias", "exact", pointer([name]), alias, name))
    return arguments, receipts


class _Mending:
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
        self._tried: dict[tuple[Any, ...], int] = {}
        self._about: dict[Where, SchemaFault] = {}  # the fault that the last change for a place answers
        self._looks = 0

    def run(self, *, ahead: bool = True) -> None:
        before = self.value
        self.left = self._faults(before)
        most = _count(self.left)
        for _ in range(_ROUNDS):
            picked = self._pick() if self.left and self._looks < MOST_LOOKS and self.budget.left > 0 else {}
            if not picked:
                break
            self._try(picked)
        if ahead:
            self._rename_and_go_on()
        if self.left and _count(self.left) >= most:
            self.value, self.receipts = before, []

    def _faults(self, value: Any) -> list[SchemaFault]:
        """The checker's errors, and arguments of an unknown name where none was allowed for in so many words."""
        wrong = errors(self.tool, plain(value), MAX_MENDED)
        if wrong is None:
            raise _TooManyFaults
        found = [_fault(error) for error in wrong]
        found += [SchemaFault(tuple(where), "stranger", where[-1]) for where in strangers(self.tool, value)]
        count = 1 + len(found) + sum(map(_inside, wrong))
        self._looks += count
        self.budget.left -= count + judge_of(self.tool).size // SIZE_OF_A_LOOK
        return found

    def _pick(self) -> dict[Where, Change]:
        """The next change for every faulty place; of two places one of which is inside the other, for the outer."""
        picked: dict[Where, Change] = {}
        turns: dict[Where, int] = {}
        given = Given(self.value, self.places, self.depth)
        for fault in sorted(self.left, key=lambda fault: len(fault.where)):
            if _covering(fault.where, picked) is None:
                turn, change = self._next(fault, given)
                if change is not None and change.locus not in picked:
                    picked[change.locus], turns[change.locus] = change, turn
                    self._about[change.locus] = fault
        picked = _outermost(picked)
        for locus in picked:  # what stood inside another place has its turn later
            self._tried[self._about[locus].key] = turns[locus]
        return picked

    def _next(self, fault: SchemaFault, given: Given) -> tuple[int, Change | None]:
        """The first change for a fault that was not tried yet, and how many were with this one."""
        turn = self._tried.get(fault.key, 0)
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
        return may_be(items, "", self.places.refs)

    def _try(self, picked: dict[Where, Change]) -> None:
        candidate = with_changes(self.value, picked.values())
        if not isinstance(candidate, dict):
            return
        left = self._faults(candidate)
        good = self._helping(picked, left)
        if good and len(good) < len(picked):
            candidate = with_changes(self.value, good.values())
            left = self._faults(candidate)
        if good:
            self._take(good.values(), candidate, left)

    def _helping(self, picked: dict[Where, Change], left: list[SchemaFault]) -> dict[Where, Change]:
        """Those after which less is wrong in their place."""
        before, after = _weights(self.left, picked), _weights(left, picked)
        good = {locus: change for locus, change in picked.items() if after[locus] < before[locus]}
        if self.guesses:
            return good
        # A list in a string must be right as it is: a string may be the list's one item.
        return {locus: each for locus, each in good.items() if not (self._may_be_item(each) and any(after[locus]))}

    def _take(self, made: Iterable[Change], value: dict[str, Any], left: list[SchemaFault]) -> None:
        for change in made:
            self.receipts += change.receipts(self.value)
        self.value, self.left = value, left

    def _rename_and_go_on(self) -> None:
        """Names that would be right but for their values: renamed, if what is wrong with the values can be mended."""
        unknown = [fault for fault in self.left if fault.word == "stranger"]
        given = Given(self.value, self.places, self.depth)
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
        further = _Mending(self.tool, self.places, renamed, self.guesses, self.depth, self.budget, self.sure_brackets)
        further.run(ahead=False)
        lost = any(receipt.rule in ("null_dropped", "default") for receipt in further.receipts)
        if not lost and _weight(further.left) < _weight(self.left):
            self._take(made.values(), further.value, further.left)
            self.receipts += further.receipts


def _count(faults: list[SchemaFault]) -> tuple[int, int]:
    """How many errors, and how many names that are not known but do no harm."""
    unknown = sum([fault.word == "stranger" for fault in faults])
    return len(faults) - unknown, unknown


def _fault(error: Any) -> SchemaFault:
    where, word = place(error), error.kind.name
    name = ""
    if word == "required":
        name = error.kind.property
        where.append(name)
    return SchemaFault(tuple(where), word, name, error.kind)


def _inside(error: Any) -> int:
    """How many errors one of alternatives holds, which were made with it."""
    return sum(map(len, error.kind.context)) if error.kind.name in ("anyOf", "oneOf") else 0


def _outermost(picked: dict[Where, Change]) -> dict[Where, Change]:
    return {locus: change for locus, change in picked.items() if not locus or _covering(locus[:-1], picked) is None}


def _covering(where: Where, picked: dict[Where, Change]) -> Where | None:
    """The picked place that this one is, or is inside of."""
    for size in range(len(where) + 1):
        if where[:size] in picked:
            return where[:size]
    return None


def _weights(faults: Iterable[SchemaFault], picked: dict[Where, Change]) -> dict[Where, list[int]]:
    """How much is wrong in each of the picked places."""
    found = {locus: [0] * (2 * _DEEPEST + 2) for locus in picked}
    for fault in faults:
        locus = _covering(fault.where, picked)
        if locus is not None:
            found[locus][_slot(fault)] += 1
    return found


def _weight(faults: Iterable[SchemaFault]) -> list[int]:
    counts = [0] * (2 * _DEEPEST + 2)
    for fault in faults:
        counts[_slot(fault)] += 1
    return counts


def _slot(fault: SchemaFault) -> int:
    """A fault further up weighs more than any number further down, and any more than a name that is not known."""
    depth = min(len(fault.where), _DEEPEST)
    return depth + _DEEPEST + 1 if fault.word == "stranger" else depth
