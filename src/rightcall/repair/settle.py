"""The end of every call, whatever wire it came on: its argument text becomes arguments, receipts and problems.

The ladder, cheapest rung first: strict JSON; a code fence, or a JSON string that holds the object; JSON as models write
it (`loose`); declared aliases; what the schema suggests (`schema`); under `lenient` json_repair. Arguments that fit are
byte for byte what was sent. A call that was cut off never comes here, and none is ever completed.
"""

from __future__ import annotations

import json as stdlib
import re
from collections.abc import Iterable
from typing import Any

from rightcall.check import argument_problems, fits, is_finite
from rightcall.declare.toolset import ToolLike, Toolset
from rightcall.repair.loose import Liberty, Unreadable, unfence
from rightcall.repair.names import find_name, settle_name
from rightcall.repair.objects import read_arguments
from rightcall.repair.spelling import dumps, with_spelling, without_spelling
from rightcall.repair.strangers import strangers
from rightcall.strict_json import MAX_DEPTH, REFUSED, Undecodable, decode
from rightcall.types import Call, Problem, Repair, Tool

_BLANKS = " \t\r\n"
_GUESSES = frozenset(("missing_comma", "unquoted_value", "merged_objects"))
_MOST_FOR_JSON_REPAIR = 16_384
_COMMENTED = re.compile(r"/\*|//|#").search  # a bracket in a comment may have ended the arguments too early
TRUNCATED = Problem("truncated", "the text ended before the call did; send the whole call again")


def settle(
    name: str,
    json: str,
    *,
    index: int,
    id: str = "",
    raw: str = "",
    tools: Toolset | None = None,
    policy: str = "safe",
    depth: int = MAX_DEPTH,
    value: Any = Undecodable,
    repairs: tuple[Repair, ...] = (),
    closed: bool = True,
) -> tuple[Call, list[Problem]]:
    """A whole call and what is wrong with it. `value` is what `json` holds, if known; `closed` says that the end of
    `json` is known to be the end of what was sent, so that brackets left open were forgotten and not cut off.

    Blank, `null` or absent arguments are `{}`. Arguments that cannot be read leave `complete=False`.
    """
    tool = tools.get(name) if tools is not None else None
    if not json.strip(_BLANKS):
        value, json = {}, "{}"
    elif value is Undecodable:
        value = decode(json, depth)
    if type(value) is dict and (
        tool is None or (not tool.aliases and fits(tool, value) and not strangers(tool, value))
    ):
        return Call(name, value, json, id, raw, repairs), []
    settling = _Settling(tool, policy, depth, closed)
    arguments = settling.arguments(value, json)
    made = (*repairs, *settling.receipts)
    if arguments is None:
        problem = settling.problem
        unread = problem.code != "arguments_not_object"
        return Call(name, {}, json, id, raw, made, complete=not unread), [_about(problem, index)]
    text = dumps(arguments) if settling.changed else settling.text
    arguments = without_spelling(arguments)
    problems = argument_problems(tool, arguments, index) if tool is not None else []
    return Call(name, arguments, text, id, raw, made), problems


def _about(problem: Problem, index: int) -> Problem:
    return Problem(problem.code, problem.message, problem.path, index, problem.blocking)


class _Settling:
    """One climb up the ladder."""

    def __init__(self, tool: Tool | None, policy: str, depth: int, closed: bool) -> None:
        self.tool, self.depth, self.closed, self.policy = tool, depth, closed, policy
        self.guesses = policy == "lenient" or (policy == "safe" and tool is not None and tool.read_only)
        self.receipts: list[Repair] = []
        self.text = ""  # the arguments as they were sent, where that still says what they are
        self.changed = False
        self.final = False  # what was sent cannot be read in any other way
        self.problem = Problem("arguments_not_object", "the arguments must be a JSON object")

    def arguments(self, value: Any, json: str) -> dict[str, Any] | None:
        self.text = json
        found = self._object(value, json)
        if found is None or self.tool is None or self.policy == "off":
            return found
        found = found if self.changed else with_spelling(found, self.text)
        if not self.tool.aliases and fits(self.tool, found) and not strangers(self.tool, found):
            return found
        from rightcall.repair.schema import mend, rename_aliases

        found, receipts = rename_aliases(self.tool, found)
        self._took(*receipts)
        if strangers(self.tool, found) or not fits(self.tool, found):
            found, receipts = mend(self.tool, found, guesses=self.guesses, depth=self.depth)
            self._took(*receipts)
        return found

    def _took(self, *receipts: Repair) -> None:
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
        if isinstance(value, str) and self.policy != "off":
            inner = value.strip(_BLANKS)
            found = decode(inner, self.depth) if inner.startswith("{") else None
            if isinstance(found, dict):
                self.receipts.append(Repair("double_encoded", "exact", "", json, inner))
                self.text = inner
                return found
        kind = {str: "a string", list: "an array", bool: "a boolean"}.get(type(value), "a number")
        self.problem = Problem("arguments_not_object", f"the arguments must be a JSON object, not {kind}")
        return None

    def _unreadable(self, value: Undecodable, json: str) -> dict[str, Any] | None:
        self.problem = Problem(value.code, value.message)
        if self.policy == "off" or value.code in REFUSED:
            return None
        inner = unfence(json)
        if inner is not None:
            self.receipts.append(Repair("code_fence", "exact", "", json[:200], inner[:200]))
            found = decode(inner, self.depth)
            if isinstance(found, dict):
                self.text = inner
                return found
        text = json if inner is None else inner
        found = self._loosely(text)
        if found is None and self.policy == "lenient" and self.problem.code != "truncated" and not self.final:
            found = self._by_json_repair(text)
        if found is None:
            self.receipts.clear()
            self.changed = False
        return found

    def _loosely(self, text: str) -> dict[str, Any] | None:
        try:
            found, liberties = read_arguments(text, 0, self.tool, depth=self.depth, closed=self.closed)
        except Unreadable as error:
            if error.cut and not self.closed:
                self.problem = TRUNCATED
            elif error.code:
                self.problem = Problem(error.code, str(error))
            self.final = error.final
            return None
        made = receipts(liberties)
        if not isinstance(found, dict) or not allowed(made, self.tool, self.policy):
            return None
        self._took(*made)
        return found

    def _by_json_repair(self, text: str) -> dict[str, Any] | None:
        """The last rung. It is quadratic on some texts and inventive on others: short texts, and only if it fits."""
        if len(text) > _MOST_FOR_JSON_REPAIR or _COMMENTED(text):
            return None
        import json_repair

        try:
            found = json_repair.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or not found or not is_finite(found):
            return None
        if self.tool is not None and not fits(self.tool, found):
            return None
        self._took(Repair("json_repair", "guess", "", text[:200], stdlib.dumps(found, ensure_ascii=False)[:200]))
        return found


def repair(call: Call, tools: Toolset | Iterable[ToolLike] | None, *, policy: str = "safe") -> Call:
    """The call as it was meant, with a receipt for every change; the same call where none is needed or none helps.

    A call that was cut off or could not be read comes back as it is: it is never completed.
    """
    toolset = Toolset.of(tools)
    if not call.complete:
        return call
    name, renamed = settle_name(call.name, toolset, policy)
    json = call.json or stdlib.dumps(call.arguments, ensure_ascii=False)
    if not name and policy != "off":
        name, json, renamed = find_name(call.arguments or decode(json, MAX_DEPTH), json, toolset)
    made, _ = settle(
        name,
        json,
        index=0,
        id=call.id,
        raw=call.raw,
        tools=toolset,
        policy=policy,
        repairs=(*call.repairs, *renamed),
        closed=False,
    )
    return made if made.complete and made.repairs != call.repairs else call


def receipts(liberties: Iterable[Liberty]) -> tuple[Repair, ...]:
    """What a loose reading is to be recorded as."""
    return tuple([_receipt(liberty) for liberty in liberties])


def allowed(made: Iterable[Repair], tool: Tool | None, policy: str) -> bool:
    """May these repairs be made to a call of this tool?"""
    may_guess = policy == "lenient" or (policy == "safe" and tool is not None and tool.read_only)
    return policy != "off" and (may_guess or all(repair.kind != "guess" for repair in made))


def _receipt(liberty: Liberty) -> Repair:
    kind = "guess" if liberty.guess or liberty.rule in _GUESSES else "exact"
    return Repair(liberty.rule, kind, "", liberty.before, liberty.after)  # type: ignore[arg-type]
