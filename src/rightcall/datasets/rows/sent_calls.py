"""Calls as they come in JSON: one, several, in a message of a provider, or in a reply as `parse` prints it."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any, TypeVar

import msgspec

from rightcall.errors import CallerError
from rightcall.providers.provider_answers import read
from rightcall.providers.sniff import sniff
from rightcall.storage.jsonl import finite
from rightcall.tools.checks import JUDGED, check
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Problem, Repair

_EXPECTED = (
    'expected a call {"name": "f", "arguments": {}}, a list of them, a message of a provider, or a reply as '
    "`rightcall parse --json` prints it"
)
Value = TypeVar("Value", Repair, Problem)
_ARGUMENTS = ("arguments", "parameters", "args", "input")


class Judged(msgspec.Struct, frozen=True):
    """A call, repaired as far as was allowed, and what is wrong with it."""

    call: Call
    problems: tuple[Problem, ...]


def sent_in(data: Any) -> list[Call]:
    """The calls that JSON data holds, with the exact text of their arguments in `json`. Raises `CallerError` for
    other data."""
    items = _items(data)
    if items is not None:
        return [_sent(item, at) for at, item in enumerate(items)]
    if sniff(data) is None:
        raise CallerError(f"the input is no call; {_EXPECTED}")
    return list(read(data, repair="off").attempts)


def _items(data: Any) -> list[Any] | None:
    """Where the calls stand, if it is a shape of ours or of OpenAI's Chat."""
    if isinstance(data, list):
        return data if all(map(_is_call, data)) else None
    if not isinstance(data, dict):
        return None
    if isinstance(data.get("parts"), list) and isinstance(data.get("calls"), list):
        return [part for part in data["parts"] if isinstance(part, dict) and part.get("type") == "call"]
    found = [data[key] for key in ("calls", "refused", "tool_calls") if isinstance(data.get(key), list)]
    if found:
        return list(chain.from_iterable(found))
    return [data] if _is_call(data) else None


def _is_call(item: Any) -> bool:
    return isinstance(item, dict) and ("name" in item or "function" in item) and not _of_a_provider(item)


def _of_a_provider(item: dict[str, Any]) -> bool:
    return item.get("type") in ("tool_use", "function_call", "custom_tool_call", "message", "reasoning")


def _sent(item: Any, at: int) -> Call:
    fields = item.get("function") if isinstance(item, dict) and isinstance(item.get("function"), dict) else item
    if not isinstance(fields, dict):
        raise CallerError(f"item {at + 1} is {type(item).__name__}; {_EXPECTED}")
    name, exact = fields.get("name"), item.get("json")
    arguments = next((fields[key] for key in _ARGUMENTS if key in fields), None)
    if name is not None and not isinstance(name, str):
        raise CallerError(f'the "name" of item {at + 1} is no string; {_EXPECTED}')
    if not isinstance(exact, str) or not _says(exact, arguments):
        exact = _text(arguments)
    receipts = _listed(item.get("repairs"), Repair)
    complete = item.get("complete", True) is not False
    id, raw = _string(item.get("id"), ""), _string(item.get("raw"), exact)
    return Call(name or "", {}, exact, id, raw, receipts, _kept_problems(item, at), complete)


def _kept_problems(item: Json, at: int) -> tuple[Problem, ...]:
    """Those that are not judged anew."""
    known = _listed(item.get("problems"), Problem)
    return tuple([msgspec.structs.replace(each, call=at) for each in known if each.code not in JUDGED])


def _string(value: Any, default: str) -> str:
    return value if isinstance(value, str) else default


def _text(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _says(exact: str, arguments: Any) -> bool:
    """Does the text hold just these arguments? If not, the arguments were changed after it was printed."""
    try:
        return bool(finite(json.loads(exact)) == arguments)
    except (ValueError, RecursionError):
        return False


def _listed(value: Any, kind: type[Value]) -> tuple[Value, ...]:
    """Receipts or problems as they were printed; what is no such list is none."""
    try:
        return msgspec.convert(value or (), tuple[kind, ...])  # type: ignore[valid-type]
    except msgspec.ValidationError:
        return ()


def judged(calls: list[Call], tools: Toolset | None, policy: str) -> list[Judged]:
    """Each call as `read` takes it, alone, so that one cannot change what becomes of another."""
    return [_judged(call, tools, policy, at) for at, call in enumerate(calls)]


def _judged(call: Call, tools: Toolset | None, policy: str, at: int) -> Judged:
    if not call.complete:
        problems = check(call, tools, index=at)
        return Judged(msgspec.structs.replace(call, problems=tuple(problems)), tuple(problems))
    function = {"name": call.name, "arguments": call.json}
    entry = {"id": call.id or f"call_{at + 1}", "type": "function", "function": function}
    reply = read({"role": "assistant", "tool_calls": [entry]}, tools=tools, repair=policy, api="chat")  # type: ignore[arg-type]
    made = reply.attempts[0]
    own = (*call.problems, *[msgspec.structs.replace(problem, call=at) for problem in made.problems])
    others = [msgspec.structs.replace(problem, call=at) for problem in reply.problems if problem not in made.problems]
    repairs = (*call.repairs, *made.repairs)
    made = msgspec.structs.replace(made, id=call.id, raw=call.raw, repairs=repairs, problems=own)
    return Judged(made, (*own, *others))
