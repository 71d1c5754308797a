"""The end of every call, whatever wire it came on: its argument text becomes arguments, receipts and problems.

The ladder, cheapest rung first: strict JSON; a code fence, or a JSON string that holds the object; JSON as models write
it (`loose`); declared aliases; what the schema suggests (`schema`). Arguments that fit are byte for byte what was sent.
A call that was cut off never comes here, and none is ever completed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from rightcall.repairs.argument_text import has_sure_brackets, is_one_too_many_unsure, read_arguments
from rightcall.repairs.envelope_repair import ExtraMember, place_members, report_members
from rightcall.repairs.loose_json import (
    AGAIN,
    SHOWN,
    Deviation,
    UnreadableJson,
    dumps,
    unfence,
    with_spelling,
    without_spelling,
)
from rightcall.schema.limits import MAX_REPAIR_STEPS_OF_REPLY
from rightcall.schema.unknown_names import is_schema_echo, needs_no_repair, unknown_arguments
from rightcall.schema.validation import fits_schema
from rightcall.strict_json import MAX_DEPTH, REFUSED, DuplicateKey, Undecodable, decode_unique
from rightcall.tools.checks import argument_problems
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Problem, Repair, Tool

_BLANKS = " \t\r\n"
_DOUBLED = ("duplicate_argument", "duplicate_key")
_GUESSES = frozenset(("missing_comma", "unquoted_value", "comment"))
_CLOSED = frozenset(("extra_closer", "hoisted_argument"))
_BRACKETS = _CLOSED | {"missing_closer"}
TRUNCATED = Problem("truncated", "the text ended before the call did; send the whole call again")


def settle(
    name: str,
    json: str,
    *,
    index: int | None,
    id: str = "",
    raw: str = "",
    tools: Toolset | None = None,
    policy: str = "safe",
    depth: int = MAX_DEPTH,
    value: Any = Undecodable,
    repairs: tuple[Repair, ...] = (),
    closed: bool = True,
    beside: tuple[ExtraMember, ...] = (),
    budget: RepairBudget | None = None,
) -> tuple[Call, list[Problem]]:
    """A whole call and what is wrong with it. `value` is what `json` holds, if known, and no key of it stands there
    twice; `closed` says that the end of `json` is known to be the end of what was sent, so that brackets left open were
    forgotten and not cut off. `beside` is what stands in the call's envelope beside its arguments. `budget` is what all
    calls of a reply share.

    Blank, `null` or absent arguments are `{}`. Arguments that cannot be read leave `complete=False`.
    """
    tool = tools.get(name) if tools is not None else None
    has_none = not json.strip(_BLANKS)
    if has_none:
        value, json = {}, "{}"
    is_as_sent = not (beside or repairs)
    if is_as_sent and type(value) is dict and (tool is None or needs_no_repair(tool, value)):
        return Call(name, value, json, id, raw), []
    repair = _ArgumentRepair(tool, tools, policy, depth, closed, budget)
    repair.has_none = has_none
    if value is Undecodable:
        value = repair.decoded(json)
        if is_as_sent and repair.is_right(value):
            return Call(name, value, json, id, raw), []
    repair.has_repaired_brackets = any(each.rule in _BRACKETS for each in repairs)
    arguments = repair.arguments(value, json, beside)
    made = repair.judge_brackets(repairs, arguments)
    notes = [_about(note, index) for note in repair.notes]
    if arguments is None:
        problem = repair.problem
        complete = problem.code == "arguments_not_object"
        return Call(name, {}, json, id, raw, made, complete=complete), [_about(problem, index), *notes]
    text = dumps(arguments) if repair.changed else repair.text
    arguments = without_spelling(arguments)
    problems = argument_problems(tool, arguments, index) if tool is not None else []
    return Call(name, arguments, text, id, raw, made), [*problems, *_forbidden_guess(made, tool, policy, index), *notes]


def _forbidden_guess(made: tuple[Repair, ...], tool: Tool | None, policy: str, index: int | None) -> list[Problem]:
    """The problem of the first guess, if none may be made."""
    guess = next((repair for repair in made if repair.kind == "guess"), None)
    return [] if guess is None or allowed((guess,), tool, policy) else [_uncertain(guess, index)]


def _has_strangers(tool: Tool | None, arguments: dict[str, Any], before: dict[str, Any]) -> bool:
    """Are there names that are not known, but for those that were put among the arguments just now?"""
    return tool is not None and any(
        len(where) > 1 or where[0] in before for where in unknown_arguments(tool, arguments)
    )


def _uncertain(guess: Repair, index: int | None) -> Problem:
    """What was read is one of several readings, and it may not be guessed which was meant."""
    shown = f" at {guess.path}" if guess.path else ""
    message = f"the call can be read in more than one way ({guess.rule}{shown}); send it again, well formed"
    return Problem("uncertain", message, guess.path, index)


def _about(problem: Problem, index: int | None) -> Problem:
    return Problem(problem.code, problem.message, problem.path, index, problem.blocking)


def _whole_call(name: str, said: str) -> Problem:
    message = f"these are no arguments of {name!r} but a whole call of {said[:80]!r}; send only the arguments"
    return Problem("misplaced_argument", message)


def _note(twice: DuplicateKey) -> Problem:
    return Problem(twice.code, twice.message, blocking=False)


class RepairBudget:
    """The number of schema errors that may still be examined for repairs, for all calls of one reply."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_REPAIR_STEPS_OF_REPLY


class _ArgumentRepair:
    """Turns the argument text of one call into arguments, and records what it repaired and what it could not."""

    def __init__(
        self,
        tool: Tool | None,
        tools: Toolset | None,
        policy: str,
        depth: int,
        closed: bool,
        budget: RepairBudget | None,
    ) -> None:
        self._budget = budget or RepairBudget()
        self.tool, self.tools, self.depth, self.closed, self.policy = tool, tools, depth, closed, policy
        self.receipts: list[Repair] = []
        self.text = ""  # the arguments as they were sent, where that still says what they are
        self.changed = False
        self.problem = Problem("arguments_not_object", "the arguments must be a JSON object")
        self.notes: list[Problem] = []  # beside what the schema says
        self.early = False  # may another bracket than the arguments' own have come too early?
        self.has_repaired_brackets = False  # before the arguments were parsed
        self.has_none = False  # were no arguments sent at all?
        self.stranger = False  # is there something beside the arguments that is nobody's?

    def judge_brackets(self, repairs: tuple[Repair, ...], arguments: dict[str, Any] | None) -> tuple[Repair, ...]:
        """All receipts. Brackets too many, and arguments that stand behind one, are certain only where no other bracket
        can be the one too many."""
        made = (*repairs, *self.receipts)
        extra = [each.before for each in made if each.rule == "extra_closer"]
        if not self.early and not (extra and self._is_extra_unsure(made, extra, arguments)):
            return made
        return tuple([msgspec.structs.replace(each, kind="guess") if each.rule in _CLOSED else each for each in made])

    def _is_extra_unsure(self, made: tuple[Repair, ...], extra: list[str], arguments: dict[str, Any] | None) -> bool:
        if self.stranger or any(each.rule == "trailing_comma" for each in made):
            return True
        return any(is_one_too_many_unsure(arguments, self.tool, each) for each in extra)

    def decoded(self, json: str) -> Any:
        """What a text holds; a key that stands in it twice with one value leaves a note."""
        value, twice = decode_unique(json, self.depth)
        if not isinstance(value, Undecodable):
            self.notes += [_note(each) for each in twice]
        return value

    def is_right(self, value: Any) -> bool:
        """Is this an object that needs neither a note nor a repair?"""
        return type(value) is dict and not self.notes and self.is_settled(value)

    def is_settled(self, arguments: dict[str, Any]) -> bool:
        """Is there nothing to be repaired?"""
        return self.tool is None or needs_no_repair(self.tool, arguments)

    def arguments(self, value: Any, json: str, beside: tuple[ExtraMember, ...]) -> dict[str, Any] | None:
        self.text = json
        found = self._object(value, json)
        if found is None:
            self.notes += report_members(beside)
            return None
        if self.tool is not None and self.policy != "off" and not self.changed:
            found = with_spelling(found, self.text)
        if beside:
            found = self._with_beside(found, beside)
        if self.tool is None or self.is_settled(found):
            return found
        return self._fitted(self.tool, found)

    def _with_beside(self, found: dict[str, Any], beside: tuple[ExtraMember, ...]) -> dict[str, Any]:
        """The arguments with those that stand beside them."""
        placed = place_members(beside, found, self.tool, self.tools, self.policy, has_none=self.has_none)
        self.stranger = placed.unsure or any(each.code == "unknown_key" for each in placed.problems)
        self.early = bool(placed.receipts) and (placed.unsure or self._may_close_elsewhere(found, placed.arguments))
        self._record(*placed.receipts)
        self.notes += placed.problems
        return placed.arguments

    def _may_close_elsewhere(self, found: dict[str, Any], placed: dict[str, Any]) -> bool:
        """May the bracket between these arguments and those that were placed among them belong elsewhere?"""
        if not found:
            return False
        hoisted = {key: value for key, value in placed.items() if key not in found}
        are_sure = has_sure_brackets(found, 1, self.tool) and has_sure_brackets(hoisted, 2, None)
        return is_one_too_many_unsure(found, self.tool, "}") or not are_sure or _has_strangers(self.tool, placed, found)

    def _fitted(self, tool: Tool, found: dict[str, Any]) -> dict[str, Any]:
        """The arguments as the tool's schema wants them, as far as that goes."""
        from rightcall.repairs.schema_repair import call_inside, rename_aliases, rename_near_name, repair_by_schema

        inside = call_inside(found, tool.name, tool.parameters.get("properties"))
        if inside is not None and self._is_refused(tool, found, inside[0]):
            self.notes.append(_whole_call(tool.name, inside[0]))
            return found
        if self.policy == "off":
            return found
        if inside is not None and inside[0] == tool.name:
            self._record(Repair("unwrapped", "schema", "", dumps(found)[:SHOWN], dumps(inside[1])[:SHOWN]))
            found = inside[1]
        elif is_schema_echo(tool, found):
            self._record(Repair("unwrapped", "schema", "", dumps(found)[:SHOWN], dumps(found["properties"])[:SHOWN]))
            found = found["properties"]
        found, receipts = rename_aliases(tool, found)
        self._record(*receipts)
        if unknown_arguments(tool, found) or not fits_schema(tool, found):
            found, receipts = repair_by_schema(
                tool,
                found,
                guesses=may_guess(tool, self.policy),
                depth=self.depth,
                budget=self._budget,
                sure_brackets=self._are_brackets_sure(found, tool),
            )
            self._record(*receipts)
            if self.policy == "lenient":
                found, receipts = rename_near_name(tool, found)
                self._record(*receipts)
        return found

    def _are_brackets_sure(self, found: dict[str, Any], tool: Tool) -> bool:
        repaired = self.has_repaired_brackets or any(each.rule in _BRACKETS for each in self.receipts)
        return not repaired or has_sure_brackets(found, 1, tool)

    def _is_refused(self, tool: Tool, found: dict[str, Any], name: str) -> bool:
        """May arguments that are a call of that name not be this tool's? A tool that takes any may be given a name of
        its own, but not that of another tool; its own call is taken out, if anything may be repaired."""
        if name == tool.name:
            return self.policy == "off" and fits_schema(tool, found)
        return self._is_declared(name) or bool(unknown_arguments(tool, found)) or not fits_schema(tool, found)

    def _is_declared(self, name: str) -> bool:
        from rightcall.repairs.tool_meant import resolve_tool_name

        return self.tools is not None and resolve_tool_name(name, self.tools, "safe")[0] in self.tools

    def _record(self, *receipts: Repair) -> None:
        if receipts:
            self.receipts.extend(receipts)
            self.changed = True

    def _object(self, value: Any, json: str) -> dict[str, Any] | None:
        """An object made of what was sent, or None with a problem."""
        if isinstance(value, dict):
            return value
        if value is None or (isinstance(value, str) and not value.strip(_BLANKS)):
            self.changed = True
            return {}
        if isinstance(value, Undecodable):
            return self._unreadable(value, json)
        kind = {str: "a string", list: "an array", bool: "a boolean"}.get(type(value), "a number")
        self.problem = Problem("arguments_not_object", f"the arguments must be a JSON object, not {kind}")
        return self._in_string(value, json) if isinstance(value, str) and self.policy != "off" else None

    def _in_string(self, value: str, json: str) -> dict[str, Any] | None:
        """The object that was written as a string, or None."""
        inner = value.strip(_BLANKS)
        found = self.decoded(inner) if inner.startswith("{") else None
        if isinstance(found, Undecodable) and found.code in _DOUBLED:
            self.problem = Problem(found.code, found.message)
        if not isinstance(found, dict):
            return None
        self.receipts.append(Repair("double_encoded", "exact", "", json, inner))
        self.text = inner
        return found

    def _unreadable(self, value: Undecodable, json: str) -> dict[str, Any] | None:
        self.problem = Problem(value.code, value.message)
        if self.policy == "off" or value.code in REFUSED:
            return None
        inner = unfence(json)
        if inner is not None:
            self.receipts.append(Repair("code_fence", "exact", "", json[:200], inner[:200]))
            found = self.decoded(inner)
            if isinstance(found, dict):
                self.text = inner
                return found
        return self._by_ladder(json if inner is None else inner)

    def _by_ladder(self, text: str) -> dict[str, Any] | None:
        """Read more loosely, as far as the policy goes."""
        found = self._loosely(text)
        if found is None:
            self.receipts.clear()
            self.changed = False
        return found

    def _loosely(self, text: str) -> dict[str, Any] | None:
        try:
            found, deviations = read_arguments(text, 0, self.tool, depth=self.depth, closed=self.closed)
        except UnreadableJson as error:
            if error.cut and not self.closed:
                self.problem = TRUNCATED
            elif error.code:
                self.problem = Problem(error.code, str(error))
            return None
        self.notes += again(deviations)
        made = receipts(deviations)
        if not isinstance(found, dict) or not allowed(made, self.tool, self.policy):
            return None
        self._record(*made)
        return found


def receipts(deviations: Iterable[Deviation]) -> tuple[Repair, ...]:
    """What a loose reading is to be recorded as."""
    return tuple([_receipt(deviation) for deviation in deviations if deviation.rule != AGAIN])


def again(deviations: Iterable[Deviation]) -> list[Problem]:
    """The note on a key that stands twice with one value."""
    return [_note(DuplicateKey(each.before, False, True, "", "")) for each in deviations if each.rule == AGAIN]


def allowed(made: Iterable[Repair], tool: Tool | None, policy: str) -> bool:
    """May these repairs be made to a call of this tool?"""
    return policy != "off" and (may_guess(tool, policy) or all(repair.kind != "guess" for repair in made))


def may_guess(tool: Tool | None, policy: str) -> bool:
    """May a call of this tool be repaired in a way that is one of several?"""
    return policy == "lenient" or (policy == "safe" and tool is not None and tool.read_only)


def _receipt(deviation: Deviation) -> Repair:
    kind = "guess" if deviation.guess or deviation.rule in _GUESSES else "exact"
    return Repair(deviation.rule, kind, "", deviation.before, deviation.after)  # type: ignore[arg-type]
