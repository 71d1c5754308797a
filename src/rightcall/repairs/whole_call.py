"""`repair(call, tools)`: a call that was made elsewhere, as it was meant."""

from __future__ import annotations

import json as stdlib
from collections.abc import Iterable, Set

import msgspec

from rightcall.repairs.finish import settle
from rightcall.repairs.tool_meant import find_name, resolve_tool_name
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.tools.checks import CHECKED_CODES, argument_text_problem, check, name_problem
from rightcall.tools.toolset import ToolLike, Tools, Toolset
from rightcall.types import Call, Problem, Repair


def repair(call: Call, tools: Toolset | Iterable[ToolLike] | None, *, policy: str = "safe") -> Call:
    """The call as it was meant, with a receipt for every change; the same call where none is needed or none helps.

    - `call`: one that was made elsewhere. Arguments that nobody has read yet (`Call(name, json=text)`) are read. One
      that was cut off comes back as it is: it is never completed.
    - `tools`: what may be called, as in `parse`.
    - `policy`: "off", "safe" or "lenient", as `repair` in `parse`.

    What is still wrong with a call that was changed is in its `problems`; what blocked it for another reason than its
    name and its arguments blocks it still.
    """
    toolset = Toolset.of(tools)
    if not call.complete:
        return call
    index = _index_of(call)
    wrong = argument_text_problem(call)
    if call.arguments and wrong is not None:
        return _with_problems(call, call, {wrong[0]}, [Problem(*wrong, call=index)])
    name, json, renamed = _name_meant(call, toolset, policy)
    made, problems = settle(
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
    made = _with_problems(made, call, CHECKED_CODES, [*_misnamed(name, toolset, index), *problems])
    return call if made == call else made


def _index_of(call: Call) -> int | None:
    return next((problem.call for problem in call.problems if problem.call is not None), None)


def _name_meant(call: Call, tools: Toolset | None, policy: str) -> tuple[str, str, tuple[Repair, ...]]:
    """The name, the argument text without it, and the receipts."""
    name, renamed = resolve_tool_name(call.name, tools, policy)
    json = call.json or stdlib.dumps(call.arguments, ensure_ascii=False)
    if name.strip() or policy == "off":
        return name, json, renamed
    return find_name(call.arguments or decode(json, MAX_DEPTH), json, tools)


def _with_problems(made: Call, before: Call, judged: Set[str], problems: list[Problem]) -> Call:
    """The call with these problems, and with those it had before that nobody judged anew."""
    kept = [problem for problem in before.problems if problem.code not in judged]
    return msgspec.structs.replace(made, problems=(*kept, *problems))


def _misnamed(name: str, tools: Toolset | None, index: int | None) -> list[Problem]:
    if tools is not None and name in tools:
        return []
    wrong = name_problem(name, tools)
    return [] if wrong is None else [Problem(*wrong, call=index)]


def call_from_text(name: str, text: str, tools: Tools | None, policy: str, id: str) -> Call:
    """The call, repaired and checked."""
    toolset = Toolset.of(tools)
    made = repair(Call(name, json=text, id=id, raw=text), toolset, policy=policy)
    notes = [problem for problem in made.problems if not problem.blocking]
    return msgspec.structs.replace(made, problems=(*check(made, toolset), *notes))
