"""Finalize a whole call: parse its argument text, repair the arguments, and report what is wrong with them.

The steps, cheapest first: strict JSON; a JSON string that contains the object; JSON as models write it (`loose_json`);
declared aliases; repairs by the tool's schema (`schema_repair`). The text of arguments that fit is kept byte for byte.
Truncated calls are rejected before this, and none is ever completed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from rightcall.repairs.argument_text import has_odd_key, has_sure_brackets, is_extra_closer_unsure, read_arguments
from rightcall.repairs.envelope_repair import ExtraMember, place_members, unknown_member_notes
from rightcall.repairs.loose_json import (
    AGAIN,
    SHOWN,
    Deviation,
    UnreadableJson,
    dumps,
    with_float_texts,
    without_float_texts,
)
from rightcall.schema.limits import MAX_REPAIR_STEPS_OF_REPLY
from rightcall.schema.unknown_names import is_schema_echo, needs_no_repair, unknown_arguments
from rightcall.schema.validation import fits_schema
from rightcall.strict_json import MAX_DEPTH, REFUSED, DuplicateKey, Undecodable, decode_unique
from rightcall.tools.checks import argument_problems
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Problem, Repair, Tool

POLICIES = ("off", "safe", "lenient")
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
    """Return a call made from argument text, repaired as the policy allows, and its problems: of parsing, of its
    arguments against the tool's schema, and non-blocking ones. Nothing is raised.

    Blank text and `null` are `{}` (NousResearch/hermes-agent#83937, langchain#34190). If the text has no object,
    `arguments` are {} and a problem says why; the call is `complete` only if the text is JSON of another type. A `name`
    that is not declared is no problem here.

    - `json`: the argument text. `value`: its decoded value, if that is known and the text repeats no key.
    - `index`: the call's index in its reply, for the problems. `policy`: "off", "safe" or "lenient".
    - `closed`: the end of `json` is the end of the input, so that open brackets were forgotten, not cut off.
    - `repairs`: the receipts so far. `beside`: the other members of the call's envelope.
    - `budget`: shared by all calls of a reply; None for one of its own.
    """
    tool = tools.get(name) if tools is not None else None
    notes: list[Problem] = []
    has_none = not json.strip(_BLANKS)
    if has_none:
        value, json = {}, "{}"
    elif value is Undecodable:
        value, notes = _decode_with_notes(json, depth)
    if type(value) is dict and not (beside or repairs or notes) and (tool is None or needs_no_repair(tool, value)):
        return Call(name, value, json, id, raw), []
    repair = _ArgumentRepair(tool, tools, policy, depth, closed, notes, budget or RepairBudget(), list(repairs))
    arguments = repair.run(value, json, beside, has_none=has_none)
    made = repair.mark_uncertain_brackets(arguments)
    if arguments is None:
        problems = [repair.problem]
        complete = repair.problem.code == "arguments_not_object"
        call = Call(name, {}, json, id, raw, made, complete=complete)
    else:
        plain = without_float_texts(arguments)
        problems = argument_problems(tool, plain, index) if tool is not None else []
        problems += _forbidden_guess_problems(made, tool, policy)
        call = Call(name, plain, dumps(arguments) if repair.changed else repair.text, id, raw, made)
    return call, [msgspec.structs.replace(each, call=index) for each in [*problems, *repair.notes]]


def _decode_with_notes(json: str, depth: int) -> tuple[Any, list[Problem]]:
    """Return the value of a JSON text, or an `Undecodable` (not raised) if it is invalid or has a key with two values;
    and a list with a non-blocking problem for each key that is repeated with the same value."""
    value, repeated = decode_unique(json, depth)
    return value, [] if isinstance(value, Undecodable) else [_repeated_key_note(each) for each in repeated]


def _repeated_key_note(key: DuplicateKey) -> Problem:
    """Return the non-blocking problem of a key that is repeated with the same value (Neroued/ninfer#244)."""
    return Problem(key.code, key.message, blocking=False)


def _forbidden_guess_problems(made: tuple[Repair, ...], tool: Tool | None, policy: str) -> list[Problem]:
    """Return the blocking problem of the first of these repairs that is a guess, in a list, if the policy allows no
    guesses for this tool; empty if none is a guess or they are allowed."""
    guess = next((repair for repair in made if repair.kind == "guess"), None)
    if guess is None or are_allowed((guess,), tool, policy):
        return []
    place = f" at {guess.path}" if guess.path else ""
    message = f"the call can be read in more than one way ({guess.rule}{place}); send it again, well formed"
    return [Problem("uncertain", message, guess.path)]


def _joined_texts(made: tuple[Repair, ...], rule: str) -> str:
    """Return the texts that the repairs of this rule replaced (`before`), joined; "" if there is none."""
    return "".join([repair.before for repair in made if repair.rule == rule])


class RepairBudget(msgspec.Struct):
    """The number of schema errors that may still be examined for repairs, for all calls of one reply."""

    left: int = MAX_REPAIR_STEPS_OF_REPLY


class _ArgumentRepair(msgspec.Struct):
    """Turns the argument text of one call into arguments, and records what it repaired (`receipts`) and what it could
    not (`problem`, and `notes`, a list of the caller). `closed`: the text is complete, so that a missing bracket was
    forgotten and not cut off."""

    tool: Tool | None
    tools: Toolset | None
    policy: str
    depth: int
    closed: bool
    notes: list[Problem]  # problems other than those of the schema
    budget: RepairBudget
    receipts: list[Repair]  # those of the envelope first
    text: str = ""  # the input, as long as `changed` is False
    changed: bool = False
    problem: Problem = Problem("arguments_not_object", "the arguments must be a JSON object")
    has_early_bracket: bool = False  # another bracket than the last one of the arguments may be too early
    has_unknown_member: bool = False  # in the envelope

    def run(self, value: Any, json: str, beside: tuple[ExtraMember, ...], *, has_none: bool) -> dict[str, Any] | None:
        """Return the arguments, repaired as far as the policy allows and not necessarily valid, and record the receipts
        and notes; `text` and `changed` say whether they are the input. None, with the cause in `problem`, if there is
        no object. `value`: the decoded input or `Undecodable`; `json`: its text; `beside`: the other members of the
        envelope; `has_none`: the input has no arguments."""
        self.text = json
        found = self._to_object(value, json)
        if found is None:
            self.notes += unknown_member_notes(beside)
            return None
        if self.tool is not None and self.policy != "off" and not self.changed:
            found = with_float_texts(found, self.text)
        if beside:
            found = self._place_members(found, beside, has_none)
        if self.tool is None or needs_no_repair(self.tool, found):
            return found
        return self._fit_to_schema(self.tool, found)

    def mark_uncertain_brackets(self, arguments: dict[str, Any] | None) -> tuple[Repair, ...]:
        """Return the receipts. If another bracket may be the superfluous one, those of superfluous brackets and of
        arguments moved from behind one are marked as guesses. `arguments`: the repaired ones; None if they are
        unreadable."""
        made = tuple(self.receipts)
        extra = _joined_texts(made, "extra_closer")
        has_comma = bool(_joined_texts(made, "trailing_comma"))
        is_unsure = extra and (
            self.has_unknown_member or has_comma or is_extra_closer_unsure(arguments, self.tool, extra)
        )
        if not (is_unsure or self.has_early_bracket):
            return made
        return tuple([msgspec.structs.replace(each, kind="guess") if each.rule in _CLOSED else each for each in made])

    def _place_members(self, found: dict[str, Any], beside: tuple[ExtraMember, ...], has_none: bool) -> dict[str, Any]:
        """Return the arguments `found` with those members of the envelope (`beside`) added that are arguments; record
        receipts and problems, and whether the brackets are in doubt."""
        placed = place_members(beside, found, self.tool, self.tools, self.policy, has_none=has_none)
        self.has_unknown_member = placed.unsure or any(each.code == "unknown_key" for each in placed.problems)
        if placed.receipts:
            self.has_early_bracket = placed.unsure or self._may_close_elsewhere(found, placed.arguments)
        self._record(*placed.receipts)
        self.notes += placed.problems
        return placed.arguments

    def _may_close_elsewhere(self, found: dict[str, Any], placed: dict[str, Any]) -> bool:
        """Return whether the bracket that closes the arguments `found` may belong elsewhere: the schema does not make
        it sure, a key of `found` is odd, or `placed`, the same with the members behind that bracket added, has an
        unknown argument in a place of `found`. False if `found` is empty."""
        if not found:
            return False
        hoisted = {key: value for key, value in placed.items() if key not in found}
        are_sure = has_sure_brackets(found, 1, self.tool) and has_sure_brackets(hoisted, 2, None)
        unknown = unknown_arguments(self.tool, placed) if self.tool is not None else []
        return not are_sure or has_odd_key(found) or any(len(path) > 1 or path[0] in found for path in unknown)

    def _fit_to_schema(self, tool: Tool, found: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments repaired by the tool's schema, as far as the policy allows, and record receipts; they
        may still not fit. Arguments that are a whole call of another tool are reported in `notes` and returned as they
        are; with the policy "off" nothing else is done."""
        from rightcall.repairs.schema_repair import (
            RepairOptions,
            find_call_inside,
            rename_aliases,
            rename_near_name,
            repair_by_schema,
        )

        inside = find_call_inside(found, tool.name, tool.parameters.get("properties"))
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
            is_sure = all(each.rule not in _BRACKETS for each in self.receipts) or has_sure_brackets(found, 1, tool)
            options = RepairOptions(may_guess(tool, self.policy), self.depth, self.budget, is_sure)
            found, receipts = repair_by_schema(tool, found, options)
            self._record(*receipts)
            if self.policy == "lenient":
                found, receipts = rename_near_name(tool, found)
                self._record(*receipts)
        return found

    def _is_other_call(self, tool: Tool, found: dict[str, Any], name: str) -> bool:
        """Return whether arguments that are themselves a call of the tool `name` are no arguments of `tool`: `name` is
        declared, or they do not fit the schema of `tool`. If `name` is that of `tool`, return True only if repairs are
        off and they fit the schema as they are."""
        if name == tool.name:
            return self.policy == "off" and fits_schema(tool, found)
        from rightcall.repairs.tool_meant import resolve_tool_name

        is_declared = self.tools is not None and resolve_tool_name(name, self.tools, "safe")[0] in self.tools
        return is_declared or bool(unknown_arguments(tool, found)) or not fits_schema(tool, found)

    def _record(self, *receipts: Repair) -> None:
        """Add the receipts and set `changed`; without any do nothing."""
        if receipts:
            self.receipts.extend(receipts)
            self.changed = True

    def _to_object(self, value: Any, json: str) -> dict[str, Any] | None:
        """Return the object that the input is, or that it contains as JSON in a string or as loose JSON, which the
        policy "off" forbids; {} for null and for a blank string, with `changed` set. None, with the cause in `problem`,
        for anything else. `value`: the decoded input, or `Undecodable`; `json`: its text."""
        if isinstance(value, dict):
            return value
        if value is None or (isinstance(value, str) and not value.strip(_BLANKS)):
            self.changed = True
            return {}
        if isinstance(value, Undecodable):
            return self._parse_loosely(value, json)
        kind = {str: "a string", list: "an array", bool: "a boolean"}.get(type(value), "a number")
        self.problem = Problem("arguments_not_object", f"the arguments must be a JSON object, not {kind}")
        return self._decode_json_string(value, json) if isinstance(value, str) and self.policy != "off" else None

    def _decode_json_string(self, value: str, json: str) -> dict[str, Any] | None:
        """Return the object whose JSON is the content of the string `value`, set `text` to that content and record a
        receipt; None if it is no JSON object. `json`: the text of the string itself, for the receipt. Sets `problem` if
        a key in it has two values."""
        inner = value.strip(_BLANKS)
        found, notes = _decode_with_notes(inner, self.depth) if inner.startswith("{") else (None, [])
        if isinstance(found, Undecodable) and found.code in _DOUBLED:
            self.problem = Problem(found.code, found.message)
        if not isinstance(found, dict):
            return None
        self.notes += notes
        self.receipts.append(Repair("double_encoded", "exact", "", json, inner))
        self.text = inner
        return found

    def _parse_loosely(self, value: Undecodable, text: str) -> dict[str, Any] | None:
        """Return the object in `text`, which is not strict JSON, parsed as loose JSON, and record receipts. None, with
        the cause in `problem`, if it cannot be parsed, is no object, or the policy forbids the repairs. `value`: why it
        is not strict JSON."""
        self.problem = Problem(value.code, value.message)
        if self.policy == "off" or value.code in REFUSED:
            return None
        start = len(text) - len(text.lstrip(_BLANKS))
        try:
            found, deviations = read_arguments(text, start, self.tool, depth=self.depth, closed=self.closed)
        except UnreadableJson as error:
            found_problem = Problem(error.code, str(error)) if error.code else self.problem
            self.problem = TRUNCATED if error.cut and not self.closed else found_problem
            return None
        repeated = [DuplicateKey(each.before, False, True, "", "") for each in deviations if each.rule == AGAIN]
        self.notes += map(_repeated_key_note, repeated)
        made = deviation_receipts(deviations)
        if not isinstance(found, dict) or not are_allowed(made, self.tool, self.policy):
            return None
        self._record(*made)
        return found


def deviation_receipts(deviations: Iterable[Deviation]) -> tuple[Repair, ...]:
    """Return a receipt for each deviation of loosely parsed text, except repeated keys, which have none. Those of
    missing commas, unquoted values and comments, and deviations marked as guesses, are of the kind "guess"; others
    "exact"."""
    return tuple(
        [
            Repair(each.rule, "guess" if each.guess or each.rule in _GUESSES else "exact", "", each.before, each.after)
            for each in deviations
            if each.rule != AGAIN
        ]
    )


def are_allowed(made: Iterable[Repair], tool: Tool | None, policy: str) -> bool:
    """Return whether the policy allows all these repairs for a call of this tool: always for "lenient", without guesses
    for "safe" unless the tool is read-only; never for "off", even without repairs. `tool`: None if unknown."""
    return policy != "off" and (may_guess(tool, policy) or all(repair.kind != "guess" for repair in made))


def may_guess(tool: Tool | None, policy: str) -> bool:
    """Return whether repairs of a call of this tool may be guesses: with the policy "lenient", or with "safe" if the
    tool is known and read-only."""
    return policy == "lenient" or (policy == "safe" and tool is not None and tool.read_only)
