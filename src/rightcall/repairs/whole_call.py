"""The public function `repair`: repair a call that another parser or provider produced."""

from __future__ import annotations

import json as stdlib
from collections.abc import Iterable, Set

import msgspec

from rightcall.errors import CallerError
from rightcall.repairs.finish import POLICIES, finalize_call
from rightcall.repairs.tool_meant import find_missing_name, resolve_tool_name
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.tools.checks import CHECKED_CODES, argument_text_problem, check, name_problem, value_problem
from rightcall.tools.toolset import ToolLike, Tools, Toolset
from rightcall.types import Call, Problem, Repair


def repair(call: Call, tools: Toolset | Iterable[ToolLike] | None, *, policy: str = "safe") -> Call:
    """Repair a call and return it with a receipt for every change; the same call if no repair is needed or possible.

    - `call`: a call from any source. Arguments that are not parsed yet (`Call(name, json=text)`) are parsed. A
      truncated call is returned unchanged: it is never completed.
    - `tools`: the declared tools, as in `parse`.
    - `policy`: "off", "safe" or "lenient", as `repair` in `parse`. Raises `CallerError` for any other value.

    `problems` of the result has what is still wrong with the name and the arguments, and the problems of other kinds
    that the call had before.
    """
    _check_policy(policy)
    toolset = Toolset.of(tools)
    if not call.complete:
        return call
    index = _index_in_reply(call)
    wrong = value_problem(call.arguments) or argument_text_problem(call)
    if call.arguments and wrong is not None:
        return _replace_problems(call, call, {wrong[0]}, [Problem(*wrong, call=index)])
    name, json, renamed = _resolve_name(call, toolset, policy)
    made, problems = finalize_call(
        name,
        json,
        index=index,
        id=call.id,
        raw=call.raw,
        tools=toolset,
        policy=policy,
        repairs=(*call.repairs, *renamed),
        closed=False,
    )
    if made.repairs == call.repairs and not call.problems and wrong is None:
        return call
    made = _replace_problems(made, call, CHECKED_CODES, [*_name_problems(name, toolset, index), *problems])
    return call if made == call else made


def _check_policy(policy: str) -> None:
    """Raise `CallerError` for a policy that does not exist."""
    if policy not in POLICIES:
        raise CallerError(f"policy={policy!r} is not one of {', '.join(POLICIES)}")


def _index_in_reply(call: Call) -> int | None:
    """Return the index of the call in its reply, if one of its problems has it, else None."""
    return next((problem.call for problem in call.problems if problem.call is not None), None)


def _resolve_name(call: Call, tools: Toolset | None, policy: str) -> tuple[str, str, tuple[Repair, ...]]:
    """Return the name of the declared tool that the call means (its own name if none is certain), its argument text
    without a name in it, and the receipts. The name of a call with a blank one is looked for in its arguments, unless
    the policy is "off"; "" if it is not found."""
    name, renamed = resolve_tool_name(call.name, tools, policy)
    json = call.json or stdlib.dumps(call.arguments, ensure_ascii=False)
    if name.strip() or policy == "off":
        return name, json, renamed
    return find_missing_name(call.arguments or decode(json, MAX_DEPTH), json, tools)


def _replace_problems(made: Call, before: Call, checked: Set[str], problems: list[Problem]) -> Call:
    """Return a copy of the call `made` whose problems are replaced: first those of the call `before` whose code is not
    in `checked` (codes of checks that were repeated), then the given `problems`."""
    kept = [problem for problem in before.problems if problem.code not in checked]
    return msgspec.structs.replace(made, problems=(*kept, *problems))


def _name_problems(name: str, tools: Toolset | None, index: int | None) -> list[Problem]:
    """Return the blocking problem of a tool name that is not declared, or is malformed, in a list; empty if there is
    none. `index`: the call's index in its reply, or None."""
    misnamed = None if tools is not None and name in tools else name_problem(name, tools)
    return [] if misnamed is None else [Problem(*misnamed, call=index)]


def call_from_text(name: str, text: str, tools: Tools | None, policy: str, id: str) -> Call:
    """Return a call made from a tool name and argument text, repaired as the `policy` ("off", "safe", "lenient")
    allows. Its problems are what forbids to run it, and the non-blocking problems of the repair. `id`: the call's id,
    or ""."""
    toolset = Toolset.of(tools)
    made = repair(Call(name, json=text, id=id, raw=text), toolset, policy=policy)
    notes = [problem for problem in made.problems if not problem.blocking]
    return msgspec.structs.replace(made, problems=(*check(made, toolset), *notes))
