"""Finalize a whole call: parse its argument text, repair the arguments, and report what is wrong with them.

The steps, cheapest first: strict JSON; a JSON string that contains the object; JSON as models write it (`loose_json`);
declared aliases; repairs by the tool's schema (`schema_repair`). The text of arguments that fit is kept byte for byte.
Truncated calls are rejected before this, and none is ever completed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from rightcall.repairs.argument_text import has_odd_key, has_sure_brackets, is_one_too_many_unsure, read_arguments
from rightcall.repairs.envelope_repair import ExtraMember, place_members, report_members
from rightcall.repairs.loose_json import (
    AGAIN,
    SHOWN,
    Deviation,
    UnreadableJson,
    dumps,
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


def finalize_call(
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
    """Return a whole call and its problems. Blank, `null` or missing arguments are `{}`; a call whose arguments cannot
    be parsed is not `complete`.

    - `json`: the argument text. `value`: its value, if that is known and the text repeats no key.
    - `closed`: the end of `json` is the end of the input, so that open brackets were forgotten, not cut off.
    - `repairs`: the receipts so far. `beside`: the other members of the call's envelope.
    - `budget`: shared by all calls of a reply.
    """
    tool = tools.get(name) if tools is not None else None
    notes: list[Problem] = []
    has_none = not json.strip(_BLANKS)
    if has_none:
        value, json = {}, "{}"
    elif value is Undecodable:
        value, notes = _decode(json, depth)
    if type(value) is dict and not (beside or repairs or notes) and (tool is None or needs_no_repair(tool, value)):
        return Call(name, value, json, id, raw), []
    repair = _ArgumentRepair(tool, tools, policy, depth, closed, notes, budget or RepairBudget())
    repair.has_repaired_brackets = any(each.rule in _BRACKETS for each in repairs)
    arguments = repair.run(value, json, beside, has_none=has_none)
    made = repair.judge_brackets(repairs, arguments)
    if arguments is None:
        problems = [repair.problem]
        complete = repair.problem.code == "arguments_not_object"
        call = Call(name, {}, json, id, raw, made, complete=complete)
    else:
        plain = without_spelling(arguments)
        problems = argument_problems(tool, plain, index) if tool is not None else []
        problems += _report_forbidden_guess(made, tool, policy)
        call = Call(name, plain, dumps(arguments) if repair.changed else repair.text, id, raw, made)
    return call, [msgspec.structs.replace(each, call=index) for each in [*problems, *repair.notes]]


def _decode(json: str, depth: int) -> tuple[Any, list[Problem]]:
    """Return the value of a JSON text, `Undecodable` if it is invalid, and a non-blocking problem for each key that is
    repeated with the same value."""
    value, repeated = decode_unique(json, depth)
    return value, [] if isinstance(value, Undecodable) else [_note_repeated_key(each) for each in repeated]


def _note_repeated_key(key: DuplicateKey) -> Problem:
    """Return the non-blocking problem of a key that is repeated with the same value."""
    return Problem(key.code, key.message, blocking=False)


def _note_repeated_keys(deviations: Iterable[Deviation]) -> list[Problem]:
    """Return a non-blocking problem for each key that the tolerant reader found repeated with the same value."""
    keys = [each.before for each in deviations if each.rule == AGAIN]
    return [_note_repeated_key(DuplicateKey(key, False, True, "", "")) for key in keys]


def _report_forbidden_guess(made: tuple[Repair, ...], tool: Tool | None, policy: str) -> list[Problem]:
    """Return a problem, in a list, for the first repair that is a guess, if the policy allows none for this tool: the
    text has several interpretations. Empty otherwise."""
    guess = next((repair for repair in made if repair.kind == "guess"), None)
    if guess is None or allowed((guess,), tool, policy):
        return []
    place = f" at {guess.path}" if guess.path else ""
    message = f"the call can be read in more than one way ({guess.rule}{place}); send it again, well formed"
    return [Problem("uncertain", message, guess.path)]


def _joined_texts(made: tuple[Repair, ...], rule: str) -> str:
    """Return the texts that repairs of this rule replaced, joined."""
    return "".join([repair.before for repair in made if repair.rule == rule])


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
        notes: list[Problem],
        budget: RepairBudget,
    ) -> None:
        self.tool, self.tools, self.depth, self.closed, self.policy = tool, tools, depth, closed, policy
        self.budget = budget
        self.receipts: list[Repair] = []
        self.text = ""  # the input, as long as `changed` is False
        self.changed = False
        self.problem = Problem("arguments_not_object", "the arguments must be a JSON object")
        self.notes = notes  # problems other than those of the schema
        self.has_early_bracket = False  # another bracket than the last one of the arguments may be too early
        self.has_repaired_brackets = False  # before the arguments were parsed
        self.has_unknown_member = False  # in the envelope

    def run(self, value: Any, json: str, beside: tuple[ExtraMember, ...], *, has_none: bool) -> dict[str, Any] | None:
        """Return the arguments, repaired as far as the policy allows, or None with the cause in `problem`. `beside`:
        the other members of the envelope; `has_none`: the input has no arguments."""
        self.text = json
        found = self._make_object(value, json)
        if found is None:
            self.notes += report_members(beside)
            return None
        if self.tool is not None and self.policy != "off" and not self.changed:
            found = with_spelling(found, self.text)
        if beside:
            found = self._place_members(found, beside, has_none)
        if self.tool is None or needs_no_repair(self.tool, found):
            return found
        return self._fit_to_schema(self.tool, found)

    def judge_brackets(self, repairs: tuple[Repair, ...], arguments: dict[str, Any] | None) -> tuple[Repair, ...]:
        """Return the given receipts and those of this repair. Superfluous brackets, and arguments behind one, are
        marked as guesses if another bracket may be the superfluous one."""
        made = (*repairs, *self.receipts)
        extra = _joined_texts(made, "extra_closer")
        has_comma = bool(_joined_texts(made, "trailing_comma"))
        is_unsure = extra and (
            self.has_unknown_member or has_comma or is_one_too_many_unsure(arguments, self.tool, extra)
        )
        if not (is_unsure or self.has_early_bracket):
            return made
        return tuple([msgspec.structs.replace(each, kind="guess") if each.rule in _CLOSED else each for each in made])

    def _place_members(self, found: dict[str, Any], beside: tuple[ExtraMember, ...], has_none: bool) -> dict[str, Any]:
        """Return the arguments with those that are next to them in the envelope, and record receipts and problems."""
        placed = place_members(beside, found, self.tool, self.tools, self.policy, has_none=has_none)
        self.has_unknown_member = placed.unsure or any(each.code == "unknown_key" for each in placed.problems)
        if placed.receipts:
            self.has_early_bracket = placed.unsure or self._may_close_elsewhere(found, placed.arguments)
        self._record(*placed.receipts)
        self.notes += placed.problems
        return placed.arguments

    def _may_close_elsewhere(self, found: dict[str, Any], placed: dict[str, Any]) -> bool:
        """Return whether the bracket between the arguments `found` and those behind it that were placed may belong
        elsewhere; False without arguments before it."""
        if not found:
            return False
        hoisted = {key: value for key, value in placed.items() if key not in found}
        are_sure = has_sure_brackets(found, 1, self.tool) and has_sure_brackets(hoisted, 2, None)
        unknown = unknown_arguments(self.tool, placed) if self.tool is not None else []
        return not are_sure or has_odd_key(found) or any(len(path) > 1 or path[0] in found for path in unknown)

    def _fit_to_schema(self, tool: Tool, found: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments, repaired by the tool's schema as far as the policy allows, and record receipts.
        Arguments that are a whole call of another tool are reported and returned as they are."""
        from rightcall.repairs.schema_repair import (
            RepairOptions,
            call_inside,
            rename_aliases,
            rename_near_name,
            repair_by_schema,
        )

        inside = call_inside(found, tool.name, tool.parameters.get("properties"))
        if inside is not None and self._is_other_call(tool, found, inside[0]):
            message = f"these are no arguments of {tool.name!r} but a whole call of {inside[0][:80]!r}"
            self.notes.append(Problem("misplaced_argument", f"{message}; send only the arguments"))
            return found
        if self.policy == "off":
            return found
        is_own_call = inside is not None and inside[0] == tool.name
        if is_own_call or is_schema_echo(tool, found):
            inner = inside[1] if is_own_call and inside is not None else found["properties"]
            self._record(Repair("unwrapped", "schema", "", dumps(found)[:SHOWN], dumps(inner)[:SHOWN]))
            found = inner
        found, receipts = rename_aliases(tool, found)
        self._record(*receipts)
        if unknown_arguments(tool, found) or not fits_schema(tool, found):
            repaired = self.has_repaired_brackets or any(each.rule in _BRACKETS for each in self.receipts)
            sure_brackets = not repaired or has_sure_brackets(found, 1, tool)
            options = RepairOptions(may_guess(tool, self.policy), self.depth, self.budget, sure_brackets)
            found, receipts = repair_by_schema(tool, found, options)
            self._record(*receipts)
            if self.policy == "lenient":
                found, receipts = rename_near_name(tool, found)
                self._record(*receipts)
        return found

    def _is_other_call(self, tool: Tool, found: dict[str, Any], name: str) -> bool:
        """Return whether arguments that are themselves a call of the tool `name` cannot be arguments of `tool`: that
        name is declared, or they do not fit the schema. If `name` is the tool itself, True only if repairs are off and
        they would fit the schema as they are."""
        if name == tool.name:
            return self.policy == "off" and fits_schema(tool, found)
        from rightcall.repairs.tool_meant import resolve_tool_name

        is_declared = self.tools is not None and resolve_tool_name(name, self.tools, "safe")[0] in self.tools
        return is_declared or bool(unknown_arguments(tool, found)) or not fits_schema(tool, found)

    def _record(self, *receipts: Repair) -> None:
        """Add receipts and mark the arguments as changed; without any do nothing."""
        if receipts:
            self.receipts.extend(receipts)
            self.changed = True

    def _make_object(self, value: Any, json: str) -> dict[str, Any] | None:
        """Return the object that the input is or contains, {} for null and blank text, or None with the cause in
        `problem`. `value`: the decoded input, or `Undecodable`; `json`: its text."""
        if isinstance(value, dict):
            return value
        if value is None or (isinstance(value, str) and not value.strip(_BLANKS)):
            self.changed = True
            return {}
        if isinstance(value, Undecodable):
            return self._parse_loosely(value, json)
        kind = {str: "a string", list: "an array", bool: "a boolean"}.get(type(value), "a number")
        self.problem = Problem("arguments_not_object", f"the arguments must be a JSON object, not {kind}")
        return self._decode_string(value, json) if isinstance(value, str) and self.policy != "off" else None

    def _decode_string(self, value: str, json: str) -> dict[str, Any] | None:
        """Return the object that is written in the string `value`, with a receipt; None if there is none."""
        inner = value.strip(_BLANKS)
        found, notes = _decode(inner, self.depth) if inner.startswith("{") else (None, [])
        if isinstance(found, Undecodable) and found.code in _DOUBLED:
            self.problem = Problem(found.code, found.message)
        if not isinstance(found, dict):
            return None
        self.notes += notes
        self.receipts.append(Repair("double_encoded", "exact", "", json, inner))
        self.text = inner
        return found

    def _parse_loosely(self, value: Undecodable, text: str) -> dict[str, Any] | None:
        """Return the object in text that is not strict JSON, with receipts; None with the cause in `problem` if it
        cannot be parsed or the policy forbids a repair. `value`: why it is not strict JSON."""
        self.problem = Problem(value.code, value.message)
        if self.policy == "off" or value.code in REFUSED:
            return None
        start = len(text) - len(text.lstrip(_BLANKS))
        try:
            found, deviations = read_arguments(text, start, self.tool, depth=self.depth, closed=self.closed)
        except UnreadableJson as error:
            if error.cut and not self.closed:
                self.problem = TRUNCATED
            elif error.code:
                self.problem = Problem(error.code, str(error))
            return None
        self.notes += _note_repeated_keys(deviations)
        made = receipts(deviations)
        if not isinstance(found, dict) or not allowed(made, self.tool, self.policy):
            return None
        self._record(*made)
        return found


def receipts(deviations: Iterable[Deviation]) -> tuple[Repair, ...]:
    """Return a receipt for each deviation of a loosely parsed text, except repeated keys, which have none."""
    return tuple(
        [
            Repair(each.rule, "guess" if each.guess or each.rule in _GUESSES else "exact", "", each.before, each.after)
            for each in deviations
            if each.rule != AGAIN
        ]
    )


def allowed(made: Iterable[Repair], tool: Tool | None, policy: str) -> bool:
    """Return whether the policy allows all these repairs for a call of this tool; False for "off", even without
    repairs."""
    return policy != "off" and (may_guess(tool, policy) or all(repair.kind != "guess" for repair in made))


def may_guess(tool: Tool | None, policy: str) -> bool:
    """Return whether repairs of a call of this tool may be guesses: with the policy "lenient", or "safe" if it is
    read-only."""
    return policy == "lenient" or (policy == "safe" and tool is not None and tool.read_only)
